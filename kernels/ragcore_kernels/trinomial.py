"""Samples of at most three equally spaced values: exact probabilities, end by end, in a flash.

With counts a, b, c of the points 0, 1, 2 the sum T of n draws has
``P(T = t) n**n = q[t] = [x**t] (a + b x + c x**2)**n``, and from Q = P**n follows P Q' = n P' Q:

    a (t+1) q[t+1] = b (n-t) q[t] + c (2n-t+1) q[t-1]       upwards, t <= n
    c (2n-t+1) q[t-1] = b (t-n) q[t] + a (t+1) q[t+1]       downwards, t >= n

Every term is positive in its own direction, so that errors never grow: both run from the ends of
a window of O(sqrt n) sums, which leaves out less than e**-50, and meet at t = n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.histogram import Sample
from ragcore_kernels.integers import near, settled
from ragcore_kernels.lattice import Lattice, prepare

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_LOG_TAIL = 50.0
_GREAT, _SHRINK = 2.0**700, 2.0**-700
_NEGLIGIBLE = 1e-19


@inline
def _bernstein(span: float, spread: float) -> int:
    """A sum of variance `spread` exceeds its mean by this with probability e**-50 at most."""
    linear = span * _LOG_TAIL / 3.0
    return math.ceil(linear + math.sqrt(linear * linear + 2.0 * _LOG_TAIL * spread))


@inline
def _window(a: int, b: int, c: int) -> tuple[int, int]:
    """Least and greatest sum that need be looked at."""
    n, total = a + b + c, b + 2 * c
    mean = total / n
    top = 2 if c > 0 else 1
    spread = a * mean * mean + b * (1.0 - mean) ** 2 + c * (2.0 - mean) ** 2
    least = max(0, total - _bernstein(mean, spread))
    return least, min(top * n, total + _bernstein(top - mean, spread))


@inline
def _start_ratio(a: int, b: int, c: int, first: int) -> float:
    """``q[first + 1] / q[first]`` for first < n, from the terms of the multinomial law.

    The terms of q[first] have i draws of point 2, ``first - 2 i`` of point 1; one draw of point 1
    made a 2, or one of point 0 made a 1 where there is no 2, gives every term of q[first + 1].
    """
    n = a + b + c
    lack = n - first
    odds = float(a) * c / (float(b) * b)
    up, down = c / b, b / a
    # The greatest term, where two draws of 1 are as likely as a 0 and a 2.
    root = math.sqrt(1.0 * b * b * lack * lack + 4.0 * a * c * first * (2.0 * lack + first))
    share = 2.0 * a * c * first / (1.0 * b * b * lack + 4.0 * a * c * first + b * root)
    i = mode = min(int(share * first), first >> 1)
    term, bulk, raised = 1.0, 0.0, 0.0
    while True:
        ones = first - 2 * i
        bulk += term
        raised += term * (up * ones / (i + 1))
        term *= odds * (ones * (ones - 1) / ((i + 1.0) * (lack + i + 1)))
        i += 1
        if term < _NEGLIGIBLE * bulk:
            break
    i, term = mode, 1.0
    while i > 0:
        ones = first - 2 * i
        term *= i * 1.0 * (lack + i) / (odds * ((ones + 1.0) * (ones + 2)))
        i -= 1
        bulk += term
        raised += term * (up * (ones + 2) / (i + 1))
        if term < _NEGLIGIBLE * bulk:
            break
    if i == 0:
        raised += term * down * lack / (first + 1)
    return raised / bulk


@inline
def _climb(a: int, b: int, c: int, first: int, q: F64) -> None:
    """Fill q for the sums first, first + 1, ..., all at most n, up to a factor."""
    n = a + b + c
    before, value = 1.0, _start_ratio(a, b, c, first)
    q[0], q[1] = before, value
    for i in range(2, q.size):
        t = first + i - 1
        over = 1.0 * a * (t + 1)
        one, two = b * (n - t) / over, c * (2 * n - t + 1) / over
        before, value = value, one * value + two * before
        q[i] = value
        if value > _GREAT:
            before *= _SHRINK
            value *= _SHRINK
            for j in range(i + 1):
                q[j] *= _SHRINK


@inline
def _binomial(misses: int, hits: int, first: int, q: F64) -> None:
    """Fill q for the sums first, first + 1, ... of zeros and ones, up to a factor."""
    n = misses + hits
    mode = hits - first
    value = 1.0
    q[mode] = value
    for i in range(mode + 1, q.size):
        t = first + i
        value *= (n - t + 1.0) * hits / (1.0 * t * misses)
        q[i] = value
    value = 1.0
    for i in range(mode - 1, -1, -1):
        t = first + i
        value *= (t + 1.0) * misses / ((1.0 * n - t) * hits)
        q[i] = value


@inline
def _fill(a: int, b: int, c: int, first: int, q: F64) -> None:
    """Fill q for the sums of a window from `first` on, up to a factor."""
    if c == 0:
        _binomial(a, b, first, q)
        return
    n, last = a + b + c, first + q.size - 1
    meet = min(max(n, first), last) - first
    if meet > 0:
        _climb(a, b, c, first, q[: meet + 1])
        scale = 1.0 / q[meet]
        for i in range(meet + 1):
            q[i] *= scale
    if meet < q.size - 1:
        tail = np.empty(q.size - meet)
        _climb(c, b, a, 2 * n - last, tail)
        scale = 1.0 / tail[-1]
        for i in range(tail.size):
            q[q.size - 1 - i] = tail[i] * scale


@inline
def _sum_of(q: F64) -> float:
    """Plain sum, in four lanes so as not to wait for each addition."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = q.size - q.size % 4
    for i in range(0, whole, 4):
        a += q[i]
        b += q[i + 1]
        c += q[i + 2]
        d += q[i + 3]
    for i in range(whole, q.size):
        a += q[i]
    return (a + b) + (c + d)


