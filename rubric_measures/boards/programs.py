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

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import median
from types import MappingProxyType
from typing import TypeVar

from ir_measures.measures.base import Measure
from msgspec.structs import replace

from rubric_measures.base.errors import InputError, MeasureError, tell, warn
from rubric_measures.base.files import paused_collector
from rubric_measures.boards.board import Leaderboard
from rubric_measures.boards.scoring import cell_of, digest_of, inputs_settings, score_records
from rubric_measures.formats.banks import answer_documents, needs_all_answers
from rubric_measures.formats.judged import ASSIGNMENTS, FAILED, GRADED, NUGGETIZER, RAGDOLL
from rubric_measures.formats.support import ArgueReport
from rubric_measures.measures.findings import Note, say
from rubric_measures.measures.grades import texts_digest
from rubric_measures.measures.loading import RecordQuery
from rubric_measures.types.entities import BoardInputs, Cell, Signature, TestBank, content_hash, describe

Line = TypeVar("Line")
ALL = "all"
ARGUE = (
    *("sentence_support", "citation_support", "citation_relevance", "nugget_coverage", "nugget_coverage_weighted"),
    *("f1", "f1_weighted"),
)
# Importance -> weight, where nobody says others.
VITAL_TWICE: Mapping[str, float] = MappingProxyType({"vital": 2.0, "okay": 1.0})


# What is counted in one report, and summed over those of a run, as files of scores name it: all sentences; those that
# cite, and those that should and say it first; those all of whose citations attest; citations; those that attest; those
# of documents that are listed for a nugget; nuggets of the topic, and those that the report answers, plain and by
# weight; characters after NFKC, sentences joined by a blank.
COUNTS = (
    *("sentences", "sentences_with_citations_or_requiring_citations", "correctly_cited_sentences"),
    *("citations", "supporting_citations", "relevant_citations"),
    *("nuggets", "correct_nuggets", "nuggets_weighted", "correct_nuggets_weighted", "character_count"),
)
_Counted = Mapping[str, float]


