"""Measures as users write them: read, and found among the columns of a board."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import ir_measures
from ir_measures.measures.base import Measure

from rubric_measures.base.errors import InputError, MeasureError, UnknownNameError
from rubric_measures.measures.labels import RubricQrels, checked_measure
from rubric_measures.measures.measure import RubricMeasure, check_plug_in, is_supported, measure_in

Measures: TypeAlias = str | Measure | Iterable[str | Measure]
"""One measure or several: objects of ir_measures, or text (`RubricCover(rel=4)@20`; several with blanks between).

`my.py:CoveredTwice@20` is a function of a file, see `measure_of`.
"""
# A measure of a file of one's own: the file, the measure, its name.
_IN_FILE = re.compile(r"(?P<path>[^:]+\.py):(?P<measure>(?P<name>\w+).*)", re.DOTALL)


def parse_measures(measures: Measures) -> list[Measure]:
    """The measures, each once, in the order given.

    >>> parse_measures("NuggetV(rel=4, strict=True) nDCG@10")
    [NuggetV(rel=4,strict=True), nDCG@10]

    Raises:
        InputError: one is neither text nor a measure.
        MeasureError: a measure cannot be read, or there is none.
        UnknownNameError: a measure is not known; names near ones.
        PlugInError: it is a measure of another package that cannot be used.
    """
    given = [measures] if isinstance(measures, str | Measure) or not isinstance(measures, Iterable) else measures
    found: dict[Measure, None] = {}
    for one in given:
        if not isinstance(one, str | Measure):
            problem = f"measures: {one!r:.60} is no measure; give names, as 'RubricCover@20', or objects of ir_measures"
            raise InputError(problem, settings=("measures",))
        parts = [one] if isinstance(one, Measure) else _split(one) if "(" in one else one.split()
        found.update((_parsed(part), None) for part in parts)
    if not found:
        raise MeasureError("name at least one measure")
    return list(found)


def _parsed(measure: str | Measure) -> Measure:
    in_file = _IN_FILE.fullmatch(measure) if isinstance(measure, str) else None
    if in_file is not None:
        measure_in(in_file["path"], in_file["name"])
        measure = in_file["measure"]
    try:
        found = ir_measures.parse_measure(measure) if isinstance(measure, str) else measure
        if not isinstance(found, RubricMeasure):
            return checked_measure(found)
        # Ours say themselves what is wrong.
        found.validate_params()
        return found
    except NameError:
        _refuse_other_spelling(str(measure))
        name = str(measure).split("(")[0].split("@")[0]
        check_plug_in(name)
        raise UnknownNameError("measure", name, ir_measures.measures.registry) from None
    except (ValueError, AssertionError) as error:
        _refuse_other_spelling(str(measure))
        raise MeasureError(f"{measure}: {error}") from None


# The measures of trec_eval by their names there; those with a cutoff end in `_10`.
_OF_TREC_EVAL = {
    "map": "AP",
    "map_cut": "AP",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "recip_rank": "RR",
    "P": "P",
    "recall": "R",
    "success": "Success",
    "bpref": "Bpref",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_q": "NumQ",
}


def _refuse_other_spelling(text: str) -> None:
    """Says how measures are written that come as trec_eval calls them, or with commas between them; and files.

    Raises:
        MeasureError: they do.
    """
    if not text.isidentifier() and os.path.isfile(text):  # noqa: PTH113 - for so much pathlib takes long to import
        raise MeasureError(f"{text} is a file, and no measure; name runs before the measures")
    parts = _split(text, ",")
    if len(parts) > 1:
        raise MeasureError(f"{text}: part measures with blanks, not with commas: {' '.join(parts)}")
    name, _, cutoff = text.rpartition("_")
    is_cut = cutoff.isascii() and cutoff.isdecimal()
    known = _OF_TREC_EVAL.get(name if is_cut else text)
    if known is not None:
        raise MeasureError(f"{text} is trec_eval's name; here it is {known}{f'@{cutoff}' if is_cut else ''}")


def _split(text: str, also: str = " ") -> list[str]:
    """Splits at blanks (and at `also`), but not inside parentheses: `NuggetV(rel=4, strict=True) nDCG@10` is two."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if (char.isspace() or char == also) and depth <= 0:
            parts.append(current)
            current = ""
        elif not char.isspace():
            current += char
    return [part for part in [*parts, current] if part]


