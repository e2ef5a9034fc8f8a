"""Grading as users do it, behind HTTP: the command line and a loopback server; options, models that think, reasons."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Calls
from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank, write_bank
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    QueryPassages,
    grade_of_items,
    load_graded,
    write_graded,
)
from rubric_measures.types.entities import ItemKind, RubricItem
from tests.example_records import bank_from_items
from tests.fault_server import Running, running
from tests.function_backend import FunctionBackend

pytest.importorskip("openai")
pytest.importorskip("aiohttp")

RATING = "QuestionSelfRatedUnanswerablePromptWithChoices"
VERIFIED = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"


@contextlib.contextmanager
def model(folder: Path, *rules: dict[str, Any], **settings: object) -> Iterator[Running]:
    """A server whose model answers by rules."""
    replies = folder / "replies.jsonl"
    replies.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    with running(replies=replies, **settings) as server:
        yield server


def says(reply: str | list[str], *contains: str) -> dict[str, Any]:
    return {"contains": list(contains), "reply": reply}


def write_passages(folder: Path, **texts: str) -> str:
    """Passages by id; those of q2 have a 2 in front."""
    groups: dict[str, list[GradedPassage]] = {"q1": [], "q2": []}
    for doc_id, text in texts.items():
        groups["q2" if doc_id.startswith("second") else "q1"].append(GradedPassage(doc_id=doc_id, text=text))
    path = folder / "passages.jsonl.gz"
    write_graded(path, [QueryPassages(query_id, found) for query_id, found in groups.items() if found])
    return str(path)


def write_items(folder: Path, *texts: str, kind: ItemKind = "question", gold: tuple[str, ...] = ()) -> str:
    items = [RubricItem(f"q1/{text}", "q1", text, kind, gold_answers=gold) for text in texts]
    path = folder / "bank.jsonl"
    write_bank(path, bank_from_items(items, {"q1": "leap years"}))
    return str(path)


def endpoint(server: Running, name: str = "m", **options: object) -> list[str]:
    more = [part for key, value in options.items() for part in ("--model-option", f"{key}={value}")]
    return ["--model", f"openai:{name}", "--base-url", server.url, *more]


def sets(path: Path | str) -> dict[str, ItemGradeSet]:
    """Passage -> its only grade set."""
    found = {}
    for group in load_graded(path):
        for passage in group.passages:
            [found[passage.doc_id]] = passage.exam_grades or ()
    return found


def grades(path: Path | str) -> dict[str, dict[str, int]]:
    """Passage -> text of the item -> grade (the ids of the test banks here end with the text)."""
    return {
        doc_id: {item_id.rpartition("/")[2]: grade for item_id, grade in grade_of_items(entry).items()}
        for doc_id, entry in sets(path).items()
    }


def prompts_of(server: Running) -> list[str]:
    return list(server.stats()["order"])


def test_from_queries_to_a_leaderboard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.tsv").write_text("q1\twhy leap years\nq2\twhy tides\n", encoding="utf-8")
    passages = write_passages(tmp_path, sun="about the sun", pope="about a pope", second_moon="about the moon")
    (tmp_path / "one.run").write_text("q1 Q0 sun 1 2.0 one\nq2 Q0 second_moon 1 1.0 one\n")
    (tmp_path / "two.run").write_text("q1 Q0 pope 1 2.0 two\n")
    rules = [
        says(
            '```json\n{"questions": ["How long?", "Who rules?", "how LONG"]}\n```', "Break the query 'why leap years'"
        ),
        says('Here they are: ["Which force?", "How high?"]', "Break the query 'why tides'"),
        says("5", "How long?", "about the sun"),
        says("Rating: 4", "Who rules?", "about a pope"),
        says("4: The answer is mostly there.", "Which force?"),
        says("1", "Question:"),
    ]
    bank, out = str(tmp_path / "bank.jsonl.gz"), str(tmp_path / "graded.jsonl.gz")
    with model(tmp_path, *rules) as server:
        made = ["generate", str(tmp_path / "queries.tsv"), *endpoint(server), "-o", bank]
        assert main(made) == 0
        assert "1 generated question left out: the same text was there already" in capsys.readouterr().err
        texts = {item.text for item in load_bank(bank)}
        assert texts == {"How long?", "Who rules?", "Which force?", "How high?"}
        assert main(["grade", passages, "--bank", bank, *endpoint(server), "-o", out]) == 0
        calls = server.stats()["calls"]
    # 2 queries, then 2 passages × 2 items and 1 × 2.
    assert calls == 2 + 6
    runs = [str(tmp_path / "one.run"), str(tmp_path / "two.run")]
    capsys.readouterr()
    assert main(["leaderboard", out, *runs, "--bank", bank, "-m", "RubricCover(rel=4)@20", "--format", "json"]) == 0
    rows = {row["run_id"]: row["measures"] for row in json.loads(capsys.readouterr().out)["runs"]}
    # one: q1 covers "How long?" of two, q2 "Which force?" of two; two: q1 covers "Who rules?", q2 is not answered.
    means = {run: rows[run]["RubricCover(rel=4)@20"]["mean"] for run in ("one", "two")}
    assert means == {"one": 0.5, "two": 0.25}


OWN = """
name = "Coverage4"
target = "question"
parser = "rating"
scale = [0, 4]
covers = 3
citation = "ours, 2026"
system = "You grade passages."
text = '''
How much of the answer is there? 0 is nothing, 4 is all.
Question: {question}
Passage: {context}
End with one line "Grade: N".'''
"""


def test_a_prompt_on_a_scale_to_10_is_graded_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = tmp_path / "ten.toml"
    text = OWN.replace("Coverage4", "Ten").replace("[0, 4]\ncovers = 3", "[0, 10]\ncovers = 7\npartial = 4")
    prompt.write_text(text.replace("4 is all", "10 is all"), encoding="utf-8")
    replies = {
        "sun": ("7", 7), "pope": ("10", 10), "sea": ("It says most of it.\nGrade: 8/10", 8),
        "list": ('1. It names 3 of 12.\n2. It is short.\n\nOn a scale of 0 to 10, I rate it 4.', 4),
        "law": ("Grade: 10 out of 10.", 10), "art": ("0", 0),
        # Another scale, more than all, and words that end in a number word.
        "war": ("4/5", None), "gas": ("11", None), "ice": ("I give it seventy five.", None),
    }  # fmt: skip
    passages = write_passages(tmp_path, **{name: f"about {name}." for name in replies})
    bank, out = write_items(tmp_path, "How long?"), tmp_path / "graded.jsonl"
    rules = [says(reply, f"about {name}.") for name, (reply, _) in replies.items()]
    with model(tmp_path, *rules) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server), "--prompt", str(prompt), "-o", str(out)]
        assert main(command) == 1
    said = capsys.readouterr().err
    assert "11 is no grade of the scale 0 to 10 (1)" in said and "4 of 5 is not on the scale 0 to 10 (1)" in said
    read = {name: grade for name, (_, grade) in replies.items() if grade is not None}
    assert grades(out) == {name: {"How long?": read[name]} if name in read else {} for name in replies}
    run = tmp_path / "one.run"
    run.write_text("".join(f"q1 Q0 {name} {rank} {9 - rank} one\n" for rank, name in enumerate(("list", "sun"), 1)))
    board = ["leaderboard", str(out), str(run), "--bank", bank, "--no-overall", "--format", "tsv"]
    assert main([*board, "--on-failed", "zero", "-m", "RubricCover@1", "NuggetA@1", "RubricCover@2"]) == 0
    header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines()[:2])
    cells = dict(zip(header, row, strict=True))
    # At rank 1 stands what is partial.
    expected = {"RubricCover(rel=7)@1": "0.0000", "NuggetA(rel=7,partial_rel=4)@1": "0.5000"}
    assert {**expected, "RubricCover(rel=7)@2": "1.0000"}.items() <= cells.items()
    assert main(["qrels", str(out), "--bank", bank, "-o", str(tmp_path / "made.qrels")]) == 1
    labels = [line.split() for line in (tmp_path / "made.qrels").read_text().splitlines()]
    assert {doc_id: int(label) for _, _, doc_id, label in labels if doc_id in read} == read
    assert main(["convert", str(out), "-o", str(tmp_path / "grades.csv")]) == 0
    assert ",10" in (tmp_path / "grades.csv").read_text()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("scale = [0, 4]\ncovers = 3", "", "parser rating, covers and partial need a scale"),
        ('target = "question"', "target = question", "is no TOML"),
        ('name = "Coverage4"', 'name = "Thomas"', "Thomas is the name of another prompt"),
    ],
)
def test_what_is_wrong_with_a_prompt_is_one_line_and_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, expected: str
) -> None:
    prompt = tmp_path / "own.toml"
    prompt.write_text(OWN.replace(old, new), encoding="utf-8")
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?")
    command = ["grade", passages, "--bank", bank, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1"]
    assert main([*command, "--prompt", str(prompt), "-o", str(tmp_path / "o.jsonl")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"rubric_measures: {prompt}:") and expected in said
    assert said.count("\n") == 1
    assert not list(tmp_path.glob("o.jsonl*"))


pytest.importorskip("openai")
pytest.importorskip("aiohttp")


QUESTION = "Where in this very long passage is the needle that everybody looks for?"


def test_long_passages_are_graded_in_chunks_and_the_question_is_whole(tmp_path: Path) -> None:
    hay = " ".join(f"straw{number}" for number in range(400))
    passages = write_passages(tmp_path, long=f"{hay} NEEDLE {hay}", short="a NEEDLE")
    bank = write_items(tmp_path, QUESTION)
    with model(tmp_path, says("5", "NEEDLE"), says("0", "straw")) as server:
        # A token is four characters here; the prompt's own text and the reply leave room for about 200 of 500.
        command = ["grade", passages, "--bank", bank, *endpoint(server, context_tokens=500), "--prompt", RATING]
        assert main([*command, "-o", str(tmp_path / "chunk.jsonl")]) == 0
        chunks = [text for text in prompts_of(server) if "straw" in text]
        shown = prompts_of(server)
    # Whatever became of the passage, the question was whole, and nothing was longer than the model takes.
    assert all(QUESTION in text and len(text) <= 4 * (500 - 64) for text in shown)
    assert {word for text in chunks for word in text.split() if word.startswith("straw")} == set(hay.split())
    assert len(chunks) > 3
    assert grades(tmp_path / "chunk.jsonl") == {"long": {QUESTION: 5}, "short": {QUESTION: 5}}


def test_costs_are_known_before_and_unknown_ones_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_passages(tmp_path, sun="the sun", moon="a moon"), write_items(tmp_path, "How long?")
    prices = tmp_path / "prices.json"
    with model(tmp_path, says("5", "the sun"), says("2", "a moon")) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server), "-o", str(tmp_path / "o.jsonl")]

        def planned(*more: str) -> dict[str, str]:
            assert main([*command, "--dry-run", *more]) == 0
            header, row = capsys.readouterr().out.splitlines()
            return dict(zip(header.split("\t"), row.split("\t"), strict=True))

        assert planned()["cost_at_most"] == "-"
        prices.write_text('{"another-model": {"input": 1, "output": 1}}')
        assert planned("--prices", str(prices))["cost_at_most"] == "-"
        prices.write_text('{"m": {"input": 1000, "output": 10000}}')
        found = planned("--prices", str(prices))
        # Two calls of at most 64 tokens each: 2 * 64 / 100; the tokens shown are a thousandth each.
        assert float(found["cost_of_calls"]) == pytest.approx(1.28 + int(found["prompt_tokens"]) / 1000)
        # Each reply may be cut, unreadable with four times the tokens, and is then drawn again once: thrice what
        # is shown, and 64 + 256 + 256 tokens written.
        most = 3 * int(found["prompt_tokens"]) / 1000 + 2 * (64 + 256 + 256) / 100
        assert float(found["cost_at_most"]) == pytest.approx(most, abs=1e-3)
        assert server.stats()["calls"] == 0
        assert main([*command, "--passages-per-query", "1"]) == 0
        capsys.readouterr()
        assert (planned()["calls"], planned()["cached"]) == ("1", "1")
        assert main([*command, "--max-cost", "1"]) == 2
        assert "a limit on the cost needs a price" in capsys.readouterr().err
        # One call costs 11 / 1000 + 3 / 100 = 0.041.
        more = ["--prices", str(prices), "--cache", str(tmp_path / "other")]
        assert main([*command, *more, "--max-cost", "0.05"]) == 1
        assert "the limit of 0.05 on the cost was reached" in capsys.readouterr().err
    manifest = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())
    assert manifest["calls"]["cost"] == pytest.approx(0.041)
    assert manifest["statuses"] == {"failed": 1, "graded": 1}


def test_a_dry_run_counts_checks_and_guesses_no_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each extracted answer is checked against forty gold answers, and the checks show it."""
    verified = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"
    passages = write_passages(tmp_path, sun="about the sun", moon="about the moon")
    bank = write_items(tmp_path, "How long?", "Who?", gold=tuple(f"answer number {number}" for number in range(40)))
    prices = tmp_path / "prices.json"
    prices.write_text('{"m": {"input": 1000, "output": 1000}}')
    with model(tmp_path, says("no idea", "correct"), says("some thing", "")) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server), "--prompt", verified, "--retries", "2"]
        command += ["--prices", str(prices), "-o", str(tmp_path / "o.jsonl")]
        assert main([*command, "--dry-run"]) == 0
        header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
        found = dict(zip(header, row, strict=True))
        assert (found["calls"], found["checks_at_most"]) == ("4", "160")
        assert server.stats()["calls"] == 0
        main(command)
    paid = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())["calls"]
    # Four answers, equal in both passages, and for each gold answer a check that is unreadable and drawn twice again.
    assert paid["made"] == 4 + 2 * 40 * 3
    assert float(found["cost_of_calls"]) < paid["cost"] and not found["cost_at_most"].strip("-")


