"""The commands of docs/tutorial-track.md, run as they stand there, with an assessor at a real review server."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from rubric_measures.records.models import load_graded

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorial-track.md").read_text(encoding="utf-8")


def test_a_track_with_nuggets_and_assessors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    review = pytest.importorskip("tests.review.test_app", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    [official] = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    Path("official.csv").write_text(official)
    shown = {}
    for command in map(shlex.split, re.findall(r"^rubric_measures .*$", PAGE, re.MULTILINE)):
        if "--assessor" in command:
            _ada_grades(review)
            continue
        files = [found for part in command[1:] for found in (sorted(map(str, Path().glob(part))) or [part])]
        assert main(files) == 0, (command, capsys.readouterr().err)
        shown[command[1], "--grader-b" in command], err = capsys.readouterr()
        assert "agree too well" not in err
    assert "thorough" in shown["leaderboard", False]
    assert "1.0000 [" in shown["correlate", False]
    # Ada gives 5 and 0, where the grader gave 3 and 5.
    assert re.search(r"^pairs +2 .*^bias +1.5000", shown["agreement", True], re.MULTILINE | re.DOTALL)


def _ada_grades(review: Any) -> None:
    """Two cells, on a real server over the files of the page."""
    shutil.copy("example/nuggets.jsonl", "bank.jsonl")
    group = next(iter(load_graded("graded.jsonl.gz")))
    passage = next(one for one in group.passages if one.exam_grades and one.exam_grades[0].correct_answered)
    assert passage.exam_grades is not None
    server = review.Server(Path(), "--grader", "lexical:1")
    try:
        ada = review.Assessor(server, "ada")
        for item_id, grade in zip(passage.exam_grades[0].correct_answered[:2], "50", strict=True):
            cell = {"q": group.query_id, "d": passage.doc_id, "i": item_id}
            assert ada.post("/grade", **cell, grade=grade).status_code < 400
            ada.post("/decide", **cell, decision="override", reason="not said")
    finally:
        server.kill()
