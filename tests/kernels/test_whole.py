"""Items packed whole, cut or absent: against plain Python, in any split of the work."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragcore_kernels import whole


def plain(items, entries):
    """Of (units, first, last) items and (unit, start, stop) entries; -1 is open."""
    out = []
    for units, first, last in items:
        best = whole.ABSENT
        for unit, start, stop in entries:
            if unit < 0 or unit not in units:
                continue
            left = start < 0 or first < 0 or start <= first
            right = stop < 0 or last < 0 or last <= stop
            best = max(best, whole.WHOLE if left and right else whole.CUT)
        out.append(best)
    return out


def arrays(cases, label_of, packed):
    flat = [item for case in cases for item in case]
    entries = [entry for one in packed for entry in one]
    offsets = np.cumsum([0, *(len(cases[i]) if i >= 0 else 0 for i in label_of)]).astype(np.int64)
    numbers = [
        np.array(label_of, np.int64), np.cumsum([0, *map(len, cases)]).astype(np.int64),
        np.cumsum([0, *(len(item[0]) for item in flat)]).astype(np.int64),
        np.array([u for item in flat for u in item[0]], np.int64),
        np.array([item[1] for item in flat], np.int64),
        np.array([item[2] for item in flat], np.int64),
        np.cumsum([0, *map(len, packed)]).astype(np.int64),
        *(np.array([entry[i] for entry in entries], np.int64) for i in range(3)),
        offsets,
    ]  # fmt: skip
    return numbers, np.zeros(int(offsets[-1]), np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_packed__equals_plain_python_however_it_is_split(seed):
    rng = random.Random(seed)

    def place():
        return rng.choice([-1, rng.randrange(10)])

    cases = [
        [
            (rng.sample(range(5), rng.randrange(3)), place(), place())
            for _ in range(rng.randrange(4))
        ]
        for _ in range(6)
    ]
    label_of = [rng.randrange(-1, 6) for _ in range(12)]
    packed = [
        [(rng.randrange(-1, 6), place(), place()) for _ in range(rng.randrange(5))]
        for _ in label_of
    ]
    numbers, out = arrays(cases, label_of, packed)
    for begin, end in ((0, 5), (5, 5), (5, 12)):
        whole.packed(begin, end, *numbers, out)
    wanted = [
        state for i, label in enumerate(label_of)
        for state in (plain(cases[label], packed[i]) if label >= 0 else [])
    ]  # fmt: skip
    assert out.tolist() == wanted


def test_packed__edges_are_inside_and_nothing_is_nothing():
    items = [[([0], 3, 7)]]
    for entry, wanted in (
        ((0, 3, 7), whole.WHOLE), ((0, 4, 7), whole.CUT), ((0, 3, 6), whole.CUT),
        ((0, -1, -1), whole.WHOLE), ((1, 0, 9), whole.ABSENT), ((-1, 0, 9), whole.ABSENT),
    ):  # fmt: skip
        numbers, out = arrays(items, [0], [[entry]])
        whole.packed(0, 1, *numbers, out)
        assert out.tolist() == [wanted]
    numbers, out = arrays([[]], [0, -1], [[], []])
    whole.packed(0, 2, *numbers, out)
    assert out.size == 0
