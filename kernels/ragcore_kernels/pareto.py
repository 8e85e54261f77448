"""Which runs no other run beats in everything, when differences have intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOOL = NDArray[np.bool_]
I64 = NDArray[np.int64]

MAXIMISE, MINIMISE = "max", "min"
"""Directions of a measure: more is better, or less is."""

DifferenceInterval = Callable[[int, int, int], tuple[float, float]]
"""``interval(a, b, m)``: ends of the paired interval of measure m of run a less that of run b."""


@dataclass(frozen=True)
class Front:
    """Runs by whether another beats them.

    Parameters
    ----------
    on_front : (n_runs,), not beaten, or beaten within noise only.
    within_noise : (n_runs,), on the front although another run is at least as good in every
        measure: no difference is beyond its interval. To be marked.
    beaten_by : (n_runs,), position of a run that beats this one, beyond noise if there is such a
        one, else within it; -1 if none.
    unranked : (n_runs,), a value is nan, so that nothing can be said.
    """

    on_front: BOOL
    within_noise: BOOL
    beaten_by: I64
    unranked: BOOL


def _checked(values: ArrayLike, directions: Sequence[str]) -> NDArray[np.float64]:
    """Values with more as better throughout."""
    array = np.array(values, dtype=np.float64)
    if array.shape == (0,):
        array = array.reshape(0, len(directions))
    if array.ndim != 2 or array.shape[1] != len(directions):
        shape = f"one column for each of {len(directions)} directions"
        raise ValueError(f"values have shape {array.shape}; expected a row for each run, {shape}")
    if not directions:
        raise ValueError("directions are empty; expected one measure at least")
    for m, direction in enumerate(directions):
        if direction not in (MAXIMISE, MINIMISE):
            raise ValueError(f"directions[{m}] is {direction!r}; expected 'max' or 'min'")
        if direction == MINIMISE:
            array[:, m] = -array[:, m]
    return array


def _beyond_noise(
    a: int, b: int, directions: Sequence[str], interval: DifferenceInterval | None
) -> bool:
    """Whether some measure of run a is better than that of b, and surely so."""
    if interval is None:
        return True
    for m, direction in enumerate(directions):
        low, high = interval(a, b, m)
        better = low > 0.0 if direction == MAXIMISE else high < 0.0
        if better and not (math.isnan(low) or math.isnan(high)):
            return True
    return False


def pareto_front(
    values: ArrayLike, directions: Sequence[str], interval: DifferenceInterval | None = None
) -> Front:
    """The runs that no other run dominates.

    Parameters
    ----------
    values : (n_runs, n_measures); nan for a value that is not known. Infinities are values.
    directions : (n_measures,), ``"max"`` or ``"min"``, declared before the runs are looked at.
    interval : paired interval of a difference, asked for only where one run dominates another;
        None if values have no noise. An end that is nan leaves the difference in doubt.

    Returns
    -------
    Run a dominates run b if it is at least as good in every measure and better in one. Beyond
    noise it does so if the interval of one difference, or more, lies wholly on a's side of 0.
    Equal runs do not dominate each other. Only runs that passed their gates belong in `values`.

    Raises
    ------
    ValueError
        If the shape or a direction is another.
    """
    array = _checked(values, directions)
    n = array.shape[0]
    unranked = np.isnan(array).any(axis=1)
    beaten_by, certain = np.full(n, -1, np.int64), np.zeros(n, np.bool_)
    for b in np.flatnonzero(~unranked).tolist():
        with np.errstate(invalid="ignore"):
            better = (array >= array[b]).all(axis=1) & (array > array[b]).any(axis=1)
        for a in np.flatnonzero(better & ~unranked).tolist():
            if _beyond_noise(a, b, directions, interval):
                beaten_by[b], certain[b] = a, True
                break
            if beaten_by[b] < 0:
                beaten_by[b] = a
    on_front = ~unranked & ~certain
    return Front(on_front, on_front & (beaten_by >= 0), beaten_by, unranked)
