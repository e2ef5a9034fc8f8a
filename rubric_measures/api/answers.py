"""A table of answers to bank, grades, scores and report.

What was asked and answered: the rows of tables of answers, brought together by query and run.

The test bank of a table of answers: given, kept from an earlier run, or made from references or questions.

Tables of answers that cite their retrieved contexts as [1], [2], …: their sentences with what they cite.

A table of answers to grades, scores and a report: what the command `answers` does.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

from msgspec.structs import replace

from rubric_measures.analysis.boards import OF_ANSWERS, OF_CRITERIA, OF_NUGGETS, Board, refuse, score
from rubric_measures.api.versions import (
    AnswerVersion,
    compare_versions,
    paired_runs,
    part_of,
    read_version,
    settings_of,
)
from rubric_measures.base.errors import FormatError, InputError, MeasureError, UnknownNameError, counted, tell, warn
from rubric_measures.base.tables import in_notebook
from rubric_measures.base.words import sentence_ends
from rubric_measures.boards.kept import read_gates
from rubric_measures.corpora.loading import Bank, File, are_rows, bank_of, file_path, is_file, load
from rubric_measures.corpora.pooling import pooled
from rubric_measures.formats.answers import AnswerRow, AnswerTable, read_answer_table
from rubric_measures.formats.reports import Answer, answer_doc_id
from rubric_measures.grading.asking import UNREAD, Asking
from rubric_measures.grading.generation import reference_sentences
from rubric_measures.grading.grade import grade, grade_support, sentence_bank
from rubric_measures.grading.grader import Estimate, GradedRecords, GradingPlan, GradingReport, default_prompts
from rubric_measures.measures.measure import parse_measures, rubric_measures_of
from rubric_measures.measures.scoring import Plan
from rubric_measures.measures.support import SupportMeasure
from rubric_measures.models.settings import Calls
from rubric_measures.pages.board_page import evidence, write_report
from rubric_measures.prompts.library import load_prompt
from rubric_measures.types.entities import RubricItem, Signature, TestBank, make_run

if TYPE_CHECKING:
    import pandas

    from rubric_measures.analysis.facts import FactDiff
    from rubric_measures.boards.kept import Gates
    from rubric_measures.grading.generating import CallPlan
    from rubric_measures.measures.grades import Grades, OnFailed
    from rubric_measures.measures.measure import Measures
    from rubric_measures.models.base import Backend
    from rubric_measures.models.settings import Progress
    from rubric_measures.pages.board_page import QueryEvidence
    from rubric_measures.records.models import QueryPassages
    from rubric_measures.types.scales import Scale


def answer_tables_of(
    answers: Any, columns: Mapping[str, str] | None = None, systems: Sequence[str] = ()
) -> list[AnswerTable]:
    """The tables, of which each row says its run: where it said none, that is what the table is called."""
    if isinstance(answers, Mapping) and not are_rows(answers):
        return [_in_runs(_table(one, columns, systems), {"": str(name)}) for name, one in answers.items()]
    several = isinstance(answers, list | tuple) and answers and all(_is_source(one) for one in answers)
    tables = [_table(one, columns, systems) for one in (answers if several else [answers])]
    stems = [table.stem for table in tables]
    if len(set(stems)) < len(stems):
        # Two files of one name are told apart by their folders.
        stems = [str(Path(table.name).with_suffix("")) for table in tables]
    if len(set(stems)) < len(stems):
        raise InputError("one table is given twice; name each once, or give them names", settings=("answers",))
    said = [{row.run_id for row in table.rows} for table in tables]
    clash = any(one & other for one, other in combinations(said, 2))
    named = []
    for table, stem, runs in zip(tables, stems, said, strict=True):
        longer = {run: f"{stem}/{run}" for run in runs} if clash and len(runs) > 1 else {}
        alone = dict.fromkeys(runs, stem) if clash and len(runs) == 1 else {}
        named.append(_in_runs(table, {"": stem, **longer, **alone}))
    return named


def _in_runs(table: AnswerTable, names: Mapping[str, str]) -> AnswerTable:
    """The table with other names of runs, of run -> name."""
    rows = (row._replace(run_id=names.get(row.run_id, row.run_id)) for row in table.rows)
    return dataclasses.replace(table, rows=tuple(rows))


def _is_source(one: object) -> bool:
    return is_file(one) or hasattr(one, "columns") or hasattr(one, "to_pandas")


def _table(source: Any, columns: Mapping[str, str] | None, systems: Sequence[str]) -> AnswerTable:
    if is_file(source):
        with file_path(source) as path:
            return read_answer_table(path, columns, systems)
    # Data sets of Hugging Face, tables of pyarrow.
    return read_answer_table(source.to_pandas() if hasattr(source, "to_pandas") else source, columns, systems)


def _runs_in(tables: Sequence[AnswerTable]) -> list[str]:
    """The runs of tables, in their order."""
    return list(dict.fromkeys(row.run_id for table in tables for row in table.rows))


@dataclass
class Questions:
    """What was asked and answered.

    Attributes:
        texts: query id -> question, in the order of the tables.
        answers: (query id, run) -> (place of its row, row).
        references: query id -> the reference answer, in one text or several.
    """

    texts: dict[str, str] = field(default_factory=dict)
    answers: dict[tuple[str, str], tuple[str, AnswerRow]] = field(default_factory=dict)
    references: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def runs(self) -> list[str]:
        """The runs, in the order of the tables."""
        return list(dict.fromkeys(run_id for _, run_id in self.answers))


def asked_in(tables: Sequence[AnswerTable], bank: TestBank | None) -> Questions:
    """Brings together what the tables say of each question.

    Raises:
        FormatError: a query has two ids or an id two queries, a run answers a query twice, or a query has
            two references.
    """
    asked = Questions()
    ids = _query_ids(tables, bank)
    for table in tables:
        _note_table(table)
        for row in table.rows:
            query_id = ids[row.query_id, row.query]
            asked.texts.setdefault(query_id, row.query)
            where, first = asked.answers.setdefault((query_id, row.run_id), (f"{table.name}:{row.line}", row))
            if first is not row:
                problem = f"{row.run_id} answers {short(row.query)} a second time (before: {where}); keep one, or name "
                raise FormatError(
                    f"{problem}a column that tells runs apart", path=table.name, line=row.line, settings=("columns",)
                )
            if row.reference and asked.references.setdefault(query_id, row.reference) != row.reference:
                problem = f"{short(row.query)} has another reference answer in a row above; keep one"
                raise FormatError(problem, path=table.name, line=row.line, field=table.columns["reference"])
    return asked


def short(text: str) -> str:
    """A text in one quoted line of at most 50 characters."""
    text = " ".join(text.split())
    return repr(text if len(text) <= 50 else f"{text[:49]}…")


def _note_table(table: AnswerTable) -> None:
    read = ", ".join(f"{role}={column}" for role, column in table.columns.items())
    left = f"; not read: {', '.join(table.unused[:8])}{', …' if len(table.unused) > 8 else ''}" if table.unused else ""
    tell("%s: %s (%s%s)", table.name, counted(len(table.rows), "answer"), read, left)


def _query_ids(tables: Sequence[AnswerTable], bank: TestBank | None) -> dict[tuple[str, str], str]:
    """(id, question) as they stand in rows -> query id.

    Ids of a column `id` may be those of rows. They are taken for those of questions only where each question has one,
    and each id one question; else questions are told apart by their texts.
    """
    has_ids = all("id" in table.columns and all(row.query_id for row in table.rows) for table in tables)
    problem = next(_two_ids(tables), None) if has_ids else None
    if problem is not None:
        if any(table.columns["id"].lower() != "id" for table in tables):
            raise problem
        tell("the column id names rows; queries are told apart by their texts", settings=("columns",))
        has_ids = False
    of_text: dict[str, str] = {}
    for query_id, text in ({} if bank is None else bank.query_texts).items():
        of_text.setdefault(_same(text), query_id)
    known = set() if bank is None else set(bank.items)
    pairs = dict.fromkeys((row.query_id, row.query) for table in tables for row in table.rows)
    width = max(2, len(str(len({_same(query) for _, query in pairs}))))
    free = (name for number in count(1) if (name := f"q{number:0{width}}") not in known)
    found = {}
    for said, query in pairs:
        text = _same(query)
        if has_ids and (said in known or text not in of_text):
            found[said, query] = said
        else:
            found[said, query] = of_text[text] = of_text.get(text) or next(free)
    return found


def _two_ids(tables: Sequence[AnswerTable]) -> Iterator[FormatError]:
    """What is wrong with ids: a question has two, or one is of two questions."""
    texts: dict[str, str] = {}
    given: dict[str, str] = {}
    for table in tables:
        for row in table.rows:
            known, question = texts.setdefault(row.query, row.query_id), given.setdefault(row.query_id, row.query)
            said = f"id {row.query_id} is of {short(question)} and of {short(row.query)}"
            said = said if known == row.query_id else f"{short(row.query)} has the ids {known} and {row.query_id}"
            if known != row.query_id or question != row.query:
                problem = f"{said}; an id is that of a query, one for all runs"
                yield FormatError(problem, path=table.name, line=row.line, settings=("columns",))


def _same(text: str) -> str:
    """A question as questions are compared: blanks count as one."""
    return " ".join(text.split())


BankSource: TypeAlias = Literal["references", "sentences", "questions"]
_MADE_FROM = {
    "references": "nuggets that the model found in the reference answers",
    "sentences": "the sentences of the reference answers",
    "questions": "questions that the model asked for each query",
}
_BANK = ("bank", "bank_from")


def given_bank(bank: Bank | None, bank_from: BankSource | None, folder: Path | None) -> TestBank | None:
    """The bank that was given, or the one that stands in the folder from an earlier run; None where there is none."""
    if bank is not None and bank_from is not None:
        raise InputError("a bank is given, so none is made; leave one out", settings=("bank", "bank_from"))
    kept = None if folder is None else folder / "bank.csv"
    there = bank_of(kept) if kept is not None and kept.exists() else None
    given = bank_of(bank)
    if there is None:
        return given
    if given is None:
        tell("%s is used again; remove it to have it made anew", kept)
        return there
    if dict(given.items) != dict(there.items):
        text = f"{kept} holds another bank, perhaps edited; name that one, remove it, or name another folder"
        raise InputError(text, settings=("bank", "output"))
    return given


def made_bank(
    asked: Questions,
    kept: TestBank | None,
    bank_from: BankSource | None,
    model: str | Backend,
    progress: Progress,
    calls: Calls,
    dry_run: bool = False,
) -> TestBank | GradingPlan:
    """The bank of all questions: items that are kept stay, those of other questions are made.

    In a dry run that a model would make them in, what that takes.
    """
    kept = kept or TestBank({})
    missing = {query_id: text for query_id, text in asked.texts.items() if query_id not in kept.items}
    if not missing:
        return kept
    source = _source(bank_from, asked, missing, model)
    references = {query_id: asked.references[query_id] for query_id in missing if query_id in asked.references}
    if source == "sentences":
        made = reference_sentences(references, missing)
    else:
        from rubric_measures.grading.generating import generate
        from rubric_measures.records.models import GradedPassage, QueryPassages

        how: Any = {"target": "questions"}
        if source == "references":
            groups = [
                QueryPassages(query_id, [GradedPassage(doc_id=f"reference/{query_id}", text="\n".join(parts))])
                for query_id, parts in references.items()
            ]
            how = {"target": "nuggets", "from_documents": groups, "by": "all"}
        found = generate(missing, model=model, progress=progress, dry_run=dry_run, calls=calls, **how)
        if dry_run:
            tell("grading comes on top: its calls follow from the bank that is made")
            return GradingPlan(_estimate(one) for one in found.plan)
        made = found.bank
    without = [query_id for query_id in missing if not made.items.get(query_id)]
    if without:
        text = f"no item could be made for {counted(len(without), 'query')} (such as {short(missing[without[0]])})"
        raise InputError(f"{text}; name a bank, or make it from something else", settings=_BANK)
    kinds = {item.kind for item in kept} | {item.kind for item in made}
    if len(kinds) > 1:
        text = "the bank that is kept has items of another kind than the new ones; name a bank, or remove bank.csv"
        raise InputError(text, settings=_BANK)
    items, queries = counted(len(made), "item"), counted(len(missing), "query")
    tell("test bank: %s of %s, %s", items, queries, _MADE_FROM[source])
    return TestBank({**kept.items, **made.items}, {**kept.query_texts, **missing}, kept.facet_texts, kept.edited)


def _source(
    bank_from: BankSource | None, asked: Questions, missing: Mapping[str, str], model: str | Backend
) -> BankSource:
    """What the bank is made from: what was asked for, else references where there are any."""
    lacking = [query_id for query_id in missing if query_id not in asked.references]
    is_lexical = isinstance(model, str) and model.partition(":")[0] == "lexical"
    usual: BankSource = "sentences" if is_lexical else "references" if len(lacking) < len(missing) else "questions"
    source = bank_from or usual
    if source != "questions" and lacking:
        text = f"{len(lacking)} of {len(missing)} queries have no reference answer (such as"
        text += f" {short(missing[lacking[0]])}); write some, name a bank, or make it from the queries"
        raise InputError(text, settings=_BANK)
    if is_lexical and source != "sentences":
        what = "finds no nuggets" if source == "references" else "asks no questions"
        text = f"the lexical grader {what}; choose a model that can write, reference answers with their sentences, or a"
        raise InputError(f"{text} bank", settings=("model", *_BANK))
    return source


def _estimate(plan: CallPlan) -> Estimate:
    """What making a bank takes, as a row beside those of grading."""
    tokens = plan.prompt_tokens, plan.completion_tokens
    return Estimate("test bank", plan.calls, plan.cached, 0, 0, *tokens, 0, plan.cost, None)


def of_asked(bank: TestBank, asked: Questions) -> TestBank:
    """The bank of the questions that were asked; others in it are left out, and counted."""
    lacking = [query_id for query_id in asked.texts if query_id not in bank.items]
    if lacking:
        text = f"the bank has no items for {counted(len(lacking), 'query')} (such as {short(asked.texts[lacking[0]])})"
        raise InputError(f"{text}; queries are found by their ids, or by their texts", settings=("bank", "columns"))
    items = {query_id: bank.items[query_id] for query_id in asked.texts}
    return TestBank(items, bank.query_texts, bank.facet_texts, bank.edited)


def write_kept(path: Path, bank: TestBank) -> None:
    """Writes a bank as CSV, unless the file holds the same items."""
    from rubric_measures.formats.banks import BANK_CSV, bank_entries

    # One that is there stays as people left it where nothing is new.
    if not path.exists() or dict(bank_of(path).items) != dict(bank.items):  # type: ignore[union-attr]
        BANK_CSV.write(path, bank_entries(bank))


_SETTINGS = ("measures", "columns")
_MARK = re.compile(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
# A mark behind the stop is of the sentence that ends there.
_BEHIND = re.compile(rf"([.!?…。]+)((?:{_MARK.pattern})+)")


def answers_with_citations(asked: Questions) -> list[Answer]:
    """The answers in sentences, with the contexts that each cites: `[1]` is the first one of its row.

    A number that no context has is left out and counted.

    Raises:
        InputError: no row has contexts, or no answer cites one.
    """
    if not any(row.contexts for _, row in asked.answers.values()):
        text = "there are no retrieved contexts that answers could cite; name their column"
        raise InputError(text, settings=_SETTINGS)
    answers = []
    lost: list[str] = []
    for (query_id, run_id), (where, row) in asked.answers.items():
        contexts = [(f"context/{answer_doc_id(text)}", text) for text in row.contexts]
        sentences: list[str] = []
        citations: list[tuple[str, ...]] = []
        for sentence in _sentences(row.answer):
            numbers = [int(number) for mark in _MARK.findall(sentence) for number in re.findall(r"\d+", mark)]
            text = _MARK.sub("", sentence).strip()
            lost += [f"[{number}] at {where}" for number in numbers if not 0 < number <= len(contexts)]
            if text:
                sentences.append(text)
                cited = (contexts[number - 1][0] for number in numbers if 0 < number <= len(contexts))
                citations.append(tuple(dict.fromkeys(cited)))
        said = (" ".join(sentences), tuple(sentences), tuple(citations))
        answers.append(Answer(query_id, run_id, *said, tuple(dict(contexts).items())))
    if not any(cited for answer in answers for cited in answer.citations):
        raise InputError("no answer cites a context of its row; write [1] for the first one", settings=_SETTINGS)
    if lost:
        warn("%s of no context left out (such as %s)", counted(len(lost), "citation"), lost[0])
    return answers


def _sentences(text: str) -> list[str]:
    """The sentences, with their marks before the stop."""
    text = _BEHIND.sub(lambda found: f"{found[2]}{found[1]}", text)
    ends = list(sentence_ends(text))
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


AnswerSource: TypeAlias = Union[File, "pandas.DataFrame", Iterable[Mapping[str, Any]]]
"""Answers: a file, a data frame, a data set, or rows with names."""

# How many queries a failed test names.
_SHOWN_QUERIES = 5
_TOGETHER = 10  # items of an answer that are shown at once, as nuggetizer does


@dataclass(frozen=True)
class EvaluatedAnswers:
    """Answers with their grades and scores.

    Attributes:
        board: the scores of the runs.
        grades: the grades behind them.
        bank: the test bank: what a good answer to each question has to say.
        records: the graded answers, with their texts and the grader's replies.
        runs: the systems that answered; the board also has those that they are compared with.
        folder: where all of it was written; None where nothing was.
        page: the report there.
        plan: of a dry run, what would be called; then the board is empty.
        diff: what became of each fact, where the answers were compared with others.
        asking: how grades were asked for, as arguments of `grade`.
        retrieved: (query, item, run) of an item that a run misses -> whether a retrieved context has it, where contexts
            were graded.
    """

    board: Board
    grades: Grades
    bank: TestBank
    records: GradedRecords
    runs: tuple[str, ...]
    folder: Path | None = None
    page: Path | None = None
    plan: GradingPlan | None = None
    diff: FactDiff | None = None
    asking: Mapping[str, Any] = field(default_factory=dict, repr=False)
    retrieved: Mapping[tuple[str, str, str], bool] = field(default_factory=dict, repr=False)

    @property
    def is_complete(self) -> bool:
        """Whether every grade is there."""
        return self.board.is_complete

    def __str__(self) -> str:
        return str(self.board if self.plan is None else self.plan)

    def _repr_html_(self) -> str:
        if self.plan is not None:
            return in_notebook([], str(self.plan))
        items, lines = sum(len(query.items) for query in self.evidence), []
        for run in self.runs:
            missed = sum(map(len, self.missed(run).values()))
            lines.append(f"{run}: {missed} of {items} items missed")
        shown = "" if self.diff is None else self.diff._repr_html_()
        return in_notebook([], "; ".join(lines)) + self.board._repr_html_() + shown

    @cached_property
    def evidence(self) -> Sequence[QueryEvidence]:
        """What stands behind the grades, query by query: which run has which item, and why."""

        return [query.with_retrieved(self.retrieved) for query in evidence(self.board, self.grades)]

    def missed(self, run: str) -> dict[str, list[RubricItem]]:
        """The items that a run was graded for and does not cover, by query, vital ones first.

        Raises:
            UnknownNameError: there is no such run.
        """
        if run not in self.board.cells:
            raise UnknownNameError("run", run, self.runs)
        return {query.query_id: lacking for query in self.evidence if (lacking := query.missed(run))}

    @property
    def _version(self) -> AnswerVersion:
        name = "" if self.folder is None else self.folder.name
        return AnswerVersion(name, self.board, self.evidence, self.runs, settings_of(self.records))

    def against(
        self, other: EvaluatedAnswers | str | os.PathLike[str], run: str | None = None, *, confirm: int = 0
    ) -> FactDiff:
        """What these answers gained and lost against others, fact by fact, and whether their score is another.

        One run on each side are compared; of several, those of the same name. A question without an answer loses its
        facts. A fact whose grade failed is unsure, and counts the same for both.

        Args:
            other: the answers before: an evaluation, or the folder that one wrote.
            run: the only run of these answers that is compared.
            confirm: grade what changed again so many times, on both sides and without a cache: a change counts where
                all grades agree, and is unsure elsewhere. Limits on calls and costs hold for each time.

        Raises:
            InputError: the others were graded with another bank, grader or prompt, or have no such runs.
            UnknownNameError: there is no such run.
        """
        before = other._version if isinstance(other, EvaluatedAnswers) else read_version(other)
        pairs, left_out = paired_runs(before.runs, self.runs, run)
        return compare_versions(before, self._version, pairs, left_out, confirm=confirm, asking=self.asking)

    def assert_not_worse(
        self, other: EvaluatedAnswers | str | os.PathLike[str], run: str | None = None, *, confirm: int = 0
    ) -> None:
        """Fails a test whose answers are worse than others by the first measure, with the facts that they lost.

        Worse is the whole interval of the paired difference below 0. Arguments and what is raised: see `against`.

        Raises:
            AssertionError: a run is worse.
        """
        __tracebackhide__ = True

        diff = self.against(other, run, confirm=confirm)
        if diff.worse:
            raise AssertionError(str(diff))

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
                found = query.cells[item.item_id][run]
                said = filter(None, (item.importance, f"grade {found.grade:g}", found.retrieval))
                lines.append(f"    - {item.text} ({', '.join(said)})")
        if len(shown) > _SHOWN_QUERIES:
            lines.append(f"  and items of {len(shown) - _SHOWN_QUERIES} more queries")
        return lines


def evaluate_answers(
    answers: AnswerSource | Sequence[AnswerSource] | Mapping[str, AnswerSource],
    *,
    model: str | Backend,
    bank: Bank | None = None,
    bank_from: BankSource | None = None,
    output: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    systems: Sequence[str] = (),
    measures: Measures | None = None,
    contexts: bool = False,
    prompt: str | Sequence[str] = (),
    asking: Asking = Asking(),
    on_failed: OnFailed | None = None,
    title: str = "Answers",
    against: AnswerSource | EvaluatedAnswers | None = None,
    run: str | None = None,
    confirm: int = 0,
    notes: Sequence[str] = (),
    review: str | None = None,
    gates: Gates | None = None,
    calls: Calls = Calls(),
    dry_run: bool = False,
    progress: Progress = None,
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
        model: who grades: `lexical`, `hf:NAME`, `openai:NAME`, …, or a backend of your own; see `grade`.
        bank: what good answers say: a bank, or a file of any format that `load_bank` reads. Its queries are found by
            their ids, or by their texts.
        bank_from: without a bank, what it is made from: `references`, nuggets that the model finds in the reference
            answers; `sentences`, their sentences as they are; `questions`, questions that the model asks. By default
            `references` where each question has a reference (`sentences` for the lexical grader), else `questions`.
        output: a folder for the report `index.html`, `graded.jsonl.gz`, `board.json`, `bank.csv`, and the cache of
            replies. A run that was interrupted goes on from there. A `bank.csv` that stands there, perhaps edited, is
            used again.
        columns: role (`query`, `answer`, `reference`, `contexts`, `id`, `run`) -> column, for names that are not
            known; an empty name says that there is no such column.
        systems: the columns that are the answers of a system each, where a row is a question; the runs are called so.
        measures: see `score`; None takes nugget scores where items have importance, weighted coverage where they have
            weights, else NuggetA. With measures of citations (`SupportPrecision`, …) the sentences of the answers are
            judged by the contexts that they cite, `[1]` being the first of the row; there is no bank then, and the
            folder has `support.html`, `support.jsonl.gz` and `support.json`.
        contexts: say of each item that is missed whether it was retrieved (`retrieved` of the result, and in the
            report): the contexts are graded, too. They are no runs of the board.
        prompt: see `grade`.
        asking: how prompts are put to the model, and replies are read. By default models behind endpoints are asked for
            reasons, and about ten items of an answer at once, as nuggetizer does, where no prompt is named.
        on_failed: how a failed grade counts, see `load`.
        title: the heading of the report.
        against: what the answers are compared with, fact by fact (`diff` of the result, and in the report): the folder
            of an earlier evaluation, whose bank is used where none is given, or that evaluation; another table, which
            is graded in the same call; or the name of a run of `answers`. See `EvaluatedAnswers.against`.
        run: the only run that is compared; None for all.
        confirm: grade facts that changed so many times again; a change counts where all grades agree.
        notes: further lines below the heading of the report.
        review: the address of the review page of these grades and bank, see `write_report`.
        gates: what the board has to pass (`read_gates`): one on a measure that it will not have is refused before a
            model is paid.
        calls: where the model is called, what is kept, and what it may cost. With an output the cache lies there by
            default.
        dry_run: make no call and write nothing; `plan` of the result says what would be called and what it would cost.
            Where a model makes the bank, it is what the bank takes: nobody knows its items by then.
        progress: True shows a bar; a function is told the counts; default: a bar in a notebook alone.

    Raises:
        InputError: the bank lacks a query, there is nothing to make a bank from, or a setting is wrong.
        FormatError: a table cannot be read, has no column of questions or answers, or answers a query twice for one
            run. Names file, line and columns.
        GradingError: the model cannot be used, or none of its first ten replies can be read.
        KeyboardInterrupt: Ctrl-C; calls in flight were finished, and are in the cache.
    """
    # A name that is none is found before a model is paid, and what the bank lacks.
    plan = None if measures is None else Plan(rubric_measures_of(parse_measures(measures)))
    if gates is not None:
        likely = plan.measures if plan is not None else parse_measures([*OF_NUGGETS, *OF_CRITERIA, *OF_ANSWERS])
        gates.refuse_others(likely)
    of_citations = {isinstance(measure, SupportMeasure) for measure in (() if plan is None else plan.measures)}
    if len(of_citations) > 1:
        raise MeasureError(
            "some measures are of items and some of citations, and each kind has grades of its own; ask for one kind",
            settings=("measures",),
        )
    is_cited = True in of_citations
    others = {"bank": bank is not None, "bank_from": bank_from is not None, "contexts": contexts}
    named = tuple(name for name, is_given in others.items() if is_given)
    refuse(
        (is_cited and named, "citations are judged by the contexts that they name; leave the setting out", named),
        (against is None and confirm, "changes are graded again, and there is nothing to compare with; name it",
         ("confirm", "against")),
        (is_cited and against is not None, "facts are compared, and citations are none; leave one out",
         ("against", "measures")),
    )  # fmt: skip
    before: AnswerVersion | None = None
    if isinstance(against, EvaluatedAnswers):
        before = against._version
    elif isinstance(against, str | os.PathLike) and Path(against).is_dir():
        before = read_version(against)
        bank = Path(against) / "bank.csv" if bank is None and bank_from is None else bank
    folder = None if output is None else Path(output) if dry_run else _folder(output)
    tables = answer_tables_of(answers, columns, systems)
    runs = _runs_in(tables)
    if run is not None and run not in runs:
        raise UnknownNameError("run", run, runs, settings=("run",))
    compared: tuple[dict[str, str], list[str]] = {}, []
    earlier: list[AnswerTable] = []
    if before is not None:
        compared = paired_runs(before.runs, runs, run)
    elif isinstance(against, str) and against in runs and not Path(against).exists():
        compared = {one: against for one in runs if one != against and run in (None, one)}, []
        if not compared[0]:
            text = f"{against} is the only run that is left to be compared with {against}"
            raise InputError(text, settings=("against", "run"))
    elif against is not None:
        earlier = answer_tables_of(against, columns, systems)
        names = {one: f"{one} before" if one in runs else one for one in _runs_in(earlier)}
        earlier = [_in_runs(table, names) for table in earlier]
        pairs, left_out = paired_runs(names, runs, run)
        compared = {one: names[other] for one, other in pairs.items()}, left_out
    known = given_bank(bank, bank_from, folder)
    asked = asked_in([*tables, *earlier], known)
    if contexts and not any(row.contexts for _, row in asked.answers.values()):
        text = "there are no retrieved contexts to grade; name their column, or leave that out"
        raise InputError(text, settings=("contexts", "columns"))
    if folder is not None:
        calls = dataclasses.replace(calls, cache=calls.cache or folder / "replies.sqlite")
    shown: Mapping[str, Any] = {"title": title, "notes": notes, "review": review}
    name = model if isinstance(model, str) else model.model
    if not is_cited and not prompt and name.partition(":")[0] in ("openai", "litellm"):
        reasons = True if asking.explain is None else asking.explain
        asking = dataclasses.replace(asking, explain=reasons, items_per_call=asking.items_per_call or _TOGETHER)
    how: Any = {
        "model": model,
        "prompt": prompt,
        "asking": asking,
        "give_up_after": UNREAD,
        "dry_run": dry_run,
        "progress": progress,
        "calls": calls,
    }
    if is_cited:
        answered: Any = answers_with_citations(asked)
        assert plan is not None
        # What the measures need of the scale is asked before a model is paid.
        plan.refuse_lacking({"": ()}, _scale_of(prompt, default_prompts(name, TestBank({}), of_pairs=True)))
        output = None if folder is None else folder / "support.jsonl.gz"
        records = grade_support(answered, output=output, **how)
        if dry_run:
            return _planned(records.plan, TestBank({}), asked)
        sentences = sentence_bank(records, asked.texts)
        made = _evaluated(records, sentences, measures, on_failed, runs, folder, how)
        return _written(made, "support", shown)
    used = known if bank is not None else made_bank(asked, known, bank_from, model, progress, calls, dry_run)
    if isinstance(used, GradingPlan):
        return _planned(used, TestBank({}), asked)
    assert used is not None
    used = TestBank(used.items, {**asked.texts, **used.query_texts}, used.facet_texts, used.edited)
    of_these = of_asked(used, asked)
    if plan is not None:
        plan.refuse_lacking(of_these.items, _scale_of(prompt, default_prompts(name, of_these)))
    measures = measures or _measures(used)
    if gates is not None and plan is None:
        gates.refuse_others(parse_measures(measures))
    if folder is not None and not dry_run:
        write_kept(folder / "bank.csv", used)
    output = None if folder is None else folder / "graded.jsonl.gz"
    records = grade(_pooled(asked, contexts), of_these, output=output, **how)
    if dry_run:
        if contexts:
            tell("grading contexts comes on top: its calls follow from what the answers miss")
        return _planned(records.plan, of_these, asked)
    made = _evaluated(records, of_these, measures, on_failed, runs, folder, how)
    if contexts:
        made = dataclasses.replace(made, retrieved=_retrieved(made, asked, how))
    if compared[0]:
        now = made._version
        diff = compare_versions(before or now, now, *compared, confirm=confirm, asking=made.asking)
        made = dataclasses.replace(made, diff=diff)
    return _written(made, "", shown)


