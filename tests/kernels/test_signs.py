"""The exact sign-flip test, against enumeration, integers and other software."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import flip_lists, flip_tails, signs
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.binomial import LEAST_P, SignTest, mcnemar
from ragcore_kernels.lattice import Sample, distinct
from ragcore_kernels.monte_carlo import monte_carlo_signs
from ragcore_kernels.signs import sign_flip
from reference_signs import SETS, counted, enumerated, floats, folded, gains, listed, ranks

settings.register_profile("derandomised", derandomize=True, deadline=None, max_examples=60)
PROFILE = settings.get_profile("derandomised")
COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")


def near(wanted, rel):
    return pytest.approx(float(wanted), rel=rel, abs=0)


# --- against exact results


def test_sign_flip__one_win_in_twelve():
    found = sign_flip([0.0] * 11 + [1.0])
    assert (found.p_value, found.method, found.bound) == (1.0, "exact", 0.0)
    assert (found.n, found.n_nonzero) == (12, 1)


@pytest.mark.parametrize("name", SETS)
def test_sign_flip__equals_enumeration(name):
    rng = np.random.default_rng(len(name))
    for n in [1, 2, 3, 4, 5, 6, 7, 8, 8, 11]:
        values = [Fraction(SETS[name][i]) for i in rng.integers(0, len(SETS[name]), n)]
        found = sign_flip(floats(values))
        assert found.p_value == pytest.approx(float(enumerated(values)), abs=2e-16), values
        assert (found.method, found.bound) == ("exact", 0.0)
        assert (found.n, found.n_nonzero) == (n, sum(v != 0 for v in values))


def test_sign_flip__decimals_stand_for_the_rationals_meant():
    noisy = [0.1 + 0.2, -0.3, 0.1, -0.2 + 0.1, 0.1 + 0.2 - 0.3, 0.7 - 0.6]
    meant = [Fraction(n, 10) for n in (3, -3, 1, -1, 0, 1)]
    found = sign_flip(noisy)
    assert found.p_value == float(enumerated(meant))
    assert found.n_nonzero == 5
    assert sign_flip([0.1, 0.1 + 1e-17, 0.3 - 0.2, -0.1]) == sign_flip([1.0, 1.0, 1.0, -1.0])


def test_sign_flip__equals_the_sign_test_where_it_is_one():
    for wins, losses, ties in [(9, 2, 5), (0, 4, 0), (600, 500, 17)]:
        values = np.repeat([0.3, -0.3, 0.0], [wins, losses, ties])
        found, wanted = sign_flip(values), mcnemar(wins, losses)
        assert (found.p_value, found.mid_p, found.n) == (wanted.p_value, wanted.mid_p, values.size)


@COMPILED
def test_sign_flip__equals_scipy_by_chance_and_in_full():
    stats = pytest.importorskip("scipy.stats")

    def other(values, draws):
        return stats.permutation_test(
            (values,), np.sum, permutation_type="samples", vectorized=True, n_resamples=draws,
            rng=np.random.default_rng(1),
        ).pvalue  # fmt: skip

    for values in (gains(12, 1), ranks(12, 3) / 2520, np.array([0.1, 0.3, -0.2, 0.5, 0.5])):
        assert sign_flip(values).p_value == near(other(values, np.inf), 1e-12)
    for values in (gains(150, 3), ranks(200, 4) / 2520, gains(5_000, 5)):
        p = sign_flip(values).p_value
        assert other(values, 9_999) == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 9_999))


# --- off a lattice


@pytest.mark.parametrize("n", [2, 3, 4, 7, 11, 16])
def test_sign_flip__small_irrational_samples_are_exact(n):
    for seed in range(4):
        values = np.cbrt(np.random.default_rng(seed).random(n)) - 0.6
        found = sign_flip(values)
        assert found.p_value == listed(values)
        assert found.method == "exact"


def test_sign_flip__irrational_ties_count():
    root = math.sqrt(2)
    values = [root, 1.0, 1.0, -root, math.pi, 0.3 * root, 0.3 * root]
    assert sign_flip(values).p_value == listed(values)
    values = [math.pi, math.e, -math.pi, -math.e]
    assert sign_flip(values).p_value == 1.0


@COMPILED
@pytest.mark.parametrize("sizes", [(300, 200), (70, 60, 50), (20, 15, 3, 2, 1)])
def test_sign_flip__few_irrational_magnitudes_are_exact(sizes):
    rng = np.random.default_rng(3)
    roots = np.repeat(np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0])[: len(sizes)], sizes)
    values = roots * rng.choice([-1, 1, 1], roots.size)
    found = sign_flip(values)
    points = np.rint(values * 2**12).astype(np.int64)
    assert found.method == "exact"
    assert found.p_value == pytest.approx(folded(points), rel=0.02)


# --- small p-values


def test_sign_flip__is_never_0():
    assert sign_flip(np.arange(1.0, 31.0)).p_value == 2.0**-29
    assert sign_flip(np.sqrt(np.arange(2.0, 32.0))).p_value == 2.0**-29
    found = sign_flip(np.tile([0.1, 0.2, 0.4], 2_000))
    assert (found.p_value, found.method, found.bound) == (LEAST_P, "exact<", 0.0)
    found = sign_flip(np.sqrt(np.arange(1.0, 3_000.0)))
    assert (found.p_value, found.method) == (LEAST_P, "exact<")


# --- properties

lattice_values = st.lists(st.integers(-5, 5), min_size=1, max_size=24)
any_values = st.lists(st.floats(-1.0, 1.0, width=32), min_size=1, max_size=9)
either = st.one_of(lattice_values, any_values)


@given(either)
@settings(PROFILE)
def test_sign_flip__of_negated_values_is_the_same(values):
    assert sign_flip([-v for v in values]) == sign_flip(values) or not np.any(values)


@given(either, st.randoms(use_true_random=False))
@settings(PROFILE)
def test_sign_flip__is_unchanged_by_order(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert repr(sign_flip(shuffled)) == repr(sign_flip(values))


@given(lattice_values, st.sampled_from([0.5, 3.0, 0.1, 1e-9, 1e12, 1e300, 1e-300]))
@settings(PROFILE)
def test_sign_flip__is_unchanged_by_scale(values, scale):
    found, scaled = sign_flip(values), sign_flip([v * scale for v in values])
    assert scaled.p_value == near(found.p_value, 1e-12)
    assert scaled.n_nonzero == found.n_nonzero


@given(either, st.integers(0, 5))
@settings(PROFILE)
def test_sign_flip__zeros_drop_out(values, zeros):
    found, more = sign_flip(values), sign_flip(list(values) + [0.0] * zeros)
    assert more.p_value == found.p_value
    assert (more.n, more.n_nonzero) == (found.n + zeros, found.n_nonzero)


@given(either)
@settings(PROFILE)
def test_sign_flip__is_a_probability_and_no_less_than_its_own_outcome(values):
    found = sign_flip(values)
    assert 2.0 ** -(found.n_nonzero or 1) <= found.p_value <= 1


@COMPILED
@pytest.mark.parametrize("n", [50, 500, 9_000])
def test_sign_flip__same_bits_in_any_order_and_on_two_threads(n):
    rng = np.random.default_rng(n)
    samples = [gains(n, 1), gains(n, 2, 0.1), ranks(n, 3) / 2520, ranks(n, 4, 4) / 2520]
    alone = [sign_flip(sample) for sample in samples]
    assert [sign_flip(rng.permutation(sample)) for sample in samples] == alone
    assert [sign_flip(-sample).p_value for sample in samples] == [one.p_value for one in alone]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(sign_flip, samples * 4)) == alone * 4


@COMPILED
@pytest.mark.parametrize("n", [30, 3_000, 20_000])
def test_sign_flip__of_a_sample_at_hand_is_the_same(n):
    for values in (ranks(n, 1) / 2520, gains(n, 2), np.clip(gains(n, 3) * 1.7, -1, 1)):
        assert sign_flip(values, distinct(values)) == sign_flip(values)


# --- hostile input


def test_sign_flip__of_nothing_is_nan():
    found = sign_flip([])
    assert math.isnan(found.p_value)
    assert (found.method, found.n, found.n_nonzero) == ("", 0, 0)


@pytest.mark.parametrize("values", [[0.0], [0.0, -0.0, 0.0], [3.0], [-5e-324], [1e308, 0.0]])
def test_sign_flip__without_two_differences_is_1(values):
    found = sign_flip(values)
    assert (found.p_value, found.method, found.n) == (1.0, "exact", len(values))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_sign_flip__rejects_what_is_not_finite(bad):
    for values in ([0.0, bad, 1.0], [0.0, bad], [1.0, bad, 1.0]):
        with pytest.raises(ValueError, match=r"differences\[1\] is"):
            sign_flip(values)
    with pytest.raises(ValueError, match="finite"):
        sign_flip([bad, bad])


def test_sign_flip__rejects_shape():
    with pytest.raises(ValueError, match="one dimension"):
        sign_flip([[0.0, 1.0]])
    with pytest.raises(ValueError, match="one dimension"):
        sign_flip(1.0)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-160, 1e160, 2e307])
def test_sign_flip__great_magnitudes_and_subnormals(scale):
    points = [1, -2, 3, 5, 5, 8, -1, 0]
    found = sign_flip([p * scale for p in points])
    assert found.p_value == near(counted(points), 1e-12)
    assert found.n_nonzero == 7


def test_sign_flip__magnitudes_far_apart():
    values = [1.0, 1e-3, -1e-9, 1e-11, 1e-20]
    assert sign_flip(values).p_value == listed(values[:4])
    values = [1e300, 1.0, -1.0]
    assert sign_flip(values).p_value == 1.0


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__have_one_specialisation():
    for values in (
        gains(30, 1), gains(90, 1), gains(6_000, 1, 0.2), ranks(400, 1) / 2520,
        ranks(900, 1, 5) / 2520, np.array([1, -2, 3]), [True, False], [1e-320, 3e-320],
    ):  # fmt: skip
        sign_flip(values)
    for module in (signs, flip_tails, flip_lists):
        for name, value in vars(module).items():
            if hasattr(value, "py_func"):
                assert compiled_count(value) <= 1, name


def test_sample__with_bins_is_not_used_for_values():
    values = np.array([0.25, 0.5, -0.75])
    binned = Sample(np.array([0.1]), np.array([3]), 0.01)
    assert sign_flip(values, binned) == sign_flip(values)
    assert isinstance(sign_flip(values), SignTest)


# --- beyond the certificate


@COMPILED
def test_fallback__is_labelled_and_the_same_for_any_threads():
    values = np.random.default_rng(3).standard_cauchy(100_000) * 1e3
    found = sign_flip(values)
    assert found.method == "monte-carlo(20000, 0)"
    assert math.isinf(found.bound)
    magnitudes = np.sort(np.abs(values))
    for threads in (1, 2, 5):
        p = monte_carlo_signs(magnitudes, values.sum(), 20_000, 0, threads)
        assert p == found.p_value
    assert monte_carlo_signs(magnitudes, values.sum(), 20_000, 1) != found.p_value


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [0.5, 0.5, 1.5, -2.0], [3.0, -3.0]])
def test_random_signs__approach_the_exact_p(values):
    exact = sign_flip(values).p_value
    drawn = monte_carlo_signs(np.sort(np.abs(values)), sum(values), 3_000)
    assert abs(drawn - exact) < 4 * math.sqrt(exact * (1 - exact) / 3_000) + 1 / 3_000
    assert monte_carlo_signs(np.array([1e9]), 1e10, 50) == 1 / 51  # never 0
