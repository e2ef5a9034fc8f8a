"""Measures as users write them, read with ir_measures' syntax; standard ones wrapped to read what grades imply."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import ir_measures
from ir_measures.measures.base import Measure

from rubric_measures.base.errors import MeasureError, UnknownNameError
from rubric_measures.measures._plugged import check_plug_in
from rubric_measures.measures.delegated import checked_measure
from rubric_measures.measures.labels import RubricQrels
from rubric_measures.measures.scoring import is_supported

__all__ = ["Measures", "column_named", "note_labels", "parse_measures", "rubric_measures_of"]

Measures: TypeAlias = str | Measure | Iterable[str | Measure]
"""One measure or several: objects of ir_measures, or text (`RubricCover(rel=4)@20`; several with blanks between)."""


def parse_measures(measures: Measures) -> list[Measure]:
    """The measures, each once, in the order given.

    >>> parse_measures("NuggetV(rel=4, strict=True) nDCG@10")
    [NuggetV(rel=4,strict=True), nDCG@10]

    Raises:
        MeasureError: a measure cannot be read, or there is none.
        UnknownNameError: a measure is not known; names near ones.
        PlugInError: it is a measure of another package that cannot be used.
    """
    given = [measures] if isinstance(measures, str | Measure) else measures
    found: dict[Measure, None] = {}
    for one in given:
        for part in _split(one) if isinstance(one, str) else [one]:
            found[_parsed(part)] = None
    if not found:
        raise MeasureError("name at least one measure")
    return list(found)


def _parsed(measure: str | Measure) -> Measure:
    try:
        return checked_measure(ir_measures.parse_measure(measure) if isinstance(measure, str) else measure)
    except NameError:
        name = str(measure).split("(")[0].split("@")[0]
        check_plug_in(name)
        raise UnknownNameError("measure", name, ir_measures.measures.registry) from None
    except (ValueError, AssertionError) as error:
        raise MeasureError(f"{measure}: {error}") from None


def _split(text: str) -> list[str]:
    """Splits at blanks, but not inside parentheses: `NuggetV(rel=4, strict=True) nDCG@10` is two measures."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if char.isspace() and depth <= 0:
            parts.append(current)
            current = ""
        elif not char.isspace():
            current += char
    return [part for part in [*parts, current] if part]


def column_named(name: str, columns: Sequence[str], hint: str = "") -> str:
    """The column of a leaderboard that a name means: itself, or the same measure in other quotes or spaces.

    Raises:
        UnknownNameError: there is none; names near ones.
    """
    if name in columns:
        return name
    try:
        canonical = str(ir_measures.parse_measure(name))
    except (NameError, ValueError, AssertionError):
        canonical = name
    for column in columns:
        try:
            if canonical in (column, str(ir_measures.parse_measure(column))):
                return column
        except (NameError, ValueError, AssertionError):
            continue
    raise UnknownNameError("measure", name, columns, hint=hint)


def rubric_measures_of(measures: Iterable[Measure]) -> list[Measure]:
    """The measures with standard ones wrapped, `nDCG@10` as `RubricQrels(measure='nDCG@10')`; see `note_labels`."""
    return list(dict.fromkeys(map(_rubric_measure, measures)))


def _rubric_measure(measure: Measure) -> Measure:
    return measure if is_supported(measure) else RubricQrels(measure=str(measure))


def note_labels(measures: Iterable[Measure]) -> None:
    """Says which of the measures asked for were wrapped; when there are scores, so that an error comes alone."""
    wrapped = [str(_rubric_measure(measure)) for measure in measures if not is_supported(measure)]
    if wrapped:
        logging.getLogger("rubric_measures").info(
            "%d standard measures read the labels that the grades imply (maximum grade): %s",
            len(wrapped),
            " ".join(wrapped),
        )
