"""`run`: a chain of commands; what is up to date is left out, what changed is run again with all that follows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder

PIPELINE = """
[[step]]
run = "pool runs/*.run -c texts -k 5 -o passages.jsonl.gz"

[[step]]
run = ["grade", "passages.jsonl.gz", "--bank", "questions.jsonl", "--model", "lexical", "-o", "graded.jsonl.gz"]

[[step]]
run = "leaderboard graded.jsonl.gz runs/*.run --bank questions.jsonl -m 'RubricCover(rel=4)@5' -o board.json"
inputs = ["notes.txt"]
"""
MADE_ANEW = "{} is made anew"
READ = ("passages.jsonl.gz", "graded.jsonl.gz")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    shutil.copytree(example_folder(), made / "texts", ignore=shutil.ignore_patterns("graded*", "answers*", "*.md"))
    shutil.move(made / "texts" / "runs", made / "runs")
    shutil.move(made / "texts" / "questions.jsonl", made)
    (made / "pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    (made / "notes.txt").write_text("first\n", encoding="utf-8")
    return made


def steps_of(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[str]]:
    capsys.readouterr()
    status = main(["run", str(folder / "pipeline.toml"), *more])
    said = [line.removeprefix("rubric_measures: ") for line in capsys.readouterr().err.splitlines()]
    return status, [line.partition(":")[0] for line in said if line.startswith("step ")]


def test_what_is_up_to_date_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert steps_of(folder, capsys, "--dry-run")[1][2] == "step 3 of 3 (it was not run)"
    assert not (folder / "graded.jsonl.gz").exists()
    assert steps_of(folder, capsys) == (0, [f"step {n} of 3 (it was not run)" for n in (1, 2, 3)])
    board = (folder / "board.json").read_bytes()
    manifest = json.loads((folder / "pipeline.manifest.json").read_text(encoding="utf-8"))
    assert manifest["steps"][1]["settings"]["model"] == "lexical"
    assert set(manifest["steps"][1]["inputs"]) == {"passages.jsonl.gz", "questions.jsonl"}
    assert set(manifest["steps"][2]["inputs"]) >= {"graded.jsonl.gz", "notes.txt", "runs/bm25.run"}
    assert steps_of(folder, capsys) == (0, [f"step {n} of 3 is up to date" for n in (1, 2, 3)])
    (folder / "notes.txt").write_text("second\n", encoding="utf-8")
    assert steps_of(folder, capsys)[1][1:] == ["step 2 of 3 is up to date", "step 3 of 3 (notes.txt changed)"]
    # What follows a changed step runs where what it reads is another file by then.
    (folder / "pipeline.toml").write_text(PIPELINE.replace("-k 5", "-k 3"), encoding="utf-8")
    dry = [f"step {n} of 3 ({why})" for n, why in enumerate(("its arguments changed", *map(MADE_ANEW.format, READ)), 1)]
    assert steps_of(folder, capsys, "--dry-run")[1] == dry
    assert steps_of(folder, capsys) == (0, [line.replace("is made anew", "changed") for line in dry])
    assert (folder / "board.json").read_bytes() != board
    (folder / "board.json").unlink()
    assert steps_of(folder, capsys)[1][2] == "step 3 of 3 (board.json is not there)"
    assert steps_of(folder, capsys, "--force")[1][0] == "step 1 of 3 (all steps are asked for)"


def test_finished_steps_are_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "pipeline.toml"
    path.write_text(PIPELINE.replace("RubricCover(rel=4)@5", "Cover"), encoding="utf-8")
    assert main(["run", str(path)]) == 2
    assert "'Cover'" in capsys.readouterr().err
    path.write_text(PIPELINE, encoding="utf-8")
    assert steps_of(folder, capsys)[1][1:] == ["step 2 of 3 is up to date", "step 3 of 3 (it was not run)"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step = 1", "expected steps: [[step]]"),
        ("[[step", "is no TOML"),
        ("[[step]]\nrun = 'grad x'", "step 1: run: 'grad' is no command"),
        ("[[step]]\nrun = 'pool -o'", "step 1: rubric_measures pool: error: argument"),
        ("[[step]]\nrun = 'pool new/*.run -o p'", "step 1: no file fits new/*.run"),
        ("[[step]]\nrun = 'qrels a.jsonl -o a.jsonl'", "step 1: reads a.jsonl, which step 1 writes"),
        ("[[step]]\nrun = 'qrels a.jsonl -o q'\n[[step]]\nrun = 'qrels b.jsonl -o q'", "step 2: writes q, as step 1"),
        ("[[step]]\nrun = 'qrels a.jsonl -o b.jsonl'\nafter = 'x'", "step 1: expected run, and where needed inputs"),
        ("[[step]]\nrun = 'qrels a.jsonl -o b.jsonl'", "a.jsonl: no such file"),
    ],
)
def test_wrong_files(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path / "p.toml")]) == 2
    err = capsys.readouterr().err.splitlines()
    assert said in err[-1] and not list(tmp_path.glob("*.json"))


def test_words_too_long_for_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"[[step]]\nrun = ['qrels', '{'a' * 5000}', '-o', 'q']\n"
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path / "p.toml"), "--dry-run"]) == 0
    assert "step 1 of 1" in capsys.readouterr().err
