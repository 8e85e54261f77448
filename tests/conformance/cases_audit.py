"""Cases about exact and approximate neighbours: audits, metrics, hostile vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import indexes
from conformance.registry import handles
from conformance.shapes import Case
from ragcore.audit import compare_lists, exact_pass
from ragcore.audit_report import AuditSettings
from ragcore.auditing import audit_index
from ragcore.index.change import change
from ragcore.index.opened import open_index
from ragcore.search import search
from ragcore.search_settings import Settings
from ragcore_kernels.knn import ExactIndex


@handles("RC-081")
def padding_is_no_neighbour(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    found = compare_lists(np.array(given["exact_ids"]), np.array(given["ann_ids"]), given["k"])
    assert found.id_recall.tolist() == [expected["recall@5"]]
    assert found.totals["short_lists"] == expected["short_lists"]
    assert found.totals["missing"] == expected["missing"]
    padded = np.array([[4, 9, -1, -1, -1]])
    assert compare_lists(padded, np.array(given["ann_ids"]), 5).id_recall.tolist() == [1.0]


@handles("RC-083")
def duplicates_are_as_near(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    vectors = np.array(list(given["vectors"].values()), np.float32)
    query, k = np.array([given["query"]], np.float32), given["k"]
    exact = exact_pass(ExactIndex(vectors, given["metric"]), query, [k])
    assert exact.rows[0, :k].tolist() == given["exact_ids"]
    found = compare_lists(
        exact, np.array([given["ann_ids"]]), k, vectors=vectors, queries=query,
        metric=given["metric"],
    )  # fmt: skip
    assert found.id_recall.tolist() == [expected["recall@2_id"]]
    assert found.distance_recall.tolist() == [expected["recall@2_distance"]]
    assert bool(found.tie_at_k[0]) is expected["ties_at_k"]


@handles("RC-085")
def fewer_than_k_are_given_and_said(case: Case, folder: Path) -> None:
    given = case["input"]
    rng = np.random.default_rng(1)
    vectors = {f"n{i}": rng.normal(size=4) for i in range(given["n_docs"])}
    indexes.make(folder / "i", vectors=vectors)
    change(folder / "i", None, list(vectors)[: given["deleted"]])
    index = open_index(folder / "i")
    asked = indexes.ask(vectors={f"q{i}": rng.normal(size=4) for i in range(given["queries"])})
    live = given["n_docs"] - given["deleted"]
    for strategy in ("dense", "dense-exact"):
        found = search(index, asked, Settings(strategy, given["k"]))
        lists = [row["ranked"] for row in found.table.to_pylist()]
        assert [len(each) for each in lists] == [live] * given["queries"]
        assert {i["id"] for each in lists for i in each} == set(list(vectors)[given["deleted"] :])
        assert f"the index has {live} chunks, fewer than candidate-k {given['k']}" in found.notes
    row = audit_index(index, asked, asked.vectors, AuditSettings((given["k"],))).audits[5].rows[0]
    assert (row.wanted, row.mean) == (live * given["queries"], 1.0)


@handles("RC-087")
def cosine_is_not_inner_product(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    asked = indexes.ask(vectors={"q": given["query"]})
    for metric in ("cosine", "ip"):
        index = indexes.make(folder / metric, vectors=given["vectors"], metric=metric)
        for strategy in ("dense-exact", "dense"):
            best = indexes.names(
                indexes.ranked(index, asked, strategy=strategy, candidate_k=given["k"])
            )
            assert best["q"] == [expected[f"{metric}_top1"]]
        said = index.exact.warnings()
        assert (expected["warning"] in " ".join(said)) == (metric == "ip")


@handles("RC-088")
def zero_and_hostile_vectors_are_counted(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    names = list(given["vectors"])
    vectors = np.array(list(given["vectors"].values()), np.float64).astype(np.float32)
    index = ExactIndex(vectors, given["metric"])
    found = index.search(np.array([given["query"]], np.float32), given["k"])
    assert [names[row] for row in found.rows[0, : found.counts[0]]] == expected["exact"]
    assert index.warnings() == expected["warnings"]


@handles("RC-089")
def near_ties_are_those_of_a_float64_scan(case: Case, folder: Path) -> None:
    rng = np.random.default_rng(89)
    vectors = rng.normal(size=(1000, 32))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors.astype(np.float32)
    vectors[1] = vectors[0]
    vectors[1, 0] += np.float32(1e-7)
    queries = vectors[:50] + np.float32(0.01)
    for metric in ("ip", "cosine", "l2"):
        exact = exact_pass(ExactIndex(vectors, metric), queries, [10])
        wide, q = vectors.astype(np.float64), queries.astype(np.float64)
        scores = q @ wide.T
        if metric == "cosine":
            scores /= np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(wide, axis=1)
        if metric == "l2":
            scores = -((q[:, None] - wide) ** 2).sum(2)
        lists = np.argsort(-scores, axis=1, kind="stable")[:, :10]
        found = compare_lists(exact, lists, 10, vectors=vectors, queries=queries, metric=metric)
        assert found.distance_recall.min() == 1.0
        assert found.eps == case["tolerance"]


@handles("RC-090")
def metrics_are_converted_as_documented(case: Case, folder: Path) -> None:
    first, second = (np.array([v], np.float32) for v in case["input"]["pair"])
    expected, near = case["expected"], case["tolerance"]
    score = {m: ExactIndex(second, m).search(first, 1).scores[0, 0] for m in ("ip", "cosine", "l2")}
    assert -score["l2"] == pytest.approx(expected["l2_faiss"], abs=near)
    assert np.sqrt(-score["l2"]) == pytest.approx(expected["l2_true"], abs=near)
    assert score["ip"] == pytest.approx(expected["ip"], abs=near)
    assert 1 - score["ip"] == pytest.approx(expected["ip_hnswlib"], abs=near)
    assert 1 - score["cosine"] == pytest.approx(expected["cosine_distance"], abs=near)
