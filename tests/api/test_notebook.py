"""What a notebook does: grades and runs of any form in, boards, frames, comparisons and figures out."""

from __future__ import annotations

import html
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ir_measures import Qrel, read_trec_run

import rubric_measures
from rubric_measures.api.files import check_board, write_qrels
from rubric_measures.base.errors import FormatError, InputError, MeasureError, RubricMeasuresError, UnknownNameError
from rubric_measures.boards.single import evaluate
from rubric_measures.cli import main
from rubric_measures.corpora.loading import PassageRecords
from rubric_measures.records.models import load_graded
from tests.example_records import write_all

COVER = "RubricCover(rel=4)@20"
NDCG = "RubricQrels(measure='nDCG@10')"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_all(tmp_path)


@pytest.mark.usefixtures("folder")
def test_runs_of_every_form_score_alike() -> None:
    pandas = pytest.importorskip("pandas")
    grades = rubric_measures.load("graded.jsonl.gz", "bank.jsonl")
    board = rubric_measures.score(grades, ["alpha.run", Path("beta.run")], [COVER, "nDCG@10"])
    # alpha covers a and b of the four items of q1, the item of q2 and none of q3; beta covers b of q1.
    assert {run: row[COVER].mean for run, row in board.cells.items()} == {
        "alpha": pytest.approx((0.5 + 1 + 0) / 3),
        "beta": pytest.approx(0.25 / 3),
    }
    rows = {name: list(read_trec_run(f"{name}.run")) for name in ("alpha", "beta")}
    nested: dict[str, dict[str, dict[str, float]]] = {"alpha": {}, "beta": {}}
    for name, docs in rows.items():
        for doc in docs:
            nested[name].setdefault(doc.query_id, {})[doc.doc_id] = doc.score
    frames = {name: pandas.DataFrame(docs) for name, docs in rows.items()}
    with open("alpha.run", "rb") as alpha, open("beta.run", encoding="utf-8") as beta:
        opened = rubric_measures.score(grades, [alpha, beta], [COVER, "nDCG@10"])
    for runs in (rows, nested, frames):
        assert rubric_measures.score(grades, runs, [COVER, "nDCG@10"]).values == board.values
    assert opened.values == board.values
    files: Any = (f"{name}.run" for name in ("alpha", "beta"))
    assert rubric_measures.score(grades, files, [COVER, "nDCG@10"]).values == board.values
    table: Any = ({"query_id": one.query_id, "doc_id": one.doc_id, "score": one.score} for one in rows["beta"])
    assert list(rubric_measures.score(grades, table, COVER, overall=False).values) == ["run 1"]
    # Runs without names are counted, and one run needs no list.
    assert rubric_measures.score(grades, nested["beta"], COVER, overall=False).values == {
        "run 1": {COVER: board.values["beta"][COVER]}
    }
    assert rubric_measures.score(grades, "beta.run", COVER, overall=False).ranking() == ["beta"]


@pytest.mark.usefixtures("folder")
def test_grades_of_every_form_score_alike() -> None:
    pytest.importorskip("pandas")
    grades = rubric_measures.load("graded.jsonl.gz", "bank.jsonl")
    board = rubric_measures.score(grades, "alpha.run", COVER)
    with open("graded.jsonl.gz", "rb") as stream:
        opened = rubric_measures.load(stream, rubric_measures.load_bank("bank.jsonl"))
    for same in (opened, rubric_measures.load(load_graded("graded.jsonl.gz"), "bank.jsonl"), grades.to_dataframe()):
        assert rubric_measures.score(same, "alpha.run", COVER).values == board.values
    write_qrels(grades, "items.qrels", per="item")
    assert rubric_measures.score("items.qrels", "alpha.run", COVER).values == board.values


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("measures", ["alpha_nDCG@5 StRecall@3", f"{COVER} nDCG@10"])
def test_one_run_of_every_form_is_evaluated_alike(measures: str) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [Qrel(query, doc, (len(query + doc) * 7 + ord(doc[-1])) % 6, item)
            for query in ("q1", "q2") for doc in ("d1", "d2", "d3") for item in "ab"]  # fmt: skip
    lines = [f"{row.query_id} {row.iteration} {row.doc_id} {row.relevance}\n" for row in rows]
    Path("items.qrels").write_text("".join(lines), encoding="utf-8")
    run = list(read_trec_run("alpha.run"))
    how: dict[str, Any] = {"grader": "scale=0-5:4"} if "Cover" in measures else {}
    expected = evaluate("items.qrels", "alpha.run", measures, **how).means
    with open("items.qrels", "rb") as qrels, open("alpha.run", "rb") as opened:
        for grades in (rows, iter(rows), pandas.DataFrame(rows), qrels):
            assert evaluate(grades, run, measures, **how).means == expected
        for one in (run, pandas.DataFrame(run), opened, {"a": run}):
            assert evaluate(rows, one, measures, **how).means == expected


