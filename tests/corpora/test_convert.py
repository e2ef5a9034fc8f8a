"""Files of one kind into another: each way there and back, what is lost and said, runs and judgments added."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import load_collection
from rubric_measures.corpora.converting import convert
from rubric_measures.formats import detect_format
from rubric_measures.formats.answers import read_answers
from rubric_measures.formats.banks import load_bank, read_bank
from rubric_measures.formats.trec import read_qrels, read_run
from rubric_measures.grading.generation import related_segments
from rubric_measures.grading.pairwise import load_references
from rubric_measures.records.merging import merge_records
from rubric_measures.records.models import GradedPassage, ItemGradeSet, QueryPassages, grade_of_items, load_graded
from rubric_measures.types.entities import Qrel
from tests.boards.test_argue import BANKS, REPORTS
from tests.formats.test_ragdoll import FULL, NOT, PART, battle, graded
from tests.support_data import line

RATED = {"prompt_info": {"prompt_class": "QuestionSelfRatedUnanswerablePromptWithChoices"}}


def record(doc_id: str, grades: dict[str, int], rank: int, llm: str = "m") -> dict[str, Any]:
    entry = ItemGradeSet.build(grades, answers=[], llm=llm)
    return {
        "paragraph_id": doc_id,
        "text": f"text {doc_id}",
        "paragraph_data": {
            "judgments": [{"paragraphId": doc_id, "query": "q1", "relevance": rank, "titleQuery": "q1"}],
            "rankings": [
                {"method": f"s{number}", "paragraphId": doc_id, "queryId": "q1", "rank": rank, "score": 10.0 - rank}
                for number in (1, 2)
            ],
        },
        "exam_grades": [entry.as_json() | RATED],
        "kept": ["x"],
    }


BANK = [
    {
        "query_id": "q1",
        "query_text": "skin",
        "items": [{"question_id": f"q1/{name}", "question_text": f"{name}?"} for name in "abc"],
        "kept": 1,
    }
]
TQA = [
    {
        "globalID": "L_1",
        "lessonName": "skin",
        "questions": {
            "nonDiagramQuestions": {
                "NDQ_1": {
                    "beingAsked": {"processedText": "Outer layer?"},
                    "answerChoices": {"a": {"processedText": "epidermis"}},
                    "correctAnswer": {"processedText": "a"},
                }
            }
        },
    }
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """One file of each kind."""
    records = ["q1", [record("d1", {"q1/a": 4, "q1/b": 0}, 1), record("d2", {"q1/a": 1, "q1/b": 2}, 2)]]
    with gzip.open(tmp_path / "records.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(records) + "\n")
    (tmp_path / "bank.jsonl").write_text("".join(json.dumps(line) + "\n" for line in BANK))
    (tmp_path / "tqa.json").write_text(json.dumps(TQA, indent=1))
    (tmp_path / "queries.json").write_text(json.dumps({"q1": "skin"}))
    (tmp_path / "queries.tsv").write_text("q1\tskin of 1\n")
    (tmp_path / "one.run").write_text("q1 Q0 d2 1 3.5 one\nq1 Q0 d1 2 2.5 one\n")
    (tmp_path / "labels.qrels").write_text("q1 0 d1 1\nq1 0 d2 2\n")
    (tmp_path / "items.qrels").write_text("q1 q1/a d1 4\nq1 q1/b d1 0\nq1 q1/a d2 1\n")
    docs = [json.dumps({"doc_id": doc_id, "text": f"text {doc_id}"}) for doc_id in ("d1", "d2")]
    (tmp_path / "docs.jsonl").write_text("\n".join(docs) + "\n")
    report = {"metadata": {"run_id": "gpt", "topic_id": "q1"}, "responses": [{"text": "An answer."}]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(report) + "\n")
    return tmp_path


def run(files: Path, *arguments: str) -> int:
    return main(["convert", *(str(files / part) if (files / part).exists() else part for part in arguments)])


def test_what_is_no_format_of_its_own_is_told(files: Path) -> None:
    (files / "texts").write_text("7\ta text\twith tabs\tin it\n")
    assert detect_format(files / "texts") == "queries"
    boards = {
        "workbench": "method\tcover\t+/-\tstd-err\na\t0.5\t+/-\t0.1\n",
        "long": "r1 all P@5 0.5\n",
        "ours": '{\n "format": "rubric_measures leaderboard 1",\n "measures": [], "runs": []}\n',
    }
    for name, text in boards.items():
        (files / name).write_text(text)
        assert detect_format(files / name) == "leaderboard", name
    for text in ("run\twhat is a run\nmethod\twhat is a method\n", "7\tis pi 3.14\n"):
        (files / "no-board").write_text(text)
        assert detect_format(files / "no-board") == "queries"
    with pytest.raises(InputError, match="standard input"):
        detect_format("-")


def test_merging_and_further_runs(files: Path) -> None:
    (files / "more.jsonl").write_text(json.dumps(["q1", [record("d1", {"q1/a": 5}, 1, llm="n")]]) + "\n")
    out, records, ranked = files / "out.jsonl.gz", str(files / "records.jsonl.gz"), str(files / "ranked.jsonl")
    judgments = ["--judgments", str(files / "labels.qrels")]
    assert main(["pool", str(files / "one.run"), "-c", records, *judgments, "-o", ranked]) == 0
    assert run(files, records, "more.jsonl", ranked, "-o", str(out)) == 0
    ((_, passages, _),) = load_graded(out)
    assert [[entry.llm for entry in one.exam_grades or ()] for one in passages] == [["m", "n"], ["m"]]
    assert [[(place.method, place.rank) for place in one.rankings] for one in passages] == [
        [("s1", 1), ("s2", 1), ("one", 2)],
        [("s1", 2), ("s2", 2), ("one", 1)],
    ]


def test_records_to_qrels_of_every_kind(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = files / "out.qrels"
    for name in ("records.jsonl.gz", str(files / "graded.csv"), str(files / "items.qrels")):
        if name.endswith("csv"):
            assert run(files, "records.jsonl.gz", "-o", name) == 0
        capsys.readouterr()
        assert run(files, name, "--to", "qrels", "-o", str(out)) == 2
        assert "cannot become qrels; it can become: " in capsys.readouterr().err
    # The list names the command that does it.
    assert main(["list", "formats"]) == 0
    [said] = (line for line in capsys.readouterr().out.splitlines() if line.startswith("qrels "))
    assert said.endswith("a label a passage; qrels writes it of grades")
    assert run(files, "records.jsonl.gz", "--to", "judgments", "-o", str(out)) == 0
    assert out.read_text() == "q1 0 d1 1\nq1 0 d2 2\n"
    records, bank = str(files / "records.jsonl.gz"), str(files / "bank.jsonl")
    assert main(["qrels", records, "--per", "item", "--bank", bank, "-o", str(out)]) == 0
    assert sorted(tuple(row) for row in read_qrels(out)) == [
        ("q1", "*", 0, "q1/a"),
        ("q1", "*", 0, "q1/b"),
        ("q1", "*", 0, "q1/c"),
        ("q1", "*", 0, "scale=0-5:4:3"),
        ("q1", "d1", 0, "q1/b"),
        ("q1", "d1", 4, "q1/a"),
        ("q1", "d2", 1, "q1/a"),
        ("q1", "d2", 2, "q1/b"),
    ]


def test_answers_are_taken_out_of_assignments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "assigned.jsonl"
    nugget = {"text": "Blue.", "importance": "vital", "assignment": "support"}
    lines = [
        {"qid": "q1", "run_id": run, "answer_text": f"It is blue, says {run}.", "nuggets": [nugget]}
        for run in ("a", "b")
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["convert", str(path), "--to", "answers", "-o", str(tmp_path / "a.jsonl")]) == 0
    assert "the labels of 2 answers left out" in capsys.readouterr().err
    assert [one[:3] for one in read_answers(tmp_path / "a.jsonl")] == [
        ("q1", run, f"It is blue, says {run}.") for run in ("a", "b")
    ]
    assert main(["convert", str(path), "-o", str(tmp_path / "a.csv")]) == 0
    row = (tmp_path / "a.csv").read_text().splitlines()[1]
    assert row.startswith("q1,a,a,1,") and ",Blue.,2," in row
    assert "importances or weights of 1 item left out" in capsys.readouterr().err
    (tmp_path / "runs").mkdir()
    assert main(["convert", str(path), "--to", "run", "-o", str(tmp_path / "runs")]) == 0
    assert (tmp_path / "runs" / "b.run").read_text() == "q1 Q0 b 1 1.0 b\n"


def test_of_a_query_that_assignments_call_in_two_ways_the_first_text_is_kept(tmp_path: Path) -> None:
    nuggets = [{"text": "Skin is an organ.", "importance": "vital", "assignment": "support"}]
    lines = [
        {"qid": "q1", "query": query, "run_id": run, "answer_text": "a", "response_length": 1, "nuggets": nuggets}
        for run, query in (("r1", "What is skin?"), ("r2", "skin"))
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert main(["convert", str(tmp_path / "in.jsonl"), "--to", "bank", "-o", str(tmp_path / "bank.jsonl")]) == 0
    assert load_bank(tmp_path / "bank.jsonl").query_texts == {"q1": "What is skin?"}


def test_judgments_are_one_label_a_passage(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = record("d1", {"q1/a": 4}, 1)
    more = [
        {"paragraphId": "d1", "query": query, "relevance": label} for query, label in (("q1", 3), ("q1", 0), ("x", 5))
    ]
    first["paragraph_data"]["judgments"] += more
    (files / "twice.jsonl").write_text(json.dumps(["q1", [first, record("d2", {}, 2)]]) + "\n")
    assert run(files, "twice.jsonl", "--to", "judgments", "-o", str(files / "judged.qrels")) == 0
    # The passage's judgments for the query are 1, 3 and 0: the label is 3 everywhere. That of another stays apart.
    assert (files / "judged.qrels").read_text() == "q1 0 d1 3\nx 0 d1 5\nq1 0 d2 2\n"
    assert "1 passage has several judgments; the highest is written (such as d1)" in capsys.readouterr().err
    # What we write, we read; and the records as a collection have the same labels.
    collection = load_collection(files / "twice.jsonl")
    assert collection.judgments == [Qrel("q1", "d1", 3), Qrel("q1", "d2", 2)]
    rows = read_qrels(files / "judged.qrels")
    assert [row for row in rows if row.query_id == "q1"] == collection.judgments
    (group,) = load_graded(files / "twice.jsonl")
    assert [one.judged("q1") for one in group.passages] == [3, 2]
    references = load_references(files / "twice.jsonl")["q1"]
    assert [(one.doc_id, one.label) for one in references] == [("d1", 3), ("d2", 2)]
    assert [one.doc_id for one in related_segments([group], level=3)["q1"]] == ["d1"]
    assert main(["pool", "-c", str(files / "twice.jsonl"), "-o", str(files / "pooled.jsonl")]) == 0
    assert [one.judged("q1") for one in load_graded(files / "pooled.jsonl")[0].passages] == [3, 2]


@pytest.mark.parametrize(
    ("table", "kind"),
    [("query_id,question_text\nq1,Why?\n", "bank"), ("qid,query\nq1,Why?\n", "queries"),
     ("qid,agent,answer\nq1,a,So.\n", "answers"), ("qid,did,document\nq1,d,So.\n", "records"),
     ("qid,agent_a,agent_b,raw_answer,answer\nq1,a,b,[[A]],A\n", "games")],
)  # fmt: skip
def test_an_ending_of_json_is_no_table(tmp_path: Path, table: str, kind: str) -> None:
    (tmp_path / "table.csv").write_text(table)
    for to in ([], ["--to", kind]):
        out = tmp_path / f"out{len(to)}.jsonl"
        assert main(["convert", str(tmp_path / "table.csv"), *to, "-o", str(out)]) == 0
    assert (tmp_path / "out0.jsonl").read_text() == out.read_text() and out.read_text()[0] in "[{"


def test_queries_are_written_as_no_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.csv").write_text("query_id,text\nq1,Why?\nq2,Who?\n")
    assert main(["convert", str(tmp_path / "queries.csv"), "-o", str(tmp_path / "out.csv")]) == 2
    assert "out.csv: queries cannot be written as csv; name another ending" in capsys.readouterr().err


def test_records_to_a_table_and_back(files: Path) -> None:
    items, table, out, again = files / "out.qrels", files / "t.csv", files / "out.jsonl.gz", files / "again.qrels"
    assert main(["qrels", str(files / "records.jsonl.gz"), "--per", "item", "-o", str(items)]) == 0
    assert run(files, "records.jsonl.gz", "-o", str(table)) == 0
    told = ["--grader", "scale=0-5:4:3"]
    assert run(files, str(table), "--to", "records", "-c", "docs.jsonl", *told, "-o", str(out)) == 0
    ((_, passages, _),) = load_graded(out)
    assert [(one.text, [grade_of_items(entry) for entry in one.exam_grades or ()]) for one in passages] == [
        ("text d1", [{"q1/a": 4, "q1/b": 0}]),
        ("text d2", [{"q1/a": 1, "q1/b": 2}]),
    ]
    assert main(["qrels", str(out), "--per", "item", "-o", str(again)]) == 0
    assert again.read_text() == items.read_text()
    # A shell's <(…) can be read once.
    reader, writer = os.pipe()
    with open(writer, "wb") as pipe:
        pipe.write((files / "records.jsonl.gz").read_bytes())
    convert(f"/dev/fd/{reader}", files / "piped.csv", source="records", to="csv")
    os.close(reader)
    assert (files / "piped.csv").read_text() == table.read_text()


def test_what_is_odd_in_records_that_are_gone_through_twice_is_said_once(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = record("d1", {"q1/a": 4}, 1)
    one["exam_grades"][0]["self_ratings"] *= 2
    (files / "twice.jsonl").write_text(json.dumps(["q1", [one]]) + "\n")
    assert run(files, "twice.jsonl", "-o", str(files / "grades.csv")) == 0
    assert capsys.readouterr().err.count("1 grade names an item that its grade set has graded before") == 1


def test_records_to_runs(files: Path) -> None:
    folder = files / "runs"
    folder.mkdir()
    assert run(files, "records.jsonl.gz", "--to", "run", "-o", str(folder)) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["s1.run", "s2.run"]
    assert read_run(folder / "s1.run").rankings["q1"].doc_ids == ["d1", "d2"]


def test_banks_and_queries(files: Path) -> None:
    out = files / "out.jsonl.gz"
    assert run(files, "bank.jsonl", "-o", str(out)) == 0
    assert read_bank(out) == read_bank(files / "bank.jsonl")
    assert run(files, "bank.jsonl", "tqa.json", "--to", "bank", "-o", str(out)) == 0
    bank = load_bank(out)
    assert [(query_id, len(items)) for query_id, items in bank.items.items()] == [("q1", 3), ("tqa2:L_1", 1)]
    assert bank.for_query("tqa2:L_1")[0].gold_answers == ("epidermis",)


def test_facets_of_queries_stay(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    car = {"tqa2:L_2": {"text": "skin", "facets": {"f1": "Layers"}, "domain": "biology"}, "q2": "hair"}
    (files / "car.json").write_text(json.dumps(car))
    assert run(files, "car.json", "--to", "queries", "-o", str(files / "out.json")) == 0
    assert json.loads((files / "out.json").read_text()) == car
    assert capsys.readouterr().err == ""
    assert run(files, "car.json", "--to", "ragelo:queries", "-o", str(files / "q.csv")) == 0
    assert "domain of 1 row, facets of 1 row" in capsys.readouterr().err


NUGGETS = {"query": "skin", "qid": "q1", "nuggets": [{"text": "epidermis", "importance": "vital"}], "kept": 1}
ASSIGNED = {
    "query": "skin",
    "qid": "q1",
    "nuggets": [{"text": "epidermis", "importance": "vital", "assignment": "partial_support"}],
    "run_id": "gpt",
    "answer_text": "An answer.",
    "response_length": 2,
}
RUBRICS = {"qid": "q1", "rubrics": [{"criterion": "names it", "weight": -2, "axis": "x"}]}


def test_what_is_no_text_is_refused_also_where_nobody_looks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Found by the fuzzer: half a surrogate pair in a field that is only kept."""
    path = tmp_path / "in.jsonl"
    bad = json.dumps({**ASSIGNED, "qid": "q2", "kept": "x"}).encode().replace(b'"x"', b'"\xed\xa0\x80"')
    path.write_bytes(json.dumps(ASSIGNED).encode() + b"\n" + bad)
    assert main(["convert", str(path), "-o", str(tmp_path / "out.jsonl")]) == 2
    assert f"{path}:2: is not JSON: " in capsys.readouterr().err


