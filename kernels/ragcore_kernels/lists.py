"""One ranked list with the places of its ids at hand, and its rank order.

`rows` and `order` find an id again through its segment, which is best where few are compared.
Where every id is looked up, its address is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import inline, load_f32, load_f64, load_i32
from ragcore_kernels.ids import greater_id, hash_id, locate
from ragcore_kernels.layout import F64, I64, OFFSETS32
from ragcore_kernels.rows import SCORE_F32, SCORE_F64

FINE, OUTSIDE, NAN_SCORE, INFINITE_SCORE = range(4)
"""What may be wrong with a list."""


@inline
def load_list(
    table: I64,
    sources: I64,
    segments: I64,
    first: int,
    last: int,
    places: I64,
    hashes: Any,
    scores: F64,
) -> tuple[int, int, int]:
    """Places (address, length), hashes and scores of the rows of ``segments[first:last]``.

    Returns how many, the problem, and then the row of the whole column (`layout.BASE`) that has it.
    """
    n = np.int64(0)
    for s in range(first, last):
        piece, start, count = segments[s, 0], segments[s, 1], segments[s, 2]
        if count == 0:  # of a list that holds nothing; then there may be no buffer either
            continue
        base = table[piece, 7] + start
        if table[piece, 1] == OFFSETS32:  # the usual layout, without a detour
            offsets, data = table[piece, 2] + 4 * start, table[piece, 3]
            at = np.int64(load_i32(offsets))
            limit = table[piece, 8]
            if at < 0:
                return n, np.int64(OUTSIDE), base
            for i in range(count):
                end = np.int64(load_i32(offsets + 4 * i + 4))
                size = end - at
                if (size | (limit - end)) < 0:  # either is negative
                    return n, np.int64(OUTSIDE), base + i
                places[n + i, 0] = data + at
                places[n + i, 1] = size
                hashes[n + i] = hash_id(data + at, size)
                at = end
        else:
            for i in range(count):
                a, size = locate(table, piece, start + i)
                places[n + i, 0] = a
                places[n + i, 1] = size
                hashes[n + i] = hash_id(a, size)
        address = sources[piece, 1]
        if sources[piece, 0] == SCORE_F64:
            for i in range(count):
                scores[n + i] = load_f64(address + 8 * (start + i))
        elif sources[piece, 0] == SCORE_F32:
            for i in range(count):
                scores[n + i] = float(load_f32(address + 4 * (start + i)))
        else:
            for i in range(count):
                scores[n + i] = 0.0
        bad = np.int64(0)
        for i in range(count):
            bad += scores[n + i] != scores[n + i]
        if bad:
            for i in range(count):
                if scores[n + i] != scores[n + i]:
                    return n, np.int64(NAN_SCORE), base + i
        n += count
    return n, np.int64(FINE), np.int64(-1)


@inline
def _precedes(places: I64, scores: F64, i: int, j: int) -> bool:
    """Whether row i stands before row j: score descending, then id descending byte-wise."""
    if scores[i] != scores[j]:
        return scores[i] > scores[j]
    return greater_id(places[i, 0], places[i, 1], places[j, 0], places[j, 1])


@inline
def _merge_rows(places: I64, scores: F64, order: I64, begin: int, end: int, spare: I64) -> None:
    """Merge sort of ``order[begin:end]``; equal rows keep their order."""
    width = np.int64(1)
    while width < end - begin:
        start = begin
        while start < end:
            middle, stop = min(start + width, end), min(start + 2 * width, end)
            i, j = start, middle
            for at in range(start, stop):
                take = i < middle
                if take and j < stop:
                    take = not _precedes(places, scores, order[j], order[i])
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
def rank_order(places: I64, scores: F64, n: int, recorded: int, order: I64, spare: I64) -> None:
    """The n rows of a list, best first: as they stand if `recorded`, else by score and id.

    Parameters
    ----------
    order, spare : (n,) or longer; `order` is filled.
    """
    for i in range(n):
        order[i] = i
    if recorded:
        return
    rises = np.int64(0)
    for i in range(1, n):
        rises += scores[i] > scores[i - 1]
    begin = np.int64(0)
    while begin < n:  # the whole list, or stretches of equal scores
        end = n
        if not rises:
            end = begin + 1
            while end < n and scores[end] == scores[begin]:
                end += 1
        if end - begin > 1:
            _merge_rows(places, scores, order, begin, end, spare)
        begin = end
