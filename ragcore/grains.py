"""Items of evidence at other grains: the chunks that touch them, those that hold them whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore.evidence import Evidence
from ragcore.placing import (
    BY_PLACE,
    BY_QUOTE,
    Layout,
    Wanted,
    meeting,
    needs,
    some,
    spans_of,
    together,
)  # fmt: skip
from ragcore_kernels.layout import I64


@dataclass
class Grain:
    """Items at one grain.

    Attributes
    ----------
    checked : (n_items,), items that say a place so fine, in a document whose chunks do, too.
    covers, units : (n_items + 1,) and flat, codes of the chunks of each item; none of others.
    """

    checked: Any
    covers: I64
    units: I64


def _nothing(n: int) -> Grain:
    return Grain(np.zeros(n, np.bool_), np.zeros(n + 1, np.int64), np.zeros(0, np.int64))


def touched(evidence: Evidence) -> Grain:
    """Chunks that have part in each item's block, else in its place."""
    n = evidence.role.size
    layout, wanted = evidence.layout, evidence.wanted
    if layout is None or wanted is None:
        return _nothing(n)
    one = np.ones(n, np.int64)
    block = (wanted.block >= 0) & some(layout, wanted, layout.first >= 0)
    low = np.where(block, wanted.block, 0)
    parts = [(block, *meeting(layout, wanted, block, low, low + 1, one, layout.first, layout.last))]
    parts += _placed(layout, wanted, ~block, one)
    return _grain(n, parts)


def held(evidence: Evidence) -> Grain:
    """Chunks that hold each item's quote, else as much of its place as the suite asks for."""
    n = evidence.role.size
    layout, wanted = evidence.layout, evidence.wanted
    if layout is None or wanted is None:
        return _nothing(n)
    # A quote that no chunk holds although there are texts is held by none, whatever its block.
    own = np.isin(evidence.way, (BY_QUOTE, BY_PLACE))
    none = evidence.looked & ~own
    parts = [
        (own, evidence.covers, evidence.units),
        (none, np.zeros(n + 1, np.int64), np.zeros(0, np.int64)),
        *_placed(layout, wanted, ~own & ~none, needs(wanted, evidence.ratio)),
    ]
    return _grain(n, parts)


def _placed(layout: Layout, wanted: Wanted, left: Any, need: I64) -> list[tuple[Any, I64, I64]]:
    parts = []
    for mask, span in spans_of(layout, wanted):
        which = left & mask & wanted.placed & some(layout, wanted, span.start >= 0)
        met = meeting(layout, wanted, which, wanted.start, wanted.end, need, span.start, span.end)
        parts.append((which, *met))
    return parts


def _grain(n: int, parts: list[tuple[Any, I64, I64]]) -> Grain:
    # `together` takes sizes from the items that each part serves, and these are disjoint.
    checked = np.zeros(n, np.bool_)
    for which, _, _ in parts:
        checked |= which
    return Grain(checked, *together(n, parts))
