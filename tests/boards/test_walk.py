"""How far a newcomer walks: the files that one grade crosses from a record to a cell of a leaderboard."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType

import rubric_measures
from rubric_measures.records.models import ItemGradeSet

ROOT = str(Path(rubric_measures.__file__).parent)
# Modules and functions. The functions were 221 when the modules were 16 of 364.
MOST = 21
MOST_FUNCTIONS = 236


def test_one_grade_crosses_few_modules_from_a_record_to_a_cell(tmp_path: Path) -> None:
    made = ItemGradeSet.build({"q1/a": 5}, answers=[], llm="m", self_rated=True).as_json()
    ranking = {"method": "one", "paragraphId": "d1", "queryId": "q1", "rank": 1, "score": 1.0}
    passage = {"paragraph_id": "d1", "text": "", "paragraph_data": {"rankings": [ranking]}, "exam_grades": [made]}
    bank = {"query_id": "q1", "items": [{"question_id": "q1/a", "question_text": "What?"}]}
    (tmp_path / "graded.jsonl").write_text(json.dumps(["q1", [passage]]))
    (tmp_path / "bank.jsonl").write_text(json.dumps(bank))

    def cell() -> float | None:
        grades = rubric_measures.load(tmp_path / "graded.jsonl", bank=tmp_path / "bank.jsonl")
        board = rubric_measures.score(grades, None, "RubricCover(rel=4)@20", overall=False)
        return board.cells["one"]["RubricCover(rel=4)@20"].mean

    # The first call imports.
    assert cell() == 1.0
    crossed = set()
    functions = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            crossed.add(frame.f_code.co_filename)
            functions.add((frame.f_code.co_filename, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        cell()
    finally:
        sys.setprofile(before)
    assert 0 < len(crossed) <= MOST, sorted(crossed)
    assert len(functions) <= MOST_FUNCTIONS, sorted(functions)
