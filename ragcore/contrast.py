"""One candidate against one baseline: every measure on every slice, paired and tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ragcore import latency, manifests, schema
from ragcore.aggregates import form_of
from ragcore.casewise import reduce
from ragcore.errors import UsageError
from ragcore.measures.definitions import Measure
from ragcore.pairing import Pairs, Unmatched, pair, unmatched
from ragcore.plan import Plan
from ragcore.results import RunScores
from ragcore.saturation import Saturation, saturation
from ragcore.scores import Scores
from ragcore.stats import Paired, differences, geometric_differences, pooled_differences
from ragcore.suites import pool_size
from ragcore.summary import GEOMETRIC_FLOOR, WHOLE, case_values, slices_of
from ragcore.threads import in_threads
from ragcore_kernels.layout import I64


@dataclass(frozen=True)
class Settings:
    """How runs are compared: the plan, slices, level of the intervals, strata."""

    plan: Plan
    by: tuple[str, ...]
    level: float
    stratify: str | None = None


@dataclass
class Cell:
    """One measure on one slice of a pair of runs.

    Attributes
    ----------
    slice, column : its name; the column that makes it, "" for all cases.
    measure, m : the measure, and its number in the arrays of `pairs`.
    paired : the statistics of the matched cases.
    pairs, rows : the cases of both runs; the rankings of either that they come from.
    room : how much the baseline leaves open.
    p_adjusted, family : Holm's p-value and how many tests it guards against; None if not tested.
    """

    slice: str
    column: str
    measure: Measure
    paired: Paired
    pairs: Pairs
    m: int
    room: Saturation
    rows: tuple[I64 | None, I64 | None] = (None, None)
    p_adjusted: float | None = None
    family: int = 0

    @property
    def moved(self) -> bool:
        """Whether the matched cases are not all cases with a value of either run."""
        own = [int((g.states[self.m] == schema.OK).sum()) for g in self.pairs.own]
        return any(n != self.paired.n for n in own)


@dataclass
class Contrast:
    """A baseline and a candidate, compared.

    Attributes
    ----------
    before, after : the runs.
    unmatched : what only one of them has.
    manifest : what they did differently.
    cells : by slice and measure.
    latency : p95 of both in microseconds; NaN of a run that was not timed.
    again : compares two other runs in the same way.
    tainted : why a run is no evidence, see `manifests.tainted`.
    """

    before: RunScores
    after: RunScores
    unmatched: Unmatched
    manifest: manifests.Difference
    latency: tuple[float, float]
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    again: Callable[[RunScores, RunScores], Contrast] | None = None
    tainted: tuple[str, ...] = ()

    def whole(self) -> dict[str, Cell]:
        """The cells over all cases, by measure."""
        return {name: cell for (part, name), cell in self.cells.items() if part == WHOLE}


def of(scores: Scores, left: int, right: int, how: Settings) -> Contrast:
    """Compare two runs of `scores`.

    Raises
    ------
    UsageError
        If there is no column to slice or stratify by.
    """
    pool = pool_size(scores.suite) if scores.suite is not None else None
    return between(scores.runs[left], scores.runs[right], how, pool, scores.threads)


def between(
    before: RunScores, after: RunScores, how: Settings, pool: int | None, threads: int
) -> Contrast:
    """Compare two runs that were scored together.

    Parameters
    ----------
    pool : chunks that can be retrieved, None if unknown.
    threads : workers; no value depends on them.
    """
    times = (
        latency.p95(latency.durations(before.traces)),
        latency.p95(latency.durations(after.traces)),
    )
    out = Contrast(
        before, after, unmatched(before, after, (before.missing, after.missing)),
        manifests.difference(before.manifest, after.manifest),
        times, tainted=tuple(filter(None, (taint_of(before), taint_of(after)))),
        again=lambda left, right: between(left, right, how, pool, threads),
    )  # fmt: skip
    parts = _slices(before, after, how.by)
    most = before.ceilings()
    for m, one in enumerate(before.measures):
        if one.definition.better != "more" or not form_of(one.aggregate).paired:
            most[m] = np.nan  # it has no best value
    jobs: list[tuple[Pairs, int, str, str, Any, Any]] = []
    for name, column, rows in parts:
        pairs = pair(before, after, rows)
        part = slice(None) if rows[0] is None else rows[0]
        tops = reduce(most[:, part], np.zeros(most[:, part].shape, np.int8), before.case_of[part])
        jobs += [(pairs, m, name, column, tops, rows) for m in range(len(before.measures))]
    strata = _strata(before, how.stratify)

    def work(job: tuple[Pairs, int, str, str, Any, Any]) -> Cell:
        pairs, m, name, column, tops, rows = job
        ok = pairs.matched[m]
        codes = strata[pairs.cases[ok]] if strata is not None and name == WHOLE else None
        old, new = pairs.before[m, ok], pairs.after[m, ok]
        if not form_of(before.measures[m].aggregate).paired:
            one = _apart((before, after), m, pairs, rows)
        elif m in pairs.parts:
            parts = np.stack(pairs.parts[m])[:, ok]
            one = pooled_differences(old, new, parts, how.level)
        elif before.measures[m].aggregate == "geometric":
            one = geometric_differences(old, new, GEOMETRIC_FLOOR)
        else:
            one = differences(old, new, how.level, codes)
        if before.measures[m].definition.better == "less":
            one = replace(one, wins=one.losses, losses=one.wins)
        own = pairs.own[0]
        has = own.states[m] == schema.OK
        room = saturation(
            own.values[m, has], tops.values[m, has], before.measures[m].k, pool, how.level
        )
        return Cell(name, column, before.measures[m], one, pairs, m, room, rows)

    for cell in in_threads(work, jobs, threads):
        out.cells[cell.slice, cell.measure.text] = cell
    return out


def taint_of(run: RunScores) -> str:
    """Why a run is no evidence, see `manifests.tainted`; "" if it may be."""
    if "threshold_split" not in run.manifest or run.cases is None:
        return ""
    if "split" not in run.cases.column_names:
        return ""
    given = run.cases["split"].to_pylist()
    return manifests.tainted(run.manifest, {given[r] for r in run.label_of.tolist() if r >= 0})


def _apart(
    runs: tuple[RunScores, RunScores], m: int, pairs: Pairs, rows: tuple[I64 | None, I64 | None]
) -> Paired:
    """A measure whose numbers only compare as wholes: both, and no more than their difference.

    They are of the cases that both runs have traces of; a case has no share in them to pair.
    """
    shared = np.intersect1d(pairs.own[0].keys, pairs.own[1].keys)
    form = form_of(runs[0].measures[m].aggregate)
    ends: list[float] = []
    for run, part in zip(runs, rows, strict=True):
        own = np.arange(run.case_of.size) if part is None else part
        ends.append(case_values(run, m, own[np.isin(run.case_of[own], shared)]).aggregate()[0])
    known = not np.isnan(ends).any()
    return Paired(
        shared.size if known else 0, ends[1] - ends[0] if known else None, None, None, None, None,
        None, 0, 0, 0, *([*ends] if known else [None, None]),
        reason=form.why if known else "no number on both sides",
    )  # fmt: skip


def _slices(
    before: RunScores, after: RunScores, by: tuple[str, ...]
) -> list[tuple[str, str, tuple[I64 | None, I64 | None]]]:
    """Slices of both runs by name: (name, column, rankings of either)."""
    out: list[tuple[str, str, tuple[I64 | None, I64 | None]]] = [(WHOLE, "", (None, None))]
    none = np.empty(0, np.int64)
    for column in by:
        left, right = dict(slices_of(before, column)), dict(slices_of(after, column))
        for name in dict.fromkeys([*left, *right]):
            out.append((name, column, (left.get(name, none), right.get(name, none))))
    return out


def _strata(run: RunScores, column: str | None) -> I64 | None:
    """Stratum of every case code; None without strata."""
    if column is None:
        return None
    out = np.full(len(run.case_names), -1, np.int64)
    for stratum, (_, rows) in enumerate(slices_of(run, column)):
        cases = run.case_of[rows]
        if (clash := (out[cases] >= 0) & (out[cases] != stratum)).any():
            name = run.case_names[int(cases[np.flatnonzero(clash)[0]])]
            raise UsageError(
                f"case {name!r} is in several slices by {column!r}",
                "strata must part the cases: choose a column with one value a case",
            )
        out[cases] = stratum
    return out
