"""The fast BM25 kernel: bounded sums window by window, exact scores for the few that matter.

A batch of queries goes through the windows together, so that rows stay in the second-level cache.
In a window a query adds its packed sparse lists, then its rows, into 16-bit sums. Each sum bounds
the true score from above, in units that make the query's greatest possible score 60,000, and
exceeds it by at most a known number of units. So a document among the best k has a sum of at least
the k-th greatest sum less that number: whatever falls below is dropped, and what stays is scored
exactly, in the arithmetic and in the order of the plain kernel. Where rows together cannot lift a
document to that threshold, only documents of sparse lists are looked at.
"""

from __future__ import annotations

from typing import Any

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
    LEVEL_BITS,
    LEVELS,
    PACKED,
    POINTERS,
    ROW,
    STRIDE,
    TOP,
    WINDOW_BITS,
)
from ragcore_kernels.vectors import CHUNK, WINDOW, lowest_bit, place_in_row, prefetch, scan_rows

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

ROWS_AT, N_ROWS, SPARSE_AT, N_SPARSE, LEAST, SLACK, N_FOUND, TRIGGER, LEFT = range(9)
"""Columns of a query's state: its rows and sparse lists; what a sum has to reach; by how much sums
may lie apart from scores; documents found; how many of them raise LEAST; 1 if the plain kernel has
to answer."""
STATE_FIELDS = 9

AT_SUMS, AT_TOTALS, AT_MASKS, AT_CHUNKS, AT_PLANS, AT_ROWS, AT_PACKED = range(7)
"""Addresses that `scan_batch` takes."""

SCAN_COST, ROW_COST = 150, 100
"""Cost of scanning a window, and of each row in it, in the unit of one posting cleared."""
FEW = 24
"""Documents of a window that are put in order by insertion."""
_ONE = np.uint64(1)
_LOW_DOC = np.uint64(WINDOW - 1)
_DOC_BITS = np.uint64(WINDOW_BITS)
_LEVEL_BITS = np.uint64(LEVEL_BITS)


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
    q_weights: F64, first: int, n: int, k: int, seeded: int, room: int, states: I64, plans: I64,
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
    room : places for found documents.
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
        states[b, LEFT] = 0
        if n_terms > MOST_TERMS or not np.isfinite(total) or not np.isfinite(scale):
            states[b, LEFT] = 1
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
                multiplier = np.int64(np.ceil(max(exact, 1.0) * 256.0))
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
        states[b, TRIGGER] = min(k + max(k, 32), room - CHUNK)
        states[b, LEAST] = 1
        if seeded and k <= 1_000:
            down = states[b, N_ROWS] + 2
            states[b, LEAST] = max(np.int64(seed * scale) - down, 1)


@inline
def kth_greatest(values: U16, n: int, k: int, bins: I64) -> Any:
    """The `k`-th greatest of the first `n` >= k values; `bins` is int64 (256,)."""
    bins[:] = 0
    for i in range(n):
        bins[values[i] >> 8] += 1
    high = 255
    above = 0
    while above + bins[high] < k:
        above += bins[high]
        high -= 1
    bins[:] = 0
    for i in range(n):
        if values[i] >> 8 == high:
            bins[values[i] & 255] += 1
    low = 255
    while above + bins[low] < k:
        above += bins[low]
        low -= 1
    return np.int64(high) << 8 | low


@inline
def tighten(state: I64, docs: I32, sums: U16, k: int, room: int, bins: I64) -> None:
    """Raise what a sum has to reach, and drop the found documents below it."""
    n = state[N_FOUND]
    if n < k:
        return
    state[LEAST] = max(state[LEAST], kth_greatest(sums, n, k, bins) - state[SLACK])
    least = state[LEAST]
    kept = 0
    for i in range(n):
        docs[kept] = docs[i]
        sums[kept] = sums[i]
        kept += np.int64(sums[i]) >= least
    state[N_FOUND] = kept
    state[TRIGGER] = min(kept + max(k, 32), room - CHUNK)
    if kept > room - 2 * CHUNK:
        state[LEFT] = 1


