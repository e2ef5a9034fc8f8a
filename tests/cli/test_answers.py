"""The command `answers`: gates and their exit status, what a new user gets wrong, and Ctrl-C."""

from __future__ import annotations

import csv
import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from tests.models.test_end_to_end_http import endpoint, model, says


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(example_folder() / "answers.csv", "results.csv")
    return tmp_path


def run(*arguments: str) -> int:
    return main(["answers", "results.csv", "--model", "lexical", "--folder", "report", *arguments])


@pytest.mark.usefixtures("folder")
def test_gates(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--fail-under", "NuggetV=0.5", "NuggetV(strict=True)=0") == 3
    [line] = [line for line in capsys.readouterr().err.splitlines() if "error" in line and "of fluent" in line]
    assert "fluent-but-empty is 0.0000, 0.5000 under 0.5; lowest: q01 0, q02 0" in line
    assert run("--fail-under", "NuggetV=0.5", "--run", "thorough") == 0
    assert (
        main([*["leaderboard", "report/graded.jsonl.gz", "--bank", "report/bank.csv"], "--fail-under", "NuggetV=0.5"])
        == 3
    )


@pytest.mark.usefixtures("folder")
def test_a_question_of_the_bank_that_no_row_answers_scores_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    bank = Path("report/bank.csv").read_text(encoding="utf-8")
    rows = Path("results.csv").read_text(encoding="utf-8").splitlines()
    asked = ["answers", "fewer.csv", "--model", "lexical", "--run", "thorough", "--fail-under", "NuggetV=0.95"]
    Path("fewer.csv").write_text("\n".join(row for row in rows if "sourdough" not in row), encoding="utf-8")
    assert main([*asked, "--folder", "fewer", "--bank", "report/bank.csv"]) == 3
    err = capsys.readouterr().err
    assert "no row answers 1 query of the bank, which will score 0 (q09)" in err
    assert "of thorough is 0.8" in err
    assert "without an answer, and so 0: q09" in Path("fewer/index.html").read_text(encoding="utf-8")
    # As where the records are scored by themselves; and an id that was mistyped is such a query.
    Path("typed.csv").write_text("Q09,".join(bank.rsplit("q09,", 1)), encoding="utf-8")
    scored = ["leaderboard", "fewer/graded.jsonl.gz", "--bank", "report/bank.csv", "-m", "NuggetV", "--format", "text"]
    assert main(scored) == 0
    assert f" {re.findall('of thorough is ([0-9.]+)', err)[0]} " in capsys.readouterr().out
    assert main([*asked[:1], "results.csv", *asked[2:4], "--folder", "typed", "--bank", "typed.csv"]) == 0
    assert "1 query of the bank, which will score 0 (Q09); give a bank without them" in capsys.readouterr().err
    # Nobody gave this one.
    assert main([*asked[:4], "--folder", "report"]) == 0
    err = capsys.readouterr().err
    assert "report/bank.csv is used again; remove it to have it made anew" in err
    assert "or remove the bank.csv of an earlier run (--bank, --folder)" in err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["results.csv", "results.csv/in"])
def test_a_folder_that_cannot_be_made(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["answers", "results.csv", "--model", "lexical", "--folder", name]) == 2
    assert f"{name}: reading or writing failed (" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.usefixtures("folder")
