"""`grade`: passages and a test bank through a grader, cached and resumable, into graded passage records."""

from __future__ import annotations

import argparse

from rubric_measures.base.errors import InputError
from rubric_measures.cli.model_options import NamedValue, ids, is_watched

__all__ = ["HELP", "add_arguments", "run"]

HELP = "grade passages against a test bank with a model; cached, resumable"
_EXAMPLE = """examples:
  rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model lexical -o graded.jsonl.gz
  rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model openai:gpt-4o --dry-run --prices prices.json
  rubric_measures grade review/graded.jsonl.gz --bank review/bank.jsonl --model lexical --only-changed -o new.jsonl.gz
  rubric_measures grade graded.jsonl.gz --bank bank.jsonl.gz --model hf:google/flan-t5-large \\
      --prompt QuestionSelfRatedUnanswerablePromptWithChoices --prompt Thomas -o graded2.jsonl.gz
  rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model hf:google/flan-t5-large --runner ray \\
      --ray-address auto -o graded.jsonl.gz

Every reply is kept in the cache (OUT.cache.sqlite unless --cache names a file): run the same command again after an
interruption, and finished calls are not made again. OUT.manifest.json says what made the grades; where the records go
to standard output, name both files yourself.
A price table is JSON: {"gpt-4o": {"input": 2.5, "output": 10}}, for a million tokens."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("passages", metavar="PASSAGES", help="passages by query, graded or not (JSON lines, .gz or -)")
    add("--bank", metavar="BANK", help="the test bank; not needed for direct labels and aspects of answers")
    add("--query-texts", metavar="FILE", help="texts of the queries, where the bank has none (JSON, JSON lines or TSV)")
    add("--model", required=True, help="lexical, scripted:FILE, hf:NAME or openai:NAME")
    add("--base-url", metavar="URL", action="append", help="openai: the endpoint; may be repeated for replicas")
    add("--model-option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a setting of the model's backend")
    add("--prompt", action="append", default=[], metavar="NAME", help="prompt name or .toml file; may be repeated")
    add("--prompt-field", action=NamedValue, default={}, metavar="NAME=TEXT", help="a setting of the prompt (domain=…)")
    add("--documents", metavar="SOURCE", help="prompts about answers: what to show; graded records, or a collection")
    add("--level-shown", type=int, default=2, metavar="N", help="the lowest label of documents shown (default 2)")
    add("--label-prompt", metavar="NAME", help="the prompt whose direct labels count, where --documents has several")
    add("--label-set", metavar="HASH", help="the settings whose direct labels count, where that prompt has several")
    add("-o", "--output", metavar="OUT", help="where the graded records go (- for stdout)")
    add("--manifest", metavar="FILE", help="where to say what made the grades (default: OUT.manifest.json, none for -)")

    replies = parser.add_argument_group("replies").add_argument
    replies("--temperature", type=float, default=0.0, help="0 (default) takes the most probable reply")
    replies("--max-tokens", type=int, help="the longest reply (default: by the kind of prompt)")
    replies("--option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a further generation option")
    replies("--replicates", type=int, default=1, metavar="N", help="draws of every reply; needs a temperature")
    replies("--combine", choices=("median", "majority"), default="median", help="how replicates become one grade")
    replies("--retries", type=int, default=1, metavar="N", help="further draws of a reply that cannot be read")
    replies("--unparsed", choices=("exampp", "workbench"), default="", help="grade replies without a rating by rule")
    programs = ("workbench", "nuggetizer")
    replies("--compat", choices=programs, default="", help="read, match and count replies as that program does")
    replies("--nuggets-per-call", type=int, default=10, metavar="N", help="label lists: nuggets shown at once")
    replies("--shuffle-seed", type=int, metavar="SEED", help="label lists: another order for each replicate")
    replies("--long-passages", choices=("chunk", "truncate", "refuse"), default="chunk", help="what does not fit")

    edits = parser.add_argument_group("after edits of the bank").add_argument
    edits("--only-changed", action="store_true", help="PASSAGES have grades: grade only the items that edits touched")
    edits("--old-bank", metavar="BANK", help="the bank before edits that were not made in the review page")

    spending = parser.add_argument_group("spending").add_argument
    spending("--cache", metavar="FILE", help="the reply cache (default: OUT.cache.sqlite)")
    spending("--cache-only", action="store_true", help="make no call: what is not in the cache fails")
    spending("--dry-run", action="store_true", help="say what would be called and what it would cost; write nothing")
    spending("--prices", metavar="FILE", help="price table, for --dry-run and --max-cost")
    spending("--max-calls", type=int, metavar="N", help="make so many calls at most; the other grades are failed")
    spending("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")
    spending("--queries", type=ids, metavar="ID,ID,…", help="grade only these queries; the others are left out")
    spending("--limit", type=int, metavar="N", help="grade only the first N passages of each query")

    add = parser.add_argument_group("where calls are made").add_argument
    add("--runner", choices=("local", "ray"), default="local", help="this process (default), or actors of Ray")
    add("--ray-address", metavar="ADDRESS", help="the Ray cluster, HOST:PORT or auto (default: a Ray on this machine)")
    add("--actors", type=int, metavar="N", help="actors, each with a model (default: by GPUs, else 4 processors each)")
    add("--gpus-per-actor", type=float, metavar="N", help="GPUs of an actor, or the share of one (default: by model)")
    add("--batch-size", type=int, metavar="N", help="passages that an actor gets at once (default: by model)")


def run(options: argparse.Namespace) -> int:
    """Runs the command; 1 when some grades are missing."""
    from rubric_measures.api import grade

    if options.output is None and not options.dry_run:
        raise InputError("name the output with -o (or ask for --dry-run)")
    graded = grade(**vars(options), progress=is_watched())
    if graded.plan is not None:
        print(graded.plan)
        return 0
    return 0 if graded.report.is_complete else 1
