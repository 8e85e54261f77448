"""Abstention: both errors of it, coverage and risk, curves, and the published NoMIRACL numbers."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from ragcore import compare, score
from ragcore.errors import UsageError
from ragcore.operating import NEEDED, operating_point, price, price_text
from traces import end, got, row, run_of, suite_of

RATES = ["abstention.false_answer", "abstention.unnecessary", "abstention.precision",
         "abstention.recall", "answer.coverage", "selective.risk", "nomiracl.hallucination",
         "nomiracl.error", "nomiracl.invalid"]  # fmt: skip
CASES = {
    # name: answerable, expected, final, error -> values of RATES
    "right": (True, "answer", "answer", None, ("na", 0, "na", "na", 1, 0, "na", 0, 0)),
    "in part": (True, "answer", "partial", None, ("na", 0, "na", "na", 1, 1, "na", 0, 0)),
    "silent": (True, "answer", "abstain", None, ("na", 1, 0, "na", 0, "na", "na", 1, 0)),
    "escalated": (True, "answer", "escalate", None, ("na", 1, 0, "na", 0, "na", "na", 1, 0)),
    "made up": (False, "abstain", "answer", None, (1, "na", "na", 0, 1, 1, 1, "na", 0)),
    "declined": (False, "abstain", "abstain", None, (0, "na", 1, 1, 0, "na", 0, "na", 0)),
    "closed": (False, "fail_closed", "fail_closed", None, (0, "na", 1, 1, 0, "na", 0, "na", 0)),
    "no state": (False, "abstain", "maybe", None,
                 ("failed", "na", "failed", "failed", "failed", "failed", 0, "na", 1)),
    "crashed": (True, "answer", None, "timeout",
                ("na", "failed", "failed", "na", "failed", "failed", "na", 0, 1)),
    "lost": (True, "answer", None, None,
             ("na", "missing", "missing", "na", "missing", "missing", "na", "missing", "missing")),
    "open": (None, "answer", "answer", None,
             ("disputed", "disputed", "na", "disputed", 1, 0, "disputed", "disputed", "disputed")),
}  # fmt: skip


def folder_of(path, cases):
    return suite_of(path / "s", {
        "case_id": [*cases, "not run"], "answerable": [*(c[0] for c in cases.values()), False],
        "expected_state": [*(c[1] for c in cases.values()), "abstain"],
    })  # fmt: skip


def traces_of(cases, **more):
    return run_of({
        "case_id": list(cases), "final": [end(c[2]) for c in cases.values()],
        "error": [c[3] for c in cases.values()], **more,
    })  # fmt: skip


@pytest.fixture
def scores(tmp_path):
    return score(traces_of(CASES), suite=folder_of(tmp_path, CASES), measures=RATES)


@pytest.mark.parametrize("case", CASES)
def test_rates__every_kind_of_trace(scores, case):
    for measure, wanted in zip(RATES, CASES[case][4], strict=True):
        assert got(scores, measure, case) == wanted, measure


def test_rates__what_was_not_run_is_neither(scores):
    found = {measure: got(scores, measure, "not run") for measure in RATES}
    assert set(found.values()) == {"missing", "na"}
    assert scores.audits[0].counts["invalid outputs"] == 2
    assert scores.audits[0].counts["final states that are none of the five"] == 1


def test_rates__sum_up_with_their_denominators(scores):
    found = {m: row(scores, m) for m in RATES}
    assert (found["abstention.false_answer"]["numerator"],
            found["abstention.false_answer"]["denominator"]) == (1, 3)  # fmt: skip
    assert (found["nomiracl.hallucination"]["numerator"],
            found["nomiracl.hallucination"]["denominator"]) == (1, 4)  # fmt: skip
    assert (found["abstention.precision"]["numerator"],
            found["abstention.precision"]["denominator"]) == (2, 4)  # fmt: skip
    assert found["abstention.false_answer"]["n_failed"] == 1


def test_always_abstaining__does_not_win(tmp_path):
    cases = {name: (*c[:2], "abstain", None) for name, c in CASES.items() if c[0] is not None}
    suite = folder_of(tmp_path, cases)
    names = [*RATES, "end_to_end"]
    found = score(traces_of(cases), suite=suite, measures=names)
    assert found.mean("abstention.recall") == 1.0
    assert found.mean("abstention.unnecessary") == 1.0
    assert row(found, "selective.risk")["n_ok"] == 0
    assert row(found, "end_to_end")["numerator"] == 3


def test_rates__need_their_columns(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a"]})
    bare = score(run_of({"case_id": ["a"]}), suite=suite, measures=[*RATES, "abstention.aurc"])
    assert {bare.state(m, "a") for m in bare.measures} == {"missing"}
    run = run_of({"case_id": ["a"], "final": [end("answer")]})
    found = score(run, suite=suite, measures=RATES)
    assert found.state("abstention.false_answer", "a") == "missing"
    assert found.value("answer.coverage", "a") == 1.0


# --- curves

GOLDEN = [(0.9, 0), (0.8, 0), (0.8, 1), (0.6, 1), (0.5, 0)]
CURVES = ["abstention.aurc", "abstention.eaurc"]


def curve_of(path, points, **more):
    names = [f"c{i}" for i in range(len(points))]
    suite = suite_of(path / "s", {"case_id": names, "expected_state": ["answer"] * len(names)})
    proposed = [{"state": "abstain" if loss else "answer", "confidence": c} for c, loss in points]
    return suite, run_of({"case_id": names, "proposed": proposed, **more})


def test_curve__golden(tmp_path):
    suite, run = curve_of(tmp_path, GOLDEN)
    found = score(run, suite=suite, measures=CURVES)
    area, beyond = (row(found, name) for name in CURVES)
    assert area["mean"] == pytest.approx(0.296667, abs=5e-7)
    assert beyond["mean"] == pytest.approx(0.166667, abs=5e-7)
    assert area["denominator"] == 5.0
    assert area["ci_low"] is None
    assert "no interval" in area["note"]
    assert found.value("abstention.aurc", "c2") == 1.0  # the loss of the case


def test_curve__variants_are_averaged_inside_the_case(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a", "b"], "expected_state": ["answer"] * 2})
    run = run_of({"case_id": ["a", "a", "b"], "repeat": [0, 1, 0], "proposed": [
        {"state": "answer", "confidence": 0.9}, {"state": "abstain", "confidence": 0.1},
        {"state": "answer", "confidence": 0.6},
    ]})  # fmt: skip
    found = score(run, suite=suite, measures=CURVES)
    # b (0.6, loss 0) before a (0.5, loss 1/2): risks 0 and 1/4
    assert found.mean("abstention.aurc") == 0.125


def test_curve__hard_abstentions_are_one_point(tmp_path):
    points = [(None, 1), (None, 1), (None, 0)]
    suite, run = curve_of(tmp_path, points)
    found = score(run, suite=suite, measures=[*CURVES, *NEEDED])
    assert [found.state("abstention.aurc", f"c{i}") for i in range(3)] == ["na", "na", "missing"]
    assert row(found, "abstention.aurc")["mean"] is None
    assert any("one point" in w for w in found.audits[0].warnings)
    assert operating_point(found).coverage == pytest.approx(1 / 3)


def test_curve__compares_as_a_whole(tmp_path):
    suite, run = curve_of(tmp_path, GOLDEN)
    _, better = curve_of(tmp_path, [(0.5 + (1 - loss), loss) for _, loss in GOLDEN])
    found = compare(run, better, suite=suite, measures=CURVES)
    cell = found.cell("abstention.eaurc").paired
    assert cell.after == pytest.approx(0.0)
    assert cell.delta == pytest.approx(-1 / 6)
    assert (cell.low, cell.p_value) == (None, None)
    with pytest.raises(UsageError, match="area under a curve"):
        compare(run, better, suite=suite, primary=["abstention.aurc"])


# --- prices


def priced(path, answered, right):
    """Runs over 100 cases: so many answered, so many of them right."""
    names = [f"c{i}" for i in range(100)]
    suite = suite_of(path / "s", {"case_id": names, "expected_state": ["answer"] * 100})
    runs = []
    for n, ok in zip(answered, right, strict=True):
        states = ["answer"] * ok + ["partial"] * (n - ok) + ["abstain"] * (100 - n)
        runs.append(run_of({"case_id": names, "final": [end(s) for s in states]}))
    return score(runs, suite=suite, measures=list(NEEDED))


def test_price__is_where_right_and_wrong_answers_balance(tmp_path):
    found = price(priced(tmp_path, (40, 90), (36, 75)))
    # 36 right, 4 wrong, 60 silent against 75, 15, 10
    assert (found.cautious, found.v_factor) == (0, pytest.approx(float(Fraction(39, 11))))
    assert found.a_factor == pytest.approx(float(Fraction(50, 11)))
    text = price_text(priced(tmp_path, (40, 90), (36, 75)))
    assert "run1: 90.0 % right at 40.0 % coverage" in text
    assert "the cautious system (run1): wins iff c > 3.545 v + 4.545 a." in text


def test_price__needs_both_measures(scores, tmp_path):
    alone = score(traces_of(CASES), suite=folder_of(tmp_path, CASES), measures=["end_to_end"])
    with pytest.raises(UsageError, match=r"answer\.coverage, selective\.risk not scored"):
        operating_point(alone)
    lost = {"lost": CASES["lost"]}
    none = score(traces_of(lost), suite=folder_of(tmp_path / "n", lost), measures=list(NEEDED))
    with pytest.raises(UsageError, match="no case has a value"):
        operating_point(none)


# --- published outputs

STATE = {"answer_present": "answer", "i_dont_know": "abstain", "both": "both", "other": "other"}


@pytest.mark.parametrize("name", ["nomiracl_zh", "nomiracl_multi"])
def test_nomiracl__of_the_published_outputs(shared_data, tmp_path, name):
    folder = shared_data / name
    queries = pl.read_parquet(folder / "queries.parquet")
    outputs = pl.read_parquet(folder / "responses.parquet")
    suite = suite_of(tmp_path / "s", {
        "case_id": queries["query_id"].to_list(), "answerable": queries["answerable"].to_list(),
    })  # fmt: skip
    names = ["nomiracl.hallucination", "nomiracl.error", "nomiracl.invalid"]
    truth = dict(zip(queries["query_id"], queries["answerable"], strict=True))
    for (system,), part in outputs.group_by("system"):
        ids, verdicts = part["query_id"].to_list(), part["verdict"].to_list()
        run = run_of({"case_id": ids, "final": [end(STATE[v]) for v in verdicts]})
        found = score(run, suite=suite, measures=names, names=[str(system)])
        half = queries.height // 2
        fp = sum(v == "answer_present" and not truth[i] for i, v in zip(ids, verdicts, strict=True))
        fn = sum(v == "i_dont_know" and truth[i] for i, v in zip(ids, verdicts, strict=True))
        bad = sum(v in ("both", "other") for v in verdicts)
        for measure, over, under in zip(names, (fp, fn, bad), (half, half, 2 * half), strict=True):
            total = row(found, measure)
            assert (total["numerator"], total["denominator"]) == (over, under)
        if (system, name) == ("gpt-4-azure", "nomiracl_zh"):
            assert (found.mean(names[0]), found.mean(names[1])) == (109 / 250, 11 / 250)
