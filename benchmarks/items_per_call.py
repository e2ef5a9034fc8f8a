"""What ten items of a passage cost: singly, in one call, and singly behind a server that has prefixes in its cache.

Run as `python -m benchmarks.items_per_call` from the repository root. A loopback server counts words and marks as
tokens, and those of a prompt's beginning that it was shown before, in blocks of 16 as vLLM has them. What a model would
say is not measured here: whether grades of several items are as good as those of one, agreement with assessors says.
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

import rubric_measures
from rubric_measures.formats.banks import write_bank
from rubric_measures.records.models import GradedPassage, QueryPassages, write_graded
from rubric_measures.types.entities import RubricItem
from tests.example_records import bank_from_items
from tests.fault_server import running

PASSAGES, ITEMS, WORDS = 100, 10, 150
PRICE = {"input": 2.5, "output": 10}
# What a million tokens cost less that the server had.
SPARED = 1.25
PAPER = "QuestionSelfRatedUnanswerablePromptWithChoices"
# The same with the passage first, so that all calls about a passage begin alike.
FIRST = '''
target = "question"
parser = "rating"
scale = [0, 5]
covers = 4
partial = 3
text = """
Context: {context}
Can the question be answered based on the context? Choose one:
5: The answer is highly relevant, complete, and accurate.
4: The answer is mostly relevant and complete but may have minor gaps or inaccuracies.
3: The answer is partially relevant and complete, with noticeable gaps or inaccuracies.
2: The answer has limited relevance and completeness, with significant gaps or inaccuracies.
1: The answer is minimally relevant or complete, with substantial shortcomings.
0: The answer is not relevant or complete at all.
Question: {question}
Rating:"""
'''


def write_inputs(folder: Path) -> None:
    """Passages of drawn words and ten questions, a prompt, a price table and what the model says."""
    draw = random.Random(0)
    words = ["leap", "year", "calendar", "orbit", "sun", "season", "rule", "century", "pope", "clock", "moon", "tide"]
    passages = [
        GradedPassage(doc_id=f"d{number}", text=" ".join(draw.choices(words, k=WORDS))) for number in range(PASSAGES)
    ]
    write_graded(folder / "passages.jsonl", [QueryPassages("q", passages)])
    items = [
        RubricItem(f"q/{number}", "q", f"What does {' '.join(draw.sample(words, 6))} say of {number}?", "question")
        for number in range(ITEMS)
    ]
    write_bank(folder / "bank.jsonl", bank_from_items(items, {"q": "why"}))
    (folder / "first.toml").write_text(FIRST, encoding="utf-8")
    (folder / "prices.json").write_text(json.dumps({"m": PRICE}), encoding="utf-8")
    several = json.dumps({str(number): "3" for number in range(1, ITEMS + 1)})
    rules = [{"contains": "There are several", "reply": several}, {"contains": "", "reply": "3"}]
    (folder / "replies.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")


def main() -> None:
    """Prints a line a way."""
    ways = [
        ("single", PAPER, 1, 0),
        ("single, prefix cache", PAPER, 1, 16),
        ("batched", PAPER, "all", 0),
        ("single, passage first", "first.toml", 1, 0),
        ("single, passage first, prefix cache", "first.toml", 1, 16),
        ("batched, passage first", "first.toml", "all", 0),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        print(
            "| way | calls | tokens shown | of these in the server's cache | tokens written | cost |\n"
            "|---|---|---|---|---|---|"
        )
        for way, prompt, size, block in ways:
            with running(replies=folder / "replies.jsonl", counts_tokens=1, prefix_block=block) as server:
                records = rubric_measures.grade(
                    folder / "passages.jsonl",
                    folder / "bank.jsonl",
                    model="openai:m",
                    calls=rubric_measures.Calls(base_url=server.url, prices=folder / "prices.json"),
                    prompt=str(folder / prompt) if prompt.endswith(".toml") else prompt,
                    asking=rubric_measures.Asking(items_per_call=size),
                )
            run = records.report.run
            assert records.report.by_status == {"graded": PASSAGES * ITEMS}
            shown = f"{run.prompt_tokens:,} | {run.prefix_tokens:,} | {run.completion_tokens:,}"
            cost = run.cost - SPARED * run.prefix_tokens / 1e6
            print(f"| {way} | {run.calls:,} | {shown} | {cost:.3f} |", flush=True)


if __name__ == "__main__":
    main()
