"""The chain that a citation passes, stage by stage: each says yes, no, or that nobody can tell.

A pair of claim and citation that fails a stage gets no further. One that could not be checked
goes on, and is counted as unchecked there: it has not passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.evidence import CONFLICTING, SUPPORTING
from ragcore.formats.compute import pc
from ragcore.lists import integers, plain, rows_of
from ragcore.measures.cited import Cited, cited, documents_of, own, spaced, stated, texts_of
from ragcore.measures.inputs import Inputs
from ragcore.measures.permitted import may_see
from ragcore.units import FOREVER
from ragcore_kernels import citations as kernel
from ragcore_kernels.citations import NO, NO_PLACE, UNKNOWN, WHOLE_END, YES
from ragcore_kernels.copying import copy_ids
from ragcore_kernels.layout import I64

STAGES = (
    "well_formed", "supplied", "version", "quote", "accessible", "in_scope", "span_inside",
)  # fmt: skip
"""In order; the last one, whether it entails the claim, takes verdicts: `measures.cites`."""


@dataclass
class Spans:
    """What each citation cites, as text and as a place.

    Attributes
    ----------
    texts : (n_pairs,), the cited text: the unit's, else the quote; empty where neither is known.
    usable : (n_pairs,) int8, whether it is known.
    exact : (n_pairs,) int8, whether the place is in the unit's text and holds the quote.
    low, high : (n_pairs,), code points in the document; -1 where unknown.
    whole : (n_pairs,) int8, whether the whole unit is cited.
    """

    texts: pa.Array
    usable: Any
    exact: Any
    low: I64
    high: I64
    whole: Any


@dataclass
class Chain:
    """What every stage says of every pair, -1, 0 or 1, by the names of `STAGES`.

    Attributes
    ----------
    stages : by name, (n_pairs,) int8.
    exists : (n_pairs,) int8, as `version`, but one that is not said is no reproach.
    scoped : (n_pairs,) int8, as `in_scope`, but passed where the case declares no scope.
    spans : what is cited.
    """

    stages: dict[str, Any]
    exists: Any
    scoped: Any
    spans: Spans

    def reached(self, name: str) -> Any:
        """(n_pairs,), pairs that failed no stage before `name`; `""` for all stages."""
        alive = np.ones(self.exists.size, np.bool_)
        for stage in STAGES:
            if stage == name:
                break
            alive &= self.stages[stage] != NO
        return alive


def chain_of(inputs: Inputs) -> Chain:
    """The chain of every pair of a run."""
    return inputs.once("chain", lambda: _chain(inputs))


def spans_of(inputs: Inputs) -> Spans:
    """What every citation cites."""
    return inputs.once("cited spans", lambda: _spans(inputs, cited(inputs)))


def _chain(inputs: Inputs) -> Chain:
    given, spans = cited(inputs), spans_of(inputs)
    exists, version = _versions(inputs, given)
    scope, declared = _scope(inputs, given)
    stages = {
        "well_formed": given.formed, "supplied": given.shown, "version": version,
        "quote": spans.exact, "accessible": _accessible(inputs, given),
        "in_scope": np.where(declared, scope, UNKNOWN).astype(np.int8),
        "span_inside": _inside(inputs, given, spans),
    }  # fmt: skip
    return Chain(stages, exists, np.where(declared, scope, YES).astype(np.int8), spans)


def row_of(inputs: Inputs, given: Cited) -> I64:
    """(n_pairs,), row of each cited unit in the suite's chunks; -1 where it is none of them."""
    n = inputs.shared.vocabulary.n_chunks
    return np.where(given.unit < n, given.unit, -1)


