"""`grade`: passages and a test bank through a grader, cached and resumable, into graded passage records."""

from __future__ import annotations

import argparse

from rubric_measures.base.errors import InputError
from rubric_measures.cli.inputs import (
    NamedValue,
    add_endpoint_options,
    add_limit_options,
    add_set_options,
    ids,
    is_watched,
)

_EXAMPLE = """examples:
  rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model lexical -o graded.jsonl.gz
  rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model openai:gpt-4o --dry-run --prices prices.json
  rubric_measures grade review/graded.jsonl.gz --bank review/bank.jsonl --model lexical --only-changed -o new.jsonl.gz
  rubric_measures grade graded.jsonl.gz --bank bank.jsonl.gz --model openai:gpt-4o --where 'grade between 2 and 3' \\
      -o both.jsonl.gz
  rubric_measures grade graded.jsonl.gz --bank bank.jsonl.gz --model hf:google/flan-t5-large \\
      --prompt QuestionSelfRatedUnanswerablePromptWithChoices --prompt Thomas -o graded2.jsonl.gz
  rubric_measures grade --support answers/*.jsonl --collection docs --model openai:gpt-4o -o support.jsonl.gz
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
    add(
        "passages",
        metavar="PASSAGES",
        nargs="+",
        help="passages by query, graded or not (JSON lines, .gz or -); with --support answers, one file or several",
    )
    add("--bank", metavar="BANK", help="the test bank; not needed for direct labels and aspects of answers")
    add("--query-texts", metavar="FILE", help="texts of the queries, where the bank has none (JSON, JSON lines or TSV)")
    add(
        "--model",
        metavar="MODEL",
        required=True,
        help="lexical, scripted:FILE, hf:NAME, openai:NAME or litellm:PROVIDER/NAME",
    )
    add_endpoint_options(add)
    add("--prompt", action="append", default=[], metavar="NAME", help="prompt name or .toml file; may be repeated")
    add("--prompt-field", action=NamedValue, default={}, metavar="NAME=TEXT", help="a setting of the prompt (domain=…)")
    add("--documents", metavar="SOURCE", help="prompts about answers: what to show; graded records, or a collection")
    add("--level-shown", type=int, default=2, metavar="N", help="the lowest label of documents shown (default 2)")
    add("--label-prompt", metavar="NAME", help="the prompt whose direct labels count, where --documents has several")
    add("--label-set", metavar="HASH", help="the settings whose direct labels count, where that prompt has several")
    add("-o", "--output", metavar="OUT", help="where the graded records go (- for stdout)")
    add("--manifest", metavar="FILE", help="where to say what made the grades (default: OUT.manifest.json, none for -)")

    support = parser.add_argument_group("what citations support").add_argument
    support("--support", action="store_true", help="judge each sentence of answers by the documents that it cites")
    support(
        "--collection", "-c", metavar="SOURCE", action="append",
        help="the texts of cited documents (those that reports bring come first); repeat it for several files",
    )  # fmt: skip
    support(
        "--citations", type=_citations, default="first", metavar="first|all|N", help="of each sentence (default first)"
    )

    replies = parser.add_argument_group("replies").add_argument
    replies("--temperature", type=float, default=0.0, help="0 (default) takes the most probable reply")
    replies("--max-tokens", type=int, help="the longest reply (default: by the kind of prompt)")
    replies("--option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a further generation option")
    replies("--replicates", type=int, default=1, metavar="N", help="draws of every reply; needs a temperature")
    replies("--combine", choices=("median", "majority"), default="median", help="how replicates become one grade")
    replies("--retries", type=int, default=1, metavar="N", help="further draws of a reply that cannot be read")
    replies("--explain", action="store_true", help="ask for a reason before each grade, and keep it")
    replies("--unparsed", choices=("exampp", "workbench"), default="", help="grade replies without a rating by rule")
    programs = ("workbench", "nuggetizer")
    replies("--compat", choices=programs, default="", help="read, match and count replies as that program does")
    replies("--nuggets-per-call", type=int, default=10, metavar="N", help="label lists: nuggets shown at once")
    replies("--items-per-call", type=_items, default=1, metavar="N|all", help="other prompts: items shown at once")
    replies("--shuffle-seed", type=int, metavar="SEED", help="items shown at once: another order for each replicate")
    replies("--long-passages", choices=("chunk", "truncate", "refuse"), default="chunk", help="what does not fit")

    some = parser.add_argument_group("some cells only: PASSAGES have grades (choose them where several graded)")
    some.add_argument(
        "--where",
        metavar="CONDITION",
        help="ask only about the items of passages whose grade fulfils it: 'grade between 2 and 3', 'grade < 3' (also "
        "<=, >, >=, =), or 'grade failed'",
    )
    add_set_options(some)

    edits = parser.add_argument_group("after edits of the bank").add_argument
    edits("--only-changed", action="store_true", help="PASSAGES have grades: grade only the items that edits touched")
    edits("--old-bank", metavar="BANK", help="the bank before edits that were not made in the review page")

    spending = parser.add_argument_group("spending").add_argument
    add_limit_options(spending, "OUT.cache.sqlite", "--dry-run and the limits on the cost")
    spending("--dry-run", action="store_true", help="say what would be called and what it would cost; write nothing")
    spending("--max-cost-per-query", type=float, metavar="COST", help="the same for the calls about each query")
    spending("--queries", type=ids, metavar="ID,ID,…", help="grade only these queries; the others are left out")
    spending("--passages-per-query", dest="limit", type=int, metavar="N", help="grade only the first N of each query")

    add = parser.add_argument_group("where calls are made").add_argument
    add("--runner", choices=("local", "ray"), default="local", help="this process (default), or actors of Ray")
    add("--ray-address", metavar="ADDRESS", help="the Ray cluster, HOST:PORT or auto (default: a Ray on this machine)")
    add("--actors", type=int, metavar="N", help="actors, each with a model (default: by GPUs, else 4 processors each)")
    add("--gpus-per-actor", type=float, metavar="N", help="GPUs of an actor, or the share of one (default: by model)")
    add("--batch-size", type=int, metavar="N", help="passages that an actor gets at once (default: by model)")


def _items(text: str) -> str | int:
    """So many items, or all."""
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of items; expected one from 1 on, or all")
    return text if text == "all" else int(text)


def _citations(text: str) -> str | int:
    """The first, all, or so many citations."""
    return int(text) if text.isdecimal() else text


def run(options: argparse.Namespace) -> int:
    """Runs the command; 1 when some grades are missing."""
    from rubric_measures.api import grade

    if options.output is None and not options.dry_run:
        raise InputError("name the output with -o (or ask for --dry-run)")
    given = vars(options)
    if not options.support:
        if len(options.passages) > 1:
            raise InputError("name one file of passages; several are answers, with --support")
        [given["passages"]] = options.passages
    graded = grade(**given, progress=is_watched())
    if graded.plan is not None:
        print(graded.plan)
        return 0
    return 0 if graded.report.is_complete else 1
