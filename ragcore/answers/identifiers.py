"""Identifiers and versions in a text: addresses, codes of letters and digits, digits in groups.

A code is letters and digits in one run or joined by `- _ . /` (EV-A7-SEC3, GPT-4, 5G). Figures with
a unit (10km), an ordinal (3rd), compounds of a number (24-hour) and words with a number behind
(phase-2) are numbers, not codes. Identifiers are compared without regard to case; v2.1.3, version
2.1.3 and 2.1.3 are one version.
"""

from __future__ import annotations

import re

from ragcore.answers.prepared import Fact

_UNIT_NAMES = """
    km m cm mm nm um μm dm mi ft in yd kg g mg ug μg t lb lbs oz h hr hrs min mins s sec secs ms us
    ns d wk yr yrs y kb mb gb tb pb kib mib gib tib bit bits hz khz mhz ghz thz w kw mw gw kwh mwh
    gwh wh v kv mv a ma mah l ml dl db pt px fps rpm mph kph kmh kn pa kpa mpa hpa bar psi k c f x
    cal kcal j kj mj mol ha p ppm ppb bn tn mn b pm am cc usd eur gbp cny rmb jpy hkd
"""
_UNITS = frozenset(_UNIT_NAMES.split())
_CAPITALS = frozenset("KMWVACFJNLB")
"""Units that are one capital letter; 5G and 3D are codes."""
_WORDS_BEFORE = """
    pre post mid early late top sub non anti under over page pages phase step part chapter section
    fig figure table type class grade level stage tier round day week month year years circa about
    approx since until age aged item question day vol no eq ch sec art version
    rmb cny usd eur gbp jpy hkd inr krw
"""
_PREFIXES = frozenset(_WORDS_BEFORE.split())

_ADDRESS = re.compile(
    r"(?:https?|ftp)://[^\s<>\"')\]}，。；、]*[^\s<>\"')\]}，。；、.,;:!?]"
    r"|\bwww\.[A-Za-z0-9.-]+\.[A-Za-z]{2,}(?:/[^\s<>\"')\]}，。；、.,;:!?]+)?"
    r"|(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
    r"|\b10\.\d{4,9}/[^\s<>\"')\]}，。；、]*[A-Za-z0-9]"
)
_VERSION = re.compile(
    r"(?<![A-Za-z0-9.])(?:v\.?|ver\.?\s?|version\s+|版本号?\s*)"
    r"(?P<a>\d+(?:\.\d+)*(?:[-.+]?(?:alpha|beta|rc|dev|post|preview)[-.]?\d*)?)(?![A-Za-z0-9])"
    r"|(?<![A-Za-z0-9.,-])(?P<b>\d+(?:\.\d+){2,}(?:[-.+]?(?:alpha|beta|rc|dev|post)[-.]?\d*)?)"
    r"(?![A-Za-z0-9]|-\d)"
    r"|(?<![A-Za-z0-9.,-])(?P<c>\d+(?:\.\d+)+)(?=\s*版)",
    re.IGNORECASE,
)
_RUN = re.compile(
    r"(?<![A-Za-z0-9_])(?<!\d[,.:])[A-Za-z0-9_]+(?:[-./+][A-Za-z0-9_]+)*(?![A-Za-z0-9_])"
)
_GROUPS = re.compile(r"\d+(?:-\d+){2,}|0\d{2,3}-\d{6,8}|0\d+")
_NUMERIC = re.compile(
    r"\d[\d,]*(?:\.\d+)*(?:st|nd|rd|th)?(?:[-/][a-z]{2,})*"  # 24-hour, 12th-century, 5/month
    r"|\d+(?:\.\d+)?e[+-]?\d{1,2}"
    r"|[\d.]+(?:[-/][\d.]+)?",
    re.ASCII,
)
_WITH_UNIT = re.compile(r"\d+(?:\.\d+)?([A-Za-zμ]+)(?:/[A-Za-zμ]+\d?|-[a-z]+)*")
_AFTER_WORD = re.compile(r"([A-Za-z]+)([-.]?)(\d[\d.,]*)(?:-[a-z]+)*")


def identifiers(text: str) -> list[Fact]:
    """The identifiers and versions of a prepared text, in order.

    Read it after dates and times are blanked, as those have signs and digits too.
    """
    out: list[Fact] = []
    for match in _ADDRESS.finditer(text):
        out.append(_fact("identifier", match[0], match.start()))
    text = _without(text, out)
    for match in _VERSION.finditer(text):
        value = match["a"] or match["b"] or match["c"]
        out.append(Fact("version", value.lower(), "", match[0], match.start()))
    text = _without(text, out)
    for match in _RUN.finditer(text):
        run = match[0].rstrip("_")
        if is_code(run):
            out.append(_fact("identifier", run, match.start()))
    return sorted(out, key=lambda fact: fact.start)


def is_code(run: str) -> bool:
    """Whether a run of letters, digits and joints is a code, and not a number, a unit or words."""
    has_digit = any("0" <= c <= "9" for c in run)
    if not has_digit:
        return "_" in run.strip("_") and run.replace("_", "").isalpha()
    if not any(c.isalpha() for c in run):
        return _GROUPS.fullmatch(run) is not None
    if _NUMERIC.fullmatch(run):
        return False
    unit = _WITH_UNIT.fullmatch(run)
    if unit and unit[1].lower() in _UNITS:
        return len(unit[1]) == 1 and unit[1].isupper() and unit[1] not in _CAPITALS
    word = _AFTER_WORD.fullmatch(run)
    if word is None:
        return True
    return word[2] != "." and word[1].lower() not in _PREFIXES


def _fact(kind: str, text: str, start: int) -> Fact:
    return Fact(kind, text.casefold(), "", text, start)


def _without(text: str, facts: list[Fact]) -> str:
    for fact in facts:
        end = fact.start + len(fact.text)
        text = text[: fact.start] + "\x00" * len(fact.text) + text[end:]
    return text
