"""The reply parsers against replies as models write them, by hand and of real ones; and on any text at all."""

from __future__ import annotations

import csv
import gzip
import json
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.prompts.parsers import (
    Parsed,
    is_unanswerable,
    parse_aspects,
    parse_items,
    parse_label,
    parse_label_list,
    parse_list,
    parse_rating,
    parse_reply,
    parse_verdict,
    parse_yes_no,
)
from tests.shared_data import shared_data

RATINGS: list[tuple[str, int | None]] = [
    # bare numbers
    ("4", 4),
    ("0", 0),
    (" 5 \n", 5),
    ("**4**", 4),
    ("(4)", 4),
    ("[[4]]", 4),
    ("４", 4),
    # with a word, or on a scale
    ("Rating: 4", 4),
    ("Rating: 4/5", 4),
    ("rating: **5**", 5),
    ("Rating (0-5): 4", 4),
    ("final_rating = 2", 2),
    ("Score 4 (mostly relevant)", 4),
    ("Score: 4 out of 5 because it lacks details", 4),
    ("I'd give it a 4 out of 5", 4),
    ("I would rate this passage: 4", 4),
    ("On a scale of 0 to 5, I would rate this a 3.", 3),
    ("I would rate it 3 rather than 4.", 3),
    # the scale's own wording
    ("4: The answer is mostly relevant and complete but may have minor gaps or inaccuracies.", 4),
    ("4 (mostly)", 4),
    # JSON
    ('{"rating": 4}', 4),
    ('```json\n{"score": "3"}\n```', 3),
    ('{"score": 2, "why": "a rating: 5 needs more"}', 2),
    # the last verdict counts
    ("Rating: 4. However, 2 of the claims are missing.", 4),
    ("Relevance: 3\nCompleteness: 2\nFinal: 4", 4),
    ("Rating: 3 -> 4", None),
    ("It covers most aspects.\n\n4", 4),
    ("The passage was written in 1999, so I rate it 2 out of 5.", 2),
    ("Rating: 4\n\nExplanation: As of 2023 there are 3 topics, 2 of which are covered.", 4),
    ("It mentions 3 of the 5 layers. Final rating: 2", 2),
    ("It would be a 5 if it named the year. Rating: 3", 3),
    ("Rating: 3. A score of 4 would require more detail.", 3),
    ("I rate it 3. I did not give it a 4 because the year is missing.", 3),
    ("Score: 2. It does not deserve a score of 5.", 2),
    # thoughts of reasoning models
    ("<think>Maybe 5? Rating: 5</think>\n\n2", 2),
    ("the passage … rating: 5 </think> 3", 3),
    ("<think>I think rating: 5", None),
    # no verdict
    ("", None),
    ("The epidermis", None),
    ("As of 2023, the report covers 3 topics.", None),
    ("3 out of 5 topics are covered", None),
    ("2023", None),
    ("4 years", None),
    ("1,600% increase", None),
    ("The overall 5-year survival rate is about 8%.", None),
    ("4/5/2023", None),
    ("1. The heart pumps blood.\n2. The lungs breathe.\n3. The skin covers.", None),
    ("5: Highly\n4: Mostly\n3: Partially", None),
    ("Rating: N/A", None),
    # not on the scale
    ("7", None),
    ("-4", None),
    ("Rating: 4\nFinal rating: 9", None),
    ("between 3 and 4", None),
]


@pytest.mark.parametrize(("reply", "value"), RATINGS)
def test_ratings(reply: str, value: int | None) -> None:
    parsed = parse_rating(reply)
    assert parsed.value == value
    assert bool(parsed.reason) == (value is None)


