"""Tests of what is said of files that are well-formed and wrong, and of odd but right ones, which stay quiet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from ir_measures import Qrel

import rubric_measures
from rubric_measures import Draws
from rubric_measures.analysis.boards import Board
from rubric_measures.api.files import write_qrels
from rubric_measures.boards.single import evaluate
from rubric_measures.measures.findings import Near
from rubric_measures.measures.grades import Grades
from rubric_measures.types.entities import RubricItem, TestBank
from tests.matrices import query_of

QUERIES = [f"q{number:02d}" for number in range(8)]
DOCS = [f"d{number:02d}" for number in range(6)]
COVER = "RubricCover(rel=4)@5"
Grade = Callable[[int, int, int], float]


def usual(query: int, doc: int, item: int) -> float:
    return (3 * query + 5 * doc + 2 * item) % 6


def graded(grade: Grade = usual) -> list[Qrel]:
    return [
        Qrel(query_id, doc_id, grade(query, doc, item), f"item-{item}")
        for query, query_id in enumerate(QUERIES)
        for doc, doc_id in enumerate(DOCS)
        for item in range(4)
    ]


def a_run(
    doc_id: Callable[[str], str] = str, query_id: Callable[[str], str] = str, shift: int = 0
) -> dict[str, dict[str, float]]:
    return {
        query_id(query): {doc_id(doc): 9.0 - (place + shift + number) % 6 for place, doc in enumerate(DOCS)}
        for number, query in enumerate(QUERIES)
    }


def board_of(rows: Grades | Iterable[Qrel], *runs: dict[str, dict[str, float]], measures: str = COVER) -> Board:
    named = {f"run{number}": one for number, one in enumerate(runs or (a_run(), a_run(shift=2)))}
    return rubric_measures.score(rows if isinstance(rows, Grades) else list(rows), named, measures, notes=False)


def warnings(board: Board) -> list[str]:
    return [note.text for note in board.notes if note.is_warning]


WRONG: dict[str, tuple[Grade, str]] = {
    "all in 0 to 1": (
        lambda *at: usual(*at) / 5,
        "no grade reaches 4, the level of RubricCover(rel=4)@5; the highest is 1",
    ),
    "some in 0 to 1": (
        lambda query, *at: usual(query, *at) / (5 if query > 3 else 1),
        "are fractions below 1 (such as in query q04), and the others go up to 5",
    ),
    "one grade": (lambda *_: 5, "all 192 grades are 5"),
    "in percent": (lambda *at: 20 * usual(*at), "the grades above 0 begin at 20"),
}


@pytest.mark.parametrize("name", WRONG)
def test_grades_on_another_scale_are_named(name: str) -> None:
    grade, text = WRONG[name]
    level = 2 if name == "in percent" else 4
    rows = graded(lambda *at: float(grade(*at)))
    # That all are the same is no wonder where nobody knows which others there are.
    grades = rubric_measures.load(rows, grader="scale=0-5:4:3") if name == "one grade" else rows
    found = warnings(board_of(grades, measures=f"RubricCover(rel={level})@5"))
    assert any(text in one for one in found), found


RIGHT: dict[str, Grade] = {
    "usual": usual,
    "fractions all along": lambda *at: usual(*at) * 0.97,
    "in halves": lambda query, doc, item: (usual(query, doc, item) + usual(query, doc + 1, item)) / 2,
    "one hard query": lambda query, *at: min(usual(query, *at), 1) if query == 2 else usual(query, *at),
    "all of one query 0": lambda query, *at: usual(query, *at) * (query != 2),
    "0 or 5 alone": lambda *at: 5 * (usual(*at) > 3),
    "hard queries first": lambda query, *at: min(usual(query, *at), 2) if query < 4 else max(usual(query, *at), 2),
    "very hard queries first": lambda query, *at: min(usual(query, *at), 1) if query < 4 else usual(query, *at),
    "one grade that covers": lambda *at: 4 + usual(*at) % 2 if at[0] else usual(*at),
}


@pytest.mark.parametrize("name", RIGHT)
def test_odd_but_right_grades_raise_no_alarm(name: str) -> None:
    assert warnings(board_of(graded(RIGHT[name]))) == []


def test_a_run_whose_own_grades_are_on_another_scale_is_named() -> None:
    # Its documents are the last three; a run that finds nothing is none.
    own, nothing = ({q: {d: 1.0 / n for n, d in enumerate(docs, 1)} for q in QUERIES} for docs in (DOCS[3:], DOCS[:1]))
    rows = graded(lambda *at: 0 if at[1] == 0 else usual(*at) / 5 if at[1] > 2 else usual(*at))
    said = "no grade of 1 run (run1) is above 1, and others go up to 5: are these on two scales?"
    for one in (rows, [row._replace(relevance=float(round(row.relevance))) for row in rows]):
        board = board_of(one, a_run(), own, nothing, measures="RubricCover(rel=4)@3")
        assert ([note.ids for note in board.notes if note.text == said]) == [("run1",)]
    # Of labels that are words, which a scale of three grades has, a weak run may have partial ones alone.
    labels = rubric_measures.load(graded(lambda *at: min(usual(*at), 1 + (at[1] < 3))), grader="scale=0-2:2:1")
    assert warnings(board_of(labels, a_run(), own, measures="RubricCover(rel=2)@3")) == []


@pytest.mark.parametrize(
    ("queries", "higher", "is_warning"),
    [
        # That four lower queries stand at one end: of 16 in any order once in 910, of 17 once in 1,190.
        (16, 6, False),
        (17, 6, True),
        # That no higher grade is in 4 of 17 queries: once in 33 where there are 13, once in 1,074 where there are 26.
        (17, 1, False),
        (17, 2, True),
    ],
)
def test_two_scales_one_behind_the_other_are_an_alarm_where_chance_is_excluded(
    queries: int, higher: int, is_warning: bool
) -> None:
    ids = [f"q{number:02d}" for number in range(queries)]
    rows = [
        Qrel(query_id, f"d{doc}", doc % 2 if place < 4 else 3 * (doc < higher), "item")
        for place, query_id in enumerate(ids)
        for doc in range(6)
    ]
    notes = board_of(rows, {query_id: {"d0": 1.0} for query_id in ids}, measures="RubricCover(rel=1)@1").notes
    (said,) = [note for note in notes if "on two scales" in note.text]
    assert said.text.startswith("the highest grade is 1 up to query q03, and 3 from query q04 on")
    assert said.is_warning is is_warning


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda one: f"{one[0]}{int(one[1:])}",
        "{}.txt".format,
        "{}#1".format,
        "corpus-{}".format,
        "'{}'".format,
        "{}\u00a0".format,
        lambda one: one.replace("d", "%64").replace("q", "%71"),
    ],
)
def test_ids_that_are_nearly_those_of_the_grades_are_named_with_the_near_one(change: Callable[[str], str]) -> None:
    board = board_of(graded(), a_run(), a_run(change))
    (said,) = [note for note in board.notes if note.text.startswith("ids of")]
    assert said.text.startswith("ids of documents of run run1 are written in another way than those of the grades")
    assert said.ids[0] == "run1" and change(said.ids[2]) == said.ids[1]
    # A run that shares no query with the grades is refused.
    some = a_run(query_id=lambda one: one if one == "q07" else change(one))
    (said,) = [note for note in board_of(graded(), some).notes if note.text.startswith("ids of")]
    assert said.text.startswith("ids of queries of run run0") and said.ids[0] == "run0"


def test_one_id_that_is_nearly_one_of_the_grades_is_named_where_few_have_no_grade() -> None:
    one = a_run(lambda doc: doc.replace("d03", "d%2003"))
    rows = [row._replace(doc_id=row.doc_id.replace("d03", "d 03")) for row in graded()]
    assert any("('d%2003' and 'd 03'): write them in one" in text for text in warnings(board_of(rows, one)))


def test_forms_of_letters_that_look_the_same_are_shown_in_ascii() -> None:
    rows = [row._replace(doc_id=f"\u00e9{row.doc_id}") for row in graded()]
    (said,) = warnings(board_of(rows, a_run("e\u0301{}".format)))
    assert r"those of the grades ('e\u0301d00' and '\xe9d00'): write" in said


def test_runs_whose_scores_are_all_the_same_are_named_in_memory_too() -> None:
    level = {query: dict.fromkeys(DOCS, 1.0) for query in QUERIES}
    said = "run run0: nearly all documents have one score (as for query q00), so ids order them"
    for rows in (graded(), [row for row in graded() if row.iteration == "item-0"]):
        assert any(said in one for one in warnings(board_of(rows, level)))
    found = evaluate(graded(), level, COVER).notes
    assert any("nearly all documents have one score" in note.text for note in found if note.is_warning)


def test_ids_of_another_collection_and_equal_runs_are_named() -> None:
    other = a_run(lambda one: f"{one[1:]}x{one[1:]}")
    assert "run run1: none of the first documents has a grade (such as 00x00)" in " ".join(
        warnings(board_of(graded(), a_run(), other))
    )
    said = " ".join(warnings(board_of(graded(), a_run(str.upper), other)))
    assert "ids of documents of run run0" in said and "run run1: none of the first documents has a grade" in said
    text = "runs run0 and run1 rank the same documents for all queries: is one of them another run?"
    board = board_of(graded(), a_run(), a_run(), measures="RubricCover(rel=3)@2 alpha_nDCG(rel=1)@3")
    assert text in [note.text for note in board.notes]


@pytest.mark.parametrize(
    ("known", "lost"),
    [
        (["d1", "D1"], "ｄ1"),
        (["d1#1", "d1#2"], "d1#3"),
        (["7", "07"], "007"),
        (["msmarco_v2.1_doc_03_12#1_99"], "msmarco_v2.1_doc_03_12#2_101"),
        (["d1", "d2"], "d3"),
    ],
)
def test_ids_that_differ_on_purpose_are_not_near(known: Sequence[str], lost: str) -> None:
    assert Near(known).find(lost) is None


def test_a_document_that_is_ranked_as_well_is_another_one() -> None:
    # Behind all known documents, and each just before its own.
    behind = {query: {**ranking, **{doc.upper(): 0.5 for doc in DOCS}} for query, ranking in a_run().items()}
    before = {
        query: {**ranking, **{doc.upper(): score + 0.5 for doc, score in ranking.items()}}
        for query, ranking in a_run().items()
    }
    for both in (behind, before):
        found = board_of(graded(), both, measures="RubricCover(rel=4)@20").notes
        assert not any(note.text.startswith("ids of") for note in found)


@pytest.mark.parametrize("count", [2, 3])
def test_a_query_that_no_run_ranks_is_said_once_and_one_that_some_lack_of_these(count: int) -> None:
    runs = [a_run(shift=number) for number in range(count)]
    for run in runs:
        del run["q07"]
    del runs[1]["q02"]
    found = warnings(board_of(graded(), *runs))
    assert found == [
        "no run ranks 1 query of the grades (such as q07), and all score 0 there",
        "run run1 does not rank 1 query (such as q02), and scores 0 there",
    ]


def test_evaluate_says_of_judgments_what_a_board_says(tmp_path: Path) -> None:
    """Also where another program computes the numbers."""
    (tmp_path / "qrels.txt").write_text(
        "".join(f"{q} 0 {d} {(n + m) % 3}\n" for n, q in enumerate(QUERIES) for m, d in enumerate(DOCS))
    )
    lines = [f"{q} Q0 {d.upper()} {n} {9 - n} one\n" for q in QUERIES[1:] for n, d in enumerate(DOCS)]
    (tmp_path / "one.run").write_text("".join(lines) + "x Q0 d00 1 1 one\n")
    notes = evaluate(str(tmp_path / "qrels.txt"), str(tmp_path / "one.run"), "nDCG@10 RR(rel=3)").notes
    begins = (
        "no grade reaches 3, the level of RR(rel=3); the highest is 2",
        "ids of documents of run one are written in another way than those of the grades ('D00' and 'd00')",
        "1 query of run one is not graded and was left out (such as x)",
        "run one does not rank 1 query (such as q00)",
        "0 of 42 ranked passages are graded",
    )
    assert [note.text[: len(begin)] for note, begin in zip(notes, begins, strict=True)] == list(begins)


def test_queries_and_items_without_any_grade_are_named_by_all(tmp_path: Path) -> None:
    ids = [*QUERIES, "q08"]
    bank = TestBank({q: tuple(RubricItem(f"item-{number}", q, "") for number in range(5)) for q in ids})
    grades = rubric_measures.load(graded(), bank=bank, grader="scale=0-5:4:3")
    said = ["8 of 45 items have no grade, so that nothing covers them", "1 query of 9 has no grade (such as q08)"]
    run = {**a_run(), "q08": {"d00": 1.0}}
    written = write_qrels(grades, tmp_path / "out.qrels")
    for notes in (board_of(grades, run).notes, evaluate(grades, run, COVER).notes, written.notes):
        assert [note.text for note in notes if "no grade" in note.text] == said


BANK = {
    "NuggetV@5": ({"importance": "okay"}, "none of 4 items is vital"),
    "WeightedCover@5": ({"weight": -1}, "none of 4 items has a positive weight"),
}


@pytest.mark.parametrize("measure", BANK)
def test_a_bank_that_leaves_nothing_to_score_by_is_named(measure: str) -> None:
    said, text = BANK[measure]
    items = [RubricItem(f"item-{number}", query, "", **said) for query in ("q00",) for number in range(4)]
    grades = rubric_measures.load(
        [row for row in graded() if row.query_id == "q00"], bank=TestBank({"q00": items}), grader="scale=0-5:4:3"
    )
    found = warnings(rubric_measures.score(grades, {"one": a_run()}, measure, notes=False))
    assert any(text in one for one in found), found


def test_qrels_and_agreement_have_notes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = graded(WRONG["all in 0 to 1"][0])
    # The level that covers on the scale, where none is named.
    written = write_qrels(rubric_measures.load(rows, grader="scale=0-5:4:3"), tmp_path / "out.qrels")
    assert [note.text for note in written.notes] == caplog.messages
    assert written.notes[-1].text.startswith("no grade reaches 4, the level of labels") and written.failed == 0
    caplog.clear()
    labels = [Qrel(query, doc, (n + m) % 3) for n, query in enumerate(QUERIES) for m, doc in enumerate(DOCS)]
    agreed = rubric_measures.agreement(labels, labels[6:], draws=Draws(0))
    assert "labels no document of 1 query (such as q00)" in agreed.notes[0].text
    assert [note.text for note in agreed.notes if note.is_warning] == caplog.messages


def run_of_odd_ranks(tmp_path: Path) -> str:
    """A run file whose rank column is turned round, with two tags and without a line end."""
    rows = [
        f"{query_id} Q0 {doc_id} {place} {place + 1} {'first' if query_id == 'q00' else 'other'}"
        for query_id in QUERIES
        for place, doc_id in enumerate(DOCS)
    ]
    (tmp_path / "odd.run").write_text("\n".join(rows))
    return str(tmp_path / "odd.run")


ODD = (
    "odd.run: the last line has no line end; is the file complete?",
    "odd.run: has 2 different tags; the run is called odd",
    "odd.run: the rank column disagrees with the scores in 8 queries (40 places); the scores count",
)


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, bool]]:
    return [(record.getMessage(), record.levelname == "WARNING") for record in caplog.records]


@pytest.mark.parametrize("form", ["path", "name", "qrels"])
def test_what_is_said_of_run_files_while_they_are_read_belongs_to_the_board(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = run_of_odd_ranks(tmp_path)
    labels = [Qrel(query, doc, (n + m) % 3) for n, query in enumerate(QUERIES[1:]) for m, doc in enumerate(DOCS)]
    qrels = labels if form == "qrels" else None
    caplog.set_level("INFO")
    board = rubric_measures.score(
        graded(), {"mine": path} if form == "name" else [path], f"{COVER} nDCG@10" if qrels else COVER, qrels=qrels
    )
    texts = [note.text.removeprefix(f"{tmp_path}/") for note in board.notes]
    assert tuple(texts[:3]) == ODD and all(note.is_warning for note in board.notes[:3])
    assert logged(caplog) == [(note.text, note.is_warning) for note in board.notes]
    if form == "qrels":
        said = "means are over different queries: 1 is only graded or only judged (such as q00)"
        assert (texts[3], board.notes[3].ids) == (said, ("q00",))
    caplog.clear()
    board.log_notes()
    assert not any(text.endswith(ODD) for text, _ in logged(caplog))


def test_qrels_note_failures_fractions_and_levels(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    query = query_of([("d1", "a", 2.5), ("d2", "b", 1)], failed=[("d1", "b"), ("d2", "a"), ("d3", "a")])
    written = write_qrels(Grades({"q": query}), tmp_path / "out.qrels")
    texts = [note.text for note in written.notes]
    assert texts == [
        "3 grades failed and are not in the qrels",
        "1 label has fractions, which trec_eval and others do not read; it needs whole ones",
    ]
    assert logged(caplog) == [(note.text, note.is_warning) for note in written.notes]
    caplog.clear()
    known = rubric_measures.load(graded(), grader="scale=0-5:4:3")
    written = write_qrels(known, tmp_path / "out.qrels", label="count")
    assert written.notes[0].text == "labels count the items graded 4 or better (the scale is 0 to 5)"
    assert logged(caplog) == [(note.text, note.is_warning) for note in written.notes]


def test_labels_without_ratings_and_places_of_one_rank_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    label = {"correctAnswered": True, "answer": "2", "llm": "m", "prompt_info": {"prompt_class": "Thomas"}}
    rows = [
        [query_id, [{"paragraph_id": one, "text": "t", "grades": [{**label, "self_rating": 2}], "paragraph_data": {
            "rankings": [{"method": "a", "paragraphId": one, "queryId": query_id, "rank": 1, "score": 1.0}]
        }} for one in DOCS]]
        for query_id in QUERIES
    ]  # fmt: skip
    path = tmp_path / "direct.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    notes = warnings(rubric_measures.score(path, measures="nDCG@3"))
    assert any("run a: nearly all documents have one score" in one for one in notes), notes
    assert "48 grade sets of a prompt that rates have no ratings (self_ratings)" in caplog.text


@pytest.mark.parametrize(
    ("run_ids", "queries", "alike"),
    [
        (("one", "other"), 8, "one and other"),
        (("one", "other", "third"), 8, "one and other and third"),
        (("one", "other"), 4, "one and other"),
        # So few may be answered alike by chance.
        (("one", "other"), 3, ""),
    ],
)
def test_the_same_answers_under_several_names_are_one_note(
    run_ids: tuple[str, ...], queries: int, alike: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    nugget = {"text": "a fact", "importance": "vital", "assignment": "support"}
    rows = [
        {"qid": query_id, "run_id": run_id, "answer_text": f"of {query_id}", "nuggets": [nugget]}
        for query_id in QUERIES[:queries]
        for run_id in run_ids
    ]
    path = tmp_path / "assignments.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    rubric_measures.score(path, measures="NuggetV")
    notes = [one.partition(": ")[2] for one in caplog.messages if "same answers" in one]
    assert notes == [f"runs {alike} give the same answers to all queries: is one another run?"] * bool(alike)
