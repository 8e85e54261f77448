"""Text to words: folding, runs of letters and digits, character bigrams for unspaced scripts.

The same function serves passages and questions; a question is never query syntax. The rules:

* Fold: NFKC, case folding, NFKC again; characters that Unicode calls ignorable by default (soft
  hyphens, joiners, variation selectors, direction marks) go, so that they part no word. The one
  exception is the zero-width space, which marks a boundary and stays one.
* A word is a run of letters and numbers (categories L and N) with the marks (M) that follow them.
  Everything else, an underscore and an apostrophe too, parts words.
* Scripts written without spaces between words (Han, kana, Hangul, Bopomofo, Thai, Lao, Khmer,
  Myanmar) are cut into overlapping pairs of characters, a character being a letter with its marks.
  A run of one character is that character. Pairs cross neither punctuation nor spaces nor words of
  another script: `2016年` is `2016` and `年`. Hangul has spaces, but particles stick to its words.
* So a question of one single such character finds only passages where it stands alone; the audit
  of the vocabulary says so.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import pairwise

Segment = Callable[[str], list[str]]

# Ignorable by default, as in NFKC_Casefold; U+200B is left to part words.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_UNSPACED = _HAN + (
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\U0001aff0-\U0001affe\U0001b000-\U0001b16f"  # rare kana
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"  # Thai letters
    "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf"  # Lao letters
    "\u1780-\u17b3\u17d7\u17dc"  # Khmer letters
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081"
    "\u108e\ua9e0-\ua9e4\ua9e7-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a\uaa7e\uaa7f"  # Myanmar
)
_PARTS = "".join(c.lower() if c.isalnum() else " " for c in map(chr, range(128)))
_ASCII = str.maketrans({i: c for i, c in enumerate(_PARTS) if chr(i) != c})


def fold(text: str) -> str:
    """`text` in the form in which words are compared: NFKC, case folded, ignorables dropped."""
    if text.isascii():
        return text.lower()
    text = _patterns().ignorable.sub("", unicodedata.normalize("NFKC", text)).casefold()
    if "i\u0307" in text:  # a folded capital I with a dot, as in Turkish
        text = text.replace("i\u0307", "i")
    return unicodedata.normalize("NFKC", text)


def words(text: str, segment: Segment | None = None, *, unspaced: bool = True) -> list[str]:
    """The words of `text`, in order, repeated ones as often as they occur.

    Parameters
    ----------
    segment : cuts a run of Han characters into words, instead of bigrams.
    unspaced : False leaves runs of unspaced scripts whole, as simple tokenisers do.
    """
    if text.isascii():
        return text.translate(_ASCII).split()
    text, patterns = fold(text), _patterns()
    if not patterns.unspaced.search(text):
        return patterns.word.findall(text)
    if not unspaced:
        return patterns.any_word.findall(text)
    out: list[str] = []
    for word, run in patterns.either.findall(text):
        if word:
            out.append(word)
        elif segment is None:
            out += bigrams(run)
        else:
            out += _segmented(run, segment)
    return out


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of the characters of `run`, a character being a letter with its marks."""
    if len(run) < 2:
        return [run] if run else []
    units = _patterns().unit.findall(run)
    if len(units) < 2:
        return [run]
    return [a + b for a, b in pairwise(units)]


def pieces(word: str) -> list[str]:
    """`word` cut so that each character of an unspaced script, with its marks, stands alone.

    `word` is folded and without spaces; nothing of it is lost.
    """
    if word.isascii():
        return [word] if word else []
    return _patterns().piece.findall(word)


def close_up(text: str) -> str:
    """Folded `text` without the spaces beside characters of unspaced scripts: they part nothing."""
    if text.isascii():
        return text
    return _patterns().after.sub(r"\1", _patterns().before.sub("", text))


def has_unspaced(text: str) -> bool:
    """Whether `text` holds a character of a script that is written without spaces."""
    return not text.isascii() and _patterns().unspaced.search(fold(text)) is not None


def _segmented(run: str, segment: Segment) -> list[str]:
    out: list[str] = []
    for han, other in _patterns().han.findall(run):
        out += [part for part in segment(han) if part] if han else bigrams(other)
    return out


class _Patterns:
    """The compiled patterns; made when text that is not ASCII first comes."""

    def __init__(self) -> None:
        low, high = _marks()
        # A gate before the long list of high marks: most words end without one.
        mark = f"[{low}]|(?=[\U00010000-\U0010ffff])[{high}]"
        word = f"[^\\W_{_UNSPACED}](?:[^\\W_{_UNSPACED}]+|{mark})*"
        unit = f"[{_UNSPACED}](?:{mark})*"
        han = f"(?:[{_HAN}](?:{mark})*)+"
        self.ignorable = re.compile(f"[{_IGNORABLE}]+")
        self.unspaced = re.compile(f"[{_UNSPACED}]")
        self.word = re.compile(word)
        self.any_word = re.compile(f"[^\\W_](?:[^\\W_]+|{mark})*")
        self.either = re.compile(f"({word})|((?:{unit})+)")
        self.unit = re.compile(unit)
        self.piece = re.compile(f"{unit}|[^{_UNSPACED}]+")
        self.before = re.compile(f" +(?=[{_UNSPACED}])")
        self.after = re.compile(f"({unit}) +")
        self.han = re.compile(f"({han})|((?:(?![{_HAN}]){unit})+)")


@cache
def _patterns() -> _Patterns:
    return _Patterns()


def _marks() -> tuple[str, str]:
    """Ranges of the marks below and above U+10000, for a character class."""
    ranges: list[list[int]] = []
    for code in range(0x300, 0x1F000):  # all marks but variation selectors, which are dropped
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    low = "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges if b < 0x10000)
    high = "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges if a >= 0x10000)
    return low, high
