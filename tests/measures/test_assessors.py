"""Assessors' grades in the place of a grader's: what counts where they differ, in every command that scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ir_measures
import pytest

from rubric_measures import RubricCover, RubricQrels
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.trec import read_qrels
from rubric_measures.measures.checked import check_records
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector, grade_of_assessors, grades_by_assessors
from rubric_measures.measures.loading import load_records
from rubric_measures.records.models import load_graded
from rubric_measures.types.entities import item_content
from rubric_measures.types.scales import SELF_RATING
from tests import matrices
from tests.example_records import BANK, grade_set, passage, write_lines

OVERRIDE = Grader(assessors="override")


def by(assessor: str, grades: dict[str, int], kind: str = "question") -> dict[str, Any]:
    entry = grade_set(grades, llm=f"human:{assessor}", prompt="HumanReview", kind=kind)
    info = {"prompt_class": "HumanReview", **SELF_RATING.as_json()}
    return {**entry, "prompt_info": info, "answers": [[item_id, f"{assessor} says so"] for item_id in grades]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """d1: assessors change a, agree on b, grade c, which failed; d2: three differ on a; d3: no grade by the grader."""
    first = [grade_set({"q1/a": 5, "q1/b": 4}, status={"q1/c": "unparsed"})]
    first += [by("ada", {"q1/a": 1, "q1/b": 4}), by("ada", {"q1/a": 2}), by("bob", {"q1/c": 4})]
    second = [grade_set({"q1/a": 0, "q1/b": 0, "q1/c": 0})]
    second += [by("ada", {"q1/a": 5}), by("bob", {"q1/a": 1}), by("cleo", {"q1/a": 4})]
    third = [by("ada", {"q1/d": 5})]
    passages = [
        passage("q1", f"d{n}", sets, {"one": n, "two": 4 - n}) for n, sets in enumerate((first, second, third), 1)
    ]
    write_lines(tmp_path / "bank.jsonl", BANK)
    return write_lines(tmp_path / "graded.jsonl", [["q1", passages]])


# d1: a 2 (Ada's later entry), b 4, c 4 (Bob's, where the grader failed); d2: a 4, the median of 1, 4, 5.
EXPECTED = {
    ("q1", "d1", "q1/a", 2),
    ("q1", "d1", "q1/b", 4),
    ("q1", "d1", "q1/c", 4),
    ("q1", "d2", "q1/a", 4),
    ("q1", "d2", "q1/b", 0),
    ("q1", "d2", "q1/c", 0),
}


def test_of_two_assessors_the_lower_grade_counts() -> None:
    assert (grade_of_assessors([5, 2]), grade_of_assessors([2, 5]), grade_of_assessors([0, 5, 5])) == (2, 2, 5)


@pytest.mark.parametrize("with_bank", [True, False])
def test_assessors_stand_in_the_graders_place_and_it_is_said(
    path: Path, with_bank: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bank = load_bank(path.with_name("bank.jsonl")) if with_bank else None
    grades = load_records(path, bank, OVERRIDE)
    rows = grades.queries["q1"].rows()
    assert {(row.query_id, row.doc_id, row.iteration, row.relevance) for row in rows} == EXPECTED
    assert grades.queries["q1"].failed is None
    said = [record.getMessage().partition(": ")[2] for record in caplog.records]
    # a, b and c of d1, a of d2; b is the grader's too. Of d2's a assessors differ; d3 was not graded by the grader.
    assert said == [
        "4 grades by assessors stand in the grader's place",
        "3 of them say something else than the grader",
        "on 1 of them assessors differ; the median counts, of two the lower",
        "4 of them were given or settled in sight of the grader's",
        "1 grade by assessors left out: the grader graded nothing of their passages",
    ]
    assert [text.partition(",")[0].removeprefix("model=") for text in grades.source["grades"]] == [
        "human:ada",
        "human:bob",
        "human:cleo",
        "model",
    ]


def test_a_grade_that_waited_for_a_decision_waits_no_more_once_it_was_decided(tmp_path: Path) -> None:
    waiting = {**by("ada", {"q1/a": 1, "q1/b": 2}), "details": {one: {"to_decide": True} for one in ("q1/a", "q1/b")}}
    sets = [grade_set({"q1/a": 5, "q1/b": 5}), waiting, by("ada", {"q1/a": 4})]
    path = write_lines(tmp_path / "graded.jsonl", [["q1", [passage("q1", "d1", sets, {"one": 1})]]])
    [group] = load_graded(path)
    assert grades_by_assessors(group.passages[0], None, None).to_decide == {"q1/b"}


def test_every_command_that_scores(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "one.run"
    run.write_text("q1 Q0 d1 1 2 one\nq1 Q0 d2 2 1 one\n")
    common = ["--bank", str(path.with_name("bank.jsonl")), "--grader", "assessors=override"]
    assert main(["evaluate", str(path), str(run), "RubricCover(rel=4)@1", "-q", *common]) == 0
    out = capsys.readouterr()
    assert "q1\tRubricCover(rel=4)@1\t0.5000" in out.out and "4 grades by assessors stand" in out.err
    assert out.err.count("stand in the grader's place") == 1
    assert main(["leaderboard", str(path), "-m", "RubricCover(rel=4)@1", *common]) == 0
    assert capsys.readouterr().err.count("stand in the grader's place") == 1
    assert main(["qrels", str(path), "--output", str(tmp_path / "q.qrels"), *common]) == 0
    assert {row[:2]: row.relevance for row in read_qrels(tmp_path / "q.qrels")} == {("q1", "d1"): 4, ("q1", "d2"): 4}
    capsys.readouterr()
    assert main(["verify", "grading", str(path), "--format", "jsonl", *common]) == 0
    out = capsys.readouterr()
    rows = [json.loads(line) for line in out.out.splitlines()]
    (row,) = [row for row in rows if row["doc_id"] == "d2" and row["title"].endswith("(q1/a)")]
    assert (row["grade"], row["answer"]) == (4, "ada says so; bob says so; cleo says so")
    assert out.err.count("stand in the grader's place") == 1
    # Without the option each assessor is a grader, and the error says what there is.
    assert main(["qrels", str(path), *common[:2]]) == 2
    assert "model=human:ada" in (said := capsys.readouterr().err) and "(--grader, --grader assessors=…)" in said
    assert main(["qrels", str(path), *common[:2], "--grader", "model=human:ada,assessors=override"]) == 2
    assert "name the grader, not the assessor" in capsys.readouterr().err


def test_files_without_assessors_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5})])]]])
    cells = [matrices.cells(of.queries["q1"]) for of in (load_records(path, None, OVERRIDE), load_records(path))]
    assert cells[0] == cells[1]
    assert [record.getMessage().partition(": ")[2][:30] for record in caplog.records] == [
        "holds no grades by assessors ("
    ]


def test_assessors_override_items_of_their_kind_and_of_the_bank_only(tmp_path: Path) -> None:
    nuggets = grade_set({"q1/n": 1}, kind="nugget", prompt="NuggetSelfRatedPrompt")
    sets = [nuggets, by("ada", {"q1/n": 4}, "nugget"), by("ada", {"q1/a": 5})]
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", sets)]]])
    found = [(row.iteration, row.relevance) for row in load_records(path, None, OVERRIDE).queries["q1"].rows()]
    assert found == [("q1/n", 4)]
    # Grades 0 and 1 by a key of answers are on another scale than the ratings of assessors.
    keyed = {**grade_set({"q1/a": 1, "q1/b": 0}), "self_ratings": None}
    sets = [keyed, by("ada", {"q1/a": 3, "q1/gone": 5})]
    path = write_lines(tmp_path / "k.jsonl", [["q1", [passage("q1", "d1", sets)]]])
    bank = load_bank(write_lines(tmp_path / "bank.jsonl", BANK))
    with pytest.raises(InputError, match="are on the scale 0-5:4:3, and others on 0-1:1; they are no grades of one"):
        load_records(path, bank, OVERRIDE)


def test_an_assessor_cannot_be_overridden() -> None:
    with pytest.raises(InputError, match="name the grader"):
        Grader(model="human:ada", assessors="override")
    assert list(check_records([], GradeSetSelector(OVERRIDE, "x"))) == []


def test_a_grade_of_unknown_words_goes_with_a_later_stale_one(tmp_path: Path) -> None:
    stale = {**by("ada", {"q1/a": 5}), "item_contents": {"q1/a": "of other words"}}
    items = {item.item_id: item for item in load_bank(write_lines(tmp_path / "b.jsonl", BANK)).items["q1"]}
    fresh = {**by("ada", {"q1/a": 3}), "item_contents": {"q1/a": item_content(items["q1/a"])}}

    def said(*entries: dict[str, Any]) -> tuple[dict[str, list[int]], int]:
        path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", list(entries))]]])
        found = grades_by_assessors(load_graded(path)[0].passages[0], None, items)
        return {item_id: list(grades) for item_id, grades in found.grades.items()}, found.stale

    unknown = by("ada", {"q1/a": 2})
    assert said(unknown, stale) == ({}, 1)
    assert said(stale, unknown) == ({"q1/a": [2]}, 0)
    assert said(fresh, stale) == ({"q1/a": [3]}, 0)
    assert said(stale, by("bob", {"q1/a": 4})) == ({"q1/a": [4]}, 1)


def _three(tmp_path: Path, name: str, *, replaced: bool = False) -> str:
    """Three runs, each with one of three passages on top; assessors turn the grader's order round, or already have."""
    grades = {"d1": 5, "d2": 3, "d3": 1}
    assessors = {"d1": [("ada", 1)], "d3": [("ada", 5), ("bob", 5)]}
    judgments = {"d1": 0, "d2": 2, "d3": 3}
    passages = []
    for n, (doc_id, grade) in enumerate(grades.items(), 1):
        given = assessors.get(doc_id, [])
        if replaced:
            sets = [grade_set({"q1/a": given[0][1] if given else grade})]
        else:
            sets = [grade_set({"q1/a": grade}), *(by(assessor, {"q1/a": other}) for assessor, other in given)]
        passages.append(passage("q1", doc_id, sets, {f"r{n}": 1}, judgments[doc_id]))
    return str(write_lines(tmp_path / name, [["q1", passages]]))


