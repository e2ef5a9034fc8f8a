"""Tests of the canary suite: the cases, what counts as fooled, and the command with graders of known weakness."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from rubric_measures import Asking
from rubric_measures.api import verify
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats.banks import load_bank
from rubric_measures.models import make_backend
from rubric_measures.records.models import GradedPassage, QueryPassages, load_graded
from rubric_measures.verification.graders import CANARY_KINDS, build_canaries, canary_report
from tests.example_records import BANK, RECORDS, grade_set, write_all, write_lines
from tests.function_backend import FunctionBackend


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write_lines(tmp_path / "passages.jsonl", list(RECORDS)), write_lines(tmp_path / "bank.jsonl", BANK)


@dataclass(frozen=True)
class Scripted:
    """A scripted model in a folder: its name, and what it costs."""

    folder: Path

    def says(self, *rules: dict[str, object]) -> str:
        """The name of a model that replies by these rules."""
        path = self.folder / "model.jsonl"
        path.write_text("".join(json.dumps({"contains": [""], **rule}) + "\n" for rule in rules))
        return f"scripted:{path}"

    def prices(self, name: str, shown: float, written: float) -> str:
        """A price table with that model: what a token shown and a token written cost."""
        path = self.folder / "prices.json"
        path.write_text(json.dumps({make_backend(name).model: {"input": shown * 1e6, "output": written * 1e6}}))
        return str(path)


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path)


def test_the_cases(files: tuple[Path, Path]) -> None:
    groups, bank = load_graded(files[0]), load_bank(files[1])
    built = build_canaries(groups, bank)
    assert build_canaries(groups[::-1], bank) == built
    first = {passage.doc_id: passage for passage in built[0].passages}
    assert sorted(first) == [
        "canary/empty/q1/0",
        "canary/instruction/q1/0",
        "canary/item-text/q1/0",
        "canary/item-text/q1/1",
        "canary/item-text/q1/2",
        "canary/other-query/q1/0",
        "canary/shuffled-query/q1/0",
    ]
    assert first["canary/empty/q1/0"].text == ""
    assert first["canary/other-query/q1/0"].text == "Text of d3."
    assert sorted(first["canary/shuffled-query/q1/0"].text.split()) == ["Query", "q1?"]
    about = first["canary/item-text/q1/0"].paragraph
    assert first["canary/item-text/q1/0"].text == f"What is {about['item_id'][-1]}?"
    assert all(passage.exam_grades is None for group in built for passage in group.passages)
    with pytest.raises(InputError, match="no passages"):
        build_canaries([], bank)


def test_a_model_of_ones_own_is_asked_as_was_said(files: tuple[Path, Path]) -> None:
    backend, asking = FunctionBackend(lambda request: "0"), Asking(option={"top_p": 0.5})
    found = verify("canary", files[0], bank=files[1], model=backend, asking=asking)
    assert found.is_complete and found.report()
    with open(files[0], "rb") as stream:
        again = verify("canary", stream, bank=files[1], model=FunctionBackend(lambda request: "0"))
    assert again.render("tsv").splitlines()[1:] == found.render("tsv").splitlines()[1:]
    assert backend.seen and {request.options["top_p"] for request in backend.seen} == {0.5}


def test_a_dry_run_shows_its_plan_and_has_no_report(files: tuple[Path, Path], tmp_path: Path) -> None:
    planned = verify("canary", files[0], bank=files[1], model="lexical", prompt="LexicalCoverage", dry_run=True)
    assert planned.plan and str(planned) == str(planned.plan)
    assert "LexicalCoverage" in planned._repr_html_()
    with pytest.raises(InputError, match="a dry run has a plan and no report"):
        planned.save(str(tmp_path / "report.html"))
    assert not (tmp_path / "report.html").exists()


def test_a_text_is_one_value(tmp_path: Path) -> None:
    folder = write_all(tmp_path)
    graded, bank, run = folder / "graded.jsonl.gz", folder / "bank.jsonl", str(folder / "alpha.run")
    of_one = verify("grid", graded, bank=bank, queries="q1")
    assert str(of_one) == str(verify("grid", graded, bank=bank, queries=["q1"]))
    assert len(repr(of_one)) < 100
    ranked = verify("item-statistics", graded, bank=bank, runs=run)
    assert str(ranked) == str(verify("item-statistics", graded, bank=bank, runs=[run]))


def test_cases_that_cannot_be_made_are_said(files: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    built = build_canaries(load_graded(files[0])[:1], load_bank(files[1]))
    assert {passage.paragraph["canary"] for passage in built[0].passages} == set(CANARY_KINDS) - {"other-query"}
    assert "other-query for 1 query" in caplog.text


def test_what_counts_as_fooled() -> None:
    def case(kind: str, entry: dict[str, object], **about: str) -> GradedPassage:
        fields = {"paragraph_id": kind, "text": "x", "paragraph": {"canary": kind, **about}, "exam_grades": [entry]}
        return GradedPassage(**fields)

    passages = [
        case("empty", grade_set({"q1/a": 5, "q1/b": 4, "q1/c": 3}, status={"q1/d": "failed"})),
        # The question of a mentions b well: only its own grade counts.
        case("item-text", grade_set({"q1/a": 3, "q1/b": 5}), item_id="q1/a"),
        case("instruction", grade_set({}, status={"q1/a": "refused"})),
        GradedPassage(paragraph_id="d1", text="no canary"),
    ]
    report = canary_report([QueryPassages("q1", passages)])
    found = {
        kind: (one.passages, one.fooled_passages, one.graded, one.fooled, one.failed, one.rate)
        for (_, kind), one in report.counts.items()
    }
    assert found == {
        "empty": (1, 1, 3, 2, 1, 2 / 3),
        "item-text": (1, 0, 1, 0, 0, 0.0),
        "instruction": (1, 0, 0, 0, 1, None),
    }
    assert [(row.item_id, row.grade) for row in report.fooled] == [("q1/a", 5), ("q1/b", 4)]


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[dict[str, object]]:
    assert main(["verify", "canary", *arguments, "--format", "jsonl"]) == code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_failures_and_missing_options(
    files: tuple[Path, Path], scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = map(str, files)
    model = scripted.says({"reply": "I would rather not say."})
    rows = run(capsys, passages, "--bank", bank, "--model", model, code=1)
    assert {(row["rate"], row["reasons"]["rate"]) for row in rows} == {(None, "no grade")}
    assert main(["verify", "canary", passages, "--bank", bank]) == 2
    assert "needs the grader and the items (--model, --bank)" in capsys.readouterr().err
    command = ["verify", "canary", passages, "--bank", bank, "--model", model, "--prompt", "SupportJudgment"]
    assert main(command) == 2
    assert "judges sentences by what they cite, and the suite makes passages for items" in capsys.readouterr().err
    assert main(["verify", "all", passages, "--model", "lexical"]) == 2
    said = "model would have no effect in the report all, as only canary asks a grader; leave it out (--model)"
    assert said in capsys.readouterr().err


def test_a_dry_run_counts_and_asks_nothing(
    files: tuple[Path, Path], tmp_path: Path, scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = map(str, files)
    name = scripted.says({"reply": "5"})
    prices = scripted.prices(name, 1, 0)
    cache = tmp_path / "cache.sqlite"
    common = ["verify", "canary", passages, "--bank", bank, "--model", name, "--cache", str(cache)]
    assert main([*common, "--dry-run", "--prices", prices]) == 0
    header, line = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    row = dict(zip(header, line, strict=True))
    # q1: empty, instruction, one other-query, shuffled-query, three questions: 7 cases of 4 items; q2: the last has one
    # question, and one case the more of another query is not there (one other query): 5 cases of 1 item.
    assert int(row["calls"]) + int(row["shared"]) == 7 * 4 + 5
    # Each reply may be cut, and is asked for once more then.
    assert float(row["cost_at_most"]) == 2 * int(row["prompt_tokens"]) > 0
    assert not cache.exists()
    assert main([*common, "--format", "jsonl"]) == 0
    said = capsys.readouterr().err
    assert "33 grades of 12 passages" in said
    assert main([*common, "--dry-run"]) == 0
    header, line = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    row = dict(zip(header, line, strict=True))
    assert (row["calls"], row["cached_share"], row["cost_at_most"]) == ("0", "1.000", "-")


def test_limits_stop_the_run_and_keep_what_is_done(
    files: tuple[Path, Path], tmp_path: Path, scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = map(str, files)
    model = scripted.says({"reply": "0", "prompt_tokens": 1})
    prices = scripted.prices(model, 1, 1)
    common = ["verify", "canary", passages, "--bank", bank, "--model", model, "--format", "jsonl"]
    output, cache = tmp_path / "report.jsonl", ["--cache", str(tmp_path / "cache.sqlite")]
    assert main([*common, "--max-calls", "3", "--output", str(output)]) == 1
    said = capsys.readouterr().err
    assert "the limit of 3 calls was reached" in said and "name a cache to go on later (--cache)" in said
    # What was made is reported; what was not asked counts neither way.
    assert "20 canary grades failed: they count neither way" in said
    assert "canaries" in {json.loads(line)["report"] for line in output.read_text().splitlines()}
    assert main([*common, *cache, "--max-calls", "3"]) == 1
    assert "raise it and run again: finished calls are in the cache" in capsys.readouterr().err
    assert main([*common, *cache]) == 0
    # Of 33 requests three are equal to others (both shared and cached ones may be counted so): 30 − 3 calls are left.
    assert "33 grades of 12 passages: 27 calls" in capsys.readouterr().err
    assert main([*common, "--max-cost", "1"]) == 2
    assert "a limit on the cost needs a price" in capsys.readouterr().err
    # One token a call at 1 unit of money.
    assert main([*common, "--max-cost", "5", "--prices", prices]) == 1
    assert "limit of 5 on the cost" in capsys.readouterr().err
    assert main(["verify", "all", passages, "--max-calls", "3", "--dry-run"]) == 2
    assert "dry_run, max_calls would have no effect in the report" in capsys.readouterr().err
