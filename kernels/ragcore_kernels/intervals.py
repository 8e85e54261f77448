"""An interval and how surely it is known."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Interval of a mean, in the unit of the values.

    Parameters
    ----------
    low, high : ends, nan if there are no cases.
    method : ``"exact"``; ``"exact±3e-07"`` if an end is only known to be that near;
        ``"monte-carlo(100000, 0)"`` if it was drawn, with so many replicates and that seed;
        ``""`` without cases.
    bound : greatest possible distance of `low` and of `high` from the exact end; 0.0 if there
        is none, inf if it was drawn.
    """

    low: float
    high: float
    method: str
    bound: float


def exponential(interval: Interval) -> Interval:
    """Interval of e**x from that of x: for geometric means, whose logarithms are resampled.

    Parameters
    ----------
    interval : of the logarithms; its bound becomes one on the ends of the result.
    """
    if not interval.method:
        return interval
    low, high = math.exp(interval.low), math.exp(interval.high)
    if math.isinf(interval.bound):
        return Interval(low, high, interval.method, interval.bound)
    bound = high * math.expm1(interval.bound)
    return Interval(low, high, method_of(bound), bound)


def method_of(bound: float) -> str:
    """The method's text for a certified bound."""
    return f"exact±{rounded_up(bound)}" if bound else "exact"


def rounded_up(bound: float) -> str:
    """One significant digit, never below `bound`."""
    text = f"{bound:.0e}"
    if float(text) < bound:
        power = math.floor(math.log10(bound))
        text = f"{bound + 0.5 * 10.0**power:.0e}"
    return text
