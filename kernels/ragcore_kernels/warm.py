"""Compiles, ahead or in another process, the kernels that a score needs last.

``python -m ragcore_kernels.warm`` runs the intervals on next to nothing, and with the argument
``tests`` also what comparisons need. Started beside a first score, it compiles them while that one
compiles the kernels of rankings and measures: about half of the work each.
"""

from __future__ import annotations

import sys

import numpy as np


def compile_intervals() -> None:
    """Run every way to an interval once: a lattice, no lattice, few values, many or few cases."""
    from ragcore_kernels.resample import mean_intervals

    ranks = 1.0 / np.arange(1, 11)
    mean_intervals([np.repeat([0.0, 1.0], 40), np.tile(ranks, 30), np.sqrt(np.arange(300) / 300)])
    mean_intervals([np.tile(ranks, 2_000), np.sqrt(np.arange(9.0))])


def compile_tests() -> None:
    """Run every way to a sign-flip p-value once, as a comparison of two runs needs them."""
    from ragcore_kernels.binomial import clopper_pearson
    from ragcore_kernels.signs import sign_flip

    ranks = 1.0 / np.arange(1, 11)
    signs = np.where(np.arange(300) % 3, 1.0, -1.0)
    clopper_pearson(0, 12)
    sign_flip(np.array([1.0, -1.0, 0.0]))
    sign_flip(np.tile(ranks, 30) * signs)  # a lattice
    sign_flip(np.tile(ranks, 30))  # far in the tail
    sign_flip(ranks)  # listed
    sign_flip(np.sqrt(np.arange(1.0, 31.0)) * signs[:30])
    sign_flip(np.sqrt(np.arange(1.0, 301.0)) * signs)  # bracketed


def compile_rest() -> None:
    """Run what no command needs at once: tails, BCa, strata, ratios, random numbers."""
    from ragcore_kernels.bca import bca_interval
    from ragcore_kernels.clusters import ratio_interval
    from ragcore_kernels.monte_carlo import monte_carlo_interval, monte_carlo_signs
    from ragcore_kernels.order_statistics import quantile_ranks
    from ragcore_kernels.strata import stratified_interval

    ranks = 1.0 / np.arange(1, 11)
    roots = np.sqrt(np.arange(300) / 300)
    for values in (np.array([0.0, 1.0, 1.0]), np.tile(ranks, 30), roots):
        bca_interval(values)
        stratified_interval(values, np.arange(values.size) % 2)
    sizes = 1.0 + np.arange(300) % 5
    ratio_interval(np.minimum(sizes, 2.0), sizes)
    ratio_interval(roots, sizes)
    monte_carlo_interval(roots, 100)
    monte_carlo_signs(roots, 1.0, 100)
    quantile_ranks(300, 0.95)


def compile_search() -> None:
    """Run the fast kernels of search once, which small collections and one query leave aside."""
    from ragcore_kernels.bm25 import Collection, Scorer
    from ragcore_kernels.knn import ExactIndex
    from ragcore_kernels.knn_lists import ordered

    n, rng = 40_000, np.random.default_rng(0)
    lists = [np.flatnonzero(rng.random(n) < share).astype(np.int32) for share in (0.5, 0.1, 0.001)]
    offsets = np.cumsum([0, *(each.size for each in lists)])
    docs = np.concatenate(lists)
    tfs = 1 + (np.arange(docs.size) % 3).astype(np.int32)
    lengths = np.bincount(docs, tfs, n).astype(np.int32)
    scorer = Scorer(Collection(offsets, docs, tfs, lengths))
    scorer.search(np.array([0, 3]), np.arange(3), 10)
    scorer.search(np.array([0, 3]), np.arange(3), 10, eligible=np.arange(n) % 2 == 0)
    vectors = rng.normal(size=(2_000, 16)).astype(np.float32)
    for method in ("float32", "int8"):
        index = ExactIndex(vectors, "cosine", method)
        for queries in (vectors[:1], vectors[:32]):
            found = index.search(queries, 10)
            ordered(index, queries, found.rows, found.counts)


if __name__ == "__main__":
    compile_intervals()
    if "tests" in sys.argv[1:]:
        compile_tests()
