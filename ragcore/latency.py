"""How long traces took, as far as a comparison needs it: the p95 of the time in the system."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore_kernels.layout import F64

_WHOLE = ("end_to_end", "total", "e2e")
"""Stages that time a whole trace."""


def durations(traces: pa.Table | None) -> F64:
    """Time of every trace with timings, in microseconds.

    That of the stage ``end_to_end`` where there is one; else from the first start to the last
    end; else, without starts, the sum of all stages.
    """
    if traces is None or "timings" not in traces.column_names:
        return np.empty(0)
    found = [_one(stages) for stages in traces["timings"].to_pylist() if stages]
    return np.array([value for value in found if value is not None], np.float64)


def _one(stages: list[dict[str, Any]]) -> float | None:
    timed = [s for s in stages if s.get("duration_us") is not None]
    if not timed:
        return None
    for stage in timed:
        if stage.get("stage") in _WHOLE:
            return float(stage["duration_us"])
    starts: list[int] = [s["start_us"] for s in timed if s.get("start_us") is not None]
    if len(starts) == len(timed):
        ends = [start + s["duration_us"] for start, s in zip(starts, timed, strict=True)]
        return float(max(ends) - min(starts))
    return float(sum(s["duration_us"] for s in timed))


def nearest_rank(values: F64, share: float) -> float:
    """Nearest-rank percentile: the least value that `share` of all reach at most; NaN of none."""
    if values.size == 0:
        return math.nan
    return float(np.sort(values)[max(math.ceil(share * values.size), 1) - 1])


def p95(values: F64) -> float:
    """Nearest-rank 95th percentile; NaN without values."""
    return nearest_rank(values, 0.95)
