"""Forms of an aggregate: how values of cases, or of traces, become one number with an interval.

A measure names its form (`Definition.aggregate`). Most forms take one value a case, languages and
repeats averaged inside it. A quantile and a ratio take traces, as a wait or a cost is of one
request; a curve takes what its cases are ordered by besides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ragcore import schema
from ragcore.casewise import pooled, reduce
from ragcore.measures.forms import percentile, quantile_of
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.resample import Interval, exact_sum, exponential, mean_interval

if TYPE_CHECKING:
    from ragcore.results import RunScores

GEOMETRIC_FLOOR = 1e-5
NO_INTERVAL = Interval(math.nan, math.nan, "", 0.0)
ORDER_STATISTIC = "order-statistic"
PPI = "ppi"

Parts = tuple[F64, ...]
Total = tuple[float, float, float | None]


@dataclass(frozen=True)
class Form:
    """One way from values to a number.

    Attributes
    ----------
    note : what the number is, beside it; "" for what goes without saying.
    total : of case values and parts: the number, its numerator, and its denominator or None.
    interval : of case values, parts and a level; without method where there is none.
    gather : brings the parts of one measure on some rankings of a run; None if it has none.
    paired : whether its difference between two runs is worked out from differences of cases.
    why : in words, why it is not.
    remarks : of parts, interval and the number of cases: what must stand beside the number.
    """

    note: str
    total: Callable[[F64, Parts], Total]
    interval: Callable[[F64, Parts, float], Interval]
    gather: Callable[[RunScores, int, I64 | None], Parts] | None = None
    paired: bool = True
    why: str = ""
    remarks: Callable[[Parts, Interval, int], list[str]] | None = None


@lru_cache(maxsize=64)
def form_of(how: str) -> Form:
    """The form of a name: one of `FORMS`, or ``quantile(0.95)``.

    Raises
    ------
    KeyError
        If there is none: a definition names a form that does not exist.
    """
    p = quantile_of(how)
    return FORMS[how] if p is None else _quantile(p)


def aggregate(how: str, values: F64, parts: Parts | None = None) -> Total:
    """(number, numerator, denominator) of case values, sums correctly rounded.

    Parameters
    ----------
    how : name of a form.
    values : of the cases that have one.
    parts : what `Form.gather` gives, for a form that has it; without them it is a mean.
    """
    form = form_of(how)
    if form.gather is not None and parts is None:
        form = FORMS["mean"]
    return form.total(values, parts or ())


# --- one value a case


def _mean(values: F64, parts: Parts) -> Total:
    if values.size == 0:
        return math.nan, 0.0, 0.0
    total = exact_sum(values)
    # Two roundings, of the sum and here, must not move the mean of equal values.
    mean = min(max(total / values.size, float(values.min())), float(values.max()))
    return mean, total, float(values.size)


def _mean_interval(values: F64, parts: Parts, level: float) -> Interval:
    return mean_interval(values, level) if values.size > 1 else NO_INTERVAL


def _sum(values: F64, parts: Parts) -> Total:
    total = exact_sum(values) if values.size else 0.0
    return total, total, None


def _none(values: F64, parts: Parts, level: float) -> Interval:
    return NO_INTERVAL


def _geometric(values: F64, parts: Parts) -> Total:
    if values.size == 0:
        return math.nan, 0.0, 0.0
    logs = exact_sum(np.log(np.maximum(values, GEOMETRIC_FLOOR)))
    return math.exp(logs / values.size), logs, float(values.size)


def _geometric_interval(values: F64, parts: Parts, level: float) -> Interval:
    if values.size < 2:
        return NO_INTERVAL
    return exponential(mean_interval(np.log(np.maximum(values, GEOMETRIC_FLOOR)), level))


# --- sums over sums


def _micro(values: F64, parts: Parts) -> Total:
    if values.size == 0:
        return math.nan, 0.0, 0.0
    return _ratio(values, parts)


def _ratio(values: F64, parts: Parts) -> Total:
    over, under = (exact_sum(part) if part.size else 0.0 for part in parts)
    return over / under if under else math.nan, over, under


def _ratio_interval(values: F64, parts: Parts, level: float) -> Interval:
    over, under = parts
    if over.size < 2 or not under.any():
        return NO_INTERVAL
    from ragcore_kernels.clusters import ratio_interval  # what few scores need

    return ratio_interval(over, under, level)


def _micro_interval(values: F64, parts: Parts, level: float) -> Interval:
    return _ratio_interval(values, parts, level) if values.size > 1 else NO_INTERVAL


def _pooled(run: RunScores, m: int, rankings: I64 | None) -> Parts:
    return pooled(run, m, rankings)


def _sums(run: RunScores, m: int, rankings: I64 | None) -> Parts:
    """Numerators and denominators summed inside each case, over every trace that has them."""
    part = slice(None) if rankings is None else rankings
    over, under = run.columns[m].over[part], run.columns[m].under[part]
    known = ~(np.isnan(over) | np.isnan(under))
    cases, over, under = run.case_of[part][known], over[known], under[known]
    order = np.lexsort((under, over, cases))  # a sum must not depend on the order of the rows
    cases = cases[order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(cases) > 0])[: cases.size])
    if starts.size == 0:
        return over, under
    return np.add.reduceat(over[order], starts), np.add.reduceat(under[order], starts)


# --- traces by size


def _quantile(p: float) -> Form:
    name = percentile(p)

    def total(values: F64, parts: Parts) -> Total:
        from ragcore_kernels.order_statistics import quantile_interval

        found = quantile_interval(parts[0], p)
        return found.value, float(found.ranks.rank), float(parts[0].size)

    def interval(values: F64, parts: Parts, level: float) -> Interval:
        from ragcore_kernels.order_statistics import quantile_interval

        found = quantile_interval(parts[0], p, level)
        if found.low is None and found.high is None:
            return NO_INTERVAL
        low, high = (math.nan if end is None else end for end in (found.low, found.high))
        return Interval(low, high, ORDER_STATISTIC, 0.0)

    def remarks(parts: Parts, found: Interval, n_cases: int) -> list[str]:
        n = parts[0].size
        if n == 0:
            return []
        said = []
        ends = [end for end, at in (("lower", found.low), ("upper", found.high)) if math.isnan(at)]
        if ends:
            said.append(f"n too small: {n} traces give no {' nor '.join(ends)} end")
        if n > n_cases:
            said.append(f"{n} traces of {n_cases} cases are taken as independent")
        return said

    return Form(
        f"{name} over traces", total, interval, _traces, paired=False,
        why=f"a {name} over traces is no mean of cases: its difference has no interval and no p",
        remarks=remarks,
    )  # fmt: skip


def _traces(run: RunScores, m: int, rankings: I64 | None) -> Parts:
    part = slice(None) if rankings is None else rankings
    return (run.values[m, part][run.states[m, part] == schema.OK],)


def _total(values: F64, parts: Parts) -> Total:
    if parts[0].size == 0:  # nothing was recorded, which is not none
        return math.nan, 0.0, None
    return _sum(parts[0], ())


# --- cases by confidence


def _by_confidence(run: RunScores, m: int, rankings: I64 | None) -> Parts:
    """Confidence and loss, one a case with both; variants averaged."""
    part = slice(None) if rankings is None else rankings
    order = run.columns[m].order
    if order is None:  # nothing of it was recorded
        return np.empty(0), np.empty(0)
    sure = np.asarray(order)[part]
    states, cases = run.states[m : m + 1, part], run.case_of[part]
    groups = [reduce(v[None], states, cases) for v in (sure, run.values[m, part])]
    ok = groups[0].states[0] == schema.OK
    return groups[0].values[0][ok], groups[1].values[0][ok]


def _area(pick: Callable[[Any], float]) -> Callable[[F64, Parts], Total]:
    def total(values: F64, parts: Parts) -> Total:
        from ragcore_kernels.selective import risk_coverage

        found = risk_coverage(*parts)
        area = pick(found)
        return area, area * found.n if found.n else 0.0, float(found.n)

    return total


def _curve(note: str, pick: Callable[[Any], float]) -> Form:
    return Form(
        f"{note}: no interval", _area(pick), _none, _by_confidence, paired=False,
        why="an area under a curve is no mean of cases: its difference has no interval and no p",
    )  # fmt: skip


# --- cases with a label, and cases that only a judge has seen


def _by_label(run: RunScores, m: int, rankings: I64 | None) -> Parts:
    """Labels and the judge's values of labelled cases; its values of the others. Variants averaged.

    A ranking is labelled if it is ok; the judge's value is what the column orders by.
    """
    part = slice(None) if rankings is None else rankings
    order = run.columns[m].order
    if order is None:
        return np.empty(0), np.empty(0), np.empty(0)
    judged, cases = np.asarray(order)[part], run.case_of[part]
    states, values = run.states[m, part], run.values[m, part]
    alone = np.where(np.isfinite(judged), np.int8(schema.OK), np.int8(schema.MISSING))
    alone = np.where(states == schema.MISSING, alone, np.int8(schema.NA))
    y, f = (reduce(v[None], states[None], cases) for v in (values, judged))
    others = reduce(judged[None], alone[None], cases)
    known = y.states[0] == schema.OK
    rest = ~known & (others.states[0] == schema.OK)
    return y.values[0][known], f.values[0][known], others.values[0][rest]


def _corrected(values: F64, parts: Parts) -> Total:
    from ragcore_kernels.ppi import ppi_mean

    y, f, others = parts
    n = y.size
    mean = ppi_mean(y, f, others).mean if n else math.nan
    return mean, mean * n if n else 0.0, float(n)


def _corrected_interval(values: F64, parts: Parts, level: float) -> Interval:
    from ragcore_kernels.ppi import ppi_mean

    y, f, others = parts
    found = ppi_mean(y, f, others, level=level)
    return NO_INTERVAL if found.reason else Interval(found.low, found.high, PPI, 0.0)


def _on_labels(parts: Parts, found: Interval, n_cases: int) -> list[str]:
    from ragcore_kernels.ppi import ppi_mean

    y, f, others = parts
    one = ppi_mean(y, f, others)
    said = [f"{one.n} cases with a label, {one.n_unlabelled} with the judge alone"]
    if one.n:
        said[0] += f", weight {one.lam:.3f}"
    return said + [text for text in (one.reason, one.warning) if text]


def _few(parts: Parts, found: Interval, n_cases: int) -> list[str]:
    return ["n=1: no interval"] if parts[0].size == 1 else []


_NO_PAIRS = "a ratio of sums over traces: its difference has no exact interval"

FORMS: dict[str, Form] = {
    "mean": Form("", _mean, _mean_interval),
    "sum": Form("total over cases", _sum, _none),
    "total": Form("total over traces", _total, _none, _traces),
    "geometric": Form("geometric mean", _geometric, _geometric_interval),
    "micro": Form("pooled over cases", _micro, _micro_interval, _pooled),
    "ratio": Form(
        "sums over all traces", _ratio, _ratio_interval, _sums, paired=False, why=_NO_PAIRS,
        remarks=_few,
    ),
    "aurc": _curve("area under risk against coverage", lambda curve: curve.aurc),
    "eaurc": _curve("area beyond the least", lambda curve: curve.e_aurc),
    "ppi": Form(
        "estimate of a mean, of no single answer", _corrected, _corrected_interval, _by_label,
        paired=False, why="an estimate from labels and a judge is no mean of cases",
        remarks=_on_labels,
    ),
}  # fmt: skip
"""Forms by name; quantiles besides, see `form_of`. In words: `measures.forms`."""