def test_answers_that_say_no_tokens_have_no_known_cost(tmp_path: Path) -> None:
    """A price does not help there: nothing is taken for free because nobody counted."""
    (tmp_path / "prices.json").write_text('{"function:test": {"input": 1, "output": 1}}')
    passages, bank, out = write_passages(tmp_path, sun="x"), write_items(tmp_path, "How long?"), tmp_path / "o.jsonl"
    calls = Calls(prices=str(tmp_path / "prices.json"))
    rubric_measures.grade(passages, bank, model=FunctionBackend(lambda _: "4"), calls=calls, output=out)
    paid = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())["calls"]
    assert (paid["made"], paid["prompt_tokens"], paid["cost"]) == (1, 0, None)


def test_an_endpoint_that_accepts_no_call_ends_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages = write_passages(tmp_path, **{f"a{number}": f"text {number}" for number in range(300)})
    bank, out = write_items(tmp_path, "Item?"), tmp_path / "o.jsonl"
    with model(tmp_path, says("4", ""), accepts_for=0) as server:
        assert main(["grade", passages, "--bank", bank, *endpoint(server), "-o", str(out)]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "100 calls in a row failed: HTTP 403" in said
        assert not out.exists()
        assert server.stats()["calls"] < 200


pytest.importorskip("openai")
pytest.importorskip("aiohttp")

RULES = [says("4", "How long?"), says("1", "Who rules?")]
EXPECTED = {f"p{number}": {"How long?": 4, "Who rules?": 1} for number in range(10)}


def inputs(folder: Path) -> list[str]:
    passages = write_passages(folder, **{f"p{number}": f"passage {number}." for number in range(10)})
    return ["grade", passages, "--bank", write_items(folder, "How long?", "Who rules?")]


def details(entry: ItemGradeSet) -> dict[str, Any]:
    return entry.details or {}


@pytest.mark.parametrize("shows", ["reasoning_content", "think", ""])
def test_a_model_that_thinks_is_graded_with_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shows: str
) -> None:
    """It takes no temperature, calls the longest reply by its newer name, and thinks for 900 tokens."""
    out, prices = tmp_path / "out.jsonl", tmp_path / "prices.json"
    # 1 for a token shown, 10 for one written.
    prices.write_text('{"warm": {"input": 1e6, "output": 1e7}}')
    with model(tmp_path, *RULES, renamed=1, thoughts=900, shows_thoughts=shows) as server:
        command = [*inputs(tmp_path), *endpoint(server, "warm"), "-o", str(out), "--prices", str(prices)]
        assert main(command) == 0
        # Two refusals and a cut reply are how it becomes known; then each grade is one call.
        assert server.stats()["calls"] == 3 + 20
        said = capsys.readouterr().err
        assert said.count("takes no temperature of ours") == 1 and "truncated" not in said
        first, calls = out.read_bytes(), json.loads((tmp_path / "out.jsonl.manifest.json").read_text())["calls"]
        assert main(command) == 0
        assert server.stats()["calls"] == 3 + 20
    assert grades(out) == EXPECTED
    assert out.read_bytes() == first
    entry = sets(out)["p3"]
    assert dict(entry.answers) == {"q1/How long?": "4", "q1/Who rules?": "1"}
    kept = {item_id: str(found.get("thinking", "")) for item_id, found in details(entry).items()}
    assert all(thoughts.startswith("Maybe 2.") for thoughts in kept.values()) and len(kept) == (2 if shows else 0)
    # The reply that was cut was paid for as well: 11 tokens shown, 64 written.
    assert (calls["made"], calls["prompt_tokens"], calls["completion_tokens"]) == (20, 20 * 11 + 11, 20 * 903 + 64)
    assert (calls["reasoning_tokens"], calls["prefix_tokens"]) == (20 * 900, 20 * 8)
    assert calls["left_out"] == {"temperature": 20}
    # 231 shown, 18,124 written.
    assert calls["cost"] == pytest.approx(231 + 18_124 * 10)


