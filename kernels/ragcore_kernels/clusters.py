"""Exact percentile bootstrap of a ratio of sums whose clusters are resampled whole."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels.intervals import method_of
from ragcore_kernels.lattice import common_lattice, distinct
from ragcore_kernels.plane import Plane, plane_of
from ragcore_kernels.ratios import bounded_ends, bounded_tails, listed_ends
from ragcore_kernels.resample import Interval, mean_interval

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_TIE = 1e-12  # relative; a probability this close to the level's counts as reaching it
_SNAP = 1e-14  # relative; a double this close to a possible ratio stands for it
_MAX_INTEGER = 1 << 31
_LISTED = 200  # ratios tried one by one in the end


@dataclass(frozen=True)
class RatioTails:
    """Probabilities of resampled ratios on either side of a value, which belongs to both.

    Parameters
    ----------
    at_most, at_least : P(R* <= x) and P(R* >= x), nan without clusters.
    method : ``"exact"`` (to 1e-14), ``"bounded"``, or ``""`` without clusters.
    bound : greatest possible error of either, 0.0 if exact.
    """

    at_most: float
    at_least: float
    method: str
    bound: float


def ratio_interval(numerators: ArrayLike, denominators: ArrayLike, level: float = 0.95) -> Interval:
    """Percentile bootstrap interval of ``sum(numerators) / sum(denominators)``.

    Parameters
    ----------
    numerators, denominators : (G,), finite, one pair for each cluster; denominators >= 0, at
        least one of them positive.
    level : probability inside, in (0, 1).

    Returns
    -------
    With R* the ratio of the sums over G clusters drawn with replacement and q = (1 - level) / 2,
    `low` is the least x with P(R* <= x) >= q and `high` the greatest x with P(R* >= x) >= q.
    Both are reached by some resample, and negated numerators give the mirrored interval.
    Resamples whose denominators are all 0 have no ratio: probabilities are on the condition that
    there is one. No clusters give nan. Equal denominators give `resample.mean_interval` of the
    ratios; of unequal ones the ratio of sums is not the mean of the ratios.

    Raises
    ------
    ValueError
        If a number is not finite, a denominator is negative, none is positive, the shapes differ,
        `level` is outside (0, 1), or a ratio is beyond the largest double.

    Notes
    -----
    If numerators lie on a lattice through 0 and denominators do, the ends are exact and correctly
    rounded: ``P(R* <= a / b)`` is the sum over M of ``P(S <= floor(a M / b), M)``, known to about
    1e-14, and the ratios near an end are tried one by one. Otherwise small samples are listed,
    and larger ones bracketed by Vaaler's bound on the quantile of ``sum(s - r m)``, with r moved
    until the bracket is at 0; `Interval.bound` says how far the ends may be off. Equality is taken
    at q * (1 - 1e-12). The order of the clusters does not matter, down to the last bit.

    References
    ----------
    Davison & Hinkley, Bootstrap methods and their application, 1997, sections 2.4 and 3.8.
    """
    s, m = _checked(numerators, denominators)
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1")
    if s.size == 0:
        return Interval(math.nan, math.nan, "", 0.0)
    target = (1.0 - level) / 2.0 * (1.0 - _TIE)
    pairs = _integer_pairs(s, m)
    try:
        if pairs and (fixed := pairs.only_ratio()) is not None:
            return Interval(_nearest(fixed), _nearest(fixed), "exact", 0.0)
        if m.min() == m.max() and np.isfinite(ratios := s / m[0]).all():
            return mean_interval(ratios, level)
        if pairs and (plane := pairs.plane()):
            low, high = (pairs.ratio(pairs.end(plane, target, sign), sign) for sign in (1, -1))
            return Interval(_nearest(low), _nearest(high), "exact", 0.0)
        return _unsettled(s, m, target)
    except OverflowError as error:
        raise ValueError("a ratio is beyond the largest double; expected a smaller one") from error


def ratio_tails(numerators: ArrayLike, denominators: ArrayLike, x: float) -> RatioTails:
    """Probabilities that the resampled ratio is at most, and at least, `x`.

    Parameters
    ----------
    numerators, denominators : as for `ratio_interval`.
    x : a finite number; if it is next to a ratio that is possible, that ratio is meant.

    Returns
    -------
    Exact if numerators and denominators lie on lattices, else with a proved bound; on the
    condition that some denominator drawn is positive.
    """
    s, m = _checked(numerators, denominators)
    if not math.isfinite(x):
        raise ValueError(f"x is {x}; expected a finite number")
    if s.size == 0:
        return RatioTails(math.nan, math.nan, "", 0.0)
    pairs = _integer_pairs(s, m)
    if pairs and (fixed := pairs.only_ratio()) is not None:
        near = abs(fixed - Fraction(x)) <= Fraction(_SNAP) * abs(fixed)
        return RatioTails(float(near or fixed < x), float(near or fixed > x), "exact", 0.0)
    if pairs and (plane := pairs.plane()):
        return RatioTails(*pairs.tails(plane, float(x)), "exact", 0.0)
    at_most, at_least, bound = bounded_tails(s, m, float(x))
    return RatioTails(at_most, at_least, "bounded", bound)


def _checked(numerators: ArrayLike, denominators: ArrayLike) -> tuple[F64, F64]:
    """Arrays of the arguments, or ValueError."""
    s, m = (np.asarray(part, dtype=np.float64) for part in (numerators, denominators))
    for name, array in (("numerators", s), ("denominators", m)):
        if array.ndim != 1:
            raise ValueError(f"{name} have shape {array.shape}; expected one dimension")
        if not np.isfinite(array).all():
            at = int(np.flatnonzero(~np.isfinite(array))[0])
            raise ValueError(f"{name}[{at}] is {array[at]}; expected finite numbers")
    if s.shape != m.shape:
        raise ValueError(f"{s.size} numerators and {m.size} denominators; expected as many")
    if m.min(initial=0.0) < 0.0:
        at = int(m.argmin())
        raise ValueError(f"denominators[{at}] is {m[at]}; expected none below 0")
    if m.size and m.max() == 0.0:
        raise ValueError(f"all {m.size} denominators are 0; expected one above 0")
    return s + 0.0, m + 0.0


def _nearest(ratio: Fraction) -> float:
    return ratio.numerator / ratio.denominator


def _unsettled(s: F64, m: F64, target: float) -> Interval:
    """Interval of numbers on no lattice, or on one that is too fine."""
    low, high, bound = listed_ends(s, m, target) or bounded_ends(s, m, target)
    return Interval(low, high, method_of(bound), bound)


def _integers(values: F64) -> tuple[I64, Fraction] | None:
    """Multiples of one unit that `values` stand for; None if there is no unit."""
    greatest = float(np.abs(values).max())
    if greatest == 0.0:
        return np.zeros(values.size, np.int64), Fraction(1)
    if greatest < _MAX_INTEGER and not np.any(values % 1.0):
        whole = values.astype(np.int64)
        unit = int(np.gcd.reduce(whole))
        return whole // unit, Fraction(unit)
    exponent = 0 if 1e-6 < greatest <= 1.0 else math.frexp(greatest)[1]
    scaled = np.ldexp(values, -exponent)
    lattice = common_lattice(distinct(np.append(scaled, 0.0)), exponent)  # 0 has to be on it
    if lattice is None:
        return None
    whole = np.rint(scaled / float(lattice.step / Fraction(2) ** exponent))
    if np.abs(whole).max() >= _MAX_INTEGER:
        return None
    return whole.astype(np.int64), lattice.step


def _integer_pairs(numerators: F64, denominators: F64) -> _IntegerPairs | None:
    """Distinct pairs as integers, or None if either number is on no lattice."""
    found, others = _integers(numerators), _integers(denominators)
    if found is None or others is None:
        return None
    (s, unit), (m, other) = found, others
    n = s.size
    away = m - m.mean()
    slope = int(np.rint(float(away @ s) / max(float(away @ away), 1e-9)))
    s = s - slope * m  # no longer follows m: its transform is wider apart from others
    least, height = int(s.min()), int(m.max()) + 1
    extent = int(s.max()) - least + 1
    if n * (extent + abs(least)) * n * height >= 1 << 61:
        return None
    codes, counts = np.unique((s - least) * height + m, return_counts=True)
    return _IntegerPairs(codes // height + least, codes % height, counts, unit / other, slope)


@dataclass(frozen=True)
class _IntegerPairs:
    """Distinct pairs (s, m) and their counts; a ratio is ``unit * (slope + sum s / sum m)``."""

    s: I64
    m: I64
    counts: I64
    unit: Fraction
    slope: int

    @property
    def mass(self) -> float:
        """Probability that a resample has a ratio."""
        n = int(self.counts.sum())
        return 1.0 - (int(self.counts[self.m == 0].sum()) / n) ** n

    def ratio(self, t: Fraction, sign: int = 1) -> Fraction:
        """The ratio of the numbers given, from ``sign * sum s / sum m``."""
        return self.unit * (self.slope + sign * t)

    def only_ratio(self) -> Fraction | None:
        """The one ratio that every resample has, or None if there are more."""
        at = int(self.m.argmax())
        first, second = int(self.s[at]), int(self.m[at])
        same = (self.s * second == first * self.m).all()
        return self.ratio(Fraction(first, second)) if same else None

    def plane(self) -> Plane | None:
        """Joint distribution of both sums, if it does not take too long."""
        return plane_of(self.s, self.m, self.counts)

    def tails(self, plane: Plane, x: float) -> tuple[float, float]:
        """P(R* <= x) and P(R* >= x)."""
        rows = plane.rows
        t = Fraction(x) / self.unit - self.slope
        near = t.limit_denominator(int(rows[-1]))
        if abs(near - t) * self.unit <= Fraction(_SNAP) * abs(Fraction(x)):
            t = near
        least, greatest = plane.mean + plane.bottom - 1, plane.mean + plane.top
        if max(abs(t.numerator), t.denominator) * int(rows[-1]) < 1 << 62:
            floors, under = (
                t.numerator * rows // t.denominator,
                -(-t.numerator * rows // t.denominator) - 1,
            )
        else:  # beyond 64 bits
            exact = [t.numerator * row for row in rows.tolist()]
            tops = [min(max(top // t.denominator, least), greatest) for top in exact]
            floors = np.array(tops)
            tops = [min(max(-(-top // t.denominator) - 1, least), greatest) for top in exact]
            under = np.array(tops)
        mass = self.mass
        at_most, below = (plane.at_most(tops) / mass for tops in (floors, under))
        if floors.min() >= greatest:  # all of it, but for rounding
            at_most = 1.0
        return min(max(at_most, 0.0), 1.0), min(max(1.0 - below, 0.0), 1.0)

    def end(self, plane: Plane, target: float, sign: int) -> Fraction:
        """Least t with ``P(sign * sum s / sum m <= t) >= target``."""
        total = float(self.counts @ self.m)
        middle = plane.mean / total
        off = self.s - middle * self.m
        deviation = math.sqrt(float(self.counts @ (off * off))) / total
        return _quantile(plane, self.mass, target, sign, sign * middle, deviation)


def _quantile(
    plane: Plane, mass: float, target: float, sign: int, middle: float, deviation: float
) -> Fraction:
    """Least t with ``P(sign * S / M <= t | M > 0) >= target``.

    A bracket of fractions is narrowed by steps of a normal law until it holds few possible ratios;
    then only the rows of these matter.
    """
    rows = plane.rows
    wanted = target * mass if sign > 0 else target * mass - mass
    low, high = _extremes(plane, sign)
    at_low = 0.0 if sign > 0 else -mass
    z = _deviate(target)
    slope = deviation * math.sqrt(math.tau) * math.exp(0.5 * z * z)
    grain = 0.25 * _LISTED / (float(rows.mean()) * rows.size)  # a part of what can be listed
    guess, tries = middle - z * deviation, 0
    while True:
        first = low.numerator * rows // low.denominator
        last = -(-high.numerator * rows // high.denominator)
        if int((last - 1 - first).sum()) <= _LISTED:
            break
        t = Fraction(guess).limit_denominator(int(rows[-1]))
        if not low < t < high or tries > 20:
            t = ((low + high) / 2).limit_denominator(int(rows[-1]))
        found = _up_to(plane, t, sign)
        tries += 1
        step = 1.1 * abs(found - wanted) * slope + grain
        if found >= wanted:
            high, guess = t, float(t) - step
        else:
            low, guess, at_low = t, float(t) + step, found
    ratios = {
        Fraction(a, int(rows[row]))
        for row in np.flatnonzero(last - 1 > first)
        for a in range(int(first[row]) + 1, int(last[row]))
    }
    part = plane.only(high.numerator * rows // high.denominator > first)
    wanted += _up_to(part, low, sign) - at_low
    tried = [*sorted(ratios), high]
    at = bisect_left(tried, True, hi=len(ratios), key=lambda t: _up_to(part, t, sign) >= wanted)
    return tried[at]


def _up_to(plane: Plane, t: Fraction, sign: int) -> float:
    """``P(sign * S / M <= t)`` over the rows, less the constant P(rows) if `sign` is -1."""
    floors = t.numerator * plane.rows // t.denominator
    return plane.at_most(floors) if sign > 0 else -plane.at_most(-floors - 1)


def _extremes(plane: Plane, sign: int) -> tuple[Fraction, Fraction]:
    """Fractions below, and not below, any ``sign * S / M`` that matters."""
    least, greatest = plane.mean + plane.bottom, plane.mean + plane.top
    if sign < 0:
        least, greatest = -greatest, -least
    few, many = int(plane.rows[0]), int(plane.rows[-1])
    low = Fraction(least, few if least < 0 else many) - 1
    return low, Fraction(greatest, many if greatest < 0 else few)


def _deviate(target: float) -> float:
    """How many deviations below the mean a normal law has `target` left; a guess.

    References
    ----------
    Abramowitz & Stegun, 26.2.22.
    """
    t = math.sqrt(-2.0 * math.log(min(target, 0.5)))
    return t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))
