"""Boards as other programs make them: ARGUE, nuggetizer, RAGDoll, the workbench, official ones; summaries of boards.

Scores of reports as Auto-ARGUE computes them from its judgments, and its files of scores.

Source: Walden et al. 2025, Auto-ARGUE.

Leaderboards as the nuggetizer program computes them, to recompute published ones.

It differs from `leaderboard`: A nugget is vital where its importance is exactly `vital`; all others are one class
(`failed` too). Labels count as they stand: `failed` and unknown ones earn nothing and stay in the denominator. A nugget
that comes twice counts twice. The mean is over the lines that are there: a missing query is no zero, and a repeated
line counts again.

Official measures beside ours: a leaderboard over grades and one over judgments (qrels) of the same runs, as one.

Leaderboards of rubrics as RAGDoll, the toolkit of TREC RAG 2026, computes them, to recompute published ones.

It differs from `leaderboard`: A verdict that failed earns nothing and stays in the denominator. The weights are those
of each line. A line without a criterion of positive weight has no score, and is not in the mean; the mean is over the
lines that are there, so a query without a line is no zero.

Leaderboards as the Rubric workbench's program computes them, to recompute published ones.

It differs from the paper, and so from `leaderboard`: The denominator is the graded items of a query, not its bank. A
run is averaged only over the queries in which it ranks a passage at rank 20 or better. The cut is on the `rank` field
as it stands (tied ranks are all kept), whatever query a ranking names. Where several grade sets pass the filter, the
first of each passage counts.

What TREC prints beside scores of answers: their length L, means over the queries that a run answers, and the least,
median and greatest score of the runs.
"""

from __future__ import annotations

import logging
import os
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import median
from types import MappingProxyType
from typing import Any

from ir_measures.measures.base import Measure

from rubric_measures.base.errors import FormatError, InputError, MeasureError
from rubric_measures.base.files import atomic_writer, path_name, paused_collector, run_of_file
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.boards.board import BELOW, BoardInputs, Cell, Leaderboard
from rubric_measures.boards.scoring import (
    InputsReader,
    best_of,
    cell_of,
    collect_cells,
    inputs_settings,
    measure_names,
    texts_digest,
)
from rubric_measures.formats.autojudge import ArgueReport, ArgueSentence, answer_documents, needs_all_answers
from rubric_measures.formats.ragdoll import read_graded_answers
from rubric_measures.measures.core import NONE, Array
from rubric_measures.measures.grade_sets import GradeFilter
from rubric_measures.measures.loading import RankedPassage, RecordQuery
from rubric_measures.measures.scoring import Plan, SameScale, ranking_digest
from rubric_measures.records.models import QueryPassages
from rubric_measures.types.entities import Signature, TestBank, content_hash, describe, made_by
from rubric_measures.types.scales import ANY_LEVEL

_LOG = logging.getLogger("rubric_measures")
ALL = "all"
RATES = ("sentence_support", "citation_support", "citation_relevance", "nugget_coverage", "nugget_coverage_weighted")
F1 = ("f1", "f1_weighted")
# Importance -> weight, where nobody says others.
VITAL_TWICE: Mapping[str, float] = MappingProxyType({"vital": 2.0, "okay": 1.0})
# What the judgments of a sentence without citations say, by their fields.
_NEEDS = ("requires_citation", "needs_citation")
_FIRST = ("is_first_instance", "first_instance", "is_first")