def argue_rates(counts: _Counted) -> dict[str, float]:
    """The rates and the two F1 of `COUNTS`, each in [0, 1]; 0 where the denominator is 0.

    sentence_support = correctly cited / with citations or requiring them; citation_support and citation_relevance: of
    all citations; nugget_coverage, plain and weighted: of all nuggets; f1 is the harmonic mean of sentence_support and
    coverage.

    >>> counts = {"correctly_cited_sentences": 171, "sentences_with_citations_or_requiring_citations": 245}
    >>> round(argue_rates(Counter({**counts, "correct_nuggets": 268, "nuggets": 815}))["f1"], 5)
    0.44705
    """
    pairs = (
        ("correctly_cited_sentences", "sentences_with_citations_or_requiring_citations"),
        ("supporting_citations", "citations"),
        ("relevant_citations", "citations"),
        ("correct_nuggets", "nuggets"),
        ("correct_nuggets_weighted", "nuggets_weighted"),
    )
    support, *others = (counts[part] / counts[whole] if counts[whole] else 0.0 for part, whole in pairs)
    f1 = [2 * support * one / (support + one) if support + one else 0.0 for one in others[-2:]]
    return dict(zip(ARGUE, (support, *others, *f1), strict=True))


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
    topics = sorted({one.report.query_id for one in judged})
    bank = TestBank({topic: bank.for_query(topic) for topic in topics}, bank.query_texts)
    weights = VITAL_TWICE if weights is None else weights
    weigh = _weights(bank, weights)
    empty = {
        topic: {
            **dict.fromkeys(COUNTS, 0),
            "nuggets": len(items),
            "nuggets_weighted": sum(weigh[item.item_id] for item in items),
        }
        for topic, items in bank.items.items()
    }
    undecided, unknown = Counter[str](), Counter[str]()
    found: dict[str, dict[str, _Counted | None]] = {one.report.run_name: dict(empty) for one in judged}
    for one in judged:
        counts, topic = _count_report(one, bank, weigh, undecided, unknown), one.report.query_id
        found[one.report.run_name][topic] = None if counts is None else {**empty[topic], **counts}
    failed = sorted((run, topic) for run, of_run in found.items() for topic, one in of_run.items() if one is None)
    shown = ", ".join(f"{run} on {topic}" for run, topic in failed[:5])
    text = "%d reports have citations, or only sentences, that nobody judged; they have no scores (%s)"
    warn(text, len(failed), shown)
    missing = len(found) * len(topics) - len({(one.report.run_name, one.report.query_id) for one in judged})
    tell("%d reports are missing: their runs have a 0 for these topics", missing)
    text = "%d sentences without citations have no judgment whether they need one (judged: %s); they are left out"
    warn(text, undecided.total(), next(iter(dict(undecided.most_common(1))), "") or "nothing")
    text = "%d matched answers are of questions or answers that the bank does not have (such as %r); left out"
    warn(text, unknown.total(), next(iter(unknown), ""))
    rows: dict[tuple[str, str, str], float] = {}
    cells: dict[str, dict[str, Cell]] = {}
    for run, of_run in sorted(found.items()):
        counted = {topic: one for topic, one in of_run.items() if one is not None}
        scores = {topic: argue_rates(one) for topic, one in counted.items()}
        total = {name: sum(one[name] for one in counted.values()) for name in COUNTS}
        macro = {name: {topic: scores[topic][name] if topic in scores else None for topic in topics} for name in ARGUE}
        micro = {f"{name}_micro": value for name, value in argue_rates(total).items()}
        cells[run] = {name: cell_of(column) for name, column in macro.items()}
        for name, rate in micro.items():
            cells[run][name] = Cell(rate if counted else None, None, len(counted), None, 0, per_query={})
        listed = {topic: {**one, **scores[topic]} for topic, one in counted.items()}
        if counted:
            sizes = [one["character_count"] for one in counted.values()]
            listed[ALL] = {**total, "character_count_median": median(sizes), "character_count_max": max(sizes)}
            for name in ARGUE:
                listed[ALL] |= {f"{name}_micro": micro[f"{name}_micro"], f"{name}_macro": cells[run][name].mean or 0.0}
        rows |= {(run, topic, name): float(one) for topic, of in listed.items() for name, one in of.items()}
    names = [*ARGUE, *(f"{name}_micro" for name in ARGUE)]
    signature = Signature(
        {"measures": names, "compat": "argue", "weights": dict(weights), **describe((), bank)}
        | {"judgments": content_hash(sorted(one.raw.decode("utf-8") for one in judged))}
    )
    return ArgueScores(rows, failed, Leaderboard(names, cells, signature))


def _count_report(
    judged: ArgueReport, bank: TestBank, weigh: Mapping[str, float], undecided: Counter[str], unknown: Counter[str]
) -> dict[str, float] | None:
    """The counts of one report; None where a citation has no judgment whether it attests, or no sentence was judged.

    Counts what is left out: kinds of judgments of sentences that say nothing of citations, and questions.
    """
    items = bank.for_query(judged.report.query_id)
    listed = {item.item_id: answer_documents(item) for item in items}
    evidence = {doc_id for answers in listed.values() for doc_ids in answers.values() for doc_id in doc_ids}
    by_text = {item.text: item for item in items}
    counts = dict[str, float](dict.fromkeys(COUNTS[:6], 0))
    stated: dict[str, set[str]] = {}
    sentences = [one for one in judged.judgments if one.segment_type == "sentence"]
    if not sentences and judged.report.text.strip():
        return None
    for sentence in sentences:
        cited = [one.doc_id for one in sentence.citations or ()]
        attests = sentence.said("SENTENCE_ATTESTED", "is_attested")
        relevant = sentence.said("CITED_DOCUMENT_RELEVANCE", "is_relevant")
        if any(attests.get(doc_id) is None for doc_id in cited):
            return None
        lacks = bool(cited) or sentence.lacks_citation
        if lacks is None:
            undecided[", ".join(sorted({one.judgment_type_id for one in sentence.judgments or ()}))] += 1
        attested = sum(attests[doc_id] is True for doc_id in cited)
        is_right = bool(cited) and all(attests[doc_id] for doc_id in cited)
        found = sum(relevant.get(doc_id, doc_id in evidence) is True for doc_id in cited)
        for name, number in zip(counts, (1, bool(lacks), is_right, len(cited), attested, found), strict=True):
            counts[name] += number
        for question, answer in (pair for one in sentence.judgments or () for pair in one.matches):
            item = by_text.get(question)
            if item is None or (item.gold_answers and answer not in item.gold_answers):
                unknown[question] += 1
            elif not evidence or not listed[item.item_id].get(answer, frozenset()).isdisjoint(cited):
                stated.setdefault(item.item_id, set()).add(answer)
    right = [
        item.item_id
        for item in items
        if stated.get(item.item_id) and (not needs_all_answers(item) or stated[item.item_id] >= set(item.gold_answers))
    ]
    text = unicodedata.normalize("NFKC", " ".join(sentence.text for sentence in sentences))
    counts["correct_nuggets"], counts["character_count"] = len(right), len(text)
    return {**counts, "correct_nuggets_weighted": sum(weigh[item_id] for item_id in right)}


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


