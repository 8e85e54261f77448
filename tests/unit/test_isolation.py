"""Four-way isolation: every pattern has one class, deltas are paired, interactions are exact."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pyarrow as pa
import pytest

import tables
from ragcore.diagnose import diagnose
from ragcore.diagnosis.isolation import (
    CLASSES,
    INCOMPLETE,
    MIXED,
    class_of,
    classify,
    crossed,
    deltas,
)
from ragcore.errors import UsageError

RULES = {
    "evidence-driven": lambda cb, gc, rc, rd: gc and rc and rd and not cb,
    "parametric-masked": lambda cb, gc, rc, rd: gc and rc and rd and cb,
    "distractor-fragile": lambda cb, gc, rc, rd: gc and rc and not rd,
    "upstream": lambda cb, gc, rc, rd: gc and not rc,
    "reader": lambda cb, gc, rc, rd: not gc and not rc,
    "gold-insufficient-or-lucky": lambda cb, gc, rc, rd: not gc and rc,
}
PATTERNS = list(product((False, True), repeat=4))


def test_classes__are_those_of_the_rules():
    assert set(RULES) == set(CLASSES)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_classify__every_pattern_meets_exactly_one_rule(pattern):
    (wanted,) = (name for name, rule in RULES.items() if rule(*pattern))
    assert classify(*pattern) == wanted
    assert class_of([tuple(float(one) for one in pattern)]) == wanted


def test_class_of__what_is_not_clear():
    one, zero = (1.0, 1.0, 1.0, 1.0), (0.0, 1.0, 0.0, 0.0)
    assert class_of([one, one]) == "parametric-masked"
    assert class_of([one, zero]) == MIXED
    assert class_of([(0.5, 1.0, 1.0, 1.0)]) == MIXED
    assert class_of([one, (None, 1.0, 1.0, 1.0)]) == INCOMPLETE
    assert class_of([]) == INCOMPLETE


def test_deltas__of_one_case():
    found = deltas(0.25, 1.0, 0.5, 0.125)
    assert found == {
        "evidence gain": 0.25, "oracle gain": 0.75, "retrieval loss": 0.5,
        "distractor loss": 0.375, "reader deficit": 0.0,
    }  # fmt: skip
    for at in range(4):
        four = [None if i == at else 0.5 for i in range(4)]
        gone = {name for name, value in deltas(*four).items() if value is None}
        assert gone == [
            {"evidence gain", "oracle gain"}, {"oracle gain", "retrieval loss", "reader deficit"},
            {"evidence gain", "retrieval loss", "distractor loss"}, {"distractor loss"},
        ][at]  # fmt: skip


def exact_interval(values, level=Fraction(95, 100)):
    """Ends of the percentile bootstrap of a mean, by the law of the sum of n draws."""
    n, tail = len(values), (1 - level) / 2
    law = {Fraction(0): Fraction(1)}
    for _ in range(n):
        new = Counter()
        for total, p in law.items():
            for value, count in Counter(values).items():
                new[total + value] += p * Fraction(count, n)
        law = new
    below, low, high = Fraction(0), None, None
    for total in sorted(law):
        below += law[total]
        if low is None and below >= tail:
            low = total / n
    above = Fraction(0)
    for total in sorted(law, reverse=True):
        above += law[total]
        if high is None and above >= tail:
            high = total / n
    return low, high


def sign_flip(values):
    seen = abs(sum(values))
    hits = [abs(sum(s * v for s, v in zip(signs, values, strict=True))) >= seen
            for signs in product((1, -1), repeat=len(values))]  # fmt: skip
    return Fraction(sum(hits), len(hits))


def test_crossed__interaction_interval_and_test_are_exact():
    g1r1, g1r2, g2r1, g2r2 = (
        dict(enumerate(row)) for row in (
            (0, 0, 1, 0, 1, 0, 0.5), (1, 1, 1, 0, 1, 1, 0.5), (1, 0, 1, 1, 1, 0.5, 0),
            (1, 1, 1, 0, 0, 1, 1),
        )
    )  # fmt: skip
    found = crossed(
        g1r1, g1r2, g2r1, g2r2, dict.fromkeys(range(7), 0.5), dict.fromkeys(range(7), 1.0)
    )
    values = [
        (Fraction(g2r2[i]) - Fraction(g2r1[i])) - (Fraction(g1r2[i]) - Fraction(g1r1[i]))
        for i in range(7)
    ]
    assert [found.interaction[i] for i in range(7)] == [float(v) for v in values]
    low, high = exact_interval(values)
    assert found.paired.delta == pytest.approx(float(sum(values) / 7), abs=1e-15)
    assert (found.paired.low, found.paired.high) == pytest.approx((float(low), float(high)))
    assert found.paired.p_value == pytest.approx(float(sign_flip(values)), abs=1e-15)
    assert found.paired.method == "exact"


def test_crossed__masking_is_counted_where_all_is_known():
    scores = {"a": 1.0, "b": 1.0, "c": 0.0, "d": 1.0, "e": None}
    ones = dict.fromkeys(scores, 1.0)
    lower = {"a": 0.5, "b": 1.0, "c": 0.0, "d": math.nan, "e": 0.0}
    found = crossed(ones, ones, scores, ones, lower, ones)
    assert found.masked == ("a",)  # b: no weaker retrieval; c: does worse
    assert found.compared == 3
    assert found.interaction["e"] is None
    assert found.paired.n == 4


# --- from runs

CASES = [f"c{i:02}" for i in range(16)]
CONDITIONS = ("closed_book", "gold_context", "retrieved", "retrieved_distractors")


@pytest.fixture
def suite(tmp_path):
    cases = pa.table({
        "case_id": CASES, "expected_state": ["answer"] * 16,
        "evidence": [[{"doc_id": "d", "required": True}]] * 16,
    })  # fmt: skip
    return tables.write_suite(tmp_path / "s", cases)


def run_of(condition, right, **others):
    kind = pa.struct([("state", pa.string()), ("value", pa.string())])
    states = [{"state": None if r is None else "answer" if r else "abstain", "value": None}
              for r in right]  # fmt: skip
    n = len(right)
    return pa.table({
        "case_id": CASES[:n], "condition": pa.array([condition] * n, pa.string()),
        "ranked": [["d"]] * n, "context": pa.array([[{"id": "d"}]] * n),
        "proposed": pa.array(states, kind), "final": pa.array(states, kind), **others,
    })  # fmt: skip


def four(order=CONDITIONS):
    return [run_of(c, [p[CONDITIONS.index(c)] for p in PATTERNS]) for c in order]


def test_isolate__all_sixteen_patterns_through_runs(suite):
    found = diagnose(four(), suite=suite, names=list(CONDITIONS)).isolation
    for case, pattern in zip(CASES, PATTERNS, strict=True):
        assert found.classes[case] == classify(*pattern)
        assert found.values[case] == tuple(map(float, pattern))
    assert sum(found.counts().values()) == 16
    gain = found.paired("evidence gain")
    assert (gain.n, gain.delta, gain.wins, gain.losses, gain.ties) == (16, 0.0, 4, 4, 8)
    assert found.paired("reader deficit").delta == 0.5


def test_isolate__a_run_end_to_end_stands_for_retrieved(suite):
    runs = [*four(CONDITIONS[:2]), run_of(None, [p[2] for p in PATTERNS]), *four(CONDITIONS[3:])]
    found = diagnose(runs, suite=suite, names=["a", "b", "plain", "d"]).isolation
    assert found.runs["retrieved"] == "plain"
    assert [found.classes[c] for c in CASES] == [classify(*p) for p in PATTERNS]


def test_isolate__missing_sides_are_no_value(suite):
    runs = [run_of("retrieved", [True, None, True]), run_of("closed_book", [False, True])]
    found = diagnose(runs, suite=suite, names=["r", "c"]).isolation
    assert found.recorded == ("closed_book", "retrieved")
    assert found.deltas("c00")["evidence gain"] == 1.0
    assert found.deltas("c01")["evidence gain"] is None
    assert found.deltas("c02")["evidence gain"] is None
    assert found.deltas("c00")["oracle gain"] is None
    assert set(found.classes.values()) == {INCOMPLETE}
    assert found.paired("evidence gain").n == 1


def test_isolate__one_condition_alone_is_none_and_two_of_one_are_refused(suite):
    assert diagnose(four(["retrieved"]), suite=suite).isolation is None
    twice = diagnose(four(["retrieved", "closed_book", "retrieved"]), suite=suite,
                     names=["x", "y", "z"])  # fmt: skip
    with pytest.raises(UsageError, match="retrieved is recorded by x, z"):
        _ = twice.isolation


def test_crossed__through_runs(suite):
    names = ["g1r1", "g1r2", "g2r1", "g2r2"]
    rights = [[False] * 16, [True] * 8 + [False] * 8, [True] * 16, [True] * 16]
    runs = [run_of(None, right) for right in rights]
    runs[0] = runs[0].set_column(2, "ranked", pa.array([["x"]] * 16))
    runs[2] = runs[2].set_column(2, "ranked", pa.array([["x"]] * 16))
    found = diagnose(runs, suite=suite, names=names, crossed=names)
    assert found.crossed.paired.delta == -0.5
    assert found.crossed.masked == tuple(CASES)
    with pytest.raises(UsageError, match="no run 'nobody'"):
        _ = diagnose(runs, suite=suite, names=names, crossed=["nobody", *names[1:]]).crossed
    with pytest.raises(UsageError, match="2 runs crossed"):
        diagnose(runs, suite=suite, names=names, crossed=names[:2])
