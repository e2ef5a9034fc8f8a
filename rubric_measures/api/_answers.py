"""A table of answers to grades, scores and a report: what the command `answers` does."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union, Unpack

from rubric_measures.api._answer_banks import BankSource, given_bank, made_bank, of_asked, write_kept
from rubric_measures.api._answer_citations import answers_with_citations
from rubric_measures.api._answer_rows import Questions, answer_tables_of, asked_in
from rubric_measures.api._gates import read_gates
from rubric_measures.api._grading import grade
from rubric_measures.api._loading import Bank, File, load
from rubric_measures.api._report_pages import evidence, write_report
from rubric_measures.api._scoring import OF_ANSWERS, OF_CRITERIA, OF_NUGGETS, score
from rubric_measures.api._support import sentence_bank
from rubric_measures.base.errors import InputError, MeasureError, UnknownNameError
from rubric_measures.base.files import atomic_writer
from rubric_measures.corpora.pooling import pool
from rubric_measures.formats.reports import Answer, answer_doc_id
from rubric_measures.grading import default_prompts
from rubric_measures.measures.scoring import Plan, parse_measures, rubric_measures_of
from rubric_measures.measures.support import SupportMeasure
from rubric_measures.prompts import load_prompt
from rubric_measures.types.entities import RubricItem, TestBank, make_run

if TYPE_CHECKING:
    import pandas

    from rubric_measures.api._records import GradedRecords
    from rubric_measures.api._scoring import Board
    from rubric_measures.measures.grades import Grades, OnFailed
    from rubric_measures.measures.scoring import Measures
    from rubric_measures.models.settings import CallOptions, Progress
    from rubric_measures.pages.board_page import QueryEvidence
    from rubric_measures.records.models import QueryPassages
    from rubric_measures.types.scales import Scale

_LOG = logging.getLogger("rubric_measures")
AnswerSource: TypeAlias = Union[File, "pandas.DataFrame", Iterable[Mapping[str, Any]]]
"""Answers: a file, a data frame, a data set, or rows with names."""

# How many queries a failed test names.
_SHOWN_QUERIES = 5


@dataclass(frozen=True)
class EvaluatedAnswers:
    """Answers with their grades and scores.

    Attributes:
        board: the scores of the runs.
        grades: the grades behind them.
        bank: the test bank: what a good answer to each question has to say.
        records: the graded answers, with their texts and the grader's replies.
        runs: the systems that answered; the board also has their contexts, where these were graded.
        folder: where all of it was written; None where nothing was.
        page: the report there.
    """

    board: Board
    grades: Grades
    bank: TestBank
    records: GradedRecords
    runs: tuple[str, ...]
    folder: Path | None = None
    page: Path | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every grade is there."""
        return self.board.is_complete

    def __str__(self) -> str:
        return str(self.board)

    @cached_property
    def evidence(self) -> Sequence[QueryEvidence]:
        """What stands behind the grades, query by query: which run has which item, and why."""

        return evidence(self.board, self.grades)

    def missed(self, run: str) -> dict[str, list[RubricItem]]:
        """The items that a run was graded for and does not cover, by query, vital ones first.

        Raises:
            UnknownNameError: there is no such run.
        """
        if run not in self.board.cells:
            raise UnknownNameError("run", run, self.runs)
        return {query.query_id: lacking for query in self.evidence if (lacking := query.missed(run))}

    def assert_at_least(self, measure: str, least: float, run: str | None = None) -> None:
        """Fails a test whose answers score too low, with the items that they miss.

        Args:
            measure: `NuggetV`, say: one of the board.
            least: the least mean that passes.
            run: the run that has to pass; None for all.

        Raises:
            AssertionError: a mean is lower.
            UnknownNameError: there is no such measure or run.
        """
        # Pytest shows the line of the test, and not this one.
        __tracebackhide__ = True

        gates = read_gates({measure: least})
        lines = []
        for one in self.runs if run is None else (run,):
            if failed := gates.failed(self.board, [one]):
                lines += [*failed, *self._missed_lines(one)]
        if lines:
            raise AssertionError("\n".join(lines))

    def _missed_lines(self, run: str) -> list[str]:
        """What a run misses, worst queries first."""
        shown = sorted((query for query in self.evidence if query.missed(run)), key=lambda one: -len(one.missed(run)))
        lines = []
        for query in shown[:_SHOWN_QUERIES]:
            lines.append(f"  {run} misses of {query.text or query.query_id}")
            for item in query.missed(run):
                grade = query.cells[item.item_id][run].grade
                said = ", ".join([*([item.importance] if item.importance else []), f"grade {grade:g}"])
                lines.append(f"    - {item.text} ({said})")
        if len(shown) > _SHOWN_QUERIES:
            lines.append(f"  and items of {len(shown) - _SHOWN_QUERIES} more queries")
        return lines


