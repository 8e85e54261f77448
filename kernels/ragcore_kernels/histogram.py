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

_BLOCK = 256
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


def plain_values(values: ArrayLike) -> F64:
    """`values` as an array of floats that kernels take: contiguous, writable, one dimension.

    Raises
    ------
    ValueError
        If `values` is not one-dimensional. The values themselves are not looked at.
    """
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
def count_few(values: F64, found: F64, counts: I64) -> int:
    """Count distinct values, as long as there are at most three.

    Parameters
    ----------
    values : (n,)
    found, counts : (3,), filled: distinct values in ascending order, how often each occurs.

    Returns
    -------
    How many distinct values there are, or -1 if more than three or if one is not finite.
    """
    kinds = 0
    found[0], found[1], found[2] = math.nan, math.nan, math.nan
    counts[0], counts[1], counts[2] = 0, 0, 0
    for start in range(0, values.size, _BLOCK):
        stop = min(values.size, start + _BLOCK)
        a, b, c = found[0], found[1], found[2]
        n_a, n_b, n_c = 0, 0, 0
        for i in range(start, stop):
            n_a += values[i] == a
            n_b += values[i] == b
            n_c += values[i] == c
        if n_a + n_b + n_c == stop - start:  # nothing new, as in nearly every block
            counts[0] += n_a
            counts[1] += n_b
            counts[2] += n_c
            continue
        for i in range(start, stop):
            slot = 0
            while slot < kinds and found[slot] != values[i]:
                slot += 1
            if slot == kinds:
                if kinds == 3 or not math.isfinite(values[i]):
                    return -1
                found[slot] = values[i] + 0.0  # -0.0 joins 0.0
                kinds += 1
            counts[slot] += 1
    for last in range(kinds - 1, 0, -1):
        for i in range(last):
            if found[i] > found[i + 1]:
                found[i], found[i + 1] = found[i + 1], found[i]
                counts[i], counts[i + 1] = counts[i + 1], counts[i]
    return kinds


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


def few_distinct(array: F64) -> Sample | None:
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


def every_distinct(array: F64) -> Sample:
    """Histogram of `array`, which has no -0.0, by sorting it."""
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
    array = plain_values(values)
    found, counts = np.empty(3), np.empty(3, np.int64)
    kinds = int(count_few(array, found, counts))
    if kinds >= 0:
        return Sample(found[:kinds], counts[:kinds])
    if not math.isfinite(float(np.abs(array).max())):
        refuse_values(array)
    array = array + 0.0  # -0.0 joins 0.0
    return few_distinct(array) or every_distinct(array)


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
