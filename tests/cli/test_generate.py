"""The command `generate`: banks, nuggets from documents and synthetic queries with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank, read_bank
from rubric_measures.formats.queries import read_queries
from rubric_measures.records.models import GradedPassage, QueryPassages, write_graded


def script(folder: Path, *rules: dict[str, object], name: str = "replies.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    return f"scripted:{path}"


@pytest.fixture
def queries(tmp_path: Path) -> str:
    path = tmp_path / "queries.tsv"
    path.write_text("q1\thow is tea made\nq2\tfrost\n", encoding="utf-8")
    return str(path)


def test_a_bank_of_questions(tmp_path: Path, queries: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = script(
        tmp_path,
        {"contains": ["'how is tea made'"], "reply": '{"questions": ["Which leaf?", "How hot?", "how hot"]}'},
        {"contains": ["'frost'"], "reply": "Sorry."},
    )
    output, cache = str(tmp_path / "bank.jsonl.gz"), str(tmp_path / "cache.sqlite")
    command = ["generate", queries, "--model", model, "-o", output, "--cache", cache]
    assert main(command) == 1
    errors = capsys.readouterr().err
    assert "1 generated question left out: the same text was there already" in errors
    assert "query q2, query: no list in the reply" in errors
    assert "run again to ask anew for what failed or cannot be read" in errors
    assert [item.text for item in load_bank(output)] == ["Which leaf?", "How hot?"]
    (entry,) = read_bank(output)
    assert entry.query_text == "how is tea made"
    assert entry.further["info"]["model"].startswith("scripted:")
    assert list(entry.further["info"]["prompts"]) == ["bank.question.dl"]
    first = Path(output).read_bytes()
    # Again, from the cache alone: the same file, byte for byte.
    assert main([*command, "--max-calls", "0"]) == 1
    assert Path(output).read_bytes() == first


def test_a_dry_run_asks_nobody_and_writes_nothing(
    tmp_path: Path, queries: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = script(tmp_path, {"contains": ["tea"], "reply": '["Which leaf?"]'}, {"reply": "no"})
    cache, output = tmp_path / "cache.sqlite", tmp_path / "bank.jsonl"
    command = ["generate", queries, "--model", model, "--cache", str(cache), "-o", str(output), "--dry-run"]
    assert main(command) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header == "model\tcalls\tcached\tprompt_tokens\tcompletion_tokens_at_most\tcost_at_most"
    assert row.split("\t")[1:3] == ["2", "0"]
    assert row.split("\t")[4:] == ["4096", "-"]
    assert not output.exists()
    assert not cache.exists()
    first = tmp_path / "first.tsv"
    first.write_text(Path(queries).read_text().splitlines(True)[0])
    assert main(["generate", str(first), *command[2:-1]]) == 0
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[1].split("\t")[1:3] == ["1", "1"]


def test_costs_before_and_while_spending(tmp_path: Path, queries: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = script(tmp_path, {"reply": '["What is it?"]', "prompt_tokens": 100, "completion_tokens": 10})
    output = str(tmp_path / "bank.jsonl")
    command = ["generate", queries, "--model", model, "-o", output, "--max-tokens", "50"]
    assert main([*command, "--dry-run"]) == 0
    name, _, _, shown, *_ = capsys.readouterr().out.splitlines()[1].split("\t")
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({name: {"input": 1000, "output": 10000}}), encoding="utf-8")
    assert main([*command, "--dry-run", "--prices", str(prices)]) == 0
    # Two calls of at most 50 tokens at 10,000 a million are 1; the tokens shown cost 0.001 each.
    assert capsys.readouterr().out.splitlines()[1].split("\t")[5] == f"{1 + int(shown) * 0.001:.4f}"
    # A call costs 100 * 0.001 + 10 * 0.01 = 0.2.
    assert main([*command, "--prices", str(prices), "--max-cost", "0.3"]) == 1
    assert "the limit of 0.3 on the cost was reached" in capsys.readouterr().err
    assert main([*command, "--prices", str(prices), "--max-cost", "0.5"]) == 0
    assert main([*command, "--max-cost", "1"]) == 2
    assert "a limit on the cost needs a price" in capsys.readouterr().err


def test_lists_that_were_cut_say_what_helps(tmp_path: Path, queries: str, capsys: pytest.CaptureFixture[str]) -> None:
    cut: dict[str, object] = {
        "contains": ["tea"],
        "reply": '["Which leaf?", "How',
        "status": "truncated",
        "error": "cut",
    }
    model = script(tmp_path, cut, {"reply": '["When?"]'})
    command = ["generate", queries, "--model", model, "-o", str(tmp_path / "bank.jsonl")]
    for calls in ("3 calls (2 truncated), 0 replies", "no calls, 3 replies"):
        assert main(command) == 1
        errors = capsys.readouterr().err
        assert calls in errors
        assert "query q1, query: truncated: cut" in errors
        assert "replies that were cut need a higher max_tokens (--max-tokens)" in errors
        assert "--retries" not in errors


def test_an_interrupted_command_continues(tmp_path: Path, queries: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = script(tmp_path, {"contains": ["tea"], "reply": '["Which leaf?"]'}, {"reply": '["When?"]'})
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    assert main(["generate", queries, "--model", model, "-o", str(whole)]) == 0
    command = ["generate", queries, "--model", model, "-o", str(parts)]
    capsys.readouterr()
    assert main([*command, "--max-calls", "1"]) == 1
    errors = capsys.readouterr().err
    assert "query q2, query: failed: not asked: the limit of 1 call was reached" in errors
    assert "the limit of 1 call was reached, 1 request was not made; raise it and run again" in errors
    # What is there is written.
    assert [(entry.query_id, len(entry.items)) for entry in read_bank(str(parts))] == [("q1", 1)]
    # The limit is one over all runs of the cache.
    assert main([*command, "--max-calls", "2"]) == 0
    assert "1 call, 1 reply from the cache" in capsys.readouterr().err
    assert parts.read_bytes() == whole.read_bytes()


def test_queries_of_an_ir_datasets_id(tmp_path: Path) -> None:
    model = script(tmp_path, {"reply": '["What is it?"]'})
    output = str(tmp_path / "bank.jsonl")
    assert main(["generate", "rubric-measures/example", "--model", model, "-o", output]) == 0
    assert len(load_bank(output).items) == 9


def test_nuggets_from_documents(tmp_path: Path, queries: str, capsys: pytest.CaptureFixture[str]) -> None:
    def passage(doc_id: str, text: str, relevance: int) -> GradedPassage:
        judgment = {"paragraphId": doc_id, "query": "q1", "relevance": relevance}
        data = {"judgments": [judgment]}
        return GradedPassage(doc_id=doc_id, text=text, paragraph_data=data)

    records = tmp_path / "passages.jsonl.gz"
    write_graded(records, [QueryPassages("q1", [passage("d1", "Boil water.", 2), passage("d2", "Frost.", 0)])])
    model = script(
        tmp_path,
        {"contains": ["NuggetizeLLM", "[1] Boil water.\nSearch Query"], "reply": '["pour on leaves", "boil water"]'},
        {"contains": ["NuggetizeScoreLLM"], "reply": '["okay", "vital"]'},
    )
    output = str(tmp_path / "nuggets.jsonl")
    command = ["generate", queries, "--target", "nuggets", "--from-documents", str(records), "--model", model]
    assert main([*command, "-o", output]) == 1
    said = capsys.readouterr().err
    assert "query q2, documents: none is related to it" in said
    items = list(load_bank(output))
    assert [(item.text, item.importance, item.kind) for item in items] == [
        ("boil water", "vital", "nugget"),
        ("pour on leaves", "okay", "nugget"),
    ]
    (entry,) = read_bank(output)
    assert [item.info for item in entry.items] == [{"segments": ["d1"]}] * 2
    assert list(entry.further["info"]["prompts"]) == ["nuggets.create", "nuggets.importance"]
    assert main([*command, "-o", output, "--over-generate"]) == 1
    assert [(item.text, item.importance) for item in load_bank(output)] == [
        ("pour on leaves", None),
        ("boil water", None),
    ]
    capsys.readouterr()
    assert main([*command, "--dry-run"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].split("\t")[1:3] == ["1", "0"]
    assert "importance takes up to 3 calls more" in captured.err
    assert main([*command, "--min-judgment", "3"]) == 2
    assert "no query has a passage of level 3 or more" in capsys.readouterr().err


def test_synthetic_queries_by_quota(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, examples = tmp_path / "passages.tsv", tmp_path / "real.txt"
    passages.write_text("d1#0\tTea is hot.\nd1#1\tVery hot.\nd2#0\tInk is black.\n", encoding="utf-8")
    examples.write_text("\nis tea hot?\nwho makes ink?\n", encoding="utf-8")
    one = script(
        tmp_path,
        {"contains": ["Tea is hot.\nVery hot."], "reply": '{"questions": ["how hot is tea", "what is tea"]}'},
        {"contains": ["Ink"], "reply": '{"questions": ["what is ink"]}'},
    )
    two = script(tmp_path, {"reply": '["what is Tea", "why tea", "why ink"]'}, name="other.jsonl")
    output = str(tmp_path / "synthetic.jsonl")
    command = [
        "generate", "--target", "queries", "--passages", str(passages), "--examples", str(examples),
        "--model", one, "--model", two, "-o", output,
    ]  # fmt: skip
    assert main(command) == 0
    lines = [json.loads(line) for line in Path(output).read_text(encoding="utf-8").splitlines()]
    assert [(line["text"], line["document_id"], line["doc_ids"]) for line in lines] == [
        ("how hot is tea", "d1", ["d1#0", "d1#1"]),
        ("what is tea", "d1", ["d1#0", "d1#1"]),
        ("what is ink", "d2", ["d2#0"]),
        ("why tea", "d1", ["d1#0", "d1#1"]),
        ("why ink", "d1", ["d1#0", "d1#1"]),
    ]
    assert len({line["model"] for line in lines}) == 2
    capsys.readouterr()
    assert main([*command, "--quota", f"{one}=2", "--quota", f"{two}=1"]) == 0
    first = read_queries(output)
    assert len(first) == 3
    assert main([*command, "--quota", f"{one}=2", "--quota", f"{two}=1"]) == 0
    assert read_queries(output) == first
    assert main([*command, "--quota", f"{one}=9"]) == 1
    assert "6 queries fewer than its quota" in capsys.readouterr().err
    # A model that fails throughout takes nothing from the others.
    mute = script(tmp_path, {"reply": "I cannot."}, name="mute.jsonl")
    assert main([*command, "--model", mute, "--quota", f"{one}=2", "--quota", f"{mute}=3"]) == 1
    assert "3 queries fewer than its quota" in capsys.readouterr().err
    assert len(read_queries(output)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "scripted:x"], "name the queries"),
        (["--model", "lexical", "QUERIES"], "lexical:1 reads only the prompt LexicalCoverage or"),
        (
            ["--model", "scripted:x", "--target", "queries", *("--passages", "p", "--examples", "e", "--quota", "a=x")],
            "a quota is a number of queries, not 'x' (--quota)",
        ),
        (["--model", "scripted:x", "QUERIES", "--quota", "a=1"], "no effect here; leave it out (--quota)"),
        (["--model", "scripted:x", "QUERIES", "--from-documents", "x"], "(--from-documents, --target)"),
        (["--model", "scripted:x", "--target", "queries"], "need passages and examples"),
        (["--model", "a:x", "--model", "b:y", "QUERIES"], "several models"),
        (["--model", "scripted:x", "QUERIES", "--max-calls", "0"], "needs a cache; name it, or the output"),
        (["--model", "MODEL", "QUERIES", "--program", "nuggetizer"], "there are the words of workbench for these"),
        (["--model", "scripted:x", "QUERIES", "--by", "all"], "by would have no effect here; leave it out (--by)"),
        (["--model", "scripted:x", "QUERIES", "--min-judgment", "2", "--grader", "m"], "grader, min_judgment would"),
    ],
)
def test_wrong_arguments_are_one_line(
    tmp_path: Path, queries: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    names = {"QUERIES": queries, "MODEL": script(tmp_path, {"reply": "x"})}
    assert main(["generate", *(names.get(argument, argument) for argument in arguments)]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_nothing_at_all_is_no_file(tmp_path: Path, queries: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "bank.jsonl"
    model = script(tmp_path, {"reply": "Sorry."})
    assert main(["generate", queries, "--model", model, "-o", str(output)]) == 1
    assert "no call led to an item; nothing was written" in capsys.readouterr().err
    assert not output.exists()


def test_nuggets_from_requests_take_the_published_number_of_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queries.tsv").write_text("q1\twhy tea\nq2\tfrost\n", encoding="utf-8")
    documents = [{"docid": f"d{i}", "doc": {"segment": f"segment {i} of tea."}} for i in range(25)]
    requests = [
        {"query": {"qid": "q1", "text": "why tea"}, "candidates": documents},
        {"query": "frost", "candidates": ["ice is cold."]},
    ]
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in requests), encoding="utf-8")
    model = script(
        tmp_path,
        {"contains": ["NuggetizeLLM", "ice is cold"], "reply": '["ice forms"]'},
        {"contains": ["NuggetizeLLM", "segment 0 "], "reply": json.dumps([f"fact {i}." for i in range(10)])},
        # The second window fails: the list stays as it was. The third list is cut to 30.
        {"contains": ["NuggetizeLLM", "segment 10 "], "reply": "I cannot."},
        {"contains": ["NuggetizeLLM", "segment 20 "], "reply": json.dumps([f"fact {i}." for i in range(40)])},
        {"contains": ["NuggetizeScoreLLM", "fact 0."], "reply": json.dumps(["okay"] * 5 + ["vital"] * 5)},
        # Nine labels for ten nuggets: they have no importance, and go with the okay ones.
        {"contains": ["NuggetizeScoreLLM", "fact 10."], "reply": json.dumps(["vital"] * 9)},
        {"contains": ["NuggetizeScoreLLM", "fact 20."], "reply": json.dumps(["vital"] * 10)},
        {"contains": ["NuggetizeScoreLLM", "ice"], "reply": '["vital"]'},
    )
    output, cache = tmp_path / "bank.jsonl", tmp_path / "cache.sqlite"
    command = ["generate", str(tmp_path / "queries.tsv"), "--target", "nuggets", "--from-documents", str(path)]
    command += ["--model", model, "-o", str(output), "--cache", str(cache)]
    assert main(command) == 2
    assert "requests hold no labels of their documents; take all (--by)" in capsys.readouterr().err
    assert main([*command, "--by", "all"]) == 1
    said = capsys.readouterr().err
    assert "query q1, create 2/3: " in said and "the list stays as it was" in said
    assert "query q1, importance 2/3: 9 labels for 10 items" in said
    bank = load_bank(output)
    # q1: ⌈25 / 10⌉ + ⌈30 / 10⌉ calls, q2: 1 + 1; a table would say the same again.
    assert "8 calls" in said
    order = [*range(5, 10), *range(20, 30), *range(5)]
    assert [item.text for item in bank.for_query("q1")] == [f"fact {i}." for i in order]
    assert [item.importance for item in bank.for_query("q1")] == ["vital"] * 15 + ["okay"] * 5
    entries = {entry.query_id: entry for entry in read_bank(output)}
    sources = {item.text: item.info["segments"] for item in entries["q1"].items}
    assert sources["fact 9."] == [f"d{i}" for i in range(10)]
    assert sources["fact 20."] == [f"d{i}" for i in range(20, 25)]
    assert entries["q2"].items[0].info["segments"] == ["candidate 1"]
    # The program keeps all 30 that creation carries on.
    assert main([*command, "--by", "all", "--program", "nuggetizer"]) == 1
    assert len(load_bank(output).for_query("q1")) == 30
