"""What may be wrong with grades and runs that are well-formed, found in what is in memory anyway.

Each check asks for many odd grades, documents or queries before it says so: few queries, ties, sparse banks and other
scales are no reason for an alarm. Of rankings the heads are looked at, and of ids those of two queries.
"""

from __future__ import annotations

import logging
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from functools import cache
from urllib.parse import unquote

import numpy as np
from ir_measures.measures.base import Measure
from msgspec import Struct, field
from msgspec.structs import force_setattr

from rubric_measures.base.errors import InputError, counted, in_number
from rubric_measures.measures.core import NONE, Array
from rubric_measures.measures.grades import DIRECT_ITEM, QueryGrades
from rubric_measures.measures.measure import RubricMeasure, RubricQrels, is_supported, rubric_measures_of
from rubric_measures.measures.scoring import HEAD, RankedRows, tied
from rubric_measures.types.entities import RubricItem, Run

# What is said of passages of which every grade failed.
DROPPED = (
    "passages whose grades all failed (%d) left the rankings of measures over labels and subtopics; programs that read "
    "exported qrels keep them, as not judged"
)
# So many grades or documents, or queries, have to be odd.
_MANY, _QUERIES = 20, 4
# Where a run has so few ids without a grade, one that looks like a graded id is told; where it has more, from three on.
_FEW = 10
# What right grades show less often is no chance.
_CHANCE = 0.001
# Of so many queries ids are looked at where some documents have no grade.
SAMPLED = 2


class Note(Struct, frozen=True):
    """What a number does not show.

    Attributes:
        text: one line: what, where, and what to do.
        ids: the runs, queries, documents or items that it names.
        is_warning: whether the numbers are probably not what was meant; else it is a fact beside them.
        settings: the parameters that mend it; the command line adds its options.
    """

    text: str
    ids: tuple[str, ...] = ()
    is_warning: bool = True
    settings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if "1 " in self.text:
            force_setattr(self, "text", in_number(self.text))

    def __str__(self) -> str:
        return self.text


def say(notes: Iterable[Note], said: list[Note] | None = None) -> None:
    """Logs each once; `said` takes them."""
    for one in dict.fromkeys(notes):
        if said is not None:
            said.append(one)
        level = logging.WARNING if one.is_warning else logging.INFO
        logging.getLogger("rubric_measures").log(level, "%s", one.text, extra={"settings": one.settings})


def of_wrapped(measures: Iterable[Measure]) -> list[Note]:
    """Which of the measures asked for were wrapped; for when there are scores, so that an error comes alone."""
    names = tuple(map(str, rubric_measures_of(measure for measure in measures if not is_supported(measure))))
    text = f"{len(names)} standard measures read the labels that the grades imply (maximum grade): {' '.join(names)}"
    return [Note(text, names, False)] if names else []


def without_items(queries: Collection[str]) -> list[Note]:
    """How many queries have no items: there is no denominator, so they have no score."""
    text = f"{len(queries)} queries have no items, and so no score and no place in a mean (such as %s)"
    return [Note(text % min(queries), tuple(sorted(queries)))] if queries else []


def of_queries(
    runs: Collection[str], unknown: Mapping[str, Collection[str]], missing: Mapping[str, Collection[str]]
) -> Iterator[Note]:
    """Which queries of runs nobody graded, and which queries runs lack; those that all of several lack once.

    Args:
        runs: all runs.
        unknown: run_id -> queries that it ranks, and that neither grades nor bank have.
        missing: run_id -> queries to score that it does not rank.
    """
    strangers = {run_id: min(queries) for run_id, queries in unknown.items() if queries}
    if strangers:
        everyone = set().union(*unknown.values())
        run_id = min(strangers, key=lambda run_id: (strangers[run_id], run_id))
        of, such = f"run {run_id}", strangers[run_id]
        near = Near(set(missing.get(run_id, ()))).find(such)
        if near is not None:
            yield _alike("queries", run_id, such, near)
        if len(strangers) > 1:
            of, such = f"{len(strangers)} runs", f"{such} of run {run_id}"
        text = f"{len(everyone)} queries of {of} are not graded and were left out (such as {such})"
        yield Note(text, tuple(sorted(everyone)))
    lone = set.intersection(*(set(missing.get(run_id, ())) for run_id in runs)) if len(runs) > 1 else set()
    if lone:
        text = f"no run ranks {counted(len(lone), 'query')} of the grades (such as {min(lone)}), and all score 0 there"
        yield Note(text, tuple(sorted(lone)))
    for run_id, queries in sorted(missing.items()):
        own = sorted(set(queries) - lone)
        if own:
            text = f"run {run_id} does not rank {counted(len(own), 'query')} (such as {own[0]}), and scores 0 there"
            yield Note(text, (run_id, *own))