@inline
def add_list(packed: U32, begin: int, end: int, multiplier: int, sums: U16) -> None:
    """Add packed words to the sums; unsigned places spare checks for negative ones."""
    times = np.uint64(multiplier)
    for i in range(np.uint64(begin), np.uint64(end)):
        word = np.uint64(packed[i])
        d = word & _LOW_DOC
        sums[d] += np.uint16((((word >> _DOC_BITS) * times) >> _LEVEL_BITS) + _ONE)


@inline
def add_and_note(
    packed: U32, begin: int, end: int, multiplier: int, sums: U16, floor: int, hits: U16,
    n_hits: int,
) -> Any:  # fmt: skip
    """The same, and note documents that reach `floor`; gives how many are noted now."""
    times = np.uint64(multiplier)
    least = np.uint64(floor)
    at = np.uint64(n_hits)
    for i in range(np.uint64(begin), np.uint64(end)):
        word = np.uint64(packed[i])
        d = word & _LOW_DOC
        value = np.uint64(sums[d]) + ((((word >> _DOC_BITS) * times) >> _LEVEL_BITS) + _ONE)
        sums[d] = value
        hits[at] = d
        at += np.uint64(value >= least)
    return np.int64(at)


@inline
def add_sparse(
    state: I64, begins: U32, ends: U32, multipliers: I64, packed: U32, sums: U16, floor: int,
    hits: U16,
) -> Any:  # fmt: skip
    """Add a query's sparse lists to the sums of a window.

    Returns how many documents reached `floor` on the way and stand in `hits`, some of them
    repeatedly, and how many postings there were. A `floor` beyond 16 bits notes none.
    """
    n_hits = 0
    n_postings = 0
    for e in range(state[SPARSE_AT], state[SPARSE_AT] + state[N_SPARSE]):
        begin = np.int64(begins[e])
        end = np.int64(ends[e])
        n_postings += end - begin
        if floor < 1 << 16:
            n_hits = add_and_note(packed, begin, end, multipliers[e], sums, floor, hits, n_hits)
        else:
            add_list(packed, begin, end, multipliers[e], sums)
    return n_hits, n_postings


@inline
def fetch_sparse(state: I64, begins: U32, at_packed: int) -> None:
    """Ask for the words that a query will add soon."""
    for e in range(state[SPARSE_AT], state[SPARSE_AT] + state[N_SPARSE]):
        at = at_packed + 4 * np.int64(begins[e])
        prefetch(at)
        prefetch(at + 64)
        prefetch(at + 128)


@inline
def clear_sparse(state: I64, begins: U32, ends: U32, packed: U32, sums: U16) -> None:
    """Clear the sums that `add_sparse` has touched."""
    for e in range(state[SPARSE_AT], state[SPARSE_AT] + state[N_SPARSE]):
        for i in range(np.uint64(begins[e]), np.uint64(ends[e])):
            sums[np.uint64(packed[i]) & _LOW_DOC] = 0


