"""Columns of traces and cases brought to rankings: values, and lists as offsets and flat fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore_kernels.layout import F64, I64


def rows_of(rows: I64) -> pa.Array:
    """Row numbers as an Arrow array, null where they are -1."""
    bits = np.packbits(rows >= 0, bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(np.ascontiguousarray(rows, np.int64))]
    return pa.Array.from_buffers(pa.int64(), rows.size, buffers)


def taken(column: pa.ChunkedArray, rows: I64) -> pa.Array:
    """The values of `column` at `rows`; null where a row is -1. Without a copy if that is all."""
    whole = joined(column)
    if rows.size == len(whole) and bool((rows == np.arange(rows.size)).all()):
        return whole
    return whole.take(rows_of(rows))


def joined(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, dictionaries spelled out, views as plain strings."""
    column = plain(column)
    found = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def plain(values: Any) -> Any:
    """An array or column with dictionaries spelled out and views as plain strings."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return plain(values.cast(kind.value_type))
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    return values


@dataclass
class Lists:
    """A list column, one list a ranking.

    Attributes
    ----------
    offsets : (n + 1,), list i owns ``items[offsets[i]:offsets[i + 1]]``.
    present : (n,), whether a list is recorded; one that is not owns nothing.
    items : the items one after another; structs or plain values.
    """

    offsets: I64
    present: Any
    items: pa.Array

    @property
    def counts(self) -> I64:
        """(n,), items of each list."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> I64:
        """(n_items,), the list that each item is of."""
        return np.repeat(np.arange(self.offsets.size - 1), self.counts)

    def field(self, name: str) -> pa.Array | None:
        """One field of the items, None if they have no such field or are no structs."""
        kind = self.items.type
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        return plain(pc.struct_field(self.items, name))

    def integers(self, name: str, missing: int = -1) -> I64:
        """An integer field; `missing` where it is null or absent."""
        return integers(self.field(name), len(self.items), missing)

    def doubles(self, name: str) -> F64:
        """A number field; NaN where it is null or absent."""
        return doubles(self.field(name), len(self.items))

    def flags(self, name: str, missing: bool = False) -> Any:
        """A boolean field; `missing` where it is null or absent."""
        return flags(self.field(name), len(self.items), missing)

    def strings(self, name: str) -> list[str | None]:
        """A text field as Python strings; None where it is null or absent."""
        found = self.field(name)
        return [None] * len(self.items) if found is None else found.to_pylist()


def no_lists(n: int) -> Lists:
    """`n` lists of which none is present."""
    return Lists(np.zeros(n + 1, np.int64), np.zeros(n, np.bool_), pa.nulls(0))


def own(values: Any) -> I64:
    """Numbers as kernels take them: int64, contiguous, and writable as Arrow's are not."""
    return np.require(values, np.int64, ("C", "W"))


def lists_of(column: pa.ChunkedArray | pa.Array, rows: I64 | None = None) -> Lists:
    """A list column of any layout at `rows` (None = all)."""
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    kind = chunked.type
    if pa.types.is_null(kind):
        n = len(chunked) if rows is None else rows.size
        return no_lists(n)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        parts = [as_lists(chunk) for chunk in chunked.chunks]
        chunked = pa.chunked_array(parts, pa.large_list(kind.value_type))
    found = joined(chunked) if rows is None else taken(chunked, rows)
    counts = integers(pc.list_value_length(found), len(found), 0)
    offsets = np.zeros(len(found) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return Lists(offsets, np.asarray(found.is_valid()), plain(found.flatten()))


def as_lists(array: pa.Array) -> pa.Array:
    """A list array of any layout, views and lists of one size too, as a plain one.

    Not by a cast: pyarrow 26 gives a view's last list a wrong end.
    """
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return array
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(integers(pc.list_value_length(array), len(array), 0), out=offsets[1:])
    gone = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(arrow.numbers(offsets), array.flatten(), mask=gone)


def entry_of(column: pa.ChunkedArray, key: str, rows: I64) -> Lists:
    """The lists under one key of a map column; absent where a map has no such key.

    Of a key that stands twice the last list counts.
    """
    found = taken(column, rows).cast(_as_list(column.type))
    counts = np.zeros(len(found) + 1, np.int64)
    np.cumsum(integers(pc.list_value_length(found), len(found), 0), out=counts[1:])
    flat = found.flatten()
    keys = plain(pc.struct_field(flat, "key"))
    at = np.flatnonzero(np.asarray(pc.equal(keys, pa.scalar(key, keys.type)).fill_null(False)))
    place = np.full(len(found), -1, np.int64)
    place[np.searchsorted(counts, at, side="right") - 1] = at
    return lists_of(pc.struct_field(flat, "value"), place)


def keys_of(column: pa.ChunkedArray) -> list[str]:
    """The keys of a map column, in order of first appearance."""
    flat = joined(column).cast(_as_list(column.type)).flatten()
    return plain(pc.struct_field(flat, "key")).unique().to_pylist()


def _as_list(kind: Any) -> pa.DataType:
    return pa.list_(pa.struct([pa.field("key", kind.key_type, False), ("value", kind.item_type)]))


def integers(values: pa.Array | None, n: int, missing: int = -1) -> I64:
    """Integers as int64, `missing` where null; all of them if there is no array."""
    if values is None or pa.types.is_null(values.type):
        return np.full(n, missing, np.int64)
    wide: Any = values
    if values.null_count:
        if pa.types.is_integer(values.type) and values.type != pa.uint64():
            wide = wide.cast(pa.int64())  # a narrow column need not have room for `missing`
        unsigned = missing < 0 and pa.types.is_unsigned_integer(wide.type)
        wide = wide.fill_null(0 if unsigned else missing)
    return np.require(wide, np.int64, ("C", "W"))  # Arrow's own memory is another type to kernels


def doubles(values: pa.Array | None, n: int) -> F64:
    """Numbers as float64, NaN where null."""
    if values is None or pa.types.is_null(values.type):
        return np.full(n, np.nan)
    return np.require(values.cast(pa.float64()).fill_null(np.nan), np.float64, ("C", "W"))


def flags(values: pa.Array | None, n: int, missing: bool = False) -> Any:
    """Booleans, `missing` where null."""
    if values is None or pa.types.is_null(values.type):
        return np.full(n, missing, np.bool_)
    return np.require(values.fill_null(missing), np.bool_, ("C", "W"))


def coded(values: pa.Array | None, n: int, names: tuple[str, ...]) -> I64:
    """Texts as places in `names`; -1 where null, -2 where they are none of these."""
    if values is None or pa.types.is_null(values.type):
        return np.full(n, -1, np.int64)
    words = plain(values)
    found = pc.index_in(words, value_set=arrow.texts(list(names)).cast(words.type))
    codes = integers(found, n, -2).copy()
    codes[np.asarray(words.is_null())] = -1
    return codes
