"""The judges of Mosaic Desk: rules on lines and numbers, each with a version; no model.

`literal` compares lines word for word; version 2 converts units first. `quantities` compares
amounts alone, converted, and conditions. All stand on one rung, so none overrules another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from mosaic_system import Trace
from mosaic_world import Case

# A line that opens like this limits the line before it.
MARKERS = ("Only ", "仅")

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?) (litres|ml|kg|mm|decibels|weeks|loads|hours|"
                     r"升|毫升|千克|毫米|分贝|周|次|小时)")  # fmt: skip
_UNITS = {
    "litres": (1000, "ml"), "ml": (1, "ml"), "kg": (1, "kg"), "mm": (1, "mm"),
    "decibels": (1, "dB"), "weeks": (1, "wk"), "loads": (1, "load"), "hours": (1, "h"),
    "升": (1000, "ml"), "毫升": (1, "ml"), "千克": (1, "kg"), "毫米": (1, "mm"),
    "分贝": (1, "dB"), "周": (1, "wk"), "次": (1, "load"), "小时": (1, "h"),
}  # fmt: skip


@dataclass(frozen=True)
class Judge:
    """One judge in one version."""

    name: str
    version: str
    converts: bool
    """Amounts are compared in one unit each."""
    amounts_only: bool
    """Words do not count, apart from conditions; such a judge sees answers only."""


@dataclass(frozen=True)
class Verdict:
    """What a judge says on one relation."""

    relation: str
    verdict: str
    rationale: str
    claim: int | None = None
    evidence: tuple[str, ...] = ()


LITERAL_1 = Judge("literal", "1", converts=False, amounts_only=False)
LITERAL_2 = Judge("literal", "2", converts=True, amounts_only=False)
QUANTITIES_1 = Judge("quantities", "1", converts=True, amounts_only=True)


def converted(line: str) -> str:
    """The line with every amount in the base unit."""

    def base(match: re.Match[str]) -> str:
        factor, unit = _UNITS[match.group(2)]
        return f"{Fraction(match.group(1)) * factor} {unit}"

    return _AMOUNT.sub(base, line)


def amounts(text: str) -> set[str]:
    """The amounts that a text names, in base units."""
    return {converted(match.group(0)) for match in _AMOUNT.finditer(text)}


def covers(judge: Judge, claim: str, answer: str) -> bool:
    """Whether an answer says all of a reference claim."""
    if judge.amounts_only:
        limits = {line for line in claim.split("\n") if line.startswith(MARKERS)}
        return amounts(claim) <= amounts(answer) and limits <= set(answer.split("\n"))
    wanted, said = claim.split("\n"), answer.split("\n")
    if judge.converts:
        wanted, said = [converted(w) for w in wanted], [converted(s) for s in said]
    return set(wanted) <= set(said)


def entails(page: str, claim: str) -> bool:
    """Whether a whole page backs a claim: its lines stand there, none without its condition."""
    lines, said = page.split("\n"), claim.split("\n")
    if not set(said) <= set(lines):
        return False
    limits = [
        after for line, after in pairwise(lines)
        if line in said and after.startswith(MARKERS)
    ]  # fmt: skip
    return set(limits) <= set(said)


def _answers(judge: Judge, case: Case, lang: str, trace: Trace) -> Iterator[Verdict]:
    answer = trace.proposal.text or ""
    covered = [covers(judge, claim.text[lang], answer) for claim in case.claims]
    state = trace.proposal.state
    useful = bool(covered) and all(covered)
    silent = case.state in ("abstain", "fail_closed")
    right = state == case.state and (silent or useful)
    right |= case.state == "abstain" and state == "answer" and useful
    missed = [str(i) for i, yes in enumerate(covered) if not yes]
    why = f"state {state}, expected {case.state}; claims not covered: {', '.join(missed) or 'none'}"
    yield Verdict("correct", "yes" if right else "no", why)
    how = "amounts" if judge.amounts_only else "lines, units converted"
    how = "lines, as written" if not (judge.converts or judge.amounts_only) else how
    for i, yes in enumerate(covered):
        yield Verdict("covered", "yes" if yes else "no", f"compared: {how}", i)


def _support(lang: str, trace: Trace) -> Iterator[Verdict]:
    shown = tuple(packed.unit for packed in trace.context)
    ids = tuple(unit.id for unit in shown)
    for i, said in enumerate(trace.proposal.statements):
        yes = any(entails(unit.text(lang), said.text) for unit in shown)
        yield Verdict("entailed", "yes" if yes else "no", "against whole pages", i, ids)
    for c in trace.citations:
        yes = entails(c.unit.text(lang), trace.proposal.statements[c.claim].text)
        why = "against the whole page cited"
        yield Verdict("cites", "yes" if yes else "no", why, c.claim, (c.unit.id,))


def verdicts(judge: Judge, case: Case, lang: str, trace: Trace) -> list[Verdict]:
    """All that one judge says of one trace."""
    out = [*_answers(judge, case, lang, trace)]
    return out if judge.amounts_only else [*out, *_support(lang, trace)]
