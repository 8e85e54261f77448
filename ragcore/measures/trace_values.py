"""Values of TRACe: sentences of the context that are relevant, used, both; adherence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.lists import integers
from ragcore.measures.definitions import Measure
from ragcore.measures.grounded_values import NO_CLAIMS, ground
from ragcore.measures.inputs import NO_VERDICT, Column, Inputs
from ragcore.measures.shown import (
    ANSWER,
    CONTEXT,
    answer_claims,
    column,
    counts_of,
    shown_of,
    states_of,
)
from ragcore.threads import run_split
from ragcore.verdicts import STATE_OF, Cells
from ragcore_kernels import grounded, verdicts
from ragcore_kernels import spans as kernel
from ragcore_kernels.layout import I64

RELEVANT, USED = "sentence_relevant", "sentence_used"
_TOKENS = "sentence_tokens"
_SUMS = {"trace.relevance": (1, 0), "trace.utilization": (2, 0), "trace.completeness": (3, 1)}


def _sums(inputs: Inputs) -> tuple[I64, Any]:
    """(n, 4) lengths of all, relevant, used, and both; (n, 2) states of the two relations."""

    def make() -> tuple[I64, Any]:
        context = shown_of(inputs)
        width = np.diff(context.offsets)
        recorded = _recorded(inputs)
        most = max(_highest(inputs), int(recorded[1].max(initial=0)))
        claims = np.arange(inputs.n + 1, dtype=np.int64) * most
        relevant, used = (
            inputs.verdicts.pairs(name, claims, context.offsets, context.units)
            for name in (RELEVANT, USED)
        )
        lengths = _lengths(inputs, recorded, relevant, used, most, width)
        sums, codes = np.empty((inputs.n, 4), np.int64), np.empty((inputs.n, 2), np.int8)

        def work(begin: int, end: int) -> None:
            kernel.sentences(
                begin, end, relevant.offsets, relevant.verdict, used.verdict, lengths, sums, codes
            )

        run_split(work, inputs.n, inputs.lanes)
        states = np.zeros(codes.shape, np.int8)
        for reason, state in STATE_OF.items():
            states[codes == reason] = state
        bare = (width > 0) & (sums[:, 0] == 0)  # shown, and not one sentence known
        states[bare] = schema.MISSING
        return sums, states

    return inputs.once("context sentences", make)


def _highest(inputs: Inputs) -> int:
    """Sentences a chunk has at most, by the verdicts."""
    given = inputs.shared.judgments
    if given is None:
        return 0
    wanted = [schema.RELATIONS.index(name) for name in (RELEVANT, USED)]
    return int(given.claim[np.isin(given.relation, wanted)].max(initial=-1)) + 1


def _recorded(inputs: Inputs) -> tuple[Any, I64]:
    """Flat over the context: rows of chunks whose sentences are recorded (or -1), and how many."""
    context, chunks = shown_of(inputs), inputs.shared.chunks
    none = np.full(context.units.size, -1, np.int64)
    if chunks is None or _TOKENS not in chunks.table.column_names:
        return none, np.zeros(none.size, np.int64)
    lists = chunks.lists(_TOKENS)
    row = np.where((context.units >= 0) & (context.units < len(chunks)), context.units, -1)
    row = np.where((row >= 0) & lists.present[row], row, -1)
    return row, np.where(row >= 0, lists.counts[row], 0)


def _lengths(
    inputs: Inputs, recorded: tuple[Any, I64], relevant: Cells, used: Cells, most: int, width: I64
) -> I64:
    """Length of the sentence of each cell; 0 where the chunk has no such sentence.

    In tokens where every chunk of the ranking has them recorded, else 1 up to the last sentence
    of each chunk that any verdict speaks of.
    """
    context = shown_of(inputs)
    rows, counts = recorded
    n_cells = int(relevant.offsets[-1])
    owner = np.repeat(np.arange(inputs.n), np.diff(relevant.offsets))
    inside = np.arange(n_cells) - relevant.offsets[owner]
    wide = np.maximum(width[owner], 1)
    sentence, place = inside // wide, context.offsets[owner] + inside % wide
    missing = verdicts.MISSING
    said = (relevant.verdict != missing) | (used.verdict != missing)
    last = np.zeros(context.units.size, np.int64)
    np.maximum.at(last, place[said], sentence[said] + 1)
    out = (sentence < last[place]).astype(np.int64)
    full = np.bincount(
        np.repeat(np.arange(inputs.n), width)[rows < 0], minlength=inputs.n
    ) == 0  # fmt: skip
    mine = np.flatnonzero(full[owner])
    if mine.size and inputs.shared.chunks is not None and (rows >= 0).any():
        lists = inputs.shared.chunks.lists(_TOKENS)
        tokens = integers(lists.items, len(lists.items), 0)
        has = sentence[mine] < counts[place[mine]]
        at = lists.offsets[np.where(has, rows[place[mine]], 0)] + sentence[mine]
        out[mine] = np.where(has, tokens[np.where(has, at, 0)] if tokens.size else 0, 0)
    return out


def trace(inputs: Inputs, measure: Measure) -> Column:
    """One share of the length of the context."""
    over, under = _SUMS[measure.definition.name]
    sums, judged = _sums(inputs)
    both = {"trace.relevance": judged[:, 0], "trace.utilization": judged[:, 1]}
    own = both.get(measure.definition.name, judged.max(axis=1))
    states = np.maximum(states_of(inputs, CONTEXT), own)
    found = column(
        inputs, sums[:, over], sums[:, under], (CONTEXT,),
        "nothing-relevant" if under else "nothing-shown", states,
    )  # fmt: skip
    if inputs.has_trace("context"):
        found.why[schema.MISSING] = NO_VERDICT
    return found


def adherence(inputs: Inputs, measure: Measure) -> Column:
    """Whether the context supports every claim of the answer."""
    claims = counts_of(answer_claims(inputs).offsets)
    all_of = ground(inputs)[:, grounded.SUPPORTED] == claims
    return column(inputs, all_of, claims > 0, (ANSWER, "entailed"), NO_CLAIMS)


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    **dict.fromkeys(_SUMS, trace), "trace.adherence": adherence,
}  # fmt: skip
"""How each of these measures is worked out."""
