"""Kernels over lists of units, against plain Python, on one thread and on two."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import tables
from ragcore_kernels import shown as kernel
from ragcore_kernels.overlap import compare_lists


def csr(lists):
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return offsets, np.array([x for one in lists for x in one], np.int64)


def cut(offsets, flat):
    return [flat[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def world(seed, n=9, n_units=6):
    draw = random.Random(seed)
    cases = [[draw.sample(range(n_units), draw.randint(0, 3)) for _ in range(draw.randint(0, 4))]
             for _ in range(4)]  # fmt: skip
    label_of = [draw.randint(-1, 3) for _ in range(n)]
    shown = [[draw.randint(-1, n_units + 1) for _ in range(draw.randint(0, 6))] for _ in range(n)]
    return draw, cases, label_of, shown


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_holding__is_any_item_that_is_asked_for(seed, threads):
    draw, cases, label_of, shown = world(seed)
    items = np.concatenate([[0], np.cumsum([len(case) for case in cases])]).astype(np.int64)
    covers, containing = csr([units for case in cases for units in case])
    n_items = int(items[-1])
    which = np.array([draw.randint(0, 1) for _ in range(n_items)], np.int64)
    offsets, units = csr(shown)
    label = np.array(label_of, np.int64)
    marks = np.full(units.size, -7, np.int64)

    def work(begin, end):
        kernel.holding(begin, end, label, items, which, covers, containing, offsets, units, marks)

    tables.split(work, len(shown), threads)
    for i, own in enumerate(shown):
        case = cases[label_of[i]] if label_of[i] >= 0 else []
        base = int(items[label_of[i]]) if label_of[i] >= 0 else 0
        for place, unit in enumerate(own):
            wanted = unit >= 0 and any(
                which[base + k] and unit in held for k, held in enumerate(case)
            )
            assert marks[offsets[i] + place] == wanted


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_permitted__is_public_or_shared(seed, threads):
    draw, _, _, shown = world(seed)
    offsets, units = csr(shown)
    words = [[draw.randint(-1, 3) for _ in range(draw.randint(0, 3))] for _ in range(6)]
    held = [[draw.randint(-2, 3) for _ in range(draw.randint(0, 3))] for _ in shown]
    public = np.array([draw.randint(0, 1) for _ in range(6)], np.int64)
    out = np.full(units.size, -7, np.int64)
    lists, flat = csr(words)
    own, ours = csr(held)
    tables.split(
        lambda a, b: kernel.permitted(a, b, offsets, units, public, lists, flat, own, ours, out),
        len(shown), threads,
    )  # fmt: skip
    for i, row in enumerate(cut(offsets, out)):
        for unit, got in zip(shown[i], row, strict=True):
            known = 0 <= unit < 6
            shared = known and {w for w in words[unit] if w >= 0} & set(held[i])
            assert got == bool(known and (public[unit] or shared))


@pytest.mark.parametrize("budget", [0, 1, 7, 2**40])
def test_prefixes__take_whole_units(budget):
    draw = random.Random(budget)
    lengths = [[draw.choice([0, 1, 3, 5, -1]) for _ in range(draw.randint(0, 6))]
               for _ in range(40)]  # fmt: skip
    offsets, flat = csr(lengths)
    out = np.full(len(lengths), -7, np.int64)
    kernel.prefixes(0, len(lengths), offsets, flat, np.int64(budget), out)
    for own, got in zip(lengths, out.tolist(), strict=True):
        spent, n = 0, 0
        for length in own:
            if length < 0:
                n = kernel.UNKNOWN_LENGTH
                break
            spent += length
            if spent > budget:
                break
            n += 1
        assert got == n


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("k", [0, 1, 3, 20])
def test_agreements__are_those_of_two_lists_without_repeats(k, threads):
    draw = random.Random(k)
    left, right = ([[draw.randint(0, 7) for _ in range(draw.randint(0, 9))] for _ in range(60)]
                   for _ in range(2))  # fmt: skip
    (a, au), (b, bu) = csr(left), csr(right)
    out = np.full((60, 5), -7.0)
    tables.split(
        lambda begin, end: kernel.agreements(begin, end, a, au, b, bu, np.int64(k), 0.8, out),
        60, threads,
    )  # fmt: skip
    for x, y, row in zip(left, right, out.tolist(), strict=True):
        one, other = list(dict.fromkeys(x)), list(dict.fromkeys(y))
        wanted = compare_lists(one, other, k or None, 0.8).tolist()
        assert row[:3] == wanted
        assert row[3:] == [min(len(one), k or 99), min(len(other), k or 99)]


def test_kernels__of_nothing():
    none, zero = np.zeros(0, np.int64), np.zeros(1, np.int64)
    out = np.zeros((0, 5))
    kernel.agreements(0, 0, zero, none, zero, none, np.int64(0), 0.9, out)
    kernel.prefixes(0, 0, zero, none, np.int64(1), none)
    kernel.permitted(0, 0, zero, none, none, zero, none, zero, none, none)
