"""Distribution of a sum of n draws from a finite sample, by inverting its Fourier transform.

Let x_j, with probabilities p_j, be the values of one draw, N a period that holds all but a
negligible part of the sum S, and psi_k the transform of S - E S at the angle 2 pi k / N. With
y the distance from E S,

    P(S - E S <= y) = 1/2 + y/N - sum_k w_k Im(psi_k exp(-2 pi i k y / N)),   1 <= k < N/2

is exact on the integers for ``w_k = 1 / (N sin(pi k / N))`` at y half-way between two atoms. Off
a lattice the sum over all k with ``w_k = 1 / (pi k)`` is exact; cut at a degree K and damped as
Vaaler did, it is off by no more than ``N / (2K + 2)`` times a density smoothed by Fejér's kernel,
for any distribution whatever.

Few k matter, because ``psi_k = phi(2 pi k / N)**n`` is tiny unless |phi| is nearly 1. `scan`
finds those k without visiting the others, `transform` evaluates psi there, and module `quantile`
searches.

References
----------
Vaaler, Some extremal functions in Fourier analysis, Bulletin of the AMS 12(2), 1985, theorem 18.
Clark & Warr, Bootstrapping through discrete convolutional methods, 2021.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.rotations import (
    BLOCK,
    TURN,
    add_turned,
    less_one_run,
    psi,
    psi_by_squares,
    psi_close,
    spiral,
    turns,
)

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_CHUNK = 1024
_CLOSE = 16  # frequencies near 0 that are evaluated without cancellation, at a time
_SMALL_PSI = 1e-12  # squared
_FEW_DRAWS = 4096
_LEAST_PSI = 1e-36  # squared; where psi was left out it is below this


@inline
def phi_run(
    x: F64, p: F64, period: float, start: int, step: int, count: int, re: F64, im: F64, table: F64
) -> None:
    """Transform of one draw at frequencies start, start + step, ...; `count` of them.

    Products of frequency and value are reduced by the period before they become angles: exactly,
    where both are integers and the product is below 2**53.
    """
    for i in range(count):
        re[i] = 0.0
        im[i] = 0.0
    cosines, sines = table[0], table[1]
    for j in range(x.size):
        spiral(turns(step * x[j], period), min(count, BLOCK), cosines, sines)
        for base in range(0, count, BLOCK):
            angle = TURN * (turns((start + base * step) * x[j], period))
            a, b = p[j] * math.cos(angle), p[j] * math.sin(angle)
            end = min(base + BLOCK, count)
            add_turned(re[base:end], im[base:end], cosines[: end - base], sines[: end - base], a, b)


@inline
def _phi_quickly(
    x: F64, p: F64, period: float, start: int, step: int, count: int, re: F64, im: F64, table: F64
) -> None:
    """As `phi_run`, to 1e-14 instead of 1e-16: enough to see where it is large."""
    for i in range(count):
        re[i] = 0.0
        im[i] = 0.0
    cosines, sines = table[0], table[1]
    for j in range(x.size):
        spiral(turns(step * x[j], period), min(count, BLOCK), cosines, sines)
        angle = TURN * (turns(start * x[j], period))
        a, b = p[j] * math.cos(angle), p[j] * math.sin(angle)
        c, d = 1.0, 0.0
        if count > BLOCK:
            angle = TURN * (turns(BLOCK * step * x[j], period))
            c, d = math.cos(angle), math.sin(angle)
        for base in range(0, count, BLOCK):
            end = min(base + BLOCK, count)
            add_turned(re[base:end], im[base:end], cosines[: end - base], sines[: end - base], a, b)
            a, b = a * c - b * d, a * d + b * c


@inline
def power_at(x: F64, p: F64, period: float, k: int) -> float:
    """Squared modulus of the transform of one draw at frequency k."""
    re, im = 0.0, 0.0
    for j in range(x.size):
        angle = TURN * (turns(k * x[j], period))
        re += p[j] * math.cos(angle)
        im += p[j] * math.sin(angle)
    return re * re + im * im


@inline
def _may_matter(
    first: float, last: float, width: float, angle: float, shape: F64, floor: float
) -> bool:
    """Whether |phi|**2 may reach `floor` between two points `width` apart with these values.

    |phi|**2 is the transform of a difference of two draws, so its second derivative is at most
    twice the variance, and it lies below a parabola over the chord of its values at both points.
    `angle` is the upper end; bins add up to ``spread * angle**2 / 2``.
    """
    variance, spread = shape[0], shape[1]
    blur = 0.5 * spread * angle * angle
    rise = 0.25 * variance * width * width
    chord = last - first
    top = max(first, last)
    if abs(chord) < 4.0 * rise:  # the parabola over the chord has its top inside
        top = 0.5 * (first + last) + rise + 0.0625 * chord * chord / rise
    return top + 2.0 * blur + blur * blur >= floor


@inline
def take(start: int, stop: int, most: int, runs: I64, out: I64) -> bool:
    """Append start..stop-1 to `runs`, or to the last of them; False if there is no room."""
    n_runs = out[0]
    joins = n_runs > 0 and runs[0, n_runs - 1] + runs[1, n_runs - 1] == start
    if out[1] + stop - start > most or (n_runs == runs.shape[1] and not joins):
        return False
    if joins:
        runs[1, n_runs - 1] += stop - start
    elif stop > start:
        runs[0, n_runs], runs[1, n_runs] = start, stop - start
        out[0] += 1
    out[1] += stop - start
    return True


@inline
def take_all(last: int, most: int, runs: I64, out: I64) -> None:
    """Take 1..last, or as many as there may be, without a look."""
    runs[0, 0] = 1
    runs[1, 0] = min(last, most)
    out[0], out[1], out[2] = 1, runs[1, 0], runs[1, 0]


@inline
def halve(stack: I64, ends: F64, depth: int, middle: int, at_middle: float | F64) -> None:
    """Part the cell at `depth` in two: its left half comes on top, to be looked at first.

    Parameters
    ----------
    stack : (max_depth, 2), first and last frequency of each cell.
    ends : (max_depth, 2) or (max_depth, 2, n_laws), the values there.
    at_middle : scalar or (n_laws,), the values in the middle.
    """
    stack[depth + 1, 0], stack[depth + 1, 1] = stack[depth, 0], middle
    ends[depth + 1, 0] = ends[depth, 0]
    ends[depth + 1, 1] = at_middle
    stack[depth, 0] = middle
    ends[depth, 0] = at_middle


@kernel
def scan(
    x: F64,
    p: F64,
    period: float,
    shape: F64,
    cell: int,
    last: int,
    floor: float,
    most: int,
    runs: I64,
    out: I64,
) -> None:
    """Find every frequency in 1..last where |phi|**2 may reach `floor`.

    Parameters
    ----------
    x, p : (n_values,), values of one draw less some constant; probabilities.
    period : N.
    shape : (2,), variance of one draw; mean squared distance of values from their bin's centroid.
    cell : frequencies between two points of the coarse pass; up to 4, all frequencies are taken.
    last : highest frequency to look at.
    floor : a share of 1.
    most : frequencies that may be taken.
    runs : (2, max_runs), filled with first frequency and length of each run taken.
    out : (3,), filled with the number of runs, of frequencies, and the highest frequency looked
        at: less than `last` if `most` or `max_runs` stopped the search.
    """
    if cell <= 4:
        take_all(last, most, runs, out)
        return
    out[0], out[1] = 0, 0
    unit = TURN / period
    re, im = np.empty(_CHUNK), np.empty(_CHUNK)
    table = np.empty((2, BLOCK))
    stack = np.empty((64, 2), np.int64)
    ends = np.empty((64, 2))
    for chunk in range(0, last + 1, (_CHUNK - 1) * cell):
        count = min(_CHUNK - 1, (last - chunk) // cell + 1)
        _phi_quickly(x, p, period, chunk, cell, count + 1, re, im, table)
        for i in range(count + 1):
            re[i] = re[i] * re[i] + im[i] * im[i]
        for i in range(count):
            stack[0, 0], stack[0, 1] = chunk + i * cell, chunk + (i + 1) * cell
            ends[0, 0], ends[0, 1] = re[i], re[i + 1]
            depth = 1
            while depth > 0:
                depth -= 1
                a, b = stack[depth, 0], stack[depth, 1]
                at_a, at_b = ends[depth, 0], ends[depth, 1]
                if a > last or not _may_matter(at_a, at_b, (b - a) * unit, b * unit, shape, floor):
                    continue
                if b - a > 16:  # look again, at half the distance; the left half first
                    middle = (a + b) >> 1
                    halve(stack, ends, depth, middle, power_at(x, p, period, middle))
                    depth += 2
                    continue
                if not take(max(a, 1), min(b, last + 1), most, runs, out):
                    out[2] = max(a, 1) - 1
                    return
    out[2] = last


@inline
def weights(terms: F64, at: int, k: int, period: float, degree: int) -> None:
    """Weights of frequency k: of the lattice if `degree` is 0, else Vaaler's and Fejér's."""
    if degree == 0:
        terms[2, at] = 1.0 / (period * math.sin(math.pi * k / period))
        terms[3, at] = 1.0
    else:
        share = k / (degree + 1.0)
        turn = math.pi * share
        damping = turn * (1.0 - share) / math.tan(turn) + share
        terms[2, at] = damping / (math.pi * k)
        terms[3, at] = 1.0 - share


@kernel
def transform(
    x: F64,
    p: F64,
    period: float,
    n: int,
    rest: float,
    degree: int,
    shape: F64,
    floor: float,
    runs: I64,
    terms: F64,
) -> float:
    """Evaluate psi and the weights at the frequencies of `runs`.

    Near frequency 0, where rounding would be multiplied by n, the transform less 1 is summed from
    terms of its own size, with the mean taken out exactly.

    Parameters
    ----------
    x, p, period, shape, floor : as for `scan`.
    n : draws.
    rest : n times the mean of x, exact on a lattice.
    degree : 0 for a lattice; else Vaaler's degree, at least the highest frequency.
    runs : (2, n_runs)
    terms : (4, n_frequencies), filled: re psi, im psi, w, v; see `quantile.distribution`.

    Returns
    -------
    Bound of the error of the distribution that comes from binning, see ``shape[1]``.
    """
    re, im = np.empty(_CHUNK), np.empty(_CHUNK)
    power = np.empty((2, _CHUNK))
    table = np.empty((2, BLOCK))
    at, slack = 0, 0.0
    near = 20_000 // x.size
    close = near >= 8
    for r in range(runs.shape[1]):
        done = 0
        while done < runs[1, r]:
            k0 = runs[0, r] + done
            count = min(_CHUNK, runs[1, r] - done)
            close = close and r == 0 and k0 < near
            if close:
                count = min(count, _CLOSE)
                less_one_run(x, p, period, rest / n, k0, count, re, im)
                psi_close(re[:count], im[:count], n)
                # Where psi is small, so is n times the rounding of phi.
                close = re[count - 1] ** 2 + im[count - 1] ** 2 > _SMALL_PSI
            else:
                phi_run(x, p, period, k0, np.int64(1), count, re, im, table)
                if n <= _FEW_DRAWS:
                    psi_by_squares(
                        re[:count], im[:count], n, rest, period, k0, power[0, :count],
                        power[1, :count], table,
                    )  # fmt: skip
                else:
                    psi(re[:count], im[:count], n, rest, period, k0, floor)
            for i in range(count):
                k = k0 + i
                weights(terms, at, k, period, degree)
                terms[0, at], terms[1, at] = re[i], im[i]
                if shape[1] > 0.0:
                    blur = 0.5 * shape[1] * (TURN * k / period) ** 2
                    squared = max(re[i] * re[i] + im[i] * im[i], _LEAST_PSI)
                    size = math.exp(math.log(squared) / (2 * n))
                    most = min(1.0, size + blur)
                    weight = terms[2, at] + terms[3, at] / (degree + 1.0)
                    slack += weight * n * blur * math.exp((n - 1) * math.log(most))
                at += 1
            done += count
    return slack
