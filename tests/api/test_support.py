"""Grading what citations support: pairs, texts from everywhere, statuses in the place of texts, and going on."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.cli import main
from rubric_measures.corpora.converting import convert
from rubric_measures.records.models import load_graded
from rubric_measures.review.app import open_review
from rubric_measures.review.queues import words_of
from rubric_measures.review.session import Review, export_review
from rubric_measures.review.store import CellKey
from tests.fault_server import running
from tests.support_data import line, write

DOCS = {
    "d1": "Boiling water is poured over green tea leaves.",
    "d2": "Tea comes from China.",
    "d3": "Nothing here.",
}
SENTENCES: list[tuple[str, list[Any]]] = [
    ("Boiling water is poured over green leaves.", [0, 1]),
    ("Tea comes from India.", [1]),
    ("It is nice.", []),
    ("Lost.", [9]),
    ("Unknown to all.", [2]),
    ("", [0]),
]


def report(run_id: str, sentences: list[tuple[str, list[Any]]] = SENTENCES, **more: object) -> dict[str, Any]:
    return {
        "metadata": {"run_id": run_id, "narrative_id": "t1"},
        "references": ["d1", "d2", "d9"],
        "answer": [{"text": text, "citations": cited} for text, cited in sentences],
        **more,
    }


@pytest.fixture
def docs(tmp_path: Path) -> str:
    lines = [{"doc_id": doc_id, "text": text} for doc_id, text in DOCS.items()]
    return write(tmp_path / "docs.jsonl", *lines)


def graded(path: str | Path) -> dict[tuple[str, str], tuple[int | None, str]]:
    """(document, item) -> grade and reason of the one grade set."""
    found: dict[tuple[str, str], tuple[int | None, str]] = {}
    for group in load_graded(path):
        for passage in group.passages:
            for entry in passage.exam_grades or ():
                grades = {one.item_id: one.self_rating for one in entry.self_ratings or ()}
                errors = entry.llm_response_errors or {}
                for item_id, _ in entry.answers:
                    found[passage.doc_id, item_id] = (grades.get(item_id), errors.get(item_id, ""))
    return found


def test_first_citations_are_judged_and_what_has_no_text_is_a_status(
    tmp_path: Path, docs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = write(tmp_path / "answers.jsonl", report("one"))
    out = str(tmp_path / "support.jsonl.gz")
    command = ["grade", "--support", answers, "--collection", docs, "--model", "lexical", "-o", out]
    assert main(command) == 1
    assert graded(out) == {
        ("d1", "one/0"): (2, ""),
        # "Tea", "comes" of three words: 67 %.
        ("d2", "one/1"): (1, ""),
        ("references[9]", "one/3"): (None, "there is no text of document references[9]"),
        ("d9", "one/4"): (None, "there is no text of document d9"),
        ("d1", "one/5"): (None, "the sentence has no text"),
    }
    assert "2 cited documents have no text (such as d9)" in capsys.readouterr().err
    grades = rubric_measures.load(out, on_failed="expected")
    board = rubric_measures.score(grades, measures="SupportPrecision SupportRecall", overall=False, notes=False)
    # J = 1, 1/2; U = 1; three pairs of five failed.
    assert board.cells["one"]["SupportPrecision"].mean == pytest.approx(1.5 / 2)
    assert board.cells["one"]["SupportRecall"].mean == pytest.approx(1.5 / 3)
    assert board.cells["one"]["SupportPrecision"].failed == 3
    # The output given again, with all citations: the pair that is new is asked for, and the failed ones stay failed.
    again = str(tmp_path / "again.jsonl.gz")
    assert main(["grade", "--support", out, "--citations", "all", "--model", "lexical", "-o", again]) == 1
    assert graded(again).keys() - graded(out).keys() == {("d2", "one/0")}
    # As a bank they are the sentences that have a text.
    capsys.readouterr()
    assert main(["convert", out, "--to", "bank", "-o", str(tmp_path / "bank.jsonl")]) == 0
    assert "1 sentence without text left out" in capsys.readouterr().err
    [entry] = map(json.loads, (tmp_path / "bank.jsonl").read_text().splitlines())
    assert len(entry["items"]) == 5
    # With the text that was missing it is complete but for what has none.
    rows = [{"doc_id": "d9", "text": "This is unknown to all."}]
    more = str(tmp_path / "more.jsonl.gz")
    extra = write(tmp_path / "extra.jsonl", *rows)
    assert main(["grade", "--support", again, "--collection", extra, "--model", "lexical", "-o", more]) == 1
    assert graded(more)["d9", "one/4"] == (2, "")


def test_texts_beside_the_answers_come_first(tmp_path: Path, docs: str, caplog: pytest.LogCaptureFixture) -> None:
    sentences: list[tuple[str, list[Any]]] = [("Tea comes from India.", ["d2"]), ("Rice grows.", ["d7"])]
    own = report("one", sentences, documents={"d2": {"title": "Tea", "text": "It comes from India."}})
    own["segments"] = {"d7": "Rice grows in water."}
    records = rubric_measures.grade_support(write(tmp_path / "answers.jsonl", own), docs, model="lexical")
    [group] = list(records)
    assert {one.doc_id: one.text for one in group.passages[1:]} == {
        "d2": "Tea: It comes from India.",
        "d7": "Rice grows in water.",
    }
    board = rubric_measures.score(records, overall=False, notes=False)
    assert board.cells["one"]["SupportPrecision"].mean == 1.0
    other = report("two", sentences[:1], documents={"d2": {"text": "Something else."}})
    # Tea is in the excerpt of one, and not in that of the other.
    both = [write(tmp_path / "a.jsonl", own), write(tmp_path / "b.jsonl", other)]
    records = rubric_measures.grade_support(both, model="lexical")
    assert "1 document (such as d2) has different texts in the answers" in caplog.text
    assert {one.doc_id.partition("@")[0]: "@" in one.doc_id for one in next(iter(records)).passages[2:]} == {
        "d2": True,
        "d7": False,
    }
    board = rubric_measures.score(records, overall=False, notes=False)
    assert {run: cells["SupportPrecision"].mean for run, cells in board.cells.items()} == {"one": 1.0, "two": 0.0}
    # Each answer has sentences of its own, which make two boards no others.
    boards = [rubric_measures.score(rubric_measures.grade_support(one, model="lexical"), notes=False) for one in both]
    assert rubric_measures.compare(*boards)["SupportPrecision"].means == {"one": 1.0, "two": 0.0}


def test_a_judge_that_knows_contradiction(tmp_path: Path, docs: str, caplog: pytest.LogCaptureFixture) -> None:
    rules = [
        {"contains": ["Statement: Tea comes from India."], "reply": "'contradiction'."},
        {"contains": ["Statement: Boiling"], "reply": "Full Support"},
        {"contains": ["Statement: Nice"], "reply": "Not full support."},
    ]
    script = write(tmp_path / "script.jsonl", *rules)
    sentences: list[tuple[str, list[Any]]] = [*SENTENCES[:2], ("Nice.", [1])]
    answers = write(tmp_path / "answers.jsonl", report("one", sentences))
    out = str(tmp_path / "support.jsonl.gz")
    options = ["--prompt", "SupportOrContradiction", "--retries", "0", "-o", out]
    assert main(["grade", "--support", answers, "--collection", docs, "--model", f"scripted:{script}", *options]) == 1
    found = graded(out)
    assert found["d1", "one/0"] == (2, "")
    assert found["d2", "one/1"] == (-2, "")
    # A sentence that holds a label is no label.
    assert found["d2", "one/2"][0] is None
    assert "is not one of Contradiction, No Support, Partial Support, Full Support alone" in found["d2", "one/2"][1]
    # The page where assessors grade offers what somebody can give: no -1.
    convert([out], tmp_path / "bank.jsonl", to="bank")
    review = open_review(out, str(tmp_path / "bank.jsonl"), state=str(tmp_path / "state.sqlite"))
    assert list(review.material.grade_names) == [-2, 0, 1, 2]
    review.store.close()
    grades = rubric_measures.load(out, on_failed="expected")
    board = rubric_measures.score(grades, measures="ContradictionRate SupportPrecision", overall=False, notes=False)
    assert board.cells["one"]["ContradictionRate"].mean == pytest.approx(1 / 2)
    assert board.cells["one"]["SupportPrecision"].mean == pytest.approx(1 / 2)


def test_assessors_correct_pairs_of_several_queries(tmp_path: Path, docs: str) -> None:
    second = {**report("one", SENTENCES[:3]), "metadata": {"run_id": "one", "narrative_id": "t2"}}
    answers, out = write(tmp_path / "answers.jsonl", report("one", SENTENCES[:3]), second), tmp_path / "s.jsonl.gz"
    assert main(["grade", "--support", answers, "--collection", docs, "--model", "lexical", "-o", str(out)]) == 0
    bank = str(tmp_path / "bank.jsonl")
    convert([out], bank, to="bank")
    review = open_review(str(out), bank, state=str(tmp_path / "state.sqlite"), assessor="ada")
    with closing(review.store) as store:
        cell = CellKey("t2", "d2", "one/1")
        assert words_of(store.snapshot(), cell, "") == "Tea comes from India."
        # A third of the words, and so 1, is what the grader said.
        store.grade("ada", cell, 2, review.material.grade(cell).grade)
        store.decide("ada", cell, "override", 2, "It is so.")
        store.edit_all("ada", [("item_edit", {"key": "t2 one/0", "importance": "vital"}, {"t2 one/0": 0})])
        before = rubric_measures.score(str(out), measures="SupportPrecision", notes=False).cells["one"]
        graded_after, bank_after = export_review(Review(review.material, store, bank), tmp_path / "corrected").paths[:2]
    kept = list(rubric_measures.load_bank(str(bank_after)))
    assert [(item.query_id, item.item_id) for item in kept] == [(t, f"one/{n}") for t in ("t1", "t2") for n in range(3)]
    assert [item.importance for item in kept] == [None, None, None, "vital", None, None]
    corrected = rubric_measures.load(str(graded_after), grader="assessors=override")
    after = rubric_measures.score(corrected, notes=False).cells["one"]["SupportPrecision"].mean
    assert after is not None and after > (before["SupportPrecision"].mean or 0)


def test_a_judge_behind_an_endpoint_is_asked_once(
    tmp_path: Path, docs: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    rules = [
        {"contains": ["Statement: Tea comes"], "reply": ["I think so", "No Support"]},
        {"contains": ["Statement: Boiling"], "reply": '"full support"'},
    ]
    answers = [write(tmp_path / f"{name}.jsonl", report(name, SENTENCES[:3])) for name in ("one", "two")]
    with running(replies=write(tmp_path / "replies.jsonl", *rules)) as server:
        options = ["--collection", docs, "--model", "openai:m", "--base-url", server.url]
        command = ["grade", "--support", *answers, *options, "--cache", str(tmp_path / "cache.sqlite")]
        assert main([*command, "--citations", "all", "-o", str(tmp_path / "first.jsonl")]) == 0
        asked = list(server.stats()["order"])
        # Both runs say the same of the same documents: three pairs, and one of them is asked twice.
        assert len(asked) == 4
        assert "Document: Tea comes from China." in asked[-1]
        capsys.readouterr()
        assert main([*command, "--citations", "2", "-o", str(tmp_path / "second.jsonl")]) == 0
        assert len(server.stats()["order"]) == 4
    assert "no calls" in capsys.readouterr().err
    found = graded(tmp_path / "first.jsonl")
    assert graded(tmp_path / "second.jsonl") == found
    assert {pair: grade for pair, (grade, _) in found.items() if pair[1].startswith("two")} == {
        ("d1", "two/0"): 2,
        ("d2", "two/0"): 2,
        ("d2", "two/1"): 0,
    }


def test_records_of_several_runs_are_one_grader_s(tmp_path: Path, docs: str) -> None:
    paths = []
    for run_id in ("one", "two"):
        answers = write(tmp_path / f"{run_id}.jsonl", report(run_id, SENTENCES[:3]))
        paths.append(str(tmp_path / f"{run_id}.jsonl.gz"))
        options = ["--collection", docs, "--model", "lexical", "-o", paths[-1]]
        assert main(["grade", "--support", answers, *options]) == 0
    convert(paths, tmp_path / "both.jsonl.gz", to="records")
    both = [str(tmp_path / f"{run_id}.jsonl") for run_id in ("one", "two")]
    together = rubric_measures.grade_support(both, docs, model="lexical")
    merged = rubric_measures.score(str(tmp_path / "both.jsonl.gz"), overall=False, notes=False)
    assert merged.cells == rubric_measures.score(together, overall=False, notes=False).cells
    convert([tmp_path / "both.jsonl.gz"], tmp_path / "bank.jsonl", to="bank")
    assert [item.text for item in rubric_measures.load_bank(str(tmp_path / "bank.jsonl"))][:2] == [
        SENTENCES[0][0],
        SENTENCES[1][0],
    ]


def test_labelled_answers_are_judged_by_a_model_too(
    tmp_path: Path, docs: str, caplog: pytest.LogCaptureFixture
) -> None:
    labelled = line("one", labels=(["2"], ["0"]))
    for sentence, text in zip(labelled["sentences"], ("Boiling water.", "Tea comes from China."), strict=True):
        sentence["text"], sentence["citations"][0]["reference"] = text, "d1"
    labels = write(tmp_path / "labels.jsonl", labelled)
    out = str(tmp_path / "both.jsonl.gz")
    assert main(["grade", "--support", labels, "--collection", docs, "--model", "lexical", "-o", out]) == 0
    [row] = rubric_measures.agreement(
        out, out, items=True, draws=rubric_measures.Draws(0), grader="support-labels", grader_b="lexical:1"
    ).rows
    assert (row.documents, row.statistics["exact_match"].estimate) == (2, 1.0)
    # The labels come from no review, where the model's grade would have been in sight.
    assert "settled with the grader's in sight" not in caplog.text


@pytest.mark.parametrize("measure", ["NuggetA", "RubricCover@5", "nDCG@10"])
def test_answers_whose_citations_alone_were_judged_have_no_zeros(
    measure: str, tmp_path: Path, docs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, out = write(tmp_path / "answers.jsonl", report("one")), str(tmp_path / "support.jsonl.gz")
    assert main(["grade", "--support", answers, "--collection", docs, "--model", "lexical", "-o", out]) == 1
    capsys.readouterr()
    assert main(["leaderboard", out, "-m", "SupportPrecision", measure, "--on-failed", "expected"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no answer has a grade, only what answers cite; name a measure of citations" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bank", "bank.jsonl"], "leave it out (--bank, --support)"),
        (["--passages-per-query", "1"], "leave it out (--passages-per-query, --support)"),
        (["--citations", "0"], "expected first, all, or"),
        (["--prompt", "LexicalCoverage"], "prompt LexicalCoverage does not judge what citations support"),
    ],
)
def test_settings_that_do_nothing_are_refused(
    tmp_path: Path, docs: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    answers = write(tmp_path / "answers.jsonl", report("one"))
    options = ["--collection", docs, "--model", "lexical", "-o", str(tmp_path / "out.jsonl")]
    assert main(["grade", "--support", answers, *options, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_bad_answers_are_one_line_each(tmp_path: Path, docs: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = write(tmp_path / "plain.jsonl", {"query_id": "t1", "run_id": "one", "text": "Tea."})
    twice = write(tmp_path / "twice.jsonl", report("one"), report("one"))
    other = write(tmp_path / "other.jsonl", report("one"))
    clash = write(tmp_path / "clash.jsonl", report("d1"))
    out = str(tmp_path / "out.jsonl")
    for files, message in (
        ([plain], "1 answer has no sentences, and so no citations"),
        ([twice], "one / t1 stands in line 1 already; keep one"),
        ([other, str(tmp_path / "other.jsonl")], "run 'one' answers query 't1' twice"),
        ([clash], "'d1' names a run and a document that is cited"),
    ):
        assert main(["grade", "--support", *files, "--collection", docs, "--model", "lexical", "-o", out]) == 2
        assert message in capsys.readouterr().err
    assert main(["grade", other, clash, "--model", "lexical", "-o", out]) == 2
    assert "several are answers, with --support" in capsys.readouterr().err
    assert json.loads((tmp_path / "other.jsonl").read_text(encoding="utf-8"))
    assert main(["grade", "--support", other, "--collection", docs, "--model", "lexical", "-o", other]) == 2