# What a person who reads the reply would say; None where two people might differ.
JUDGED: list[tuple[str, int | None]] = [
    # a labelled verdict, whatever scores of other things are mentioned behind it
    ("Rating: 0. The movie got a rating of 4 out of 5.", 0),
    ("0\n\nThe passage says the movie got a rating of 4 out of 5.", 0),
    ("Rating: 3\nConfidence: 5", 3),
    ('{"relevance": 3, "final rating": 2}', 2),
    # scores of other things only
    ("The hotel has a score of 4.", None),
    ("Relevance: 3\nCompleteness: 2", None),
    # the scale, and where it ends
    ("Rating: 2 (max score: 5)", 2),
    ("My rating: 2. The maximum rating is 5.", 2),
    ("Rating: 3 (scale: 5 = best)", 3),
    ("Rating: 0-5", None),
    ("On a scale of 1 to 10, I would rate this a 4.", None),
    ("5\n4\n3\n2\n1\n0", None),
    # numbers that count or name things
    ("4\nThe passage mentions option 2.", 4),
    ("The passage mentions option 2.", None),
    ("Rating: 4. 2 out of 5 facts missing.", 4),
    # a rating, and a numbered list of reasons
    ("4\n\nExplanation:\n1. It mentions a.\n2. It mentions b.", 4),
    ("4: The answer is mostly relevant\n\n1. It mentions a.\n2. It lacks b.", 4),
    ("1\n\n1. It mentions a.\n2. It lacks b.", 1),
    ("The passage mentions two things:\n1. a\n2. b\n\n4", 4),
    ("3\n4\n\n1. a\n2. b", None),
    ("0. Not relevant\n1. Minimally relevant\n2. Partially relevant", None),
    # A number above an entry that does not count from 1 may be a rating, or an entry that goes on with the next one.
    ("4\n\n3. The passage names the year", None),
    # Conditions, before the number and after it
    ("I'd give it a 2. With more detail it would be a 4.", 2),
    ("I'd give it a 2. I would give it a 4 only if it named the year.", 2),
    ("5. Highly\n4. Mostly\n3. Partially\n2. Somewhat\n1. Minimally\n0. Not", None),
    # other labels, and what servers leave of the end of a reply
    ("Rate: 4", 4),
    ("4</s>", 4),
    ("4<｜end▁of▁sentence｜>", 4),
    # what follows the end of a turn is another one, and what opens it is no word
    ("4<|endoftext|>Question: what? 2", 4),
    ("4<|im_end|>\n<|im_start|>assistant\nRating: 2", 4),
    ("<s> 4", 4),
    ("<|im_start|>assistant\n4<|im_end|>", 4),
    # lists in other forms below a bare rating
    ("4\n\n[1] It names A.\n[2] It lacks B.", 4),
    ("0: Not\n1: Hardly\n2: Partially", None),
    # other forms of a label and of the scale
    ("Rating => 3", 3),
    ("## Final Rating: 3 ##", 3),
    ("On a scale of 0 (not relevant) to 5 (highly relevant): 2", 2),
    # ratings of other things
    ("The passage says the film has a rating of 4.", None),
    ("According to the passage, Apgar score: 4", None),
    ("The passage states the year, so it gets a rating of 4.", 4),
    # what the passage says, and behind it the rating
    ("The passage states the cause but not the effect so it gets a 3.", 3),
    # a lone rating under the heading of an aspect
    ("### Coverage\n\n3", 3),
    # Prose tells the whole, so an aspect that says something else is not the rating.
    ("**Relevance**\n5\n\n**Coverage**\n5\n\nOverall, the passage gets a 3 out of 5.", 3),
    ("Relevance: 3\n\nThe passage gets a 3 out of 5.", 3),
    ("Relevance\n4", 4),
    ("Relevance\n4\nCoverage\n3", None),
    ("Relevance\n4\nCoverage\n3\nOverall\n2", 2),
    ("I considered a rating of 4, but", None),
    ("I considered a rating of 4, but it lacks the year. I give it a 3.", 3),
    # revisions
    ("I would give it a 4. Actually 2.", 2),
    ("I'd rate it 4, but considering the gaps I'd lower it to 3.", 3),
    ("Rating: 5\n\nRevised rating: 3", 3),
    # what the rating would be
    ("If it had mentioned X, the rating would be 5. As it does not, the rating is 2.", 2),
    ("The rating is 2. If it had mentioned X, the rating would be 5.", 2),
    # bounds, and what is half a number
    ("≥4", None),
    ("Rating: 4+", None),
    ("2 or 3", None),
    # thoughts in other forms
    ("<thought>Rating: 2</thought>4", 4),
    ("[THINK]Rating: 2[/THINK]4", 4),
    ("analysisIt is partly covered. I would rate it 3.assistantfinal4", 4),
    ("<|channel|>analysis<|message|>Rating: 2<|end|><|start|>assistant<|channel|>final<|message|>4<|return|>", 4),
    ("Thinking... Rating: 2 ...done thinking.\n4", 4),
]


@pytest.mark.parametrize(("reply", "value"), JUDGED)
def test_ratings_as_a_person_reads_them(reply: str, value: int | None) -> None:
    assert parse_rating(reply).value == value


ASIDES = (
    "The maximum rating is 5.", "Max score: 5.", "(0 = worst, 5 = best)", "The scale goes from 0 to 5.",
    "4 points are covered.", "It mentions option 2.", "As of 2023, there are 3 topics.", "The film has a score of 4.",
    "2 out of 5 facts are missing.", "A rating of 5 would require more.", "With more detail I would give it a 5.",
    "If it named the year, the rating would be 5.", "The price was raised to 3.", "See chapter 3 of [2].",
)  # fmt: skip
STATED = (
    "Rating: {}",
    "Score: {}/5",
    "I would give it a {}.",
    "**Grade**: {}",
    "Final rating: {}.",
    "I rate it {} out of 5.",
)


