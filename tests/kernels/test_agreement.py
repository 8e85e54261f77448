"""Coefficients of agreement, against published values and fractions."""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_judges as reference
from ragcore_kernels import coincidences
from ragcore_kernels._jit import JIT
from ragcore_kernels.agreement import (
    SCALES,
    agreement,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
)
from ragcore_kernels.coincidences import MAX_CATEGORIES

COMPILED = pytest.mark.skipif(not JIT, reason="too slow without compilation")
PARADOX = [[1, 1]] * 18 + [[1, 0], [0, 1]]

TEXTBOOK = ("*****34121133*3", "1*213343*******", "**21344*21133*4")
"""Three coders of fifteen units: the example of Krippendorff's alpha in textbooks."""

RAW = (
    "1 1 . 1|2 2 3 2|3 3 3 3|3 3 3 3|2 2 2 2|1 2 3 4|4 4 4 4|1 1 2 1|2 2 2 2|. 5 5 5|. . 1 1|"
    ". . 3 ."
)
"""Four coders of twelve items: Gwet's data set of raw ratings."""

ABSTRACTORS = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
"""Two coders, three categories, a hundred items: Gwet's table."""


def textbook():
    return np.array([[-1 if c == "*" else int(c) - 1 for c in row] for row in TEXTBOOK]).T


def raw():
    return [[-1 if c == "." else int(c) - 1 for c in row.split()] for row in RAW.split("|")]


def listed(table):
    return [(a, b) for a, row in enumerate(table) for b, n in enumerate(row) for _ in range(n)]


def near(wanted):
    """The double nearest to a fraction, as far as fourteen digits of one less it go."""
    if wanted is None:
        return pytest.approx(math.nan, nan_ok=True)
    return pytest.approx(float(wanted), rel=1e-14, abs=2e-14 * float(1 + abs(1 - wanted)))


coders = st.integers(0, 5)
matrices = st.tuples(coders, st.integers(1, 5)).flatmap(
    lambda p: st.lists(
        st.lists(st.integers(-1, p[1] - 1), min_size=p[0], max_size=p[0]), max_size=12
    ).map(lambda rows: (np.array(rows, np.int64).reshape(len(rows), p[0]), p[1]))
)


# --- published values


def test_paradox__is_what_a_report_must_show():
    found = agreement(PARADOX, 2)
    assert found.observed == 0.9
    assert found.kappa == pytest.approx(-0.0526, abs=5e-5)
    assert found.alpha == pytest.approx(-0.0263, abs=5e-5)
    assert found.ac1 == pytest.approx(0.8895, abs=5e-5)
    assert found.prevalence == pytest.approx((0.05, 0.95))
    assert found.kappa == float(Fraction(-1, 19))
    assert (found.n_items, found.n_single, found.n_uncoded, found.n_coders) == (20, 0, 0, 2)


@pytest.mark.parametrize(
    ("scale", "wanted"), [("nominal", 0.691358), ("interval", 0.810845), ("ordinal", 0.806721)]
)
def test_alpha__of_the_textbook(scale, wanted):
    assert krippendorff_alpha(textbook(), scale) == pytest.approx(wanted, abs=5e-7)


def test_raw_ratings__have_the_published_coefficients():
    found = agreement(raw(), 5)
    assert found.observed == pytest.approx(0.8181818, abs=5e-8)
    assert found.ac1 == pytest.approx(0.77544, abs=5e-6)
    assert found.alpha == pytest.approx(0.74342, abs=5e-6)
    assert (found.n_items, found.n_single) == (11, 1)
    assert math.isnan(found.kappa)  # four coders


def test_table__has_the_published_coefficients():
    found = agreement(listed(ABSTRACTORS), 3)
    assert found.kappa == pytest.approx(0.7964094, abs=5e-8)
    assert found.ac1 == pytest.approx(0.8493305, abs=5e-8)
    assert found.alpha == pytest.approx(0.7972585, abs=5e-8)
    assert found.observed == 0.89


# --- fractions


@given(matrices)
def test_alpha__equals_fractions(drawn):
    codes, _ = drawn
    for scale in SCALES:
        assert krippendorff_alpha(codes, scale) == near(reference.alpha(codes.tolist(), scale))


@given(matrices, st.lists(st.integers(-9, 9), min_size=5, max_size=5))
def test_alpha__of_values_equals_fractions(drawn, values):
    codes, _ = drawn
    places = [Fraction(v, 4) for v in values]
    found = krippendorff_alpha(codes, "interval", [float(v) for v in places])
    assert found == near(reference.alpha(codes.tolist(), "interval", places))


