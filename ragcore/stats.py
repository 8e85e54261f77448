"""Paired statistics: a difference, its exact interval and p-value, and why if there is none."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ragcore.errors import UsageError
from ragcore_kernels.binomial import clopper_pearson
from ragcore_kernels.clusters import ratio_interval
from ragcore_kernels.histogram import MAX_DISTINCT, Sample, histogram
from ragcore_kernels.lattice import prepare
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.resample import exact_sum, mean_interval
from ragcore_kernels.signs import sign_flip
from ragcore_kernels.strata import stratified_interval

TEST = "paired sign-flip"
SIDES = "two-sided"


@dataclass(frozen=True)
class Paired:
    """What n paired differences say.

    Attributes
    ----------
    n : cases with a value on both sides.
    delta : mean difference, candidate less baseline; None without a case.
    low, high, method : exact percentile bootstrap interval of the mean, resampling cases; None
        for fewer than two cases. `method` says ``exact``, or the bound that is certified.
    p_value, p_method : exact two-sided paired sign-flip (randomisation) test.
    wins, losses, ties : cases by the sign of their difference.
    before, after : means of both sides over the same cases.
    reason : in words, why there is no interval or what weakens it; "" if there is nothing to say.
    unpaired : cases that were given but have a value on one side at most.
    """

    n: int
    delta: float | None
    low: float | None
    high: float | None
    method: str | None
    p_value: float | None
    p_method: str | None
    wins: int
    losses: int
    ties: int
    before: float | None = None
    after: float | None = None
    reason: str = ""
    unpaired: int = 0

    @property
    def report(self) -> dict[str, Any]:
        """Which test this is, so that a number never stands without it."""
        drawn = re.fullmatch(r"monte-carlo\((\d+), (\d+)\)", self.p_method or "")
        return {
            "test": TEST, "sidedness": SIDES, "n": self.n,
            "resamples": int(drawn[1]) if drawn else (self.p_method or "none").split("±")[0],
            "seed": int(drawn[2]) if drawn else None,
            "interval": "percentile bootstrap of cases", "correction": "none",
        }  # fmt: skip


def paired(a: Any, b: Any, level: float = 0.95) -> Paired:
    """Compare values of two systems on the same cases.

    Parameters
    ----------
    a, b : ``{case: value}``, joined by case, or sequences of one length, joined by position;
        `a` is the baseline. None and NaN are no value.
    level : of the interval.

    Returns
    -------
    Paired
        Of `b` less `a`, over the cases that both have a value for.

    Raises
    ------
    UsageError
        If one is a mapping and the other is not, lengths differ, or a value is infinite.
    """
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        raise UsageError("one side has case ids and the other has not", "give both by case id")
    if isinstance(a, Mapping):
        cases = list(dict.fromkeys([*a, *b]))
        left, right = [a.get(c) for c in cases], [b.get(c) for c in cases]
    else:
        left, right = list(a), list(b)
        if len(left) != len(right):
            raise UsageError(
                f"{len(left)} values against {len(right)}", "pair them by case: {case: value}"
            )
    before, after = _floats(left), _floats(right)
    both = ~(np.isnan(before) | np.isnan(after))
    for side, values in (("first", before), ("second", after)):
        if np.isinf(values).any():
            raise UsageError(f"the {side} side has an infinite value", "finite numbers, or None")
    found = differences(before[both], after[both], level)
    return replace(found, unpaired=int((~both).sum()))


def _floats(values: Sequence[Any]) -> F64:
    return np.array([math.nan if v is None else v for v in values], np.float64)


def differences(before: F64, after: F64, level: float = 0.95, strata: I64 | None = None) -> Paired:
    """As `paired`, of arrays of finite numbers.

    Parameters
    ----------
    strata : (n,), code of each case's stratum; cases are then resampled inside theirs.
    """
    deltas = after - before
    n = deltas.size
    if n == 0:
        return Paired(0, None, None, None, None, None, None, 0, 0, 0, reason="no case in common")
    wins, losses = int((deltas > 0).sum()), int((deltas < 0).sum())
    counted = wins, losses, n - wins - losses
    means = mean(before), mean(after)
    if n == 1:
        return Paired(
            1, float(deltas[0]), None, None, None, None, None, *counted, *means, reason="n=1"
        )
    sample = histogram(deltas)
    if strata is None:
        interval = mean_interval(sample, level)
    else:
        interval = stratified_interval(deltas, strata, level)
    small = sample.values.size <= MAX_DISTINCT
    test = sign_flip(deltas, sample if small else None)
    return Paired(
        n, _mean_of(sample, deltas), interval.low, interval.high, interval.method, test.p_value,
        test.method, *counted, *means, _reason(deltas, level),
    )  # fmt: skip


def pooled_differences(before: F64, after: F64, parts: F64, level: float = 0.95) -> Paired:
    """Difference of two shares that are pooled over cases.

    Where both have the same denominators, as recall has, it is one ratio of sums, with an exact
    interval and p-value. Where denominators moved there is no exact interval, and none is given.

    Parameters
    ----------
    before, after : (n,), shares of the cases, which say who won.
    parts : (4, n), numerators and denominators of the baseline, then of the candidate.
    """
    over, under, over_after, under_after = parts
    n = before.size
    wins, losses = int((after > before).sum()), int((after < before).sum())
    counted = wins, losses, n - wins - losses
    totals = [exact_sum(part) if n else 0.0 for part in (over, under, over_after, under_after)]
    if not (totals[1] and totals[3]):
        return Paired(n, None, None, None, None, None, None, *counted, reason="nothing to pool")
    shares = totals[0] / totals[1], totals[2] / totals[3]
    delta = shares[1] - shares[0]
    moved = int((under != under_after).sum())
    if n == 1 or moved:
        why = (
            f"denominators moved in {moved} cases: a difference of two ratios has no exact interval"
        )
        return Paired(
            n, delta, None, None, None, None, None, *counted, *shares,
            reason="n=1" if n == 1 else why,
        )  # fmt: skip
    gains = over_after - over
    interval, test = ratio_interval(gains, under, level), sign_flip(gains)
    return Paired(
        n, exact_sum(gains) / totals[1], interval.low, interval.high, interval.method,
        test.p_value, test.method, *counted, *shares, _reason(after - before, level),
    )  # fmt: skip


def geometric_differences(before: F64, after: F64, floor: float) -> Paired:
    """Difference of two geometric means; the test is that of the mean logarithm.

    Their difference is no mean of differences, so there is no exact interval of it, and none is
    given.

    Parameters
    ----------
    floor : least value that a case may have, so that its logarithm is finite.
    """
    n = before.size
    wins, losses = int((after > before).sum()), int((after < before).sum())
    counted = wins, losses, n - wins - losses
    if n == 0:
        return Paired(0, None, None, None, None, None, None, *counted, reason="no case in common")
    logs = [np.log(np.maximum(values, floor)) for values in (before, after)]
    means = tuple(math.exp(mean(values)) for values in logs)
    test = sign_flip(logs[1] - logs[0]) if n > 1 else None
    why = "geometric means: p is that of the mean logarithm; no exact interval of their difference"
    return Paired(
        n, means[1] - means[0], None, None, None, test.p_value if test else None,
        test.method if test else None, *counted, *means, reason=why if test else "n=1",
    )  # fmt: skip


def mean(values: F64) -> float:
    """Correctly rounded sum over n; equal values keep theirs."""
    middle = exact_sum(values) / values.size
    return min(max(middle, float(values.min())), float(values.max()))


def _mean_of(sample: Sample, deltas: F64) -> float:
    """Mean of differences, in the rationals that they stand for where they share a lattice.

    So 1/3 - 1/2 counts as -1/6, as it does for the ends of the interval.
    """
    if sample.values.size < 2 or (np.rint(sample.values) == sample.values).all():
        return mean(deltas)
    lattice = prepare(sample).lattice
    if lattice is None:
        return mean(deltas)
    return lattice.mean_of(int(lattice.points @ lattice.counts), deltas.size)


def _reason(deltas: F64, level: float) -> str:
    """What an interval without width does not say."""
    first = float(deltas[0])
    if not (deltas == first).all():
        return ""
    most = clopper_pearson(0, deltas.size, level)[1]
    sure = f"({100 * level:.10g}%, Clopper-Pearson)"
    if first == 0.0:
        return f"no case differs; up to {most:.3f} of all cases may {sure}"
    return f"every case differs by {first:.4g}; up to {most:.3f} of all cases may not {sure}"
