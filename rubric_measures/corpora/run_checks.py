"""Runs held to what their track takes, before they are submitted; the rules are data.

A check gives rows: whether something is wrong with an answer or a bank of nuggets by the rules of its track, and what.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain
from typing import Any, Literal, NamedTuple

from msgspec import Struct, defstruct, field

from rubric_measures.base.errors import FormatError, counted, in_number, some_of, tell, warn
from rubric_measures.base.json_text import json_texts, parse_json, typed
from rubric_measures.base.tables import Report, Reported, Table, columns, in_lines
from rubric_measures.corpora.loading import File, file_path, listed, named_files
from rubric_measures.formats.answers import TrackRules, track_rules
from rubric_measures.formats.queries import Limit, QueryFile, length_of

_BANK = "nugget_bank"
Severity = Literal["error", "warning"]


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

    severity: Severity
    path: str
    line: int
    topic: str
    kind: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        topic = f"topic {self.topic}: " if self.topic else ""
        return f"{where}: {self.severity}: {topic}{self.problem}"


class Findings(list[Finding], Reported):
    """What is wrong with runs; `print` shows it."""

    @property
    def holds(self) -> bool:
        """Whether a track takes the runs."""
        return all(one.severity != "error" for one in self)

    def report(self) -> Report:
        """A line a finding to read, and a row a finding for programs."""
        return Report([in_lines(map(str, self))], [Table(columns(Finding._fields, left=6), self)])


class RunFile(Struct):
    """What is known of a file so far.

    Attributes:
        rules: those of its form, which the first part tells where a track has several.
        topics: the topics, where they are known.
        form: the type of a part, an answer or a bank of nuggets, by these rules.
        run_ids: run -> the first line that names it.
        answered: topic -> the first line that answers it.
    """

    rules: TrackRules
    topics: QueryFile | None
    form: Any = None
    run_ids: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)


# Whether something is wrong, of which kind, and what.
Rows = Iterator[tuple[object, str, str]]


def _listed(names: Iterable[object]) -> str:
    """The first five names, each cut at 60 characters, and how many more there are."""
    return some_of(name if len(name) <= 60 else name[:57] + "…" for name in map(str, names))


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _metadata(run: RunFile, line: int, topic: str, said: Mapping[str, Any]) -> Rows:
    rules = run.rules
    yield not said, "metadata", "has no metadata"
    yield rules.also in said, "form", f"names {rules.topic} and {rules.also}; the track takes one of them"
    for name in rules.metadata if said else ():
        value = said.get(name)
        is_number = rules.texts and isinstance(value, int | float)
        yield is_number, "form", f"the field {name} is {value!r}, a number; the track wants a text"
        yield not str("" if value is None else value).strip(), "metadata", f"the field {name} is missing or empty"
    kind = said.get("type")
    is_strange = rules.types and kind is not None and kind not in rules.types
    yield is_strange, "type", f"type is {kind!r}; expected {' or '.join(rules.types)}"
    if (run_id := str(said.get("run_id") or "")) and run_id not in run.run_ids:
        first, before = next(iter(run.run_ids.items()), ("", 0))
        yield first, "run_id", f"the run id is {run_id!r}, and {first!r} in line {before}; a file holds one run"
        yield _over(run_id, rules.run_id_most, "run_id", "the run id has %d characters")
        run.run_ids[run_id] = line
    before = run.answered.setdefault(topic, line)
    yield topic and before != line, "twice", f"is answered in line {before} already"
    if topic and run.topics is not None:
        asked, copy = run.topics.texts.get(topic), str(said.get(rules.copies) or "").strip()
        yield asked is None, "unknown", "is none of the topics"
        yield copy and copy != (asked or copy).strip(), "copies", f"{rules.copies} is not the text of the topic"


def _over(held: Sized, most: int, kind: str, text: str) -> tuple[object, str, str]:
    return most and len(held) > most, kind, f"{text % len(held)}; the most is {most}"


# What a nugget of a bank is; its answers cite as sentences do.
_CITED: Any = defstruct("Cited", [("answer", str), ("references", list[str])])
_NUGGET: list[Any] = [("question", str), ("aggregator_type", Literal["AND", "OR"]), ("answers", list[_CITED])]


def _form_of(rules: TrackRules) -> Any:
    """The type of an answer or of a bank; what else it holds is not looked at."""
    cited: Any = list[int | str] if "id" in rules.cited_as else list[int]
    cited = cited | dict[str, float] if "score" in rules.cited_as else cited
    fields: list[Any] = [("text", str), *((name, cited) for name in rules.cited_in)]
    fields += [(rules.given, list[Any] | None, None)] if rules.given else []
    part: Any = defstruct("Part", _NUGGET if rules.sentences == _BANK else fields)
    others = ((name, Any) for name in rules.top_level if name != rules.sentences)
    return defstruct("Answer", [(rules.sentences, list[part]), *others])


def _texts(rules: TrackRules, content: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Where each text of an answer or a bank stands, the text, and field -> what it cites there."""
    for place, one in enumerate(content[rules.sentences]):
        where = f"{rules.sentences}[{place}]"
        if rules.sentences != _BANK:
            yield where, one["text"], {name: one[name] for name in (*rules.cited_in, *filter(one.get, [rules.given]))}
            continue
        yield where, one["question"], {}
        for number, answer in enumerate(one["answers"]):
            yield f"{where}.answers[{number}]", answer["answer"], {"references": answer["references"]}


