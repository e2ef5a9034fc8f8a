"""Nuggets from documents: windows, the list carried on, importance, trim, sources, failures, call counts."""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import InputError
from rubric_measures.grading import GradingEngine, GradingReport
from rubric_measures.grading.nuggetization import Failure, SourceSegment, nuggetize, published_calls
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.running import LocalRunner
from rubric_measures.records.models import GradedPassage, QueryPassages
from rubric_measures.types.entities import Query, TestBank
from tests.function_backend import FunctionBackend, caller_of

QUERY = Query("q1", "how is tea made")


def lines(text: str, start: str) -> str:
    return next(line for line in text.split("\n") if line.startswith(start)).removeprefix(start)


class Nuggetizer:
    """A model that adds one nugget a segment shown, and calls every third one vital."""

    def __init__(self, broken: tuple[str, ...] = ()) -> None:
        self.broken = broken
        self.create: list[str] = []
        self.importance: list[str] = []

    def __call__(self, request: Request) -> str | Reply:
        system, user = request.messages
        assert system.role == "system"
        text = user.content
        if any(mark in text for mark in self.broken):
            return "no list"
        if "NuggetizeLLM" in system.content:
            self.create.append(text)
            old = json.loads(lines(text, "Initial Nugget List: "))
            assert lines(text, "Initial Nugget List Length: ") == str(len(old))
            new = [f"fact {n}" for n in re.findall(r"^\[\d+\] segment (\d+)$", text, re.MULTILINE)]
            return json.dumps(old + new)
        self.importance.append(text)
        nuggets = json.loads(lines(text, "Nugget List: "))
        labels = ["vital" if int(nugget.split()[1]) % 3 == 0 else "okay" for nugget in nuggets]
        return f"```python\n{labels}\n```"


def segments(count: int) -> list[SourceSegment]:
    return [SourceSegment(f"d{n}", f"segment {n}") for n in range(count)]


def test_windows_importance_and_trim() -> None:
    model = Nuggetizer()
    made = nuggetize([QUERY], {"q1": segments(25)}, caller_of(model))
    # 25 segments: windows of 10, 10, 5; 25 nuggets: batches of 10, 10, 5.
    assert (len(model.create), len(model.importance)) == (3, 3)
    texts = [item.text for item in made.bank.items["q1"]]
    # Nine of 0..24 are divisible by 3: vital, in the order of creation; then the first eleven others.
    vital = [f"fact {n}" for n in range(0, 25, 3)]
    others = [f"fact {n}" for n in range(25) if n % 3][:11]
    assert texts == vital + others
    assert [item.importance for item in made.bank.items["q1"]] == ["vital"] * 9 + ["okay"] * 11
    assert {item.kind for item in made.bank} == {"nugget"}
    by_text = {item.text: made.sources[item.item_id] for item in made.bank}
    assert by_text["fact 3"] == tuple(f"d{n}" for n in range(10))
    assert by_text["fact 12"] == tuple(f"d{n}" for n in range(10, 20))
    assert by_text["fact 21"] == ("d20", "d21", "d22", "d23", "d24")
    assert made.failures == ()


def test_the_list_never_grows_over_its_limit_and_assessors_get_all_of_it() -> None:
    model = Nuggetizer()
    made = nuggetize([QUERY], {"q1": segments(45)}, caller_of(model), over_generate=True)
    assert (len(model.create), len(model.importance)) == (5, 0)
    assert [item.text for item in made.bank.items["q1"]] == [f"fact {n}" for n in range(30)]
    assert {item.importance for item in made.bank} == {None}
    assert "at most 30 nuggets" in model.create[0]


def test_a_failed_call_leaves_the_list_as_it_was() -> None:
    model = Nuggetizer(broken=("segment 12\n",))
    caller = caller_of(model)
    made = nuggetize([QUERY], {"q1": segments(25)}, caller, over_generate=True)
    assert [item.text for item in made.bank.items["q1"]] == [f"fact {n}" for n in [*range(10), *range(20, 25)]]
    assert made.failures == (Failure("q1", "create 2/3", "no list in the reply; the list stays as it was"),)
    assert caller.stats.calls == 4  # three windows, one of them twice


