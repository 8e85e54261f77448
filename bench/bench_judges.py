"""Judges as instruments: agreement of coders, span overlap, and the prediction-powered mean.

Besides time these track that a kernel has one specialisation.
"""

from __future__ import annotations

import numpy as np

from ragcore_kernels import coincidences, judge_quality
from ragcore_kernels._jit import compiled_count
from ragcore_kernels.agreement import agreement
from ragcore_kernels.judge_quality import span_quality, spans_of
from ragcore_kernels.ppi import ppi_mean
from ragcore_kernels.selective import risk_coverage


def coded(n: int, coders: int) -> np.ndarray:
    """Five grades of `n` items: coders agree on most, and leave out a tenth."""
    rng = np.random.default_rng(n + coders)
    grades = np.where(
        rng.random((n, coders)) < 0.7, rng.integers(0, 5, (n, 1)), rng.integers(0, 5, (n, coders))
    )
    return np.where(rng.random((n, coders)) < 0.1, -1, grades)


class Agreement:
    """Every coefficient of one set of codes."""

    params = ((10_000, 1_000_000), (2, 5))
    param_names = ("items", "coders")

    def setup(self, items, coders):
        self.codes = coded(items, coders)
        self.time_agreement(items, coders)

    def time_agreement(self, items, coders):
        agreement(self.codes, 5, "ordinal")


class Spans:
    """Characters that a judge and a human marked, three spans a response each."""

    params = (1_000, 100_000)
    param_names = ("responses",)

    def setup(self, responses):
        rng = np.random.default_rng(responses)
        offsets = np.arange(0, 3 * responses + 1, 3)
        starts = rng.integers(0, 1_000, (2, 3 * responses))
        ends = starts + rng.integers(1, 120, starts.shape)
        self.judge, self.human = (
            spans_of(offsets, s, e) for s, e in zip(starts, ends, strict=True)
        )
        self.time_spans(responses)

    def time_spans(self, responses):
        span_quality(self.judge, self.human)


class Ppi:
    """The tuned mean of a few labels and many scores, and the risk-coverage curve of as many."""

    params = (1_000, 1_000_000)
    param_names = ("unlabelled",)

    def setup(self, unlabelled):
        rng = np.random.default_rng(unlabelled)
        self.labels = (rng.random(300) < 0.7).astype(np.float64)
        self.judged = np.where(rng.random(300) < 0.85, self.labels, 1.0 - self.labels)
        self.others = (rng.random(unlabelled) < 0.66).astype(np.float64)
        self.cases = np.arange(300), 300 + np.arange(unlabelled) // 3
        self.confidence = rng.integers(0, 1_000, unlabelled) / 1_000
        for run in (self.time_mean, self.time_cases, self.time_curve):
            run(unlabelled)

    def time_mean(self, unlabelled):
        ppi_mean(self.labels, self.judged, self.others)

    def time_cases(self, unlabelled):
        ppi_mean(self.labels, self.judged, self.others, cases=self.cases)

    def time_curve(self, unlabelled):
        risk_coverage(self.confidence, self.others)


class Specialisations:
    """How often any kernel was compiled after codes and spans of several shapes: once."""

    unit = "signatures"

    def track_most_specialisations(self):
        for coders in (2, 3):
            agreement(coded(50, coders), 5)
        spans = spans_of([0, 1], [0], [4])
        span_quality(spans, spans)
        kernels = (
            coincidences.count_sizes, coincidences.coincide, coincidences.cross_table,
            judge_quality.overlap_spans,
        )  # fmt: skip
        return max(map(compiled_count, kernels))
