"""Coverage of the intervals of a mean paired difference: summed for 0 and 1, drawn for the rest.

Outcomes of 0 or 1 need no simulation. A case is won, lost or tied; for every number of wins and
losses the interval is worked out once, and its probability counts where it holds the true
difference. Above 100 cases only outcomes that together have all but 1e-9 are looked at. The ends
are sums of whole numbers, and compared with the true difference as such.

RR@10 and nDCG@10 have too many outcomes and are drawn. One list of differing cases a measure is
drawn first; a sample takes each case from it, or 0. So the true mean is known: 0, or a share of
the list's mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels.bca import bca_interval
from ragcore_kernels.binomial import clopper_pearson, mcnemar
from ragcore_kernels.histogram import Sample, histogram
from ragcore_kernels.resample import mean_interval
from ragcore_kernels.signs import sign_flip

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LEFT_OUT = 1e-9

KINDS = (
    (mean_interval, 0.9),
    (mean_interval, 0.95),
    (mean_interval, 0.99),
    (bca_interval, 0.95),
)
P90, P95, P99, BCA = range(4)

FORMS = ("equal", "lopsided", "better")
MEASURES = ("RR@10", "nDCG@10")


# --- outcomes of 0 or 1, exactly


@cache
def ends_of(n: int, wins: int, losses: int) -> tuple[int, ...]:
    """Low and high of each of `KINDS`, as sums over n cases; 1 if the sign test rejects, or 0."""
    counts = {-1.0: losses, 0.0: n - wins - losses, 1.0: wins}
    there = {value: count for value, count in counts.items() if count}
    sample = Sample(np.array(list(there)), np.array(list(there.values())))
    found = []
    for interval_of, level in KINDS:
        interval = interval_of(sample, level)
        found += [round(interval.low * n), round(interval.high * n)]
    return (*found, int(mcnemar(wins, losses).p_value <= 0.05))


def _log_masses(n: int, p: Fraction, log_factorials: F64) -> F64:
    """Logarithm of P(K = k), k = 0..n, K binomial."""
    k = np.arange(n + 1)
    ways = log_factorials[n] - log_factorials[k] - log_factorials[n - k]
    return ways + k * math.log(p) + (n - k) * math.log(1 - p)


def outcomes(n: int, up: Fraction, down: Fraction) -> tuple[I64, I64, F64]:
    """Wins, losses and probability of every outcome; above 100 cases, of all but `LEFT_OUT`.

    Parameters
    ----------
    n : cases.
    up, down : probabilities of a win and of a loss, above 0, together below 1.
    """
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, n + 1)))])
    kept = [np.arange(n + 1)] * 2
    if n > 100:  # a margin this thin holds less than a hundredth of what may be left out
        thin = math.log(LEFT_OUT / (200 * (n + 1)))
        kept = [np.flatnonzero(_log_masses(n, p, log_factorials) > thin) for p in (up, down)]
    wins, losses = (part.ravel() for part in np.meshgrid(*kept, indexing="ij"))
    inside = wins + losses <= n
    wins, losses = wins[inside], losses[inside]
    ties = n - wins - losses
    ways = log_factorials[n] - log_factorials[wins] - log_factorials[losses] - log_factorials[ties]
    logs = wins * math.log(up) + losses * math.log(down) + ties * math.log(1 - up - down)
    p = np.exp(ways + logs)
    if n > 100:
        order = np.argsort(p)
        used = np.sort(order[np.cumsum(p[order]) > 0.98 * LEFT_OUT])
        wins, losses, p = wins[used], losses[used], p[used]
    return wins, losses, p


@dataclass(frozen=True)
class Coverage:
    """Probability that an interval holds the true mean, lies above it, below it; mean width."""

    covered: float
    above: float
    below: float
    width: float


@dataclass(frozen=True)
class Exact:
    """One design of binary outcomes.

    Attributes
    ----------
    kinds : a `Coverage` for each of `KINDS`.
    rejected : probability that the sign-flip test has p <= 0.05.
    flat : probability that no case differs, so that every interval is [0, 0].
    patched : coverage at 95 %, percentile, with plus and minus Clopper-Pearson's bound instead.
    """

    kinds: tuple[Coverage, ...]
    rejected: float
    flat: float
    patched: float


def exact(n: int, discordance: Fraction, difference: Fraction) -> Exact:
    """Coverage of n cases, by summing over outcomes.

    Parameters
    ----------
    n : cases.
    discordance : probability that a case is won or lost, below 1.
    difference : probability of a win less that of a loss: the true mean.
    """
    wins, losses, p = outcomes(n, (discordance + difference) / 2, (discordance - difference) / 2)
    ends = np.array(
        [ends_of(n, *pair) for pair in zip(wins.tolist(), losses.tolist(), strict=True)]
    )
    true, unit = difference.numerator * n, difference.denominator
    kinds = []
    for kind in range(len(KINDS)):
        low, high = ends[:, 2 * kind] * unit, ends[:, 2 * kind + 1] * unit
        held = (low <= true) & (true <= high)
        parts = (held, low > true, high < true)
        width = float(p @ (high - low)) / (unit * n)
        kinds.append(Coverage(*(float(p[part].sum()) for part in parts), width))
    flat = float(p[(wins == 0) & (losses == 0)].sum())
    patched = kinds[P95].covered
    if difference and abs(difference) <= clopper_pearson(0, n)[1]:
        patched += flat
    return Exact(tuple(kinds), float(p[ends[:, -1] == 1].sum()), flat, patched)


# --- graded measures, drawn


def differing_cases(rng: np.random.Generator, size: int) -> dict[str, F64]:
    """Magnitudes of the differences of RR@10 and of nDCG@10 where two systems differ.

    Twenty candidates a case, one in ten of grade 1 and one in twenty of grade 2. The second system
    moves each candidate by a normal number of ranks, deviation 2. Equal cases are left out.
    """
    grades = rng.choice(3, (4 * size, 20), p=[0.85, 0.1, 0.05])
    order = np.argsort(np.arange(20) + 2.0 * rng.standard_normal(grades.shape), axis=1)
    discounts = 1.0 / np.log2(np.arange(2.0, 12.0))
    ideal = np.sort(grades, axis=1)[:, :-11:-1] @ discounts
    values: dict[str, list[F64]] = {name: [] for name in MEASURES}
    for system in (grades, np.take_along_axis(grades, order, axis=1)):
        hits = system[:, :10] > 0
        values["RR@10"].append(np.where(hits.any(axis=1), 1.0 / (hits.argmax(axis=1) + 1.0), 0.0))
        values["nDCG@10"].append(system[:, :10] @ discounts / np.where(ideal > 0, ideal, 1.0))
    apart = {name: np.abs(second - first) for name, (first, second) in values.items()}
    return {name: gaps[gaps > 1e-12][:size] for name, gaps in apart.items()}


@dataclass(frozen=True)
class Mix:
    """Differing cases: magnitudes of the wins, of the losses; share of wins; mean difference."""

    wins: F64
    losses: F64
    won: float
    mean: float


def mix_of(magnitudes: F64, form: str) -> Mix:
    """Wins and losses of one measure.

    Parameters
    ----------
    magnitudes : of cases that differ.
    form : `equal`: half are wins, mean 0; `lopsided`: the greatest, half of the sum, are wins and
        the others losses, as many as make the mean 0; `better`: 65 % are wins.
    """
    mean = math.fsum(magnitudes) / magnitudes.size
    if form == "equal":
        return Mix(magnitudes, magnitudes, 0.5, 0.0)
    if form == "better":
        return Mix(magnitudes, magnitudes, 0.65, (0.65 - 0.35) * mean)
    rising = np.sort(magnitudes)
    half = np.cumsum(rising) <= rising.sum() / 2
    wins, losses = rising[~half], rising[half]
    return Mix(wins, losses, float(losses.mean() / (wins.mean() + losses.mean())), 0.0)


@dataclass(frozen=True)
class Drawn:
    """One design of graded outcomes, from samples; shares of samples, as in `Exact`.

    Attributes
    ----------
    mean : the true one.
    kinds : percentile, BCa, both at 95 %.
    doubtful : ends as near to the true mean as their own bound allows them to be off.
    random : intervals that random numbers had to give.
    """

    mean: float
    kinds: tuple[Coverage, ...]
    rejected: float
    flat: float
    doubtful: int
    random: int


def drawn(rng: np.random.Generator, mix: Mix, share: float, n: int, samples: int) -> Drawn:
    """Coverage from samples of n cases, of which a share differs as the mix says."""
    true = share * mix.mean
    ends, bounds = np.empty((2, samples, 2)), np.empty((2, samples, 1))
    rejected = flat = random = 0
    for i in range(samples):
        won, lost = rng.choice(mix.wins, n), -rng.choice(mix.losses, n)
        signed = np.where(rng.random(n) < mix.won, won, lost)
        values = np.where(rng.random(n) < share, signed, 0.0)
        sample = histogram(values)
        for kind, interval_of in enumerate((mean_interval, bca_interval)):
            found = interval_of(sample, 0.95)
            ends[kind, i], bounds[kind, i] = (found.low, found.high), found.bound
            random += found.method.startswith("monte")
        rejected += sign_flip(values).p_value <= 0.05
        flat += not values.any()
    near = (np.abs(ends - true) <= bounds) & (bounds > 0.0) & np.isfinite(bounds)
    kinds = []
    for low, high in (pair.T for pair in ends):
        above, below = float((low > true).mean()), float((high < true).mean())
        held = float(((low <= true) & (true <= high)).mean())
        kinds.append(Coverage(held, above, below, float((high - low).mean())))
    return Drawn(true, tuple(kinds), rejected / samples, flat / samples, int(near.sum()), random)
