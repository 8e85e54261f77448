"""The prediction-powered mean, against published values, fractions and scipy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore_kernels.ppi import FEW, ppi_mean
from reference_judges import ppi

Y = [int(c) for c in "1011011011"]
F = [int(c) for c in "1111010011"]
OTHERS = [1] * 68 + [0] * 32

scores = st.integers(-3, 6).map(lambda v: Fraction(v, 4))
labelled = st.lists(st.tuples(scores, scores), min_size=2, max_size=10)
unlabelled = st.lists(scores, min_size=2, max_size=12)
weight = st.sampled_from([None, 0, Fraction(1, 4), 1])


def floats(values):
    return [float(v) for v in values]


def shown(found):
    return found.mean, found.low, found.high


# --- the golden example


@pytest.mark.parametrize(
    ("lam", "wanted"),
    [
        (1, (0.68, 0.3881, 0.9719)),
        (None, (0.6909, 0.4446, 0.9371)),
        (0, (0.70, 0.4160, 0.9840)),
    ],
    ids=["ARES", "PPI++", "classical"],
)
def test_ppi__golden(lam, wanted):
    found = ppi_mean(Y, F, OTHERS, lam)
    assert shown(found) == pytest.approx(wanted, abs=5e-5)
    assert (found.n, found.n_unlabelled, found.reason) == (10, 100, "")


def test_weight__golden():
    assert ppi_mean(Y, F, OTHERS).lam == pytest.approx(0.456762, abs=5e-7)
    assert ppi_mean(Y, F, OTHERS, 1).lam == 1.0


# --- fractions and scipy


@given(labelled, unlabelled, weight)
def test_ppi__equals_fractions(rows, others, lam):
    y, f = [a for a, _ in rows], [b for _, b in rows]
    wanted_lam, mean, square = ppi(y, f, others, lam)
    found = ppi_mean(floats(y), floats(f), floats(others), None if lam is None else float(lam))
    assert found.lam == pytest.approx(float(wanted_lam), rel=1e-13, abs=1e-14)
    assert found.mean == pytest.approx(float(mean), rel=1e-12, abs=1e-14)
    assert found.se**2 == pytest.approx(float(square), rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_interval__takes_the_normal_quantile(level):
    stats = pytest.importorskip("scipy.stats")
    found = ppi_mean(Y, F, OTHERS, 0, level)
    se = np.std(Y) / math.sqrt(10)
    assert found.se == pytest.approx(se, rel=1e-14)
    wanted = stats.norm.interval(level, np.mean(Y), se)
    assert (found.low, found.high) == pytest.approx(wanted, rel=1e-12)


@given(labelled, unlabelled)
def test_tuned_weight__counts_as_any_other(rows, others):
    y, f = floats(a for a, _ in rows), floats(b for _, b in rows)
    tuned = ppi_mean(y, f, floats(others))
    assert 0.0 <= tuned.lam <= 1.0
    fixed = ppi_mean(y, f, floats(others), tuned.lam)
    assert shown(fixed) == shown(tuned)


@given(labelled, unlabelled, st.randoms(use_true_random=False))
def test_order__does_not_matter(rows, others, random):
    found = ppi_mean(floats(a for a, _ in rows), floats(b for _, b in rows), floats(others))
    random.shuffle(rows)
    random.shuffle(others)
    again = ppi_mean(floats(a for a, _ in rows), floats(b for _, b in rows), floats(others))
    assert found == again


def test_perfect_judge__gets_the_whole_weight_but_for_the_share_of_labels():
    f = [0.0, 1.0] * 20
    found = ppi_mean(f, f, [0.0, 1.0] * 2_000)
    assert 0.97 < found.lam < 1.0
    assert found.se < 0.2 * ppi_mean(f, f, [0.0, 1.0] * 2_000, 0).se
    assert found.warning == ""


@pytest.mark.parametrize("f", [[1.0] * 10, [1 - v for v in Y]], ids=["constant", "contrary"])
def test_useless_judge__gets_no_weight(f):
    others = [1.0] * 50 if f[0] == f[1] == f[4] else OTHERS
    found = ppi_mean(Y, f, others)
    assert found.lam == 0.0
    assert shown(found) == shown(ppi_mean(Y, f, others, 0))


# --- cases


def test_cases__are_averaged_first():
    y, f, others = [1, 0, 1, 1, 0], [1, 1, 1, 0, 0], [1, 0, 1, 1]
    cases = [7, 7, 3, 3, 5], [9, 9, 1, 2]
    found = ppi_mean(y, f, others, 1, cases=cases)
    wanted = ppi_mean([0.5, 1.0, 0.0], [1.0, 0.5, 0.0], [0.5, 1.0, 1.0], 1)
    assert found == wanted
    assert (found.n, found.n_unlabelled) == (3, 3)


def test_cases__of_one_score_each_change_nothing():
    codes = np.arange(10) * 3, 1_000 - np.arange(100)
    assert ppi_mean(Y, F, OTHERS, cases=codes) == ppi_mean(Y, F, OTHERS)


def test_cases__repeated_scores_do_not_shorten_the_interval():
    codes = np.arange(10), np.arange(10, 110)
    thrice = [np.repeat(part, 3) for part in (Y, F, OTHERS)]
    found = ppi_mean(*thrice, cases=tuple(np.repeat(part, 3) for part in codes))
    assert found == ppi_mean(Y, F, OTHERS)
    assert ppi_mean(*thrice).se < found.se


@given(
    st.lists(st.tuples(scores, scores, st.integers(0, 3)), min_size=2, max_size=12),
    st.lists(st.tuples(scores, st.integers(4, 7)), min_size=2, max_size=12),
    st.randoms(use_true_random=False),
)
def test_cases__equal_fractions_in_any_order(rows, others, random):
    def nested():
        return ppi_mean(
            floats(y for y, _, _ in rows), floats(f for _, f, _ in rows),
            floats(v for v, _ in others), 0.25,
            cases=([c for _, _, c in rows], [c for _, c in others]),
        )  # fmt: skip

    def means(pairs):
        parts = {}
        for value, case in pairs:
            parts.setdefault(case, []).append(value)
        return [sum(values) / len(values) for _, values in sorted(parts.items())]

    found = nested()
    columns = means((y, c) for y, _, c in rows), means((f, c) for _, f, c in rows), means(others)
    _, mean, square = ppi(*columns, Fraction(1, 4))
    assert found.mean == pytest.approx(float(mean), rel=1e-12, abs=1e-14)
    if not found.reason:
        assert found.se**2 == pytest.approx(float(square), rel=1e-11, abs=1e-15)
    random.shuffle(rows)
    random.shuffle(others)
    assert repr(nested()) == repr(found)


def test_cases__on_both_sides_are_refused():
    with pytest.raises(ValueError, match="case 4 is labelled and unlabelled"):
        ppi_mean([1, 0], [1, 0], [1, 0], cases=([3, 4], [4, 5]))


# --- strata


def test_strata__are_weighted():
    strata = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1], [0] * 60 + [1] * 40
    for lam in (None, 0.0, 1.0):
        parts = [
            ppi_mean(Y[:5], F[:5], OTHERS[:60], lam), ppi_mean(Y[5:], F[5:], OTHERS[60:], lam)
        ]  # fmt: skip
        found = ppi_mean(Y, F, OTHERS, lam, strata=strata)
        assert found.mean == pytest.approx(0.6 * parts[0].mean + 0.4 * parts[1].mean, rel=1e-14)
        square = (0.6 * parts[0].se) ** 2 + (0.4 * parts[1].se) ** 2
        assert found.se == pytest.approx(math.sqrt(square), rel=1e-14)
        assert found.strata == tuple(parts)
        assert math.isnan(found.lam)
        assert (found.n, found.n_unlabelled) == (10, 100)
        again = ppi_mean(Y, F, OTHERS, lam, strata=strata, weights=[3, 2])
        assert shown(again) == pytest.approx(shown(found), rel=1e-14)


def test_strata__one_is_none():
    codes = np.full(10, 4), np.full(100, 4)
    found, plain = ppi_mean(Y, F, OTHERS, strata=codes), ppi_mean(Y, F, OTHERS)
    assert shown(found) == shown(plain)
    assert found.strata == (plain,)


def test_strata__without_labels_are_na_with_a_reason():
    found = ppi_mean(Y, F, OTHERS, strata=([0] * 10, [0] * 90 + [2] * 10))
    assert math.isnan(found.mean)
    assert math.isnan(found.low)
    assert found.reason == "stratum 2: no labelled case"
    weightless = ppi_mean(Y, F, OTHERS, strata=([0] * 10, [0] * 90 + [2] * 10), weights=[1, 0])
    assert weightless.mean == ppi_mean(Y, F, OTHERS[:90]).mean
    assert weightless.reason == ""


def test_strata__of_cases():
    y, f, others = [1, 0, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1]
    cases, strata = ([7, 7, 3, 5], [9, 9, 1, 2]), ([1, 1, 1, 0], [1, 1, 0, 0])
    found = ppi_mean(y, f, others, 0, cases=cases, strata=strata, weights=[1, 1])
    assert found.mean == pytest.approx((1.0 + 0.75) / 2)
    assert [part.n for part in found.strata] == [1, 2]
    assert found.reason == "stratum 0: one labelled case has no variance"
    with pytest.raises(ValueError, match=r"strata\[1\] is 0; expected one stratum for case 7"):
        ppi_mean(y, f, others, cases=cases, strata=([1, 0, 1, 0], [1, 1, 0, 0]))


# --- few or none


def test_few_labels__are_warned_of():
    assert ppi_mean(Y, F, OTHERS).warning.startswith("10 labelled cases, fewer than 30")
    assert ppi_mean(Y * 3, F * 3, OTHERS).warning == ""
    assert ppi_mean(Y * 2, F * 2, OTHERS, 0).warning
    assert FEW == 30


def test_nothing__is_na_with_a_reason():
    found = ppi_mean([], [], OTHERS)
    assert all(map(math.isnan, (*shown(found), found.se, found.lam)))
    assert (found.reason, found.warning) == ("no labelled case", "")
    assert ppi_mean([], [], []).reason == "no labelled case"
    found = ppi_mean(Y, F, [], 1)
    assert math.isnan(found.mean)
    assert found.reason == "no unlabelled case"
    found = ppi_mean([], [], [], strata=([], []))
    assert found.reason == "no unlabelled case to weigh the strata by"


def test_no_unlabelled__leaves_the_labels():
    assert shown(ppi_mean(Y, F, [])) == shown(ppi_mean(Y, F, [], 0)) == shown(
        ppi_mean(Y, F, OTHERS, 0)
    )  # fmt: skip


def test_one_case__has_no_interval():
    found = ppi_mean([1], [0], OTHERS, 1)
    assert found.mean == pytest.approx(1.68)
    assert math.isnan(found.low)
    assert found.reason == "one labelled case has no variance"
    found = ppi_mean(Y, F, [1], 1)
    assert math.isnan(found.se)
    assert found.reason == "one unlabelled case has no variance"
    assert not math.isnan(ppi_mean(Y, F, [1], 0).se)


# --- hostile


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([1], [1, 0], [1]), {}, "1 labels and 2 scores of the judge"),
        (([math.nan], [1], [1]), {}, r"labels\[0\] is nan; expected finite numbers"),
        (([1], [math.inf], [1]), {}, r"judged\[0\] is inf"),
        (([1], [1], [1, -math.inf]), {}, r"unlabelled\[1\] is -inf"),
        (([[1]], [1], [1]), {}, r"labels have shape \(1, 1\)"),
        ((["yes"], [1], [1]), {}, "labels are no numbers"),
        ((Y, F, OTHERS, 1.5), {}, "lam is 1.5"),
        ((Y, F, OTHERS, math.nan), {}, "lam is nan"),
        ((Y, F, OTHERS, 1, 95), {}, "level is 95"),
        ((Y, F, OTHERS), {"weights": [1]}, "weights without strata"),
        ((Y, F, OTHERS), {"cases": ([1], OTHERS)}, "1 cases for 10 scores"),
        ((Y, F, OTHERS), {"cases": (Y, None)}, "cases are missing"),
        ((Y, F, OTHERS), {"strata": (F, OTHERS), "weights": [1]}, "1 weights for 2 strata"),
        ((Y, F, OTHERS), {"strata": (F, OTHERS), "weights": [1, -1]}, "weights are negative"),
        ((Y, F, OTHERS), {"strata": (F, OTHERS), "weights": [0, 0]}, "weights are negative or"),
        ((Y, F, OTHERS), {"strata": ([0.5] * 10, OTHERS)}, "strata are float64"),
        (([1e308, -1e308], [1, 0], [1, 0]), {}, "beyond the largest double"),
        (([1.0, 0.0], [1e300, 0], [1e300, 0]), {}, "beyond the largest double"),
        (([1, 1], [1e308, 1e308], [1], 1), {"cases": ([0, 0], [1])}, "beyond the largest double"),
    ],
)  # fmt: skip
def test_ppi__rejects(arguments, options, text):
    with pytest.raises(ValueError, match=text):
        ppi_mean(*arguments, **options)
