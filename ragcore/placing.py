"""Where chunks lie in their documents, and which of them each item of evidence is contained in.

An item says a place in a document, as finely as its author could: a quote, a block, code points,
a page, or the document alone. The finest that can be checked against the chunks decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.errors import InputError
from ragcore.formats.compute import pc
from ragcore.lists import Lists, integers, own, plain
from ragcore.quotes import folded
from ragcore.units import Chunks
from ragcore_kernels import stretches as kernel
from ragcore_kernels.layout import I64

BY_ID, BY_QUOTE, BY_BLOCK, BY_PLACE, BY_PAGE, BY_DOCUMENT, UNCHECKED, NOWHERE = range(8)
"""How an item came to its chunks. UNCHECKED: it says a finer place than its document, and nothing
in the chunks to check it by; NOWHERE: its document is none of the chunks', the id stands alone."""

HELD, GONE, MOVED, OTHER_VERSION = range(4)
"""What became of an item's quote: it is where the label says; it is in the document no more, or
in another block of it; or the chunks have other revisions of the document only."""

WHY = ("", "quote-gone", "quote-moved", "version-gone")
"""These in words."""


class Layout:
    """Documents, revisions and places of a suite's chunks.

    Attributes
    ----------
    documents : ids of the documents; a chunk without one is a document of its own.
    of : (n_chunks,), document of each chunk.
    offsets, rows : (n_documents + 1,) and flat, chunks of each document in its order.
    versions, version_names : (n_chunks,), revision of each chunk or -1; their names.
    first, last : (n_chunks,), blocks of each chunk, `last` exclusive; `first` -1 where not said.
    pages : (n_chunks,), -1 where not said.
    """

    def __init__(self, chunks: Chunks) -> None:
        self.chunks = chunks
        names = chunks.ids
        column = chunks.column("doc_id")
        if column is not None and not pa.types.is_null(column.type):
            names = pc.coalesce(column.cast(pa.large_string()), names)
        coded = names.dictionary_encode()
        self.documents = coded.dictionary
        self.of = integers(coded.indices, len(chunks))
        revision = chunks.column("doc_version")
        self.version_names = pa.array([], pa.large_string())
        self.versions = np.full(len(chunks), -1, np.int64)
        if revision is not None and not pa.types.is_null(revision.type):
            coded = revision.cast(pa.large_string()).dictionary_encode()
            self.version_names = coded.dictionary
            self.versions = integers(coded.indices, len(chunks))
        self.first = chunks.integers("block_first")
        last = chunks.integers("block_last")
        self.last = np.where(last < self.first, self.first, last) + 1
        self.pages = chunks.integers("page")
        start = chunks.integers("start", 0)
        order = np.lexsort((np.arange(len(chunks)), start, self.first, self.of))
        self.rows = order.astype(np.int64)
        counts = np.bincount(self.of, minlength=len(self.documents))
        self.offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def rows_of(self, document: int) -> I64:
        """Chunks of one document, in its order."""
        return self.rows[self.offsets[document] : self.offsets[document + 1]]

    @cached_property
    def languages(self) -> dict[str, Span]:
        """Places by column of texts, as far as they have been asked for."""
        return {}

    def span(self, lang: str | None) -> Span:
        """Places of chunks in code points of the texts of a language."""
        own = lang is not None and f"text_{lang}" in self.chunks.table.column_names
        name = f"text_{lang}" if own else "text"
        if name not in self.languages:
            self.languages[name] = self._span(name, lang if own else None)
        return self.languages[name]

    def _span(self, name: str, lang: str | None) -> Span:
        texts = self.chunks.column(name)
        n = len(self.chunks)
        if texts is not None and pa.types.is_null(texts.type):
            texts = None
        lengths = np.full(n, -1, np.int64)
        if texts is not None:
            lengths = integers(pc.utf8_length(texts), n)
        if lang is None:
            said = self.chunks.integers("start")
            start, end = np.maximum(said, 0), self.chunks.integers("end")
        else:  # places are those of the main text, but for what begins where its document does
            said = self.chunks.integers("start", 0)
            start, end = np.where(said > 0, -1, 0), np.full(n, -1, np.int64)
        end = np.where(end >= 0, end, np.where(lengths >= 0, start + lengths, -1))
        start = np.where(end < 0, -1, start)
        known = self.chunks.integers(f"start_{lang}" if lang else "start")
        return Span(texts, start.astype(np.int64), end.astype(np.int64), known)


@dataclass
class Span:
    """Texts of one language, and where the chunks lie in them.

    Attributes
    ----------
    texts : of every chunk; None without any.
    start, end : (n_chunks,), code points, end exclusive; `start` -1 where that cannot be known.
    said : (n_chunks,), first code point as the chunks say it, -1 where they do not.
    """

    texts: pa.Array | None
    start: I64
    end: I64
    said: I64


