"""Exact percentile bootstrap interval of a mean, without a random number.

The bootstrap draws n of the n cases with replacement, takes their mean, and repeats; its
percentile interval estimates two quantiles of that mean's distribution. Here the distribution is
computed, and the quantiles are read off it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.inversion import scan, transform
from ragcore_kernels.lattice import Lattice, Sample, common_lattice, distinct, exact_sum
from ragcore_kernels.quantile import bracket_quantile, lattice_quantile

__all__ = ["Interval", "exact_sum", "exponential", "mean_interval", "mean_intervals"]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_TIE = 1e-12  # relative; a probability this close to the level's counts as reaching it
_LOG_TAIL = 42.0  # e**-42 = 6e-19 is left outside the period
_LOG_TERM = 41.4  # transforms below e**-41.4 = 1e-18 are left out
_MAX_TERMS, _MAX_WORK = 1 << 18, 1 << 24
_RESOLUTION = 5e-7  # aim of the bound off a lattice, as a share of the range of the values
_MAX_BOUNDED_TERMS, _BOUNDED_NS = 50_000, 5_000_000
_MAX_RUNS = 1 << 13
_MAX_HALVES, _MAX_SPLIT_DRAWS = 20_000, 40
_MAX_EXACT_DRAWS, _MAX_EXACT_STEPS = 2_000, 3_000_000


@dataclass(frozen=True)
class Interval:
    """Interval of a mean, in the unit of the values.

    Parameters
    ----------
    low, high : ends, nan if there are no cases.
    method : ``"exact"``; ``"exact±3e-07"`` if an end is only known to be that near; ``""``
        without cases.
    bound : greatest possible distance of `low` and of `high` from the exact end, 0.0 if none.
    """

    low: float
    high: float
    method: str
    bound: float


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Percentile bootstrap interval of the mean of `values`, as if resampled without end.

    Parameters
    ----------
    values : (n,), one finite number for each case, in any unit.
    level : probability inside, in (0, 1).

    Returns
    -------
    With S* the mean of n draws with replacement and q = (1 - level) / 2, `low` is the least x
    with P(S* <= x) >= q and `high` the greatest x with P(S* >= x) >= q. Both are reached
    by some resample, and negated values give the mirrored interval. No cases give nan; one
    case, or equal cases, that value.

    Raises
    ------
    ValueError
        If a value is not finite, `values` is not one-dimensional, or `level` is outside (0, 1).

    Notes
    -----
    Values on a common lattice (0/1 measures, P@k, RR@k, recall over few documents, their
    differences; two values of any kind) have exact ends, correctly rounded. So has any small
    sample whose resamples can be listed. Other values are bracketed by Vaaler's bound, which
    needs no assumption, down to about a millionth of their range; `Interval.bound` says how far.

    Probabilities on a lattice are within 1e-14, and mostly within 1e-15, of integer arithmetic:
    terms left out add less than 1e-18 * log(support), rounding makes the rest. Should one come
    closer than that to q, integers decide for n <= 2,000. Equality is taken at q * (1 - 1e-12),
    so that a double next to a decimal `level` does no harm. The order of `values` does not
    matter, down to the last bit.

    References
    ----------
    Efron & Tibshirani, An introduction to the bootstrap, 1993, chapter 13.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values have shape {array.shape}; expected one dimension")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1")
    if array.size == 0:
        return Interval(math.nan, math.nan, "", 0.0)
    least, greatest = float(array.min()), float(array.max())
    if not (math.isfinite(least) and math.isfinite(greatest)):
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"values[{at}] is {array[at]}; expected finite numbers")
    if least == greatest:
        return Interval(least + 0.0, least + 0.0, "exact", 0.0)
    target = (1.0 - level) / 2.0 * (1.0 - _TIE)
    size = max(-least, greatest)
    exponent = 0 if 1e-6 < size <= 1.0 else math.frexp(size)[1]
    sample = distinct(np.ldexp(array, -exponent) if exponent else array)
    lattice = common_lattice(sample, exponent)
    ends = _lattice_ends(lattice, target) if lattice else None
    if lattice and ends:
        n = array.size
        return Interval(lattice.mean_of(ends[0], n), lattice.mean_of(ends[1], n), "exact", 0.0)
    low, high, bound = _oriented(sample, target)
    low, high, bound = (math.ldexp(part, exponent) for part in (low, high, bound))
    return Interval(low, high, _method(bound), bound)


def exponential(interval: Interval) -> Interval:
    """Interval of e**x from that of x: for geometric means, whose logarithms are resampled.

    Parameters
    ----------
    interval : of the logarithms; its bound becomes one on the ends of the result.
    """
    if not interval.method:
        return interval
    low, high = math.exp(interval.low), math.exp(interval.high)
    bound = high * math.expm1(interval.bound)
    return Interval(low, high, _method(bound), bound)


def mean_intervals(matrix: ArrayLike | Iterable[ArrayLike], level: float = 0.95) -> list[Interval]:
    """`mean_interval` of each measure.

    Parameters
    ----------
    matrix : (m, n), or m arrays of any lengths; one row for each measure.
    level : as for `mean_interval`.
    """
    return [mean_interval(row, level) for row in matrix]  # type: ignore[union-attr]


def _method(bound: float) -> str:
    return f"exact±{_rounded_up(bound)}" if bound else "exact"


def _rounded_up(bound: float) -> str:
    """One significant digit, never below `bound`."""
    text = f"{bound:.0e}"
    if float(text) < bound:
        power = math.floor(math.log10(bound))
        text = f"{bound + 0.5 * 10.0**power:.0e}"
    return text


def _reach(span: float, variance: float, n: int) -> float:
    """Bernstein: a sum of n draws exceeds its mean by this with probability e**-42 at most."""
    linear = span * _LOG_TAIL / 3.0
    return linear + math.sqrt(linear * linear + 2.0 * _LOG_TAIL * n * variance)


def _cell(p: F64, n: int, period: float, variance: float) -> int:
    """Frequencies between two points of the coarse pass of `scan`.

    The uncertainty between two points is to be some of what lies between the floor and the
    squared modulus that the most frequent value alone keeps up.
    """
    gap = math.exp(-2.0 * _LOG_TERM / n) - float(p.max()) ** 2
    arc = 2.0 * math.sqrt(min(max(0.35 * gap, 0.02), 0.2))
    return max(1, int(arc * period / (math.tau * math.sqrt(variance))))


def _lattice_ends(lattice: Lattice, target: float) -> tuple[int, int] | None:
    """Find the sums of points at both ends of the interval, or None if they would take too long."""
    points, counts = lattice.points, lattice.counts
    n, extent = int(counts.sum()), int(points[-1])
    total = int(counts @ points)
    middle = (2 * total + n) // (2 * n)
    rest = total - n * middle
    x = (points - middle).astype(np.float64)
    p = counts / n
    centred = x - rest / n
    variance = float(p @ (centred * centred))
    least = -min(total, math.ceil(_reach(-float(centred[0]), variance, n)))
    greatest = min(n * extent - total, math.ceil(_reach(float(centred[-1]), variance, n)))
    period = (greatest - least + 1) | 1
    last = period // 2
    cell = _cell(p, n, period, variance)
    if last // cell * x.size > _MAX_WORK or period * (extent + 1) >= 1 << 53:
        return None
    most = min(_MAX_TERMS, _MAX_WORK // x.size)
    found = _terms(x, p, n, rest, (variance, 0.0), period, cell, last, most, _LOG_TERM, True)
    if found is None:
        return None
    runs, terms, _, _ = found
    noise = 2e-16 * (n + 64)
    deviation = math.sqrt(n * variance)
    out = np.empty(2)
    ends = []
    for sign, bottom, top in ((1, least, greatest), (-1, -greatest, -least)):
        args = (target, deviation, sign, bottom, top, float(period), runs, terms, out)
        end = int(lattice_quantile(*args))
        if min(abs(out[0] - target), abs(out[1] - target)) <= noise:
            end = _settled(lattice, n, total, sign, target, end)
        ends.append(total + sign * end)
    return ends[0], ends[1]


def _terms(
    x: F64,
    p: F64,
    n: int,
    rest: float,
    shape: tuple[float, float],
    period: float,
    cell: int,
    last: int,
    most: int,
    log_term: float,
    is_lattice: bool,
) -> tuple[I64, F64, int, float] | None:
    """Compute runs, terms, degree and slack; None if a lattice needs more than `most`."""
    floor = math.exp(-2.0 * log_term / n)
    runs = np.empty((2, _MAX_RUNS), np.int64)
    out = np.empty(3, np.int64)
    kind = np.array(shape)
    scan(x, p, float(period), kind, cell, last, floor, most, runs, out)
    n_runs, n_terms, looked = (int(part) for part in out)
    if is_lattice and looked < last:
        return None
    runs = np.ascontiguousarray(runs[:, :n_runs])
    terms = np.empty((4, n_terms))
    degree = 0 if is_lattice else looked
    slack = transform(x, p, float(period), n, float(rest), degree, kind, floor, runs, terms)
    return runs, terms, degree, float(slack)


def _settled(lattice: Lattice, n: int, total: int, sign: int, target: float, end: int) -> int:
    """`end`, found with rounding, decided again by integers where that is affordable."""
    points, counts = lattice.points.tolist(), lattice.counts.tolist()
    mean = total
    if sign < 0:
        extent = points[-1]
        points = [extent - point for point in reversed(points)]
        counts.reverse()
        mean = n * extent - total
    if n > _MAX_EXACT_DRAWS or (mean + end + 2) * len(points) > _MAX_EXACT_STEPS:
        return end
    return _integer_quantile(points, counts, n, target) - mean


def _integer_quantile(points: list[int], counts: list[int], n: int, target: float) -> int:
    """Least sum s of n draws with ``P(sum <= s) >= target``, in integers alone.

    Coefficients q of Q = P**n, P the polynomial of `counts`, follow from P Q' = n P' Q.
    """
    exact = Fraction(target)
    wanted = exact.numerator * n**n
    coefficients = [counts[0] ** n]
    reached = coefficients[0]
    while reached * exact.denominator < wanted:
        k = len(coefficients)
        total = 0
        for point, count in zip(points[1:], counts[1:], strict=True):
            if point > k:
                break
            total += ((n + 1) * point - k) * count * coefficients[k - point]
        coefficients.append(total // (k * counts[0]))
        reached += coefficients[-1]
    return len(coefficients) - 1


def _oriented(sample: Sample, target: float) -> tuple[float, float, float]:
    """Both ends and their bound, off a lattice; a mirrored sample takes the very same steps."""
    values, counts = sample.values, sample.counts
    ahead = (values != -values[::-1]) | (counts != counts[::-1])
    at = int(ahead.argmax())
    flip = (float(values[at]), int(counts[at])) > (float(-values[-1 - at]), int(counts[-1 - at]))
    if flip:
        sample = Sample(-values[::-1], np.ascontiguousarray(counts[::-1]), sample.spread)
    low, high, bound = _split_ends(sample, target) or _bounded_ends(sample, target)
    return (-high, -low, bound) if flip else (low, high, bound)


def _bounded_ends(sample: Sample, target: float) -> tuple[float, float, float]:
    """Both ends, each in the middle of a proved bracket, and half the wider bracket."""
    values, counts = sample.values, sample.counts
    n = int(counts.sum())
    p = counts / n
    mean = exact_sum(p * values)
    x = values - mean
    rest = exact_sum(counts * x)
    variance = float(p @ (x * x)) + sample.spread
    below, above = (_reach(abs(float(end)), variance, n) for end in (x[0], x[-1]))
    extent = float(values[-1] - values[0])
    least, greatest = max(n * float(x[0]), -below), min(n * float(x[-1]), above)
    period = 1.001 * (greatest - least)
    last = math.ceil(period / (2.0 * n * _RESOLUTION * extent))
    cell = _cell(p, n, period, variance)
    most = min(_MAX_BOUNDED_TERMS, int(_BOUNDED_NS / (1.2 * x.size + 100.0)))
    if cell > 4:
        last = min(last, max(1, _BOUNDED_NS // x.size) * cell)
    shape = (variance, sample.spread)
    found = _terms(x, p, n, rest, shape, period, cell, last, most, _LOG_TERM, False)
    runs, terms, degree, slack = found  # type: ignore[misc]
    slack += 1e-15 * (n + 100)
    deviation = math.sqrt(n * variance)
    out = np.empty(2)
    ends, bound = [], 0.0
    for sign, bottom, top in ((1, least, greatest), (-1, -greatest, -least)):
        args = (target, slack, deviation, sign, bottom, top, period, degree, runs, terms, out)
        bracket_quantile(*args)
        ends.append(mean + sign * 0.5 * (out[0] + out[1]) / n)
        bound = max(bound, 0.5 * (out[1] - out[0]) / n)
    bound += 1e-15 + (2.0**-40 * extent if sample.spread else 0.0)
    return float(ends[0]), float(ends[1]), float(bound)


@kernel
def _split_quantile(a: F64, weights: F64, b: F64, cumulated: F64, target: float) -> float:
    """Least atom x of A + B with ``P(A + B <= x) >= target``.

    Parameters
    ----------
    a, weights : (n_a,), values of A in ascending order, probabilities.
    b, cumulated : (n_b,), values of B in ascending order, ``P(B <= b)``.
    target : a probability, above 0.
    """
    low, high = a[0] + b[0], a[-1] + b[-1]
    span = high - low
    low -= span
    atom = high
    for _ in range(64):
        x = 0.5 * (low + high)
        if x <= low or x >= high:
            break
        total, nearest = 0.0, low
        j = b.size - 1
        for i in range(a.size):
            while j >= 0 and a[i] + b[j] > x:
                j -= 1
            if j < 0:
                break
            total += weights[i] * cumulated[j]
            nearest = max(nearest, a[i] + b[j])
        if total >= target:
            high, atom = nearest, nearest
        else:
            low = x
    return atom


def _half(values: list[float], p: list[float], draws: int) -> tuple[F64, F64]:
    """Every sum of `draws` draws, in ascending order, with its probability."""
    sums = [np.zeros(1)] + [np.zeros(0)] * draws
    weights = [np.ones(1)] + [np.zeros(0)] * draws
    for value, share in zip(values, p, strict=True):
        odds = [(draws * share) ** i / math.factorial(i) for i in range(draws + 1)]
        pairs = [[(m - i, i) for i in range(m + 1)] for m in range(draws + 1)]
        grown = [np.concatenate([sums[m] + i * value for m, i in row]) for row in pairs]
        weights = [np.concatenate([weights[m] * odds[i] for m, i in row]) for row in pairs]
        sums = grown
    order = np.argsort(sums[-1], kind="stable")
    chosen = weights[-1][order]
    return sums[-1][order], chosen / math.fsum(chosen.tolist())


def _split_ends(sample: Sample, target: float) -> tuple[float, float, float] | None:
    """Both ends from a list of all sums of half the draws, or None if it would be too long."""
    n, kinds = int(sample.counts.sum()), sample.values.size
    half = n - n // 2
    if n > _MAX_SPLIT_DRAWS or math.comb(half + kinds - 1, half) > _MAX_HALVES:
        return None
    values, p = sample.values.tolist(), (sample.counts / n).tolist()
    a, weights = _half(values, p, n // 2)
    b, others = _half(values, p, half)
    ends = []
    for sign in (1, -1):
        cumulated = np.cumsum(others)
        end = _split_quantile(a, weights, b, cumulated, target)
        ends.append(sign * float(end) / n)
        a, weights, b, others = -a[::-1], weights[::-1], -b[::-1], others[::-1]
        a, weights, b, others = (np.ascontiguousarray(part) for part in (a, weights, b, others))
    return ends[0], ends[1], 0.0
