"""The exact sign-flip test, against enumeration, integers and other software."""

from __future__ import annotations

import math
import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import flip_lists, flip_tails, signs
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.binomial import LEAST_P, SignTest, mcnemar
from ragcore_kernels.flip_tails import lattice_tail, real_tail
from ragcore_kernels.lattice import Sample, distinct
from ragcore_kernels.signs import sign_flip
from reference_signs import added, counted, enumerated, folded, listed

settings.register_profile("derandomised", derandomize=True, deadline=None, max_examples=60)
PROFILE = settings.get_profile("derandomised")
COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")

SETS = {
    "signs": [-1, 0, 1],
    "tenths": [Fraction(-3, 10), Fraction(-1, 10), 0, Fraction(1, 10), Fraction(7, 10)],
    "thirds": [Fraction(-1, 3), Fraction(1, 3), Fraction(1, 2), 1],
    "sixths": [Fraction(5, 6), Fraction(-1, 6)],
    "skewed": [0, Fraction(1, 7), 13],
    "reciprocal": [0] + [s * Fraction(1, rank) for rank in range(1, 11) for s in (-1, 1)],
    "odd": [-3, 5, 7],
}


def floats(values):
    return np.array([float(v) for v in values])


def near(wanted, rel):
    return pytest.approx(float(wanted), rel=rel, abs=0)


