"""Risk-coverage curves and break-even prices, against every order of ties and by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore_kernels.selective import (
    BreakEven,
    OperatingPoint,
    break_even,
    expected_value,
    risk_coverage,
)
from reference_judges import risks

cases = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.integers(-2, 4).map(lambda v: Fraction(v, 4))),
    min_size=1,
    max_size=6,
)
binary = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=30)
shares = st.integers(0, 20).map(lambda v: v / 20)
prices = st.integers(0, 12).map(lambda v: v / 4)


def curve(rows):
    return risk_coverage([c for c, _ in rows], [float(v) for _, v in rows])


def same(one, other):
    return repr(one) == repr(other)


# --- the curve


def test_curve__golden():
    found = risk_coverage([0.9, 0.8, 0.8, 0.6, 0.5], [0, 0, 1, 1, 0])
    assert found.coverage.tolist() == [0.2, 0.6, 0.8, 1.0]
    assert found.risk.tolist() == pytest.approx([0, 1 / 3, 0.5, 0.4], abs=1e-15)
    assert found.confidence.tolist() == [0.9, 0.8, 0.6, 0.5]
    assert found.aurc == pytest.approx(0.296667, abs=5e-7)
    assert found.oracle_aurc == pytest.approx(0.13, abs=1e-15)
    assert found.e_aurc == pytest.approx(0.166667, abs=5e-7)
    assert (found.n, found.n_unranked) == (5, 0)


@given(cases)
def test_curve__equals_the_mean_over_orders(rows):
    found = curve(rows)
    wanted = risks([c for c, _ in rows], [v for _, v in rows])
    assert found.aurc == pytest.approx(float(sum(wanted) / len(rows)), abs=1e-14)
    ends = [round(c * len(rows)) - 1 for c in found.coverage]
    assert found.risk.tolist() == pytest.approx([float(wanted[m]) for m in ends], abs=1e-15)
    best = risks([-float(v) for _, v in rows], [v for _, v in rows])
    assert found.oracle_aurc == pytest.approx(float(sum(best) / len(rows)), abs=1e-14)


@given(binary)
def test_oracle__of_right_and_wrong_has_its_formula(rows):
    n, k = len(rows), sum(v for _, v in rows)
    wanted = sum(Fraction(max(0, m - (n - k)), m) for m in range(1, n + 1)) / n
    found = curve(rows)
    assert found.oracle_aurc == pytest.approx(float(wanted), rel=1e-13, abs=1e-15)
    assert found.e_aurc >= -1e-15
    assert found.risk[-1] == k / n
    assert found.coverage[-1] == 1.0


@given(binary, st.randoms(use_true_random=False))
def test_curve__does_not_depend_on_the_order_or_on_the_unit(rows, random):
    found = curve(rows)
    random.shuffle(rows)
    assert same(curve(rows), found)
    other = curve([(2 * c - 1, v) for c, v in rows if c > 1e-9 or c == 0])
    if len({2 * c - 1 for c, _ in rows}) == len({c for c, _ in rows}) and other.n == found.n:
        assert other.risk.tolist() == found.risk.tolist()


def test_curve__of_one_tie_is_flat():
    found = risk_coverage([0.5] * 8, [1, 0, 0, 1, 0, 0, 0, 0])
    assert (found.coverage.tolist(), found.risk.tolist()) == ([1.0], [0.25])
    assert found.aurc == pytest.approx(0.25, abs=1e-15)


def test_zeros__of_either_sign_are_one_tie():
    assert risk_coverage([0.0, -0.0], [1, 0]).coverage.tolist() == [1.0]


def test_nan_confidence__is_counted_apart():
    found = risk_coverage([0.9, math.nan, 0.8, math.nan], [0, 1, 1, 1])
    plain = risk_coverage([0.9, 0.8], [0, 1])
    assert (found.n, found.n_unranked) == (2, 2)
    assert found.coverage.tolist() == plain.coverage.tolist()
    assert found.aurc == plain.aurc


def test_infinite_confidence__is_ranked():
    found = risk_coverage([math.inf, -math.inf, 0.0, math.inf], [0, 1, 0, 1])
    assert found.coverage.tolist() == [0.5, 0.75, 1.0]
    assert found.confidence.tolist() == [math.inf, 0.0, -math.inf]


@pytest.mark.parametrize("confidence", [[], [math.nan]])
def test_nothing_ranked__is_na(confidence):
    found = risk_coverage(confidence, [1.0] * len(confidence))
    assert all(map(math.isnan, (found.aurc, found.oracle_aurc, found.e_aurc)))
    assert found.coverage.size == found.risk.size == found.n == 0
    assert found.n_unranked == len(confidence)


@pytest.mark.parametrize(
    ("confidence", "loss", "text"),
    [
        ([0.5], [1, 0], "1 confidences and 2 losses"),
        ([0.5], [math.nan], r"loss\[0\] is nan; expected finite numbers"),
        ([[0.5]], [1], r"confidence have shape \(1, 1\)"),
        (["sure"], [1], "confidence are no numbers"),
        ([0.5, 0.4], [1e308, 1e308], "beyond the largest double"),
    ],
)
def test_curve__rejects(confidence, loss, text):
    with pytest.raises(ValueError, match=text):
        risk_coverage(confidence, loss)


def test_curve__large():
    rng = np.random.default_rng(2)
    confidence, loss = rng.integers(0, 500, 100_000) / 500, rng.integers(0, 2, 100_000)
    found = risk_coverage(confidence, loss)
    assert found.coverage.size == 500
    for at in (0, 250, 499):
        answered = confidence >= found.confidence[at]
        assert found.risk[at] == pytest.approx(loss[answered].mean(), rel=1e-13)
        assert found.coverage[at] == answered.mean()


# --- prices


def test_break_even__of_two_published_points():
    cautious, bold = OperatingPoint(0.4, 0.08), OperatingPoint(0.9, 0.14)
    assert [float(s) for s in cautious.shares()] == pytest.approx([0.368, 0.032, 0.6], abs=1e-15)
    assert [float(s) for s in bold.shares()] == pytest.approx([0.774, 0.126, 0.1], abs=1e-15)
    found = break_even(cautious, bold)
    assert found.text == "the cautious system wins iff c > 4.319 v + 5.319 a"
    assert found.v_factor == float(Fraction(406, 94))
    assert found.a_factor == float(Fraction(500, 94))
    assert found.cautious == 0
    swapped = break_even(bold, cautious)
    assert (swapped.text, swapped.cautious) == (found.text, 1)


def test_value__by_hand():
    point = OperatingPoint(0.4, 0.08)
    assert expected_value(point, 1.0, 4.0, 0.5) == pytest.approx(0.368 - 0.128 - 0.3, abs=1e-15)
    assert expected_value(OperatingPoint(0.0, math.nan), 1.0, 9.0, 0.5) == -0.5
    assert expected_value(OperatingPoint(1.0, 0.0), 2.0, 9.0, 0.5) == 2.0


@given(shares, shares, shares, shares, prices, prices, prices)
def test_break_even__agrees_with_the_values(phi, r, psi, q, v, c, a):
    points = OperatingPoint(phi, r), OperatingPoint(psi, q)
    found = break_even(*points)
    worth = [expected_value(point, v, c, a) for point in points]
    gain = worth[found.cautious] - worth[1 - found.cautious]
    assert points[found.cautious].coverage <= points[1 - found.cautious].coverage
    if math.isnan(found.v_factor):
        assert found.wrong == 0.0
        assert gain == pytest.approx(found.right * v - found.abstained * a, abs=1e-12)
    else:
        margin = (c - found.v_factor * v - found.a_factor * a) * -found.wrong
        assert gain == pytest.approx(margin, abs=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ((0.5, 0.2), (0.5, 0.2), "both systems are worth the same at any price"),
        ((0.5, 0.2), (0.8, 0.125), "the cautious system wins iff -0.300 v - 0.300 a > 0; c does"),
        ((0.5, 0.4), (0.8, 0.125), "the cautious system wins iff c < -4.000 v - 3.000 a"),
        ((0.5, 0.1), (0.5, 0.2), "the cautious system wins iff c > -1.000 v"),
        ((0.0, math.nan), (0.5, 0.1), "the cautious system wins iff c > 9.000 v + 10.000 a"),
        ((0.0, math.nan), (0.0, 0.7), "both systems are worth the same"),
        ((0.5, 0.0), (0.75, 1 / 3), "the cautious system wins iff c > 1.000 a"),
        ((3 / 9, 1 / 3), (2 / 9, 1 / 2), "the cautious system wins iff -0.111 v - 0.111 a > 0"),
    ],
)
def test_break_even__in_words(first, second, text):
    found = break_even(OperatingPoint(*first), OperatingPoint(*second))
    assert found.text.startswith(text)
    assert isinstance(found, BreakEven)


@pytest.mark.parametrize(
    ("coverage", "risk", "text"),
    [
        (1.2, 0.0, "coverage is 1.2"), (math.nan, 0.0, "coverage is nan"),
        (0.5, -0.1, "risk is -0.1"), (0.5, math.nan, "risk is nan"),
    ],
)  # fmt: skip
def test_points__reject(coverage, risk, text):
    with pytest.raises(ValueError, match=text):
        OperatingPoint(coverage, risk)


def test_prices__must_be_finite():
    with pytest.raises(ValueError, match=r"prices\[1\] is inf"):
        expected_value(OperatingPoint(0.5, 0.5), 1.0, math.inf)
