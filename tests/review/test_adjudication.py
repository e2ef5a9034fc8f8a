"""What an adjudicator decides where assessors differ binds: on the page, in exports, in scores, in the next review."""

from __future__ import annotations

import csv
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.records.models import load_graded
from rubric_measures.review import screens
from rubric_measures.review.screens import Asked
from rubric_measures.review.session import Review, export_review, impact_of
from rubric_measures.review.store import CellKey, adjudicated
from tests.review.test_page_agreement import make_files, open_review


def asked(name: str, cell: CellKey, order: str = "query", **form: str) -> Asked:
    ids = dict(zip("qdi", cell, strict=True))
    return Asked("/check", {"order": order, **ids}, {key: [value] for key, value in form.items()}, name, "t")


def totals(review: Review) -> list[tuple[str, float | None, float | None]]:
    found = impact_of(review.material, review.measures, review.store.snapshot())
    return [(row.run_id, row.before, row.after) for impact in found for row in impact.rows]


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
        snapshot = review.store.snapshot()
        assert snapshot.final(first) == 3 and adjudicated(snapshot.grades[first]) == ("lead", 3)
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
        after = {run: value for run, _, value in totals(review)}
        made = export_review(review.store, review.material, str(bank), tmp_path / "out")
    # The export names who decided, beside who graded what.
    with (tmp_path / "out" / "grades.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["item_id"] == first.item_id and row["doc_id"] == "d0"]
    assert [(row["assessor"], row["first_grade"], row["adjudicated_grade"], row["adjudicator"]) for row in rows] == [
        ("ada", "0", "3", "lead"),
        ("bob", "4", "3", "lead"),
        ("lead", "", "3", "lead"),
    ]
    assert [row["decision"] for row in rows][2:] == ["adjudicate"] and rows[2]["note"] == "half of it"
    entries = load_graded(made.paths[0])[0].passages[0].exam_grades or []
    sets = [(one.llm, one.prompt_info.prompt_class) for one in entries if one.prompt_info is not None]
    assert sets.count(("human:lead", "HumanAdjudication")) == 1
    # It is what scores count, as the page's impact does, and what the next review begins with.
    board = ["leaderboard", made.paths[0], "--bank", made.paths[1], "--grader", "assessors=override"]
    assert main([*board, "-m", "RubricCover(rel=2)@20", "--format", "tsv"]) == 0
    out, err = capsys.readouterr()
    assert "1 of the grades by assessors was settled by an adjudicator" in err
    scores = {line.split("\t")[0]: float(line.split("\t")[1]) for line in out.splitlines()[1:] if line}
    assert {run: scores[run] for run in after} == pytest.approx(after, abs=1e-6) and len(after) == 2
    review = open_review(Path(made.paths[0]), Path(made.paths[1]), tmp_path / "again.sqlite")
    review.adjudicator = "lead"
    with closing(review.store):
        screens.post_grade(review, asked("ada", first, grade="5"))
        snapshot = review.store.snapshot()
        assert snapshot.final(first, review.material.earlier(first), review.material.said.settled.get(first)) == 3
        assert all(before == now == after[run] for run, before, now in totals(review))
        assert not screens.queue(review, Asked("/", {"order": "differ"}, {}, "lead", "t")).redirect
        export_review(review.store, review.material, made.paths[1], tmp_path / "out again")
    # The next export names who decided in the earlier review.
    with (tmp_path / "out again" / "grades.csv").open(encoding="utf-8", newline="") as stream:
        again = [(row["assessor"], row["adjudicated_grade"], row["adjudicator"]) for row in csv.DictReader(stream)]
    assert again == [("ada", "3", "lead")]
