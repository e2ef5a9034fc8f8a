"""Answers in a table, graded and scored in one call: banks from references and questions, several systems, resuming."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Calls
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.corpora.collections import example_folder
from rubric_measures.grading.asking import Asking
from rubric_measures.models import Reply, Request
from tests.example_records import bank_from_items
from tests.function_backend import FunctionBackend

QUESTION = "Why is the sky blue?"
REFERENCE = "Air scatters blue light most. Our eyes see little violet."
ROWS = [
    {"question": QUESTION, "system": "good", "answer": "Air scatters blue light most, and eyes see little violet."},
    {"question": QUESTION, "system": "half", "answer": "Air scatters blue light most."},
]
WITH_REFERENCE = [{**row, "reference": REFERENCE} for row in ROWS]


def scripted(folder: Path, *rules: dict[str, Any]) -> str:
    path = folder / "model.jsonl"
    path.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    return f"scripted:{path}"


def means(result: Any) -> dict[str, float | None]:
    measure = result.board.measures[0]
    return {run: cells[measure].mean for run, cells in result.board.cells.items()}


def test_the_example_from_a_table_to_scores(tmp_path: Path) -> None:
    result = rubric_measures.evaluate_answers(example_folder() / "answers.csv", model="lexical", output=tmp_path / "r")
    assert result.is_complete
    assert result.board.ranking() == ["thorough", "concise", "fluent-but-empty"]
    assert result.bank.query_texts["q01"] == "why do leaves change colour in autumn"
    assert {item.importance for item in result.bank} == {"vital"}
    board = json.loads((tmp_path / "r" / "board.json").read_text(encoding="utf-8"))
    assert board["runs"][0]["run_id"] == "thorough"
    for same in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert (same.bank, same.board.values) == (result.bank, result.board.values)
    # What lies there says the same again.
    kept = rubric_measures.load(tmp_path / "r" / "graded.jsonl.gz", tmp_path / "r" / "bank.csv")
    assert rubric_measures.score(kept, None, result.board.measures, overall=False).values == result.board.values


def test_an_edited_bank_is_used_again_and_new_questions_join_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rubric_measures.evaluate_answers(WITH_REFERENCE, model="lexical", output=tmp_path)
    bank = tmp_path / "bank.csv"
    text = bank.read_text(encoding="utf-8")
    edited = "\n".join(line for line in text.split("\n") if "violet" not in line)
    bank.write_text(edited + edited.split("\n")[1] + "\n", encoding="utf-8")
    found = rubric_measures.evaluate_answers(WITH_REFERENCE, model="lexical", bank=bank, output=tmp_path)
    assert means(found) == {"good": 1, "half": 1}
    assert caplog.text.count("1 item comes twice in its query; the first is kept") == 1
    assert "is replaced" not in caplog.text
    # A row that somebody adds without its importance takes V and W away.
    bank.write_text(f"{text.rstrip()}\nq01,q01/x,It is new.,nugget,,,,,\n", encoding="utf-8")
    assert (
        rubric_measures.evaluate_answers(WITH_REFERENCE, model="lexical", bank=bank).board.measures[0][:7] == "NuggetA"
    )
    assert "1 item of the bank without importance (such as 'It is new.' of query q01), so there are no" in caplog.text
    bank.write_text(edited, encoding="utf-8")
    more = [*WITH_REFERENCE, {"question": "How tall is it?", "system": "half", "answer": "x", "reference": "Not tall."}]
    result = rubric_measures.evaluate_answers(more, model="lexical", output=tmp_path)
    assert {query_id: len(items) for query_id, items in result.bank.items.items()} == {"q01": 1, "q02": 1}
    # Another bank would replace what was edited.
    other = bank_from_items([rubric_measures.RubricItem("q01/a", "q01", "Blue.", "nugget")])
    with pytest.raises(InputError, match="holds another bank, perhaps edited"):
        rubric_measures.evaluate_answers(WITH_REFERENCE, model="lexical", bank=other, output=tmp_path)


def test_a_model_finds_nuggets_in_references_and_asks_nothing_twice(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        {"contains": ["Initial Nugget List"], "reply": '["air scatters blue light", "eyes see little violet"]'},
        {"contains": ["vital"], "reply": '["vital", "okay"]'},
        {"contains": ["violet", "and eyes see"], "reply": "5"},
        {"contains": ["air scatters"], "reply": "4"},
        {"reply": "0"},
    )
    told: list[Any] = []
    given: dict[str, Any] = {"model": model, "output": tmp_path / "r", "progress": told.append}
    result = rubric_measures.evaluate_answers(WITH_REFERENCE, **given)
    assert [(item.text, item.importance) for item in result.bank] == [
        ("air scatters blue light", "vital"),
        ("eyes see little violet", "okay"),
    ]
    assert result.board.measures[0].startswith("NuggetV")
    again = rubric_measures.evaluate_answers(WITH_REFERENCE, **given)
    assert again.records.report.run.calls == 0
    assert again.board.values == result.board.values


def test_a_bank_whose_importance_cannot_be_read_is_not_kept(tmp_path: Path) -> None:
    rules = {"Initial Nugget List": '["air scatters blue light"]', "vital": "no idea", "": "5"}
    backend = FunctionBackend(
        lambda request: next(reply for words, reply in rules.items() if words in str(request.messages))
    )
    with pytest.raises(InputError, match=r"1 call for the test bank led to nothing, and no bank is kept; run again"):
        rubric_measures.evaluate_answers(WITH_REFERENCE, model=backend, output=tmp_path)
    assert not (tmp_path / "bank.csv").exists()
    rules["vital"], asked = '["vital"]', len(backend.seen)
    found = rubric_measures.evaluate_answers(WITH_REFERENCE, model=backend, output=tmp_path)
    assert {item.importance for item in found.bank} == {"vital"}
    # The nuggets are in the cache, their importance is asked for anew.
    assert sum("Initial Nugget List" in str(request.messages) for request in backend.seen[asked:]) == 0


@pytest.mark.parametrize("per_call", [1, "all"])
def test_grades_that_are_there_stay_where_others_are_asked_anew(tmp_path: Path, per_call: Any) -> None:
    bank = bank_from_items([rubric_measures.RubricItem(f"q/{text}", "q", text, "nugget") for text in ("red", "blue")])
    blue = iter(["hm", "3", "5"])
    backend = FunctionBackend(
        lambda request: "hm" if "red" in str(request.messages) else next(blue), model="function:prose"
    )
    given: Any = {"bank": bank, "model": backend, "output": tmp_path / "r", "on_failed": "zero"}
    rows = [{"question": "Why?", "query_id": "q", "answer": "So."}]
    asking = Asking(items_per_call=per_call)
    first, second = (rubric_measures.evaluate_answers(rows, asking=asking, **given) for _ in range(2))
    assert first.records.report.ungraded == second.records.report.ungraded == {"unparsed": 1}
    assert second.board.values == first.board.values
    # Both draws of the item without a grade, and nothing else.
    assert second.records.report.run.calls == 2


def test_a_question_that_a_model_refuses_is_named_and_not_asked_for_anew(tmp_path: Path) -> None:
    backend = FunctionBackend(
        lambda request: Reply(None, "refused", "no") if "sky" in str(request.messages) else '["How high?"]'
    )
    rows = [*ROWS, {"question": "How tall?", "system": "good", "answer": "x"}]
    for _ in range(2):
        with pytest.raises(
            InputError, match=r"for 1 query \(such as .*\); name a bank, or make it from something else"
        ):
            rubric_measures.evaluate_answers(rows, model=backend, output=tmp_path, bank_from="questions")
    assert len(backend.seen) == 2


def test_case_and_the_mark_at_the_end_make_no_other_question() -> None:
    rows = [WITH_REFERENCE[0], {**WITH_REFERENCE[1], "question": "why is the  SKY blue "}]
    assert list(rubric_measures.evaluate_answers(rows, model="lexical").bank.query_texts.values()) == [QUESTION]


def test_questions_alone_make_a_bank_of_questions(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        {"contains": ["into concise questions"], "reply": '{"questions": ["What scatters light?"]}'},
        {"reply": "5"},
    )
    result = rubric_measures.evaluate_answers(ROWS, model=model)
    assert [item.kind for item in result.bank] == ["question"]
    assert means(result) == {"good": 1, "half": 1}
    for source, said in ((None, "no reference answer"), ("questions", "asks no questions")):
        with pytest.raises(InputError, match=said):
            rubric_measures.evaluate_answers(ROWS, model="lexical", bank_from=source)  # type: ignore[arg-type]
    # What Python writes into a table where there is nothing is no fact.
    written = [{**row, "reference": str(None)} for row in ROWS]
    with pytest.raises(InputError, match="no reference answer"):
        rubric_measures.evaluate_answers(written, model="lexical")


class Counting:
    """A model of one's own: it writes the bank's questions, and grades by how many words of one an answer has."""

    model = "counting:1"
    options: Mapping[str, object] = {}
    context_tokens = None

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        for request in requests:
            shown = request.messages[-1].content
            asks = "into concise questions" in shown
            yield (
                request,
                Reply('{"questions": ["Do eyes see violet?"]}' if asks else "5" if "little" in shown else "1"),
            )


def test_a_model_of_ones_own_makes_the_bank_and_grades(tmp_path: Path) -> None:
    result = rubric_measures.evaluate_answers(ROWS, model=Counting(), output=tmp_path)
    assert [item.text for item in result.bank] == ["Do eyes see violet?"]
    assert means(result) == {"good": 1, "half": 0}
    again = rubric_measures.evaluate_answers(ROWS, model=Counting(), output=tmp_path, calls=Calls(max_calls=0))
    assert means(again) == means(result) and again.records.report.run.cached == 2
    with pytest.raises(InputError, match="base_url: a backend has its settings already"):
        rubric_measures.evaluate_answers(ROWS, model=Counting(), calls=Calls(base_url="http://localhost"))


def test_a_bank_is_found_by_ids_or_by_texts(tmp_path: Path) -> None:
    item = rubric_measures.RubricItem("sky/a", "sky", "Air scatters blue light most", "nugget", importance="vital")
    bank = bank_from_items([item], {"sky": "Why  is the sky blue?"})
    assert means(rubric_measures.evaluate_answers(ROWS, model="lexical", bank=bank)) == {"good": 1, "half": 1}
    with_ids = [{**row, "query_id": "sky", "question": "Blue sky?"} for row in ROWS]
    assert means(rubric_measures.evaluate_answers(with_ids, model="lexical", bank=bank)) == {"good": 1, "half": 1}
    with pytest.raises(InputError, match="no items for 1 query"):
        rubric_measures.evaluate_answers([{**ROWS[0], "question": "Why?"}], model="lexical", bank=bank)


def test_files_are_systems(tmp_path: Path) -> None:
    for name, rows in (("v1", WITH_REFERENCE[:1]), ("v2", WITH_REFERENCE[1:])):
        text = "".join(json.dumps({**row, "system": "gpt"}) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    files = [tmp_path / "v1.jsonl", tmp_path / "v2.jsonl"]
    assert means(rubric_measures.evaluate_answers(files, model="lexical")) == {"v1": 1, "v2": 0.5}
    named = {"a": [{**ROWS[0], "system": "", "reference": REFERENCE}], "b": [{**ROWS[1], "system": ""}]}
    assert means(rubric_measures.evaluate_answers(named, model="lexical")) == {"a": 1, "b": 0.5}
    with pytest.raises(InputError, match="given twice"):
        rubric_measures.evaluate_answers([files[0], files[0]], model="lexical")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [*WITH_REFERENCE, WITH_REFERENCE[0]],
            "good answers 'Why is the sky blue?' a second time (before: the answers:1)",
        ),
        ([WITH_REFERENCE[0], {**WITH_REFERENCE[1], "reference": "Paint."}], "has another reference answer"),
        (
            [{**WITH_REFERENCE[0], "query_id": 1}, {**WITH_REFERENCE[1], "query_id": 2}],
            "'Why is the sky blue?' has the id 1, and 'Why is the sky blue?' the id 2; an id is",
        ),
        (
            [{**WITH_REFERENCE[0], "query_id": 1}, {**WITH_REFERENCE[1], "query_id": 1, "question": "Why?"}],
            "'Why is the sky blue?' has the id 1, and 'Why?' the id 1; an id is that of a query",
        ),
    ],
)
def test_what_contradicts_is_refused(rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(FormatError) as caught:
        rubric_measures.evaluate_answers(rows, model="lexical")
    assert said in str(caught.value)


def test_ids_of_rows_are_no_ids_of_questions() -> None:
    rows = [{**row, "id": number} for number, row in enumerate(WITH_REFERENCE)]
    result = rubric_measures.evaluate_answers(rows, model="lexical")
    assert list(result.bank.items) == ["q01"]
    assert means(result) == {"good": 1, "half": 0.5}


def test_contexts_show_whether_what_is_missing_was_retrieved(tmp_path: Path) -> None:
    contexts = ["Air is thin.", "Our eyes see little violet."]
    more = {"question": "How tall is it?", "reference": "It is tall. It is wide."}
    rows = [
        {**WITH_REFERENCE[1], "contexts": contexts},
        {**more, "system": "half", "answer": "It is tall.", "contexts": ["Nothing."]},
        # Nothing is missed here, and nothing was retrieved there.
        {**WITH_REFERENCE[0], "contexts": contexts},
        {**more, "system": "good", "answer": "It is tall.", "contexts": []},
    ]
    result = rubric_measures.evaluate_answers(rows, model="lexical", contexts=True, output=tmp_path)
    assert means(result) == {"half": 0.5, "good": 0.75}
    names = {item.item_id: item.text for item in result.bank}
    assert {(names[item], run): has for (_, item, run), has in result.retrieved.items()} == {
        ("Our eyes see little violet.", "half"): True,
        ("It is wide.", "half"): False,
    }
    graded = rubric_measures.load(tmp_path / "contexts.jsonl.gz").queries
    # Two contexts for one fact, and one for one.
    assert [query.grades.shape for query in graded.values()] == [(2, 1), (1, 1)]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "retrieved, not said" in page and "half: not retrieved" in page and "Empty and missing answers" not in page
    with pytest.raises(AssertionError, match=r"Our eyes see little violet. \(vital, grade \d, retrieved, not said\)"):
        result.assert_at_least("NuggetV", 1, "half")
    before = rubric_measures.evaluate_answers([{**one, "answer": REFERENCE} for one in rows[:1]], model="lexical")
    assert "retrieved, not said" in str(result.against(before, "half"))
    with pytest.raises(InputError, match="no retrieved contexts"):
        rubric_measures.evaluate_answers(WITH_REFERENCE, model="lexical", contexts=True)


def test_a_context_that_just_covers_a_fact_has_it(tmp_path: Path) -> None:
    """The grade 4 covers on the scale 0 to 5: of an answer, and of what was retrieved for it."""
    model = scripted(tmp_path, {"contains": ["little violet"], "reply": "4"}, {"reply": "2"})
    row = {"id": "q1", "question": QUESTION, "system": "half", "answer": "Air scatters."}
    bank = [{"query_id": "q1", "text": "What of the eyes?", "kind": "question"}]
    result = rubric_measures.evaluate_answers(
        [{**row, "contexts": ["Our eyes see little violet."]}],
        bank=bank,
        model=model,
        contexts=True,
        prompt="QuestionSelfRatedUnanswerablePromptWithChoices",
        output=tmp_path / "out",
    )
    assert means(result) == {"half": 0}
    assert list(result.retrieved.values()) == [True]


OPPOSITE = """
name = "SaidOrOpposite"
target = "nugget"
parser = "phrase"
scale = [-2, 1]
labels = ["Opposite", "", "Missing", "Said"]
covers = 1
text = "Does the answer say the fact? Reply with Said, Missing or Opposite. Fact: {nugget} Answer: {context}"
"""


def test_a_fact_whose_opposite_an_answer_says_is_said_wrongly(tmp_path: Path) -> None:
    """Where a prompt asks for it: in the page, in what a test prints, and in what two versions lose."""
    (tmp_path / "opposite.toml").write_text(OPPOSITE, encoding="utf-8")
    replies = (
        {"contains": ["Tea steeps", "never"], "reply": "Opposite"},
        {"contains": ["Tea steeps"], "reply": "Said"},
    )
    lines = [json.dumps(reply) for reply in (*replies, {"reply": "Missing"})]
    (tmp_path / "model.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    items = [
        rubric_measures.RubricItem(name, "q", text, "nugget", importance="vital")
        for name, text in (("a", "Tea steeps."), ("b", "B."))
    ]

    def evaluated(answer: str, output: str) -> Any:
        return rubric_measures.evaluate_answers(
            [{"query_id": "q", "question": "What is tea?", "answer": answer}],
            model=f"scripted:{tmp_path / 'model.jsonl'}",
            prompt=str(tmp_path / "opposite.toml"),
            bank=bank_from_items(items),
            output=tmp_path / output,
        )

    before, after = evaluated("It steeps.", "before"), evaluated("It never does.", "after")
    assert [(one.state, one.retrieval) for one in after.against(tmp_path / "before").rows] == [
        ("lost", "said wrongly"),
        ("missed by both", ""),
    ]
    assert "said wrongly" in str(after.against(before)) and "said wrongly" in after.page.read_text(encoding="utf-8")
    with pytest.raises(AssertionError, match=r"Tea steeps. \(vital, grade -2, said wrongly\)\n.*B. \(vital, grade 0\)"):
        after.assert_at_least("NuggetV", 0.5)
