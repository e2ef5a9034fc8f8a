"""Every benchmark can be imported, and the simulations of conclusions run with two repeats."""

import importlib
from pathlib import Path

import pytest

from benchmarks.conclusions import PARTS
from benchmarks.lost_facts import show

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("[a-z]*.py")))
def test_a_benchmark_is_imported(name: str) -> None:
    try:
        module = importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        # Some measure what only an extra brings.
        assert error.name in ("torch", "transformers", "httpx", "openai", "ray"), error
        pytest.skip(f"{error.name} is not installed")
    assert (module.__doc__ or "").strip()


@pytest.mark.parametrize("name", [*(name for name in PARTS if name not in ("tau", "outlook")), "lost facts"])
def test_the_simulations_print_a_row_a_case(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    {**PARTS, "lost facts": show}[name](2)
    heads, rule, *rows = (line for line in capsys.readouterr().out.splitlines() if line.startswith("|"))
    assert rows and {line.count("|") for line in (heads, rule, *rows)} == {heads.count("|")}
