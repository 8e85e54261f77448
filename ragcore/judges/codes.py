"""Several columns of codes as one, joins of such keys, and the sets in lists of codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels.layout import I64

_ROOM = 1 << 62


def packed(*columns: Any) -> I64:
    """One code for each row of several columns: rows are equal if and only if their codes are.

    Parameters
    ----------
    columns : (n,) whole numbers from -1.
    """
    out = np.zeros(columns[0].size, np.int64)
    size = 1
    for column in columns:
        width = int(column.max(initial=-1)) + 2
        if size * width > _ROOM:
            _, out = np.unique(out, return_inverse=True)
            size = int(out.max(initial=0)) + 1
        out = out * width + column + 1
        size *= width
    return out


def matches(left: I64, right: I64) -> tuple[I64, I64]:
    """Places (i, j) of all pairs of equal keys; by i, then j.

    Parameters
    ----------
    left, right : any whole numbers.
    """
    order = np.argsort(right, kind="stable")
    keys = right[order]
    first = np.searchsorted(keys, left, side="left")
    counts = np.searchsorted(keys, left, side="right") - first
    i = np.repeat(np.arange(left.size), counts)
    within = np.arange(i.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return i, order[first[i] + within]


def sets_of(offsets: I64, codes: I64, wanted: Any) -> I64:
    """A code for the set of each list: order and repetition do not count; -1 of an empty one.

    Parameters
    ----------
    offsets, codes : (n + 1,) and flat, codes from -1.
    wanted : (n,) bool; other lists are taken as empty.
    """
    n = offsets.size - 1
    owners = np.repeat(np.arange(n), np.diff(offsets))
    keep = wanted[owners]
    owners, codes = owners[keep], codes[keep]
    order = np.lexsort((codes, owners))
    owners, codes = owners[order], codes[order]
    fresh = np.ones(codes.size, np.bool_)
    fresh[1:] = (np.diff(owners) != 0) | (np.diff(codes) != 0)
    owners, codes = owners[fresh], codes[fresh]
    sizes = np.bincount(owners, minlength=n)
    starts = np.cumsum(sizes) - sizes
    state = np.full(n, -1, np.int64)
    own = np.flatnonzero(sizes)
    if own.size:
        state[own] = codes[starts[own]] + 1
    for place in range(1, int(sizes.max(initial=0))):
        own = own[sizes[own] > place]
        pair = packed(state[own], codes[starts[own] + place])
        state[own] = np.unique(pair, return_inverse=True)[1]
    _, out = np.unique(packed(state, sizes), return_inverse=True)
    return np.where(sizes > 0, out, -1).astype(np.int64)


def counted(keys: I64, n: int, where: Any = None) -> I64:
    """(n,), how often each of the codes 0 to n - 1 stands in `keys`, or among some of them."""
    return np.bincount(keys if where is None else keys[where], minlength=n)
