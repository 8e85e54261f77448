"""Facts that must survive: numbers, dates, identifiers and negators, in texts compared pairwise.

`protected` lists what a text says in these kinds, each stretch read once: the digits of a date are
no numbers, those of an identifier neither. `lost` compares a question with its rewrite,
`unsupported_facts` an answer with the spans that it rests on. Both are about surface: they find
that 2024 became 2025, not that a claim is false.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ragcore.answers.dates import dates, parts, times
from ragcore.answers.identifiers import identifiers
from ragcore.answers.markers import without_markers
from ragcore.answers.negators import negators
from ragcore.answers.numbers import numbers, ordinals
from ragcore.answers.numerals import LONGEST, RUN
from ragcore.answers.prepared import Fact, blank, prepare

KINDS = ("date", "time", "number", "ordinal", "version", "identifier", "negator")
"""Of facts; see `prepared.Fact`."""
CHECKED = ("date", "time", "number", "ordinal")
"""Kinds that `unsupported_facts` looks at."""

MOST_PASSAGES = 999
"""Numbers in brackets up to this are taken for citation markers, where nothing else is said."""


_LONG = re.compile(rf"\d{{{LONGEST + 1},}}|{RUN}{{{LONGEST + 1},}}|[A-Za-z0-9_]{{200,}}")


class Kept(NamedTuple):
    """How many facts are found on the other side, and which are not.

    Attributes
    ----------
    kept, total : facts found, and facts looked for.
    absent : the facts that were not found, in order of the text.
    """

    kept: int
    total: int
    absent: tuple[Fact, ...]


def facts(text: str, kinds: Iterable[str] = KINDS) -> list[Fact]:
    """The facts of `text` in order, none within another."""
    wanted = set(kinds)
    text = prepare(text)
    out: list[Fact] = []
    for read in (_long, dates, times, identifiers, ordinals, numbers):
        found = read(text)
        out += found
        text = blank(text, [(f.start, f.start + len(f.text)) for f in found])
    if "negator" in wanted:
        out += negators(text)
    return sorted((f for f in out if f.kind in wanted), key=lambda fact: fact.start)


def protected(text: str) -> dict[str, list[Fact]]:
    """The facts of `text` by kind, every kind of `KINDS`, each in order."""
    out: dict[str, list[Fact]] = {kind: [] for kind in KINDS}
    for fact in facts(text):
        out[fact.kind].append(fact)
    return out


def lost(question: str, rewritten: str) -> Kept:
    """Facts of `question` that `rewritten` does not have.

    A fact that the question repeats counts once; negators count as often as they stand. A number
    keeps its unit; a part of a date is found in a date that includes it.
    """
    there = facts(rewritten)
    keys = {key for fact in there for key in _keys(fact)}
    left = Counter(fact.value for fact in there if fact.kind == "negator")
    kept, absent, seen = 0, [], set()
    for fact in facts(question):
        if fact.kind == "negator":
            left[fact.value] -= 1
            found = left[fact.value] >= 0
        else:
            key = _key(fact)
            if key in seen:
                continue
            seen.add(key)
            found = key in keys
        kept += found
        absent += [] if found else [fact]
    return Kept(kept, kept + len(absent), tuple(absent))


def unsupported_facts(
    answer: str, spans: Sequence[str], *, n_passages: int = MOST_PASSAGES
) -> Kept:
    """Numbers and dates of `answer` that occur in none of `spans`.

    Each distinct one counts once. A unit must not contradict: 12.5 % is supported by 12.5 in a
    table, not by 12.5 yuan. A part of a date is supported by the date, a time by the same time, a
    date of which day and month could be changed about by either reading.

    Parameters
    ----------
    n_passages : markers that cite a passage from 1 to this are no numbers, in the answer alone.
    """
    units: dict[str, set[str]] = defaultdict(set)
    for span in spans:
        for fact in facts(span, CHECKED):
            for value in parts(fact.value) if fact.kind == "date" else (fact.value,):
                units[value].add(fact.unit)
    kept, absent, seen = 0, [], set()
    for fact in facts(without_markers(answer, n_passages), CHECKED):
        if (fact.value, fact.unit) in seen:
            continue
        seen.add((fact.value, fact.unit))
        found = set().union(*(units.get(each, set()) for each in fact.value.split("|")))
        if found and (not fact.unit or fact.unit in found or "" in found):
            kept += 1
        else:
            absent.append(fact)
    return Kept(kept, kept + len(absent), tuple(absent))


def _long(text: str) -> list[Fact]:
    """Runs too long to be read, as they stand; so the readers' patterns meet short ones only."""
    out = []
    for match in _LONG.finditer(text):
        run = match[0]
        kind = "number" if run.isdecimal() else "identifier"
        out.append(Fact(kind, run.casefold(), "", run, match.start()))
    return out


def _key(fact: Fact) -> tuple[str, ...]:
    """What makes a fact the same: dates and numbers share a key, as 2025年 and 2025 do."""
    if fact.kind in ("date", "number"):
        return fact.value, fact.unit
    return fact.kind, fact.value


def _keys(fact: Fact) -> list[tuple[str, ...]]:
    if fact.kind == "date":
        return [(fact.value, ""), *((part, "") for part in parts(fact.value))]
    return [_key(fact)]
