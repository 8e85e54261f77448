"""Four-way isolation: what closed book, gold context, retrieval and distractors each do to a case.

One generator answers every case four times: CB without context, GC with the labelled context, RC
with what was retrieved, RD with distractors added. A crossed design changes generator and
retriever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.lists import coded
from ragcore.results import RunScores
from ragcore.stats import Paired, differences
from ragcore_kernels.layout import I64

CONDITIONS = ("closed_book", "gold_context", "retrieved", "retrieved_distractors")
SHORT = ("CB", "GC", "RC", "RD")
EVIDENCE, MASKED, FRAGILE, UPSTREAM, READER, LUCKY = (
    "evidence-driven", "parametric-masked", "distractor-fragile", "upstream", "reader",
    "gold-insufficient-or-lucky",
)  # fmt: skip
CLASSES = {
    EVIDENCE: "works because of evidence",
    MASKED: "right without evidence too: says nothing about retrieval; contamination suspect",
    FRAGILE: "noise in the context breaks it",
    UPSTREAM: "corpus to context lost what would have served",
    READER: "labelled context does not help: changing embeddings will not repair it",
    LUCKY: "right with retrieved but not with labelled context: adjudicate label or gold bundle",
}
"""Classes of binary outcomes and how to read them."""
MIXED, INCOMPLETE = "mixed", "incomplete"
"""Languages or repeats of a case in several classes, or no 0/1; a condition without a value."""
DELTAS = {
    "evidence gain": ("RC", "CB"),
    "oracle gain": ("GC", "CB"),
    "retrieval loss": ("GC", "RC"),
    "distractor loss": ("RC", "RD"),
    "reader deficit": ("1", "GC"),
}
"""By name: what is subtracted from what."""

Value = float | None
Four = tuple[Value, ...]
"""CB, GC, RC, RD."""


def classify(cb: bool, gc: bool, rc: bool, rd: bool) -> str:
    """The class of four binary outcomes; every pattern has exactly one."""
    if not gc:
        return LUCKY if rc else READER
    if not rc:
        return UPSTREAM
    if not rd:
        return FRAGILE
    return MASKED if cb else EVIDENCE


def deltas(cb: Value, gc: Value, rc: Value, rd: Value) -> dict[str, Value]:
    """Differences of one case; None where a side has no value."""
    own: dict[str, Value] = {"CB": cb, "GC": gc, "RC": rc, "RD": rd, "1": 1.0}
    out: dict[str, Value] = {}
    for name, (left, right) in DELTAS.items():
        a, b = own[left], own[right]
        out[name] = None if a is None or b is None else a - b
    return out


def class_of(variants: list[Four]) -> str:
    """One class for a case, from its languages; repeats that differ make a value between."""
    found = set()
    for four in variants:
        if any(one is None for one in four):
            return INCOMPLETE
        if any(one not in (0.0, 1.0) for one in four):
            return MIXED
        found.add(classify(*(one == 1.0 for one in four)))
    return found.pop() if len(found) == 1 else MIXED if found else INCOMPLETE


@dataclass(frozen=True)
class Isolation:
    """Four conditions of every case.

    Attributes
    ----------
    values : by case, the four values in the order of `CONDITIONS`; None without one.
    classes : by case, one of `CLASSES`, `MIXED` or `INCOMPLETE`.
    recorded : conditions that any trace records.
    runs : by condition, the run that it is of.
    """

    values: dict[str, Four]
    classes: dict[str, str]
    recorded: tuple[str, ...]
    runs: dict[str, str]

    @property
    def short(self) -> tuple[str, ...]:
        """Abbreviations of the conditions."""
        return SHORT

    @property
    def differences(self) -> tuple[str, ...]:
        """Names of the differences."""
        return tuple(DELTAS)

    @property
    def readings(self) -> dict[str, str]:
        """Classes, and how to read them."""
        return CLASSES

    def deltas(self, case: str) -> dict[str, Value]:
        """Differences of one case."""
        return deltas(*self.values[case])

    def counts(self) -> dict[str, int]:
        """Cases by class; every class is there."""
        out = dict.fromkeys((*CLASSES, MIXED, INCOMPLETE), 0)
        for word in self.classes.values():
            out[word] += 1
        return out

    def paired(self, name: str, level: float = 0.95) -> Paired:
        """Mean of one of `DELTAS` over the cases that have both sides, with exact interval."""
        left, right = DELTAS[name]
        place = {short: i for i, short in enumerate(SHORT)}
        before, after = [], []
        for own in self.values.values():
            a = 1.0 if left == "1" else own[place[left]]
            b = own[place[right]]
            if a is not None and b is not None:
                before.append(b)
                after.append(a)
        return differences(np.array(before, np.float64), np.array(after, np.float64), level)


def isolate(runs: Sequence[RunScores], outcome: str) -> Isolation | None:
    """The four conditions of runs, case by case; None unless two of them are recorded.

    Traces without a condition, or end to end, stand for *retrieved* where no trace says that.

    Raises
    ------
    UsageError
        If two runs record one condition: whose the difference is would not be known.
    """
    where: dict[str, list[tuple[RunScores, I64]]] = {}
    for run in runs:
        codes = coded(run.inputs.trace("condition"), run.inputs.n, (*CONDITIONS, "end_to_end"))
        codes = np.where(run.inputs.absent, -2, np.where(codes == -1, len(CONDITIONS), codes))
        for code, name in enumerate((*CONDITIONS, "end_to_end")):
            at = np.flatnonzero(codes == code)
            if at.size:
                where.setdefault(name, []).append((run, at))
    own = where.pop("end_to_end", [])
    if len(where) and "retrieved" not in where and own:
        where["retrieved"] = own
    recorded = tuple(name for name in CONDITIONS if name in where)
    if len(recorded) < 2:
        return None
    for name in recorded:
        if len(where[name]) > 1:
            raise UsageError(
                f"{name} is recorded by {', '.join(run.name for run, _ in where[name])}",
                "an isolation holds one generator: give one run for each condition",
            )
    table: dict[str, dict[str | None, list[list[Value]]]] = {}
    for place, name in enumerate(CONDITIONS):
        for run, at in where.get(name, ()):
            _collect(table, place, run, at, outcome)
    values, classes = {}, {}
    for case, variants in table.items():
        rows = [tuple(_mean(own) for own in four) for four in variants.values()]
        values[case] = tuple(_mean([row[place] for row in rows]) for place in range(4))
        classes[case] = class_of(rows)
    return Isolation(values, classes, recorded, {n: where[n][0][0].name for n in recorded})


def _collect(table: Any, place: int, run: RunScores, at: I64, outcome: str) -> None:
    """The values of one condition, by case and language."""
    m = next(i for i, one in enumerate(run.measures) if one.text == outcome)
    for i in at.tolist():
        lang = run.lang[i] if run.lang is not None else None
        own = table.setdefault(run.case_names[int(run.case_of[i])], {})
        four = own.setdefault(lang, [[], [], [], []])
        ok = run.states[m, i] == schema.OK
        four[place].append(float(run.values[m, i]) if ok else None)


def _mean(values: list[Value]) -> Value:
    """Mean over languages or repeats; None unless every one has a value."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


