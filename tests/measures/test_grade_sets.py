"""Tests of what tells grade sets apart: model, prompt and kind; where these are alike, prompt text and settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import RubricCover
from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.boards.scoring import score_records
from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.measures.grade_sets import Grader, choices_of, grade_sets, scale_of_set
from rubric_measures.measures.loading import load_records, read_records
from rubric_measures.prompts.library import scale_of_prompt
from rubric_measures.records.merging import merge_records
from rubric_measures.records.models import GradeSetKey, ItemGradeSet, grade_set_key, load_graded, write_graded
from rubric_measures.types.scales import SELF_RATING, YES_NO, Scale
from tests.example_records import grade_set, passage, write_lines
from tests.matrices import cells, lost

PROMPT = "QuestionSelfRatedUnanswerablePromptWithChoices"
OWN = 'name = "Coverage"\ntarget = "question"\nparser = "rating"\nscale = [0, 5]\ncovers = 4\n'
OWN += 'text = """{how} does the passage answer the question?\nQuestion: {{question}}\nPassage: {{context}}"""\n'


def made(grader: str, **more: Any) -> dict[str, Any]:
    """The provenance of a grade set of ours."""
    return {"provenance": {"model": "m", "prompt": "p", "signature": f"s{grader}", "grader": grader, **more}}


# What each of them covers at grade 4: item a, nothing.
HIGH = grade_set({"q1/a": 5, "q1/b": 1}) | made("aaaa00000001")
LOW = grade_set({"q1/a": 0, "q1/b": 0}) | made("bbbb00000002")
DIRECT = {
    **{"correctAnswered": True, "answer": "2", "self_ratings": 2, "llm": "model"},
    "prompt_info": {"prompt_class": "Thomas"},
}


def records(folder: Path, *sets: dict[str, Any], direct: list[dict[str, Any]] | None = None) -> Path:
    return write_lines(folder / "g.jsonl", [["q1", [passage("q1", "d1", list(sets), {"one": 1}, 2, direct)]]])


@pytest.fixture(scope="module")
def graded_twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One passage graded twice by the command: by the default reading of replies, and by that of EXAM++.

    The model says no number about item a, and 4 about item b.
    """
    items = [{"query_id": "q1", "question_id": f"q1/{x}", "question_text": f"What is {x}?"} for x in "ab"]
    folder = tmp_path_factory.mktemp("graded")
    write_lines(folder / "bank.jsonl", [{"query_id": "q1", "query_text": "letters", "items": items}])
    write_lines(folder / "passages.jsonl", [["q1", [passage("q1", "d1", [], {"one": 1}, 2)]]])
    replies = [{"contains": "What is a?", "reply": "a letter"}, {"contains": "What is b?", "reply": "4"}]
    (folder / "replies.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    grade(folder, "passages.jsonl", PROMPT, code=1)
    grade(folder, "graded.jsonl.gz", PROMPT, "--unparsed", "exampp")
    return folder


@pytest.fixture
def graded(graded_twice: Path, tmp_path: Path) -> Path:
    """The records, in a folder of one's own."""
    shutil.copytree(graded_twice, tmp_path, dirs_exist_ok=True)
    return tmp_path / "graded.jsonl.gz"


def grade(folder: Path, source: str, prompt: str, *more: str, code: int = 0) -> None:
    command = ["grade", str(folder / source), "--bank", str(folder / "bank.jsonl"), "--prompt", prompt, *more]
    model = ["--model", f"scripted:{folder / 'replies.jsonl'}", "--retries", "0"]
    assert main([*command, *model, "-o", str(folder / "graded.jsonl.gz")]) == code


def hashes(path: Path) -> list[str]:
    return [grade_set_key(entry).grade_set for entry in load_graded(path)[0].passages[0].exam_grades or ()]


def test_other_settings_of_one_prompt_are_other_grade_sets(graded: Path, tmp_path: Path) -> None:
    default, exampp = hashes(graded)
    bank = load_bank(tmp_path / "bank.jsonl")
    with pytest.raises(InputError) as caught:
        load_records(graded, bank)
    said = str(caught.value)
    assert "\n" not in said and "several grade sets are left" in said
    assert f"kind=question,set={default[:8]}; " in said
    assert f"kind=question,set={exampp[:8]}" in said
    # Without a rating, a is no grade by default, and 1 in EXAM++; b is 4 in both.
    one, other = (load_records(graded, bank, Grader(set=name[:8])) for name in (default, exampp))
    assert cells(one.queries["q1"]) == {"d1": {"q1/b": 4}}
    assert cells(other.queries["q1"]) == {"d1": {"q1/a": 1, "q1/b": 4}}
    assert (lost(one.queries["q1"]), lost(other.queries["q1"])) == ({"d1": {"q1/a"}}, {})


def test_a_choice_lists_the_grade_sets_of_all_queries(tmp_path: Path) -> None:
    panel = grade_set({"q2/a": 3}, llm="panel:median")
    # A panel of first, blind grades is a grader like others.
    panel["prompt_info"] = {"prompt_class": "HumanReviewBlind", "scale": [0, 5], "covers": 4}
    first = passage("q1", "d1", [grade_set({"q1/a": 1}), grade_set({"q1/a": 2}, llm="other")])
    write_lines(tmp_path / "graded.jsonl", [["q1", [first]], ["q2", [passage("q2", "d2", [panel])]]])
    with pytest.raises(InputError, match=r"choose one of: model=model,.*; model=other,.*; model=panel:median,"):
        load_records(tmp_path / "graded.jsonl")
    assert cells(load_records(tmp_path / "graded.jsonl", wanted=Grader("panel:median")).queries["q2"]) == {
        "d2": {"q2/a": 3}
    }


def test_an_edited_prompt_of_the_same_name_is_another_grade_set(graded: Path, tmp_path: Path) -> None:
    for how in ("How well", "How badly"):
        (tmp_path / "own.toml").write_text(OWN.format(how=how))
        grade(tmp_path, "graded.jsonl.gz", str(tmp_path / "own.toml"), "--unparsed", "exampp")
    with pytest.raises(InputError, match=r"several grade sets are left.*set=.*set="):
        load_records(graded, wanted=Grader(prompt="Coverage"))
    for name in hashes(graded)[2:]:
        found = load_records(graded, wanted=Grader(set=name)).queries["q1"]
        assert cells(found) == {"d1": {"q1/a": 1, "q1/b": 4}}


@pytest.mark.parametrize("command", ["evaluate", "leaderboard", "qrels", "verify", "agreement"])
def test_every_command_refuses_to_mix_and_takes_the_hash(
    graded: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "one.run"
    run.write_text("q1 Q0 d1 1 1.0 one\n")
    qrels = str(tmp_path / "out.qrels")
    arguments = {
        "evaluate": [str(graded), str(run), "RubricCover(rel=4)@20"],
        "leaderboard": [str(graded), "-m", "RubricCover(rel=4)@20"],
        "qrels": [str(graded), "-o", qrels],
        "verify": ["grading", str(graded)],
        "agreement": [str(graded)],
    }[command]
    assert main([command, *arguments]) == 2
    said = capsys.readouterr().err
    default, exampp = (name[:8] for name in hashes(graded))
    assert f"set={default}" in said and f"set={exampp}" in said and "Traceback" not in said
    assert main([command, *arguments, "--grader", f"set={exampp}"]) == 0


def test_sets_that_name_no_settings_are_joined_and_can_be_chosen(tmp_path: Path) -> None:
    foreign = grade_set({"q1/a": 2}), grade_set({"q1/a": 3, "q1/b": 1})
    path = records(tmp_path, *foreign)
    assert cells(load_records(path).queries["q1"]) == {"d1": {"q1/a": 3, "q1/b": 1}}
    path = records(tmp_path, *foreign, HIGH)
    with pytest.raises(InputError, match=r"set=none; .*set=aaaa0000$"):
        load_records(path)
    for name, a in (("none", 3), ("aa", 5)):
        chosen = load_records(path, wanted=Grader(set=name))
        assert cells(chosen.queries["q1"]) == {"d1": {"q1/a": a, "q1/b": 1}}


def test_grades_of_several_settings_are_listed_and_counted_apart(tmp_path: Path) -> None:
    groups = load_graded(records(tmp_path, HIGH, LOW))
    keys = [GradeSetKey("model", PROMPT, "question", name) for name in ("aaaa00000001", "bbbb00000002")]
    assert grade_sets(groups) == {keys[0]: 1, keys[1]: 1}
    assert grade_sets(groups, Grader(set="bb")) == {keys[1]: 1}
    assert choices_of(keys).count("set=") == 2 and "set=" not in choices_of(keys[:1])


def told(ratings: dict[str, int], options: dict[str, Any], **prompt_info: Any) -> dict[str, Any]:
    """A grade set of another program, which says something about its settings."""
    entry = grade_set(ratings)
    return entry | {"llm_options": options, "prompt_info": {"prompt_class": PROMPT, **prompt_info}}


def parsed(entry: dict[str, Any]) -> ItemGradeSet:
    return ItemGradeSet(**entry)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (told({"q1/a": 5}, {"temperature": 0.0}), told({"q1/a": 0}, {"temperature": 1.0})),
        (told({"q1/a": 5}, {"temperature": 0.0}), told({"q1/a": 0}, {})),
        (told({"q1/a": 5}, {}, context_first=True), told({"q1/a": 0}, {}, context_first=False)),
        (told({"q1/a": 5}, {}, language="de"), told({"q1/a": 0}, {}, language="en")),
    ],
)
def test_sets_of_other_programs_are_apart_by_options_and_prompt(
    tmp_path: Path, one: dict[str, Any], two: dict[str, Any]
) -> None:
    values, signatures, parts = [], set(), []
    for entry in (one, two):
        path = records(tmp_path, entry)
        board = score_records(read_records(path), [RubricCover(rel=4)])
        values.append(board.values["one"]["RubricCover(rel=4)"]["q1"])
        signatures.add(str(board.signature))
        parts.append(load_graded(path))
    assert (values, len(signatures)) == ([1.0, 0.0], 2)
    for order in (parts, parts[::-1]):
        write_graded(tmp_path / "both.jsonl", merge_records(order))
        with pytest.raises(InputError, match="several grade sets are left") as caught:
            load_records(tmp_path / "both.jsonl")
        for entry, grade in ((one, 5), (two, 0)):
            hashed = grade_set_key(parsed(entry)).grade_set[:8] or "none"
            assert f"set={hashed}" in str(caught.value)
            chosen = load_records(tmp_path / "both.jsonl", None, Grader(set=hashed))
            assert list(cells(chosen.queries["q1"])["d1"].values()) == [grade]


