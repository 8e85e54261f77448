"""Correctly rounded sums: the same bits whatever the order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_SMALL_SUM = 256


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
