"""The grades of a query as measures read them: two matrices; the choices of how failed ones count; notes about them.

What a failed grade counts in a measure is computed in `measures.core`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from ir_measures.util import Qrel
from msgspec import Struct
from msgspec.structs import replace

from rubric_measures.base.errors import InputError, MeasureError, counted, warn
from rubric_measures.types.entities import CitedSentence, Grade, RubricItem
from rubric_measures.types.scales import (
    ANY_LEVEL,
    LARGEST_SCORE,
    Scale,
    as_number,
    covering_level,
    parse_scale,
    refuse_off_scale,
)

if TYPE_CHECKING:
    import pandas

    from rubric_measures.measures.core import Array
else:
    Array = Any


def texts_digest(parts: Iterable[str]) -> str:
    """Twelve hex digits of texts in their order, parted by a NUL."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


# From this share of failed grades on nobody gets scores who did not ask for them.
TOO_MANY = 0.2


def refuse_share(share: float, needed: str) -> None:
    """Refuses scores of grades of which so many failed that nobody should get them without asking for them.

    Args:
        share: the share of the needed grades that failed.
        needed: what needs them.

    Raises:
        MeasureError: there are that many.
    """
    if share >= TOO_MANY:
        raise MeasureError(
            f"{100 * share:.0f} % of the grades that {needed} failed, too many for a default; grade again, or say how "
            "they count (expected, zero or a grade)",
            settings=("on_failed",),
        )


def note_left_out(left_out: Counter[str]) -> None:
    """Says once how many grades were left out because the bank does not have their items."""
    text = "%d grades left out: their %d items are not in the test bank (such as %s)"
    warn(text, left_out.total(), len(left_out), min(left_out, default=""))


OnFailed = Literal["expected", "zero"] | int


def check_on_failed(value: object) -> OnFailed:
    """How failed grades count, when it is one of the ways: `expected`, `zero`, or a grade.

    For the upper bound of a score, give the scale's highest grade: 5 for ratings, 2 for nugget assignments, 1 for yes
    and no. Records do not say how high their scale goes.

    Raises:
        InputError: it is none of them.
    """
    if value in ("expected", "zero") or (type(value) is int and value >= 1):
        return value
    raise InputError(f"on_failed is {value!r}; give expected, zero, or a grade of 1 or more")


Label = Literal["max", "count"]

# What stands in a matrix where there is no grade; as `core` has it.
NONE = -inf
# Why item qrels and tables take no grades of which some were never asked: scored again, these would count as 0.
PARTIAL = "grades were asked only as far as some measures need them"
UNSAID = "a table of grades has no place for that"
# A direct relevance label is a grade for this item.
DIRECT_ITEM = "0"
# What qrels of passages have in the place of an item.
LABEL_ITEMS = frozenset({DIRECT_ITEM, "Q0"})

# A row of grade 0 for this document says only that the item is in the test bank. So item rows keep their denominator
# through files, frames and programs that know nothing of banks, and mean nothing to measures over documents.
BANK_DOC = "*"
# A row for the same document whose item begins so says the scale of the query's grades: `scale=0-5:4:3`.
_SCALE_ITEM = "scale="


Rows: TypeAlias = tuple[Sequence[str], Sequence[str], Sequence[Any]]
"""Grades by column: doc_ids, item_ids, grades."""


def refuse_unreachable(scale: Scale | None, level: int | None, of: str = "the level that covers") -> None:
    """Refuses a level that no grade of the scale reaches: every score and count would be 0, which nobody means.

    Args:
        scale: the scale; None where it is not known.
        level: the level that somebody said; None where nobody did.
        of: what it is the level of, for the error.

    Raises:
        MeasureError: naming level and scale.
    """
    if scale is not None and level is not None and level > scale.highest:
        raise MeasureError(
            f"{of}: no grade of the scale {scale.lowest} to {scale.highest} is {level} or more; give a level of up to "
            f"{scale.highest}",
            settings=("measures", "rel"),
        )


