"""Time the exact interval of a mean beside scipy's percentile bootstrap, in one run.

python bench/peers/intervals.py --quick
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.stats import bootstrap

from ragcore_kernels.resample import mean_interval

SIZES = (300, 1_000, 7_000, 20_000)
DRAWS = 10_000


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
    "{-1,0,1}": lambda rng, n: rng.choice([-1.0, 0.0, 1.0], n, p=[0.15, 0.6, 0.25]),
    "RR@10": reciprocal_ranks,
    "RR@10 difference": lambda rng, n: reciprocal_ranks(rng, n) - reciprocal_ranks(rng, n),
    "nDCG@10": ndcg,
    "nDCG@10 difference": lambda rng, n: ndcg(rng, n) - ndcg(rng, n),
}


def median_ms(run: Callable[[], object], repeats: int) -> float:
    """Median wall time of `repeats` runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    """Print one line for each kind of values and number of cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of cases")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--repeats", type=int, default=3, help="runs of scipy, of which the median")
    parser.add_argument("--quick", action="store_true", help="two sizes, one run of scipy")
    options = parser.parse_args()
    sizes = options.sizes[:2] if options.quick else options.sizes
    repeats = 1 if options.quick else options.repeats
    mean_interval(KINDS["nDCG@10"](np.random.default_rng(0), 300))  # compile
    mean_interval([0.0, 1.0, 2.0])
    print(f"ms, medians; scipy: percentile, {DRAWS} resamples; apart: greatest distance of ends")
    print(f"{'values':<19}{'n':>7}{'exact':>9}{'scipy':>10}{'ratio':>8}  {'apart':<9}method")
    for kind in options.kinds:
        for n in sizes:
            values = KINDS[kind](np.random.default_rng(n), n)
            ours = mean_interval(values)

            def peer(values: np.ndarray = values) -> tuple[float, float]:
                return bootstrap(
                    (values,),
                    np.mean,
                    n_resamples=DRAWS,
                    method="percentile",
                    batch=max(1, 10_000_000 // values.size),
                    rng=np.random.default_rng(1),
                ).confidence_interval

            low, high = peer()
            exact_ms = median_ms(lambda values=values: mean_interval(values), 21)
            scipy_ms = median_ms(peer, repeats)
            apart = max(abs(low - ours.low), abs(high - ours.high))
            print(
                f"{kind:<19}{n:>7}{exact_ms:>9.3f}{scipy_ms:>10.1f}{scipy_ms / exact_ms:>8.0f}"
                f"  {apart:<9.1e}{ours.method}",
                flush=True,
            )


if __name__ == "__main__":
    main()
