"""Numerals in words: Chinese numerals and English number words to exact numbers, and one spelling.

Chinese: units in falling order (一百二十, 三亿五千万), digits in a row (二〇二五), a decimal point
(三点五), and the short form that leaves the last unit out (一百二 = 120, 一万五 = 15000). English:
up to trillions, with or without "and" and hyphens.
"""

from __future__ import annotations

import re
from fractions import Fraction

DIGITS = {
    **dict(zip("零一二三四五六七八九", range(10), strict=True)),
    **dict(zip("〇壹贰叁肆伍陆柒捌玖两", [*range(10), 2], strict=True)),
}
"""Chinese digit -> value; simplified forms, those of cheques too."""
TENS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
"""Units below 万."""
LARGE = {"万": 10**4, "亿": 10**8}
"""Units that multiply a whole numeral."""

LONGEST = 40
"""A longer row of digits is not read as a number."""

RUN = f"[{''.join({**DIGITS, **TENS, **LARGE})}]"
"""One character of a Chinese numeral, for patterns."""
DIGIT = f"[{''.join(DIGITS)}]"
"""One Chinese digit, for patterns."""

_UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
          "fifteen sixteen seventeen eighteen nineteen")  # fmt: skip
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL = {word: value for value, word in enumerate(_UNITS.split())} | {
    word: value for value, word in zip(range(20, 100, 10), _ROUND.split(), strict=True)
}
"""English words below a hundred."""
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
"""English words that multiply, besides hundred."""

_RANKS = ("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
          "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
          "twentieth")  # fmt: skip
RANKS = {word: i for i, word in enumerate(_RANKS.split(), 1)}
"""English ordinal words."""

_WORD = "|".join(sorted((*SMALL, "hundred", *SCALES), key=len, reverse=True))
ENGLISH = (
    rf"\b(?:{_WORD}|a(?=\s+(?:hundred|{'|'.join(SCALES)})\b))"
    rf"(?:(?:\s+|\s*-\s*)(?:and\s+)?(?:{_WORD})\b)*(?![a-z])"
)
"""A run of English number words, for patterns that ignore case."""


def spelled(value: Fraction) -> str:
    """The one spelling of a number: 1000, 12.5, -3, 1/3; equal numbers are spelled alike."""
    denominator, twos, fives = value.denominator, 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[: len(digits) - places]}.{digits[-places:]}" if places else sign + digits


def chinese(text: str) -> Fraction | None:
    """The number that a Chinese numeral says, or None if it is none."""
    if len(text) > LONGEST:
        return None
    whole, point, decimals = text.partition("点")
    if point:
        if not decimals or any(c not in DIGITS for c in decimals):
            return None
        first = chinese(whole)
        if first is None:
            return None
        digits = "".join(str(DIGITS[c]) for c in decimals)
        return first + Fraction(int(digits), 10 ** len(digits))
    if not text or any(c not in DIGITS and c not in TENS and c not in LARGE for c in text):
        return None
    if all(c in DIGITS for c in text):
        return Fraction(int("".join(str(DIGITS[c]) for c in text)))
    found = _above(text, tuple(reversed(LARGE)))
    return None if found is None else Fraction(found)


def _above(text: str, units: tuple[str, ...]) -> int | None:
    """Left × unit + right, for the largest unit that occurs; below 万 by `_section`."""
    if not units:
        return _section(text)
    left, unit, right = text.rpartition(units[0])
    if not unit:
        return _above(text, units[1:])
    times = _above(left, units if units[0] == "亿" else units[1:])
    if times is None or times == 0:
        return None
    size = LARGE[unit]
    if not right:
        return times * size
    if len(right) == 1 and right in DIGITS:  # 一万五
        return times * size + DIGITS[right] * size // 10
    rest = _above(right, units[1:])
    return None if rest is None or rest >= size else times * size + rest


def _section(text: str) -> int | None:
    """A numeral below 万: digits each before a smaller unit, 零 for gaps."""
    total, digit, last, gap = 0, None, 10_000, False
    for c in text:
        if c in DIGITS:
            if DIGITS[c] == 0:
                if digit is not None:
                    return None
                gap = True
                continue
            if digit is not None:
                return None
            digit = DIGITS[c]
            continue
        size = TENS.get(c, last)
        if size >= last:  # 万 too: a large unit has no place here
            return None
        if digit is None:
            if size != 10:
                return None
            digit = 1
        total, digit, last, gap = total + digit * size, None, size, False
    if digit is None:
        return total if total else None
    if not gap and 100 <= last < 10_000:  # 一百二
        return total + digit * last // 10
    return total + digit


def english(text: str) -> list[tuple[int, int, int]]:
    """Numbers in a run of English number words: (value, start, end) of each.

    "two three" is two numbers; "one" by itself is left out, as it is mostly a pronoun.
    """
    words = [(m[0].lower(), m.start(), m.end()) for m in re.finditer(r"[A-Za-z]+", text)]
    out, at = [], 0
    while at < len(words):
        value, used = _number([word for word, _, _ in words[at:]])
        if used and (used > 1 or words[at][0] not in ("one", "hundred", *SCALES)):
            out.append((value, words[at][1], words[at + used - 1][2]))
        at += max(used, 1)
    return out


def _number(words: list[str]) -> tuple[int, int]:
    """Value of the longest number at the start, and how many words it takes."""
    total = current = 0
    scale, last, used = 10**15, "start", 0
    for at, word in enumerate(words):
        if word == "a" and last == "start" and at + 1 < len(words):
            current, last = 1, "unit"
            continue
        if word == "and" and last in ("hundred", "scale"):
            continue
        if word in SMALL:
            size = SMALL[word]
            kind = "unit" if size < 10 else "teen" if size < 20 else "tens"
            allowed = ("start", "hundred", "scale") + (("tens",) if 0 < size < 10 else ())
            if last not in allowed:
                break
            current += size
        elif word == "hundred":
            kind = "hundred"
            if last not in ("unit", "teen", "tens") or not 0 < current < 100:
                break
            current *= 100
        elif word in SCALES:
            kind = "scale"
            if not current or SCALES[word] >= scale:
                break
            total, scale, current = total + current * SCALES[word], SCALES[word], 0
        else:
            break
        last, used = kind, at + 1
    return total + current, used
