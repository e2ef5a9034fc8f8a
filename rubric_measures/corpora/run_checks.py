"""Runs of generated answers held to what their track takes, before they are submitted; the rules are data."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import json_texts, parse_json
from rubric_measures.corpora.collections import Collection
from rubric_measures.formats.biogen import ORIGINAL, is_submission, lost_brackets, reports_of_submission
from rubric_measures.formats.topics import Limit, Topic, length_of
from rubric_measures.formats.track_rules import TrackRules, track_rules

__all__ = ["Finding", "check_runs"]

_LOG = logging.getLogger("rubric_measures")
_SHOWN = 5


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


class _Row(NamedTuple):
    """One answer of a file, with what it cites once that is known."""

    line: int
    content: Mapping[str, Any]


class _File:
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

    def add(self, kind: str, problem: str, line: int = 0, topic: str = "", *, soft: bool = False) -> None:
        """Notes a finding; the rules say how grave its kind is."""
        severity: Literal["error", "warning"] = "warning" if soft or kind in self.rules.warnings else "error"
        self.found.append(Finding(severity, self.path, line, topic, kind, problem))

    def check(self) -> None:
        """Looks at all of the file."""
        rows = 0
        for row in self._rows():
            if not rows:
                self._choose(row.content)
            rows += 1
            _Answer(self, row).check()
        if not rows and not self.found:
            self.add("form", "is empty; expected the answers of a run")
        if self.topics is not None and rows:
            missing = [topic for topic in self.topics if topic not in self.answered]
            if missing:
                self.add("missing", f"{len(missing)} topics have no answer, and score 0: {_listed(missing)}")

    def _choose(self, content: Mapping[str, Any]) -> None:
        if len(self._possible) == 1:
            return
        answer, metadata = content.get("answer"), content.get("metadata")
        sentences = answer if isinstance(answer, list) else []
        grounded = any(isinstance(one, Mapping) and "supported_citations" in one for one in sentences)
        grounded = grounded or (isinstance(metadata, Mapping) and "qa_id" in metadata)
        by_text = {rules.text: rules for rules in self._possible}
        by_given = {rules.given is not None: rules for rules in self._possible if not rules.text}
        self.rules = by_text[True] if self._is_text else by_given[grounded]

    def _rows(self) -> Iterator[_Row]:
        """The answers; what cannot be read is a finding."""
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

    def _content(self, line: int, data: bytes) -> Iterator[_Row]:
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
        elif is_submission(content) and any(rules.text for rules in self._possible):
            self._is_text = True
            rows = [_Row(line, row) for row in reports_of_submission(content, self.path, line, says=False)]
            if not rows:
                self.add("form", "has no results", line)
            yield from rows
        else:
            yield _Row(line, content)


class _Answer:
    """One answer, held to the rules of its file."""

    def __init__(self, file: _File, row: _Row) -> None:
        self.file = file
        self.rules = file.rules
        self.line = row.line
        self.content = row.content
        given = row.content.get("metadata")
        self.metadata: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        if self.rules.top_level:
            self.metadata = {**row.content, **self.metadata}
        said = self.metadata.get(self.rules.topic)
        self.topic = str(said) if isinstance(said, str | int) and not isinstance(said, bool) else ""

    def add(self, kind: str, problem: str, *, soft: bool = False) -> None:
        """Notes a finding of this answer."""
        self.file.add(kind, problem, self.line, self.topic, soft=soft)

    def check(self) -> None:
        """Looks at all of the answer."""
        self._check_metadata()
        self._check_topic()
        sentences = self.content.get(self.rules.sentences)
        absent = [name for name in self.rules.top_level if name not in self.content and name != self.rules.sentences]
        for name in absent:
            self.add("form", f"has no {name}")
        if "nugget_bank" in self.content and sentences is None:
            self.add("form", "is a bank of nuggets, and this looks at generated answers")
            return
        if not isinstance(sentences, list):
            self.add("form", f"has no list {self.rules.sentences!r} of sentences, as {self.rules.name} expects")
            return
        if self.rules.text and (lost := lost_brackets(self.content.get(ORIGINAL, {}).get("answer", ""))):
            self.add("place", f"{lost} citations stand behind the end of a sentence, and count nothing", soft=True)
        if not sentences:
            self.add("empty", "the answer is empty, and scores 0")
        texts = [text for place, one in enumerate(sentences) if (text := self._check_text(place, one)) is not None]
        self._check_length(texts)
        cited = [self._cited(place, one) for place, one in enumerate(sentences) if isinstance(one, Mapping)]
        self._check_references([doc_id for ids in cited for doc_id in ids])

    def _check_metadata(self) -> None:
        rules = self.rules
        if not self.metadata:
            self.add("metadata", "has no metadata")
            return
        for name in rules.metadata:
            value = self.metadata.get(name)
            if value is None or (isinstance(value, str) and not value.strip()):
                self.add("metadata", f"the field {name} is missing or empty")
        kind = self.metadata.get("type")
        if rules.types and kind is not None and kind not in rules.types:
            self.add("type", f"type is {kind!r}; expected {' or '.join(rules.types)}")
        run_id = str(self.metadata.get("run_id") or "")
        team = self.metadata.get("team_id")
        if isinstance(team, str):
            self.file.teams.add(team)
        if not run_id or run_id in self.file.run_ids:
            return
        if self.file.run_ids:
            first, line = next(iter(self.file.run_ids.items()))
            self.add("run_id", f"the run id is {run_id!r}, and {first!r} in line {line}; a file holds one run")
        self.file.run_ids[run_id] = self.line
        if rules.run_id_most is not None and len(run_id) > rules.run_id_most:
            self.add("run_id", f"the run id has {len(run_id)} characters; the most is {rules.run_id_most}")
        elif rules.run_id_safe is not None and len(run_id) > rules.run_id_safe:
            problem = f"the run id has {len(run_id)} characters, and some checks take {rules.run_id_safe}"
            self.add("run_id", problem, soft=True)

    def _check_topic(self) -> None:
        if not self.topic:
            return
        if self.topic in self.file.answered:
            self.add("twice", f"is answered in line {self.file.answered[self.topic]} already")
        self.file.answered.setdefault(self.topic, self.line)
        if self.file.topics is None:
            return
        topic = self.file.topics.get(self.topic)
        if topic is None:
            self.add("unknown", "is none of the topics")
            return
        copy = self.metadata.get(self.rules.copies) if self.rules.copies else None
        if isinstance(copy, str) and copy.strip() and copy.strip() != topic.text.strip():
            blanks = ": white space differs" if copy.split() == topic.text.split() else ""
            self.add("copies", f"{self.rules.copies} is not the text of the topic{blanks}")

    def _check_text(self, place: int, sentence: Any) -> str | None:
        where = f"{self.rules.sentences}[{place}]"
        if not isinstance(sentence, Mapping):
            self.add("form", f"{where} is no object {{text, citations}}")
            return None
        text = sentence.get("text")
        if not isinstance(text, str):
            self.add("form", f"{where} has no text")
            return None
        if not text.strip():
            self.add("blank", f"{where} has an empty text")
        return text

    def _check_length(self, texts: Sequence[str]) -> None:
        topic = (self.file.topics or {}).get(self.topic)
        limit = _limit(self.rules, topic)
        if limit is None:
            self.file.unlimited += self.rules.unit == "characters"
        elif (length := length_of(" ".join(texts), limit.unit)) > limit.most:
            self.add("length", f"has {length} {limit.unit}; the most is {limit.most}")

    def _cited(self, place: int, sentence: Mapping[str, Any]) -> list[str]:
        """The ids that a sentence cites; positions that lead nowhere are findings."""
        ids: list[str] = []
        for name in self.rules.cited_in:
            where = f"{self.rules.sentences}[{place}].{name}"
            if name not in sentence:
                self.add("form", f"{where} is missing; an empty list cites nothing")
                continue
            own = self._ids(where, sentence[name])
            if self.rules.citations is not None and len(own) > self.rules.citations:
                self.add("citations", f"{where} has {len(own)}; the most is {self.rules.citations}")
            if repeated := [doc_id for doc_id, count in Counter(own).items() if count > 1]:
                self.add("cited_twice", f"{where} cites {repeated[0]!r} twice")
            given = sentence.get(self.rules.given) if self.rules.given else None
            shared = sorted(set(own) & {str(one) for one in given}) if isinstance(given, list) else []
            if shared:
                self.add("given", f"{where} repeats {_listed(shared)} of {self.rules.given}")
            ids += own
        return ids

    def _ids(self, where: str, cited: Any) -> list[str]:
        rules, ids = self.rules, []
        if isinstance(cited, Mapping) and "score" in rules.cited_as:
            bad = [key for key, value in cited.items() if isinstance(value, bool) or not isinstance(value, int | float)]
            if bad:
                self.add("form", f"{where}: the score of {bad[0]!r} is no number")
            return list(cited)
        if not isinstance(cited, list):
            self.add("form", f"{where} is no list")
            return []
        references = self.content.get("references")
        known = references if isinstance(references, list) else []
        for one in cited:
            if isinstance(one, bool) or not isinstance(one, int | str):
                self.add("form", f"{where} has {one!r:.40}, which is no citation")
            elif isinstance(one, int) and "position" in rules.cited_as:
                if 0 <= one < len(known):
                    ids.append(str(known[one]))
                else:
                    self.add("place", f"{where} has {one}, and references has {len(known)} entries, from 0")
            elif isinstance(one, str) and "id" not in rules.cited_as:
                self.add("form", f"{where} has {one!r:.60}; expected positions in references")
            else:
                ids.append(str(one))
        return ids

    def _check_references(self, cited: Sequence[str]) -> None:
        rules = self.rules
        references = self.content.get("references")
        listed = [str(one) for one in references] if isinstance(references, list) else []
        if rules.references == "required" and not isinstance(references, list):
            self.add("references", "has no list of references")
        if rules.references != "none" and isinstance(references, list):
            self._check_listed(listed, cited)
        wrong = sorted({one for one in (*cited, *listed) if not re.fullmatch(rules.ids, one)})
        if wrong:
            self.add("ids", f"{len(wrong)} ids are none of the collection ({rules.ids}): {_listed(wrong)}")
        # What looks wrong is said already.
        self.file.cited.append((self.line, self.topic, [one for one in dict.fromkeys(cited) if one not in wrong]))

    def _check_listed(self, listed: Sequence[str], cited: Sequence[str]) -> None:
        rules = self.rules
        lost = sorted(set(cited) - set(listed))
        if lost:
            self.add("place", f"cites {_listed(lost)}, which references does not have")
        if repeated := [one for one, count in Counter(listed).items() if count > 1]:
            self.add("reference_twice", f"references has {_listed(repeated)} more than once")
        if rules.references_most is not None and len(listed) > rules.references_most:
            self.add("references", f"references has {len(listed)} entries; the most is {rules.references_most}")
        if rules.all_cited and (uncited := sorted(set(listed) - set(cited))):
            self.add("uncited", f"references has {_listed(uncited)}, which no sentence cites")


def _limit(rules: TrackRules, topic: Topic | None) -> Limit | None:
    if topic is not None and topic.limit is not None:
        return Limit(topic.limit, "characters")
    if topic is not None and topic.word_limit is not None:
        return Limit(topic.word_limit, "words")
    return Limit(rules.limit, rules.unit) if rules.limit is not None else None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(name if len(name) <= 60 else name[:57] + "…" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def check_runs(
    paths: Iterable[str | os.PathLike[str]],
    track: str,
    *,
    topics: Mapping[str, Topic] | None = None,
    collection: Collection | None = None,
) -> list[Finding]:
    """What a track would refuse in files of generated answers, or score otherwise, in the order of the files.

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
    files = [_File(path_name(path), rules, topics) for path in paths]
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


def _check_documents(files: Sequence[_File], collection: Collection) -> None:
    asked = {doc_id for file in files for _, _, ids in file.cited for doc_id in ids}
    there = set(collection.docs_store().get_many(asked)) if asked else set()
    for file in files:
        for line, topic, ids in file.cited:
            if lost := [doc_id for doc_id in ids if doc_id not in there]:
                file.add("documents", f"cites {_listed(lost)}, which the collection does not have", line, topic)


def _without_prefix(files: Sequence[_File]) -> Iterator[Finding]:
    """Runs of one team whose ids do not begin alike, where the track wants that."""
    names: dict[str, list[tuple[str, _File]]] = {}
    for file in files:
        if file.rules.prefix and len(file.teams) == 1:
            names.setdefault(next(iter(file.teams)), []).extend((run_id, file) for run_id in file.run_ids)
    for team, runs in names.items():
        ids = [run_id for run_id, _ in runs]
        if len({run_id[:1] for run_id in ids}) > 1:
            problem = f"the runs of team {team!r} do not begin alike: {_listed(sorted(set(ids)))}"
            file = runs[0][1]
            yield Finding("warning", file.path, 0, "", "prefix", problem)
