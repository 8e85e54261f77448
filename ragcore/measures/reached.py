"""Items of evidence against lists of chunks: where each item of a ranking's case is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore.evidence import Evidence
from ragcore.lists import Lists
from ragcore.measures.inputs import Inputs
from ragcore.threads import run_split
from ragcore_kernels import coverage as kernel
from ragcore_kernels.layout import F64, I64


@dataclass
class Items:
    """The items of every ranking's case.

    Attributes
    ----------
    offsets : (n + 1,), items of each ranking.
    at : flat, the item of `Evidence` behind each.
    """

    offsets: I64
    at: I64


def items_of(inputs: Inputs, evidence: Evidence) -> Items:
    """The items of each ranking's case; none for a ranking of no case."""

    def make() -> Items:
        label = inputs.label_of
        known = label >= 0
        counts = (
            np.where(known, np.diff(evidence.offsets)[label], 0)
            if known.any()
            else np.zeros(label.size, np.int64)
        )
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        first = np.where(known, evidence.offsets[label], 0)
        at = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - first, counts)
        return Items(offsets, at.astype(np.int64))

    return inputs.once("items", make)


def places(inputs: Inputs, evidence: Evidence, key: str, lists: Lists, units: I64) -> I64:
    """Place, from 0, in each ranking's list at which each item is reached; -1 for nowhere.

    Parameters
    ----------
    key : name of the list: what is worked out once is kept under it.
    lists, units : the list of each ranking, and the codes of its items.

    Returns
    -------
    flat over `items_of`.
    """

    def make() -> I64:
        items = items_of(inputs, evidence)
        out = np.full(int(items.offsets[-1]), kernel.NOWHERE, np.int64)

        def work(begin: int, end: int) -> None:
            kernel.first_places(
                begin, end, inputs.label_of, evidence.offsets, evidence.covers,
                evidence.units, lists.offsets, units, items.offsets, out,
            )  # fmt: skip

        run_split(work, inputs.n, inputs.lanes)
        return out

    return inputs.once(f"places {key}", make)


def shares(offsets: I64, counted: Any, hit: Any) -> tuple[F64, F64]:
    """(counted and hit, counted) of each stretch of flat flags, as float64."""
    n = offsets.size - 1
    over, under = np.zeros(n, np.int64), np.zeros(n, np.int64)
    kernel.share(
        0, n, offsets, np.asarray(counted, np.int64),
        np.asarray(hit, np.int64), over, under,
    )  # fmt: skip
    return over.astype(np.float64), under.astype(np.float64)