def _versions(inputs: Inputs, given: Cited) -> tuple[Any, Any]:
    """Whether the unit is in the case's snapshot, and whether in the version that is cited."""
    chunks, row = inputs.shared.chunks, row_of(inputs, given)
    n = len(given)
    if chunks is None:
        return np.full(n, UNKNOWN, np.int8), np.full(n, UNKNOWN, np.int8)
    snapshot = chunks.snapshot_codes(inputs.case("snapshot"), inputs.n)
    there = chunks.living(row, snapshot[given.owner])
    code, names = documents_of(chunks)
    ids = given.doc_id
    if ids is not None and not pa.types.is_null(ids.type):
        said = np.asarray(ids.is_valid())
        cited_code = integers(pc.index_in(plain(ids).cast(pa.large_string()), names), n, -2)
        there &= ~said | (cited_code == np.append(code, -1)[row])
    same, known = _same(chunks.column("doc_version"), row, given.doc_version, n)
    exists = np.where(there & (same | ~known), YES, NO).astype(np.int8)
    return exists, np.where((exists == YES) & ~known, UNKNOWN, exists).astype(np.int8)


def _same(column: pa.Array | None, row: I64, said: pa.Array | None, n: int) -> tuple[Any, Any]:
    """Whether a text of the unit is what the citation says, and whether both are known."""
    if column is None or said is None or pa.types.is_null(said.type):
        return np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    has = _taken(column, row)
    equal = pc.equal(has, plain(said).cast(pa.large_string()))
    known = np.asarray(equal.is_valid())
    return np.asarray(equal.fill_null(False)).astype(np.bool_), known


def _taken(column: pa.Array, row: I64) -> pa.Array:
    return plain(column).cast(pa.large_string()).take(rows_of(row))


def _spans(inputs: Inputs, given: Cited) -> Spans:
    """Places and quotes held against the texts of the trace's own language."""
    n, row = len(given), row_of(inputs, given)
    quotes = texts_of(given.quote, n)
    said = stated(given.quote, n).astype(np.int8)
    exact = np.full(n, UNKNOWN, np.int8)
    low, high = np.zeros((n, 2), np.int64), np.zeros((n, 2), np.int64)
    places = np.zeros((n, 2), np.int64)
    places[:, 0] = quotes.address + quotes.offsets[:-1]
    places[:, 1] = np.where(said, np.diff(quotes.offsets), 0)
    head, keep = _heads(inputs, row), []
    first = np.where(given.first == NO_PLACE, NO_PLACE, given.first - head)
    first = np.where((given.first != NO_PLACE) & (first < 0), NO_PLACE - 1, first)
    last = np.where(given.last == NO_PLACE, NO_PLACE, given.last - head)
    for column, of in _by_language(inputs, given.owner):
        has = np.asarray(column.is_valid())
        wanted = of & (row >= 0) & np.append(has, False)[row] & given.placed
        texts = texts_of(column, len(column))
        keep.append(texts)
        kernel.locate(
            0, n, wanted.astype(np.int8), own(row), own(first), own(last), said,
            texts.offsets, texts.address, quotes.offsets, quotes.address, exact, low, high,
        )  # fmt: skip
        found = wanted & (exact == YES)
        places[found, 0] = texts.address + low[found, 0]
        places[found, 1] = high[found, 0] - low[found, 0]
    usable = ((exact == YES) | (said != 0)).astype(np.int8)
    whole = ((given.first == NO_PLACE) & (said == 0) & (row >= 0)).astype(np.int8)
    found = exact == YES
    start = np.where(found, head + low[:, 1], np.where(whole, 0, given.first))
    stop = np.where(found, head + high[:, 1], np.where(whole, WHOLE_END, given.last))
    return Spans(_cut(places), usable, exact, start, stop, whole)


def _heads(inputs: Inputs, row: I64) -> I64:
    """Code point of the document at which each unit begins."""
    chunks = inputs.shared.chunks
    if chunks is None:
        return np.zeros(row.size, np.int64)
    return np.append(np.maximum(chunks.integers("start"), 0), 0)[row]


def _by_language(inputs: Inputs, owner: I64) -> list[tuple[pa.Array, Any]]:
    """Columns of texts, each with the pairs whose trace is in its language."""
    chunks = inputs.shared.chunks
    if chunks is None or not owner.size:
        return []
    langs = list(dict.fromkeys(inputs.langs))
    other = {lang for lang in langs if lang and f"text_{lang}" in chunks.table.column_names}
    usual = chunks.texts()
    if not other:
        return [] if usual is None else [(usual, np.ones(owner.size, np.bool_))]
    of = np.array(inputs.langs, object)
    out = [(chunks.texts(lang), (of == lang)[owner]) for lang in sorted(other)]
    rest = ~np.isin(of.astype(str), sorted(other))[owner]
    return [(texts, own) for texts, own in [(usual, rest), *out] if texts is not None]


