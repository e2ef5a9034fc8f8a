"""`cache`: what a reply cache holds and what was paid for it; export, merge, prune."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError, UnknownNameError, counted, escaped
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import Column, Report, Table, columns, render
from rubric_measures.corpora.overwriting import keep_cache

if TYPE_CHECKING:
    from rubric_measures.models.replies import ReplyCache

_EXAMPLE = """examples:
  rubric_measures cache size graded.jsonl.gz.cache.sqlite
  rubric_measures cache export replies.sqlite -o replies.jsonl      (replay with --model scripted:replies.jsonl)
  rubric_measures cache merge all.sqlite worker1.sqlite worker2.sqlite
  rubric_measures cache prune replies.sqlite --model hf:google/flan-t5-large@main"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("action", choices=("size", "list", "export", "merge", "prune"), help="what to do")
    add("cache", metavar="CACHE", help="the cache file")
    add("others", metavar="OTHER", nargs="*", help="merge: the caches whose replies are taken over")
    add("--model", help="list, export, prune: only the replies of this model (as `size` prints it)")
    add("--key", action="append", default=[], help="prune: the reply of this key; may be repeated")
    add("--all", action="store_true", help="prune: all replies")
    add("--truncated", action="store_true", help="prune: only replies that were cut (of --model, else of all)")
    add("-o", "--output", default="-", metavar="OUT", help="export: where the replies go (default: stdout)")


def run(args: argparse.Namespace) -> int:
    """Runs one action."""
    from rubric_measures.models.replies import ReplyCache

    log = logging.getLogger("rubric_measures")
    if args.others and args.action != "merge":
        raise InputError(f"cache {args.action} takes one cache")
    if args.action == "merge":
        if not args.others:
            raise InputError("cache merge needs the target and at least one other cache")
        with ReplyCache(args.cache) as cache:
            added = cache.merge(args.others)
            log.info("%s added, %d in %s", counted(added, "reply"), len(cache), args.cache)
        return 0
    if args.action == "prune":
        _check_prune(args)
    keep_cache(args.cache, args.output)
    with ReplyCache(args.cache, read_only=args.action != "prune") as cache:
        _check_names(cache, args)
        if args.action == "size":
            _print_size(cache)
        elif args.action == "list":
            with atomic_writer("-") as stream:
                for entry in cache.entries(args.model):
                    text = " ".join((entry.reply.text or "").split())[:80]
                    print(entry.key, escaped(entry.model), entry.reply.status, escaped(text), sep="\t", file=stream)
        elif args.action == "export":
            log.info("%s exported", counted(cache.export(args.output, args.model), "reply"))
        else:
            cut = sum(count.truncated for count in cache.counts())
            removed = cache.prune(model=args.model, keys=args.key, everything=args.all, truncated=args.truncated)
            cut -= sum(count.truncated for count in cache.counts())
            of_them = f" ({cut} of them truncated)" if cut else ""
            log.info("%s deleted%s, %d left", counted(removed, "reply"), of_them, len(cache))
    return 0


def _check_prune(args: argparse.Namespace) -> None:
    if not (args.model or args.key or args.all or args.truncated):
        raise InputError("cache prune needs --model, --key, --truncated or --all")
    if args.truncated and (args.key or args.all):
        raise InputError("cache prune --truncated takes --model at most, not --key and --all")
    for key in args.key:
        try:
            bytes.fromhex(key)
        except ValueError:
            raise InputError(f"--key {key!r}: expected hexadecimal digits, as `cache list` has them") from None


def _check_names(cache: ReplyCache, args: argparse.Namespace) -> None:
    """Refuses models and keys that the cache does not hold: nothing was done for them, and nobody would know why."""
    if args.model is not None and args.model not in (known := [count.model for count in cache.counts()]):
        raise UnknownNameError("model", args.model, known, hint=f"(in {cache.path})")
    for key in cache.absent(args.key):
        raise InputError(f"--key {key}: {cache.path} holds no such reply; `cache list` names them")


def _print_size(cache: ReplyCache) -> None:
    names = ["model", "replies", "truncated", "prompt_tokens", "completion_tokens", "characters"]
    sys.stdout.writelines(render(Report([Table(columns(names), cache.counts())]), "tsv"))
    print("file bytes", cache.file_bytes(), sep="\t")
    if rows := cache.ledger():
        print()
        heads = columns(["day", "model", "calls", "failed", "prompt_tokens", "completion_tokens"])
        paid = [[getattr(row, head.header) for head in heads] + [row.cost] for row in rows]
        table = Table([*heads, Column("cost", places=6)], paid)
        sys.stdout.writelines(render(Report([table]), "tsv"))
