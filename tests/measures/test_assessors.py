"""Assessors' grades in the place of a grader's: what counts where they differ, in every command that scores."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures import RubricCover, RubricQrels
from rubric_measures.base.errors import InputError
from rubric_measures.boards.scoring import score_records
from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.trec import read_qrels
from rubric_measures.measures.checked import check_records
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector, grade_of_assessors, grades_by_assessors
from rubric_measures.measures.loading import load_records, read_records
from rubric_measures.records.merging import merge_records
from rubric_measures.records.models import load_graded, write_graded
from rubric_measures.review import screens
from rubric_measures.review.queues import QueueChoice, load_material, make_queue
from rubric_measures.review.screens import Asked
from rubric_measures.review.session import Impact, Review, changed_cells, export_review, impact_of, progress_rows
from rubric_measures.review.store import CellKey, ReviewStore
from rubric_measures.types.entities import item_content
from rubric_measures.types.scales import SELF_RATING
from tests import matrices
from tests.example_records import BANK, grade_set, passage, write_lines

OVERRIDE = Grader(assessors="override")


def by(assessor: str, grades: dict[str, int], kind: str = "question") -> dict[str, Any]:
    entry = grade_set(grades, llm=f"human:{assessor}", prompt="HumanReview", kind=kind)
    info = {"prompt_class": "HumanReview", **SELF_RATING.as_json()}
    return {**entry, "prompt_info": info, "answers": [[item_id, f"{assessor} says so"] for item_id in grades]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """d1: assessors change a, agree on b, grade c, which failed; d2: three differ on a; d3: no grade by the grader."""
    first = [grade_set({"q1/a": 5, "q1/b": 4}, status={"q1/c": "unparsed"})]
    first += [by("ada", {"q1/a": 1, "q1/b": 4}), by("ada", {"q1/a": 2}), by("bob", {"q1/c": 4})]
    second = [grade_set({"q1/a": 0, "q1/b": 0, "q1/c": 0})]
    second += [by("ada", {"q1/a": 5}), by("bob", {"q1/a": 1}), by("cleo", {"q1/a": 4})]
    third = [by("ada", {"q1/d": 5})]
    passages = [
        passage("q1", f"d{n}", sets, {"one": n, "two": 4 - n}) for n, sets in enumerate((first, second, third), 1)
    ]
    write_lines(tmp_path / "bank.jsonl", BANK)
    return write_lines(tmp_path / "graded.jsonl", [["q1", passages]])


# d1: a 2 (Ada's later entry), b 4, c 4 (Bob's, where the grader failed); d2: a 4, the median of 1, 4, 5.
EXPECTED = {
    ("q1", "d1", "q1/a", 2),
    ("q1", "d1", "q1/b", 4),
    ("q1", "d1", "q1/c", 4),
    ("q1", "d2", "q1/a", 4),
    ("q1", "d2", "q1/b", 0),
    ("q1", "d2", "q1/c", 0),
}


@given(st.lists(st.integers(0, 5), min_size=1))
def test_the_grade_of_assessors_is_one_of_theirs_and_splits_them_in_halves(grades: list[int]) -> None:
    found = grade_of_assessors(grades)
    assert found in grades and found == grade_of_assessors(sorted(grades))
    assert 2 * sum(one < found for one in grades) < len(grades) and 2 * sum(one > found for one in grades) <= len(
        grades
    )


def test_of_two_assessors_the_lower_grade_counts() -> None:
    assert (grade_of_assessors([5, 2]), grade_of_assessors([2, 5]), grade_of_assessors([0, 5, 5])) == (2, 2, 5)


@pytest.mark.parametrize("with_bank", [True, False])
def test_assessors_stand_in_the_graders_place_and_it_is_said(
    path: Path, with_bank: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bank = load_bank(path.with_name("bank.jsonl")) if with_bank else None
    grades = load_records(path, bank, OVERRIDE)
    rows = grades.queries["q1"].rows()
    assert {(row.query_id, row.doc_id, row.iteration, row.relevance) for row in rows} == EXPECTED
    assert grades.queries["q1"].failed is None
    said = [record.getMessage().partition(": ")[2] for record in caplog.records]
    # a, b and c of d1, a of d2; b is the grader's too. Of d2's a assessors differ; d3 was not graded by the grader.
    assert said == [
        "4 grades by assessors stand in the grader's place; 3 of them say something else than the grader",
        "on 1 of them assessors differ; the median counts, of two the lower",
        "4 of them were given or settled in sight of the grader's",
        "1 grades by assessors left out: the grader graded nothing of their passages",
    ]
    assert [text.partition(",")[0].removeprefix("model=") for text in grades.source["grades"]] == [
        "human:ada",
        "human:bob",
        "human:cleo",
        "model",
    ]


def test_streams_and_files_in_any_order_say_the_same(path: Path, tmp_path: Path) -> None:
    bank = load_bank(path.with_name("bank.jsonl"))
    (line,) = [json.loads(one) for one in path.read_text().splitlines()]
    other = ["q2", [passage("q2", "d9", [grade_set({"q2/a": 1})], {"one": 1})]]
    # A passage a line, and the query comes back after another one.
    lines = [["q1", line[1][2]], other, ["q1", line[1][1]], ["q1", line[1][0]]]
    apart = write_lines(tmp_path / "apart.jsonl", lines)
    together = write_lines(tmp_path / "together.jsonl", [line, other])
    boards = [score_records(read_records(one, bank, OVERRIDE), [RubricCover(rel=4) @ 1]) for one in (together, apart)]
    # |R_q1| = 4. one ranks d1 first: b and c. two ranks d3 first, which the grader did not grade.
    first, second = (board.values for board in boards)
    measure = str(RubricCover(rel=4) @ 1)
    assert (first["one"][measure]["q1"], first["two"][measure]["q1"]) == (0.5, 0.0)
    assert (second["one"][measure]["q1"], second["two"][measure]["q1"]) == (0.5, 0.0)
    in_memory = load_records(apart, bank, OVERRIDE)
    rows = in_memory.queries["q1"].rows()
    assert {(row.query_id, row.doc_id, row.iteration, row.relevance) for row in rows} == EXPECTED
    # The second file has a passage more.
    content = {"scored", "runs"}
    said, again = ({name: value for name, value in board.signature.settings.items() if name not in content}
                   for board in boards)  # fmt: skip
    assert said == again
    assert "human:cleo" in str(boards[0].signature)


def test_every_command_that_scores(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "one.run"
    run.write_text("q1 Q0 d1 1 2 one\nq1 Q0 d2 2 1 one\n")
    common = ["--bank", str(path.with_name("bank.jsonl")), "--grader", "assessors=override"]
    assert main(["evaluate", str(path), str(run), "RubricCover(rel=4)@1", "-q", *common]) == 0
    out = capsys.readouterr()
    assert "q1\tRubricCover(rel=4)@1\t0.5000" in out.out and "4 grades by assessors stand" in out.err
    assert out.err.count("stand in the grader's place") == 1
    assert main(["leaderboard", str(path), "-m", "RubricCover(rel=4)@1", *common]) == 0
    assert capsys.readouterr().err.count("stand in the grader's place") == 1
    assert main(["qrels", str(path), "--output", str(tmp_path / "q.qrels"), *common]) == 0
    assert {row[:2]: row.relevance for row in read_qrels(tmp_path / "q.qrels")} == {("q1", "d1"): 4, ("q1", "d2"): 4}
    capsys.readouterr()
    assert main(["verify", "grading", str(path), "--format", "jsonl", *common]) == 0
    out = capsys.readouterr()
    rows = [json.loads(line) for line in out.out.splitlines()]
    (row,) = [row for row in rows if row["doc_id"] == "d2" and row["title"].endswith("(q1/a)")]
    assert (row["grade"], row["answer"]) == (4, "ada says so; bob says so; cleo says so")
    assert out.err.count("stand in the grader's place") == 1
    # Without the option each assessor is a grader, and the error says what there is.
    assert main(["qrels", str(path), *common[:2]]) == 2
    assert "model=human:ada" in (said := capsys.readouterr().err) and "(--grader, --grader assessors=…)" in said
    assert main(["qrels", str(path), *common[:2], "--grader", "model=human:ada,assessors=override"]) == 2
    assert "name the grader, not the assessor" in capsys.readouterr().err


def test_files_without_assessors_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5})])]]])
    cells = [matrices.cells(of.queries["q1"]) for of in (load_records(path, None, OVERRIDE), load_records(path))]
    assert cells[0] == cells[1]
    assert [record.getMessage().partition(": ")[2][:30] for record in caplog.records] == [
        "holds no grades by assessors ("
    ]


def test_assessors_override_items_of_their_kind_and_of_the_bank_only(tmp_path: Path) -> None:
    nuggets = grade_set({"q1/n": 1}, kind="nugget", prompt="NuggetSelfRatedPrompt")
    sets = [nuggets, by("ada", {"q1/n": 4}, "nugget"), by("ada", {"q1/a": 5})]
    path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", sets)]]])
    found = [(row.iteration, row.relevance) for row in load_records(path, None, OVERRIDE).queries["q1"].rows()]
    assert found == [("q1/n", 4)]
    # Grades 0 and 1 by a key of answers are on another scale than the ratings of assessors.
    keyed = {**grade_set({"q1/a": 1, "q1/b": 0}), "self_ratings": None}
    sets = [keyed, by("ada", {"q1/a": 3, "q1/gone": 5})]
    path = write_lines(tmp_path / "k.jsonl", [["q1", [passage("q1", "d1", sets)]]])
    bank = load_bank(write_lines(tmp_path / "bank.jsonl", BANK))
    with pytest.raises(InputError, match="are on the scale 0-5:4:3, the grader's on 0-1:1; they cannot stand in its"):
        load_records(path, bank, OVERRIDE)


def test_a_review_and_its_export_score_alike(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    lines = [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5, "q1/b": 0})], {"one": 1, "two": 2})]]]
    lines[0][1].append(passage("q1", "d2", [grade_set({"q1/a": 0, "q1/b": 5})], {"one": 2, "two": 1}))
    graded, bank = write_lines(tmp_path / "r.jsonl", lines), path.with_name("bank.jsonl")
    material = load_material(graded, bank)
    store = ReviewStore(tmp_path / "s.sqlite", material.bank)
    try:
        cell = CellKey("q1", "d1", "q1/a")
        for assessor, grade in (("ada", 1), ("bob", 4), ("ada", 2)):
            store.grade(assessor, cell, grade, 5)
            store.decide(assessor, cell, "override", grade, "seen otherwise")
        # Bob was the first to decide and Ada the last; with two assessors the lower grade counts either way.
        assert store.snapshot().final(cell) == 2
        measure = RubricCover(rel=4) @ 1
        review = Review(material, store, [measure], str(bank), tmp_path)
        (impact,) = impact_of(review.material, review.measures, store.snapshot())
        made = export_review(store, material, str(bank), tmp_path / "out")
    finally:
        store.close()
    after = score_records(read_records(made.paths[0], load_bank(made.paths[1]), OVERRIDE), [measure])
    # one has d1 first, where a fell: 0 of 4; two has d2 first with b: 1 of 4; q2 and q3 count with 0.
    assert {row.run_id: row.after for row in impact.rows} == {"one": 0.0, "two": 0.25 / 3}
    means = {run: sum(value or 0 for value in row[str(measure)].values()) / 3 for run, row in after.values.items()}
    assert means == {"one": 0.0, "two": 0.25 / 3}


def scores_of(graded: Path | str, bank: Path | str) -> dict[str, float]:
    """What `leaderboard --grader assessors=override` says, to twelve digits."""
    measure = RubricCover(rel=4) @ 1
    board = score_records(read_records(graded, load_bank(bank), OVERRIDE), [measure], overall=False)
    return {run_id: round(row[str(measure)].mean or 0.0, 12) for run_id, row in board.cells.items()}


def sides(impact: Impact) -> tuple[dict[str, float], dict[str, float]]:
    """The scores before and after, to twelve digits."""
    return (
        {row.run_id: round(row.before or 0.0, 12) for row in impact.rows},
        {row.run_id: round(row.after or 0.0, 12) for row in impact.rows},
    )


def test_a_second_review_counts_the_grades_of_the_first(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    bank = path.with_name("bank.jsonl")
    graded: Path | str = path
    # d1: a 2 by Ada, b 4, c 4 by Bob; d2: a 4 by three assessors. one: b, c of d1, 2/4; two: nothing of d3, which the
    # grader did not grade; q2 and q3 of the bank count with 0.
    assert scores_of(graded, bank) == {"one": round(0.5 / 3, 12), "two": 0.0}
    material = load_material(graded, bank)
    assert material.earlier(CellKey("q1", "d2", "q1/a")) == {"ada": 5, "bob": 1, "cleo": 4}
    assert material.earlier(CellKey("q1", "d3", "q1/d")) == {}
    store = ReviewStore(tmp_path / "s.sqlite", material.bank)
    try:
        measures = [RubricCover(rel=4) @ 1]
        (impact,) = impact_of(material, measures, store.snapshot())
        assert sides(impact) == (scores_of(graded, bank),) * 2
        # Of a and c of d1 and a of d2 assessors say another thing than the grader.
        assert (impact.grades_changed, impact.changed_before) == (3, 3)
        cells = [CellKey("q1", "d1", "q1/b"), CellKey("q1", "d1", "q1/c"), CellKey("q1", "d2", "q1/a")]
        steps = [
            # b of d1: Ada said 4 before, and now 0: hers alone counts, and the later.
            ("ada", cells[0], 0, 4),
            # c of d1: Cleo's 1 beside Bob's 4 of the records; of two the lower.
            ("cleo", cells[1], 1, None),
            # b of d1 again: 5 by Bob beside Ada's 0.
            ("bob", cells[0], 5, 4),
            # a of d2: Cleo's 4 becomes 0; the median of 0, 1, 5 is 1.
            ("cleo", cells[2], 0, 0),
        ]
        for number, (assessor, cell, grade, of_grader) in enumerate(steps):
            store.grade(assessor, cell, grade, of_grader)
            if of_grader not in (None, grade):
                store.decide(assessor, cell, "override", grade, "seen otherwise")
            (impact,) = impact_of(material, measures, store.snapshot())
            made = export_review(store, material, str(bank), tmp_path / f"out{number}").paths
            assert sides(impact) == (scores_of(graded, bank), scores_of(*made[:2]))
        assert sides(impact)[1] == {"one": 0.0, "two": 0.0}
        assert (impact.grades_changed, impact.changed_before) == (4, 3)
        # What counted before is what the records' assessors said: 4 by Bob, 4 by three; Ada's 4 is the grader's, too.
        assert changed_cells(material, store.snapshot()) == [(cells[0], 4, 0), (cells[1], 4, 1), (cells[2], 4, 1)]
        store.edit_all("ada", [("item_retire", {"key": "q1/d"}, {"q1/d": 0})])
        (impact,) = impact_of(material, measures, store.snapshot())
        graded, bank = map(Path, export_review(store, material, str(bank), tmp_path / "last").paths[:2])
        assert sides(impact)[1] == scores_of(graded, bank)
        # Who differs from assessors of the records stands in the queue, and an assessor has one grade there.
        assert list(make_queue(material, QueueChoice(), store.snapshot())).count(cells[2]) == 1
        rows = {row.assessor: row for row in progress_rows(store.snapshot(), material.graded_by)}
        assert {assessor: (row.graded, row.earlier) for assessor, row in rows.items()} == {
            "ada": (1, 3),
            "bob": (1, 2),
            "cleo": (2, 1),
        }
    finally:
        store.close()
    # Ada goes back to what she said first, and then to what she said second: the last counts, not the last that is new.
    for name, grade, expected in (("third", 4, round(1 / 3 / 3, 12)), ("fourth", 0, 0.0)):
        material = load_material(graded, bank)
        store = ReviewStore(tmp_path / f"{name}.sqlite", material.bank)
        try:
            store.grade("ada", cells[0], grade, 4)
            if grade != 4:
                store.decide("ada", cells[0], "override", grade, "seen otherwise")
            (impact,) = impact_of(material, [RubricCover(rel=4) @ 1], store.snapshot())
            made = export_review(store, material, str(bank), tmp_path / name).paths
            assert sides(impact) == (scores_of(graded, bank), scores_of(*made[:2]))
            assert sides(impact)[1]["one"] == expected
        finally:
            store.close()
        graded, bank = map(Path, made[:2])


def test_pages_know_the_grades_of_earlier_reviews(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    material = load_material(path, path.with_name("bank.jsonl"))
    store = ReviewStore(tmp_path / "s.sqlite", material.bank)
    try:
        review = Review(material, store, [RubricCover(rel=4) @ 1], str(path.with_name("bank.jsonl")), tmp_path)

        def shown(path: str, assessor: str) -> str:
            screen: Any = getattr(screens, path)
            asked = Asked(f"/{path}", {"order": "query"}, {}, assessor, "token")
            return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", screen(review, asked).content))

        # Ada graded a and b of d1 and a of d2; Bob c of d1, and a of d2.
        for name, left in (("ada", 3), ("bob", 4)):
            cards = screens.queue(review, Asked("/", {}, {}, name, "token")).content
            assert f"<strong>{left}</strong> of 6 left" in cards[cards.index('data-order="query"') :]
        assert "Assessors changed 3 grades; of 3 the records say so already" in shown("impact", "ada")
        assert "ada all 0 of 6 0 0 0 0 3" in shown("progress", "ada")
        # Ada was shown the grader's grade of it then, so what she says now is not blind.
        fields = {name: [value] for name, value in {"q": "q1", "d": "d1", "i": "q1/a", "grade": "3"}.items()}
        for assessor in ("ada", "cleo"):
            screens.post_grade(review, Asked("/grade", {}, fields, assessor, "token"))
        said = store.snapshot().grades[CellKey("q1", "d1", "q1/a")]
        assert (said["ada"].blind, said["cleo"].blind) == (False, True)
    finally:
        store.close()


def test_an_assessor_cannot_be_overridden() -> None:
    with pytest.raises(InputError, match="name the grader"):
        Grader(model="human:ada", assessors="override")
    assert list(check_records([], GradeSetSelector(OVERRIDE, "x"))) == []


def test_a_query_without_items_has_no_score_in_any_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    first = passage("q1", "d1", [grade_set({"q1/a": 5, "q1/b": 0, "q1/c": 0, "q1/d": 5})], {"one": 1})
    second = passage("q2", "d2", [grade_set({"q2/a": 5})], {"one": 1, "two": 1})
    graded = write_lines(tmp_path / "g.jsonl", [["q1", [first]], ["q2", [second]]])
    bank = write_lines(tmp_path / "b.jsonl", BANK)
    material = load_material(graded, bank)
    store = ReviewStore(tmp_path / "s.sqlite", material.bank)
    measures = [RubricCover(rel=4) @ 20, RubricQrels(measure="nDCG@10")]
    try:
        for key in ("q2/a", "q3/a"):
            store.edit_all("ada", [("item_retire", {"key": key}, {key: 0})])
        impacts = impact_of(material, measures, store.snapshot())
        open_counts = store.snapshot()
        made = export_review(store, material, str(bank), tmp_path / "out").paths
    finally:
        store.close()
    # one has a and d of q1's four items; two does not answer q1, which is 0. q2 and q3 have no items left.
    expected = [{"one": 0.5, "two": 0.0}, {"one": 1.0, "two": 0.0}]
    assert [sides(impact)[1] for impact in impacts] == expected
    assert [impact.without_items for impact in impacts] == [2, 2]
    assert [json.loads(line)["items"] for line in Path(made[1]).read_text().splitlines()][1:] == [[], []]
    said = "2 queries have no items, so they have no score and are in no mean (such as q2)"
    names = [str(measure) for measure in measures]
    common = [made[0], "--bank", made[1]]
    runs = []
    for name, ids in (("one", ("q1 d1", "q2 d2")), ("two", ("q2 d2",))):
        runs.append(tmp_path / f"{name}.run")
        runs[-1].write_text("".join(f"{one.replace(' ', ' Q0 ')} 1 1 {name}\n" for one in ids))
    for files in ([], [str(run) for run in runs]):
        assert (
            main(["leaderboard", *common[:1], *files, *common[1:], "-m", *names, "--format", "json", "--no-overall"])
            == 0
        )
        out = capsys.readouterr()
        rows = {row["run_id"]: row["measures"] for row in json.loads(out.out)["runs"]}
        assert [{run: rows[run][name]["mean"] for run in rows} for name in names] == expected
        assert out.err.count(said) == 1 and "not graded" not in out.err
    for run, values in zip(runs, ([0.5, 1.0], [0.0, 0.0]), strict=True):
        assert main(["evaluate", made[0], str(run), *names, "-q", *common[1:]]) == 0
        out = capsys.readouterr()
        lines = [line.split("\t") for line in out.out.splitlines()]
        assert {line[0] for line in lines} == {"q1", "all"}
        assert [float(line[2]) for line in lines if line[0] == "all"] == values
        assert out.err.count(said) == 1 and "not graded" not in out.err
    assert main(["verify", "item-statistics", *common, "--format", "jsonl"]) == 0
    out = capsys.readouterr()
    assert out.err.count(said) == 1
    # Counts are sums there, too.
    (counted,) = impact_of(material, [RubricQrels(measure="NumRel", rel=1)], open_counts)
    assert main(["leaderboard", str(graded), "--bank", str(bank), "-m", counted.measure, "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert {row.run_id: row.before for row in counted.rows} == {"one": 2.0, "two": 1.0}
    means = {row["run_id"]: row["measures"][counted.measure]["mean"] for row in listed}
    assert (means["one"], means["two"]) == (2.0, 1.0)
    # The same through ir_measures itself.
    found = ir_measures.calc_aggregate(
        measures, load_records(made[0], load_bank(made[1])), ir_measures.read_trec_run(str(runs[0]))
    )
    assert [found[measure] for measure in measures] == [0.5, 1.0]


def item_grades(graded: Path | str, bank: Path | str) -> dict[tuple[str, str], int]:
    """(document, item) -> grade of q1, with assessors' in the grader's place."""
    rows = load_records(graded, load_bank(bank), OVERRIDE).queries["q1"].rows()
    return {(row.doc_id, row.iteration): row.relevance for row in rows}


def test_grades_of_another_state_of_an_item_do_not_outrank_the_graders(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("jinja2")
    one = passage("q1", "d1", [grade_set({"q1/a": 0, "q1/b": 0, "q1/c": 0})], {"one": 1})
    graded, bank = write_lines(tmp_path / "g.jsonl", [["q1", [one]]]), write_lines(tmp_path / "b.jsonl", BANK)
    measure = RubricCover(rel=4) @ 1
    stale = (
        "%s: 1 grades by assessors left out: they were given to other words or gold answers of their items than the "
    )
    stale += "bank has now; have them graded again"

    def review_of(name: str, *steps: Callable[[ReviewStore], object]) -> tuple[Path, Path]:
        material = load_material(graded, bank)
        store = ReviewStore(tmp_path / f"{name}.sqlite", material.bank)
        try:
            for step in steps:
                step(store)
            (impact,) = impact_of(material, [measure], store.snapshot())
            made = export_review(store, material, str(bank), tmp_path / name).paths
            # Of the items that wait, impact counts nothing at all.
            if not impact.waiting:
                assert sides(impact)[1] == scores_of(*made[:2])
            return Path(made[0]), Path(made[1])
        finally:
            store.close()

    def grade(item_id: str, grade: int) -> Callable[[ReviewStore], object]:
        def given(store: ReviewStore) -> None:
            store.grade("ada", CellKey("q1", "d1", item_id), grade, 0)
            store.decide("ada", CellKey("q1", "d1", item_id), "override", grade, "seen otherwise")

        return given

    def edit(item_id: str, **said: object) -> Callable[[ReviewStore], object]:
        return lambda store: store.edit_all(
            "ada", [("item_edit", {"key": item_id, **said}, {item_id: store.snapshot().items[item_id].version})]
        )[0]

    # Ada grades a, b and c; the gold answers of a change then, and the words of b, which mean the same.
    grades = [grade(f"q1/{name}", 5) for name in "abc"]
    edits = [edit("q1/a", gold_answers=["alpha"]), edit("q1/b", text="What is B?", same_meaning=True)]
    graded, bank = review_of("first", *grades, *edits)
    caplog.clear()
    assert item_grades(graded, bank) == {("d1", "q1/a"): 0, ("d1", "q1/b"): 5, ("d1", "q1/c"): 5}
    assert stale % graded in caplog.messages
    # Without a bank nobody knows what the items say now.
    assert {row.relevance for row in load_records(graded, None, OVERRIDE).queries["q1"].rows()} == {5}
    # The next review leaves it out, too, and Ada has still to grade a; c changes its words, and means the same.
    assert load_material(graded, bank).earlier(CellKey("q1", "d1", "q1/a")) == {}
    graded, bank = review_of("second", edit("q1/c", text="What is C?", same_meaning=True))
    assert item_grades(graded, bank) == {("d1", "q1/a"): 0, ("d1", "q1/b"): 5, ("d1", "q1/c"): 5}
    # The same grade again, of the item as it is now, is a new one.
    graded, bank = review_of("third", grade("q1/a", 5))
    caplog.clear()
    assert item_grades(graded, bank) == {("d1", "q1/a"): 5, ("d1", "q1/b"): 5, ("d1", "q1/c"): 5}
    assert not [message for message in caplog.messages if "left out" in message]
    # Nothing that was there before was touched, and an export of the same says nothing twice.
    count = [len(load_graded(path)[0].passages[0].exam_grades or ()) for path in (graded, review_of("again")[0])]
    assert count == [7, 7]
    # Words that somebody changed in the file, under the same id.
    lines = [json.loads(line) for line in bank.read_text().splitlines()]
    lines[0]["items"][1]["question_text"] = "Who is b?"
    by_hand = write_lines(tmp_path / "hand.jsonl", lines)
    caplog.clear()
    assert item_grades(graded, by_hand) == {("d1", "q1/a"): 5, ("d1", "q1/b"): 0, ("d1", "q1/c"): 5}
    assert stale % graded in caplog.messages
    # Records of two reviews are one: what items said is united, as their grades are.
    both = merge_records([load_graded(graded), load_graded(tmp_path / "second" / "graded.jsonl.gz")])
    write_graded(tmp_path / "both.jsonl", both)
    assert item_grades(tmp_path / "both.jsonl", bank) == item_grades(graded, bank)


def test_an_assessor_who_is_the_grader_has_no_stale_grades_either(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    items = {item.item_id: item for item in load_bank(write_lines(tmp_path / "b.jsonl", BANK)).items["q1"]}
    now = {item_id: item_content(item) for item_id, item in items.items()}

    def ada(contents: dict[str, str], **grades: int) -> dict[str, Any]:
        entry = by("ada", {f"q1/{name}": grade for name, grade in grades.items()})
        return {**entry, "item_contents": contents}

    # a: stale; b: as it is now, then stale; c: of unknown words, then stale; d: stale, then as it is now.
    old = dict.fromkeys(now, "of other words")
    first = [ada({"q1/b": now["q1/b"], "q1/d": old["q1/d"]}, b=3, c=4, d=1), ada(old, a=5, b=5, c=5)]
    first.append(ada({"q1/d": now["q1/d"]}, d=2))
    second = [grade_set(dict.fromkeys(items, 0)), ada(old, a=5)]
    lines = [["q1", [passage("q1", "d1", first, {"one": 1}), passage("q1", "d2", second, {"one": 2})]]]
    graded, bank = write_lines(tmp_path / "g.jsonl", lines), load_bank(tmp_path / "b.jsonl")
    grades = load_records(graded, bank, Grader("human:ada"))
    said = {(row.doc_id, row.iteration): row.relevance for row in grades.queries["q1"].rows()}
    assert said == {("d1", "q1/b"): 3, ("d1", "q1/d"): 2}
    stale = (
        "3 grades by assessors left out: they were given to other words or gold answers of their items than the bank"
    )
    assert sum(stale in message for message in caplog.messages) == 1
    caplog.clear()
    # Without a bank nobody knows; another grader's records say nothing of it.
    assert len(list(load_records(graded, None, Grader("human:ada")).queries["q1"].rows())) == 5
    for wanted in (Grader("model"), Grader(prompt="QuestionSelfRatedUnanswerablePromptWithChoices")):
        load_records(graded, bank, wanted)
    assert not [message for message in caplog.messages if "left out" in message]
    write_lines(graded, [["q1", [passage("q1", "d2", second, {"one": 2})]]])
    with pytest.raises(InputError, match=r"holds no grades .* \(1 grades by assessors were given to other words"):
        load_records(graded, bank, Grader("human:ada"))


def test_the_reason_of_a_stale_grade_is_not_joined_to_what_others_say(tmp_path: Path) -> None:
    items = {item.item_id: item for item in load_bank(write_lines(tmp_path / "b.jsonl", BANK)).items["q1"]}
    # Ada's first grade is of unknown words, and goes with her stale one; Bob's stands.
    stale = {**by("ada", {"q1/a": 5}), "item_contents": {"q1/a": "of other words"}}
    lines = [["q1", [passage("q1", "d1", [by("ada", {"q1/a": 4}), by("bob", {"q1/a": 1}), stale])]]]
    (one,) = load_graded(write_lines(tmp_path / "g.jsonl", lines))[0].passages
    found = grades_by_assessors(one, "question", items)
    assert (found.grades, found.reasons, found.stale) == ({"q1/a": [1]}, {"q1/a": "bob says so"}, 1)


def test_a_grade_of_unknown_words_goes_with_a_later_stale_one(tmp_path: Path) -> None:
    stale = {**by("ada", {"q1/a": 5}), "item_contents": {"q1/a": "of other words"}}
    items = {item.item_id: item for item in load_bank(write_lines(tmp_path / "b.jsonl", BANK)).items["q1"]}
    fresh = {**by("ada", {"q1/a": 3}), "item_contents": {"q1/a": item_content(items["q1/a"])}}

    def said(*entries: dict[str, Any]) -> tuple[dict[str, list[int]], int]:
        path = write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", list(entries))]]])
        found = grades_by_assessors(load_graded(path)[0].passages[0], None, items)
        return {item_id: list(grades) for item_id, grades in found.grades.items()}, found.stale

    unknown = by("ada", {"q1/a": 2})
    assert said(unknown, stale) == ({}, 1)
    assert said(stale, unknown) == ({"q1/a": [2]}, 0)
    assert said(fresh, stale) == ({"q1/a": [3]}, 0)
    assert said(stale, by("bob", {"q1/a": 4})) == ({"q1/a": [4]}, 1)


def _three(tmp_path: Path, name: str, *, replaced: bool = False) -> str:
    """Three runs, each with one of three passages on top; assessors turn the grader's order round, or already have."""
    grades = {"d1": 5, "d2": 3, "d3": 1}
    assessors = {"d1": [("ada", 1)], "d3": [("ada", 5), ("bob", 5)]}
    judgments = {"d1": 0, "d2": 2, "d3": 3}
    passages = []
    for n, (doc_id, grade) in enumerate(grades.items(), 1):
        given = assessors.get(doc_id, [])
        if replaced:
            sets = [grade_set({"q1/a": given[0][1] if given else grade})]
        else:
            sets = [grade_set({"q1/a": grade}), *(by(assessor, {"q1/a": other}) for assessor, other in given)]
        passages.append(passage("q1", doc_id, sets, {f"r{n}": 1}, judgments[doc_id]))
    return str(write_lines(tmp_path / name, [["q1", passages]]))


