"""`grade`: passages and a test bank through a grader, cached and resumable, into graded passage records."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rubric_measures.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from rubric_measures.formats.workbench import QueryPassages
    from rubric_measures.grading import GradingReport
    from rubric_measures.records import TestBank
    from rubric_measures.runners import RunStats

__all__ = ["HELP", "add_arguments", "run"]

HELP = "grade passages against a test bank with a model; cached, resumable"
_EXAMPLE = """example:
  rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model lexical -o graded.jsonl.gz

Every reply is kept in the cache (beside the output as OUTPUT.cache.sqlite unless --cache names a file). Run the same
command again after an interruption: finished calls are not made again."""
_LOG = logging.getLogger("rubric_measures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("passages", metavar="PASSAGES", help="passages by query, graded or not (JSON lines, .gz or -)")
    add("--bank", metavar="BANK", help="the test bank (JSON lines)")
    add("--query-texts", metavar="FILE", help="a query file in place of the bank, for prompts that label without items")
    add("--model", required=True, help="lexical, scripted:FILE, hf:NAME or openai:NAME")
    add("--prompt", action="append", default=[], metavar="NAME", help="prompt name or .toml file; may be repeated")
    add("-o", "--output", required=True, metavar="OUT", help="where the graded records go (- for stdout)")
    add("--cache", metavar="FILE", help="the reply cache (default: OUT.cache.sqlite)")
    add("--queries", metavar="ID,ID,…", help="grade only these queries; the others are left out")


def run(args: argparse.Namespace) -> int:
    """Runs the command; 1 when some grades are missing."""
    from rubric_measures.backends import make_backend
    from rubric_measures.backends.cache import ReplyCache
    from rubric_measures.formats.workbench import read_graded, write_graded
    from rubric_measures.grading import Grader, GradingReport
    from rubric_measures.runners import LocalRunner

    bank = _bank(args)
    groups: Iterable[QueryPassages] = read_graded(args.passages)
    if args.queries is not None:
        groups = _only(groups, args.queries)
    report = GradingReport()
    with ReplyCache(_cache_path(args)) as cache, _progress(args, bank) as progress:
        runner = LocalRunner(make_backend(args.model), cache, progress=progress)
        grader = Grader(runner, tuple(args.prompt))
        write_graded(args.output, grader.grade_records(groups, bank, report))
    return say(report)


def _bank(args: argparse.Namespace) -> TestBank:
    """The test bank; or one without items, that knows the texts of the queries."""
    from rubric_measures.formats.bank import load_bank
    from rubric_measures.formats.queries import read_queries
    from rubric_measures.records import TestBank

    if bool(args.bank) == bool(args.query_texts):
        raise InputError("name either --bank BANK or, for prompts that label without items, --query-texts FILE")
    if args.bank:
        return load_bank(args.bank)
    texts = read_queries(args.query_texts)
    return TestBank(dict.fromkeys(texts, ()), texts)


def _cache_path(args: argparse.Namespace) -> str:
    if args.cache:
        return str(args.cache)
    return ":memory:" if args.output == "-" else f"{args.output}.cache.sqlite"


def _only(groups: Iterable[QueryPassages], wanted: str) -> Iterator[QueryPassages]:
    """The groups of the wanted queries; a query that does not come is an error."""
    names = [name for name in (part.strip() for part in wanted.split(",")) if name]
    found: set[str] = set()
    for group in groups:
        if group.query_id in names:
            yield group
        found.add(group.query_id)
    for name in names:
        if name not in found:
            raise UnknownNameError("query", name, found, hint="(no passages of it)")
    if not names:
        raise InputError("--queries names no query")


@contextlib.contextmanager
def _progress(args: argparse.Namespace, bank: TestBank) -> Iterator[Callable[[RunStats], None] | None]:
    """A progress bar on standard error when that is a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=_total(args, bank), unit=" grades", smoothing=0.1, file=sys.stderr) as bar:

        def show(stats: RunStats) -> None:
            bar.update(stats.cached + stats.shared + stats.calls + stats.missing - bar.n)
            bar.set_postfix(
                calls=stats.calls,
                cached=stats.cached,
                failed=stats.failed,
                tokens=stats.prompt_tokens + stats.completion_tokens,
                refresh=False,
            )

        yield show


def _total(args: argparse.Namespace, bank: TestBank) -> int | None:
    """How many grades there will be, about; unknown for a stream."""
    if args.passages == "-" or not Path(args.passages).is_file() or args.queries:
        return None
    from rubric_measures.formats.workbench import read_graded

    passages = ((group.query_id, len(group.passages)) for group in read_graded(args.passages))
    return sum(count * len(bank.items.get(query_id, ())) for query_id, count in passages) * max(1, len(args.prompt))


def say(report: GradingReport) -> int:
    """Notes what was done; the exit code."""
    stats = report.run
    made = report.by_status
    kept = f", {report.kept} were there already" if report.kept else ""
    _LOG.info(
        "%d grades of %d passages%s: %s calls, %d replies from the cache",
        made.total(),
        report.passages,
        kept,
        stats.calls or "no",
        stats.cached,
    )
    if report.flagged:
        _LOG.warning("%d passages look like instructions to the grader (see looks_like_instruction)", report.flagged)
    lacking = {status: count for status, count in made.items() if status != "graded"}
    if lacking:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(lacking.items()))
        _LOG.warning("%d of %d are not graded: %s; run again to retry", sum(lacking.values()), made.total(), counts)
        return 1
    return 0
