"""Summaries: slices by any column, counts by state, aggregates, intervals and notes."""

import math

import numpy as np
import pyarrow as pa
import pytest

import tables
from ragcore import schema, score
from ragcore.errors import UsageError
from ragcore.summary import aggregate
from ragcore_kernels.resample import exponential, mean_interval


@pytest.fixture
def suite(tmp_path):
    n = 12
    cases = pa.table({
        "case_id": [f"c{i}" for i in range(n)],
        "lang": pa.array(["en", "zh"] * 6).dictionary_encode(),
        "type": pa.array([["x", "y"], ["y"], [], None] * 3, pa.list_(pa.string())),
        "slices": pa.array([[("hops", "1")], [("hops", "2"), ("risk", "high")], [], None] * 3,
                           pa.map_(pa.string(), pa.string())),
        "answerable": [True, False, None] * 4,
        "topic": ["a", "b", None, "文"] * 3,
        "turn": pa.array([1, 2] * 6, pa.int16()),
        "evidence": [tables.evidence(("d1", 1))] * n,
    })  # fmt: skip
    return tables.write_suite(tmp_path / "s", cases)


@pytest.fixture
def run():
    n = 12
    return pa.table({
        "case_id": [f"c{i}" for i in range(n)],
        "ranked": [["d1"] if i % 3 else ["x", "d1"] for i in range(n)],
        "condition": ["end_to_end"] * 6 + ["gold_context"] * 6,
        "fault": pa.array([None] * 11 + ["slow"]).dictionary_encode(),
        "repeat": pa.array([0] * n, pa.int16()),
    })  # fmt: skip


def by(run, suite, column, measure="RR"):
    rows = score(run, suite=suite, measures=[measure]).summary([column]).to_pylist()
    assert rows[0]["slice"] == "all"
    return {row["slice"]: row for row in rows[1:]}


def sizes(run, suite, column):
    return {name: row["n_cases"] for name, row in by(run, suite, column).items()}


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("lang", {"lang=en": 6, "lang=zh": 6}),
        ("type", {"type=x": 3, "type=y": 6, "type=(none)": 6}),
        ("hops", {"hops=1": 3, "hops=2": 3, "hops=(none)": 6}),
        ("risk", {"risk=(none)": 9, "risk=high": 3}),
        ("answerable", {"answerable=true": 4, "answerable=false": 4, "answerable=(none)": 4}),
        ("topic", {"topic=a": 3, "topic=b": 3, "topic=(none)": 3, "topic=文": 3}),
        ("turn", {"turn=1": 6, "turn=2": 6}),
        ("condition", {"condition=end_to_end": 6, "condition=gold_context": 6}),
        ("fault", {"fault=(none)": 11, "fault=slow": 1}),
        ("repeat", {"repeat=0": 12}),
        ("case_id", {f"case_id=c{i}": 1 for i in range(12)}),
    ],
)
def test_by__any_column(run, suite, column, expected):
    assert sizes(run, suite, column) == expected


def test_by__several_columns_each_on_its_own(run, suite):
    rows = score(run, suite=suite, measures=["RR", "P@1"]).summary(["lang", "fault"]).to_pylist()
    assert [(r["slice"], r["measure"]) for r in rows[:4]] == [
        ("all", "RR"), ("all", "P@1"), ("lang=en", "RR"), ("lang=en", "P@1")
    ]  # fmt: skip
    assert len(rows) == 2 * 5


@pytest.mark.parametrize("column", ["nothing", "evidence", "slices"])
def test_by__what_is_no_slice_is_refused(run, suite, column):
    with pytest.raises(
        UsageError, match=rf"no column '{column}'(?s:.*)columns to slice by: .*lang"
    ):
        by(run, suite, column)


def test_by__qrels_alone_have_no_columns():
    scores = score({"q": {"a": 1.0}}, qrels={"q": {"a": 1}})
    with pytest.raises(UsageError, match="judgements alone have no columns"):
        scores.summary(["lang"])
    assert scores.summary(["case_id"]).num_rows == 2 * len(scores.measures)


def test_by__slices_partition_the_whole(run, suite):
    whole = score(run, suite=suite, measures=["RR"]).summary().to_pylist()[0]
    for column in ("lang", "topic", "answerable", "hops", "fault"):
        parts = by(run, suite, column).values()
        assert sum(part["n_cases"] for part in parts) == whole["n_cases"]
        assert math.fsum(part["numerator"] for part in parts) == pytest.approx(whole["numerator"])


