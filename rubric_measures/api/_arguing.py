"""Reports judged as Auto-ARGUE judges them: judgments and a bank in, a board out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rubric_measures.api._loading import Bank, bank_of, file_path, is_file
from rubric_measures.api._scoring import Board
from rubric_measures.base.errors import InputError, naming

if TYPE_CHECKING:
    from rubric_measures.formats.autojudge import ArgueReport


def argue(
    judgments: str | os.PathLike[str] | Iterable[ArgueReport],
    bank: Bank,
    *,
    weights: Mapping[str, float] | None = None,
    scores: str | os.PathLike[str] | None = None,
) -> Board:
    """Scores reports that were judged sentence by sentence, as Auto-ARGUE does.

    The board has `sentence_support`, `citation_support`, `citation_relevance`, `nugget_coverage`,
    `nugget_coverage_weighted`, `f1` and `f1_weighted` as means over topics (macro), and with `_micro` those of all
    topics together. A report whose judging failed is named and has no value.

    Args:
        judgments: Auto-ARGUE's file of judgments, or what it holds.
        bank: the nuggets; of nugget banks the documents of answers and how answers are joined (AND, OR) count.
        weights: importance -> weight; vital 2 and okay 1 if None.
        scores: a file to write scores and counts to, in Auto-ARGUE's form.

    Raises:
        InputError: there is no report, or the nuggets cannot be weighed.
        FormatError: a file cannot be read; names file and line.
        UnknownNameError: the bank does not have a topic.
    """
    from rubric_measures.boards.programs import argue_scores, write_argue_scores
    from rubric_measures.corpora.overwriting import keep_inputs
    from rubric_measures.formats.autojudge import read_argue_judgments

    keep_inputs(scores, judgments, bank)
    known = bank_of(bank)
    if known is None:
        raise InputError("coverage is of the nuggets of a bank; name it", settings=("bank",))
    if is_file(judgments):
        with file_path(judgments) as path:
            reports = read_argue_judgments(path)
    else:
        reports = list(judgments)
    for report in reports:
        known.for_query(report.query_id, os.fspath(judgments) if isinstance(judgments, str | os.PathLike) else "")
    with naming(*(one for one in (bank, judgments) if isinstance(one, str | os.PathLike))):
        found = argue_scores(reports, known, weights)
    if scores is not None:
        write_argue_scores(scores, found)
    return Board(**vars(found.board))
