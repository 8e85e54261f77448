"""Values of the nugget measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_LABEL, Column, Inputs
from ragcore.measures.reached import shares
from ragcore.measures.shown import REFERENCE, cells_of, column, reference_claims, states_of
from ragcore_kernels import verdicts as kernel

_NEEDS = (REFERENCE, "covered")


def _halves(inputs: Inputs, strict: bool) -> tuple[Any, Any, Any, Any]:
    """Twice the support of vital and of okay nuggets, and how many of each; (n,) each."""

    def make() -> tuple[Any, Any, Any, Any]:
        said = cells_of(inputs, "covered").verdict
        twice = 2 * (said == kernel.YES) + (0 if strict else 1) * (said == kernel.PARTIAL)
        offsets, vital = reference_claims(inputs).offsets, reference_claims(inputs).flags("vital")
        top, n_vital = shares(offsets, vital, twice)
        low, n_okay = shares(offsets, ~vital, twice)
        return top, low, n_vital, n_okay

    return inputs.once(f"nuggets {strict}", make)


def _unmarked(inputs: Inputs) -> Any:
    """(n,), rankings of whose nuggets one is marked neither vital nor okay."""
    claims = reference_claims(inputs)
    marks = claims.field("vital")
    if marks is None or pa.types.is_null(marks.type):
        return claims.counts > 0
    gone = np.asarray(marks.is_null())
    return np.bincount(claims.owners[gone], minlength=inputs.n) > 0


def nugget(inputs: Inputs, measure: Measure) -> Column:
    """Support of the nuggets of one kind, as a share of what they weigh."""
    kind, _, strict = measure.definition.name.removeprefix("nuggets.").partition("_")
    top, low, n_vital, n_okay = _halves(inputs, bool(strict))
    over, under = {
        "vital": (top / 2, n_vital), "all": ((top + low) / 2, n_vital + n_okay),
        "weighted": (top / 2 + low / 4, n_vital + n_okay / 2),
    }[kind]  # fmt: skip
    states, open_marks = states_of(inputs, *_NEEDS), np.zeros(inputs.n, np.bool_)
    if kind != "all":
        open_marks = _unmarked(inputs) & (states <= schema.MISSING)
        states = np.where(open_marks, np.int8(schema.MISSING), states)
    found = column(inputs, over, under, _NEEDS, "no-nugget", states)
    if open_marks.any():
        found.why[schema.MISSING] = NO_LABEL
    return found


_KINDS = ("vital", "vital_strict", "all", "all_strict", "weighted", "weighted_strict")
VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    f"nuggets.{kind}": nugget for kind in _KINDS
}
"""How each nugget measure is worked out."""
