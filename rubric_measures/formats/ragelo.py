"""Files of RAGElo, and preferences between answers.

Games between answers (`Preference` records) as JSON lines; those of assessors are told by their grader.

RAGElo's CSV files with header: queries, documents, answers, retrieval and pairwise evaluations, ranking.

Columns stand in any order, spaces after commas are passed over, further columns are left out and counted.
"""

from __future__ import annotations

import csv
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import FormatError, InputError, tell
from rubric_measures.base.files import atomic_writer, path_name
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.base.tables import is_formula
from rubric_measures.formats.base import Format, Head, PathName, cells_of, delimiter_of, read_delimited, write_objects
from rubric_measures.formats.leaderboards import ALL, LeaderboardTable, Score
from rubric_measures.formats.queries import QueryFile, say_lost_fields
from rubric_measures.formats.reports import Answer, say_lost_citations
from rubric_measures.records.models import GradedPassage, PassageData, QueryPassages
from rubric_measures.types.entities import Grade, GradeStatus, Preference, Verdict

_LOG = logging.getLogger("rubric_measures")
# Graders whose names begin so are assessors.
HUMAN = "human:"


class _Game(Record):
    query_id: Annotated[TextId, Field(min_length=1)]
    agent_a: Annotated[str, Field(min_length=1)]
    agent_b: Annotated[str, Field(min_length=1)]
    verdict: Verdict | None
    status: GradeStatus | None = None
    answer: str = ""
    grader: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if self.status is not None and (self.verdict is None) == (self.status == "graded"):
            raise ValueError("expected a verdict exactly when the status is graded")
        return self


_GAMES = JsonLines(TypeAdapter(_Game), "games")


def read_preferences(path: str | os.PathLike[str], *, assessors: bool = False) -> list[Preference]:
    """Reads games: JSON lines with `query_id`, `agent_a`, `agent_b`, `verdict` (`a`, `b`, `tie`, `both_bad` or
    null).

    Further fields: `status` (`graded` unless the verdict is null, then `unparsed`), `answer`, `grader`, `note`. Others
    are left out and counted.

    Args:
        path: the file.
        assessors: the verdicts are by assessors: graders are marked `human:`, if they are not yet.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a line is no game, is a game of an agent with itself, or comes twice (same query, order, grader).
    """
    name = path_name(path)
    games: list[Preference] = []
    lines: list[int] = []
    unknown: Counter[str] = Counter()
    for line, row in _GAMES.numbered(path):
        unknown.update((row.model_extra or {}).keys())
        grader = row.grader
        if assessors and not grader.startswith(HUMAN):
            grader = HUMAN + (grader or "anonymous")
        status = row.status or ("unparsed" if row.verdict is None else "graded")
        game = Preference(row.query_id, row.agent_a, row.agent_b, row.verdict, status, row.answer, grader, row.note)
        games.append(game)
        lines.append(line)
    check_games(games, lines, name)
    if unknown:
        counts = ", ".join(f"{field} ({count} lines)" for field, count in sorted(unknown.items()))
        _LOG.warning("%s: unknown fields left out: %s", name, counts)
    return games


def check_games(games: Iterable[Preference], lines: Iterable[int], name: str) -> None:
    """Refuses games of an agent with itself and games that come twice, naming file and line.

    Raises:
        FormatError: as said.
    """
    seen: dict[tuple[str, str, str, str], int] = {}
    for game, line in zip(games, lines, strict=True):
        if game.agent_a == game.agent_b:
            raise FormatError(
                f"query {game.query_id!r}: agent {game.agent_a!r} plays against itself; remove the game",
                path=name, line=line,
            )  # fmt: skip
        key = (game.query_id, game.agent_a, game.agent_b, game.grader)
        before = seen.setdefault(key, line)
        if before != line:
            raise FormatError(
                f"query {game.query_id!r}: the game of {game.agent_a!r} and {game.agent_b!r} by the same grader stands "
                f"in line {before} already; keep one",
                path=name, line=line,
            )  # fmt: skip


