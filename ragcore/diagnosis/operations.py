"""What the traces say of how they were served: slow stages, loops, indexes that lag behind."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from ragcore.lists import integers
from ragcore.measures.inputs import Inputs
from ragcore.results import RunScores

LOOP = 3
"""A trace with more than this many times the median of steps loops, where no limit is declared."""
WHOLE = ("end_to_end", "total", "e2e")
"""Stages that time a whole trace, and are no part of it."""
MANY = 5
"""Steps below which no trace loops, where no limit is declared."""


@dataclass(frozen=True)
class Stage:
    """What one stage took.

    Attributes
    ----------
    name : of the stage.
    traces : that record it.
    share : of the time of all recorded stages.
    p95_us : 95th percentile of its time in a trace, by nearest rank, in microseconds.
    """

    name: str
    traces: int
    share: float
    p95_us: int


def stages(run: RunScores) -> list[Stage]:
    """The recorded stages of a run, by their share of time; the attempts of a trace are summed."""
    lists = run.inputs.trace_lists("timings")
    names = lists.strings("stage")
    spent = lists.integers("duration_us", 0)
    parts = [name for name in dict.fromkeys(names) if name is not None and name not in WHOLE]
    known = {name: i for i, name in enumerate(parts)}
    code = np.array([known.get(name or "", -1) for name in names], np.int64)
    total = int(spent[code >= 0].sum())
    out = []
    for name, i in known.items():
        own = code == i
        sums = np.bincount(lists.owners[own], spent[own], minlength=run.inputs.n)
        each = np.sort(sums[np.unique(lists.owners[own])]).astype(np.int64)
        rank = math.ceil(0.95 * each.size) - 1
        share = int(spent[own].sum()) / total if total else 0.0
        out.append(Stage(name, int(each.size), share, int(each[rank])))
    return sorted(out, key=lambda stage: (-stage.share, stage.name))


def slower(before: RunScores, after: RunScores) -> tuple[str, int] | None:
    """The stage whose 95th percentile grew most, and by how many microseconds; None without one.

    A stage that the baseline does not record grew from nothing.
    """
    old = {stage.name: stage.p95_us for stage in stages(before)}
    grown = [(stage.p95_us - old.get(stage.name, 0), stage.name) for stage in stages(after)]
    most = max(grown, default=(0, ""))
    return (most[1], most[0]) if most[0] > 0 else None


@dataclass(frozen=True)
class Odd:
    """A trace that was served in another way than it should have been, or than others were.

    Attributes
    ----------
    case, lang, repeat : the trace.
    what : in words.
    """

    case: str
    lang: str | None
    repeat: int | None
    what: str


def loops(run: RunScores) -> list[Odd]:
    """Traces with more steps than the manifest's `step_limit`.

    Where none is declared: more than `LOOP` times the median of the run, and more than `MANY`.
    """
    inputs = run.inputs
    steps = integers(inputs.trace("steps"), inputs.n)
    known = steps[steps >= 0]
    if not known.size:
        return []
    limit = run.manifest.get("step_limit")
    most = max(MANY, int(LOOP * np.median(known)))
    against = f"median {np.median(known):g}"
    if isinstance(limit, int) and not isinstance(limit, bool):
        most, against = limit, f"limit {limit}"
    at = np.flatnonzero(steps > most).tolist()
    return [_odd(run, i, f"{steps[i]} steps, {against}") for i in at]


def lagging(run: RunScores) -> list[Odd]:
    """Traces of another index generation than they should be of.

    That is the one that the manifest names, or the one that most traces of the snapshot have.
    """
    inputs = run.inputs
    found = inputs.trace("index_generation")
    if found is None:
        return []
    own, snapshots = found.to_pylist(), _snapshots(inputs)
    groups: dict[str | None, Counter[str]] = {}
    for name, snapshot in zip(own, snapshots, strict=True):
        if name is not None:
            groups.setdefault(snapshot, Counter())[name] += 1
    named = run.manifest.get("index_generation")
    usual = {
        snapshot: named if isinstance(named, str) else names.most_common(1)[0][0]
        for snapshot, names in groups.items()
    }
    return [
        _odd(run, i, f"index generation {name!r}, not {usual[snapshot]!r}")
        for i, (name, snapshot) in enumerate(zip(own, snapshots, strict=True))
        if name is not None and name != usual[snapshot]
    ]


def _snapshots(inputs: Inputs) -> list[str | None]:
    found = inputs.case("snapshot")
    return [None] * inputs.n if found is None else found.to_pylist()


def _odd(run: RunScores, i: int, what: str) -> Odd:
    return Odd(
        run.case_names[int(run.case_of[i])], run.lang[i] if run.lang is not None else None,
        run.repeat[i] if run.repeat is not None else None, what,
    )  # fmt: skip
