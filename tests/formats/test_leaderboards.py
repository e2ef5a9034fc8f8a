"""Tests of leaderboard files: every form, how it is told, what is refused, identity after writing."""

import json
import logging
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError, UnknownNameError
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.leaderboards import (
    COLUMNS,
    Form,
    LeaderboardTable,
    Score,
    read_leaderboard,
    write_leaderboard,
)
from tests.example_records import board_file, write_text
from tests.shared_data import shared_data

ROWS = (
    Score("r1", "V", "t1", 0.5),
    Score("r1", "V", "all", 0.5),
    Score("r2", "V", "t1", 1 / 3),
    Score("r2", "V", "all", 1 / 3),
)
TABLE = LeaderboardTable(ROWS)


# ROWS in each long form; those without a column of runs hold the first run.
LONG: dict[Form, str] = {
    "ir_measures": "r1 t1 V 0.5\nr1 all V 0.5\nr2 t1 V 0.3333333333333333\nr2 all V 0.3333333333333333\n",
    "tot": "r1 V t1 0.5\nr1 V all 0.5\nr2 V t1 0.3333333333333333\nr2 V all 0.3333333333333333\n",
    "rag4reports": "t1 r1 V 0.5\nall r1 V 0.5\nt1 r2 V 0.3333333333333333\nall r2 V 0.3333333333333333\n",
    "ranking": "t1 Q0 r1 1 0.5 V\nall Q0 r1 1 0.5 V\nt1 Q0 r2 2 0.3333333333333333 V\n"
    "all Q0 r2 2 0.3333333333333333 V\n",
    "trec_eval": "runid all r1\nV t1 0.5\nV all 0.5\n",
    "query": "t1 V 0.5\nall V 0.5\n",
}


@pytest.mark.parametrize("form", LONG)
def test_long_forms(tmp_path: Path, form: Form) -> None:
    """Without `all` the queries must be known; a file without a column of runs is named after its run."""
    rows = ROWS if "run" in COLUMNS[form] else ROWS[:2]
    path = write_text(tmp_path / "r1.txt", LONG[form])
    assert read_leaderboard(path).rows == rows
    lines = [line for line in LONG[form].splitlines() if "all" not in line]
    path = write_text(tmp_path / "r1", "".join(f"{line}\n" for line in lines))
    with pytest.raises(
        FormatError,
        match=r"(could be any of .*;|holds qrels or a run, .*) write the columns' names above, run_id first",
    ):
        read_leaderboard(path)
    assert read_leaderboard(path, form=form).rows == rows[::2]
    # A run of TREC has the columns of a ranking, and its documents are no runs.
    if form != "ranking":
        assert read_leaderboard(path, queries=["t1", "t2"]).rows == rows[::2]


WIDE = (Score("r1", "V", "t1", 0.5), Score("r1", "A, all", "t1", 1.0), Score("r2", "V", "t1", 0.25))


@pytest.mark.parametrize(
    "text",
    [
        # As RAGDoll writes its scores by topic, and as tables come from elsewhere.
        'qid,run_id,V,"A, all"\nt1,r1,0.5,1.0\nt1,r2,0.25,\n',
        "run_id\ttopic\tV\tA, all\nr1\tt1\t0.5\t1.0\nr2\tt1\t0.25\t\n",
        '{"topic_id": "t1", "run_id": "r1", "V": 0.5, "A, all": 1.0}\n{"topic_id": "t1", "run_id": "r2", "V": 0.25}\n',
    ],
)
def test_a_wide_table_may_have_a_column_of_queries(tmp_path: Path, text: str) -> None:
    path = write_text(tmp_path / "board.txt", text)
    assert read_leaderboard(path).rows == WIDE
    assert detect_format(path) == "leaderboard"
    whole = "rank,run_id,arena_score,wins\n1,r2,1499.6,18\n2,r1,900.25,0\n"
    table = read_leaderboard(write_text(tmp_path / "board.txt", whole))
    assert table.measures == ("rank", "arena_score", "wins")
    assert table.column("arena_score") == {"r2": 1499.6, "r1": 900.25}


def test_tables_of_answers_and_queries_are_no_leaderboards(tmp_path: Path) -> None:
    for text in ("query_id\trun_id\ttext\nq1\tr1\t42\n", "q1\trun\nq2\t5\n"):
        assert detect_format(write_text(tmp_path / "board.txt", text)) != "leaderboard"


