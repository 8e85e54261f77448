"""The nearest of what a filter let through: scored exactly, in one fixed order of summation.

A filter knows a value only to within a bound. Per query there is a *floor*, the k greatest lower
bounds so far; what cannot reach their least is dropped, the rest waits in a buffer with its upper
bound. Exact scores are taken from the greatest upper bound down, until no other can count.

Values of all metrics are compared on the scale of inner products: the inner product itself, divided
by the norm of the vector for ``cosine``, less half its squared norm for ``l2``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

IP, COSINE, L2 = 0, 1, 2

LEAST_NORM, GREATEST_NORM = 1e-15, 1e15
"""Between these no product of norms leaves the normal float32; others are scored exactly."""

SLACK = 1e-6
"""16 roundings of float32: more than any bound here takes to be put together."""


@inline
def product(x: F32, i: int, y: F32, j: int) -> float:
    """``x[i] . y[j]`` in float64: products are exact, summed in eight lanes (`sum_eight`)."""
    d = x.shape[1]
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = d - d % 8
    for c in range(0, whole, 8):
        a0 += np.float64(x[i, c]) * np.float64(y[j, c])
        a1 += np.float64(x[i, c + 1]) * np.float64(y[j, c + 1])
        a2 += np.float64(x[i, c + 2]) * np.float64(y[j, c + 2])
        a3 += np.float64(x[i, c + 3]) * np.float64(y[j, c + 3])
        a4 += np.float64(x[i, c + 4]) * np.float64(y[j, c + 4])
        a5 += np.float64(x[i, c + 5]) * np.float64(y[j, c + 5])
        a6 += np.float64(x[i, c + 6]) * np.float64(y[j, c + 6])
        a7 += np.float64(x[i, c + 7]) * np.float64(y[j, c + 7])
    if whole < d:
        a0 += np.float64(x[i, whole]) * np.float64(y[j, whole])
    if whole + 1 < d:
        a1 += np.float64(x[i, whole + 1]) * np.float64(y[j, whole + 1])
    if whole + 2 < d:
        a2 += np.float64(x[i, whole + 2]) * np.float64(y[j, whole + 2])
    if whole + 3 < d:
        a3 += np.float64(x[i, whole + 3]) * np.float64(y[j, whole + 3])
    if whole + 4 < d:
        a4 += np.float64(x[i, whole + 4]) * np.float64(y[j, whole + 4])
    if whole + 5 < d:
        a5 += np.float64(x[i, whole + 5]) * np.float64(y[j, whole + 5])
    if whole + 6 < d:
        a6 += np.float64(x[i, whole + 6]) * np.float64(y[j, whole + 6])
    return sum_eight(a0, a1, a2, a3, a4, a5, a6, a7)


@inline
def squared_distance(x: F32, i: int, y: F32, j: int) -> float:
    """``|x[i] - y[j]|**2`` in float64: lane l sums dimensions l, l + 8, ... in their order."""
    d = x.shape[1]
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = d - d % 8
    for c in range(0, whole, 8):
        a0 += _square(x, i, y, j, c)
        a1 += _square(x, i, y, j, c + 1)
        a2 += _square(x, i, y, j, c + 2)
        a3 += _square(x, i, y, j, c + 3)
        a4 += _square(x, i, y, j, c + 4)
        a5 += _square(x, i, y, j, c + 5)
        a6 += _square(x, i, y, j, c + 6)
        a7 += _square(x, i, y, j, c + 7)
    if whole < d:
        a0 += _square(x, i, y, j, whole)
    if whole + 1 < d:
        a1 += _square(x, i, y, j, whole + 1)
    if whole + 2 < d:
        a2 += _square(x, i, y, j, whole + 2)
    if whole + 3 < d:
        a3 += _square(x, i, y, j, whole + 3)
    if whole + 4 < d:
        a4 += _square(x, i, y, j, whole + 4)
    if whole + 5 < d:
        a5 += _square(x, i, y, j, whole + 5)
    if whole + 6 < d:
        a6 += _square(x, i, y, j, whole + 6)
    return sum_eight(a0, a1, a2, a3, a4, a5, a6, a7)


@inline
def _square(x: F32, i: int, y: F32, j: int, c: int) -> float:
    gap = np.float64(x[i, c]) - np.float64(y[j, c])
    return gap * gap


@inline
def sum_eight(
    a0: float, a1: float, a2: float, a3: float, a4: float, a5: float, a6: float, a7: float
) -> float:
    """Sum of eight lanes, halves first: the last step of the one fixed order of summation."""
    return ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))


@inline
def score_of(
    vectors: F32, i: int, norm: float, queries: F32, q: int, q_norm: float, metric: int
) -> float:
    """Score of one pair, greater is nearer; a zero vector or query has cosine 0."""
    if metric == L2:
        return 0.0 - squared_distance(vectors, i, queries, q)
    dot = product(vectors, i, queries, q)
    if metric == IP:
        return dot
    if norm == 0.0 or q_norm == 0.0:
        return 0.0
    return dot / (q_norm * norm)


@inline
def _worse(a: float, i: int, b: float, j: int) -> bool:
    """Whether score `a` of row `i` stands behind score `b` of row `j`."""
    return a < b or (a == b and i > j)


@inline
def keep_best(scores: F64, rows: I32, n: int, k: int, score: float, row: int) -> int:
    """Offer a pair to a heap of the `k` best, the worst at its root; returns its new size."""
    if n < k:
        at = n
        n += 1
        while at > 0:
            up = (at - 1) >> 1
            if not _worse(score, row, scores[up], rows[up]):
                break
            scores[at] = scores[up]
            rows[at] = rows[up]
            at = up
    else:
        if not _worse(scores[0], rows[0], score, row):
            return n
        at = _sink(scores, rows, n, score, row)
    scores[at] = score
    rows[at] = row
    return n


@inline
def _sink(scores: F64, rows: I32, n: int, score: float, row: int) -> int:
    """Place for a pair that replaces the root of a heap of `n`; children move up."""
    at = 0
    while True:
        low = 2 * at + 1
        if low >= n:
            return at
        if low + 1 < n and _worse(scores[low + 1], rows[low + 1], scores[low], rows[low]):
            low += 1
        if not _worse(scores[low], rows[low], score, row):
            return at
        scores[at] = scores[low]
        rows[at] = rows[low]
        at = low


@inline
def _raise_floor(floor: F64, n: int, k: int, value: float) -> int:
    """Offer a lower bound to a heap of the `k` greatest, the least at its root."""
    if n < k:
        at = n
        n += 1
        while at > 0:
            up = (at - 1) >> 1
            if value >= floor[up]:
                break
            floor[at] = floor[up]
            at = up
        floor[at] = value
        return n
    if value <= floor[0]:
        return n
    at = 0
    while True:
        low = 2 * at + 1
        if low >= n:
            break
        if low + 1 < n and floor[low + 1] < floor[low]:
            low += 1
        if floor[low] >= value:
            break
        floor[at] = floor[low]
        at = low
    floor[at] = value
    return n


@inline
def _set_least(limits: F32, least: F64, q: int, value: float) -> None:
    """Raise what a query asks for, and the float32 of it that the sieve compares with."""
    if value > least[q]:
        least[q] = value
        limits[4 * q + 1] = np.float32(value - SLACK * abs(value) - 1e-35)


@inline
def _value_of(score: float, q_norm: float, metric: int) -> float:
    """A score on the scale of inner products; rises with the score."""
    if metric == L2:
        return 0.5 * (score + q_norm * q_norm)
    if metric == COSINE:
        return score * q_norm
    return score


@inline
def _pop_upper(upper: F64, rows: I32, n: int) -> None:
    """Move the root of a heap with the greatest upper bound first to its end; n > 0."""
    last = n - 1
    top, top_row = upper[0], rows[0]
    value, row = upper[last], rows[last]
    _sink_upper(upper, rows, last, np.int64(0), value, row)
    upper[last] = top
    rows[last] = top_row


@inline
def _sink_upper(upper: F64, rows: I32, n: int, at: int, value: float, row: int) -> None:
    while True:
        high = 2 * at + 1
        if high >= n:
            break
        if high + 1 < n and upper[high + 1] > upper[high]:
            high += 1
        if upper[high] <= value:
            break
        upper[at] = upper[high]
        rows[at] = rows[high]
        at = high
    upper[at] = value
    rows[at] = row


State = tuple[F32, F64, F64, F64, F64, I32, F64, I32, I64]
"""limits, least, bounds, floor, upper, waiting, best_scores, best_rows, sizes; see `offer`."""


@inline
def settle(
    q: int, k: int, metric: int, vectors: F32, base: int, norms: F64, queries: F32, state: State
) -> None:
    """Score what waits exactly, greatest upper bound first, until the rest cannot count."""
    _, least, _, _, upper, waiting, _, _, sizes = state
    n = sizes[q, 1]
    for at in range(n // 2 - 1, -1, -1):
        _sink_upper(upper[q], waiting[q], n, at, upper[q, at], waiting[q, at])
    while n > 0 and upper[q, 0] >= least[q]:
        row = waiting[q, 0]
        _score_exactly(q, row, k, metric, vectors, base, norms, queries, state)
        _pop_upper(upper[q], waiting[q], n)
        n -= 1
    sizes[q, 1] = 0


@inline
def _score_exactly(
    q: int, row: int, k: int, metric: int, vectors: F32, base: int, norms: F64, queries: F32,
    state: State,
) -> None:  # fmt: skip
    limits, least, bounds, _, _, _, best_scores, best_rows, sizes = state
    i = row - base
    score = score_of(vectors, i, norms[i], queries, q, bounds[q, 3], metric)
    sizes[q, 2] = keep_best(best_scores[q], best_rows[q], sizes[q, 2], k, score, row)
    if sizes[q, 2] == k and bounds[q, 0] < np.inf:
        _set_least(limits, least, q, _value_of(best_scores[q, 0], bounds[q, 3], metric))


@inline
def _compact(
    q: int, k: int, metric: int, vectors: F32, base: int, norms: F64, queries: F32, state: State
) -> None:
    """Drop what cannot count any more; score the rest where that frees less than half."""
    _, least, _, _, upper, waiting, _, _, sizes = state
    kept = 0
    for i in range(sizes[q, 1]):
        if upper[q, i] >= least[q]:
            upper[q, kept] = upper[q, i]
            waiting[q, kept] = waiting[q, i]
            kept += 1
    sizes[q, 1] = kept
    if 2 * kept > upper.shape[1]:
        settle(q, k, metric, vectors, base, norms, queries, state)


@inline
def offer(
    q: int, row: int, score: float, meta: F32, at: int, k: int, metric: int, vectors: F32,
    base: int, norms: F64, queries: F32, state: State,
) -> None:  # fmt: skip
    """Take a pair that passed the sieve.

    Parameters
    ----------
    q, row : query; row of the whole matrix.
    score : of the tile.
    meta, at : of the vector: elements `at`, `at` + 32, ... are scale, u, v, h; an h of -inf says
        that no bound holds for it.
    state : limits (groups * 48,) as the sieve reads them; least (m,), what a query asks for;
        bounds (m, 4): errors per u, per v, always, and the norm of the query, where an infinite
        error says that no bound holds; floor (m, k); upper, waiting (m, c); best_scores, best_rows
        (m, k); sizes (m, 3), how many of floor, waiting and best are filled.
    """
    limits, least, bounds, floor, upper, waiting, _, _, sizes = state
    h = np.float64(meta[at + 96])
    if h == -np.inf or bounds[q, 0] == np.inf:
        _score_exactly(q, row, k, metric, vectors, base, norms, queries, state)
        return
    value = np.float64(score) * np.float64(meta[at]) * np.float64(limits[4 * q])
    error = bounds[q, 0] * np.float64(meta[at + 32]) + bounds[q, 1] * np.float64(meta[at + 64])
    error += bounds[q, 2]
    high = value + error - h
    if high < least[q]:
        return
    sizes[q, 0] = _raise_floor(floor[q], sizes[q, 0], k, value - error - h * (1.0 + 4.0 * SLACK))
    if sizes[q, 0] == k:
        _set_least(limits, least, q, floor[q, 0])
    n = sizes[q, 1]
    upper[q, n] = high
    waiting[q, n] = row
    sizes[q, 1] = n + 1
    if n + 1 == upper.shape[1]:
        _compact(q, k, metric, vectors, base, norms, queries, state)


@kernel
def finish(best_scores: F64, best_rows: I32, sizes: I64) -> None:
    """Sort the heaps of the best: score descending, then row ascending; -1 beyond.

    Parameters
    ----------
    best_scores, best_rows : (m, k); -inf and -1 are put where nothing was found.
    sizes : (m, 3); the third column says how many were found.
    """
    for q in range(sizes.shape[0]):
        n = sizes[q, 2]
        best_scores[q, n:] = -np.inf
        best_rows[q, n:] = -1
        for last in range(n - 1, 0, -1):
            score, row = best_scores[q, last], best_rows[q, last]
            top, top_row = best_scores[q, 0], best_rows[q, 0]
            at = _sink(best_scores[q], best_rows[q], last, score, row)
            best_scores[q, at] = score
            best_rows[q, at] = row
            best_scores[q, last] = top
            best_rows[q, last] = top_row


@kernel
def merge_best(
    scores: F64, rows: I32, sizes: I64, more_scores: F64, more_rows: I32, more_sizes: I64
) -> None:
    """Bring the best of other rows into the heaps of the best.

    Parameters
    ----------
    scores, rows, sizes : (m, k), (m, k), (m, 3) as `finish` takes them; changed.
    more_scores, more_rows, more_sizes : the same of other rows.
    """
    k = np.int64(scores.shape[1])
    for q in range(sizes.shape[0]):
        for i in range(more_sizes[q, 2]):
            sizes[q, 2] = keep_best(
                scores[q], rows[q], sizes[q, 2], k, more_scores[q, i], more_rows[q, i]
            )


@kernel
def survey(vectors: F32, out: F64) -> None:
    """Norms of vectors, in the one fixed order of summation; NaN where not finite.

    Parameters
    ----------
    vectors : (n, d) float32.
    out : (n,), filled.
    """
    for i in range(vectors.shape[0]):
        square = product(vectors, i, vectors, i)
        out[i] = math.sqrt(square) if square < np.inf else np.nan
