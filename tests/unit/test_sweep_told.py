"""What a sweep says beside its numbers: what was not compared, left out, timed, or idle."""

from __future__ import annotations

import sys
from types import ModuleType

import pyarrow as pa
import pytest

import ragcore
import sweep_world
from ragcore.errors import InputError, UsageError
from ragcore.report import sweep as report
from ragcore.report.table import write_arrow

NONE = {"sweep": {}, "deviation": {}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return sweep_world.suite(tmp_path_factory.mktemp("world") / "suite")


def changed(folder, file, **columns):
    """The file of a suite with other values; a function is given the old ones."""
    path = folder / f"{file}.arrow"
    with path.open("rb") as stream:
        table = pa.ipc.open_file(stream).read_all()
    for name, values in columns.items():
        values = values(table[name].to_pylist()) if callable(values) else values
        kind = table.schema.field(name).type
        at = table.column_names.index(name)
        table = table.set_column(at, name, pa.array(values, kind))
    with path.open("wb") as stream:
        write_arrow(table, stream)
    return folder


def swept(folder, tmp_path, **over):
    given = sweep_world.sweep(folder, **(NONE | over))
    return ragcore.sweep(given, state=tmp_path / "state")


def production(**over):
    own = {"strategy": "hybrid-exact", "candidate_k": 10, "context_k": 3, "filters": ["acl"]}
    return own | over


def sentence(found, start):
    return next(line for line in report.sentences(found) if line.startswith(start))


def test_times__of_one_recording_decide_nothing(folder, tmp_path):
    found = swept(
        folder, tmp_path, sweep={"candidate_k": [20], "context_k": [8], "ladder": ["bm25"]},
        plan={"primary": ["context.coverage", "R@1"], "p95_ratio": 0.5},
    )  # fmt: skip
    for name in ("candidate_k=20", "context_k=8"):
        row = found.row(name)
        assert row["p95_ratio"] is None
        assert row["verdict"] != "product decision"  # though a ratio of 1 lies above 0.5
        assert row["reasons"][-1] == "p95 not told apart: both as timed at depth 20"
        assert not any(why.startswith("p95 0.") for why in row["reasons"])
    assert found.row("bm25")["p95_ratio"] > 0  # other stages: that can be told


def test_tokens__beyond_the_ratio_of_the_plan_are_a_product_decision(folder, tmp_path):
    changed_folder = sweep_world.suite(tmp_path / "suite", n_cases=200)
    given = {
        "sweep": {"context_k": [10]}, "measures": ["context.coverage"],
        "plan": {"primary": ["context.coverage"], "guards": []},
    }  # fmt: skip
    free = swept(changed_folder, tmp_path, **given)
    row = free.row("context_k=10")
    assert row["verdict"] == "adopt"
    page = report.page(free, "table").decode()
    assert "adopt; 3.33 times the context tokens" in page
    assert "tokens ratio none" in page
    assert ", context tokens 30.0 -> 100.0 (3.33 times): adopt; p95 not told apart" in page
    given["plan"]["tokens_ratio"] = 3.0
    bound = swept(changed_folder, tmp_path, **given).row("context_k=10")
    assert bound["verdict"] == "product decision"
    assert bound["reasons"][0] == "context tokens grow 3.33 times, above 3"
    given["plan"]["tokens_ratio"] = 3.5
    assert swept(changed_folder, tmp_path, **given).row("context_k=10")["verdict"] == "adopt"


def test_tokens__that_are_not_known_are_counted(tmp_path):
    folder = changed(
        sweep_world.suite(tmp_path / "suite"), "chunks",
        n_tokens=lambda own: [None if i % 4 == 0 else n for i, n in enumerate(own)],
    )  # fmt: skip
    found = swept(folder, tmp_path, sweep={"context_k": [5]})
    cell = next(c for c in found.baseline["cells"] if c["measure"] == "context.tokens")
    assert cell["n_missing"] > 0
    assert f"30.0 ({cell['n_missing']} missing)" in report.page(found, "table").decode()


def test_idle__settings_say_that_they_change_nothing(folder, tmp_path):
    found = swept(
        folder, tmp_path, production=production(strategy="dense-exact", filters=[]),
        deviation={
            "k": {"k1": 0.5}, "r": {"rrf_k": 3}, "e": {"ef": 5}, "w": {"filter_when": "after"}
        },
    )  # fmt: skip
    for name, said in (("k", "k1 changes nothing here: dense-exact does not search bm25"),
                       ("r", "rrf_k changes nothing here: dense-exact fuses nothing"),
                       ("e", "ef changes nothing here: dense-exact does not search HNSW"),
                       ("w", "filter_when changes nothing here: there is no filter")):  # fmt: skip
        assert said in found.row(name)["notes"]
    other = swept(
        folder, tmp_path,
        deviation={"n": {"normalise": "z-score"}, "w": {"weights": [1.0, 2.0]}},
    )  # fmt: skip
    assert other.row("n")["notes"] == [
        "normalise changes nothing here: rrf fuses ranks, not scores"
    ]
    assert other.row("w")["notes"] == []
    assert other.row("w")["changes"] == ["weights: equal -> [1, 2]"]


def test_cuts__of_measures_that_look_deeper_are_said(folder, tmp_path):
    found = swept(
        folder, tmp_path, production=production(strategy="dense-exact"),
        sweep={"candidate_k": [5, 20], "strategies": {"candidate_k": ["dense-exact"]}},
    )  # fmt: skip
    said = "nDCG@10 looks deeper than the 5 ranks that candidate_k 5 gives"
    assert found.row("candidate_k=5")["notes"] == [said]
    assert found.row("candidate_k=20")["notes"] == []


def test_hnsw__names_the_ef_in_effect_and_what_brute_force_answered(folder, tmp_path):
    found = swept(
        folder, tmp_path, production=production(strategy="dense", filters=[], ef=50),
        sweep={"candidate_k": [40]}, deviation={"low": {"ef": 5}},
    )  # fmt: skip
    assert found.row("candidate_k=40")["label"] == "prefix-of-depth-40, ef=50"
    assert found.row("low")["label"] == "prefix-of-depth-40, ef=40 (5 asked for)"
    opening = report.opening(found)
    assert any(line.startswith("production is replayed, too: prefix-of") for line in opening)
    masked = swept(folder, tmp_path, production=production(strategy="dense"),
                   sweep={"context_k": [5]})  # fmt: skip
    label = masked.baseline["label"]  # four times 10 is more than a tenth of 96 chunks
    assert label == "prefix-of-depth-10, ef=100, 20 of 20 by brute force"
    with pytest.raises(UsageError, match="no row 'context_k=5'"):
        masked.row("context_k=5")


def test_reranker__what_it_was_timed_over_and_whether_neighbours_count(
    folder, tmp_path, monkeypatch
):
    module = ModuleType("sweep_rerankers")
    module.beside = lambda question, texts: [len(t) / len(texts) for t in texts]  # type: ignore[attr-defined]
    module.alone = lambda question, texts: [float(len(t)) for t in texts]  # type: ignore[attr-defined]
    for function in (module.beside, module.alone):
        function.version = "1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sweep_rerankers", module)
    for name, notes in (("alone", 0), ("beside", 1)):
        found = swept(
            folder, tmp_path, reranker=f"python:sweep_rerankers:{name}",
            production=production(strategy="hybrid-exact+reranker"),
            sweep={"candidate_k": [5, 20]},
        )  # fmt: skip
        said = [line for line in found.notes if "by the others beside it" in line]
        assert len(said) == notes
        assert found.row("candidate_k=5")["timed"].endswith("of which this row has 5.0")


