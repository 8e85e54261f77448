"""The bootstrap by random numbers: repeatable, right within its error, and labelled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ragcore_kernels import monte_carlo, resample
from ragcore_kernels._jit import JIT
from ragcore_kernels.histogram import histogram
from ragcore_kernels.intervals import exponential
from ragcore_kernels.monte_carlo import (
    fallback_replicates,
    monte_carlo_interval,
    resampled_sums,
)
from ragcore_kernels.resample import interval_at, interval_of, mean_interval
from reference_tails import multinomial_means, quantile_error

COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")
MASK = (1 << 64) - 1
FEW = 2_000 if JIT else 200


def mixed(state):
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & MASK
    return state ^ (state >> 31)


def split_mix(state):
    """Sebastiano Vigna's splitmix64.c, in Python's integers."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        yield mixed(state)


def sums(values, seed, first, n_replicates):
    out = np.empty(n_replicates)
    with np.errstate(over="ignore"):
        resampled_sums(np.array(values), seed, first, out)
    return out.tolist()


def test_reference__is_splitmix64():
    stream = split_mix(1234567)  # the outputs that the author's program prints
    assert [next(stream) for _ in range(3)] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 12_345, 2**63 - 1])
def test_sums__equal_integers(seed):
    values = [2.0**i for i in range(7)]
    for replicate in (0, 1, 77, 2**40):
        stream = split_mix(mixed((mixed(seed) + replicate * 0x9E3779B97F4A7C15) & MASK))
        wanted = sum(values[next(stream) * len(values) >> 64] for _ in values)
        assert sums(values, seed, replicate, 1) == [wanted]


def test_sums__of_a_replicate_know_no_other():
    values = np.sqrt(np.arange(9.0))
    whole = sums(values, 3, 0, 50)
    assert sums(values, 3, 17, 20) == whole[17:37]
    assert sums(values, 4, 0, 50) != whole


@pytest.mark.parametrize("kind", ["trinomial", "irrational"])
def test_interval__is_the_same_on_any_number_of_threads(kind):
    rng = np.random.default_rng(0)
    values = rng.integers(-1, 2, 40) + 0.0 if kind == "trinomial" else rng.random(40)
    found = monte_carlo_interval(values, FEW, 7)
    assert found.method == f"monte-carlo({FEW}, 7)"
    assert found.bound == math.inf
    for threads in (2, 3, 64):
        assert monte_carlo_interval(values, FEW, 7, threads=threads) == found
    assert monte_carlo_interval(rng.permutation(values), FEW, 7) == found
    assert monte_carlo_interval(histogram(values), FEW, 7) == found
    assert monte_carlo_interval(values, FEW, 8).method.endswith(" 8)")


def test_interval__of_few_replicates_is_an_order_statistic():
    values, n_replicates = [0.0, 1.0, 2.0, 5.0], 40
    drawn = sorted(sums(values, 0, 0, n_replicates))
    found = monte_carlo_interval(values, n_replicates, level=0.9)
    assert (found.low, found.high) == (drawn[1] / 4, drawn[-2] / 4)  # 5 % of 40 are 2
    found = monte_carlo_interval(values, 1, level=0.9)
    assert found.low == found.high == sums(values, 0, 0, 1)[0] / 4


def test_interval__lattice_means_are_correctly_rounded():
    found = monte_carlo_interval([0.1, 0.2, 0.3], FEW)
    tenths = {round(k / 30, 15) for k in range(3, 10)}
    assert {round(found.low, 15), round(found.high, 15)} <= tenths
    assert monte_carlo_interval([0.1, 0.3], 200, level=0.999).low == 0.1


@COMPILED
@pytest.mark.parametrize("kind", ["trinomial", "irrational", "skewed"])
def test_interval__exact_one_is_within_its_error(kind):
    rng = np.random.default_rng(5)
    values = {
        "trinomial": rng.integers(-1, 2, 300) + 0.0,
        "irrational": np.sqrt(rng.random(300)),
        "skewed": np.exp(rng.normal(size=300)),
    }[kind]
    exact, found = mean_interval(values), monte_carlo_interval(values, 100_000, 1, threads=2)
    error = values.std() / 300**0.5 * quantile_error(0.025, 100_000) / 0.0584
    if kind == "trinomial":
        error += 1 / 300
    assert abs(found.low - exact.low) <= error
    assert abs(found.high - exact.high) <= error


