"""Values of the measures of the context."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ragcore import schema
from ragcore.lists import integers
from ragcore.measures import claims_values, trace_values
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NOT_RECORDED, Column, Inputs, missing
from ragcore.measures.packed_spans import intact_items, packed_spans
from ragcore.measures.reached import items_of, places
from ragcore.measures.required import over_required, reached
from ragcore.measures.selected import final
from ragcore.measures.shown import refused, shown_of


def coverage(inputs: Inputs, measure: Measure) -> Column:
    """Required evidence in the context; a context that was refused is empty, hence 0."""
    evidence = inputs.evidence
    if evidence is None or not inputs.has_trace("context"):
        return missing(inputs, NO_COLUMN)
    lists = inputs.trace_lists("context")
    found = places(inputs, evidence, "context", lists, inputs.units(lists)) >= 0
    counts = np.diff(items_of(inputs, evidence).offsets)
    usable = found & ~np.repeat(refused(inputs), counts)
    return over_required(inputs, evidence, usable, shown_of(inputs).recorded)


def span_intact(inputs: Inputs, measure: Measure) -> Column:
    """Required items that are whole in something packed."""
    evidence = inputs.evidence
    if evidence is None or not inputs.has_trace("context"):
        return missing(inputs, NO_COLUMN)
    whole = intact_items(inputs, evidence)
    return over_required(inputs, evidence, whole, shown_of(inputs).recorded)


def packing_loss(inputs: Inputs, measure: Measure) -> Column:
    """What was ranked and is not in the context, of what is required."""
    evidence, ranked = inputs.evidence, final(inputs)
    if evidence is None or not inputs.has_trace("context") or ranked is None:
        return missing(inputs, NO_COLUMN)
    above = over_required(inputs, evidence, reached(inputs, evidence, ranked), ranked.present)
    kept = coverage(inputs, measure)
    states = np.maximum(above.states, kept.states)
    return Column(above.over - kept.over, above.under, states, above.why)


def tokens(inputs: Inputs, measure: Measure) -> Column:
    """Length of what was packed."""
    if not inputs.has_trace("context"):
        return missing(inputs, NO_COLUMN)
    context, spans = shown_of(inputs), packed_spans(inputs)
    lengths = inputs.trace_lists("context").integers("n_tokens")[context.at]
    chunks = inputs.shared.chunks
    if chunks is not None and (lengths < 0).any():
        own = chunks.integers("n_tokens")
        known = (context.units >= 0) & (context.units < len(chunks)) & spans.whole & (lengths < 0)
        lengths = np.where(known, own[np.where(known, context.units, 0)], lengths)
    owner = np.repeat(np.arange(inputs.n), np.diff(context.offsets))
    over = np.bincount(owner, np.maximum(lengths, 0), inputs.n).astype(np.float64)
    open_ones = np.bincount(owner[lengths < 0], minlength=inputs.n) > 0
    known = context.recorded & ~open_ones & ~inputs.absent
    return Column(over, np.ones(inputs.n), inputs.states(known), {schema.MISSING: NOT_RECORDED})


def budget(inputs: Inputs, measure: Measure) -> Column:
    """Whether input and reserve fit the window."""
    sizes = [integers(inputs.trace(name), inputs.n) for name in ("input_size", "reserve", "window")]
    off = refused(inputs)
    known = np.logical_and.reduce([size >= 0 for size in sizes])
    fits = known & ~off & (sizes[0] + sizes[1] <= sizes[2])
    found = inputs.states(known | off)
    return Column(fits.astype(np.float64), np.ones(inputs.n), found, {schema.MISSING: NOT_RECORDED})


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "context.coverage": coverage, "context.span_intact": span_intact,
    "context.packing_loss": packing_loss, "context.tokens": tokens, "context.budget": budget,
    "context.precision": claims_values.precision,
    "context.precision_ap": claims_values.precision_ap, **trace_values.VALUES,
}  # fmt: skip
"""How each measure of this layer is worked out."""
