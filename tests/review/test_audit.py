"""The audit on the page: passages with five items, how often the grader is right, and runs that it settles."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jinja2")


from rubric_measures.analysis.calibration import AuditPlan
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.review import screens
from rubric_measures.review.app import open_review
from rubric_measures.review.queues import QueueChoice
from rubric_measures.review.screens import Asked
from rubric_measures.review.session import Review, export_review, queue_of
from rubric_measures.review.store import CellKey
from tests.example_records import grade_set, passage, write_lines
from tests.review.test_app import Assessor, Server

QUERIES = [f"q{number:02}" for number in range(1, 21)]
ITEMS = "abcdefgh"


def make_files(folder: Path, seed: int = 1) -> tuple[str, str]:
    """20 queries, six passages of eight items each; `old` shows d1 to d3, `new` d3 to d6: better ones; `twin` to d5."""
    chance = np.random.default_rng(seed)
    records = []
    for query_id in QUERIES:
        passages = []
        for number in range(1, 7):
            likely = 0.7 if number > 3 else 0.3
            grades = {f"{query_id}/{one}": (5 if chance.random() < likely else 1) for one in ITEMS}
            shown = {"old": number <= 3, "new": number >= 3, "twin": number in (3, 4, 5)}
            ranks = {run: number for run, is_shown in shown.items() if is_shown}
            passages.append(passage(query_id, f"{query_id}-d{number}", [grade_set(grades)], ranks))
        records.append([query_id, passages])
    write_lines(folder / "graded.jsonl", records)
    items = [
        {
            "query_id": query_id,
            "query_text": f"What of {query_id}?",
            "items": [
                {"query_id": query_id, "question_id": f"{query_id}/{one}", "question_text": f"{one}?"} for one in ITEMS
            ],
        }
        for query_id in QUERIES
    ]
    write_lines(folder / "bank.jsonl", items)
    return str(folder / "graded.jsonl"), str(folder / "bank.jsonl")


def asked_cells(review: Review) -> list[CellKey]:
    return list(queue_of(review, QueueChoice("audit"), review.store.snapshot()))


def card(review: Review) -> str:
    """What the first screen says before it comes to other queues."""
    page = str(screens.queue(review, Asked("/", {}, {}, "ada", "token")).content)
    return " ".join(re.sub(r"<[^>]*>", " ", page[page.index("<main") : page.index("<details")]).split())


def give(review: Review, cells: list[CellKey], says: Callable[[CellKey, float], float | None]) -> None:
    for cell in cells:
        grade = review.material.grade(cell).grade
        assert grade is not None
        review.store.grade("ada", cell, says(cell, grade), grade)


def test_an_audit_asks_five_items_of_passages_of_every_query_in_turn(tmp_path: Path) -> None:
    graded, bank = make_files(tmp_path)
    with closing((review := open_review(graded, bank, audit=30)).store):
        cells = asked_cells(review)
        by_passage = [list(found) for _, found in itertools.groupby(cells, lambda cell: cell[:2])]
        assert [len(found) for found in by_passage] == [5] * 30
        assert {found[0].query_id for found in by_passage[:20]} == set(QUERIES)
        # As many that the grader covers as not, where there are.
        for found in by_passage:
            drawn = sum(review.material.grade(cell).grade == 5 for cell in found)
            rows = review.material.queries[found[0].query_id][found[0].doc_id].grades.values()
            covered = sum(row.grade == 5 for row in rows)
            assert min(2, covered) <= drawn <= 5 - min(2, len(ITEMS) - covered)
        assert "30 passages, about 35 minutes: how often the grader is right will be known to ±" in card(review)


def test_the_card_says_how_often_the_grader_is_right(tmp_path: Path) -> None:
    graded, bank = make_files(tmp_path)
    with closing((review := open_review(graded, bank, audit=40)).store):
        cells = asked_cells(review)
        chance = np.random.default_rng(2)
        give(review, cells, lambda _, grade: grade if chance.random() < 0.8 else 6 - grade)
        said = re.search(
            r"40 of 40 passages checked\. .* in (\d+) % of all items \((\d+) to (\d+) %, at 95 %", card(review)
        )
        assert said is not None
        share, low, high = map(int, said.groups())
        assert 70 <= share <= 90 and low < share < high and 8 < high - low < 25


def test_an_exported_audit_says_what_its_grades_stand_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It asks as many items that the grader covers as not: `calibrate` counts each for those that it stands for."""
    graded, bank = make_files(tmp_path)
    chance = np.random.default_rng(2)
    with closing((review := open_review(graded, bank, audit=40)).store):
        raw = []
        for cell in asked_cells(review):
            grade = int(review.material.grade(cell).grade or 0)
            # The grader is right in what it does not cover, and in half of the rest.
            said = 1 if grade == 5 and chance.random() < 0.5 else grade
            raw.append(said == grade)
            fields = {"order": "audit", **dict(zip("qdi", cell, strict=True))}
            screens.post_grade(review, Asked("/grade", fields, {"grade": [str(said)]}, "ada", "token"))
        share = re.search(r"in (\d+) % of all items", card(review))
        assert share is not None
        progress = screens.progress(review, Asked("/progress", {}, {}, "ada", "token")).content
        assert "these numbers are not those of all items" in progress
        path = export_review(review, tmp_path / "out").paths[0]
    # Every run has less than the grader says, on the page and in the files.
    rows = json.loads((tmp_path / "out" / "found.json").read_text(encoding="utf-8"))["rows"]
    table = (tmp_path / "out" / "found.md").read_text(encoding="utf-8")
    assert [row["run"] for row in rows] == ["new", "twin", "old"] and "### Calibrated board" in table
    for row in rows:
        assert row["low"] < row["calibrated"] < row["high"] < 1 and row["calibrated"] < row["grader"] - 0.05
        assert f">{row['calibrated']:.3f}</td>" in progress and f"{row['calibrated']:.3f} |" in table
    assert main(["calibrate", path, "--bank", bank, "--format", "json", "--rounds", "0"]) == 0
    out, err = capsys.readouterr()
    (same,) = {row["same"] for row in json.loads(out)["bias"]}
    assert round(100 * same) == int(share[1]) and abs(same - np.mean(raw)) > 0.005
    assert "200 grades by assessors are an audit's" in err
    blind = "prompt=HumanReviewBlind,model=human:ada"
    assert main(["agreement", path, path, "--items", "--grader", blind, "--grader-b", "model", "--rounds", "0"]) in (
        0,
        1,
    )
    assert "200 grades are an audit's, of as many items that the grader covers as not" in capsys.readouterr().err