def test_correlations_and_agreement_with_assessors_in_the_graders_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("scipy")
    path, replaced = _three(tmp_path, "graded.jsonl"), _three(tmp_path, "replaced.jsonl", replaced=True)
    (tmp_path / "official.json").write_text('{"r1": 0.9, "r2": 0.5, "r3": 0.1}')
    correlate = ["correlate", str(tmp_path / "official.json")]
    asked = ["-m", "RubricQrels(measure='nDCG@1',rel=1)", "--coefficients", "kendall", "--rounds", "0"]
    found = {}
    for name, command in {
        "grader": [path, "--grader", "model"],
        "assessors": [path, "--grader", "assessors=override"],
        "replaced": [replaced],
    }.items():
        assert main([*correlate, *command, *asked, "--format", "json"]) == 0
        out, err = capsys.readouterr()
        (cell,) = json.loads(out)["grid"]
        assert err.count("2 grades by assessors stand in the grader's place") == (name == "assessors")
        assert main(["agreement", *command, "--cutoff", "3", "2", "--rounds", "0", "--format", "json"]) == 0
        out, err = capsys.readouterr()
        assert err.count("stand in the grader's place") == (name == "assessors")
        (judge,) = json.loads(out)["graders"]
        (cutoff,) = judge["cutoffs"]
        found[name] = (
            [one["value"] for one in cell["result"]["coefficients"]],
            pytest.approx(cutoff["kappa"]["estimate"]),
        )
    # nDCG@1 is the label over the highest: 1, 3/5, 1/5 by the grader, and the other way round by assessors.
    # Labels 5, 3, 1 and judgments 0, 2, 3: one in both, one in each alone; 1/3 agree, 5/9 by chance: -1/2.
    # Labels 1, 3, 5: all agree.
    assert found == {"grader": ([1.0], -0.5), "assessors": ([-1.0], 1.0), "replaced": ([-1.0], 1.0)}
    assert main([*correlate, correlate[1], "--grader", "assessors=override"]) == 2
    assert (
        "official.json: scores of runs, and grader is of a grid of graded records; leave it out"
        in capsys.readouterr().err
    )
    # Without the option each assessor is a grader with a leaderboard.
    assert main([*correlate, path, *asked, "--format", "json"]) in (0, 1)
    assert [cell["llm"] for cell in json.loads(capsys.readouterr().out)["grid"]] == ["human:ada", "human:bob", "model"]


