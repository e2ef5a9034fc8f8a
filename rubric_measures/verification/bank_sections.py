"""The bank report as sections: items, pairs, stability, reusability; and what to do about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rubric_measures.base.tables import Cell, Undefined
from rubric_measures.measures.loading import RecordQuery
from rubric_measures.verification.bank_checks import Against, RedundantPair, bank_halves, items_against, redundant_pairs
from rubric_measures.verification.item_statistics import ItemReport, ItemStatistics
from rubric_measures.verification.reusability import Reusability, reusability
from rubric_measures.verification.sections import Section

__all__ = ["bank_sections"]

_FEW_RUNS = "fewer than two runs, or all of them tied"


def bank_sections(
    report: ItemReport,
    queries: Sequence[RecordQuery],
    *,
    min_rating: int | None = None,
    seed: int = 0,
    suggest: bool = False,
) -> Iterator[Section]:
    """The sections of the bank report.

    Args:
        report: the item statistics.
        queries: the grades that they are of.
        min_rating: the least grade that covers an item; None takes the scale's.
        seed: of what is drawn.
        suggest: also list what to split, merge, reword and retire.
    """
    runs = len(report.coverage.runs)
    ends = _at_ends(report)
    against = items_against(report.statistics, runs)
    pairs = [pair for query in queries for pair in redundant_pairs(query, min_rating)]
    pairs.sort(key=lambda one: (-one.kappa, one.query_id, one.first))
    yield _overview(report, ends, against, pairs, seed)
    text = {(row.query_id, row.item_id): row.item_text for row in report.statistics}
    yield Section(
        "bank-ends",
        "Items that separate no runs: none covers them (floor), or all do (ceiling)",
        ["query_id", "end", "graded", "covering", "item_id", "item"],
        [[row.query_id, end, row.graded, row.covering, row.item_id, row.item_text] for row, end in ends],
    )
    yield Section(
        "bank-against",
        "Items that worse runs cover and better ones do not (r below 0 beyond chance, corrected for all items)",
        ["query_id", "r_leaderboard", "p", "item_id", "item"],
        [[one.row.query_id, one.row.by_run.value, one.p, one.row.item_id, one.row.item_text] for one in against],
    )
    yield Section(
        "bank-pairs",
        "Items that the same passages cover",
        ["query_id", "kappa", "passages", "both", "either", "first", "second", "first_item_id", "second_item_id"],
        [
            [one.query_id, one.kappa, one.passages, one.both, one.either,
             text.get((one.query_id, one.first), ""), text.get((one.query_id, one.second), ""), one.first, one.second]
            for one in pairs
        ],
    )  # fmt: skip
    if (found := reusability(queries, min_rating)) is not None:
        yield _reusability(found)
    if suggest:
        yield _suggestions(report, ends, against, pairs, text)


def _at_ends(report: ItemReport) -> list[tuple[ItemStatistics, str]]:
    """Items that no run covers, or all of those of which it is known."""
    places = {
        (query_id, item_id): column
        for query_id, items in report.coverage.items.items()
        for column, item_id in enumerate(items)
    }
    found = []
    for row in report.statistics:
        column = places.get((row.query_id, row.item_id))
        if column is None:
            continue
        known = report.coverage.known(row.query_id)[:, column]
        hits = report.coverage.covered[row.query_id][known, column]
        if len(hits) and (hits.all() or not hits.any()):
            found.append((row, "ceiling" if hits.all() else "floor"))
    return found


def _overview(
    report: ItemReport,
    ends: Sequence[tuple[ItemStatistics, str]],
    against: Sequence[Against],
    pairs: Sequence[RedundantPair],
    seed: int,
) -> Section:
    coverage = report.coverage
    rows: list[list[Cell]] = [
        ["queries", len(coverage.items)],
        ["runs", len(coverage.runs)],
        ["items of queries that runs rank", sum(map(len, coverage.items.values()))],
        ["items at the floor", sum(end == "floor" for _, end in ends)],
        ["items at the ceiling", sum(end == "ceiling" for _, end in ends)],
        ["items against the rest", len(against)],
        ["pairs that the same passages cover", len(pairs)],
        ["pairs that say nearly the same", len(report.duplicates)],
    ]
    if coverage.items:
        found = bank_halves(coverage, seed=seed)
        for name, value in (
            ("tau of two half banks", found.half_tau),
            ("reliability of the full bank (Spearman and Brown)", found.reliability),
            ("tau under new queries and items (bootstrap over both)", found.tau),
            ("the same, least of the middle 95 %", found.tau_low),
            ("share of these in which the best run stays best", found.first),
        ):
            rows.append([name, Undefined(_FEW_RUNS) if value is None else value])
    return Section("bank", "Does the bank hold", ["what", "value"], rows)


def _reusability(found: Reusability) -> Section:
    slope = "not known" if found.slope is None else f"{found.slope / 10:.4f}"
    return Section(
        "reusability-run",
        f"{found.sentence()} Each 10 % of passages without grades cost {slope}.",
        ["run", "unjudged", "score", "without_items", "without_grades", "without_both", "rank",
         "rank_without_items", "rank_without_grades", "rank_without_both"],
        [
            [row.run_id, row.unjudged, row.score, row.without_items, row.without_grades,
             row.without_both, row.rank, row.rank_without_items, row.rank_without_grades, row.rank_without_both]
            for row in found.rows
        ],
    )  # fmt: skip


def _suggestions(
    report: ItemReport,
    ends: Sequence[tuple[ItemStatistics, str]],
    against: Sequence[Against],
    pairs: Sequence[RedundantPair],
    text: Mapping[tuple[str, str], str],
) -> Section:
    """What to do, in the order of what is surest."""
    rows: list[list[Cell]] = []
    merged = set()
    for pair in report.duplicates:
        if pair.same_text:
            merged.add((pair.first.query_id, pair.first.item_id, pair.second.item_id))
            rows.append(_advice("merge", pair.first.query_id, pair.first.item_id, pair.second.item_id,
                                "they have one text", text))  # fmt: skip
    for one in pairs:
        if (one.query_id, one.first, one.second) not in merged:
            why = f"the same passages cover both (kappa {one.kappa:.2f})"
            rows.append(_advice("merge", one.query_id, one.first, one.second, why, text))
    for bad in against:
        why = f"worse runs cover it, better ones do not (r {bad.row.by_run.value:.2f})"
        rows.append(_advice("reword or retire", bad.row.query_id, bad.row.item_id, "", why, text))
    for row, end in ends:
        if end == "ceiling":
            rows.append(_advice("split", row.query_id, row.item_id, "", "all runs cover it: ask for more", text))
        elif row.graded and not row.covering:
            why = "no passage covers it: retire it, unless a passage could"
            rows.append(_advice("check", row.query_id, row.item_id, "", why, text))
    return Section(
        "bank-suggestions",
        "What to split, merge, reword and retire",
        ["query_id", "action", "why", "item", "with", "item_id", "with_item_id"],
        rows,
    )


def _advice(
    action: str, query_id: str, item_id: str, other: str, why: str, text: Mapping[tuple[str, str], str]
) -> list[Cell]:
    own, second = text.get((query_id, item_id), ""), text.get((query_id, other), "")
    return [query_id, action, why, own, second or None, item_id, other or None]
