"""Lists of units, ranking by ranking: which hold evidence, may be seen, fit a budget, agree."""

from __future__ import annotations

import numpy as np

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.overlap import agreement

UNKNOWN_LENGTH = -1
"""Prefix of a list with a unit whose length is not known, before the budget is spent."""


@kernel
def holding(
    begin: int, end: int, label_of: I64, items: I64, which: I64, covers: I64, containing: I64,
    shown: I64, units: I64, out: I64,
) -> None:  # fmt: skip
    """Which units of each ranking's list contain an item of its case.

    Parameters
    ----------
    begin, end : rankings to do.
    label_of : (n,), row of each ranking's case, -1 for none.
    items : (n_cases + 1,), items of each case.
    which : (n_items,), 1 for the items that are asked for.
    covers, containing : (n_items + 1,) and flat, codes of the units that contain an item.
    shown, units : (n + 1,) and flat, codes of the units of each ranking.
    out : flat as `units`, filled with 1 or 0.
    """
    for i in range(begin, end):
        label = label_of[i]
        for place in range(shown[i], shown[i + 1]):
            out[place] = 0
            if label < 0 or units[place] < 0:
                continue
            for item in range(items[label], items[label + 1]):
                if not which[item] or out[place]:
                    continue
                for c in range(covers[item], covers[item + 1]):
                    if containing[c] == units[place]:
                        out[place] = 1
                        break


@kernel
def permitted(
    begin: int, end: int, shown: I64, units: I64, public: I64, lists: I64, words: I64,
    offsets: I64, held: I64, out: I64,
) -> None:  # fmt: skip
    """Which units of each ranking's list are public or share a word with the ranking's own.

    Parameters
    ----------
    begin, end : rankings to do.
    shown, units : (n + 1,) and flat, codes of the units of each ranking.
    public : (n_chunks,), 1 for a unit that anybody may see.
    lists, words : (n_chunks + 1,) and flat, words of each unit.
    offsets, held : (n + 1,) and flat, words of each ranking.
    out : flat as `units`, filled: 1 or 0; 0 for a code that is no chunk.
    """
    for i in range(begin, end):
        for place in range(shown[i], shown[i + 1]):
            out[place] = 0
            unit = units[place]
            if unit < 0 or unit >= public.size:
                continue
            out[place] = public[unit]
            for a in range(lists[unit], lists[unit + 1]):
                if out[place]:
                    break
                for b in range(offsets[i], offsets[i + 1]):
                    if words[a] >= 0 and words[a] == held[b]:
                        out[place] = 1
                        break


@kernel
def prefixes(begin: int, end: int, shown: I64, lengths: I64, budget: int, out: I64) -> None:
    """How many units from the top of each list fit a budget, whole units only.

    Parameters
    ----------
    begin, end : rankings to do.
    shown : (n + 1,), the list of each ranking.
    lengths : flat, length of each unit, negative where it is not known.
    budget : what the units may have together.
    out : (n,), filled: units, or `UNKNOWN_LENGTH`.
    """
    for i in range(begin, end):
        spent, n = np.int64(0), np.int64(0)
        for place in range(shown[i], shown[i + 1]):
            if lengths[place] < 0:
                n = np.int64(UNKNOWN_LENGTH)
                break
            spent += lengths[place]
            if spent > budget:
                break
            n += 1
        out[i] = n


@kernel
def agreements(
    begin: int, end: int, a_lists: I64, a_units: I64, b_lists: I64, b_units: I64, k: int, p: float,
    out: F64,
) -> None:  # fmt: skip
    """How far two lists of each ranking agree.

    A unit that stands twice in a list counts where it stands first, and the ranks behind it close
    up.

    Parameters
    ----------
    begin, end : rankings to do.
    a_lists, a_units : (n + 1,) and flat, codes of the units of each ranking's first list.
    b_lists, b_units : the same of the second.
    k : depth at which both are cut, after repeats are gone; 0 = the longer one's length.
    p : persistence of rank-biased overlap, above 0 and below 1.
    out : (n, 5), filled: the three of `overlap.agreement`, and the lengths of both lists as cut.
    """
    most = np.int64(0)
    for i in range(begin, end):
        most = max(most, a_lists[i + 1] - a_lists[i], b_lists[i + 1] - b_lists[i])
    left, right = np.empty(most, np.int64), np.empty(most, np.int64)
    common = np.empty(most + 1, np.int64)
    for i in range(begin, end):
        n_a, n_b = np.int64(0), np.int64(0)
        for at in range(a_lists[i], a_lists[i + 1]):
            new = np.int64(1)
            for j in range(n_a):
                if left[j] == a_units[at]:
                    new = np.int64(0)
                    break
            if new and (k == 0 or n_a < k):
                left[n_a] = a_units[at]
                n_a += 1
        for at in range(b_lists[i], b_lists[i + 1]):
            new = np.int64(1)
            for j in range(n_b):
                if right[j] == b_units[at]:
                    new = np.int64(0)
                    break
            if new and (k == 0 or n_b < k):
                right[n_b] = b_units[at]
                n_b += 1
        for d in range(max(n_a, n_b) + 1):
            common[d] = 0
        for x in range(n_a):
            for y in range(n_b):
                if left[x] == right[y]:
                    common[max(x, y) + 1] += 1
                    break
        depth = k if k > 0 else max(n_a, n_b, np.int64(1))
        agreement(common, n_a, n_b, depth, p, out[i])
        out[i, 3], out[i, 4] = n_a, n_b