def test_agreement_does_not_hold_a_source_to_itself(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = ["agreement", str(path), str(path), "--items", "--rounds", "0", "--format", "json"]
    qrels = tmp_path / "labels.qrels"
    qrels.write_text("q1 0 d1 1\nq1 0 d2 0\n")
    # One choice for both; another word for the same choice; a file that has no choice.
    for command in (
        [*same, "--grader", "model"],
        [*same, "--grader", "model", "--grader-b", "model=model,kind=question"],
        ["agreement", str(qrels), f"{qrels.parent}/./labels.qrels"],
    ):
        assert main(command) == 2
        assert "would be compared with itself; name another" in capsys.readouterr().err
    # The second choice is of the grader's own grades: 4 of them are others where assessors' stand in their place.
    assert main([*same, "--grader", "assessors=override", "--grader-b", "model"]) in (0, 1)
    out, err = capsys.readouterr()
    # Both have a and b of d1, a, b and c of d2; b of d1 and b and c of d2 are alike.
    (row,) = json.loads(out)["graders"]
    assert (row["documents"], row["statistics"]["exact_match"]["estimate"]) == (5, 3 / 5)
    # The grader's own grade of c of d1 failed.
    assert "left out of the pairs: 1 item grade by graded.jsonl only" in err
    assert "where no assessor graded, its grades are graded.jsonl model's own, so κ is too high" in err


def test_item_qrels_with_assessors_in_the_graders_place(path: Path, tmp_path: Path) -> None:
    output = tmp_path / "items.qrels"
    common = ["--bank", str(path.with_name("bank.jsonl")), "--grader", "assessors=override"]
    assert main(["qrels", "--per", "item", str(path), "-o", str(output), *common]) == 0
    rows = {(row.query_id, row.doc_id, row.iteration, row.relevance) for row in read_qrels(output)}
    assert {row for row in rows if row[1] != "*"} == EXPECTED


def test_a_stale_grade_does_not_stand_in_the_graders_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bank = load_bank(write_lines(tmp_path / "b.jsonl", BANK))
    contents = {item.item_id: item_content(item) for item in bank.items["q1"]}
    ada = {**by("ada", {"q1/a": 5, "q1/b": 5}), "item_contents": {**contents, "q1/a": "of other words"}}
    one = passage("q1", "d1", [grade_set({"q1/a": 0, "q1/b": 0}), ada])
    path = write_lines(tmp_path / "g.jsonl", [["q1", [one]]])
    assert matrices.cells(load_records(path, bank, OVERRIDE).queries["q1"]) == {"d1": {"q1/a": 0, "q1/b": 5}}
    said = "1 grade by assessors left out: it was given to other words or gold answers of their items than the "
    assert f"{path}: {said}bank has now; have them graded again" in caplog.messages
    # Without a bank nobody knows what the items say now.
    assert matrices.cells(load_records(path, None, OVERRIDE).queries["q1"]) == {"d1": {"q1/a": 5, "q1/b": 5}}


def test_a_query_without_items_has_no_score_in_any_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = passage("q1", "d1", [grade_set({"q1/a": 5, "q1/b": 0, "q1/c": 0, "q1/d": 5})], {"one": 1})
    second = passage("q2", "d2", [grade_set({"q2/a": 5})], {"one": 1, "two": 1})
    graded = str(write_lines(tmp_path / "g.jsonl", [["q1", [first]], ["q2", [second]]]))
    bank = str(write_lines(tmp_path / "b.jsonl", [BANK[0], *({**one, "items": []} for one in BANK[1:])]))
    (tmp_path / "one.run").write_text("q1 Q0 d1 1 1 one\nq2 Q0 d2 1 1 one\n")
    measures = [RubricCover(rel=4) @ 20, RubricQrels(measure="nDCG@10")]
    names = list(map(str, measures))
    said = "2 queries have no items, and so no score and no place in a mean (such as q2)"
    # one has a and d of q1's four items; q2 and q3 have no items.
    assert main(["leaderboard", graded, "--bank", bank, "-m", *names, "--format", "json", "--no-overall"]) == 0
    out = capsys.readouterr()
    rows = {row["run_id"]: row["measures"] for row in json.loads(out.out)["runs"]}
    assert {run: [rows[run][name]["mean"] for name in names] for run in rows} == {"one": [0.5, 1.0], "two": [0.0, 0.0]}
    assert out.err.count(said) == 1 and "not graded" not in out.err
    assert main(["evaluate", graded, str(tmp_path / "one.run"), *names, "-q", "--bank", bank]) == 0
    out = capsys.readouterr()
    assert {line.split("\t")[0] for line in out.out.splitlines()} == {"q1", "all"}
    assert out.err.count(said) == 1 and "not graded" not in out.err
    run = ir_measures.read_trec_run(str(tmp_path / "one.run"))
    found = ir_measures.calc_aggregate(measures, load_records(graded, load_bank(bank)), run)
    assert [found[measure] for measure in measures] == [0.5, 1.0]
