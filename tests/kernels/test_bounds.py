"""Bounds over ties and holes against every order and every filling, measure by measure."""

from __future__ import annotations

import math
import random
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_bounds
from ragcore_kernels import bounds, expectations, gains, holes, measures
from ragcore_kernels._jit import JIT
from ragcore_kernels.ranking import N_HITS, N_JUDGED, N_RET, STAT_FIELDS

LIMIT = 10**9
GAINS = {0: 0.5, 1: -1.0, 2: 3.0}
KINDS: dict[str, tuple[str, dict[str, Any], int, int, tuple[float, ...]]] = {
    "P": ("P", {}, measures.P, 0, ()),
    "R": ("R", {}, measures.R, 0, ()),
    "R_capped": ("R_capped", {}, measures.R_CAPPED, 0, ()),
    "Success": ("Success", {}, measures.SUCCESS, 0, ()),
    "RR": ("RR", {}, measures.RR, 0, ()),
    "AP": ("AP", {}, measures.AP, 0, ()),
    "nDCG": ("nDCG", {}, measures.NDCG, gains.GAIN_LINEAR, ()),
    "nDCG_exp": ("nDCG_exp", {}, measures.NDCG, gains.GAIN_EXP, ()),
    "nDCG_map": ("nDCG", {"gains": GAINS}, measures.NDCG, gains.GAIN_TABLE, ()),
    "Rprec": ("Rprec", {}, measures.RPREC, 0, (1.0,)),
    "Rprec_mult": ("Rprec_mult", {"multiple": 1.4}, measures.RPREC, 0, (1.4,)),
    "RBP": ("RBP", {"p": 0.7}, measures.RBP, 0, (0.7,)),
    "ERR": ("ERR", {"max": 4}, measures.ERR, 0, (4.0,)),
    "Bpref": ("Bpref", {}, measures.BPREF, 0, ()),
    "infAP": ("infAP", {}, measures.INFAP, 0, ()),
    "IPrec_0": ("IPrec", {"recall_level": 0.0}, measures.IPREC, 0, (0.0,)),
    "IPrec_5": ("IPrec", {"recall_level": 0.5}, measures.IPREC, 0, (0.5,)),
    "IPrec_10": ("IPrec", {"recall_level": 1.0}, measures.IPREC, 0, (1.0,)),
    "Judged": ("Judged", {}, measures.JUDGED, 0, ()),
    "Unjudged": ("unj", {}, measures.UNJUDGED, 0, ()),
    "NumRelRet": ("NumRelRet", {}, measures.NUM_REL_RET, 0, ()),
    "NumNonrel": ("num_nonrel_judged_ret", {}, measures.NUM_NONREL_RET, 0, ()),
    "SetP": ("SetP", {}, measures.SET_P, 0, ()),
    "SetR": ("SetR", {}, measures.SET_R, 0, ()),
    "SetF": ("SetF", {"beta": 2.0}, measures.SET_F, 0, (2.0,)),
    "SetAP": ("set_map", {}, measures.SET_AP, 0, ()),
    "utility": (
        "utility", {"a": 1.0, "b": -0.5, "c": -2.0}, measures.UTILITY, 0, (1.0, -0.5, -2.0)
    ),
    "utility_down": (
        "utility", {"a": -1.0, "b": 1.0, "c": 0.5}, measures.UTILITY, 0, (-1.0, 1.0, 0.5)
    ),
    "binG": ("binG", {}, measures.BIN_G, 0, ()),
}  # fmt: skip
"""Name -> the reference's kind and options; the kernel's kind, gain mode and parameters."""
WITH_CUT = {
    "P", "R", "R_capped", "Success", "RR", "AP", "nDCG", "nDCG_exp", "nDCG_map", "RBP", "ERR",
    "Judged", "Unjudged",
}  # fmt: skip
ONLY_CUT = {"P", "Unjudged"}
NO_HOLES = {"Judged", "Unjudged", "NumNonrel"}
SEVERAL = [  # groups, missed
    ([[0, 2], [1, None, 3], [None, 0]], [1, 2]),
    ([[None, 1, 0, -1, 2]], [0]),
    ([[1], [0], [2, None, -1, 1], [0]], []),
    ([[None, None, None], [-1, -1, 1, 0]], [3, 0]),
    ([[0, 0, 1], [0, 1, 1]], [0, 0, 0]),
    ([[1, 1], [2, 2]], []),
    ([[None, None]], [1]),
    ([[2, 1, 0, -1, None, 1, 0]], [3]),
    ([[0, 0], [-1, None]], [0]),
    ([[1, 0, 3], [2]], [1, 1, -1]),
    ([[3, -1, None, 0, 1, 2]], [1, -1]),
    ([], [1]),
    ([[None, -1]], []),
]


