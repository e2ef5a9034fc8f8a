"""Generated test banks: prompts by topic, ids, duplicates, failures beside the bank."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.grading.generation import BankQuery, generate_bank, query_messages
from rubric_measures.grading.nuggetization import Failure
from rubric_measures.models.base import Reply, Request
from rubric_measures.types.entities import RubricItem, make_item_id
from tests.function_backend import FunctionBackend, caller_of


def scripted(replies: dict[str, str]) -> Callable[[Request], str | Reply]:
    """Answers by the first key that occurs in the prompt."""

    def answer(request: Request) -> str | Reply:
        text = request.messages[-1].content
        return next((reply for key, reply in replies.items() if key in text), Reply(None, "refused"))

    return answer


def test_questions_of_queries_and_nuggets_of_facets() -> None:
    dl = BankQuery("q1", "how is tea made")
    car = BankQuery("tqa2:L_0002", "Earth science", "T_0010", "Branches")
    assert "Break the query 'how is tea made' into concise questions" in query_messages("question", dl)[1][0].content
    text = query_messages("nugget", car)[1][0].content
    assert text.startswith(
        "Explore the connection between 'Earth science' with a specific focus on the subtopic 'Branches'"
    )
    assert text.endswith('{ "nuggets" : [nugget_text_1, nugget_text_2, ... ] }\n```')
    made = generate_bank(
        [dl, BankQuery("q2", "frost"), car],
        caller_of(
            scripted(
                {"tea": '{"questions": ["Which leaf?", "which LEAF", "How hot?"]}', "Earth": '["Which branches?"]'}
            )
        ),
    )
    leaf, hot = made.bank.items["q1"]
    assert leaf == RubricItem(make_item_id("q1", "Which leaf?"), "q1", "Which leaf?", "question")
    assert hot.text == "How hot?"
    (branch,) = made.bank.items["tqa2:L_0002"]
    assert branch.item_id.startswith("tqa2:L_0002/T_0010/")
    assert branch.facet_id == "T_0010"
    assert made.bank.items["q2"] == ()
    assert made.bank.query_texts == {"q1": "how is tea made", "q2": "frost", "tqa2:L_0002": "Earth science"}
    assert made.bank.facet_texts == {("tqa2:L_0002", "T_0010"): "Branches"}
    assert made.failures == (Failure("q2", "query", "refused: the model gave no reply"),)


def test_a_reply_that_was_cut_off_is_asked_again_then_reported() -> None:
    caller = caller_of(scripted({"tea": '{"questions": ["Which leaf?", "Ho'}))
    made = generate_bank([BankQuery("q1", "tea")], caller)
    assert made.failures == (Failure("q1", "query", "the list is not closed"),)
    assert isinstance(caller.runner.backend, FunctionBackend)
    assert [request.replicate for request in caller.runner.backend.seen] == [0, 1000]


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([], "no queries"),
        ([BankQuery("q1", "a"), BankQuery("q1", "b")], "query 'q1' comes twice"),
        ([BankQuery("q1", " ")], "query 'q1' has no text"),
    ],
)
def test_bad_input(topics: list[BankQuery], message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate_bank(topics, caller_of(scripted({})))
