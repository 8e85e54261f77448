"""Values of the measures of grounded correctness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NOT_REQUIRED, Column, Inputs, missing
from ragcore.measures.shown import (
    ANSWER,
    CONTEXT,
    REFERENCE,
    answer_claims,
    cells_of,
    column,
    counts_of,
    reference_claims,
    shown_of,
    silent,
    states_of,
)
from ragcore.threads import run_split
from ragcore_kernels import claims as claims_kernel
from ragcore_kernels import grounded as kernel
from ragcore_kernels.layout import F64, I64

NO_CLAIMS = "no-claims"
_MUST_ANSWER = ("answer", "partial")


def ground(inputs: Inputs) -> Any:
    """(n, `kernel.FIELDS`) int32, answer claims by correctness and support."""

    def make() -> Any:
        claims = answer_claims(inputs)
        correct, held = (cells_of(inputs, name).verdict for name in ("correct", "entailed"))
        mark = claims.flags("high_stakes").astype(np.int8)
        counts = np.empty((inputs.n, kernel.FIELDS), np.int32)

        def work(begin: int, end: int) -> None:
            kernel.ground(begin, end, claims.offsets, correct, held, mark, counts)

        run_split(work, inputs.n, inputs.lanes)
        return counts

    return inputs.once("ground", make)


def marked(inputs: Inputs, field: str, unmarked: bool, chunks: bool = True) -> Any:
    """(n, 4) int32, reference claims with a mark: all, covered, entailed by a chunk, both.

    Parameters
    ----------
    field : the mark, a field of the claims.
    unmarked : what a claim without it counts as.
    chunks : whether chunks are asked for; without, the last two are 0.
    """

    def make() -> Any:
        claims = reference_claims(inputs)
        covered = cells_of(inputs, "covered").verdict
        shown, offsets = np.zeros(inputs.n + 1, np.int64), np.zeros(inputs.n + 1, np.int64)
        matrix = covered[:0]
        if chunks:
            shown, cells = shown_of(inputs).offsets, cells_of(inputs, "chunk_entails_reference")
            offsets, matrix = cells.offsets, cells.verdict
        mark = claims.flags(field, unmarked).astype(np.int8)
        counts = np.empty((inputs.n, 4), np.int32)

        def work(begin: int, end: int) -> None:
            claims_kernel.marked(
                begin, end, claims.offsets, shown, offsets, covered, matrix, mark, counts
            )

        run_split(work, inputs.n, inputs.lanes)
        return counts

    return inputs.once(f"marked {field} {chunks}", make)


def harmonic(first: F64, of_first: F64, second: F64, of_second: F64) -> tuple[I64, I64]:
    """F1 of two shares, (n,) whole numbers each: numerator and denominator."""
    a, b, c, d = (np.asarray(x).astype(np.int64) for x in (first, of_first, second, of_second))
    over, under = np.empty_like(a), np.empty_like(a)
    kernel.harmonic(0, over.size, a, b, c, d, over, under)
    return over, under


_SHARES: dict[str, tuple[int, tuple[str, ...]]] = {
    "grounded.faithfulness": (kernel.SUPPORTED, (ANSWER, "entailed")),
    "grounded.precision": (kernel.GROUNDED, (ANSWER, "correct", "entailed")),
}


def _share(inputs: Inputs, measure: Measure) -> Column:
    field, needs = _SHARES[measure.definition.name]
    claims = counts_of(answer_claims(inputs).offsets)
    return column(inputs, ground(inputs)[:, field], claims, needs, NO_CLAIMS)


def unsupported(inputs: Inputs, measure: Measure) -> Column:
    """Answer claims that the context does not support."""
    claims = counts_of(answer_claims(inputs).offsets)
    over = claims - ground(inputs)[:, kernel.SUPPORTED]
    return column(inputs, over, claims, (ANSWER, "entailed"), NO_CLAIMS)


def contradicted(inputs: Inputs) -> Column:
    """Answer claims that the context contradicts."""
    claims = counts_of(answer_claims(inputs).offsets)
    over = ground(inputs)[:, kernel.CONTRADICTED]
    return column(inputs, over, claims, (ANSWER, "entailed"), NO_CLAIMS)


def recall(inputs: Inputs, measure: Measure) -> Column:
    """Required reference claims that the answer covers."""
    counts = marked(inputs, "required", True, chunks=False)
    states = states_of(inputs, REFERENCE, "covered")
    quiet = (states == schema.OK) & silent(inputs) & _need_not_answer(inputs)
    states = np.where(quiet, np.int8(schema.NA), states)
    return column(inputs, counts[:, 1], counts[:, 0], (REFERENCE, "covered"), NOT_REQUIRED, states)


def _need_not_answer(inputs: Inputs) -> Any:
    """(n,), cases that are labelled as none to answer."""
    wanted = inputs.case_coded("expected_state", schema.EXPECTED_STATES)
    known = [schema.EXPECTED_STATES.index(word) for word in _MUST_ANSWER]
    return ((wanted >= 0) & ~np.isin(wanted, known)) | ((wanted < 0) & (inputs.answerable == 0))


def f1(inputs: Inputs, measure: Measure) -> Column:
    """The harmonic mean of grounded precision and recall."""
    right, required = ground(inputs)[:, kernel.GROUNDED], recall(inputs, measure)
    claims = counts_of(answer_claims(inputs).offsets)
    over, under = harmonic(right, claims, required.over, required.under)
    needs = (ANSWER, REFERENCE, "correct", "entailed", "covered")
    states = np.maximum(states_of(inputs, *needs), required.states)
    return column(inputs, over, under, needs, "one-side-na", states)


def high_stakes(inputs: Inputs, measure: Measure) -> Column:
    """Claims of high stakes that nothing shown supports, counted."""
    of = measure.params["of"]
    one = np.ones(inputs.n)
    if of == "answer":
        kind = answer_claims(inputs).items.type
        if not pa.types.is_struct(kind) or kind.get_field_index("high_stakes") < 0:
            return missing(inputs, NO_COLUMN)
        over = ground(inputs)[:, kernel.MARKED_UNSUPPORTED]
        return column(inputs, over, one, (ANSWER, "entailed"), NO_CLAIMS)
    if of != "reference":
        raise UsageError(f"measure {measure.text!r}: of={of!r}", "reference or answer")
    counts = marked(inputs, "high_stakes", False)
    needs = (REFERENCE, CONTEXT, "chunk_entails_reference", "covered")
    return column(inputs, counts[:, 1] - counts[:, 3], one, needs, NO_CLAIMS)


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    **dict.fromkeys(_SHARES, _share), "grounded.recall": recall, "grounded.f1": f1,
    "claims.unsupported": unsupported, "claims.unsupported_high_stakes": high_stakes,
}  # fmt: skip
"""How each of these measures is worked out."""