@pytest.mark.parametrize("blank", ["\t", " "])
@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("run_id query_id measure value", "r1 t1 V 0.5"),
        ("run_id request_id metric value", "r1 t1 V 0.5"),
        ("topic_id run_id measure value", "t1 r1 V 0.5"),
        ("Run Measure Topic Score", "r1 V t1 0.5"),
        ("topic Q0 run rank value measure", "t1 Q0 r1 1 0.5 V"),
    ],
)
def test_a_header_says_what_the_columns_of_a_long_form_are(tmp_path: Path, header: str, line: str, blank: str) -> None:
    path = write_text(tmp_path / "board.txt", f"{header}\n{line}\n".replace(" ", blank))
    assert read_leaderboard(path).rows == ROWS[:1]
    assert detect_format(path) == "leaderboard"


def test_known_queries_tell_the_columns_where_not_all_are_known(tmp_path: Path) -> None:
    path = write_text(tmp_path / "board.txt", "a V t1 0.5\nb V t9 0.25\n")
    table = read_leaderboard(path, queries=["t1", "t2"])
    assert table.per_query("V") == {"a": {"t1": 0.5}, "b": {"t9": 0.25}}
    # A query called 0 stands where qrels have a 0.
    assert read_leaderboard(write_text(path, "a 0 V 0.5\nb 0 V 0.6\n"), queries=["0"]).run_ids == ("a", "b")


