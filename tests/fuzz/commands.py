"""The commands that read damaged files; every file that a command names in braces is damaged in some of its cases."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec

from tests.formats.test_every_format import LINES

__all__ = ["JOBS", "Job"]

_RUNS = "{bm25.run} {fusion.run} {tfidf.run}"
_QUICK = "--rounds 50"


@dataclass(frozen=True)
class Job:
    """One command line.

    Attributes:
        words: its arguments; `{NAME}` is a seed, `{+NAME}` one that the command may change, so that it gets a copy,
            and `{FOLDER/}` a folder of seeds.
    """

    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """The name of the command."""
        return self.words[0]

    @property
    def files(self) -> tuple[str, ...]:
        """The seeds that the command reads."""
        return tuple(dict.fromkeys(re.findall(r"\{\+?([^}]+)\}", " ".join(self.words))))


# Seed -> the formats into which it is converted, beside its own.
_CONVERT = {
    "graded.jsonl": "records judgments run",
    "graded.jsonl.gz": "records",
    "direct.jsonl": "records",
    "passages.jsonl": "records ragelo:documents",
    "bm25.run": "run",
    "bm25.run.gz": "run",
    "qrels.txt": "qrels",
    "items.qrels": "item-qrels",
    "assignments.jsonl": "assignments nuggets records bank",
    "games.jsonl": "games ragelo:games",
    "concise.jsonl": "answers",
    "reports.jsonl": "reports answers",
    "questions.jsonl": "bank nugget-bank",
    "nuggetbank.jsonl": "bank nuggets",
    "topics.trec": "queries",
    "support.jsonl": "bank",
    "labels.jsonl": "records support-labels",
    "annotated.run": "run",
    "topics.jsonl": "topics queries",
    "queries.json": "queries",
    "queries.jsonl": "queries",
    "queries.tsv": "queries ragelo:queries",
    "board.json": "leaderboard:ir_measures",
    "ragdoll-battles.jsonl": "games ragelo:games",
    "ragdoll-graded.jsonl": "records bank",
    "ragelo-games.csv": "games",
}
_OF_FORMATS = {
    "nuggets": "bank",
    "nugget-bank": "bank",
    "nugget-lists": "bank",
    "rubrics": "bank",
    "ragdoll:rubric": "bank rubrics",
    "ragelo:queries": "queries",
    "ragelo:documents": "records",
    "ragelo:answers": "answers",
}


def _conversions() -> list[str]:
    lines = []
    for name, targets in (*_CONVERT.items(), *((f"{name}.file", targets) for name, targets in _OF_FORMATS.items())):
        for target in targets.split():
            # Records have several runs, which are files of a folder.
            where = "out" if target == "run" and name.startswith("graded") else "out/converted"
            lines.append(f"convert {{{name}}} --to {target} -o {where}")
        # Battles are only read.
        if name != "ragdoll-battles.jsonl":
            lines.append(f"convert {{{name}}} -o out/converted")
    lines += [f"convert {{{name}.file}} --from {name} --to {name} -o out/converted" for name in LINES]
    lines += [
        "convert {questions.tsv} --to answers -o out/converted",
        "convert {ragdoll-support.jsonl} --answers {ragdoll-answers.jsonl} --to support-labels -o out/converted",
        "convert {answers.tsv} --from answers -o out/converted",
        "convert {graded.jsonl} {graded2.jsonl} -o out/converted",
        "convert {graded.jsonl} {graded.jsonl} -o out/converted",
        "pool {bm25.run} -c {collection/} -o out/converted",
        "pool --judgments {qrels.txt} --judged -c {collection/} -o out/converted",
    ]
    return lines


_OTHERS = f"""
answers {{table.csv}} --model lexical --folder out/a --against {{table2.csv}} --format markdown
answers {{table.json}} --model lexical --folder out/a --bank {{evaluated/bank.csv}} --contexts
answers {{table2.csv}} --model lexical --folder out/a --against {{evaluated/}}
answers {{table.json}} --model lexical --folder out/a -m SupportPrecision
calibrate {{exported/graded.jsonl.gz}} --bank {{exported/bank.jsonl}} {_QUICK}
calibrate {{drawn.jsonl}} --anchors {{exported/graded.jsonl.gz}} --bank {{questions.jsonl}} {_QUICK}
power {{board.json}} --smallest 0.1
power {{board-ir_measures.txt}} --smallest 0.1 -m RubricCover(rel=4)@5 --format json
check {{bundle/}}
check {{compared.json}} {{one.json}}
leaderboard {{graded.jsonl}} {_RUNS} --qrels {{qrels.txt}} -m RubricCover(rel=4)@5 nDCG@5 --report out/r.html
grade {{passages.jsonl}} --bank {{questions.jsonl}} --model lexical -o out/g --for RubricCover(rel=4)@5 \
 --runs {{bm25.run}} {{tfidf.run}}
