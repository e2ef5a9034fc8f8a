"""Several assessors: agreement on the page and in the export, what is to decide, and what an adjudicator decides."""

from __future__ import annotations

import json
import random
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.records.models import load_graded
from rubric_measures.review import screens
from rubric_measures.review.app import parse_assignments, render_markdown
from rubric_measures.review.queues import QueueChoice, load_material
from rubric_measures.review.screens import Asked
from rubric_measures.review.session import (
    Review,
    agreement_rows,
    export_review,
    queue_of,
)
from rubric_measures.review.store import CellKey, ReviewStore, adjudicated
from tests.example_records import grade_set, passage, write_lines

ITEMS = "abcd"
QUERIES = ("q1", "q2", "q3")


def make_files(folder: Path, highest: int = 5) -> tuple[Path, Path]:
    """Four passages of each of three queries, graded by chance; the scale stands beside the grades."""
    chance = random.Random(7)
    records, bank = [], []
    for query_id in QUERIES:
        passages = []
        for number in range(4):
            graded = grade_set({f"{query_id}/{item}": chance.randint(0, highest) for item in ITEMS})
            if highest != 5:
                scale = {"scale": [0, highest], "covers": highest, "grade_names": ["no", "some", "yes"]}
                graded["prompt_info"] |= scale
            ranks = {"one": number + 1, "two": 4 - number}
            passages.append(passage(query_id, f"d{number}", [graded], ranks, 1))
        records.append([query_id, passages])
        items = [{"query_id": query_id, "question_id": f"{query_id}/{one}", "question_text": one} for one in ITEMS]
        bank.append({"query_id": query_id, "query_text": query_id, "items": items})
    return write_lines(folder / "graded.jsonl", records), write_lines(folder / "bank.jsonl", bank)


def open_review(graded: Path, bank: Path, state: Path) -> Review:
    material = load_material(graded, bank)
    store = ReviewStore(state, material.bank, waiting=material.waiting, scale=material.scale)
    return Review(material, store, str(bank))


def asked(assessor: str, cell: CellKey, order: str = "query", **form: str) -> Asked:
    ids = dict(zip("qdi", cell, strict=True))
    return Asked("/check", {"order": order, **ids}, {name: [value] for name, value in form.items()}, assessor, "t")


def work(review: Review, assessor: str, chance: random.Random, share: float) -> None:
    """A scripted assessor: grades some cells, and where they differ keeps, accepts, or leaves it for later."""
    top = review.material.scale.highest
    for cell in chance.sample(review.material.cells, int(share * len(review.material.cells))):
        grade = chance.choice([str(chance.randint(0, top)), str(review.material.grade(cell).grade), "u"])
        screens.post_grade(review, asked(assessor, cell, grade=grade))
        said = review.store.snapshot().grades[cell][assessor]
        if said.grade is not None and said.final is None:
            decision = chance.choice(["override", "accept", "", "again"])
            if decision == "again":
                screens.post_grade(review, asked(assessor, cell, grade=str(review.material.grade(cell).grade)))
            elif decision:
                screens.post_decide(review, asked(assessor, cell, decision=decision))


