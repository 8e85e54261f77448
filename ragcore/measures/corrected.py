"""The verdicts on a run in two parts: those of people, and those of one judge below them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.judgments import Judgments
from ragcore.lists import Lists
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import Inputs
from ragcore.verdicts import Verdicts
from ragcore_kernels.layout import I64


def labels_and_judge(inputs: Inputs, measure: Measure) -> tuple[Verdicts, Verdicts] | None:
    """Verdicts from a rung on (or adjudicated), and those of the judge; None without either.

    The judge is the one that the measure names, else the only one below the rung. Required rungs
    are not held: a judge that may not decide can still be corrected.

    Raises
    ------
    UsageError
        If the rung is unknown.
    """
    given, against = inputs.shared.judgments, measure.params["against"]
    if against not in schema.RUNGS:
        words = ", ".join(schema.RUNGS)
        raise UsageError(f"measure {measure.text!r}: against={against!r}", f"one of {words}")
    if given is None:
        return None
    least = schema.RUNGS.index(against)
    name = str(measure.params["judge"])
    if not name:
        below = _below(given, least, measure)
        if len(below) > 1:
            inputs.warnings.append(
                f"{measure.text} is missing: {len(below)} judges below the rung {against} "
                f"({', '.join(below[:5])}): say judge=NAME"
            )
        if len(below) != 1:
            return None
        name = below[0]
    match = replace(inputs.match, needed=np.zeros(inputs.n, np.int8))

    def people(one: Judgments) -> Any:
        return one.adjudicated | (one.rung >= least)

    def judge(one: Judgments) -> Any:
        code = one.names["judge"].index(name).as_py()
        return ~people(one) & (one.judge == code) & (code >= 0)

    people_side, judge_side = (
        Verdicts(_chosen(given, keep), match, inputs.shared.vocabulary) for keep in (people, judge)
    )
    return people_side, judge_side


def _below(given: Judgments, least: int, measure: Measure) -> list[str]:
    """The judges below a rung on the relation of a measure, by name."""
    relation = schema.RELATIONS.index(measure.params["relation"])
    found: set[str] = set()
    for one in (given, given.packed):
        if one is not None:
            own = (one.rung < least) & ~one.adjudicated & (one.relation == relation)
            names = one.names["judge"].to_pylist()
            found |= {names[code] for code in np.unique(one.judge[own]).tolist()}
    return sorted(found)


def _chosen(given: Judgments, keep: Any) -> Judgments:
    """The rows that `keep` takes, of plain and of packed judgments."""
    packed = None if given.packed is None else _rows(given.packed, keep(given.packed))
    return replace(_rows(given, keep(given)), packed=packed)


def _rows(given: Judgments, keep: Any) -> Judgments:
    rows = np.flatnonzero(keep)
    columns = {
        name: getattr(given, name)[rows]
        for name in ("relation", "verdict", "rung", "claim", "repeat", "case", "judge", "run",
                     "lang", "adjudicated")
    }  # fmt: skip
    offsets, flat = _cut(given.evidence.offsets, rows)
    evidence = Lists(offsets, given.evidence.present[rows], given.evidence.items.take(flat))
    if given.offsets is not None:
        columns["offsets"], at = _cut(given.offsets, rows)
        columns["values"] = given.values[at]
    return replace(given, evidence=evidence, where=[(0, "verdicts chosen")], **columns)


def _cut(offsets: I64, rows: I64) -> tuple[I64, I64]:
    """Offsets of the lists of some rows, and places of their items."""
    counts = np.diff(offsets)[rows]
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return ends, np.arange(ends[-1]) + np.repeat(offsets[rows] - ends[:-1], counts)
