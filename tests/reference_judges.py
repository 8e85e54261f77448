"""Slow, obvious versions of what is measured on coders and judges, in fractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, permutations

Codes = Sequence[Sequence[int]]


def values_of(row: Sequence[int]) -> list[int]:
    """The codes of an item that are there."""
    return [code for code in row if code >= 0]


def metric(scale: str, codes: Codes, places: Sequence[Fraction]) -> Callable[[int, int], Fraction]:
    """Krippendorff's squared difference, told as in his text: ordinal by the ranks between."""
    totals = Counter(code for row in codes if len(values_of(row)) > 1 for code in values_of(row))

    def ordinal(a: int, b: int) -> Fraction:
        low, high = min(a, b), max(a, b)
        between = sum(totals[g] for g in range(low, high + 1))
        return (between - Fraction(totals[low] + totals[high], 2)) ** 2

    def interval(a: int, b: int) -> Fraction:
        return (places[a] - places[b]) ** 2

    def nominal(a: int, b: int) -> Fraction:
        return Fraction(a != b)

    return {"nominal": nominal, "ordinal": ordinal, "interval": interval}[scale]


def alpha(codes: Codes, scale: str, places: Sequence[Fraction] = range(1_000)) -> Fraction | None:
    """From pairs within units and pairs of all values, without a coincidence matrix."""
    units = [values for row in codes if len(values := values_of(row)) > 1]
    pool = [code for unit in units for code in unit]
    distance = metric(scale, codes, places)
    observed = sum(
        sum(Fraction(distance(a, b)) for a, b in permutations(unit, 2)) / (len(unit) - 1)
        for unit in units
    )
    expected = sum(Fraction(distance(a, b)) for a, b in permutations(pool, 2))
    return 1 - (len(pool) - 1) * observed / expected if expected else None


def kappa(codes: Codes, power: int | None = None) -> Fraction | None:
    """Cohen's, with weights ``|i - j| ** power``; None: any disagreement alike."""
    both = [(a, b) for a, b in codes if a >= 0 and b >= 0]
    weight = (lambda a, b: a != b) if power is None else lambda a, b: abs(a - b) ** power
    n = len(both)
    observed = Fraction(sum(weight(a, b) for a, b in both), n or 1)
    expected = Fraction(sum(weight(a, b) for a, _ in both for _, b in both), n * n or 1)
    return 1 - observed / expected if expected else None


def ac1(codes: Codes, n_categories: int) -> Fraction | None:
    """Gwet's, from each item's shares."""
    rows = [values for row in codes if (values := values_of(row))]
    paired = [values for values in rows if len(values) > 1]
    if not paired or n_categories < 2:
        return None
    agreed = [
        Fraction(sum(a == b for a, b in permutations(v, 2)), len(v) * (len(v) - 1)) for v in paired
    ]
    observed = sum(agreed) / len(paired)
    chance = Fraction(0)
    for k in range(n_categories):
        share = sum(Fraction(v.count(k), len(v)) for v in rows) / len(rows)
        chance += share * (1 - share) / (n_categories - 1)
    return (observed - chance) / (1 - chance)


def marked(spans: Sequence[tuple[int, int]]) -> set[int]:
    """The places in any span."""
    return {place for start, end in spans for place in range(start, end)}


def variance(values: Sequence[Fraction]) -> Fraction:
    """Of a population."""
    mean = sum(values, Fraction(0)) / len(values)
    return sum(((v - mean) ** 2 for v in values), Fraction(0)) / len(values)


def ppi(
    y: Sequence[Fraction], f: Sequence[Fraction], others: Sequence[Fraction], lam: Fraction | None
) -> tuple[Fraction, Fraction, Fraction]:
    """Weight, mean and squared error of the prediction-powered mean; None: the best weight."""
    n, more = len(y), len(others)
    if lam is None:
        mean_y, mean_f = sum(y) / Fraction(n), sum(f) / Fraction(n)
        covariance = sum((a - mean_y) * (b - mean_f) for a, b in zip(y, f, strict=True)) / n
        judged = [*f, *others]
        pooled = variance(judged) * len(judged) / (len(judged) - 1)
        lam = covariance / ((1 + Fraction(n, more)) * pooled) if pooled else Fraction(0)
        lam = min(max(lam, Fraction(0)), Fraction(1))
    rest = [a - lam * b for a, b in zip(y, f, strict=True)]
    mean = lam * sum(others) / more + sum(rest) / Fraction(n)
    return lam, mean, lam**2 * variance(others) / more + variance(rest) / n


def risks(confidence: Sequence[float], loss: Sequence[Fraction]) -> list[Fraction]:
    """Risk after 1, 2, ... cases: mean over every order that confidence allows."""
    n = len(loss)
    orders = [
        order for order in permutations(range(n))
        if all(confidence[a] >= confidence[b] for a, b in pairwise(order))
    ]  # fmt: skip
    return [
        sum(sum((loss[i] for i in order[:m]), Fraction(0)) / m for order in orders) / len(orders)
        for m in range(1, n + 1)
    ]
