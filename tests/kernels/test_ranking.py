"""Hits of rankings: ranks and grades against plain Python, on every layout and hostile input."""

import itertools
import math
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tables
from ragcore_kernels import ranking
from ragcore_kernels import rows as kernel_rows
from ragcore_kernels._jit import JIT
from ragcore_kernels.ranking import (
    BY_SCORE,
    COLLAPSED,
    CONFLICTING_GRADES,
    DUPLICATE_ROW,
    FINE,
    N_HITS,
    N_JUDGED,
    N_JUDGED_RET,
    N_RET,
    NAN_SCORE,
    PROBLEM,
    PROBLEM_A,
    PROBLEM_B,
    RECORDED,
    RISES,
    UNTIDY,
)  # fmt: skip

quiet = settings(derandomize=True, deadline=None, max_examples=150 if JIT else 20)
big = pytest.mark.skipif(not JIT, reason="too many rows for plain Python")


def check(board, order=BY_SCORE):
    """Every field of every ranking equals what plain Python finds."""
    rises = board.stats[:, RISES].copy()
    board.tidy(np.flatnonzero(board.stats[:, PROBLEM] == UNTIDY), by=order)
    assert (board.stats[:, RISES] == rises).all()
    for t, (rows, c) in enumerate(board.rankings):
        grades = dict(board.judgements[c]) if c >= 0 else {}
        ranked = tables.ordered(rows, order == BY_SCORE)
        expected = [(i, grades[doc]) for i, doc in enumerate(ranked, 1) if doc in grades]
        assert board.hits(t) == expected, t
        stats = board.stats[t]
        judged = sorted((g for g in grades.values() if g >= 0), reverse=True)
        scores = [v for _, v in rows]
        assert stats[N_RET] == len(rows)
        assert stats[N_JUDGED] == len(judged)
        assert stats[N_JUDGED_RET] == sum(g >= 0 for _, g in expected)
        assert stats[RISES] == sum(b > a for a, b in itertools.pairwise(scores))
        assert stats[PROBLEM] == FINE
        if c >= 0:
            base = board.ideal_offsets[c]
            assert board.ideal[base : base + len(judged)].tolist() == judged