def test_cases__that_a_run_lacks_stand_in_the_report(folder, tmp_path):
    index = ragcore.build_index(folder / "chunks.arrow", tmp_path / "i", hnsw=False)
    table = ragcore.search(
        index, folder, strategy="hybrid-exact", candidate_k=20, filters=["acl"]
    ).table
    for n, said in ((30, None), (40, "20 cases")):
        with (tmp_path / "wide.arrow").open("wb") as stream:
            write_arrow(table.slice(0, n), stream)
        found = swept(folder, tmp_path, run=str(tmp_path / "wide.arrow"), sweep={"context_k": [5]})
        text = report.page(found, "md").decode()
        if said:
            assert f"split test, {said}" in text
        else:
            assert "split test, 15 of 20 cases" in text
            assert "note: 5 of 20 cases are not in the recorded run" in text


def test_types__of_no_value_are_called_so(tmp_path):
    folder = changed(
        sweep_world.suite(tmp_path / "suite"), "cases",
        type=lambda own: [None if i < 4 else [] if i < 8 else t for i, t in enumerate(own)],
    )  # fmt: skip
    found = swept(folder, tmp_path, sweep={"context_k": [5]})
    assert found.about["types"]["(none)"] == 4
    assert {c["n_cases"] for c in found.baseline["cells"] if c["slice"] == "type=(none)"} == {4}


