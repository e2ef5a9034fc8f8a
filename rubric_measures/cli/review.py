"""`review`: a local page where assessors check grades and edit the test bank."""

from __future__ import annotations

import argparse
import logging
import shlex
from functools import partial
from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError
from rubric_measures.cli.inputs import REVIEW_PORT, passed, wanted_of

if TYPE_CHECKING:
    from rubric_measures.review.session import Review

_LOG = logging.getLogger("rubric_measures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add = parser.add_argument
    add("graded", metavar="GRADED", help="graded records; or passages of pool, to edit a bank before it is graded")
    add("--bank", metavar="BANK", required=True, help="the test bank")
    add("--state", metavar="FILE", help="the SQLite file of the review (default: GRADED.review.sqlite beside it)")
    add("--assessor", metavar="NAME", default="", help="who works here (default: the page asks)")
    add("--llm", help="review the grades of this model (default: the first one)")
    add("--prompt-class", help="review the grades of this prompt (default: the first one)")
    add(
        "--grade-set",
        metavar="HASH",
        help="the grades made with these settings, where that prompt has grades of several",
    )
    add("--scale", metavar="SCALE", help="the scale of the grades where the file says another: 0-3:2 (2 covers)")
    add("-m", "--measures", metavar="MEASURE", nargs="+", action="extend", help="measures of the impact screen")
    add("--show-grades", action="store_true", help="show the grader's grade at once; such grades are not blind ones")
    add("--audit", metavar="N", type=int, default=100, help="grades in the random audit sample (default 100)")
    add("--guidelines", metavar="FILE", help="instructions for assessors, in Markdown; the key g shows them")
    add(
        "--assign",
        metavar="NAME=QUERIES",
        nargs="+",
        action="extend",
        default=[],
        help="queries of each assessor: ada=q1-q10 bob=q6-q15 (from and to, in the order of the bank; commas between)",
    )
    add("--adjudicator", metavar="NAME", default="", help="who decides what assessors differ on; it counts for all")
    server = parser.add_argument_group("server")
    server.add_argument("--port", type=int, default=REVIEW_PORT, help=f"default {REVIEW_PORT}; 0 takes a free one")
    server.add_argument("--bind", metavar="ADDRESS", default="127.0.0.1", help="default 127.0.0.1: this machine only")
    server.add_argument("--allow-remote", action="store_true", help="let other machines connect; they need the token")
    server.add_argument("--token", help="the token for other machines (default: a random one, printed)")
    server.add_argument("--host-name", metavar="NAME", action="append", default=[], help="a name of this machine")
    files = parser.add_argument_group("files, without a server")
    files.add_argument("--export", metavar="FOLDER", help="write records with corrections, bank and audit trail")
    parser.epilog = """examples:
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --assessor ada
  rubric_measures review passages.jsonl.gz --bank draft.csv --assessor ada
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --export corrected/"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures.base.files import keep_for_good, paused_collector
    from rubric_measures.review.app import check_bind, open_review, serve

    if options.audit < 1:
        raise InputError(f"--audit {options.audit}: a sample has 1 grade or more")
    hosts = check_bind(options.bind, options.allow_remote, options.host_name)
    with paused_collector():
        review = open_review(
            options.graded,
            options.bank,
            wanted=wanted_of(options),
            blind=not options.show_grades,
            **passed(options, open_review),
        )
        review.next_command = partial(_grading, "" if review.material.is_draft else " --only-changed")
        if not options.export:
            review.prepare()
        keep_for_good()
    try:
        if options.export:
            _export(review, options)
        else:
            serve(review, hosts, **passed(options, serve))
    finally:
        review.store.close()
    return 0


def _export(review: Review, options: argparse.Namespace) -> None:
    from rubric_measures.review.session import export_review

    made = export_review(review.store, review.material, options.bank, options.export)
    for path in made.paths:
        _LOG.info("wrote %s", path)
    for note in made.notes:
        _LOG.warning("%s", note)
    if made.waiting and not review.material.is_draft:
        _LOG.info("items in the bank that need grades: %d; see grade --only-changed", made.waiting)


def _grading(more: str, passages: str, bank: str) -> str:
    passages, bank = shlex.quote(passages), shlex.quote(bank)
    return f"rubric_measures grade {passages} --bank {bank}{more} --model MODEL -o OUT.jsonl.gz"