def some(seed, n=25, depth=40, scores=(0.0, -0.0, 1.0, 2.5, -3.0, math.inf, -math.inf)):
    """Rankings of hostile ids, some of one case, some of none."""
    rng = random.Random(seed)
    names = tables.hostile_ids()
    labels = [
        [
            (doc, rng.randint(-2, 300 if c == 3 else 3))
            for doc in rng.sample(names, rng.randint(0, 60))
        ]
        for c in range(n // 2)
    ]
    rankings = []
    for _ in range(n):
        docs = rng.sample(names, rng.choice((0, 1, 2, rng.randint(0, depth))))
        rows = [(doc, rng.choice(scores)) for doc in docs]
        if rng.random() < 0.4:
            rows.sort(key=lambda row: -row[1])
        rankings.append((rows, rng.randint(-1, len(labels) - 1)))
    return rankings, labels


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", tables.KINDS)
def test_hits__equal_plain_python(kind, threads):
    for seed in range(3):
        check(tables.Board(*some(seed), kind, parts=seed + 1).find(threads=threads))


@pytest.mark.parametrize("parts", [1, 5])
def test_hits__of_recorded_order_ignore_scores(parts):
    check(tables.Board(*some(11), parts=parts).find(RECORDED), RECORDED)


def test_hits__without_scores():
    board = tables.Board(*some(12, scores=(0.0,)), score=None, parts=2).find(RECORDED)
    check(board, RECORDED)


def test_hits__of_float32_scores():
    scores = tuple(float(np.float32(x)) for x in (0.1, 0.2, 3e38, -0.0))
    check(tables.Board(*some(13, scores=scores), score=np.float32, parts=3).find())


def test_hits__of_nothing():
    board = tables.Board([], []).find()
    assert board.stats.shape == (0, ranking.STAT_FIELDS)
    check(tables.Board([([], -1), ([], 0)], [[]]).find())
    check(tables.Board([([], 0)], [[(b"a", 1)]]).find(threads=2))


def test_hits__of_unjudged_rankings_are_none_wherever_they_stand():
    docs = tables.hostile_ids()
    rows = [(doc, float(-i)) for i, doc in enumerate(docs)]
    for _ in range(20):  # each time with other left-overs in memory
        np.full(4096, 3, np.int64).sum()
        board = tables.Board([(rows, -1)] * 7 + [(rows[:9], 0)], [[(docs[3], 1)]])
        check(board.find(threads=4))


def test_hits__of_colliding_ids():
    docs = tables.colliding()
    rows = [(doc, float(-i)) for i, doc in enumerate(docs)]
    labels = [[(doc, i % 3) for i, doc in enumerate(docs) if i % 2 == 0], [(docs[1], 1)]]
    check(tables.Board([(rows, 0), (rows, 1), (rows[::-1], 0)], labels).find())


def test_hits__when_every_row_is_tied():
    docs = tables.hostile_ids()
    rows = [(doc, 0.0 if i % 2 else -0.0) for i, doc in enumerate(docs)]
    check(tables.Board([(rows, 0)], [[(doc, 1) for doc in docs[::2]]], parts=3).find())


@given(
    st.lists(st.tuples(st.sampled_from(tables.hostile_ids()[:24]),
                       st.sampled_from([0.0, -0.0, 1.0, 2.0, math.inf])),
             max_size=14, unique_by=lambda row: row[0]),
    st.dictionaries(st.sampled_from(tables.hostile_ids()[:24]), st.integers(-1, 2), max_size=10),
    st.integers(1, 3),
)  # fmt: skip
@quiet
def test_hits__of_any_ranking(rows, grades, parts):
    check(tables.Board([(rows, 0)], [list(grades.items())], parts=parts).find())


def test_hits__are_the_same_for_any_split_and_on_a_second_run():
    rankings, labels = some(21, n=41)
    one = tables.Board(rankings, labels).find()
    for threads in (2, 5, 41, 60):
        many = tables.Board(rankings, labels, parts=threads).find(threads=threads).find()
        assert one.ideal.tobytes() == many.ideal.tobytes()
        assert [one.hits(t) for t in range(41)] == [many.hits(t) for t in range(41)]
        assert (one.stats == many.stats)[:, : ranking.PROBLEM + 1].all()


# --- many rows


def long(n, scores, every=50):
    rows = [(f"doc{i}".encode(), s) for i, s in enumerate(scores)]
    grades = [(doc, i % 4) for i, (doc, _) in enumerate(rows) if i % every == 0]
    return tables.Board([(rows, 0)], [[*grades, (b"never retrieved", 2)]], parts=3), n


@big
@pytest.mark.parametrize("n", [4095, 4096, 4097, 5000, 100_000])
def test_hits__of_one_long_ranking(n):
    board, _ = long(n, [float(n - i) for i in range(n)], every=max(1, n // 200))
    check(board.find())


@big
def test_hits__of_a_long_ranking_in_any_order():
    rng = random.Random(1)
    board, _ = long(6000, [float(rng.randrange(900)) for _ in range(6000)], every=20)
    check(board.find())


@big
def test_duplicate__is_found_in_a_long_ranking():
    for n in (4000, 5000, 20_000):
        rows = [(f"doc{i}".encode(), float(-i)) for i in range(n)] + [(b"doc7", -1e9)]
        board = tables.Board([(rows, 0), (rows[:-1], 0)], [[(b"doc9", 1)]]).find()
        assert board.stats[0, [PROBLEM, PROBLEM_A, PROBLEM_B]].tolist() == [DUPLICATE_ROW, 7, n]
        assert board.stats[1, PROBLEM] == FINE


@big
def test_untidy__is_left_where_counting_would_take_long():
    rng = random.Random(2)
    docs = [f"doc{i}".encode() for i in range(3000)]
    rows = [(doc, rng.random()) for doc in docs]
    board = tables.Board([(rows, 0)], [[(doc, 1) for doc in docs[:2000]]]).find()
    assert board.stats[0, PROBLEM] == UNTIDY
    tied = [(doc, 1.0) for doc in docs]
    board = tables.Board([(tied, 0)], [[(doc, 1) for doc in docs[:2000]]]).find()
    assert board.stats[0, PROBLEM] in (UNTIDY, FINE)


@big
def test_repeated_rows__take_time_in_proportion():
    rows = [(b"d", float(-i)) for i in range(100_000)]
    board = tables.Board([(rows, 0)], [[(b"d", 1)]]).find()
    begin = time.perf_counter()
    board.find()
    assert time.perf_counter() - begin < 1.0
    assert board.stats[0, [PROBLEM, PROBLEM_A, PROBLEM_B]].tolist() == [DUPLICATE_ROW, 0, 1]


# --- what is wrong


def test_problem__of_a_repeated_row_is_the_first_repetition():
    rows = [(b"a", 3.0), (b"b", 2.0), (b"", 1.0), (b"b", 0.5), (b"a", 0.25), (b"", 0.0)]
    board = tables.Board([([(b"z", 1.0)], -1), (rows, 0)], [[(b"a", 1)]], parts=2).find()
    kind, first, again = board.stats[1, [PROBLEM, PROBLEM_A, PROBLEM_B]].tolist()
    assert (kind, first, again) == (DUPLICATE_ROW, 2, 4)


def test_problem__of_unjudged_rankings_is_found_too():
    board = tables.Board([([(b"a", 1.0), (b"a", 1.0)], -1)], []).find()
    assert board.stats[0, PROBLEM] == DUPLICATE_ROW


@pytest.mark.parametrize("order", [RECORDED, BY_SCORE])
def test_problem__of_nan_is_its_first_row(order):
    rows = [(b"a", 3.0), (b"b", math.nan), (b"c", math.nan)]
    board = tables.Board([([(b"x", 1.0)], 0), (rows, 0)], [[(b"a", 1)]]).find(order)
    assert board.stats[1, [PROBLEM, PROBLEM_A]].tolist() == [NAN_SCORE, 2]
    assert board.stats[0, PROBLEM] == FINE


def test_problem__of_grades_that_contradict():
    labels = [[(b"q", 0)], [(b"a", 1), (b"b", 2), (b"b", 2), (b"a", 0), (b"b", 1)]]
    board = tables.Board([([(b"a", 1.0)], 1), ([], 1), ([], 0)], labels).find()
    for t in (0, 1):
        fields = board.stats[t, [PROBLEM, PROBLEM_A, PROBLEM_B, COLLAPSED]].tolist()
        assert fields == [CONFLICTING_GRADES, 1, 4, 3]
    assert board.stats[2, PROBLEM] == FINE


def test_repeated_judgements__count_once():
    labels = [[(b"a", 1), (b"b", 0), (b"a", 1), (b"a", 1), (b"c", -1), (b"c", -1)]]
    board = tables.Board([([(b"a", 1.0), (b"c", 0.5)], 0)], labels).find()
    assert board.hits(0) == [(1, 1), (2, -1)]
    assert board.stats[0, [N_JUDGED, N_JUDGED_RET, N_HITS, COLLAPSED]].tolist() == [2, 1, 2, 3]


def test_rises__of_a_piece_without_scores_are_none():
    """One piece with rising scores, the next without scores: nothing of the first stays."""
    board = tables.Board([([(b"a", 1.0), (b"b", 2.0)], 0), ([(b"a", 1.0), (b"b", 2.0)], 0)],
                         [[(b"a", 1)]], parts=2)  # fmt: skip
    board.values[-1, 0] = kernel_rows.SCORE_NONE
    assert len(set(board.segments[:, 0].tolist())) == 2
    board.find(RECORDED)
    assert board.stats[:, RISES].tolist() == [1, 0]
