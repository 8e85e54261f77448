"""Claims, the context, and verdicts on both: what the claim measures share, by ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.lists import Lists
from ragcore.measures.inputs import ERROR, LABEL, NO_COLUMN, NO_LABEL, NO_VERDICT, Column, Inputs
from ragcore.verdicts import Cells
from ragcore_kernels.layout import F64, I64

_REFUSED = schema.CONTEXT_STATES.index("budget_refused")
_NONE_FOUND = schema.CONTEXT_STATES.index("no_evidence")

ANSWER, REFERENCE, CONTEXT = "answer", "reference", "context"
"""What a value may need besides verdicts: claims of the answer, of the case; what was shown."""


@dataclass
class Shown:
    """What the generator was shown.

    Attributes
    ----------
    offsets, units : (n + 1,) and flat, codes of the chunks, in recorded order.
    recorded : (n,), whether it is known; of a refused budget, of no evidence found and of a case
        that the run lacks it is known to be nothing.
    at : flat, the item of ``trace_lists("context")`` behind each chunk.
    """

    offsets: I64
    units: I64
    recorded: Any
    at: I64


def refused(inputs: Inputs) -> Any:
    """(n,), rankings whose context did not fit the budget: nothing usable was shown."""
    return inputs.trace_coded("context_state", schema.CONTEXT_STATES) == _REFUSED


def shown_of(inputs: Inputs) -> Shown:
    """The usable context of every ranking: empty where the budget was refused."""

    def make() -> Shown:
        lists = inputs.trace_lists("context")
        units = inputs.units(lists)
        off = refused(inputs)
        none = inputs.trace_coded("context_state", schema.CONTEXT_STATES) == _NONE_FOUND
        known = lists.present | off | none | inputs.absent
        at = np.arange(units.size)
        if not (off & (lists.counts > 0)).any():
            return Shown(lists.offsets, units, known, at)
        at = np.flatnonzero(~off[lists.owners])
        counts = np.where(off, 0, lists.counts)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Shown(offsets, units[at], known, at)

    return inputs.once("usable context", make)


def answer_claims(inputs: Inputs) -> Lists:
    """The atomic claims of each proposal."""
    return inputs.trace_lists("claims")


def reference_claims(inputs: Inputs) -> Lists:
    """The reference claims of each ranking's case."""
    return inputs.case_lists("claims")


def silent(inputs: Inputs) -> Any:
    """(n,), rankings that are known to claim nothing: an empty list, or no trace at all."""
    claims = answer_claims(inputs)
    return (claims.present & (claims.counts == 0)) | inputs.absent


def cells_of(inputs: Inputs, relation: str) -> Cells:
    """Resolved verdicts of a relation: one a claim, or claims x chunks of the context.

    Of ``relevance`` one for each chunk of the context.
    """
    context = shown_of(inputs)
    if relation == "relevance":
        return inputs.verdicts.units(relation, context.offsets, context.units)
    own = reference_claims if relation in _OF_REFERENCE else answer_claims
    offsets = own(inputs).offsets
    if relation not in _MATRICES:
        return inputs.verdicts.claims(relation, offsets)
    return inputs.verdicts.pairs(relation, offsets, context.offsets, context.units)


_OF_REFERENCE = ("covered", "chunk_entails_reference")
_MATRICES = ("chunk_entails", "chunk_entails_reference")


def states_of(inputs: Inputs, *needs: str) -> Any:
    """(n,) int8, the worst state of all that a value needs: `ANSWER`, ..., or a relation.

    An answer without claims covers no reference claim, judged or not.
    """
    return np.maximum.reduce([_state(inputs, need) for need in needs])


def _state(inputs: Inputs, need: str) -> Any:
    def make() -> Any:
        if need == ANSWER:
            return inputs.states(answer_claims(inputs).present | inputs.absent)
        if need == REFERENCE:
            return inputs.states(reference_claims(inputs).present)
        if need == CONTEXT:
            return inputs.states(shown_of(inputs).recorded)
        found = cells_of(inputs, need).states()
        gone = found == schema.MISSING
        if need == "covered":
            found = np.where(gone & silent(inputs), np.int8(schema.OK), found)
        return np.where(gone & inputs.failed & (found > 0), np.int8(schema.FAILED), found)

    return inputs.once(f"state of {need}", make)


def column(
    inputs: Inputs, over: Any, under: Any, needs: tuple[str, ...], na: str, states: Any = None
) -> Column:
    """A measure from its parts, with states, reasons and rungs by what it needs.

    Parameters
    ----------
    over, under : (n,), numerator and denominator.
    needs : as for `states_of`.
    na : why it is na where the denominator is 0.
    states : (n,) int8, in place of those that `needs` give.
    """
    found = states_of(inputs, *needs) if states is None else states
    relations = [need for need in needs if need not in (ANSWER, REFERENCE, CONTEXT)]
    return Column(
        np.asarray(over, np.float64), np.asarray(under, np.float64), found,
        {schema.NA: na, **_reasons(inputs, needs)}, _rungs(inputs, relations),
    )  # fmt: skip


def _reasons(inputs: Inputs, needs: tuple[str, ...]) -> dict[int, str]:
    gone = NO_VERDICT
    if REFERENCE in needs and not inputs.has_case("claims"):
        gone = NO_LABEL
    for need, name in ((ANSWER, "claims"), (CONTEXT, "context")):
        if need in needs and not inputs.has_trace(name):
            gone = NO_COLUMN
    labels = bool((inputs.status == schema.DISPUTED).any())
    return {
        schema.MISSING: gone, schema.DISPUTED: LABEL if labels else "verdict-disputed",
        schema.FAILED: ERROR if inputs.failed.any() else "judge-error",
    }  # fmt: skip


def _rungs(inputs: Inputs, relations: list[str]) -> Any:
    if not relations:
        return None
    found = np.full(inputs.n, np.int8(127))
    for relation in relations:
        own = cells_of(inputs, relation).lowest()
        np.minimum(found, np.where(own < 0, np.int8(127), own), out=found)
    return np.where(found == 127, np.int8(-1), found)


def counts_of(offsets: I64) -> F64:
    """(n,) float64, how many each ranking has."""
    return np.diff(offsets).astype(np.float64)