@dataclass(frozen=True)
class ReportCounts:
    """What is counted in one report; sums of these are what a run has.

    Attributes:
        sentences: all sentences.
        sentences_with_citations_or_requiring_citations: those that cite, and those that should and say it first.
        correctly_cited_sentences: those all of whose citations attest.
        citations: citations of all sentences.
        supporting_citations: those that attest.
        relevant_citations: those of documents that are listed for a nugget.
        nuggets: nuggets of the topic.
        correct_nuggets: those that the report answers.
        nuggets_weighted: the sum of their weights.
        correct_nuggets_weighted: the sum of the weights of those that the report answers.
        character_count: characters after NFKC, sentences joined by a blank.
    """

    sentences: float = 0
    sentences_with_citations_or_requiring_citations: float = 0
    correctly_cited_sentences: float = 0
    citations: float = 0
    supporting_citations: float = 0
    relevant_citations: float = 0
    nuggets: float = 0
    correct_nuggets: float = 0
    nuggets_weighted: float = 0
    correct_nuggets_weighted: float = 0
    character_count: float = 0

    def scores(self) -> dict[str, float]:
        """The rates and the two F1, each in [0, 1]; 0 where the denominator is 0.

        sentence_support = correctly cited / with citations or requiring them; citation_support and citation_relevance:
        of all citations; nugget_coverage, plain and weighted: of all nuggets; f1 is the harmonic mean of
        sentence_support and coverage.

        >>> counts = ReportCounts(1, 245, 171, nuggets=815, correct_nuggets=268)
        >>> round(counts.scores()["f1"], 5)
        0.44705
        """
        pairs = (
            (self.correctly_cited_sentences, self.sentences_with_citations_or_requiring_citations),
            (self.supporting_citations, self.citations),
            (self.relevant_citations, self.citations),
            (self.correct_nuggets, self.nuggets),
            (self.correct_nuggets_weighted, self.nuggets_weighted),
        )
        rates = {name: part / whole if whole else 0.0 for name, (part, whole) in zip(RATES, pairs, strict=True)}
        support = rates["sentence_support"]
        for name, coverage in zip(F1, (rates["nugget_coverage"], rates["nugget_coverage_weighted"]), strict=True):
            rates[name] = 2 * support * coverage / (support + coverage) if support + coverage else 0.0
        return rates


@dataclass(frozen=True)
class ArgueScores:
    """The scores of runs.

    Attributes:
        rows: (run, topic or `all`, metric) -> value, as a file of scores has them.
        failed: (run, topic) of reports whose judging failed: they have no scores, and are in no mean.
        board: the same as a leaderboard: `sentence_support` and its like are means over topics (macro), with `_micro`
            those of all topics together.
    """

    rows: Mapping[tuple[str, str, str], float]
    failed: Sequence[tuple[str, str]]
    board: Leaderboard


@dataclass
class _LeftOut:
    undecided: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)


def argue_scores(
    reports: Iterable[ArgueReport], bank: TestBank, weights: Mapping[str, float] | None = None
) -> ArgueScores:
    """The scores of judged reports.

    Topics are those of the reports; a run without a report to one has a 0 there. A report whose judging failed (a
    citation without a judgment whether it attests, or no judged sentence at all) is named, and no 0.

    Args:
        reports: the judged reports, of one run or several.
        bank: the nuggets of the topics; answers that list documents count in sentences that cite one of these.
        weights: importance -> weight, vital 2 and okay 1 if None. A bank without importance has equal weights.

    Raises:
        InputError: there is no report; a topic is not in the bank; some nuggets have an importance and others none.
    """
    judged = list(reports)
    if not judged:
        raise InputError("there are no judged reports")
    topics = sorted({one.query_id for one in judged})
    bank = TestBank({topic: bank.for_query(topic) for topic in topics}, bank.query_texts)
    weights = VITAL_TWICE if weights is None else weights
    weigh = _weights(bank, weights)
    notes = _LeftOut()
    found: dict[str, dict[str, ReportCounts | None]] = {}
    for one in judged:
        found.setdefault(one.run_id, {})[one.query_id] = _count_report(one, bank, weigh, notes)
    missing = sum(topic not in of_run for of_run in found.values() for topic in topics)
    failed = sorted((run, topic) for run, of_run in found.items() for topic, one in of_run.items() if one is None)
    rows: dict[tuple[str, str, str], float] = {}
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    cells: dict[str, dict[str, Cell]] = {}
    for run, of_run in sorted(found.items()):
        counts = {topic: of_run.get(topic, _empty(bank, topic, weigh)) for topic in topics}
        values[run], cells[run] = _of_run(rows, run, counts)
    _say(notes, failed, missing)
    names = [*RATES, *F1, *(f"{name}_micro" for name in (*RATES, *F1))]
    signature = Signature(
        {"measures": names, "compat": "argue", "weights": dict(weights), **describe((), bank)}
        | {"judgments": content_hash(sorted(one.model_dump_json() for one in judged))}
    )
    return ArgueScores(rows, failed, Leaderboard(names, values, cells, signature))


