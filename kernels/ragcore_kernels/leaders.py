"""The leaders among the documents of a case: by fused score, best single rank, id.

Scores spread over buckets, and each bucket is sorted on its own: about as quick as counting, and
never worse than a merge sort. Buckets beyond what is wanted are left as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ragcore_kernels._jit import inline
from ragcore_kernels.ids import greater_id
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.rows import power_above

_FEW = 24  # entries of the fullest bucket that insertion still sorts soonest


@inline
def fused_before(entries: I64, totals: F64, best: I64, i: int, j: int) -> bool:
    """Whether entry i stands before entry j in the fused list."""
    if totals[i] != totals[j]:
        return totals[i] > totals[j]
    if best[i] != best[j]:
        return best[i] < best[j]
    return greater_id(entries[i, 0], entries[i, 1], entries[j, 0], entries[j, 1])


@inline
def _merge_entries(
    entries: I64, totals: F64, best: I64, order: I64, begin: int, end: int, spare: I64
) -> None:
    """Merge sort of ``order[begin:end]``."""
    width = np.int64(1)
    while width < end - begin:
        start = begin
        while start < end:
            middle, stop = min(start + width, end), min(start + 2 * width, end)
            i, j = start, middle
            for at in range(start, stop):
                take = i < middle
                if take and j < stop:
                    take = not fused_before(entries, totals, best, order[j], order[i])
                if take:
                    spare[at] = order[i]
                    i += 1
                else:
                    spare[at] = order[j]
                    j += 1
            start = stop
        for at in range(begin, end):
            order[at] = spare[at]
        width *= 2


@inline
def sort_entries(
    entries: I64, totals: F64, best: I64, n: int, wanted: int, keys: F64, cuts: Any, placed: F64,
    order: I64, spare: I64,
) -> None:  # fmt: skip
    """The best `wanted` of n entries, in order, at the head of `order`.

    Parameters
    ----------
    keys : (n,), falling as totals rise; they spread the entries over about as many buckets.
    cuts : (power_above(n) + 1,) or longer, int32, scratch.
    placed : (n,) or longer, scratch.
    order, spare : (n,) or longer; `order` is filled.
    """
    least, most = math.inf, -math.inf
    for e in range(n):
        least = min(least, keys[e])
        most = max(most, keys[e])
    buckets = power_above(n)
    span = most - least
    scale = 0.0
    if span > 0.0 and span < math.inf:
        scale = (buckets - 1) / span
    for b in range(buckets + 1):
        cuts[b] = 0
    for e in range(n):
        b = np.int64(0)
        if scale > 0.0:
            b = min(np.int64((keys[e] - least) * scale), buckets - 1)
        spare[e] = b
        cuts[b + 1] += 1
    fullest, limit = np.int64(0), np.int64(0)
    for b in range(buckets):
        fullest = max(fullest, np.int64(cuts[b + 1]))
        cuts[b + 1] += cuts[b]
        if limit < wanted:
            limit = np.int64(cuts[b + 1])  # where the bucket of the last one wanted ends
    for e in range(n):
        b = spare[e]
        at = np.int64(cuts[b])
        order[at] = e
        placed[at] = keys[e]
        cuts[b] += 1  # now where the next bucket begins, once all are placed
    if fullest <= _FEW:  # one insertion sort: nothing moves further than its bucket
        for at in range(1, limit):
            e, key = order[at], placed[at]
            j = at
            while j > 0 and (
                placed[j - 1] > key
                or (placed[j - 1] == key and fused_before(entries, totals, best, e, order[j - 1]))
            ):
                order[j] = order[j - 1]
                placed[j] = placed[j - 1]
                j -= 1
            order[j] = e
            placed[j] = key
        return
    begin = np.int64(0)
    for b in range(buckets):
        end = np.int64(cuts[b])
        if end - begin > 1:
            _merge_entries(entries, totals, best, order, begin, end, spare)
        begin = end
        if begin >= wanted:
            return
