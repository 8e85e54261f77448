"""The verb: rows that change one thing, thresholds tuned apart, what is not evaluated, taint."""

from __future__ import annotations

import json
from fractions import Fraction

import pyarrow as pa
import pytest

import ragcore
import sweep_world
from ragcore import schema
from ragcore.errors import InputError
from ragcore.experiments.result import CURVE, SWEEP
from ragcore.report import sweep as report
from ragcore.report.table import write_arrow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return sweep_world.suite(tmp_path_factory.mktemp("world") / "suite")


@pytest.fixture(scope="module")
def found(folder):
    given = sweep_world.sweep(folder, reranker="python:sweep_world:overlap")
    return ragcore.sweep(given, state=folder.parent / "state")


def manifest(found, folder, row):
    path = folder.parent / "state" / row["file"]
    table = table_of(path)
    return json.loads(table.schema.metadata[schema.MANIFEST_KEY]), table


def table_of(path):
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def whole(row):
    return {cell["measure"]: cell for cell in row["cells"] if cell["slice"] == "all"}


def test_rows__come_in_order_and_each_changes_one_thing(found):
    order = [row["experiment"] for row in found.rows]
    assert list(dict.fromkeys(order)) == [
        "candidate_k", "context_k", "ladder", "threshold", "chunking", "deviation"
    ]  # fmt: skip
    assert [row["name"] for row in found.rows if row["experiment"] == "candidate_k"] == [
        "dense-exact candidate_k=5", "dense-exact candidate_k=10", "dense-exact candidate_k=20",
        "candidate_k=5", "candidate_k=10", "candidate_k=20",
    ]  # fmt: skip
    for row in found.rows:
        if row["state"] == "evaluated":
            assert row["single_change"], row["manifest"]
            assert len(row["changes"]) == 1
    assert found.row("candidate_k=20")["changes"] == ["candidate_k: 10 -> 20"]
    dense = found.row("dense-exact candidate_k=20")
    assert dense["anchor"] == "production with dense-exact"
    assert dense["changes"] == ["candidate_k: 10 -> 20"]
    assert found.row("candidate_k=10")["state"] == "unchanged"
    assert found.standing(found.row("candidate_k=10")) is found.baseline
    assert found.standing(found.row("dense-exact candidate_k=10")) is found.row("dense-exact")


def test_rows__are_what_searching_and_comparing_gives(found, folder):
    """The same numbers by `ragcore.search` and `ragcore.compare`, without any replay."""
    index = ragcore.build_index(folder / "chunks.arrow", folder.parent / "index", hnsw=False)
    cases = table_of(folder / "cases.arrow")
    test = cases.filter([split == "test" for split in cases["split"].to_pylist()])

    def run(**over):
        given = {"strategy": "hybrid-exact", "candidate_k": 10, "context_k": 3} | over
        return ragcore.search(index, test, filters=["acl"], **given).table

    before = run()
    for name, over in (
        ("candidate_k=20", {"candidate_k": 20}), ("bm25", {"strategy": "bm25"}),
        ("context_k=5", {"context_k": 5}), ("rrf-10", {"rrf_k": 10.0}), ("k1-low", {"k1": 0.4}),
    ):  # fmt: skip
        named = ["R@5", "R@1", "nDCG@10", "context.coverage", "context.tokens"]
        one = ragcore.compare(
            before, run(**over), suite=folder, measures=named, topics="common", by=["type"]
        )
        for cell in found.row(name)["cells"]:
            if cell["measure"] in named:
                paired = one.cell(cell["measure"], cell["slice"]).paired
                assert cell["delta"] == paired.delta
                assert (cell["delta_low"], cell["delta_high"]) == (paired.low, paired.high)
                assert (cell["p_value"], cell["n_matched"]) == (paired.p_value, paired.n)


def test_rows__carry_costs_and_where_they_were_timed(found):
    for row in [found.baseline, *found.rows]:
        if row.get("state") in ("unchanged", "not evaluated"):
            continue
        assert row["timed"]
        assert row["depth"] == 20
        assert row["p95_us"] >= row["p50_us"] > 0
    assert found.row("context_k=5")["context_tokens"] == 50.0
    assert found.baseline["context_tokens"] == 30.0
    sizes = {name: found.row(name)["index_bytes"] for name in ("bm25", "dense-exact")}
    documents = sum(sizes.values()) - found.baseline["index_bytes"]
    assert 0 < documents < min(sizes.values())


