"""Chunks whose stretch meets that of an item: against plain Python, on any number of threads."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import tables
from ragcore_kernels.stretches import meeting


def found(world, threads=1):
    """Chunks of every item of a world, by the two calls that the kernel is made for."""
    n = len(world["items"])
    items = np.array(world["items"], np.int64).reshape(n, 6)
    chunks = np.array(world["chunks"], np.int64).reshape(-1, 4)
    documents = world["documents"]
    offsets = np.concatenate([[0], np.cumsum([len(d) for d in documents])]).astype(np.int64)
    rows = np.array([row for d in documents for row in d], np.int64)
    columns = [np.ascontiguousarray(items[:, i]) for i in range(6)]
    sides = [np.ascontiguousarray(chunks[:, i]) for i in range(3)]
    ends, none = np.zeros(n + 1, np.int64), np.zeros(0, np.int64)
    given = (*columns, offsets, rows, *sides)
    tables.split(lambda a, b: meeting(np.int64(a), np.int64(b), *given, ends, none), n, threads)
    np.cumsum(ends, out=ends)
    out = np.full(int(ends[-1]), -7, np.int64)
    if out.size:
        tables.split(lambda a, b: meeting(np.int64(a), np.int64(b), *given, ends, out), n, threads)
    return [out[a:b].tolist() for a, b in itertools.pairwise(ends)]


def plainly(world):
    out = []
    for document, only, version, low, high, need in world["items"]:
        rows = world["documents"][document] if document >= 0 else []
        out.append([
            r for r in rows
            if only in (-1, r) and world["chunks"][r][1] >= 0
            and (version == -1 or world["chunks"][r][0] in (-1, version))
            and min(high, world["chunks"][r][2]) - max(low, world["chunks"][r][1]) >= need
        ])  # fmt: skip
    return out


def world(seed):
    draw = random.Random(seed)
    chunks, documents = [], []
    for _ in range(draw.randint(1, 4)):
        own = []
        for _ in range(draw.randint(0, 5)):
            low = draw.randint(-1, 9)
            chunks.append((draw.randint(-1, 1), low, low + draw.randint(0, 6), 0))
            own.append(len(chunks) - 1)
        draw.shuffle(own)
        documents.append(own)
    items = []
    for _ in range(draw.randint(0, 12)):
        low = draw.randint(0, 9)
        items.append((
            draw.randrange(-1, len(documents)), draw.choice([-1, -1, draw.randrange(9)]),
            draw.randint(-2, 1), low, low + draw.randint(0, 5), draw.randint(1, 3),
        ))  # fmt: skip
    return {"chunks": chunks, "documents": documents, "items": items}


@pytest.mark.parametrize("seed", range(30))
def test_meeting__is_that_of_plain_python(seed):
    made = world(seed)
    assert found(made) == plainly(made)
    assert found(made, 2) == plainly(made)


def test_meeting__of_nothing():
    assert found({"chunks": [], "documents": [[]], "items": []}) == []
    assert found({"chunks": [], "documents": [[]], "items": [(0, -1, -1, 0, 1, 1)]}) == [[]]
