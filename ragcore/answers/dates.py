"""Dates and times of day in a text, English and Chinese, in one form.

A date is `2025-07-01`, `2025-07`, `2025`, or, without a year, `--07-01` or `--07`. Of day and month
in figures (07/01/2025) it cannot be known which is which, unless one is above 12 or they are equal:
such a date is both, `2025-01-07|2025-07-01`. A decade is `1970s`, a century `18c`. A time is
`15:30` or `15:30:05`. A year alone is a date only before 年, elsewhere a number, spelled alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from ragcore.answers.numerals import DIGIT, RANKS, RUN, chinese
from ragcore.answers.prepared import Fact

_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name: i for i, name in enumerate(_NAMES.split(), 1)}
_MONTHS |= {name[:3]: i for name, i in _MONTHS.items()} | {"sept": 9}
_ALSO_WORDS = frozenset(("may", "march", "mar"))  # in lower case, most often not the month
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_FULL = "|".join(_NAMES.split())
_MONTH = rf"(?P<m>{_FULL}|(?:sept|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)\b\.?)"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<y>[12]\d{3})(?![\d/-]|[.,]\d)"
_FREE, _END = r"(?<![A-Za-z0-9_./-])", r"(?:(?![A-Za-z0-9_/-]|\.\d)|(?=T\d))"
_YEAR2 = _YEAR.replace("<y>", "<y2>")
_ZH_YEAR = rf"(?P<y>[12]\d{{3}}|{DIGIT}{{4}})\s*年"
_ZH_MONTH = rf"(?P<m>\d{{1,2}}|{RUN}{{1,2}})\s*月"
_ZH_DAY = rf"(?P<d>\d{{1,2}}|{RUN}{{1,3}})\s*[日号]"
_PREPOSITIONS = ("in", "of", "since", "until", "by", "last", "next", "from", "to", "early", "late",
                 "during", "this")  # fmt: skip
_BEFORE_MONTH = "(?:" + "|".join(rf"(?<=\b{word} )" for word in _PREPOSITIONS) + ")"
_EARLY, _LATE = "凌晨|早上|早晨|清晨|上午", "下午|晚上|傍晚|夜里"
_NUMBER = rf"(?:\d{{1,2}}|{RUN}{{1,3}})"

_DATES = [
    rf"(?<!\d)(?P<c>\d{{1,2}}|{RUN}{{1,3}})\s*世纪(?:(?P<t>\d0|[一二三四五六七八九]十)年代)?",
    r"(?<![\d.,A-Za-z])(?P<t>[12]\d\d0)(?:'?s(?![A-Za-z])|年代)",
    rf"(?<![A-Za-z0-9.,])(?P<c>\d{{1,2}}(?=st|nd|rd|th)|{'|'.join(RANKS)}|twenty[\s-]first)"
    r"(?:st|nd|rd|th)?[\s-]centur(?:y|ies)\b",
    rf"{_FREE}(?P<y>[12]\d{{3}})(?P<s>[-/.])(?P<m>\d{{1,2}})(?P=s)(?P<d>\d{{1,2}}){_END}",
    rf"{_FREE}(?P<a>\d{{1,2}})(?P<s>[-/.])(?P<b>\d{{1,2}})(?P=s)(?P<y>[12]\d{{3}}){_END}",
    rf"(?<![A-Za-z0-9_.,])(?P<y>[12]\d{{3}}),?[\s-]{_MONTH}[\s-]{_DAY}(?![\w-])",
    rf"(?<![A-Za-z0-9_.,-]){_DAY}(?:\s+of)?[\s-]+{_MONTH}(?:,?[\s-]+{_YEAR})?(?![A-Za-z])",
    rf"(?<![A-Za-z]){_MONTH}\s+{_DAY}(?![\d/:%]|[.,]\d|st|nd|rd|th)(?:\s*,\s*{_YEAR}|\s+{_YEAR2})?",
    rf"(?<![A-Za-z]){_MONTH},?(?:\s+of)?[\s-]+{_YEAR}",
    rf"(?<!\d){_ZH_YEAR}\s*(?:{_ZH_MONTH}\s*(?:份|{_ZH_DAY})?)?",
    rf"(?<![\d.]){_ZH_MONTH}\s*{_ZH_DAY}",
    r"(?<![\d.个第])(?P<m>\d{1,2}|[一二三四五六七八九十]|十[一二])月(?!亮|球|光|饼|经|子)",
    rf"{_FREE}(?P<y>[12]\d{{3}})-(?P<m>0[1-9]|1[0-2]){_END}",
    rf"(?<![A-Za-z])(?!May|March)(?P<m>{_FULL})(?![A-Za-z'])",
    rf"{_BEFORE_MONTH}(?P<m>May|March)(?![A-Za-z'])",
]  # fmt: skip
_TIMES = [
    r"(?<![\d:.])(?P<h>[01]?\d|2[0-4]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d)(?:\.\d+)?)?(?![\d:])"
    r"(?:\s*(?P<p>[ap])\.?m\b\.?)?",
    r"(?<![\d:.,A-Za-z])(?P<h>1[0-2]|0?[1-9])\s*(?P<p>[ap])\.?m\b\.?",
    rf"(?:(?P<e>{_EARLY})|(?P<l>{_LATE})|中午)?\s*(?P<h>{_NUMBER})\s*[点时]"
    rf"(?:(?P<half>半)|整|钟|(?P<m>{_NUMBER})分(?!之)(?:(?P<s>{_NUMBER})秒)?)",
    rf"(?:(?P<e>{_EARLY})|(?P<l>{_LATE})|中午)\s*(?P<h>{_NUMBER})\s*[点时]",
]
_DATE_PATTERNS = [re.compile(each, re.IGNORECASE) for each in _DATES]
_TIME_PATTERNS = [re.compile(each, re.IGNORECASE) for each in _TIMES]
_HAS_DATE = re.compile(rf"\d|[年月点时世]|\b(?:{_FULL})\b|centur", re.IGNORECASE)


def dates(text: str) -> list[Fact]:
    """The dates of a prepared text, in order, none within another."""
    return _found(text, _DATE_PATTERNS, "date", _date)


def times(text: str) -> list[Fact]:
    """The times of day of a prepared text, in order; read it after its dates are blanked."""
    return _found(text, _TIME_PATTERNS, "time", _time)


def parts(value: str) -> Iterator[str]:
    """A date and what it includes: its year, its month, its day without the year."""
    for each in value.split("|"):
        yield each
        if each.startswith("--"):
            if len(each) > 4:
                yield each[:4]
            continue
        if len(each) >= 7 and each[4] == "-":
            yield each[:4]
            yield f"--{each[5:7]}"
        if len(each) == 10:
            yield each[:7]
            yield f"--{each[5:]}"


def _found(
    text: str,
    patterns: list[re.Pattern[str]],
    kind: str,
    read: Callable[[dict[str, str | None]], str | None],
) -> list[Fact]:
    out: list[Fact] = []
    if not _HAS_DATE.search(text):
        return out
    for pattern in patterns:
        for match in pattern.finditer(text):
            value = read(match.groupdict())
            if value is not None:
                shown = match[0].strip()
                start = match.start() + match[0].index(shown)
                out.append(Fact(kind, value, "", shown, start))
                filler = "\x00" * len(shown)
                text = text[:start] + filler + text[start + len(shown) :]
    return sorted(out, key=lambda fact: fact.start)


def _date(part: dict[str, str | None]) -> str | None:
    if part.get("c") or part.get("t"):
        return _period(part.get("c"), part.get("t"))
    year = _value(part.get("y") or part.get("y2"))
    if part.get("a"):
        pairs = {(part["a"], part["b"]), (part["b"], part["a"])}
        both = {_spelled(year, _value(month), _value(day)) for month, day in pairs}
        return "|".join(sorted(each for each in both if each)) or None
    name = (part.get("m") or "").rstrip(".")
    if name in _ALSO_WORDS and year is None:
        return None
    month = _MONTHS.get(name.lower()) or _value(name or None)
    if part.get("m") and month is None:
        return None
    day = _value(part.get("d"))
    return None if part.get("d") and day is None else _spelled(year, month, day)


def _period(century: str | None, tens: str | None) -> str | None:
    """A century, or a decade told by its first year or by the century and the tens."""
    decade = _value(tens)
    if century is None:
        return None if decade is None else f"{decade}s"
    word = century.lower()
    number = 21 if word.startswith("twenty") else RANKS.get(word) or _value(word)
    if number is None or not 1 <= number <= 30:
        return None
    return f"{number}c" if decade is None else f"{(number - 1) * 100 + decade}s"


def _spelled(year: int | None, month: int | None, day: int | None) -> str | None:
    if year is not None and not 1000 <= year < 3000:
        return None
    if month is not None and not 1 <= month <= 12:
        return None
    if day is not None and (month is None or not 1 <= day <= _LENGTHS[month - 1]):
        return None
    if month is None:
        return None if year is None else str(year)
    out = f"{year or '-'}-{month:02}"
    return out if day is None else f"{out}-{day:02}"


def _time(part: dict[str, str | None]) -> str | None:
    hour, minute = _value(part["h"]), _value(part.get("m"))
    second = _value(part.get("s"))
    if hour is None or (part.get("m") and minute is None):
        return None
    if part.get("half"):
        minute = 30
    half = (part.get("p") or "").lower()
    if (half == "p" or part.get("l")) and hour < 12:
        hour += 12
    elif half == "a" and hour == 12:
        hour = 0
    if hour > 24 or (minute or 0) > 59 or (second or 0) > 59:
        return None
    out = f"{hour:02}:{minute or 0:02}"
    return out if second is None else f"{out}:{second:02}"


def _value(text: str | None) -> int | None:
    """A whole number in figures or Chinese numerals."""
    if not text:
        return None
    if text.isdecimal():
        return int(text)
    found: Fraction | None = chinese(text)
    return None if found is None or found.denominator != 1 else int(found)