class QueryGrades(Struct, frozen=True, eq=False, dict=True):
    """All grades of one query, as a matrix: a row a passage, a column an item.

    Attributes:
        query_id: the query.
        items: the complete bank of the query, also items that nobody graded: the denominator of coverage.
        docs: doc_id -> its row, of all passages that were graded, also without a valid grade.
        grades: passages × items; -inf where there is no valid grade.
        failed: passages × items: whether the grade failed (unparsed, refused, truncated without a grade, failed); None
            where none did. No pair with a grade is among them.
        scale: the scale of the grades; None where it is not known.
        answers: doc_id -> the sentences of the answer that it is, with what they cite; empty where the grades are of
            something else.
        is_partial: whether grades were asked only as far as some measures need them: a grade that is neither there nor
            failed could be any.
        is_of_labels: whether passages have one label each, and no grades of items.
        weights: the weights of the items; NaN where one has none.
        vital: whether each item is vital.
        asked: of which items a measure needs grades: all `items`, `vital` ones, or those `weighing` something.
        valid: passages × items: whether there is a valid grade.
        best: the highest grade of each passage; -inf where it has none.
    """

    query_id: str
    items: tuple[RubricItem, ...]
    docs: Mapping[str, int]
    grades: Array
    failed: Array | None = None
    scale: Scale | None = None
    answers: Mapping[str, tuple[CitedSentence, ...]] = {}
    is_partial: bool = False
    # What follows from the fields, so that it is none of them.
    is_of_labels: ClassVar[bool]
    weights: ClassVar[Array]
    vital: ClassVar[Array]
    asked: ClassVar[Mapping[str, Array]]
    valid: ClassVar[Array]
    best: ClassVar[Array]

    def __post_init__(self) -> None:
        import numpy as np

        self.__dict__.update(
            is_of_labels=len(self.items) == 1 and self.items[0].item_id in LABEL_ITEMS,
            weights=(weights := np.array([np.nan if one.weight is None else one.weight for one in self.items], float)),
            vital=(vital := np.array([item.importance == "vital" for item in self.items], bool)),
            asked={"items": np.ones(len(vital), bool), "vital": vital, "weighing": np.nan_to_num(weights) != 0},
            valid=self.grades > NONE,
            best=self.grades.max(axis=1, initial=NONE),
        )

    @property
    def digest(self) -> str:
        """Twelve hex digits of all that measures read, in any order: items with importance, weight and facet; grades.

        Grades that failed count as such; grades of items that the bank lacks are not part of it.
        """
        import numpy as np

        docs = sorted(self.docs)
        rows = [self.docs[doc_id] for doc_id in docs]
        parts = [f"{len(self.items)} {len(docs)}", *docs]
        given, masks = self.grades[rows], []
        # numpy.unique would import numpy's masked arrays.
        for grade in sorted(set(given[given > NONE].tolist())):
            parts.append(str(int(grade) if grade.is_integer() else grade))
            masks.append(given == grade)
        if self.failed is not None:
            lost = self.failed[rows]
            which = np.flatnonzero(lost.any(axis=1))
            parts += [docs[place] for place in which]
            masks.append(lost[which])
        digits = (np.concatenate(masks) if masks else np.zeros((0, len(self.items)))).astype(np.uint8) + ord("0")
        for one, cells in sorted(zip(self.items, digits.T, strict=True), key=lambda placed: placed[0].item_id):
            parts.append(f"{one.item_id}\0{one.importance}\0{one.weight!r}\0{one.part}\0{cells.tobytes().decode()}")
        for doc_id, sentences in sorted(self.answers.items()):
            said = (f"{one.item_id} {one.joined} {list(one.citations)}" for one in sentences)
            parts.append(f"{doc_id}\0" + "\0".join(said))
        return texts_digest(parts)

    @classmethod
    def empty(cls, query_id: str, items: Iterable[RubricItem], scale: Scale | None = None) -> QueryGrades:
        """A query of which nothing is graded."""
        import numpy as np

        listed = tuple(items)
        return cls(query_id, listed, {}, np.zeros((0, len(listed))), scale=scale)

    def level(self, said: int | None = None) -> int:
        """The least grade that covers an item: what somebody said, else what the scale says.

        Raises:
            InputError: neither is known, or no grade of the scale reaches what was said.
        """
        refuse_unreachable(self.scale, said)
        # Where nothing is graded, nothing is covered at any level.
        return covering_level(self.scale if self.docs or self.scale else ANY_LEVEL, said)

    @cached_property
    def void(self) -> Array:
        """Whether all that is known of a passage is that grades failed."""
        import numpy as np

        lost = np.zeros(len(self.docs), bool) if self.failed is None else self.failed.any(axis=1)
        void: Array = lost & (self.best == NONE)
        return void

    def labels(self, label: Label = "max", rel: int | None = None) -> dict[str, float]:
        """Rubric-Qrels: one relevance label a passage; passages without any valid grade have none.

        Args:
            label: `max`, label(p) = max over the items of grade(p, r), where that is at least `rel`, else 0; or
                `count`, label(p) = the number of items with grade ≥ rel.
            rel: the inclusive minimum grade. Left out, `max` keeps every grade as it is, and `count` counts from the
                level that covers on the scale.

        Raises:
            InputError: items are to be counted, and neither a level nor the scale is known; or no grade of the scale
                reaches the level; or grades were asked only as far as some measures need them.

        Source: Farzi and Dietz, EXAM++ (LLM4Eval 2024), and Dietz (SIGIR 2024).
        """
        self.refuse_partial("labels are of all grades of a passage")
        found = self.label_column(label, rel).tolist()
        pairs = zip(self.docs, map(found.__getitem__, self.docs.values()), strict=True)
        return {doc_id: as_number(value) for doc_id, value in pairs if value != NONE}

    def label_column(self, label: Label = "max", rel: int | None = None) -> Array:
        """The labels by row; -inf where there is none. See `labels`."""
        import numpy as np

        known = self.best > NONE
        if label == "count":
            if rel is None and self.scale is None and known.any():
                raise InputError(
                    "labels count items from a grade on, and the scale of the grades is not known; say that grade",
                    settings=("rel",),
                )
            return np.where(known, (self.grades >= self.level(rel)).sum(axis=1), NONE)
        refuse_unreachable(self.scale, rel, "labels")
        # Negative labels (junk pages) stay what they are.
        return self.best if rel is None else np.where((self.best >= rel) | (self.best < 0), self.best, 0.0)

    def refuse_partial(self, why: str) -> None:
        """Refuses grades that were asked only as far as some measures need them, and says why.

        Raises:
            InputError: they were.
        """
        if self.is_partial:
            raise InputError(f"{PARTIAL}, and {why}; grade all")

    def filled(self, grade: float) -> QueryGrades:
        """The same with a grade in the place of all that failed."""
        import numpy as np

        if self.failed is None:
            return self
        return replace(self, grades=np.where(self.failed, grade, self.grades), failed=None)

    def counting_failed(self, on_failed: OnFailed) -> QueryGrades:
        """The grades as they count in scores: where failed ones count as a grade, with that grade in their place.

        Raises:
            InputError: that grade is not on the scale.
        """
        if not isinstance(on_failed, int):
            return self
        if self.scale is not None and on_failed not in self.scale:
            raise InputError(
                f"query {self.query_id!r}: failed grades are to count as {on_failed}, which is not on the scale "
                f"{self.scale.lowest} to {self.scale.highest}",
                settings=("on_failed",),
            )
        return self.filled(on_failed)

    def rows(self) -> Iterator[Qrel]:
        """The valid grades as item-level judgments, `iteration` being the item id."""
        given = self.grades.tolist()
        for doc_id, row in self.docs.items():
            for item, grade in zip(self.items, given[row], strict=True):
                if grade != NONE:
                    yield Qrel(self.query_id, doc_id, as_number(grade), item.item_id)


