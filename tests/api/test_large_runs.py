"""`evaluate` of a large run: a part at a time gives what all at once gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import rubric_measures.api._evaluating as evaluating
from rubric_measures.api import evaluate

MEASURES = ["nDCG@10", "AP", "AP(rel=2)", "P@5", "RR", "Judged@10", "Success@1", "SetP", "NumRet"]


@pytest.mark.parametrize("is_grouped", [True, False])
def test_parts_give_what_all_at_once_gives(is_grouped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(4)
    lines = [
        f"q{query} Q0 d{draw.randrange(10**6)} {rank} {draw.randrange(20)} r\n"
        for query in range(30)
        for rank in range(20)
    ]
    if not is_grouped:
        draw.shuffle(lines)
    run, qrels = tmp_path / "r.run", tmp_path / "q.qrels"
    run.write_text("".join(lines))
    # Some queries are not judged, some are not ranked.
    judged = [line.split() for line in lines if int(line.split()[0][1:]) % 4]
    qrels.write_text(
        "".join(f"{row[0]} 0 {row[2]} {draw.randrange(4)}\n" for row in judged if draw.random() < 0.5)
        + "".join(f"q{query} 0 d1 1\n" for query in (98, 99))
    )
    whole = evaluate(str(qrels), str(run), MEASURES)
    monkeypatch.setattr(evaluating, "_MANY", 100)
    parts = evaluate(str(qrels), str(run), MEASURES)

    def by_measure(values: evaluating.RunValues) -> dict[str, list[tuple[str, float]]]:
        found: dict[str, list[tuple[str, float]]] = {}
        for metric in values.metrics:
            found.setdefault(str(metric.measure), []).append((metric.query_id, metric.value))
        return found

    assert by_measure(parts) == by_measure(whole)
    assert parts.measures == whole.measures
