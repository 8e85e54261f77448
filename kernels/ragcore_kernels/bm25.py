"""BM25 over postings: exact scores, the exact best k, and an explanation in the same arithmetic.

>>> collection = Collection(offsets, docs, tfs, lengths)
>>> hits = Scorer(collection, variant="tantivy").search([0, 2], [17, 4], k=10)
>>> hits.docs[0, : hits.counts[0]]

An impact (what one term gives one document) is computed in float64 and rounded to float32 once; a
score is the float64 sum of impacts times weights in the order of the query's terms, rounded to
float32. So the bits do not depend on the kernel, on the batch or on threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels.bm25_batches import Lists, Places, Questions, fast_work, plain_work
from ragcore_kernels.bm25_formulas import LENGTHS, VARIANTS, Formula, norms, stored_lengths
from ragcore_kernels.bm25_pack import Packed, pack
from ragcore_kernels.bm25_plain import find_fault
from ragcore_kernels.layout import check_csr, frozen

__all__ = ["LENGTHS", "VARIANTS", "Collection", "Explanation", "Hits", "Part", "Scorer"]

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

FAST_DOCS = 20_000
"""Smaller collections are searched by the plain kernel."""


@dataclass(frozen=True)
class Collection:
    """Postings of a collection, grouped by term, and the statistics to score with.

    Parameters
    ----------
    offsets : int64 (n_terms + 1,), where the list of each term begins.
    docs : int32 (n_postings,), documents, ascending inside a list.
    tfs : int32 (n_postings,), how often the term is in the document, from 1.
    lengths : int32 (n_docs,), exact lengths of the documents in tokens.
    n_docs_stat, df, avgdl : statistics to use instead of those of the arrays: number of
        documents, documents of each term (int64 (n_terms,)) and average length, e.g. of an index
        that still counts deleted documents.

    Raises
    ------
    ValueError
        If shapes or types do not fit, a length is negative, or statistics contradict each other.
        The lists themselves are checked by `Scorer`, which looks at those that it needs.
    """

    offsets: I64
    docs: I32
    tfs: I32
    lengths: I32
    n_docs_stat: int | None = None
    df: I64 | None = None
    avgdl: float | None = None

    def __post_init__(self) -> None:
        for name, kind in (("offsets", np.int64), ("docs", np.int32), ("tfs", np.int32),
                           ("lengths", np.int32)):  # fmt: skip
            array = np.asarray(getattr(self, name))
            if array.ndim != 1 or array.dtype != kind:
                raise ValueError(
                    f"{name} is {array.dtype}{list(array.shape)}; wanted {kind.__name__}[n]"
                )
            object.__setattr__(self, name, frozen(array, kind))
        check_csr(self.offsets, self.docs.size)
        if self.tfs.size != self.docs.size:
            raise ValueError(f"{self.tfs.size} tfs for {self.docs.size} docs; wanted as many")
        if self.lengths.min(initial=0) < 0:
            raise ValueError(f"a length is {self.lengths.min()}; wanted numbers from 0")
        self._check_statistics()

    def _check_statistics(self) -> None:
        """Fill in what is not given; refuse what cannot be."""
        df = np.diff(self.offsets) if self.df is None else np.asarray(self.df)
        if df.shape != (self.n_terms,) or df.dtype != np.int64 or df.min(initial=0) < 0:
            raise ValueError(
                f"df is {df.dtype}{list(df.shape)}, least {df.min(initial=0)}; "
                f"wanted int64[{self.n_terms}] from 0"
            )
        object.__setattr__(self, "df", frozen(df, np.int64))
        n = self.n_docs if self.n_docs_stat is None else int(self.n_docs_stat)
        if n < df.max(initial=0):
            raise ValueError(f"n_docs_stat is {n}; wanted at least the largest df, {df.max()}")
        object.__setattr__(self, "n_docs_stat", n)
        mean = self.avgdl
        if mean is None:
            mean = int(self.lengths.sum(dtype=np.int64)) / max(self.n_docs, 1)
        if not (np.isfinite(mean) and mean >= 0):
            raise ValueError(f"avgdl is {mean}; wanted a finite number from 0")
        object.__setattr__(self, "avgdl", float(mean))

    @property
    def n_docs(self) -> int:
        """Number of documents that can be found."""
        return self.lengths.size

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return self.offsets.size - 1


@dataclass(frozen=True)
class Hits:
    """The best documents of each query, best first.

    Attributes
    ----------
    docs : int32 (m, k), documents; -1 beyond `counts`.
    scores : float32 (m, k), their scores; 0.0 beyond `counts`.
    counts : int64 (m,), how many were found.
    """

    docs: I32
    scores: F32
    counts: I64


@dataclass(frozen=True)
class Part:
    """What one query term gives one document.

    Attributes
    ----------
    term : code of the term, -1 if the collection lacks it.
    tf : how often it is in the document.
    df : documents that have it, as counted for the idf.
    idf : inverse document frequency.
    length : length of the document as it entered, i.e. rounded with ``lengths="tantivy"``.
    avgdl : average length.
    weight : weight of the term in the query.
    contribution : float32 impact times weight, as it is added up; 0 if the document lacks the term.
    """

    term: int
    tf: int
    df: int
    idf: float
    length: int
    avgdl: float
    weight: float
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """A score and its parts, in the order of the query's terms."""

    parts: list[Part]
    score: float