class Grades:
    """The grades of a collection, to be given to ir_measures as qrels.

    Rubric measures read the items and the bank; every other measure of ir_measures reads one label a passage (the
    maximum grade). So `ir_measures.calc_aggregate([RubricCover(rel=4)@20, nDCG@10], grades, run)` is right for both.

    Attributes:
        queries: query_id -> its grades.
        on_failed_given: how a failed grade counts, as it was given: `expected` (as much as it is expected to cover, by
            the valid grades of the ranking: leave-one-out expected coverage), `zero` (it counts as not covered), or the
            grade that it counts as: with the scale's highest, every score is what it would be had all of them been
            that. None where nobody chose: then it is `expected`, and boards with many failures are refused.
        source: what the grades are, for the signature (grader, prompt, filters, bank).
    """

    # What makes ir_measures hand this object to a provider as it is (it passes data frames on untouched).
    columns = ("query_id", "doc_id", "relevance")

    def __init__(
        self,
        queries: Mapping[str, QueryGrades],
        on_failed: OnFailed | None = None,
        source: Mapping[str, object] | None = None,
    ) -> None:
        self.queries = dict(queries)
        self.on_failed_given = None if on_failed is None else check_on_failed(on_failed)
        self.source = dict(source or {})

    def __repr__(self) -> str:
        items = sum(len(query.items) for query in self.queries.values())
        passages = sum(len(query.docs) for query in self.queries.values())
        queries = counted(len(self.queries), "query")
        return f"<Grades of {queries}: {counted(items, 'item')}, {counted(passages, 'passage')}>"

    def _repr_html_(self) -> str:
        from rubric_measures.base.tables import Cell, Ranged, Table, columns, in_notebook

        rows: list[list[Cell]] = []
        found: Counter[float] = Counter()
        covered = 0
        level = None if self.scale is None else self.scale.covers
        for query in self.queries.values():
            found.update(query.grades[query.valid].tolist())
            covered += 0 if level is None else int((query.grades >= level).any(axis=0).sum())
            failed = 0 if query.failed is None else int(query.failed.sum())
            rows.append([query.query_id, len(query.items), len(query.docs), int(query.valid.sum()), failed])
        heads = columns(["query", "items", "passages", "grades", "failed"])
        items, grades, failed = (sum(row[place] for row in rows) for place in (1, 3, 4))  # type: ignore[misc]
        said = f"{counted(grades, 'grade')} of {counted(items, 'item')}, {failed} failed"
        if level is not None:
            said += f"; {covered} items are covered by some passage (grade {level:g} or more)"
        bars = {f"grade {one:g}": Ranged(count) for one, count in sorted(found.items())}
        return in_notebook([Table(heads, rows)], said, bars)

    @property
    def on_failed(self) -> OnFailed:
        """How a failed grade counts; `expected` where nobody chose."""
        return self.on_failed_given or "expected"

    @property
    def qrels(self) -> list[Qrel]:
        """The label view: one row a graded passage, its maximum grade."""
        return [
            Qrel(query_id, doc_id, label)
            for query_id, query in self.queries.items()
            for doc_id, label in query.counting_failed(self.on_failed).labels().items()
        ]

    @property
    def scale(self) -> Scale | None:
        """The scale of the grades; None where it is not known, or is not the same for all queries."""
        scales = {query.scale for query in self.queries.values() if query.docs}
        return scales.pop() if len(scales) == 1 else None

    def itertuples(self) -> Iterator[Qrel]:
        """The label view, as ir_measures' providers ask for it."""
        return iter(self.qrels)

    def to_dataframe(self) -> pandas.DataFrame:
        """The item rows as a pandas frame: query_id, doc_id, relevance, iteration, importance, weight, status.

        Every item of the bank also has a row for the document `*` with grade 0, so the frame keeps the denominators
        through filters and joins; such a row with the item `scale=0-5:4:3` says the scale of a query's grades. Failed
        grades are rows of status `failed`. They are left out when they count as zero; when they count as a grade, they
        are rows like all others.

        Raises:
            MissingExtraError: pandas is not installed.
            InputError: grades were asked only as far as some measures need them.
        """
        from rubric_measures.base.plugins import require

        rows = []
        for query in self.queries.values():
            said = {item.item_id: (item.importance, item.weight) for item in query.items}
            for row in item_rows(query.counting_failed(self.on_failed)):
                if row.status != "failed" or self.on_failed != "zero":
                    more = said.get(row.iteration, (None, None))
                    rows.append((*row[:2], row.relevance or 0, row.iteration, *more, row.status))
        names = ["query_id", "doc_id", "relevance", "iteration", "importance", "weight", "status"]
        frame: pandas.DataFrame = require("pandas", "pandas").DataFrame(rows, columns=names)
        return frame


