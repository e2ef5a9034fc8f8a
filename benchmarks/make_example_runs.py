"""Writes the seven ranking runs of the example collection: small real rankers over its passages, one seed, no dates.

Run from the repository root: `python benchmarks/make_example_runs.py` (`--check` compares with the files instead).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import snowballstemmer

COLLECTION = Path(__file__).resolve().parent.parent / "resources" / "example"
DEPTH = 30
SEED = 20240607
STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can did do does for from had has have how if in into is it its may no not "
        "of on or so such than that the their them then there these they this to up was were what when which who why "
        "will with without you your",
    )
)
Scores = dict[str, float]
Ranker = Callable[["Index", list[str]], Scores]


@dataclass(frozen=True)
class Index:
    """Term counts of every document, and what the formulas need of the whole collection."""

    counts: Mapping[str, Counter[str]]
    lengths: Mapping[str, int]
    doc_frequency: Counter[str]
    collection_frequency: Counter[str]

    @property
    def mean_length(self) -> float:
        """Mean document length in terms."""
        return sum(self.lengths.values()) / len(self.lengths)

    def idf(self, term: str) -> float:
        """ln(1 + (N - df + 0.5) / (df + 0.5)), never negative."""
        df = self.doc_frequency[term]
        return math.log(1 + (len(self.counts) - df + 0.5) / (df + 0.5))


def terms_of(text: str, *, stem: bool) -> list[str]:
    """The lower-cased words without stopwords, stemmed (Snowball English) or as they stand."""
    words = [word for word in re.findall(r"[^\W_]+", text.lower()) if word not in STOPWORDS]
    return snowballstemmer.stemmer("english").stemWords(words) if stem else words


def build_index(docs: Mapping[str, str], *, stem: bool) -> Index:
    """Counts the terms of every document."""
    counts = {doc_id: Counter(terms_of(text, stem=stem)) for doc_id, text in docs.items()}
    collection_frequency: Counter[str] = Counter()
    for count in counts.values():
        collection_frequency.update(count)
    return Index(
        counts,
        {doc_id: count.total() for doc_id, count in counts.items()},
        Counter(term for count in counts.values() for term in count),
        collection_frequency,
    )


def matching(index: Index, query: list[str]) -> list[str]:
    """The documents that hold at least one query term."""
    return [doc_id for doc_id, count in index.counts.items() if any(term in count for term in query)]


def bm25(index: Index, query: list[str], k1: float = 1.2, b: float = 0.75) -> Scores:
    """Robertson and Zaragoza's BM25: idf x tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))."""
    scores: Scores = {}
    for doc_id in matching(index, query):
        norm = k1 * (1 - b + b * index.lengths[doc_id] / index.mean_length)
        tfs = [(term, index.counts[doc_id][term]) for term in query]
        scores[doc_id] = sum(index.idf(term) * tf * (k1 + 1) / (tf + norm) for term, tf in tfs)
    return scores


def raw_frequency(index: Index, query: list[str]) -> Scores:
    """BM25 with k1 without bound and b = 0: idf x tf, no saturation, so that repeated words pay in full."""
    return {
        doc_id: sum(index.idf(term) * index.counts[doc_id][term] for term in query) for doc_id in matching(index, query)
    }


def tfidf_cosine(index: Index, query: list[str]) -> Scores:
    """Cosine of (1 + ln tf) x idf vectors of query and document."""

    def weights(count: Counter[str]) -> dict[str, float]:
        vector = {term: (1 + math.log(tf)) * index.idf(term) for term, tf in sorted(count.items())}
        norm = math.sqrt(sum(weight * weight for weight in vector.values()))
        return {term: weight / norm for term, weight in vector.items()}

    query_vector = weights(Counter(query))
    scores: Scores = {}
    for doc_id in matching(index, query):
        vector = weights(index.counts[doc_id])
        scores[doc_id] = sum(weight * vector.get(term, 0.0) for term, weight in query_vector.items())
    return scores