def _of_run(
    rows: dict[tuple[str, str, str], float], run: str, counts: Mapping[str, ReportCounts | None]
) -> tuple[dict[str, dict[str, float | None]], dict[str, Cell]]:
    """Adds the rows of a run; its values by topic, and its means."""
    there = {topic: one for topic, one in counts.items() if one is not None}
    scores = {topic: one.scores() for topic, one in there.items()}
    for topic, one in there.items():
        for name, value in (*vars(one).items(), *scores[topic].items()):
            rows[run, topic, name] = float(value)
    total = ReportCounts(
        *(sum(getattr(one, name) for one in there.values()) for name in ReportCounts.__dataclass_fields__)
    )
    columns: dict[str, dict[str, float | None]] = {}
    cells: dict[str, Cell] = {}
    for name in (*RATES, *F1):
        columns[name] = {topic: scores[topic][name] if topic in scores else None for topic in counts}
        cells[name] = cell_of(columns[name].values())
    for name, value in total.scores().items():
        columns[f"{name}_micro"] = {}
        cells[f"{name}_micro"] = Cell(value if there else None, None, len(there), None, 0)
    if there:
        sizes = [one.character_count for one in there.values()]
        ends = {"character_count_median": statistics.median(sizes), "character_count_max": max(sizes)}
        for name, value in (*vars(total).items(), *ends.items()):
            rows[run, ALL, name] = float(value)
        for name in (*RATES, *F1):
            rows[run, ALL, f"{name}_micro"] = cells[f"{name}_micro"].mean or 0.0
            rows[run, ALL, f"{name}_macro"] = cells[name].mean or 0.0
    return columns, cells


def _count_report(
    judged: ArgueReport, bank: TestBank, weigh: Mapping[str, float], notes: _LeftOut
) -> ReportCounts | None:
    """The counts of one report; None where a citation has no judgment whether it attests, or no sentence was judged."""
    items = bank.for_query(judged.query_id)
    listed = {item.item_id: answer_documents(item) for item in items}
    evidence = {doc_id for answers in listed.values() for doc_ids in answers.values() for doc_id in doc_ids}
    by_text = {item.text: item for item in items}
    counted: Counter[str] = Counter()
    stated: dict[str, set[str]] = {}
    if not judged.sentences and any(one.text.strip() for one in judged.report.sentences):
        return None
    for sentence in judged.sentences:
        of_sentence = _count_sentence(sentence, evidence, notes)
        if of_sentence is None:
            return None
        counted.update(of_sentence)
        cited = {one.doc_id for one in sentence.citations or ()}
        for question, answer in (pair for one in sentence.judgments or () for pair in one.matches):
            item = by_text.get(question)
            if item is None or (item.gold_answers and answer not in item.gold_answers):
                notes.unknown[question] += 1
            elif not evidence or listed[item.item_id].get(answer, frozenset()) & cited:
                stated.setdefault(item.item_id, set()).add(answer)
    right = [
        item.item_id
        for item in items
        if stated.get(item.item_id) and (not needs_all_answers(item) or stated[item.item_id] >= set(item.gold_answers))
    ]
    text = unicodedata.normalize("NFKC", " ".join(sentence.text for sentence in judged.sentences))
    return ReportCounts(
        sentences=counted["sentences"],
        sentences_with_citations_or_requiring_citations=counted["judged"],
        correctly_cited_sentences=counted["correct"],
        citations=counted["citations"],
        supporting_citations=counted["supporting"],
        relevant_citations=counted["relevant"],
        nuggets=len(items),
        correct_nuggets=len(right),
        nuggets_weighted=sum(weigh[item.item_id] for item in items),
        correct_nuggets_weighted=sum(weigh[item_id] for item_id in right),
        character_count=len(text),
    )


def _count_sentence(sentence: ArgueSentence, evidence: Set[str], notes: _LeftOut) -> dict[str, int] | None:
    """What a sentence adds to the counts of its report; None where a citation has no judgment whether it attests."""
    cited = [one.doc_id for one in sentence.citations or ()]
    attests = _by_document(sentence, "SENTENCE_ATTESTED", "is_attested")
    if any(attests.get(doc_id) is None for doc_id in cited):
        return None
    relevant = _by_document(sentence, "CITED_DOCUMENT_RELEVANCE", "is_relevant")
    return {
        "sentences": 1,
        "citations": len(cited),
        "supporting": sum(attests[doc_id] is True for doc_id in cited),
        "relevant": sum(relevant.get(doc_id, doc_id in evidence) is True for doc_id in cited),
        "judged": bool(cited) or _lacks_citation(sentence, notes),
        "correct": bool(cited) and all(attests[doc_id] for doc_id in cited),
    }


def _empty(bank: TestBank, topic: str, weigh: Mapping[str, float]) -> ReportCounts:
    items = bank.for_query(topic)
    return ReportCounts(nuggets=len(items), nuggets_weighted=sum(weigh[item.item_id] for item in items))