def build_query(
    query_id: str,
    items: Iterable[RubricItem] | None = None,
    rows: Rows = ((), (), ()),
    failed: Iterable[tuple[str, str]] = (),
    scale: Scale | None = None,
) -> tuple[QueryGrades, Counter[str]]:
    """The grades of one query as a matrix.

    Args:
        query_id: the query.
        items: the complete bank of the query; None takes the items that occur, in order of their ids.
        rows: doc_ids, item_ids and grades, parallel; of a pair that occurs twice with the same grade one is kept.
        failed: (doc_id, item_id) of grades that failed.
        scale: the scale of the grades, where it is known.

    Returns:
        the grades, and item_id -> number of grades left out because the bank has no such item.

    Raises:
        InputError: a (passage, item) has two different grades, or a grade is no finite number, or not on the scale.
    """
    import numpy as np

    (doc_ids, item_ids, given), lost = map(list, rows), list(failed)
    docs = {doc_id: row for row, doc_id in enumerate(dict.fromkeys([*doc_ids, *(one for one, _ in lost)]))}
    if items is None:
        items = [RubricItem(one, query_id, "") for one in sorted({*item_ids, *(item_id for _, item_id in lost)})]
    items = tuple(items)
    column = {item.item_id: place for place, item in enumerate(items)}
    graded, left_out = (*item_ids, *(one for _, one in lost)), Counter[str]()
    if not column.keys() >= set(graded):
        left_out.update(item_id for item_id in graded if item_id not in column)
        lost = [pair for pair in lost if pair[1] in column]
        kept = [place for place, item_id in enumerate(item_ids) if item_id in column]
        doc_ids, item_ids, given = ([of[place] for place in kept] for of in (doc_ids, item_ids, given))
    _check_numbers(query_id, doc_ids, item_ids, given)
    at, values = ([docs[one] for one in doc_ids], [column[one] for one in item_ids]), np.array(given, float)
    lost_at = [docs[doc_id] for doc_id, _ in lost], [column[item_id] for _, item_id in lost]
    grades = placed(query_id, items, docs, (*at, values), lost_at, scale=scale)
    for place in np.flatnonzero(grades.grades[at] != values)[:1]:
        raise InputError(
            f"query {query_id!r}, document {doc_ids[place]!r}: an item has two different grades; keep one of them"
        )
    return grades, left_out


