"""Optional dependencies: imported where they are used, with the command that installs them when they are missing."""

from __future__ import annotations

import importlib
import os
from typing import Any

from rubric_measures.base.errors import MissingExtraError

__all__ = ["require"]


# What keeps optional libraries from reporting to their makers; they look at it when they are imported.
_SILENT = {"HF_HUB_DISABLE_TELEMETRY": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def require(module: str, extra: str) -> Any:
    """Imports `module`, or says which extra brings it; optional libraries send no telemetry, unless the user says so.

    Raises:
        MissingExtraError: the module is not installed.
    """
    for name, value in _SILENT.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise MissingExtraError(module, extra, is_module=True) from None
        raise
