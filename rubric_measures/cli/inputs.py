"""What commands share: options that choose grades and measures, and reading what a QRELS or GRADED argument names."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rubric_measures.base.entities import TestBank
from rubric_measures.base.errors import InputError
from rubric_measures.base.files import open_binary, peek_head
from rubric_measures.base.signature import describe
from rubric_measures.corpora.overwriting import keep_apart, keep_cache, keep_inputs
from rubric_measures.grades.compiled import BANK_DOC, Grades
from rubric_measures.grades.failed_grades import OnFailed, check_on_failed
from rubric_measures.grades.rows import build_grades, read_grades

__all__ = [
    "add_grade_options",
    "add_places_option",
    "are_items",
    "assigned_answers",
    "bank_of",
    "chosen_places",
    "grades_of",
    "holds_records",
    "is_assignments",
    "is_records",
    "judgments_of",
    "keep_apart",
    "keep_cache",
    "keep_inputs",
    "keep_inputs_of",
    "progress",
    "refuse_filters",
    "wanted_of",
]

if TYPE_CHECKING:
    from rubric_measures.grades.assignments import AssignedAnswers
    from rubric_measures.grades.grade_sets import GradeFilter

T = TypeVar("T")


def add_grade_options(parser: argparse.ArgumentParser, scores: bool = True) -> None:
    """Adds the options that say which grades of a records file count, and how failed ones do where there are scores."""
    group = parser.add_argument_group("which grades")
    group.add_argument("--bank", metavar="BANK", help="the test bank: the items that make up the denominators")
    group.add_argument("--llm", help="use the grades of this model")
    group.add_argument("--prompt-class", help="use the grades of this prompt")
    group.add_argument("--prompt-type", choices=["question", "nugget", "direct"], help="use grades of this kind")
    group.add_argument("--question-set", choices=["question-bank", "tqa", "nugget"], help="use grades of these items")
    group.add_argument(
        "--grade-set",
        metavar="HASH",
        help="use the grades made with these settings, where the same model and prompt graded with others, too: the "
        "beginning of the hash that the error lists; none for grades that name no settings; several hashes with commas "
        "between them count as one set",
    )
    group.add_argument(
        "--people",
        choices=["override"],
        help="override: grades by people (human:NAME, from a review) stand in the grader's place where there are any; "
        "where people differ, the median, of two the lower (default: each person is a grader to choose)",
    )
    if not scores:
        return
    group.add_argument(
        "--on-failed",
        type=_on_failed,
        metavar="{exclude,zero,error,GRADE}",
        default="exclude",
        help="a failed grade: the item leaves the denominator (default), counts as not covered, or stops the command; "
        "or a number: it counts as that grade (the scale's highest is the other bound to zero)",
    )


def _on_failed(text: str) -> OnFailed:
    try:
        return check_on_failed(int(text) if text.isascii() and text.isdecimal() else text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).partition("; ")[2]) from None


class _Places(argparse.Action):
    def __call__(self, parser: object, options: argparse.Namespace, value: object, option: str | None = None) -> None:
        if not isinstance(value, int) or not -1 <= value <= 100:
            raise InputError(f"{option} {value}: give a number of decimal places up to 100, or -1 for all digits")
        setattr(options, self.dest, value)


def add_places_option(parser: argparse.ArgumentParser, default: int | None = 4, of: str = "") -> None:
    """Adds ir_measures' option for decimal places; without a default it is for `chosen_places`."""
    usual = "4, in JSON -1" if default is None else default
    text = f"decimal places{of} (default {usual}; -1: all digits)"
    parser.add_argument("-p", "--places", type=int, action=_Places, default=default, help=text)


def chosen_places(options: argparse.Namespace) -> int:
    """The decimal places of a board: what the user chose, else 4, and all digits in JSON."""
    if options.places is not None:
        return int(options.places)
    return -1 if options.output_format in ("json", "jsonl") else 4


def keep_inputs_of(options: argparse.Namespace, *inputs: str | None) -> None:
    """`keep_inputs` for --output and --plot, which must not be one file either.

    Raises:
        InputError: an input would be replaced, or one output by the other.
    """
    keep_inputs(options.output, *inputs)
    keep_inputs(options.plot, *inputs)
    keep_apart(output=options.output, plot=options.plot)


def bank_of(options: argparse.Namespace) -> TestBank | None:
    """The test bank that --bank names."""
    if options.bank is None:
        return None
    from rubric_measures.formats.bank import load_bank

    return load_bank(options.bank)


def wanted_of(options: argparse.Namespace) -> GradeFilter:
    """The filter over grade sets."""
    from rubric_measures.grades.grade_sets import GradeFilter

    names = (options.llm, options.prompt_class, options.prompt_type, options.question_set, options.grade_set)
    return GradeFilter(*names, people=options.people)


