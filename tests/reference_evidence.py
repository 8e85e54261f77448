"""Evidence brought to chunks, and measures over it, in plain Python: slow and obvious.

A chunk and an item are dicts with the columns of the schema, absent where not said. `where` gives
the chunks of an item, or says why it is stale; `measure` scores one list over the items.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Row = dict[str, Any]


def fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def bare(text: str) -> str:
    return unicodedata.normalize("NFC", "".join(text.split()))


def document(chunk: Row) -> str:
    return chunk.get("doc_id") or chunk["chunk_id"]


def blocks(chunk: Row) -> tuple[int, int] | None:
    first = chunk.get("block_first")
    if first is None:
        return None
    last = chunk.get("block_last")
    return first, first if last is None or last < first else last


def stretch(chunk: Row) -> tuple[int, int] | None:
    start, end = chunk.get("start") or 0, chunk.get("end")
    if end is None:
        text = chunk.get("text")
        return None if text is None else (start, start + len(text))
    return start, end


def glued(chunks: Sequence[Row]) -> list[str]:
    """What the chunks say put together, in every way that they may have been cut."""
    texts = [c["text"] for c in chunks if c.get("text") is not None]
    starts = [c.get("start") for c in chunks if c.get("text") is not None]
    if all(s is not None for s in starts):
        letters: dict[int, str] = {}
        for start, text in zip(starts, texts, strict=True):
            for i, letter in enumerate(text):
                letters.setdefault(start + i, letter)
        out, last = "", None
        for at in sorted(letters):
            out += (" " if last is not None and at > last + 1 else "") + letters[at]
            last = at
        return [fold(out)]
    joined = ""
    for text in texts:
        n = min(len(joined), len(text))
        while not joined.endswith(text[:n]):
            n -= 1
        joined += text[n:]
    return [bare("".join(texts)), bare(joined)]


def holds_together(chunks: Sequence[Row], quote: str) -> bool:
    whole = glued(chunks)
    return any((quote if len(whole) == 1 else bare(quote)) in one for one in whole)


def where(item: Row, chunks: Sequence[Row], ratio: float = 1.0) -> tuple[str, list[str]]:
    """(why it is stale or "", ids of the chunks that contain it)."""
    named = [c for c in chunks if c["chunk_id"] == item.get("chunk_id")]
    ours = [c for c in chunks if document(c) == item.get("doc_id")]
    fallback = [item.get("chunk_id") or item.get("doc_id")]
    if not ours:
        ours = named or [
            c for c in chunks
            if item.get("chunk_id") is None and c["chunk_id"] == item.get("doc_id")
        ]  # fmt: skip
    if not ours:
        return "", fallback
    quote = fold(item.get("quote") or "") or None
    place = None
    if (item.get("end") or 0) > (item.get("start") if item.get("start") is not None else 1 << 40):
        place = item["start"], item["end"]
    block, page = item.get("block"), item.get("page")
    finer = quote is not None or place is not None or block is not None or page is not None
    absent = item.get("in_snapshot") is False

    def right(c: Row) -> bool:
        said = c.get("doc_version"), item.get("doc_version")
        return None in said or said[0] == said[1]

    pool = named if named and not finer else ours
    if not any(right(c) for c in pool):
        return ("" if absent else "version-gone"), fallback if absent else []
    if named and not finer:
        return "", fallback
    ours = sorted(
        (c for c in ours if right(c)),
        key=lambda c: (-1 if blocks(c) is None else blocks(c)[0], c.get("start") or 0),
    )

    def near(c: Row) -> bool:
        return block is None or blocks(c) is None or blocks(c)[0] <= block <= blocks(c)[1]

    readable = any(c.get("text") is not None for c in ours)
    if quote is not None and readable:
        holding = [c for c in ours if quote in fold(c.get("text") or "")]
        here = [c for c in holding if near(c)]
        if place is not None and len(here) > 1:
            there = [
                c for c in here
                if stretch(c) and min(stretch(c)[1], place[1]) > max(stretch(c)[0], place[0])
            ]  # fmt: skip
            here = there or here
        if here:
            return "", [c["chunk_id"] for c in here]
        if holding and not absent:
            return "quote-moved", []
        beside = [c for c in ours if near(c)]
        if not absent and not holds_together(beside, quote):
            moved = len(beside) < len(ours) and holds_together(ours, quote)
            return "quote-moved" if moved else "quote-gone", []
    if block is not None and any(blocks(c) for c in pool_of(ours, chunks, item)):
        return "", [c["chunk_id"] for c in ours if blocks(c) and near(c)]
    if place is not None and any(stretch(c) for c in pool_of(ours, chunks, item)):
        need = max(1, math.ceil(ratio * (place[1] - place[0]) - 1e-9))
        return "", [
            c["chunk_id"] for c in ours
            if stretch(c) and min(stretch(c)[1], place[1]) - max(stretch(c)[0], place[0]) >= need
        ]  # fmt: skip
    if quote is not None and readable:
        return "", []
    if item.get("chunk_id") is not None:
        return "", fallback
    return "", [c["chunk_id"] for c in ours]


def pool_of(ours: Sequence[Row], chunks: Sequence[Row], item: Row) -> list[Row]:
    """Every chunk of the item's document, whatever its revision."""
    names = {document(c) for c in ours}
    return [c for c in chunks if document(c) in names]


