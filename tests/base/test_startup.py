"""Names that are imported late; errors of one line."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import (
    FormatError,
    InputError,
    MissingExtraError,
    UnknownNameError,
    naming,
    shortened,
)
from rubric_measures.base.plugins import require


def test_the_package_has_all_that_it_exports() -> None:
    for name in rubric_measures.__all__:
        assert getattr(rubric_measures, name) is not None
        assert name in dir(rubric_measures)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rubric_measures' has no attribute 'scores'"):
        rubric_measures.scores  # noqa: B018


@pytest.mark.parametrize(
    "error",
    [
        FormatError("bad", path="p", line=2, field="f"),
        UnknownNameError("run", "bm52", ["bm25"], hint="(h)"),
        MissingExtraError("jinja2", "review"),
    ],
)
def test_errors_survive_pickling(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_an_extra_that_goes_with_another_version_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_extra.py").write_text("raise ImportError('it needs NumPy 2.0, found 1.26')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InputError, match=r"^broken_extra cannot be imported \(it needs NumPy 2.0, found 1.26\); install"
    ):
        require("broken_extra", "plot")


def test_what_is_wrong_with_a_content_names_its_file() -> None:
    with pytest.raises(InputError, match=r"^one.json, b: no grades$") as caught, naming("one.json", Path("b")):
        raise InputError("no grades", settings=("bank",))
    assert caught.value.settings == ("bank",)
    # Named already, or not about the content.
    for error in (FormatError("no grades", path="b"), UnknownNameError("run", "x", ["y"])):
        with pytest.raises(type(error)) as same, naming("one.json", "b"):
            raise error
        assert same.value is error


def test_no_name_makes_a_message_longer_than_a_screen() -> None:
    path = "/".join(["folder" * 40] * 3)
    assert shortened(f"{path}:3: run {'x' * 5000!r}") == f"{path}:3: run {chr(39)}{'x' * 199}…{'x' * 99}{chr(39)}"
