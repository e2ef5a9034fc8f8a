"""The commands of docs/tutorial-published.md: run on the example's runs, and on the published ones where these are."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.trec import read_run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "resources" / "example"
SHARED = ROOT.parent / "shared" / "data"
PAGE = (ROOT / "docs" / "tutorial-published.md").read_text(encoding="utf-8")
NAMES = ("BM25", "BM25_RM3", "D_BERT_KD_TASB", "OPEN_AI_ADA2", "REP_LLAMA", "SPLADE_P_P_ENSEMBLE_DISTIL")


def commands(capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """What the page's commands print."""
    Path("runs").mkdir()
    for line in re.findall(r"^rubric_measures .*$", PAGE, re.MULTILINE):
        words = shlex.split(line)[1:]
        files = [found for word in words for found in (sorted(map(str, Path().glob(word))) or [word])]
        # The example has nine queries, and of fewer than ten `power` tells nothing.
        ends = (0, 1) if words[0] == "power" else (0,)
        assert main(files) in ends, (line, capsys.readouterr().err)
        yield capsys.readouterr().out


def requests(run: Path, texts: dict[str, str]) -> str:
    """A run as RankLLM keeps what it retrieved."""
    lines = []
    for query_id, ranking in read_run(run).rankings.items():
        found = zip(ranking.doc_ids[:100], ranking.scores, strict=False)
        candidates = [{"docid": doc, "score": score, "doc": {"contents": texts.get(doc, "-")}} for doc, score in found]
        lines.append(json.dumps({"query": {"text": query_id, "qid": query_id}, "candidates": candidates}) + "\n")
    return "".join(lines)


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dl19").mkdir()
    Path("rag25").mkdir()
    texts = {}
    for line in (EXAMPLE / "docs.jsonl").read_text(encoding="utf-8").splitlines():
        doc = json.loads(line)
        texts[doc["doc_id"]] = doc["text"]
    for name, run in zip(NAMES, sorted((EXAMPLE / "runs").glob("*.run")), strict=False):
        Path("dl19", f"{name}.jsonl").write_text(requests(run, texts), encoding="utf-8")
    for name in ("dl19/qrels.txt", "rag25/assessors.txt"):
        shutil.copy(EXAMPLE / "qrels.txt", name)
    assert main(["qrels", str(EXAMPLE / "graded.jsonl.gz"), "-o", "rag25/model.txt", "--grader", "kind=question"]) == 0
    printed = list(commands(capsys))
    assert sorted(path.name for path in Path("runs").iterdir()) == [f"{name}.run" for name in NAMES]
    assert printed[-1].startswith("the same")
    # As passages to grade, with all six rankings.
    files = sorted(map(str, Path("dl19").glob("*.jsonl")))
    assert main(["convert", *files, "--to", "records", "-o", "passages.jsonl"]) == 0
    _, passages = json.loads(Path("passages.jsonl").read_text(encoding="utf-8").splitlines()[0])
    methods = {place["method"] for passage in passages for place in passage["paragraph_data"]["rankings"]}
    assert methods == set(NAMES)
    assert {passage["text"] for passage in passages} <= set(texts.values())


@pytest.mark.skipif(not (SHARED / "dl19").is_dir(), reason="the public data are not here")
def test_the_numbers_are_those_of_the_published_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dl19").mkdir()
    Path("rag25").mkdir()
    for path in (SHARED / "dl19").glob("*.run.gz"):
        name = path.name.split(".")[1]
        Path("run.run").write_bytes(gzip.decompress(path.read_bytes()))
        Path("dl19", f"{name}.jsonl").write_text(requests(Path("run.run"), {}), encoding="utf-8")
    for source, name in (
        ("dl19/qrels.dl19-passage.txt.gz", "dl19/qrels.txt"),
        ("rag25/qrels.rag25.test.txt.gz", "rag25/assessors.txt"),
        ("rag25/qrels.rag25.test-umbrela2.txt.gz", "rag25/model.txt"),
    ):
        Path(name).write_bytes(gzip.decompress((SHARED / source).read_bytes()))
    printed = {line for text in commands(capsys) for line in text.splitlines()}
    shown = [line for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
             for line in block.splitlines()]  # fmt: skip
    assert len(shown) == 15 and [line for line in shown if line not in printed] == []
