"""Exact percentile bootstrap interval of a mean, without a random number.

The bootstrap draws n of the n cases with replacement, takes their mean, and repeats; its
percentile interval estimates two quantiles of that mean's distribution. Here the distribution is
computed, and the quantiles are read off it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels.halves import halves_ends, halves_of
from ragcore_kernels.histogram import (
    Sample,
    count_few,
    histogram,
    plain_values,
    refuse_values,
    sample_of,
)
from ragcore_kernels.intervals import Interval, exponential, method_of
from ragcore_kernels.lattice import Prepared, prepare, prepare_values
from ragcore_kernels.monte_carlo import drawn_interval, fallback_replicates
from ragcore_kernels.spectrum import (
    bounded_ends,
    bounded_spectrum,
    lattice_ends,
    lattice_spectrum,
    oriented,
)
from ragcore_kernels.sums import exact_sum
from ragcore_kernels.trinomial import few_lattice_ends, few_mean_ends, is_few

__all__ = [
    "Interval",
    "Sample",
    "exact_sum",
    "exponential",
    "interval_at",
    "interval_of",
    "mean_interval",
    "mean_intervals",
]

F64 = NDArray[np.float64]

TIE = 1e-12
"""Relative; a probability this close to the level's counts as reaching it."""

MAX_DOUBT = 0.01
"""A bound above this share of the interval's width, or of the deviation of the mean if that is
more, is no certificate: random numbers take over."""


def mean_interval(values: ArrayLike | Sample, level: float = 0.95) -> Interval:
    """Percentile bootstrap interval of the mean of `values`, as if resampled without end.

    Parameters
    ----------
    values : (n,), one finite number for each case, in any unit; or their `histogram`.
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
    Should that exceed `MAX_DOUBT`, random numbers take over and `Interval.method` says so.

    Probabilities on a lattice are within 1e-14, and mostly within 1e-15, of integer arithmetic:
    terms left out add less than 1e-18 * log(support), rounding makes the rest. Should one come
    closer than that to q, integers decide for n <= 2,000. Equality is taken at q * (1 - 1e-12),
    so that a double next to a decimal `level` does no harm. The order of `values` does not
    matter, down to the last bit, and neither does whether they come as a histogram.

    References
    ----------
    Efron & Tibshirani, An introduction to the bootstrap, 1993, chapter 13.
    """
    if isinstance(values, Sample):
        return interval_of(values, level)
    tail = _tail(level)
    array = plain_values(values)
    found, counts = np.empty(3), np.empty(3, np.int64)
    kinds = int(count_few(array, found, counts))
    if kinds >= 0:
        ends = _few_ends(found.tolist()[:kinds], counts.tolist()[:kinds], tail, tail)
        if ends is not None:
            return ends
    least, greatest = float(array.min()), float(array.max())
    if not math.isfinite(greatest - least):
        refuse_values(array)
    tail *= 1.0 - TIE
    found = _interval(prepare_values(array, least, greatest), tail, tail, (0.0, 0.0))
    return found or _drawn(histogram(array), tail, tail)


def interval_of(sample: Sample, level: float = 0.95) -> Interval:
    """`mean_interval` of the values that a sample counts: equal to it, to the last bit.

    Parameters
    ----------
    sample : from `histogram` or `merge`, whatever the parts were.
    level : as for `mean_interval`.
    """
    tail = _tail(level)
    return interval_at(sample, tail, tail)


def interval_at(
    values: ArrayLike | Sample,
    lower: float,
    upper: float,
    doubt: tuple[float, float] = (0.0, 0.0),
) -> Interval:
    """Interval between any two quantiles of the resampled mean.

    Parameters
    ----------
    values : as for `mean_interval`.
    lower, upper : probabilities below `low` and above `high`, each in (0, 1): `low` is the least
        x with P(S* <= x) >= lower, `high` the greatest with P(S* >= x) >= upper. Above 1/2 the
        ends may cross.
    doubt : by how much `lower` and `upper` may be off. Off a lattice the bound covers it; where
        ends are exact it does nothing.

    Raises
    ------
    ValueError
        As for `mean_interval`, or if a probability is outside (0, 1).
    """
    for probability in (lower, upper):
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability is {probability}; expected a number between 0 and 1")
    sample = sample_of(values)
    if sample.values.size <= 3:
        ends = _few_ends(sample.values.tolist(), sample.counts.tolist(), lower, upper)
        if ends is not None:
            return ends
    lower, upper = lower * (1.0 - TIE), upper * (1.0 - TIE)
    return _interval(prepare(sample), lower, upper, doubt) or _drawn(sample, lower, upper)


def mean_intervals(matrix: ArrayLike | Iterable[ArrayLike], level: float = 0.95) -> list[Interval]:
    """`mean_interval` of each measure.

    Parameters
    ----------
    matrix : (m, n), or m arrays of any lengths; one row for each measure.
    level : as for `mean_interval`.
    """
    return [mean_interval(row, level) for row in matrix]  # type: ignore[union-attr]


def _tail(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1")
    return (1.0 - level) / 2.0


def _drawn(sample: Sample, lower: float, upper: float) -> Interval:
    return drawn_interval(sample, fallback_replicates(sample.size), 0, lower, upper)


def _few_ends(
    values: list[float], counts: list[int], lower: float, upper: float
) -> Interval | None:
    """Interval of up to three distinct values; None if they are not equally spaced."""
    if len(values) < 2:
        value = values[0] if values else math.nan
        return Interval(value, value, "exact" if values else "", 0.0)
    ends = few_mean_ends(values, counts, lower * (1.0 - TIE), upper * (1.0 - TIE))
    return None if ends is None else Interval(*ends, "exact", 0.0)


def _interval(
    prepared: Prepared, lower: float, upper: float, doubt: tuple[float, float]
) -> Interval | None:
    """Interval of a sample of any kind by the first way that is open; None if in too much doubt."""
    lattice, n = prepared.lattice, prepared.n
    sums = None
    if lattice and is_few(lattice):
        sums = few_lattice_ends(lattice, lower, upper)
    elif lattice and (spectrum := lattice_spectrum(prepared)):
        sums = lattice_ends(lattice, spectrum, lower, upper)
    if lattice and sums:
        return Interval(lattice.mean_of(sums[0], n), lattice.mean_of(sums[1], n), "exact", 0.0)
    turned = oriented(prepared)
    if turned.flip:
        lower, upper, doubt = upper, lower, (doubt[1], doubt[0])
    if halves := halves_of(turned.sample):
        low, high = halves_ends(halves, lower, upper)
        bound = 0.0
    else:
        spectrum = bounded_spectrum(prepared)
        low, high, bound = bounded_ends(turned.sample, spectrum, lower, upper, doubt)
        if bound > MAX_DOUBT * max(high - low, spectrum.deviation / n):
            return None
    if turned.flip:
        low, high = -high, -low
    low, high, bound = (math.ldexp(part, prepared.exponent) for part in (low, high, bound))
    return Interval(low, high, method_of(bound), bound)
