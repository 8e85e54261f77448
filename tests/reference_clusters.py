"""Slow, obvious versions of the bootstrap of clusters and of strata, to test the quick ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import factorial, prod

import numpy as np

from reference_resample import ends

Pmf = dict[Fraction, Fraction]


def normalised(tally: dict[Fraction, int]) -> Pmf:
    total = sum(tally.values())
    return {atom: Fraction(ways, total) for atom, ways in tally.items()}


def ratio_pmf(s: Sequence[Fraction], m: Sequence[Fraction]) -> Pmf:
    """Law of the ratio by listing all n**n resamples; those without a denominator are left out."""
    tally: Counter[Fraction] = Counter()
    for draw in product(range(len(s)), repeat=len(s)):
        if bottom := sum(Fraction(m[i]) for i in draw):
            tally[sum(Fraction(s[i]) for i in draw) / bottom] += 1
    return normalised(tally)


def gathered_ratio_pmf(s: Sequence[Fraction], m: Sequence[Fraction]) -> Pmf:
    """The same from the multisets of n draws, each with its multinomial weight."""
    n = len(s)
    counts = Counter(zip(s, m, strict=True))
    tally: Counter[Fraction] = Counter()
    for draw in combinations_with_replacement(sorted(counts), n):
        if bottom := sum(Fraction(pair[1]) for pair in draw):
            times = Counter(draw)
            ways = factorial(n) // prod(factorial(t) for t in times.values())
            top = sum(Fraction(pair[0]) for pair in draw)
            tally[top / bottom] += ways * prod(counts[pair] ** t for pair, t in times.items())
    return normalised(tally)


def packed_ratio_pmf(s: Sequence[int], m: Sequence[int]) -> Pmf:
    """The same for integers, by the n-th power of one big integer with a field for each pair."""
    n, least = len(s), min(s)
    width, row = (n**n).bit_length() + 1, n * (max(s) - least) + 1
    power = sum(1 << (width * (b * row + a - least)) for a, b in zip(s, m, strict=True)) ** n
    size = row * (n * max(m) + 1) * width
    raw = bin(power)[2:].zfill(size)
    tally: Counter[Fraction] = Counter()
    for at in range(size // width):
        ways = int(raw[size - (at + 1) * width : size - at * width], 2)
        if ways and at >= row:
            tally[Fraction(at % row + n * least, at // row)] += ways
    return normalised(tally)


def transformed_ratio(s: np.ndarray, m: np.ndarray, level: float) -> tuple[Fraction, Fraction]:
    """Ends for integers s, m >= 0 by one two-dimensional FFT over the whole support."""
    n = s.size
    shape = (n * int(s.max()) + 1, n * int(m.max()) + 1)
    draw = np.zeros(shape)
    np.add.at(draw, (s, m), 1 / n)
    pmf = np.fft.irfft2(np.fft.rfft2(draw) ** n, shape)
    tally: Counter[Fraction] = Counter()
    for a, b in zip(*np.nonzero(pmf > 1e-14), strict=True):
        if b:
            tally[Fraction(int(a), int(b))] += pmf[a, b]
    found = []
    for atoms in (sorted(tally), sorted(tally, reverse=True)):
        sums = np.cumsum([tally[atom] for atom in atoms])
        found.append(atoms[int(np.searchsorted(sums, (1 - level) / 2 * (1 - 1e-12)))])
    return found[0], found[1]


def drawn_ratios(s: np.ndarray, m: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Ratios of random resamples."""
    rng = np.random.default_rng(seed)
    times = rng.multinomial(s.size, np.full(s.size, 1 / s.size), resamples)
    return (times @ s) / (times @ m)


def strata_pmf(strata: Sequence[Sequence[Fraction]]) -> Pmf:
    """Law of the stratified mean by listing the resamples of every stratum."""
    law: Pmf = {Fraction(0): Fraction(1)}
    n = sum(len(part) for part in strata)
    for part in strata:
        tally = Counter(sum(map(Fraction, draw)) for draw in product(part, repeat=len(part)))
        joined: Counter[Fraction] = Counter()
        for a, p in law.items():
            for b, ways in tally.items():
                joined[a + Fraction(b)] += p * Fraction(ways, len(part) ** len(part))
        law = dict(joined)
    return {atom / n: p for atom, p in law.items()}


def packed_strata_pmf(strata: Sequence[Sequence[int]]) -> Pmf:
    """The same for integers, by powers of one big integer for each stratum."""
    n = sum(len(part) for part in strata)
    total = prod(len(part) ** len(part) for part in strata)
    width = total.bit_length() + 1
    power, shift, span = 1, 0, 0
    for part in strata:
        least = min(part)
        power *= sum(1 << (width * (v - least)) for v in part) ** len(part)
        shift += len(part) * least
        span += len(part) * (max(part) - least)
    raw = bin(power)[2:].zfill((span + 1) * width)
    fields = [int(raw[i : i + width], 2) for i in range(span * width, -1, -width)]
    return {Fraction(shift + i, n): Fraction(w, total) for i, w in enumerate(fields) if w}


def drawn_means(values: np.ndarray, codes: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Stratified means of random resamples."""
    rng = np.random.default_rng(seed)
    sums = np.zeros(resamples)
    for code in np.unique(codes):
        part = values[codes == code]
        sums += rng.multinomial(part.size, np.full(part.size, 1 / part.size), resamples) @ part
    return sums / values.size


def nearest_ends(pmf: Pmf, level: str) -> tuple[float, float]:
    """Both ends as the nearest doubles."""
    low, high = ends(pmf, level)
    return low.numerator / low.denominator, high.numerator / high.denominator
