"""The exact bootstrap interval of a mean, against enumeration, integers and other software."""

from __future__ import annotations

import math
import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import spectrum, trinomial
from ragcore_kernels._jit import JIT
from ragcore_kernels.histogram import histogram
from ragcore_kernels.intervals import rounded_up
from ragcore_kernels.resample import Interval, exact_sum, mean_interval, mean_intervals
from ragcore_kernels.spectrum import bounded_ends, spectrum_of
from reference_resample import composed, convolved, enumerated, gathered, transformed

settings.register_profile("derandomised", derandomize=True, deadline=None, max_examples=60)
PROFILE = settings.get_profile("derandomised")

SETS = {
    "binary": [0, 1],
    "trinomial": [-1, 0, 1],
    "thirds": [0, Fraction(1, 3), Fraction(1, 2), 1],
    "negative": [Fraction(-7, 5), Fraction(-3, 10), Fraction(-1, 10)],
    "skewed": [0, 0, 0, Fraction(1, 7), 13],
    "reciprocal": [0] + [Fraction(1, rank) for rank in range(1, 11)],
    "parity": [-2, 0, 0, 3],
}
COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")


def floats(values):
    return np.array([float(v) for v in values])


def nearest(end):
    return end.numerator / end.denominator


def unusual(n, seed, zeros=0.0):
    """Irrational values as nDCG gives them, some of them 0."""
    rng = np.random.default_rng(seed)
    discount = 1 / np.log2(np.arange(2, 12))
    gains = rng.random((n, 10)) < 0.25
    ideal = np.cumsum(discount)[np.maximum(gains.sum(1), 1) - 1]
    return np.where(rng.random(n) < zeros, 0.0, gains @ discount / ideal)


def cubes(n, kinds, seed):
    """Few distinct irrational values; most cases have the first."""
    rng = np.random.default_rng(seed)
    return np.concatenate([[0, 0], np.cbrt(rng.random(kinds - 1)) - 0.4])[
        rng.integers(0, kinds + 1, n)
    ]


# --- against exact results


def test_interval__one_win_in_twelve():
    assert mean_interval([0.0] * 11 + [1.0]) == Interval(0.0, 0.25, "exact", 0.0)


@pytest.mark.parametrize("level", ["0.95", "0.5", "0.9"])
@pytest.mark.parametrize("name", SETS)
def test_interval__equals_enumeration(name, level):
    rng = np.random.default_rng(len(name))
    for n in [2, 3, 4, 5, 5, 6]:
        values = [Fraction(SETS[name][i]) for i in rng.integers(0, len(SETS[name]), n)]
        low, high = enumerated(values, level)
        found = mean_interval(floats(values), float(level))
        assert (found.low, found.high) == (nearest(low), nearest(high)), (values, level)
        assert found.method == "exact"


@pytest.mark.parametrize("level", ["0.95", "0.5", "0.9", "0.99"])
@pytest.mark.parametrize("name", SETS)
def test_interval__equals_multisets(name, level):
    rng = np.random.default_rng(len(name))
    for n in [6, 7, 7, 8, 8]:
        values = [Fraction(SETS[name][i]) for i in rng.integers(0, len(SETS[name]), n)]
        low, high = gathered(values, level)
        found = mean_interval(floats(values), float(level))
        assert (found.low, found.high) == (nearest(low), nearest(high)), (values, level)


