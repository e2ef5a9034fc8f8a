"""Versions of answers beside each other: which runs are compared, whether they can be, and what is graded again.

A version is an evaluation in memory, or the folder that an earlier one wrote.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rubric_measures.analysis.boards import Board, load_board, score
from rubric_measures.base.errors import InputError, UnknownNameError, counted
from rubric_measures.corpora.loading import load, load_bank
from rubric_measures.corpora.pooling import pooled
from rubric_measures.formats.reports import Answer
from rubric_measures.formats.trec import runs_of_records
from rubric_measures.grading.grade import grade
from rubric_measures.measures.grades import NONE
from rubric_measures.measures.measure import parse_measures
from rubric_measures.pages.board_page import evidence
from rubric_measures.records.models import QueryPassages, load_graded, made_by_set
from rubric_measures.types.entities import TestBank, canonical_json

if TYPE_CHECKING:
    from rubric_measures.analysis.facts import FactDiff, Question, Side
    from rubric_measures.pages.board_page import QueryEvidence

_Cells = set[tuple[str, str]]


@dataclass(frozen=True)
class AnswerVersion:
    """Graded answers.

    Attributes:
        name: what they are called, where a run has the same name on both sides.
        board: their scores.
        evidence: their grades, question by question.
        runs: the systems that answered.
        settings: how the grades were made: model, prompt, temperature, ….
    """

    name: str
    board: Board
    evidence: Sequence[QueryEvidence]
    runs: tuple[str, ...]
    settings: Mapping[str, str]

    @property
    def queries(self) -> dict[str, QueryEvidence]:
        """Question -> its grades."""
        return {query.query_id: query for query in self.evidence}


def read_version(folder: str | os.PathLike[str]) -> AnswerVersion:
    """The answers in a folder that `evaluate_answers` wrote, in memory: another evaluation may take its place.

    Raises:
        InputError: a file is not there.
        FormatError: a file cannot be read.
    """
    at = Path(folder)
    lacking = [name for name in ("graded.jsonl.gz", "bank.csv", "board.json") if not (at / name).exists()]
    if lacking:
        text = f"{at} has no {lacking[0]}; name a folder that an evaluation of answers wrote to its end"
        raise InputError(text, settings=("against",))
    kept = load_board(at / "board.json")
    groups = list(load_graded(at / "graded.jsonl.gz"))
    grades = load(groups, load_bank(at / "bank.csv"), on_failed=kept.on_failed)
    board = score(grades, None, list(kept.measures), overall=False, notes=False)
    runs = tuple(run.run_id for run in runs_of_records(groups))
    return AnswerVersion(at.resolve().name, board, evidence(board, grades), runs, settings_of(groups))


def settings_of(groups: Iterable[QueryPassages]) -> dict[str, str]:
    """How grades were made, as their records say: setting -> value; all values, where there are several."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        for passage in group.passages:
            for entry in passage.exam_grades or ():
                made = made_by_set(entry).get("definition", {}).get("settings", {})
                for name, value in made.items():
                    found.setdefault(name, {})[value if isinstance(value, str) else canonical_json(value)] = None
    return {name: " and ".join(sorted(values)) for name, values in found.items()}


def paired_runs(before: Iterable[str], after: Iterable[str], run: str | None) -> tuple[dict[str, str], list[str]]:
    """Which run is compared with which, and what is not compared.

    One run on each side are compared; of several, those of the same name.

    Args:
        before: the runs of the first version.
        after: the runs of the second version.
        run: the only one of the second version that is compared; None for all.

    Raises:
        UnknownNameError: there is no such run.
        InputError: nothing is left to be compared.
    """
    old, every = list(before), list(after)
    if run is not None and run not in every:
        raise UnknownNameError("run", run, every, settings=("run",))
    new = every if run is None else [run]
    pairs = {one: one if one in old else old[0] for one in new if one in old or (len(new) == 1 and len(old) == 1)}
    if not pairs:
        text = f"no run of {', '.join(new)} is also one of {', '.join(old)}; give runs the same names, or name one run"
        raise InputError(text, settings=("against", "run"))
    left = [one for one in new if one not in pairs], [one for one in old if one not in pairs.values()]
    names = [f"{', '.join(names)} ({when})" for names, when in zip(left, ("new", "before"), strict=True) if names]
    return pairs, [f"not compared: {'; '.join(names)}"] if names else []


def refuse_others(before: AnswerVersion, after: AnswerVersion) -> None:
    """Refuses versions that were graded with another bank, grader or prompt: their difference may be the graders'.

    Raises:
        InputError: there is a difference; names it.
    """
    old, new = before.queries, after.queries
    common = [query_id for query_id in new if query_id in old]
    if not common:
        raise InputError("the two versions have no question in common", settings=("against", "bank"))
    changed = [query_id for query_id in common if set(old[query_id].items) != set(new[query_id].items)]
    if changed:
        text = f"not comparable: another bank; {counted(len(changed), 'question')} (such as {changed[0]}) "
        raise InputError(f"{text}had other facts before; grade both with one bank", settings=("against", "bank"))
    for name in sorted(
        before.settings.keys() | after.settings.keys(), key=lambda one: (one not in ("model", "prompt"), one)
    ):
        said = [version.settings.get(name, "none") for version in (before, after)]
        if said[0] != said[1]:
            text = f"not comparable: the grader has another {name} ({said[0]:.60} before, {said[1]:.60} now)"
            raise InputError(f"{text}; grade both with the same", settings=("against",))


