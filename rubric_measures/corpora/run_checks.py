"""Runs held to what their track takes, before they are submitted; the rules are data.

A check is a function: of a run and of one part of it (an answer, a bank of nuggets, a ranked topic) it gives a table:
what may be wrong with that part by the rules of the track, and whether it is. `_CHECKS` says what is checked.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeGuard, TypeVar

from msgspec import Struct, field

from rubric_measures.base.errors import FormatError, InputError, counted, in_number, tell, warn
from rubric_measures.base.files import iter_lines, path_name, peek_head
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.base.tables import Report, Reported, Table, columns, in_lines
from rubric_measures.corpora.collections import Collection
from rubric_measures.corpora.loading import File, file_path, listed
from rubric_measures.formats import reports
from rubric_measures.formats.queries import Limit, QueryFile, length_of
from rubric_measures.formats.reports import TrackRules

_SHOWN = 5
_T = TypeVar("_T")
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
    """One answer, bank of nuggets or ranked topic of a run.

    Attributes:
        line: where it begins.
        topic: the topic; empty where it names none.
        content: what the file says of it.
        metadata: what it says of the run.
        run_ids: the runs that it names.
        rows: (rank, score, document) of a ranking, in file order.
        cited: the documents that it names; its checks fill it.
    """

    line: int
    topic: str
    content: Mapping[str, Any] = {}
    metadata: Mapping[str, Any] = {}
    run_ids: set[str] = field(default_factory=set)
    rows: list[tuple[int, float, str]] = field(default_factory=list)
    cited: list[str] = field(default_factory=list)


class RunFile(Struct):
    """What is known of a file so far.

    Attributes:
        path: the file.
        rules: those of its form, which the first part tells where a track has several.
        topics: the topics, where they are known.
        found: the findings.
        run_ids: run -> the first line that names it.
        teams: the teams that it names.
        answered: topic -> the first line that answers it.
        cited: line, topic and the documents that are cited there, without those that are called wrong already.
        unlimited: how many answers have a limit that nobody said.
    """

    path: str
    rules: TrackRules
    topics: QueryFile | None = None
    found: list[Finding] = field(default_factory=list)
    run_ids: dict[str, int] = field(default_factory=dict)
    teams: set[str] = field(default_factory=set)
    answered: dict[str, int] = field(default_factory=dict)
    cited: list[tuple[int, str, list[str]]] = field(default_factory=list)
    unlimited: int = 0

    def add(self, kind: str, problem: str, line: int = 0, topic: str = "", *, soft: bool = False) -> None:
        """Notes a finding; the rules say how grave its kind is."""
        severity: Severity = "warning" if soft or kind in self.rules.warnings else "error"
        self.found.append(Finding(severity, self.path, line, topic, kind, in_number(problem)))

    def add_part(self, part: Part) -> None:
        """Notes what is wrong with a part, and what later parts are held against."""
        for check in _CHECKS[self.rules.form]:
            for is_wrong, kind, problem, *soft in check(self, part):
                if is_wrong:
                    self.add(kind, problem, part.line, part.topic, soft=bool(soft))
        if part.topic:
            self.answered.setdefault(part.topic, part.line)


# Whether something is wrong, of which kind, and what; True behind it where it is a warning whatever the rules say.
Rows = Iterator[tuple[object, str, str] | tuple[object, str, str, bool]]


def _listed(names: Sequence[str]) -> str:
    """The first five names, each cut at 60 characters, and how many more there are."""
    shown = ", ".join(name if len(name) <= 60 else name[:57] + "…" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _repeated(names: Iterable[str]) -> list[str]:
    listed = list(names)
    return [name for name, count in Counter(listed).items() if count > 1] if len(set(listed)) < len(listed) else []


def _is_over(number: int, most: int) -> bool:
    return bool(most) and number > most


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def _as(kind: type[_T], value: Any) -> _T:
    """The value where it is of a kind, else an empty one."""
    return value if isinstance(value, kind) else kind()


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
    if isinstance(team := said.get("team_id"), str):
        run.teams.add(team)


def _run_id(run: RunFile, part: Part) -> Rows:
    """A file has one run id, and it is not too long."""
    rules = run.rules
    for run_id in sorted(part.run_ids - run.run_ids.keys() - {""}):
        first, before = next(iter(run.run_ids.items()), ("", 0))
        yield first, "run_id", f"the run id is {run_id!r}, and {first!r} in line {before}; a file holds one run"
        run.run_ids[run_id] = part.line
        size, is_long = f"the run id has {len(run_id)} characters", _is_over(len(run_id), rules.run_id_most)
        yield is_long, "run_id", f"{size}; the most is {rules.run_id_most}"
        is_doubtful = _is_over(len(run_id), rules.run_id_safe) and not is_long
        yield is_doubtful, "run_id", f"{size}, and some checks take {rules.run_id_safe}", True


def _topic(run: RunFile, part: Part) -> Rows:
    if not part.topic:
        return
    before = run.answered.get(part.topic)
    yield before is not None, "twice", f"is answered in line {before} already"
    asked = run.topics.texts.get(part.topic) if run.topics is not None else None
    yield run.topics is not None and asked is None, "unknown", "is none of the topics"
    copy = _as(str, part.metadata.get(run.rules.copies))
    text = asked if asked is not None else copy
    blanks = ": white space differs" if copy.split() == text.split() else ""
    is_other = copy.strip() and copy.strip() != text.strip()
    yield is_other, "copies", f"{run.rules.copies} is not the text of the topic{blanks}"


def _ids(run: RunFile, part: Part, further: Iterable[str] = ()) -> Rows:
    """The ids of documents; those that are cited are kept for the collection."""
    pattern = re.compile(run.rules.ids)
    wrong = sorted({one for one in (*part.cited, *further) if not pattern.fullmatch(one)})
    yield wrong, "ids", f"{len(wrong)} ids are none of the collection ({pattern.pattern}): {_listed(wrong)}"
    run.cited.append((part.line, part.topic, [one for one in dict.fromkeys(part.cited) if one not in wrong]))


def _ranking(run: RunFile, part: Part) -> Rows:
    ranked = [doc_id for _, _, doc_id in part.rows]
    part.cited = list(dict.fromkeys(ranked))
    number, depth, again = len(part.cited), run.rules.depth, _repeated(ranked)
    yield _is_over(number, depth), "length", f"ranks {number} documents; the most is {depth}"
    yield again, "twice", f"ranks {_listed(again)} more than once"
    by_rank = [score for _, score, _ in sorted(part.rows, key=lambda row: row[0])]
    rising = sum(after > before for before, after in itertools.pairwise(by_rank))
    yield rising, "order", f"the scores rise at {rising} ranks; the scores count, not the ranks"
    yield from _ids(run, part)


def _nuggets(run: RunFile, part: Part) -> Rows:
    bank = part.content.get("nugget_bank")
    yield not isinstance(bank, list), "form", "has no list 'nugget_bank'"
    yield bank == [], "empty", "the bank is empty, and scores 0"
    nuggets = _as(list, bank)
    for place, nugget in enumerate(nuggets):
        yield from _nugget(f"nugget_bank[{place}]", nugget, part.cited)
    again = _repeated(filter(_is_text, (_as(dict, one).get("question") for one in nuggets)))
    yield again, "twice", f"asks more than once: {_listed(again)}"
    yield from _ids(run, part)


def _nugget(where: str, nugget: Any, cited: list[str]) -> Rows:
    if not isinstance(nugget, Mapping):
        yield True, "form", f"{where} is no object {{question, aggregator_type, answers}}"
        return
    yield not _is_text(nugget.get("question")), "blank", f"{where} has no question"
    joined, answers = nugget.get("aggregator_type"), nugget.get("answers")
    yield joined not in ("AND", "OR"), "form", f"{where}.aggregator_type is {joined!r:.40}; expected AND or OR"
    yield not isinstance(answers, list), "form", f"{where} has no list of answers; an empty one has none"
    for number, answer in enumerate(_as(list, answers)):
        place, said = f"{where}.answers[{number}]", _as(dict, answer)
        references = _as(list, said.get("references"))
        are_ids = isinstance(said.get("references"), list) and all(isinstance(one, str) for one in references)
        yield not _is_text(said.get("answer")), "form", f"{place} is no object {{answer, references}} with a text"
        yield not are_ids, "form", f"{place}.references is no list of ids"
        for again in _repeated(map(str, references))[:1]:
            yield True, "cited_twice", f"{place}.references has {again!r} twice"
        cited += references if are_ids else []


def _answer(run: RunFile, part: Part) -> Rows:
    rules, content = run.rules, part.content
    for name in rules.top_level:
        yield name not in content and name != rules.sentences, "form", f"has no {name}"
    sentences = content.get(rules.sentences)
    if not isinstance(sentences, list):
        is_bank = "nugget_bank" in content and sentences is None
        yield is_bank, "form", "is a bank of nuggets, and this looks at generated answers"
        yield not is_bank, "form", f"has no list {rules.sentences!r} of sentences, as {rules.name} expects"
        return
    lost = reports.lost_brackets(_as(str, _as(dict, content.get(reports.ORIGINAL)).get("answer")))
    yield lost, "place", f"{lost} citations stand behind the end of a sentence, and count nothing", True
    yield not sentences, "empty", "the answer is empty, and scores 0"
    texts: list[str] = []
    for place, sentence in enumerate(sentences):
        where, is_object = f"{rules.sentences}[{place}]", isinstance(sentence, dict)
        text = _as(dict, sentence).get("text")
        texts += [text] if isinstance(text, str) else []
        yield not is_object, "form", f"{where} is no object {{text, citations}}"
        yield is_object and not isinstance(text, str), "form", f"{where} has no text"
        yield isinstance(text, str) and not text.strip(), "blank", f"{where} has an empty text"
        for name in rules.cited_in if is_object else ():
            yield from _citations(rules, f"{where}.{name}", name, sentence, part)
    yield from _length(run, part.topic, " ".join(texts))
    yield from _references(rules, content.get("references"), part.cited)
    yield from _ids(run, part, map(str, _as(list, content.get("references"))))


def _length(run: RunFile, topic: str, text: str) -> Rows:
    limit = run.topics.limits.get(topic) if run.topics is not None else None
    if limit is None and run.rules.limit:
        limit = Limit(run.rules.limit, run.rules.unit)
    if limit is None:
        run.unlimited += run.rules.unit == "characters"
    else:
        length = length_of(text, limit.unit)
        yield length > limit.most, "length", f"has {length} {limit.unit}; the most is {limit.most}"


def _citations(rules: TrackRules, where: str, name: str, sentence: Mapping[str, Any], part: Part) -> Rows:
    """What is wrong with a field of citations; what it cites is kept."""
    if name not in sentence:
        yield True, "form", f"{where} is missing; an empty list cites nothing"
        return
    cited, own = sentence[name], list[str]()
    is_scored = "score" in rules.cited_as and isinstance(cited, dict)
    if is_scored:
        bad = [key for key, one in cited.items() if isinstance(one, bool) or not isinstance(one, int | float)]
        yield bad, "form", f"{where}: the score of {next(iter(bad), None)!r} is no number"
    elif not isinstance(cited, list):
        yield True, "form", f"{where} is no list"
    references = _as(list, part.content.get("references"))
    for one in cited if is_scored else _as(list, cited):
        if isinstance(one, bool) or not isinstance(one, int | str):
            found = "a number with a fraction" if isinstance(one, float) else f"{one!r:.40}"
            yield True, "form", f"{where} has {found}, which is no citation"
        elif isinstance(one, str) and "id" not in rules.cited_as:
            yield True, "form", f"{where} has {one!r:.60}; expected positions in references"
        elif isinstance(one, str) or "position" not in rules.cited_as:
            own.append(str(one))
        elif 0 <= one < len(references):
            own.append(str(references[one]))
        else:
            yield True, "place", f"{where} has {one}, and references has {len(references)} entries, from 0"
    if _is_over(len(own), rules.citations):
        yield True, "citations", f"{where} has {len(own)}; the most is {rules.citations}"
    for again in _repeated(own)[:1]:
        yield True, "cited_twice", f"{where} cites {again!r} twice"
    if rules.given:
        shared = sorted(set(own).intersection(map(str, _as(list, sentence.get(rules.given)))))
        yield shared, "given", f"{where} repeats {_listed(shared)} of {rules.given}"
    part.cited += own


def _references(rules: TrackRules, references: Any, cited: Sequence[str]) -> Rows:
    if rules.references == "none":
        return
    if not isinstance(references, list):
        yield True, "references", "has no list of references"
        return
    entries = list(map(str, references))
    lost, uncited, again = sorted({*cited} - {*entries}), sorted({*entries} - {*cited}), _repeated(entries)
    is_number = rules.texts and not all(isinstance(one, str) for one in references)
    yield is_number, "form", "references has an entry that is no text"
    yield lost, "place", f"cites {_listed(lost)}, which references does not have"
    yield again, "reference_twice", f"references has {_listed(again)} more than once"
    size, most = len(entries), rules.references_most
    yield _is_over(size, most), "references", f"references has {size} entries; the most is {most}"
    yield rules.all_cited and uncited, "uncited", f"references has {_listed(uncited)}, which no sentence cites"


_OF_ANSWERS = (_metadata, _run_id, _topic, _answer)
# The form of a run -> what is checked, in this order.
_CHECKS: Mapping[str, tuple[Callable[[RunFile, Part], Rows], ...]] = {
    **dict.fromkeys(("answers", "text", "grounded"), _OF_ANSWERS),
    "nuggets": (_metadata, _run_id, _topic, _nuggets),
    "ranking": (_run_id, _topic, _ranking),
}


def _checked(path: str, possible: Sequence[TrackRules], topics: QueryFile | None) -> RunFile:
    """What is wrong with a file; of several rules, those of its form count."""
    run = RunFile(path, possible[0], topics)
    of_forms: dict[str, TrackRules] = {rules.form: rules for rules in possible}
    parts = _ranked(run, of_forms["ranking"]) if _is_ranking(path, of_forms) else _answers(run, of_forms)
    count = 0
    try:
        for count, part in enumerate(parts, 1):  # noqa: B007 - the number of parts
            run.add_part(part)
    except FormatError as error:
        run.add("form", error.problem, error.line)
    if not count and not run.found:
        run.add("form", "is empty; expected a run")
    missing = [topic for topic in (topics.texts if topics is not None else ()) if topic not in run.answered]
    if count and missing:
        run.add("missing", f"{len(missing)} topics have no answer, and score 0: {_listed(missing)}")
    return run


def _is_ranking(path: str, of_forms: Mapping[str, TrackRules]) -> bool:
    if "ranking" not in of_forms or len(of_forms) == 1:
        return "ranking" in of_forms
    first = next((line for line in peek_head(path).splitlines() if line.strip()), b"")
    return first.lstrip()[:1] not in (b"{", b"[") and len(first.split()) in (5, 6)


def _ranked(run: RunFile, rules: TrackRules) -> Iterator[Part]:
    """The topics of a TREC run; lines that cannot be read are findings."""
    run.rules = rules
    topics: dict[str, Part] = {}
    for line, data in iter_lines(run.path):
        columns = [column.decode("utf-8", "replace") for column in data.split()]
        if problem := _problem_of(columns):
            run.add("form", problem, line, columns[0])
            continue
        topic, _, doc_id, rank, score, run_id = columns
        part = topics.setdefault(topic, Part(line, topic))
        part.rows.append((int(rank), float(score), doc_id))
        part.run_ids.add(run_id)
    yield from topics.values()


def _problem_of(columns: Sequence[str]) -> str:
    """What is wrong with a line of a TREC run; empty where nothing is."""
    if len(columns) != 6:
        return f"has {len(columns)} columns; expected 6: topic Q0 document rank score run"
    _, q0, _, rank, score, _ = columns
    if q0 != "Q0":
        return f"the second column is {q0!r:.40}; expected Q0"
    try:
        is_finite = math.isfinite(int(rank) + float(score))
    except (ValueError, OverflowError):
        return f"rank {rank!r:.40} or score {score!r:.40} is no number"
    return "" if is_finite else f"the score is {score!r:.40}, which has no order"


def _answers(run: RunFile, of_forms: Mapping[str, TrackRules]) -> Iterator[Part]:
    """The answers or banks of a file, the first of which tells its form."""
    for place, (line, content) in enumerate(_contents(run, "text" in of_forms)):
        if not place:
            run.rules = of_forms.get(_form_of(content), run.rules)
        rules, metadata = run.rules, _as(dict, content.get("metadata"))
        if rules.top_level:
            metadata = {**content, **metadata}
        if rules.also in metadata and rules.topic not in metadata:
            metadata = {rules.topic if name == rules.also else name: one for name, one in metadata.items()}
        topic = metadata.get(rules.topic)
        named = str(topic) if isinstance(topic, str | int) and not isinstance(topic, bool) else ""
        yield Part(line, named, content, metadata, {str(metadata.get("run_id") or "")})


def _form_of(content: Mapping[str, Any]) -> str:
    if reports.ORIGINAL in content:
        return "text"
    if "nugget_bank" in content and "responses" not in content:
        return "nuggets"
    is_grounded = any("supported_citations" in _as(dict, one) for one in _as(list, content.get("answer")))
    return "grounded" if is_grounded or "qa_id" in _as(dict, content.get("metadata")) else "answers"


def _contents(run: RunFile, takes_texts: bool) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a file with their lines; what cannot be read is a finding."""
    for line, data in json_texts(run.path):
        if data.lstrip()[:1] not in (b"{", b"["):
            is_ranking = len(data.split()) in (5, 6)
            what = "a ranking, and this looks at generated answers" if is_ranking else "no JSON object"
            run.add("form", f"is {what}; expected the answers of a run as JSON", line)
            if line == 1:
                return
            continue
        try:
            content = parse_json(data.decode("utf-8"))
        except ValueError as error:
            run.add("form", error.problem if isinstance(error, FormatError) else "is not UTF-8", line)
            continue
        if not isinstance(content, dict):
            run.add("form", "is no JSON object", line)
        elif takes_texts and reports.is_submission(content):
            rows = list(reports.reports_of_submission(content, run.path, line, says=False))
            if not rows:
                run.add("form", "has no results", line)
            yield from ((line, row) for row in rows)
        else:
            yield line, content


