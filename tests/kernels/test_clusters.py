"""The exact bootstrap of a ratio of sums over clusters, against enumeration and integers."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import clusters, plane, torus
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.clusters import RatioTails, ratio_interval, ratio_tails
from ragcore_kernels.ratios import bounded_ends, bounded_tails, listed_ends
from ragcore_kernels.resample import Interval, mean_interval
from reference_clusters import (
    drawn_ratios,
    gathered_ratio_pmf,
    nearest_ends,
    packed_ratio_pmf,
    ratio_pmf,
    transformed_ratio,
)

settings.register_profile("derandomised", derandomize=True, deadline=None, max_examples=60)
PROFILE = settings.get_profile("derandomised")
COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")
TARGET = 0.025 * (1 - 1e-12)

KINDS = {
    "parts": lambda rng, n: proportions(rng, n, 4),
    "empty": lambda rng, n: (rng.integers(0, 3, n), rng.integers(0, 2, n)),
    "signed": lambda rng, n: (rng.integers(-4, 5, n), rng.integers(1, 5, n)),
    "skewed": lambda rng, n: (rng.integers(0, 2, n) * 50, 1 + 30 * (rng.random(n) < 0.2)),
    "parity": lambda rng, n: (2 * rng.integers(0, 3, n) + 1, 2 * rng.integers(0, 3, n) + 1),
    "followed": lambda rng, n: (lambda m: (3 * m + rng.integers(0, 2, n), m))(
        rng.integers(1, 6, n)
    ),
    "steady": lambda rng, n: (np.full(n, 2), rng.integers(1, 5, n)),
}


def proportions(rng, n, size):
    m = rng.integers(1, size + 1, n)
    return rng.binomial(m, 0.6), m


def some(kind, n, seed):
    """Numerators and denominators, at least one of them above 0."""
    s, m = KINDS[kind](np.random.default_rng(seed), n)
    m[0] = max(m[0], 1)
    return s, m


def unusual(n, seed, size=8):
    """Numerators on no lattice."""
    rng = np.random.default_rng(seed)
    m = rng.integers(1, size + 1, n)
    return np.array([np.sqrt(rng.random(k)).sum() for k in m]), m.astype(float)


# --- against exact results


@pytest.mark.parametrize("level", ["0.95", "0.5", "0.9"])
@pytest.mark.parametrize("kind", KINDS)
def test_interval__equals_enumeration(kind, level):
    for n, seed in [(2, 0), (3, 1), (4, 2), (5, 3), (5, 4)]:
        s, m = some(kind, n, seed)
        found = ratio_interval(s, m, float(level))
        wanted = nearest_ends(ratio_pmf(s.tolist(), m.tolist()), level)
        assert (found.low, found.high) == wanted, (s, m)
        assert found.method == "exact"


@pytest.mark.parametrize("level", ["0.95", "0.5", "0.99"])
@pytest.mark.parametrize("kind", KINDS)
def test_interval__equals_multisets(kind, level):
    for n, seed in [(6, 0), (6, 1), (7, 2), (8, 3)]:
        s, m = some(kind, n, seed)
        found = ratio_interval(s, m, float(level))
        wanted = nearest_ends(gathered_ratio_pmf(s.tolist(), m.tolist()), level)
        assert (found.low, found.high) == wanted, (s, m)


@COMPILED
@pytest.mark.parametrize("kind", ["parts", "empty", "signed", "parity", "followed", "steady"])
def test_interval_and_tails__equal_integers(kind):
    for n, seed in [(12, 0), (20, 1), (30, 2)]:
        s, m = some(kind, n, seed)
        pmf = packed_ratio_pmf(s.tolist(), m.tolist())
        for level in ["0.95", "0.5", "0.8"]:
            found = ratio_interval(s, m, float(level))
            assert (found.low, found.high) == nearest_ends(pmf, level), (n, level)
        atoms = sorted(pmf)
        for atom in (atoms[len(atoms) // 9], atoms[len(atoms) // 2], atoms[-2]):
            tails = ratio_tails(s, m, float(atom))
            at_most = float(sum(p for x, p in pmf.items() if x <= atom))
            at_least = float(sum(p for x, p in pmf.items() if x >= atom))
            assert tails.at_most == pytest.approx(at_most, rel=0, abs=2e-15)
            assert tails.at_least == pytest.approx(at_least, rel=0, abs=2e-15)
            assert tails.method == "exact"


@COMPILED
@pytest.mark.parametrize(("n", "size"), [(60, 5), (150, 3), (200, 4)])
def test_interval__equals_a_full_transform(n, size):
    s, m = proportions(np.random.default_rng(n), n, size)
    for level in (0.95, 0.8):
        found = ratio_interval(s, m, level)
        low, high = transformed_ratio(s, m, level)
        assert (found.low, found.high) == (float(low), float(high))


@COMPILED
@pytest.mark.parametrize(("n", "size"), [(300, 8), (1_000, 8), (1_000, 20), (3_000, 3)])
def test_interval__random_resamples_agree(n, size):
    s, m = proportions(np.random.default_rng(n), n, size)
    found = ratio_interval(s, m)
    drawn = drawn_ratios(s, m, 4_000, 1)
    error = 5 * (0.025 * 0.975 / 4_000) ** 0.5
    assert abs(np.mean(drawn <= found.low) - 0.025) < error
    assert abs(np.mean(drawn >= found.high) - 0.025) < error


@pytest.mark.parametrize("size", [3, 30])
def test_interval__ends_are_the_first_ratios_to_reach_the_level(size):
    s, m = proportions(np.random.default_rng(5), 40 if JIT else 8, size)
    found = ratio_interval(s, m)
    for end, sign in ((found.low, 1), (found.high, -1)):
        here = ratio_tails(sign * s, m, sign * end).at_most
        before = ratio_tails(sign * s, m, sign * end - 1e-12).at_most
        assert before < 0.025 <= here


def test_interval__ratio_of_sums_is_not_the_mean_of_ratios():
    s, m = np.array([1, 0, 0, 9]), np.array([1, 1, 1, 9])
    assert mean_interval(s / m).high == 1.0
    assert ratio_interval(s, m) == Interval(0.0, 1.0, "exact", 0.0)
    wide, tall = ratio_interval(s, m, 0.2), mean_interval(s / m, 0.2)
    assert wide.low > tall.low
    assert nearest_ends(ratio_pmf(s.tolist(), m.tolist()), "0.2") == (wide.low, wide.high)


def test_interval__equal_denominators_give_the_interval_of_ratios():
    s = np.random.default_rng(2).integers(0, 8, 40)
    assert ratio_interval(s, np.full(40, 7)) == mean_interval(s / 7)
    pairs = clusters._integer_pairs(s + 0.0, np.full(40, 7.0))
    ends = [pairs.ratio(pairs.end(pairs.plane(), TARGET, sign), sign) for sign in (1, -1)]
    assert tuple(map(float, ends)) == (mean_interval(s / 7).low, mean_interval(s / 7).high)


@pytest.mark.parametrize("level", ["0.95", "0.5"])
def test_interval__decimals_are_the_rationals_meant(level):
    s, m = np.array([0.1 + 0.2 - 0.3, 0.3, 0.7, 1.1, 0.3]), np.array([0.1, 0.2, 0.5, 0.7, 0.2])
    tenths = [[Fraction(round(v * 10), 10) for v in part.tolist()] for part in (s, m)]
    found = ratio_interval(s, m, float(level))
    assert (found.low, found.high) == nearest_ends(ratio_pmf(*tenths), level)
    assert ratio_tails(s - 0.3, m, 0.0).at_most > ratio_tails(s - 0.3, m, -1e-9).at_most


def test_interval__resamples_without_a_denominator_do_not_count():
    s, m = [0, 0, 1, 5], [0, 0, 2, 1]
    pmf = ratio_pmf(s, m)
    assert sum(pmf.values()) == 1
    for level in ("0.95", "0.5", "0.1"):
        found = ratio_interval(s, m, float(level))
        assert (found.low, found.high) == nearest_ends(pmf, level)
    tails = ratio_tails(s, m, 0.5)
    assert tails.at_most == pytest.approx(float(pmf[Fraction(1, 2)]), rel=1e-14)
    assert tails.at_least == pytest.approx(1.0, rel=1e-14)


def test_tails__a_double_stands_for_the_ratio_beside_it():
    s, m = [1, 2, 3, 0], [3, 3, 10, 4]
    pmf = ratio_pmf(s, m)
    for atom in pmf:
        tails = ratio_tails(s, m, float(atom))
        assert tails.at_most == pytest.approx(float(sum(p for a, p in pmf.items() if a <= atom)))
        assert tails.at_least == pytest.approx(float(sum(p for a, p in pmf.items() if a >= atom)))
    assert ratio_tails(s, m, 1e300).at_most == pytest.approx(1.0, rel=1e-14)
    assert ratio_tails(s, m, -5e-324).at_most == 0.0


# --- off a lattice


@pytest.mark.parametrize("n", [2, 4, 6])
def test_interval__few_irrational_clusters_are_listed(n):
    s, m = unusual(n, n)
    m[0] = 0.0 if n == 4 else m[0]
    exact = [[Fraction(v) for v in part.tolist()] for part in (s, m)]
    low, high = nearest_ends(gathered_ratio_pmf(*exact), "0.95")
    found = ratio_interval(s, m)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-14)
    assert found.method == "exact"


@COMPILED
@pytest.mark.parametrize("kind", ["parts", "signed", "skewed", "followed", "empty"])
@pytest.mark.parametrize("n", [15, 60, 500])
def test_bounded_ends__hold_the_exact_ones(kind, n):
    s, m = some(kind, n, n)
    found = ratio_interval(s, m)
    low, high, bound = bounded_ends(s + 0.0, m + 0.0, TARGET)
    assert abs(low - found.low) <= bound
    assert abs(high - found.high) <= bound
    for x in (found.low, found.high, float(s.sum() / m.sum())):
        tails = ratio_tails(s, m, x)
        at_most, at_least, doubt = bounded_tails(s + 0.0, m + 0.0, x)
        assert abs(tails.at_most - at_most) <= doubt
        assert abs(tails.at_least - at_least) <= doubt


@COMPILED
@pytest.mark.parametrize("n", [30, 300, 2_000])
def test_interval__irrational_numerators_have_a_small_bound(n):
    s, m = unusual(n, n)
    found = ratio_interval(s, m)
    assert 0.0 < found.bound < 1e-5
    assert found.method.startswith("exact±")
    drawn = drawn_ratios(s, m, 4_000, 1)
    error = 5 * (0.025 * 0.975 / 4_000) ** 0.5
    assert abs(np.mean(drawn <= found.low) - 0.025) < error
    assert abs(np.mean(drawn >= found.high) - 0.025) < error
    tails = ratio_tails(s, m, found.low - found.bound)
    assert tails.at_most - tails.bound < 0.025
    tails = ratio_tails(s, m, found.low + found.bound)
    assert tails.at_most + tails.bound >= 0.025
    assert tails.method == "bounded"


@COMPILED
def test_interval__irrational_denominators_and_too_fine_lattices():
    rng = np.random.default_rng(3)
    m = 1 + rng.random(400)
    s = m * rng.random(400)
    found = ratio_interval(s, m)
    drawn = drawn_ratios(s, m, 4_000, 1)
    assert abs(np.mean(drawn <= found.low) - 0.025) < 0.0125
    fine = rng.integers(0, 1 << 30, 400), rng.integers(1, 1 << 30, 400)
    assert 0.0 < ratio_interval(*fine).bound < 1e-4


@COMPILED
def test_interval__numerators_of_empty_clusters_count():
    s, m = unusual(60, 1)
    m[:3] = 0.0
    found = ratio_interval(s, m)
    drawn = drawn_ratios(s, m, 4_000, 1)
    assert abs(np.mean(drawn <= found.low) - 0.025) < 0.0125
    assert 0.0 < found.bound < 1e-4
    m[3:] = 0.0
    m[50:] = 1.0
    s[:50] = 0.0
    assert 0.0 < ratio_interval(s, m).bound < 0.3


# --- properties

pairs_of = st.lists(st.tuples(st.integers(-3, 6), st.integers(0, 4)), min_size=1, max_size=12)
usable = pairs_of.filter(lambda pairs: any(m for _, m in pairs))


@COMPILED
@given(usable, st.sampled_from([0.5, 0.8, 0.95]))
@settings(PROFILE)
def test_interval__of_negated_numerators_is_mirrored(pairs, level):
    s, m = np.array(pairs).T
    found, mirrored = ratio_interval(s, m, level), ratio_interval(-s, m, level)
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)


@COMPILED
@given(usable, st.integers(-4, 4), st.integers(1, 9), st.integers(1, 9))
@settings(PROFILE)
def test_interval__follows_shift_and_scale(pairs, shift, over, under):
    s, m = np.array(pairs).T
    found = ratio_interval(s, m)
    moved = ratio_interval(over * (s + shift * m), under * m)
    for end, other in ((found.low, moved.low), (found.high, moved.high)):
        assert other == pytest.approx(over * (end + shift) / under, rel=1e-13, abs=1e-13)


@COMPILED
@given(usable, st.randoms(use_true_random=False))
@settings(PROFILE)
def test_interval__is_unchanged_by_order(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert ratio_interval(*np.array(shuffled).T) == ratio_interval(*np.array(pairs).T)


@COMPILED
def test_interval__irrational_is_unchanged_by_order_and_mirrored():
    s, m = unusual(150, 4)
    found = ratio_interval(s, m)
    order = np.random.default_rng(0).permutation(150)
    assert ratio_interval(s[order], m[order]) == found
    mirrored = ratio_interval(-s, m)
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)


@COMPILED
def test_interval__two_threads_find_the_same_bits():
    samples = [proportions(np.random.default_rng(n), n, 6) for n in (11, 200, 900)] * 3
    samples += [unusual(n, n) for n in (40, 200)] * 2
    alone = [ratio_interval(*sample) for sample in samples]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda sample: ratio_interval(*sample), samples)) == alone


@COMPILED
def test_kernels__have_one_specialisation():
    ratio_interval(*proportions(np.random.default_rng(0), 50, 6))
    for kernel in (torus.scan_plane, torus.fill_plane, plane.below_tops):
        assert compiled_count(kernel) == 1


# --- hostile input


def test_interval__of_nothing_is_nan():
    found = ratio_interval([], [])
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.method == ""
    assert ratio_tails([], [], 0.5).method == ""


@pytest.mark.parametrize(
    ("s", "m", "ratio"),
    [
        ([3], [4], 0.75),
        ([0.1], [0.3], 1 / 3),
        ([1, 2, 4], [2, 4, 8], 0.5),
        ([0, 0, 0], [1, 0, 5], 0.0),
        ([-0.0, 0.0], [1, 2], 0.0),
        ([0, 0, 7], [0, 0, 2], 3.5),
        ([math.pi, 2 * math.pi], [math.e, 2 * math.e], math.pi / math.e),
    ],
)
def test_interval__of_one_ratio_is_that_ratio(s, m, ratio):
    found = ratio_interval(s, m)
    assert (found.low, found.high) == pytest.approx((ratio, ratio), rel=4e-16)
    assert found.method == "exact"
    assert ratio_tails(s, m, ratio + 1e-9) == RatioTails(1.0, 0.0, "exact", 0.0)


def test_interval__great_and_small_magnitudes():
    s, m = np.array([1.0, 0.0, 3.0, 2.0]), np.array([2.0, 1.0, 3.0, 5.0])
    plain = ratio_interval(s, m)
    for over, under in [(1e300, 1.0), (1e-300, 1e-10), (1e200, 1e200), (5e-324, 1.0)]:
        found = ratio_interval(s * over, m * under)
        scale = over / under
        assert found.low == pytest.approx(plain.low * scale, rel=1e-12, abs=5e-324)
        assert found.high == pytest.approx(plain.high * scale, rel=1e-12, abs=5e-324)
    with pytest.raises(ValueError, match="largest double"):
        ratio_interval(s * 1e300, m * 1e-300)
    with pytest.raises(ValueError, match="largest double"):
        ratio_interval(np.sqrt(s + 1) * 1e300, np.cbrt(m) * 1e-300)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_interval__rejects_what_is_not_finite(bad):
    with pytest.raises(ValueError, match=r"numerators\[1\] is"):
        ratio_interval([0.0, bad], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"denominators\[0\] is"):
        ratio_interval([0.0, 1.0], [bad, 1.0])
    with pytest.raises(ValueError, match="x is"):
        ratio_tails([0.0, 1.0], [1.0, 1.0], bad)


def test_interval__rejects_shapes_signs_and_levels():
    with pytest.raises(ValueError, match="one dimension"):
        ratio_interval([[0.0, 1.0]], [[1.0, 1.0]])
    with pytest.raises(ValueError, match="2 numerators and 1 denominators"):
        ratio_interval([0.0, 1.0], [1.0])
    with pytest.raises(ValueError, match=r"denominators\[1\] is -1"):
        ratio_interval([0.0, 1.0], [1.0, -1.0])
    with pytest.raises(ValueError, match="all 2 denominators are 0"):
        ratio_interval([0.0, 1.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="level is 95"):
        ratio_interval([0.0, 1.0], [1.0, 2.0], 95)


def test_listed_ends__leave_what_is_too_long():
    s, m = unusual(30, 0)
    assert listed_ends(s, m, TARGET) is None
