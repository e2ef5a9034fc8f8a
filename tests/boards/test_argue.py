"""Tests of scores as Auto-ARGUE computes them: by hand, from file to file, and what cannot be counted."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.boards.programs import COUNTS, argue_rates, argue_scores
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.banks import NUGGET_BANK, bank_of_entries
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.support import ARGUE

BANKS = [
    {
        "query_id": "q1",
        "format_version": "v3",
        "nugget_bank": {
            "Who?": {  # any answer
                "question": "Who?",
                "importance": "vital",
                "aggregator_type": "OR",
                "answers": {
                    "Ada": {"answer": "Ada", "references": ["d1"]},
                    "Lovelace": {"answer": "Lovelace", "references": [{"doc_id": "d2"}]},
                },
            },
            "When and where?": {  # both answers
                "question": "When and where?",
                "importance": "okay",
                "aggregator_type": "AND",
                "answers": {
                    "1843": {"answer": "1843", "references": ["d1"]},
                    "London": {"answer": "London", "references": ["d1", "d3"]},
                },
            },
        },
    },
    {
        "query_id": "q2",  # no documents: answers count wherever they are stated
        "format_version": "v3",
        "nugget_bank": {"Why?": {"question": "Why?", "importance": "okay", "answers": {"So": {"answer": "So"}}}},
    },
]


def _sentence(
    text: str,
    cited: dict[str, bool] | None = None,
    matched: dict[str, list[str]] | None = None,
    **uncited: bool,
) -> dict[str, Any]:
    said: list[dict[str, Any]] = [
        {"judgment_type_id": "SENTENCE_ATTESTED", "response": {"is_attested": yes}, "provenance": {"doc_id": doc_id}}
        for doc_id, yes in (cited or {}).items()
    ]
    nuggets = [{"question_text": one, "matched_answer": answers} for one, answers in (matched or {}).items()]
    if nuggets:
        kind = {"judgment_type_id": "SENTENCE_ANSWERS_QUESTION", "evaluator": "m"}
        said.append({**kind, "response": {"matched_nuggets": nuggets}, "provenance": {"doc_id": "d1"}})
    if uncited:
        said.append({"judgment_type_id": "OF_UNCITED", "response": uncited})
    citations = [{"doc_id": doc_id, "text": "…"} for doc_id in cited or {}]
    return {"segment_type": "sentence", "text": text, "citations": citations, "judgments": said}


def _report(run: str, topic: str, *sentences: dict[str, Any]) -> dict[str, Any]:
    responses = [
        {"text": one["text"], "citations": [cited["doc_id"] for cited in one["citations"]]} for one in sentences
    ]
    metadata = {"team_id": "t", "run_id": run, "topic_id": topic}
    return {"report": {"metadata": metadata, "responses": responses, "references": []}, "judgments": list(sentences)}


REPORTS = [
    _report(
        "a",
        "q1",
        _sentence("Ada did.", {"d1": True, "d9": True}, {"Who?": ["Ada"]}),
        # London is listed for d1 and d3, and this sentence cites neither; 1843 counts by d1 though it does not attest.
        _sentence("In London.", {"d2": True}, {"When and where?": ["London"]}),
        _sentence("In 1843.", {"d1": False}, {"When and where?": ["1843"]}),
        _sentence("It was new.", requires_citation=True, is_first_instance=True),
        _sentence("It was new, again.", requires_citation=True, is_first_instance=False),
        _sentence("Thanks.", requires_citation=False),
    ),
    _report("a", "q2", _sentence("So.", {"x": True}, {"Why?": ["So"]})),
    _report("b", "q1", _sentence("In 1843 in London.", {"d1": True}, {"When and where?": ["1843", "London"]})),
]


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_published_sums_give_the_published_f1() -> None:
    # TREC RAGTIME 2025: 171 of 245 sentences, 268 of 815 nuggets, 196 of the weight 477.
    scores = argue_rates(dict(zip(COUNTS, (0, 245, 171, 0, 0, 0, 815, 268, 477, 196, 0), strict=True)))
    assert scores["f1"] == pytest.approx(0.44705, abs=5e-6)
    assert scores["f1_weighted"] == pytest.approx(0.51727, abs=5e-6)
    assert set(argue_rates(dict.fromkeys(COUNTS, 0)).values()) == {0.0}


def test_scores_of_runs_from_file_to_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judgments = _write(tmp_path / "a.judgments.jsonl", REPORTS)
    bank = _write(tmp_path / "banks.jsonl", BANKS)
    assert detect_format(judgments) == "argue"
    scores = tmp_path / "scores.tsv"
    arguments = [
        "leaderboard",
        str(judgments),
        "--bank",
        str(bank),
        "--scores",
        str(scores),
        "--format",
        "json",
    ]
    assert main(arguments) == 0
    shown = {run["run_id"]: run["measures"] for run in json.loads(capsys.readouterr().out)["runs"]}
    assert scores.read_text().splitlines()[0] == "run_id\trequest_id\tmetric\tvalue"
    table = read_leaderboard(scores)
    q1 = {
        name: table.per_query(name)["a"]["q1"]
        for name in table.measures
        if not name.endswith(("cro", "_median", "_max"))
    }
    # Sentences: 3 cite, 1 of the 3 others counts; 2 of the 4 are right. Citations: 3 of 4 attest; 3 are listed.
    # Nuggets: Who? (2) is right; of the other London has no listed document.
    assert q1 == {
        "sentences": 6,
        "sentences_with_citations_or_requiring_citations": 4,
        "correctly_cited_sentences": 2,
        "citations": 4,
        "supporting_citations": 3,
        "relevant_citations": 3,
        "nuggets": 2,
        "correct_nuggets": 1,
        "nuggets_weighted": 3,
        "correct_nuggets_weighted": 2,
        "character_count": len("Ada did. In London. In 1843. It was new. It was new, again. Thanks."),
        "sentence_support": 0.5,
        "citation_support": 0.75,
        "citation_relevance": 0.75,
        "nugget_coverage": 0.5,
        "nugget_coverage_weighted": pytest.approx(2 / 3),
        "f1": 0.5,
        "f1_weighted": pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3)),
    }
    # q2 is all right. Micro: 3 of 5 sentences, 2 of 3 nuggets, 3 of 4 by weight; macro: means of the two topics.
    assert table.column("sentence_support_micro")["a"] == pytest.approx(0.6)
    assert table.column("f1_micro")["a"] == pytest.approx(2 * 0.6 * (2 / 3) / (0.6 + 2 / 3))
    assert table.column("f1_weighted_micro")["a"] == pytest.approx(2 * 0.6 * 0.75 / 1.35)
    assert table.column("f1_macro")["a"] == pytest.approx(0.75)
    assert table.column("citation_relevance_macro")["a"] == pytest.approx(0.375)
    # b has no report to q2: (1 + 0) / 2, and of 3 nuggets 1.
    assert table.column("sentence_support_macro")["b"] == 0.5
    assert table.column("nugget_coverage_micro")["b"] == pytest.approx(1 / 3)
    assert shown["a"]["f1"]["mean"] == table.column("f1_macro")["a"]
    assert shown["b"]["f1_micro"]["mean"] == table.column("f1_micro")["b"]
    ARGUE.write(tmp_path / "again.jsonl", ARGUE.read(judgments))
    assert [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()] == REPORTS
    # Other weights.
    assert main([*arguments[:4], "--weights", "vital=1", "okay=0.5", "--scores", str(scores)]) == 0
    assert read_leaderboard(scores).per_query("nuggets_weighted")["a"] == {"q1": 1.5, "q2": 0.5}


def test_judged_reports_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    judgments = _write(tmp_path / "a.judgments.jsonl", REPORTS)
    bank = _write(tmp_path / "banks.jsonl", BANKS)
    command = [
        "leaderboard",
        str(judgments),
        "--bank",
        str(bank),
        "-o",
        str(tmp_path / "board.tsv"),
        "--plot",
    ]
    assert main([*command, str(tmp_path / "board.pdf")]) == 0
    # Four measures a page.
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "board.pdf").read_bytes())) == 4


def test_judgments_of_another_form_are_refused(tmp_path: Path) -> None:
    wrong = _report("a", "q1", _sentence("Ada.", {"d1": True}, {"Who?": ["Ada"]}))
    wrong["judgments"][0]["judgments"][1]["response"]["matched_nuggets"] = ["Who?"]
    with pytest.raises(FormatError, match=r"j\.jsonl:1: .*matched_nuggets"):
        ARGUE.read(_write(tmp_path / "j.jsonl", [wrong]))


def test_what_cannot_be_counted_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bank = bank_of_entries(NUGGET_BANK.read(_write(tmp_path / "banks.jsonl", BANKS)))
    rows = [
        _report("a", "q1", _sentence("Ada.", {"d1": True}, {"Whom?": ["Ada"], "Who?": ["Eve"]}), _sentence("Hm.")),
        _report("a", "q2", {**_sentence("So.", {"x": True}), "judgments": []}),
        {**_report("b", "q2", _sentence("So.", {"x": True})), "judgments": []},
        # An empty report is judged, and 0.
        _report("b", "q1"),
    ]
    reports = ARGUE.read(_write(tmp_path / "j.jsonl", rows))
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        scores = argue_scores(reports, bank)
    said = "2 reports have citations, or only sentences, that nobody judged; they have no scores (a on q2, b on q2)"
    assert said in caplog.text
    assert "1 sentence without citations has no judgment whether it needs one" in caplog.text
    assert "2 matched answers are of questions or answers that the bank does not have" in caplog.text
    assert scores.failed == [("a", "q2"), ("b", "q2")]
    assert scores.board.values["b"]["f1"] == {"q1": 0.0, "q2": None}
    assert scores.board.values["a"]["sentence_support"] == {"q1": 1.0, "q2": None}
    assert not scores.board.is_complete
    assert ("a", "q2", "sentences") not in scores.rows
    plain = [{**BANKS[0], "nugget_bank": {**BANKS[0]["nugget_bank"], "How?": {"question": "How?"}}}]  # type: ignore[dict-item]
    with pytest.raises(InputError, match=r"'How\?' has no importance"):
        argue_scores(reports[:1], bank_of_entries(NUGGET_BANK.read(_write(tmp_path / "p.jsonl", plain))))
