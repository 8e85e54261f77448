"""Runs without the cases that nobody reviewed: what a gate may rest on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ragcore.results import RunScores
from ragcore_kernels.layout import I64

UNREVIEWED = "unreviewed"


def reviewed(run: RunScores) -> tuple[RunScores, int]:
    """A run without its unreviewed cases, and how many these are; the run itself without any.

    A case is unreviewed if its `status` says so, or if a model wrote it (`origin`) and its column
    `reviewed` says that no person has looked since.
    """
    out = _unreviewed(run)
    if not out.any():
        return run, 0
    keep = np.flatnonzero(~out)
    n = np.unique(run.case_of[out]).size
    return _subset(run, keep), int(n)


def _unreviewed(run: RunScores) -> Any:
    """(n,), rankings of unreviewed cases."""
    none = np.zeros(run.case_of.size, np.bool_)
    if run.cases is None:
        return none
    names = run.cases.column_names
    marks = np.zeros(run.cases.num_rows, np.bool_)
    if "status" in names:
        marks |= np.array([v == UNREVIEWED for v in run.cases["status"].to_pylist()], np.bool_)
    if "reviewed" in names and "origin" in names:
        pairs = zip(run.cases["origin"].to_pylist(), run.cases["reviewed"].to_pylist(), strict=True)
        marks |= np.array([o == "model" and r is False for o, r in pairs], np.bool_)
    if not marks.any():
        return none
    return np.where(run.label_of >= 0, marks[np.maximum(run.label_of, 0)], False)


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
        empty=None if run.empty is None else run.empty[keep],
        quotients=None if quotients is None else fewer,
        ceilings=None if ceilings is None else lambda: ceilings()[:, keep],
    )  # fmt: skip
