"""Laws of independent draws, and the distribution of their sum on a lattice or on none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels.lattice import Sample, exact_sum
from ragcore_kernels.products import scan_sums, smoothed, transform_sums
from ragcore_kernels.quantile import bracket_quantile
from ragcore_kernels.spectrum import reach

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LOG_TERM = 41.4
"""Transforms below e**-41.4 = 1e-18 are left out."""

MAX_WORK = 1 << 24
"""Values times frequencies that a transform may take."""

_MAX_RUNS = 1 << 13
_MAX_TERMS, _MAX_BOUNDED_TERMS, _BOUNDED_NS = 1 << 18, 50_000, 5_000_000
_RESOLUTION = 5e-7  # aim of the bound off a lattice, as a share of the range of the values


@dataclass(frozen=True)
class Laws:
    """Finite laws and the draws from each; values are centred on integers or on their means.

    Parameters
    ----------
    x, p : (n_values,), values of the first law, then of the second, ...; probabilities.
    starts : (n_laws + 1,), first value of each law.
    draws : (n_laws,)
    rests : (n_laws,), draws times the mean of x.
    shape : (2, n_laws), variance of one draw, spread of its bins, see `lattice.Sample`.
    """

    x: F64
    p: F64
    starts: I64
    draws: I64
    rests: F64
    shape: F64

    @property
    def variance(self) -> float:
        """Variance of the sum."""
        return exact_sum(self.draws * self.shape[0])

    @property
    def width(self) -> float:
        """Greatest difference between two values of one law."""
        return max(float(np.ptp(self.x[a:b])) for a, b in self.slices())

    def slices(self) -> list[tuple[int, int]]:
        """First value and end of each law."""
        ends = self.starts.tolist()
        return list(pairwise(ends))

    def extremes(self) -> tuple[float, float]:
        """Least and greatest sum less its expectation, as far as it matters."""
        means = np.repeat(self.rests / self.draws, np.diff(self.starts))
        centred = self.x - means
        low = sum(n * centred[a] for (a, _), n in zip(self.slices(), self.draws, strict=True))
        high = sum(n * centred[b - 1] for (_, b), n in zip(self.slices(), self.draws, strict=True))
        below = reach(-float(centred.min()), self.variance)
        above = reach(float(centred.max()), self.variance)
        return max(float(low), -below), min(float(high), above)


def cell_of(laws: Laws, period: float) -> int:
    """Frequencies between two points of the coarse pass of `scan_sums`.

    The uncertainty between two points is to be some of what lies between the floor and the
    squared modulus that the most frequent values alone keep up.
    """
    n = int(laws.draws.sum())
    kept = [2.0 * math.log(float(laws.p[a:b].max())) for a, b in laws.slices()]
    gap = math.exp(-2.0 * LOG_TERM / n) - math.exp(float(laws.draws @ np.array(kept)) / n)
    arc = 2.0 * math.sqrt(min(max(0.35 * gap, 0.02), 0.2))
    return max(1, int(arc * period / (math.tau * math.sqrt(laws.variance / n))))


def terms_of(
    laws: Laws, period: float, cell: int, last: int, most: int, is_lattice: bool
) -> tuple[I64, F64, int, float] | None:
    """Compute runs, terms, degree and slack; None if a lattice needs more than `most`.

    Parameters
    ----------
    laws : on a lattice, x are integers.
    period : N.
    cell, last, most : as for `scan_sums`.
    is_lattice : weights are to be those of a lattice.
    """
    runs = np.empty((2, _MAX_RUNS), np.int64)
    out = np.empty(3, np.int64)
    args = (laws.x, laws.p, laws.starts, laws.draws)
    scan_sums(*args, float(period), laws.shape, cell, last, -2.0 * LOG_TERM, most, runs, out)
    n_runs, n_terms, looked = (int(part) for part in out)
    if is_lattice and looked < last:
        return None
    runs = np.ascontiguousarray(runs[:, :n_runs])
    terms = np.empty((4, n_terms))
    degree = 0 if is_lattice else looked
    slack = transform_sums(*args, laws.rests, float(period), degree, laws.shape, runs, terms)
    return runs, terms, degree, float(slack)


@dataclass(frozen=True)
class Smoothed:
    """Distribution of a centred sum on no lattice, known up to a proved bound.

    Parameters
    ----------
    least, greatest : the sum less its expectation lies between.
    deviation : of the sum.
    period, degree, runs, terms : as for `transform_sums`.
    slack : error of any computed probability, besides that of the degree.
    """

    least: float
    greatest: float
    deviation: float
    period: float
    degree: int
    runs: I64
    terms: F64
    slack: float

    def bracket(self, target: float, sign: int, slack: float = 0.0) -> tuple[float, float]:
        """Enclose the least y with ``P(sign * (S - E S) <= y) >= target``.

        Parameters
        ----------
        target : a probability, above 0.
        sign : 1 or -1.
        slack : error of `target`.
        """
        out = np.empty(2)
        ends = (self.least, self.greatest) if sign > 0 else (-self.greatest, -self.least)
        known = (self.period, self.degree, self.runs, self.terms, out)
        bracket_quantile(target, self.slack + slack, self.deviation, sign, *ends, *known)
        return float(out[0]), float(out[1])

    def at(self, y: float) -> tuple[float, float]:
        """``P(S - E S <= y)`` and its bound."""
        if not self.least <= y <= self.greatest:
            return float(y > 0), self.slack
        out = np.empty(2)
        smoothed(float(y), self.period, self.degree, self.runs, self.terms, out)
        return float(out[0]), float(out[1]) + self.slack


def laws_of(samples: list[Sample], draws: list[int]) -> tuple[Laws, F64]:
    """Centre each sample of two or more values on its mean.

    Parameters
    ----------
    samples : values and counts of each law.
    draws : from each law.

    Returns
    -------
    The laws and their means.
    """
    means = np.array([exact_sum(s.values * (s.counts / s.counts.sum())) for s in samples])
    x = [s.values - mean for s, mean in zip(samples, means, strict=True)]
    p = [s.counts / s.counts.sum() for s in samples]
    rests = np.array([n * exact_sum(a * b) for a, b, n in zip(x, p, draws, strict=True)])
    variances = [float(b @ (a * a)) + s.spread for a, b, s in zip(x, p, samples, strict=True)]
    shape = np.array([variances, [s.spread for s in samples]])
    starts = np.cumsum([0] + [a.size for a in x])
    parts = (np.concatenate(x), np.concatenate(p), starts, np.array(draws))
    return Laws(*parts, rests, shape), means


def smoothed_sum(laws: Laws, effort: float = 1.0) -> Smoothed:
    """Approach the distribution of a sum on no lattice.

    Parameters
    ----------
    laws : centred on their means.
    effort : share of the usual work.
    """
    n = int(laws.draws.sum())
    least, greatest = laws.extremes()
    period = 1.001 * (greatest - least)
    last = math.ceil(period / (2.0 * n * _RESOLUTION * laws.width))
    cell = cell_of(laws, period)
    work = effort * _BOUNDED_NS
    most = min(int(effort * _MAX_BOUNDED_TERMS), int(work / (1.2 * laws.x.size + 100.0)))
    if cell > 4:
        last = min(last, max(1, int(work) // laws.x.size) * cell)
    found = terms_of(laws, period, cell, last, max(most, 8), False)
    runs, terms, degree, slack = found  # type: ignore[misc]
    slack += 1e-15 * (n + 100)
    deviation = math.sqrt(laws.variance)
    return Smoothed(least, greatest, deviation, period, degree, runs, terms, slack)


def lattice_terms(laws: Laws, least: int, greatest: int) -> tuple[int, I64, F64] | None:
    """Period, runs and terms of a sum of integers; None if they would take too long.

    Parameters
    ----------
    laws : of integers.
    least, greatest : the sum less its expectation lies between.
    """
    period = (greatest - least + 1) | 1
    last = period // 2
    cell = cell_of(laws, period)
    width = int(laws.width)
    if last // cell * laws.x.size > MAX_WORK or period * (width + 1) >= 1 << 53:
        return None
    most = min(_MAX_TERMS, MAX_WORK // laws.x.size)
    found = terms_of(laws, period, cell, last, most, True)
    return (period, found[0], found[1]) if found else None
