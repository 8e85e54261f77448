"""Chunks by row, ids descending byte-wise: what rankings refer to, with or without an index."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa


class Numbered:
    """Chunks and their numbers.

    A subclass has `documents` and `generation`.
    """

    @cached_property
    def documents(self) -> pa.Table:
        """`chunk_id` and the other columns of the chunks, one row each."""
        raise NotImplementedError

    @property
    def generation(self) -> str:
        """Which state of the chunks this is; "" where that is not known."""
        raise NotImplementedError

    @cached_property
    def ids(self) -> pa.Array:
        """Chunk ids by row, descending byte-wise."""
        return self.documents["chunk_id"].combine_chunks()

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each chunk id."""
        return {name: row for row, name in enumerate(self.ids.to_pylist())}