def test_a_version_that_lost_facts_is_worse(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert run("--against", "report", "--fail-if-worse") == 2
    assert "(--folder, --against)" in capsys.readouterr().err
    shutil.copytree("report", "main")
    assert run("--against", "main", "--fail-if-worse") == 0
    capsys.readouterr()
    # An interval that holds 0 is no failure, and is not called one that tells anything.
    assert run("--against", "thorough", "--run", "concise", "--fail-if-worse") == 0
    out, err = capsys.readouterr()
    assert "not counted by --fail-if-worse: 6 lost facts of concise (NuggetV(rel=4" in err
    assert "thorough → concise  -0.111 [-0.370, +0.148]   1 fact gained, 6 lost\n" in out
    assert "concise against thorough: not known: 9 queries tell differences above 0.259 only" in out
    rows = list(csv.DictReader(Path("results.csv").read_text(encoding="utf-8").splitlines()))
    with Path("results.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows({**row, "answer": "" if row["system"] == "thorough" else row["answer"]} for row in rows)
    arguments = ["--against", "main", "--fail-if-worse", "--confirm", "2", "--format", "markdown"]
    assert main(["answers", "results.csv", "--model", "lexical", "--folder", "now", *arguments]) == 3
    out, err = capsys.readouterr()
    [line] = [line for line in err.splitlines() if "error" in line]
    assert "thorough of main → thorough  -0.989 [" in line and "0 facts gained, 43 lost, 1 missed by both" in line
    assert "**NuggetV(rel=4,partial_rel=3)  thorough of main → thorough" in out
    assert re.search(r"^\| thorough +\| lost +\| Chlorophyll", out, re.MULTILINE)
    assert "Facts lost (43)" in Path("now/index.html").read_text(encoding="utf-8")
    # Another bank is no number.
    bank = Path("report/bank.csv")
    bank.write_text("\n".join(bank.read_text(encoding="utf-8").split("\n")[:-2]) + "\n", encoding="utf-8")
    shutil.copy(bank, "fewer.csv")
    asked = ["answers", "results.csv", "--model", "lexical", "--folder", "other", "--against", "now"]
    assert main([*asked, "--bank", "fewer.csv"]) == 2
    out, err = capsys.readouterr()
    assert (out, "not comparable: another bank; 1 question (such as q09) had other facts before" in err) == ("", True)


@pytest.mark.usefixtures("folder")
def test_a_table_with_a_column_a_system(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "question,reference,prod,candidate\nWhy?,Air scatters light.,Air scatters light.,No.\n"
    Path("results.csv").write_text(rows, encoding="utf-8")
    assert run("--systems", "prod", "candidate") == 0
    assert [row.split()[:2] for row in capsys.readouterr().out.splitlines()[1:3]] == [
        ["prod", "1.0000"], ["candidate", "0.0000"],
    ]  # fmt: skip
    assert run("--systems", "prdo") == 2
    assert "has no column 'prdo' with the answers of a run; it has " in (said := capsys.readouterr().err)
    assert said.rstrip().endswith("(--systems)")


@pytest.mark.usefixtures("folder")
def test_the_report_leads_into_the_review_of_its_grades(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    page = Path("report/index.html").read_text(encoding="utf-8")
    assert "rubric_measures review report/graded.jsonl.gz --bank report/bank.csv" in page
    links = set(map(unescape, re.findall(r'<a href="http://127\.0\.0\.1:8642/(check\?[^"]*)">review</a>', page)))
    assert len(links) > 40


CITING = """question,answer,contexts,system
Why is the sky blue?,"Air scatters blue light most. [01] Violet is scattered, too [2]. Fine [PMID: 2].",CONTEXTS,one
Why is the sky blue?,"It mirrors the sea [1; 3].",CONTEXTS,two
"""
CONTEXTS = '"[""Air scatters blue light more than red light."", ""Violet light is scattered strongly, too.""]"'


def test_what_contexts_support_is_scored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("results.csv").write_text(CITING.replace("CONTEXTS", CONTEXTS), encoding="utf-8")
    assert run("-m", "SupportPrecision", "SupportRecall", "--fail-under", "SupportRecall=0.5") == 3
    out, err = capsys.readouterr()
    # One sentence of three cites nothing.
    assert [line.split()[:3:2] for line in out.splitlines()[1:3]] == [["one", "0.6667"], ["two", "0.0000"]]
    assert "1 citation of no context left out (such as [3] at results.csv:3)" in err
    page = Path("report/support.html").read_text(encoding="utf-8")
    assert "Sentences without full support" in page and "Fine [PMID: 2]." in page and "Links called review" not in page
    assert not (folder / "report" / "index.html").exists()
    # The scores are those of the records, and a second run asks nobody.
    assert run("-m", "SupportPrecision") == 0
    assert "no calls, 3 replies from the cache" in capsys.readouterr().err
    assert main(["leaderboard", "report/support.jsonl.gz", "-m", "SupportRecall", "--format", "text"]) == 0
    assert "0.6667" in capsys.readouterr().out
    for arguments, said in (
        (["-m", "ContradictionRate"], "which knows no contradiction (-2)"),
        (["-m", "SupportPrecision", "--bank", "results.csv"], "citations are judged by the contexts that they name"),
    ):
        assert run(*arguments) == 2
        assert said in capsys.readouterr().err.splitlines()[-1]
    Path("results.csv").write_text(
        CITING.replace("CONTEXTS", CONTEXTS).replace("[", "(", 1).replace("[2]", "").replace("[1; 3]", "")
    )
    assert run("-m", "SupportPrecision") == 2
    assert "no answer cites a context of its row" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail-under", "NuggetV"], "--fail-under 'NuggetV': expected NAME=NUMBER"),
        (["--fail-under", "NuggetV=70"], "NuggetV is 1 at most; write 0.7 for 70 % (--fail-under)"),
        (["--fail-under", "NuggetV=.7", "--run", "fluent"], "unknown run 'fluent'"),
        (["--run", "thorough"], "add --fail-under"),
        (["--against", "none"], "none"),
        (["--fail-if-worse"], "Name it with --against"),
        (["--confirm", "2"], "there is nothing to compare with; name it (--confirm, --against)"),
        (["--columns", "ask"], "expected query=COLUMN"),
        (["--columns", "query=ask"], "has no column 'ask'; it has question, system, answer, reference (--columns)"),
        (["--bank", "none.csv"], "none.csv"),
        (["--bank-from", "questions"], "the lexical grader asks no questions"),
        (["--contexts"], "there are no retrieved contexts to grade"),
        (["--bank", "results.csv"], "results.csv:1: query_id: is no test bank"),
        (["-m", "WeightedCover"], "WeightedCover(rel=4,partial_rel=3) needs the weight of every item"),
        (["-m", "NuggetA(rel=7)"], "no grade of the scale 0 to 5 is 7 or more"),
        (["-m", "SupportPrecision"], "there are no retrieved contexts that answers could cite"),
        (["-m", "SupportPrecision", "NuggetV"], "some measures are of items and some of citations"),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(*arguments) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert said in error
    assert "Traceback" not in error
    assert not (folder / "report").exists()


def table_and_bank(folder: Path, answers: int) -> list[str]:
    """Answers to one question, and a bank of three nuggets: a command over them, without a model."""
    rows = [
        {"question": "Why is the sky blue?", "query_id": "sky", "system": f"s{n}", "answer": f"Answer {n}."}
        for n in range(answers)
    ]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    nuggets = "".join(f"sky,n{n},Why is the sky blue?,fact {n},vital\n" for n in range(3))
    (folder / "bank.csv").write_text(f"query_id,item_id,query_text,text,importance\n{nuggets}", encoding="utf-8")
    return ["answers", str(folder / "a.jsonl"), "--bank", str(folder / "bank.csv"), "--folder", str(folder / "report")]


def test_items_of_an_answer_share_a_call_and_a_dry_run_says_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    command, prices = table_and_bank(tmp_path, 12), tmp_path / "prices.json"
    prices.write_text('{"m": {"input": 1000000, "output": 0}}', encoding="utf-8")
    reply = {name: {"reason": "It says so.", "grade": "5"} for name in "123"}
    with model(tmp_path, says(json.dumps(reply), "Answer")) as server:
        asked = [*command, *endpoint(server), "--prices", str(prices)]
        assert main([*asked, "--dry-run"]) == 0
        planned, _ = capsys.readouterr()
        rows = [dict(zip(*pair, strict=True)) for pair in [[line.split("\t") for line in planned.splitlines()]]]
        assert (rows[0]["calls"], rows[0]["cost_of_calls"]) == ("12", f"{int(rows[0]['prompt_tokens'])}.0000")
        assert server.stats()["calls"] == 0 and not (tmp_path / "report").exists()
        assert main(asked) == 0
        assert server.stats()["calls"] == 12
        assert main([*asked, "--items-per-call", "1", "--dry-run"]) == 0
        assert "\t36\t" in capsys.readouterr().out
    board = json.loads((tmp_path / "report" / "board.json").read_text(encoding="utf-8"))
    assert len(board["runs"]) == 12


def test_replies_that_nobody_can_read_end_the_run_early(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    command = table_and_bank(tmp_path, 59)
    with model(tmp_path, says("I would rather not say.", "Answer")) as server:
        assert main([*command, *endpoint(server)]) == 1
        # Ten were read, and some were under way.
        assert 10 <= server.stats()["calls"] <= 20
        said = capsys.readouterr().err
        assert (
            "none of the first 10 replies can be read: no rating in the reply ('I would rather not say.'); mend that"
            in said
        )
        assert not (tmp_path / "report" / "board.json").exists()
    # One that can be read is enough.
    good = json.dumps({name: {"reason": "", "grade": "5"} for name in "123"})
    with model(tmp_path, says(good, "Answer 0."), says("I would rather not say.", "Answer")) as server:
        capsys.readouterr()
        assert main([*command, *endpoint(server)]) == 2
        assert "are not graded: 174 unparsed; run again to ask anew for what cannot be read" in capsys.readouterr().err
    # Where the server is mended, the same command asks it, and then nobody any more.
    with model(tmp_path, says(good, "Answer")) as server:
        assert [main([*command, *endpoint(server)]) for _ in range(2)] == [0, 0]
        assert server.stats()["calls"] == 58


def test_gates_on_measures_that_there_are_not_are_refused_before_a_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    command = table_and_bank(tmp_path, 3)
    with model(tmp_path, says("5", "Answer")) as server:
        assert main([*command, *endpoint(server), "--fail-under", "NuggetA=.99"]) == 2
        assert "NuggetA has a limit and is not computed: the measures are NuggetV" in capsys.readouterr().err
        before = server.stats()["calls"]
        # Also before a model makes the bank.
        made = [*command[:2], "--folder", str(tmp_path / "other"), *endpoint(server), "--bank-from", "questions"]
        assert main([*made, "--fail-under", "Nuget=.9"]) == 2
        assert "Nuget" in capsys.readouterr().err
        assert server.stats()["calls"] == before


def test_a_column_a_system_is_what_the_error_names_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wide.csv").write_text("question,prod,candidate\nWhy?,a,b\n", encoding="utf-8")
    assert main(["answers", str(tmp_path / "wide.csv"), "--model", "lexical", "--folder", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "it has question, prod, candidate; " in said
    assert said.endswith("or say which (--columns, --systems)\n")
