"""Sorted terms of several dictionaries brought together."""

from __future__ import annotations

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.memory import U8


@inline
def _before(data: U8, a: int, a_end: int, b: int, b_end: int) -> int:
    """-1, 0 or 1 as one term comes before, is, or comes after another."""
    for k in range(min(a_end - a, b_end - b)):
        x, y = np.int64(data[a + k]), np.int64(data[b + k])
        if x != y:
            return -1 if x < y else 1
    size, other = a_end - a, b_end - b
    if size == other:
        return 0
    return -1 if size < other else 1


@kernel
def unite(firsts: I64, ends: I64, data: U8, heads: I64, order: I64, ordinals: I64) -> int:
    """The distinct terms of several ascending lists, in order.

    Parameters
    ----------
    firsts : (n_lists + 1,), where the terms of each list start in `ends`.
    ends : (n + 1,), where terms end in `data`; ``ends[0]`` is 0.
    data : the bytes of all terms.
    heads : (n_lists,), scratch.
    order : (n,), filled: for each distinct term, the number of one that equals it.
    ordinals : (n_lists, n), filled from the left: its place in each list, or -1.

    Returns
    -------
    The number of distinct terms.
    """
    n_lists = heads.size
    for s in range(n_lists):
        heads[s] = firsts[s]
    n = np.int64(0)
    while True:
        best = np.int64(-1)
        for s in range(n_lists):
            h = heads[s]
            if h < firsts[s + 1] and (
                best < 0 or _before(data, ends[h], ends[h + 1], ends[best], ends[best + 1]) < 0
            ):
                best = h
        if best < 0:
            return n
        order[n] = best
        for s in range(n_lists):
            h = heads[s]
            ordinals[s, n] = -1
            if h < firsts[s + 1] and (
                _before(data, ends[h], ends[h + 1], ends[best], ends[best + 1]) == 0
            ):
                ordinals[s, n] = h - firsts[s]
                heads[s] += 1
        n += 1


@kernel
def pick_terms(order: I64, n: int, ends: I64, data: U8, offsets: I64, out: U8) -> None:
    """The bytes of chosen terms, one after the other.

    Parameters
    ----------
    order, n : numbers of the terms, the first `n` count.
    ends, data : the terms, as in `unite`.
    offsets : (n + 1,), filled.
    out : (bytes,), filled; room for all of `data` is enough.
    """
    at = np.int64(0)
    offsets[0] = 0
    for i in range(n):
        for k in range(ends[order[i]], ends[order[i] + 1]):
            out[at] = data[k]
            at += 1
        offsets[i + 1] = at
