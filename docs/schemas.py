"""JSON schemas of what commands print, made from the types of the code: `python docs/schemas.py` writes `schemas/`.

A file is a row of `FILES`, made of the records that the code prints. Each field is described as its class says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_type_hints

from msgspec import UNSET, UnsetType, defstruct
from msgspec.json import schema_components

from rubric_measures.analysis.agreement import GraderRow
from rubric_measures.analysis.calibration import Bias, Calibrated
from rubric_measures.analysis.comparing import KeptComparisons, LeftOut
from rubric_measures.analysis.significance import Design
from rubric_measures.analysis.correlating import CORRELATIONS, AskedCorrelation
from rubric_measures.analysis.graders import AgreementCell
from rubric_measures.analysis.leaderboards import GridCell, LeaderboardCorrelation
from rubric_measures.analysis.resampling import Draws, Interval, Tests
from rubric_measures.boards.kept import Manifest, Standing
from rubric_measures.games.tournaments import Tournament
from rubric_measures.types import entities

FOLDER = Path(__file__).parent / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
Fields = dict[str, Any]
# Records to which fields may be added.
OPEN = {"leaderboard", "tournament", "row"}
# What the code makes of its records on the way into a file.
MADE: set[str] = set()


def fields(kind: Any, *without: str) -> Fields:
    """The fields of a record of the code, but some."""
    return {name: of for name, of in get_type_hints(kind).items() if name not in without}


def record(name: str, of: Fields, like: Any = None) -> Any:
    """A record of these fields, described as those of another one; a list of one type is a field that may lack."""
    MADE.add(name)
    told = [(field, one[0] | UnsetType, UNSET) if isinstance(one, list) else (field, one) for field, one in of.items()]
    return defstruct(name, told, namespace={"__doc__": like.__doc__} if like else {}, kw_only=True)


TABLE: Fields = {"table": str, "min_answers": int, "totals": list[int], "cells": list[AgreementCell]}

FILES: dict[str, Any] = {
    "correlate": {
        "format": Literal[CORRELATIONS],  # type: ignore[valid-type]
        "official": record("official", {"path": str, "measure": str, "ranks": bool}),
        "leaderboards": list[record("board", {  # type: ignore[misc]
            **fields(LeaderboardCorrelation), "path": str
        }, LeaderboardCorrelation)],
        "grid": list[  # type: ignore[misc]
            record("grid_cell", {**fields(GridCell, "scores", "notes"), "best": bool}, GridCell)
        ],
        "best_by": str,
        "asked": AskedCorrelation,
    },
    "agreement": {
        "format": Literal["rubric_measures agreement 5"],
        "sources": list[str],
        "only_in": list[int],
        "alpha_all": dict[str, Interval],
        "truth": record("truth", {"source": str, "scale": tuple[int, int]}),
        "graders": list[  # type: ignore[misc]
            record("grader", {**fields(GraderRow), "grader": str, "group": str}, GraderRow)
        ],
        "groups": list[list[str]],
    },
    "agreement-tables": {
        "format": Literal["rubric_measures agreement-tables 1"],
        "tables": list[record("table", TABLE)],  # type: ignore[misc]
    },
    "compare": record("compare", fields(KeptComparisons), KeptComparisons),
    "power": {
        "format": Literal["rubric_measures power 2"],
        "power": float,
        "tests": Tests,
        "measures": list[Design],
    },
    "reusability": {
        "format": Literal["rubric_measures reusability 1"],
        "depth": int,
        "runs": list[LeftOut],
    },
    "calibrate": {
        "format": Literal["rubric_measures calibrate 1"],
        "against": str, "assessors": dict[str, int], "rel": int, "smallest": float, "draws": Draws,
        "reason": str,
        "bias": list[record("bias", {  # type: ignore[misc]
            **fields(Bias), "drift": Literal["higher", "lower", "none that matters", "unknown"]
        }, Bias)],
        "runs": list[record("calibrated", fields(Calibrated), Calibrated)],  # type: ignore[misc]
    },
    "leaderboard": entities.KeptBoard,
    "tournament": {
        "format": Literal[entities.BOARD_FORMAT],
        "tournament": record("games", fields(Tournament, "win_rates", "signature"), Tournament),
    },
    "verify": {
        "rows": list[record("row", {  # type: ignore[misc]
            "report": str, "title": str, "reasons": [dict[str, str]]
        })],
    },
    "check": {
        "format": Literal["rubric_measures check 1"], "same": bool, "differences": list[str], "signature_hash": str,
        "digest": str | None, "exact": list[str], "values": dict[str, Standing],
    },
    "bundle": fields(Manifest),
}  # fmt: skip


def schema(name: str) -> Fields:
    """The schema of a file."""
    of_file = FILES[name] if isinstance(FILES[name], type) else record(name, FILES[name])
    _, parts = schema_components([of_file])
    result = parts.pop(of_file.__name__)
    for part, of in [(name, result), *parts.items()]:
        told = dict(described(of.pop("description", "")))
        if part == entities.Cell.__name__:
            told |= described(entities.Mean.__doc__ or "")
        del of["title"]
        if "properties" not in of:
            continue
        if of_file is entities.KeptBoard:
            # What says nothing is left out.
            for field in of["properties"].keys() - set(of.get("required", ())):
                kinds = [kind for kind in of["properties"][field].pop("anyOf", ()) if kind != {"type": "null"}]
                of["properties"][field] |= kinds[0] if kinds else {}
        elif part not in MADE:
            of["required"] = list(of["properties"])
        of["additionalProperties"] = part in OPEN
        of["properties"] = {
            field: {**tidy(one), **({"description": told[field]} if field in told else {})}
            for field, one in of["properties"].items()
        }
    return {**result, **({"$defs": parts} if parts else {})}


def tidy(of: Any) -> Any:
    """A type on one line: what may be null, without defaults."""
    if not isinstance(of, dict):
        return of
    kinds = of.get("anyOf", [])
    if len(kinds) == 2 and {"type": "null"} in kinds and all(isinstance(one.get("type"), str) for one in kinds):
        [one] = [one for one in kinds if one["type"] != "null"]
        of = {**one, "type": [one["type"], "null"]}
    return {name: [tidy(one) for one in value] if isinstance(value, list) else tidy(value)
            for name, value in of.items() if name != "default"}  # fmt: skip


def described(text: str) -> Iterator[tuple[str, str]]:
    """The fields that a docstring describes, each with what it says."""
    attributes = text.partition("Attributes:\n")[2].partition("\n\n")[0]
    for found in re.finditer(r"^ +(\w+): ((?:.|\n(?! +\w+: ))+)", attributes, re.MULTILINE):
        yield found[1], re.sub(r"\bNone\b", "null", " ".join(found[2].split()).rstrip("."))


def dumped(value: Any, depth: int = 0) -> str:
    """JSON with as much on a line as fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + depth <= 116 or not isinstance(value, dict | list) or not value:
        return line
    pad, (start, end) = "\n" + " " * (depth + 1), "{}" if isinstance(value, dict) else "[]"
    named = {f"{json.dumps(name)}: ": one for name, one in value.items()} if isinstance(value, dict) else {}
    parts = [f"{name}{dumped(one, depth + 1)}" for name, one in named.items()] or [
        dumped(one, depth + 1) for one in value
    ]
    return f"{start}{pad}{f',{pad}'.join(parts)}{pad[:-1]}{end}"


def files() -> dict[Path, str]:
    """Each file of the folder, with what it should hold."""
    return {FOLDER / f"{name}.json": f"{dumped({'$schema': DRAFT, **schema(name)})}\n" for name in FILES}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
