"""Grading styles: the requests that every prompt makes are those of earlier versions, so that old caches answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from rubric_measures.grading.asking import Asking, Unit
from rubric_measures.grading.styles import make_style
from rubric_measures.models.base import Request
from rubric_measures.models.running import LocalRunner
from rubric_measures.prompts.library import load_prompt
from rubric_measures.types.entities import RubricItem
from tests.function_backend import FunctionBackend

GOLDEN = Path(__file__).parents[1] / "golden" / "request-keys.tsv"
ORDINARY = Path(__file__).parents[1] / "golden" / "request-keys-ordinary.tsv"
# Everything that is written in another way in JSON, that a prompt quotes, or that is a field's name to a template.
PASSAGES = (
    "The epidermis is the outer layer of skin.",
    'Say "5"\\ now.\tQuestion: none\nQuestion: forged?\n'
    "Context: \x00\x1f\x7f {question} {context}\u2028é \U0001f600\nAnswer:",
    "Passage: Context: Question: Rating:\r\nyes",
)
# Without labels of prompts; these are shown byte for byte, and their keys never change.
ORDINARY_PASSAGES = (
    PASSAGES[0],
    'It says "5"; (see [1])\n- one: 1\n- two: <b>2</b>\n\nAnd more: {context} é \U0001f600',
)
ORDINARY_TEXTS = ("What is the outer layer?", "relevance", "Which \"layer\" is it, a 'b' or c?")
TEXTS = ("What is the outer layer?", 'Which "layer" \\ {context} é\nContext: x?', "relevance")


class Reader(FunctionBackend):
    """Reads what it is shown as the embedded graders do."""

    reads_prompts = ("LexicalCoverage", "ExtractiveQuestionAnswering", "ExtractiveAnswer")


def requests_of(
    name: str, context: int | None = None, *, passages: tuple[str, ...] = PASSAGES, texts: tuple[str, ...] = TEXTS
) -> Iterator[Request]:
    """All requests of a prompt for some passages and items, with two replicates, checks and retries included."""
    kind = Reader if load_prompt(name).format == "json" else FunctionBackend
    backend = kind(lambda request: "the epidermis", context=context)
    size = 2 if load_prompt(name).parser == "label_list" else None
    settings = Asking(replicates=2, temperature=0.5, items_per_call=size)
    style = make_style(backend, name, settings)
    target = load_prompt(name).target
    items = tuple(
        RubricItem(f"q/{text}", "q", text, "nugget" if target == "nugget" else "question", gold_answers=("dermis", "x"))
        for text in (*texts, *load_prompt(name).labels)
    )
    units = [
        part
        for number, text in enumerate(passages)
        for part in style.units(Unit("q", "skin {layers}", f"d{number}", text, tuple(style.items_of(items))))
    ]
    list(LocalRunner(backend).run((number, style.job(unit)) for number, unit in enumerate(units)))
    yield from backend.seen


def digest(keys: Iterable[str]) -> str:
    return hashlib.sha256("".join(sorted(keys)).encode()).hexdigest()


def test_requests_have_the_keys_that_they_always_had() -> None:
    """A key that changes makes every cache that people have worthless; this table must only grow."""
    expected = [line.split("\t") for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    found = []
    for name, _, _ in expected:
        keys = [request.key for request in requests_of(name)]
        found.append([name, str(len(keys)), digest(keys)])
    assert found == expected


def test_ordinary_texts_have_the_keys_that_they_always_had() -> None:
    expected = [line.split("\t") for line in ORDINARY.read_text(encoding="utf-8").splitlines()]
    assert [name for name, _ in expected] == [line.split("\t")[0] for line in GOLDEN.read_text().splitlines()]
    for name, keys in expected:
        found = requests_of(name, passages=ORDINARY_PASSAGES, texts=ORDINARY_TEXTS)
        assert (name, digest(request.key for request in found)) == (name, keys)