def converted(tmp_path: Path, line: dict[str, Any], to: str, *more: str) -> Any:
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["convert", str(tmp_path / "in.jsonl"), "--to", to, *more, "-o", str(tmp_path / "out.jsonl")]) == 0
    return json.loads((tmp_path / "out.jsonl").read_text())


def test_what_a_form_of_nuggets_cannot_hold_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items: list[dict[str, Any]] = [
        {"nugget_id": f"q1/{name}", "nugget_text": name, "importance": "vital", "weight": weight, "gold_answers": gold}
        for name, weight, gold in (("a", 3, ["x"]), ("b", 1, []))
    ]
    bank = {"query_id": "q1", "query_text": "skin", "items": [*items, items[0]]}
    nuggets = [{"text": name, "importance": "vital"} for name in "ab"]
    assert converted(tmp_path, bank, "nuggets")["nuggets"] == nuggets
    # The ids q1/a and q1/b are not those that the texts give; the item that comes twice is said once.
    lost = "nuggets cannot hold all of the bank: item_id of 2 items, gold_answers of 1 item, weight of 2 items\n"
    said = capsys.readouterr().err
    assert said.count(lost) == said.count("1 item comes twice") == 1
    assert [one["weight"] for one in converted(tmp_path, bank, "rubrics")["rubrics"]] == [3, 1]
    assert "item_id of 2 items, gold_answers of 1 item, importance of 2 items\n" in capsys.readouterr().err
    # Over the bank, too; and nothing is said where nothing is lost.
    criteria = {"qid": "q1", "rubrics": [{"criterion": "a", "weight": 3.0}]}
    assert converted(tmp_path, criteria, "nuggets")["nuggets"] == [{"text": "a"}]
    assert "nuggets cannot hold all of the bank: weight of 1 item\n" in capsys.readouterr().err
    converted(tmp_path, NUGGETS, "nugget-bank")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "line",
    [
        RUBRICS,
        {"query_id": "q1", "query_text": "", "items": [{"question_id": "q1/a", "question_text": "a", "weight": -2}]},
        # Weights as shares of 1 are as common.
        {"query_id": "q1", "query_text": "", "items": [{"question_id": "q1/a", "question_text": "a", "weight": -0.5}]},
    ],
)
def test_a_penalty_is_no_nugget(tmp_path: Path, line: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["convert", str(tmp_path / "in.jsonl"), "--to", "nuggets", "-o", str(tmp_path / "out.jsonl")]) == 2
    assert "nuggets cannot hold the bank: a penalty would count for an answer that has it" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_of_two_values_of_a_query_the_first_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {
            "query_id": "q1",
            "facet_id": facet,
            "facet_text": facet,
            "query_text": "skin",
            "source": source,
            "items": [item],
        }
        for facet, source in (("T", "ada"), ("U", "bob"))
        for item in [{"nugget_id": f"q1/{facet}", "nugget_text": f"Skin {facet}."}]
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["convert", str(tmp_path / "in.jsonl"), "--to", "nuggets", "-o", str(tmp_path / "out.jsonl")]) == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["source"] == "ada"
    assert "1 field of queries has two values (such as source); the first is kept" in capsys.readouterr().err