def test_pairs_of_runs_are_settled_by_blind_grades(tmp_path: Path) -> None:
    graded, bank = make_files(tmp_path)
    with closing((review := open_review(graded, bank, audit=60, settle=[("new", "old")])).store):
        cells = asked_cells(review)
        assert re.search(
            r"new against old: half of such audits settle a difference of 0\.(09|1\d) in the mean .*, if", card(review)
        )
        give(review, cells[:45], lambda _, grade: grade)
        assert "new against old: not yet known, 9 passages checked" in card(review)
        # The audit ends where the difference is settled, and what is settled stays.
        while left := [cell for cell in asked_cells(review) if cell not in review.store.snapshot().grades]:
            give(review, left[:5], lambda _, grade: grade)
        said = re.search(
            r"new beats old by \.\d\d to \.\d\d in the mean share of items that a passage covers: settled "
            r"This mean share is not Rubric-Cover, which counts an item once: the order on a board may be another",
            card(review),
        )
        checked = len(review.store.snapshot().grades)
        assert said is not None and 50 <= checked == len(asked_cells(review)) < len(cells)
        give(review, cells[checked:], lambda _, grade: 6 - grade)
        assert said[0] in card(review) and len(asked_cells(review)) == checked


def test_several_pairs_are_settled_together_and_a_small_difference_too(tmp_path: Path) -> None:
    graded, bank = make_files(tmp_path)
    pairs = [("new", "old"), ("new", "twin"), ("old", "new")]
    with closing((review := open_review(graded, bank, audit=100, settle=pairs, smallest=0.15)).store):
        # The same pair the other way round is none more.
        assert len(review.plan.pairs) == 2
        said = [""]
        while left := [cell for cell in asked_cells(review) if cell not in review.store.snapshot().grades]:
            give(review, left[:10], lambda _, grade: grade)
            said.append(card(review))
        assert any(re.search(r"[1-9]\d* minutes? more will probably settle new against twin", one) for one in said)
        assert re.search(r"new beats old by \.\d\d to \.\d\d in the mean .* settled", said[-1])
        assert re.search(r"new and twin differ by at most \.(0\d|1[0-5]) in the mean .* settled", said[-1])
        assert len(review.store.snapshot().grades) < 500
    chance = np.random.default_rng(5)
    other = {"state": str(tmp_path / "other"), "settle": pairs[1:2], "audit": 100}
    with closing((review := open_review(graded, bank, **other)).store):
        give(review, asked_cells(review), lambda _, grade: 5 if chance.random() < 0.5 else 1)
        assert "more checks will not settle it: ask more queries" in card(review)


