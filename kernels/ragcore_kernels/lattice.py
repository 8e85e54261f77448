"""Reduce a sample to what its resampled mean depends on: distinct values, counts, a lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel, mul64

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

MAX_DISTINCT = 4096
"""Above this many distinct values a sample is held as bin centroids instead."""

MAX_RANGE = 1 << 22
"""Lattices with more points than this between least and greatest value are not used."""

TOLERANCE = 1e-14
"""How far a value may lie from its lattice point, as a share of the greatest magnitude."""

_BIN_BITS, _FIXED_BITS = 12, 40
_SMALL_SUM = 256
_HASH = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Sample:
    """Distinct values in ascending order and how often each occurs.

    `spread` is 0.0 when the values are exact. Otherwise they are centroids of bins of the
    original values, and `spread` bounds the mean squared distance of a value from its centroid.
    """

    values: F64
    counts: I64
    spread: float = 0.0


@dataclass(frozen=True)
class Lattice:
    """Value j is ``origin + step * points[j]``; points ascend from 0 and have gcd 1."""

    origin: Fraction
    step: Fraction
    points: I64
    counts: I64

    def mean_of(self, total: int, n: int) -> float:
        """Correctly rounded mean of n values whose points sum to `total`."""
        exact = self.origin + self.step * Fraction(total, n)
        return exact.numerator / exact.denominator


@kernel
def _sum_bits(bits: I64, low: I64, high: I64) -> int:
    """Add the mantissa of each float64, split at bit 26, to the slot of its exponent.

    Parameters
    ----------
    bits : (n,), float64 seen as int64; n < 2**36.
    low, high : (2047,), zeroed; filled.

    Returns
    -------
    Position of the first value that is not finite, or -1.
    """
    for i in range(bits.size):
        exponent = (bits[i] >> 52) & 0x7FF
        if exponent == 0x7FF:
            return i
        mantissa = bits[i] & 0xFFFFFFFFFFFFF
        if exponent == 0:
            exponent = 1
        else:
            mantissa |= 0x10000000000000
        if bits[i] < 0:
            mantissa = -mantissa
        high[exponent] += mantissa >> 26
        low[exponent] += mantissa & 0x3FFFFFF
    return -1


def exact_sum(values: F64) -> float:
    """Correctly rounded sum of `values`: the same bits in any order, equal to ``math.fsum``.

    Parameters
    ----------
    values : (n,), any finite floats; zeros of either sign and subnormals are welcome.

    Returns
    -------
    The double nearest to the real sum, ties to even; 0.0 for an empty array.

    Raises
    ------
    ValueError
        If a value is infinite or not a number.
    OverflowError
        If the sum is beyond the largest double. Partial sums may be, without harm.

    Notes
    -----
    Small arrays go to ``math.fsum``. Larger ones fill one pair of 64-bit integers for each
    exponent, exactly, and Python integers join them.

    References
    ----------
    Neal, Fast exact summation using small and large superaccumulators, 2015.
    """
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values have shape {array.shape}; expected one dimension")
    if array.size < _SMALL_SUM and np.abs(array).max(initial=0.0) < 1e300:
        return math.fsum(array.tolist())
    low, high = np.zeros(2047, np.int64), np.zeros(2047, np.int64)
    broken = _sum_bits(array.view(np.int64), low, high)
    if broken >= 0:
        raise ValueError(f"values[{broken}] is {array[broken]}; expected finite numbers")
    total = 0
    for slot in np.flatnonzero(low | high).tolist():
        total += ((int(high[slot]) << 26) + int(low[slot])) << (slot - 1)
    return total / (1 << 1074)


@kernel
def _count_distinct(bits: I64, keys: I64, counts: I64, limit: int) -> int:
    """Count equal words in an open hash table; slots with a count of 0 are free.

    Parameters
    ----------
    bits : (n,)
    keys, counts : (2**m,), zeroed, 2**m > limit; filled.
    limit : distinct words allowed.

    Returns
    -------
    How many distinct words there are, or -1 if more than `limit`.
    """
    mask = keys.size - 1
    found = 0
    for i in range(bits.size):
        mixed = mul64(np.uint64(bits[i]), np.uint64(_HASH))
        slot = np.int64(mixed >> np.uint64(40)) & mask
        while counts[slot] > 0 and keys[slot] != bits[i]:
            slot = (slot + 1) & mask
        if counts[slot] == 0:
            if found == limit:
                return -1
            found += 1
            keys[slot] = bits[i]
        counts[slot] += 1
    return found


@kernel
def _fill_bins(values: F64, least: float, scale: float, sums: I64, counts: I64) -> None:
    """Sum and count of the values in each of 2**12 equal bins, in 40-bit fixed point.

    Integers, so that the order of the values leaves no trace.

    Parameters
    ----------
    values : (n,); n <= 2**22.
    least, scale : ``(value - least) * scale`` lies in [0, 2**40].
    sums, counts : (2**12 + 1,), zeroed; filled.
    """
    for i in range(values.size):
        fixed = np.int64((values[i] - least) * scale + 0.5)
        slot = fixed >> (_FIXED_BITS - _BIN_BITS)
        sums[slot] += fixed - (slot << (_FIXED_BITS - _BIN_BITS))
        counts[slot] += 1


def distinct(values: F64) -> Sample:
    """Distinct values and counts of finite `values` of shape (n,), n >= 1, within [-1, 1].

    Up to `MAX_DISTINCT` distinct values are kept as they are (-0.0 joins 0.0). Beyond that they
    are gathered into 2**12 equal bins; values then move by less than 2**-40 of the range plus a
    displacement inside the bin whose mean is zero, see `Sample.spread`.
    """
    array = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    limit = min(array.size, MAX_DISTINCT)
    slots = 1 << (2 * limit - 1).bit_length()
    keys, counts = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    if _count_distinct(array.view(np.int64), keys, counts, limit) >= 0:
        used = np.flatnonzero(counts)
        found = keys[used].view(np.float64)
        order = np.argsort(found)
        return Sample(found[order], counts[used][order])
    least, greatest = float(array.min()), float(array.max())
    scale = (1 << _FIXED_BITS) / (greatest - least)
    if not math.isfinite(scale):  # a range of subnormal size: the slots cannot be told apart
        return Sample(*(np.asarray(a) for a in np.unique(array, return_counts=True)))
    sums = np.zeros((1 << _BIN_BITS) + 1, np.int64)
    counts = np.zeros(sums.size, np.int64)
    _fill_bins(array, least, scale, sums, counts)
    used = np.flatnonzero(counts)
    inside = sums[used] / counts[used]
    centroids = least + ((used << (_FIXED_BITS - _BIN_BITS)) + inside) / scale
    width = (greatest - least) / (1 << _BIN_BITS)
    return Sample(centroids, counts[used], width * width / 4)


def _denominator(value: float, tolerance: float, cap: float) -> int:
    """Least denominator of a continued-fraction convergent within `tolerance`, or 0 above `cap`."""
    rest, p0, q0, p1, q1 = value, 0, 1, 1, 0
    while True:
        whole = math.floor(rest)
        p0, q0, p1, q1 = p1, q1, whole * p1 + p0, whole * q1 + q0
        if q1 > cap:
            return 0
        if abs(value - p1 / q1) <= tolerance:
            return q1
        rest -= whole
        if rest <= 0:
            return 0
        rest = 1 / rest


def _common_denominator(values: F64) -> int:
    """Least D with every ``values * D`` an integer within the tolerance, or 0 if there is none."""
    scale = float(np.abs(values).max())
    extent = float(values[-1] - values[0])
    tolerance = TOLERANCE * scale
    denominator = 1
    while scale * denominator < 2.0**40:
        scaled = values * denominator
        off = np.abs(scaled - np.rint(scaled)) > tolerance * denominator
        if not off.any():
            return denominator
        cap = MAX_RANGE / extent
        factor = _denominator(float(values[int(off.argmax())]), tolerance, cap)
        grown = math.lcm(denominator, factor)
        if factor == 0 or grown > cap or grown == denominator:
            return 0
        denominator = grown
    return 0


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
    if -200 < exponent < 40 and (denominator := _common_denominator(real)):
        unit = Fraction(1, denominator)
        found = _on_lattice(real * denominator, counts, Fraction(0), unit)
        if found is not None:
            return found
    least, greatest = Fraction(float(real[0])), Fraction(float(real[-1]))
    extent = values[-1] - values[0]
    share = (values - values[0]) / extent
    if denominator := _common_denominator(share):
        unit = (greatest - least) / denominator
        return _on_lattice(share * denominator, counts, least, unit)
    return None
