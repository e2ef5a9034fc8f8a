"""Two more judges for TREC Auto-Judge: what citations support, and answers against answers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rubric_measures.base.errors import InputError
from rubric_measures.base.plugins import require
from rubric_measures.corpora.answers import Answer
from rubric_measures.integrations._runner import (
    ModelSettings,
    answers_of,
    leaderboard,
    output_file,
    told_to_the_runner,
    topic_text,
)

_LOG = logging.getLogger("rubric_measures")


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
        """Auto-Judge's container of nugget banks, which it wants to know in any case."""
        return require("autojudge_base", "autojudge").NuggetBanks

    def create_nuggets(self, *_: Any, **__: Any) -> None:
        """None are needed."""

    def create_qrels(self, *_: Any, **__: Any) -> None:
        """There are none."""


class SupportJudge(_LeaderboardJudge):
    """Judges whether the documents that a sentence cites support it.

    A workflow.yml:

        judge_class: rubric_measures.integrations.autojudge.SupportJudge
        settings:
          filebase: "{_name}"
        variants:
          all-citations:
            citations: all
            measures: ["SupportPrecision(citations='all')", "SupportRecall(citations='all')"]
    """

    @told_to_the_runner
    def judge(
        self,
        rag_responses: Iterable[Any],
        rag_topics: Sequence[Any],
        llm_config: Any,
        nugget_banks: Any = None,
        qrels: Any = None,
        corpus: str | None = None,
        **settings: Any,
    ) -> Any:
        """The leaderboard: support measures per run and topic and their means over all topics.

        A run without an answer to a topic scores 0. A value that could not be computed because grades failed has no
        entry. A sentence is judged by the text that its own report brings along: where reports have different excerpts
        of one document, these are documents of their own in the records (`ID@` and the beginning of the text's md5).

        Raises:
            InputError: a setting is wrong, or there is no report.
            MeasureError: a measure is wrong, or too many grades failed.
        """
        from rubric_measures.api import grade, score
        from rubric_measures.measures.scoring import parse_measures
        from rubric_measures.records.files import write_graded

        chosen = SupportSettings.of(settings)
        # A wrong measure is found before a call is made.
        measures = parse_measures(chosen.measures) if chosen.measures else None
        topics, answers = _topics_and_answers(rag_topics, rag_responses)
        records = grade(
            answers,  # type: ignore[arg-type]
            support=True,
            model=chosen.model_name(llm_config),
            collection=chosen.collection or corpus,
            citations=chosen.citations,
            prompt=chosen.prompt or (),
            query_texts=topics,
            **chosen.calls(llm_config, settings),
        )
        with output_file(settings, "support.jsonl.gz") as path:
            write_graded(path, records)
            board = score(str(path), None, measures, overall=False)
        described = {name: getattr(one, "SHORT_DESC", "") for name in board.measures for one in parse_measures([name])}
        values = {run_id: board.values[run_id] for run_id in dict.fromkeys(answer.run_id for answer in answers)}
        return _complete(described, values, answers, sorted(topics))


@dataclass(frozen=True)
class PairwiseSettings(ModelSettings):
    """The settings of `PairwiseJudge` in a workflow.yml.

    Attributes:
        model: this and the others of every judge: see `ModelSettings`; there is no choice of measures.
        per_query: how many random pairs of runs a topic, balanced; None plays all.
        one_order: judge each pair in one order only.
        prior: of Bradley-Terry: games against a middling opponent.
    """

    per_query: int | None = None
    one_order: bool = False
    prior: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measures:
            raise InputError("setting measures: a tournament has WinRate and BradleyTerry; leave it out")


class PairwiseJudge(_LeaderboardJudge):
    """Asks which of two answers is better, and rates the runs by their games.

    A workflow.yml:

        judge_class: rubric_measures.integrations.autojudge.PairwiseJudge
        settings:
          filebase: "{_name}"
          per_query: 20
    """

    @told_to_the_runner
    def judge(
        self,
        rag_responses: Iterable[Any],
        rag_topics: Sequence[Any],
        llm_config: Any,
        nugget_banks: Any = None,
        qrels: Any = None,
        corpus: str | None = None,
        **settings: Any,
    ) -> Any:
        """The leaderboard: `WinRate` per run and topic, the share of points in its games; `BradleyTerry` of all topics.

        A run without an answer to a topic has the WinRate 0 there, and plays no game; the rating does not know of it.
        An answer that is the only one to its topic has no WinRate: there is nobody to play.

        Raises:
            InputError: a setting is wrong, or there are fewer than two runs.
        """
        from rubric_measures.api import tournament

        chosen = PairwiseSettings.of(settings)
        topics, answers = _topics_and_answers(rag_topics, rag_responses)
        with output_file(settings, "games.jsonl") as path:
            # Games of an earlier run are of other answers, perhaps; those of these answers come from the cache.
            path.unlink(missing_ok=True)
            played = tournament(
                answers=answers,
                queries=topics,
                model=chosen.model_name(llm_config),
                prompt=chosen.prompt,
                per_query=chosen.per_query,
                one_order=chosen.one_order,
                prior=chosen.prior,
                save=path,
                **chosen.calls(llm_config, settings),
            )
        for note in played.notes:
            _LOG.warning(note)
        runs = {answer.run_id for answer in answers}
        values = {run_id: {"WinRate": played.win_rates.get(run_id, {})} for run_id in sorted(runs)}
        ratings = {one.agent: {"BradleyTerry": one.rating} for one in played.ratings}
        described = {
            "WinRate": "Share of points in the games about the topic; a tie is half a point.",
            "BradleyTerry": "Strength, on the scale of Elo: 400 points are odds of ten to one, the mean is 1000.",
        }
        return _complete(described, values, answers, sorted(topics), ratings)


def _topics_and_answers(topics: Sequence[Any], reports: Iterable[Any]) -> tuple[dict[str, str], list[Answer]]:
    texts = {topic.request_id: topic_text(topic) for topic in topics}
    answers = answers_of(reports, texts)
    if not answers:
        raise InputError("there is no report about any of the topics; name the folder of the runs, and their topics")
    return texts, answers


def _complete(
    described: Mapping[str, str],
    values: Mapping[str, Mapping[str, Mapping[str, float | None]]],
    answers: Sequence[Answer],
    topics: Sequence[str],
    ratings: Mapping[str, Mapping[str, float]] | None = None,
) -> Any:
    """The leaderboard with a 0 for each topic that a run does not answer; means are over what has a value."""
    there = {answer[:2] for answer in answers}
    full: dict[str, dict[str, dict[str, float | None]]] = {}
    means: dict[str, dict[str, float | None]] = {}
    for run_id, columns in values.items():
        full[run_id] = {
            name: {topic: column.get(topic) if (topic, run_id) in there else 0.0 for topic in topics}
            for name, column in columns.items()
        }
        means[run_id] = {**(ratings or {}).get(run_id, {})}
        for name, column in full[run_id].items():
            found = [value for value in column.values() if value is not None]
            means[run_id][name] = sum(found) / len(found) if found else None
    return leaderboard(described, full, means, answers, topics)
