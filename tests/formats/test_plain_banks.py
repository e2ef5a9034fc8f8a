"""Banks as people have them: two columns in any table, in files and in memory; further columns stay."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.base.errors import FormatError
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.types.entities import make_item_id

ROWS = [
    {"qid": "q1", "text": "Why is the sky blue?"},
    {"qid": "q1", "text": "Why is it red, at dusk?"},
    {"qid": "q2", "text": "What is tea?"},
]
TEXTS = {"q1": ["Why is the sky blue?", "Why is it red, at dusk?"], "q2": ["What is tea?"]}
FORMS = {
    "bank.csv": 'qid,text\nq1,Why is the sky blue?\nq1,"Why is it red, at dusk?"\nq2,What is tea?\n',
    "windows.csv": (
        '\ufeffQuestion ID,Text\r\nq1,Why is the sky blue?\r\nq1,"Why is it red, at dusk?"\r\nq2,What is tea?\r\n'
    ),
    "bank.tsv": "".join(
        f"{query_id}\t{text}\n" for query_id, texts in [("query_id", ["text"]), *TEXTS.items()] for text in texts
    ),
    "bare.tsv": "".join(f"{query_id}\t{text}\n" for query_id, texts in TEXTS.items() for text in texts),
    "bank.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    "bank.json": json.dumps(ROWS, indent=1),
    "texts.json": json.dumps(TEXTS),
    "single.json": json.dumps({**TEXTS, "q2": "What is tea?"}),
}


def texts_of(bank: Any) -> dict[str, list[str]]:
    assert {item.kind for item in bank} == {"question"}
    return {query_id: [item.text for item in items] for query_id, items in bank.items.items()}


@pytest.mark.parametrize("name", FORMS)
def test_two_columns_are_a_bank(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FORMS[name].encode())
    bank = rubric_measures.load_bank(tmp_path / name)
    assert texts_of(bank) == TEXTS
    assert bank.items["q2"][0].item_id == make_item_id("q2", "What is tea?")
    # What could be queries as well is a bank where somebody says so.
    assert main(["convert", str(tmp_path / name), "--from", "bank:csv", "--to", "bank", "-o", str(tmp_path / "b")]) == 0
    assert rubric_measures.load_bank(tmp_path / "b") == bank


def test_two_columns_in_memory_are_a_bank() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    columns = {"question_id": [row["qid"] for row in ROWS], "text": [row["text"] for row in ROWS]}
    for source in (ROWS, TEXTS, frame, columns):
        assert texts_of(rubric_measures.load_bank(source)) == TEXTS
    polars = pytest.importorskip("polars")
    assert texts_of(rubric_measures.load_bank(polars.DataFrame(ROWS))) == TEXTS


def test_commands_and_functions_take_two_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bank.tsv").write_text("1\tStates the law.\n1\tNames a year.\n")
    (tmp_path / "answers.jsonl").write_text(
        json.dumps({"query_id": "1", "run_id": "a", "text": "The law of 1843."}) + "\n"
    )
    passages, graded = str(tmp_path / "p.jsonl"), str(tmp_path / "g.jsonl")
    assert main(["pool", str(tmp_path / "answers.jsonl"), "-o", passages]) == 0
    bank = ["--bank", str(tmp_path / "bank.tsv")]
    assert main(["grade", passages, *bank, "--model", "lexical", "-o", graded]) == 0
    assert main(["leaderboard", graded, *bank, "-m", "RubricCover(rel=1)", "--no-overall"]) == 0
    assert "a\t" in capsys.readouterr().out
    assert len(rubric_measures.load(graded, bank={"1": ["States the law.", "Names a year."]}).queries["1"].items) == 2


def test_further_columns_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "query_id,text,author,difficulty\nq1,It is blue.,Ada,hard\nq1,It is old.,Bo,\n"
    (tmp_path / "bank.csv").write_text(table)
    assert [item.info for item in rubric_measures.load_bank(tmp_path / "bank.csv")] == [
        {"author": "Ada", "difficulty": "hard"}, {"author": "Bo", "difficulty": ""},
    ]  # fmt: skip
    here = tmp_path / "bank.csv"
    for to, name in (("bank", "b.jsonl"), ("nuggets", "n.jsonl"), ("bank:csv", "again.csv")):
        source = ["--from", "bank:csv"] if here.suffix == ".csv" else []
        assert main(["convert", str(here), *source, "--to", to, "-o", str(tmp_path / name)]) == 0
        here = tmp_path / name
    nuggets = json.loads((tmp_path / "n.jsonl").read_text())["nuggets"]
    assert nuggets[0] == {"text": "It is blue.", "author": "Ada", "difficulty": "hard"}
    with (tmp_path / "again.csv").open() as stream:
        assert [(row["text"], row["author"], row["difficulty"]) for row in csv.DictReader(stream)] == [
            ("It is blue.", "Ada", "hard"), ("It is old.", "Bo", ""),
        ]  # fmt: skip
    assert capsys.readouterr().err == ""


def test_a_nugget_beside_a_question_is_a_further_column(tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text("query_id,question,nugget\nq1,Why,It is blue.\nq1,,It is old?\n")
    items = rubric_measures.load_bank(tmp_path / "bank.csv").items["q1"]
    assert [(item.kind, item.text, item.info) for item in items] == [
        ("question", "Why", {"nugget": "It is blue."}), ("nugget", "It is old?", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("query,text\nq1,Why?\n", ":1: query_id: is no test bank (lacks query_id or qid"),
        ("query_id,item\nq1,Why?\n", ":2: text: lacks text or question_text or nugget_text or"),
        ('{"query_id": "q1", "texts": "Why?"}\n', ":1: text: is no test bank (lacks text or question_text"),
        ("query_id,question,answer\nq1,Why?,So.\n", ":2: may be answers, or a bank: of a bank, call"),
        ("topic,nugget,importance\nq1,A,Vital\nq1,B,must\n", ":3: importance: expected vital or okay; found 'must'"),
        ("topic,nugget\nq1,#NAME?\n", ":2: nugget: is a spreadsheet's error, as it took the text for a formula"),
        ("topic,nugget,importance\nq1,,vital\n", ":2: text is empty; remove the row, or give the item a text"),
        ("qid,text\nq1,It is blue.\nq1,\n", ":3: text is empty; remove the row, or give the item a text"),
        ("qid,text,author\nq1,,Ada\n", ":2: text is empty; remove the row, or give the item a text"),
        ('{"nugget_dict": {"Why?": {"So.": []}}}', "not say of which query it is; call it FILE_QUERY.preload.json"),
        ('{"a": 1}\n', ": text: is no test bank (expected a text; found '1')"),
        ('[]\n{"query_id": "q1", "text": "Why?"}\n', ":2: is not JSON: something stands behind the list"),
    ],
)  # fmt: skip
def test_what_lacks_a_column_is_told_which(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(FormatError) as caught:
        rubric_measures.load_bank(tmp_path / "file")
    assert said in str(caught.value)


def test_tables_of_windows_and_spreadsheets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.csv").write_bytes("Query ID;Text\r\nq1;Café?\r\n".encode("cp1252"))
    assert main(["convert", str(tmp_path / "q.csv"), "--to", "queries", "-o", str(tmp_path / "q.json")]) == 0
    assert json.loads((tmp_path / "q.json").read_text()) == {"q1": "Café?"}
    assert capsys.readouterr().err.count("is not UTF-8; read as Windows writes it (cp1252)") == 1
    # Only what is no UTF-8 is read so; a byte that is no letter to Windows either is refused with its line.
    (tmp_path / "mixed.csv").write_bytes(b"query_id,text\nq1,na" + "ïve".encode() + b"\nq1,caf\xe9\n")
    assert [item.text for item in rubric_measures.load_bank(tmp_path / "mixed.csv")] == ["naïve", "café"]
    (tmp_path / "odd.csv").write_bytes(b"query_id,text\nq1,plain\nq1,caf\x81\n")
    with pytest.raises(FormatError, match=r"odd\.csv:3: is not UTF-8; convert the file first$"):
        rubric_measures.load_bank(tmp_path / "odd.csv")
    (tmp_path / "q.json").write_bytes(b'{\n"query_id": "1",\n"text": "caf\xe9"}\n')
    assert main(["convert", str(tmp_path / "q.json"), "--to", "queries", "-o", str(tmp_path / "x.json")]) == 2
    assert "q.json:3: is not UTF-8; convert the file first" in capsys.readouterr().err
    (tmp_path / "q.xlsx").write_bytes(b"PK\x03\x04 and more")
    assert main(["convert", str(tmp_path / "q.xlsx"), "--to", "queries", "-o", str(tmp_path / "x.json")]) == 2
    assert "save it as CSV" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["question_text", "question", "nugget_text"])
def test_the_column_of_the_texts_tells_their_kind(text: str, tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text(f"query_id,{text},author\nq1,Name a year.,Ada\nq2,What is tea?,Bo\n")
    (tmp_path / "bank.jsonl").write_text(f'{{"query_id": "q1", "{text}": "Name a year.", "author": "Ada"}}\n')
    bank = rubric_measures.load_bank(tmp_path / "bank.csv")
    assert {item.kind for item in bank} == {"nugget" if text == "nugget_text" else "question"}
    assert rubric_measures.load_bank(tmp_path / "bank.jsonl").items["q1"] == bank.items["q1"]
    assert bank.items["q1"][0].info == {"author": "Ada"}
    # A question for each query may be the query itself: who converts says what it is.
    assert main(["convert", str(tmp_path / "bank.csv"), "--to", "bank", "-o", str(tmp_path / "b.jsonl")]) == 0
    assert rubric_measures.load_bank(tmp_path / "b.jsonl") == bank


@pytest.mark.parametrize(
    ("form", "row"),
    [
        ("rubrics", {"qid": "q1", "query": "Tea?", "rubrics": [{"criterion": "Says it.", "weight": 2, "axis": "a"}]}),
        ("nuggets", {"qid": "q1", "query": "Tea?", "nuggets": [{"text": "It is a plant.", "importance": "vital"}]}),
        ("bank", {"query_id": "q1", "items": [{"question_id": "q1/1", "question_text": "What is tea?"}]}),
        ("nugget-bank", {"query_id": "q1", "nugget_bank": {"What is tea?": {"question": "What is tea?"}}}),
    ],
)
def test_a_json_list_of_banks_is_told_as_its_lines_are(form: str, row: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps([row], indent=1))
    (tmp_path / "lines.jsonl").write_text(json.dumps(row) + "\n")
    assert {detect_format(tmp_path / name) for name in ("list.json", "lines.jsonl")} == {form}
    assert main(["convert", str(tmp_path / "list.json"), "-o", str(tmp_path / "again.jsonl")]) == 0
    assert json.loads((tmp_path / "again.jsonl").read_text()) == row
    assert rubric_measures.load_bank(tmp_path / "list.json") == rubric_measures.load_bank(tmp_path / "lines.jsonl")


def test_notes_that_look_like_formulas_come_back(tmp_path: Path) -> None:
    note = {"author": "-Ada", "note": "'=1+1"}
    (tmp_path / "bank.jsonl").write_text(json.dumps({"query_id": "-q1", "question_text": "+1?", **note}) + "\n")
    path = tmp_path / "bank.csv"
    assert main(["convert", str(tmp_path / "bank.jsonl"), "--from", "bank:csv", "-o", str(path)]) == 0
    with path.open() as stream:
        (row,) = csv.DictReader(stream)
    assert (row["query_id"], row["text"], row["author"], row["note"]) == ("-q1", "'+1?", "'-Ada", "''=1+1")
    assert [(item.text, item.info) for item in rubric_measures.load_bank(path)] == [("+1?", note)]


def test_items_of_one_text_are_not_lost_in_a_bank_that_keeps_them_by_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank, out = tmp_path / "bank.csv", tmp_path / "bank.json"
    bank.write_text("query_id,item_id,text,importance\nq1,a,Blue.,vital\nq1,b,Blue.,okay\n")
    assert main(["convert", str(bank), "--to", "nugget-bank", "-o", str(out)]) == 2
    assert "of 2 items it keeps 1; of items with one text keep one" in capsys.readouterr().err
    assert not out.exists()


def test_questions_of_ragtime_s_assessors_are_a_bank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # In the form of ragtime-nuggets_300.preload.json.
    said = {"nugget_dict": {"Q1": {"123": [], "456": ["d1"]}, "Q4": {}}, "group_assignment": {"Q1": "Japan"}}
    path = tmp_path / "ragtime-nuggets_300.preload.json"
    path.write_text(json.dumps(said, indent=4))
    assert [
        (one.query_id, one.text, one.kind, one.gold_answers, one.facet_id) for one in rubric_measures.load_bank(path)
    ] == [
        ("300", "Q1", "question", ("123", "456"), "Japan"),
        ("300", "Q4", "question", (), None),
    ]
    assert main(["convert", str(path), "--to", "bank:csv", "-o", str(tmp_path / "bank.csv")]) == 0
    assert list(rubric_measures.load_bank(tmp_path / "bank.csv")) == list(rubric_measures.load_bank(path))
    path.write_text('{"nugget_dict": {"Q1": ["123"]}}')
    assert main(["convert", str(path), "--to", "bank", "-o", str(tmp_path / "bank.jsonl")]) == 2
    assert "preload.json:1: nugget_dict.Q1: expected an object" in capsys.readouterr().err