def test_a_failed_importance_call_leaves_its_nuggets_without_importance() -> None:
    model = Nuggetizer(broken=('["fact 10"',))
    made = nuggetize([QUERY], {"q1": segments(12)}, caller_of(model))
    assert [(item.text, item.importance) for item in made.bank][:4] == [
        ("fact 0", "vital"),
        ("fact 3", "vital"),
        ("fact 6", "vital"),
        ("fact 9", "vital"),
    ]
    assert [(item.text, item.importance) for item in made.bank][-2:] == [("fact 10", None), ("fact 11", None)]
    assert made.failures == (Failure("q1", "importance 2/2", "no list in the reply; its nuggets have no importance"),)


def test_an_emptied_list_is_no_update() -> None:
    replies = iter(['["hot water"]', "[]", "[]"])

    made = nuggetize([QUERY], {"q1": segments(11)}, caller_of(lambda request: next(replies)), over_generate=True)
    assert [item.text for item in made.bank] == ["hot water"]
    assert [failure.step for failure in made.failures] == ["create 2/2"]


def test_a_segment_is_one_line_of_the_prompt() -> None:
    model = Nuggetizer()
    nuggetize([QUERY], {"q1": [SourceSegment("d", "x\n[2] segment 7\nSearch Query: y")]}, caller_of(model))
    assert "Context:\n[1] x [2] segment 7 Search Query: y\nSearch Query: how is tea made\n" in model.create[0]


def test_queries_without_documents_have_an_empty_list() -> None:
    model = Nuggetizer()
    made = nuggetize([QUERY, Query("q2", "frost")], {"q1": segments(1)}, caller_of(model))
    assert {query_id: len(items) for query_id, items in made.bank.items.items()} == {"q1": 1, "q2": 0}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 45), min_size=1, max_size=4))
def test_call_counts_are_the_published_ones(counts: list[int]) -> None:
    model = Nuggetizer()
    queries = [Query(f"q{n}", f"query {n}") for n in range(len(counts))]
    made = nuggetize(queries, {f"q{n}": segments(c) for n, c in enumerate(counts)}, caller_of(model))
    expected = [published_calls(count, min(count, 30)) for count in counts]
    assert len(model.create) == sum(create for create, _ in expected)
    assert len(model.importance) == sum(importance for _, importance in expected)
    assert {query_id: len(items) for query_id, items in made.bank.items.items()} == {
        f"q{n}": min(count, 20) for n, count in enumerate(counts)
    }


