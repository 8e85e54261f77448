"""The BM25 family as one curve: what differs between the variants is a handful of numbers.

Every variant gives a matching term of a document ``factor * (f + A n) / (f + B n) + extra`` with
f the term's count in the document and n = 1 - b + b * length / average length. `Formula` holds A
and B, which are the same for all terms; `factors` gives factor and extra of each term.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

VARIANTS = ("tantivy", "lucene", "robertson", "atire", "bm25l", "bm25+")
"""Names of the formulas, see `Formula`."""

LENGTHS = ("exact", "tantivy")
"""Lengths of documents: exact, or rounded down to what one byte holds, as tantivy stores them."""

_DELTAS = {"bm25l": 0.5, "bm25+": 1.0}


def _stored_values() -> I64:
    """The 256 lengths that one byte stands for: 0..39, then groups of 8 in steps 2, 4, 8, ..."""
    values = list(range(40))
    step, value = 2, 40
    while len(values) < 256:
        values += [value + step * j for j in range(8)]
        value, step = values[-1] + step, 2 * step
    return np.array(values[:256], np.int64)


STORED_LENGTHS = _stored_values()
"""The length that each byte stands for, in tantivy's and Lucene's one-byte code."""


def stored_lengths(lengths: NDArray[np.integer]) -> I64:
    """Each length rounded down to the nearest one that a byte can hold."""
    top = int(lengths.max(initial=0))
    if top < 1 << 16:  # a table: the search below takes longer than all the rest for many documents
        table = STORED_LENGTHS[np.searchsorted(STORED_LENGTHS, np.arange(top + 1), "right") - 1]
        return table[lengths]
    return STORED_LENGTHS[np.searchsorted(STORED_LENGTHS, lengths, "right") - 1]


def norms(lengths: NDArray[np.integer], avgdl: float, b: float) -> F64:
    """``1 - b + b * length / avgdl`` of each document; length / avgdl is 1 where `avgdl` is 0."""
    if avgdl == 0.0:
        return np.ones(lengths.size)
    return (1.0 - b) + b * (lengths.astype(np.float64) / avgdl)


@dataclass(frozen=True)
class Formula:
    """One variant with its parameters.

    Attributes
    ----------
    variant : with f, n as above, N documents of which df have the term:

        ===========  ==========================================  ===========================
        variant      idf                                         value of a matching term
        ===========  ==========================================  ===========================
        tantivy      ln(1 + (N - df + 1/2) / (df + 1/2))         idf f (k1+1) / (f + k1 n)
        lucene       the same                                    idf f / (f + k1 n)
        robertson    ln(max(1, (N - df + 1/2) / (df + 1/2)))     idf f / (f + k1 n)
        atire        ln(N / df)                                  idf f (k1+1) / (f + k1 n)
        bm25l        ln((N + 1) / (df + 1/2))                    idf (k1+1)(c+d) / (k1+c+d)
        bm25+        ln((N + 1) / df)                            idf (f (k1+1)/(f + k1 n) + d)
        ===========  ==========================================  ===========================

        with c = f / n and d = `delta`. A term that a document lacks adds 0, in every variant.
    k1, b, delta : parameters.

    References
    ----------
    Robertson et al., TREC-3 (1994); Trotman, Puurula, Burgess, ADCS (2014); Lv and Zhai, SIGIR
    (2011) for bm25l and CIKM (2011) for bm25+.
    """

    variant: str
    k1: float
    b: float
    delta: float

    @classmethod
    def checked(cls, variant: str, k1: float, b: float, delta: float | None) -> Formula:
        """A formula from what a caller gave.

        Raises
        ------
        ValueError
            If the variant is unknown, a parameter is negative or not finite, b is above 1, or
            `delta` is given to a variant that has none.
        """
        if variant not in VARIANTS:
            raise ValueError(f"variant is {variant!r}; wanted one of {', '.join(VARIANTS)}")
        if delta is not None and variant not in _DELTAS:
            raise ValueError(f"delta is {delta} but {variant} has none; wanted delta=None")
        delta = _DELTAS.get(variant, 0.0) if delta is None else delta
        for name, value, most in (("k1", k1, math.inf), ("b", b, 1.0), ("delta", delta, math.inf)):
            if not (math.isfinite(value) and 0.0 <= value <= most):
                limit = "at most 1" if most == 1.0 else "finite"
                raise ValueError(f"{name} is {value}; wanted a number from 0, {limit}")
        return cls(variant, float(k1), float(b), float(delta))

    @property
    def curve(self) -> tuple[float, float]:
        """A and B of ``(f + A n) / (f + B n)``."""
        if self.variant == "bm25l":
            return self.delta, self.k1 + self.delta
        return 0.0, self.k1

    def idf(self, n_docs: int, df: int) -> float:
        """Inverse document frequency of a term in `df` of `n_docs` documents; 0 for df 0."""
        if df == 0:
            return 0.0
        odds = (n_docs - df + 0.5) / (df + 0.5)
        if self.variant in ("tantivy", "lucene"):
            return math.log(1.0 + odds)
        if self.variant == "robertson":
            return math.log(max(1.0, odds))
        if self.variant == "atire":
            return math.log(n_docs / df)
        return math.log((n_docs + 1) / (df + 0.5 if self.variant == "bm25l" else df))

    def factors(self, n_docs: int, df: I64) -> tuple[F64, F64, F64]:
        """idf, factor and extra of terms in `df` of `n_docs` documents, each (n,).

        Each distinct `df` meets the logarithm once and alone, so that a term's idf does not depend
        on which other terms are asked for.
        """
        distinct, inverse = np.unique(df, return_inverse=True)
        idf = np.array([self.idf(n_docs, int(d)) for d in distinct], np.float64)[inverse]
        scaled = self.variant not in ("lucene", "robertson")
        factor = idf * (self.k1 + 1.0) if scaled else idf
        extra = idf * self.delta if self.variant == "bm25+" else np.zeros(idf.size)
        return idf, factor, extra
