"""Counts of claims against plain Python, the identities between them, threads, hostile cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_claims as plain
import tables
from ragcore_kernels import claims as kernel
from ragcore_kernels import grounded
from ragcore_kernels import verdicts as V

CODES = st.sampled_from([V.YES, V.YES, V.NO, V.PARTIAL, V.CONTRADICTS, V.MISSING, V.FAILED])


@st.composite
def worlds(draw):
    """Rankings as (correct, covered, answer matrix, reference matrix, width) of codes."""
    out = []
    for _ in range(draw(st.integers(0, 5))):
        a, y, c = (draw(st.integers(0, 4)) for _ in range(3))
        rows = [draw(st.lists(CODES, min_size=n, max_size=n)) for n in (a, y, *[c] * (a + y))]
        out.append((rows[0], rows[1], rows[2 : 2 + a], rows[2 + a :], c))
    return out


def flat(lists):
    return np.array([code for each in lists for code in each], np.int8)


def offsets(sizes):
    return np.concatenate([[0], np.cumsum(list(sizes))]).astype(np.int64)


def tallied(world, threads=1):
    n = len(world)
    answers, references = offsets(len(w[0]) for w in world), offsets(len(w[1]) for w in world)
    shown = offsets(w[4] for w in world)
    by = [offsets(len(w[k]) * w[4] for w in world) for k in (0, 1)]
    matrices = [flat(row for w in world for row in w[k]) for k in (2, 3)]
    useful = np.full(int(shown[-1]), 9, np.int8)
    counts = np.full((n, kernel.FIELDS), -9, np.int32)

    def work(begin, end):
        kernel.tally(begin, end, answers, references, shown, *by, flat(w[0] for w in world),
                     flat(w[1] for w in world), *matrices, useful, counts)  # fmt: skip

    tables.split(work, n, threads)
    over, under = np.full(n, -1.0), np.full(n, -1.0)
    kernel.average_precision(0, n, shown, useful, over, under)
    return counts, over, under


def shares(counts, over, under, world):
    """Values by name, as fractions of the counts."""
    a, y, c = len(world[0]), len(world[1]), world[4]
    of = {name: int(counts[getattr(kernel, name)]) for name in (
        "CORRECT", "COVERED", "RECALLED", "USED", "USEFUL", "NOISE_RELEVANT", "NOISE_IRRELEVANT",
        "HALLUCINATED", "SELF_KNOWLEDGE", "FAITHFUL")}  # fmt: skip
    up, down = np.empty(1, np.int64), np.empty(1, np.int64)
    parts = [np.array([v]) for v in (of["CORRECT"], a, of["COVERED"], y)]
    grounded.harmonic(0, 1, *parts, up, down)
    return {
        "claims.precision": plain.ratio(of["CORRECT"], a),
        "claims.recall": plain.ratio(of["COVERED"], y),
        "claims.f1": plain.ratio(int(up[0]), int(down[0])),
        "claims.context_recall": plain.ratio(of["RECALLED"], y),
        "context.precision": plain.ratio(of["USEFUL"], c) if y else None,
        "context.precision_ap": over / under if y and under else None,
        "context.utilization": plain.ratio(of["USED"], of["RECALLED"]),
        "noise.relevant": plain.ratio(of["NOISE_RELEVANT"], a),
        "noise.irrelevant": plain.ratio(of["NOISE_IRRELEVANT"], a),
        "hallucination": plain.ratio(of["HALLUCINATED"], a),
        "self_knowledge": plain.ratio(of["SELF_KNOWLEDGE"], a),
        "faithfulness": plain.ratio(of["FAITHFUL"], a),
    }  # fmt: skip


def yes(code):
    return code == V.YES


def expected(world):
    booleans = [[yes(v) for v in world[0]], [yes(v) for v in world[1]],
                *([[yes(v) for v in row] for row in world[k]] for k in (2, 3))]  # fmt: skip
    return plain.ragchecker(*booleans, world[4])


def from_digits(text):
    return [V.YES if digit == "1" else V.NO for digit in text]


GOLDEN = (
    from_digits("10010"), from_digits("110"),
    [from_digits(row) for row in ("100", "010", "001", "000", "000")],
    [from_digits(row) for row in ("100", "000", "010")], 3,
)  # fmt: skip


def test_tally__of_the_worked_example():
    counts, over, under = tallied([GOLDEN])
    found = shares(counts[0], over[0], under[0], GOLDEN)
    wanted = {
        "claims.precision": (2, 5), "claims.recall": (2, 3), "claims.f1": (1, 2),
        "claims.context_recall": (2, 3), "context.precision": (2, 3),
        "context.utilization": (1, 2), "noise.relevant": (1, 5), "noise.irrelevant": (1, 5),
        "hallucination": (1, 5), "self_knowledge": (1, 5), "faithfulness": (3, 5),
    }  # fmt: skip
    for name, value in wanted.items():
        assert found[name] == expected(GOLDEN)[name] == Fraction(*value), name
    assert found["context.precision_ap"] == 1.0


@given(worlds())
def test_tally__equals_plain_python(world):
    counts, over, under = tallied(world)
    for i, one in enumerate(world):
        found, wanted = shares(counts[i], over[i], under[i], one), expected(one)
        ap = found.pop("context.precision_ap"), wanted.pop("context.precision_ap")
        assert (ap[0] is None) == (ap[1] is None)
        assert ap[0] is None or ap[0] == pytest.approx(float(ap[1]), rel=1e-15)
        assert found == wanted


@given(worlds())
def test_tally__keeps_the_identities(world):
    counts, _, _ = tallied(world)
    for i, one in enumerate(world):
        c = {
            name: int(counts[i, k])
            for k, name in enumerate(
                (
                    "correct",
                    "contradicted",
                    "faithful",
                    "self",
                    "relevant",
                    "irrelevant",
                    "invented",
                )
            )
        }
        a = len(one[0])
        both = sum(yes(v) and any(map(yes, row)) for v, row in zip(one[0], one[2], strict=True))
        assert a - c["correct"] == c["relevant"] + c["irrelevant"] + c["invented"]
        assert c["correct"] == c["self"] + both
        assert c["faithful"] == a - c["invented"] - c["self"]
        assert c["contradicted"] == sum(v == V.CONTRADICTS for v in one[0])


def test_tally__is_the_same_on_two_threads():
    draw = np.random.default_rng(5)
    world = []
    for _ in range(300):
        a, y, c = draw.integers(0, 6, 3)
        rows = [draw.integers(-4, 4, n).tolist() for n in (a, y, *[c] * (a + y))]
        world.append((rows[0], rows[1], rows[2 : 2 + a], rows[2 + a :], int(c)))
    for one, two in zip(tallied(world), tallied(world, 2), strict=True):
        assert (one == two).all()


@pytest.mark.parametrize(
    ("useful", "value"),
    [([0, 1], 0.5), ([1, 0], 1.0), ([1, 0, 1], 5 / 6), ([0, 0, 0], 0.0), ([1, 1], 1.0),
     ([1] * 7, 1.0)],
)  # fmt: skip
def test_average_precision__by_hand(useful, value):
    over, under = np.empty(1), np.empty(1)
    where = np.array([0, len(useful)])
    kernel.average_precision(0, 1, where, np.array(useful, np.int8), over, under)
    assert over[0] / under[0] == pytest.approx(value, abs=1e-15)
    assert value != 1.0 or over[0] == under[0]


def test_average_precision__of_nothing_has_no_denominator():
    over, under = np.ones(1), np.ones(1)
    kernel.average_precision(0, 1, np.zeros(2, np.int64), np.empty(0, np.int8), over, under)
    assert (over[0], under[0]) == (0, 0)


# --- grounded correctness


def ground(correct, held, mark=None):
    counts = np.full((1, grounded.FIELDS), -1, np.int32)
    marks = np.zeros(len(correct), np.int8) if mark is None else np.array(mark, np.int8)
    grounded.ground(0, 1, np.array([0, len(correct)]), np.array(correct, np.int8),
                    np.array(held, np.int8), marks, counts)  # fmt: skip
    return counts[0].tolist()


def test_ground__of_the_worked_example():
    found = ground(from_digits("1101"), from_digits("1011"))
    assert found[:3] == [3, 3, 2]  # .75, .75, .50
    up, down = np.empty(1, np.int64), np.empty(1, np.int64)
    grounded.harmonic(0, 1, *(np.array([v]) for v in (2, 4, 3, 4)), up, down)
    assert Fraction(int(up[0]), int(down[0])) == Fraction(3, 5)


@given(st.lists(st.tuples(CODES, CODES, st.booleans()), min_size=1, max_size=9))
def test_ground__grounded_is_between_its_bounds(rows):
    correct, held, mark = (list(column) for column in zip(*rows, strict=True))
    c, s, both, denied, marked, bare = ground(correct, held, mark)
    assert max(0, c + s - len(rows)) <= both <= min(c, s)
    assert c == sum(map(yes, correct))
    assert denied == held.count(V.CONTRADICTS)
    assert marked == sum(mark)
    assert bare == sum(m and not yes(h) for m, h in zip(mark, held, strict=True))


@given(st.lists(st.integers(0, 6), min_size=4, max_size=4))
def test_harmonic__equals_the_fraction(numbers):
    a, b, c, d = min(numbers[0], numbers[1]), numbers[1], min(numbers[2], numbers[3]), numbers[3]
    up, down = np.empty(1, np.int64), np.empty(1, np.int64)
    grounded.harmonic(0, 1, *(np.array([v]) for v in (a, b, c, d)), up, down)
    wanted = plain.harmonic(plain.ratio(a, b), plain.ratio(c, d))
    assert plain.ratio(int(up[0]), int(down[0])) == wanted


# --- marked claims


@given(worlds(), st.randoms(use_true_random=False))
def test_marked__equals_plain_python(world, draw):
    n = len(world)
    mark = np.array([draw.randint(0, 1) for w in world for _ in w[1]], np.int8)
    claims, shown = offsets(len(w[1]) for w in world), offsets(w[4] for w in world)
    counts = np.full((n, 4), -1, np.int32)
    kernel.marked(0, n, claims, shown, offsets(len(w[1]) * w[4] for w in world),
                  flat(w[1] for w in world), flat(row for w in world for row in w[3]), mark,
                  counts)  # fmt: skip
    for i, one in enumerate(world):
        own = mark[claims[i] : claims[i + 1]]
        rows = [(m, yes(v), any(map(yes, row)))
                for m, v, row in zip(own, one[1], one[3], strict=True) if m]  # fmt: skip
        assert counts[i].tolist() == [
            len(rows), sum(r[1] for r in rows), sum(r[2] for r in rows),
            sum(r[1] and r[2] for r in rows),
        ]  # fmt: skip


@given(st.lists(st.lists(st.tuples(CODES, st.integers(-1, 30)), max_size=5), max_size=5))
def test_summarise__tells_reasons_and_the_lowest_rung(rankings):
    where = offsets(map(len, rankings))
    cells = np.array([c for row in rankings for c, _ in row], np.int8)
    ranks = np.array([r for row in rankings for _, r in row], np.int8)
    out = np.full((len(rankings), 2), 99, np.int8)
    V.summarise(0, len(rankings), where, cells, ranks, out)
    rungs = V.rung_of(ranks)
    for i, row in enumerate(rankings):
        reasons = {code for code, _ in row if code < 0}
        assert out[i, 0] == sum(1 << (-1 - code) for code in reasons)
        own = [r for r in rungs[where[i] : where[i + 1]].tolist() if r >= 0]
        assert out[i, 1] == min(own, default=-1)
