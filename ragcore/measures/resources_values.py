"""Values of the measures of time, cost and energy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ragcore import latency, schema
from ragcore.lists import Lists, doubles, flags
from ragcore.measures.definitions import Measure
from ragcore.measures.endings import ending, recorded
from ragcore.measures.inputs import NO_COLUMN, Column, Inputs, missing
from ragcore.measures.outcome_values import outcome
from ragcore_kernels.layout import F64

COSTS = ("embed", "search", "rerank", "prompt", "decode", "tools", "verify", "network")
"""The eight parts of a cost."""
JOULES = ("cpu_j", "gpu_j", "other_j")
KWH = 3.6e6
"""Joules of a kilowatt-hour."""

_OTHER_KIND, _NO_KIND, _NOT_THIS, _NO_STAGE = (
    "energy-of-the-other-kind", "measured-or-modelled-not-said", "not-among-the-counted",
    "stage-not-timed",
)  # fmt: skip


def _milliseconds(inputs: Inputs, found: F64, stage: str) -> Column:
    why = {schema.MISSING: _NO_STAGE} if stage else {}
    return Column(
        found / 1e3, np.ones(inputs.n), recorded(inputs, ~np.isnan(found)), why
    )  # fmt: skip


def _timings(inputs: Inputs, stage: str) -> Lists | None:
    """The timings; None where the run has none. A stage that no trace has is remarked on."""
    if not inputs.has_trace("timings"):
        return None
    found = inputs.trace_lists("timings")
    if stage and not latency.is_stage(found, stage).any():
        names = found.field("stage")
        known = sorted(n for n in ([] if names is None else names.unique().to_pylist()) if n)
        inputs.warnings.append(
            f"no trace times the stage {stage!r}; timed: {', '.join(known) or 'none'}"
        )
    return found


def took(inputs: Inputs, measure: Measure) -> Column:
    """Time of a trace or of one of its stages."""
    stage = str(measure.params.get("stage") or "")
    timings = _timings(inputs, stage)
    if timings is None:
        return missing(inputs, NO_COLUMN)
    found = latency.of_stage(timings, stage) if stage else latency.whole(timings)
    return _milliseconds(inputs, found, stage)


def queued(inputs: Inputs, measure: Measure) -> Column:
    """Time in queues."""
    stage = str(measure.params.get("stage") or "")
    timings = _timings(inputs, stage)
    if timings is None:
        return missing(inputs, NO_COLUMN)
    if stage:
        found = latency.summed(timings, "queue_us", latency.is_stage(timings, stage))
    else:
        whole = latency.is_whole(timings)
        said = latency.first_of(timings, "queue_us", whole)
        found = np.where(np.isnan(said), latency.summed(timings, "queue_us", ~whole), said)
    return _milliseconds(inputs, found, stage)


def unexplained(inputs: Inputs, measure: Measure) -> Column:
    """End to end less the stages; both must be timed."""
    timings = _timings(inputs, "")
    if timings is None:
        return missing(inputs, NO_COLUMN)
    whole = latency.is_whole(timings)
    end_to_end = latency.first_of(timings, "duration_us", whole)
    return _milliseconds(inputs, end_to_end - latency.covered(timings, ~whole), "")


def _parts(inputs: Inputs, column: str, names: tuple[str, ...], what: str) -> F64 | None:
    """Sum of the recorded fields of a struct column, NaN where none is; None without any."""
    fields = [inputs.part(column, name) for name in names]
    found = np.stack([doubles(f, inputs.n) for f in fields])
    known = ~np.isnan(found)
    if not known.any():
        return None
    some = known.any(axis=0)
    usual = known.any(axis=1)  # a part that no trace records is no part of this system
    partly = int((some & ~inputs.failed & ~known[usual].all(axis=0)).sum())
    if partly:
        inputs.counts[f"traces whose {what} lacks a part"] = partly
        inputs.warnings.append(
            f"{partly} traces lack a part of their {what} that others record: sums are at least "
            "what is printed"
        )
    total = np.where(known, found, 0.0).sum(axis=0)
    return np.where(some, total, np.nan)


def _per(inputs: Inputs, over: F64, under: F64, states: Any, why: dict[int, str]) -> Column:
    """A ratio of sums: what is not ok is in neither sum."""
    off = states != schema.OK
    return Column(
        np.where(off, np.nan, over), np.where(off, np.nan, under), states,
        {schema.NA: _NOT_THIS, **why}, sums=True,
    )  # fmt: skip


def cost(inputs: Inputs, measure: Measure, counted: str) -> Column:
    """Cost of every trace over those of one kind."""
    spent = inputs.once("cost", lambda: _parts(inputs, "cost", COSTS, "cost"))
    if spent is None:
        return missing(inputs, NO_COLUMN)
    states = recorded(inputs, ~np.isnan(spent))
    if counted == "request":
        return _per(inputs, spent, np.ones(inputs.n), states, {})
    end = ending(inputs)
    if end is None:
        return missing(inputs, NO_COLUMN)
    # An error ends without an answer: its cost counts, and it is none of the counted.
    known = (end.code >= 0) | end.invalid | inputs.failed
    answered = end.answered
    if counted == "answered":
        states = np.where(known, states, np.maximum(states, np.int8(schema.MISSING)))
        return _per(inputs, spent, answered.astype(np.float64), states, {})
    found = outcome(inputs, "final")
    if found is None or not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    wanted = inputs.case("expected_state")
    assert wanted is not None
    labelled = np.asarray(wanted.is_valid())
    known &= labelled | (end.code < 0)
    states = np.where(known, states, np.maximum(states, np.int8(schema.MISSING)))
    states = np.maximum(states, inputs.status)
    cites = inputs.trace_lists("citations").counts > 0
    settled = answered & cites
    if counted == "resolved":
        settled |= end.abstained
    return _per(inputs, spent, (settled & found[0]).astype(np.float64), states, {})


def energy(inputs: Inputs, measure: Measure, measured: bool) -> Column:
    """Energy of the traces whose joules are of one kind."""
    joules = inputs.once("joules", lambda: _parts(inputs, "energy", JOULES, "energy"))
    if joules is None:
        return missing(inputs, NO_COLUMN)
    kind = inputs.part("energy", "measured")
    said = np.zeros(inputs.n, np.bool_) if kind is None else np.asarray(kind.is_valid())
    mine = said & (flags(kind, inputs.n) == measured)
    states = recorded(inputs, ~np.isnan(joules) & mine)
    other = int((~np.isnan(joules) & said & ~mine).sum())
    unsaid = int((~np.isnan(joules) & ~said).sum())
    why = {}
    if unsaid:
        inputs.counts["traces whose energy is not said to be measured or modelled"] = unsaid
        why = {schema.MISSING: _NO_KIND}
    if other:
        why = {schema.MISSING: _OTHER_KIND}
    return _per(inputs, 1e3 * joules / KWH, np.ones(inputs.n), states, why)


def count(inputs: Inputs, measure: Measure) -> Column:
    """A whole number of the trace."""
    column = measure.definition.needs[0]
    found = inputs.trace(column)
    if found is None:
        return missing(inputs, NO_COLUMN)
    values = doubles(found, inputs.n)
    return Column(values, np.ones(inputs.n), recorded(inputs, ~np.isnan(values)))


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    **{f"latency.{name}": took for name in ("p50", "p95", "p99", "mean")},
    "latency.unexplained": unexplained, "queueing.p95": queued,
    **{f"cost.{kind}": partial(cost, counted=kind)
       for kind in ("request", "answered", "correct_cited", "resolved")},
    "energy.measured": partial(energy, measured=True),
    "energy.modelled": partial(energy, measured=False),
    **dict.fromkeys(("tokens.in", "tokens.out", "work.steps", "work.retries"), count),
}  # fmt: skip
"""How each measure of this layer is worked out."""