@pytest.mark.usefixtures("folder")
def test_loaded_grades_come_back_as_they_are_and_keep_how_failures_count() -> None:
    pytest.importorskip("pandas")
    of_records = rubric_measures.load("graded.jsonl.gz", "bank.jsonl", on_failed="zero")
    of_items = rubric_measures.load(of_records.to_dataframe(), "bank.jsonl")
    for grades in (of_records, of_items):
        assert rubric_measures.load(grades) is grades
        with pytest.raises(InputError, match="how failed grades count is chosen where they are loaded"):
            rubric_measures.load(grades, on_failed="zero")
        assert rubric_measures.load(grades, "bank.jsonl").on_failed_given == grades.on_failed_given
        with pytest.raises(InputError, match="no grade sets to choose by"):
            rubric_measures.load(grades, grader="other")


@pytest.mark.usefixtures("folder")
def test_what_a_board_gives() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    grades = rubric_measures.load("graded.jsonl.gz", "bank.jsonl")
    assert repr(grades) == "<Grades of graded.jsonl.gz>"
    board = rubric_measures.score(grades, ["alpha.run", "beta.run"], [COVER, "nDCG@10"])
    assert repr(board) == f"<Board of 2 runs by {COVER}, {NDCG}>"
    assert str(board).splitlines()[0].split() == ["run", COVER, NDCG, "grades"]
    frame = board.to_dataframe()
    assert (list(frame.index), list(frame.columns)) == (["alpha", "beta"], [COVER, NDCG])
    assert frame.loc["beta", COVER] == pytest.approx(0.25 / 3)
    by_query = board.to_dataframe(per_query=True)
    assert list(by_query.columns) == ["run", "query_id", "measure", "value"]
    assert len(by_query) == 2 * 2 * 3
    compared = board.compare(baseline="beta")
    assert list(compared) == [COVER, NDCG]
    assert compared[COVER].pairs[0].test.mean_difference == pytest.approx((0.25 + 1 + 0) / 3)
    assert str(compared).startswith("not told apart from beta: alpha\n")
    assert list(compared.to_dataframe()["run"]) == ["alpha", "alpha"]
    drawn = board.plot("board.pdf")
    assert Path("board.pdf").read_bytes().startswith(b"%PDF")
    # What stands last in a cell is shown: tables, and pictures that nobody wrote.
    assert "<th>run</th>" in board._repr_html_() and "<td>alpha</td>" in board._repr_html_()
    assert compared._repr_html_().count("<table>") >= 2 and "not told apart from beta: alpha" in compared._repr_html_()
    assert [type(one).__name__ for one in (drawn, board.plot(), compared.plot())] == ["Figure"] * 3
    assert sorted(map(str, Path().glob("*.pdf"))) == ["board.pdf"]


@pytest.mark.usefixtures("folder")
def test_what_stands_last_in_a_cell_is_shown_with_what_it_says() -> None:
    bank = rubric_measures.load_bank("bank.jsonl")
    grades = rubric_measures.load("graded.jsonl.gz", bank)
    board = rubric_measures.score(grades, ["alpha.run", "beta.run"], COVER)
    for one, said, drawn in (
        (bank, "6 items of 3 queries", "queries of 1 item"),
        (grades, "7 grades of 6 items, 0 failed; 3 items are covered by some passage (grade 4 or more)", "grade 5"),
        (board, f"highest {COVER}: alpha; compare() says which runs differ", ">beta</text>"),
        (board.compare(baseline="beta"), "not told apart from beta: alpha", ">alpha</text>"),
    ):
        page = one._repr_html_()
        assert f"<b>{said}</b>" in page and drawn in page and page.count("<svg") == 1 and "<table>" in page


