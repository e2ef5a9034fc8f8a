"""Items in lines with numbers and bullets: which lines are items, and what of a line is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.prompts.parsers import marked_texts


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("What is X?", "What is X?"),
        ("**What is X?** This asks about it.", "What is X?"),
        ("**What is X?** — the definition", "What is X?"),
        ("__What is X?__: the definition", "What is X?"),
        ("**What is X?**", "What is X?"),
        ('"What is X?" This asks about it.', "What is X?"),
        ('"What is X?",', "What is X?"),
        ("'What is X?',", "What is X?"),
        ("What is X? (the definition)", "What is X?"),
        ("What is X? - the definition", "What is X?"),
        ("**Question 3:** What is X?", "What is X?"),
        ("**Definition**: What is X?", "Definition: What is X?"),
        ("Why **Y** and *not* Z?", "Why Y and not Z?"),
        ("**What is X?** And why?", "What is X? And why?"),
        # what goes on is no explanation, and what only looks like a mark stays
        ("What is X? And why?", "What is X? And why?"),
        ("Is it A? If so, when?", "Is it A? If so, when?"),
        ("**U.S.** presidents are elected", "U.S. presidents are elected"),
        ('How does "Y"', 'How does "Y"'),
        ("What does __init__ do with *args and **kwargs?", "What does __init__ do with *args and **kwargs?"),
        ("Is 2**3 or 3**2 more?", "Is 2**3 or 3**2 more?"),
        ("Is it red (or blue)?", "Is it red (or blue)?"),
        (",", ""),
    ],
)
def test_the_item_of_a_line(line: str, item: str) -> None:
    assert marked_texts(f"1. {line}\n2. Last?")[0] == item


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        # what stands below an item, and a plan before them
        ("1. What is X?\n   - what it means\n   - more\n2. Why Y?\n   - the cause", ["What is X?", "Why Y?"]),
        ("- What is X?\n    - what it means\n- Why Y?", ["What is X?", "Why Y?"]),
        ("- the origin\n- the use\n\n1. What is X?\n2. Why Y?", ["What is X?", "Why Y?"]),
        ("Plan:\n- the origin\n- the use\n\n**Questions:**\n- What is X?\n- Why Y?", ["What is X?", "Why Y?"]),
        ("1. Read it\n2. Ask\n\n- What is X?\n- Why Y?", ["What is X?", "Why Y?"]),
        # headings
        ("1. **Basics:**\n   - What is X?\n   - Who is?\n2. Causes:\n   - Why Y?", ["What is X?", "Who is?", "Why Y?"]),
        ("## Basics\n1. What is X?\n2. Why Y?\n## More\n1. How Z?", ["What is X?", "Why Y?", "How Z?"]),
        # all of them, where all could be items
        ("1. What is X?\n2. Why Y?\n\nMore:\n- How Z?\n- Who?", ["What is X?", "Why Y?", "How Z?", "Who?"]),
        ("  1. What is X?\n  2. Why Y?\n10. How Z?", ["What is X?", "Why Y?", "How Z?"]),
        ("1. X is water\n- Y is fire\n- Z is air", ["X is water", "Y is fire", "Z is air"]),
        ("1. A: b\n2. Basics:\n- Y is fire", ["A: b", "Basics:", "Y is fire"]),
        ("no marks", []),
    ],
)
def test_the_lines_that_are_items(reply: str, items: list[str]) -> None:
    assert marked_texts(reply) == items


@given(st.text(alphabet="1.-*_ \t\n\"'?:(),aB", max_size=40))
def test_items_are_of_the_reply_and_never_empty_lines(reply: str) -> None:
    for item in marked_texts(reply):
        assert "\n" not in item and set(item) <= set(reply)


@given(st.lists(st.from_regex(r"[A-Z][a-z]+( [a-z]+){0,4}[?]", fullmatch=True), max_size=9))
def test_plain_lists_are_read_as_they_are(texts: list[str]) -> None:
    for mark in ("-", "*", "•"):
        assert marked_texts("\n".join(f"{mark} {text}" for text in texts)) == texts
    assert marked_texts("\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))) == texts