_Scorers = Mapping[str, Callable[[Line], float | None]]
"""Measure -> how it scores a line; None is no score."""


def _asked(program: str, known: _Scorers[Line], measures: Sequence[Measure]) -> _Scorers[Line]:
    """The measures that are asked for, of those that a program knows.

    Raises:
        MeasureError: it does not know one.
    """
    for name in map(str, measures):
        if name not in known:
            raise MeasureError(f"{program} knows {', '.join(known)}, not {name}")
    return {str(measure): known[str(measure)] for measure in measures}


def _board_of_lines(
    program: str,
    scorers: _Scorers[Line],
    lines: Mapping[str, Mapping[str, Sequence[Line]]],
    digested: Callable[[Sequence[Line]], str],
) -> Leaderboard:
    """Means over the lines that are there, of run -> query -> lines; the value of a query is that of its lines.

    Args:
        program: what the signature calls it.
        scorers: the measures.
        lines: the lines.
        digested: of the lines of a run for a query, what the digest of the run is made of.
    """
    cells: dict[str, dict[str, Cell]] = {}
    for run, queries in sorted(lines.items()):
        cells[run] = {}
        for name, scorer in scorers.items():
            found = {query_id: list(map(scorer, of)) for query_id, of in sorted(queries.items())}
            known = {query_id: [one for one in of if one is not None] for query_id, of in found.items()}
            values = {query_id: sum(of) / len(of) if of else None for query_id, of in known.items()}
            cells[run][name] = cell_of(values, listed=chain.from_iterable(found.values()))
    # What is judged of an answer stands beside it: what a run is given is all there is.
    runs = {
        run: digest_of({query_id: digested(of) for query_id, of in of_run.items()})
        for run, of_run in sorted(lines.items())
    }
    inputs = BoardInputs({}, runs)
    signature = Signature({"measures": list(scorers), "compat": program, **inputs_settings(inputs)})
    return Leaderboard(list(scorers), cells, signature, inputs=inputs)


# How many nuggets there are, how many of them are supported, and how many partly.
_Counts = tuple[int, int, int]


def _counts(labels: Sequence[str]) -> _Counts:
    return len(labels), labels.count("support"), labels.count("partial_support")


def _score(counts: _Counts, partial: float) -> float:
    """The program's score of one answer, Σ s_i / n over its nuggets, in [0, 1]; 0 without any.

    s_i is 1 for `support`, 0.5 for `partial_support` (0 when strict), 0 for any other label.

    Source: nuggetizer 0.0.5, its metrics.

    >>> _score((2, 1, 1), 0.5)
    0.75
    """
    nuggets, supported, partly = counts
    return (supported + partial * partly) / nuggets if nuggets else 0.0


# A line is the counts of all its nuggets, and of the vital ones.
_NUGGETIZER: _Scorers[tuple[_Counts, _Counts]] = {
    "NuggetV": lambda line: _score(line[1], 0.5),
    "NuggetV(strict=True)": lambda line: _score(line[1], 0.0),
    "NuggetA": lambda line: _score(line[0], 0.5),
    "NuggetA(strict=True)": lambda line: _score(line[0], 0.0),
}
_LABELS = (*NUGGETIZER.grades, FAILED)


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
    scorers = _asked("the nuggetizer program", _NUGGETIZER, measures)
    lines: dict[str, dict[str, list[tuple[_Counts, _Counts]]]] = {}
    repeated = failed = unknown = 0
    with paused_collector():
        for _, line in ASSIGNMENTS.each(path):
            several = lines.setdefault(str(line.run_id), {}).setdefault(str(line.qid), [])
            repeated += bool(several)
            labels = [one.label for one in line.marks]
            vital = [one.label for one in line.marks if one.importance == "vital"]
            several.append((_counts(labels), _counts(vital)))
            failed += labels.count(FAILED)
            unknown += len(labels) - sum(map(labels.count, _LABELS))
    warn("%d lines repeat a query of their run; each counts, as in the nuggetizer program", repeated)
    warn("%d labels are failed; they count as not supported, as in the nuggetizer program", failed)
    warn("%d labels are unknown as they stand; they count as not supported, as in the nuggetizer program", unknown)
    return _board_of_lines("nuggetizer", scorers, lines, lambda of: str(sorted(of)))


