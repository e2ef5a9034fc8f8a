"""Which settings a kind of model has, so that a wrong one is named together with those that exist."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from rubric_measures.errors import UnknownNameError

__all__ = ["check_options"]


def check_options(model: str, maker: type, given: Iterable[str]) -> None:
    """Refuses settings that a class of backends does not have.

    Args:
        model: the model as the user wrote it.
        maker: the class; its settings are the arguments with a default, those of the classes above it included.
        given: the names that the user gave.

    Raises:
        UnknownNameError: one of them is no setting.
    """
    known = {
        name
        for one in maker.__mro__
        if "__init__" in vars(one)
        for name, parameter in inspect.signature(vars(one)["__init__"]).parameters.items()
        if parameter.default is not parameter.empty
    }
    for name in given:
        if name not in known:
            raise UnknownNameError("option", name, known, hint=f"(of the model {model!r})")
