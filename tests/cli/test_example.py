"""The example collection holds together: counts, ids, judgments, runs and answers, and the lesson its README tells."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import nDCG

from rubric_measures.types.entities import make_item_id

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "resources" / "example"
RUNS = ["bm25", "bm25-stem", "fusion", "query-likelihood", "random", "raw-tf", "tfidf"]
ANSWERS = ["concise", "fluent-but-empty", "thorough"]
QUERY_IDS = [f"q{number:02d}" for number in range(1, 10)]


def read_lines(name: str) -> list[str]:
    return (EXAMPLE / name).read_text(encoding="utf-8").splitlines()


def read_json_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_lines(name)]


def doc_texts() -> dict[str, str]:
    return {record["doc_id"]: record["text"] for record in read_json_lines("docs.jsonl")}


def queries() -> dict[str, str]:
    return {query_id: text for query_id, _, text in (line.partition("\t") for line in read_lines("queries.tsv"))}


def read_run(name: str) -> dict[str, list[tuple[str, int, float]]]:
    run: dict[str, list[tuple[str, int, float]]] = {}
    for line in read_lines(f"runs/{name}.run"):
        query_id, q0, doc_id, rank, score, tag = line.split(" ")
        assert (q0, tag) == ("Q0", name)
        run.setdefault(query_id, []).append((doc_id, int(rank), float(score)))
    return run


def test_the_folder_holds_exactly_the_files_the_readme_names() -> None:
    files = {path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*") if path.is_file()}
    assert files == {
        "README.md",
        "answers.csv",
        "docs.jsonl",
        "graded.jsonl.gz",
        "nuggets.jsonl",
        "qrels.txt",
        "queries.tsv",
        "questions.jsonl",
        *(f"runs/{name}.run" for name in RUNS),
        *(f"answers/{name}.jsonl" for name in ANSWERS),
    }


def test_docs() -> None:
    records = read_json_lines("docs.jsonl")
    assert len(records) == 161
    assert len({record["doc_id"] for record in records}) == 161
    assert len({record["text"] for record in records}) == 161
    assert [records[index]["doc_id"] for index in (0, 9, 160)] == ["d0101", "d0110", "d0008"]
    for record in records:
        assert sorted(record) == ["doc_id", "text"]
        assert re.fullmatch(r"d\d{4}", record["doc_id"])
        assert 40 <= len(record["text"].split()) <= 140, record["doc_id"]
        assert record["text"] == " ".join(record["text"].split())
    per_query = Counter(record["doc_id"][1:3] for record in records)
    assert per_query == {"00": 8} | {query_id[1:]: 17 for query_id in QUERY_IDS}


def test_queries() -> None:
    assert list(queries()) == QUERY_IDS
    assert queries()["q01"] == "why do leaves change colour in autumn"


def test_judgments_are_in_range_and_leave_some_passages_out() -> None:
    rows = [line.split(" ") for line in read_lines("qrels.txt")]
    assert len(rows) == 144
    assert len({(query_id, doc_id) for query_id, _, doc_id, _ in rows}) == 144
    texts = doc_texts()
    for query_id, iteration, doc_id, relevance in rows:
        assert (query_id in QUERY_IDS, iteration, doc_id in texts) == (True, "0", True)
        assert doc_id[1:3] == query_id[1:]
        assert relevance in {"0", "1", "2", "3"}
    for query_id in QUERY_IDS:
        levels = Counter(row[3] for row in rows if row[0] == query_id)
        assert levels.total() == 16  # one passage of each query is not judged
        assert set(levels) == {"0", "1", "2", "3"}


@pytest.mark.parametrize(("name", "kind"), [("questions", "question"), ("nuggets", "nugget")])
def test_banks_of_ten_with_ids_made_of_the_text(name: str, kind: str) -> None:
    banks = read_json_lines(f"{name}.jsonl")
    assert [bank["query_id"] for bank in banks] == QUERY_IDS
    for bank in banks:
        query_id = bank["query_id"]
        assert bank["query_text"] == queries()[query_id]
        assert bank["test_collection"] == "rubric-measures-example"
        assert len({item[f"{kind}_id"] for item in bank["items"]}) == len(bank["items"]) == 10
        for item in bank["items"]:
            assert item["query_id"] == query_id
            assert item[f"{kind}_id"] == make_item_id(query_id, item[f"{kind}_text"])


def test_gold_answers() -> None:
    items = [item for bank in read_json_lines("questions.jsonl") for item in bank["items"]]
    keys = [item["gold_answers"] for item in items if "gold_answers" in item]
    assert len(keys) == 38
    assert all(key and all(answer == answer.strip() != "" for answer in key) for key in keys)


def test_nuggets_are_short_and_about_half_are_vital() -> None:
    for bank in read_json_lines("nuggets.jsonl"):
        assert all(1 <= len(item["nugget_text"].split()) <= 12 for item in bank["items"])
        importance = Counter(item["importance"] for item in bank["items"])
        assert set(importance) == {"vital", "okay"}
        assert 4 <= importance["vital"] <= 6


@pytest.mark.parametrize("name", RUNS)
def test_runs_rank_known_documents_from_one_with_falling_scores(name: str) -> None:
    run, texts = read_run(name), doc_texts()
    assert list(run) == QUERY_IDS
    for rows in run.values():
        assert [rank for _, rank, _ in rows] == list(range(1, len(rows) + 1))
        assert 10 <= len(rows) <= 30
        assert len({doc_id for doc_id, _, _ in rows}) == len(rows)
        assert all(doc_id in texts and math.isfinite(score) for doc_id, _, score in rows)
        order = [(score, doc_id) for doc_id, _, score in rows]
        assert order == sorted(order, reverse=True)  # score, then doc_id, both descending: trec_eval's order


def test_runs_are_what_the_script_makes() -> None:
    script = ROOT / "benchmarks" / "make_example_runs.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("name", "missing", "empty", "shortest", "longest"),
    [("thorough", [], [], 150, 250), ("concise", ["q06"], [], 60, 90), ("fluent-but-empty", [], ["q08"], 50, 90)],
)
def test_answers(name: str, missing: list[str], empty: list[str], shortest: int, longest: int) -> None:
    reports, texts = read_json_lines(f"answers/{name}.jsonl"), doc_texts()
    query_ids = [report["metadata"]["narrative_id"] for report in reports]
    assert query_ids == [query_id for query_id in QUERY_IDS if query_id not in missing]
    for report in reports:
        query_id = report["metadata"]["narrative_id"]
        assert (report["metadata"]["team_id"], report["metadata"]["run_id"]) == ("example", name)
        assert all(doc_id in texts for doc_id in report["references"])
        cited = {position for sentence in report["answer"] for position in sentence["citations"]}
        assert cited == set(range(len(report["references"])))
        words = sum(len(sentence["text"].split()) for sentence in report["answer"])
        if query_id in empty:
            assert (report["answer"], report["references"]) == ([], [])
        else:
            assert shortest <= words <= longest, (query_id, words)


def words_of(text: str) -> set[str]:
    short = {"the", "and", "does", "how", "what", "which", "why", "for", "from", "are", "can", "with", "when"}
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2 and word not in short}


def overlap_cover(run: dict[str, list[tuple[str, int, float]]], bank: str, text_field: str) -> float:
    """Share of the items of which some passage among the top five holds at least 60 % of the words."""
    texts, covered = doc_texts(), 0
    for line in read_json_lines(f"{bank}.jsonl"):
        top = [words_of(texts[doc_id]) for doc_id, _, _ in run[line["query_id"]][:5]]
        needed = [words_of(item[text_field]) for item in line["items"]]
        covered += sum(any(len(item & words) >= 0.6 * len(item) for words in top) for item in needed)
    return covered / 90


def test_word_overlap_with_questions_is_fooled_where_judgments_and_nuggets_are_not() -> None:
    qrels = list(ir_measures.read_trec_qrels(str(EXAMPLE / "qrels.txt")))
    ndcg, by_question, by_nugget = {}, {}, {}
    for name in RUNS:
        scored = ir_measures.read_trec_run(str(EXAMPLE / "runs" / f"{name}.run"))
        ndcg[name] = ir_measures.calc_aggregate([nDCG @ 5], qrels, scored)[nDCG @ 5]
        by_question[name] = overlap_cover(read_run(name), "questions", "question_text")
        by_nugget[name] = overlap_cover(read_run(name), "nuggets", "nugget_text")
    fooled, wary = ("bm25", "bm25-stem", "tfidf", "raw-tf"), ("fusion", "query-likelihood")
    assert min(ndcg[name] for name in wary) > max(ndcg[name] for name in fooled)
    assert min(by_nugget[name] for name in wary) > max(by_nugget[name] for name in fooled)
    assert max(by_question[name] for name in fooled) > max(by_question[name] for name in wary)
    for scores in (ndcg, by_nugget, by_question):
        assert min(scores, key=lambda name: scores[name]) == "random"