def test_a_limit_on_the_cost_holds_for_a_model_that_thinks(tmp_path: Path) -> None:
    """By its longest reply a call costs some 1,400 at most, so all 20 would fit; with its thoughts it costs 9,041."""
    out, prices = tmp_path / "out.jsonl", tmp_path / "prices.json"
    prices.write_text('{"warm": {"input": 1e6, "output": 1e7}}')
    with model(tmp_path, *RULES, renamed=1, thoughts=900) as server:
        command = [*inputs(tmp_path), *endpoint(server, "warm"), "-o", str(out), "--prices", str(prices)]
        assert main([*command, "--max-cost", "30000"]) == 1
    paid = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())["paid"]
    # The first call was cut once, for 651.
    assert (paid["made"], paid["cost"]) == (3, pytest.approx(3 * 9_041 + 651))


def test_a_reply_that_is_cut_is_asked_for_once_more_with_four_times_the_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    with model(tmp_path, *RULES, thoughts=150) as server:
        # Without room to think it is the longest reply that has to do: 64, then 256.
        options = endpoint(server, thinking_tokens=0)
        command = [*inputs(tmp_path), *options, "-o", str(out)]
        assert main(command) == 0
        assert server.stats()["calls"] == 2 * 20
        assert main([*command, "--max-calls", "0"]) == 0
        assert grades(out) == EXPECTED
        assert {found["max_tokens"] for found in details(sets(out)["p0"]).values()} == {256}
        capsys.readouterr()
        # Four times 20 is not enough either: truncated, after two calls each, which are in the cache.
        short = [*inputs(tmp_path), *options, "--max-tokens", "20", "-o", str(tmp_path / "short.jsonl")]
        for calls in (40, 0):
            before = server.stats()["calls"]
            assert main(short) == 1
            assert server.stats()["calls"] == before + calls
            assert "20 of 20 are not graded: 20 truncated; replies that were cut need" in capsys.readouterr().err
        # Without retries it is asked once.
        before = server.stats()["calls"]
        assert main([*short[:-1], str(tmp_path / "once.jsonl"), "--retries", "0"]) == 1
        assert server.stats()["calls"] == before + 20