@pytest.mark.parametrize("to", ["answers", "ragelo:answers"])
def test_plain_answers_have_no_place_for_citations(tmp_path: Path, to: str, capsys: pytest.CaptureFixture[str]) -> None:
    metadata = {"run_id": "gpt", "topic_id": "q1"}
    for citations, said in (([0], "citations of 1 "), ([], "")):
        report = {"metadata": metadata, "answer": [{"text": "Yes.", "citations": citations}], "references": ["d"]}
        (tmp_path / "in.jsonl").write_text(json.dumps(report) + "\n")
        assert main(["convert", str(tmp_path / "in.jsonl"), "--to", to, "-o", str(tmp_path / "out")]) == 0
        err = capsys.readouterr().err
        assert said in err and bool(said) == bool(err)


def test_fields_that_nobody_knows_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = {"text": "It is so.", "citations": ["d1"], "confidence": 0.5}
    report = {
        "metadata": {"team_id": "t", "run_id": "r", "topic_id": "q1", "use_starter_kit": "no"},
        "responses": [sentence, sentence],
        "documents": {"d1": {"id": "d1", "text": "Why."}},
        "note": "x",
        "empty": None,
    }
    converted(tmp_path, report, "answers")
    said = "left out, as such files have no place for it: confidence of 1 row, note of 1 row, use_starter_kit of 1 row"
    assert said in capsys.readouterr().err
    # What stays what it is loses nothing.
    assert converted(tmp_path, report, "reports") == report
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "cannot be read"),
        (["records.jsonl.gz", "--to", "recrods"], "unknown format 'recrods': did you mean records"),
        (["bank.jsonl", "--to", "tqa"], "bank cannot become tqa; it can become: bank, "),
        (["records.jsonl.gz", "--from", "judgments"], "judgments is only written"),
        (["records.jsonl.gz", "bank.jsonl"], "bank.jsonl: hold records and bank; convert what holds one kind"),
        (["bank.jsonl", "--to", "run"], "bank.jsonl: bank cannot become run; it can become: bank, "),
        (["items.csv", "--to", "records"], "name a collection"),
        (["items.qrels", "--from", "qrels"], "judges items"),
        (["records.jsonl.gz", "--to", "run"], "a run file holds one run, not 2 (s1, s2, …)"),
        (["bank.jsonl", "--answers", "answers.jsonl"], "answers would have no effect here"),
        (
            ["records.jsonl.gz", "--to", "assignments", "--bank", "bank.jsonl", "--grader", "gpt"],
            "holds no grades for model=gpt of items in the bank; there are grades of: model=",
        ),
        (["labels.qrels", "other.qrels", "--to", "qrels"], "qrels of q1 d1 0 are in several files; keep one"),
        *(
            ([name, "--to", "records", "-c", "docs.jsonl"], "cannot become records; it can become: ")
            for name in ("labels.qrels", "one.run", "answers.jsonl")
        ),
    ],
)
def test_what_cannot_be_converted(
    files: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "other.qrels").write_text("q1 0 d1 0\n")
    (files / "items.csv").write_text("query_id,doc_id,item_id,grade\nq1,d1,q1/a,4\n")
    before = {path: path.read_bytes() for path in files.iterdir()}
    assert run(files, *arguments, "-o", str(files / "out")) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and message in lines[0]
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_grades_in_reports_become_item_qrels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grades = {"7/x": {"grade": 3, "reasoning": "r"}, "7/y": {"grade": None}}
    report = {"metadata": {"run_id": "B", "topic_id": "7"}, "references": [], "responses": [{"text": "One."}]}
    source, plain, out = tmp_path / "r.jsonl", tmp_path / "p.jsonl", tmp_path / "o"
    source.write_text(json.dumps({**report, "evaldata": {"nugget_grades": grades}}) + "\n")
    plain.write_text(json.dumps(report) + "\n")
    assert main(["convert", str(source), "--to", "item-qrels", "-o", str(out)]) == 0
    assert out.read_text().split() == ["7", "7/x", "B", "3"]
    assert "1 entry of evaldata.nugget_grades left out" in capsys.readouterr().err
    assert main(["convert", str(source), "--to", "answers", "-o", str(out)]) == 0
    assert (
        "2 grades of evaldata.nugget_grades left out; the format item-qrels takes them (--to)"
        in capsys.readouterr().err
    )
    assert main(["convert", str(plain), "--to", "item-qrels", "-o", str(out)]) == 2
    assert "the reports hold no item qrels" in capsys.readouterr().err


