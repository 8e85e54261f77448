"""Load and choice: Little's law and utilisation of a recorded run, the knee of a load test, and
which of several runs no other beats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import latency
from ragcore.aggregates import form_of
from ragcore.errors import UsageError
from ragcore.gatekeeper import Gatekeeper
from ragcore.gates import PASS, parse_gates
from ragcore.lists import Lists, lists_of
from ragcore.pairing import pair
from ragcore.results import RunScores
from ragcore.scores import Scores
from ragcore.stats import differences
from ragcore.summary import case_values
from ragcore_kernels import pareto, queueing
from ragcore_kernels.layout import F64
from ragcore_kernels.queueing import KNEE_FACTOR, Knee, LittleAudit

SECOND = 1e6
"""Microseconds."""


def _timings(traces: pa.Table) -> Lists:
    if "timings" not in traces.column_names:
        raise UsageError("no column timings", "traces with stages that have a start and a duration")
    return lists_of(traces["timings"])


def stamps(traces: pa.Table) -> tuple[F64, F64, int]:
    """Start and end of every trace in seconds, and how many traces lack a start.

    Start and end are those of the stage ``end_to_end`` where it has a start, else of all stages
    together. A trace without a start is left out and counted.

    Raises
    ------
    UsageError
        If there are no timings, or none has a start.
    """
    timings = _timings(traces)
    whole = latency.is_whole(timings)
    start = latency.first_of(timings, "start_us", whole)
    took = latency.first_of(timings, "duration_us", whole)
    begun, lasted = timings.doubles("start_us"), timings.doubles("duration_us")
    n = start.size
    least, most = np.full(n, math.inf), np.full(n, -math.inf)
    np.minimum.at(least, timings.owners, np.where(np.isnan(begun), math.inf, begun))
    np.maximum.at(most, timings.owners, np.nan_to_num(begun + lasted, nan=-math.inf))
    said = ~(np.isnan(start) | np.isnan(took))
    first, last = np.where(said, start, least), np.where(said, start + took, most)
    known = np.isfinite(first) & np.isfinite(last)
    if not known.any():
        raise UsageError("no trace has the start of a stage", "record start_us in timings")
    return first[known] / SECOND, last[known] / SECOND, int((~known).sum())


def little(traces: pa.Table, window: tuple[float, float] | None = None) -> LittleAudit:
    """Hold the traces of a run against Little's law, L = lambda W, in seconds.

    Parameters
    ----------
    traces : a case batch with timings.
    window : start and end in seconds; None for all of the recording.

    Raises
    ------
    UsageError
        As `stamps`; or if a stage ends before it starts.
    """
    starts, ends, _ = stamps(traces)
    try:
        return queueing.little_audit(starts, ends, window)
    except ValueError as error:
        raise UsageError(str(error), "stamps of one clock, durations of 0 or more") from None


def utilisation(traces: pa.Table, stage: str, servers: int = 1) -> float:
    """Share of the time that the pool of one stage was busy: its durations over T x servers.

    T runs from the first start to the last end of the recording; waits in queues are no service,
    so durations must not hold them.

    Raises
    ------
    UsageError
        As `stamps`; if no trace has the stage, or there is no server.
    """
    timings = _timings(traces)
    pick = latency.is_stage(timings, stage)
    if not pick.any():
        raise UsageError(f"no trace times the stage {stage!r}", "a stage of the column timings")
    busy = float(np.nansum(timings.doubles("duration_us")[pick])) / SECOND
    starts, ends, _ = stamps(traces)
    try:
        return queueing.utilisation(busy, float(ends.max() - starts.min()), servers)
    except ValueError as error:
        raise UsageError(str(error), "whole servers from 1, durations of 0 or more") from None


def knee(levels: Mapping[float, pa.Table], factor: float = KNEE_FACTOR) -> Knee:
    """The first concurrency whose p95 grew more than `factor` times as fast as its throughput.

    Parameters
    ----------
    levels : traces of each level of a load test by its concurrency, in any order.
    factor : declared before.

    Raises
    ------
    UsageError
        As `stamps`; or if a level has no time or no trace.
    """
    rising = sorted(levels)
    rates, tails = [], []
    for level in rising:
        found = little(levels[level])
        rates.append(found.throughput)
        tails.append(latency.p95(latency.durations(levels[level])))
    try:
        return queueing.find_knee(rising, rates, tails, factor)
    except ValueError as error:
        raise UsageError(str(error), "traces that took time at every level") from None


# --- choice


@dataclass(frozen=True)
class Surface:
    """Runs by whether another beats them.

    Attributes
    ----------
    rows : one a run, in the order of the scores: `run`, a value for each measure, `place` and
        `why`. Places are ``front``, ``front, within noise``, ``beaten``, ``gate failed`` and
        ``not known``.
    measures, directions : what was looked at; ``max`` or ``min`` each.
    """

    rows: list[dict[str, Any]]
    measures: tuple[str, ...]
    directions: tuple[str, ...]

    @property
    def front(self) -> list[str]:
        """Names of the runs on the front, those within noise too."""
        return [row["run"] for row in self.rows if row["place"].startswith("front")]


def surface(
    scores: Scores, measures: Sequence[str], gates: Sequence[str] = (),
    directions: Mapping[str, str] | None = None, level: float = 0.95,
) -> Surface:  # fmt: skip
    """The runs that no other run beats in every measure, among those that pass all gates.

    Parameters
    ----------
    scores : of all runs, with the measures.
    measures : declared before the runs are looked at: quality, latency, cost, energy.
    gates : expressions that a run must pass to be on the surface at all.
    directions : ``max`` or ``min`` of measures for which neither is better as such.
    level : of the paired intervals of differences; a run that is beaten within them stays on the
        front, marked. A quantile or a ratio has no paired interval, so it decides nothing surely.

    Raises
    ------
    UsageError
        If a measure was not scored or has no direction, or a gate cannot be read.
    """
    lacking = [name for name in measures if name not in scores.measures]
    if lacking:
        raise UsageError(
            f"{', '.join(lacking)} not scored", f"scored: {', '.join(scores.measures)}"
        )
    places = [scores.measures.index(name) for name in measures]
    sides = tuple(_direction(scores, m, directions or {}) for m in places)
    failed: dict[int, str] = {}
    for i, run in enumerate(scores.runs):
        results = Gatekeeper([run], (), level).check(parse_gates(gates))
        broken = [r.gate.text for r in results if r.status != PASS]
        if broken:
            failed[i] = f"gate not passed: {', '.join(broken)}"
    kept = [i for i in range(len(scores.runs)) if i not in failed]
    values = [[case_values(run, m).aggregate()[0] for m in places] for run in scores.runs]

    def interval(a: int, b: int, m: int) -> tuple[float, float]:
        return _paired(scores.runs[kept[a]], scores.runs[kept[b]], places[m], level)

    found = pareto.pareto_front([values[i] for i in kept], sides, interval)
    rows = []
    for i, run in enumerate(scores.runs):
        place, why = "gate failed", failed.get(i, "")
        if i not in failed:
            place, why = _place(scores, found, kept, kept.index(i))
        shown = {
            name: None if math.isnan(v) else v for name, v in zip(measures, values[i], strict=True)
        }
        rows.append({"run": run.name, **shown, "place": place, "why": why})
    return Surface(rows, tuple(measures), sides)


def _direction(scores: Scores, m: int, given: Mapping[str, str]) -> str:
    one = scores.runs[0].measures[m]
    known = {"more": pareto.MAXIMISE, "less": pareto.MINIMISE}
    side = given.get(one.text) or known.get(one.definition.better)
    if side is None or side not in known.values():
        raise UsageError(
            f"{one.text} has no direction" if side is None else f"{one.text}: direction {side!r}",
            f"directions={{{one.text!r}: 'max'}} or 'min'",
        )
    return side


def _place(scores: Scores, found: pareto.Front, kept: list[int], at: int) -> tuple[str, str]:
    if found.unranked[at]:
        return "not known", "a measure has no value"
    if found.beaten_by[at] < 0:
        return "front", ""
    other = scores.runs[kept[int(found.beaten_by[at])]].name
    if found.within_noise[at]:
        return "front, within noise", f"{other} is at least as good in all, but no surely better"
    return "beaten", f"{other} is at least as good in all and surely better in one"


def _paired(a: RunScores, b: RunScores, m: int, level: float) -> tuple[float, float]:
    """Interval of run a less run b over their common cases; NaN where there is none."""
    if not form_of(a.measures[m].aggregate).paired or a.measures[m].aggregate != "mean":
        return math.nan, math.nan
    pairs = pair(b, a)
    ok = pairs.matched[m]
    found = differences(pairs.before[m, ok], pairs.after[m, ok], level)
    low, high = (math.nan if end is None else end for end in (found.low, found.high))
    return low, high
