"""Sentences of English, Chinese and mixed text, cut so that citation markers stay with theirs.

A sentence ends at a line break, at 。！？, and at . ! ? where white space, a marker or a character
of another script follows, unless the next word begins in lower case or the full stop belongs to an
abbreviation, an initial, a number or the number of a list item.

Markers behind the stop belong to the sentence before it (`Fact. [1] Next.`), unless a space parts
them from it and either that sentence has a marker already or the text goes on in lower case
(`Fact [1]. [2] says so.`). A piece of nothing but markers and punctuation is part of the sentence
before it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

Span = tuple[int, int]
"""Start and end in code points, end exclusive."""

_STOP = re.compile(r"[。｡！？．]+|[.!?]+|[\n\r\u2028\u2029]+")
_SPACES = " \t\u00a0\u3000"
_CLOSERS = "\"'”’»)）」』》]］】"
_BREAKS = "\n\r\u2028\u2029"
_WIDE_STOPS = "。｡！？．"
_SHORT = """
    mr mrs ms dr prof sr jr st mt vs cf ca approx resp al eq eqs fig figs sec secs ch vol pp pt
    ref refs ed eds inc ltd co corp dept est gen col sen rep rev hon e.g i.e viz
    jan feb mar apr jun jul aug sep sept oct nov dec
"""
_ABBREVIATIONS = frozenset(_SHORT.split())
_BEFORE_NUMBERS = frozenset(("no", "nos", "p", "art", "para", "op"))
_LAST_WORD = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]+$")
_ITEM = re.compile(r"(?:^|[\n\r])[ \t]*[(（]?\d{1,3}$")


def sentences(text: str, markers: Sequence[Span] = ()) -> list[Span]:
    """Where the sentences of `text` lie, without the white space around them.

    Parameters
    ----------
    markers : where the citation markers lie, in order, none within another; no sentence ends inside
        one.
    """
    cuts, start = [], 0
    for end in _ends(text, markers):
        if end > start:
            cuts.append((start, end))
            start = end
    cuts.append((start, len(text)))
    return _joined(text, cuts, markers)


def _ends(text: str, markers: Sequence[Span]) -> Iterator[int]:
    starts = [begin for begin, _ in markers]
    begun = done = 0
    for found in _STOP.finditer(text):
        i, j = found.span()
        at = bisect_right(starts, i) - 1
        if i < done or (at >= 0 and i < markers[at][1]):
            continue
        if text[i] in _BREAKS:
            yield j
            begun = done = j
            continue
        first = at + 1
        near = first < len(markers) and not text[j : min(markers[first][0], j + 80)].strip(
            _SPACES + _CLOSERS
        )
        if not _may_stop(text, i, j, near):
            continue
        while j < len(text) and text[j] in _CLOSERS and not text[j].isspace():
            j += 1
        if not _is_end(text, i, j, first < len(markers) and markers[first][0] == j):
            continue
        own = at >= 0 and markers[at][0] >= begun
        j = _with_markers(text, j, markers, first, own)
        yield j
        begun = done = j


def _may_stop(text: str, i: int, j: int, marked: bool) -> bool:
    """Whether the stop at i is none of a number, a list item, an abbreviation or an initial.

    `marked`: a marker is next; then a single capital is no initial of a name.
    """
    if text[i] == "．":
        return not (i > 0 and text[i - 1].isdigit() and text[j : j + 1].isdigit())
    if text[i] != "." or j - i > 1:
        return True
    before = text[max(0, i - 24) : i]
    if _ITEM.search(before if i > 24 else "\n" + before):
        return False
    found = _LAST_WORD.search(before)
    if found is None or not text[j : j + 200].strip():
        return True
    word = found[0]
    after = text[j : j + 8].lstrip()
    if word.lower() in _BEFORE_NUMBERS and after[:1].isdigit():
        return False
    initial = word[-1].isupper() and (len(word) == 1 or word[-2] == ".") and not marked
    return not initial and word.lower() not in _ABBREVIATIONS


def _is_end(text: str, i: int, j: int, marked: bool) -> bool:
    """Whether what follows the stop, from j, lets a sentence end there."""
    if text[i] in _WIDE_STOPS or j >= len(text) or marked:
        return True
    after = text[j]
    if after.isspace():
        rest = text[j : j + 80].lstrip()
        return not rest[:1].islower()
    return not after.isascii() and after.isalpha() and not after.islower()


def _with_markers(text: str, j: int, markers: Sequence[Span], at: int, own: bool) -> int:
    """The end of the sentence that stops at j, and its own markers behind it."""
    end, touching, first = j, True, at
    while at < len(markers):
        gap = text[end : min(markers[at][0], end + 80)]
        if gap.strip(_SPACES):
            break
        touching = touching and not gap
        end, at = markers[at][1], at + 1
    if end == j:
        return j
    rest = text[end : end + 80].lstrip(_SPACES)
    if not touching and (own or rest[:1].islower()):
        # Those that touch the stop stay with it in any case.
        while first < len(markers) and markers[first][0] == j:
            j, first = markers[first][1], first + 1
        return j
    while end < len(text) and text[end] in ".。｡":
        end += 1
    return end


def _joined(text: str, cuts: list[Span], markers: Sequence[Span]) -> list[Span]:
    """Stripped pieces; one without a word goes to the sentence before it."""
    out: list[Span] = []
    starts = [begin for begin, _ in markers]
    for start, end in cuts:
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        end = start + len(piece.strip())
        if start >= end:
            continue
        if out and not _has_word(text, start, end, markers, bisect_right(starts, start - 1)):
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def _has_word(text: str, start: int, end: int, markers: Sequence[Span], at: int) -> bool:
    while at < len(markers) and markers[at][0] < end:
        if any(c.isalnum() for c in text[start : markers[at][0]]):
            return True
        start, at = markers[at][1], at + 1
    return any(c.isalnum() for c in text[start:end])
