"""Bins for samples of very many distinct values: what is lost is bounded and never the mean."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.histogram import MAX_DISTINCT, Sample, every_distinct, few_distinct

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_BIN_BITS, _FIXED_BITS = 12, 40
_MAX_SPREAD = 2e-6
_ROUNDS = 40


@kernel
def _fill_bins(
    values: F64, weights: I64, least: float, scale: float, sums: I64, counts: I64
) -> None:
    """Sum and count of the values in each of 2**12 equal bins, in 40-bit fixed point.

    Integers, so that the order of the values, and what was counted before, leaves no trace.

    Parameters
    ----------
    values : (n,); n, or the sum of weights, <= 2**34.
    weights : (n,), how often each value counts; empty if once.
    least, scale : ``(value - least) * scale`` lies in [0, 2**40].
    sums, counts : (2**12 + 1,), zeroed; filled.
    """
    for i in range(values.size):
        weight = weights[i] if weights.size > 0 else 1
        fixed = np.int64((values[i] - least) * scale + 0.5)
        slot = fixed >> (_FIXED_BITS - _BIN_BITS)
        sums[slot] += (fixed - (slot << (_FIXED_BITS - _BIN_BITS))) * weight
        counts[slot] += weight


def binned(values: F64, weights: I64) -> Sample | None:
    """Centroids of bins of `values`; None if their range is too small to be divided.

    Parameters
    ----------
    values : (n,), in any order, not all equal.
    weights : (n,), how often each value counts; empty if once.

    Notes
    -----
    The bins are 2**12 equal ones. If outliers make those too wide, for a mean squared distance of
    2e-6 of the variance, bins follow the values instead.
    """
    equal = _equal_bins(values, weights)
    if equal is None:
        return None
    p = equal.counts / equal.size
    variance = float(p @ (equal.values - float(p @ equal.values)) ** 2)
    if equal.spread <= _MAX_SPREAD * variance:
        return equal
    whole = Sample(values, weights) if weights.size else every_distinct(values)
    return _uneven_bins(whole)


def _equal_bins(values: F64, weights: I64) -> Sample | None:
    least, greatest = float(values.min()), float(values.max())
    scale = (1 << _FIXED_BITS) / (greatest - least)
    if not math.isfinite(scale):  # a range of subnormal size
        return None
    sums = np.zeros((1 << _BIN_BITS) + 1, np.int64)
    counts = np.zeros(sums.size, np.int64)
    _fill_bins(values, weights, least, scale, sums, counts)
    used = np.flatnonzero(counts)
    inside = sums[used] / counts[used]
    centroids = least + ((used << (_FIXED_BITS - _BIN_BITS)) + inside) / scale
    width = (greatest - least) / (1 << _BIN_BITS)
    return Sample(centroids, counts[used], width * width / 4)


@inline
def _end_of_bin(values: F64, counts: I64, start: int, most: float) -> int:
    """First value of the next bin: count times squared width stays within `most`."""
    size = counts[start]
    for stop in range(start + 1, values.size):
        size += counts[stop]
        if size * (values[stop] - values[start]) ** 2 > most:
            return stop
    return values.size


@kernel
def _count_bins(values: F64, counts: I64, most: float, limit: int) -> int:
    """Count the bins of `_fill_uneven_bins`.

    Parameters
    ----------
    values, counts : (n,), a histogram.
    most : count times squared width of a bin of more than one value.
    limit : where to stop counting.

    Returns
    -------
    How many bins there are, or limit + 1 if they are more.
    """
    found, start = 0, 0
    while start < values.size and found <= limit:
        start = _end_of_bin(values, counts, start, most)
        found += 1
    return found


@kernel
def _fill_uneven_bins(values: F64, counts: I64, most: float, bins: F64, sizes: I64) -> None:
    """Centroid, width and count of each bin.

    Parameters
    ----------
    values, counts, most : as for `_count_bins`.
    bins : (2, n_bins), filled with centroids and widths.
    sizes : (n_bins,), filled with counts.
    """
    start = 0
    for slot in range(sizes.size):
        stop = _end_of_bin(values, counts, start, most)
        size, moment, lost = 0, 0.0, 0.0
        for i in range(start, stop):  # Kahan: a bin may hold a million values
            term = counts[i] * (values[i] - values[start]) - lost
            total = moment + term
            lost = (total - moment) - term
            moment = total
            size += counts[i]
        bins[0, slot] = values[start] + moment / size
        bins[1, slot] = values[stop - 1] - values[start]
        sizes[slot] = size
        start = stop


def _uneven_bins(sample: Sample) -> Sample:
    """At most `MAX_DISTINCT` bins, narrow where values are many; outliers stay on their own."""
    values, counts = sample.values, sample.counts
    extent = float(values[-1] - values[0])
    # Between these powers of two lies the least `most` that needs no more bins than allowed.
    low, high = -1074.0, math.log2(sample.size) + 2.0 * math.log2(extent) + 1.0
    found = 1
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        n_bins = int(_count_bins(values, counts, 2.0**middle, MAX_DISTINCT))
        if n_bins > MAX_DISTINCT:
            low = middle
            continue
        high, found = middle, n_bins
        if found > MAX_DISTINCT * 15 // 16:
            break
    bins, sizes = np.empty((2, found)), np.empty(found, np.int64)
    _fill_uneven_bins(values, counts, 2.0**high, bins, sizes)
    spread = float((sizes / sample.size) @ (bins[1] ** 2)) / 4.0
    return Sample(bins[0].copy(), sizes, spread)


def distinct(values: F64) -> Sample:
    """Distinct values and counts of finite `values` of shape (n,), n >= 1, within [-1, 1].

    Up to `MAX_DISTINCT` distinct values are kept as they are (-0.0 joins 0.0). Beyond that they
    are gathered into 2**12 equal bins; values then move by less than 2**-40 of the range plus a
    displacement inside the bin whose mean is zero, see `Sample.spread`.
    """
    array = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    found = few_distinct(array) or binned(array, np.empty(0, np.int64))
    return found or every_distinct(array)
