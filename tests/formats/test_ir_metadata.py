"""Tests of ir_metadata: runs with comments at the top, YAML files of runs, and the models that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import FormatError, UnknownNameError
from rubric_measures.cli import main
from rubric_measures.formats.ir_metadata import read_metadata, read_model
from rubric_measures.formats.trec import read_run

LINES = "q1 Q0 d1 1 2.0 first\nq1 Q0 d2 2 1.0 first\n"
# As repro_eval writes it.
HEADER = """# ir_metadata.start
# tag: first
# platform:
#   software:
#     libraries:
#     - 'pyterrier'
# method:
#   automatic: true
#   generation:
#     llm: openai/gpt-4o
# ir_metadata.end
"""
# As LongEval-RAG 2026 asks for it.
YAML = "tag: second\nactor: {team: us}\nmethod:\n  generation:\n    llm: Qwen/Qwen3-8B\n    reasoning: no\n"
QRELS = "q1 0 d1 1\nq1 0 d2 0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("first.run").write_text(HEADER + LINES)
    Path("plain.run").write_text(LINES)
    Path("second.run").write_text(LINES.replace("first", "second"))
    Path("second.yml").write_text(YAML)
    Path("qrels.txt").write_text(QRELS)
    return tmp_path


def test_a_run_with_comments_is_the_run_without(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_run("first.run") == read_run("plain.run")
    for command in (["leaderboard", "qrels.txt", "RUN", "-m", "P@1"], ["evaluate", "qrels.txt", "RUN", "P@1"]):
        outputs = []
        for run in ("first.run", "plain.run"):
            assert main([run if word == "RUN" else word for word in command]) == 0
            outputs.append(capsys.readouterr())
        assert outputs[0] == outputs[1]


def test_comments_elsewhere_are_no_lines_of_a_run(folder: Path) -> None:
    Path("late.run").write_text(LINES + HEADER)
    with pytest.raises(FormatError, match=r"late\.run:3: has 2 columns"):
        read_run("late.run")
    Path("after.run").write_text(HEADER + "# more\n" + LINES)
    with pytest.raises(FormatError, match=r"after\.run:12: has 2 columns"):
        read_run("after.run")


def test_models_are_read(folder: Path) -> None:
    assert read_model("first.run") == ("first", "openai/gpt-4o")
    assert read_model("second.yml") == ("second", "Qwen/Qwen3-8B")
    for text, said in (
        ("tag: one\n", r"bad\.yml: lacks `method: generation: llm`"),
        (YAML.replace("tag", "name"), r"bad\.yml: lacks `tag`"),
        ("- a\n", r"bad\.yml: is no ir_metadata"),
        ("a: [", r"bad\.yml: is no YAML"),
    ):
        Path("bad.yml").write_text(text)
        with pytest.raises(FormatError, match=said):
            read_model("bad.yml")
    Path("open.run").write_text(HEADER.replace("# ir_metadata.end\n", "") + LINES)
    with pytest.raises(FormatError, match="have no end"):
        read_metadata("open.run")


def test_models_of_runs_warn_of_relatives(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[2] / "resources" / "example"
    grades = rubric_measures.load(example / "graded.jsonl.gz", bank=example / "questions.jsonl")
    board = rubric_measures.score(grades, [example / "runs" / "bm25.run"], ["RubricCover@20"], notes=False)
    Path("bm25.yml").write_text(YAML.replace("second", "bm25").replace("Qwen/Qwen3-8B", "lexical"))
    assert board.relatives(["bm25.yml"]) == board.relatives("bm25.yml") == {}
    with pytest.raises(UnknownNameError, match="unknown run 'second': known: bm25"):
        board.relatives(["bm25.yml", "second.yml"])
    # On the command line, the files of several runs.
    judged = ["leaderboard", "qrels.txt", "first.run", "second.run", "-m", "P@1"]
    assert main([*judged, "--made-by", "first.run", "second.yml"]) == 0
    Path("other.yml").write_text(YAML.replace("Qwen/Qwen3-8B", "gpt-5"))
    assert main([*judged, "--made-by", "second.yml", "other.yml"]) == 2
    assert "run 'second' is made by two models, 'Qwen/Qwen3-8B' and 'gpt-5'" in capsys.readouterr().err


def test_a_bundle_describes_its_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "qrels.txt", "first.run", "second.run", "-m", "P@1", "-o", "board.json"]) == 0
    assert main(["bundle", "made", "qrels.txt", "first.run", "second.run", "--board", "board.json"]) == 0
    first = read_metadata("made/runs/first.run.ir_metadata.yml")
    assert first["method"]["generation"] == {"llm": "openai/gpt-4o"} and first["tag"] == "first"
    assert first["research goal"] == {"evaluation": {"reported measures": ["P@1"]}}
    assert read_metadata("made/runs/second.run.ir_metadata.yml")["tag"] == "second"
    assert main(["check", "made"]) == 0
    text = Path("made/runs/second.run.ir_metadata.yml").read_text()
    Path("made/runs/second.run.ir_metadata.yml").write_text(text.replace("P@1", "P@9"))
    assert main(["check", "made"]) == 1
    assert "second.run.ir_metadata.yml: other content" in "".join(capsys.readouterr())
