"""Models that are none: the lexical grader, the share of content words in fifths; tables of replies, and replays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import FormatError, InputError, UnknownNameError
from rubric_measures.base.words import STOPWORDS, content_stems
from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.models.lexical import LexicalBackend, lexical_grade
from rubric_measures.prompts.library import load_prompt
from rubric_measures.types.scales import Message


@pytest.mark.parametrize(
    ("item", "passage", "grade"),
    [
        # content words of the item: outer, layer, skin
        ("What is the outer layer of the skin?", "The epidermis is the outer layer of skin.", 5),  # 3 of 3
        ("What is the outer layer of the skin?", "Skins have layers.", 3),  # 2 of 3: ⌊10/3⌋
        ("What is the outer layer of the skin?", "A skin.", 1),  # 1 of 3: ⌊5/3⌋
        ("What is the outer layer of the skin?", "Money.", 0),
        ("What is the outer layer of the skin?", "", 0),
        ("Founded in 1912", "It was founded 1912", 5),  # numbers count: found, 1912
        ("Founded in 1912", "It was founded 1913", 2),  # 1 of 2: ⌊5/2⌋
        ("What is it?", "It is what it is", 0),  # no content words
        ("Not toxic", "It is toxic", 2),  # negations are content: 1 of 2
        ("skin skin skin layer", "skin", 2),  # sets: 1 of 2
        # gold answers: the better of {outer, layer, skin, dermi} 3 of 4 and {outer, layer, skin, epidermi} 4 of 4
        ("Outer layer of the skin?\ndermis\nepidermis", "The epidermis is the outer layer of skin.", 5),
        ("Outer layer of the skin?\ndermis", "The epidermis is the outer layer of skin.", 3),  # ⌊15/4⌋
    ],
)
def test_the_grade_is_the_share_of_content_words_in_fifths(item: str, passage: str, grade: int) -> None:
    assert lexical_grade(item, passage) == grade


@settings(max_examples=40)
@given(st.text(), st.text())
def test_any_text_gets_a_grade_of_the_scale_and_more_text_never_less(item: str, passage: str) -> None:
    grade = lexical_grade(item, passage)
    assert 0 <= grade <= 5
    assert lexical_grade(item, f"{passage} {item}") >= grade


def test_stems_fold_case_plural_width_and_apostrophes() -> None:
    assert content_stems("The SKINS’ Earth's ｌａｙｅｒｓ, 3.5") == {"skin", "earth", "layer", "3", "5"}
    assert all(word == word.lower() for word in STOPWORDS)


def test_it_reads_the_rendered_prompt_and_nothing_else() -> None:
    prompt = load_prompt("LexicalCoverage")
    backend = LexicalBackend()
    good = Request(backend.model, prompt.render(item='a "skin"', passage="Skin."))
    bad = Request(backend.model, (Message("user", "Question: skin?"),))
    replies = dict(zip("gb", [reply for _, reply in backend.complete([good, bad])], strict=True))
    assert replies["g"] == Reply("5")
    assert (replies["b"].status, replies["b"].text) == ("failed", None)


@pytest.mark.parametrize("spec", ["lexica", "gpt-4o", "", "llama:x"])
def test_unknown_models_name_the_known_ones(spec: str) -> None:
    with pytest.raises(UnknownNameError, match="lexical"):
        make_backend(spec)


@pytest.mark.parametrize("spec", ["lexical:x", "scripted:", "hf:", "openai"])
def test_a_model_without_its_name_is_said(spec: str) -> None:
    with pytest.raises(InputError, match=r"argument|takes no name"):
        make_backend(spec)


def test_an_option_that_the_model_does_not_have_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^unknown setting 'base_url': there are none \(of the model 'lexical'\)$"):
        make_backend("lexical", base_url="http://localhost")
    table = tmp_path / "t.jsonl"
    table.write_text('{"reply": "4"}')
    with pytest.raises(
        InputError, match=r"^unknown setting 'contxt': did you mean context\? \(of the model 'scripted:"
    ):
        make_backend(f"scripted:{table}", name="x", contxt=3)


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
        {"contains": "moon", "reply": "3", "prompt_tokens": 9},
        {"contains": "sun", "reply": "no", "status": "refused", "error": "policy"},
        {"contains": "lost", "reply": None},
    )
    assert ask(backend, "moon and tide").text == "5"
    assert ask(backend, "moon") == Reply("3", prompt_tokens=9)
    assert ask(backend, "moon", replicate=1).text == "2"
    assert ask(backend, "sun") == Reply("no", "refused", "policy")
    assert ask(backend, "lost").status == "failed"
    assert ask(backend, "nothing").status == "failed"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"contains": "a"}', "reply"),
        ('{"reply": 5}', "reply: .*a text"),
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
