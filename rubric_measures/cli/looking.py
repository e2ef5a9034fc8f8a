"""Commands for people: cache, calibrate, list, review, verify.

`cache`: what a reply cache holds and what was paid for it; merge.

`calibrate`: a grader held to a few grades of assessors, or of another grader.

`list`: what there is of prompts, measures, formats or models, plug-ins included, a line each.

`review`: a local page where assessors check grades and edit the test bank.

`verify`: reports with which assessors check the grader and the test bank.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from rubric_measures.base.errors import InputError, escaped, tell
from rubric_measures.base.files import paused_collector
from rubric_measures.base.tables import Report
from rubric_measures.cli.declared import Call, Command
from rubric_measures.cli.inputs import Printed, PrintedPage, review_of

if TYPE_CHECKING:
    from rubric_measures.corpora.loading import Bank
    from rubric_measures.review.session import Review


@Command(files={"action": "ACTION", "cache": "CACHE", "others": "[OTHER…]"})
def cache(*, action: Literal["size", "merge"], cache: str | os.PathLike[str], others: Sequence[str] = ()) -> int:
    """look into a reply cache: size, merge

    examples:
      rubric_measures cache size graded.jsonl.gz.cache.sqlite
      rubric_measures cache merge all.sqlite worker1.sqlite worker2.sqlite

    Args:
        action: what to do.
        cache: the cache file.
        others: merge: the caches whose replies are taken over.
    """
    from rubric_measures.models.replies import ReplyCache

    if (action == "merge") is not bool(others):
        wanted = "needs the target and at least one other cache" if action == "merge" else "takes one cache"
        raise InputError(f"cache {action} {wanted}")
    with ReplyCache(cache, read_only=action == "size") as opened:
        if action == "merge":
            opened.merge(others)
        else:
            sys.stdout.write(opened.described())
    return 0


@Command(files={"kind": "KIND", "name": "[NAME]"}, fields={"printed": ("format",)})
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
    from rubric_measures import formats, models
    from rubric_measures.measures import measure
    from rubric_measures.prompts import library

    tables = {
        "prompts": library.prompt_table, "measures": measure.measure_table, "formats": formats.format_table,
        "models": models.model_table,
    }  # fmt: skip
    ones = {"prompts": library.described, "measures": measure.described}
    if name is None:
        printed.write(Report([tables[kind]()]))
    elif kind not in ones:
        raise InputError(f"{name}: there is only a list of {kind}; leave the name out")
    elif printed.format is not None:
        raise InputError(f"{name}: a description is text; only the list has other forms", settings=("format",))
    else:
        # Escaped line by line, since it may be a plug-in's.
        printed.write("".join(f"{escaped(line)}\n" for line in ones[kind](name).splitlines()))
    return 0


@Command(
    ["rubric_measures.review.app:open_review", "rubric_measures.review.app:serve"],
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
        export: without a server: write records with corrections, bank, audit trail and what an audit found to this
            folder.
    """
    from rubric_measures.review.session import export_review

    with paused_collector():
        made: Review = opened(blind=not show_grades)
    try:
        if export and all(one.kind == "look" for one in made.store.events()):
            # As of records that were moved or copied without it.
            problem = "holds nothing that assessors did, so there is nothing to export; name the review's state file"
            raise InputError(f"{made.store.path}: {problem}", settings=("state",))
        if export:
            written = export_review(made, export)
            for path in written.paths:
                tell("wrote %s", path)
            if not made.material.is_draft:
                tell("items in the bank that need grades: %d; see grade --only-changed", written.waiting)
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


@Command(
    ["rubric_measures.verification.graders:calibrate"],
    files={"graded": "GRADED"}, fields={"draws": ("rounds",)},
)  # fmt: skip
def calibrate(calibrate: Call, *, printed: Printed = Printed()) -> int:
    """bias of a grader, calibrated scores

    examples:
      rubric_measures calibrate reviewed.jsonl.gz --bank nuggets.jsonl
      rubric_measures calibrate regraded.jsonl.gz --anchors graded.jsonl.gz --against gpt-4o --grader gpt-5
    """
    return printed.show(calibrate())


@Command(
    ["rubric_measures.verification.html:verify"], files={"report": "REPORT", "graded": "GRADED"}
)  # fmt: skip
def verify(
    verify: Call,
    *,
    graded: str,
    bank: Bank | None = None,
    grader: str | None = None,
    printed: PrintedPage = PrintedPage(),
) -> int:
    """reports with which assessors check grades and banks

    reports:
      grading             per item, every passage's grade beside its answer, best first
      grid                per query, passages × items, with judgments
      uncovered-passages  passages judged relevant that no item covers
      bad-questions       items that passages judged not relevant cover, most first
      item-statistics     how items discriminate
      all                 all of these; a page for a browser with -o REPORT.html

    examples:
      rubric_measures verify all graded.jsonl.gz --bank questions.jsonl -o report.html
      rubric_measures verify uncovered-passages graded.jsonl.gz --bank questions.jsonl --min-judgment 2
      rubric_measures verify item-statistics graded.jsonl.gz --bank questions.jsonl

    Args:
        report: one of the reports that are listed below.
        graded: graded records, or a table of grades.
        bank: the test bank.
        grader: whose grades are looked at, a choice as for `leaderboard`.
        min_judgment: the least judgment that is relevant (default 1).
        queries: only these queries.
    """
    made = verify(graded=graded, bank=bank, grader=grader)
    if printed.form == "html":
        made.save(printed.output, review_of(graded, bank, grader))
    else:
        printed.write(made.report())
    return 0
