"""Flat rows whose cases alternate: gathered once, so that each case's rows stand together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ragcore.columns import CaseCodes, Rows
from ragcore.formats import arrow
from ragcore.strings import Strings
from ragcore_kernels import ids as kernel_ids
from ragcore_kernels.gather import gather, gather_ids
from ragcore_kernels.rows import SCORE_F64

FEW_ROWS, MANY_SEGMENTS = 16, 1_000
"""Rows a segment on average below which gathering pays, and segments from which it does."""


def together(rows: Rows) -> Rows:
    """`rows`, with one segment a case if they lie scattered, else as they are.

    Messages still name the row or line that each came from.

    Raises
    ------
    InputError
        If ids reach outside their buffers.
    """
    n = len(rows.segments)
    if rows.traces is not None or n < MANY_SEGMENTS or rows.n_rows >= FEW_ROWS * n:
        return rows
    Strings.of(rows.ids.arrays, rows.where)  # the copy reads them before the other kernels do
    codes = CaseCodes(n)
    found = codes.add(rows.case_ids, rows.case_at)
    offsets = np.zeros(codes.count + 1, np.int64)
    order = np.empty(n, np.int64)
    kernel_ids.group(found, offsets, order)
    segments = np.ascontiguousarray(rows.segments[order])
    ends = np.zeros(rows.n_rows + 1, np.int64)
    scores, origin = np.empty(rows.n_rows), np.empty(rows.n_rows, np.int64)
    gather(rows.ids.table, rows.values, segments, ends, scores, origin)
    data = np.empty(int(ends[-1]), np.uint8)
    gather_ids(rows.ids.table, segments, ends, data)
    column = pa.Array.from_buffers(
        pa.large_binary(), rows.n_rows, [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )
    counts = np.concatenate([[0], np.cumsum(segments[:, 2])])[offsets]
    one = np.stack([np.zeros(codes.count, np.int64), counts[:-1], np.diff(counts)], 1)
    first = order[offsets[:-1]]
    numbers = arrow.numbers(scores)
    position = rows.position
    return replace(
        rows, ids=Strings.of([column]), segments=one,
        values=np.array([[SCORE_F64, numbers.buffers()[1].address]], np.int64),
        case_at=np.ascontiguousarray(rows.case_at[first]),
        position=lambda row: position(int(origin[row])), keep=[*rows.keep, numbers],
    )  # fmt: skip
