"""The command `generate`: queries -> test bank; queries and documents -> nuggets; passages -> synthetic queries."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rubric_measures.base.errors import GradingError, InputError
from rubric_measures.cli.generate_support import cache_path, make_caller, print_plan, say_failures
from rubric_measures.cli.grade_notes import note_limit
from rubric_measures.cli.grade_support import Interrupts
from rubric_measures.cli.inputs import keep_cache, keep_inputs

if TYPE_CHECKING:
    from rubric_measures.base.entities import TestBank
    from rubric_measures.prompts import Prompt
    from rubric_measures.records.files import QueryPassages
    from rubric_measures.test_bank.calls import Caller, Failure
    from rubric_measures.test_bank.generation import BankQuery

__all__ = ["HELP", "add_arguments", "run"]

HELP = "queries to a test bank; passages to synthetic queries"
_LOGGER = logging.getLogger("rubric_measures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `generate`."""
    add = parser.add_argument
    add("queries", nargs="?", metavar="QUERIES", help="JSON, JSON lines, TSV, or an ir_datasets id")
    add("--target", choices=["questions", "nuggets", "queries"], default="questions", help="what to make")
    add("-o", "--output", default="-", metavar="FILE", help="the file to write (default: standard output)")
    add("--limit", type=int, metavar="N", help="only the first N queries (or long passages)")
    add = parser.add_argument_group("questions and nuggets").add_argument
    add("--style", choices=["auto", "dl", "car"], default="auto", help="the published prompt (auto: car for facets)")
    add("--test-collection", default="", metavar="NAME", help="the collection's name, kept in the bank")
    _add_document_arguments(parser)
    _add_passage_arguments(parser)
    _add_model_arguments(parser)
    parser.epilog = """examples:
  rubric_measures generate queries.tsv --model openai:gpt-4o -o bank.jsonl.gz
  rubric_measures generate queries.tsv --target nuggets --from-documents graded.jsonl.gz --by direct \\
      --model openai:gpt-4o -o nuggets.jsonl.gz
  rubric_measures generate --target queries --passages passages.tsv --examples real.txt --model openai:gpt-4o \\
      --quota openai:gpt-4o=100 -o queries.jsonl

Exit code 1: some calls led to nothing (they are listed on standard error); the rest is in the file. Run the same
command again: only what is missing is asked."""


def _add_document_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("nuggets from documents").add_argument
    add("--from-documents", metavar="PASSAGES", help="passage records (of pool or grade), or nuggetizer's requests")
    add("--by", choices=["judgments", "direct", "all"], default="judgments", help="what makes a passage related")
    add("--qrels", metavar="FILE", help="judgments in place of those in the records")
    add("--level", type=int, default=1, help="the lowest label that is related (default 1)")
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
    add("--over-generate", action="store_true", help="for people to edit: all nuggets, no importance")


def _add_passage_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("synthetic queries").add_argument
    add("--passages", metavar="FILE", help="the collection: records, JSON lines, TSV, or an ir_datasets id")
    add("--examples", metavar="FILE", help="real questions: one a line, or a query file")
    add("--passage-tokens", type=int, default=2000, help="consecutive passages are joined up to this (default 2000)")
    add("--max-questions", type=int, default=10, help="questions a passage and model (default 10)")
    add("--sample-passages", type=int, metavar="N", help="ask about N long passages, drawn by --seed")
    add("--quota", action="append", default=[], metavar="MODEL=N", help="keep N queries of a model (repeatable)")
    add("--seed", type=int, default=0, help="of the samples (default 0)")


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("model").add_argument
    add("--model", action="append", required=True, metavar="SPEC",
        help="hf:NAME, openai:NAME, scripted:FILE; several for synthetic queries")  # fmt: skip
    add("--base-url", metavar="URL", action="append", help="openai: the endpoint; may be repeated for replicas")
    add("--model-option", action="append", default=[], metavar="NAME=VALUE", help="a setting of the model's backend")
    add("--temperature", type=float, default=0.0, help="0 (default) takes the most probable reply")
    add("--max-tokens", type=int, default=2048, help="the longest reply (default 2048)")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="a further generation option")
    add("--cache", metavar="FILE", help="where replies are kept (default: OUTPUT.cache.sqlite, none for -)")
    add("--cache-only", action="store_true", help="make no call")
    add("--prices", metavar="FILE", help="price table, for --dry-run and --max-cost (see grade)")
    add("--max-calls", type=int, metavar="N", help="make so many calls at most")
    add("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")
    add("--retries", type=int, default=1, help="further draws for a reply that cannot be read (default 1)")
    add("--dry-run", action="store_true", help="print the calls and tokens that it would take, and make none")