def _planned(plan: GradingPlan | None, bank: TestBank, asked: Questions) -> EvaluatedAnswers:
    """What a dry run gives back."""
    empty = GradedRecords([], report=GradingReport())
    return EvaluatedAnswers(
        Board((), {}, {}, Signature({})), load(empty, bank), bank, empty, tuple(asked.runs), plan=plan
    )


def _evaluated(
    records: GradedRecords,
    bank: TestBank,
    measures: Measures | None,
    on_failed: OnFailed | None,
    runs: Sequence[str],
    folder: Path | None,
    asking: Mapping[str, Any],
) -> EvaluatedAnswers:
    """Scores the records."""
    grades = load(records, bank, on_failed=on_failed)
    board = score(grades, None, measures, overall=False, notes=False)
    # Which answers are missing was said of the table, and who asks here knows what is scored.
    replace(board, missing={}, wrapped=()).log_notes()
    asked = {name: value for name, value in asking.items() if name != "progress"}
    return EvaluatedAnswers(board, grades, bank, records, tuple(runs), folder, asking=asked)


def _written(made: EvaluatedAnswers, kind: str, shown: Mapping[str, Any]) -> EvaluatedAnswers:
    """Writes board and report, where there is a folder."""
    if made.folder is None:
        return made
    made.board.save(made.folder / f"{kind or 'board'}.json")
    page = made.folder / f"{kind or 'index'}.html"
    # Queries on which the others lose most come first, where they are on this board.
    before = {run.before for run in (made.diff.runs if made.diff is not None else ())}
    if len(before) == 1 and before <= made.board.cells.keys():
        shown = {**shown, "baseline": before.pop()}
    write_report(page, made.board, made.grades, **shown, against=made.diff, retrieved=made.retrieved)
    return dataclasses.replace(made, page=page)


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
    """The answers as passages."""
    answers = [Answer(query_id, run_id, row.answer) for (query_id, run_id), (_, row) in asked.answers.items()]
    if not contexts and (number := sum(bool(row.contexts) for _, row in asked.answers.values())):
        tell(f"retrieved contexts of {counted(number, 'answer')} are not graded; they can be", settings=("contexts",))
    return list(pooled(answers=answers, queries=asked.texts, max_words=None))


