"""A table of answers to grades, scores and a report, and its versions beside each other.

A version is an evaluation in memory, or the folder that an earlier one wrote: which runs are compared, whether they can
be, and what is graded again.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from msgspec.structs import replace

from rubric_measures.analysis.boards import OF_ANSWERS, OF_CRITERIA, OF_NUGGETS, Board, load_board, refuse, score
from rubric_measures.analysis.facts import FLIPPED, FactDiff, QueryEvidence, Side, diff_facts, evidence
from rubric_measures.base.errors import InputError, MeasureError, UnknownNameError, counted, escaped, naming, tell, warn
from rubric_measures.base.tables import in_notebook
from rubric_measures.boards.kept import Gates
from rubric_measures.corpora.answers import (
    Questions,
    answer_tables_of,
    answers_with_citations,
    asked_in,
    in_runs,
    runs_in,
    short,
)
from rubric_measures.corpora.loading import Bank, File, load, load_bank
from rubric_measures.corpora.pooling import pool
from rubric_measures.formats.answers import Answer, AnswerTable, answer_doc_id
from rubric_measures.formats.trec import runs_of_records
from rubric_measures.grading.answer_banks import BankSource, given_bank, made_bank, of_asked, write_kept
from rubric_measures.grading.asking import UNREAD, Asking
from rubric_measures.grading.grade import grade, grade_support, sentence_bank
from rubric_measures.grading.grader import GradedRecords, GradingEngine, GradingPlan, GradingReport, default_prompts
from rubric_measures.measures.grades import NONE, Grades
from rubric_measures.measures.measure import SupportMeasure, parse_measures, rubric_measures_of
from rubric_measures.measures.scoring import Plan
from rubric_measures.models.settings import Calls, refuse_plain
from rubric_measures.pages.board_page import write_report
from rubric_measures.prompts.library import load_prompt
from rubric_measures.records.models import load_graded, provenance_of
from rubric_measures.types.entities import RubricItem, Signature, TestBank, canonical_json, make_run

if TYPE_CHECKING:
    import pandas
    from ir_measures.measures import Measure
    from matplotlib.figure import Figure

    from rubric_measures.measures.grades import OnFailed
    from rubric_measures.measures.measure import Measures
    from rubric_measures.models.base import Backend
    from rubric_measures.models.settings import Progress
    from rubric_measures.records.models import QueryPassages
    from rubric_measures.types.scales import Scale


AnswerSource: TypeAlias = Union[File, "pandas.DataFrame", Iterable[Mapping[str, Any]]]
"""Answers: a file, a data frame, a data set, or rows with names."""

# How many queries a failed test names.
_SHOWN_QUERIES = 5
_INCOMPLETE = "grades failed, and no test passes without them: mend what the warnings of the run say, and run again"
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

    def __repr__(self) -> str:
        return f"<EvaluatedAnswers of {', '.join(self.runs)}>"

    def _repr_html_(self) -> str:
        if self.plan is not None:
            return in_notebook([], str(self.plan))
        items = sum(len(query.items) for query in self.evidence)
        lines = [f"{run}: {sum(map(len, self.missed(run).values()))} of {items} items missed" for run in self.runs]
        shown = "" if self.diff is None else self.diff._repr_html_()
        return in_notebook([], "; ".join(lines)) + self.board._repr_html_() + shown

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws the board; see `Board.plot`."""
        return self.board.plot(path)

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

    @cached_property
    def settings(self) -> dict[str, str]:
        """How the grades were made: model, prompt, temperature, …."""
        made = (provenance_of(one) for group in self.records for of in group.passages for one in of.exam_grades or ())
        return settings_of(one["definition"]["settings"] for one in made if "definition" in one)

    @property
    def queries(self) -> dict[str, QueryEvidence]:
        """Question -> its grades."""
        return {query.query_id: query for query in self.evidence}

    def against(
        self, other: EvaluatedAnswers | str | os.PathLike[str], run: str | None = None, *, confirm: int = 0
    ) -> FactDiff:
        """What these answers gained and lost against others, fact by fact, and whether their score is another.

        One run on each side are compared; of several, those of the same name. A question without an answer loses its
        facts. A fact whose grade failed is unsure, and counts the same for both.

        Args:
            other: the answers before: an evaluation, the folder that one wrote, or the name of a run of these answers.
            run: the only run of these answers that is compared.
            confirm: grade what changed again so many times, on both sides and without a cache: a change counts where
                all grades agree, and is unsure elsewhere. Limits on calls and costs hold for each time.

        Raises:
            InputError: the others were graded with another bank, grader or prompt, or have no such runs.
            UnknownNameError: there is no such run.
        """
        own = other if isinstance(other, str) and other in self.runs and not Path(other).exists() else ""
        before = other if isinstance(other, EvaluatedAnswers) else self if own else read_evaluation(other)
        pairs, left_out = paired_runs(own or before.runs, self.runs, run)
        return compare_versions(before, self, pairs, left_out, confirm=confirm)

    def assert_not_worse(
        self, other: EvaluatedAnswers | str | os.PathLike[str], run: str | None = None, *, confirm: int = 0
    ) -> None:
        """Fails a test whose answers are worse than others by the first measure, with the facts that they lost.

        Worse is the whole interval of the paired difference below 0. Arguments and what is raised: see `against`.

        Raises:
            AssertionError: a run is worse, or grades failed.
        """
        __tracebackhide__ = True

        diff = self.against(other, run, confirm=confirm)
        if diff.worse or not self.is_complete:
            raise AssertionError(str(diff) if self.is_complete else f"{_INCOMPLETE}\n{diff}")

    def assert_at_least(self, measure: str | Measure, least: float, run: str | None = None) -> None:
        """Fails a test whose answers score too low, with the items that they miss.

        Args:
            measure: one of the board: `NuggetV`, say, by name or as an object.
            least: the least mean that passes.
            run: the run that has to pass; None for all.

        Raises:
            AssertionError: a mean is lower, or grades failed.
            UnknownNameError: there is no such measure or run.
        """
        # Pytest shows the line of the test, and not this one.
        __tracebackhide__ = True

        gates = Gates({str(measure): least})
        lines = [] if self.is_complete else [_INCOMPLETE]
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
    progress: Progress = False,
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
            names of ragas, deepeval and Hugging Face datasets are known.
        model: who grades: `lexical`, `hf:NAME`, `openai:NAME`, …, or, in Python, a backend of your own; see `grade`.
        bank: what good answers say: a bank, or a file of any format that `load_bank` reads. Its queries are found by
            their ids, or by their texts; one that no row answers scores 0.
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
        gates: what the board has to pass: one on a measure that it will not have is refused before a
            model is paid.
        calls: where the model is called, what is kept, and what it may cost. With an output the cache lies there by
            default.
        dry_run: make no call and write nothing, but say what would be called and what it would cost (`plan`).
            Where a model makes the bank, it is what the bank takes: nobody knows its items by then.
        progress: True shows a bar; a function is told the counts.

    Raises:
        InputError: the bank lacks a query, there is nothing to make a bank from, or a setting is wrong.
        OSError: the output is no folder and cannot be made one.
        FormatError: a table cannot be read, has no column of questions or answers, or answers a query twice for one
            run. Names file, line and columns.
        GradingError: the model cannot be used, or none of its first ten replies can be read.
        KeyboardInterrupt: Ctrl-C; calls in flight were finished, and are in the cache.
    """
    refuse_plain(model, asking, calls)
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
        (is_cited and against is not None, "facts are compared, and citations are no facts; leave one out",
         ("against", "measures")),
    )  # fmt: skip
    before = against if isinstance(against, EvaluatedAnswers) else None
    if isinstance(against, str | os.PathLike) and Path(against).is_dir():
        if output is not None and Path(output).resolve() == Path(against).resolve():
            text = f"{against} would be replaced, and the next run would compare answers with themselves"
            raise InputError(f"{text}; write to another folder", settings=("output", "against"))
        before = read_evaluation(against)
        bank = Path(against) / "bank.csv" if bank is None and bank_from is None else bank
    folder = None if output is None else Path(output)
    tables = answer_tables_of(answers, columns, systems)
    runs = runs_in(tables)
    if run is not None and run not in runs:
        raise UnknownNameError("run", run, runs, settings=("run",))
    compared: tuple[dict[str, str], list[str]] = {}, []
    earlier: list[AnswerTable] = []
    if before is not None:
        compared = paired_runs(before.runs, runs, run)
    elif isinstance(against, str) and against in runs and not Path(against).exists():
        compared = paired_runs(against, runs, run)
    elif against is not None:
        earlier = answer_tables_of(against, columns, systems)
        names = {one: f"{one} before" if one in runs else one for one in runs_in(earlier)}
        earlier = [in_runs(table, names) for table in earlier]
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
        if folder is not None and not dry_run:
            folder.mkdir(parents=True, exist_ok=True)
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
    used = of_asked(used, asked)
    if plan is not None:
        plan.refuse_lacking(used.items, _scale_of(prompt, default_prompts(name, used)))
    if before is not None:
        engine = GradingEngine(
            calls.to(model).backend, used, (prompt,) if isinstance(prompt, str) else (*prompt,), asking
        )
        refuse_others(
            before, {one: used.items[one] for one in asked.texts}, settings_of(m.settings for m in engine.makers)
        )
    measures = measures or _measures(used)
    if gates is not None and plan is None:
        gates.refuse_others(parse_measures(measures))
    if folder is not None and not dry_run:
        folder.mkdir(parents=True, exist_ok=True)
        write_kept(folder / "bank.csv", used, known)
    output = None if folder is None else folder / "graded.jsonl.gz"
    records = grade(_pooled(asked), used, output=output, **how)
    if dry_run:
        if contexts:
            tell("grading contexts comes on top: its calls follow from what the answers miss")
        return _planned(records.plan, used, asked)
    made = _evaluated(records, used, measures, on_failed, runs, folder, how)
    if contexts:
        made = dataclasses.replace(made, retrieved=_retrieved(made, asked, how))
    if compared[0]:
        diff = compare_versions(before or made, made, *compared, confirm=confirm)
        made = dataclasses.replace(made, diff=diff)
    return _written(made, "", shown)


def _planned(plan: GradingPlan | None, bank: TestBank, asked: Questions) -> EvaluatedAnswers:
    """What a dry run gives back."""
    empty = GradedRecords([], report=GradingReport())
    return EvaluatedAnswers(Board((), {}, Signature({})), Grades({}), bank, empty, tuple(asked.runs), plan=plan)


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
    bare = ", ".join(query_id for query_id in made.bank.items if query_id not in made.queries)
    shown = {**shown, "notes": [*shown["notes"], *([f"without an answer, and so 0: {bare}"] if bare else [])]}
    write_report(page, made.board, made.grades, **shown, against=made.diff, retrieved=made.retrieved)
    return dataclasses.replace(made, page=page)


def _scale_of(prompt: str | Sequence[str], usual: Sequence[str]) -> Scale | None:
    """The scale of the grades that will be."""

    names = ([prompt] if isinstance(prompt, str) else list(prompt)) or usual
    return load_prompt(names[0]).grade_scale if names else None


def _measures(bank: TestBank) -> tuple[str, ...]:
    items = list(bank)
    bare = [item for item in items if item.importance is None]
    if not bare:
        # Of items that are all vital V, W and A are one.
        is_one = all(item.importance == "vital" for item in items)
        return ("NuggetV", "NuggetV(strict=True)") if is_one else OF_NUGGETS
    if len(bare) < len(items):
        text = f"{counted(len(bare), 'item')} of the bank without importance (such as {short(bare[0].text)} of query "
        warn(f"{text}{bare[0].query_id}), so there are no scores by it; write vital or okay", settings=("bank",))
    return OF_CRITERIA if all(item.weight is not None for item in items) else OF_ANSWERS


def _pooled(asked: Questions) -> list[QueryPassages]:
    """The answers as passages."""
    answers = [Answer(query_id, run_id, row.answer) for (query_id, run_id), (_, row) in asked.answers.items()]
    return list(pool(answers, queries=asked.texts, max_words=None))


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
    groups = pool(runs, docs, depth=len(docs), queries={one: asked.texts[one] for one in bank.items}, max_words=None)
    output = None if made.folder is None else made.folder / "contexts.jsonl.gz"
    graded = load(grade(groups, bank, output=output, **asking), bank).queries
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


_Cells = set[tuple[str, str]]


def read_evaluation(folder: str | os.PathLike[str]) -> EvaluatedAnswers:
    """What `evaluate_answers` wrote into a folder, in memory: another evaluation may take its place.

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
    records = GradedRecords(load_graded(at / "graded.jsonl.gz"), report=GradingReport())
    bank = load_bank(at / "bank.csv")
    grades = load(records, bank, on_failed=kept.on_failed)
    with naming(at):
        board = score(grades, None, list(kept.measures), overall=False, notes=False)
    runs = tuple(run.run_id for run in runs_of_records(records))
    return EvaluatedAnswers(board, grades, bank, records, runs, at)


