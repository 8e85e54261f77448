"""Shares pooled over cases: sums of numerators over sums of denominators, and what they refuse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ragcore import compare, score
from ragcore.errors import UsageError
from ragcore_kernels.clusters import ratio_interval
from ragcore_kernels.signs import sign_flip

N = 12
WANTED = [1 + i % 4 for i in range(N)]
QRELS = {f"q{i}": {f"d{j}": 1 for j in range(n)} for i, n in enumerate(WANTED)}


def run_of(found, extra=0):
    """Case i retrieves so many of its relevant documents, and some others."""
    return {
        f"q{i}": {**{f"d{j}": 9.0 - j for j in range(min(k, WANTED[i]))},
                  **{f"x{j}": 1.0 for j in range(1 + extra * (i % 3))}}
        for i, k in enumerate(found)
    }  # fmt: skip


BEFORE = [0, 1, 2, 2, 1, 0, 3, 1, 1, 2, 0, 4]
AFTER = [1, 1, 3, 2, 1, 2, 3, 2, 0, 2, 1, 4]
HITS = [[min(k, n) for k, n in zip(found, WANTED, strict=True)] for found in (BEFORE, AFTER)]


def test_score__pools_what_the_mean_averages():
    scores = score(run_of(BEFORE), qrels=QRELS, measures=["R", "micro(R)", "micro(P@5)"])
    rows = {r["measure"]: r for r in scores.summary().to_pylist()}
    assert rows["R"]["mean"] == pytest.approx(
        float(sum(Fraction(h, n) for h, n in zip(HITS[0], WANTED, strict=True)) / N)
    )
    assert rows["micro(R)"]["mean"] == sum(HITS[0]) / sum(WANTED) == scores.mean("micro(R)")
    assert (rows["micro(R)"]["numerator"], rows["micro(R)"]["denominator"]) == (
        sum(HITS[0]), sum(WANTED),
    )  # fmt: skip
    interval = ratio_interval(HITS[0], WANTED)
    assert (rows["micro(R)"]["ci_low"], rows["micro(R)"]["ci_high"]) == (
        interval.low,
        interval.high,
    )
    assert rows["micro(P@5)"]["denominator"] == 5 * N
    assert "pooled over cases" in rows["micro(R)"]["note"]


def test_score__variants_are_averaged_inside_the_case(tmp_path):
    import pyarrow as pa

    import tables

    cases = pa.table({"case_id": ["a", "b"], "evidence": [
        tables.evidence(("d", 1)), tables.evidence(("d", 1), ("e", 1), ("f", 1)),
    ]})  # fmt: skip
    suite = tables.write_suite(tmp_path / "s", cases)
    run = pa.table({
        "case_id": ["a"] * 6 + ["b"], "repeat": pa.array([*range(6), 0], pa.int16()),
        "ranked": [["d"]] * 3 + [["x"]] * 3 + [["d", "e"]],
    })  # fmt: skip
    scores = score(run, suite=suite, measures=["micro(R)"])
    assert scores.mean("micro(R)") == 2.5 / 4  # not (3 + 2) / (6 + 3)


def test_compare__equal_denominators_are_exact():
    found = compare(run_of(BEFORE), run_of(AFTER), qrels=QRELS, measures=["micro(R)"])
    one = found.cell("micro(R)").paired
    gains = np.subtract(HITS[1], HITS[0]).astype(float)
    interval = ratio_interval(gains, WANTED)
    assert one.delta == sum(gains) / sum(WANTED)
    assert (one.low, one.high, one.method) == (interval.low, interval.high, interval.method)
    assert one.p_value == sign_flip(gains).p_value
    assert (one.wins, one.losses) == (int((gains > 0).sum()), int((gains < 0).sum()))
    assert (one.before, one.after) == tuple(sum(h) / sum(WANTED) for h in HITS)


def test_compare__moved_denominators_have_no_interval():
    found = compare(run_of(BEFORE), run_of(AFTER, 1), qrels=QRELS, measures=["micro(SetP)"])
    one = found.cell("micro(SetP)").paired
    assert one.delta == pytest.approx(one.after - one.before)
    assert (one.low, one.p_value) == (None, None)
    assert one.reason.startswith("denominators moved in ")
    (row,) = [r for r in found.summary().to_pylist() if r["baseline"]]
    assert "denominators moved" in row["note"]
    assert found.check(["delta(micro(SetP)).ci_low > -1"])[0].status == "fail"


def test_gates__on_pooled_shares():
    found = compare(run_of(BEFORE), run_of(AFTER), qrels=QRELS, measures=["R"],
                    gates=["micro(R) >= 0.6", "delta(micro(R)) > 0"])  # fmt: skip
    results = found.check(["micro(R) >= 0.6", "delta(micro(R)) > 0", "micro(R).denominator == 30"])
    assert [r.status for r in results] == ["pass"] * 3
    assert results[0].value == sum(HITS[1]) / sum(WANTED)


def test_cases__without_a_relevant_document_add_nothing():
    qrels = {**QRELS, "none": {"x": 0}}
    scores = score(run_of(BEFORE), qrels=qrels, measures=["micro(R)"])
    assert scores.mean("micro(R)") == sum(HITS[0]) / sum(WANTED)
    only = score({"q": {"x": 1.0}}, qrels={"q": {"x": 0}}, measures=["micro(R)"])
    row = only.summary().to_pylist()[0]
    assert (row["mean"], row["ci_low"]) == (None, None)


@pytest.mark.parametrize("name", ["micro(nDCG@5)", "micro(RR)", "micro(R(ties=best)@5)",
                                  "micro(nothing)", "micro(micro(R))"])  # fmt: skip
def test_refused__what_is_no_share(name):
    with pytest.raises(UsageError):
        score(run_of(BEFORE), qrels=QRELS, measures=[name])
