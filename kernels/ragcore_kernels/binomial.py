"""Binomial probabilities to the last digits, and what rests on them.

Intervals of a proportion and the sign test of wins against losses; see also `order_statistics`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel

F64 = NDArray[np.float64]

LEAST_P = 1e-300
"""No p-value is reported below this; the method of one that would be ends in ``<``."""

_MAX_N = 1 << 50

_STIRLING = np.array(
    [
        0.0,
        0.08106146679532726,
        0.0413406959554093,
        0.02767792568499834,
        0.020790672103765093,
        0.016644691189821193,
        0.013876128823070748,
        0.01189670994589177,
        0.010411265261972096,
        0.009255462182712733,
        0.00833056343336287,
        0.007573675487951841,
        0.00694284010720953,
        0.006408994188004207,
        0.0059513701127588475,
        0.005554733551962801,
    ]
)
"""ln(n!) less Stirling's formula, for n = 0..15; 0 is never asked for."""


@inline
def _stirling_error(n: int) -> float:
    """``ln(n!) - ln(sqrt(2 pi n) (n / e)**n)``, n >= 1, to 1e-16."""
    if n < 16:
        return _STIRLING[n]
    z = 1.0 / (float(n) * float(n))
    tail = 1.0 / 1260.0 - z * (1.0 / 1680.0 - z * (1.0 / 1188.0 - z * (691.0 / 360360.0)))
    return (1.0 / 12.0 - z * (1.0 / 360.0 - z * tail)) / n


@inline
def _deviance(x: float, mean: float) -> float:
    """``x ln(x / mean) + mean - x`` without cancellation; x, mean > 0."""
    gap = x - mean
    if abs(gap) >= 0.5 * (x + mean):  # a factor of three apart: nothing cancels
        return x * math.log(x / mean) - gap
    v = gap / (x + mean)
    total, power, square = gap * v, 2.0 * x * v, v * v
    for j in range(1, 100):
        power *= square
        more = total + power / (2 * j + 1)
        if more == total:
            break
        total = more
    return total


@inline
def _mass(k: int, n: int, p: float, q: float) -> float:
    """P(K = k), 0 < p < 1, 0 <= k <= n, n >= 1; see `binomial_mass`."""
    if k == 0:
        return math.exp(n * (math.log1p(-p) if p < 0.5 else math.log(q)))
    if k == n:
        return math.exp(n * (math.log1p(-q) if q < 0.5 else math.log(p)))
    log = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    log -= _deviance(float(k), n * p) + _deviance(float(n - k), n * q)
    return math.exp(log) * math.sqrt(n / (2.0 * math.pi * k * (n - k)))


@inline
def _sum_upwards(k: int, n: int, odds: float) -> float:
    """P(K >= k) / P(K = k), by ratios of neighbours; for k at or above the mean."""
    term, total = 1.0, 1.0
    for i in range(k, n):
        term *= (n - i) / (i + 1.0) * odds
        total += term
        if term < 1e-19 * total:
            break
    return total


@inline
def _tail(k: int, n: int, p: float, q: float) -> float:
    """P(K >= k), 0 < p < 1, 0 <= k <= n + 1, n >= 1; see `binomial_tail`."""
    if k > n:
        return 0.0
    if k <= 0:
        return 1.0
    if k >= n * p:
        return _mass(k, n, p, q) * _sum_upwards(k, n, p / q)
    return 1.0 - _mass(k - 1, n, p, q) * _sum_upwards(n - k + 1, n, q / p)


@kernel
def binomial_mass(k: int, n: int, p: float, q: float) -> float:
    """P(K = k) for K the successes among n trials.

    Parameters
    ----------
    k, n : 0 <= k <= n, n >= 1.
    p, q : probabilities of success and of failure, both above 0. Both are taken, so that
        neither has to be had by a subtraction that cancels.

    Notes
    -----
    Saddle-point form: logarithms of factorials never meet. Relative error some 1e-15 around
    the mean, and 4e-16 times the logarithm of the result far from it.

    References
    ----------
    Loader, Fast and accurate computation of binomial probabilities, 2000.
    """
    return _mass(k, n, p, q)


