"""What `ragcore.compare` gives: rows with deltas and verdicts, pairs case by case, gates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema, summary
from ragcore.aggregates import form_of
from ragcore.conflicts import sign_conflicts
from ragcore.contrast import Cell, Contrast, Settings
from ragcore.diagnosis import first
from ragcore.errors import UsageError
from ragcore.gatekeeper import Gatekeeper
from ragcore.gates import Result, gates_of, parse_gates, registered
from ragcore.plan import TOKENS
from ragcore.reviewed import reviewed
from ragcore.scores import Scores
from ragcore.stats import SIDES, TEST
from ragcore.verdict import Verdict, decide, taint
from ragcore_kernels.families import holm

COMPARISON_KEY = b"ragcore.comparison"


class Comparison:
    """Candidates against baselines.

    Attributes
    ----------
    scores : all runs, the baseline first.
    contrasts : one a pair of runs.
    settings : plan, slices, level.
    verdicts : of each contrast.
    """

    def __init__(self, scores: Scores, contrasts: list[Contrast], settings: Settings) -> None:
        self.scores, self.contrasts, self.settings = scores, contrasts, settings
        self._registered = registered(settings.plan)
        self._first: dict[int, Any] = {}
        kind = scores.suite.kind if scores.suite is not None else ""
        hard = parse_gates(settings.plan.hard, hard=True)
        self.verdicts: list[Verdict] = []
        for one in contrasts:
            keeper = Gatekeeper([one.after], [one], settings.level)
            broken = keeper.check(hard, settings.by)
            violated = tuple(
                f"{r.gate.text} ({r.slice}: {r.value if r.value is not None else 'no value'})"
                for r in broken if not r.met
            )  # fmt: skip
            whole = one.whole()
            less = (n for n, c in whole.items() if c.measure.definition.better == "less")
            found = decide(
                settings.plan, {name: c.paired for name, c in whole.items()},
                {name: c.room for name, c in whole.items()}, violated, one.latency, kind,
                frozenset(less), _tokens(whole), reviewed(one.after)[1],
            )  # fmt: skip
            self.verdicts.append(taint(found, one.tainted))
        self._adjust()

    def _adjust(self) -> None:
        """Holm's p-values: over the deciding measure of several candidates, and over all others."""
        first, others = [], []
        for one, verdict in zip(self.contrasts, self.verdicts, strict=True):
            deciding = verdict.primary or next(iter(self.settings.plan.primary), "")
            for name, cell in one.whole().items():
                (first if name == deciding else others).append(cell)
        for family in (first, others):
            tested = [cell for cell in family if cell.paired.p_value is not None]
            adjusted = holm([cell.paired.p_value for cell in tested])
            for cell, p in zip(tested, adjusted, strict=True):
                cell.p_adjusted, cell.family = float(p), len(tested)

    def verdict(self, candidate: str | int = 0) -> Verdict:
        """What the plan says of a candidate, by name or place."""
        if isinstance(candidate, int):
            return self.verdicts[candidate]
        names = [one.after.name for one in self.contrasts]
        if candidate not in names:
            raise UsageError(f"no candidate {candidate!r}", f"candidates: {', '.join(names)}")
        return self.verdicts[names.index(candidate)]

    def cell(self, measure: str, slice: str = summary.WHOLE, candidate: int = 0) -> Cell:
        """One measure on one slice of one candidate."""
        cells = self.contrasts[candidate].cells
        if (slice, measure) not in cells:
            parts, names = (list(dict.fromkeys(key[i] for key in cells)) for i in range(2))
            raise UsageError(
                f"no measure {measure!r} on slice {slice!r}",
                f"measures: {', '.join(names)}; slices: {', '.join(parts)}",
            )
        return cells[slice, measure]

    def rows(self) -> list[dict[str, Any]]:
        """Rows of `schema.SUMMARY`, the baseline's own first, and what a table shows besides.

        The rest are `before` and `after` (means over matched cases), `wins`, `losses`, `ties`,
        `delta_method`, `p_method`, `p_adjusted`.
        """
        own = summary.summarise(
            self.scores.runs, self.settings.by, self.settings.level, self.scores.threads
        )
        by_run: dict[str, list[dict[str, Any]]] = {}
        for row in own:
            by_run.setdefault(row["run"], []).append(row)
        out = [dict(row) for row in by_run[self.contrasts[0].before.name]]
        for row in out:
            cell = self.contrasts[0].cells.get((row["slice"], row["measure"]))
            row["saturation"] = (str(cell.room) or None) if cell else None
        for one, verdict in zip(self.contrasts, self.verdicts, strict=True):
            conflicts = sign_conflicts(one.cells)
            mine = {(row["slice"], row["measure"]): row for row in by_run[one.after.name]}
            for key, cell in one.cells.items():
                row = mine.get(key) or _empty(one.after.name, cell)
                out.append(self._row(row, one, cell, verdict, conflicts.get(cell.measure.text)))
        return out

    def _place_of(self, verdict: Verdict) -> str | None:
        """The measure whose row bears the verdict; the first one where none was registered."""
        if verdict.primary:
            return verdict.primary
        primary = [m for m in self.settings.plan.primary if m in self.scores.measures]
        if not primary and verdict.verdict:
            primary = self.scores.measures
        return next(iter(primary), None)

    def _row(
        self, row: dict[str, Any], one: Contrast, cell: Cell, verdict: Verdict, conflict: str | None
    ) -> dict[str, Any]:
        found = cell.paired
        whole = cell.slice == summary.WHOLE
        decides = whole and cell.measure.text == self._place_of(verdict)
        remarks = self._remarks(cell, conflict if whole else None)
        notes = [row["note"]] if row["note"] else []
        notes += [*_tests(cell), *remarks]
        if decides:
            notes.append("; ".join(verdict.reasons))
        return {
            **row,
            "baseline": one.before.name,
            "delta": found.delta,
            "delta_low": found.low,
            "delta_high": found.high,
            "p_value": found.p_value,
            "n_matched": found.n,
            "saturation": str(cell.room) or None,
            "verdict": verdict.verdict or None if decides else None,
            "note": "; ".join(notes) or None,
            "before": found.before,
            "after": found.after,
            "wins": found.wins,
            "losses": found.losses,
            "ties": found.ties,
            "delta_method": found.method,
            "p_method": found.p_method,
            "p_adjusted": cell.p_adjusted if whole else None,
            "remarks": remarks,
        }

    def _remarks(self, cell: Cell, conflict: str | None) -> list[str]:
        """What must not be overlooked beside a difference."""
        found, out = cell.paired, []
        if found.reason:
            out.append(found.reason)
        if cell.measure.aggregate in ("sum", "total"):
            out.append("per case")
        if cell.slice == summary.WHOLE and self.settings.stratify:
            plain = cell.measure.aggregate in ("mean", "sum", "total")
            out.append(f"{'' if plain else 'not '}stratified by {self.settings.stratify}")
        if cell.slice != summary.WHOLE and found.n < summary.FEW_CASES:
            out.append("descriptive: fewer than 10 cases")
        moved = found.wins + found.losses > 0
        if (
            moved
            and found.low is not None
            and found.high is not None
            and (found.low <= 0.0 <= found.high)
        ):
            out.append("interval includes 0")
        by_case = form_of(cell.measure.aggregate).paired
        if cell.moved and by_case and found.before is not None and found.after is not None:
            out.append(
                f"matched cases only: {_fraction(found.before, found.n)} against "
                f"{_fraction(found.after, found.n)}"
            )
        if conflict:
            out.append(conflict)
        if self._registered is not None and cell.measure.text not in self._registered:
            out.append("exploratory")
        return out

    def summary(self) -> pa.Table:
        """`schema.SUMMARY`, with what was compared and decided in the schema metadata."""
        rows = [{name: row.get(name) for name in schema.SUMMARY.names} for row in self.rows()]
        table = self.scores.signed(pa.Table.from_pylist(rows, schema=schema.SUMMARY))
        return self._signed(table)

    def cases(self, measure: str | None = None) -> pa.Table:
        """`schema.PAIRS`: every case of every measure, or of one: who won, by how much."""
        rows: list[dict[str, Any]] = []
        for one in self.contrasts:
            for name, cell in one.whole().items():
                if measure in (None, name):
                    rows += _pairs(one, cell)
        return self._signed(self.scores.signed(pa.Table.from_pylist(rows, schema=schema.PAIRS)))

    def changed(self, measure: str, candidate: int = 0) -> tuple[list[str], list[str]]:
        """Ids of the cases that a candidate won and lost, the largest differences first."""
        one = self.contrasts[candidate]
        cell = one.whole()[measure]
        deltas = _gain(cell) * (cell.pairs.after[cell.m] - cell.pairs.before[cell.m])
        order = np.argsort(-np.nan_to_num(np.abs(deltas)), kind="stable")
        names = one.after.case_names
        return (
            [names[cell.pairs.cases[i]] for i in order if deltas[i] > 0],
            [names[cell.pairs.cases[i]] for i in order if deltas[i] < 0],
        )

    def layers(self, cases: Iterable[str], candidate: int = 0) -> dict[str, tuple[str, str]]:
        """First failing layer of cases in the baseline and in a candidate.

        Empty unless both runs are traces that a layered measure was scored of.
        """
        one = self.contrasts[candidate]
        sides = one.before, one.after
        if not all(first.readable(run) for run in sides):
            return {}
        for run in sides:
            if id(run) not in self._first:
                self._first[id(run)] = first.first_failing(run)
        found = [self._first[id(run)] for run in sides]
        out = {}
        for case in cases:
            code = one.after.code_of[case]
            before, after = (
                first.of_case(run, labels, code) for run, labels in zip(sides, found, strict=True)
            )
            out[case] = before or "unknown", after or "unknown"
        return out

    def check(self, gates: Iterable[str] = ()) -> list[Result]:
        """Check gates, and those of the plan before them, for every candidate."""
        asked = gates_of(self.settings.plan, gates)
        runs = list({id(one.after): one.after for one in self.contrasts}.values())
        first = [c for c in self.contrasts if c.before is self.contrasts[0].before]
        keeper = Gatekeeper(runs, first, self.settings.level)
        return keeper.check(asked, self.settings.by)

    def _drawn(self) -> int:
        """How many intervals and p-values rest on random numbers after all; each says so."""
        return sum(
            method is not None and method.startswith("monte-carlo")
            for one in self.contrasts for cell in one.cells.values()
            for method in (cell.paired.method, cell.paired.p_method)
        )  # fmt: skip

    def _signed(self, table: pa.Table) -> pa.Table:
        about = {
            "level": self.settings.level,
            "stratified_by": self.settings.stratify,
            "plan": {"source": self.settings.plan.source, "sha256": self.settings.plan.sha256},
            "test": {
                "name": TEST, "sidedness": SIDES, "resamples": "exact", "seed": None,
                "correction": "Holm", "drawn": self._drawn(),
            },
            "pairs": [
                {
                    "baseline": one.before.name, "candidate": one.after.name,
                    "manifest": one.manifest.sentence(), "single_change": one.manifest.single,
                    "unmatched": one.unmatched.sentences(), "verdict": verdict.verdict,
                    "primary": verdict.primary, "reasons": list(verdict.reasons),
                }
                for one, verdict in zip(self.contrasts, self.verdicts, strict=True)
            ],
        }  # fmt: skip
        metadata = {**(table.schema.metadata or {}), COMPARISON_KEY: json.dumps(about).encode()}
        return table.replace_schema_metadata(metadata)