def ranks(n, seed, shift=0):
    """Differences of reciprocal ranks at 10, in 2520ths; `shift` makes one system worse."""
    rng = np.random.default_rng(seed)
    points = np.array([2520 // r for r in range(1, 11)] + [0] * 4)
    mine = points[rng.integers(0, 14, n)]
    other = np.where(rng.random(n) < 0.3, mine, points[rng.integers(shift, 14, n)])
    return mine - other


def gains(n, seed, shift=0.0):
    """Differences of nDCG@10, irrational, some of them 0."""
    rng = np.random.default_rng(seed)
    discount = 1 / np.log2(np.arange(2, 12))
    ideal = np.cumsum(discount)

    def one(share):
        found = rng.random((n, 10)) < share
        return found @ discount / ideal[np.maximum(found.sum(1), 1) - 1]

    return np.where(rng.random(n) < 0.3, 0.0, one(0.25 + shift) - one(0.25))


def aligned(points):
    """Magnitudes, counts and outcome of whole differences."""
    sizes, counts = np.unique(np.abs(points[points != 0]), return_counts=True)
    return sizes, counts.astype(np.int64), int(abs(points.sum()))


def by_transform(monkeypatch):
    """No lists: every lattice goes to the transform."""
    for name in ("_FEW_STEPS", "_SHORT_HALVED", "_SHORT_GROUP"):
        monkeypatch.setattr(flip_tails, name, -1)
    plain = flip_tails._transformed
    monkeypatch.setattr(flip_tails, "_transformed", lambda *a: plain(*a[:5], math.inf))
    monkeypatch.setattr(flip_tails, "subset_tail", None)


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


@pytest.mark.parametrize("name", SETS)
def test_transform__equals_enumeration(name, monkeypatch):
    by_transform(monkeypatch)
    rng = np.random.default_rng(len(name))
    for n in [2, 3, 5, 8, 8, 11]:
        values = [Fraction(SETS[name][i]) for i in rng.integers(0, len(SETS[name]), n)]
        found = sign_flip(floats(values))
        assert found.p_value == pytest.approx(float(enumerated(values)), abs=5e-15), values
        assert found.method == "exact"


def test_sign_flip__decimals_stand_for_the_rationals_meant():
    noisy = [0.1 + 0.2, -0.3, 0.1, -0.2 + 0.1, 0.1 + 0.2 - 0.3, 0.7 - 0.6]
    meant = [Fraction(n, 10) for n in (3, -3, 1, -1, 0, 1)]
    found = sign_flip(noisy)
    assert found.p_value == float(enumerated(meant))
    assert found.n_nonzero == 5
    assert sign_flip([0.1, 0.1 + 1e-17, 0.3 - 0.2, -0.1]) == sign_flip([1.0, 1.0, 1.0, -1.0])


@pytest.mark.parametrize("lean", [0.5, 0.6, 0.8, 0.97])
@pytest.mark.parametrize("name", ["tenths", "skewed", "odd", "sixths"])
@pytest.mark.parametrize("way", ["plain", "transform"])
def test_sign_flip__equals_integers(name, lean, way, monkeypatch):
    if way == "transform":
        by_transform(monkeypatch)
    rng = np.random.default_rng(7)
    scale = math.lcm(*(Fraction(v).denominator for v in SETS[name]))
    sizes = np.array([int(abs(v) * scale) for v in SETS[name]])
    for n in [20, 60, 200] if JIT else [20, 60]:
        points = sizes[rng.integers(0, len(sizes), n)] * np.where(rng.random(n) < lean, 1, -1)
        found = sign_flip(points / scale)
        wanted = counted(points.tolist())
        assert found.p_value == near(wanted, 1e-12), (n, float(wanted))
        assert found.method == "exact"


@COMPILED
@pytest.mark.parametrize("shift", [0, 2, 5, 9])
@pytest.mark.parametrize("n", [30, 100, 300, 1_000])
def test_sign_flip__reciprocal_ranks_equal_a_sum_of_positive_terms(n, shift, monkeypatch):
    points = ranks(n, n, shift)
    wanted = added(points)
    assert wanted > 0
    assert sign_flip(points / 2520).p_value == near(wanted, 1e-10)
    by_transform(monkeypatch)
    assert sign_flip(points / 2520).p_value == near(wanted, 1e-10)


@COMPILED
@pytest.mark.parametrize("n", [2_000, 7_000])
def test_sign_flip__reciprocal_ranks_equal_a_full_transform(n):
    points = ranks(n, n)
    found = sign_flip(points / 2520)
    assert found.p_value == pytest.approx(folded(points), abs=1e-11)
    assert found.method == "exact"


def test_transform__cosines_near_zero_keep_their_digits(monkeypatch):
    by_transform(monkeypatch)
    for great in (500, 501, 777, 1_000):  # one value alone makes a factor vanish in between
        points = np.array([1, 2] * 30 + [great, -great // 3])
        assert sign_flip(points * 1.0).p_value == near(counted(points.tolist()), 1e-11)


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


@COMPILED
@pytest.mark.parametrize("shift", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("n", [60, 150, 500, 2_500])
def test_bracket__holds_the_p_value_of_a_fine_lattice(n, shift):
    points = np.rint(gains(n, n, shift) * 2**13).astype(np.int64)
    sizes, counts, t = aligned(points)
    gap = float(sizes @ counts - t)
    p, bound = flip_tails._bracket(sizes.astype(float), counts, float(t), gap)
    wanted = added(points) if n <= 150 else folded(points)
    assert abs(p - wanted) <= bound + 1e-12
    assert 0 < bound <= max(2e-4 * min(1, 60 * p), 1e-12)


@COMPILED
def test_bracket__holds_the_p_value_of_integers_at_any_size():
    for lean, n in [(0.5, 50), (0.7, 60), (0.9, 70), (0.97, 90), (1.0, 60), (0.8, 400)]:
        rng = np.random.default_rng(n)
        points = rng.integers(1, 400, n) * np.where(rng.random(n) < lean, 1, -1)
        points[:2] = 399, -1
        sizes, counts, t = aligned(points)
        wanted = added(points)
        p, bound = flip_tails._bracket(
            sizes.astype(float), counts, float(t), float(sizes @ counts - t)
        )
        assert abs(p - wanted) <= bound
        assert p > 0
        p, bound = flip_tails._bracket(
            sizes.astype(float), counts, t - 1.0, float(sizes @ counts - t + 1)
        )
        assert abs(p - wanted) <= bound


@COMPILED
def test_bracket__is_small_and_printed_upwards():
    for n, most in [(100, 2e-4), (300, 3e-5), (1_000, 2e-5), (10_000, 1e-4), (60_000, 1e-4)]:
        found = sign_flip(gains(n, 1))
        assert 0 < found.bound <= most
        assert re.fullmatch(r"exact±\de-\d\d", found.method)
        assert found.bound <= float(found.method[6:]) < 2.01 * found.bound


@COMPILED
def test_bracket__many_distinct_values_agree_with_a_fine_lattice():
    for n, scale in [(20_000, 0.02), (20_000, 0.0), (50_000, 0.03)]:
        rng = np.random.default_rng(n)
        values = rng.standard_normal(n) + scale
        points = np.rint(values * 2**9).astype(np.int64)
        found = sign_flip(values)
        near_by = sign_flip(points / 2**9)
        assert near_by.method == "exact"
        assert found.method.startswith("exact±")
        error = near_by.p_value * (1 + scale * n**0.5) / 2**9  # what rounding does to the sum
        assert abs(found.p_value - near_by.p_value) <= found.bound + error


@COMPILED
def test_lattice__too_fine_for_the_transform_is_bracketed_or_listed():
    rng = np.random.default_rng(2)
    for n in (35, 60, 300):
        points = rng.integers(1, 1 << 22, n) * rng.choice([-1, 1], n)
        sizes, counts, t = aligned(points)
        p, bound = lattice_tail(sizes, counts, t)
        q, other = real_tail(sizes.astype(float), counts, float(t))
        assert abs(p - q) <= bound + other + 1e-12
        assert (bound == 0) == (n <= 40)


# --- small p-values


def test_sign_flip__is_never_0():
    assert sign_flip(np.arange(1.0, 31.0)).p_value == 2.0**-29
    assert sign_flip(np.sqrt(np.arange(2.0, 32.0))).p_value == 2.0**-29
    found = sign_flip(np.tile([0.1, 0.2, 0.4], 2_000))
    assert (found.p_value, found.method, found.bound) == (LEAST_P, "exact<", 0.0)
    found = sign_flip(np.sqrt(np.arange(1.0, 3_000.0)))
    assert (found.p_value, found.method) == (LEAST_P, "exact<")


@COMPILED
def test_sign_flip__tiny_p_values_have_their_digits():
    for n, lean in [(400, 0.8), (700, 0.85), (900, 0.87), (990, 0.999), (1_500, 0.7)]:
        rng = np.random.default_rng(n)
        points = rng.integers(1, 6, n) * np.where(rng.random(n) < lean, 1, -1)
        wanted = counted(points.tolist())
        assert 1e-300 < wanted < 1e-20
        assert sign_flip(points / 5).p_value == near(wanted, 1e-9), (n, float(wanted))


@COMPILED
def test_sign_flip__irrational_tiny_p_values_are_near():
    points = np.rint(gains(300, 8, 0.3) * 2**12).astype(np.int64)
    wanted = added(points)
    assert wanted < 1e-15
    sizes, counts, t = aligned(points)
    p, bound = real_tail(sizes.astype(float), counts, float(t))
    assert bound < 5e-2 * p
    assert abs(p - wanted) <= bound


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


# --- parts


@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_signed_sums__are_all_and_in_order(m):
    values = np.random.default_rng(m).random(m)
    sums, more = np.empty(1 << m), np.empty(1 << m)
    flip_lists.signed_sums(values, sums, more)
    wanted = np.zeros(1)
    for value in values:
        wanted = np.concatenate([wanted - value, wanted + value])
    assert sums == pytest.approx(np.sort(wanted), abs=1e-14)
    assert (np.diff(sums) >= 0).all()
    for least in (-9.0, -0.3, 0.0, 0.3, 9.0):
        pairs = (sums[:, None] + sums >= least).sum()
        assert flip_lists.count_pairs(sums, sums, least) == pairs


@COMPILED
def test_scan__misses_no_frequency_that_matters():
    rng = np.random.default_rng(0)
    for kinds, period in [(3, 4_001), (10, 60_001), (40, 250_001)]:
        x = np.sort(rng.choice(np.arange(1, 900), kinds, replace=False)).astype(float)
        p = rng.dirichlet(np.ones(kinds))
        sums = sum(w * np.cos(2 * np.pi * np.arange(period // 2 + 1) * v / period)
                   for w, v in zip(p, x, strict=True))  # fmt: skip
        variance = float(p @ (x * x))
        for floor in (0.2, 0.5, 0.8):
            cell = int(0.9 * period / (math.tau * variance**0.5))
            runs, out = np.empty((2, 8_192), np.int64), np.empty(3, np.int64)
            flip_tails.scan_cosines(
                x, p, float(period), np.array([variance, 0.0]), cell, period // 2, floor,
                period, runs, out,
            )  # fmt: skip
            assert out[2] == period // 2
            taken = np.zeros(period // 2 + 2, bool)
            for first, length in runs[:, : out[0]].T:
                taken[first : first + length] = True
            assert taken[1:].sum() == out[1]
            assert taken[1:-1][sums[1:] >= floor].all()


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__have_one_specialisation():
    for values in (gains(30, 1), gains(90, 1), gains(6_000, 1, 0.2), ranks(400, 1) / 2520,
                   ranks(900, 1, 5) / 2520, np.array([1, -2, 3]), [True, False], [1e-320, 3e-320]):  # fmt: skip
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