@dataclass
class Scorer:
    """A collection made ready for one formula.

    Parameters
    ----------
    collection : what is searched.
    variant : one of `VARIANTS`; see `ragcore_kernels.bm25_formulas.Formula`. A score is the sum
        of the published values over query terms *in the document*: an absent term adds 0, also in
        bm25l and bm25+.
    lengths : one of `LENGTHS`.
    k1, b : parameters, from 0; b at most 1.
    delta : of bm25l (default 0.5) and bm25+ (default 1.0); no other variant takes it.
    terms : int64, codes of the terms that queries will use; default all. Only these lists are
        read, checked and prepared.

    Raises
    ------
    ValueError
        If a parameter is out of range, a term is unknown, or a list breaks the contract.
    """

    collection: Collection
    variant: str = field(default="tantivy", kw_only=True)
    lengths: str = field(default="exact", kw_only=True)
    k1: float = field(default=1.2, kw_only=True)
    b: float = field(default=0.75, kw_only=True)
    delta: float | None = field(default=None, kw_only=True)
    terms: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        own = self.collection
        self.formula = Formula.checked(self.variant, self.k1, self.b, self.delta)
        if self.lengths not in LENGTHS:
            raise ValueError(f"lengths is {self.lengths!r}; wanted one of {', '.join(LENGTHS)}")
        chosen = np.arange(own.n_terms) if self.terms is None else np.unique(_codes(self.terms))
        _check_range(chosen, own.n_terms, 0)
        self._chosen = frozen(chosen, np.int64)
        fault = find_fault(own.offsets, own.docs, own.tfs, own.n_docs, self._chosen)
        if fault >= 0:
            raise ValueError(
                f"the list of term {chosen[fault]} breaks the contract; "
                f"wanted documents ascending in 0..{own.n_docs - 1} and counts from 1"
            )
        slots = np.full(own.n_terms, -1, np.int64)
        slots[chosen] = np.arange(chosen.size)
        self._slots = frozen(slots, np.int64)
        used = own.lengths if self.lengths == "exact" else stored_lengths(own.lengths)
        self._lengths = used
        self._norms = frozen(norms(used, _given(own.avgdl), self.formula.b), np.float64)
        n, df = _given(own.n_docs_stat), _given(own.df)[chosen]
        self._idf, factor, extra = self.formula.factors(n, df)
        self._factors = frozen(np.stack([factor, extra], 1), np.float64)
        self._lists = Lists(
            own.offsets, own.docs, own.tfs, self._norms, self._slots, self._factors,
            frozen(self.formula.curve, np.float64),
        )  # fmt: skip
        self._packed = self._pack()

    def _pack(self) -> Packed | None:
        """Lists for the fast kernel, where the collection is large enough to gain by it."""
        own, lists = self.collection, self._lists
        if own.n_docs < FAST_DOCS:
            return None
        return pack(
            lists.offsets, lists.docs, lists.tfs, lists.norms, lists.factors, lists.curve,
            self._chosen,
        )  # fmt: skip

    def search(
        self,
        offsets: ArrayLike,
        terms: ArrayLike,
        k: int,
        *,
        weights: ArrayLike | None = None,
        eligible: ArrayLike | None = None,
        threads: int = 1,
    ) -> Hits:
        """The best `k` documents of each query: score descending, then document ascending.

        Parameters
        ----------
        offsets : int64 (m + 1,), where the terms of each query begin.
        terms : int64, codes of query terms; -1 for one that the collection lacks. A term that
            stands twice counts twice.
        k : how many; there may be fewer. Only documents with a query term are found, even where
            its idf is 0.
        weights : float64, from 0, one a query term; default 1. A term of weight 0 is no term.
        eligible : bool or uint8 (n_docs,), documents that may be found; default all. Statistics
            are those of the collection all the same.
        threads : how many threads share the queries.

        Raises
        ------
        ValueError
            If shapes do not fit, a code is unknown or was not prepared, a weight is negative or
            not finite, or `k` is negative.
        """
        own = self.collection
        codes = _codes(terms)
        starts = np.asarray(offsets)
        starts = frozen(starts, np.int64) if starts.dtype.kind in "iu" else starts
        check_csr(starts, codes.size)
        self._check_terms(codes)
        loads = _weights(weights, codes.size)
        if k < 0:
            raise ValueError(f"k is {k}; wanted a number from 0")
        if threads < 1:
            raise ValueError(f"threads is {threads}; wanted a number from 1")
        allowed = _eligible(eligible, own.n_docs)
        m = starts.size - 1
        out = Places(
            np.full((m, k), -1, np.int32), np.zeros((m, k), np.float32), np.zeros(m, np.int64)
        )
        asked = Questions(starts, codes, loads, allowed)
        if self._packed is None or k == 0:
            work = plain_work(self._lists, asked, out)
        else:
            work = fast_work(self._lists, self._packed, asked, out)
        cuts = [m * i // threads for i in range(threads + 1)]
        parts = [(a, b) for a, b in pairwise(cuts) if b > a]
        if len(parts) < 2:
            for a, b in parts:
                work(a, b)
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                list(pool.map(lambda part: work(*part), parts))
        return Hits(out.docs, out.scores, out.counts)

    def explain(self, terms: ArrayLike, doc: int, weights: ArrayLike | None = None) -> Explanation:
        """The score of document `doc` for one query, term by term.

        The contributions, added in order in float64 and rounded to float32, are the score that
        `search` gives, to the last bit.

        Raises
        ------
        ValueError
            As `search`, and if there is no document `doc`.
        """
        own = self.collection
        codes = _codes(terms)
        self._check_terms(codes)
        loads = _weights(weights, codes.size)
        if not 0 <= doc < own.n_docs:
            raise ValueError(f"doc is {doc}; wanted a number in 0..{own.n_docs - 1}")
        length, avgdl = int(self._lengths[doc]), _given(own.avgdl)
        n = float(self._norms[doc])
        low, high = self.formula.curve
        parts, total = [], 0.0
        for term, weight in zip(codes.tolist(), loads.tolist(), strict=True):
            if term < 0:
                parts.append(Part(term, 0, 0, 0.0, length, avgdl, weight, 0.0))
                continue
            begin, end = own.offsets[term : term + 2]
            at = begin + np.searchsorted(own.docs[begin:end], doc)
            tf = int(own.tfs[at]) if at < end and own.docs[at] == doc else 0
            slot = self._slots[term]
            value = 0.0
            if tf and weight > 0:
                factor, extra = self._factors[slot].tolist()
                value = float(np.float32(factor * ((tf + low * n) / (tf + high * n)) + extra))
            df, idf = int(_given(own.df)[term]), float(self._idf[slot])
            parts.append(Part(term, tf, df, idf, length, avgdl, weight, value * weight))
            total += value * weight
        return Explanation(parts, float(np.float32(total)))

    def _check_terms(self, codes: I64) -> None:
        _check_range(codes, self.collection.n_terms, -1)
        if self._chosen.size < self.collection.n_terms:
            known = codes[codes >= 0]
            lost = known[self._slots[known] < 0]
            if lost.size:
                raise ValueError(f"term {lost[0]} was not prepared; wanted one of `terms`")


def _given(value: Any) -> Any:
    """A statistic that `Collection` has filled in."""
    assert value is not None
    return value


def _codes(terms: Any) -> I64:
    """Term codes as read-only int64."""
    array = np.asarray(terms)
    if array.size == 0:
        array = np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"terms are {array.dtype}{list(array.shape)}; wanted int64[n]")
    return frozen(array, np.int64)