def test_an_option_that_is_null_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    with model(tmp_path, *RULES) as server:
        bare = ["--option", "temperature=null", "--option", "max_tokens=null"]
        command = [*inputs(tmp_path), *endpoint(server, "warm"), *bare, "-o", str(out)]
        assert main(command) == 0
        assert server.stats()["calls"] == 20
        assert "temperature" not in capsys.readouterr().err
        # Replies at a model's own temperature may differ, so drawing several of them makes sense.
        assert main([*command[:-1], str(tmp_path / "drawn.jsonl"), "--replicates", "2"]) == 0
        assert main([*command[:-1], str(tmp_path / "no.jsonl"), "--option", "temperature=0.5"]) == 2
    assert grades(out) == EXPECTED
    assert sets(out)["p0"].llm_options["temperature"] is None


pytest.importorskip("openai")
pytest.importorskip("aiohttp")


@pytest.mark.parametrize(("name", "grade", "reason"), [("plain", 0, "It says so."), ("m", 3, "It names the years.")])
def test_a_grade_comes_with_its_reason(tmp_path: Path, name: str, grade: int, reason: str) -> None:
    """The first obeys a schema (and takes its first label); the other ignores it and obeys the prompt's words."""
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?")
    out = tmp_path / "out.jsonl"
    said = 'Here it is: {"reason": "It names the years.", "grade": 3}'
    with model(tmp_path, says(said, "How long?")) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server, name), "--explain", "-o", str(out)]
        assert main(command) == 0
        assert main(command) == 0
        assert server.stats()["calls"] == 1
        [asked] = [text for text in prompts_of(server) if "How long?" in text]
    assert grades(out) == {"sun": {"How long?": grade}}
    entry = sets(out)["sun"]
    assert details(entry)["q1/How long?"]["reason"] == reason
    assert "The reason comes first; the grade is one of 0, 1, 2, 3, 4, 5." in asked


