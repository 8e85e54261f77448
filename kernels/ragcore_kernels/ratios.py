"""Ratio of resampled sums on no lattice: small samples listed, larger ones in proved brackets.

``sum s / sum m <= r`` is ``sum (s - r m) <= 0``, so that r is above a quantile of the ratio if
that quantile of the sum is proved to be at most 0, and below it if that is proved to be above 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels.lattice import MAX_DISTINCT, distinct, exact_sum
from ragcore_kernels.laws import Smoothed, laws_of, smoothed_sum

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_MAX_LISTED = 50_000
_ROUNDING = 2.0**-50  # relative; error of s - r m and of the sums made of it
_BINNED = 2.0**-38  # the same if the values of s - r m are too many to be told apart


def _distinct_pairs(s: F64, m: F64) -> tuple[F64, F64, I64]:
    pairs, counts = np.unique(s + 1j * m, return_counts=True)
    return np.ascontiguousarray(pairs.real), np.ascontiguousarray(pairs.imag), counts


def listed_ends(s: F64, m: F64, target: float) -> tuple[float, float, float] | None:
    """Both ends, and 0.0, from a list of all sums of pairs; None if it would be too long.

    Parameters
    ----------
    s, m : (n,), numerators and denominators.
    target : a probability, above 0.
    """
    n = s.size
    a, b, counts = _distinct_pairs(s, m)
    if n > 200 or math.comb(n + a.size - 1, n) > _MAX_LISTED:
        return None
    tops, bottoms, weights = _listed(a, b, counts / n, n)
    some = bottoms > 0.0
    with np.errstate(over="ignore"):
        ratios = tops[some] / bottoms[some]
    order = np.argsort(ratios, kind="stable")
    ratios, weights = ratios[order], weights[some][order]
    wanted = target * math.fsum(weights.tolist())
    low = ratios[int(np.searchsorted(np.cumsum(weights), wanted))]
    high = ratios[::-1][int(np.searchsorted(np.cumsum(weights[::-1]), wanted))]
    if not (math.isfinite(low) and math.isfinite(high)):
        raise OverflowError
    return float(low), float(high), 0.0


def _listed(a: F64, b: F64, p: F64, draws: int) -> tuple[F64, F64, F64]:
    """Sums of every multiset of `draws` pairs, and its probability."""
    none = np.zeros((3, 0))
    lists = [np.array([[0.0], [0.0], [1.0]])] + [none] * draws  # by number of draws made
    for x, y, share in zip(a.tolist(), b.tolist(), p.tolist(), strict=True):
        odds = [(draws * share) ** i / math.factorial(i) for i in range(draws + 1)]
        grown = []
        for made in range(draws + 1):
            parts = [
                np.stack([old[0] + i * x, old[1] + i * y, old[2] * odds[i]])
                for i in range(made + 1)
                if (old := lists[made - i]).shape[1]
            ]
            grown.append(np.concatenate([none, *parts], axis=1))
        lists = grown
    tops, bottoms, weights = lists[-1]
    return tops, bottoms, weights / math.fsum(weights.tolist())


class _Ratios:
    """Pairs in a scale near 1, and what a bracket at some r says about the ratio."""

    def __init__(self, s: F64, m: F64) -> None:
        self.s, self.m, self.n = s, m, s.size
        self.middle = exact_sum(s) / exact_sum(m)
        self.mean_m = exact_sum(m) / self.n
        void = m == 0.0
        self.none = (int(void.sum()) / self.n) ** self.n
        # what of `none` counts as sum <= 0 is known only if these numerators are 0
        self.unsure = 0.5 * self.none if np.any(s[void]) else 0.0

    def doubt_at(self, r: float) -> float:
        """Greatest error of a ratio near r by rounding."""
        scale = float(np.abs(self.s).max()) + abs(r) * float(self.m.max())
        rounding = _ROUNDING if self.n <= MAX_DISTINCT else _BINNED
        return rounding * (scale / self.mean_m + abs(r))

    def sum_at(self, r: float, effort: float) -> tuple[Smoothed | None, float, float]:
        """Distribution of ``sum (s - r m)`` less its mean, that mean, and the scale of both.

        There is no distribution if all ``s - r m`` are equal.
        """
        x = self.s - r * self.m
        size = float(np.abs(x).max())
        scale = math.ldexp(1.0, math.frexp(size)[1]) if size else 1.0
        sample = distinct(x / scale)
        if sample.values.size == 1:
            return None, self.n * float(x[0]), 1.0
        laws, means = laws_of([sample], [self.n])
        return smoothed_sum(laws, effort), self.n * float(means[0]), scale

    def enclose(self, r: float, target: float, effort: float) -> tuple[float, float]:
        """Bracket of the quantile of ``sum (s - r m)``, over the mean of ``sum m``."""
        known, mean, scale = self.sum_at(r, effort)
        unit = self.n * self.mean_m
        if known is None:
            return mean / unit, mean / unit
        wanted = target * (1.0 - self.none) + self.none - self.unsure
        low, high = known.bracket(wanted, 1, self.unsure)
        return scale * (mean + low) / unit, scale * (mean + high) / unit

    def extremes(self) -> tuple[float, float]:
        """The ratio lies between."""
        some = self.m > 0.0
        least, greatest = (float(f(self.s[some] / self.m[some])) for f in (np.min, np.max))
        if np.any(self.s[~some]):  # a ratio of the other numerators to the least denominator
            reach = self.n / float(self.m[some].min())
            least, greatest = min(0.0, float(self.s.min())), max(0.0, float(self.s.max()))
            least, greatest = least * reach, greatest * reach
        return least, greatest

    def low_end(self, target: float) -> tuple[float, float]:
        """Bracket of the least r with P(R* <= r) >= target."""
        least, greatest = self.extremes()
        spread = self.s - self.middle * self.m
        deviation = math.sqrt(exact_sum(spread * spread)) / (self.n * self.mean_m)
        r, move, width = self.middle - 2.0 * deviation, 0.0, 0.0
        for tries in range(12):  # towards the r whose bracket has 0 in its middle
            r = min(max(r + move, least), greatest)
            low, high = self.enclose(r, target, 0.1 if tries < 2 else 1.0)
            move, width = 0.5 * (low + high), 0.5 * (high - low)
            if tries >= 2 and abs(move) <= 0.2 * width:
                break
        ends = []
        for side, limit in ((-1, least), (1, greatest)):
            step = move + side * 1.05 * width + side * self.doubt_at(r)
            for _ in range(12):
                end = r + step
                if not least < end < greatest:
                    end = limit
                    break
                low, high = self.enclose(end, target, 1.0)
                if high <= 0.0 if side > 0 else low > 0.0:
                    break
                step *= 1.5
            else:
                end = limit
            ends.append(end + side * self.doubt_at(end))
        return ends[0], ends[1]


def _scaled(s: F64, m: F64) -> tuple[F64, F64, int]:
    """Numbers of magnitude 1, and the power of 2 that their ratio is to be multiplied by."""
    tops, bottoms = (math.frexp(float(np.abs(part).max()))[1] for part in (s, m))
    return np.ldexp(s, -tops), np.ldexp(m, -bottoms), tops - bottoms


def bounded_ends(s: F64, m: F64, target: float) -> tuple[float, float, float]:
    """Both ends, each in the middle of a proved bracket, and half the wider bracket.

    Parameters
    ----------
    s, m : (n,), numerators and denominators.
    target : a probability, above 0.
    """
    s, m, exponent = _scaled(s, m)
    ends, bound = [], 0.0
    for sign in (1.0, -1.0):
        low, high = _Ratios(sign * s, m).low_end(target)
        ends.append(math.ldexp(sign * 0.5 * (low + high), exponent))
        bound = max(bound, math.ldexp(0.5 * (high - low), exponent))
    return ends[0], ends[1], bound


def bounded_tails(s: F64, m: F64, x: float) -> tuple[float, float, float]:
    """P(R* <= x), P(R* >= x) and the greatest error of either.

    Parameters
    ----------
    s, m : (n,), numerators and denominators.
    x : finite.
    """
    s, m, exponent = _scaled(s, m)
    ratios = _Ratios(s, m)
    x = math.ldexp(x, -exponent)
    known, mean, scale = ratios.sum_at(x, 1.0)
    if known is None:
        return float(mean <= 0.0), float(mean >= 0.0), 0.0
    doubt = ratios.doubt_at(x) * ratios.n * ratios.mean_m / scale
    before, after = known.at(-mean - doubt), known.at(-mean + doubt)
    void, some = ratios.none - ratios.unsure, 1.0 - ratios.none
    low = max(before[0] - before[1] - ratios.unsure, 0.0)
    high = min(after[0] + after[1] + ratios.unsure, 1.0)
    parts = [(low - void) / some, (high - void) / some, (1 - high - void) / some]
    parts.append((1 - low - void) / some)
    a, b, c, d = (min(max(part, 0.0), 1.0) for part in parts)
    return 0.5 * (a + b), 0.5 * (c + d), 0.5 * max(b - a, d - c)
