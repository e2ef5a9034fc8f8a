"""Judges for TREC Auto-Judge (`judge_class: rubric_measures.integrations.autojudge:RubricJudge` in a workflow.yml).

`RubricJudge` writes nuggets from the topics, grades the reports against them with any of this package's models, and
gives back labels and a leaderboard. `SupportJudge` asks whether citations support what is said. They need the extra
`autojudge`; nothing else of this package imports them, and they inherit from nothing: Auto-Judge asks for three methods
and one attribute.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, Self, TypeVar

from ir_measures.measures.base import Measure
from msgspec.structs import replace

from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError, escaped, shortened, warn
from rubric_measures.base.plugins import require
from rubric_measures.boards.scoring import cell_of
from rubric_measures.formats.answers import Answer, CitedReport, answer_doc_id, answer_of_report
from rubric_measures.formats.banks import NUGGET_BANK, NUGGET_LISTS, NUGGETS, bank_of_entries, load_bank, written_rows
from rubric_measures.grading.asking import Asking
from rubric_measures.measures.findings import say
from rubric_measures.measures.grades import Grades, OnFailed, check_on_failed
from rubric_measures.measures.measure import parse_measures, rubric_measures_of
from rubric_measures.measures.scoring import Plan
from rubric_measures.models.settings import Calls
from rubric_measures.records.models import QueryPassages, grade_of_items, reasons_of, write_graded
from rubric_measures.types.entities import ItemKind, TestBank
from rubric_measures.types.scales import Scale

P = ParamSpec("P")
T = TypeVar("T")
# What Auto-Judge passes to every judge by name, beside the settings of the workflow.
_PASSED_BY_THE_RUNNER = {"outdir", "filebase", "description", "nugget_banks", "qrels", "corpus"}
_CACHE = "rubric_measures.cache.sqlite"


@dataclass(frozen=True)
class ModelSettings:
    """What every judge can be told in a workflow.yml.

    Attributes:
        model: as on the command line (`hf:…`, `openai:…`, `lexical`); by default the model that Auto-Judge was given,
            behind its endpoint.
        prompt: the name of a prompt; by default the one that fits.
        asking: how prompts are put and replies are read: fields of `Asking`.
        calls: where the model is called and what it may cost: fields of `Calls`. Replies are kept by default in the
            folder CACHE_DIR, which is made, else in the output folder.
        measures: what the leaderboard shows: a list, or one text with blanks between them.
    """

    model: str = ""
    prompt: str = ""
    asking: Mapping[str, Any] = field(default_factory=dict)
    calls: Mapping[str, Any] = field(default_factory=dict)
    measures: Sequence[str] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The settings of a call.

        Raises:
            UnknownNameError: a setting is not known.
            InputError: a setting has a wrong value.
        """
        known = {one.name for one in fields(cls)}
        for name in settings:
            if name not in known and name not in _PASSED_BY_THE_RUNNER:
                raise UnknownNameError("setting", name, known)
        return cls(**{name: value for name, value in settings.items() if name in known})

    def model_name(self, llm_config: Any) -> str:
        """The model as the command line names it."""
        return self.model or f"openai:{llm_config.model}"

    @property
    def asked(self) -> Asking:
        """How prompts are put and replies are read."""
        return _made(Asking, "asking", self.asking)

    def called(self, llm_config: Any, settings: Mapping[str, Any]) -> Calls:
        """How the model is asked: behind Auto-Judge's endpoint, with a cache that outlives the run."""
        url = None
        if not self.model:
            url = getattr(llm_config, "base_url", None) or None
        if url == os.environ.get("OPENAI_BASE_URL"):
            # The backend reads it with the first call: a full cache needs none, whatever stands there.
            url = None
        folder = getattr(llm_config, "cache_dir", None) or settings.get("outdir")
        usual = {"base_url": url, "cache": Path(folder) / _CACHE if folder else None}
        return _made(Calls, "calls", {**usual, **self.calls})


def _made(kind: type[T], name: str, given: Mapping[str, Any]) -> T:
    """A settings object of what stands in a workflow.yml under a name."""
    try:
        return kind(**given)
    except TypeError as error:
        raise InputError(f"setting {name}: {str(error).split('() ')[-1]}") from None


