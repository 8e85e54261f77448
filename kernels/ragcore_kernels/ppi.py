"""Prediction-powered mean: a judge's scores of all cases, corrected by a few labels of people.

An estimate of the mean over the population, never of one answer. The labelled cases have to be
drawn from the same population as the others, or from each stratum of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels.binomial import check_level
from ragcore_kernels.checks import code_column, number_column
from ragcore_kernels.sums import exact_sum

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

FEW = 30
"""Below so many labelled cases the normal interval is warned of."""

_MAX_CODE = 1 << 62


@dataclass(frozen=True)
class PpiMean:
    """A mean and its normal interval, in the unit of the labels.

    Parameters
    ----------
    mean, se : estimate and its standard error; nan if `reason` says that there is none.
    low, high : ends of the interval, not cut at the ends of the scale.
    lam : weight of the judge; nan over strata, where each has its own.
    n, n_unlabelled : cases with and without a label.
    reason : why the mean or its interval is nan, or ``""``.
    warning : why the interval is not to be trusted, or ``""``.
    strata : results of each stratum, in the order of their codes; empty without strata.
    """

    mean: float
    low: float
    high: float
    se: float
    lam: float
    n: int
    n_unlabelled: int
    reason: str = ""
    warning: str = ""
    strata: tuple[PpiMean, ...] = ()


@dataclass(frozen=True)
class _Sample:
    """Case scores: labels and judge's scores of labelled cases, judge's scores of the others."""

    y: F64
    f: F64
    others: F64


def _sum(values: F64) -> float:
    if not np.isfinite(values).all():
        raise OverflowError
    return exact_sum(values)


def _mean(values: F64) -> float:
    return _sum(values) / values.size


def _spread(values: F64) -> float:
    """Sum of squared distances from the mean."""
    away = values - _mean(values)
    return _sum(away * away)


def _tuned(sample: _Sample) -> float:
    """Weight of least variance, from 0 to 1; 0 if the judge says the same of all."""
    n, more = sample.y.size, sample.others.size
    judged = np.concatenate([sample.f, sample.others])
    pooled = _spread(judged) / max(judged.size - 1, 1)
    if more == 0 or pooled == 0.0:
        return 0.0
    off = (sample.y - _mean(sample.y)) * (sample.f - _mean(sample.f))
    lam = _sum(off) / n / ((1.0 + n / more) * pooled)
    return min(max(lam, 0.0), 1.0)


def _plain(sample: _Sample, lam: float | None, level: float) -> PpiMean:
    """Estimate without strata."""
    n, more = sample.y.size, sample.others.size
    if n == 0:
        return _nothing("no labelled case", n, more)
    lam = _tuned(sample) if lam is None else float(lam)
    if lam and more == 0:
        return replace(_nothing("no unlabelled case", n, more), lam=lam)
    rest = sample.y - lam * sample.f
    mean = _mean(rest) + (lam * _mean(sample.others) if lam else 0.0)
    found = PpiMean(mean, math.nan, math.nan, math.nan, lam, n, more)
    if n < 2 or (lam and more < 2):
        kind = "labelled" if n < 2 else "unlabelled"
        return _finished(replace(found, reason=f"one {kind} case has no variance"), level)
    square = _spread(rest) / n / n
    if lam:
        square += lam * lam * (_spread(sample.others) / more / more)
    return _finished(replace(found, se=math.sqrt(square)), level)


def _nothing(reason: str, n: int, more: int) -> PpiMean:
    return PpiMean(*[math.nan] * 5, n, more, reason)


def _finished(found: PpiMean, level: float) -> PpiMean:
    """The result with its ends and, of few cases, the warning."""
    if not math.isfinite(found.mean) and not found.reason:
        raise OverflowError
    half = -NormalDist().inv_cdf((1.0 - level) / 2.0) * found.se
    warning = ""
    if 0 < found.n < FEW:
        warning = f"{found.n} labelled cases, fewer than {FEW}: a normal interval may be too short"
    return replace(found, low=found.mean - half, high=found.mean + half, warning=warning)


def _over_cases(values: F64, codes: I64) -> F64:
    """(n_cases,), mean of each case, in the order of their codes."""
    if values.size == 0:
        return values
    order = np.lexsort((values, codes))  # inside a case by value, so that sums have one order
    codes, values = codes[order], values[order]
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    return np.add.reduceat(values, starts) / np.diff(starts, append=values.size)


def _codes(name: str, codes: ArrayLike | None, n: int) -> I64:
    if codes is None:
        raise ValueError(f"{name} are missing; expected codes for both samples, or for none")
    array = code_column(name, codes, -_MAX_CODE, _MAX_CODE)
    if array.size != n:
        raise ValueError(f"{array.size} {name} for {n} scores; expected as many")
    return array


def _constant(name: str, codes: I64, cases: I64) -> I64:
    """The stratum of each case, in the order of their codes; one case has only one."""
    _, first, place = np.unique(cases, return_index=True, return_inverse=True)
    wrong = np.flatnonzero(codes != codes[first][place])
    if wrong.size:
        at = int(wrong[0])
        raise ValueError(f"{name}[{at}] is {codes[at]}; expected one stratum for case {cases[at]}")
    return codes[first]


def ppi_mean(
    labels: ArrayLike,
    judged: ArrayLike,
    unlabelled: ArrayLike,
    lam: float | None = None,
    level: float = 0.95,
    *,
    cases: tuple[ArrayLike, ArrayLike] | None = None,
    strata: tuple[ArrayLike, ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> PpiMean:
    """Mean of the labels over a population, from few labels and many scores of a judge.

    Parameters
    ----------
    labels, judged : (n,), finite; a person's label and the judge's score of the same answers.
    unlabelled : (N,), finite; the judge's scores of other answers.
    lam : weight of the judge, from 0 to 1; 1 is ARES, 0 the mean of the labels alone; None for
        the one of least variance (PPI++).
    level : probability inside, in (0, 1).
    cases : codes of the cases of both samples, (n,) and (N,), if scores are nested in cases: their
        mean is taken first, so that a case counts once. A case is labelled or not, never both.
    strata : codes of the strata of both samples, (n,) and (N,). Each stratum is estimated by
        itself, with a weight of the judge of its own if `lam` is None.
    weights : (n_strata,), >= 0, shares of the strata in the population in the order of their
        codes; scaled to 1. None: shares of the unlabelled cases.

    Returns
    -------
    ``lam mean(unlabelled) + mean(labels - lam judged)``; its squared error is ``lam**2
    Var(unlabelled) / N + Var(labels - lam judged) / n`` with population variances. The weight of
    least variance is ``Cov(labels, judged) / ((1 + n / N) Var)``, cut to [0, 1], with the
    covariance over n and the variance of all scores of the judge over n + N - 1. nan with a
    reason without labelled cases, without unlabelled ones unless `lam` is 0, and where a stratum
    of some weight lacks them; the interval alone is nan if it would rest on one case.

    Raises
    ------
    ValueError
        If an argument is none of these, or the result is beyond the largest double.

    Notes
    -----
    Sums are correctly rounded: the order of the cases does not matter, down to the last bit.

    References
    ----------
    Angelopoulos et al., Prediction-powered inference, 2023; PPI++, 2023. Saad-Falcon et al.,
    ARES, 2024. Fisch et al., Stratified prediction-powered inference, 2024.
    """
    check_level(level)
    if lam is not None and not 0.0 <= lam <= 1.0:
        raise ValueError(f"lam is {lam}; expected a number from 0 to 1")
    y, f = number_column("labels", labels), number_column("judged", judged)
    others = number_column("unlabelled", unlabelled)
    if y.size != f.size:
        raise ValueError(f"{y.size} labels and {f.size} scores of the judge; expected as many")
    if weights is not None and strata is None:
        raise ValueError("weights without strata; expected codes of the strata as well")
    parts = None
    if strata is not None:
        parts = _codes("strata", strata[0], y.size), _codes("strata", strata[1], others.size)
    with np.errstate(all="ignore"):
        try:
            if cases is not None:
                ids = _codes("cases", cases[0], y.size), _codes("cases", cases[1], others.size)
                shared = np.intersect1d(*ids)
                if shared.size:
                    raise ValueError(f"case {shared[0]} is labelled and unlabelled; expected one")
                if parts:
                    parts = (
                        _constant("strata", parts[0], ids[0]),
                        _constant("strata", parts[1], ids[1]),
                    )
                y, f = _over_cases(y, ids[0]), _over_cases(f, ids[0])
                others = _over_cases(others, ids[1])
            sample = _Sample(y, f, others)
            if parts is None:
                return _plain(sample, lam, level)
            return _stratified(sample, parts, weights, lam, level)
        except OverflowError as error:
            raise ValueError("the result is beyond the largest double") from error


def _stratified(
    sample: _Sample,
    parts: tuple[I64, I64],
    weights: ArrayLike | None,
    lam: float | None,
    level: float,
) -> PpiMean:
    """Estimates of the strata, weighted."""
    codes = np.union1d(*parts)
    counts = np.array([np.count_nonzero(parts[1] == code) for code in codes], np.float64)
    shares = counts if weights is None else number_column("weights", weights)
    if shares.size != codes.size:
        raise ValueError(f"{shares.size} weights for {codes.size} strata; expected as many")
    if (shares < 0.0).any() or (weights is not None and shares.sum() <= 0.0):
        raise ValueError("weights are negative or all 0; expected shares of the population")
    found = []
    for code in codes:
        own, more = parts[0] == code, parts[1] == code
        part = _Sample(sample.y[own], sample.f[own], sample.others[more])
        found.append(_plain(part, lam, level))
    n, n_others = sample.y.size, sample.others.size
    if not shares.sum():
        return _nothing("no unlabelled case to weigh the strata by", n, n_others)
    shares = shares / shares.sum()
    counted = [(w, r) for w, r in zip(shares.tolist(), found, strict=True) if w]
    reasons = [
        f"stratum {code}: {r.reason}"
        for code, w, r in zip(codes.tolist(), shares.tolist(), found, strict=True)
        if w and r.reason
    ]
    mean = math.fsum(w * r.mean for w, r in counted)
    se = math.sqrt(math.fsum((w * r.se) ** 2 for w, r in counted))
    whole = PpiMean(mean, math.nan, math.nan, se, math.nan, n, n_others, "; ".join(reasons))
    return replace(_finished(whole, level), strata=tuple(found))