@pytest.mark.parametrize(("status", "refused"), [(400, 1), (500, 6)])
def test_a_schema_that_is_refused_without_a_word_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int, refused: int
) -> None:
    """A 500 may be an accident, so it must come twice for a call; each of the three may meet two."""
    passages, bank = write_passages(tmp_path, a="one", b="two", c="three"), write_items(tmp_path, "How long?")
    out = tmp_path / "out.jsonl"
    with model(tmp_path, says('{"reason": "It says so.", "grade": 3}', "How long?"), no_schema=status) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server, backoff=0.05), "--explain", "-o", str(out)]
        assert main(command) == 0
        assert 3 + 1 <= server.stats()["calls"] <= 3 + refused
    assert grades(out) == {doc_id: {"How long?": 3} for doc_id in "abc"}
    assert "takes no response_format of ours: it is left out" in capsys.readouterr().err
    calls = json.loads(Path(f"{out}.manifest.json").read_text())["calls"]
    assert calls["left_out"] == {"response_format": 3}


def test_reasons_are_shown_where_grades_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?", "Who rules?")
    out, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    rules = [
        says('{"reason": "It names <the> years.", "grade": 3}', "How long?"),
        says("1", "Who rules?"),  # the prompt's words are not obeyed
    ]
    with model(tmp_path, *rules) as server:
        assert main(["grade", passages, "--bank", bank, *endpoint(server), "--explain", "-o", str(out)]) == 0
    capsys.readouterr()
    shown = [str(out), "--bank", bank]
    assert main(["verify", "grading", *shown, "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["grade"], row["reason"]) for row in rows] == [(3, "It names <the> years."), (1, "")]
    assert main(["verify", "grid", *shown, "--format", "tsv"]) == 0
    assert "3: It names <the> years.\t1\n" in capsys.readouterr().out
    assert main(["verify", "all", *shown, "--output", str(page)]) == 0
    assert "It names &lt;the&gt; years." in page.read_text()