def told_to_the_runner(method: Callable[P, T]) -> Callable[P, T]:
    """Makes one line of an error where Auto-Judge's command runs the method; elsewhere it is raised as it is."""

    @functools.wraps(method)
    def told(*arguments: P.args, **settings: P.kwargs) -> T:
        try:
            return method(*arguments, **settings)
        except RubricMeasuresError as error:
            click = sys.modules.get("click")
            if click is None or click.get_current_context(silent=True) is None:
                raise
            said: Exception = click.ClickException(escaped(shortened(str(error))))
            said.exit_code = 2  # type: ignore[attr-defined]
            raise said from None

    return told


def topic_text(topic: Any) -> str:
    """What a topic asks: title, problem statement and background."""
    parts = (topic.title, topic.problem_statement, topic.background)
    return "\n".join(part for part in parts if part)


def answers_of(reports: Iterable[Any], topics: Iterable[str]) -> list[Answer]:
    """The answers that reports of Auto-Judge are; those to other topics are left out and counted."""
    wanted, kept = set(topics), {"mode": "json", "exclude_none": True, "exclude": {"evaldata"}}
    made = [answer_of_report(CitedReport(**report.model_dump(**kept)), keep_lost=True) for report in reports]
    answers = [answer for answer in made if answer.query_id in wanted]
    warn("%d reports are about topics that nobody asked; they were left out", len(made) - len(answers))
    return answers


def leaderboard(
    values: Mapping[str, Mapping[str, Mapping[str, float | None]]],
    answers: Sequence[Answer],
    topics: Sequence[str],
) -> Any:
    """Auto-Judge's leaderboard: every run and topic, and `all`; `L` is the length in whitespace words.

    A topic that a run does not answer is a 0. A value that is not there because grades failed has no
    entry, and is in no mean.

    Args:
        values: run -> measure -> topic -> value.
        answers: the answers.
        topics: all topics.
    """
    base = require("autojudge_base", "autojudge")
    names = dict.fromkeys(name for columns in values.values() for name in columns)
    measures = {name: parse_measures(name)[0] for name in names}
    specs = [base.MeasureSpec(name, description=getattr(one, "SHORT_DESC", "")) for name, one in measures.items()]
    spec = base.LeaderboardSpec((*specs, base.MeasureSpec("L", int, "Length in whitespace words.")))
    lengths = {answer[:2]: answer.words for answer in answers}
    entries = []
    for run_id, columns in values.items():
        words = [lengths.get((topic, run_id), 0) for topic in topics]
        full = {
            name: [column.get(topic) if (topic, run_id) in lengths else 0.0 for topic in topics]
            for name, column in columns.items()
        }
        means = {name: cell_of({}, measure=measures[name], listed=column).mean for name, column in full.items()}
        rows = [{name: column[place] for name, column in full.items()} for place in range(len(topics))]
        ends = [*words, sum(words) / len(words)]
        for topic, row, length in zip([*topics, spec.all_topic_id], [*rows, means], ends, strict=True):
            found = {name: value for name, value in row.items() if value is not None}
            entries.append(base.LeaderboardEntry(run_id, topic, {**found, "L": length}))
    return base.Leaderboard(measures=spec.names, spec=spec, entries=tuple(entries))


@dataclass(frozen=True)
class SupportSettings(ModelSettings):
    """The settings of `SupportJudge` in a workflow.yml.

    Attributes:
        model: this and the others of every judge: see `ModelSettings`. Measures are by default `SupportPrecision`,
            `SupportRecall` and `CitationF1`.
        citations: which citations of a sentence are judged: the `first`, `all`, or the first so many.
        collection: where the texts of cited documents come from, beside those that reports bring along; by default the
            corpus that Auto-Judge was given.
    """

    citations: int | Literal["first", "all"] = "first"
    collection: str = ""


class _LeaderboardJudge:
    """A judge that makes neither nuggets nor qrels, whatever a workflow asks for."""

    @property
    def nugget_banks_type(self) -> Any:
        """Auto-Judge's container of nugget banks, version 3, which it wants to know in any case."""
        return require("autojudge_base", "autojudge").NuggetBanks

    def create_nuggets(self, *_: Any, **__: Any) -> None:
        """None are needed."""

    def create_qrels(self, *_: Any, **__: Any) -> None:
        """There are none."""


