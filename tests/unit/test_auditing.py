"""Audits of an index and of other engines' lists: damage is found where it lies."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from click.testing import CliRunner

import indexes
from ragcore.audit_report import AuditSettings
from ragcore.audit_runs import audit_against_run, audit_run, recorded_lists
from ragcore.auditing import audit_index, copies, within
from ragcore.cli import main
from ragcore.errors import UsageError
from ragcore.filters import Filter
from ragcore.search import search
from ragcore.search_settings import Settings
from ragcore_kernels.knn import Neighbours

N, DIM, M = 600, 8, 40


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    rng = np.random.default_rng(11)
    matrix = rng.normal(size=(N, DIM)).astype(np.float32)
    matrix[1] = matrix[0]  # a duplicate
    vectors = {f"n{i:04}": matrix[i] for i in range(N)}
    columns = {
        "shard": [f"s{i % 3}" for i in range(N)],
        "lang": pa.array([("en", "zh", None)[i % 3] for i in range(N)], pa.string()),
    }
    path = tmp_path_factory.mktemp("audit") / "i"
    index = indexes.make(path, vectors=vectors, columns=columns, seed=3)
    asked = {f"q{i:02}": rng.normal(size=DIM) for i in range(M)}
    kinds = [("easy", "hard")[i % 2] for i in range(M)]
    questions = indexes.ask(vectors=asked, kind=kinds, tags=[["a"], ["a", "b"]] * (M // 2))
    return index, questions


def rows_of(report, k=10):
    return {(row.ef, row.slice): row for row in report.audits[k].rows}


def brute(index, questions, k, allowed=None):
    """Ids of the true neighbours, in plain Python."""
    base = np.asarray(index.vectors, np.float64)
    ids = index.ids.to_pylist()
    out = []
    for q in np.asarray(questions.vectors, np.float64):
        scores = base @ q / np.linalg.norm(base, axis=1) / np.linalg.norm(q)
        order = sorted(range(N), key=lambda r: (-scores[r], r))
        out.append([ids[r] for r in order if allowed is None or allowed[r]][:k])
    return out


def test_audit__counts_what_a_plain_comparison_counts(world):
    index, questions = world
    settings = AuditSettings((5,), (5, 40, 400), ("kind", "tags"), target=0.9)
    report = audit_index(index, questions, questions.vectors, settings)
    rows = rows_of(report, 5)
    truth = brute(index, questions, 5)
    for ef in settings.efs:
        found = [
            [i["id"] for i in row]
            for row in search(index, questions, Settings("dense", 5, ef=ef))
            .table["ranked"]
            .to_pylist()
        ]
        hits = [len(set(a) & set(b)) for a, b in zip(found, truth, strict=True)]
        assert rows[ef, "all"].hits == sum(hits)
        assert rows[ef, "all"].wanted == 5 * M
        assert rows[ef, "all"].minimum == min(hits) / 5
        assert rows[ef, "kind=easy"].hits == sum(hits[::2])
        assert rows[ef, "tags=b"].hits == sum(hits[1::2])
        assert rows[ef, "tags=a"].hits == sum(hits)
        shards = [rows[ef, f"shard=s{i}"] for i in range(3)]
        assert sum(row.hits for row in shards) == sum(hits)
        assert sum(row.wanted for row in shards) == 5 * M
        assert all(row.not_findable == 0 for row in shards)
    assert rows[400, "all"].hits == 5 * M
    assert (report.selves.n, report.selves.itself + report.selves.equal) == (N, N)
    assert report.n_copies == 1
    assert report.passed


def test_audit__finds_the_shard_that_is_damaged(world, tmp_path):
    index, questions = world
    path = tmp_path / "i"
    matrix = dict(zip(index.ids.to_pylist(), np.asarray(index.vectors), strict=True))
    broken = indexes.make(
        path, vectors=matrix, columns={"shard": index.documents["shard"].to_pylist()}, seed=3
    )
    shards = broken.documents["shard"].to_pylist()
    for row, shard in enumerate(shards):
        if shard == "s1":  # lost in the graph, and nowhere else
            broken.graph._handle.mark_deleted(row)
    settings = AuditSettings((10,), (10, 600), target=0.6, recall="id")
    report = audit_index(broken, questions, questions.vectors, settings)
    rows = rows_of(report)
    assert rows[600, "all"].mean > 0.6  # the mean over all hides it
    assert rows[600, "all"].verdict == "inconclusive" or rows[600, "all"].verdict == "pass"
    assert rows[600, "shard=s1"].hits == 0
    assert rows[600, "shard=s0"].mean == rows[600, "shard=s2"].mean == 1.0
    audit = report.audits[10]
    assert audit.worst(600).slice == "shard=s1"
    assert audit.verdict(600) == "fail"
    assert not report.passed
    lost = {row for row, shard in enumerate(shards) if shard == "s1"}
    assert set(report.selves.unreachable.tolist()) <= lost
    assert len(lost) - len(report.selves.unreachable) == report.selves.equal <= 1


def test_audit__filters_are_slices_over_what_they_let_through(world):
    index, questions = world
    settings = AuditSettings((10,), (400,), filters=(Filter.parse("lang=zh"),), recall="id")
    report = audit_index(index, questions, questions.vectors, settings)
    (note,) = [note for note in report.notes if "brute force" in note]
    assert note.startswith("filter lang=zh, ef 400, k 10: ")
    assert 0 < int(note.split()[6]) < M  # some have enough among those that HNSW gives first
    wider = dataclasses.replace(settings, ks=(20,))
    said = f"filter lang=zh, ef 400, k 20: {M} of {M} questions were answered by brute force"
    notes = audit_index(index, questions, questions.vectors, wider).notes
    assert any(note.startswith(said) for note in notes)
    rows = rows_of(report)
    row = rows[400, "lang=zh"]
    assert (row.hits, row.wanted, row.verdict) == (10 * M, 10 * M, "pass")
    parts = [rows[400, f"lang=zh & shard=s{i}"] for i in range(3)]
    assert [part.wanted for part in parts] == [0, 10 * M, 0]
    assert [part.verdict for part in parts] == ["inconclusive", "pass", "inconclusive"]


def test_audit__loss_in_the_end_measure_is_paired_and_exact(world):
    index, questions = world
    truth = brute(index, questions, 10)
    qrels = {
        case: {ids[0]: 1, ids[5]: 1} for case, ids in zip(questions.case_ids, truth, strict=True)
    }
    settings = AuditSettings((10,), (10, 400), measures=("R@10",))
    report = audit_index(index, questions, questions.vectors, settings, qrels=qrels)
    low, high = report.losses
    assert (high.ef, high.paired.before, high.paired.after, high.paired.n) == (400, 1.0, 1.0, M)
    lists = search(index, questions, Settings("dense", 10, ef=10)).table.to_pylist()
    found = [len({i["id"] for i in r["ranked"]} & set(qrels[r["case_id"]])) / 2 for r in lists]
    assert low.paired.after == pytest.approx(np.mean(found))
    assert low.paired.delta <= 0


def test_audit__ks_share_one_exact_pass_and_ef_is_never_below_k(world):
    index, questions = world
    report = audit_index(index, questions, questions.vectors, AuditSettings((3, 20), (10, 50)))
    assert {k: audit.efs for k, audit in report.audits.items()} == {3: [10, 50], 20: [20, 50]}
    assert report.audits[20].rows[0].wanted == 20 * M
    table = report.table()
    assert set(table["k"].to_pylist()) == {3, 20}


def test_audit__questions_that_are_not_finite_are_counted(world):
    index, questions = world
    vectors = questions.vectors.copy()
    vectors[0, 0] = np.nan
    report = audit_index(index, questions, vectors, AuditSettings((5,), (400,)))
    row = report.audits[5].rows[0]
    assert (row.n_queries, row.n_na, row.mean) == (M - 1, 1, 1.0)
    assert any("not audited" in note for note in report.notes)


def test_within__keeps_true_neighbours_of_a_part():
    exact = Neighbours(
        np.array([[3, 1, 2, 0], [0, -1, -1, -1]], np.int32),
        np.array([[4.0, 3.0, 2.0, 1.0], [9.0, -np.inf, -np.inf, -np.inf]]), np.array([4, 1]),
    )  # fmt: skip
    part = within(exact, np.array([True, True, False, False]), 3)
    assert part.rows.tolist() == [[1, -1, -1], [0, -1, -1]]
    assert part.scores[:, 0].tolist() == [3.0, 9.0]
    assert part.counts.tolist() == [1, 1]


def test_copies__are_equal_bit_for_bit():
    assert copies(np.array([[1, 2], [1, 2], [3, 4], [1, 2]], np.float32)) == 2
    assert copies(np.empty((0, 3), np.float32)) == 0


def test_audit__what_is_in_no_slice_is_counted(tmp_path):
    vectors = {name: [float(i), 1.0] for i, name in enumerate("abcd")}
    columns = {"shard": ["x", "y", None, "x"]}
    index = indexes.make(tmp_path / "i", vectors=vectors, columns=columns)
    questions = indexes.ask(vectors=vectors, kind=["u", None, None, "v"])
    settings = AuditSettings((1,), (10,), ("kind",))
    notes = audit_index(index, questions, questions.vectors, settings).notes
    assert "2 of 4 cases have no kind: in no slice of it" in notes
    assert "1 of 4 chunks have no shard: in no slice of shards" in notes


# --- lists of other engines


def test_run__against_vectors(world, tmp_path):
    index, questions = world
    truth = brute(index, questions, 6)
    lists = {(case, None): ids[:5] for case, ids in zip(questions.case_ids, truth, strict=True)}
    lists["q00", None] = ["nowhere", truth[0][0], truth[0][5]]
    del lists["q01", None]
    lists["extra", None] = ["n0001"]
    settings = AuditSettings((5,), by=("kind",), recall="id", target=0.5)
    report = audit_run(index, questions, questions.vectors, lists, settings)
    row = report.audits[5].rows[0]
    assert (row.hits, row.wanted) == (5 * (M - 2) + 1, 5 * M)
    assert (row.not_findable, row.short_lists) == (1, 2)
    assert report.notes[:3] == [
        f"1 of {M} cases are not in the run: empty lists",
        "1 cases of the run are not among those audited: left out",
        f"1 ids are not in {index.path}, the first is 'nowhere': no hits",
    ]


def test_run__against_an_exact_run(world):
    index, questions = world
    truth = dict(
        zip([(c, None) for c in questions.case_ids], brute(index, questions, 8), strict=True)
    )
    lists = {key: ids[1:8] for key, ids in truth.items()}
    report = audit_against_run(truth, lists, AuditSettings((8,), recall="id"), questions)
    assert (report.audits[8].rows[0].hits, report.audits[8].rows[0].wanted) == (7 * M, 8 * M)
    with pytest.raises(UsageError, match="needs vectors"):
        audit_against_run(truth, lists, AuditSettings((8,)))
    with pytest.raises(UsageError, match="at most 8"):
        audit_against_run(truth, lists, AuditSettings((9,), recall="id"))


def test_recorded_lists__of_a_run_and_of_a_stage(world, tmp_path):
    from ragcore.report.table import whole_file, write_arrow

    index, questions = world
    table = search(index, questions, Settings("dense-exact", 4)).table
    with whole_file(tmp_path / "r.arrow") as file:
        write_arrow(table, file)
    lists = recorded_lists(tmp_path / "r.arrow")
    assert lists == recorded_lists(tmp_path / "r.arrow", "dense_exact")
    assert list(lists.values()) == brute(index, questions, 4)
    (tmp_path / "t.trec").write_text("q1 Q0 a 1 2.0 x\nq1 Q0 b 2 1.0 x\n")
    assert recorded_lists(tmp_path / "t.trec") == {("q1", None): ["a", "b"]}


# --- the command


def write(folder, name, **columns):
    feather.write_feather(pa.table(columns), str(folder / name))


def test_command__exit_status_is_the_verdict(world, tmp_path, monkeypatch):
    index, questions = world
    monkeypatch.chdir(tmp_path)
    feather.write_feather(questions.table, "cases.arrow")
    (tmp_path / "qrels").write_text("".join(f"{case} 0 n0001 1\n" for case in questions.case_ids))

    def call(*arguments):
        return CliRunner().invoke(main, ["audit", *map(str, arguments)])

    done = call(index.path, "cases.arrow", "--ef", "10,400", "--by", "kind", "--qrels", "qrels")
    assert done.exit_code == 0, done.output
    assert "verdict: pass; ef" in done.stdout
    assert "self-recall: 600/600 nodes find themselves" in done.stdout
    assert "duplicates: 1 vectors equal another one" in done.stdout
    assert "nDCG@10 at ef 400, k 10: exact" in done.stdout
    done = call(index.path, "cases.arrow", "--ef", "10", "--target", "1", "-f", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == (0 if all(r["mean"] == 1 for r in rows) else 1)
    assert {"slice", "hits", "wanted", "low", "verdict"} <= rows[0].keys()
    for strategy, name in (("dense", "ann"), ("dense-exact", "exact")):
        run = [
            "search",
            str(index.path),
            "cases.arrow",
            "--strategy",
            strategy,
            "-o",
            f"{name}.arrow",
        ]
        assert CliRunner().invoke(main, run).exit_code == 0
    done = call("--run", "ann.arrow", "--exact-run", "exact.arrow", "cases.arrow", "--by", "kind")
    assert done.exit_code == 0, done.output
    assert "id recall@10" in done.stdout
    assert "kind=easy" in done.stdout
    done = call(index.path, "cases.arrow", "--run", "ann.arrow")
    assert done.exit_code == 0
    assert "distance recall@10" in done.stdout
    for arguments, said in (
        ([index.path], "needs INDEX and CASES"),
        (["--exact-run", "exact.arrow"], "say --run RUN"),
        ([index.path, "cases.arrow", "--ef", "x"], "whole numbers"),
        ([index.path, "cases.arrow", "--by", "colour"], "no column colour"),
        (["--run", "ann.arrow", "--exact-run", "exact.arrow", "--recall", "distance"], "vectors"),
    ):
        done = call(*arguments)
        assert done.exit_code == 2, done.output
        assert said in done.stderr


def test_command__needs_a_graph(tmp_path):
    index = indexes.make(tmp_path / "i", vectors={"a": [1.0, 0.0]}, hnsw=False)
    questions = indexes.ask(vectors={"q": [1.0, 0.0]})
    with pytest.raises(UsageError, match="no HNSW graph"):
        audit_index(index, questions, questions.vectors, AuditSettings())
    none = dataclasses.replace(questions, case_ids=[], langs=[])
    with pytest.raises(UsageError, match="has no case"):
        audit_index(index, none, questions.vectors[:0], AuditSettings())
