"""What holds of every format: it is told, written as it was read, and damaged files are refused in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import open_binary
from rubric_measures.formats import FORMATS, detect_format
from rubric_measures.formats.queries import QueryFile
from tests.shared_data import shared_data

CRITERION = {"text": "Names it.", "type": "explicit", "tier": "optional", "weight": 2, "source_nugget": None}
REPORT: dict[str, Any] = {"metadata": {"run_id": "r", "topic_id": "1", "own": 1.50}, "references": ["d"], "x": [None]}
ITEM = {"query_id": "q1", "question_id": "q1/x", "question_text": "Why?", "gold_answers": ["é"], "weight": -2}
NUGGET = {"nugget_id": "q1/T/y", "nugget_text": "It is.", "info": {"by": "ada"}, "importance": "vital", "mine": [1]}
ASKED = {"question": "Who?", "answers": [{"answer": "Ada", "references": ["d1"]}], "aggregator_type": "AND"}
SUPPORTED = {"text": "One.", "citations": [{"citationID": 0, "reference": "d", "support": "2"}], "sentenceId": 0}
SUPPORT = {
    "task_id": "x:t:s0:c0", "statement": "One.", "citation": "…", "support_label": "FS", "raw_output": "FS",
    "status": "completed", "error": None,
    "metadata": {"topic_id": "t", "run_id": "x", "sentence_index": 0, "citation_index": 0, "docid": "d"},
}  # fmt: skip
# Format -> lines of a file, as it is written: texts, or objects.
LINES: dict[str, list[Any]] = {
    "run": ["q1 Q0 d1 1 3.5 sys", "q1 Q0 d2 2 2.0 sys", "q2 Q0 é%20 1 0.001 sys"],
    "qrels": ["q1 0 a 1", "q1 0 b -2", "q2 0 a 0.5"],
    "item-qrels": ["q1 q1/x a 1", "q1 q1/y a 3", "q2 q2/x b 0"],
    "ragelo:queries": ["qid,query", '1,"Why, then?"', '"2","=1"'],
    "ragelo:documents": ["qid,did,document", "2,d1,One", '1,d1,"a ""b"""'],
    "ragelo:answers": ["qid,agent,answer", "1,x,Yes", "1,y,"],
    "ragelo:games": ["qid,agent_a,agent_b,raw_answer,answer", "1,x,y,So [[A]],A", "1,y,x,So,"],
    "ragdoll:support": [SUPPORT, SUPPORT | {"metadata": SUPPORT["metadata"] | {"run_id": "y"}, "more": {}}],  # type: ignore[operator]
    "ragdoll:rubric": [{"task_id": "q1", "status": "completed", "qid": "q1", "query": "Q", "criteria": [CRITERION]}],
    "ragdoll:graded": [
        {"task_id": "x:q1", "status": "completed", "qid": "q1", "run_id": "x", "query": "Q", "answer_text": "A",
         "response_length": 1.0, "criteria": [CRITERION | {"verdict": "satisfied", "more": 1}], "usage": {"t": 7}},
    ],
    "assignments": [
        {"qid": 7, "run_id": "r", "nuggets": [{"text": "a", "importance": " Okey ", "assignment": "Partial Support"}]},
        {"qid": "1", "run_id": "a", "nuggets": [{"text": "b", "assignment": "failed", "why": 1}], "own": [1, 2.5]},
    ],
    "nuggets": [
        {"qid": "1", "query": "who?", "nuggets": [{"text": "Ada", "importance": "vital", "mapped_sub_narrative": "P"}]},
        {"qid": "2", "nuggets": [{"text": "a", "importance": "failed"}, {"text": "b", "importance": None}]},
    ],
    "rubrics": [
        {"qid": "q1", "rubrics": [
            {"criterion": "Is.", "weight": 5.0, "axis": "A"}, {"criterion": "No", "weight": -3, "axis": "B", "n": None},
        ], "domain": "STEM"},
    ],
    "nugget-bank": [
        {"query_id": "q1", "title_query": "Ports", "format_version": "v3", "nugget_bank": {
            "Where?": {"question": "Where?", "question_id": "i", "query_id": "q1", "answers": {"H": {"answer": "H"}},
                       "importance": "vital", "creator": [{"is_human": True}]},
            "When?": {"question": "When?", "importance": 3},
        }, "claim_bank": {"Big.": {"claim": "Big.", "claim_id": "c1", "importance": "high"}}},
        {"query_id": "q", "nugget_bank": {"a": {"question": "t", "x": 1}, "b": {"question": "t", "x": 2}}},
        {"query_id": "r", "nugget_bank": [{"question": "t", "x": 1}], "claim_bank": {"k": {"claim": "c"}}},
        {"query_id": "s", "nugget_bank": {"k": {"question": "t", "answers": [{"answer": "A", "n": 1}], "key": 1}}},
        {"query_id": "t", "nugget_bank": {"t": {"question": "t", "answers": {"k": {"answer": "A"}}}}, "claim_bank": {}},
        {"query_id": "u", "claim_bank": {"c": {"claim": "c"}}},
    ],
    "nugget-lists": [{"metadata": {"topic_id": "300", "team_id": "t", "run_id": "r", "x": 1}, "nugget_bank": [ASKED]}],
    "bank": [
        {"query_id": "q1", "query_text": "skin", "test_collection": "t", "hash": "2025", "items": [ITEM]},
        {"query_id": "q1", "facet_id": "T", "facet_text": "Layers", "query_text": "skin", "items": [NUGGET], "m": {}},
        {"query_id": "q/2 é", "items": []},
    ],
    "bank:csv": ["query_id,item_id,text,kind,importance,weight,facet,gold_answers,query_text,author",
                 "q1,a,Why?,question,vital,2,f,b | c,sky,Ada", 'q1,b,It is.,nugget,,,,"[""x|y""]",sky,'],
    "csv": ["query_id,doc_id,run_id,rank,item_id,text,grade,status,grader,prompt_class,reason",
            "q1,d1,r,1,q1/a,Why?,4,graded,m,P,says", "q1,d2,,,0,,,refused,m,P,'=no"],
    "games": [{"query_id": "q", "agent_a": "x", "agent_b": "y", "verdict": "a", "status": None, "answer": "[[A]]",
               "grader": "m", "note": None}],
    "support-labels": [{"topic_id": "1", "run_id": "r", "sentences": [SUPPORTED]}],
    "argue": [{"report": REPORT | {"responses": []}, "judgments": [{"segment_type": "sentence", "text": "x"}]}],
    "answers": [{"query_id": "q1", "run_id": "r", "text": "Some text."}, {"query_id": "2", "run_id": "r", "text": ""}],
    "requests": [
        {"query": {"qid": "1", "text": "who?"}, "candidates": [{"docid": "d", "score": 0.5, "doc": {"segment": "t"},
                                                               "judgment": 2}, "plain"]},
        {"query": "who?", "candidates": []},
    ],
    "reports": [REPORT | {"responses": [{"text": "One.", "citations": {"d1": 0.25, "d2": 0.5}, "m": {"x": 1}}]},
                REPORT | {"metadata": {"request_id": "2", "run_id": "r"}, "answer": [{"text": "A", "citations": [0]}]}],
    "topics": [{"request_id": "1", "title": "T", "narrative": "N"}, {"request_id": "2", "title": "a", "limit": 20}],
    "leaderboard": ["r1\tt1\tV\t0.5", "r1\tall\tV\t0.5", "r2\tall\tV\t0.25"],
    "leaderboard:tot": ["r1\tV\tall\t0.5", "r2\tV\tall\t0.25"],
    "leaderboard:rag4reports": ["all\tr1\tV\t0.5", "all\tr2\tV\t0.25"],
}  # fmt: skip
COMPACT = ("nuggets", "rubrics", "nugget-bank", "nugget-lists", "bank")


