"""Tests of the provider of ir_measures, and of one run that is scored against a stream of grades."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest
from ir_measures import Qrel, ScoredDoc, nDCG

from rubric_measures import Grade, NuggetV, RubricCover, RubricItem, RubricQrels
from rubric_measures.base.errors import InputError, MeasureError, UnknownNameError
from rubric_measures.boards.single import evaluate
from rubric_measures.measures.loading import load_records
from rubric_measures.measures.qrels import build_grades
from rubric_measures.types.entities import make_run
from tests.example_records import bank_from_items, grade_set, passage, write_lines

ROWS = [
    Qrel("q1", "d1", 4, "q1/a"),
    Qrel("q1", "d1", 1, "q1/b"),
    Qrel("q1", "d2", 5, "q1/b"),
    Qrel("q2", "d1", 3, "q2/a"),
]
RUN = [ScoredDoc("q2", "d1", 0.5), ScoredDoc("q1", "d2", 1.0), ScoredDoc("q2", "d9", 0.7), ScoredDoc("q1", "d1", 2.0)]
BANK = bank_from_items(
    [
        RubricItem(f"{q}/{i}", q, f"{q}{i}", importance="vital" if i == "a" else "okay")
        for q, i in [("q1", "a"), ("q1", "b"), ("q1", "c"), ("q1", "d"), ("q2", "a"), ("q3", "a")]
    ]
)
# Without a bank the items are those graded: q1 2/2 at rel 1, q2 1/1. With it: q1 2/4, q2 1/1, q3 0/1.
COVER = RubricCover(rel=1) @ 20


@pytest.mark.parametrize(
    "text",
    [
        "RubricCover(rel=4)@20",
        "RubricCover",
        "nRubricCover(rel=2)@5",
        "NuggetV(strict=True)",
        "NuggetW(rel=4,partial_rel=2)@1",
        "NuggetA(judged_only=True)",
        "WeightedCover(clip=True)",
        "RubricQrels(measure='nDCG@10',label='count',rel=3)",
        "RubricQrels(measure='AP',rel=3)",
        "RubricQrels(measure='nDCG')@10",
    ],
)
def test_parsing_and_printing_are_inverse(text: str) -> None:
    assert str(RubricQrels(measure=nDCG @ 10)) == "RubricQrels(measure='nDCG@10')"
    measure = ir_measures.parse_measure(text)
    assert str(measure) == text
    assert ir_measures.parse_measure(str(measure)) == measure
    assert hash(ir_measures.parse_measure(text)) == hash(measure)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RubricCover(rel=4.5)", "rel=4.5; expected int"),
        ("RubricCover(rel=True)", "rel=True; expected int"),
        ("RubricCover(level=4)", "no parameter 'level'; RubricCover has the parameters rel, cutoff"),
        ("RubricCover@0", "cutoff=0; expected 1 or more"),
        ("NuggetV(rel=1,partial_rel=2)", "partial_rel=2 is above rel=1"),
        ("NuggetV(strict=1)", "strict=1; expected bool"),
    ],
)
def test_wrong_parameters_are_refused_when_parsing(text: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        ir_measures.parse_measure(text)


def test_named_tuples_frames_and_grades_give_the_same() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    run_frame = pandas.DataFrame(RUN)
    as_grades = [Grade(*row) for row in ROWS]
    without_bank = {COVER: pytest.approx((2 / 2 + 1 / 1) / 2)}
    runs = [RUN, run_frame, {"q1": {"d2": 1.0, "d1": 2.0}, "q2": {"d1": 0.5, "d9": 0.7}}]
    for qrels in (ROWS, frame, as_grades, build_grades(ROWS)):
        for run in runs:
            assert ir_measures.calc_aggregate([COVER], qrels, run) == without_bank
    assert ir_measures.calc_aggregate([COVER], iter(ROWS), iter(RUN)) == without_bank
    assert ir_measures.calc_aggregate([COVER], build_grades(ROWS, BANK).to_dataframe(), run_frame) == {
        COVER: pytest.approx((2 / 4 + 1 + 0) / 3)
    }


def test_mixed_with_standard_measures_each_keeps_its_queries() -> None:
    grades = build_grades(ROWS, BANK)
    measures = [COVER, nDCG @ 10, RubricQrels(measure="nDCG@10"), ir_measures.alpha_nDCG @ 10, ir_measures.Judged @ 2]
    values = ir_measures.calc_aggregate(measures, grades, RUN)
    # nDCG@10 over labels q1: d1=4, d2=5; q2: d1=3 at rank 2. Its queries are the judged ones: q1, q2.
    log3 = 1.5849625007211562
    q1, q2 = (4 + 5 / log3) / (5 + 4 / log3), (3 / log3) / 3
    assert values[nDCG @ 10] == pytest.approx((q1 + q2) / 2)
    # Ours average over the bank's queries, as trec_eval -c does for missing queries.
    assert values[RubricQrels(measure="nDCG@10")] == pytest.approx((q1 + q2) / 3)
    assert values[COVER] == pytest.approx(0.5)
    assert values[ir_measures.Judged @ 2] == pytest.approx((1 + 0.5) / 2)
    assert set(values) == set(measures)


def _views() -> dict[str, object]:
    """What carries items: each is judgments to ir_measures."""
    grades = build_grades(ROWS, BANK)
    return {"grades": grades, "frame": grades.to_dataframe()}


@pytest.mark.parametrize("view", ["grades", "frame"])
@pytest.mark.parametrize("together", [False, True])
def test_measures_of_define_read_labels(view: str, together: bool) -> None:
    pytest.importorskip("pandas")
    gain = ir_measures.define_byquery(
        lambda qrels, run: float(qrels.merge(run, on=["query_id", "doc_id"])["relevance"].sum()), "Gain"
    )
    judged = ir_measures.define(lambda qrels, run: qrels.groupby("query_id").size().items(), "Judged")
    # Labels of q1: d1 4, d2 5, both in the cutoff; of q2: d1 3 at rank 2.
    expected = {gain @ 1: (4 + 0) / 2, gain @ 5: (9 + 3) / 2, judged: (2 + 1) / 2}
    more = {COVER: pytest.approx(0.5)} if together else {}
    assert ir_measures.calc_aggregate([*expected, *more], _views()[view], RUN) == {**expected, **more}


def test_the_pipeline_of_ir_measures_is_not_patched() -> None:
    assert "_evaluator" not in vars(ir_measures.DefaultPipeline)
    labels = [Qrel("q1", "d1", 4), Qrel("q1", "d2", 5)]
    # Judgments without items: what is computed is what the other providers compute.
    assert isinstance(ir_measures.evaluator([nDCG @ 10], labels), type(ir_measures.pytrec_eval.evaluator([nDCG], [])))
    subtopics = [Qrel("q1", "d1", 1, "a"), Qrel("q1", "d2", 1, "b"), Qrel("q1", "d3", 1, "b")]
    tied = [ScoredDoc("q1", doc_id, 1.0) for doc_id in ("d2", "d3", "d1", "d0")]
    measures = [ir_measures.alpha_nDCG @ 3]
    if ir_measures.pyndeval.is_available():
        theirs = ir_measures.pyndeval.calc_aggregate(measures, subtopics, tied)
        assert ir_measures.calc_aggregate(measures, subtopics, tied) == theirs
    with pytest.raises(ValueError, match="Unsupported measures"):
        ir_measures.evaluator([ir_measures.RR(judged_only=True) @ 5], labels)


def test_a_standard_measure_over_rows_of_items_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    # The grades of d1 are 0 and 5; the program behind nDCG reads the last row.
    rows = [Qrel("q1", "d1", 5, "a"), Qrel("q1", "d1", 0, "b"), Qrel("q1", "d2", 1, "a")]
    run = [ScoredDoc("q1", "d1", 2.0), ScoredDoc("q1", "d2", 1.0)]
    assert ir_measures.calc_aggregate([ir_measures.RR], rows, run) == {ir_measures.RR: 0.5}
    assert "RR: these qrels have several rows a document, of which one counts" in caplog.text
    caplog.clear()
    assert ir_measures.calc_aggregate([ir_measures.RR], build_grades(rows), run) == {ir_measures.RR: 1.0}
    assert caplog.text == ""


def test_bad_input_is_refused() -> None:
    with pytest.raises(MeasureError, match="nested dict"):
        ir_measures.calc_aggregate([COVER], {"q1": {"d1": 3}}, RUN)
    # Python reads the texts as 20 and 3.
    for score in (float("nan"), "2_0", "\u0663"):
        with pytest.raises(InputError, match=f"score {score!r} is no number"):
            ir_measures.calc_aggregate([COVER], ROWS, [ScoredDoc("q1", "d1", score)])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="occurs twice"):
        ir_measures.calc_aggregate([COVER], ROWS, [RUN[0], RUN[0]])
    with pytest.raises(InputError, match="two different grades"):
        build_grades([ROWS[0], ROWS[0]._replace(relevance=2)])
    for grade in ("1", float("nan"), float("inf")):
        with pytest.raises(InputError, match="is not a number"):
            build_grades([Qrel("q1", "d1", grade, "q1/a")])  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no such query"):
        build_grades([Qrel("q7", "d1", 1, "q7/a")], BANK)


def test_items_that_the_bank_lacks_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    grades = build_grades([*ROWS, Qrel("q1", "d1", 5, "q1/retired"), Qrel("q1", "d2", 5, "q1/retired")], BANK)
    assert caplog.messages == ["2 grades left out: their 1 item is not in the test bank (such as q1/retired)"]
    assert COVER.calc_aggregate(grades, RUN) == pytest.approx(0.5)


def test_failed_grades_of_a_frame_or_a_list() -> None:
    rows = [Grade("q1", "d1", 4, "q1/a"), Grade("q1", "d1", None, "q1/b", status="unparsed")]
    run = [ScoredDoc("q1", "d1", 1.0)]
    assert COVER.calc_aggregate(build_grades(rows, on_failed="expected"), run) == 1.0
    assert COVER.calc_aggregate(build_grades(rows, on_failed="zero"), run) == 0.5
    with pytest.raises(MeasureError, match="nothing to score"):
        COVER.calc_aggregate(build_grades(rows[1:], on_failed="expected"), run)
    with pytest.raises(MeasureError, match="50 % of the grades"):
        COVER.calc_aggregate(build_grades(rows), run)


def test_pyterrier_experiment() -> None:
    pandas = pytest.importorskip("pandas")
    pt = pytest.importorskip("pyterrier")
    ours = {"query_id": "qid", "doc_id": "docno", "relevance": "label"}
    results = pandas.DataFrame(RUN).rename(columns=ours).assign(rank=range(len(RUN)))
    topics = pandas.DataFrame([("q1", "one"), ("q2", "two")], columns=["qid", "query"])
    qrels = build_grades(ROWS, BANK).to_dataframe().rename(columns=ours)
    measures = [COVER, RubricQrels(measure="AP", rel=4), NuggetV(rel=4, strict=True)]
    table = pt.Experiment([results], topics, qrels, measures, names=["run"], filter_by_topics=True)
    assert table["name"].tolist() == ["run"]
    # The topics are q1 and q2: Cover 2/4 and 1/1, although PyTerrier joins the frame with the topics.
    assert table[str(COVER)].tolist() == [pytest.approx(0.75)]
    # AP(rel=4): q1 has d1 and d2 at ranks 1 and 2: 1; q2 has none.
    assert table[str(measures[1])].tolist() == [pytest.approx(0.5)]
    # The one vital nugget of q1 has grade 4, that of q2 grade 3.
    assert table[str(measures[2])].tolist() == [pytest.approx(0.5)]
    everything = pt.Experiment([results], topics, qrels, measures, names=["run"], filter_by_topics=False)
    assert everything[str(COVER)].tolist() == [pytest.approx(0.5)]


@pytest.mark.parametrize("score", [None, [1.0], float("nan"), 10**400])
def test_scores_that_are_no_numbers_are_refused(score: object) -> None:
    for run in ([ScoredDoc("q1", "d2", 1.0), ScoredDoc("q1", "d1", score)], {"q1": {"d2": 1.0, "d1": score}}):
        with pytest.raises(InputError, match=r"is no (run|number)"):
            ir_measures.calc_aggregate([COVER], ROWS, run)


def test_a_run_without_rows_ranks_nothing() -> None:
    assert ir_measures.calc_aggregate([COVER], ROWS, []) == {COVER: 0.0}


def test_counts_of_what_is_graded(tmp_path: Path) -> None:
    lines = [["q1", [passage("q1", "d1", [grade_set({"a": 4}, status={"b": "failed"})])]]]
    path = write_lines(tmp_path / "g.jsonl", lines)
    grades = load_records(path, on_failed="expected")
    run = make_run("run", [("q1", "d1", 2.0), ("q1", "d2", 1.0), ("q2", "d1", 1.0)])
    evaluation = evaluate(grades, run, "RubricCover(rel=4)@20")
    # Of the two documents ranked for q1, d1 is graded; one of its two grades failed, and counts as the other one.
    assert evaluation.failed == 1
    assert [note.text for note in evaluation.notes] == [
        "1 query of run run is not graded and was left out (such as q2)",
        "up to 1 grade that a score needed failed (25.0 % of what RubricCover(rel=4)@20 needs of run run): many; read "
        "the bounds of the scores",
        "grades exist for 25.0 % of what RubricCover(rel=4)@20 needs of run run, the least covered; the items are "
        "those that occur there, as no test bank was given",
    ]
    assert [metric.value for metric in evaluation.metrics] == [1.0]
    zero = evaluate(load_records(path, on_failed="zero"), run, "RubricCover(rel=4)@20")
    assert [metric.value for metric in zero.metrics] == [0.5]