def _tokens(whole: dict[str, Cell]) -> tuple[float, float]:
    """Mean tokens of both contexts over the cases that have them on both sides; else NaN."""
    cell = whole.get(TOKENS)
    if cell is None or cell.paired.before is None or cell.paired.after is None:
        return math.nan, math.nan
    return cell.paired.before, cell.paired.after


def _tests(cell: Cell) -> list[str]:
    """How a difference was tested."""
    found, out = cell.paired, []
    if found.n and form_of(cell.measure.aggregate).paired:
        out.append(f"{found.wins} won, {found.losses} lost, {found.ties} tied")
    if found.method:
        out.append(f"delta {found.method}")
    if found.p_method:
        out.append(f"p two-sided sign-flip {found.p_method}")
    if cell.p_adjusted is not None and cell.family > 1:
        out.append(f"Holm p {cell.p_adjusted:.4g} of {cell.family}")
    return out


def _gain(cell: Cell) -> float:
    """Sign of a difference that is a gain."""
    return -1.0 if cell.measure.definition.better == "less" else 1.0


def _fraction(mean: float, n: int) -> str:
    """A mean over n cases as a fraction, whole where the sum is."""
    total = mean * n
    near = round(total)
    shown = str(near) if abs(total - near) < 1e-9 else f"{total:.4f}".rstrip("0")
    return f"{shown}/{n}"


