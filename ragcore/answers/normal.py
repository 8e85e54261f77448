"""Answers in the form in which they are compared: SQuAD's rules, and ours for every script.

`squad` is what the official script does: lower case, ASCII punctuation deleted, the words a, an and
the deleted, white space folded. Ours folds width and case (`ragcore.text.fold`), deletes what
Unicode calls punctuation or a symbol in any script, and drops articles of English only. It differs
from SQuAD's on English in two things:

* A full stop between digits stays: 1.5 is not 15.
* If deleting leaves nothing, the form before it stays: the answer "A" is "a", and "?!" is "?!".

Wide punctuation has no space after it, so it parts words (`force，2016` is two); and a space beside
a character of an unspaced script says nothing, so it goes (`第 5 页` is `第5页`).
"""

from __future__ import annotations

import re
import string
import unicodedata
from typing import Literal

from ragcore.text import close_up, fold, has_unspaced, pieces

Form = Literal["house", "squad"]
"""Whose rules: ours, or the official ones of SQuAD."""

_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ARTICLE_WORDS = frozenset(("a", "an", "the"))
# Not between wide digits, where a comma groups them and a full stop is the decimal point.
_WIDE = re.compile(
    "[、。；：！？…—「」『』《》〈〉【】（）“”·]|(?<![０-９])[，．]|[，．](?![０-９])"
)
_POINT = re.compile(r"(?<!\d)\.|\.(?!\d)")  # not a decimal point
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")


def squad(text: str) -> str:
    """`text` under SQuAD's official rules; may be empty."""
    plain = text.lower().translate(_ASCII_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def normal(text: str, lang: str | None = None, *, parted: bool = False) -> str:
    """`text` under our rules; empty only if there is nothing but white space in it.

    Parameters
    ----------
    lang : BCP 47. Articles go if it is English; None means English for a text without characters
        of unspaced scripts.
    parted : whether punctuation parts words (well-known = well known) instead of joining them
        (well-known = wellknown, U.S. = us). Commas between thousands join either way.
    """
    folded = " ".join(fold(text).split())
    if not folded:
        return ""
    if not text.isascii():
        text = _WIDE.sub(" ", text)
    bare = _without_punctuation(fold(text), " " if parted else "") or folded
    if _is_english(lang, bare):
        kept = " ".join(word for word in bare.split() if word not in _ARTICLE_WORDS)
        bare = kept or bare
    return close_up(bare)


def tokens(
    text: str, lang: str | None = None, *, form: Form = "house", parted: bool = False
) -> list[str]:
    """The tokens that F1 counts: words, and each character of an unspaced script.

    `form` "squad" splits at white space alone, as the official script does.
    """
    if form == "squad":
        return squad(text).split()
    words = normal(text, lang, parted=parted).split()
    if text.isascii():
        return words
    return [piece for word in words for piece in pieces(word)]


def _is_english(lang: str | None, text: str) -> bool:
    if lang is None:
        return not has_unspaced(text)
    return lang.lower().replace("_", "-").split("-")[0] in ("en", "eng")


def _without_punctuation(folded: str, gap: str) -> str:
    text = _GROUPED.sub(lambda found: found[0].replace(",", ""), folded)
    text = _POINT.sub(gap, text).translate(_PARTING if gap else _JOINING)
    if text.isascii():
        return " ".join(text.split())
    # What folding makes of a symbol may be a space and a mark, which must not go to a letter.
    words = (word if word.isascii() else _without_marks(word) for word in text.split())
    return unicodedata.normalize("NFKC", " ".join(word for word in words if word))


def _without_marks(word: str) -> str:
    while word and unicodedata.category(word[0])[0] == "M":
        word = word[1:]
    return word


class _Signs(dict[int, int | str]):
    """What becomes of each code point, found when it first occurs; decimal points stay."""

    def __init__(self, gap: str) -> None:
        super().__init__()
        self.gap = gap

    def __missing__(self, code: int) -> int | str:
        sign = unicodedata.category(chr(code))[0] in "PS" and code != ord(".")
        self[code] = self.gap if sign else code
        return self[code]


_JOINING, _PARTING = _Signs(""), _Signs(" ")