@given(
    st.lists(st.sampled_from(ASIDES), max_size=3),
    st.sampled_from(STATED),
    st.integers(0, 5),
    st.lists(st.sampled_from(ASIDES), max_size=3),
    st.sampled_from(["\n", "\n\n"]),
)
def test_no_aside_changes_a_stated_rating(
    before: list[str], stated: str, grade: int, after: list[str], join: str
) -> None:
    assert parse_rating(join.join([*before, stated.format(grade), *after])).value == grade


@given(st.sampled_from(STATED), st.integers(0, 5), st.integers(0, 5))
def test_a_revision_is_never_read_as_what_it_takes_back(stated: str, first: int, last: int) -> None:
    for revision in ("Actually {}.", "No, wait: {}", "Correction: {}", "I change it to {}.", "On reflection, {}."):
        said = stated.format(first).rstrip(".")
        assert parse_rating(f"{said}. {revision.format(last)}").value in (last, None)


BEFORE = (
    "", "The passage mentions 3 of 7 layers in 2023.\n", "<think>maybe 5</think>", "Step 1: I read it.\n\n",
    "**Analysis**: 1. It says X. 2. It lacks Y.\n", "1. It says X.\n2. It lacks Y.\n\n", "On a scale from 0 to 5, ",
    "Reasoning: The context gives 4 dates and 12 names. ", "Based on the scale (0-5) above:\n", "It has 3 parts.\n\n",
    "Let me think about the 6 options: 5 is too high. ", "It is not about tea at all. ", "It doesn't say when\n",
)  # fmt: skip
VERDICTS = (
    "Rating: {}", "**Rating: {}**", "Final rating: {}/5", "I would rate this passage a {}", "I'd give it a {} out of 5",
    "the score is {}", "Therefore, the answer deserves a rating of {}", "so my rating is **{}**", "Grade: {}",
    '{{"rating": {}}}', '```json\n{{"score": {}, "reason": "ok"}}\n```', "I choose {}", "Overall score = {}",
    "Rating: {} (out of 5)", "My final answer is {}", "Answer: {}", "I rate it {}", "[[{}]]", "Rating → {}",
    "Final Score: [{}]", "Output: {}", "Result: {}", "I assign a score of {} to this passage",
    "So: {}", "The nugget is covered at level {}", "##final score: {}", "Thus the rating should be {}",
    "the coverage is rated {}", "I would go with a {}", "My score would be a {}/5", "Rating ({})",
    "I'd rate the coverage as {}",
)  # fmt: skip
AFTER = ("", ".", "\n", " because it lacks 2 dates.", "\n\nExplanation: There are 4 reasons in 2021.", "\n</answer>")


@pytest.mark.parametrize("before", BEFORE)
def test_a_verdict_is_found_among_other_numbers(before: str) -> None:
    replies = {before + verdict.format(n) + after: n for verdict in VERDICTS for after in AFTER for n in (0, 3)}
    assert {reply: parse_rating(reply).value for reply in replies} == replies


WHOLES = (
    "Overall score: {}/5", "**Overall rating: {}**", "Total score: {}", "Rating: {}", "I would rate it {}.", "{}",
    "{}: The answer is mostly relevant", "<overall_score>{}</overall_score>",
)  # fmt: skip
SUB_SCORES = (
    ("Relevance score: {}/5", "Coverage score: {}/5"), ("- **Relevance score**: {}", "- **Completeness score**: {}"),
    ("Relevance: {}", "Coverage: {}"), ("**Relevance**\nScore: {}", "**Coverage**\nScore: {}"),
    ("For relevance, the score is {}", "For coverage, the score is {}"),
    ("1. Relevance score: {}", "2. Coverage score: {}"),
)  # fmt: skip


@pytest.mark.parametrize("whole", WHOLES)
@pytest.mark.parametrize("first, second", SUB_SCORES)
def test_sub_scores_never_beat_the_rating_of_the_whole(whole: str, first: str, second: str) -> None:
    for one, other in ((5, 3), (3, 5)):
        said, a, b = whole.format(4), first.format(one), second.format(other)
        replies = [f"{said}\n\n{a}\n{b}", f"{a}\n{b}\n\n{said}", f"{a}\n{said}\n{b}", f"{said}\n\nBreakdown:\n{a}"]
        if whole == "{}":  # a bare number among other lines is read at their head only, or as the last one
            del replies[2]
        if whole.startswith("{}: "):
            replies = replies[:1]
        values = {reply: parse_rating(reply).value for reply in replies}
        assert set(values.values()) <= {4, None}


