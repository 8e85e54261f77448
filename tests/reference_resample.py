"""Slow, obvious versions of the exact bootstrap of a mean, to test the quick ones against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement, product
from math import factorial, prod

import numpy as np

TIE = Fraction(1, 10**12)


def ends(pmf: dict[Fraction, Fraction], level: str) -> tuple[Fraction, Fraction]:
    """Both ends of the interval of a distribution, by summing from either side."""
    wanted = (1 - Fraction(level)) / 2 * (1 - TIE)
    found = []
    for atoms in (sorted(pmf), sorted(pmf, reverse=True)):
        sums = accumulate(pmf[atom] for atom in atoms)
        found.append(next(a for a, total in zip(atoms, sums, strict=True) if total >= wanted))
    return found[0], found[1]


def enumerated(values: Sequence[Fraction], level: str) -> tuple[Fraction, Fraction]:
    """Ends by listing all n**n resamples."""
    n = len(values)
    tally = Counter(sum(draw) for draw in product(values, repeat=n))
    return ends({Fraction(s, n): Fraction(c, n**n) for s, c in tally.items()}, level)


def gathered(values: Sequence[Fraction], level: str) -> tuple[Fraction, Fraction]:
    """Ends by listing the multisets of n draws, each with its multinomial weight."""
    n = len(values)
    counts = Counter(values)
    tally: Counter[Fraction] = Counter()
    for draw in combinations_with_replacement(sorted(counts), n):
        times = Counter(draw)
        ways = factorial(n) // prod(factorial(t) for t in times.values())
        tally[Fraction(sum(draw), n)] += ways * prod(counts[v] ** t for v, t in times.items())
    return ends({s: Fraction(c, n**n) for s, c in tally.items()}, level)


def convolved(numerators: Sequence[int], denominator: int, level: str) -> tuple[Fraction, Fraction]:
    """Ends for the values numerators / denominator, by the n-th power of one big integer.

    Each coefficient of the polynomial has a field of bits wide enough for the n-th power.
    """
    n, least = len(numerators), min(numerators)
    width = (n**n).bit_length() + 1
    packed = sum(count << (width * (v - least)) for v, count in Counter(numerators).items()) ** n
    wanted = (1 - Fraction(level)) / 2 * (1 - TIE) * n**n
    size = (n * (max(numerators) - least) + 1) * width
    raw = bin(packed)[2:].zfill(size)
    fields = [int(raw[i : i + width], 2) for i in range(size - width, -1, -width)]
    low = next(s for s, total in enumerate(accumulate(fields)) if total >= wanted)
    high = next(s for s, total in enumerate(accumulate(reversed(fields))) if total >= wanted)
    high = len(fields) - 1 - high
    return tuple(Fraction(n * least + s, denominator * n) for s in (low, high))  # type: ignore


def composed(values: Sequence[float], level: float) -> tuple[float, float]:
    """Ends for a few distinct doubles of any kind, from every vector of multiplicities."""
    n = len(values)
    kinds = sorted(Counter(values).items())
    sums, logs, left = np.zeros(1), np.zeros(1), np.array([n])
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    for i, (value, count) in enumerate(kinds):
        last = i == len(kinds) - 1
        starts = left if last else np.zeros_like(left)
        rows = np.repeat(np.arange(left.size), left - starts + 1)
        first = np.concatenate([[0], np.cumsum(left - starts + 1)[:-1]])
        times = np.arange(rows.size) - first[rows] + starts[rows]
        sums = sums[rows] + times * value
        logs = logs[rows] + times * np.log(count / n) - log_factorial[times]
        left = left[rows] - times
    order = np.argsort(sums)
    pmf = np.exp(logs + log_factorial[n])[order]
    wanted = (1 - level) / 2 * (1 - 1e-12)
    low = int(np.searchsorted(np.cumsum(pmf), wanted))
    high = int(np.searchsorted(np.cumsum(pmf[::-1]), wanted))
    return sums[order][low] / n, sums[order][::-1][high] / n


def transformed(numerators: np.ndarray, denominator: int, level: float) -> tuple[float, float]:
    """Ends on a fine lattice, by one FFT over 20 standard deviations of the sum."""
    n = numerators.size
    middle = round(float(numerators.mean()))
    size = 1 << int(20 * numerators.std() * n**0.5).bit_length()
    draw = np.bincount((numerators - middle) % size, minlength=size) / n
    pmf = np.roll(np.fft.irfft(np.fft.rfft(draw) ** n, size), size // 2)
    wanted = (1 - level) / 2
    low = int(np.searchsorted(np.cumsum(pmf), wanted)) - size // 2
    high = size // 2 - 1 - int(np.searchsorted(np.cumsum(pmf[::-1]), wanted))
    return tuple((n * middle + s) / (n * denominator) for s in (low, high))  # type: ignore
