"""The exact BCa interval, against the textbook in fractions, and scipy within its error."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels._jit import JIT
from ragcore_kernels.bca import BcaInterval, bca_interval
from ragcore_kernels.histogram import histogram
from ragcore_kernels.resample import Interval, mean_interval
from reference_tails import bca_of, convolved_pmf, enumerated_pmf, multinomial_means

COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")


def test_bca__one_win_in_twelve():
    found = bca_interval([0.0] * 11 + [1.0])
    assert (found.low, found.high, found.method, found.bound) == (0.0, 5 / 12, "exact", 0.0)
    assert found.z0 == pytest.approx(0.1105, abs=5e-5)
    assert found.acceleration == pytest.approx(0.1451, abs=5e-5)
    assert isinstance(found, Interval)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize(
    "values",
    [
        [0, 0, 0, 1],
        [-1, 0, 1, 1, 0],
        [Fraction(1, 10), Fraction(1, 5), Fraction(-3, 10), Fraction(7, 10)],
        [0, 0, 0, Fraction(1, 7), 13],
        [1, 2, 3],
        [0, Fraction(1, 3), Fraction(1, 2), Fraction(1, 2), 0, 1],
    ],
    ids=["binary", "trinomial", "tenths", "skewed", "symmetric", "thirds"],
)
def test_bca__equals_enumeration(values, level):
    exact = [Fraction(v) for v in values]
    low, high, z0, a = bca_of(exact, enumerated_pmf(exact), level)
    found = bca_interval([float(v) for v in values], level)
    assert (found.low, found.high) == (low, high)
    assert (found.z0, found.acceleration) == pytest.approx((z0, a), abs=1e-13)
    assert found.method == "exact"


@COMPILED
@pytest.mark.parametrize("points", [[0, 1], [-1, 0, 1], [0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 40]])
def test_bca__equals_integers(points):
    rng = np.random.default_rng(5)
    for n in (10, 20, 70):
        numerators = np.array(points)[rng.integers(0, len(points), n)].tolist()
        exact = [Fraction(v, 5) for v in numerators]
        pmf = convolved_pmf(numerators, 5)
        for level in (0.9, 0.95):
            low, high, z0, a = bca_of(exact, pmf, level)
            found = bca_interval([v / 5 for v in numerators], level)
            assert (found.low, found.high) == (low, high)
            assert (found.z0, found.acceleration) == pytest.approx((z0, a), abs=1e-12)


def test_bca__small_irrational_samples_equal_enumeration():
    values = [math.sqrt(2), -math.pi / 7, math.e, 0.1, 0.1]
    exact = [Fraction(v) for v in values]
    low, high, z0, a = bca_of(exact, enumerated_pmf(exact), 0.9)
    found = bca_interval(values, 0.9)
    assert found.method == "exact"
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-14)
    assert (found.z0, found.acceleration) == pytest.approx((z0, a), abs=1e-13)


@COMPILED
@pytest.mark.parametrize(("n", "kinds"), [(60, 4), (45, 5), (400, 3)])
def test_bca__irrational_ends_lie_inside_the_bound(n, kinds):
    """Every vector of multiplicities is listed, then the textbook followed in doubles."""
    rng = np.random.default_rng(n)
    points = np.concatenate([[0.0], np.cbrt(rng.random(kinds - 1)) ** 3.3 * 2])
    values = points[rng.integers(0, kinds, n)]
    sums, pmf = _listed(values, n)
    s = values.sum()
    equal = pmf[np.abs(sums - s) < 1e-10].sum()
    normal = NormalDist()
    z0 = normal.inv_cdf(pmf[sums < s - 1e-10].sum() + equal / 2)
    deviations = values - s / n
    a = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)
    found = bca_interval(values)
    assert found.acceleration == pytest.approx(a, rel=1e-10)
    assert found.z0 == pytest.approx(z0, abs=5e-3)
    below, above = np.cumsum(pmf), np.cumsum(pmf[::-1])[::-1]
    moved = [z0 + z for z in (normal.inv_cdf(0.025), normal.inv_cdf(0.975))]
    low, high = (normal.cdf(z0 + m / (1 - a * m)) for m in moved)
    assert abs(sums[np.searchsorted(below, low)] / n - found.low) <= found.bound
    assert abs(sums[np.flatnonzero(above >= 1 - high)[-1]] / n - found.high) <= found.bound
    assert 0 < found.bound < 0.02
    assert found.bound >= mean_interval(values).bound


def _listed(values, n):
    kinds, counts = np.unique(values, return_counts=True)
    sums, logs, left = np.zeros(1), np.zeros(1), np.array([n])
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    for kind, count in zip(kinds, counts, strict=True):
        rows = np.repeat(np.arange(left.size), left + 1)
        times = np.arange(rows.size) - np.repeat(np.cumsum(left + 1) - left - 1, left + 1)
        sums, left = sums[rows] + times * kind, left[rows] - times
        logs = logs[rows] + times * np.log(count / n) - log_factorial[times]
    done = left == 0
    order = np.argsort(sums[done])
    return sums[done][order], np.exp(logs[done] + log_factorial[n])[order]


@COMPILED
@pytest.mark.parametrize("kind", ["irrational", "trinomial", "skewed"])
def test_bca__scipy_is_within_its_monte_carlo_error(kind):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(3)
    n = 150
    values = {
        "irrational": np.sqrt(rng.random(n)),
        "trinomial": rng.integers(-1, 2, n) + 0.0,
        "skewed": np.exp(rng.normal(size=n)),
    }[kind]
    found = bca_interval(values)
    draws = 20_000
    other = stats.bootstrap(
        (values,), np.mean, n_resamples=draws, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    # Five standard errors of an adjusted share, over the density at the ends; z0 adds its own.
    error = values.std() / n**0.5 * 5 * 2 * (0.025 * 0.975 / draws) ** 0.5 / 0.0584
    assert abs(other.low - found.low) <= error + 1 / n * (kind == "trinomial")
    assert abs(other.high - found.high) <= error + 1 / n * (kind == "trinomial")


@COMPILED
@pytest.mark.parametrize("n", [7_000, 100_000])
def test_bca__is_within_the_error_of_random_resamples(n):
    values = np.array([0.0, 0.0, 0.5, 1.0, 3.0])[np.random.default_rng(n).integers(0, 5, n)]
    found = bca_interval(values)
    means = multinomial_means(values, 400_000, 2)
    normal = NormalDist()
    z0 = normal.inv_cdf((means < values.mean()).mean() + 0.5 * (means == values.mean()).mean())
    assert found.z0 == pytest.approx(z0, abs=5 * 1.2533 / 400_000**0.5)
    assert found.z0 == pytest.approx(found.acceleration, rel=0.2)  # both a sixth of the skewness
    moved = [found.z0 + z for z in (normal.inv_cdf(0.025), normal.inv_cdf(0.975))]
    shares = [normal.cdf(found.z0 + m / (1 - found.acceleration * m)) for m in moved]
    ends = np.quantile(means, shares, method="inverted_cdf")
    error = values.std() / n**0.5 * 5 * (0.025 * 0.975 / 400_000) ** 0.5 / 0.0584 + 1 / n
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=error)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=14), st.sampled_from([0.5, 0.9, 0.95]))
@settings(deadline=None, derandomize=True, max_examples=80)
def test_bca__of_negated_values_is_mirrored(values, level):
    found, mirrored = bca_interval(values, level), bca_interval([-v for v in values], level)
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)
    assert mirrored.z0 == pytest.approx(-found.z0, abs=1e-13)
    assert mirrored.acceleration == pytest.approx(-found.acceleration, abs=1e-15)
    assert min(values) <= found.low <= found.high <= max(values)
    assert bca_interval(histogram(values), level) == found


def test_bca__symmetric_values_have_the_percentile_interval():
    for values in ([0.0, 1.0], [-1.0, 0.0, 1.0, 0.0], [1.0, 2.0, 3.0]):
        for level in (0.5, 0.95):
            found, plain = bca_interval(values, level), mean_interval(values, level)
            assert (found.low, found.high) == (plain.low, plain.high)
            assert found.z0 == pytest.approx(0.0, abs=1e-15)
            assert found.acceleration == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("n", [1, 5])
def test_bca__of_equal_values_is_that_value(n):
    assert bca_interval([0.25] * n) == BcaInterval(0.25, 0.25, "exact", 0.0, 0.0, 0.0)


def test_bca__of_nothing_is_nan():
    found = bca_interval([])
    assert found.method == ""
    assert all(map(math.isnan, (found.low, found.high, found.z0, found.acceleration)))


def test_bca__extreme_levels_stay_inside_the_values():
    values = [0.0] * 30 + [1.0]
    for level in (1e-9, 1 - 1e-9, 1 - 1e-14, 1 - 2**-53):
        found = bca_interval(values, level)
        assert 0.0 <= found.low <= found.high <= 1.0


def test_bca__great_magnitudes():
    values = np.array([1.0, -0.3, 0.22, 0.07, 1.0, 0.0])
    plain, found = bca_interval(values), bca_interval(values * 1e300)
    assert (found.low, found.high) == pytest.approx((plain.low * 1e300, plain.high * 1e300))
    assert found.acceleration == pytest.approx(plain.acceleration)


@COMPILED
def test_bca__above_the_bins_has_a_bound_and_every_value_counts():
    values = np.exp(np.random.default_rng(1).normal(size=6_000))
    found = bca_interval(values)
    deviations = values - values.mean()
    a = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)
    assert found.acceleration == pytest.approx(a, rel=1e-9)
    assert found.z0 == pytest.approx(a, rel=0.1)
    assert 0 < found.bound < 1e-3


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_bca__rejects_what_it_cannot_use(bad):
    with pytest.raises(ValueError, match="finite"):
        bca_interval([0.0, bad])
    with pytest.raises(ValueError, match="level is 95"):
        bca_interval([0.0, 1.0], 95)
    with pytest.raises(ValueError, match="one dimension"):
        bca_interval([[0.0, 1.0]])