def test_requests_are_runs_where_all_has_ids(tmp_path: Path) -> None:
    path = tmp_path / "dense.jsonl"
    query = {"qid": 7, "text": "fleas"}
    for request, said in (
        ({"query": "fleas", "candidates": ["a text"]}, "a run needs the qid of each query, once, .*'fleas'"),
        ({"query": query, "candidates": ["a text"]}, "and the docid of each candidate; see the query '7'"),
    ):
        path.write_text(json.dumps(request) + "\n")
        with pytest.raises(InputError, match=said):
            convert([path], tmp_path / "out.run", to="run")
    candidates = [{"docid": name, "doc": {"passage": f"text of {name}"}} for name in ("b", "a")]
    path.write_text(json.dumps({"query": query, "candidates": candidates}) + "\n")
    convert([path], tmp_path / "out.run", to="run")
    # Without scores the order counts.
    assert (tmp_path / "out.run").read_text() == "7 Q0 b 1 0.0 dense\n7 Q0 a 2 -1.0 dense\n"
    # A query for which nothing was found stays.
    path.write_text(json.dumps({"query": query, "candidates": []}) + "\n")
    convert([path], tmp_path / "out.jsonl", to="records")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == ["7", []]


@pytest.mark.parametrize("arguments", [["convert", "{0}", "--to", "run"], ["pool", "-c", "{0}", "--depth", "1"]])
def test_records_are_read_a_query_at_a_time(tmp_path: Path, arguments: list[str]) -> None:
    def line(query: str, rank: int) -> str:
        ranking = {"method": "s", "paragraphId": f"{query}-{rank}", "queryId": query, "rank": rank, "score": -rank}
        data = {"judgments": [], "rankings": [ranking]}
        text = f"{query} {rank} " + "word " * 4000
        return json.dumps([query, {"paragraph_id": f"{query}-{rank}", "text": text, "paragraph_data": data}]) + "\n"

    queries, ranks = [f"q{number:02}" for number in range(40)], (1, 2, 3, 4, 5)
    (tmp_path / "together.jsonl").write_text("".join(line(query, rank) for query in queries for rank in ranks))
    (tmp_path / "apart.jsonl").write_text("".join(line(query, rank) for rank in ranks for query in queries))
    peaks, outputs = [], []
    for name in ("apart", "together"):
        file, out = str(tmp_path / f"{name}.jsonl"), str(tmp_path / f"{name}.out")
        tracemalloc.start()
        assert main([*(one.format(file) for one in arguments), "-o", out]) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        outputs.append(Path(out).read_bytes())
    assert outputs[0] == outputs[1]
    # 40 queries of 100 KB; a fifth of the texts is kept where only the first of five is pooled.
    assert peaks[1] < 0.4 * (tmp_path / "together.jsonl").stat().st_size < peaks[0]


