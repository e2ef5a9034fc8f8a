"""Tests of the names of runs that are read together."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats.trec import distinct_run_names
from tests.example_records import write_all


def test_the_same_name_by_tag_and_file_is_refused() -> None:
    with pytest.raises(InputError, match="two runs are called 'x', by tag and by file"):
        distinct_run_names(["t", "t"], ["a/x.run", "b/x.run"])
    with pytest.raises(InputError, match="two runs are called 'x'"):
        distinct_run_names(["x", "t", "t"], ["1.run", "x.run", "3.run"])


def test_a_leaderboard_of_runs_with_one_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_all(tmp_path)
    for name in ("alpha", "beta"):
        path = folder / f"{name}.run"
        path.write_text(path.read_text().replace(f" {name}\n", " rank\n"))
    runs = [str(folder / "alpha.run"), str(folder / "beta.run")]
    # The checks read the runs again.
    for more in ((), ("--checks",)):
        assert main(["leaderboard", str(folder / "graded.jsonl.gz"), *runs, "-m", "RubricCover", *more]) == 0
        out, err = capsys.readouterr()
        assert [line.split("\t")[0] for line in out.splitlines()] == ["run_id", "alpha", "beta"]
        assert err.count("2 runs share the tag rank") == 1
