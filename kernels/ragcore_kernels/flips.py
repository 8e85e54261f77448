"""Tail of a sum with random signs, by inverting its Fourier transform.

Let T = sum of e_i d_i with independent signs e_i, +1 or -1. Its distribution depends on the
magnitudes x_j of the d_i and their counts c_j. For an outcome t let X = (T - t) / 2: integers, if
the x_j are and t is a sum of them. What is sought is P(X >= 0). Far out it would drown in
rounding; there the signs are leant towards t: P(e_i = 1) is proportional to exp(h x), E T = t,
and

    P(X >= 0) = prod_j cosh(h x_j)**c_j * exp(-h t) * E[exp(-2 h X); X >= 0]

with the expectation on the right under the leaning signs, where it is no small number.

The transform of X at the angle 2 pi k / N is a product, with y = pi k x_j / N,

    psi_k = exp(-i pi k t / N) prod_j (cos y + i tanh(h x_j) sin y)**c_j

and few k matter: by the inequality of the two means, with weights p_j = c_j / (m cosh(h x_j)**2),

    |psi_k|**2 = prod_j (1 - sin(y)**2 / cosh(h x_j)**2)**c_j
              <= (1 - sum_j p_j (1 - cos 2y) / 2)**m

a sum of cosines of bounded curvature; `scan_cosines` finds where it may be large.

References
----------
Vaaler, Some extremal functions in Fourier analysis, Bulletin of the AMS 12(2), 1985, theorem 18.
Robinson, Saddlepoint approximations for permutation tests, JRSS B 44(1), 1982.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.inversion import halve, take, take_all
from ragcore_kernels.rotations import BLOCK, TURN, add_cosines, multiply_all, spiral, square, turns

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_CHUNK = 1024
_NEAR = 32
_NEAR_VALUES = 1024
_KEPT = 1024


@inline
def _cosine_run(
    x: F64, p: F64, period: float, start: int, step: int, count: int, out: F64, table: F64
) -> None:
    """Sum of ``p cos(2 pi k x / period)`` at frequencies k = start, start + step, ...; `count`."""
    for i in range(count):
        out[i] = 0.0
    cosines, sines = table[0], table[1]
    for j in range(x.size):
        spiral(turns(step * x[j], period), min(count, BLOCK), cosines, sines)
        for base in range(0, count, BLOCK):
            angle = TURN * (turns((start + base * step) * x[j], period))
            a, b = p[j] * math.cos(angle), p[j] * math.sin(angle)
            end = min(base + BLOCK, count)
            add_cosines(out[base:end], cosines[: end - base], sines[: end - base], a, b)


@inline
def _cosine_at(x: F64, p: F64, period: float, k: int) -> float:
    """Sum of ``p cos(2 pi k x / period)``."""
    total = 0.0
    for j in range(x.size):
        total += p[j] * math.cos(TURN * (turns(k * x[j], period)))
    return total


@inline
def _may_matter(
    first: float, last: float, width: float, angle: float, shape: F64, floor: float
) -> bool:
    """Whether a sum of cosines may reach `floor` between two points `width` apart.

    Its second derivative is at most ``shape[0]``, so it lies below a parabola over the chord of
    its values at both points. `angle` is the upper end; bins add up to ``shape[1] angle**2 / 2``.
    """
    rise = 0.125 * shape[0] * width * width
    chord = last - first
    top = max(first, last)
    if abs(chord) < 4.0 * rise:
        top = 0.5 * (first + last) + rise + 0.0625 * chord * chord / rise
    return top + 0.5 * shape[1] * angle * angle >= floor


@kernel
def scan_cosines(
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
    """Find every frequency k in 1..last where ``sum p cos(2 pi k x / period)`` may reach `floor`.

    Parameters
    ----------
    x, p : (n_values,), values; weights, none negative.
    period : N.
    shape : (2,), sum of p x**2 over the values themselves; the same over their distances from
        their bin's centroid, 0.0 without bins.
    cell : frequencies between two points of the coarse pass; up to 4, all frequencies are taken.
    last : highest frequency to look at.
    floor : in the unit of p.
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
    sums = np.empty(_CHUNK)
    table = np.empty((2, BLOCK))
    stack = np.empty((64, 2), np.int64)
    ends = np.empty((64, 2))
    for chunk in range(0, last + 1, (_CHUNK - 1) * cell):
        count = min(_CHUNK - 1, (last - chunk) // cell + 1)
        _cosine_run(x, p, period, chunk, cell, count + 1, sums, table)
        for i in range(count):
            stack[0, 0], stack[0, 1] = chunk + i * cell, chunk + (i + 1) * cell
            ends[0, 0], ends[0, 1] = sums[i], sums[i + 1]
            depth = 1
            while depth > 0:
                depth -= 1
                a, b = stack[depth, 0], stack[depth, 1]
                at_a, at_b = ends[depth, 0], ends[depth, 1]
                width = (b - a) * unit
                if a > last or not _may_matter(at_a, at_b, width, b * unit, shape, floor):
                    continue
                if b - a > 16:  # look again, at half the distance; the left half first
                    middle = (a + b) >> 1
                    halve(stack, ends, depth, middle, _cosine_at(x, p, period, middle))
                    depth += 2
                    continue
                if not take(max(a, 1), min(b, last + 1), most, runs, out):
                    out[2] = max(a, 1) - 1
                    return
    out[2] = last


@inline
def _raise(base: F64, power: int, count: int, out: F64) -> None:
    """Multiply `out` by real `base` to a whole power; `base` is spent."""
    while True:
        if power & 1:
            for i in range(count):
                out[i] *= base[i]
        power >>= 1
        if power == 0:
            return
        for i in range(count):
            base[i] *= base[i]


@inline
def _raise_complex(re: F64, im: F64, power: int, out_re: F64, out_im: F64) -> None:
    """Multiply `out` by a complex base to a whole power; the base is spent."""
    while True:
        if power & 1:
            multiply_all(out_re, out_im, re, im)
        power >>= 1
        if power == 0:
            return
        square(re, im)


@inline
def _product_run(
    x: F64,
    counts: I64,
    lean: F64,
    period: float,
    start: int,
    count: int,
    work: F64,
    tables: F64,
) -> None:
    """Products over all values at `count` frequencies from `start`, into ``work[0]``, ``work[1]``.

    Parameters
    ----------
    x, counts, lean, period : as for `tail`.
    work : (4, BLOCK), scratch but for its first two rows.
    tables : (n_values, 2, BLOCK), rotations by 0, 1, ... frequencies; or one for all, scratch.
    """
    re, im, a, b = work[0], work[1], work[2], work[3]
    for i in range(count):
        re[i] = 1.0
        im[i] = 0.0
    kept = tables.shape[0] > 1
    for j in range(x.size):
        cosines, sines = tables[j if kept else 0, 0], tables[j if kept else 0, 1]
        if not kept:
            spiral(turns(x[j], 2.0 * period), count, cosines, sines)
        angle = TURN * (turns(start * x[j], 2.0 * period))
        c, s = math.cos(angle), math.sin(angle)
        for i in range(count):
            a[i] = c * cosines[i] - s * sines[i]
        if lean[j] == 0.0:
            _raise(a, counts[j], count, re)
            continue
        c, s = c * lean[j], s * lean[j]
        for i in range(count):
            b[i] = s * cosines[i] + c * sines[i]
        _raise_complex(a[:count], b[:count], counts[j], re[:count], im[:count])


@inline
def _near_run(x: F64, counts: I64, lean: F64, period: float, count: int, work: F64) -> None:
    """As `_product_run` from frequency 1, by logarithms.

    Near 1 the rounding of a factor would be multiplied by its power.
    """
    for i in range(count):
        log, angle, flipped = 0.0, 0.0, 1.0
        for j in range(x.size):
            y = TURN * (turns((i + 1) * x[j], 2.0 * period))
            c, s = math.cos(y), math.sin(y)
            loss = (1.0 - lean[j] * lean[j]) * s * s
            if loss < 0.5:
                log += 0.5 * counts[j] * math.log1p(-loss)
            else:  # 1 - loss would cancel
                log += 0.5 * counts[j] * math.log(max(c * c + lean[j] * lean[j] * s * s, 1e-300))
            if lean[j] != 0.0:
                angle += counts[j] * math.atan2(lean[j] * s, c)
            elif c < 0.0 and counts[j] & 1:
                flipped = -flipped
        size = flipped * math.exp(log)
        work[0, i] = size * math.cos(angle)
        work[1, i] = size * math.sin(angle)


@inline
def _damping(k: int, degree: int) -> float:
    """Vaaler's share of frequency k."""
    share = k / (degree + 1.0)
    turn = math.pi * share
    return turn * (1.0 - share) / math.tan(turn) + share


@inline
def _upright(k: int, psi: float, t: float, period: float, degree: int, out: F64) -> None:
    """Add what frequency k says of P(X >= 0), and of the density there; no leaning signs."""
    if degree == 0:
        angle = TURN * (turns(k * (t - 1.0), 2.0 * period))
        out[0] -= psi * math.sin(angle) / (period * math.sin(math.pi * k / period))
    else:
        angle = TURN * (turns(k * t, 2.0 * period))
        out[0] -= psi * math.sin(angle) * _damping(k, degree) / (math.pi * k)
        out[1] += 2.0 * psi * math.cos(angle) * (1.0 - k / (degree + 1.0)) / period


@inline
def _leaning(
    k: int, psi: complex, decay: float, length: float, period: float, degree: int, out: F64
) -> None:
    """Add what frequency k says of E[exp(-decay X); 0 <= X <= length], and of its doubt."""
    theta = TURN * k / period
    if degree == 0:
        size = math.exp(-decay)
        half = math.sin(0.5 * theta)
        angle = TURN * (turns(k * (length + 1.0), period))
        end = math.exp(-decay * (length + 1.0))
        rest = complex(1.0 - end * math.cos(angle), end * math.sin(angle))
        step = complex(-math.expm1(-decay) + 2.0 * size * half * half, size * math.sin(theta))
        out[0] += 2.0 * (psi * (rest / step)).real / period
    else:
        angle = TURN * (turns(k * length, period))
        size = math.exp(-decay * length)
        end = complex(size * math.cos(angle), -size * math.sin(angle))
        step = complex(decay, theta)
        out[0] += 2.0 * _damping(k, degree) * (psi * ((1.0 - end) / step)).real / period
        both = 1.0 + (decay + complex(0.0, theta) * end) / step
        out[1] += 2.0 * (1.0 - k / (degree + 1.0)) * (psi * both).real / period


@kernel
def tail(
    x: F64,
    counts: I64,
    lean: F64,
    t: float,
    decay: float,
    length: float,
    period: float,
    degree: int,
    runs: I64,
    out: F64,
) -> None:
    """Sum the transform at the frequencies of `runs` to E[exp(-decay X); X >= 0].

    Parameters
    ----------
    x, counts : (n_values,), magnitudes, above 0; how often each occurs.
    lean : (n_values,), tanh(h x): the mean of a sign; all 0.0 for upright signs.
    t : outcome.
    decay : 2 h.
    length : X is below it, but for a negligible part; whole on a lattice; without meaning for
        upright signs.
    period : N, odd on a lattice; X is above -N and, for leaning signs, above length - N.
    degree : 0 for a lattice; else Vaaler's degree, at least the highest frequency.
    runs : (2, n_runs), see `scan_cosines`.
    out : (2,), filled with the expectation and the greatest error that the degree allows.

    Notes
    -----
    Leaving out a frequency with psi below e in magnitude costs at most 2 e / k.
    """
    work = np.empty((4, BLOCK))
    longest, n_terms = np.int64(0), np.int64(0)
    for r in range(runs.shape[1]):
        longest = max(longest, min(runs[1, r], BLOCK))
        n_terms += runs[1, r]
    kept = x.size if n_terms > 2 * BLOCK and x.size <= _KEPT else 1
    tables = np.empty((kept, 2, BLOCK))
    if kept > 1:
        for j in range(x.size):
            spiral(turns(x[j], 2.0 * period), longest, tables[j, 0], tables[j, 1])
    upright = decay == 0.0
    out[1] = (1.0 if upright else 2.0) / period
    if upright:
        out[0] = 0.5 - (t - (1.0 if degree == 0 else 0.0)) / (2.0 * period)
    elif degree == 0:
        out[0] = math.expm1(-decay * (length + 1.0)) / math.expm1(-decay) / period
    else:
        out[0] = -math.expm1(-decay * length) / decay / period
    for r in range(runs.shape[1]):
        for base in range(0, runs[1, r], BLOCK):
            start = runs[0, r] + base
            count = min(BLOCK, runs[1, r] - base)
            near = min(count, _NEAR) if start == 1 and x.size <= _NEAR_VALUES else 0
            if near < count:
                _product_run(x, counts, lean, period, start, count, work, tables)
            _near_run(x, counts, lean, period, near, work)
            for i in range(count):
                k = start + i
                if upright:
                    _upright(k, work[0, i], t, period, degree, out)
                else:
                    angle = TURN * (turns(k * t, 2.0 * period))
                    psi = complex(work[0, i], work[1, i])
                    psi *= complex(math.cos(angle), -math.sin(angle))
                    _leaning(k, psi, decay, length, period, degree, out)
    out[1] = 0.0 if degree == 0 else abs(out[1]) * period / (2.0 * degree + 2.0)
