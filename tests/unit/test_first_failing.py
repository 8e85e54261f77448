"""The first failing layer: every combination of states and values, against plain Python."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import tables
from ragcore import compare, score
from ragcore.diagnosis import first
from ragcore.errors import UsageError
from ragcore.schema import STATES

OPTIONS = [("ok", 0.0), ("ok", 0.5), ("ok", 1.0), *((state, np.nan) for state in STATES[1:])]


def plain(retrieval, context, task, end):
    if end[0] != "ok":
        return "unknown"
    if end[1] == 1.0:
        return "passed"
    for layer, (state, value) in (
        ("retrieval", retrieval), ("context", context), ("generation", task),
    ):  # fmt: skip
        if state in ("missing", "disputed", "failed"):
            return "unknown"
        if state == "ok" and value < 1.0:
            return layer
    return "citation"


def test_rule__every_combination():
    rows = list(product(OPTIONS, repeat=4))
    values = [np.array([row[i][1] for row in rows]) for i in range(4)]
    states = [np.array([STATES.index(row[i][0]) for row in rows]) for i in range(4)]
    got = [first.FIRST[place] for place in first.by_rule(values, states)]
    assert got == [plain(*row) for row in rows]
    assert len(rows) == 7**4


KIND = pa.struct([("state", pa.string()), ("value", pa.string())])


def said(*states):
    return pa.array([None if s is None else {"state": s, "value": None} for s in states], KIND)


@pytest.fixture
def suite(tmp_path):
    cases = pa.table({
        "case_id": ["a", "a", "b", "b", "c", "c"], "lang": ["en", "zh"] * 3,
        "expected_state": ["answer"] * 6, "evidence": [[{"doc_id": "d", "required": True}]] * 6,
    })  # fmt: skip
    return tables.write_suite(tmp_path / "s", cases)


def run(**others):
    columns = {
        "case_id": ["a", "a", "b", "b"], "lang": ["en", "zh", "en", "zh"],
        "ranked": [["d"], ["d"], ["d"], ["x"]],
        "context": pa.array([[{"id": "d"}], [{"id": "d"}], [], [{"id": "x"}]]),
        "proposed": said("answer", "answer", "abstain", "abstain"),
        "final": said("answer", "answer", "abstain", "abstain"),
    }  # fmt: skip
    return pa.table({**columns, **others})


def labels(table, suite, measures=first.MEASURES):
    scores = score(table, suite=suite, measures=list(measures))
    found = first.first_failing(scores.runs[0])
    return first.of_cases(scores.runs[0], found), scores.runs[0], found


def test_cases__languages_that_differ_are_told_apart(suite):
    cases, one, found = labels(run(), suite)
    assert cases["a"] == {"en": "passed", "zh": "passed"}
    assert cases["b"] == {"en": "context", "zh": "retrieval"}
    assert set(first.divergences(one, found)) == {"b"}
    counts = first.counts(one, found)
    assert (counts["all"]["passed"], counts["all"]["differs"]) == (1, 1)
    assert (counts["en"]["context"], counts["zh"]["retrieval"]) == (1, 1)


def test_cases__not_run_is_unknown_and_never_passed(suite):
    cases, one, found = labels(run(), suite)
    assert cases["c"] == {"en": "unknown", "zh": "unknown"}
    assert first.counts(one, found)["all"]["unknown"] == 1


def test_cases__a_layer_that_is_not_recorded_is_unknown(suite):
    cases, _, _ = labels(run(context=pa.array([None] * 4, pa.list_(KIND))), suite)
    assert cases["a"] == {"en": "passed", "zh": "passed"}
    assert cases["b"] == {"en": "unknown", "zh": "retrieval"}  # retrieval is looked at before
    cases, _, _ = labels(run(final=said(None, "answer", "abstain", None)), suite)
    assert cases["a"] == {"en": "unknown", "zh": "passed"}


def test_first_failing__works_out_what_was_not_scored(suite):
    whole = labels(run(), suite)[0]
    for some in (["end_to_end"], ["context.coverage", "R@5"]):
        assert labels(run(), suite, some)[0] == whole
    with pytest.raises(UsageError, match="was not scored"):
        labels(run(), suite, ["R@5"])


def test_compare__layers_only_where_traces_say(suite):
    worse = run(final=said("abstain", "abstain", "abstain", "abstain"))
    found = compare(run(), worse, suite=suite, measures=["end_to_end"], names=["x", "y"])
    assert found.layers(["a", "b"]) == {"a": ("passed", "citation"), "b": ("differs", "differs")}
    plain_runs = compare(run(), worse, suite=suite, measures=["R@5"], names=["x", "y"])
    assert plain_runs.layers(["a"]) == {}