def _content(run: RunFile, topic: str, content: Mapping[str, Any]) -> Rows:
    """What is wrong with an answer or a bank of the right form."""
    rules, cited, found = run.rules, list[str](), list(_texts(run.rules, content))
    references = content.get("references")
    entries = list(map(str, references if isinstance(references, list) else ()))
    yield not found, "empty", f"{rules.sentences} is empty, and scores 0"
    for where, text, fields in found:
        yield not text.strip(), "blank", f"{where} has an empty text"
        given = set(map(str, fields.get(rules.given, ())))
        for name in (one for one in fields if one != rules.given):
            places = {one for one in fields[name] if isinstance(one, int) and "position" in rules.cited_as}
            wrong = sorted(places.difference(range(len(entries))))
            shown = f"{where}.{name}"
            yield wrong, "place", f"{shown} has {_listed(wrong)}, and references has {len(entries)} entries, from 0"
            own = [entries[one] if one in places else str(one) for one in fields[name] if one not in wrong]
            yield _over(own, rules.citations, "citations", f"{shown} has %d")
            again, shared = _repeated(own), sorted(given.intersection(own))
            yield again, "cited_twice", f"{shown} cites {_listed(again)} twice"
            yield shared, "given", f"{shown} repeats {_listed(shared)} of {rules.given}"
            cited += own
    if rules.sentences == _BANK:
        again = _repeated(one["question"] for one in content[_BANK])
        yield again, "twice", f"asks more than once: {_listed(again)}"
    elif limit := (run.topics and run.topics.limit_of(topic)) or (rules.limit and Limit(rules.limit, rules.unit)):
        length = length_of(" ".join(text for _, text, _ in found), limit.unit)
        yield length > limit.most, "length", f"has {length} {limit.unit}; the most is {limit.most}"
    if rules.references != "none":
        yield not isinstance(references, list), "references", "has no list of references"
        is_number = rules.texts and not all(isinstance(one, str) for one in references or ())
        yield is_number, "form", "references has an entry that is no text"
        lost, again = sorted({*cited} - {*entries}), _repeated(entries)
        yield lost and references is not None, "place", f"cites {_listed(lost)}, which references does not have"
        yield again, "reference_twice", f"references has {_listed(again)} more than once"
        yield _over(entries, rules.references_most, "references", "references has %d entries")
    strange = sorted({one for one in (*cited, *entries) if not re.fullmatch(rules.ids, one)})
    yield strange, "ids", f"{len(strange)} ids are none of the collection ({rules.ids}): {_listed(strange)}"


def _checked(path: str, possible: Sequence[TrackRules], topics: QueryFile | None) -> list[Finding]:
    """What is wrong with a file, and at last with all of it; of several rules, those of its form count."""
    run, found, line = RunFile(possible[0], topics), list[tuple[int, str, str, str]](), 0
    try:
        for line, data in json_texts(path):
            try:
                content = parse_json(data.decode("utf-8"))
            except ValueError as error:
                found.append((line, "", "form", error.problem if isinstance(error, FormatError) else "is not UTF-8"))
            else:
                found += _of_line(run, possible, line, content)
            if run.form is None:
                # Nor will all other lines be read.
                break
    except FormatError as error:
        found.append((error.line or 0, "", "form", error.problem))
    if not line and not found:
        found.append((0, "", "form", "is empty; expected a run"))
    missing = [topic for topic in (topics.texts if topics is not None else ()) if topic not in run.answered]
    if run.form is not None and missing:
        found.append((0, "", "missing", f"{len(missing)} topics have no answer, and score 0: {_listed(missing)}"))
    return [
        Finding("warning" if kind in run.rules.warnings else "error", path, line, topic, kind, in_number(problem))
        for line, topic, kind, problem in sorted(found, key=lambda one: one[0] == 0)
    ]


