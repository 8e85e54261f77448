"""Numbers in a text, English and Chinese, with the unit that belongs to their value.

Read: figures with grouped thousands, decimals and exponents; multipliers (1.2 million, 1.2万,
3亿5千万); Chinese numerals and English number words; fractions (1/3, 三分之一); per cent, per
mille, percentage points; currencies; ordinals (3rd, third, 第三). Physical units are not:
10 km and 10 kg are both 10.

Not read: "one" and 一 where they are hardly a number (一个, 一些), Chinese digits inside words
(四川, 十分, 万一), two or three digits in a row (三四, 五四). ¥ is taken for the yuan, $ for the US
dollar.
"""

from __future__ import annotations

import re
from fractions import Fraction

from ragcore.answers.numerals import (
    DIGITS,
    ENGLISH,
    LARGE,
    LONGEST,
    RANKS,
    RUN,
    SCALES,
    TENS,
    chinese,
    english,
    spelled,
)
from ragcore.answers.prepared import Fact, blank

_FIGURES = (
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d+)(?:\.\d+)?|(?<![\w.])\.\d+"
)
_TIMES = (
    r"\s*(?:hundred|thousand|million|billion|trillion)\b|\s?(?:mn|bn|tn)(?![A-Za-z])"
    r"|[百千](?![米克瓦卡帕赫焦伏字分])[万亿]?|\s?[万亿](?![科达豪历圣])亿?"
)
_SIGN = r"(?:(?<![\w)\]%.])-|(?<!\w)\+|负|零下|\bminus\s+|\bnegative\s+)?"
_NAMES = {
    "CNY": ("¥", "RMB", "CNY", "人民币", "元", "块钱", "yuan", "renminbi"),
    "USD": ("$", "US$", "USD", "美元", "美金", "dollar", "dollars"),
    "EUR": ("€", "EUR", "欧元", "euro", "euros"),
    "GBP": ("£", "GBP", "英镑"),
    "JPY": ("JPY", "日元", "yen"),
    "HKD": ("HK$", "HKD", "港元", "港币"),
    "INR": ("₹", "INR", "rupees"),
    "KRW": ("₩", "KRW", "韩元"),
    "%": ("%", "percent", "per cent", "pct"),
    "‰": ("‰",),
    "pp": ("个百分点", "百分点", "percentage points", "percentage point"),
}
_UNIT_OF = {name.lower(): unit for unit, names in _NAMES.items() for name in names}
_SIGNS = "|".join(
    re.escape(n) for u in ("HKD", "USD", "CNY", "EUR", "GBP", "JPY", "INR", "KRW")
    for n in sorted(_NAMES[u], key=len, reverse=True)
    if n not in ("元", "块钱", "dollar", "dollars", "yuan", "yen", "euro", "euros", "rupees")
)  # fmt: skip
_SUFFIXES = "|".join(
    re.escape(name) + (r"\b" if name[-1].isascii() and name[-1].isalpha() else "")
    for name in sorted(_UNIT_OF, key=len, reverse=True)
    if name not in ("$", "¥", "£", "€", "us$", "hk$", "元")
)
_SUFFIX = rf"\s*(?:(?P<u>{_SUFFIXES})|(?P<yuan>元(?![旦素年朝月首老帅代件器])))"
_NUMBER = re.compile(
    rf"(?:(?P<c>{_SIGNS})\s*)?(?P<sign>{_SIGN})(?P<c2>[$€£¥₹₩]\s?)?"
    rf"(?<![\d^])(?P<n>{_FIGURES})(?:[eE](?P<e>[+-]?\d{{1,2}})(?![A-Za-z0-9]))?"
    rf"(?P<x>{_TIMES}|(?<=[\d])\s?[kKmMbB](?![A-Za-z]))?"
    rf"(?P<more>(?:\d+(?:\.\d+)?(?:[百千](?![米克瓦])万?|万))*)(?:{_SUFFIX})?",
    re.IGNORECASE,
)
_PARTS = re.compile(
    rf"(?P<whole>百|千|万|\d+|{RUN}+)分之(?P<part>\d+(?:\.\d+)?|{RUN}+(?:点{RUN}+)?)"
    r"|(?<![\d/.])(?P<top>\d{1,9})/(?P<bottom>\d{1,9})(?![\d/]|\.\d)"
)
_ORDINAL = re.compile(
    rf"第\s?(?P<zh>\d+|{RUN}+)|(?<![\w.,])(?P<d>\d{{1,9}})(?:st|nd|rd|th)(?![A-Za-z])"
    r"|\bthe\s(?P<the>first|second)\b"
    rf"|\b(?P<w>{'|'.join(list(RANKS)[2:])})\b(?!s\b|-party)",
    re.IGNORECASE,
)
_CHINESE = re.compile(rf"{_SIGN}(?P<n>{RUN}+(?:点[{''.join(DIGITS)}]+)?)(?:{_SUFFIX})?")
_COUNTED = "年天日月周岁元块米里公吨斤克升倍成小秒票"
_WHICH = "哪某每这那同任另"
_MEASURES = (
    _COUNTED
    + "个位名人次号条项章节款种类层级届期轮场只家间所座栋台辆件本册页行列门支卷维大档组代步颗头对"
)
_LISTED = re.compile(r"(?m)^[ \t]*[(（]?\d{1,2}(?:[.)）](?=\s)|、)")


