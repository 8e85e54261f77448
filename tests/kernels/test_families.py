"""Adjusted p-values of a family, against scipy and a procedure told step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore_kernels.families import benjamini_hochberg, holm
from reference_signs import stepped_down

p_values = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.05, 1.0])))
both = pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])


def test_holm__by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])


def test_benjamini_hochberg__by_hand():
    found = benjamini_hochberg([0.01, 0.04, 0.03, 0.005])
    assert found == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(p_values)
def test_holm__equals_the_procedure(values):
    assert holm(values).tolist() == stepped_down(values)


@given(p_values.filter(len))
def test_benjamini_hochberg__equals_scipy(values):
    stats = pytest.importorskip("scipy.stats")
    wanted = stats.false_discovery_control(values)
    assert benjamini_hochberg(values) == pytest.approx(wanted, rel=1e-14, abs=0)


@both
@given(p_values, st.data())
def test_adjusted__skip_nan_and_follow_order(adjust, values, data):
    plain = dict(zip(values, adjust(values).tolist(), strict=True))
    mixed = data.draw(st.permutations([*values, math.nan, math.nan]))
    for value, found in zip(mixed, adjust(mixed).tolist(), strict=True):
        assert math.isnan(found) if math.isnan(value) else found == plain[value]


@both
@given(p_values)
def test_adjusted__are_no_less_and_no_more_than_1(adjust, values):
    found = adjust(values)
    assert (found >= np.array(values) * (1 - 1e-15)).all()
    assert (found <= 1).all()


@both
def test_adjusted__of_nothing_and_of_one(adjust):
    assert adjust([]).size == 0
    assert adjust([0.3]).tolist() == [0.3]
    assert np.isnan(adjust([math.nan, math.nan])).all()


@both
@pytest.mark.parametrize("bad", [-1e-9, 1.1, math.inf, -math.inf])
def test_adjusted__reject_what_is_no_probability(adjust, bad):
    with pytest.raises(ValueError, match=r"p_values\[1\] is"):
        adjust([0.5, bad])
    with pytest.raises(ValueError, match="one dimension"):
        adjust([[0.5]])


@both
def test_adjusted__leave_the_argument_alone(adjust):
    values = np.array([0.2, 0.1])
    adjust(values)
    assert values.tolist() == [0.2, 0.1]
