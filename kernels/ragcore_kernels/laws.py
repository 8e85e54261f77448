"""Distribution of a sum of independent draws from several finite laws, by inversion.

As module `inversion` for one law: n_k draws from law k give the transform
``prod phi_k**n_k``, and the same weights turn it into a distribution. A cell of frequencies is
left out when the bounds of all ``|phi_k|**2`` together prove the product negligible there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.inversion import (
    BLOCK,
    TURN,
    _less_one_run,  # pyright: ignore[reportPrivateUsage]
    _phi_run,  # pyright: ignore[reportPrivateUsage]
    _power_at,  # pyright: ignore[reportPrivateUsage]
    _take,  # pyright: ignore[reportPrivateUsage]
    _turns,  # pyright: ignore[reportPrivateUsage]
    _weights,  # pyright: ignore[reportPrivateUsage]
)
from ragcore_kernels.lattice import Sample, exact_sum
from ragcore_kernels.plane import LOG_TERM, reach
from ragcore_kernels.quantile import bracket_quantile, distribution

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

MAX_WORK = 1 << 24
"""Values times frequencies that a transform may take."""

_CHUNK = 1024
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
        return list(zip(ends[:-1], ends[1:], strict=True))

    def extremes(self) -> tuple[float, float]:
        """Least and greatest sum less its expectation, as far as it matters."""
        means = np.repeat(self.rests / self.draws, np.diff(self.starts))
        centred = self.x - means
        low = sum(n * centred[a] for (a, _), n in zip(self.slices(), self.draws, strict=True))
        high = sum(n * centred[b - 1] for (_, b), n in zip(self.slices(), self.draws, strict=True))
        below = reach(-float(centred.min()), self.variance)
        above = reach(float(centred.max()), self.variance)
        return max(float(low), -below), min(float(high), above)


@inline
def _may_matter(
    first: F64, last: F64, width: float, angle: float, draws: I64, shape: F64, log_floor: float
) -> bool:
    """Whether the squared product may reach e**log_floor between two points `width` apart.

    For each law as in `inversion`: between two points |phi|**2 exceeds the greater end by at most
    a quarter of variance times squared distance.
    """
    total = 0.0
    for k in range(draws.size):
        blur = 0.5 * shape[1, k] * angle * angle
        top = max(first[k], last[k]) + 0.25 * shape[0, k] * width * width
        top += 2.0 * blur + blur * blur
        if top < 1.0:
            total += draws[k] * math.log(max(top, 1e-300))
    return total >= log_floor


@kernel
def scan_sums(
    x: F64,
    p: F64,
    starts: I64,
    draws: I64,
    period: float,
    shape: F64,
    cell: int,
    last: int,
    log_floor: float,
    most: int,
    runs: I64,
    out: I64,
) -> None:
    """Find every frequency in 1..last where the squared transform may reach e**log_floor.

    Parameters
    ----------
    x, p, starts, draws, shape : see `Laws`.
    period : N.
    cell, last, most, runs, out : as for `inversion.scan`.
    log_floor : logarithm of a share of 1.
    """
    if cell <= 4:
        runs[0, 0] = 1
        runs[1, 0] = min(last, most)
        out[0], out[1], out[2] = 1, runs[1, 0], runs[1, 0]
        return
    out[0], out[1] = 0, 0
    laws = draws.size
    unit = TURN / period
    re, im, table = np.empty(_CHUNK), np.empty(_CHUNK), np.empty((2, BLOCK))
    powers = np.empty((_CHUNK, laws))
    stack = np.empty((64, 2), np.int64)
    ends = np.empty((64, 2, laws))
    for chunk in range(0, last + 1, (_CHUNK - 1) * cell):
        count = min(_CHUNK - 1, (last - chunk) // cell + 1)
        for k in range(laws):
            a, b = starts[k], starts[k + 1]
            _phi_run(x[a:b], p[a:b], period, chunk, cell, count + 1, re, im, table)
            for i in range(count + 1):
                powers[i, k] = re[i] * re[i] + im[i] * im[i]
        for i in range(count):
            stack[0, 0], stack[0, 1] = chunk + i * cell, chunk + (i + 1) * cell
            ends[0, 0], ends[0, 1] = powers[i], powers[i + 1]
            depth = 1
            while depth > 0:
                depth -= 1
                a, b = stack[depth, 0], stack[depth, 1]
                if a > last or not _may_matter(
                    ends[depth, 0], ends[depth, 1], (b - a) * unit, b * unit, draws, shape,
                    log_floor,
                ):  # fmt: skip
                    continue
                if b - a > 16:  # look again, at half the distance; the left half first
                    middle = (a + b) >> 1
                    stack[depth + 1, 0], stack[depth + 1, 1] = a, middle
                    ends[depth + 1, 0] = ends[depth, 0]
                    for k in range(laws):
                        c, d = starts[k], starts[k + 1]
                        ends[depth + 1, 1, k] = _power_at(x[c:d], p[c:d], period, middle)
                    stack[depth, 0] = middle
                    ends[depth, 0] = ends[depth + 1, 1]
                    depth += 2
                    continue
                if not _take(max(a, 1), min(b, last + 1), most, runs, out):
                    out[2] = max(a, 1) - 1
                    return
    out[2] = last


@kernel
def transform_sums(
    x: F64,
    p: F64,
    starts: I64,
    draws: I64,
    rests: F64,
    period: float,
    degree: int,
    shape: F64,
    runs: I64,
    terms: F64,
) -> float:
    """Evaluate the transform of the centred sum and the weights at the frequencies of `runs`.

    Near frequency 0, where rounding would be multiplied by the draws, a transform less 1 is summed
    from terms of its own size, with the mean taken out exactly.

    Parameters
    ----------
    x, p, starts, draws, rests, shape : see `Laws`.
    period : N.
    degree : 0 for a lattice; else Vaaler's degree, at least the highest frequency.
    runs : (2, n_runs)
    terms : (4, n_frequencies), filled: re psi, im psi, w, v; see `quantile.distribution`.

    Returns
    -------
    Bound of the error of the distribution that comes from binning, see ``shape[1]``.
    """
    laws = draws.size
    re, im, table = np.empty(_CHUNK), np.empty(_CHUNK), np.empty((2, BLOCK))
    logs, angles = np.empty(_CHUNK), np.empty(_CHUNK)
    blurs, tops, least = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    at, slack = 0, 0.0
    binned = shape[1].max() > 0.0
    near = 20_000 // x.size
    for r in range(runs.shape[1]):
        done = 0
        while done < runs[1, r]:
            k0 = runs[0, r] + done
            count = min(_CHUNK, runs[1, r] - done)
            close = r == 0 and k0 == 1 and near >= 8
            if close:
                count = min(count, near)
            for part in (logs, angles, blurs, tops, least):
                part[:count] = 0.0
            for k in range(laws):
                a, b, n = starts[k], starts[k + 1], draws[k]
                if close:
                    _less_one_run(x[a:b], p[a:b], period, rests[k] / n, count, re, im)
                else:
                    _phi_run(x[a:b], p[a:b], period, k0, np.int64(1), count, re, im, table)
                for i in range(count):
                    if close:
                        log = math.log1p(2.0 * re[i] + re[i] * re[i] + im[i] * im[i])
                        angles[i] += n * math.atan2(im[i], 1.0 + re[i])
                    else:
                        log = math.log(max(re[i] * re[i] + im[i] * im[i], 1e-300))
                        angles[i] += n * math.atan2(im[i], re[i])
                        angles[i] -= TURN * _turns((k0 + i) * rests[k], period)
                    logs[i] += n * log
                    if not binned:
                        continue
                    blur = 0.5 * shape[1, k] * (TURN * (k0 + i) / period) ** 2
                    top = math.log(min(1.0, math.exp(0.5 * log) + blur))
                    blurs[i] += n * blur
                    tops[i] += n * top
                    least[i] = min(least[i], top)
            for i in range(count):
                _weights(terms, at, k0 + i, period, degree)
                size = math.exp(0.5 * logs[i])
                terms[0, at] = size * math.cos(angles[i])
                terms[1, at] = size * math.sin(angles[i])
                if blurs[i] > 0.0:  # one factor replaced after another, the rest at most its top
                    weight = terms[2, at] + terms[3, at] / (degree + 1.0)
                    slack += weight * blurs[i] * math.exp(tops[i] - least[i])
                at += 1
            done += count
    return slack


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


@kernel
def smoothed(y: float, period: float, degree: int, runs: I64, terms: F64, out: F64) -> None:
    """Distribution at y as smoothed by Vaaler's weights, and how far the true one may be.

    Parameters
    ----------
    y : distance from the expectation, at most half a period.
    period, degree, runs, terms : as for `transform_sums`.
    out : (2,), filled.
    """
    distribution(y, np.int64(1), period, runs, terms, np.empty((2, BLOCK)), out)
    out[1] = period / (2.0 * degree + 2.0) * abs(out[1])


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


def method_of(bound: float) -> str:
    """How an interval was found: its bound with one significant digit, never below it.

    Parameters
    ----------
    bound : 0.0 if the ends are exact.
    """
    if not bound:
        return "exact"
    text = f"{bound:.0e}"
    if float(text) < bound:
        text = f"{bound + 0.5 * 10.0 ** math.floor(math.log10(bound)):.0e}"
    return f"exact±{text}"
