"""Slow, obvious versions of tails, BCa intervals and random resampling."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, product
from statistics import NormalDist

import numpy as np

Pmf = dict[Fraction, Fraction]
NORMAL = NormalDist()


def enumerated_pmf(values: Sequence[Fraction]) -> Pmf:
    """The mean's distribution by listing all n**n resamples."""
    n = len(values)
    tally = Counter(sum(draw) for draw in product(values, repeat=n))
    return {Fraction(s) / n: Fraction(c, n**n) for s, c in sorted(tally.items())}


def convolved_pmf(numerators: Sequence[int], denominator: int) -> Pmf:
    """The mean's distribution for numerators / denominator, one draw after another in integers."""
    n = len(numerators)
    draw = Counter(numerators)
    tally = {0: 1}
    for _ in range(n):
        grown: Counter[int] = Counter()
        for total, ways in tally.items():
            for value, count in draw.items():
                grown[total + value] += ways * count
        tally = grown
    return {Fraction(s, n * denominator): Fraction(c, n**n) for s, c in sorted(tally.items())}


def tails_of(pmf: Pmf, at: Fraction) -> tuple[float, float, float]:
    """Below, equal and above, each correctly rounded."""
    below = sum((p for x, p in pmf.items() if x < at), Fraction(0))
    above = sum((p for x, p in pmf.items() if x > at), Fraction(0))
    return float(below), float(pmf.get(at, Fraction(0))), float(above)


def quantiles_of(pmf: Pmf, lower: float, upper: float) -> tuple[Fraction, Fraction]:
    """Least atom with `lower` at or below it, greatest with `upper` at or above."""
    atoms = sorted(pmf)
    found = []
    for target, ordered in ((lower, atoms), (upper, atoms[::-1])):
        wanted = Fraction(target) * (1 - Fraction(1, 10**12))
        sums = accumulate(pmf[atom] for atom in ordered)
        found.append(next(a for a, total in zip(ordered, sums, strict=True) if total >= wanted))
    return found[0], found[1]


def bca_of(values: Sequence[Fraction], pmf: Pmf, level: float) -> tuple[float, float, float, float]:
    """Low, high, z0 and acceleration, straight from the textbook; a by the jackknife."""
    n = len(values)
    mean = sum(values, Fraction(0)) / n
    below, equal, _ = tails_of(pmf, mean)
    z0 = NORMAL.inv_cdf(below + equal / 2)
    left_out = [(n * mean - value) / (n - 1) for value in values]
    centre = sum(left_out, Fraction(0)) / n
    cubes = float(sum((centre - x) ** 3 for x in left_out))
    squares = float(sum((centre - x) ** 2 for x in left_out))
    a = cubes / (6 * squares**1.5)
    shares = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        moved = z0 + NORMAL.inv_cdf(share)
        shares.append(NORMAL.cdf(z0 + moved / (1 - a * moved)))
    low, high = quantiles_of(pmf, shares[0], 1 - shares[1])
    return float(low), float(high), z0, a


def multinomial_means(values: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """Sorted means of random resamples, by how often each distinct value is drawn."""
    kinds, counts = np.unique(values, return_counts=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(values.size, counts / values.size, replicates)
    return np.sort(drawn @ kinds / values.size)


def quantile_error(share: float, replicates: int) -> float:
    """Five standard errors of a share found by so many replicates."""
    return 5 * math.sqrt(share * (1 - share) / replicates)