def test_note__small_slices_are_descriptive(run, suite):
    notes = {name: row["note"] for name, row in by(run, suite, "fault").items()}
    assert notes == {
        "fault=(none)": None,
        "fault=slow": "descriptive: fewer than 10 cases; n=1: no interval",
    }


def test_summary__has_the_columns_of_the_schema(run, suite):
    scores = score(run, suite=suite)
    assert scores.summary().schema.equals(schema.SUMMARY)
    assert scores.table().schema.equals(schema.SCORES)
    for row in scores.summary(["lang"]).to_pylist():
        states = sum(row[f"n_{state}"] for state in schema.STATES)
        assert states == row["n_cases"]
        if row["denominator"]:
            assert row["mean"] == pytest.approx(row["numerator"] / row["denominator"], rel=1e-15)
        if row["ci_low"] is not None:
            assert row["ci_low"] - 1e-15 <= row["mean"] <= row["ci_high"] + 1e-15


def test_summary__of_no_value_has_no_number():
    scores = score({"q": {"a": 1.0}}, qrels={"q": {"a": 0}}, measures=["RR"], no_relevant="na")
    row = scores.summary().to_pylist()[0]
    assert (row["mean"], row["ci_low"], row["ci_high"], row["ci_method"]) == (None,) * 4
    assert (row["numerator"], row["denominator"], row["n_na"]) == (0.0, 0.0, 1)


def test_summary__sums_and_geometric_means():
    scores = score({"q": {"a": 1.0}, "r": {"b": 1.0}}, qrels={"q": {"a": 1}, "r": {"a": 1}},
                   measures=["NumRet", "gm_map"])  # fmt: skip
    total, geometric = scores.summary().to_pylist()
    assert (total["mean"], total["denominator"], total["note"]) == (2.0, None, "total over cases")
    assert geometric["mean"] == pytest.approx(math.exp((0 + math.log(1e-5)) / 2))
    assert geometric["note"] == "geometric mean"
    assert geometric["ci_low"] == pytest.approx(1e-5)
    assert geometric["ci_high"] == 1.0


@pytest.mark.parametrize(
    ("how", "expected"), [("sum", (0.0, 0.0, None)), ("mean", None), ("geometric", None)]
)
def test_aggregate__of_nothing(how, expected):
    found = aggregate(how, np.array([]))
    assert found == expected if expected else math.isnan(found[0]) and found[1:] == (0.0, 0.0)


def test_aggregate__sums_are_correctly_rounded():
    values = np.array([0.1] * 10 + [1e16, -1e16])
    assert aggregate("mean", values)[1] == math.fsum(values)


def test_mean__of_equal_cases_is_their_value():
    run = {f"q{i}": {"a": 1.0} for i in range(3)}
    scores = score(run, qrels={case: {"a": 1} for case in run}, measures=["P@5", "P@10", "P@15"])
    for row, value in zip(scores.summary().to_pylist(), (1 / 5, 1 / 10, 1 / 15), strict=True):
        assert (row["mean"], row["ci_low"], row["ci_high"]) == (value, value, value)


def test_level__wider_for_more_confidence():
    rng = np.random.default_rng(3)
    run = {f"q{i}": {"a": 1.0, "b": float(rng.integers(0, 3))} for i in range(40)}
    scores = score(run, qrels={case: {"a": 1} for case in run}, measures=["RR"])
    rows = [scores.summary(level=level).to_pylist()[0] for level in (0.5, 0.9, 0.99)]
    widths = [row["ci_high"] - row["ci_low"] for row in rows]
    assert widths == sorted(widths)
    assert widths[0] < widths[2]


def test_geometric_mean__bound_is_that_of_its_own_scale():
    rng = np.random.default_rng(11)
    logs = np.log(rng.random(60))
    inner = mean_interval(logs)
    outer = exponential(inner)
    assert inner.bound > 0
    assert (outer.low, outer.high) == (math.exp(inner.low), math.exp(inner.high))
    assert outer.bound >= math.exp(inner.high + inner.bound) - outer.high - 1e-15  # of rounding
    assert float(outer.method.removeprefix("exact±")) >= outer.bound
    assert exponential(mean_interval([0.0, 0.0])).method == "exact"
    assert exponential(mean_interval([])).method == ""
