"""CONTRIBUTING.md answers each question with one file, and the file has what it says."""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import reduce
from pathlib import Path

import pytest

from rubric_measures import NuggetV, RubricItem
from rubric_measures.types.scales import ASSIGNED
from tests import matrices
from tests.matrices import query_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+\?[^|]*) \| `([^`|]+)` \| `([^`|]+)` \|$", PAGE, re.MULTILINE)
# What a newcomer wants to do first.
ASKED = ("V_strict", "add a measure", "add a prompt", "add a kind of model", "add a file format", "add an output form",
         "add an option")  # fmt: skip


def test_the_page_has_the_questions_of_a_newcomer() -> None:
    assert [asked for asked in ASKED if not any(asked in question for question, _, _ in ROWS)] == []
    # Each row of the table was read.
    questions = PAGE.partition("## Find your way")[2].partition("\n## ")[0]
    assert len(ROWS) == len(re.findall(r"^\| [^|]+ \|", questions, re.MULTILINE)) - 1


@pytest.mark.parametrize(("question", "file", "name"), ROWS)
def test_the_file_has_what_the_answer_names(question: str, file: str, name: str) -> None:
    if file.endswith(".toml"):
        assert name in tomllib.loads((ROOT / file).read_text(encoding="utf-8"))
        return
    module = importlib.import_module(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    found = reduce(getattr, name.split("."), module)
    # The module may be the installed one: the plug-in of pytest loads that first.
    assert (ROOT / file).is_file() and Path(module.__file__ or "").as_posix().endswith(f"/{file}")
    # It is made there, not passed on from elsewhere; lists of names are what a room offers.
    home = getattr(found if callable(found) else type(found), "__module__", "")
    if not file.endswith("__init__.py") and home.startswith("rubric_measures"):
        assert home == module.__name__


def test_v_strict_is_in_that_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its formula, not only its name: another weight of okay nuggets changes the number."""
    _, file, name = next(row for row in ROWS if "V_strict" in row[0])
    table = getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), name)
    items = [RubricItem("vital", "q", "", importance="vital"), RubricItem("okay", "q", "", importance="okay")]
    query = query_of([("d", "vital", 2)], items, scale=ASSIGNED)
    assert matrices.values([NuggetV(strict=True)], query, ["d"]) == [1.0]
    monkeypatch.setitem(table, "NuggetV", table["NuggetV"]._replace(weight="each"))
    assert matrices.values([NuggetV(strict=True)], query, ["d"]) == [0.5]


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#([\w-]+))?\)", PAGE)
    assert targets
    for target, section in targets:
        headings = re.findall(r"^#+ (.+)$", (ROOT / target).read_text(encoding="utf-8"), re.MULTILINE)
        assert not section or section in {heading.lower().replace(" ", "-") for heading in headings}