def combinations() -> list[tuple[str, int, int, bool]]:
    """Every measure, with and without cut-off, level and dropping of unjudged rows."""
    out = []
    for name in KINDS:
        cuts = [2, 4, 9] if name in WITH_CUT else []
        for k in cuts if name in ONLY_CUT else [0, *cuts]:
            for rel in (1, 2):
                out += [(name, k, rel, only) for only in (False, True)]
    return out


COMBINATIONS = combinations()


class Batch:
    """Some lists as the kernels take them."""

    def __init__(self, lists: list[Any], asked: list[tuple[str, int, int, bool]]) -> None:
        self.asked = asked
        self.spec = np.array(
            [[KINDS[a][2], k, rel, only, KINDS[a][3]] for a, k, rel, only in asked], np.int64
        ).reshape(-1, 5)
        self.params = np.zeros((len(asked), 3))
        for row, (name, *_) in enumerate(asked):
            self.params[row, : len(KINDS[name][4])] = KINDS[name][4]
        self.table = np.array([[GAINS[0], GAINS[1], GAINS[2]]])
        self.n = len(lists)
        self.stats = np.zeros((self.n, STAT_FIELDS), np.int64)
        ranks, grades, firsts, sizes, ideal = [], [], [], [], []
        self.hit_offsets, self.ideal_offsets = np.zeros((2, self.n + 1), np.int64)
        for t, (groups, missed) in enumerate(lists):
            rank = 0
            for group in groups:
                for i, label in enumerate(group):
                    if label is not None:
                        ranks.append(rank + i + 1)
                        grades.append(label)
                        firsts.append(rank + 1)
                        sizes.append(len(group))
                rank += len(group)
            judged = [
                g for g in (*chain.from_iterable(groups), *missed) if g is not None and g >= 0
            ]
            ideal += sorted(judged, reverse=True)
            self.hit_offsets[t + 1], self.ideal_offsets[t + 1] = len(ranks), len(ideal)
            self.stats[t, [N_RET, N_JUDGED]] = rank, len(judged)
        self.stats[:, N_HITS] = np.diff(self.hit_offsets)
        self.ranks, self.grades, self.firsts, self.sizes, self.ideal = (
            np.array(x, np.int32) for x in (ranks, grades, firsts, sizes, ideal)
        )
        self.label_of = np.arange(self.n)

    def plain(self, depth: int) -> Any:
        out = np.empty((len(self.asked), self.n))
        measures.evaluate(
            self.spec, self.params, self.table, depth, 0, self.n, self.label_of, self.hit_offsets,
            self.ranks, self.grades, self.ideal_offsets, self.ideal, self.stats, out,
            np.empty((2, len(self.asked), 0)),
        )  # fmt: skip
        return out

    def over_ties(self, which: int, depth: int = 0, limit: int = LIMIT, cuts: Any = None) -> Any:
        out = np.empty((len(self.asked), self.n))
        cuts = cuts or [0, self.n]
        for begin, end in pairwise(cuts):
            bounds.over_ties(
                self.spec, self.params, self.table, np.full(len(self.asked), which), depth, limit,
                begin, end, self.label_of, self.hit_offsets, self.grades, self.firsts, self.sizes,
                self.ideal_offsets, self.ideal, self.stats, self.plain(depth), out,
            )  # fmt: skip
        return out

    def over_holes(self, highest: int, depth: int = 0) -> Any:
        n = len(self.asked)
        out = np.empty((n, self.n))
        holes.over_holes(
            self.spec, self.params, self.table, np.arange(n + 1), np.full(n, highest), depth, 0,
            self.n, self.label_of, self.hit_offsets, self.ranks, self.grades, self.ideal_offsets,
            self.ideal, self.stats, out,
        )  # fmt: skip
        return out


def options_of(name: str, k: int, rel: int, only: bool) -> tuple[str, dict[str, Any]]:
    kind, options, *_ = KINDS[name]
    return kind, {**options, "k": k or None, "rel": rel, "judged_only": only}


def check_ties(lists: list[Any], asked: list[tuple[str, int, int, bool]], depth: int) -> None:
    batch = Batch(lists, asked)
    plain = batch.plain(depth)
    found = [batch.over_ties(which, depth) for which in range(3)]
    for m, one in enumerate(asked):
        kind, options = options_of(*one)
        for t, (groups, missed) in enumerate(lists):
            wanted = reference_bounds.over_ties(kind, groups, missed, depth, **options)
            got = [values[m, t] for values in found]
            if wanted is None:
                assert np.isnan(got).all(), (one, groups, missed, depth)
                continue
            assert got == pytest.approx(wanted, abs=1e-12), (one, groups, missed, depth)
            best, expected, worst = got
            assert worst <= plain[m, t] <= best, (one, groups)
            assert worst <= expected <= best, (one, groups)


