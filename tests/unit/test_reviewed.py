"""Cases that nobody reviewed: scored, reported, told of, and never in a gate."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tables
from ragcore import compare, schema, score
from ragcore.gatekeeper import Gatekeeper
from ragcore.gates import FAIL, INCONCLUSIVE, PASS, parse_gates
from ragcore.plan import Plan


def judged_suite(folder, **columns):
    cases = pa.table({
        "case_id": ["a", "b", "c", "d"],
        "evidence": [tables.evidence("d1")] * 4, **columns,
    })  # fmt: skip
    return tables.write_suite(folder / "s", cases)


def ranked(*lists):
    return pa.table({"case_id": ["a", "b", "c", "d"], "ranked": list(lists)})


HIT, MISS = ["d1"], ["x"]


@pytest.mark.parametrize(
    "columns",
    [
        {"status": ["final", "unreviewed", None, "unreviewed"]},
        {"origin": ["model", "model", "human", "model"], "reviewed": [True, False, False, False]},
        # what is not said, or said in words, is no review
        {"origin": ["model", "model", "human", "model"], "reviewed": [True, None, None, None]},
        {"origin": ["model", "model", "human", "model"], "reviewed": ["yes", "no", "", "false"]},
        {"origin": ["model", "model", "human", "model"], "reviewed": [1, 0, 0, 0]},
    ],
)
def test_unreviewed__cases_never_enter_a_gate(tmp_path, columns):
    suite = judged_suite(tmp_path, **columns)
    old, new = ranked(MISS, HIT, MISS, HIT), ranked(HIT, MISS, HIT, MISS)
    scores = score(new, suite=suite, measures=["Success@1"])
    assert scores.mean("Success@1") == 0.5  # they are scored, and reported
    (one,) = Gatekeeper(scores.runs).check(parse_gates(["Success@1 >= 1"]))
    assert (one.status, one.value) == (PASS, 1.0)
    assert one.reason == "2 unreviewed cases never enter a gate"
    found = compare(old, new, suite=suite, measures=["Success@1"], gates=["delta(Success@1) >= 1"])
    assert found.contrasts[0].whole()["Success@1"].paired.delta == 0.0
    (one,) = found.check(["delta(Success@1) >= 1"])
    assert (one.status, one.value) == (PASS, 1.0)
    assert "2 unreviewed cases" in one.reason


def test_unreviewed__alone_leave_a_gate_with_nothing_to_rest_on(tmp_path):
    suite = judged_suite(tmp_path, status=["unreviewed"] * 4)
    scores = score(ranked(HIT, HIT, HIT, HIT), suite=suite, measures=["Success@1"])
    (one,) = Gatekeeper(scores.runs).check(parse_gates(["Success@1 >= 0"]))
    assert one.status == FAIL
    assert one.reason == "no case with a value; 4 unreviewed cases never enter a gate"


@pytest.mark.parametrize("field", ["n_missing", "n_na", "n_failed", "n_ok"])
def test_unreviewed__alone_are_nothing_to_count(tmp_path, field):
    suite = judged_suite(tmp_path, status=["unreviewed"] * 4)
    runs = score(ranked(HIT, HIT, HIT, HIT), suite=suite, measures=["Success@1"]).runs
    for gate in (f"Success@1.{field} == 0", f"Success@1[status=nobody].{field} == 0"):
        (one,) = Gatekeeper(runs).check(parse_gates([gate]))
        assert (one.status, one.value) == (FAIL, None)
        assert one.reason.startswith("no case to count")


def only(table, *names):
    kept = [i for i, name in enumerate(table["case_id"].to_pylist()) if name in names]
    return table.take(kept)


@pytest.mark.parametrize("topics", ["judged", "common"])
def test_unreviewed__cases_that_a_run_lacks_are_no_hole(tmp_path, topics):
    suite = judged_suite(tmp_path, status=["final", "unreviewed", "final", "unreviewed"])
    run = only(ranked(HIT, HIT, HIT, HIT), "a", "c")
    scores = score(run, suite=suite, measures=["Success@1"], topics=topics)
    for gate in ("Success@1 >= 1", "Success@1.coverage >= 1", "coverage >= 1"):
        (one,) = Gatekeeper(scores.runs).check(parse_gates([gate]))
        assert (one.status, one.value) == (PASS, 1.0), (gate, one.reason)
    # a reviewed case that it lacks is one
    scores = score(only(run, "a"), suite=suite, measures=["Success@1"], topics=topics)
    (one,) = Gatekeeper(scores.runs).check(parse_gates(["Success@1 >= 1"]))
    assert one.status == (FAIL if topics == "judged" else INCONCLUSIVE)


def test_unreviewed__variants_of_the_baseline_alone_enter_no_difference(tmp_path):
    """The candidate was run in the reviewed language only, the baseline in both."""
    cases = pa.table({
        "case_id": ["a", "a", "b", "b"], "lang": ["en", "zh"] * 2,
        "evidence": [tables.evidence("d1")] * 4, "status": ["final", "unreviewed"] * 2,
    })  # fmt: skip
    suite = tables.write_suite(tmp_path / "s", cases)

    def run(*rows):
        return pa.table({
            "case_id": [case for case, _, _ in rows], "lang": [lang for _, lang, _ in rows],
            "ranked": [found for _, _, found in rows],
        })  # fmt: skip

    old = run(("a", "en", HIT), ("a", "zh", MISS), ("b", "en", HIT), ("b", "zh", MISS))
    new = run(("a", "en", HIT), ("b", "en", HIT))
    found = compare(old, new, suite=suite, measures=["Success@1"])
    (one,) = found.check(["delta(Success@1) == 0"])
    assert (one.status, one.value) == (PASS, 0.0)
    assert "2 unreviewed cases" in one.reason


def test_unreviewed__cases_are_named_beside_a_verdict(tmp_path):
    suite = judged_suite(tmp_path, status=["final", "unreviewed", None, "unreviewed"])
    old, new = ranked(MISS, HIT, MISS, HIT), ranked(HIT, MISS, HIT, MISS)
    said = "2 cases that nobody reviewed are in these numbers, and in no gate"
    for more in ({}, {"plan": Plan(primary=("Success@1",))}):
        found = compare(old, new, suite=suite, measures=["Success@1"], **more)
        assert said in found.verdicts[0].reasons
    clean = judged_suite(tmp_path / "c", status=["final"] * 4)
    found = compare(old, new, suite=clean, measures=["Success@1"])
    assert not [r for r in found.verdicts[0].reasons if "reviewed" in r]


def test_unreviewed__traces_still_break_hard_conditions(tmp_path):
    evidence = [[{"doc_id": "d1", "role": "forbidden", "relevance": 0}]] * 4
    suite = judged_suite(
        tmp_path, status=["unreviewed"] * 4,
        evidence=pa.array(evidence, schema.CASES.field("evidence").type),
    )  # fmt: skip
    scores = score(ranked(MISS, HIT, MISS, MISS), suite=suite, measures=["forbidden.count"])
    (one,) = Gatekeeper(scores.runs).check(parse_gates(["hard.forbidden == 0"]))
    assert (one.status, one.value) == (FAIL, 1.0)
