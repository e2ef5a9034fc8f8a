"""A small file of support labels in the two forms of TREC RAG, and the numbers that are worked out from it by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# By sentence the labels of its citations: the example of the tests' arithmetic.
LABELS = (["2"], ["1"], ["0", "2"], ["-1"], [], ["-1", "2"])


def line(
    run_id: str,
    query_id: str = "t1",
    labels: tuple[list[str], ...] = LABELS,
    *,
    style: str = "Id",
    joined: tuple[str, ...] = (),
) -> dict[str, Any]:
    """An answer whose sentence n cites the documents dn.0, dn.1, … with these labels."""
    sentences = []
    for number, given in enumerate(labels):
        citations = [
            {f"citation{style}": place, "reference": f"d{number}.{place}", "support": label}
            for place, label in enumerate(given)
        ]
        more = {"verification_worthy": "1", "citationsCombibed": joined[number]} if joined else {}
        text = f"Sentence {number} of {run_id}."
        sentences.append({f"sentence{style}": number, **more, "text": text, "citations": citations})
    return {"topic_id" if style == "Id" else "narrative_id": query_id, "run_id": run_id, "sentences": sentences}


def write(path: Path, *lines: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return str(path)
