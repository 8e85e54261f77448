"""Rankings -> cases: languages and repeats averaged inside the semantic case."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.results import RunScores
from ragcore_kernels.layout import F64, I64


@dataclass
class Groups:
    """Every measure on groups of rankings, one column a group.

    Attributes
    ----------
    keys : (n_groups,), what the groups were made by, ascending.
    values : (n_measures, n_groups), mean over the ok rankings of a group; NaN without one.
    states : (n_measures, n_groups) int8: ok if any ranking is; else the worst of them.
    differing : (n_measures, n_groups), whether the ok rankings differ in value.
    partial : (n_measures, n_groups), whether there is an ok ranking, and one that should be: it
        is missing, disputed or failed.
    sizes : (n_groups,), rankings in each.
    """

    keys: I64
    values: F64
    states: Any
    differing: Any
    partial: Any
    sizes: I64


def reduce(values: F64, states: Any, keys: I64) -> Groups:
    """Mean over the ok columns of each group, of every row.

    Equal values keep their bits; others are summed correctly rounded, so that the order of the
    columns leaves no trace. Without an ok column a group takes the worst state: failed, then
    disputed, missing, na.

    Parameters
    ----------
    values, states : (n_measures, n).
    keys : (n,), group of each column.
    """
    n = keys.size
    if n == 0:
        none = np.empty((values.shape[0], 0))
        empty = np.empty(0, np.int64)
        no = none.astype(np.bool_)
        return Groups(empty, none, none.astype(np.int8), no, no, empty)
    rising = np.diff(keys) > 0
    if rising.all():
        ok = states == schema.OK
        shown = np.where(ok, values, math.nan)
        no = np.zeros(shown.shape, np.bool_)
        return Groups(keys, shown, states, no, no, np.ones(n, np.int64))
    order = np.argsort(keys, kind="stable")
    keys, values, states = keys[order], values[:, order], states[:, order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(keys) > 0]))
    ok = states == schema.OK
    counts = np.add.reduceat(ok, starts, axis=1, dtype=np.int64)
    low = np.minimum.reduceat(np.where(ok, values, math.inf), starts, axis=1)
    high = np.maximum.reduceat(np.where(ok, values, -math.inf), starts, axis=1)
    out = np.where(counts > 0, low, math.nan)
    differing = (counts > 0) & (low != high)
    stops = np.append(starts[1:], n)
    for m, g in np.argwhere(differing).tolist():
        own = values[m, starts[g] : stops[g]][ok[m, starts[g] : stops[g]]]
        out[m, g] = math.fsum(own) / own.size
    worst = np.maximum.reduceat(states, starts, axis=1)
    return Groups(
        keys[starts], out, np.where(counts > 0, np.int8(schema.OK), worst), differing,
        (counts > 0) & (worst > schema.NA), stops - starts,
    )  # fmt: skip


def unscored(states: Any) -> Any:
    """Where a value should be and is not: missing, disputed or failed."""
    return states > schema.NA


def only(run: RunScores, m: int, fill: float | None = None) -> RunScores:
    """A run of one measure; with `fill`, that is the value where one should be and is not."""
    one = slice(m, m + 1)
    holes = unscored(run.states[one]) & (fill is not None)
    return replace(
        run, measures=run.measures[one], values=np.where(holes, fill or 0.0, run.values[one]),
        states=np.where(holes, np.int8(schema.OK), run.states[one]),
    )  # fmt: skip


def by_case(run: RunScores, rankings: I64 | None = None) -> Groups:
    """Every measure on every case of a run, or of some of its rankings."""
    if rankings is None:
        return reduce(run.values, run.states, run.case_of)
    return reduce(run.values[:, rankings], run.states[:, rankings], run.case_of[rankings])


def pooled(run: RunScores, m: int, rankings: I64 | None = None) -> tuple[F64, F64]:
    """Numerators and denominators of one measure, one a case with a value; variants averaged."""
    part = slice(None) if rankings is None else rankings
    one = slice(m, m + 1)
    states, cases = run.states[one, part], run.case_of[part]
    over, under = (reduce(f[one, part], states, cases) for f in run.fractions)
    ok = over.states[0] == schema.OK
    return over.values[0][ok], under.values[0][ok]


def between(run: RunScores, m: int, rankings: I64 | None = None) -> tuple[float, float] | None:
    """Standard deviations of one measure: between repeats, pooled, and between cases.

    None where the repeats of no case in any language differ. Repeats show what the system adds by
    itself; the interval is over cases, which they are averaged in.
    """
    part = slice(None) if rankings is None else rankings
    ok = run.states[m, part] == schema.OK
    values, cases = run.values[m, part][ok], run.case_of[part][ok]
    _, place, sizes = np.unique(run.variants[part][ok], return_inverse=True, return_counts=True)
    means = np.bincount(place, values) / sizes
    rest = float(((values - means[place]) ** 2).sum())
    free = int((sizes - 1).sum())
    if free == 0 or rest <= 1e-24 * values.size:
        return None
    whole = reduce(values[None], np.zeros((1, values.size), np.int8), cases).values[0]
    spread = float(whole.std(ddof=1)) if whole.size > 1 else 0.0
    return math.sqrt(rest / free), spread


def repeats(run: RunScores) -> str:
    """What the repeats of a run say, for people; "" where it has none."""
    if run.repeat is None:
        return ""
    _, place, sizes = np.unique(run.variants, return_inverse=True, return_counts=True)
    if sizes.max(initial=1) < 2:
        return ""
    order = np.argsort(place, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    shown = np.where(run.states == schema.OK, run.values, -1.0 - run.states)[:, order]
    low = np.minimum.reduceat(shown, starts, axis=1)
    high = np.maximum.reduceat(shown, starts, axis=1)
    apart = int((low != high).any(axis=0).sum())
    several = int((sizes > 1).sum())
    counts = f"{int(sizes.min())}" if sizes.min() == sizes.max() else f"up to {int(sizes.max())}"
    if apart:
        return f"{counts} repeats a case and language: {apart} of {several} differ in some measure"
    return f"{counts} repeats a case and language, identical in every measure: deterministic"


def counts_of(states: Any) -> dict[str, int]:
    """How many columns are in each state."""
    found = np.bincount(states, minlength=len(schema.STATES))
    return dict(zip(schema.STATES, found.tolist(), strict=True))
