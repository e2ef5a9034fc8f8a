"""Grading from Python: objects and files in, records out; as safe as the command."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.cli import main
from rubric_measures.records.models import grade_of_items, load_graded
from rubric_measures.types.entities import Preference, TestBank
from tests.grading_data import make_bank, make_groups, write_inputs

RATING = "QuestionSelfRatedUnanswerablePromptWithChoices"


def scripted(path: Path, *lines: object) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"scripted:{path}"


def test_objects_in_and_records_out() -> None:
    groups = make_groups()
    told: list[int] = []
    records = rubric_measures.grade(
        groups, make_bank(), model="lexical", progress=lambda stats: told.append(stats.answered)
    )
    assert told and max(told) <= 24
    assert repr(records) == "GradedRecords(2 queries, 8 passages, 8 grade sets)"
    assert [len(group.passages) for group in records] == [4, 4] and records[:1] == [records[0]]
    assert all(len(grade_of_items(passage.exam_grades[0])) == 3 for group in records for passage in group.passages)
    assert records.report.is_complete and records.report.by_status["graded"] == 24
    for same in (pickle.loads(pickle.dumps(records)), copy.deepcopy(records)):
        assert (list(same), same.report.by_status) == (list(records), records.report.by_status)
    # The input is as it was.
    assert all(passage.exam_grades is None for group in groups for passage in group.passages)


def test_the_records_are_those_of_the_command(tmp_path: Path) -> None:
    passages, bank = write_inputs(tmp_path)
    by_command, by_call, by_hand = (tmp_path / name for name in ("command.jsonl", "call.jsonl", "hand.jsonl"))
    assert main(["grade", str(passages), "--bank", str(bank), "--model", "lexical", "-o", str(by_command)]) == 0
    records = rubric_measures.grade(passages, bank, model="lexical", output=by_call)
    assert by_call.read_bytes() == by_command.read_bytes()
    assert list(records) == load_graded(by_command)
    manifests = [json.loads(Path(f"{path}.manifest.json").read_text()) for path in (by_command, by_call)]
    assert manifests[0]["files"].pop("output") != manifests[1]["files"].pop("output")
    assert manifests[0] == manifests[1]
    rubric_measures.grade(load_graded(passages), rubric_measures.load_bank(bank), model="lexical").write(by_hand)
    assert by_hand.read_bytes() == by_command.read_bytes()


def test_bad_input(tmp_path: Path) -> None:
    passages, bank = write_inputs(tmp_path)
    with pytest.raises(InputError, match="name the test bank") as lacking:
        rubric_measures.grade(passages, model="lexical")
    assert "bank" in lacking.value.settings
    with pytest.raises(InputError, match=r"^passages: .* is neither a file nor records; give what `pool` returns"):
        rubric_measures.grade(["passages"], bank, model="lexical")  # type: ignore[list-item]
    with pytest.raises(UnknownNameError, match="q1"):
        rubric_measures.grade(make_groups(), TestBank({"q0": make_bank().items["q0"]}), model="lexical")
    with pytest.raises(UnknownNameError, match="unknown query 'q7'"):
        rubric_measures.grade(passages, bank, model="lexical", queries=["q7"])
    with pytest.raises(InputError, match="needs a price"):
        rubric_measures.grade(passages, bank, model="lexical", calls=rubric_measures.Calls(max_cost=1))
    with pytest.raises(InputError, match="replicates at temperature 0"):
        rubric_measures.grade(passages, bank, model="lexical", asking=rubric_measures.Asking(replicates=3))
    wrong = {"model": (5, "a model's name"), "calls": ({"max_calls": 1}, "Calls"), "asking": ({}, "Asking")}
    for name, (value, expected) in wrong.items():
        with pytest.raises(InputError, match=rf"^{name} is .*; expected {expected}"):
            rubric_measures.grade(passages, bank, **{"model": "lexical", name: value})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max_calls is '5'; expected a number from 0"):
        rubric_measures.Calls(max_calls="5")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"graded.csv.gz: is written as JSON lines; name a .jsonl.gz"):
        rubric_measures.grade(passages, bank, model="lexical", output=tmp_path / "graded.csv.gz")
    with pytest.raises(InputError, match="would be replaced"):
        rubric_measures.grade(passages, bank, model="lexical", output=bank)
    with pytest.raises(InputError, match="a file of the reply cache"):
        rubric_measures.grade(passages, bank, model="lexical", calls=rubric_measures.Calls(cache=passages))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank.jsonl", "passages.jsonl.gz"]


def test_settings_without_effect_are_refused(tmp_path: Path) -> None:
    more, ray = rubric_measures.Asking(temperature=1, replicates=3), "without the runner ray"
    with pytest.raises(InputError, match="replicates would have no effect here; leave it out"):
        rubric_measures.generate({"q": "Why?"}, model="scripted:x", asking=more)
    with pytest.raises(InputError, match="replicates would have no effect here; leave it out"):
        rubric_measures.tournament(answers="x", queries={"q": "Why?"}, model="lexical", asking=more)
    with pytest.raises(InputError, match="temperature would have no effect without a model"):
        rubric_measures.tournament([Preference("q", "a", "b", "a")], asking=rubric_measures.Asking(temperature=1))
    with pytest.raises(InputError, match=f"actors would have no effect {ray}"):
        rubric_measures.Calls(actors=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--old-bank", "b"], "old_bank would have no effect where all items are graded"),
        (["--support", "--passages-per-query", "2"], "bank, limit would have no effect where citations are judged"),
        (["--only-changed", "--for", "NuggetV"], "measures would have no effect where only some items are"),
        (["--collection", "docs"], "collection would have no effect where all items are graded"),
    ],
)
def test_options_of_another_way_of_grading_are_refused(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = write_inputs(tmp_path)
    command = ["grade", str(passages), "--bank", str(bank), "--model", "lexical", "-o", str(tmp_path / "out.jsonl")]
    assert main([*command, *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
