"""Bounds by trying everything: all orders of tied rows, all numbers of holes filled.

A list is written as its tie groups, best score first; a group is the labels of its rows: a
grade, a negative grade for what is in the pool but not judged, None for what is not even there.
`missed` are the labels of judged documents that were not retrieved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, permutations, product
from typing import Any

import reference

Label = int | None
Groups = Sequence[Sequence[Label]]


def labelled(labels: Sequence[Label], missed: Sequence[int]) -> tuple[list[str], dict[str, int]]:
    """A ranked list of made-up ids, and its judgements."""
    ranked = [f"d{i}" for i in range(len(labels))]
    grades = {doc: label for doc, label in zip(ranked, labels, strict=True) if label is not None}
    return ranked, grades | {f"m{i}": grade for i, grade in enumerate(missed)}


def value(
    kind: str, labels: Sequence[Label], missed: Sequence[int], depth: int, **options: Any
) -> float | None:
    ranked, grades = labelled(labels, missed)
    return reference.measure(kind, ranked[: depth or None], grades, **options)


def orders(groups: Groups) -> Iterator[list[Label]]:
    """Every order of labels, each once: as each stands for equally many orders of rows."""
    ways = [sorted(set(permutations(group)), key=repr) for group in groups]
    for choice in product(*ways):
        yield list(chain.from_iterable(choice))


def over_ties(
    kind: str, groups: Groups, missed: Sequence[int], depth: int, **options: Any
) -> tuple[float, float, float] | None:
    """(best, expected, worst), None where the measure is not applicable in the order given."""
    if value(kind, list(chain.from_iterable(groups)), missed, depth, **options) is None:
        return None
    found = [value(kind, labels, missed, depth, **options) for labels in orders(groups)]
    known = [one for one in found if one is not None]
    return max(known), math.fsum(known) / len(known), min(known)


def over_holes(
    kind: str, labels: Sequence[Label], missed: Sequence[int], depth: int, highest: int,
    **options: Any,
) -> float | None:  # fmt: skip
    """Largest value with the first 0, 1, 2, ... holes judged `highest`."""
    filled, best = list(labels), value(kind, labels, missed, depth, **options)
    k = options.get("k") or len(labels)
    for i, label in enumerate(labels[: min(k, depth or k)]):
        if label is None or label < 0:
            filled[i] = highest
            found = value(kind, filled, missed, depth, **options)
            best = found if best is None or (found is not None and found > best) else best
    return best
