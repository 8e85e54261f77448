"""Coverage at three grains of the same labels: the document, the block, the very words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.evidence import Evidence
from ragcore.grains import Grain, held, touched
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_LABEL, Column, Inputs, missing
from ragcore.measures.reached import items_of, shares
from ragcore.measures.required import over_items, says_required
from ragcore.measures.selected import Shown, final, in_parts
from ragcore_kernels import coverage as kernel
from ragcore_kernels.layout import I64


def _first(inputs: Inputs, evidence: Evidence, one: Shown, covers: I64, containing: I64, units: I64
           ) -> Any:  # fmt: skip
    """Flat over `items_of`: items that a list reaches, by codes of any kind."""
    items = items_of(inputs, evidence)
    out = np.full(int(items.offsets[-1]), kernel.NOWHERE, np.int64)
    in_parts(
        inputs,
        lambda a, b: kernel.first_places(
            a, b, inputs.label_of, evidence.offsets, covers, containing, one.offsets, units,
            items.offsets, out,
        ),
    )  # fmt: skip
    return out >= 0


def by_document(inputs: Inputs, evidence: Evidence, one: Shown) -> Any:
    """Flat over `items_of`: items of whose document the list has any chunk."""
    names = inputs.shared.vocabulary
    document = np.arange(len(names.known), dtype=np.int64)  # what no chunk has is its own
    home = evidence.own
    if evidence.layout is not None and evidence.wanted is not None:
        n = document.size
        document[: evidence.layout.of.size] = n + evidence.layout.of
        home = np.where(evidence.wanted.home >= 0, n + evidence.wanted.home, home)
    units = np.where(one.units >= 0, document[one.units] if document.size else -1, -1)
    covers = np.arange(home.size + 1, dtype=np.int64)
    return _first(inputs, evidence, one, covers, home, units)


def at_grain(inputs: Inputs, evidence: Evidence, one: Shown, grain: Grain) -> Any:
    """Flat over `items_of`: items of which the list has a chunk at a grain."""
    return _first(inputs, evidence, one, grain.covers, grain.units, one.units)


def block_grain(inputs: Inputs, evidence: Evidence) -> Grain:
    """Items by the chunks that touch them, worked out once."""
    return inputs.once("touched", lambda: touched(evidence))


def span_grain(inputs: Inputs, evidence: Evidence) -> Grain:
    """Items by the chunks that hold them whole, worked out once."""
    return inputs.once("held", lambda: held(evidence))


def _levels(inputs: Inputs) -> tuple[Evidence, Shown] | str:
    evidence, one = inputs.evidence, final(inputs)
    if evidence is None or one is None:
        return NO_COLUMN
    return (evidence, one) if says_required(evidence) else NO_LABEL


def _column(inputs: Inputs, evidence: Evidence, one: Shown, which: Any, hit: Any) -> Column:
    """Required items in `which` that are hit; missing where a case requires only others."""
    required = evidence.required & ~evidence.stale
    lost = evidence.needed & evidence.stale
    found = over_items(inputs, evidence, required & which, hit, one.present, lost)
    items = items_of(inputs, evidence)
    _, every = shares(items.offsets, required[items.at], hit)
    found.states[(found.under == 0) & (every > 0) & (found.states == schema.OK)] = schema.MISSING
    found.why[schema.MISSING] = NO_LABEL
    return found


def coverage_document(inputs: Inputs, measure: Measure) -> Column:
    """Required items of whose document anything was found."""
    given = _levels(inputs)
    if isinstance(given, str):
        return missing(inputs, given)
    every = np.ones(given[0].role.size, np.bool_)
    return _column(inputs, *given, every, by_document(inputs, *given))


def _at(grain_of: Callable[[Inputs, Evidence], Grain]) -> Callable[[Inputs, Measure], Column]:
    """Required items that a unit reaches at a grain."""

    def value(inputs: Inputs, measure: Measure) -> Column:
        given = _levels(inputs)
        if isinstance(given, str):
            return missing(inputs, given)
        grain = grain_of(inputs, given[0])
        return _column(inputs, *given, grain.checked, at_grain(inputs, *given, grain))

    return value


def overcredit(inputs: Inputs, measure: Measure) -> Column:
    """What document labels credit and the very words do not."""
    given = _levels(inputs)
    if isinstance(given, str):
        return missing(inputs, given)
    grain = span_grain(inputs, given[0])
    hit = by_document(inputs, *given) & ~at_grain(inputs, *given, grain)
    return _column(inputs, *given, grain.checked, hit)


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "retrieval.coverage_document": coverage_document, "retrieval.coverage_block": _at(block_grain),
    "retrieval.coverage_span": _at(span_grain), "retrieval.overcredit": overcredit,
}  # fmt: skip
"""How each of these measures is worked out."""