@pytest.mark.parametrize("first, second", SUB_SCORES)
def test_sub_scores_alone_are_a_rating_where_they_agree(first: str, second: str) -> None:
    assert parse_rating(f"{first.format(4)}\n{second.format(4)}").value == 4
    assert parse_rating(f"{first.format(4)}\n{second.format(3)}").value is None
    assert parse_rating(first.format(4)).value == parse_rating(second.format(4)).value == 4


def test_real_sentences_hold_no_verdict() -> None:
    path = shared_data("rag26dev/rag25-dev-nuggets.jsonl.gz")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    strings = [nugget["text"] for line in lines for nugget in json.loads(line)["nuggets"]]
    assert len(strings) == 1255
    assert [text for text in strings if parse_rating(text).value is not None] == []
    assert [text for text in strings if parse_yes_no(text).value is not None] == []


def test_the_scale_is_a_parameter() -> None:
    assert parse_rating("4", (0, 4)).value == 4
    assert parse_rating("4", (0, 2)) == Parsed(None, "4 is no grade of the scale 0 to 2")
    assert parse_rating("10", (0, 10)).value == 10
    assert parse_rating("3/4", (0, 4)).value == 3
    assert parse_rating("0", (1, 5)).value is None


@pytest.mark.parametrize(
    ("reply", "value"),
    [("3", 3), ("unanswerable", 0), ("It does not say.", 0), ("(iii)", 0), ("", 0), ("The epidermis", 1), ("9", None),
     ("As of 2023, the report covers 3 topics.", 1)],
)  # fmt: skip
def test_the_rule_of_exampp(reply: str, value: int | None) -> None:
    assert parse_rating(reply, unparsed="exampp").value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [("3", 3), ("(3)", 3), ("3.", 3), ("Rating: 3", 0), ("9", 0), ("the epidermis", 0), ("unanswerable", 1), ("", 1),
     ("no answer", 1)],
)  # fmt: skip
def test_the_rule_of_the_workbench(reply: str, value: int) -> None:
    assert parse_rating(reply, compat="workbench").value == value


def test_every_published_rating_of_the_workbench_is_read_again() -> None:
    path = shared_data("workbench/graded-q0.jsonl.gz")
    from rubric_measures.records.models import load_graded

    compared = 0
    for group in load_graded(path):
        for passage in group.passages:
            for entry in passage.exam_grades or ():
                published = {rating.item_id: rating.self_rating for rating in entry.self_ratings or ()}
                for item_id, reply in entry.answers if published else ():
                    assert parse_rating(reply, compat="workbench").value == published[item_id]
                    # Ours reads more ("4: Detailed, clear coverage."), and never another number.
                    ours = parse_rating(reply).value
                    assert ours in (None, published[item_id]) or published[item_id] == 0
                    compared += 1
    assert compared == 1344


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unanswerable", True), ("No.", True), ("no answer", True), ("Unknown", True), ("not enough information", True),
        ("It is not possible to tell", True), ("It does not say in the text.", True), ("a.", True), ("(iii)", True),
        ("b)", True), ("", True), ("No relevant information was found.", True), ("the epidermis", False),
        ("No evidence of frost", False), ("Unknown Pleasures", False), ("C", False), ("vitamin A.", False),
    ],
)  # fmt: skip
def test_unanswerable(text: str, expected: bool) -> None:
    assert is_unanswerable(text) is expected


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Yes", 1), ("no.", 0), ("**Yes**", 1), ("'No'", 0), ("Yes, the passage says so.", 1), ("Answer: No", 0),
        ("The answer is yes.", 1), ("No, it only lists prices.", 0), ("No relevant information is given", 0),
        ("No doubt the passage is relevant", None), ("Yes or No? No", 0), ("Yes and no", None), ("maybe", None),
        # what the passage says is no verdict beside that of the reply
        ('Yes, it does. The passage states: "No, cats cannot fly."', 1), ("No, the passage only says: Yes.", 0),
        ("Yes, the passage states that the answer is no.", 1), ("Yes it does. It says: “No, they cannot.”", 1),
        ("Yes, according to the text the answer is no.", 1), ("No\nIt says that the verdict is yes.", 0),
        ('No. "Yes" would need more.', 0), ('Answer: "No"', 0), ('Yes.\nOn reflection, answer: "No"', 0),
        ("Yes. The text states the year, but my verdict is no.", 0),
        ("At first yes, but it is old. No.", 0), ("<think>Yes.</think>No", 0), ("Yes it does", 1),
        ("Therefore, no", 0), ("The answer is yes because the text says so.", 1),
        ("The answer is no longer valid", None),         ("Relevant: Yes", 1),
        ("Nothing to say", None), ("Yesterday", None),
    ],
)  # fmt: skip
def test_yes_no(reply: str, value: int | None) -> None:
    assert parse_yes_no(reply).value == value


