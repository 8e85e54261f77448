"""Answers of the in-domain suite: golden values, and the same from a few lines of plain Python."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import reference_in_domain as plain
from ragcore.diagnose import diagnose
from ragcore.score import score

RUNS = [plain.FOLDER / "runs" / f"extractive-{name}.arrow" for name in plain.STRATEGIES]
GOLDEN = tomllib.loads((Path(__file__).parent / "in_domain_answers.toml").read_text("utf-8"))
"""By strategy: of each measure the mean, and how many cases have a value; of some by type."""
NEAR = 0.02
TYPES = sorted({kind for row in plain.CASES.values() for kind in row["type"]})
each_strategy = pytest.mark.parametrize("strategy", plain.STRATEGIES)
each_measure = pytest.mark.parametrize("measure", plain.MEASURES)


@pytest.fixture(scope="module")
def found():
    """By strategy, measure and slice: a row of the summary."""
    scores = score(RUNS, measures=list(plain.MEASURES))
    return {
        (row["run"].removeprefix("extractive-"), row["measure"], row["slice"]): row
        for row in scores.summary(by=["type"]).to_pylist()
    }


@each_strategy
def test_values__are_the_golden_ones(found, strategy):
    golden = GOLDEN[strategy]["all"]
    assert set(golden) == set(plain.MEASURES)
    for measure, (mean, n) in golden.items():
        row = found[strategy, measure, "all"]
        assert row["mean"] == pytest.approx(mean, abs=NEAR), measure
        assert row["n_ok"] == pytest.approx(n, abs=4), measure


def test_readme__has_the_values(found):
    page = (plain.FOLDER / "README.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| `([a-z_.]+)`[^|]*\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", page)
    assert len(rows) >= 17
    for measure, *values in rows:
        got = [found[strategy, measure, "all"]["mean"] for strategy in plain.STRATEGIES]
        assert [float(value) for value in values] == pytest.approx(got, abs=0.00051), measure


@each_strategy
def test_values__by_type_are_the_golden_ones(found, strategy):
    for measure, types in GOLDEN[strategy]["type"].items():
        for kind, (mean, _) in types.items():
            row = found[strategy, measure, f"type={kind}"]
            assert row["mean"] == pytest.approx(mean, abs=NEAR), (measure, kind)


@each_measure
@each_strategy
def test_values__are_those_of_plain_python(found, strategy, measure):
    cases = plain.by_case(strategy, measure)
    kinds = {case: plain.CASES[case, "en"]["type"] for case in cases}
    slices = {f"type={kind}": [c for c in cases if kind in kinds[c]] for kind in TYPES}
    for name, chosen in {"all": list(cases), **slices}.items():
        row = found[strategy, measure, name]
        total, n, na, missing = plain.totals([cases[case] for case in chosen])
        assert (row["n_ok"], row["n_na"], row["n_missing"]) == (n, na, missing), name
        assert (row["n_disputed"], row["n_failed"]) == (0, 0)
        assert row["numerator"] == pytest.approx(float(total), abs=1e-9), name
        if n:
            assert row["mean"] == pytest.approx(float(total / n), abs=1e-12), name


def test_missing__is_what_no_label_speaks_of(found):
    unlabelled = {
        key[0]
        for key, row in plain.CASES.items()
        if set(range(len(row["claims"]))) - {item["claim"] for item in row["evidence"]}
    }
    for strategy in plain.STRATEGIES:
        row = found[strategy, "claims.context_recall", "all"]
        assert row["n_missing"] == len(unlabelled) == 6


@each_strategy
def test_answers__are_sentences_of_the_context_and_nothing_else(strategy):
    for row in plain.TRACES[strategy].values():
        shown = {one["id"] for one in row["context"]}
        assert [one["sentence"] for one in row["claims"]] == list(range(len(row["claims"])))
        assert (row["final"]["state"] == "answer") == bool(row["claims"])
        for one in row["citations"]:
            chunk = plain.CHUNKS[one["id"]]
            start = one["start"] - chunk["start"]
            assert one["id"] in shown
            assert chunk["text"][start : start + len(one["quote"])] == one["quote"]
        first = {one["claim"]: one["quote"] for one in reversed(row["citations"])}
        assert [first[i] for i in range(len(row["claims"]))] == [c["text"] for c in row["claims"]]


@each_strategy
def test_answers__to_what_is_refused_and_to_conflicts(strategy):
    said = Counter()
    for key, row in plain.TRACES[strategy].items():
        case = plain.CASES[key]
        if any(item["role"] == "forbidden" for item in case["evidence"]):
            said["refused", row["final"]["state"]] += 1
        if case["expected_state"] == "escalate":
            said["conflict", row["final"]["state"]] += 1
    assert said["refused", "abstain"] == pytest.approx(5, abs=1)
    assert said["conflict", "answer"] == pytest.approx(7, abs=1)
    assert said.total() == 16


@each_strategy
def test_answers__cite_nothing_that_the_asker_may_not_see(strategy):
    for key, row in plain.TRACES[strategy].items():
        for one in row["context"]:
            acl = plain.CHUNKS[one["id"]]["acl"]
            assert not acl or set(acl) & set(plain.CASES[key]["principals"]), key


def test_rankings__are_recorded_in_the_order_of_their_scores():
    for traces in plain.TRACES.values():
        for row in traces.values():
            scores = [one["score"] for one in row["ranked"]]
            assert 5 <= len(scores) <= 20
            assert scores == sorted(scores, reverse=True)
            assert [o["id"] for o in row["context"]] == [o["id"] for o in row["ranked"][:5]]


def test_diagnosis__blames_the_layers_of_the_readme():
    counts = Counter((t.run, t.first) for t in diagnose(RUNS).traces)
    for strategy in plain.STRATEGIES:
        layers = GOLDEN[strategy]["first"]
        got = {of: n for (run, of), n in counts.items() if run == f"extractive-{strategy}"}
        assert sum(got.values()) == len(plain.CASES)
        assert set(got) == set(layers)
        for layer, n in layers.items():
            assert got[layer] == pytest.approx(n, abs=8), layer
