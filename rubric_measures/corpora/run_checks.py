"""Runs held to what their track takes, before they are submitted; the rules are data."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import iter_lines, path_name, peek_head
from rubric_measures.base.json_files import json_texts, parse_json
from rubric_measures.corpora._run_answers import CheckedAnswer
from rubric_measures.corpora._run_tasks import listed, ranked_topics
from rubric_measures.corpora.collections import Collection
from rubric_measures.formats.queries import Topic
from rubric_measures.formats.reports import TrackRules, is_submission, reports_of_submission, track_rules

__all__ = ["Finding", "check_runs"]

_LOG = logging.getLogger("rubric_measures")


class Finding(NamedTuple):
    """One thing that is wrong with a run.

    Attributes:
        severity: `error`, the track refuses it; `warning`, the track takes it, and scores or repairs something.
        path: the file.
        line: its line, from 1; 0 where the finding is about all of the file.
        topic: the topic; empty where none is known.
        kind: what the rule is about, as `track_rules.toml` names it.
        problem: what is wrong, in one line.
    """

    severity: Literal["error", "warning"]
    path: str
    line: int
    topic: str
    kind: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        topic = f"topic {self.topic}: " if self.topic else ""
        return f"{where}: {self.severity}: {topic}{self.problem}"


class RunFile:
    """The findings of one file."""

    def __init__(self, path: str, rules: Sequence[TrackRules], topics: Mapping[str, Topic] | None) -> None:
        self.path = path
        self.topics = topics
        self.found: list[Finding] = []
        # Told by the first answer where a track has several forms.
        self._possible = rules
        self.rules = rules[0]
        self.run_ids: dict[str, int] = {}
        self.teams: set[str] = set()
        self.answered: dict[str, int] = {}
        self.cited: list[tuple[int, str, list[str]]] = []
        self.unlimited = 0
        self._is_text = False

    def has_form(self, form: str) -> bool:
        """Whether the track takes files of this form."""
        return any(rules.form == form for rules in self._possible)

    def add(self, kind: str, problem: str, line: int = 0, topic: str = "", *, soft: bool = False) -> None:
        """Notes a finding; the rules say how grave its kind is."""
        severity: Literal["error", "warning"] = "warning" if soft or kind in self.rules.warnings else "error"
        self.found.append(Finding(severity, self.path, line, topic, kind, problem))

    def check(self) -> None:
        """Looks at all of the file."""
        rows = self._check_ranking() if self.has_form("ranking") and self._is_ranking() else self._check_answers()
        if not rows and not self.found:
            self.add("form", "is empty; expected a run")
        if self.topics is not None and rows:
            missing = [topic for topic in self.topics if topic not in self.answered]
            if missing:
                self.add("missing", f"{len(missing)} topics have no answer, and score 0: {listed(missing)}")

    def _is_ranking(self) -> bool:
        if self._possible[0].form == "ranking":
            return True
        first = next((line for line in peek_head(self.path).splitlines() if line.strip()), b"")
        return first.lstrip()[:1] not in (b"{", b"[") and len(first.split()) in (5, 6)

    def _check_ranking(self) -> int:
        """The number of lines of a ranking, which is looked at."""
        self.rules = next(rules for rules in self._possible if rules.form == "ranking")
        try:
            topics = ranked_topics(iter_lines(self.path))
        except FormatError as error:
            self.add("form", error.problem, error.line)
            return 0
        for one in topics:
            for line, problem in one.problems:
                self.add(problem.kind, problem.text, line, one.topic)
            for run_id in sorted(one.runs):
                self.see_run(run_id, one.line, one.topic)
            if not one.rows:
                continue
            self.answered[one.topic] = one.line
            if self.topics is not None and one.topic not in self.topics:
                self.add("unknown", "is none of the topics", one.line, one.topic)
            for problem in one.found(self.rules):
                self.add(problem.kind, problem.text, one.line, one.topic)
            self.see_documents(one.doc_ids, one.line, one.topic)
        return sum(len(one.rows) for one in topics)

    def see_run(self, run_id: str, line: int, topic: str) -> None:
        """Looks at a run id: a file has one, and it is not too long."""
        rules = self.rules
        if not run_id or run_id in self.run_ids:
            return
        if self.run_ids:
            first, before = next(iter(self.run_ids.items()))
            problem = f"the run id is {run_id!r}, and {first!r} in line {before}; a file holds one run"
            self.add("run_id", problem, line, topic)
        self.run_ids[run_id] = line
        if rules.run_id_most is not None and len(run_id) > rules.run_id_most:
            self.add("run_id", f"the run id has {len(run_id)} characters; the most is {rules.run_id_most}", line, topic)
        elif rules.run_id_safe is not None and len(run_id) > rules.run_id_safe:
            problem = f"the run id has {len(run_id)} characters, and some checks take {rules.run_id_safe}"
            self.add("run_id", problem, line, topic, soft=True)

    def see_documents(self, cited: Sequence[str], line: int, topic: str, further: Sequence[str] = ()) -> None:
        """Looks at the ids of documents that are cited, and of `further` ones; keeps the cited for the collection."""
        wrong = sorted({one for one in (*cited, *further) if not self.rules.ids.fullmatch(one)})
        if wrong:
            problem = f"{len(wrong)} ids are none of the collection ({self.rules.ids.pattern}): {listed(wrong)}"
            self.add("ids", problem, line, topic)
        # What looks wrong is said already.
        self.cited.append((line, topic, [one for one in dict.fromkeys(cited) if one not in wrong]))

    def _check_answers(self) -> int:
        """The number of answers or banks, each of which is looked at."""
        rows = 0
        for line, content in self._rows():
            if not rows:
                self._choose(content)
            rows += 1
            CheckedAnswer(self, line, content).check()
        return rows

    def _choose(self, content: Mapping[str, Any]) -> None:
        if len(self._possible) == 1:
            return
        answer, metadata = content.get("answer"), content.get("metadata")
        sentences = answer if isinstance(answer, list) else []
        grounded = any(isinstance(one, Mapping) and "supported_citations" in one for one in sentences)
        grounded = grounded or (isinstance(metadata, Mapping) and "qa_id" in metadata)
        is_bank = "nugget_bank" in content and "responses" not in content
        form = "text" if self._is_text else "nuggets" if is_bank else "grounded" if grounded else "answers"
        self.rules = next((rules for rules in self._possible if rules.form == form), self.rules)

    def _rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The answers with their lines; what cannot be read is a finding."""
        try:
            for line, data in json_texts(self.path):
                if data.lstrip()[:1] not in (b"{", b"["):
                    columns = len(data.split())
                    what = "a ranking, and this looks at generated answers" if columns in (5, 6) else "no JSON object"
                    self.add("form", f"is {what}; expected the answers of a run as JSON", line)
                    if line == 1:
                        return
                    continue
                yield from self._content(line, data)
        except FormatError as error:
            self.add("form", error.problem, error.line)

    def _content(self, line: int, data: bytes) -> Iterator[tuple[int, Mapping[str, Any]]]:
        try:
            data.decode("utf-8")
            content = parse_json(data, path=self.path, line=line)
        except UnicodeDecodeError:
            self.add("form", "is not UTF-8", line)
            return
        except FormatError as error:
            self.add("form", error.problem, line)
            return
        if not isinstance(content, dict):
            self.add("form", "is no JSON object", line)
        elif is_submission(content) and self.has_form("text"):
            self._is_text = True
            rows = [(line, row) for row in reports_of_submission(content, self.path, line, says=False)]
            if not rows:
                self.add("form", "has no results", line)
            yield from rows
        else:
            yield line, content


