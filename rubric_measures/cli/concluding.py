"""Commands that conclude: agreement, check, compare, correlate, power, tournament.

`compare`: runs against runs from per-query scores, with corrected tests and groups of equals.

`correlate`: leaderboards against the official one; or every measure and grade set of a graded file (a grid).

`agreement`: two or more label sources on the same documents: judgments, graded records, item grades.

`check`: was a board made from these grades, this bank and these runs; packed for others to check; bundles, conclusions,
runs as they are submitted, runs that were not pooled.

`power`: how many queries an experiment needs, from the scores of a board that is there.

`tournament`: games between answers to ratings; plays the games first where a model is named.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from rubric_measures.base.errors import InputError, refuse_ignored
from rubric_measures.base.files import peek_head
from rubric_measures.cli.declared import Call, Command
from rubric_measures.cli.inputs import CALLS, REPLIES, Printed


@Command(
    ["rubric_measures.analysis.comparing:compare"], files={"scores": "BOARD…"},
    fields={"tests": ("rounds", "level", "correction", "smallest")},
)  # fmt: skip
def compare(compare: Call, *, plot: str | None = None, printed: Printed = Printed()) -> int:
    """how sure means are, and which runs differ, from per-query scores

    example:
      rubric_measures leaderboard graded.jsonl.gz runs/*.run --bank questions.jsonl -o board.json
      rubric_measures compare board.json
      rubric_measures compare board.json -m 'RubricCover(rel=4)@20' --baseline bm25 --correction holm
      rubric_measures compare board.json --smallest 0.03 --format tsv   (all pairs)

    Ends with 1 when queries or tests are missing.

    Args:
        plot: also draw the ranking with its groups, or the differences to the baseline: .pdf, .svg or .png.
    """
    return printed.show(compare(), plot)


@Command(
    ["rubric_measures.analysis.correlating:correlate"],
    files={"official": "OFFICIAL", "others": "[LEADERBOARD…]"},
    fields={"draws": ("rounds",)},
)  # fmt: skip
def correlate(correlate: Call, *, plot: str | None = None, printed: Printed = Printed()) -> int:
    """rank correlation of leaderboards with the official one

    examples:
      rubric_measures correlate official.json leaderboard.tsv --coefficients kendall spearman kendall@15
      rubric_measures correlate official.json graded.jsonl.gz --bank questions.jsonl   (a grid, best marked *)
      rubric_measures correlate board.json   (a board of `leaderboard --qrels`: ours against the official measure)

    Args:
        others: leaderboards, or graded records (every grade set and measure); none where OFFICIAL has both sides
            (`leaderboard --qrels`).
        plot: also draw scores against official scores, a page a leaderboard: .pdf, .svg or .png.
    """
    return printed.show(correlate(notes=False), plot)


@Command(
    ["rubric_measures.analysis.graders:agreement", "rubric_measures.analysis.graders:agreement_tables"],
    files={"sources": "SOURCE…"}, spelled={"min_judgment": "--tables"}, without=("source",),
    fields={"draws": ("rounds",)},
)  # fmt: skip
def agreement(
    agreement: Call,
    tables: Call,
    *,
    sources: list[str],
    cutoff: Sequence[tuple[int, int]] = (),
    min_judgment: Literal[1, 2] | None = None,
    printed: Printed = Printed(),
) -> int:
    """agreement of label sources: confusion, kappa, alpha, cutoffs

    examples:
      rubric_measures agreement assessors.qrels model.qrels --cutoff 2 2
      rubric_measures agreement assessors.qrels models/*.qrels   (a leaderboard of graders)
      rubric_measures agreement graded.jsonl.gz --cutoff 4 2        (labels against the judgments inside)
      rubric_measures agreement graded.jsonl.gz --tables 1 --format latex
      rubric_measures agreement graded.jsonl.gz graded.jsonl.gz --items --grader prompt=A --grader-b prompt=B

    Args:
        sources: qrels, tables of labels or grades, graded records (their labels), or judgments:RECORDS; the first is
            the truth, the others are graders; one records file alone: its labels against its judgments; one table: its
            graders.
        cutoff: binarise: first source at least A, the others at least B; may be repeated (default: at each label).
        min_judgment: the Rubric workbench's tables of one records file; judgments are relevant from 1 on, as in the
            program, or from 2 on, as in its paper.
    """
    if min_judgment is None:
        return printed.show(agreement(*sources, cutoff=[*map(tuple, cutoff)], notes=False))
    if len(sources) != 1:
        raise InputError("--tables takes one graded-records file")
    given = {**agreement.keywords, "cutoff": cutoff}
    ignored = {name for name, value in given.items() if value} - tables.keywords.keys()
    refuse_ignored(("rounds" if name == "draws" else name for name in ignored), "on --tables")
    from rubric_measures.analysis.graders import tables_report

    printed.write(tables_report(tables(sources[0], min_judgment=min_judgment)))
    return 0


@Command(
    [
        "rubric_measures.api.files:check_board",
        "rubric_measures.api.files:check_bundle",
        "rubric_measures.api.files:check_conclusions",
        "rubric_measures.corpora.run_checks:check_run",
        "rubric_measures.analysis.boards:reusability",
    ],
    files={"files": "FILE…"},
    without=("board", "grades", "runs", "folder", "path", "scores", "others", "games"),
)
def check(
    check_board: partial[Any],
    check_bundle: partial[Any],
    check_conclusions: partial[Any],
    check_run: partial[Any],
    reusability: partial[Any],
    *,
    files: list[str],
    track: str | None = None,
    printed: Printed = Printed(),
) -> int:
    """boards and bundles made again, and packed; runs by a track's rules

    examples:
      a board: is it what these grades, runs, bank and settings give? If so, --pack makes a bundle:
        rubric_measures check board.json graded.jsonl.gz bm25.run --bank questions.jsonl --pack evaluation
      a bundle, on any machine:
        rubric_measures check evaluation
      what `compare` or `correlate` wrote as JSON, with the boards that it was made of:
        rubric_measures check compared.json board.json
      runs as they are submitted: what would the track refuse, or score otherwise?
        rubric_measures check my-run.jsonl --track rag26 --topics trec_rag_2026_queries.tsv
      judgments and runs: would a run that was not pooled be judged fairly?
        rubric_measures check qrels.txt runs/*.run --pool-depth 10 -m nDCG@10

    What differs or is wrong is a line each, and the exit code is then 1. Of boards and bundles it is said what is
    proved (computed again), claimed (who graded, what texts say) and not looked at; as JSON value by value.

    Args:
        files: what is checked, and the files that it is held to.
        track: say what it would refuse of runs, or score otherwise: rag26, rag25, rag24, ragtime, dragun, biogen, ….
        pool_depth: leave each run in turn out of a pool of the first so many passages of each run.
    """
    # How many files are arguments of their own, before those that are a list together.
    first, apart, called = files[0], len(files), check_bundle
    if track is not None:
        usage, apart, called = "RUN… --track TRACK", 0, partial(check_run, track=track)
    elif "pool_depth" in reusability.keywords:
        usage, apart, called = "GRADED RUN… --pool-depth K", 1, reusability
    elif Path(first).is_dir():
        usage = "FOLDER"
    elif (written := re.search(rb'"rubric_measures (\w+) ', peek_head(first))) and written[1] != b"leaderboard":
        usage, called = "COMPARED.json BOARD…", check_conclusions
    else:
        usage, apart, called = "BOARD.json GRADED RUN…", 2, check_board
        if written is None:
            usage = f"{usage}`, a run as `check RUN… --track TRACK` or `check GRADED RUN… --pool-depth K"
    given = [*files[:apart], *([files[apart:]] if files[apart:] else [])]
    every = (check_board, check_bundle, check_conclusions, check_run, reusability)
    usage = f"{first}: is checked as `check {usage}`"
    if strange := {name for one in every for name in one.keywords} - called.keywords.keys():
        raise InputError(f"{usage}; leave the rest out", settings=sorted(strange))
    try:
        inspect.signature(called).bind(*given)
    except TypeError:
        raise InputError(usage) from None
    found = called(*given)
    printed.write(found.report())
    return 0 if found.holds else 1


@Command(
    ["rubric_measures.analysis.comparing:power"], files={"scores": "BOARD…"},
    fields={"tests": ("level", "smallest")},
)  # fmt: skip
def power(power: Call, *, printed: Printed = Printed()) -> int:
    """how many queries an experiment needs

    example:
      rubric_measures power board.json --smallest 0.05
    """
    return printed.show(power())


@Command(
    ["rubric_measures.api.judging:tournament"],
    files={"games": "[GAMES…]"}, spelled={"queries": "--query-file"},
    fields={"draws": ("rounds", "seed"), "asking": REPLIES, "calls": CALLS},
)  # fmt: skip
def tournament(tournament: Call, *, printed: Printed = Printed()) -> int:
    """pairwise games to ratings; a model may play them

    examples:
      rubric_measures tournament games.jsonl
      rubric_measures tournament --answers a.jsonl b.jsonl --query-file queries.tsv --model hf:NAME --save games.jsonl
      rubric_measures tournament games.jsonl verdicts.jsonl --compat ragelo -o tournament.json

    Games are JSON lines {query_id, agent_a, agent_b, verdict: a, b, tie, both_bad or null}, RAGElo's CSV, or battles of
    RAGDoll. A game without a verdict counts for nobody. With --model, games are played through the reply cache
    (SAVE.cache.sqlite unless --cache names one) and kept in SAVE; run the same command again to go on, or with more
    answers to add an agent: only new games are played.
    The output is a leaderboard: `correlate` compares --format tsv and --format json with any other.

    Args:
        games: played games (JSON lines, RAGElo's CSV or battles of RAGDoll).
        answers: reports or plain answers; their runs are the agents.
    """
    # What was paid for is kept: the ratings alone go to standard output.
    if "model" in tournament.keywords and "save" not in tournament.keywords:
        raise InputError("games that are played are kept; name their file", settings=("save",))
    return printed.show(tournament())
