"""Files of the bank makers: topics and passages by name, written banks and synthetic queries read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.formats.banks import load_bank, read_bank, write_bank
from rubric_measures.formats.queries import read_queries
from rubric_measures.grading.generation import (
    BankQuery,
    SyntheticQuery,
    made_entries,
    read_bank_queries,
    read_passages,
    write_synthetic,
)
from rubric_measures.grading.nuggetization import SourceSegment
from rubric_measures.records.models import GradedPassage, QueryPassages, write_graded
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id


def test_topics_of_a_query_file(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(
        '{"q1": "tea", "q2": {"title": "skin", "facets": {"f1": "layers", "f2": "care"}}}', encoding="utf-8"
    )
    assert read_bank_queries(str(path)) == [
        BankQuery("q1", "tea"),
        BankQuery("q2", "skin", "f1", "layers"),
        BankQuery("q2", "skin", "f2", "care"),
    ]
    with pytest.raises(InputError, match="no such folder, file or ir_datasets id"):
        read_bank_queries(str(tmp_path / "none.tsv"))


def test_passages_of_every_form(tmp_path: Path) -> None:
    columns = tmp_path / "p.tsv"
    columns.write_text("d1#0\tTea is hot.\nd1#1\tVery hot.\n", encoding="utf-8")
    assert list(read_passages(str(columns))) == [
        SourceSegment("d1#0", "Tea is hot."),
        SourceSegment("d1#1", "Very hot."),
    ]
    objects = tmp_path / "p.jsonl"
    objects.write_text('{"docid": "d1", "segment": "Tea"}\n{"doc_id": 7, "text": "Ink"}\n', encoding="utf-8")
    assert list(read_passages(str(objects))) == [SourceSegment("d1", "Tea"), SourceSegment("7", "Ink")]
    records = tmp_path / "p.jsonl.gz"
    passage = GradedPassage(doc_id="d1", text="Tea")
    write_graded(records, [QueryPassages("q1", [passage]), QueryPassages("q2", [passage])])
    assert list(read_passages(str(records))) == [SourceSegment("d1", "Tea")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"doc_id": "d", "text": "x"}\n{"doc_id": "d"}\n', ":2: text: expected text or contents"),
        ('{"text": "x"}\n', ":1: doc_id: expected doc_id or docno"),
        ("d1 no tab\n", ":1: the header lacks doc_id or docno"),
        ("{broken\n", ":1: is not JSON"),
    ],
)
def test_bad_passages_say_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "p"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        list(read_passages(str(path)))


def test_a_made_bank_is_read_back_with_its_sources(tmp_path: Path) -> None:
    item = RubricItem(make_item_id("q1", "hot water"), "q1", "hot water", "nugget", importance="vital")
    bank = TestBank({"q1": (item,), "q2": ()}, {"q1": "tea", "q2": "frost"})
    path = tmp_path / "bank.jsonl.gz"
    write_bank(path, made_entries(bank, info={"model": "m"}, sources={item.item_id: ("d1", "d2")}))
    (entry,) = read_bank(path)
    assert entry.further["info"] == {"model": "m"}
    assert entry.items[0].info == {"segments": ["d1", "d2"]}
    assert load_bank(path) == TestBank({"q1": (item,)}, {"q1": "tea"})


def test_synthetic_queries_are_a_query_file(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    write_synthetic(str(path), [SyntheticQuery("syn-1", "How hot?", "d1", ("d1#0",), "a")])
    assert read_queries(path) == {"syn-1": "How hot?"}
    assert '"doc_ids":["d1#0"],"document_id":"d1","model":"a"' in path.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="no queries to write"):
        write_synthetic(str(path), [])
