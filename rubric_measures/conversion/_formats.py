"""The table of formats: what each file holds, how it is read and written."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name
from rubric_measures.formats.autojudge import read_nugget_banks, write_nugget_banks
from rubric_measures.formats.bank import BankEntry, bank_entries, read_bank, write_bank
from rubric_measures.formats.leaderboard_writers import write_leaderboard
from rubric_measures.formats.leaderboards import FORMS, Form, LeaderboardTable, read_leaderboard
from rubric_measures.formats.nugget_sets import bank_of_preload, read_preload, read_rubrics, write_rubrics
from rubric_measures.formats.nuggetizer import (
    read_assignments,
    read_nuggets,
    read_requests,
    write_assignments,
    write_nuggets,
    write_requests,
)
from rubric_measures.formats.preferences import read_preferences, write_preferences
from rubric_measures.formats.queries import QueryFile, read_query_file, say_lost_fields, write_queries
from rubric_measures.formats.ragelo import (
    read_ragelo_answers,
    read_ragelo_documents,
    read_ragelo_evaluations,
    read_ragelo_games,
    read_ragelo_queries,
    read_ragelo_ranking,
    write_ragelo_answers,
    write_ragelo_documents,
    write_ragelo_evaluations,
    write_ragelo_games,
    write_ragelo_queries,
    write_ragelo_ranking,
)
from rubric_measures.formats.reports import Answer, read_answers, read_reports, write_answers, write_reports
from rubric_measures.formats.topics import read_topics, write_topics
from rubric_measures.formats.tqa import read_tqa
from rubric_measures.formats.trec import Qrel, Run, read_qrels, read_run, write_qrels, write_runs
from rubric_measures.records.files import load_graded, write_graded

__all__ = ["FORMATS", "Format", "PathName", "read_passage_qrels", "run_file"]

PathName = str | os.PathLike[str]
_LOG = logging.getLogger("rubric_measures")


@dataclass(frozen=True)
class Format:
    """One file format.

    Attributes:
        kind: what a file holds: `records`, `qrels`, `item qrels`, `bank`, `queries`, `runs`, `answers`, `games`.
            Formats of one kind convert into each other without loss of what both can hold.
        description: one line.
        read: path -> content; None where it is only written.
        write: (path, content); None where it is only read.
    """

    kind: str
    description: str
    read: Callable[[PathName], Any] | None = None
    write: Callable[[PathName, Any], None] | None = None


def read_passage_qrels(path: PathName) -> list[Qrel]:
    """The rows of a qrels file with one label a document.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is no qrels file, or it judges items.
    """
    rows = read_qrels(path)
    if len({row[:2] for row in rows}) < len(rows):
        raise FormatError("judges items (several lines a document); read it as item-qrels", path=path_name(path))
    return rows


def run_file(folder: Path, run: Run) -> Path:
    """Where a run is written, when several go into a folder."""
    return folder / f"{run.run_id}.run"


def _write_runs(path: PathName, runs: Sequence[Run]) -> None:
    """One file; or one file a run, when `path` is a folder."""
    if Path(path).is_dir():
        bad = next((run.run_id for run in runs if "/" in run.run_id or run.run_id in ("", ".", "..")), None)
        if bad is not None:
            raise InputError(f"the run {bad!r} cannot name a file; choose one with --run, and name its file")
        for run in runs:
            write_runs(run_file(Path(path), run), [run])
        return
    if len(runs) > 1:
        names = ", ".join(run.run_id for run in runs[:4])
        raise InputError(
            f"{path_name(path)}: a run file holds one run, not {len(runs)} ({names}, …); choose one with --run, "
            "or name a folder"
        )
    write_runs(path, runs)


def _read_runs(path: PathName) -> list[Run]:
    return [read_run(path)]


def _read_tqa_entries(path: PathName) -> list[BankEntry]:
    return bank_entries(read_tqa(path), test_collection="tqa2")


def _leaderboard(form: Form | None, description: str) -> Format:
    def write(path: PathName, table: LeaderboardTable) -> None:
        write_leaderboard(path, table, form or "ir_measures")

    return Format("leaderboard", description, lambda path: read_leaderboard(path, form=form), write)


def _read_preload_entries(path: PathName) -> list[BankEntry]:
    return bank_entries(bank_of_preload(read_preload(path), path=path))


def _without_citations(write: Callable[[PathName, Sequence[Answer]], None]) -> Callable[[PathName, Any], None]:
    """A writer of plain answers that says how many lose what they cite."""

    def writing(path: PathName, answers: Sequence[Answer]) -> None:
        write(path, answers)
        cited = sum(any(answer.citations) for answer in answers)
        if cited:
            _LOG.warning("citations of %d answers left out: only reports have a place for them", cited)

    return writing


def _read_ragelo_queries(path: PathName) -> QueryFile:
    return QueryFile(read_ragelo_queries(path))


def _write_ragelo_queries(path: PathName, queries: QueryFile) -> None:
    write_ragelo_queries(path, queries.texts)
    say_lost_fields(queries, path_name(path))


_RAGELO = {
    "queries": Format("queries", "RAGElo's CSV of queries", _read_ragelo_queries, _write_ragelo_queries),
    "documents": Format("records", "RAGElo's CSV of documents", read_ragelo_documents, write_ragelo_documents),
    "answers": Format(
        "answers", "RAGElo's CSV of answers", read_ragelo_answers, _without_citations(write_ragelo_answers)
    ),
    "evaluations": Format(
        "evaluations", "RAGElo's CSV of document labels", read_ragelo_evaluations, write_ragelo_evaluations
    ),
    "games": Format("games", "RAGElo's CSV of pairwise evaluations", read_ragelo_games, write_ragelo_games),
    "ranking": Format("leaderboard", "RAGElo's CSV of agents' scores", read_ragelo_ranking, write_ragelo_ranking),
}

# A new format is one entry here (and a module in formats/, and a bridge where it holds something new).
FORMATS: dict[str, Format] = {
    "records": Format("records", "graded passages of the Rubric workbench (.jsonl.gz)", load_graded, write_graded),
    "qrels": Format("qrels", "a label a passage; of records, what the grades imply", read_passage_qrels, write_qrels),
    "judgments": Format("judgments", "of records, what people said, as qrels", None, write_qrels),
    "item-qrels": Format("item qrels", "one grade an item (diversity qrels)", read_qrels, write_qrels),
    "run": Format("runs", "TREC run; of records, their rankings (several into a folder)", _read_runs, _write_runs),
    "bank": Format("bank", "test bank of the Rubric workbench (.jsonl.gz)", read_bank, write_bank),
    "tqa": Format("bank", "TQA lessons with answer keys", _read_tqa_entries),
    "nuggets": Format("nuggets", "nuggets of nuggetizer and of TREC RAG", read_nuggets, write_nuggets),
    "assignments": Format("assignments", "nuggetizer's assigned nuggets", read_assignments, write_assignments),
    "requests": Format("requests", "nuggetizer's requests: candidates of queries", read_requests, write_requests),
    "rubrics": Format("rubrics", "weighted criteria of ResearchRubrics", read_rubrics, write_rubrics),
    "nugget-bank": Format("nugget bank", "nugget bank of TREC Auto-Judge", read_nugget_banks, write_nugget_banks),
    "nugget-lists": Format(
        "nugget bank lists", "lists of nuggets, TREC RAGTIME 2026 (read as nugget-bank)", None, write_nugget_banks
    ),
    "preload": Format("bank", "nuggets preloaded in TREC RAGTIME, FILE_<topic>.preload.json", _read_preload_entries),
    "queries": Format("queries", "queries: .json, .jsonl or .tsv by name", read_query_file, write_queries),
    "topics": Format("topics", "topics with titles, problem statements and limits", read_topics, write_topics),
    "reports": Format("reports", "generated answers with citations", read_reports, write_reports),
    "answers": Format(
        "answers", "generated answers as {query_id, run_id, text}", read_answers, _without_citations(write_answers)
    ),
    "games": Format("games", "pairwise games with verdicts (JSON lines)", read_preferences, write_preferences),
    **{f"ragelo:{kind}": one for kind, one in _RAGELO.items()},
    "leaderboard": _leaderboard(None, "leaderboard in any form; written as run topic measure value"),
    **{f"leaderboard:{form}": _leaderboard(form, f"leaderboard, form {form}") for form in FORMS},
}
