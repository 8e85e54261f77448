"""Items that chunks contain, and measures of both, against plain Python; two threads."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import tables
from ragcore_kernels import items as kernel
from ragcore_kernels import measures, ranking

N_FIELDS = ranking.PROBLEM_B + 1
KINDS = {
    "AP": measures.AP, "R_cap": measures.R_CAPPED, "set_F": measures.SET_F,
    "set_AP": measures.SET_AP, "utility": measures.UTILITY, "iprec": measures.IPREC,
    "binG": measures.BIN_G,
}  # fmt: skip


class World:
    """Cases with items and chunks that hold them; rankings with the chunks that they retrieved."""

    def __init__(self, seed, n=11, n_cases=4):
        draw = random.Random(seed)
        self.cases = [
            [draw.choice([-1, 0, 1, 1, 2, 3]) for _ in range(draw.randint(0, 5))]
            for _ in range(n_cases)
        ]
        self.chunks = [
            [draw.sample(range(len(grades)), draw.randint(1, len(grades)))
             for _ in range(draw.randint(0, 5) if grades else 0)]
            for grades in self.cases
        ]  # fmt: skip
        self.label_of = [draw.randint(-1, n_cases - 1) for _ in range(n)]
        self.fine = [draw.random() < 0.9 for _ in range(n)]
        self.hits, self.n_ret = [], []
        for label in self.label_of:
            own = len(self.chunks[label]) if label >= 0 else 0
            found = draw.sample(range(own), draw.randint(0, own))
            n_ret = len(found) + draw.randint(0, 4)
            places = sorted(draw.sample(range(1, n_ret + 1), len(found)))
            self.hits.append(list(zip(places, found, strict=True)))
            self.n_ret.append(n_ret)

    def arrays(self):
        n = len(self.hits)
        stats = np.full((n, N_FIELDS), 77, np.int64)
        for t, hits in enumerate(self.hits):
            stats[t, ranking.N_HITS], stats[t, ranking.N_RET] = len(hits), self.n_ret[t]
            stats[t, ranking.PROBLEM] = ranking.FINE if self.fine[t] else ranking.NAN_SCORE
        held = [h for chunks in self.chunks for h in chunks]
        ideal = np.zeros(sum(map(len, self.cases)), np.int32)
        at = 0
        for grades in self.cases:
            best = sorted((g for g in grades if g >= 0), reverse=True)
            ideal[at : at + len(best)] = best
            at += len(grades)
        self.label = np.array(self.label_of, np.int64)
        self.offsets = ends(map(len, self.hits))
        self.ranks = np.array([r for hits in self.hits for r, _ in hits], np.int32)
        self.found = np.array([c for hits in self.hits for _, c in hits], np.int32)
        self.stats, self.items, self.ideal = stats, ends(map(len, self.cases)), ideal
        self.grades = np.array([g for grades in self.cases for g in grades], np.int32)
        self.of_case, self.held = ends(map(len, self.chunks)), ends(map(len, held))
        self.holds = np.array([i for h in held for i in h], np.int64)
        self.room = ends(len(self.cases[c]) if c >= 0 else 0 for c in self.label_of)
        return self

    def spread(self, condense=0, depth=0, threads=1):
        """The lists that the kernel fills: ranks, best, fresh, items' ranks and grades, stats."""
        size, room = self.ranks.size, int(self.room[-1])
        out = (
            *(np.full(size, -9, np.int32) for _ in range(3)),
            *(np.full(room, -9, np.int32) for _ in range(2)),
            np.empty_like(self.stats), np.empty_like(self.stats),
        )  # fmt: skip
        tables.split(
            lambda a, b: kernel.spread(
                a, b, self.label, self.offsets, self.ranks, self.found, self.stats, self.of_case,
                self.held, self.holds, self.items, self.grades, condense, depth, self.room, *out,
            ),
            len(self.hits), threads,
        )  # fmt: skip
        return out

    def plain(self, t, condense=0, depth=0):
        """(rank, best, fresh) of the chunks of one ranking, and (rank, grade) of its items."""
        label = self.label_of[t]
        if label < 0 or not self.fine[t]:
            return [], []
        chunks, items, seen = [], [], set()
        for rank, chunk in self.hits[t]:
            held = {i: self.cases[label][i] for i in self.chunks[label][chunk]}
            if condense and (max(held.values()) < 0 or (depth and rank > depth)):
                continue
            place = len(chunks) + 1 if condense else rank
            new = {i: g for i, g in held.items() if i not in seen}
            seen |= new.keys()
            chunks.append((place, max(held.values()), max([kernel.NOTHING_NEW, *new.values()])))
            items += [(place, g) for g in sorted(new.values(), reverse=True)]
        return chunks, items


