"""Grades as one tidy table: a row a grade, of all grade sets, with failed ones."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy
import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.measures.grades import all_rows
from rubric_measures.records.models import load_graded
from tests.example_records import RECORDS, grade_set, passage, write_all, write_lines

COLUMNS = ["query_id", "doc_id", "run_id", "rank", "item_id", "text", "grade", "status", "grader", "prompt_class"]


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_grades_are_one_table_that_is_read_again(tmp_path: Path, ending: str) -> None:
    folder = write_all(tmp_path)
    records, bank, table = str(folder / "graded.jsonl.gz"), str(folder / "bank.jsonl"), tmp_path / f"grades.{ending}"
    # The ending says what is wanted; a bank gives the texts.
    assert main(["convert", records, "--bank", bank, "--to", "csv", "-o", str(table)]) == 0
    if ending in ("csv", "tsv"):
        rows = rows_of(table, "," if ending == "csv" else "\t")
        assert list(rows[0]) == [*COLUMNS, "reason"]
        shown = [(row["doc_id"], row["run_id"], row["rank"], row["item_id"], row["text"], row["grade"]) for row in rows]
        assert shown[3:5] == [
            ("d2", "one", "2", "q1/a", "What is a?", "0"), ("d2", "one", "2", "q1/b", "What is b?", "5")
        ]  # fmt: skip
        # Each document has each grade once a run.
        assert len(rows) == 10
    theirs, ours = rubric_measures.load(records, bank), rubric_measures.load(table, bank)
    assert {key: sorted(all_rows(one)) for key, one in ours.queries.items()} == {
        key: sorted(all_rows(one)) for key, one in theirs.queries.items()
    }
    assert ours.scale == theirs.scale
    boards = [rubric_measures.score(grades, measures="RubricCover@5") for grades in (theirs, ours)]
    assert boards[0].values == boards[1].values
    # And written again it is the same file.
    assert main(["convert", str(table), "--to", "csv", "-o", str(tmp_path / f"again.{ending}")]) == 0
    assert (tmp_path / f"again.{ending}").read_bytes() == table.read_bytes()
    assert main(["convert", records, "-o", str(tmp_path / "grades.parquet")]) == 2


def test_grade_sets_of_one_prompt_class_stay_apart_in_a_table(tmp_path: Path) -> None:
    sets = [grade_set({"q1/a": 1}), grade_set({"q1/n": 0}, kind="nugget")]
    write_lines(tmp_path / "records.jsonl", [["q1", [passage("q1", "d1", sets)]]])
    assert main(["convert", str(tmp_path / "records.jsonl"), "-o", str(tmp_path / "t.csv")]) == 0
    prompt = "QuestionSelfRatedUnanswerablePromptWithChoices"
    found = {row["prompt_class"] for row in rows_of(tmp_path / "t.csv")}
    assert found == {f"{prompt} (nugget)", f"{prompt} (question)"}
    with pytest.raises(InputError, match="several grade sets are left"):
        rubric_measures.load(tmp_path / "t.csv")


def test_failed_grades_and_documents_without_a_run_are_rows(tmp_path: Path) -> None:
    graded = grade_set({"q1/a": 3}, status={"q1/b": "refused"})
    line = ["q1", [passage("q1", "d1", [graded], {"one": 1, "two": 4}), passage("q1", "d2", [graded])]]
    write_lines(tmp_path / "records.jsonl", [line])
    assert main(["convert", str(tmp_path / "records.jsonl"), "--to", "csv", "-o", str(tmp_path / "all.csv")]) == 0
    names = ("doc_id", "run_id", "rank", "item_id", "grade", "status")
    pairs = [("q1/a", "3", "graded"), ("q1/b", "", "refused")]
    places = [("d1", "one", "1"), ("d1", "two", "4"), ("d2", "", "")]
    rows = [tuple(row[name] for name in names) for row in rows_of(tmp_path / "all.csv")]
    assert rows == [(*place, *pair) for place in places for pair in pairs]


# A dot in a name, as R writes it, is no field inside an object.
JUDGED = """question_id,answer_id,criterion,score,judge_model,run.id
q1,d1,answers the question,4,gpt-4o,1
q1,d1,names a source,0,gpt-4o,1
q1,d2,answers the question,2,gpt-4o,1
q1,d2,names a source,,gpt-4o,1
q1,d1,answers the question,5,claude,1
"""


def test_what_a_judge_exported_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "judge.csv").write_text(JUDGED, encoding="utf-8")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\n", encoding="utf-8")
    table, run = str(tmp_path / "judge.csv"), str(tmp_path / "a.run")
    asked = ["leaderboard", table, run, "-m", "RubricCover@1", "--format", "tsv"]
    assert main([*asked, "--grader", "scale=0-5:4"]) == 2
    said = capsys.readouterr().err
    assert "judge.csv: several grade sets are left, choose one of: model=claude; model=gpt-4o (--grader" in said
    assert main([*asked, "--grader", "model=gpt-4o,scale=0-5:4"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("a\t0.5000")
    grades = rubric_measures.load(table, grader="model=gpt-4o,scale=0-5:4").queries["q1"]
    assert [item.item_id for item in grades.items] == ["answers the question", "names a source"]
    assert grades.failed is not None and int(grades.failed.sum()) == 1
    with pytest.raises(InputError, match="none is called so, choose one of: model=claude; model=gpt-4o"):
        rubric_measures.load(table, grader="gpt-5")
    with pytest.raises(InputError, match=r"holds a table of grades \(convert makes records of it\), no grade sets"):
        rubric_measures.load(table, grader="kind=direct")


def test_a_question_is_the_item_of_a_topic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bank, table, wrong, run = (tmp_path / name for name in ("bank.csv", "grades.csv", "wrong.csv", "a.run"))
    bank.write_text("Topic ID,Question ID,Question\n1,1-a,What is a?\n1,1-b,What is b?\n")
    table.write_text("topic_id,pid,question_id,grade\n1,d1,1-a,5\n1,d1,1-b,0\n")
    run.write_text("1 Q0 d1 1 1 a\n")
    asked = [str(run), "--bank", str(bank), "-m", "RubricCover(rel=4)", "--no-overall"]
    assert main(["leaderboard", str(table), *asked]) == 0
    printed = capsys.readouterr()
    assert "a\t0.5000" in printed.out
    assert printed.err.count("question_id is the item") == 2  # of the bank, and of the grades
    # A bare topic is the category of a question.
    table.write_text("question_id,topic,doc_id,label\nq1,science,d1,1\nq2,science,d1,0\n")
    bank.write_text("question_id,topic,question\nq1,science,What is a?\nq2,science,What is b?\n")
    assert main(["qrels", str(table), "-o", "-"]) == main(["convert", str(bank), "--to", "nuggets", "-o", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("q1 0 d1 1\nq2 0 d1 0\n") and printed.out.count('"qid":"q') == 2
    # What the header lacks is said before how its letters are written.
    wrong.write_bytes("Topic_ID;Doc_ID;Score (0-5);Assessor\n1;d1;5;Zoë\n".encode("cp1252"))
    assert main(["leaderboard", str(wrong), *asked]) == 2
    assert "wrong.csv:1: grade: lacks grade or label" in capsys.readouterr().err


def test_grades_that_all_failed_are_those_of_their_bank_beside_an_item_that_left_it(tmp_path: Path) -> None:
    rows = [("q1", "d1", "a", None), ("q1", "d1", "gone", None)]
    table = [dict(zip(("query_id", "doc_id", "item_id", "grade"), row, strict=True)) for row in rows]
    (tmp_path / "bank.csv").write_text("query_id,item_id,text\nq1,a,Boil the water.\n", encoding="utf-8")
    grades = rubric_measures.load(table, tmp_path / "bank.csv", grader="scale=0-5:4", on_failed="zero")
    assert int(grades.queries["q1"].failed.sum()) == 1


@pytest.mark.parametrize("form", ["frame", "polars", "rows", "columns", "jsonl", "list", "parquet", "tsv"])
def test_every_form_of_a_table_is_read_alike(tmp_path: Path, form: str) -> None:
    rows = [
        {"qid": "q1", "docno": "d1", "nugget_id": "a", "label": 2},
        {"qid": "q1", "docno": "d1", "nugget_id": "b", "label": 0},
        {"qid": "q2", "docno": "7", "nugget_id": "a", "label": None},
    ]
    expected = [("q1", "d1", 2, "a", "graded"), ("q1", "d1", 0, "b", "graded"), ("q2", "7", None, "a", "failed")]
    source: Any = rows
    if form in ("frame", "polars"):
        source = pytest.importorskip(form.replace("frame", "pandas")).DataFrame(rows)
    elif form == "columns":
        source = {name: [row[name] for row in rows] for name in rows[0]}
    elif form == "jsonl":
        source = tmp_path / "labels.jsonl"
        write_lines(source, rows)
    elif form == "list":
        source = tmp_path / "labels.json"
        source.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    elif form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
        source = tmp_path / "train-00000-of-00001.parquet"
        parquet.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), source)
    elif form == "tsv":
        source = tmp_path / "labels.tsv"
        source.write_text("qid\tdocno\tnugget_id\tlabel\nq1\td1\ta\t2\nq1\td1\tb\t0\nq2\t7\ta\t\n", encoding="utf-8")
    grades = rubric_measures.load(source)
    found = [(*row[:4], row.status) for query in grades.queries.values() for row in all_rows(query)]
    assert sorted(found) == sorted(expected)


def test_a_sheet_of_labels_from_windows_is_qrels(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sheet = "query_id;doc_id;relevance;judge\r\nq1;d1;2;José\r\nq1;d2;0;José\r\n"
    (tmp_path / "labels.csv").write_bytes(sheet.encode("cp1252"))
    (tmp_path / "a.run").write_text("q1 Q0 d2 1 2 a\nq1 Q0 d1 2 1 a\n", encoding="utf-8")
    (tmp_path / "same.qrels").write_text("q1 0 d1 2\nq1 0 d2 0\n", encoding="utf-8")
    labels, run = str(tmp_path / "labels.csv"), str(tmp_path / "a.run")
    board = rubric_measures.score(rubric_measures.load(labels), run)
    assert board.cells == rubric_measures.score(str(tmp_path / "same.qrels"), run).cells
    assert "read as Windows writes it (cp1252)" in caplog.text
    # And beside grades of items they are what standard measures read.
    grades = [{"query_id": "q1", "doc_id": doc_id, "item_id": "a", "grade": 1} for doc_id in ("d1", "d2")]
    both = rubric_measures.score(rubric_measures.load(grades, grader="scale=0-1:1"), run, qrels=labels)
    assert both.cells["a"]["nDCG@10"].mean == board.cells["a"]["nDCG@10"].mean
    for name, output in ((labels, "one.qrels"), (str(tmp_path / "same.qrels"), "two.qrels")):
        assert main(["qrels", name, "-o", str(tmp_path / output)]) == 0
    assert (tmp_path / "one.qrels").read_bytes() == (tmp_path / "two.qrels").read_bytes()


def test_qrels_of_beir_are_such_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t31715818\t1\n3\t14717500\t1\n", encoding="utf-8")
    assert main(["qrels", str(tmp_path / "test.tsv")]) == 0
    assert capsys.readouterr().out == "1 0 31715818 1\n3 0 14717500 1\n"


def test_labels_of_a_person_and_of_a_judge_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    human = [("q1", "d1", 2), ("q1", "d2", 0), ("q1", "d3", 1), ("q2", "d1", 0)]
    judge = [("q1", "d1", 2), ("q1", "d2", 0), ("q1", "d3", 0), ("q2", "d1", 0)]
    names = ("query_id", "doc_id", "label")
    write_lines(tmp_path / "human.jsonl", [dict(zip(names, row, strict=True)) for row in human])
    write_lines(tmp_path / "judge.jsonl", [{**dict(zip(names, row, strict=True)), "judge": "gpt"} for row in judge])
    (tmp_path / "judge.qrels").write_text("".join(f"{a} 0 {b} {c}\n" for a, b, c in judge), encoding="utf-8")
    files = [str(tmp_path / name) for name in ("human.jsonl", "judge.jsonl", "judge.qrels")]
    tables, qrels = (rubric_measures.agreement(files[0], other, draws=Draws(0)) for other in files[1:])
    assert tables.names == ("human.jsonl", "judge.jsonl") and tables.rows[0].confusion == qrels.rows[0].confusion
    assert main(["agreement", *files[:2], "--rounds", "0"]) == 0
    # Two graders in one file.
    with (tmp_path / "both.csv").open("w", encoding="utf-8") as stream:
        stream.write("query_id,doc_id,grade,judge\n")
        stream.writelines(f"{a},{b},{c},ada\n" for a, b, c in human)
        stream.writelines(f"{a},{b},{c},gpt\n" for a, b, c in judge)
    both = str(tmp_path / "both.csv")
    found = rubric_measures.agreement(both, both, grader="ada", grader_b="gpt", draws=Draws(0))
    assert found.names == ("both.csv ada", "both.csv gpt") and found.rows[0].confusion == qrels.rows[0].confusion
    frame = pytest.importorskip("pandas").read_csv(both)
    found = rubric_measures.agreement(frame, frame, grader="ada", grader_b="gpt", draws=Draws(0))
    assert found.names == ("source 1 ada", "source 2 gpt") and found.rows[0].confusion == qrels.rows[0].confusion
    capsys.readouterr()
    assert main(["agreement", both, files[1], "--rounds", "0"]) == 2
    assert "several grade sets are left, choose one of: model=ada; model=gpt" in capsys.readouterr().err


def test_a_run_is_evaluated_against_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d2 1 2 a\nq1 Q0 d1 2 1 a\n", encoding="utf-8")
    (tmp_path / "labels.csv").write_text("qid,docno,label\nq1,d1,1\nq1,d2,0\n", encoding="utf-8")
    (tmp_path / "labels.qrels").write_text("q1 0 d1 1\nq1 0 d2 0\n", encoding="utf-8")
    said = []
    for name in ("labels.csv", "labels.qrels"):
        assert main(["evaluate", str(tmp_path / name), str(tmp_path / "a.run"), "nDCG@10", "P@1"]) == 0
        said.append(capsys.readouterr().out)
    assert len(set(said)) == 1 and "0.6309" in said[0]


def test_a_grader_is_held_to_a_sheet_of_grades(tmp_path: Path) -> None:
    write_lines(tmp_path / "records.jsonl", RECORDS)
    rows = [("q1", "d1", "q1/a", 3, "ada"), ("q1", "d1", "q1/a", 5, "bob"), ("q1", "d2", "q1/b", 5, "ada")]
    lines = "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "sheet.csv").write_text(f"query_id,doc_id,item_id,grade,assessor\n{lines}", encoding="utf-8")
    anchors: Any = {"anchors": tmp_path / "sheet.csv", "draws": Draws(0)}
    found = rubric_measures.calibrate(tmp_path / "records.jsonl", **anchors)
    # Of two assessors the lower grade counts: 4 against 3, 5 against 5.
    assert (found.bias[0].anchors, found.bias[0].mean) == (2, 0.5)
    found = rubric_measures.calibrate(tmp_path / "records.jsonl", **anchors, against="bob")
    assert (found.bias[0].anchors, found.bias[0].mean) == (1, -1.0)


def test_ranks_are_missed_only_where_no_other_runs_are_given(tmp_path: Path) -> None:
    (tmp_path / "grades.csv").write_text("query_id,doc_id,grade,system\nq1,d1,1,a\nq1,d2,0,a\n")
    (tmp_path / "x.run").write_text("q1 Q0 d1 1 2.0 x\nq1 Q0 d2 2 1.0 x\n")
    grades = rubric_measures.load(tmp_path / "grades.csv", grader="scale=0-1")
    with pytest.raises(InputError, match=r"run 'a' has several documents, and not all a rank; add a column rank, give"):
        rubric_measures.score(grades, measures="P@1", overall=False)
    assert rubric_measures.score(grades, [tmp_path / "x.run"], "P@1", overall=False).cells["x"]["P@1"].mean == 1.0


def test_a_row_number_is_no_document_and_a_document_has_one_rank(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("id,query_id,docno,label\n1,q,e,1\n2,q,f,0\n")
    assert sorted(rubric_measures.load(tmp_path / "g.csv").queries["q"].docs) == ["e", "f"]
    rows = "q,d1,r,1,i1,1\nq,d1,r,7,i2,1\n"
    (tmp_path / "r.csv").write_text(f"query_id,doc_id,run_id,rank,item_id,grade\n{rows}")
    with pytest.raises(InputError, match="passage 'd1' occurs twice in the ranking of 'r'; keep one of them"):
        rubric_measures.score(rubric_measures.load(tmp_path / "r.csv", grader="scale=0-1"), measures="RubricCover@5")


TWO_JUDGES = """query_id,doc_id,item_id,grade,judge,reason
q1,d1,a,5,gpt,says so
q1,d1,b,0,gpt,
q1,d2,a,,gpt,
q1,d1,a,4,llama,
q1,d1,b,1,llama,
q1,d2,a,3,llama,
"""


def test_judges_of_a_table_become_one_and_a_table_is_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, bank, panel = str(tmp_path / "two.csv"), str(tmp_path / "bank.csv"), tmp_path / "panel.csv"
    Path(table).write_text(TWO_JUDGES, encoding="utf-8")
    Path(bank).write_text("query_id,item_id,text\nq1,a,What?\nq1,b,Why?\n", encoding="utf-8")
    asked = ["combine", table, "--grader", "gpt", "--grader", "llama"]
    assert main([*asked, "--by", "median", "-o", str(panel)]) == 0
    found = {(row["doc_id"], row["item_id"], row["grader"]): row for row in rows_of(panel)}
    # Of two the lower, and one of two graded the third, which is not more than half.
    grades = [found["d1", "a", "panel:median"], found["d1", "b", "panel:median"], found["d2", "a", "panel:median"]]
    assert [row["grade"] for row in grades] == ["4", "0", ""] and grades[2]["status"] == "unparsed"
    # What the judges said stays beside it.
    assert found["d1", "a", "gpt"]["reason"] == "says so" and found["d2", "a", "gpt"]["status"] == "unparsed"
    assert main([*asked, "-o", str(tmp_path / "panel.jsonl.gz")]) == 0
    kept = rubric_measures.load(tmp_path / "panel.jsonl.gz", grader="model=panel:majority,scale=0-5:4")
    assert kept.queries["q1"].grades.tolist()[0] == [4.0, 0.0]
    frame = pytest.importorskip("pandas").read_csv(table)
    combined = rubric_measures.combine(frame, ["gpt", "llama"], by="prefer", output=panel)
    assert [group.query_id for group in combined] == ["q1"]
    capsys.readouterr()
    assert main(["verify", "grid", table, "--bank", bank, "--grader", "model=llama,scale=0-5:4"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["d1", "-", "4", "4", "1"] in lines and ["d2", "-", "3", "3", "-"] in lines


@pytest.mark.parametrize(
    ("command", "what"), [(["review"], "a review"), (["grade", "--model", "lexical", "-o", "out.jsonl"], "grading")]
)
def test_what_needs_texts_refuses_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], what: str
) -> None:
    table, bank = str(tmp_path / "two.csv"), str(tmp_path / "bank.csv")
    Path(table).write_text(TWO_JUDGES, encoding="utf-8")
    Path(bank).write_text("query_id,item_id,text\nq1,a,What?\n", encoding="utf-8")
    assert main([command[0], table, "--bank", bank, *command[1:]]) == 2
    problem = f"is a table of grades, and {what} needs the texts of passages; convert it to records"
    assert f"{table}: {problem}, with the collection that has them" in capsys.readouterr().err


def test_a_table_of_several_judges_becomes_records_with_all_that_it_says(tmp_path: Path) -> None:
    table, output = tmp_path / "two.csv", tmp_path / "records.jsonl"
    table.write_text(TWO_JUDGES, encoding="utf-8")
    (tmp_path / "docs.jsonl").write_text('{"id": "d1", "text": "One."}\n{"id": "d2", "text": "Two."}\n')
    arguments = [
        "convert",
        str(table),
        "--to",
        "records",
        "-c",
        str(tmp_path / "docs.jsonl"),
        "--grader",
        "scale=0-5:4",
    ]
    assert main([*arguments, "-o", str(output)]) == 0
    (group,) = load_graded(output)
    assert [(one.doc_id, one.text) for one in group.passages] == [("d1", "One."), ("d2", "Two.")]
    assert rubric_measures.load(output, grader="gpt").queries["q1"].failed.tolist() == [[False, False], [True, False]]
    assert main(["convert", str(output), "-o", str(tmp_path / "back.csv")]) == 0
    names = ("doc_id", "item_id", "grade", "grader", "reason")
    said = [[row[name] for name in names] for row in rows_of(tmp_path / "back.csv")]
    assert sorted(said) == sorted([*row[1:4], *row[4:]] for row in csv.reader(TWO_JUDGES.splitlines()[1:]))
    (tmp_path / "docs.jsonl").write_text('{"id": "d1", "text": "One."}\n')
    assert main([*arguments, "-o", str(output)]) == 2


def test_a_grader_that_no_table_has_is_no_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would be passed over, and the labels of somebody else compared."""
    ada, gpt, plain = (tmp_path / f"{name}.csv" for name in ("ada", "gpt", "plain"))
    for path, judge in ((ada, "ada"), (gpt, "gpt")):
        path.write_text(f"query_id,doc_id,label,judge\nq1,d1,2,{judge}\nq1,d2,0,{judge}\n", encoding="utf-8")
    plain.write_text("query_id,doc_id,label\nq1,d1,2\nq1,d2,1\n", encoding="utf-8")
    for one, other in ((ada, gpt), (plain, plain)):
        assert main(["agreement", str(one), str(other), "--grader", "bob"]) == 2
        assert "no grades fit the choice; there are grades by: " in capsys.readouterr().err
    # One table has it: the other is what it is held to.
    for one in (ada, plain):
        assert main(["agreement", str(one), str(gpt), "--grader", "gpt"]) == 0


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("more", [["leaderboard", "-m", "NuggetA"], ["agreement", "--items"]])
def test_a_table_with_other_names_is_said_to_lack_them_whoever_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str, more: list[str]
) -> None:
    """A table of a judge's labels as its own program wrote it."""
    row, table = {"question_id": "q1", "reply_id": "a", "score": 1, "annotator": "gpt"}, tmp_path / f"own.{ending}"
    lines = {"csv": f"{','.join(row)}\n{','.join(map(str, row.values()))}\n", "jsonl": f"{json.dumps(row)}\n"}
    table.write_text(lines[ending], encoding="utf-8")
    command, *others = more
    assert main([command, str(table), *others, "--grader", "gpt"]) == 2
    said = capsys.readouterr().err
    assert f"{table}:1: " in said and "doc_id or docno" in said and "reply_id" in said