# What other programs add to ids, behind or before them.
_BEHIND = re.compile(r"(?:\.(?:txt|html?|xml|json|pdf|gz|0)|#\d+)$")
_BEFORE = re.compile(r"^(?:.*/|[^\W\d_][^\W_]*[-/:.#|])(?=.)")


def _forms(one: str) -> tuple[str, str]:
    """An id without case, form of letters, percent-encoding, quotes, leading zeros, and kinds of hyphens; and without
    what was added.
    """
    text = unicodedata.normalize("NFC", unquote(one)).casefold().strip(" \t\xa0\ufeff\"'<>[]")
    plain = re.sub(r"(?<![\d.])0+(?=\d)", "", text.replace("_", "-").replace(" ", "-").strip("-"))
    return plain, _BEFORE.sub("", _BEHIND.sub("", plain))


class Near:
    """Finds the known id that another one is most probably meant to be.

    Args:
        known: the ids that are known. A form that two of these have says nothing.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known = tuple(defaultdict[str, list[str]](list) for _ in range(2))
        for one in known:
            for found, form in zip(self._known, _forms(one), strict=True):
                found[form].append(one)

    def find(self, lost: str) -> str | None:
        """The known id; None where there is none.

        >>> Near(["d007", "d008"]).find("D008.txt")
        'd008'
        """
        (plain, bare), (by_plain, by_bare) = _forms(lost), self._known
        for near in (by_plain.get(plain, ()), by_plain.get(bare, ()), by_bare.get(plain, ())):
            if len(near) == 1 and near[0] != lost:
                return near[0]
        return None


def refuse_other(run_id: str, asked: Set[str], known: Set[str]) -> None:
    """Refuses a run that has no query of the grades, as it would score 0 everywhere.

    Args:
        run_id: the run.
        asked: its queries.
        known: those of the grades.

    Raises:
        InputError: it has none of them; names one of each, the near one if there is one.
    """
    if asked and known and known.isdisjoint(asked):
        find = Near(known).find
        lost, near = next(((one, of) for one in sorted(asked) if (of := find(one))), (min(asked), min(known)))
        text = f"run {run_id} has no query of the grades: it has {lost!r}, they have {near!r}"
        raise InputError(f"{text}; give grades and run the same ids of queries")


def _alike(what: str, run_id: str, lost: str, near: str) -> Note:
    # Forms of letters look the same.
    differ = ascii if unicodedata.normalize("NFC", lost) == unicodedata.normalize("NFC", near) else repr
    text = f"ids of {what} of run {run_id} are written in another way than those of the grades"
    return Note(f"{text} ({differ(lost)} and {differ(near)}): write them in one", (run_id, lost, near))


class Looked(Struct):
    """What grades and runs show while they are scored."""

    # Of queries: how many grades, their lowest, highest, and lowest above 0; how many are no whole numbers, and the
    # highest of these; how many are above 0, and above 1; whether the scale is known, and has more than two grades;
    # whether there is nothing at all.
    _facts: dict[str, tuple[float, ...]] = {}
    # Of items: weight, whether it is vital, and whether it alone has no grade.
    _items: list[Array] = field(default_factory=lambda: [np.zeros((3, 0))])
    # Of runs that rank no grade above 1: how many of what they rank are above 0; of others None.
    _low: dict[str, int | None] = field(default_factory=dict)
    # Of runs: the queries that they rank; those where nearly all documents have one score; an id of those where none of
    # the first documents has a grade; how many ids have no grades, and such ids, each with one of the grades.
    _ranked: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _tied: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _strange: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _lost: Counter[str] = field(default_factory=Counter)
    _alike: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, grades: QueryGrades, rankings: Mapping[str, RankedRows]) -> None:
        """Takes a query, with the rankings of runs."""
        name = grades.query_id
        found = grades.grades[grades.valid]
        parts = found[found != np.rint(found)]
        ungraded = ~(grades.valid if grades.failed is None else grades.valid | grades.failed).any(axis=0)
        ends = found.min(initial=np.inf), found.max(initial=NONE), found.min(initial=np.inf, where=found > 0)
        is_known = grades.scale is not None and grades.scale.highest > 1
        over = len(parts), parts.max(initial=NONE), int((found > 0).sum()), int((found > 1).sum())
        self._facts[name] = len(found), *ends, *over, is_known, bool(ungraded.all())
        self._items.append(np.stack([grades.weights, grades.vital, ungraded & bool(len(found))]))
        lost = dict[str, list[str]]()
        # An answer is no document of a collection.
        is_sampled, are_answers = len(self._facts) <= SAMPLED and not grades.answers, bool(grades.answers)
        # The last one stands for documents without a grade.
        above_0, above_1 = (np.append((grades.grades > level).sum(axis=1), 0) for level in (0, 1))
        for run_id, one in rankings.items():
            self._ranked[run_id].append(name)
            if (low := self._low.get(run_id, 0)) is not None:
                rows = np.array(one.rows, int)
                self._low[run_id] = None if above_1[rows].any() else low + int(above_0[rows].sum())
            if one.is_tied:
                self._tied[run_id].append(name)
            is_strange = len(one.heads) > 0 and not are_answers and one.rows[0] < 0 and max(one.rows[:HEAD]) < 0
            if is_strange:
                self._strange[run_id].append(one.heads[0])
            if is_strange or is_sampled:
                lost[run_id] = [doc_id for doc_id, row in zip(one.heads, one.rows, strict=False) if row < 0]
        find = cache(Near(grades.docs if any(lost.values()) else ()).find)
        for run_id, ids in lost.items():
            self._lost[run_id] += len(ids)
            pairs = ((doc_id, near) for doc_id in ids if (near := find(doc_id)))
            # A known document that is ranked as well is another one.
            self._alike[run_id] += [pair for pair in pairs if grades.docs[pair[1]] not in rankings[run_id].rows]

    def notes(self, measures: Iterable[Measure], least: float | None = None) -> Iterator[Note]:
        """All that may be wrong.

        Args:
            measures: what is computed.
            least: the least grade that counts for labels, where these are written.
        """
        # The least grade that counts; NaN where grades are not compared with one.
        levels = {} if least is None else {"labels": least}
        for measure in measures:
            of = measure.inner() if isinstance(measure, type(RubricQrels)) and "rel" not in measure.params else measure
            said = [of.params[name] for name in ("rel", "partial_rel") if name in of.params]
            usual = np.nan if isinstance(of, RubricMeasure) else of["rel"] if "rel" in of.SUPPORTED_PARAMS else 0.0
            # A parameter without a value of its own is an object in ir_measures.
            levels[str(measure)] = min(said, default=usual if isinstance(usual, int | float) else np.nan)
        if sum(size for size, *_ in self._facts.values()) >= _MANY:
            yield from self._of_scale(levels)
        weights, vital, ungraded = np.concatenate(self._items, axis=1)
        asked = {name for name in ("NuggetV", "WeightedCover") if any(map(re.compile(rf"{name}\b").match, levels))}
        if asked and len(vital) > 2:
            yield from _of_bank(weights[~np.isnan(weights)], vital, asked)
        if ungraded.any():
            text = f"{int(ungraded.sum())} of {len(ungraded)} items have no grade, so that nothing covers them"
            yield Note(text, is_warning=False, settings=("bank",))
        ranked = set().union(*self._ranked.values()) or self._facts.keys()
        empty = [name for name in sorted(ranked) if self._facts[name][-1]]
        if empty and len(empty) < len(self._facts):
            text = f"{counted(len(empty), 'query')} of {len(self._facts)} have no grade (such as {empty[0]})"
            yield Note(text, tuple(empty))
        if self._tied or self._strange or any(self._alike.values()):
            yield from self._of_runs()

    def _of_scale(self, levels: Mapping[str, float]) -> Iterator[Note]:
        """Grades that reach no level, all go far beyond it, or are all the same; grades on two scales."""
        facts = map(np.array, zip(*self._facts.values(), strict=True))
        sizes, low, high, positive, parts, part, above_0, above_1, known, _ = facts
        count, lowest, highest, least = int(sizes.sum()), low.min(), high.max(), positive.min()
        names = list(self._facts)
        never = [name for name, level in levels.items() if highest < level or highest <= level == 0]
        beyond = [name for name, level in levels.items() if level > 1 and 10 * level <= least < np.inf]
        for name in (never or beyond)[:1]:
            level = levels[name]
            what = f"reaches {level:g}, the level of {name}" if level else f"is above 0 for {name}"
            far = f"the grades above 0 begin at {least:g}, far from {level:g}, the level of {name}: are they"
            text = f"no grade {what}; the highest is {highest:g}: are the grades" if never else far
            yield Note(f"{text} on another scale? Say which", tuple(never or beyond), settings=("scale",))
        # Where all are 1, what is covered is listed, and nothing else.
        if lowest == highest != 1 and not never and known.all():
            yield Note(f"all {count} grades are {lowest:g}: is that what the grader said?")
        if parts.sum() >= _MANY and part.max() < 1 < highest:
            such = names[parts.argmax()]
            text = f"{parts.sum()} of {count} grades are fractions below 1 (such as in query {such}), and the others go"
            yield Note(f"{text} up to {highest:g}: are some of them on the scale 0 to 1?", (such,))
        share = 1 - above_1.sum() / max(above_0.sum(), 1)
        # Of labels in words such as support a weak run may have partial ones alone.
        found = self._low if highest > (2 if known.all() else 1) else {}
        if below := [run for run, many in found.items() if (many or 0) >= _MANY and share**many < _CHANCE]:
            text = f"no grade of {len(below)} runs ({below[0]}) is above 1, and others go up to {highest:g}"
            yield Note(f"{text}: are these on two scales?", tuple(below))
        for place in range(_QUERIES, len(names) - _QUERIES + 1 if sizes.all() and not parts.any() else 0):
            first, last = high[:place], high[place:]
            if first.min() > last.max() or first.max() < last.min():
                text = f"the highest grade is {first.max():g} up to query {names[place - 1]}, and {last.max():g} from"
                lower = min(first.max(), last.max())
                # That all higher ones stand on one side by chance, of queries in any order and of grades in any order.
                share, higher = sizes[high > lower].sum() / count, (above_1 if lower >= 1 else above_0).sum()
                chance = max(2 / math.comb(len(names), place), share**higher)
                is_warning = bool(lower <= 1 and chance < _CHANCE)
                yield Note(f"{text} query {names[place]} on: are these on two scales?", (names[place],), is_warning)
                return

    def _of_runs(self) -> Iterator[Note]:
        """Runs of other documents, or of constant scores; each once for all runs."""
        least = {run_id: 1 if lost <= _FEW else 3 for run_id, lost in self._lost.items()}
        alike = {run_id: pairs[0] for run_id, pairs in self._alike.items() if len(pairs) >= least[run_id]}
        for run_id, pair in list(alike.items())[:1]:
            yield _alike("documents", run_id, *pair)
        sizes = {run_id: len(queries) for run_id, queries in self._ranked.items()}
        other = [one for one, lost in self._strange.items() if len(lost) == max(sizes[one], _QUERIES)]
        strange = [one for one in other if one not in alike]
        level = [run_id for run_id, queries in self._tied.items() if len(queries) >= max(_QUERIES, sizes[run_id] / 3)]
        odd = "none of the first documents has a grade (such as %s): are they of another collection?"
        same = "nearly all documents have one score (as for query %s), so ids order them: is it in another column?"
        for text, runs, found in ((odd, strange, self._strange), (same, level, self._tied)):
            if runs:
                more = f" and {counted(len(runs) - 1, 'more run')}" if len(runs) > 1 else ""
                such = found[runs[0]][0]
                yield Note(f"run {runs[0]}{more}: {text % such}", (*runs, such))


def _of_bank(weights: Array, vital: Array, measures: Collection[str]) -> Iterator[Note]:
    """Importance and weights that leave nothing to score by."""
    count, below, most = len(weights), np.count_nonzero(weights < 0), abs(weights).max(initial=0)
    half = np.median(abs(weights)) if count else 0
    wrong = {
        f"none of {len(vital)} items is vital, and NuggetV is of these alone": not vital.any(),
        f"none of {count} items has a positive weight": weights.max(initial=0) <= 0,
        f"{below} of {count} items have a negative weight: are the signs turned?": 2 * below > count,
        f"one item weighs {most:g}, half of them {half:g} at most: is that a slip?": count > 9 and most > 99 * half > 0,
    }
    needed = ("NuggetV", *["WeightedCover"] * 3)
    found = [text for (text, is_so), name in zip(wrong.items(), needed, strict=True) if is_so and name in measures]
    yield from (Note(text, settings=("bank",)) for text in found[:1])


def same_rankings(digests: Mapping[str, str], queries: int) -> Iterator[Note]:
    """Runs that rank the same documents in the same order.

    Args:
        digests: run_id -> the digest of all that is looked at of it.
        queries: how many queries are scored.
    """
    first: dict[str, str] = {}
    for run_id, digest in digests.items() if queries >= _QUERIES else ():
        twin = first.setdefault(digest, run_id)
        if twin != run_id:
            text = f"runs {twin} and {run_id} rank the same documents for all queries: is one of them another run?"
            yield Note(text, (twin, run_id), False)


def of_run(run: Run, labels: Mapping[str, Mapping[str, float]], measures: Iterable[Measure]) -> list[Note]:
    """What may be wrong with judgments of documents and one run, and what of either the other lacks."""
    looked, ranked, graded = Looked(), 0, 0
    for query_id, of_query in labels.items():
        docs = dict(zip(of_query, range(len(of_query)), strict=True))
        column = np.fromiter(of_query.values(), float, len(docs))[:, None]
        rankings: dict[str, RankedRows] = {}
        if ranking := run.rankings.get(query_id):
            doc_ids = ranking.doc_ids
            # So far down a document is looked for that is ranked under another id, too.
            rows = [docs.get(doc_id, -1) for doc_id in doc_ids[: 5 * HEAD]]
            is_tied = tied(np.array(ranking.scores))
            rankings[run.run_id] = RankedRows(rows, len(rows), heads=doc_ids[:HEAD], is_tied=is_tied)
            ranked += len(doc_ids)
            graded += sum(map(docs.__contains__, doc_ids))
        looked.add(QueryGrades(query_id, (RubricItem(DIRECT_ITEM, query_id, ""),), docs, column), rankings)
    asked = set(run.rankings)
    refuse_other(run.run_id, asked, labels.keys())
    covered = f"{graded} of {ranked} ranked passages are graded"
    return [
        *looked.notes(measures),
        *of_queries([run.run_id], {run.run_id: asked - labels.keys()}, {run.run_id: labels.keys() - asked}),
        *([Note(covered, is_warning=False)] if graded < ranked else []),
    ]
