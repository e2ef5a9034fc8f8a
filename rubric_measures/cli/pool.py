"""`pool`: runs, answers, judgments and texts become the passages to grade."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "runs", metavar="RUN", nargs="*", help="run files, or generated answers (reports, or query_id, run_id and text)"
    )
    parser.add_argument(
        "--collection",
        "-c",
        metavar="SOURCE",
        action="append",
        help="texts: a folder, a file of documents or records, an ir_datasets id; without RUNs its runs are pooled; "
        "repeat it for several files of documents",
    )
    parser.add_argument("--depth", "-k", type=int, default=20, help="documents of each ranking (default 20)")
    parser.add_argument(
        "--query-file", dest="queries", metavar="FILE", help="pool these queries (default: the collection's, else all)"
    )
    parser.add_argument("--judgments", metavar="QRELS", help="what assessors said (default: the collection's)")
    parser.add_argument("--judged", action="store_true", help="add all judged documents to the pool")
    parser.add_argument("--max-words", type=int, default=400, help="longest passage of an answer (default 400)")
    parser.add_argument("--whole", action="store_true", help="leave answers whole; grade each as one passage")
    parser.add_argument("--track", help="say which answers are longer than this track allows (rag24, rag25, rag26, …)")
    parser.add_argument("--topics", metavar="FILE", help="topics of a track: the queries, and their length limits")
    parser.add_argument(
        "--missing",
        choices=["error", "skip"],
        default="error",
        help="documents that the collection does not have stop the command (default), or are left out and counted",
    )
    parser.add_argument("--output", "-o", metavar="FILE", required=True, help="write the records there (.jsonl.gz)")
    parser.epilog = """examples:
  rubric_measures pool --collection resources/example -o passages.jsonl.gz
  rubric_measures pool bm25.run dense.run -c msmarco-passage/trec-dl-2020/judged -k 10 -o passages.jsonl.gz
  rubric_measures pool answers/*.jsonl --whole --track rag25 --topics topics.jsonl -o passages.jsonl.gz"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures.api import pool

    settings = vars(options)
    if settings.pop("whole"):
        settings["max_words"] = None
    pool(**settings)
    return 0