@given(matrices)
def test_ac1__equals_fractions(drawn):
    codes, n_categories = drawn
    for more in (0, 2):
        wanted = reference.ac1(codes.tolist(), n_categories + more)
        assert gwet_ac1(codes, n_categories + more) == near(wanted)


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), max_size=20))
def test_kappa__is_the_nearest_double(rows):
    codes = np.array(rows, np.int64).reshape(-1, 2)
    for weights, power in (("none", None), ("linear", 1), ("quadratic", 2)):
        wanted, found = reference.kappa(rows, power), cohen_kappa(codes, weights)
        assert math.isnan(found) if wanted is None else found == float(wanted)


def test_preferences__of_two_people(shared_data):
    """Grades -2 to 2 by two annotators of 280 pairs of answers."""
    table = pq.read_table(shared_data / "ragchecker" / "preferences.parquet")
    rows = sorted(zip(*(table[c].to_pylist() for c in ("instance_id", "annotator", "overall")),
                      strict=True))  # fmt: skip
    codes = [[a[2] + 2, b[2] + 2] for a, b in zip(rows[::2], rows[1::2], strict=True)]
    found = agreement(codes, 5, "ordinal")
    assert found.n_items == 280
    assert found.kappa == near(reference.kappa(codes))
    assert found.weighted_kappa == near(reference.kappa(codes, 2))
    assert found.alpha == near(reference.alpha(codes, "ordinal"))
    assert found.ac1 == near(reference.ac1(codes, 5))
    assert found.kappa < found.observed < found.weighted_kappa


# --- identities


@given(matrices)
def test_agreement__is_that_of_its_parts(drawn):
    codes, n_categories = drawn
    for scale in SCALES:
        found = agreement(codes, n_categories, scale)
        assert found.alpha == near_same(krippendorff_alpha(codes, scale))
        assert found.ac1 == near_same(gwet_ac1(codes, n_categories))
        if codes.shape[1] == 2:
            assert found.kappa == near_same(cohen_kappa(codes))
        assert found.n_items + found.n_single + found.n_uncoded == len(codes)
        assert len(found.prevalence) == n_categories


def near_same(value):
    return pytest.approx(value, rel=1e-14, abs=1e-14, nan_ok=True)


@given(matrices, st.randoms(use_true_random=False))
def test_order__of_items_and_coders_does_not_matter(drawn, random):
    codes, n_categories = drawn
    items, columns = list(range(codes.shape[0])), list(range(codes.shape[1]))
    random.shuffle(items)
    random.shuffle(columns)
    one = asdict(agreement(codes, n_categories, "ordinal"))
    other = asdict(agreement(codes[items][:, columns], n_categories, "ordinal"))
    assert str(one) == str(other)  # nan and all


def test_perfect_agreement__is_1():
    codes = np.repeat(np.arange(12)[:, None] % 4, 3, axis=1)
    for scale in SCALES:
        assert krippendorff_alpha(codes, scale) == 1.0
    assert gwet_ac1(codes, 4) == 1.0
    assert [cohen_kappa(codes[:, :2], w) for w in ("none", "linear", "quadratic")] == [1.0] * 3


def test_binary_weights__change_nothing():
    assert cohen_kappa(PARADOX, "linear") == cohen_kappa(PARADOX, "quadratic")
    assert cohen_kappa(PARADOX, "linear") == cohen_kappa(PARADOX)


# --- not defined


def test_one_category__is_na_but_for_ac1():
    codes = [[1, 1]] * 9
    found = agreement(codes, 2)
    assert math.isnan(found.kappa)
    assert math.isnan(found.alpha)
    assert found.observed == found.ac1 == 1.0
    assert math.isnan(gwet_ac1([[0, 0]] * 9, 1))
    assert math.isnan(krippendorff_alpha([[0, 1], [1, 0]], "interval", [3.0, 3.0]))


@pytest.mark.parametrize(
    "codes",
    [np.empty((0, 2)), np.empty((0, 0)), np.empty((3, 0)), [[-1, -1]], [[0, -1], [-1, 1]]],
    ids=["no items", "nothing", "no coders", "uncoded", "single"],
)
def test_nothing_coded_twice__is_na(codes):
    found = agreement(codes, 2)
    assert found.n_items == 0
    assert all(map(math.isnan, (found.observed, found.kappa, found.alpha, found.ac1)))
    single = found.n_single > 0
    assert all(math.isnan(share) != single for share in found.prevalence)