def test_settings_that_say_the_same_have_one_hash() -> None:
    entries = [
        told({}, {"top_p": 1, "temperature": 0.5}, context_first=True),
        told({}, {"temperature": 0.5, "top_p": 1, "seed": None}, prompt_style=None, context_first=True),
    ]
    assert len({grade_set_key(parsed(entry)) for entry in entries}) == 1
    # Nothing but the prompt class: no settings.
    bare = parsed(told({}, {}, prompt_style=None))
    assert grade_set_key(bare).grade_set == ""


def test_grades_of_one_item_by_one_grader_are_counted_and_the_later_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = records(tmp_path, grade_set({"q1/a": 5, "q1/b": 5}), grade_set({"q1/a": 0, "q1/c": 1}))
    assert cells(load_records(path).queries["q1"])["d1"] == {"q1/a": 0, "q1/b": 5, "q1/c": 1}
    assert caplog.messages == [
        f"{path}: 1 grade names an item that the same model and prompt graded before in the passage; the later grade "
        "counts"
    ]
    caplog.clear()
    path = records(tmp_path, direct=[DIRECT, {**DIRECT, "answer": "0", "self_ratings": 0}])
    assert load_records(path, None, Grader(kind="direct")).qrels[0].relevance == 0
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("said", [{"covers": [4]}, {"scale": [[0], 5]}, {"grade_names": 3}, {"partial": {"a": 1}}])
def test_a_scale_that_cannot_be_read_is_none(said: dict[str, Any]) -> None:
    entry = grade_set({"i1": 4})
    entry["prompt_info"].update({"prompt_class": "Unknown", "scale": [0, 5], **said})
    assert scale_of_set(ItemGradeSet(**entry)) is None


