"""Grades asked for only as far as measures need them: the board is that of all grades, with fewer calls."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import ScoredDoc
from msgspec.structs import replace

import rubric_measures
from rubric_measures.analysis.comparing import mean_intervals
from rubric_measures.analysis.resampling import Draws
from rubric_measures.api.files import check_board, check_bundle, write_qrels
from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.boards.board import Leaderboard
from rubric_measures.cli import main
from rubric_measures.formats.banks import write_bank
from rubric_measures.models.base import Reply, Request
from rubric_measures.records.models import (
    GradedPassage,
    PassageData,
    QueryPassages,
    RankingEntry,
    load_graded,
    provenance_of,
    write_graded,
)
from rubric_measures.types.entities import RubricItem
from tests.example_records import bank_from_items
from tests.fault_server import Running, running
from tests.function_backend import FunctionBackend

RATING = "QuestionSelfRatedUnanswerablePromptWithChoices"
ONCE = rubric_measures.Asking(retries=0)
COVER = "RubricCover(rel=4)@3"


class World:
    """Drawn grades of some queries, and rankings of their passages."""

    def __init__(self, seed: int, queries: int = 3, passages: int = 12, items: int = 5, runs: int = 4) -> None:
        draw = random.Random(seed)
        self.queries = [f"q{number}" for number in range(queries)]
        self.docs = {query: [f"{query}d{number}" for number in range(passages)] for query in self.queries}
        self.items = [
            RubricItem(
                f"{query}/{number}", query, f"What of {query}i{number}?", importance=draw.choice(["vital", "okay"]),
                weight=draw.choice([1.0, 0.5, -1.0, 0.0]),
            )
            for query in self.queries for number in range(items)
        ]  # fmt: skip
        self.grades = {
            (doc, f"{query}i{number}"): draw.choice([0, 0, 0, 1, 2, 3, 4, 5])
            for query in self.queries for doc in self.docs[query] for number in range(items)
        }  # fmt: skip
        self.rankings = {
            f"run{number}": {
                query: draw.sample(self.docs[query], draw.randrange(1, passages)) for query in self.queries
                if draw.random() < 0.9
            }
            for number in range(runs)
        }  # fmt: skip
        self.bank = bank_from_items(self.items, {query: f"text of {query}" for query in self.queries})

    def groups(self, runs: Sequence[str] | None = None) -> list[QueryPassages]:
        """The records that `pool` would make."""
        found = []
        for query in self.queries:
            passages = []
            for doc in self.docs[query]:
                places = [
                    RankingEntry(
                        method=run, doc_id=doc, query_id=query, rank=of[query].index(doc) + 1,
                        score=1.0 - of[query].index(doc),
                    )
                    for run, of in self.rankings.items()
                    if (runs is None or run in runs) and doc in of.get(query, ())
                ]  # fmt: skip
                data = PassageData(rankings=places)
                passages.append(GradedPassage(doc_id=doc, text=f"The passage {doc} says so.", paragraph_data=data))
            found.append(QueryPassages(query, passages))
        return found

    def model(self, share_failed: float = 0.0, seed: int = 0) -> FunctionBackend:
        """A model that says the grades; of some pairs it says nothing that can be read."""
        draw = random.Random(seed)
        lost = {pair for pair in sorted(self.grades) if draw.random() < share_failed}

        def answer(request: Request) -> str | Reply:
            text = request.messages[-1].content
            pair = re.findall(r"q\d+d\d+", text)[-1], re.findall(r"q\d+i\d+", text)[-1]
            return "hm" if pair in lost else str(self.grades[pair])

        return FunctionBackend(answer)

    def write(self, folder: Path) -> tuple[str, str]:
        """Passages and bank as files."""
        write_graded(folder / "passages.jsonl", self.groups())
        write_bank(folder / "bank.jsonl", self.bank)
        return str(folder / "passages.jsonl"), str(folder / "bank.jsonl")


def grade(world: World, passages: Any, measures: Any = (), share_failed: float = 0.0, **more: Any) -> tuple[Any, int]:
    """The graded records, and how many calls that took."""
    model = world.model(share_failed)
    graded = rubric_measures.grade(
        passages, world.bank, model=model, measures=measures, asking=ONCE, prompt=RATING, **more
    )
    return graded, len(model.seen)


def board(world: World, graded: Any, measures: Any, **more: Any) -> Leaderboard:
    return rubric_measures.score(rubric_measures.load(graded, bank=world.bank), measures=measures, **more)


def scores(of: Leaderboard) -> dict[str, Any]:
    """All that a board says of its runs."""
    return {
        run: {name: (cell.mean, cell.standard_error, dict(of.values[run][name])) for name, cell in row.items()}
        for run, row in of.cells.items()
    }


MEASURES = [
    ["RubricCover(rel=4)@3"],
    ["RubricCover(rel=3)@5", "RubricCover(rel=5)@2"],
    ["NuggetV(rel=4,partial_rel=2)@4"],
    ["NuggetW(rel=4,strict=True)@2", "NuggetA(rel=4)"],
    ["WeightedCover(rel=4,partial_rel=3)@5"],
    ["RubricCover(rel=4)"],
]


@pytest.mark.parametrize("measures", MEASURES, ids=" ".join)
@pytest.mark.parametrize("seed", range(0, 6, 2))
def test_the_board_is_that_of_all_grades_to_the_last_digit(measures: list[str], seed: int) -> None:
    world = World(seed, runs=seed + 1)
    full, calls = grade(world, world.groups())
    lazy, fewer = grade(world, world.groups(), measures)
    found = board(world, lazy, measures)
    assert scores(found) == scores(board(world, full, measures))
    assert found.exact == list(map(str, found.measures)) and not found.inexact
    assert fewer < calls
    assert lazy.report.by_status["graded"] == fewer
    assert lazy.report.never_asked == len(world.grades) - fewer


@pytest.mark.parametrize("measures", MEASURES, ids=" ".join)
@pytest.mark.parametrize("seed", [1, 3])
def test_a_certificate_proves_the_board_with_no_more_grades(measures: list[str], seed: int, tmp_path: Path) -> None:
    world = World(seed, runs=seed + 1)
    lazy, made = grade(world, world.groups(), measures)
    bank = world.write(tmp_path)[1]
    for name, graded in (("full", grade(world, world.groups())[0]), ("lazy", lazy)):
        records, kept = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.json"
        write_graded(records, graded)
        kept.write_text(board(world, graded, measures).render("json", -1), encoding="utf-8")
        packed = check_board(kept, records, bank=bank, pack=tmp_path / name, certificate=True)
        proof = check_bundle(tmp_path / name)
        assert proof == packed
        assert not proof.differences and proof.exact == json.loads(kept.read_text())["measures"]
        few = load_graded(tmp_path / name / "graded.jsonl")
        sets = [entry for group in few for passage in group.passages for entry in passage.exam_grades or ()]
        assert 0 < sum(len(entry.answers) for entry in sets) <= made
    # Grading goes on from it as from any records that lack grades.
    again, rest = grade(world, few)
    assert rest == len(world.grades) - sum(len(entry.answers) for entry in sets)
    assert scores(board(world, again, measures)) == scores(board(world, lazy, measures))


@pytest.mark.parametrize("measures", MEASURES, ids=" ".join)
@pytest.mark.parametrize("seed", [0, 2])
def test_bounds_hold_where_grades_fail_and_for_measures_that_need_more(measures: list[str], seed: int) -> None:
    world = World(seed)
    more = [*measures, "RubricCover(rel=4)@9", "nRubricCover(rel=4)@3", "RubricQrels(measure='nDCG@5')",
            "RubricQrels(measure='RR',rel=4)", "alpha_nDCG(rel=4)@5", "StRecall(rel=4)@5"]  # fmt: skip
    truth = board(world, grade(world, world.groups())[0], more)
    lazy, _ = grade(world, world.groups(), measures, share_failed=0.03)
    found = board(world, lazy, more)
    known = 0
    for run, row in found.cells.items():
        for name, cell in row.items():
            true = truth.cells[run][name].mean
            assert true is not None
            if cell.mean is not None:
                assert cell.mean == true
                known += 1
            else:
                assert name in (found.inexact or ())
                assert set(found.values[run][name].values()) == {None}
                assert cell.failures is not None
                if cell.failures.bounds is not None:
                    low, high = cell.failures.bounds
                    assert low - 1e-9 <= true <= high + 1e-9, (run, name)
    assert known
    # A failed grade that counts as 0 is known.
    ours, full = (
        rubric_measures.score(rubric_measures.load(graded, bank=world.bank, on_failed="zero"), measures=measures)
        for graded in (lazy, grade(world, world.groups(), share_failed=0.03)[0])
    )
    assert scores(ours) == scores(full)


def test_what_is_not_exact_has_no_number() -> None:
    world = World(1)
    lazy, _ = grade(world, world.groups(), COVER)
    text = str(board(world, lazy, [COVER, "RubricCover(rel=4)@9", "RubricQrels(measure='nDCG@3')"]))
    assert f"exact, as if every grade had been asked: {COVER}\n" in text
    assert "not exact, as grades that some runs need were never asked or failed: RubricCover(rel=4)@9" in text
    assert "what grades that were never asked, or failed, leave open" in text


def test_more_runs_levels_and_depth_ask_only_for_what_is_new() -> None:
    world = World(2)
    first, made = grade(world, world.groups(["run0", "run1"]), COVER)
    again, none = grade(world, first, COVER)
    assert none == 0
    wide = "RubricCover(rel=4)@8"
    steps = [(world.groups(["run0", "run1"]), wide), (world.groups(), wide), (world.groups(), "RubricCover(rel=5)@8")]
    passages: Any = again
    for groups, measure in steps:
        # What pool would make of the graded records and further runs.
        graded = {(one.query_id, passage.doc_id): passage for one in passages for passage in one.passages}
        passages = [
            QueryPassages(
                one.query_id,
                [each.replacing(exam_grades=graded[one.query_id, each.doc_id].exam_grades) for each in one.passages],
            )
            for one in groups
        ]
        passages, new = grade(world, passages, measure)
        made += new
        fresh, alone = grade(world, groups, measure)
        assert 0 < new < alone
        found = board(world, passages, measure)
        assert found.exact and scores(found) == scores(board(world, fresh, measure))
    assert made <= len(world.grades)
    whole, rest = grade(world, passages)
    assert made + rest == len(world.grades)
    assert board(world, whole, "RubricQrels(measure='nDCG@5')").inexact is None
    full, _ = grade(world, world.groups())
    assert scores(board(world, whole, "alpha_nDCG(rel=4)@5")) == scores(board(world, full, "alpha_nDCG(rel=4)@5"))


def test_a_grade_at_the_level_settles_its_item() -> None:
    world = World(3, queries=1, passages=2, items=1, runs=0)
    first, second = world.docs["q0"]
    world.rankings = {"one": {"q0": [first, second]}}
    world.grades = {(first, "q0i0"): 4, (second, "q0i0"): 0}
    assert grade(world, world.groups(), COVER)[1] == 1


def test_records_and_manifest_say_what_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(5)
    passages, bank = world.write(tmp_path)
    replies = [
        {"contains": [f"The passage {doc} says", f"What of {item}?"], "reply": str(one)}
        for (doc, item), one in world.grades.items()
    ]
    script = tmp_path / "replies.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in replies), encoding="utf-8")
    out = tmp_path / "graded.jsonl"
    words = ["grade", passages, "--bank", bank, "--model", f"scripted:{script}", "--prompt", RATING, "-o", str(out)]
    assert main([*words, "--for", COVER, "NuggetV(rel=4)@1", "--dry-run"]) == 0
    most = int(capsys.readouterr().out.splitlines()[1].split("\t")[1])
    assert main([*words, "--for", COVER, "NuggetV(rel=4)@1"]) == 0
    said = capsys.readouterr().err
    manifest = json.loads(Path(f"{out}.manifest.json").read_text(encoding="utf-8"))
    asked_for = manifest["asked_for"]
    assert asked_for["measures"] == [COVER, "NuggetV(rel=4,partial_rel=3)@1"]
    assert asked_for["runs"] == sorted(world.rankings)
    made = manifest["calls"]["made"]
    assert made <= most < len(world.grades)
    assert asked_for["never_asked"] == len(world.grades) - made
    assert f"{len(world.grades) - made} pairs never asked: no grade of theirs can change {COVER}, NuggetV" in said
    records = [passage for line in out.read_text().splitlines() for passage in json.loads(line)[1]]
    sets = [one["exam_grades"][0] for one in records]
    # Each passage that could be asked further says so, also one that nobody needed.
    assert any(not one["answers"] for one in sets)
    for one in sets:
        marks = one["provenance"].get("asked_for")
        assert (marks is None) == (len(one["answers"]) == 5)
        assert marks is None or marks[0]["measures"] == asked_for["measures"]
    assert main(["leaderboard", str(out), "--bank", bank, "-m", COVER, "--format", "text"]) == 0
    assert f"exact, as if every grade had been asked: {COVER}" in capsys.readouterr().out
    assert main(["leaderboard", str(out), "--bank", bank, "-m", COVER, "RubricCover(rel=4)@9", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["exact"] == [COVER]


def test_over_http_with_budget_kill_and_resume_no_call_is_made_twice(tmp_path: Path) -> None:
    """A real server counts: calls, also after a budget and after kill -9, are those of one run without either."""
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    world = World(8, queries=2, passages=20)
    passages, bank = world.write(tmp_path)
    rules = [
        {"contains": [f"The passage {doc} says", f"What of {item}?"], "reply": str(one)}
        for (doc, item), one in world.grades.items()
    ]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rules), encoding="utf-8")

    def words(server: Running, out: str, *more: str) -> list[str]:
        return ["grade", passages, "--bank", bank, "--model", "openai:m", "--base-url", server.url, "--prompt", RATING,
                "-o", str(tmp_path / out), "--for", COVER, "--model-option", "concurrency=12", *more]  # fmt: skip

    with running(replies=tmp_path / "replies.jsonl") as server:
        assert main(words(server, "whole.jsonl")) == 0
        calls = server.stats()["calls"]
    assert calls < len(world.grades)
    with running(replies=tmp_path / "replies.jsonl", delay=0.02) as server:
        assert main(words(server, "again.jsonl", "--max-calls", str(calls // 4))) == 1
        assert server.stats()["calls"] == calls // 4
        command = [sys.executable, "-m", "rubric_measures", *words(server, "again.jsonl")]
        with subprocess.Popen(command, env={**os.environ, "OPENAI_API_KEY": "x"}, stderr=subprocess.DEVNULL) as process:
            while server.stats()["calls"] < calls // 2 and process.poll() is None:
                time.sleep(0.02)
            process.kill()
        assert main(words(server, "again.jsonl")) == 0
        assert server.stats()["most_in_flight"] <= 12
        # A kill loses calls in flight, and replies that wait to be written: both together are 2 * 12 at the most.
        assert calls <= server.stats()["calls"] <= calls + 24
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("measures", "more", "said"),
    [
        ("nRubricCover@20", {}, "nRubricCover(rel=4)@20: any grade may change it, so none can be left out"),
        ("nDCG@10", {}, "any grade may change it"),
        ("alpha_nDCG@10", {}, "any grade may change it"),
        ("RubricCover(judged_only=True)@20", {}, "any grade may change it"),
        (COVER, {"prompt": "Thomas"}, "prompt Thomas does not grade items of the bank"),
        ((), {"runs": {"one": {"q0": {"q0d0": 1.0}}}}, "name the measures"),
    ],
)
def test_what_cannot_be_left_out_is_refused(measures: Any, more: dict[str, Any], said: str) -> None:
    world = World(0)
    settings = {"prompt": RATING, **more}
    with pytest.raises((InputError, MeasureError), match=re.escape(said)):
        rubric_measures.grade(world.groups(), world.bank, model=world.model(), measures=measures, **settings)


@pytest.mark.parametrize("dry_run", [False, True])
def test_passages_without_rankings_are_refused_before_a_call(dry_run: bool) -> None:
    world = World(0)
    with pytest.raises(InputError, match="hold no rankings of the queries"):
        grade(world, world.groups([]), COVER, dry_run=dry_run)
    elsewhere = {"one": {"other": {"q0d0": 1.0}}}
    with pytest.raises(InputError, match="name the runs"):
        grade(world, world.groups(), COVER, runs=elsewhere, dry_run=dry_run)


def test_what_reads_all_grades_refuses_the_records_or_says_it(tmp_path: Path) -> None:
    world = World(7)
    lazy, _ = grade(world, world.groups(), COVER)
    with pytest.raises(InputError, match="that program counts by all of them"):
        board(world, lazy, "RubricCover(rel=4)@3", compat="workbench")
    with pytest.raises(InputError, match="labels are of all grades of a passage"):
        write_qrels(rubric_measures.load(lazy, bank=world.bank), tmp_path / "some.qrels")
    loaded = rubric_measures.load(lazy, bank=world.bank)
    run = [ScoredDoc(query, doc, -rank) for query, of in world.rankings["run0"].items() for rank, doc in enumerate(of)]
    measure, wider = ir_measures.parse_measure(COVER), ir_measures.parse_measure("RubricCover(rel=4)@9")
    known = board(world, lazy, COVER).cells["run0"][COVER].mean
    assert ir_measures.calc_aggregate([measure], loaded, run) == {measure: known}
    with pytest.raises(MeasureError, match="failed or were never asked"):
        ir_measures.calc_aggregate([wider], loaded, run)
    with pytest.raises(InputError, match="labels are of all grades"):
        ir_measures.calc_aggregate([ir_measures.nDCG @ 3], loaded, run)
    with pytest.raises(InputError, match="a table of grades has no place for that"):
        write_qrels(loaded, tmp_path / "items.qrels", per="item")
    with pytest.raises(InputError, match="a table of grades has no place for that"):
        loaded.to_dataframe()
    with pytest.raises(InputError, match="asked only for some measures; grade for them again"):
        rubric_measures.regrade(lazy, world.bank, model=world.model(), old_bank=world.bank, prompt=RATING, asking=ONCE)


def test_tables_and_reports_of_what_nothing_covers_refuse_the_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(7)
    lazy, _ = grade(world, world.groups(), COVER)
    graded, bank = tmp_path / "lazy.jsonl", world.write(tmp_path)[1]
    write_graded(graded, lazy)
    for command in (["convert", "--to", "csv"], ["qrels", "--per", "item"]):
        assert main([*command, str(graded), "-o", str(tmp_path / command[0])]) == 2
        assert "a table of grades has no place for that" in capsys.readouterr().err
    for report in ("uncovered-passages", "item-statistics"):
        assert main(["verify", report, str(graded), "--bank", bank]) == 2
        assert "only all grades tell what covers nothing" in capsys.readouterr().err
    assert main(["verify", "grading", str(graded), "--bank", bank]) == 0
    doc = world.rankings["run0"]["q0"][0]
    (tmp_path / "ada.csv").write_text(f"query_id,doc_id,item_id,grade,judge\nq0,{doc},q0/0,4,ada\n", encoding="utf-8")
    assert main(["calibrate", str(graded), "--bank", bank, "--anchors", str(tmp_path / "ada.csv")]) == 2
    assert "calibrate with grades of all pairs" in capsys.readouterr().err


def test_runs_without_a_score_are_said_where_a_board_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    world = World(9)
    for run in ("run0", "run1"):
        world.rankings[f"short {run}"] = {query: of[:1] for query, of in world.rankings[run].items()}
    lazy, _ = grade(world, world.groups(), COVER)
    found = board(world, lazy, ["RubricCover(rel=4)@9", COVER])
    unknown = sum(row["RubricCover(rel=4)@9"].mean is None for row in found.cells.values())
    path = tmp_path / "board.json"
    path.write_text(found.render("json"), encoding="utf-8")
    # Queries of such a run that need no further grade give it no interval.
    partial = [run for run in found.values if found.scored(run, "RubricCover(rel=4)@9") == {}]
    name = "RubricCover(rel=4)@9"
    known = mean_intervals({name: {run: found.scored(run, name) for run in found.values}}, Draws(50))[name]
    assert len(partial) == unknown and {known[run].low for run in partial} == {None}
    assert known["run0"].low is not None
    # Nothing is concluded of runs without a score, and which these are is said first.
    assert main(["compare", str(path)]) == 1
    out, err = capsys.readouterr()
    assert f"{unknown} rows without a score by RubricCover(rel=4)@9 left out" in err
    assert out.startswith("of 3 runs with a score (run1, run2, run3 have none): run0 has the highest mean; ")
    # By a measure that the baseline has no score by, nobody is compared, and the others stay.
    assert list(found.compare(baseline="run1")) == [COVER]
    assert "not compared by RubricCover(rel=4)@9" in caplog.text


def test_files_of_some_and_of_all_grades_are_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(3, runs=5)
    wide = "RubricCover(rel=5)@6"
    made = {"one": grade(world, world.groups(["run0", "run1"]), COVER)[0], "two": grade(world, world.groups(), wide)[0]}
    made["all"] = grade(world, world.groups())[0]
    for name, graded in made.items():
        write_graded(tmp_path / f"{name}.jsonl", graded)

    def merged(*names: str) -> Any:
        files = [str(tmp_path / f"{name}.jsonl") for name in names]
        assert main(["convert", *files, "-o", str(tmp_path / "merged.jsonl")]) == 0
        return load_graded(tmp_path / "merged.jsonl")

    for names in (("one", "two"), ("two", "one")):
        graded = merged(*names)
        assert {len(passage.exam_grades or ()) for group in graded for passage in group.passages} == {1}
        found = board(world, graded, wide)
        assert found.exact and scores(found) == scores(board(world, made["all"], wide))
        assert board(world, graded, "nRubricCover(rel=4)@9").inexact
    asked = {json.dumps(one) for group in graded for passage in group.passages for entry in passage.exam_grades or ()
             for one in provenance_of(entry).get("asked_for", ())}  # fmt: skip
    assert sorted(json.loads(one)["measures"] for one in asked) == [[COVER], [wide]]
    for names in (("one", "all"), ("all", "two"), ("one", "two", "all")):
        graded = merged(*names)
        found = board(world, graded, "nRubricCover(rel=4)@9")
        assert found.inexact is None and scores(found) == scores(board(world, made["all"], "nRubricCover(rel=4)@9"))
    # Grades of another bank are no part of these.
    other = bank_from_items([replace(one, text=f"{one.text}!") for one in world.items], world.bank.query_texts)
    anew = rubric_measures.grade(
        world.groups(), other, model=world.model(), prompt=RATING, measures=COVER, asking=ONCE, runs=None
    )
    write_graded(tmp_path / "other.jsonl", anew)
    capsys.readouterr()
    assert main(["convert", str(tmp_path / "one.jsonl"), str(tmp_path / "other.jsonl"), "-o", str(tmp_path / "x")]) == 2
    assert re.search(r"passage 'q0d\d+': provenance\.\w+ is '\w+' in one file and", capsys.readouterr().err)
