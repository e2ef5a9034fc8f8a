"""Tests of `grade --only-changed`: what edits of a bank touched is graded anew, and nothing else is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.records.models import GradedPassage, ItemGradeSet, grade_of_items, load_graded
from rubric_measures.review.queues import load_material
from rubric_measures.review.session import Review, export_review
from rubric_measures.review.store import CellKey, ReviewStore
from rubric_measures.types.entities import make_item_id
from tests.example_records import passage, write_lines

ITEMS = {
    "q1": {"alpha": "What is the alpha layer?", "beta": "Where is the beta river?", "gamma": "Who was gamma?"},
    "q2": {"delta": "What is a delta?"},
}


def bank_lines(items: dict[str, dict[str, str]] = ITEMS, **gold: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "query_id": query_id,
            "query_text": f"Query {query_id}?",
            "items": [
                {
                    "query_id": query_id,
                    "question_id": f"{query_id}/{name}",
                    "question_text": text,
                    **({"gold_answers": gold[name]} if name in gold else {}),
                }
                for name, text in members.items()
            ],
        }
        for query_id, members in items.items()
    ]


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """Records of two queries graded by the lexical grader; beta has the gold answer "north"."""
    write_lines(tmp_path / "bank.jsonl", bank_lines(beta=["north"]))
    first, second, other = (passage(*ids, [], {"one": 1}) for ids in (("q1", "d1"), ("q1", "d2"), ("q2", "d3")))
    first["text"] = "The alpha layer lies in the south; gamma was there."
    second["text"] = "The beta river flows north."
    other["text"] = "A delta is a river mouth."
    write_lines(tmp_path / "passages.jsonl", [["q1", [first, second]], ["q2", [other]]])
    out = tmp_path / "graded.jsonl.gz"
    command = ["grade", str(tmp_path / "passages.jsonl"), "--bank", str(tmp_path / "bank.jsonl")]
    assert main([*command, "--model", "lexical", "-o", str(out)]) == 0
    return out


def edited(graded: Path, *edits: tuple[str, dict[str, Any]], grade: tuple[CellKey, int] | None = None) -> Path:
    """The folder that a review with these edits (and an assessor's grade) leaves."""
    folder = graded.parent / "out"
    bank = graded.parent / "bank.jsonl"
    material = load_material(graded, bank)
    store = ReviewStore(graded.parent / "review.sqlite", material.bank)
    try:
        if grade is not None:
            store.grade("ada", grade[0], grade[1], grade[1])
        for kind, payload in edits:
            states = store.snapshot().items
            keys = [*payload.get("keys", ()), *([payload["key"]] if "key" in payload else ())]
            store.edit_all("ada", [(kind, payload, {key: states[key].version for key in keys})])
        export_review(Review(material, store, str(bank)), folder)
    finally:
        store.close()
    return folder


def regrade(
    folder: Path, *more: str, source: str = "graded.jsonl.gz", out: str = "new.jsonl.gz", code: int = 0
) -> Path:
    command = ["grade", str(folder / source), "--bank", str(folder / "bank.jsonl"), "--only-changed"]
    model = () if "--model" in more else ("--model", "lexical")
    assert main([*command, *model, "-o", str(folder / out), *more]) == code
    return folder / out


def lines(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


def sets(path: Path, query: int = 0) -> list[list[ItemGradeSet]]:
    return [list(one.exam_grades or ()) for one in load_graded(path)[query].passages]


def grades(path: Path) -> dict[str, dict[str, int]]:
    """doc_id -> item_id -> grade of the lexical grader."""

    def of(one: GradedPassage) -> dict[str, int]:
        return {
            k: v
            for entry in one.exam_grades or ()
            if entry.llm == "lexical:1"
            for k, v in grade_of_items(entry).items()
        }

    return {one.doc_id: of(one) for group in load_graded(path) for one in group.passages}


def test_edits_of_a_review_are_followed_and_nothing_else(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = edited(
        graded,
        ("item_edit", {"key": "q1/alpha", "text": "What does the river layer do?"}),
        ("item_edit", {"key": "q1/beta", "gold_answers": ["south"]}),
        ("item_retire", {"key": "q1/gamma"}),
        ("item_add", {"query_id": "q1", "text": "Which river flows?"}),
        grade=(CellKey("q1", "d2", "q1/beta"), 5),
    )
    capsys.readouterr()
    new = regrade(folder)
    said = capsys.readouterr().err
    # Two passages of q1: each lost alpha, beta and gamma, and got the reworded one, beta and the added one.
    assert "6 grades of 3 passages (1 more was there already)" in said
    assert "6 stale grades of items that changed or left are taken out" in said
    # The query that no edit touched is the same to the byte, and so is what the assessor said.
    assert (
        lines(new)[1] == lines(folder / "graded.jsonl.gz")[1] and lines(new)[0] != lines(folder / "graded.jsonl.gz")[0]
    )
    assert sets(new)[1][1] == sets(folder / "graded.jsonl.gz")[1][1] and sets(new)[1][1].llm == "human:ada"
    # The same grades as of grading everything with the new bank.
    bank = load_bank(folder / "bank.jsonl")
    full = folder / "full.jsonl.gz"
    source = str(graded.parent / "passages.jsonl")
    command = ["grade", source, "--bank", str(folder / "bank.jsonl"), "--model", "lexical", "-o", str(full)]
    assert main(command) == 0
    assert grades(new) == grades(full)
    ids = {item.item_id for item in bank.for_query("q1")}
    assert (
        set(grades(new)["d1"])
        == ids
        == {make_item_id("q1", "What does the river layer do?"), "q1/beta", make_item_id("q1", "Which river flows?")}
    )
    assert all(set(dict(entry.answers)) == ids for one in sets(new) for entry in one if entry.llm == "lexical:1")
    # d2 has "north", the answer before, and not "south".
    assert grades(new)["d2"]["q1/beta"] < grades(graded)["d2"]["q1/beta"]
    manifest = json.loads((folder / "new.jsonl.gz.manifest.json").read_text())["only_changed"]
    assert manifest == {"taken_out": 6}


def test_once_followed_nothing_is_left_to_do(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = edited(graded, ("item_edit", {"key": "q1/beta", "gold_answers": ["south"]}))
    first = regrade(folder)
    capsys.readouterr()
    again = regrade(folder, source="new.jsonl.gz", out="again.jsonl.gz")
    assert "0 grades of 3 passages (7 more were there already)" in capsys.readouterr().err
    assert lines(again) == lines(first)
    # Graded by the whole bank too: a plain run finds nothing to do in the amended sets.
    plain = ["grade", str(first), "--bank", str(folder / "bank.jsonl"), "--model", "lexical"]
    assert main([*plain, "--queries", "q1", "-o", str(folder / "plain.jsonl.gz")]) == 0
    assert "0 grades of 2 passages (6 more were there already)" in capsys.readouterr().err
    # A later review of what came out: its own edits are followed, and the old ones are not followed again.
    (graded.parent / "bank.jsonl").write_bytes((folder / "bank.jsonl").read_bytes())
    later = edited(first, ("item_edit", {"key": "q1/gamma", "text": "Who is gamma?"}))
    capsys.readouterr()
    regrade(later)
    assert "2 grades of 3 passages" in capsys.readouterr().err


def test_a_review_that_goes_on_while_its_edits_are_followed(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its bank marks all edits since it began; what was followed in the grades that go on is not paid for again."""
    source = "graded.jsonl.gz"
    for name in ("beta", "gamma", "alpha"):
        folder = edited(graded, ("item_edit", {"key": f"q1/{name}", "text": f"What was {name}?"}))
        capsys.readouterr()
        source = regrade(folder, source=source, out=f"{name}.jsonl.gz").name
        assert "2 grades of 3 passages (5 more were there already)" in capsys.readouterr().err


def test_split_merge_and_an_item_that_only_lost_a_comma(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = edited(
        graded,
        ("item_split", {"key": "q1/alpha", "texts": ["What is alpha?", "What is a layer?"]}),
        ("item_merge", {"keys": ["q1/beta", "q1/gamma"], "text": "Where were beta and gamma?"}),
        ("item_edit", {"key": "q2/delta", "text": "What is a delta ?", "same_meaning": True}),
    )
    capsys.readouterr()
    new = regrade(folder)
    # Of q1 nothing is left of the old items, and the sets are known to be about this bank all the same.
    assert "6 grades of 3 passages" in capsys.readouterr().err
    assert [len(one) for one in sets(new)] == [1, 1]
    assert set(grades(new)["d1"]) == {item.item_id for item in load_bank(folder / "bank.jsonl").for_query("q1")}
    assert lines(new)[1] == lines(folder / "graded.jsonl.gz")[1]


def test_what_a_limit_stopped_goes_on_with_the_next_run(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = graded.parent
    (folder / "model.jsonl").write_text('{"contains": [""], "reply": "4"}\n')
    model = ["--model", f"scripted:{folder / 'model.jsonl'}"]
    command = ["grade", str(folder / "passages.jsonl"), "--bank", str(folder / "bank.jsonl"), *model]
    assert main([*command, "-o", str(folder / "scripted.jsonl.gz")]) == 0
    more = {"q1": {**ITEMS["q1"], "new": "What is new?", "newer": "What is newer?"}, "q2": ITEMS["q2"]}
    write_lines(folder / "bank.jsonl", bank_lines(more, beta=["north"]))
    cache = ["--cache", str(folder / "none.sqlite")]
    first = regrade(folder, *model, *cache, "--max-calls", "1", source="scripted.jsonl.gz", out="1.jsonl.gz", code=1)
    status = [dict(entry.item_status or {}) for (entry,) in sets(first)]
    assert sum(map(len, status)) == 3 and {why for one in status for why in one.values()} == {"failed"}
    capsys.readouterr()
    second = regrade(folder, *model, source=first.name, out="2.jsonl.gz")
    assert "3 grades of 3 passages" in capsys.readouterr().err
    assert [grade_of_items(entry) for (entry,) in sets(second)] == [
        dict.fromkeys((f"q1/{one}" for one in more["q1"]), 4)
    ] * 2


def test_sets_of_others_and_of_other_settings_are_left(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = graded.parent
    model = folder / "model.jsonl"
    model.write_text('{"contains": [""], "reply": "4"}\n')
    command = ["grade", str(graded), "--bank", str(folder / "bank.jsonl"), "--model", f"scripted:{model}"]
    assert main([*command, "--max-tokens", "7", "-o", str(folder / "both.jsonl.gz")]) == 0
    (folder / "old.jsonl").write_bytes((folder / "bank.jsonl").read_bytes())
    write_lines(folder / "bank.jsonl", bank_lines(beta=["south"]))
    old = ["--old-bank", str(folder / "old.jsonl")]
    capsys.readouterr()
    again = ["--model", f"scripted:{model}", *old]
    assert main([*command[:4], *again, "--only-changed", "-o", str(folder / "no.jsonl.gz")]) == 2
    assert "hold no grades of this bank by scripted:model.jsonl" in capsys.readouterr().err
    regrade(folder, *again, source="both.jsonl.gz", out="no.jsonl.gz", code=2)
    assert "with QuestionSelfRatedUnanswerablePromptWithChoices and these settings" in capsys.readouterr().err
    assert not (folder / "no.jsonl.gz").exists()
    new = regrade(folder, *again, "--max-tokens", "7", source="both.jsonl.gz")
    assert [one[0] for one in sets(new)] == [one[0] for one in sets(graded)]


def test_what_makes_no_sense_is_refused(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = graded.parent
    (folder / "q.tsv").write_text("q1\ttext\n")
    (folder / "model.jsonl").write_text('{"contains": [""], "reply": "1"}\n')
    command = ["grade", str(graded), "--model", f"scripted:{folder / 'model.jsonl'}", "-o", str(folder / "x.jsonl")]
    bank = ["--bank", str(folder / "bank.jsonl")]
    for more, why in (
        (["--old-bank", "b", *bank], "(--old-bank, --only-changed)"),
        (
            ["--only-changed", "--query-texts", str(folder / "q.tsv"), "--prompt", "Thomas"],
            "(--only-changed, --bank, --old-bank)",
        ),
        (["--only-changed", "--prompt", "Thomas", *bank], "labels passages without items"),
    ):
        assert main([*command, *more]) == 2
        assert why in capsys.readouterr().err
    assert not (folder / "x.jsonl").exists()


def test_a_table_that_was_edited_by_hand_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, other = "query_id,item_id,text,kind\n", "q2,1,The beta layer,nugget\n"
    (tmp_path / "old.csv").write_text(f"{head}q1,1,The alpha river,nugget\n{other}")
    (tmp_path / "new.csv").write_text(f"{head}q1,1,The gamma river,nugget\n{other}")
    passages = write_lines(
        tmp_path / "p.jsonl", [[name, [passage(name, "d", [], {"one": 1})]] for name in ("q1", "q2")]
    )
    old, new = str(tmp_path / "old.csv"), str(tmp_path / "new.csv")
    graded, again = str(tmp_path / "g.jsonl.gz"), str(tmp_path / "again.jsonl.gz")
    command = ["--model", "lexical", "-o"]
    assert main(["grade", str(passages), "--bank", old, *command, graded]) == 0
    assert main(["grade", graded, "--bank", new, "--only-changed", *command, again]) == 2
    assert (
        "notes edits; name it, or the banks before and after (--only-changed, --bank, --old-bank)"
        in capsys.readouterr().err
    )
    board = ["-m", "RubricCover", "--no-overall"]
    # Until then the old words' grade counts. Records do not say what items said, and nobody guesses.
    said = []
    for bank in (old, new):
        assert main(["leaderboard", graded, "--bank", bank, *board]) == 0
        said.append(capsys.readouterr().err.partition("signature")[0])
    assert said[0] == said[1]
    assert main(["grade", graded, "--bank", new, "--old-bank", old, "--only-changed", *command, again]) == 0
    assert "1 grade of 2 passages (1 more" in capsys.readouterr().err
