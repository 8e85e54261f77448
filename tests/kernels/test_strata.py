"""The exact stratified bootstrap interval of a mean, against enumeration and integers."""

from __future__ import annotations

import math
import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import products, strata
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.lattice import distinct
from ragcore_kernels.resample import Interval, mean_interval
from ragcore_kernels.strata import stratified_interval
from reference_clusters import drawn_means, nearest_ends, packed_strata_pmf, strata_pmf

settings.register_profile("derandomised", derandomize=True, deadline=None, max_examples=60)
PROFILE = settings.get_profile("derandomised")
COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")
TARGET = 0.025 * (1 - 1e-12)

SETS = {
    "binary": [0, 1],
    "trinomial": [-1, 0, 1],
    "thirds": [0, Fraction(1, 3), Fraction(1, 2), 1],
    "skewed": [0, 0, 0, Fraction(1, 7), 13],
    "reciprocal": [0] + [Fraction(1, rank) for rank in range(1, 11)],
    "parity": [-2, 0, 0, 3],
}


def joined(parts):
    """Values and codes of strata, interleaved."""
    codes = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    values = np.array([float(v) for part in parts for v in part])
    order = np.random.default_rng(0).permutation(values.size)
    return values[order], codes[order]


def chosen(name, sizes, seed):
    rng = np.random.default_rng(seed)
    kinds = [Fraction(v) for v in SETS[name]]
    return [[kinds[i] for i in rng.integers(0, len(kinds), size)] for size in sizes]


