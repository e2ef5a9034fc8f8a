"""Names of a package that are imported when they are first asked for."""

import subprocess
import sys

import pytest

import rubric_measures
from rubric_measures import api


@pytest.mark.parametrize("package", [rubric_measures, api])
def test_a_package_has_all_that_it_exports(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rubric_measures' has no attribute 'scores'"):
        rubric_measures.scores  # noqa: B018
    assert not hasattr(api, "scores")


def test_importing_the_package_imports_no_topic_of_the_public_functions() -> None:
    code = (
        "import sys, rubric_measures; print([name for name in sys.modules if name.startswith('rubric_measures.api')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