@dataclass(frozen=True)
class Crossed:
    """Generators g1, g2 crossed with retrievers r1, r2.

    Attributes
    ----------
    interaction : by case, [s(g2,r2) - s(g2,r1)] - [s(g1,r2) - s(g1,r1)]; None without a value.
    paired : its mean with exact interval and sign-flip test over cases.
    masked : cases where the stronger generator on the weaker retrieval does as well as the weaker
        on the stronger: s(g2,r1) >= s(g1,r2) while coverage(r1) < coverage(r2).
    compared : cases with both scores and both coverages.
    """

    interaction: dict[str, Value]
    paired: Paired
    masked: tuple[str, ...]
    compared: int


def crossed(
    g1r1: Mapping[str, Value], g1r2: Mapping[str, Value], g2r1: Mapping[str, Value],
    g2r2: Mapping[str, Value], coverage_r1: Mapping[str, Value],
    coverage_r2: Mapping[str, Value], level: float = 0.95,
) -> Crossed:  # fmt: skip
    """The interaction of generator and retriever, case by case.

    Parameters
    ----------
    g1r1, g1r2, g2r1, g2r2 : scores by case.
    coverage_r1, coverage_r2 : evidence coverage of either retriever, by case.
    level : of the interval.
    """
    cases = list(dict.fromkeys([*g1r1, *g1r2, *g2r1, *g2r2]))
    before, after = [], []
    out: dict[str, Value] = {}
    for case in cases:
        four = [_value(one.get(case)) for one in (g1r1, g1r2, g2r1, g2r2)]
        whole = [one for one in four if one is not None]
        if len(whole) < 4:
            out[case] = None
            continue
        before.append(whole[1] - whole[0])
        after.append(whole[3] - whole[2])
        out[case] = after[-1] - before[-1]
    masked, compared = [], 0
    for case in cases:
        strong, weak = _value(g2r1.get(case)), _value(g1r2.get(case))
        low, high = _value(coverage_r1.get(case)), _value(coverage_r2.get(case))
        if strong is None or weak is None or low is None or high is None:
            continue
        compared += 1
        if strong >= weak and low < high:
            masked.append(case)
    found = differences(np.array(before, np.float64), np.array(after, np.float64), level)
    return Crossed(out, found, tuple(masked), compared)


def _value(value: Value) -> Value:
    return None if value is None or math.isnan(value) else float(value)
