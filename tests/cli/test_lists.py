"""`list prompts`, `list measures`, `list formats`, `list models`: what commands take."""

from __future__ import annotations

import json

import pytest

from rubric_measures.cli import main
from rubric_measures.formats import FORMATS
from rubric_measures.models import BACKENDS
from rubric_measures.prompts.library import load_prompt, prompt_names


def listed(capsys: pytest.CaptureFixture[str], kind: str) -> dict[str, dict[str, str]]:
    assert main(["list", kind, "--format", "json"]) == 0
    return {next(iter(row.values())): row for row in json.loads(capsys.readouterr().out)["rows"]}


def test_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    prompts = listed(capsys, "prompts")
    assert sorted(prompts) == sorted(prompt_names()) and prompts["nuggets.assign"]["scale"] == "0-2:2:1"
    assert prompts["FagB"]["scale"] == "0-1:1"
    measures = listed(capsys, "measures")
    assert {"RubricCover@k", "NuggetV@k", "SupportRecall"} <= set(measures)
    assert measures["NuggetV@k"]["parameters"] == "rel, partial_rel, strict, judged_only"
    assert list(listed(capsys, "formats")) == sorted(FORMATS)
    models = listed(capsys, "models")
    # A new kind of model has its line.
    assert list(models) == list(BACKENDS)
    assert all(row["what it is"] for row in models.values()) and "extra hf" in models["hf"]["what it is"]


def test_one_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "prompts", "Thomas"]) == 0
    shown = capsys.readouterr().out
    assert load_prompt("Thomas").text.strip().splitlines()[0] in shown and "scale=0-2:1" in shown
    assert main(["list", "measures", "NuggetV@k"]) == 0
    assert "The mean credit over the vital nuggets" in capsys.readouterr().out
    assert main(["list", "measures", "Nugget"]) == 2
    assert "unknown measure 'Nugget'" in capsys.readouterr().err
    assert main(["list", "prompts", "Tomas"]) == 2
    assert "unknown prompt 'Tomas'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["prompt"], ["NuggetV"]])
def test_what_cannot_be_listed_names_the_four(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["list", *arguments])
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and said.count("\n") == 1
    assert all(kind in said for kind in ("prompts", "measures", "formats", "models"))


def test_a_name_where_there_is_only_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("formats", "models"):
        assert main(["list", kind, "trec"]) == 2
        said = capsys.readouterr().err
        assert said == f"rubric_measures: trec: there is only a list of {kind}; leave the name out\n"
    assert main(["list", "measures", "NuggetV", "--format", "json"]) == 2
    assert "NuggetV: a description is text; only the list has other forms (--format)" in capsys.readouterr().err
