"""Tests of rankings inside records whose documents are not all there: every way of scoring them gives one number."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.trec import read_run, runs_of_records
from rubric_measures.records.models import GradedPassage, QueryPassages, load_graded
from tests.example_records import grade_set, passage, write_lines

# Cover, labels that we score and labels that ir_measures' providers score, items as subtopics.
MEASURES = [
    "RubricCover(rel=3)@3",
    "RubricCover(judged_only=True,rel=3)@3",
    "RubricQrels(measure='nDCG@5')",
    "RubricQrels(measure='P(rel=3)@4',rel=3)",
    "RubricQrels(measure='RR',rel=4)",
    "RubricQrels(measure='Judged@5')",
    "RubricQrels(measure='Bpref(rel=3)')",
    "RubricQrels(measure='Rprec(rel=3)')",
    "alpha_nDCG(rel=3)@5",
    "StRecall(rel=3)@4",
    "P_IA(rel=3)@5",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs over two queries; the collection lacks every fourth document."""
    dice = random.Random(7)
    docs = [f"d{number}" for number in range(12)]
    write_lines(
        tmp_path / "docs.jsonl",
        [{"doc_id": doc_id, "text": f"leaf {doc_id} sap"} for doc_id in docs if int(doc_id[1:]) % 4],
    )
    for name in ("alpha", "beta"):
        lines = []
        for query_id in ("q1", "q2"):
            order = dice.sample(docs, 8)
            lines += [f"{query_id} Q0 {doc_id} {rank} {20 - rank} {name}" for rank, doc_id in enumerate(order, 1)]
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    runs = [str(tmp_path / f"{name}.run") for name in ("alpha", "beta")]
    pooled = tmp_path / "pooled.jsonl.gz"
    collection = str(tmp_path / "docs.jsonl")
    assert main(["pool", *runs, "-c", collection, "--missing", "skip", "--depth", "8", "-o", str(pooled)]) == 0
    groups = load_graded(pooled)
    lines = []
    for group in groups:
        items = [f"{group.query_id}/{item}" for item in "abc"]
        passages = []
        for one in group.passages:
            made = one.as_json()
            made["exam_grades"] = [grade_set({item: dice.randint(0, 5) for item in items})]
            passages.append(made)
        lines.append([group.query_id, passages])
    write_lines(tmp_path / "graded.jsonl.gz", lines)
    return tmp_path


def values_of(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, float]]:
    """run -> measure -> mean, of a leaderboard."""
    capsys.readouterr()
    command = ["leaderboard", str(folder / "graded.jsonl.gz"), *arguments, "--format", "json", "--no-overall"]
    assert main([*command, "-m", *MEASURES]) == 0
    board = json.loads(capsys.readouterr().out)
    return {row["run_id"]: {name: cell["mean"] for name, cell in row["measures"].items()} for row in board["runs"]}


def test_records_without_some_documents_score_as_the_run_files_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    from_records = values_of(folder, capsys)
    from_files = values_of(folder, capsys, str(folder / "alpha.run"), str(folder / "beta.run"))
    assert from_records == {run: pytest.approx(row, abs=1e-12) for run, row in from_files.items()}
    assert any(0 < value < 1 for value in from_files["alpha"].values())
    for run_id in ("alpha", "beta"):
        assert (
            main(["evaluate", str(folder / "graded.jsonl.gz"), str(folder / f"{run_id}.run"), *MEASURES, "-p-1"]) == 0
        )
        printed = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
        assert {name: float(value) for name, value in printed.items()} == pytest.approx(from_records[run_id], abs=1e-12)


def test_runs_written_from_records_keep_the_ranks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = values_of(folder, capsys)
    (folder / "runs").mkdir()
    assert main(["convert", str(folder / "graded.jsonl.gz"), "--to", "run", "-o", str(folder / "runs")]) == 0
    assert "rankings have no record, and count as not graded" in capsys.readouterr().err
    written = [str(folder / "runs" / f"{name}.run") for name in ("alpha", "beta")]
    assert values_of(folder, capsys, *written) == {run: pytest.approx(row) for run, row in expected.items()}
    for query_id, ranking in read_run(written[0]).rankings.items():
        original = read_run(folder / "alpha.run").rankings[query_id]
        for place, doc_id in enumerate(ranking.doc_ids):
            assert doc_id.startswith("no-record-") or doc_id == original.doc_ids[place]


