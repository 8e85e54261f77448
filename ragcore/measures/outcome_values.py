"""Values of the outcome measures: state and value of every trace against its case."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.measures.definitions import Measure
from ragcore_kernels.layout import F64, I64


def evaluate(
    measures: list[Measure], traces: pa.Table | None, cases: pa.Table | None,
    row_of: I64, label_of: I64, status: Any,
) -> tuple[F64, Any]:  # fmt: skip
    """Values and states of outcome measures, (n_measures, n_rankings) each.

    Parameters
    ----------
    traces, cases : the run and the suite; None where there is none.
    row_of, label_of : (n,), row of each ranking in them; -1 without one. A judged case that the
        run lacks was not handled: 0.
    status : (n_labels,), state of each row of `cases`.
    """
    n = row_of.size
    values = np.full((len(measures), n), math.nan)
    states = np.full((len(measures), n), np.int8(schema.MISSING))
    if cases is None or "expected_state" not in cases.column_names:
        return values, states
    wanted = _texts(cases["expected_state"])[label_of]
    valued = "expected_value" in cases.column_names
    target = _texts(cases["expected_value"])[label_of] if valued else None
    errors = _of(traces, "error", None, row_of)
    for m, one in enumerate(measures):
        column = "proposed" if one.definition.name == "generation.task" else "final"
        state = _of(traces, column, "state", row_of)
        if state is None and column == "final":
            column = "proposed"
            state = _of(traces, column, "state", row_of)
        if state is None:
            continue
        right = state == wanted
        if one.definition.name == "abstention.correct":
            right = state == "abstain"
        elif target is not None:
            value = _of(traces, column, "value", row_of)
            right &= value == target if value is not None else _none(target)
        absent = row_of < 0
        known = (~_none(state) | absent) & ~_none(wanted)
        states[m, known] = schema.OK
        if errors is not None:
            states[m, ~_none(errors) & _none(state)] = schema.FAILED
        states[m, status[label_of] == schema.DISPUTED] = schema.DISPUTED
        if one.definition.name == "abstention.correct":
            states[m, ~_none(wanted) & (wanted != "abstain")] = schema.NA
        ok = states[m] == schema.OK
        values[m, ok] = right[ok] & ~absent[ok]
    return values, states


def _none(values: Any) -> Any:
    """Where an array of objects has none."""
    return np.array([value is None for value in values], np.bool_)


def _texts(column: pa.ChunkedArray) -> Any:
    return np.array([*column.to_pylist(), None], object)  # -1 finds the last: none


def _of(traces: pa.Table | None, column: str, field: str | None, rows: I64) -> Any:
    """A column of the traces, or a field of a struct column, for each ranking; None without it."""
    if traces is None or column not in traces.column_names:
        return None
    found = traces[column]
    if field is not None:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(field) < 0:
            return None
        parts = [None if part is None else part[field] for part in found.to_pylist()]
        return np.array([*parts, None], object)[rows]
    return _texts(found)[rows]