@kernel
def binomial_tail(k: int, n: int, p: float, q: float) -> float:
    """P(K >= k) for K the successes among n trials.

    Parameters
    ----------
    k, n, p, q : as for `binomial_mass`; k may also be n + 1. ``P(K <= k)`` is
        ``binomial_tail(n - k, n, q, p)``.

    Notes
    -----
    Above the mean every term is positive and follows from the one before: O(sqrt(n)) terms,
    relative error below 1e-13. Below the mean 1 less the other tail.
    """
    return _tail(k, n, p, q)


@kernel
def binomial_masses(n: int, p: float, q: float, out: F64) -> None:
    """P(K = k) for every k.

    Parameters
    ----------
    n, p, q : as for `binomial_mass`.
    out : (n + 1,), filled.
    """
    for k in range(n + 1):
        out[k] = _mass(k, n, p, q)


@kernel
def _log_end(k: int, n: int, share: float, guess: float) -> float:
    """Logarithm of the p with ``P(K >= k) = share``, 1 <= k <= n, share < 1/2.

    The logarithm of the tail is an increasing, concave function of ln p: Newton's steps with
    Halley's correction cannot leave the basin, and both derivatives come with the tail.

    Parameters
    ----------
    k, n, share : as above.
    guess : ln p to start from, below 0.
    """
    if k == n:
        return math.log(share) / n
    if k == 1:
        return math.log(-math.expm1(math.log1p(-share) / n))
    log_p = guess
    for _ in range(100):
        p, q = math.exp(log_p), -math.expm1(log_p)
        tail = _tail(k, n, p, q)
        if tail <= 0.0:  # underflow, by a guess far too low
            log_p *= 0.5
            continue
        gap = math.log(tail / share)
        slope = k * (_mass(k, n, p, q) / tail)
        bend = slope * (k - (n - k) * (p / q) - slope)
        step = gap / slope
        step /= 1.0 - 0.5 * step * min(bend, 0.0) / slope
        log_p = min(log_p - step, 0.5 * log_p)
        if abs(gap) < 3e-6:  # another step would be of its cube
            break
    return log_p


@kernel
def least_count(n: int, p: float, q: float, share: float) -> int:
    """Least k with ``P(K >= k) <= share``, from 0 to n + 1.

    Parameters
    ----------
    n, p, q : as for `binomial_mass`.
    share : a probability.
    """
    low, high = np.int64(-1), np.int64(n + 1)
    while high - low > 1:
        middle = (low + high) >> 1
        if _tail(middle, n, p, q) <= share:
            high = middle
        else:
            low = middle
    return high


# --- proportions


def check_level(level: float) -> None:
    """Refuse a `level` outside (0, 1)."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1")


def whole(name: str, value: int) -> int:
    """Check that `value` is a count, and pass it on."""
    if not 0 <= value <= _MAX_N or value != int(value):
        raise ValueError(f"{name} is {value}; expected a whole number from 0 to 2**50")
    return int(value)


def _share_of(k: float, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"k is {k}; expected a number from 0 to n = {n}")


def clopper_pearson(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of a proportion that covers it with probability `level` at least.

    Parameters
    ----------
    k, n : successes, trials.
    level : in (0, 1).

    Returns
    -------
    `low` has P(K >= k) = (1 - level) / 2, or is 0.0 if k = 0; `high` has P(K <= k) the same, or
    is 1.0 if k = n. Both nan without trials. Relative error of either some 1e-15.

    Raises
    ------
    ValueError
        If k or n is no count, k > n, or `level` is outside (0, 1).

    References
    ----------
    Clopper & Pearson, The use of confidence or fiducial limits, 1934.
    """
    check_level(level)
    k, n = whole("k", k), whole("n", n)
    _share_of(k, n)
    if n == 0:
        return math.nan, math.nan
    share = (1.0 - level) / 2.0
    z = -NormalDist().inv_cdf(share)
    low, high = 0.0, 1.0
    if k > 0:
        low = math.exp(_log_end(k, n, share, _guess(k, n, z)))
    if k < n:
        high = -math.expm1(_log_end(n - k, n, share, _guess(n - k, n, z)))
    return low, high


