"""Changes that leave files well-formed but wrong, for `benchmarks.notices`: what each does to which file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.notices_edits import (
    CUT,
    DOC_IDS,
    ENCODINGS,
    EVERY_OTHER,
    EVERY_TENTH,
    QUERY_IDS,
    TORN,
    Edit,
    always,
    as_ranks,
    assigned,
    bank_ids,
    bank_queries,
    board_values,
    column,
    cut_rankings,
    direct_labels,
    doubled,
    entries,
    every_id,
    every_second,
    failed_passage,
    field,
    half_under,
    instead,
    is_even,
    is_first_run,
    is_odd,
    item_ids,
    judged,
    less,
    lost_item,
    mixed,
    new_texts,
    nfd,
    no_zeros,
    numbers,
    of_lines,
    of_list,
    of_next_query,
    of_objects,
    of_passages,
    of_ranked,
    of_rankings,
    of_rows,
    of_sets,
    of_table,
    one_tenth,
    only_lists,
    only_queries,
    ratings,
    renamed,
    rescored,
    rotated,
    rotated_table,
    run_ids,
    shifted_grades,
    some_ratings,
    swap_fields,
    swapped,
    twin_grades,
    twin_items,
    twin_passage,
    weighted,
    without_item,
    without_scale,
)
from benchmarks.notices_files import ANSWERING, RUNS, World, lines_of, make_world, number

__all__ = ["CHANGES", "JOBS", "UNTOLD", "Change", "Job", "ground_files"]


@dataclass(frozen=True)
class Job:
    """A command over unchanged files, of which one is changed at a time.

    Attributes:
        words: its arguments.
        peer: what ir_measures computes over the same files: qrels, runs, measures; None where it reads no such files.
    """

    words: tuple[str, ...]
    peer: tuple[str, tuple[str, ...], str] | None = None


@dataclass(frozen=True)
class Change:
    """One change of one file of a command."""

    group: str
    name: str
    job: str
    file: str
    edit: Edit


_RUN_FILES = tuple(f"runs/{name}.run" for name in RUNS)
_COVER = ("RubricCover@10", "nRubricCover@10", 'RubricQrels(measure="nDCG@10")')
JOBS: dict[str, Job] = {
    "evaluate": Job(
        ("evaluate", "qrels.txt", "runs/hybrid.run", "nDCG@10", "AP", "RR(rel=2)"),
        ("qrels.txt", ("runs/hybrid.run",), "nDCG@10 AP RR(rel=2)"),
    ),
    "board": Job(
        ("leaderboard", "qrels.txt", *_RUN_FILES, "-m", "nDCG@10", "AP"), ("qrels.txt", _RUN_FILES, "nDCG@10 AP")
    ),
    "evaluate items": Job(
        ("evaluate", "items.qrels", "runs/hybrid.run", "RubricCover@10", "alpha_nDCG(rel=4)@10"),
        ("items.qrels", ("runs/hybrid.run",), "alpha_nDCG(rel=4)@10 StRecall(rel=4)@10"),
    ),
    "items": Job(("leaderboard", "items.qrels", *_RUN_FILES, "-m", *_COVER)),
    "items and bank": Job(("leaderboard", "items.qrels", *_RUN_FILES, "--bank", "bank.jsonl", "-m", *_COVER)),
    "records": Job(("leaderboard", "graded.jsonl", "--bank", "bank.jsonl", "-m", *_COVER)),
    "records and runs": Job(("leaderboard", "graded.jsonl", *_RUN_FILES, "--bank", "bank.jsonl", "-m", *_COVER)),
    "official": Job(
        ("leaderboard", "graded.jsonl", *_RUN_FILES, "--bank", "bank.jsonl", "--qrels", "qrels.txt", "-m",
         "RubricCover@10", "nDCG@10")
    ),
    "example": Job(("leaderboard", "example.jsonl", "--bank", "example-bank.jsonl", "-m", "RubricCover@5")),
    "labels": Job(("leaderboard", "direct.jsonl", *_RUN_FILES, "-m", 'RubricQrels(measure="nDCG@10")')),
    "nuggets": Job(
        ("leaderboard", "answers.jsonl", "--bank", "nuggets.jsonl", "-m", "NuggetV(strict=True)", "NuggetA")
    ),
    "assignments": Job(("leaderboard", "assignments.jsonl", "-m", "NuggetV(strict=True)", "NuggetV", "NuggetA")),
    "weights": Job(("leaderboard", "graded.jsonl", "--bank", "weights.jsonl", "-m", "WeightedCover@10")),
    "verdicts": Job(("leaderboard", "verdicts.jsonl")),
    "qrels": Job(("qrels", "graded.jsonl", "--bank", "bank.jsonl", "--rel", "4")),
    "qrels of items": Job(("qrels", "items.qrels", "--label", "count")),
    "agreement": Job(("agreement", "qrels.txt", "model.qrels", "--rounds", "0", "--format", "tsv")),
    "agreement of records": Job(
        ("agreement", "qrels.txt", "graded.jsonl", "--cutoff", "2", "4", "--rounds", "0", "--format", "tsv")
    ),
    "correlate": Job(("correlate", "official.tsv", "board.tsv", "--rounds", "0", "--format", "tsv")),
    "correlate records": Job(
        ("correlate", "official-runs.tsv", "graded.jsonl", "--bank", "bank.jsonl", "-m",
         "RubricCover(rel=4)@10", "--rounds", "0", "--format", "tsv")
    ),
}  # fmt: skip


def _shift_ids(world: World, query_id: Callable[[str], str], doc_id: Callable[[str], str]) -> World:
    """The same collection under other ids."""
    return World(
        {query_id(query): items for query, items in world.items.items()},
        {(query_id(query), doc_id(doc)): of_doc for (query, doc), of_doc in world.grades.items()},
        {(query_id(query), doc_id(doc)): label for (query, doc), label in world.labels.items()},
        {
            name: {query_id(query): [(doc_id(doc), score) for doc, score in ranking] for query, ranking in run.items()}
            for name, run in world.runs.items()
        },
        {name: {query_id(query): found for query, found in run.items()} for name, run in world.answers.items()},
        world.scale,
    )


def ground_files(example: Mapping[str, str]) -> dict[str, str]:
    """The unchanged files by name; in `other/` those of another collection, in `same/` of one with equal query ids.

    Args:
        example: the texts of `graded.jsonl` and `questions.jsonl` of the example collection.
    """
    files: dict[str, str] = {}
    trial = make_world(1)
    other = make_world(2, query_id="q{:04d}".format, doc_id="Bern_{:03d}_{:02d}".format)
    same = make_world(3, doc_id="Genève-{:03d}-{:02d}".format)
    for folder, world in (("", trial), ("other/", other), ("same/", same)):
        files[f"{folder}qrels.txt"] = world.qrels()
        files[f"{folder}items.qrels"] = world.item_qrels()
        files[f"{folder}graded.jsonl"] = world.records()
        files[f"{folder}direct.jsonl"] = world.direct_records()
        files[f"{folder}bank.jsonl"] = world.bank()
        files[f"{folder}weights.jsonl"] = world.bank(weights=True)
        files[f"{folder}nuggets.jsonl"] = world.bank("nugget", importance=True)
        files[f"{folder}answers.jsonl"] = world.answer_records()
        files[f"{folder}assignments.jsonl"] = world.assignments()
        files[f"{folder}verdicts.jsonl"] = world.verdicts()
        for name in RUNS:
            files[f"{folder}runs/{name}.run"] = world.run(name)
        files[f"{folder}model.qrels"] = _second_opinion(world)
        files[f"{folder}official.tsv"] = _board(world, "nDCG@10", 12, _TEAMS)
        files[f"{folder}board.tsv"] = _board(world, "RubricCover@10", 13, _TEAMS)
        files[f"{folder}official-runs.tsv"] = _board(world, "nDCG@10", 12, RUNS)
    files["example.jsonl"] = example["graded.jsonl"]
    files["example-bank.jsonl"] = example["questions.jsonl"]
    return files


def _second_opinion(world: World) -> str:
    """Labels of another judge: one in four is another one, by one."""
    draw = random.Random(11)
    rows = []
    for (query, doc), label in world.labels.items():
        moved = label + draw.choice((-1, 1)) if draw.random() < 0.25 else label
        rows.append((query, 0, doc, number(min(max(moved, 0), 3))))
    return lines_of(rows)


_TEAMS = tuple(f"Team-{place:02d}" for place in range(12))


def _board(world: World, measure: str, seed: int, names: Sequence[str]) -> str:
    """A leaderboard of scores by query and their means: run, topic, measure, value."""
    draw = random.Random(seed)
    rows = []
    for place, name in enumerate(names):
        values = {query: min(max(0.7 - 0.03 * place + draw.gauss(0, 0.15), 0.0), 1.0) for query in world.items}
        values["all"] = sum(values.values()) / len(values)
        rows += [(name, query, measure, f"{value:.4f}") for query, value in values.items()]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


# The table. A group of changes, the command, the file, and what each change does to it.

CHANGES: list[Change] = []


def _add(group: str, job: str, file: str, edits: Mapping[str, Edit]) -> None:
    CHANGES.extend(Change(group, name, job, file, edit) for name, edit in edits.items())


def _column_edits(place: int, changes: Mapping[str, Callable[[str], str]]) -> dict[str, Edit]:
    return {name: column(place, change) for name, change in changes.items()}


def _in_second_half(place: float) -> bool:
    return place >= 0.5


# Plain qrels and one run.
_add("columns", "evaluate", "qrels.txt", {
    "iteration and grade swapped": swapped(1, 3),
    "iteration and passage swapped": swapped(1, 2),
    "query and passage swapped": swapped(0, 2),
    "grades one line further down": rotated(3),
})  # fmt: skip
_add("ids", "evaluate", "qrels.txt", _column_edits(2, DOC_IDS) | _column_edits(0, QUERY_IDS) | {
    "one id in ten in lower case": column(2, one_tenth(str.lower)),
})  # fmt: skip
_add("scale", "evaluate", "qrels.txt", {
    "all grades 0": numbers(lambda _: 0),
    "all grades 1": numbers(lambda _: 1),
    "scale inverted": numbers(lambda grade: int(3 - grade)),
    "grades in percent": numbers(lambda grade: round(grade * 100 / 3)),
    "grades from 0 to 1": numbers(lambda grade: round(grade / 3, 3)),
    "second half in 0 to 1": numbers(lambda grade: round(grade / 3, 3), part=_in_second_half),
    "second half yes or no": numbers(lambda grade: int(grade > 1), part=_in_second_half),
    "grades from 1 to 4": numbers(lambda grade: int(grade + 1)),
    "gains in the place of grades": numbers(lambda grade: int(2**grade - 1)),
    "all grades below 0": numbers(lambda grade: int(grade - 4)),
    "grades as words": column(3, lambda grade: ("none", "some", "much", "all")[int(grade)]),
    "grades with a decimal comma": column(3, "{},0".format),
})  # fmt: skip
_add("lost rows", "evaluate", "qrels.txt", {
    "half of the queries": only_queries(lambda queries: queries[::2]),
    "half of the passages": EVERY_OTHER,
    "every tenth line": EVERY_TENTH,
    "the last lines": CUT,
    "the end, inside of a line": TORN,
    "all but the first ten of a query": of_rankings(lambda rows: rows[:10]),
    "all passages of grade 0": of_rows(lambda row: row if row[3] != "0" else None),
})  # fmt: skip
_add("doubled rows", "evaluate", "qrels.txt", {
    "queries under a second id": doubled(0, "{}b".format),
    "passages under a second id": doubled(2, "{}-copy".format),
    "all lines": of_lines(lambda lines: lines * 2),
})  # fmt: skip
_add("encoding", "evaluate", "qrels.txt", ENCODINGS)
_add("other collection", "evaluate", "qrels.txt", {
    "qrels of another collection": instead("other/qrels.txt"),
    "qrels of another collection with equal query ids": instead("same/qrels.txt"),
    "second half of another collection": mixed("same/qrels.txt"),
})  # fmt: skip
_add("wrong kind", "evaluate", "qrels.txt", {
    "item grades": instead("items.qrels"),
    "a run": instead("runs/hybrid.run"),
})  # fmt: skip
_add("columns", "evaluate", "runs/hybrid.run", {
    "rank and score swapped": swapped(3, 4),
    "query and passage swapped": swapped(0, 2),
    "Q0 and passage swapped": swapped(1, 2),
})  # fmt: skip
_add("ids", "evaluate", "runs/hybrid.run", _column_edits(2, DOC_IDS) | _column_edits(0, QUERY_IDS) | {
    "one id in ten with .txt": column(2, one_tenth("{}.txt".format)),
    "rankings under the next query": of_next_query,
})  # fmt: skip
_add("runs' order", "evaluate", "runs/hybrid.run", {
    "scores negated": of_rankings(lambda rows: rescored(rows, lambda _, score: -score)),
    "scores are ranks": of_rankings(lambda rows: rescored(rows, lambda rank, _: rank)),
    "all scores 1": of_rankings(lambda rows: rescored(rows, lambda _, __: 1)),
    "all scores 0 in half of the queries": of_rankings(
        lambda rows: rescored(rows, lambda _, score: 0 if int(rows[0][0]) % 2 else score)
    ),
    "scores rounded to tens": of_rankings(lambda rows: rescored(rows, lambda _, score: round(score, -1))),
    "distances, ranks kept": of_rankings(lambda rows: rescored(rows, lambda _, score: round(1 / score, 6))),
    "scores negated, ranks all 0": of_rankings(
        lambda rows: [[*row[:3], "0", *row[4:]] for row in rescored(rows, lambda _, score: -score)]
    ),
    "scores with a decimal comma": column(4, lambda score: score.replace(".", ",")),
    "scores as words": column(4, lambda _: "high"),
})  # fmt: skip
_add("lost rows", "evaluate", "runs/hybrid.run", {
    "half of the queries": only_queries(lambda queries: queries[::2]),
    "all below rank 5": of_rankings(lambda rows: rows[:5]),
    "the first passage of each query": of_rankings(lambda rows: rows[1:]),
    "every tenth line of a run": EVERY_TENTH,
    "the last lines": CUT,
    "the end, inside of a line": TORN,
})  # fmt: skip
_add("doubled rows", "evaluate", "runs/hybrid.run", {
    "passages as chunks #1 and #2": of_rankings(
        lambda rows: [[*row[:2], f"{row[2]}#{part}", *row[3:]] for row in rows for part in (1, 2)]
    ),
    "queries under a second id": doubled(0, "{}b".format),
    "ranked passages under a second id": doubled(2, "{}-copy".format),
    "another run behind it": lambda text, files: text + files["runs/base.run"],
})  # fmt: skip
_add("encoding", "evaluate", "runs/hybrid.run", ENCODINGS)
_add("other collection", "evaluate", "runs/hybrid.run", {
    "run of another collection": instead("other/runs/hybrid.run"),
    "run of another collection with equal query ids": instead("same/runs/hybrid.run"),
    "second half of another collection": mixed("same/runs/hybrid.run"),
})  # fmt: skip
_add("wrong kind", "evaluate", "runs/hybrid.run", {"qrels": instead("qrels.txt")})

# Plain qrels and several runs.
_add("ids", "board", "runs/dense.run", {
    name: column(2, DOC_IDS[name]) for name in ("passage ids in lower case", "passage ids with #1")
} | {"query ids without leading zeros": column(0, no_zeros)})  # fmt: skip
_add("runs' order", "board", "runs/dense.run", {
    "scores negated": of_rankings(lambda rows: rescored(rows, lambda _, score: -score)),
    "all scores 1": of_rankings(lambda rows: rescored(rows, lambda _, __: 1)),
})  # fmt: skip
_add("other collection", "board", "runs/dense.run", {
    "run of another collection with equal query ids": instead("same/runs/dense.run"),
})  # fmt: skip
_add("doubled rows", "board", "runs/base.run", {
    "another run's rankings under its name": lambda _, files: files["runs/dense.run"].replace(" dense\n", " base\n"),
    "another run with its own name": instead("runs/dense.run"),
})  # fmt: skip
_add("scale", "board", "qrels.txt", {"all grades 0": numbers(lambda _: 0)})

# Item qrels.
_ITEM_SCALES: dict[str, Edit] = {
    "grades from 0 to 1": numbers(lambda grade: round(grade / 5, 2)),
    "second half in 0 to 1": numbers(lambda grade: round(grade / 5, 2), part=_in_second_half),
    "second half in 0 to 3": numbers(lambda grade: round(grade * 3 / 5), part=_in_second_half),
    "grades from 1 to 5": numbers(lambda grade: int(max(grade, 1))),
    "1 where covered, else 0": numbers(lambda grade: int(grade >= 4)),
    "scale inverted": numbers(lambda grade: int(5 - grade)),
    "all grades 0": numbers(lambda _: 0),
    "all grades 5": numbers(lambda _: 5),
}
_add("columns", "items", "items.qrels", {
    "item and grade swapped": swapped(1, 3),
    "item and passage swapped": swapped(1, 2),
    "query and item swapped": swapped(0, 1),
    "item 0 in all lines": column(1, lambda _: "0"),
})  # fmt: skip
_add("scale", "items", "items.qrels", _ITEM_SCALES | {
    "grades in percent": numbers(lambda grade: int(grade * 20)),
    "whole and fractional grades": numbers(lambda grade: min(grade + 0.37, 5), part=lambda place: place % 0.2 < 0.1),
    "the scale's lines lost": of_lines(lambda lines: [line for line in lines if "scale=" not in line]),
    "the scale's lines of another scale": lambda text, _: text.replace("scale=0-5:4:3", "scale=0-3:2:1"),
    "grades as words": column(3, lambda grade: "yes" if int(grade) > 3 else "no"),
})  # fmt: skip
_add("ids", "items", "items.qrels", {
    name: column(2, DOC_IDS[name])
    for name in ("passage ids in lower case", "passage ids in NFD", "passage ids with .txt",
                 "passage ids without the collection's name")
} | {"query ids without leading zeros": column(0, no_zeros)})  # fmt: skip
_add("lost rows", "items", "items.qrels", {
    "half of the queries": only_queries(lambda queries: queries[::2]),
    "every tenth grade": EVERY_TENTH,
    "the last lines": CUT,
    "half of the grades": of_lines(
        lambda lines: [line for place, line in enumerate(lines) if " * " in line or place % 2]
    ),
    "the first item of each query": lambda text, files: lost_item(text),
})  # fmt: skip
_add("doubled rows", "items", "items.qrels", {
    "items under a second id": doubled(1, "{}-v2".format),
    "queries under a second id": doubled(0, "{}b".format),
})  # fmt: skip
_add("wrong kind", "items", "items.qrels", {"labels of passages": instead("qrels.txt")})
_add("other collection", "items", "items.qrels", {
    "item grades of another collection": instead("other/items.qrels"),
    "item grades of another collection with equal query ids": instead("same/items.qrels"),
})  # fmt: skip
_add("encoding", "items", "items.qrels", ENCODINGS)
_add("ids", "items", "runs/rerank.run", {
    name: column(2, DOC_IDS[name]) for name in ("passage ids in lower case", "passage ids with #1")
})  # fmt: skip
_add("runs' order", "items", "runs/rerank.run", {
    "scores are ranks": of_rankings(lambda rows: rescored(rows, lambda rank, _: rank)),
    "all scores 1": of_rankings(lambda rows: rescored(rows, lambda _, __: 1)),
})  # fmt: skip
_add("other collection", "items", "runs/rerank.run", {
    "run of another collection": instead("other/runs/rerank.run"),
    "run of another collection with equal query ids": instead("same/runs/rerank.run"),
})  # fmt: skip
_add("columns", "evaluate items", "items.qrels", {
    "item and grade swapped": swapped(1, 3), "item and passage swapped": swapped(1, 2),
})  # fmt: skip
_add("scale", "evaluate items", "items.qrels", {
    name: _ITEM_SCALES[name]
    for name in ("grades from 0 to 1", "second half in 0 to 1", "1 where covered, else 0", "all grades 0")
})  # fmt: skip
_add("ids", "evaluate items", "items.qrels", {"passage ids in NFD": column(2, nfd)})
_add("other collection", "evaluate items", "items.qrels", {
    "item grades of another collection": instead("other/items.qrels"),
})  # fmt: skip


# Banks.
_BANK: dict[str, Edit] = {
    "bank of other queries": instead("other/bank.jsonl"),
    "bank of another collection with equal query ids": instead("same/bank.jsonl"),
    "half of the items left": entries("items", lambda items: items[::2]),
    "half of the queries left": EVERY_OTHER,
    "items under a second id": of_objects(twin_items),
    "half of the items with a new text and id": of_objects(new_texts),
    "item ids without their query": bank_ids(lambda item: item.partition("/")[2]),
    "item ids in upper case": bank_ids(str.upper),
    "query ids without leading zeros": bank_queries(no_zeros),
    "query ids with a blank behind them": bank_queries("{} ".format),
    "the last lines": CUT,
}
_add("other bank", "records", "bank.jsonl", _BANK)
_add("other bank", "items and bank", "bank.jsonl", {
    name: _BANK[name]
    for name in ("bank of other queries", "half of the items left", "items under a second id",
                 "item ids without their query", "query ids without leading zeros", "half of the queries left")
})  # fmt: skip
_add("other bank", "example", "example-bank.jsonl", {
    "half of the items with a new text and id": of_objects(new_texts),
    "items under a second id": of_objects(twin_items),
})  # fmt: skip

# Graded records.
_RATINGS: dict[str, Edit] = {
    "ratings from 0 to 1": ratings(lambda grade: round(grade / 5, 2)),
    "second half in 0 to 1": ratings(lambda grade: round(grade / 5, 2), _in_second_half),
    "second half in 0 to 3": ratings(lambda grade: round(grade * 3 / 5), _in_second_half),
    "second half in percent": ratings(lambda grade: grade * 20, _in_second_half),
    "ratings 1 where covered, else 0": ratings(lambda grade: int(grade >= 4)),
    "ratings from 1 to 5": ratings(lambda grade: round(1 + grade * 4 / 5)),
    "ratings from 0 to 10": ratings(lambda grade: grade * 2),
    "ratings in percent": ratings(lambda grade: grade * 20),
    "scale inverted": ratings(lambda grade: 5 - grade),
    "all ratings 0": ratings(always(0)),
    "all ratings 5": ratings(always(5)),
    "ratings as texts": ratings(str),
    "ratings as words": ratings(lambda grade: "high" if grade > 3 else "low"),
    "ratings as true and false": ratings(lambda grade: grade > 3),
}
_add("scale", "records", "graded.jsonl", _RATINGS)
_add("scale", "example", "example.jsonl", {
    name: _RATINGS[name]
    for name in ("ratings from 0 to 1", "second half in 0 to 1", "ratings 1 where covered, else 0", "all ratings 0")
} | {"the scale left out": of_sets(without_scale)})  # fmt: skip
_add("fields", "records", "graded.jsonl", {
    f"{old} as {new}": renamed(old, new)
    for old, new in (
        ("self_ratings", "self_rating"), ("self_rating", "rating"), ("question_id", "questionId"),
        ("correctAnswered", "correct_answered"), ("paragraph_id", "paragraphId"), ("exam_grades", "grades"),
        ("prompt_class", "promptClass"), ("rankings", "ranking"), ("paragraph_data", "paragraphData"),
        ("prompt_info", "prompt"), ("method", "run"),
    )
})  # fmt: skip
_add("fields", "records", "graded.jsonl", {
    "covered and not covered swapped, no ratings": of_sets(only_lists),
    "prompt_class of another prompt": lambda text, _: text.replace(
        "QuestionSelfRatedUnanswerablePromptWithChoices", "QuestionCompleteConciseUnanswerablePromptWithChoices"
    ),
    "half of the grades by another model": of_sets(
        lambda found: found.update(llm="other-model") if len(found["correctAnswered"]) % 2 else None
    ),
})  # fmt: skip
_add("columns", "records", "graded.jsonl", {
    "rank and score swapped": of_ranked(swap_fields("rank", "score")),
    "grades at the next passage": of_objects(shifted_grades),
})  # fmt: skip
_add("runs' order", "records", "graded.jsonl", {
    "scores are ranks": of_ranked(lambda entry: entry.update(score=float(entry["rank"]))),
    "scores negated": of_ranked(lambda entry: entry.update(score=-entry["score"])),
    "all scores 1": of_ranked(lambda entry: entry.update(score=1.0)),
    "all ranks and scores 1": of_ranked(lambda entry: entry.update(score=1.0, rank=1)),
    "all ranks 1": of_ranked(lambda entry: entry.update(rank=1)),
})  # fmt: skip
_add("lost rows", "records", "graded.jsonl", {
    "half of the queries": EVERY_OTHER,
    "the last lines": CUT,
    "the end, inside of a line": TORN,
    "half of the passages": of_objects(lambda row: [row[0], row[1][::2]]),
    "every tenth grade": some_ratings(lambda place: place % 10 != 3),
    "half of the grades": some_ratings(lambda place: place % 2 == 0),
    "the first item of each query": of_objects(without_item),
    "all calls of half of the passages": of_passages(
        lambda _, passage: failed_passage(passage) if passage["paragraph_id"][-1] in "02468" else passage
    ),
    "rankings below rank 5": of_passages(lambda _, passage: cut_rankings(passage, 5)),
    "rankings of half of the passages": of_passages(
        lambda _, passage: cut_rankings(passage, 0) if passage["paragraph_id"][-1] in "02468" else passage
    ),
})  # fmt: skip
_add("doubled rows", "records", "graded.jsonl", {
    "passages under a second id": of_objects(twin_passage),
    "items under a second id": of_sets(twin_grades),
    "queries under a second id": lambda text, _: text + "".join(
        json.dumps([f"{query}b", passages], ensure_ascii=False) + "\n"
        for query, passages in map(json.loads, text.splitlines())
    ),
    "half of the rankings under another run's name": of_ranked(half_under(str.upper)),
})  # fmt: skip
_add("ids", "records", "graded.jsonl", {
    "item ids without their query": item_ids(lambda item: item.partition("/")[2]),
    "item ids in upper case": item_ids(str.upper),
    "item ids with #1": item_ids("{}#1".format),
    "query ids without leading zeros": of_objects(lambda row: [no_zeros(row[0]), row[1]]),
    "query ids as numbers": of_objects(lambda row: [int(row[0]), row[1]]),
    "passage ids of rankings in lower case": of_ranked(field("paragraphId", str.lower)),
})  # fmt: skip
_add("encoding", "records", "graded.jsonl", ENCODINGS)
_add("other collection", "records", "graded.jsonl", {
    "records of another collection": instead("other/graded.jsonl"),
    "records of another collection with equal query ids": instead("same/graded.jsonl"),
    "second half of another collection": mixed("same/graded.jsonl"),
})  # fmt: skip
_add("ids", "records and runs", "graded.jsonl", {
    name: every_id(DOC_IDS[name])
    for name in ("passage ids in lower case", "passage ids in NFD", "passage ids with .txt",
                 "passage ids without leading zeros")
})  # fmt: skip
_add("ids", "records and runs", "runs/dense.run", {
    name: column(2, DOC_IDS[name]) for name in ("passage ids in NFD", "passage ids percent-encoded")
} | {"rankings under the next query": of_next_query})  # fmt: skip
_add("other collection", "records and runs", "runs/dense.run", {
    "run of another collection with equal query ids": instead("same/runs/dense.run"),
})  # fmt: skip
_add("runs' order", "records and runs", "runs/dense.run", {
    "all scores 0": of_rankings(lambda rows: rescored(rows, lambda _, __: 0)),
    "scores negated": of_rankings(lambda rows: rescored(rows, lambda _, score: -score)),
})  # fmt: skip


# Official judgments beside grades.
_add("ids", "official", "qrels.txt", {
    name: column(2, DOC_IDS[name])
    for name in ("passage ids in lower case", "passage ids in NFD", "passage ids with #1")
} | {"query ids without leading zeros": column(0, no_zeros)})  # fmt: skip
_add("scale", "official", "qrels.txt", {"all grades 0": numbers(lambda _: 0)})
_add("lost rows", "official", "qrels.txt", {"half of the queries": only_queries(lambda queries: queries[::2])})
_add("other collection", "official", "qrels.txt", {
    "qrels of another collection": instead("other/qrels.txt"),
    "qrels of another collection with equal query ids": instead("same/qrels.txt"),
})  # fmt: skip

# Labels of passages by a model.


_add("scale", "labels", "direct.jsonl", {
    "all labels 0": direct_labels(always(0)),
    "all labels 2": direct_labels(always(2)),
    "labels as words": direct_labels(lambda label: "relevant" if label else "not"),
    "half of the labels in 0 to 1": direct_labels(lambda label: round(label / 3, 2), lambda query: query > 10),
})  # fmt: skip
_add("fields", "labels", "direct.jsonl", {"self_ratings as self_rating": renamed("self_ratings", "self_rating")})
_add("ids", "labels", "direct.jsonl", {
    "passage ids in NFD": every_id(nfd),
    "passage ids in lower case": every_id(str.lower),
})  # fmt: skip

# Answers against banks of nuggets.
_add("importance and weights", "nuggets", "nuggets.jsonl", {
    "all okay": of_list("items", lambda _, item: item.update(importance="okay")),
    "all vital": of_list("items", lambda _, item: item.update(importance="vital")),
    "vital and okay swapped": of_list(
        "items", lambda _, item: item.update(importance="okay" if item["importance"] == "vital" else "vital")
    ),
    "missing in every second item": of_list(
        "items", lambda place, item: item.pop("importance") if place % 2 else None
    ),
    "missing in every second query": lambda text, _: every_second(
        text, lambda row: {**row, "items": [less(item, "importance") for item in row["items"]]}
    ),
    "as numbers": of_list("items", lambda _, item: item.update(importance=int(item["importance"] == "vital"))),
    "importance as importence": renamed("importance", "importence"),
})  # fmt: skip
_add("other bank", "nuggets", "nuggets.jsonl", {
    "bank of other queries": instead("other/nuggets.jsonl"),
    "half of the items left": entries("items", lambda items: items[::2]),
    "items under a second id": of_objects(twin_items),
    "half of the items with a new text and id": of_objects(new_texts),
})  # fmt: skip
_add("scale", "nuggets", "answers.jsonl", {
    name: _RATINGS[name]
    for name in ("ratings from 0 to 1", "second half in 0 to 1", "ratings 1 where covered, else 0", "all ratings 0")
})  # fmt: skip
_add("fields", "nuggets", "answers.jsonl", {"self_ratings as self_rating": renamed("self_ratings", "self_rating")})
_add("answers", "nuggets", "answers.jsonl", {
    "half of the answers under another run's name": of_ranked(half_under("{}-2".format)),
    "half of one run's answers under the next run's name": of_ranked(
        lambda entry: entry.update(method=ANSWERING[1])
        if entry["method"] == ANSWERING[0] and int(entry["queryId"]) % 2
        else None
    ),
    "answers of one run without any grade": of_passages(
        lambda _, passage: failed_passage(passage) if passage["paragraph_id"].startswith(ANSWERING[0]) else passage
    ),
    "every second answer of one run lost": of_passages(
        lambda query, passage: None
        if passage["paragraph_id"].startswith(ANSWERING[0]) and int(query) % 2
        else passage
    ),
})  # fmt: skip


# nuggetizer's assignments.
_OTHER_WORDS = {"support": "yes", "partial_support": "partly", "not_support": "no"}
_INVERTED = {"support": "not_support", "partial_support": "partial_support", "not_support": "support"}
_add("labels", "assignments", "assignments.jsonl", {
    "labels as yes and no": assigned(_OTHER_WORDS.__getitem__),
    "labels as yes and no in half of the lines": assigned(_OTHER_WORDS.__getitem__, is_odd),
    "labels with a blank for the underline": assigned(lambda label: label.replace("_", " ")),
    "all not_support": assigned(always("not_support")),
    "all support": assigned(always("support")),
    "all of one run not_support": assigned(always("not_support"), is_first_run),
    "every second answer not_support": assigned(always("not_support"), is_odd),
    "labels inverted": assigned(_INVERTED.__getitem__),
    "partial_support as support": assigned(lambda label: label.replace("partial_support", "support")),
    "every second answer failed": assigned(always("failed"), is_odd),
    "empty labels": assigned(always("")),
})  # fmt: skip
_add("importance and weights", "assignments", "assignments.jsonl", {
    "all okay": of_list("nuggets", lambda _, nugget: nugget.update(importance="okay")),
    "all vital": of_list("nuggets", lambda _, nugget: nugget.update(importance="vital")),
    "missing in every second nugget": of_list(
        "nuggets", lambda place, nugget: nugget.pop("importance") if place % 2 else None
    ),
    "another one in one run": of_objects(
        lambda row: {**row, "nuggets": [{**one, "importance": "vital"} for one in row["nuggets"]]}
        if is_first_run(row)
        else row
    ),
})  # fmt: skip
_add("fields", "assignments", "assignments.jsonl", {
    f"{old} as {new}": renamed(old, new)
    for old, new in (("assignment", "assigment"), ("importance", "importence"), ("run_id", "run"), ("qid", "query_id"))
})  # fmt: skip
_add("answers", "assignments", "assignments.jsonl", {
    "one run's query ids without zeros": of_objects(
        lambda row: {**row, "qid": no_zeros(row["qid"])} if is_first_run(row) else row
    ),
    "half of one run's answers under another name": of_objects(
        lambda row: {**row, "run_id": f"{row['run_id']} "} if is_first_run(row) and is_odd(row) else row
    ),
    "half of the answers under another run's name": of_objects(
        lambda row: {**row, "run_id": row["run_id"].upper()} if is_odd(row) else row
    ),
    "every second answer of one run lost": of_objects(lambda row: None if is_first_run(row) and is_odd(row) else row),
    "half of the nuggets lost": entries("nuggets", lambda nuggets: nuggets[::2]),
    "half of one run's nuggets lost": of_objects(
        lambda row: {**row, "nuggets": row["nuggets"][::2]} if is_first_run(row) else row
    ),
    "one run's nuggets of a new wording": of_objects(
        lambda row: {**row, "nuggets": [{**one, "text": one["text"] + "."} for one in row["nuggets"]]}
        if is_first_run(row)
        else row
    ),
    "no nuggets in half of the lines": of_objects(lambda row: {**row, "nuggets": []} if is_odd(row) else row),
    "nuggets twice": entries("nuggets", lambda nuggets: nuggets * 2),
    "nuggets a second time in a new wording": entries(
        "nuggets", lambda nuggets: [*nuggets, *({**one, "text": one["text"] + "."} for one in nuggets)]
    ),
    "one run a second time under another name": lambda text, _: text + "".join(
        line.replace(f'"{ANSWERING[0]}"', '"alpha"') + "\n"
        for line in text.splitlines()
        if f'"run_id": "{ANSWERING[0]}"' in line
    ),
    "the last lines": CUT,
    "second half of another collection": mixed("other/assignments.jsonl"),
})  # fmt: skip
_add("encoding", "assignments", "assignments.jsonl", {
    name: ENCODINGS[name] for name in ("written as UTF-16", "with a byte order mark", "with CRLF")
})  # fmt: skip

# Criteria with weights.
_WEIGHTS: dict[str, Callable[[int, dict[str, Any]], object]] = {
    "as texts": lambda _, item: item.update(weight=str(item["weight"])),
    "all negative": lambda _, item: item.update(weight=-abs(item["weight"])),
    "signs turned": lambda _, item: item.update(weight=-item["weight"]),
    "signs lost": lambda _, item: item.update(weight=abs(item["weight"])),
    "all 0": lambda _, item: item.update(weight=0),
    "all 1": lambda _, item: item.update(weight=1),
    "missing in every second": lambda place, item: item.pop("weight") if place % 2 else None,
    "one of them a thousand": lambda place, item: item.update(weight=1000) if place == 0 else None,
    "every second in percent": lambda place, item: item.update(weight=20 * item["weight"]) if place % 2 else None,
}


_add("importance and weights", "weights", "weights.jsonl", {
    f"weights {said}": weighted("items", change) for said, change in _WEIGHTS.items()
} | {
    "weight as wieght": renamed("weight", "wieght"),
    "bank of other queries": instead("other/weights.jsonl"),
})  # fmt: skip
_add("importance and weights", "verdicts", "verdicts.jsonl", {
    f"weights {said}": weighted("criteria", change)
    for said, change in _WEIGHTS.items()
    if said in ("as texts", "all negative", "all 0", "missing in every second")
} | {
    "other weights in one run": of_objects(
        lambda row: {**row, "criteria": [{**one, "weight": 1} for one in row["criteria"]]} if is_first_run(row) else row
    ),
})  # fmt: skip
_VERDICTS = {"satisfied": "not_satisfied", "partially_satisfied": "partially_satisfied", "not_satisfied": "satisfied"}


_add("labels", "verdicts", "verdicts.jsonl", {
    "verdicts as yes and no": judged(lambda verdict: "yes" if verdict == "satisfied" else "no"),
    "all not_satisfied": judged(always("not_satisfied")),
    "verdicts inverted": judged(_VERDICTS.__getitem__),
    "every second line not completed": lambda text, _: every_second(text, lambda row: {**row, "status": "failed"}),
    "verdict as verdicts": renamed("verdict", "verdicts"),
})  # fmt: skip

# Qrels from grades.
_add("scale", "qrels", "graded.jsonl", {
    name: _RATINGS[name]
    for name in ("ratings from 0 to 1", "second half in 0 to 1", "ratings 1 where covered, else 0", "all ratings 0")
})  # fmt: skip
_add("fields", "qrels", "graded.jsonl", {"self_ratings as self_rating": renamed("self_ratings", "self_rating")})
_add("lost rows", "qrels", "graded.jsonl", {"half of the queries": EVERY_OTHER})
_add("other bank", "qrels", "bank.jsonl", {
    name: _BANK[name]
    for name in ("bank of other queries", "half of the items left", "item ids without their query",
                 "query ids without leading zeros", "half of the items with a new text and id")
})  # fmt: skip
_add("scale", "qrels of items", "items.qrels", {
    name: _ITEM_SCALES[name] for name in ("grades from 0 to 1", "second half in 0 to 1", "all grades 0")
})  # fmt: skip

# Labels against labels.
_add("columns", "agreement", "model.qrels", {
    "iteration and grade swapped": swapped(1, 3),
    "grades one line further down": rotated(3),
})  # fmt: skip
_add("ids", "agreement", "model.qrels", {
    name: column(2, DOC_IDS[name])
    for name in ("passage ids in lower case", "passage ids in NFD", "passage ids with .txt")
} | {
    "query ids without leading zeros": column(0, no_zeros),
    "one id in ten in lower case": column(2, one_tenth(str.lower)),
})  # fmt: skip
_add("scale", "agreement", "model.qrels", {
    "labels from 0 to 1": numbers(lambda label: round(label / 3, 2)),
    "second half in 0 to 1": numbers(lambda label: round(label / 3, 2), part=_in_second_half),
    "1 where relevant, else 0": numbers(lambda label: int(label > 1)),
    "scale inverted": numbers(lambda label: int(3 - label)),
    "all labels 0": numbers(lambda _: 0),
    "labels in percent": numbers(lambda label: round(label * 100 / 3)),
    "labels from 1 to 4": numbers(lambda label: int(label + 1)),
    "gains in the place of labels": numbers(lambda label: int(2**label - 1)),
})  # fmt: skip
_add("lost rows", "agreement", "model.qrels", {
    "half of the queries": only_queries(lambda queries: queries[::2]),
    "every tenth line": EVERY_TENTH,
    "the last lines": CUT,
})  # fmt: skip
_add("other collection", "agreement", "model.qrels", {
    "labels of another collection": instead("other/model.qrels"),
    "second half of another collection": mixed("same/model.qrels"),
})  # fmt: skip
_add("wrong kind", "agreement", "model.qrels", {"item grades": instead("items.qrels")})
_add("scale", "agreement of records", "graded.jsonl", {
    name: _RATINGS[name]
    for name in ("ratings from 0 to 1", "second half in 0 to 1", "ratings 1 where covered, else 0", "all ratings 0")
})  # fmt: skip
_add("fields", "agreement of records", "graded.jsonl", {
    "self_ratings as self_rating": renamed("self_ratings", "self_rating"),
})  # fmt: skip
_add("ids", "agreement of records", "qrels.txt", {
    "passage ids in NFD": column(2, nfd), "query ids without leading zeros": column(0, no_zeros),
})  # fmt: skip


# Leaderboards against leaderboards.
_add("ids", "correlate", "board.tsv", {
    "run ids in lower case": run_ids(str.lower),
    "half of the run ids in lower case": run_ids(str.lower, is_even),
    "run ids with .run": run_ids("{}.run".format),
    "half of the run ids with .run": run_ids("{}.run".format, is_even),
    "query ids without leading zeros": of_table(lambda row: [row[0], no_zeros(row[1]), *row[2:]]),
})  # fmt: skip
_add("scale", "correlate", "board.tsv", {
    "scores inverted": board_values(lambda value: 1 - value),
    "all scores equal": board_values(lambda _: 0.5),
    "ranks in the place of scores": as_ranks,
    "values with a decimal comma": of_table(lambda row: [*row[:3], row[3].replace(".", ",")]),
    "half of the runs in percent": of_table(
        lambda row: [*row[:3], f"{100 * float(row[3]):.2f}"] if is_even(row[0]) else row
    ),
    "all scores 0": board_values(lambda _: 0.0),
})  # fmt: skip
_add("lost rows", "correlate", "board.tsv", {
    "half of the runs": of_table(lambda row: row if is_even(row[0]) else None),
    "half of the queries, means kept": of_table(lambda row: row if row[1] == "all" or is_even(row[1]) else None),
    "half of the queries of half of the runs, no means": of_table(
        lambda row: None if row[1] == "all" or (is_even(row[0]) and is_even(row[1])) else row
    ),
    "the last lines": CUT,
})  # fmt: skip
_add("columns", "correlate", "board.tsv", {
    "run and query swapped": of_table(lambda row: [row[1], row[0], *row[2:]]),
    "scores one line further down": lambda text, _: rotated_table(text),
})  # fmt: skip
_add("other collection", "correlate", "board.tsv", {
    "board of other queries": instead("other/board.tsv"),
})  # fmt: skip
_add("scale", "correlate records", "graded.jsonl", {
    name: _RATINGS[name]
    for name in ("ratings from 0 to 1", "second half in 0 to 1", "ratings 1 where covered, else 0", "scale inverted")
})  # fmt: skip
_add("ids", "correlate records", "graded.jsonl", {
    "half of the run ids in upper case": of_ranked(
        lambda entry: entry.update(method=entry["method"].upper()) if entry["method"] in RUNS[::2] else None
    ),
})  # fmt: skip
_add("lost rows", "correlate records", "graded.jsonl", {"half of the queries": EVERY_OTHER})
_add("other bank", "correlate records", "bank.jsonl", {
    name: _BANK[name] for name in ("half of the items left", "items under a second id", "item ids without their query")
})  # fmt: skip
_add("wrong kind", "correlate", "board.tsv", {"the official board itself": instead("official.tsv")})


# Changes after which the files are what right ones could be as well: only who made them knows. They are counted apart.
UNTOLD = frozenset(
    {
        "all below rank 5",
        "all but the first ten of a query",
        "all grades 1",
        "all of one run not_support",
        "all vital",
        "every second answer not_support",
        "every tenth line",
        "grades at the next passage",
        "grades from 1 to 4",
        "grades from 1 to 5",
        "grades one line further down",
        "half of the nuggets lost",
        "half of the passages",
        "labels inverted",
        "partial_support as support",
        "passages under a second id",
        "rankings below rank 5",
        "ratings from 1 to 5",
        "scale inverted",
        "scores inverted",
        "scores negated, ranks all 0",
        "the first item of each query",
        "verdicts inverted",
        "vital and okay swapped",
        "weights all 1",
        "weights every second in percent",
        "weights signs lost",
    }
)
