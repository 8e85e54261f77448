"""Values of the measures of abstention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.lists import doubles
from ragcore.measures.definitions import Measure
from ragcore.measures.endings import INVALID, Ending, ending, states_of
from ragcore.measures.inputs import ERROR, NO_COLUMN, Column, Inputs, missing
from ragcore.measures.outcome_values import end_to_end

_ANSWERABLE, _UNANSWERABLE, _OPEN = "answerable", "unanswerable", "answerability-open"
_NOT_ANSWERED, _NOT_ABSTAINED, _NO_CONFIDENCE, _HARD = (
    "not-answered", "not-abstained", "no-confidence", "abstention-without-confidence",
)  # fmt: skip
YES, NO = 1, 0


def _labelled(inputs: Inputs, states: Any) -> Any:
    """States where the case must say whether it is answerable; open is disputed."""
    return np.where(inputs.answerable < 0, np.maximum(states, np.int8(schema.DISPUTED)), states)


def _why(inputs: Inputs, end: Ending, na: str) -> dict[int, str]:
    """Reasons: what failed is an error, or a word that is no state."""
    words = {schema.NA: na, schema.FAILED: INVALID if end.invalid.any() else ERROR}
    if (inputs.answerable < 0).any() and not (inputs.status == schema.DISPUTED).any():
        words[schema.DISPUTED] = _OPEN
    return words


def _rate(inputs: Inputs, measure: Measure, of: int, hit: str) -> Column:
    """Answered or abstained, over the answerable or the unanswerable cases."""
    end = ending(inputs)
    if end is None or not inputs.has_case("answerable"):
        return missing(inputs, NO_COLUMN)
    other = inputs.answerable == 1 - of
    states = np.where(other, np.int8(schema.NA), _labelled(inputs, states_of(inputs, end)))
    found = end.answered if hit == "answered" else end.abstained
    na = _ANSWERABLE if of == NO else _UNANSWERABLE
    return Column(
        found.astype(np.float64), np.ones(inputs.n), states, _why(inputs, end, na)
    )  # fmt: skip


def precision(inputs: Inputs, measure: Measure) -> Column:
    """Unanswerable cases among those abstained from."""
    end = ending(inputs)
    if end is None or not inputs.has_case("answerable"):
        return missing(inputs, NO_COLUMN)
    states = states_of(inputs, end)
    states = np.where(
        (states == schema.OK) & ~end.abstained, np.int8(schema.NA), _labelled(inputs, states)
    )
    right = inputs.answerable == NO
    return Column(
        right.astype(np.float64), np.ones(inputs.n), states, _why(inputs, end, _NOT_ABSTAINED)
    )  # fmt: skip


def coverage(inputs: Inputs, measure: Measure) -> Column:
    """Traces that answered, wholly or in part."""
    end = ending(inputs)
    if end is None:
        return missing(inputs, NO_COLUMN)
    why = {schema.FAILED: INVALID} if end.invalid.any() else {}
    return Column(
        end.answered.astype(np.float64), np.ones(inputs.n), states_of(inputs, end), why
    )  # fmt: skip


def risk(inputs: Inputs, measure: Measure) -> Column:
    """Wrong answers among the answers."""
    end = ending(inputs)
    whole = end_to_end(inputs, measure)
    if end is None:
        return missing(inputs, NO_COLUMN)
    silent = end.abstained & (whole.states != schema.DISPUTED)
    states = np.where(silent, np.int8(schema.NA), whole.states)
    states = np.where(
        (end.code < 0) & (states == schema.OK), states_of(inputs, end), states
    )  # fmt: skip
    why = {schema.NA: _NOT_ANSWERED, schema.FAILED: INVALID if end.invalid.any() else ERROR}
    return Column(1.0 - whole.over, whole.under, states, why)


def _published(inputs: Inputs, measure: Measure, of: int | None, hit: str) -> Column:
    """A rate of NoMIRACL: invalid outputs stay in the denominator."""
    end = ending(inputs)
    if end is None or not inputs.has_case("answerable"):
        return missing(inputs, NO_COLUMN)
    invalid = end.invalid | (inputs.failed & (end.code < 0))
    if invalid.any():
        inputs.counts["invalid outputs"] = int(invalid.sum())
    states = _labelled(inputs, inputs.states((end.code >= 0) | invalid))
    if of is not None:
        states = np.where(inputs.answerable == 1 - of, np.int8(schema.NA), states)
    found = {"answered": end.answered, "abstained": end.abstained, "invalid": invalid}[hit]
    na = _ANSWERABLE if of == NO else _UNANSWERABLE
    return Column(
        (found & ~(invalid & (hit != "invalid"))).astype(np.float64), np.ones(inputs.n), states,
        _why(inputs, end, na),
    )  # fmt: skip


def curve(inputs: Inputs, measure: Measure) -> Column:
    """Loss of every trace with a confidence, ordered by it."""
    end = ending(inputs)
    given = inputs.part("proposed", "confidence")
    if end is None or given is None:
        return missing(inputs, NO_COLUMN)
    whole = end_to_end(inputs, measure)
    sure = doubles(given, inputs.n)
    proposed = ending(inputs, "proposed") or end
    lacks = np.isnan(sure) & (whole.states == schema.OK)
    silent = lacks & np.where(proposed.code >= 0, proposed.abstained, end.abstained)
    states = np.where(lacks, np.int8(schema.MISSING), whole.states)
    states = np.where(silent, np.int8(schema.NA), states)
    if silent.any():
        inputs.counts["abstentions without a confidence"] = int(silent.sum())
        if not (states == schema.OK).any():
            inputs.warnings.append(
                "abstentions have no confidence: they give one point of coverage and risk, and "
                "no curve; see answer.coverage and selective.risk"
            )
    why = {schema.NA: _HARD, schema.MISSING: _NO_CONFIDENCE}
    return Column(1.0 - whole.over, whole.under, states, why, order=sure)


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "abstention.false_answer": partial(_rate, of=NO, hit="answered"),
    "abstention.unnecessary": partial(_rate, of=YES, hit="abstained"),
    "abstention.precision": precision,
    "abstention.recall": partial(_rate, of=NO, hit="abstained"),
    "answer.coverage": coverage, "selective.risk": risk,
    "nomiracl.hallucination": partial(_published, of=NO, hit="answered"),
    "nomiracl.error": partial(_published, of=YES, hit="abstained"),
    "nomiracl.invalid": partial(_published, of=None, hit="invalid"),
    "abstention.aurc": curve, "abstention.eaurc": curve,
}  # fmt: skip
"""How each measure of this layer is worked out."""
