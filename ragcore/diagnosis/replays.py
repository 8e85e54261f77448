"""Replays brought to the traces that they replay, over all runs of a diagnosis."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore.diagnosis.attribution import (
    FAILS,
    FLIPS,
    NOT_JUDGED,
    RECOVERS,
    REPLAYS,
    SAME,
    Interventions,
)
from ragcore.diagnosis.certificate import certify
from ragcore.diagnosis.facts import Facts
from ragcore.diagnosis.judged import UNJUDGED, YES, Judged
from ragcore.lists import coded
from ragcore.results import RunScores
from ragcore_kernels import verdicts as kernel

Key = tuple[int, int]
"""A trace: number of its run, and of its ranking."""


@dataclass
class Part:
    """One run of a diagnosis.

    Attributes
    ----------
    run, facts, judged : scores, items, verdicts.
    served : (n,) int8, whether the asker was served, `judged.NO` and so on.
    """

    run: RunScores
    facts: Facts
    judged: Judged
    served: Any

    @property
    def condition(self) -> str:
        """The condition of its traces; "" if they have several, or none."""
        found = self.run.inputs.trace("condition")
        words = set() if found is None else set(found.drop_null().to_pylist())
        return words.pop() if len(words) == 1 else ""


def pair_up(parts: list[Part]) -> tuple[dict[Key, Interventions], list[str]]:
    """What came of the replays of every trace that has any, and what could mislead.

    Of several replays of one kind one that recovers, or flips, decides. A replay that changed
    another identity than its kind may change, or several, proves nothing and is left out.
    """
    names: dict[str, Key] = {}
    for which, part in enumerate(parts):
        own = part.run.inputs.trace("trace")
        for i, name in enumerate(own.to_pylist() if own is not None else ()):
            if name is not None:
                names[name] = which, i
    out: dict[Key, dict[str, str]] = {}
    lost: Counter[tuple[str, str]] = Counter()
    amiss: dict[tuple[int, int, str], bool] = {}
    for which, part in enumerate(parts):
        inputs = part.run.inputs
        pairs, kinds = inputs.trace("pair"), coded(inputs.trace("condition"), inputs.n, REPLAYS)
        for i in np.flatnonzero((kinds >= 0) & ~inputs.absent).tolist():
            kind = REPLAYS[kinds[i]]
            name = None if pairs is None else pairs[i].as_py()
            seen = names.get(name) if name is not None else None
            if seen is None:
                lost[part.run.name, "replay(s) whose pair is no trace of these runs"] += 1
                continue
            key = which, seen[0], kind
            if key not in amiss:
                before = parts[seen[0]].run.manifest
                amiss[key] = not certify(before, part.run.manifest, kind).isolates
            if amiss[key]:
                lost[part.run.name, f"replay(s) that changed what one of {kind} must not"] += 1
                continue
            said = _came_of(kind, parts[seen[0]], seen[1], part, i)
            own = out.setdefault(seen, {})
            own[kind] = _better(own.get(kind, ""), said)
    notes = [f"{run}: {n} {text}" for (run, text), n in lost.items()]
    found = {key: Interventions(*(own.get(k, "") for k in REPLAYS)) for key, own in out.items()}
    return found, notes


def _better(old: str, new: str) -> str:
    order = ("", NOT_JUDGED, SAME, FAILS, FLIPS, RECOVERS)
    return max(old, new, key=order.index)


def _came_of(kind: str, seen: Part, i: int, replay: Part, j: int) -> str:
    """What one replay gave that the observed trace did not."""
    if kind == "frozen_output":
        return _flipped(seen.judged.said(i), replay.judged.said(j))
    if replay.served[j] == UNJUDGED:
        return NOT_JUDGED
    return RECOVERS if replay.served[j] == YES and seen.served[i] != YES else FAILS


def _flipped(before: list[list[int]], after: list[list[int]]) -> str:
    """Whether another evaluator says otherwise, over the items that both judged."""
    judged = False
    for left, right in zip(before, after, strict=True):
        if len(left) != len(right):
            continue
        for a, b in zip(left, right, strict=True):
            if kernel.MISSING in (a, b):
                continue
            judged = True
            if a != b:
                return FLIPS
    return SAME if judged else NOT_JUDGED