evaluate {{graded.jsonl}} {{bm25.run}} RubricCover(rel=4)@5 RubricQrels(measure="nDCG@5")
evaluate {{graded.jsonl.gz}} {{bm25.run.gz}} RubricCover(rel=4)@5 -q
evaluate {{items.qrels}} {{bm25.run}} RubricCover(rel=4)@5 -q
evaluate {{qrels.txt}} {{bm25.run}} nDCG@10 AP -q
leaderboard {{graded.jsonl}} {_RUNS} --bank {{questions.jsonl}} -m RubricCover(rel=4)@5
leaderboard {{graded.jsonl}} {_RUNS} -m RubricCover(rel=4)@5 --format json --checks
leaderboard {{items.qrels}} {_RUNS} -m RubricCover(rel=4)@5 nDCG@5
leaderboard {{qrels.txt}} {_RUNS} -m nDCG@5 AP --format text
check {{qrels.txt}} {_RUNS} -m nDCG@5 --pool-depth 3 --format json
leaderboard {{graded.jsonl}} {{annotated.run}} -m RubricCover(rel=4)@5
evaluate {{qrels.txt}} {{annotated.run}} nDCG@10 Judged@5 -q
leaderboard {{graded2.jsonl}} --bank {{nuggetbank.jsonl}} -m NuggetV NuggetA --length
leaderboard {{assignments.jsonl}} -m NuggetV(strict=True) NuggetV NuggetA --length
leaderboard {{assignments.jsonl}} -m NuggetV NuggetA --compat nuggetizer
leaderboard {{graded.jsonl}} -m RubricCover(rel=4)@20 --compat workbench
leaderboard {{ragdoll-graded.jsonl}} --on-failed expected
leaderboard {{ragdoll-graded.jsonl}} --compat ragdoll --format json
leaderboard {{argue.jsonl}} --bank {{nuggets-argue.jsonl}}
leaderboard {{support.jsonl}} -m SupportPrecision SupportRecall(strict=True) SupportRate
leaderboard {{labels.jsonl}} -m SupportPrecision CitationCoverage
leaderboard {{drawn.jsonl}} {{bm25.run}} -m RubricCover(rel=4)@5
check {{board.json}} {{graded.jsonl}} {_RUNS}
check {{board.json}} {{graded.jsonl}} {_RUNS} --pack out/bundle
check {{reports.jsonl}} --track rag26 --topics {{queries.tsv}}
check {{reports.jsonl}} {{concise.jsonl}} --track ragtime --topics {{topics.jsonl}}
qrels {{graded.jsonl}} --label max --rel 4
qrels {{graded.jsonl}} --bank {{questions.jsonl}} --per item
qrels {{items.qrels}} -o out/q
correlate {{board.json}} {{board-ir_measures.txt}} -m RubricCover(rel=4)@5 \
 --coefficients kendall spearman kendall@15 {_QUICK}
correlate {{one.json}} {{graded.jsonl}} --bank {{questions.jsonl}} {_QUICK}
correlate {{board-dict.json}} {{board-wide.txt}} {_QUICK}
agreement {{qrels.txt}} {{graded.jsonl}} {_QUICK} --cutoff 2 4
agreement {{graded.jsonl}} {_QUICK}
agreement {{graded.jsonl}} --tables 1 --format latex
agreement {{graded.jsonl}} {{exported/graded.jsonl.gz}} --items --grader-b human:bob {_QUICK}
agreement {{exported/graded.jsonl.gz}} --grader assessors=override {_QUICK}
combine {{exported/graded.jsonl.gz}} --grader lexical:1 --grader human:bob -o out/p.jsonl
combine {{exported/graded.jsonl.gz}} --by prefer --grader human:bob --grader lexical:1 -o out/p.jsonl
compare {{board.json}} -m RubricCover(rel=4)@5 --baseline bm25 {_QUICK}
compare {{board-jsonl.jsonl}} -m RubricCover(rel=4)@5 --correction bh {_QUICK} --format json
compare {{board-trec_eval.txt}} {{board-ir_measures.txt}} -m RubricCover(rel=4)@5 {_QUICK}
pool {_RUNS} -c {{collection/}} --query-file {{queries.tsv}} --judgments {{qrels.txt}} -k 5 -o out/p
pool {{concise.jsonl}} {{thorough.jsonl}} --query-file {{queries.tsv}} -o out/p
pool {{reports.jsonl}} --whole --query-file {{topics.jsonl}} -o out/p
pool {{answers.tsv}} --query-file {{queries.json}} -o out/p
pool -c {{example/}} -k 3 -o out/p
grade {{passages.jsonl}} --bank {{questions.jsonl}} --model lexical -o out/g --query-texts {{queries.jsonl}}
grade {{passages.jsonl}} --bank {{nuggetbank.jsonl}} --model lexical -o out/g --cache {{+cache2.sqlite}}
grade {{graded.jsonl}} --bank {{questions.jsonl}} --model lexical -o out/g --cache {{+cache.sqlite}} --max-calls 0
grade {{passages.jsonl}} --bank {{questions.jsonl}} \
 --model scripted:{{replies.jsonl}} --prompt {{prompt.toml}} -o out/g
