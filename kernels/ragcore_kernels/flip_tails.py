"""Two-sided p-value of a sum with random signs: which way to take, and how far to go on it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.binomial import LEAST_P
from ragcore_kernels.flip_lists import group_sizes, grouped_tail, half_tail, subset_tail
from ragcore_kernels.flips import scan_cosines, tail
from ragcore_kernels.lattice import exact_sum

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_TIE = 1e-14  # of the sum of magnitudes: sums of doubles this near are equal
_FAR, _SMALL = 4.5, 1e-6  # deviations beyond which, and p-value below which, the signs lean
_LOG_TAIL = 42.0  # e**-42 = 6e-19 is left outside the period, and of frequencies left out
_ROUGH_TAIL = 25.0  # the same off a lattice, where there is a bound anyway
_RESOLUTION = 1e-5  # aim of the bound off a lattice
_FEW_STEPS, _MANY_STEPS = 1_000_000, 30_000_000
_MAX_HALVED, _SHORT_HALVED = 40, 30
_MAX_GROUP, _SHORT_GROUP = 1 << 15, 1 << 10
_MAX_RUNS = 1 << 13
_MAX_NS = 2.5e6
_SCAN_NS = 0.8
_MAX_LATTICE_NS = 1e7
_BINS = 4096


@kernel
def moments(x: F64, counts: I64, out: F64) -> None:
    """Cases, sum and sum of squares.

    Parameters
    ----------
    x, counts : (n_values,)
    out : (3,), filled.
    """
    out[:] = 0.0
    for j in range(x.size):
        out[0] += counts[j]
        out[1] += counts[j] * x[j]
        out[2] += counts[j] * x[j] * x[j]


@kernel
def lean_towards(x: F64, counts: I64, t: float, gap: float, lean: F64, out: F64) -> None:
    """Find h with ``sum of counts * x * tanh(h x) = t``, nearly, and what belongs to it.

    Parameters
    ----------
    x, counts : (n_values,), magnitudes, above 0; how often each occurs.
    t, gap : outcome, above 0; sum of magnitudes less t, above 0.
    lean : (n_values,), filled with tanh(h x).
    out : (4,), filled with h; the logarithm of ``E exp(h T) exp(-h t)``; the variance of T and
        its mean less t under leaning signs. The former three are exact for h as it is.

    Notes
    -----
    The left side is concave in h > 0 and starts below t: Newton's steps stay on one side.
    """
    total = 0.0
    for j in range(x.size):
        total += counts[j] * x[j] * x[j]
    h = t / total
    for _ in range(60):
        mean, slope = 0.0, 0.0
        for j in range(x.size):
            s = math.tanh(h * x[j])
            mean += counts[j] * x[j] * s
            slope += counts[j] * x[j] * x[j] * (1.0 - s * s)
        if slope <= 1e-9 * total or abs(t - mean) <= 0.01 * math.sqrt(slope):
            break
        h += (t - mean) / slope
    log, mean, spread = h * gap, -t, 0.0
    for j in range(x.size):
        odds = math.exp(-2.0 * h * x[j])
        lean[j] = -math.expm1(-2.0 * h * x[j]) / (1.0 + odds)
        log += counts[j] * (math.log1p(odds) - math.log(2.0))
        mean += counts[j] * x[j] * lean[j]
        spread += counts[j] * x[j] * x[j] * 4.0 * odds / ((1.0 + odds) * (1.0 + odds))
    out[0], out[1], out[2], out[3] = h, log, spread, mean


@kernel
def bin_weights(x: F64, counts: I64, lean: F64, bins: F64) -> float:
    """Gather values for the scan: centroids, and weights that are not too great.

    Parameters
    ----------
    x, counts, lean : (n_values,), see `flips.tail`; x in ascending order, not all equal.
    bins : (2, n_bins), filled with centroids and weights, 0.0 where a bin is empty.

    Returns
    -------
    Weighted mean square of the distances of values from their centroid. Bins are narrow where
    values are dense, as the cube root of their density, which makes it about as small as it can
    be.
    """
    cases, length = 0.0, 0.0
    for j in range(x.size):
        cases += counts[j]
        if j > 0:
            length += (x[j] - x[j - 1]) ** (2.0 / 3.0)
    spread, first, covered, n_bins = 0.0, 0, 0.0, bins.shape[1]
    for b in range(n_bins):
        bins[0, b], bins[1, b] = 0.0, 0.0
        last, total, count = first, 0.0, 0.0
        while last < x.size and (last == first or covered * n_bins < (b + 1) * length):
            total += counts[last] * (x[last] - x[first])
            count += counts[last]
            last += 1
            if last < x.size:
                covered += (x[last] - x[last - 1]) ** (2.0 / 3.0)
        if b == n_bins - 1:
            while last < x.size:
                total += counts[last] * (x[last] - x[first])
                count += counts[last]
                last += 1
        if last > first:
            centre = x[first] + total / count
            weight = (1.0 - lean[last - 1] * lean[last - 1]) / cases
            for j in range(first, last):
                spread += weight * counts[j] * (x[j] - centre) * (x[j] - centre)
            bins[0, b], bins[1, b] = centre, weight * count
        first = last
    return spread


def _is_hopeless(x: F64, counts: I64, t: float) -> bool:
    """Whether Hoeffding's bound already says that the p-value is below `LEAST_P`."""
    shape = np.empty(3)
    moments(x, counts, shape)
    return t * t > 2.0 * (math.log(2.0) - math.log(LEAST_P)) * float(shape[2])


