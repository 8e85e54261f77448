"""Rotations and powers of complex numbers, many at a time: what transforms are made of.

Loops run over arrays of their own length, which the compiler turns into vector instructions;
an offset inside the loop would keep it from that.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline

F64 = NDArray[np.float64]

TURN = 2.0 * math.pi
BLOCK = 128
"""Numbers stepped through by one table of rotations before the phase is computed afresh."""


@inline
def turns(product: float, period: float) -> float:
    """Part of a turn, -1/2 to 1/2; exact reduction if both are integers below 2**53."""
    return (product - math.floor(product / period + 0.5) * period) / period


@inline
def spiral(turns: float, count: int, re: F64, im: F64) -> None:
    """Powers 0..count-1 of exp(2 pi i turns), each by log2(count) products at most.

    Doubled again and again, so that the inner loop runs on vectors.
    """
    re[0], im[0] = 1.0, 0.0
    a, b = math.cos(TURN * turns), math.sin(TURN * turns)
    have = 1
    while have < count:
        more = min(have, count - have)
        multiply(re[:more], im[:more], a, b, re[have : have + more], im[have : have + more])
        have += more
        a, b = a * a - b * b, 2.0 * a * b


@inline
def multiply(re: F64, im: F64, a: float, b: float, out_re: F64, out_im: F64) -> None:
    """(re + i im)(a + i b)."""
    for i in range(re.size):
        out_re[i] = re[i] * a - im[i] * b
        out_im[i] = re[i] * b + im[i] * a


@inline
def add_turned(re: F64, im: F64, cosines: F64, sines: F64, a: float, b: float) -> None:
    """Add (a + i b)(cosines + i sines). Arguments of their own length let this run on vectors."""
    for i in range(re.size):
        re[i] += a * cosines[i] - b * sines[i]
        im[i] += a * sines[i] + b * cosines[i]


@inline
def add_cosines(out: F64, cosines: F64, sines: F64, a: float, b: float) -> None:
    """Add the real part of (a + i b)(cosines + i sines)."""
    for i in range(out.size):
        out[i] += a * cosines[i] - b * sines[i]


@inline
def turn_all(re: F64, im: F64, cosines: F64, sines: F64, a: float, b: float) -> None:
    """Multiply by (a + i b)(cosines + i sines)."""
    for i in range(re.size):
        c = a * cosines[i] - b * sines[i]
        d = a * sines[i] + b * cosines[i]
        turned = re[i] * c - im[i] * d
        im[i] = re[i] * d + im[i] * c
        re[i] = turned


@inline
def square(re: F64, im: F64) -> None:
    """Square every number, in place."""
    for i in range(re.size):
        squared = re[i] * re[i] - im[i] * im[i]
        im[i] = 2.0 * re[i] * im[i]
        re[i] = squared


@inline
def multiply_all(re: F64, im: F64, other_re: F64, other_im: F64) -> None:
    """Multiply every number by another, in place."""
    for i in range(re.size):
        product = re[i] * other_re[i] - im[i] * other_im[i]
        im[i] = re[i] * other_im[i] + im[i] * other_re[i]
        re[i] = product


@inline
def sine_excess(y: float) -> float:
    """``sin(y) - y`` without cancellation."""
    if abs(y) > 0.4:
        return math.sin(y) - y
    z = y * y
    series = 1.0 - z / 42.0 * (1.0 - z / 72.0 * (1.0 - z / 110.0 * (1.0 - z / 156.0)))
    return -y * z / 6.0 * (1.0 - z / 20.0 * series)


@inline
def less_one_run(
    x: F64, p: F64, period: float, mean: float, start: int, count: int, re: F64, im: F64
) -> None:
    """Transform of one draw less its mean, minus 1, from frequency start on; no cancellation."""
    for i in range(count):
        re[i] = 0.0
        im[i] = 0.0
        for j in range(x.size):
            y = TURN * (start + i) / period * (x[j] - mean)
            half = math.sin(0.5 * y)
            re[i] -= 2.0 * p[j] * half * half
            im[i] += p[j] * sine_excess(y)


@inline
def psi_close(re: F64, im: F64, n: int) -> None:
    """Power n of 1 + re + i im, in place."""
    for i in range(re.size):
        log = 0.5 * math.log1p(2.0 * re[i] + re[i] * re[i] + im[i] * im[i])
        angle = n * math.atan2(im[i], 1.0 + re[i])
        size = math.exp(n * log)
        re[i], im[i] = size * math.cos(angle), size * math.sin(angle)


@inline
def psi(re: F64, im: F64, n: int, rest: float, period: float, start: int, floor: float) -> None:
    """Power n of phi, the mean taken out, in place; 0 below the floor."""
    for i in range(re.size):
        squared = re[i] * re[i] + im[i] * im[i]
        if squared < floor:
            re[i], im[i] = 0.0, 0.0
            continue
        angle = n * math.atan2(im[i], re[i]) - TURN * (turns((start + i) * rest, period))
        size = math.exp(0.5 * n * math.log(squared))
        re[i], im[i] = size * math.cos(angle), size * math.sin(angle)


@inline
def psi_by_squares(
    re: F64, im: F64, n: int, rest: float, period: float, start: int, power_re: F64,
    power_im: F64, table: F64,
) -> None:  # fmt: skip
    """As `psi`, by repeated squaring: no worse in rounding, and on vectors."""
    for i in range(re.size):
        power_re[i], power_im[i] = re[i], im[i]
    bit = np.int64(1)
    while bit <= n >> 1:
        bit <<= 1
    bit >>= 1
    while bit > 0:
        square(power_re, power_im)
        if n & bit:
            multiply_all(power_re, power_im, re, im)
        bit >>= 1
    cosines, sines = table[0], table[1]
    spiral(-turns(rest, period), min(re.size, BLOCK), cosines, sines)
    for base in range(0, re.size, BLOCK):
        angle = -TURN * (turns((start + base) * rest, period))
        end = min(base + BLOCK, re.size)
        turn_all(
            power_re[base:end], power_im[base:end], cosines[: end - base], sines[: end - base],
            math.cos(angle), math.sin(angle),
        )  # fmt: skip
    for i in range(re.size):
        re[i], im[i] = power_re[i], power_im[i]
