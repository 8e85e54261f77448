"""Citations of a trace as conditions: none fabricated, none invalid; read off the chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ragcore.measures.chain import chain_of, row_of
from ragcore.measures.cited import cited
from ragcore.measures.inputs import Inputs
from ragcore.measures.outcome_values import said
from ragcore.measures.shown import shown_of
from ragcore.measures.surfaced import Check, unchecked
from ragcore_kernels.citations import NO
from ragcore_kernels.layout import I64

_HELD_BACK = ("abstain", "fail_closed", "escalate")
_WRONG = (
    "", "not in the corpus", "not there for the case", "another version or document",
    "the quote is not there",
)  # fmt: skip


def fabricated(inputs: Inputs) -> Check:
    """A citation, as emitted, of a unit that was not in the context."""
    name, title = "fabricated", "fabricated citation"
    for column in ("citations", "context"):
        if not inputs.has_trace(column):
            return unchecked(inputs, name, title, f"the run records no {column}")
    given = cited(inputs)
    checked = given.present & shown_of(inputs).recorded
    return _of_citations(inputs, name, title, checked, given.shown == NO, lambda at: "")


def invalid(inputs: Inputs) -> Check:
    """A citation of no unit that is there, of another version, or whose quote is not there."""
    name, title = "invalid", "invalid citation"
    if not inputs.has_trace("citations"):
        return unchecked(inputs, name, title, "the run records no citations")
    if inputs.shared.chunks is None:
        return unchecked(inputs, name, title, "the suite has no chunks to look citations up in")
    wrong = faults(inputs)
    return _of_citations(
        inputs, name, title, cited(inputs).present, wrong > 0,
        lambda at: f" ({_WRONG[int(wrong[at])]})",
    )  # fmt: skip


def faults(inputs: Inputs) -> I64:
    """(n_citations,), what is wrong with each, whatever claim it is for; 0 for nothing.

    1 no such unit; 2 deleted, or not in the case's snapshot; 3 of another version or document;
    4 its quote or its place is not there. The first of these counts. All 0 without the suite's
    chunks.
    """

    def make() -> I64:
        given, chunks = cited(inputs), inputs.shared.chunks
        if chunks is None:
            return np.zeros(len(given), np.int64)
        chain, row = chain_of(inputs), row_of(inputs, given)
        snapshot = chunks.snapshot_codes(inputs.case("snapshot"), inputs.n)
        return np.select(
            [
                row < 0, ~chunks.living(row, snapshot[given.owner]), chain.exists == NO,
                (chain.stages["quote"] == NO) | ~given.placed,
            ],
            range(1, len(_WRONG)), 0,
        ).astype(np.int64)  # fmt: skip

    return inputs.once("citation faults", make)


def _of_citations(
    inputs: Inputs, name: str, title: str, checked: Any, flags: Any, said_of: Callable[[int], str]
) -> Check:
    lists = inputs.trace_lists("citations")
    broken = np.zeros(inputs.n, np.bool_)
    broken[lists.owners[flags]] = True
    ids = lists.field("id")

    def what(ranking: int) -> str:
        own = range(int(lists.offsets[ranking]), int(lists.offsets[ranking + 1]))
        named = [
            f"{None if ids is None else ids[at].as_py()!r}{said_of(at)}" for at in own if flags[at]
        ]
        state = said(inputs, "final")
        word = None if state is None else state[ranking].as_py()
        late = f"; withheld, as the trace ends in {word!r}" if word in _HELD_BACK else ""
        return ", ".join(dict.fromkeys(named)) + late

    return Check(name, title, checked, broken & checked, "", what)
