"""Optional dependencies: imported where they are used, with the command that installs them when they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from rubric_measures.base.errors import MissingExtraError

__all__ = ["require"]


def require(module: str, extra: str) -> Any:
    """Imports `module`, or says which extra brings it.

    Raises:
        MissingExtraError: the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise MissingExtraError(module, extra, is_module=True) from None
        raise