def test_a_grid_of_correlations_with_assessors_in_the_graders_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("scipy")
    path, replaced = _three(tmp_path, "graded.jsonl"), _three(tmp_path, "replaced.jsonl", replaced=True)
    official = tmp_path / "official.json"
    official.write_text('{"r1": 0.9, "r2": 0.5, "r3": 0.1}')
    asked = [
        "-m",
        "RubricQrels(measure='nDCG@1',rel=1)",
        "--coefficients",
        "kendall",
        "--rounds",
        "0",
        "--format",
        "json",
    ]
    found = {}
    for name, command in {
        "grader": [path, "--grader", "model"],
        "assessors": [path, "--grader", "assessors=override"],
        "replaced": [replaced],
    }.items():
        assert main(["correlate", str(official), *command, *asked]) == 0
        out, err = capsys.readouterr()
        (cell,) = json.loads(out)["grid"]
        found[name] = cell
        assert err.count("2 grades by assessors stand in the grader's place; 2 of them") == (name == "assessors")
    # nDCG@1 is the label over the highest: 1, 3/5, 1/5 by the grader, and the other way round by assessors.
    values = {name: [one["value"] for one in cell["result"]["coefficients"]] for name, cell in found.items()}
    assert values == {"grader": [1.0], "assessors": [-1.0], "replaced": [-1.0]}
    assert found["assessors"] == found["replaced"]
    board = tmp_path / "board.json"
    board.write_text('{"r1": 0.9, "r2": 0.5, "r3": 0.2}')
    assert main(["correlate", str(official), str(board), "--grader", "assessors=override"]) == 2
    assert "board.json: holds scores of runs, no grade sets to choose by assessors" in capsys.readouterr().err
    # Without the option each assessor is a grader with a leaderboard.
    assert main(["correlate", str(official), path, *asked]) in (0, 1)
    assert [cell["llm"] for cell in json.loads(capsys.readouterr().out)["grid"]] == ["human:ada", "human:bob", "model"]


