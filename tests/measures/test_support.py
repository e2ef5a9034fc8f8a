"""Measures of citations over labels that are worked out by hand, and over the published labels of TREC RAG."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import ir_measures
import pytest

import rubric_measures
from rubric_measures.base.errors import MeasureError
from rubric_measures.cli import main
from rubric_measures.corpora.converting import convert
from rubric_measures.formats.support import read_support_labels, records_of_support_labels
from rubric_measures.measures.measure import CitationF1, SupportPrecision, SupportRecall
from rubric_measures.records.models import QueryPassages
from tests.shared_data import shared_data
from tests.support_data import line, write

PUBLISHED = {
    "wp_first": "SupportPrecision",
    "wr_first": "SupportRecall",
    "wp_all": "SupportPrecision(citations='all')",
    "wr_all": "SupportRecall(citations='all')",
    "hp_first": "SupportPrecision(strict=True)",
    "hr_first": "SupportRecall(strict=True)",
}


def scores(path: str, *measures: str, **options: object) -> dict[str, float | None]:
    """The means of the first run."""
    board = rubric_measures.score(
        rubric_measures.load(path, **options),  # type: ignore[arg-type]
        measures=list(measures),
        overall=False,
        notes=False,
    )
    cells = board.cells[min(board.cells)]
    return {name: cells[name].mean for name in board.measures}


def test_sentences_without_a_label_are_out_and_uncited_ones_count_in_recall(tmp_path: Path) -> None:
    # first: J has 1, 1/2, 0 (the fourth and the last sentence begin with -1: out), |U| = 1.
    # all: J has 1, 1/2, mean(0, 1) = 1/2, 1 (the label that there is).
    path = write(tmp_path / "labels.jsonl", line("one"))
    found = scores(path, *PUBLISHED.values(), "SupportPrecision(citations='all',strict=True)", "CitationF1")
    assert found == pytest.approx(
        {
            "SupportPrecision": 1.5 / 3,
            "SupportRecall": 1.5 / 4,
            "SupportPrecision(citations='all')": 3 / 4,
            "SupportRecall(citations='all')": 3 / 5,
            "SupportPrecision(strict=True)": 1 / 3,
            "SupportRecall(strict=True)": 1 / 4,
            "SupportPrecision(citations='all',strict=True)": 2.5 / 4,
            # 2 * .5 * .375 / .875
            "CitationF1": 3 / 7,
        }
    )


def test_the_measures_are_those_of_ir_measures_too(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.jsonl", line("one"))
    run = {"t1": {"one": 1.0}}
    found = ir_measures.calc_aggregate([SupportPrecision, SupportRecall, CitationF1], rubric_measures.load(path), run)
    assert found[SupportRecall] == pytest.approx(0.375)
    with pytest.raises(MeasureError, match="'two' is no answer with sentences and citations"):
        ir_measures.calc_aggregate([SupportPrecision], rubric_measures.load(path), {"t1": {"two": 1.0}})


def test_one_run_is_evaluated_against_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "labels.jsonl", line("one"), line("one", "t2", (["2"],)))
    (tmp_path / "one.run").write_text("t1 Q0 one 1 1 tag\n", encoding="utf-8")
    assert main(["evaluate", path, str(tmp_path / "one.run"), "SupportPrecision"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "SupportPrecision\t0.2500\n"
    assert "ranked passages are graded" not in shown.err


def test_an_absent_answer_is_a_zero_and_the_mean_over_present_ones_stands_beside(tmp_path: Path) -> None:
    lines = [line("one"), line("one", "t2", (["2"],)), line("two"), line("two", "t3", ())]
    board = rubric_measures.score(write(tmp_path / "labels.jsonl", *lines), present=True, overall=False, notes=False)
    assert board.measures[:4] == ["SupportPrecision", "SupportRecall", "CitationF1", "present:SupportPrecision"]
    # An answer without sentences is there, and scores 0; topic t3 has no other answer, and so no item.
    assert board.cells["one"]["SupportPrecision"].mean == pytest.approx((0.5 + 1) / 2)
    assert board.cells["two"]["SupportPrecision"].mean == pytest.approx(0.5 / 2)
    assert board.cells["two"]["present:SupportPrecision"].mean == pytest.approx(0.5)
    assert board.values["two"]["present:SupportRecall"] == pytest.approx({"t1": 0.375})
    # Of the six first citations four have a label... of five cited sentences three.
    assert board.cells["two"]["SupportPrecision"].coverage == pytest.approx(3 / 5)


def test_rates_of_biogen_and_alce_where_their_labels_exist(tmp_path: Path) -> None:
    labels = (["2", "0"], ["1"], ["2"], [], ["1", "1"], ["2", "2"], ["0", "-1"])
    path = write(tmp_path / "labels.jsonl", line("one", labels=labels, joined=("2", "-1", "-1", "-1", "2", "1", "-1")))
    found = scores(path, "SupportRate", "SupportRate(relaxed=True)", "CitationCoverage", "ALCERecall", "ALCEPrecision")
    assert found == pytest.approx(
        {
            # Labelled citations 2 0 1 2 1 1 2 2 0: four of nine support, three more in part.
            "SupportRate": 4 / 9,
            "SupportRate(relaxed=True)": 7 / 9,
            # Of six sentences that are known (the last may have a supporting citation without a label) three.
            "CitationCoverage": 3 / 6,
            # Joined: yes; own label: no, yes; uncited: no; joined: yes, no; the last has no joined label.
            "ALCERecall": 3 / 6,
            # Counted: the first, not the second (it does not entail, the other does), no, yes, both (neither entails
            # alone), neither (joined they do not).
            "ALCEPrecision": 4 / 8,
        }
    )


def contradicting(path: str, grades: dict[str, int | None]) -> list[QueryPassages]:
    """The records of a label file with other grades, on the scale that knows contradiction; None failed."""
    groups = records_of_support_labels(read_support_labels(path))
    changed = []
    for passage in groups[0].passages:
        if passage.exam_grades and passage.doc_id in grades:
            [entry] = passage.exam_grades
            [item_id] = [name for name, _ in entry.answers]
            grade = grades[passage.doc_id]
            info = entry.prompt_info.replacing(scale=[-2, 2], grade_names=[])  # type: ignore[union-attr]
            kept = {} if grade is None else {item_id: grade}
            made = type(entry).build(
                kept,
                answers=entry.answers,
                llm="a",
                kind="nugget",
                prompt_info=info,
                item_status={} if kept else {item_id: "failed"},
            )
            passage = passage.replacing(exam_grades=[made])
        changed.append(passage)
    return [QueryPassages("t1", changed)]


def test_a_contradiction_earns_nothing_and_has_a_rate(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.jsonl", line("one", labels=(["2"], ["0"], ["0"], ["2", "0"])))
    graded = contradicting(path, {"d0.0": 2, "d1.0": -2, "d2.0": 0, "d3.0": 1, "d3.1": -2})
    board = rubric_measures.score(graded, measures="ContradictionRate SupportPrecision", overall=False)
    assert board.cells["one"]["ContradictionRate"].mean == pytest.approx(2 / 5)
    assert board.cells["one"]["SupportPrecision"].mean == pytest.approx((1 + 0 + 0 + 0.5) / 4)
    with pytest.raises(MeasureError, match="knows no contradiction"):
        scores(path, "ContradictionRate")


def test_a_failed_grade_is_never_a_zero_unless_that_was_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.jsonl", line("one", labels=(["2"], ["0"], ["0"], [])))
    graded = contradicting(path, {"d0.0": 2, "d1.0": None, "d2.0": 1})

    def board(on_failed: object) -> rubric_measures.Board:
        grades = rubric_measures.load(graded, on_failed=on_failed)  # type: ignore[arg-type]
        return rubric_measures.score(grades, measures="SupportPrecision SupportRecall", overall=False, notes=False)

    cell = board("expected").cells["one"]["SupportPrecision"]
    # J = 1, 1/2; with the failed one as 0 or 1 it is 1.5 / 3 or 2.5 / 3.
    assert cell.mean == pytest.approx(0.75)
    assert cell.failures is not None
    assert cell.failures.bounds == pytest.approx((0.5, 2.5 / 3))
    assert (cell.coverage, cell.failed) == (pytest.approx(2 / 3), 1)
    assert board("zero").cells["one"]["SupportRecall"].mean == pytest.approx(1.5 / 4)
    lost = contradicting(path, dict.fromkeys(("d0.0", "d1.0", "d2.0")))
    unknown = rubric_measures.score(rubric_measures.load(lost, on_failed="expected"), measures="SupportRecall")
    assert unknown.values["one"]["SupportRecall"]["t1"] is None


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("rag24", ["rag24.webassess.jsonl.gz", "rag24.without-prediction.jsonl.gz"]),
        ("rag25", ["rag25.jsonl.gz"]),
    ],
)
def test_the_published_labels_give_the_published_numbers(tmp_path: Path, name: str, files: list[str]) -> None:
    folder = shared_data("support")
    records = tmp_path / "support.jsonl.gz"
    convert([folder / file for file in files], records, to="records")
    board = rubric_measures.score(str(records), measures=list(PUBLISHED.values()), present=True, overall=False)
    with gzip.open(folder / f"expected.{name}.answers.tsv.gz", "rt", encoding="utf-8") as stream:
        answers = list(csv.DictReader(stream, delimiter="\t"))
    for row in answers:
        for column, measure in PUBLISHED.items():
            assert board.values[row["run"]][measure][row["topic"]] == pytest.approx(float(row[column]), abs=5e-7)
    with (folder / f"expected.{name}.runs.tsv").open(encoding="utf-8") as stream:
        runs = list(csv.DictReader((text for text in stream if not text.startswith("#")), delimiter="\t"))
    assert {row["run"] for row in runs} == set(board.cells)
    for row in runs:
        for column, measure in PUBLISHED.items():
            for ours, theirs in ((measure, column), (f"present:{measure}", f"{column}_present")):
                assert board.cells[row["run"]][ours].mean == pytest.approx(float(row[theirs]), abs=5e-7)