def test_a_grader_that_flatters_a_run_settles_nothing_for_it(tmp_path: Path) -> None:
    """Assessors find as much in all passages: the grader's lead of .4 goes."""
    graded, bank = make_files(tmp_path)
    with closing((review := open_review(graded, bank, audit=100, settle=[("new", "old")])).store):
        chance = np.random.default_rng(3)
        give(review, asked_cells(review), lambda _, grade: 5 if chance.random() < 0.3 else 1)
        said = card(review)
        assert "settled" not in said.replace("not settled", "") and "new against old: between −" in said
        # Whoever comes from its end sees that first, and once.
        page = screens.queue(review, Asked("/", {"finished": "audit"}, {}, "ada", "token")).content
        assert page.count("new against old: between") == 1 and "new against" in page[: page.index("<section")]


def test_what_was_seen_is_asked_no_more_and_what_is_undecided_holds_back(tmp_path: Path) -> None:
    graded, bank = make_files(tmp_path)
    with closing((review := open_review(graded, bank, audit=40)).store):
        first, *_ = cells = asked_cells(review)
        review.store.look("ada", [first])
        give(review, [first], lambda _, grade: grade)
        now = asked_cells(review)
        assert first not in now and len(now) == len(cells)
        give(review, now[:20], lambda _, grade: grade)
        give(review, now[20:21], lambda _, grade: None)
        give(review, now[21:40], lambda _, grade: grade)
        assert "4 of 40 passages checked" in card(review)
        waits = now[20]
        assert (
            f"3 graded passages will count once all 5 items of passage {waits.doc_id} of query {waits.query_id} have a "
            "blind grade" in card(review)
        )


def test_the_plan_of_an_audit_stays_once_a_passage_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graded, bank = make_files(tmp_path)
    open_review(graded, bank, settle=[("new", "twin")], level=0.9).store.close()
    # Corrected before, and kept where it is not said again.
    open_review(graded, bank, settle=[("new", "old")]).store.close()
    with closing((review := open_review(graded, bank, audit=7)).store):
        assert review.plan == AuditPlan((("new", "old"),), 7, 0.9)
        give(review, asked_cells(review)[:5], lambda _, grade: grade)
    with pytest.raises(
        InputError, match=r"an audit has begun \(7 passages, new against old, level 0\.9\), and holds as"
    ):
        open_review(graded, bank, settle=[("new", "old")], level=0.8)
    # So does a plan without pairs: who looked chooses neither more passages nor pairs, and the export has them all.
    plain = {"state": str(tmp_path / "plain")}
    with closing((review := open_review(graded, bank, **plain, audit=60)).store):
        give(review, asked_cells(review), lambda _, grade: grade)
    for other in ({"audit": 100}, {"settle": [("new", "old")]}):
        with pytest.raises(InputError, match=r"an audit has begun \(60 passages, level 0\.95\)"):
            open_review(graded, bank, **plain, **other)
    folder = tmp_path / "out"
    assert main(["review", graded, "--bank", bank, "--state", plain["state"], "--export", str(folder)]) == 0
    assert "60 of 60 passages checked" in (folder / "found.md").read_text(encoding="utf-8")
    capsys.readouterr()


