"""Names of a package that are imported when they are first asked for, so that importing the package is instant."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package some of whose names are imported later.

    Args:
        package: the package.
        homes: module -> the names that it defines.
    """
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
