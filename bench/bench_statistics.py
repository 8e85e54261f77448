"""Statistics of comparisons: tests, corrected intervals, ratios, strata, and a whole comparison.

Besides time these track how far p-values are from integer arithmetic, and that a kernel has one
specialisation.
"""

from __future__ import annotations

import importlib
import tempfile
from collections import Counter
from math import comb
from pathlib import Path

import numpy as np

from ragcore import compare
from ragcore_kernels._jit import compiled_count
from ragcore_kernels.bca import bca_interval
from ragcore_kernels.clusters import ratio_interval
from ragcore_kernels.resample import mean_interval
from ragcore_kernels.signs import sign_flip
from ragcore_kernels.strata import stratified_interval
from ragcore_kernels.warm import compile_intervals, compile_rest, compile_tests


def gains(kind: str, n: int) -> np.ndarray:
    """Plausible paired differences: most cases tie."""
    rng = np.random.default_rng(n)
    moved = rng.random(n) < 0.4
    if kind == "-1, 0, 1":
        return np.where(moved, rng.choice([-1.0, 1.0], n, p=[0.45, 0.55]), 0.0)
    if kind == "RR@10":
        ranks = 1.0 / rng.integers(1, 11, (2, n))
        return np.where(moved, ranks[1] - ranks[0], 0.0)
    values = rng.beta(0.7, 0.6, (2, n))
    return np.where(moved, values[1] - values[0], 0.0)


KINDS = ("-1, 0, 1", "RR@10", "any")


class Differences:
    """Interval, BCa and p-value of one set of differences."""

    params = (KINDS, (300, 7_000))
    param_names = ("values", "n")

    def setup(self, kind, n):
        self.values = gains(kind, n)
        self.strata = np.arange(n) % 5
        for run in (self.time_interval, self.time_bca, self.time_sign_flip, self.time_strata):
            run(kind, n)

    def time_interval(self, kind, n):
        mean_interval(self.values)

    def time_bca(self, kind, n):
        bca_interval(self.values)

    def time_sign_flip(self, kind, n):
        sign_flip(self.values)

    def time_strata(self, kind, n):
        stratified_interval(self.values, self.strata)


class Ratio:
    """Ratio of sums over clusters."""

    params = (200, 1_000, 5_000)
    param_names = ("clusters",)

    def setup(self, clusters):
        rng = np.random.default_rng(clusters)
        self.sizes = rng.integers(1, 9, clusters).astype(np.float64)
        self.found = rng.binomial(self.sizes.astype(np.int64), 0.7).astype(np.float64)
        self.time_ratio(clusters)

    def time_ratio(self, clusters):
        ratio_interval(self.found, self.sizes)


def exact_p(points: list[int]) -> float:
    """Two-sided sign-flip p-value in integers: the product of (x^-v + x^v), one big integer."""
    moved = [abs(point) for point in points if point]
    width, total = len(moved) + 2, sum(moved)
    ways = 1
    for value, count in Counter(moved).items():
        factor = sum(comb(count, k) << (width * 2 * value * k) for k in range(count + 1))
        ways *= factor
    mask, observed = (1 << width) - 1, abs(sum(points))
    sums = ((ways >> (width * s)) & mask for s in range(2 * total + 1))
    extreme = sum(w for s, w in enumerate(sums) if abs(s - total) >= observed)
    return extreme / 2 ** len(moved)


class SignFlipError:
    """Relative distance of p-values from integer arithmetic; off a lattice, their bound."""

    params = ("-1, 0, 1", "fifths", "any")
    param_names = ("values",)
    unit = "distance"

    def track_error(self, kind):
        if kind == "any":
            return sign_flip(gains(kind, 7_000)).bound
        most = 1 if kind == "-1, 0, 1" else 5
        points = np.random.default_rng(most).integers(-most, most + 1, 120) + (most > 1)
        wanted = exact_p(points.tolist())
        return abs(sign_flip(points / most).p_value - wanted) / wanted


class Compare:
    """Two runs from files: every difference, interval and p-value."""

    def setup(self):
        import sys

        sys.path.insert(0, str(Path(__file__).parent / "peers"))
        from comparison import MEASURES, world

        self.folder = tempfile.TemporaryDirectory()
        self.path, self.measures = Path(self.folder.name), MEASURES
        world(self.path, 500)
        self.time_compare()

    def teardown(self):
        self.folder.cleanup()

    def time_compare(self):
        compare(
            self.path / "before.arrow", self.path / "after.arrow", suite=self.path,
            measures=self.measures, by=["topic"],
        ).rows()  # fmt: skip


KERNELS = (
    "trinomial.few_ends", "lattice.common_denominator", "flips.scan_cosines", "flips.tail",
    "flip_lists.count_subsets", "products.scan_sums", "torus.scan_plane",
    "binomial.binomial_tail", "tails.cumulate", "monte_carlo.resampled_sums",
)  # fmt: skip


class Specialisations:
    """How often any kernel was compiled after samples of every kind: once."""

    unit = "signatures"

    def setup(self):
        compile_intervals()
        compile_tests()
        compile_rest()

    def track_most_specialisations(self):
        found = (name.split(".") for name in KERNELS)
        return max(
            compiled_count(getattr(importlib.import_module(f"ragcore_kernels.{module}"), kernel))
            for module, kernel in found
        )