def passage(doc_id: str = "d", **fields: Any) -> GradedPassage:
    return GradedPassage(paragraph_id=doc_id, text=f"text of {doc_id}", **fields)


def ranked(*doc_ids: str, ranks: Sequence[int] = (1, 2)) -> list[QueryPassages]:
    """Records of one query with the ranking of a run."""
    made = []
    for rank, doc_id in zip(ranks, doc_ids, strict=False):
        place = {"method": "t", "paragraphId": doc_id, "queryId": "q", "rank": rank, "score": 3.0 - rank}
        made.append(passage(doc_id, paragraph_data={"rankings": [place]}))
    return [QueryPassages("q", made)]


def test_two_runs_of_one_name_are_not_made_one() -> None:
    # Files that are merged: each has another passage first.
    with pytest.raises(InputError, match="query 'q': the run 't' has 'd' at rank 1 in one file and 'e' in another"):
        merge_records([ranked("d"), ranked("e")])
    # Parts of one run are its parts; a passage that shares a rank in the whole may be missing in a part.
    assert merge_records([ranked("d"), ranked("e", ranks=[2])]) == ranked("d", "e")
    tied = ranked("d", "e", ranks=[1, 1])
    for order in ([tied, ranked("d")], [ranked("d"), tied]):
        assert merge_records(order) == tied