def lattice_tail(points: I64, counts: I64, t: int) -> tuple[float, float]:
    """P(abs(T) >= t) for magnitudes on a lattice, and its bound.

    Parameters
    ----------
    points, counts : (n_values,), at least two; whole magnitudes above 0 in ascending order; how
        often each occurs.
    t : outcome, of the parity of the sum; 0 or more.
    """
    if t == 0:
        return 1.0, 0.0
    m, total = int(counts.sum()), int(points @ counts)
    x = points.astype(np.float64)
    if _is_hopeless(x, counts, float(t)):
        return 0.0, 0.0
    below = (total - t) // 2  # P(T >= t) is that of cases worth no more than this being flipped
    steps = m * (below + 1)
    if steps > _FEW_STEPS:
        if m <= _SHORT_HALVED:
            return 2.0 * half_tail(np.repeat(x, counts), t - 0.5), 0.0
        *groups, longest = group_sizes(counts)
        if longest <= _SHORT_GROUP:
            return 2.0 * grouped_tail(x, counts, groups, t - 0.5), 0.0
        found = _transformed(x, counts, float(t), float(total - t), True, steps * 0.4)
        if found:
            return found
        if steps > _MANY_STEPS:
            if m <= _MAX_HALVED:
                return 2.0 * half_tail(np.repeat(x, counts), t - 0.5), 0.0
            if longest <= _MAX_GROUP:
                return 2.0 * grouped_tail(x, counts, groups, t - 0.5), 0.0
            return _bracket(x, counts, t - 1.0, total - t + 1.0)
    mantissa, power = subset_tail(points, counts, below)
    return math.ldexp(mantissa, power + 1), 0.0


def real_tail(x: F64, counts: I64, t: float) -> tuple[float, float]:
    """P(abs(T) >= t) for magnitudes of any kind, and its bound.

    Parameters
    ----------
    x, counts : (n_values,), magnitudes above 0 in ascending order; how often each occurs.
    t : outcome, 0 or more; sums within 1e-14 of the sum of magnitudes are equal.
    """
    m, total = int(counts.sum()), exact_sum(counts * x)
    tie = _TIE * total
    if t <= tie:
        return 1.0, 0.0
    if _is_hopeless(x, counts, t):
        return 0.0, 0.0
    if t >= total - tie:
        return math.ldexp(1.0, 1 - m), 0.0
    if m <= _MAX_HALVED and m < x.size + 2:
        return 2.0 * half_tail(np.repeat(x, counts), t - tie), 0.0
    *groups, longest = group_sizes(counts)
    if longest <= _MAX_GROUP:
        return 2.0 * grouped_tail(x, counts, groups, t - tie), 0.0
    if m <= _MAX_HALVED:
        return 2.0 * half_tail(np.repeat(x, counts), t - tie), 0.0
    return _bracket(x, counts, t, total - t)