def test_an_audit_of_a_pair_speaks_of_passages_in_which_its_runs_differ(tmp_path: Path) -> None:
    """The grader is wrong in a third of these, and right in all others, which are not asked for."""
    graded, bank = make_files(tmp_path)
    with closing((review := open_review(graded, bank, audit=60, settle=[("old", "new")])).store):
        chance = np.random.default_rng(4)
        give(review, asked_cells(review), lambda _, grade: grade if chance.random() < 0.67 else 6 - grade)
        assert re.search(r"in \d\d % of items of passages in which these runs differ \(", card(review))


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--settle", "newer", "old"], "no run newer has passages here; there are new, old, twin"),
        (["--audit", "0"], "an audit has 1 passage or more, not 0"),
        (["--smallest", ".1"], "smallest would have no effect where no runs are to be settled"),
        (["--bind", "192.0.2.1:80", "--allow-remote", "lab"], "Cannot assign requested address) (--bind)"),
    ],
)
def test_a_refused_command_leaves_no_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], problem: str
) -> None:
    graded, bank = make_files(tmp_path)
    assert main(["review", graded, "--bank", bank, "--assessor", "ada", *more]) == 2
    assert problem in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank.jsonl", "graded.jsonl"]


def test_runs_of_records_without_rankings_are_not_settled(tmp_path: Path) -> None:
    _, bank = make_files(tmp_path)
    grades = grade_set({f"q01/{one}": 5 for one in ITEMS})
    graded = write_lines(tmp_path / "bare.jsonl", [["q01", [passage("q01", "d", [grades])]]])
    with pytest.raises(InputError, match="the records hold no rankings, so there are no runs to settle"):
        open_review(str(graded), bank, settle=[("new", "old")])


def test_equal_scores_of_ranked_passages_are_no_concern_of_a_review(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    graded, bank = make_files(tmp_path)
    tied = tmp_path / "tied.jsonl"
    tied.write_text(re.sub(r'"score": ?[0-9.]+', '"score": 1.0', Path(graded).read_text()))
    asked = []
    for path in (graded, str(tied)):
        with closing((review := open_review(path, bank)).store):
            asked.append(asked_cells(review))
    assert asked[0] == asked[1] and not caplog.messages


def test_too_few_queries_are_said_before_the_audit_begins(tmp_path: Path) -> None:
    """The example has nine."""
    for name in ("graded.jsonl.gz", "questions.jsonl"):
        shutil.copy(example_folder() / name, tmp_path)
    (tmp_path / "questions.jsonl").rename(tmp_path / "bank.jsonl")
    running = Server(tmp_path, "--grader", "lexical:1", "--settle", "fusion", "bm25", "--assessor", "ada")
    try:
        few = "fusion against bm25: nothing will be settled by 50 passages of 9 queries: it takes ten of both"
        assert few in "".join(running.said) and few in Assessor(running).get("/")
    finally:
        running.kill()


def test_grades_that_are_not_blind_are_no_audit(tmp_path: Path) -> None:
    graded, bank = make_files(tmp_path)
    with pytest.raises(InputError, match="runs are settled by blind grades"):
        open_review(graded, bank, settle=[("new", "old")], blind=False)
    with closing((review := open_review(graded, bank, audit=40, blind=False)).store):
        cells = asked_cells(review)
        for cell in cells[:10]:
            review.store.look("ada", [cell])
        give(review, cells[:10], lambda _, grade: grade)
        # The sample stays, and nothing is said of the grader.
        assert asked_cells(review) == cells
        assert "the grader is right" not in card(review).replace("how often the grader is right, and", "")
