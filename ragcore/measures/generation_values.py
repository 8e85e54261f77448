"""Values of the measures of generation: states, conflicts, what is prohibited, outcomes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.evidence import CONFLICTING
from ragcore.measures import answer_text_values
from ragcore.measures.answer_text_values import answers
from ragcore.measures.definitions import Measure
from ragcore.measures.endings import INVALID, ending
from ragcore.measures.inputs import ERROR, NO_COLUMN, NO_LABEL, NO_VERDICT, Column, Inputs, missing
from ragcore.measures.outcome_values import against
from ragcore.measures.prohibited import prohibited_claims, prohibited_effects
from ragcore.measures.reached import items_of, shares
from ragcore_kernels.layout import I64

_NOTHING, _NO_CONFLICT, _ANSWERABLE, _UNANSWERABLE, _OPEN = (
    "nothing-prohibited", "no-conflict", "answerable", "unanswerable", "answerability-open",
)  # fmt: skip
_CONFLICT = schema.CONTEXT_STATES.index("conflict")
SIDES = ("final", "proposed")


def state(inputs: Inputs, measure: Measure, answerable: int | None = None) -> Column:
    """Whether a trace ended in the expected state; over one half of the cases, if asked for."""
    of = str(measure.params.get("of", SIDES[0]))
    if of not in SIDES:
        raise UsageError(f"measure {measure.text!r}: of={of!r}", f"one of {', '.join(SIDES)}")
    end, wanted = ending(inputs, of), inputs.case_coded("expected_state", schema.EXPECTED_STATES)
    if end is None or not inputs.has_case("expected_state"):
        return missing(inputs, NO_COLUMN)
    states = inputs.states((end.code >= 0) | inputs.absent)
    states = np.where(end.invalid & (states == schema.MISSING), np.int8(schema.FAILED), states)
    unlabelled = (wanted < 0) & (states == schema.OK)
    states = np.where(unlabelled, np.int8(schema.MISSING), states)
    why = {schema.FAILED: INVALID if end.invalid.any() else ERROR}
    if unlabelled.any():
        why[schema.MISSING] = NO_LABEL
    if answerable is not None:
        if not inputs.has_case("answerable"):
            return missing(inputs, NO_COLUMN)
        is_open = inputs.answerable < 0
        states = np.where(is_open, np.maximum(states, np.int8(schema.DISPUTED)), states)
        states = np.where(inputs.answerable == 1 - answerable, np.int8(schema.NA), states)
        why[schema.NA] = _UNANSWERABLE if answerable else _ANSWERABLE
        if is_open.any() and not (inputs.status == schema.DISPUTED).any():
            why[schema.DISPUTED] = _OPEN
    right = (end.code == wanted) & ~inputs.absent
    return Column(right.astype(np.float64), np.ones(inputs.n), states, why)


def error(inputs: Inputs, measure: Measure) -> Column:
    """Traces that say `error`."""
    if not inputs.has_trace("error"):
        return missing(inputs, NO_COLUMN)
    states = np.where(inputs.absent, np.int8(schema.MISSING), np.int8(schema.OK))
    return Column(inputs.failed.astype(np.float64), np.ones(inputs.n), states)


def conflict(inputs: Inputs, measure: Measure) -> Column:
    """Conflicts that were shown, or at least not decided in silence."""
    evidence, end = inputs.evidence, ending(inputs)
    if evidence is None or end is None:
        return missing(inputs, NO_COLUMN)
    items = items_of(inputs, evidence)
    there = (evidence.role == CONFLICTING) & ~evidence.stale & ~evidence.absent
    hit = there[items.at]
    _, n_conflicting = shares(items.offsets, hit, hit)
    held = end.abstained & (inputs.trace_coded("context_state", schema.CONTEXT_STATES) == _CONFLICT)
    cells = inputs.verdicts.whole("conflict_shown")
    judged = np.maximum(inputs.states(~inputs.absent), cells.states())
    states = np.where(held, inputs.states(held), judged)
    states = np.where(n_conflicting == 0, np.int8(schema.NA), states)
    rungs = np.where(held, np.int8(-1), cells.rung)
    why = {schema.NA: _NO_CONFLICT, schema.MISSING: NO_VERDICT}
    return Column((held | cells.yes).astype(np.float64), np.ones(inputs.n), states, why, rungs)


# --- what must not appear


def effects(inputs: Inputs, measure: Measure, rate: bool) -> Column:
    """Prohibited effects of every trace, or whether there is any."""
    if not (inputs.has_trace("effects") and inputs.has_case("prohibited")):
        return missing(inputs, NO_COLUMN)
    found = prohibited_effects(inputs).counts
    return _prohibited(inputs, found, inputs.trace_lists("effects").present, rate)


def claims(inputs: Inputs, measure: Measure, rate: bool) -> Column:
    """Prohibited strings that the answer says, or whether there is any."""
    if not inputs.has_case("prohibited"):
        return missing(inputs, NO_COLUMN)
    said = answers(inputs)
    if said is None:
        return missing(inputs, NO_COLUMN)
    return _prohibited(inputs, prohibited_claims(inputs).counts, said.known, rate)


def _prohibited(inputs: Inputs, found: I64, recorded: Any, rate: bool) -> Column:
    states = inputs.states(recorded)
    nothing = inputs.case_lists("prohibited").counts == 0
    states = np.where(nothing, np.int8(schema.NA), states)
    over = (found > 0) if rate else found
    return Column(
        over.astype(np.float64), np.ones(inputs.n), states, {schema.NA: _NOTHING}
    )  # fmt: skip


# --- accurate, missing, incorrect


def three(inputs: Inputs, measure: Measure, which: str) -> Column:
    """Accurate, missing or incorrect; or the first less the last."""
    end, whole = ending(inputs), against(inputs, "final")
    if end is None:
        return missing(inputs, NO_COLUMN)
    silent = end.abstained | inputs.absent
    right, wrong = ~silent & (whole.over == 1.0), ~silent & (whole.over == 0.0)
    states = np.where(
        end.invalid & (whole.states == schema.OK), np.int8(schema.FAILED), whole.states
    )
    over = {
        "accurate": right, "missing": silent, "incorrect": wrong,
        "truthfulness": right.astype(np.float64) - wrong,
    }[which]  # fmt: skip
    why = {**whole.why, schema.FAILED: INVALID if end.invalid.any() else ERROR}
    return Column(over.astype(np.float64), np.ones(inputs.n), states, why)


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "generation.state": state,
    "generation.state_answerable": partial(state, answerable=1),
    "generation.state_unanswerable": partial(state, answerable=0),
    "generation.error": error, "conflict.preserved": conflict,
    "prohibited.effects": partial(effects, rate=False),
    "prohibited.effect_rate": partial(effects, rate=True),
    "prohibited.claims": partial(claims, rate=False),
    "prohibited.claim_rate": partial(claims, rate=True),
    **{f"answer.{name}": partial(three, which=name)
       for name in ("accurate", "missing", "incorrect", "truthfulness")},
    **answer_text_values.VALUES,
}  # fmt: skip
"""How each measure of this layer is worked out."""