def ends(sizes):
    return np.concatenate([[0], np.cumsum(list(sizes))]).astype(np.int64)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("condense", "depth"), [(0, 0), (1, 0), (1, 3)])
@pytest.mark.parametrize("seed", range(12))
def test_spread__equals_plain_python(seed, condense, depth, threads):
    world = World(seed).arrays()
    ranks, best, fresh, item_ranks, item_grades, stats, item_stats = world.spread(
        condense, depth, threads
    )
    for t in range(len(world.hits)):
        chunks, items = world.plain(t, condense, depth)
        a, b = int(world.offsets[t]), int(world.room[t])
        rows = slice(a, a + len(chunks))
        assert list(zip(*(x[rows].tolist() for x in (ranks, best, fresh)), strict=True)) == chunks
        own = slice(b, b + len(items))
        pairs = list(zip(*(x[own].tolist() for x in (item_ranks, item_grades)), strict=True))
        assert pairs == items
        label = world.label_of[t]
        judged = sum(g >= 0 for g in world.cases[label]) if label >= 0 and world.fine[t] else 0
        for found, n in ((stats, len(chunks)), (item_stats, len(items))):
            assert found[t, ranking.N_HITS] == n
            assert found[t, ranking.N_JUDGED] == judged
            assert found[t, ranking.N_RET] == (len(chunks) if condense else world.n_ret[t])
            assert found[t, ranking.PROBLEM] == world.stats[t, ranking.PROBLEM]


