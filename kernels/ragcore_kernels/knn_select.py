"""The nearest of what a filter let through: scored exactly, in one fixed order of summation.

A filter knows a value only to within a bound. Per query there is a *floor*, the k greatest lower
bounds so far; what cannot reach their least is dropped, the rest waits in a buffer with its upper
bound. Exact scores are taken from the greatest upper bound down, until no other can count.

Values of all metrics are compared on the scale of inner products: the inner product itself, divided
by the norm of the vector for ``cosine``, less half its squared norm for ``l2``.

All that is known of a query is one row of a matrix, `state`: few arrays to hand on, and one stretch
of memory. Its columns are

* 0 what a query asks for, 1 to 3 errors per u, per v and always (infinite: no bound holds), 4 the
  norm of the query, 5 what is added to every value of a filter, 6 to 8 how many of floor, best and
  waiting are filled;
* from 9 on the floor (k), scores and rows of the best (k each), upper bounds and rows of what waits
  (`room` each). Rows of vectors are whole numbers, which float64 holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.knn_scores import COSINE, F32, F64, L2, score_of

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

LEAST, PER_U, PER_V, ALWAYS, NORM, SHIFT, IN_FLOOR, IN_BEST, IN_WAITING, HEAD = range(10)

LEAST_NORM, GREATEST_NORM = 1e-15, 1e15
"""Between these no product of norms leaves the normal float32; others are scored exactly."""

SLACK = 1e-6
"""16 roundings of float32: more than any bound here takes to be put together."""


def width(k: int) -> int:
    """Columns of `state` for the `k` nearest."""
    return HEAD + 3 * k + 2 * (4 * k + 128)


@inline
def _worse(a: float, i: float, b: float, j: float) -> bool:
    """Whether score `a` of row `i` stands behind score `b` of row `j`."""
    return a < b or (a == b and i > j)


@inline
def _sink(state: F64, q: int, k: int, n: int, score: float, row: float) -> None:
    """Replace the root of the heap of `n` of the best, the worst of them."""
    at, scores, rows = np.int64(0), HEAD + k, HEAD + 2 * k
    while True:
        low = 2 * at + 1
        if low >= n:
            break
        low_score, low_row = state[q, scores + low], state[q, rows + low]
        if low + 1 < n:
            next_score, next_row = state[q, scores + low + 1], state[q, rows + low + 1]
            if _worse(next_score, next_row, low_score, low_row):
                low += 1
                low_score, low_row = next_score, next_row
        if not _worse(low_score, low_row, score, row):
            break
        state[q, scores + at] = low_score
        state[q, rows + at] = low_row
        at = low
    state[q, scores + at] = score
    state[q, rows + at] = row


@inline
def keep_best(state: F64, q: int, k: int, score: float, row: float) -> None:
    """Offer a pair to the heap of the `k` best, the worst at its root."""
    n, scores, rows = np.int64(state[q, IN_BEST]), HEAD + k, HEAD + 2 * k
    if n == k:
        if _worse(state[q, scores], state[q, rows], score, row):
            _sink(state, q, k, n, score, row)
        return
    at = n
    while at > 0:
        up = (at - 1) >> 1
        if not _worse(score, row, state[q, scores + up], state[q, rows + up]):
            break
        state[q, scores + at] = state[q, scores + up]
        state[q, rows + at] = state[q, rows + up]
        at = up
    state[q, scores + at] = score
    state[q, rows + at] = row
    state[q, IN_BEST] = n + 1


@inline
def _raise_floor(state: F64, q: int, k: int, value: float) -> None:
    """Offer a lower bound to the heap of the `k` greatest, the least at its root."""
    n = np.int64(state[q, IN_FLOOR])
    at = np.int64(0)
    if n < k:
        at = n
        state[q, IN_FLOOR] = n + 1
        while at > 0:
            up = (at - 1) >> 1
            if value >= state[q, HEAD + up]:
                break
            state[q, HEAD + at] = state[q, HEAD + up]
            at = up
    elif value > state[q, HEAD]:
        while True:
            low = 2 * at + 1
            if low >= n:
                break
            if low + 1 < n and state[q, HEAD + low + 1] < state[q, HEAD + low]:
                low += 1
            if state[q, HEAD + low] >= value:
                break
            state[q, HEAD + at] = state[q, HEAD + low]
            at = low
    else:
        return
    state[q, HEAD + at] = value


@inline
def _set_least(limits: F32, state: F64, q: int, value: float) -> None:
    """Raise what a query asks for, and the float32 of it that the sieve compares with."""
    if value > state[q, LEAST]:
        state[q, LEAST] = value
        wanted = min(max(value - state[q, SHIFT], -1e38), 1e38)  # beyond all that a bound holds for
        limits[4 * q + 1] = np.float32(wanted - SLACK * abs(wanted) - state[q, ALWAYS])


@inline
def _value_of(score: float, q_norm: float, metric: int) -> float:
    """A score on the scale of inner products; rises with the score."""
    if metric == L2:
        return 0.5 * (score + q_norm * q_norm)
    if metric == COSINE:
        return score * q_norm
    return score


@inline
def _sink_upper(state: F64, q: int, upper: int, rows: int, n: int, at: int) -> None:
    """Mend the heap of `n` upper bounds, the greatest at its root, below place `at`."""
    value, row = state[q, upper + at], state[q, rows + at]
    while True:
        high = 2 * at + 1
        if high >= n:
            break
        if high + 1 < n and state[q, upper + high + 1] > state[q, upper + high]:
            high += 1
        if state[q, upper + high] <= value:
            break
        state[q, upper + at] = state[q, upper + high]
        state[q, rows + at] = state[q, rows + high]
        at = high
    state[q, upper + at] = value
    state[q, rows + at] = row


@inline
def settle(
    q: int, k: int, metric: int, vectors: F32, base: int, norms: F64, queries: F32, limits: F32,
    state: F64,
) -> None:  # fmt: skip
    """Score what waits exactly, greatest upper bound first, until the rest cannot count."""
    upper, rows = HEAD + 3 * k, HEAD + 3 * k + (state.shape[1] - HEAD - 3 * k) // 2
    n = np.int64(state[q, IN_WAITING])
    for at in range(n // 2 - 1, -1, -1):
        _sink_upper(state, q, upper, rows, n, at)
    while n > 0 and state[q, upper] >= state[q, LEAST]:
        row = np.int64(state[q, rows])
        _score_exactly(q, row, k, metric, vectors, base, norms, queries, limits, state)
        n -= 1
        state[q, upper] = state[q, upper + n]
        state[q, rows] = state[q, rows + n]
        _sink_upper(state, q, upper, rows, n, np.int64(0))
    state[q, IN_WAITING] = 0.0


@inline
def _score_exactly(
    q: int, row: int, k: int, metric: int, vectors: F32, base: int, norms: F64, queries: F32,
    limits: F32, state: F64,
) -> None:  # fmt: skip
    """Score a pair and offer it to the best."""
    i = row - base
    score = score_of(vectors, i, norms[i], queries, q, state[q, NORM], metric)
    keep_best(state, q, k, score, np.float64(row))
    if state[q, IN_BEST] == k and state[q, PER_U] < np.inf:
        _set_least(limits, state, q, _value_of(state[q, HEAD + k], state[q, NORM], metric))


@inline
def _compact(
    q: int, k: int, metric: int, vectors: F32, base: int, norms: F64, queries: F32, limits: F32,
    state: F64,
) -> None:  # fmt: skip
    """Drop what cannot count any more; score the rest where that frees less than half."""
    upper, room = HEAD + 3 * k, (state.shape[1] - HEAD - 3 * k) // 2
    kept = np.int64(0)
    for i in range(room):
        if state[q, upper + i] >= state[q, LEAST]:
            state[q, upper + kept] = state[q, upper + i]
            state[q, upper + room + kept] = state[q, upper + room + i]
            kept += 1
    state[q, IN_WAITING] = kept
    if 2 * kept > room:
        settle(q, k, metric, vectors, base, norms, queries, limits, state)


@inline
def offer(
    q: int, row: int, score: float, meta: F32, at: int, k: int, metric: int, vectors: F32,
    base: int, norms: F64, queries: F32, limits: F32, state: F64,
) -> None:  # fmt: skip
    """Take a pair that passed the sieve.

    Parameters
    ----------
    q, row : query; row of the whole matrix.
    score : of the tile.
    meta, at : of the vector: elements `at`, `at` + 32, ... are scale, u, v, h; an h of -inf says
        that no bound holds for it.
    k, metric : how many nearest; IP, COSINE or L2.
    vectors, base, norms : (n, d), (n,); their row 0 is row `base` of the whole matrix.
    queries : (m, d).
    limits, state : as the sieve reads them, (groups * 48,); (m, `width`), see the head of the file.
    """
    h = np.float64(meta[at + 96])
    if h == -np.inf or state[q, PER_U] == np.inf:
        _score_exactly(q, row, k, metric, vectors, base, norms, queries, limits, state)
        return
    value = np.float64(score) * np.float64(meta[at]) * np.float64(limits[4 * q])
    value += state[q, SHIFT]
    error = state[q, PER_U] * np.float64(meta[at + 32]) + state[q, ALWAYS]
    error += state[q, PER_V] * np.float64(meta[at + 64])
    high = value + error - h
    if high < state[q, LEAST]:
        return
    _raise_floor(state, q, k, value - error - h * (1.0 + 4.0 * SLACK))
    if state[q, IN_FLOOR] == k:
        _set_least(limits, state, q, state[q, HEAD])
    n, room = np.int64(state[q, IN_WAITING]), (state.shape[1] - HEAD - 3 * k) // 2
    state[q, HEAD + 3 * k + n] = high
    state[q, HEAD + 3 * k + room + n] = row
    state[q, IN_WAITING] = n + 1
    if n + 1 == room:
        _compact(q, k, metric, vectors, base, norms, queries, limits, state)


@kernel
def begin(norms: F64, limits: F32, state: F64) -> None:
    """Nothing found yet; no bound holds until a filter gives one.

    Parameters
    ----------
    norms : (m,), of the queries.
    limits, state : filled as `offer` reads them; queries beyond the last ask for too much.
    """
    limits[:] = np.float32(0.0)
    for q in range(limits.size // 4):
        limits[4 * q + 1] = np.float32(np.inf)
    for q in range(norms.size):
        state[q, :HEAD] = 0.0
        state[q, LEAST] = -np.inf
        state[q, PER_U] = np.inf
        state[q, ALWAYS] = 1e-34
        state[q, NORM] = norms[q]
        limits[4 * q + 1] = np.float32(-np.inf)


@kernel
def merge_best(state: F64, more: F64, k: int) -> None:
    """Bring the best of other vectors into the best.

    Parameters
    ----------
    state : (m, `width`), changed.
    more : the same of other vectors.
    k : how many nearest.
    """
    for q in range(state.shape[0]):
        for i in range(np.int64(more[q, IN_BEST])):
            keep_best(state, q, k, more[q, HEAD + k + i], more[q, HEAD + 2 * k + i])


@kernel
def finish(state: F64, k: int, scores: F64, rows: I32) -> None:
    """Sort the best: score descending, then row ascending.

    Parameters
    ----------
    state : (m, `width`), where the best of every query are `k`; changed.
    k : how many nearest.
    scores, rows : (m, k), filled.
    """
    for q in range(state.shape[0]):
        for last in range(k - 1, -1, -1):
            scores[q, last] = state[q, HEAD + k]
            rows[q, last] = np.int32(state[q, HEAD + 2 * k])
            _sink(state, q, k, last, state[q, HEAD + k + last], state[q, HEAD + 2 * k + last])
