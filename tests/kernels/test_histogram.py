"""Histograms: exact, mergeable, and to the last bit as good as the values."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import bins
from ragcore_kernels._jit import JIT
from ragcore_kernels.bca import bca_interval
from ragcore_kernels.bins import binned, distinct
from ragcore_kernels.histogram import MAX_DISTINCT, Sample, histogram, merge
from ragcore_kernels.lattice import common_denominator, prepare
from ragcore_kernels.monte_carlo import monte_carlo_interval
from ragcore_kernels.resample import interval_of, mean_interval
from ragcore_kernels.spectrum import bounded_ends, oriented, spectrum_of
from ragcore_kernels.tails import mean_tails

COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")

few_values = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1 / 3, 1e300, 5e-324]), max_size=40
)
any_values = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=40)


def reference(values):
    counts = Counter(v + 0.0 for v in values)
    return sorted(counts), [counts[v] for v in sorted(counts)]


@given(st.one_of(few_values, any_values))
@settings(deadline=None, derandomize=True, max_examples=150 if JIT else 40)
def test_histogram__counts_distinct_values(values):
    found = histogram(values)
    assert (found.values.tolist(), found.counts.tolist()) == reference(values)
    assert (found.size, found.spread) == (len(values), 0.0)
    assert (np.copysign(1, found.values[found.values == 0]) == 1).all()
    assert found.values.dtype == np.float64
    assert found.counts.dtype == np.int64


@given(st.one_of(few_values, any_values), st.lists(st.integers(0, 3), min_size=40, max_size=40))
@settings(deadline=None, derandomize=True, max_examples=150 if JIT else 40)
def test_merge__equals_the_histogram_of_all_values(values, shards):
    parts = [[v for v, s in zip(values, shards, strict=False) if s == i] for i in range(4)]
    whole = histogram(values)
    assert merge(histogram(part) for part in parts) == whole
    assert merge([merge([histogram(p) for p in parts[:2]]), *map(histogram, parts[2:])]) == whole


@pytest.mark.parametrize("n", [5_000, 30_000])
def test_histogram__has_no_cap(n):
    values = np.random.default_rng(n).random(n)
    found = histogram(values)
    assert found.values.size == n > MAX_DISTINCT
    assert (found.values == np.sort(values)).all()
    assert merge([histogram(values[:4_000]), histogram(values[4_000:])]) == found


def kinds(n):
    rng = np.random.default_rng(n)
    plain = rng.random(n)
    return {
        "trinomial": rng.integers(-1, 2, n) + 0.0,
        "reciprocal": 1.0 / rng.integers(1, 11, n),
        "irrational": np.sqrt(rng.integers(0, 300, n)),
        "distinct": plain - 0.4,
        "outliers": np.exp(8 * plain**4),
        "great": plain * 1e306 - 3e305,
        "tiny": plain * 1e-310,
        "wide": np.ldexp(plain, rng.integers(-1_000, 900, n)),
    }


@COMPILED
@pytest.mark.parametrize("n", [7, 30, 900, 9_000])
@pytest.mark.parametrize("kind", kinds(1))
def test_interval__of_any_partition_is_that_of_the_values(kind, n):
    values = kinds(n)[kind]
    plain = mean_interval(values)
    cuts = np.sort(np.random.default_rng(1).integers(0, n, 3))
    merged = merge(histogram(part) for part in np.split(values[::-1], cuts))
    assert interval_of(merged) == plain
    assert interval_of(histogram(values)) == plain
    assert mean_interval(merged) == plain
    assert interval_of(merged, 0.5) == mean_interval(values, 0.5)
    assert mean_interval(np.roll(values, 5)) == plain


@given(st.one_of(few_values, st.lists(st.integers(-3, 3), max_size=30)))
@settings(deadline=None, derandomize=True, max_examples=100 if JIT else 20)
def test_interval__of_a_histogram_is_that_of_the_values(values):
    assert repr(interval_of(histogram(values), 0.9)) == repr(mean_interval(values, 0.9))


def test_sample__is_prepared_once():
    sample = histogram(np.sqrt(np.arange(60.0)))
    first = interval_of(sample)
    transform = prepare(sample).sample.memo["spectrum"]
    mean_tails(sample, 4.0)
    bca_interval(sample)
    assert interval_of(sample) == first
    assert prepare(sample) is prepare(sample)
    assert prepare(sample).sample.memo["spectrum"] is transform
    assert sample == Sample(sample.values, sample.counts)


def test_sample__equality_is_that_of_the_bits():
    sample = histogram([0.0, 1.0, 1.0])
    assert sample == histogram([1.0, 0.0, 1.0])
    assert sample != histogram([0.0, 1.0])
    assert sample != Sample(sample.values, sample.counts, 1e-9)
    assert sample != "sample"
    with pytest.raises(TypeError):
        hash(sample)


# --- bins


def check_bins(sample, values):
    """Every bin holds neighbours, keeps their mean, and the spread bounds their distance."""
    assert sample.values.size <= (1 << 12) + 1
    assert sample.size == values.size
    ordered = np.sort(values)
    stops = np.cumsum(sample.counts)
    distance = 0.0
    for centroid, start, stop in zip(sample.values, stops - sample.counts, stops, strict=True):
        part = ordered[start:stop]
        assert centroid == pytest.approx(part.mean(), abs=2e-12 * np.ptp(values))
        distance += ((part - centroid) ** 2).sum()
    assert distance / values.size <= sample.spread


@COMPILED
@pytest.mark.parametrize("kind", ["distinct", "outliers"])
def test_bins__keep_the_mean_and_bound_the_distance(kind):
    values = kinds(20_000)[kind]
    values = values / np.abs(values).max()
    found = distinct(values)
    check_bins(found, values)
    weighted = binned(*np.unique(values, return_counts=True))
    assert weighted == found


@COMPILED
def test_bins__follow_outliers():
    values = np.random.default_rng(0).random(50_000)
    values[:20] = 1e5 * (1 + values[:20])
    equal = bins._equal_bins(values, np.empty(0, np.int64))
    found = binned(values, np.empty(0, np.int64))
    check_bins(found, values)
    assert found.spread < 1e-4 * equal.spread
    assert mean_interval(values).method.startswith("exact±")


@COMPILED
def test_bins__ends_agree_with_those_of_every_value():
    values = np.exp(2.5 * np.random.default_rng(3).normal(size=6_000))
    values /= values.max()
    sample = histogram(values)
    low, high, bound = bounded_ends(sample, spectrum_of(sample), 0.025, 0.025, (0.0, 0.0))
    found = mean_interval(values)
    assert abs(found.low - low) <= found.bound + bound
    assert abs(found.high - high) <= found.bound + bound


@COMPILED
def test_bins__of_a_range_of_subnormal_size_are_not_made():
    values = np.arange(5_000) * 5e-324
    assert binned(values, np.empty(0, np.int64)) is None
    assert distinct(values).values.size == 5_000


def test_oriented__sample_is_that_of_its_mirror():
    values = [0.1, math.pi, -1.0, 0.5]
    one, other = (oriented(prepare(histogram(s * np.array(values)))) for s in (1, -1))
    assert one.sample == other.sample
    assert one.flip != other.flip


# --- hostile input


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_histogram__rejects_what_is_not_finite(bad):
    for values in ([bad], [0.0, bad, 1.0], [0.0, 1.0, 2.0, 3.0, bad]):
        with pytest.raises(ValueError, match="finite"):
            histogram(values)
    with pytest.raises(ValueError, match="one dimension"):
        histogram([[1.0]])
    with pytest.raises(ValueError, match="one dimension"):
        histogram(1.0)


FLOATS, ONES = np.array([0.0, 1.0]), np.array([1, 1])


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (Sample(FLOATS[::-1].copy(), ONES), "out of order"),
        (Sample(np.zeros(2), ONES), "out of order"),
        (Sample(FLOATS, ONES[:1]), "equal lengths"),
        (Sample(FLOATS, np.array([1, 0])), "count of 0"),
        (Sample(FLOATS, ONES.astype(np.int32)), "int32"),
        (Sample(FLOATS.astype(np.float32), ONES), "float32"),
        (Sample(np.array([0.0, math.nan]), ONES), "finite"),
        (Sample(FLOATS, ONES, 0.1), "bins"),
    ],
)
def test_samples__that_are_no_histogram_are_refused(sample, message):
    for use in (interval_of, mean_tails, bca_interval, monte_carlo_interval, lambda s: merge([s])):
        with pytest.raises(ValueError, match=message):
            use(sample)


def test_merge__of_nothing_is_empty():
    assert merge([]) == histogram([]) == merge([histogram([])] * 2)
    assert interval_of(merge([])).method == ""
    assert merge([histogram([]), histogram([2.0, 1.0])]) == histogram([1.0, 2.0])


@pytest.mark.parametrize("size", [1.0, 1e-31, 1e-300, 5e-324, 1e15, 1e300])
@pytest.mark.parametrize(
    "parts",
    [[0.3, 1.0], [1e-31, 0.7, 1.0], [-1.0, 1e-20, 0.3], [5e-324, 1.0], [0.5, 0.5000000000000001]],
)
def test_common_denominator__ends_on_any_values(size, parts):
    values = np.unique(np.array(parts) * size)
    if values.size > 1 and np.isfinite(values).all() and values[-1] > values[0]:
        found = common_denominator(values)
        assert found == np.floor(found) >= 0.0
        assert prepare(histogram(values)).n == values.size
