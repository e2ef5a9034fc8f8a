"""Tests of scoring one run against a stream of grades: what ir_measures gives with all grades at hand."""

from __future__ import annotations

from pathlib import Path

import ir_measures
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rubric_measures import NuggetV, RubricCover, RubricQrels
from rubric_measures.measures.findings import of_run
from rubric_measures.measures.grades import Grades
from rubric_measures.measures.loading import load_records
from rubric_measures.measures.provider import evaluate_run
from rubric_measures.types.entities import make_run
from tests.example_records import grade_set, passage, write_lines
from tests.strategies import Case, cases

MEASURES = [NuggetV(rel=3, partial_rel=1), RubricCover(rel=4) @ 2, RubricQrels(measure="nDCG@10")]


@settings(deadline=None, max_examples=30)
@given(st.lists(cases(), min_size=1, max_size=4))
def test_the_values_are_those_of_ir_measures(found: list[Case]) -> None:
    queries = {}
    rows = []
    for number, case in enumerate(found):
        query_id = f"q{number % 3}/{number}"
        one = case.compiled
        queries[query_id] = replace(one, query_id=query_id, scale=None)
        # A run that lacks the second query.
        if number != 1:
            rows += [(query_id, doc_id, -float(place)) for place, doc_id in enumerate(case.ranking)]
    rows.append(("nobody asked", "d1", 1.0))
    run = make_run("run", rows)
    evaluation = evaluate_run(list(queries.values())[::-1], run, MEASURES)
    expected = {
        (metric.query_id, str(metric.measure)): metric.value
        for metric in ir_measures.iter_calc(
            MEASURES, Grades(queries), [ir_measures.ScoredDoc(*row) for row in rows if row[0] in queries]
        )
    }
    # Ranked queries first, as the run has them; then those that it lacks.
    ranked = [query_id for query_id in run.rankings if query_id in queries]
    in_order = [*ranked, *sorted(set(queries) - set(ranked))]
    assert [(metric.query_id, metric.measure) for metric in evaluation.metrics] == [
        (query_id, measure) for query_id in in_order for measure in MEASURES
    ]
    assert {(metric.query_id, str(metric.measure)): metric.value for metric in evaluation.metrics} == expected
    assert {metric.query_id for metric in evaluation.metrics} == set(queries)


def test_counts_of_what_is_graded(tmp_path: Path) -> None:
    lines = [["q1", [passage("q1", "d1", [grade_set({"a": 4}, status={"b": "failed"})])]]]
    grades = load_records(write_lines(tmp_path / "g.jsonl", lines))
    run = make_run("run", [("q1", "d1", 2.0), ("q1", "d2", 1.0), ("q2", "d1", 1.0)])
    evaluation = evaluate_run(grades.queries.values(), run, [RubricCover(rel=4) @ 20], "expected")
    # Of the two documents ranked for q1, d1 is graded; one of its two grades failed, and counts as the other one.
    assert evaluation.failed == 1
    said = [note.text for note in of_run(run, grades.queries.values(), evaluation.measures)]
    assert said == [
        "1 query of run run is not graded and was left out (such as q2)",
        "1 of 2 ranked passages are graded",
    ]
    assert [metric.value for metric in evaluation.metrics] == [1.0]
    zero = evaluate_run(grades.queries.values(), run, [RubricCover(rel=4) @ 20], "zero")
    assert [metric.value for metric in zero.metrics] == [0.5]
