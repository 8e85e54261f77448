"""Values of the claim measures, from one reading of the matrices of verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore.errors import UsageError
from ragcore.measures import grounded_values, nuggets_values
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import Column, Inputs
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
)
from ragcore.threads import run_split
from ragcore_kernels import claims as kernel
from ragcore_kernels.layout import F64

NO_CLAIMS, NO_REFERENCE, NOTHING_RECALLED, NOTHING_SHOWN = (
    "no-claims", "no-reference-claims", "nothing-recalled", "nothing-shown",
)  # fmt: skip
"""Reasons for na."""
_N, _M, _A, _Y = "chunk_entails", "chunk_entails_reference", "correct", "covered"


@dataclass
class Tally:
    """Counts of every ranking.

    Attributes
    ----------
    counts : (n, `kernel.FIELDS`) int32.
    useful : flat over the context, int8, chunks that entail a reference claim.
    """

    counts: Any
    useful: Any

    def of(self, field: int) -> F64:
        """(n,) float64, one count."""
        return self.counts[:, field].astype(np.float64)


def tally(inputs: Inputs, matrices: bool = True) -> Tally:
    """Claims counted by what reference and chunks say; without `matrices` nothing of chunks."""

    def make() -> Tally:
        answers, references = answer_claims(inputs).offsets, reference_claims(inputs).offsets
        none = np.zeros(inputs.n + 1, np.int64)
        correct, covered = (cells_of(inputs, name).verdict for name in (_A, _Y))
        shown, by_answer, by_reference = none, none, none
        entails = entails_reference = correct[:0]
        if matrices:
            shown = shown_of(inputs).offsets
            ours, theirs = cells_of(inputs, _N), cells_of(inputs, _M)
            by_answer, by_reference = ours.offsets, theirs.offsets
            entails, entails_reference = ours.verdict, theirs.verdict
        useful = np.empty(int(shown[-1]), np.int8)
        counts = np.empty((inputs.n, kernel.FIELDS), np.int32)

        def work(begin: int, end: int) -> None:
            kernel.tally(
                begin, end, answers, references, shown, by_answer, by_reference, correct,
                covered, entails, entails_reference, useful, counts,
            )  # fmt: skip

        run_split(work, inputs.n, inputs.lanes)
        return Tally(counts, useful)

    return inputs.once(f"tally {matrices}", make)


def chosen(measure: Measure, name: str, known: tuple[str, ...]) -> str:
    """A parameter that is one of a few words.

    Raises
    ------
    UsageError
        If it is another.
    """
    value = measure.params[name]
    if value not in known:
        raise UsageError(
            f"measure {measure.text!r}: {name}={value!r}", f"one of {', '.join(known)}"
        )
    return value


def filled(measure: Measure, found: Column, empty: Any) -> Column:
    """With ``zero_division=ragchecker`` 0 where `empty`, (n,) bool, as RAGChecker has it."""
    if chosen(measure, "zero_division", ("na", "ragchecker")) == "ragchecker":
        here = empty | ~(found.under > 0)
        found.over = np.where(here, 0.0, found.over)
        found.under = np.where(here, 1.0, found.under)
    return found


@dataclass(frozen=True)
class _Share:
    """One share: the field counted, what it is a share of, and all that it needs."""

    over: int
    under: str | int
    needs: tuple[str, ...]
    na: str
    empty: tuple[str, ...] = ()


_NOISE = (ANSWER, REFERENCE, CONTEXT, _N, _M, _A)
_SHARES = {
    "claims.precision": _Share(kernel.CORRECT, ANSWER, (ANSWER, _A), NO_CLAIMS),
    "claims.recall": _Share(kernel.COVERED, REFERENCE, (REFERENCE, _Y), NO_REFERENCE),
    "claims.context_recall": _Share(
        kernel.RECALLED, REFERENCE, (REFERENCE, CONTEXT, _M), NO_REFERENCE
    ),
    "context.utilization": _Share(
        kernel.USED, kernel.RECALLED, (REFERENCE, CONTEXT, _M, _Y), NOTHING_RECALLED
    ),
    "noise.relevant": _Share(
        kernel.NOISE_RELEVANT, ANSWER, _NOISE, NO_CLAIMS, (CONTEXT, REFERENCE)
    ),
    "noise.irrelevant": _Share(
        kernel.NOISE_IRRELEVANT, ANSWER, _NOISE, NO_CLAIMS, (CONTEXT, REFERENCE)
    ),
    "hallucination": _Share(
        kernel.HALLUCINATED, ANSWER, (ANSWER, CONTEXT, _N, _A), NO_CLAIMS, (CONTEXT,)
    ),
    "self_knowledge": _Share(
        kernel.SELF_KNOWLEDGE, ANSWER, (ANSWER, CONTEXT, _N, _A), NO_CLAIMS, (CONTEXT,)
    ),
    "faithfulness": _Share(kernel.FAITHFUL, ANSWER, (ANSWER, CONTEXT, _N), NO_CLAIMS, (CONTEXT,)),
}
"""Shares that are counts over counts; `empty` names what RAGChecker writes 0 without."""


def sizes(inputs: Inputs, what: str) -> F64:
    """(n,) float64, answer claims, reference claims, or chunks of the context."""
    if what == ANSWER:
        return counts_of(answer_claims(inputs).offsets)
    if what == REFERENCE:
        return counts_of(reference_claims(inputs).offsets)
    return counts_of(shown_of(inputs).offsets)


def _share(inputs: Inputs, measure: Measure) -> Column:
    share = _SHARES[measure.definition.name]
    counts = tally(inputs, CONTEXT in share.needs)
    under = share.under
    below = sizes(inputs, under) if isinstance(under, str) else counts.of(under)
    found = column(inputs, counts.of(share.over), below, share.needs, share.na)
    empty = np.zeros(inputs.n, np.bool_)
    for what in share.empty:
        empty |= sizes(inputs, what) == 0
    return filled(measure, found, empty)


def f1(inputs: Inputs, measure: Measure) -> Column:
    """The harmonic mean of precision and recall, as one quotient of whole numbers."""
    counts = tally(inputs, False)
    over, under = grounded_values.harmonic(
        counts.of(kernel.CORRECT), sizes(inputs, ANSWER), counts.of(kernel.COVERED),
        sizes(inputs, REFERENCE),
    )  # fmt: skip
    needs = (ANSWER, REFERENCE, _A, _Y)
    na = NO_CLAIMS if (sizes(inputs, ANSWER) == 0).any() else NO_REFERENCE
    return filled(measure, column(inputs, over, under, needs, na), under == 0)


def contradicted(inputs: Inputs, measure: Measure) -> Column:
    """Answer claims that the reference, or the context, contradicts."""
    if chosen(measure, "by", ("reference", "context")) == "context":
        return grounded_values.contradicted(inputs)
    over = tally(inputs, False).of(kernel.CONTRADICTED)
    return column(inputs, over, sizes(inputs, ANSWER), (ANSWER, _A), NO_CLAIMS)


def completeness(inputs: Inputs, measure: Measure) -> Column:
    """Context utilization over the required claims."""
    counts = grounded_values.marked(inputs, "required", True)
    needs = (REFERENCE, CONTEXT, _M, _Y)
    found = column(inputs, counts[:, 3], counts[:, 2], needs, NOTHING_RECALLED)
    return filled(measure, found, np.zeros(inputs.n, np.bool_))


def precision(inputs: Inputs, measure: Measure) -> Column:
    """Context precision: chunks that entail a reference claim."""
    useful, needs, empty = _useful(inputs, measure)
    owner = np.repeat(np.arange(inputs.n), np.diff(shown_of(inputs).offsets))
    over = np.bincount(owner[useful > 0], minlength=inputs.n)
    under = np.where(empty, 0.0, sizes(inputs, CONTEXT))
    return filled(measure, column(inputs, over, under, needs, NOTHING_SHOWN), empty)


def precision_ap(inputs: Inputs, measure: Measure) -> Column:
    """Average precision of the context over the chunks that are useful."""
    useful, needs, empty = _useful(inputs, measure)
    over, under = np.zeros(inputs.n), np.zeros(inputs.n)
    kernel.average_precision(0, inputs.n, shown_of(inputs).offsets, useful, over, under)
    under[empty] = 0.0
    return filled(measure, column(inputs, over, under, needs, NOTHING_SHOWN), empty)


def _useful(inputs: Inputs, measure: Measure) -> tuple[Any, tuple[str, ...], Any]:
    """Flags of the chunks shown; what they need; rankings without any claim to be useful for."""
    if chosen(measure, "by", ("claims", "relevance")) == "relevance":
        useful = cells_of(inputs, "relevance").yes.astype(np.int8)
        return useful, (CONTEXT, "relevance"), np.zeros(inputs.n, np.bool_)
    needs = (REFERENCE, CONTEXT, _M)
    return tally(inputs).useful, needs, sizes(inputs, REFERENCE) == 0


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    **dict.fromkeys(_SHARES, _share), "claims.f1": f1, "claims.contradicted": contradicted,
    "completeness": completeness, **grounded_values.VALUES, **nuggets_values.VALUES,
}  # fmt: skip
"""How each measure of this layer is worked out."""
