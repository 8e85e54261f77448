"""The one order, and rankings that a policy mends, against plain Python."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tables
from ragcore_kernels import order
from ragcore_kernels._jit import JIT
from ragcore_kernels.order import DUP_ERROR, DUP_FIRST, DUP_LAST, DUP_MAX
from ragcore_kernels.ranking import (
    BY_SCORE,
    DROPPED,
    FINE,
    N_HITS,
    N_JUDGED_RET,
    N_RET,
    PROBLEM,
    RECORDED,
    UNTIDY,
)  # fmt: skip

quiet = settings(derandomize=True, deadline=None, max_examples=150 if JIT else 20)
SCORES = (0.0, -0.0, 1.0, 2.5, math.inf, -math.inf, 5e-324)


def keep(rows, policy, own=None):
    """The rows that stay, in file order."""
    rows = [row for row in rows if row[0] != own]
    best = {}
    for i, (doc, value) in enumerate(rows):
        better = policy == DUP_MAX and doc in best and value > rows[best[doc]][1]
        if doc not in best or policy == DUP_LAST or better:
            best[doc] = i
    return [row for i, row in enumerate(rows) if best[row[0]] == i]


def check(board, policy, own=None, by=BY_SCORE):
    board.tidy(range(len(board.rankings)), policy, own, by)
    for t, (rows, c) in enumerate(board.rankings):
        grades = dict(board.judgements[c]) if c >= 0 else {}
        kept = keep(rows, policy, own[t] if own else None)
        ranked = tables.ordered(kept, by == BY_SCORE)
        expected = [(i, grades[doc]) for i, doc in enumerate(ranked, 1) if doc in grades]
        assert board.hits(t) == expected, t
        fields = board.stats[t, [N_RET, N_HITS, DROPPED, PROBLEM]].tolist()
        assert fields == [len(kept), len(expected), len(rows) - len(kept), FINE]
        assert board.stats[t, N_JUDGED_RET] == sum(g >= 0 for _, g in expected)


def some(seed, n=15, depth=50):
    rng = random.Random(seed)
    names = tables.hostile_ids()
    names = list(dict.fromkeys(rng.sample(names, 20) + tables.colliding()))
    labels = [[(d, rng.randint(-1, 3)) for d in rng.sample(names, rng.randint(0, 12))]
              for _ in range(6)]  # fmt: skip
    rankings = [
        ([(rng.choice(names), rng.choice(SCORES)) for _ in range(rng.randint(0, depth))],
         rng.randint(-1, 5))
        for _ in range(n)
    ]  # fmt: skip
    return rankings, labels, [rng.choice(names) for _ in range(n)]


# --- the order


@pytest.mark.parametrize("kind", tables.KINDS)
@pytest.mark.parametrize("by_score", [True, False])
def test_sort_cases__is_the_order_of_python(kind, by_score):
    rng = random.Random(5)
    names = tables.hostile_ids()
    rankings = [([(d, rng.choice(SCORES)) for d in rng.sample(names, rng.randint(0, 60))], -1)
                for _ in range(12)]  # fmt: skip
    board = tables.Board(rankings, [], kind, parts=4)
    out = np.full(sum(len(rows) for rows, _ in rankings), -1, np.int64)
    order.sort_cases(board.ids.table, board.values, board.segments, board.offsets, by_score, out)
    base = 0
    for rows, _ in rankings:
        mine = out[base : base + len(rows)].tolist()
        assert sorted(mine) == list(range(len(rows)))
        assert [rows[i][0] for i in mine] == tables.ordered(rows, by_score)
        base += len(rows)


@given(st.lists(st.tuples(st.binary(max_size=3), st.sampled_from(SCORES)), max_size=20,
                unique_by=lambda row: row[0]))  # fmt: skip
@quiet
def test_sort_cases__of_any_rows(rows):
    board = tables.Board([(rows, -1)], [])
    out = np.empty(len(rows), np.int64)
    order.sort_cases(board.ids.table, board.values, board.segments, board.offsets, True, out)
    assert [rows[i][0] for i in out.tolist()] == tables.ordered(rows)


# --- what is mended


@pytest.mark.parametrize("policy", [DUP_FIRST, DUP_LAST, DUP_MAX])
@pytest.mark.parametrize("by", [BY_SCORE, RECORDED])
def test_tidy__keeps_the_row_that_the_policy_names(policy, by):
    for seed in range(4):
        rankings, labels, _ = some(seed)
        board = tables.Board(rankings, labels, tables.KINDS[seed], parts=seed + 1)
        check(board.find(by), policy, by=by)


@pytest.mark.parametrize("policy", [DUP_FIRST, DUP_LAST, DUP_MAX])
def test_tidy__leaves_the_own_id_out(policy):
    for seed in range(3):
        rankings, labels, own = some(10 + seed)
        check(tables.Board(rankings, labels, parts=2).find(), policy, own)


def test_tidy__of_rankings_that_need_nothing_changes_nothing():
    rankings, labels, _ = some(20)
    clean = [(keep(rows, DUP_FIRST), c) for rows, c in rankings]
    board = tables.Board(clean, labels).find()
    before = [board.hits(t) for t in range(len(clean))]
    check(board, DUP_ERROR)
    assert [board.hits(t) for t in range(len(clean))] == before


def test_tidy__of_one_ranking_leaves_the_others_alone():
    rows = [(b"a", 1.0), (b"a", 2.0), (b"b", 1.5)]
    board = tables.Board([(rows, 0)] * 3, [[(b"a", 1), (b"b", 2)]]).find()
    before = board.stats[[0, 2]].copy()
    board.tidy([1], DUP_LAST)
    assert board.hits(1) == [(1, 1), (2, 2)]
    assert (board.stats[[0, 2]] == before).all()


def test_tidy__of_repeated_judgements_counts_each_document_once():
    labels = [[(b"a", 1), (b"b", -1), (b"a", 1), (b"b", -1)]]
    board = tables.Board([([(b"b", 1.0), (b"a", 1.0), (b"b", 0.5)], 0)], labels).find()
    board.tidy([0], DUP_FIRST)
    assert board.hits(0) == [(1, -1), (2, 1)]


@pytest.mark.skipif(not JIT, reason="too many rows for plain Python")
@pytest.mark.parametrize("n", [600, 3000, 20_000])
@pytest.mark.parametrize("scores", ["random", "tied", "two"])
def test_tidy__of_what_is_left_to_it(n, scores):
    rng = random.Random(n)
    value = {"random": rng.random, "tied": lambda: 7.0, "two": lambda: float(rng.randrange(2))}
    docs = [f"doc{i:0{1 + i % 9}}-{i}".encode() for i in range(n)]
    rows = [(doc, value[scores]()) for doc in docs]
    board = tables.Board([(rows, 0)], [[(doc, i % 3) for i, doc in enumerate(docs)]], parts=4)
    board.find()
    assert board.stats[0, PROBLEM] in (UNTIDY, FINE)
    check(board, DUP_ERROR)
