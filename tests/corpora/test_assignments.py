"""Tests of assignments as grades: matrices, banks, order of lines, and agreement with the nuggetizer package."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import ir_measures
import pytest

import rubric_measures
from rubric_measures.base.errors import FormatError, UnknownNameError
from rubric_measures.boards.scoring import score_runs
from rubric_measures.cli import main
from rubric_measures.corpora.assigned import load_assignments
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.types.entities import RubricItem, TestBank
from tests import matrices
from tests.shared_data import shared_data

SIX = [f"Nugget{which}(rel=2,{how})" for which in "VAW" for how in ("partial_rel=1", "strict=True")]
LABELS = ["support", "partial_support", "not_support"]


def _line(qid: Any, run: str | None, nuggets: list[tuple[str, str | None, str]], **more: Any) -> dict[str, Any]:
    row = {"qid": qid, "run_id": run, "answer_text": "a b c", **more}
    row["nuggets"] = [
        {"text": text, **({"importance": importance} if importance else {}), "assignment": label}
        for text, importance, label in nuggets
    ]
    return {key: value for key, value in row.items() if value is not None}


def _write(folder: Path, rows: list[Any], name: str = "assigned.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _random_rows(seed: int, runs: int = 4, queries: int = 6) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    rows = []
    for query in range(queries):
        # Query 0 has no vital nugget: V is 0, and in the mean.
        nuggets = [
            (f"fact {i}", draw.choice(["vital", "okay"]) if query else "okay") for i in range(draw.randint(1, 25))
        ]
        for run in range(runs):
            rows.append(_line(f"q{query}", f"r{run}", [(text, level, draw.choice(LABELS)) for text, level in nuggets]))
    draw.shuffle(rows)
    return rows


def _scores(path: Path, **options: Any) -> dict[str, dict[str, dict[str, float | None]]]:
    assigned = load_assignments(path, **options)
    measures = [ir_measures.parse_measure(name) for name in SIX]
    board = score_runs(assigned.grades, sorted(assigned.rankings.items()), measures, overall=False)
    return {run: dict(columns) for run, columns in board.values.items()}  # type: ignore[arg-type]


def test_grades_lengths_and_rankings(tmp_path: Path) -> None:
    rows = [
        _line("q", "a", [("x", "vital", "support"), ("y", "okay", "failed"), ("z", None, "not_support")]),
        _line("q", "b", [("y", "okay", "partial_support"), ("x", "vital", "not_support")], answer_text=""),
    ]
    assigned = load_assignments(_write(tmp_path, rows))
    query = assigned.grades.queries["q"]
    assert [(item.text, item.importance) for item in query.items] == [("x", "vital"), ("y", "okay"), ("z", None)]
    x, y, z = (item.item_id for item in query.items)
    assert matrices.cells(query) == {"a": {x: 2, z: 0}, "b": {x: 0, y: 1}}
    assert matrices.lost(query) == {"a": {y}}
    assert assigned.rankings == {"a": {"q": ["a"]}, "b": {"q": ["b"]}}
    assert assigned.lengths == {"a": {"q": 3}, "b": {"q": 0}}


def test_labels_that_nobody_defined_are_failed_grades(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nuggets = [("x", "vital", "support"), ("y", "vital", "Supports it"), ("z", "vital", "not_support")]
    path = str(_write(tmp_path, [_line("q", "a", nuggets), _line("q", "b", nuggets[:1])]).relative_to(tmp_path))
    Path("a.run").write_text("q Q0 a 1 1 a\n")
    shown = [
        "-m",
        "NuggetV(strict=True)",
        "-p",
        "2",
        "--no-overall",
        "--format",
        "trec_eval",
        "--on-failed",
        "expected",
    ]
    note = "1 label that nobody defined ('Supports it' 1) counts as failed"
    for command in (
        ("leaderboard", path, *shown),
        ("leaderboard", path, *shown, "--bank", path),
        ("qrels", path, "--per", "item"),
        ("evaluate", path, "a.run", "NuggetV(strict=True)", "--on-failed", "expected"),
        ("convert", path, "--to", "records", "-o", "records.jsonl"),
    ):
        # What failed is said by the exit code, of a conversion by the note alone.
        assert main([*command]) == (0 if command[0] == "convert" else 1)
        out, said = capsys.readouterr()
        assert said.count(note) == 1
        if command[0] == "leaderboard":
            # One of two known grades of a is support; b has one grade of three items, and it is support.
            assert "a\tNuggetV(rel=2,strict=True)\tall\t0.50\n" in out
    assert main(["leaderboard", "records.jsonl", *shown, "--bank", path]) == 1
    assert "a\tNuggetV(rel=2,strict=True)\tall\t0.50\n" in capsys.readouterr().out
    query = rubric_measures.load(path).queries["q"]
    assert [set(of) for of in matrices.lost(query).values()] == [{query.items[1].item_id}]
    with open(path) as stream:
        again = rubric_measures.load(stream).queries["q"]
    for read in (matrices.cells, matrices.lost):
        assert read(again) == read(query)


# In the pattern of files of TREC RAG 2024, which models wrote.
ODD = [
    _line(
        "t-1", "one",
        [("Bees dance", "vital", "support"), ("The angle", "vital", "established"), ("Others", "active learning", "no"),
         ("Others", "okay", "support")],
    ),
    _line("t-2", "one", [("The moon", "failed", "failed"), ("Twice a day", "vital", "not_support")]),
    _line("t-2", "two", [("The moon", "failed", "support"), ("Twice a day", "vital", "supporter")]),
]  # fmt: skip


def test_what_models_wrote_is_read_in_one_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = _write(tmp_path, ODD)
    grades = load_assignments(path).grades
    assert caplog.messages == [
        f"{path}: 3 labels that nobody defined ('established' 1, 'no' 1, 'supporter' 1) count as failed; 3 "
        "importances other than vital and okay ('failed' 2, 'active learning' 1) are none; 1 nugget comes twice for "
        "one answer, of which the first counts"
    ]
    first, second = grades.queries["t-1"], grades.queries["t-2"]
    assert [(item.text, item.importance) for item in first.items] == [
        ("Bees dance", "vital"), ("The angle", "vital"), ("Others", None),
    ]  # fmt: skip
    assert [len(of) for of in (matrices.lost(first)["one"], matrices.lost(second)["two"])] == [2, 1]
    # Written back as it was, and with what nuggetizer's metrics ask for where it goes through records.
    again = tmp_path / "again.jsonl"
    rubric_measures.convert(path, again, to="assignments")
    assert again.read_text() == path.read_text()
    bank, records = tmp_path / "bank.jsonl", tmp_path / "records.jsonl"
    rubric_measures.convert(path, bank, to="bank")
    rubric_measures.convert(path, records, to="records")
    rubric_measures.convert(records, again, to="assignments", bank=bank)
    rows = {(row["qid"], row["run_id"]): row for row in map(json.loads, again.read_text().splitlines())}
    assert [one["importance"] for one in rows["t-1", "one"]["nuggets"]] == ["vital", "vital", "active learning"]
    assert [one["importance"] for one in rows["t-2", "two"]["nuggets"]] == ["failed", "vital"]


def test_the_shared_odd_assignments_score_as_nuggetizer_scores_them() -> None:
    metrics = pytest.importorskip("nuggetizer.core.metrics")
    path = shared_data("conformance") / "nuggetizer.odd-assignments.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    names = ("NuggetV(strict=True)", "NuggetA(strict=True)", "NuggetV", "NuggetA")
    board = rubric_measures.score(path, measures=names, compat="nuggetizer", overall=False)
    for row in rows:
        theirs = metrics.calculate_nugget_scores(row["qid"], row["nuggets"])
        said = (theirs.strict_vital_score, theirs.strict_all_score, theirs.vital_score, theirs.all_score)
        assert [board.values[row["run_id"]][name][row["qid"]] for name in names] == list(said)
    assert len(rubric_measures.load(path).queries) == 2


def test_a_bank_is_the_denominator(tmp_path: Path) -> None:
    path = _write(tmp_path, [_line("q", "a", [("x", None, "support"), ("y", None, "partial_support")])])
    items = [
        RubricItem(f"q/{text}", "q", text, "nugget", importance=importance)
        for text, importance in (("y", "vital"), ("x", "okay"), ("z", "vital"))
    ]
    bank = TestBank({"q": tuple(items), "other": ()})
    # V: y 0.5 of 2 vital nuggets; A: (0.5 + 1) of 3; W: (0.5 + 0.5 · 1) / (2 + 0.5 · 1).
    found = _scores(path, bank=bank)["a"]
    assert tuple(found[f"Nugget{which}(rel=2,partial_rel=1)"]["q"] for which in "VAW") == (0.25, 0.5, 0.4)
    with pytest.raises(FormatError, match=r"assigned.jsonl:1: the test bank has no 'x'"):
        load_assignments(path, TestBank({"q": tuple(items[:1])}))
    with pytest.raises(UnknownNameError, match="unknown query 'q'"):
        load_assignments(path, TestBank({}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty"),
        ([_line("q", "a", []), _line("q", "a", [])], ":2: run 'a' has answered query 'q' before"),
        ([_line("q", "", [])], ":1: run_id: names no run"),
        ([_line("q", "a", [(" ", None, "support")])], ":1: nuggets[0].text: "),
        (
            [_line("q", "a", [("x", "vital", "support")]), _line("q", "b", [("x", "okay", "support")])],
            ":2: 'x' of query 'q' has two importances (vital and okay)",
        ),
        (
            [{"qid": "q", "run_id": "a", "answer_text": "", "nuggets": [{"text": ["x"], "assignment": "support"}]}],
            ":1: ",
        ),
        ([[1]], ":1: "),
        ([{}], ":1: "),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path: Path, rows: list[Any], message: str) -> None:
    path = _write(tmp_path, rows)
    with pytest.raises(FormatError) as error:
        load_assignments(path)
    assert message in str(error.value) and str(error.value).startswith(str(path))


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_exact_fractions_whatever_the_order_of_lines(tmp_path: Path, seed: int) -> None:
    rows = _random_rows(seed)
    found = _scores(_write(tmp_path, rows))
    assert found == _scores(_write(tmp_path, rows[::-1], "reversed"))
    credit = {"support": Fraction(1), "partial_support": Fraction(1, 2), "not_support": Fraction(0)}
    for row in rows:
        for strict in (False, True):
            got = [int(credit[n["assignment"]]) if strict else credit[n["assignment"]] for n in row["nuggets"]]
            weights = {
                "V": [Fraction(n["importance"] == "vital") for n in row["nuggets"]],
                "A": [Fraction(1) for _ in row["nuggets"]],
                "W": [Fraction(1) if n["importance"] == "vital" else Fraction(1, 2) for n in row["nuggets"]],
            }
            for which, weight in weights.items():
                total = sum(weight)
                expected = sum(w * g for w, g in zip(weight, got, strict=True)) / total if total else 0
                name = f"Nugget{which}(rel=2,{'strict=True' if strict else 'partial_rel=1'})"
                value = found[row["run_id"]][name][row["qid"]]
                assert value == pytest.approx(float(expected), abs=1e-12)


def test_the_command_line_reads_assignments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _write(tmp_path, [_line("q", "a", [("x", "vital", "support"), ("y", "vital", "partial_support")])])
    code = main(
        ["leaderboard", str(path), "-m", "NuggetV", "NuggetV(strict=True)", "--format", "trec_eval", "--no-overall"]
    )
    assert code == 0
    (tmp_path / "board.txt").write_text(capsys.readouterr().out)
    table = read_leaderboard(tmp_path / "board.txt")
    assert table.column("NuggetV(rel=2,partial_rel=1)") == {"a": 0.75}
    assert table.column("NuggetV(rel=2,strict=True)") == {"a": 0.5}
