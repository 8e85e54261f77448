"""A sample as distinct values and counts: the sufficient statistic of every resampling here.

Histograms of parts add up to that of the whole, bit for bit, so that shards need to hand over
nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels._jit import kernel, mul64

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
T = TypeVar("T")

MAX_DISTINCT = 4096
"""Above this many distinct values a sample is resampled as bin centroids instead."""

_BIN_BITS, _FIXED_BITS = 12, 40
_HASH = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct values in ascending order and how often each occurs.

    `spread` is 0.0 when the values are exact. Otherwise they are centroids of bins of the
    original values, and `spread` bounds the mean squared distance of a value from its centroid.
    `memo` holds what was derived from the sample once (lattice, transform), for the next
    statistic of the same sample; it is no part of its value.
    """

    values: F64
    counts: I64
    spread: float = 0.0
    memo: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def size(self) -> int:
        """How many values there are, repeats included."""
        return int(self.counts.sum())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        return (
            self.spread == other.spread
            and self.values.tobytes() == other.values.tobytes()
            and self.counts.tobytes() == other.counts.tobytes()
        )

    __hash__ = None  # type: ignore[assignment]

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """What `memo` has under `name`, made now if it is not there yet."""
        if name not in self.memo:
            self.memo[name] = make()
        return self.memo[name]


def checked_values(values: ArrayLike) -> F64:
    """`values` as a plain array of finite floats: contiguous, writable, of one dimension.

    Raises
    ------
    ValueError
        If a value is not finite or `values` is not one-dimensional.
    """
    array = plain_values(values)
    if not math.isfinite(float(np.abs(array).max(initial=0.0))):
        refuse_values(array)
    return array


def plain_values(values: ArrayLike) -> F64:
    """`checked_values` without a look at the values."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"values have shape {array.shape}; expected one dimension")
    # Kernels are compiled for this layout alone; a view of an Arrow buffer is read-only.
    return array if array.flags.carray else array.copy()


def refuse_values(array: F64) -> None:
    """Raise the ValueError that names the first value that is not finite, if there is one."""
    broken = np.flatnonzero(~np.isfinite(array))
    if broken.size:
        at = int(broken[0])
        raise ValueError(f"values[{at}] is {array[at]}; expected finite numbers")


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


def _few_distinct(array: F64) -> Sample | None:
    """Histogram of `array`, which has no -0.0, or None if it has above `MAX_DISTINCT` values."""
    limit = min(array.size, MAX_DISTINCT)
    slots = 1 << (2 * limit - 1).bit_length()
    keys, counts = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    if _count_distinct(array.view(np.int64), keys, counts, limit) < 0:
        return None
    used = np.flatnonzero(counts)
    found = keys[used].view(np.float64)
    order = np.argsort(found)
    return Sample(found[order], counts[used][order])


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
    """Centroids of 2**12 equal bins of `values`; None if their range is too small to be divided.

    Parameters
    ----------
    values : (n,), in any order, not all equal.
    weights : (n,), how often each value counts; empty if once.
    """
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


def distinct(values: F64) -> Sample:
    """Distinct values and counts of finite `values` of shape (n,), n >= 1, within [-1, 1].

    Up to `MAX_DISTINCT` distinct values are kept as they are (-0.0 joins 0.0). Beyond that they
    are gathered into 2**12 equal bins; values then move by less than 2**-40 of the range plus a
    displacement inside the bin whose mean is zero, see `Sample.spread`.
    """
    array = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    found = _few_distinct(array) or binned(array, np.empty(0, np.int64))
    return found or _every_distinct(array)


def _every_distinct(array: F64) -> Sample:
    values, counts = np.unique(array, return_counts=True)
    return Sample(values, counts.astype(np.int64))


def histogram(values: ArrayLike) -> Sample:
    """Distinct values and counts of `values`, as they are, however many.

    Parameters
    ----------
    values : (n,), finite numbers in any unit and order; -0.0 counts as 0.0.

    Returns
    -------
    The same for any order of the values. Empty for no values.

    Raises
    ------
    ValueError
        If a value is not finite or `values` is not one-dimensional.
    """
    array = checked_values(values) + 0.0
    if array.size == 0:
        return Sample(array, np.empty(0, np.int64))
    return _few_distinct(array) or _every_distinct(array)


def merge(samples: Iterable[Sample]) -> Sample:
    """Histogram of all values of `samples` together: counts of equal values add up.

    Parameters
    ----------
    samples : from `histogram`, in any order; none give the empty sample.

    Returns
    -------
    To the last bit what `histogram` makes of the concatenated values.

    Raises
    ------
    ValueError
        If a sample holds bins: those do not add up.
    """
    parts = [checked_sample(sample) for sample in samples]
    values = np.concatenate([np.empty(0), *(part.values for part in parts)])
    counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)])
    order = np.argsort(values, kind="stable")
    return joined(values[order], counts[order])


def joined(values: F64, counts: I64) -> Sample:
    """The sample of ascending `values` that may repeat."""
    if values.size == 0:
        return Sample(values, counts)
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    if first.size == values.size:
        return Sample(values, counts)
    return Sample(values[first], np.add.reduceat(counts, first))


def checked_sample(sample: Sample) -> Sample:
    """`sample` if it is a histogram, looked at once.

    Raises
    ------
    ValueError
        If values do not ascend or are not finite, a count is below 1, or it holds bins.
    """
    if "checked" in sample.memo:
        return sample
    values, counts = sample.values, sample.counts
    if sample.spread:
        raise ValueError("sample holds bins, not values; expected one from `histogram`")
    if values.ndim != 1 or values.shape != counts.shape:
        raise ValueError(
            f"sample has values of shape {values.shape} and counts of shape {counts.shape}; "
            "expected one dimension and equal lengths"
        )
    if (values.dtype, counts.dtype) != (np.float64, np.int64):
        raise ValueError(
            f"sample has values of {values.dtype} and counts of {counts.dtype}; "
            "expected float64 and int64"
        )
    refuse_values(values)
    if not (values[1:] > values[:-1]).all():
        raise ValueError("sample has values out of order; expected them to ascend")
    if values.size and int(counts.min()) < 1:
        raise ValueError(f"sample has a count of {counts.min()}; expected 1 or more")
    sample.memo["checked"] = True
    return sample


def sample_of(values: ArrayLike | Sample) -> Sample:
    """`values` as a sample: their histogram, or themselves if they are one already."""
    return checked_sample(values) if isinstance(values, Sample) else histogram(values)
