"""Tests of distributions over grades: of label probabilities, first tokens and replicates."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rubric_measures import Asking, Calls, grade
from rubric_measures.base.errors import InputError
from rubric_measures.grading.asking import distribution_of_reply
from rubric_measures.models.base import Reply, Request
from rubric_measures.records.models import ItemGradeSet, QueryPassages, confidences_of, details_of, load_graded
from tests.fault_server import running
from tests.function_backend import FunctionBackend
from tests.grading_data import make_bank, make_groups, write_inputs

PROMPT = "QuestionSelfRatedUnanswerablePromptWithChoices"
RATINGS = ("0", "1", "2", "3", "4", "5")


def _sets(groups: Sequence[QueryPassages]) -> list[ItemGradeSet]:
    return [entry for group in groups for passage in group.passages for entry in passage.exam_grades or ()]


def test_first_tokens_become_labels() -> None:
    def read(candidates: list[list[Any]], labels: Sequence[str]) -> dict[int, float] | None:
        scored = [[token, math.log(share)] for token, share in candidates]
        grades = {label: place for place, label in enumerate(labels)}
        return distribution_of_reply({"first_token_logprobs": scored}, labels, grades.get)

    found = read([["3", 0.5], [" 3", 0.25], ["▁4", 0.2], ["The", 0.05]], RATINGS)
    assert found == pytest.approx({0: 0, 1: 0, 2: 0, 3: 0.75 / 0.95, 4: 0.2 / 0.95, 5: 0})
    assert read([["yes", 0.6], ["No", 0.2], ["\n", 0.2]], ("No", "Yes")) == pytest.approx({0: 0.25, 1: 0.75})
    # Most of it begins no label; one token begins two.
    assert read([["The", 0.6], ["3", 0.4]], RATINGS) is None
    assert read([["Not", 0.9], ["Very", 0.1]], ("Not relevant", "Not very relevant", "Very relevant")) is None
    assert read([["Very", 0.9], ["Not", 0.1]], ("Not relevant", "Very relevant")) == pytest.approx({0: 0.1, 1: 0.9})
    # Where "10" is one token "1" is a whole number; else it may begin one.
    tens = [str(grade) for grade in range(11)]
    assert read([["10", 0.5], ["1", 0.25], ["9", 0.25]], tens) == pytest.approx(
        {**dict.fromkeys(range(11), 0), 1: 0.25, 9: 0.25, 10: 0.5}
    )
    assert read([["1", 0.75], ["9", 0.25]], tens) is None
    # Not of all labels.
    assert distribution_of_reply({"label_probabilities": {"3": 0.6}}, RATINGS, int) is None


def test_label_probabilities_of_a_model_are_kept_and_choose_the_grade(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: Request) -> Reply:
        draw = random.Random(request.messages[-1].content)
        shares = {label: draw.random() for label in request.labels}
        return Reply(max(shares, key=shares.__getitem__), raw={"label_probabilities": shares})

    passages, bank = write_inputs(tmp_path, queries=2, passages=3, items=2)
    out = tmp_path / "graded.jsonl.gz"
    grade(passages, bank, model=FunctionBackend(answer), prompt=PROMPT, output=out)
    sets = _sets(load_graded(out))
    cells = 0
    for entry in sets:
        sure = confidences_of(entry)
        assert sure.keys() == {rating.item_id for rating in entry.self_ratings or ()}
        for rating in entry.self_ratings or ():
            # The reply is the most probable label.
            shares = details_of(entry)[rating.item_id]["distribution"]
            assert sorted(shares) == ["0", "1", "2", "3", "4", "5"]
            assert sure[rating.item_id] == pytest.approx(shares[str(rating.self_rating)], abs=1e-5)
            assert shares[str(rating.self_rating)] == max(shares.values())
            cells += 1
    assert cells == 12


def _replicated(tmp_path: Path, drawn: Sequence[str]) -> list[QueryPassages]:
    replies = tmp_path / "replies.jsonl"
    replies.write_text(json.dumps({"contains": "", "reply": list(drawn)}) + "\n")
    bank = make_bank(queries=1, items=1)
    with running(replies=replies) as started:
        made = grade(
            make_groups(queries=1, passages=1),
            bank,
            model="openai:m",
            calls=Calls(base_url=started.url),
            prompt=PROMPT,
            asking=Asking(replicates=len(drawn), temperature=1.0),
        )
        return list(made)


def test_replicates_are_a_distribution(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    graded = _replicated(tmp_path, ["1", "5", "4", "4"])
    assert list(confidences_of(_sets(graded)[0]).values()) == [0.5]


def test_a_distribution_that_is_none_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    graded = _replicated(tmp_path, ["1", "3"])
    entry = _sets(graded)[0]
    broken = entry.replacing(details={"i": {"distribution": {"1": 0.5, "2": "x"}}})
    with pytest.raises(InputError, match="item 'i': its details hold a wrong distribution over grades"):
        confidences_of(broken)
    broken = entry.replacing(details={"i": {"replicates": [[10**400, "x"]]}})
    with pytest.raises(InputError, match="item 'i': its details hold a wrong distribution"):
        confidences_of(broken)