@COMPILED
@pytest.mark.parametrize("n", [1_000, 100_000])
@pytest.mark.parametrize("kind", ["P@5", "few irrational"])
def test_exact__is_within_the_error_of_a_million_resamples(kind, n):
    """Drawn by NumPy, as counts of the distinct values."""
    kinds = np.arange(6) / 5 if kind == "P@5" else np.cbrt([0.0, 0.1, 0.5, 0.9, 2.0])
    values = kinds[np.random.default_rng(n).integers(0, kinds.size, n)]
    found = mean_interval(values)
    means = multinomial_means(values, 1_000_000, 3)
    error, slack = quantile_error(0.025, means.size), found.bound + 1e-12
    assert np.mean(means <= found.low + slack) >= 0.025 - error
    assert np.mean(means < found.low - slack) < 0.025 + error
    assert np.mean(means >= found.high - slack) >= 0.025 - error
    assert np.mean(means > found.high + slack) < 0.025 + error


@COMPILED
@pytest.mark.parametrize("n", [6_000, 20_000])
def test_exact__with_outliers_is_within_the_error_of_resamples(n):
    """Bins that follow the values: 99.9 % of them lie in a thousandth of the range."""
    values = np.exp(2.5 * np.random.default_rng(n).normal(size=n))
    found = mean_interval(values)
    assert found.method.startswith("exact±")
    drawn = np.empty(20_000)
    with np.errstate(over="ignore"):
        resampled_sums(values, 1, 0, drawn)
    drawn /= n
    error = quantile_error(0.025, drawn.size)
    assert np.mean(drawn <= found.low) == pytest.approx(0.025, abs=error)
    assert np.mean(drawn >= found.high) == pytest.approx(0.025, abs=error)


# --- the fallback


@COMPILED
def test_fallback__is_labelled_and_can_be_drawn_again(monkeypatch):
    values = np.sqrt(np.random.default_rng(0).random(100))
    exact = mean_interval(values)
    monkeypatch.setattr(resample, "MAX_DOUBT", 0.0)
    monkeypatch.setattr(monte_carlo, "REPLICATES", 4_000)
    found = mean_interval(values)
    assert found.method == "monte-carlo(4000, 0)"
    assert found.bound == math.inf
    assert found == interval_of(histogram(values)) == monte_carlo_interval(values, 4_000)
    assert found.low == pytest.approx(exact.low, abs=0.02)
    wider = interval_at(values, 0.01, 0.2)
    assert wider.low < found.low < wider.high < found.high
    assert mean_interval([0.0, 1.0, 2.0]).method == "exact"


def test_fallback__draws_fewer_replicates_of_many_cases():
    assert fallback_replicates(100) == 100_000
    assert fallback_replicates(100_000) == 20_000
    assert fallback_replicates(10**9) == 1_000


@COMPILED
@pytest.mark.parametrize("n", [1_000, 30_000])
@pytest.mark.parametrize("kind", ["outlier", "outliers", "cauchy", "pareto", "narrow"])
def test_fallback__is_not_needed_by_hostile_samples(kind, n):
    rng = np.random.default_rng(n)
    values = rng.random(n)
    if kind.startswith("outlier"):
        values[: 1 if kind == "outlier" else 20] += 1e4
    values = {"cauchy": rng.standard_cauchy(n), "pareto": rng.pareto(0.5, n)}.get(kind, values)
    if kind == "narrow":
        values = np.where(np.arange(n) == 0, 1.0, 0.5 + 1e-3 * values)
    found = mean_interval(values)
    assert found.method.startswith("exact±")
    assert found.bound <= 0.01 * (found.high - found.low)


def test_exponential__keeps_the_label():
    drawn = monte_carlo_interval([0.0, 0.3, 1.1], 100)
    found = exponential(drawn)
    assert (found.method, found.bound) == (drawn.method, math.inf)
    assert found.low == math.exp(drawn.low)


# --- degenerate and hostile input


def test_interval__of_equal_values_and_of_none_draws_nothing():
    assert monte_carlo_interval([2.5] * 3).method == "exact"
    assert monte_carlo_interval([2.5] * 3).low == 2.5
    assert math.isnan(monte_carlo_interval([]).low)
    assert monte_carlo_interval([]).method == ""


def test_interval__great_magnitudes():
    plain = monte_carlo_interval([1.0, math.pi, -math.e, 0.1], FEW)
    values = [1e300, 1e300 * math.pi, -1e300 * math.e, 1e299]
    found = monte_carlo_interval(values, FEW)
    assert (found.low, found.high) == pytest.approx((plain.low * 1e300, plain.high * 1e300))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"replicates": 0}, "replicates is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "seed is 9223372036854775808"),
        ({"level": 1.0}, "level is 1.0"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_interval__rejects_parameters_out_of_range(parameters, message):
    with pytest.raises(ValueError, match=message):
        monte_carlo_interval([0.0, 1.0], **parameters)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_interval__rejects_what_is_not_finite(bad):
    with pytest.raises(ValueError, match="finite"):
        monte_carlo_interval([0.0, bad])
