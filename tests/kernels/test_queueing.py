"""Little's law, utilisation and knees, against a clock that ticks and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore_kernels.queueing import KNEE_FACTOR, find_knee, little_audit, utilisation

requests = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 9), st.booleans()), min_size=1, max_size=12
)


def stamps(rows):
    starts = [float(start) for start, _, _ in rows]
    return starts, [float(s + t) if done else math.nan for s, t, done in rows]


# --- Little


def test_little__by_hand():
    found = little_audit([0, 1, 2], [4, 3, 6])  # 4 + 2 + 4 in 6 units
    assert found.in_flight == pytest.approx(10 / 6)
    assert found.throughput == 0.5
    assert found.time_in_system == pytest.approx(10 / 3)
    assert found.gap == pytest.approx(0.0, abs=1e-15)
    assert (found.start, found.end) == (0.0, 6.0)
    assert (found.n, found.n_completed, found.n_unfinished) == (3, 3, 0)


def test_little__in_a_window_shows_its_edges():
    found = little_audit([0, 1, 2, 9], [4, 3, 6, 11], window=(2, 5))
    assert found.in_flight == pytest.approx((2 + 1 + 3) / 3)
    assert (found.n, found.n_completed) == (3, 2)
    assert found.throughput == pytest.approx(2 / 3)
    assert found.time_in_system == 3.0
    assert found.gap == pytest.approx(0.0, abs=1e-15)  # what is cut off here comes in there
    found = little_audit([0, 1, 2], [4, 3, 6], window=(0, 5))
    assert found.gap == pytest.approx((9 / 5 - 6 / 5) / (9 / 5))


@given(requests, st.integers(0, 20), st.integers(1, 12))
def test_little__equals_ticks_of_a_clock(rows, begin, length):
    starts, ends = stamps(rows)
    found = little_audit(starts, ends, window=(begin, begin + length))
    ticks = [
        sum(s <= t and not e <= t for s, e in zip(starts, ends, strict=True))
        for t in range(begin, begin + length)
    ]
    if found.n:
        assert found.in_flight == pytest.approx(sum(ticks) / length, abs=1e-13)
    else:
        assert math.isnan(found.in_flight)
        assert not any(ticks)


@given(requests)
def test_little__holds_where_every_request_ends(rows):
    starts, ends = stamps([(s, t, True) for s, t, _ in rows])
    found = little_audit(starts, ends)
    assert found.n == found.n_completed == len(rows)
    if found.end > found.start:
        both = found.throughput * found.time_in_system
        assert found.in_flight == pytest.approx(both, abs=1e-13)
        if found.in_flight:
            assert found.gap == pytest.approx(0.0, abs=1e-12)


def test_little__unfinished_requests_open_a_gap():
    found = little_audit([0, 1, 2], [4, math.nan, 6])
    assert (found.n_unfinished, found.n_completed) == (1, 2)
    assert found.in_flight == pytest.approx(13 / 6)
    assert found.gap == pytest.approx(5 / 13)
    alone = little_audit([0.0, 5.0], [math.nan, math.nan])
    assert alone.in_flight == 1.0
    assert alone.throughput == 0.0
    assert math.isnan(alone.time_in_system)
    assert math.isnan(alone.gap)


@pytest.mark.parametrize(
    ("starts", "ends", "window"),
    [([], [], None), ([], [], (0, 1)), ([3], [3], None), ([0], [9], (5, 5)), ([0], [1], (5, 6))],
)
def test_little__of_nothing_is_na(starts, ends, window):
    found = little_audit(starts, ends, window)
    parts = (found.in_flight, found.throughput, found.time_in_system, found.gap)
    assert all(map(math.isnan, parts))


def test_little__of_requests_without_length_has_no_gap():
    found = little_audit([1, 2], [1, 2])
    assert (found.in_flight, found.throughput, found.time_in_system) == (0.0, 2.0, 0.0)
    assert math.isnan(found.gap)


@pytest.mark.parametrize(
    ("starts", "ends", "window", "text"),
    [
        ([1], [0], None, "request 0 ends at 0.0, before its start 1.0"),
        ([math.nan], [0], None, r"starts\[0\] is nan"),
        ([0], [math.inf], None, r"ends\[0\] is inf"),
        ([0], [1, 2], None, "1 starts and 2 ends"),
        ([0], [1], (2, 1), r"window is \(2, 1\)"),
        ([0], [1], (0, math.nan), "window is"),
        ([-1.5e308, 0], [1.5e308, 1], None, "expected finite"),
    ],
)
def test_little__rejects(starts, ends, window, text):
    with pytest.raises(ValueError, match=text):
        little_audit(starts, ends, window)


# --- utilisation


def test_utilisation__by_hand():
    assert utilisation(30.0, 60.0) == 0.5
    assert utilisation(30.0, 60.0, 4) == 0.125
    assert utilisation(90.0, 60.0) == 1.5  # shown, not hidden
    assert math.isnan(utilisation(0.0, 0.0))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((-1.0, 1.0), "times are -1.0 and 1.0"), ((1.0, math.nan), r"times\[1\] is nan"),
        ((1.0, 1.0, 0), "servers is 0"), ((1.0, 1.0, 1.5), "servers is 1.5"),
        ((1.0, 1.0, math.inf), "servers is inf"),
    ],
)  # fmt: skip
def test_utilisation__rejects(arguments, text):
    with pytest.raises(ValueError, match=text):
        utilisation(*arguments)


# --- the knee


def test_knee__by_hand():
    found = find_knee([1, 2, 4, 8, 16], [10, 20, 38, 44, 45], [100, 101, 120, 180, 400])
    # growths of p95 .01 .188 .5 1.222, of throughput 1 .9 .158 .023
    assert found.latency_growth.tolist() == pytest.approx([0.01, 19 / 101, 0.5, 220 / 180])
    assert found.throughput_growth.tolist() == pytest.approx([1.0, 0.9, 6 / 38, 1 / 44])
    assert (found.at, found.concurrency, found.factor) == (3, 8.0, KNEE_FACTOR)
    assert KNEE_FACTOR == 3.0
    assert find_knee([1, 2, 4, 8], [10, 20, 38, 44], [100, 101, 120, 180], 4.0).at is None


def test_knee__is_where_throughput_falls_and_latency_grows():
    assert find_knee([1, 2, 3], [10, 11, 9], [50, 51, 52]).at == 2
    assert find_knee([1, 2], [10, 10], [50, 51]).concurrency == 2.0


def test_knee__is_not_where_both_fall():
    assert find_knee([1, 2], [10, 9.9], [50, 49.5]).at is None
    assert find_knee([1, 2], [10, 9], [50, 50]).at is None


def test_knee__at_the_factor_itself_is_none():
    assert find_knee([1, 2], [4, 5], [4, 7]).at is None
    assert find_knee([1, 2], [4, 5], [4, 7.5]).at == 1


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=1, max_size=8))
def test_knee__does_not_depend_on_units(rows):
    rates, tails = np.array([r for r, _ in rows]), np.array([t for _, t in rows])
    levels = np.arange(len(rows))
    found = find_knee(levels, rates, tails)
    assert find_knee(levels * 7, rates * 1024, tails / 1024).at == found.at


@pytest.mark.parametrize("n", [0, 1])
def test_knee__of_too_few_levels_is_none(n):
    found = find_knee([1.0] * n, [1.0] * n, [1.0] * n)
    assert found.at is None
    assert found.concurrency is None
    assert found.latency_growth.size == 0


@pytest.mark.parametrize(
    ("levels", "rates", "tails", "factor", "text"),
    [
        ([1, 1], [1, 2], [1, 2], 3.0, "expected rising levels"),
        ([1, 2], [0, 2], [1, 2], 3.0, r"throughput\[0\] is 0.0; expected a number above 0"),
        ([1, 2], [1, 2], [1, -2], 3.0, r"p95\[1\] is -2.0"),
        ([1, 2], [1], [1, 2], 3.0, "2 levels, 1 throughputs and 2 p95"),
        ([1, 2], [1, 2], [1, math.nan], 3.0, r"p95\[1\] is nan"),
        ([1, 2], [1, 2], [1, 2], 0.0, "factor is 0.0"),
        ([1, 2], [1, 2], [1, 2], math.nan, "factor is nan"),
    ],
)
def test_knee__rejects(levels, rates, tails, factor, text):
    with pytest.raises(ValueError, match=text):
        find_knee(levels, rates, tails, factor)
