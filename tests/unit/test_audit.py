"""Approximate lists against exact ones: every count by its definition, and verdicts by slice."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ragcore.audit import (
    EPS,
    SCHEMA,
    ListComparison,
    audit_table,
    compare_lists,
    exact_pass,
    join,
    loss,
    self_recall,
    slices_of,
)
from ragcore.errors import UsageError
from ragcore_kernels import neighbours
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.knn import METRICS, ExactIndex
from reference_knn import compare, nearest


@pytest.fixture(scope="module")
def cases(conformance):
    lines = (conformance / "cases.jsonl").read_text("utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def made(hits, wanted, **others):
    """A comparison of ids alone with these counts."""
    hits, wanted = np.array(hits, np.int64), np.array(wanted, np.int64)
    none = np.zeros(hits.size, np.int64)
    columns = dict.fromkeys(
        ("listed", "missing", "duplicates", "ineligible", "deleted", "unknown", "hits_distance",
         "hits_distinct", "wanted_distinct", "tie_at_k"), none,
    )  # fmt: skip
    columns |= {"gap": np.full(hits.size, np.nan)} | others
    return ListComparison(k=10, eps=1e-6, scored=False, hits_id=hits, wanted=wanted, **columns)


# --- one list


@st.composite
def problems(draw):
    """A small matrix with copies and ties, masks, and lists with every fault."""
    n, d, m = (draw(st.sampled_from(few)) for few in ([1, 2, 20, 30], [1, 2, 3, 9], [0, 1, 6]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.integers(-2, 3, (n, d)) if draw(st.booleans()) else rng.standard_normal((n, d))
    x = x[rng.integers(0, n, n)].astype(np.float16 if draw(st.booleans()) else np.float32)
    if draw(st.booleans()):
        x[rng.random(n) < 0.1] = np.nan
    q = (x[rng.integers(0, n, m)] + draw(st.sampled_from([0, 1]))).astype(np.float32)
    eligible, deleted = rng.random(n) < draw(st.sampled_from([0.2, 1.0])), rng.random(n) < 0.2
    k = draw(st.integers(1, 12))
    lists = rng.integers(-2, n + 2, (m, draw(st.integers(0, 15))))
    return x, q, eligible, deleted, k, lists


@given(problems(), st.sampled_from(METRICS), st.integers(1, 2), st.booleans())
@settings(max_examples=150 if JIT else 40)
def test_compare__counts_by_the_definitions(problem, metric, threads, good):
    x, q, eligible, deleted, k, lists = problem
    may = eligible & ~deleted
    exact = exact_pass(ExactIndex(x, metric), q, [1, k], eligible=may)
    if good:  # exact lists with few changes
        change = np.random.default_rng(k).random(exact.rows.shape) < 0.3
        lists = np.where(change, exact.rows[:, ::-1], exact.rows)
    found = compare_lists(
        exact, lists, k, vectors=x, queries=q, metric=metric, eligible=eligible, deleted=deleted,
        threads=threads,
    )  # fmt: skip
    for i, query in enumerate(q):
        order = nearest(x, query, len(x), metric, may)
        counts, gap = compare(x, query, order, lists[i].tolist(), k, metric, EPS, eligible, deleted)
        assert {name: int(getattr(found, name)[i]) for name in counts} == counts
        assert found.gap[i] == pytest.approx(gap, abs=1e-12, nan_ok=True)
    known = found.wanted > 0
    assert (found.hits_id <= found.hits_distance).all()
    assert (found.hits_distance <= found.wanted).all()
    assert (found.hits_distinct <= found.wanted_distinct).all()
    assert (found.gap[~np.isnan(found.gap)] >= 0).all()
    assert np.isnan(found.distance_recall[~known]).all()
    offsets = np.arange(len(lists) + 1) * lists.shape[1]
    again = compare_lists(
        exact, (offsets, lists.ravel()), k, vectors=x, queries=q, metric=metric, eligible=eligible,
        deleted=deleted,
    )  # fmt: skip
    assert again.totals == found.totals


@given(problems(), st.sampled_from(METRICS))
@settings(max_examples=60 if JIT else 20)
def test_compare__gives_exact_lists_full_marks_at_every_k(problem, metric):
    x, q, eligible, deleted, k, _ = problem
    may = eligible & ~deleted
    exact = exact_pass(ExactIndex(x, metric), q, [k + 3], eligible=may)
    for cut in (1, k, k + 3):
        found = compare_lists(exact, exact.rows, cut, vectors=x, queries=q, metric=metric,
                              eligible=may)  # fmt: skip
        assert (found.wanted == np.minimum(cut, exact.counts)).all()
        for name in ("id", "distance", "distinct"):
            hits, wanted = found.parts(name)
            assert (hits == wanted).all()
        assert found.totals["short_lists"] == found.totals["duplicates"] == 0
        assert (found.gap[found.wanted > 0] == 0).all()


def test_compare__ties_of_scores_are_worth_as_much():
    scores = np.array([0.90, 0.85, 0.80, 0.80, 0.80, 0.70])
    x = np.stack([scores, np.arange(6.0)], 1).astype(np.float32)
    q = np.array([[1, 0]], np.float32)
    exact = exact_pass(ExactIndex(x, "ip"), q, [3])
    found = compare_lists(exact, np.array([[0, 1, 4]]), 3, vectors=x, queries=q, metric="ip")
    assert found.id_recall[0] == pytest.approx(0.667, abs=1e-3)
    assert (found.distance_recall[0], found.distinct_recall[0]) == (1.0, 1.0)
    assert (found.tie_at_k[0], found.gap[0]) == (1, 0.0)


def test_compare__copies_of_the_last_do_not_stand_for_the_first():
    x = np.array([[0.9, 1], [0.85, 2], [0.8, 3], [0.8, 3], [0.8, 3]], np.float32)
    q = np.array([[1, 0]], np.float32)
    exact = exact_pass(ExactIndex(x, "ip"), q, [3])
    found = compare_lists(exact, np.array([[2, 3, 4]]), 3, vectors=x, queries=q, metric="ip")
    assert (found.hits_id[0], found.hits_distance[0]) == (1, 3)
    assert (found.hits_distinct[0], found.wanted_distinct[0]) == (1, 3)
    repeated = compare_lists(exact, np.array([[0, 0, 0]]), 3, vectors=x, queries=q, metric="ip")
    assert (repeated.hits_distance[0], repeated.duplicates[0], repeated.missing[0]) == (1, 2, 2)


def test_compare__unsigned_labels_may_hold_the_padding():
    lists = np.array([[3, 2**64 - 1]], np.uint64)
    found = compare_lists(np.array([[3, 4]]), lists, 2)
    assert (found.hits_id[0], found.listed[0], found.unknown[0]) == (1, 1, 0)


def test_compare__a_sentinel_is_no_row():
    found = compare_lists(np.array([[3, 4]]), np.array([[3, 99]]), 2, padding=99)
    assert (found.listed[0], found.missing[0], found.totals["unknown"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lists": np.zeros((2, 3), int)}, "2 lists for 1 queries"),
        ({"k": 0}, "at least 1"),
        ({"k": 9}, "search for more"),
        ({"metric": "dot"}, "cosine"),
        ({"queries": None}, "without queries"),
        ({"eligible": np.ones(2, bool)}, "one a row"),
        ({"lists": np.zeros((1, 3))}, "whole numbers"),
        ({"lists": np.zeros(3, int)}, "offsets"),
        ({"lists": (np.array([0, 9]), np.zeros(3, int))}, "beyond"),
        ({"queries": np.zeros((1, 3), np.float32)}, r"\(1, 2\)"),
        ({"vectors": np.zeros((4, 2))}, "float16"),
        ({"exact": np.zeros((1, 2), int)}, "exact_pass"),
    ],
)
def test_compare__says_what_does_not_fit(options, said):
    x = np.ones((4, 2), np.float32)
    exact = exact_pass(ExactIndex(x), x[:1], [2])
    given_ = {"exact": exact, "lists": np.zeros((1, 3), int), "k": 2, "vectors": x} | {
        "queries": x[:1]
    }
    with pytest.raises(UsageError, match=said):
        compare_lists(**(given_ | options))
    with pytest.raises(UsageError, match="from 1 on"):
        exact_pass(ExactIndex(x), x[:1], [0])


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__have_one_specialisation():
    assert compiled_count(neighbours.compare_neighbours) <= 1
    assert compiled_count(neighbours.find_selves) <= 1


# --- nodes that find themselves


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_self_recall__counts_equal_vectors_and_names_the_unreachable(kind):
    x = np.array([[1, 0], [1, 0], [0, 1], [2, 2]], kind)
    lists = np.array([[0, 1], [0, -1], [3, -1], [2, 7]])
    found = self_recall(lists, np.arange(4), n=4, vectors=x)
    assert (found.n, found.itself, found.equal) == (4, 1, 1)
    assert found.unreachable.tolist() == [2, 3]
    assert found.share == 0.5
    assert self_recall(lists, np.arange(4), n=4).unreachable.tolist() == [1, 2, 3]
    assert math.isnan(self_recall(lists[:0], np.arange(0), n=4).share)
    with pytest.raises(UsageError, match="outside"):
        self_recall(lists, np.arange(1, 5), n=4)


# --- slices and verdicts


def test_audit__judges_by_the_worst_slice():
    hits = np.array([10] * 990 + [0] * 10)
    slices = slices_of({"shard": ["a"] * 990 + ["b"] * 10})
    found = audit_table({50: made(hits, [10] * 1000)}, slices, recall="id")
    every, a, b = found.rows
    assert (every.verdict, a.verdict, b.verdict) == ("pass", "pass", "fail")
    assert (found.worst(50).slice, found.verdict(50), found.smallest_ef) == (
        "shard=b",
        "fail",
        None,
    )
    assert (b.mean, b.minimum, b.hits, b.wanted, b.share_below) == (0.0, 0.0, 0, 100, 1.0)
    assert every.mean == 0.99
    assert every.share_below == 0.01


def test_audit__few_queries_settle_nothing():
    found = audit_table({10: made([10, 10, 10], [10, 10, 10])}, recall="id")
    assert found.verdict(10) == "inconclusive"
    assert found.rows[0].low_hits == pytest.approx(0.05 ** (1 / 30), rel=1e-12)
    assert "3 queries" in found.rows[0].reason
    none = audit_table({10: made([0], [0])}, recall="id")
    assert (none.rows[0].mean, none.rows[0].low, none.rows[0].n_na) == (None, None, 1)
    assert (none.verdict(10), none.worst(10).slice) == ("inconclusive", "all")


def test_audit__bounds_are_those_of_clopper_and_pearson():
    rng = np.random.default_rng(4)
    hits = rng.binomial(10, 0.97, 200)
    row = audit_table({1: made(hits, [10] * 200)}, recall="id", target=0.9, level=0.9).rows[0]
    total = int(hits.sum())
    assert row.low_hits == pytest.approx(
        scipy_stats.beta.ppf(0.1, total, 2000 - total + 1), rel=1e-9
    )
    reached = int((hits >= 9).sum())
    assert row.low_share == pytest.approx(
        scipy_stats.beta.ppf(0.1, reached, 200 - reached + 1), rel=1e-9
    )
    assert row.n_below == 200 - reached


def test_audit__hits_that_go_together_count_for_less():
    alone = made([9] * 100, [10] * 100)
    together = made([10] * 90 + [0] * 10, [10] * 100)
    a, b = (audit_table({1: one}, recall="id", target=0.8).rows[0] for one in (alone, together))
    assert (a.low_hits, a.mean) == (b.low_hits, b.mean)
    assert a.design_effect == 1.0
    assert b.design_effect == pytest.approx(10 * 100 / 99)
    assert b.low < a.low == a.low_hits
    one = audit_table({1: made([9], [10])}, recall="id", target=0.8).rows[0]
    assert one.design_effect == 10.0


def test_audit__finds_the_least_ef_and_the_curve():
    lists = {ef: made([min(10, ef // 4)] * 200, [10] * 200) for ef in (80, 20, 40)}
    found = audit_table(lists, recall="id", target=0.95, seconds={20: 0.1, 40: 0.5})
    assert (found.efs, found.smallest_ef) == ([20, 40, 80], 40)
    assert [(p.ef, p.mean, p.queries_per_s) for p in found.curve] == [
        (20, 0.5, 2000.0), (40, 1.0, 400.0), (80, 1.0, None),
    ]  # fmt: skip
    table = found.table()
    assert table.schema == SCHEMA
    assert table.num_rows == 3
    assert table["ties_at_k"].null_count == 3
    assert table["verdict"].to_pylist() == ["fail", "pass", "pass"]


def test_slices__cross_what_occurs():
    found = slices_of({"shard": ["a", "a", "b"], "filter": ["x", "y", "x"], "lang": ["en"] * 3})
    assert list(found) == [
        "shard=a", "shard=b", "filter=x", "filter=y", "lang=en", "shard=a & filter=x & lang=en",
        "shard=a & filter=y & lang=en", "shard=b & filter=x & lang=en",
    ]  # fmt: skip
    assert found["shard=b & filter=x & lang=en"].tolist() == [False, False, True]
    assert list(slices_of({"shard": ["a"], "filter": ["x"]}, cross=False)) == [
        "shard=a",
        "filter=x",
    ]
    with pytest.raises(UsageError, match="lengths"):
        slices_of({"shard": ["a"], "filter": []})


def test_join__keeps_every_part_a_slice():
    joined, slices = join({"a": made([1], [1]), "b": made([0, 2], [2, 2])})
    assert joined.hits_id.tolist() == [1, 0, 2]
    assert {name: mask.tolist() for name, mask in slices.items()} == {
        "a": [True, False, False], "b": [False, True, True],
    }  # fmt: skip
    with pytest.raises(UsageError, match="no comparison"):
        join({})


def test_audit__says_what_does_not_fit():
    one = made([1], [1])
    for arguments, options, said in (
        (({},), {}, "no lists"),
        (({1: one},), {"target": 1.5}, "target"),
        (({1: one},), {"recall": "distance"}, "needs vectors"),
        (({1: one},), {"recall": "cosine"}, "one of id"),
        (({1: one, 2: made([1, 1], [1, 1])},), {}, "different queries"),
        (({1: one}, {"a": np.ones(2, bool)}), {}, "slice 'a'"),
        (({1: one}, {"all": np.ones(1, bool)}), {}, "another name"),
    ):
        with pytest.raises(UsageError, match=said):
            audit_table(*arguments, **({"recall": "id"} | options))


def test_loss__is_what_approximate_search_costs():
    found = loss([1.0, 1.0, 0.5, 0.0], [1.0, 0.5, 0.5, 0.0])
    assert (found.n, found.delta, found.wins, found.losses) == (4, 0.125, 1, 0)
    assert (found.before, found.after) == (0.5, 0.625)
    assert found.low is not None
    assert found.low <= 0.125 <= found.high
    assert loss({"a": 1.0}, {"a": 1.0, "b": 0.5}).unpaired == 1


# --- published cases


def test_case__padding_is_no_neighbour(cases):
    case = cases["RC-081"]
    found = compare_lists(
        np.array(case["input"]["exact_ids"]), np.array(case["input"]["ann_ids"]), case["input"]["k"]
    )
    totals = found.totals
    assert {
        "recall@5": found.id_recall[0], "short_lists": totals["short_lists"],
        "missing": totals["missing"],
    } == pytest.approx(case["expected"], abs=case["tolerance"])  # fmt: skip
    holes = compare_lists(np.array([[4, -1, 2, -1, -1]]), np.array([[4, -1, -1, -1, -1]]), 5)
    assert (holes.wanted[0], holes.id_recall[0]) == (2, 0.5)


def test_case__copies_are_as_near(cases):
    case = cases["RC-083"]["input"]
    x = np.array(list(case["vectors"].values()), np.float32)
    q = np.array([case["query"]], np.float32)
    exact = exact_pass(ExactIndex(x, case["metric"]), q, [case["k"]])
    assert exact.rows[0, : case["k"]].tolist() == case["exact_ids"]
    found = compare_lists(
        exact, np.array([case["ann_ids"]]), case["k"], vectors=x, queries=q, metric=case["metric"]
    )
    assert {
        "recall@2_id": found.id_recall[0], "recall@2_distance": found.distance_recall[0],
        "ties_at_k": bool(found.tie_at_k[0]),
    } == cases["RC-083"]["expected"]  # fmt: skip


def test_case__more_neighbours_than_live_documents(cases):
    case = cases["RC-085"]["input"]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case["n_docs"], 4)).astype(np.float32)
    deleted = np.arange(case["n_docs"]) < case["deleted"]
    q = rng.standard_normal((case["queries"], 4)).astype(np.float32)
    exact = exact_pass(ExactIndex(x), q, [case["k"]], eligible=~deleted)
    found = compare_lists(exact, exact.rows, case["k"], vectors=x, queries=q, deleted=deleted)
    assert found.wanted.tolist() == [3, 3]
    assert found.id_recall.tolist() == [1.0, 1.0]


def test_case__near_ties_within_eps_are_hits():
    rng = np.random.default_rng(89)
    x = rng.standard_normal((300, 16))
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    x[1] = x[0] + np.float32(1e-7)
    exact = exact_pass(ExactIndex(x, "ip"), x[:5], [10])
    lists = np.argsort(-(x[:5] @ x.T), axis=1, kind="stable")[:, :10]
    found = compare_lists(exact, lists, 10, vectors=x, queries=x[:5], metric="ip")
    assert (found.distance_recall == 1.0).all()