def compare_versions(
    before: AnswerVersion,
    after: AnswerVersion,
    pairs: Mapping[str, str],
    left_out: Sequence[str],
    *,
    confirm: int = 0,
    asking: Mapping[str, Any] | None = None,
) -> FactDiff:
    """What each run gained and lost; see `EvaluatedAnswers.against`.

    Args:
        before: the first version.
        after: the second version.
        pairs: run of the second one -> run of the first one.
        left_out: what is not compared.
        confirm: how often changes are graded again.
        asking: of what is graded again, arguments of `grade`.

    Raises:
        InputError: the versions were graded with another bank, grader or prompt.
    """
    from rubric_measures.analysis.facts import FLIPPED, FactDiff, Question, diff_facts

    if confirm < 0:
        raise InputError(f"changes are graded again 0 or more times, not {confirm}", settings=("confirm",))
    refuse_others(before, after)
    old, new = before.queries, after.queries
    level = next(iter(new.values())).level
    asked = {
        query_id: Question(query.text or query_id, query.items, level, query.scale) for query_id, query in old.items()
    }
    said = list(left_out)
    if gone := [query_id for query_id in old if query_id not in new]:
        said.append(f"{counted(len(gone), 'question')} without an answer now (such as {gone[0]}): their facts are lost")
    if only := [query_id for query_id in new if query_id not in old]:
        said.append(f"not compared: {counted(len(only), 'question')} that nobody was asked before (such as {only[0]})")
    [measure, *_] = parse_measures(list(after.board.measures)[:1])
    found = []
    for run, other in pairs.items():
        first, second = sides = _side(old, other, _named(other, run, before.name)), _side(new, run, run)
        made = diff_facts(first, second, asked, measure, runs=len(pairs))
        flips = {(one.query_id, one.item.item_id) for one in made.facts if one.state in FLIPPED}
        if confirm and flips:
            texts = [
                {query_id: query.answers.get(name, "") for query_id, query in version.items()}
                for version, name in ((old, other), (new, run))
            ]
            doubtful = _doubtful(flips, texts, sides, asked, confirm, asking or {})
            made = diff_facts(first, second, asked, measure, doubtful=doubtful, runs=len(pairs))
        found.append(made)
    return FactDiff(tuple(found), tuple(said))


def _named(other: str, run: str, version: str) -> str:
    return other if other != run else f"{other} of {version}" if version else f"{other} before"


def _side(queries: Mapping[str, QueryEvidence], run: str, name: str) -> Side:
    """The grades of a run; an empty answer is none."""
    from rubric_measures.analysis.facts import Side

    return Side(
        name,
        {
            query_id: {item.item_id: query.cells[item.item_id][run].grade for item in query.items}
            for query_id, query in queries.items()
            if query.answers.get(run, "").strip()
        },
        {
            (query_id, item_id): said
            for query_id, query in queries.items()
            for item_id, cells in query.cells.items()
            if run in cells and (said := cells[run].retrieval)
        },
    )


def part_of(bank: TestBank, cells: _Cells) -> TestBank:
    """The bank of some of the (query, item) alone."""
    items = {
        query_id: kept
        for query_id, of_query in bank.items.items()
        if (kept := tuple(item for item in of_query if (query_id, item.item_id) in cells))
    }
    return TestBank(items, bank.query_texts, bank.facet_texts)


def _doubtful(
    flips: _Cells,
    texts: Sequence[Mapping[str, str]],
    sides: Sequence[Side],
    asked: Mapping[str, Question],
    times: int,
    asking: Mapping[str, Any],
) -> _Cells:
    """The changed facts that some grade does not find again: both answers are graded for them alone, with no cache."""
    texts_of = {query_id: question.text for query_id, question in asked.items()}
    bank = part_of(TestBank({query_id: tuple(question.items) for query_id, question in asked.items()}, texts_of), flips)
    names = ("before", "after")
    answers = [
        Answer(query_id, name, of_side[query_id])
        for name, of_side in zip(names, texts, strict=True)
        for query_id in bank.items
        if of_side.get(query_id, "").strip()
    ]
    groups = list(
        pooled([], 1, {}, answers=answers, queries={one: texts_of[one] for one in bank.items}, max_words=None)
    )
    again = {**asking, "calls": dataclasses.replace(asking["calls"], cache=None), "give_up_after": None}
    doubtful: _Cells = set()
    for _ in range(times):
        records = list(grade(groups, bank, **again))
        found = load(records, bank).queries
        rows = {run.run_id: run.rankings for run in runs_of_records(records)}
        for query_id, item_id in flips:
            of_these = found[query_id]
            place = [item.item_id for item in of_these.items].index(item_id)
            for name, side in zip(names, sides, strict=True):
                if query_id not in side.grades:
                    continue
                [doc_id] = rows[name][query_id].doc_ids
                grade_now = of_these.grades[of_these.docs[doc_id], place]
                now = grade_now >= asked[query_id].level
                # A grade that failed agrees with nothing.
                if grade_now == NONE or now != side.covers(query_id, item_id, asked[query_id].level):
                    doubtful.add((query_id, item_id))
    return doubtful
