"""Ranked questions as runs (TREC DRAGUN task 1, RAGTIME task 3): pooled, compared with a bank's questions, scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import FormatError
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.answers import read_answers

# As a run of the track: no header, tabs, a text in quotes where it holds a comma.
RUN = (
    "t1\torg\ta\t1\tIs the publisher reliable?\n"
    't1\torg\ta\t2\t"Who wrote it, and why?"\n'
    "t1\torg\tb\t1\tIs the sky blue?\n"
)
BANK = {"query_id": "t1", "query_text": "An article", "items": [
    {"question_id": "who", "question_text": "Who wrote the article?", "weight": 4},
    {"question_id": "where", "question_text": "Can the publisher be trusted?", "weight": 2},
    {"question_id": "when", "question_text": "When was it written?", "weight": 1},
]}  # fmt: skip
REPLIES = [
    ("First question: Who wrote the article?\\nSecond question: Who wrote it, and why?", "Same"),
    ("First question: Can the publisher be trusted?\\nSecond question: Is the publisher", "Similar"),
    ("", "Different"),
]


def files(folder: Path) -> tuple[str, str, str]:
    (folder / "run.tsv").write_text(RUN)
    (folder / "bank.jsonl").write_text(json.dumps(BANK) + "\n")
    (folder / "replies.jsonl").write_text("".join(f'{{"contains": "{a}", "reply": "{b}"}}\n' for a, b in REPLIES))
    return str(folder / "run.tsv"), str(folder / "bank.jsonl"), f"scripted:{folder / 'replies.jsonl'}"


def test_questions_are_scored_as_the_track_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, bank, model = files(tmp_path)
    assert detect_format(run) == "questions"
    pooled, graded = str(tmp_path / "p.jsonl.gz"), str(tmp_path / "g.jsonl.gz")
    assert main(["pool", run, "-o", pooled]) == 0
    grade = ["grade", pooled, "--bank", bank, "--prompt", "SameQuestion", "--model", model, "-o", graded]
    assert main(grade) == 0
    capsys.readouterr()
    grades = rubric_measures.load(graded, bank=bank)
    board = rubric_measures.score(grades, measures=["WeightedCover@10", "RubricCover@10", "alpha_nDCG@10"])
    found = {run: [board.cells[run][measure].mean for measure in board.measures] for run in "ab"}
    # (4 · 1 + 2 · ½ + 1 · 0) / 7: the best of a run's questions counts for each question of the bank.
    assert found["a"][:2] == [pytest.approx(5 / 7), pytest.approx(1 / 3)]
    assert 0 < found["a"][2] < 1
    assert found["b"][0] == 0


def test_banks_that_are_runs_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "nuggets.jsonl"
    questions = [{"question": text, "aggregator_type": "OR", "answers": []} for text in ("Why?", "Who?")]
    path.write_text(json.dumps({"metadata": {"run_id": "r", "topic_id": "7"}, "nugget_bank": questions}) + "\n")
    (answer,) = read_answers(path)
    assert (answer.query_id, answer.run_id, answer.questions) == ("7", "r", ("Why?", "Who?"))
    (group,) = rubric_measures.pool(path)
    assert [(one.doc_id, one.text, one.rankings[0].rank) for one in group.passages] == [
        ("r/7/1", "Why?", 1),
        ("r/7/2", "Who?", 2),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUN.replace("\t2\t", "\t1\t"), "run.tsv:2: t1 / a / 1 stands in line 1 already"),
        (RUN.replace("\t2\t", "\tsecond\t"), "run.tsv:2: rank: expected a whole number; found 'second'"),
        (RUN.replace("\tb\t1", "\tb"), "run.tsv:3: 4 cells"),
    ],
)
def test_wrong_files_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.tsv").write_text(text)
    with pytest.raises(FormatError, match=message):
        rubric_measures.pool(tmp_path / "run.tsv")
