"""Exact percentile bootstrap interval of a mean whose cases are resampled inside their strata."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels.intervals import method_of
from ragcore_kernels.lattice import Lattice, Sample, common_lattice, distinct, exact_sum
from ragcore_kernels.laws import Laws, lattice_terms, laws_of, smoothed_sum
from ragcore_kernels.quantile import lattice_quantile
from ragcore_kernels.resample import Interval, mean_interval

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_TIE = 1e-12  # relative; a probability this close to the level's counts as reaching it


def stratified_interval(
    values: ArrayLike, strata_codes: ArrayLike, level: float = 0.95
) -> Interval:
    """Percentile bootstrap interval of the mean, with the size of every stratum kept.

    Parameters
    ----------
    values : (n,), one finite number for each case, in any unit.
    strata_codes : (n,), integers; cases of one code are one stratum.
    level : probability inside, in (0, 1).

    Returns
    -------
    With S* the mean of all draws, n_k of them with replacement from the n_k cases of stratum k,
    and q = (1 - level) / 2, `low` is the least x with P(S* <= x) >= q and `high` the greatest x
    with P(S* >= x) >= q. No cases give nan. A stratum of one case, or of equal cases, does not
    vary; if none does, both ends are the mean. One stratum gives `resample.mean_interval`.

    Raises
    ------
    ValueError
        If a value is not finite, a code is no integer, the shapes differ, or `level` is outside
        (0, 1).

    Notes
    -----
    Strata are weighted by their sizes, so that S* is a sum over all draws divided by n, and its
    transform a product over the strata. Ends are exact where the values of all strata that vary
    lie on one lattice, and correctly rounded if the other strata lie on it too. Other values are
    bracketed by Vaaler's bound, see `resample.mean_interval`; the bound grows as cases get fewer.
    Probabilities on a lattice are within 1e-14 of integer arithmetic, which does not decide here
    should one come closer than that to q. Equality is taken at q * (1 - 1e-12).

    References
    ----------
    Davison & Hinkley, Bootstrap methods and their application, 1997, section 3.2.
    """
    array, codes = _checked(values, strata_codes, level)
    if array.size == 0:
        return Interval(math.nan, math.nan, "", 0.0)
    codes = np.unique(codes, return_inverse=True)[1]
    if codes.max() == 0:
        return mean_interval(array, level)
    size = float(np.abs(array).max())
    exponent = 0 if 1e-6 < size <= 1.0 or size == 0.0 else math.frexp(size)[1]
    order = np.argsort(codes, kind="stable")
    scaled = np.ldexp(array[order], -exponent) + 0.0
    parts = np.split(scaled, np.cumsum(np.bincount(codes))[:-1])
    varied = [distinct(part) for part in parts if part.min() < part.max()]
    varied.sort(key=lambda sample: (sample.values.tolist(), sample.counts.tolist()))
    constant = np.concatenate([np.empty(0)] + [p for p in parts if p.min() == p.max()])
    target = (1.0 - level) / 2.0 * (1.0 - _TIE)
    ends = _lattice_ends(varied, constant, exponent, target)
    if ends:
        return Interval(*ends, "exact", 0.0)
    if not varied:
        mean = math.ldexp(exact_sum(scaled) / array.size, exponent)
        return Interval(mean, mean, "exact", 0.0)
    found = _bounded_ends(varied, constant, target)
    low, high, bound = (math.ldexp(part, exponent) for part in found)
    return Interval(low, high, method_of(bound), bound)


def _checked(values: ArrayLike, strata_codes: ArrayLike, level: float) -> tuple[F64, I64]:
    """Arrays of the arguments, or ValueError."""
    array, codes = np.asarray(values, dtype=np.float64), np.asarray(strata_codes)
    if array.ndim != 1:
        raise ValueError(f"values have shape {array.shape}; expected one dimension")
    if codes.shape != array.shape:
        raise ValueError(f"strata_codes have shape {codes.shape}; expected {array.shape}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1")
    if codes.size and codes.dtype.kind not in "iu":
        raise ValueError(f"strata_codes are {codes.dtype}; expected integers")
    if not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"values[{at}] is {array[at]}; expected finite numbers")
    return array, codes


def _lattice_ends(
    varied: list[Sample], constant: F64, exponent: int, target: float
) -> tuple[float, float] | None:
    """Both ends if the strata that vary are on one lattice and it does not take too long.

    `varied` and `constant` are the values times ``2**-exponent``. If `constant` is on the lattice
    too, its values stand for the reals that are meant, otherwise for themselves.
    """
    fixed = np.unique(constant)
    values = np.unique(np.concatenate([fixed] + [sample.values for sample in varied]))
    lattice = _lattice_of(values, varied, exponent)
    loose = Fraction(0)
    n = constant.size + sum(int(sample.counts.sum()) for sample in varied)
    joined = n
    if lattice is None and varied:
        values = np.unique(np.concatenate([sample.values for sample in varied]))
        lattice = _lattice_of(values, varied, exponent)
        loose = Fraction(exact_sum(constant)) * Fraction(2) ** exponent
        joined -= constant.size
        constant = np.empty(0)
    if lattice is None:
        return None
    step = float(lattice.step / Fraction(2) ** exponent)
    shift = int(np.rint((constant - values[0]) / step).astype(np.int64).sum())
    pieces: list[tuple[I64, I64]] = []
    for sample in varied:
        points = np.rint((sample.values - values[0]) / step).astype(np.int64)
        shift += int(sample.counts.sum()) * int(points[0])
        points -= points[0]
        first = np.flatnonzero(np.diff(points, prepend=-1))  # doubles of one point are merged
        if first.size > 1:
            pieces.append((points[first], np.add.reduceat(sample.counts, first)))
    divisor = int(np.gcd.reduce(np.concatenate([[0]] + [points for points, _ in pieces])))
    ends = (0, 0)
    if pieces:
        found = _integer_ends([(points // divisor, counts) for points, counts in pieces], target)
        if found is None:
            return None
        ends = found
    sums = [lattice.step * (shift + divisor * end) for end in ends]
    low, high = ((joined * lattice.origin + part + loose) / n for part in sums)
    return low.numerator / low.denominator, high.numerator / high.denominator


def _lattice_of(values: F64, varied: list[Sample], exponent: int) -> Lattice | None:
    if values.size < 2 or any(sample.spread for sample in varied):
        return None
    return common_lattice(Sample(values, np.ones(values.size, np.int64)), exponent)


def _integer_ends(pieces: list[tuple[I64, I64]], target: float) -> tuple[int, int] | None:
    """Ends of a sum of integers, or None if it would take too long.

    Each piece holds the points of a stratum, which ascend from 0, and their counts.
    """
    x, p, draws, rests, shape, total, extent = [], [], [], [], [], 0, 0
    for points, counts in pieces:
        n, sums = int(counts.sum()), int(counts @ points)
        middle = (2 * sums + n) // (2 * n)
        x.append((points - middle).astype(np.float64))
        p.append(counts / n)
        draws.append(n)
        rests.append(float(sums - n * middle))
        centred = x[-1] - rests[-1] / n
        shape.append(float(p[-1] @ (centred * centred)))
        total += sums
        extent += n * int(points[-1])
    starts = np.cumsum([0] + [part.size for part in x])
    laws = Laws(
        np.concatenate(x), np.concatenate(p), starts, np.array(draws), np.array(rests),
        np.array([shape, [0.0] * len(shape)]),
    )  # fmt: skip
    below, above = laws.extremes()
    least, greatest = max(-total, math.floor(below)), min(extent - total, math.ceil(above))
    found = lattice_terms(laws, least, greatest)
    if found is None:
        return None
    period, runs, terms = found
    deviation, out = math.sqrt(laws.variance), np.empty(2)
    ends = []
    for sign, bottom, top in ((1, least, greatest), (-1, -greatest, -least)):
        args = (target, deviation, sign, bottom, top, float(period), runs, terms, out)
        ends.append(total + sign * int(lattice_quantile(*args)))
    return ends[0], ends[1]


def _bounded_ends(varied: list[Sample], constant: F64, target: float) -> tuple[float, float, float]:
    """Both ends, each in the middle of a proved bracket, and half the wider bracket."""
    draws = [int(sample.counts.sum()) for sample in varied]
    laws, means = laws_of(varied, draws)
    n = sum(draws) + constant.size
    mean = exact_sum(np.append(constant, laws.draws * means)) / n
    approach = smoothed_sum(laws)
    ends, bound = [], 0.0
    for sign in (1, -1):
        low, high = approach.bracket(target, sign)
        ends.append(mean + sign * 0.5 * (low + high) / n)
        bound = max(bound, 0.5 * (high - low) / n)
    bound += 1e-15 + (2.0**-40 * laws.width if laws.shape[1].any() else 0.0)
    return ends[0], ends[1], bound