def test_the_form_that_is_said_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_text(tmp_path / "board.txt", "1 ndcg q1 0.5\n2 ndcg q1 0.6\n1 ndcg q2 0.1\n2 ndcg q2 0.2\n")
    assert main(["convert", str(path), "--from", "leaderboard:tot", "--to", "leaderboard", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("1\tq1\tndcg\t0.5\n")


def test_a_long_form_may_have_errors_of_some_values(tmp_path: Path) -> None:
    path = write_text(tmp_path / "board.csv", "measure,topic,run,value,+/-\nP,all,a,0.5,0.1\nP,all,b,0.6,\n")
    assert read_leaderboard(path).errors("P") == {"a": 0.1}
    with pytest.raises(FormatError, match=r":2: \+/-: expected a number.* found 'x'"):
        read_leaderboard(write_text(path, "run,measure,value,+/-\na,P,0.5,x\n"))


def test_trec_eval_names_its_run_and_its_text_values_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_text(
        tmp_path / "board.txt", "runid          \tall\tbm25\nmap            \tall\t0.25\ncomment\tall\tgood\n"
    )
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        table = read_leaderboard(path)
    assert table.rows == (Score("bm25", "map", "all", 0.25),)
    assert "1 value of 1 measure is text and was left out" in caplog.text


def test_wide_keeps_errors_and_coverage_and_counts_text_and_empty_cells(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "run_id\tV\tstderr:V\tcoverage:V\tnote\tW\nmy run\t0.5\t0.1\t1.0\tgood\t-\nr2\t0.25\t-\t0.5\tbad\t1\n"
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        table = read_leaderboard(write_text(tmp_path / "board.txt", text))
    assert table.rows == (
        Score("my run", "V", "all", 0.5, 0.1),
        Score("r2", "V", "all", 0.25),
        Score("r2", "W", "all", 1.0),
    )
    assert "2 values of 1 measure are text and were left out" in caplog.text
    assert "1 empty cell" in caplog.text
    assert table.column("V") == {"my run": 0.5, "r2": 0.25}
    assert table.errors("V") == {"my run": 0.1}


def test_workbench_table_and_official_ranks(tmp_path: Path) -> None:
    path = write_text(
        tmp_path / "board.txt", "method\tExamCover\t+/-\tstd-err\n_overall_\t1.000\t+/-\t0.000\ns1\t0.5\t+/-\t0.1\n"
    )
    table = read_leaderboard(path)
    assert table.rows == (Score("s1", "ExamCover", "all", 0.5, 0.1),)
    assert table.best == (Score("_overall_", "ExamCover", "all", 1.0, 0.0),)
    ranks = read_leaderboard(write_text(tmp_path / "ranks.json", json.dumps({"a": 1, "b": 2})))
    assert ranks.rows == (Score("a", "rank", "all", 1.0), Score("b", "rank", "all", 2.0))
    assert read_leaderboard(write_text(tmp_path / "scores.json", json.dumps({"a": 0.5}))).measures == ("score",)


@pytest.mark.parametrize("blank", ["\t", "  "])
def test_runs_with_their_scores_need_no_header(tmp_path: Path, blank: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_text(tmp_path / "official.tsv", f"bm25{blank}0.25\ndense{blank}0.5\nboth{blank}0.75\n")
    table = read_leaderboard(path)
    assert table.column("score") == {"bm25": 0.25, "dense": 0.5, "both": 0.75}
    assert detect_format(path) == "leaderboard"
    ranks = read_leaderboard(write_text(tmp_path / "board.txt", f"a{blank}1\nb{blank}2\n"))
    assert ranks.rows == (Score("a", "rank", "all", 1.0), Score("b", "rank", "all", 2.0))
    # As an organiser sends it, beside our board.
    means = {"bm25": {"mean": 0.1}, "dense": {"mean": 0.3}, "both": {"mean": 0.2}}
    board = write_text(tmp_path / "board.json", board_file(means))
    assert main(["correlate", str(path), str(board), "--rounds", "0"]) == 0
    assert "kendall" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [("c\tx", ":3: value: expected a number, at most"), ("c", ":3: 1 cell; "), ("c\t.5\t1", ":3: 3 cells; ")],
)
def test_a_bad_line_among_runs_and_scores_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "scores.tsv").write_text(f"a\t0.5\nb\t0.4\n{line}\n")
    with pytest.raises(FormatError, match=f"scores.tsv{said}"):
        read_leaderboard(tmp_path / "scores.tsv")


def test_a_name_before_a_tab_may_hold_blanks(tmp_path: Path) -> None:
    assert read_leaderboard(write_text(tmp_path / "board.txt", "my run\t0.5\n")).column("score") == {"my run": 0.5}


@pytest.mark.parametrize(
    "text",
    [
        "run,measure,query_id,value\nr1,V,t1,0.5\nr1,V,all,0.5\n",
        '[{"run_id": "r1", "measure": "V", "qid": "t1", "value": 0.5}, {"run": "r1", "metric": "V", "value": 0.5}]',
    ],
)
def test_long_tables_may_be_csv_and_lists(tmp_path: Path, text: str) -> None:
    assert read_leaderboard(write_text(tmp_path / "board.txt", text)).rows == ROWS[:2]


def test_own_json_is_read(tmp_path: Path) -> None:
    table = read_leaderboard(write_text(tmp_path / "a.json", board_file({"r1": {"per_query": {"t1": 0.5}}})))
    assert table.rows == (Score("r1", "V", "t1", 0.5), Score("r1", "V", "all", 0.5, 0.1))
    assert table.per_query("V") == {"r1": {"t1": 0.5}}
    assert (table.measures, table.run_ids) == (("V",), ("r1",))
    with pytest.raises(UnknownNameError, match="unknown measure 'W'"):
        table.column("W")


def test_what_lines_cannot_hold_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        write_leaderboard(tmp_path / "b.txt", LeaderboardTable((Score("r 1", "V", "all", 1.0, 0.1),)))
    assert "1 standard error" in caplog.text
    assert (tmp_path / "b.txt").read_text() == "r%201\tall\tV\t1.0\n"


@pytest.mark.parametrize("text", ["101 0 d1 1\n101 0 d2 0\n102 0 d3 1\n", "101 0 7 1\n101 0 8 0\n102 0 9 1\n"])
def test_numbers_of_qrels_tell_no_columns(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match="holds qrels or a run, and no scores of runs"):
        read_leaderboard(write_text(tmp_path / "qrels.txt", text))


def test_real_files(caplog: pytest.LogCaptureFixture) -> None:
    path, golden = shared_data("kiddie") / "kiddie.eval.txt", shared_data("workbench-golden")
    with caplog.at_level(logging.INFO, logger="rubric_measures"):
        table = read_leaderboard(path)
    assert caplog.messages == [
        f"{path}: its numbers are read as queries (run measure topic value); else name its columns"
    ]
    assert (table.run_ids, table.measures) == (("berry", "ewe"), ("SCORE", "HAS_KEYWORDS"))
    assert len(table.rows) == 400
    ranks = read_leaderboard(golden / "dl20-scale-official-leaderboard.json")
    assert ranks.column("rank")["sys00"] == 1
    cover = read_leaderboard(golden / "cover-tau4.tsv")
    assert len(cover.run_ids) == len(cover.errors("ExamCover")) == 60
    assert [row.value for row in cover.best] == [0.989]
