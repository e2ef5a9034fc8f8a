"""The command `generate`: queries -> test bank; queries and documents -> nuggets; passages -> synthetic queries."""

from __future__ import annotations

import argparse
import sys

from rubric_measures.base.errors import InputError
from rubric_measures.base.tables import Report, Table, columns, render
from rubric_measures.cli.inputs import NamedValue, add_endpoint_options, add_limit_options, is_watched


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `generate`."""
    add = parser.add_argument
    add("queries", nargs="?", metavar="QUERIES", help="JSON, JSON lines, TSV, or an ir_datasets id")
    add("--target", choices=["questions", "nuggets", "queries"], default="questions", help="what to make")
    add("-o", "--output", default="-", metavar="FILE", help="the file to write (default: standard output)")
    add("--limit", type=int, metavar="N", help="only the first N queries (or long passages)")
    add = parser.add_argument_group("questions and nuggets").add_argument
    add("--style", choices=["auto", "dl", "car"], default="auto", help="the published prompt (auto: car for facets)")
    programs = ("workbench", "nuggetizer")
    add("--program", choices=programs, default="", help="put the prompts in the words that this program sends")
    add("--test-collection", default="", metavar="NAME", help="the collection's name, kept in the bank")
    add = parser.add_argument_group("nuggets from documents").add_argument
    add("--from-documents", metavar="PASSAGES", help="passage records (of pool or grade), or nuggetizer's requests")
    add("--by", choices=["judgments", "direct", "all"], default="judgments", help="what makes a passage related")
    add("--qrels", metavar="FILE", help="judgments in place of those in the records")
    add("--min-judgment", dest="level", type=int, default=1, help="the lowest label that is related (default 1)")
    add("--llm", default="", help="with --by direct: the grades of this model")
    add("--prompt-class", default="", help="with --by direct: the grades of this prompt")
    add(
        "--grade-set",
        default="",
        metavar="HASH",
        help="with --by direct: those of these settings, where there are several",
    )
    add("--max-documents", type=int, metavar="N", help="at most the first N related passages of a query")
    add("--max-nuggets", type=int, default=30, help="the longest list that is carried on (default 30)")
    add("--keep", type=int, default=20, help="nuggets that stay, vital ones first (default 20)")
    add("--over-generate", action="store_true", help="for assessors to edit: all nuggets, no importance")
    add = parser.add_argument_group("synthetic queries").add_argument
    add("--passages", metavar="FILE", help="the collection: records, JSON lines, TSV, or an ir_datasets id")
    add("--examples", metavar="FILE", help="real questions: one a line, or a query file")
    add("--passage-tokens", type=int, default=2000, help="consecutive passages are joined up to this (default 2000)")
    add("--max-questions", type=int, default=10, help="questions a passage and model (default 10)")
    add("--sample-passages", type=int, metavar="N", help="ask about N long passages, drawn by --seed")
    add("--quota", action="append", default=[], metavar="MODEL=N", help="keep N queries of a model (repeatable)")
    add("--seed", type=int, default=0, help="of the samples (default 0)")
    add = parser.add_argument_group("model").add_argument
    add("--model", action="append", required=True, metavar="SPEC",
        help="hf:NAME, openai:NAME, litellm:PROVIDER/NAME or scripted:FILE; several for synthetic queries")  # fmt: skip
    add_endpoint_options(add)
    add("--temperature", type=float, default=0.0, help="0 (default) takes the most probable reply")
    add("--max-tokens", type=int, default=2048, help="the longest reply (default 2048)")
    add("--option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a further generation option")
    add_limit_options(add, "OUTPUT.cache.sqlite, none for -", "--dry-run and --max-cost; see `grade`")
    add("--retries", type=int, default=1, help="further draws for a reply that cannot be read (default 1)")
    add("--dry-run", action="store_true", help="print the calls and tokens that it would take, and make none")
    parser.epilog = """examples:
  rubric_measures generate queries.tsv --model openai:gpt-4o -o bank.jsonl.gz
  rubric_measures generate queries.tsv --target nuggets --from-documents graded.jsonl.gz --by direct \\
      --model openai:gpt-4o -o nuggets.jsonl.gz
  rubric_measures generate --target queries --passages passages.tsv --examples real.txt --model openai:gpt-4o \\
      --quota openai:gpt-4o=100 -o queries.jsonl

Exit code 1: some calls led to nothing (they are listed on standard error); the rest is in the file. Run the same
command again: only what is missing is asked."""


def run(options: argparse.Namespace) -> int:
    """Runs the command; 1 when some calls led to nothing."""
    from rubric_measures.api import generate

    made = generate(**{**vars(options), "quota": dict(map(_quota, options.quota))}, progress=is_watched())
    if options.dry_run:
        names = ["model", "calls", "cached", "prompt_tokens", "completion_tokens_at_most", "cost_at_most"]
        sys.stdout.writelines(render(Report([Table(columns(names), made.plan)]), "tsv"))
    return 0 if made.is_complete else 1


def _quota(text: str) -> tuple[str, int]:
    model, _, count = text.rpartition("=")
    if not model or not count.isdecimal():
        raise InputError(f"--quota {text}: expected MODEL=N")
    return model, int(count)
