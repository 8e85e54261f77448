"""The rows of one ranking: loading them, and the rank of one without sorting them all."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import inline, load_f32, load_f64, load_i32
from ragcore_kernels.ids import greater_id, hash_id, locate, same_id
from ragcore_kernels.layout import F64, I64, OFFSETS32, WORDS

SCORE_F64, SCORE_F32, SCORE_NONE = range(3)
"""What the scores of a piece are: the first column of a score table; the second is the address."""

_ONE = np.uint64(1)


@inline
def power_above(n: int) -> int:
    """Least power of two that is at least `n`."""
    size = np.int64(1)
    while size < n:
        size <<= 1
    return size


@inline
def shift_for(size: int) -> Any:
    """By how much to shift a hash right to get a number below `size`, a power of two."""
    shift = np.uint64(64)
    while size > 1:
        size >>= 1
        shift -= _ONE
    return shift


@inline
def row_at(segments: I64, first: int, last: int, i: int) -> tuple[int, int]:
    """Piece and row of the i-th row of the ranking that owns ``segments[first:last]``."""
    for s in range(first, last):
        rows = segments[s, 2]
        if i < rows:
            return segments[s, 0], segments[s, 1] + i
        i -= rows
    return np.int64(-1), np.int64(-1)


@inline
def same_rows(table: I64, segments: I64, first: int, last: int, i: int, j: int) -> bool:
    """Whether rows i and j of a ranking have the same id."""
    piece, row = row_at(segments, first, last, i)
    a, a_size = locate(table, piece, row)
    piece, row = row_at(segments, first, last, j)
    b, b_size = locate(table, piece, row)
    return same_id(a, a_size, b, b_size)


@inline
def load_rows(
    table: I64, sources: I64, segments: I64, first: int, last: int, hashes: Any, scores: F64
) -> tuple[int, int]:
    """Hash the ids of a ranking and copy its scores; returns its rows and the number of NaN.

    Where an id reaches outside its buffer, nothing is read there and -1 is the second number.
    """
    n = 0
    for s in range(first, last):
        piece, start, count = segments[s, 0], segments[s, 1], segments[s, 2]
        if count == 0:  # of a list that holds nothing; then there may be no buffer either
            continue
        if table[piece, 1] == OFFSETS32:  # the usual layout, without a detour
            offsets, data = table[piece, 2] + 4 * start, table[piece, 3]
            begin = np.int64(load_i32(offsets))
            limit = table[piece, 8]
            if begin < 0:
                return n, np.int64(-1)
            for i in range(count):
                end = np.int64(load_i32(offsets + 4 * i + 4))
                size = end - begin
                if (size | (limit - end)) < 0:  # either is negative
                    return n, np.int64(-1)
                hashes[n + i] = hash_id(data + begin, size)
                begin = end
        elif table[piece, 1] == WORDS:
            words = table[piece, 2] + 4 * start
            for i in range(count):
                hashes[n + i] = hash_id(words + 4 * i, np.int64(4))
        else:
            for i in range(count):
                a, size = locate(table, piece, start + i)
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
        n += count
    bad = np.int64(0)
    for i in range(n):
        bad += scores[i] != scores[i]
    return n, bad


@inline
def ids_above(
    table: I64, segments: I64, first: int, last: int, scores: F64, i: int, a: int, b: int
) -> int:
    """How many of the rows a..b-1 tie with row i and have a greater id."""
    piece, row = row_at(segments, first, last, i)
    mine, my_size = locate(table, piece, row)
    count = 0
    for j in range(a, b):
        if scores[j] == scores[i] and j != i:
            piece, row = row_at(segments, first, last, j)
            other, size = locate(table, piece, row)
            count += greater_id(other, size, mine, my_size)
    return count


@inline
def rank_of(
    table: I64, segments: I64, first: int, last: int, scores: F64, n: int, i: int, rises: int
) -> tuple[int, int]:
    """Rank from 1 of row i, and how many ids were compared for it."""
    mine = scores[i]
    a, b = i, i + 1
    above = 0
    if rises == 0:
        while a > 0 and scores[a - 1] == mine:
            a -= 1
        while b < n and scores[b] == mine:
            b += 1
        above = a
        level = b - a
    else:
        level = 0
        for j in range(n):
            above += scores[j] > mine
            level += scores[j] == mine
        a, b = np.int64(0), n
    if level == 1:
        return above + 1, 0
    return above + 1 + ids_above(table, segments, first, last, scores, i, a, b), b - a


@inline
def fall(grades: I64, n: int, out: Any, base: int, counts: I64) -> int:
    """Write the grades >= 0 among ``grades[:n]`` to ``out[base:]``, largest first."""
    top = np.int64(-1)
    for i in range(n):
        top = max(top, grades[i])
    kept = 0
    if top < counts.size:
        for grade in range(top + 1):
            counts[grade] = 0
        for i in range(n):
            if grades[i] >= 0:
                counts[grades[i]] += 1
        for grade in range(top, -1, -1):
            for _ in range(counts[grade]):
                out[base + kept] = grade
                kept += 1
        return kept
    for i in range(n):
        if grades[i] >= 0:
            j = base + kept
            while j > base and out[j - 1] < grades[i]:
                out[j] = out[j - 1]
                j -= 1
            out[j] = grades[i]
            kept += 1
    return kept
