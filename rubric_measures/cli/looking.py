"""Commands for people: list, review, verify.

`list`: what there is of prompts, measures, formats or models, plug-ins included, a line each.

`review`: a local page where assessors check grades and edit the test bank.

`verify`: reports with which assessors check the grader and the test bank.
"""

from __future__ import annotations

import gc
import inspect
import itertools
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rubric_measures.base.errors import InputError, UnknownNameError, escaped, tell, warn
from rubric_measures.base.files import paused_collector
from rubric_measures.base.tables import Cell, Column, Report, Table
from rubric_measures.cli.declared import Call, command
from rubric_measures.cli.inputs import CALLS, REVIEW, Printed, PrintedPage, refuse, review_of
from rubric_measures.corpora.overwriting import keep_cache
from rubric_measures.verification import ReportName

if TYPE_CHECKING:
    from rubric_measures.prompts.library import Prompt
    from rubric_measures.review.session import Review
    from rubric_measures.verification.sections import Section


@command(files={"kind": "KIND", "name": "[NAME]"}, fields={"printed": ("format",)})
def list_(
    *, kind: Literal["prompts", "measures", "formats", "models"], name: str | None = None, printed: Printed = Printed()
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
        if printed.format is not None:
            raise InputError(f"{name}: what is said of one is text; the list has other forms", settings=("format",))
        printed.write(_ONE[kind](name))
        return 0
    headers, rows = _ALL[kind]
    printed.write(Report([Table([Column(header, is_left=True) for header in headers.split(", ")], [*rows()])]))
    return 0


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _prompts() -> Iterable[list[Cell]]:
    from rubric_measures.prompts.entries import prompt_names
    from rubric_measures.prompts.library import load_prompt

    return (_prompt_row(name, load_prompt(name)) for name in sorted(prompt_names()))


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


def _measures() -> Iterable[list[Cell]]:
    for name, one in _registered().items():
        parameters = getattr(one, "SUPPORTED_PARAMS", {})
        shown = ", ".join(parameter for parameter in parameters if parameter != "cutoff")
        yield [f"{name}@k" if "cutoff" in parameters else name, shown, _first_line(one)]


def _measure(name: str) -> str:
    known = _registered()
    if name.removesuffix("@k") not in known:
        raise UnknownNameError("measure", name, known)
    return f"{name}\n\n{inspect.getdoc(known[name.removesuffix('@k')])}\n"


def _formats() -> Iterable[list[Cell]]:
    from rubric_measures.formats import FORMATS

    for name, one in sorted(FORMATS.items()):
        ways = ["yes" if way else "-" for way in (one.read, one.write, one.recognise)]
        yield [name, *ways, one.description]


# Kind of model -> the extra that it needs, and what stands behind the colon.
_OF_KIND = {
    "lexical": ("", "-", "words of the item in the passage: a floor, offline"),
    "scripted": ("FILE", "-", "replies from a file: teaching, tests, replays"),
    "hf": ("NAME", "hf", "a model of the Hugging Face hub, or a folder of one, on this machine"),
    "openai": ("NAME", "openai", "any endpoint that speaks OpenAI's protocol (--base-url)"),
    "litellm": ("PROVIDER/NAME", "litellm", "Anthropic, Gemini, Bedrock, … by the library LiteLLM"),
}


def _models() -> Iterable[list[Cell]]:
    from rubric_measures.models import BACKENDS

    for kind in BACKENDS:
        name, *said = _OF_KIND[kind] if kind in _OF_KIND else ("NAME", "plug-in", _first_line(BACKENDS[kind]))
        yield [f"{kind}:{name}" if name else kind, *said]


_ALL: dict[str, tuple[str, Callable[[], Iterable[list[Cell]]]]] = {
    "prompts": ("prompt, target, task, scale, source", _prompts),
    "measures": ("measure, parameters, what it is", _measures),
    "formats": ("format, read, written, recognised, what it is", _formats),
    "models": ("model, extra, what it is", _models),
}
_ONE: dict[str, Callable[[str], str]] = {"prompts": _prompt, "measures": _measure}


@command(
    opened="rubric_measures.review.app:open_review", serve="rubric_measures.review.app:serve",
    files={"graded": "GRADED"}, without=("blind", "review"),
)  # fmt: skip
def review(opened: Call, serve: Call, *, show_grades: bool = False, export: str | None = None) -> int:
    """a local page where assessors check grades and edit the bank

    examples:
      rubric_measures review graded.jsonl.gz --bank questions.jsonl --assessor ada
      rubric_measures review graded.jsonl.gz --bank questions.jsonl --settle hybrid bm25
      rubric_measures review passages.jsonl.gz --bank draft.csv --assessor ada
      rubric_measures review graded.jsonl.gz --bank questions.jsonl --export corrected/

    Args:
        graded: graded records; or passages of pool, to edit a bank before it is graded.
        bank: the test bank.
        state: the SQLite file of the review (default: GRADED.review.sqlite beside it).
        assessor: who works here (default: the page asks).
        grader: whose grades are reviewed, where the file has those of several; a choice as for `leaderboard`.
        show_grades: show the grader's grade at once; such grades are not blind ones.
        guidelines: instructions for assessors, in Markdown; the key g shows them.
        assign: NAME=QUERIES, the queries of each assessor: ada=q1-q10 bob=q6-q15 (from and to, in the order of the
            bank; commas between).
        adjudicator: who decides what assessors differ on; it counts for all.
        settle: two runs of which the audit is to settle whose passages cover more of the items each.
        export: without a server: write records with corrections, bank and audit trail to this folder.
    """
    from rubric_measures.review.app import check_bind

    check_bind(**{"bind": REVIEW.removeprefix("http://"), **serve.keywords})
    state = opened.keywords.get("state")
    if export and state and not Path(state).exists():
        raise InputError(f"{state}: there is no such file, so no review to export", settings=("state",))
    with paused_collector():
        made: Review = opened(blind=not show_grades)
    try:
        made.next_command = partial(_grading, "" if made.material.is_draft else " --only-changed")
        if export:
            _export(made, opened.keywords["bank"], export)
            made.store.close(unused=True)
        else:
            with paused_collector():
                said = made.prepare()
            for line in said:
                tell("%s", line)
            # Nobody looks through them, now (2 s for records of 400,000 grades) or in the middle of an answer.
            gc.freeze()
            serve(made)
    except InputError:
        made.store.close(unused=True)
        raise
    finally:
        made.store.close()
    return 0


def _export(review: Review, bank: str, folder: str) -> None:
    from rubric_measures.review.session import export_review

    made = export_review(review.store, review.material, bank, folder)
    for path in made.paths:
        tell("wrote %s", path)
    for note in made.notes:
        warn("%s", note)
    if made.waiting and not review.material.is_draft:
        tell("items in the bank that need grades: %d; see grade --only-changed", made.waiting)


def _grading(more: str, passages: str, bank: str) -> str:
    passages, bank = shlex.quote(passages), shlex.quote(bank)
    return f"rubric_measures grade {passages} --bank {bank}{more} --model MODEL -o OUT.jsonl.gz"


@command(
    canaries="rubric_measures.api.judging:run_canaries",
    files={"report": "REPORT", "graded": "GRADED"}, without=("groups", "source"),
    fields={"asking": (), "calls": CALLS, "printed": ("output", "format")},
)  # fmt: skip
def verify(
    canaries: Call,
    *,
    report: ReportName,
    graded: str | os.PathLike[str],
    bank: str | os.PathLike[str] | None = None,
    grader: str | None = None,
    runs: Sequence[str | os.PathLike[str]] = (),
    min_judgment: int | None = None,
    queries: Sequence[str] | None = None,
    model: str | None = None,
    printed: PrintedPage = PrintedPage(),
) -> int:
    """reports with which assessors check grades and banks

    reports:
      grading             per item, every passage's grade beside its answer, best first
      uncertain           the same, least certain first, where the records keep distributions
      grid                per query, passages × items, with judgments
      uncovered-passages  passages judged relevant that no item covers
      bad-questions       items that passages judged not relevant cover, most first
      item-statistics     how items discriminate, duplicate ones, size of the bank
      graders             grades given, failures, disagreement of graders and prompts
      all                 all of these; a page for a browser with -o REPORT.html
      bank                does the bank hold: items, stability, reusability
      suggest             the same, and what to split, merge, reword and retire
      calibration         confidence against agreement with assessors' grades
      canary              let a grader grade known cases, and say how often it was fooled

    examples:
      rubric_measures verify all graded.jsonl.gz --bank questions.jsonl -o report.html
      rubric_measures verify uncovered-passages graded.jsonl.gz --bank questions.jsonl --min-judgment 2
      rubric_measures verify item-statistics graded.jsonl.gz --bank questions.jsonl --runs runs/*.run
      rubric_measures verify canary passages.jsonl.gz --bank questions.jsonl --model openai:gpt-4o --dry-run

    Args:
        report: one of the reports that are listed below.
        graded: graded records, or a table of grades.
        bank: the test bank.
        grader: whose grades are looked at, a choice as for `leaderboard`.
        runs: item statistics, bank: these TREC runs make the leaderboard (default: the rankings in GRADED).
        min_judgment: the least judgment that is relevant (default 1).
        queries: only these queries.
        model: canary: who is asked: lexical, scripted:FILE, hf:NAME, openai:NAME or litellm:PROVIDER/NAME.
        prompt: canary: its prompt; may be repeated.
        dry_run: canary: say what would be called and what it would cost; report nothing.
    """
    from rubric_measures.api import load_bank
    from rubric_measures.formats.grade_tables import read_as_records
    from rubric_measures.measures.grade_sets import Grader
    from rubric_measures.models.settings import given_of
    from rubric_measures.verification.html import write_html
    from rubric_measures.verification.sections import (
        ReportSettings,
        chosen_queries,
        report_parts,
        report_sections,
        sections_report,
    )

    is_canary, calls = report == "canary", canaries.keywords.get("calls")
    given = {*canaries.keywords, *(given_of(calls) if calls else ()), *(["model"] if model else [])}
    given -= {"calls", "progress"}
    refuse(() if is_canary else given, f"in the report {report}, as only canary asks a grader")
    settings = ReportSettings(report, Grader.parse(grader), queries, runs, min_judgment)
    known = None if bank is None else load_bank(bank)
    if calls is not None:
        keep_cache(calls.cache, printed.output, graded, bank, *runs, calls.prices)
    review = review_of(str(graded), bank, grader)
    asked: tuple[Section, ...] = ()
    is_complete = True
    source = read_as_records(graded, "the canary suite" if is_canary else "")
    if is_canary:
        if model is None or known is None:
            raise InputError("the canary suite needs the grader and the items", settings=("model", "bank"))
        groups = list(chosen_queries(source, settings, str(graded)))
        found = canaries(groups, known, model=model, source=str(graded))
        if found.plan is not None:
            print(found.plan)
            return 0
        asked, is_complete = found.sections, found.is_complete
    if printed.form == "html":
        parts = itertools.chain(asked, report_parts(source, known, settings))
        files = write_html(printed.output, parts, settings, f"Verification of {Path(graded).name}", review, known)
        if len(files) > 1:
            tell("%s and %d pages of details beside it", files[0], len(files) - 1)
    else:
        printed.write(sections_report(itertools.chain(asked, report_sections(source, known, settings))))
    return 0 if is_complete else 1
