"""Tails, cumulated probabilities and distributions of the resampled mean, against enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import atoms, tails
from ragcore_kernels._jit import JIT
from ragcore_kernels.atoms import mean_distribution
from ragcore_kernels.histogram import histogram
from ragcore_kernels.resample import mean_interval
from ragcore_kernels.tails import Tails, mean_cdf, mean_tails, tails_at_mean
from reference_tails import (
    convolved_pmf,
    enumerated_pmf,
    multinomial_means,
    quantile_error,
    tails_of,
)

COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")
SETS = {
    "binary": [0, 1],
    "trinomial": [-1, 0, 1],
    "tenths": [Fraction(1, 10), Fraction(1, 5), Fraction(-3, 10)],
    "thirds": [0, Fraction(1, 3), Fraction(-1, 2), 1],
    "skewed": [0, 0, Fraction(1, 7), -13],
    "reciprocal": [Fraction(1, rank) - Fraction(1, 4) for rank in range(1, 11)],
}


def parts(found):
    return found.below, found.equal, found.above


def irrational(n, seed):
    rng = np.random.default_rng(seed)
    return np.cbrt(rng.random(n)) - np.cbrt(rng.random(n)) * 0.9


def same_every_way(monkeypatch, values, points):
    """Parts by counting, by the recurrence or the transform, and off a lattice."""
    found = [[parts(mean_tails(values, at)) for at in points]]
    monkeypatch.setattr(tails, "_QUICK_DRAWS", 0)
    found.append([parts(mean_tails(values, at)) for at in points])
    monkeypatch.setattr(tails, "is_few", lambda _: False)
    found.append([parts(mean_tails(values, at)) for at in points])
    return found


# --- against exact results


def test_tails__one_win_in_twelve():
    values = [0.0] * 11 + [1.0]
    found = mean_cdf(values, [0.0, 1 / 12, 2 / 12, 3 / 12])
    assert found.probabilities.tolist() == pytest.approx(
        [0.351996, 0.735991, 0.927988, 0.986170], abs=5e-7
    )
    assert (found.method, found.bound) == ("exact", 0.0)
    assert mean_tails(values).below == 0.0
    assert mean_tails(values).equal == float(Fraction(11, 12) ** 12)


@pytest.mark.parametrize("name", SETS)
def test_tails__equal_enumeration(name, monkeypatch):
    rng = np.random.default_rng(len(name))
    for n in (2, 3, 5, 6):
        values = [Fraction(SETS[name][i]) for i in rng.integers(0, len(SETS[name]), n)]
        if len(set(values)) < 2:
            continue
        pmf = enumerated_pmf(values)
        atoms_of = list(pmf)[:: 1 + len(pmf) // 12]
        between = [x + Fraction(1, 99_991) for x in atoms_of]
        points = [*atoms_of, *between, Fraction(0), min(values) - 1]
        wanted = [tails_of(pmf, x) for x in points]
        floats = [float(v) for v in values]
        with monkeypatch.context() as patch:
            for found in same_every_way(patch, floats, [float(x) for x in points]):
                assert np.abs(np.array(found) - wanted).max() < 1e-14
        exact = [parts(mean_tails(floats, float(x))) for x in points]
        assert np.abs(np.array(exact) - wanted).max() < 3e-16
        cdf = mean_cdf(floats, [float(x) for x in points]).probabilities
        assert cdf == pytest.approx([below + equal for below, equal, _ in wanted], abs=1e-15)


@COMPILED
@pytest.mark.parametrize("n", [20, 65, 150])
@pytest.mark.parametrize("points", [[0, 1], [-1, 0, 1], [-2, 0, 1, 5]])
def test_tails__equal_integers(n, points, monkeypatch):
    numerators = np.array(points)[np.random.default_rng(n).integers(0, len(points), n)].tolist()
    pmf = convolved_pmf(numerators, 7)
    values = [v / 7 for v in numerators]
    mean = Fraction(sum(numerators), 7 * n)
    wanted = [tails_of(pmf, x) for x in (Fraction(0), mean, mean + Fraction(1, 50))]
    at = [0.0, float(mean), float(mean + Fraction(1, 50))]
    for found in same_every_way(monkeypatch, values, at):
        assert np.abs(np.array(found) - wanted).max() < 1e-14


def test_tails__of_decimals_hold_the_mass_at_zero():
    found = mean_tails([0.1, 0.2, -0.3])  # 0.1 + 0.2 - 0.3 is no zero in doubles
    assert parts(found) == (10 / 27, 6 / 27, 11 / 27)
    nearly = mean_tails([0.1 + 0.2, 0.2, -0.3, -0.2, 0.0], 0.0)
    assert nearly == mean_tails([0.3, 0.2, -0.3, -0.2, 0.0], 0.0)


def test_tails__that_are_empty_are_exactly_zero(monkeypatch):
    for found in same_every_way(monkeypatch, [0.2, 0.1, 0.4], [0.0, 0.4, 0.5, 0.1]):
        assert found[0] == (0.0, 0.0, 1.0)
        assert found[1][2] == 0.0
        assert found[2] == (1.0, 0.0, 0.0)
        assert found[3][0] == 0.0
    found = mean_tails([0.2, 0.1, 0.4])
    assert (found.resamples, found.n) == (27, 3)
    assert 10**found.log10_resolution == pytest.approx(1 / 27)


def test_tails__of_one_value_and_of_none():
    assert parts(mean_tails([0.3] * 4, 0.3)) == (0.0, 1.0, 0.0)
    assert parts(mean_tails([0.1 + 0.2], 0.3)) == (0.0, 1.0, 0.0)
    assert parts(mean_tails([0.3] * 4)) == (0.0, 0.0, 1.0)
    assert parts(mean_tails([-5e-324])) == (1.0, 0.0, 0.0)
    found = mean_tails([])
    assert (found.method, found.n, found.resamples) == ("", 0, 0)
    assert all(map(math.isnan, [*parts(found), found.log10_resolution]))
    assert np.isnan(mean_cdf([], [1.0]).probabilities).all()


# --- off a lattice


@pytest.mark.parametrize(("n", "seed"), [(4, 0), (5, 1), (6, 2)])
def test_tails__small_irrational_samples_equal_enumeration(n, seed):
    values = irrational(n, seed)
    values[-1] = -values[0]
    exact = [Fraction(v) for v in values.tolist()]
    pmf = enumerated_pmf(exact)
    for at in (Fraction(0), sum(exact) / n, exact[0], max(exact), min(exact), max(exact) + 1):
        found = mean_tails(values, float(at))
        assert found.method == "exact"
        near = {x: p for x, p in pmf.items() if abs(x - at) < 1e-13}
        moved = {(at if x in near else x): Fraction(0) for x in pmf}
        for x, p in pmf.items():
            moved[at if x in near else x] += p
        assert parts(found) == pytest.approx(tails_of(moved, at), abs=1e-14)


@COMPILED
@pytest.mark.parametrize(("n", "denominator"), [(60, 10_007), (300, 30_011), (1_000, 30_011)])
def test_tails__irrational_ones_lie_inside_the_bound(n, denominator):
    """The sample is on a lattice, too fine to be taken; a transform as long as that decides."""
    rng = np.random.default_rng(n)
    numerators = np.rint(irrational(n, n) * denominator).astype(np.int64)
    numerators[:2] = [0, 1]
    size, middle = 1 << int(7 * n**0.5 * denominator).bit_length(), round(numerators.mean())
    draw = np.bincount((numerators - middle) % size, minlength=size) / n
    pmf = np.roll(np.fft.irfft(np.fft.rfft(draw) ** n, size), size // 2)
    values = numerators / denominator * math.pi  # of no denominator
    for s in [0, int(numerators.sum()) - n * middle, *rng.integers(-n * 200, n * 200, 5).tolist()]:
        found = mean_tails(values, (n * middle + s) * math.pi / n / denominator)
        below, equal = pmf[: size // 2 + s].sum(), pmf[size // 2 + s]
        if found.method == "exact":  # pi scales a lattice to a lattice
            assert parts(found) == pytest.approx((below, equal, 1 - below - equal), abs=1e-12)
        else:
            assert 0 < found.bound < 1e-3
        for one, wanted in zip(parts(found), (below, equal, 1 - below - equal), strict=True):
            assert abs(one - wanted) <= found.bound + 1e-12


@COMPILED
def test_tails__off_a_lattice_bound_holds_for_few_distinct_values():
    """Three irrational values of 400 cases: every vector of multiplicities is listed."""
    rng = np.random.default_rng(0)
    n, kinds = 400, np.array([-math.sqrt(2), 0.1, math.pi / 3])
    values = kinds[rng.choice(3, n, p=[0.2, 0.5, 0.3])]
    counts = [int((values == kind).sum()) for kind in kinds]
    i, j = np.divmod(np.arange((n + 1) ** 2), n + 1)
    keep = i + j <= n
    i, j = i[keep], j[keep]
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    k = n - i - j
    logs = log_factorial[n] - log_factorial[i] - log_factorial[j] - log_factorial[k]
    logs += sum(m * math.log(c / n) for m, c in zip((i, j, k), counts, strict=True))
    pmf, sums = np.exp(logs), i * kinds[0] + j * kinds[1] + k * kinds[2]
    for at in (0.0, float(values.mean()), 0.1, 0.2, -1.0):
        found = mean_tails(values, at)
        assert found.bound < 3e-3
        equal = pmf[np.abs(sums - n * at) < 1e-10].sum()
        below = pmf[sums < n * at - 1e-10].sum()
        assert abs(found.below - below) <= found.bound
        assert abs(found.above - (1 - below - equal)) <= found.bound
        assert abs(found.equal - equal) <= found.bound


@COMPILED
@pytest.mark.parametrize("n", [7_000, 100_000])
def test_tails__are_within_the_error_of_random_resamples(n):
    rng = np.random.default_rng(n)
    ranks = np.concatenate([[0.0], 1 / np.arange(1, 11)])
    values = ranks[rng.integers(0, 11, n)] - ranks[rng.integers(0, 11, n)]
    means = multinomial_means(values, 100_000, 1)
    for at in (0.0, float(values.mean()), float(np.quantile(means, 0.1))):
        found = mean_tails(values, at)
        assert found.method == "exact"
        error = quantile_error(found.below, means.size) + 1e-6
        assert abs(np.mean(means < at - 1e-12) - found.below) <= error + found.equal


# --- properties

small = st.lists(st.integers(-4, 4), min_size=1, max_size=12)


@given(small, st.integers(-3, 3), st.sampled_from([1.0, 0.1, 1 / 3, 1e-9, 1e12]))
@settings(deadline=None, derandomize=True, max_examples=100)
def test_tails__sum_to_one_and_mirror(numerators, at, scale):
    values = [v * scale for v in numerators]
    found, mirrored = mean_tails(values, at * scale), mean_tails([-v for v in values], -at * scale)
    assert sum(parts(found)) == pytest.approx(1.0, abs=1e-14)
    assert min(parts(found)) >= 0.0
    assert parts(mirrored)[::-1] == pytest.approx(parts(found), abs=1e-15)
    plain = mean_tails([float(v) for v in numerators], float(at))
    assert parts(plain) == pytest.approx(parts(found), abs=1e-15)


@COMPILED
@given(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=60), st.floats(-1, 1))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_tails__off_a_lattice_mirror_to_the_bit(values, at):
    found, mirrored = mean_tails(values, at), mean_tails([-v for v in values], -at)
    assert mirrored.method == found.method
    assert parts(mirrored)[::-1] == pytest.approx(parts(found), abs=1e-13)
    assert sum(parts(found)) == pytest.approx(1.0, abs=1e-13)
    assert min(parts(found)) >= 0.0


@COMPILED
@pytest.mark.parametrize("kind", ["trinomial", "P@5", "reciprocal", "irrational", "outliers"])
@pytest.mark.parametrize("n", [30, 900, 9_000])
def test_tails__agree_with_the_ends_of_the_interval(kind, n):
    rng = np.random.default_rng(n)
    values = {
        "trinomial": rng.integers(-1, 2, n) + 0.0,
        "P@5": rng.integers(0, 6, n) / 5,
        "reciprocal": 1 / rng.integers(1, 11, n),
        "irrational": irrational(n, n),
        "outliers": np.exp(2 * rng.normal(size=n)),
    }[kind]
    sample = histogram(values)
    for level in (0.5, 0.95, 0.999):
        found, share = mean_interval(sample, level), (1 - level) / 2
        slack = found.bound * 1.001
        low, high = mean_tails(sample, found.low + slack), mean_tails(sample, found.high - slack)
        assert low.below + low.equal >= share * (1 - 1e-12) - low.bound - 1e-14
        assert high.above + high.equal >= share * (1 - 1e-12) - high.bound - 1e-14
        low, high = mean_tails(sample, found.low - slack), mean_tails(sample, found.high + slack)
        assert low.below < share + low.bound
        assert high.above < share + high.bound


def test_cdf__never_falls_and_shares_a_sample():
    values = np.array([0.0, 1.0, 5.0, 2.0, 1.0] * 20)
    points = np.linspace(-1, 6, 200)
    sample = histogram(values)
    found = mean_cdf(sample, points)
    assert (np.diff(found.probabilities) >= -1e-15).all()
    assert found.probabilities[[0, -1]].tolist() == [0.0, 1.0]
    assert (mean_cdf(values, points).probabilities == found.probabilities).all()
    assert mean_tails(sample, 1.0) == mean_tails(values, 1.0)


def test_tails_at_mean__takes_it_exactly():
    for values in ([1.0, 1 + 2**-52, 1.0], [0.1, 0.2, 0.7, 0.7], [1e300, -1e300, 0.0, 1e300]):
        found, plain = tails_at_mean(histogram(values)), len(values)
        steps = sorted(set(values))
        scaled = [Fraction(v) if plain != 4 or abs(v) > 1 else round(v * 10) for v in values]
        assert len(steps) >= 2
        pmf = enumerated_pmf([Fraction(v) for v in scaled])
        wanted = tails_of(pmf, sum(map(Fraction, scaled)) / plain)
        assert parts(found) == pytest.approx(wanted, abs=1e-15)


# --- distributions


def test_distribution__of_two_cases():
    found = mean_distribution([1.0, 0.0])
    assert found.means == (0, Fraction(1, 2), 1)
    assert (found.ways, found.resamples) == ((1, 2, 1), 4)
    assert found.probabilities == (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))


@pytest.mark.parametrize("values", [[0.1, 0.2, -0.3], [0.0, 0.5, 13.0, 13.0], [1 / 3, 0.25, 1.0]])
def test_distribution__equals_enumeration(values):
    found = mean_distribution(values)
    pmf = enumerated_pmf([Fraction(v).limit_denominator(1_000) for v in values])
    assert dict(zip(found.means, found.probabilities, strict=True)) == pmf


def test_distribution__off_a_lattice_takes_doubles_as_they_are(monkeypatch):
    values = [math.sqrt(2), math.pi, -math.e, math.pi]
    found = mean_distribution(values)
    pmf = enumerated_pmf([Fraction(v) for v in values])
    assert dict(zip(found.means, found.probabilities, strict=True)) == pmf
    monkeypatch.setattr(atoms, "MAX_ATOMS", 200)
    wide = [0.0, 1.0, 1_000.0]
    assert dict(zip(*_both(mean_distribution(wide)), strict=True)) == enumerated_pmf(
        [Fraction(v) for v in wide]
    )


def _both(found):
    return found.means, found.probabilities


def test_distribution__of_equal_values_is_one_atom():
    assert mean_distribution([0.5] * 3).ways == (27,)
    assert mean_distribution([0.5] * 3).means == (Fraction(1, 2),)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "no values"),
        (np.zeros(20_000), "20000 values"),
        (np.arange(2_000) % 2, "bits"),
        (np.sqrt(np.arange(60.0)), "too many means"),
        (np.sqrt(np.arange(1.0, 30.0)), "too many means"),
    ],
)
def test_distribution__refuses_what_is_too_large(values, message):
    with pytest.raises(ValueError, match=message):
        mean_distribution(values)


# --- hostile input


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_tails__reject_what_is_not_finite(bad):
    with pytest.raises(ValueError, match="finite"):
        mean_tails([0.0, 1.0], bad)
    with pytest.raises(ValueError, match="finite"):
        mean_tails([0.0, bad])
    with pytest.raises(ValueError, match="finite"):
        mean_cdf([0.0, 1.0], [0.0, bad])
    with pytest.raises(ValueError, match="one dimension"):
        mean_cdf([0.0, 1.0], [[0.0]])


def test_tails__great_and_small_magnitudes():
    for scale in (1e300, 1e-300, 5e-324):
        values = np.array([-3.0, 1.0, 2.0, 0.0]) * scale
        assert parts(mean_tails(values)) == pytest.approx(
            parts(mean_tails([-3.0, 1.0, 2.0, 0.0])), abs=1e-15
        )
    assert isinstance(mean_tails([1.7e308, -1.7e308, 1e308], -1.7e308), Tails)