def test_manifests__name_the_baseline_and_the_split_that_chose(found, folder):
    row = next(row for row in found.rows if row["experiment"] == "threshold")
    said, table = manifest(found, folder, row)
    chosen = next(r for r in found.curve if r["chosen"] and r["slice"] == "all")
    assert said["threshold"] == {"dense_exact": chosen["threshold"]}
    assert said["threshold_split"] == "validation"
    assert (said["baseline"], said["single_change"]) == ("production", "threshold")
    assert row["threshold_split"] == "validation"
    assert not row["tainted"]
    assert table.num_rows == 20  # the test split alone
    cases = table_of(folder / "cases.arrow")
    split = dict(zip(cases["case_id"].to_pylist(), cases["split"].to_pylist(), strict=True))
    assert {split[case] for case in table["case_id"].to_pylist()} == {"test"}
    runs = [folder.parent / "state" / one["file"] for one in (found.baseline, row)]
    (pair,) = ragcore.compare(*runs, suite=folder, topics="common", measures=["R@5"]).contrasts
    assert pair.manifest.single  # for whoever compares the kept runs


def test_curve__is_what_counting_gives(found, folder):
    """Recall, precision, F1 and rates in fractions, from the channel's own lists."""
    index = ragcore.build_index(folder / "chunks.arrow", folder.parent / "again", hnsw=False)
    cases = table_of(folder / "cases.arrow").to_pylist()
    runs = ragcore.search(
        index, folder, strategy="dense-exact", candidate_k=10, filters=["acl"]
    ).table.to_pylist()
    ranked = {row["case_id"]: row["ranked"] for row in runs}
    for row in found.curve:
        t = -2.0 if row["threshold"] is None else row["threshold"]
        part = [
            case for case in cases if case["split"] == "validation"
            and row["slice"] in ("all", *(f"type={one}" for one in case["type"]))
        ]  # fmt: skip
        recall, precision, f1, empty, some = [], [], [], [], []
        for case in part:
            passing = [item["id"] for item in ranked[case["case_id"]] if item["score"] >= t]
            if not case["answerable"]:
                some.append(Fraction(bool(passing)))
                continue
            (item,) = case["evidence"]
            right = sum(one == f"{item['doc_id']}#{item['block']}" for one in passing)
            recall.append(Fraction(right))
            precision += [Fraction(right, len(passing))] if passing else []
            f1.append(Fraction(2 * right, len(passing) + 1))
            empty.append(Fraction(not passing))
        for name, count, values in (
            ("recall", "n_recall", recall), ("precision", "n_precision", precision),
            ("f1", "n_f1", f1), ("no_result", "n_answerable", empty),
            ("any_result", "n_unanswerable", some),
        ):  # fmt: skip
            assert row[count] == len(values)
            wanted = float(sum(values) / len(values)) if values else None
            assert row[name] == (None if wanted is None else pytest.approx(wanted, abs=1e-12))
    whole = [row for row in found.curve if row["slice"] == "all"]
    best = max(row["f1"] for row in whole)
    first = next(row["threshold"] for row in whole if row["f1"] == best)
    assert [row["threshold"] for row in whole if row["chosen"]] == [first]
    assert [row["threshold"] for row in whole] == [None, 0.2, 0.5, 0.7]


def test_threshold__ties_go_to_the_lower_and_off_is_the_lowest(folder, tmp_path):
    given = sweep_world.sweep(folder, deviation={})
    for values, wanted in (([-3, -2, "off"], None), ([-2, -3], -3.0)):
        given["sweep"] = {
            "threshold": {"channel": "dense_exact", "values": values, "choose": "recall"}
        }
        found = ragcore.sweep(given, state=tmp_path / "state")
        assert [r["threshold"] for r in found.curve if r["chosen"] and r["slice"] == "all"] == [
            wanted
        ]
        (row,) = found.rows
        assert row["state"] == ("unchanged" if wanted is None else "evaluated")


