"""Signatures cover the content that was scored and every setting, and nothing else; `check` says what differs."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.analysis.boards import load_board
from rubric_measures.api.files import check_board
from rubric_measures.base.errors import FormatError, RubricMeasuresError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.measures.qrels import build_grades
from rubric_measures.types.entities import Grade, RubricItem
from rubric_measures.types.scales import Scale
from tests.example_records import bank_from_items

MEASURES = ["RubricCover(rel=4)@20", "nDCG@10"]
BOARD = ["-m", *MEASURES]


def lines_of(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example's records of two queries, its bank of questions and two of its runs."""
    source = example_folder()
    records = lines_of(source / "graded.jsonl.gz")[:2]
    for record in records:
        for passage in record[1]:
            passage["exam_grades"] = [one for one in passage["exam_grades"] if one["prompt_type"] == "question"]
    (tmp_path / "graded.jsonl").write_text("".join(json.dumps(line) + "\n" for line in records), encoding="utf-8")
    queries = {record[0] for record in records}
    bank = (source / "questions.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in bank if json.loads(line)["query_id"] in queries]
    (tmp_path / "bank.jsonl").write_text("".join(kept), encoding="utf-8")
    for name in ("bm25", "fusion"):
        shutil.copy(source / "runs" / f"{name}.run", tmp_path / f"{name}.run")
    return tmp_path


def board_of(folder: Path, *runs: str, **load: Any) -> rubric_measures.Board:
    grades = rubric_measures.load(folder / "graded.jsonl", bank=folder / "bank.jsonl", **load)
    return rubric_measures.score(grades, [folder / run for run in runs or ("bm25.run", "fusion.run")], MEASURES)


def signature(folder: Path, *runs: str, **load: Any) -> str:
    return board_of(folder, *runs, **load).signature.short


def rewrite(path: Path, change: Callable[[list[Any]], Any]) -> None:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    changed = change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in changed or lines), encoding="utf-8")


def test_orders_and_file_names_do_not_count(folder: Path) -> None:
    before = signature(folder)
    shuffled = random.Random(7)

    def shuffle(lines: list[Any]) -> list[Any]:
        for line in lines:
            shuffled.shuffle(line[1] if isinstance(line, list) else line["items"])
        return lines[::-1]

    rewrite(folder / "graded.jsonl", shuffle)
    rewrite(folder / "bank.jsonl", shuffle)
    run = (folder / "bm25.run").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "other.run").write_bytes(gzip.compress("".join(run[::-1]).encode()))
    assert signature(folder, "fusion.run", "other.run") == before


def invert(lines: list[Any]) -> None:
    for _, passages in lines:
        for passage in passages:
            for entry in passage["exam_grades"]:
                for rating in entry["self_ratings"]:
                    rating["self_rating"] = 5 - rating["self_rating"]


def raise_one(lines: list[Any]) -> None:
    rating = lines[0][1][0]["exam_grades"][0]["self_ratings"][0]
    rating["self_rating"] = (rating["self_rating"] + 1) % 6


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("graded.jsonl", invert),
        ("graded.jsonl", raise_one),
        ("bank.jsonl", lambda lines: lines[0]["items"][0].update(importance="vital")),
        ("bank.jsonl", lambda lines: lines[0]["items"][0].update(weight=2.0)),
    ],
)
def test_grades_and_items_count(folder: Path, name: str, change: Callable[[list[Any]], Any]) -> None:
    before = signature(folder)
    assert signature(folder, on_failed="zero") != before
    rewrite(folder / name, change)
    assert signature(folder) != before


def test_runs_count_as_deep_as_measures_look(folder: Path) -> None:
    grades = rubric_measures.load(folder / "graded.jsonl", bank=folder / "bank.jsonl")

    def scored(ranking: dict[str, float]) -> str:
        return rubric_measures.score(grades, {"one": {"q01": ranking}}, "RubricCover(rel=4)@2").signature.short

    before = scored({"a": 3.0, "b": 2.0, "c": 1.0})
    assert scored({"a": 9.0, "b": 2.0, "d": 1.0}) == before
    assert scored({"a": 2.0, "b": 3.0, "c": 1.0}) != before


