"""Citation markers in answers: the grammar, what each sentence cites, what does not resolve.

A marker is one or more numbers or ranges in brackets. Numbers from 1 to the number of passages are
*valid*. Whether any other number was meant as a citation cannot be known, so it is *unresolved*:
listed, never skipped silently, and no reason to drop the good ones beside it. Brackets with only
numbers and signs in them that are no marker (`[3-1]`, `[1.2]`) are *malformed* and listed as text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ragcore.answers.sentences import Span, sentences

GRAMMAR = "[n], [n, m], [n][m], [n-m]; brackets [] or 【】; digits and signs of either width"
"""The grammar in use, for reports."""

MOST_IN_RANGE = 100
"""Numbers that [n-m] may stand for; a longer one is malformed."""

_OPEN, _CLOSE = r"[\[［【]\s*", r"\s*[\]］】]"
_NUMBER = r"[0-9０-９]{1,9}"
_DASH = r"\s*[-‐‑‒–—−~～－]\s*"
_COMMA = r"\s*[,;，；、]\s*"
_ITEM = rf"{_NUMBER}(?:{_DASH}{_NUMBER})?"
_MARKER = re.compile(rf"{_OPEN}{_ITEM}(?:{_COMMA}{_ITEM})*{_CLOSE}")
_BRACKETS = re.compile(r"[\[［【](?=\s*[0-9０-９])[0-9０-９\s,;，；、.．:：‐‑‒–—−~～－-]+[\]］】]")
_ITEMS = re.compile(rf"({_NUMBER})(?:{_DASH}({_NUMBER}))?")


class Marker(NamedTuple):
    """A marker and the numbers it stands for, in order; its place in code points."""

    start: int
    end: int
    numbers: tuple[int, ...]


class Sentence(NamedTuple):
    """A sentence, where it lies, and what it cites.

    Attributes
    ----------
    text : as it stands, markers included.
    start, end : in code points of the whole, end exclusive.
    emitted : numbers in order, repeated ones too.
    valid, unresolved : distinct numbers in order, inside and outside 1..n_passages.
    malformed : brackets that only look like a marker.
    """

    text: str
    start: int
    end: int
    emitted: tuple[int, ...]
    valid: tuple[int, ...]
    unresolved: tuple[int, ...]
    malformed: tuple[str, ...]


class Citations(NamedTuple):
    """What a whole text cites: distinct numbers in order, see `Sentence`."""

    valid: tuple[int, ...]
    unresolved: tuple[int, ...]
    malformed: tuple[str, ...]


def find(text: str) -> tuple[list[Marker], list[Span]]:
    """The markers of `text` in order, and where the malformed ones lie."""
    markers, malformed = [], []
    for found in _BRACKETS.finditer(text):
        numbers = _numbers(found[0]) if _MARKER.fullmatch(found[0]) else None
        if numbers is None:
            malformed.append(found.span())
        else:
            markers.append(Marker(*found.span(), numbers))
    return markers, malformed


def parse(text: str, n_passages: int) -> list[Sentence]:
    """The sentences of `text` with what each cites.

    Parameters
    ----------
    n_passages : passages that the answer was given, 0 or more.
    """
    markers, malformed = find(text)
    out, at, bad_at = [], 0, 0
    for start, end in sentences(text, [(each.start, each.end) for each in markers]):
        emitted, bad = [], []
        while at < len(markers) and markers[at].start < end:
            emitted += markers[at].numbers
            at += 1
        while bad_at < len(malformed) and malformed[bad_at][0] < end:
            bad.append(text[slice(*malformed[bad_at])])
            bad_at += 1
        cited = _sorted(emitted, n_passages, bad)
        out.append(Sentence(text[start:end], start, end, tuple(emitted), *cited))
    return out


def citations(text: str, n_passages: int) -> Citations:
    """What `text` cites as a whole; see `parse` for a sentence each."""
    markers, malformed = find(text)
    emitted = [n for each in markers for n in each.numbers]
    return Citations(*_sorted(emitted, n_passages, [text[a:b] for a, b in malformed]))


def without_markers(text: str, n_passages: int | None = None) -> str:
    """`text` without its markers and the spaces before them.

    Parameters
    ----------
    n_passages : if given, only markers with a valid number go; others may be part of the text.
    """
    out, at = [], 0
    for each in find(text)[0]:
        if n_passages is None or any(1 <= n <= n_passages for n in each.numbers):
            out.append(text[at : each.start].rstrip(" \t\u00a0\u3000"))
            at = each.end
    return "".join([*out, text[at:]])


def _numbers(marker: str) -> tuple[int, ...] | None:
    numbers: list[int] = []
    for first, last in _ITEMS.findall(marker):
        low, high = int(first), int(last or first)
        if not low <= high < low + MOST_IN_RANGE:
            return None
        numbers += range(low, high + 1)
    return tuple(numbers)


def _sorted(
    emitted: list[int], n_passages: int, malformed: list[str]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
    distinct = list(dict.fromkeys(emitted))
    valid = tuple(n for n in distinct if 1 <= n <= n_passages)
    return valid, tuple(n for n in distinct if not 1 <= n <= n_passages), tuple(malformed)
