"""How small a difference n cases can show, and how many cases a difference needs; exactly.

Paired outcomes of 0 or 1: a case is won, lost or tied. With discordance rate r (won or lost) and
difference d (won less lost), a case is won with probability (r + d) / 2 and lost with (r - d) / 2.
The power is the probability of finding the difference in the right direction, summed over all
numbers of discordant cases and of wins: no simulation, no normal approximation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ragcore.errors import UsageError
from ragcore_kernels.binomial import binomial_masses, binomial_tail, least_count
from ragcore_kernels.layout import I64
from ragcore_kernels.trinomial import sum_ends

TESTS = ("interval", "sign-flip")
MOST_CASES = 1_000_000

_LEFT_OUT = 1e-12
"""Probability of numbers of discordant cases that are not looked at; the power may lack it."""


@dataclass(frozen=True)
class Power:
    """What n cases can show.

    Attributes
    ----------
    test : ``interval``: the exact percentile bootstrap interval lies above 0; ``sign-flip``: the
        exact two-sided p-value is at most 1 - level, and wins prevail.
    n, discordance, difference : cases, share of cases won or lost, mean difference.
    power : probability that the test finds the difference.
    level, target : of the interval; power asked for.
    reason : why there is no answer; "" if there is one.
    """

    test: str
    n: int | None
    discordance: float
    difference: float | None
    power: float | None
    level: float
    target: float
    reason: str = ""


def power_of(
    n: int, discordance: float, difference: float, level: float = 0.95, test: str = "interval"
) -> float:
    """Probability that n paired cases show a difference.

    Parameters
    ----------
    n : cases, 1 or more.
    discordance : probability that a case is won or lost, above 0.
    difference : probability of a win less that of a loss, 0 to `discordance`.
    level : of the interval; 1 - level is the size of the test.
    test : one of `TESTS`.

    Raises
    ------
    UsageError
        If an argument is out of range.
    """
    _check(discordance, level, test)
    if not 1 <= n <= MOST_CASES:
        raise UsageError(f"{n} cases", f"1 to {MOST_CASES:,}")
    if not 0.0 <= difference <= discordance:
        raise UsageError(
            f"difference {difference:g} with discordance {discordance:g}",
            "a difference lies between 0 and the discordance rate",
        )
    return _power(n, discordance, difference, level, test)


def detectable(
    n: int, discordance: float, level: float = 0.95, target: float = 0.8, test: str = "interval"
) -> Power:
    """The smallest difference that n cases show with probability `target`, to 1e-6.

    Raises
    ------
    UsageError
        As `power_of`.
    """
    _check(discordance, level, test, target)
    most = power_of(n, discordance, discordance, level, test)
    if most < target:
        return Power(
            test, n, discordance, None, most, level, target,
            f"even if every discordant case is won, the power is {most:.4f}",
        )  # fmt: skip
    low, high = 0.0, discordance
    while high - low > 1e-7:
        middle = 0.5 * (low + high)
        if _power(n, discordance, middle, level, test) >= target:
            high = middle
        else:
            low = middle
    found = _power(n, discordance, high, level, test)
    return Power(test, n, discordance, high, found, level, target)


def cases_needed(
    difference: float, discordance: float, level: float = 0.95, target: float = 0.8,
    test: str = "interval",
) -> Power:  # fmt: skip
    """The number of cases from which on a difference is shown with probability `target`.

    The power does not rise with every case, as counts are whole. The answer is the least n that
    reaches the target and keeps it for the next tenth of n, looked at case by case below 640 and
    in steps of at most a 64th of that tenth above.

    Raises
    ------
    UsageError
        As `power_of`; and if the difference is 0.
    """
    _check(discordance, level, test, target)
    if not 0.0 < difference <= discordance:
        raise UsageError(
            f"difference {difference:g} with discordance {discordance:g}",
            "a difference lies above 0, up to the discordance rate",
        )

    def reached(n: int) -> bool:
        return _power(n, discordance, difference, level, test) >= target

    high = 4
    while not reached(high):
        high *= 2
        if high > MOST_CASES:
            return Power(
                test, None, discordance, difference, None, level, target,
                f"more than {MOST_CASES:,} cases",
            )  # fmt: skip
    low = max(high // 2, 1)
    while high - low > 1:
        middle = (low + high) // 2
        if reached(middle):
            high = middle
        else:
            low = middle
    n = _settled(high, reached)
    found = _power(n, discordance, difference, level, test)
    return Power(test, n, discordance, difference, found, level, target)


def _settled(start: int, reached: object) -> int:
    """Least n near `start` that reaches the target and keeps it for a while."""
    assert callable(reached)
    span = max(4, start // 10)
    stride = max(1, span // 64)
    n = max(1, start - span)
    last = n
    for m in range(n, start + 2 * span + 1, stride):
        if not reached(m):
            last = m + 1
    while not reached(last):
        last += 1
    return last


def _check(discordance: float, level: float, test: str, target: float = 0.5) -> None:
    if not 0.0 < discordance <= 1.0:
        raise UsageError(f"discordance {discordance:g}", "a rate above 0, at most 1")
    if not 0.0 < level < 1.0:
        raise UsageError(f"level {level:g}", "between 0 and 1")
    if not 0.0 < target < 1.0:
        raise UsageError(f"power {target:g}", "between 0 and 1")
    if test not in TESTS:
        raise UsageError(f"test={test!r}", f"one of {', '.join(TESTS)}")


def _power(n: int, discordance: float, difference: float, level: float, test: str) -> float:
    weights = np.empty(n + 1)
    if discordance < 1.0:
        binomial_masses(n, discordance, 1.0 - discordance, weights)
    else:
        weights[:] = 0.0
        weights[n] = 1.0
    used = np.flatnonzero(weights > _LEFT_OUT / (n + 1))
    win, loss = 0.5 * (1 + difference / discordance), 0.5 * (1 - difference / discordance)
    first, needed = _needed(n, level, test, int(used[0]), int(used[-1]))
    total = []
    for m in used.tolist():
        k = int(needed[m - first])
        if k > m:
            continue
        if loss <= 0.0:
            total.append(weights[m])
        else:
            total.append(weights[m] * binomial_tail(k, m, win, loss))
    return min(1.0, math.fsum(total))


@lru_cache(maxsize=4096)
def _needed(n: int, level: float, test: str, low: int, high: int) -> tuple[int, I64]:
    """Least wins among m discordant cases that a test takes for a gain, for m from low to high."""
    tail = (1.0 - level) / 2.0
    out = np.empty(high - low + 1, np.int64)
    if test == "sign-flip":
        for m in range(low, high + 1):
            out[m - low] = least_count(m, 0.5, 0.5, tail * (1 + 1e-12)) if m else 1
        return low, out
    guess = 0
    for m in range(low, high + 1):
        guess = _least_wins(n, m, tail * (1 - 1e-12), guess)
        out[m - low] = guess
    return low, out


def _least_wins(n: int, m: int, tail: float, guess: int) -> int:
    """Least wins of m discordant among n cases whose interval lies above 0, m + 1 for none."""
    if n < 2 or m == 0 or not _above(m, n - m, 0, tail):
        return m + 1
    k = min(max(guess, m // 2), m)
    while k > 0 and _above(k - 1, n - m, m - k + 1, tail):
        k -= 1
    while not _above(k, n - m, m - k, tail):
        k += 1
    return k


def _above(wins: int, ties: int, losses: int, tail: float) -> bool:
    """Whether the exact percentile interval of the mean difference lies above 0."""
    if losses == 0:
        return wins > 0 and (ties == 0 or sum_ends(ties, wins, 0, tail, tail)[0] > 0)
    if wins == 0:
        return False
    n = wins + ties + losses
    if ties == 0:
        return 2 * sum_ends(losses, wins, 0, tail, tail)[0] > n
    return sum_ends(losses, ties, wins, tail, tail)[0] > n
