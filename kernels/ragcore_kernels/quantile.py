"""Search for quantiles of a sum of draws, given its transform where that is not negligible."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.rotations import BLOCK, TURN, spiral

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@inline
def distribution(
    y: float, sign: int, period: float, runs: I64, terms: F64, table: F64, out: F64
) -> None:
    """P(sign * (S - E S) <= y) and the density at y, both as smoothed by the weights.

    Parameters
    ----------
    y : at most half a period from 0.
    sign : 1, or -1 for the mirror image of the distribution.
    period, runs, terms : as for `inversion.transform`.
    table : (2, BLOCK), scratch.
    out : (2,), filled.
    """
    turns = sign * y / period
    cosines, sines = table[0], table[1]
    spiral(-turns, np.int64(BLOCK), cosines, sines)
    wave, bulk = 0.0, 0.0
    at = 0
    for r in range(runs.shape[1]):
        for base in range(0, runs[1, r], BLOCK):
            phase = (runs[0, r] + base) * turns
            angle = -TURN * (phase - math.floor(phase))
            c, s = math.cos(angle), math.sin(angle)
            for i in range(min(BLOCK, runs[1, r] - base)):
                a = c * cosines[i] - s * sines[i]
                b = c * sines[i] + s * cosines[i]
                wave += terms[2, at] * (terms[0, at] * b + terms[1, at] * a)
                bulk += terms[3, at] * (terms[0, at] * a - terms[1, at] * b)
                at += 1
    out[0] = 0.5 + y / period - sign * wave
    out[1] = (1.0 + 2.0 * bulk) / period


@inline
def _normal(target: float) -> float:
    """How many deviations below the mean a normal law has `target` left, to 0.003; a guess.

    References
    ----------
    Abramowitz & Stegun, 26.2.22.
    """
    t = math.sqrt(-2.0 * math.log(min(target, 0.5)))
    return t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))


@kernel
def lattice_quantile(
    target: float,
    deviation: float,
    sign: int,
    least: int,
    greatest: int,
    period: float,
    runs: I64,
    terms: F64,
    out: F64,
) -> int:
    """Least integer d with ``P(sign * (S - E S) <= d) >= target``.

    Parameters
    ----------
    target : a probability, above 0.
    deviation : of S; with the normal law it makes the first guess and the first steps.
    sign, period, runs, terms : as for `distribution`.
    least, greatest : d lies between, both included.
    out : (2,), filled with the probabilities at d and at d - 1.
    """
    table, pair = np.empty((2, BLOCK)), np.empty(2)
    low, high = least - 1, greatest
    at_low, at_high = 0.0, 1.0
    z = _normal(target)
    slope = deviation * math.sqrt(TURN) * math.exp(0.5 * z * z)
    guess = math.floor(-z * deviation)
    tries = 0
    while high - low > 1:
        if guess <= low or guess >= high or tries > 8:
            guess = (low + high) >> 1
        distribution(guess + 0.5, sign, period, runs, terms, table, pair)
        tries += 1
        move = max(1, int(min(abs(pair[0] - target) * slope, 1e15)))
        if pair[0] >= target:
            high, at_high = guess, pair[0]
            guess -= move
        else:
            low, at_low = guess, pair[0]
            guess += move
    out[0], out[1] = at_high, at_low
    return high


@kernel
def bracket_quantile(
    target: float,
    slack: float,
    deviation: float,
    sign: int,
    least: float,
    greatest: float,
    period: float,
    degree: int,
    runs: I64,
    terms: F64,
    out: F64,
) -> None:
    """Enclose the least y with ``P(sign * (S - E S) <= y) >= target``.

    Parameters
    ----------
    target, deviation, sign, period, runs, terms : as for `lattice_quantile`.
    slack : error of any computed probability, besides that of the degree.
    least, greatest : y lies between.
    degree : Vaaler's degree; the weights of `terms` belong to it.
    out : (2,), filled with lower and upper end; both are proved by Vaaler's bound.
    """
    table, pair = np.empty((2, BLOCK)), np.empty(2)
    half = period / (2.0 * degree + 2.0)
    low, high = least, greatest
    y = min(max(-_normal(target) * deviation, low), high)
    for _ in range(40):  # the quantile of the smoothed distribution, as a place to start
        distribution(y, sign, period, runs, terms, table, pair)
        if pair[0] >= target:
            high = y
        else:
            low = y
        if high - low < 0.02 * half:
            break
        move = (target - pair[0]) / max(pair[1], 1e-3 / deviation)
        if abs(move) < 0.01 * half:
            break
        y += move
        if y <= low or y >= high:
            y = 0.5 * (low + high)
    centre = y
    for side in range(2):
        reach = 1.02 * half
        while True:
            y = centre + reach if side == 1 else centre - reach
            if y <= least or y >= greatest:
                out[side] = min(max(y, least), greatest)
                break
            distribution(y, sign, period, runs, terms, table, pair)
            doubt = slack + half * abs(pair[1])
            if side == 1 and pair[0] - doubt >= target:
                out[1] = y
                break
            if side == 0 and pair[0] + doubt < target:
                out[0] = y
                break
            reach *= 1.15
