"""The scripted backend: tables of replies, and replays of exported ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.models.replies import ReplyCache
from rubric_measures.types.scales import Message


def table(path: Path, *lines: object) -> Backend:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return make_backend(f"scripted:{path}")


def ask(backend: Backend, text: str, replicate: int = 0) -> Reply:
    request = Request(backend.model, (Message("user", text),), replicate=replicate)
    [(answered, reply)] = list(backend.complete([request]))
    assert answered is request
    return reply


def test_the_first_line_whose_conditions_all_hold_answers(tmp_path: Path) -> None:
    backend = table(
        tmp_path / "t.jsonl",
        {"contains": ["moon", "tide"], "reply": "5"},
        {"contains": "moon", "replicate": 1, "reply": "2"},
        {"matches": r"\bmoon\b", "reply": "3", "prompt_tokens": 9},
        {"contains": "sun", "reply": "no", "status": "refused", "error": "policy"},
        {"contains": "lost", "reply": None},
    )
    assert ask(backend, "moon and tide").text == "5"
    assert ask(backend, "moon") == Reply("3", prompt_tokens=9)
    assert ask(backend, "moon", replicate=1).text == "2"
    assert ask(backend, "sun") == Reply("no", "refused", "policy")
    assert ask(backend, "lost").status == "failed"
    assert ask(backend, "nothing").status == "failed"


def test_messages_with_several_replies_have_none(tmp_path: Path) -> None:
    """Two models, or two temperatures, in one cache: whichever reply came first is not the reply."""
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        for temperature, texts in ((0, {"moon": "4", "sun": "2"}), (1, {"moon": "1", "sun": "2"})):
            for shown, text in texts.items():
                cache.put(Request("hf:x@main", (Message("user", shown),), {"temperature": temperature}), Reply(text))
        cache.export(tmp_path / "t.jsonl")
    backend = make_backend(f"scripted:{tmp_path / 't.jsonl'}")
    assert ask(backend, "sun").text == "2"
    assert ask(backend, "moon").text is None
    assert "different replies" in ask(backend, "moon").error


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"contains": "a"}', "reply"),
        ('{"reply": 5}', "reply: .*a text"),
        ('{"reply": "5", "matches": "("}', "regular expression"),
        ('{"reply": "5", "status": "fine"}', "status: .*one of ok"),
        ('{"reply": "5", "contain": "x"}', "unknown field `contain`"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, expected: str) -> None:
    (tmp_path / "t.jsonl").write_text('{"reply": "1"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(FormatError, match=expected) as caught:
        make_backend(f"scripted:{tmp_path / 't.jsonl'}")
    assert f"{tmp_path / 't.jsonl'}:2" in str(caught.value)


def test_missing_and_empty_tables_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        make_backend(f"scripted:{tmp_path / 'none.jsonl'}")
    (tmp_path / "e.jsonl").write_text("")
    with pytest.raises(FormatError, match="no replies"):
        make_backend(f"scripted:{tmp_path / 'e.jsonl'}")