def _check_range(codes: I64, n_terms: int, least: int) -> None:
    bad = codes[(codes < least) | (codes >= n_terms)]
    if bad.size:
        raise ValueError(f"a term is {bad[0]}; wanted codes in {least}..{n_terms - 1}")


def _weights(weights: Any, n: int) -> F64:
    """Weights as read-only float64, 1 by default."""
    if weights is None:
        return frozen(np.ones(n), np.float64)
    array = np.asarray(weights, np.float64)
    if array.shape != (n,):
        raise ValueError(f"weights are {list(array.shape)}; wanted one a term, [{n}]")
    bad = array[~(np.isfinite(array) & (array >= 0))]
    if bad.size:
        raise ValueError(f"a weight is {bad[0]}; wanted finite numbers from 0")
    return frozen(array, np.float64)


def _eligible(eligible: Any, n_docs: int) -> NDArray[np.uint8]:
    """Flags of the documents that may be found, read-only; empty: all may."""
    if eligible is None:
        return frozen(np.zeros(0), np.uint8)
    array = np.asarray(eligible)
    if array.dtype not in (np.bool_, np.uint8) or array.shape != (n_docs,):
        raise ValueError(
            f"eligible is {array.dtype}{list(array.shape)}; wanted bool[{n_docs}] or uint8"
        )
    return frozen(array.astype(np.bool_), np.uint8)
