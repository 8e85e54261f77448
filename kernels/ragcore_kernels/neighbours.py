"""Lists of approximate neighbours against the exact ones: hits, holes, ties and gaps, per query."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.knn_emit import borrowed
from ragcore_kernels.knn_scores import F32, F64, product, score_of

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]

ELIGIBLE, INELIGIBLE, DELETED = 0, 1, 2
"""What a row of the matrix may be."""

COUNTS = (
    "wanted", "listed", "missing", "duplicates", "ineligible", "deleted", "unknown", "hits_id",
    "hits_distance", "hits_distinct", "wanted_distinct", "tie_at_k",
)  # fmt: skip
"""Columns of what `compare_neighbours` counts; see there."""


@inline
def _same(x: F32, i: int, j: int) -> bool:
    """Whether two rows are equal, number by number."""
    for c in range(x.shape[1]):  # noqa: SIM110 - compiled
        if x[i, c] != x[j, c]:
            return False
    return True


@inline
def _score(vectors: F32, i: int, queries: F32, q: int, q_norm: float, metric: int) -> float:
    """Score of a pair as an exact search has it; NaN for a vector that is not finite."""
    d = np.int64(vectors.shape[1])
    flat = vectors.reshape(-1)
    norm = math.sqrt(product(flat, i * d, flat, i * d, d))
    if not norm < np.inf:
        return np.nan
    return score_of(vectors, i, norm, queries, q, q_norm, metric)


@inline
def _distinct(vectors: F32, rows: I64, scores: F64, firsts: I64, begin: int, end: int) -> int:
    """Distinct vectors among `rows[begin:end]`, whose scores do not rise."""
    found = np.int64(0)
    run = np.int64(0)
    for i in range(begin, end):
        if i == begin or scores[i] != scores[i - 1]:
            run = np.int64(0)
        new = True
        for j in range(run):
            if _same(vectors, rows[i], firsts[j]):
                new = False
                break
        if new:
            firsts[run] = rows[i]
            run += 1
            found += 1
    return found


@inline
def _insert(rows: I64, scores: F64, n: int, row: int, score: float) -> None:
    """Put a pair into the first `n` by score, descending."""
    at = np.int64(n)
    while at > 0 and scores[at - 1] < score:
        scores[at] = scores[at - 1]
        rows[at] = rows[at - 1]
        at -= 1
    scores[at] = score
    rows[at] = row


@kernel
def compare_neighbours(
    vectors: F32, place: I64, queries: F32, metric: int, scored: int, eps: float, k: int,
    exact_rows: I32, exact_scores: F64, offsets: I64, listed: I64, padding: int, status: U8,
    begin: int, end: int, in_exact: I64, in_list: I64, rows: I64, scores: F64, firsts: I64,
    counts: I64, gaps: F64,
) -> None:  # fmt: skip
    """Compare the list of each query with the exact neighbours.

    Parameters
    ----------
    vectors, queries : (v, d), (m, d) float32; empty where `scored` is 0.
    place : (n,), where in `vectors` a row of the matrix is, if it is met; (0,) if all are there.
    metric : IP, COSINE or L2.
    scored : 1 if scores can be taken, 0 if ids are all there is.
    eps : ties are scores within ``eps * |s_k|`` of the exact k-th score s_k.
    k : entries of a list that count, padding left out.
    exact_rows, exact_scores : (m, K), K >= k, best first; rows below 0 are none.
    offsets, listed : (m + 1,), rows of the lists.
    padding : entry that is none.
    status : (n,), ELIGIBLE, INELIGIBLE or DELETED.
    begin, end : queries to look at.
    in_exact, in_list : (n,) room, filled beforehand with -1.
    rows, scores, firsts : (k,) room.
    counts : (m, 12), filled, the columns of `COUNTS`: exact neighbours that there are, at most k;
        entries that are no padding; exact neighbours beyond the distinct rows listed; entries that
        repeat a row; rows not eligible; deleted; no row of the matrix; hits by id; by distance; of
        distinct vectors; their number; whether an eligible vector beyond the k-th ties with it, as
        far as the exact rows or the list show one.
    gaps : (m,), filled: mean of exact score less listed score over the ranks that the list has, its
        eligible rows sorted by score; NaN where there is none.

    Notes
    -----
    A hit by distance has a score of at least ``s_k - eps |s_k|``. Distinct vectors are those of the
    exact list above the tie with s_k, each hit where listed, and as many of the tie as the exact
    list has, hit by any of the tie.
    """
    vectors, queries, place = borrowed(vectors), borrowed(queries), borrowed(place)
    d = np.int64(queries.shape[1])
    n = np.int64(status.size)
    flat = queries.reshape(-1)
    for q in range(begin, end):
        counts[q, :] = 0
        gaps[q] = np.nan
        wanted = np.int64(0)
        while wanted < k and exact_rows[q, wanted] >= 0:
            in_exact[exact_rows[q, wanted]] = q
            wanted += 1
        q_norm, least, above = 0.0, np.inf, np.inf
        if scored and wanted:
            q_norm = math.sqrt(product(flat, q * d, flat, q * d, d))
            s_k = exact_scores[q, wanted - 1]
            least = s_k - eps * abs(s_k)
            above = s_k + eps * abs(s_k)
        entries, distinct, hits = np.int64(0), np.int64(0), np.int64(0)
        near, held, total = np.int64(0), np.int64(0), 0.0
        beyond = False
        for at in range(offsets[q], offsets[q + 1]):
            row = listed[at]
            if row == padding:
                continue
            if entries == k:
                break
            entries += 1
            if row < 0 or row >= n:
                counts[q, 6] += 1
                continue
            if in_list[row] == q:
                counts[q, 3] += 1
                continue
            in_list[row] = q
            distinct += 1
            if status[row] != ELIGIBLE:
                counts[q, 4 if status[row] == INELIGIBLE else 5] += 1
                continue
            exact = in_exact[row] == q
            hits += exact
            if scored and wanted:
                at_row = place[row] if place.size else row
                score = _score(vectors, at_row, queries, q, q_norm, metric)
                if score != score:  # never found by an exact search
                    counts[q, 4] += 1
                    continue
                if score >= least:
                    near += 1
                    beyond = beyond or not exact
                _insert(rows, scores, held, at_row, score)
                held += 1
        counts[q, 0] = wanted
        counts[q, 1] = entries
        counts[q, 2] = max(wanted - distinct, np.int64(0))
        counts[q, 7] = hits
        if not (scored and wanted):
            continue
        counts[q, 8] = min(near, wanted)
        ranks = min(held, wanted)
        for i in range(ranks):
            total += exact_scores[q, i] - scores[i]
        if ranks:
            gaps[q] = total / ranks
        middle = np.int64(0)
        while middle < held and scores[middle] > above:
            middle += 1
        tied = _distinct(vectors, rows, scores, firsts, middle, near)
        found = _distinct(vectors, rows, scores, firsts, np.int64(0), middle)
        for i in range(wanted):
            row = np.int64(exact_rows[q, i])
            rows[i] = place[row] if place.size else row
            scores[i] = exact_scores[q, i]
        middle = np.int64(0)
        while middle < wanted and scores[middle] > above:
            middle += 1
        of_tie = _distinct(vectors, rows, scores, firsts, middle, wanted)
        counts[q, 9] = found + min(tied, of_tie)
        counts[q, 10] = of_tie + _distinct(vectors, rows, scores, firsts, np.int64(0), middle)
        further = wanted < exact_rows.shape[1] and exact_rows[q, wanted] >= 0
        if further and exact_scores[q, wanted] >= least:
            beyond = True
        counts[q, 11] = beyond


@kernel
def find_selves(
    vectors: F32, place: I64, nodes: I64, offsets: I64, listed: I64, padding: int, n: int,
    scored: int, out: U8,
) -> None:  # fmt: skip
    """Whether the search for each node's own vector finds it.

    Parameters
    ----------
    vectors, place : as `compare_neighbours` takes them; empty where `scored` is 0.
    nodes : (m,), rows searched for.
    offsets, listed : (m + 1,), rows of the lists.
    padding : entry that is none.
    n : rows of the matrix; other entries are none either.
    scored : 1 if vectors can be compared, 0 if ids are all there is.
    out : (m,), filled: 2 if it found itself, 1 if it found an equal vector, else 0.
    """
    vectors, place = borrowed(vectors), borrowed(place)
    for i in range(nodes.size):
        out[i] = 0
        for at in range(offsets[i], offsets[i + 1]):
            row = listed[at]
            if row == nodes[i]:
                out[i] = 2
                break
            if row == padding or row < 0 or row >= n or not scored:
                continue
            a, b = (place[row], place[nodes[i]]) if place.size else (row, nodes[i])
            if _same(vectors, a, b):
                out[i] = 1
