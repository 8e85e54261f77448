"""Lists made ready for the fast kernel: rows of bytes for dense terms, packed words for sparse.

Documents go in windows of WINDOW. A dense term, in at least one document of 32, has a row: one byte
a document, its impact in 255ths of the term's greatest, rounded up. A sparse term has one 32-bit
word a posting: 13 bits for the document in its window and 19 for the impact, rounded up likewise.
Counts of dense terms stand once more document by document, so that the exact score of one document
touches few lines of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.bm25_plain import impact
from ragcore_kernels.vectors import WINDOW, place_in_row

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]

DENSE = 32
"""A term is dense from one document in so many."""
MOST_DENSE = 512
"""Rows at most; of more dense terms, those in fewer documents count as sparse."""
POINTED = 64
"""A list of so many postings has a pointer to each window."""
STRIDE = WINDOW + 192
"""Bytes from row to row: not a multiple of 4,096, so that rows do not fall on the same lines."""
WINDOW_BITS = 13
LEVEL_BITS = 19
LEVELS = (1 << LEVEL_BITS) - 1
BYTE_LEVELS = 255

BEGIN, END, ROW, PACKED, POINTERS = range(5)
"""Columns of the lists: first posting and the one behind the last; number of the row; place of the
first packed word; place of the pointers (-1: none)."""
TOP, KTH_10, KTH_100, KTH_1000, LOW = range(5)
"""Columns of the bounds: the greatest impact; what so many postings reach at least; the lowest
byte that stands for an impact in a row."""
RANKS = (10, 100, 1_000)


def aligned(n: int, dtype: Any) -> NDArray[Any]:
    """`n` zeros whose address is a multiple of 64."""
    size = n * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size].view(dtype)


@inline
def byte_level(value: float, top: float) -> Any:
    """An impact in 255ths of the greatest, rounded up; never 0, which stands for no posting."""
    if top <= 0.0 or value >= top:
        return 255 if value > 0.0 else 1
    return max(np.int64(np.ceil(np.float64(value) * (BYTE_LEVELS / top))), 1)


@kernel
def pack_lists(
    docs: I32, tfs: I32, norms: F64, factors: F64, curve: F64, n_windows: int, lists: I64,
    bounds: F64, packed: U32, few: U8, pointers: I32, impacts: F32, bins: I64,
) -> None:  # fmt: skip
    """Fill bounds and pointers of every list, and the packed words of the sparse ones.

    Parameters
    ----------
    docs, tfs, norms, factors, curve : as `search_plain` takes them; factors row by row as `lists`.
    n_windows : number of windows.
    lists : (n, 5), see BEGIN ... POINTERS.
    bounds : (n, 5), filled, see TOP ... LOW.
    packed, few : filled: words of the sparse lists, and counts beside them, 255 also for more.
    pointers : filled; they count from the list's first posting.
    impacts : (longest list,), used here.
    bins : (256,), used here.
    """
    for s in range(lists.shape[0]):
        begin = lists[s, BEGIN]
        n = lists[s, END] - begin
        top = np.float32(0.0)
        low = np.float32(np.inf)
        for i in range(n):
            p = begin + i
            tf = np.float64(tfs[p])
            value = impact(tf, norms[docs[p]], factors[s, 0], factors[s, 1], curve)
            impacts[i] = value
            top = max(top, value)
            low = min(low, value)
        bounds[s, TOP] = top
        bounds[s, LOW] = byte_level(low, bounds[s, TOP])
        at = lists[s, POINTERS]
        if at >= 0:
            window = 0
            for i in range(n):
                here = docs[begin + i] >> WINDOW_BITS
                while window <= here:
                    pointers[at + window] = i
                    window += 1
            while window <= n_windows:
                pointers[at + window] = n
                window += 1
        scale = 0.0
        if top > 0.0:
            scale = LEVELS / np.float64(top)
        bins[:] = 0
        out = lists[s, PACKED]
        for i in range(n):
            level = min(np.int64(np.ceil(np.float64(impacts[i]) * scale)), LEVELS)
            bins[level >> (LEVEL_BITS - 8)] += 1
            if out >= 0:
                word = (level << WINDOW_BITS) | (np.int64(docs[begin + i]) & (WINDOW - 1))
                packed[out + i] = word
                few[out + i] = min(tfs[begin + i], 255)
        rank = 10
        above = 0
        column = KTH_10
        for c in range(KTH_10, KTH_1000 + 1):
            bounds[s, c] = 0.0
        for level in range(255, -1, -1):
            above += bins[level]
            while column <= KTH_1000 and above >= rank:
                least = np.float64((level << (LEVEL_BITS - 8)) - 1) / LEVELS
                bounds[s, column] = max(least, 0.0) * np.float64(top) * (1.0 - 1e-9)
                column += 1
                rank *= 10


@kernel
def pack_rows(
    docs: I32, tfs: I32, norms: F64, factors: F64, curve: F64, n_windows: int, dense: I64,
    lists: I64, bounds: F64, pointers: I32, rows: U8, peaks: U8, counts: U8,
) -> None:  # fmt: skip
    """Fill the rows of dense terms, window by window.

    Parameters
    ----------
    docs, tfs, norms, factors, curve : as `pack_lists` takes them.
    n_windows : number of windows.
    dense : (n_rows,), the list of each row.
    lists, bounds, pointers : as `pack_lists` left them.
    rows : (n_windows * n_rows * STRIDE,), zeroed, filled; window by window, then row by row.
    peaks : (n_windows * n_rows,), filled: the greatest byte of each row.
    counts : (n_docs * n_rows,), zeroed, filled: counts document by document; 255 also for more.
    """
    n_rows = dense.size
    for window in range(n_windows):
        for r in range(n_rows):
            s = dense[r]
            begin = lists[s, BEGIN]
            at = lists[s, POINTERS] + window
            row = (window * n_rows + r) * STRIDE
            peak = 0
            for i in range(pointers[at], pointers[at + 1]):
                d = np.int64(docs[begin + i])
                tf = np.int64(tfs[begin + i])
                value = impact(np.float64(tf), norms[d], factors[s, 0], factors[s, 1], curve)
                level = byte_level(value, bounds[s, TOP])
                rows[row + place_in_row(d & (WINDOW - 1))] = level
                counts[d * n_rows + r] = min(tf, 255)
                peak = max(peak, level)
            peaks[window * n_rows + r] = peak


@dataclass
class Packed:
    """What the fast kernel reads; see the two kernels above for the arrays."""

    n_windows: int
    lists: I64
    bounds: F64
    packed: U32
    few: U8
    pointers: I32
    n_rows: int
    rows: U8
    peaks: U8
    counts: U8


def pack(
    offsets: I64, docs: I32, tfs: I32, norms: F64, factors: F64, curve: F64, terms: I64
) -> Packed:
    """Pack the lists of `terms`, which are as in `search_plain`; `factors` go by `terms`."""
    n_docs, n = norms.size, terms.size
    n_windows = -(-n_docs // WINDOW)
    lists = np.full((n, 5), -1, np.int64)
    lists[:, BEGIN], lists[:, END] = offsets[terms], offsets[terms + 1]
    df = lists[:, END] - lists[:, BEGIN]
    dense = np.flatnonzero(df * DENSE >= max(n_docs, DENSE * POINTED))
    if dense.size > MOST_DENSE:
        dense = np.sort(dense[np.argsort(-df[dense], kind="stable")[:MOST_DENSE]])
    lists[dense, ROW] = np.arange(dense.size)
    sparse = np.flatnonzero(lists[:, ROW] < 0)
    ends = np.cumsum(df[sparse])
    lists[sparse, PACKED] = ends - df[sparse]
    pointed = np.flatnonzero(df >= POINTED)
    lists[pointed, POINTERS] = np.arange(pointed.size) * (n_windows + 1)
    n_sparse = int(df[sparse].sum())
    out = Packed(
        n_windows, lists, np.empty((n, 5)), np.empty(n_sparse, np.uint32),
        np.empty(n_sparse, np.uint8), np.empty(pointed.size * (n_windows + 1), np.int32),
        dense.size, aligned(n_windows * dense.size * STRIDE, np.uint8),
        np.empty(n_windows * dense.size, np.uint8), np.zeros(n_docs * dense.size, np.uint8),
    )  # fmt: skip
    impacts = np.empty(int(df.max(initial=0)), np.float32)
    pack_lists(
        docs, tfs, norms, factors, curve, n_windows, lists, out.bounds, out.packed, out.few,
        out.pointers, impacts, np.empty(256, np.int64),
    )  # fmt: skip
    pack_rows(
        docs, tfs, norms, factors, curve, n_windows, dense, lists, out.bounds, out.pointers,
        out.rows, out.peaks, out.counts,
    )  # fmt: skip
    return out
