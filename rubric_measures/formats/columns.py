"""Lines of columns as bytes, many at once: where tokens stand, what numbers they say, how documents are ranked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
from msgspec import DecodeError
from msgspec.json import Decoder

from rubric_measures.types.entities import Ranking
from rubric_measures.types.scales import MOST_RELEVANT

if TYPE_CHECKING:
    from numpy.typing import NDArray

# numpy.typing is for the type checker alone: to import it takes as long as to read a small run.
Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Words: TypeAlias = "NDArray[np.uint64]"
Flags: TypeAlias = "NDArray[np.bool_]"

# Bytes that are read at a time: of less, threads would spend a tenth of their time on waiting for each other.
_PIECE = 4 << 20
# Memory that is given back to the system costs more when it is asked for again than all else; once that much was asked
# for and given back, the C library of Linux keeps what is smaller.
np.empty(31 << 20, np.uint8)
# Longer tokens are left to who reads line by line.
_LONGEST = 4096
_END = ord("\n")
# Words are eight bytes of a token, the last one the highest; of a short token only so many bytes count.
_SIZE = 8
_KEPT = np.array([0, *((1 << 64) - (1 << 8 * (_SIZE - size)) for size in range(1, 9))], np.uint64)
_FRONT = b"\n" * 8 * _SIZE
_LOW, _HIGH, _SIXTEENS, _SIXES = np.array([0x0F, 0xF0, 0x10, 0x06], np.uint64) * np.uint64(0x0101010101010101)
_THREE = np.uint64(3)
# Eight digits to four numbers below 100, to two, to one.
_PAIRS = [
    (np.uint64(2561), np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
    (np.uint64(6553601), np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
    (np.uint64(42949672960001), np.uint64(32), np.uint64(0xFFFFFFFF)),
]
# The most digits of a rank.
_WIDE = 18
_FLOATS, _INTS = Decoder(list[float]), Decoder(list[int])
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GOLDEN, _ODD, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(29)


class DoubtError(Exception):
    """The lines are not proved to be regular."""


class Tokens(NamedTuple):
    """Tokens of some bytes, by the places where they start and end; before the first stands `_FRONT`.

    Attributes:
        data: the bytes.
        starts: where each token starts.
        ends: where each ends.
    """

    data: bytes
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Tokens:
        """Tokens that are these texts."""
        ends = np.fromiter(accumulate(map(len, texts)), np.int64, len(texts)) + len(_FRONT)
        return cls(b"".join((_FRONT, *texts, _FRONT)), ends - np.fromiter(map(len, texts), np.int64, len(texts)), ends)

    def at(self, which: Any) -> Tokens:
        """Some of them, by a slice, places or flags."""
        return Tokens(self.data, self.starts[which], self.ends[which])

    def texts(self) -> list[bytes]:
        """Each as bytes."""
        data = self.data
        return [data[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def packed(self) -> Tokens:
        """The same, one at least, one behind the other, parted by a NUL."""
        lengths = self.ends - self.starts
        width = int(lengths.max()) + 1
        if width > len(_FRONT):
            joined = b"\0".join([*self.texts(), b""])
        else:
            windows = np.ndarray((len(self.data) - width + 1,), f"S{width}", self.data, strides=(1,))
            cells = windows[self.ends + 1 - width].view(np.uint8).reshape(-1, width)
            cells[:, -1] = 0
            if lengths.min() + 1 < width:
                # Of a short token its last bytes count.
                cells = cells[np.tri(width, dtype=bool).T.take(width - 1 - lengths, axis=0)]
            joined = cells.tobytes()
        ends = np.cumsum(lengths + 1) + len(_FRONT) - 1
        return Tokens(b"".join((_FRONT, joined)), ends - lengths, ends)

    def strings(self) -> list[str]:
        """Tokens that are packed, one at least, each as text."""
        joined = self.data[self.starts[0] : self.ends[-1]].decode().split("\0")
        return joined if len(joined) == len(self.starts) else [text.decode() for text in self.texts()]

    def same(self, others: Tokens | None = None) -> Flags:
        """Whether each is that of others; without them, whether each but the first is the one before it."""
        lengths = self.ends - self.starts
        found: Flags = lengths[1:] == lengths[:-1] if others is None else lengths == others.ends - others.starts
        for which in range(-(-int(lengths[len(lengths) - len(found) :].max(initial=0, where=found)) // _SIZE)):
            word = self.word(which, lengths)
            found &= word[1:] == word[:-1] if others is None else word == others.word(which, lengths)
        return found

    def word(self, which: int, lengths: Ints) -> Words:
        """Eight bytes of each, the `which`-th counted from its end, of tokens of these lengths."""
        windows = np.ndarray((len(self.data) - _SIZE + 1,), "S8", self.data, strides=(1,))
        places = self.ends - _SIZE * (which + 1)
        if which > 2:
            places = np.maximum(places, 0)
        found: Words = windows[places].view("<u8")
        least, most = (int(end) - _SIZE * which for end in (lengths.min(initial=_LONGEST), lengths.max(initial=0)))
        if least >= _SIZE:
            return found
        return found & (_KEPT.take(lengths - _SIZE * which, mode="clip") if least < most else _KEPT[least])

    def hashes(self) -> Words:
        """A number for each that hardly ever is that of another one."""
        lengths = self.ends - self.starts
        mixed = np.zeros(len(lengths), np.uint64)
        # Backwards, so that what is no byte of a token changes nothing.
        for which in reversed(range(-(-min(int(lengths.max(initial=0)), _LONGEST) // _SIZE))):
            mixed = (mixed + self.word(which, lengths)) * _ODD
            mixed ^= mixed >> _SHIFT
        return mixed * _GOLDEN + lengths.view(np.uint64)

    def digits(self) -> Ints:
        """The integer that each says, with digits alone.

        Raises:
            DoubtError: one has others, or more than 18.
        """
        lengths = self.ends - self.starts
        if lengths.max() > _SIZE:
            texts = self.texts()
            if not all(text.isdigit() and len(text) <= _WIDE for text in texts):
                raise DoubtError
            return np.array(list(map(int, texts)))
        word = self.word(0, lengths)
        digit = word & _LOW
        # Digits are 0x30 to 0x39, and what is no byte of the token is 0.
        if (word & _HIGH ^ (word & _SIXTEENS) * _THREE | digit + _SIXES & _SIXTEENS).any():
            raise DoubtError
        for factor, shift, mask in _PAIRS:
            digit = digit * factor >> shift & mask
        found: Ints = digit.view(np.int64)
        return found

    def said(self, numbers: Decoder[list[Any]], read: Callable[[bytes], Any]) -> list[Any]:
        """The number that each says; `read` reads those that JSON has not, such as `.5`."""
        with suppress(DecodeError):
            found = numbers.decode(b"[%b]" % self.packed().data[len(_FRONT) : -1].replace(b"\0", b","))
            # A token may hold a comma.
            if len(found) == len(self.starts):
                return found
        return list(map(read, self.texts()))

    def numbers(self) -> Floats:
        """The number that each says, as `float` reads it.

        Raises:
            DoubtError: one says none, or none that is finite.
        """
        # Most files have one number of decimals, and few digits: one division rounds them as `float` does.
        decimals = self.data[self.starts[0] : self.ends[0]][::-1].find(b".")
        points = self.ends - decimals - 1
        wholes = points - self.starts
        if 0 < decimals <= _SIZE and wholes.min() > 0 and wholes.max() < _SIZE:
            whole, part = Tokens(self.data, self.starts, points), Tokens(self.data, points + 1, self.ends)
            with suppress(DoubtError):
                if (np.frombuffer(self.data, np.uint8)[points] == ord(".")).all():
                    found: Floats = (whole.digits() * 10**decimals + part.digits()) / 10**decimals
                    return found
        return np.array(self.said(_FLOATS, _float))


def _float(token: bytes) -> float:
    if not _NUMBER.fullmatch(token) or not math.isfinite(value := float(token)):
        raise DoubtError
    return value


def tokens_of(data: bytes, columns: int, is_plain: bool = False) -> list[Tokens]:
    """The tokens of lines, by column; blank lines count for nothing.

    Args:
        data: lines with their ends, behind `_FRONT`.
        columns: how many tokens each line has.
        is_plain: whether one blank parts tokens, and no line is blank.

    Raises:
        DoubtError: a line has another number, or bytes that not all programs take for parts of tokens.
    """
    # From the last byte before the lines on, which is a line's end.
    shift = len(_FRONT) - 1
    bytes_ = np.frombuffer(data, np.uint8)[shift:]
    blank = bytes_ <= ord(" ")
    gaps = np.flatnonzero(blank)
    lines, more = divmod(len(gaps) - 1, columns)
    others = np.count_nonzero((bytes_ < ord(" ")) & (bytes_ != ord("\t"))) - lines - 1
    if more or others or (blank[1:] & blank[:-1]).any():
        if is_plain:
            # Programs are of two minds about all other control characters.
            raise DoubtError
        rows = (b" ".join(line.split()) for line in data.split(b"\n"))
        return tokens_of(b"\n".join((_FRONT[1:], *filter(None, rows), b"")), columns, True)
    if (bytes_[gaps[::columns]] != _END).any():
        raise DoubtError
    # One blank ends a token, and is before the next one.
    places = [gaps[which : which + columns * lines : columns] + shift for which in range(columns + 1)]
    return [Tokens(data, before + 1, end) for before, end in pairwise(places)]


class Lines(NamedTuple):
    """The lines of some whole queries.

    Attributes:
        query_ids: the queries.
        edges: where the lines of each start, and their number.
        columns: the tokens of all lines, by column.
        hashes: those of the last key.
        end: the last byte that was read.
    """

    query_ids: list[str]
    edges: Ints
    columns: list[Tokens]
    hashes: Words
    end: bytes

    def judgments(self, relevance_of: Callable[[str], float]) -> Iterator[tuple[list[str], list[float], list[str]]]:
        """Of lines of qrels: the documents, relevances and iterations of each query.

        Args:
            relevance_of: reads what is no integer as JSON has it; what it raises is a doubt.

        Raises:
            DoubtError: something is wrong.
        """
        _, iterations, docs, labels = self.columns
        try:
            relevances = labels.said(_INTS, lambda token: relevance_of(token.decode()))
        except (ValueError, OverflowError):
            raise DoubtError from None
        if max(map(abs, relevances)) > MOST_RELEVANT:
            raise DoubtError
        docs, iterations = docs.packed(), iterations.packed()
        for start, end in pairwise(self.edges.tolist()):
            one = slice(start, end)
            yield docs.at(one).strings(), relevances[one], iterations.at(one).strings()


def _has_doubles(hashes: Words) -> bool:
    """Whether two are one. To sort all would take eight times as long."""
    slots = (hashes >> np.uint64(64 - (4 * len(hashes)).bit_length())).view(np.int64)
    which = np.arange(len(hashes))
    one = np.empty(int(slots.max(initial=0)) + 1, np.int64)
    one[slots] = which
    # Of those of a slot all but one, which are few.
    others = np.flatnonzero(one[slots] != which)
    rest = np.sort(hashes[others])
    return bool((hashes[others] == hashes[one[slots[others]]]).any() or (rest[1:] == rest[:-1]).any())


def pieces(stream: BinaryIO, columns: int, *keys: int) -> Iterator[Lines]:
    """Some megabytes at a time of lines in columns, of which the first is the query.

    Args:
        stream: the file.
        columns: how many columns it has.
        keys: those in which no two lines of a query have the same tokens.

    Raises:
        DoubtError: the lines of a query do not stand together, it seems that two have the same tokens, the tokens of
            the first or last column are very long, or see `tokens_of`.
    """
    seen: set[str] = set()
    rest = end = b""
    ended = False
    while not ended:
        size = max(_PIECE, len(rest))
        data = stream.read(size)
        ended = len(data) < size
        line = stream.readline()
        if not end:
            data = data.removeprefix(b"\xef\xbb\xbf")
        end = line[-1:] or data[-1:] or end
        data = b"".join((_FRONT, rest, data, line, b"" if end == b"\n" else b"\n"))
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        try:
            _ = data.isascii() or data.decode()
        except UnicodeDecodeError:
            raise DoubtError from None
        found = tokens_of(data, columns)
        queries, rest = found[0], b""
        if not len(queries.starts):
            continue
        if max(int((one.ends - one.starts).max()) for one in (queries, found[-1])) > _LONGEST:
            raise DoubtError
        edges = np.flatnonzero(np.concatenate([[True], ~queries.same(), [True]]))
        if not ended:
            # More lines of the last query may follow.
            rest = queries.data[int(queries.starts[edges[-2]]) :]
            edges = edges[:-1]
            found = [tokens.at(slice(edges[-1])) for tokens in found]
        query_ids = [text.decode() for text in queries.at(edges[:-1]).texts()]
        known = len(seen) + len(query_ids)
        seen.update(query_ids)
        if len(seen) < known:
            raise DoubtError
        mixed = hashes = np.repeat(np.arange(len(query_ids)), np.diff(edges)).view(np.uint64)
        for key in keys:
            hashes = found[key].hashes()
            mixed = mixed * _ODD + hashes
        if _has_doubles(mixed):
            raise DoubtError
        if query_ids:
            yield Lines(query_ids, edges, found, hashes, end)


class DocRows:
    """The rows of the documents of queries by their ids, made once for all runs; threads may share it.

    Args:
        queries: query_id -> doc_id -> row, the ids as files have them.
        depth: how many documents of a ranking are looked up, 1 or more.
    """

    def __init__(self, queries: Mapping[str, Mapping[str, int]], depth: float = np.inf) -> None:
        self.depth, self._queries = depth, {query_id: number for number, query_id in enumerate(queries)}
        numbers = np.repeat(np.arange(len(queries)), np.array(list(map(len, queries.values())), int))
        docs = Tokens.of([doc_id.encode("utf-8", "surrogatepass") for rows in queries.values() for doc_id in rows])
        bits = (16 * len(numbers) + 1).bit_length()
        self._shift = np.uint64(64 - bits)
        slots = (numbers.view(np.uint64) * _ODD + docs.hashes() * _GOLDEN >> self._shift).view(np.int64)
        # Those of a slot stand together.
        order, counts = np.argsort(slots), np.bincount(slots, minlength=1 << bits)
        self._may, self._edges = counts > 0, np.append(0, np.cumsum(counts))
        self._numbers, self._docs = numbers[order], docs.at(order)
        self._rows = np.array([row for rows in queries.values() for row in rows.values()], np.int32)[order]

    def of(self, query_ids: Sequence[str], sizes: Ints, docs: Tokens, hashes: Words) -> NDArray[np.int32]:
        """The row of each document, -1 where there is none.

        Args:
            query_ids: queries.
            sizes: how many of the documents each has, one after the other.
            docs: the documents.
            hashes: theirs.
        """
        numbers = np.repeat(np.array([self._queries.get(query_id, -1) for query_id in query_ids], np.int64), sizes)
        slots = (numbers.view(np.uint64) * _ODD + hashes * _GOLDEN >> self._shift).view(np.int64)
        found = np.full(len(numbers), -1, np.int32)
        near = np.flatnonzero(self._may[slots])
        places, ends = self._edges[slots[near]], self._edges[slots[near] + 1]
        while len(near):
            same = (self._numbers[places] == numbers[near]) & docs.at(near).same(self._docs.at(places))
            found[near[same]] = self._rows[places[same]]
            left = ~same & (places + 1 < ends)
            near, places, ends = near[left], places[left] + 1, ends[left]
        return found


class Ranked(NamedTuple):
    """The documents of one query of a run.

    Its ids stay bytes until somebody asks. It keeps a piece of the file in memory: take from it what you need.

    Attributes:
        docs: those that are looked up, in the one sort: score descending, then doc_id descending.
        rows: by each index their rows.
        lines: where each stands in the file; None where each score is below the one before it.
        scores: those of all documents, as the file has them.
    """

    docs: Tokens
    rows: Sequence[NDArray[np.int32]]
    lines: Ints | None
    scores: Floats

    def ranking(self) -> Ranking:
        """The documents with their scores, where all were looked up."""
        doc_ids = self.docs.strings()
        if self.lines is None:
            return Ranking(doc_ids, self.scores.tolist())
        given = [doc_ids[place] for place in np.argsort(self.lines).tolist()]
        return Ranking(doc_ids, self.scores[self.lines].tolist(), given)

    def digest(self, depth: int | None = None) -> str:
        """Twelve hex digits of the first documents in their order; the id of a single one, which says as much.

        Args:
            depth: how many, one at least; None for all that are looked up.
        """
        docs = self.docs.at(slice(depth))
        joined = docs.data[docs.starts[0] : docs.ends[-1]]
        is_one = len(docs.starts) == 1
        return joined.decode(errors="surrogatepass") if is_one else blake2b(joined, digest_size=6).hexdigest()


def _by_id(docs: Tokens, order: Ints, values: NDArray[Any], edges: Ints, depths: Ints) -> Ints:
    """The places of documents by query, value, and id, of which the last two descend.

    Args:
        docs: the documents.
        order: their places by query and value.
        values: the values in that order.
        edges: where each query starts, and the number of documents.
        depths: how many of each query matter.
    """
    order, longest = order.copy(), int((docs.ends - docs.starts).max())
    windows = np.ndarray((len(docs.data) - _SIZE + 1,), "S8", docs.data, strides=(1,))
    # What is tied with the last one that matters does, too.
    near = values >= np.repeat(values[edges[:-1] + depths - 1], np.diff(edges))
    same = (values[1:] == values[:-1]) & near[1:]
    same[edges[1:-1] - 1] = False
    # The higher bytes of a key say which documents were equal until now, the lower ones what comes next in their ids.
    size = 6 if len(order) <= 1 << 16 else 4
    shift, higher = np.uint64(8 * (_SIZE - size)), np.uint64(8 * size)
    left, done = np.arange(len(order)), 0
    while True:
        again = np.flatnonzero(np.append(same, False) | np.append(False, same))
        left, groups = left[again], np.cumsum(np.append(True, ~same))[again].view(np.uint64)
        if not len(left) or done > longest:
            return order
        lines = order[left]
        lengths = docs.ends[lines] - docs.starts[lines] - done
        word = windows[np.minimum(docs.starts[lines] + done, len(windows) - 1)].view("<u8").byteswap()
        keys = groups << higher | ~(word & _KEPT.take(lengths, mode="clip")) >> shift
        by = np.argsort(keys)
        order[left], keys, done = lines[by], keys[by], done + size
        same = keys[1:] == keys[:-1]


def rankings(piece: Lines, indexes: Sequence[DocRows] = ()) -> Iterator[tuple[Ranked, int]]:
    """The ranking of each query, with the places where its rank column disagrees.

    These are neighbours in the order of the ranks of which the later has the higher score; equal ranks say nothing.
    Where trec_eval compares scores in single precision, a score that is higher beyond it only is no higher one.

    Args:
        piece: lines of a run, of which the documents are the key.
        indexes: find the rows of as many documents as one of them asks for; without one all are looked up.

    Raises:
        DoubtError: a rank is no integer of digits, or a score no number.
    """
    docs, ranks, scores, edges = piece.columns[2], piece.columns[3].digits(), piece.columns[4].numbers(), piece.edges
    with np.errstate(over="ignore"):
        singles = scores.astype(np.float32)
    starts, sizes, last = edges[:-1], np.diff(edges), edges[1:-1] - 1
    # Between a line and the next one.
    tied, rises = singles[1:] >= singles[:-1], scores[1:] > scores[:-1]
    odd = (ranks[1:] <= ranks[:-1]) | rises
    tied[last] = rises[last] = odd[last] = False
    ties, oddities = (np.diff(np.searchsorted(np.flatnonzero(places), edges)).tolist() for places in (tied, odd))
    depths = np.minimum(sizes, max([index.depth for index in indexes], default=np.inf)).astype(int)
    order = base = np.arange(len(scores))
    if tied.any():
        if rises.any():
            base = np.lexsort((-scores, np.repeat(np.arange(len(sizes)), sizes)))
        order = _by_id(docs, base, singles[base], edges, depths)
    if (depths < sizes).any():
        order = order[np.arange(len(order)) - np.repeat(starts, sizes) < np.repeat(depths, sizes)]
    first = docs.at(order).packed()
    rows = [index.of(piece.query_ids, depths, first, piece.hashes[order]) for index in indexes]
    shown = np.append(0, np.cumsum(depths)).tolist()
    for place, (start, end) in enumerate(pairwise(edges.tolist())):
        one, looked_at = slice(start, end), slice(shown[place], shown[place + 1])
        count = _disagreements(ranks[one], singles[one]) if oddities[place] else 0
        lines = order[looked_at] - start if ties[place] else None
        yield Ranked(first.at(looked_at), [of[looked_at] for of in rows], lines, scores[one]), count


def _disagreements(ranks: Ints, scores: NDArray[Any]) -> int:
    order = np.lexsort((-scores, ranks))
    ranks, scores = ranks[order], scores[order]
    return int(np.count_nonzero((ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])))
