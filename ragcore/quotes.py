"""Quotes in chunks: texts folded to a common form, and which chunks of a document hold a quote."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence

_BETWEEN = "\n"  # stands in no folded text


def folded(text: str) -> str:
    """A text in Unicode NFC, every stretch of white space one blank, none at either end."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


class Document:
    """The chunks of one document as quotes are looked for in them.

    Parameters
    ----------
    rows : numbers of the chunks, in the order of the document.
    texts : of each; None where a chunk has none.
    starts : first code point of each in the document, -1 where that is not known.
    """

    def __init__(
        self, rows: Sequence[int], texts: Sequence[str | None], starts: Sequence[int]
    ) -> None:
        self.rows, self._texts, self._starts = rows, texts, starts
        pieces = ["" if text is None else folded(text) for text in texts]
        self._joined = _BETWEEN.join(pieces)
        self._ends: list[int] = []  # where the piece after each begins
        at = 0
        for piece in pieces:
            at += len(piece) + 1
            self._ends.append(at)
        self._whole: dict[tuple[int, ...], tuple[str, ...]] = {}

    def readable(self, rows: Sequence[int]) -> bool:
        """Whether any of the chunks `rows` has a text."""
        texts = dict(zip(self.rows, self._texts, strict=True))
        return any(texts[row] is not None for row in rows)

    def holding(self, quote: str) -> list[int]:
        """Chunks that contain the folded `quote`."""
        out = []
        at = self._joined.find(quote)
        while at >= 0:
            piece = bisect_right(self._ends, at)
            out.append(self.rows[piece])
            at = self._joined.find(quote, self._ends[piece])
        return out

    def contains(self, quote: str, rows: Sequence[int]) -> bool:
        """Whether the chunks `rows` put together contain the folded `quote`.

        A quote that chunks were cut through is still in the document.
        """
        key = tuple(rows)
        if key not in self._whole:
            place = {row: i for i, row in enumerate(self.rows)}
            own = [i for row in rows if self._texts[i := place[row]] is not None]
            texts = [self._texts[i] or "" for i in own]
            starts = [self._starts[i] for i in own]
            if all(start >= 0 for start in starts):
                self._whole[key] = (folded(by_places(texts, starts)),)
            else:
                self._whole[key] = bare("".join(texts)), bare(by_ends(texts))
        whole = self._whole[key]
        sought = quote if len(whole) == 1 else bare(quote)
        return any(sought in one for one in whole)


def bare(text: str) -> str:
    """A text without white space, in NFC: what stood where two chunks meet is not known."""
    return unicodedata.normalize("NFC", "".join(text.split()))


def by_places(texts: Sequence[str], starts: Sequence[int]) -> str:
    """Chunks put together by their first code points; a blank where something lies between."""
    out, at = "", 0
    for text, start in zip(texts, starts, strict=True):
        if not out or start > at:
            out, at = f"{out} {text}" if out else text, start + len(text)
        else:
            out, at = out + text[at - start :], max(at, start + len(text))
    return out


def by_ends(texts: Sequence[str]) -> str:
    """Chunks put together by the longest end of one that begins the next."""
    out = ""
    for text in texts:
        out += text[_shared(out, text) :]
    return out


def _shared(before: str, after: str) -> int:
    """Length of the longest end of `before` that `after` begins with."""
    for length in range(min(len(before), len(after)), 0, -1):
        if before[-length] == after[0] and before.endswith(after[:length]):
            return length
    return 0