def _bracket(x: F64, counts: I64, t: float, gap: float) -> tuple[float, float]:
    """P(abs(T) >= t) in the middle of a proved bracket, and half its width."""
    p, bound = _transformed(x, counts, t, gap, False, math.inf)  # type: ignore[misc]
    return p, bound


@dataclass(frozen=True)
class _Plan:
    """What `flips.tail` is to sum, but for the frequencies.

    Parameters
    ----------
    x, counts, lean, t, decay, length, period : as there.
    gap : sum of magnitudes less t.
    z : t in deviations of T under upright signs.
    cases : how many there are.
    squares : sum of x**2 over the cases, with each weighted by the variance of its sign.
    log_factor : of the expectation, to make it a probability.
    log_tail : what is left out is this small, as a power of 1 / e.
    """

    x: F64
    counts: I64
    lean: F64
    t: float
    gap: float
    z: float
    decay: float
    length: float
    period: float
    cases: float
    squares: float
    log_factor: float
    log_tail: float


def _plan(x: F64, counts: I64, t: float, gap: float, on_lattice: bool, leaning: bool) -> _Plan:
    """Find a period and, for leaning signs, how they lean."""
    shape, lean, bent = np.empty(3), np.zeros(x.size), np.zeros(4)
    moments(x, counts, shape)
    m, total, squares = shape.tolist()
    z = t / math.sqrt(squares)
    q = _LOG_TAIL if on_lattice else _ROUGH_TAIL
    reach = math.sqrt(2.0 * q * squares)  # Hoeffding's bound, for leaning signs as well
    if not leaning:
        decay, log_factor, length, off = 0.0, 0.0, 0.0, 0.0
        period = 0.5 * (t + min(total, reach))
    else:
        lean_towards(x, counts, t, gap, lean, bent)
        h, log_factor, squares, off = bent.tolist()
        decay = 2.0 * h
        linear = 2.0 * float(x[-1]) * q / 3.0  # Bernstein's
        reach = min(reach, linear + math.sqrt(linear * linear + 2.0 * q * squares))
        length = max(0.0, min(0.5 * min(gap, reach + off), (q + 8.0) / decay))
        period = length + 0.5 * min(t + total, reach - off)
    if on_lattice:
        length, period = float(math.ceil(length)), float((math.ceil(period) + 3) | 1)
    else:
        period *= 1.001
    return _Plan(x, counts, lean, t, gap, z, decay, length, period, m, squares, log_factor, q)


def _transformed(
    x: F64, counts: I64, t: float, gap: float, on_lattice: bool, worth_ns: float
) -> tuple[float, float] | None:
    """P(abs(T) >= t) by the transform; None on a lattice if that would take longer than allowed.

    `gap` is the sum of magnitudes less t.
    """
    shape = np.empty(3)
    moments(x, counts, shape)
    if t * t <= _FAR * _FAR * shape[2]:
        found = _summed(_plan(x, counts, t, gap, on_lattice, False), on_lattice, worth_ns)
        if found is None or found[0] - found[1] >= _SMALL:
            return found
    plan = _plan(x, counts, t, gap, on_lattice, True)
    if plan.log_factor < math.log(LEAST_P) - 1.0:
        return 0.0, 0.0
    return _summed(plan, on_lattice, worth_ns)


