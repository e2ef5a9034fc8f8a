"""Measures of other packages: registered with all others when `rubric_measures` is imported."""

from __future__ import annotations

import sys
from typing import Any

from rubric_measures.base.plugins import PlugIn, plug_ins, usable
from rubric_measures.measures.measure import RubricMeasure, register

_GROUP = "rubric_measures.measures"


def register_plug_ins() -> None:
    """Registers the measures of all packages that work; of each other one the reason is said in one line."""
    found = plug_ins(_GROUP, "measure")
    # A package that imports `rubric_measures` is not ready yet where it came first; it registers its measures itself.
    ready = {name: one for name, one in found.items() if not _is_being_imported(one.entry_point.module)}
    list(usable(ready, _registered))


def check_plug_in(name: str) -> None:
    """Says why a measure of another package is not known; nothing where no package has it.

    Raises:
        PlugInError: a package has it, and it cannot be used.
    """
    one = plug_ins(_GROUP, "measure").get(name)
    if one is not None:
        _registered(one, one.load())


def _registered(plug_in: PlugIn, found: Any) -> RubricMeasure:
    kind = found if isinstance(found, type) else type(found)
    if not issubclass(kind, RubricMeasure):
        raise plug_in.refused(f"it is no rubric_measures.RubricMeasure, but {found!r:.60}")
    try:
        return register(kind)
    except Exception as error:
        raise plug_in.refused(f"{type(error).__name__}: {error}") from error


def _is_being_imported(module: str) -> bool:
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))
