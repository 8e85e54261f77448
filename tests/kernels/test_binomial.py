"""Binomial probabilities and their intervals, against fractions and scipy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels._jit import JIT
from ragcore_kernels.binomial import (
    LEAST_P,
    binomial_mass,
    binomial_masses,
    binomial_tail,
    clopper_pearson,
    mcnemar,
    wilson,
)
from ragcore_kernels.order_statistics import TOO_FEW, quantile_interval, quantile_ranks
from reference_signs import binomial

COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")
LEVELS = [0.5, 0.9, 0.95, 0.999]


def near(wanted, rel):
    return pytest.approx(float(wanted), rel=rel, abs=0)


# --- probabilities


@pytest.mark.parametrize("p", ["1/2", "1/3", "1/1000", "19/20", "99/100"])
@pytest.mark.parametrize("n", [1, 2, 7, 15, 16, 17, 40, 121])
def test_binomial__equals_fractions(n, p):
    share = Fraction(p)
    args = (n, float(share), float(1 - share))
    for k in range(n + 1):
        mass, tail = binomial(k, n, share)
        if mass > Fraction(1, 10**290):
            rel = 4e-15 - 4e-16 * math.log(mass)
            assert binomial_mass(k, *args) == near(mass, rel)
        if k >= n * share and tail > Fraction(1, 10**290):
            rel = 4e-15 - 4e-16 * math.log(tail)
            assert binomial_tail(k, *args) == near(tail, rel)
        else:
            assert binomial_tail(k, *args) == pytest.approx(float(tail), abs=1e-15)
    assert binomial_tail(n + 1, *args) == 0.0


@pytest.mark.parametrize(("k", "n"), [(520, 1_000), (1_000, 1_000), (900, 1_000), (1_400, 2_000)])
def test_binomial__far_tails_keep_relative_accuracy(k, n):
    mass, tail = binomial(k, n, Fraction(1, 2))
    assert binomial_mass(k, n, 0.5, 0.5) == near(mass, 2e-13)
    assert binomial_tail(k, n, 0.5, 0.5) == near(tail, 2e-13)


def test_binomial__masses_around_the_mean_have_fifteen_digits():
    for n in (1_000, 100_000):
        for k in (n // 2, n // 2 + 30):
            wanted = Fraction(math.comb(n, k), 1 << n)
            assert binomial_mass(k, n, 0.5, 0.5) == near(wanted, 3e-15)


def test_binomial__masses_add_up_to_1():
    out = np.empty(3_001)
    binomial_masses(3_000, 0.3, 0.7, out)
    assert math.fsum(out) == pytest.approx(1, abs=1e-13)
    assert out[900] == binomial_mass(900, 3_000, 0.3, 0.7)


# --- proportions


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [1, 2, 3, 12, 50, 200, 1_000, 100_000])
def test_clopper_pearson__equals_scipy(n, level):
    special = pytest.importorskip("scipy.special")
    share = (1 - level) / 2
    for k in sorted({0, 1, 2, n // 10, n // 3, n // 2, n - 1, n} & set(range(n + 1))):
        low, high = clopper_pearson(k, n, level)
        assert low == (near(special.betaincinv(k, n - k + 1, share), 1e-13) if k else 0.0)
        if k == n:
            assert high == 1.0
        else:
            assert 1 - high == pytest.approx(special.betaincinv(n - k, k + 1, share), abs=1e-13)
            assert high == near(special.betainccinv(k + 1, n - k, share), 2e-12)  # scipy errs


@pytest.mark.parametrize("method", ["exact", "wilson"])
@pytest.mark.parametrize("level", LEVELS)
def test_proportions__equal_binomtest(level, method):
    stats = pytest.importorskip("scipy.stats")
    for k, n in [(0, 12), (1, 12), (12, 12), (7, 30), (640, 1_000), (3, 7_000)]:
        wanted = stats.binomtest(k, n).proportion_ci(level, method)
        found = clopper_pearson(k, n, level) if method == "exact" else wilson(k, n, level)
        assert found == pytest.approx(tuple(wanted), abs=4e-12)  # scipy's own search stops there


def test_clopper_pearson__golden():
    assert clopper_pearson(0, 12)[1] == pytest.approx(0.2646, abs=5e-5)
    assert clopper_pearson(0, 1) == pytest.approx((0, 0.975))
    assert clopper_pearson(1, 1) == pytest.approx((0.025, 1))


@COMPILED
@given(
    st.integers(1, 2_000_000), st.data(), st.sampled_from([0.01, 0.5, 0.95, 1 - 1e-9, 1 - 1e-15])
)
@settings(max_examples=300)
def test_clopper_pearson__ends_leave_their_share(n, data, level):
    k = data.draw(st.integers(0, n) | st.integers(0, min(n, 5)))
    low, high = clopper_pearson(k, n, level)
    share = (1 - level) / 2
    assert 0 <= low < high <= 1
    if k > 0:
        assert binomial_tail(k, n, low, 1 - low) == near(share, 1e-9)
    if k < n and 1 - high > 1e-3:
        assert binomial_tail(n - k, n, 1 - high, high) == near(share, 1e-9)
    mirrored = clopper_pearson(n - k, n, level)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-14)


def test_wilson__takes_fractions_and_stays_inside():
    low, high = wilson(3.25, 10)
    assert wilson(3, 10)[0] < low < 0.325 < high < wilson(4, 10)[1]
    assert wilson(0, 5)[0] == 0.0
    assert wilson(5, 5)[1] == 1.0
    assert wilson(1e-300, 10)[0] >= 0.0


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
def test_proportions__without_trials_are_nan(interval):
    assert all(math.isnan(end) for end in interval(0, 0))


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
def test_proportions__reject(interval):
    for k, n, level, text in [
        (3, 2, 0.95, "k is 3"), (-1, 2, 0.95, "k is -1"), (1, -2, 0.95, "n is -2"),
        (1, 2.5, 0.95, "n is 2.5"), (1, 2, 1.0, "level is 1.0"), (1, 2, math.nan, "level is nan"),
        (1, 2, 95, "level is 95"), (math.nan, 2, 0.95, "k is nan"), (1, 2**60, 0.95, "n is"),
        (1, math.nan, 0.95, "n is nan"), (1, math.inf, 0.95, "n is inf"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=text):
            interval(k, n, level)
    with pytest.raises(ValueError, match="whole"):
        clopper_pearson(1.5, 2)


# --- wins against losses


@pytest.mark.parametrize("m", [1, 2, 3, 11, 40])
def test_mcnemar__equals_fractions(m):
    for wins in range(m + 1):
        mass, tail = binomial(max(wins, m - wins), m, Fraction(1, 2))
        found = mcnemar(wins, m - wins)
        assert found.p_value == near(min(1, 2 * tail), 1e-14)
        assert found.mid_p == near(2 * tail - mass, 1e-14)
        assert (found.method, found.bound, found.n, found.n_nonzero) == ("exact", 0.0, m, m)


def test_mcnemar__equals_scipy():
    stats = pytest.importorskip("scipy.stats")
    for wins, losses in [(30, 12), (5_000, 5_200), (0, 900), (340, 1_234)]:
        wanted = stats.binomtest(wins, wins + losses).pvalue
        assert mcnemar(wins, losses).p_value == near(wanted, 1e-11)


def test_mcnemar__without_discordant_cases_is_1():
    assert mcnemar(0, 0).p_value == mcnemar(0, 0).mid_p == 1.0
    assert mcnemar(1, 0).p_value == 1.0
    assert mcnemar(1, 0).mid_p == 0.5
    assert mcnemar(7, 7).p_value == mcnemar(7, 7).mid_p == 1.0


def test_mcnemar__is_never_0():
    assert mcnemar(900, 0).p_value == near(Fraction(2, 2**900), 1e-13)
    found = mcnemar(10_000, 0)
    assert (found.p_value, found.mid_p, found.method) == (LEAST_P, LEAST_P, "exact<")
    assert mcnemar(0, 10_000) == found
    assert mcnemar(2**40, 2**40 + 2**20).p_value > 0.4


@pytest.mark.parametrize("bad", [-1, 0.5, math.nan, math.inf, 2**70])
def test_mcnemar__rejects_what_is_no_count(bad):
    with pytest.raises(ValueError, match="wins is"):
        mcnemar(bad, 1)
    with pytest.raises(ValueError, match="losses is"):
        mcnemar(1, bad)


# --- quantiles


def test_quantile_ranks__golden():
    found = quantile_ranks(200, 0.95)
    assert (found.rank, found.low, found.high) == (190, 184, 197)
    assert found.coverage == pytest.approx(0.967, abs=5e-4)
    found = quantile_ranks(200, 0.5)
    assert (found.rank, found.low, found.high) == (100, 86, 115)
    assert found.coverage == pytest.approx(0.960, abs=5e-4)


def test_quantile_ranks__upper_end_of_p99_exists_from_299_on():
    assert (quantile_ranks(298, 0.99).high, quantile_ranks(298, 0.99).reason) == (None, TOO_FEW)
    assert (quantile_ranks(299, 0.99).high, quantile_ranks(299, 0.99).reason) == (299, "")
    assert quantile_ranks(59, 0.95).high == 59
    assert quantile_ranks(58, 0.95).high is None
    assert quantile_ranks(299, 0.01).low == 1
    assert quantile_ranks(298, 0.01).low is None
    assert quantile_ranks(5, 0.5) == quantile_ranks(5, 0.5, 0.95)
    assert (quantile_ranks(5, 0.5).low, quantile_ranks(5, 0.5).high) == (None, None)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 2, 5, 9, 30, 77])
def test_quantile_ranks__follow_their_definition(n, p, level):
    share = Fraction(repr(p))
    tails = [binomial(k, n, share)[1] for k in range(n + 1)] + [Fraction(0)]
    alpha = 1 - Fraction(repr(level))
    highs = [s for s in range(1, n + 1) if tails[s] <= alpha / 2]
    lows = [r for r in range(1, n + 1) if 1 - tails[r] <= alpha / 2]
    found = quantile_ranks(n, p, level)
    if highs and lows:
        assert (found.low, found.high) == (max(lows), min(highs))
    elif tails[n] + 1 - tails[1] <= alpha:
        assert found.low
        assert found.high
        assert found.high == n or found.low == 1
    else:
        assert (found.low, found.high) == (max(lows, default=None), min(highs, default=None))
    covered = (tails[found.low] if found.low else 1) - (tails[found.high] if found.high else 0)
    assert found.coverage == near(covered, 1e-13)
    assert found.coverage >= level - 1e-12
    assert found.rank == -(-share * n // 1)
    mirrored = quantile_ranks(n, 1 - p, level) if p == 0.5 else found
    assert mirrored.coverage == found.coverage


def test_quantile_ranks__a_tie_keeps_the_level():
    assert quantile_ranks(5, 0.5, 1 - 2 * 0.5**5).low == 1
    assert quantile_ranks(100, 0.07).rank == 7  # 0.07 * 100 > 7 in doubles


def test_quantile_interval__reads_the_ranks():
    values = np.random.default_rng(0).permutation(np.arange(1.0, 201.0))
    found = quantile_interval(values, 0.95)
    assert (found.value, found.low, found.high) == (190.0, 184.0, 197.0)
    found = quantile_interval([3.0, 1.0, 2.0], 0.5)
    assert (found.value, found.low, found.high, found.ranks.reason) == (2.0, None, None, TOO_FEW)
    late = np.concatenate([np.arange(290.0), [math.inf] * 10])
    assert quantile_interval(late, 0.99).high == math.inf


def test_quantile_interval__of_nothing_is_nan():
    found = quantile_interval([], 0.5)
    assert math.isnan(found.value)
    assert (found.low, found.high, found.ranks.rank) == (None, None, 0)


def test_quantile_interval__covers_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        found = quantile_interval(rng.random(60), 0.8, 0.9)
        hits += found.low <= 0.8 <= found.high
    assert hits / 400 == pytest.approx(quantile_ranks(60, 0.8, 0.9).coverage, abs=0.05)


def test_quantiles__reject():
    for args, text in [
        ((10, 0.0), "p is 0.0"), ((10, 1.0), "p is 1.0"), ((10, math.nan), "p is nan"),
        ((-1, 0.5), "n is -1"), ((1.5, 0.5), "n is 1.5"), ((10, 0.5, 0), "level is 0"),
        ((math.nan, 0.5), "n is nan"), ((math.inf, 0.5), "n is inf"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=text):
            quantile_ranks(*args)
    with pytest.raises(ValueError, match=r"values\[1\] is nan"):
        quantile_interval([0.0, math.nan, 1.0], 0.5)
    with pytest.raises(ValueError, match="one dimension"):
        quantile_interval([[0.0]], 0.5)
