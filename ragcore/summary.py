"""Scores -> one row a run, measure and slice: numerators, denominators, exact intervals.

The unit is the semantic case: languages and repeats are averaged inside it first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.aggregates import GEOMETRIC_FLOOR, NO_INTERVAL, Parts, aggregate, form_of
from ragcore.casewise import Groups, between, by_case, counts_of, reduce
from ragcore.errors import UsageError
from ragcore.measures.definitions import Measure
from ragcore.results import RunScores
from ragcore.threads import in_threads
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.resample import Interval

__all__ = [
    "FEW_CASES", "GEOMETRIC_FLOOR", "NO_INTERVAL", "WHOLE", "CaseValues", "aggregate",
    "case_values", "slices_of", "summarise",
]  # fmt: skip

WHOLE = "all"
FEW_CASES = 10


@dataclass
class CaseValues:
    """One measure on one slice, a value for each case.

    Attributes
    ----------
    how : how they become one number: the name of a form, see `aggregates.form_of`.
    values : of the cases that have one.
    counts : cases by state.
    differing, partial, n_cases : cases whose variants differ; cases with a value that lack it in
        some language or repeat; all cases.
    parts : what the form needs besides, see `aggregates.Form.gather`.
    spread : standard deviations between the repeats of a case in one language, and between cases;
        None where repeats do not differ.
    """

    how: str
    values: F64
    counts: dict[str, int]
    differing: int
    partial: int
    n_cases: int
    parts: Parts | None = None
    spread: tuple[float, float] | None = None

    def aggregate(self) -> tuple[float, float, float | None]:
        """(mean, numerator, denominator), see `aggregate`."""
        return aggregate(self.how, self.values, self.parts)

    def interval(self, level: float) -> Interval:
        """Exact interval of the number; without method where there is none.

        One case says nothing of how cases vary.
        """
        return form_of(self.how).interval(self.values, self.parts or (), level)


def slices_of(run: RunScores, by: str) -> list[tuple[str, I64]]:
    """Slices of a run by one column: (name, rankings), in order of first appearance.

    The column is one of the suite's cases, a key of their `slices`, or one of the run; a ranking
    may be in several slices where the column holds lists. Nulls are a slice of their own.

    Raises
    ------
    UsageError
        If there is no such column.
    """
    if by in run.slices:
        return run.slices[by]
    values = _column(run, by)
    members: dict[str, list[int]] = {}
    for ranking, value in enumerate(values):
        for one in (value or [None]) if isinstance(value, list) else [value]:
            members.setdefault(f"{by}={_text(one)}", []).append(ranking)
    run.slices[by] = [(name, np.array(rows, np.int64)) for name, rows in members.items()]
    return run.slices[by]


def _text(value: Any) -> str:
    if value is None:
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _column(run: RunScores, by: str) -> list[Any]:
    n = run.case_of.size
    if by == "lang" and run.lang is not None:
        return list(run.lang)
    if run.cases is not None:
        names = run.cases.column_names
        if by in names and not is_nested(run.cases.schema.field(by).type):
            return _taken(run.cases[by].to_pylist(), run.label_of)
        if "slices" in names:
            maps = [dict(m or ()) for m in run.cases["slices"].to_pylist()]
            if any(by in m for m in maps):
                return _taken([m.get(by) for m in maps], run.label_of)
    if by == "repeat" and run.repeat is not None:
        return list(run.repeat)
    traces = run.traces
    has = traces is not None and by in traces.column_names
    if traces is not None and has and not is_nested(traces.schema.field(by).type):
        return _taken(traces[by].to_pylist(), run.row_of)
    if by == "case_id":
        return [run.case_names[c] for c in run.case_of.tolist()]
    known: list[str] = []
    for table in (run.cases, run.traces):
        known += [f.name for f in table.schema if _sliceable(f.type)] if table is not None else []
    hint = (
        f"columns to slice by: {', '.join(dict.fromkeys(known))}"
        if known
        else ("judgements alone have no columns to slice by; give a --suite")
    )
    raise UsageError(f"no column {by!r} to slice by ({n} rankings of run {run.name!r})", hint)


def is_nested(kind: pa.DataType) -> bool:
    """Whether a column holds more than values and lists of values; such a one slices nothing."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return pa.types.is_nested(kind)


def _sliceable(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)


