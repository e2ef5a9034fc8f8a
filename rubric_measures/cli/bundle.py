"""`bundle`: an evaluation as a folder that a stranger can check."""

from __future__ import annotations

import argparse

from rubric_measures import api
from rubric_measures.cli.inputs import add_grade_options, passed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("folder", metavar="DIR", help="the folder to make")
    parser.add_argument("graded", metavar="GRADED", help="as for `leaderboard`")
    parser.add_argument("runs", metavar="RUN", nargs="*", help="as for `leaderboard`")
    parser.add_argument(
        "--board", metavar="BOARD.json", required=True, help="as written by `leaderboard --format json`"
    )
    parser.add_argument("--qrels", metavar="QRELS", help="as for `leaderboard`")
    parser.add_argument(
        "--also", metavar="FILE", nargs="+", default=[], help="also put in: prompts, a ledger, other boards"
    )
    parser.add_argument(
        "--no-texts", dest="texts", action="store_false",
        help="digests in the place of passages' texts, and no replies: for licensed corpora",
    )  # fmt: skip
    add_grade_options(parser)
    parser.epilog = """example:
  rubric_measures leaderboard graded.jsonl.gz bm25.run --bank questions.jsonl -o board.json
  rubric_measures bundle evaluation graded.jsonl.gz bm25.run --board board.json --bank questions.jsonl
  rubric_measures check evaluation              (anywhere: recomputes every number)
  rubric_measures check evaluation later        (two bundles: what changed)"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    files = (options.folder, options.board, options.graded, options.runs)
    made = api.bundle(*files, **passed(options, api.bundle))
    print(f"{made}: checked, {sum(1 for path in made.rglob('*') if path.is_file())} files")
    return 0