def _first_byte(path: str) -> bytes:
    return peek_head(path).lstrip()[:1]


def is_records(path: str) -> bool:
    """Whether a file holds graded records (JSON) rather than qrels (columns)."""
    return _first_byte(path) == b"["


def holds_records(path: str) -> bool:
    """Whether a QRELS argument names graded records, which can be read as a stream; it may name a collection too."""
    return not _is_dataset(path) and is_records(path)


def is_assignments(path: str) -> bool:
    """Whether a file holds nuggets assigned to answers, as nuggetizer writes them."""
    if path == "-" or not Path(path).is_file() or _first_byte(path) != b"{":
        return False
    with open_binary(path) as stream:
        return b'"assignment"' in stream.readline(1 << 20)


def _is_dataset(name: str) -> bool:
    return name != "-" and not Path(name).exists()


# What chooses among the grade sets of records: the attribute, the option.
_FILTERS = {
    name: f"--{name.replace('_', '-')}"
    for name in ("llm", "prompt_class", "prompt_type", "question_set", "grade_set", "people")
}


def refuse_filters(path: str, options: argparse.Namespace, holds: str = "judgments") -> None:
    """Refuses options that choose among grade sets where there is none to choose: they would do nothing.

    Args:
        path: the file or id, for the error.
        options: of `add_grade_options`.
        holds: what is there instead.

    Raises:
        InputError: one of them is given.
    """
    given = [option for name, option in _FILTERS.items() if getattr(options, name, None) is not None]
    if given:
        raise InputError(f"{path}: holds {holds}, no grade sets to choose from; leave {' '.join(given)} out")


def _dataset_qrels(name: str) -> Iterable[object]:
    import ir_datasets

    # Registers this package's ids.
    import rubric_measures.corpora.collections  # noqa: F401

    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        raise InputError(f"{name}: no such file, and no such ir_datasets id") from None
    if not dataset.has_qrels():
        raise InputError(f"{name}: this ir_datasets id has no qrels")
    qrels: Iterable[object] = dataset.qrels_iter()
    return qrels


def grades_of(path: str, options: argparse.Namespace, needs_items: bool = True) -> Grades | list[object]:
    """The grades (or plain judgments) that a QRELS argument names.

    Args:
        path: graded records, nuggetizer's assignments, qrels, diversity qrels (item ids in column 2), or an ir_datasets
            id.
        options: of `add_grade_options`.
        needs_items: a rubric measure is asked for, so rows are item grades.

    Returns:
        Grades; or the rows themselves where no item is graded and none is needed.

    Raises:
        InputError: nothing of that name, or a file of another format.
    """
    bank = bank_of(options)
    is_file = not _is_dataset(path)
    if is_file and is_records(path):
        from rubric_measures.grades.loading import load_records

        return load_records(path, bank, wanted_of(options), options.on_failed)
    if is_file and is_assignments(path):
        return assigned_answers(path, options).grades
    refuse_filters(path, options)
    if is_file and (needs_items or bank is not None):
        return read_grades(path, bank, on_failed=options.on_failed, source=describe((), bank))
    rows = judgments_of(path)
    if needs_items or bank is not None or are_items(rows):
        return build_grades(rows, bank, on_failed=options.on_failed, source=describe((), bank))
    return rows


def judgments_of(path: str) -> list[Any]:
    """The rows of judgments that a QRELS argument names, of documents or of items: a file, or an ir_datasets id.

    Raises:
        InputError: nothing of that name, or a file of another format.
    """
    if _is_dataset(path):
        return list(_dataset_qrels(path))
    from rubric_measures.formats.trec import read_qrels

    return list(read_qrels(path))


def assigned_answers(path: str, options: argparse.Namespace) -> AssignedAnswers:
    """What a file of assignments holds; see `load_assignments`."""
    from rubric_measures.grades.assignments import load_assignments

    refuse_filters(path, options, "assigned nuggets")
    bank = bank_of(options)
    source = {**describe((), bank), "grades": ["assignments"]}
    return load_assignments(path, bank, on_failed=options.on_failed, source=source)


def are_items(rows: Iterable[object]) -> bool:
    """Whether rows of judgments are of items: a document is judged several times for a query, or a bank is declared."""
    seen: set[tuple[str, str]] = set()
    for row in rows:
        pair = (row.query_id, row.doc_id)  # type: ignore[attr-defined]
        if pair in seen or pair[1] == BANK_DOC:
            return True
        seen.add(pair)
    return False


def progress(things: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """Passes things on with a progress bar on standard error; none where that is not a terminal."""
    import sys

    if not sys.stderr.isatty():
        yield from things
        return
    from tqdm import tqdm

    yield from tqdm(things, total=total, desc=what, file=sys.stderr, leave=False)