def _taken(column: list[Any], rows: I64) -> list[Any]:
    return [column[r] if r >= 0 else None for r in rows.tolist()]


def case_values(run: RunScores, m: int, rankings: I64 | None = None) -> CaseValues:
    """One measure on every case of a slice, and the cases by state."""
    part = slice(None) if rankings is None else rankings
    one = slice(m, m + 1)
    groups = reduce(run.values[one, part], run.states[one, part], run.case_of[part])
    return _cell(run, m, rankings, groups, 0)


def _cell(run: RunScores, m: int, rankings: I64 | None, groups: Groups, row: int) -> CaseValues:
    states, how = groups.states[row], run.measures[m].aggregate
    gather = form_of(how).gather
    return CaseValues(
        how, groups.values[row][states == schema.OK], counts_of(states),
        int(groups.differing[row].sum()), int(groups.partial[row].sum()), groups.keys.size,
        gather(run, m, rankings) if gather is not None else None,
        between(run, m, rankings) if groups.differing[row].any() else None,
    )  # fmt: skip


def summarise(
    runs: list[RunScores],
    by: tuple[str, ...] = (),
    level: float = 0.95,
    threads: int = 1,
    registered: frozenset[str] | None = None,
) -> list[dict[str, Any]]:
    """Rows of `schema.SUMMARY`: one a run, measure and slice; slice `all` is the whole.

    Parameters
    ----------
    by : columns to slice by, each on its own.
    level : of the intervals.
    threads : workers; no number depends on them.
    registered : measures that were registered before; others are marked exploratory.
    """
    found: list[tuple[RunScores, str, int, CaseValues]] = []
    for run in runs:
        slices: list[tuple[str, I64 | None]] = [(WHOLE, None)]
        for column in by:
            slices += slices_of(run, column)
        for name, rankings in slices:
            groups = by_case(run, rankings)
            found += [
                (run, name, m, _cell(run, m, rankings, groups, m)) for m in range(len(run.measures))
            ]
    intervals = in_threads(lambda one: one[3].interval(level), found, threads)
    rows = [_row(*one, interval) for one, interval in zip(found, intervals, strict=True)]
    for row in rows:
        if registered is not None and row["measure"] not in registered:
            row["note"] = "; ".join(filter(None, [row["note"], "exploratory"]))
    return [{name: row.get(name) for name in schema.SUMMARY.names} for row in rows]


def _row(run: RunScores, name: str, m: int, cell: CaseValues, interval: Interval) -> dict[str, Any]:
    one = run.measures[m]
    mean, numerator, denominator = cell.aggregate()
    return {
        "run": run.name,
        "measure": one.text,
        "slice": name,
        "n_cases": cell.n_cases,
        **{f"n_{state}": count for state, count in cell.counts.items()},
        "numerator": numerator,
        "denominator": denominator,
        "mean": None if math.isnan(mean) else mean,
        "ci_low": None if math.isnan(interval.low) else interval.low,
        "ci_high": None if math.isnan(interval.high) else interval.high,
        "ci_method": interval.method or None,
        "note": "; ".join(_notes(run, name, one, cell, interval)) or None,
    }


def _notes(
    run: RunScores, name: str, one: Measure, cell: CaseValues, interval: Interval
) -> list[str]:
    notes, form = [], form_of(one.aggregate)
    if zeroed := run.zeroed.get(one.text) if name == WHOLE else None:
        notes.append(f"{zeroed} without a relevant document count 0")
    if cell.partial:
        notes.append(f"{cell.partial} lack a value in some language or repeat")
    if cell.differing and form.paired:
        notes.append(f"{cell.differing} differ between variants")
        if cell.spread:
            notes.append("sd {:.4f} between repeats, {:.4f} between cases".format(*cell.spread))
    if form.note:
        notes.append(form.note)
    if form.remarks is not None:
        notes += form.remarks(cell.parts or (), interval, cell.counts["ok"])
    n = cell.counts["ok"]
    if name != WHOLE and n < FEW_CASES:
        notes.append("descriptive: fewer than 10 cases")
    if one.aggregate in ("sum", "total") or n == 0 or not form.paired:
        return notes
    if n == 1:
        notes.append("n=1: no interval")
    elif cell.values.min() == cell.values.max():
        notes.append(f"all {n} cases equal: the interval has no width")
    return notes
