"""Tables in files and in memory, and values of their cells: two columns of one name, arrays, numbers of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.base.errors import FormatError, InputError, MissingExtraError
from rubric_measures.formats import tables
from rubric_measures.formats.answers import read_answer_table
from rubric_measures.formats.queries import QUERIES
from rubric_measures.formats.specs import Field, Spec, number, text
from rubric_measures.formats.tables import rows_of

# As a format of another package says it.
NUMBERED: Spec[list[dict[str, Any]]] = Spec(
    kind="records", description="numbers", what="numbers", fields=(Field("id", ("id",)), Field("n", ("n",), number)),
    into=lambda rows: [row.said for row in rows], outof=lambda rows: rows, keeps=True, is_guarded=True,
)  # fmt: skip


@pytest.mark.parametrize(
    "content", ["question,answer,answer\nWhy?,a,b\n", "\n\nquestion\tanswer\tanswer\nWhy?\ta\tb\n"]
)
def test_two_columns_of_one_name_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(content)
    line = 3 if content.startswith("\n") else 1
    with pytest.raises(FormatError, match=rf"t:{line}: the header names answer twice; keep one$"):
        read_answer_table(tmp_path / "t")


def test_names_of_columns_of_frames_are_texts_and_each_comes_once() -> None:
    pandas = pytest.importorskip("pandas")
    for frame, said in (
        (pandas.DataFrame([["q", "t"]]), "that are texts; found 0"),
        (pandas.DataFrame([["q", "t", "u"]], columns=["query_id", "text", "text"]), "names text twice"),
    ):
        with pytest.raises(InputError, match=said):
            QUERIES.read(frame)


def test_arrays_scalars_and_gaps_are_plain_values() -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    rows = [
        {"id": numpy.str_("a"), "n": numpy.int64(1), "more": numpy.array(["x", "y"])},
        {"id": numpy.int64(7), "n": numpy.float32(0.5), "more": [pandas.NA, {"in": numpy.bool_(True)}]},
        {"id": "c", "n": 2, "more": pandas.NaT},
    ]
    plain = [["x", "y"], [None, {"in": True}], None]
    for source in (rows, pandas.DataFrame(rows), {name: [row[name] for row in rows] for name in rows[0]}):
        assert NUMBERED.read(source) == [{"id": "a", "n": 1}, {"id": "7", "n": 0.5}, {"id": "c", "n": 2}]
        assert [cells["more"] for _, cells in rows_of(source, "numbers").rows] == plain
    assert NUMBERED.read({"id": numpy.array(["a", "b"]), "n": numpy.array([1, 2])})[1] == {"id": "b", "n": 2}
    assert NUMBERED.read(pandas.DataFrame(rows)[["id", "n"]].to_dict())[1] == {"id": "7", "n": 0.5}
    with pytest.raises(FormatError, match="the numbers:1: n: is empty"):
        NUMBERED.read([{"id": "a", "n": pandas.NA}])


def test_whole_numbers_of_many_digits(tmp_path: Path) -> None:
    digits = "9" * 400
    (tmp_path / "q.jsonl").write_text(f'{{"query_id": {digits}, "text": "a"}}\n{{"query_id": 2, "text": "b"}}\n')
    assert set(QUERIES.read(tmp_path / "q.jsonl").texts) == {digits, "2"}
    (tmp_path / "n.jsonl").write_text(f'{{"id": "a", "n": {digits}}}\n')
    with pytest.raises(FormatError, match=r"n\.jsonl:1: n: expected a number; found '999"):
        NUMBERED.read(tmp_path / "n.jsonl")
    assert [text(one) for one in (2, 2.0, 2.5, -0.0, 1e16)] == ["2", "2", "2.5", "0", "10000000000000000"]


def test_parquet_without_its_extra_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def lacks(*names: str) -> Any:
        raise MissingExtraError(*names)

    monkeypatch.setattr(tables, "require", lacks)
    (tmp_path / "bank").write_bytes(b"PAR1 and more")
    with pytest.raises(MissingExtraError):
        rubric_measures.load_bank(tmp_path / "bank")
