"""Tests of ids that hold spaces: encoded in TREC files, found again where these are read beside the records."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.trec import spaced_form, spaced_ids, write_qrels, written_id
from rubric_measures.records.models import load_graded
from tests.example_records import BANK, RECORDS, RUNS, write_lines

MEASURES = ["RubricCover(rel=4)@20", "RubricQrels(measure='nDCG@10')"]


def renamed(value: object, spaces: str) -> object:
    """The example with ids of another form: q1 -> `q 1`, d1 -> `doc\\xa0é 1`."""
    text = json.dumps(value, ensure_ascii=False)
    for number in "1239":
        text = text.replace(f"q{number}", f"q{spaces}{number}").replace(f'"d{number}', f'"doc{spaces}é{number}')
    return json.loads(text.replace("/a", f"/a{spaces}x"))


@pytest.fixture(params=[" ", "\u2003 "], ids=["space", "two spaces"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    spaces = str(request.param)
    write_lines(tmp_path / "graded.jsonl.gz", renamed(RECORDS, spaces))  # type: ignore[arg-type]
    write_lines(tmp_path / "bank.jsonl", renamed(BANK, spaces))  # type: ignore[arg-type]
    encoded = written_id(f"-{spaces}-").strip("-")
    for name, text in RUNS.items():
        for number in "1239":
            text = text.replace(f"q{number}", f"q{encoded}{number}").replace(f" d{number}", f" doc{encoded}é{number}")
        (tmp_path / f"{name}.run").write_text(text, encoding="utf-8")
    plain = tmp_path / "plain"
    plain.mkdir()
    write_lines(plain / "graded.jsonl.gz", RECORDS)
    write_lines(plain / "bank.jsonl", BANK)
    for name, text in RUNS.items():
        (plain / f"{name}.run").write_text(text)
    return tmp_path


def printed(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints; a name that stands in the folder is the file there."""
    paths = [str(folder / name) if (folder / name).is_file() or name.startswith("new") else name for name in arguments]
    assert main(paths) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_runs_beside_records_score_as_they_do_without_spaces(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["leaderboard", "graded.jsonl.gz", "alpha.run", "beta.run", "--bank", "bank.jsonl", "-m", *MEASURES],
        ["evaluate", "graded.jsonl.gz", "alpha.run", *MEASURES, "--bank", "bank.jsonl"],
        ["evaluate", "graded.jsonl.gz", "beta.run", *MEASURES],
    ):
        expected = printed(folder / "plain", capsys, *command)
        assert printed(folder, capsys, *command) == expected
        assert "\t0.0000" not in expected


@pytest.mark.parametrize("bank", [[], ["--bank", "bank.jsonl"]])
def test_qrels_and_runs_that_we_wrote_score_alike(
    folder: Path, bank: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = printed(folder, capsys, "leaderboard", "graded.jsonl.gz", "alpha.run", *bank, "-m", *MEASURES)
    printed(folder, capsys, "qrels", "graded.jsonl.gz", "--per", "item", *bank, "-o", "new.qrels")
    written = (folder / "new.qrels").read_text(encoding="utf-8").splitlines()
    assert {len(line.split()) for line in written} == {4}
    assert printed(folder, capsys, "leaderboard", "new.qrels", "alpha.run", *bank, "-m", *MEASURES) == expected
    printed(folder, capsys, "qrels", "graded.jsonl.gz", *bank, "-o", "new.labels")
    by_label = printed(folder, capsys, "evaluate", "new.labels", "alpha.run", "nDCG@10", "-q", "-n")
    by_grade = printed(folder, capsys, "evaluate", "graded.jsonl.gz", "alpha.run", MEASURES[1], "-q", "-n")
    values = [line.split("\t")[-1] for line in by_label.splitlines()]
    assert values == [line.split("\t")[-1] for line in by_grade.splitlines()]
    # q1 ranks the grades 4, 5: (4 + 5 / log2 3) / (5 + 4 / log2 3) = 7.1546 / 7.5237.
    assert values[0] == "0.9509"


def test_runs_and_judgments_join_the_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["convert", "graded.jsonl.gz", "--add-run", "alpha.run", "-o", "new.jsonl.gz", "--to", "records"]
    printed(folder, capsys, *command)
    joined = printed(folder, capsys, "leaderboard", "new.jsonl.gz", "-m", MEASURES[0])
    # Two of three items of q1, the one of q2.
    assert "alpha\t0.8333" in joined


def with_collection(folder: Path) -> None:
    """docs.jsonl, queries.tsv and assessors.qrels of the example, in the ids of the folder; qrels encode them."""
    groups = load_graded(folder / "graded.jsonl.gz")
    docs = {one.doc_id: one.text for group in groups for one in group.passages}
    spaced = next(iter(docs)).replace("1", "9")
    write_lines(folder / "docs.jsonl", [{"doc_id": name, "text": text} for name, text in {**docs, spaced: "9"}.items()])
    (folder / "queries.tsv").write_text("".join(f"{group.query_id}\tText\n" for group in groups), encoding="utf-8")
    judged = [
        (one.query_id, one.doc_id, one.relevance, "0")
        for group in groups
        for p in group.passages
        for one in p.judgments
    ]
    write_qrels(folder / "assessors.qrels", judged)


def test_pooling_finds_documents_queries_and_judgments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for where in (folder, folder / "plain"):
        with_collection(where)
        names = [
            "alpha.run",
            "beta.run",
            "-c",
            "docs.jsonl",
            "--query-file",
            "queries.tsv",
            "--judgments",
            "assessors.qrels",
        ]
        printed(where, capsys, "pool", *names, "--judged", "-o", str(where / "new.jsonl"))
        groups = load_graded(where / "new.jsonl")
        graded = load_graded(where / "graded.jsonl.gz")
        assert {group.query_id for group in groups} == {group.query_id for group in graded}
        texts = {one.doc_id: one.text for group in graded for one in group.passages}
        for group in groups:
            for one in group.passages:
                assert one.text == texts.get(one.doc_id, "9")
                assert {place.doc_id for place in one.rankings} <= {one.doc_id}
        found.append([[(len(p.rankings), [j.relevance for j in p.judgments]) for p in g.passages] for g in groups])
    assert found[0] == found[1] and any(judged for group in found[0] for _, judged in group)


def test_every_space_that_is_written_is_read() -> None:
    spaces = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    assert [spaced_form(written_id(f"a{space}b")) for space in spaces] == [f"a{space}b" for space in spaces]
    assert spaced_form("50%25%2Fa") == "50%25%2Fa"


def test_what_a_terminal_would_obey_is_encoded_too() -> None:
    """Found by the fuzzer: an item id with a bidirectional mark went through `qrels --per item` as it was."""
    assert written_id("a\u202eb\x1b[1m") == "a%E2%80%AEb%1B[1m"
    assert dict(spaced_ids({"a\u202eb", "c"})) == {"a%E2%80%AEb": "a\u202eb"}
    assert written_id("日本語-é") == "日本語-é"
