"""Exact BCa interval of a mean: Efron's corrections for bias and skewness, nothing drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from ragcore_kernels.histogram import Sample, sample_of
from ragcore_kernels.intervals import Interval
from ragcore_kernels.lattice import prepare
from ragcore_kernels.resample import interval_at
from ragcore_kernels.sums import exact_sum
from ragcore_kernels.tails import Tails, tails_at_mean

_NORMAL = NormalDist()
_LEAST, _MOST = 1e-300, 1.0 - 2.0**-53


@dataclass(frozen=True)
class BcaInterval(Interval):
    """Interval with its corrections, both 0.0 where all values are equal, nan without cases.

    Parameters
    ----------
    z0 : bias: the normal quantile of P(S* < s) + P(S* = s) / 2, s the mean of the values.
    acceleration : a sixth of the skewness of the mean.
    """

    z0: float
    acceleration: float


def bca_interval(values: ArrayLike | Sample, level: float = 0.95) -> BcaInterval:
    """BCa bootstrap interval of the mean of `values`, as if resampled without end.

    Parameters
    ----------
    values : (n,), one finite number for each case, in any unit; or their `histogram`.
    level : probability inside, in (0, 1).

    Returns
    -------
    With a1 and a2 the corrected probabilities, `low` is the least x with P(S* <= x) >= a1 and
    `high` the greatest x with P(S* >= x) >= 1 - a2. Negated values give the mirrored interval.
    Off a lattice the bound covers what is unknown of z0, too.

    Raises
    ------
    ValueError
        As for `resample.mean_interval`.

    Notes
    -----
    ``a = sum(dev**3) / (6 sum(dev**2)**1.5)`` is what the jackknife gives for a mean. With z a
    normal quantile, the corrected one is ``z0 + (z0 + z) / (1 - a (z0 + z))``; where the divisor
    is not positive, which takes a level next to 1, the end is that of the values.

    References
    ----------
    Efron, Better bootstrap confidence intervals, JASA 82(397), 1987.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1")
    sample = sample_of(values)
    if sample.values.size < 2:
        plain = interval_at(sample, 0.025, 0.025)
        zero = 0.0 if plain.method else math.nan
        return BcaInterval(plain.low, plain.high, plain.method, plain.bound, zero, zero)
    acceleration = _acceleration(sample)
    biases = _biases(tails_at_mean(sample))
    z = _NORMAL.inv_cdf((1.0 - level) / 2.0)
    lower = [_corrected(z0, z, acceleration) for z0 in biases]
    upper = [_corrected(-z0, z, -acceleration) for z0 in biases[::-1]]
    doubt = (_doubt(lower), _doubt(upper))
    found = interval_at(sample, lower[1], upper[1], doubt)
    return BcaInterval(found.low, found.high, found.method, found.bound, biases[1], acceleration)


def _acceleration(sample: Sample) -> float:
    """A sixth of the skewness of the mean, to rounding."""
    prepared = prepare(sample)
    lattice, n = prepared.lattice, prepared.n
    if lattice:
        x, counts = lattice.points.astype(np.float64), lattice.counts
    else:  # every value, where resampling uses bins
        x, counts = np.ldexp(sample.values, -prepared.exponent), sample.counts
    deviations = x - exact_sum(counts / n * x)
    deviations /= np.abs(deviations).max()
    square = exact_sum(counts * deviations**2)
    return exact_sum(counts * deviations**3) / (6.0 * square**1.5)


def _biases(tails: Tails) -> tuple[float, float, float]:
    """z0 between the least and greatest that the bound of the tails allows."""
    below, above = tails.below + 0.5 * tails.equal, tails.above + 0.5 * tails.equal
    error = 0.5 * tails.bound  # of `below`; the bound is that of `equal`
    if below == above and not error:
        return 0.0, 0.0, 0.0
    if below > above:  # the lesser side is the more precise, and a mirrored sample takes it, too
        least, middle, most = (-_quantile(above + move) for move in (error, 0.0, -error))
    else:
        least, middle, most = (_quantile(below + move) for move in (-error, 0.0, error))
    return least, middle, most


def _quantile(probability: float) -> float:
    return _NORMAL.inv_cdf(min(max(probability, _LEAST), _MOST))


def _corrected(z0: float, z: float, acceleration: float) -> float:
    """The probability to look up instead of that of z."""
    moved = z0 + z
    divisor = 1.0 - acceleration * moved
    if divisor <= 0.0:
        return _MOST if moved > 0.0 else _LEAST
    corrected = 0.5 * math.erfc(-(z0 + moved / divisor) / math.sqrt(2.0))
    return min(max(corrected, _LEAST), _MOST)


def _doubt(probabilities: list[float]) -> float:
    least, middle, most = probabilities
    return max(middle - least, most - middle)
