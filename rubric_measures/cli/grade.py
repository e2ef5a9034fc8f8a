"""`grade`: passages and a test bank through a grader, cached and resumable, into graded passage records."""

from __future__ import annotations

import argparse
import functools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError
from rubric_measures.cli.grade_notes import say_report
from rubric_measures.cli.grade_support import Interrupts, fewer_collections, request_bar, say_amended
from rubric_measures.cli.inputs import keep_apart, keep_cache, keep_inputs
from rubric_measures.cli.model_options import backend_settings, model_price, named_values, print_estimates
from rubric_measures.cli.runner_options import add_runner_options, choose_runner

if TYPE_CHECKING:
    from rubric_measures.base.entities import TestBank
    from rubric_measures.grading import BankChange, Grader, GradingReport, GradingSettings, Price
    from rubric_measures.records.files import QueryPassages
    from rubric_measures.records.streaming import GradedFile
    from rubric_measures.runners import LocalRunner

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
_LOG = logging.getLogger("rubric_measures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("passages", metavar="PASSAGES", help="passages by query, graded or not (JSON lines, .gz or -)")
    add("--bank", metavar="BANK", help="the test bank; not needed for direct labels and aspects of answers")
    add("--query-texts", metavar="FILE", help="texts of the queries, where the bank has none (JSON, JSON lines or TSV)")
    add("--model", required=True, help="lexical, scripted:FILE, hf:NAME or openai:NAME")
    add("--base-url", metavar="URL", action="append", help="openai: the endpoint; may be repeated for replicas")
    add("--model-option", action="append", default=[], metavar="NAME=VALUE", help="a setting of the model's backend")
    add("--prompt", action="append", default=[], metavar="NAME", help="prompt name or .toml file; may be repeated")
    add("--prompt-field", action="append", default=[], metavar="NAME=TEXT", help="a setting of the prompt (domain=…)")
    add("--documents", metavar="SOURCE", help="prompts about answers: what to show; graded records, or a collection")
    add("--level-shown", type=int, default=2, metavar="N", help="the lowest label of documents shown (default 2)")
    add("--label-prompt", metavar="NAME", help="the prompt whose direct labels count, where --documents has several")
    add("--label-set", metavar="HASH", help="the settings whose direct labels count, where that prompt has several")
    add("-o", "--output", metavar="OUT", help="where the graded records go (- for stdout)")
    add("--manifest", metavar="FILE", help="where to say what made the grades (default: OUT.manifest.json, none for -)")

    replies = parser.add_argument_group("replies").add_argument
    replies("--temperature", type=float, default=0.0, help="0 (default) takes the most probable reply")
    replies("--max-tokens", type=int, help="the longest reply (default: by the kind of prompt)")
    replies("--option", action="append", default=[], metavar="NAME=VALUE", help="a further generation option")
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
    spending("--queries", metavar="ID,ID,…", help="grade only these queries; the others are left out")
    spending("--limit", type=int, metavar="N", help="grade only the first N passages of each query")

    add_runner_options(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the command; 1 when some grades are missing."""
    from rubric_measures.backends.replies.cache import ReplyCache
    from rubric_measures.records.streaming import GradedFile

    if args.output is None and not args.dry_run:
        raise InputError("name the output with -o (or ask for --dry-run)")
    _keep_inputs(args)
    bank = _bank(args)
    change = _change(args, bank)
    backend, make_runner = choose_runner(args, backend_settings(args.model_option, args.base_url), _cache_path(args))
    price = model_price(args.prices, backend, args.max_cost)
    grader_of = functools.partial(_grader, args, make_runner, price=price, change=change)
    with GradedFile(args.passages) as source, fewer_collections():
        if args.dry_run:
            return _dry_run(args, source, bank, price, grader_of)
        _note_unwritten(args)
        # What is wrong with prompts or passages is found before a cache is made and a model is asked.
        pairs = grader_of(None).check(_groups(args, source, bank, _LOG.warning), bank)
        with (
            ReplyCache(_cache_path(args)) as cache,
            request_bar(None if args.only_changed else pairs) as progress,
            Interrupts() as interrupts,
        ):
            grader = grader_of(cache, progress=progress, stop=interrupts.event)
            return _grade(args, grader, _groups(args, source, bank), bank)


def _keep_inputs(args: argparse.Namespace) -> None:
    """Refuses an output that would replace what is read, another output, or the cache."""
    kind, _, table = args.model.partition(":")
    scripted = table if kind == "scripted" else None
    prompts = (name for name in args.prompt if name.endswith(".toml"))
    read = (args.bank, args.old_bank, args.query_texts, args.documents, args.prices, scripted, *prompts)
    # Grades may be added to the file that is graded, but not to a part of it: the rest would be lost.
    part = args.passages if args.queries or args.limit is not None else None
    keep_inputs(args.output, part, *read)
    keep_inputs(_manifest_path(args), args.passages, *read)
    keep_apart(output=args.output, manifest=_manifest_path(args))
    keep_cache(_cache_path(args), args.output, _manifest_path(args), args.passages, *read)
    # It is written when all is done, and then it would be too late.
    if args.manifest and (Path(args.manifest).is_dir() or not Path(args.manifest).parent.is_dir()):
        raise InputError(f"--manifest {args.manifest}: cannot be written; name a file in a folder that exists")


def _grade(args: argparse.Namespace, grader: Grader, groups: Iterator[QueryPassages], bank: TestBank) -> int:
    from rubric_measures.grading import GradingReport, make_manifest, write_manifest
    from rubric_measures.records.files import write_graded

    report = GradingReport()
    try:
        write_graded(args.output, grader.grade_records(groups, bank, report))
    except KeyboardInterrupt:
        _LOG.warning("interrupted; %d calls of this run are in the cache: run again to continue", _kept(report))
        return 130
    except RubricMeasuresError:
        if _kept(report):
            _LOG.warning("%d calls of this run are in the cache; what is wrong:", _kept(report))
        raise
    if path := _manifest_path(args):
        files = {"passages": args.passages, "bank": args.bank or "", "output": args.output}
        write_manifest(path, make_manifest(grader, bank, report, files))
    if grader.change is not None:
        say_amended(report.amended, args.passages)
    deterministic = args.temperature == 0 and getattr(grader.runner.backend, "deterministic", False)
    return say_report(report, deterministic=deterministic, is_kept=_cache_path(args) != ":memory:")


def _kept(report: GradingReport) -> int:
    return report.run.calls - report.run.failed


def _bank(args: argparse.Namespace) -> TestBank:
    from rubric_measures.base.entities import TestBank
    from rubric_measures.formats.bank import load_bank
    from rubric_measures.formats.queries import read_queries
    from rubric_measures.prompts import load_prompt
    from rubric_measures.test_bank.aspects import aspect_bank

    texts = read_queries(args.query_texts) if args.query_texts else {}
    if args.bank:
        bank = load_bank(args.bank)
        return TestBank(bank.items, {**texts, **bank.query_texts}, bank.facet_texts)
    if not texts or not args.prompt:
        raise InputError("name the test bank with --bank, or, for labels and aspects, --query-texts and --prompt")
    aspects = [name for name in args.prompt if load_prompt(name).parser == "aspects"]
    return aspect_bank(texts, aspects[0]) if aspects else TestBank(dict.fromkeys(texts, ()), texts)


def _grader(args: argparse.Namespace, make_runner: Callable[..., LocalRunner], cache: Any, **limits: Any) -> Grader:
    from rubric_measures.grading import Grader

    price: Price | None = limits.pop("price")
    change: BankChange | None = limits.pop("change")
    runner = make_runner(
        cache,
        cache_only=args.cache_only,
        max_calls=args.max_calls,
        max_cost=args.max_cost,
        price=price,
        **limits,
    )
    return Grader(runner, tuple(args.prompt), _settings(args), change)


def _change(args: argparse.Namespace, bank: TestBank) -> BankChange | None:
    """What edits did to the bank, where only those are followed."""
    from rubric_measures.formats.bank import load_bank, read_bank
    from rubric_measures.grading import BankChange

    if not args.only_changed:
        if args.old_bank:
            raise InputError("--old-bank says what changed since the grades were made; add --only-changed")
        return None
    if not args.bank:
        raise InputError("--only-changed follows the edits of a test bank; name it with --bank")
    if args.bank == "-":
        raise InputError("--only-changed reads the bank twice; name a file")
    return BankChange.of(read_bank(args.bank), bank, load_bank(args.old_bank) if args.old_bank else None)


def _settings(args: argparse.Namespace) -> GradingSettings:
    from rubric_measures.grading import GradingSettings

    if args.replicates > 1 and args.temperature == 0 and args.shuffle_seed is None:
        raise InputError("replicates at temperature 0 are all the same reply; give --temperature (or --shuffle-seed)")
    return GradingSettings(
        temperature=args.temperature,
        max_tokens=args.max_tokens,
        options=named_values("--option", args.option),
        replicates=args.replicates,
        combine=args.combine,
        retries=args.retries,
        unparsed=args.unparsed,
        compat=args.compat,
        long_passages=args.long_passages,
        nuggets_per_call=args.nuggets_per_call,
        shuffle_seed=args.shuffle_seed,
        fields={name: str(value) for name, value in named_values("--prompt-field", args.prompt_field).items()},
        documents=_documents(args.documents, args.level_shown, args.label_prompt, args.label_set),
    )


@functools.lru_cache(maxsize=1)
def _documents(source: str | None, level: int, prompt: str | None, label_set: str | None) -> dict[str, str]:
    """Query -> the documents that are shown beside an answer; read once a command."""
    if source is None:
        return {}
    from rubric_measures.grading.pairwise import documents_text, load_references

    found = load_references(source, level, prompt_class=prompt, grade_set=label_set)
    return {query_id: documents_text(shown) for query_id, shown in found.items() if shown}


def _cache_path(args: argparse.Namespace) -> str:
    if args.cache:
        return str(args.cache)
    return ":memory:" if args.output in (None, "-") else f"{args.output}.cache.sqlite"


def _manifest_path(args: argparse.Namespace) -> str | None:
    if args.manifest:
        return str(args.manifest)
    return None if args.output in (None, "-") else f"{args.output}.manifest.json"


def _note_unwritten(args: argparse.Namespace) -> None:
    """Says which of the files beside the records have no place to lie, while there is time to name one."""
    lacking = {"what made the grades (--manifest)": _manifest_path(args) is None}
    lacking["the replies (--cache)"] = _cache_path(args) == ":memory:"
    if names := [name for name, is_lacking in lacking.items() if is_lacking]:
        _LOG.info("the records go to standard output; nothing keeps %s", ", nor ".join(names))


def _groups(
    args: argparse.Namespace, source: GradedFile, bank: TestBank, log: Callable[..., None] = _LOG.debug
) -> Iterator[QueryPassages]:
    """The passages to grade: of the wanted queries, the first ones of each; a query that does not come is an error."""
    from rubric_measures.records.files import QueryPassages

    names = None if args.queries is None else [name.strip() for name in args.queries.split(",") if name.strip()]
    if names == [] or (args.limit is not None and args.limit < 1):
        raise InputError("--queries must name a query, and --limit be at least 1")
    found: set[str] = set()
    queries = left_out = 0
    for group in source:
        found.add(group.query_id)
        if names is None or group.query_id in names:
            # Says where a query stands that the bank does not have.
            bank.for_query(group.query_id, f"{source.name}:{group.line}")
            passages = list(group.passages)
            left_out += len(passages[args.limit :]) if args.limit is not None else 0
            yield QueryPassages(group.query_id, passages[: args.limit], group.line)
        else:
            queries += 1
    for name in names or ():
        if name not in found:
            raise UnknownNameError("query", name, found, hint="(there are no passages of it)")
    if queries or left_out:
        log("left out, as --queries and --limit say: %d queries, %d passages of the others", queries, left_out)


def _dry_run(
    args: argparse.Namespace,
    source: GradedFile,
    bank: TestBank,
    price: Price | None,
    grader_of: Callable[..., Grader],
) -> int:
    from rubric_measures.backends.replies.cache import ReplyCache
    from rubric_measures.grading import estimate

    path = _cache_path(args)
    cache = ReplyCache(path, read_only=True) if Path(path).is_file() else None
    try:
        found = estimate(grader_of(cache), lambda: _groups(args, source, bank), bank, price)
    finally:
        if cache is not None:
            cache.close()
    print_estimates(found)
    return 0
