"""Commands for people: list, review, verify.

`list`: what there is of prompts, measures, formats or models, plug-ins included, a line each.

`review`: a local page where assessors check grades and edit the test bank.

`verify`: reports with which assessors check the grader and the test bank.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import itertools
import logging
import shlex
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rubric_measures.base.errors import InputError, UnknownNameError, escaped
from rubric_measures.base.files import atomic_writer, paused_collector
from rubric_measures.base.tables import TABLE_FORMS, Cell, Column, Report, Table, render
from rubric_measures.cli.declared import command
from rubric_measures.cli.inputs import (
    REVIEW_PORT,
    Printed,
    add_endpoint_options,
    add_grade_options,
    add_grader_option,
    add_output_options,
    add_review_option,
    ids,
    is_watched,
    passed,
    review_of,
    settings_of,
)
from rubric_measures.corpora.overwriting import keep_cache, keep_inputs

if TYPE_CHECKING:
    from rubric_measures.prompts.library import Prompt
    from rubric_measures.review.session import Review
    from rubric_measures.verification.sections import Section


@command(files={"kind": "KIND", "name": "[NAME]"})
def list_(
    *,
    kind: Literal["prompts", "measures", "formats", "models"],
    name: str | None = None,
    printed: Printed = Printed(),
) -> int:
    """the prompts, measures, formats or models that there are, a line each

    examples:
      rubric_measures list prompts
      rubric_measures list prompts nuggets.assign
      rubric_measures list measures NuggetV
      rubric_measures list formats
      rubric_measures list models

    Args:
        kind: what to list.
        name: of prompts and measures: show this one alone, with all there is to say.
    """
    if name is not None:
        if kind not in _ONE:
            raise InputError(f"{name}: of {kind} there is only the list; leave the name out")
        text = _ONE[kind](name)
        with atomic_writer(printed.output) as stream:
            stream.write(text)
        return 0
    headers, rows = _ALL[kind]()
    printed.write(Report([Table([Column(header, is_left=True) for header in headers], [*rows])]))
    return 0


_Listed = tuple[tuple[str, ...], Iterable[list[Cell]]]


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _prompts() -> _Listed:
    from rubric_measures.prompts.entries import prompt_names
    from rubric_measures.prompts.library import load_prompt

    rows = (_prompt_row(name, load_prompt(name)) for name in sorted(prompt_names()))
    return ("prompt", "target", "task", "scale", "source"), rows


def _prompt_row(name: str, prompt: Prompt) -> list[Cell]:
    return [name, prompt.target, prompt.task, str(prompt.grade_scale or "-"), prompt.citation]


def _prompt(name: str) -> str:
    from rubric_measures.prompts.library import load_prompt

    prompt = load_prompt(name)
    parts = [("system", prompt.system), ("user", prompt.text)]
    if prompt.format == "json":
        parts = [("fields of the message, as JSON", ", ".join(prompt.json_fields))]
    # As it is sent; escaped line by line, since a prompt may be a plug-in's.
    shown = [f"[{head}]\n{text.strip(chr(10))}\n" for head, text in parts if text]
    row = _prompt_row(name, prompt)[1:4]
    head = " ".join(f"{key}={value}" for key, value in zip(("target", "task", "scale"), row, strict=True))
    return "".join(
        f"{escaped(line)}\n" for line in f"{name}: {head}\n{prompt.citation}\n\n{''.join(shown)}".split("\n")
    )


def _registered() -> dict[str, object]:
    from ir_measures import measures

    from rubric_measures import RubricMeasure

    return {name: one for name, one in measures.registry.items() if isinstance(one, RubricMeasure)}


def _measures() -> _Listed:
    def row(name: str, one: object) -> list[Cell]:
        parameters = getattr(one, "SUPPORTED_PARAMS", {})
        shown = [parameter for parameter in parameters if parameter != "cutoff"]
        return [f"{name}@k" if "cutoff" in parameters else name, ", ".join(shown), _first_line(one)]

    return ("measure", "parameters", "what it is"), (row(*pair) for pair in _registered().items())


def _measure(name: str) -> str:
    known = _registered()
    if name.removesuffix("@k") not in known:
        raise UnknownNameError("measure", name, known)
    return f"{name}\n\n{inspect.getdoc(known[name.removesuffix('@k')])}\n"


def _formats() -> _Listed:
    from rubric_measures.formats import FORMATS

    def yes(value: object) -> str:
        return "yes" if value else "-"

    rows: Iterable[list[Cell]] = (
        [n, yes(f.read), yes(f.write), yes(f.recognise), f.description] for n, f in sorted(FORMATS.items())
    )
    return ("format", "read", "written", "recognised", "what it is"), rows


# Kind of model -> the extra that it needs, and what stands behind the colon.
_OF_KIND = {
    "lexical": ("", "-", "words of the item in the passage: a floor, offline"),
    "scripted": ("FILE", "-", "replies from a file: teaching, tests, replays"),
    "hf": ("NAME", "hf", "a model of the Hugging Face hub, or a folder of one, on this machine"),
    "openai": ("NAME", "openai", "any endpoint that speaks OpenAI's protocol (--base-url)"),
    "litellm": ("PROVIDER/NAME", "litellm", "Anthropic, Gemini, Bedrock, … by the library LiteLLM"),
}


def _models() -> _Listed:
    from rubric_measures.models import BACKENDS

    def row(kind: str) -> list[Cell]:
        if kind not in _OF_KIND:
            return [f"{kind}:NAME", "plug-in", _first_line(BACKENDS[kind])]
        name, extra, text = _OF_KIND[kind]
        return [f"{kind}:{name}" if name else kind, extra, text]

    return ("model", "extra", "what it is"), map(row, BACKENDS)


_ALL: dict[str, Callable[[], _Listed]] = {
    "prompts": _prompts,
    "measures": _measures,
    "formats": _formats,
    "models": _models,
}
_ONE: dict[str, Callable[[str], str]] = {"prompts": _prompt, "measures": _measure}

_LOG = logging.getLogger("rubric_measures")


def add_review_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add = parser.add_argument
    add("graded", metavar="GRADED", help="graded records; or passages of pool, to edit a bank before it is graded")
    add("--bank", metavar="BANK", required=True, help="the test bank")
    add("--state", metavar="FILE", help="the SQLite file of the review (default: GRADED.review.sqlite beside it)")
    add("--assessor", metavar="NAME", default="", help="who works here (default: the page asks)")
    add_grader_option(parser, "whose grades are reviewed (default: the first one)")
    add("-m", "--measures", metavar="MEASURE", nargs="+", action="extend", help="measures of the impact screen")
    add("--show-grades", action="store_true", help="show the grader's grade at once; such grades are not blind ones")
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
    audit = parser.add_argument_group("the audit").add_argument
    audit("--audit", metavar="N", type=int, default=50, help="passages, five items of each (default 50)")
    audit(
        "--settle",
        metavar="RUN",
        nargs=2,
        action="append",
        default=[],
        help="two runs whose difference it is to settle; it says when it did",
    )
    audit("--level", type=float, default=0.95, help="how sure all that is settled is (default .95)")
    audit("--smallest", metavar="D", type=float, help="a difference that does not matter")
    audit("--depth", "-k", type=int, default=20, help="documents of each ranking that count (default 20)")
    server = parser.add_argument_group("server")
    usual = f"127.0.0.1:{REVIEW_PORT}"
    text = f"where it listens (default {usual}: this machine only); port 0 takes a free one"
    server.add_argument("--bind", metavar="HOST:PORT", default=usual, help=text)
    text = "let other machines connect, which need the link; NAME is what they call this one"
    server.add_argument("--allow-remote", metavar="NAME", help=text)
    files = parser.add_argument_group("files, without a server")
    files.add_argument("--export", metavar="FOLDER", help="write records with corrections, bank and audit trail")
    parser.epilog = """examples:
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --assessor ada
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --settle hybrid bm25
  rubric_measures review passages.jsonl.gz --bank draft.csv --assessor ada
  rubric_measures review graded.jsonl.gz --bank questions.jsonl --export corrected/"""


def run_review(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures.review.app import check_bind, open_review, serve

    check_bind(options.bind, options.allow_remote)
    with paused_collector():
        review = open_review(
            options.graded,
            options.bank,
            blind=not options.show_grades,
            **passed(options, open_review),
        )
        review.next_command = partial(_grading, "" if review.material.is_draft else " --only-changed")
        if not options.export:
            review.prepare()
        # Nobody looks through them, now (2 s for records of 400,000 grades) or in the middle of an answer.
        gc.freeze()
    try:
        if options.export:
            _export(review, options)
        else:
            serve(review, **passed(options, serve))
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


# What only the canary suite uses.
_OF_CANARIES = ("model", "prompt", "base_url", "model_option", "cache", "dry_run", "prices", "max_calls", "max_cost")


def add_verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    from rubric_measures.verification import REPORTS

    parser.add_argument("report", metavar="REPORT", choices=tuple(REPORTS), help="one of the reports below")
    parser.add_argument("graded", metavar="GRADED", help="graded records, or a table of grades")
    add = parser.add_argument
    add(
        "--runs",
        metavar="RUN",
        nargs="+",
        action="extend",
        default=[],
        help="item statistics, bank: these TREC runs make the leaderboard (default: the rankings in GRADED)",
    )
    add("--min-judgment", metavar="N", type=int, help="the least judgment that is relevant (default 1)")
    add("--queries", type=ids, metavar="ID,ID,…", help="only these queries")
    add_output_options(parser, [*TABLE_FORMS, "html"])
    add_review_option(parser)
    add = parser.add_argument_group("canary").add_argument
    add("--model", help="the grader: lexical, scripted:FILE, hf:NAME, openai:NAME or litellm:PROVIDER/NAME")
    add("--prompt", action="append", default=[], metavar="NAME", help="its prompt; may be repeated")
    add_endpoint_options(add)
    add("--cache", metavar="FILE", help="the reply cache (default: replies are not kept)")
    add("--dry-run", action="store_true", help="say what would be called and what it would cost; report nothing")
    add("--prices", metavar="FILE", help="price table, for --dry-run and --max-cost")
    add("--max-calls", type=int, metavar="N", help="make so many calls at most")
    add("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")
    add_grade_options(parser, scores=False)
    width = max(map(len, REPORTS))
    listing = "\n".join(f"  {name:<{width}}  {text}" for name, text in REPORTS.items())
    parser.epilog = f"""reports:
{listing}