def with_official(ours: Leaderboard, official: Leaderboard, asked: Sequence[Measure]) -> Leaderboard:
    """One leaderboard of two, of the same runs, read once. Each measure keeps the queries that it was scored over.

    A warning says where these are not the same for grades and qrels: then the means are over different queries.

    Args:
        ours: scores over grades.
        official: scores over judgments.
        asked: all measures, in the order to show.
    """
    # The scale said the levels of our measures, and so their names.
    named = iter(ours.measures)
    measures = [str(one) if str(one) in official.measures else next(named) for one in dict.fromkeys(asked)]
    inputs = BoardInputs(
        ours.inputs.grades,
        {run: texts_digest((ours.inputs.runs[run], official.inputs.runs[run])) for run in ours.inputs.runs},
        official.inputs.grades,
    )
    said = list(ours.said)
    if apart := sorted(ours.inputs.grades.keys() ^ official.inputs.grades.keys()):
        text = f"means are over different queries: {len(apart)} are only graded or only judged (such as {apart[0]})"
        say([Note(text, tuple(apart))], said)
    sides = {name: official if name in official.measures else ours for name in measures}
    return replace(
        ours,
        measures=measures,
        cells={run: {name: side.cells[run][name] for name, side in sides.items()} for run in ours.cells},
        signature=Signature({**ours.signature.settings, "measures": measures, **inputs_settings(inputs)}),
        missing=_joined(ours.missing, official.missing, set.union),
        # What one side lacks is said once, of queries.
        unknown=_joined(ours.unknown, official.unknown, set.intersection),
        inputs=inputs,
        best={name: best for name in measures if (best := official.best.get(name) or ours.best.get(name))},
        findings=[*ours.findings, *official.findings],
        said=said,
    )


def _joined(
    some: Mapping[str, Iterable[str]], more: Mapping[str, Iterable[str]], join: Callable[[set[str], set[str]], set[str]]
) -> dict[str, list[str]]:
    joined = {run: join({*some.get(run, ())}, {*more.get(run, ())}) for run in sorted({*some, *more})}
    return {run: sorted(queries) for run, queries in joined.items() if queries}


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


# A line is the criteria of an answer; the ternary score, and the binary one.
_RAGDOLL: _Scorers[list[tuple[float, str]]] = {
    "WeightedCover": partial(ragdoll_score, strict=False),
    "WeightedCover(strict=True)": partial(ragdoll_score, strict=True),
}


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
    scorers = _asked("RAGDoll", _RAGDOLL, measures)
    lines: dict[str, dict[str, list[list[tuple[float, str]]]]] = {}
    kinds: list[tuple[str, str]] = []
    for answer in GRADED.read(path):
        criteria = (answer.marks or ()) if answer.status == "completed" else ()
        lines.setdefault(str(answer.run_id), {})[str(answer.qid)] = [[(one.weight, one.label) for one in criteria]]
        kinds += [(one.facet_text, one.label) for one in criteria]
    # The toolkit's failures by category.
    total, failed = Counter(kind for kind, _ in kinds), Counter(kind for kind, said in kinds if said != "satisfied")
    shares = ", ".join(f"{kind} {failed[kind]} of {total[kind]} ({failed[kind] / total[kind]:.6f})" for kind in total)
    tell("criteria that are not satisfied in full, by type: %s", shares)
    unknown = sum(label not in RAGDOLL.grades and label != FAILED for _, label in kinds)
    warn("%d verdicts are none of RAGDoll's; they count as not satisfied, as there", unknown)
    return _board_of_lines("ragdoll", scorers, lines, lambda of: str(of[0]))