def write_preferences(path: str | os.PathLike[str], games: Iterable[Preference]) -> None:
    """Writes games as JSON lines, in order; empty texts and the status `graded` are left out.

    Raises:
        InputError: the file cannot be written, or there are no games.
    """
    always = ("query_id", "agent_a", "agent_b", "verdict")
    rows = (
        {
            field: value
            for field, value in game._asdict().items()
            if (value and (field, value) != ("status", "graded")) or field in always
        }
        for game in games
    )
    write_objects(path, rows, "games")


GAMES = Format(
    "games",
    "pairwise games with verdicts (JSON lines)",
    read_preferences,
    write_preferences,
    lambda head: "agent_a" in head.object,
)
Kind = Literal["queries", "documents", "answers", "evaluations", "games", "ranking"]
COLUMNS: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "queries": ("qid", "query"),
        "documents": ("qid", "did", "document"),
        "answers": ("qid", "agent", "answer"),
        "evaluations": ("qid", "did", "raw_answer", "answer"),
        "games": ("qid", "agent_a", "agent_b", "raw_answer", "answer"),
        "ranking": ("agent", "score"),
    }
)
_LETTERS: Mapping[str, Literal["a", "b", "tie"]] = {"A": "a", "B": "b", "C": "tie"}
_VERDICTS = {"a": "A", "b": "B", "tie": "C", "both_bad": "C", None: ""}


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row: column -> value, and the line where it begins."""

    fields: Mapping[str, str]
    line: int


def detect_kind(header: str) -> Kind | None:
    """What a file holds, by its header line; None for other files.

    >>> detect_kind("qid, agent_a, agent_b, raw_answer, answer")
    'games'
    """
    names = set(cells_of(header)) if delimiter_of(header) == "," else set()
    # Further columns are allowed, so the kind with the most columns of its own counts.
    found = [(len(columns), kind) for kind, columns in COLUMNS.items() if names.issuperset(columns)]
    return max(found)[1] if found else None


def _read_rows(path: PathName, kind: Kind) -> list[CsvRow]:
    """The rows of a file; ids are checked, and what columns it has besides is said.

    Raises:
        FormatError: it is no table, a column is missing, a row has too many or too few fields, or there are no rows.
    """
    name = path_name(path)
    header, found = read_delimited(path, COLUMNS[kind], skip_spaces=True)
    rows = [CsvRow(dict(zip(header, cells, strict=True)), line) for line, cells in found]
    if not rows:
        raise FormatError("holds no rows", path=name)
    for row in rows:
        for column in ("qid", "did", "agent", "agent_a", "agent_b"):
            if column in COLUMNS[kind] and not row.fields[column].strip():
                raise FormatError("is empty", path=name, line=row.line, field=column)
    others = sorted(set(header).difference(COLUMNS[kind]))
    if others:
        _LOG.warning("%s: %d further columns left out: %s", name, len(others), ", ".join(others))
    return rows


def _write_rows(path: PathName, kind: Kind, rows: Iterable[tuple[str, ...]]) -> None:
    """Writes rows, whose values stand in the order of the kind's columns.

    Raises:
        InputError: the file cannot be written, or there are no rows.
    """
    empty = True
    with atomic_writer(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(COLUMNS[kind])
        for values in rows:
            empty = False
            # A reader passes over spaces after a comma, so a value that begins with one is quoted; so is a formula.
            is_quoted = any(value[:1].isspace() or is_formula(value) for value in values)
            (quoting if is_quoted else writer).writerow(values)
        if empty:
            raise InputError(f"{path_name(path)}: there are no {kind} to write")


def _once(rows: Sequence[CsvRow], key: Callable[[CsvRow], tuple[str, ...]], name: str, what: str) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for row in rows:
        before = seen.setdefault(key(row), row.line)
        if before != row.line:
            problem = f"{what} {' / '.join(key(row))} stands in line {before} already; keep one"
            raise FormatError(problem, path=name, line=row.line)


def read_ragelo_queries(path: PathName) -> QueryFile:
    """The queries, without facets.

    Raises:
        InputError: the file cannot be opened.
        FormatError: its rows are wrong; also when a query comes twice.
    """
    rows = _read_rows(path, "queries")
    _once(rows, lambda row: (row.fields["qid"],), path_name(path), "query")
    return QueryFile({row.fields["qid"]: row.fields["query"] for row in rows})


def write_ragelo_queries(path: PathName, queries: QueryFile) -> None:
    """Writes `qid,query`; what else is known of queries has no place in it, which is said."""
    _write_rows(path, "queries", queries.texts.items())
    say_lost_fields(queries, path_name(path))


def read_ragelo_documents(path: PathName) -> list[QueryPassages]:
    """The documents as passages to grade, by query.

    Raises:
        InputError: the file cannot be opened.
        FormatError: its rows are wrong; also when a document comes twice for a query with two texts. RAGElo's own files
            repeat documents that several agents retrieved: one that comes with the same text is kept once, counted.
    """
    read = _read_rows(path, "documents")
    rows: list[CsvRow] = []
    seen: set[tuple[str, ...]] = set()
    for row in read:
        said = tuple(row.fields[name] for name in COLUMNS["documents"])
        if said not in seen:
            seen.add(said)
            rows.append(row)
    if len(rows) < len(read):
        tell(f"{path_name(path)}: {len(read) - len(rows)} rows repeat a document of their query; each is kept once")
    _once(rows, lambda row: (row.fields["qid"], row.fields["did"]), path_name(path), "document")
    groups: dict[str, list[GradedPassage]] = {}
    for row in rows:
        passage = GradedPassage(
            doc_id=row.fields["did"],
            text=row.fields["document"],
            paragraph_data=PassageData(judgments=[], rankings=[]),
        )
        groups.setdefault(row.fields["qid"], []).append(passage)
    return [QueryPassages(query_id, passages) for query_id, passages in groups.items()]


def write_ragelo_documents(path: PathName, groups: Iterable[QueryPassages]) -> None:
    """Writes `qid,did,document`; grades, judgments and rankings have no place in it."""
    rows = ((group.query_id, one.doc_id, one.text) for group in groups for one in group.passages)
    _write_rows(path, "documents", rows)


def read_ragelo_answers(path: PathName) -> list[Answer]:
    """The answers of the agents, which are runs.

    Raises:
        InputError: the file cannot be opened.
        FormatError: its rows are wrong; also when an agent answers a query twice.
    """
    rows = _read_rows(path, "answers")
    _once(rows, lambda row: (row.fields["agent"], row.fields["qid"]), path_name(path), "the answer of")
    return [Answer(row.fields["qid"], row.fields["agent"], row.fields["answer"]) for row in rows]


def write_ragelo_answers(path: PathName, answers: Sequence[Answer]) -> None:
    """Writes `qid,agent,answer`; citations have no place in it, which is said."""
    _write_rows(path, "answers", (answer[:3] for answer in answers))
    say_lost_citations(answers)


def read_ragelo_evaluations(path: PathName) -> list[Grade]:
    """Relevance labels with the model's replies (`raw_answer`); a row without a label is `unparsed`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: its rows are wrong; also when a label is no whole number, or a document is evaluated twice.
    """
    name = path_name(path)
    rows = _read_rows(path, "evaluations")
    _once(rows, lambda row: (row.fields["qid"], row.fields["did"]), name, "the evaluation of")
    grades = []
    for row in rows:
        label = row.fields["answer"].strip()
        # Python reads no number of thousands of digits.
        if label and not (label.isdecimal() and len(label) < 10):
            raise FormatError(f"expected a whole number; found {label!r:.40}", path=name, line=row.line, field="answer")
        value = int(label) if label else None
        ids = row.fields["qid"], row.fields["did"]
        status: Literal["graded", "unparsed"] = "unparsed" if value is None else "graded"
        grades.append(Grade(*ids, value, status=status, answer=row.fields["raw_answer"]))
    return grades


def write_ragelo_evaluations(path: PathName, grades: Iterable[tuple[object, ...]]) -> None:
    """Writes `qid,did,raw_answer,answer` of labels: `Grade` records, or judgments (query_id, doc_id, relevance, …)."""
    rows = (
        (str(one[0]), str(one[1]), one.answer if isinstance(one, Grade) else "", "" if one[2] is None else str(one[2]))
        for one in grades
    )
    _write_rows(path, "evaluations", rows)


def read_ragelo_games(path: PathName) -> list[Preference]:
    """Games with the model's replies; a row without verdict is `unparsed`, never a tie.

    Raises:
        InputError: the file cannot be opened.
        FormatError: its rows are wrong; also another verdict than A, B, C, a game with itself, or one that comes twice.
    """
    name = path_name(path)
    rows = _read_rows(path, "games")
    games = []
    for row in rows:
        letter = row.fields["answer"].strip().upper()
        if letter and letter not in _LETTERS:
            raise FormatError(f"expected A, B or C; found {letter!r:.40}", path=name, line=row.line, field="answer")
        ids = (row.fields["qid"], row.fields["agent_a"].strip(), row.fields["agent_b"].strip())
        verdict = _LETTERS.get(letter)
        games.append(Preference(*ids, verdict, "graded" if verdict else "unparsed", answer=row.fields["raw_answer"]))
    check_games(games, [row.line for row in rows], name)
    return games


def write_ragelo_games(path: PathName, games: Iterable[Preference]) -> None:
    """Writes `qid,agent_a,agent_b,raw_answer,answer`; a game without verdict has an empty answer.

    What has no place there (graders, notes, why a verdict is missing) is left out and counted.
    """
    listed = list(games)
    _write_rows(path, "games", ((*game[:3], game.answer, _VERDICTS[game.verdict]) for game in listed))
    graders = sum(bool(game.grader) for game in listed)
    reasons = sum(bool(game.note) or game.status not in ("graded", "unparsed") for game in listed)
    both_bad = sum(game.verdict == "both_bad" for game in listed)
    if graders or reasons or both_bad:
        lost = f"{graders} graders and {reasons} notes or statuses"
        lost += f", and that both answers of {both_bad} ties are bad" if both_bad else ""
        _LOG.warning("%s: left out, as RAGElo's files have no place for them: %s", path_name(path), lost)


def read_ragelo_ranking(path: PathName) -> LeaderboardTable:
    """Agents and their scores as a leaderboard with the measure `score`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: its rows are wrong; also when a score is no number, or an agent comes twice.
    """
    name = path_name(path)
    rows = _read_rows(path, "ranking")
    _once(rows, lambda row: (row.fields["agent"],), name, "agent")
    scores = []
    for row in rows:
        try:
            value = float(row.fields["score"])
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            problem = f"expected a number; found {row.fields['score']!r:.40}"
            raise FormatError(problem, path=name, line=row.line, field="score")
        scores.append(Score(row.fields["agent"], "score", ALL, value))
    return LeaderboardTable(tuple(scores))


def write_ragelo_ranking(path: PathName, table: LeaderboardTable) -> None:
    """Writes `agent,score` of the only measure, the measure `score`, or else `Elo`, best agent first.

    Raises:
        InputError: the leaderboard has several measures, none of them called so.
    """
    measures = {row.measure for row in table.rows if row.query_id == ALL}
    chosen = next((name for name in ("score", "Elo", *measures) if name in measures), None)
    if chosen is None or (len(measures) > 1 and chosen not in ("score", "Elo")):
        raise InputError(f"a ranking holds one measure; the leaderboard has {', '.join(sorted(measures)) or 'none'}")
    column = sorted(table.column(chosen).items(), key=lambda pair: (-pair[1], pair[0]))
    _write_rows(path, "ranking", ((agent, repr(value)) for agent, value in column))


def _is(kind: Kind) -> Callable[[Head], bool]:
    return lambda head: not head.is_json and detect_kind(head.line) == kind


QUERIES = Format("queries", "RAGElo's CSV of queries", read_ragelo_queries, write_ragelo_queries, _is("queries"))
DOCUMENTS = Format(
    "records", "RAGElo's CSV of documents", read_ragelo_documents, write_ragelo_documents, _is("documents")
)
ANSWERS = Format("answers", "RAGElo's CSV of answers", read_ragelo_answers, write_ragelo_answers, _is("answers"))
EVALUATIONS = Format(
    "evaluations",
    "RAGElo's CSV of document labels",
    read_ragelo_evaluations,
    write_ragelo_evaluations,
    _is("evaluations"),
)
RAGELO_GAMES = Format(
    "games", "RAGElo's CSV of pairwise evaluations", read_ragelo_games, write_ragelo_games, _is("games")
)
RANKING = Format(
    "leaderboard", "RAGElo's CSV of agents' scores", read_ragelo_ranking, write_ragelo_ranking, _is("ranking")
)
