"""Time exact intervals and sign-flip p-values beside scipy's resampling, in one run.

python bench/peers/intervals.py --quick
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from report import machine, number, publish, table, tell
from scipy.stats import bootstrap, permutation_test

from ragcore_kernels.bca import bca_interval
from ragcore_kernels.clusters import ratio_interval
from ragcore_kernels.resample import mean_interval
from ragcore_kernels.signs import sign_flip

SIZES = (300, 1_000, 7_000, 100_000)
DRAWS = (10_000, 100_000)
MOST_DRAWN = 7_000_000_000
"""Values that a peer may draw; more is infeasible and said to be."""


def reciprocal_ranks(rng: np.random.Generator, n: int) -> np.ndarray:
    """Reciprocal rank of the first relevant passage, 0 beyond rank 10."""
    rank = rng.geometric(0.25, n)
    return np.where(rank <= 10, 1 / rank, 0.0)


def ndcg(rng: np.random.Generator, n: int) -> np.ndarray:
    """nDCG@10 of random rankings with about two relevant passages."""
    discount = 1 / np.log2(np.arange(2, 12))
    found = rng.random((n, 10)) < 0.2
    ideal = np.cumsum(discount)[np.maximum(found.sum(1), 1) - 1]
    return found @ discount / ideal


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "{0,1}": lambda rng, n: (rng.random(n) < 0.3) + 0.0,
    "{-1,0,1}": lambda rng, n: rng.choice([-1.0, 0.0, 1.0], n, p=[0.18, 0.6, 0.22]),
    "RR@10 difference": lambda rng, n: reciprocal_ranks(rng, n) - reciprocal_ranks(rng, n),
    "nDCG@10 difference": lambda rng, n: ndcg(rng, n) - ndcg(rng, n),
}


def timed(run: Callable[[], Any], least_s: float = 0.2, most: int = 41) -> tuple[float, Any]:
    """Median wall milliseconds of repeated runs, and what the last gave."""
    times: list[float] = []
    out = None
    while len(times) < most and (sum(times) < least_s or len(times) < 3):
        start = time.perf_counter()
        out = run()
        times.append(time.perf_counter() - start)
        if times[0] > 5.0:
            break
    return statistics.median(times) * 1e3, out


def resampled(values: np.ndarray, draws: int) -> tuple[float, float]:
    """scipy's percentile interval."""
    found = bootstrap(
        (values,), np.mean, n_resamples=draws, method="percentile",
        batch=max(1, 10_000_000 // values.size), rng=np.random.default_rng(1),
    )  # fmt: skip
    low, high = found.confidence_interval
    return float(low), float(high)


def permuted(values: np.ndarray, draws: int) -> float:
    """scipy's two-sided p-value of a paired permutation test."""
    found = permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=draws, vectorized=True,
        batch=max(1, 10_000_000 // values.size), rng=np.random.default_rng(1),
    )  # fmt: skip
    return float(found.pvalue)


def mean_rows(sizes: tuple[int, ...], draws: tuple[int, ...]) -> list[list[str]]:
    """Percentile intervals, ours and scipy's."""
    rows = []
    for kind, make in KINDS.items():
        for n in sizes:
            values = make(np.random.default_rng(n), n)
            ours, found = timed(lambda values=values: mean_interval(values))
            corrected, _ = timed(lambda values=values: bca_interval(values))
            row = [kind, f"{n:,}", number(ours), found.method, number(corrected)]
            for b in draws:
                tell(f"interval of {kind}, {n} cases, {b} resamples")
                if n * b > MOST_DRAWN:
                    row += ["infeasible", "", ""]
                    continue
                theirs, (low, high) = timed(lambda values=values, b=b: resampled(values, b))
                apart = max(abs(low - found.low), abs(high - found.high))
                row += [number(theirs), f"{theirs / ours:,.0f}", f"{apart:.0e}"]
            rows.append(row)
    return rows


def sign_rows(sizes: tuple[int, ...], draws: tuple[int, ...]) -> list[list[str]]:
    """p-values, ours and scipy's."""
    rows = []
    for kind in list(KINDS)[1:]:
        for n in sizes:
            values = KINDS[kind](np.random.default_rng(n), n)
            ours, found = timed(lambda values=values: sign_flip(values))
            row = [kind, f"{n:,}", number(ours), f"{found.p_value:.6g}", found.method]
            for b in draws:
                tell(f"p-value of {kind}, {n} cases, {b} resamples")
                if n * b > MOST_DRAWN:
                    row += ["infeasible", "", ""]
                    continue
                theirs, p = timed(lambda values=values, b=b: permuted(values, b))
                row += [number(theirs), f"{theirs / ours:,.0f}", f"{p:.4g}"]
            rows.append(row)
    return rows


def ratio_rows(draws: int) -> list[list[str]]:
    """Ratio of sums over clusters, ours and plain resampling."""
    rows = []
    for clusters, most in ((200, 8), (1_000, 8), (1_000, 20), (5_000, 8)):
        rng = np.random.default_rng(clusters + most)
        sizes = rng.integers(1, most + 1, clusters).astype(np.float64)
        found = rng.binomial(sizes.astype(np.int64), 0.7).astype(np.float64)
        ours, interval = timed(lambda found=found, sizes=sizes: ratio_interval(found, sizes))

        def peer(found: np.ndarray = found, sizes: np.ndarray = sizes) -> tuple[float, ...]:
            drawn = np.random.default_rng(1)
            parts = []
            for _ in range(0, draws, 1_000):
                at = drawn.integers(0, sizes.size, (1_000, sizes.size))
                parts.append(found[at].sum(1) / sizes[at].sum(1))
            return tuple(np.quantile(np.concatenate(parts), [0.025, 0.975], method="inverted_cdf"))

        tell(f"ratio over {clusters} clusters")
        theirs, (low, high) = timed(peer)
        apart = max(abs(low - interval.low), abs(high - interval.high))
        rows.append([
            f"{clusters:,}", f"1-{most}", number(ours), interval.method, number(theirs),
            f"{theirs / ours:,.0f}", f"{apart:.0e}",
        ])  # fmt: skip
    return rows


def main() -> None:
    """Print the tables; with --update also put them into a Markdown file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of cases")
    parser.add_argument("--update", type=Path, help="Markdown file whose tables are replaced")
    parser.add_argument("--quick", action="store_true", help="two sizes, 10,000 resamples")
    options = parser.parse_args()
    sizes = tuple(options.sizes[:2] if options.quick else options.sizes)
    draws = DRAWS[:1] if options.quick else DRAWS
    rng = np.random.default_rng(0)
    for make in KINDS.values():  # compile
        mean_interval(make(rng, 300))
        bca_interval(make(rng, 300))
        sign_flip(make(rng, 300))
    ratio_interval([1.0, 2.0, 0.0], [2.0, 3.0, 1.0])
    peers = [t for b in draws for t in (f"scipy {b:,} ms", "ratio", "apart")]
    head = ["values", "n", "exact ms", "method", "exact BCa ms", *peers]
    rows = mean_rows(sizes, draws)
    publish("intervals mean", [machine(), "", *table(head, rows, True)], options.update)
    peers = [t for b in draws for t in (f"scipy {b:,} ms", "ratio", "scipy p")]
    head = ["values", "n", "exact ms", "p", "method", *peers]
    rows = sign_rows(sizes, draws)
    publish("intervals signs", [machine(), "", *table(head, rows, True)], options.update)
    count = 10_000 if options.quick else 100_000
    head = ["clusters", "sizes", "exact ms", "method", f"numpy {count:,} ms", "ratio", "apart"]
    rows = ratio_rows(count)
    publish("intervals ratio", [machine(), "", *table(head, rows, True)], options.update)


if __name__ == "__main__":
    main()