def text_of(name: str) -> str:
    blanks = (",", ":") if name in COMPACT else None
    return "".join(
        (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False, separators=blanks)) + "\n"
        for line in LINES[name]
    )


def test_each_format_that_is_read_and_written_is_here() -> None:
    both = {name for name, one in FORMATS.items() if one.read is not None and one.write is not None}
    others = {"records", "queries", "leaderboard:ir_measures"}
    assert both - others == LINES.keys()


@pytest.mark.parametrize("name", LINES)
def test_a_file_is_told_and_written_as_it_was(tmp_path: Path, name: str) -> None:
    ending = {"bank:csv": "csv", "csv": "csv"}.get(name, "jsonl")
    path, again = tmp_path / f"file.{ending}", tmp_path / f"again.{ending}"
    path.write_bytes(text_of(name).encode())
    assert detect_format(path) == (name.partition(":")[0] if name.startswith("leader") else name)
    read, write = FORMATS[name].read, FORMATS[name].write
    assert read is not None and write is not None
    write(again, read(path))
    assert again.read_text(encoding="utf-8") == text_of(name)
    # As Windows writes it, packed.
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n")))
    write(again, read(path))
    assert again.read_text(encoding="utf-8") == text_of(name)


# Of rows and lines; an empty run or leaderboard is no more than an empty file.
LISTS = [name for name in LINES if FORMATS[name].kind not in ("runs", "qrels", "item qrels", "leaderboard")]


@pytest.mark.parametrize("name", LISTS)
def test_nothing_is_not_written(tmp_path: Path, name: str) -> None:
    write = FORMATS[name].write
    assert write is not None
    with pytest.raises(InputError, match=r"there (are|is) no"):
        write(tmp_path / "f.jsonl", QueryFile({}) if FORMATS[name].kind == "queries" else [])
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([*LINES]),
    st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=3)), min_size=1, max_size=3),
)
def test_damaged_files_are_read_or_refused_in_one_line(
    tmp_path: Path, name: str, edits: list[tuple[int, bytes]]
) -> None:
    data = text_of(name).encode()
    for position, new in edits:
        position %= len(data)
        data = (data[:position] + new + data[position + 1 :]) or b" "
    path = tmp_path / "file"
    path.write_bytes(data)
    read = FORMATS[name].read
    assert read is not None
    try:
        read(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1 and str(path) in str(error)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("bank", "workbench-golden/dl20-scale-questions.jsonl.gz"),
        ("rubrics", "rag26dev/research-rubrics-dev-rubrics.jsonl.gz"),
        ("nuggets", "rag26dev/rag25-dev-nuggets.jsonl.gz"),
        ("nugget-bank", "kiddie/kiddie.nuggets.jsonl"),
        ("reports", "kiddie/kiddie.run1.jsonl"),
        ("topics", "kiddie/kiddie-topics.jsonl"),
    ],
)
def test_real_files_are_written_as_they_were(tmp_path: Path, name: str, path: str) -> None:
    folder, _, file = path.partition("/")
    source = shared_data(folder) / file
    assert detect_format(source) == name
    read, write = FORMATS[name].read, FORMATS[name].write
    assert read is not None and write is not None
    write(tmp_path / "again.jsonl", read(source))
    with open_binary(source) as stream:
        assert [json.loads(line) for line in (tmp_path / "again.jsonl").read_text(encoding="utf-8").splitlines()] == [
            json.loads(line) for line in stream
        ]