def unusual(n, laws, seed):
    """Irrational values whose law depends on the stratum."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, laws, n)
    return rng.random(n) ** (1 + codes % 3) * (rng.random(n) < 0.8), codes


# --- against exact results


@pytest.mark.parametrize("level", ["0.95", "0.5", "0.9"])
@pytest.mark.parametrize("name", SETS)
def test_interval__equals_enumeration(name, level):
    for seed, sizes in enumerate([(1, 1), (2, 2), (1, 4), (3, 4), (2, 3, 3), (5, 1, 2), (4, 5)]):
        parts = chosen(name, sizes, seed)
        found = stratified_interval(*joined(parts), float(level))
        assert (found.low, found.high) == nearest_ends(strata_pmf(parts), level), parts
        assert found.method == "exact"


@COMPILED
@pytest.mark.parametrize(
    ("points", "denominator"),
    [([0, 1], 1), ([-1, 0, 0, 1], 1), ([0, 1, 2, 3, 4, 5], 5), ([0, 0, 0, 0, 1, 40], 10)],
    ids=["binomial", "trinomial", "P@5", "skewed"],
)
def test_interval__equals_integers(points, denominator):
    rng = np.random.default_rng(3)
    for sizes in [(10, 10), (30, 5, 2), (1, 40, 20), (60, 50), (7,) * 9, (1,) * 20 + (12,)]:
        parts = [np.array(points)[rng.integers(0, len(points), size)].tolist() for size in sizes]
        pmf = {s / denominator: p for s, p in packed_strata_pmf(parts).items()}
        values, codes = joined(parts)
        for level in ["0.95", "0.5", "0.9"]:
            found = stratified_interval(values / denominator, codes, float(level))
            assert (found.low, found.high) == nearest_ends(pmf, level), (sizes, level)


@COMPILED
@pytest.mark.parametrize(("n", "laws"), [(200, 3), (1_000, 10), (3_000, 40)])
def test_interval__random_resamples_agree(n, laws):
    rng = np.random.default_rng(n)
    codes = rng.integers(0, laws, n)
    ranks = np.where(rng.random(n) < (codes + 1) / (laws + 1), 1 / rng.integers(1, 11, n), 0.0)
    for values in (ranks, unusual(n, laws, n)[0] + codes):
        found = stratified_interval(values, codes)
        drawn = drawn_means(values, codes, 4_000, 1)
        error = 5 * (0.025 * 0.975 / 4_000) ** 0.5
        assert abs(np.mean(drawn <= found.low + 1e-12) - 0.025) < error
        assert abs(np.mean(drawn >= found.high - 1e-12) - 0.025) < error


@COMPILED
@pytest.mark.parametrize("n", [12, 100, 900])
@pytest.mark.parametrize("name", SETS)
def test_one_stratum__takes_the_same_ends_as_the_plain_bootstrap(name, n):
    values, codes = joined(chosen(name, [n], n))
    plain = mean_interval(values)
    assert stratified_interval(values, codes) == plain
    ends = strata._lattice_ends([distinct(values / 16)], np.empty(0), 4, TARGET)
    assert ends == (plain.low, plain.high)


@COMPILED
@pytest.mark.parametrize("n", [45, 400, 6_000])
def test_one_stratum__takes_the_same_bracket_as_the_plain_bootstrap(n):
    values = unusual(n, 1, n)[0]
    plain = mean_interval(values)
    low, high, bound = strata._bounded_ends([distinct(values)], np.empty(0), TARGET)
    assert abs(low - plain.low) <= bound + plain.bound
    assert abs(high - plain.high) <= bound + plain.bound
    assert stratified_interval(values, np.zeros(n, np.int64)) == plain


def test_interval__strata_that_do_not_vary_shift_it():
    values, codes = [0.0, 1.0, 1.0, 0.0, 0.3, 0.3, 7.0], [5, 5, 5, 5, -1, -1, 2]
    part = mean_interval(values[:4])
    found = stratified_interval(values, codes)
    for end, other in ((found.low, part.low), (found.high, part.high)):
        exact = (4 * Fraction(other) + Fraction(6, 10) + 7) / 7
        assert end == exact.numerator / exact.denominator
    assert found.method == "exact"


def test_interval__a_stratum_that_does_not_vary_may_be_off_the_lattice():
    values, codes = [0.0, 1.0, 1.0, 0.0, math.pi, math.e], [0, 0, 0, 0, 1, 2]
    part = mean_interval(values[:4])
    found = stratified_interval(values, codes)
    assert found.method == "exact"
    assert found.low == pytest.approx((4 * part.low + math.pi + math.e) / 6, rel=3e-16)
    assert found.high == pytest.approx((4 * part.high + math.pi + math.e) / 6, rel=3e-16)


@pytest.mark.parametrize(
    "values", [[1, 1, 3, 3], [0.1, 0.1, 0.2, 0.2], [2**0.5] * 2 + [math.pi] * 2]
)
def test_interval__of_constant_strata_is_the_mean(values):
    mean = sum(map(Fraction, map(str, values))) / 4
    found = stratified_interval(values, [0, 0, 1, 1])
    assert found.low == found.high == pytest.approx(float(mean), rel=2e-16)
    assert (found.method, found.bound) == ("exact", 0.0)
    assert stratified_interval(values, [0, 1, 2, 3]) == found


def test_interval__doubles_of_one_decimal_do_not_vary():
    values, codes = [0.1 + 0.2, 0.3, 1.0, 0.5], [0, 0, 1, 2]
    assert stratified_interval(values, codes) == Interval(0.525, 0.525, "exact", 0.0)


def test_interval__is_narrower_than_that_of_the_pooled_cases():
    values, codes = [0.0] * 9 + [1.0] * 11, [0] * 8 + [1] * 12
    found, pooled = stratified_interval(values, codes), mean_interval(values)
    assert pooled.low < found.low <= found.high < pooled.high


# --- off a lattice


@COMPILED
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 2, 3), (6, 1, 2)])
def test_interval__irrational_ends_lie_inside_the_bound(sizes):
    rng = np.random.default_rng(len(sizes))
    parts = [[Fraction(float(v)) for v in np.cbrt(rng.random(size))] for size in sizes]
    found = stratified_interval(*joined(parts))
    low, high = nearest_ends(strata_pmf(parts), "0.95")
    assert 0.0 < found.bound < 0.02
    assert abs(found.low - low) <= found.bound
    assert abs(found.high - high) <= found.bound


@COMPILED
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("sizes", [(20, 9), (60, 1, 80), (300, 100)])
def test_bounded_ends__hold_the_exact_ones(name, sizes):
    values, codes = joined(chosen(name, sizes, sum(sizes)))
    found = stratified_interval(values, codes)
    parts = [values[codes == code] for code in range(len(sizes))]
    varied = [distinct(part / 16) for part in parts if np.ptp(part)]
    constant = np.concatenate([part / 16 for part in parts if not np.ptp(part)] + [np.empty(0)])
    low, high, bound = strata._bounded_ends(varied, constant, TARGET)
    assert abs(16 * low - found.low) <= 16 * bound
    assert abs(16 * high - found.high) <= 16 * bound


@COMPILED
def test_interval__bound_is_small_and_printed_upwards():
    for n, laws in [(200, 3), (1_000, 10), (20_000, 5)]:
        found = stratified_interval(*unusual(n, laws, n))
        assert 0.0 < found.bound < 2e-6
        assert re.fullmatch(r"exact±\de-\d\d", found.method)
        assert found.bound <= float(found.method[6:]) < 2.01 * found.bound


@COMPILED
def test_interval__many_values_are_binned_inside_the_bound():
    values, codes = unusual(30_000, 2, 1)
    found = stratified_interval(values, codes)
    coarse = stratified_interval(np.rint(values * 2_000) / 2_000, codes)
    assert 0.0 < found.bound < 2e-6
    assert abs(found.low - coarse.low) <= found.bound + 1 / 4_000


# --- properties

lattice_cases = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=20)


@given(lattice_cases, st.sampled_from([0.5, 0.8, 0.95]))
@settings(PROFILE)
def test_interval__of_negated_values_is_mirrored(cases, level):
    values, codes = np.array(cases).T
    found, mirrored = (stratified_interval(v, codes, level) for v in (values, -values))
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)


@given(lattice_cases, st.integers(-5, 5), st.sampled_from([0.5, 3.0, 0.1, 1e-9, 1e12]))
@settings(PROFILE)
def test_interval__follows_shift_and_scale(cases, shift, scale):
    values, codes = np.array(cases).T
    found = stratified_interval(values, codes)
    moved = stratified_interval(scale * (values + shift), codes)
    near = {"rel": 1e-12, "abs": 1e-12 * scale}
    assert moved.low == pytest.approx(scale * (found.low + shift), **near)
    assert moved.high == pytest.approx(scale * (found.high + shift), **near)


@given(lattice_cases, st.randoms(use_true_random=False))
@settings(PROFILE)
def test_interval__is_unchanged_by_order_and_names(cases, random):
    values, codes = np.array(cases).T
    found = stratified_interval(values, codes)
    order = list(range(len(cases)))
    random.shuffle(order)
    assert stratified_interval(values[order], 7 - 3 * codes[order]) == found


@COMPILED
def test_interval__irrational_is_unchanged_by_order_and_names():
    values, codes = unusual(400, 4, 4)
    order = np.random.default_rng(1).permutation(400)
    found = stratified_interval(values, codes)
    assert stratified_interval(values[order], 7 - 3 * codes[order]) == found
    mirrored = stratified_interval(-values, codes)
    assert mirrored.low == pytest.approx(-found.high, rel=0, abs=found.bound)
    assert mirrored.high == pytest.approx(-found.low, rel=0, abs=found.bound)


@COMPILED
def test_interval__two_threads_find_the_same_bits():
    samples = [unusual(n, 3, n) for n in (30, 200, 900)] * 3
    samples += [(np.rint(5 * values), codes) for values, codes in samples]
    alone = [stratified_interval(*sample) for sample in samples]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda sample: stratified_interval(*sample), samples)) == alone


@COMPILED
def test_kernels__have_one_specialisation():
    stratified_interval(*unusual(50, 2, 0))
    stratified_interval(*joined(chosen("thirds", (20, 20), 0)))
    for kernel in (products.scan_sums, products.transform_sums):
        assert compiled_count(kernel) == 1


# --- hostile input


def test_interval__of_nothing_is_nan():
    found = stratified_interval([], [])
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.method == ""


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -1e300, 5e-324])
def test_interval__of_equal_values_is_that_value(value):
    for codes in ([0, 0, 0], [0, 1, 1], [2, 1, 0]):
        assert stratified_interval([value] * 3, codes) == Interval(value, value, "exact", 0.0)


def test_interval__great_magnitudes_and_subnormals():
    values, codes = np.array([1.0, -0.3, 0.22, 0.07, 1.0, 0.0]), [0, 0, 0, 1, 1, 1]
    plain = stratified_interval(values, codes)
    for scale in (1e300, 1e-300):
        found = stratified_interval(values * scale, codes)
        assert found.low == pytest.approx(plain.low * scale, rel=1e-12)
        assert found.high == pytest.approx(plain.high * scale, rel=1e-12)
    tiny = stratified_interval(np.array([0, 1, 2, 3, 5, 5]) * 5e-324, codes)
    assert 0 <= tiny.low <= tiny.high <= 5 * 5e-324
    wide = stratified_interval([-1.7e308, 1.7e308, 1.7e308, 1.7e308], [0, 0, 1, 1])
    assert (wide.low, wide.high) == (0.0, 1.7e308)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_interval__rejects_what_is_not_finite(bad):
    with pytest.raises(ValueError, match=r"values\[1\] is"):
        stratified_interval([0.0, bad, 1.0], [0, 0, 1])


def test_interval__rejects_shapes_codes_and_levels():
    with pytest.raises(ValueError, match="one dimension"):
        stratified_interval([[0.0, 1.0]], [[0, 0]])
    with pytest.raises(ValueError, match=r"strata_codes have shape \(1,\)"):
        stratified_interval([0.0, 1.0], [0])
    with pytest.raises(ValueError, match="expected integers"):
        stratified_interval([0.0, 1.0], [0.5, 1.0])
    with pytest.raises(ValueError, match="level is 95"):
        stratified_interval([0.0, 1.0], [0, 1], 95)
