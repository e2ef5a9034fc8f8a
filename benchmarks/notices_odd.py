"""Files that are odd but right, for `benchmarks.notices`: made by a seed, and public data beside the project."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.notices_files import ANSWERING, RUNS, World, lines_of, make_world

__all__ = ["Odd", "odd_files", "shared_files"]

Files = Mapping[str, "str | bytes"]


@dataclass(frozen=True)
class Odd:
    """A command over odd files.

    Attributes:
        name: what is odd.
        words: the arguments; `{}` is the folder of the files.
        files: makes the files.
        right: patterns of warnings that are right here: the oddness is what they are for.
        status: the exit status, 1 where something is incomplete on purpose.
    """

    name: str
    words: tuple[str, ...]
    files: Callable[[], Files]
    right: tuple[str, ...] = ()
    status: int = 0


# Queries that one side lacks are said, in whatever words.
_MISSING = (r"\bquer(?:y|ies)\b",)
_UNGRADED = (r"ranks of \d+ rankings have no record",)


def _runs(world: World) -> dict[str, str]:
    return {f"{name}.run": world.run(name) for name in world.runs}


def _items(name: str, world: World, *more: str, right: tuple[str, ...] = ()) -> Odd:
    """A leaderboard of item qrels and run files."""
    paths = tuple(f"{{}}/{run}.run" for run in world.runs)
    words = ("leaderboard", "{}/items.qrels", *paths, *more)
    return Odd(f"item qrels: {name}", words, lambda: {"items.qrels": world.item_qrels(), **_runs(world)}, right)


def _records(name: str, world: World, *more: str, right: tuple[str, ...] = ()) -> Odd:
    """A leaderboard of graded records, with a bank."""
    words = ("leaderboard", "{}/graded.jsonl", "--bank", "{}/bank.jsonl", *more)
    return Odd(f"records: {name}", words, lambda: {"graded.jsonl": world.records(), "bank.jsonl": world.bank()}, right)


def _plain(name: str, world: World, *more: str, run: str | None = None, right: tuple[str, ...] = ()) -> Odd:
    """`evaluate` of plain qrels and one run."""
    words = ("evaluate", "{}/qrels.txt", "{}/one.run", *(more or ("nDCG@10", "AP")))
    text = world.run(next(iter(world.runs))) if run is None else run
    return Odd(f"qrels: {name}", words, lambda: {"qrels.txt": world.qrels(), "one.run": text}, right)


def _rescored(world: World, score: Callable[[int, float], object], rank: Callable[[int], int] = lambda at: at) -> str:
    """The first run with other scores and ranks, from places that count from 1."""
    name = next(iter(world.runs))
    return lines_of(
        (query, "Q0", doc, rank(place), score(place, value), name)
        for query, ranking in world.runs[name].items()
        for place, (doc, value) in enumerate(ranking, 1)
    )


def _regraded(world: World, change: Callable[[str, str, float], float]) -> World:
    """Other grades, from query, passage and grade."""
    for (query, doc), of_doc in world.grades.items():
        for item, grade in of_doc.items():
            of_doc[item] = change(query, doc, grade)
    return world


def _relabelled(world: World, change: Callable[[str, str, float], float | None]) -> World:
    """Other labels, from query, passage and label; None leaves it unjudged."""
    changed = {pair: change(*pair, label) for pair, label in world.labels.items()}
    world.labels = {pair: label for pair, label in changed.items() if label is not None}
    return world


def _kept(world: World, keep: Callable[[str, str, str], bool]) -> World:
    """Only some of the grades, from query, passage and item."""
    world.grades = {
        (query, doc): kept
        for (query, doc), of_doc in world.grades.items()
        if (kept := {item: grade for item, grade in of_doc.items() if keep(query, doc, item)})
    }
    return world


def _pooled(world: World, depth: int) -> set[tuple[str, str]]:
    """What some run has among its first places."""
    return {(query, doc) for run in world.runs.values() for query, ranking in run.items() for doc, _ in ranking[:depth]}


def _scales() -> Iterator[Odd]:
    for scale in ((0, 3, 2, 1), (1, 5, 4, 3), (0, 1, 1, 1), (0, 2, 2, 1), (0, 4, 3, 2), (1, 4, 3, 2)):
        world = make_world(20 + scale[1], scale=scale)
        yield _items(f"scale {scale[0]} to {scale[1]}", world)
        yield _records(f"scale {scale[0]} to {scale[1]}", world)
    yield _items("scale 0 to 10", make_world(31, scale=(0, 10, 7, 4)))
    yield _items("scale 0 to 100", make_world(32, scale=(0, 100, 70, 40)))
    yield _items("expected grades, with fractions all along", make_world(33, fractions=True))
    whole = _regraded(make_world(34, fractions=True), lambda _, __, grade: round(grade, 1))
    yield _items("expected grades, some of them whole", whole)
    halves = _regraded(make_world(35, fractions=True), lambda _, __, grade: round(2 * grade) / 2)
    yield _items("means of two assessors, in halves", halves)
    ends = _regraded(make_world(36), lambda _, __, grade: 5 if grade > 2 else 0)
    yield _items("a grader that says 0 or 5 alone", ends)
    yield _records("a grader that says 0 or 5 alone", ends)
    yield _items(
        "a grader that never says 0 or 5", _regraded(make_world(37), lambda _, __, grade: min(max(grade, 1), 4))
    )
    easy = _regraded(make_world(38), lambda _, __, grade: max(grade, 3))
    yield _records("an easy bank, no grade below 3", easy)
    hard = _regraded(make_world(39), lambda query, _, grade: min(grade, 2) if query <= "010" else max(grade, 2))
    yield _records("hard queries first, then easy ones", hard)
    yield _items("hard queries first, then easy ones", hard)
    few = _regraded(make_world(44, queries=12), lambda query, _, grade: min(grade, 1) if query <= "004" else grade)
    yield _records("the first four of twelve queries hard", few)
    sparse = _regraded(
        make_world(45, docs=3, items=1, depth=3),
        lambda query, doc, grade: min(grade, 1) if query <= "004" else max(grade, 2 * doc.endswith("-00")),
    )
    yield _items("the first four queries hard, three grades a query", sparse)
    topics = _relabelled(make_world(46, queries=10), lambda query, _, label: min(label, 1) if query <= "004" else label)
    yield _plain("the first four of ten queries hard", topics)
    rare = _regraded(make_world(40), lambda _, doc, grade: grade if doc.endswith(("3", "7")) else 0)
    yield _records("most passages 0 throughout", rare)
    yield _items(
        "all grades of one query 0", _regraded(make_world(41), lambda query, _, grade: grade * (query != "004"))
    )
    binary = _regraded(make_world(42), lambda query, _, grade: min(grade, 1) if query == "004" else grade)
    yield _records("one query with grades 0 and 1 alone", binary)
    yield _items("the scale said by an option", make_world(43), "--grader", "scale=0-5:4")


def _sizes() -> Iterator[Odd]:
    yield _items("one query", make_world(50, queries=1))
    yield _records("two queries", make_world(51, queries=2))
    yield _items("one item a query", make_world(52, items=1))
    yield _records("one run", make_world(53, runs=RUNS[:1]))
    yield _items("one passage a run and query", make_world(54, depth=1))
    yield _items("150 queries of three passages", make_world(55, queries=150, docs=3, depth=3))
    yield _plain("one query", make_world(56, queries=1))
    yield _plain("one passage a query", make_world(57, depth=1))
    world = make_world(58)
    for place, (query, items) in enumerate(world.items.items()):
        world.items[query] = items[: 1 + place % 6]
    yield _records("one to six items a query", _kept(world, lambda query, _, item: item in world.items[query]))
    sparse = make_world(59, queries=30)
    kept = _kept(sparse, lambda query, doc, item: sum(map(ord, query + doc + item)) % 10 == 0)
    yield _records("one grade in ten", kept, right=_UNGRADED)
    yield _items("one grade in ten", kept)
    top = make_world(60)
    pool = _pooled(top, 10)
    yield _items("grades of the first ten places alone", _kept(top, lambda query, doc, _: (query, doc) in pool))
    lazy = make_world(61)
    pool = {(query, doc) for query, ranking in lazy.runs["dense"].items() for doc, _ in ranking[:10]}
    yield _items("grades of what one run has first", _kept(lazy, lambda query, doc, _: (query, doc) in pool))
    yield _plain("judgments of the first five places", _relabelled(make_world(62), _only(_pooled(make_world(62), 5))))
    hole = make_world(63)
    for name in ("rerank", "base"):
        del hole.runs[name]["007"]
    yield _items("two runs lack a query", hole, right=_MISSING)
    pilot = make_world(64)
    yield _plain("a run of more queries than are judged", _relabelled(pilot, _only_until("010")), right=_MISSING)


def _only(pool: set[tuple[str, str]]) -> Callable[[str, str, float], float | None]:
    return lambda query, doc, label: label if (query, doc) in pool else None


def _only_until(last: str) -> Callable[[str, str, float], float | None]:
    return lambda query, _, label: label if query <= last else None


def _ids() -> Iterator[Odd]:
    forms: dict[str, tuple[Callable[[int], str], Callable[[int, int], str]]] = {
        "ids in Cyrillic and Chinese": ("запрос{}".format, "文档-{}-{}".format),
        "plain numbers": ("{}".format, "{}{:02d}".format),
        "numbers of twenty digits": ("9000000000000000{:04d}".format, "8000000000000000{:02d}{:02d}".format),
        "leading zeros of one width": ("{:06d}".format, "{:04d}{:04d}".format),
        "URLs": ("topic:{}".format, "https://example.org/{}/page.html#part-{}".format),
        "segments": ("2024-{}".format, "msmarco_v2.1_doc_{:02d}_{}#1_99".format),
        "file names": ("q{}".format, "d{}-{}.txt".format),
        "queries named as passages": ("{}".format, lambda query, doc: str(query) if doc == 0 else f"{query}.{doc}"),
        "ids that differ in case alone": ("q{}".format, lambda query, doc: f"{'dD'[doc % 2]}{query}-{doc // 2}"),
        "ids that differ in leading zeros alone": (
            "{}".format,
            lambda query, doc: f"{'0' * (doc % 2)}{query}{doc // 2 + 10}",
        ),
        "ids that end in #1 and #2": ("q{}".format, lambda query, doc: f"d{query}.{doc // 2}#{1 + doc % 2}"),
    }
    for place, (name, (query_id, doc_id)) in enumerate(forms.items()):
        world = make_world(70 + place, query_id=query_id, doc_id=doc_id)
        yield _plain(name, world)
        if place % 2 == 0:
            yield _items(name, world)
    yield _items("runs whose names differ in case alone", make_world(85, runs=("bm25", "BM25")))


def _scores() -> Iterator[Odd]:
    world = make_world(90)
    forms: dict[str, Callable[[int, float], object]] = {
        "scores below 0, as of likelihoods": lambda _, score: f"{score - 30:.5f}",
        "scores near 0": lambda _, score: f"{score * 1e-7:.12f}",
        "scores up to 1": lambda _, score: f"{score / 21:.6f}",
        "scores with exponents": lambda _, score: f"{score * 1e9:.9e}",
        "whole scores": lambda place, _: 1000 - place,
        "scores of reciprocal ranks": lambda place, _: f"{1 / (60 + place):.6f}",
        "scores 1 / rank": lambda place, _: f"{1 / place:.6f}",
    }
    for name, score in forms.items():
        yield _plain(name, world, run=_rescored(world, score))
    yield _plain("ranks from 0", world, run=_rescored(world, lambda _, score: score, lambda at: at - 1))
    tied = _rescored(world, lambda _, score: round(score / 2))
    yield _plain("some tied scores", world, run=tied)
    low = _rescored(world, lambda place, score: score if place < 10 else 0)
    yield _plain("the last places tied at 0", world, run=low)
    text = world.run("dense")
    yield _plain("tabs", world, run=text.replace(" ", "\t"))
    yield _plain("CRLF", world, run=text.replace("\n", "\r\n"))
    yield _plain("a byte order mark", world, run="\ufeff" + text)
    lines = sorted(text.splitlines(), key=lambda line: line[::-1])
    yield _plain("lines in any order", world, run="\n".join(lines) + "\n")
    packed = gzip.compress(text.encode(), mtime=0)
    yield Odd(
        "qrels: gzipped", ("evaluate", "{}/qrels.txt", "{}/one.run", "nDCG@10"),
        lambda: {"qrels.txt": world.qrels(), "one.run": packed},
    )  # fmt: skip
    bad = make_world(91)
    for query in bad.runs["base"]:
        worst = sorted((one for one in bad.labels if one[0] == query), key=lambda one: bad.labels[one])[:5]
        bad.runs["base"][query] = [(doc, 9.0 - place) for place, (_, doc) in enumerate(worst)]
        for pair in worst:
            bad.grades[pair] = dict.fromkeys(bad.grades[pair], 0)
    yield _items("a run that covers nothing", bad)
    yield _plain("a run that finds nothing", bad, run=bad.run("base"))


def _labels() -> Iterator[Odd]:
    yield _plain("labels 0 and 1", _relabelled(make_world(100), lambda _, __, label: int(label > 1)))
    best = make_world(101)
    ranked = {query: ranking[2][0] for query, ranking in best.runs["dense"].items()}
    one = _relabelled(best, lambda query, doc, _: 1 if ranked[query] == doc else None)
    yield _plain("one passage a query is judged, and relevant", one, "RR@10")
    yield _plain("labels 0 to 4", make_world(102, labels=4))
    yield _plain(
        "labels −2 to 3, spam below 0", _relabelled(make_world(103), lambda _, __, label: label - (label < 1) * 2)
    )
    yield _plain("labels with fractions", _relabelled(make_world(104), lambda _, __, label: label / 2))
    percent = _relabelled(make_world(105), lambda _, doc, label: min(100 * label + int(doc[-2:]), 300))
    yield _plain("labels a hundred times as large", percent, "nDCG@10")
    none = _relabelled(make_world(106), lambda query, _, label: 0 if query == "003" else label)
    yield _plain("a query without any relevant passage", none)
    few = _relabelled(make_world(107), lambda _, doc, label: label if label or doc.endswith("0") else None)
    yield _plain("relevant passages alone, nearly", few)
    world = make_world(108)
    files = {"a.qrels": world.qrels(), "b.qrels": world.qrels()}
    agree = ("agreement", "{}/a.qrels", "{}/b.qrels", "--rounds", "0")
    yield Odd("agreement: equal labels", agree, lambda: files)
    audit = _relabelled(make_world(108), lambda _, doc, label: label if doc.endswith("1") else None)
    left = (r"labelled by .* only",)
    yield Odd(
        "agreement: an audit of a tenth", agree, lambda: {"a.qrels": audit.qrels(), "b.qrels": world.qrels()}, left
    )
    coarse = _relabelled(make_world(108), lambda _, __, label: int(label > 1))
    yield Odd(
        "agreement: two labels against four", (*agree, "--cutoff", "2", "1"),
        lambda: {"a.qrels": world.qrels(), "b.qrels": coarse.qrels()},
    )  # fmt: skip
    yield Odd(
        "records: labels of a model", ("evaluate", "{}/direct.jsonl", "{}/one.run", 'RubricQrels(measure="nDCG@10")'),
        lambda: {"direct.jsonl": world.direct_records(), "one.run": world.run("dense")},
    )  # fmt: skip
    yield Odd(
        "records: qrels of counts", ("qrels", "{}/graded.jsonl", "--label", "count", "-o", "{}/out.qrels"),
        lambda: {"graded.jsonl": world.records()},
    )  # fmt: skip


def _answers() -> Iterator[Odd]:
    world = make_world(110)

    def assigned(edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Callable[[], Files]:
        rows = (edit(json.loads(line)) for line in world.assignments().splitlines())
        text = "".join(json.dumps(row) + "\n" for row in rows if row is not None)
        return lambda: {"assignments.jsonl": text}

    def labelled(row: dict[str, Any], label: str) -> dict[str, Any]:
        return {**row, "nuggets": [{**one, "assignment": label} for one in row["nuggets"]]}

    def important(row: dict[str, Any], value: str) -> dict[str, Any]:
        return {**row, "nuggets": [{**one, "importance": value} for one in row["nuggets"]]}

    board = ("leaderboard", "{}/assignments.jsonl", "-m", "NuggetV(strict=True)", "NuggetA")
    first, last = ANSWERING[0], ANSWERING[-1]
    edits: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
        "one run": lambda row: row if row["run_id"] == first else None,
        "one query": lambda row: row if row["qid"] == "001" else None,
        "a run that supports all": lambda row: labelled(row, "support") if row["run_id"] == first else row,
        "a run that supports nothing": lambda row: labelled(row, "not_support") if row["run_id"] == last else row,
        "a query that nobody answers": lambda row: labelled(row, "not_support") if row["qid"] == "005" else row,
        "a query of vital nuggets alone": lambda row: important(row, "vital") if row["qid"] == "005" else row,
        "a query of okay nuggets alone": lambda row: important(row, "okay") if row["qid"] == "005" else row,
        "no partial support": lambda row: {
            **row,
            "nuggets": [
                {**one, "assignment": one["assignment"].replace("partial_support", "not_support")}
                for one in row["nuggets"]
            ],
        },
        "an empty answer": lambda row: (
            {**labelled(row, "not_support"), "answer_text": "", "response_length": 0}
            if (row["run_id"], row["qid"]) == (first, "003")
            else row
        ),
        "one to six nuggets a query": lambda row: {**row, "nuggets": row["nuggets"][: 1 + int(row["qid"]) % 6]},
    }
    for name, edit in edits.items():
        yield Odd(f"assignments: {name}", board, assigned(edit))
    yield Odd("criteria: penalties", ("leaderboard", "{}/v.jsonl"), lambda: {"v.jsonl": world.verdicts()})
    yield Odd(
        "criteria: a bank with weights",
        ("leaderboard", "{}/graded.jsonl", "--bank", "{}/bank.jsonl", "-m", "WeightedCover@10"),
        lambda: {"graded.jsonl": world.records(), "bank.jsonl": world.bank(weights=True)},
    )
    names = [f"run{place}" for place in range(8)]
    official = {name: place + 1 for place, name in enumerate(names)}
    ours = "".join(f"{name}\t{0.9 - 0.1 * (place ^ 1):.2f}\n" for place, name in enumerate(names))
    yield Odd(
        "leaderboards: ranks against scores, a run more",
        ("correlate", "{}/official.json", "{}/ours.tsv", "--rounds", "0", "--official-ranks"),
        lambda: {"official.json": json.dumps(official), "ours.tsv": "run_id\tcover\n" + ours + "run9\t0.33\n"},
        (r"not in the official leaderboard and left out",),
    )
    percent = "".join(f"{name}\t{90 - 10 * (place ^ 1)}\n" for place, name in enumerate(names))
    yield Odd(
        "leaderboards: percent against shares",
        ("correlate", "{}/a.tsv", "{}/b.tsv", "--rounds", "0"),
        lambda: {"a.tsv": "run_id\tofficial\n" + percent, "b.tsv": "run_id\tcover\n" + ours},
    )


def odd_files() -> list[Odd]:
    """All that are made by a seed."""
    return [*_scales(), *_sizes(), *_ids(), *_scores(), *_labels(), *_answers()]


def _shared_folder() -> Path | None:
    """Where the public data lie: `RUBRIC_MEASURES_SHARED`, or beside the project."""
    folders = [Path(os.environ.get("RUBRIC_MEASURES_SHARED", "")), Path(__file__).parents[2] / "shared"]
    return next((one / "data" for one in folders if (one / "data" / "dl19").is_dir()), None)


def shared_files() -> list[Odd]:
    """Commands over the public data, where they are: each readable file in one at least."""
    data = _shared_folder()
    if data is None:
        return []
    found: list[Odd] = []

    def add(line: str, right: str = "", status: int = 0) -> None:
        words = tuple(word.replace("@@", str(data.resolve())) for word in line.split())
        rights = (right,) if right else ()
        found.append(Odd("data: " + line.replace("@@/", ""), words, lambda: {}, rights, status))

    dl19 = "@@/dl19/qrels.dl19-passage.txt.gz"
    runs = sorted(path.name for path in (data / "dl19").glob("*.run.gz"))
    for name in runs:
        add(f"evaluate {dl19} @@/dl19/{name} nDCG@10 AP(rel=2) RR(rel=2)")
    every = " ".join(f"@@/dl19/{name}" for name in runs)
    add(f"leaderboard {dl19} {every} -m nDCG@10 AP(rel=2)", r"\d+ runs share the tag")
    rag25 = "@@/rag25/qrels.rag25.test.txt.gz"
    umbrela = "@@/rag25/qrels.rag25.test-umbrela2.txt.gz"
    add(f"agreement {rag25} {umbrela} --rounds 0")
    add(f"agreement {umbrela} {rag25} --rounds 0 --cutoff 2 2")
    golden = "@@/workbench-golden"
    bank = f"--bank {golden}/dl20-scale-questions.jsonl.gz"
    for more in ("RubricCover(rel=4)@20", "nRubricCover(rel=1)@20", "RubricCover(rel=4)@20 --compat workbench"):
        add(f"leaderboard {golden}/dl20-scale.jsonl.gz {bank} -m {more}")
    add(f"agreement {golden}/dl20-scale.jsonl.gz --rounds 0", r"outside the truth's scale|labelled by .* only")
    add(f"qrels {golden}/dl20-scale.jsonl.gz -o {{}}/out.qrels")
    add(f"convert {golden}/dl20-scale-questions.jsonl.gz --to bank:csv -o {{}}/out.csv", r"cannot hold all of the bank")
    for name in ("rated.qrels.gz", "count.qrels.gz"):
        add(f"convert {golden}/{name} -o {{}}/out.qrels")
    official = f"{golden}/dl20-scale-official-leaderboard.json"
    for name in ("cover-bool.tsv", "cover-tau4.tsv"):
        add(f"correlate {official} {golden}/{name} --rounds 0", r"the last line has no line end|measure are text")
    graded = "@@/workbench/graded-q0.jsonl.gz"
    for prompt in ("QuestionSelfRatedUnanswerablePromptWithChoices", "NuggetSelfRatedPrompt"):
        add(f"qrels {graded} --grader prompt={prompt} -o {{}}/out.qrels")
    for prompt in ("QuestionCompleteConciseUnanswerablePromptWithChoices", "NuggetExtractionPrompt"):
        add(f"qrels {graded} --grader prompt={prompt} --rel 1 -o {{}}/out.qrels")
    add(f"qrels {graded} --grader kind=direct -o {{}}/out.qrels")
    support = "@@/support"
    sentences = r"\d+ sentences (have no text|stand twice)|answers have no sentences"
    for name in ("rag24.webassess.jsonl.gz", "rag24.without-prediction.jsonl.gz", "rag25.jsonl.gz"):
        add(f"leaderboard {support}/{name} -m SupportPrecision SupportRecall", sentences)
    failed = r"verdicts failed|a score needed failed|failed grades could turn|values without a score"
    rubric = f"{support}/rubric.jsonl"
    add(f"leaderboard {support}/graded.jsonl --bank {rubric} --on-failed expected", failed, status=1)
    add(f"convert {rubric} --to bank -o {{}}/out.jsonl")
    add(f"convert {support}/answers.jsonl.gz --to answers -o {{}}/out.jsonl", r"no place for it: (narrative|citations)")
    games = r"so few tell nothing apart|without a verdict|both answers are bad|further columns left out"
    add(f"tournament {support}/judgments.jsonl --rounds 20", games, status=1)
    add("convert @@/rag26dev/rag25-dev-nuggets.jsonl.gz --to bank -o {}/out.jsonl")
    add("convert @@/rag26dev/research-rubrics-dev-rubrics.jsonl.gz --to bank -o {}/out.jsonl")
    add("convert @@/kiddie/kiddie.nuggets.jsonl --to bank -o {}/out.jsonl")
    add("convert @@/kiddie/kiddie-topics.jsonl --to queries -o {}/out.json")
    add("convert @@/kiddie/kiddie.qrels.txt -o {}/out.qrels")
    for name in ("run1", "run2"):
        add(
            f"convert @@/kiddie/kiddie.{name}.jsonl --to answers -o {{}}/out.jsonl",
            r"no place for it: citations",
        )
    return found
