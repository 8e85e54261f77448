"""Both ways of the sign-flip test on their own: transform on a lattice, bracket off it."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from ragcore_kernels import flip_lists, flip_tails
from ragcore_kernels._jit import JIT
from ragcore_kernels.flip_tails import lattice_tail, real_tail
from ragcore_kernels.signs import sign_flip
from reference_signs import SETS, added, aligned, counted, enumerated, floats, folded, gains, ranks

COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")


def near(wanted, rel):
    return pytest.approx(float(wanted), rel=rel, abs=0)


def by_transform(monkeypatch):
    """No lists: every lattice goes to the transform."""
    for name in ("_FEW_STEPS", "_SHORT_HALVED", "_SHORT_GROUP"):
        monkeypatch.setattr(flip_tails, name, -1)
    plain = flip_tails._transformed
    monkeypatch.setattr(flip_tails, "_transformed", lambda *a: plain(*a[:5], math.inf))
    monkeypatch.setattr(flip_tails, "subset_tail", None)


# --- the transform on a lattice


@pytest.mark.parametrize("name", SETS)
def test_transform__equals_enumeration(name, monkeypatch):
    by_transform(monkeypatch)
    rng = np.random.default_rng(len(name))
    for n in [2, 3, 5, 8, 8, 11]:
        values = [Fraction(SETS[name][i]) for i in rng.integers(0, len(SETS[name]), n)]
        found = sign_flip(floats(values))
        assert found.p_value == pytest.approx(float(enumerated(values)), abs=5e-15), values
        assert found.method == "exact"


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


# --- the bracket off a lattice


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


# --- parts


@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_signed_sums__are_all_and_in_order(m):
    values = np.random.default_rng(m).random((2, m))
    sums, more = np.empty((2, 1 << m)), np.empty((2, 1 << m))
    flip_lists.signed_sums(values, sums, more)
    for some, found in zip(values, sums, strict=True):
        wanted = np.zeros(1)
        for value in some:
            wanted = np.concatenate([wanted - value, wanted + value])
        assert found == pytest.approx(np.sort(wanted), abs=1e-14)
        assert (np.diff(found) >= 0).all()
    for least in (-9.0, -0.3, 0.0, 0.3, 9.0):
        pairs = (sums[0][:, None] + sums[1] >= least).sum()
        assert flip_lists.count_pairs(sums[0], sums[1], least) == pairs


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
