"""The non-dominated runs, against the definition told pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore_kernels.pareto import pareto_front

WAYS = ("max", "min", "min")
tables = st.integers(1, 3).flatmap(
    lambda m: st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan]), min_size=m, max_size=m),
        max_size=7,
    ).map(lambda rows: (rows, WAYS[:m]))
)


def dominates(a, b, ways):
    ahead = [(x - y) * (1 if way == "max" else -1) for x, y, way in zip(a, b, ways, strict=True)]
    return all(gap >= 0 for gap in ahead) and any(gap > 0 for gap in ahead)


def around(rows, half):
    """Intervals that reach `half` to either side of each difference."""
    return lambda a, b, m: (rows[a][m] - rows[b][m] - half, rows[a][m] - rows[b][m] + half)


def test_front__by_hand():
    # quality up, p95 down
    values = [[0.9, 200], [0.8, 100], [0.7, 150], [0.9, 200], [0.6, 90]]
    found = pareto_front(values, ("max", "min"))
    assert found.on_front.tolist() == [True, True, False, True, True]
    assert found.beaten_by.tolist() == [-1, -1, 1, -1, -1]
    assert not found.within_noise.any()
    assert not found.unranked.any()


def test_front__within_noise_is_kept_and_marked():
    values = [[0.80, 100.0], [0.79, 104.0], [0.79, 160.0], [0.60, 99.0]]
    ends = {0: (-0.02, 0.04), 1: (-10.0, 10.0)}

    def interval(a, b, m):
        gap = values[a][m] - values[b][m]
        return gap + ends[m][0], gap + ends[m][1]

    found = pareto_front(values, ("max", "min"), interval)
    assert found.on_front.tolist() == [True, True, False, True]
    assert found.within_noise.tolist() == [False, True, False, False]
    assert found.beaten_by.tolist() == [-1, 0, 0, -1]


@given(tables, st.sampled_from([None, 0.0, 0.5, 1.0, 1.5, 9.0]))
def test_front__equals_the_definition(drawn, half):
    rows, ways = drawn
    interval = None if half is None else around(rows, half)
    found = pareto_front(rows, ways, interval)
    known = [i for i, row in enumerate(rows) if not any(map(math.isnan, row))]
    for b in range(len(rows)):
        beaters = [a for a in known if dominates(rows[a], rows[b], ways)] if b in known else []
        sure = [
            a for a in beaters
            if half is None or any(abs(x - y) > half for x, y in zip(rows[a], rows[b], strict=True))
        ]  # fmt: skip
        assert found.unranked[b] == (b not in known)
        assert found.on_front[b] == (b in known and not sure)
        assert found.within_noise[b] == (b in known and bool(beaters) and not sure)
        assert found.beaten_by[b] == (sure or beaters or [-1])[0]
    if known:
        assert found.on_front.any()


@given(tables)
def test_front__does_not_depend_on_directions_or_order(drawn):
    rows, ways = drawn
    array = np.array(rows).reshape(len(rows), len(ways))
    found = pareto_front(array, ways)
    other = pareto_front(-array, ["min" if way == "max" else "max" for way in ways])
    turned = pareto_front(array[::-1], ways)
    assert other.on_front.tolist() == found.on_front.tolist()
    assert turned.on_front[::-1].tolist() == found.on_front.tolist()


def test_intervals__are_asked_for_only_where_a_run_dominates():
    asked = []

    def interval(a, b, m):
        asked.append((a, b, m))
        return 0.5, 1.5

    pareto_front([[1.0, 5.0], [0.0, 9.0], [0.5, 5.0]], ("max", "max"), interval)
    assert asked == [(0, 2, 0)]


def test_doubtful_intervals__are_noise():
    for ends in [(math.nan, math.nan), (0.0, 2.0), (-1.0, 3.0), (0.5, math.nan)]:
        found = pareto_front([[1.0], [0.0]], ("max",), lambda a, b, m, ends=ends: ends)
        assert found.on_front.tolist() == [True, True]
        assert found.within_noise.tolist() == [False, True]
    for ends in [(-2.0, 0.0), (math.nan, -0.5), (math.nan, math.nan)]:
        found = pareto_front([[0.0], [1.0]], ("min",), lambda a, b, m, ends=ends: ends)
        assert found.within_noise.tolist() == [False, True]


def test_unknown_values__are_not_ranked():
    found = pareto_front([[math.nan, 1.0], [0.5, 2.0], [0.4, 3.0]], ("max", "min"))
    assert found.unranked.tolist() == [True, False, False]
    assert found.on_front.tolist() == [False, True, False]
    assert pareto_front([[math.inf], [1.0]], ("max",)).on_front.tolist() == [True, False]


def test_no_run__has_no_front():
    assert pareto_front([], ("max",)).on_front.size == 0
    assert pareto_front(np.empty((0, 2)), ("max", "min")).beaten_by.size == 0


@pytest.mark.parametrize(
    ("values", "ways", "text"),
    [
        ([[1.0, 2.0]], ("max",), r"values have shape \(1, 2\)"),
        ([1.0], ("max",), r"values have shape \(1,\)"),
        ([[1.0]], ("up",), r"directions\[0\] is 'up'; expected 'max' or 'min'"),
        (np.empty((2, 0)), (), "directions are empty"),
    ],
)
def test_front__rejects(values, ways, text):
    with pytest.raises(ValueError, match=text):
        pareto_front(values, ways)
