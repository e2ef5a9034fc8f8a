"""Tests of graded-records files in any order, either shape, packed or not, from standard input and from pipes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric_measures.records.models import load_graded
from tests.example_records import grade_set, passage, write_lines


def one_passage(query_id: str, doc_id: str, text: str = "") -> dict[str, Any]:
    return passage(query_id, doc_id, [grade_set({f"{query_id}/a": len(doc_id) % 6})]) | {"text": text or doc_id}


@st.composite
def files(draw: st.DrawFn) -> list[list[Any]]:
    """Lines of a file in any order and of both shapes."""
    lines: list[list[Any]] = []
    queries = draw(st.lists(st.sampled_from(["q1", "q2", "q 3", 'a"q\\4', "ü5"]), min_size=1, max_size=5, unique=True))
    for query_id in queries:
        docs = [f"d{number}" for number in range(draw(st.integers(1, 4)))]
        lines += [[query_id, one_passage(query_id, doc_id)] for doc_id in docs]
        more = [f"e{number}" for number in range(draw(st.integers(0, 3)))]
        if more:
            lines.append([query_id, [one_passage(query_id, doc_id) for doc_id in more]])
    return draw(st.permutations(lines))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(files(), st.booleans())
def test_scattered_queries_are_the_same_queries(tmp_path: Path, lines: list[list[Any]], packed: bool) -> None:
    path = write_lines(tmp_path / "g.jsonl", lines)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    expected: dict[str, dict[str, str]] = {}
    for query_id, found in lines:
        for one in found if isinstance(found, list) else [found]:
            expected.setdefault(query_id, {})[one["paragraph_id"]] = one["text"]
    groups = load_graded(path)
    assert [(group.query_id, [(one.doc_id, one.text) for one in group.passages]) for group in groups] == [
        (query_id, list(passages.items())) for query_id, passages in expected.items()
    ]
    together = write_lines(tmp_path / "t.jsonl", sorted(lines, key=lambda line: list(expected).index(line[0])))
    assert [group[:2] for group in load_graded(together)] == [group[:2] for group in groups]
