"""String columns as piece tables: where the kernels find each id, and that they may look there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.errors import InputError
from ragcore.threads import run_split
from ragcore_kernels import ids as kernel_ids
from ragcore_kernels import layout
from ragcore_kernels.layout import I64

_TEXT_KINDS = {
    pa.string(): layout.OFFSETS32,
    pa.binary(): layout.OFFSETS32,
    pa.large_string(): layout.OFFSETS64,
    pa.large_binary(): layout.OFFSETS64,
    pa.string_view(): layout.VIEWS,
    pa.binary_view(): layout.VIEWS,
}
_WIDTH = {layout.OFFSETS32: 4, layout.OFFSETS64: 8, layout.VIEWS: 16}


PARALLEL_ROWS = 1_000_000  # below this, checking in one thread is quicker


@dataclass
class Strings:
    """A string column as a piece table, with what keeps its buffers alive."""

    table: I64
    arrays: list[pa.Array]
    keep: list[Any] = field(default_factory=list)

    def text(self, piece: int, row: int) -> str:
        """The id at a place, for messages and reports; bytes that are not UTF-8 escaped."""
        return as_text(self.arrays[piece][row].as_py())

    @property
    def dictionary(self) -> pa.Array | None:
        """The one dictionary that all pieces with rows share, if they do."""
        coded = [a for a in self.arrays if len(a)]
        if not coded or not all(pa.types.is_dictionary(a.type) for a in coded):
            return None
        places = self.table[self.table[:, layout.ROWS] > 0, layout.DICT_KIND : layout.BASE]
        same = (places == places[0]).all() and len({len(a.dictionary) for a in coded}) == 1
        return coded[0].dictionary if same else None

    @staticmethod
    def of(
        arrays: Iterable[pa.Array], where: str = "", threads: int = 1, later: bool = False
    ) -> Strings:
        """Piece table of chunks, which `formats.arrow.as_ids` has made sure are ids.

        Parameters
        ----------
        later : leave plain strings to `find_segments` and `find_hits`, which check as they read.

        Raises
        ------
        InputError
            If offsets, views or codes reach outside their buffers: a damaged file.
        """
        chunks = list(arrays)
        keep: list[Any] = []
        seen: set[tuple[int, int, int]] = set()
        rows: list[tuple[int, ...]] = []
        for array in chunks:
            if pa.types.is_dictionary(array.type):
                values = array.dictionary
                inner, inner_limit = _layout_of(values, keep)
                if (inner[1], inner[2], len(values)) not in seen:
                    seen.add((inner[1], inner[2], len(values)))
                    inside = layout.pieces([(len(values), *inner, 0, 0, 0, inner_limit)])
                    _check(inside, where, 1)
                codes = array.indices
                if not pa.types.is_int32(codes.type):
                    codes = codes.cast(pa.int32())
                keep += [codes, values]
                buffer = codes.buffers()[1]
                address = buffer.address + 4 * codes.offset if buffer is not None else 0
                rows.append((len(array), layout.CODES, address, 0, *inner, len(values)))
            else:
                inner, limit = _layout_of(array, keep)
                rows.append((len(array), *inner, 0, 0, 0, limit))
        table = layout.pieces(rows)
        if not later or (table[:, layout.KIND] != layout.OFFSETS32).any():
            _check(table, where, threads)
        return Strings(table, chunks, keep)


def _check(table: I64, where: str, threads: int) -> None:
    many = int(table[:, layout.ROWS].sum()) > PARALLEL_ROWS

    def work(begin: int, end: int) -> int:
        return kernel_ids.first_fault(table, begin, end)

    faults = [row for row in run_split(work, len(table), threads if many else 1) if row >= 0]
    if faults:
        raise outside(where, faults[0])


def outside(where: str, row: int) -> InputError:
    """The error for a damaged column, whose first bad row (from 0) is at or after `row`."""
    return InputError(
        where or "the table", "an id that lies outside its buffer", "a sound Arrow column",
        "the file is damaged; write it again", row=row + 1,
    )  # fmt: skip


def as_text(value: str | bytes | Any) -> str:
    """An id as text, whatever its bytes."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _layout_of(array: pa.Array, keep: list[Any]) -> tuple[tuple[int, int, int], int]:
    """Layout and addresses of an array that is not dictionary-coded, and its limit."""
    form = _TEXT_KINDS[array.type]
    buffers = array.buffers()
    if len(array) == 0 or buffers[1] is None:
        return (form, 0, 0), 0
    first = buffers[1].address + _WIDTH[form] * array.offset
    if form == layout.VIEWS:
        places = [(b.address, b.size) if b else (0, 0) for b in buffers[2:]]
        spots = np.array(places, np.int64).reshape(-1, 2)
        keep.append(spots)
        return (form, first, int(spots.ctypes.data)), len(spots)
    data = buffers[2]
    return (form, first, data.address if data is not None else 0), data.size if data else 0
