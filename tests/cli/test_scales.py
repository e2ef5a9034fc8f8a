"""Each scale through each command that scores, shows or asks: the same grades on another scale say the same."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import rubric_measures
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.records.models import load_graded
from rubric_measures.types.scales import Scale, parse_scale
from tests.example_records import BANK, grade_set, passage, write_lines
from tests.strategies import Case, cases

SCALES = ["0-1:1", "0-3:2", "0-5:4:3", "0-100:60:30"]


def write_files(folder: Path, scale: Scale) -> None:
    """Records, a bank, item qrels without a scale, and runs. Passage d1 covers a, just misses b; d2 covers b."""
    at, below = scale.covers, scale.covers - 1
    said = {"prompt_class": "Mine", **scale.as_json()}
    first = grade_set({"q1/a": at, "q1/b": below, "q1/c": 0})
    second = grade_set({"q1/a": 0, "q1/b": scale.highest, "q1/c": 0})
    sets = [{**one, "prompt_info": said} for one in (first, second)]
    other = [{**one, "llm": "other"} for one in sets[::-1]]
    third = {**grade_set({"q1/a": 0, "q1/b": below, "q1/c": 0}), "prompt_info": said}
    records = [
        [
            "q1",
            [
                passage("q1", "d1", [sets[0], other[0]], {"one": 1, "two": 2}, 2),
                passage("q1", "d2", [sets[1], other[1]], {"one": 2, "two": 1}, 0),
                passage("q1", "d3", [third], {"three": 1}, 1),
            ],
        ]
    ]
    write_lines(folder / "graded.jsonl", records)
    write_lines(folder / "bank.jsonl", BANK[:1])
    grades = {"d1": (at, below, 0), "d2": (0, scale.highest, 0), "d3": (0, below, 0)}
    rows = [f"q1 q1/{item} {doc} {grade}" for doc, of in grades.items() for item, grade in zip("abc", of, strict=True)]
    (folder / "items.qrels").write_text("\n".join(rows) + "\n")
    (folder / "one.run").write_text("q1 Q0 d1 1 2 one\nq1 Q0 d3 2 1 one\n")
    (folder / "two.run").write_text("q1 Q0 d3 1 2 two\nq1 Q0 d2 2 1 two\n")


@pytest.fixture(params=SCALES)
def scale(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scale:
    found = parse_scale(request.param)
    write_files(tmp_path, found)
    monkeypatch.chdir(tmp_path)
    return found


def call(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main([*arguments]) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert code == 0 or (not out and err.startswith("rubric_measures: ") and err.count("\n") == 1)
    return out if code == 0 else err


def words(text: str) -> list[str]:
    return text.split()


RECORDS_OF_MODEL = ("graded.jsonl", "--bank", "bank.jsonl", "--grader", "model")


def test_scores_are_those_of_the_scales_level(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"RubricCover(rel={scale.covers})@20"
    board = json.loads(call(capsys, "leaderboard", *RECORDS_OF_MODEL, "-m", "RubricCover@20", "--format", "json"))
    means = {row["run_id"]: row["measures"][name]["mean"] for row in board["runs"]}
    # Of the four items of the bank; three ranks a passage that covers none.
    assert means == {"one": 0.5, "two": 0.5, "three": 0.0}
    assert board["best"][name]["mean"] == 0.5
    runs = ("one.run", "two.run")
    command = (
        "leaderboard",
        RECORDS_OF_MODEL[0],
        *runs,
        *RECORDS_OF_MODEL[1:],
        *words("-m RubricCover@20 --format json"),
    )
    rows = json.loads(call(capsys, *command))["runs"]
    assert {row["run_id"]: row["measures"][name]["mean"] for row in rows} == {"one": 0.25, "two": 0.25}
    printed = call(capsys, "evaluate", RECORDS_OF_MODEL[0], "one.run", "RubricCover@20", *RECORDS_OF_MODEL[1:])
    assert printed.split() == [name, "0.2500"]


def test_a_scale_that_is_not_known_is_asked_for(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ("leaderboard", "items.qrels", "one.run", "-m", "RubricCover@20"),
        ("evaluate", "items.qrels", "one.run", "RubricCover@20"),
    ):
        assert "--grader scale=…" in call(capsys, *command, code=2)
        call(capsys, *command, "--grader", f"scale={scale}")
    printed = call(capsys, "evaluate", "items.qrels", "one.run", f"RubricCover(rel={scale.covers})@20")
    # Without the bank there are three items.
    assert printed.split()[-1] == "0.3333"
    assert "scale" in call(capsys, "leaderboard", "graded.jsonl", "--grader", "model=model,scale=0-0", code=2)


def test_the_level_that_covers_is_said_where_there_are_more_than_two_grades(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path, parse_scale("0-2:2"))
    monkeypatch.chdir(tmp_path)
    for command in (
        ("leaderboard", "items.qrels", "one.run", "-m", "RubricCover@20"),
        ("evaluate", "items.qrels", "one.run", "RubricCover@20"),
        ("qrels", "items.qrels", "--label", "count", "-o", "made.qrels"),
        ("agreement", "items.qrels", "items.qrels", "--items", "--rounds", "0"),
        ("correlate", "one.run", *RECORDS_OF_MODEL),
        ("verify", "all", *RECORDS_OF_MODEL),
        ("review", "graded.jsonl", "--bank", "bank.jsonl", "--grader", "model", "--export", "out"),
    ):
        for said in ("0-2", "0-5", "1-3"):
            bare = [one for one in command if one not in ("--grader", "model")]
            assert call(capsys, *bare, "--grader", f"scale={said}", code=2).endswith(
                f": '{said}' is no scale (say which of its grades covers); write 0-5:4, or 0-5:4:3 where 3 is partial\n"
            )
    with pytest.raises(InputError, match=r"'0-5' is no scale .* write 0-5:4, or 0-5:4:3"):
        rubric_measures.load("items.qrels", grader="scale=0-5")
    # Of two grades only the higher one can cover.
    assert (parse_scale("0-1").covers, parse_scale("1-2").covers) == (1, 2)


def test_records_that_say_a_range_alone_are_read_and_asked_for_their_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rated = "QuestionSelfRatedUnanswerablePromptWithChoices"
    for name, highest, level in (("Theirs", 10, None), (rated, 5, "4"), (rated, 10, None), ("Theirs", 1, "1")):
        entry = grade_set({"q1/a": highest, "q1/b": highest - 1, "q1/c": 0})
        entry["prompt_info"] = {"prompt_class": name, "scale": [0, highest]}
        write_lines(tmp_path / "theirs.jsonl", [["q1", [passage("q1", "d1", [entry], {"one": 1}, 1)]]])
        call(capsys, "convert", "theirs.jsonl", "--to", "records", "-o", "copy.jsonl")
        assert load_graded("copy.jsonl") == load_graded("theirs.jsonl")
        board = ("leaderboard", "copy.jsonl", "-m", "RubricCover@20", "--format", "tsv", "--no-overall")
        if level is not None:
            assert f"RubricCover(rel={level})@20" in call(capsys, *board)
            continue
        assert "the scale of the grades is not known; say which grade counts" in call(capsys, *board, code=2)
        assert "the scale of the grades is not known; say it" in call(capsys, "verify", "all", "copy.jsonl", code=2)
        out = call(capsys, *board, "--grader", f"scale=0-{highest}:{highest - 1}")
        assert f"RubricCover(rel={highest - 1})@20" in out and "0.6667" in out


@pytest.mark.parametrize("grade", [7, -2])
def test_a_grade_off_its_scale_is_refused_by_all_that_count_it(
    grade: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "bank.jsonl", BANK[:1])
    entry = grade_set({"q1/a": grade, "q1/b": 1})
    write_lines(tmp_path / "graded.jsonl", [["q1", [passage("q1", "d1", [entry], {"one": 1}, 1)]]])
    for command in (
        ("leaderboard", "graded.jsonl", "-m", "RubricCover@20"),
        ("qrels", "graded.jsonl", "-o", "made.qrels"),
        ("agreement", "graded.jsonl"),
        ("verify", "all", "graded.jsonl", "--bank", "bank.jsonl"),
        ("review", "graded.jsonl", "--bank", "bank.jsonl", "--export", "out"),
    ):
        said = call(capsys, *command, code=2)
        assert f"'q1/a': the grade {grade} is not on the scale 0 to 5" in said and "--grader scale=…" in said
    wider = "scale=-2-10:7"
    assert "RubricCover(rel=7)@20" in call(
        capsys, "leaderboard", "graded.jsonl", "-m", "RubricCover@20", "--grader", wider
    )


def test_failed_grades_count_as_a_grade_of_the_scale_only(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    above = str(scale.highest + 1)
    # Also where no grade failed: a slip is said the first time.
    for command in (
        ("leaderboard", *RECORDS_OF_MODEL, "-m", "RubricCover@20"),
        ("evaluate", RECORDS_OF_MODEL[0], "one.run", "RubricCover@20", *RECORDS_OF_MODEL[1:]),
    ):
        error = call(capsys, *command, "--on-failed", above, code=2)
        assert f"count as {above}, which is not on the scale 0 to {scale.highest}" in error
        call(capsys, *command, "--on-failed", str(scale.highest))


def test_labels_that_count_items_take_the_scales_level(scale: Scale, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["qrels", *RECORDS_OF_MODEL, "--label", "count", "-o", "out.qrels"]) == 0
    assert capsys.readouterr().err.count(f"labels count the items graded {scale.covers} or better") == 1
    assert Path("out.qrels").read_text() == "q1 0 d1 1\nq1 0 d2 1\nq1 0 d3 0\n"
    # The highest grade stays what it is.
    call(capsys, "qrels", *RECORDS_OF_MODEL, "-o", "most.qrels")
    labels = [int(line.split()[-1]) for line in Path("most.qrels").read_text().splitlines()]
    assert labels == [scale.covers, scale.highest, scale.covers - 1]
    error = call(capsys, "qrels", "items.qrels", "--label", "count", code=2)
    assert "the scale of the grades is not known; say that grade (--rel)" in error
    call(capsys, "qrels", "items.qrels", "--label", "count", "--rel", str(scale.covers), "-o", "again.qrels")
    assert Path("again.qrels").read_text() == "q1 0 d1 1\nq1 0 d2 1\nq1 0 d3 0\n"


@pytest.mark.parametrize("kind", ["passages", "nuggets", "criteria"])
def test_measures_that_nobody_named_fit_the_items(scale: Scale, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    bank = json.loads(json.dumps(BANK[0]))
    for item in bank["items"]:
        importance = item.pop("importance")
        if kind == "nuggets":
            item["importance"] = importance
        elif kind == "criteria":
            item["weight"] = 1.0 if importance == "vital" else 0.5
    write_lines(Path("own.jsonl"), [bank])
    command = words("leaderboard graded.jsonl --grader model --bank own.jsonl --format json --no-overall")
    rows = json.loads(call(capsys, *command))["runs"]
    at, partial = scale.covers, scale.covers if scale.partial is None else scale.partial
    half = 0.0 if scale.partial is None else 0.5
    both = f"(rel={at},partial_rel={partial})"
    # Run three ranks d3 alone, of which b, an okay item, is just below covering.
    expected = {
        "passages": {f"RubricCover(rel={at})@20": 0.0, f"nRubricCover(rel={at})@20": 0.0},
        "nuggets": {
            f"NuggetV(rel={at},strict=True)": 0.0,
            f"NuggetV{both}": 0.0,
            f"NuggetW{both}": half * 0.5 / 3,
            f"NuggetA{both}": half / 4,
        },
        "criteria": {f"WeightedCover{both}": half * 0.5 / 3},
    }[kind]
    three = next(row["measures"] for row in rows if row["run_id"] == "three")
    means = {name: cell["mean"] for name, cell in three.items()}
    if kind == "passages":
        # By labels: gain covers - 1 at rank 1, of what the best order gains.
        gains = sorted((scale.highest, at, at - 1), reverse=True)
        ideal = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
        expected["RubricQrels(measure='nDCG@10')"] = (at - 1) / ideal
    assert means == pytest.approx(expected)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("workbench", ["RubricCover(rel=4)@20", "nRubricCover(rel=4)@20"]),
        ("nuggetizer", ["NuggetV(strict=True)", "NuggetV", "NuggetA(strict=True)", "NuggetA"]),
        ("ragdoll", ["WeightedCover", "WeightedCover(strict=True)"]),
    ],
)
def test_measures_that_nobody_named_are_those_of_another_program(
    program: str, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"qid": "q", "run_id": "one", "query": "Why?", "answer_text": "So.", "response_length": 1}
    nuggets = [{"text": "a", "importance": "vital", "assignment": "support"}]
    criterion = {"text": "a", "type": "explicit", "tier": "optional", "source_nugget": None, "verdict": "satisfied"}
    # The toolkit takes the weights of each line as they stand.
    criteria = [[{**criterion, "weight": weight}] for weight in (2, 5)]
    lines: list[Any] = {
        "workbench": [["q", [passage("q", "d", [grade_set({"q/a": 5})], {"one": 1}, 2)]]],
        "nuggetizer": [{**answer, "nuggets": nuggets}],
        "ragdoll": [
            {**answer, "run_id": run_id, "task_id": run_id, "status": "completed", "criteria": judged}
            for run_id, judged in zip(("one", "two"), criteria, strict=True)
        ],
    }[program]
    write_lines(tmp_path / "graded.jsonl", lines)
    command = ["leaderboard", str(tmp_path / "graded.jsonl"), "--compat", program]
    rows = json.loads(call(capsys, *command, "--no-overall", "--format", "json"))["runs"]
    assert {key: cell["mean"] for key, cell in rows[0]["measures"].items()} == dict.fromkeys(expected, 1.0)


def test_verify_asks_for_a_scale_that_is_not_known(
    scale: Scale, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = {
        **{"llm": "model", "llm_options": {}, "prompt_info": {"prompt_class": "Theirs"}, "prompt_type": "direct"},
        **{"relevance_label": scale.covers, "self_ratings": scale.covers, "correctAnswered": True, "answer": "yes"},
    }
    other = {**label, "relevance_label": 0, "self_ratings": 0, "correctAnswered": False}
    ungraded = passage("q1", "d0", [], {"one": 3}, 2)
    direct = [passage("q1", "d1", [], {"one": 1}, 2, [label]), passage("q1", "d2", [], {"one": 2}, 0, [other])]
    # A query without grades stands first.
    records = [["q0", [passage("q0", "d1", [], {"one": 1}, 2)]], ["q1", [ungraded, *direct]]]
    write_lines(tmp_path / "direct.jsonl", records)
    failed = {**grade_set({"q1/a": 0}, prompt="Theirs", status={"q1/a": "failed"}), "self_ratings": None}
    failed |= {"correctAnswered": [], "wrongAnswered": []}
    write_lines(tmp_path / "failed.jsonl", [["q1", [passage("q1", "d1", [failed], {"one": 1}, 2)]]])
    for command in (
        ("verify", "all", "direct.jsonl"),
        ("verify", "bad-questions", "direct.jsonl"),
        ("verify", "uncovered-passages", "direct.jsonl"),
        ("verify", "item-statistics", "failed.jsonl", "--bank", "bank.jsonl"),
    ):
        assert "the scale of the grades is not known; say it" in call(capsys, *command, code=2)
        out = call(capsys, *command, "--grader", f"scale={scale}")
        assert f"grade {scale.covers}" in out or f"graded {scale.covers} or better" in out
    # The reports that need no level are made.
    for report in ("grading", "grid"):
        call(capsys, "verify", report, "direct.jsonl")
    # And what fits labels by a grader are the measures over labels.
    capsys.readouterr()
    assert main(["leaderboard", "direct.jsonl", "--format", "json", "--no-overall"]) == 0
    out, err = capsys.readouterr()
    (row,) = json.loads(out)["runs"]
    assert list(row["measures"]) == ["RubricQrels(measure='nDCG@10')"]
    assert "direct.jsonl: holds labels of passages, no grades of items" in err


@pytest.mark.parametrize(("factor", "shift"), [(2, 0), (1, 1)])
@settings(max_examples=12, deadline=None)
@given(case=cases(failures=True))
def test_rescaling_a_file_and_its_scale_together_changes_no_score(factor: int, shift: int, case: Case) -> None:
    def plain(grade: int) -> int:
        return grade // 2

    def rescaled(grade: int) -> int:
        return factor * plain(grade) + shift

    with tempfile.TemporaryDirectory() as folder:
        boards = []
        for name, change in (("plain", plain), ("rescaled", rescaled)):
            room = Path(folder, name)
            room.mkdir()
            # 0 to 2 as it is, and as 0 to 4 or 1 to 3.
            scale = Scale(*(change(level) for level in (0, 4, 4, 2)))
            write_case(room, case, change, scale)
            boards.append([scores(room, "graded.jsonl"), scores(room, "items.qrels")])
        assert boards[0] == boards[1]
        # A run that ranks nothing is refused.
        assert not (case.grades and case.ranking) or 2 not in boards[0]


def write_case(folder: Path, case: Case, change: Callable[[int], int], scale: Scale) -> None:
    """Records, a bank, item qrels and a run of a random case."""
    docs = sorted({doc_id for doc_id, _ in [*case.grades, *case.failed]} | set(case.ranking))
    passages = []
    for doc_id in docs:
        grades = {item: change(grade) for (doc, item), grade in case.grades.items() if doc == doc_id}
        lost = {item: "failed" for doc, item in sorted(case.failed) if doc == doc_id}
        sets = []
        if grades or lost:
            one = grade_set(grades | dict.fromkeys(lost, scale.lowest), status=lost)
            sets = [{**one, "prompt_info": {"prompt_class": "Mine", **scale.as_json()}}]
        rank = {"one": case.ranking.index(doc_id) + 1} if doc_id in case.ranking else {}
        passages.append(passage("q", doc_id, sets, rank))
    write_lines(folder / "graded.jsonl", [["q", passages]])
    items = [
        {
            **{"query_id": "q", "question_id": item.item_id, "question_text": item.text},
            **{"importance": item.importance, "weight": item.weight},
        }
        for item in case.items
    ]
    write_lines(folder / "bank.jsonl", [{"query_id": "q", "query_text": "Why?", "items": items}])
    bank = str(folder / "bank.jsonl")
    main(["qrels", str(folder / "graded.jsonl"), "--bank", bank, "--per", "item", "-o", str(folder / "items.qrels")])
    lines = [f"q Q0 {doc} {rank} {-rank} one" for rank, doc in enumerate(case.ranking, 1)]
    (folder / "one.run").write_text("".join(f"{line}\n" for line in lines))


def scores(folder: Path, grades: str) -> object:
    """The exit code of `leaderboard`, and all values of the run."""
    measures = ["RubricCover@2", "nRubricCover", "NuggetA@1", "NuggetV(strict=True)", "NuggetW", "WeightedCover"]
    out, board = str(folder / f"{grades}.json"), Path(folder, f"{grades}.json")
    command = ["leaderboard", str(folder / grades), str(folder / "one.run"), "--bank", str(folder / "bank.jsonl")]
    code = main([*command, "-m", *measures, "--on-failed", "expected", "--format", "json", "--output", out])
    if not board.exists():
        return code
    rows = json.loads(board.read_text())["runs"]
    return code, {row["run_id"]: [cell["mean"] for cell in row["measures"].values()] for row in rows}
