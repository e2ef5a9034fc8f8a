"""Tests of ids that hold spaces: encoded in TREC files, found again where these are read beside the records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.errors import InputError
from rubric_measures.formats.trec_ids import as_known, spaced_ids, written_id
from tests.example_records import BANK, RECORDS, RUNS, write_lines

MEASURES = ["RubricCover(rel=4)@20", "RubricQrels(measure='nDCG@10')"]


def renamed(value: object, spaces: str) -> object:
    """The example with ids of another form: q1 -> `q 1`, d1 -> `doc\\xa0é 1`."""
    text = json.dumps(value, ensure_ascii=False)
    for number in "1239":
        text = text.replace(f"q{number}", f"q{spaces}{number}").replace(f'"d{number}', f'"doc{spaces}é{number}')
    return json.loads(text.replace("/a", f"/a{spaces}x"))


@pytest.fixture(params=[" ", "\u00a0", "\u2003 "], ids=["space", "no-break space", "two spaces"])
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


def test_large_records_beside_runs_on_disk_score_alike(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["leaderboard", "graded.jsonl.gz", "alpha.run", "beta.run", "--bank", "bank.jsonl", "-m", *MEASURES]
    expected = printed(folder, capsys, *command)
    monkeypatch.setattr("rubric_measures.cli.leaderboard.LARGE", 0)
    assert printed(folder, capsys, *command) == expected


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


def test_ids_that_are_written_alike_are_refused() -> None:
    assert spaced_ids(["a", "b%20c"]) == {}
    assert as_known(["a%20b", "x%20y"], ["a b", "c"]) == ["a b", "x%20y"]
    with pytest.raises(InputError, match="'a%20b' and 'a b' are written alike"):
        spaced_ids(["a b", "a%20b"])
