"""Small samples off a lattice: sums of half the draws are listed, pairs of them searched."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.histogram import Sample
from ragcore_kernels.lattice import TOLERANCE

F64 = NDArray[np.float64]

_MAX_HALVES, _MAX_DRAWS = 20_000, 40


@dataclass(frozen=True)
class Halves:
    """Sums A and B of half the draws each, ascending, and their probabilities."""

    n: int
    a: F64
    weights: F64
    b: F64
    others: F64

    def mirrored(self) -> Halves:
        """The same of the negated values."""
        parts = (-self.a[::-1], self.weights[::-1], -self.b[::-1], self.others[::-1])
        return Halves(self.n, *(np.ascontiguousarray(part) for part in parts))


@kernel
def _split_quantile(a: F64, weights: F64, b: F64, cumulated: F64, target: float) -> float:
    """Least atom x of A + B with ``P(A + B <= x) >= target``.

    Parameters
    ----------
    a, weights : (n_a,), values of A in ascending order, probabilities.
    b, cumulated : (n_b,), values of B in ascending order, ``P(B <= b)``.
    target : a probability, above 0.
    """
    low, high = a[0] + b[0], a[-1] + b[-1]
    span = high - low
    low -= span
    atom = high
    for _ in range(64):
        x = 0.5 * (low + high)
        if x <= low or x >= high:
            break
        total, nearest = 0.0, low
        j = b.size - 1
        for i in range(a.size):
            while j >= 0 and a[i] + b[j] > x:
                j -= 1
            if j < 0:
                break
            total += weights[i] * cumulated[j]
            nearest = max(nearest, a[i] + b[j])
        if total >= target:
            high, atom = nearest, nearest
        else:
            low = x
    return atom


def _half(values: list[float], p: list[float], draws: int) -> tuple[F64, F64]:
    """Every sum of `draws` draws, in ascending order, with its probability."""
    sums = [np.zeros(1)] + [np.zeros(0)] * draws
    weights = [np.ones(1)] + [np.zeros(0)] * draws
    for value, share in zip(values, p, strict=True):
        odds = [(draws * share) ** i / math.factorial(i) for i in range(draws + 1)]
        pairs = [[(m - i, i) for i in range(m + 1)] for m in range(draws + 1)]
        grown = [np.concatenate([sums[m] + i * value for m, i in row]) for row in pairs]
        weights = [np.concatenate([weights[m] * odds[i] for m, i in row]) for row in pairs]
        sums = grown
    order = np.argsort(sums[-1], kind="stable")
    chosen = weights[-1][order]
    return sums[-1][order], chosen / math.fsum(chosen.tolist())


def halves_of(sample: Sample) -> Halves | None:
    """All sums of half the draws, made once, or None if there would be too many."""
    return sample.kept("halves", lambda: _halves_of(sample))


def _halves_of(sample: Sample) -> Halves | None:
    n, kinds = int(sample.counts.sum()), sample.values.size
    half = n - n // 2
    if n > _MAX_DRAWS or math.comb(half + kinds - 1, half) > _MAX_HALVES:
        return None
    values, p = sample.values.tolist(), (sample.counts / n).tolist()
    return Halves(n, *_half(values, p, n // 2), *_half(values, p, half))


def halves_ends(halves: Halves, lower: float, upper: float) -> tuple[float, float]:
    """Least mean x with P(S* <= x) >= lower, and greatest with P(S* >= x) >= upper."""
    ends = []
    for sign, side, target in ((1, halves, lower), (-1, halves.mirrored(), upper)):
        end = _split_quantile(side.a, side.weights, side.b, np.cumsum(side.others), target)
        ends.append(sign * float(end) / halves.n)
    return ends[0], ends[1]


@kernel
def _split_below(a: F64, weights: F64, b: F64, cumulated: F64, limit: float) -> float:
    """P(A + B <= limit).

    Parameters
    ----------
    a, weights, b, cumulated : as for `_split_quantile`.
    limit : may be any number.
    """
    total = 0.0
    j = b.size - 1
    for i in range(a.size):
        while j >= 0 and a[i] + b[j] > limit:
            j -= 1
        if j < 0:
            break
        total += weights[i] * cumulated[j]
    return total


def halves_tails(halves: Halves, at: float) -> tuple[float, float, float]:
    """P(S* < at), P(S* = at), P(S* > at); sums within rounding of ``n * at`` are equal to it."""
    n = halves.n
    band = n * TOLERANCE * max(abs(at), *(abs(float(end)) * 2 / n for end in halves.b[[0, -1]]))
    found = []
    for side, centre in ((halves, n * at), (halves.mirrored(), -n * at)):
        limit = float(np.nextafter(centre - band, -np.inf))
        cumulated = np.cumsum(side.others)
        found.append(_split_below(side.a, side.weights, side.b, cumulated, limit))
    below, above = (min(max(part, 0.0), 1.0) for part in found)
    return below, max(0.0, 1.0 - below - above), above
