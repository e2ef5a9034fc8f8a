"""`check-run`: what a track would refuse in a run, or score otherwise."""

from __future__ import annotations

import argparse
import logging

from rubric_measures import api
from rubric_measures.base.errors import counted, escaped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    from rubric_measures.formats.reports import tracks

    what = "runs as they are submitted: answers (ragtime: rankings and nuggets, too)"
    parser.add_argument("files", metavar="FILE", nargs="+", help=what)
    parser.add_argument("--track", required=True, metavar="TRACK", help=f"one of {', '.join(tracks())}")
    parser.add_argument("--topics", metavar="FILE", help="the topics of the track: TSV, JSON lines or a list")
    parser.add_argument(
        "--collection", "-c", metavar="SOURCE", action="append",
        help="look up there whether cited documents exist; repeat it for several files of documents",
    )  # fmt: skip
    parser.epilog = """example:
  rubric_measures check-run my-run.jsonl --track rag26 --topics trec_rag_2026_queries.tsv

Prints a line a finding: an error where the track refuses the run, a warning where it takes it and scores or repairs
something. Exits with 1 where there is an error."""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    found = api.check_run(options.files, options.track, topics=options.topics, collection=options.collection)
    for one in found:
        print(escaped(str(one)))
    errors = sum(one.severity == "error" for one in found)
    said = (errors, len(found) - errors, counted(len(options.files), "file"))
    logging.getLogger("rubric_measures").info("%d errors, %d warnings in %s", *said)
    return 1 if errors else 0
