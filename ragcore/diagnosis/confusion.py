"""Expected against final states of a run: a count for every pair, and what is left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore import schema
from ragcore.measures.inputs import Inputs
from ragcore.measures.outcome_values import said

NOT_RECORDED, NOT_LABELLED = "not recorded", "not labelled"


def state_confusion(inputs: Inputs, own: Any) -> dict[str, dict[str, int]]:
    """Traces by expected state, then by the state that they end in; zeros left out.

    Parameters
    ----------
    inputs : of a run.
    own : (n,) bool, the traces to count.

    Returns
    -------
    Every trace is counted once: one without an expected state under `NOT_LABELLED`, one without
    a final state under `NOT_RECORDED`, or ``failed`` where it says `error`.
    """
    final, wanted = said(inputs, "final"), inputs.case("expected_state")
    ended = [None] * inputs.n if final is None else final.to_pylist()
    expected = [None] * inputs.n if wanted is None else wanted.to_pylist()
    out: dict[str, dict[str, int]] = {}
    for i in np.flatnonzero(own).tolist():
        row = out.setdefault(expected[i] or NOT_LABELLED, {})
        word = ended[i] or ("failed" if inputs.failed[i] else NOT_RECORDED)
        row[word] = row.get(word, 0) + 1
    order = [*schema.EXPECTED_STATES, NOT_LABELLED]
    return {name: out[name] for name in sorted(out, key=lambda n: _place(order, n))}


def _place(order: list[str], name: str) -> tuple[int, str]:
    return (order.index(name), "") if name in order else (len(order), name)
