"""What is imported where it is used: optional libraries, and names of a package that are asked for later."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rubric_measures.base.errors import InputError, MissingExtraError

__all__ = ["lazy_names", "require"]


# What keeps optional libraries from reporting to their makers; they look at it when they are imported.
_SILENT = {"HF_HUB_DISABLE_TELEMETRY": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def require(module: str, extra: str) -> Any:
    """Imports `module`, or says which extra brings it; optional libraries send no telemetry, unless the user says so.

    Raises:
        MissingExtraError: the module is not installed.
        InputError: it is, and cannot be imported.
    """
    for name, value in _SILENT.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise MissingExtraError(module, extra, is_module=True) from None
        raise
    except ImportError as error:
        # As pyarrow of 2026 says over numpy 1.26.
        raise InputError(f"{module} cannot be imported ({error}); install versions that go together") from error


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package some of whose names are imported later."""
    home_of = {name: module for module, names in homes.items() for name in names}

    def getattr_(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(home_of[name]), name)
        # From now on the package has it.
        setattr(sys.modules[package], name, found)
        return found

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return getattr_, dir_
