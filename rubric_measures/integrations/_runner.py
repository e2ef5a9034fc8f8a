"""What the judges for TREC Auto-Judge share: settings, the model with its cache, and how the runner is answered."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError, escaped, shortened
from rubric_measures.base.plugins import require
from rubric_measures.corpora.answers import Answer
from rubric_measures.formats.reports import CitedReport, answer_of_report
from rubric_measures.models.settings import CallOptions

P = ParamSpec("P")
T = TypeVar("T")
# What Auto-Judge passes to every judge beside the settings of the workflow.
_PASSED_BY_THE_RUNNER = {"outdir", "filebase", "description"}
_LOG = logging.getLogger("rubric_measures")
_CACHE = "rubric_measures.cache.sqlite"


@dataclass(frozen=True)
class ModelSettings:
    """What every judge can be told in a workflow.yml.

    Attributes:
        model: as on the command line (`hf:…`, `openai:…`, `lexical`); by default the model that Auto-Judge was given,
            behind its endpoint.
        model_options: settings of the backend.
        prompt: the name of a prompt; by default the one that fits.
        cache: where replies are kept; by default in the folder CACHE_DIR, which is made, else in the output folder.
        measures: what the leaderboard shows.
    """

    model: str = ""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    cache: str = ""
    measures: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.measures, str):
            raise InputError("setting measures is a list")

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

    def calls(self, llm_config: Any, settings: Mapping[str, Any]) -> CallOptions:
        """How the model is asked: behind Auto-Judge's endpoint, with a cache that outlives the run."""
        url = None
        if not self.model and "base_url" not in self.model_options:
            url = getattr(llm_config, "base_url", None) or None
        if url == os.environ.get("OPENAI_BASE_URL"):
            # The backend reads it with the first call: a full cache needs none, whatever stands there.
            url = None
        folder = getattr(llm_config, "cache_dir", None) or settings.get("outdir")
        cache = self.cache or (Path(folder) / _CACHE if folder else None)
        return CallOptions(base_url=url, model_option=self.model_options, cache=cache)


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


@contextlib.contextmanager
def output_file(settings: Mapping[str, Any], ending: str) -> Iterator[Path]:
    """Where a file beside the leaderboard goes, `FILEBASE.ENDING` in the output folder; by hand it is thrown away."""
    name = f"{Path(str(settings.get('filebase') or 'rubric')).name}.{ending}"
    if settings.get("outdir"):
        folder = Path(settings["outdir"])
        folder.mkdir(parents=True, exist_ok=True)
        yield folder / name
        return
    with tempfile.TemporaryDirectory() as folder_name:
        yield Path(folder_name) / name


def topic_text(topic: Any) -> str:
    """What a topic asks: title, problem statement and background."""
    parts = (topic.title, topic.problem_statement, topic.background)
    return "\n".join(part for part in parts if part)


def answers_of(reports: Iterable[Any], topics: Iterable[str]) -> list[Answer]:
    """The answers that reports of Auto-Judge are; those to other topics are left out and counted.

    Raises:
        InputError: a run answers a topic twice.
    """
    wanted = set(topics)
    answers: list[Answer] = []
    seen: set[tuple[str, str]] = set()
    strangers = 0
    for report in reports:
        said = report.model_dump(mode="json", exclude_none=True, exclude={"evaldata"})
        answer = answer_of_report(CitedReport.model_validate(said), keep_lost=True)
        if answer.query_id not in wanted:
            strangers += 1
            continue
        if answer[:2] in seen:
            raise InputError(f"run {answer.run_id!r} has answered topic {answer.query_id!r} twice")
        seen.add((answer.query_id, answer.run_id))
        answers.append(answer)
    if strangers:
        _LOG.warning("%d reports are about topics that nobody asked; they were left out", strangers)
    return answers


def leaderboard(
    described: Mapping[str, str],
    values: Mapping[str, Mapping[str, Mapping[str, float | None]]],
    means: Mapping[str, Mapping[str, float | None]],
    answers: Sequence[Answer],
    topics: Sequence[str],
) -> Any:
    """Auto-Judge's leaderboard: every run and topic, and `all`; `L` is the length in whitespace words.

    A value that is not there because grades failed has no entry. A run of empty answers is there, too.
    """
    base = require("autojudge_base", "autojudge")
    specs = [base.MeasureSpec(name, description=text) for name, text in described.items()]
    spec = base.LeaderboardSpec((*specs, base.MeasureSpec("L", int, "Length in whitespace words.")))
    lengths = {answer[:2]: answer.words for answer in answers}
    entries = []
    for run_id, columns in values.items():
        words = [lengths.get((query_id, run_id), 0) for query_id in topics]
        for query_id, length in zip(topics, words, strict=True):
            found = {name: column.get(query_id) for name, column in columns.items()}
            row = {name: value for name, value in found.items() if value is not None}
            entries.append(base.LeaderboardEntry(run_id, query_id, {**row, "L": length}))
        row = {name: mean for name, mean in means[run_id].items() if mean is not None}
        entries.append(base.LeaderboardEntry(run_id, spec.all_topic_id, {**row, "L": sum(words) / len(words)}))
    return base.Leaderboard(measures=spec.names, spec=spec, entries=tuple(entries))
