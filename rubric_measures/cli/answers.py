"""`answers`: a table of answers to grades, scores and a report that says which facts are missing."""

from __future__ import annotations

import argparse
from pathlib import Path

from rubric_measures.cli.inputs import (
    add_endpoint_options,
    add_gate_options,
    add_limit_options,
    add_review_option,
    gated,
    gates_of,
    is_watched,
    review_over,
)

_EXAMPLE = """examples:
  rubric_measures answers results.csv --model openai:gpt-4o -o report
  rubric_measures answers v1.csv v2.csv --bank report/bank.csv --model openai:gpt-4o -o report
  rubric_measures answers results.jsonl --columns query=ask,answer=said --model lexical -o report

A row is an answer. The column names of ragas, deepeval, promptfoo and Hugging Face datasets are known. Several files
are several runs. The same command again goes on where it stopped, and makes no call twice. The bank that was made
lies in report/bank.csv: edit it, and run again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("answers", metavar="ANSWERS", nargs="+", help="tables: CSV, TSV, JSON, JSON lines, parquet")
    add("--model", metavar="MODEL", required=True, help="who grades: lexical, hf:NAME, openai:NAME, …")
    add("-o", "--output", metavar="FOLDER", required=True, help="where grades, scores, bank and report go")
    add("--columns", metavar="ROLE=COLUMN,…", help="query, answer, reference, contexts, id, run, for other names")
    add("-m", "--measures", metavar="MEASURE", nargs="+", action="extend", help="default: what fits the bank")
    add("--title", default="Answers", help="the heading of the report")
    add_review_option(parser)
    add("--baseline", metavar="RUN", help="in the report: queries on which others lose most against it come first")
    add("--contexts", action="store_true", help="grade the retrieved contexts, too, as runs of their own")
    add("--prompt", action="append", default=[], metavar="NAME", help="prompt name or .toml file")
    add(
        "--explain", action=argparse.BooleanOptionalAction,
        help="ask for a reason with each grade (default: where the model is behind an endpoint)",
    )  # fmt: skip
    bank = parser.add_argument_group("the test bank: what good answers say").add_argument
    bank("--bank", metavar="BANK", help="a bank of any format; queries are found by their ids, or by their texts")
    bank(
        "--bank-from", choices=("references", "sentences", "questions"),
        help="without --bank: nuggets that the model finds in the reference answers (default where there are any), "
        "their sentences as they are (default for lexical), or questions that the model asks",
    )  # fmt: skip
    calls = parser.add_argument_group("calls and their cost").add_argument
    add_endpoint_options(calls)
    add_limit_options(calls, "FOLDER/replies.sqlite")
    add_gate_options(parser)


def run(options: argparse.Namespace) -> int:
    """Runs the command; 1 when some grades are missing."""
    from rubric_measures.api import evaluate_answers
    from rubric_measures.formats.answer_tables import parsed_columns
    from rubric_measures.measures.scoring import parse_measures
    from rubric_measures.measures.support import SupportMeasure

    gates = gates_of(options)
    left_out = ("fail_under", "fail_if_worse_than", "by", "alpha", "review_address")
    given = {name: value for name, value in vars(options).items() if value is not None and name not in left_out}
    given["columns"] = parsed_columns(options.columns) if options.columns else None
    kept = [str(Path(options.output) / name) for name in ("graded.jsonl.gz", "bank.csv")]
    review = review_over(options, [kept[0], "--bank", kept[1]])
    if not any(isinstance(one, SupportMeasure) for one in parse_measures(options.measures or "NuggetV")):
        given |= {"review": review.address, "notes": [review.note]}
    made = evaluate_answers(**given, progress=is_watched())
    print(made.board)
    print(f"\nreport: {made.page}")
    return gated(gates, made.board, 0 if made.is_complete else 1, made.runs)
