"""Every formula against plain Python, on random hits, cut-offs, levels and gains."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import tables
from ragcore_kernels import gains as kernel_gains
from ragcore_kernels import measures
from ragcore_kernels._jit import JIT
from ragcore_kernels.ranking import BY_SCORE

quiet = settings(derandomize=True, deadline=None, max_examples=80 if JIT else 10)
NO_MAP = np.full((1, 1), np.nan)

# name in the reference -> kind, parameters
PLAIN = {
    "P": measures.P, "R": measures.R, "R_capped": measures.R_CAPPED, "Success": measures.SUCCESS,
    "RR": measures.RR, "AP": measures.AP, "nDCG": measures.NDCG, "Judged": measures.JUDGED,
    "unj": measures.UNJUDGED,
}  # fmt: skip
WHOLE = {
    "Rprec": (measures.RPREC, (1.0,), {}),
    "Rprec_mult": (measures.RPREC, (0.4,), {"multiple": 0.4}),
    "Bpref": (measures.BPREF, (), {}),
    "infAP": (measures.INFAP, (), {}),
    "IPrec": (measures.IPREC, (0.3,), {"recall_level": 0.3}),
    "NumQ": (measures.ONE, (), {}),
    "NumRet": (measures.NUM_RET, (), {}),
    "NumRel": (measures.NUM_REL, (), {}),
    "NumRelRet": (measures.NUM_REL_RET, (), {}),
    "SetP": (measures.SET_P, (), {}),
    "SetR": (measures.SET_R, (), {}),
    "SetF": (measures.SET_F, (0.5,), {"beta": 0.5}),
    "set_map": (measures.SET_AP, (), {}),
    "utility": (measures.UTILITY, (1.0, -0.5, -2.0), {"a": 1.0, "b": -0.5, "c": -2.0}),
    "num_nonrel_judged_ret": (measures.NUM_NONREL_RET, (), {}),
    "binG": (measures.BIN_G, (), {}),
}
GRADED = {
    "nDCG_exp": (measures.NDCG, kernel_gains.GAIN_EXP, (), {}),
    "ERR": (measures.ERR, kernel_gains.GAIN_LINEAR, (4.0,), {}),
    "RBP": (measures.RBP, kernel_gains.GAIN_LINEAR, (0.8,), {"p": 0.8}),
}


def specs():
    """(reference name, k, rel, judged_only, its parameters, kernel row, kernel parameters)."""
    for rel in (0, 1, 2):
        for only in (False, True):
            for name, kind in PLAIN.items():
                needed = name in ("P", "unj")
                for k in (1, 3, 10, 100) if needed else (0, 1, 3, 10):
                    yield name, k, rel, only, {}, [kind, k, rel, only, 0], ()
            for name, (kind, params, given_) in WHOLE.items():
                yield name, 0, rel, only, given_, [kind, 0, rel, only, 0], params
            for name, (kind, mode, params, given_) in GRADED.items():
                for k in (0, 2, 7):
                    yield name, k, rel, only, given_, [kind, k, rel, only, mode], params


SPECS = list(specs())


def evaluate(board, rows, params, table=NO_MAP, depth=0, threads=1, parts=True):
    n = len(board.rankings)
    spec = np.array(rows, np.int64).reshape(-1, measures.SPEC_FIELDS)
    numbers = np.zeros((len(spec), 3))
    for i, given_ in enumerate(params):
        numbers[i, : len(given_)] = given_
    out = np.full((len(spec), n), -7.0)
    quotients = np.full((2, len(spec), n if parts else 0), -7.0)

    def work(begin, end):
        measures.evaluate(
            spec, numbers, table, depth, begin, end, board.label_of, board.hit_offsets,
            board.ranks, board.hit_grades, board.ideal_offsets, board.ideal, board.stats, out,
            quotients,
        )  # fmt: skip

    tables.split(work, n, threads)
    return out, quotients


def board_of(seed, n=20, depth=25):
    rng = random.Random(seed)
    pool = [f"d{i}".encode() for i in range(2 * depth)]
    labels = [
        [
            (doc, rng.choice((-2, -1, 0, 0, 1, 1, 2, 3, 4)))
            for doc in rng.sample(pool, rng.randint(0, min(30, len(pool))))
        ]
        for _ in range(n)
    ]
    rankings = []
    for c in range(n):
        docs = rng.sample(pool, rng.choice((0, 1, 5, depth)))
        rankings.append(([(doc, float(rng.randrange(9))) for doc in docs], c))
    rankings.append(([(b"d1", 1.0)], -1))
    return tables.Board(rankings, labels, parts=2)


def topic(board, t):
    rows, c = board.rankings[t]
    names = {doc: doc.decode() for doc, _ in rows}
    return [names[doc] for doc in tables.ordered(rows)], {
        doc.decode(): grade for doc, grade in board.judgements[c]
    }


def near(a, b):
    return (a != a and b is None) or (b is not None and math.isclose(a, b, abs_tol=1e-12))


@pytest.mark.parametrize("seed", range(3))
def test_measures__equal_plain_python(seed):
    board = board_of(seed).find(BY_SCORE)
    out, _ = evaluate(board, [s[5] for s in SPECS], [s[6] for s in SPECS], threads=2)
    for t in range(len(board.rankings) - 1):
        ranked, grades = topic(board, t)
        for m, (name, k, rel, only, params, *_) in enumerate(SPECS):
            expected = reference.measure(
                name, ranked, grades, k or None, rel, judged_only=only, **params
            )
            assert near(out[m, t], expected), (name, k, rel, only, t, out[m, t], expected)
    assert np.isnan(out[:, -1]).all()


def test_measures__values_are_the_quotients_of_their_parts():
    board = board_of(5).find()
    out, (top, bottom) = evaluate(board, [s[5] for s in SPECS], [s[6] for s in SPECS])
    judged = slice(0, len(board.rankings) - 1)
    for m, spec in enumerate(SPECS):
        values, t, b = out[m, judged], top[m, judged], bottom[m, judged]
        whole = ~np.isnan(t) & ~np.isnan(values)
        with np.errstate(invalid="ignore", divide="ignore"):
            divided = np.where(b[whole] == 0, 0.0, t[whole] / b[whole])
        assert (np.abs(divided - values[whole]) <= 1e-15).all(), spec[0]
        if spec[0] in ("P", "R", "AP", "RR", "Success", "nDCG", "SetP", "SetR", "Rprec"):
            assert whole.sum() == (~np.isnan(values)).sum()


def test_measures__are_the_same_bits_for_any_split_and_without_parts():
    board = board_of(6).find()
    rows, params = [s[5] for s in SPECS], [s[6] for s in SPECS]
    one, _ = evaluate(board, rows, params)
    for threads in (2, 7):
        assert evaluate(board, rows, params, threads=threads)[0].tobytes() == one.tobytes()
    bare, empty = evaluate(board, rows, params, parts=False)
    assert bare.tobytes() == one.tobytes()
    assert empty.shape[2] == 0


def test_measures__depth_cuts_every_list():
    board = board_of(7).find()
    deep, _ = evaluate(board, [s[5] for s in SPECS], [s[6] for s in SPECS], depth=4)
    for t in range(len(board.rankings) - 1):
        ranked, grades = topic(board, t)
        for m, (name, k, rel, only, params, *_) in enumerate(SPECS):
            expected = reference.measure(
                name, ranked[:4], grades, k or None, rel, judged_only=only, **params
            )
            assert near(deep[m, t], expected), (name, k, rel, only, t)


GAINS = [{1: 0.5, 2: 5.0, 3: 1.0}, {0: 1.0}, {1: 0.0, 2: 0.0, 3: 0.0, 4: 0.0}, {1: -1.0, 4: 1e300}]


@pytest.mark.parametrize("gains", GAINS)
def test_measures__gain_maps(gains):
    board = board_of(8).find()
    table = np.full((2, 6), np.nan)
    for grade, value in gains.items():
        table[1, grade] = value
    rows = [[measures.NDCG, k, 1, 0, kernel_gains.GAIN_TABLE + 1] for k in (0, 3)]
    out, _ = evaluate(board, rows, [(), ()], table)
    for t in range(len(board.rankings) - 1):
        ranked, grades = topic(board, t)
        for m, k in enumerate((None, 3)):
            expected = reference.measure("nDCG", ranked, grades, k, gains=gains)
            assert near(out[m, t], expected), (t, k)


@pytest.mark.parametrize("grade", [255, 256, 1023, 1024, 5000, 2**31 - 1])
def test_measures__of_high_grades(grade):
    labels = [[(b"a", grade), (b"b", 1), (b"c", 0)]]
    board = tables.Board([([(b"b", 2.0), (b"a", 1.0)], 0)], labels).find()
    rows = [
        [measures.NDCG, 0, 1, 0, mode] for mode in (kernel_gains.GAIN_LINEAR, kernel_gains.GAIN_EXP)
    ]
    out, _ = evaluate(board, rows, [(), ()])
    ranked, grades = topic(board, 0)
    for m, name in enumerate(("nDCG", "nDCG_exp")):
        assert near(out[m, 0], reference.measure(name, ranked, grades)), name


NORMAL = ["P", "R", "R_capped", "Success", "RR", "AP", "nDCG", "nDCG_exp", "Judged", "Rprec",
          "SetP", "SetR", "SetF", "set_map", "ERR", "RBP", "Bpref", "IPrec", "infAP",
          "binG"]  # fmt: skip


@given(st.integers(0, 10_000))
@quiet
def test_measures__normalised_ones_stay_in_0_to_1(seed):
    board = board_of(seed, n=4, depth=8).find()
    chosen = [s for s in SPECS if s[0] in NORMAL and s[2] > 0]
    out, _ = evaluate(board, [s[5] for s in chosen], [s[6] for s in chosen])
    values = out[~np.isnan(out)]
    assert ((values >= 0) & (values <= 1 + 1e-12)).all()


def test_measures__give_1_to_a_perfect_run():
    grades = [(b"a", 3), (b"b", 2), (b"c", 1)]
    rows = [(doc, float(g)) for doc, g in grades]
    board = tables.Board([(rows, 0)], [[*grades, (b"z", 0)]]).find()
    for name in ("R", "R_capped", "Success", "RR", "AP", "nDCG", "nDCG_exp", "Judged", "Rprec",
                 "SetP", "SetR", "set_map", "Bpref", "IPrec", "infAP", "binG"):  # fmt: skip
        chosen = [s for s in SPECS if s[:4] == (name, 0, 1, False)]
        out, _ = evaluate(board, [s[5] for s in chosen], [s[6] for s in chosen])
        assert out[0, 0] == pytest.approx(1.0, abs=1e-4 if name == "infAP" else 1e-15), name


def test_measures__rows_past_the_cut_off_change_nothing():
    rng = random.Random(9)
    docs = [f"d{i}".encode() for i in range(40)]
    labels = [[(doc, rng.randint(0, 2)) for doc in docs]]
    head = [(doc, float(100 - i)) for i, doc in enumerate(docs[:10])]
    tails = [head + [(d, -1.0 - i) for i, d in enumerate(docs[10 : 10 + n])] for n in (0, 1, 30)]
    board = tables.Board([(rows, 0) for rows in tails], labels).find()
    at_10 = [s for s in SPECS if s[1] == 10 and s[0] != "unj"]
    out, _ = evaluate(board, [s[5] for s in at_10], [s[6] for s in at_10])
    assert (out[:, :1] == out).all()


def test_measures__of_no_measure_and_no_ranking():
    board = board_of(1, n=2).find()
    out, _ = evaluate(board, [], [])
    assert out.shape == (0, 3)
    out, _ = evaluate(tables.Board([], []).find(), [s[5] for s in SPECS], [s[6] for s in SPECS])
    assert out.shape == (len(SPECS), 0)