# --- measures over items (several chunks an item, several items a chunk)


class Topic:
    """One list of chunk ids against the items of a case.

    `items` is (grade, ids of the chunks that contain it) each.
    """

    def __init__(
        self, ranked: Sequence[str], items: Sequence[tuple[int, Sequence[str]]], rel: int = 1
    ) -> None:
        self.ranked, self.items, self.rel = list(ranked), list(items), rel
        self.relevant = [grade for grade, _ in items if grade >= rel]
        self.first: list[int | None] = []  # rank at which each item is covered first
        for _, covering in items:
            ranks = [r for r, one in enumerate(ranked, 1) if one in covering]
            self.first.append(min(ranks, default=None))

    def best(self, rank: int) -> int:
        """Highest grade of the items that the chunk at a rank covers; -1 for none."""
        one = self.ranked[rank - 1]
        return max((g for g, covering in self.items if one in covering), default=-1)

    def gain(self, rank: int) -> int:
        """Highest grade of the items that the chunk at a rank covers first."""
        new = [g for (g, _), at in zip(self.items, self.first, strict=True) if at == rank]
        return max(new, default=0)

    def useful(self, k: int) -> int:
        """Chunks in the first k ranks that cover an item."""
        return sum(self.best(r) >= self.rel for r in range(1, min(k, len(self.ranked)) + 1))

    def found(self, k: int) -> int:
        """Items covered in the first k ranks."""
        return sum(
            at is not None and at <= k and g >= self.rel
            for (g, _), at in zip(self.items, self.first, strict=True)
        )


def measure(name: str, t: Topic, k: int | None = None) -> Fraction | float | None:
    """One measure of one list; None where it is not applicable."""
    depth = k if k is not None else len(t.ranked)
    n = len(t.relevant)
    if name == "nDCG":
        ideal = sorted((g for g, _ in t.items if g > 0), reverse=True)[: k or len(t.items)]
        best = sum(g / math.log2(i + 2) for i, g in enumerate(ideal))
        got = sum(t.gain(r) / math.log2(r + 1) for r in range(1, min(depth, len(t.ranked)) + 1))
        return got / best if best else None
    if not n:
        return None
    if name == "P":
        return Fraction(t.useful(depth), depth)
    if name == "R":
        return Fraction(t.found(depth), n)
    if name == "R_capped":
        room = min(depth, n)
        return Fraction(min(t.found(depth), room), room) if room else Fraction(0)
    if name == "Success":
        return Fraction(t.found(depth) > 0)
    firsts = sorted(
        at for (g, _), at in zip(t.items, t.first, strict=True)
        if at is not None and g >= t.rel and at <= depth
    )  # fmt: skip
    if name == "RR":
        return Fraction(1, firsts[0]) if firsts else Fraction(0)
    if name == "AP":
        return sum((Fraction(t.useful(at), at) for at in firsts), Fraction(0)) / n
    if name == "Rprec":
        return Fraction(t.useful(n), n)
    if name == "SetP":
        return Fraction(t.useful(depth), depth) if depth else Fraction(0)
    if name == "SetF":
        p, r = measure("SetP", t), measure("R", t)
        return 2 * p * r / (p + r) if p + r else Fraction(0)
    if name == "SetAP":
        return measure("SetP", t) * measure("R", t)
    if name == "IPrec":  # at recall 1/2
        cut = math.floor(0.5 * n + 0.5)
        ranks = [r for r in range(1, len(t.ranked) + 1) if t.found(r) >= cut]
        hits = [r for r in ranks if t.best(r) >= t.rel]
        return max((Fraction(t.useful(r), r) for r in hits), default=Fraction(0))
    if name == "binG":
        return sum(
            1 / math.log2(2 + at - 1 - t.useful(at - 1)) for at in firsts
        ) / n  # fmt: skip
    raise KeyError(name)
