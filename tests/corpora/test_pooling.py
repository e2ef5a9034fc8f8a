"""Tests of pooling: depth, rankings, judgments, shared answers, missing documents."""

from __future__ import annotations

import gzip
import io
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.corpora.pooling import pool
from rubric_measures.formats.answers import Answer
from rubric_measures.records.models import QueryPassages, load_graded, write_graded
from rubric_measures.types.entities import Qrel, make_run

TEXTS = {"d1": "one", "d2": "two", "d3": "three", "d4": "four"}
BM25 = make_run("bm25", [("q1", "d1", 3.0), ("q1", "d2", 2.0), ("q1", "d3", 1.0), ("q2", "d1", 1.0)])
DENSE = make_run("dense", [("q1", "d2", 0.9), ("q1", "d1", 0.8), ("q1", "d4", 0.7)])


def places(group: QueryPassages) -> dict[str, list[tuple[str, int, float]]]:
    return {
        passage.doc_id: [(place.method, place.rank, place.score) for place in passage.rankings]
        for passage in group.passages
    }


def test_depth_rankings_and_order() -> None:
    groups = list(pool([DENSE, BM25], TEXTS, depth=2))
    # d1 and d2 are both first in one run: then the id decides. d3 and d4 are third.
    assert [(group.query_id, places(group)) for group in groups] == [
        ("q1", {"d1": [("bm25", 1, 3.0), ("dense", 2, 0.8)], "d2": [("bm25", 2, 2.0), ("dense", 1, 0.9)]}),
        ("q2", {"d1": [("bm25", 1, 1.0)]}),
    ]
    assert groups == list(pool([BM25, DENSE], TEXTS, depth=2))
    assert [passage.text for passage in groups[0].passages] == ["one", "two"]


def test_judgments_stay_with_the_pool_or_extend_it() -> None:
    judgments = [Qrel("q1", "d2", 3), Qrel("q1", "d3", 0), Qrel("q3", "d4", 2)]
    (first, _) = pool([BM25], TEXTS, depth=2, judgments=judgments)
    assert [[one.relevance for one in passage.judgments] for passage in first.passages] == [[], [3]]
    # The workbench wants a title: the query's text, or its id where nobody knows one.
    assert [one.title_query for one in first.passages[1].judgments] == ["q1"]
    for queries, title in (({"q1": "What is tea?"}, "What is tea?"), ({"q1": ""}, "q1"), (["q1"], "q1")):
        (first,) = pool([BM25], TEXTS, depth=2, judgments=judgments, queries=queries)
        assert [one.title_query for one in first.passages[1].judgments] == [title]
    groups = list(pool([BM25], TEXTS, depth=2, judgments=judgments, judged=True))
    assert [(group.query_id, [passage.doc_id for passage in group.passages]) for group in groups] == [
        ("q1", ["d1", "d2", "d3"]),
        ("q2", ["d1"]),
        ("q3", ["d4"]),
    ]


def test_answers_become_passages() -> None:
    answers = [Answer("q1", "gpt", "A b. C d."), Answer("q1", "bard", "C d. E f."), Answer("q1", "again", "A b. A b.")]
    (group,) = pool(answers, max_words=2)
    # "A b." is said by again (twice: once is enough) and gpt; the id is that of the run whose name sorts first.
    assert places(group) == {
        "again/q1/1": [("again", 1, 1.0), ("gpt", 1, 1.0)],
        "bard/q1/1": [("bard", 1, 1.0), ("gpt", 2, 0.5)],
        "bard/q1/2": [("bard", 2, 0.5)],
    }
    assert [passage.text for passage in group.passages] == ["A b.", "C d.", "E f."]
    assert [group] == list(pool(answers[::-1], max_words=2))


def test_parts_that_an_answer_repeats_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    answers = [Answer("q1", "again", "A b. A b. C d. A b."), Answer("q2", "again", "A b."), Answer("q1", "gpt", "A b.")]
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        groups = list(pool(answers, max_words=2))
    assert places(groups[0]) == {
        "again/q1/1": [("again", 1, 1.0), ("gpt", 1, 1.0)],
        "again/q1/3": [("again", 3, 1 / 3)],
    }
    assert [record.getMessage() for record in caplog.records if "repeat" in record.getMessage()] == [
        "2 parts of answers repeat an earlier part of the same answer; only the first is ranked (such as part 2 of run "
        "again for query q1)"
    ]


