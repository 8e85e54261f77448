"""Whether the corpus of a case holds what its labels point at: there, lacking, or lost in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.evidence import Evidence
from ragcore.formats.compute import pc
from ragcore.lists import joined
from ragcore.measures.inputs import Inputs
from ragcore.quotes import folded
from ragcore.units import Chunks
from ragcore_kernels.layout import I64

_KEPT = 20_000  # texts in memory at once
HELD, LACKING, LOST = 0, 1, 2
"""There; not in the snapshot; its document is there, yet no unit has its text."""


def held_by_corpus(inputs: Inputs, evidence: Evidence) -> Any:
    """(n_items,) int8: `HELD`, `LACKING` or `LOST`, by item of the suite's evidence.

    Lacking: the label says that the snapshot lacks it, or no living unit of its document is in
    the case's snapshot. Lost: units of its document are there, and none of them contains the
    item, or the unit that should does not have the quote, after NFC and folded white space.
    Without the suite's chunks only the labels speak.
    """
    n, chunks = evidence.role.size, inputs.shared.chunks
    out = np.where(evidence.absent, LACKING, np.where(evidence.stale, LOST, HELD)).astype(np.int8)
    if chunks is None:
        return out
    owner = np.repeat(np.arange(evidence.offsets.size - 1), np.diff(evidence.offsets))
    item = np.repeat(np.arange(n), np.diff(evidence.covers))
    living = _living(inputs, chunks, evidence.units, owner[item])
    held = np.bincount(item[living], minlength=n) > 0
    whole_document = ~held & _by_document(evidence)
    document = _document_there(inputs, evidence, chunks, owner)
    out[(out == HELD) & ~held & ~document] = LACKING
    out[(out == HELD) & ~held & document & ~whole_document] = LOST
    out[(out == HELD) & held & _quote_gone(inputs, evidence, chunks, owner)] = LOST
    return out


def _living(inputs: Inputs, chunks: Chunks, units: I64, case: I64) -> Any:
    """(n,) bool: units that exist, are not deleted, and are in the snapshot of their case."""
    cases = inputs.shared.cases
    if cases is None:
        return chunks.living(units, np.full(units.size, -1, np.int64))
    named = joined(cases["snapshot"]) if "snapshot" in cases.column_names else None
    return chunks.living(units, chunks.snapshot_codes(named, len(cases))[case])


def _by_document(evidence: Evidence) -> Any:
    """(n_items,) bool: labels of a whole document, without chunk, place or quote."""
    n = evidence.role.size
    out = np.ones(n, np.bool_)
    for name in ("chunk_id", "quote", "start", "block"):
        found = evidence.lists.field(name)
        if found is not None and not pa.types.is_null(found.type):
            out &= np.asarray(found.is_null())
    return out


def _document_there(inputs: Inputs, evidence: Evidence, chunks: Chunks, owner: I64) -> Any:
    """(n_items,) bool: whether a living unit of the item's document is in its case's snapshot."""
    n = evidence.role.size
    own, named = chunks.column("doc_id"), evidence.lists.field("doc_id")
    if named is None or pa.types.is_null(named.type):
        return np.zeros(n, np.bool_)
    documents = (chunks.ids if own is None else own).cast(pa.large_string())
    distinct = documents.unique()
    of_item = np.asarray(
        pc.index_in(named.cast(pa.large_string()), value_set=distinct).fill_null(-1)
    )
    of_unit = np.asarray(pc.index_in(documents, value_set=distinct).fill_null(-1))
    order = np.argsort(of_unit, kind="stable")
    starts = np.searchsorted(of_unit[order], np.arange(len(distinct) + 1))
    known = np.maximum(of_item, 0)
    sizes = np.where(of_item >= 0, starts[known + 1] - starts[known], 0) if len(distinct) else (
        np.zeros(n, np.int64)
    )  # fmt: skip
    item = np.repeat(np.arange(n), sizes)
    within = np.arange(item.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    units = order[starts[known][item] + within] if item.size else np.zeros(0, np.int64)
    living = _living(inputs, chunks, units, owner[item])
    return np.bincount(item[living], minlength=n) > 0


def _quote_gone(inputs: Inputs, evidence: Evidence, chunks: Chunks, owner: I64) -> Any:
    """(n_items,) bool: needed items whose quote stands in no unit that should contain it."""
    out = np.zeros(evidence.role.size, np.bool_)
    quotes, cases = evidence.lists.strings("quote"), inputs.shared.cases
    at = [i for i in np.flatnonzero(evidence.needed).tolist() if quotes[i]]
    if not at or not chunks.has("text") or cases is None:
        return out
    langs = cases["lang"].to_pylist() if "lang" in cases.column_names else None
    bodies = _Bodies(chunks)
    covers, case_of = evidence.covers.tolist(), owner.tolist()
    for i in at:
        lang = langs[case_of[i]] if langs else None
        units = evidence.units[covers[i] : covers[i + 1]].tolist()
        own = [bodies(lang, u) for u in units if 0 <= u < len(chunks)]
        known = [body for body in own if body is not None]
        out[i] = bool(known) and not any(_holds(body, str(quotes[i])) for body in known)
    return out


class _Bodies:
    """Texts of units by language, some of them kept."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._columns: dict[str | None, Any] = {}
        self._kept: dict[tuple[str | None, int], str | None] = {}

    def __call__(self, lang: str | None, unit: int) -> str | None:
        key = lang, unit
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            if lang not in self._columns:
                self._columns[lang] = self._chunks.texts(lang)
            self._kept[key] = self._columns[lang][unit].as_py()
        return self._kept[key]


def _holds(body: str, quote: str) -> bool:
    return quote in body or folded(quote) in folded(body)