@dataclass
class Wanted:
    """Items of evidence as they are looked for in chunks; every array is (n_items,).

    Attributes
    ----------
    document : document of `Layout`, -1 if the chunks do not have it.
    named : chunk that the item names, -1 if it names none that exists.
    home : document, or else that of the named chunk; -1 if there is neither.
    says_chunk : whether it says a chunk, existing or not.
    version : revision of `Layout`; -1 if it says none, -2 if it says one that no chunk has.
    block, page, start, end : place; -1 where not said.
    quote : folded quotes; None where there is none.
    lang : language of the item's case.
    """

    document: I64
    named: I64
    home: I64
    says_chunk: Any
    version: I64
    block: I64
    page: I64
    start: I64
    end: I64
    quote: list[str | None]
    lang: list[str | None]

    @property
    def placed(self) -> Any:
        """(n_items,), whether code points are said."""
        return (self.start >= 0) & (self.end > self.start)


def wanted_of(lists: Lists, layout: Layout, langs: list[str | None]) -> Wanted:
    """What the items of `lists` say of their place; `langs` is by row of the cases."""
    n = len(lists.items)

    def at(name: str, among: pa.Array) -> tuple[I64, Any]:
        found = lists.field(name)
        if found is None or pa.types.is_null(found.type):
            return np.full(n, -1, np.int64), np.zeros(n, np.bool_)
        texts = found.cast(pa.large_string())
        return integers(pc.index_in(texts, value_set=among), n), np.asarray(texts.is_valid())

    document, _ = at("doc_id", layout.documents)
    named, says = at("chunk_id", layout.chunks.ids)
    other, _ = at("doc_id", layout.chunks.ids)
    named = np.where((named < 0) & (document < 0) & ~says, other, named)
    home = document.copy()
    alone = (home < 0) & (named >= 0)
    home[alone] = layout.of[named[alone]]
    version, said = at("doc_version", layout.version_names)
    version = np.where(said & (version < 0), -2, version)
    quotes = lists.field("quote")
    texts: list[str | None] = [None] * n
    if quotes is not None and not pa.types.is_null(quotes.type):
        texts = [folded(q) or None if q is not None else None for q in plain(quotes).to_pylist()]
    langs_of = [langs[row] for row in lists.owners.tolist()]
    return Wanted(
        document, named, home, says, version.astype(np.int64), lists.integers("block"),
        lists.integers("page"), lists.integers("start"), lists.integers("end"), texts, langs_of,
    )  # fmt: skip


def ratio_of(settings: dict[str, Any], where: str) -> float:
    """The share of an item's code points that a chunk must hold: `overlap` of `suite.toml`.

    Raises
    ------
    InputError
        If it is no number above 0 and at most 1.
    """
    ratio = settings.get("overlap", 1.0)
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0.0 < ratio <= 1.0:
        raise InputError(where, f"overlap = {ratio!r}", "a number above 0 and at most 1")
    return float(ratio)


def meeting(
    layout: Layout, wanted: Wanted, which: Any, low: I64, high: I64, need: I64, lows: I64,
    highs: I64,
) -> tuple[I64, I64]:  # fmt: skip
    """Chunks whose stretch meets that of each item in `which`, as offsets and flat rows."""
    n = which.size
    document = np.where(which, wanted.home, -1).astype(np.int64)
    only = np.where(wanted.document < 0, wanted.named, -1).astype(np.int64)
    ends = np.zeros(n + 1, np.int64)
    given = (
        document, only, wanted.version, own(low), own(high), need, layout.offsets, layout.rows,
        layout.versions, lows, highs,
    )  # fmt: skip
    kernel.meeting(0, n, *given, ends, np.zeros(0, np.int64))
    np.cumsum(ends, out=ends)
    out = np.zeros(int(ends[-1]), np.int64)
    if out.size:
        kernel.meeting(0, n, *given, ends, out)
    return ends, out


def spans_of(layout: Layout, wanted: Wanted) -> list[tuple[Any, Span]]:
    """For each column of texts the items whose language it serves."""
    by: dict[int, tuple[Any, Span]] = {}
    langs: dict[str | None, list[int]] = {}
    for i, lang in enumerate(wanted.lang):
        langs.setdefault(lang, []).append(i)
    for lang, items in langs.items():
        span = layout.span(lang)
        mask = by.setdefault(id(span), (np.zeros(len(wanted.lang), np.bool_), span))[0]
        mask[items] = True
    return list(by.values())


def needs(wanted: Wanted, ratio: float) -> I64:
    """Code points of each item's place that a chunk must hold."""
    length = np.maximum(wanted.end - wanted.start, 1)
    return np.maximum(np.ceil(ratio * length - 1e-9), 1.0).astype(np.int64)


def some(layout: Layout, wanted: Wanted, known: Any) -> Any:
    """(n_items,), whether any chunk of each item's document has what `known` marks."""
    has = np.zeros(len(layout.documents) + 1, np.bool_)
    has[layout.of[known]] = True
    return has[wanted.home]


def together(n: int, parts: list[tuple[Any, I64, I64]]) -> tuple[I64, I64]:
    """One list a item out of several, each of which serves other items."""
    counts = np.zeros(n, np.int64)
    for which, ends, _ in parts:
        counts[which] = np.diff(ends)[which]
    covers = ends_of(counts)
    units = np.zeros(int(covers[-1]), np.int64)
    for which, ends, rows in parts:
        items = np.flatnonzero(which)
        sizes = counts[items]
        inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        units[np.repeat(covers[items], sizes) + inside] = rows[
            np.repeat(ends[items], sizes) + inside
        ]
    return covers, units


def ends_of(counts: I64) -> I64:
    """Where each of consecutive stretches of these lengths begins, and the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