def test_threshold__where_nothing_passes_recall_is_0_and_precision_na(folder, tmp_path):
    given = sweep_world.sweep(folder, deviation={})
    given["sweep"] = {"threshold": {"channel": "dense_exact", "values": [0.3, 2.0]}}
    found = ragcore.sweep(given, state=tmp_path / "state")
    nothing = next(r for r in found.curve if r["threshold"] == 2.0 and r["slice"] == "all")
    assert (nothing["recall"], nothing["precision"], nothing["f1"]) == (0.0, None, 0.0)
    assert (nothing["no_result"], nothing["any_result"]) == (1.0, 0.0)
    assert (nothing["n_recall"], nothing["n_precision"]) == (16, 0)


def test_taint__a_threshold_tested_where_it_was_tuned_is_no_evidence(folder, tmp_path):
    given = sweep_world.sweep(folder, split="validation", deviation={})
    given["sweep"] = {"threshold": {"channel": "dense_exact", "values": [0.3, 0.6]}}
    found = ragcore.sweep(given, state=tmp_path / "state")
    (row,) = found.rows
    assert (row["verdict"], row["tainted"]) == ("tainted", True)
    assert "chosen on the split 'validation', which it is tested on" in found.warnings[0]
    assert "tainted" in report.sentences(found)[0]
    path = tmp_path / "state" / row["file"]
    alone = ragcore.compare(
        path, path, suite=folder, measures=["R@1"], primary=["R@1"], topics="common"
    )
    assert alone.verdict().verdict == "tainted"
    given["split"] = "test"
    given["production"]["threshold_split"] = "test"
    given["production"]["thresholds"] = {"dense_exact": 0.1}
    found = ragcore.sweep(given, state=tmp_path / "state")
    assert found.rows[0]["tainted"]  # its baseline is


def test_not_evaluated__says_why_and_is_never_made_up(folder, tmp_path):
    found = ragcore.sweep(sweep_world.sweep(folder), state=tmp_path / "state")
    said = {row["name"]: row["reason"] for row in found.rows if row["state"] == "not evaluated"}
    assert said == {
        "hybrid-exact+reranker": "no reranker is declared", "chunking=pairs": "no vectors"
    }  # fmt: skip
    table = found.table().to_pylist()
    (row,) = [row for row in table if row["row"] == "hybrid-exact+reranker"]
    assert (row["state"], row["value"], row["delta"]) == ("not evaluated", None, None)
    page = report.page(found, "table").decode()
    assert "not evaluated: no reranker is declared" in page


def test_tables__have_their_schemas_and_hold_every_slice(found):
    table = found.table()
    assert table.schema.equals(SWEEP)
    assert found.thresholds().schema.equals(CURVE)
    rows = table.to_pylist()
    assert {row["slice"] for row in rows if row["slice"]} == {
        "all", "type=keyword", "type=paraphrase", "type=unanswerable"
    }  # fmt: skip
    about = json.loads(table.schema.metadata[b"ragcore.sweep"])
    assert about["cannot_show"] == ["how people ask"]
    assert about["types"] == {"keyword": 10, "paraphrase": 10, "unanswerable": 4}
    deciding = [row for row in rows if row["p_adjusted"] is not None]
    assert len(deciding) == sum(row["state"] == "evaluated" for row in found.rows)
    assert all(row["p_adjusted"] >= row["p_value"] for row in deciding)


def test_page__reads_the_result_in_words(found):
    said = report.sentences(found)
    line = next(one for one in said if one.startswith("strategy hybrid-exact -> bm25"))
    assert "R@1 -0.0625 [-0.3125, 0.1875] over 16 cases, interval includes 0: reject" in line
    assert "sign conflict by type: type=keyword +0.2500, type=paraphrase -0.3750" in line
    page = report.page(found, "md").decode()
    assert "suite world (development (made for tests)), split test, 20 cases, 96 chunks" in page
    assert "cannot show: how people ask" in page
    assert "baseline: production" in page
    assert "type=unanswerable (n=4, descriptive)" in page
    assert "slices disagree" in page


def test_context_k__is_decided_by_what_reaches_the_context(found):
    assert found.about["plans"]["context_k"]["primary"][0] == "context.coverage"
    assert whole(found.row("context_k=5"))["R@5"]["delta"] == 0.0
    assert whole(found.row("context_k=5"))["context.coverage"]["delta"] > 0


