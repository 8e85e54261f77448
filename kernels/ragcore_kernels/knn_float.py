"""The filter of exact search in float32: vectors are packed as they are met, none is kept."""

from __future__ import annotations

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.knn_emit import borrowed, lowest_bit
from ragcore_kernels.knn_scores import COSINE, F32, F64, L2, score_of
from ragcore_kernels.knn_select import (
    ALWAYS,
    GREATEST_NORM,
    HEAD,
    I32,
    I64,
    IN_BEST,
    LEAST_NORM,
    NORM,
    PER_U,
    PER_V,
    SLACK,
    keep_best,
    offer,
    settle,
)
from ragcore_kernels.knn_tiles import (
    GROUP,
    LANES,
    SQUARE,
    sieve,
    tile_float,
    transpose,
)

BLOCKS = 8
"""Tiles of vectors that are packed at a time: together they fit a second-level cache."""


@inline
def _describe(meta: F32, at: int, norm: float, metric: int) -> None:
    """Write scale, u, v and h of a vector whose inner products are those of float32."""
    wild = norm != 0.0 and not (LEAST_NORM <= norm <= GREATEST_NORM)
    scale, u, h = 1.0, norm, 0.0
    if metric == COSINE:
        scale = 1.0 / norm if norm > 0.0 and not wild else 0.0
        u = 1.0 if norm > 0.0 else 0.0
    if metric == L2:
        h = 0.5 * norm * norm * (1.0 - SLACK)
    if wild:
        u, h = 0.0, -np.inf
    meta[at] = np.float32(scale)
    meta[at + LANES] = np.float32(u * (1.0 + SLACK))
    meta[at + 2 * LANES] = np.float32(0.0)
    meta[at + 3 * LANES] = np.float32(h)


@inline
def _pack(vectors: F32, rows: I32, start: int, n: int, packed: F32, at: int, starts: I64) -> None:
    """Lay `n` vectors side by side from `at` on; the other lanes are copies, and do not count."""
    d = np.int64(vectors.shape[1])
    flat = vectors.reshape(-1)
    whole = d - d % SQUARE
    for first in range(0, LANES, SQUARE):
        for i in range(SQUARE):
            starts[i] = rows[start + min(first + i, n - 1)] * d
        for j in range(0, whole, SQUARE):
            transpose(flat, starts, j, LANES * d, packed, at + j * LANES + first)
        for j in range(whole, d):
            for i in range(SQUARE):
                packed[at + j * LANES + first + i] = flat[starts[i] + j]


@kernel
def scan_float(
    vectors: F32, base: int, norms: F64, rows: I32, queries: F32, packed_queries: F32,
    metric: int, packed: F32, meta: F32, scores: F32, masks: I64, starts: I64, limits: F32,
    state: F64, k: int,
) -> None:  # fmt: skip
    """Offer vectors to all queries, by their inner products in float32.

    Parameters
    ----------
    vectors, norms : (n, d) float32, (n,); row 0 is row `base` of the whole matrix.
    base : see `vectors`.
    rows : rows to look at, ascending; all finite.
    queries : (m, d) float32, finite.
    packed_queries : (groups * d * GROUP,) as `pack_queries` makes it.
    metric : IP, COSINE or L2.
    packed, meta, scores, masks, starts : room for BLOCKS tiles of vectors, (BLOCKS * d * LANES,)
        and (BLOCKS * 4 * LANES,); (GROUP * LANES,); (GROUP,); (SQUARE,).
    limits, state, k : as `offer` says.
    """
    d, m = np.int64(vectors.shape[1]), np.int64(queries.shape[0])
    groups = (m + GROUP - 1) // GROUP
    vectors, norms, queries = borrowed(vectors), borrowed(norms), borrowed(queries)
    meta, limits, state = borrowed(meta), borrowed(limits), borrowed(state)
    for start in range(0, rows.size, BLOCKS * LANES):
        n = min(rows.size - start, BLOCKS * LANES)
        blocks = (n + LANES - 1) // LANES
        for b in range(blocks):
            filled = min(n - b * LANES, LANES)
            _pack(vectors, rows, start + b * LANES, filled, packed, b * d * LANES, starts)
            for lane in range(filled):
                norm = norms[rows[start + b * LANES + lane]]
                _describe(meta, b * 4 * LANES + lane, norm, metric)
        for g in range(groups):
            for b in range(blocks):
                tile_float(packed, b * d * LANES, packed_queries, g * d * GROUP, d, scores)
                where = b * 4 * LANES
                filled = min(n - b * LANES, LANES)
                alive = (np.int64(1) << filled) - 1
                if sieve(scores, meta, where, limits, g * 4 * GROUP, masks) & alive == 0:
                    continue
                for i in range(min(m - g * GROUP, GROUP)):
                    mask = masks[i] & alive
                    while mask:
                        lane = lowest_bit(mask)
                        mask &= mask - 1
                        offer(
                            g * GROUP + i, base + rows[start + b * LANES + lane],
                            scores[i * LANES + lane], meta, where + lane, k, metric,
                            vectors, base, norms, queries, limits, state,
                        )  # fmt: skip
    for q in range(m):
        settle(q, k, metric, vectors, base, norms, queries, limits, state)


