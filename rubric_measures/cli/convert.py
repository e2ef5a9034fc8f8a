"""`convert`: any format we read into any we write; merges files, adds runs and judgments to records."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    from rubric_measures.cli.inputs import add_grade_options, add_label_option
    from rubric_measures.formats import FORMATS

    parser.add_argument("inputs", metavar="FILE", nargs="+", help="files of one kind; several are merged")
    parser.add_argument("--output", "-o", metavar="FILE", required=True, help="write there (gzipped when named .gz)")
    parser.add_argument("--to", metavar="FORMAT", help="the format to write (default: that of the input)")
    parser.add_argument("--from", dest="source", metavar="FORMAT", help="the format of the input (default: by content)")
    parser.add_argument("--add-run", metavar="RUN", action="append", default=[], help="add its rankings to records")
    parser.add_argument("--add-qrels", metavar="QRELS", action="append", default=[], help="add judgments to records")
    parser.add_argument(
        "--collection", "-c", metavar="SOURCE", action="append",
        help="the texts, for records made of qrels or runs; repeat it for several files of documents",
    )  # fmt: skip
    parser.add_argument("--depth", "-k", type=int, help="documents of each ranking (default: all; 20 for --to records)")
    parser.add_argument(
        "--run", metavar="NAME", help="write this run, of several in the records; the name of the run in requests"
    )
    parser.add_argument(
        "--answers", metavar="FILE", nargs="+", default=[], help="the answers that support judgments are about"
    )
    parser.add_argument("--grader", default="qrels", help="who made the grades of item qrels (default: qrels)")
    parser.add_argument("--label", choices=["max", "count"], default="max", help="how item grades become a label")
    parser.add_argument(
        "--rel", type=int, help="minimum grade that counts (default: all grades; for count, the scale's covering level)"
    )
    add_grade_options(parser, scores=False)
    add_label_option(parser)
    formats = dict(FORMATS.items())
    width = max(map(len, formats))
    listing = "\n".join(
        f"  {name:<{width}}  {'r' if one.read else '-'}{'w' if one.write else '-'}  {one.description}"
        for name, one in formats.items()
    )
    parser.epilog = f"""formats (r: read, w: written):
{listing}

examples:
  rubric_measures convert flan-t5.jsonl.gz llama.jsonl.gz --add-run new.run -o graded.jsonl.gz
  rubric_measures convert graded.jsonl.gz --to item-qrels --bank questions.jsonl -o items.qrels
  rubric_measures convert tqa.json --to bank -o bank.jsonl.gz"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures import api
    from rubric_measures.cli.inputs import passed

    api.convert(options.inputs, options.output, **passed(options, api.convert))
    return 0
