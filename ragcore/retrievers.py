"""The channels of a search, each a ranking of chunks: bm25, dense (approximate), dense_exact.

A channel answers questions one by one, each timed, or all of one filter together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ragcore.filters import Eligibility, Mask
from ragcore.index.opened import Index
from ragcore.progress import Progress, no_progress
from ragcore.search_settings import BM25, DENSE, DENSE_EXACT
from ragcore_kernels.bm25 import Scorer
from ragcore_kernels.layout import F64, I64

Clock = Callable[[], int]
"""Nanoseconds from some moment on."""


@dataclass
class Ranked:
    """What a channel found, question by question.

    Attributes
    ----------
    rows, scores : best first; scores are comparable inside the channel, greater is better.
    duration_us : (m,); that of the whole batch divided by its questions where they were answered
        together.
    """

    rows: list[Any]
    scores: list[Any]
    duration_us: F64

    def head(self, n: int) -> Ranked:
        """The same of the first n questions."""
        return Ranked(self.rows[:n], self.scores[:n], self.duration_us[:n])

    @staticmethod
    def empty(n: int) -> Ranked:
        """Nothing found for n questions."""
        none = np.empty(0, np.int32), np.empty(0)
        return Ranked([none[0]] * n, [none[1]] * n, np.zeros(n))


@dataclass
class Lexical:
    """BM25 over the postings of an index.

    Parameters
    ----------
    index : what is searched.
    texts : the questions: text, never syntax.
    k1, b, variant, lengths : of the formula; None = as the index says.
    count_repeats : a term that stands twice in a question counts twice; else once.
    """

    index: Index
    texts: list[str]
    k1: float | None = None
    b: float | None = None
    variant: str | None = None
    lengths: str | None = None
    count_repeats: bool = False
    tokens: list[list[str]] = field(init=False)
    offsets: I64 = field(init=False)
    codes: I64 = field(init=False)
    weights: F64 = field(init=False)

    name = BM25
    n_completed = 0

    def __post_init__(self) -> None:
        own = self.index.options
        analysed = own.analyzer.batch(self.texts)
        self.tokens = [line.split(" ") if line else [] for line in analysed]
        distinct = [_counted(tokens) for tokens in self.tokens]
        self.offsets = np.zeros(len(distinct) + 1, np.int64)
        np.cumsum([len(terms) for terms in distinct], out=self.offsets[1:])
        flat = [term for terms in distinct for term in terms]
        vocabulary = sorted(set(flat))
        codes = dict(zip(vocabulary, self.index.dictionary.codes(vocabulary).tolist(), strict=True))
        self.codes = np.array([codes[term] for term in flat], np.int64)
        repeats = [n for terms in distinct for n in terms.values()]
        self.weights = np.array(repeats, np.float64) if self.count_repeats else np.ones(len(flat))
        self.settings = {
            "variant": self.variant or own.variant, "lengths": self.lengths or own.lengths,
            "k1": own.k1 if self.k1 is None else self.k1,
            "b": own.b if self.b is None else self.b,
        }  # fmt: skip
        known = np.unique(self.codes[self.codes >= 0])
        self.scorer = Scorer(self.index.dictionary.collection, terms=known, **self.settings)

    def search(self, begin: int, end: int, k: int, mask: Mask | None, threads: int) -> Any:
        """Rows, scores and counts of the questions `begin` to `end`."""
        k = _reachable(k, self.index)
        first, last = int(self.offsets[begin]), int(self.offsets[end])
        hits = self.scorer.search(
            self.offsets[begin : end + 1] - first, self.codes[first:last], k,
            weights=self.weights[first:last], eligible=mask, threads=threads,
        )  # fmt: skip
        return hits.docs, hits.scores, hits.counts

    def analyse(self, row: int) -> None:
        """Analyse one question again and look its terms up, to time that."""
        tokens = self.index.options.analyzer.tokens(self.texts[row])
        self.index.dictionary.codes(list(_counted(tokens)))

    def known(self, terms: list[str]) -> list[bool]:
        """Which terms some chunk has."""
        return (self.index.dictionary.codes(terms) >= 0).tolist()


def _reachable(k: int, index: Index) -> int:
    """As many as there are to be found: room is made for all that are asked for."""
    return min(k, max(index.n_chunks, 1))


def _counted(tokens: list[str]) -> dict[str, int]:
    """Distinct terms in the order of their first place, and how often each stands there."""
    counts: dict[str, int] = {}
    for token in tokens:
        counts[token] = counts.get(token, 0) + 1
    return counts


@dataclass
class Exact:
    """Brute force over the vectors of an index."""

    index: Index
    vectors: np.ndarray[Any, Any]

    name = DENSE_EXACT
    n_completed = 0

    def search(self, begin: int, end: int, k: int, mask: Mask | None, threads: int) -> Any:
        """Rows, scores and counts of the questions `begin` to `end`."""
        k = _reachable(k, self.index)
        found = self.index.exact.search(self.vectors[begin:end], k, eligible=mask, threads=threads)
        return found.rows, found.scores, found.counts


@dataclass
class Approximate:
    """HNSW over the vectors of an index; scores are computed exactly for what it returns.

    Parameters
    ----------
    ef : size of the list that a search keeps.

    Attributes
    ----------
    n_completed : questions that a filter left with too few neighbours, answered by brute force.
    """

    index: Index
    vectors: np.ndarray[Any, Any]
    ef: int = 100
    n_completed: int = 0

    name = DENSE

    def search(self, begin: int, end: int, k: int, mask: Mask | None, threads: int) -> Any:
        """Rows, scores and counts of the questions `begin` to `end`.

        hnswlib would call a Python function for every node under a filter; here it is asked for
        more, four times as many at a time, until enough are eligible. Where that would be a tenth
        of all chunks, brute force over the eligible ones is quicker, and exact.
        """
        k, queries = _reachable(k, self.index), self.vectors[begin:end]
        out = np.full((end - begin, k), -1, np.int32)
        counts = np.zeros(end - begin, np.int64)
        finite = np.isfinite(queries).all(1)
        todo = np.flatnonzero(finite)
        want = k if mask is None else 4 * k
        n_eligible = self.index.n_chunks if mask is None else int(mask.sum())
        while todo.size and n_eligible:
            if mask is not None and want * 10 > self.index.n_chunks:
                exact = self.index.exact.search(queries[todo], k, eligible=mask, threads=threads)
                out[todo], counts[todo] = exact.rows, exact.counts
                self.n_completed += int(todo.size)
                break
            rows, found = self.index.graph.search(queries[todo], want, self.ef, threads)
            left = []
            for i, q in enumerate(todo.tolist()):
                near = rows[i, : found[i]]
                near = near if mask is None else near[mask[near] > 0]
                if near.size < min(k, n_eligible) and mask is not None:
                    left.append(q)
                    continue
                near = near[:k]
                out[q, : near.size], counts[q] = near, near.size
            todo = np.array(left, np.int64)
            want *= 4
        from ragcore_kernels.knn_lists import ordered

        out, scores = ordered(self.index.exact, queries, out, counts)
        return out, scores, counts


def run(
    channel: Lexical | Exact | Approximate,
    k: int,
    eligibility: Eligibility,
    n: int,
    *,
    after: bool,
    together: bool,
    threads: int,
    clock: Clock = time.perf_counter_ns,
    progress: Progress = no_progress,
) -> Ranked:
    """Ask a channel all n questions.

    Parameters
    ----------
    k : candidates of each.
    after : take the best k of all chunks, then drop what is not eligible; else choose among the
        eligible ones.
    together : in batches, one a filter; else question by question, each timed.
    progress : told before every question that is asked alone.
    """
    out = Ranked.empty(n)

    def keep(row: int, rows: Any, scores: Any, mask: Mask | None) -> None:
        if after and mask is not None:
            chosen = mask[rows] > 0
            rows, scores = rows[chosen], scores[chosen]
        out.rows[row], out.scores[row] = rows, scores.astype(np.float64)

    if not together:
        for row in range(n):
            mask = eligibility.mask(row)
            progress(f"searching {channel.name}", row, n)
            began = clock()
            rows, scores, counts = channel.search(row, row + 1, k, None if after else mask, threads)
            ended = clock()
            out.duration_us[row] = (ended - began) / 1000
            keep(row, rows[0, : counts[0]], scores[0, : counts[0]], mask)
        return out
    for members, mask in eligibility.groups(n):
        began = clock()
        found = [
            channel.search(begin, end, k, None if after else mask, threads)
            for begin, end in _stretches(members)
        ]
        share = (clock() - began) / 1000 / max(len(members), 1)
        row = iter(members)
        for rows, scores, counts in found:
            for i in range(len(counts)):
                at = next(row)
                out.duration_us[at] = share
                keep(at, rows[i, : counts[i]], scores[i, : counts[i]], mask)
    return out


def _stretches(members: list[int]) -> list[tuple[int, int]]:
    """Consecutive runs of rising numbers, as (begin, end)."""
    out: list[tuple[int, int]] = []
    for row in members:
        if out and out[-1][1] == row:
            out[-1] = (out[-1][0], row + 1)
        else:
            out.append((row, row + 1))
    return out
