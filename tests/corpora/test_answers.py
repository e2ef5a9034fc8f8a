"""Answers: cut into passages, counted, assigned nuggets; runs of questions."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubric_measures
from rubric_measures.base.errors import FormatError, InputError, UnknownNameError
from rubric_measures.cli import main
from rubric_measures.corpora.answers import Answer, answer_passages, say_missing, split_answer
from rubric_measures.corpora.pooling import pool
from rubric_measures.formats import detect_format
from rubric_measures.formats.answers import read_answers
from rubric_measures.types.entities import RubricItem, TestBank
from tests import matrices
from tests.shared_data import shared_data


@pytest.mark.parametrize(
    ("text", "max_words", "passages"),
    [
        ("One two. Three four five. Six.", 5, ["One two. Three four five.", "Six."]),
        ("One two. Three four five. Six.", 4, ["One two.", "Three four five. Six."]),
        ("One two. Three four five. Six.", 400, ["One two. Three four five. Six."]),
        ("One two? Three!\n\nFour five", 3, ["One two? Three!", "Four five"]),
        # Neither abbreviations nor a stop before a small letter end a sentence.
        ("Ask Dr. Who now. Not J. Smith.", 4, ["Ask Dr. Who now.", "Not J. Smith."]),
        ("See e.g. this one. Then stop.", 4, ["See e.g. this one.", "Then stop."]),
        ('He said "stop." Then he left.', 3, ['He said "stop."', "Then he left."]),
        ("a heading\n\nand text below", 3, ["a heading", "and text below"]),
        # A sentence that is too long is cut at words, and the rest of it stays with what follows.
        ("a b c d e f g. H i.", 3, ["a b c", "d e f", "g. H i."]),
        ("Go. a b c d. E.", 3, ["Go. a b", "c d. E."]),
        # Names of countries, times and authors go on; a list's numbers begin what follows.
        ("He led the U.S. Navy then. He left.", 5, ["He led the U.S. Navy", "then. He left."]),
        ("He led the U.S. Navy then. He left.", 6, ["He led the U.S. Navy then.", "He left."]),
        ("As Smith et al. Said it. Good.", 6, ["As Smith et al. Said it.", "Good."]),
        ("Open until 5 p.m. Monday to Friday. Good.", 7, ["Open until 5 p.m. Monday to Friday.", "Good."]),
        ("Two kinds:\n1. First one.\n2. Second one.", 5, ["Two kinds:\n1. First one.", "2. Second one."]),
        # Hindi, Urdu, Arabic, and Chinese, which has no blanks: two characters are a word.
        ("एक दो तीन। चार पाँच छह॥ सात।", 5, ["एक दो तीन।", "चार पाँच छह॥ सात।"]),
        ("ایک دو تین۔ چار پانچ چھ۔", 5, ["ایک دو تین۔", "چار پانچ چھ۔"]),
        ("ما هذا الشيء؟ هو كتاب كبير.", 5, ["ما هذا الشيء؟", "هو كتاب كبير."]),
        ("天地玄黄。宇宙洪荒！「日月盈昃？」", 4, ["天地玄黄。", "宇宙洪荒！", "「日月盈昃？」"]),
        # An abbreviation in the line before is not at the end of this one.
        ("Ask Mr.\nBo. Then go.", 3, ["Ask Mr.\nBo.", "Then go."]),
        # No end in sight: cut at blanks, and inside of what alone is too long.
        ("天地玄黄宇宙洪荒", 3, ["天地玄黄宇宙", "洪荒"]),
        ("a b c 天地玄黄宇宙洪荒 d", 3, ["a b c", "天地玄黄宇宙", "洪荒 d"]),
        ("a b 天地玄黄 c", 3, ["a b", "天地玄黄 c"]),
        ("x" * 120, 2, ["x" * 100, "x" * 20]),
        ("  \n ", 3, []),
        ("", 3, []),
    ],
)
def test_split(text: str, max_words: int, passages: list[str]) -> None:
    assert split_answer(text, max_words) == passages


@given(st.text("abA .!?…\n。।؟\"'”天กี1", max_size=80), st.integers(1, 6))
def test_no_word_is_lost_and_none_is_too_long(text: str, max_words: int) -> None:
    passages = split_answer(text, max_words)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert all(0 < len(passage.split()) <= max_words for passage in passages)


@pytest.mark.parametrize("mark", [".", "!", "…", "。", "॥", '."', "\n", " ", "\n ", "U.", "天", "1.\n", "[", "x"])
def test_answers_of_models_that_loop_are_cut_in_linear_time(mark: str) -> None:
    # Quadratic time would be an hour; whatever white space there is, nothing else is lost.
    text = "It loops" + mark * 100_000
    passages = split_answer(text)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert max(map(len, passages)) <= 400 * 51


def test_answers_in_sentences_are_cut_between_them_and_keep_their_citations() -> None:
    answer = Answer("q", "r", "A b. c D. E f g h.", ("A b.", "c D.", "E f g h."), (("d1",), (), ("d2", "d3")))
    assert answer_passages(answer, 4) == [
        Answer("q", "r", "A b. c D.", ("A b.", "c D."), (("d1",), ())),
        Answer("q", "r", "E f g h.", ("E f g h.",), (("d2", "d3"),)),
    ]
    # A sentence that is too long is cut, and then nobody can say what cites what.
    assert answer_passages(answer, 3) == [
        Answer("q", "r", "A b.", ("A b.",), (("d1",),)),
        Answer("q", "r", "c D.", ("c D.",), ((),)),
        Answer("q", "r", "E f g"),
        Answer("q", "r", "h."),
    ]
    with pytest.raises(InputError, match="passages of 0 words"):
        answer_passages(answer, 0)


def test_empty_and_missing_answers_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    say_missing([Answer("q1", "r", "words"), Answer("q2", "r", " "), Answer("q1", "s", "w")], ["q1", "q2"])
    assert caplog.messages == [
        "1 empty answer, which will score 0 (such as that of run r to query q2)",
        "1 missing answer, which will score 0 (such as that of run s to query q2)",
    ]


def test_answers_without_a_word_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    answers = [Answer("q1", "a", "words"), Answer("q2", "a", ""), Answer("q1", "b", " "), Answer("q2", "b", "")]
    say_missing(answers)
    assert "3 empty answers, which will score 0 (such as that of run a to query q2)" in caplog.messages
    # Empty answers are passages, too, and are shared.
    groups = list(pool([*answers, Answer("q2", "c", "")]))
    found = [(p.doc_id, p.text, [place.method for place in p.rankings]) for group in groups for p in group.passages]
    assert found == [
        ("a/q1/1", "words", ["a"]),
        ("b/q1/1", "", ["b"]),
        ("a/q2/1", "", ["a", "b", "c"]),
    ]
    assert groups == list(pool([Answer("q2", "c", ""), *answers[::-1]]))


SIX = [f"Nugget{which}(rel=2,{how})" for which in "VAW" for how in ("partial_rel=1", "strict=True")]
LABELS = ["support", "partial_support", "not_support"]


def _line(qid: Any, run: str | None, nuggets: list[tuple[str, str | None, str]], **more: Any) -> dict[str, Any]:
    row = {"qid": qid, "run_id": run, "answer_text": "a b c", **more}
    row["nuggets"] = [
        {"text": text, **({"importance": importance} if importance else {}), "assignment": label}
        for text, importance, label in nuggets
    ]
    return {key: value for key, value in row.items() if value is not None}


def _write(folder: Path, rows: list[Any], name: str = "assigned.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _random_rows(seed: int, runs: int = 4, queries: int = 6) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    rows = []
    for query in range(queries):
        # Query 0 has no vital nugget: V is 0, and in the mean.
        nuggets = [
            (f"fact {i}", draw.choice(["vital", "okay"]) if query else "okay") for i in range(draw.randint(1, 25))
        ]
        for run in range(runs):
            rows.append(_line(f"q{query}", f"r{run}", [(text, level, draw.choice(LABELS)) for text, level in nuggets]))
    draw.shuffle(rows)
    return rows


def _scores(path: Path, **options: Any) -> dict[str, dict[str, dict[str, float | None]]]:
    board = rubric_measures.score(rubric_measures.load(path, **options), measures=SIX, overall=False)
    return {run: dict(columns) for run, columns in board.values.items()}  # type: ignore[arg-type]


def test_labels_that_nobody_defined_are_failed_grades(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nuggets = [("x", "vital", "support"), ("y", "vital", "Supports it"), ("z", "vital", "not_support")]
    path = str(_write(tmp_path, [_line("q", "a", nuggets), _line("q", "b", nuggets[:1])]).relative_to(tmp_path))
    Path("a.run").write_text("q Q0 a 1 1 a\n")
    shown = [
        "-m",
        "NuggetV(strict=True)",
        "-p",
        "2",
        "--no-overall",
        "--format",
        "jsonl",
        "--on-failed",
        "expected",
    ]
    note = "1 label that nobody defined ('Supports it' 1) counts as failed"
    for command in (
        ("leaderboard", path, *shown),
        ("leaderboard", path, *shown, "--bank", path),
        ("qrels", path, "--per", "item"),
        ("evaluate", path, "a.run", "NuggetV(strict=True)", "--on-failed", "expected"),
        ("convert", path, "--to", "records", "-o", "records.jsonl"),
    ):
        # What failed is said by the exit code, of a conversion by the note alone.
        assert main([*command]) == (0 if command[0] == "convert" else 1)
        out, said = capsys.readouterr()
        assert said.count(note) == 1
        if command[0] == "leaderboard":
            # One of two known grades of a is support; b has one grade of three items, and it is support.
            assert '"NuggetV(rel=2,strict=True)": 0.5, ' in out
    assert main(["leaderboard", "records.jsonl", *shown, "--bank", path]) == 1
    assert '"NuggetV(rel=2,strict=True)": 0.5, ' in capsys.readouterr().out
    query = rubric_measures.load(path).queries["q"]
    assert [set(of) for of in matrices.lost(query).values()] == [{query.items[1].item_id}]
    with open(path) as stream:
        again = rubric_measures.load(stream).queries["q"]
    for read in (matrices.cells, matrices.lost):
        assert read(again) == read(query)


# In the pattern of files of TREC RAG 2024, which models wrote.
ODD = [
    _line(
        "t-1", "one",
        [("Bees dance", "vital", "support"), ("The angle", "vital", "established"), ("Others", "active learning", "no"),
         ("Others", "okay", "support")],
    ),
    _line("t-2", "one", [("The moon", "failed", "failed"), ("Twice a day", "vital", "not_support")]),
    _line("t-2", "two", [("The moon", "failed", "support"), ("Twice a day", "vital", "supporter")]),
]  # fmt: skip


def test_what_models_wrote_is_read_in_one_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = _write(tmp_path, ODD)
    grades = rubric_measures.load(path)
    assert len(grades.queries) == 2
    assert caplog.messages == [
        f"{path}: 3 labels that nobody defined ('established' 1, 'no' 1, 'supporter' 1) count as failed; 3 "
        "importances other than vital and okay ('failed' 2, 'active learning' 1) are none; 1 nugget comes twice for "
        "one answer, of which the first counts"
    ]
    first, second = grades.queries["t-1"], grades.queries["t-2"]
    assert [(item.text, item.importance) for item in first.items] == [
        ("Bees dance", "vital"), ("The angle", "vital"), ("Others", None),
    ]  # fmt: skip
    assert [len(of) for of in (matrices.lost(first)["one"], matrices.lost(second)["two"])] == [2, 1]
    # Written back as it was, and with what nuggetizer's metrics ask for where it goes through records.
    again = tmp_path / "again.jsonl"
    rubric_measures.convert(path, again, to="assignments")
    assert again.read_text() == path.read_text()
    bank, records = tmp_path / "bank.jsonl", tmp_path / "records.jsonl"
    rubric_measures.convert(path, bank, to="bank")
    rubric_measures.convert(path, records, to="records")
    rubric_measures.convert(records, again, to="assignments", bank=bank)
    rows = {(row["qid"], row["run_id"]): row for row in map(json.loads, again.read_text().splitlines())}
    assert [one["importance"] for one in rows["t-1", "one"]["nuggets"]] == ["vital", "vital", "active learning"]
    assert [one["importance"] for one in rows["t-2", "two"]["nuggets"]] == ["failed", "vital"]


def test_the_shared_odd_assignments_score_as_nuggetizer_scores_them() -> None:
    metrics = pytest.importorskip("nuggetizer.core.metrics")
    path = shared_data("conformance") / "nuggetizer.odd-assignments.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    names = ("NuggetV(strict=True)", "NuggetA(strict=True)", "NuggetV", "NuggetA")
    board = rubric_measures.score(path, measures=names, compat="nuggetizer", overall=False)
    for row in rows:
        theirs = metrics.calculate_nugget_scores(row["qid"], row["nuggets"])
        said = (theirs.strict_vital_score, theirs.strict_all_score, theirs.vital_score, theirs.all_score)
        assert [board.values[row["run_id"]][name][row["qid"]] for name in names] == list(said)
    assert len(rubric_measures.load(path).queries) == 2


def test_a_bank_is_the_denominator(tmp_path: Path) -> None:
    path = _write(tmp_path, [_line("q", "a", [("x", None, "support"), ("y", None, "partial_support")])])
    items = [
        RubricItem(f"q/{text}", "q", text, "nugget", importance=importance)
        for text, importance in (("y", "vital"), ("x", "okay"), ("z", "vital"))
    ]
    bank = TestBank({"q": tuple(items), "other": ()})
    # V: y 0.5 of 2 vital nuggets; A: (0.5 + 1) of 3; W: (0.5 + 0.5 · 1) / (2 + 0.5 · 1).
    found = _scores(path, bank=bank)["a"]
    assert tuple(found[f"Nugget{which}(rel=2,partial_rel=1)"]["q"] for which in "VAW") == (0.25, 0.5, 0.4)
    with pytest.raises(InputError, match=r"assigned.jsonl:1: the test bank has no 'x'"):
        rubric_measures.score(rubric_measures.load(path, TestBank({"q": tuple(items[:1])})))
    with pytest.raises(UnknownNameError, match="unknown query 'q'"):
        rubric_measures.score(rubric_measures.load(path, TestBank({})))


def test_of_two_items_of_one_text_the_first_is_the_one_that_was_assigned(tmp_path: Path) -> None:
    path = _write(tmp_path, [_line("q", "a", [("x", None, "support")])])
    items = [
        RubricItem(f"q/{number}", "q", "x", "nugget", importance=importance)
        for number, importance in enumerate(("vital", "okay"))
    ]
    found = _scores(path, bank=TestBank({"q": tuple(items)}))["a"]
    # V: the one vital nugget; A: one of two.
    assert [found[f"Nugget{which}(rel=2,strict=True)"]["q"] for which in "VA"] == [1.0, 0.5]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty"),
        ([_line("q", "a", [("x", None, "support")])] * 2, ":2: run 'a' has answered query 'q' before"),
        ([_line("q", "", [("x", None, "support")])], ":1: run_id: names no run"),
        ([_line("q", "a", [(" ", None, "support")])], ":1: nuggets[0].text: "),
        (
            [_line("q", "a", [("x", "vital", "support")]), _line("q", "b", [("x", "okay", "support")])],
            ":2: 'x' of query 'q' has two weights or importances in two answers",
        ),
        (
            [{"qid": "q", "run_id": "a", "answer_text": "", "nuggets": [{"text": ["x"], "assignment": "support"}]}],
            ":1: ",
        ),
        ([[1]], ":1: "),
        ([{}], ":1: "),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path: Path, rows: list[Any], message: str) -> None:
    path = _write(tmp_path, rows)
    with pytest.raises(InputError) as error:
        rubric_measures.score(path)
    assert message in str(error.value) and str(error.value).startswith(str(path))


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_exact_fractions_whatever_the_order_of_lines(tmp_path: Path, seed: int) -> None:
    rows = _random_rows(seed)
    found = _scores(_write(tmp_path, rows))
    assert found == _scores(_write(tmp_path, rows[::-1], "reversed"))
    credit = {"support": Fraction(1), "partial_support": Fraction(1, 2), "not_support": Fraction(0)}
    for row in rows:
        for strict in (False, True):
            got = [int(credit[n["assignment"]]) if strict else credit[n["assignment"]] for n in row["nuggets"]]
            weights = {
                "V": [Fraction(n["importance"] == "vital") for n in row["nuggets"]],
                "A": [Fraction(1) for _ in row["nuggets"]],
                "W": [Fraction(1) if n["importance"] == "vital" else Fraction(1, 2) for n in row["nuggets"]],
            }
            for which, weight in weights.items():
                total = sum(weight)
                expected = sum(w * g for w, g in zip(weight, got, strict=True)) / total if total else 0
                name = f"Nugget{which}(rel=2,{'strict=True' if strict else 'partial_rel=1'})"
                value = found[row["run_id"]][name][row["qid"]]
                assert value == pytest.approx(float(expected), abs=1e-12)


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
