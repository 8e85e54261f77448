"""Distribution of a sum of independent draws from several finite laws, by inversion.

As module `inversion` for one law: n_k draws from law k give the transform
``prod phi_k**n_k``, and the same weights turn it into a distribution. A cell of frequencies is
left out when the bounds of all ``|phi_k|**2`` together prove the product negligible there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.inversion import halve, phi_run, power_at, take, take_all, weights
from ragcore_kernels.quantile import distribution
from ragcore_kernels.rotations import BLOCK, TURN, less_one_run, turns

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_CHUNK = 1024


@inline
def _may_matter(
    first: F64, last: F64, width: float, angle: float, draws: I64, shape: F64, log_floor: float
) -> bool:
    """Whether the squared product may reach e**log_floor between two points `width` apart.

    For each law as in `inversion`: between two points |phi|**2 exceeds the greater end by at most
    a quarter of variance times squared distance.
    """
    total = 0.0
    for k in range(draws.size):
        blur = 0.5 * shape[1, k] * angle * angle
        top = max(first[k], last[k]) + 0.25 * shape[0, k] * width * width
        top += 2.0 * blur + blur * blur
        if top < 1.0:
            total += draws[k] * math.log(max(top, 1e-300))
    return total >= log_floor


@kernel
def scan_sums(
    x: F64,
    p: F64,
    starts: I64,
    draws: I64,
    period: float,
    shape: F64,
    cell: int,
    last: int,
    log_floor: float,
    most: int,
    runs: I64,
    out: I64,
) -> None:
    """Find every frequency in 1..last where the squared transform may reach e**log_floor.

    Parameters
    ----------
    x, p, starts, draws, shape : see `laws.Laws`.
    period : N.
    cell, last, most, runs, out : as for `inversion.scan`.
    log_floor : logarithm of a share of 1.
    """
    if cell <= 4:
        take_all(last, most, runs, out)
        return
    out[0], out[1] = 0, 0
    laws = draws.size
    unit = TURN / period
    re, im, table = np.empty(_CHUNK), np.empty(_CHUNK), np.empty((2, BLOCK))
    powers = np.empty((_CHUNK, laws))
    stack = np.empty((64, 2), np.int64)
    ends = np.empty((64, 2, laws))
    at_middle = np.empty(laws)
    for chunk in range(0, last + 1, (_CHUNK - 1) * cell):
        count = min(_CHUNK - 1, (last - chunk) // cell + 1)
        for k in range(laws):
            a, b = starts[k], starts[k + 1]
            phi_run(x[a:b], p[a:b], period, chunk, cell, count + 1, re, im, table)
            for i in range(count + 1):
                powers[i, k] = re[i] * re[i] + im[i] * im[i]
        for i in range(count):
            stack[0, 0], stack[0, 1] = chunk + i * cell, chunk + (i + 1) * cell
            ends[0, 0], ends[0, 1] = powers[i], powers[i + 1]
            depth = 1
            while depth > 0:
                depth -= 1
                a, b = stack[depth, 0], stack[depth, 1]
                if a > last or not _may_matter(
                    ends[depth, 0], ends[depth, 1], (b - a) * unit, b * unit, draws, shape,
                    log_floor,
                ):  # fmt: skip
                    continue
                if b - a > 16:  # look again, at half the distance; the left half first
                    middle = (a + b) >> 1
                    for k in range(laws):
                        c, d = starts[k], starts[k + 1]
                        at_middle[k] = power_at(x[c:d], p[c:d], period, middle)
                    halve(stack, ends, depth, middle, at_middle)
                    depth += 2
                    continue
                if not take(max(a, 1), min(b, last + 1), most, runs, out):
                    out[2] = max(a, 1) - 1
                    return
    out[2] = last


@kernel
def transform_sums(
    x: F64,
    p: F64,
    starts: I64,
    draws: I64,
    rests: F64,
    period: float,
    degree: int,
    shape: F64,
    runs: I64,
    terms: F64,
) -> float:
    """Evaluate the transform of the centred sum and the weights at the frequencies of `runs`.

    Near frequency 0, where rounding would be multiplied by the draws, a transform less 1 is summed
    from terms of its own size, with the mean taken out exactly.

    Parameters
    ----------
    x, p, starts, draws, rests, shape : see `laws.Laws`.
    period : N.
    degree : 0 for a lattice; else Vaaler's degree, at least the highest frequency.
    runs : (2, n_runs)
    terms : (4, n_frequencies), filled: re psi, im psi, w, v; see `quantile.distribution`.

    Returns
    -------
    Bound of the error of the distribution that comes from binning, see ``shape[1]``.
    """
    laws = draws.size
    re, im, table = np.empty(_CHUNK), np.empty(_CHUNK), np.empty((2, BLOCK))
    logs, angles = np.empty(_CHUNK), np.empty(_CHUNK)
    blurs, tops, least = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    at, slack = 0, 0.0
    binned = shape[1].max() > 0.0
    near = 20_000 // x.size
    for r in range(runs.shape[1]):
        done = 0
        while done < runs[1, r]:
            k0 = runs[0, r] + done
            count = min(_CHUNK, runs[1, r] - done)
            close = r == 0 and k0 == 1 and near >= 8
            if close:
                count = min(count, near)
            for part in (logs, angles, blurs, tops, least):
                part[:count] = 0.0
            for k in range(laws):
                a, b, n = starts[k], starts[k + 1], draws[k]
                if close:
                    less_one_run(x[a:b], p[a:b], period, rests[k] / n, np.int64(1), count, re, im)
                else:
                    phi_run(x[a:b], p[a:b], period, k0, np.int64(1), count, re, im, table)
                for i in range(count):
                    if close:
                        excess = 2.0 * re[i] + re[i] * re[i] + im[i] * im[i]
                        log = math.log1p(max(excess, -1.0 + 1e-16))
                        angles[i] += n * math.atan2(im[i], 1.0 + re[i])
                    else:
                        log = math.log(max(re[i] * re[i] + im[i] * im[i], 1e-300))
                        angles[i] += n * math.atan2(im[i], re[i])
                        angles[i] -= TURN * turns((k0 + i) * rests[k], period)
                    logs[i] += n * log
                    if not binned:
                        continue
                    blur = 0.5 * shape[1, k] * (TURN * (k0 + i) / period) ** 2
                    top = math.log(min(1.0, math.exp(0.5 * log) + blur))
                    blurs[i] += n * blur
                    tops[i] += n * top
                    least[i] = min(least[i], top)
            for i in range(count):
                weights(terms, at, k0 + i, period, degree)
                size = math.exp(0.5 * logs[i])
                terms[0, at] = size * math.cos(angles[i])
                terms[1, at] = size * math.sin(angles[i])
                if blurs[i] > 0.0:  # one factor replaced after another, the rest at most its top
                    weight = terms[2, at] + terms[3, at] / (degree + 1.0)
                    slack += weight * blurs[i] * math.exp(tops[i] - least[i])
                at += 1
            done += count
    return slack


@kernel
def smoothed(y: float, period: float, degree: int, runs: I64, terms: F64, out: F64) -> None:
    """Distribution at y as smoothed by Vaaler's weights, and how far the true one may be.

    Parameters
    ----------
    y : distance from the expectation, at most half a period.
    period, degree, runs, terms : as for `transform_sums`.
    out : (2,), filled.
    """
    distribution(y, np.int64(1), period, runs, terms, np.empty((2, BLOCK)), out)
    out[1] = period / (2.0 * degree + 2.0) * abs(out[1])