@inline
def in_order(hits: U16, n: int, words: U64) -> Any:
    """Sort `n` documents of a window and drop repeats; `words` is zeroed uint64 (128,)."""
    if n <= FEW:
        kept = 0
        for i in range(n):
            d = hits[i]
            at = kept
            while at > 0 and hits[at - 1] > d:
                at -= 1
            if at > 0 and hits[at - 1] == d:
                continue
            for j in range(kept, at, -1):
                hits[j] = hits[j - 1]
            hits[at] = d
            kept += 1
        return kept
    for i in range(n):
        d = np.int64(hits[i])
        words[d >> 6] |= _ONE << np.uint64(d & 63)
    kept = 0
    for w in range(WINDOW // CHUNK):
        bits = words[w]
        words[w] = 0
        while bits != 0:
            hits[kept] = w * CHUNK + lowest_bit(bits)
            kept += 1
            bits &= bits - _ONE
    return kept


@kernel
def scan_batch(
    n: int, k: int, room: int, n_windows: int, n_rows: int, packed: U32, rows: U8, peaks: U8,
    allowed: U64, states: I64, plans: I64, multipliers: I64, ends: U32, addresses: I64, sums: U16,
    totals: U16, masks: U64, chunks: I64, words: U64, hits: U16, bins: I64, found_docs: I32,
    found_sums: U16,
) -> None:  # fmt: skip
    """Find, for each query of a batch, the documents that may be among the best `k`.

    Parameters
    ----------
    n, k, room : queries; documents wanted; places for found documents.
    n_windows, n_rows, packed, rows, peaks : of `bm25_pack.Packed`.
    allowed : (n_windows * 128,), a bit for each document that may be found; empty: all may.
    states, plans, multipliers, ends : of `begin_batch`.
    addresses : (7,), see AT_SUMS ... AT_PACKED.
    sums, totals : (WINDOW,), aligned; sums are zeroed, and zero again at the end.
    masks, chunks, words : (WINDOW / CHUNK,), used here; words are zeroed.
    hits : (WINDOW * MOST_TERMS + 1,), used here.
    bins : (256,), used here.
    found_docs, found_sums : (n, room), filled up to each query's N_FOUND, documents ascending.
    """
    for window in range(n_windows):
        base = addresses[AT_ROWS] + window * n_rows * STRIDE
        for b in range(n):
            state = states[b]
            if b + 2 < n:
                fetch_sparse(states[b + 2], ends[window], addresses[AT_PACKED])
            if state[LEFT] != 0:
                continue
            first = state[ROWS_AT]
            last = first + state[N_ROWS]
            reach = 0
            for r in range(first, last):
                at = window * n_rows + plans[r, 0] // STRIDE
                reach += (np.int64(peaks[at]) * plans[r, 1]) >> 8
            least = state[LEAST]
            n_found = state[N_FOUND]
            n_rows_here = last - first
            floor = least - reach if reach < least else 1 << 20
            n_hits, n_postings = add_sparse(
                state, ends[window], ends[window + 1], multipliers, packed, sums, floor, hits
            )  # fmt: skip
            probing = n_hits * (10 + 3 * n_rows_here) + n_postings
            if reach < least and probing < SCAN_COST + ROW_COST * n_rows_here:
                n_hits = in_order(hits, n_hits, words)
                for i in range(n_hits):
                    d = np.int64(hits[i])
                    doc = (window << WINDOW_BITS) | d
                    if allowed.size > 0:
                        bit = allowed[doc >> 6] >> np.uint64(doc & 63)
                        if bit & _ONE == 0:
                            continue
                    value = np.int64(sums[d])
                    for r in range(first, last):
                        at = window * n_rows * STRIDE + plans[r, 0] + place_in_row(d)
                        value += (np.int64(rows[at]) * plans[r, 1]) >> 8
                    if value < least:
                        continue
                    if n_found >= room:
                        state[N_FOUND] = n_found
                        tighten(state, found_docs[b], found_sums[b], k, room, bins)
                        least = state[LEAST]
                        n_found = state[N_FOUND]
                        if state[LEFT] != 0:
                            break
                        if value < least:
                            continue
                    found_docs[b, n_found] = doc
                    found_sums[b, n_found] = value
                    n_found += 1
                clear_sparse(state, ends[window], ends[window + 1], packed, sums)
            else:
                n_chunks = scan_rows(
                    addresses[AT_SUMS], addresses[AT_PLANS] + 16 * first, n_rows_here, base,
                    least, addresses[AT_TOTALS], addresses[AT_MASKS], addresses[AT_CHUNKS],
                )  # fmt: skip
                for c in range(n_chunks):
                    bits = masks[c]
                    at = chunks[c] * CHUNK
                    doc = (window << WINDOW_BITS) | at
                    if allowed.size > 0:
                        bits &= allowed[doc >> 6]
                    if n_found > room - CHUNK:
                        state[N_FOUND] = n_found
                        tighten(state, found_docs[b], found_sums[b], k, room, bins)
                        least = state[LEAST]
                        n_found = state[N_FOUND]
                        if state[LEFT] != 0:
                            break
                    while bits != 0:
                        low = lowest_bit(bits)
                        bits &= bits - _ONE
                        value = np.int64(totals[at + low])
                        found_docs[b, n_found] = doc + low
                        found_sums[b, n_found] = value
                        n_found += value >= least
            state[N_FOUND] = n_found
            if n_found >= state[TRIGGER] and state[LEFT] == 0:
                tighten(state, found_docs[b], found_sums[b], k, room, bins)
    for b in range(n):
        if states[b, LEFT] == 0:
            tighten(states[b], found_docs[b], found_sums[b], k, room, bins)
            states[b, LEFT] = 0