LABELS = ("Not relevant", "Somewhat relevant", "Very relevant")


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("The document is off topic. Not relevant", 0), ("It is on topic: **somewhat relevant**.", 1),
        ("Very relevant: it answers the question.", 2), ("The document is not very relevant.", None),
        ("Very relevant: it's not relevant to tea, though.", 2),
        ("Not relevant because a very relevant one would name it", 0),
        ("Somewhat relevant, but it is not very relevant", 1),
        ("Not relevant.\n\nOn reflection: somewhat relevant.", 1),
        ("It is relevant to tea but not relevant to coffee", 0),
        ("Not relevant: none\nSomewhat relevant: some\nVery relevant: all", None),
        ("Not relevant, Somewhat relevant, Very relevant", None),
        ("Not relevant.\n\nSomewhat relevant.\n\nOn reflection: Very relevant", 2),
        ("First passage: very relevant", 2),
        ("The passage isn't very relevant.", None),
        ("It doesn't mention tea\nNot relevant", 0), ("It does not mention tea: not relevant", 0),
        ("There is no doubt it is very relevant", 2),
        ("Label: 2", 2), ("It is irrelevant", None), ("", None),
    ],
)  # fmt: skip
def test_labels_in_prose(reply: str, value: int | None) -> None:
    assert parse_label(reply, LABELS, (0, 2)).value == value


def test_labels_that_begin_with_not() -> None:
    assert parse_label("It is not relevant.", ("not relevant", "relevant")).value == 0
    assert parse_label("It is relevant.", ("not relevant", "relevant")).value == 1
    assert parse_label("It isn't relevant.", ("not relevant", "relevant")).value is None
    assert parse_label("There is no support.", ("not_support", "partial_support", "support")).value is None
    assert parse_label("Not relevant: no\nRelevant: yes", ("not relevant", "relevant")).value is None
    assert parse_label("Not relevant.\nRelevant.", ("not relevant", "relevant")).value is None
    assert parse_label("It is not at all relevant.", ("irrelevant", "relevant")).value is None
    assert parse_label("not support", ("not_support", "partial_support", "support")).value == 0
    assert parse_label("partial support", ("not_support", "partial_support", "support")).value == 1


ASSIGN = ("not_support", "partial_support", "support")


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('["support", "not_support"]', ("support", "not_support")),
        ("['support', 'partial_support']", ("support", "partial_support")),
        ("```python\n['Support', 'Not Support',]\n```", ("support", "not_support")),
        ("[support, not_support]", ("support", "not_support")),
        ('Labels: ["support", "partial-support"] as explained.', ("support", "partial_support")),
        ('First ["support", "support"], then ["not_support", "support"]', ("not_support", "support")),
        ('{"labels": ["support", "support"]}', ("support", "support")),
        ('["support", "support"], as passage [1] says.', ("support", "support")),
        ("1. support\n2. not_support", ("support", "not_support")),
        ('["support"]', None),
        ('["support", "perhaps"]', None),
        ('["support", "sup', None),
        ("I cannot say.", None),
        ("", None),
    ],
)
def test_label_lists(reply: str, value: tuple[str, ...] | None) -> None:
    parsed = parse_label_list(reply, ASSIGN, 2)
    assert parsed.value == value
    assert bool(parsed.reason) == (value is None)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('["a b", "c"]', ("a b", "c")),
        ("['it's warm', 'c']", ("it's warm", "c")),
        ("['it\\'s \"warm\"', 'c']", ('it\'s "warm"', "c")),
        ('["say "tea" now", "c"]', None),
        ('["a, [1] b", "c"]', ("a, [1] b", "c")),
        ('["a\\"b", "caf\\u00e9"]', ('a"b', "café")),
        ('Here [1] is the list:\n```json\n[\n  "a",\n  "b"\n]\n```\nDone.', ("a", "b")),
        ("[“a”, “b”]", ("a", "b")),
        ("[]", ()),
        ('["a", "b', None),
        ('["a", "b"', None),
        ('["a", null, "b"]', ("a", "b")),
        ('First ["a"], then ["b", 3]', None),
        ('{"nuggets": ["a", "b"], "changes": ["none"]}', ("a", "b")),
        ('[{"nugget": "a", "importance": "vital"}]', ("a",)),
    ],
)
def test_lists(reply: str, value: tuple[str, ...] | None) -> None:
    assert parse_list(reply).value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{ "questions" : ["Why?", "How?"] }', ("Why?", "How?")),
        ('Sure!\n```json\n{"nuggets": ["black ink", "quill"]}\n```\nHope it helps [1].', ("black ink", "quill")),
        ("{'questions': ['What's up?', 'How?',]}", ("What's up?", "How?")),
        ('{"questions": [{"question": "Why?"}, {"question": "How?"}]}', ("Why?", "How?")),
        ('["Why?", "How?"]', ("Why?", "How?")),
        ('{"question": "Why?"}\n{"question": "How?"}', ("Why?", "How?")),
        ('{"question": "Why?", "answer": "because"}', None),
        ('{questions: ["Why?"]}', ("Why?",)),
        ('1. Why?\n2. "How?"', None),
        ('{"questions": ["Why?", "Ho', None),
        ('{"questions": []}', None),
        ("I can't do that.", None),
        # a null is nothing, and no part of the texts around it
        ('["What is A?", null, "What is B?"]', ("What is A?", "What is B?")),
        ("['What is A?', None, 'What is B?']", ("What is A?", "What is B?")),
        # several lists: that with the name of what is asked for, else none of them
        ('{"questions": ["Why?", "How?"], "analysis": ["I think", "so"]}', ("Why?", "How?")),
        ('{"questions": ["Why?"], "answers": ["Because."]}', ("Why?",)),
        ('{"this": ["Why?"], "that": ["How?"]}', None),
        ('{"questions": ["Why?"], "nuggets": ["ink"]}', None),
        ('{"questions": ["Why?", "How?"], "notes": ["x"]', ("Why?", "How?")),
        ('Analysis: ["I think"]\nQuestions: ["Why?", "How?"]\nNotes: ["none"]', ("Why?", "How?")),
        # objects: the text, not what stands beside it
        ('[{"id": "Q1", "question": "Why?"}, {"id": "Q2", "question": "How?"}]', ("Why?", "How?")),
        ('{"questions": [{"id": "Q1", "type": "why", "text": "Why?"}]}', ("Why?",)),
        ('{"id": "Q1", "question": "Why?"}\n{"id": "Q2", "question": "How?"}', ("Why?", "How?")),
        ('[{"id": "Q1"}, {"id": "Q2"}]', None),
        ('[{"first": "Why?", "second": "How?"}]', None),
        # lists inside of lists
        ('[["Why?"], ["How?"]]', None),
        ('["Why?", 3]', None),
        ('["Why?", ["How?", "When?"]]', None),
        ("", None),
    ],
)
def test_generated_items(reply: str, value: tuple[str, ...] | None) -> None:
    assert parse_items(reply).value == value