def test_what_a_notebook_holds_is_read_alike() -> None:
    """Frames in a list, ids that gaps made 1.0, columns of numpy, rows that come one by one; nothing is no grades."""
    pandas = pytest.importorskip("pandas")
    rows = [{"query_id": 1, "doc_id": doc_id, "label": label} for doc_id, label in (("a", 0), ("b", 2), ("c", 1))]
    grades, run = pandas.DataFrame(rows), pandas.DataFrame(rows).rename(columns={"label": "score"})
    floats = grades.assign(query_id=1.0)
    columns = {name: grades[name].to_numpy() for name in grades}
    boards = [
        rubric_measures.score(known, runs, ["nDCG@2"])
        for runs in ([run, run.assign(score=1)], {"run 1": run.assign(query_id=1.0), "run 2": run.assign(score=1)})
        for known in (rows, grades, floats, columns, iter(rows))
    ]
    assert {str(board.values) for board in boards} == {str(boards[0].values)} and boards[0].values["run 1"]["nDCG@2"][
        "1"
    ]
    pooled = rubric_measures.pool([run], {"a": "A", "b": "B", "c": "C"}, judgments=iter(rows), queries=iter(["1"]))
    assert len(pooled[0].passages) == 3
    for empty in ([], pandas.DataFrame({"query_id": [], "doc_id": [], "grade": []})):
        with pytest.raises(InputError, match="there are no grades to score"):
            rubric_measures.load(empty)
    with pytest.raises(InputError, match="q1: is no run; give a run file"):
        rubric_measures.score(rows, {"q1": {"a": numpy.float32(1)}}, ["nDCG@2"])
