"""Runs and qrels: their forms, comments of ir_metadata, names of runs that are read together, ids that hold spaces."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.base import written_id
from rubric_measures.formats.trec import (
    distinct_run_names,
    read_qrels,
    read_run,
    write_qrels,
    write_runs,
)
from rubric_measures.types.entities import Qrel, Run, make_run
from tests.example_records import write_all, write_text


def _rankings(run: Run) -> dict[str, list[tuple[str, float]]]:
    return {
        query_id: list(zip(ranking.doc_ids, ranking.scores, strict=True)) for query_id, ranking in run.rankings.items()
    }


REGULAR = "q1 Q0 d1 1 3.5 sys\nq1 Q0 d2 2 2 sys\nq2 Q0 d9 1 1e-3 sys\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "   "),
        lambda text: text.rstrip("\n"),
        lambda text: "\n" + text.replace("\n", "\n\n"),
        lambda text: text.replace(" sys", ""),
    ],
)
def test_line_ends_bom_tabs_blank_lines_and_a_missing_tag_change_nothing(tmp_path: Path, change: object) -> None:
    changed = read_run(write_text(tmp_path / "sys.run", change(REGULAR)))  # type: ignore[operator]
    assert changed == read_run(write_text(tmp_path / "plain.run", REGULAR))


def test_order_is_score_then_doc_id_both_descending_and_lines_may_be_anywhere(tmp_path: Path) -> None:
    # q1: d3 (5), then the tie at 2: "d2" before "d10" before "d1" (as strings, descending).
    text = "q1 Q0 d1 1 2 s\nq2 Q0 d1 1 1 s\nq1 Q0 d10 2 2.0 s\nq1 Q0 d3 3 5 s\nq1 Q0 d2 4 2 s\n"
    run = read_run(write_text(tmp_path / "sys.run", text))
    assert _rankings(run) == {"q1": [("d3", 5.0), ("d2", 2.0), ("d10", 2.0), ("d1", 2.0)], "q2": [("d1", 1.0)]}
    rows = [("q1", "d2", 2), ("q1", "d1", 2), ("q1", "d3", 5), ("q2", "d1", 1), ("q1", "d10", 2)]
    assert _rankings(make_run("s", rows)) == _rankings(run)
    # Rank 3 (score 5) stands above rank 2 (score 2).
    assert run.rank_disagreements == 1


def test_runs_are_the_same_after_writing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runs = [make_run("s", [("q", "a", 0.1), ("q", "b", 1 / 3)]), make_run("s", [("p", "é", 2)])]
    for run in runs:
        write_runs(tmp_path / "out.run", [run])
        assert _rankings(read_run(tmp_path / "out.run")) == _rankings(run)
    write_runs(tmp_path / "two.run.gz", runs)
    assert list(read_run(tmp_path / "two.run.gz").rankings) == ["q", "p"]
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        write_runs(tmp_path / "spaced.run", [make_run("my run", [("q", "a b", 1), ("q", "c", 0)])])
    assert (tmp_path / "spaced.run").read_text() == "q Q0 a%20b 1 1.0 my%20run\nq Q0 c 2 0.0 my%20run\n"
    assert "2 ids hold spaces" in caplog.records[0].getMessage()
    with pytest.raises(InputError, match="empty id"):
        write_runs(tmp_path / "none.run", [make_run("s", [("q", "", 1)])])
    assert not (tmp_path / "none.run").exists()


def test_qrels_keep_the_iteration_and_count_repeats(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "q1 0 a 1\r\nq1 q1/x a 3\n\nq1 0 a 1\nq2\t0\tb\t-2\n"
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        qrels = read_qrels(write_text(tmp_path / "sys.run", text))
    assert qrels == [Qrel("q1", "a", 1, "0"), Qrel("q1", "a", 3, "q1/x"), Qrel("q2", "b", -2, "0")]
    assert "1 line repeats" in caplog.records[0].getMessage()
    write_qrels(tmp_path / "out.qrels", qrels)
    assert read_qrels(tmp_path / "out.qrels") == qrels


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Parted queries are no regular run: both readers want the file.
    text = "q1 Q0 a 1 2 s\nq2 Q0 a 1 1 s\nq1 Q0 b 2 1 s\n"
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    assert list(read_run(pipe).rankings) == ["q1", "q2"]
    writer.join()


def test_a_run_of_trec_is_told_whatever_its_tag_says(tmp_path: Path) -> None:
    assert detect_format(write_text(tmp_path / "sys.run", "q1 Q0 d1 1 0.5 rank-by-score\n")) == "run"


LINES = "q1 Q0 d1 1 2.0 first\nq1 Q0 d2 2 1.0 first\n"
# As repro_eval writes it.
HEADER = """# ir_metadata.start
# tag: first
# platform:
#   software:
#     libraries:
#     - 'pyterrier'
# method:
#   automatic: true
#   generation:
#     llm: openai/gpt-4o
# ir_metadata.end
"""
QRELS = "q1 0 d1 1\nq1 0 d2 0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("first.run").write_text(HEADER + LINES)
    Path("plain.run").write_text(LINES)
    Path("qrels.txt").write_text(QRELS)
    return tmp_path


def test_a_run_with_comments_is_the_run_without(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_run("first.run") == read_run("plain.run")
    for command in (["leaderboard", "qrels.txt", "RUN", "-m", "P@1"], ["evaluate", "qrels.txt", "RUN", "P@1"]):
        outputs = []
        for run in ("first.run", "plain.run"):
            assert main([run if word == "RUN" else word for word in command]) == 0
            outputs.append(capsys.readouterr())
        assert outputs[0] == outputs[1]


def test_the_same_name_by_tag_and_file_is_refused() -> None:
    with pytest.raises(InputError, match=r"^a/x.run, b/x.run: two runs are called 'x', by tag and by file"):
        distinct_run_names(["t", "t"], ["a/x.run", "b/x.run"])
    with pytest.raises(InputError, match="two runs are called 'x'"):
        distinct_run_names(["x", "t", "t"], ["1.run", "x.run", "3.run"])


def test_a_leaderboard_of_runs_with_one_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_all(tmp_path)
    for name in ("alpha", "beta"):
        path = folder / f"{name}.run"
        path.write_text(path.read_text().replace(f" {name}\n", " rank\n"))
    runs = [str(folder / "alpha.run"), str(folder / "beta.run")]
    # The checks read the runs again.
    for more in ((), ("--checks",)):
        assert main(["leaderboard", str(folder / "graded.jsonl.gz"), *runs, "-m", "RubricCover", *more]) == 0
        out, err = capsys.readouterr()
        assert [line.split("\t")[0] for line in out.splitlines()] == ["run_id", "alpha", "beta"]
        assert err.count("2 runs share the tag rank") == 1


def test_what_a_terminal_would_obey_is_encoded_too() -> None:
    """Found by the fuzzer: an item id with a bidirectional mark went through `qrels --per item` as it was."""
    assert written_id("a\u202eb\x1b[1m") == "a%E2%80%AEb%1B[1m"
    assert written_id("日本語-é") == "日本語-é"
