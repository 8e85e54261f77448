"""Layered measures: which module works out which, and their values on the rankings of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.measures import (
    abstention_values,
    citation_values,
    claims_values,
    context_values,
    corpus_values,
    generation_values,
    judging_values,
    outcome_values,
    qasper_values,
    resources_values,
    retrieval_values,
)
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_VERDICT, Column, Inputs
from ragcore_kernels.layout import F64

_LAYERS = (
    corpus_values, retrieval_values, context_values, generation_values, claims_values,
    citation_values, abstention_values, outcome_values, judging_values, resources_values,
    qasper_values,
)  # fmt: skip

VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    name: value for layer in _LAYERS for name, value in layer.VALUES.items()
}
"""How each measure is worked out that is no function of a ranking's hits."""


def _judged(column: Column, measure: Measure, inputs: Inputs) -> Column:
    """A measure that rests on verdicts of which not one was given, though they are needed.

    What follows without them, as from an empty answer, would be a mean over the cases that need no
    judge: it is missing like the rest.
    """
    lacking = [name for name in measure.definition.relations if not inputs.verdicts.has(name)]
    if lacking and (column.states == schema.MISSING).any():
        column.states[column.states == schema.OK] = schema.MISSING
        column.why = {**column.why, schema.MISSING: NO_VERDICT}
        return column.settled()
    return column


def evaluate(measures: list[Measure], inputs: Inputs) -> tuple[F64, Any, list[Column]]:
    """Values and states, (n_measures, n) each, and the columns that they come from."""
    columns = [
        _judged(VALUES[one.definition.name](inputs, one).settled(), one, inputs) for one in measures
    ]
    values = np.full((len(columns), inputs.n), math.nan)
    states = np.full((len(columns), inputs.n), np.int8(schema.MISSING))
    for m, column in enumerate(columns):
        ok = column.states == schema.OK
        np.divide(column.over, column.under, out=values[m], where=ok)
        states[m] = column.states
    return values, states, columns
