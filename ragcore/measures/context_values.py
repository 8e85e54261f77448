"""Values of the measures of the context."""

from __future__ import annotations

from collections.abc import Callable

from ragcore import schema
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NOT_REQUIRED, Column, Inputs, missing
from ragcore.measures.reached import items_of, places, shares

_REFUSED = schema.CONTEXT_STATES.index("budget_refused")


def coverage(inputs: Inputs, measure: Measure) -> Column:
    """Required evidence in the context; a context that was refused is empty, hence 0."""
    evidence = inputs.evidence
    if evidence is None or not inputs.has_trace("context"):
        return missing(inputs, NO_COLUMN)
    lists = inputs.trace_lists("context")
    found = places(inputs, evidence, "context", lists, inputs.units(lists))
    items = items_of(inputs, evidence)
    counted = evidence.required[items.at] & ~evidence.stale[items.at]
    over, under = shares(items.offsets, counted, found >= 0)
    refused = inputs.trace_coded("context_state", schema.CONTEXT_STATES) == _REFUSED
    over[refused] = 0.0
    states = inputs.states(lists.present | refused | inputs.absent)
    return Column(over, under, states, {schema.NA: NOT_REQUIRED})


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {"context.coverage": coverage}
"""How each measure of this layer is worked out."""