@pytest.mark.parametrize("highest", [5, 2])
def test_agreement_on_the_page_is_that_of_the_export(
    tmp_path: Path, highest: int, capsys: pytest.CaptureFixture[str]
) -> None:
    graded, bank = make_files(tmp_path, highest)
    chance = random.Random(highest)
    for turn in range(2):
        # The second review is of what the first one exported, and goes on with it.
        review = open_review(graded, bank, tmp_path / f"{turn}.sqlite")
        with closing(review.store):
            for assessor in ("ada", "bob"):
                work(review, assessor, chance, 0.6)
            rows = agreement_rows(review.material, review.store.snapshot())
            paths = export_review(review, tmp_path / f"out{turn}").paths
        graded, bank = Path(paths[0]), Path(paths[1])
        assert len(rows) == 3 and min(row.pairs for row in rows) > 5
        for row in rows:
            blind = ["--grader", f"prompt=HumanReviewBlind,model=human:{row.first}"]
            if row.second.startswith("model"):
                other = "prompt=QuestionSelfRatedUnanswerablePromptWithChoices,model=model"
            else:
                other = f"prompt=HumanReviewBlind,model=human:{row.second}"
            command = ["agreement", str(graded), str(graded), "--items", *blind, "--grader-b", other]
            capsys.readouterr()
            assert main([*command, "--format", "json"]) in (0, 1)
            whole = json.loads(capsys.readouterr().out)
            [said] = whole["graders"]
            exact = said["statistics"]["exact_match"]["estimate"]
            assert (said["documents"], exact) == (row.pairs, pytest.approx(row.exact))
            assert row.found is not None
            for name in ("kappa", "quadratic_kappa", "alpha_ordinal"):
                value = row.found[name].estimate
                assert said["statistics"][name]["estimate"] == (value if value is None else pytest.approx(value)), name
            ends, interval = said["statistics"]["kappa"], row.found["kappa"]
            assert (interval.low, interval.high) == (pytest.approx(ends["low"]), pytest.approx(ends["high"]))
    # What was settled with the grader in sight is said to agree too well.
    command = ["agreement", str(graded), str(graded), "--items", "--grader", "human:ada"]
    assert main([*command, "--grader-b", "model", "--rounds", "0"]) in (0, 1)
    assert "compare the first, blind ones (prompt=HumanReviewBlind)" in capsys.readouterr().err
    # An assessor who has no grades gets the error alone.
    assert main([*command[:-1], "human:nobody", "--grader-b", "model"]) == 2
    assert re.fullmatch("rubric_measures: .*holds no grades for model=human:nobody; .*\n", capsys.readouterr().err)


