"""Gates: the grammar, values, ends, slices, single traces, and what never passes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tables
from ragcore import compare, score
from ragcore.errors import UsageError
from ragcore.gatekeeper import Gatekeeper
from ragcore.gates import Gate, gates_of, parse_gates, slices_for
from ragcore.plan import Plan
from ragcore_kernels.resample import mean_interval


def parsed(text):
    (gate,) = parse_gates([text])
    return gate


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nDCG@10 >= 0.4", ("nDCG@10", False, "all", "value", ">=", 0.4)),
        ("  R@5>0.1 ", ("R@5", False, "all", "value", ">", 0.1)),
        ("retrieval.coverage.ci_low >= 0.9",
         ("retrieval.coverage", False, "all", "ci_low", ">=", 0.9)),
        ("retrieval.coverage >= 90%", ("retrieval.coverage", False, "all", "value", ">=", 0.9)),
        ("delta(R@5).ci_low > -0.01", ("R@5", True, "all", "ci_low", ">", -0.01)),
        ("delta(R@5) >= 0", ("R@5", True, "all", "delta", ">=", 0.0)),
        ("delta(P(rel=2)@5).p_value < 5e-2", ("P(rel=2)@5", True, "all", "p_value", "<", 0.05)),
        ("Unjudged@5.count == 0", ("Unjudged@5", False, "all", "count", "==", 0.0)),
        ("coverage >= 0.99", ("", False, "all", "coverage", ">=", 0.99)),
        ("nDCG@10.coverage != 0", ("nDCG@10", False, "all", "coverage", "!=", 0.0)),
        ("nDCG@10[lang=zh] >= .4", ("nDCG@10", False, "lang=zh", "value", ">=", 0.4)),
        ("nDCG@10[lang=*].ci_high <= .4", ("nDCG@10", False, "lang=*", "ci_high", "<=", 0.4)),
        ("R@5[*].n_ok >= 10", ("R@5", False, "*", "n_ok", ">=", 10.0)),
        ("delta(R@5)[type=a b].losses <= 3", ("R@5", True, "type=a b", "losses", "<=", 3.0)),
        ("delta(R@5[type=x]).wins > 3", ("R@5", True, "type=x", "wins", ">", 3.0)),
        ("nDCG(gains={1:2,2:3})@5 >= 0.1",
         ("nDCG(gains={1:2,2:3})@5", False, "all", "value", ">=", 0.1)),
        ("iprec_at_recall_0.10 > 0", ("iprec_at_recall_0.10", False, "all", "value", ">", 0.0)),
        ("end_to_end.min == 1", ("end_to_end", False, "all", "min", "==", 1.0)),
    ],
)  # fmt: skip
def test_grammar(text, parts):
    gate = parsed(text)
    assert (gate.measure, gate.delta, gate.slice, gate.field, gate.op, gate.threshold) == parts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nDCG@10", "cannot be read"),
        ("", "cannot be read"),
        ("nDCG@10 >= much", "not a number"),
        ("nDCG@10 >= nan", "NaN"),
        ("nonsense >= 1", "unknown measure"),
        ("nDCG@10.ci_mid >= 1", "ci_mid"),
        ("delta(nDCG@10).median >= 1", "unknown field 'median'"),
        ("delta(nonsense) >= 1", "unknown measure"),
        ("recall >= 0.1", "9 measures"),
        ("nDCG@10 => 0.4", "cannot be read"),
    ],
)
def test_grammar__errors_say_what_is_wrong(text, said):
    with pytest.raises(UsageError, match=said):
        parse_gates([text])


def test_delta__needs_a_baseline():
    with pytest.raises(UsageError, match="needs a baseline"):
        gates_of(Plan(gates=("delta(R@5) > 0",)), baseline=False)


def test_slices__that_gates_name_are_made():
    gates = parse_gates(["R@5[lang=zh] > 0", "R@5[type=*] > 0", "R@5[*] > 0"])
    assert slices_for(gates, ["type"]) == ("type", "lang")


# --- on values


@pytest.fixture
def suite(tmp_path):
    n = 12
    cases = pa.table({
        "case_id": [f"c{i}" for i in range(n)],
        "topic": ["a", "b", "b"] * 4,
        "evidence": [tables.evidence(("d", 1))] * n,
    })  # fmt: skip
    return tables.write_suite(tmp_path / "s", cases)


def run_of(ranks, lost=(), errors=()):
    """A run whose relevant document has these ranks; 0 = not found, `lost` = not recorded."""
    lists = [
        None if i in lost else [f"x{j}" for j in range(r - 1)] + ["d"] if r else ["x"]
        for i, r in enumerate(ranks)
    ]
    return pa.table({
        "case_id": [f"c{i}" for i in range(len(ranks))],
        "ranked": pa.array(lists, pa.list_(pa.string())),
        "error": ["boom" if i in errors else None for i in range(len(ranks))],
    })  # fmt: skip


RANKS = [1, 2, 0, 1, 1, 3, 1, 2, 1, 0, 1, 1]
VALUES = [1 / r if r else 0.0 for r in RANKS]


def checked(scores, *texts, by=(), contrasts=(), runs=None):
    keeper = Gatekeeper(runs or scores.runs, contrasts)
    return keeper.check(parse_gates(texts), by)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("", sum(VALUES) / 12), (".value", sum(VALUES) / 12), (".mean", sum(VALUES) / 12),
        (".numerator", sum(VALUES)), (".denominator", 12), (".n_cases", 12), (".n_ok", 12),
        (".n_failed", 0), (".count", 10), (".min", 0.0), (".max", 1.0), (".coverage", 1.0),
        (".ci_low", mean_interval(VALUES).low), (".ci_high", mean_interval(VALUES).high),
    ],
)  # fmt: skip
def test_values__are_those_of_the_summary(suite, field, value):
    scores = score(run_of(RANKS), suite=suite, measures=["RR"])
    (at, above, below) = checked(
        scores, f"RR{field} >= {value - 1e-9!r}", f"RR{field} > {value + 1e-9!r}",
        f"RR{field} < {value + 1e-9!r}",
    )  # fmt: skip
    assert (at.status, above.status, below.status) == ("pass", "fail", "pass")
    assert at.value == pytest.approx(value)


def test_slices__each_is_judged(suite):
    scores = score(run_of(RANKS), suite=suite, measures=["RR"])
    every = checked(scores, "RR[topic=*] > 0.7")
    assert [(r.slice, r.status) for r in every] == [("topic=a", "pass"), ("topic=b", "fail")]
    assert [r.slice for r in checked(scores, "RR[*] > 0", by=["topic"])] == ["topic=a", "topic=b"]
    (absent,) = checked(scores, "RR[topic=zz] >= 0")
    assert (absent.status, absent.value) == ("fail", None)
    (none,) = checked(scores, "RR[*] >= 0")  # no slice was asked for: nothing passes
    assert (none.status, none.reason) == ("fail", "no slices: say --by COLUMN")


@pytest.mark.parametrize("op", [">=", "<=", "==", "!=", ">", "<"])
def test_nothing__fails_every_operator(tmp_path, op):
    cases = pa.table({"case_id": ["c0"], "evidence": [tables.evidence(("d", 0))]})
    suite = tables.write_suite(tmp_path / "s", cases)
    scores = score(run_of([1]), suite=suite, measures=["RR"])
    for field in ("", ".ci_low", ".numerator", ".min", ".count"):
        (result,) = checked(scores, f"RR{field} {op} 0")
        assert (result.status, result.value) == ("fail", None), field
        assert result.reason


def test_lost_cases__decide_at_their_worst(suite):
    scores = score(run_of(RANKS, lost=(0, 3), errors=(0,)), suite=suite, measures=["RR"])
    values = [v for i, v in enumerate(VALUES) if i not in (0, 3)]
    worst = sum(values) / 12
    held, turned, failed, best, equal = checked(
        scores, f"RR >= {worst - 1e-6}", f"RR >= {worst + 1e-3}", "RR >= 0.99",
        f"RR <= {sum(values) / 10 + 0.01}", f"RR != {worst}",
    )  # fmt: skip
    assert (held.status, turned.status, failed.status) == ("pass", "inconclusive", "fail")
    assert "2 of 12 cases not scored" in held.reason
    assert f"worst case {worst:.4g}" in turned.reason
    assert best.status == "inconclusive"  # at worst each of them is 1
    assert equal.status == "inconclusive"
    share, missing, bad = checked(
        scores, "coverage >= 0.99", "RR.n_missing == 1", "RR.n_failed == 1"
    )
    assert share.status == "fail"
    assert share.value == pytest.approx(10 / 12)
    assert (missing.status, bad.status) == ("pass", "pass")
    (low,) = checked(scores, f"RR.ci_low >= {mean_interval(values).low - 1e-9}")
    assert low.status == "inconclusive"


def test_partial__cases_that_lost_a_repeat_are_no_better_for_it(tmp_path):
    """The candidate fails where it is hard: the mean over what is left is perfect."""
    cases = pa.table({"case_id": ["a", "b", "c"], "evidence": [tables.evidence(("d", 1))] * 3})
    suite = tables.write_suite(tmp_path / "s", cases)

    def run(ranks):
        lists = [None if r is None else [*(["x"] * (r - 1)), "d"] for r in ranks]
        return pa.table({
            "case_id": [c for c in "abc" for _ in range(2)],
            "repeat": pa.array([0, 1] * 3, pa.int16()),
            "ranked": pa.array(lists, pa.list_(pa.string())),
        })  # fmt: skip

    before, after = run([1, 2, 1, 2, 1, 2]), run([1, None, 1, None, 1, 1])
    scores = score(after, suite=suite, measures=["RR"])
    (row,) = scores.summary().to_pylist()
    assert (row["mean"], row["n_ok"], row["n_missing"]) == (1.0, 3, 0)
    assert "2 lack a value in some language or repeat" in row["note"]
    value, share, least = checked(scores, "RR >= 0.7", "coverage >= 0.99", "RR.min == 1")
    assert (value.status, value.value) == ("inconclusive", 1.0)
    assert value.reason == "2 of 3 cases not scored, or in part; worst case 0.6667"
    assert (share.status, share.value) == ("fail", 1 / 3)
    assert (least.status, least.reason) == ("inconclusive", "2 trace(s) not scored")
    found = compare(before, after, suite=suite, measures=["RR"])
    rise, fall = found.check(["delta(RR) > 0", "delta(RR) > -0.2"])
    assert rise.status == "inconclusive"  # at worst 1/2, 1/2, 1 against 3/4 each
    assert "2 of 3 cases not scored in the candidate, or in part" in rise.reason
    assert "mean would be 0.6667 against 0.75" in rise.reason
    assert fall.status == "pass"


def test_common__lost_cases_may_belong_to_any_slice(suite):
    """c9 and later were not run at all."""
    run = run_of([1] * 9)
    scores = score(run, suite=suite, measures=["RR"], topics="common")
    one, all_of_it, least = checked(scores, "RR[topic=a] >= 0.9", "RR >= 0.9", "RR.min == 1")
    assert [r.status for r in (one, all_of_it, least)] == ["inconclusive"] * 3
    assert checked(scores, "RR[topic=a] >= 0.4")[0].status == "pass"  # 3 of 6 at worst


def test_common__leaves_cases_out_and_counts_them():
    qrels = {f"q{i}": {"d": 1} for i in range(10)}
    run = {f"q{i}": {"d": 1.0} for i in range(7)}
    scores = score(run, qrels=qrels, measures=["RR"], topics="common")
    held, turned, share = checked(scores, "RR >= 0.7", "RR >= 0.71", "coverage >= 0.8")
    assert (held.status, turned.status, share.status) == ("pass", "inconclusive", "fail")
    assert share.value == pytest.approx(0.7)


def test_traces__any_repeat_breaks_a_hard_gate(tmp_path):
    cases = pa.table({"case_id": ["a", "b"], "evidence": [tables.evidence(("d", 1))] * 2})
    suite = tables.write_suite(tmp_path / "s", cases)
    run = pa.table({
        "case_id": ["a"] * 3 + ["b"] * 3, "repeat": pa.array([0, 1, 2] * 2, pa.int16()),
        "ranked": [["d"], ["d"], ["d"], ["d"], ["x"], ["d"]],
    })  # fmt: skip
    scores = score(run, suite=suite, measures=["RR"])
    mean, least = checked(scores, "RR >= 0.8", "RR.min == 1")
    assert mean.status == "pass"
    assert least.status == "fail"
    assert "'b'" in least.reason


def test_traces__that_were_not_scored_leave_it_open(suite):
    scores = score(run_of([1] * 12, lost=(4,)), suite=suite, measures=["RR"])
    (result,) = checked(scores, "RR.min == 1")
    assert (result.status, result.reason) == ("inconclusive", "1 trace(s) not scored")


def test_sums__have_no_interval_and_fail_on_its_ends(suite):
    scores = score(run_of(RANKS), suite=suite, measures=["NumRet"])
    total, low = checked(scores, "NumRet >= 1", "NumRet.ci_low >= 0")
    assert (total.status, low.status) == ("pass", "fail")


# --- on differences


def test_deltas__fields_and_worst_case(suite):
    before, after = run_of(RANKS), run_of([1] * 12)
    found = compare(before, after, suite=suite, measures=["RR"])
    gains = [1 - v for v in VALUES]
    interval = mean_interval(gains)
    texts = {
        f"delta(RR) >= {sum(gains) / 12 - 1e-9}": "pass", "delta(RR) <= 0": "fail",
        f"delta(RR).ci_low >= {interval.low - 1e-9}": "pass",
        f"delta(RR).ci_high <= {interval.high + 1e-9}": "pass",
        "delta(RR).wins == 5": "pass", "delta(RR).losses == 0": "pass",
        "delta(RR).ties == 7": "pass", "delta(RR).n_matched == 12": "pass",
        "delta(RR).p_value <= 0.0625": "pass", "delta(RR).p_value < 0.0625": "fail",
    }  # fmt: skip
    assert {r.gate.text: r.status for r in found.check(texts)} == texts
    lost = compare(before, run_of([1] * 12, lost=range(4, 12)), suite=suite, measures=["RR"])
    (result,) = lost.check(["delta(RR) >= 0"])
    assert result.status == "inconclusive"
    assert "8 of 12 cases not scored in the candidate" in result.reason
    few = compare(before, run_of([1] * 12, lost=[2]), suite=suite, measures=["RR"])
    (result,) = few.check(["delta(RR) >= 0"])  # c2 had 0 before: it cannot have lost anything
    assert result.status == "pass"


def test_deltas__of_slices(suite):
    found = compare(run_of(RANKS), run_of([1] * 12), suite=suite, measures=["RR"],
                    gates=["delta(RR)[topic=*] > 0"])  # fmt: skip
    results = found.check(["delta(RR)[topic=*] > 0", "delta(RR)[topic=zz] > 0", "delta(RR)[*] > 1"])
    assert [(r.slice, r.status) for r in results] == [
        ("topic=a", "pass"), ("topic=b", "pass"), ("topic=zz", "fail"), ("topic=a", "fail"),
        ("topic=b", "fail"),
    ]  # fmt: skip


def test_deltas__of_one_case_fail_where_there_is_no_interval():
    found = compare({"q": {"y": 1.0}}, {"q": {"x": 1.0}}, qrels={"q": {"x": 1}}, measures=["RR"])
    end, delta = found.check(["delta(RR).ci_low >= 0", "delta(RR) > 0"])
    assert (end.status, end.reason, delta.status) == ("fail", "n=1", "pass")


def test_gate__rises():
    assert [Gate("", "", False, "all", "value", op, 0).rises for op in (">", ">=", "<", "==")] == [
        True, True, False, None,
    ]  # fmt: skip
