"""Tests of `evaluate`, `leaderboard` and `qrels` as a user runs them: real processes, good and bad input."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric_measures.cli import main
from tests.example_records import RECORDS, write_all, write_lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_all(tmp_path)


def run(folder: Path, *arguments: str, stdin: bytes | None = None, seed: str = "0") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "rubric_measures", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONHASHSEED": seed},
        input=stdin,
        capture_output=True,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def ir_measures_program(folder: Path, *arguments: str) -> str:
    program = "import ir_measures.__main__ as m; m.main_cli()"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


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
        ["--provider", "pytrec_eval", "AP", "nDCG@20"],
    ],
)
def test_evaluate_prints_what_ir_measures_prints(folder: Path, arguments: list[str]) -> None:
    options = [a for a in arguments if a.startswith("-") or a in ("7", "-1", "jsonl", "pytrec_eval")]
    measures = [a for a in arguments if a not in options]
    ours = run(folder, "evaluate", "qrels.txt", "alpha.run", *measures, *options)
    assert ours.returncode == 0
    assert ours.stdout == ir_measures_program(folder, "qrels.txt", "alpha.run", *measures, *options)


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
def test_intent_aware_lines_stand_in_the_order_of_ir_measures(folder: Path, measure: str, options: list[str]) -> None:
    pytest.importorskip("pyndeval")
    (folder / "items.qrels").write_text("q9 a d1 1\nq2 a d1 1\nq2 b d2 1\nq1 a d1 1\nq1 b d2 1\nq10 a d5 1\n")
    (folder / "odd.run").write_text("q2 Q0 d2 1 3 s\nq2 Q0 d1 2 2 s\nq3 Q0 d1 1 2 s\nq10 Q0 d6 1 2 s\nq1 Q0 d2 1 3 s\n")
    theirs = ir_measures_program(folder, "items.qrels", "odd.run", measure, *options)
    ours = run(folder, "evaluate", "items.qrels", "odd.run", measure, *options)
    assert ours.stdout == theirs


def test_measures_over_plain_subtopics_are_those_of_ir_measures_where_scores_tie(folder: Path) -> None:
    pytest.importorskip("pyndeval")
    rows = [("q1", item, doc_id, 1 + (doc_id == "d3")) for doc_id in ("d1", "d2", "d3") for item in (doc_id, "all")]
    (folder / "items.qrels").write_text("".join(f"{' '.join(map(str, row))}\n" for row in rows))
    (folder / "tied.run").write_text("".join(f"q1 Q0 d{place} {place} 1 s\n" for place in (4, 1, 5, 2, 3)))
    given = ["items.qrels", "tied.run"]
    measures = ["alpha_nDCG@2", "ERR_IA@2", "StRecall@2", "StRecall(rel=2)@2"]
    theirs = [ir_measures_program(folder, *given, measure, "-q", "-p", "6") for measure in measures]
    by_query, means = zip(*(said.splitlines() for said in theirs), strict=True)
    ours = run(folder, "evaluate", *given, *measures, "-q", "-p", "6")
    assert ours.stdout.splitlines() == [*by_query, *means]
    # A scale is no part of plain judgments: with one they are grades, and ties go to the larger id.
    graded = run(folder, "evaluate", *given, "StRecall@2", "--grader", "scale=0-2:2")
    assert graded.stdout == "StRecall(rel=2)@2\t0.0000\n"


def test_evaluate_rubric_measures_over_records(folder: Path) -> None:
    arguments = ["evaluate", "graded.jsonl.gz", "alpha.run", "RubricCover(rel=4)@20", "--bank", "bank.jsonl"]
    done = run(folder, *arguments)
    assert (done.returncode, done.stdout) == (0, "RubricCover(rel=4)@20\t0.5000\n")
    assert "3 of 4 ranked passages are graded" in done.stderr
    by_query = run(folder, *arguments, "-q", "NuggetV(rel=4,strict=True)")
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


def test_evaluate_wraps_standard_measures_over_items_and_says_so(folder: Path) -> None:
    done = run(folder, "evaluate", "graded.jsonl.gz", "alpha.run", "nDCG@10")
    assert done.stdout.startswith("RubricQrels(measure='nDCG@10')\t")
    assert "read the labels that the grades imply" in done.stderr
    # The same through files: export the labels, score them with the stock program.
    assert run(folder, "qrels", "graded.jsonl.gz", "-o", "labels.qrels").returncode == 0
    stock = ir_measures_program(folder, "labels.qrels", "alpha.run", "nDCG@10")
    assert done.stdout.split("\t")[1] == stock.split("\t")[1]


def test_item_qrels_keep_the_denominator_of_the_bank(folder: Path) -> None:
    bank = ["--bank", "bank.jsonl"]
    assert run(folder, "qrels", "graded.jsonl.gz", *bank, "--per", "item", "-o", "items.qrels").returncode == 0
    measure = "RubricCover(rel=4)@20"
    direct = run(folder, "evaluate", "graded.jsonl.gz", "alpha.run", measure, *bank).stdout
    assert run(folder, "evaluate", "items.qrels", "alpha.run", measure).stdout == direct == f"{measure}\t0.5000\n"


def test_qrels_per_passage_facet_and_item(folder: Path) -> None:
    assert run(folder, "qrels", "graded.jsonl.gz").stdout == "q1 0 d1 4\nq1 0 d2 5\nq2 0 d3 5\n"
    count = run(folder, "qrels", "graded.jsonl.gz", "--label", "count", "--rel", "1").stdout
    assert count == "q1 0 d1 2\nq1 0 d2 1\nq2 0 d3 1\n"
    items = run(folder, "qrels", "graded.jsonl.gz", "--per", "item").stdout
    assert "q1 q1/b d2 5\n" in items
    assert "q1 q1/c * 0\n" in items


def test_leaderboard_over_runs_and_inside_records(folder: Path) -> None:
    over_runs = run(folder, "leaderboard", "graded.jsonl.gz", "alpha.run", "beta.run", "-m", "RubricCover(rel=4)@20")
    assert over_runs.returncode == 0
    assert [line.split("\t")[0] for line in over_runs.stdout.splitlines()] == ["run_id", "alpha", "beta"]
    assert "run beta does not rank 1 query (such as q2), and scores 0 there" in over_runs.stderr
    assert "signature" in over_runs.stderr
    inside = run(folder, "leaderboard", "graded.jsonl.gz", "--output", "board.md", "--format", "markdown")
    assert inside.returncode == 0
    assert "| one " in (folder / "board.md").read_text()


def test_the_same_bytes_whatever_the_hash_seed(folder: Path) -> None:
    arguments = [
        "leaderboard",
        "graded.jsonl.gz",
        "--format",
        "json",
        "--bank",
        "bank.jsonl",
        "-m",
        "NuggetW(rel=4)",
        "AP",
        "nDCG@3",
    ]
    assert run(folder, *arguments, seed="1").stdout == run(folder, *arguments, seed="2").stdout != ""


def test_standard_input(folder: Path) -> None:
    content = (folder / "alpha.run").read_bytes()
    piped = run(folder, "evaluate", "qrels.txt", "-", "AP", stdin=content)
    assert piped.stdout == run(folder, "evaluate", "qrels.txt", "alpha.run", "AP").stdout != ""
    records = gzip.decompress((folder / "graded.jsonl.gz").read_bytes())
    assert run(folder, "leaderboard", "-", "-m", "RubricCover", stdin=records).stdout.count("\n") == 3


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
        "nowhere.txt: no such file, and no such ir_datasets",
    ),
    ("no such file of a grader", ["leaderboard", "nowhere.gz", "--grader", "gpt"], "nowhere.gz: no such file, and no"),
    ("no such run", ["evaluate", "qrels.txt", "nowhere.run", "AP"], "nowhere.run: cannot be read"),
    ("empty run", ["evaluate", "qrels.txt", "empty", "AP"], "empty: is empty"),
    ("empty records", ["leaderboard", "empty"], "empty: is empty"),
    ("no such records", ["leaderboard", "nowhere.gz"], "nowhere.gz: no such file"),
    ("truncated gzip", ["leaderboard", "cut.jsonl.gz"], "cut.jsonl.gz: the gzip file is truncated"),
    ("wrong json", ["leaderboard", "wrong.jsonl"], "wrong.jsonl:1"),
    ("nan", ["evaluate", "qrels.txt", "nan.run", "AP"], "nan.run:1: score: 'nan' is not a finite number"),
    ("text score", ["leaderboard", "graded.jsonl.gz", "text.run"], "text.run:1: score: 'high'"),
    ("negative rank", ["evaluate", "qrels.txt", "negative.run", "AP"], "negative.run:1: rank: '-1'"),
    (
        "twice",
        ["evaluate", "qrels.txt", "twice.run", "AP"],
        "twice.run:2: document 'd1' of query 'q1' is already in line 1",
    ),
    ("columns", ["evaluate", "qrels.txt", "columns.run", "AP"], "columns.run:1: has 4 columns"),
    ("bank lacks query", ["leaderboard", "graded.jsonl.gz", "--bank", "short.jsonl"], "unknown query 'q2'"),
    ("unknown llm", ["leaderboard", "graded.jsonl.gz", "--grader", "gpt"], "holds no grades for"),
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
    ("over a run", ["leaderboard", "graded.jsonl.gz", "alpha.run", "--output", "./alpha.run"], "is read here"),
    ("places", ["evaluate", "qrels.txt", "alpha.run", "AP", "-p", "-5"], "-p -5: give a number of decimal places"),
    ("many places", ["leaderboard", "graded.jsonl.gz", "--places", "999"], "-p 999: give a number of decimal"),
    ("compat", ["leaderboard", "graded.jsonl.gz", "--compat", "workbench", "-m", "NuggetA@3"], "knows RubricCover"),
]


@pytest.mark.parametrize(("arguments", "message"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_bad_input_is_one_line_and_exit_code_2(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "empty").write_text("")
    (folder / "cut.jsonl.gz").write_bytes((folder / "graded.jsonl.gz").read_bytes()[:-40])
    (folder / "wrong.jsonl").write_text('["q1", [{"paragraph_id": "d1", "text": 3}]]\n')
    (folder / "nan.run").write_text("q1 Q0 d1 1 nan x\n")
    (folder / "text.run").write_text("q1 Q0 d1 1 high x\n")
    (folder / "negative.run").write_text("q1 Q0 d1 -1 2.0 x\n")
    (folder / "twice.run").write_text("q1 Q0 d1 1 2.0 x\nq1 Q0 d1 2 1.0 x\n")
    (folder / "columns.run").write_text("q1 Q0 d1 1\n")
    (folder / "conflict.txt").write_text("q1 0 d1 1\nq1 0 d1 2\n")
    write_lines(
        folder / "short.jsonl",
        [{"query_id": "q1", "items": [{"query_id": "q1", "question_id": "q1/a", "question_text": "?"}]}],
    )
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = run(folder, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_odd_but_legal_input(folder: Path) -> None:
    plain = run(folder, "evaluate", "qrels.txt", "alpha.run", "AP", "nDCG@10").stdout
    text = (folder / "alpha.run").read_text()
    (folder / "crlf.run").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (folder / "packed").write_bytes(gzip.compress(text.encode()))
    for odd in ("crlf.run", "packed"):
        assert run(folder, "evaluate", "qrels.txt", odd, "AP", "nDCG@10").stdout == plain
    ids = {"q1": "tqa2:L_0001/a%20b", "d1": "Zürich#1/ü"}
    for name in ("qrels.txt", "alpha.run"):
        changed = (folder / name).read_text()
        for old, new in ids.items():
            changed = changed.replace(f"{old} ", f"{new} ")
        (folder / name).write_text(changed, encoding="utf-8")
    assert run(folder, "evaluate", "qrels.txt", "alpha.run", "AP", "nDCG@10").stdout == plain


def test_a_kind_of_picture_without_a_picture_is_an_error(folder: Path) -> None:
    done = run(folder, "leaderboard", "graded.jsonl.gz", "--plot-kind", "dots")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing is drawn; add --plot" in done.stderr


def test_help_and_version() -> None:
    overview = run(Path.cwd(), "--help")
    assert overview.returncode == 0
    assert "leaderboard" in overview.stdout
    assert run(Path.cwd(), "--version").stdout.strip().count(".") == 2
    assert run(Path.cwd()).returncode == 2


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Commands over graded records, and what they print of a file that is grouped by query."""
    folder = write_all(tmp_path_factory.mktemp("scoring"))
    bank, alpha, beta = (str(folder / name) for name in ("bank.jsonl", "alpha.run", "beta.run"))
    return {
        "evaluate": [alpha, "RubricCover(rel=4)@20", "nDCG@10", "-q", "--bank", bank],
        "leaderboard": ["--format", "json", "--bank", bank],
        "leaderboard ": [alpha, beta, "--format", "trec_eval"],
        "qrels": ["--rel", "2"],
        "qrels ": ["--per", "item", "--bank", bank],
        "verify item-statistics": ["--format", "jsonl", "--bank", bank],
        "verify graders": ["--format", "jsonl", "--bank", bank],
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


def test_a_run_that_comes_through_a_pipe_is_scored(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for qrels in ("qrels.txt", "graded.jsonl.gz"):
        expected = run(folder, "evaluate", qrels, "alpha.run", "P@1", "-q").stdout
        writer = threading.Thread(target=(folder / "pipe").write_bytes, args=((folder / "alpha.run").read_bytes(),))
        writer.start()
        assert run(folder, "evaluate", qrels, "pipe", "P@1", "-q").stdout == expected != ""
        writer.join()


@pytest.mark.parametrize("again", [["--checks"], ["--report", "r.html"], ["--plot", "p.pdf", "--plot-kind", "heat"]])
def test_a_run_that_is_read_twice_comes_through_no_pipe(
    again: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    os.mkfifo("pipe")
    words = ["leaderboard", "graded.jsonl.gz", "pipe", *again]
    # Nobody writes into it: who opened it would wait for ever.
    assert main(words) == 2
    assert "pipe: is no regular file, so it cannot be read twice" in capsys.readouterr().err


def test_records_from_standard_input_in_any_order(folder: Path) -> None:
    (q1, (first, second)), q2 = RECORDS
    write_lines(folder / "mixed.jsonl", [[q1, first], q2, [q1, second]])
    content = gzip.compress((folder / "mixed.jsonl").read_bytes())
    for command in (["qrels"], ["leaderboard", "--format=text"], ["verify", "all"]):
        piped = run(folder, *command, "-", stdin=content)
        assert piped.stdout == run(folder, *command, "mixed.jsonl").stdout != ""


def test_evaluate_refuses_a_provider_that_knows_no_items(folder: Path) -> None:
    done = run(folder, "evaluate", "graded.jsonl.gz", "alpha.run", "nDCG@10", "--provider", "pytrec_eval")
    assert done.returncode == 2 and "write qrels of passages (for measures over passages) first" in done.stderr
    plain = run(folder, "evaluate", "graded.jsonl.gz", "alpha.run", "nDCG@10")
    named = run(folder, "evaluate", "graded.jsonl.gz", "alpha.run", "nDCG@10", "--provider", "rubric_measures")
    assert plain.stdout == named.stdout != ""


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
    commands += [["evaluate", qrels, run, "nDCG", "--provider", "pytrec_eval"], ["leaderboard", qrels, run]]
    for command in commands:
        assert main([*command, *more]) == 2, command
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "qrels.txt: holds judgments, no grade sets to choose by " in err and "leave that out (--grader)" in err
    assert main(["evaluate", qrels, run, "nDCG", "--facets"]) == 2
    assert "no facets; leave them out (--facets)" in capsys.readouterr().err


def test_options_that_a_way_to_score_does_not_know_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_all(tmp_path)
    graded, qrels, bank = (str(folder / name) for name in ("graded.jsonl.gz", "qrels.txt", "bank.jsonl"))
    workbench = ["leaderboard", graded, "--compat", "workbench", "-m", "RubricCover@20"]
    commands = {
        ("leave them out (--facets)", *workbench, "--facets"),
        ("leave yours out (--on-failed)", *workbench, "--on-failed", "zero"),
        ("how they become labels (--label, --rel)", "qrels", graded, "--per", "item", "--label", "count"),
        ("choose by model; leave that out (--grader)", "agreement", qrels, f"judgments:{graded}", "--grader", "model"),
        ("leave it out (--bank)", "agreement", qrels, qrels, "--bank", bank),
        ("leave its choice out (--grader-b)", "agreement", graded, qrels, "--grader-b", "model"),
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