def test_queries_choose_and_order(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        groups = list(pool([BM25], TEXTS, depth=1, queries=["q9", "q2"]))
    assert [group.query_id for group in groups] == ["q2"]
    assert caplog.messages == [
        "unknown and left out: 1 query of the runs (such as q1)",
        "1 of 2 queries has no passages",
    ]


def test_missing_documents(caplog: pytest.LogCaptureFixture) -> None:
    texts = {"d1": "one"}
    with pytest.raises(InputError, match=r"'q1': 2 of 3 pooled documents \(such as d2\) are not in the collection"):
        list(pool([BM25], texts, depth=3))
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        groups = list(pool([BM25], texts, depth=3, missing="skip"))
    assert [[passage.doc_id for passage in group.passages] for group in groups] == [["d1"], ["d1"]]
    assert caplog.messages == ["2 pooled documents are not in the collection and are left out (such as d2)"]


def test_what_cannot_be_pool() -> None:
    with pytest.raises(InputError, match="depth 0 is empty"):
        pool([BM25], TEXTS, depth=0)
    with pytest.raises(InputError, match="two runs are called 'bm25'"):
        pool([BM25, BM25], TEXTS, depth=5)
    with pytest.raises(InputError, match="two runs are called 'bm25'"):
        pool([BM25, Answer("q1", "bm25", "A.")], TEXTS, depth=5)
    with pytest.raises(InputError, match="need a collection"):
        pool([BM25], depth=5)
    with pytest.raises(InputError, match="the pool is empty"):
        pool([BM25], TEXTS, depth=5, queries=["q7"])
    with pytest.raises(InputError, match="'d1' has two judgments for query 'q1'"):
        pool([BM25], TEXTS, depth=5, judgments=[Qrel("q1", "d1", 1, "a"), Qrel("q1", "d1", 0, "b")])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small collection."""
    root = tmp_path / "made"
    (root / "runs").mkdir(parents=True)
    (root / "answers").mkdir()
    lines = [json.dumps({"doc_id": doc_id, "text": text}) for doc_id, text in TEXTS.items()]
    (root / "docs.jsonl").write_text("\n".join(lines) + "\n")
    (root / "queries.tsv").write_text("q1\tfirst query\nq2\tsecond query\n")
    (root / "qrels.txt").write_text("q1 0 d1 2\nq1 0 d4 0\n")
    (root / "runs" / "bm25.run").write_text("q1 Q0 d1 1 2.0 bm25\nq1 Q0 d2 2 1.0 bm25\nq2 Q0 d3 1 1.0 bm25\n")
    report = {"metadata": {"run_id": "gpt", "topic_id": "q1"}, "answer": [{"text": "An answer."}]}
    (root / "answers" / "gpt.jsonl").write_text(json.dumps(report) + "\n")
    return root


def test_the_command_takes_files(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.jsonl"
    run, answers = folder / "runs" / "bm25.run", folder / "answers" / "gpt.jsonl"
    arguments = ["pool", str(run), str(answers), "-c", str(folder / "docs.jsonl"), "-k", "1", "-o", str(out)]
    assert (
        main([*arguments, "--judgments", str(folder / "qrels.txt"), "--query-file", str(folder / "queries.tsv")]) == 0
    )
    assert [list(places(group)) for group in load_graded(out)] == [["d1", "gpt/q1/1"], ["d3"]]
    assert main(["pool", str(answers), "-o", str(out)]) == 0
    assert [list(places(group)) for group in load_graded(out)] == [["gpt/q1/1"]]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_run_on_standard_input(
    folder: Path, tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = io.BytesIO(pack((folder / "runs" / "bm25.run").read_bytes()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(data)))
    assert main(["pool", "-", "-c", str(folder), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert [list(places(group)) for group in load_graded(tmp_path / "out.jsonl")] == [["d1", "d2"], ["d3"]]


def test_records_are_a_collection_of_texts(folder: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    write_graded(records, pool([BM25], TEXTS, depth=3))
    run = tmp_path / "x.run"
    run.write_text("q1 Q0 d3 1 2.0 x\n")
    assert main(["pool", str(run), "-c", str(records), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert [passage.text for group in load_graded(tmp_path / "out.jsonl") for passage in group.passages] == ["three"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("docs.jsonl", ""),
        ("docs.jsonl", '{"doc_id": "d1"'),
        ("docs.jsonl", '{"doc_id": "d1", "text": {}}\n'),
        ("docs.jsonl", '{"doc_id": "d1", "text": "a"}\n{"doc_id": "d1", "text": "b"}\n'),
        ("docs.jsonl.gz", "\x1f\x8b\x08\x00"),
        ("queries.tsv", "q1 no tab\n"),
        ("qrels.txt", "q1 0 d1 high\n"),
        ("answers/gpt.jsonl", "{}\n"),
    ],
)
def test_bad_collections_are_one_line_and_leave_nothing(
    folder: Path, tmp_path: Path, file: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if file.endswith(".gz"):
        (folder / "docs.jsonl").unlink()
    (folder / file).write_bytes(content.encode("latin-1"))
    before = sorted(tmp_path.rglob("*"))
    assert main(["pool", "-c", str(folder), "-o", str(tmp_path / "out.jsonl.gz")]) == 2
    *notes, line = capsys.readouterr().err.splitlines()
    assert all(note.startswith("rubric_measures: warning: ") for note in notes) and Path(file).name in line
    assert sorted(tmp_path.rglob("*")) == before
