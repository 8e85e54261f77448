"""Nuggets, ALCE and TREC support: kernels against plain Python in fractions, goldens, threads."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore.answers import nuggets, support
from ragcore.answers.support import DANGLING
from ragcore.errors import UsageError
from ragcore.threads import run_split
from ragcore_kernels import nuggets as nugget_kernel
from ragcore_kernels import support as support_kernel
from ragcore_kernels._jit import compiled_count
from ragcore_kernels.layout import frozen

# --- plain references

WEIGHT = {2: Fraction(1), 1: Fraction(1, 2), 0: Fraction(0)}


def share(top, bottom):
    return top / bottom if bottom else None


def plain_nuggets(rows):
    """rows: (code, vital) of one answer -> measure name -> Fraction, or None for 0/0."""
    out = {}
    for suffix, weight in (("", WEIGHT), ("_strict", {**WEIGHT, 1: Fraction(0)})):
        vital = [weight[code] for code, is_vital in rows if is_vital]
        okay = [weight[code] for code, is_vital in rows if not is_vital]
        half = Fraction(1, 2)
        out[f"vital{suffix}"] = share(sum(vital, Fraction(0)), len(vital))
        out[f"all{suffix}"] = share(sum(vital + okay, Fraction(0)), len(rows))
        top = sum(vital, Fraction(0)) + half * sum(okay, Fraction(0))
        out[f"weighted{suffix}"] = share(top, len(vital) + half * len(okay))
    return out


def plain_alce(answer, official):
    """answer: sentences (joint, [(alone, without)]) -> recall, precision, precise flags."""
    entailed, precise, counted, flags = 0, 0, 0, []
    for joint, cites in answer:
        good = [c for c in cites if c[0] != DANGLING]
        if official and len(good) < len(cites):
            flags += [None] * len(cites)
            continue
        holds = bool(good) and joint == 1
        entailed += holds
        counted += len(cites)
        for alone, without in cites:
            needed = len(good) == 1 or alone == 1 or without == 0
            flags.append(holds and alone != DANGLING and needed)
            precise += flags[-1]
    empty = Fraction(0) if official else None
    return (
        share(Fraction(entailed), len(answer)),
        share(Fraction(precise), counted) if counted else empty,
        flags,
    )


def csr(lists):
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    return offsets, [item for each in lists for item in each]


def same(value, wanted):
    return np.isnan(value) if wanted is None else value == float(wanted)


# --- nuggets


def test_nuggets__golden():
    found = nuggets.score([0, 5], [2, 1, 0, 2, 0], [1, 1, 1, 0, 0])
    values = {name: found.values(name)[0] for name in nuggets.NAMES}
    assert values == {
        "vital": 0.5, "vital_strict": 1 / 3, "all": 0.5, "all_strict": 0.4, "weighted": 0.5,
        "weighted_strict": 0.375,
    }  # fmt: skip


nugget_rows = st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=8)


@given(st.lists(nugget_rows, max_size=6))
def test_nuggets__equal_fractions(answers):
    offsets, rows = csr(answers)
    codes = [code for code, _ in rows]
    found = nuggets.score(offsets, codes, [vital for _, vital in rows])
    for i, answer in enumerate(answers):
        for name, wanted in plain_nuggets(answer).items():
            top, bottom = found.quotients[i, nuggets.NAMES.index(name)].tolist()
            assert (Fraction(top, bottom) if bottom else None) == wanted
            assert same(found.values(name)[i], wanted)
            if wanted is not None and name.endswith("_strict"):
                assert wanted <= plain_nuggets(answer)[name[:-7]]


def test_nuggets__count_what_is_unknown_and_give_no_value():
    found = nuggets.score([0, 4, 5, 5], [2, -1, -2, -3, 2], [1, 1, 0, 0, 0])
    assert found.unknown.tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert np.isnan(found.values("all")).tolist() == [True, False, True]
    assert np.isnan(found.values("vital")).tolist() == [True, True, True]


# --- ALCE


verdict = st.integers(0, 1)
cites = st.lists(st.tuples(st.sampled_from([0, 1, 1, DANGLING]), verdict), max_size=4)
alce_answers = st.lists(st.lists(st.tuples(verdict, cites), max_size=4), max_size=5)


def alce(answers, official=False):
    sentences, rows = csr(answers)
    citations, pairs = csr([each for _, each in rows])
    return support.alce(
        sentences, citations, [joint for joint, _ in rows], [a for a, _ in pairs],
        [w for _, w in pairs], official=official,
    )  # fmt: skip


@given(alce_answers, st.booleans())
def test_alce__equals_the_rules_told_plainly(answers, official):
    found, at = alce(answers, official), 0
    for i, answer in enumerate(answers):
        recall, precision, flags = plain_alce(answer, official)
        assert same(found.recalls()[i], recall)
        assert same(found.precisions()[i], precision)
        marks = found.precise[at : at + len(flags)].tolist()
        assert [None if mark < 0 else bool(mark) for mark in marks] == flags
        at += len(flags)
        dangling = sum(a == DANGLING for _, each in answer for a, _ in each)
        assert found.dangling[i] == dangling


def test_alce__looks_only_at_the_verdicts_it_needs():
    single = alce([[(1, [(-1, -1)])]])  # one citation: neither alone nor without
    assert single.precisions().tolist() == [1.0]
    enough = alce([[(1, [(1, -1), (0, 1)])]])  # the first entails alone
    assert enough.precisions().tolist() == [0.5]
    not_entailed = alce([[(0, [(-1, -1), (-3, -2)])]])
    assert not_entailed.precisions().tolist() == [0.0]
    unknown = alce([[(-2, [(1, 1)])], [(1, [(-3, 0), (0, -1)])]])
    assert unknown.recall_unknown.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert unknown.precision_unknown.tolist() == [[0, 1, 0], [1, 0, 1]]
    assert np.isnan(unknown.recalls()).tolist() == [True, False]
    assert np.isnan(unknown.precisions()).all()
    assert unknown.precise.tolist() == [-1, -1, -1]


def test_alce__of_an_answer_without_citations():
    plain, official = alce([[(1, [])], []]), alce([[(1, [])], []], official=True)
    assert plain.recalls().tolist()[0] == official.recalls().tolist()[0] == 0.0
    assert np.isnan(plain.precisions()).all()
    assert official.precisions().tolist() == [0.0, 0.0]
    assert np.isnan([plain.recalls()[1], official.recalls()[1]]).all()


# --- TREC

levels = st.lists(st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=4), max_size=5)


@given(levels, st.booleans())
def test_trec__equals_fractions(answers, first_only):
    sentences, rows = csr(answers)
    citations, codes = csr(rows)
    found = support.trec(sentences, citations, codes, first_only=first_only)
    for i, answer in enumerate(answers):
        kept = [each[:1] if first_only else each for each in answer]
        weights = [[WEIGHT[code] for code in each] for each in kept]
        judged = [w for each in weights for w in each]
        best = sum((max(each, default=Fraction(0)) for each in weights), Fraction(0))
        assert same(found.precisions()[i], share(sum(judged, Fraction(0)), len(judged)))
        assert same(found.recalls()[i], share(best, len(answer)))


def test_trec__counts_what_is_not_judged():
    found = support.trec([0, 2, 3], [0, 2, 2, 3], [2, -1, 1])
    assert found.precision_unknown.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert found.precision.tolist() == [[2, 2], [1, 2]]
    assert np.isnan(found.precisions()).tolist() == [True, False]
    first = support.trec([0, 2, 3], [0, 2, 2, 3], [2, -1, 1], first_only=True)
    assert first.recalls().tolist() == [0.5, 0.5]


# --- threads, and what does not fit


def test_kernels__threads_find_the_same_bits():
    rng = np.random.default_rng(5)
    n = 300
    sentences = frozen(np.concatenate([[0], np.cumsum(rng.integers(0, 5, n))]), np.int64)
    citations = np.concatenate([[0], np.cumsum(rng.integers(0, 4, sentences[-1]))])
    citations = frozen(citations, np.int64)
    joint = frozen(rng.integers(-3, 2, sentences[-1]), np.int8)
    alone = frozen(rng.integers(-3, 3, citations[-1]), np.int8)
    without = frozen(rng.integers(-3, 2, citations[-1]), np.int8)
    whole = support.alce(sentences, citations, joint, alone, without)
    counts = np.zeros((n, support_kernel.ALCE_COUNTS), np.int64)
    unknown, precise = np.zeros((n, 2, 3), np.int64), np.zeros(len(alone), np.int8)
    run_split(
        lambda a, b: support_kernel.alce(
            a, b, sentences, citations, joint, alone, without, 0, counts, unknown, precise
        ),
        n, 2,
    )  # fmt: skip
    assert (counts[:, [0, 1]] == whole.recall).all()
    assert (counts[:, [2, 3]] == whole.precision).all()
    assert (unknown[:, 0] == whole.recall_unknown).all()
    assert (precise == whole.precise).all()
    vital = frozen(without > 0, np.int8)
    again = np.zeros((len(citations) - 1, nugget_kernel.MEASURES, 2), np.int64)
    lost = np.zeros((len(citations) - 1, 3), np.int64)
    run_split(
        lambda a, b: nugget_kernel.score(a, b, citations, alone, vital, again, lost),
        len(citations) - 1, 2,
    )  # fmt: skip
    plain = nuggets.score(citations, alone, vital)
    assert (again == plain.quotients).all()
    assert (lost == plain.unknown).all()
    parts = [range(a, b) for a, b in pairwise(citations.tolist())]
    assert lost.sum() == sum(int(alone[j]) < 0 for part in parts for j in part)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nuggets.score([0, 2], [0, 3], [1, 1]), r"codes\[1\] is 3; expected 0 to 2"),
        (lambda: nuggets.score([0, 2], [0, -4], [1, 1]), r"codes\[1\] is -4"),
        (lambda: nuggets.score([0, 2], [0.5, 1], [1, 1]), "float64"),
        (lambda: nuggets.score([0, 3], [0, 1], [1, 1]), "run from 0 to 3; expected 0 to 2"),
        (lambda: nuggets.score([0, 3, 2], [0, 1], [1, 1]), "never falling"),
        (lambda: nuggets.score([], [], []), "one more than rows"),
        (lambda: nuggets.score([0, 2], [0, 1], [1]), "2 codes, but 1 flags"),
        (lambda: nuggets.score([0], [], []).values("x"), "no nugget score is called 'x'"),
        (lambda: support.alce([0, 1], [0, 1], [2], [1], [1]), r"joint\[0\] is 2"),
        (lambda: support.alce([0, 1], [0, 1], [1], [1], []), "without has 0"),
        (lambda: support.alce([0, 1], [0, 1], [1, 1], [1], [1]), "1 sentences, but joint has 2"),
        (lambda: support.trec([0, 1], [0, 1], [3]), r"levels\[0\] is 3"),
    ],
)  # fmt: skip
def test_scores__refuse_what_does_not_fit(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def test_kernels__have_one_specialisation():
    read_only = frozen([0, 1], np.int64)
    for offsets in ([0, 1], np.array([0, 1], np.int32), read_only):
        nuggets.score(offsets, np.array([1], np.int8), [True])
        support.alce(offsets, offsets, [1], [1], [1], official=True)
        support.trec(offsets, offsets, [1])
    kernels = (nugget_kernel.score, support_kernel.alce, support_kernel.trec)
    assert max(map(compiled_count, kernels)) <= 1


def test_scores__of_nothing():
    assert nuggets.score([0], [], []).values("all").size == 0
    assert support.alce([0], [0], [], [], []).recalls().size == 0
    assert support.trec([0], [0], []).precisions().size == 0
