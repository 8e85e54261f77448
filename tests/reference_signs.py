"""Slow, obvious versions of the sign-flip test and its companions; samples to try them on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np


def enumerated(values: Sequence[Fraction]) -> Fraction:
    """P-value by listing all 2**n assignments of signs."""
    seen = abs(sum(values))
    sums = [sum(s * v for s, v in zip(signs, values, strict=True)) for signs in
            product((-1, 1), repeat=len(values))]  # fmt: skip
    return Fraction(sum(abs(total) >= seen for total in sums), len(sums))


def listed(values: Sequence[float]) -> float:
    """The same for doubles, up to twenty; sums within 1e-12 are equal."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return float(np.mean(np.abs(sums) >= abs(sum(values)) - 1e-12))


def counted(points: Sequence[int]) -> Fraction:
    """P-value of whole differences, by one big integer with a field of bits for each sum."""
    sizes = [abs(p) for p in points if p]
    width = 8 * (len(sizes) // 8 + 1)
    packed = 1
    for size, count in Counter(sizes).items():
        packed *= (1 + (1 << (width * size))) ** count
    below = (sum(sizes) - abs(sum(points))) // 2
    if 2 * below >= sum(sizes):
        return Fraction(1)
    raw = packed.to_bytes((packed.bit_length() + 7) // 8, "little")
    step = width // 8
    ways = sum(int.from_bytes(raw[i : i + step], "little") for i in
               range(0, (below + 1) * step, step))  # fmt: skip
    return Fraction(2 * ways, 1 << len(sizes))


def added(points: np.ndarray) -> float:
    """The same in doubles, all terms positive, one case at a time: p-values of any size."""
    sizes = np.sort(np.abs(points[points != 0]))
    below = int(sizes.sum() - abs(points.sum())) // 2
    if 2 * below >= sizes.sum():
        return 1.0
    ways = np.zeros(below + 1)
    ways[0] = 1.0
    for size in sizes.tolist():
        shifted = np.zeros_like(ways)
        shifted[size:] = ways[: max(below + 1 - size, 0)]
        ways = 0.5 * (ways + shifted)
    return float(2.0 * ways.sum())


def folded(points: np.ndarray) -> float:
    """P-value on a fine lattice, by one FFT over twenty-odd deviations of the sum; to 1e-12."""
    sizes = np.abs(points[points != 0])
    t = int(abs(points.sum()))
    n = 1 << int(24 * float((sizes.astype(float) ** 2).sum()) ** 0.5).bit_length()
    turns = np.arange(n // 2 + 1)  # of the frequencies that are not negligible yet
    product = np.ones(n // 2 + 1)
    for i, (size, count) in enumerate(Counter(sizes.tolist()).items()):
        product *= np.cos(2 * np.pi * (turns * size % n) / n) ** count
        if i % 8 == 0:
            kept = np.abs(product) > 1e-20
            turns, product = turns[kept], product[kept]
    psi = np.zeros(n // 2 + 1)
    psi[turns] = product
    pmf = np.fft.irfft(psi, n)
    return float(2 * pmf[t : n // 2].sum()) if t else 1.0


def binomial(k: int, n: int, p: Fraction) -> tuple[Fraction, Fraction]:
    """P(K = k) and P(K >= k), in fractions."""
    masses = [comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)]
    return masses[0], sum(masses, Fraction(0))


def stepped_down(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values as his procedure is told: smallest first."""
    k = len(p_values)
    adjusted, most = [0.0] * k, 0.0
    for i, at in enumerate(sorted(range(k), key=lambda j: p_values[j])):
        most = max(most, min(1.0, (k - i) * p_values[at]))
        adjusted[at] = most
    return adjusted


# --- samples

SETS: dict[str, list[int | Fraction]] = {
    "signs": [-1, 0, 1],
    "tenths": [Fraction(-3, 10), Fraction(-1, 10), 0, Fraction(1, 10), Fraction(7, 10)],
    "thirds": [Fraction(-1, 3), Fraction(1, 3), Fraction(1, 2), 1],
    "sixths": [Fraction(5, 6), Fraction(-1, 6)],
    "skewed": [0, Fraction(1, 7), 13],
    "reciprocal": [0] + [s * Fraction(1, rank) for rank in range(1, 11) for s in (-1, 1)],
    "odd": [-3, 5, 7],
}


def ranks(n: int, seed: int, shift: int = 0) -> np.ndarray:
    """Differences of reciprocal ranks at 10, in 2520ths; `shift` makes one system worse."""
    rng = np.random.default_rng(seed)
    points = np.array([2520 // r for r in range(1, 11)] + [0] * 4)
    mine = points[rng.integers(0, 14, n)]
    other = np.where(rng.random(n) < 0.3, mine, points[rng.integers(shift, 14, n)])
    return mine - other


def gains(n: int, seed: int, shift: float = 0.0) -> np.ndarray:
    """Differences of nDCG@10, irrational, some of them 0."""
    rng = np.random.default_rng(seed)
    discount = 1 / np.log2(np.arange(2, 12))
    ideal = np.cumsum(discount)

    def one(share: float) -> np.ndarray:
        found = rng.random((n, 10)) < share
        return found @ discount / ideal[np.maximum(found.sum(1), 1) - 1]

    return np.where(rng.random(n) < 0.3, 0.0, one(0.25 + shift) - one(0.25))


def aligned(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Magnitudes, counts and outcome of whole differences."""
    sizes, counts = np.unique(np.abs(points[points != 0]), return_counts=True)
    return sizes, counts.astype(np.int64), int(abs(points.sum()))


def floats(values: Sequence[int | Fraction]) -> np.ndarray:
    """The nearest doubles."""
    return np.array([float(v) for v in values])
