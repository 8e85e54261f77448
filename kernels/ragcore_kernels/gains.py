"""Gains of grades, discounts of ranks, and the best that the judgements allow."""

from __future__ import annotations

import math
from typing import Any

from ragcore_kernels._jit import inline
from ragcore_kernels.layout import F64

GAIN_LINEAR, GAIN_EXP, GAIN_TABLE = range(3)
"""Gain of a grade g > 0: g; 2**g - 1; or row ``GAINS - GAIN_TABLE`` of the gain table."""


@inline
def gain(mode: int, grade: int, table: F64) -> float:
    """Gain of a judged grade; 0 for what was not judged.

    `table` is (n_maps, n_grades), NaN where a grade keeps its own value.
    """
    if grade < 0:
        return 0.0
    if mode >= GAIN_TABLE:
        if grade < table.shape[1] and not math.isnan(table[mode - GAIN_TABLE, grade]):
            return table[mode - GAIN_TABLE, grade]
        return float(grade)
    if mode == GAIN_EXP:
        return 2.0 ** float(grade) - 1.0 if grade < 1024 else math.inf
    return float(grade)


@inline
def log2_of(logs: F64, x: int) -> float:
    """log2(x), from the table where it reaches."""
    return logs[x] if x < logs.size else math.log2(float(x))


@inline
def ideal_dcg(
    mode: int, k: int, judged: Any, base: int, n: int, table: F64, logs: F64, spare: F64
) -> float:
    """DCG of the best order of all judged grades, in the first k ranks."""
    if mode < GAIN_TABLE:
        n = min(n, k)
    for i in range(n):
        if mode < GAIN_TABLE and judged[base + i] <= 0:
            n = i
            break
        spare[i] = gain(mode, judged[base + i], table)
    if mode >= GAIN_TABLE:  # a map need not rise with the grade: Shell sort, largest first
        gap = n >> 1
        while gap > 0:
            for i in range(gap, n):
                value = spare[i]
                j = i
                while j >= gap and spare[j - gap] < value:
                    spare[j] = spare[j - gap]
                    j -= gap
                spare[j] = value
            gap >>= 1
    total = 0.0
    for i in range(min(n, k)):
        if spare[i] <= 0.0:
            break
        total += spare[i] / log2_of(logs, i + 2)
    return total