def score_workbench(
    queries: Iterable[RecordQuery], measures: Sequence[Measure], settings: Mapping[str, object] | None = None
) -> Leaderboard:
    """Scores the rankings inside graded records by the rules of the workbench's program.

    Args:
        queries: the stream of `loading.read_records`, read with `Grader.first` and with `keep_ranks`.
        measures: RubricCover and nRubricCover with a cutoff.
        settings: what else belongs into the signature.

    Returns:
        a leaderboard whose means are over the queries that each run ranks.

    Raises:
        MeasureError: another measure is asked for.
        InputError: the records hold no ranking.

    Source: facts of the program, published with Dietz (SIGIR 2024).
    """
    program, cutoffs = "the Rubric workbench's program", {measure.params.get("cutoff") for measure in measures}
    covers = [one for one in measures if one.NAME in ("RubricCover", "nRubricCover") and not one["judged_only"]]
    if None in cutoffs or len(cutoffs) > 1 or len(covers) < len(measures):
        known = "knows RubricCover and nRubricCover without judged_only, and cuts rankings by rank"
        raise MeasureError(f"{program} {known}; write one cutoff, as in RubricCover@20")
    (cutoff,) = cutoffs

    def cut(query: RecordQuery) -> RecordQuery:
        if query.grades.is_partial:
            text = "grades were asked only as far as some measures need them, and that program counts by all of them"
            raise InputError(text, settings=("compat",))
        tops = {run: [doc_id for rank, doc_id in of if rank <= cutoff] for run, of in query.ranks.items()}
        return replace(query, rankings={run: doc_ids for run, doc_ids in tops.items() if doc_ids})

    # What is left of a ranking counts whatever its rank.
    plain = [measure(cutoff=None) for measure in measures]
    board = score_records(map(cut, queries), plain, on_failed="zero", settings=settings)
    names = {name: f"{name}@{cutoff}" for name in board.measures}
    rows = with_present(board).cells
    own = {name: one for name, one in board.signature.settings.items() if name not in ("on_failed", "missing", "sort")}
    return replace(
        board,
        measures=list(names.values()),
        cells={run: {named: row[PRESENT + name] for name, named in names.items()} for run, row in rows.items()},
        best={names[name]: best for name, best in board.best.items()},
        signature=Signature({**own, "measures": list(names.values()), "compat": "workbench"}),
        missing={},
    )


# The measure of length, as the TREC RAG track calls it.
LENGTH = "L"
# How the names of columns over the queries that a run answers begin.
PRESENT = "present:"


def with_lengths(board: Leaderboard, lengths: Mapping[str, Mapping[str, int]]) -> Leaderboard:
    """The leaderboard with L as its last measure: whitespace words of the answer, 0 where there is none."""
    found = {
        run: {query_id: float(lengths.get(run, {}).get(query_id, 0)) for query_id in next(iter(row.values()), {})}
        for run, row in board.values.items()
    }
    return _with_columns(board, {LENGTH: found})


def with_present(board: Leaderboard) -> Leaderboard:
    """The leaderboard with each measure once more, as `present:NAME`: over the queries alone that the run answers.

    A mean over all queries counts an answer that is missing as 0; this one says how good the answers are that there
    are. The best possible score has an answer to every query.
    """
    found = {
        PRESENT + name: {
            run: {query_id: one for query_id, one in row[name].items() if query_id not in board.missing.get(run, ())}
            for run, row in board.values.items()
        }
        for name in board.measures
    }
    wide = _with_columns(board, found)
    inexact = None if board.inexact is None else [*board.inexact, *(PRESENT + name for name in board.inexact)]
    best = {**board.best, **{PRESENT + name: best for name, best in board.best.items()}}
    return replace(wide, best=best, inexact=inexact)


def _with_columns(board: Leaderboard, columns: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> Leaderboard:
    """The leaderboard with more measures, of measure -> run -> query -> value."""

    def cell(run: str, name: str) -> Cell:
        # What the queries of a run that it answers need is all that it needs.
        like = board.cells[run].get(name.removeprefix(PRESENT))
        return replace(cell_of(columns[name][run]), coverage=None if like is None else like.coverage)

    return replace(
        board,
        measures=[*board.measures, *columns],
        cells={run: {**row, **{name: cell(run, name) for name in columns}} for run, row in board.cells.items()},
    )
