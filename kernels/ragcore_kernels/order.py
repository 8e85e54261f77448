"""The one order of a ranking, for the rankings that `ranking` cannot place by counting.

Score descending as float64, then id descending byte-wise: trec_eval's rule, and every measure
uses it. Here is the sort itself, and the rankings that take it: those with repeated ids that a
policy mends, with the case's own document to leave out, or with more ties than counting can bear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import inline, kernel, load_i32
from ragcore_kernels.ids import greater_id, hash_id, locate, same_id
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.ranking import (
    BY_SCORE,
    DROPPED,
    FINE,
    N_HITS,
    N_JUDGED_RET,
    N_RET,
    PROBLEM,
)
from ragcore_kernels.rows import load_rows, power_above, row_at

DUP_ERROR, DUP_FIRST, DUP_LAST, DUP_MAX = range(4)
"""What to do with a document that stands twice in one ranking."""

_ONE = np.uint64(1)


@inline
def before(
    table: I64, segments: I64, first: int, last: int, scores: F64, by_score: bool, i: int, j: int
) -> bool:
    """Whether row i of a ranking comes before its row j."""
    if not by_score:
        return i < j
    if scores[i] != scores[j]:
        return scores[i] > scores[j]
    piece, row = row_at(segments, first, last, i)
    a, a_size = locate(table, piece, row)
    piece, row = row_at(segments, first, last, j)
    b, b_size = locate(table, piece, row)
    return greater_id(a, a_size, b, b_size)


@inline
def sort_rows(
    table: I64,
    segments: I64,
    first: int,
    last: int,
    scores: F64,
    by_score: bool,
    order: I64,
    base: int,
    n: int,
    spare: I64,
) -> None:
    """Merge sort of the rows ``order[base:base + n]`` of one ranking, best first."""
    width = 1
    while width < n:
        start = 0
        while start < n:
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for at in range(start, stop):
                take = i < middle
                if take and j < stop:
                    take = not before(
                        table, segments, first, last, scores, by_score,
                        order[base + j], order[base + i],
                    )  # fmt: skip
                if take:
                    spare[at] = order[base + i]
                    i += 1
                else:
                    spare[at] = order[base + j]
                    j += 1
            start = stop
        for at in range(n):
            order[base + at] = spare[at]
        width *= 2


@kernel
def sort_cases(
    run: I64, run_scores: I64, segments: I64, offsets: I64, by_score: bool, out: I64
) -> None:
    """Ranking order of every case.

    Parameters
    ----------
    run, run_scores, segments, offsets : as `ranking.find_hits` takes them; no NaN.
    by_score : else the recorded order.
    out : (n_rows,), filled: per case, its rows (counted from 0 inside the case), best first.
    """
    base = 0
    for c in range(offsets.size - 1):
        n = 0
        for s in range(offsets[c], offsets[c + 1]):
            n += segments[s, 2]
        hashes, scores = np.empty(n, np.uint64), np.zeros(n, np.float64)
        load_rows(run, run_scores, segments, offsets[c], offsets[c + 1], hashes, scores)
        for i in range(n):
            out[base + i] = i
        sort_rows(
            run, segments, offsets[c], offsets[c + 1], scores, by_score, out, base, n,
            np.empty(n, np.int64),
        )  # fmt: skip
        base += n


@inline
def survivors(
    run: I64,
    segments: I64,
    first: int,
    last: int,
    n: int,
    hashes: Any,
    scores: F64,
    policy: int,
    own: I64,
    t: int,
    slots: I64,
    kept: I64,
    place: I64,
) -> int:
    """Rows of ranking `t` that `policy` and `own` leave, as `tidy` takes them; their number.

    Lists them in `kept`, marks them by 1 in `place`, and makes `slots` a hash table of them.
    """
    for at in range(slots.size):
        slots[at] = -1
    mask = np.uint64(slots.size - 1)
    for i in range(n):
        place[i] = 0
    for i in range(n):
        piece, row = row_at(segments, first, last, i)
        a, size = locate(run, piece, row)
        if own.shape[0] and same_id(a, size, own[t, 0], own[t, 1]):
            continue
        at = hashes[i] & mask
        while slots[at] >= 0:
            j = slots[at]
            if hashes[j] == hashes[i]:
                piece, row = row_at(segments, first, last, j)
                b, b_size = locate(run, piece, row)
                if same_id(a, size, b, b_size):
                    break
            at = (at + _ONE) & mask
        j = slots[at]
        if j >= 0 and not (policy == DUP_LAST or (policy == DUP_MAX and scores[i] > scores[j])):
            continue
        if j >= 0:
            place[j] = 0
        slots[at] = i
        place[i] = 1
    n_kept = 0
    for i in range(n):
        if place[i]:
            kept[n_kept] = i
            n_kept += 1
    return n_kept


@kernel
def tidy(
    run: I64,
    run_scores: I64,
    run_segments: I64,
    run_offsets: I64,
    labels: I64,
    label_grades: I64,
    label_segments: I64,
    label_offsets: I64,
    label_of: I64,
    which: I64,
    order: int,
    policy: int,
    own: I64,
    hit_offsets: I64,
    hit_ranks: Any,
    hit_grades: Any,
    stats: I64,
) -> None:
    """Hits of the rankings `which`, after dropping rows and with a sort.

    Parameters
    ----------
    which : (n,), the rankings to do; `ranking.find_hits` has seen them all.
    policy : which occurrence of a repeated id stays, at its own place: `DUP_FIRST`, `DUP_LAST`
        or `DUP_MAX` (of equal scores the first); `DUP_ERROR` where none is repeated.
    own : (n_rankings, 2), address and length of an id to leave out of each ranking; (0, 2) to
        leave none out.
    The rest : as `ranking.find_hits` takes them; hits and stats of `which` are written anew.
    """
    for w in range(which.size):
        t = which[w]
        first, last = run_offsets[t], run_offsets[t + 1]
        n = stats[t, N_RET]
        hashes, scores = np.empty(n, np.uint64), np.zeros(n, np.float64)
        load_rows(run, run_scores, run_segments, first, last, hashes, scores)
        slots = np.empty(power_above(2 * n + 2), np.int64)
        mask = np.uint64(slots.size - 1)
        kept = np.empty(n, np.int64)  # rows that stay, then in ranking order
        place = np.zeros(n, np.int64)  # 1 = stays, later its rank
        n_kept = survivors(
            run, run_segments, first, last, n, hashes, scores, policy, own, t, slots, kept, place
        )
        sort_rows(
            run, run_segments, first, last, scores, order == BY_SCORE, kept, 0, n_kept,
            np.empty(n_kept, np.int64),
        )  # fmt: skip
        for r in range(n_kept):
            place[kept[r]] = r + 1

        c, base, n_hits, n_solid = label_of[t], hit_offsets[t], 0, 0
        label_first, label_last = np.int64(0), np.int64(0)
        if c >= 0:
            label_first, label_last = label_offsets[c], label_offsets[c + 1]
        for s in range(label_first, label_last):
            piece, start = label_segments[s, 0], label_segments[s, 1]
            for row in range(start, start + label_segments[s, 2]):
                a, size = locate(labels, piece, row)
                at = hash_id(a, size) & mask
                while slots[at] >= 0:
                    i = slots[at]
                    run_piece, run_row = row_at(run_segments, first, last, i)
                    b, b_size = locate(run, run_piece, run_row)
                    if same_id(a, size, b, b_size):
                        break
                    at = (at + _ONE) & mask
                if slots[at] < 0 or place[slots[at]] == 0:
                    continue  # not retrieved, or a judgement that only repeats another
                rank = place[slots[at]]
                place[slots[at]] = 0
                grade = load_i32(label_grades[piece] + 4 * row)
                hit_ranks[base + n_hits], hit_grades[base + n_hits] = rank, grade
                n_hits += 1
                n_solid += grade >= 0
        gap = n_hits >> 1  # Shell sort by rank
        while gap > 0:
            for k in range(base + gap, base + n_hits):
                rank, grade = hit_ranks[k], hit_grades[k]
                j = k
                while j >= base + gap and hit_ranks[j - gap] > rank:
                    hit_ranks[j], hit_grades[j] = hit_ranks[j - gap], hit_grades[j - gap]
                    j -= gap
                hit_ranks[j], hit_grades[j] = rank, grade
            gap >>= 1
        stats[t, DROPPED] = n - n_kept
        stats[t, N_RET], stats[t, N_HITS], stats[t, N_JUDGED_RET] = n_kept, n_hits, n_solid
        stats[t, PROBLEM] = FINE