def test_names_and_texts_are_no_markup_in_a_notebook() -> None:
    bad = "<script>alert('&')</script>"
    item = rubric_measures.RubricItem("a", bad, bad, "nugget", facet_id=bad)
    bank = rubric_measures.TestBank({bad: (item,)}, {bad: bad})
    grades = rubric_measures.load([rubric_measures.Grade(bad, bad, 5, "a")], bank)
    runs = {bad: {bad: {bad: 1.0}}, f"{bad}2": {bad: {"other": 1.0}}}
    board = rubric_measures.score(grades, runs, COVER)
    made = rubric_measures.evaluate_answers(
        [{"question": bad, "answer": bad, "reference": f"{bad} is blue.", "run": bad}], model="lexical"
    )
    diff = made.against(made)
    said = f"0 facts gained, 0 lost, 1 missed by both; {bad} against {bad} before: "
    assert said in html.unescape(diff._repr_html_())
    assert repr(made) == f"<EvaluatedAnswers of {bad}>" and repr(diff) == "<FactDiff>"
    if importlib.util.find_spec("matplotlib"):
        assert type(made.plot()).__name__ == "Figure"
    for one in (bank, grades, board, board.compare(), made, diff):
        assert "<script" not in one._repr_html_() and "&lt;script&gt;" in one._repr_html_()


@pytest.mark.usefixtures("folder")
def test_a_kept_board_is_the_board() -> None:
    """Byte for byte what the command writes; and it goes wherever a board goes."""
    runs = ["alpha.run", "beta.run"]
    grades = rubric_measures.load("graded.jsonl.gz", "bank.jsonl")
    board = rubric_measures.score(grades, runs, [COVER, "nDCG@10"])
    board.save("saved.json")
    given = ["leaderboard", "graded.jsonl.gz", *runs, "--bank", "bank.jsonl", "-m", COVER, "nDCG@10"]
    assert main([*given, "-o", "written.json"]) == 0
    assert Path("saved.json").read_bytes() == Path("written.json").read_bytes()
    with open("saved.json", "rb") as stream:
        kept = rubric_measures.load_board(stream)
    assert rubric_measures.load_board(kept) is kept
    kept.save("again.json")
    assert Path("again.json").read_bytes() == Path("saved.json").read_bytes()
    for form in ("text", "tsv", "json", "jsonl", "latex", "markdown"):
        assert kept.render(form) == board.render(form)
    assert kept._repr_html_() == board._repr_html_()
    assert str(kept.compare(baseline="beta")) == str(board.compare(baseline="beta"))
    assert str(rubric_measures.correlate(kept, board)) == str(rubric_measures.correlate(board, board))
    for one in (kept, board):
        assert check_board(one, grades, runs).holds
    if importlib.util.find_spec("matplotlib"):
        assert type(kept.plot()).__name__ == "Figure"


