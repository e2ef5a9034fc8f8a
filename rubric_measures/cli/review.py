"""`review`: a local page where people check grades and edit the test bank."""

from __future__ import annotations

import argparse
import logging
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.cli.inputs import keep_inputs
from rubric_measures.measures.parsing import note_labels, parse_measures, rubric_measures_of

if TYPE_CHECKING:
    from rubric_measures.review.session import Review

__all__ = ["HELP", "add_arguments", "listen", "run"]

HELP = "a local page where people check grades and edit the bank"
_LOG = logging.getLogger("rubric_measures")
DEFAULT_MEASURES = ["RubricCover(rel=4)@20", "RubricQrels(measure='nDCG@10')"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add = parser.add_argument
    add("graded", metavar="GRADED", help="graded records")
    add("--bank", metavar="BANK", required=True, help="the test bank")
    add("--state", metavar="FILE", help="the SQLite file of the review (default: GRADED.review.sqlite beside it)")
    add("--person", metavar="NAME", default="", help="who works here (default: the page asks)")
    add("--llm", help="review the grades of this model (default: the first one)")
    add("--prompt-class", help="review the grades of this prompt (default: the first one)")
    add(
        "--grade-set",
        metavar="HASH",
        help="the grades made with these settings, where that prompt has grades of several",
    )
    add("-m", "--measures", metavar="MEASURE", nargs="+", action="extend", help="measures of the impact screen")
    add("--show-grades", action="store_true", help="show the grader's grade at once; such grades are not blind ones")
    server = parser.add_argument_group("server")
    server.add_argument("--port", type=int, default=8642, help="default 8642; 0 takes a free one")
    server.add_argument("--bind", metavar="ADDRESS", default="127.0.0.1", help="default 127.0.0.1: this machine only")
    server.add_argument("--allow-remote", action="store_true", help="let other machines connect; they need the token")
    server.add_argument("--token", help="the token for other machines (default: a random one, printed)")
    server.add_argument("--host-name", metavar="NAME", action="append", default=[], help="a name of this machine")
    files = parser.add_argument_group("files, without a server")
    files.add_argument("--export", metavar="FOLDER", help="write records with corrections, bank and audit trail")
    files.add_argument(
        "--bank-format",
        metavar="FORMAT",
        action="append",
        default=[],
        help="with --export: the bank also as nuggets, nugget-bank, nugget-lists or rubrics; may be repeated",
    )
    files.add_argument("--import", dest="import_file", metavar="FILE", help="take in the grades of a saved queue page")
    files.add_argument("--export-queue", metavar="FILE.html", help="write a queue as a page that needs no server")
    orders = ["disagreement", "influence", "audit", "query"]
    files.add_argument("--order", default=orders[0], choices=orders, help="of the page's grades (default disagreement)")
    files.add_argument("--size", type=int, default=100, help="grades in the page (default 100)")
    files.add_argument("--seed", type=int, default=0, help="of the random audit sample (default 0)")
    files.add_argument("--query", metavar="ID", default="", help="only this query")
    parser.epilog = """examples:
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --person ada
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --export corrected/ --bank-format nuggets
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --export-queue audit.html --order audit
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --import review-grades.jsonl"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures.base.garbage_collector import keep_for_good, paused_collector
    from rubric_measures.review.safety import check_bind

    if options.size < 1:
        raise InputError(f"--size {options.size}: a page holds 1 grade or more")
    if options.export_queue:
        state = _state_path(options)
        keep_inputs(options.export_queue, options.graded, options.bank, options.import_file, state)
    if options.bank_format and not options.export:
        raise InputError("--bank-format names formats of the exported bank; add --export")
    hosts = check_bind(options.bind, options.allow_remote, options.host_name)
    makes_files = bool(options.import_file or options.export_queue or options.export)
    with paused_collector():
        review = _open(options)
        if not makes_files:
            review.prepare()
        keep_for_good()
    try:
        if makes_files:
            _make_files(review, options)
            return 0
        return _serve(review, options, hosts)
    finally:
        review.store.close()


def _state_path(options: argparse.Namespace) -> str:
    return str(options.state or f"{options.graded}.review.sqlite")


def _open(options: argparse.Namespace) -> Review:
    from rubric_measures.base.signature import bank_hash
    from rubric_measures.grades.grade_sets import GradeFilter
    from rubric_measures.review.requests import checked_person
    from rubric_measures.review.review_data import load_material
    from rubric_measures.review.session import Review
    from rubric_measures.review.store import ReviewStore

    if options.graded == "-":
        raise InputError("review reads a file, because its state lies beside it; give a file")
    asked = parse_measures(options.measures or DEFAULT_MEASURES)
    wanted = GradeFilter(options.llm, options.prompt_class, grade_set=options.grade_set)
    material = load_material(options.graded, options.bank, wanted)
    path = _state_path(options)
    person = checked_person(options.person) if options.person else ""
    project = Path(options.graded).resolve().parent
    store = ReviewStore(path, material.bank, waiting=material.waiting)
    try:
        store.belong_to(bank=bank_hash(material.bank), grader=material.grader)
        lost = sum(cell not in material.numbers for cell in store.snapshot().grades)
        if lost:
            raise InputError(
                f"{path}: has grades of {lost} passages and items that {options.graded} lacks; "
                "give the records that were reviewed, or another --state"
            )
    except BaseException:
        store.close()
        raise
    note_labels(asked)
    measures = rubric_measures_of(asked)
    return Review(material, store, measures, options.bank, project, person, not options.show_grades)


def _make_files(review: Review, options: argparse.Namespace) -> None:
    """Grades come in before anything goes out, so that they are in it."""
    if options.import_file:
        _take_in(review, options.import_file)
    if options.export_queue:
        _write_queue(review, options)
    if options.export:
        _write_export(review, options)


def _take_in(review: Review, path: str) -> None:
    from rubric_measures.review.export import import_grades

    new, lines = import_grades(path, review.store, review.material)
    _LOG.info("%d grades taken in; %d of the file were there already", new, lines - new)


def _write_queue(review: Review, options: argparse.Namespace) -> None:
    from rubric_measures.base.files import atomic_writer
    from rubric_measures.review.export import static_page
    from rubric_measures.review.queues import make_queue

    if options.query and options.query not in review.material.bank.items:
        raise UnknownNameError("query", options.query, review.material.bank.items)
    snapshot = review.store.snapshot()
    entries = make_queue(
        review.material,
        options.order,
        query_id=options.query,
        seed=options.seed,
        size=options.size,
        people=snapshot.grades,
        left=review.left(snapshot),
    )[: options.size]
    if not entries:
        raise InputError(f"the queue by {options.order} is empty; choose another --order")
    with atomic_writer(options.export_queue) as stream:
        cells = [entry.cell for entry in entries]
        by_influence = options.order == "influence"
        stream.write(static_page(review.material, snapshot, cells, f"Review: {options.order}", by_influence))
    _LOG.info("%d grades to check in %s", len(entries), options.export_queue)


def _write_export(review: Review, options: argparse.Namespace) -> None:
    from rubric_measures.review.export import export_review

    made = export_review(review.store, review.material, options.bank, options.export, options.bank_format)
    for path in made.paths:
        _LOG.info("wrote %s", path)
    for note in made.notes:
        _LOG.warning("%s", note)
    if made.waiting:
        _LOG.info("%d items in the bank need grades; see grade --only-changed", made.waiting)


def _serve(review: Review, options: argparse.Namespace, hosts: frozenset[str]) -> int:
    from rubric_measures.base.extras import require
    from rubric_measures.review.app import make_app
    from rubric_measures.review.safety import ANY_ADDRESS, Access, is_loopback

    uvicorn = require("uvicorn", "review")
    local = is_loopback(options.bind)
    token = options.token or (None if local else secrets.token_urlsafe(24))
    app = make_app(review, Access(hosts, review.store.secret(), token))
    listener = listen(options.bind, options.port)
    # All addresses of the machine have no name of their own that a browser elsewhere could open.
    name = options.host_name[0] if options.bind in ANY_ADDRESS else options.bind
    shown = f"[{name}]" if ":" in name else name
    address = f"http://{shown}:{listener.getsockname()[1]}/" + (f"?token={quote(token)}" if token else "")
    _LOG.info("review at %s (Ctrl-C stops; everything is kept in %s)", address, review.store.path)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        # Longer than clients keep an idle connection: a server that closes first may do so under a request in flight.
        timeout_keep_alive=75,
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        InputError: it cannot listen there.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio sends small packets at once only where the protocol is named; else the end of an answer waits 40 ms for
    # the browser's word that its beginning arrived.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        # Before the address is printed: whoever reads it may connect at once.
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(f"{address}:{port}: cannot listen there ({error.strerror or error})") from None
    return listener
