"""Forms of an aggregate: what compares as a whole, what a plan refuses, what gates read."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ragcore import compare, score
from ragcore.aggregates import FORMS, aggregate, form_of
from ragcore.errors import UsageError
from ragcore.gatekeeper import Gatekeeper
from ragcore.gates import parse_gates
from ragcore.measures.forms import words_of
from ragcore.plan import Plan
from ragcore_kernels.order_statistics import quantile_interval
from traces import row, run_of, suite_of

N = 40
NAMES = [f"c{i}" for i in range(N)]


def timed(times, costs, tokens):
    return run_of({
        "case_id": NAMES, "timings": [[{"stage": "total", "duration_us": 1000 * t}] for t in times],
        "cost": [{"decode": c} for c in costs], "final": [{"state": "answer"}] * N,
        "tokens_in": [tokens] * N,
    })  # fmt: skip


@pytest.fixture
def suite(tmp_path):
    return suite_of(tmp_path / "s", {"case_id": NAMES, "topic": ["a"] * 30 + ["b"] * 10})


BEFORE = timed(range(1, N + 1), [1.0] * N, 12)
AFTER = timed(range(3, N + 3), [0.5] * N, 10)


def test_forms__of_the_same_values():
    values = np.array([0.0, 0.5, 1.0, 1.0])
    assert aggregate("mean", values) == (0.625, 2.5, 4.0)
    assert aggregate("sum", values) == (2.5, 2.5, None)
    parts = np.array([0.0, 1.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0, 3.0])
    assert aggregate("micro", values, parts) == aggregate("ratio", values, parts)
    assert aggregate("micro", values, parts)[0] == float(Fraction(5, 7))
    assert aggregate("quantile(0.5)", values, (values,)) == (0.5, 2.0, 4.0)
    sure, loss = np.array([0.9, 0.8, 0.8, 0.6, 0.5]), np.array([0.0, 0, 1, 1, 0])
    assert aggregate("aurc", loss, (sure, loss))[0] == pytest.approx(0.296667, abs=5e-7)
    assert aggregate("eaurc", loss, (sure, loss))[0] == pytest.approx(0.166667, abs=5e-7)


@pytest.mark.parametrize("how", [*FORMS, "quantile(0.95)"])
def test_forms__of_nothing(how):
    none = np.empty(0)
    form = form_of(how)
    parts = {"quantile(0.95)": (none,), "ppi": (none,) * 3}.get(how, (none, none))
    total = form.total(none, parts)
    assert how == "sum" or np.isnan(total[0])
    assert total[1] == 0.0
    assert not form.interval(none, parts, 0.95).method
    assert words_of(how)
    assert form.paired or form.why


def test_forms__an_unknown_one_is_a_programming_error():
    with pytest.raises(KeyError):
        form_of("median")


def test_compare__a_quantile_differs_without_a_test(suite):
    found = compare(BEFORE, AFTER, suite=suite, measures=["latency.p95", "latency.mean"])
    wanted = [quantile_interval(np.arange(1.0, N + 1) + more, 0.95).value for more in (0, 2)]
    cell = found.cell("latency.p95").paired
    assert (cell.before, cell.after, cell.delta) == (*wanted, 2.0)
    assert (cell.low, cell.p_value, cell.wins) == (None, None, 0)
    last = found.rows()[-2]
    assert last["measure"] == "latency.p95"
    assert "p95 over traces is no mean of cases" in last["note"]
    assert last["saturation"] is None
    mean = found.cell("latency.mean").paired
    assert mean.delta == 2.0
    assert (mean.wins, mean.losses) == (0, N)  # slower is no gain
    assert found.changed("latency.mean") == ([], NAMES)
    assert {r["outcome"] for r in found.cases("latency.mean").to_pylist()} == {"loss"}


def test_compare__a_ratio_is_of_the_cases_that_both_have(suite):
    found = compare(BEFORE, AFTER.slice(0, 30), suite=suite, measures=["cost.answered"],
                    topics="common", by=["topic"])  # fmt: skip
    cell = found.cell("cost.answered").paired
    assert (cell.n, cell.before, cell.after, cell.delta) == (30, 1.0, 0.5, -0.5)
    assert "no exact interval" in cell.reason
    assert found.cell("cost.answered", "topic=b").paired.n == 0


@pytest.mark.parametrize(
    ("measure", "said"),
    [("latency.p95", "no mean of cases"), ("cost.request", "no exact interval"),
     ("work.steps", "neither more nor less")],
)  # fmt: skip
def test_plan__refuses_what_cannot_decide(suite, measure, said):
    with pytest.raises(UsageError, match=f"primary {measure}.*{said}"):
        compare(BEFORE, AFTER, suite=suite, primary=[measure])
    with pytest.raises(UsageError, match=f"guard {measure}.*{said}"):
        compare(BEFORE, AFTER, suite=suite, primary=["RR"], guards={measure: 0.0})


def test_plan__a_fall_is_a_gain_where_less_is_better(suite):
    slower = compare(BEFORE, AFTER, suite=suite, primary=["latency.mean"])
    assert slower.verdict().verdict == "reject"
    assert slower.verdict().reasons[0].endswith("over 40 cases: above 0")
    faster = compare(AFTER, BEFORE, suite=suite, primary=["latency.mean"])
    assert faster.verdict().verdict == "adopt"
    assert faster.verdict().reasons[0].startswith("latency.mean -2.0000 [-2.0000, -2.0000]")
    assert faster.verdict().reasons[0].endswith("below 0")
    wide = Plan(primary=("latency.mean",), margins={"latency.mean": 3.0}, source="here")
    found = compare(AFTER, BEFORE, suite=suite, plan=wide).verdict()
    assert found.verdict == "inconclusive: noise"
    assert "below 0, but not below its margin of -3" in found.reasons[0]
    guarded = compare(AFTER, BEFORE, suite=suite, primary=["latency.mean"],
                      guards={"tokens.in": 1.0}).verdict()  # fmt: skip
    assert guarded.verdict == "reject"
    assert guarded.reasons[0].startswith("guard tokens.in +2.0000")
    loose = compare(AFTER, BEFORE, suite=suite, primary=["latency.mean"],
                    guards={"tokens.in": 2.0}).verdict()  # fmt: skip
    assert loose.verdict == "adopt"


@pytest.mark.parametrize(
    ("gate", "status"),
    [
        ("latency.p95 <= 38", "pass"), ("latency.p95 < 38", "fail"),
        ("latency.p50.ci_high <= 28", "pass"), ("latency.p99.ci_high <= 1000", "fail"),
        ("latency.p95.max <= 40", "pass"), ("cost.request == 1", "pass"),
        ("cost.answered.numerator == 40", "pass"), ("latency.p95[topic=b] <= 39", "fail"),
    ],
)  # fmt: skip
def test_gates__read_quantiles_and_ratios(suite, gate, status):
    asked = parse_gates([gate])
    scores = score(BEFORE, suite=suite, measures=[asked[0].measure])
    assert [r.status for r in Gatekeeper(scores.runs).check(asked)] == [status]


def test_gates__are_inconclusive_where_traces_were_not_timed(suite):
    scores = score(BEFORE.slice(0, 39), suite=suite, measures=["latency.p95"])
    (found,) = Gatekeeper(scores.runs).check(parse_gates(["latency.p95 <= 100"]))
    assert found.status == "inconclusive"


def test_summary__threads_and_order_change_nothing(suite):
    shuffled = BEFORE.take(np.random.default_rng(1).permutation(N))
    names = ["latency.p95", "cost.answered", "latency.mean"]
    for name in names:
        one, two = (row(score(r, suite=suite, measures=names, threads=t), name)
                    for r, t in ((BEFORE, 1), (shuffled, 2)))  # fmt: skip
        one["run"] = two["run"]
        assert one == two