def _summed(plan: _Plan, on_lattice: bool, worth_ns: float) -> tuple[float, float] | None:
    """Find the frequencies that matter for a plan, and sum them; see `_transformed`."""
    x, counts = plan.x, plan.counts
    m, period, q = plan.cases, plan.period, plan.log_tail
    if on_lattice and period * (plan.t + plan.gap) >= 1 << 53:
        return None
    centres, p, spread = x, counts * (1.0 - plan.lean * plan.lean) / m, 0.0
    if x.size > _BINS:
        bins = np.empty((2, _BINS))
        spread = bin_weights(x, counts, plan.lean, bins)
        used = bins[1] > 0.0
        centres, p = bins[0, used], bins[1, used]
    floor = 2.0 * math.exp(-2.0 * q / m) - 2.0 + float(p.sum())
    clear = floor - 1.5 * math.sqrt(
        0.5 * float(np.square(p).sum())
    )  # what the sum of cosines mostly is below
    root = math.sqrt(plan.squares / m)
    cell = 1
    if clear > 0.05:
        cell = max(1, int(math.sqrt(8.0 * 0.35 * clear) * period / (math.tau * root)))
    if on_lattice:
        limit_ns = min(worth_ns, _MAX_LATTICE_NS)
        last, most = int(period) // 2, int(limit_ns / _term_ns(plan))
        if (last > most) if cell <= 4 else (last / cell * centres.size * _SCAN_NS > limit_ns):
            return None
    else:
        last, most = _affordable(plan, centres.size, cell, spread, clear)
    runs, out = np.empty((2, _MAX_RUNS), np.int64), np.empty(3, np.int64)
    kind = np.array([plan.squares / m, spread])
    scan_cosines(centres, p, period, kind, cell, last, floor, most, runs, out)
    n_runs, _, looked = out.tolist()
    if on_lattice and looked < last:
        return None
    degree = 0 if on_lattice else looked
    runs = np.ascontiguousarray(runs[:, :n_runs])
    sums = np.empty(2)
    tail(x, counts, plan.lean, plan.t, plan.decay, plan.length, period, degree, runs, sums)
    return _bounded(plan, sums, degree)


def _term_ns(plan: _Plan) -> float:
    """Nanoseconds for one frequency."""
    value_ns = 0.8 + 0.15 * math.log2(plan.cases / plan.x.size)
    return (1.0 if plan.decay == 0.0 else 2.0) * (45.0 + value_ns * plan.x.size)


def _affordable(
    plan: _Plan, n_centres: int, cell: int, spread: float, clear: float
) -> tuple[int, int]:
    """Highest frequency to look at off a lattice, and how many may be summed."""
    most = max(64, int(_MAX_NS / _term_ns(plan)))
    sigma = 0.5 * math.sqrt(plan.squares)
    ease = max(math.exp(-0.5 * plan.z * plan.z), 0.0125 * plan.z)  # a thousandth of p will do
    last = math.ceil(plan.period * 0.4 / (sigma * _RESOLUTION) * ease)
    if cell <= 4:
        return last, most
    last = min(last, cell * max(16, int(_MAX_NS / (_SCAN_NS * n_centres))))
    if spread > 0.0:  # beyond, bins could not tell whether a frequency matters
        last = min(last, int(math.sqrt(0.6 * clear / spread) * plan.period / math.tau))
    return max(last, 1), most


def _bounded(plan: _Plan, sums: F64, degree: int) -> tuple[float, float]:
    """Two-sided p-value and its bound, from the expectation and its error."""
    factor = 2.0 * math.exp(plan.log_factor)
    if degree == 0:
        return factor * float(sums[0]), 0.0
    slack = math.exp(-plan.log_tail) * (4.0 + math.log(degree)) + 1e-15 * (plan.cases + 100.0)
    doubt = float(sums[1]) + slack
    least = max(LEAST_P, math.ldexp(1.0, 1 - int(min(plan.cases, 1_000))))
    if factor * (float(sums[0]) + doubt) < LEAST_P:
        return 0.0, 0.0
    low = min(max(factor * (float(sums[0]) - doubt), least), 1.0)
    high = min(max(factor * (float(sums[0]) + doubt), low), 1.0)
    return 0.5 * (low + high), 0.5 * (high - low)
