"""The most that each case allows a measure to be: what a perfect ranking would get."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ragcore.measures.definitions import Measure
from ragcore.measures.variants import kind_of

if TYPE_CHECKING:
    from ragcore.measures.engine import Hits
    from ragcore_kernels.layout import F64, I64

_COUNTS = frozenset(
    ("NumQ", "NumRet", "NumRel", "NumRelRet", "num_nonrel_judged_ret", "utility", "Unjudged",
     "Judged")
)  # fmt: skip
"""Measures without a best value, or whose best value says nothing of quality."""


def ceilings(measures: list[Measure], hits: Hits) -> F64:
    """Greatest attainable value, (n_measures, n_rankings); NaN where there is none.

    Most measures reach 1. Precision at k does not where fewer than k documents are relevant,
    recall at k does not where more are; RBP and ERR never do.
    """
    n = len(hits.rankings)
    out = np.ones((len(measures), n))
    relevant: dict[int, I64] = {}
    for m, one in enumerate(measures):
        name = one.definition.name
        if name in _COUNTS or one.aggregate not in ("mean", "micro") or kind_of(one):
            out[m] = math.nan
            continue
        if name not in ("P", "R", "AP", "RBP", "ERR"):
            continue
        if one.rel not in relevant:
            relevant[one.rel] = (
                _relevant(hits, one.rel)
                if hits.labels.items is None
                else hits.labels.items.useful(one.rel)[hits.rankings.label_of]
            )
        deep = min(d for d in (one.k, hits.options.max_depth, 1 << 40) if d > 0)
        if hits.labels.items is not None and name in ("R", "AP"):
            continue  # one chunk may hold several items: 1 is the only bound that is easily had
        seen = np.minimum(relevant[one.rel], deep).astype(np.float64)
        if name == "P" and one.k:
            out[m] = seen / one.k
        elif name in ("R", "AP"):
            out[m] = seen / np.maximum(relevant[one.rel], 1)
        elif name == "RBP":
            out[m] = 1.0 - one.params["p"] ** seen
        elif name == "ERR":
            out[m] = _err(hits, deep, one.params["max"])
    return out


def _groups(hits: Hits) -> tuple[I64, I64]:
    """Where the judged grades of each ranking begin, and how many there are; falling grades."""
    labels = hits.rankings.label_of
    offsets = hits.ideal_offsets
    starts = np.where(labels >= 0, offsets[labels], 0)
    sizes = np.where(labels >= 0, hits.judged_counts, 0)
    return starts, sizes


def _relevant(hits: Hits, rel: int) -> I64:
    """Relevant documents of each ranking's case."""
    starts, sizes = _groups(hits)
    above = np.concatenate([[0], np.cumsum(hits.ideal >= rel)])
    return above[starts + sizes] - above[starts]


def _err(hits: Hits, deep: int, scale: int) -> F64:
    starts, sizes = _groups(hits)
    out, going = np.zeros(starts.size), np.ones(starts.size)
    for rank in range(1, min(deep, int(sizes.max(initial=0))) + 1):
        has = sizes >= rank
        grades = hits.ideal[starts[has] + rank - 1]
        stops = (2.0 ** np.maximum(grades, 0) - 1.0) / 2.0**scale
        out[has] += going[has] * stops / rank
        going[has] *= 1.0 - stops
    return out