def _guess(k: int, n: int, z: float) -> float:
    """Logarithm of Wilson's lower end, less half a success."""
    return math.log(_wilson_low(max(k - 0.5, 0.5), n, z))


def _wilson_low(k: float, n: int, z: float) -> float:
    """Less of the two roots, from the greater: no cancellation."""
    root = z * math.sqrt(z * z + 4.0 * k * (n - k) / n)
    return 2.0 * k * (k / n) / (2.0 * k + z * z + root)


def wilson(k: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of a proportion by the score test; its coverage is near `level` on average.

    Parameters
    ----------
    k : successes; a sum of fractions, one for each case, is taken as well.
    n : trials.
    level : in (0, 1).

    Returns
    -------
    `low` and `high`, both nan without trials.

    Raises
    ------
    ValueError
        If n is no count, k is not from 0 to n, or `level` is outside (0, 1).

    References
    ----------
    Wilson, Probable inference, the law of succession, and statistical inference, 1927.
    """
    check_level(level)
    n = whole("n", n)
    _share_of(k, n)
    if n == 0:
        return math.nan, math.nan
    z = -NormalDist().inv_cdf((1.0 - level) / 2.0)
    return _wilson_low(k, n, z), 1.0 - _wilson_low(n - k, n, z)


# --- the sign test


@dataclass(frozen=True)
class SignTest:
    """Outcome of a two-sided test that flips the signs of paired differences.

    Parameters
    ----------
    p_value : in (0, 1], never 0; nan without cases.
    method : ``"exact"``; ``"exact±3e-05"`` if only known to be that near; ``"exact<"`` if the
        p-value is below the one given, which is `LEAST_P`; ``"monte-carlo(B, seed)"``; ``""``
        without cases.
    bound : greatest possible distance of `p_value` from the exact one, 0.0 if none; inf if drawn.
    n, n_nonzero : cases, and those among them that differ.
    mid_p : p-value with half the probability of the outcome itself; nan where not computed.
    """

    p_value: float
    method: str
    bound: float
    n: int
    n_nonzero: int
    mid_p: float = math.nan


def mcnemar(wins: int, losses: int) -> SignTest:
    """Exact two-sided test of wins against losses; ties say nothing.

    Parameters
    ----------
    wins, losses : counts of discordant cases of either kind.

    Returns
    -------
    With m = wins + losses, K binomial(m, 1/2) and k the greater of both, the p-value is
    ``min(1, 2 P(K >= k))`` and the mid-p ``2 P(K > k) + P(K = k)``. 1.0 without any. Relative
    error below 1e-13; below `LEAST_P` that is reported, see `SignTest`.

    Raises
    ------
    ValueError
        If either is no count.

    References
    ----------
    McNemar, Note on the sampling error of the difference between correlated proportions, 1947.
    """
    wins, losses = whole("wins", wins), whole("losses", losses)
    m, k = wins + losses, max(wins, losses)
    if m == 0:
        return SignTest(1.0, "exact", 0.0, 0, 0, 1.0)
    p = min(1.0, 2.0 * binomial_tail(k, m, 0.5, 0.5))
    if p < LEAST_P:
        return SignTest(LEAST_P, "exact<", 0.0, m, m, LEAST_P)
    mid = min(1.0, binomial_mass(k, m, 0.5, 0.5) + 2.0 * binomial_tail(k + 1, m, 0.5, 0.5))
    return SignTest(p, "exact", 0.0, m, m, mid)