class SupportJudge(_LeaderboardJudge):
    """Judges whether the documents that a sentence cites support it.

    A workflow.yml:

        judge_class: rubric_measures.integrations.autojudge:SupportJudge
        settings:
          filebase: "{_name}"
        variants:
          all-citations:
            citations: all
            measures: ["SupportPrecision(citations='all')", "SupportRecall(citations='all')"]
    """

    @told_to_the_runner
    def judge(self, rag_responses: Iterable[Any], rag_topics: Sequence[Any], llm_config: Any, **settings: Any) -> Any:
        """The leaderboard: support measures per run and topic and their means over all topics.

        A run without an answer to a topic scores 0. A value that could not be computed because grades failed has no
        entry. A sentence is judged by the text that its own report brings along: where reports have different excerpts
        of one document, these are documents of their own in the records (`ID@` and the beginning of the text's md5).

        Raises:
            InputError: a setting is wrong, or there is no report.
            MeasureError: a measure is wrong, or too many grades failed.
        """
        from rubric_measures.analysis.boards import score
        from rubric_measures.grading.grade import grade_support

        chosen = SupportSettings.of(settings)
        # A wrong measure is found before a call is made.
        measures = parse_measures(chosen.measures) if chosen.measures else None
        topics = {topic.request_id: topic_text(topic) for topic in rag_topics}
        answers = answers_of(rag_responses, topics)
        if not answers:
            raise InputError(
                "there is no report about any of the topics; name the folder of the runs, and their topics"
            )
        records = grade_support(
            answers,
            model=chosen.model_name(llm_config),
            collection=chosen.collection or settings.get("corpus"),
            citations=chosen.citations,
            prompt=chosen.prompt or (),
            query_texts=topics,
            asking=chosen.asked,
            calls=chosen.called(llm_config, settings),
        )
        _write(settings, "support.jsonl.gz", records)
        board = score(records, None, measures, overall=False)
        runs = dict.fromkeys(answer.run_id for answer in answers)
        return leaderboard({run_id: board.values[run_id] for run_id in runs}, answers, sorted(topics))


@dataclass(frozen=True)
class JudgeSettings(ModelSettings):
    """The settings of `RubricJudge` in a workflow.yml (`settings`, `nugget_settings`, `judge_settings`).

    Attributes:
        model: this and the others of every judge: see `ModelSettings`. The prompt is by default the self-rating that
            fits the bank; measures are Rubric-Cover at the level that covers and at the highest grade, or nugget scores
            where the prompt is `nuggets.assign`: all six, or A where nuggets have no importance.
        target: what `create_nuggets` writes, `questions` or `nuggets`; nuggets get their importance, ten a call.
        bank: a test bank file to use in place of generating one.
        max_words: answers are graded in passages of this many words, and the best grade of an item counts; 0 grades
            them whole.
        on_failed: how failed grades count in the leaderboard: `expected` (where it is left out), `zero`,
            or a grade, see `Grades`.
        nugget_grades: write `evaldata.nugget_grades` into the reports (with `augment_report` they are saved).
    """

    target: str = "questions"
    bank: str = ""
    max_words: int = 0
    on_failed: OnFailed | None = None
    nugget_grades: bool = False

    def __post_init__(self) -> None:
        if self.target not in ("questions", "nuggets"):
            raise InputError(f"setting target: {self.target!r} is none of questions, nuggets")
        if self.on_failed is not None:
            check_on_failed(self.on_failed)

    def default_measures(self, bank: TestBank, scale: Scale | None) -> tuple[str, ...]:
        """The measures of the leaderboard, where the workflow names none.

        Args:
            bank: what is graded.
            scale: the scale of the grades.
        """
        if self.prompt.partition("@")[0] == "nuggets.assign":
            letters = "VWA" if all(item.importance is not None for item in bank) else "A"
            return tuple(f"Nugget{which}{form}" for which in letters for form in ("(strict=True)", ""))
        levels = [] if scale is None else sorted({scale.covers, scale.highest})
        return tuple(f"RubricCover(rel={level})" for level in levels) or ("RubricCover",)


class _Judged(NamedTuple):
    answers: list[Answer]
    records: Sequence[QueryPassages]
    grades: Grades
    measures: Sequence[Measure] = ()


