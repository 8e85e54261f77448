"""Values of the outcome measures: state and value of every trace against its case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.formats.compute import pc
from ragcore.measures import support
from ragcore.measures.citation_verdicts import claim_support
from ragcore.measures.cited import cited, claims_of
from ragcore.measures.cites import pair_verdicts, worst_state
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, Column, Inputs, missing
from ragcore_kernels import verdicts as kernel

_NOT_EXPECTED, _NOT_CHECKED, _NOT_SETTLED, _FAILED = (
    "abstention-not-expected", "support-not-judged", "support-disputed", "judge-error",
)  # fmt: skip
UNSUPPORTED = (
    "end_to_end rests on state and value alone: without recorded citations, and texts and labelled "
    "evidence to check them by, nobody knows whether answers are supported"
)
"""What people are told where support could not be checked."""


def said(inputs: Inputs, column: str) -> pa.Array | None:
    """The state that a trace ends in (``final``, where recorded) or proposes; None without any."""
    state = inputs.part(column, "state")
    if state is None and column == "final":
        return inputs.part("proposed", "state")
    return state


def value_of(inputs: Inputs, column: str) -> pa.Array | None:
    """The value that goes with `said`."""
    if inputs.part(column, "state") is None and column == "final":
        column = "proposed"
    return inputs.part(column, "value")


def same(left: pa.Array | None, right: pa.Array | None, n: int) -> Any:
    """(n,), where two texts are equal; two nulls are, and so is a null with no column at all."""
    if left is None or right is None:
        one = right if left is None else left
        return np.ones(n, np.bool_) if one is None else np.asarray(one.is_null())
    both = pc.equal(left.cast(pa.large_string()), right.cast(pa.large_string()))
    equal = np.asarray(both.fill_null(False)).astype(np.bool_)
    return equal | (np.asarray(left.is_null()) & np.asarray(right.is_null()))


def outcome(inputs: Inputs, column: str) -> tuple[Any, Any] | None:
    """Whether state and value are the expected ones, and where both sides are known."""
    state, wanted = said(inputs, column), inputs.case("expected_state")
    if state is None or wanted is None:
        return None
    right = same(state, wanted, inputs.n)
    if inputs.has_case("expected_value"):
        right &= same(value_of(inputs, column), inputs.case("expected_value"), inputs.n)
    return right, np.asarray(state.is_valid()) | inputs.absent


def against(inputs: Inputs, column: str) -> Column:
    """State and value of a trace against its case's; what is answered need not be supported."""
    found = outcome(inputs, column)
    if found is None:
        return missing(inputs, NO_COLUMN)
    right, known = found
    wanted = inputs.case("expected_state")
    assert wanted is not None
    unlabelled = np.asarray(wanted.is_null())
    states = inputs.states(known)
    states[unlabelled & (states == schema.OK)] = schema.MISSING
    over = (right & ~inputs.absent).astype(np.float64)
    return Column(over, np.ones(inputs.n), states)


def fully_supported(inputs: Inputs) -> tuple[Any, Any]:
    """(n,) int8: at least one citation, every one supports, and together they cover the answer.

    Beside it (n,) int8, the state of a ranking where that is open: disputed or failed as the
    verdicts are, else missing.

    A verdict on a citation or a claim settles it. Without one the rule does where it says yes, or
    where the suite declares that answers are extracts (``extractive = true``): a paraphrase, or a
    chunk that nobody labelled, is otherwise open, and neither right nor wrong.
    """
    given, claims = cited(inputs), claims_of(inputs)
    strict = bool(inputs.settings.get("extractive"))
    rule = support.supports(inputs)
    placed = support.located(inputs)
    said_so, _ = pair_verdicts(inputs, given)
    by_rule = (rule == support.YES) | strict
    one = np.where(by_rule, rule, np.where(placed == support.NO, support.NO, support.UNKNOWN))
    one = np.where((said_so == kernel.YES) & (placed != support.NO), support.YES, one)
    one = np.where(said_so > kernel.YES, support.NO, one)
    told, _ = claim_support(inputs)
    each = np.where(told == kernel.YES, support.YES, support.UNKNOWN)
    each = np.where((told > kernel.YES) & claims.factual, support.NO, each)
    each = np.where(claims.factual, each, support.YES)
    stated = np.bincount(claims.owner[claims.factual], minlength=inputs.n) > 0
    by_claim = np.where(stated, support.every(claims.offsets, each), support.UNKNOWN)
    covered = support.covered(inputs)
    whole = np.where((covered == support.YES) | strict, covered, by_claim)
    some = np.where(given.counts > 0, support.YES, support.NO)
    told = np.where(claims.factual, told, np.int8(kernel.MISSING))
    states = np.maximum(
        worst_state(given.owner, said_so, inputs.n), worst_state(claims.owner, told, inputs.n)
    )
    held = support.all_of(some, support.every(given.offsets, one), whole)
    return held, np.maximum(states, np.int8(schema.MISSING))


def end_to_end(inputs: Inputs, measure: Measure) -> Column:
    """State and value after the support gate; what is answered must be supported as well."""
    found = against(inputs, "final")
    if not support.can_be_checked(inputs):
        inputs.warnings.append(UNSUPPORTED)
        return found
    answered = support.answered(inputs, said(inputs, "final")) & (found.over > 0)
    held, states = fully_supported(inputs)
    open_ = answered & ((held == support.UNKNOWN) | ~cited(inputs).present)
    found.over[answered & (held == support.NO)] = 0.0
    open_ &= found.states == schema.OK
    found.states[open_] = states[open_]
    for state, word in (
        (schema.MISSING, _NOT_CHECKED), (schema.DISPUTED, _NOT_SETTLED), (schema.FAILED, _FAILED),
    ):  # fmt: skip
        if (found.states[open_] == state).any():
            found.why = {**found.why, state: word}
    return found


def task(inputs: Inputs, measure: Measure) -> Column:
    """State and value of the proposal, before the gate."""
    return against(inputs, "proposed")


def abstained(inputs: Inputs, measure: Measure) -> Column:
    """Abstentions among the cases that are to be abstained from."""
    found = against(inputs, "final")
    state, wanted = said(inputs, "final"), inputs.case("expected_state")
    if state is None or wanted is None:
        return found
    silent = np.asarray(pc.equal(state, "abstain").fill_null(False)).astype(np.bool_)
    other = np.asarray(pc.not_equal(wanted, "abstain").fill_null(False)).astype(np.bool_)
    states = np.where(other, np.int8(schema.NA), found.states)
    return Column(
        silent.astype(np.float64), found.under, states, {**found.why, schema.NA: _NOT_EXPECTED}
    )


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "end_to_end": end_to_end, "generation.task": task, "abstention.correct": abstained,
}  # fmt: skip
"""How each measure of this layer is worked out."""