NUGGETS_PRINTED = [{"text": f"nugget {number}", "importance": "vital"} for number in range(2)]
ASSIGNED_PRINTED = [one | {"assignment": "support"} for one in NUGGETS_PRINTED]
FILES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "labels": ([line("one"), line("two")], ["leaderboard", "--format", "tsv", "-p", "6"]),
    "graded": ([graded("x", "q1", PART, FULL, NOT, NOT), graded("y", "q1", FULL, NOT, NOT, FULL)], ["leaderboard"]),
    "assignments": (
        [{"qid": query, "run_id": "x", "nuggets": ASSIGNED_PRINTED} for query in ("q1", "q2")],
        ["leaderboard", "-m", "NuggetV", "--compat", "nuggetizer"],
    ),
    "nuggets": (
        [{"qid": query, "query": "text", "nuggets": NUGGETS_PRINTED} for query in ("q1", "q2")],
        ["convert", "bank"],
    ),
    "battles": (
        [battle("q1", "A"), battle("q2", "B"), battle("q3", "A")],
        ["tournament", "--rounds", "9", "--format", "tsv"],
    ),
    "bank": (
        [{"query_id": query, "items": [{"question_id": "i", "question_text": "Why?"}]} for query in ("q1", "q2")],
        ["convert", "nuggets"],
    ),
    "banks": (BANKS, ["convert", "bank"]),
    "topics": (
        [{"topic_id": query, "title": "T", "problem_statement": "P", "limit": 2000} for query in ("q1", "q2")],
        ["convert", "queries"],
    ),
    "reports": ([one["report"] for one in REPORTS], ["convert", "answers"]),
}


