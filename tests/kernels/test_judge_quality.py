"""Precision and recall of a judge, against counts of sets of characters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.judge_quality import (
    Confusion,
    confusion,
    overlap_spans,
    span_quality,
    spans_of,
)
from reference_judges import marked

verdicts = st.integers(-1, 1)
span = st.tuples(st.integers(0, 25), st.integers(0, 8)).map(lambda s: (s[0], s[0] + s[1]))
lists = st.lists(st.tuples(st.lists(span, max_size=5), st.lists(span, max_size=5)), max_size=6)


def csr(rows):
    flat = [s for row in rows for s in row]
    offsets = np.cumsum([0, *map(len, rows)])
    return spans_of(offsets, [s for s, _ in flat], [e for _, e in flat])


def quality(pairs):
    return span_quality(csr([a for a, _ in pairs]), csr([b for _, b in pairs]))


def same(found, wanted):
    return found == wanted or (math.isnan(found) and math.isnan(wanted))


# --- responses


def test_confusion__by_hand():
    found = confusion([1, 1, 1, 0, 0, 1, -1, 0], [1, 1, 0, 1, 0, 1, 1, -1])
    assert found == Confusion(3, 1, 1, 1, 2)
    assert (found.precision, found.recall, found.specificity) == (0.75, 0.75, 0.5)
    assert (found.f1, found.n, found.prevalence) == (0.75, 6, 4 / 6)


def test_confusion__takes_truth_values():
    found = confusion(np.array([True, False]), np.array([True, True]))
    assert found == Confusion(1, 0, 1, 0, 0)


@given(st.lists(st.tuples(verdicts, verdicts)))
def test_confusion__equals_a_count(rows):
    found = confusion([a for a, _ in rows], [b for _, b in rows])
    assert (found.tp, found.fp) == (rows.count((1, 1)), rows.count((1, 0)))
    assert (found.fn, found.tn) == (rows.count((0, 1)), rows.count((0, 0)))
    assert found.n + found.n_missing == len(rows)
    if found.tp:
        p, r = found.precision, found.recall
        assert found.f1 == pytest.approx(2 * p * r / (p + r))
    swapped = confusion([b for _, b in rows], [a for a, _ in rows])
    assert same(swapped.precision, found.recall)
    assert same(swapped.f1, found.f1)


def test_confusion__empty_denominators_are_na():
    nothing = confusion([], [])
    assert nothing == Confusion(0, 0, 0, 0, 0)
    parts = ("precision", "recall", "specificity", "f1", "prevalence")
    assert all(math.isnan(getattr(nothing, part)) for part in parts)
    quiet = confusion([0, 0], [0, 1])
    assert math.isnan(quiet.precision)
    assert (quiet.recall, quiet.f1, quiet.specificity) == (0.0, 0.0, 1.0)
    assert math.isnan(confusion([1], [1]).specificity)
    assert math.isnan(confusion([0], [0]).f1)


@pytest.mark.parametrize(
    ("judge", "human", "text"),
    [
        ([2], [0], r"judge\[0\] is 2; expected a whole number from -1 to 1"),
        ([0], [-2], r"human\[0\] is -2"),
        ([0, 1], [0], "2 verdicts of the judge, 1 of the human"),
        ([0.5], [1], "judge are float64"),
        ([[0]], [0], r"judge have shape \(1, 1\); expected one dimension"),
        (["yes"], [0], "judge are <U3"),
        ([None], [0], "judge are object"),
    ],
)
def test_confusion__rejects(judge, human, text):
    with pytest.raises(ValueError, match=text):
        confusion(judge, human)


# --- spans


def test_spans__by_hand():
    found = quality([
        ([(0, 10)], [(5, 20)]),  # 5 shared of 10 and 15
        ([(0, 4), (2, 6), (6, 8)], [(3, 7)]),  # a union of 8, 4 shared of 4
        ([], [(1, 3)]),
        ([(1, 2)], []),
        ([], []),
    ])  # fmt: skip
    assert found.judge.tolist() == [10, 8, 0, 1, 0]
    assert found.human.tolist() == [15, 4, 2, 0, 0]
    assert found.both.tolist() == [5, 4, 0, 0, 0]
    assert (found.precision, found.recall, found.f1) == (9 / 19, 9 / 21, 18 / 40)
    assert np.array_equal(found.precisions, [0.5, 0.5, np.nan, 0.0, np.nan], equal_nan=True)
    assert np.array_equal(found.recalls, [1 / 3, 1.0, 0.0, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(found.f1s, [0.4, 8 / 12, 0.0, 0.0, np.nan], equal_nan=True)
    assert found.responses == Confusion(2, 1, 1, 1, 0)


def test_spans__can_be_worse_than_responses():
    found = quality([([(0, 5)], [(40, 50)]), ([], [])])
    assert (found.responses.f1, found.f1) == (1.0, 0.0)


@given(lists)
def test_spans__equal_sets_of_characters(pairs):
    found = quality(pairs)
    first, second = [marked(a) for a, _ in pairs], [marked(b) for _, b in pairs]
    assert found.judge.tolist() == [len(a) for a in first]
    assert found.human.tolist() == [len(b) for b in second]
    assert found.both.tolist() == [len(a & b) for a, b in zip(first, second, strict=True)]
    assert found.responses.tp == sum(bool(a) and bool(b) for a, b in pairs)
    swapped = quality([(b, a) for a, b in pairs])
    assert same(swapped.precision, found.recall)
    assert same(swapped.f1, found.f1)


@given(lists)
def test_spans__in_parts_are_the_same(pairs):
    judge, human = csr([a for a, _ in pairs]), csr([b for _, b in pairs])
    found, n = span_quality(judge, human), len(pairs)
    out = np.zeros((n, 3), np.int64)
    for begin, end in ((n // 2, n), (0, n // 2)):
        overlap_spans(
            judge.offsets, judge.starts, judge.ends, human.offsets, human.starts, human.ends,
            np.int64(begin), np.int64(end), out,
        )  # fmt: skip
    assert out.tolist() == np.stack([found.judge, found.human, found.both], axis=1).tolist()


def test_spans__empty():
    found = quality([])
    assert found.both.size == found.f1s.size == 0
    assert all(map(math.isnan, (found.precision, found.recall, found.f1)))
    nothing = quality([([], []), ([(3, 3)], [])])  # a span without a character is still a verdict
    assert math.isnan(nothing.f1)
    assert nothing.responses == Confusion(0, 1, 0, 1, 0)


def test_spans__far_out():
    far = 1 << 39
    found = quality([([(0, far), (far, far + 9)], [(far - 1, far + 1)])])
    assert (int(found.judge[0]), int(found.both[0])) == (far + 9, 2)


@pytest.mark.parametrize(
    ("offsets", "starts", "ends", "text"),
    [
        ([0, 1], [5], [3], "span 0 ends at 3, before its start 5"),
        ([0, 1], [-1], [3], r"starts\[0\] is -1"),
        ([0, 1], [0], [1 << 50], r"ends\[0\] is 1125899906842624"),
        ([0, 1], [0, 1], [1], "2 starts and 1 ends"),
        ([0, 2], [0], [1], "offsets run from 0 to 2; wanted 0 to 1"),
        ([0, 2, 1, 2], [0, 1], [1, 2], "offsets fall at case 1"),
        ([], [], [], "offsets are int64"),
        ([0, 1], [0.5], [1], "starts are float64"),
    ],
)
def test_spans__rejects(offsets, starts, ends, text):
    with pytest.raises(ValueError, match=text):
        spans_of(offsets, starts, ends)


def test_spans__rejects_other_numbers_of_responses():
    with pytest.raises(ValueError, match="1 responses of the judge, 2 of the human"):
        span_quality(csr([[]]), csr([[], []]))


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernel__has_one_specialisation():
    quality([([(0, 1)], [(0, 1)])])
    assert compiled_count(overlap_spans) == 1
