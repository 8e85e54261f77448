"""Checks gates against scores and comparisons: values, ends of intervals, deltas, single traces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.casewise import only, reduce, unscored
from ragcore.contrast import Cell, Contrast
from ragcore.gates import (
    COUNTS,
    COVERAGE,
    FAIL,
    INCONCLUSIVE,
    NOT_CHECKED,
    PASS,
    TRACES,
    Gate,
    Result,
)
from ragcore.hard_gates import NAMES, hard_gates
from ragcore.pairing import pair
from ragcore.results import RunScores
from ragcore.reviewed import reviewed
from ragcore.summary import WHOLE, CaseValues, case_values, slices_of
from ragcore_kernels.layout import F64, I64


class Gatekeeper:
    """Checks gates for the runs that stand before them.

    Parameters
    ----------
    runs : the runs to check; the candidates, where there is a baseline.
    contrasts : comparisons with a baseline, for gates on differences.
    level : of the intervals.
    """

    def __init__(
        self, runs: Sequence[RunScores], contrasts: Sequence[Contrast] = (),
        level: float = 0.95,
    ) -> None:  # fmt: skip
        self.runs, self.contrasts, self.level = runs, contrasts, level
        self._own = {id(run): reviewed(run) for run in runs}
        self._slices: dict[tuple[int, str], list[tuple[str, I64]]] = {}
        self._again: dict[int, Contrast] = {}

    def check(self, gates: Iterable[Gate], by: Sequence[str] = ()) -> list[Result]:
        """Every gate on every run and slice that it is about.

        Parameters
        ----------
        by : columns that ``[*]`` stands for.
        """
        out: list[Result] = []
        for gate in gates:
            if gate.delta:
                out += self._differences(gate)
                continue
            if gate.slice == "*" and not by:
                why = "no slices: say --by COLUMN"
                out += [Result(gate, run.name, "*", FAIL, None, why) for run in self.runs]
                continue
            for run in self.runs:
                if gate.check:  # one trace is enough, whoever wrote its labels
                    for name, rows in self._parts(run, gate, by):
                        out += _conditions(gate, run, name, rows)
                    continue
                own, left_out = self._own[id(run)]
                for name, rows in self._parts(own, gate, by):
                    out.append(_without(self._value(gate, own, name, rows), left_out))
        return out

    def _parts(self, run: RunScores, gate: Gate, by: Sequence[str]) -> list[tuple[str, I64 | None]]:
        """Slices that a gate is about; an unknown value is a slice without a case."""
        if gate.slice == WHOLE:
            return [(WHOLE, None)]
        columns = [gate.column] if gate.column else list(by)
        every: list[tuple[str, I64]] = []
        for column in columns:
            key = id(run), column
            if key not in self._slices:
                self._slices[key] = slices_of(run, column)
            every += self._slices[key]
        if gate.slice.endswith("*"):
            return [*every] or [(gate.slice, np.empty(0, np.int64))]
        found = [part for part in every if part[0] == gate.slice]
        return [*found] or [(gate.slice, np.empty(0, np.int64))]

    # --- values

    def _value(self, gate: Gate, run: RunScores, name: str, rows: I64 | None) -> Result:
        if not gate.measure:
            return self._coverage(gate, run, name, rows)
        m = next(i for i, one in enumerate(run.measures) if one.text == gate.measure)
        part = slice(None) if rows is None else rows
        if gate.field in TRACES:
            return _of_traces(gate, run, m, name, part, self._lost(run))
        cell = case_values(run, m, rows)
        lost = self._lost(run)
        gone = sum(cell.counts[state] for state in ("missing", "disputed", "failed"))
        if gate.field in COUNTS:
            counts = {f"n_{s}": n for s, n in cell.counts.items()} | {"n_cases": cell.n_cases}
            if not cell.n_cases and gate.field != "n_cases":
                return Result(gate, run.name, name, FAIL, None, "no case to count")
            return _judged(gate, run.name, name, float(counts[gate.field]))
        n = cell.values.size + gone + lost
        if gate.field == COVERAGE:
            whole = cell.values.size - cell.partial
            return _judged(gate, run.name, name, whole / n if n else math.nan)
        found = _number(gate.field, cell, self.level)
        if found is None:
            why = "no case with a value" + (f": {gone + lost} without one" if gone + lost else "")
            if cell.values.size:
                why = f"no {gate.field} of {cell.values.size} case(s)"
            return Result(gate, run.name, name, FAIL, None, why)
        plain = _judged(gate, run.name, name, found)
        holes = gone + lost + cell.partial
        if plain.status == FAIL or not holes:
            return plain
        worst = None
        if cell.how == "mean" and gate.rises is not None:
            fill = 0.0 if gate.rises else 1.0
            values = case_values(only(run, m, fill), 0, rows).values
            values = np.append(values, np.full(lost, fill))
            worst = _number(gate.field, replace(cell, values=values), self.level)
        return _at_worst(gate, plain, worst, f"{holes} of {n} cases not scored, or in part")

    def _lost(self, run: RunScores) -> int:
        """Judged cases that `topics=common` leaves out; any of them may belong to a slice."""
        return len(run.missing) if run.policy.get("topics") == "common" else 0

    def _coverage(self, gate: Gate, run: RunScores, name: str, rows: I64 | None) -> Result:
        """Least share, over the measures, of applicable cases that have all their values."""
        part = slice(None) if rows is None else rows
        groups = reduce(run.values[:, part], run.states[:, part], run.case_of[part])
        lost = self._lost(run)
        shares = []
        for states, partial in zip(groups.states, groups.partial, strict=True):
            asked = int((states != schema.NA).sum()) + lost
            whole = int(((states == schema.OK) & ~partial).sum())
            shares.append(whole / asked if asked else math.nan)
        known = [s for s in shares if not math.isnan(s)]
        return _judged(gate, run.name, name, min(known) if known else math.nan)

    # --- differences

    def _differences(self, gate: Gate) -> list[Result]:
        names = {id(run) for run in self.runs}
        chosen = [c for c in self.contrasts if id(c.after) in names]
        if not chosen:
            return [Result(gate, "", gate.slice, FAIL, None, "no baseline to compare with")]
        out = []
        for one, left_out in map(self._reviewed, chosen):
            cells = [
                c for (part, measure), c in one.cells.items()
                if measure == gate.measure and _covers(gate, part)
            ]  # fmt: skip
            if not cells:
                out.append(
                    Result(gate, one.after.name, gate.slice, FAIL, None, "no case in this slice")
                )
            out += [
                _without(self._difference(gate, one, cell), left_out) for cell in cells
            ]  # fmt: skip
        return out

    def _reviewed(self, one: Contrast) -> tuple[Contrast, int]:
        """A comparison without unreviewed cases, and how many these are."""
        after, left_out = self._own[id(one.after)]
        key = id(one.before)
        before, also = self._own[key] = self._own.get(key) or reviewed(one.before)
        if not (left_out or also) or one.again is None:
            return one, 0
        if id(one) not in self._again:
            self._again[id(one)] = one.again(before, after)
        return self._again[id(one)], max(left_out, also)

    def _difference(self, gate: Gate, one: Contrast, cell: Cell) -> Result:
        found, run = cell.paired, one.after.name
        field = "delta" if gate.field == "value" else gate.field
        value = {
            "delta": found.delta, "ci_low": found.low, "ci_high": found.high,
            "p_value": found.p_value, "n_matched": found.n, "wins": found.wins,
            "losses": found.losses, "ties": found.ties,
        }[field]  # fmt: skip
        if found.n == 0 or value is None:
            why = "no case with a value on both sides" if found.n == 0 else found.reason
            return Result(gate, run, cell.slice, FAIL, None, why)
        plain = _judged(gate, run, cell.slice, float(value))
        own, m = cell.pairs.own, cell.m
        scored = int((own[0].states[m] == schema.OK).sum())
        holes = _holes(cell)
        if plain.status == FAIL or not holes:
            return plain
        share = f"{holes} of {scored} cases not scored in the candidate, or in part"
        worst = None
        ends = field in ("delta", "ci_low", "ci_high")
        if ends and gate.rises is not None and cell.measure.aggregate == "mean":
            fill = 0.0 if gate.rises else 1.0
            old, new = _at_its_worst(one, cell, fill)
            whole = CaseValues("mean", new - old, {}, 0, 0, new.size)
            worst = _number("value" if field == "delta" else field, whole, self.level)
            share += f", whose mean would be {new.mean():.4g} against {old.mean():.4g}"
        return _at_worst(gate, plain, worst, share)


def _without(result: Result, left_out: int) -> Result:
    """A result that says how many cases did not enter it, as nobody reviewed them."""
    if not left_out:
        return result
    said = f"{left_out} unreviewed cases never enter a gate"
    return replace(result, reason=f"{result.reason}; {said}" if result.reason else said)


def _holes(cell: Cell) -> int:
    """Cases with a value in the baseline that the candidate lacks it for, at least in part."""
    before, after = cell.pairs.own
    cases, m = cell.pairs.cases, cell.m
    left, right = (np.full(cases.size, schema.MISSING) for _ in range(2))
    left[np.searchsorted(cases, before.keys)] = before.states[m]
    right[np.searchsorted(cases, after.keys)] = after.states[m]
    part = np.zeros(cases.size, np.bool_)
    part[np.searchsorted(cases, after.keys)] = after.partial[m]
    return int(((left == schema.OK) & (unscored(right) | part)).sum())


def _at_its_worst(one: Contrast, cell: Cell, fill: float) -> tuple[F64, F64]:
    """Values of both runs, what the candidate lacks set to `fill`: pairs, then lost cases."""
    pairs = pair(only(one.before, cell.m), only(one.after, cell.m, fill), cell.rows)
    own, there = pairs.own
    has = own.keys[own.states[0] == schema.OK]
    lost = np.setdiff1d(has, there.keys)  # not in the candidate at all
    old, new = (side[0, pairs.matched[0]] for side in (pairs.before, pairs.after))
    gone = own.values[0][np.searchsorted(own.keys, lost)]
    return np.append(old, gone), np.append(new, np.full(lost.size, fill))


def _covers(gate: Gate, part: str) -> bool:
    if gate.slice == "*":
        return part != WHOLE
    if gate.slice.endswith("=*"):
        return part.startswith(gate.slice[:-1])
    return part == gate.slice


def _number(field: str, cell: CaseValues, level: float) -> float | None:
    """One field of a measure on case values; None where there is none."""
    if cell.values.size == 0:
        return None
    if field in ("value", "mean", "numerator", "denominator"):
        value, numerator, denominator = cell.aggregate()
        found = {"numerator": numerator, "denominator": denominator}.get(field, value)
        return None if found is None or math.isnan(found) else found
    interval = cell.interval(level)
    if not interval.method:
        return None
    end = interval.low if field == "ci_low" else interval.high
    return None if math.isnan(end) else end


def _of_traces(gate: Gate, run: RunScores, m: int, name: str, part: Any, lost: int) -> Result:
    """A hard condition: on every single trace, in every repeat and language."""
    values = run.values[m, part][run.states[m, part] == schema.OK]
    bad = int(unscored(run.states[m, part]).sum()) + lost
    if values.size == 0:
        return Result(gate, run.name, name, FAIL, None, "no trace with a value")
    found = {
        "count": float((values != 0).sum()), "min": float(values.min()), "max": float(values.max())
    }[gate.field]  # fmt: skip
    plain = _judged(gate, run.name, name, found)
    if plain.status == FAIL:
        at = np.flatnonzero(run.states[m, part] == schema.OK)
        worst = at[values.argmin() if gate.field == "min" else values.argmax()]
        case = run.case_names[int(run.case_of[part][worst])]
        return Result(gate, run.name, name, FAIL, found, f"for example case {case!r}")
    if bad:
        return Result(gate, run.name, name, INCONCLUSIVE, found, f"{bad} trace(s) not scored")
    return plain


def _conditions(gate: Gate, run: RunScores, name: str, rows: I64 | None) -> list[Result]:
    """Hard conditions on every single trace; the bare gate passes over what cannot be checked."""
    bare = gate.check == "*"
    out = []
    for one in hard_gates(run, NAMES if bare else (gate.check,), rows):
        shown = replace(gate, text=f"hard.{one.name} == 0") if bare else gate
        if one.why:
            status = NOT_CHECKED if bare else FAIL
            out.append(Result(shown, run.name, name, status, None, one.sentence()))
            continue
        value = float(len(one.violations))
        status, reason = PASS if gate.holds(value) else FAIL, ""
        if one.violations:
            reason = one.sentence()
        elif one.checked < one.of:
            reason = one.sentence()
            status = INCONCLUSIVE if status == PASS else status
        out.append(Result(shown, run.name, name, status, value, reason))
    if all(one.status == NOT_CHECKED for one in out):
        return [Result(gate, run.name, name, FAIL, None, "no hard condition can be checked")]
    return out


def _judged(gate: Gate, run: str, name: str, value: float) -> Result:
    if math.isnan(value):
        return Result(gate, run, name, FAIL, None, "no value")
    held = gate.holds(value)
    return Result(gate, run, name, PASS if held else FAIL, value)


def _at_worst(gate: Gate, plain: Result, worst: float | None, share: str) -> Result:
    """A pass, unless the cases without a value could turn it."""
    if worst is not None and gate.holds(worst):
        return Result(
            gate, plain.run, plain.slice, PASS, plain.value, f"{share}; worst case {worst:.4g}"
        )
    why = f"{share}; worst case {worst:.4g}" if worst is not None else share
    return Result(gate, plain.run, plain.slice, INCONCLUSIVE, plain.value, why)
