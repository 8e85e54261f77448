"""Resampling on a lattice in integers alone: to decide near ties, and to list small samples.

A sample is a polynomial: its coefficients count the values, its exponents are their points. The
coefficients of its n-th power count, for each sum, the ordered resamples that have it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]

_MAX_DRAWS, _MAX_STEPS = 2_000, 3_000_000


def near(found: float, before: float, target: float, noise: float) -> bool:
    """Whether rounding may have decided that `found` reaches `target` and `before` does not."""
    return min(abs(found - target), abs(before - target)) <= noise


def settled(points: I64, counts: I64, sign: int, target: float, end: int) -> int:
    """`end`, found with rounding, decided again by integers where that is affordable.

    Parameters
    ----------
    points, counts : of a lattice; points ascend from 0.
    sign : 1 to sum from the least point on, -1 from the greatest.
    target : a probability.
    end : sum of points found, counted from the side that `sign` tells.
    """
    n = int(counts.sum())
    if n > _MAX_DRAWS or (end + 2) * points.size > _MAX_STEPS:
        return end
    if sign < 0:
        points, counts = int(points[-1]) - points[::-1], counts[::-1]
    return integer_quantile(points.tolist(), counts.tolist(), n, target)


def integer_quantile(points: list[int], counts: list[int], n: int, target: float) -> int:
    """Least sum s of n draws with ``P(sum <= s) >= target``, in integers alone.

    Coefficients q of Q = P**n, P the polynomial of `counts`, follow from P Q' = n P' Q.
    """
    exact = Fraction(target)
    wanted = exact.numerator * n**n
    coefficients = [counts[0] ** n]
    reached = coefficients[0]
    while reached * exact.denominator < wanted:
        k = len(coefficients)
        total = 0
        for point, count in zip(points[1:], counts[1:], strict=True):
            if point > k:
                break
            total += ((n + 1) * point - k) * count * coefficients[k - point]
        coefficients.append(total // (k * counts[0]))
        reached += coefficients[-1]
    return len(coefficients) - 1


def packed_bits(extent: int, n: int) -> int:
    """Bits of the integer that `ways` computes; its cost grows a little faster than they do."""
    return (n * extent + 1) * _field_bytes(n) * 8


def _field_bytes(n: int) -> int:
    return ((n**n).bit_length() + 7) // 8


def ways(points: I64, counts: I64) -> list[int]:
    """How many of the n**n ordered resamples have each sum of points, from 0 to n * extent.

    Parameters
    ----------
    points, counts : of a lattice; points ascend from 0. Ask `packed_bits` first.

    Notes
    -----
    The polynomial is packed into one integer, a field for each coefficient, wide enough for the
    n-th power.
    """
    n = int(counts.sum())
    size = _field_bytes(n)
    packed = 0
    for point, count in zip(points.tolist(), counts.tolist(), strict=True):
        packed += count << (8 * size * point)
    fields = n * int(points[-1]) + 1
    raw = (packed**n).to_bytes(fields * size, "little")
    return [int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size)]


def listed(values: list[int], counts: list[int], n: int) -> dict[int, int]:
    """How many of the n**n ordered resamples have each sum; for values far from a small lattice."""
    found = {0: 1}
    for _ in range(n):
        grown: dict[int, int] = {}
        for total, count in found.items():
            for value, times in zip(values, counts, strict=True):
                grown[total + value] = grown.get(total + value, 0) + count * times
        found = grown
    return found
