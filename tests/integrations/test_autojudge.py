"""Tests of the judge for TREC Auto-Judge, with the real package: a whole workflow, and each method by hand."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rubric_measures.base.errors import InputError, MeasureError, MissingExtraError, UnknownNameError
from rubric_measures.formats.answers import answer_doc_id, read_reports
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.trec import read_qrels
from rubric_measures.integrations.autojudge import JudgeSettings, RubricJudge
from rubric_measures.records.models import load_graded
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import ASSIGNED, YES_NO
from tests.example_records import write_lines
from tests.integrations.word_lists import import_base

base = import_base()

FULL = "Bees make honey. Honey is sweet."
TOPICS = [
    {"request_id": "bees", "title": "What do bees make?", "problem_statement": "Who makes honey?"},
    {"request_id": "rain", "title": "Where does rain come from?"},
]
QUESTIONS = {
    "bees": ["Do bees make honey?", "Is honey sweet?"],
    "rain": ["Does rain fall from clouds?"],
}
# alpha says all about bees and nothing about rain; beta says one thing about each; gamma repeats alpha on bees.
ANSWERS = {
    ("alpha", "bees"): ["Bees make honey.", "Honey is sweet."],
    ("alpha", "rain"): [],
    ("beta", "bees"): ["Is honey sweet?"],
    ("beta", "rain"): ["Rain does fall from clouds."],
    ("gamma", "bees"): ["Bees make honey.", "Honey is sweet."],
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    for run_id in ("alpha", "beta", "gamma"):
        reports = [
            {
                "metadata": {"team_id": "us", "run_id": run, "topic_id": topic},
                "responses": [{"text": text, "citations": ["d1"]} for text in texts],
            }
            for (run, topic), texts in ANSWERS.items()
            if run == run_id
        ]
        write_lines(tmp_path / "runs" / f"{run_id}.jsonl", reports)
    write_lines(tmp_path / "topics.jsonl", TOPICS)
    rules = [
        {"contains": ["Who makes honey?"], "reply": json.dumps({"questions": QUESTIONS["bees"]})},
        {"contains": ["Where does rain come from?"], "reply": json.dumps({"questions": QUESTIONS["rain"]})},
    ]
    write_lines(tmp_path / "model.jsonl", rules)
    return tmp_path


def _reports(files: Path) -> list[Any]:
    return [report for path in sorted((files / "runs").iterdir()) for report in base.load_report(path)]


def _topics(files: Path) -> list[Any]:
    return list(base.load_requests_from_file(files / "topics.jsonl"))


def _bank(files: Path) -> Path:
    rows = [
        {"query_id": query_id, "items": [{"question_text": text} for text in texts]}
        for query_id, texts in QUESTIONS.items()
    ]
    return write_lines(files / "bank.jsonl", rows)


def test_a_whole_workflow(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from autojudge_base.cli import main
    from click.testing import CliRunner

    workflow = {
        "judge_class": "rubric_measures.integrations.autojudge:RubricJudge",
        "create_nuggets": True,
        "create_qrels": True,
        "judge": True,
        "judge_uses_nuggets": True,
        "qrels_uses_nuggets": True,
        "judge_uses_qrels": False,
        "augment_report": True,
        "settings": {"model": "lexical", "filebase": "{_name}", "nugget_grades": True},
        "nugget_settings": {"model": f"scripted:{files / 'model.jsonl'}"},
    }
    (files / "workflow.yml").write_text(json.dumps(workflow))
    arguments = ["run", "--workflow", str(files / "workflow.yml"), "--rag-responses", str(files / "runs")]
    arguments += ["--rag-topics", str(files / "topics.jsonl"), "--out-dir", str(files / "out")]
    monkeypatch.setenv("OPENAI_MODEL", "unused")
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    out = {path.name.split(".", 1)[1]: path for path in (files / "out").iterdir() if "." in path.name}
    banks = [json.loads(line) for line in out["nuggets.jsonl"].read_text().splitlines()]
    assert {bank["query_id"]: list(bank["nugget_bank"]) for bank in banks} == QUESTIONS
    table = read_leaderboard(out["eval.txt"])
    # alpha covers 2 of 2 questions on bees and has an empty answer on rain: (1 + 0) / 2; beta 1 of 2 and 1 of 1:
    # (0.5 + 1) / 2; gamma 2 of 2, and no answer on rain.
    assert table.column("RubricCover(rel=4)") == {"alpha": 0.5, "beta": 0.75, "gamma": 0.5}
    assert table.per_query("RubricCover(rel=4)")["beta"] == {"bees": 0.5, "rain": 1.0}
    # L: 6 and 0 words; 3 and 5; 6 and none.
    assert table.column("L") == {"alpha": 3.0, "beta": 4.0, "gamma": 3.0}
    described = yaml.safe_load(out["eval.measures.yml"].read_text())["measures"]
    assert [measure["name"] for measure in described] == list(table.measures)
    qrels = {qrel[:3] for qrel in read_qrels(out["qrels"] if "qrels" in out else out["qrels.txt"])}
    assert ("bees", answer_doc_id(FULL), 5) in qrels
    assert ("rain", answer_doc_id(""), 0) in qrels
    assert len(qrels) == 4
    reports = read_reports(out["responses.jsonl"])
    grades = {(one.query_id, one.run_name) for one in reports for said in one.item_grades.values() if said.grade == 5}
    assert ("bees", "alpha") in grades and ("bees", "gamma") in grades and ("rain", "alpha") not in grades
    assert {group.query_id for group in load_graded(out["graded.jsonl.gz"])} == {"bees", "rain"}


def test_the_same_text_of_two_runs_is_graded_once(files: Path) -> None:
    topics, config = _topics(files), base.LlmConfigBase()
    settings = {"model": "lexical", "bank": str(_bank(files)), "outdir": files / "out"}
    board = RubricJudge().judge(_reports(files), topics, config, measures="RubricCover(rel=4)", **settings)
    assert board.measures == ("RubricCover(rel=4)", "L")
    (bees,) = (group for group in load_graded(files / "out" / "rubric.graded.jsonl.gz") if group.query_id == "bees")
    assert [passage.text for passage in bees.passages] == [FULL, "Is honey sweet?"]
    assert bees.passages[0].paragraph["answers"]["gamma"]["citations"] == [["d1"], ["d1"]]
    assert (files / "runs" / "alpha.jsonl").exists()


def test_reports_stay_as_they_are_unless_grades_are_asked_for(files: Path) -> None:
    reports, topics, config = _reports(files), _topics(files), base.LlmConfigBase()
    settings = {"model": "lexical", "bank": str(_bank(files))}
    RubricJudge().judge(reports, topics, config, **settings)
    assert all(report.evaldata is None for report in reports)
    RubricJudge().judge(reports, topics, config, nugget_grades=True, **settings)
    graded = reports[0].evaldata["nugget_grades"]
    assert [entry["grade"] for entry in graded.values()] == [5, 5]


def test_nuggets_of_both_containers_are_read(files: Path) -> None:
    from autojudge_base.nugget_data import NuggetizerNuggetBanks

    reports, topics, config = _reports(files), _topics(files), base.LlmConfigBase()
    judge = RubricJudge()
    topics = [topic.model_copy(update={"problem_statement": "Say it in short."}) for topic in topics]
    banks = judge.create_nuggets(None, topics, config, bank=str(_bank(files)))
    assert isinstance(banks, judge.nugget_banks_type)
    # The title alone, without problem statement and background.
    assert [bank.title_query for bank in banks.banks.values()] == [topic.title for topic in topics]
    assert judge.create_nuggets(None, topics, config, nugget_banks=banks) is banks
    settings = {"model": "lexical", "measures": ["RubricCover(rel=4)"]}
    ours = judge.judge(reports, topics, config, nugget_banks=banks, **settings)
    model = NuggetizerNuggetBanks.get_bank_model()
    theirs = NuggetizerNuggetBanks.from_banks_list(
        [
            model.model_validate({"qid": query_id, "query": "", "nuggets": [{"text": text} for text in texts]})
            for query_id, texts in QUESTIONS.items()
        ]
    )
    assert judge.judge(reports, topics, config, nugget_banks=theirs, **settings).entries == ours.entries


def test_failed_grades_are_no_numbers(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    # The scripted model answers no grading prompt: every grade fails, so there is nothing to print but lengths.
    settings = {"model": f"scripted:{files / 'model.jsonl'}", "bank": str(_bank(files)), "asking": {"retries": 0}}
    topics, config = _topics(files), base.LlmConfigBase()
    chosen = {"measures": ["RubricCover(rel=4)"], **settings}
    with pytest.raises(MeasureError, match="100 % of the grades"):
        RubricJudge().judge(_reports(files), topics, config, **chosen)
    board = RubricJudge().judge(_reports(files), topics, config, on_failed="expected", **chosen)
    values = {(entry.run_id, entry.topic_id): entry.values for entry in board.entries}
    assert values["alpha", "bees"] == {"L": 6}
    assert values["alpha", "rain"] == {"RubricCover(rel=4)": 0.0, "L": 0}
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        qrels = RubricJudge().create_qrels(_reports(files), topics, config, **settings)
    assert [(row.topic_id, row.grade) for row in qrels.rows] == [("rain", 0)]
    assert "4 answers have no label" in caplog.text


def test_wrong_settings_are_said(files: Path) -> None:
    judge, topics, config = RubricJudge(), _topics(files), base.LlmConfigBase()
    with pytest.raises(UnknownNameError, match=r"unknown setting 'promt': did you mean prompt\?"):
        judge.judge([], topics, config, promt="x")
    with pytest.raises(InputError, match="setting target: 'mean' is none of questions, nuggets"):
        JudgeSettings.of({"target": "mean"})
    with pytest.raises(InputError, match="there are no nuggets"):
        judge.judge(_reports(files), topics, config, model="lexical")
    with pytest.raises(InputError, match="1 topic has no nuggets \\(such as rain\\)"):
        bank = write_lines(files / "one.jsonl", [{"query_id": "bees", "items": [{"question_text": "Who?"}]}])
        judge.create_nuggets(None, topics, config, bank=str(bank))
    with pytest.raises(InputError, match="answers query 'bees' twice"):
        twice = [report for report in _reports(files) if report.metadata.topic_id == "bees"][:1] * 2
        judge.judge(twice, topics, config, model="lexical", bank=str(_bank(files)))
    nuggets = JudgeSettings(prompt="nuggets.assign")
    bank = {name: [RubricItem("a", "q", "A.", "nugget", importance=name)] for name in ("vital", None)}
    assert nuggets.default_measures(TestBank({"q": bank["vital"]}), ASSIGNED)[:2] == ("NuggetV(strict=True)", "NuggetV")
    assert nuggets.default_measures(TestBank({"q": bank[None]}), ASSIGNED) == ("NuggetA(strict=True)", "NuggetA")
    assert JudgeSettings().default_measures(TestBank({}), YES_NO) == ("RubricCover(rel=1)",)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "autojudge_base", None)
    with pytest.raises(MissingExtraError, match=r"\[autojudge\]"):
        _ = RubricJudge().nugget_banks_type
