"""Expected interpolated precision when each order of tied scores is equally likely, exactly.

The highest of several precisions has no closed mean, but the share of orders in which none of
them is above a level can be counted rank by rank, and group by group, as how many relevant
documents stand above a group does not depend on the order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ragcore_kernels._jit import inline
from ragcore_kernels.layout import F64


@inline
def tally(begin: int, firsts: Any, grades: Any, n: int, rel: int) -> tuple[int, int, int, int]:
    """End of the group that begins at hit `begin`; its relevant, other judged and pooled hits."""
    end = begin
    n_relevant, n_other, n_pool = 0, 0, 0
    while end < n and firsts[end] == firsts[begin]:
        if grades[end] < 0:
            n_pool += 1
        elif grades[end] < rel:
            n_other += 1
        else:
            n_relevant += 1
        end += 1
    return end, n_relevant, n_other, n_pool


@inline
def share_below(
    level: float, cut: int, firsts: Any, sizes: Any, grades: Any, n: int, depth: int, rel: int,
    chances: F64,
) -> float:  # fmt: skip
    """Share of the orders in which no precision, from `cut` relevant documents on, is above."""
    share = 1.0
    above = 0
    begin = 0
    while begin < n:
        end, n_relevant, _, _ = tally(begin, firsts, grades, n, rel)
        first, size = np.int64(firsts[begin]), np.int64(sizes[begin])
        chances[0] = 1.0  # of so many relevant documents so far, and never above the level
        for i in range(n_relevant):
            chances[i + 1] = 0.0
        for x in range(min(size, depth - first + 1)):
            for i in range(min(x, n_relevant - 1), -1, -1):
                step = chances[i] * float(n_relevant - i) / float(size - x)
                chances[i] -= step
                found = above + i + 1
                if found < cut or found / (first + x) <= level:
                    chances[i + 1] += step
        part = 0.0
        for i in range(n_relevant + 1):
            part += chances[i]
        share *= part
        above += n_relevant
        begin = end
    return share


@inline
def expected_interpolated(
    cut: int, firsts: Any, sizes: Any, grades: Any, n: int, depth: int, rel: int, low: float,
    high: float, limit: int, chances: F64,
) -> float:  # fmt: skip
    """Highest precision from `cut` relevant documents on; inf if that takes above `limit` steps.

    The mean is the smallest value and, from each value that it may take to the next, the
    difference by the share of orders that get above.
    """
    levels = 0
    steps = 0
    for fill in (False, True):
        if steps * levels > limit:
            return math.inf
        values = np.empty(levels + 1, np.float64)
        levels, steps, above, begin = 0, 0, 0, 0
        while begin < n:
            end, n_relevant, _, _ = tally(begin, firsts, grades, n, rel)
            first, size = np.int64(firsts[begin]), np.int64(sizes[begin])
            seen = min(size, depth - first + 1)
            steps += n_relevant * seen
            for i in range(1, n_relevant + 1):
                for x in range(i - 1, min(seen, size - n_relevant + i)):
                    value = (above + i) / (first + x)
                    if above + i >= cut and low < value <= high:
                        if fill:
                            values[levels] = value
                        levels += 1
            above += n_relevant
            begin = end
        if fill:
            values[levels] = low
            values.sort()
            mean = low
            for v in range(levels):
                if values[v + 1] > values[v]:
                    share = share_below(
                        values[v], cut, firsts, sizes, grades, n, depth, rel, chances
                    )
                    mean += (values[v + 1] - values[v]) * (1.0 - share)
            return mean
    return low
