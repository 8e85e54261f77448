"""How long traces took: the whole of each, its stages, their queues, and what no stage explains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.formats.compute import pc
from ragcore.lists import Lists, lists_of
from ragcore_kernels.layout import F64, I64

WHOLE = ("end_to_end", "total", "e2e")
"""Stages that time a whole trace."""


def durations(traces: pa.Table | None) -> F64:
    """Time of every trace with timings, in microseconds; see `whole`."""
    if traces is None or "timings" not in traces.column_names:
        return np.empty(0)
    found = whole(lists_of(traces["timings"]))
    return found[~np.isnan(found)]


def whole(timings: Lists) -> F64:
    """Time of every trace in microseconds, (n,); NaN where nothing was timed.

    That of the stage ``end_to_end`` where there is one; else from the first start to the last
    end; else, without all starts, the sum of all stages.
    """
    said = first_of(timings, "duration_us", is_whole(timings))
    return np.where(np.isnan(said), span(timings), said)


def of_stage(timings: Lists, stage: str) -> F64:
    """Time of one stage in every trace, (n,) in microseconds; NaN where it was not timed.

    A stage that stands several times, as after a retry or on several shards, took from its first
    start to its last end; without all starts, the sum.
    """
    return span(timings, is_stage(timings, stage))


def is_whole(timings: Lists) -> Any:
    """(n_items,), stages that time a whole trace."""
    return _among(timings, WHOLE)


def is_stage(timings: Lists, stage: str) -> Any:
    """(n_items,), the items of one stage."""
    return _among(timings, (stage,))


def _among(timings: Lists, names: tuple[str, ...]) -> Any:
    found = timings.field("stage")
    if found is None or pa.types.is_null(found.type):
        return np.zeros(len(timings.items), np.bool_)
    return np.asarray(pc.is_in(found, value_set=pa.array(names, found.type))).astype(np.bool_)


def first_of(timings: Lists, name: str, pick: Any) -> F64:
    """A field of the first picked item of each trace that has it, (n,); NaN without one."""
    values = timings.doubles(name)
    at = np.flatnonzero(pick & ~np.isnan(values))
    out = np.full(timings.offsets.size - 1, math.nan)
    owners, first = np.unique(timings.owners[at], return_index=True)
    out[owners] = values[at[first]]
    return out


def span(timings: Lists, pick: Any = None) -> F64:
    """From the first start to the last end of the picked items of each trace, (n,).

    Without all starts it is the sum of their durations; NaN without any.
    """
    took, begun = timings.doubles("duration_us"), timings.doubles("start_us")
    timed = ~np.isnan(took) if pick is None else ~np.isnan(took) & pick
    out = np.full(timings.offsets.size - 1, math.nan)
    owner, took, begun = timings.owners[timed], took[timed], begun[timed]
    if owner.size == 0:
        return out
    firsts = _firsts(owner)
    start = np.minimum.reduceat(begun, firsts)  # NaN if any is
    end = np.maximum.reduceat(begun + took, firsts)
    total = np.add.reduceat(took, firsts)
    out[owner[firsts]] = np.where(np.isnan(start), total, end - start)
    return out


def summed(timings: Lists, name: str, pick: Any = None) -> F64:
    """Sum of a field over the picked items of each trace that have it, (n,); NaN without any."""
    values = timings.doubles(name)
    known = ~np.isnan(values) if pick is None else ~np.isnan(values) & pick
    n = timings.offsets.size - 1
    owner = timings.owners[known]
    total = np.bincount(owner, values[known], n)
    return np.where(np.bincount(owner, minlength=n) > 0, total, math.nan)


def covered(timings: Lists, pick: Any) -> F64:
    """Time in which at least one of the picked items of each trace ran, (n,).

    That is the length of the critical path of stages that wait for each other. Without all starts
    stages are taken as one after the other; NaN without any.
    """
    took, begun = timings.doubles("duration_us"), timings.doubles("start_us")
    timed = pick & ~np.isnan(took)
    out = summed(timings, "duration_us", timed)
    open_ended = np.zeros(out.size, np.bool_)
    open_ended[timings.owners[timed & np.isnan(begun)]] = True
    use = timed & ~open_ended[timings.owners]
    owner = timings.owners[use]
    if owner.size == 0:
        return out
    start, end = begun[use].astype(np.int64), (begun[use] + took[use]).astype(np.int64)
    order = np.lexsort((start, owner))
    owner, start, end = owner[order], start[order], end[order]
    firsts = _firsts(owner)
    least = np.minimum.reduceat(start, firsts)
    counts = np.diff(np.append(firsts, owner.size))
    base = np.repeat(least, counts)
    start, end = start - base, end - base
    # Traces one after another on one line, so that one running maximum serves all.
    room = int(end.max()) + 1
    shift = np.repeat(np.arange(firsts.size, dtype=np.int64), counts) * room
    start, end = start + shift, end + shift
    reached = np.maximum.accumulate(end)
    before = np.concatenate([[np.int64(0)], reached[:-1]])
    fresh = np.maximum(end - np.maximum(start, before), 0)
    out[owner[firsts]] = np.add.reduceat(fresh, firsts)
    return out


def _firsts(owner: I64) -> I64:
    """Where each owner begins, of owners that ascend; at least one."""
    return np.flatnonzero(np.concatenate([[True], np.diff(owner) > 0]))


def nearest_rank(values: F64, share: float) -> float:
    """Nearest-rank percentile: the least value that `share` of all reach at most; NaN of none."""
    if values.size == 0:
        return math.nan
    return float(np.sort(values)[max(math.ceil(share * values.size), 1) - 1])


def p95(values: F64) -> float:
    """Nearest-rank 95th percentile; NaN without values."""
    return nearest_rank(values, 0.95)
