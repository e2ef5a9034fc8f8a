"""RAGElo's CSV files: read, written, read again; and what is wrong with one, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError
from rubric_measures.cli import main
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.plain import (
    RAGELO_DOCUMENTS,
    RAGELO_GAMES,
    RAGELO_QUERIES,
)
from rubric_measures.types.entities import Preference


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_files_with_spaces_bom_and_windows_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "q.csv", '\ufeffqid, query\r\n1, What is a leap year?\r\n2, "Why, then?"\r\n')
    assert RAGELO_QUERIES.read(path).texts == {"1": "What is a leap year?", "2": "Why, then?"}
    path = write(tmp_path / "g.csv", "qid,agent_a,agent_b,raw_answer,answer\n1, x, y, long [[A]], A\n1,y,x,none,\n")
    assert RAGELO_GAMES.read(path) == [
        Preference("1", "x", "y", "a", answer="long [[A]]"),
        Preference("1", "y", "x", None, "unparsed", "none"),
    ]


@pytest.mark.parametrize("content", [b"a\rb\rc\n", b"\x8f\rqid\x00,\xff\r\n", b"x" * 200_000])
def test_a_first_line_that_is_no_csv_is_refused_in_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong"
    path.write_bytes(content)
    for command in (
        ["grade", "passages.jsonl", "--bank", str(path), "--model", "lexical", "-o", "out.jsonl"],
        ["qrels", str(path)],
    ):
        assert main(command) == 2
        assert capsys.readouterr().err.count("\n") == 1


FILES = {
    "queries": "qid,query\n1,What?\n",
    "documents": "qid,did,document\n1,d,Text\n",
    "answers": "qid,agent,answer\n1,x,Yes\n",
    "games": "qid,agent_a,agent_b,raw_answer,answer\n1,x,y,So [[A]],A\n1,y,x,So,\n",
}
OTHERS = {
    "queries": "queries",
    "documents": "records",
    "answers": "answers",
    "games": "games",
}


@pytest.mark.parametrize("kind", sorted(FILES))
def test_convert_reads_and_writes_each_file(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", FILES[kind])
    assert main(["convert", str(path), "-o", str(tmp_path / "same.csv")]) == 0
    assert (tmp_path / "same.csv").read_text() == FILES[kind]
    other = tmp_path / "other.jsonl"
    assert main(["convert", str(path), "--to", OTHERS[kind], "-o", str(other)]) == 0
    back = tmp_path / "back.csv"
    assert main(["convert", str(other), "--to", f"ragelo:{kind}", "-o", str(back)]) == 0
    assert back.read_text() == FILES[kind]


def test_its_older_tables_of_scores_are_leaderboards(tmp_path: Path) -> None:
    table = read_leaderboard(write(tmp_path / "x.csv", "agent,score\nx,1017.5\ny,982.5\n"))
    assert table.column("score") == {"x": 1017.5, "y": 982.5}


def test_games_of_several_files_are_joined_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.csv", FILES["games"])
    assert main(["convert", str(path), str(path), "--to", "games", "-o", str(tmp_path / "g.jsonl")]) == 2
    assert "are in several files; keep one" in capsys.readouterr().err


def test_documents_that_two_agents_retrieved_are_kept_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "documents.csv"
    path.write_text("qid,did,document\n1,d1,One.\n1,d2,Two.\n1,d1,One.\n2,d1,One.\n")
    with caplog.at_level("INFO", logger="rubric_measures"):
        groups = RAGELO_DOCUMENTS.read(path)
    assert [(group.query_id, [one.doc_id for one in group.passages]) for group in groups] == [
        ("1", ["d1", "d2"]),
        ("2", ["d1"]),
    ]
    assert caplog.messages == [f"{path}: 1 of the documents repeats an earlier one; each is kept once"]
    path.write_text("qid,did,document\n1,d1,One.\n1,d1,Another.\n")
    with pytest.raises(FormatError, match=r"documents\.csv:3: 1 / d1 stands in line 2 already"):
        RAGELO_DOCUMENTS.read(path)