def _weights(bank: TestBank, weights: Mapping[str, float]) -> dict[str, float]:
    """Item id -> weight: its own, that of its importance, or 1 where no item has either."""
    plain = all(item.importance is None and item.weight is None for item in bank)
    found: dict[str, float] = {}
    for item in bank:
        own = 1.0 if plain else weights.get(item.importance or "", item.weight)
        if own is None:
            raise InputError(
                f"query {item.query_id!r}: {item.text!r} has no importance (or one without a weight), and others have; "
                "give it one in the bank"
            )
        found[item.item_id] = own
    return found


def _by_document(sentence: ArgueSentence, kind: str, name: str) -> dict[str, bool | None]:
    found: dict[str, bool | None] = {}
    for one in sentence.judgments or ():
        if one.judgment_type_id == kind and one.doc_id is not None:
            said = (one.response or {}).get(name)
            found[one.doc_id] = said if isinstance(said, bool) else None
    return found


def _lacks_citation(sentence: ArgueSentence, notes: _LeftOut) -> bool:
    """Whether a sentence that cites nothing needs a citation, and is the first to say what it says."""
    said = {name: value for one in sentence.judgments or () for name, value in (one.response or {}).items()}
    needs = [said[name] for name in _NEEDS if isinstance(said.get(name), bool)]
    first = [said[name] for name in _FIRST if isinstance(said.get(name), bool)]
    if not needs:
        notes.undecided.update([", ".join(sorted({one.judgment_type_id for one in sentence.judgments or ()}))])
    return any(needs) and all(first)


def _say(notes: _LeftOut, failed: Sequence[tuple[str, str]], missing: int) -> None:
    if failed:
        shown = ", ".join(f"{run} on {topic}" for run, topic in failed[:5])
        _LOG.warning(
            "%d reports have citations, or only sentences, that nobody judged; they have no scores (%s)",
            len(failed),
            shown,
        )
    if missing:
        _LOG.info("%d reports are missing: their runs have a 0 for these topics", missing)
    if notes.undecided:
        _LOG.warning(
            "%d sentences without citations have no judgment whether they need one (judged: %s); they are left out",
            *(notes.undecided.total(), notes.undecided.most_common(1)[0][0] or "nothing"),
        )
    if notes.unknown:
        text = "%d matched answers are of questions or answers that the bank does not have (such as %r); left out"
        _LOG.warning(text, notes.unknown.total(), next(iter(notes.unknown)))


def write_argue_scores(path: str | os.PathLike[str], scores: ArgueScores) -> None:
    """Writes a file of scores as Auto-ARGUE does: `run_id`, `request_id`, `metric`, `value`, with that header.

    Raises:
        InputError: the file cannot be written.
    """
    with atomic_writer(path) as stream:
        stream.write("run_id\trequest_id\tmetric\tvalue\n")
        stream.writelines(f"{run}\t{topic}\t{name}\t{value!r}\n" for (run, topic, name), value in scores.rows.items())


_PUBLISHED = ("NuggetV", "NuggetV(strict=True)", "NuggetA", "NuggetA(strict=True)")
_KNOWN = frozenset(("support", "partial_support", "not_support", "failed"))
_TEXT = frozenset((str,))


def score_nuggetizer(path: str | os.PathLike[str], measures: Sequence[Measure]) -> Leaderboard:
    """Scores a file of assignments by the rules of the nuggetizer program; counted notes say where they differ.

    The value of a query that a run answers in several lines is their mean; the mean of the run is over the lines.

    Args:
        path: the file; several runs may be in it. A line without `run_id` is of the run that the file is named after.
        measures: NuggetV and NuggetA, strict or not, without other parameters: the program knows no other.

    Raises:
        MeasureError: another measure is asked for.
        InputError: the file cannot be opened.
        FormatError: naming file and line.
    """
    names = [str(measure) for measure in measures]
    for name in names:
        if name not in _PUBLISHED:
            raise MeasureError(f"the nuggetizer program knows {', '.join(_PUBLISHED)}, not {name}")
    lines = _lines(path_name(path))
    cells: dict[str, dict[str, Cell]] = {}
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    for run, queries in sorted(lines.items()):
        cells[run], values[run] = {}, {}
        in_order = sorted(queries.items())
        for name in names:
            vital, strict = name.startswith("NuggetV"), "strict" in name
            found = {query_id: [_score(answer[vital], strict) for answer in answers] for query_id, answers in in_order}
            cells[run][name] = cell_of([value for several in found.values() for value in several])
            values[run][name] = {query_id: sum(several) / len(several) for query_id, several in found.items()}
    reader = InputsReader()
    for run, queries in lines.items():
        # Nuggets, labels and answers come together: what a run is given is all there is.
        reader.add_run(run, ((query_id, str(sorted(answers))) for query_id, answers in queries.items()))
    inputs = reader.read()
    signature = Signature({"measures": names, "compat": "nuggetizer", **inputs_settings(inputs)})
    return Leaderboard(names, values, cells, signature, inputs=inputs)


