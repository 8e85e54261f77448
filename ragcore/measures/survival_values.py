"""Values of the survival funnel, and of the agreement of channels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_LABEL, Column, Inputs, missing
from ragcore.measures.packed_spans import intact_items
from ragcore.measures.reached import items_of
from ragcore.measures.required import over_required, reached, says_required
from ragcore.measures.selected import Shown, candidates, channels, in_parts, selected, shown, stage
from ragcore.measures.shown import shown_of
from ragcore_kernels import overlap as agreement
from ragcore_kernels import shown as kernel

_BOTH_EMPTY, _NO_CHANNELS = "both-lists-empty", "no-two-lists"


def _funnel(inputs: Inputs, lists: list[Shown]) -> Column:
    """Required items that any of some lists reaches."""
    evidence = inputs.evidence
    if evidence is None or not lists:
        return missing(inputs, NO_COLUMN)
    if not says_required(evidence):
        return missing(inputs, NO_LABEL)
    hit = np.zeros(items_of(inputs, evidence).at.size, np.bool_)
    recorded = np.zeros(inputs.n, np.bool_)
    for one in lists:
        hit |= reached(inputs, evidence, one)
        recorded |= one.present
    return over_required(inputs, evidence, hit, recorded)


def candidate(inputs: Inputs, measure: Measure) -> Column:
    """Required items among the candidates of any channel."""
    return _funnel(inputs, candidates(inputs) if inputs.stages else [])


def _of_stage(name: str) -> Callable[[Inputs, Measure], Column]:
    def value(inputs: Inputs, measure: Measure) -> Column:
        return _funnel(inputs, [stage(inputs, name)] if name in inputs.stages else [])

    return value


def chosen(inputs: Inputs, measure: Measure) -> Column:
    """Required items in what was selected."""
    one = selected(inputs)
    return _funnel(inputs, [] if one is None else [one])


def cited(inputs: Inputs, measure: Measure) -> Column:
    """Required items in a cited unit."""
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    return _funnel(inputs, [shown(inputs, "citations", inputs.trace_lists("citations"))])


def packed(inputs: Inputs, measure: Measure) -> Column:
    """Required items that lie whole in what was shown."""
    evidence = inputs.evidence
    if evidence is None or not inputs.has_trace("context"):
        return missing(inputs, NO_COLUMN)
    if not says_required(evidence):
        return missing(inputs, NO_LABEL)
    return over_required(
        inputs, evidence, intact_items(inputs, evidence), shown_of(inputs).recorded
    )


def _pair(inputs: Inputs, measure: Measure) -> tuple[Shown, Shown] | None:
    names = [measure.params["a"], measure.params["b"]]
    for name in names:
        if name is not None and name not in inputs.stages and inputs.stages:
            raise UsageError(
                f"measure {measure.text!r}: no stage {name!r}",
                f"recorded: {', '.join(inputs.stages)}",
            )
    left = [name for name in channels(inputs) if name not in names]
    filled = [name if name is not None else (left.pop(0) if left else None) for name in names]
    if None in filled or not inputs.stages:
        return None
    a, b = (stage(inputs, str(name)) for name in filled)
    return a, b


def _agreement(which: int) -> Callable[[Inputs, Measure], Column]:
    def value(inputs: Inputs, measure: Measure) -> Column:
        pair = _pair(inputs, measure)
        if pair is None:
            return missing(inputs, _NO_CHANNELS)
        a, b = pair
        p = float(measure.params.get("p", 0.9))
        out = np.zeros((inputs.n, 5))
        in_parts(
            inputs,
            lambda begin, end: kernel.agreements(
                begin, end, a.offsets, a.units, b.offsets, b.units, measure.k, p, out
            ),
        )
        some = (out[:, 3] + out[:, 4]) > 0
        states = inputs.states(a.present & b.present)
        return Column(
            out[:, which].copy(), some.astype(np.float64), states, {schema.NA: _BOTH_EMPTY}
        )

    return value


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "survival.candidate": candidate, "survival.fused": _of_stage("fused"),
    "survival.reranked": _of_stage("reranked"), "survival.selected": chosen,
    "survival.packed": packed, "survival.cited": cited,
    "overlap.jaccard": _agreement(agreement.JACCARD),
    "overlap.share": _agreement(agreement.OVERLAP), "overlap.rbo": _agreement(agreement.RBO),
}  # fmt: skip
"""How each of these measures is worked out."""
