"""Runs without the cases that nobody reviewed: what a gate may rest on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.results import RunScores
from ragcore_kernels.layout import I64

UNREVIEWED = "unreviewed"


def reviewed(run: RunScores) -> tuple[RunScores, int]:
    """A run without its unreviewed cases, and how many these are; the run itself without any.

    A case is unreviewed if its `status` says so, or if a model wrote it (`origin`) and its column
    `reviewed` does not say that a person has looked since. Without such a column the status alone
    decides.
    """
    out = _unreviewed(run)
    if not out.any() and not marks_of(run.cases).any():
        return run, 0
    keep = np.flatnonzero(~out)
    n = np.unique(run.case_of[out]).size
    return _subset(run, keep), int(n)


def is_reviewed(value: Any) -> bool:
    """Whether a value of the column `reviewed` says that a person has looked; null says no."""
    return str(value).strip().casefold() in ("true", "yes", "1")


def _unreviewed(run: RunScores) -> Any:
    """(n,), rankings of unreviewed cases."""
    marks = marks_of(run.cases)
    if not marks.any():
        return np.zeros(run.case_of.size, np.bool_)
    return np.where(run.label_of >= 0, marks[np.maximum(run.label_of, 0)], False)


def marks_of(cases: pa.Table | None) -> Any:
    """(n,), rows of a suite's cases that nobody reviewed, see `reviewed`."""
    if cases is None:
        return np.zeros(0, np.bool_)
    names = cases.column_names
    marks = np.zeros(cases.num_rows, np.bool_)
    if "status" in names:
        marks |= np.array([v == UNREVIEWED for v in cases["status"].to_pylist()], np.bool_)
    if "reviewed" in names and "origin" in names:
        pairs = zip(cases["origin"].to_pylist(), cases["reviewed"].to_pylist(), strict=True)
        marks |= np.array([o == "model" and not is_reviewed(r) for o, r in pairs], np.bool_)
    return marks


def _lost(run: RunScores) -> I64 | None:
    """Codes of the cases that the run lacks, without those that nobody reviewed."""
    if run.lost is None or run.cases is None:
        return run.lost
    names = run.cases["case_id"].to_pylist()
    marks = marks_of(run.cases)
    fine = {str(name) for name, mark in zip(names, marks.tolist(), strict=True) if not mark}
    kept = [code for code in run.lost.tolist() if run.case_names[code] in fine]
    return np.array(kept, np.int64)


def _subset(run: RunScores, keep: I64) -> RunScores:
    """A run of some of its rankings."""
    quotients, ceilings = run.quotients, run.ceilings

    def fewer() -> Any:
        over, under = quotients()
        return over[:, keep], under[:, keep]

    columns = {
        m: replace(
            one, over=one.over[keep], under=one.under[keep], states=one.states[keep],
            rungs=None if one.rungs is None else one.rungs[keep],
            order=None if one.order is None else one.order[keep],
        )
        for m, one in run.columns.items()
    }  # fmt: skip
    return replace(
        run, values=run.values[:, keep], states=run.states[:, keep], case_of=run.case_of[keep],
        lang=None if run.lang is None else [run.lang[i] for i in keep.tolist()],
        repeat=None if run.repeat is None else [run.repeat[i] for i in keep.tolist()],
        row_of=run.row_of[keep], label_of=run.label_of[keep], columns=columns, slices={},
        lost=_lost(run),
        empty=None if run.empty is None else run.empty[keep],
        quotients=None if quotients is None else fewer,
        ceilings=None if ceilings is None else lambda: ceilings()[:, keep],
    )  # fmt: skip
