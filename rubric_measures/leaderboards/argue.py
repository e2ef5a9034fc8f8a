"""Scores of reports as Auto-ARGUE computes them from its judgments, and its files of scores.

Source: Walden et al. 2025, Auto-ARGUE.
"""

from __future__ import annotations

import logging
import os
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.formats.autojudge import ArgueReport, ArgueSentence, answer_documents, needs_all_answers
from rubric_measures.leaderboards.board import Cell, Leaderboard
from rubric_measures.leaderboards.scoring import cell_of
from rubric_measures.types.entities import Signature, TestBank, content_hash, describe

__all__ = ["ArgueScores", "ReportCounts", "argue_scores", "write_argue_scores"]

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