def evaluate_answers(
    answers: AnswerSource | Sequence[AnswerSource] | Mapping[str, AnswerSource],
    *,
    model: str,
    bank: Bank | None = None,
    bank_from: BankSource | None = None,
    output: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    measures: Measures | None = None,
    contexts: bool = False,
    prompt: str | Sequence[str] = (),
    explain: bool | None = None,
    on_failed: OnFailed | None = None,
    title: str = "Answers",
    baseline: str | None = None,
    notes: Sequence[str] = (),
    review: str | None = None,
    progress: Progress = False,
    **calls: Unpack[CallOptions],
) -> EvaluatedAnswers:
    """Grades answers against a test bank, and scores the systems that gave them.

    >>> import rubric_measures
    >>> rows = [{"question": "Why is the sky blue?", "answer": "Air scatters blue light.",
    ...          "reference": "Air scatters blue light most. Our eyes see little violet."}]
    >>> result = rubric_measures.evaluate_answers(rows, model="lexical")
    >>> [(run, cells["NuggetV(rel=4,partial_rel=3)"].mean) for run, cells in result.board.cells.items()]
    [('answers', 0.5)]

    Args:
        answers: a row an answer: files (CSV, TSV, JSON, JSON lines, parquet), data frames, data sets, or rows with
            names; several of them are several runs, named by the keys of a mapping, else by their files. The column
            names of ragas, deepeval, promptfoo and Hugging Face datasets are known.
        model: who grades: `lexical`, `hf:NAME`, `openai:NAME`, …; see `grade`.
        bank: what good answers say: a bank, or a file of any format that `load_bank` reads. Its queries are found by
            their ids, or by their texts.
        bank_from: without a bank, what it is made from: `references`, nuggets that the model finds in the reference
            answers; `sentences`, their sentences as they are; `questions`, questions that the model asks. None takes
            `references` where each question has a reference (`sentences` for the lexical grader), else `questions`.
        output: a folder for the report `index.html`, `graded.jsonl.gz`, `board.json`, `bank.csv`, and the cache of
            replies. A run that was interrupted goes on from there. A `bank.csv` that stands there, perhaps edited, is
            used again.
        columns: role (`query`, `answer`, `reference`, `contexts`, `id`, `run`) -> column, for names that are not
            known; an empty name says that there is no such column.
        measures: see `score`; None takes nugget scores where items have importance, weighted coverage where they have
            weights, else NuggetA. With measures of citations (`SupportPrecision`, …) the sentences of the answers are
            judged by the contexts that they cite, `[1]` being the first of the row; there is no bank then, and the
            folder has `support.html`, `support.jsonl.gz` and `support.json`.
        contexts: grade the retrieved contexts, too, as runs of their own (`NAME contexts`): whether what an answer
            lacks was retrieved.
        prompt: see `grade`.
        explain: ask for a reason with each grade. None asks models behind endpoints, where no prompt is named.
        on_failed: how a failed grade counts, see `load`.
        title: the heading of the report.
        baseline: the run that others are compared with in the report, see `write_report`.
        notes: further lines below the heading of the report.
        review: the address of the review page of these grades and bank, see `write_report`.
        progress: True shows a bar on standard error; a function is told the counts.
        calls: how the model is asked, and limits: see `CallOptions`.

    Raises:
        InputError: the bank lacks a query, there is nothing to make a bank from, or a setting is wrong.
        FormatError: a table cannot be read, has no column of questions or answers, or answers a query twice for one
            run. Names file, line and columns.
        GradingError: the model cannot be used.
        KeyboardInterrupt: Ctrl-C; calls in flight were finished, and are in the cache.
    """
    # A name that is none is found before a model is paid, and what the bank lacks.
    plan = None if measures is None else Plan(rubric_measures_of(parse_measures(measures)))
    of_citations = {isinstance(measure, SupportMeasure) for measure in (() if plan is None else plan.measures)}
    if len(of_citations) > 1:
        raise MeasureError(
            "some measures are of items and some of citations, and each kind has grades of its own; ask for one kind",
            settings=("measures",),
        )
    others = {"bank": bank is not None, "bank_from": bank_from is not None, "contexts": contexts}
    if True in of_citations and any(others.values()):
        named = tuple(name for name, is_given in others.items() if is_given)
        raise InputError("citations are judged by the contexts that they name; leave the setting out", settings=named)
    folder = None if output is None else _folder(output)
    tables = answer_tables_of(answers, columns or {})
    known = given_bank(bank, bank_from, folder)
    asked = asked_in(tables, known)
    if baseline is not None and baseline not in asked.runs:
        raise UnknownNameError("run", baseline, asked.runs, settings=("baseline",))
    if folder is not None:
        calls.setdefault("cache", folder / "replies.sqlite")
    shown: Mapping[str, Any] = {"title": title, "baseline": baseline, "notes": notes, "review": review}
    if explain is None:
        explain = not prompt and model.partition(":")[0] in ("openai", "litellm")
    asking: Any = {"prompt": prompt, "explain": explain}
    if True in of_citations:
        answered: Any = answers_with_citations(asked)
        assert plan is not None
        # What the measures need of the scale is asked before a model is paid.
        plan.refuse_lacking({"": ()}, _scale_of(prompt, default_prompts(model, TestBank({}), of_pairs=True)))
        output = None if folder is None else folder / "support.jsonl.gz"
        records = grade(answered, model=model, support=True, output=output, progress=progress, **asking, **calls)
        sentences = sentence_bank(records, asked.texts)
        return _scored(records, sentences, measures, on_failed, asked, folder, "support", shown)
    used = known
    if bank is None:
        used = made_bank(asked, known, bank_from, model, progress, calls)
    assert used is not None
    used = TestBank(used.items, {**asked.texts, **used.query_texts}, used.facet_texts, used.edited)
    of_these = of_asked(used, asked)
    if plan is not None:
        plan.refuse_lacking(of_these.items, _scale_of(prompt, default_prompts(model, of_these)))
    if folder is not None:
        write_kept(folder / "bank.csv", used)
    records = grade(
        _pooled(asked, contexts),
        of_these,
        model=model,
        output=None if folder is None else folder / "graded.jsonl.gz",
        progress=progress,
        **asking,
        **calls,
    )
    return _scored(records, of_these, measures or _measures(used), on_failed, asked, folder, "", shown)


