"""Rank fusion and agreement of rankings in plain Python, exact fractions where they will do."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

Row = tuple[bytes, float]


def ranked(rows: Sequence[Row], recorded: bool = False) -> list[Row]:
    """Rows in rank order, each document once, at its best place."""
    out: dict[bytes, float] = {}
    order = list(rows)
    if not recorded:
        order.sort(key=lambda row: row[0], reverse=True)
        order.sort(key=lambda row: -row[1])
    for doc, score in order:
        out.setdefault(doc, score)
    return list(out.items())


def normalised(scores: Sequence[float], how: str) -> list[Fraction | float]:
    """Scores of one list, best first, on a common scale."""
    n = len(scores)
    if how == "rank":
        return [Fraction(n - i, n) for i in range(n)]
    exact = [Fraction(score) for score in scores]
    least, most = min(exact, default=Fraction(0)), max(exact, default=Fraction(0))
    if least == most:
        return [Fraction(1)] * n
    if how == "min-max":
        return [(score - least) / (most - least) for score in exact]
    mean = sum(exact) / n
    variance = sum((score - mean) ** 2 for score in exact) / n
    # the root of a fraction may be beyond a double where the fraction is not
    size = most - least
    root = math.sqrt(variance / size**2)
    return [float((score - least) / size) / root for score in exact]


def fuse(
    lists: Sequence[Sequence[Row]],
    method: str = "rrf",
    k: float = 60,
    weights: Sequence[float] | None = None,
    how: str = "min-max",
    recorded: Sequence[bool] | None = None,
) -> list[tuple[bytes, float, int]]:
    """Documents in fused order with their score and best rank."""
    weights = weights or [1.0] * len(lists)
    recorded = recorded or [False] * len(lists)
    total: dict[bytes, Fraction] = {}
    best: dict[bytes, int] = {}
    held: dict[bytes, int] = {}
    for rows, weight, as_given in zip(lists, weights, recorded, strict=True):
        order = ranked(rows, as_given)
        if method == "rrf":
            terms = [Fraction(weight) / Fraction(k + rank) for rank in range(1, len(order) + 1)]
        else:
            scale = normalised([score for _, score in order], how)
            terms = [Fraction(weight) * Fraction(value) for value in scale]
        for rank, ((doc, _), term) in enumerate(zip(order, terms, strict=True), 1):
            total[doc] = total.get(doc, Fraction(0)) + term
            best[doc] = min(best.get(doc, rank), rank)
            held[doc] = held.get(doc, 0) + 1
    factor = held if method == "combmnz" else dict.fromkeys(held, 1)
    out = [(doc, float(total[doc] * factor[doc]), best[doc]) for doc in total]
    return in_order(out)


def in_order(rows: Sequence[tuple[bytes, float, int]]) -> list[tuple[bytes, float, int]]:
    """By score descending, best rank, id descending byte-wise."""
    out = sorted(rows, key=lambda row: row[0], reverse=True)
    return sorted(out, key=lambda row: (-row[1], row[2]))


def agreement(
    first: Sequence[Hashable], second: Sequence[Hashable], k: int, p: Any
) -> tuple[Fraction, Fraction, Fraction]:
    """Jaccard, overlap at k, and RBO extrapolated, by definition."""
    a, b, p = list(first)[:k], list(second)[:k], Fraction(p)
    common = len(set(a) & set(b))
    union = len(set(a) | set(b))
    short, long = sorted((a, b), key=len)
    s, n = len(short), len(long)
    if s == 0:
        return Fraction(0), Fraction(0), Fraction(0)

    def shared(d: int) -> int:
        return len(set(short[:d]) & set(long[:d]))

    total = sum(Fraction(shared(d)) / d * p**d for d in range(1, n + 1))
    total += sum(Fraction(shared(s) * (d - s), s * d) * p**d for d in range(s + 1, n + 1))
    rest = Fraction(shared(n) - shared(s), n) + Fraction(shared(s), s)
    rbo = (1 - p) / p * total + rest * p**n
    return Fraction(common, union), Fraction(common, k), rbo