def test_names_of_grades_are_texts() -> None:
    entry = grade_set({"i1": 4})
    entry["prompt_info"].update({"prompt_class": "Unknown", "scale": [0, 1], "grade_names": ["no", {"a": 1}]})
    scale = scale_of_set(ItemGradeSet(**entry))
    assert scale is not None and len({scale}) == 1


def test_ratings_of_a_prompt_class_that_nobody_knows_are_on_no_known_scale(tmp_path: Path) -> None:
    entry = grade_set({"q1/a": 2, "q1/b": 0}, prompt="Theirs")
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", [entry], {"one": 1})]]])
    assert load_records(path).scale is None
    with pytest.raises(MeasureError, match=r"RubricCover@1: the scale of the grades is not known; say which grade"):
        rubric_measures.score(path, measures="RubricCover@1")
    # Those without ratings are answered or not.
    keyed = {**entry, "self_ratings": None}
    path = write_lines(tmp_path / "k.jsonl", [["q1", [passage("q1", "d1", [keyed], {"one": 1})]]])
    assert load_records(path).scale == YES_NO


def test_right_or_wrong_of_a_prompt_that_rates_is_no_rating() -> None:
    def scale(ratings: dict[str, int], **fields: Any) -> Scale | None:
        return scale_of_set(ItemGradeSet(**{**grade_set(ratings), **fields}))

    assert scale({"i1": 1, "i2": 0}) == SELF_RATING
    assert scale({"i1": 1, "i2": 0}, self_ratings=None) == YES_NO
    # Nothing answered is no rating and no answer; other passages tell.
    assert scale({"i1": 0}, self_ratings=None) is None
    assert scale({}, self_ratings=None) == scale_of_prompt("QuestionSelfRatedUnanswerablePromptWithChoices")
