"""Values that a suite says a run had: the same, drifted within the tolerance, or off.

In ``suite.toml``::

    [expected]
    tolerance = 0.0005
    made_with = "ragcore 0.1.0, tantivy 0.25"

    [expected.runs.bm25]
    "nDCG@10" = 0.5254
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ragcore.errors import InputError
from ragcore.scores import Scores

SAME, DRIFT, OFF, NOT_SCORED = "same", "drift", "off", "not scored"
TOLERANCE = 0.0005
"""Largest difference that is drift and no fault, where the suite does not say."""


@dataclass(frozen=True)
class Expectation:
    """One value as it was, and as it is.

    Attributes
    ----------
    run, measure : of what.
    expected, observed : values; the latter NaN where the measure was not scored.
    tolerance : see `TOLERANCE`.
    made_with : what the suite says of the programs behind `expected`.
    """

    run: str
    measure: str
    expected: float
    observed: float
    tolerance: float
    made_with: str

    @property
    def status(self) -> str:
        """`SAME` to the digits that the suite gives, `DRIFT`, `OFF` or `NOT_SCORED`."""
        if math.isnan(self.observed):
            return NOT_SCORED
        digits = len(repr(self.expected).partition(".")[2])
        if round(self.observed, digits) == self.expected:
            return SAME
        near = abs(self.observed - self.expected) <= self.tolerance * (1 + 1e-9)
        return DRIFT if near else OFF

    def sentence(self) -> str:
        """It in words, with what the value was made with."""
        bound = f" (<= {self.tolerance:g})" if self.status == DRIFT else ""
        source = f", made with {self.made_with}" if self.made_with else ""
        return (
            f"{self.run}: {self.measure} {self.observed:.6g}, expected {self.expected:g}{source}: "
            f"{self.status}{bound}"
        )


def expectations(scores: Scores) -> list[Expectation]:
    """What the suite of `scores` says of its runs; empty where it says nothing.

    Raises
    ------
    InputError
        If ``expected`` in its ``suite.toml`` is not as the module says.
    """
    settings = scores.suite.settings if scores.suite is not None else {}
    given = settings.get("expected", {})
    where = scores.suite.path / "suite.toml" if scores.suite is not None else ""
    runs = given.get("runs", {}) if isinstance(given, dict) else None
    if not isinstance(runs, dict) or not all(isinstance(one, dict) for one in runs.values()):
        raise InputError(where, f"expected = {given!r:.60}", "tables expected.runs.NAME")
    tolerance = _number(where, "tolerance", given.get("tolerance", TOLERANCE))
    out = []
    for run in scores.runs:
        for name, value in runs.get(run.name, {}).items():
            known = name in scores.measures
            observed = scores.mean(name, run.name) if known else math.nan
            out.append(
                Expectation(
                    run.name, name, _number(where, name, value), observed, tolerance,
                    str(given.get("made_with", "")),
                )
            )  # fmt: skip
    return out


def _number(where: Any, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(where, f"expected {name} = {value!r}", "a number")
    return float(value)
