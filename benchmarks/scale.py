"""What grading costs at the size of TREC DL 2020, TREC RAG 2024 and a hundred times that, computed from measured rates.

Change the rates below, or give prices and a GPU as options, and run it again: the tables of benchmarks/README.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Workload:
    """A collection to grade with one prompt.

    Attributes:
        name: what it is.
        queries: queries or topics.
        passages: passages or answers a query.
        items: rubric items a query.
        items_a_call: items that one call grades.
        prompt_tokens: tokens of one prompt, as `grade --dry-run` estimates them.
        reply_tokens: tokens of one reply.
        passage_tokens: tokens of a passage.
        words: words of a passage.
    """

    name: str
    queries: int
    passages: float
    items: int
    items_a_call: int
    prompt_tokens: int
    reply_tokens: int
    passage_tokens: int
    words: int

    @property
    def texts(self) -> float:
        """Passages or answers."""
        return self.queries * self.passages

    @property
    def grades(self) -> float:
        """Grades, one a (passage, item)."""
        return self.texts * self.items

    @property
    def calls(self) -> float:
        """Calls of the model."""
        return self.grades / self.items_a_call

    @property
    def tokens(self) -> float:
        """Tokens of all prompts."""
        return self.calls * self.prompt_tokens

    @property
    def replies(self) -> float:
        """Tokens of all replies."""
        return self.calls * self.reply_tokens

    def hundredfold(self) -> Workload:
        """The same with a hundred times the queries."""
        return replace(self, name=f"100 × {self.name}", queries=100 * self.queries)


@dataclass(frozen=True)
class Family:
    """How fast one kind of model reads prompts.

    Attributes:
        name: the model.
        rate: tokens of prompts read in a second of one processor core (or of one GPU).
        source: `measured`, or `computed` from a measured rate by the number of operations.
        extracts: the prompt is only passage and question.
    """

    name: str
    rate: float
    source: str
    extracts: bool = False

    def seconds(self, work: Workload) -> float:
        """Seconds of one core (or one GPU)."""
        tokens = work.tokens
        if self.extracts:
            tokens = work.grades * (work.passage_tokens + 12)
        return tokens / self.rate


# 11,394 passages of about 60 words, ten questions, a rating a call (--dry-run of the generated collection).
DL = Workload("DL 2020", 54, 211, 10, 1, 237, 2, 80, 60)
# 300 topics, 146 runs, answers of about 260 words, 20 nuggets, ten labels a call (nuggets.assign).
RAG = Workload("RAG 2024, labels", 300, 146, 20, 10, 750, 60, 350, 260)
# The same with a rating a nugget (NuggetSelfRatedPrompt).
RATED = Workload("RAG 2024, ratings", 300, 146, 20, 1, 500, 2, 350, 260)
WORKLOADS = [one for work in (DL, RAG, RATED) for one in (work, work.hundredfold())]

# Measured by benchmarks.hugging_face, one thread, float32: 60 prompts of 300 tokens in 17.5 s of processor time.
T5_SMALL = 60 * 300 / 17.5
# 20 prompts of 299 tokens in 9.1 s.
LLAMA = 20 * 299 / 9.1
# Twelve questions of 10 tokens to passages of 250 to 350 in 14.9 s.
BERT_BASE = 12 * 312 / 14.9
# Weights that each token passes. T5: layers of attention (4 · width · 64 · heads) and gated feed-forward (3 · width ·
# inner); Llama: query and output, grouped keys and values, gated feed-forward.
T5_SMALL_SIZE = 8 * (4 * 512 * 64 * 6 + 3 * 512 * 1024)
T5_LARGE_SIZE = 24 * (4 * 1024 * 64 * 16 + 3 * 1024 * 2816)
LLAMA_SIZE = 12 * (2 * 576 * 576 + 2 * 576 * 192 + 3 * 576 * 1536)
EIGHT_BILLION = 8e9
FAMILIES = [
    Family("flan-t5-small", T5_SMALL, "measured"),
    Family("flan-t5-large", T5_SMALL * T5_SMALL_SIZE / T5_LARGE_SIZE, "computed"),
    Family("BERT-base, extractive", BERT_BASE, "measured", extracts=True),
    Family("decoder of 12 layers × 576", LLAMA, "measured"),
    Family("decoder of 8 billion weights", LLAMA * LLAMA_SIZE / EIGHT_BILLION, "computed"),
    # Grades a second of benchmarks.gpu by tokens a prompt.
    Family("flan-t5-large on a GPU", 218.4 * 378, "measured"),
    Family("8 billion weights on a GPU", 75.0 * 381, "measured"),
]
# Calls a second of processor time, whole command, replies at once and all from the cache (benchmarks.grading).
COMMAND, CACHED = 228_000 / 47, 228_000 / 10.9
# Grades of the lexical grader a second of processor time (benchmarks.grading).
LEXICAL = 228_000 / 58
# Calls a second of one client with 64 in flight at a server that takes 500 ms (benchmarks.http).
ENDPOINT = 125
# Bytes: of the cache, a call (benchmarks.grading, short local replies); of packed records, a word and a grade (from
# the generated collections of 10 and of 20 items).
CACHE, WORD, GRADE = 170, 3.1, 15


def duration(seconds: float) -> str:
    """Seconds as minutes, hours, days or years."""
    for unit, size in (("years", 365 * 86_400), ("days", 86_400), ("h", 3_600)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds / 60:,.0f} min" if seconds >= 120 else f"{seconds:,.0f} s"


def count(number: float, unit: str = "") -> str:
    """A number in thousands, millions or billions."""
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:,.1f} {prefix}{unit}"
    return f"{number:,.0f} {unit}".strip()


def table(rows: list[list[str]]) -> str:
    """Rows as a Markdown table, the first being the header."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]])


def sizes(price: float, reply_price: float) -> list[list[str]]:
    """What each collection needs, whatever the model: calls, tokens, bytes, and money at a price per million tokens."""
    rows = [["", "passages", "grades", "calls", "prompt tokens", "reply tokens", "cache", "records", "cost"]]
    for work in WORKLOADS:
        records = work.texts * work.words * WORD + work.grades * GRADE
        cost = (work.tokens * price + work.replies * reply_price) / 1e6
        rows.append(
            [work.name, *map(count, (work.texts, work.grades, work.calls, work.tokens, work.replies)),
             count(work.calls * CACHE, "B"), count(records, "B"), f"{cost:,.0f}"]
        )  # fmt: skip
    return rows


def times() -> list[list[str]]:
    """How long each collection takes on one core, on one GPU, and through one client of an endpoint."""
    rows = [["", "tokens/s", "rate is", *(work.name for work in WORKLOADS)]]
    rows.append(["lexical (no model)", "", "measured", *(duration(work.grades / LEXICAL) for work in WORKLOADS)])
    for family in FAMILIES:
        spent = [duration(family.seconds(work)) for work in WORKLOADS]
        rows.append([family.name, f"{family.rate:,.0f}", family.source, *spent])
    for name, rate in (
        ("endpoint of 500 ms, 64 in flight", ENDPOINT),
        ("the command, replies at once", COMMAND),
        ("the command, all cached", CACHED),
    ):
        rows.append([name, "", "measured", *(duration(work.calls / rate) for work in WORKLOADS)])
    return rows


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--price", type=float, default=0.15, help="of a million prompt tokens (default: 0.15)")
    parser.add_argument("--reply-price", type=float, default=0.6, help="of a million tokens of replies (default: 0.6)")
    options = parser.parse_args()
    print(table(sizes(options.price, options.reply_price)), table(times()), sep="\n\n")


if __name__ == "__main__":
    main()
