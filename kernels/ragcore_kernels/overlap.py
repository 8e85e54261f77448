"""How far two rankings agree: Jaccard, overlap at a depth, rank-biased overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import inline
from ragcore_kernels.layout import F64, I64

JACCARD, OVERLAP, RBO = range(3)
"""Columns of what `agreement` fills."""
AGREEMENTS = 3


@inline
def agreement(common: I64, a: int, b: int, k: int, p: float, out: F64) -> None:
    """Three measures of two lists of distinct documents, no ties.

    Parameters
    ----------
    common : (max(a, b) + 1,) or longer; at d the documents of both lists whose lower place in
        them is d, places from 1.
    a, b : lengths of the lists, cut at `k` or shorter.
    k : the depth.
    p : persistence of rank-biased overlap, above 0 and below 1.
    out : (3,), filled: Jaccard (common / distinct documents; 0 for two empty lists), overlap
        (common / k), RBO extrapolated (0 where a list is empty).

    References
    ----------
    Webber, Moffat, Zobel, A similarity measure for indefinite rankings, 2010, equation 32.
    """
    s, longest = min(a, b), max(a, b)
    both, at_s = np.int64(0), np.int64(0)
    weight, total = 1.0, 0.0
    for d in range(1, longest + 1):
        both += common[d]
        if d == s:
            at_s = both
        weight *= p
        total += both * weight / d
        if d > s and s > 0:
            total += at_s * (d - s) * weight / (s * d)
    union = a + b - both
    out[JACCARD] = both / union if union > 0 else 0.0
    out[OVERLAP] = both / k
    out[RBO] = 0.0
    if s > 0:
        tail = (both - at_s) / longest + at_s / s
        out[RBO] = (1.0 - p) / p * total + tail * weight


def compare_lists(first: Any, second: Any, k: int | None = None, p: float = 0.9) -> F64:
    """Jaccard, overlap and RBO of two sequences of distinct hashable ids.

    Parameters
    ----------
    k : depth at which both are cut; None = the longer one's length.

    Returns
    -------
    (3,), see `agreement`.

    Raises
    ------
    ValueError
        If p or k is out of range, or an id stands twice.
    """
    if not 0.0 < p < 1.0:
        raise ValueError(f"p = {p}; expected a number above 0 and below 1")
    depth = max(len(first), len(second), 1) if k is None else k
    if depth < 1:
        raise ValueError(f"k = {depth}; expected 1 or more")
    left, right = list(first)[:depth], list(second)[:depth]
    place = {doc: rank for rank, doc in enumerate(left, 1)}
    if len(place) < len(left) or len(set(right)) < len(right):
        raise ValueError("an id stands twice in a list")
    common = np.zeros(max(len(left), len(right)) + 1, np.int64)
    for rank, doc in enumerate(right, 1):
        if doc in place:
            common[max(rank, place[doc])] += 1
    out = np.zeros(AGREEMENTS)
    agreement(common, len(left), len(right), depth, p, out)
    return out
