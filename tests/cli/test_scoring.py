"""Tests of `evaluate`, `leaderboard` and `qrels` as a user runs them: real processes, good and bad input."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ir_measures.__main__ import main_cli as ir_measures_program

from rubric_measures.cli import main
from tests.example_records import RECORDS, write_all, write_lines

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(write_all(tmp_path))
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in the folder; `ir_measures` is that program's own."""

    def call(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        monkeypatch.setattr(sys, "argv", [*arguments])
        capsys.readouterr()
        try:
            code = ir_measures_program() if arguments[:1] == ("ir_measures",) else main([*arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return subprocess.CompletedProcess(arguments, code or 0, *capsys.readouterr())

    return call


@pytest.mark.parametrize(
    "arguments",
    [
        ["nDCG@10", "AP", "P@5", "RR"],
        ["nDCG@10 AP(rel=2)", "Judged@10"],
        ["-q", "AP"],
        ["-q", "-n", "nDCG@10"],
        ["-p", "7", "Bpref", "Rprec"],
        ["-p", "-1", "nDCG"],
        ["-o", "jsonl", "RR@10"],
        ["-q", "-o", "jsonl", "nDCG@3"],
    ],
)
def test_evaluate_prints_what_ir_measures_prints(run: Run, arguments: list[str]) -> None:
    options = [a for a in arguments if a.startswith("-") or a in ("7", "-1", "jsonl")]
    measures = [a for a in arguments if a not in options]
    ours = run("evaluate", "qrels.txt", "alpha.run", *measures, *options)
    assert ours.returncode == 0
    assert ours.stdout == run("ir_measures", "qrels.txt", "alpha.run", *measures, *options).stdout


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        ("ERR_IA@5", ["-q"]),
        ("alpha_nDCG@5", ["-q", "-n"]),
        ("nNRBP", ["-q", "-o", "jsonl"]),
        ("P_IA@5", ["-p", "6"]),
        ("AP_IA", ["-q", "-p", "-1"]),
    ],
)
def test_intent_aware_lines_stand_in_the_order_of_ir_measures(
    folder: Path, run: Run, measure: str, options: list[str]
) -> None:
    pytest.importorskip("pyndeval")
    (folder / "items.qrels").write_text("q9 a d1 1\nq2 a d1 1\nq2 b d2 1\nq1 a d1 1\nq1 b d2 1\nq10 a d5 1\n")
    (folder / "odd.run").write_text("q2 Q0 d2 1 3 s\nq2 Q0 d1 2 2 s\nq3 Q0 d1 1 2 s\nq10 Q0 d6 1 2 s\nq1 Q0 d2 1 3 s\n")
    theirs = run("ir_measures", "items.qrels", "odd.run", measure, *options).stdout
    ours = run("evaluate", "items.qrels", "odd.run", measure, *options)
    assert ours.stdout == theirs


def test_measures_over_plain_subtopics_are_those_of_ir_measures_where_scores_tie(folder: Path, run: Run) -> None:
    pytest.importorskip("pyndeval")
    rows = [("q1", item, doc_id, 1 + (doc_id == "d3")) for doc_id in ("d1", "d2", "d3") for item in (doc_id, "all")]
    (folder / "items.qrels").write_text("".join(f"{' '.join(map(str, row))}\n" for row in rows))
    (folder / "tied.run").write_text("".join(f"q1 Q0 d{place} {place} 1 s\n" for place in (4, 1, 5, 2, 3)))
    given = ["items.qrels", "tied.run"]
    measures = ["alpha_nDCG@2", "ERR_IA@2", "StRecall@2", "StRecall(rel=2)@2"]
    theirs = [run("ir_measures", *given, measure, "-q", "-p", "6").stdout for measure in measures]
    by_query, means = zip(*(said.splitlines() for said in theirs), strict=True)
    ours = run("evaluate", *given, *measures, "-q", "-p", "6")
    assert ours.stdout.splitlines() == [*by_query, *means]
    # A scale is no part of plain judgments: with one they are grades, and ties go to the larger id.
    graded = run("evaluate", *given, "StRecall@2", "--grader", "scale=0-2:2")
    assert graded.stdout == "StRecall(rel=2)@2\t0.0000\n"


def test_evaluate_rubric_measures_over_records(run: Run) -> None:
    arguments = ["evaluate", "graded.jsonl.gz", "alpha.run", "RubricCover(rel=4)@20", "--bank", "bank.jsonl"]
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (0, "RubricCover(rel=4)@20\t0.5000\n")
    assert "grades exist for 70.0 % of what" in done.stderr
    by_query = run(*arguments, "-q", "NuggetV(rel=4,strict=True)")
    assert by_query.stdout.splitlines() == [
        "q1\tRubricCover(rel=4)@20\t0.5000",
        "q1\tNuggetV(rel=4,strict=True)\t0.5000",
        "q2\tRubricCover(rel=4)@20\t1.0000",
        "q2\tNuggetV(rel=4,strict=True)\t1.0000",
        "q3\tRubricCover(rel=4)@20\t0.0000",
        "q3\tNuggetV(rel=4,strict=True)\t0.0000",
        "all\tRubricCover(rel=4)@20\t0.5000",
        "all\tNuggetV(rel=4,strict=True)\t0.5000",
    ]


def test_evaluate_wraps_standard_measures_over_items_and_says_so(run: Run) -> None:
    done = run("evaluate", "graded.jsonl.gz", "alpha.run", "nDCG@10")
    assert done.stdout.startswith("RubricQrels(measure='nDCG@10')\t")
    assert "the labels that the grades imply" in done.stderr
    # The same through files: export the labels, score them with the stock program.
    assert run("qrels", "graded.jsonl.gz", "-o", "labels.qrels").returncode == 0
    stock = run("ir_measures", "labels.qrels", "alpha.run", "nDCG@10").stdout
    assert done.stdout.split("\t")[1] == stock.split("\t")[1]


def test_item_qrels_keep_the_denominator_of_the_bank(run: Run) -> None:
    bank = ["--bank", "bank.jsonl"]
    assert run("qrels", "graded.jsonl.gz", *bank, "--per", "item", "-o", "items.qrels").returncode == 0
    measure = "RubricCover(rel=4)@20"
    direct = run("evaluate", "graded.jsonl.gz", "alpha.run", measure, *bank).stdout
    assert run("evaluate", "items.qrels", "alpha.run", measure).stdout == direct == f"{measure}\t0.5000\n"


def test_qrels_per_passage_and_item(run: Run) -> None:
    assert run("qrels", "graded.jsonl.gz").stdout == "q1 0 d1 4\nq1 0 d2 5\nq2 0 d3 5\n"
    count = run("qrels", "graded.jsonl.gz", "--label", "count", "--rel", "1").stdout
    assert count == "q1 0 d1 2\nq1 0 d2 1\nq2 0 d3 1\n"
    items = run("qrels", "graded.jsonl.gz", "--per", "item").stdout
    assert "q1 q1/b d2 5\n" in items
    assert "q1 q1/c * 0\n" in items


def test_leaderboard_over_runs_and_inside_records(folder: Path, run: Run) -> None:
    over_runs = run("leaderboard", "graded.jsonl.gz", "alpha.run", "beta.run", "-m", "RubricCover(rel=4)@20")
    assert over_runs.returncode == 0
    assert [line.split("\t")[0] for line in over_runs.stdout.splitlines()] == ["run_id", "alpha", "beta"]
    assert "run beta does not rank 1 query (such as q2), and scores 0 there" in over_runs.stderr
    assert "signature" in over_runs.stderr
    inside = run("leaderboard", "graded.jsonl.gz", "--output", "board.md", "--format", "markdown")
    assert inside.returncode == 0
    assert "| one " in (folder / "board.md").read_text()


def test_the_same_bytes_whatever_the_hash_seed(folder: Path) -> None:
    words = "leaderboard graded.jsonl.gz --format json --bank bank.jsonl -m NuggetW(rel=4) AP nDCG@3"
    command = [sys.executable, "-m", "rubric_measures", *words.split()]
    root = str(Path(__file__).parents[2])
    first, second = (
        subprocess.run(command, env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": seed}, capture_output=True)
        for seed in "12"
    )
    assert first.stdout == second.stdout != b""


def test_standard_input(folder: Path, run: Run) -> None:
    content = (folder / "alpha.run").read_bytes()
    piped = run("evaluate", "qrels.txt", "-", "AP", stdin=content)
    assert piped.stdout == run("evaluate", "qrels.txt", "alpha.run", "AP").stdout != ""
    records = gzip.decompress((folder / "graded.jsonl.gz").read_bytes())
    assert run("leaderboard", "-", "-m", "RubricCover", stdin=records).stdout.count("\n") == 3


BAD: list[tuple[str, list[str], str]] = [
    (
        "no such measure",
        ["evaluate", "qrels.txt", "alpha.run", "nDCGG@10"],
        "unknown measure 'nDCGG': did you mean nDCG",
    ),
    ("syntax", ["evaluate", "qrels.txt", "alpha.run", "RubricCover(rel=)"], "RubricCover(rel=)"),
    (
        "no such file",
        ["evaluate", "nowhere.txt", "alpha.run", "AP"],
        "nowhere.txt: no such folder or file, and no such ir_datasets",
    ),
    (
        "no such file of a grader",
        ["leaderboard", "nowhere.gz", "--grader", "gpt"],
        "nowhere.gz: no such folder or file",
    ),
    ("empty run", ["evaluate", "qrels.txt", "empty", "AP"], "empty: is empty"),
    ("no such records", ["leaderboard", "nowhere.gz"], "nowhere.gz: no such folder or file"),
    ("truncated gzip", ["leaderboard", "cut.jsonl.gz"], "cut.jsonl.gz: the gzip file is truncated"),
    ("wrong json", ["leaderboard", "wrong.jsonl"], "wrong.jsonl:1"),
    ("nan", ["evaluate", "qrels.txt", "nan.run", "AP"], "nan.run:1: score: 'nan' is not a finite number"),
    ("negative rank", ["evaluate", "qrels.txt", "negative.run", "AP"], "negative.run:1: rank: '-1'"),
    (
        "twice",
        ["evaluate", "qrels.txt", "twice.run", "AP"],
        "twice.run:2: document 'd1' of query 'q1' is already in line 1",
    ),
    ("columns", ["evaluate", "qrels.txt", "columns.run", "AP"], "columns.run:1: has 4 columns"),
    ("bank lacks query", ["leaderboard", "graded.jsonl.gz", "--bank", "short.jsonl"], "unknown query 'q2'"),
    (
        "qrels are no records",
        ["leaderboard", "qrels.txt"],
        "these are no graded records with rankings; name runs to score",
    ),
    ("plain qrels, rubric measure", ["evaluate", "conflict.txt", "alpha.run", "AP"], "conflict.txt:2"),
    ("unknown command", ["leaderbord"], "unknown command 'leaderbord': did you mean leaderboard"),
    ("output folder", ["leaderboard", "graded.jsonl.gz", "--output", "no/such/folder/x"], "cannot be written"),
    ("-n alone", ["evaluate", "qrels.txt", "alpha.run", "AP", "-n"], "only makes sense with"),
    ("over the input", ["qrels", "graded.jsonl.gz", "-o", "graded.jsonl.gz"], "graded.jsonl.gz: is read here"),
    (
        "over judgments",
        ["agreement", "judgments:graded.jsonl.gz", "qrels.txt", "-o", "graded.jsonl.gz"],
        "is read here",
    ),
    ("many places", ["leaderboard", "graded.jsonl.gz", "--places", "999"], "-p 999: give a number of decimal"),
    ("compat", ["leaderboard", "graded.jsonl.gz", "--compat", "workbench", "-m", "NuggetA@3"], "knows RubricCover"),
]


@pytest.mark.parametrize(("arguments", "message"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_bad_input_is_one_line_and_exit_code_2(folder: Path, run: Run, arguments: list[str], message: str) -> None:
    (folder / "empty").write_text("")
    (folder / "cut.jsonl.gz").write_bytes((folder / "graded.jsonl.gz").read_bytes()[:-40])
    (folder / "wrong.jsonl").write_text('["q1", [{"paragraph_id": "d1", "text": 3}]]\n')
    (folder / "nan.run").write_text("q1 Q0 d1 1 nan x\n")
    (folder / "negative.run").write_text("q1 Q0 d1 -1 2.0 x\n")
    (folder / "twice.run").write_text("q1 Q0 d1 1 2.0 x\nq1 Q0 d1 2 1.0 x\n")
    (folder / "columns.run").write_text("q1 Q0 d1 1\n")
    (folder / "conflict.txt").write_text("q1 0 d1 1\nq1 0 d1 2\n")
    write_lines(
        folder / "short.jsonl",
        [{"query_id": "q1", "items": [{"query_id": "q1", "question_id": "q1/a", "question_text": "?"}]}],
    )
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_odd_but_legal_input(folder: Path, run: Run) -> None:
    plain = run("evaluate", "qrels.txt", "alpha.run", "AP", "nDCG@10").stdout
    text = (folder / "alpha.run").read_text()
    (folder / "crlf.run").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (folder / "packed").write_bytes(gzip.compress(text.encode()))
    for odd in ("crlf.run", "packed"):
        assert run("evaluate", "qrels.txt", odd, "AP", "nDCG@10").stdout == plain
    ids = {"q1": "tqa2:L_0001/a%20b", "d1": "Zürich#1/ü"}
    for name in ("qrels.txt", "alpha.run"):
        changed = (folder / name).read_text()
        for old, new in ids.items():
            changed = changed.replace(f"{old} ", f"{new} ")
        (folder / name).write_text(changed, encoding="utf-8")
    assert run("evaluate", "qrels.txt", "alpha.run", "AP", "nDCG@10").stdout == plain


def test_help_and_version(run: Run) -> None:
    overview = run("--help")
    assert overview.returncode == 0
    assert "leaderboard" in overview.stdout
    assert run("--version").stdout.strip().count(".") == 2
    assert run().returncode == 2


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Commands over graded records, and what they print of a file that is grouped by query."""
    folder = write_all(tmp_path_factory.mktemp("scoring"))
    bank, alpha, beta = (str(folder / name) for name in ("bank.jsonl", "alpha.run", "beta.run"))
    return {
        "evaluate": [alpha, "RubricCover(rel=4)@20", "nDCG@10", "-q", "--bank", bank],
        "leaderboard": ["--format", "json", "--bank", bank],
        "leaderboard ": [alpha, beta, "--format", "json"],
        "qrels": ["--rel", "2"],
        "qrels ": ["--per", "item", "--bank", bank],
        "verify item-statistics": ["--format", "jsonl", "--bank", bank],
    }


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_order_of_lines_changes_no_output(
    commands: dict[str, list[str]], data: st.DataObject, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    apart = [[query_id, one] for query_id, passages in RECORDS for one in passages]
    grouped = write_lines(tmp_path / "grouped.jsonl", apart)
    shuffled = write_lines(tmp_path / "shuffled.jsonl", data.draw(st.permutations(apart)))
    name = data.draw(st.sampled_from(sorted(commands)))
    printed = []
    for path in (grouped, shuffled):
        assert main([*name.split(), str(path), *commands[name]]) == 0
        printed.append(
            sorted(capsys.readouterr().out.splitlines()) if name.startswith("verify") else capsys.readouterr().out
        )
    assert printed[0] == printed[1] != ""


def test_a_run_that_comes_through_a_pipe_is_scored(folder: Path, run: Run) -> None:
    os.mkfifo(folder / "pipe")
    for qrels in ("qrels.txt", "graded.jsonl.gz"):
        expected = run("evaluate", qrels, "alpha.run", "P@1", "-q").stdout
        writer = threading.Thread(target=(folder / "pipe").write_bytes, args=((folder / "alpha.run").read_bytes(),))
        writer.start()
        assert run("evaluate", qrels, "pipe", "P@1", "-q").stdout == expected != ""
        writer.join()


@pytest.mark.parametrize("again", [["--checks"], ["--report", "r.html"]])
def test_a_run_that_is_read_twice_comes_through_no_pipe(
    again: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    os.mkfifo("pipe")
    words = ["leaderboard", "graded.jsonl.gz", "pipe", *again]
    # Nobody writes into it: who opened it would wait for ever.
    assert main(words) == 2
    assert "pipe: is no regular file, so it cannot be read twice" in capsys.readouterr().err


def test_records_from_standard_input_in_any_order(folder: Path, run: Run) -> None:
    (q1, (first, second)), q2 = RECORDS
    write_lines(folder / "mixed.jsonl", [[q1, first], q2, [q1, second]])
    content = gzip.compress((folder / "mixed.jsonl").read_bytes())
    for command in (["qrels"], ["leaderboard", "--format=text"], ["verify", "all"]):
        piped = run(*command, "-", stdin=content)
        assert piped.stdout == run(*command, "mixed.jsonl").stdout != ""


@pytest.mark.parametrize(
    "more",
    [
        ["--grader", "m"],
        ["--grader", "prompt=p"],
        ["--grader", "items=tqa"],
        ["--grader", "set=a"],
        ["--grader", "assessors=override"],
    ],
)
def test_options_that_would_do_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    folder = write_all(tmp_path)
    qrels, run = str(folder / "qrels.txt"), str(folder / "alpha.run")
    commands = [["evaluate", qrels, run, "nDCG"], ["evaluate", qrels, run, "RubricCover"], ["qrels", qrels]]
    commands += [["leaderboard", qrels, run]]
    for command in commands:
        assert main([*command, *more]) == 2, command
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "qrels.txt: holds judgments, no grade sets to choose by " in err and "leave that out (--grader)" in err


def test_options_that_a_way_to_score_does_not_know_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_all(tmp_path)
    graded, qrels, bank = (str(folder / name) for name in ("graded.jsonl.gz", "qrels.txt", "bank.jsonl"))
    workbench = ["leaderboard", graded, "--compat", "workbench", "-m", "RubricCover@20"]
    commands = {
        ("leave yours out (--on-failed)", *workbench, "--on-failed", "zero"),
        ("how they become labels (--label, --rel)", "qrels", graded, "--per", "item", "--label", "count"),
        ("choose by model; leave that out (--grader)", "agreement", qrels, f"judgments:{graded}", "--grader", "model"),
        ("leave it out (--bank)", "agreement", qrels, qrels, "--bank", bank),
        ("is for graded records alone; leave it out (--grader-b)", "agreement", graded, qrels, "--grader-b", "model"),
    }
    for said, *command in sorted(commands):
        assert main(command) == 2, command
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert said in err
    for more, count in (([], 1), (["--no-overall"], 0)):
        assert main([*workbench, "--format", "json", *more]) == 0
        assert capsys.readouterr().out.count('"best"') == count
    # The grades and the bank are in the signature there, too.
    signatures = set()
    for more in ([], ["--bank", bank]):
        assert main([*workbench, *more]) == 0
        (said,) = [line for line in capsys.readouterr().err.splitlines() if "signature" in line]
        assert 'grades:["model=model,prompt=' in said
        signatures.add(said)
    assert len(signatures) == 2
