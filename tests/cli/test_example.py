"""The example collection holds together: files, ids, judgments, runs and answers, and the lesson its README tells."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ir_measures

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "resources" / "example"
RUNS = ["bm25", "bm25-stem", "fusion", "query-likelihood", "random", "raw-tf", "tfidf"]
ANSWERS = ["concise", "fluent-but-empty", "thorough"]


def read_json_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLE / name).read_text(encoding="utf-8").splitlines()]


def doc_texts() -> dict[str, str]:
    return {record["doc_id"]: record["text"] for record in read_json_lines("docs.jsonl")}


def read_run(name: str) -> dict[str, list[str]]:
    """Query -> documents; ranks from 1, with falling scores."""
    run: dict[str, list[str]] = {}
    for row in ir_measures.read_trec_run(str(EXAMPLE / "runs" / f"{name}.run")):
        run.setdefault(row.query_id, []).append(row.doc_id)
    return run


def test_the_folder_holds_exactly_the_files_the_readme_names() -> None:
    files = {path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*") if path.is_file()}
    plain = "README.md answers.csv docs.jsonl graded.jsonl.gz nuggets.jsonl qrels.txt queries.tsv questions.jsonl"
    runs = [*(f"runs/{name}.run" for name in RUNS), *(f"answers/{name}.jsonl" for name in ANSWERS)]
    assert files == {*plain.split(), *runs}
    assert len(doc_texts()) == 161


def test_runs_judgments_and_answers_name_documents_that_there_are() -> None:
    texts = doc_texts()
    judged = [(row.query_id, row.doc_id) for row in ir_measures.read_trec_qrels(str(EXAMPLE / "qrels.txt"))]
    # One passage of each query is not judged.
    assert len(set(judged)) == len(judged) == 9 * 16
    cited = {
        doc_id for name in ANSWERS for one in read_json_lines(f"answers/{name}.jsonl") for doc_id in one["references"]
    }
    ranked = {doc_id for name in RUNS for docs in read_run(name).values() for doc_id in docs}
    assert {doc_id for _, doc_id in judged} | cited | ranked <= set(texts)


def test_runs_are_what_the_script_makes() -> None:
    script = ROOT / "benchmarks" / "make_example_runs.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