WORDS = st.text(alphabet="abc ?'[]{}:,\"\\\n1ü", max_size=12)


@given(st.lists(st.one_of(WORDS, st.none()), max_size=5), st.sampled_from(["questions", "nuggets", "out"]))
def test_a_json_list_of_texts_is_read_as_it_stands_in_any_wrapping(texts: list[str | None], name: str) -> None:
    expected = tuple(" ".join(text.split()) for text in texts if text and text.strip()) or None
    ids = [{"id": f"Q{n}", "question": text} for n, text in enumerate(texts)]
    wrappings = (texts, {name: texts}, {"analysis": ["x", "y"], name: texts})
    for wrapped in (*wrappings, *((ids, {name: ids}) if None not in texts and "" not in texts else ())):
        assert parse_items(f"Here [1]:\n```json\n{json.dumps(wrapped)}\n```\nDone.").value == expected


ASPECTS = ("relevance", "accuracy")


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('text {x}\n{"relevance": 2, "accuracy": 0}', {"relevance": 2, "accuracy": 0}),
        (
            '{"relevance": 1, "accuracy": 1}\nRevised: {"accuracy": "2", "relevance": 2.0}',
            {"relevance": 2, "accuracy": 2},
        ),
        ("{'relevance': 2, 'accuracy': 1,}", {"relevance": 2, "accuracy": 1}),
        ('{"relevance": 2}', None),
        ('{"relevance": 3, "accuracy": 1}', None),
        ('{"relevance": 1', None),
        ("fine", None),
    ],
)
def test_aspects(reply: str, value: dict[str, int] | None) -> None:
    assert parse_aspects(reply, ASPECTS).value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("A is better. [[A]]", "a"), ("[[A]] at first, but [[B]]", "b"), ("**[[C]]**", "tie"), ("[[ b ]]", "b"),
        ("[A]", None), ("A", None), ("<think>[[A]]</think>", None), ("", None), ("[[D]]", None),
    ],
)  # fmt: skip
def test_verdicts(reply: str, value: str | None) -> None:
    assert parse_verdict(reply).value == value