@pytest.mark.parametrize("change, said", [
    (lambda content: content["runs"].append(content["runs"][0]), "has a run twice, or one without a measure"),
    (lambda content: content["runs"][0]["measures"].popitem(), "has a run twice, or one without a measure"),
    (lambda content: content["runs"][0]["measures"][COVER].update(mean="high"), "mean: expected a number"),
    (lambda content: content["runs"][0].update(measures={COVER: {"mean": "high"}, "y": {}}), "mean: expected a number"),
    (lambda content: content.update(format="other"), "is no leaderboard as JSON; write one with the output form json"),
])  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_a_board_that_contradicts_itself_is_none(change: Callable[[Any], object], said: str) -> None:
    rubric_measures.score("graded.jsonl.gz", "alpha.run", COVER).save("board.json")
    content = json.loads(Path("board.json").read_text(encoding="utf-8"))
    change(content)
    Path("board.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FormatError, match=rf"^board\.json: .*{said}"):
        rubric_measures.load_board("board.json")


@pytest.mark.usefixtures("folder")
def test_errors_name_parameters() -> None:
    grades = rubric_measures.load("graded.jsonl.gz")
    with pytest.raises(InputError, match="no grade sets to choose by") as refused:
        rubric_measures.load("qrels.txt", grader="model")
    assert refused.value.settings == ("grader",)
    with pytest.raises(UnknownNameError, match="RubricCover"):
        rubric_measures.score(grades, "alpha.run", "RubricCovr")
    with pytest.raises(UnknownNameError, match="alpha"):
        rubric_measures.score(grades, ["alpha.run", "beta.run"], COVER).compare(baseline="alfa")
    with pytest.raises(MeasureError, match="no rubric items"):
        rubric_measures.load({"q1": {"d1": 1}})  # type: ignore[arg-type]
    with pytest.raises(RubricMeasuresError, match="no grades for"):
        rubric_measures.score(rubric_measures.load("graded.jsonl.gz", grader="other"), "alpha.run", COVER)


@pytest.mark.usefixtures("folder")
def test_what_one_function_gives_another_takes() -> None:
    bank = rubric_measures.load_bank("bank.jsonl")
    assert rubric_measures.load_bank(bank) is bank
    rubric_measures.convert("graded.jsonl.gz", "of_file.csv", bank=bank)
    alone = PassageRecords(load_graded("graded.jsonl.gz"))
    with open("graded.jsonl.gz", "rb") as stream:
        found = [rubric_measures.agreement(one).rows[0].statistics for one in ("graded.jsonl.gz", alone, stream)]
    assert found == [found[0]] * 3
    rubric_measures.convert(alone, "of_records.csv", to="csv", bank=bank)
    assert Path("of_records.csv").read_text() == Path("of_file.csv").read_text() != ""
    board = rubric_measures.score("graded.jsonl.gz", ["alpha.run", "beta.run"], [COVER, "nDCG@10"])
    # A standard measure is found by the name that scoring was asked for.
    assert list(rubric_measures.compare(board, measures="nDCG@10")) == [NDCG]
    assert list(board.compare(measures="nDCG@10")) == [NDCG]


@pytest.mark.usefixtures("folder")
def test_what_a_function_does_not_take_is_one_line() -> None:
    grades: Any = rubric_measures.load("graded.jsonl.gz", "bank.jsonl")
    board: Any = rubric_measures.score(grades, "alpha.run", COVER)
    wrong: Any = 42
    for call in (
        lambda: rubric_measures.tournament(board),
        lambda: rubric_measures.tournament(wrong),
        lambda: rubric_measures.load_bank(wrong),
        lambda: rubric_measures.load(wrong),
        lambda: rubric_measures.load(None),
        lambda: rubric_measures.evaluate_answers(wrong, model="lexical"),
        lambda: rubric_measures.load("graded.jsonl.gz", wrong),
        lambda: rubric_measures.pool(wrong, "graded.jsonl.gz"),
        lambda: rubric_measures.score(grades, wrong),
        lambda: rubric_measures.convert(wrong, "out"),
        lambda: rubric_measures.compare(wrong),
        lambda: rubric_measures.correlate(wrong, board),
        lambda: evaluate(grades, wrong, COVER),
    ):
        with pytest.raises(InputError, match=r"^(cannot (read|score) |42 is no )"):
            call()


@pytest.mark.parametrize("thing", [42, None, [3], b"x"])
def test_an_argument_that_is_none_is_named_with_what_it_takes(thing: Any) -> None:
    """Each of these was a bare TypeError or AttributeError of Python."""
    grades = rubric_measures.load([rubric_measures.Grade("q1", "d1", 5, "a")])
    run = {"one": {"q1": {"d1": 1.0}}}
    board = rubric_measures.score(grades, run, COVER)
    if thing is not None:
        with pytest.raises(InputError, match=r"^measures: .* is no measure; give names, as 'RubricCover@20', or"):
            rubric_measures.score(grades, run, thing)
        with pytest.raises(InputError, match=r"^.* is no collection; give a folder, a file, an id of ir_datasets"):
            rubric_measures.pool(run, thing)
        with pytest.raises(InputError, match=r"^path: .* is no file name; a figure is written as \.pdf, \.svg, \.png$"):
            board.plot(thing)
    with pytest.raises(InputError, match=r"^passages: .* is neither a file nor records; give what `pool` returns"):
        rubric_measures.grade(42, rubric_measures.TestBank({"q1": ()}), model="lexical")  # type: ignore[arg-type]
    if isinstance(thing, list):
        with pytest.raises(InputError, match=r"^a grade is a row with query_id, doc_id, relevance and iteration; fou"):
            rubric_measures.load(thing)