examples:
  rubric_measures verify all graded.jsonl.gz --bank questions.jsonl -o report.html
  rubric_measures verify uncovered-passages graded.jsonl.gz --bank questions.jsonl --min-judgment 2
  rubric_measures verify item-statistics graded.jsonl.gz --bank questions.jsonl --runs runs/*.run
  rubric_measures verify canary passages.jsonl.gz --bank questions.jsonl --model openai:gpt-4o --dry-run"""


def run_verify(options: argparse.Namespace) -> int:
    """Runs the command; 1 where a case of the canary suite has no grade."""
    from rubric_measures.api import load_bank
    from rubric_measures.formats.grade_tables import read_as_records
    from rubric_measures.measures.grade_sets import Grader
    from rubric_measures.models.settings import Calls
    from rubric_measures.verification.html import write_html
    from rubric_measures.verification.reports import ReportSettings, report_parts, report_sections
    from rubric_measures.verification.sections import sections_report

    is_canary = options.report == "canary"
    said = vars(options)
    given = [name for name in _OF_CANARIES if said[name] is not False and said[name] not in (None, [], {})]
    if given and not is_canary:
        raise InputError(f"{', '.join(given)}: only the report canary asks a grader; leave that out", settings=given)
    chosen = {name: getattr(options, name) for name in ("report", "queries", "runs", "min_judgment")}
    settings = ReportSettings(**chosen, wanted=Grader.parse(options.grader))
    bank = None if options.bank is None else load_bank(options.bank)
    read = (options.graded, options.bank, *options.runs, options.prices)
    keep_inputs(options.output, *read)
    keep_cache(options.cache, options.output, *read)
    review = review_of(options.review_address, options.graded, options.bank, options.grader)
    canaries: tuple[Section, ...] = ()
    is_complete = True
    source = read_as_records(options.graded, "the canary suite" if is_canary else "")
    if is_canary:
        from rubric_measures.api import run_canaries
        from rubric_measures.verification.reports import chosen_queries

        if options.model is None or bank is None:
            raise InputError("the canary suite needs the grader and the items", settings=("model", "bank"))
        groups = list(chosen_queries(source, settings, options.graded))
        of_canaries = {name: getattr(options, name) for name in _OF_CANARIES}
        asking = {**passed(options, run_canaries), "calls": settings_of(Calls, of_canaries), "source": options.graded}
        found = run_canaries(groups, bank, **asking, progress=is_watched())
        if found.plan is not None:
            print(found.plan)
            return 0
        canaries, is_complete = found.sections, found.is_complete
    if options.output_format == "html":
        parts = itertools.chain(canaries, report_parts(source, bank, settings))
        title = f"Verification of {Path(options.graded).name}"
        files = write_html(options.output, parts, settings, title, review, bank)
        if len(files) > 1:
            _LOG.info("%s and %d pages of details beside it", files[0], len(files) - 1)
    else:
        sections = itertools.chain(canaries, report_sections(source, bank, settings))
        with atomic_writer(options.output) as stream:
            stream.writelines(render(sections_report(sections), options.output_format))
    return 0 if is_complete else 1
