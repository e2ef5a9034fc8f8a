"""`check`: was a leaderboard file made from these grades, this bank and these runs, with these settings?"""

from __future__ import annotations

import argparse
from pathlib import Path

from rubric_measures import api
from rubric_measures.base.errors import InputError, escaped, naming
from rubric_measures.cli.inputs import add_grade_options, add_label_option, loaded_grades


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "board", metavar="BOARD.json", help="a leaderboard as written by `leaderboard --format json`; or a bundle"
    )
    parser.add_argument(
        "graded", metavar="GRADED", nargs="?", help="as for `leaderboard`; of a bundle another one to compare it with"
    )
    parser.add_argument("runs", metavar="RUN", nargs="*", help="as for `leaderboard`")
    parser.add_argument("--qrels", metavar="QRELS", help="as for `leaderboard`")
    add_grade_options(parser)
    add_label_option(parser)
    parser.epilog = """example:
  rubric_measures leaderboard graded.jsonl.gz bm25.run --bank questions.jsonl -o board.json
  rubric_measures check board.json graded.jsonl.gz bm25.run --bank questions.jsonl

Prints each input, setting and number that differs, and exits with 1 where one does. A bundle holds all of it:
  rubric_measures check evaluation
  rubric_measures check evaluation later        (what changed from one bundle to the other)"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    if Path(options.board).is_dir():
        return _check_bundle(options)
    if options.graded is None:
        raise InputError(f"{options.board}: name the grades that the board was scored from")
    board = api.read_board(options.board)
    # As the board has it, unless it is said.
    if options.on_failed is None:
        options.on_failed = board.on_failed
    grades = loaded_grades(options.graded, options)
    # The measures are those of the board: what does not fit them is the file.
    with naming(options.graded):
        differences = board.differences(grades, options.runs or None, qrels=options.qrels)
    for line in differences or [f"the same: signature {board.signature}"]:
        print(escaped(line))
    return 1 if differences else 0


def _check_bundle(options: argparse.Namespace) -> int:
    if options.graded is not None:
        lines = api.compare_bundles(options.board, options.graded)
        is_same = lines == ["nothing changed"]
    else:
        lines = api.check_bundle(options.board)
        is_same = not lines
    for line in lines or ["the same: every file and number"]:
        print(escaped(line))
    return 0 if is_same else 1
