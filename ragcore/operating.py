"""Operating points of systems that may decline: coverage, risk, and the price that decides."""

from __future__ import annotations

import math

from ragcore.errors import UsageError
from ragcore.scores import Scores
from ragcore_kernels.selective import BreakEven, OperatingPoint, break_even

COVERAGE, RISK = "answer.coverage", "selective.risk"
NEEDED = (COVERAGE, RISK)
"""Measures that must be scored."""


def operating_point(scores: Scores, run: str | int | None = None) -> OperatingPoint:
    """Coverage and risk of one run, as scored.

    Raises
    ------
    UsageError
        If they were not scored, or no case says whether it was answered.
    """
    lacking = [name for name in NEEDED if name not in scores.measures]
    if lacking:
        raise UsageError(f"{', '.join(lacking)} not scored", f"measures=[..., {COVERAGE}, {RISK}]")
    coverage, risk = (scores.mean(name, run) for name in NEEDED)
    if math.isnan(coverage) or (coverage > 0.0 and math.isnan(risk)):
        raise UsageError(
            "coverage or risk is not known: no case has a value",
            "traces need a final state, and cases an expected one",
        )
    return OperatingPoint(coverage, risk)


def price(scores: Scores, first: str | int = 0, second: str | int = 1) -> BreakEven:
    """At which prices of an error and an abstention the more cautious of two runs is worth more.

    Raises
    ------
    UsageError
        As `operating_point`.
    """
    return break_even(operating_point(scores, first), operating_point(scores, second))


def price_text(scores: Scores, first: str | int = 0, second: str | int = 1) -> str:
    """`price` in sentences for a report: both points, then the rule that the reader decides by."""
    found = price(scores, first, second)
    names = [scores.runs[r].name if isinstance(r, int) else r for r in (first, second)]
    points = [operating_point(scores, run) for run in (first, second)]
    said = [
        f"{name}: {100 * (1 - point.risk if point.coverage else 0):.1f} % right at "
        f"{100 * point.coverage:.1f} % coverage"
        for name, point in zip(names, points, strict=True)
    ]
    return (
        f"{'; '.join(said)}. With a right answer worth v, a wrong one costing c and an abstention "
        f"a, the cautious system ({names[found.cautious]}): "
        f"{found.text.removeprefix('the cautious system ')}."
    )
