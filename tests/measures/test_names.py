"""Tests of how measures are written and named, and of what the programs behind ir_measures cannot compute."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest

from rubric_measures.base.errors import MeasureError, UnknownNameError
from rubric_measures.cli import main
from rubric_measures.measures.measure import checked_measure, column_named, columns_named, compute, parse_measures
from tests.example_records import write_all

QRELS = [ir_measures.Qrel("q", "a", 1), ir_measures.Qrel("q", "b", 0)]
RUN = [ir_measures.ScoredDoc("q", "a", 2.0), ir_measures.ScoredDoc("q", "b", 1.0)]

# What cannot be computed, and what is said.
IMPOSSIBLE = [
    ("INST(max_rel=5)", "no program here computes it"),
    ("RR(judged_only=True)@5", "no program here computes it"),
    ("Accuracy@1", "ZeroDivisionError"),
    ("NumRet(rel=0)", "relevance_level should be positive"),
    ("Bpref(rel=0)", "relevance_level should be positive"),
]


@pytest.mark.parametrize(("text", "message"), IMPOSSIBLE)
def test_the_measure_that_cannot_be_computed_is_named_alone(text: str, message: str) -> None:
    measures = [ir_measures.parse_measure(name) for name in ("AP", text, "nDCG@5")]
    with pytest.raises(MeasureError, match=f"^{measures[1].NAME}") as caught:
        compute(measures, QRELS, RUN)
    assert message in str(caught.value)
    assert "AP" not in str(caught.value)


@pytest.mark.parametrize(("text", "message"), IMPOSSIBLE[1:3])
@pytest.mark.parametrize("graded", ["qrels.txt", "graded.jsonl.gz"])
@pytest.mark.parametrize("command", ["evaluate", "leaderboard"])
def test_one_line_and_exit_code_two(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str, graded: str, text: str, message: str
) -> None:
    write_all(tmp_path)
    # One query, so that Accuracy has no passage that is not relevant before its cutoff.
    (tmp_path / "one.run").write_text("q1 Q0 d1 1 2 one\n")
    wanted = [text] if command == "evaluate" else ["-m", text]
    assert main([command, str(tmp_path / graded), str(tmp_path / "one.run"), *wanted]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_gains_and_counts_do_not_change_other_measures() -> None:
    qrels = [ir_measures.Qrel("q", doc_id, label) for doc_id, label in (("a", 1), ("b", 3), ("c", 0), ("d", 2))]
    run = [ir_measures.ScoredDoc("q", doc_id, score) for doc_id, score in (("c", 4.0), ("a", 3.0), ("b", 2.0))]
    names = ("nDCG@3", "nDCG(gains={1:3})", "NumRet", "NumRet(rel=2)", "AP(rel=2)", "nDCG")
    measures = [ir_measures.parse_measure(name) for name in names]
    alone = [one for measure in measures for one in compute([measure], qrels, run)]
    assert compute(measures, qrels, run) == alone


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P", r"needs the parameter cutoff, as in P@10; P has the parameters cutoff \(needed\), rel, judged_only"),
        ("NERR8@10", r"needs the parameter max_rel, as in NERR8\(max_rel=…\)"),
        ("P(foo=1)@5", "P has no parameter 'foo'; P has the parameters"),
        ("P(rel='x')@5", "P: rel='x'; expected int"),
        ("nDCG@0", "nDCG: cutoff=0; expected 1 or more"),
    ],
)
def test_parameters_that_are_wrong_say_which_there_are(text: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        checked_measure(ir_measures.parse_measure(text))


@pytest.mark.parametrize("name", ["A" * 256, "A/" * 2500, "my.py:" + "A" * 256])
def test_a_name_that_no_file_can_have_is_no_measure(name: str) -> None:
    with pytest.raises((MeasureError, UnknownNameError)) as said:
        parse_measures(name)
    assert "\n" not in str(said.value)


def test_measures_over_subtopics_of_items_are_pyndevals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyndeval")
    folder = write_all(tmp_path)
    items, run = str(folder / "items.qrels"), str(folder / "alpha.run")
    assert main(["qrels", str(folder / "graded.jsonl.gz"), "--per", "item", "-o", items]) == 0
    # d1 covers a at 4 and b at 1, d2 covers b at 5. Several levels, which pyndeval mixes up in one call of its own.
    names = ["StRecall(rel=4)@5", "StRecall(rel=2)@1", "P_IA(rel=1)@1"]
    assert main(["evaluate", items, run, *names]) == 0
    # Of q2 the first document is unknown, the second covers its item: (1 + 1) / 2, (1/2 + 0) / 2, (1 + 0) / 2.
    assert capsys.readouterr().out == "StRecall(rel=4)@5\t1.0000\nStRecall(rel=2)@1\t0.2500\nP_IA@1\t0.5000\n"


COLUMNS = [
    "RubricCover(rel=4)@20",
    "RubricCover(rel=5)@20",
    "NuggetA(rel=2,partial_rel=1)",
    "RubricQrels(measure='RR',rel=4)",
    "nDCG@10",
    "P(rel=2)@10",
    "RubricQrels(measure='AP',rel=4)",
]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("NuggetA", COLUMNS[2]),
        ("NuggetA(partial_rel=1)", COLUMNS[2]),
        ("NuggetA(partial_rel=1, rel=2)", COLUMNS[2]),
        ("RubricCover(rel=5)@20", COLUMNS[1]),
        ('RubricQrels(measure="RR")', COLUMNS[3]),
        ("nDCG@10", "nDCG@10"),
        ("AP", "RubricQrels(measure='AP',rel=4)"),
    ],
)
def test_a_name_without_levels_finds_its_column(name: str, column: str) -> None:
    assert column_named(name, COLUMNS) == column


def test_a_name_that_may_mean_two_columns_is_refused_with_both() -> None:
    assert columns_named("RubricCover@20", COLUMNS) == COLUMNS[:2]
    with pytest.raises(UnknownNameError) as error:
        column_named("RubricCover@20", COLUMNS)
    assert all(column in str(error.value) for column in COLUMNS[:2])
    assert "nDCG" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["NuggetA(rel=3)", "NuggetA(strict=True)", "RubricCover@10", "nDCG@5", "nDCG", "P@10", "?"]
)
def test_another_measure_is_not_found(name: str) -> None:
    assert columns_named(name, COLUMNS) == []
    with pytest.raises(UnknownNameError):
        column_named(name, COLUMNS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nDCG@10,P@5", "nDCG@10,P@5: separate measures by blanks, not commas: nDCG@10 P@5"),
        ("NuggetV(rel=4,strict=True),AP", "not commas: NuggetV(rel=4,strict=True) AP"),
        ("ndcg_cut_10", "ndcg_cut_10 is another program's name; here it is nDCG@10"),
        ("map", "map is another program's name; here it is AP"),
        ("V_strict", "here it is NuggetV(strict=True)"),
        ("strict_all_score", "here it is NuggetA(strict=True)"),
        ("vital_score", "here it is NuggetV"),
        ("P_5", "here it is P@5"),
        ("recall_1000", "here it is R@1000"),
    ],
)
def test_other_spellings_are_refused_with_ours(text: str, said: str) -> None:
    with pytest.raises(MeasureError) as caught:
        parse_measures(text)
    assert said in str(caught.value)
    # What is proposed can be read.
    parse_measures(str(caught.value).rpartition("commas: ")[2].rpartition("here it is ")[2])
