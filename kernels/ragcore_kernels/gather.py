"""Rows that lie scattered over a table, brought together by case: one copy, in order.

The other kernels read rows where they are, which is best while a case's rows stand together. Where
they alternate row by row, each look at a row would have to search for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel, load_f32, load_f64, load_u8
from ragcore_kernels.ids import locate
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.rows import SCORE_F32, SCORE_F64


@kernel
def gather(table: I64, sources: I64, segments: I64, offsets: I64, scores: F64, rows: I64) -> None:
    """Scores, and where ids will lie, of all rows of `segments` in their order.

    Parameters
    ----------
    table, sources : (n_pieces, 9) and (n_pieces, 2), ids and scores; see `layout` and `rows`.
    segments : (n, 3), grouped by case.
    offsets : (n_rows + 1,), filled: Arrow offsets of the ids once `gather_ids` has copied them.
    scores : (n_rows,), filled; 0.0 where a piece has none.
    rows : (n_rows,), filled: the row of the whole column that each came from.
    """
    at = np.int64(0)
    offsets[0] = 0
    for s in range(segments.shape[0]):
        piece = segments[s, 0]
        address = sources[piece, 1]
        for row in range(segments[s, 1], segments[s, 1] + segments[s, 2]):
            _, size = locate(table, piece, row)
            offsets[at + 1] = offsets[at] + size
            if sources[piece, 0] == SCORE_F64:
                scores[at] = load_f64(address + 8 * row)
            elif sources[piece, 0] == SCORE_F32:
                scores[at] = float(load_f32(address + 4 * row))
            else:
                scores[at] = 0.0
            rows[at] = table[piece, 7] + row
            at += 1


@kernel
def gather_ids(table: I64, segments: I64, offsets: I64, data: NDArray[np.uint8]) -> None:
    """Copy the ids of all rows of `segments`, in their order.

    Parameters
    ----------
    table, segments, offsets : as `gather` takes and leaves them.
    data : (offsets[-1],), filled with the bytes.
    """
    at = np.int64(0)
    for s in range(segments.shape[0]):
        piece = segments[s, 0]
        for row in range(segments[s, 1], segments[s, 1] + segments[s, 2]):
            address, size = locate(table, piece, row)
            for i in range(size):
                data[offsets[at] + i] = load_u8(address + i)
            at += 1
