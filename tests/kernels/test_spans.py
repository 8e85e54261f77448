"""Items in packed spans and sentences by length, against plain Python; two threads."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tables
from ragcore_kernels import spans as kernel
from ragcore_kernels.verdicts import FAILED, MISSING, NO, YES


def offsets(sizes):
    return np.concatenate([[0], np.cumsum(list(sizes))]).astype(np.int64)


def told(item, packed):
    """What became of one item: (document, start, end, units that contain it), and packed units."""
    document, start, end, covers = item
    found = kernel.LOST
    for unit, own, low, high, whole in packed:
        contained = unit >= 0 and unit in covers
        if start >= 0 and high >= 0:
            if (contained or (document >= 0 and own == document)) and low <= start <= end <= high:
                return kernel.INTACT
        elif contained:
            if whole:
                return kernel.INTACT
            found = kernel.CUT
    return found


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("threads", [1, 2])
def test_intact__equals_plain_python(seed, threads):
    draw = random.Random(seed)

    def place():
        if draw.random() < 0.3:
            return -1, -1
        low = draw.randint(0, 9)
        return low, low + draw.randint(0, 9)

    cases = [[(draw.randint(-1, 2), *place(), draw.sample(range(4), draw.randint(0, 2)))
              for _ in range(draw.randint(0, 3))] for _ in range(3)]  # fmt: skip
    packed = [[(draw.randint(-1, 3), draw.randint(-1, 2), *place(), draw.random() < 0.5)
               for _ in range(draw.randint(0, 4))] for _ in range(7)]  # fmt: skip
    label_of = [draw.randint(-1, 2) for _ in packed]
    items, units = [i for case in cases for i in case], [u for row in packed for u in row]
    where = offsets(len(cases[label]) if label >= 0 else 0 for label in label_of)
    out = np.full(int(where[-1]), 9, np.int8)

    def column(rows, k):
        return np.array([row[k] for row in rows], np.int64)

    given = (
        np.array(label_of), offsets(map(len, cases)), offsets(len(i[3]) for i in items),
        np.array([u for i in items for u in i[3]], np.int64), *(column(items, k) for k in range(3)),
        offsets(map(len, packed)), *(column(units, k) for k in range(4)),
        np.array([u[4] for u in units], np.bool_),
    )  # fmt: skip
    tables.split(lambda begin, end: kernel.intact(begin, end, *given, where, out), 7, threads)
    wanted = [told(item, packed[i]) for i, label in enumerate(label_of) if label >= 0
              for item in cases[label]]  # fmt: skip
    assert out.tolist() == wanted


@pytest.mark.parametrize("seed", range(20))
def test_sentences__equals_plain_python(seed):
    draw = np.random.default_rng(seed)
    where = offsets(draw.integers(0, 6, 5))
    n = int(where[-1])
    codes = np.array([YES, NO, MISSING, FAILED], np.int8)
    relevant, used = codes[draw.integers(0, 4, n)], codes[draw.integers(0, 4, n)]
    lengths = draw.integers(0, 4, n)
    sums, least = np.full((5, 4), -1), np.full((5, 2), 9, np.int8)
    kernel.sentences(0, 5, where, relevant, used, lengths, sums, least)
    for i in range(5):
        own = range(int(where[i]), int(where[i + 1]))
        there = [k for k in own if lengths[k]]
        yes = [(relevant[k] == YES, used[k] == YES, int(lengths[k])) for k in there]
        assert sums[i].tolist() == [
            sum(size for _, _, size in yes), sum(size for r, _, size in yes if r),
            sum(size for _, u, size in yes if u), sum(size for r, u, size in yes if r and u),
        ]  # fmt: skip
        for k, column in enumerate((relevant, used)):
            assert least[i, k] == min([0, *(int(column[j]) for j in there)])
