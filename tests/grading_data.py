"""Small banks and passages for the tests of grading, made from word lists."""

from __future__ import annotations

import random
from pathlib import Path

from rubric_measures.formats.banks import write_bank
from rubric_measures.records.models import GradedPassage, QueryPassages, write_graded
from rubric_measures.types.entities import ItemKind, RubricItem, TestBank, make_item_id
from tests.example_records import bank_from_items

_TEXT = """
    leap year calendar orbit sun earth february day solar season rule century divisible four hundred pope gregorian
    julian reform correction clock second minute moon tide farmer feast date count error drift equinox
"""
WORDS = _TEXT.split()


def make_bank(queries: int = 2, items: int = 3, kind: ItemKind = "question", gold: bool = False) -> TestBank:
    draw = random.Random(7)
    made = []
    texts = {}
    for number in range(queries):
        query_id = f"q{number}"
        texts[query_id] = f"why {' '.join(draw.sample(WORDS, 2))}"
        for place in range(items):
            text = f"What about {' '.join(draw.sample(WORDS, 3))} {place}?"
            answers = (draw.choice(WORDS),) if gold else ()
            made.append(RubricItem(make_item_id(query_id, text), query_id, text, kind, gold_answers=answers))
    return bank_from_items(made, texts)


def make_groups(queries: int = 2, passages: int = 4, length: int = 12) -> list[QueryPassages]:
    draw = random.Random(11)
    return [
        QueryPassages(
            f"q{number}",
            [
                GradedPassage(doc_id=f"d{number}-{place}", text=" ".join(draw.choices(WORDS, k=length)) + f" {place}.")
                for place in range(passages)
            ],
        )
        for number in range(queries)
    ]


def write_inputs(folder: Path, queries: int = 2, passages: int = 4, items: int = 3) -> tuple[Path, Path]:
    passages_file, bank_file = folder / "passages.jsonl.gz", folder / "bank.jsonl"
    write_graded(passages_file, make_groups(queries, passages))
    write_bank(bank_file, make_bank(queries, items))
    return passages_file, bank_file
