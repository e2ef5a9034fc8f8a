"""Two versions of answers: facts gained, lost and unsure, what is not comparable, and what is graded again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.models.base import Request
from tests.example_records import bank_from_items
from tests.function_backend import FunctionBackend

FACTS = {"tea": ("water is hot", "leaves steep", "milk is optional"), "ink": ("ink is dark", "ink is wet")}
BANK = bank_from_items(
    [
        rubric_measures.RubricItem(f"{query}/{fact}", query, fact, "nugget", importance="vital")
        for query, facts in FACTS.items()
        for fact in facts
    ],
    {"tea": "What is tea?", "ink": "What is ink?"},
)


def rows(system: str, **said: str) -> list[dict[str, str]]:
    return [
        {"query_id": query, "question": BANK.query_texts[query], "system": system, "answer": answer}
        for query, answer in said.items()
    ]


def evaluated(answers: Any, model: Any = "lexical", **options: Any) -> Any:
    return rubric_measures.evaluate_answers(answers, model=model, bank=options.pop("bank", BANK), **options)


OLD = rows("old", tea="Water is hot. Leaves steep.", ink="Ink is dark.")
NEW = rows("new", tea="Water is hot. Milk is optional.", ink="Ink is dark.")


def states(diff: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in diff.rows:
        found.setdefault(row.state, []).append(row.item.text)
    return found


def test_every_fact_has_a_state_and_lost_ones_come_first() -> None:
    diff = evaluated(NEW).against(evaluated(OLD))
    assert list(states(diff).items()) == [
        ("lost", ["leaves steep"]),
        ("gained", ["milk is optional"]),
        ("missed by both", ["ink is wet"]),
        ("covered by both", ["water is hot", "ink is dark"]),
    ]
    [line, said, _, _, first, *_] = str(diff).split("\n")
    assert line == "NuggetV(rel=4,partial_rel=3)  old → new  +0.000   1 fact gained, 1 lost, 1 missed by both"
    assert said == "new against old: the same on every query"
    assert first.startswith("lost")
    assert (diff.worse, diff.left_out) == ([], ())
    # The scores are those of the boards.
    pair = diff.runs[0].comparison.means
    assert pair == {"new": pytest.approx(7 / 12), "old": pytest.approx(7 / 12)}  # (2/3 + 1/2) / 2


def test_versions_in_memory_whose_folder_is_written_anew(tmp_path: Path) -> None:
    old = evaluated(OLD, output=tmp_path)
    diff = evaluated(NEW, output=tmp_path, against=old).diff
    assert states(diff) == states(evaluated(NEW).against(evaluated(OLD)))
    assert states(evaluated([*OLD, *NEW]).against("old")) == states(diff)


def test_a_question_without_an_answer_loses_its_facts() -> None:
    for answers in (NEW[:1], [NEW[0], *rows("new", ink=" ")]):
        diff = evaluated(answers).against(evaluated(OLD))
        assert states(diff)["lost"] == ["leaves steep", "ink is dark"]
        assert diff.runs[0].comparison.means["new"] == pytest.approx(1 / 3)  # (2/3 + 0) / 2
    assert evaluated(NEW[:1]).against(evaluated(OLD)).left_out == (
        "1 question without an answer now (such as ink): their facts are lost",
    )
    diff = evaluated(NEW).against(evaluated(OLD[:1]))
    assert diff.left_out == ("not compared: 1 question that nobody was asked before (such as ink)",)
    assert len(diff.rows) == 3


def test_a_failed_grade_is_unsure_and_no_difference(tmp_path: Path) -> None:
    rules = [
        {"contains": ["Milk is optional.", "leaves steep"], "reply": "no idea"},
        {"contains": ["ink is"], "reply": "5"},
        {"reply": "5"},
    ]
    model = tmp_path / "model.jsonl"
    model.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    new, old = (evaluated(rows, f"scripted:{model}", on_failed="zero") for rows in (NEW, OLD))
    diff = new.against(old)
    assert states(diff)["unsure"] == ["leaves steep"]
    assert "1 unsure" in str(diff)
    assert diff.runs[0].pair.test.mean_difference == 0
    # The command ends with 1, and so no test passes.
    for check in (lambda: new.assert_not_worse(old), lambda: new.assert_at_least("NuggetV", 0.1)):
        with pytest.raises(AssertionError, match="grades failed, and no test passes without them"):
            check()


def test_what_is_not_comparable_is_named(tmp_path: Path) -> None:
    old = evaluated(OLD)
    fewer = rubric_measures.TestBank({**BANK.items, "ink": BANK.items["ink"][:1]}, BANK.query_texts)
    with pytest.raises(InputError, match=r"another bank; 1 question \(such as ink\) had other facts before"):
        evaluated(NEW, bank=fewer).against(old)
    model = tmp_path / "model.jsonl"
    model.write_text('{"reply": "5"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"the grader has another model \(lexical:1 before, scripted"):
        evaluated(NEW, f"scripted:{model}").against(old)
    # Whoever would be compared is not paid before.
    paid = FunctionBackend(lambda _: "5")
    with pytest.raises(InputError, match=r"another model \(lexical:1 before, function:test now\)"):
        evaluated(NEW, paid, against=old)
    with pytest.raises(InputError, match="another bank; 1 question"):
        evaluated(NEW, paid, bank=fewer, against=evaluated(OLD, FunctionBackend(lambda _: "5")))
    assert paid.seen == []
    with pytest.raises(InputError, match="no question in common"):
        evaluated(NEW[:1]).against(evaluated(OLD[1:]))


def test_runs_are_paired_by_name_or_as_the_only_ones() -> None:
    two = [*OLD, *NEW]
    diff = evaluated(two).against(evaluated(OLD))
    assert [(run.before, run.after) for run in diff.runs] == [("old before", "old")]
    assert diff.left_out == ("not compared: new (new)",)
    one = evaluated(two)
    assert [(run.before, run.after) for run in one.against(evaluated(OLD), "new").runs] == [("old", "new")]
    with pytest.raises(UnknownNameError):
        one.against(evaluated(OLD), "newer")
    with pytest.raises(InputError, match="a, b: none to compare with old, new; give runs the same names"):
        evaluated([*rows("a", tea="x"), *rows("b", tea="x")]).against(one)


def test_of_several_runs_each_says_less() -> None:
    """Two runs that are tested have two chances to be red for nothing."""
    items = [rubric_measures.RubricItem(f"q{n}/{word}", f"q{n}", word, "nugget", importance="vital")
             for n in range(8) for word in ("red", "blue", "green")]  # fmt: skip
    bank = bank_from_items(items, {f"q{n}": f"Which {n}?" for n in range(8)})

    def answers(*lost: int) -> list[dict[str, str]]:
        said = ["red blue" if n in lost else "red blue green" for n in range(8)]
        return [{"query_id": f"q{n}", "question": f"Which {n}?", "answer": answer} for n, answer in enumerate(said)]

    old, new = answers(), answers(0, 1)
    alone = evaluated(new, bank=bank).against(evaluated(old, bank=bank)).runs[0].pair.test
    sides = ([{**row, "system": system} for system in "ab" for row in side] for side in (new, old))
    after, before = (evaluated(side, bank=bank) for side in sides)
    both = after.against(before).runs[0].pair.test
    assert both.mean_difference == alone.mean_difference == pytest.approx(-1 / 12)
    # Student's t with seven degrees of freedom at 0.025 instead of 0.05.
    assert (both.high - both.low) / (alone.high - alone.low) == pytest.approx(2.8412 / 2.3646, rel=1e-4)


def test_a_table_is_graded_in_the_same_call_and_a_run_is_found_in_it(tmp_path: Path) -> None:
    for name, of in (("main", OLD), ("candidate", NEW)):
        lines = [json.dumps({**row, "system": "prod"}) + "\n" for row in of]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    made = evaluated(tmp_path / "candidate.jsonl", against=tmp_path / "main.jsonl", output=tmp_path / "r")
    assert (made.runs, set(made.board.cells)) == (("prod",), {"prod", "prod before"})
    assert str(made.diff).startswith("NuggetV(rel=4,partial_rel=3)  prod before → prod  +0.000")
    page = (tmp_path / "r" / "index.html").read_text(encoding="utf-8")
    assert "<h3>Facts lost (1)</h3>" in page
    made = evaluated([*OLD, *NEW], against="old")
    assert states(made.diff)["gained"] == ["milk is optional"]
    with pytest.raises(InputError, match="old: none to compare with old"):
        evaluated(OLD, against="old")


def test_a_folder_is_a_baseline_that_stays(tmp_path: Path) -> None:
    evaluated(OLD, output=tmp_path / "main")
    # Its bank is used.
    made = evaluated(NEW, bank=None, against=tmp_path / "main", output=tmp_path / "new")
    assert states(made.diff)["lost"] == ["leaves steep"]
    # Else a job that is run again has nothing to find.
    with pytest.raises(InputError, match=r"main would be replaced, and the next run would compare answers with them"):
        evaluated(NEW, against=tmp_path / "main", output=tmp_path / "new" / ".." / "main")
    shutil.copytree(tmp_path / "main", tmp_path / "half")
    (tmp_path / "half" / "board.json").unlink()
    with pytest.raises(InputError, match=r"half has no board.json"):
        evaluated(NEW, against=tmp_path / "half")


SHORT = """
name = "Short"
target = "nugget"
parser = "rating"
scale = [0, 5]
covers = 4
text = "{nugget} | {context}"
"""


def test_only_what_changed_is_graded_again_and_counts_where_all_agree(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []
    seen = set[tuple[str, str]]()

    def reply(request: Request) -> str:
        fact, answer = request.messages[-1].content.split(" | ")
        is_there = fact in answer.lower()
        # The first grade of this fact in the new answer is wrong.
        if fact == "water is hot" and "Milk" in answer and (fact, answer) not in seen:
            is_there = False
        asked.append((fact, answer))
        seen.add(asked[-1])
        return "5" if is_there else "0"

    model: Any = FunctionBackend(reply)
    path = tmp_path / "short.toml"
    path.write_text(SHORT, encoding="utf-8")
    options: dict[str, Any] = {"prompt": str(path)}
    old, new = evaluated(OLD, model, **options), evaluated(NEW, model, **options)
    assert states(new.against(old))["lost"] == ["water is hot", "leaves steep"]
    asked.clear()
    diff = new.against(old, confirm=2)
    assert states(diff)["lost"] == ["leaves steep"]
    assert states(diff)["unsure"] == ["water is hot"]
    # Three facts, two answers, twice.
    assert len(asked) == 12
    assert {item for item, _ in asked} == {"water is hot", "leaves steep", "milk is optional"}
    assert diff.runs[0].pair.test.mean_difference == pytest.approx(0)


def test_a_change_whose_second_grade_fails_is_unsure(tmp_path: Path) -> None:
    """A grade that failed agrees with nothing; else a model that is down would confirm every loss."""
    is_down = False

    def reply(request: Request) -> str:
        fact, answer = request.messages[-1].content.split(" | ")
        # What lacks the fact cannot be graded then: the answer that lost it.
        return "5" if fact in answer.lower() else "I cannot say." if is_down else "0"

    path = tmp_path / "short.toml"
    path.write_text(SHORT, encoding="utf-8")
    model: Any = FunctionBackend(reply)
    only = rubric_measures.TestBank({"tea": BANK.items["tea"][:2]}, {"tea": "What is tea?"})
    asked: dict[str, Any] = {"prompt": str(path), "bank": only}
    old = evaluated(rows("old", tea="Water is hot. Leaves steep."), model, **asked)
    new = evaluated(rows("new", tea="Water is hot."), model, **asked)
    assert states(new.against(old, confirm=1))["lost"] == ["leaves steep"]

    is_down = True
    assert states(new.against(old, confirm=1)) == {"unsure": ["leaves steep"], "covered by both": ["water is hot"]}


def test_a_test_fails_with_the_facts_that_were_lost() -> None:
    facts = {f"q{number}": [f"fact{number} alpha", f"other{number} beta"] for number in range(12)}
    bank = bank_from_items(
        [
            rubric_measures.RubricItem(f"{query}/{text}", query, text, "nugget", importance="vital")
            for query, texts in facts.items()
            for text in texts
        ],
        {query: f"Why {query}?" for query in facts},
    )

    def answers(count: int) -> list[dict[str, str]]:
        said = {query: ". ".join(texts[: 1 if int(query[1:]) < count else 2]) for query, texts in facts.items()}
        return [{"query_id": query, "question": f"Why {query}?", "answer": text} for query, text in said.items()]

    old = evaluated(answers(0), bank=bank)
    evaluated(answers(2), bank=bank).assert_not_worse(old)
    with pytest.raises(AssertionError) as caught:
        evaluated(answers(8), bank=bank).assert_not_worse(old)
    said = str(caught.value)
    assert "0 facts gained, 8 lost" in said and "other7 beta" in said and "against answers before: worse by" in said


def test_a_comment_has_room_for_the_lost_facts_first() -> None:
    diff = evaluated(NEW).against(evaluated(OLD))
    said = diff.markdown()
    assert said.startswith("**NuggetV(rel=4,partial_rel=3)  old → new")
    assert [line.split("|")[1].strip() for line in said.split("\n") if line.startswith("|")][2:] == [
        "lost", "gained",
    ]  # fmt: skip
    short = diff.markdown(len(said) - 10)
    assert len(short) < len(said) - 10
    assert short.endswith("and 1 more fact\n") or "more facts" in short
