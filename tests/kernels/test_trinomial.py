"""Three equally spaced values: their own recurrence against integers, scipy and the transform."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import trinomial
from ragcore_kernels._jit import JIT
from ragcore_kernels.histogram import count_few, histogram
from ragcore_kernels.lattice import Lattice, prepare
from ragcore_kernels.resample import TIE, interval_at, mean_interval
from ragcore_kernels.spectrum import lattice_ends, lattice_spectrum
from ragcore_kernels.trinomial import few_lattice_ends, few_window, window_of
from reference_resample import convolved
from reference_tails import convolved_pmf, multinomial_means, quantile_error, quantiles_of

COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")
LEVELS = [0.1, 0.5, 0.9, 0.95, 0.99, 0.9999]


def on_points(counts):
    points = np.arange(len(counts))
    return Lattice(Fraction(0), Fraction(1), points, np.array(counts))


def laid_out(counts, values=(0.0, 1.0, 2.0)):
    return np.repeat(np.array(values[: len(counts)]), counts)


def few(array):
    found, counts = np.empty(3), np.empty(3, np.int64)
    kinds = int(count_few(array, found, counts))
    return kinds, found[: max(kinds, 0)].tolist(), counts[: max(kinds, 0)].tolist()


# --- recognition


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1_000])
def test_count_few__counts_up_to_three_values(n):
    rng = np.random.default_rng(n)
    for values in ([0.5], [1.0, -1.0], [0.3, -7.0, 1e300]):
        array = np.array(values)[rng.integers(0, len(values), n)]
        kinds, counts = np.unique(array, return_counts=True)
        assert few(array) == (kinds.size, kinds.tolist(), counts.tolist())


def test_count_few__refuses_a_fourth_value_wherever_it_comes():
    for at in (0, 3, 255, 256, 700):
        array = np.tile([0.0, 1.0, 2.0], 300)
        array[at] = 3.0
        assert few(array)[0] == -1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_count_few__refuses_what_is_not_finite(bad):
    for at in (0, 5, 500):
        array = np.zeros(600)
        array[at] = bad
        assert few(array)[0] == -1


def test_count_few__nothing_and_zeros_of_both_signs():
    assert few(np.empty(0)) == (0, [], [])
    kinds, found, counts = few(np.array([-0.0, 0.0, -0.0]))
    assert (kinds, counts) == (1, [3])
    assert math.copysign(1, found[0]) == 1


# --- probabilities


@pytest.mark.parametrize(
    "counts",
    [(1, 1), (2, 1, 3), (1, 10, 1), (11, 1), (1, 11), (5, 1, 6), (20, 1, 3), (1, 1, 30), (30, 1, 1),
     (40, 1, 40), (1, 77, 2), (100, 1, 99), (13, 120, 67), (1, 198, 1), (199, 1)],
)  # fmt: skip
def test_probabilities__relative_error_against_integers(counts):
    pmf = convolved_pmf(laid_out(counts).astype(int).tolist(), sum(counts))
    exact = {int(x * sum(counts) ** 2): p for x, p in pmf.items()}
    window = window_of(on_points(counts))
    for i, found in enumerate(window.probabilities.tolist()):
        wanted = float(exact.pop(window.first + i, 0))
        assert found == pytest.approx(wanted, rel=2e-13, abs=1e-300)
    assert sum(exact.values()) < 1e-20  # outside the window


@COMPILED
@pytest.mark.parametrize("counts", [(500, 1, 499), (99, 300, 1)])
def test_probabilities__many_cases_relative_error(counts):
    n = sum(counts)
    width = (n**n).bit_length() + 1
    power = sum(count << (width * i) for i, count in enumerate(counts)) ** n
    window = window_of(on_points(counts))
    mask = (1 << width) - 1
    for i, found in enumerate(window.probabilities.tolist()):
        wanted = ((power >> (width * (window.first + i))) & mask) / n**n
        assert found == pytest.approx(wanted, rel=1e-12)


def test_window__of_few_events_reaches_far_enough():
    out = np.empty(2, np.int64)
    few_window(99_999, 1, 0, out)
    assert out[0] == 0
    assert out[1] > 30  # a Poisson law of mean 1 has 1e-32 beyond; 12 deviations would end at 13


@COMPILED
def test_probabilities__hundred_thousand_cases_equal_the_binomial():
    stats = pytest.importorskip("scipy.stats")
    for hits in (1, 7, 1_234, 50_000):
        window = window_of(on_points((100_000 - hits, hits)))
        sums = np.arange(window.first, window.first + window.probabilities.size)
        wanted = stats.binom.pmf(sums, 100_000, hits / 100_000)
        assert np.abs(window.probabilities - wanted).max() < 1e-15
        mirrored = window_of(on_points((hits, 100_000 - hits)))
        assert mirrored.first + mirrored.probabilities.size - 1 == 100_000 - window.first
        assert mirrored.probabilities[::-1] == pytest.approx(window.probabilities, rel=1e-11)


def test_probabilities__of_rare_events_equal_decimals():
    with localcontext(prec=60):
        for hits in (1, 7, 40):
            window = window_of(on_points((100_000 - hits, hits)))
            share = Decimal(hits) / 100_000
            for k in range(20):
                wanted = math.comb(100_000, k) * share**k * (1 - share) ** (100_000 - k)
                assert window.probabilities[k] == pytest.approx(float(wanted), rel=1e-14)


# --- intervals


def both_ways(counts, lower, upper):
    lattice = on_points(counts)
    prepared = prepare(histogram(laid_out(counts)))
    spectrum = lattice_spectrum(prepared)
    lower, upper = lower * (1 - TIE), upper * (1 - TIE)
    return few_lattice_ends(lattice, lower, upper), lattice_ends(lattice, spectrum, lower, upper)


shapes = st.one_of(
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60)),
    st.tuples(st.just(1), st.integers(1, 200), st.just(1)),
    st.tuples(st.integers(1, 200), st.just(1), st.integers(1, 200)),
)
shares = st.one_of(st.sampled_from([(1 - level) / 2 for level in LEVELS]), st.floats(1e-9, 0.999))


@given(shapes, shares, shares)
@settings(deadline=None, derandomize=True, max_examples=300 if JIT else 20)
def test_ends__equal_those_of_the_transform(counts, lower, upper):
    found, wanted = both_ways(counts, lower, upper)
    assert found == wanted


@COMPILED
@given(
    st.tuples(*[st.one_of(st.integers(1, 9), st.integers(1, 30_000))] * 3), st.booleans(), shares
)
@settings(deadline=None, derandomize=True, max_examples=150)
def test_ends__of_many_cases_equal_those_of_the_transform(counts, two, share):
    found, wanted = both_ways(counts[:2] if two else counts, share, share)
    assert found == wanted


@COMPILED
@pytest.mark.parametrize("values", [(-1, 0, 1), (0, 1), (-1, 1), (3, 5, 7)])
def test_interval__equals_integers_to_200_cases(values):
    rng = np.random.default_rng(3)
    for n in (2, 3, 9, 31, 100, 200):
        numerators = np.array(values)[rng.integers(0, len(values), n)]
        numerators[:2] = values[:2]
        for level in ("0.5", "0.9", "0.95", "0.99"):
            wanted = convolved(numerators.tolist(), 3, level)
            found = mean_interval(numerators / 3, float(level))
            assert (found.low, found.high) == tuple(w.numerator / w.denominator for w in wanted)


def test_interval__of_thirds_and_tenths_stands_for_the_rationals():
    for values in ([0.1, 0.2, 0.3], [1 / 3, 2 / 3, 1.0], [-0.3, 0.0, 0.1 + 0.2]):
        found = mean_interval(values, 0.9)
        steps = mean_interval([0.0, 1.0, 2.0], 0.9)
        exact = [Fraction(v).limit_denominator(100) for v in values]
        for end, step in ((found.low, steps.low), (found.high, steps.high)):
            wanted = exact[0] + (exact[1] - exact[0]) * Fraction(step).limit_denominator(100)
            assert end == wanted.numerator / wanted.denominator


def test_interval__unequal_spacing_takes_the_other_path(monkeypatch):
    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(trinomial, "few_ends", fail)
    found = mean_interval([0.0, 1.0, 3.0, 1.0])
    assert found.method == "exact"
    with pytest.raises(AssertionError):
        mean_interval([0.0, 1.0, 2.0])


def test_interval__takes_any_layout_and_kind():
    values = np.array([0.0, 1.0, 1.0, 2.0, 0.0, 1.0])
    wanted = mean_interval(values)
    frozen = values.copy()
    frozen.flags.writeable = False
    swapped = values.astype(">f8")
    for other in (frozen, swapped, np.repeat(values, 2)[::2], values.astype(np.int8), list(values)):
        assert mean_interval(other) == wanted


def test_quantiles__at_any_pair_of_probabilities():
    rng = np.random.default_rng(0)
    for points in ([0, 1], [-1, 0, 1], [0, 1, 5], [0, 2, 3, 4]):
        numerators = np.array(points)[rng.integers(0, len(points), 9)]
        numerators[: len(points)] = points
        pmf = convolved_pmf(numerators.tolist(), 1)
        for lower, upper in ((0.01, 0.3), (0.3, 0.01), (0.7, 0.1), (0.999, 1e-9), (0.5, 0.5)):
            found = interval_at(numerators.astype(float), lower, upper)
            wanted = quantiles_of(pmf, lower, upper)
            assert (found.low, found.high) == tuple(map(float, wanted))


@pytest.mark.parametrize("bad", [0.0, 1.0, -1.0, math.nan])
def test_quantiles__reject_what_is_no_probability(bad):
    with pytest.raises(ValueError, match="expected a number between 0 and 1"):
        interval_at([0.0, 1.0], bad, 0.5)
    with pytest.raises(ValueError, match="expected a number between 0 and 1"):
        interval_at([0.0, 1.0], 0.5, bad)


@COMPILED
@pytest.mark.parametrize("n", [300, 20_000, 100_000])
def test_interval__is_inside_a_million_random_resamples(n):
    values = np.array([-1.0, 0.0, 1.0])[np.random.default_rng(n).choice(3, n, p=[0.1, 0.7, 0.2])]
    found = mean_interval(values)
    means = multinomial_means(values, 1_000_000, 1)
    error = quantile_error(0.025, means.size)
    assert np.mean(means <= found.low + 0.5 / n) >= 0.025 - error
    assert np.mean(means < found.low - 0.5 / n) < 0.025 + error
    assert np.mean(means >= found.high - 0.5 / n) >= 0.025 - error
    assert np.mean(means > found.high + 0.5 / n) < 0.025 + error
