"""Names of the forms of an aggregate in words: how values of cases or traces become one number.

They are worked out in `ragcore.aggregates`; here is only what a page about a measure says.
"""

from __future__ import annotations

import re

_QUANTILE = re.compile(r"quantile\((0\.\d+)\)")

WORDS = {
    "mean": "the mean over cases with a value",
    "sum": "the total over cases",
    "total": "the total over all traces",
    "geometric": "exp of the mean logarithm over cases, each at least 0.00001",
    "micro": "the sum of numerators over the sum of denominators, cases resampled whole",
    "ratio": "the sum over all traces over the sum over all traces, cases resampled whole",
    "aurc": "mean over m of the expected risk of the m surest cases",
    "eaurc": "the area under risk against coverage, less that of a perfect order",
    "ppi": "the mean of labels over cases, with what the judge says of the other cases (PPI++)",
}
"""Forms by name; quantiles besides."""


def quantile_of(how: str) -> float | None:
    """The share of a form like ``quantile(0.95)``; None for another."""
    found = _QUANTILE.fullmatch(how)
    return float(found[1]) if found else None


def percentile(p: float) -> str:
    """``p95`` of 0.95."""
    return f"p{100 * p:.10g}"


def words_of(how: str) -> str:
    """A form in words.

    Raises
    ------
    KeyError
        If there is no such form.
    """
    p = quantile_of(how)
    if p is None:
        return WORDS[how]
    return f"{percentile(p)} over traces by nearest rank; n/d is its rank of so many traces"