def test_single_codes__are_counted_and_left_out():
    more = [*PARADOX, [0, -1], [-1, 0], [-1, -1]]
    one, other = agreement(PARADOX, 2), agreement(more, 2)
    assert (other.n_items, other.n_single, other.n_uncoded) == (20, 2, 1)
    assert (other.observed, other.kappa, other.alpha) == (one.observed, one.kappa, one.alpha)
    assert other.prevalence[0] > one.prevalence[0]


# --- hostile


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        ([[0, 2]], r"codes\[0, 1\] is 2; expected a whole number from -1 to 1"),
        ([[0, 1], [-2, 0]], r"codes\[1, 0\] is -2"),
        ([[0.0, 1.0]], "codes are float64; expected whole numbers"),
        ([["a", "b"]], "codes are <U1"),
        ([0, 1], r"shape \(2,\); expected 2 dimensions"),
        (np.array([[2**64 - 1, 0]], np.uint64), "is 18446744073709551615"),
    ],
)  # fmt: skip
def test_agreement__rejects_codes(codes, text):
    for call in (agreement, gwet_ac1):
        with pytest.raises(ValueError, match=text):
            call(codes, 2)


def test_agreement__rejects_settings():
    for n in (0, -1, MAX_CATEGORIES + 1):
        with pytest.raises(ValueError, match=f"n_categories is {n}"):
            gwet_ac1(PARADOX, n)
    with pytest.raises(ValueError, match="scale is 'ratio'; expected one of nominal"):
        krippendorff_alpha(PARADOX, "ratio")
    with pytest.raises(ValueError, match="weights is 'cubic'"):
        cohen_kappa(PARADOX, "cubic")
    with pytest.raises(ValueError, match="3 columns; expected two"):
        cohen_kappa(textbook())
    with pytest.raises(ValueError, match="3 values for 2 categories"):
        agreement(PARADOX, 2, "interval", [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"values\[1\] is inf"):
        krippendorff_alpha(PARADOX, "interval", [1.0, math.inf])
    with pytest.raises(ValueError, match=r"codes\[0, 0\] is 1; expected a whole"):
        krippendorff_alpha(PARADOX, "interval", [1.0])


def test_types__of_codes_do_not_matter():
    for kind in (np.int8, np.uint16, np.int64, np.bool_):
        assert agreement(np.array(PARADOX, kind), 2) == agreement(PARADOX, 2)
    assert agreement(np.asfortranarray(PARADOX), 2).alpha == agreement(PARADOX, 2).alpha
    assert agreement(np.array(PARADOX)[::-1], 2).alpha == agreement(PARADOX, 2).alpha


def test_values__may_be_extreme():
    codes = [[0, 1], [1, 1], [0, 0], [2, 0]]
    plain = krippendorff_alpha(codes, "interval", [0.0, 1.0, 2.0])
    for unit in (1e-300, 1e300, 8e307):
        assert krippendorff_alpha(codes, "interval", [0.0, unit, 2 * unit]) == near_same(plain)
    assert krippendorff_alpha(codes, "interval", [-1e308, 0.0, 1e308]) == near_same(plain)


def test_table__that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(coincidences, "_MAX_CELLS", 3)
    with pytest.raises(ValueError, match="2 categories with 1 numbers of codes"):
        krippendorff_alpha(PARADOX)


@COMPILED
def test_large__equals_a_table_of_counts():
    rng = np.random.default_rng(5)
    codes = rng.integers(-1, 4, (300_000, 2))
    codes[:, 1] = np.where(rng.random(300_000) < 0.6, codes[:, 0], codes[:, 1])
    both = codes[(codes >= 0).all(axis=1)]
    table = np.bincount(both[:, 0] * 4 + both[:, 1], minlength=16).reshape(4, 4).tolist()
    n = sum(map(sum, table))
    chance = sum(sum(table[k]) * sum(row[k] for row in table) for k in range(4))
    agreed = sum(table[k][k] for k in range(4))
    assert cohen_kappa(codes) == float(Fraction(n * agreed - chance, n * n - chance))
    found = agreement(codes, 4, "ordinal")
    assert found.observed == pytest.approx(agreed / n, rel=1e-14)