@pytest.mark.parametrize("depth", [0, 1, 3, 5])
def test_over_ties__every_order(depth):
    asked = COMBINATIONS[:: 1 if depth in (0, 5) else 3] if JIT else COMBINATIONS[::7]
    check_ties(SEVERAL if JIT else SEVERAL[:5], asked, depth)


labels = st.sampled_from([None, None, -1, 0, 0, 1, 2, 3])


@st.composite
def ties(draw, longest=6):
    """A list of up to `longest` rows in tie groups, and what it missed."""
    rows = draw(st.lists(labels, max_size=longest))
    groups, at = [], 0
    while at < len(rows):
        size = draw(st.integers(1, len(rows) - at))
        groups.append(rows[at : at + size])
        at += size
    return groups, draw(st.lists(st.sampled_from([-1, 0, 0, 1, 2, 3]), max_size=3))


@settings(max_examples=150 if JIT else 15)
@given(st.lists(ties(), min_size=1, max_size=3), st.integers(0, 6), st.data())
def test_over_ties__drawn(lists, depth, data):
    check_ties(lists, data.draw(st.lists(st.sampled_from(COMBINATIONS), max_size=6)), depth)


@settings(max_examples=150 if JIT else 15)
@given(ties(), st.integers(0, 6))
def test_over_ties__inferred_ap(one, depth):
    """No order is best by itself: pooled documents may help what stands below them."""
    check_ties([one], [("infAP", 0, 1, False), ("infAP", 0, 2, False)], depth)


def test_over_ties__pooled_first_raises_inferred_ap():
    groups = [[1], [None, None, None], [-1, 1]]
    batch = Batch([(groups, [])], [("infAP", 0, 1, False)])
    best = batch.over_ties(bounds.BEST)[0, 0]
    first = reference_bounds.value("infAP", [1, None, None, None, 1, -1], [], 0)
    last = reference_bounds.value("infAP", [1, None, None, None, -1, 1], [], 0)
    assert last > first
    assert best == pytest.approx(last, abs=1e-12)


def test_over_ties__without_ties_the_plain_bits():
    lists = [([[label] for label in (0, 2, None, -1, 1)], [3, 0])] * 2
    batch = Batch(lists, COMBINATIONS)
    for which in range(3):
        assert batch.over_ties(which).tobytes() == batch.plain(0).tobytes()


def test_over_ties__ties_without_hits_change_nothing():
    batch = Batch([([[None, None, None], [1], [None, None]], [2])], COMBINATIONS)
    for which in range(3):
        assert batch.over_ties(which).tobytes() == batch.plain(0).tobytes()


def test_over_ties__same_bits_however_split():
    rng = random.Random(3)
    lists = [
        ([[rng.choice([None, -1, 0, 1, 3]) for _ in range(rng.randint(1, 9))] for _ in range(3)],
         [0, 1])
        for _ in range(12)
    ]  # fmt: skip
    batch = Batch(lists, COMBINATIONS[:: 1 if JIT else 9])
    for which in range(3):
        whole = batch.over_ties(which)
        assert batch.over_ties(which, cuts=[0, 1, 5, 12]).tobytes() == whole.tobytes()


def all_tied(n, n_relevant, n_other, n_pool=0):
    rows = [1] * n_relevant + [0] * n_other + [-1] * n_pool
    random.Random(n).shuffle(rows)
    return [rows + [None] * (n - len(rows))]