def run(options: argparse.Namespace) -> int:
    """Runs the command; see `HELP`."""
    _check(options)
    scripted = [spec.removeprefix("scripted:") for spec in options.model if spec.startswith("scripted:")]
    read = (options.queries, options.from_documents, options.passages, options.examples, options.qrels)
    keep_inputs(options.output, *read, *scripted, options.prices)
    keep_cache(cache_path(options), options.output, *read, *scripted, options.prices)
    with contextlib.ExitStack() as stack:
        stop = None if options.dry_run else stack.enter_context(Interrupts()).event
        callers = [make_caller(spec, options, stack, stop) for spec in dict.fromkeys(options.model)]
        if options.target == "queries":
            failed = _make_queries(options, callers)
        elif options.from_documents:
            failed = _make_nuggets(options, callers[0])
        else:
            failed = _make_bank(options, callers[0])
        if options.dry_run:
            print_plan(callers, options)
            return 0
        for caller in callers:
            _LOGGER.info("%s: %s", caller.model, caller.stats)
            note_limit(caller.stats)
        return 1 if failed else 0


def _check(options: argparse.Namespace) -> None:
    """Refuses what is missing and what would be ignored in silence."""
    synthetic = options.target == "queries"
    if synthetic and not (options.passages and options.examples):
        raise InputError("--target queries needs --passages and --examples")
    if not synthetic and not options.queries:
        raise InputError("name the queries: a file or an ir_datasets id")
    if not synthetic and len(options.model) > 1:
        raise InputError("several models are for --target queries; name one")
    if options.from_documents and options.target != "nuggets":
        raise InputError("--from-documents makes nuggets: add --target nuggets")
    ignored = [
        ("QUERIES", synthetic and options.queries),
        ("--from-documents", synthetic and options.from_documents),
        ("--passages", not synthetic and options.passages),
        ("--examples", not synthetic and options.examples),
        ("--quota", not synthetic and options.quota),
        ("--qrels", options.qrels and not (options.from_documents and options.by == "judgments")),
        ("--over-generate", options.over_generate and not options.from_documents),
    ]
    if names := [name for name, given in ignored if given]:
        raise InputError(f"{', '.join(names)} would have no effect here; leave it out")
    if options.cache_only and not options.cache and options.output == "-":
        raise InputError("--cache-only needs --cache FILE, or an output file beside which the cache lies")
    for name in ("limit", "max_documents", "sample_passages", "max_calls"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1")
    if options.retries < 0:
        raise InputError("--retries must not be negative")


def _topics(options: argparse.Namespace) -> list[BankQuery]:
    from rubric_measures.test_bank.files import read_topics

    topics = read_topics(options.queries)
    if options.limit is None:
        return topics
    kept = list(dict.fromkeys(topic.query_id for topic in topics))[: options.limit]
    return [topic for topic in topics if topic.query_id in set(kept)]


def _make_bank(options: argparse.Namespace, caller: Caller) -> bool:
    from rubric_measures.base.entities import ItemKind
    from rubric_measures.test_bank.generation import generate_bank, generation_prompt

    kind: ItemKind = "nugget" if options.target == "nuggets" else "question"
    topics = _topics(options)
    made = generate_bank(topics, caller, kind=kind, style=options.style)
    prompts = [generation_prompt(kind, topic, options.style) for topic in topics]
    return _finish_bank(options, caller, made.bank, made.failures, prompts=prompts)


def _make_nuggets(options: argparse.Namespace, caller: Caller) -> bool:
    from rubric_measures.base.entities import Query
    from rubric_measures.formats.trec import read_qrels
    from rubric_measures.formats.trec_ids import spaced_pairs
    from rubric_measures.prompts import load_prompt
    from rubric_measures.test_bank.calls import Failure
    from rubric_measures.test_bank.documents import related_segments
    from rubric_measures.test_bank.nuggetization import nuggetize, published_calls

    texts = {topic.query_id: topic.text for topic in _topics(options)}
    groups = [group for group in _documents(options, texts) if group.query_id in texts]
    qrels = None
    if options.qrels:
        spaced = spaced_pairs({(group.query_id, one.doc_id) for group in groups for one in group.passages})
        pairs = ((row[:2], row.relevance) for row in read_qrels(options.qrels))
        qrels = {spaced.get(pair, pair): relevance for pair, relevance in pairs}
    segments = related_segments(
        groups,
        by=options.by,
        level=options.level,
        qrels=qrels,
        llm=options.llm,
        prompt_class=options.prompt_class,
        grade_set=options.grade_set,
    )
    bare = [query_id for query_id in texts if not segments.get(query_id)]
    if len(bare) == len(texts):
        raise InputError(f"{options.from_documents}: no query has a passage of level {options.level} or more")
    made = nuggetize(
        [Query(query_id, text) for query_id, text in texts.items() if query_id not in set(bare)],
        {query_id: found[: options.max_documents] for query_id, found in segments.items()},
        caller,
        max_nuggets=options.max_nuggets,
        keep=options.keep,
        over_generate=options.over_generate,
    )
    if options.dry_run and not options.over_generate:
        most = published_calls(0, options.max_nuggets)[1] * (len(texts) - len(bare))
        _LOGGER.info("importance takes up to %d calls more, by the nuggets that creation leads to", most)
    failures = [*made.failures, *(Failure(query_id, "documents", "none is related to it") for query_id in bare)]
    prompts = [load_prompt("nuggets.create")] + ([] if options.over_generate else [load_prompt("nuggets.importance")])
    return _finish_bank(options, caller, made.bank, failures, prompts=prompts, sources=made.sources)


def _documents(options: argparse.Namespace, texts: Mapping[str, str]) -> Sequence[QueryPassages]:
    """The passages that --from-documents names: graded records, or the candidates of nuggetizer's requests."""
    from rubric_measures.base.files import peek_head
    from rubric_measures.formats.nuggetizer import read_requests
    from rubric_measures.formats.nuggetizer_records import passages_of_requests
    from rubric_measures.records.files import load_graded

    path = options.from_documents
    if path == "-" or peek_head(path).lstrip()[:1] != b"{":
        return load_graded(path)
    if options.by == "direct" or (options.by == "judgments" and not options.qrels):
        raise InputError(f"{path}: requests hold no labels of their documents; take --by all, or --qrels FILE")
    return passages_of_requests(read_requests(path), {text: query_id for query_id, text in texts.items()})


def _finish_bank(
    options: argparse.Namespace,
    caller: Caller,
    bank: TestBank,
    failures: Sequence[Failure],
    *,
    prompts: Sequence[Prompt],
    sources: Mapping[str, Sequence[str]] | None = None,
) -> bool:
    """Writes what there is and says what there is not; whether something is missing."""
    from rubric_measures import __version__
    from rubric_measures.formats.bank import write_bank
    from rubric_measures.test_bank.files import made_entries

    if options.dry_run:
        return False
    say_failures(failures)
    if not len(bank):
        raise GradingError(f"{caller.model}: no call led to an item; nothing was written")
    info = {
        "made_by": f"rubric_measures {__version__}",
        "model": caller.model,
        "options": dict(caller.request((), 0).options),
        "prompts": {prompt.prompt_class: prompt.hash for prompt in prompts},
    }
    entries = made_entries(bank, info=info, test_collection=options.test_collection, sources=sources)
    write_bank(options.output, entries)
    made = [query_id for query_id, items in bank.items.items() if items]
    lacking = {failure.query_id for failure in failures} - set(made)
    if lacking:
        of_all = (len(made), len(made) + len(lacking), ",".join(made))
        _LOGGER.info("the bank has %d of %d queries; `grade` takes passages of these with --queries %s", *of_all)
    return bool(failures)


def _make_queries(options: argparse.Namespace, callers: Sequence[Caller]) -> bool:
    from rubric_measures.test_bank.files import read_passages, write_synthetic
    from rubric_measures.test_bank.synthetic_queries import (
        generate_queries,
        long_passages,
        sample_by_model,
        sample_passages,
    )

    count_tokens = callers[0].runner.backend.count_tokens
    stream = long_passages(read_passages(options.passages), count_tokens, max_tokens=options.passage_tokens)
    if options.sample_passages:
        stream = iter(sample_passages(stream, options.sample_passages, seed=options.seed))
    passages = list(itertools.islice(stream, options.limit))
    quotas = _quotas(options, callers)
    made = generate_queries(
        passages, callers, examples=_examples(options.examples), max_questions=options.max_questions
    )
    if options.dry_run:
        return False
    say_failures(made.failures)
    queries, missing = made.queries, dict[str, int]()
    if quotas:
        # A model of which every call failed has no queries to sample; those of the others are kept.
        wrote = {query.model for query in queries}
        queries, missing = sample_by_model(
            queries, {model: quota for model, quota in quotas.items() if model in wrote}, seed=options.seed
        )
        missing |= {model: quota for model, quota in quotas.items() if quota and model not in wrote}
    for model, count in missing.items():
        _LOGGER.warning("%s: %d queries fewer than its quota; give it more passages", model, count)
    if not queries:
        raise GradingError("no call led to a query; nothing was written")
    write_synthetic(options.output, queries)
    return bool(made.failures or missing)


def _quotas(options: argparse.Namespace, callers: Sequence[Caller]) -> dict[str, int]:
    """Model (its canonical name) -> quota; a quota names a model as --model does."""
    names = {spec: caller.model for spec, caller in zip(dict.fromkeys(options.model), callers, strict=True)}
    quotas: dict[str, int] = {}
    for text in options.quota:
        spec, _, count = text.rpartition("=")
        if spec not in names or not count.isdecimal():
            raise InputError(f"--quota {text}: expected MODEL=N with one of {', '.join(names)}")
        quotas[names[spec]] = int(count)
    return quotas


def _examples(path: str) -> list[str]:
    """Real questions: the texts of a query file, or the lines of a file of plain text."""
    from rubric_measures.base.files import read_text
    from rubric_measures.formats.queries import read_queries

    text = read_text(path)
    if text.lstrip()[:1] in ("{", "[") or "\t" in text:
        return list(read_queries(path).values())
    return [line.strip() for line in text.split("\n") if line.strip()]