# How many nuggets there are, how many of them are supported, and how many partly.
_Counts = tuple[int, int, int]
# Of all nuggets of a line, and of the vital ones: what its scores are made of.
_Answer = tuple[_Counts, _Counts]


def _counts(labels: Sequence[str]) -> _Counts:
    return len(labels), labels.count("support"), labels.count("partial_support")


def _score(counts: _Counts, strict: bool) -> float:
    """The program's score of one answer, Σ s_i / n over its nuggets, in [0, 1]; 0 without any.

    s_i is 1 for `support`, 0.5 for `partial_support` (0 when strict), 0 for any other label.

    Source: nuggetizer 0.0.5, its metrics.

    >>> _score((2, 1, 1), strict=False)
    0.75
    """
    nuggets, supported, partly = counts
    return (supported + (0.0 if strict else 0.5) * partly) / nuggets if nuggets else 0.0


def _lines(name: str) -> dict[str, dict[str, list[_Answer]]]:
    """Run -> query -> the counts of each of its lines."""
    found: dict[str, dict[str, list[_Answer]]] = {}
    unknown = failed = repeated = 0
    with paused_collector():
        for number, data in json_texts(name):
            query_id, run, importances, labels = _line(parse_json(data, path=name, line=number), name, number)
            answers = found.setdefault(run, {}).setdefault(query_id, [])
            repeated += bool(answers)
            vital = [label for importance, label in zip(importances, labels, strict=True) if importance == "vital"]
            answers.append((_counts(labels), _counts(vital)))
            failed += labels.count("failed")
            unknown += len(labels) - sum(map(labels.count, _KNOWN))
    if not found:
        raise FormatError("is empty; expected assignments, one JSON object a line", path=name)
    for count, what in (
        (repeated, "%d lines repeat a query of their run; each counts, as in the nuggetizer program"),
        (failed, "%d labels are failed; they count as not supported, as in the nuggetizer program"),
        (unknown, "%d labels are unknown as they stand; they count as not supported, as in the nuggetizer program"),
    ):
        if count:
            _LOG.warning(what, count)
    return found


def _line(content: Any, name: str, number: int) -> tuple[str, str, list[str], list[str]]:
    """The query and the run of a line; the importance and the assignment of each of its nuggets."""
    try:
        query_id, run = content["qid"], content.get("run_id")
        if run is None:
            run = run_of_file(name)
        importances = [nugget["importance"] for nugget in content["nuggets"]]
        labels = [nugget["assignment"] for nugget in content["nuggets"]]
    except (KeyError, TypeError, AttributeError):
        problem = "expected qid, run_id and nuggets with importance and assignment"
        raise FormatError(problem, path=name, line=number) from None
    if run == "":
        raise FormatError("names no run; say which one it is", path=name, line=number, field="run_id")
    if type(query_id) is str and type(run) is str and _TEXT.issuperset(map(type, importances + labels)):
        return query_id, run, importances, labels
    for what, found in (("qid", query_id), ("run_id", run), *(("nuggets", text) for text in importances + labels)):
        # Some files write ids as numbers.
        if not isinstance(found, str) and (what == "nuggets" or type(found) is not int):
            problem = f"expected a text; found {type(found).__name__}"
            raise FormatError(problem, path=name, line=number, field=what)
    return str(query_id), str(run), importances, labels


_NOTHING = Cell(None, None, 0, None, 0)


