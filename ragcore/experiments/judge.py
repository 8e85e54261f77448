"""Rows scored and compared with what they deviate from; each becomes values that can be kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import contrast, latency
from ragcore.comparison import Comparison
from ragcore.conflicts import sign_conflicts
from ragcore.experiments.config import Config
from ragcore.experiments.rows import Row
from ragcore.gates import gates_of, slices_for
from ragcore.plan import TOKENS, Plan
from ragcore.score import score
from ragcore.scores import Scores
from ragcore.summary import WHOLE

MEASURES = ("R@5", "R@1", "nDCG@10", "RR", "context.coverage")
"""What is scored where neither the sweep nor its suite says."""
_CELL = (
    "slice", "measure", "n_cases", "n_ok", "n_na", "n_missing", "n_disputed", "n_failed", "mean",
    "ci_low", "ci_high", "before", "after", "delta", "delta_low", "delta_high", "delta_method",
    "p_value", "p_method", "n_matched", "wins", "losses", "ties", "saturation", "remarks",
)  # fmt: skip


@dataclass
class Judge:
    """What all rows of a sweep are scored by.

    Attributes
    ----------
    config : the sweep.
    measures : names, those of every plan among them.
    threads : workers; no number depends on them.
    """

    config: Config
    threads: int | None = None
    measures: list[str] = field(init=False)

    def __post_init__(self) -> None:
        own = self.config.measures or tuple(self.config.suite.measures) or MEASURES
        named = [*own, TOKENS]
        for plan in self.config.plans.values():
            named += [*plan.registered, *(gate.measure for gate in gates_of(plan, ()))]
        self.measures = [name for name in dict.fromkeys(named) if name]

    def scored(self, run: pa.Table, suite: Path, name: str) -> Scores:
        """A run over the cases that it has."""
        return score(
            [run], suite=suite, measures=self.measures, topics="common", names=[name],
            allow_empty=True, threads=self.threads,
        )  # fmt: skip

    def compared(self, before: Scores, after: Scores, plan: Plan, timed: bool = True) -> Comparison:
        """A candidate against a baseline, each scored against its own chunks.

        Parameters
        ----------
        timed : whether the times of the two may be compared.
        """
        left, right = before.runs[0], after.runs[0]
        if left.codes is not right.codes:
            assert left.case_names == right.case_names, "the suites have the same cases"
            right.codes = left.codes  # so that languages have the same codes, too
            right.__dict__.pop("variants", None)
        both = Scores([left, right], before.suite, before.policy, [], [], before.threads)
        asked = gates_of(plan, ())
        how = contrast.Settings(
            plan, slices_for(asked, [*self.config.by, *plan.by]), plan.level or 0.95
        )
        one = contrast.of(both, 0, 1, how)
        if not timed:
            one.latency = math.nan, math.nan
        return Comparison(both, [one], how)

    def row(self, row: Row, found: Comparison) -> dict[str, Any]:
        """What there is to say of a row, in plain values."""
        one, verdict = found.contrasts[0], found.verdicts[0]
        cells = [_cell(each) for each in found.rows() if each.get("baseline")]
        return {
            "cells": cells, "verdict": verdict.verdict, "primary": verdict.primary,
            "reasons": list(verdict.reasons), "tainted": bool(one.tainted),
            "manifest": one.manifest.sentence(), "single_change": one.manifest.single,
            "conflicts": sign_conflicts(one.cells), "level": found.settings.level,
            "less": sorted(
                name for name, cell in one.whole().items()
                if cell.measure.definition.better == "less"
            ),
        }  # fmt: skip

    def baseline(self, scores: Scores, plan: Plan) -> dict[str, Any]:
        """The baseline's own values, and the room that it leaves."""
        found = self.compared(scores, scores, plan)
        cells = {  # it stands on both sides
            (each["slice"], each["measure"]): _cell(each)
            for each in found.rows() if not each.get("baseline")
        }  # fmt: skip
        return {"cells": list(cells.values()), "level": found.settings.level}


def _cell(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _finite(row.get(name)) for name in _CELL}


def _finite(value: Any) -> Any:
    """JSON knows neither NaN nor infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def cost(run: pa.Table, scores: Scores) -> dict[str, Any]:
    """Latencies of a run in microseconds, and the mean tokens of its context."""
    spent = latency.durations(run)
    tokens = scores.mean(TOKENS)
    return {
        "p50_us": _finite(latency.nearest_rank(spent, 0.5)),
        "p95_us": _finite(latency.nearest_rank(spent, 0.95)),
        "context_tokens": _finite(tokens), "n_timed": int(np.size(spent)),
    }  # fmt: skip


def whole(cells: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The cells over all cases, by measure."""
    return {cell["measure"]: cell for cell in cells if cell["slice"] == WHOLE}