@kernel
def few_window(a: int, b: int, c: int, out: I64) -> None:
    """Find which sums of n draws matter.

    Parameters
    ----------
    a, b, c : counts of the points 0, 1, 2; a and b positive, c may be 0.
    out : (2,), filled with the first of the sums and how many there are.
    """
    least, greatest = _window(a, b, c)
    out[0], out[1] = least, greatest - least + 1


@kernel
def few_probabilities(a: int, b: int, c: int, first: int, q: F64) -> None:
    """Probabilities of the sums of a window, to a relative error of some 1e-16 sqrt(size).

    Parameters
    ----------
    a, b, c : as for `few_window`.
    first : first sum of the window.
    q : (size,), of the window; filled.
    """
    _fill(a, b, c, first, q)
    total = _sum_of(q)
    for i in range(q.size):
        q[i] /= total


@kernel
def few_ends(a: int, b: int, c: int, lower: float, upper: float, out: F64) -> None:
    """Find the sums at both ends of an interval.

    Parameters
    ----------
    a, b, c : as for `few_window`.
    lower, upper : probabilities, above 0.
    out : (6,), filled: least t with P(T <= t) >= lower, that probability, P(T < t); greatest t
        with P(T >= t) >= upper, that probability, P(T > t).
    """
    first, last = _window(a, b, c)
    q = np.empty(last - first + 1)
    _fill(a, b, c, first, q)
    total = _sum_of(q)
    reached, before, i = q[0], 0.0, 0
    while reached < lower * total and i < q.size - 1:
        i += 1
        before = reached
        reached += q[i]
    out[0], out[1], out[2] = first + i, reached / total, before / total
    i = q.size - 1
    reached, before = q[i], 0.0
    while reached < upper * total and i > 0:
        i -= 1
        before = reached
        reached += q[i]
    out[3], out[4], out[5] = first + i, reached / total, before / total


def is_few(lattice: Lattice) -> bool:
    """Whether a lattice has no more than three points in a row."""
    return int(lattice.points[-1]) <= 2


def _counts_at_points(lattice: Lattice) -> tuple[int, int, int]:
    counts = lattice.counts.tolist()
    return (counts[0], counts[1], counts[2] if len(counts) > 2 else 0)


def few_lattice_ends(lattice: Lattice, lower: float, upper: float) -> tuple[int, int]:
    """Sums of points: the least with P(T <= t) >= lower, the greatest with P(T >= t) >= upper."""
    return sum_ends(*_counts_at_points(lattice), lower, upper)


def sum_ends(a: int, b: int, c: int, lower: float, upper: float) -> tuple[int, int]:
    """The ends of `few_ends`; integers decide what is too close for rounding."""
    out = np.empty(6)
    few_ends(a, b, c, lower, upper, out)
    low, found_low, before_low, high, found_high, before_high = out.tolist()
    noise = 1e-15 * (a + b + c + 64)
    if near(found_low, before_low, lower, noise * lower):
        low = settled(*_points_of(a, b, c), 1, lower, int(low))
    if near(found_high, before_high, upper, noise * upper):
        top = (2 if c else 1) * (a + b + c)
        high = top - settled(*_points_of(a, b, c), -1, upper, top - int(high))
    return int(low), int(high)


def _points_of(a: int, b: int, c: int) -> tuple[I64, I64]:
    counts = [a, b, c] if c else [a, b]
    return np.arange(len(counts)), np.array(counts)


@dataclass(frozen=True)
class Window:
    """Probabilities of the sums first, first + 1, ...; all other sums have next to none."""

    first: int
    probabilities: F64


def window_of(lattice: Lattice) -> Window:
    """The distribution of the sum of points, where it is above e**-50."""
    counts = _counts_at_points(lattice)
    out = np.empty(2, np.int64)
    few_window(*counts, out)
    first, size = out.tolist()
    q = np.empty(size)
    few_probabilities(*counts, first, q)
    return Window(first, q)


@dataclass(frozen=True)
class _Scale:
    """The mean of n values whose points sum to t is ``(base n + slope t) / (over n)``."""

    base: int
    slope: int
    over: int


@lru_cache(1024)
def _scale_of(values: tuple[float, ...]) -> _Scale | None:
    """Where points 0, 1, 2 of these values lie; None if they do not lie on them one by one."""
    lattice = prepare(Sample(np.array(values), np.ones(len(values), np.int64))).lattice
    if lattice is None or lattice.points.tolist() != list(range(len(values))):
        return None
    origin, step = lattice.origin, lattice.step
    over = origin.denominator * step.denominator
    return _Scale(origin.numerator * step.denominator, step.numerator * origin.denominator, over)


def few_mean_ends(
    values: list[float], counts: list[int], lower: float, upper: float
) -> tuple[float, float] | None:
    """Ends of the mean of a sample of two or three distinct values, correctly rounded.

    Parameters
    ----------
    values, counts : distinct values, ascending; how often each occurs.
    lower, upper : probabilities, above 0.

    Returns
    -------
    None if the values are not equally spaced, as reals meant: see `lattice.common_lattice`.
    """
    scale = _scale_of(tuple(values))
    if scale is None:
        return None
    a, b = counts[0], counts[1]
    c = counts[2] if len(counts) > 2 else 0
    n = a + b + c
    low, high = sum_ends(a, b, c, lower, upper)
    base, over = scale.base * n, scale.over * n
    return (base + scale.slope * low) / over, (base + scale.slope * high) / over