def with_official(ours: Leaderboard, official: Leaderboard, measures: Sequence[str]) -> Leaderboard:
    """One leaderboard of two, of the same runs. Each measure keeps the queries that it was scored over.

    A warning says where these are not the same for grades and qrels: then the means are over different queries.

    Args:
        ours: scores over grades.
        official: scores over judgments.
        measures: all columns, in the order to show.
    """
    _say_queries(ours.inputs.grades, official.inputs.grades)
    runs = [*ours.cells, *(run for run in official.cells if run not in ours.cells)]
    inputs = BoardInputs(
        ours.inputs.grades,
        {run: texts_digest((ours.inputs.runs[run], official.inputs.runs[run])) for run in ours.inputs.runs},
        official.inputs.grades,
    )
    settings = {**ours.signature.settings, "measures": list(measures), **inputs_settings(inputs)}
    values, cells = {}, {}
    for run in runs:
        sides = [side for side in (ours, official) if run in side.cells]
        found = {name: side.values[run][name] for side in sides for name in side.measures}
        values[run] = {name: found.get(name, {}) for name in measures}
        known = {name: side.cells[run][name] for side in sides for name in side.measures}
        cells[run] = {name: known.get(name, _NOTHING) for name in measures}
    return replace(
        ours,
        measures=list(measures),
        values=values,
        cells=cells,
        signature=Signature(settings),
        missing=_united(ours.missing, official.missing),
        # What one side lacks is said once, of queries.
        unknown={
            run: both
            for run in ours.unknown
            if (both := sorted({*ours.unknown[run]} & {*official.unknown.get(run, ())}))
        },
        inputs=inputs,
        best={name: best for name in measures if (best := official.best.get(name) or ours.best.get(name))},
    )


