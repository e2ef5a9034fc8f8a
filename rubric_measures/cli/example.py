"""`example`: the main job from start to end on the example collection, each step printed as the command that it is."""

from __future__ import annotations

import argparse
import shlex
import shutil
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--output", "-o", metavar="FOLDER", default="example-output", help="default: example-output")
    parser.add_argument("--copy", metavar="FOLDER", help="only put the collection there, and print the commands")
    parser.epilog = """examples:
  rubric_measures example -o /tmp/example
  rubric_measures example --copy example   (all files at hand, with the commands that use them)

Passages are pooled from seven rankings and three generated-answer runs, graded against a bank of questions and a bank
of nuggets by the embedded lexical grader, and scored; then the answers by what they cite. No key, no GPU, no network;
a second run makes no call."""


def _steps(source: Path, folder: Path) -> list[list[str]]:
    passages, graded = str(folder / "passages.jsonl.gz"), str(folder / "graded.jsonl.gz")
    answers = sorted(str(path) for path in (source / "answers").glob("*.jsonl"))
    support = str(folder / "support.jsonl.gz")
    questions, nuggets = str(source / "questions.jsonl"), str(source / "nuggets.jsonl")
    cache = ["--cache", str(folder / "replies.sqlite")]
    by_rubric = ["RubricCover(rel=4)@5", "nRubricCover(rel=4)@5", 'RubricQrels(measure="nDCG@5")']
    by_nugget = [f"Nugget{letter}(rel=4,partial_rel=3)" for letter in "VWA"]
    return [
        ["pool", "--collection", str(source), "-o", passages],
        ["grade", passages, "--bank", questions, "--model", "lexical", *cache, "-o", graded],
        ["grade", graded, "--bank", nuggets, "--model", "lexical", *cache, "-o", graded],
        ["qrels", graded, "--bank", questions, "-o", str(folder / "rubric.qrels")],
        ["leaderboard", graded, "--bank", questions, "-m", *by_rubric, "--format", "text"],
        ["leaderboard", graded, "--bank", nuggets, "-m", *by_nugget, "--format", "text"],
        ["leaderboard", graded, "--bank", questions, "-m", *by_rubric,
         "-o", str(folder / "leaderboard.tsv"), "--report", str(folder / "report.html")],
        ["grade", "--support", *answers, "--collection", str(source), "--model", "lexical", *cache, "-o", support],
        ["leaderboard", support, "--format", "text"],
    ]  # fmt: skip


def _copied(source: Path, target: Path) -> Path:
    """The collection, copied into a folder that is new or empty."""
    from rubric_measures.base.errors import InputError

    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"{target}: is there already; name a folder that is new or empty")
        shutil.copytree(source, target, dirs_exist_ok=True)
    except OSError as error:
        raise InputError(f"{target}: cannot be made ({error.strerror or error})") from None
    return target


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures.base.errors import InputError
    from rubric_measures.cli import run_command
    from rubric_measures.corpora.collections import example_folder

    folder = Path(options.output)
    if folder.resolve() == example_folder().resolve():
        raise InputError(f"{folder}: is the example collection itself; name another folder")
    if options.copy is not None:
        source = _copied(example_folder(), Path(options.copy))
        print(f"{source}: the example collection. What `rubric_measures example` runs, over these files:\n")
        print(f"$ mkdir -p {shlex.quote(str(folder))}")
        for step in _steps(source, folder):
            print(f"$ rubric_measures {shlex.join(step)}")
        return 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror or error})") from None
    source = example_folder()
    status = 0
    for step in _steps(source, folder):
        print(f"\n$ rubric_measures {shlex.join(step)}", flush=True)
        status = max(status, run_command(step))
    print(f"\ngraded records: {folder / 'graded.jsonl.gz'}")
    print(f"qrels:          {folder / 'rubric.qrels'}   (trec_eval -l 4 reads a grade of 4 as relevant)")
    print(f"leaderboard:    {folder / 'leaderboard.tsv'}")
    print(f"citations:      {folder / 'support.jsonl.gz'}   (words of the sentence in the document: a floor, no judge)")
    print(f"report:         {folder / 'report.html'}   (open it in a browser: which facts each run misses, and why)")
    graded = [str(folder / "graded.jsonl.gz"), "--bank", str(source / "questions.jsonl")]
    print(f"\nCheck the grades yourself:\n$ rubric_measures review {shlex.join(graded)}", flush=True)
    return status
