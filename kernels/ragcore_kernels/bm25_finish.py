"""Exact scores of the few documents that the fast BM25 kernel found, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.bm25_pack import BEGIN, END, PACKED, POINTERS, ROW, STRIDE, WINDOW_BITS
from ragcore_kernels.bm25_plain import impact
from ragcore_kernels.bm25_windows import N_FOUND, N_ROWS, PLAIN, ROWS_AT, STATUS
from ragcore_kernels.vectors import bit_count, prefetch

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

SEARCH = 32
"""A list is searched for each document where it has more than so many postings a document."""
FETCHED = 4
"""Rows whose counts are asked for ahead; more lie on the same lines."""
FEW = 48
"""So many scores are sorted by insertion."""
DIGIT_BITS = 11
DIGITS = 1 << DIGIT_BITS
_DIGIT = np.uint32(DIGITS - 1)
_ONE, _SIX, _LOW_SIX = np.uint64(1), np.uint64(6), np.uint64(63)


@inline
def place_of(docs: I32, begin: int, end: int, doc: int) -> Any:
    """Where `doc` stands in the ascending ``docs[begin:end]``, or -1."""
    stop = end
    while begin < end:
        middle = (begin + end) >> 1
        if docs[middle] < doc:
            begin = middle + 1
        else:
            end = middle
    if begin < stop and docs[begin] == doc:
        return begin
    return -1


@inline
def place_in_list(lists: I64, s: int, pointers: I32, docs: I32, doc: int) -> Any:
    """Posting of `doc` in list `s`, or -1."""
    begin = lists[s, BEGIN]
    end = lists[s, END]
    if lists[s, POINTERS] >= 0:
        at = lists[s, POINTERS] + (doc >> WINDOW_BITS)
        return place_of(docs, begin + pointers[at], begin + pointers[at + 1], doc)
    return place_of(docs, begin, end, doc)


@inline
def note_hits(docs: I32, begin: int, end: int, bits: U64, hits: I64) -> Any:
    """Postings of ``docs[begin:end]`` whose document has its bit, without a branch; how many."""
    n = np.uint64(0)
    for p in range(np.uint64(begin), np.uint64(end)):
        d = np.uint64(docs[p])
        hits[n] = p
        n += (bits[d >> _SIX] >> (d & _LOW_SIX)) & _ONE
    return np.int64(n)


@inline
def sort_scores(keys: U32, docs: I32, n: int, others: U32, ids: I32, bins: I64) -> None:
    """Put documents, which ascend, in order of falling score; equal scores stay as they are.

    `keys` are the bits of the scores, which are not negative, inverted. Few are inserted one by
    one, more go through three passes of a radix sort; a digit that all share costs no pass.
    """
    if n <= FEW:
        for i in range(1, n):
            key = keys[i]
            doc = docs[i]
            at = i
            while at > 0 and keys[at - 1] > key:
                keys[at] = keys[at - 1]
                docs[at] = docs[at - 1]
                at -= 1
            keys[at] = key
            docs[at] = doc
        return
    for step in range(3):
        shift = np.uint32(step * DIGIT_BITS)
        bins[:] = 0
        for i in range(n):
            bins[(keys[i] >> shift) & _DIGIT] += 1
        if bins[(keys[0] >> shift) & _DIGIT] == n:
            continue
        at = 0
        for digit in range(DIGITS):
            count = bins[digit]
            bins[digit] = at
            at += count
        for i in range(n):
            digit = (keys[i] >> shift) & _DIGIT
            others[bins[digit]] = keys[i]
            ids[bins[digit]] = docs[i]
            bins[digit] += 1
        for i in range(n):
            keys[i] = others[i]
            docs[i] = ids[i]


@kernel
def finish_batch(
    first: int, n: int, docs: I32, tfs: I32, norms: F64, slots: I64, factors: F64, curve: F64,
    lists: I64, few: U8, pointers: I32, n_rows: int, tf_rows: U8, at_tf_rows: int, q_offsets: I64,
    q_terms: I64, q_weights: F64, states: I64, plans: I64, found_docs: I32, bits: U64, bases: I32,
    totals: F64, near: F64, scores: F32, score_bits: U32, keys: U32, others: U32, ids: I32,
    bins: I64, hits: I64, out_docs: I32, out_scores: F32, counts: I64,
) -> None:  # fmt: skip
    """Score what was found for queries `first` to `first + n`, and give the best k in order.

    Parameters
    ----------
    first, n : which queries.
    docs, tfs, norms, slots, factors, curve : as `search_plain` takes them.
    lists, few, pointers, n_rows : of `bm25_pack.Packed`.
    tf_rows, at_tf_rows : its counts, document by document, and their address.
    q_offsets, q_terms, q_weights : the queries.
    states, plans, found_docs : as `scan_batch` left them.
    bits : (n_docs / 64 + 1,), zeroed, and zero again at the end.
    bases : as `bits`, used here.
    totals, near, scores, keys, others, ids : (room,), used here.
    score_bits : the memory of `scores` as uint32.
    bins : (DIGITS,), used here.
    hits : (SEARCH * room + 1,), used here.
    out_docs, out_scores : (n_queries, k), rows of these queries are filled.
    counts : (n_queries,), likewise; -1 for a query that is left to the plain kernel.
    """
    k = out_docs.shape[1]
    for b in range(n):
        q = first + b
        if states[b, STATUS] == PLAIN:
            counts[q] = -1
            continue
        found = found_docs[b]
        size = states[b, N_FOUND]
        first_row = states[b, ROWS_AT]
        last_row = first_row + min(states[b, N_ROWS], FETCHED)
        for i in range(size - 1, -1, -1):  # backwards: the base of a word is its first document
            d = np.int64(found[i])
            totals[i] = 0.0
            near[i] = norms[d]
            bits[d >> 6] |= _ONE << np.uint64(d & 63)
            bases[d >> 6] = i
            for r in range(first_row, last_row):
                prefetch(at_tf_rows + d * n_rows + plans[r, 0] // STRIDE)
        for j in range(q_offsets[q], q_offsets[q + 1]):
            weight = q_weights[j]
            if q_terms[j] < 0 or weight <= 0.0:
                continue
            s = slots[q_terms[j]]
            factor = factors[s, 0]
            extra = factors[s, 1]
            begin = lists[s, BEGIN]
            end = lists[s, END]
            row = lists[s, ROW]
            if row >= 0:
                for i in range(size):
                    d = np.int64(found[i])
                    tf = np.int64(tf_rows[d * n_rows + row])
                    if tf == 255:
                        tf = np.int64(tfs[place_in_list(lists, s, pointers, docs, d)])
                    # computed in any case: a branch would be guessed wrong every other time
                    value = impact(np.float64(max(tf, 1)), near[i], factor, extra, curve)
                    totals[i] += np.float64(value) * weight if tf > 0 else 0.0
            elif end - begin > SEARCH * size:
                for i in range(size):
                    p = place_in_list(lists, s, pointers, docs, np.int64(found[i]))
                    if p >= 0:
                        value = impact(np.float64(tfs[p]), near[i], factor, extra, curve)
                        totals[i] += np.float64(value) * weight
            else:
                n_hits = note_hits(docs, begin, end, bits, hits)
                apart = lists[s, PACKED] - begin
                for h in range(n_hits):
                    p = hits[h]
                    d = np.int64(docs[p])
                    below = (_ONE << np.uint64(d & 63)) - _ONE
                    i = bases[d >> 6] + bit_count(bits[d >> 6] & below)
                    tf = np.int64(few[p + apart])
                    if tf == 255:
                        tf = np.int64(tfs[p])
                    value = impact(np.float64(tf), near[i], factor, extra, curve)
                    totals[i] += np.float64(value) * weight
        for i in range(size):
            bits[np.int64(found[i]) >> 6] = 0
            scores[i] = np.float32(totals[i])
            keys[i] = ~score_bits[i]
        sort_scores(keys, found, size, others, ids, bins)
        size = min(size, k)
        for i in range(size):
            score_bits[i] = ~keys[i]
            out_docs[q, i] = found[i]
            out_scores[q, i] = scores[i]
        for i in range(size, k):
            out_docs[q, i] = -1
            out_scores[q, i] = 0.0
        counts[q] = size