grade {{passages.jsonl}} \
 --model scripted:{{replies.jsonl}} --prompt Thomas -o out/g --query-texts {{queries.tsv}}
grade {{passages.jsonl}} --bank {{questions.jsonl}} --model lexical -o out/g \
 --dry-run --prices {{prices.json}}
grade {{exported/graded.jsonl.gz}} --bank {{exported/bank.jsonl}} --model lexical \
 --only-changed -o out/g
grade {{graded.jsonl}} --bank {{questions.jsonl}} --old-bank {{questions2.jsonl}} --model lexical \
 --only-changed -o out/g
grade --support {{reports.jsonl}} --collection {{collection/}} --model lexical -o out/g
grade --support {{labels.jsonl}} --collection {{collection/}} --model lexical -o out/g
grade {{passages.jsonl}} --bank {{questions.jsonl}} --model scripted:{{replies.jsonl}} --prompt {{prompt.toml}} \
 --items-per-call all -o out/g --passages-per-query 1
generate {{queries.tsv}} \
 --model scripted:{{replies.jsonl}} -o out/b --dry-run --prices {{prices.json}}
generate {{queries.jsonl}} \
 --model scripted:{{replies.jsonl}} -o out/b
generate {{queries.tsv}} --target nuggets --from-documents {{graded.jsonl}} \
 --model scripted:{{replies.jsonl}} -o out/b
generate --target queries --passages {{passages.jsonl}} --examples {{real.txt}} \
 --model scripted:{{replies.jsonl}} -o out/b
cache size {{+cache.sqlite}}
cache size {{+cache3.sqlite}}
cache merge {{+cache.sqlite}} {{+cache2.sqlite}} {{+cache3.sqlite}}
tournament {{games.jsonl}} {_QUICK}
tournament {{ragdoll-battles.jsonl}} {_QUICK} --format json
tournament {{games.jsonl}} {{assessor-games.jsonl}} {_QUICK} --format json
tournament {{ragelo-games.csv}} --compat ragelo --format jsonl {_QUICK}
tournament --answers {{concise.jsonl}} {{thorough.jsonl}} --query-file {{queries.tsv}} \
 --model scripted:{{verdicts.jsonl}} \
 --save out/g {_QUICK}
verify all {{graded.jsonl}} --bank {{questions.jsonl}}
verify item-statistics {{graded.jsonl}}
verify all {{graded.jsonl}} -o out/v.html
verify grading {{drawn.jsonl}}
review {{graded.jsonl}} --bank {{questions.jsonl}} --state {{+review.sqlite}} --export out/e
review {{graded2.jsonl}} --bank {{nuggetbank.jsonl}} --state {{+begun.sqlite}} --export out/e
"""
_PLOTS = f"""
leaderboard {{graded.jsonl}} {_RUNS} -m RubricCover(rel=4)@5 --plot out/p.svg
leaderboard {{graded.jsonl}} {_RUNS} -m RubricCover(rel=4)@5 --plot out/p.pdf
compare {{board.json}} -m RubricCover(rel=4)@5 --plot out/p.svg {_QUICK}
tournament {{games.jsonl}} {_QUICK}
agreement {{qrels.txt}} {{graded.jsonl}} {_QUICK}
"""


def _lines() -> list[str]:
    lines = [*_conversions(), *filter(None, _OTHERS.splitlines())]
    if find_spec("matplotlib") is not None:
        lines += filter(None, _PLOTS.splitlines())
    return lines


JOBS: tuple[Job, ...] = tuple(Job(tuple(line.split())) for line in _lines())
