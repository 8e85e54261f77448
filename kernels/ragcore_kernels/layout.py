"""The contract between Arrow memory and the kernels: piece tables, CSR, checks.

A string column reaches a kernel as a *piece table*, an int64 matrix with one row per Arrow
chunk that says where its buffers lie and how they are laid out. So one compiled kernel reads
every string layout in place, and no row becomes a Python object. Whoever builds a table keeps
the buffers alive as long as a kernel may read it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]

ROWS, KIND, FIRST, SECOND, DICT_KIND, DICT_FIRST, DICT_SECOND, BASE, LIMIT = range(9)
"""Columns of a piece table: rows; layout; two addresses; the same of the dictionary; the
number of the piece's first row in the whole column; and how far the piece may reach: bytes of the
data (OFFSETS), number of buffers (VIEWS), values of the dictionary (CODES)."""
PIECE_FIELDS = 9

OFFSETS32, OFFSETS64, VIEWS, CODES, WORDS = range(5)
"""Layouts. OFFSETS: FIRST = address of the slice's first offset, SECOND = of the bytes.
VIEWS: FIRST = address of the slice's first 16-byte view, SECOND = of int64 pairs, the address and
length of each buffer. CODES: FIRST = address of int32 codes, and DICT_* describes the dictionary's
values, which have one of the first three layouts. WORDS: FIRST = address of ids of 4 bytes each."""

SEGMENT_PIECE, SEGMENT_START, SEGMENT_ROWS = range(3)
"""Columns of a segment table: consecutive rows of one case inside one piece."""


def pieces(rows: list[tuple[int, ...]]) -> I64:
    """Piece table from ``(rows, kind, first, second, dict_kind, dict_first, dict_second)``.

    An eighth number is the limit; without it, what lies behind the addresses is trusted.
    """
    table = np.zeros((len(rows), PIECE_FIELDS), np.int64)
    base = 0
    for i, row in enumerate(rows):
        table[i, :BASE] = row[:BASE]
        table[i, LIMIT] = row[BASE] if len(row) > BASE else np.iinfo(np.int64).max
        table[i, BASE] = base
        base += row[ROWS]
    return table


def check_csr(offsets: I64, n_values: int) -> None:
    """Refuse offsets that do not describe `n_values` values.

    Raises
    ------
    ValueError
        If `offsets` is not int64, one-dimensional, starting at 0, rising and ending at
        `n_values`; the message names the first fault.
    """
    if offsets.dtype != np.int64 or offsets.ndim != 1 or offsets.size == 0:
        raise ValueError(
            f"offsets are {offsets.dtype}{list(offsets.shape)}; "
            f"wanted int64[n + 1], e.g. offsets.astype(np.int64)"
        )
    if offsets[0] != 0 or offsets[-1] != n_values:
        raise ValueError(f"offsets run from {offsets[0]} to {offsets[-1]}; wanted 0 to {n_values}")
    falls = np.flatnonzero(np.diff(offsets) < 0)
    if falls.size:
        q = int(falls[0])
        raise ValueError(
            f"offsets fall at case {q}: "
            f"offsets[{q}]={offsets[q]} > offsets[{q + 1}]={offsets[q + 1]}"
        )


def frozen(array: Any, dtype: Any) -> NDArray[Any]:
    """Read-only, C-contiguous view of `array` as `dtype`; copies only where it must."""
    out = np.ascontiguousarray(array, dtype).view()
    out.flags.writeable = False
    return out
