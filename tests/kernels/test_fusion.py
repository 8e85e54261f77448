"""Fusion of lists: every method against exact fractions, the order, hostile input, agreement."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_fusion as reference
import tables
from ragcore_kernels import copying, few, fusion, layout, leaders, lists
from ragcore_kernels._jit import JIT, address_of, compiled_count
from ragcore_kernels.normalised import NORMALISATIONS
from ragcore_kernels.overlap import compare_lists
from ragcore_kernels.rows import SCORE_F32, SCORE_F64

quiet = settings(derandomize=True, deadline=None, max_examples=100 if JIT else 12)
SCORES = (0.0, -0.0, 1.0, 2.5, -3.0, 5e-324, 1e308, -1e308)


class Fusion:
    """Lists of cases, ``cases[q][channel]`` the rows, in one layout, and what became of them."""

    def __init__(self, cases, kind="offsets32", recorded=None, narrow=False):
        self.cases, n = cases, len(cases[0])
        self.recorded = np.array(recorded or [0] * n, np.int64)
        parts, sources, segments, self.keep, base = [], [], [], [], 0
        offsets = [0]
        spots = {}
        for c in range(n):
            chunks = [half for case in cases for half in self.halves(case[c])]
            column = tables.Pieces([[doc for doc, _ in chunk] for chunk in chunks], kind)
            self.keep.append(column)
            parts.append(column.table)
            for at, chunk in enumerate(chunks):
                values = np.array([s for _, s in chunk] + [0], np.float32 if narrow else float)
                self.keep.append(values)
                sources.append((SCORE_F32 if narrow else SCORE_F64, values.ctypes.data))
                spots.setdefault((at // 2, c), []).append((base + at, 0, len(chunk)))
            base += len(chunks)
        for q in range(len(cases)):
            for c in range(n):
                segments += spots[q, c]
                offsets.append(len(segments))
        self.table, self.sources = np.concatenate(parts), np.array(sources, np.int64)
        self.segments = np.array(segments, np.int64).reshape(-1, 3)
        self.offsets = np.array(offsets, np.int64)

    @staticmethod
    def halves(rows):
        return [rows[: len(rows) // 2], rows[len(rows) // 2 :]]

    def run(
        self, method="rrf", k=60.0, weights=None, how="min-max", depth=None, agree=0, threads=1
    ):
        n_cases, n = len(self.cases), self.recorded.size
        weights = np.array(weights or [1.0] * n)
        longest = max(len(rows) for case in self.cases for rows in case)
        self.high = self.low = np.zeros((1, 1))
        if method == "rrf":
            self.high, self.low = fusion.reciprocals(weights, k, longest)
        numbers = np.array(
            [fusion.METHODS.index(method), NORMALISATIONS.index(how), depth or 2**62, agree, 1],
            np.int64,
        )
        counts = np.zeros(n_cases, np.int64)
        lengths = np.zeros((n_cases * n, 2), np.int64)
        pairs = n * (n - 1) // 2
        agreements = np.zeros((n_cases, pairs, 3) if agree else (0, 0, 3))
        fused, kept = [None] * n_cases, [None] * n_cases
        states = []

        def work(begin, end):
            rows = sum(len(r) for case in self.cases[begin:end] for r in case)
            ends, list_ends = np.empty(rows + 1, np.int32), np.empty(rows + 1, np.int32)
            places, list_places = np.empty((rows, 2), np.int64), np.empty((rows, 2), np.int64)
            scores, list_scores = np.empty(rows), np.empty(rows)
            state = np.zeros(fusion.STATE_FIELDS, np.int64)
            fusion.fuse_cases(
                self.table, self.sources, self.segments, self.offsets, self.recorded, weights,
                self.high, self.low, numbers, 0.9, begin, end, counts, ends, places, scores,
                lengths, list_ends, list_places, list_scores, agreements, state,
            )  # fmt: skip
            states.append(state)
            if state[fusion.PROBLEM]:
                return
            ids = self.text(ends, places, int(state[fusion.RANKED_BYTES]), counts[begin:end].sum())
            n_listed = int(state[fusion.LIST_ROWS])
            listed = self.text(list_ends, list_places, int(state[fusion.LIST_BYTES]), n_listed)
            at, list_at = 0, 0
            for q in range(begin, end):
                fused[q] = list(zip(ids[at:][: counts[q]], scores[at:].tolist(), strict=False))
                at += counts[q]
                kept[q] = []
                for c in range(n):
                    m = lengths[q * n + c, 0]
                    part = slice(list_at, list_at + m)
                    kept[q].append(list(zip(listed[part], list_scores[part].tolist(), strict=True)))
                    list_at += m

        tables.split(work, n_cases, threads)
        self.fused, self.kept, self.lengths, self.agreements = fused, kept, lengths, agreements
        self.states = states
        return fused

    @staticmethod
    def text(ends, places, n_bytes, n):
        data = np.empty(n_bytes, np.uint8)
        copying.copy_ids(places, int(n), address_of(data))
        return [data[ends[i] : ends[i + 1]].tobytes() for i in range(n)]


def some(seed, n_cases=6, n_lists=3, depth=30, scores=SCORES):
    rng = random.Random(seed)
    names = list(dict.fromkeys([*rng.sample(tables.hostile_ids(), 25), *tables.colliding()]))

    def rows():
        found = rng.choices(names, k=rng.randint(0, depth))
        return [(doc, rng.choice(scores)) for doc in found]

    return [[rows() for _ in range(n_lists)] for _ in range(n_cases)]


def check(world, method="rrf", how="min-max", **options):
    recorded = world.recorded.tolist()
    for q, case in enumerate(world.cases):
        expected = reference.fuse(
            case, method, options.get("k", 60), options.get("weights"), how, recorded
        )
        got = world.fused[q]
        best = {doc: rank for doc, _, rank in expected}
        exact = {doc: score for doc, score, _ in expected}
        cut = options.get("depth") or len(expected)
        assert len(got) == min(cut, len(expected))
        if method == "rrf":
            assert got == [(doc, score) for doc, score, _ in expected[:cut]], q
        for doc, score in got:
            assert score == pytest.approx(exact[doc], rel=1e-12, abs=1e-300)
        rows = [(doc, score, best[doc]) for doc, score in got]
        assert rows == reference.in_order(rows)
        for c, rows in enumerate(case):
            ranked = reference.ranked(rows, bool(recorded[c]))
            assert [doc for doc, _ in world.kept[q][c]] == [doc for doc, _ in ranked]
            assert [s for _, s in world.kept[q][c]] == [s for _, s in ranked]
            t = q * len(case) + c
            assert world.lengths[t].tolist() == [len(ranked), len(rows) - len(ranked)]


# --- reciprocal ranks


@pytest.mark.parametrize("kind", tables.KINDS)
def test_rrf__is_the_exact_sum_rounded_in_every_layout(kind):
    world = Fusion(some(1), kind)
    world.run()
    check(world)


@quiet
@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 60.0, 0.5, 1000.0]), st.integers(1, 5),
    st.sampled_from([None, 1, 7, 1000]), st.booleans(),
)  # fmt: skip
def test_rrf__equals_fractions(seed, k, n_lists, depth, recorded):
    rng = random.Random(seed)
    weights = [rng.choice([1.0, 0.1, 0.0, 2.5, 1e-3]) for _ in range(n_lists)]
    cases = some(seed, 3, n_lists, 12)
    world = Fusion(cases, recorded=[int(recorded)] * n_lists)
    world.run(k=k, weights=weights, depth=depth, threads=1 + seed % 2)
    check(world, k=k, weights=weights, depth=depth)


def test_rrf__ties_what_is_equal_as_fractions():
    # 1/63 + 1/126 = 1/84 + 1/84 = 1/70 + 1/105: ranks (3, 66), (24, 24), (10, 45)
    def at(places):
        filler = {r: b"f%d" % r for r in range(1, 70)}
        return [(places.get(r, filler[r]), 100.0 - r) for r in range(1, 70)]

    first = at({3: b"wide", 24: b"even", 10: b"some"})
    second = [(b"g" + d if d[:1] == b"f" else d, s)
              for d, s in at({66: b"wide", 24: b"even", 45: b"some"})]  # fmt: skip
    for both in ([first, second], [second, first]):
        (fused,) = Fusion([both]).run()
        scores = dict(fused)
        assert scores[b"wide"] == scores[b"even"] == scores[b"some"] == float(Fraction(1, 42))
        assert [d for d, _ in fused if d in (b"wide", b"even", b"some")] == [
            b"wide", b"some", b"even"
        ]  # fmt: skip


@pytest.mark.parametrize("method", fusion.METHODS)
def test_fusion__does_not_depend_on_the_order_of_lists_rows_or_threads(method):
    rng = random.Random(5)
    values = [rng.random() for _ in range(300)]
    cases = some(6, 8 if JIT else 3, 5, 40, values)
    cases = [[reference.ranked(rows) for rows in case] for case in cases]
    seen = []
    for threads in (1, 2):
        for turn in range(4):
            order = rng.sample(range(5), 5)
            mixed = [[rng.sample(case[c], len(case[c])) for c in order] for case in cases]
            how = ("min-max", "z-score")[turn % 2]
            seen.append((how, Fusion(mixed).run(method, how=how, threads=threads)))
    for how in ("min-max", "z-score"):
        first, *rest = [fused for name, fused in seen if name == how]
        assert all(fused == first for fused in rest)


# --- normalised scores


@pytest.mark.parametrize("method", ["combsum", "combmnz"])
@pytest.mark.parametrize("how", NORMALISATIONS)
def test_combination__equals_fractions(method, how):
    for seed in range(6 if JIT else 2):
        weights = [1.0, 0.5, 2.0]
        world = Fusion(some(seed, 4), recorded=[0, 1, 0])
        world.run(method, how=how, weights=weights, depth=9 if seed % 2 else None)
        check(world, method, how, weights=weights, depth=9 if seed % 2 else None)


@pytest.mark.parametrize("how", ["min-max", "z-score"])
def test_constant_list__is_one_throughout_and_above_what_it_lacks(how):
    tied = [(b"a", 2.0), (b"b", 2.0)]
    (fused,) = Fusion([[tied, [(b"b", 5.0), (b"c", 1.0)]]]).run("combsum", how=how)
    scores = dict(fused)
    assert scores[b"a"] == 1.0
    assert scores[b"b"] >= 2.0
    assert scores[b"c"] == 0.0
    (single,) = Fusion([[[(b"a", -7.0)], [(b"b", 0.0)]]]).run("combsum", how=how)
    assert single == [(b"b", 1.0), (b"a", 1.0)]


@pytest.mark.parametrize("how", NORMALISATIONS)
def test_normalised__never_pushes_what_is_held_below_what_is_not(how):
    rng = random.Random(3)
    values = [(b"d%02d" % i, rng.gauss(-5, 3)) for i in range(20)]
    (fused,) = Fusion([[values, [(b"z", 1.0)]]]).run("combsum", how=how, weights=[1.0, 0.0])
    assert min(score for doc, score in fused if doc != b"z") >= dict(fused)[b"z"] == 0.0


def test_scores__of_four_bytes_are_read_too():
    cases = some(4, scores=(0.5, 1.0, 2.0, -4.0))
    assert Fusion(cases, narrow=True).run("combsum") == Fusion(cases).run("combsum")


# --- what is wrong with a list


def test_nan__is_named_with_its_list_and_row():
    cases = [[[(b"a", 1.0)], [(b"b", 1.0)]], [[(b"c", 1.0)], [(b"d", 2.0), (b"e", math.nan)]]]
    world = Fusion(cases)
    world.run()
    assert world.states[0][:3].tolist() == [lists.NAN_SCORE, 3, 2]


def test_infinity__is_refused_where_scores_are_normalised_only():
    world = Fusion([[[(b"a", math.inf), (b"b", 1.0)], [(b"b", 1.0)]]])
    assert [doc for doc, _ in world.run()[0]] == [b"b", b"a"]
    world.run("combsum", how="rank")
    assert world.states[0][0] == lists.FINE
    world.run("combsum")
    assert world.states[0][:2].tolist() == [lists.INFINITE_SCORE, 0]


def test_id_outside_its_buffer__is_not_read():
    world = Fusion([[[(b"abc", 2.0), (b"de", 1.0)], [(b"b", 1.0)]]])
    world.table[:, layout.LIMIT] = 2
    world.run()
    assert world.states[0][0] == lists.OUTSIDE


def test_nothing__is_fused_to_nothing():
    world = Fusion([[[], []], [[], [(b"", 1.0)]]])
    assert world.run(agree=5) == [[], [(b"", 1 / 61)]]
    assert (world.agreements == 0.0).all()


# --- parts


@quiet
@given(st.lists(st.floats(0, 1e300) | st.sampled_from([1.0, 2.0**-53, 2.0**-54]), max_size=9))
def test_exact_few__is_fsum(values):
    partials = np.empty(len(values) + 1)
    got = few.exact_few(np.array([*values, 7.0]), len(values), partials)
    assert got == math.fsum(values)
    high = low = 0.0
    for value in values:
        high, low = few.add_pair(high, low, value, 0.0)
    if few.settled(high, low, len(values)):
        assert high + low == math.fsum(values)


@quiet
@given(st.floats(1e-100, 1e100), st.integers(1, 10**6), st.floats(0, 1e9))
def test_quotients__are_good_to_a_hundred_bits(weight, rank, k):
    divisor = k + rank
    high, low = few.quotients(weight, np.array([divisor]))
    exact = Fraction(weight) / Fraction(divisor)
    assert high[0] == float(exact)
    assert abs(Fraction(high[0]) + Fraction(low[0]) - exact) <= exact / 2**103


def test_copies__touch_nothing_else():
    ids = [doc for doc in tables.hostile_ids() if len(doc) < 100]
    column = tables.Pieces([ids])
    at, places = column.table[0, layout.SECOND], []
    for doc in ids:
        places.append((at, len(doc)))
        at += len(doc)
    joined = b"".join(ids)
    data = np.full(len(joined) + 16, 7, np.uint8)
    copying.copy_ids(np.array(places, np.int64), len(ids), address_of(data) + 8)
    assert data.tobytes() == b"\7" * 8 + joined + b"\7" * 8


@pytest.mark.parametrize("spread", ["even", "one far", "equal", "two"])
def test_leaders__are_those_of_a_sort(spread):
    rng = random.Random(spread)
    draw = {
        "even": rng.random, "one far": lambda: rng.choice([1.0, 1e-9 * rng.random(), 1e9]),
        "equal": lambda: 0.5, "two": lambda: float(rng.randrange(2)),
    }[spread]  # fmt: skip
    for n in (0, 1, 2, 13, 100):
        names = [b"%03d" % i for i in rng.sample(range(n), n)]
        column = tables.Pieces([names])
        at = column.table[0, layout.SECOND]
        entries = np.array([(at + 3 * i, 3) for i in range(n)], np.int64).reshape(-1, 2)
        totals, best = np.array([draw() for _ in range(n)]), np.array(
            [rng.randint(1, 3) for _ in range(n)], np.int64)  # fmt: skip
        expected = reference.in_order(list(zip(names, totals.tolist(), best.tolist(), strict=True)))
        for wanted in {0, n // 2, n}:
            order, spare = np.empty(n, np.int64), np.empty(n, np.int64)
            leaders.sort_entries(
                entries, totals, best, n, wanted, -totals, np.empty(2 * n + 3, np.int32),
                np.empty(n), order,
                spare,
            )  # fmt: skip
            assert [names[e] for e in order[:wanted]] == [doc for doc, *_ in expected[:wanted]]


# --- agreement


@pytest.mark.parametrize(
    ("first", "second", "rbo"),
    [("abcde", "bacfg", 0.619335), ("abcde", "abcde", 1.0), ("ab", "bacd", 0.9)],
)
def test_rbo__has_the_published_values(first, second, rbo):
    for pair in ((first, second), (second, first)):
        assert compare_lists(*pair)[2] == pytest.approx(rbo, abs=5e-7)


@quiet
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0.1, 0.5, 0.9, 0.98]))
def test_agreement__equals_its_definition(seed, k, p):
    rng = random.Random(seed)
    docs = "abcdefghijkl"
    pair = [rng.sample(docs, rng.randint(0, 12)) for _ in range(2)]
    expected = [float(value) for value in reference.agreement(*pair, k, p)]
    assert compare_lists(*pair, k, p).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert (compare_lists(*pair, k, p) == compare_lists(*pair[::-1], k, p)).all()


def test_agreement__of_every_pair_of_lists_in_a_fusion():
    cases = some(11, 4, 3, 20, (1.0, 2.0, 3.0))
    world = Fusion(cases)
    for k in (1, 5, 100):
        world.run(agree=k)
        for q, case in enumerate(cases):
            order = [[doc for doc, _ in reference.ranked(rows)] for rows in case]
            for at, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
                values = world.agreements[q, at].tolist()
                assert values == compare_lists(order[a], order[b], k).tolist()


@pytest.mark.parametrize("options", [{"p": 0.0}, {"p": 1.0}, {"k": 0}])
def test_agreement__refuses_what_makes_no_sense(options):
    with pytest.raises(ValueError, match="expected"):
        compare_lists("ab", "ba", **options)
    with pytest.raises(ValueError, match="twice"):
        compare_lists("aa", "b")


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__have_one_specialisation():
    assert compiled_count(fusion.fuse_cases) == 1
    assert compiled_count(copying.copy_ids) == 1
