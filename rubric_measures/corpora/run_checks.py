"""Runs held to what their track takes, before they are submitted; the rules are data.

A check is a function: of a run and of one part of it (an answer, a bank of nuggets) it gives a table: what may be wrong
with that part by the rules of the track, and whether it is.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct, defstruct, field

from rubric_measures.base.errors import FormatError, counted, in_number, tell, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_text import json_texts, parse_json, typed
from rubric_measures.base.tables import Report, Reported, Table, columns, in_lines
from rubric_measures.corpora.loading import File, file_path, listed
from rubric_measures.formats.answers import TrackRules, track_rules
from rubric_measures.formats.queries import Limit, QueryFile, length_of

_SHOWN = 5
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

    def report(self, places: int = 4) -> Report:
        """A line a finding to read, and a row a finding for programs."""
        return Report([in_lines(map(str, self))], [Table(columns(Finding._fields, left=6), self)])


class Part(Struct):
    """One answer or bank of nuggets of a run.

    Attributes:
        line: where it begins.
        topic: the topic; empty where it names none.
        content: what the file says of it.
        metadata: what it says of the run.
    """

    line: int
    topic: str
    content: Mapping[str, Any]
    metadata: Mapping[str, Any]


class RunFile(Struct):
    """What is known of a file so far.

    Attributes:
        path: the file.
        rules: those of its form, which the first part tells where a track has several.
        form: the type of a part, by these rules.
        topics: the topics, where they are known.
        found: the findings.
        run_ids: run -> the first line that names it.
        answered: topic -> the first line that answers it.
        unlimited: how many answers have a limit that nobody said.
    """

    path: str
    rules: TrackRules
    form: Any = None
    topics: QueryFile | None = None
    found: list[Finding] = field(default_factory=list)
    run_ids: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    unlimited: int = 0

    def add(self, kind: str, problem: str, line: int = 0, topic: str = "") -> None:
        """Notes a finding; the rules say how grave its kind is."""
        severity: Severity = "warning" if kind in self.rules.warnings else "error"
        self.found.append(Finding(severity, self.path, line, topic, kind, in_number(problem)))

    def add_part(self, part: Part) -> None:
        """Notes what is wrong with a part, and what later parts are held against."""
        for check in (_metadata, _topic, _content):
            for is_wrong, kind, problem in check(self, part):
                if is_wrong:
                    self.add(kind, problem, part.line, part.topic)
        self.answered.setdefault(part.topic, part.line)


# Whether something is wrong, of which kind, and what.
Rows = Iterator[tuple[object, str, str]]


def _listed(names: Sequence[str]) -> str:
    """The first five names, each cut at 60 characters, and how many more there are."""
    shown = ", ".join(name if len(name) <= 60 else name[:57] + "…" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _is_over(number: int, most: int) -> bool:
    return bool(most) and number > most


def _metadata(run: RunFile, part: Part) -> Rows:
    rules, said = run.rules, part.metadata
    yield not said, "metadata", "has no metadata"
    yield rules.also in said, "form", f"names {rules.topic} and {rules.also}; the track takes one of them"
    for name in rules.metadata if said else ():
        value = said.get(name)
        is_number = rules.texts and isinstance(value, int | float)
        yield is_number, "form", f"the field {name} is {value!r}, a number; the track wants a text"
        is_empty = value is None or (isinstance(value, str) and not value.strip())
        yield is_empty, "metadata", f"the field {name} is missing or empty"
    kind = said.get("type")
    is_strange = rules.types and kind is not None and kind not in rules.types
    yield is_strange, "type", f"type is {kind!r}; expected {' or '.join(rules.types)}"
    # A file has one run id, and it is not too long.
    run_id = str(said.get("run_id") or "")
    if run_id and run_id not in run.run_ids:
        first, before = next(iter(run.run_ids.items()), ("", 0))
        yield first, "run_id", f"the run id is {run_id!r}, and {first!r} in line {before}; a file holds one run"
        size, most = len(run_id), rules.run_id_most
        yield _is_over(size, most), "run_id", f"the run id has {size} characters; the most is {most}"
        run.run_ids[run_id] = part.line


def _topic(run: RunFile, part: Part) -> Rows:
    before = run.answered.get(part.topic)
    yield part.topic and before is not None, "twice", f"is answered in line {before} already"
    if part.topic and run.topics is not None:
        asked, copy = run.topics.texts.get(part.topic), str(part.metadata.get(run.rules.copies) or "")
        yield asked is None, "unknown", "is none of the topics"
        is_other = asked is not None and copy.strip() not in ("", asked.strip())
        yield is_other, "copies", f"{run.rules.copies} is not the text of the topic"


class _NuggetAnswer(Struct):
    answer: str
    references: list[str]


class _Nugget(Struct):
    question: str
    aggregator_type: Literal["AND", "OR"]
    answers: list[_NuggetAnswer]


class _Bank(Struct):
    nugget_bank: list[_Nugget]


def _form_of(rules: TrackRules) -> Any:
    """The type of an answer or of a bank; what else it holds is not looked at."""
    if rules.sentences == "nugget_bank":
        return _Bank
    cited: Any = list[int | str] if "id" in rules.cited_as else list[int]
    cited = cited | dict[str, float] if "score" in rules.cited_as else cited
    fields: list[Any] = [("text", str), *((name, cited) for name in rules.cited_in)]
    fields += [(rules.given, list[Any] | None, None)] if rules.given else []
    sentence: Any = defstruct("Sentence", fields)
    others = ((name, Any) for name in rules.top_level if name != rules.sentences)
    return defstruct("Answer", [(rules.sentences, list[sentence]), *others])


def _content(run: RunFile, part: Part) -> Rows:
    """What is wrong with an answer or a bank; of one of another form the first field that does not fit."""
    try:
        typed(run.form, part.content, "")
    except FormatError as error:
        yield True, "form", f"{error.field}: {error.problem}" if error.field else error.problem
    else:
        yield from (_nuggets if run.form is _Bank else _answer)(run, part)


def _nuggets(run: RunFile, part: Part) -> Rows:
    nuggets = part.content["nugget_bank"]
    yield not nuggets, "empty", "the bank is empty, and scores 0"
    again = _repeated(one["question"] for one in nuggets)
    yield again, "twice", f"asks more than once: {_listed(again)}"
    answers = [answer for one in nuggets for answer in one["answers"]]
    texts = [*(one["question"] for one in nuggets), *(one["answer"] for one in answers)]
    yield not all(map(str.strip, texts)), "blank", "a question or an answer is empty"
    cited = [one["references"] for one in answers]
    yield any(map(_repeated, cited)), "cited_twice", "an answer has a reference twice"
    yield from _ids(run, [one for references in cited for one in references])


def _ids(run: RunFile, named: Iterable[str]) -> Rows:
    """The ids of documents."""
    wrong = sorted({one for one in named if not re.fullmatch(run.rules.ids, one)})
    yield wrong, "ids", f"{len(wrong)} ids are none of the collection ({run.rules.ids}): {_listed(wrong)}"


def _answer(run: RunFile, part: Part) -> Rows:
    rules, content = run.rules, part.content
    sentences, cited = content[rules.sentences], list[str]()
    yield not sentences, "empty", "the answer is empty, and scores 0"
    references = content.get("references")
    entries = list(map(str, references if isinstance(references, list) else ()))
    for place, sentence in enumerate(sentences):
        where = f"{rules.sentences}[{place}]"
        yield not sentence["text"].strip(), "blank", f"{where} has an empty text"
        for name in rules.cited_in:
            yield from _citations(rules, f"{where}.{name}", sentence, sentence[name], entries, cited)
    limit = run.topics.limits.get(part.topic) if run.topics is not None else None
    if limit is None and not rules.limit:
        run.unlimited += rules.unit == "characters"
    else:
        limit = limit or Limit(rules.limit, rules.unit)
        length = length_of(" ".join(one["text"] for one in sentences), limit.unit)
        yield length > limit.most, "length", f"has {length} {limit.unit}; the most is {limit.most}"
    if rules.references != "none":
        yield not isinstance(references, list), "references", "has no list of references"
        is_number = rules.texts and not all(isinstance(one, str) for one in references or ())
        yield is_number, "form", "references has an entry that is no text"
        lost, again = sorted({*cited} - {*entries}), _repeated(entries)
        yield lost and references is not None, "place", f"cites {_listed(lost)}, which references does not have"
        yield again, "reference_twice", f"references has {_listed(again)} more than once"
        size, most = len(entries), rules.references_most
        yield _is_over(size, most), "references", f"references has {size} entries; the most is {most}"
    yield from _ids(run, (*cited, *entries))


def _citations(
    rules: TrackRules,
    where: str,
    sentence: Mapping[str, Any],
    said: Iterable[int | str],
    entries: Sequence[str],
    cited: list[str],
) -> Rows:
    """What is wrong with a field of citations; what it cites is added to `cited`."""
    own = []
    for one in said:
        is_place = isinstance(one, int) and "position" in rules.cited_as
        if is_place and not 0 <= int(one) < len(entries):
            yield True, "place", f"{where} has {one}, and references has {len(entries)} entries, from 0"
        else:
            own.append(entries[int(one)] if is_place else str(one))
    yield _is_over(len(own), rules.citations), "citations", f"{where} has {len(own)}; the most is {rules.citations}"
    again = _repeated(own)
    yield again, "cited_twice", f"{where} cites {_listed(again)} twice"
    shared = sorted(set(own).intersection(map(str, sentence.get(rules.given) or ())))
    yield shared, "given", f"{where} repeats {_listed(shared)} of {rules.given}"
    cited += own


def _checked(path: str, possible: Sequence[TrackRules], topics: QueryFile | None) -> RunFile:
    """What is wrong with a file; of several rules, those of its form count."""
    run = RunFile(path, possible[0], topics=topics)
    count = 0
    try:
        for count, part in enumerate(_parts(run, possible), 1):  # noqa: B007 - the number of parts
            run.add_part(part)
    except FormatError as error:
        run.add("form", error.problem, error.line or 0)
    if not count and not run.found:
        run.add("form", "is empty; expected a run")
    missing = [topic for topic in (topics.texts if topics is not None else ()) if topic not in run.answered]
    if count and missing:
        run.add("missing", f"{len(missing)} topics have no answer, and score 0: {_listed(missing)}")
    return run


def _parts(run: RunFile, possible: Sequence[TrackRules]) -> Iterator[Part]:
    """The answers or banks of a file, the first of which tells its form; what cannot be read is a finding."""
    is_first = True
    for line, data in json_texts(run.path):
        try:
            content = parse_json(data.decode("utf-8"))
        except ValueError as error:
            run.add("form", error.problem if isinstance(error, FormatError) else "is not UTF-8", line)
            content = None
        if isinstance(content, dict):
            if is_first:
                run.rules = next((one for one in possible if one.sentences in content), run.rules)
                run.form = _form_of(run.rules)
            yield _part(run.rules, line, content)
        elif content is not None:
            run.add("form", "is no JSON object", line)
        elif is_first:
            # Nor will all other lines be.
            return
        is_first = False


def _part(rules: TrackRules, line: int, content: dict[str, Any]) -> Part:
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if rules.top_level:
        metadata = {**content, **metadata}
    if rules.also in metadata and rules.topic not in metadata:
        metadata = {rules.topic if name == rules.also else name: one for name, one in metadata.items()}
    topic = metadata.get(rules.topic)
    named = str(topic) if isinstance(topic, str | int) and not isinstance(topic, bool) else ""
    return Part(line, named, content, metadata)


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
        asked = QueryFile(topics) if isinstance(topics, Mapping) else None
        if topics is not None and not isinstance(topics, Mapping):
            name = stack.enter_context(file_path(topics))
            asked = read_query_file(name)
            if blank := [query_id for query_id, text in asked.texts.items() if not text.strip()]:
                raise FormatError(f"topic {blank[0]!r} has no text", path=name)
        shown = {stack.enter_context(file_path(one)): _shown(one) for one in listed(files)}
        checked = [_checked(path_name(name), rules, asked) for name in shown]
    if asked is None:
        warn("no topics were given: missing and unknown topics are not looked for", settings=("topics",))
    text = "%d answers were not measured: the length that is allowed stands in the topics"
    warn(text, sum(file.unlimited for file in checked), settings=("topics",))
    found = [one for file in checked for one in sorted(file.found, key=lambda one: (one.line == 0, one.line))]
    errors = sum(one.severity == "error" for one in found)
    tell(f"{errors} errors, {len(found) - errors} warnings in {counted(len(shown), 'file')}")
    return Findings(one._replace(path=shown[one.path]) for one in found)


def _shown(source: File) -> str:
    """The name by which messages call a file."""
    name = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else "open file"
