"""The fast BM25 kernel: documents whose bounded sums let them be among the best k.

Sums and their bounds are told in `bm25_windows`. Where the rows of a window together cannot lift a
document to the threshold, only documents of sparse lists are looked at; elsewhere every sum is
compared. Early thresholds are low, and keep many documents for nothing: with a large k the first
windows tell what the threshold may become, and a query that this guess fails goes through the
windows again without one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.bm25_pack import LEVEL_BITS, STRIDE, WINDOW_BITS
from ragcore_kernels.bm25_windows import (
    DONE,
    FIRST,
    GUESS,
    LEAST,
    N_FOUND,
    N_ROWS,
    N_SPARSE,
    OPEN,
    PLAIN,
    ROWS_AT,
    SLACK,
    SPARSE_AT,
    STATUS,
    TRIGGER,
)
from ragcore_kernels.vectors import CHUNK, WINDOW, lowest_bit, place_in_row, prefetch, scan_rows

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

AT_SUMS, AT_TOTALS, AT_MASKS, AT_CHUNKS, AT_PLANS, AT_ROWS, AT_PACKED = range(7)
"""Addresses that `scan_batch` takes."""
SCAN_COST, ROW_COST = 150, 100
"""Cost of scanning a window, and of each row in it, in the unit of one posting cleared."""
LEAST_WINDOWS = 8
"""Fewer windows are not worth a guess."""
FEW = 24
"""Documents of a window that are put in order by insertion."""
_ONE = np.uint64(1)
_LOW_DOC = np.uint64(WINDOW - 1)
_DOC_BITS = np.uint64(WINDOW_BITS)
_LEVEL_BITS = np.uint64(LEVEL_BITS)


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
def keep_from(least: int, state: I64, docs: I32, sums: U16, k: int, room: int) -> None:
    """Raise what a sum has to reach to `least`, and drop the found documents below it."""
    state[LEAST] = max(state[LEAST], least)
    least = state[LEAST]
    kept = 0
    for i in range(state[N_FOUND]):
        docs[kept] = docs[i]
        sums[kept] = sums[i]
        kept += np.int64(sums[i]) >= least
    state[N_FOUND] = kept
    state[TRIGGER] = min(kept + max(k, 32), room - CHUNK)
    if kept > room - 2 * CHUNK:
        state[STATUS] = PLAIN


@inline
def tighten(state: I64, docs: I32, sums: U16, k: int, room: int, bins: I64) -> None:
    """Raise what a sum has to reach as far as is certain."""
    if state[N_FOUND] >= k:
        least = kth_greatest(sums, state[N_FOUND], k, bins) - state[SLACK]
        keep_from(least, state, docs, sums, k, room)


@inline
def guess(
    done: int, n_windows: int, state: I64, docs: I32, sums: U16, k: int, room: int, bins: I64
) -> None:
    """Raise what a sum has to reach to what leaves more than k documents if windows are alike.

    After all windows it is known whether they were; if not, the query goes through them again.
    """
    share = k * done / n_windows
    rank = np.int64(1.15 * share + 3.0 * np.sqrt(share)) + 4
    if rank < k and rank <= state[N_FOUND]:
        least = kth_greatest(sums, state[N_FOUND], rank, bins)
        if least > state[LEAST]:
            state[GUESS] = least
            keep_from(least, state, docs, sums, k, room)


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


@inline
def probe(
    window: int, state: I64, plans: I64, rows: U8, n_rows: int, allowed: U64, sums: U16, hits: U16,
    n_hits: int, found_docs: I32, found_sums: U16, k: int, room: int, bins: I64,
) -> None:  # fmt: skip
    """Complete the sums of the documents in `hits`, and keep those that reach the threshold."""
    first = state[ROWS_AT]
    last = first + state[N_ROWS]
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
        if state[N_FOUND] >= room:
            tighten(state, found_docs, found_sums, k, room, bins)
            if state[STATUS] != OPEN:
                return
        if value >= state[LEAST]:
            found_docs[state[N_FOUND]] = doc
            found_sums[state[N_FOUND]] = value
            state[N_FOUND] += 1


@inline
def collect(
    window: int, n_chunks: int, state: I64, allowed: U64, totals: U16, masks: U64, chunks: I64,
    found_docs: I32, found_sums: U16, k: int, room: int, bins: I64,
) -> None:  # fmt: skip
    """Keep the documents whose bits `scan_rows` has set."""
    least = state[LEAST]
    n_found = state[N_FOUND]
    for c in range(n_chunks):
        bits = masks[c]
        at = chunks[c] * CHUNK
        doc = (window << WINDOW_BITS) | at
        if allowed.size > 0:
            bits &= allowed[doc >> 6]
        if n_found > room - CHUNK:
            state[N_FOUND] = n_found
            tighten(state, found_docs, found_sums, k, room, bins)
            least = state[LEAST]
            n_found = state[N_FOUND]
            if state[STATUS] != OPEN:
                return
        while bits != 0:
            low = lowest_bit(bits)
            bits &= bits - _ONE
            value = np.int64(totals[at + low])
            found_docs[n_found] = doc + low
            found_sums[n_found] = value
            n_found += value >= least
    state[N_FOUND] = n_found


@inline
def is_settled(state: I64, docs: I32, sums: U16, k: int, room: int, bins: I64) -> Any:
    """Whether what was found holds the best k; if not, the query is as at the beginning."""
    certain = 0
    if state[N_FOUND] >= k:
        certain = max(kth_greatest(sums, state[N_FOUND], k, bins) - state[SLACK], 0)
    if certain >= state[GUESS]:
        keep_from(certain, state, docs, sums, k, room)
        state[STATUS] = DONE
        return True
    state[LEAST] = state[FIRST]
    state[GUESS] = 0
    state[N_FOUND] = 0
    return False


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
    guessing = n_windows >= LEAST_WINDOWS
    waiting = n
    while waiting > 0:
        for b in range(n):
            states[b, TRIGGER] = min(k + max(k, 32), room - CHUNK)
        for window in range(n_windows):
            base = addresses[AT_ROWS] + window * n_rows * STRIDE
            done = window + 1
            marked = guessing and done & window == 0 and done < n_windows
            for b in range(n):
                state = states[b]
                if b + 2 < n:
                    fetch_sparse(states[b + 2], ends[window], addresses[AT_PACKED])
                if state[STATUS] != OPEN:
                    continue
                first = state[ROWS_AT]
                n_own = state[N_ROWS]
                reach = 0
                for r in range(first, first + n_own):
                    at = window * n_rows + plans[r, 0] // STRIDE
                    reach += (np.int64(peaks[at]) * plans[r, 1]) >> 8
                least = state[LEAST]
                floor = least - reach if reach < least else 1 << 20
                n_hits, n_postings = add_sparse(
                    state, ends[window], ends[window + 1], multipliers, packed, sums, floor, hits
                )
                probing = n_hits * (10 + 3 * n_own) + n_postings
                if reach < least and probing < SCAN_COST + ROW_COST * n_own:
                    if n_hits > 0:
                        n_hits = in_order(hits, n_hits, words)
                        probe(
                            window, state, plans, rows, n_rows, allowed, sums, hits, n_hits,
                            found_docs[b], found_sums[b], k, room, bins,
                        )  # fmt: skip
                    clear_sparse(state, ends[window], ends[window + 1], packed, sums)
                else:
                    n_chunks = scan_rows(
                        addresses[AT_SUMS], addresses[AT_PLANS] + 16 * first, n_own, base, least,
                        addresses[AT_TOTALS], addresses[AT_MASKS], addresses[AT_CHUNKS],
                    )  # fmt: skip
                    if n_chunks > 0:
                        collect(
                            window, n_chunks, state, allowed, totals, masks, chunks, found_docs[b],
                            found_sums[b], k, room, bins,
                        )  # fmt: skip
                if state[STATUS] == OPEN and state[N_FOUND] >= state[TRIGGER]:
                    tighten(state, found_docs[b], found_sums[b], k, room, bins)
                if marked and state[STATUS] == OPEN:
                    guess(done, n_windows, state, found_docs[b], found_sums[b], k, room, bins)
        waiting = 0
        guessing = False
        for b in range(n):
            if states[b, STATUS] == OPEN:
                settled = is_settled(states[b], found_docs[b], found_sums[b], k, room, bins)
                waiting += 0 if settled else 1