def settings_of(makers: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """How grades are made, of the settings of each that makes them: setting -> value; all values, where they differ."""
    found: dict[str, dict[str, None]] = {}
    for name, value in (pair for settings in makers for pair in settings.items()):
        found.setdefault(name, {})[value if isinstance(value, str) else canonical_json(value)] = None
    return {name: " and ".join(sorted(values)) for name, values in found.items()}


def paired_runs(before: Iterable[str], after: Iterable[str], run: str | None) -> tuple[dict[str, str], list[str]]:
    """Which run is compared with which, and what is not compared.

    One run on each side are compared; of several, those of the same name.

    Args:
        before: the runs of the first version; or one of the second, with which its others are compared.
        after: the runs of the second version.
        run: the only one of the second version that is compared; None for all.

    Raises:
        UnknownNameError: there is no such run.
        InputError: nothing is left to be compared.
    """
    old, every = [before] if isinstance(before, str) else list(before), list(after)
    if run is not None and run not in every:
        raise UnknownNameError("run", run, every, settings=("run",))
    new = [one for one in every if one != before and run in (None, one)]
    is_one = before in every or len(new) == len(old) == 1
    pairs = {one: one if one in old else old[0] for one in new if one in old or is_one}
    if not pairs:
        text = f"{', '.join(every)}: none to compare with {', '.join(old)}; give runs the same names, or name one run"
        raise InputError(text, settings=("against", "run"))
    left = [one for one in new if one not in pairs], [one for one in old if one not in pairs.values()]
    names = [f"{escaped(', '.join(some))} ({when})" for some, when in zip(left, ("new", "before"), strict=True) if some]
    return pairs, [f"not compared: {'; '.join(names)}"] if names else []


def refuse_others(
    before: EvaluatedAnswers, items: Mapping[str, Sequence[RubricItem]], settings: Mapping[str, str]
) -> None:
    """Refuses versions that are graded with another bank, grader or prompt: their difference may be the graders'.

    Args:
        before: the first version.
        items: question -> the items of the second one.
        settings: how its grades are made.

    Raises:
        InputError: there is a difference; names it.
    """
    old = before.queries
    common = [query_id for query_id in items if query_id in old]
    if not common:
        raise InputError("the two versions have no question in common", settings=("against", "bank"))
    changed = [query_id for query_id in common if set(old[query_id].items) != set(items[query_id])]
    if changed:
        text = f"not comparable: another bank; {counted(len(changed), 'question')} (such as {changed[0]}) "
        raise InputError(f"{text}had other facts before; grade both with one bank", settings=("against", "bank"))
    names = before.settings.keys() | settings.keys()
    for name in sorted(names, key=lambda one: (one not in ("model", "prompt"), one)):
        said = [made.get(name, "none") for made in (before.settings, settings)]
        if said[0] != said[1]:
            text = f"not comparable: the grader has another {name} ({said[0]:.60} before, {said[1]:.60} now)"
            raise InputError(f"{text}; grade both with the same", settings=("against",))


def compare_versions(
    before: EvaluatedAnswers,
    after: EvaluatedAnswers,
    pairs: Mapping[str, str],
    left_out: Sequence[str],
    *,
    confirm: int = 0,
) -> FactDiff:
    """What each run gained and lost; see `EvaluatedAnswers.against`.

    Args:
        before: the first version.
        after: the second version.
        pairs: run of the second one -> run of the first one.
        left_out: what is not compared.
        confirm: how often changes are graded again.

    Raises:
        InputError: the versions were graded with another bank, grader or prompt.
    """
    old, new = before.queries, after.queries
    refuse_others(before, {query_id: query.items for query_id, query in new.items()}, after.settings)
    said = list(left_out)
    if gone := [query_id for query_id in old if query_id not in new]:
        said.append(f"{counted(len(gone), 'question')} without an answer now (such as {gone[0]}): their facts are lost")
    if only := [query_id for query_id in new if query_id not in old]:
        said.append(f"not compared: {counted(len(only), 'question')} that nobody was asked before (such as {only[0]})")
    [measure, *_] = parse_measures(list(after.board.measures)[:1])
    found, when = [], "before" if before.folder is None else f"of {before.folder.resolve().name}"
    for run, other in pairs.items():
        sides = Side(other if other != run else f"{other} {when}", other, old), Side(run, run, new)
        made = diff_facts(*sides, measure, runs=len(pairs))
        flips = {(one.query_id, one.item.item_id) for one in made.facts if one.state in FLIPPED}
        if confirm and flips:
            doubtful = _doubtful(flips, sides, confirm, after.asking)
            made = diff_facts(*sides, measure, doubtful=doubtful, runs=len(pairs))
        found.append(made)
    return FactDiff(tuple(found), tuple(said))


def part_of(bank: TestBank, cells: _Cells) -> TestBank:
    """The bank of some of the (query, item) alone."""
    items = {
        query_id: kept
        for query_id, of_query in bank.items.items()
        if (kept := tuple(item for item in of_query if (query_id, item.item_id) in cells))
    }
    return TestBank(items, bank.query_texts, bank.facet_texts)


def _doubtful(flips: _Cells, sides: tuple[Side, Side], times: int, asking: Mapping[str, Any]) -> _Cells:
    """The changed facts that some grade does not find again: both answers are graded for them alone, with no cache."""
    asked, level = sides[0].queries, next(iter(sides[1].queries.values())).level
    texts_of = {query_id: query.text or query_id for query_id, query in asked.items()}
    bank = part_of(TestBank({query_id: query.items for query_id, query in asked.items()}, texts_of), flips)
    names = ("before", "after")
    answers = [
        Answer(query_id, name, answer)
        for name, side in zip(names, sides, strict=True)
        for query_id in bank.items
        if (answer := side.answer(query_id))
    ]
    groups = pool(answers, queries={one: texts_of[one] for one in bank.items}, max_words=None)
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
                if not side.answer(query_id):
                    continue
                [doc_id] = rows[name][query_id].doc_ids
                grade_now = of_these.grades[of_these.docs[doc_id], place]
                # A grade that failed agrees with nothing.
                if grade_now == NONE or (grade_now >= level) != side.covers(query_id, item_id, level):
                    doubtful.add((query_id, item_id))
    return doubtful
