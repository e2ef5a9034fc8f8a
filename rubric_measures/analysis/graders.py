"""Graders: their agreement as label sources on the same documents; the grades of several as those of one.

The Rubric workbench's tables of how assessors agree: counts of label against judgment sets, with κ of each cell.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import chain, permutations
from pathlib import Path
from typing import Literal

from msgspec import structs

from rubric_measures.analysis.agreement import (
    Key,
    LabelSource,
    SourceAgreement,
    compare_sources,
    kappa_of_confusion,
)
from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws
from rubric_measures.base.errors import InputError, naming, tell, warn
from rubric_measures.base.tables import Cell, Marked, Report, Table, columns, plain
from rubric_measures.corpora.loading import (
    Bank,
    Gradable,
    PassageRecords,
    Passages,
    Rows,
    are_rows,
    bank_of,
    content_of,
    grader_of,
    is_file,
    is_table,
    load,
    named_files,
    passages_of,
)
from rubric_measures.corpora.overwriting import keep_inputs
from rubric_measures.formats.judged import GRADES, OF_TABLES, refuse_choice
from rubric_measures.measures.combining import Panel
from rubric_measures.measures.findings import say
from rubric_measures.measures.grade_sets import (
    ADJUDICATION,
    BLIND_REVIEW,
    FINAL_REVIEW,
    HUMAN,
    Grader,
    choices_of,
    chosen_grades,
)
from rubric_measures.measures.grades import LABEL_ITEMS, Grades
from rubric_measures.measures.loading import collect_grades, load_records, select_queries
from rubric_measures.measures.qrels import grades_of_table
from rubric_measures.records.models import GradeSetKey, load_graded
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import SELF_RATING

_JUDGMENTS = "judgments:"


def agreement(
    *sources: Gradable,
    items: bool = False,
    cutoff: Iterable[tuple[int, int]] = (),
    draws: Draws = USUAL_DRAWS,
    bank: Bank | None = None,
    grader: str | Grader | None = None,
    grader_b: str | Grader | None = None,
    notes: bool = True,
) -> SourceAgreement:
    """How well label sources agree; `print` shows confusion, κ, α, cutoffs and more, or a leaderboard of graders.

    >>> import rubric_measures
    >>> from ir_measures import Qrel
    >>> ours = [Qrel("q1", "d1", 1), Qrel("q1", "d2", 0), Qrel("q1", "d3", 1)]
    >>> theirs = [Qrel("q1", "d1", 1), Qrel("q1", "d2", 0), Qrel("q1", "d3", 0)]
    >>> found = rubric_measures.agreement(ours, theirs, draws=rubric_measures.Draws(0))
    >>> round(found.rows[0].statistics["kappa"].estimate, 2)
    0.4

    Args:
        sources: two or more of what `load` takes; `judgments:FILE` are the judgments inside a file of graded records,
            and such a file alone is compared with them. The first is the truth, all others are graders, with a row each
            in `rows`. Of a file of records alone its judgments are the truth; the graders of a table alone are
            compared, of which the first, or the one that `grader` names, is the truth.
        items: compare item grades, not labels of passages, which are the highest grade of their items. In Python
            `write_qrels` makes other labels.
        cutoff: pairs to binarise at: the first source at least A, the second at least B.
        draws: of the intervals over queries; no rounds for none.
        bank: the test bank of records.
        grader: whose grades of records or of a table count: a name, or `model=…,scale=0-5:4`, whose scale says the
            labels that a source may use.
        grader_b: the same for the second source, where both are records; what it leaves out is as in `grader`, but for
            the prompt of another model, the set and assessors.
        notes: log what is left out, see `SourceAgreement.notes`.

    Raises:
        InputError: fewer than two sources, one that is there twice, nothing in common, or an argument without effect.
    """
    wanted, second = Grader.parse(grader), grader_of(grader_b)
    with contextlib.ExitStack() as stack:
        # Judgments and labels of records that are alone are two sources.
        is_named = [is_file(one) or (len(sources) == 1 and not are_rows(one)) for one in sources]
        given = [named_files(one, stack) if named else one for one, named in zip(sources, is_named, strict=True)]
        read = _sources(given, bank_of(bank), wanted, second, items)
    if items and not any(key[-1] not in LABEL_ITEMS for source in read for key in source.labels):
        problem = f"{' and '.join(source.name for source in read)}: labels of whole passages, and no grades of items"
        raise InputError(f"{problem}; leave items out", settings=("items",))
    result = compare_sources(
        read,
        list(cutoff),
        scale=None if wanted.scale is None else range(wanted.scale.lowest, wanted.scale.highest + 1),
        draws=draws,
        # Of records alone their judgments were added.
        truth=int(len(given) > len(sources)),
    )
    if notes:
        say(result.notes)
    return result


def agreement_tables(
    source: str | os.PathLike[str],
    *,
    min_judgment: int = 1,
    bank: Bank | None = None,
    grader: str | Grader | None = None,
) -> list[AgreementTable]:
    """The Rubric workbench's inter-annotator tables: the labels of graded records against the judgments inside.

    There are all tables for each n of 1, 2 and 5: a passage's label is its n-th highest grade, or the lowest where it
    has fewer.

    Args:
        source: a file of graded records.
        min_judgment: the least judgment that is relevant: 1, the program's default, or 2, as in its paper.
        bank: the test bank.
        grader: whose grades count, as for `load`; of several grade sets the first of each passage.

    Raises:
        InputError: the source is no file of graded records, or no grade set passes the choice.
    """
    with naming(source):
        if _content(source) != "records":
            text = "tables of labels against judgments are of one graded-records file"
            raise InputError(text, settings=("min_judgment",))
        passages = _judged_passages(source, bank_of(bank), Grader.parse(grader))
        if not any(grades and judgments for grades, judgments in passages):
            raise InputError("no passage has both a judgment and a grade")
    unjudged = sum(not judgments for _, judgments in passages)
    ungraded = sum(not grades for grades, _ in passages)
    labelled = [
        (sorted(grades, reverse=True), set(judgments)) for grades, judgments in passages if grades and judgments
    ]
    if unjudged or ungraded:
        tell(f"{unjudged} passages without a judgment and {ungraded} without a grade are left out")
    layouts = _layouts(min_judgment)
    # Of a passage with fewer than n grades it is the lowest one.
    labels = {n: [(grades[:n][-1], judgments) for grades, judgments in labelled] for n in (1, 2, 5)}
    return [_agreement_table(name, n, layout, labels[n]) for n in labels for name, layout in layouts.items()]


def _sources(
    sources: list[Gradable],
    bank: TestBank | None,
    wanted: Grader,
    second: Grader | None,
    items: bool,
) -> Sequence[LabelSource]:
    if second is not None and not any(_content(one) in ("records", "grades") for one in sources[1:2]):
        problem = "a second choice of graders is for graded records alone; leave it out"
        raise InputError(problem, settings=("grader_b",))
    if len(sources) == 1:
        if _content(sources[0]) == "grades" and bank is None:
            return _graders_of(sources[0], wanted, items)
        if _content(sources[0]) != "records" or sources[0] == "-":
            load(sources[0])  # what is no source at all says so
            text = "agreement needs two sources, one graded-records file with judgments, or a table of several graders"
            with naming(sources[0]):
                raise InputError(text)
        sources.append(f"{_JUDGMENTS}{os.fspath(sources[0])}")  # type: ignore[arg-type]
    # What can hold the grades of several graders, of which one is chosen.
    graded = [_content(source) in ("records", "grades") for source in sources]
    names = " and ".join(os.fspath(source) for source in sources if isinstance(source, str | os.PathLike))
    graders = [wanted] * len(sources)
    if second is not None:
        # Prompt and hash of one grader are not those of another; a second hash alone is of the same one. Assessors
        # stand in a second grader's place only where that is asked for.
        own = {"set": None, "assessors": None, **({"prompt": None} if second.model else {}), **second.given}
        graders[1] = structs.replace(wanted, **own)
    read = [
        _source(source, f"source {place}", bank, one, items)
        for place, (source, one) in enumerate(zip(sources, graders, strict=True), 1)
    ]
    if not any(_content(source) == "records" for source in sources):
        refuse_choice(names, wanted, ("scale", *(OF_TABLES if any(graded) else ())))
        if bank is not None:
            raise InputError("no source is graded records, which alone take a bank; leave it out", settings=("bank",))
    # A table of another grader, or of nobody named, is what the chosen one is held to; but one has to be chosen.
    tables = [one for one, is_graded in zip(read, graded, strict=True) if is_graded]
    if tables and all(one.instead for one in tables):
        there = "; ".join(dict.fromkeys(one.instead for one in tables))
        raise InputError(f"{names}: no grades fit the choice; there are grades by: {there}", settings=("grader",))
    # Of those that are called alike each but the first has a number.
    called = [one.name for one in read]
    times = [called[:place].count(name) + 1 for place, name in enumerate(called)]
    read = [replace(one, name=f"{one.name} ({n})") if n > 1 else one for one, n in zip(read, times, strict=True)]
    places = [os.path.realpath(one) if isinstance(one, str | os.PathLike) else id(one) for one in sources]
    for (place, one), (other_place, other) in permutations(zip(places, read, strict=True), 2):
        if (place, one.made) == (other_place, other.made):
            problem = f"{one.name} would be compared with itself; name another source, or another grader of it"
            raise InputError(problem, settings=("grader_b",))
        if {*one.made.get("grades", ())} > {*other.made.get("grades", ())} > set():
            warn(
                f"{one.name}: where no assessor graded, its grades are {other.name}'s own, so κ is too "
                "high; make a grader of the assessors' grades alone (combine), and compare that"
            )
    return read


def _graders_of(source: Gradable, wanted: Grader, items: bool) -> list[LabelSource]:
    """The graders of one table, each a source: the one that is chosen (the truth) first, all others in their order."""
    name = Path(source).name if isinstance(source, str | os.PathLike) else "the table"
    refuse_choice(name, wanted, (*OF_TABLES, "scale"), "a table of grades (convert makes records of it)")
    rows = GRADES.read(source)
    names, first = list(dict.fromkeys(row.grader for row in rows)), wanted.model
    if len(names) < 2 or first not in (None, *names):
        listed = ", ".join(filter(None, names)) or "one, without a name"
        raise InputError(f"{name}: agreement needs two graders or more; this table has {listed}", settings=("grader",))
    found = []
    for one in sorted(names, key=lambda one: one != first):
        grades = grades_of_table(chosen_grades(rows, name, Grader(one, wanted.prompt)), scale=wanted.scale)
        found.append(labels_of(grades, f"{name} {one}", items))
    return found


def _content(source: Gradable) -> str:
    if not isinstance(source, str | os.PathLike):
        return "grades" if is_table(source) else ""
    return "" if os.fspath(source).startswith(_JUDGMENTS) else content_of(os.fspath(source))


def _source(source: Gradable, name: str, bank: TestBank | None, wanted: Grader, items: bool) -> LabelSource:
    """The labels of passages, their highest grades, or all grades of items; of what is no file called as is said."""
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    if path.startswith(_JUDGMENTS):
        if items:
            raise InputError("judgments have no items; compare labels", settings=("items",))
        return judgments_of_records(path.removeprefix(_JUDGMENTS))
    name, content, instead = os.path.basename(path) or name, _content(source), ""  # noqa: PTH119 - may be a stream
    if content == "records":
        name = " ".join([name, *filter(None, (wanted.model, wanted.prompt, wanted.kind, wanted.set))])
        grades: Grades = load_records(path, bank, wanted)
        _warn_of_sight(name, wanted)
    elif content == "grades":
        rows = GRADES.read(source)
        keys = {GradeSetKey(row.grader, row.prompt_class or "", "") for row in rows}
        # A table of another grader is what the chosen one is held to.
        instead = "" if any(map(wanted.may_pass, keys)) else choices_of(keys)
        if len(keys) > 1:
            rows = chosen_grades(rows, name, wanted)
            name = " ".join(filter(None, (name, wanted.model, wanted.prompt)))
        grades = grades_of_table(rows, scale=wanted.scale)
    else:
        grades = load(source)
    found = labels_of(grades, name, items)
    # A file of qrels has no place for grades that failed.
    return replace(found, instead=instead, failed=None if content == "judgments" else found.failed)


def _warn_of_sight(name: str, *graders: Grader) -> None:
    final = FINAL_REVIEW, ADJUDICATION
    if any(one.prompt in final or (not one.prompt and (one.model or "").startswith(HUMAN)) for one in graders):
        warn(
            f"{name}: final grades of a review were settled with the grader's in sight, so they agree too well with "
            f"it; compare the first, blind ones (prompt={BLIND_REVIEW})"
        )


def combine(
    passages: Passages | Rows,
    grader: Sequence[str | Grader] = (),
    *,
    by: Literal["majority", "median", "prefer"] = "majority",
    name: str = "",
    output: str | os.PathLike[str] | None = None,
    bank: Bank | None = None,
) -> PassageRecords:
    """Makes one grader of several: a panel. How many grades it has is logged; `agreement` says how good they are.

    `majority` takes the grade that most members give (of equally frequent ones the lowest), `median` the middle one (of
    two the lower). Members without a grade abstain, and more than half must have one; else the panel has none, with the
    status of the first that lost its own. `prefer` takes the grade of the first member that has one: a member that
    failed, or was not asked, leaves the item to the next.

    Args:
        passages: graded records, or their file; a table of grades, whose records have no texts.
        grader: the members, two or more, each as for `load`; for `prefer` in the order of preference.
        by: how their grades become one.
        name: what the new grader is called; by default `panel:` and how it is made.
        output: a file for the records with the new grades, or a table of them (`.csv`, `.tsv`).
        bank: only items of this test bank.

    Raises:
        InputError: a member has no grades, or several sets; scales differ; a setting is missing or without effect.
    """
    members = [Grader.parse(one) for one in ([grader] if isinstance(grader, str | Grader) else grader)]
    if len(members) < 2:
        text = "a panel has two members or more; name each"
        raise InputError(text, settings=("grader",))
    name = name or f"panel:{by}"
    if name in [one.model for one in members]:
        raise InputError(f"{name} is a member; give the panel another name", settings=("name",))
    keep_inputs(output, bank)
    source = passages_of(passages)
    _warn_of_sight(name, *members)
    panel = Panel(source, source.name, members, by, bank_of(bank))
    return PassageRecords.kept(panel.records(name), output, as_table=True)


def labels_of(grades: Grades, name: str, items: bool = False) -> LabelSource:
    """The labels of passages, their highest grades; or all grades of items. Failed grades give none."""
    failed, graded = {}, {}
    for query_id, query in grades.queries.items():
        lost, valid = 0 if query.failed is None else int(query.failed.sum()), query.valid.sum(axis=1)
        failed[query_id] = lost, lost + int(valid.sum())
        if not (items or query.is_of_labels):
            graded.update({(query_id, doc_id): int(valid[at]) for doc_id, at in query.docs.items()})
    rows = (row for query in grades.queries.values() for row in query.rows()) if items else Grades(grades.queries).qrels
    labels = {(row.query_id, row.doc_id, row.iteration)[: 2 + items]: row.relevance for row in rows}
    return LabelSource(name, labels, grades.scale, failed, graded=graded, made=grades.source)


def judgments_of_records(path: str | os.PathLike[str]) -> LabelSource:
    """The judgments inside graded records: the highest one that a passage has for its query.

    Raises:
        InputError: there is no judgment.
    """
    rows = ((group, passage) for group in load_graded(path) for passage in group.passages)
    found = {(group.query_id, passage.doc_id): passage.judged(group.query_id) for group, passage in rows}
    labels: dict[Key, float] = {key: label for key, label in found.items() if label is not None}
    name = os.path.basename(os.fspath(path))  # noqa: PTH119 - may be a stream
    if not labels:
        raise InputError(f"{os.fspath(path)}: holds no judgments")
    return LabelSource(f"judgments of {name}", labels)


def _judged_passages(
    path: str | os.PathLike[str], bank: TestBank | None, wanted: Grader
) -> list[tuple[Sequence[float], Sequence[float]]]:
    """The passages of graded records as the workbench's tables see them: all item grades, all judgments of each.

    Where several grade sets pass the filter, the first of each passage counts, as in that program.

    Raises:
        InputError: the grades are on another scale than 0 to 5, which is that of the tables, or have fractions.
    """
    groups = load_graded(path)
    chosen = structs.replace(wanted, first=True)
    grades = collect_grades(select_queries(groups, groups.name, bank, chosen), bank)
    of_passage: dict[Key, list[float]] = {}
    for key, grade in labels_of(grades, "", items=True).labels.items():
        of_passage.setdefault(key[:2], []).append(grade)
    found: list[tuple[Sequence[float], Sequence[float]]] = [
        (of_passage.get((group.query_id, passage.doc_id), []), [judgment.relevance for judgment in passage.judgments])
        for group in groups
        for passage in group.passages
    ]
    strange = next((label for one in found for label in chain(*one) if label % 1), None)
    if strange is not None or (grades.scale is not None and grades.scale[:2] != SELF_RATING[:2]):
        shown = f"on the scale {grades.scale}" if strange is None else f"such as {strange}"
        text = f"the workbench's tables are of whole grades from 0 to 5 and judgments, and these are {shown}"
        raise InputError(f"{text}; leave tables out", settings=("tables",))
    return found


_Labels = tuple[int, ...]
# The labels of the lines, the judgments of the columns, and for each line the column that means the same.
_Layout = tuple[Sequence[_Labels], Sequence[_Labels], Sequence[int]]


def _layouts(min_judgment: int) -> dict[str, _Layout]:
    """The program's four layouts.

    Args:
        min_judgment: the least judgment that is relevant: 1, the program's default, or 2, which it takes for the
            collections of TREC DL, and the paper does.

    Raises:
        InputError: it is neither.
    """
    if min_judgment not in (1, 2):
        raise InputError(
            f"the workbench's tables know relevant judgments from 1 or from 2, not from {min_judgment}",
            settings=("min_judgment",),
        )
    relevant, not_relevant = ((1, 2, 3), (-2, -1, 0)) if min_judgment == 1 else ((2, 3), (-2, -1, 0, 1))
    diagonal = (1, 1, 2, 2, 2, 3) if min_judgment == 1 else (0, 0, 1, 1, 1, 3)
    merged = ((2, 3), (1,)) if min_judgment == 1 else ((3,), (2,))
    return {
        "GRADED": (((5,), (4,), (3,), (2,), (1,), (0,)), ((3,), (2,), (1,), (0,)), diagonal),
        "MERGE": (((4, 5), (1, 2, 3), (0,)), (*merged, not_relevant), (0, 1, 2)),
        "LENIENT": (((1, 2, 3, 4, 5), (0,)), (relevant, not_relevant), (0, 1)),
        "STRICT": (((4, 5), (0, 1, 2, 3)), (relevant, not_relevant), (0, 1)),
    }


@dataclass(frozen=True, slots=True)
class AgreementCell:
    """One cell: "the label is in L" against "a judgment is in J", over all passages.

    Attributes:
        label: L.
        judgment: J.
        both: passages with label and judgment: the count that is printed.
        label_only: with the label only.
        judgment_only: with the judgment only.
        neither: with none.
        kappa: Cohen's κ of the two-by-two table; None where it is undefined.
    """

    label: _Labels
    judgment: _Labels
    both: int
    label_only: int
    judgment_only: int
    neither: int
    kappa: float | None


@dataclass(frozen=True, slots=True)
class AgreementTable:
    """One table.

    Attributes:
        table: GRADED, MERGE, LENIENT or STRICT.
        min_answers: n: the label of a passage is its n-th highest grade.
        totals: passages of each line.
        cells: line by line, a cell a judgment set.
        diagonal: for each line the column that means the same; its κ is the line's.

    Source: the Rubric workbench's inter-annotator export (Dietz, SIGIR 2024).
    """

    table: str
    min_answers: int
    totals: Sequence[int]
    cells: Sequence[AgreementCell]
    diagonal: Sequence[int]


def _agreement_table(
    name: str, min_answers: int, layout: _Layout, labelled: Sequence[tuple[float, set[float]]]
) -> AgreementTable:
    lines, judgments, diagonal = layout

    def cell(label: _Labels, judgment: _Labels) -> AgreementCell:
        found = Counter((value in label, not judged.isdisjoint(judgment)) for value, judged in labelled)
        both, only_label, only_judgment, neither = (found[one, two] for one in (True, False) for two in (True, False))
        kappa = kappa_of_confusion([[both, only_label], [only_judgment, neither]])
        return AgreementCell(label, judgment, both, only_label, only_judgment, neither, kappa)

    cells = [cell(label, judgment) for label in lines for judgment in judgments]
    totals = [sum(value in label for value, _ in labelled) for label in lines]
    return AgreementTable(name, min_answers, totals, cells, diagonal)


def _set_name(labels: _Labels) -> str:
    return "+".join(str(label) for label in sorted(labels))


def tables_report(tables: Sequence[AgreementTable]) -> Report:
    """The tables for reading: the highest count of each column bold, the cell of the line's κ boxed.

    For programs every cell is a row: table, min_answers, label, judgment, counts, and κ with all digits.
    """
    rows: list[list[Cell]] = [
        [table.table, table.min_answers, _set_name(cell.label), _set_name(cell.judgment), *astuple(cell)[2:]]
        for table in tables
        for cell in table.cells
    ]
    names = ["table", "min_answers", "label", "judgment", "both", "label_only", "judgment_only", "neither", "kappa"]
    data = Table(columns(names, places=-1), rows)
    each = [{name: value for name, value in plain(one).items() if name != "diagonal"} for one in tables]
    content = {"format": "rubric_measures agreement-tables 1", "tables": each}
    return Report(map(_reading, tables), [data], lambda: content)


def _reading(table: AgreementTable) -> Table:
    wide = len(table.cells) // len(table.totals)
    lines = [table.cells[start : start + wide] for start in range(0, len(table.cells), wide)]
    highest = [max(cell.both for cell in column) for column in zip(*lines, strict=True)]
    rows: list[list[Cell]] = []
    for line, diagonal, total in zip(lines, table.diagonal, table.totals, strict=True):
        counts = [
            Marked(cell.both, "", bold=cell.both == highest[column], boxed=column == diagonal)
            for column, cell in enumerate(line)
        ]
        kappa = line[diagonal].kappa
        rows.append([_set_name(line[0].label), *counts, total, None if kappa is None else f"{kappa:.2g}"])
    heads = columns([table.table, *(_set_name(cell.judgment) for cell in lines[0]), "total", "kappa"])
    return Table(heads, rows, f"min answers {table.min_answers}: label (lines) against judgment (columns)")
