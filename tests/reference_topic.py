"""One ranked list against its judgements: what every measure in plain Python is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

Grades = Mapping[str, int]


def key_of(doc: str) -> bytes:
    """UTF-8 bytes of an id; a lone surrogate, which has none, is encoded as if it had."""
    return doc.encode("utf-8", "surrogatepass")


def order(rows: Iterable[tuple[str, float]]) -> list[str]:
    """Ids by score falling, compared as float64; ties by id falling, compared as bytes."""
    pairs = [(float(value), key_of(doc), doc) for doc, value in rows]
    pairs.sort(key=lambda pair: pair[1], reverse=True)
    pairs.sort(key=lambda pair: pair[0], reverse=True)
    return [doc for _, _, doc in pairs]


def condense(ranked: Sequence[str], grades: Grades) -> list[str]:
    """The judged part of a list, its order kept."""
    return [doc for doc in ranked if grades.get(doc, -1) >= 0]


class Topic:
    """One ranked list against its judgements, cut at `k` where a cut-off is given."""

    def __init__(self, ranked: Sequence[str], grades: Grades, k: int | None, rel: int) -> None:
        self.whole = list(ranked)
        self.list = self.whole if k is None else self.whole[:k]
        self.grades = grades
        self.k = k
        self.rel = rel
        self.n_relevant = sum(1 for grade in grades.values() if self.is_relevant(grade))

    def is_relevant(self, grade: int) -> bool:
        return grade >= 0 and grade >= self.rel

    def grade(self, doc: str) -> int | None:
        """The judgement of a document, None if it has none or a negative one."""
        grade = self.grades.get(doc, -1)
        return grade if grade >= 0 else None

    def hit(self, doc: str) -> bool:
        grade = self.grade(doc)
        return grade is not None and self.is_relevant(grade)

    def hits(self) -> int:
        return sum(1 for doc in self.list if self.hit(doc))


def discount(rank: int) -> float:
    return math.log2(rank + 1)


def round_half_away(x: float) -> int:
    """Nearest integer of a number that is not negative, halves upwards (C's lround)."""
    whole = math.floor(x)
    return whole + 1 if x - whole >= 0.5 else whole
