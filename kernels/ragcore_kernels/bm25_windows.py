"""What a query is to the fast BM25 kernel: weights in units, a first threshold, places in lists.

A batch of queries goes through the windows together, so that rows stay in the second-level cache.
In a window a query adds its packed sparse lists, then its rows, into 16-bit sums. Each sum bounds
the true score from above, in units that make the query's greatest possible score 60,000, and
exceeds it by at most a known number of units. So a document among the best k has a sum of at least
the k-th greatest sum less that number: whatever falls below is dropped, and what stays is scored
exactly, in the arithmetic and in the order of the plain kernel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.bm25_pack import BEGIN as LIST_BEGIN
from ragcore_kernels.bm25_pack import (
    BYTE_LEVELS,
    END,
    KTH_10,
    KTH_100,
    KTH_1000,
    LEVELS,
    LOW,
    PACKED,
    POINTERS,
    ROW,
    STRIDE,
    TOP,
    WINDOW_BITS,
)

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

MOST_TERMS = 128
"""Terms of a query that 16-bit sums have room for; the plain kernel takes longer ones."""
UNITS = 60_000.0

STATE_FIELDS = 11
ROWS_AT, N_ROWS, SPARSE_AT, N_SPARSE, LEAST, SLACK, *_REST = range(STATE_FIELDS)
N_FOUND, TRIGGER, STATUS, GUESS, FIRST = _REST
"""Columns of a query's state: its rows and sparse lists; what a sum has to reach; by how much sums
may lie apart from scores; documents found; how many of them raise LEAST; OPEN, PLAIN or DONE; the
last guess of LEAST, or 0; LEAST at first."""

OPEN, PLAIN, DONE = range(3)
"""What becomes of a query: it is on its way, the plain kernel has to answer, it is answered."""


@inline
def list_ends(lists: I64, s: int, pointers: I32, docs: I32, ends: U32, at: int) -> None:
    """Where list `s` begins in the packed words, and where each window of it ends."""
    begin = lists[s, LIST_BEGIN]
    packed = lists[s, PACKED]
    if lists[s, POINTERS] >= 0:
        for window in range(ends.shape[0]):
            ends[window, at] = packed + pointers[lists[s, POINTERS] + window]
        return
    window = 0
    for p in range(begin, lists[s, END]):
        here = docs[p] >> WINDOW_BITS
        while window <= here:
            ends[window, at] = packed + p - begin
            window += 1
    while window < ends.shape[0]:
        ends[window, at] = packed + lists[s, END] - begin
        window += 1


@kernel
def begin_batch(
    slots: I64, lists: I64, bounds: F64, pointers: I32, docs: I32, q_offsets: I64, q_terms: I64,
    q_weights: F64, first: int, n: int, k: int, seeded: int, states: I64, plans: I64,
    multipliers: I64, ends: U32,
) -> None:  # fmt: skip
    """Weights in units, and the first threshold, of queries `first` to `first + n`.

    Parameters
    ----------
    slots : (n_terms,), row of each term in `lists`.
    lists, bounds, pointers : of `bm25_pack.Packed`.
    docs : (n_postings,), documents of the collection.
    q_offsets, q_terms, q_weights : the queries, as `search_plain` takes them.
    first, n : which of them.
    k : how many documents are wanted.
    seeded : 1 if every document may be found; otherwise thresholds start at nothing.
    states : (n, STATE_FIELDS), filled.
    plans : (terms of the batch, 2), filled: distance and multiplier of each row.
    multipliers : (terms of the batch,), filled for sparse lists.
    ends : (n_windows + 1, terms of the batch), filled likewise: the packed words of a list in
        window w run from ``ends[w]`` to ``ends[w + 1]``.
    """
    origin = q_offsets[first]
    column = KTH_10 if k <= 10 else KTH_100 if k <= 100 else KTH_1000
    for b in range(n):
        begin = q_offsets[first + b]
        end = q_offsets[first + b + 1]
        total = 0.0
        seed = 0.0
        n_terms = 0
        n_rows = 0
        for j in range(begin, end):
            if q_terms[j] < 0 or q_weights[j] <= 0.0:
                continue
            s = slots[q_terms[j]]
            if lists[s, END] == lists[s, LIST_BEGIN]:
                continue
            n_terms += 1
            n_rows += lists[s, ROW] >= 0
            total += q_weights[j] * bounds[s, TOP]
            seed = max(seed, q_weights[j] * bounds[s, column])
        scale = 0.0
        if total > 0.0:
            scale = (UNITS - (BYTE_LEVELS + 5) * n_rows) / total
        states[b, ROWS_AT] = begin - origin
        states[b, SPARSE_AT] = begin - origin
        states[b, N_ROWS] = 0
        states[b, N_SPARSE] = 0
        states[b, N_FOUND] = 0
        states[b, STATUS] = OPEN
        if n_terms > MOST_TERMS or not np.isfinite(total) or not np.isfinite(scale):
            states[b, STATUS] = PLAIN
            continue
        slack = 0.0
        at_row = begin - origin
        at_sparse = begin - origin
        for j in range(begin, end):
            if q_terms[j] < 0 or q_weights[j] <= 0.0:
                continue
            s = slots[q_terms[j]]
            if lists[s, END] == lists[s, LIST_BEGIN]:
                continue
            units = q_weights[j] * bounds[s, TOP] * scale
            if lists[s, ROW] >= 0:
                exact = units / BYTE_LEVELS
                multiplier = np.int64(np.ceil(max(exact * 256.0, 256.0 / bounds[s, LOW])))
                plans[at_row, 0] = lists[s, ROW] * STRIDE
                plans[at_row, 1] = multiplier
                up = multiplier / 256.0
                slack += BYTE_LEVELS * (up - exact) + up + 1.0  # one more: the shift drops bits
                at_row += 1
            else:
                multiplier = np.int64(np.ceil(units * (1.0 + 1.0 / LEVELS)))
                multipliers[at_sparse] = multiplier
                list_ends(lists, s, pointers, docs, ends, at_sparse)
                slack += (multiplier - units) + multiplier / LEVELS + 1.0
                at_sparse += 1
        states[b, N_ROWS] = at_row - (begin - origin)
        states[b, N_SPARSE] = at_sparse - (begin - origin)
        states[b, SLACK] = np.int64(np.ceil(slack)) + 2
        states[b, LEAST] = 1
        if seeded and k <= 1_000:
            down = states[b, N_ROWS] + 2
            states[b, LEAST] = max(np.int64(seed * scale) - down, 1)
        states[b, FIRST] = states[b, LEAST]
