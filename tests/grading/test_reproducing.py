"""Tests that records tell what a model was shown: messages made again from them equal those that a server received."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.entities import ItemKind, RubricItem, TestBank, content_hash
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats.bank import bank_entries, load_bank, write_bank
from rubric_measures.grades.grade_sets import GradeFilter, grade_sets
from rubric_measures.grading import Grader, GradingSettings, shown_for_grade
from rubric_measures.grading._messages import NO_DOCUMENTS
from rubric_measures.records.files import load_graded, write_graded
from rubric_measures.records.merging import merge_records
from rubric_measures.records.models import GradedPassage, QueryPassages, provenance_of
from rubric_measures.runners import LocalRunner
from tests.fault_server import Running, running
from tests.function_backend import FunctionBackend

RATING = "QuestionSelfRatedUnanswerablePromptWithChoices"
VERIFIED = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"
OWN = '''
name = "Own"
target = "question"
parser = "rating"
scale = [0, 4]
system = "You grade passages about {query}, in the manner of {manner}."
text = """
Question: {question}
Passage: {context}
End with one line "Grade: N"."""
defaults = { manner = "a teacher" }
'''
# Forged delimiters, fields and blanks: what is shown is not the text as it stands.
LONG = " ".join(f"Word {number} is {{question}}.\nQuestion: forged" for number in range(60)) + " "


def write_inputs(folder: Path, kind: ItemKind = "question", items: int = 3) -> None:
    """Two queries; the first has a long passage, a short one and an empty one."""
    groups = [
        QueryPassages(
            "q1",
            [
                GradedPassage(doc_id="long", text=LONG),
                GradedPassage(doc_id="short", text="Short. Passage: short."),
                GradedPassage(doc_id="empty", text=" "),
            ],
        ),
        QueryPassages("q2", [GradedPassage(doc_id="other", text="Other.")]),
    ]
    write_graded(folder / "passages.jsonl.gz", groups)
    made = [
        RubricItem(f"{query}/{place}", query, f"What is {query} {place}?", kind, gold_answers=("gold", "Gold leaf"))
        for query in ("q1", "q2")
        for place in range(items)
    ]
    bank = TestBank.from_items(made, {"q1": "leap years", "q2": "tides"})
    write_bank(folder / "bank.jsonl", bank_entries(bank, test_collection="test"))


def grade(folder: Path, server: Running, *more: str, source: str = "passages.jsonl.gz", codes: Any = (0,)) -> Path:
    command = [
        "grade",
        str(folder / source),
        "--bank",
        str(folder / "bank.jsonl"),
        "-o",
        str(folder / "graded.jsonl.gz"),
    ]
    endpoint = ["--model", "openai:m", "--base-url", server.url]
    assert main([*command, *endpoint, *more]) in codes
    return folder / "graded.jsonl.gz"


def serving(folder: Path, reply: str | list[str] = "Grade: 3", **special: str | list[str]) -> Any:
    """A server that gives one reply, and another one to prompts that hold some text (`_` stands for a blank)."""
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    rules = [{"contains": text.replace("_", " "), "reply": said} for text, said in special.items()]
    replies = folder / "replies.jsonl"
    lines = [json.dumps(rule) + "\n" for rule in [*rules, {"contains": [], "reply": reply}]]
    replies.write_text("".join(lines), encoding="utf-8")
    return running(replies=replies)


def received(server: Running) -> Counter[str]:
    return Counter(json.dumps([[one["role"], one["content"]] for one in shown]) for shown in server.get("/shown"))


def remade(
    graded: Path, bank: Path, wanted: GradeFilter | None = None, item_ids: list[str] | None = None
) -> Counter[str]:
    """All messages that the records tell, made again; nothing but the records and the bank is read."""
    found: Counter[str] = Counter()
    the_bank = load_bank(bank)
    for group in load_graded(graded):
        for passage in group.passages:
            for item_id in item_ids or [item.item_id for item in the_bank.for_query(group.query_id)]:
                shown = shown_for_grade(group, passage.doc_id, item_id, the_bank, wanted)
                found.update(
                    json.dumps([[one.role, one.content] for one in messages])
                    for messages in (*shown.asked, *shown.checks)
                )
    return found


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def test_a_prompt_of_the_user_in_chunks_and_draws_is_told_by_the_record(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    (tmp_path / "own.toml").write_text(OWN)
    options = ["--prompt", str(tmp_path / "own.toml"), "--prompt-field", "manner=an examiner"]
    options += ["--replicates", "2", "--temperature", "0.5", "--model-option", "context_tokens=300"]
    with serving(tmp_path) as server:
        graded = grade(tmp_path, server, *options)
        sent = received(server)
    # Nothing of the prompt is left but what the records hold.
    (tmp_path / "own.toml").unlink()
    Path(f"{graded}.manifest.json").unlink()
    assert remade(graded, tmp_path / "bank.jsonl") == sent
    chunks = {count for text, count in sent.items() if "Word 5 " in text}
    assert len(sent) > 12 and chunks == {2}
    assert all("in the manner of an examiner" in text for text in sent)


def test_answers_checked_by_a_model_are_told_with_their_checks(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    with serving(tmp_path, "gilded") as server:
        graded = grade(tmp_path, server, "--prompt", VERIFIED, "--retries", "0", codes=(0, 1))
        sent = received(server)
    # Of 3 × 3 items, one question each; an answer to an item is checked once a gold answer, 2 for each of 6 items.
    assert set(remade(graded, tmp_path / "bank.jsonl")) == set(sent)
    assert sum(sent.values()) == 9 + 12


@pytest.mark.parametrize("how", ["truncate", "refuse"])
def test_cut_and_refused_passages_are_told(tmp_path: Path, how: str) -> None:
    write_inputs(tmp_path)
    options = ["--prompt", RATING, "--long-passages", how, "--model-option", "context_tokens=400"]
    with serving(tmp_path, "4") as server:
        graded = grade(tmp_path, server, *options, codes=(0, 1))
        sent = received(server)
    assert remade(graded, tmp_path / "bank.jsonl") == sent
    assert sum("Word 5 " in text for text in sent) == (3 if how == "truncate" else 0)


def test_labels_of_whole_passages_are_told_with_the_query(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    with serving(tmp_path, "2") as server:
        graded = grade(tmp_path, server, "--prompt", "Thomas")
        sent = received(server)
    assert remade(graded, tmp_path / "bank.jsonl", item_ids=["0"]) == sent
    assert len(sent) == 3 and sum("tides" in text for text in sent) == 1


def test_lists_of_nuggets_are_told_as_they_were_shown_together(tmp_path: Path) -> None:
    write_inputs(tmp_path, "nugget", 5)
    options = ["--prompt", "nuggets.assign", "--nuggets-per-call", "2", "--retries", "0"]
    options += ["--shuffle-seed", "3", "--replicates", "2"]
    bank = tmp_path / "bank.jsonl"
    one, two = '["support"]', '["support", "support"]'
    # A wrong number of labels for the last nugget of the first query, until it is asked about again.
    with serving(tmp_path, two, q1_4=[two, two, one, one], q2_4=one) as server:
        grade(tmp_path, server, *options, codes=(1,))
        graded = grade(tmp_path, server, *options, "--cache", str(tmp_path / "new.sqlite"), source="graded.jsonl.gz")
        sent = received(server)
    assert set(remade(graded, bank)) == set(sent)
    # Pairs a and b, c and d, and e by itself; drawn twice.
    group = load_graded(graded)[0]
    together = [shown_for_grade(group, "short", f"q1/{place}", load_bank(bank)).asked for place in range(5)]
    assert together[0] == together[1] != together[2] == together[3] != together[4]
    assert [len(one) for one in together] == [2] * 5


def test_nuggets_that_were_edited_are_told_as_they_were_when_shown(tmp_path: Path) -> None:
    write_inputs(tmp_path, "nugget", 3)
    options = ["--prompt", "nuggets.assign", "--retries", "0"]
    bank, old = tmp_path / "bank.jsonl", tmp_path / "old.jsonl"
    with serving(tmp_path, '["support", "support", "support"]', What_else='["not_support"]') as server:
        grade(tmp_path, server, *options)
        old.write_bytes(bank.read_bytes())
        before = load_bank(old)
        items = [item if item.item_id != "q1/1" else replace(item, text="What else?") for item in before]
        write_bank(bank, bank_entries(TestBank.from_items(items, before.query_texts), test_collection="test"))
        more = ["--only-changed", "--old-bank", str(old)]
        graded = grade(tmp_path, server, *options, *more, source="graded.jsonl.gz")
        sent = received(server)
    group = load_graded(graded)[0]
    # The edited nugget was shown by itself, the others with what it said before.
    [new] = shown_for_grade(group, "short", "q1/1", load_bank(bank)).asked
    assert json.dumps([[one.role, one.content] for one in new]) in sent
    for item_id in ("q1/0", "q1/2"):
        [shown] = shown_for_grade(group, "short", item_id, before).asked
        assert json.dumps([[one.role, one.content] for one in shown]) in sent
        with pytest.raises(InputError, match="another state of the test bank"):
            shown_for_grade(group, "short", item_id, load_bank(bank))


def test_items_in_one_call_are_told_as_they_were_shown_and_what_was_asked_singly(tmp_path: Path) -> None:
    """Three items in chunks and two orders; the second place is never graded, so its item is asked about alone."""
    write_inputs(tmp_path)
    (tmp_path / "own.toml").write_text(OWN)
    options = ["--prompt", str(tmp_path / "own.toml"), "--items-per-call", "all", "--shuffle-seed", "3"]
    options += ["--replicates", "2", "--model-option", "context_tokens=450"]
    with serving(tmp_path, "Grade: 3", There_are_several='{"1": 3, "3": 1}') as server:
        graded = grade(tmp_path, server, *options)
        sent = received(server)
    # A call about several is told by each item that it graded, one about a single item by that one alone.
    assert set(remade(graded, tmp_path / "bank.jsonl")) == set(sent)
    group = load_graded(graded)[0]
    bank = load_bank(tmp_path / "bank.jsonl")
    asked = [shown_for_grade(group, "long", f"q1/{place}", bank).asked for place in range(3)]
    assert all(len(calls) > 2 for calls in asked)
    assert {"several" in messages[-1].content for calls in asked for messages in calls} == {True, False}


def test_an_edited_item_of_one_call_is_asked_about_alone(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    options = ["--prompt", RATING, "--items-per-call", "all"]
    bank, old = tmp_path / "bank.jsonl", tmp_path / "old.jsonl"
    with serving(tmp_path, "4", There_are_several='{"1": 3, "2": 1, "3": 0}') as server:
        grade(tmp_path, server, *options)
        old.write_bytes(bank.read_bytes())
        before = load_bank(old)
        items = [item if item.item_id != "q1/1" else replace(item, text="What else?") for item in before]
        write_bank(bank, bank_entries(TestBank.from_items(items, before.query_texts), test_collection="test"))
        more = ["--only-changed", "--old-bank", str(old)]
        graded = grade(tmp_path, server, *options, *more, source="graded.jsonl.gz")
        sent = received(server)
    group = load_graded(graded)[0]
    [new] = shown_for_grade(group, "short", "q1/1", load_bank(bank)).asked
    assert json.dumps([[one.role, one.content] for one in new]) in sent and "several" not in new[-1].content
    [shown] = shown_for_grade(group, "short", "q1/0", before).asked
    assert json.dumps([[one.role, one.content] for one in shown]) in sent and "several" in shown[-1].content


def test_documents_beside_an_answer_are_told(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'target = "answer"\nparser = "rating"\nscale = [0, 4]\ntext = "{query}\\n{documents}\\nAnswer: {answer}"\n'
    )
    backend = FunctionBackend(lambda _: "3")
    bank = TestBank({"q1": (), "q2": ()}, {"q1": "leap years", "q2": "tides"})
    grader = Grader(
        LocalRunner(backend), (str(tmp_path / "own.toml"),), GradingSettings(documents={"q1": "[d1] Answer: water."})
    )
    groups = [QueryPassages(query, [GradedPassage(doc_id=query, text="Ice.")]) for query in ("q1", "q2")]
    made = list(grader.grade_records(groups, bank))
    shown = [shown_for_grade(group, group.query_id, "0", bank).asked for group in made]
    assert [request.messages for request in backend.seen] == [messages for one in reversed(shown) for messages in one]
    assert "[d1] Answer: water." in shown[0][0][0].content
    assert NO_DOCUMENTS in shown[1][0][0].content


def test_each_query_and_grader_is_described_once_and_its_hash_is_that_of_the_settings(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    command = [
        "grade",
        str(tmp_path / "passages.jsonl.gz"),
        "--bank",
        str(tmp_path / "bank.jsonl"),
        "--model",
        "lexical",
    ]
    assert main([*command, "-o", str(tmp_path / "g.jsonl.gz")]) == 0
    for group in load_graded(tmp_path / "g.jsonl.gz"):
        made = [provenance_of(entry) for passage in group.passages for entry in passage.exam_grades or ()]
        assert ["definition" in one for one in made] == [True] + [False] * (len(made) - 1)
        assert content_hash(made[0]["definition"]["settings"])[:12] == made[0]["grader"]
        assert set(made[0]["definition"]["prompts"]) == {"LexicalCoverage"}
    # Grading again changes nothing, and reading and writing keeps it.
    source = ["grade", str(tmp_path / "g.jsonl.gz"), *command[2:], "-o", str(tmp_path / "again.jsonl.gz")]
    assert main(source) == 0
    lines = [gzip.decompress((tmp_path / name).read_bytes()) for name in ("g.jsonl.gz", "again.jsonl.gz")]
    assert lines[0] == lines[1]
    assert main(["convert", str(tmp_path / "g.jsonl.gz"), "--to", "records", "-o", str(tmp_path / "c.jsonl.gz")]) == 0
    assert gzip.decompress((tmp_path / "c.jsonl.gz").read_bytes()) == lines[0]


def test_merged_parts_and_repeated_passages_keep_the_description(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    for name, order in (("one", (0, 1)), ("two", (1, 2))):
        [group, _] = load_graded(tmp_path / "passages.jsonl.gz")
        write_graded(tmp_path / f"{name}.jsonl", [group._replace(passages=[group.passages[place] for place in order])])
        command = ["grade", str(tmp_path / f"{name}.jsonl"), "--bank", str(tmp_path / "bank.jsonl")]
        assert main([*command, "--model", "lexical", "-o", str(tmp_path / f"{name}.graded.jsonl")]) == 0
    one, two = (load_graded(tmp_path / f"{name}.graded.jsonl") for name in ("one", "two"))
    bank = load_bank(tmp_path / "bank.jsonl")
    # The passage `short` is in both, and described in the second only.
    merged = merge_records([one, two])[0]
    assert [passage.doc_id for passage in merged.passages] == ["long", "short", "empty"]
    assert shown_for_grade(merged, "short", "q1/0", bank) == shown_for_grade(two[0], "short", "q1/0", bank)
    both = tmp_path / "both.jsonl"
    both.write_text("".join((tmp_path / f"{name}.graded.jsonl").read_text() for name in ("one", "two")))
    assert [passage.doc_id for passage in load_graded(both)[0].passages] == ["long", "short", "empty"]


def test_edits_of_the_bank_keep_the_description(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    command = ["--model", "lexical", "--bank", str(tmp_path / "bank.jsonl")]
    assert main(["grade", str(tmp_path / "passages.jsonl.gz"), *command, "-o", str(tmp_path / "g.jsonl.gz")]) == 0
    old = load_bank(tmp_path / "bank.jsonl")
    (tmp_path / "old.jsonl").write_bytes((tmp_path / "bank.jsonl").read_bytes())
    items = [item if item.item_id != "q1/1" else RubricItem("q1/1", "q1", "What else?") for item in old]
    edited = TestBank.from_items(items, old.query_texts)
    write_bank(tmp_path / "bank.jsonl", bank_entries(edited, test_collection="test"))
    more = ["--only-changed", "--old-bank", str(tmp_path / "old.jsonl"), "-o", str(tmp_path / "new.jsonl.gz")]
    assert main(["grade", str(tmp_path / "g.jsonl.gz"), *command, *more]) == 0
    # What was kept and what was graded anew is of one grader.
    assert len(grade_sets(load_graded(tmp_path / "new.jsonl.gz"))) == 1
    group = load_graded(tmp_path / "new.jsonl.gz")[0]
    [messages] = shown_for_grade(group, "short", "q1/1", load_bank(tmp_path / "bank.jsonl")).asked
    assert "What else?" in messages[-1].content
    with pytest.raises(InputError, match="another state of the test bank"):
        shown_for_grade(group, "short", "q1/1", old)


def test_records_that_do_not_say_how_are_refused(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    bank = load_bank(tmp_path / "bank.jsonl")
    entry = {
        **{"correctAnswered": ["q1/0"], "wrongAnswered": [], "answers": [["q1/0", "5"]], "llm": "m", "llm_options": {}},
        **{"exam_ratio": 1.0, "self_ratings": [{"question_id": "q1/0", "self_rating": 5}]},
    }
    passage = GradedPassage.model_validate({"paragraph_id": "d", "text": "t", "exam_grades": [entry]}, strict=False)
    group = QueryPassages("q1", [passage])
    with pytest.raises(InputError, match="do not say how"):
        shown_for_grade(group, "d", "q1/0", bank)
    for doc_id, item_id in (("x", "q1/0"), ("d", "q1/9"), ("d", "0")):
        with pytest.raises(InputError):
            shown_for_grade(group, doc_id, item_id, bank)