def _retrieved(made: EvaluatedAnswers, asked: Questions, asking: Mapping[str, Any]) -> dict[tuple[str, str, str], bool]:
    """Whether the contexts have what answers miss; nothing is said where that is not known.

    Contexts are graded for the items that some answer to their question misses, and for no others.
    """
    contexts = {
        key: {f"context/{answer_doc_id(text)}": text for text in row.contexts}
        for key, (_, row) in asked.answers.items()
        if row.contexts
    }
    missed: dict[tuple[str, str], list[RubricItem]] = {}
    for query in made.evidence:
        for run in made.runs:
            lacking = [
                item
                for item in query.items
                if not query.is_covered(item.item_id, run)
                and query.cells[item.item_id][run].status in ("graded", "missing")
            ]
            if lacking and (query.query_id, run) in contexts:
                missed[query.query_id, run] = lacking
    if not missed:
        return {}
    bank = part_of(made.bank, {(query_id, item.item_id) for (query_id, _), items in missed.items() for item in items})
    docs = {doc_id: text for key in missed for doc_id, text in contexts[key].items()}
    rows: dict[str, list[tuple[str, str, float]]] = {run: [] for _, run in missed}
    for query_id, run in missed:
        rows[run] += [(query_id, doc_id, 1 / rank) for rank, doc_id in enumerate(contexts[query_id, run], 1)]
    runs = [make_run(run, of_run) for run, of_run in rows.items()]
    groups = pooled(runs, len(docs), docs, queries={one: asked.texts[one] for one in bank.items}, max_words=None)
    output = None if made.folder is None else made.folder / "contexts.jsonl.gz"
    graded = load(grade(list(groups), bank, output=output, **asking), bank).queries
    levels = {query.query_id: query.level for query in made.evidence}
    found: dict[tuple[str, str, str], bool] = {}
    for (query_id, run), items in missed.items():
        of_query = graded[query_id]
        places = {item.item_id: place for place, item in enumerate(of_query.items)}
        at = [of_query.docs[doc_id] for doc_id in contexts[query_id, run]]
        for item_id in (item.item_id for item in items):
            has = bool((of_query.grades[at, places[item_id]] >= levels[query_id]).any())
            if has or of_query.valid[at, places[item_id]].all():
                found[query_id, item_id, run] = has
    for run in rows:
        told = [has for (_, _, one), has in found.items() if one == run]
        tell(f"{run}: of {len(told)} facts that it misses, {sum(told)} were retrieved and not said, "
             f"{len(told) - sum(told)} were not retrieved")  # fmt: skip
    return found
