"""SWEEP.toml: whatever is unknown, missing or of the wrong kind is refused by name, before work."""

from __future__ import annotations

import pyarrow as pa
import pytest

import ragcore
import sweep_world
from ragcore.errors import RagcoreError
from ragcore.experiments.config import read_config, strategies_of
from ragcore.experiments.setups import Setup, changes, shown
from ragcore.report.table import write_arrow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return sweep_world.suite(tmp_path_factory.mktemp("world") / "suite")


def put(given, path, value):
    *parents, last = path.split(".")
    for one in parents:
        given = given.setdefault(one, {})
    given[last] = value


WRONG = [
    ("colour", 1, "unknown key 'colour' in the file"),
    ("sweep.colour", 1, r"unknown key 'colour' in \[sweep\]"),
    ("sweep.threshold.colour", 1, r"unknown key 'colour' in \[sweep.threshold\]"),
    ("sweep.strategies.ladder", [], r"unknown key 'ladder' in \[sweep.strategies\]"),
    ("sweep.chunking.pairs", {"colour": 1}, "unknown key 'colour' in chunking 'pairs'"),
    ("sweep.chunking.pairs", {"merge": 2, "overlap": 2}, "overlap 2 of 2"),
    ("sweep.chunking.pairs", {"merge": 1}, "is the suite's own"),
    ("sweep.chunking.pairs", {"overlap": 1}, "merges nothing"),
    ("sweep.chunking.pairs", {"merge": 0}, "merge = 0"),
    ("sweep.chunking", [], "a table"),
    ("production.colour", 1, r"\[production\] has the unknown key 'colour'"),
    ("production.strategy", "magic", "unknown strategy 'magic'"),
    ("production.candidate_k", 0, r"candidate_k of \[production\] = 0"),
    ("production.candidate_k", True, "a whole number"),
    ("production.thresholds", {"cosine": 1}, "unknown channel 'cosine'"),
    ("production.thresholds", {"bm25": float("nan")}, '"off" or a finite number'),
    ("production.filters", ["acl=x"], "filter 'acl=x' is not understood"),
    ("production.rrf_k", -1, "a number from 0 to"),
    ("production.k1", -1, "a number from 0 on"),
    ("production.b", 2, "0 to 1"),
    ("production.weights", [1], "two numbers"),
    ("production.method", "magic", "one of rrf"),
    ("production.count_repeats", 1, "true or false"),
    ("deviation.odd", {"colour": 1}, r"\[deviation.odd\] has the unknown key"),
    ("sweep.ladder", ["bm25", "magic"], "unknown strategy 'magic' \\(ladder"),
    ("sweep.ladder", "bm25", "a list"),
    ("sweep.candidate_k", [5, "ten"], "'ten'"),
    ("sweep.threshold.channel", "bm26", "unknown channel 'bm26'"),
    ("sweep.threshold.channel", "dense", "a channel of production, which is hybrid-exact"),
    ("sweep.threshold.values", ["low"], '"off" or a finite number'),
    ("sweep.threshold.values", [], "values, each once"),
    ("sweep.threshold.values", [0.5, 0.5], "values, each once"),
    ("sweep.threshold.choose", "luck", "one of f1"),
    ("plan.colour", 1, "unknown key 'colour'"),
    ("plan.ladder", 1, "a table"),
    ("plan.guards", {"R@5": -1}, "a finite margin"),
    ("measures", ["nothing@5"], "nothing@5"),
    ("by", ["colour"], "no column 'colour' to report by"),
    ("run", "nowhere.arrow", "there is no such file"),
    ("index", "nowhere", "there is no such file"),
    ("index", {"colour": 1}, r"unknown key 'colour' in \[index\]"),
    ("suite", "nowhere", "no suite 'nowhere'"),
    ("split", "final", "cases of the split 'final'"),
    ("name", "", "a word"),
    ("reranker", "python:nowhere:at_all", "cannot be loaded"),
    ("reranker", "magic", "no reranker 'magic'"),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG)
