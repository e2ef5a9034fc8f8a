"""Plug-ins by entry points: built-in names win, nothing is imported before it is used, what is broken is one line."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base import plugins
from rubric_measures.base.errors import PlugInError, UnknownNameError
from rubric_measures.base.plugins import PlugIn, Registry

GROUP = "rubric_measures.test_things"


def a_number(plug_in: PlugIn, found: Any) -> float:
    if not isinstance(found, int | float):
        raise plug_in.refused("it is no number")
    return found


THINGS: Registry[float] = Registry(GROUP, "number", {"pi": "math:pi", "e": "math:e"}, a_number)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs a package with entry points and the text of its module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def install(package: str, module: str, text: str, **entry_points: str) -> None:
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"[{GROUP}]", *(f"{name} = {module}:{attribute}" for name, attribute in entry_points.items())]
        (folder / "entry_points.txt").write_text("\n".join(lines))
        (tmp_path / f"{module}.py").write_text(text)

    for cached in (plugins.plug_ins, plugins.named_groups, plugins.say_once):
        cached.cache_clear()
    yield install
    for cached in (plugins.plug_ins, plugins.named_groups, plugins.say_once):
        cached.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_plug_in_has_a_name_beside_the_built_in_ones(installed: Callable[..., None]) -> None:
    installed("tau-package", "tau_module", "TAU = 6.28\n", tau="TAU")
    assert list(THINGS) == ["pi", "e", "tau"]
    assert "tau_module" not in sys.modules
    assert THINGS["tau"] == 6.28
    assert dict(THINGS.items())["tau"] == 6.28
    with pytest.raises(UnknownNameError, match="unknown number 'tua': did you mean tau"):
        THINGS["tua"]


def test_of_two_packages_the_first_has_the_name(
    installed: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    installed("zz", "zz_module", "TWO = 2\n", two="TWO")
    installed("aa", "aa_module", "TWO = 2.0\n", two="TWO")
    assert repr(THINGS["two"]) == "2.0"
    assert "of the package 'zz' is left out: the package 'aa' has a number of this name" in caplog.text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("import sys; sys.exit('gone')", "SystemExit: gone"),
        ("def", "SyntaxError: "),
        ("", "AttributeError: "),
        ("BAD = 'text'", "it is no number"),
    ],
)
def test_a_broken_plug_in_is_one_line_and_stops_only_what_needs_it(
    installed: Callable[..., None], caplog: pytest.LogCaptureFixture, text: str, why: str
) -> None:
    installed("broken-package", "broken_module", text, bad="BAD")
    assert THINGS["pi"] > 3
    with caplog.at_level(logging.WARNING):
        assert list(dict(THINGS.items())) == ["pi", "e"]
    with pytest.raises(PlugInError) as caught:
        THINGS["bad"]
    line = str(caught.value)
    assert line.startswith(f"the number 'bad' of the package 'broken-package' cannot be used: {why}")
    assert line.isprintable()
    assert caplog.messages == [line]
