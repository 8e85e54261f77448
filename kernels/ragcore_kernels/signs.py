"""Exact sign-flip test of paired differences: every assignment of signs, none drawn at random.

Under the hypothesis that two systems are interchangeable case by case, each difference could as
well have had the other sign. The p-value is the share of the 2**n assignments whose sum is, in
magnitude, at least the one that was observed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.binomial import LEAST_P, SignTest, mcnemar
from ragcore_kernels.flip_tails import lattice_tail, real_tail
from ragcore_kernels.intervals import method_of
from ragcore_kernels.lattice import TOLERANCE, Sample, common_lattice, distinct, exact_sum
from ragcore_kernels.monte_carlo import fallback_replicates, monte_carlo_signs

__all__ = ["SignTest", "sign_flip"]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

MAX_DOUBT = 0.01
"""A bound above this, and above a tenth of the p-value, is no certificate."""

_STRIDE = 1024


@kernel
def _one_magnitude(values: F64, out: I64) -> bool:
    """Whether all values but zeros have one magnitude.

    Parameters
    ----------
    values : (n,)
    out : (2,), filled with how many are positive, negative.
    """
    start = 0
    while start < values.size and values[start] == 0.0:
        start += 1
    magnitude = abs(values[start]) if start < values.size else 0.0
    out[0], out[1] = 0, 0
    for first in range(start, values.size, _STRIDE):
        plus, minus, others = 0, 0, 0
        for i in range(first, min(first + _STRIDE, values.size)):
            v = values[i]
            plus += 1 if v == magnitude else 0
            minus += 1 if v == -magnitude else 0
            others += 1 if v != 0.0 and abs(v) != magnitude else 0
        if others > 0:
            return False
        out[0] += plus
        out[1] += minus
    return magnitude < math.inf


def sign_flip(differences: ArrayLike, sample: Sample | None = None) -> SignTest:
    """Two-sided paired randomisation test of `differences`.

    Parameters
    ----------
    differences : (n,), one finite number for each case, in any unit.
    sample : ``distinct(differences)``, if at hand, to spare the work; taken on trust.

    Returns
    -------
    With independent fair signs e_i and T = sum of e_i d_i, the p-value is the
    probability that abs(T) is abs(d_1 + ... + d_n) or more.
    Zeros drop out. No cases give nan; no difference but 0, or only one, gives 1.0.

    Raises
    ------
    ValueError
        If a value is not finite, or `differences` is not one-dimensional.

    Notes
    -----
    Differences of one magnitude go to `mcnemar`. On a common lattice, as 0.1 and 0.3 are on
    tenths, sums are integers and equality is equality; the p-value is within 1e-14 of integer
    arithmetic and, at any size down to `LEAST_P`, right to nine digits at least. So it is for up
    to 40 differences of any kind, or more of few kinds, whose sums are listed; sums within 1e-14
    times the sum of magnitudes are equal there. Other differences have the p-value in the middle
    of a bracket proved by Vaaler's bound, see `SignTest.bound`; magnitudes below 1e-14 of the
    greatest count as 0. Should the bound exceed `MAX_DOUBT`, as it may where a few of very many
    differences outweigh all others, random signs take over and the method says so. The order of
    `differences` does not matter, down to the last bit.

    References
    ----------
    Pitman, Significance tests which may be applied to samples from any populations, 1937.
    """
    array = np.asarray(differences, dtype=np.float64, order="C")
    if array.ndim != 1:
        raise ValueError(f"differences have shape {array.shape}; expected one dimension")
    n = array.size
    if n == 0:
        return SignTest(math.nan, "", 0.0, 0, 0)
    found = np.empty(2, np.int64)
    if _one_magnitude(array, found):
        return replace(mcnemar(int(found[0]), int(found[1])), n=n)
    size = max(-float(array.min()), float(array.max()))
    if not math.isfinite(size):
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"differences[{at}] is {array[at]}; expected finite numbers")
    exponent = 0 if 1e-6 < size <= 1.0 else math.frexp(size)[1]
    if sample is None or sample.spread or exponent:
        if exponent:
            array = np.ldexp(array, -exponent)
        sample = distinct(array)
    if sample.spread:  # bins are of no use here: the values themselves, in ascending order
        magnitudes = np.sort(np.abs(array))
        return _real(magnitudes, np.ones(n, np.int64), abs(exact_sum(array)), n)
    magnitudes, places = np.unique(np.abs(sample.values), return_inverse=True)
    counts = np.bincount(places, sample.counts).astype(np.int64)
    signed = np.bincount(places, np.sign(sample.values) * sample.counts)
    found = _lattice(magnitudes, counts, signed, exponent, n)
    return found or _real(magnitudes, counts, abs(exact_sum(signed * magnitudes)), n)


def _lattice(magnitudes: F64, counts: I64, signed: F64, exponent: int, n: int) -> SignTest | None:
    """Test of magnitudes that are multiples of one number; None if they are not."""
    if magnitudes[0] != 0.0:
        magnitudes = np.concatenate([[0.0], magnitudes])
        counts, signed = np.concatenate([[0], counts]), np.concatenate([[0.0], signed])
    lattice = common_lattice(Sample(magnitudes, counts), exponent)
    if lattice is None:
        return None
    step = float(lattice.step / Fraction(2) ** exponent)
    t = abs(int(np.rint(magnitudes / step) @ signed))
    points, counts = lattice.points[1:], lattice.counts[1:]
    m = int(counts.sum())
    if points.size == 1:
        wins = (m + t) // 2
        return replace(mcnemar(wins, m - wins), n=n)
    return _outcome(*lattice_tail(points, counts, t), n, m)


def _real(magnitudes: F64, counts: I64, t: float, n: int) -> SignTest:
    """Test of any magnitudes, in ascending order."""
    first = int(np.searchsorted(magnitudes, TOLERANCE * magnitudes[-1], "right"))
    magnitudes, counts = magnitudes[first:], counts[first:]
    m = int(counts.sum())
    p, bound = real_tail(magnitudes, counts, t)
    if bound > MAX_DOUBT and bound > 0.1 * p:
        replicates = fallback_replicates(m)
        p = monte_carlo_signs(np.repeat(magnitudes, counts), t, replicates)
        return SignTest(p, f"monte-carlo({replicates}, 0)", math.inf, n, m)
    return _outcome(p, bound, n, m)


def _outcome(p: float, bound: float, n: int, m: int) -> SignTest:
    """Result with a p-value that is never 0."""
    if p < LEAST_P:
        return SignTest(LEAST_P, "exact<", 0.0, n, m)
    return SignTest(p, method_of(bound), bound, n, m)