def _of_line(
    run: RunFile, possible: Sequence[TrackRules], line: int, content: Any
) -> Iterator[tuple[int, str, str, str]]:
    """What is wrong with an answer or a bank, the first of which tells the form of the file."""
    if not isinstance(content, dict):
        yield line, "", "form", "is no JSON object"
        return
    if run.form is None:
        run.rules = next((one for one in possible if one.sentences in content), run.rules)
        run.form = _form_of(run.rules)
    rules, said = run.rules, content.get("metadata")
    said = {**(content if rules.top_level else {}), **(said if isinstance(said, dict) else {})}
    if rules.also in said and rules.topic not in said:
        said[rules.topic] = said.pop(rules.also)
    named = said.get(rules.topic)
    topic = str(named) if isinstance(named, str | int) and not isinstance(named, bool) else ""
    rows = _metadata(run, line, topic, said)
    try:
        typed(run.form, content, "")
        rows = chain(rows, _content(run, topic, content))
    except FormatError as error:
        # The first field that does not fit.
        rows = chain(rows, [(True, "form", f"{error.field}: {error.problem}" if error.field else error.problem)])
    yield from ((line, topic, kind, problem) for is_wrong, kind, problem in rows if is_wrong)


def check_run(files: File | Iterable[File], track: str, *, topics: File | Mapping[str, str] | None = None) -> Findings:
    """What a track would refuse in runs of generated answers, or score otherwise; nothing is changed.

    >>> from io import StringIO
    >>> run = StringIO('{"metadata": {"team_id": "t", "run_id": "r", "topic_id": "181"}, "responses": '
    ...                '[{"text": "Yes.", "citations": [11, 12, 13, 14]}]}')
    >>> print(*check_run(run, "biogen", topics={"181": "Does it?"}))
    open file:1: warning: topic 181: responses[0].citations has 4; the most is 3

    Args:
        files: the files, each one run, in the form in which it is submitted.
        track: `rag26`, `rag25`, `rag24`, `dragun`, `ragtime` (reports or nuggets, told by content), or `biogen` (2025 A
            or B, likewise).
        topics: the topics of the track, in any form of queries, or id -> text; without them nothing is said of missing
            and unknown topics, and RAGTIME has no lengths.

    Returns:
        A `Finding` (severity, path, line, topic, kind, problem) each, in the order of the files; none where the track
        takes all of it as it is. A file that is empty, or no JSON, is a finding too. Of an answer of another form the
        first field that does not fit is named, and no more.

    Raises:
        UnknownNameError: nobody knows the track.
        InputError: a file cannot be opened, or the topics cannot be read.
    """
    from rubric_measures.formats.queries import read_query_file

    rules = track_rules(track)
    with contextlib.ExitStack() as stack:
        topics = named_files(topics, stack)
        asked = None if topics is None else read_query_file(topics)
        if blank := [one for one, text in (asked.texts if asked else {}).items() if not text.strip()]:
            raise FormatError(f"topic {blank[0]!r} has no text", path=topics if isinstance(topics, str) else "")
        shown = {stack.enter_context(file_path(one)): _shown(one) for one in listed(files)}
        found = [one._replace(path=to) for name, to in shown.items() for one in _checked(name, rules, asked)]
    if asked is None:
        text = "no topics were given, so missing and unknown topics, and the lengths that topics allow, are not checked"
        warn(text, settings=("topics",))
    elif any(one.unit == "characters" and not one.limit for one in rules):
        text = "%d topics have no limit, so that lengths of answers are not looked at there"
        warn(text, sum(asked.limit_of(one) is None for one in asked.texts), settings=("topics",))
    errors = sum(one.severity == "error" for one in found)
    tell(f"{errors} errors, {len(found) - errors} warnings in {counted(len(shown), 'file')}")
    return Findings(found)


def _shown(source: File) -> str:
    """The name by which messages call a file."""
    name = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else "open file"
