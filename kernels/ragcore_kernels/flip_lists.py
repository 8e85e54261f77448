"""Tail of a sum with random signs by listing its values: for few cases or few values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.binomial import binomial_masses

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@inline
def _scaled(ways: F64) -> int:
    """Halve `ways` until none is above 2**200; how often."""
    top = 0.0
    for i in range(ways.size):
        top = max(top, ways[i])
    if top <= 2.0**200:
        return 0
    halvings = int(math.log2(top)) - 100
    factor = 2.0**-halvings
    for i in range(ways.size):
        ways[i] *= factor
    return halvings


@inline
def _add(a: F64, b: F64, out: F64) -> None:
    """``a + b``; arguments of their own length let this run on vectors."""
    for i in range(out.size):
        out[i] = a[i] + b[i]


@kernel
def count_subsets(points: I64, counts: I64, ways: F64, more: F64) -> int:
    """Count the sets of cases whose points add up to 0, 1, ... at most.

    Parameters
    ----------
    points : (n_values,), above 0, in ascending order.
    counts : (n_values,), cases with each.
    ways, more : (limit + 1,), `ways` zeroed, `more` scratch. One of both is filled.

    Returns
    -------
    e, if the numbers are in `ways` and are to be multiplied by 2**e; ``-1 - e`` if in `more`.

    Notes
    -----
    Terms are positive: relative error below 1e-16 times the number of cases.
    """
    limit = ways.size - 1
    ways[0] = 1.0
    top, steps, halvings, swapped = np.int64(0), 0, 0, False
    for j in range(points.size):
        v = points[j]
        if v > limit:
            break
        for _ in range(counts[j]):
            top = min(top + v, limit)
            for i in range(v):
                more[i] = ways[i]
            _add(ways[v : top + 1], ways[: top + 1 - v], more[v : top + 1])
            for i in range(top + 1, min(top + v, limit) + 1):
                more[i] = 0.0
            ways, more = more, ways
            swapped = not swapped
            steps += 1
            if steps % 256 == 0:
                halvings += _scaled(ways)
    return -1 - halvings if swapped else halvings


@kernel
def signed_sums(values: F64, sums: F64, more: F64) -> None:
    """List the sums of values with either sign, in ascending order, for two sets of values.

    Both at a time, since each list waits for its own last element only.

    Parameters
    ----------
    values : (2, m), none negative; m >= 1.
    sums, more : (2, 2**m), filled; scratch.
    """
    m = values.shape[1]
    for side in range(2):
        first = sums[side] if m & 1 else more[side]
        first[0], first[1] = -values[side, 0], values[side, 0]
    here, there = (sums, more) if m & 1 else (more, sums)
    size = 2
    for k in range(1, m):
        v, w = values[0, k], values[1, k]
        p, q, to_p, to_q = here[0], here[1], there[0], there[1]
        a, b, c, d = size - 1, size - 1, size - 1, size - 1
        for i in range(size):  # merge here + v and here - v from the top; the rest is its mirror
            high, low = p[a] + v, p[b] - v
            first_high = 1 if high >= low else 0
            top = high if high >= low else low
            to_p[2 * size - 1 - i] = top
            to_p[i] = -top
            a -= first_high
            b -= 1 - first_high
            high, low = q[c] + w, q[d] - w
            first_high = 1 if high >= low else 0
            top = high if high >= low else low
            to_q[2 * size - 1 - i] = top
            to_q[i] = -top
            c -= first_high
            d -= 1 - first_high
        here, there = there, here
        size *= 2


@kernel
def count_pairs(a: F64, b: F64, least: float) -> int:
    """How many pairs of an element of `a` and one of `b` add up to `least` or more.

    Parameters
    ----------
    a, b : (n_a,), (n_b,), both in ascending order.
    least : in their unit.
    """
    total, middle = np.int64(0), a.size // 2
    i, j = 0, b.size  # upwards in the lower half of a
    k, m = a.size - 1, 0  # downwards in the upper half, side by side to keep the processor busy
    while i < middle and j > 0 and k >= middle and m < b.size:
        down = 1 if a[i] + b[j - 1] >= least else 0
        left = 1 if a[k] + b[m] >= least else 0
        total += (1 - down) * (b.size - j) + left * (b.size - m)
        j -= down
        i += 1 - down
        k -= left
        m += 1 - left
    while i < middle:
        while j > 0 and a[i] + b[j - 1] >= least:
            j -= 1
        total += b.size - j
        i += 1
    while k >= middle:
        while m < b.size and a[k] + b[m] < least:
            m += 1
        total += b.size - m
        k -= 1
    return total


@kernel
def weigh_pairs(a: F64, weights: F64, b: F64, beyond: F64, least: float) -> float:
    """Probability that A + B is `least` or more.

    Parameters
    ----------
    a, weights : (n_a,), values of A in ascending order; their probabilities.
    b, beyond : (n_b,), values of B in ascending order; P(B >= b).
    least : in their unit.
    """
    total, j = 0.0, b.size
    for i in range(a.size):
        while j > 0 and a[i] + b[j - 1] >= least:
            j -= 1
        if j < b.size:
            total += weights[i] * beyond[j]
    return total


def subset_tail(points: I64, counts: I64, limit: int) -> tuple[float, int]:
    """Probability, as a mantissa and a power of two, that a random subset adds up to `limit`.

    Parameters
    ----------
    points, counts : as for `count_subsets`; each case is in the subset with probability 1/2.
    limit : greatest sum that counts.
    """
    ways, more = np.zeros(limit + 1), np.zeros(limit + 1)
    halvings = int(count_subsets(points, counts, ways, more))
    if halvings < 0:
        ways, halvings = more, -1 - halvings
    return float(ways.sum()), halvings - int(counts.sum())


def half_tail(values: F64, least: float) -> float:
    """P(T >= least) from all sums of either half of the values; up to 40 of them.

    Parameters
    ----------
    values : (m,), above 0.
    least : in their unit.
    """
    half = (values.size + 1) // 2
    halves = np.zeros((2, half))  # with a 0 more if there is an odd one: it doubles every sum
    halves[0], halves[1, : values.size - half] = values[0::2], values[1::2]
    sums, more = np.empty((2, 1 << half)), np.empty((2, 1 << half))
    signed_sums(halves, sums, more)
    return math.ldexp(float(count_pairs(sums[0], sums[1], least)), -2 * half)


def group_sizes(counts: I64) -> tuple[list[int], list[int], int]:
    """Split the distinct values into two groups, and how many sums the larger group has."""
    if np.log2(counts + 1.0).sum() > 60.0:
        return [], [], 1 << 30
    order = np.argsort(-counts, kind="stable").tolist()
    groups: tuple[list[int], list[int]] = ([], [])
    sizes = [1, 1]
    for j in order:
        side = 0 if sizes[0] <= sizes[1] else 1
        groups[side].append(j)
        sizes[side] *= int(counts[j]) + 1
    return groups[0], groups[1], max(sizes)


def _group(values: F64, counts: I64, chosen: list[int]) -> tuple[F64, F64]:
    """Every sum of a group in ascending order, and its probability."""
    sums, weights = np.zeros(1), np.ones(1)
    for j in chosen:
        count = int(counts[j])
        masses = np.empty(count + 1)
        binomial_masses(count, 0.5, 0.5, masses)
        shifts = (2.0 * np.arange(count + 1) - count) * values[j]
        sums = (shifts[:, None] + sums).ravel()
        weights = (masses[:, None] * weights).ravel()
        order = np.argsort(sums, kind="stable")
        sums, weights = sums[order], weights[order]
    return sums, weights


def grouped_tail(
    values: F64, counts: I64, groups: tuple[list[int], list[int]], least: float
) -> float:
    """P(T >= least) from all sums of either group of values, each with its probability.

    Parameters
    ----------
    values, counts : (n_values,), above 0; how often each occurs.
    groups : positions of the values of either group, see `group_sizes`.
    least : in the unit of the values.
    """
    a, weights = _group(values, counts, groups[0])
    b, others = _group(values, counts, groups[1])
    beyond = np.cumsum(others[::-1])[::-1]
    return float(weigh_pairs(a, weights, b, np.ascontiguousarray(beyond), least))
