"""Judgments of reports as Auto-ARGUE writes them: JSON lines, a report a line, with judgments of each sentence.

Source: Walden et al. 2025, Auto-ARGUE, and its judgment files.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import TypeAdapter, model_validator

from rubric_measures.base.json_files import JsonLines, Record
from rubric_measures.formats.base import Format
from rubric_measures.formats.reports import CitedReport

__all__ = [
    "ARGUE",
    "ArgueCitation",
    "ArgueJudgment",
    "ArgueReport",
    "ArgueSentence",
    "read_argue_judgments",
    "write_argue_judgments",
]


class _MatchedNugget(Record):
    question_text: str
    matched_answer: list[str] | str


class _MatchedNuggets(Record):
    matched_nuggets: list[_MatchedNugget] | None = None


class ArgueJudgment(Record):
    """One judgment.

    Attributes:
        judgment_type_id: what was judged; kinds that nobody knows here are kept.
        response: what was said, by fields that the kind has.
        evaluator: who said it.
        provenance: what it is about: `doc_id`, …
    """

    judgment_type_id: str
    response: dict[str, Any] | None = None
    evaluator: Any = None
    provenance: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _form(self) -> Self:
        if self.judgment_type_id == "SENTENCE_ANSWERS_QUESTION":
            _MatchedNuggets.model_validate(self.response or {})
        return self

    @property
    def matches(self) -> list[tuple[str, str]]:
        """The (question, gold answer) pairs that the sentence states, of a judgment that says them."""
        if self.judgment_type_id != "SENTENCE_ANSWERS_QUESTION":
            return []
        nuggets = _MatchedNuggets.model_validate(self.response or {}).matched_nuggets or []
        listed = ((one.question_text, one.matched_answer) for one in nuggets)
        return [(text, one) for text, said in listed for one in ([said] if isinstance(said, str) else said)]

    @property
    def doc_id(self) -> str | None:
        """The document that it is about, where it names one."""
        found = (self.provenance or {}).get("doc_id", (self.response or {}).get("doc_id"))
        return found if isinstance(found, str) else None


class ArgueCitation(Record):
    """A document that a sentence cites."""

    doc_id: str
    text: str | None = None


class ArgueSentence(Record):
    """A segment of a report with what was judged of it; only segments of the type `sentence` are counted."""

    segment_type: str = "sentence"
    text: str = ""
    citations: list[ArgueCitation] | None = None
    judgments: list[ArgueJudgment] | None = None


class ArgueReport(Record):
    """A report and the judgments of its sentences."""

    report: CitedReport
    judgments: list[ArgueSentence]

    @property
    def run_id(self) -> str:
        """The run."""
        return self.report.run_name

    @property
    def query_id(self) -> str:
        """The topic."""
        return self.report.query_id

    @property
    def sentences(self) -> list[ArgueSentence]:
        """The sentences that were judged."""
        return [one for one in self.judgments if one.segment_type == "sentence"]


_REPORTS: JsonLines[ArgueReport] = JsonLines(
    TypeAdapter(ArgueReport), "judgments of reports", lambda one: (one.run_id, one.query_id)
)
read_argue_judgments = _REPORTS.read
write_argue_judgments = _REPORTS.write

ARGUE = Format(
    "argue judgments",
    "judgments of reports, Auto-ARGUE",
    read_argue_judgments,
    write_argue_judgments,
    lambda head: head.has(b"report", b"judgments"),
)
