"""What is imported when it is asked for: plug-ins, optional libraries.

A package that is installed beside this one adds a measure, a kind of model, or a file format by an entry point
(`docs/plugins.md`). Built-in names win over added ones. A plug-in that cannot be imported stops only what needs it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from rubric_measures.base.errors import InputError, MissingExtraError, PlugInError, UnknownNameError, warn

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


# What keeps optional libraries from calling their makers, for reports or lists of prices; they look at it when they are
# imported.
_SILENT = {
    "HF_HUB_DISABLE_TELEMETRY": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "RAY_USAGE_STATS_ENABLED": "0",
}  # fmt: skip


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
            raise MissingExtraError(module, extra) from None
        raise
    except ImportError as error:
        # As pyarrow of 2026 says over numpy 1.26.
        raise InputError(f"{module} cannot be imported ({error}); install versions that go together") from error


T = TypeVar("T")


class PlugIn(NamedTuple):
    """One thing that an installed package adds; nothing is imported yet.

    Attributes:
        what: what it is, in one word (`format`).
        name: the name of the entry point.
        package: the package that brings it.
        entry_point: where it stands.
    """

    what: str
    name: str
    package: str
    entry_point: EntryPoint

    def __str__(self) -> str:
        return f"the {self.what} {self.name!r} of the package {self.package!r}"

    def load(self) -> Any:
        """Imports it.

        Raises:
            PlugInError: it cannot be imported, for whatever reason.
        """
        try:
            return self.entry_point.load()
        except (Exception, SystemExit) as error:
            raise self.refused(f"{type(error).__name__}: {error}") from error

    def refused(self, why: str) -> PlugInError:
        """The error that says in one line why the plug-in cannot be used."""
        return PlugInError(f"{self} cannot be used: {' '.join(why.split())}; mend it, or uninstall the package")


@lru_cache(maxsize=16)
def plug_ins(group: str, what: str, taken: Collection[str] = frozenset()) -> Mapping[str, PlugIn]:
    """The plug-ins of a group by name, sorted; of two with one name that of the first package.

    Args:
        group: the group of entry points (`rubric_measures.formats`).
        what: what they are, in one word.
        taken: the names of what is built in (a frozen set); plug-ins of these names are left out, which is said once.
    """
    found: dict[str, PlugIn] = {}
    if f"[{group}]".encode() not in named_groups():
        return found
    from importlib.metadata import entry_points

    listed = [PlugIn(what, one.name, one.dist.name if one.dist else "", one) for one in entry_points(group=group)]
    for one in sorted(listed, key=lambda one: (one.package, one.name)):
        if one.name in taken:
            say_once(f"{one} is left out: a built-in {what} has this name")
        elif found.setdefault(one.name, one) != one:
            say_once(f"{one} is left out: the package {found[one.name].package!r} has a {what} of this name")
    return found


def usable(found: Mapping[str, PlugIn], check: Callable[[PlugIn, Any], T]) -> Iterator[tuple[str, T]]:
    """The plug-ins that work, by name; of each other one the reason is said once, in one line.

    Args:
        found: the plug-ins.
        check: gives back what was loaded, or raises the error of `PlugIn.refused`.
    """
    for name, one in found.items():
        try:
            yield name, check(one, one.load())
        except PlugInError as error:
            say_once(str(error))


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Things of one sort by name: the built-in ones, and those of plug-ins.

    Attributes:
        group: the group of entry points of the plug-ins.
        what: what a name names, for messages (`format`).
        built_in: name -> `module:attribute`; it is imported when it is asked for.
        check: gives back what a plug-in has, or raises the error of `PlugIn.refused`.
    """

    group: str
    what: str
    built_in: Mapping[str, str]
    check: Callable[[PlugIn, Any], T]

    def __iter__(self) -> Iterator[str]:
        """The names, built-in ones first."""
        yield from self.built_in
        yield from self.added()

    def __getitem__(self, name: str) -> T:
        """What has the name.

        Raises:
            UnknownNameError: nothing has.
            PlugInError: a plug-in has, and cannot be used.
        """
        # Also where the name is a built-in one, so that a plug-in of that name is said to be left out.
        added = self.added()
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            found: T = attrgetter(attribute)(import_module(module))
            return found
        if name not in added:
            raise UnknownNameError(self.what, name, self)
        return self.check(added[name], added[name].load())

    def added(self) -> Mapping[str, PlugIn]:
        """The plug-ins by name; none of them is imported."""
        return plug_ins(self.group, self.what, frozenset(self.built_in))

    def items(self) -> Iterator[tuple[str, T]]:
        """All that work, by name; of plug-ins that do not, the reason is said once."""
        for name in self.built_in:
            yield name, self[name]
        yield from usable(self.added(), self.check)


@lru_cache(maxsize=1)
def named_groups() -> bytes:
    """What the installed packages with entry points for this one say about theirs, as their files do.

    `importlib.metadata` takes a quarter of the time of `import rubric_measures` to say so; this takes a hundredth.
    """
    found = []
    for folder in dict.fromkeys(sys.path):
        try:
            packages = [one.path for one in os.scandir(folder or ".") if one.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        for package in packages:
            try:
                # Most packages have no such file; pathlib would take longer than the system to say so.
                file = os.open(f"{package}/entry_points.txt", os.O_RDONLY)
            except OSError:
                continue
            with open(file, "rb") as stream:
                text = stream.read()
            if b"[rubric_measures." in text:
                found.append(text)
    return b"\n".join(found)


@lru_cache(maxsize=1024)
def say_once(text: str) -> None:
    """Says something once in the life of the process."""
    warn("%s", text)
