"""What is asked: several items in one call, replies that end too early, prompts that say where their grade stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.grading.asking import read_several
from rubric_measures.models.base import Reply
from rubric_measures.prompts.library import load_prompt
from rubric_measures.records.models import grade_of_items, load_graded, provenance_of
from tests.function_backend import FunctionBackend
from tests.grading.test_grading import bank_of, grade, only_set
from tests.models.test_end_to_end_http import (
    RATING,
    endpoint,
    grades,
    model,
    prompts_of,
    says,
    sets,
    write_items,
    write_passages,
)

pytest.importorskip("openai")
pytest.importorskip("aiohttp")

SEVERAL = "There are several questions above"


def told(text: str, prompt: str = RATING, count: int = 3) -> dict[int, int] | None:
    read = read_several(text, load_prompt(prompt), count).value
    return None if read is None else {place: grade for place, (grade, _) in read.items()}


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ('{"1": "4", "2": 0, "3": "5"}', {0: 4, 1: 0, 2: 5}),
        ('<think>{"1": 0}?</think>Here they are:\n```json\n{"1": 3, "2": 1, "3": 2}\n```', {0: 3, 1: 1, 2: 2}),
        ('{"1": 3, "3": 2}', {0: 3, 2: 2}),
        ('{"1": 3, "2": "9", "3": null}', {0: 3}),
        ('{"1": {"reason": "So.", "grade": "4"}, "2": {"grade": 0}, "3": {"reason": "None."}}', {0: 4, 1: 0}),
        ('{"1": 3, "2": 4}\nRather {"1": 1, "2": 4}', {1: 4}),
        # Who counts from 0, or has one more, may mean another item by each number.
        ('{"0": 3, "1": 1, "2": 2}', None),
        ('{"1": 3, "2": 1, "3": 2, "4": 0}', None),
        ("1. 4\n2. 0\n3. 5", None),
        ('{"1": 3, "2"', None),
        ("", None),
    ],
)
def test_grades_belong_to_numbers_or_to_nobody(reply: str, read: dict[int, int] | None) -> None:
    assert told(reply) == read


def test_the_grades_of_several_are_those_that_the_prompt_allows(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    head = 'target = "nugget"\ntext = "{nugget} {context}"\nlabels = '
    own.write_text(f'parser = "yes_no"\n{head}["No", "Yes"]\n')
    assert told('{"1": "yes", "2": false, "3": "maybe"}', str(own)) == {0: 1, 1: 0}
    own.write_text(f'parser = "label"\nscale = [0, 2]\ncovers = 2\n{head}["none", "some", "all"]\n')
    assert told('{"1": "All", "2": "some", "3": "most"}', str(own)) == {0: 2, 1: 1}


def test_several_items_are_one_call_and_what_is_missing_is_asked_singly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passages = write_passages(tmp_path, sun="about the sun", moon="about the moon")
    texts = ["How long?", "Who rules?", "Since when?", "How\n high?"]
    bank = write_items(tmp_path, *texts)
    rules = [
        says('{"1": 5, "2": 4, "3": 0, "4": 1}', SEVERAL, "about the sun"),
        says('{"1": 5, "3": 0}', SEVERAL, "about the moon"),
        says("2", "Who rules?"),
        says("3", "high?"),
    ]
    command = ["grade", passages, "--bank", bank, "--prompt", RATING, "--cache", str(tmp_path / "c.sqlite")]
    out = tmp_path / "out.jsonl"
    with model(tmp_path, *rules) as server:
        several = [*command, *endpoint(server), "--items-per-call", "all"]
        assert main([*several, "-o", str(out)]) == 0
        assert "2 items were asked about singly" in capsys.readouterr().err
        sent = prompts_of(server)
        assert main([*several, "-o", str(tmp_path / "again.jsonl")]) == 0
        assert prompts_of(server) == sent
        # What is asked about one item is the request that it always was.
        [single] = [text for text in sent if "Who rules?" in text and SEVERAL not in text]
        assert main([*command, *endpoint(server), "--queries", "q1", "-o", str(tmp_path / "one.jsonl")]) == 1
        assert prompts_of(server).count(single) == 1
    assert len(sent) == 4 and sum(SEVERAL in text for text in sent) == 2
    assert "Question: \n1. How long?\n2. Who rules?\n3. Since when?\n4. How high?\n" in sent[0]
    assert grades(out) == {
        "sun": {"How long?": 5, "Who rules?": 4, "Since when?": 0, "How\n high?": 1},
        "moon": {"How long?": 5, "Who rules?": 2, "Since when?": 0, "How\n high?": 3},
    }
    moon = sets(out)["moon"].details
    assert {item_id: one["asked_singly"] for item_id, one in moon.items()} == {
        "q1/Who rules?": [0],
        "q1/How\n high?": [0],
    }
    assert "asked_singly" not in str(sets(out)["sun"].details)


def test_grades_of_several_are_not_taken_for_those_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?", "Who rules?")
    command = ["grade", "--bank", bank, "--prompt", RATING, "--cache", str(tmp_path / "c.sqlite")]
    one, both = str(tmp_path / "one.jsonl"), str(tmp_path / "both.jsonl")
    with model(tmp_path, says('{"1": 5, "2": 4}', SEVERAL), says("1", "Question:")) as server:
        assert main([*command, passages, *endpoint(server), "-o", one]) == 0
        assert main([*command, one, *endpoint(server), "--items-per-call", "2", "-o", both]) == 0
    [group] = load_graded(both)
    entries = group.passages[0].exam_grades or []
    assert [list(grade_of_items(entry).values()) for entry in entries] == [[1, 1], [5, 4]]
    assert [provenance_of(entry).get("items_per_call") for entry in entries] == [None, 2]
    assert len({provenance_of(entry)["grader"] for entry in entries}) == 2
    capsys.readouterr()
    assert main(["qrels", both, "--bank", bank, "-o", str(tmp_path / "q.qrels")]) == 2
    assert "several grade sets are left" in capsys.readouterr().err


def test_failed_calls_about_several_fail_and_bounds_count_what_is_asked_singly(tmp_path: Path) -> None:
    backend = FunctionBackend(lambda request: Reply(None, "failed", "HTTP 500"))
    entry = only_set(grade(backend, bank_of("one?", "two?"), RATING, items_per_call="all"))
    assert len(backend.seen) == 1 and entry.item_status == {"q/one?": "failed", "q/two?": "failed"}


def test_a_plan_bounds_what_is_asked_singly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "a?", "b?", "c?")
    prices = tmp_path / "prices.json"
    prices.write_text('{"m": {"input": 1, "output": 1}}')
    with model(tmp_path, says("no", SEVERAL), says("no", "Question:")) as server:
        command = ["grade", passages, "--bank", bank, "--prompt", RATING, *endpoint(server), "--prices", str(prices)]
        command += ["--cache", str(tmp_path / "c.sqlite"), "--items-per-call", "all"]
        assert main([*command, "--dry-run"]) == 0
        head, row, *_ = capsys.readouterr().out.splitlines()
        plan = dict(zip(head.split("\t"), row.split("\t"), strict=True))
        assert main([*command, "-o", str(tmp_path / "o.jsonl"), "--retries", "1"]) == 1
    paid = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())["paid"]
    # One call about three, drawn twice, then each of them twice.
    assert (plan["calls"], paid["made"]) == ("1", 8)
    assert 0 < paid["cost"] <= float(plan["cost_at_most"])


@pytest.mark.parametrize(
    ("prompt", "options", "said"),
    [
        ("Thomas", {}, "a prompt that asks a model for one grade of one thing, and Thomas does not"),
        (RATING, {"unparsed": "exampp"}, "are JSON"),
    ],
)
def test_prompts_of_another_kind_are_refused(prompt: str, options: dict[str, Any], said: str) -> None:
    backend = FunctionBackend(lambda request: "1")
    bank = bank_of("one?", "two?")
    with pytest.raises(InputError, match=said):
        grade(backend, bank, prompt, items_per_call=3, **options)