@kernel
def pack_queries(queries: F32, out: F32) -> None:
    """Lay queries side by side in groups.

    Parameters
    ----------
    queries : (m, d) float32.
    out : (groups * d * GROUP,) float32, filled; queries beyond the last are zero.
    """
    m, d = queries.shape
    out[:] = np.float32(0.0)
    for q in range(m):
        at = q // GROUP * d * GROUP + q % GROUP
        for j in range(d):
            out[at + j * GROUP] = queries[q, j]


@kernel
def bounds_float(d: int, metric: int, limits: F32, state: F64) -> None:
    """Bounds of what float32 adds to an inner product.

    A sum of d products in any order, fused or not, errs by at most ``g |q| |x|`` with
    ``g = (d + 2) u / (1 - (d + 2) u)`` and u = 2**-24.

    Parameters
    ----------
    d : dimensions.
    metric : IP, COSINE or L2.
    limits, state : as `begin` leaves them; bounds are filled in where one holds.

    References
    ----------
    Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
    """
    share = (d + 2.0) * 2.0**-24
    for q in range(state.shape[0]):
        norm = state[q, NORM]
        limits[4 * q] = np.float32(1.0)
        if LEAST_NORM <= norm <= GREATEST_NORM and share < 0.25:
            noise = (d + 8.0) * 2.0**-50
            state[q, PER_U] = norm * (share / (1.0 - share) + SLACK + noise)
            state[q, PER_V] = 0.0
            if metric == L2:
                state[q, ALWAYS] += noise * norm * norm
            limits[4 * q + 2] = np.float32(state[q, PER_U] * (1.0 + SLACK))


@kernel
def scan_exactly(
    vectors: F32, base: int, norms: F64, rows: I32, queries: F32, metric: int, state: F64, k: int
) -> None:  # fmt: skip
    """Score every vector for every query: for a few queries no filter pays.

    Parameters
    ----------
    vectors, norms : (n, d) float32, (n,); row 0 is row `base` of the whole matrix.
    base : see `vectors`.
    rows : rows to look at, ascending; all finite.
    queries : (m, d) float32, finite.
    metric : IP, COSINE or L2.
    state, k : as `offer` says; bounds are not read.
    """
    vectors, norms, queries = borrowed(vectors), borrowed(norms), borrowed(queries)
    state = borrowed(state)
    for q in range(queries.shape[0]):
        q_norm = state[q, NORM]
        worst = -np.inf
        for i in rows:
            score = score_of(vectors, i, norms[i], queries, q, q_norm, metric)
            if score >= worst:
                keep_best(state, q, k, score, np.float64(base + i))
                if state[q, IN_BEST] == k:
                    worst = state[q, HEAD + k]
