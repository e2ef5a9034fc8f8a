"""Tests of what the programs behind ir_measures cannot compute: a line names the measure; defects of ours pass."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest

from rubric_measures.base.errors import MeasureError
from rubric_measures.cli import main
from rubric_measures.measures.measure import checked_measure, compute
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


def test_a_provider_that_would_ignore_a_parameter_is_refused() -> None:
    # pytrec_eval has no reciprocal rank with a cutoff, and would give that of the whole ranking.
    measure = ir_measures.parse_measure("RR@1")
    with pytest.raises(MeasureError, match="RR@1: the provider pytrec_eval does not compute it"):
        compute([measure], QRELS, RUN, "pytrec_eval")
    assert [metric.value for metric in compute([measure], QRELS, RUN, "msmarco")] == [1.0]


def test_a_provider_that_is_not_installed_says_how_to_install_it() -> None:
    if ir_measures.cwl_eval.is_available():
        pytest.skip("cwl_eval is installed")
    with pytest.raises(
        MeasureError, match=r"^AP: .*Provider cwl_eval is not available.*pip install ir-measures\[cwl_eval"
    ):
        compute([ir_measures.AP], QRELS, RUN, "cwl_eval")
    with pytest.raises(MeasureError, match=r"The following.*: - cwl_eval \(pip install ir-measures\[cwl_eval"):
        compute([ir_measures.RBP(rel=1)], QRELS, RUN)


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


def test_evaluate_asks_pyndeval_about_item_qrels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyndeval")
    folder = write_all(tmp_path)
    items, run = str(folder / "items.qrels"), str(folder / "alpha.run")
    assert main(["qrels", str(folder / "graded.jsonl.gz"), "--per", "item", "-o", items]) == 0
    # d1 covers a at 4 and b at 1, d2 covers b at 5. Several levels, which pyndeval mixes up in one call of its own.
    names = ["StRecall(rel=4)@5", "StRecall(rel=2)@1", "P_IA(rel=1)@1"]
    values = {}
    for more in ([], ["--provider", "pyndeval"]):
        assert main(["evaluate", items, run, *names, *more]) == 0
        values[len(more)] = capsys.readouterr().out
    # Of q2 the first document is unknown, the second covers its item: (1 + 1) / 2, (1/2 + 0) / 2, (1 + 0) / 2.
    assert values[0] == values[2] == "StRecall(rel=4)@5\t1.0000\nStRecall(rel=2)@1\t0.2500\nP_IA@1\t0.5000\n"
    for refused in (["AP", "--provider", "pytrec_eval"], ["StRecall@5", "--provider", "pyndeval", "--bank", "x"]):
        assert main(["evaluate", items, run, *refused]) == 2
        assert capsys.readouterr().err.count("\n") == 1