def placed(
    query_id: str,
    items: tuple[RubricItem, ...],
    docs: Mapping[str, int],
    cells: tuple[Any, Any, Array],
    lost: tuple[Any, Any],
    **more: Any,
) -> QueryGrades:
    """The grades of a query as a matrix.

    Args:
        query_id: as for `QueryGrades`, as are items and docs.
        items: the items.
        docs: the passages.
        cells: rows, columns and values of the valid grades.
        lost: rows and columns of those that failed.
        more: further fields.

    Raises:
        InputError: a grade is not on the scale.
    """
    import numpy as np

    matrix, failed = np.full((len(docs), len(items)), NONE), None
    matrix[cells[:2]] = cells[2]
    if len(lost[0]):
        # Of a pair that was graded as well the grade counts.
        failed = np.zeros(matrix.shape, bool)
        failed[lost] = matrix[lost] == NONE
        failed = failed if failed.any() else None
    grades = QueryGrades(query_id, items, docs, matrix, failed, **more)
    scale = grades.scale
    off = grades.valid & ((matrix < scale.lowest) | (matrix > scale.highest)) if scale is not None else matrix[:0]
    for row, place in zip(*off.nonzero(), strict=True):
        such = {items[place].item_id: as_number(matrix[row, place])}
        refuse_off_scale(scale, such, f"query {query_id!r}, document {list(docs)[row]!r}")
    return grades


def _check_numbers(query_id: str, doc_ids: Sequence[str], item_ids: Sequence[str], given: Sequence[Any]) -> None:
    """Refuses grades that are no finite numbers."""
    # All at once, since it is right but for slips.
    for place, grade in enumerate(given if not {int}.issuperset(map(type, given)) else ()):
        if not (isinstance(grade, Real) and abs(float(grade)) <= LARGEST_SCORE):
            where = f"query {query_id!r}, document {doc_ids[place]!r}, item {item_ids[place]!r}"
            raise InputError(f"{where}: grade {grade!r} is not a number")


def item_rows(query: QueryGrades) -> Iterator[Grade]:
    """All grades of a query, behind rows for the document `*`: one that says the scale (see `scale_of_item`), and one
    an item of the bank.

    Raises:
        InputError: grades were asked only as far as some measures need them.
    """
    query.refuse_partial(UNSAID)
    scale = [] if query.scale is None else [f"{_SCALE_ITEM}{query.scale}"]
    for item_id in (*scale, *(item.item_id for item in query.items)):
        yield Grade(query.query_id, BANK_DOC, 0, item_id)
    yield from all_rows(query)


def scale_of_item(item_id: str) -> Scale | None:
    """The scale that the item of a row for the document `*` says; None where it names an item.

    Raises:
        InputError: it says something else.
    """
    return parse_scale(item_id.removeprefix(_SCALE_ITEM)) if item_id.startswith(_SCALE_ITEM) else None


def all_rows(query: QueryGrades) -> Iterator[Grade]:
    """All grades of a query as records, those that failed too."""
    for row in query.rows():
        yield Grade(row.query_id, row.doc_id, row.relevance, row.iteration)
    doc_ids = list(query.docs)
    for row, place in zip(*query.failed.nonzero(), strict=True) if query.failed is not None else ():
        yield Grade(query.query_id, doc_ids[row], None, query.items[place].item_id, status="failed")
