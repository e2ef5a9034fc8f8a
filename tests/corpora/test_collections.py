"""Tests of collections as ir_datasets Datasets: folders, records, ids, export."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import ir_datasets
import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.corpora.collections import UnknownCollectionError, example_folder, load_collection
from rubric_measures.formats.banks import bank_entries, write_bank
from rubric_measures.records.models import GradedPassage, ItemGradeSet, PromptInfo, QueryPassages, write_graded
from rubric_measures.types.entities import RubricItem
from tests.example_records import bank_from_items

RATED = PromptInfo(prompt_class="QuestionSelfRatedUnanswerablePromptWithChoices")


def graded(tmp_path: Path) -> list[QueryPassages]:
    """Two passages: d1 has grades 4 and 0, d2 has 1 (and one failure)."""
    entries = [
        ItemGradeSet.build({"q1/a": 4, "q1/b": 0}, answers=[], llm="m", prompt_info=RATED),
        ItemGradeSet.build({"q1/a": 1}, answers=[], llm="m", prompt_info=RATED, item_status={"q1/b": "failed"}),
    ]
    passages = [
        GradedPassage(
            **{
                "paragraph_id": f"d{number}",
                "text": f"text {number}",
                "exam_grades": [entry],
                "paragraph_data": {
                    "judgments": [
                        {"paragraphId": f"d{number}", "query": "q1", "relevance": number, "titleQuery": "first"}
                    ],
                    "rankings": [
                        {
                            "method": "s",
                            "paragraphId": f"d{number}",
                            "queryId": "q1",
                            "rank": number,
                            "score": -number,
                        }
                    ],
                },
            }
        )
        for number, entry in enumerate(entries, 1)
    ]
    return [QueryPassages("q1", passages)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection with every kind of file; its records are written by `with_grades`."""
    root = tmp_path / "made"
    (root / "runs").mkdir(parents=True)
    docs = [{"doc_id": f"d{number}", "text": f"text {number}", "extra": 1} for number in (1, 2, 3)]
    (root / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    (root / "queries.tsv").write_text("q1\tfirst query\nq2\tsecond query\n")
    (root / "qrels.txt").write_text("q1 0 d1 2\nq1 0 d3 0\n")
    for name in ("bm25", "dense"):
        (root / "runs" / f"{name}.run").write_text(f"q1 Q0 d1 1 2.5 {name}\nq1 Q0 d2 2 1.5 {name}\n")
    items = [RubricItem(f"q1/{name}", "q1", f"{name}?") for name in "abc"]
    write_bank(root / "questions.jsonl", bank_entries(bank_from_items(items)))
    nugget = RubricItem("q1/n", "q1", "n", "nugget", importance="vital")
    write_bank(root / "nuggets.jsonl", bank_entries(bank_from_items([nugget])))
    return root


@pytest.fixture
def with_grades(folder: Path, tmp_path: Path) -> Path:
    """The same with graded records."""
    write_graded(folder / "graded.jsonl.gz", graded(tmp_path))
    return folder


def test_a_folder(folder: Path) -> None:
    made = load_collection(folder)
    assert isinstance(made, ir_datasets.Dataset)
    assert [doc.doc_id for doc in made.docs_iter()] == ["d1", "d2", "d3"]
    assert made.docs[1].text == "text 2" and [doc.doc_id for doc in made.docs[::2]] == ["d1", "d3"]
    store = made.docs_store()
    assert store.get("d2").text == "text 2" and set(store.get_many(["d3", "d9"])) == {"d3"}
    assert [tuple(query) for query in made.queries_iter()] == [("q1", "first query"), ("q2", "second query")]
    assert [tuple(qrel) for qrel in made.qrels_iter()] == [("q1", "d1", 2), ("q1", "d3", 0)]
    assert (len(made.docs), len(made.queries), len(made.qrels)) == (3, 2, 2)
    assert sorted(made.banks) == ["nuggets", "questions"] and list(made.runs) == ["bm25", "dense"]
    assert made.grades is None and made.query_texts == {"q1": "first query", "q2": "second query"}
    assert not load_collection(folder, of_items=True).has_qrels()


def test_labels_and_items_of_a_graded_folder(with_grades: Path) -> None:
    # Maximum grade: d1 has 4 and 0, d2 has 1.
    assert [tuple(row) for row in load_collection(with_grades).qrels_iter()] == [("q1", "d1", 4), ("q1", "d2", 1)]
    rows = list(load_collection(with_grades, of_items=True).qrels_iter())
    assert sorted(tuple(row) for row in rows) == [
        ("q1", "*", 0, "q1/a"),
        ("q1", "*", 0, "q1/b"),
        ("q1", "*", 0, "q1/c"),
        ("q1", "*", 0, "scale=0-5:4:3"),
        ("q1", "d1", 0, "q1/b"),
        ("q1", "d1", 4, "q1/a"),
        ("q1", "d2", 1, "q1/a"),
    ]
    assert rows[0]._fields == ("query_id", "doc_id", "relevance", "iteration")
    assert tuple(load_collection(with_grades).judgments[0]) == ("q1", "d1", 2, "0")


def test_a_document_of_records_has_one_text(tmp_path: Path) -> None:
    groups = [QueryPassages(name, [GradedPassage(doc_id="d", text=f"text of {name}")]) for name in ("q1", "q2")]
    write_graded(tmp_path / "graded.jsonl", groups)
    with pytest.raises(InputError, match=r"graded.jsonl: document 'd' has two texts in different queries"):
        list(load_collection(tmp_path / "graded.jsonl").docs_iter())


def test_records_as_a_collection(with_grades: Path) -> None:
    made = load_collection(with_grades / "graded.jsonl.gz")
    assert [tuple(doc) for doc in made.docs_iter()] == [("d1", "text 1"), ("d2", "text 2")]
    assert [tuple(query) for query in made.queries_iter()] == [("q1", "first")]
    assert [tuple(row) for row in made.qrels_iter()] == [("q1", "d1", 4), ("q1", "d2", 1)]
    assert {name: run.rankings["q1"].doc_ids for name, run in made.runs.items()} == {"s": ["d1", "d2"]}
    assert [row.relevance for row in made.judgments] == [1, 2]


def test_an_id_in_the_place_of_a_title_is_no_text(with_grades: Path) -> None:
    # Records made without query texts have the id there, which the workbench reads.
    lines = gzip.decompress((with_grades / "graded.jsonl.gz").read_bytes()).replace(b'"first"', b'"q1"')
    (with_grades / "untitled.jsonl").write_bytes(lines)
    assert [tuple(query) for query in load_collection(with_grades / "untitled.jsonl").queries_iter()] == [("q1", "")]


def test_two_grade_sets_need_a_choice(folder: Path, tmp_path: Path) -> None:
    (group,) = graded(tmp_path)
    twice = [
        one.replacing(exam_grades=[*(one.exam_grades or []), ItemGradeSet.build({"q1/a": 2}, answers=[], llm="n")])
        for one in group.passages
    ]
    write_graded(folder / "graded.jsonl", [QueryPassages("q1", twice)])
    with pytest.raises(InputError, match="several grade sets"):
        list(load_collection(folder).qrels_iter())


def test_ids(with_grades: Path) -> None:
    name = f"rubric-measures/{with_grades}"
    assert ir_datasets.load(name).has_docs()
    assert ir_datasets.load(name).docs_count() == 3
    assert len(list(ir_datasets.load(f"{name}/items").qrels_iter())) == 7
    assert ir_datasets.load(f"{name}/graded.jsonl.gz").has_qrels()
    with pytest.raises(KeyError):
        ir_datasets.load(f"{name}/views")
    assert ir_datasets.load(name).banks["nuggets"].for_query("q1")[0].importance == "vital"
    assert load_collection(name).source == str(with_grades)


def test_unknown_names(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(KeyError):
        ir_datasets.load(f"rubric-measures/{tmp_path}/none")
    # Another's id is none of ours.
    with pytest.raises(UnknownCollectionError, match="rubric-measures/vaswani: no such folder or file"):
        ir_datasets.load("rubric-measures/vaswani")
    with pytest.raises(UnknownCollectionError, match="no such folder or file, and no such ir_datasets id"):
        load_collection("no-such-thing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnknownCollectionError, match="holds no documents"):
        load_collection(tmp_path / "empty")


def test_documents_with_titles(folder: Path) -> None:
    (folder / "docs.jsonl").write_text('{"doc_id": "d1", "title": "T", "text": "x"}\n{"doc_id": "d2", "text": "y"}\n')
    docs = list(load_collection(folder).docs_iter())
    assert [(tuple(doc), doc.default_text()) for doc in docs] == [(("d1", "T", "x"), "T\nx"), (("d2", "", "y"), "y")]


def test_the_example_is_registered() -> None:
    try:
        folder = example_folder()
    except InputError:
        pytest.skip("the example collection is not there yet")
    dataset: Any = ir_datasets.load("rubric-measures/example")
    assert dataset.docs_count() == len((folder / "docs.jsonl").read_text("utf-8").splitlines())
    assert {query.query_id for query in dataset.queries_iter()} == set(dataset.banks["questions"].items)
    assert dataset.dataset_id() == "rubric-measures/example"
    rows = list(ir_datasets.load("rubric-measures/example/items").qrels_iter())
    assert {row.iteration for row in rows} == {"scale=0-5:4:3", *(one.item_id for one in dataset.banks["questions"])}


def test_importing_the_package_does_not_load_ir_datasets() -> None:
    import subprocess

    code = "import rubric_measures, sys; sys.exit('ir_datasets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