def test_agreement_with_assessors_in_the_graders_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    path, replaced = _three(tmp_path, "graded.jsonl"), _three(tmp_path, "replaced.jsonl", replaced=True)
    asked = ["--cutoff", "3", "2", "--rounds", "0", "--format", "json"]
    found = {}
    for name, command in {
        "grader": [path, "--grader", "model"],
        "assessors": [path, "--grader", "assessors=override"],
        "replaced": [replaced],
    }.items():
        assert main(["agreement", *command, *asked]) == 0
        out, err = capsys.readouterr()
        found[name] = json.loads(out)
        assert err.count("stand in the grader's place") == (name == "assessors")
    # Labels 5, 3, 1 and judgments 0, 2, 3: one in both, one in each alone; 1/3 agree, 5/9 by chance: -1/2.
    # Labels 1, 3, 5: all agree.
    for name, kappa, cells in (("grader", -0.5, (1, 1, 1, 0)), ("assessors", 1.0, (2, 0, 0, 1))):
        (cutoff,) = found[name]["cutoffs"]
        assert cutoff["kappa"] == pytest.approx(kappa)
        assert tuple(cutoff[part] for part in ("both", "only_a", "only_b", "neither")) == cells
    assert found["assessors"].keys() == found["replaced"].keys()
    for part in found["assessors"].keys() - {"sources", "truth", "judges"}:
        assert found["assessors"][part] == found["replaced"][part]
    (assessors,), (rated,) = (found[name]["judges"] for name in ("assessors", "replaced"))
    assert {**assessors, "source": None} == {**rated, "source": None}
    tables = []
    for command in ([path, "--grader", "assessors=override"], [replaced]):
        assert main(["agreement", *command, "--tables", "1", "--format", "json"]) == 0
        tables.append(json.loads(capsys.readouterr().out))
    assert tables[0] == tables[1]
    # An assessor against the grader, item by item: 1 against 5, 5 against 1.
    pair = ["--items", "--grader", "model", "--grader-b", "human:ada"]
    assert main(["agreement", path, path, *pair, *asked[3:]]) == 0
    result = json.loads(capsys.readouterr().out)["agreement"]
    assert (result["pairs"], result["exact_match"], result["mean_difference"]) == (2, 0.0, 0.0)
    assert main(["agreement", path, path, *pair[:1], *pair[3:], "--grader", "model=human:bob,assessors=override"]) == 2
    assert "name the grader, not the assessor" in capsys.readouterr().err