def check_runs(
    paths: Iterable[str | os.PathLike[str]],
    track: str,
    *,
    topics: Mapping[str, Topic] | None = None,
    collection: Collection | None = None,
) -> list[Finding]:
    """What a track would refuse in runs of generated answers (RAGTIME: and of the other tasks), or score otherwise.

    Args:
        paths: the files, each one run.
        track: a table of `track_rules.toml`: `rag26`, `rag25`, `rag24`, `ragtime`, `dragun`, `biogen` (its form is told
            by content), …
        topics: id -> topic; without them nothing is said of missing and unknown topics, and of texts that are copied.
        collection: whether the documents that are cited exist is looked up there.

    Raises:
        UnknownNameError: nobody knows the track.
        InputError: a file cannot be opened, or the collection has no documents.
    """
    rules = track_rules(track)
    files = [RunFile(path_name(path), rules, topics) for path in paths]
    for file in files:
        file.check()
    if collection is not None:
        _check_documents(files, collection)
    if topics is None:
        _LOG.warning(
            "no topics were given: missing and unknown topics are not looked for", extra={"settings": ("topics",)}
        )
    if unlimited := sum(file.unlimited for file in files):
        text = "%d answers were not measured: the length that is allowed stands in the topics"
        _LOG.warning(text, unlimited, extra={"settings": ("topics",)})
    found = [one for file in files for one in sorted(file.found, key=lambda one: (one.line == 0, one.line))]
    return [*found, *_without_prefix(files)]


def _check_documents(files: Sequence[RunFile], collection: Collection) -> None:
    asked = {doc_id for file in files for _, _, ids in file.cited for doc_id in ids}
    there = set(collection.docs_store().get_many(asked)) if asked else set()
    for file in files:
        for line, topic, ids in file.cited:
            if lost := [doc_id for doc_id in ids if doc_id not in there]:
                file.add("documents", f"cites {listed(lost)}, which the collection does not have", line, topic)


def _without_prefix(files: Sequence[RunFile]) -> Iterator[Finding]:
    """Runs of one team whose ids do not begin alike, where the track wants that."""
    names: dict[str, list[tuple[str, RunFile]]] = {}
    for file in files:
        if file.rules.prefix and len(file.teams) == 1:
            names.setdefault(next(iter(file.teams)), []).extend((run_id, file) for run_id in file.run_ids)
    for team, runs in names.items():
        ids = [run_id for run_id, _ in runs]
        if len({run_id[:1] for run_id in ids}) > 1:
            problem = f"the runs of team {team!r} do not begin alike: {listed(sorted(set(ids)))}"
            file = runs[0][1]
            yield Finding("warning", file.path, 0, "", "prefix", problem)
