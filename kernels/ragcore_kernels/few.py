"""Sums of a few terms inside a kernel, correctly rounded: equal sums are equal to the last bit.

`sums.exact_sum` is for samples; here a kernel adds the handful of terms of one document. Terms are
pairs of doubles, a value and what it lacks, so that a quotient can be given to about 106 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import inline
from ragcore_kernels.layout import F64

_SPLIT = 134217729.0  # 2**27 + 1
_UNSURE = 2.0**-103


@inline
def add_pair(high: float, low: float, value: float, rest: float) -> tuple[float, float]:
    """``(high + low) + (value + rest)`` as an unevaluated pair; `high` is a rounded sum."""
    total = high + value
    part = total - high
    lost = (high - (total - part)) + (value - part)
    return total, low + (lost + rest)


@inline
def settled(high: float, low: float, n: int) -> bool:
    """Whether ``high + low``, summed from `n` terms >= 0, rounds as the exact sum does.

    Each addition loses at most 2**-106 of the sum, times the terms so far; where the sum lies
    further than that from the middle between two doubles, it cannot round the other way.
    """
    doubt = high * (n * (n + 2)) * _UNSURE
    return high + (low + doubt) == high + (low - doubt)


@inline
def exact_few(terms: F64, n: int, partials: F64) -> float:
    """Correctly rounded sum of ``terms[:n]``, all finite.

    Parameters
    ----------
    partials : (n,) or longer, scratch: the exact sum as doubles that do not overlap.

    References
    ----------
    Shewchuk, Adaptive precision floating-point arithmetic, 1997.
    """
    kept = np.int64(0)
    for t in range(n):
        x = terms[t]
        used = np.int64(0)
        for j in range(kept):
            y = partials[j]
            total = x + y
            part = total - x
            lost = (x - (total - part)) + (y - part)
            if lost != 0.0:
                partials[used] = lost
                used += 1
            x = total
        partials[used] = x
        kept = used + 1
    if kept == 0:
        return 0.0
    at = kept - 1
    high, lost = partials[at], 0.0
    while at > 0 and lost == 0.0:  # from the largest down, until something is rounded away
        at -= 1
        y = partials[at]
        total = high + y
        lost = y - (total - high)
        high = total
    if (
        at > 0 and lost != 0.0 and (lost > 0.0) == (partials[at - 1] > 0.0)
    ):  # just beyond the middle: not a tie to even
        twice = 2.0 * lost
        total = high + twice
        if total - high == twice:
            high = total
    return high


def quotients(value: float, divisors: Any) -> tuple[F64, F64]:
    """``value / divisors`` as pairs of doubles, good to about 106 bits.

    Parameters
    ----------
    value : 0, or between 1e-100 and 1e100.
    divisors : (n,), between 1e-100 and 1e100.
    """
    d = np.asarray(divisors, np.float64)
    high = value / d
    scaled = _SPLIT * d
    d_top = scaled - (scaled - d)
    scaled = _SPLIT * high
    h_top = scaled - (scaled - high)
    d_end, h_end = d - d_top, high - h_top
    product = high * d
    lost = ((h_top * d_top - product) + h_top * d_end + h_end * d_top) + h_end * d_end
    return high, ((value - product) - lost) / d