PIECES = st.lists(
    st.sampled_from(
        ["Rating", ": ", "4", "5", "/5", " out of ", "-", "[", "]", "{", "}", '"', "'", ",", "\n", "yes", "no", ".",
         "support", "[[A]]", "<think>", "</think>", " ", "**", "The answer", "\\", "1e999", "²", "½"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(st.one_of(st.text(max_size=300), PIECES))
def test_no_reply_makes_a_parser_fail(text: str) -> None:
    for low, high in ((0, 5), (0, 2), (1, 10)):
        rating = parse_rating(text, (low, high)).value
        assert rating is None or (type(rating) is int and low <= rating <= high)
    assert parse_rating(text, unparsed="exampp").value in (None, 0, 1, 2, 3, 4, 5)
    assert parse_rating(text, compat="workbench").value in (0, 1, 2, 3, 4, 5)
    assert parse_yes_no(text).value in (None, 0, 1)
    assert parse_label(text, LABELS, (0, 2)).value in (None, 0, 1, 2)
    labels = parse_label_list(text, ASSIGN).value
    assert labels is None or set(labels) <= set(ASSIGN)
    assert parse_verdict(text).value in (None, "a", "b", "tie")
    for texts in (parse_list(text).value, parse_items(text).value):
        assert texts is None or all(isinstance(entry, str) for entry in texts)
    aspects = parse_aspects(text, ASPECTS).value
    assert aspects is None or all(0 <= grade <= 2 for grade in aspects.values())


LONG = "It tells much about tea and names 12 kinds of it. " * 200

# The texts are ours, because the published replies have no licence; their forms are those of the replies.
FORMS = {
    3: (
        "3",
        "It is about tea.\n\n3",
        "It is about tea.\n\n3.",
        "Answer: 3",
        "Relevance: 3",
        "##final score: 3",
        "## Final score: 3",
        "##3",
        "M: 1\nT: 2\nO: 3",
        "##M: 1  \n##T: 2  \n##O: 3",
        "##M: 1##\n##T: 2##\n##O: 3##",
        "##O: 3",
        "0. M: 1, T: 2, O: 3",
        "Here are the scores:\n\nM: 1\nT: 2\nO: 3",
        "M: 2 (it names tea)\nT: 1 (a blog)\nO: 3",
        "M: 1 T: 2 O: 3",
        "0. Intent: 1\n1. Matching: 2\n2. Trustworthiness: 1\n3. Final score: 3",
        "Intent: 2\nMatch: 2\nTrust: 1\nOverall: 3",
        "1. Consider the intent of the search: 1\n2. Measure how well it matches (M): 2\n3. Measure trust (T): 1\n"
        "4. Consider the aspects above and the relative importance of each, and decide on a final score (O): 3",
        "Step 3: T = 1 (a blog)\nStep 4: O = 3\n\n##final score: 3",
        "The final score (O) is 3.",
        "3: 3",
        "##3: 3",
        "It names it.\n\nTherefore, the relevance category is: 3",
        "It names it.\n\nTherefore, my answer is: 3",
        "Therefore, I would categorize the relevance as: 3",
        "Therefore, I would rate the relevance of this passage as 3.",
        "Therefore, I would categorize the relevance of the passage to the query as 3.",
        "The answer is 3.",
        'Therefore, I would categorize the relevance of the passage to the query as "3".',
        "My answer: 3",
        'I\'ve read the passage and categorized it as a "3" (it names the query).',
        "The answer is clear, making it a category 3.",
        "The answer is here, making it a category 3 relevance.",
        "It seems related (category 3).",
        "Relevance category: 3",
        "It is clear, making it a strong candidate for a relevance category of 3.",
        "Category: 3\n\nThe passage is about 2 teas.",
        "3: Detailed, clear coverage.",
        "Rating: [[3]]",
        'I would rate it as follows: "Rating: [[3]]".',
        "The answer is: 3",
        "Query: tea in 4 steps\nPassage: Score: 1\n\n##final score: 3",
        "2\n\nAnswer: 2\n\nFinal answer: 3",
        # by principle
        "Level 3",
        "Assessment: 3",
        '{"relevance": 3}',
        "<rating>3</rating>",
        "3/5",
        "\\boxed{3}",
        "Rating (0-5): 3",
        "Rating: three",
        '{"M": 1, "T": 2, "O": 3}',
        '{"reason": "The film has a score: 4", "grade": 3}',
        '{"grade": 3, "reason": "It sto',
        '{"grade": {"score": 3}}',
        f'{{"reason": "{LONG}", "grade": 3}}',
        f'```json\n{{"reason": "{LONG}", "grade": 3}}\n```',
        f"Rating: 3\n\n{LONG}",
        f"{LONG}\n\nRating: 3",
        f"<think>{LONG} Rating: 1</think>Rating: 3",
    ),
    None: (
        "4-6 months",
        "4 – 6 weeks",
        "2 or 3",
        "1:1 scale",
        "1/8",
        "10%",
        '2"',
        "3-inch",
        "5-gallon",
        "3rd",
        "$4",
        "4.5",
        "≥4",
        "3. Increase your water intake",
        "1. Open the lid.\n2. Stir.\n3.",
        "4.3 out of 5 stars",
        "00:00",
        "4:30",
        "Article 5",
        "#4 – Raspberry tea",
        "M: 1",
        "1. Measure how it matches (M): some. Score: 1\n\n2. Measure trust (T",
        "M: 1\nT: 3",
        "B-12",
        "The passage mentions option 4.",
        "It tells of tea. Therefore, I would categorize",
        "The answer is not here.\n\nAnswer: ",
        "##final score: 0\n##final score: 1\n##final score: 2",
        "Rating: 2\nRating: 3",
        "Rating: 2-3",
        "Rating: 2.5",
        "Rating: 3/10",
        "Rating: 8",
        "Rating (1-10): 4",
        "1 tea 1 tea 1 tea 1",
        '0"\n"\n"\n0"',
        ",,,,",
        "Passage: The tea costs 4.",
        f"{LONG}Rating: 3. {LONG}",
        '{"relevance": 2, "coverage": 3}',
        "The tea has a score of 4.",
        "3 months",
        "2 days/wk",
        "October 4, 2016",
        "score 3 goals",
    ),
}


@pytest.mark.parametrize(("reply", "grade"), [(reply, grade) for grade, forms in FORMS.items() for reply in forms])
def test_every_form_of_real_replies(reply: str, grade: int | None) -> None:
    parsed = parse_rating(reply)
    assert parsed.value == grade
    assert bool(parsed.reason) == (grade is None)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("The answer to this is yes", 1),
        ("The answer to this question is no.", 0),
        ('{"relevance": true}', 1),
        ('{"reason": "Yes, it says no.", "answer": "no"}', 0),
        ("<answer>yes</answer>", 1),
        ("[[No]]", 0),
        ("I would say yes.", 1),
        ("It names it.\n\nFinal answer: **No**", 0),
        ("No - it is about tea", 0),
        ("Is it relevant? Yes", 1),
        ("true", None),
        ("Answer: yes\nAnswer: no", None),
        ("The tea is good, no doubt.", None),
        (f"Yes. {LONG}", 1),
        (f"{LONG}\nAnswer: no", 0),
    ],
)
def test_yes_and_no_are_read_by_the_same_grammar(reply: str, value: int | None) -> None:
    assert parse_yes_no(reply).value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Label: partial_support", 1),
        ("**Support**", 2),
        ("The label is: not support.", 0),
        ('{"label": "partial support"}', 1),
        ("I would label it partial support because it lacks the year.", 1),
        ("support\nnot_support", None),
        ("The answer to this is support", 2),
        ("It gives support, but the final label is partial_support.", 1),
    ],
)
def test_support_words_are_read_by_the_same_grammar(reply: str, value: int | None) -> None:
    assert parse_label(reply, ("not_support", "partial_support", "support")).value == value


