"""Tests of lines read as bytes: numbers as Python reads them, files of any shape as the careful reader reads them."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import FormatError
from rubric_measures.formats import columns
from rubric_measures.formats.columns import DoubtError, Tokens
from rubric_measures.formats.trec import (
    checked_qrels,
    checked_run,
    read_run,
    regular_qrels,
    regular_rankings,
)
from rubric_measures.types.entities import Ranking

_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_DIGITS = st.text("0123456789", max_size=26)
_SIGNS = st.sampled_from(["", "", "-", "+"])
_WRITTEN = st.one_of(
    _FLOATS.map(repr),
    st.floats(0, 1, exclude_min=True).map(repr),
    st.floats(-100, 100, width=32).map(repr),
    st.builds("{:.6f}".format, st.floats(-1e6, 1e6)),
    st.builds("{:g}".format, _FLOATS),
    st.integers(-(10**20), 10**20).map(str),
    st.builds(lambda sign, whole, part: f"{sign}{whole}.{part}", _SIGNS, _DIGITS, _DIGITS),
    st.builds(lambda sign, whole: f"{sign}{whole}", _SIGNS, _DIGITS),
    st.text("0123456789.+-eEx_٣ni", max_size=12),
).filter(bool)

# With one number of decimals, as most files have.
_ALIKE = st.integers(0, 9).flatmap(
    lambda size: st.lists(st.floats(0, 1e9).map(lambda score: f"{score:.{size}f}"), min_size=1, max_size=8)
)


def _is_plain(text: str) -> bool:
    return text.isascii() and "_" not in text and "n" not in text and "i" not in text


# Halfway between two floats, and a digit above and below.
@example(["-0", "1,2", "3"])
@example(["9007199254740993", "9007199254740993.1", "9007199254740992.9", "0.500000000000000055", "4503599627370497.5"])
@settings(deadline=None, max_examples=250)
@given(st.lists(_WRITTEN, min_size=1, max_size=8) | _ALIKE)
def test_numbers_are_those_that_python_reads_to_the_last_bit(texts: list[str]) -> None:
    tokens = Tokens.of([text.encode() for text in texts])
    try:
        expected = [float(text) for text in texts]
    except ValueError:
        expected = [float("nan")]
    if all(map(_is_plain, texts)) and np.isfinite(expected).all():
        assert tokens.numbers().tolist() == expected
    else:
        with pytest.raises(DoubtError):
            tokens.numbers()


def test_a_document_that_comes_twice_is_found_wherever_it_stands() -> None:
    rng = random.Random(5)
    for _ in range(20):
        docs = rng.sample(range(10**6), 5_000)
        docs.insert(rng.randrange(5_000), rng.choice(docs))
        lines = "".join(f"q Q0 {doc} {rank} {9_999 - rank}.5 tag\n" for rank, doc in enumerate(docs))
        assert regular_rankings(io.BytesIO(lines.encode()), lambda *_: None) is None


def _run_text(rng: random.Random) -> str:
    """A run of any shape, most often one that is right."""
    lines = []
    ids = [
        lambda doc: f"d{doc}",
        lambda doc: f"é\u2003ü{doc}",
        lambda doc: "x" * (doc % 40) + str(doc),
        lambda doc: f"{doc:09d}",
    ]
    for query in rng.sample(range(99), rng.randint(1, 5)):
        name = rng.choice(ids)
        docs = rng.sample(range(300), rng.randint(1, 30))
        scores = [rng.choice([1.5, 2, 1 + 1e-12, 1.0, -3.25, 1e-9, rng.random(), rng.gauss(0, 9)]) for _ in docs]
        if rng.random() < 0.6:
            scores.sort(reverse=True)
        ranks = list(range(rng.choice([0, 1]), len(docs) + 1))[: len(docs)]
        if rng.random() < 0.3:
            rng.shuffle(ranks)
        write = rng.choice([repr, "{:.6f}".format, "{:.2f}".format, "{:e}".format, "{:g}".format])
        gap = rng.choice([" ", " ", " ", "\t", "  ", " \t", "\v"])
        for doc, rank, score in zip(docs, ranks, scores, strict=False):
            row = [f"q{query}", "Q0", name(doc), str(rank), write(score), "sys"]
            if rng.random() < 0.002:
                row[rng.randrange(6)] = rng.choice(["", "x y", "nan", "-1", "1_0", "٣", "\x1f", "a\0"])
            lines.append(rng.choice(["", "", "", " "]) * (rng.random() < 0.1) + gap.join(row))
            if rng.random() < 0.01:
                lines.append(rng.choice(lines + [""] * 50))
    return rng.choice(["\n", "\n", "\r\n"]).join(lines) + rng.choice(["\n", "", "\n\n", "\n \n"])


Found = tuple[set[str], dict[str, tuple[Ranking, int]]] | None


def _both(text: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Found, Found]:
    """What is read of a file as it is, and of the lines that were looked at one by one."""
    monkeypatch.setattr(columns, "_PIECE", piece)
    fast = regular_rankings(io.BytesIO(text.encode()), lambda _, ranked: ranked.ranking())
    try:
        lines, count = checked_run(text.replace("\r\n", "\n"), "x")
    except FormatError:
        return fast and fast[:2], None
    careful = regular_rankings(io.BytesIO(lines), lambda _, ranked: ranked.ranking(), columns=count)
    assert careful is not None
    return fast and fast[:2], careful[:2]


@pytest.mark.parametrize("piece", [1 << 5, 1 << 8, 1 << 11, 1 << 20])
def test_files_of_any_shape_are_read_as_the_careful_reader_reads_them(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(piece)
    read = 0
    for _ in range(100):
        fast, careful = _both(_run_text(rng), piece, monkeypatch)
        assert fast in (careful, None)
        read += fast is not None
    assert read > 50


def test_a_rank_disagrees_where_trec_eval_sees_a_higher_score_below(tmp_path: Path) -> None:
    path = tmp_path / "sys.run"
    # By rank: a 1.0, b the same in single precision, then 0.5 twice at one rank, and e above both.
    scores = {"d": (3, 0.5), "a": (1, 1.0), "c": (3, 0.25), "b": (2, 1 + 1e-12), "e": (4, 0.75)}
    path.write_text("".join(f"q Q0 {doc} {rank} {score} s\n" for doc, (rank, score) in scores.items()))
    assert read_run(path).rank_disagreements == 1


def _qrels_text(rng: random.Random) -> str:
    gap = rng.choice([" ", "\t", "  "])
    labels = rng.choice(
        [["0", "1", "2"], ["-2", "+3", "1"], ["0.5", "1", "2.0"], ["1", "2147483647", "1e2"], ["0", "1_0", "1"]]
    )
    rows = [
        gap.join([f"q{query}", f"q{query}/é{item}", f"d{doc}", rng.choice(labels)])
        for query in range(rng.randint(1, 5))
        for doc in range(rng.randint(1, 9))
        for item in range(rng.randint(1, 5))
    ]
    if rng.random() < 0.2:
        rows.append(rng.choice(rows))
    return "\n".join(rows) + rng.choice(["\n", "", "\n\n"])


@pytest.mark.parametrize("piece", [1 << 5, 1 << 9, 1 << 20])
def test_qrels_of_any_shape_are_read_as_the_careful_reader_reads_them(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_PIECE", piece)
    rng = random.Random(piece)
    read = 0
    for _ in range(100):
        text = _qrels_text(rng)
        fast = regular_qrels(io.BytesIO(text.encode()), lambda rows: rows)
        if fast is not None:
            lines, _ = checked_qrels(text, "x")
            assert repr(fast) == repr(regular_qrels(io.BytesIO(lines), lambda rows: rows))
            read += 1
    assert read > 50
