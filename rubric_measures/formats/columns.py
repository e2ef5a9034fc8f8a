"""Lines of columns as bytes, many at once: where tokens stand, what numbers they say, how documents are ranked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rubric_measures.base.sorting import compares_singles
from rubric_measures.types.entities import Ranking
from rubric_measures.types.scales import MOST_RELEVANT

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

# Bytes that are read at a time: what is made of them stays in the cache of a core.
_PIECE = 1 << 20
# Memory that is given back to the system costs more when it is asked for again than all else; once that much was asked
# for and given back, the C library of Linux keeps what is smaller.
np.empty(31 << 20, np.uint8)
# Longer tokens are left to who reads line by line.
_LONGEST = 1024
# What parts tokens; programs are of two minds about all other control characters.
_END, _POINT = ord("\n"), ord(".")
_BLANKS = np.frombuffer(b"\t\n\v\f\r ", np.uint8)
# Words are eight bytes of a token, the last one the highest; of a short token only so many bytes count.
_SIZE = 8
_KEPT = np.array([0, *((1 << 64) - (1 << 8 * (_SIZE - size)) for size in range(1, 9))], np.uint64)
_FRONT = b"\n" * 3 * _SIZE


def _repeated(byte: int) -> np.uint64:
    return np.uint64(byte * 0x0101010101010101)


_LOW, _HIGH, _SIXTEENS, _SIXES = map(_repeated, (0x0F, 0xF0, 0x10, 0x06))
_THREE, _HUNDRED = np.uint64(3), np.uint64(100)
# Eight digits to four numbers below 100, to two, to one.
_PAIRS = [
    (np.uint64(2561), np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
    (np.uint64(6553601), np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
    (np.uint64(42949672960001), np.uint64(32), np.uint64(0xFFFFFFFF)),
]


_POWERS = np.array([float(10**power) for power in range(23)])
_INT_POWERS = 10 ** np.arange(19, dtype=np.int64)
# Floats hold all integers up to here.
_EXACT = 1 << 53
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LAST = np.uint64((1 << 64) - 1)
_GOLDEN, _ODD, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(29)
_NO_FORMS: Mapping[str, str] = MappingProxyType({})
# So many documents are looked up, or made strings, faster one by one.
_FEW = 100


class DoubtError(Exception):
    """The lines are not proved to be regular."""


class Tokens:
    """Tokens of some bytes, by the places where they start and end; before the first are as many bytes as a word has.

    Attributes:
        data: the bytes.
        starts: where each token starts.
        ends: where each ends.
    """

    def __init__(self, data: bytes, starts: Ints, ends: Ints) -> None:
        self.data = data
        self.starts = starts
        self.ends = ends

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Tokens:
        """Tokens that are these texts."""
        ends = np.fromiter(accumulate(map(len, texts)), np.int64, len(texts)) + len(_FRONT)
        return cls(b"".join((_FRONT, *texts, _FRONT)), ends - np.fromiter(map(len, texts), np.int64, len(texts)), ends)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, which: Any) -> Tokens:
        """Some of them, by a slice, places or flags."""
        return Tokens(self.data, self.starts[which], self.ends[which])

    def texts(self) -> list[bytes]:
        """Each as bytes."""
        data = self.data
        return [data[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def strings(self) -> list[str]:
        """Each as text."""
        joined = self.joined().decode().split("\0") if len(self) else []
        return joined if len(joined) == len(self) else [text.decode() for text in self.texts()]

    def joined(self) -> bytes:
        """All of them, parted by a NUL."""
        if len(self) < _FEW:
            return b"\0".join(self.texts())
        sizes = self.ends - self.starts + 1
        after = np.cumsum(sizes)
        places = np.repeat(self.starts - after + sizes, sizes)
        places += np.arange(len(places))
        bytes_ = np.frombuffer(self.data, np.uint8).take(places, mode="clip")
        bytes_[after - 1] = 0
        return bytes_[:-1].tobytes()

    def word(self, which: int, lengths: Ints) -> Words:
        """Eight bytes of each, counted from its end."""
        windows = np.ndarray((len(self.data) - _SIZE + 1,), "S8", self.data, strides=(1,))
        places = self.ends - _SIZE * (which + 1)
        found = windows[places if which < 2 else np.maximum(places, 0)].view("<u8")
        least, most = (int(end) - _SIZE * which for end in (lengths.min(initial=_LONGEST), lengths.max(initial=0)))
        if least >= _SIZE:
            return found
        return found & _KEPT[np.clip(lengths - _SIZE * which, 0, _SIZE) if least < most else least]

    def sort_keys(self) -> list[NDArray[Any]]:
        """What sorts them as their texts are sorted, the most important last."""
        lengths = self.ends - self.starts
        windows = np.ndarray((len(self.data) - _SIZE + 1,), "S8", self.data, strides=(1,))
        keys: list[NDArray[Any]] = [lengths]
        for done in reversed(range(0, int(lengths.max()), _SIZE)):
            word = windows[np.minimum(self.starts + done, len(windows) - 1)].view(">u8")
            # Two calls are faster than np.clip where there are few.
            keys.append(word & _KEPT[np.minimum(np.maximum(lengths - done, 0), _SIZE)])
        return keys

    def repeats(self) -> Flags:
        """Whether each but the first is the one before it.

        Raises:
            DoubtError: one is very long.
        """
        lengths = self.ends - self.starts
        longest = int(lengths.max())
        if longest > _LONGEST:
            raise DoubtError
        found: Flags = lengths[1:] == lengths[:-1]
        for which in range(-(-longest // _SIZE)):
            word = self.word(which, lengths)
            found &= word[1:] == word[:-1]
        return found

    def hashes(self) -> Words:
        """A number for each that seldom is that of another one: of its last eight bytes, and how many there are."""
        lengths = self.ends - self.starts
        mixed = self.word(0, lengths) * _ODD
        return (mixed ^ mixed >> _SHIFT) * _GOLDEN + lengths.astype(np.uint64)

    def digits(self) -> tuple[Ints, Flags]:
        """The integer that the digits of each say, 0 for none, and whether there are only digits, and up to 18."""
        lengths = self.ends - self.starts
        values, wrong = np.zeros(len(self), np.int64), np.zeros(len(self), np.uint64)
        for which in range(min(-(-int(lengths.max(initial=0)) // _SIZE), 3)):
            word = self.word(which, lengths)
            digit = word & _LOW
            # Digits are 0x30 to 0x39, and what is no byte of the token is 0.
            wrong |= word & _HIGH ^ (word & _SIXTEENS) * _THREE | digit + _SIXES & _SIXTEENS
            for factor, shift, mask in _PAIRS:
                digit = digit * factor >> shift & mask
            if which == 2:
                wrong |= digit // _HUNDRED
            values += digit.astype(np.int64) * _INT_POWERS[_SIZE * which]
        return values, (wrong == 0) & (lengths <= 3 * _SIZE)

    def integers(self, signed: bool = False) -> tuple[Ints, Flags]:
        """The integer that each says, and whether it does, in up to 18 digits; with a sign only if `signed`."""
        unsigned, negative = self._without_sign() if signed else (self, False)
        values, sure = unsigned.digits()
        return np.where(negative, -values, values), sure & (unsigned.ends > unsigned.starts)

    def numbers(self) -> Floats:
        """The number that each says, as `float` reads it.

        Raises:
            DoubtError: one says none, or none that is finite.
        """
        unsigned, negative = self._without_sign()
        starts, ends = unsigned.starts, unsigned.ends
        points = unsigned._points()
        whole, sure = Tokens(self.data, starts, points).digits()
        part, part_sure = Tokens(self.data, np.minimum(points + 1, ends), ends).digits()
        after = ends - points - 1
        if after.min() == after.max():
            # Most files have one number of decimals: what follows of it is computed once.
            after = after[:1]
        sure &= part_sure & (after < len(_POWERS)) & (ends - starts > (after >= 0))
        after = np.clip(after, 0, len(_POWERS) - 1)
        sure &= whole < _INT_POWERS[np.maximum(18 - after, 0)]
        values = whole * _INT_POWERS[np.minimum(after, 18)] + part
        powers = _POWERS[after]
        found: Floats = values / powers
        large = np.flatnonzero(values > _EXACT)
        if len(large):
            found[large], rounded = _quotients(values[large], np.broadcast_to(powers, values.shape)[large])
            sure[large] &= rounded
        if negative is not False:
            found = np.where(negative, -found, found)
        unsure = np.flatnonzero(~sure)
        if len(unsure):
            found[unsure] = list(map(_float, self[unsure].texts()))
        return found

    def _points(self) -> Ints:
        """Where the last point of each stands, or its end; looked for first where that of the first one stands."""
        bytes_ = np.frombuffer(self.data, np.uint8)
        longest = min(int((self.ends - self.starts).max()), len(_FRONT))
        first = self[:1].texts()[0]
        usual = min(len(first) - first.rfind(b"."), longest)
        found = self.ends.copy()
        left: slice | Ints = slice(None)
        for back in sorted(range(1, longest + 1), key=lambda back: abs(back - usual)):
            ends = self.ends[left]
            hits = (bytes_[ends - back] == _POINT) & (ends - back >= self.starts[left])
            found[left] = np.where(hits, ends - back, ends)
            left = np.flatnonzero(~hits) if isinstance(left, slice) else left[~hits]
            if not len(left):
                break
        return found

    def _without_sign(self) -> tuple[Tokens, Any]:
        """The tokens behind a sign, and which have a minus."""
        first = np.frombuffer(self.data, np.uint8)[self.starts]
        negative = first == ord("-")
        signed = negative | (first == ord("+"))
        return (Tokens(self.data, self.starts + signed, self.ends), negative) if signed.any() else (self, False)


def _float(token: bytes) -> float:
    if not _NUMBER.fullmatch(token) or not math.isfinite(value := float(token)):
        raise DoubtError
    return value


def _quotients(values: Ints, powers: Floats) -> tuple[Floats, Flags]:
    """Integers through powers of ten, and where that is surely the float that is nearest: two floats hold an integer.

    The rest of the division is computed without an error (Dekker 1971), so the quotient is known to 100 bits.
    """
    high = values.astype(np.float64)
    low = (values - high.astype(np.int64)).astype(np.float64)
    found = high / powers
    product = found * powers
    (one, one_low), (two, two_low) = _halves(found), _halves(powers)
    error = ((one * two - product) + one * two_low + one_low * two) + one_low * two_low
    more = ((high - product) - error + low) / powers
    least, most = found + more * (1 - 2**-40), found + more * (1 + 2**-40)
    return least, least == most


def _halves(values: Floats) -> tuple[Floats, Floats]:
    scaled = values * 134217729.0
    high = scaled - (scaled - values)
    return high, values - high


def tokens_of(data: bytes, columns: int) -> list[Tokens]:
    """The tokens of lines, by column; blank lines count for nothing.

    Args:
        data: lines with their ends, behind `_FRONT`.
        columns: how many tokens each line has.

    Raises:
        DoubtError: a line has another number, or bytes that not all programs take for parts of tokens.
    """
    # From the last byte before the lines on, which is a line's end.
    shift = len(_FRONT) - 1
    bytes_ = np.frombuffer(data, np.uint8)[shift:]
    blank = bytes_ <= ord(" ")
    gaps = np.flatnonzero(blank)
    lines, more = divmod(len(gaps) - 1, columns)
    closed = np.count_nonzero(bytes_ == _END)
    if more or closed != lines + 1 or np.count_nonzero(bytes_ < ord(" ")) != closed or (blank[1:] & blank[:-1]).any():
        starts, ends = _places_of_any(bytes_, gaps, columns)
        return [Tokens(data, starts[which::columns] + shift, ends[which::columns] + shift) for which in range(columns)]
    if (bytes_[gaps[::columns]] != _END).any():
        raise DoubtError
    # One blank ends a token, and is before the next one.
    places = [gaps[which : which + columns * lines : columns] + shift for which in range(columns + 1)]
    return [Tokens(data, before + 1, end) for before, end in pairwise(places)]


def _places_of_any(bytes_: NDArray[np.uint8], gaps: Ints, columns: int) -> tuple[Ints, Ints]:
    """Where tokens start and end, whatever blanks stand between them and around lines."""
    if not np.isin(bytes_[gaps], _BLANKS).all():
        raise DoubtError
    starts, ends = gaps[:-1] + 1, gaps[1:]
    full = ends > starts
    line = np.cumsum(bytes_[gaps[:-1]] == _END)[full]
    closes = np.append(line[1:] != line[:-1], True)[: len(line)]
    lines, more = divmod(len(line), columns)
    if more or np.count_nonzero(closes) != lines or not closes[columns - 1 :: columns].all():
        raise DoubtError
    return starts[full], ends[full]


class Lines(NamedTuple):
    """The lines of some whole queries.

    Attributes:
        query_ids: the queries.
        edges: where the lines of each start, and their number.
        columns: the tokens of all lines, by column.
        end: the last byte that was read.
    """

    query_ids: list[str]
    edges: Ints
    columns: list[Tokens]
    end: bytes

    def only(self, column: int) -> str:
        """The token that stands in a column of all lines.

        Raises:
            DoubtError: there are several.
        """
        tokens = self.columns[column]
        if not tokens.repeats().all():
            raise DoubtError
        return tokens[:1].strings()[0]

    def refuse_twice(self, hashes: Words, *columns: Tokens) -> None:
        """Refuses two lines of a query that have the same tokens in some columns.

        Args:
            hashes: a number for each line that nearly always differs where the tokens do.
            columns: the tokens.

        Raises:
            DoubtError: there are two.
        """
        numbers = np.repeat(np.arange(len(self.query_ids)), np.diff(self.edges))
        keys = hashes + numbers.astype(np.uint64) * _GOLDEN
        ordered = np.sort(keys)
        again = ordered[1:] == ordered[:-1]
        if again.any():
            places = np.flatnonzero(np.isin(keys, ordered[1:][again]))
            rows = set(zip(numbers[places].tolist(), *(tokens[places].texts() for tokens in columns), strict=True))
            if len(rows) < len(places):
                raise DoubtError

    def rankings(self) -> Iterator[tuple[Ranked, int]]:
        """Of lines of a run: what `rankings` says of each query.

        Raises:
            DoubtError: something is wrong.
        """
        _, _, docs, ranks, scores, _ = self.columns
        hashes = docs.hashes()
        self.refuse_twice(hashes, docs)
        placed, sure = ranks.integers()
        if not sure.all():
            raise DoubtError
        return rankings(docs, placed, scores.numbers(), hashes, self.edges)

    def judgments(self, relevance_of: Callable[[str], float]) -> Iterator[tuple[list[str], list[float], list[str]]]:
        """Of lines of qrels: the documents, relevances and iterations of each query.

        Args:
            relevance_of: reads what is no integer, or a large one; what it raises is a doubt.

        Raises:
            DoubtError: something is wrong.
        """
        _, iterations, docs, labels = self.columns
        self.refuse_twice(docs.hashes() * _ODD + iterations.hashes(), docs, iterations)
        values, sure = labels.integers(signed=True)
        relevances: list[float] = values.tolist()
        try:
            for place in np.flatnonzero(~sure | (abs(values) > MOST_RELEVANT)).tolist():
                relevances[place] = found = relevance_of(labels[place : place + 1].strings()[0])
                if abs(found) > MOST_RELEVANT:
                    raise DoubtError
        except (ValueError, OverflowError):
            raise DoubtError from None
        for start, end in pairwise(self.edges.tolist()):
            yield docs[start:end].strings(), relevances[start:end], iterations[start:end].strings()


def pieces(stream: BinaryIO, columns: int) -> Iterator[Lines]:
    """Some megabytes at a time of lines in columns, of which the first is the query.

    Raises:
        DoubtError: the lines of a query do not stand together, or see `tokens_of`.
    """
    seen: set[str] = set()
    rest = end = b""
    ended = False
    while not ended:
        size = max(_PIECE, len(rest))
        data = stream.read(size)
        ended = len(data) < size
        data += stream.readline()
        if not end:
            data = data.removeprefix(b"\xef\xbb\xbf")
        end = data[-1:] or end
        try:
            _ = data.isascii() or data.decode()
        except UnicodeDecodeError:
            raise DoubtError from None
        data = b"".join((_FRONT, rest, data, b"" if end == b"\n" else b"\n"))
        found = tokens_of(data, columns)
        queries, rest = found[0], b""
        if not len(queries):
            continue
        edges = np.flatnonzero(np.concatenate([[True], ~queries.repeats(), [True]]))
        if not ended:
            # More lines of the last query may follow.
            rest = data[int(queries.starts[edges[-2]]) :]
            edges = edges[:-1]
            found = [tokens[: edges[-1]] for tokens in found]
        query_ids = queries[edges[:-1]].strings()
        known = len(seen) + len(query_ids)
        seen.update(query_ids)
        if len(seen) < known:
            raise DoubtError
        if query_ids:
            yield Lines(query_ids, edges, found, end)


class DocRows:
    """The rows of a query's documents by their ids, made once for all runs; threads may share it.

    Args:
        rows: doc_id -> row.
        forms: of ids with spaces, what files have in their place: that -> doc_id, see `trec.spaced_ids`.
    """

    def __init__(self, rows: Mapping[str, int], forms: Mapping[str, str]) -> None:
        known = {**rows, **{written: rows[doc_id] for written, doc_id in forms.items()}}
        self._rows = {doc_id.encode("utf-8", "surrogatepass"): row for doc_id, row in known.items()}
        self._hashes = np.sort(np.append(Tokens.of(list(self._rows)).hashes(), _LAST))

    def of(self, docs: Tokens, hashes: Words | None) -> NDArray[np.int32]:
        """The row of each document, -1 where there is none.

        Args:
            docs: the documents.
            hashes: theirs, where they are known.
        """
        found = np.full(len(docs), -1, np.int32)
        near: slice | Ints = slice(None)
        if hashes is not None and len(docs) > _FEW:
            near = np.flatnonzero(self._hashes[np.searchsorted(self._hashes, hashes)] == hashes)
        found[near] = [self._rows.get(text, -1) for text in docs[near].texts()]
        return found


class Ranked:
    """The documents of one query of a run, in the one sort: score descending, then doc_id descending.

    Its ids stay bytes until somebody asks. It keeps a piece of the file in memory: take from it what you need.
    """

    __slots__ = ("_docs", "_falls", "_hashes", "_order", "_scores")

    def __init__(self, docs: Tokens, scores: Floats, hashes: Words | None, falls: bool) -> None:
        self._docs = docs
        self._scores = scores
        self._hashes = hashes
        # Whether each score is below the one before it, in single precision, too.
        self._falls = falls
        self._order = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._docs)

    def doc_ids(self, depth: int | None = None) -> list[str]:
        """The first `depth` documents, all without it; best first, as the file writes them."""
        return self._docs[self._first(depth)].strings()

    def rows(self, index: DocRows, depth: int | None = None) -> NDArray[np.int32]:
        """The row of each of the first `depth` documents, -1 for those that the index does not have."""
        first = self._first(depth)
        return index.of(self._docs[first], None if self._hashes is None else self._hashes[first])

    def digest(self, depth: int | None = None, forms: Mapping[str, str] = _NO_FORMS) -> str:
        """Twelve hex digits of the first `depth` documents in their order; the id of a single one, which says as much.

        Args:
            depth: how many documents, all without it.
            forms: ids to take in the place of those that stand in the file, see `trec.spaced_ids`.
        """
        docs = self._docs[self._first(depth)]
        joined = docs.joined()
        if forms:
            named = [forms.get(doc_id, doc_id) for doc_id in docs.strings()]
            joined = "\0".join(named).encode("utf-8", "surrogatepass")
        return joined.decode("utf-8", "surrogatepass") if len(docs) == 1 else blake2b(joined, digest_size=6).hexdigest()

    def ranking(self) -> Ranking:
        """All documents with their scores."""
        first = self._first(None)
        given = () if self._falls else self._docs.strings()
        return Ranking(self._docs[first].strings(), self._scores[first].tolist(), given)

    def _first(self, depth: int | None) -> slice | Ints:
        """Where the first `depth` documents stand."""
        count = len(self) if depth is None else min(depth, len(self))
        if self._falls:
            return slice(count)
        if len(self._order) < count:
            self._order = self._sorted(count)
        return self._order[:count]

    def _sorted(self, count: int) -> Ints:
        singles = _singles(self._scores)
        # Those tied with the last one are looked at, too.
        lines = np.flatnonzero(singles >= np.partition(singles, len(self) - count)[len(self) - count])
        singles, scores, ids = singles[lines], self._scores[lines], self._docs[lines].sort_keys()
        order = np.lexsort((*ids, scores))[::-1]
        same = np.flatnonzero(singles[order[1:]] == singles[order[:-1]])
        if (scores[order[same]] != scores[order[same + 1]]).any():
            in_single = np.lexsort((*ids, singles))[::-1]
            if (in_single != order).any() and compares_singles():
                order = in_single
        return lines[order[:count]]


def rankings(
    docs: Tokens, ranks: Ints, scores: Floats, hashes: Words | None, edges: Ints
) -> Iterator[tuple[Ranked, int]]:
    """The ranking of each query, with the places where its rank column disagrees.

    These are neighbours in the order of the ranks of which the later has the higher score; equal ranks say nothing.
    Where trec_eval compares scores in single precision, a score that is higher beyond it only is no higher one.

    Args:
        docs: the documents of all queries.
        ranks: their ranks.
        scores: their scores.
        hashes: of the documents, where they are known.
        edges: where each query starts, and the number of lines.
    """
    singles = _singles(scores)
    # Between a line and the next one.
    tied = singles[1:] >= singles[:-1]
    odd = (ranks[1:] <= ranks[:-1]) | (scores[1:] > scores[:-1])
    tied[edges[1:-1] - 1] = odd[edges[1:-1] - 1] = False
    ties, oddities = (np.diff(np.searchsorted(np.flatnonzero(places), edges)) for places in (tied, odd))
    for (start, end), ties_in, odd_in in zip(pairwise(edges.tolist()), ties.tolist(), oddities.tolist(), strict=True):
        of_query = slice(start, end)
        count = _disagreements(ranks[of_query], scores[of_query]) if odd_in else 0
        if count:
            in_single = _disagreements(ranks[of_query], singles[of_query])
            count = in_single if in_single != count and compares_singles() else count
        yield Ranked(docs[of_query], scores[of_query], None if hashes is None else hashes[of_query], not ties_in), count


def rankings_of(doc_ids: Sequence[str], ranks: Sequence[int], scores: Sequence[float]) -> tuple[Ranked, int]:
    """The ranking of one query, as `rankings` says it."""
    docs = Tokens.of([doc_id.encode() for doc_id in doc_ids])
    edges = np.array([0, len(docs)])
    (found,) = rankings(docs, np.array(ranks, np.int64), np.array(scores, np.float64), None, edges)
    return found


def _singles(scores: Floats) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def _disagreements(ranks: Ints, scores: NDArray[Any]) -> int:
    order = np.lexsort((-scores, ranks))
    ranks, scores = ranks[order], scores[order]
    return int(np.count_nonzero((ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])))