@pytest.mark.skipif(not JIT, reason="too slow without compilation")
def test_over_ties__a_thousand_rows_all_tied():
    n, r, other = 1000, 12, 300
    asked = [
        one for one in COMBINATIONS
        if one[1] in (0, 4) and one[2] == 1 and not one[3] and not one[0].startswith("IPrec")
    ]  # fmt: skip
    batch = Batch([(all_tied(n, r, other, 40), [1] * 8)], asked)
    bound = [[batch.over_ties(w, depth) for w in range(3)] for depth in (0, 500)]
    found = dict(zip(asked, np.array(bound)[..., 0].transpose(2, 0, 1).tolist(), strict=True))
    for one, by_depth in found.items():
        for best, expected, worst in by_depth:
            assert math.isfinite(expected), one
            assert worst <= expected <= best, one
    assert found["AP", 0, 1, False][0][0] == pytest.approx(r / 20, abs=1e-12)
    assert found["P", 4, 1, False][0] == pytest.approx([1, r / n, 0], abs=1e-12)
    miss = math.comb(n - r, 4) / math.comb(n, 4)
    assert found["Success", 4, 1, False][0] == pytest.approx([1, 1 - miss, 0], abs=1e-12)
    first = sum(math.comb(n - i, r - 1) / math.comb(n, r) / i for i in range(1, n - r + 2))
    assert found["RR", 0, 1, False][0] == pytest.approx([1, first, 1 / (n - r + 1)], abs=1e-12)
    ap = sum((1 + i * (r - 1) / (n - 1)) / (i + 1) for i in range(n)) * r / n / 20
    assert found["AP", 0, 1, False][0][1] == pytest.approx(ap, abs=1e-12)
    assert found["SetR", 0, 1, False][1][1] == pytest.approx(r / 40, abs=1e-12)


@pytest.mark.skipif(not JIT, reason="too slow without compilation")
def test_over_ties__interpolated_precision_says_when_it_is_too_much():
    asked = [("IPrec_0", 0, 1, False), ("AP", 0, 1, False)]
    batch = Batch([(all_tied(60, 5, 5), [])], asked)
    mean = batch.over_ties(bounds.EXPECTED)
    rng = random.Random(1)
    rows, total, n = batch_rows(60, 5), 0.0, 4000
    for _ in range(n):
        rng.shuffle(rows)
        total += reference_bounds.value("IPrec", rows, [], 0, recall_level=0.0)
    assert mean[0, 0] == pytest.approx(total / n, abs=0.03)
    short = batch.over_ties(bounds.EXPECTED, limit=1000)
    assert math.isinf(short[0, 0])
    assert short[1, 0] == mean[1, 0]
    for which in (bounds.BEST, bounds.WORST):
        assert np.isfinite(batch.over_ties(which, limit=0)).all()


def batch_rows(n, r):
    return [1] * r + [None] * (n - r)


@pytest.mark.parametrize(
    ("total", "marked", "drawn"),
    [(5, 2, 3), (9, 9, 4), (7, 0, 3), (6, 4, 6), (900, 300, 450), (1, 0, 0), (4, 3, 0)],
)
def test_hypergeometric(total, marked, drawn):
    chances = np.full(marked + 2, np.nan)
    low, high = expectations.hypergeometric(total, marked, drawn, chances)
    assert (low, high) == (max(0, drawn + marked - total), min(drawn, marked))
    wanted = [
        math.comb(marked, x) * math.comb(total - marked, drawn - x) / math.comb(total, drawn)
        for x in range(low, high + 1)
    ]
    assert chances[: high - low + 1] == pytest.approx(wanted, rel=1e-11, abs=1e-15)


# --- holes


@pytest.mark.parametrize("depth", [0, 1, 3, 5])
@pytest.mark.parametrize("highest", [3, 4])
def test_over_holes__every_filling(depth, highest):
    asked = [one for one in COMBINATIONS if one[0] not in NO_HOLES]
    batch = Batch(SEVERAL, asked)
    found, plain = batch.over_holes(highest, depth), batch.plain(depth)
    for m, one in enumerate(asked):
        kind, options = options_of(*one)
        for t, (groups, missed) in enumerate(SEVERAL):
            rows = list(chain.from_iterable(groups))
            if batch.stats[t, N_JUDGED] == 0:
                assert math.isnan(found[m, t])
                continue
            wanted = reference_bounds.over_holes(kind, rows, missed, depth, highest, **options)
            got = None if math.isnan(found[m, t]) else found[m, t]
            assert got == pytest.approx(wanted, abs=1e-12), (one, groups, missed, depth)
            assert math.isnan(plain[m, t]) or found[m, t] >= plain[m, t], (one, groups)


@given(ties(9), st.integers(0, 9), st.sampled_from(COMBINATIONS))
def test_over_holes__drawn(one, depth, asked):
    groups, missed = one
    if asked[0] in NO_HOLES:
        return
    batch = Batch([one], [asked])
    kind, options = options_of(*asked)
    rows = list(chain.from_iterable(groups))
    got = batch.over_holes(3, depth)[0, 0]
    if batch.stats[0, N_JUDGED] == 0:
        assert math.isnan(got)
        return
    wanted = reference_bounds.over_holes(kind, rows, missed, depth, 3, **options)
    assert (None if math.isnan(got) else got) == pytest.approx(wanted, abs=1e-12)