def test_conversion_with_assessors_in_the_graders_place(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = ["--bank", str(path.with_name("bank.jsonl"))]
    for command, expected in (
        (["qrels", "--per", "item"], EXPECTED),
        # The highest of d1 is 4 where the grader had 5.
        (["qrels"], {("q1", "d1", "0", 4), ("q1", "d2", "0", 4)}),
    ):
        output = tmp_path / command[0]
        assert main([*command, str(path), "-o", str(output), *bank, "--grader", "assessors=override"]) == 0
        rows = {(row.query_id, row.doc_id, row.iteration, row.relevance) for row in read_qrels(output)}
        assert {row for row in rows if row[1] != "*"} == expected
        assert capsys.readouterr().err.count("4 grades by assessors stand in the grader's place") == 1
    # Each assessor is a grader otherwise, and nothing is written.
    output = tmp_path / "none"
    for to in ("records", "run", "judgments"):
        # These keep all grade sets, or none: the option would do nothing.
        assert main(["convert", str(path), "--to", to, "-o", str(output), "--grader", "assessors=override"]) == 2
        assert f"{to} keeps all grade sets or has none, so leave it out" in capsys.readouterr().err
    assert main(["qrels", str(path), "-o", str(output), *bank]) == 2
    assert "--grader assessors=…)" in capsys.readouterr().err
    assert not output.exists()
