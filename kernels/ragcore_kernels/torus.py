"""Transform of the joint law of two sums of integers, where it is not negligible.

The twin of module `inversion` in two dimensions; `plane` says what it is for.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.rotations import TURN, sine_excess, spiral, turns

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
C128 = NDArray[np.complex128]

_SIDE = 8  # rectangles of at most this many frequencies a side are taken whole
_TILE = 16
_CLOSE = 16.0  # radians; up to here angles are computed without reduction


@inline
def _power_at(x: F64, y: F64, p: F64, u: float, v: float, out: F64) -> None:
    """Squared modulus of the transform of one draw at (u, v), and its gradient."""
    re, im, re_u, im_u, re_v, im_v = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(x.size):
        angle = u * x[j] + v * y[j]
        a, b = p[j] * math.cos(angle), p[j] * math.sin(angle)
        re += a
        im += b
        re_u -= b * x[j]
        im_u += a * x[j]
        re_v -= b * y[j]
        im_v += a * y[j]
    out[0] = re * re + im * im
    out[1] = 2.0 * (re * re_u + im * im_u)
    out[2] = 2.0 * (re * re_v + im * im_v)


@kernel
def scan_plane(
    x: F64, y: F64, p: F64, shape: I64, floor: float, most: int, rectangles: I64, out: I64
) -> None:
    """Cover every frequency where |phi|**2 may reach `floor` with disjoint rectangles.

    |phi|**2 is the transform of a difference D of two draws, so that by Taylor's theorem its
    value at a distance (g, h) from a point is its tangent there but for
    ``E (g D_x + h D_y)**2 / 2 <= (g sd_x + h sd_y)**2``.

    Parameters
    ----------
    x, y, p : (n_pairs,), pairs less their mean; probabilities.
    shape : (2,), periods N of x, odd, and of y. Frequencies are 0..N // 2 of the first and all
        of the second, from minus a half up.
    floor : a share of 1.
    most : points to look at.
    rectangles : (4, max_rectangles), filled with first and end of either frequency.
    out : (2,), filled with the number of rectangles, -1 if `most` or the room is not enough,
        and of the frequencies in them.
    """
    sd_x, sd_y = 0.0, 0.0
    for j in range(x.size):
        sd_x += p[j] * x[j] * x[j]
        sd_y += p[j] * y[j] * y[j]
    sd_x, sd_y = math.sqrt(sd_x), math.sqrt(sd_y)
    unit_x, unit_y = TURN / shape[0], TURN / shape[1]
    stack = np.empty((128, 4), np.int64)
    stack[0, 0], stack[0, 1] = 0, shape[0] // 2 + 1
    stack[0, 2], stack[0, 3] = -(shape[1] // 2), shape[1] - shape[1] // 2
    depth, found, looks = 1, 0, 0
    at = np.empty(3)
    out[0], out[1] = -1, 0
    while depth > 0:
        depth -= 1
        k0, k1, l0, l1 = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if looks == most:
            return
        looks += 1
        g, h = 0.5 * unit_x * (k1 - 1 - k0), 0.5 * unit_y * (l1 - 1 - l0)
        _power_at(x, y, p, 0.5 * unit_x * (k0 + k1 - 1), 0.5 * unit_y * (l0 + l1 - 1), at)
        bend = (g * sd_x + h * sd_y) ** 2 + 1e-9
        change = abs(at[1]) * g + abs(at[2]) * h + bend
        if at[0] + change < floor:
            continue
        wide, tall = k1 - k0 > _SIDE, l1 - l0 > _SIDE
        if at[0] - change >= floor or not (wide or tall):
            if found == rectangles.shape[1]:
                return
            rectangles[0, found], rectangles[1, found] = k0, k1
            rectangles[2, found], rectangles[3, found] = l0, l1
            out[1] += (k1 - k0) * (l1 - l0)
            found += 1
            continue
        stack[depth + 1, :] = stack[depth, :]
        if wide and (g * sd_x >= h * sd_y or not tall):
            stack[depth, 1] = stack[depth + 1, 0] = (k0 + k1) >> 1
        else:
            stack[depth, 3] = stack[depth + 1, 2] = (l0 + l1) >> 1
        depth += 2
    out[0] = found


@inline
def _powers(start: float, step: float, count: int, re: F64, im: F64) -> None:
    """``exp(2 pi i (start + j step))`` for j below `count`."""
    spiral(step, count, re, im)
    c, s = math.cos(TURN * start), math.sin(TURN * start)
    for j in range(count):
        re[j], im[j] = c * re[j] - s * im[j], c * im[j] + s * re[j]


@inline
def _parts(angle: float, at: int, table: F64) -> None:
    """Parts ``cos - 1``, ``sin`` and ``sin - angle`` of one angle, none by subtraction."""
    half = math.sin(0.5 * angle)
    table[0, at] = -2.0 * half * half
    table[1, at] = math.sin(angle)
    table[2, at] = sine_excess(angle)


@kernel
def fill_plane(
    x: I64,
    y: I64,
    p: F64,
    n: int,
    shape: I64,
    rests: I64,
    rectangles: I64,
    rows: I64,
    grid: C128,
) -> None:
    """Evaluate the transform of the centred sums at the frequencies of `rectangles`.

    Near frequency 0, where rounding would be multiplied by n, the transform less 1 is summed from
    terms of its own size.

    Parameters
    ----------
    x, y, p : (n_pairs,), pairs of integers less some constant pair; probabilities.
    n : draws.
    shape, rectangles : as for `scan_plane`; rectangles is (4, n_rectangles).
    rests : (2,), n times the means of x and of y, exactly.
    rows : (shape[0] // 2 + 1,), row of `grid` for each frequency of x.
    grid : (n_rows, shape[1]), zeroed; filled at the frequency of y, modulo shape[1].
    """
    mean_x, mean_y = rests[0] / n, rests[1] / n
    far_x, far_y = 0.0, 0.0
    for j in range(x.size):
        far_x, far_y = max(far_x, abs(x[j] - mean_x)), max(far_y, abs(y[j] - mean_y))
    period_x, period_y = float(shape[0]), float(shape[1])
    re, im = np.empty((_TILE, _TILE)), np.empty((_TILE, _TILE))
    across, along = np.empty((3, _TILE)), np.empty((3, _TILE))
    for r in range(rectangles.shape[1]):
        for k0 in range(rectangles[0, r], rectangles[1, r], _TILE):
            wide = min(_TILE, rectangles[1, r] - k0)
            for l0 in range(rectangles[2, r], rectangles[3, r], _TILE):
                tall = min(_TILE, rectangles[3, r] - l0)
                re[:] = 0.0
                im[:] = 0.0
                greatest = (k0 + wide) * far_x / period_x
                greatest += max(abs(l0), abs(l0 + tall)) * far_y / period_y
                close = TURN * greatest <= _CLOSE
                for j in range(x.size):
                    if close:
                        for a in range(wide):
                            _parts(TURN * (k0 + a) / period_x * (x[j] - mean_x), a, across)
                        for b in range(tall):
                            _parts(TURN * (l0 + b) / period_y * (y[j] - mean_y), b, along)
                        for a in range(wide):
                            c, s, excess = across[0, a], across[1, a], across[2, a]
                            for b in range(tall):
                                cos, sin = along[0, b], along[1, b]
                                re[a, b] += p[j] * ((c * cos - s * sin) + (c + cos))
                                im[a, b] += p[j] * ((c * sin + s * cos) + (excess + along[2, b]))
                    else:
                        start, step = turns(float(k0) * x[j], period_x), x[j] / period_x
                        _powers(start, step, wide, across[0], across[1])
                        start, step = turns(float(l0) * y[j], period_y), y[j] / period_y
                        _powers(start, step, tall, along[0], along[1])
                        for a in range(wide):
                            c, s = p[j] * across[0, a], p[j] * across[1, a]
                            for b in range(tall):
                                re[a, b] += c * along[0, b] - s * along[1, b]
                                im[a, b] += c * along[1, b] + s * along[0, b]
                for a in range(wide):
                    row = rows[k0 + a]
                    for b in range(tall):
                        c, s = re[a, b], im[a, b]
                        if close:
                            log = math.log1p(max(2.0 * c + c * c + s * s, -1.0 + 1e-16))
                            angle = n * math.atan2(s, 1.0 + c)
                        else:
                            log = math.log(max(c * c + s * s, 1e-300))
                            angle = n * math.atan2(s, c)
                            angle -= TURN * turns(float(k0 + a) * rests[0], period_x)
                            angle -= TURN * turns(float(l0 + b) * rests[1], period_y)
                        size = math.exp(0.5 * n * log)
                        column = l0 + b if l0 + b >= 0 else l0 + b + shape[1]
                        grid[row, column] = complex(size * math.cos(angle), size * math.sin(angle))
