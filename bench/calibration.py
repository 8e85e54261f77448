"""How often the intervals of a mean paired difference hold the true one; tables of a page.

python -m bench.calibration --quick
python -m bench.calibration --update docs/calibration.md

Outcomes of 0 or 1 need no simulation. A case is won, lost or tied; for every number of wins and
losses the interval is worked out once, and its probability counts where it holds the true
difference. For n = 1,000 only outcomes that together have all but 1e-9 are looked at. The ends
are sums of whole numbers, and compared with the true difference as such.

RR@10 and nDCG@10 have too many outcomes and are drawn, from a seed: `--samples` of them a row,
each row from a generator of its own. One list of differing cases a measure is drawn first; a
sample takes each case from it, or 0. So the true mean is that of the list, times the share.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels.bca import bca_interval
from ragcore_kernels.binomial import clopper_pearson, mcnemar
from ragcore_kernels.histogram import Sample, histogram
from ragcore_kernels.resample import mean_interval
from ragcore_kernels.signs import sign_flip

from .peers.report import publish, table, tell

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

SIZES = (12, 30, 100, 1_000)
DISCORDANCES = tuple(map(Fraction, ("0.02", "0.1", "0.2", "0.4")))
SHARES = (Fraction(0), Fraction(1, 4), Fraction(1, 2))  # of the discordance: the difference
LEFT_OUT = 1e-9

KINDS = (
    (mean_interval, 0.9),
    (mean_interval, 0.95),
    (mean_interval, 0.99),
    (bca_interval, 0.95),
)
P90, P95, P99, BCA = range(4)

BANDS = (
    *(range(1, 3), range(3, 5), range(5, 10), range(10, 15), range(15, 20), range(20, 30)),
    *(range(30, 51, 2), range(50, 101, 5), range(100, 201, 10), range(200, 401, 20)),
)
"""Discordant cases expected; coverage is not monotone, so that one number would not do."""

TWENTIETHS = tuple(Fraction(i, 20) for i in range(20))

DIFFERING = (0.1, 0.3, 0.7)
FORMS = ("equal", "lopsided", "better")
MEASURES = ("RR@10", "nDCG@10")
LIST = 20_000  # differing cases of a measure

BLOCKS = ("binary", "levels", "size", "enough", *MEASURES)
"""Names of the tables, as in the markers of the page."""


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


def signed(rng: np.random.Generator, magnitudes: F64, form: str) -> F64:
    """The list of differences of a measure.

    Parameters
    ----------
    magnitudes : of cases that differ.
    form : `equal`: each magnitude with both signs, mean 0; `lopsided`: the greatest are wins and
        the others losses, so that the mean is next to 0; `better`: 65 % are wins.
    """
    if form == "equal":
        return np.concatenate([magnitudes, -magnitudes])
    if form == "better":
        return np.where(rng.random(magnitudes.size) < 0.65, magnitudes, -magnitudes)
    falling = np.sort(magnitudes)[::-1]
    won = np.cumsum(falling) <= falling.sum() / 2
    return np.where(won, falling, -falling)


@dataclass(frozen=True)
class Drawn:
    """One design of graded outcomes, from samples; shares of samples, as in `Exact`.

    Attributes
    ----------
    mean : the true one.
    kinds : percentile, BCa, both at 95 %.
    doubtful : ends that are no nearer to the true mean than their own bound.
    random : intervals that random numbers had to give.
    """

    mean: float
    kinds: tuple[Coverage, ...]
    rejected: float
    flat: float
    doubtful: int
    random: int


def drawn(rng: np.random.Generator, listed: F64, share: float, n: int, samples: int) -> Drawn:
    """Coverage from samples of n cases, of which a share has a difference of the list."""
    true = share * math.fsum(listed.tolist()) / listed.size
    ends, bounds = np.empty((2, samples, 2)), np.empty((2, samples, 1))
    rejected = flat = random = 0
    for i in range(samples):
        values = np.where(rng.random(n) < share, rng.choice(listed, n), 0.0)
        sample = histogram(values)
        for kind, interval_of in enumerate((mean_interval, bca_interval)):
            found = interval_of(sample, 0.95)
            ends[kind, i], bounds[kind, i] = (found.low, found.high), found.bound
            random += found.method.startswith("monte")
        rejected += sign_flip(values).p_value <= 0.05
        flat += not values.any()
    doubtful = int(((np.abs(ends - true) <= bounds) & (bounds > 0.0)).sum())
    kinds = []
    for low, high in (pair.T for pair in ends):
        above, below = float((low > true).mean()), float((high < true).mean())
        held = float(((low <= true) & (true <= high)).mean())
        kinds.append(Coverage(held, above, below, float((high - low).mean())))
    return Drawn(true, tuple(kinds), rejected / samples, flat / samples, doubtful, random)


# --- tables


def share_text(share: float, places: int = 1) -> str:
    """In per cent."""
    return f"{100 * share:.{places}f}"


def coverage_texts(found: Coverage) -> list[str]:
    """Coverage, misses on either side, width."""
    shares = (found.covered, found.above, found.below)
    return [*map(share_text, shares), f"{found.width:.3f}"]


COVERAGE_HEAD = ["percentile", "d < low", "d > high", "width"]
COVERAGE_HEAD += ["BCa", *COVERAGE_HEAD[1:], "[0, 0]"]


def binary_tables(sizes: tuple[int, ...]) -> dict[str, list[str]]:
    """The tables of fixed designs: coverage, other levels, size of the tests."""
    coverage, levels, size = [], [], []
    for n in sizes:
        for discordance in DISCORDANCES:
            for share in SHARES:
                difference = discordance * share
                found = exact(n, discordance, difference)
                kinds = found.kinds
                tell(f"n = {n}, discordance {float(discordance)}: {kinds[P95].covered:.4f}")
                design = [f"{n:,}", f"{float(discordance):g}", f"{float(difference):g}"]
                texts = coverage_texts(kinds[P95]) + coverage_texts(kinds[BCA])
                coverage.append([*design, *texts, share_text(found.flat)])
                each = [kinds[kind].covered for kind in (P90, P95, P99)]
                levels.append([*design, *map(share_text, [*each, found.patched])])
                if difference == 0:
                    if found.rejected > 0.05:
                        raise SystemExit(f"{design}: the sign-flip test rejects {found.rejected}")
                    missed = [kinds[kind].above + kinds[kind].below for kind in (P95, BCA)]
                    errors = [found.rejected, *missed]
                    size.append([*design[:2], *(share_text(x, 2) for x in errors)])
    head = ["n", "discordance", "d"]
    return {
        "binary": table([*head, *COVERAGE_HEAD], coverage, True),
        "levels": table([*head, "90 %", "95 %", "99 %", "95 %, patched"], levels, True),
        "size": table([*head[:2], "sign-flip", "percentile", "BCa"], size, True),
    }


def least(n: int, expected: int) -> tuple[float, float]:
    """Least coverage at 95 %, percentile and BCa, over differences up to the discordance."""
    rate = Fraction(expected, n)
    found = [exact(n, rate, rate * share).kinds for share in TWENTIETHS]
    return min(kinds[P95].covered for kinds in found), min(kinds[BCA].covered for kinds in found)


def enough_table(sizes: tuple[int, ...]) -> list[str]:
    """The least coverage by how many discordant cases are expected, up to half of all."""
    rows = []
    for band in BANDS:
        row = [f"{band[0]}-{band[-1]}"]
        for n in sizes:
            found = [least(n, expected) for expected in band if 2 * expected <= n]
            parts = [min(part) for part in zip(*found, strict=True)] or [None, None]
            row += ["" if part is None else share_text(part) for part in parts]
            tell(f"n = {n}, {row[0]} discordant cases expected: {' '.join(row[-2:])}")
        if any(row[1:]):
            rows.append(row)
    names = [f"{kind}, {n:,}" for n in sizes for kind in ("percentile", "BCa")]
    return table(["expected", *names], rows, True)


def graded_table(
    measure: str, magnitudes: F64, seed: int, samples: int, sizes: tuple[int, ...]
) -> list[str]:
    """Coverage of one measure, drawn."""
    rows, doubtful, random = [], 0, 0
    at = MEASURES.index(measure)
    for differing in DIFFERING:
        for form in FORMS:
            listed = signed(np.random.default_rng([seed, at, 0]), magnitudes, form)
            for n in sizes:
                key = [seed, at, 1, round(100 * differing), FORMS.index(form), n]
                found = drawn(np.random.default_rng(key), listed, differing, n, samples)
                doubtful, random = doubtful + found.doubtful, random + found.random
                tell(f"{measure} {differing} {form}, n = {n}: {found.kinds[0].covered:.3f}")
                texts = coverage_texts(found.kinds[0]) + coverage_texts(found.kinds[1])
                mean = f"{found.mean:.3f}" if form == "better" else "0"
                rejected = "" if form == "better" else share_text(found.rejected)
                row = [f"{differing:g}", form, mean, f"{n:,}", *texts]
                rows.append([*row, share_text(found.flat), rejected])
    error = 100 * math.sqrt(0.95 * 0.05 / samples)
    about = f"{samples:,} samples a row, seed {seed}: a coverage near 95 has a standard error of "
    head = ["differ", "form", "d", "n", *COVERAGE_HEAD, "sign-flip"]
    return [
        f"{about}{error:.1f}.",
        f"Ends within their own bound of d: {doubtful}. Intervals by random numbers: {random}.",
        "",
        *table(head, rows, True),
    ]


def main(arguments: list[str] | None = None) -> None:
    """Print every table, and put it into the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2_000, help="samples a row, where drawn")
    parser.add_argument("--seed", type=int, default=1, help="of the lists and samples")
    parser.add_argument("--quick", action="store_true", help="12 and 30 cases, 10 samples a row")
    parser.add_argument("--update", type=Path, help="page whose tables are replaced")
    options = parser.parse_args(arguments)
    page = options.update.read_text() if options.update else ""
    missing = [name for name in BLOCKS if page and f"<!-- begin {name} -->" not in page]
    if missing:  # said at once, not after minutes
        raise SystemExit(f"{options.update} has no block {', '.join(missing)}")
    sizes, samples = (SIZES[:2], 10) if options.quick else (SIZES, options.samples)
    start = time.process_time()
    for name, lines in binary_tables(sizes).items():
        publish(name, lines, options.update)
    publish("enough", enough_table(sizes), options.update)
    tell(f"{time.process_time() - start:.0f} s of processor time so far")
    magnitudes = differing_cases(np.random.default_rng(options.seed), LIST)
    for measure in MEASURES:
        lines = graded_table(measure, magnitudes[measure], options.seed, samples, sizes)
        publish(measure, lines, options.update)
    tell(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
