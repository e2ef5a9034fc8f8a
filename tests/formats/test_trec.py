"""Tests of TREC runs and qrels: the one sort, both reading paths, what is refused, what is said, identity."""

import importlib.util
import logging
import os
import threading
from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.trec import (
    map_runs,
    read_qrels,
    read_run,
    write_qrels,
    write_runs,
)
from rubric_measures.records.models import load_graded
from rubric_measures.types.entities import Qrel, Run, make_run


def _write(folder: Path, text: str, name: str = "sys.run") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


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
    changed = read_run(_write(tmp_path, change(REGULAR)))  # type: ignore[operator]
    assert changed == read_run(_write(tmp_path, REGULAR, "plain.run"))


def test_order_is_score_then_doc_id_both_descending_and_lines_may_be_anywhere(tmp_path: Path) -> None:
    # q1: d3 (5), then the tie at 2: "d2" before "d10" before "d1" (as strings, descending).
    text = "q1 Q0 d1 1 2 s\nq2 Q0 d1 1 1 s\nq1 Q0 d10 2 2.0 s\nq1 Q0 d3 3 5 s\nq1 Q0 d2 4 2 s\n"
    run = read_run(_write(tmp_path, text))
    assert _rankings(run) == {"q1": [("d3", 5.0), ("d2", 2.0), ("d10", 2.0), ("d1", 2.0)], "q2": [("d1", 1.0)]}
    rows = [("q1", "d2", 2), ("q1", "d1", 2), ("q1", "d3", 5), ("q2", "d1", 1), ("q1", "d10", 2)]
    assert _rankings(make_run("s", rows)) == _rankings(run)
    # Rank 3 (score 5) stands above rank 2 (score 2).
    assert run.rank_disagreements == 1


def test_runs_are_the_same_after_writing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runs = [make_run("s", [("q", "a", 0.1), ("q", "b", 1 / 3)]), make_run("s", [("p", "é", 2)])]
    for run in runs:
        write_runs(tmp_path / "out.run", [run])
        assert read_run(tmp_path / "out.run") == run
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
        qrels = read_qrels(_write(tmp_path, text))
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


RUN_TABLE = "qid,docno,score,rank\nq1,a,1.25,1\nq1,b,0.5,0\nq2,c,3,0\n"


def test_a_run_as_a_table_is_that_of_trec(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As notebooks leave it: CSV with or without the index of the frame, TSV, JSON lines, parquet."""
    pandas = pytest.importorskip("pandas")
    (tmp_path / "bm25.csv").write_text(RUN_TABLE)
    frame = pandas.read_csv(tmp_path / "bm25.csv")
    frame.to_csv(tmp_path / "index.csv")
    # PyTerrier's frames have a number and the query, too.
    pyterrier = frame.assign(docid=[7, 8, 9], query="what?")
    pyterrier.to_csv(tmp_path / "bm25.tsv.gz", sep="\t", index=False)
    frame.assign(run_id="bm25").to_json(tmp_path / "lines.jsonl", orient="records", lines=True)
    paths = [tmp_path / name for name in ("bm25.csv", "index.csv", "bm25.tsv.gz", "lines.jsonl")]
    if importlib.util.find_spec("pyarrow"):
        paths.append(tmp_path / "bm25.parquet")
        frame.to_parquet(paths[-1])
    caplog.clear()
    for path in paths:
        run = read_run(path)
        assert run.run_id == ("index" if path.name == "index.csv" else "bm25")
        found = {query_id: (one.doc_ids, one.scores) for query_id, one in run.rankings.items()}
        assert found == {"q1": (["a", "b"], [1.25, 0.5]), "q2": (["c"], [3.0])}
        # The ranks of q1 say the opposite.
        assert run.rank_disagreements == 1
    assert {record.getMessage().partition(": ")[2] for record in caplog.records} == {
        "the rank column disagrees with the scores in 1 query (1 place); the scores count"
    }
    assert dict(map_runs([str(path) for path in paths[:1]], lambda _, one: len(one.scores))) == {
        "bm25": {"q1": 2, "q2": 1}
    }


def test_a_run_of_trec_is_told_whatever_its_tag_says(tmp_path: Path) -> None:
    assert detect_format(_write(tmp_path, "q1 Q0 d1 1 0.5 rank-by-score\n")) == "run"
    assert detect_format(_write(tmp_path, RUN_TABLE)) == "run"
    # Without ranks the scores may be grades.
    assert detect_format(_write(tmp_path, "qid,docno,score\nq1,a,1\n")) == "csv"


def test_commands_take_runs_as_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bm25.csv").write_text(RUN_TABLE)
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 c 0\n")
    (tmp_path / "docs.tsv").write_text("a\tA.\nb\tB.\nc\tC.\n")
    run = str(tmp_path / "bm25.csv")
    assert main(["evaluate", str(tmp_path / "qrels"), run, "RR"]) == 0
    assert capsys.readouterr().out == "RR\t0.5000\n"
    assert main(["convert", run, "--to", "run", "-o", str(tmp_path / "bm25.run")]) == 0
    assert (tmp_path / "bm25.run").read_text().splitlines()[0] == "q1 Q0 a 1 1.25 bm25"
    assert main(["pool", run, "-c", str(tmp_path / "docs.tsv"), "-o", str(tmp_path / "pool.jsonl")]) == 0
    assert len(load_graded(tmp_path / "pool.jsonl")) == 2
