"""Exact nearest neighbours: the filters, filtered search, and what is made beforehand."""

from __future__ import annotations

import numpy as np

from ragcore_kernels import knn_float, knn_int8
from ragcore_kernels._jit import compiled_count
from ragcore_kernels.knn import ExactIndex


def clustered(n: int, d: int, seed: int = 7) -> np.ndarray:
    """Unit vectors around a thousandth as many centres, as embeddings of passages lie."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(n // 100, 1), d), np.float32)
    x = centres[rng.integers(0, len(centres), n)]
    x += np.float32(0.8) * rng.standard_normal((n, d), np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


class Search:
    """k nearest of 20,000 vectors of 384 dimensions, one thread."""

    params = (("float32", "int8"), ("ip", "l2"), (1, 32, 256), (10, 100))
    param_names = ("method", "metric", "batch", "k")

    def setup(self, method, metric, batch, k):
        x = clustered(20_000, 384)
        self.queries = clustered(256, 384, 8)[:batch] + x[:batch]
        self.index = ExactIndex(x, metric, method)
        self.time_search(method, metric, batch, k)

    def time_search(self, method, metric, batch, k):
        self.index.search(self.queries, k)

    def track_specialisations(self, method, metric, batch, k):
        return max(map(compiled_count, (knn_float.scan_float, knn_int8.scan_bytes)))


class Filtered:
    """10 nearest of those of 20,000 vectors that may be found."""

    params = ((0.01, 0.1, 0.5),)
    param_names = ("share",)

    def setup(self, share):
        self.index = ExactIndex(clustered(20_000, 384), "cosine")
        self.queries = clustered(64, 384, 8)
        self.eligible = np.random.default_rng(1).random(20_000) < share
        self.time_search(share)

    def time_search(self, share):
        self.index.search(self.queries, 10, eligible=self.eligible)


class Build:
    """What an index makes beforehand: norms, and codes."""

    params = (("float32", "int8"),)
    param_names = ("method",)

    def setup(self, method):
        self.vectors = clustered(20_000, 384)
        self.time_build(method)

    def time_build(self, method):
        ExactIndex(self.vectors, "cosine", method)
