"""docs/conformance.md holds: each program that is installed gives our numbers, over files as it leaves them."""

from __future__ import annotations

import pytest

from benchmarks.conformance import CHECKS, LEFT, PAGE, rows_of, version_of
from tests.integrations.word_lists import import_base


# RAGElo leaves its own files open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("package", [*CHECKS, *LEFT])
def test_our_numbers_are_those_of_the_program(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    version = version_of(package)
    if version is None:
        pytest.skip(f"{package} is not installed, or its files are not here")
    if package == "autojudge-base":
        import_base()
    rows = rows_of(package)
    assert rows
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        assert row.apart <= (1e-4 if package in LEFT else 1e-6), (row, capsys.readouterr().err)
        (said,) = (cells for cells in table if cells[:1] == [row.program] and cells[2] == row.file)
        # What is printed is of the version that the table was made with.
        assert said[3] == f"{row.compared}: {len(row.ours)} values"
        assert said[7] == (row.reads or "—") and said[1] <= version


def test_every_program_has_a_row() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"| {name} |" in page for name in ("trec_eval", *list(CHECKS)[1:], *LEFT))
