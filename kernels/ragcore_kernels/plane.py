"""Joint distribution of two sums, of n draws of pairs of integers, by inverting its transform.

With (s, m) the pair of one draw and phi(u, v) its transform, few frequencies matter in two
dimensions just as in one, see module `inversion`: those where ``|phi|**n`` is not negligible.
`scan_plane` finds them by halving rectangles under a certified bound, `fill_plane` evaluates the
transform there, and one Fourier transform for each frequency of s gives

    T_k(B) = E[exp(i u_k S); M = B],   u_k = 2 pi k / N,

from which ``P(S <= A, M = B)`` is a short sum for any A. Its sum over B with A = floor(r B) is the
distribution of S / M at r, without a lattice of ratios.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.laws import LOG_TERM
from ragcore_kernels.rotations import BLOCK, TURN, spiral, turns
from ragcore_kernels.spectrum import reach
from ragcore_kernels.torus import fill_plane, scan_plane

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
C128 = NDArray[np.complex128]

_MAX_RECTANGLES = 1 << 15
_MAX_SCAN, _MAX_WORK, _MAX_CELLS = 1 << 22, 1 << 26, 1 << 21
_MAX_PERIOD = 1 << 26


@kernel
def below_tops(tops: I64, period: int, mass: F64, waves: C128, runs: I64) -> float:
    """Sum over the rows B of the antiderivative, in A, of P(S = A, M = B) at A = tops[B].

    Only differences of two results mean anything: they are probabilities.

    Parameters
    ----------
    tops : (n_rows,), distances from E S.
    period : of S.
    mass : (n_rows,), P(M = B).
    waves : (n_rows, n_frequencies), transform of S on M = B, times the weights.
    runs : (2, n_runs), first frequency and length of each run of frequencies, none 0.
    """
    re, im = np.empty(BLOCK), np.empty(BLOCK)
    longest = 0
    for r in range(runs.shape[1]):
        longest = max(longest, runs[1, r])
    longest = min(longest, BLOCK)
    total = 0.0
    for row in range(tops.size):
        odd = 2.0 * tops[row] + 1.0
        total += mass[row] * (0.5 * odd / period)
        spiral(-turns(odd, 2.0 * period), longest, re, im)
        at = 0
        for r in range(runs.shape[1]):
            for base in range(0, runs[1, r], BLOCK):
                a, b = 0.0, 0.0
                for i in range(min(BLOCK, runs[1, r] - base)):
                    wave = waves[row, at]
                    a += wave.real * re[i] - wave.imag * im[i]
                    b += wave.real * im[i] + wave.imag * re[i]
                    at += 1
                angle = -TURN * turns(odd * (runs[0, r] + base), 2.0 * period)
                total += a * math.cos(angle) - b * math.sin(angle)
    return total


@dataclass(frozen=True)
class Plane:
    """Joint distribution of the sums S and M.

    Parameters
    ----------
    rows : (n_rows,), the values of M, ascending.
    mean : E S, an integer.
    bottom, top : S - E S lies between but for a negligible part.
    period, mass, waves, runs : see `below_tops`.
    base : its result for ``bottom - 1``.
    """

    rows: I64
    mean: int
    bottom: int
    top: int
    period: int
    mass: F64
    waves: C128
    runs: I64
    base: float

    def at_most(self, tops: I64) -> float:
        """``sum over rows B of P(S <= tops[B], M = B)``.

        Parameters
        ----------
        tops : (n_rows,), one for each of `rows`.
        """
        tops = np.clip(tops - self.mean, self.bottom - 1, self.top)
        sums = below_tops(tops, self.period, self.mass, self.waves, self.runs)
        return sums - self.base

    def only(self, chosen: NDArray[np.bool_]) -> Plane:
        """The same for some of the rows.

        Parameters
        ----------
        chosen : (n_rows,), which of them.
        """
        rows, mass = self.rows[chosen], self.mass[chosen]
        waves = np.ascontiguousarray(self.waves[chosen])
        return _with_base(
            rows, self.mean, self.bottom, self.top, self.period, mass, waves, self.runs
        )


def _with_base(
    rows: I64, mean: int, bottom: int, top: int, period: int, mass: F64, waves: C128, runs: I64
) -> Plane:
    base = below_tops(np.full(rows.size, bottom - 1), period, mass, waves, runs)
    return Plane(rows, mean, bottom, top, period, mass, waves, runs, base)


def plane_of(s: I64, m: I64, counts: I64) -> Plane | None:
    """Joint distribution of the sums of n draws of the pairs, or None if it would take too long.

    Parameters
    ----------
    s, m : (n_pairs,), distinct pairs, m >= 0.
    counts : (n_pairs,), how often each pair occurs among the n pairs drawn from.

    Returns
    -------
    All rows M >= 1, without those in which M lies with probability e**-42 at most.

    Notes
    -----
    Sums over the rows are off by ``1e-18 * sqrt(n_rows) * log(period)`` for the frequencies left
    out (Parseval), 2.4e-18 for what lies outside the windows, and by rounding, which prevails:
    2e-15 at most against integer arithmetic.
    """
    n = int(counts.sum())
    p = counts / n
    windows = [_window(column, counts) for column in (s, m)]
    (x, x_rest, bottom, top), (y, y_rest, first, last) = windows
    period = (top - bottom + 1) | 1
    height = _smooth_size(last - first + 1)
    if period >= _MAX_PERIOD or height > _MAX_CELLS:
        return None
    deviations = [math.sqrt(float(p @ (a - a @ p) ** 2)) for a in (x, y)]
    if 8.0 * deviations[0] * deviations[1] * x.size > _MAX_SCAN:  # too many rectangles for sure
        return None
    shape, rests = np.array([period, height]), np.array([x_rest, y_rest])
    rectangles, found = np.empty((4, _MAX_RECTANGLES), np.int64), np.empty(2, np.int64)
    floor = math.exp(-2.0 * LOG_TERM / n)
    most = _MAX_SCAN // x.size
    scan_plane(x - x_rest / n, y - y_rest / n, p, shape, floor, most, rectangles, found)
    if found[0] < 0 or int(found[1]) * x.size > _MAX_WORK:
        return None
    rectangles = np.ascontiguousarray(rectangles[:, : found[0]])
    ends = [np.bincount(row, minlength=period // 2 + 2) for row in rectangles[:2]]
    used = np.cumsum(ends[0] - ends[1])[: period // 2 + 1] > 0
    frequencies = np.flatnonzero(used)
    if frequencies.size * height > _MAX_CELLS:
        return None
    grid = np.zeros((frequencies.size, height), np.complex128)
    fill_plane(x, y, p, n, shape, rests, rectangles, np.cumsum(used) - 1, grid)
    mean = int(counts @ m)
    start = max(first, 1 - mean)
    columns = np.arange(start, last + 1) % height
    spectrum = np.ascontiguousarray((np.fft.fft(grid, axis=1)[:, columns] / height).T)
    waves = spectrum[:, 1:] * (1j / (period * np.sin(np.pi * frequencies[1:] / period)))
    breaks = np.flatnonzero(np.diff(frequencies[1:], prepend=-1) != 1)
    lengths = np.diff(breaks, append=frequencies.size - 1)
    runs = np.stack([frequencies[1:][breaks], lengths])
    mass = np.ascontiguousarray(spectrum[:, 0].real)
    rows = np.arange(mean + start, mean + last + 1)
    return _with_base(rows, int(counts @ s), bottom, top, period, mass, waves, runs)


def _window(column: I64, counts: I64) -> tuple[I64, int, int, int]:
    """Values less an integer near their mean, n times the mean of these, and reach of the sum."""
    n, total = int(counts.sum()), int(counts @ column)
    middle = (2 * total + n) // (2 * n)
    x, rest = column - middle, total - n * middle
    centred = x - rest / n
    variance = float(counts @ (centred * centred))
    least, greatest = float(centred.min()), float(centred.max())
    bottom = max(n * int(column.min()) - total, -math.ceil(reach(-least, variance)))
    top = min(n * int(column.max()) - total, math.ceil(reach(greatest, variance)))
    return x, rest, bottom, top


def _smooth_size(least: int) -> int:
    """Least product of powers of 2, 3 and 5 that is not below `least`."""
    best = 1 << (least - 1).bit_length()
    for fives in range(8):
        for threes in range(8):
            odd = 5**fives * 3**threes
            if odd < best:
                best = min(best, odd << max(0, (-(-least // odd) - 1).bit_length()))
    return best