def test_threshold__that_cannot_be_chosen_is_a_row_that_says_so(tmp_path):
    folder = changed(
        sweep_world.suite(tmp_path / "suite"), "cases",
        evidence=lambda own: [[] if i % 2 == 0 else e for i, e in enumerate(own)],
    )  # fmt: skip
    found = swept(
        folder, tmp_path, sweep={"threshold": {"channel": "bm25", "values": ["off", 3.0]}}
    )
    (row,) = found.rows
    assert (row["name"], row["state"]) == ("threshold.bm25", "not evaluated")
    assert row["reason"] == "no case of the split validation has a value of f1 to choose by"
    assert row["reason"] in report.page(found, "table").decode()
    assert found.table().num_rows > len(found.rows)


def test_threshold__a_precision_over_fewer_cases_says_over_how_many(folder, tmp_path):
    values = ["off", 0.7, 0.9]
    found = swept(
        folder, tmp_path,
        sweep={"threshold": {"channel": "dense_exact", "values": values, "choose": "precision"}},
    )  # fmt: skip
    best = next(row for row in found.curve if row["chosen"] and row["slice"] == "all")
    assert best["n_precision"] < best["n_recall"] == 16
    said = f"over {best['n_precision']} cases, of 16 that have an answer"
    assert said in sentence(found, "threshold on dense_exact")


def test_threshold__off_is_off_under_either_name_of_a_dense_channel(folder, tmp_path):
    given = {"channel": "dense_exact", "values": ["off", 0.1]}
    found = swept(
        folder, tmp_path, production=production(thresholds={"dense": 0.6}),
        sweep={"threshold": given},
    )  # fmt: skip
    (row,) = found.rows
    assert row["changes"] == ["threshold.dense: 0.6 -> off"]
    assert row["threshold"] == {}
    plain = swept(folder, tmp_path, sweep={"threshold": given})
    assert found.curve == plain.curve


def test_plans__of_experiments_are_told_whole_and_checked_first(folder, tmp_path):
    plan = {"ladder": {"primary": ["R@1"], "guards": {}}, "context_k": {"p95_ratio": 3.0}}
    found = swept(
        folder, tmp_path, plan=plan,
        sweep={"context_k": [5], "ladder": ["bm25"], "candidate_k": [5]},
    )  # fmt: skip
    lines = [line for line in report.opening(found) if line.startswith("plan")]
    assert any(line.startswith("plan of ladder: primary R@1; guards none") for line in lines)
    assert any("context_k: " in line and "p95 ratio 3" in line for line in lines)
    for primary, said in ((["context.tokens"], "neither more nor less"), (["nope"], "unknown")):
        with pytest.raises(UsageError, match=said):
            swept(folder, tmp_path / "new", plan={"primary": primary}, sweep={"context_k": [5]})
    assert not (tmp_path / "new").exists()


def test_verdict__without_a_case_says_so(tmp_path):
    folder = changed(
        sweep_world.suite(tmp_path / "suite"), "cases",
        evidence=lambda own: [[] for _ in own], answerable=lambda own: [False for _ in own],
    )  # fmt: skip
    found = swept(folder, tmp_path, sweep={"context_k": [5]})
    assert "no primary measure has a case on both sides" in sentence(found, "context_k 3 -> 5")


def test_splits__a_case_in_both_is_no_case_to_tune_on(tmp_path):
    folder = sweep_world.suite(tmp_path / "suite")
    with (folder / "cases.arrow").open("rb") as stream:
        table = pa.ipc.open_file(stream).read_all()
    other = table.slice(1, 1)  # a case of test, in another language and split
    for name, value in (("lang", "de"), ("split", "validation")):
        at = table.column_names.index(name)
        other = other.set_column(at, name, pa.array([value], table.schema.field(name).type))
    with (folder / "cases.arrow").open("wb") as stream:
        write_arrow(pa.concat_tables([table, other]), stream)
    tuned = {"threshold": {"channel": "bm25", "values": ["off", 3.0]}}
    with pytest.raises(InputError, match="1 cases are in the splits validation and test, as 'q01'"):
        swept(folder, tmp_path, sweep=tuned)
    swept(folder, tmp_path, sweep={"context_k": [5]})  # nothing is tuned