class RubricJudge(_LeaderboardJudge):
    """Grades reports against test banks; see the module.

    A workflow.yml that writes questions with one model and grades with it:

        judge_class: rubric_measures.integrations.autojudge:RubricJudge
        create_qrels: true
        qrels_uses_nuggets: true
        augment_report: true
        settings:
          filebase: "{_name}"
          nugget_grades: true
        variants:
          autonuggetizer:
            target: nuggets
            prompt: nuggets.assign
    """

    @told_to_the_runner
    def create_nuggets(
        self,
        rag_responses: Iterable[Any] | None,
        rag_topics: Sequence[Any],
        llm_config: Any,
        nugget_banks: Any = None,
        **settings: Any,
    ) -> Any:
        """Nugget banks for the topics: those given, those of the file `bank`, or generated from the topics' texts.

        Reports are not looked at: a bank must not depend on the runs that it scores.

        Raises:
            InputError: a setting is wrong, or no bank could be made for a topic.
        """
        if nugget_banks is not None:
            return nugget_banks
        chosen = JudgeSettings.of(settings)
        bank = load_bank(chosen.bank) if chosen.bank else _generated(rag_topics, chosen, llm_config, settings)
        chosen_bank = _for_topics(bank, rag_topics)
        # What a prompt shows is made of the topics, whatever the title of the bank.
        titles = {topic.request_id: topic.title for topic in rag_topics if topic.title}
        return _their_banks(replace(chosen_bank, query_texts={**chosen_bank.query_texts, **titles}))

    @told_to_the_runner
    def create_qrels(
        self,
        rag_responses: Iterable[Any],
        rag_topics: Sequence[Any],
        llm_config: Any,
        nugget_banks: Any = None,
        **settings: Any,
    ) -> Any:
        """Rubric-Qrels: a label for each different answer of a topic, which is called by the md5 of its text.

        An empty answer has the label 0; one of which every grade failed has none, and is counted.

        Raises:
            InputError: a setting is wrong, or a topic has no nuggets.
        """
        base = require("autojudge_base", "autojudge")
        chosen = JudgeSettings.of(settings)
        judged = _judge(rag_responses, rag_topics, nugget_banks, llm_config, chosen, settings)
        best: dict[tuple[str, str], float] = {}
        for group in judged.records:
            labels = judged.grades.queries[group.query_id].labels()
            for passage in group.passages:
                for place in passage.rankings if passage.doc_id in labels else ():
                    key, label = (group.query_id, place.method), labels[passage.doc_id]
                    best[key] = max(best.get(key, label), label)
        labelled = [answer for answer in judged.answers if answer[:2] in best]
        rows = {(one.query_id, answer_doc_id(one.text)): best[one[:2]] for one in labelled}
        ungraded = len(judged.answers) - len(labelled)
        warn("%d answers have no label: every grade of them failed", ungraded)
        return base.Qrels(rows=[base.QrelRow(*key, grade) for key, grade in sorted(rows.items())])

    @told_to_the_runner
    def judge(
        self,
        rag_responses: Iterable[Any],
        rag_topics: Sequence[Any],
        llm_config: Any,
        nugget_banks: Any = None,
        **settings: Any,
    ) -> Any:
        """The leaderboard: measures per run and topic and their means; `L` is the length in whitespace words.

        A run without an answer to a topic scores 0. A value that could not be computed because grades failed has no
        entry.

        Raises:
            InputError: a setting is wrong, or a topic has no nuggets.
            MeasureError: a measure is wrong.
        """
        from rubric_measures.analysis.boards import score

        chosen = JudgeSettings.of(settings)
        reports = list(rag_responses)
        judged = _judge(reports, rag_topics, nugget_banks, llm_config, chosen, settings, scores=True)
        board = score(judged.grades, None, judged.measures, overall=False, notes=False)
        say(board.wrapped)
        if chosen.nugget_grades:
            _write_grades(reports, judged.records)
        topics, runs = sorted(judged.grades.queries), sorted({answer.run_id for answer in judged.answers})
        # A run of empty answers is there, too.
        nothing = {name: dict.fromkeys(topics, 0.0) for name in board.measures}
        return leaderboard({run: board.values.get(run, nothing) for run in runs}, judged.answers, topics)


def _generated(topics: Sequence[Any], chosen: JudgeSettings, llm_config: Any, settings: Mapping[str, Any]) -> TestBank:
    from rubric_measures.grading.generation import BankQuery, Caller, generate_bank, label_importance

    kind: ItemKind = "nugget" if chosen.target == "nuggets" else "question"
    asked = [BankQuery(topic.request_id, topic_text(topic)) for topic in topics]
    calls = chosen.called(llm_config, settings)
    with calls.asking(calls.to(chosen.model_name(llm_config))) as runner:
        caller = Caller(runner, Asking(max_tokens=2048))
        made = generate_bank(asked, caller, kind=kind)
        if made.failures:
            first = made.failures[0]
            raise InputError(f"{len(made.failures)} topics have no nuggets (topic {first.query_id}: {first.reason})")
        if kind == "question":
            return made.bank
        labelled = label_importance(made.bank, caller)
    if labelled.failures:
        first = labelled.failures[0]
        text = "%d lists of nuggets got no importance (topic %s: %s), so nuggets are scored without it"
        warn(text, len(labelled.failures), first.query_id, first.reason)
    return labelled.bank


