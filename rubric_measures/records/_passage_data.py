"""What files say about a passage besides its grades: judgments by assessors, rankings by runs.

Source: as `models`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import core_schema

from rubric_measures.base.models import Record
from rubric_measures.base.scales import MOST_RELEVANT


@dataclass(frozen=True)
class Number:
    """The numbers of a field: an integer is an `int`, and what is written with a fraction a `float`.

    So both are written back as they were.
    """

    lowest: int
    highest: int

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> core_schema.CoreSchema:
        """An integer or a real number between the ends."""
        ends: dict[str, Any] = {"ge": self.lowest, "le": self.highest, "strict": True}
        return core_schema.union_schema(
            [core_schema.int_schema(**ends), core_schema.float_schema(**ends, allow_inf_nan=False)],
            mode="left_to_right",
            custom_error_type="number",
            custom_error_message=f"Input should be a number from {self.lowest} to {self.highest}",
        )


# Longer than any ranking: what stands at a rank is looked at together with all ranks above it.
MAX_RANK = 1_000_000
# As in qrels: greater ones have no floating-point number, or are none that anybody gave.
Label = Annotated[float, Number(-MOST_RELEVANT, MOST_RELEVANT)]


class Judgment(Record):
    """What an assessor said about the relevance of a passage; any number up to that of 32 bits.

    Attributes:
        doc_id: the passage (`paragraphId`).
        query_id: the query (`query`).
        relevance: the label.
        title_query: the query's title, where the file has it (`titleQuery`).
    """

    doc_id: str = Field(alias="paragraphId")
    query_id: str = Field(alias="query")
    relevance: Label
    title_query: str | None = Field(default=None, alias="titleQuery")


class RankingEntry(Record):
    """Where a run ranked the passage.

    Attributes:
        method: the run (run_id).
        doc_id: the passage (`paragraphId`).
        query_id: the query (`queryId`).
        rank: from 0 or 1, as the file has it; never negative, at most `MAX_RANK`.
        score: finite.
    """

    method: str
    doc_id: str = Field(alias="paragraphId")
    query_id: str = Field(alias="queryId")
    rank: Annotated[int, Field(ge=0, le=MAX_RANK)]
    score: float


class PassageData(Record):
    """Judgments and rankings of one passage; either list may be missing, null or empty."""

    judgments: list[Judgment] | None = None
    rankings: list[RankingEntry] | None = None
