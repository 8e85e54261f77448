"""What a baseline leaves open, per measure, and the most that a case allows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import reference
import tables
from ragcore import score
from ragcore.saturation import saturation


def of(n_open, n, level=0.95, **options):
    values = np.array([0.5] * n_open + [1.0] * (n - n_open))
    return saturation(values, np.ones(n), level=level, **options)


@pytest.mark.parametrize("n", [9, 12, 30, 100, 1_000, 20_000])
def test_rule__fewer_than_four_open_cases_resolve_nothing(n):
    assert of(0, n).state == "saturated"
    assert [of(k, n).state for k in (1, 2, 3, 4)] == ["unresolvable"] * 3 + ["live"]
    assert of(3, n).n_open == 3


@pytest.mark.parametrize("n", [2, 5, 8, 12, 40])
def test_rule__is_what_the_interval_of_a_perfect_candidate_says(n):
    """A perfect candidate gains 1/2 in every open case; the others tie."""
    from ragcore_kernels.resample import mean_interval

    for n_open in range(1, n + 1):
        gains = [0.5] * n_open + [0.0] * (n - n_open)
        includes = mean_interval(gains).low <= 0.0
        assert includes is (of(n_open, n).state == "unresolvable"), (n_open, n)


def test_rule__mirrored_at_zero():
    def floored(n_above, n):
        return saturation(np.array([0.5] * n_above + [0.0] * (n - n_above)), np.ones(n)).state

    assert [floored(k, 30) for k in (0, 1, 3, 4)] == ["floored"] * 3 + ["live"]


def test_level__moves_the_rule():
    assert of(4, 100, level=0.99).state == "unresolvable"  # (1 - 4/100)^100 = 0.017 > 0.005
    assert of(2, 100, level=0.5).state == "live"


def test_chance__the_pool_is_small():
    """Recall@10 of 19 chunks is 10/19 for a random ranking."""
    found = of(20, 30, k=10, pool=19)
    assert (found.state, round(found.random, 3)) == ("chance-dominated", 0.526)
    assert not found.live
    assert "random ranking 0.526" in str(found)
    both = of(0, 30, k=10, pool=19)
    assert str(both) == "saturated, 0 open; chance-dominated, random ranking 0.526"
    assert of(20, 30, k=10, pool=40).state == "live"  # exactly a quarter is not above it
    assert of(20, 30, k=50, pool=40).random == 1.0


def test_nothing__without_a_maximum_or_a_case():
    assert saturation(np.array([3.0]), np.array([math.nan])).state == ""
    assert str(saturation(np.empty(0), np.empty(0))) == ""


# --- ceilings


CEILED = ("P@3", "R@2", "AP@2", "RBP(p=0.5)", "RBP(p=0.5)@2", "ERR(max=3)@3", "nDCG@3", "RR",
          "Success@1", "P(rel=2)@2", "R(rel=2)@5", "AP", "Rprec")  # fmt: skip


def test_ceilings__are_the_values_of_a_perfect_ranking():
    """Against the plain-Python measures, on rankings sorted by grade."""
    qrels = {
        "one": {"a": 1}, "two": {"a": 2, "b": 1, "c": 0}, "many": {d: 1 + i % 3 for i, d in
        enumerate("abcdefg")}, "none": {"a": 0},
    }  # fmt: skip
    run = score({q: {"z": 1.0} for q in qrels}, qrels=qrels, measures=CEILED).runs[0]
    most = run.ceilings()
    for m, name in enumerate(CEILED):
        for t, code in enumerate(run.case_of.tolist()):
            grades = qrels[run.case_names[code]]
            best = sorted(grades, key=lambda d: (-grades[d], d))
            rel = run.measures[m].rel
            if max(grades.values()) < rel:
                continue
            value = reference.score(name, best, grades, 1)
            assert most[m, t] == pytest.approx(value, abs=1e-12), (name, run.case_names[code])


def test_ceilings__counts_and_bounds_have_none():
    names = ["NumRet", "NumRel", "Unjudged@5", "utility", "gm_map"]
    run = score({"q": {"a": 1.0}}, qrels={"q": {"a": 1}}, measures=names).runs[0]
    assert np.isnan(run.ceilings()).all()


def test_ceilings__follow_the_depth():
    qrels = {"q": dict.fromkeys("abcd", 1)}
    run = score({"q": {"a": 1.0}}, qrels=qrels, measures=["R@10"], max_depth=2).runs[0]
    assert run.ceilings().tolist() == [[0.5]]


def test_ceilings__of_outcomes_and_coverage_are_one(tmp_path):
    cases = pa.table({
        "case_id": ["a", "b"], "expected_state": ["answer", "abstain"],
        "evidence": [tables.evidence(("d", 1))] * 2,
    })  # fmt: skip
    suite = tables.write_suite(tmp_path / "s", cases)
    run = pa.table({"case_id": ["a", "b"], "ranked": [["d"], ["x"]],
                    "final": [{"state": "answer"}, {"state": "abstain"}]})  # fmt: skip
    found = score(run, suite=suite, measures=["end_to_end", "retrieval.coverage"]).runs[0]
    assert (found.ceilings() == 1.0).all()