def test_open_and_accepted_disagreements_do_not_make_the_grader_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A grader is held to first, blind grades; scores have those that stand, also while they wait for a decision."""
    graded, bank = make_files(tmp_path)

    def printed(*argv: object) -> tuple[dict[str, Any], str]:
        assert main([*map(str, argv), "--format", "json"]) == 0
        said = capsys.readouterr()
        return json.loads(said.out), said.err

    def board(path: str | Path, *more: str) -> tuple[dict[str, float], str]:
        content, err = printed("leaderboard", path, "--bank", bank, "-m", name, *more)
        return {row["run_id"]: row["measures"][name]["mean"] for row in content["runs"]}, err

    review = open_review(graded, bank, tmp_path / "state.sqlite")
    name = "RubricCover(rel=2)@2"
    before, _ = board(graded)
    # Ada finds less than the grader in four of five cells that it gives 2 and more, and decides nothing.
    covers = [cell for cell in review.material.cells if (review.material.grade(cell).grade or 0) >= 2]
    differs = [cell for number, cell in enumerate(covers) if number % 5]
    with closing(review.store):
        for cell in review.material.cells:
            grade = 0 if cell in differs else review.material.grade(cell).grade
            screens.post_grade(review, asked("ada", cell, grade=str(grade)))
        made = export_review(review, tmp_path / "open")
        for cell in differs:
            screens.post_decide(review, asked("ada", cell, decision="accept"))
        accepted = export_review(review, tmp_path / "accepted").paths[0]
    after, err = board(made.paths[0], "--grader", "assessors=override")
    assert f"{len(differs)} of them wait for the assessor's decision between both" in err
    assert after == board(made.paths[0], "--grader", "human:ada")[0]
    assert max(after.values()) < min(before.values())
    # Once the grader's are accepted, its scores stand; that they were settled in sight is said.
    again, err = board(accepted, "--grader", "assessors=override")
    assert again == before and f"{len(differs)} of them were given or settled in sight of the grader's" in err
    gap = sum(review.material.grade(cell).grade or 0 for cell in differs) / len(review.material.cells)
    for path, counted in ((made.paths[0], "to_decide"), (accepted, "in_sight")):
        content, err = printed("calibrate", path, "--bank", bank, "--rounds", 0)
        assert f"{len(differs)} grades by assessors" in err
        assert content["bias"][0]["mean"] == pytest.approx(gap)
        assert content["bias"][0]["same"] == pytest.approx(1 - len(differs) / len(review.material.cells))
        assert content["assessors"][counted] == len(differs) and sum(content["assessors"].values()) == len(differs)


def test_a_grader_is_not_held_to_what_was_graded_in_its_sight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graded, bank = make_files(tmp_path)
    review = open_review(graded, bank, tmp_path / "state.sqlite")
    review.blind = False
    with closing(review.store):
        for cell in review.material.cells:
            screens.post_grade(review, asked("ada", cell, grade="1"))
        path = export_review(review, tmp_path / "out").paths[0]
    assert main(["calibrate", path, "--bank", str(bank)]) == 2
    assert "that count; 48 were given in sight of the grader's" in capsys.readouterr().err


def test_a_scale_with_names_is_on_every_page_and_in_the_export(tmp_path: Path) -> None:
    graded, bank = make_files(tmp_path, 2)
    review = open_review(graded, bank, tmp_path / "state.sqlite")
    with closing(review.store):
        cell = review.material.cells[0]
        page = screens.check(review, asked("ada", cell)).content
        assert page.count('name="grade" value="2"') == len(ITEMS) and 'value="3"' not in page
        assert '2<span class="name"> yes</span>' in page and "2 or more counts as covered" in page
        screens.post_grade(review, asked("ada", cell, grade="1"))
        made = export_review(review, tmp_path / "out")
    sets = load_graded(made.paths[0])[0].passages[0].exam_grades or []
    infos = [one.prompt_info.as_json() for one in sets if one.prompt_info is not None and one.llm == "human:ada"]
    assert infos and all((one["scale"], one["covers"]) == ([0, 2], 2) for one in infos)


def test_what_is_to_decide_is_counted_everywhere_and_leads_back(tmp_path: Path) -> None:
    graded, bank = make_files(tmp_path)
    review = open_review(graded, bank, tmp_path / "state.sqlite")
    with closing(review.store):
        cells = review.material.cells[:2]
        for cell in cells:
            other = "0" if review.material.grade(cell).grade else "1"
            screens.post_grade(review, asked("ada", cell, grade=other))
        for name in ("queue", "bank", "progress", "export"):
            page = getattr(screens, name)(review, Asked(f"/{name}", {}, {}, "ada", "t")).content
            assert 'id="to-decide" class="warn">2 to decide' in page, name
        queue = queue_of(review, QueueChoice("decide", assessor="ada"), review.store.snapshot())
        assert list(queue) == cells
        assert not len(queue_of(review, QueueChoice("decide", assessor="bob"), review.store.snapshot()))
        # It is the first card, and one key a grade leads through it to its end.
        first = screens.queue(review, Asked("/", {}, {}, "ada", "t")).content
        assert first.index('data-order="decide"') < first.index('data-order="audit"')
        decide = {"order": "decide"}
        for cell, then in zip(cells, (cells[1].item_id.replace("/", "%2F"), "finished=decide"), strict=True):
            form = asked("ada", cell, decision="override")
            assert (
                then
                in screens.post_decide(
                    review, Asked("/decide", decide | form.query | decide, form.form, "ada", "t")
                ).redirect
            )
        assert "0 to decide" in screens.progress(review, Asked("/progress", {}, {}, "ada", "t")).content


def test_markup_in_guidelines_stays_text() -> None:
    pytest.importorskip("markdown_it")
    shown = render_markdown("<b>Bold</b> and **strong**")
    assert shown == "<p>&lt;b&gt;Bold&lt;/b&gt; and <strong>strong</strong></p>\n"


def test_assignments_are_read_and_restrict_every_queue(tmp_path: Path) -> None:
    # Ids may have hyphens.
    queries = ["q-1", "q-2", "q-10", "z"]
    assert parse_assignments(["ada=q-1-q-2", "ada=z-z"], queries) == {"ada": ("q-1", "q-2", "z")}
    with pytest.raises(InputError, match="nor queries from and to of that name"):
        parse_assignments(["ada=q-2-q-1"], queries)
    graded, bank = make_files(tmp_path)
    review = open_review(graded, bank, tmp_path / "state.sqlite")
    with closing(review.store):
        review.assignments = {"ada": ("q1",), "bob": ("q9",)}
        pages = {name: screens.queue(review, Asked("/", {}, {}, name, "t")).content for name in ("ada", "bob")}
        assert "You were given 1 query: <bdi>q1</bdi>" in pages["ada"] and ">Start, 16 left" in pages["ada"]
        assert ">Start" not in pages["bob"]
        # What they differ on is a queue, of those who graded it, and of the adjudicator.
        review.adjudicator = "lead"
        review.assignments = {"ada": ("q1", "q2"), "bob": ("q1", "q3"), "eve": ("q1",)}
        # Not each id: an assessor may be given sixty.
        assert [review.spans(name) for name in ("ada", "bob", "eve", "lead")] == ["q1–q2", "q1, q3", "q1", ""]
        cell = review.material.cells[0]
        for name, grade in (("ada", "0"), ("bob", "5")):
            screens.post_grade(review, asked(name, cell, grade=grade))
        for name, count in (("ada", 1), ("bob", 1), ("eve", 0), ("lead", 1)):
            answer = screens.queue(review, Asked("/", {"order": "differ"}, {}, name, "t"))
            assert answer.redirect.startswith("/check?") == bool(count), name
        page = screens.progress(review, Asked("/progress", {}, {}, "ada", "t")).content
        assert "0 of 16" in page and "1 of 32" in page and page.count(", too few<") == 3


def disputed(review: Review) -> list[CellKey]:
    """Ada and Bob grade three cells; they differ on the first two."""
    cells = review.material.cells[:3]
    for name, grades in (("ada", "000"), ("bob", "440")):
        for cell, grade in zip(cells, grades, strict=True):
            screens.post_grade(review, asked(name, cell, grade=grade))
    return cells


def test_what_the_adjudicator_decides_counts_for_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded, bank = make_files(tmp_path)
    review = open_review(graded, bank, tmp_path / "state.sqlite")
    review.adjudicator = "lead"
    with closing(review.store):
        first, second, third = disputed(review)
        # The adjudicator sees what all say; nobody else decides, and nothing that assessors agree on is decided.
        page = screens.check(review, asked("lead", first, "differ")).content
        assert "<bdi>ada</bdi>: <b>0</b>" in page and "<bdi>bob</bdi>: <b>4</b>" in page and "decide for all" in page
        assert page.count('value="adjudicate"') == 2
        for name, cell in (("ada", first), ("lead", third)):
            with pytest.raises(InputError, match=r"only the adjudicator|do not differ there"):
                screens.post_decide(review, asked(name, cell, "differ", decision="adjudicate", grade="3"))
        answer = screens.post_decide(
            review, asked("lead", first, "differ", decision="adjudicate", grade="3", note="half of it")
        )
        assert answer.redirect.startswith("/check?order=differ&q=q1&d=d0&i=q1%2Fb")
        assert adjudicated(review.store.snapshot().grades[first]) == ("lead", 3)
        # Nobody has anything left to decide there, and assessors are told.
        assert "lead</bdi> decided <b>3</b> for all, yours is 4" in screens.check(review, asked("bob", first)).content
        progress = screens.progress(review, Asked("/progress", {}, {}, "lead", "t")).content
        assert 'href="/as?name=lead&amp;token=' in progress and "Decided for all" in progress
        # An own grade, later, takes nothing back, and is not blind; the undo takes it back, and then the decision.
        screens.post_grade(review, asked("lead", first, grade="1"))
        said = review.store.snapshot().grades[first]["lead"]
        assert (said.final, said.decision, said.grade, said.blind) == (3, "adjudicate", 1, False)
        screens.post_undo(review, asked("lead", first))
        screens.post_undo(review, asked("lead", first))
        assert adjudicated(review.store.snapshot().grades[first]) is None
        screens.post_decide(review, asked("lead", first, "differ", decision="adjudicate", grade="3", note="half of it"))
        screens.post_grade(review, asked("lead", second, grade="5"))
        assert not review.store.snapshot().grades[second]["lead"].blind
        made = export_review(review, tmp_path / "out")
    # The export names who decided, beside who graded what.
    entries = load_graded(made.paths[0])[0].passages[0].exam_grades or []
    sets = [(one.llm, one.prompt_info.prompt_class) for one in entries if one.prompt_info is not None]
    assert sets.count(("human:lead", "HumanAdjudication")) == 1
    # It is what counts, and what the next review begins with.
    counted = ["qrels", made.paths[0], "--bank", made.paths[1], "--grader", "assessors=override", "--per", "item"]
    assert main(counted) == 0
    out, err = capsys.readouterr()
    assert "1 of the grades by assessors was settled by an adjudicator" in err
    assert f"q1 {first.item_id} d0 3" in out.splitlines()
    review = open_review(Path(made.paths[0]), Path(made.paths[1]), tmp_path / "again.sqlite")
    review.adjudicator = "lead"
    with closing(review.store):
        screens.post_grade(review, asked("ada", first, grade="5"))
        assert not screens.queue(review, Asked("/", {"order": "differ"}, {}, "lead", "t")).redirect
