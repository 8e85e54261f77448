"""Checks on a load test: Little's law, utilisation, and the concurrency where latency takes off."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels.checks import number_column
from ragcore_kernels.sums import exact_sum

F64 = NDArray[np.float64]

KNEE_FACTOR = 3.0
"""Latency that grows more than so many times as fast as throughput is past the knee; by choice."""


@dataclass(frozen=True)
class LittleAudit:
    """Both sides of L = lambda W in one window of time.

    Parameters
    ----------
    in_flight : L, requests in the system, mean over the window.
    throughput : lambda, completions for each unit of time.
    time_in_system : W, mean from start to end of the requests completed in the window.
    gap : ``|L - lambda W| / L``; what requests cut by the ends of the window leave. Large, it says
        that stamps are wrong, requests are missing, or the window is too short.
    start, end : the window.
    n, n_completed : requests in the system during the window, and those that end in it.
    n_unfinished : requests without an end, in flight from their start on.
    """

    in_flight: float
    throughput: float
    time_in_system: float
    gap: float
    start: float
    end: float
    n: int
    n_completed: int
    n_unfinished: int


def _window(starts: F64, ends: F64, window: tuple[float, float] | None) -> tuple[float, float]:
    if window is not None:
        begin, end = (float(edge) for edge in window)
        if not (math.isfinite(begin) and math.isfinite(end) and begin <= end):
            raise ValueError(f"window is {window}; expected its start and its end")
        return begin, end
    if starts.size == 0:
        return math.nan, math.nan
    known = ends[~np.isnan(ends)]
    return float(starts.min()), float(np.append(known, starts).max())


def little_audit(
    starts: ArrayLike, ends: ArrayLike, window: tuple[float, float] | None = None
) -> LittleAudit:
    """Hold recorded requests against Little's law.

    Parameters
    ----------
    starts : (n,), finite, when each request entered, in one unit of time throughout.
    ends : (n,), when it left; nan if it had not by the end of the recording.
    window : start and end of the time looked at; None for the first start to the last stamp,
        where the law holds to the last digits if every request has an end.

    Returns
    -------
    Parts that have no denominator are nan: all of them without requests or in an empty window,
    `time_in_system` and `gap` without completions.

    Raises
    ------
    ValueError
        If a start is not finite, a request ends before its start, or the window is none.

    References
    ----------
    Little, A proof for the queuing formula L = lambda W, 1961. Kim & Whitt, Statistical analysis
    with Little's law, 2013.
    """
    entered, left = number_column("starts", starts), number_column("ends", ends, nan=True)
    if entered.size != left.size:
        raise ValueError(f"{entered.size} starts and {left.size} ends; expected as many")
    early = np.flatnonzero(left < entered)
    if early.size:
        at = int(early[0])
        raise ValueError(f"request {at} ends at {left[at]}, before its start {entered[at]}")
    begin, end = _window(entered, left, window)
    open_ended = np.isnan(left)
    until = np.where(open_ended, np.inf, left)
    inside = (until >= begin) & (entered <= end)
    done = inside & (until <= end)
    n, n_done = int(np.count_nonzero(inside)), int(np.count_nonzero(done))
    counts = n, n_done, int(np.count_nonzero(open_ended))
    elapsed = end - begin
    if n == 0 or not elapsed > 0.0:
        return LittleAudit(*[math.nan] * 4, begin, end, *counts)
    with np.errstate(over="ignore"):  # an infinite length is refused by the sum
        in_flight = (
            exact_sum(np.minimum(until[inside], end) - np.maximum(entered[inside], begin)) / elapsed
        )
        whole = exact_sum(left[done] - entered[done]) if n_done else math.nan
    gap = abs(in_flight - whole / elapsed) / in_flight if in_flight > 0.0 else math.nan
    mean = whole / n_done if n_done else math.nan
    return LittleAudit(in_flight, n_done / elapsed, mean, gap, begin, end, *counts)


def utilisation(busy: float, elapsed: float, servers: int = 1) -> float:
    """Share of the time that a pool was busy.

    Parameters
    ----------
    busy : time in service, summed over the servers of the pool.
    elapsed : length of the window, in the same unit.
    servers : in the pool, >= 1.

    Returns
    -------
    ``busy / (elapsed servers)``, nan for a window of no length. Above 1 the record contradicts
    itself; it is passed on as it is, for the report to show.

    Raises
    ------
    ValueError
        If a time is negative or not finite, or there is no server.
    """
    parts = number_column("times", [busy, elapsed])
    if parts.min() < 0.0:
        raise ValueError(f"times are {busy} and {elapsed}; expected none below 0")
    if not (servers >= 1 and float(servers).is_integer()):
        raise ValueError(f"servers is {servers}; expected a whole number from 1")
    return busy / (elapsed * servers) if elapsed > 0.0 else math.nan


@dataclass(frozen=True)
class Knee:
    """Where more load brings latency rather than throughput.

    Parameters
    ----------
    at : position of the first level past the knee, None if there is none.
    concurrency : of that level, None likewise.
    latency_growth, throughput_growth : (n - 1,), relative growth from each level to the next.
    factor : the growth of latency that counts, in growths of throughput.
    """

    at: int | None
    concurrency: float | None
    latency_growth: F64
    throughput_growth: F64
    factor: float


def find_knee(
    concurrency: ArrayLike, throughput: ArrayLike, p95: ArrayLike, factor: float = KNEE_FACTOR
) -> Knee:
    """The first concurrency whose p95 grew more than `factor` times as fast as its throughput.

    Parameters
    ----------
    concurrency : (n,), rising; the levels of the load test.
    throughput, p95 : (n,), above 0; measured at each level, in any unit.
    factor : see `KNEE_FACTOR`; above 0.

    Returns
    -------
    The first level i with ``dp95 / p95 > factor * dthroughput / throughput``, growths taken from
    level i - 1 and relative to it, among those where p95 grew at all: a level where both fall is
    noise, not a knee. A fall of throughput while p95 grows is past the knee.

    Raises
    ------
    ValueError
        If a number is not finite or not above 0, levels do not rise, or the lengths differ.
    """
    levels = number_column("concurrency", concurrency)
    rates, tails = number_column("throughput", throughput), number_column("p95", p95)
    if not levels.size == rates.size == tails.size:
        sizes = f"{levels.size} levels, {rates.size} throughputs and {tails.size} p95"
        raise ValueError(f"{sizes}; expected as many")
    for name, array in (("throughput", rates), ("p95", tails)):
        wrong = np.flatnonzero(array <= 0.0)
        if wrong.size:
            at = int(wrong[0])
            raise ValueError(f"{name}[{at}] is {array[at]}; expected a number above 0")
    if (np.diff(levels) <= 0.0).any():
        raise ValueError(f"concurrency is {levels.tolist()}; expected rising levels")
    if not 0.0 < factor < math.inf:
        raise ValueError(f"factor is {factor}; expected a number above 0")
    with np.errstate(over="ignore"):
        slower, faster = np.diff(tails) / tails[:-1], np.diff(rates) / rates[:-1]
        past = np.flatnonzero((slower > factor * faster) & (slower > 0.0))
    at = int(past[0]) + 1 if past.size else None
    return Knee(at, None if at is None else float(levels[at]), slower, faster, factor)
