"""`power`: how many queries an experiment needs, from the scores of a board that is there."""

from __future__ import annotations

import argparse

from rubric_measures import api
from rubric_measures.cli.inputs import add_output_options, add_places_option, passed, write_output
from rubric_measures.corpora.overwriting import keep_inputs
from rubric_measures.formats.leaderboards import FORMS as BOARD_FORMS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("--delta", metavar="D", type=float, required=True, help="the difference that shall be found")
    parser.add_argument(
        "--from", dest="scores", metavar="BOARD", nargs="+", required=True,
        help="leaderboards with per-query scores, such as those of a pilot; several files are put together",
    )  # fmt: skip
    parser.add_argument("-m", "--measures", metavar="MEASURE", nargs="+", help="these measures only (default: all)")
    parser.add_argument(
        "--run-count", metavar="M", type=int, help="runs that will be compared (default: as many as BOARD has)"
    )
    parser.add_argument("--alpha", type=float, default=0.05, help="significance level (default 0.05)")
    parser.add_argument("--power", type=float, default=0.8, help="the chance to find the difference (default 0.8)")
    parser.add_argument(
        "--correction", choices=("holm", "bh", "none"), default="holm", help="for BOARD's own pairs (default holm)"
    )
    parser.add_argument(
        "--board-form", dest="form", choices=BOARD_FORMS, help="the form of BOARD, where it cannot be seen"
    )
    add_output_options(parser)
    add_places_option(parser)
    parser.epilog = """example:
  rubric_measures power --delta 0.05 --from board.json"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs(options.output, *options.scores)
    found = api.power(*options.scores, **passed(options, api.power))
    write_output(options, found.report(options.places))
    found.log_notes()
    return 0
