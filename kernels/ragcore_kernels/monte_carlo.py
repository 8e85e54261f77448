"""The bootstrap by random numbers, labelled so: the fallback, and a check on the exact one.

Draw i of replicate r takes the i-th output of SplitMix64 started at a state that only the seed
and r determine. No replicate knows of another, so that any split over threads gives the same bits.

References
----------
Steele, Lea & Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.histogram import Sample, sample_of
from ragcore_kernels.intervals import Interval
from ragcore_kernels.lattice import prepare

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

REPLICATES = 100_000
"""Drawn unless told otherwise."""

MAX_DRAWS = 2_000_000_000
"""A fallback draws fewer replicates if they would need more than this, but 1,000 at least."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)
_MAX_SEED, _MAX_CASES = 1 << 63, 1 << 32
_TIE = 1e-12


@inline
def _mix(word: Any) -> Any:
    """SplitMix64's output for a state, modulo 2**64."""
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@kernel
def resampled_sums(values: F64, seed: int, first: int, out: F64) -> None:
    """Sum of n draws with replacement from `values`, for replicates first, first + 1, ...

    Parameters
    ----------
    values : (n,), 1 <= n < 2**32.
    seed : >= 0.
    first : number of the first replicate, >= 0.
    out : (n_replicates,), filled. Draws are added in their order.

    Notes
    -----
    A draw is the upper half of n times a 64-bit word, off a uniform one by n / 2**64 at most.
    """
    start = _mix(np.uint64(seed))
    n = np.uint64(values.size)
    half = np.uint64(32)
    for r in range(out.size):
        state = _mix(start + np.uint64(first + r) * _GOLDEN)
        total = 0.0
        for _ in range(values.size):
            state += _GOLDEN
            word = _mix(state)
            at = ((word >> half) * n + (((word & _LOW) * n) >> half)) >> half
            total += values[np.int64(at)]
        out[r] = total


@kernel
def signed_sums(values: F64, seed: int, first: int, out: F64) -> None:
    """Sum of `values` under random signs, for replicates first, first + 1, ...

    Parameters
    ----------
    values, seed, first, out : as for `resampled_sums`; a word gives 64 signs.
    """
    start = _mix(np.uint64(seed))
    one = np.uint64(1)
    for r in range(out.size):
        state = _mix(start + np.uint64(first + r) * _GOLDEN)
        total, word = 0.0, np.uint64(0)
        for i in range(values.size):
            if i & 63 == 0:
                state += _GOLDEN
                word = _mix(state)
            total += values[i] if word & one == one else -values[i]
            word = word >> one
        out[r] = total


def monte_carlo_signs(
    magnitudes: F64, observed: float, replicates: int, seed: int = 0, threads: int = 1
) -> float:
    """Two-sided sign-flip p-value from random signs: (b + 1) / (B + 1), never 0.

    Parameters
    ----------
    magnitudes : (n,), in ascending order, so that their order leaves no trace.
    observed : the sum of the differences; b counts the sums as far from 0, or farther.
    replicates, seed, threads : as for `monte_carlo_interval`.

    References
    ----------
    Phipson & Smyth, Permutation p-values should never be zero, 2010.
    """
    sums = _shared(signed_sums, magnitudes, replicates, seed, threads)
    tie = _TIE * float(magnitudes.sum())
    beyond = int((np.abs(sums) >= abs(observed) - tie).sum())
    return (beyond + 1) / (replicates + 1)


def monte_carlo_interval(
    values: ArrayLike | Sample,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
    threads: int = 1,
) -> Interval:
    """Percentile bootstrap interval of a mean from random resamples.

    Parameters
    ----------
    values : (n,), one finite number for each case, in any unit; or their `histogram`.
    replicates : resamples to draw, >= 1.
    seed : >= 0; the same seed gives the same bits, whatever the order of the values and `threads`.
    level : probability inside, in (0, 1).
    threads : to share the replicates, >= 1.

    Returns
    -------
    `low` is the least mean drawn with a share of at least (1 - level) / 2 at or below it, `high`
    the mirror image. The method is ``monte-carlo(replicates, seed)``, the bound inf; samples of
    one distinct value or none need no draw: as in `resample.mean_interval`.

    Raises
    ------
    ValueError
        If a value is not finite, `values` is not one-dimensional, or a parameter is out of range.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1")
    for name, number, most in (
        ("replicates", replicates, _MAX_SEED), ("threads", threads, 1 << 16)
    ):  # fmt: skip
        if not 1 <= number < most:
            raise ValueError(f"{name} is {number}; expected 1 or more")
    if not 0 <= seed < _MAX_SEED:
        raise ValueError(f"seed is {seed}; expected an integer from 0 to 2**63 - 1")
    sample = sample_of(values)
    if sample.values.size < 2:
        value = float(sample.values[0]) if sample.values.size else math.nan
        return Interval(value, value, "exact" if sample.values.size else "", 0.0)
    tail = (1.0 - level) / 2.0 * (1.0 - _TIE)
    return drawn_interval(sample, replicates, seed, tail, tail, threads)


def drawn_interval(
    sample: Sample, replicates: int, seed: int, lower: float, upper: float, threads: int = 1
) -> Interval:
    """Least mean drawn with a share of `lower` at or below it, greatest with `upper` above.

    Parameters
    ----------
    sample : a histogram of two or more distinct values.
    replicates, seed, threads : as for `monte_carlo_interval`.
    lower, upper : probabilities.
    """
    prepared = prepare(sample)
    lattice, n, method = prepared.lattice, prepared.n, f"monte-carlo({replicates}, {seed})"
    if lattice and n * int(lattice.points[-1]) < 1 << 53:  # sums of points are exact
        points = Sample(lattice.points.astype(np.float64), lattice.counts)
        sums = _sum_ends(_drawn(points, replicates, seed, threads), lower, upper)
        return Interval(*(lattice.mean_of(int(total), n) for total in sums), method, math.inf)
    scaled = Sample(np.ldexp(sample.values, -prepared.exponent), sample.counts)
    sums = _sum_ends(_drawn(scaled, replicates, seed, threads), lower, upper)
    low, high = (math.ldexp(total / n, prepared.exponent) for total in sums)
    return Interval(low, high, method, math.inf)


def fallback_replicates(n: int) -> int:
    """Replicates of a fallback for n cases."""
    return max(1_000, min(REPLICATES, MAX_DRAWS // n))


def _drawn(sample: Sample, replicates: int, seed: int, threads: int) -> F64:
    """Sums of all replicates; the values are laid out in ascending order first."""
    if (n := sample.size) >= _MAX_CASES:
        raise ValueError(f"sample has {n} values; expected fewer than 2**32 to draw from")
    values = np.repeat(sample.values, sample.counts)
    return _shared(resampled_sums, values, replicates, seed, threads)


def _shared(sums: Any, values: F64, replicates: int, seed: int, threads: int) -> F64:
    """The sums of all replicates, shared over threads."""
    out = np.empty(replicates)
    bounds = [replicates * i // threads for i in range(threads + 1)]

    def fill(first: int, stop: int) -> None:
        with np.errstate(over="ignore"):  # the debug path multiplies modulo 2**64, too
            sums(values, seed, first, out[first:stop])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, bounds[:-1], bounds[1:]))
    return out


def _sum_ends(sums: F64, lower: float, upper: float) -> tuple[float, float]:
    sums.sort()
    low = max(1, math.ceil(lower * sums.size)) - 1
    high = max(1, math.ceil(upper * sums.size))
    return float(sums[low]), float(sums[sums.size - high])