def ordinals(text: str) -> list[Fact]:
    """The ordinals of a prepared text, in order."""
    out = []
    for match in _ORDINAL.finditer(text):
        word = (match["the"] or match["w"] or "").lower()
        digits = match["zh"] or match["d"]
        value = RANKS.get(word) or (_plain(digits) if digits else None)
        if value is not None:
            out.append(Fact("ordinal", spelled(Fraction(value)), "", match[0], match.start()))
    return out


def numbers(text: str) -> list[Fact]:
    """The numbers of a prepared text, in order.

    Read it after dates, times, identifiers and ordinals are blanked. Numbers of list items at the
    start of a line are none.
    """
    out: list[Fact] = []
    text = _rest(text, [(m.start(), m.end()) for m in _LISTED.finditer(text)])
    for match in _PARTS.finditer(text):
        out += _fraction(match)
    text = _without(text, out)
    figures = [fact for m in _NUMBER.finditer(text) for fact in _figures(m)]
    text, out = _without(text, figures), out + figures
    for match in re.finditer(ENGLISH, text, re.IGNORECASE):
        for value, start, end in english(match[0]):
            at = match.start() + start
            suffix = re.compile(_SUFFIX, re.IGNORECASE).match(text, match.start() + end)
            unit = _unit(suffix) if suffix else ""
            shown = text[at : suffix.end() if suffix else match.start() + end]
            out.append(Fact("number", spelled(Fraction(value)), unit, shown, at))
    if not text.isascii():
        for match in _CHINESE.finditer(text):
            out += _words(match, text)
    return sorted(out, key=lambda fact: fact.start)


def _fraction(match: re.Match[str]) -> list[Fact]:
    if match["part"]:
        part, whole = _plain(match["part"]), _plain(match["whole"])
        unit = {"百": "%", "千": "‰"}.get(match["whole"], "")
        if match["whole"] == "万":
            whole = Fraction(10_000)
        if match["part"] == "百":
            part = Fraction(100)
        if part is None or (not unit and not whole):
            return []
        value = part if unit else part / (whole or 1)
    else:
        top, bottom = int(match["top"]), int(match["bottom"])
        if not 0 < top < bottom:  # 24/7, 2024/25: two numbers
            return []
        unit, value = "", Fraction(top, bottom)
    return [Fact("number", spelled(value), unit, match[0], match.start())]


def _figures(match: re.Match[str]) -> list[Fact]:
    digits = match["n"].replace(",", "")
    if len(digits) > LONGEST:
        return [Fact("number", digits, "", match[0], match.start())]
    value = Fraction(digits) * Fraction(10) ** int(match["e"] or 0)
    unit = _UNIT_OF.get((match["c"] or match["c2"] or "").strip().lower(), "") or _unit(match)
    times, shown = (match["x"] or "").strip(), match[0]
    if len(times) == 1 and times.isascii():  # a letter multiplies money alone: 5m may be metres
        if unit not in ("", "%", "‰", "pp"):
            times = {"k": "thousand", "m": "million", "b": "billion"}[times.lower()]
        else:
            times, unit, shown = "", "", shown[: match.end("n") - match.start()]
    for part in _sizes(times):
        value *= part
    for each in re.finditer(r"(\d+(?:\.\d+)?)([百千万]+)", match["more"] or ""):
        more = Fraction(each[1])
        for part in _sizes(each[2]):
            more *= part
        value += more
    if match["sign"].strip().lower() in ("-", "负", "零下", "minus", "negative"):
        value = -value
    start = match.start() + len(shown) - len(shown.lstrip())
    return [Fact("number", spelled(value), unit, shown.strip(), start)]


def _sizes(times: str) -> list[int]:
    short = {"mn": "million", "bn": "billion", "tn": "trillion"}
    word = short.get(times.lower(), times.lower())
    if word in SCALES or word == "hundred":
        return [SCALES.get(word, 100)]
    return [TENS.get(c) or LARGE[c] for c in times]


def _words(match: re.Match[str], text: str) -> list[Fact]:
    """A Chinese numeral, unless it is a part of a word."""
    run = match["n"]
    value, unit = chinese(run), _unit(match)
    start, end = match.span("n")
    which = run == "一" and text[start - 1 : start] in _WHICH and start > 0  # 哪一年
    negative = start > match.start()
    if value is None or which or not (negative or _is_meant(run, text[end : end + 2], unit)):
        return []
    if negative and match[0][0] != "+":
        value = -value
    return [Fact("number", spelled(value), unit, match[0], match.start())]


def _is_meant(run: str, after: str, unit: str) -> bool:
    if "点" in run:
        return True
    if len(run) == 1:
        if after[:1] == "分":  # minutes, but not 十分 nor 四分卫
            return after == "分钟"
        return bool(unit) or (
            after[:1] in (_COUNTED if run in "一零〇" else _MEASURES) and bool(after)
        )
    if all(c in DIGITS for c in run):
        return len(run) > 3 or "〇" in run
    return True


def _unit(match: re.Match[str]) -> str:
    if match["yuan"]:
        return "CNY"
    return _UNIT_OF[match["u"].lower()] if match["u"] else ""


def _plain(text: str) -> Fraction | None:
    """A number in figures or Chinese numerals."""
    if len(text) > LONGEST:
        return None
    return Fraction(text) if text[0].isdecimal() else chinese(text)


def _without(text: str, facts: list[Fact]) -> str:
    spans = sorted((fact.start, fact.start + len(fact.text)) for fact in facts)
    return blank(text, spans)


def _rest(text: str, spans: list[tuple[int, int]]) -> str:
    return blank(text, spans) if spans else text