def test_several_keys__are_allowed_and_said_to_be_no_single_change(folder, tmp_path):
    given = sweep_world.sweep(folder, sweep={}, deviation={"two": {"rrf_k": 1, "context_k": 9}})
    found = ragcore.sweep(given, state=tmp_path / "state")
    (row,) = found.rows
    assert not row["single_change"]
    assert "not a single change" in report.sentences(found)[0]


def test_recorded_run__is_reranked_where_a_reranker_is_declared(found, folder, tmp_path):
    index = ragcore.build_index(folder / "chunks.arrow", tmp_path / "i", hnsw=False)
    wide = ragcore.search(
        index, folder, strategy="hybrid-exact", candidate_k=20, filters=["acl"], name="wide"
    ).table
    with (tmp_path / "wide.arrow").open("wb") as stream:
        write_arrow(wide, stream)
    given = sweep_world.sweep(
        folder, run=str(tmp_path / "wide.arrow"), index=str(tmp_path / "i"),
        reranker="python:sweep_world:overlap",
    )  # fmt: skip
    ours = ragcore.sweep(given, state=tmp_path / "state")
    name = "hybrid-exact+reranker"
    for one, other in zip(ours.row(name)["cells"], found.row(name)["cells"], strict=True):
        assert one["delta"] == other["delta"]
    assert ours.row(name)["timed"]
    assert ours.row("bm25")["index_bytes"] > 0
    assert ragcore.sweep(given, state=tmp_path / "state").rows == ours.rows


def test_notes__of_narrow_fusion_and_thresholds_that_do_not_apply(folder, tmp_path):
    given = sweep_world.sweep(folder, deviation={})
    given["production"] |= {"context_k": 8, "thresholds": {"dense_exact": 0.1}}
    given["sweep"] = {"candidate_k": [5], "ladder": ["bm25"]}
    found = ragcore.sweep(given, state=tmp_path / "state")
    assert "narrow fusion" in found.row("candidate_k=5")["notes"][0]
    assert found.row("bm25")["single_change"]
    assert found.row("bm25")["notes"] == [
        "the threshold on dense_exact does not apply: bm25 does not search it"
    ]


def test_recorded_run__is_replayed_instead_of_a_search(found, folder, tmp_path):
    index = ragcore.build_index(folder / "chunks.arrow", tmp_path / "i", hnsw=False)
    wide = ragcore.search(
        index, folder, strategy="hybrid-exact", candidate_k=20, filters=["acl"], name="wide"
    ).table
    with (tmp_path / "wide.arrow").open("wb") as stream:
        write_arrow(wide, stream)
    given = sweep_world.sweep(folder, run=str(tmp_path / "wide.arrow"))
    given["sweep"]["candidate_k"] = [5, 40]
    del given["production"]["filters"]  # as the run says
    ours = ragcore.sweep(given, state=tmp_path / "state")
    same = ("delta", "delta_low", "delta_high", "mean", "p_value")
    for name in ("candidate_k=5", "bm25", "rrf-10", "context_k=5"):
        for one, other in zip(ours.row(name)["cells"], found.row(name)["cells"], strict=True):
            assert [one[key] for key in same] == [other[key] for key in same]
    reasons = {row["name"]: row["reason"] for row in ours.rows if row["state"] == "not evaluated"}
    assert (
        "too shallow: bm25 was recorded to depth 20, below candidate_k 40"
        in reasons["candidate_k=40"]
    )
    assert "k1 0.4 needs a search" in reasons["k1-low"]
    assert "another chunking has to be searched" in reasons["chunking=pairs"]
    assert reasons["hybrid-exact+reranker"] == "no reranker, and no stage reranked is recorded"
    assert ours.row("bm25")["index_bytes"] is None
    given["production"]["k1"] = 3.0
    with pytest.raises(InputError, match=r"k1 = 3\.0.*1\.2, which the recorded run"):
        ragcore.sweep(given, state=tmp_path / "state")
    given["production"] |= {"k1": 1.2, "candidate_k": 30}
    with pytest.raises(InputError, match=r"production cannot be run: .*too shallow"):
        ragcore.sweep(given, state=tmp_path / "state")
