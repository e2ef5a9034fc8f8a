"""Tests of topics and length limits."""

import json
import os
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError, UnknownNameError
from rubric_measures.formats.queries import Limit, Topic, length_of, limit_for, read_topics, write_topics

SHARED = Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).parents[3] / "shared")) / "data"
ROWS = [
    {"request_id": "300", "title": "Ports", "problem_statement": "Why?", "limit": 2000, "collection_ids": ["c"]},
    {"qid": 7, "query": "who wrote it"},
]


def _write(folder: Path, rows: list[object]) -> Path:
    path = folder / "topics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_topics_are_the_same_after_writing(tmp_path: Path) -> None:
    topics = read_topics(_write(tmp_path, ROWS))
    assert [(topic.query_id, topic.text) for topic in topics] == [("300", "Ports"), ("7", "who wrote it")]
    write_topics(tmp_path / "again", topics)
    written = [json.loads(line) for line in (tmp_path / "again").read_text().splitlines()]
    assert written == [ROWS[0], {**ROWS[1], "qid": "7"}]


def test_the_topic_has_the_first_word_about_length() -> None:
    assert limit_for("rag24") == limit_for("rag25") == Limit(400, "words")
    assert limit_for("rag26") == Limit(1024, "words")
    assert limit_for("dragun") == Limit(250, "words")
    assert limit_for("ragtime") is None
    assert limit_for(None) is None
    assert limit_for("ragtime", Topic(request_id="1", title="t", limit=10)) == Limit(10, "characters")
    assert limit_for("rag24", Topic(request_id="1", title="t", word_limit=9)) == Limit(9, "words")
    assert limit_for("rag24", Topic(request_id="1", title="t")) == Limit(400, "words")
    with pytest.raises(UnknownNameError, match="unknown track 'rag2'"):
        limit_for("rag2")


def test_characters_are_counted_after_nfkc() -> None:
    # U+FB01 (the ligature fi) is two characters; "e" and the combining acute U+0301 are one.
    assert length_of("\ufb01", "characters") == 2
    assert length_of("e\u0301", "characters") == 1
    assert length_of(" a\u00a0b\nc ", "words") == 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], ": is empty"),
        ([{"title": "x"}], ":1: has no request_id or qid"),
        ([{"qid": "1"}], ":1: has no title or query"),
        ([{"qid": "1", "request_id": "2", "title": "x"}], ":1: request_id and qid differ"),
        ([{"qid": "1", "query": "x", "limit": 0}], ":1: limit: "),
        ([ROWS[0], ROWS[0]], ":2: '300' is already in line 1"),
    ],
)
def test_bad_topics_are_refused_with_file_and_line(tmp_path: Path, rows: list[object], message: str) -> None:
    path = _write(tmp_path, rows)
    with pytest.raises(FormatError) as error:
        read_topics(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_real_topics() -> None:
    if not (SHARED / "kiddie").is_dir():
        pytest.skip("the public data are not here")
    topics = read_topics(SHARED / "kiddie" / "kiddie-topics.jsonl")
    assert [topic.query_id for topic in topics][:2] == ["leaf", "cloud"]
    assert all(topic.problem_statement and topic.background for topic in topics)