def _our_bank(banks: Any) -> TestBank:
    """The test bank of Auto-Judge's containers: version 3 or nuggetizer's form."""
    rows = [bank.model_dump(mode="json", exclude_none=True) for bank in banks.banks.values()]
    first = rows[0] if rows else {}
    form = NUGGETS if "qid" in first else NUGGET_BANK if "query_id" in first else NUGGET_LISTS
    return bank_of_entries(form.read(rows))


def _their_banks(bank: TestBank) -> Any:
    base = require("autojudge_base", "autojudge")
    model = base.NuggetBanks.get_bank_model()
    rows = [model.model_validate(one) for one in written_rows(bank, NUGGET_BANK)]
    return base.NuggetBanks.from_banks_list(rows)


def _for_topics(bank: TestBank, topics: Sequence[Any]) -> TestBank:
    wanted = [topic.request_id for topic in topics]
    bare = [query_id for query_id in wanted if not bank.items.get(query_id)]
    if bare:
        raise InputError(f"{len(bare)} topics have no nuggets (such as {bare[0]}); create some or name a bank")
    texts = {topic.request_id: topic_text(topic) for topic in topics}
    return TestBank({query_id: bank.items[query_id] for query_id in wanted}, texts, bank.facet_texts)


def _judge(
    reports: Iterable[Any],
    topics: Sequence[Any],
    banks: Any,
    llm_config: Any,
    chosen: JudgeSettings,
    settings: Mapping[str, Any],
    scores: bool = False,
) -> _Judged:
    """Pools the answers, grades them, writes the graded records beside the other output, and compiles the grades.

    Where scores are wanted, what the measures lack is found before a call is made.
    """
    from rubric_measures.corpora.loading import load
    from rubric_measures.corpora.pooling import pool
    from rubric_measures.grading.grade import grade
    from rubric_measures.grading.grader import default_prompts
    from rubric_measures.prompts.library import load_prompt

    if banks is None and not chosen.bank:
        raise InputError("there are no nuggets: let the workflow create some (create_nuggets: true) or name a bank")
    bank = _for_topics(load_bank(chosen.bank) if banks is None else _our_bank(banks), topics)
    answers = answers_of(reports, bank.items)
    groups = pool(answers, queries=list(bank.items), max_words=chosen.max_words or None)
    model = chosen.model_name(llm_config)
    scale = load_prompt(chosen.prompt or default_prompts(model, bank)[0]).grade_scale
    measures = parse_measures(chosen.measures or chosen.default_measures(bank, scale)) if scores else ()
    Plan(rubric_measures_of(measures)).refuse_lacking(bank.items, scale)
    how: Any = {"asking": chosen.asked, "calls": chosen.called(llm_config, settings)}
    records = grade(groups, bank, model=model, prompt=chosen.prompt or (), **how)
    _write(settings, "graded.jsonl.gz", records)
    return _Judged(answers, records, load(records, bank, on_failed=chosen.on_failed), measures)


def _write(settings: Mapping[str, Any], ending: str, records: Sequence[QueryPassages]) -> None:
    """Writes graded records beside the leaderboard, `FILEBASE.ENDING` in the output folder; by hand there is none."""
    if settings.get("outdir"):
        folder = Path(settings["outdir"])
        folder.mkdir(parents=True, exist_ok=True)
        write_graded(folder / f"{Path(str(settings.get('filebase') or 'rubric')).name}.{ending}", records)


def _write_grades(reports: Iterable[Any], records: Iterable[QueryPassages]) -> None:
    """Adds `evaldata.nugget_grades` to the reports, which is how Auto-Judge wants to have them."""
    best: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
    for group in records:
        for passage in group.passages:
            graded: dict[str, tuple[float, str]] = {}
            for entry in passage.exam_grades or ():
                said = {**dict(entry.answers), **reasons_of(entry)}
                graded |= {item: (grade, said.get(item, "")) for item, grade in grade_of_items(entry).items()}
            for ranking in passage.rankings:
                of_answer = best.setdefault((group.query_id, ranking.method), {})
                for item_id, found in graded.items():
                    if item_id not in of_answer or of_answer[item_id][0] < found[0]:
                        of_answer[item_id] = found
    for report in reports:
        graded = best.get((report.metadata.topic_id, report.metadata.run_id), {})
        written = {item_id: {"grade": grade, "reasoning": text} for item_id, (grade, text) in graded.items()}
        report.evaldata = {**(report.evaldata or {}), "nugget_grades": written}
