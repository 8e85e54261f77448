"""Texts as facts are read from them: one width, one kind of dash, simplified numerals and negators.

Case stays, as identifiers have one. What looks like a digit but is none goes: a superscript becomes
`^2`, a circled number (a list item) a space. A wide comma parts numbers (`１００，２００`
aside, where everything is wide), so it must not become one that groups them.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

FILLER = "\x00"
"""Stands where something has been read already; a part of no word or number."""

_SUPERSCRIPTS = {ord(c): f"^{i}" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_CIRCLED = dict.fromkeys(
    [*range(0x2460, 0x249C), *range(0x24EA, 0x2500), *range(0x2776, 0x2794)], " "
)
_BEFORE = {**_SUPERSCRIPTS, **_CIRCLED, 0xAD: "", 0x200B: "", 0x2060: "", 0xFEFF: ""}
_TRADITIONAL = "萬億兩貳參叄陸點無沒論僅過斷來號幣塊鐘時負別從會嚴準許個論們寧並決見須絕"
_SIMPLIFIED = "万亿两贰叁叁陆点无没论仅过断来号币块钟时负别从会严准许个论们宁并决见须绝"
_AFTER = {
    **{ord(a): b for a, b in zip(_TRADITIONAL, _SIMPLIFIED, strict=True)},
    **dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2015, 0x2212], "-"),
    0x2044: "/", 0x2019: "'", 0: " ",
}  # fmt: skip
_WIDE_COMMA = re.compile("(?<![０-９])，|，(?![０-９])")
_MIXED = re.compile("(?<=[0-9０-９])(?=[¼-¾⅐-⅞])")


class Fact(NamedTuple):
    """Something that a text says and that must not change.

    Attributes
    ----------
    kind : date, time, number, ordinal, version, identifier or negator.
    value : in canonical form: equal facts are spelled alike.
    unit : of a number: "%", "‰", "pp", a currency as three letters, or "".
    text : as it stands in the prepared text.
    start : where, in the prepared text.
    """

    kind: str
    value: str
    unit: str
    text: str
    start: int


def prepare(text: str) -> str:
    """`text` in the form that facts are read from."""
    if text.isascii():
        return text.replace(FILLER, " ")
    text = _MIXED.sub(" ", _WIDE_COMMA.sub("、", text)).translate(_BEFORE)
    return unicodedata.normalize("NFKC", text).translate(_AFTER)


def blank(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` with fillers where `spans` lie, in order and apart; the length stays."""
    out, at = [], 0
    for start, end in spans:
        out += [text[at:start], FILLER * (end - start)]
        at = end
    return "".join([*out, text[at:]])
