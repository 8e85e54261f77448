"""Which chunks hold the quotes of evidence, and what became of those that none holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.placing import GONE, HELD, MOVED, Layout, Span, Wanted, spans_of
from ragcore.quotes import Document


class QuoteSearch:
    """Looks for the quotes of items in the chunks of their documents.

    Attributes
    ----------
    found : by item, the chunks that hold its quote.
    fate : (n_items,), `HELD`, `GONE`, `MOVED`.
    looked : (n_items,), whether there was a text to look in.
    """

    def __init__(self, layout: Layout, wanted: Wanted, which: Any) -> None:
        self._layout, self._wanted = layout, wanted
        n = which.size
        self.found: dict[int, list[int]] = {}
        self.fate = np.zeros(n, np.int64)
        self.looked = np.zeros(n, np.bool_)
        document = wanted.home
        quoted = np.array([quote is not None for quote in wanted.quote], np.bool_)
        for mask, span in spans_of(layout, wanted):
            if span.texts is None:
                continue
            own = np.flatnonzero(mask & which & quoted & (document >= 0))
            own = own[np.argsort(document[own], kind="stable")]
            cuts = np.flatnonzero(np.diff(document[own])) + 1
            for items in np.split(own, cuts):
                if items.size:
                    self._document(int(document[items[0]]), span, items.tolist())

    def _document(self, document: int, span: Span, items: list[int]) -> None:
        rows = self._layout.rows_of(document)
        assert span.texts is not None
        text = Document(
            rows.tolist(), span.texts.take(pa.array(rows)).to_pylist(), span.said[rows].tolist()
        )
        w, known = self._wanted, {}
        for i in items:
            key = (
                w.quote[i], int(w.version[i]), int(w.block[i]), int(w.start[i]), int(w.end[i]),
                int(w.named[i]) if w.document[i] < 0 else -1,
            )  # fmt: skip
            if key not in known:
                known[key] = self._item(i, text, span)
            self.looked[i], self.fate[i], self.found[i] = known[key]

    def _item(self, i: int, text: Document, span: Span) -> tuple[bool, int, list[int]]:
        w = self._wanted
        quote = w.quote[i]
        assert quote is not None
        holding = self._fitting(i, text.holding(quote))
        block = int(w.block[i])
        near = [r for r in holding if block < 0 or self._in_block(r, block)]
        if w.placed[i] and len(near) > 1:  # the same words elsewhere are not the place labelled
            low, high = w.start[i], w.end[i]
            there = [
                r for r in near
                if span.start[r] >= 0 and min(span.end[r], high) > max(span.start[r], low)
            ]  # fmt: skip
            near = there or near
        if near:
            return True, HELD, near
        if holding:
            return True, MOVED, []
        everywhere = self._fitting(i, list(text.rows))
        if not text.readable(everywhere):
            return False, HELD, []
        rows = [r for r in everywhere if block < 0 or self._in_block(r, block)]
        if text.contains(quote, rows):
            return True, HELD, []
        moved = block >= 0 and len(rows) < len(everywhere) and text.contains(quote, everywhere)
        return True, (MOVED if moved else GONE), []

    def _fitting(self, i: int, rows: list[int]) -> list[int]:
        """Of `rows` those that the item may be in: its revision, the chunk that it is alone."""
        w, versions = self._wanted, self._layout.versions
        alone = int(w.named[i]) if w.document[i] < 0 else -1
        return [
            r for r in rows
            if (alone < 0 or r == alone)
            and (w.version[i] == -1 or versions[r] < 0 or versions[r] == w.version[i])
        ]  # fmt: skip

    def _in_block(self, row: int, block: int) -> bool:
        """Whether a chunk has part in a block, or does not say what blocks it is of."""
        first, last = self._layout.first[row], self._layout.last[row]
        return bool(first < 0 or first <= block < last)
