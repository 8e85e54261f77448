"""Compiles, ahead or in another process, the kernels that a score needs last.

``python -m ragcore_kernels.warm`` runs `evaluate` and the intervals on next to nothing. Started
beside a first score, it compiles them while that one compiles the kernels that it needs first.
"""

from __future__ import annotations

import numpy as np


def compile_measures() -> None:
    """Run `measures.evaluate` on no ranking at all."""
    from ragcore_kernels.measures import SPEC_FIELDS, evaluate
    from ragcore_kernels.ranking import STAT_FIELDS

    none, one = np.empty(0, np.int64), np.zeros(1, np.int64)
    hits = np.empty(0, np.int32)
    evaluate(
        np.empty((0, SPEC_FIELDS), np.int64), np.empty((0, 3)), np.full((1, 1), np.nan), 0, 0, 0,
        none, one, hits, hits, one, hits, np.empty((0, STAT_FIELDS), np.int64),
        np.empty((0, 0)), np.empty((2, 0, 0)),
    )  # fmt: skip


def compile_intervals() -> None:
    """Run every way to an interval once: a lattice, no lattice, few values, many cases."""
    from ragcore_kernels.resample import mean_intervals

    ranks = 1.0 / np.arange(1, 11)
    mean_intervals([np.repeat([0.0, 1.0], 40), np.tile(ranks, 30), np.sqrt(np.arange(300) / 300)])
    mean_intervals([np.tile(ranks, 2_000)])


if __name__ == "__main__":
    compile_measures()
    compile_intervals()