def test_config__refuses_by_name_before_any_work(folder, tmp_path, path, value, said):
    given = sweep_world.sweep(folder)
    put(given, path, value)
    with pytest.raises(RagcoreError, match=said):
        ragcore.sweep(given, state=tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_config__a_reranked_production_needs_a_reranker(folder):
    given = sweep_world.sweep(folder)
    given["production"]["strategy"] = "hybrid-exact+reranker"
    with pytest.raises(RagcoreError, match="without a reranker"):
        read_config(given)


def test_config__an_empty_sweep_and_broken_files(folder, tmp_path):
    with pytest.raises(RagcoreError, match="no experiment"):
        read_config({"suite": str(folder)})
    with pytest.raises(RagcoreError, match="no suite"):
        read_config({"sweep": {"candidate_k": [1]}})
    (tmp_path / "broken.toml").write_text("a = = 1")
    for name, said in (("broken.toml", "broken TOML"), ("nowhere.toml", "a readable file")):
        with pytest.raises(RagcoreError, match=said):
            read_config(tmp_path / name)


def test_config__splits_that_are_not_there(folder, tmp_path):
    cases = pa.ipc.open_file((folder / "cases.arrow").read_bytes()).read_all()
    other = sweep_world.suite(tmp_path / "other")
    test = cases.filter([split == "test" for split in cases["split"].to_pylist()])
    for table, said in (
        (test, "'validation' that thresholds are chosen on"),
        (cases.drop_columns(["split"]), "no column split"),
    ):
        with (other / "cases.arrow").open("wb") as stream:
            write_arrow(table, stream)
        with pytest.raises(RagcoreError, match=said):
            read_config(sweep_world.sweep(other))
    given = sweep_world.sweep(other)
    with (other / "cases.arrow").open("wb") as stream:
        write_arrow(test, stream)
    del given["sweep"]["threshold"]  # without one, validation is not needed
    assert read_config(given).split == "test"


def test_config__paths_are_looked_for_beside_the_file(folder):
    path = folder.parent / "sweep.toml"
    path.write_text('suite = "suite"\n[sweep]\ncandidate_k = [5]\n')
    made = read_config(path)
    assert made.suite.path == folder
    assert made.name == "sweep"
    assert made.by == ("type",)
    assert made.plans["ladder"].primary == ("R@5", "R@1", "nDCG@10", "RR")
    assert made.plans["ladder"].guards == {"nDCG@10": 0.0}


def test_config__plans_of_single_experiments(folder):
    given = sweep_world.sweep(folder, plan={
        "primary": ["R@1"], "p95_ratio": 3.0, "chunking": {"primary": ["context.coverage"]},
    })  # fmt: skip
    plans = read_config(given).plans
    assert plans["ladder"].primary == plans["context_k"].primary == ("R@1",)
    assert plans["chunking"].primary == ("context.coverage",)
    assert plans["chunking"].p95_ratio == 3.0


@pytest.mark.parametrize(
    ("strategy", "candidate", "context"),
    [
        ("hybrid-exact", ("dense-exact", "hybrid-exact"), ("hybrid-exact",)),
        ("dense", ("dense", "hybrid"), ("hybrid",)),
        ("bm25", ("bm25",), ("bm25",)),
    ],
)
def test_strategies__of_an_experiment_are_productions_dense_and_hybrid(
    folder, strategy, candidate, context
):
    given = sweep_world.sweep(folder)
    given["production"]["strategy"] = strategy
    given["sweep"].pop("threshold")
    made = read_config(given)
    assert strategies_of(made, "candidate_k") == candidate
    assert strategies_of(made, "context_k") == context
    assert strategies_of(made, "chunking") == (strategy,)
    given["sweep"]["strategies"] = {"chunking": ["bm25"]}
    assert strategies_of(read_config(given), "chunking") == ("bm25",)


def test_setup__thresholds_of_dense_channels_stand_for_each_other():
    made = Setup("hybrid", thresholds={"dense": 0.5})
    assert made.threshold("dense_exact") == made.threshold("dense") == 0.5
    assert made.settings().thresholds == {"dense": 0.5}
    assert Setup("hybrid-exact", thresholds={"dense": 0.5}).settings().thresholds == {
        "dense_exact": 0.5
    }
    assert Setup("bm25", thresholds={"dense": 0.5}).unused() == ["dense"]


def test_setup__changes_are_told_key_by_key():
    one = Setup(thresholds={"bm25": 1.0})
    other = Setup("bm25", thresholds={"dense": 0.25}, filters=("acl",), rrf_k=1)
    assert changes(one, other) == [
        "strategy: hybrid-exact -> bm25", "threshold.bm25: 1 -> off",
        "threshold.dense: off -> 0.25", "filters: [] -> [acl]", "rrf_k: 60 -> 1",
    ]  # fmt: skip
    assert (shown(None), shown(True), shown("")) == ("as the index", "true", "the suite's own")
