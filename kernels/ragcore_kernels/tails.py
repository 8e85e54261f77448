"""How probable the resampled mean is to lie below, at or above a number: no random number drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.atoms import Distribution, mean_distribution
from ragcore_kernels.halves import halves_of, halves_tails
from ragcore_kernels.histogram import Sample, plain_values, sample_of
from ragcore_kernels.integers import packed_bits, ways
from ragcore_kernels.intervals import method_of
from ragcore_kernels.lattice import TOLERANCE, Lattice, Prepared, prepare
from ragcore_kernels.quantile import distribution
from ragcore_kernels.rotations import BLOCK
from ragcore_kernels.spectrum import (
    Oriented,
    Spectrum,
    bounded_spectrum,
    lattice_spectrum,
    oriented,
    shift_of,
)
from ragcore_kernels.sums import exact_sum
from ragcore_kernels.trinomial import Window, is_few, window_of

__all__ = [
    "Cumulated",
    "Distribution",
    "Tails",
    "mean_cdf",
    "mean_distribution",
    "mean_tails",
    "tails_at_mean",
]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_QUICK_DRAWS, _QUICK_BITS = 64, 1 << 17


@dataclass(frozen=True)
class Tails:
    """Probabilities of the resampled mean S* below, at and above a number.

    Parameters
    ----------
    below, equal, above : in [0, 1], nan if there are no cases. A zero of an exact result may
        stand for less than 1e-14; where no resample lies there it is exact.
    method : ``"exact"``, ``"exact±3e-05"`` or ``""``, as in an interval.
    bound : greatest possible error of any of the three; 0.0 stands for 1e-14.
    n : cases; there are n**n ordered resamples.
    """

    below: float
    equal: float
    above: float
    method: str
    bound: float
    n: int

    @property
    def resamples(self) -> int:
        """Ordered resamples, n**n: no probability above 0 is less than one in so many."""
        return self.n**self.n if self.n else 0

    @property
    def log10_resolution(self) -> float:
        """Decimal logarithm of ``1 / resamples``, the least probability above 0."""
        return -self.n * math.log10(self.n) if self.n else math.nan


@dataclass(frozen=True)
class Cumulated:
    """P(S* <= point) for each point; method and bound as in `Tails`."""

    probabilities: F64
    method: str
    bound: float


def mean_tails(values: ArrayLike | Sample, at: float = 0.0) -> Tails:
    """P(S* < at), P(S* = at) and P(S* > at) for the mean S* of n draws with replacement.

    Parameters
    ----------
    values : (n,), one finite number for each case, in any unit; or their `histogram`.
    at : a finite number.

    Returns
    -------
    On a lattice each probability is right to 1e-14, mass at a point included: of the values
    0.1, 0.2 and -0.3 the resampled sums that are 0 in decimals are equal to 0. So it is for small
    samples whose resamples can be listed. For other values the bound tells how far each may be
    off; `equal` is then 0.0, unless `at` is an end of the range.

    Raises
    ------
    ValueError
        If a value or `at` is not finite, or `values` is not one-dimensional.
    """
    if not math.isfinite(at):
        raise ValueError(f"at is {at}; expected a finite number")
    sample = sample_of(values)
    n = sample.size
    if n == 0:
        return Tails(math.nan, math.nan, math.nan, "", 0.0, 0)
    parts, bound = _tails(sample, [float(at)])
    return Tails(*parts[0], method_of(bound), bound, n)


def tails_at_mean(sample: Sample) -> Tails:
    """`mean_tails` at the mean of the sample itself, which is taken exactly where that counts.

    Parameters
    ----------
    sample : of two or more distinct values.
    """
    prepared = prepare(sample)
    lattice, n = prepared.lattice, prepared.n
    if lattice:
        total = int(lattice.points @ lattice.counts)
        if parts := _lattice_tails(prepared, lattice, [2 * total]):
            return Tails(*parts[0], method_of(0.0), 0.0, n)
    small = prepared.sample
    mean = exact_sum(small.counts / n * small.values)
    part, bound = _plain_tails(prepared, math.ldexp(mean, prepared.exponent))
    return Tails(*part, method_of(bound), bound, n)


def mean_cdf(values: ArrayLike | Sample, points: ArrayLike) -> Cumulated:
    """P(S* <= x) for each x of `points`: below and equal of `mean_tails`, at once.

    Parameters
    ----------
    values : as for `mean_tails`.
    points : (m,), finite numbers in any order.

    Raises
    ------
    ValueError
        If a value or a point is not finite, or an argument is not one-dimensional.
    """
    wanted = plain_values(points)
    if not np.isfinite(wanted).all():
        raise ValueError("points hold a number that is not finite; expected finite numbers")
    sample = sample_of(values)
    if sample.values.size == 0:
        return Cumulated(np.full(wanted.size, math.nan), "", 0.0)
    parts, bound = _tails(sample, wanted.tolist())
    # From whichever side is the smaller: 1 - above keeps what below + equal would round away.
    reached = [b + e if b + e < 0.5 else 1.0 - a for b, e, a in parts]
    return Cumulated(np.array(reached), method_of(bound), bound)


Parts = tuple[float, float, float]


def _tails(sample: Sample, points: list[float]) -> tuple[list[Parts], float]:
    """Below, equal and above for each point, and a bound of all errors."""
    values = sample.values
    if values.size == 1:
        return [_constant_tails(float(values[0]), at) for at in points], 0.0
    prepared = prepare(sample)
    lattice = prepared.lattice
    if lattice:
        places = [_place(lattice, prepared.n, at) for at in points]
        if (found := _lattice_tails(prepared, lattice, places)) is not None:
            return found, 0.0
    parts, bound = [], 0.0
    for at in points:
        part, error = _end_tails(sample, prepared.n, at) or _plain_tails(prepared, at)
        parts.append(part)
        bound = max(bound, error)
    return parts, bound


def _constant_tails(value: float, at: float) -> Parts:
    if abs(value - at) <= TOLERANCE * max(abs(value), abs(at)):
        return 0.0, 1.0, 0.0
    return float(value < at), 0.0, float(value > at)


def _place(lattice: Lattice, n: int, at: float) -> int:
    """Twice the sum of points at which the mean is `at`; odd if it lies between two sums.

    A number as near to a possible mean as a value may be to its lattice point is that mean.
    """
    (p, q), origin, step = at.as_integer_ratio(), lattice.origin, lattice.step
    above = p * origin.denominator - q * origin.numerator
    # The place is over / under, in integers: fractions would take most of the time.
    over = above * n * step.denominator
    under = q * origin.denominator * step.numerator
    nearest = (2 * over + under) // (2 * under)
    distance = abs(over - nearest * under) * step.numerator / (under * step.denominator)
    scale = max(
        abs(at), abs(lattice.mean_of(0, 1)), abs(lattice.mean_of(int(lattice.points[-1]), 1))
    )
    return 2 * nearest if distance <= n * TOLERANCE * scale else 2 * (over // under) + 1


def _lattice_tails(prepared: Prepared, lattice: Lattice, places: list[int]) -> list[Parts] | None:
    """Each part right to 1e-14, or None if that takes too long."""
    n, extent = prepared.n, int(lattice.points[-1])
    if n <= _QUICK_DRAWS and packed_bits(extent, n) <= _QUICK_BITS:
        return _counted(ways(lattice.points, lattice.counts), n, places)
    if is_few(lattice):
        return _summed(window_of(lattice), n * extent, places)
    spectrum = lattice_spectrum(prepared)
    return _inverted(spectrum, n * extent, places) if spectrum else None


def _outside(place: int, top: int) -> Parts | None:
    """The parts of a place that no sum from 0 to `top` reaches."""
    if place < 0:
        return 0.0, 0.0, 1.0
    return (1.0, 0.0, 0.0) if place > 2 * top else None


def _counted(counts: list[int], n: int, places: list[int]) -> list[Parts]:
    """From the number of ways to each sum: correctly rounded."""
    parts, whole = [], n**n
    for place in places:
        stop = min(max(0, (place + 1) // 2), len(counts))  # first sum at or above the place
        below = sum(counts[:stop])
        equal = counts[stop] if place == 2 * stop and stop < len(counts) else 0
        parts.append((below / whole, equal / whole, (whole - below - equal) / whole))
    return parts


def _summed(window: Window, top: int, places: list[int]) -> list[Parts]:
    """From the probabilities of a window, each side summed from its own end."""
    q, parts = window.probabilities, []
    up = np.concatenate([[0.0], np.cumsum(q)])
    down = np.concatenate([[0.0], np.cumsum(q[::-1])])[::-1]
    for place in places:
        if outside := _outside(place, top):
            parts.append(outside)
            continue
        stop = min(max(0, (place + 1) // 2 - window.first), q.size)
        at = place // 2 - window.first
        equal = float(q[at]) if place % 2 == 0 and 0 <= at < q.size else 0.0
        start = stop + (1 if equal else 0)
        parts.append((min(1.0, float(up[stop])), equal, min(1.0, float(down[start]))))
    return parts


@kernel
def cumulate(y: F64, period: float, runs: I64, terms: F64, out: F64) -> None:
    """Evaluate a distribution at many places.

    Parameters
    ----------
    y : (m,), distances from the mean of the sum, at most half a period.
    period, runs, terms : as for `inversion.transform`.
    out : (m, 2), filled with P(S - E S <= y) and the density there, as smoothed by the weights.
    """
    table, pair = np.empty((2, BLOCK)), np.empty(2)
    for i in range(y.size):
        distribution(y[i], 1, period, runs, terms, table, pair)
        out[i, 0], out[i, 1] = pair[0], pair[1]


def _evaluated(spectrum: Spectrum, y: F64) -> F64:
    out = np.empty((y.size, 2))
    cumulate(y, spectrum.period, spectrum.runs, spectrum.terms, out)
    return out


def _inverted(spectrum: Spectrum, top: int, places: list[int]) -> list[Parts]:
    """From the transform, half-way between the sums on either side of a place."""
    total, least, greatest = (
        int(part) for part in (spectrum.centre, spectrum.least, spectrum.greatest)
    )
    wanted = []
    for place in places:
        under = (place + 1) // 2 - 1 - total  # greatest sum below the place, least one above it
        over = place // 2 + 1 - total
        wanted += [under + 0.5, over - 0.5]
    y = np.clip(np.array(wanted), least - 0.5, greatest + 0.5)
    reached = np.clip(_evaluated(spectrum, y)[:, 0], 0.0, 1.0).tolist()
    parts = []
    for i, place in enumerate(places):
        below, upto = reached[2 * i], reached[2 * i + 1]
        if place <= 0:  # no sum is below 0, and none above the top
            below = 0.0
        if place >= 2 * top:
            upto = 1.0
        equal = max(0.0, upto - below) if place % 2 == 0 else 0.0
        parts.append(_outside(place, top) or (below, equal, 1.0 - upto))
    return parts


def _end_tails(sample: Sample, n: int, at: float) -> tuple[Parts, float] | None:
    """The parts if `at` is an end of the values, where all draws are of one, or outside them."""
    least, greatest = float(sample.values[0]), float(sample.values[-1])
    slack = TOLERANCE * max(abs(least), abs(greatest), abs(at))
    at_least, at_greatest = abs(at - least) <= slack, abs(at - greatest) <= slack
    if at_least != at_greatest:
        share = (int(sample.counts[0 if at_least else -1]) / n) ** n
        return ((0.0, share, 1.0 - share) if at_least else (1.0 - share, share, 0.0)), 0.0
    if not at_least and not least < at < greatest:
        return (float(at > greatest), 0.0, float(at < least)), 0.0
    return None


def _plain_tails(prepared: Prepared, at: float) -> tuple[Parts, float]:
    """The parts inside the range of values off a lattice, and how far each may be off."""
    turned = oriented(prepared)
    place = math.ldexp(-at if turned.flip else at, -prepared.exponent)
    if halves := halves_of(turned.sample):
        parts, bound = halves_tails(halves, place), 0.0
    else:
        below, error = _bounded_below(turned, bounded_spectrum(prepared), place)
        parts, bound = (below, 0.0, 1.0 - below), 2.0 * error
    return (parts[::-1] if turned.flip else parts), bound


def _bounded_below(turned: Oriented, spectrum: Spectrum, at: float) -> tuple[float, float]:
    """P(S* < at) and by how much it, and P(S* <= at), may be off: Vaaler's bound."""
    n, half = spectrum.n, spectrum.period / (2.0 * spectrum.degree + 2.0)
    shift = shift_of(turned.sample)
    wanted = np.array([n * (at + move - spectrum.centre) for move in (-shift, shift)])
    y = np.clip(wanted, spectrum.least, spectrum.greatest)
    out = _evaluated(spectrum, y)
    doubt = spectrum.slack + half * np.abs(out[:, 1])
    low = min(max(float(out[0, 0] - doubt[0]), 0.0), 1.0)
    high = min(max(float(out[1, 0] + doubt[1]), 0.0), 1.0)
    return 0.5 * (low + high), 0.5 * (high - low)
