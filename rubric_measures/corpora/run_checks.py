"""Runs of answers by the rules of a track: tasks, answers, what would be refused.

What is wrong with a ranking, or with a bank of nuggets, that is handed in as a run; the rules are the track's.

One answer, or bank of nuggets, of a run that is handed in, held to the rules of its track.

Runs held to what their track takes, before they are submitted; the rules are data.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rubric_measures.base.errors import FormatError, warn
from rubric_measures.base.files import iter_lines, path_name, peek_head
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.corpora.collections import Collection
from rubric_measures.formats.queries import Limit, Topic, length_of
from rubric_measures.formats.reports import (
    ORIGINAL,
    TrackRules,
    is_submission,
    lost_brackets,
    reports_of_submission,
    track_rules,
)

_AGGREGATORS = ("AND", "OR")
_COLUMNS = "topic Q0 document rank score run"
_SHOWN = 5


class Problem(NamedTuple):
    """What is wrong: the kind of the rule, and one line."""

    kind: str
    text: str


def listed(names: Sequence[str]) -> str:
    """The first five names, each cut at 60 characters, and how many more there are."""
    shown = ", ".join(name if len(name) <= 60 else name[:57] + "…" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def nugget_problems(bank: Any) -> tuple[list[Problem], list[str]]:
    """What is wrong with the list `nugget_bank` of one topic, and the documents that its answers name."""
    if not isinstance(bank, list):
        return [Problem("form", "has no list 'nugget_bank'")], []
    if not bank:
        return [Problem("empty", "the bank is empty, and scores 0")], []
    found: list[Problem] = []
    cited: list[str] = []
    for place, nugget in enumerate(bank):
        where = f"nugget_bank[{place}]"
        if not isinstance(nugget, Mapping):
            found.append(Problem("form", f"{where} is no object {{question, aggregator_type, answers}}"))
            continue
        if not _is_text(nugget.get("question")):
            found.append(Problem("blank", f"{where} has no question"))
        if nugget.get("aggregator_type") not in _AGGREGATORS:
            problem = f"{where}.aggregator_type is {nugget.get('aggregator_type')!r:.40}; expected AND or OR"
            found.append(Problem("form", problem))
        answers = nugget.get("answers")
        if not isinstance(answers, list):
            found.append(Problem("form", f"{where} has no list of answers; an empty one has none"))
            continue
        for number, answer in enumerate(answers):
            found += _of_answer(f"{where}.answers[{number}]", answer, cited)
    questions = Counter(one["question"] for one in bank if isinstance(one, Mapping) and _is_text(one.get("question")))
    if again := [question for question, count in questions.items() if count > 1]:
        found.append(Problem("twice", f"asks more than once: {listed(again)}"))
    return found, cited


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _of_answer(where: str, answer: Any, cited: list[str]) -> Iterator[Problem]:
    if not isinstance(answer, Mapping) or not _is_text(answer.get("answer")):
        yield Problem("form", f"{where} is no object {{answer, references}} with a text")
        return
    references = answer.get("references")
    if not isinstance(references, list) or not all(isinstance(one, str) for one in references):
        yield Problem("form", f"{where}.references is no list of ids")
        return
    if again := [one for one, count in Counter(references).items() if count > 1]:
        yield Problem("cited_twice", f"{where}.references has {again[0]!r} twice")
    cited += references


@dataclass
class RankedTopic:
    """The documents of one topic in a ranking.

    Attributes:
        topic: the topic; empty for what is wrong with a line that has none.
        line: its first line.
        runs: the run ids of its lines.
        rows: (rank, score, document), in file order.
        problems: lines that cannot be read.
    """

    topic: str
    line: int
    runs: set[str] = field(default_factory=set)
    rows: list[tuple[int, float, str]] = field(default_factory=list)
    problems: list[tuple[int, Problem]] = field(default_factory=list)

    @property
    def doc_ids(self) -> list[str]:
        """The documents, each once."""
        return list(dict.fromkeys(doc_id for _, _, doc_id in self.rows))

    def found(self, rules: TrackRules) -> Iterator[Problem]:
        """What is wrong with the topic as a whole."""
        doc_ids = self.doc_ids
        if rules.depth is not None and len(doc_ids) > rules.depth:
            yield Problem("length", f"ranks {len(doc_ids)} documents; the most is {rules.depth}")
        if again := [one for one, count in Counter(doc_id for _, _, doc_id in self.rows).items() if count > 1]:
            yield Problem("twice", f"ranks {listed(again)} more than once")
        by_rank: Sequence[float] = [score for _, score, _ in sorted(self.rows, key=lambda row: row[0])]
        if rising := sum(after > before for before, after in itertools.pairwise(by_rank)):
            yield Problem("order", f"the scores rise at {rising} ranks; the scores count, not the ranks")


def ranked_topics(lines: Iterable[tuple[int, bytes]]) -> list[RankedTopic]:
    """The topics of a TREC run, and what cannot be read of it."""
    topics: dict[str, RankedTopic] = {}
    for number, data in lines:
        columns = [part.decode("utf-8", "replace") for part in data.split()]
        topic = topics.setdefault(columns[0] if len(columns) == 6 else "", RankedTopic(columns[0], number))
        if len(columns) != 6 or columns[1] != "Q0":
            problem = f"has {len(columns)} columns; expected 6: {_COLUMNS}"
            if len(columns) == 6:
                problem = f"the second column is {columns[1]!r:.40}; expected Q0"
            topic.problems.append((number, Problem("form", problem)))
            continue
        _, _, doc_id, rank, score, run_id = columns
        try:
            row = (int(rank), float(score), doc_id)
        except ValueError:
            problem = f"rank {rank!r:.40} or score {score!r:.40} is no number"
            topic.problems.append((number, Problem("form", problem)))
            continue
        if not math.isfinite(row[1]):
            topic.problems.append((number, Problem("form", f"the score is {score!r:.40}, which has no order")))
            continue
        topic.runs.add(run_id)
        topic.rows.append(row)
    return list(topics.values())


class CheckedAnswer:
    """One answer, held to the rules of its file; `line` is where it begins."""

    def __init__(self, file: RunFile, line: int, content: Mapping[str, Any]) -> None:
        self.file = file
        self.rules = file.rules
        self.line = line
        self.content = content
        given = content.get("metadata")
        self.metadata: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        if self.rules.top_level:
            self.metadata = {**content, **self.metadata}
        said = self.metadata.get(self.rules.topic)
        self.topic = str(said) if isinstance(said, str | int) and not isinstance(said, bool) else ""

    def add(self, kind: str, problem: str, *, soft: bool = False) -> None:
        """Notes a finding of this answer."""
        self.file.add(kind, problem, self.line, self.topic, soft=soft)

    def check(self) -> None:
        """Notes what is wrong with the answer."""
        self._check_metadata()
        self._check_topic()
        if self.rules.form == "nuggets":
            problems, named = nugget_problems(self.content.get("nugget_bank"))
            for kind, problem in problems:
                self.add(kind, problem)
            self.file.see_documents(named, self.line, self.topic)
            return
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
        if self.rules.form == "text" and (lost := lost_brackets(self.content.get(ORIGINAL, {}).get("answer", ""))):
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
            if rules.texts and isinstance(value, int | float):
                self.add("form", f"the field {name} is {value!r}, a number; the track wants a text")
            if value is None or (isinstance(value, str) and not value.strip()):
                self.add("metadata", f"the field {name} is missing or empty")
        kind = self.metadata.get("type")
        if rules.types and kind is not None and kind not in rules.types:
            self.add("type", f"type is {kind!r}; expected {' or '.join(rules.types)}")
        run_id = str(self.metadata.get("run_id") or "")
        team = self.metadata.get("team_id")
        if isinstance(team, str):
            self.file.teams.add(team)
        self.file.see_run(run_id, self.line, self.topic)

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
        limit = topic.own_limit if topic is not None else None
        if limit is None and self.rules.limit is not None:
            limit = Limit(self.rules.limit, self.rules.unit)
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
                self.add("given", f"{where} repeats {listed(shared)} of {self.rules.given}")
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
                found = "a number with a fraction" if isinstance(one, float) else f"{one!r:.40}"
                self.add("form", f"{where} has {found}, which is no citation")
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
        entries = [str(one) for one in references] if isinstance(references, list) else []
        if rules.references == "required" and not isinstance(references, list):
            self.add("references", "has no list of references")
        elif rules.texts and any(not isinstance(one, str) for one in references or ()):
            self.add("form", "references has an entry that is no text")
        if rules.references != "none" and isinstance(references, list):
            self._check_listed(entries, cited)
        self.file.see_documents(cited, self.line, self.topic, entries)

    def _check_listed(self, entries: Sequence[str], cited: Sequence[str]) -> None:
        rules = self.rules
        lost = sorted(set(cited) - set(entries))
        if lost:
            self.add("place", f"cites {listed(lost)}, which references does not have")
        if repeated := [one for one, count in Counter(entries).items() if count > 1]:
            self.add("reference_twice", f"references has {listed(repeated)} more than once")
        if rules.references_most is not None and len(entries) > rules.references_most:
            self.add("references", f"references has {len(entries)} entries; the most is {rules.references_most}")
        if rules.all_cited and (uncited := sorted(set(entries) - set(cited))):
            self.add("uncited", f"references has {listed(uncited)}, which no sentence cites")


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
        warn("no topics were given: missing and unknown topics are not looked for", settings=("topics",))
    warn(
        "%d answers were not measured: the length that is allowed stands in the topics",
        sum(file.unlimited for file in files),
        settings=("topics",),
    )
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