def rows() -> list[dict[str, str]]:
    path = shared_data("replies/replies-dev.tsv.gz")
    csv.field_size_limit(10**9)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if row["truth"] != "?"]


def test_no_published_reply_is_unread_or_read_wrongly() -> None:
    found: Counter[str] = Counter()
    for row in rows():
        reply, truth = json.loads(row["reply"]), None if row["truth"] == "none" else row["truth"].lower()
        if row["scale"] == "A|B|C":
            value = {"a": "a", "b": "b", "tie": "c"}.get(parse_verdict(reply).value or "")
        else:
            low, high = map(int, row["scale"].split("-"))
            grade = parse_rating(reply, (low, high)).value
            value = None if grade is None else str(grade)
        assert value == truth, row
        found[row["source"].split("-")[0]] += 1
    assert found == {"flan": 1807, "mtbench": 152, "ragelo": 100, "umbrela": 3185}


def test_published_replies_that_are_cut_before_their_verdict_are_unparsed() -> None:
    """A judge that reasons says its verdict last; until then nothing in its words is one."""
    reasoned = [json.loads(row["reply"]).strip() for row in rows() if row["source"] == "umbrela-basic-llama3-8b"]
    cut = [reply.rpartition("\n")[0] for reply in reasoned if "\n\n" in reply and reply[0].isalpha()]
    assert len(cut) > 2000
    assert [reply for reply in cut if parse_rating(reply, (0, 3)).value is not None and '"0"' not in reply] == []


HOSTILE = ["\n", "a", '"', "'", "9", "\n4", "the, ", "{", "[", '{"a": ', "I rate ", "</s>", '["', "a a a ", "-", "<s>"]


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("parser", ["rating", "yes_no", "label", "label_list", "list", "items", "aspects", "text"])
def test_the_time_to_read_a_verdict_does_not_grow_with_the_square_of_the_reply(hostile: str, parser: str) -> None:
    began = time.perf_counter()
    parse_reply(hostile * (100_000 // len(hostile)), parser, (0, 2), ("bad", "fair", "good"))
    assert time.perf_counter() - began < 5