def test_qrels_count(tmp_path: Path) -> None:
    run = {"one": {"q": {"a": 2.0, "b": 1.0}}}
    found = set()
    for label in (1, 2):
        (tmp_path / "qrels.txt").write_text(f"q 0 a {label}\nq 0 b 1\n", encoding="utf-8")
        found.add(rubric_measures.score(tmp_path / "qrels.txt", run, "nDCG@10").signature.short)
    assert len(found) == 2


def check(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[str]]:
    """The status, and what differs or is the same, without the lines that sum up."""
    capsys.readouterr()
    status = main(["check", str(folder / "board.json"), str(folder / "graded.jsonl"), *more])
    lines = capsys.readouterr().out.splitlines()
    return status, [line for line in lines if not line.startswith(("proved: ", "claimed: "))]


def test_check_says_what_differs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bank = ["--bank", str(folder / "bank.jsonl")]
    runs = [str(folder / "bm25.run"), str(folder / "fusion.run")]
    board = [
        str(folder / "graded.jsonl"),
        *runs,
        *bank,
        *BOARD,
        "--format",
        "json",
        "--output",
        str(folder / "board.json"),
    ]
    assert main(["leaderboard", *board, "--on-failed", "zero"]) == 0
    kept = json.loads((folder / "board.json").read_text(encoding="utf-8"))
    assert check(folder, capsys, *runs, *bank) == (0, [f"the same: signature {kept['signature_hash']}"])
    assert check(folder, capsys, *runs[::-1], *bank)[0] == 0
    digests = kept["inputs"]["runs"]
    gone = f"inputs, runs, fusion: {digests['fusion']} in the file, nothing now"
    assert check(folder, capsys, runs[0], *bank) == (1, [gone])
    run = Path(runs[0])
    lines = run.read_text(encoding="utf-8").splitlines(keepends=True)
    first = lines[0].split()
    run.write_text("".join([" ".join([*first[:4], "-1", first[5]]) + "\n", *lines[1:]]), encoding="utf-8")
    status, [said] = check(folder, capsys, *runs, *bank)
    assert status == 1 and said.startswith(f"inputs, runs, bm25: {digests['bm25']} in the file, ")
    run.write_text("".join(lines), encoding="utf-8")
    rewrite(folder / "bank.jsonl", lambda lines: lines[1]["items"][0].update(weight=3.0))
    status, said = check(folder, capsys, *runs, *bank)
    assert (status, [line.partition(":")[0] for line in said]) == (1, ["settings, bank", "inputs, grades, q02"])


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The values of a JSON value that hold no others, with their places."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield from leaves(one, (*path, name))
    if not inner or not value:
        yield path, value


