"""Interval of a quantile by ranks of the sample: nothing is assumed of the distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ragcore_kernels.binomial import binomial_tail, check_level, least_count, whole

TOO_FEW = "n too small"
"""Reason for an end that no rank can give."""

_TIE = 1e-12  # relative; a probability this close above a level's share still keeps the level


@dataclass(frozen=True)
class QuantileRanks:
    """Ranks, from 1, whose values enclose a quantile.

    Parameters
    ----------
    rank : of the quantile itself, the nearest: ``ceil(p n)``; 0 without cases.
    low, high : of the ends; None for an end that no rank can give.
    coverage : least probability that the quantile lies between both, whatever the distribution.
    reason : why an end is None, or ``""``.
    """

    rank: int
    low: int | None
    high: int | None
    coverage: float
    reason: str


@dataclass(frozen=True)
class QuantileInterval:
    """A quantile and its interval, in the unit of the values.

    Parameters
    ----------
    value : the quantile by nearest rank, nan without cases.
    low, high : ends; None for an unbounded one.
    ranks : where all three stand in the sorted values, and what the interval covers.
    """

    value: float
    low: float | None
    high: float | None
    ranks: QuantileRanks


def _exact(p: float) -> Fraction:
    """`p` as the decimal that it prints as: 0.95 means 95 of 100."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"p is {p}; expected a number between 0 and 1")
    return Fraction(repr(float(p)))


def quantile_ranks(n: int, p: float, level: float = 0.95) -> QuantileRanks:
    """Ranks of the ends of an interval for the p-quantile of n independent values.

    Parameters
    ----------
    n : values.
    p : in (0, 1).
    level : probability inside, in (0, 1).

    Returns
    -------
    With B binomial(n, p), `low` is the greatest rank r with P(B < r) <= q and `high` the least
    rank s with P(B >= s) <= q, where q = (1 - level) / 2: equal tails. If one end has no such
    rank, it takes as much of 1 - level as it needs and leaves the rest to the other; if then
    the other had none, the end is None. So a 99th percentile at 95 % has an upper end from
    n = 299 on.

    Raises
    ------
    ValueError
        If n is no count, or p or `level` is outside (0, 1).

    Notes
    -----
    A probability within 1e-12 (relative) of q counts as q.

    References
    ----------
    Hahn & Meeker, Statistical intervals, 1991, section 5.2.
    """
    check_level(level)
    exact = _exact(p)
    n = whole("n", n)
    if n == 0:
        return QuantileRanks(0, None, None, 1.0, TOO_FEW)
    p, q = float(exact), float(1 - exact)
    alpha = (1.0 - level) * (1.0 + _TIE)
    upper = lower = alpha / 2.0
    top, bottom = binomial_tail(n, n, p, q), binomial_tail(n, n, q, p)  # least an end can take
    if top + bottom <= alpha:  # both ends exist, if need be with unequal tails
        if top > upper:
            upper, lower = top, alpha - top
        elif bottom > lower:
            upper, lower = alpha - bottom, bottom
    high, low = least_count(n, p, q, upper), n + 1 - least_count(n, q, p, lower)
    high, low = high if high <= n else None, low if low >= 1 else None
    coverage = 1.0
    if high:
        coverage -= binomial_tail(high, n, p, q)
    if low:
        coverage -= binomial_tail(n + 1 - low, n, q, p)
    return QuantileRanks(math.ceil(exact * n), low, high, coverage, "" if low and high else TOO_FEW)


def quantile_interval(values: ArrayLike, p: float, level: float = 0.95) -> QuantileInterval:
    """The p-quantile of `values` by nearest rank, and its interval by `quantile_ranks`.

    Parameters
    ----------
    values : (n,), in any order and unit; infinities are values like others.
    p, level : as for `quantile_ranks`.

    Raises
    ------
    ValueError
        If a value is nan, `values` is not one-dimensional, or p or `level` is outside (0, 1).
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values have shape {array.shape}; expected one dimension")
    ranks = quantile_ranks(array.size, p, level)
    if array.size == 0:
        return QuantileInterval(math.nan, None, None, ranks)
    wanted = {rank - 1 for rank in (ranks.rank, ranks.low, ranks.high) if rank}
    partly = np.partition(array, sorted({*wanted, array.size - 1}))
    if math.isnan(partly[-1]):  # nan comes last
        at = int(np.flatnonzero(np.isnan(array))[0])
        raise ValueError(f"values[{at}] is nan; expected numbers")

    def at_rank(rank: int | None) -> float | None:
        return float(partly[rank - 1]) if rank else None

    value = float(partly[ranks.rank - 1])
    return QuantileInterval(value, at_rank(ranks.low), at_rank(ranks.high), ranks)