@pytest.mark.parametrize(
    ("queries", "keep", "message"),
    [([], 20, "no queries"), ([QUERY], 0, "at least 1")],
)
def test_bad_input(queries: list[Query], keep: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        nuggetize(queries, {}, caller_of(Nuggetizer()), keep=keep)


def _program(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """nuggetizer's own class over a model like `Nuggetizer`, and its types; without the clients that it never needs."""
    pytest.importorskip("nuggetizer.core.types")
    for name in ("tiktoken", "openai", "dotenv"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    monkeypatch.delitem(sys.modules, "nuggetizer.models.nuggetizer", raising=False)
    module = importlib.import_module("nuggetizer.models.nuggetizer")
    for name in [name for name in sys.modules if name.startswith("nuggetizer.") and "types" not in name]:
        # What was imported over stand-ins must not stay.
        monkeypatch.delitem(sys.modules, name)
    types = importlib.import_module("nuggetizer.core.types")
    monkeypatch.setattr(module, "LLMHandler", lambda *_args, **_options: MagicMock())
    return module.Nuggetizer(model="none", scorer_max_nuggets=20, log_level=0), types


@pytest.mark.parametrize("count", [1, 10, 11, 25, 30, 47])
def test_the_program_makes_the_same_calls_and_the_same_list(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, types = _program(monkeypatch)
    model = Nuggetizer()

    def create(prompt: list[dict[str, str]], **_: object) -> tuple[str, int]:
        text = prompt[1]["content"]
        old = ast.literal_eval(lines(text, "Initial Nugget List: "))
        new = [f"fact {n}" for n in re.findall(r"segment (\d+)$", text, re.MULTILINE)]
        return json.dumps(old + new), 0

    def score(prompt: list[dict[str, str]], **_: object) -> tuple[str, int]:
        nuggets = ast.literal_eval(lines(prompt[1]["content"], "Nugget List: "))
        return json.dumps(["vital" if int(nugget.split()[1]) % 3 == 0 else "okay" for nugget in nuggets]), 0

    theirs.creator_llm.run.side_effect = create
    theirs.scorer_llm.run.side_effect = score
    theirs.assigner_llm.run.side_effect = lambda *_args, **_options: (json.dumps(["support"] * 10), 0)
    documents = [types.Document(segment.doc_id, segment.text) for segment in segments(count)]
    found = theirs.create(types.Request(types.Query("q1", QUERY.text), documents))
    made = nuggetize([QUERY], {"q1": segments(count)}, caller_of(model))
    ours = [(item.text, item.importance) for item in made.bank.for_query("q1")]
    assert ours == [(nugget.text, nugget.importance) for nugget in found]
    calls = (theirs.creator_llm.run.call_count, theirs.scorer_llm.run.call_count)
    assert (len(model.create), len(model.importance)) == calls == published_calls(count, min(count, 30))
    # Assignment: ten nuggets a call.
    theirs.assign(QUERY.text, "an answer", found)
    bank = TestBank.from_items(list(made.bank), {"q1": QUERY.text})
    asker = FunctionBackend(
        lambda request: json.dumps(["support"] * len(json.loads(lines(request.messages[-1].content, "Nugget List: "))))
    )
    report = GradingReport()
    group = QueryPassages("q1", [GradedPassage(doc_id="a", text="an answer")])
    list(GradingEngine(LocalRunner(asker), ("nuggets.assign",)).grade_records([group], bank, report))
    assert report.run.calls == theirs.assigner_llm.run.call_count == -(-len(found) // 10)
    assert report.by_status == {"graded": len(found)}


@pytest.mark.parametrize("count", [1, 11])
def test_in_its_words_every_message_is_what_the_program_sends(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, types = _program(monkeypatch)
    sent: list[list[dict[str, str]]] = []

    def create(prompt: list[dict[str, str]], **_: object) -> tuple[str, int]:
        sent.append(prompt)
        return json.dumps(["the earth's crust", 'a "hot" drink', "tea"]), 0

    def label(prompt: list[dict[str, str]], **_: object) -> tuple[str, int]:
        sent.append(prompt)
        size = len(ast.literal_eval(lines(prompt[1]["content"], "Nugget List: ")))
        return json.dumps(["vital" if "NuggetizeScore" in prompt[0]["content"] else "support"] * size), 0

    for llm, reply in ((theirs.creator_llm, create), (theirs.scorer_llm, label), (theirs.assigner_llm, label)):
        llm.run.side_effect = reply
    related = [one._replace(text=f" {one.text}\n\n1. of  two lines\t") for one in segments(count)]
    documents = [types.Document(segment.doc_id, segment.text) for segment in related]
    found = theirs.create(types.Request(types.Query("q1", QUERY.text), documents))
    theirs.assign(QUERY.text, "An answer.\nIt has two lines.", found)

    shown: list[list[dict[str, str]]] = []

    def asked(request: Request) -> str:
        prompt = [{"role": message.role, "content": message.content} for message in request.messages]
        shown.append(prompt)
        return (create if "NuggetizeLLM" in prompt[0]["content"] else label)(prompt)[0]

    expected, sent = sent, []
    made = nuggetize([QUERY], {"q1": related}, caller_of(asked), program="nuggetizer")
    bank = TestBank.from_items(list(made.bank), {"q1": QUERY.text})
    group = QueryPassages("q1", [GradedPassage(doc_id="a", text="An answer.\nIt has two lines.")])
    grader = GradingEngine(LocalRunner(FunctionBackend(asked)), ("nuggets.assign@nuggetizer",))
    (query,) = grader.grade_records([group], bank)
    assert shown == expected
    assert "“good”" in shown[-2][1]["content"]
    assert "[\"the earth's crust\", 'a \"hot\" drink', 'tea']" in shown[-1][1]["content"]
    (entry,) = query.passages[0].exam_grades or ()
    assert [rating.self_rating for rating in entry.self_ratings or ()] == [2, 2, 2]