def _united(some: Mapping[str, Iterable[str]], more: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    return {run: sorted({*some.get(run, ()), *more.get(run, ())}) for run in sorted({*some, *more})}


def _say_queries(graded: Mapping[str, str], judged: Mapping[str, str]) -> None:
    if graded.keys() == judged.keys():
        return
    both = graded.keys() & judged.keys()
    _LOG.warning(
        "means are over different queries: %d are graded and judged, %d only graded%s, %d only judged%s",
        len(both),
        *_few(graded.keys() - both),
        *_few(judged.keys() - both),
    )


def _few(queries: Iterable[str]) -> tuple[int, str]:
    named = sorted(queries)
    return len(named), f" (such as {named[0]})" if named else ""


# Its ternary score, and its binary one.
_RAGDOLL_PUBLISHED = ("WeightedCover", "WeightedCover(strict=True)")


def ragdoll_score(criteria: Iterable[tuple[float, str]], *, strict: bool) -> float | None:
    """The toolkit's score of one answer: Σ w_i v_i / Σ of the positive w_i; None where no weight is positive.

    v is 1 for `satisfied`, ½ for `partially_satisfied` (0 when strict), 0 for any other verdict.

    >>> ragdoll_score([(5, "partially_satisfied"), (2, "satisfied"), (2, "failed")], strict=False)
    0.5

    Args:
        criteria: (weight, verdict) of each criterion.
        strict: the binary score; else the ternary one.
    """
    listed = list(criteria)
    credits = {"satisfied": 1.0, "partially_satisfied": 0.0 if strict else 0.5}
    whole = sum(weight for weight, _ in listed if weight > 0)
    return sum(weight * credits.get(verdict, 0.0) for weight, verdict in listed) / whole if whole else None


def score_ragdoll(path: str | os.PathLike[str], measures: Sequence[Measure]) -> Leaderboard:
    """Scores a file of graded answers by the rules of the toolkit; a note counts what is not satisfied by type.

    Args:
        path: the file; several runs may be in it.
        measures: WeightedCover (the ternary score), strict (the binary one) or not, without other parameters.

    Raises:
        MeasureError: another measure is asked for.
        InputError: the file cannot be opened.
        FormatError: naming file, line and field.
    """
    names = [str(measure) for measure in measures]
    for name in names:
        if name not in _RAGDOLL_PUBLISHED:
            raise MeasureError(f"RAGDoll knows {' and '.join(_RAGDOLL_PUBLISHED)}, not {name}")
    answers = read_graded_answers(path)
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    reader = InputsReader()
    for answer in sorted(answers, key=lambda one: (one.run_id, one.qid)):
        criteria = [(one.weight, one.verdict) for one in answer.judged]
        of_run = values.setdefault(answer.run_id, {name: {} for name in names})
        for name in names:
            of_run[name][answer.qid] = ragdoll_score(criteria, strict="strict" in name)
        reader.add_run(answer.run_id, [(answer.qid, str(criteria))])
    cells: dict[str, dict[str, Cell]] = {
        run: {name: cell_of(of_run[name].values()) for name in names} for run, of_run in values.items()
    }
    _say_types((one.type, one.verdict) for answer in answers for one in answer.judged)
    inputs = reader.read()
    signature = Signature({"measures": names, "compat": "ragdoll", **inputs_settings(inputs)})
    return Leaderboard(names, values, cells, signature, inputs=inputs)


def _say_types(criteria: Iterable[tuple[str, str]]) -> None:
    """Says how many criteria of each type are not satisfied in full: the toolkit's failures by category."""
    total: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for kind, verdict in criteria:
        total[kind] += 1
        failed[kind] += verdict != "satisfied"
    shares = ", ".join(f"{kind} {failed[kind]} of {total[kind]} ({failed[kind] / total[kind]:.6f})" for kind in total)
    _LOG.info("criteria that are not satisfied in full, by type: %s", shares)


DEFAULT_RANK = 20


def workbench_filter(wanted: GradeFilter) -> GradeFilter:
    """The filter with the workbench's rule for several grade sets: the first in file order, passage by passage."""
    return replace(wanted, first=True)


def _check(measures: Sequence[Measure]) -> None:
    for measure in measures:
        if measure.NAME not in ("RubricCover", "nRubricCover") or measure["judged_only"]:
            raise MeasureError(f"the Rubric workbench's program knows RubricCover and nRubricCover, not {measure}")
        if measure.params.get("cutoff") is None:
            raise MeasureError(f"the Rubric workbench's program cuts rankings by rank; write {measure}@{DEFAULT_RANK}")


def _cover(measure: Measure, best: Array, every: Array) -> float:
    """Cover of one query by the program's rules.

    Args:
        measure: the measure.
        best: the best grade of each item among the passages of a run.
        every: among all graded passages.
    """
    size = int((every >= measure["rel"] if measure.NAME == "nRubricCover" else every > NONE).sum())
    return int((best >= measure["rel"]).sum()) / size if size else 0.0


def score_workbench(
    queries: Iterable[RecordQuery], measures: Sequence[Measure], settings: Mapping[str, object] | None = None
) -> Leaderboard:
    """Scores the rankings inside graded records by the rules of the workbench's program.

    Args:
        queries: the stream of `loading.read_records`, read with `workbench_filter` and with `keep_ranks`.
        measures: RubricCover and nRubricCover with a cutoff.
        settings: what else belongs into the signature.

    Returns:
        a leaderboard whose means are over the queries that each run ranks.

    Raises:
        MeasureError: another measure is asked for.
        InputError: the records hold no ranking.

    Source: facts of the program, published with Dietz (SIGIR 2024).
    """
    _check(measures)
    plan, scales = Plan(measures), SameScale()
    asked = [str(measure) for measure in measures]
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    reachable: dict[str, dict[str, float]] = {name: {} for name in asked}
    grade_sets: set[str] = set()
    made: set[str] = set()
    inputs = InputsReader()
    deepest = max(measure["cutoff"] for measure in measures)
    for query in queries:
        grade_sets.update(map(str, query.grade_sets))
        made |= query.made
        inputs.add_grades(query.query_id, query.grades)
        for run_id, places in query.ranks.items():
            looked_at = [f"{place.rank} {place.doc_id}" for place in sorted(places) if place.rank <= deepest]
            inputs.add_run(run_id, [(query.query_id, ranking_digest(looked_at))])
        levelled = plan.said(scales, query.grades)
        # Refuses measures that are one on this scale.
        measure_names(levelled.measures, plan.measures)
        plan = levelled
        # A query without grades covers nothing, at whatever level.
        measures = plan.on(ANY_LEVEL).measures
        grades, docs = query.grades.grades, query.grades.docs
        every = grades.max(axis=0, initial=NONE)
        for run_id, places in query.ranks.items():
            for measure, name in zip(measures, asked, strict=True):
                kept = _within(places, measure["cutoff"])
                if kept:
                    best = grades[[docs[doc_id] for doc_id in kept if doc_id in docs]].max(axis=0, initial=NONE)
                    values.setdefault(run_id, {}).setdefault(name, {})[query.query_id] = _cover(measure, best, every)
        for measure, name in zip(measures, asked, strict=True):
            reachable[name][query.query_id] = _cover(measure, every, every)
    if not values:
        raise InputError(
            "the records hold no ranking; the Rubric workbench's program scores the rankings inside the records"
        )
    names = measure_names(plan.measures)
    ordered = {
        run_id: {
            name: dict(sorted(values[run_id].get(one, {}).items())) for name, one in zip(names, asked, strict=True)
        }
        for run_id in sorted(values)
    }
    said = {"measures": names, "compat": "workbench", "grades": sorted(grade_sets), **made_by(made), **(settings or {})}
    signature = Signature({**said, **inputs_settings(inputs.read())})
    best = {name: best for name, one in zip(names, asked, strict=True) if (best := best_of(reachable[one]))}
    return Leaderboard(names, ordered, collect_cells(ordered), signature, inputs=inputs.read(), best=best)


def _within(places: Sequence[RankedPassage], cutoff: int) -> list[str]:
    return [place.doc_id for place in places if place.rank <= cutoff]


# The measure of length, as the TREC RAG track calls it.
LENGTH = "L"
# How the names of columns over the queries that a run answers begin.
PRESENT = "present:"
# How the rows of the summary are made of the values of the runs.
_KINDS: Mapping[str, Callable[[Sequence[float]], float]] = dict(zip(BELOW, (max, median, min), strict=True))


def lengths_of_records(groups: Iterable[QueryPassages], name: str) -> dict[str, dict[str, int]]:
    """Run -> query -> L: the whitespace words of all passages that the run ranks for the query (its whole answer).

    Raises:
        InputError: the records hold no rankings.
    """
    lengths: dict[str, dict[str, int]] = {}
    for group in groups:
        for passage in group.passages:
            words = len(passage.text.split())
            for run_id in {ranking.method for ranking in passage.rankings if ranking.query_id == group.query_id}:
                of_run = lengths.setdefault(run_id, {})
                of_run[group.query_id] = of_run.get(group.query_id, 0) + words
    if not lengths:
        raise InputError(f"{name}: holds no rankings, so nobody knows whose answers to measure")
    return lengths


def with_lengths(board: Leaderboard, lengths: Mapping[str, Mapping[str, int]]) -> Leaderboard:
    """The leaderboard with L as its last measure: whitespace words of the answer, 0 where there is none.

    Raises:
        MeasureError: the leaderboard has a measure of that name.
    """
    if LENGTH in board.measures:
        raise MeasureError(f"the leaderboard has a measure {LENGTH} already")
    values: dict[str, dict[str, Mapping[str, float | None]]] = {}
    for run_id, by_measure in board.values.items():
        found = lengths.get(run_id, {})
        queries = next(iter(by_measure.values()), {})
        values[run_id] = {**by_measure, LENGTH: {query_id: float(found.get(query_id, 0)) for query_id in queries}}
    made = collect_cells({run_id: {LENGTH: by_measure[LENGTH]} for run_id, by_measure in values.items()})
    cells = {run_id: {**row, **made[run_id]} for run_id, row in board.cells.items()}
    return replace(board, measures=[*board.measures, LENGTH], values=values, cells=cells)


def with_present(board: Leaderboard) -> Leaderboard:
    """The leaderboard with each measure once more, as `present:NAME`: over the queries alone that the run answers.

    A mean over all queries counts an answer that is missing as 0; this one says how good the answers are that there
    are. The best possible score has an answer to every query.
    """
    values: dict[str, dict[str, Mapping[str, float | None]]] = {}
    for run_id, by_measure in board.values.items():
        missing = set(board.missing.get(run_id, ()))
        values[run_id] = {
            PRESENT + name: {query_id: value for query_id, value in column.items() if query_id not in missing}
            for name, column in by_measure.items()
        }
    made = collect_cells(values)
    cells = {
        run_id: {
            **row,
            **{PRESENT + name: replace(made[run_id][PRESENT + name], coverage=row[name].coverage) for name in row},
        }
        for run_id, row in board.cells.items()
    }
    return replace(
        board,
        measures=[*board.measures, *(PRESENT + name for name in board.measures)],
        values={run_id: {**board.values[run_id], **by_measure} for run_id, by_measure in values.items()},
        cells=cells,
        best={**board.best, **{PRESENT + name: best for name, best in board.best.items()}},
    )


def with_summary(board: Leaderboard) -> Leaderboard:
    """The leaderboard with the rows `_max_`, `_median_` and `_min_` over its runs.

    The mean of `_max_` is the greatest of the runs' means, and its value for a query the greatest of their values for
    it; so for the other two. The rows have no standard error and no coverage.
    """
    values = dict(board.values)
    cells = dict(board.cells)
    for row, combine in _KINDS.items():
        by_measure: dict[str, dict[str, float | None]] = {}
        summary: dict[str, Cell] = {}
        for name in board.measures:
            means = [mean for run_id in board.cells if (mean := board.cells[run_id][name].mean) is not None]
            queries = dict.fromkeys(query_id for run_id in board.cells for query_id in board.values[run_id][name])
            by_measure[name] = {}
            for query_id in queries:
                found = [board.values[run_id][name].get(query_id) for run_id in board.cells]
                known = [value for value in found if value is not None]
                by_measure[name][query_id] = float(combine(known)) if known else None
            summary[name] = Cell(float(combine(means)) if means else None, None, len(queries), None, 0)
        values[row], cells[row] = by_measure, summary
    return replace(board, values=values, cells=cells)
