"""Where what was packed lies in its documents, and which items of evidence are whole in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.evidence import Evidence
from ragcore.formats.compute import pc
from ragcore.lists import own
from ragcore.measures.inputs import Inputs
from ragcore.measures.reached import items_of
from ragcore.measures.shown import shown_of
from ragcore.placing import Layout
from ragcore.quotes import folded
from ragcore.threads import run_split
from ragcore.units import Chunks
from ragcore_kernels import spans as kernel
from ragcore_kernels.layout import I64


@dataclass
class Spans:
    """What was packed, flat over `shown.Shown.units`.

    Attributes
    ----------
    document : code of the document, -1 for unknown.
    start, end : code points in the document, end exclusive; -1 for unknown.
    whole : whether nothing of the chunk was cut off.
    first : where the chunk itself begins in its document.
    """

    document: I64
    start: I64
    end: I64
    whole: Any
    first: I64


def packed_spans(inputs: Inputs) -> Spans:
    """The spans of the context; a chunk without a packed span was packed whole."""

    def make() -> Spans:
        context, lists = shown_of(inputs), inputs.trace_lists("context")
        start, end = (lists.integers(name)[context.at] for name in ("start", "end"))
        chunks = inputs.shared.chunks
        document = np.full(start.size, -1, np.int64)
        low, high = document.copy(), document.copy()
        if chunks is not None:
            known = (context.units >= 0) & (context.units < len(chunks))
            owner = np.repeat(np.arange(inputs.n), np.diff(context.offsets))
            of = _documents(inputs, chunks)
            for mask, first, last in _by_language(inputs, chunks):
                at = np.flatnonzero(known & mask[owner])
                row = context.units[at]
                document[at], low[at], high[at] = of[row], first[row], last[row]
        cut = (start > np.maximum(low, 0)) | ((end >= 0) & ((high < 0) | (end < high)))
        begin = np.where(start >= 0, start, np.where(end >= 0, np.maximum(low, 0), low))
        stop = np.where(end >= 0, end, high)
        return Spans(document, begin, stop, ~cut, np.maximum(low, 0))

    return inputs.once("packed spans", make)


def _documents(inputs: Inputs, chunks: Chunks) -> I64:
    """Document code of every chunk."""
    ids = chunks.column("doc_id")
    document = inputs.shared.vocabulary.codes(chunks.ids if ids is None else ids)
    return np.where(document < 0, np.arange(len(chunks)), document)


def _by_language(inputs: Inputs, chunks: Chunks) -> Iterator[tuple[Any, I64, I64]]:
    """Rankings of one language, and start and end of every chunk in its texts; -1 for unknown."""
    known = {name[5:] for name in chunks.table.column_names if name.startswith("text_")}
    if not known:  # no need to look at the language of a million rankings
        yield np.ones(inputs.n, np.bool_), *_main(chunks)
        return
    langs = np.array([lang or "" for lang in inputs.langs], object)
    others = [lang for lang in dict.fromkeys(langs.tolist()) if lang in known]
    yield ~np.isin(langs, others), *_main(chunks)
    if others:
        evidence = inputs.evidence
        layout = Layout(chunks) if evidence is None else evidence.layout or Layout(chunks)
        for lang in others:
            span = layout.span(lang)
            yield langs == lang, span.start, span.end


def _main(chunks: Chunks) -> tuple[I64, I64]:
    """Start and end of every chunk in the main texts; the end of one that says none from these."""
    start = np.maximum(chunks.integers("start"), 0)
    end, texts = chunks.integers("end"), chunks.texts()
    if texts is not None and (end < 0).any():
        length = np.asarray(pc.utf8_length(texts).cast(pa.int64()).fill_null(-1))
        end = np.where((end < 0) & (length >= 0), start + length, end)
    return start, end


def intact_items(inputs: Inputs, evidence: Evidence) -> Any:
    """Flat over `reached.items_of`, bool: items that are whole in something packed.

    An item without a place in a chunk that was cut is whole if its quote stands in the text that
    is left, white space and Unicode form aside; without text or quote it is not.
    """

    def make() -> Any:
        context, spans, items = shown_of(inputs), packed_spans(inputs), items_of(inputs, evidence)
        ids = evidence.lists.field("doc_id")
        documents = inputs.shared.vocabulary.codes(ids, len(evidence.lists.items))
        first, last = own(evidence.start), own(evidence.end)
        out = np.zeros(int(items.offsets[-1]), np.int8)

        def work(begin: int, end: int) -> None:
            kernel.intact(
                begin, end, inputs.label_of, evidence.offsets, evidence.covers, evidence.units,
                documents, first, last, context.offsets, context.units,
                spans.document, spans.start, spans.end, spans.whole, items.offsets, out,
            )  # fmt: skip

        run_split(work, inputs.n, inputs.lanes)
        whole = out == kernel.INTACT
        cut = np.flatnonzero((out == kernel.CUT) & (evidence.required | evidence.needed)[items.at])
        if cut.size:
            whole[cut] = _quoted(inputs, evidence, cut)
        return whole

    return inputs.once("intact", make)


def _quoted(inputs: Inputs, evidence: Evidence, which: I64) -> Any:
    """Whether the quote of each item stands in what is left of a chunk that contains it."""
    quotes, chunks = evidence.lists.field("quote"), inputs.shared.chunks
    items, context, spans = items_of(inputs, evidence), shown_of(inputs), packed_spans(inputs)
    owner = np.searchsorted(items.offsets, which, side="right") - 1
    found = np.zeros(which.size, np.bool_)
    if quotes is None or chunks is None or chunks.texts() is None:
        return found
    for k, (flat, ranking) in enumerate(zip(which.tolist(), owner.tolist(), strict=True)):
        item = int(items.at[flat])
        quote = quotes[item].as_py()
        texts = chunks.texts(inputs.langs[ranking])
        if not quote or texts is None:
            continue
        covering = set(evidence.units[evidence.covers[item] : evidence.covers[item + 1]].tolist())
        for place in range(int(context.offsets[ranking]), int(context.offsets[ranking + 1])):
            unit = int(context.units[place])
            if unit not in covering or not 0 <= unit < len(chunks):
                continue
            first = int(spans.first[place])
            start, end = int(spans.start[place]), int(spans.end[place])
            text = texts[unit].as_py() or ""
            left = text[max(start - first, 0) : end - first if end >= 0 else None]
            found[k] |= folded(quote) in folded(left)
    return found