def test_check_finds_every_value_that_somebody_changed(folder: Path) -> None:
    """A board with all that can stand beside it: one value of each kind is changed at a time."""
    runs = [folder / "bm25.run", folder / "fusion.run"]
    given = [str(one) for one in (folder / "graded.jsonl", *runs, "--bank", folder / "bank.jsonl")]
    path = folder / "board.json"
    more = ["--checks", "-o", str(path)]
    assert main(["leaderboard", *given, *BOARD, *more]) == 0
    honest = json.loads(path.read_text(encoding="utf-8"))
    grades = rubric_measures.load(folder / "graded.jsonl", bank=folder / "bank.jsonl")
    proof = check_board(path, grades, runs)
    assert not proof.differences and set(proof.values.values()) == {"proved", "claimed"}
    # Whole numbers say too little, and one of 400 digits is no version.
    whole = json.loads(path.read_text(encoding="utf-8"), parse_float=lambda text: float(round(float(text))))
    huge = {**honest, "settings": {**honest["settings"], "version": 10**400}}
    for forged in (whole, huge):
        (folder / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
        assert check_board(folder / "forged.json", grades, runs).differences
    # The names of these stand for any other of their kind.
    named = {"measures", "per_query", "grades", "runs", "means", "best", "comparisons"}
    found: dict[tuple[object, ...], tuple[Any, ...]] = {}
    for place, _ in leaves(honest):
        kind = tuple(
            "*" if isinstance(step, int) or (i and place[i - 1] in named) else step for i, step in enumerate(place)
        )
        found.setdefault(kind, place)
    assert len(found) > 35
    for place in found.values():
        forged = json.loads(path.read_text(encoding="utf-8"))
        at = forged
        for step in place[:-1]:
            at = at[step]
        old = at[place[-1]]
        at[place[-1]] = (
            not old if isinstance(old, bool) else old + "x" if isinstance(old, str) else 0.25 if old is None
            else old + 1 if isinstance(old, int | float) else {"more": 1} if isinstance(old, dict) else ["more"]
        )  # fmt: skip
        (folder / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
        try:
            differences = check_board(folder / "forged.json", grades, runs).differences
        except RubricMeasuresError:
            continue
        # What was asked for shows in the numbers alone.
        assert differences or place[0] == "asked", place
    # A value by the name of what is not computed is no less seen, and a row that is no run.
    forged = json.loads(path.read_text(encoding="utf-8"))
    forged["runs"][0]["measures"][honest["measures"][0]]["per_query"]["path"] = 1.0
    (folder / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
    assert "per_query, path: 1.0 in the file" in check_board(folder / "forged.json", grades, runs).differences[0]
    honest["checks"]["runs"].append({"more": 1})
    (folder / "forged.json").write_text(json.dumps(honest), encoding="utf-8")
    with pytest.raises(FormatError, match=r"checks\.runs\[2\]"):
        load_board(folder / "forged.json")


def test_a_number_that_stands_twice_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """People would read the first, and the check the second."""
    inputs = [str(folder / name) for name in ("graded.jsonl", "bm25.run")]
    board = folder / "b.json"
    assert main(["leaderboard", *inputs, "-m", "RubricCover(rel=4)@20", "--format", "json", "-o", str(board)]) == 0
    text = board.read_text(encoding="utf-8")
    board.write_text(text.replace('"mean": ', '"mean": 0.99, "mean": ', 1), encoding="utf-8")
    assert main(["check", str(board), *inputs]) == 2
    assert "b.json: the key 'mean' comes twice in one object" in capsys.readouterr().err


@pytest.mark.parametrize("compat, measures", [("workbench", ["RubricCover(rel=4)@20"]), (None, MEASURES)])
def test_check_of_rankings_inside_records(
    folder: Path, capsys: pytest.CaptureFixture[str], compat: str | None, measures: list[str]
) -> None:
    more = [] if compat is None else ["--compat", compat]
    board = [
        str(folder / "graded.jsonl"),
        "-m",
        *measures,
        *more,
        "--format",
        "json",
        "--output",
        str(folder / "board.json"),
    ]
    assert main(["leaderboard", *board]) == 0
    assert check(folder, capsys)[0] == 0
    rewrite(folder / "graded.jsonl", invert)
    status, said = check(folder, capsys)
    assert (status, [line.partition(":")[0] for line in said]) == (1, ["inputs, grades, q01", "inputs, grades, q02"])


@pytest.mark.parametrize(
    "measure, item, expected",
    [
        ("WeightedCover", {"weight": 0.0}, 0.0),
        ("WeightedCover", {"weight": -1.0}, 0.0),
        ("WeightedCover", {"weight": 1.0}, None),
        ("NuggetV", {"importance": "okay"}, 0.0),
        ("NuggetV", {"importance": "vital"}, None),
    ],
)
def test_failed_grades_leave_no_value_only_where_their_item_counts(
    measure: str, item: dict[str, Any], expected: float | None
) -> None:
    """Without a positive weight the score is 0 by definition, whatever failed; with one nobody knows it."""
    bank = bank_from_items([RubricItem("q/a", "q", "A", "nugget", **item)])
    grades = build_grades([Grade("q", "d", None, "q/a", "failed")], bank, scale=Scale(0, 1, 1), on_failed="expected")
    board = rubric_measures.score(grades, {"one": {"q": {"d": 1.0}}}, measure, overall=False)
    assert board.values["one"][f"{measure}(rel=1,partial_rel=1)"]["q"] == expected


def test_comparisons_are_made_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [folder / f"{name}.run" for name in ("bm25", "fusion")]
    given = [str(one) for one in (folder / "graded.jsonl", *runs, "--bank", folder / "bank.jsonl")]
    board, path = str(folder / "board.json"), folder / "compared.json"
    assert main(["leaderboard", *given, *BOARD, "-o", board]) == 0
    for more in ([], ["--baseline", "bm25"], ["--correction", "holm", "--level", "0.9", "--smallest", "0.05"]):
        main(["compare", board, "-o", str(path), *more])
        capsys.readouterr()
        assert main(["check", str(path), board]) == 0
        assert capsys.readouterr().out.startswith("the same")
    honest = path.read_text(encoding="utf-8")
    forged = json.loads(honest)
    [name, *_] = forged["comparisons"]
    pair = forged["comparisons"][name]["pairs"][0]
    pair["significant"] = not pair["significant"]
    path.write_text(json.dumps(forged), encoding="utf-8")
    assert main(["check", str(path), board]) == 1
    said = f"{name}, pairs, 0, significant: {json.dumps(pair['significant'])} in the file"
    assert said in capsys.readouterr().out
    path.write_text(honest.replace('"holm"', '"all"'), encoding="utf-8")
    assert main(["check", str(path), board]) == 2
    assert "correction" in capsys.readouterr().err


def test_correlations_are_made_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, path = example_folder(), folder / "correlated.json"
    runs = sorted(map(str, (source / "runs").iterdir()))
    bank, records = ("--bank", str(source / "questions.jsonl")), str(source / "graded.jsonl.gz")
    official, board = str(folder / "official.json"), str(folder / "board.json")
    assert main(["leaderboard", str(source / "qrels.txt"), *runs, "-m", "nDCG@10", "-o", official]) == 0
    assert main(["leaderboard", records, *runs, *bank, *BOARD, "-o", board]) == 0
    # Two boards, and a grid of records; from another folder, too.
    grid = [records, *bank, "-m", "RubricCover@20", "--coefficients", "spearman", "kendall"]
    shutil.copy(official, folder / "moved.json")
    for given in ([board, "--coefficients", "kendall", "spearman@3", "--rounds", "50"], grid):
        main(["correlate", official, *given, "--rounds", "50", "-o", str(path)])
        capsys.readouterr()
        for first in (official, str(folder / "moved.json")):
            assert main(["check", str(path), first, given[0], *(bank if given is grid else ())]) == 0
            out = capsys.readouterr().out
            assert out.startswith("the same\n") and f"\nclaimed: {'official, ' * (first != official)}asked\n" in out
    honest = path.read_text(encoding="utf-8")
    forged = json.loads(honest)
    forged["grid"][0]["result"]["coefficients"][0]["value"] = 0.99
    path.write_text(json.dumps(forged), encoding="utf-8")
    assert main(["check", str(path), official, *grid[:3]]) == 1
    assert "grid, 0, result, coefficients, 0, value: 0.99 in the file, " in capsys.readouterr().out
    # Nothing but the comparison tells false from 0 in these files.
    path.write_text(honest.replace('"undefined": 0', '"undefined": false', 1), encoding="utf-8")
    assert main(["check", str(path), official, *grid[:3]]) == 1
    assert "undefined: false in the file, 0 now" in capsys.readouterr().out
    forged["asked"]["draws"]["rounds"] = "many"
    path.write_text(json.dumps(forged), encoding="utf-8")
    assert main(["check", str(path), official, *grid[:3]]) == 2
    assert "rounds" in capsys.readouterr().err