def value(kind, params, k, rel, chunks, items, n_ret, n_rel):
    """One measure by its definition, exactly; None for no value."""
    reach = min(k or n_ret, n_ret)
    useful = [r for r, best, _ in chunks if best >= rel and r <= reach]
    found = [r for r, g in items if g >= rel and r <= reach]
    if kind == measures.UTILITY:
        counts = len(useful), n_ret - len(useful), n_rel - len(found)
        return sum(Fraction(w) * c for w, c in zip(params, counts, strict=True))
    if n_rel == 0:
        return None
    if kind == measures.R_CAPPED:
        cap = min(k or n_ret, n_rel)
        return Fraction(min(len(found), cap), cap) if cap else Fraction(0)
    if kind == measures.SET_F:
        if not useful:
            return Fraction(0)
        p, r, b = Fraction(len(useful), n_ret), Fraction(len(found), n_rel), Fraction(params[0])
        return (b + 1) * p * r / (b * p + r)
    if kind == measures.SET_AP:
        return Fraction(len(useful) * len(found), n_ret * n_rel) if n_ret else Fraction(0)

    def precision(rank):
        return Fraction(sum(r <= rank for r in useful), rank)

    if kind == measures.AP:
        return sum((precision(r) for r in found), Fraction(0)) / n_rel
    if kind == measures.BIN_G:
        above = [r - sum(u <= r for u in useful) for r in found]
        return sum(1.0 / math.log2(2 + one) for one in above) / n_rel
    need = math.floor(params[0] * n_rel + 0.5)  # interpolated precision
    if need > len(found):
        return Fraction(0)
    least = sorted(found)[need - 1] if need else 0
    return max((precision(r) for r in useful if r >= least), default=Fraction(0))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_evaluate__equals_the_definitions(name, threads):
    params = {"utility": (2.0, -0.5, -1.0), "set_F": (0.25, 0, 0), "iprec": (0.5, 0, 0)}
    own = params.get(name, (0.0, 0.0, 0.0))
    wanted_of = [(k, rel) for k in (0, 1, 3, 50) for rel in (1, 2)]
    spec = np.array([[KINDS[name], k, rel, 0, 0] for k, rel in wanted_of], np.int64)
    numbers = np.tile(np.array(own, np.float64), (len(wanted_of), 1))
    for seed in range(15):
        world = World(seed).arrays()
        ranks, best, _, item_ranks, item_grades, stats, item_stats = world.spread()
        n = len(world.hits)
        out, parts = np.full((len(spec), n), -9.0), np.full((2, len(spec), n), -9.0)
        tables.split(
            lambda a, b, w=world, o=out, p=parts, given=(
                ranks, best, stats, world.room, item_ranks, item_grades, item_stats
            ): kernel.evaluate(
                spec, numbers, 0, a, b, w.label, w.offsets, *given, w.items, w.ideal, o, p,
            ),
            n, threads,
        )  # fmt: skip
        for m, (k, rel) in enumerate(wanted_of):
            for t in range(n):
                label = world.label_of[t]
                if label < 0 or not world.fine[t]:
                    assert math.isnan(out[m, t])
                    continue
                n_rel = sum(g >= rel for g in world.cases[label])
                wanted = value(KINDS[name], own, k, rel, *world.plain(t), world.n_ret[t], n_rel)
                if wanted is None:
                    assert math.isnan(out[m, t])
                    assert parts[1, m, t] == 0.0
                    continue
                assert out[m, t] == pytest.approx(float(wanted), rel=1e-14, abs=1e-15)
                if not math.isnan(parts[1, m, t]) and parts[1, m, t]:
                    assert parts[0, m, t] / parts[1, m, t] == out[m, t]


def test_spread__of_chunks_with_one_item_each_is_the_plain_list():
    world = World(0)
    world.cases, world.chunks = [[1, 0, 2]], [[[0], [1], [2]]]
    world.label_of, world.fine, world.n_ret = [0], [True], [5]
    world.hits = [[(1, 2), (3, 0), (5, 1)]]
    ranks, best, fresh, item_ranks, item_grades, *_ = world.arrays().spread()
    assert ranks.tolist() == item_ranks.tolist() == [1, 3, 5]
    assert best.tolist() == fresh.tolist() == item_grades.tolist() == [2, 1, 0]


def test_kernels__of_nothing():
    world = World(0, n=0).arrays()
    *_, stats, item_stats = world.spread()
    assert stats.shape == item_stats.shape == (0, N_FIELDS)
    bare = World(1)
    bare.cases, bare.chunks, bare.hits = [[]] * 4, [[]] * 4, [[] for _ in bare.hits]
    ranks, best, fresh, item_ranks, *_, item_stats = bare.arrays().spread(1)
    assert not ranks.size + best.size + fresh.size + item_ranks.size
    assert not item_stats[:, [ranking.N_HITS, ranking.N_JUDGED, ranking.N_RET]].any()


def test_space__says_which_hits_a_measure_reads():
    for kind in KINDS.values():
        assert kernel.space_of(kind) == kernel.BOTH
    for kind in (measures.R, measures.SET_R, measures.NUM_REL, measures.BPREF):
        assert kernel.space_of(kind) == kernel.ITEMS
    for kind in (measures.NDCG, measures.ERR, measures.RBP):
        assert kernel.space_of(kind) == kernel.GAINS
    for kind in (measures.P, measures.RR, measures.SUCCESS, measures.JUDGED, measures.ONE):
        assert kernel.space_of(kind) == kernel.CHUNKS
    assert kernel.space_of(measures.INFAP) == kernel.NEITHER