def _empty(run: str, cell: Cell) -> dict[str, Any]:
    """The row of a slice that the candidate lacks altogether."""
    row: dict[str, Any] = dict.fromkeys(schema.SUMMARY.names)
    counts = {f"n_{state}": 0 for state in schema.STATES}
    return {**row, "run": run, "measure": cell.measure.text, "slice": cell.slice, "n_cases": 0,
            **counts, "note": "no case in this slice"}  # fmt: skip


def _pairs(one: Contrast, cell: Cell) -> list[dict[str, Any]]:
    """One measure, case by case."""
    before, after = cell.pairs.own
    names, m = one.after.case_names, cell.m
    lefts = dict(zip(before.keys.tolist(), range(before.keys.size), strict=True))
    rights = dict(zip(after.keys.tolist(), range(after.keys.size), strict=True))
    out = []
    for i, code in enumerate(cell.pairs.cases.tolist()):
        left, right = lefts.get(code), rights.get(code)
        matched = bool(cell.pairs.matched[m, i])
        old, new = float(cell.pairs.before[m, i]), float(cell.pairs.after[m, i])
        outcome = "unpaired"
        if matched:
            gain = _gain(cell) * (new - old)
            outcome = "win" if gain > 0 else "loss" if gain < 0 else "tie"
        out.append(
            {
                "run": one.after.name, "case_id": names[code], "measure": cell.measure.text,
                "value": new if matched else _value(after, m, right),
                "state": _state(after, m, right), "baseline": one.before.name,
                "baseline_value": old if matched else _value(before, m, left),
                "baseline_state": _state(before, m, left),
                "delta": new - old if matched else None, "outcome": outcome,
            }
        )  # fmt: skip
    return out


def _value(groups: Any, m: int, at: int | None) -> float | None:
    if at is None or groups.states[m, at] != schema.OK:
        return None
    return float(groups.values[m, at])


def _state(groups: Any, m: int, at: int | None) -> str | None:
    return None if at is None else schema.STATES[groups.states[m, at]]