def test_a_run_that_is_added_to_records_scores_as_its_file_does(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(3)
    # d12 and so on have no record, nor have those that the collection lacks.
    lines = [
        f"{query_id} Q0 d{number} {rank} {30 - rank} gamma"
        for query_id in ("q1", "q2")
        for rank, number in enumerate(dice.sample(range(16), 16), 1)
    ]
    (folder / "gamma.run").write_text("\n".join(lines) + "\n")
    expected = values_of(folder, capsys, str(folder / "gamma.run"))
    graded = str(folder / "graded.jsonl.gz")
    more, both = str(folder / "gamma.jsonl"), str(folder / "both.jsonl.gz")
    assert main(["pool", str(folder / "gamma.run"), "-c", graded, "--missing", "skip", "-o", more]) == 0
    assert main(["convert", graded, more, "-o", both]) == 0
    (folder / "both.jsonl.gz").replace(graded)
    assert values_of(folder, capsys)["gamma"] == pytest.approx(expected["gamma"], abs=1e-12)


def records(*places: tuple[int, float, str]) -> list[QueryPassages]:
    passages = []
    for rank, score, doc_id in places:
        one = passage("q1", doc_id, [grade_set({"q1/a": 4})], {"one": rank})
        one["paragraph_data"]["rankings"][0]["score"] = score
        passages.append(GradedPassage(**one))
    return [QueryPassages("q1", passages)]


def test_ranks_count_where_scores_disagree_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    [run] = runs_of_records(records((1, 0.2, "a"), (2, 0.9, "b"), (4, 0.1, "c")), "g")
    assert list(run.rankings["q1"].doc_ids) == ["a", "b", "no-record-3", "c"]
    assert list(run.rankings["q1"].scores) == [1, 1 / 2, 1 / 3, 1 / 4]
    assert caplog.messages == [
        "g: 1 rank of 1 ranking has no record, and counts as not graded",
        "g: the ranks disagree with the scores in 1 ranking (1 place); the ranks count",
        "g: 1 ranking has the scores 1 / rank, as their own do not give the order",
    ]


def test_a_document_without_a_record_has_no_score_though_others_are_below_0(caplog: pytest.LogCaptureFixture) -> None:
    """Rerankers give logits: 0 would stand between these two, as a score that nobody gave."""
    [run] = runs_of_records(records((1, 0.9, "a"), (3, -0.5, "c")), "g")
    assert list(run.rankings["q1"].doc_ids) == ["a", "no-record-2", "c"]
    assert list(run.rankings["q1"].scores) == [1, 1 / 2, 1 / 3]
    assert "g: 1 ranking has the scores 1 / rank, as their own do not give the order" in caplog.messages


def test_a_leaderboard_says_that_ranks_and_scores_disagree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [group] = records((1, 0.2, "a"), (2, 0.9, "b"), (4, 0.1, "c"))
    lines = [["q1", [one.as_json() for one in group.passages]]]
    write_lines(tmp_path / "g.jsonl", lines)
    assert main(["leaderboard", str(tmp_path / "g.jsonl"), "-m", "RubricCover@2"]) == 0
    err = capsys.readouterr().err
    assert err.count("the ranks disagree with the scores in 1 ranking (1 place); the ranks count") == 1
    assert err.count("1 rank of 1 ranking has no record") == 1
    assert "sort:rank,score,doc_id" in err
    assert main(["leaderboard", str(tmp_path / "g.jsonl"), str(_run(tmp_path)), "-m", "RubricCover@2"]) == 0
    assert "sort:score,doc_id" in capsys.readouterr().err


def _run(folder: Path) -> Path:
    path = folder / "one.run"
    path.write_text("q1 Q0 a 1 2 one\n")
    return path
