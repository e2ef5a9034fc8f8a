"""Tests of leaderboards: means, errors, coverage, missing queries, the best possible score, and every output."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import ir_measures
import pytest
from ir_measures import Qrel

import rubric_measures
from rubric_measures import RubricCover, RubricQrels, WeightedCover
from rubric_measures.api.files import check_board
from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.boards.board import Leaderboard
from rubric_measures.boards.kept import Gates
from rubric_measures.boards.scoring import cell_of, score_records, score_run_files, score_runs
from rubric_measures.boards.single import evaluate
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.measures.loading import load_records, read_records
from rubric_measures.types.entities import Best, Cell, Failures, Signature
from tests.example_records import grade_set, passage, write_all, write_lines

COVER = RubricCover(rel=4) @ 20
NDCG = RubricQrels(measure="nDCG@10")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_all(tmp_path)


def record_board(folder: Path, *measures: ir_measures.Measure) -> Leaderboard:
    bank = load_bank(folder / "bank.jsonl")
    return score_records(read_records(folder / "graded.jsonl.gz", bank), measures)


def run_board(folder: Path) -> Leaderboard:
    grades = load_records(folder / "graded.jsonl.gz", load_bank(folder / "bank.jsonl"))
    paths = [str(folder / "alpha.run"), str(folder / "beta.run")]
    (board,) = score_run_files([(grades, [COVER, NDCG])], paths)
    return board


def test_rankings_inside_the_records(folder: Path) -> None:
    board = record_board(folder, COVER)
    name = str(COVER)
    # q1: four items in the bank, one reaches a (4) and b (5): 2/4; two reaches b: 1/4. q2: 1/1 and nothing. q3: 0.
    assert board.values["one"][name] == {"q1": 0.5, "q2": 1.0, "q3": 0.0}
    assert board.values["two"][name] == {"q1": 0.25, "q2": 0.0, "q3": 0.0}
    assert board.best[name].per_query == {"q1": 0.5, "q2": 1.0, "q3": 0.0}
    assert {run_id: sorted(queries) for run_id, queries in board.missing.items()} == {
        "one": ["q3"],
        "two": ["q2", "q3"],
    }
    # one: mean 0.5, deviations 0, 0.5, -0.5: variance 0.5 / 2, standard error sqrt(0.25 / 3).
    # Needed: q1 2 passages x 4 items, q2 1 x 1; graded: 2 x 3 + 1.
    values = board.values["one"][name]
    error, share = pytest.approx(math.sqrt(0.25 / 3)), pytest.approx(7 / 9)
    assert board.cells["one"][name] == Cell(0.5, error, 3, share, 0, per_query=values)
    assert board.ranking() == ["one", "two"]
    assert board.is_complete


def test_run_files(folder: Path) -> None:
    alone = run_board(folder)
    # alpha ranks d9, which nobody graded, before d3; it still covers the item of q2.
    assert alone.values["alpha"][str(COVER)] == {"q1": 0.5, "q2": 1.0, "q3": 0.0}
    assert alone.values["beta"][str(COVER)] == {"q1": 0.25, "q2": 0.0, "q3": 0.0}
    assert alone.values["alpha"][str(NDCG)]["q2"] == pytest.approx(1 / math.log2(3))


def test_measures_that_skip_unjudged_passages_look_below_the_cutoff(folder: Path) -> None:
    # x and y were never graded; d2, which reaches 4 for one of the four items of q1, stands third.
    path = folder / "deep.run"
    path.write_text("q1 Q0 x 1 3 deep\nq1 Q0 y 2 2 deep\nq1 Q0 d2 3 1 deep\n")
    measures = [RubricCover(rel=4, judged_only=True) @ 1, RubricQrels(measure="P(judged_only=True)@1", rel=4)]
    bank = load_bank(folder / "bank.jsonl")
    (board,) = score_run_files([(load_records(folder / "graded.jsonl.gz", bank), measures)], [str(path)])
    assert [board.values["deep"][str(measure)]["q1"] for measure in measures] == [0.25, 1.0]


def test_two_runs_of_one_name_are_refused(folder: Path) -> None:
    grades = load_records(folder / "graded.jsonl.gz")
    with pytest.raises(InputError, match="two runs are called 'x'"):
        score_runs(grades, [("x", {}), ("x", {})], [COVER])
    with pytest.raises(InputError, match="no run"):
        score_runs(grades, [], [COVER])
    with pytest.raises(MeasureError, match="asked for twice"):
        score_runs(grades, [("x", {})], [COVER, COVER])


def test_records_without_rankings_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", [grade_set({"q1/a": 1})])]]])
    with pytest.raises(InputError, match="hold no ranking"):
        score_records(read_records(path), [COVER])


def test_a_failed_penalty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    items = [
        {"query_id": "q1", "question_id": f"q1/{i}", "question_text": i, "weight": w}
        for i, w in [("a", 2), ("b", -1), ("c", -1), ("d", 1)]
    ]
    bank = load_bank(write_lines(tmp_path / "b.jsonl", [{"query_id": "q1", "items": items}]))
    # One passage: the penalty b failed, c was graded, the positive item d failed. The other covers nothing.
    first = grade_set({"q1/a": 5, "q1/c": 0}, status={"q1/b": "unparsed", "q1/d": "unparsed"})
    second = grade_set({"q1/a": 0, "q1/b": 0, "q1/c": 0, "q1/d": 0})
    third = grade_set({"q1/a": 0, "q1/b": 4, "q1/c": 0, "q1/d": 0})
    passages = [
        passage("q1", "d1", [first], {"s": 1, "paid": 1}),
        passage("q1", "d2", [second], {"t": 1}),
        passage("q1", "d3", [third], {"paid": 2}),
    ]
    path = write_lines(tmp_path / "g.jsonl", [["q1", passages]])
    board = score_records(read_records(path, bank), [WeightedCover], on_failed="zero")
    # d counts as not covered; b costs nothing in s, and what it costs where d3 has it.
    assert [board.values[run]["WeightedCover(rel=4,partial_rel=3)"]["q1"] for run in ("s", "t", "paid")] == [
        2 / 3,
        0.0,
        1 / 3,
    ]
    board = score_records(read_records(path, bank), [RubricCover(rel=2) @ 5], on_failed="expected")
    assert (board.findings, caplog.messages) == ([], [])
    # By default a penalty that failed costs what the penalty c lets expect: nothing, as b has a share of 0.
    grades = load_records(path, bank, on_failed="expected")
    run = [ir_measures.ScoredDoc("q1", "d1", 1.0)]
    assert ir_measures.calc_aggregate([WeightedCover], grades, run) == {WeightedCover: 1.0}
    grades = load_records(path, bank, on_failed="zero")
    assert ir_measures.calc_aggregate([WeightedCover], grades, run) == {WeightedCover: 2 / 3}


def test_a_query_whose_grades_all_failed_is_left_out_and_makes_the_board_incomplete(tmp_path: Path) -> None:
    lines = [
        ["q1", [passage("q1", "d1", [grade_set({}, status={"q1/a": "unparsed"})], {"s": 1})]],
        ["q2", [passage("q2", "d1", [grade_set({"q2/a": 5})], {"s": 1})]],
    ]
    path = write_lines(tmp_path / "g.jsonl", lines)
    board = score_records(read_records(path), [COVER], on_failed="expected")
    assert board.values["s"] == {str(COVER): {"q1": None, "q2": 1.0}}
    # One of two needed grades failed, and its query with it: all of them as zero give .5, as the highest 1.
    failures = Failures(0.5, 1, 0.5, None, (0.5, 1.0))
    assert board.cells["s"][str(COVER)] == Cell(1.0, None, 1, 0.5, 1, failures, per_query={"q1": None, "q2": 1.0})
    assert not board.is_complete
    zero = score_records(read_records(path), [COVER], on_failed="zero")
    assert zero.values["s"] == {str(COVER): {"q1": 0.0, "q2": 1.0}}
    assert str(zero.signature) != str(board.signature)


def test_labels_and_subtopics_of_which_all_grades_failed_are_left_out_as_items_are(tmp_path: Path) -> None:
    failed = grade_set({}, status={"q1/a": "unparsed"})
    lines = [
        ["q1", [passage("q1", "d1", [failed], {"s": 1, "deep": 3}), passage("q1", "d2", [failed])]],
        ["q2", [passage("q2", "d1", [grade_set({"q2/a": 5})], {"s": 1, "deep": 1, "other": 1})]],
    ]
    path = write_lines(tmp_path / "g.jsonl", lines)
    names = [
        "RubricCover(rel=4)@2",
        "RubricQrels(measure='nDCG@2')",
        "RubricQrels(measure='RR',rel=4)@2",
        "RubricQrels(measure='P@2',label='count',rel=4)",
        "RubricQrels(measure='Judged@2')",
        "alpha_nDCG(rel=4)@2",
        "StRecall(rel=4)@2",
    ]
    measures = [ir_measures.parse_measure(name) for name in names]
    board = score_records(read_records(path), measures, on_failed="expected")
    for name in map(str, measures):
        # `deep` ranks the passage below the cutoff, and `other` none: they cover nothing, whatever its grades.
        assert [board.values[run][name]["q1"] for run in ("s", "deep", "other")] == [None, 0.0, 0.0], name
        assert board.cells["s"][name].queries == 1
    assert not board.best
    zero = score_records(read_records(path), measures, on_failed="zero")
    assert {column["q1"] for column in zero.values["s"].values()} == {0.0}
    # One label of two: the other passage leaves the ranking, or is one that nobody judged.
    lines[0][1][1] = passage("q1", "d2", [grade_set({"q1/a": 4})], {"s": 2})
    board = score_records(read_records(write_lines(path, lines)), measures[1:2], on_failed="expected")
    assert board.values["s"][str(measures[1])]["q1"] == 1.0
    board = score_records(read_records(path), measures[1:2], on_failed="zero")
    # (4 / log2 3) / 4
    assert board.values["s"][str(measures[1])]["q1"] == pytest.approx(1 / math.log2(3))


def test_the_best_possible_score_stays_for_the_measures_that_know_it(tmp_path: Path) -> None:
    items = [{"question_id": f"q/{name}", "question_text": name, "weight": w} for name, w in (("a", 3), ("b", -2))]
    bank = load_bank(write_lines(tmp_path / "bank.jsonl", [{"query_id": "q", "items": items}]))
    graded = write_lines(
        tmp_path / "g.jsonl", [["q", [passage("q", "d", [grade_set({"q/a": 5, "q/b": 5})], {"s": 1})]]]
    )
    # A penalty of 2 that is due: (3 - 2) / 3. What the best choice of passages is worth, nobody knows.
    measures = [RubricCover, WeightedCover]
    cover, weighted = "RubricCover(rel=4)", "WeightedCover(rel=4,partial_rel=3)"
    board = score_records(read_records(graded, bank), measures)
    assert {name: cell.mean for name, cell in board.cells["s"].items()} == {cover: 1.0, weighted: 1 / 3}
    assert board.best == {cover: Best(1.0, None, {"q": 1.0})}
    # Nothing is incomplete: no run lacks a value.
    assert board.is_complete
    said = f"the best possible score is not known by {weighted}: "
    assert [note.text[: len(said)] for note in board.findings] == [said]
    assert f"best possible: {cover} 1.0000 (all graded passages together)\n" in board.render("text")
    (tmp_path / "board.json").write_text(board.render("json"), encoding="utf-8")
    table = read_leaderboard(tmp_path / "board.json")
    assert (table.column(cover), table.measures) == ({"s": 1.0}, (cover, weighted))
    assert [row[1:4] for row in table.best] == [(cover, "q", 1.0), (cover, "all", 1.0)]
    board = score_records(read_records(graded, bank), [WeightedCover])
    assert not board.best and "best" not in json.loads(board.render("json"))


def test_a_run_without_a_score_stands_after_those_of_zero() -> None:
    cells = {run: {"V": cell_of({"q1": value})} for run, value in {"a": None, "b": 0.0, "c": 0.5}.items()}
    assert Leaderboard(["V"], cells, Signature({})).ranking() == ["c", "b", "a"]


def test_counts_are_sums_without_a_standard_error(folder: Path) -> None:
    names = ["NumRet", "NumRel(rel=1)", "NumRel(rel=5)", "NumQ"]
    board = record_board(folder, *(RubricQrels(measure=name) for name in names))
    # Of one: d1 and d2 (labels 4 and 5) of q1 and d3 (5) of q2. Of two: d2 of q1; q2 is not ranked, as in ir_measures.
    expected = {"one": [3.0, 3.0, 2.0, 2.0], "two": [1.0, 2.0, 1.0, 1.0]}
    for run_id, sums in expected.items():
        cells = [board.cells[run_id][str(RubricQrels(measure=name))] for name in names]
        assert [(cell.mean, cell.standard_error, cell.queries) for cell in cells] == [(one, None, 3) for one in sums]


def test_the_signature_tells_who_made_the_grades(tmp_path: Path) -> None:
    # The same model and prompt with other settings: the same grades, and another signature.
    texts = []
    for signature in ("aaa", "bbb", None):
        entry = grade_set({"q/1": 4}) | ({"provenance": {"signature": signature}} if signature else {})
        path = write_lines(tmp_path / f"{signature}.jsonl.gz", [["q", [passage("q", "d", [entry], {"one": 1})]]])
        board = score_records(read_records(path), [COVER], on_failed="expected")
        grades = load_records(path)
        assert grades.source.get("graders") == board.signature.settings.get("graders")
        texts.append(str(board.signature))
    assert ["graders:" in text for text in texts] == [True, True, False]
    assert len(set(texts)) == 3


@pytest.mark.parametrize("place", ["mean", "queries", "coverage"])
def test_true_is_no_1_in_a_board(place: str, tmp_path: Path) -> None:
    lines = [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5})], {"one": 1})]]]
    records, kept = write_lines(tmp_path / "g.jsonl", lines), tmp_path / "board.json"
    text = rubric_measures.score(records, measures=[COVER]).render("json")
    kept.write_text(re.sub(rf'"{place}": 1(\.0)?\b', f'"{place}": true', text, count=1))
    with pytest.raises(InputError, match=rf"board\.json: .*{place}: expected a .*number; found True"):
        check_board(kept, records)


def test_a_mean_is_proved_to_its_last_place_and_passes_a_limit_that_it_equals(tmp_path: Path) -> None:
    lines = [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5, "q1/b": 0})], {"one": 1})]]]
    records, kept = write_lines(tmp_path / "g.jsonl", lines), tmp_path / "board.json"
    board = rubric_measures.score(records, measures=[COVER])
    kept.write_text(board.render("json"))
    assert not check_board(kept, records).differences
    kept.write_text(kept.read_text().replace('"mean": 0.5', '"mean": 0.5001'))
    said = check_board(kept, records).differences
    assert said and all("0.5001" in line for line in said)
    assert [len(Gates({str(COVER): least}).failed(board)) for least in (0.5, 0.5001)] == [0, 1]


def test_item_measures_over_labels_say_that_there_are_no_item_grades(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rubric_measures.cli import main

    (tmp_path / "qrels.txt").write_text("q1 0 d1 3\nq1 0 d2 0\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2 a\n")
    for measure in ("RubricCover@5", "NuggetA", "alpha_nDCG@5"):
        assert main(["leaderboard", str(tmp_path / "qrels.txt"), str(tmp_path / "a.run"), "-m", measure]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "no item grades here, query 'q1' has one label a passage" in err


LEVELS_ABOVE = [
    "RubricCover(rel=3)@5",
    "nRubricCover(rel=3)@5",
    "NuggetA(rel=3)",
    "NuggetA(partial_rel=3)",
    "RubricQrels(measure='P@5',rel=3)",
    "RubricQrels(measure='P(rel=3)@5')",
    "RubricQrels(measure='nDCG@5',label='count',rel=3)",
    "alpha_nDCG(rel=3)@5",
]


@pytest.mark.parametrize("measure", LEVELS_ABOVE)
def test_a_level_that_no_grade_of_the_scale_reaches_is_refused(
    measure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rubric_measures.cli import main

    (tmp_path / "items.qrels").write_text("q1 a d1 2\nq1 b d1 0\nq2 a d1 2\nq2 b d1 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2 a\nq2 Q0 d1 1 2 a\n")
    grades, run = str(tmp_path / "items.qrels"), str(tmp_path / "a.run")
    for command in (["leaderboard", grades, run, "-m", measure], ["evaluate", grades, run, measure]):
        capsys.readouterr()
        assert main([*command, "--grader", "scale=0-2:2"]) == 2
        said = capsys.readouterr().err
        assert f"{measure}: no grade of the scale 0 to 2 is 3 or more; give a level of up to 2" in said
        assert said.count("\n") == 1
        # The highest and the lowest level are levels.
        assert main([*(text.replace("rel=3", "rel=2") for text in command), "--grader", "scale=0-2:2"]) == 0
        assert main([*(text.replace("rel=3", "rel=1") for text in command), "--grader", "scale=0-2:2"]) == 0
    known = rubric_measures.load(grades, grader="scale=0-2:2")
    with pytest.raises(MeasureError, match="no grade of the scale 0 to 2 is 3 or more"):
        ir_measures.calc_aggregate([ir_measures.parse_measure(measure)], known, {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}})


def test_labels_that_count_items_may_be_above_the_scale(tmp_path: Path) -> None:
    (tmp_path / "items.qrels").write_text("q1 a d1 1\nq1 b d1 1\nq1 c d1 1\n")
    grades = rubric_measures.load(str(tmp_path / "items.qrels"), grader="scale=0-1")
    measure = "RubricQrels(measure='P(rel=3)@1',label='count',rel=1)"
    board = rubric_measures.score(grades, {"a": {"q1": {"d1": 1.0}}}, measure, overall=False)
    assert board.cells["a"][measure].mean == 1.0


@pytest.mark.parametrize(
    "name", ["RubricCover(rel=4)@5", "alpha_nDCG@5", "RubricQrels(measure='nDCG@5')", "nDCG@5", "AP"]
)
def test_a_mean_is_that_of_ir_measures_to_the_last_digit(name: str, tmp_path: Path) -> None:
    draw = random.Random(name)
    is_standard = name in ("nDCG@5", "AP")
    items = ["Q0"] if is_standard else ["a", "b", "c"]
    grades = [
        Qrel(f"q{query}", f"d{doc}", draw.randint(0, 5), item)
        for query in range(60)
        for doc in range(7)
        for item in items
    ]
    (tmp_path / "qrels").write_text("".join(f"{row[0]} {row[3]} {row[1]} {row[2]}\n" for row in grades))
    queries = [f"q{query}" for query in range(70) if query % 9]
    draw.shuffle(queries)
    ranked = [(query, doc, draw.random()) for query in queries for doc in draw.sample(range(9), 5)]
    (tmp_path / "a.run").write_text("".join(f"{query} Q0 d{doc} 1 {score} a\n" for query, doc, score in ranked))
    path, run = str(tmp_path / "qrels"), str(tmp_path / "a.run")
    known = rubric_measures.load(path, grader="scale=0-5:4")
    measure = ir_measures.parse_measure(name)
    board = rubric_measures.score(known, run, name, overall=False)
    values = evaluate(path, run, name, grader=None if is_standard else "scale=0-5:4")
    [cell] = board.cells["a"].values()
    given = [cell.mean, *values.means.values()]
    rows = ir_measures.read_trec_qrels(path) if is_standard else known
    given.append(ir_measures.calc_aggregate([measure], rows, ir_measures.read_trec_run(run))[measure])
    assert given == [given[0]] * 3
