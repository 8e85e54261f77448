"""Values of the measures of the corpus and of the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.evidence import CONFLICTING, SUPPORTING, Evidence
from ragcore.lists import joined, lists_of, no_lists, plain
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import (
    NO_COLUMN,
    NO_LABEL,
    NOT_REQUIRED,
    Column,
    Inputs,
    Shared,
    missing,
)  # fmt: skip
from ragcore.measures.permitted import may_see
from ragcore.measures.reached import items_of, shares
from ragcore.measures.required import says_required
from ragcore.placing import BY_QUOTE, GONE, HELD, MOVED, OTHER_VERSION, meeting, together
from ragcore.units import Chunks
from ragcore_kernels.layout import I64

_NO_QUOTE, _NOTHING_PROTECTED = "no-quote", "nothing-protected"


def coverage(inputs: Inputs, measure: Measure) -> Column:
    """Needed evidence that is in the snapshot, as it must be."""
    evidence, chunks = inputs.evidence, inputs.shared.chunks
    if evidence is None or chunks is None:
        return missing(inputs, NO_COLUMN)
    if not says_required(evidence):
        return missing(inputs, NO_LABEL)
    there = inputs.once("in corpus", lambda: available(inputs.shared, evidence, chunks))
    for name in _unknown_snapshots(inputs.shared, chunks):
        inputs.warnings.append(
            f"snapshot {name!r} is none that the chunks name: every chunk counts as in it"
        )
    lost = evidence.stale & (evidence.fate != OTHER_VERSION)
    return _share(inputs, evidence, evidence.needed & evidence.first, there, lost, NOT_REQUIRED)


def _share(
    inputs: Inputs, evidence: Evidence, counted: Any, hit: Any, lost: Any, reason: str
) -> Column:
    """Items by case, whatever the trace says; a case of nothing but `lost` ones is disputed."""
    items = items_of(inputs, evidence)
    over, under = shares(items.offsets, (counted & ~lost)[items.at], hit[items.at])
    _, gone = shares(items.offsets, (counted & lost)[items.at], hit[items.at])
    # A label that went stale disputes other measures; here it is what is looked for.
    marked = inputs.case_coded("status", ("disputed", "stale")) >= 0
    states = np.where(marked, np.int8(schema.DISPUTED), np.int8(schema.OK))
    states[(under == 0) & (gone > 0)] = schema.DISPUTED
    return Column(over, under, states, {schema.NA: reason})


def available(shared: Shared, evidence: Evidence, chunks: Chunks) -> Any:
    """(n_items,), items of which the case's snapshot has a chunk that its principals may see."""
    assert shared.cases is not None
    cases = shared.cases
    covers, units = _places(evidence)
    snapshot = None if "snapshot" not in cases.column_names else joined(cases["snapshot"])
    of_case = chunks.snapshot_codes(snapshot, len(cases))
    known = chunks.living(units, of_case[np.repeat(evidence.cases, np.diff(covers))])
    if chunks.has("acl"):
        named = "principals" in cases.column_names
        held = lists_of(cases["principals"]) if named else no_lists(len(cases))
        known &= may_see(chunks.lists("acl"), held, covers[evidence.offsets], units)
    total = np.concatenate([[0], np.cumsum(known)])
    there = total[covers[1:]] > total[covers[:-1]]
    return there & ~evidence.absent & (evidence.fate != OTHER_VERSION)


def _places(evidence: Evidence) -> tuple[I64, I64]:
    """Chunks of every item; of one that none contains whole, those of its document."""
    layout, wanted = evidence.layout, evidence.wanted
    bare = (np.diff(evidence.covers) == 0) & (evidence.fate == HELD)
    if layout is None or wanted is None or not bare.any():
        return evidence.covers, evidence.units
    n = bare.size
    one, each = np.ones(n, np.int64), np.ones(len(layout.of), np.int64)
    met = meeting(layout, wanted, bare, one - 1, one, one, each - 1, each)
    return together(n, [(~bare, evidence.covers, evidence.units), (bare, *met)])


def _unknown_snapshots(shared: Shared, chunks: Chunks) -> list[str]:
    assert shared.cases is not None
    if "snapshot" not in shared.cases.column_names or not chunks.snapshots:
        return []
    names = plain(shared.cases["snapshot"]).unique().drop_null().to_pylist()
    return [name for name in names if name not in chunks.snapshots]


def qualifier_preserved(inputs: Inputs, measure: Measure) -> Column:
    """Needed quotes that one chunk contains."""
    evidence = inputs.evidence
    if evidence is None or not evidence.looked.any():
        return missing(inputs, NO_COLUMN)
    which = evidence.needed
    if not says_required(evidence):
        which = np.isin(evidence.role, (SUPPORTING, CONFLICTING)) & (evidence.relevance >= 1)
    quoted = evidence.looked & evidence.first & ~evidence.absent
    counted = which & quoted & np.isin(evidence.fate, (HELD, GONE, MOVED))
    whole = (evidence.fate == HELD) & _by_quote(evidence)
    nothing = np.zeros(counted.size, np.bool_)
    return _share(inputs, evidence, counted, whole, nothing, _NO_QUOTE)


def _by_quote(evidence: Evidence) -> Any:
    """(n_items,), items whose quote a chunk was found to contain."""
    return (evidence.way == BY_QUOTE) & (np.diff(evidence.covers) > 0)


def protected(inputs: Inputs, measure: Measure) -> Column:
    """Facts of the question that the query keeps."""
    question, query = inputs.case("question"), inputs.trace("query")
    if question is None or query is None:
        return missing(inputs, NO_COLUMN)
    from ragcore.answers.facts import lost  # what no other measure needs

    both = np.asarray(question.is_valid()) & np.asarray(query.is_valid())
    states = inputs.states(both)
    over, under = np.zeros(inputs.n), np.zeros(inputs.n)
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    at = np.flatnonzero(both)
    texts = (column.take(pa.array(at)).to_pylist() for column in (question, query))
    for i, pair in zip(at.tolist(), zip(*texts, strict=True), strict=True):
        if pair not in seen:
            seen[pair] = lost(*pair)[:2]
        over[i], under[i] = seen[pair]
    return Column(over, under, states, {schema.NA: _NOTHING_PROTECTED})


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "corpus.coverage": coverage, "corpus.qualifier_preserved": qualifier_preserved,
    "query.protected": protected,
}  # fmt: skip
"""How each measure of this layer is worked out."""