def _check_documents(files: Sequence[RunFile], collection: Collection) -> None:
    asked = {doc_id for file in files for _, _, ids in file.cited for doc_id in ids}
    there = set(collection.docs_store().get_many(asked)) if asked else set()
    for file in files:
        for line, topic, ids in file.cited:
            if lost := [doc_id for doc_id in ids if doc_id not in there]:
                file.add("documents", f"cites {_listed(lost)}, which the collection does not have", line, topic)


def _without_prefix(files: Sequence[RunFile]) -> Iterator[Finding]:
    """Runs of one team whose ids do not begin alike, where the track wants that."""
    of_teams: dict[str, list[RunFile]] = {}
    for file in files:
        if file.rules.prefix and len(file.teams) == 1 and file.run_ids:
            of_teams.setdefault(next(iter(file.teams)), []).append(file)
    for team, runs in of_teams.items():
        names = sorted({run_id for run in runs for run_id in run.run_ids})
        if len({name[:1] for name in names}) > 1:
            problem = f"the runs of team {team!r} do not begin alike: {_listed(names)}"
            yield Finding("warning", runs[0].path, 0, "", "prefix", problem)


def check_run(
    files: File | Iterable[File],
    track: str,
    *,
    topics: File | Mapping[str, str] | None = None,
    collection: File | Sequence[File] | Collection | None = None,
) -> Findings:
    """What a track would refuse in runs of generated answers, or score otherwise; nothing is changed.

    >>> from io import StringIO
    >>> import rubric_measures
    >>> run = StringIO('{"metadata": {"team_id": "t", "run_id": "r", "topic_id": "181"}, "responses": '
    ...                '[{"text": "Yes.", "citations": [11, 12, 13, 14]}]}')
    >>> print(*rubric_measures.api.check_run(run, "biogen", topics={"181": "Does it?"}))
    open file:1: warning: topic 181: responses[0].citations has 4; the most is 3

    Args:
        files: the files, each one run, in the form in which it is submitted.
        track: `rag26`, `rag25`, `rag24`, `dragun`, `ragtime` (reports, rankings or nuggets, told by content), or
            `biogen` (2024, 2025 A or 2025 B, likewise).
        topics: the topics of the track, in any form of queries, or id -> text; without them nothing is said of missing
            and unknown topics, and RAGTIME has no lengths.
        collection: look up there whether cited documents exist.

    Returns:
        A `Finding` (severity, path, line, topic, kind, problem) each, in the order of the files; none where the track
        takes all of it as it is. A file that is empty, or no JSON, is a finding too.

    Raises:
        UnknownNameError: nobody knows the track.
        InputError: a file cannot be opened, the topics cannot be read, or the collection has no documents.
    """
    from rubric_measures.corpora.collections import load_collection
    from rubric_measures.formats.queries import read_query_file

    rules = reports.track_rules(track)
    known = load_collection(collection)
    if known is not None and not known.has_docs():
        raise InputError(f"{known.source}: has no documents", settings=("collection",))
    with contextlib.ExitStack() as stack:
        asked = QueryFile(topics) if isinstance(topics, Mapping) else None
        if topics is not None and not isinstance(topics, Mapping):
            name = stack.enter_context(file_path(topics))
            asked = read_query_file(name)
            if blank := [query_id for query_id, text in asked.texts.items() if not text.strip()]:
                raise FormatError(f"topic {blank[0]!r} has no text", path=name)
        shown = {stack.enter_context(file_path(one)): _shown(one) for one in listed(files)}
        checked = [_checked(path_name(name), rules, asked) for name in shown]
        if known is not None:
            _check_documents(checked, known)
    if asked is None:
        warn("no topics were given: missing and unknown topics are not looked for", settings=("topics",))
    text = "%d answers were not measured: the length that is allowed stands in the topics"
    warn(text, sum(file.unlimited for file in checked), settings=("topics",))
    found = [one for file in checked for one in sorted(file.found, key=lambda one: (one.line == 0, one.line))]
    found += _without_prefix(checked)
    errors = sum(one.severity == "error" for one in found)
    tell(f"{errors} errors, {len(found) - errors} warnings in {counted(len(shown), 'file')}")
    return Findings(one._replace(path=shown[one.path]) for one in found)


def _shown(source: File) -> str:
    """The name by which messages call a file."""
    name = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else "open file"
