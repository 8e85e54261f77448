"""Numbers written out, in Chinese and in English, for the readers of numerals."""

from __future__ import annotations

ZH = "零一二三四五六七八九"


def zh_section(n: int, first: bool) -> str:
    """Below 10000, each digit with its unit; a run of zeros is one 零."""
    out, gap = "", not first and n < 1000
    for power, unit in ((3, "千"), (2, "百"), (1, "十"), (0, "")):
        digit = n // 10**power % 10
        if digit:
            out += ("零" if gap else "") + ZH[digit] + unit
            gap = False
        else:
            gap = gap or bool(out)
    return out


def zh(n: int) -> str:
    """`n` in Chinese, below 10**12: 一千零一."""
    out = ""
    for size, unit in ((10**8, "亿"), (10**4, "万"), (1, "")):
        part = n // size % 10_000
        if part:
            out += zh_section(part, not out) + unit
    return out or "零"


_SMALL = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS, TENS = _SMALL.split(), _ROUND.split()


def en(n: int) -> str:
    """`n` in English: one thousand one."""
    for size, word in ((10**9, "billion"), (10**6, "million"), (1000, "thousand")):
        if n >= size:
            return f"{en(n // size)} {word}" + (f" {en(n % size)}" if n % size else "")
    if n >= 100:
        return f"{WORDS[n // 100]} hundred" + (f" and {en(n % 100)}" if n % 100 else "")
    if n >= 20:
        return TENS[n // 10 - 2] + (f"-{WORDS[n % 10]}" if n % 10 else "")
    return WORDS[n]
