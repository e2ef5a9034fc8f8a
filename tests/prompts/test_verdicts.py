"""The grammar of verdicts: the forms of real replies, and the published replies themselves where they are present."""

from __future__ import annotations

import csv
import gzip
import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError
from rubric_measures.prompts.library import load_prompt
from rubric_measures.prompts.parsers import Reading, parse_label, parse_rating, parse_reply, parse_verdict, parse_yes_no

REPLIES = Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REPLIES = REPLIES / "data" / "replies" / "replies-dev.tsv.gz"
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
    if not REPLIES.exists():
        pytest.skip("the published replies are not here")
    csv.field_size_limit(10**9)
    with gzip.open(REPLIES, "rt", encoding="utf-8", newline="") as lines:
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


@pytest.mark.parametrize("hostile", ["\n", "a", '"', "'", "9", "\n4", "the, ", "{", "[", '{"a": ', "I rate ", "</s>"])
@pytest.mark.parametrize("parser", ["rating", "yes_no", "label"])
def test_the_time_to_read_a_verdict_does_not_grow_with_the_square_of_the_reply(hostile: str, parser: str) -> None:
    began = time.perf_counter()
    parse_reply(hostile * (100_000 // len(hostile)), Reading(parser, (0, 2), ("bad", "fair", "good")))
    assert time.perf_counter() - began < 5


PROMPT = """name = "Own"
target = "question"
parser = "{parser}"
scale = {scale}
text = "{{question}} {{context}}"
"""


def own_prompt(folder: Path, reading: str, parser: str = "rating", scale: str = "[0, 3]\ncovers = 2") -> str:
    path = folder / "own.toml"
    path.write_text(PROMPT.format(parser=parser, scale=scale) + reading + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("reading", "reply", "grade"),
    [
        (r"pattern = 'verdict=(?P<grade>\d)'", "Rating: 1, verdict=2", 2),
        (r"pattern = 'verdict=(?P<grade>\w+)'", "verdict=two", 2),
        (r"pattern = 'verdict=(?P<grade>\d)'", "verdict=2 and verdict=2", 2),
        (r"pattern = 'verdict=(?P<grade>\d)'", "verdict=2 and verdict=1", None),
        (r"pattern = 'verdict=(?P<grade>\d)'", "Rating: 1", None),
        (r"pattern = 'verdict=(?P<grade>\d)'", "verdict=9", None),
        (r"pattern = 'verdict=(?P<grade>\d)'", "<think>verdict=1</think>verdict=2", 2),
        ('json_field = "T"', '{"rating": 1, "T": 2}', 2),
        ('json_field = "T"', '{"T": 1} and then {"T": "3"}', 3),
        ('json_field = "T"', '{"rating": 1}', None),
        ('json_field = "T"', '{"T": null}', None),
        ('json_field = "T"', "Rating: 1", None),
    ],
)
def test_a_prompt_may_say_where_its_grade_stands(tmp_path: Path, reading: str, reply: str, grade: int | None) -> None:
    prompt = load_prompt(own_prompt(tmp_path, reading))
    parsed = prompt.parse(reply)
    assert parsed.value == grade
    assert bool(parsed.reason) == (grade is None)


def test_a_reading_of_its_own_for_words(tmp_path: Path) -> None:
    prompt = load_prompt(own_prompt(tmp_path, 'json_field = "met"', parser="yes_no", scale="[0, 1]"))
    assert [prompt.parse(reply).value for reply in ('{"met": true}', '{"met": "No"}', "yes")] == [1, 0, None]


def test_a_reading_of_its_own_is_part_of_the_hash_and_others_keep_theirs(tmp_path: Path) -> None:
    plain = load_prompt(own_prompt(tmp_path, ""))
    own = [load_prompt(own_prompt(tmp_path, one)) for one in ('json_field = "a"', 'json_field = "b"')]
    assert len({prompt.hash for prompt in (plain, *own)}) == 3
    assert plain.hash == "b3bc0801fc1d37c1c292a2bf8e30d885d1a307f7e7450a8b2b199de502abdb8d"


@pytest.mark.parametrize(
    ("reading", "problem"),
    [
        (r"pattern = '(\d)'", "pattern has no group named grade"),
        ("pattern = '('", "pattern is no regular expression"),
        (r"pattern = '[[(?P<grade>\d)]]'", r"possible nested set at position 1: write \\\[ for a bracket"),
        ('json_field = ""', "json_field is empty"),
        ("json_field = 3", "json_field must be a str"),
        ("pattern = '(?P<grade>3)'\njson_field = 'a'", "leave one of them out"),
    ],
)
def test_a_reading_that_can_read_nothing_is_refused(tmp_path: Path, reading: str, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        load_prompt(own_prompt(tmp_path, reading))