@pytest.mark.parametrize("kind", FILES)
def test_objects_need_no_line_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    rows, (command, *more) = FILES[kind]
    found = []
    # TREC gave the topics of RAGTIME 2026 without line ends.
    for folder, indent, end in (("compact", None, "\n"), ("pretty", 2, "\n"), ("joined", None, "")):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        Path("res.json").write_text("".join(json.dumps(row, indent=indent) + end for row in rows))
        options = ["--to", more[0], "-o", "out.jsonl"] if command == "convert" else more
        assert main([command, "res.json", *options]) == 0, capsys.readouterr().err
        written = Path("out.jsonl")
        found.append((capsys.readouterr().out, written.read_bytes() if written.exists() else b""))
    assert found[0] == found[1] == found[2]
    assert any(found[0])


@pytest.mark.parametrize(
    "row",
    [
        {"qid": "t1", "run_id": "r", "nuggets": [{"text": "n", "assignment": "support"}]},
        {"report": {"metadata": {"run_id": "r", "topic_id": "t1"}, "responses": []}, "judgments": []},
        {"query": {"qid": "t1", "text": "q"}, "candidates": ["a"]},
        {"sentence": 0, "statement": "A", "support_label": "NS", "status": "completed", "metadata": {
            "topic_id": "t1", "run_id": "r", "sentence_index": 0, "citation_index": 0, "docid": "d",
        }},
    ],
)  # fmt: skip
def test_answers_of_a_run_to_several_topics_are_joined(
    row: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "both.jsonl")]
    for path, topic in zip(paths, ("t1", "t2"), strict=False):
        Path(path).write_text(json.dumps(row).replace("t1", topic) + "\n")
    assert main(["convert", *paths[:2], "-o", paths[2]]) == 0
    first, second = Path(paths[2]).read_text().splitlines()
    assert "t1" in first and "t2" in second
    assert main(["convert", paths[0], paths[2], "-o", str(tmp_path / "o.jsonl")]) == 2
    assert "t1" in (said := capsys.readouterr().err) and "are in several files; keep one" in said


def test_what_banks_of_several_files_contradict_is_said_without_a_wrong_line(tmp_path: Path) -> None:
    for name, text in (("a.csv", "A"), ("b.csv", "B")):
        (tmp_path / name).write_text(f"query_id,item_id,text\nq,i,{text}\n")
    with pytest.raises(InputError, match=r"a\.csv, .*b\.csv: line 2: item 'i' has two texts, 'A' and 'B'"):
        convert([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "o", to="bank")