def column_named(name: str, columns: Sequence[str], hint: str = "") -> str:
    """The column of a leaderboard that a name means.

    That is the column itself, or the same measure in other quotes or spaces, or the same one with the levels that the
    scale said: `NuggetA` means `NuggetA(rel=2,partial_rel=1)`.

    `nDCG@10` means the column of `RubricQrels(measure='nDCG@10')`, too, as this is what scoring makes of it, and the
    other way round: over labels of assessors the column is `nDCG@10`.

    Raises:
        UnknownNameError: there is none; names near ones.
    """
    found = columns_named(name, columns)
    if len(found) == 1:
        return found[0]
    raise UnknownNameError("measure", name, found or columns, hint=hint)


def columns_named(name: str, columns: Sequence[str]) -> list[str]:
    """The columns that a name may mean, see `column_named`: one, several that differ in their levels, or none."""
    if name in columns:
        return [name]
    asked = _measure_named(name)
    if asked is None:
        return []
    found = [(column, _measure_named(column)) for column in columns]
    for meant in dict.fromkeys((asked, *rubric_measures_of([asked]), _standard_measure(asked))):
        same = [column for column, measure in found if str(meant) in (column, str(measure))]
        more = [column for column, measure in found if _is_but_for_levels(measure, meant)]
        if same or more:
            return same[:1] or more
    return []


def _is_but_for_levels(measure: Measure | None, asked: Measure) -> bool:
    """Whether a measure is another one but for the levels that the other one does not say."""
    # Of standard measures a level that is left out is level 1, and not the scale's.
    if not isinstance(measure, RubricMeasure) or measure.NAME != asked.NAME:
        return False
    levels = {"rel", "partial_rel"} - asked.params.keys()
    said = {name: value for name, value in measure.params.items() if name not in levels}
    return bool(said == asked.params)


def _measure_named(name: str) -> Measure | None:
    try:
        return ir_measures.parse_measure(name)
    except (NameError, ValueError, AssertionError):
        return None


def kind_of(name: str) -> Measure | None:
    """The measure that a column is of, whatever its parameters; None where it is not known."""
    measure: Measure | None = ir_measures.measures.registry.get(re.split("[(@]", name)[0])
    return measure


def is_standard(name: str) -> bool:
    """Whether a column of a leaderboard is of a measure that reads judgments, as `nDCG@10` does, and no grades."""
    measure = kind_of(name)
    return measure is not None and not is_supported(measure)


def inner_names(name: str) -> list[str]:
    """The measure inside a `RubricQrels`, whatever it makes of grades; none of other columns."""
    measure = _measure_named(name)
    return [str(measure.value("measure"))] if isinstance(measure, type(RubricQrels)) else []


def rubric_measures_of(measures: Iterable[Measure]) -> list[Measure]:
    """The measures with standard ones wrapped, `nDCG@10` as `RubricQrels(measure='nDCG@10')`; see `note_labels`."""
    wrapped = (one if is_supported(one) else RubricQrels(measure=str(one)) for one in measures)
    return list(dict.fromkeys(wrapped))


def _standard_measure(measure: Measure) -> Measure:
    """The measure of ir_measures that a `RubricQrels` is over labels which stand for themselves; else the measure."""
    if not isinstance(measure, type(RubricQrels)) or measure.value("label") != "max":
        return measure
    inner: Measure = measure.inner
    return inner if measure.value("rel") is None or "rel" in inner.params else measure


def note_labels(measures: Iterable[Measure]) -> None:
    """Says which of the measures asked for were wrapped; when there are scores, so that an error comes alone."""
    wrapped = list(map(str, rubric_measures_of(measure for measure in measures if not is_supported(measure))))
    if wrapped:
        logging.getLogger("rubric_measures").info(
            "%d standard measures read the labels that the grades imply (maximum grade): %s",
            len(wrapped),
            " ".join(wrapped),
        )


def measure_names(measures: Sequence[Measure], asked: Sequence[Measure] | None = None) -> list[str]:
    """The names of a leaderboard's columns.

    Args:
        measures: with all levels said.
        asked: the measures that were asked for, where their levels are those of the scale.

    Raises:
        MeasureError: there is none, or one twice.
    """
    names = [str(measure) for measure in measures]
    if not names:
        raise MeasureError("name at least one measure")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        written = {str(one) for one, name in zip(asked or measures, names, strict=True) if name == twice}
        if len(written) > 1:
            raise MeasureError(f"{min(written - {twice})} is {twice} on the scale of these grades; ask for one of them")
        raise MeasureError(f"measure {twice} is asked for twice")
    return names