def query_likelihood(index: Index, query: list[str], mu: float = 60.0, prior: float = 20.0) -> Scores:
    """ln P(query | document), Dirichlet smoothed, plus a document prior, prior x ln(distinct terms / all terms).

    The prior is what keeps pages that repeat the same few words from the top.
    """
    total = sum(index.lengths.values())
    known = [term for term in query if index.collection_frequency[term]]
    scores: Scores = {}
    for doc_id in matching(index, query):
        count, length = index.counts[doc_id], index.lengths[doc_id]
        scores[doc_id] = prior * math.log(len(count) / length) + sum(
            math.log((count[term] + mu * index.collection_frequency[term] / total) / (length + mu)) for term in known
        )
    return scores


def ranking(scores: Scores, depth: int | None = DEPTH) -> list[tuple[str, float]]:
    """Score, then doc_id, both descending, as trec_eval sorts; scores are rounded first, as the file shows them."""
    rounded = ((doc_id, round(score, 6)) for doc_id, score in scores.items())
    return sorted(rounded, key=lambda pair: (pair[1], pair[0]), reverse=True)[:depth]


def reciprocal_rank_fusion(rankings: list[list[tuple[str, float]]], k: int = 60) -> Scores:
    """Sum over the rankings of 1 / (k + rank) (Cormack, Clarke and Buettcher, SIGIR 2009)."""
    scores: Scores = {}
    for one in rankings:
        for rank, (doc_id, _) in enumerate(one, start=1):
            scores[doc_id] = scores.get(doc_id, 0.0) + 1 / (k + rank)
    return scores


def rank_query(plain: Index, stemmed: Index, query_id: str, text: str) -> dict[str, list[tuple[str, float]]]:
    """All seven rankings of one query; `random` shuffles all that the others found and as many documents more."""
    words, stems = terms_of(text, stem=False), terms_of(text, stem=True)
    runs = {
        "bm25": ranking(bm25(plain, words)),
        "bm25-stem": ranking(bm25(stemmed, stems)),
        "tfidf": ranking(tfidf_cosine(plain, words)),
        "query-likelihood": ranking(query_likelihood(stemmed, stems)),
        "raw-tf": ranking(raw_frequency(plain, words)),
    }
    fused = reciprocal_rank_fusion([runs[name] for name in ("bm25-stem", "query-likelihood")])
    pool = sorted({doc_id for run in runs.values() for doc_id, _ in run})
    generator = random.Random(f"{SEED}/{query_id}")
    others = generator.sample(sorted(plain.counts.keys() - set(pool)), min(len(pool), len(plain.counts) - len(pool)))
    return runs | {
        "fusion": ranking(fused),
        "random": ranking({doc_id: generator.random() for doc_id in pool + others}),
    }


def read_queries() -> dict[str, str]:
    """query_id -> text, of queries.tsv."""
    lines = (COLLECTION / "queries.tsv").read_text(encoding="utf-8").splitlines()
    return {query_id: text for query_id, _, text in (line.partition("\t") for line in lines)}


def make_runs() -> dict[str, str]:
    """Run name -> the text of its file."""
    lines = (COLLECTION / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    docs = {record["doc_id"]: record["text"] for record in map(json.loads, lines)}
    plain, stemmed = build_index(docs, stem=False), build_index(docs, stem=True)
    files: dict[str, list[str]] = {}
    for query_id, text in read_queries().items():
        for name, ranked in rank_query(plain, stemmed, query_id, text).items():
            for rank, (doc_id, score) in enumerate(ranked, start=1):
                files.setdefault(name, []).append(f"{query_id} Q0 {doc_id} {rank} {score:.6f} {name}\n")
    return {name: "".join(content) for name, content in files.items()}


def main() -> int:
    """Writes the run files, or with --check says which differ (exit code 1)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    check = parser.parse_args().check
    stale = []
    for name, content in make_runs().items():
        path = COLLECTION / "runs" / f"{name}.run"
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(path.name)
    if stale:
        print("these runs differ from what the script makes:", ", ".join(stale))
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
