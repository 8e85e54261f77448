"""The transform of a resampled sum, made once, and the quantiles that it gives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels.histogram import Sample
from ragcore_kernels.integers import near, settled
from ragcore_kernels.inversion import scan, transform
from ragcore_kernels.lattice import Lattice, Prepared
from ragcore_kernels.quantile import bracket_quantile, lattice_quantile
from ragcore_kernels.sums import exact_sum

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LOG_TAIL = 42.0
"""e**-42 = 6e-19 is left outside the period."""

LOG_TERM = 41.4
"""Transforms below e**-41.4 = 1e-18 are left out."""

RESOLUTION = 5e-7
"""Aim of the bound off a lattice, as a share of the range of the values."""

FINENESS = 2e-3
"""The same as a share of the deviation of the mean, where that asks for more."""

_MAX_TERMS, _MAX_WORK = 1 << 18, 1 << 24
_MAX_BOUNDED_TERMS, _BOUNDED_NS = 50_000, 5_000_000
_MAX_RUNS = 1 << 13


@dataclass(frozen=True)
class Spectrum:
    """Transform of S - E S, S the sum of n draws, where it is not negligible.

    `centre` is E S as a sum of points on a lattice, else the mean of the values. S - E S keeps
    to `least`..`greatest`. `runs`, `terms`, `degree` and `slack` are those of
    `inversion.transform`, with rounding in the slack.
    """

    n: int
    centre: float
    least: float
    greatest: float
    period: float
    deviation: float
    runs: I64
    terms: F64
    degree: int
    slack: float


def reach(span: float, variance: float) -> float:
    """Bernstein: an independent sum exceeds its mean by this with probability e**-42 at most.

    Parameters
    ----------
    span : greatest excess of one draw over its mean.
    variance : of the sum.
    """
    linear = span * LOG_TAIL / 3.0
    return linear + math.sqrt(linear * linear + 2.0 * LOG_TAIL * variance)


def cell_of(p: F64, n: int, period: float, variance: float) -> int:
    """Frequencies between two points of the coarse pass of `scan`.

    The uncertainty between two points is to be some of what lies between the floor and the
    squared modulus that the most frequent value alone keeps up.
    """
    gap = math.exp(-2.0 * LOG_TERM / n) - float(p.max()) ** 2
    arc = 2.0 * math.sqrt(min(max(0.35 * gap, 0.02), 0.2))
    return max(1, int(arc * period / (math.tau * math.sqrt(variance))))


def terms_of(
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


def lattice_spectrum(prepared: Prepared) -> Spectrum | None:
    """The spectrum on the lattice, made once; None if there is no lattice or it takes too long."""
    lattice = prepared.lattice
    if lattice is None:
        return None
    return prepared.sample.kept("lattice_spectrum", lambda: _lattice_spectrum(lattice))


def _lattice_spectrum(lattice: Lattice) -> Spectrum | None:
    points, counts = lattice.points, lattice.counts
    n, extent = int(counts.sum()), int(points[-1])
    total = int(counts @ points)
    middle = (2 * total + n) // (2 * n)
    rest = total - n * middle
    x = (points - middle).astype(np.float64)
    p = counts / n
    centred = x - rest / n
    variance = float(p @ (centred * centred))
    least = -min(total, math.ceil(reach(-float(centred[0]), n * variance)))
    greatest = min(n * extent - total, math.ceil(reach(float(centred[-1]), n * variance)))
    period = (greatest - least + 1) | 1
    last = period // 2
    cell = cell_of(p, n, period, variance)
    if last // cell * x.size > _MAX_WORK or period * (extent + 1) >= 1 << 53:
        return None
    most = min(_MAX_TERMS, _MAX_WORK // x.size)
    found = terms_of(x, p, n, rest, (variance, 0.0), period, cell, last, most, LOG_TERM, True)
    if found is None:
        return None
    runs, terms, _, _ = found
    noise = 2e-16 * (n + 64)
    deviation = math.sqrt(n * variance)
    return Spectrum(n, total, least, greatest, float(period), deviation, runs, terms, 0, noise)


def lattice_ends(
    lattice: Lattice, spectrum: Spectrum, lower: float, upper: float
) -> tuple[int, int]:
    """Sums of points: the least with P(S <= s) >= lower, the greatest with P(S >= s) >= upper."""
    total = int(spectrum.centre)
    top = spectrum.n * int(lattice.points[-1])
    least, greatest = int(spectrum.least), int(spectrum.greatest)
    out = np.empty(2)
    ends = []
    sides = ((1, lower, least, greatest), (-1, upper, -greatest, -least))
    for sign, target, bottom, highest in sides:
        end = lattice_quantile(
            target, spectrum.deviation, sign, bottom, highest, spectrum.period,
            spectrum.runs, spectrum.terms, out,
        )  # fmt: skip
        from_side = int(end) + (total if sign > 0 else top - total)
        if near(float(out[0]), float(out[1]), target, spectrum.slack):
            from_side = settled(lattice.points, lattice.counts, sign, target, from_side)
        ends.append(from_side if sign > 0 else top - from_side)
    return ends[0], ends[1]


@dataclass(frozen=True)
class Oriented:
    """A sample, or its mirror image if `flip`: whichever of the two comes first."""

    sample: Sample
    flip: bool


def oriented(prepared: Prepared) -> Oriented:
    """The orientation in which a sample and its mirrored self take the very same steps."""
    return prepared.sample.kept("oriented", lambda: _oriented(prepared.sample))


def _oriented(sample: Sample) -> Oriented:
    values, counts = sample.values, sample.counts
    ahead = (values != -values[::-1]) | (counts != counts[::-1])
    at = int(ahead.argmax())
    flip = (float(values[at]), int(counts[at])) > (float(-values[-1 - at]), int(counts[-1 - at]))
    if flip:
        sample = Sample(-values[::-1], np.ascontiguousarray(counts[::-1]), sample.spread)
    return Oriented(sample, flip)


def bounded_spectrum(prepared: Prepared) -> Spectrum:
    """The spectrum of the oriented sample off a lattice, made once."""
    return prepared.sample.kept("spectrum", lambda: spectrum_of(oriented(prepared).sample))


def spectrum_of(sample: Sample) -> Spectrum:
    """The spectrum off a lattice: as many frequencies as the aim asks and the time allows."""
    values, counts = sample.values, sample.counts
    n = int(counts.sum())
    p = counts / n
    mean = exact_sum(p * values)
    x = values - mean
    rest = exact_sum(counts * x)
    variance = float(p @ (x * x)) + sample.spread
    below, above = (reach(abs(float(end)), n * variance) for end in (x[0], x[-1]))
    extent = float(values[-1] - values[0])
    least, greatest = max(n * float(x[0]), -below), min(n * float(x[-1]), above)
    period = 1.001 * (greatest - least)
    deviation = math.sqrt(n * variance)
    aim = min(n * RESOLUTION * extent, FINENESS * deviation)
    last = math.ceil(period / (2.0 * aim))
    cell = cell_of(p, n, period, variance)
    most = min(_MAX_BOUNDED_TERMS, int(_BOUNDED_NS / (1.2 * x.size + 100.0)))
    if cell > 4:
        last = min(last, max(1, _BOUNDED_NS // x.size) * cell)
    shape = (variance, sample.spread)
    found = terms_of(x, p, n, rest, shape, period, cell, last, most, LOG_TERM, False)
    runs, terms, degree, slack = found  # type: ignore[misc]
    slack += 1e-15 * (n + 100)
    return Spectrum(n, mean, least, greatest, period, deviation, runs, terms, degree, slack)


def bounded_ends(
    sample: Sample, spectrum: Spectrum, lower: float, upper: float, doubt: tuple[float, float]
) -> tuple[float, float, float]:
    """Both ends, each in the middle of a proved bracket, and half the wider bracket.

    Parameters
    ----------
    sample, spectrum : an oriented sample and its spectrum.
    lower, upper : probabilities below the low end and above the high one.
    doubt : by how much `lower` and `upper` may be off; the brackets hold for all such targets.
    """
    n, out = spectrum.n, np.empty(2)
    ends, bound = [], 0.0
    sides = (
        (1, lower, doubt[0], spectrum.least, spectrum.greatest),
        (-1, upper, doubt[1], -spectrum.greatest, -spectrum.least),
    )
    for sign, target, extra, bottom, top in sides:
        bracket_quantile(
            target, spectrum.slack + extra, spectrum.deviation, sign, bottom, top,
            spectrum.period, spectrum.degree, spectrum.runs, spectrum.terms, out,
        )  # fmt: skip
        ends.append(spectrum.centre + sign * 0.5 * (out[0] + out[1]) / n)
        bound = max(bound, 0.5 * (out[1] - out[0]) / n)
    bound += 1e-15 + shift_of(sample)
    return float(ends[0]), float(ends[1]), float(bound)


def shift_of(sample: Sample) -> float:
    """By how much binning may have moved any mean, besides the blur that `spread` tells."""
    return 2.0**-40 * float(sample.values[-1] - sample.values[0]) if sample.spread else 0.0