def _cut(places: I64) -> pa.Array:
    """The texts at so many addresses and lengths, copied side by side."""
    offsets = np.concatenate([[0], np.cumsum(places[:, 1])]).astype(np.int64)
    data = np.empty(int(offsets[-1]) + 1, np.uint8)
    full = np.ascontiguousarray(places[places[:, 1] > 0])
    copy_ids(full, len(full), data.ctypes.data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(places), buffers)


def _inside(inputs: Inputs, given: Cited, spans: Spans) -> Any:
    """Whether a labelled span that supports lies inside; unknown where nothing is labelled."""
    evidence, n = inputs.evidence, len(given)
    out = np.full(n, UNKNOWN, np.int8)
    if evidence is None:
        return out
    quotes = texts_of(_spaced(evidence.lists.field("quote")), len(evidence.lists.items))
    cut = texts_of(_spaced(spans.texts), n)
    serves = (np.isin(evidence.role, (SUPPORTING, CONFLICTING)) & ~evidence.stale).astype(np.int8)
    kernel.spans_inside(
        0, n, own(given.owner), own(given.unit), own(inputs.label_of), own(evidence.offsets),
        serves, own(evidence.covers), own(evidence.units), own(evidence.start),
        own(evidence.end), quotes.offsets, quotes.address, own(spans.low), own(spans.high),
        spans.whole, spans.usable, cut.offsets, cut.address, out,
    )  # fmt: skip
    labelled = np.append(np.asarray(evidence.lists.present), False)[inputs.label_of]
    out[~labelled[given.owner]] = UNKNOWN
    return out


def _spaced(texts: pa.Array | None) -> pa.Array | None:
    """Texts in NFC, every stretch of white space one space; None without any."""
    if texts is None or pa.types.is_null(texts.type):
        return None
    return spaced(texts)


def _scope(inputs: Inputs, given: Cited) -> tuple[Any, Any]:
    """Whether topic and date of the unit fit the case, and whether the case declares either."""
    chunks, owner, row, n = inputs.shared.chunks, given.owner, row_of(inputs, given), len(given)
    topic, days = inputs.case("topic"), inputs.case_days("as_of")
    topical, dated = stated(topic, inputs.n)[owner], stated(inputs.case("as_of"), inputs.n)[owner]
    if chunks is None:
        return np.full(n, UNKNOWN, np.int8), topical | dated
    scope = np.where(row >= 0, YES, UNKNOWN).astype(np.int8)
    if dated.any():
        if not (chunks.has("valid_from") or chunks.has("valid_until")):
            scope[dated & (scope == YES)] = UNKNOWN
        start = np.append(chunks.days("valid_from", -FOREVER), -FOREVER)[row]
        stop = np.append(chunks.days("valid_until", FOREVER), FOREVER)[row]
        scope[dated & ((days[owner] < start) | (days[owner] >= stop))] = NO
    if topical.any() and topic is not None:
        wanted = topic.take(rows_of(owner))
        same, known = _same(chunks.column("topic"), row, wanted, n)
        scope[topical & ~known & (scope == YES)] = UNKNOWN
        scope[topical & known & ~same] = NO
    return scope, topical | dated


def _accessible(inputs: Inputs, given: Cited) -> Any:
    """Whether the unit is public, or whoever asks is among those who may see it."""
    chunks, row = inputs.shared.chunks, row_of(inputs, given)
    if chunks is None or "acl" not in chunks.table.column_names:
        return np.full(len(given), UNKNOWN, np.int8)
    asking = inputs.case_lists("principals")
    open_to = may_see(chunks.lists("acl"), asking, given.offsets, row, inputs.lanes)
    refused = np.where(asking.present[given.owner], NO, UNKNOWN)
    return np.where(row < 0, UNKNOWN, np.where(open_to, YES, refused)).astype(np.int8)