def _scored(
    records: GradedRecords,
    bank: TestBank,
    measures: Measures | None,
    on_failed: OnFailed | None,
    asked: Questions,
    folder: Path | None,
    kind: str,
    shown: Mapping[str, Any],
) -> EvaluatedAnswers:
    """Scores the records, and writes board and report."""

    grades = load(records, bank, on_failed=on_failed)
    board = score(grades, None, measures, overall=False, notes=False)
    # Which answers are missing was said of the table.
    replace(board, missing={}).log_notes()
    page = None
    if folder is not None:
        with atomic_writer(folder / f"{kind or 'board'}.json") as stream:
            stream.write(board.render("json", -1))
        page = folder / f"{kind or 'index'}.html"
        write_report(page, board, grades, **shown)
    return EvaluatedAnswers(board, grades, bank, records, tuple(asked.runs), folder, page)


def _scale_of(prompt: str | Sequence[str], usual: Sequence[str]) -> Scale | None:
    """The scale of the grades that will be."""

    names = ([prompt] if isinstance(prompt, str) else list(prompt)) or usual
    return load_prompt(names[0]).grade_scale if names else None


def _measures(bank: TestBank) -> tuple[str, ...]:
    items = list(bank)
    if all(item.importance is not None for item in items):
        # Of items that are all vital V, W and A are one.
        is_one = all(item.importance == "vital" for item in items)
        return ("NuggetV", "NuggetV(strict=True)") if is_one else OF_NUGGETS
    return OF_CRITERIA if all(item.weight is not None for item in items) else OF_ANSWERS


def _folder(output: str | os.PathLike[str]) -> Path:
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror or error})", settings=("output",)) from None
    return folder


def _pooled(asked: Questions, contexts: bool) -> list[QueryPassages]:
    """The answers as passages; with contexts also these, as rankings of runs of their own."""

    answers = [Answer(query_id, run_id, row.answer) for (query_id, run_id), (_, row) in asked.answers.items()]
    retrieved = {key: row.contexts for key, (_, row) in asked.answers.items() if row.contexts}
    runs, docs = [], dict[str, str]()
    if contexts:
        if not retrieved:
            text = "there are no retrieved contexts to grade; name their column, or leave that out"
            raise InputError(text, settings=("contexts", "columns"))
        of_run: dict[str, list[tuple[str, str, float]]] = {}
        for (query_id, run_id), texts in retrieved.items():
            for rank, text in enumerate(dict.fromkeys(texts), 1):
                doc_id = f"context/{answer_doc_id(text)}"
                docs[doc_id] = text
                of_run.setdefault(f"{run_id} contexts", []).append((query_id, doc_id, 1 / rank))
        runs = [make_run(name, rows) for name, rows in of_run.items()]
    elif retrieved:
        text = "retrieved contexts of %d answers are not graded; they can be"
        _LOG.info(text, len(retrieved), extra={"settings": ("contexts",)})
    depth = max((len(texts) for texts in retrieved.values()), default=1)
    return list(pool(runs, depth, docs, answers=answers, queries=asked.texts, max_words=None))