@COMPILED
@pytest.mark.parametrize(
    ("points", "denominator", "sizes"),
    [
        ([0, 1], 1, [10, 20, 40, 77, 200]),
        ([-1, 0, 0, 1], 1, [10, 20, 40, 77, 200]),
        ([0, 1, 2, 3, 4, 5], 5, [10, 20, 40, 77, 200]),
        ([0, 0, 0, 0, 0, 1, 40], 10, [20, 60, 200]),
        ([0, 0] + [2520 // r for r in range(1, 11)], 2520, [10, 20]),
    ],
    ids=["binomial", "trinomial", "P@5", "skewed", "RR@10"],
)
def test_interval__equals_integers(points, denominator, sizes):
    rng = np.random.default_rng(7)
    for n in sizes:
        numerators = np.array(points)[rng.integers(0, len(points), n)]
        for level in ["0.95", "0.5", "0.9"]:
            wanted = convolved(numerators.tolist(), denominator, level)
            found = mean_interval(numerators / denominator, float(level))
            assert (found.low, found.high) == tuple(map(nearest, wanted)), (n, level)


@COMPILED
@pytest.mark.parametrize("n", [100, 200, 1_000])
def test_interval__reciprocal_ranks_equal_a_full_transform(n):
    points = np.array([0] + [2520 // r for r in range(1, 11)])
    rng = np.random.default_rng(n)
    plain = points[rng.integers(0, 11, n)]
    for numerators in (plain, plain - points[rng.integers(0, 11, n)]):
        found = mean_interval(numerators / 2520)
        assert (found.low, found.high) == transformed(numerators, 2520, 0.95)
        assert found.method == "exact"


def test_interval__ties_at_the_level_count_as_reached():
    assert mean_interval([1.0, 0.0], 0.5) == Interval(0.0, 1.0, "exact", 0.0)  # P = 1/4 = q


@pytest.mark.parametrize("points", [[0, 1], [0, 1, 2], [0, 3, 5]])
def test_integers__decide_as_the_transform_does(points, monkeypatch):
    rng = np.random.default_rng(1)
    samples = [np.array(points)[rng.integers(0, len(points), n)] for n in (9, 30, 64)]
    plain = [mean_interval(sample) for sample in samples]
    for module in (spectrum, trinomial):
        monkeypatch.setattr(module, "near", lambda *_: True)  # every case is a tie
    assert [mean_interval(sample) for sample in samples] == plain


# --- off a lattice


@pytest.mark.parametrize(("n", "kinds"), [(6, 6), (9, 5), (12, 4), (25, 3), (40, 3)])
def test_interval__small_irrational_samples_are_exact(n, kinds):
    values = cubes(n, kinds, n)
    found = mean_interval(values)
    assert found.method == "exact"
    assert (found.low, found.high) == pytest.approx(composed(values.tolist(), 0.95), abs=1e-14)


@COMPILED
@pytest.mark.parametrize(("n", "kinds"), [(41, 4), (60, 4), (80, 4), (45, 5), (30, 7), (400, 3)])
def test_interval__irrational_ends_lie_inside_the_bound(n, kinds):
    for seed in range(4):
        values = cubes(n, kinds, seed)
        found = mean_interval(values)
        low, high = composed(values.tolist(), 0.95)
        assert 0 < found.bound < 1e-3
        assert abs(found.low - low) <= found.bound
        assert abs(found.high - high) <= found.bound


@COMPILED
@pytest.mark.parametrize(("n", "zeros"), [(50, 0.0), (300, 0.8), (1_000, 0.0), (2_500, 0.3)])
def test_interval__fine_lattice_ends_lie_inside_the_bound(n, zeros):
    numerators = np.rint(unusual(n, n, zeros) * 2**15).astype(np.int64)
    numerators -= np.roll(numerators, 1)
    found = mean_interval(numerators / 2**15)
    low, high = transformed(numerators, 2**15, 0.95)
    assert found.bound <= 1e-5
    assert abs(found.low - low) <= found.bound + 1 / (n * 2**15)
    assert abs(found.high - high) <= found.bound + 1 / (n * 2**15)


@COMPILED
def test_interval__bound_is_small_and_printed_upwards():
    for n, most in [(20, 4e-5), (50, 2e-5), (300, 2e-6), (1_000, 1.1e-6), (20_000, 1.1e-6)]:
        found = mean_interval(unusual(n, 1) - unusual(n, 2))
        assert 0 < found.bound <= most
        assert re.fullmatch(r"exact±\de-\d\d", found.method)
        assert found.bound <= float(found.method[6:]) < 2.01 * found.bound


@pytest.mark.parametrize(
    ("bound", "text"),
    [(2.1e-7, "3e-07"), (3e-7, "3e-07"), (9.2e-7, "1e-06"), (9.7e-7, "1e-06"), (1e-6, "1e-06")],
)
def test_rounded_up__is_never_less(bound, text):
    assert rounded_up(bound) == text


@COMPILED
def test_interval__binned_and_plain_agree():
    values = np.random.default_rng(0).random(4_090) ** 3
    plain = mean_interval(values)
    more = np.concatenate([values, np.linspace(0.2, 0.3, 7)])
    assert len(np.unique(more)) > 4_096
    binned = mean_interval(more)
    sample = histogram(more)
    low, high, bound = bounded_ends(sample, spectrum_of(sample), 0.025, 0.025, (0.0, 0.0))
    assert abs(binned.low - low) <= binned.bound + bound
    assert abs(binned.high - high) <= binned.bound + bound
    assert binned.bound < 1.2 * plain.bound


# --- properties

lattice_values = st.lists(st.integers(-3, 3), min_size=1, max_size=24)
any_values = st.lists(st.floats(-1.0, 1.0, width=32), min_size=1, max_size=9)


@given(st.one_of(lattice_values, any_values))
@settings(PROFILE)
def test_interval__of_negated_values_is_mirrored(values):
    found, mirrored = mean_interval(values), mean_interval([-v for v in values])
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)
    assert found.method == mirrored.method


@given(lattice_values, st.integers(-5, 5), st.sampled_from([0.5, 3.0, 0.1, 1e-9, 1e12]))
@settings(PROFILE)
def test_interval__follows_shift_and_scale(values, shift, scale):
    found = mean_interval(values)
    moved = mean_interval([scale * (v + shift) for v in values])
    near = {"rel": 1e-12, "abs": 1e-12 * scale}
    assert moved.low == pytest.approx(scale * (found.low + shift), **near)
    assert moved.high == pytest.approx(scale * (found.high + shift), **near)


@given(st.one_of(lattice_values, any_values), st.randoms(use_true_random=False))
@settings(PROFILE)
def test_interval__is_unchanged_by_order(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert mean_interval(shuffled) == mean_interval(values)


@COMPILED
@pytest.mark.parametrize("n", [30, 500, 9_000])
def test_interval__irrational_is_unchanged_by_order_and_mirrored(n):
    values = unusual(n, 5) - unusual(n, 6) + (np.linspace(0, 1e-3, n) if n > 5_000 else 0)
    found = mean_interval(values)
    shuffled = np.random.default_rng(1).permutation(values)
    assert mean_interval(shuffled) == found
    mirrored = mean_interval(-values)
    slack = 0.0 if n < 5_000 else found.bound
    assert mirrored.low == pytest.approx(-found.high, rel=0, abs=slack)
    assert mirrored.high == pytest.approx(-found.low, rel=0, abs=slack)


@given(lattice_values, st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
@settings(PROFILE)
def test_interval__is_inside_the_values_and_grows_with_the_level(values, level):
    found, wider = mean_interval(values, level), mean_interval(values, 0.999)
    assert min(values) <= wider.low <= found.low <= found.high <= wider.high <= max(values)


@COMPILED
def test_interval__scipy_is_within_its_monte_carlo_error():
    stats = pytest.importorskip("scipy.stats")
    for values in (unusual(200, 3), np.random.default_rng(2).integers(-1, 2, 200) + 0.0):
        found = mean_interval(values)
        other = stats.bootstrap(
            (values,),
            np.mean,
            n_resamples=20_000,
            method="percentile",
            rng=np.random.default_rng(1),
        ).confidence_interval
        error = values.std() / 200**0.5 * 5 * (0.025 * 0.975 / 20_000) ** 0.5 / 0.0584
        assert abs(other.low - found.low) <= error + 1 / 200
        assert abs(other.high - found.high) <= error + 1 / 200


# --- hostile input


def test_interval__of_nothing_is_nan():
    found = mean_interval([])
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.method == ""


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -1e300, 5e-324])
@pytest.mark.parametrize("n", [1, 2, 100])
def test_interval__of_equal_values_is_that_value(value, n):
    assert mean_interval([value] * n) == Interval(value, value, "exact", 0.0)


def test_interval__zeros_of_both_signs_are_equal():
    assert mean_interval([0.0, -0.0, -0.0]) == Interval(0.0, 0.0, "exact", 0.0)


@pytest.mark.parametrize(
    ("a", "b"),
    [(1.0, 1 + 2**-52), (-1e300, 1e300), (0.0, 5e-324), (1.7e308, 1.79e308), (1e-300, math.pi)],
)
def test_interval__two_values_are_exact(a, b):
    steps = mean_interval([0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    found = mean_interval([a, a, b, b, b, a, a])
    for end, step in ((found.low, steps.low), (found.high, steps.high)):
        k = round(step * 7)
        assert end == nearest((Fraction(a) * (7 - k) + Fraction(b) * k) / 7)
    assert found.method == "exact"


def test_interval__great_magnitudes_and_subnormals():
    values = np.array([1e300, -3e299, 2.2e299, 7e298, 1e300, 0.0])
    scaled = mean_interval(values / 1e300)
    found = mean_interval(values)
    assert found.low == pytest.approx(scaled.low * 1e300, rel=1e-12)
    assert found.high == pytest.approx(scaled.high * 1e300, rel=1e-12)
    tiny = mean_interval(np.array([0, 1, 2, 3, 5]) * 5e-324)
    assert 0 <= tiny.low <= tiny.high <= 5 * 5e-324


def test_interval__hundred_thousand_binary_cases_equal_the_binomial():
    special = pytest.importorskip("scipy.special")
    values = np.zeros(100_000)
    values[:1_234] = 1
    found = mean_interval(values)
    low, high = round(found.low * 100_000), round(found.high * 100_000)
    p = 1_234 / 100_000
    assert special.bdtr(low - 1, 100_000, p) < 0.025 <= special.bdtr(low, 100_000, p)
    assert special.bdtrc(high, 100_000, p) < 0.025 <= special.bdtrc(high - 1, 100_000, p)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_interval__rejects_what_is_not_finite(bad):
    with pytest.raises(ValueError, match=r"values\[1\] is"):
        mean_interval([0.0, bad, 1.0])
    with pytest.raises(ValueError, match="finite"):
        exact_sum(np.array([0.0] * 400 + [bad]))
    with pytest.raises(ValueError, match="finite"):
        exact_sum(np.array([0.0, bad]))


def test_interval__rejects_shape_and_level():
    with pytest.raises(ValueError, match="one dimension"):
        mean_interval([[0.0, 1.0]])
    with pytest.raises(ValueError, match="level is 95"):
        mean_interval([0.0, 1.0], 95)


def test_intervals__go_row_by_row():
    matrix = np.array([[0.0, 1, 1, 0], [0.5, 0.25, 0, 1]])
    assert mean_intervals(matrix) == [mean_interval(row) for row in matrix]
    assert mean_intervals([matrix[0], matrix[1][:2]])[1] == mean_interval(matrix[1][:2])


@COMPILED
def test_interval__two_threads_find_the_same_bits():
    samples = [unusual(n, n) for n in (11, 30, 200, 900)] * 4
    alone = [mean_interval(sample) for sample in samples]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(mean_interval, samples)) == alone


# --- exact_sum

hostile_floats = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(hostile_floats, max_size=40), st.integers(0, 400))
@settings(PROFILE)
def test_exact_sum__equals_fsum(values, zeros):
    array = np.array(values + [0.0] * zeros)
    try:
        wanted = math.fsum(values)
    except OverflowError:
        return  # a partial sum of fsum's; ours has none
    assert exact_sum(array) == wanted


def test_exact_sum__is_unchanged_by_order():
    rng = np.random.default_rng(0)
    values = np.ldexp(rng.standard_normal(3_000), rng.integers(-1_000, 1_000, 3_000))
    values = np.concatenate([values, -values[::2], [5e-324, -0.0, 2.0**-1022]])
    wanted = math.fsum(values.tolist())
    for _ in range(5):
        assert exact_sum(rng.permutation(values)) == wanted


def test_exact_sum__partial_sums_may_overflow_and_the_sum_may_not():
    assert exact_sum(np.array([1.7e308, 1.7e308, -1.7e308])) == 1.7e308
    assert exact_sum(np.array([])) == 0.0
    with pytest.raises(OverflowError):
        exact_sum(np.array([1.7e308, 1.7e308]))


def test_exact_sum__halves_round_to_even():
    assert exact_sum(np.array([1.0, 2.0**-53] + [0.0] * 300)) == 1.0
    assert exact_sum(np.array([1.0, 2.0**-53, 5e-324] + [0.0] * 300)) == 1 + 2.0**-52
