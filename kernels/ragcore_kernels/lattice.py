"""The lattice that a sample lies on, and all else that its statistics share: made once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.bins import binned, distinct
from ragcore_kernels.histogram import MAX_DISTINCT, Sample, checked_sample, joined
from ragcore_kernels.sums import exact_sum

__all__ = [
    "MAX_DISTINCT",
    "MAX_RANGE",
    "TOLERANCE",
    "Lattice",
    "Prepared",
    "Sample",
    "common_lattice",
    "distinct",
    "exact_sum",
    "prepare",
    "prepare_values",
]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

MAX_RANGE = 1 << 22
"""Lattices with more points than this between least and greatest value are not used."""

TOLERANCE = 1e-14
"""How far a value may lie from its lattice point, as a share of the greatest magnitude."""


@dataclass(frozen=True)
class Lattice:
    """Value j is ``origin + step * points[j]``; points ascend from 0 and have gcd 1."""

    origin: Fraction
    step: Fraction
    points: I64
    counts: I64

    def mean_of(self, total: int, n: int) -> float:
        """Correctly rounded mean of n values whose points sum to `total`."""
        origin, step = self.origin, self.step
        over = origin.denominator * step.denominator * n  # a division of integers rounds once
        base = origin.numerator * step.denominator * n
        return (base + step.numerator * origin.denominator * total) / over


@inline
def _denominator(value: float, tolerance: float, cap: float) -> float:
    """Least denominator of a continued-fraction convergent within `tolerance`, or 0 above `cap`."""
    rest, p0, q0, p1, q1 = value, 0.0, 1.0, 1.0, 0.0
    while True:
        whole = float(np.floor(rest))  # no integer: where it is huge, so is the denominator
        p0, q0, p1, q1 = p1, q1, whole * p1 + p0, whole * q1 + q0
        if not q1 <= cap:
            return 0.0
        if abs(value - p1 / q1) <= tolerance:
            return q1
        rest -= whole
        if rest <= 0.0:
            return 0.0
        rest = 1.0 / rest


@kernel
def common_denominator(values: F64) -> float:
    """Least D with every ``values * D`` an integer within the tolerance, or 0 if there is none.

    Parameters
    ----------
    values : (n,), n >= 2, in ascending order.

    Notes
    -----
    D is a whole number below 2**53.
    """
    least, greatest = float(values[0]), float(values[-1])
    extent = greatest - least
    scale = max(abs(least), abs(greatest))
    tolerance = TOLERANCE * scale
    cap = min(MAX_RANGE / extent, 2.0**53)
    denominator = 1.0
    while scale * denominator < 2.0**40:
        at, most = -1, tolerance * denominator
        for i in range(values.size):
            scaled = float(values[i]) * denominator
            if abs(scaled - float(np.floor(scaled + 0.5))) > most:
                at = i
                break
        if at < 0:
            return denominator
        factor = _denominator(float(values[at]), tolerance, cap)
        if factor == 0.0:
            return 0.0
        a, b = denominator, factor
        while b > 0.0:  # their greatest common divisor
            a, b = b, a % b
        grown = denominator / a * factor
        if grown > cap or grown == denominator:
            return 0.0
        denominator = grown
    return 0.0


def _on_lattice(scaled: F64, counts: I64, origin: Fraction, unit: Fraction) -> Lattice | None:
    """Lattice of near-integers `scaled`, in `unit` from `origin`; None if it is one point."""
    whole = np.rint(scaled).astype(np.int64)
    first = np.flatnonzero(np.diff(whole, prepend=whole[0] - 1))
    if first.size < 2:
        return None
    points = whole[first] - whole[0]
    divisor = int(np.gcd.reduce(points))
    merged = np.add.reduceat(counts, first)
    return Lattice(origin + int(whole[0]) * unit, unit * divisor, points // divisor, merged)


def common_lattice(sample: Sample, exponent: int = 0) -> Lattice | None:
    """Coarsest lattice that holds every value of `sample`, or None.

    Parameters
    ----------
    sample : at least two distinct values, none beyond 1 in magnitude.
    exponent : the real values are ``sample.values * 2**exponent``.

    Returns
    -------
    First choice is a rational lattice, so that 0.1 and 0.3 stand for tenths: the reals meant,
    not their doubles. Second choice takes least and greatest value as they are, with all
    others at rational parts of the way; two values always have this one.

    Notes
    -----
    A value may be off by `TOLERANCE` of the greatest magnitude, which is the error of any
    double computed from a few others. Doubles that meet at one point are merged, unless
    nothing else would remain.
    """
    values, counts = sample.values, sample.counts
    if sample.spread:
        return None
    real = np.ldexp(values, exponent)
    if -200 < exponent < 40 and (denominator := int(common_denominator(real))):
        unit = Fraction(1, denominator)
        found = _on_lattice(real * denominator, counts, Fraction(0), unit)
        if found is not None:
            return found
    least, greatest = Fraction(float(real[0])), Fraction(float(real[-1]))
    extent = values[-1] - values[0]
    share = (values - values[0]) / extent
    if denominator := int(common_denominator(share)):
        unit = (greatest - least) / denominator
        return _on_lattice(share * denominator, counts, least, unit)
    return None


@dataclass(frozen=True)
class Prepared:
    """A sample of two or more distinct values, ready for resampling.

    The real values are ``sample.values * 2**exponent``, none beyond 1 in magnitude before that,
    in bins if they are many; `lattice`, if there is one, holds the real values.
    """

    sample: Sample
    exponent: int
    lattice: Lattice | None
    n: int


def _exponent(least: float, greatest: float) -> int:
    size = max(-least, greatest)
    return 0 if 1e-6 < size <= 1.0 else math.frexp(size)[1]


def prepare_values(array: F64, least: float, greatest: float) -> Prepared:
    """Prepare plain values, whose least and greatest are known and differ."""
    exponent = _exponent(least, greatest)
    sample = distinct(np.ldexp(array, -exponent) if exponent else array)
    return Prepared(sample, exponent, common_lattice(sample, exponent), array.size)


def prepare(sample: Sample) -> Prepared:
    """Prepare a histogram of two or more distinct values, once: to the last bit as its values."""
    return checked_sample(sample).kept("prepared", lambda: _prepared(sample))


def _prepared(sample: Sample) -> Prepared:
    values, counts = sample.values, sample.counts
    exponent = _exponent(float(values[0]), float(values[-1]))
    if exponent:
        values = np.ldexp(values, -exponent) + 0.0  # what falls below the least double is 0.0
    small = joined(values, counts)
    if small.values.size > MAX_DISTINCT:
        small = binned(small.values, small.counts) or small
    return Prepared(small, exponent, common_lattice(small, exponent), int(counts.sum()))
