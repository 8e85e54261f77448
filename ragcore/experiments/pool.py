"""The chunks that rankings are of, by row, as an index numbers them; with or without an index."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pyarrow as pa

from ragcore.footprint import bytes_read, parts_of
from ragcore.index.chunks import Chunks, read_chunks
from ragcore.index.numbered import Numbered
from ragcore.index.opened import Index


class Pool(Numbered):
    """Chunks by row.

    Parameters
    ----------
    documents : `chunk_id` and other columns, ids descending byte-wise.
    generation : of the index, or of the run that was recorded; "" where that is not known.
    texts : of every chunk, title and text, as they are indexed; None without texts.
    sizes : bytes of the index by part; None without an index.
    """

    def __init__(
        self, documents: pa.Table, generation: str = "", texts: list[str] | None = None,
        sizes: dict[str, int] | None = None,
    ) -> None:  # fmt: skip
        self._documents, self._generation = documents, generation
        self.texts, self.sizes = texts, sizes

    @cached_property
    def documents(self) -> pa.Table:
        """`chunk_id` and the other columns of the chunks, one row each."""
        return self._documents

    @property
    def generation(self) -> str:
        """Which state of the chunks this is; "" where that is not known."""
        return self._generation

    def bytes_for(self, channels: tuple[str, ...]) -> int | None:
        """Bytes of the parts that some channels read; None where that is not known."""
        return None if self.sizes is None else bytes_read(self.sizes, channels)


def of_chunks(chunks: Chunks, index: Index | None = None) -> Pool:
    """The chunks of a suite, and what an index of them is."""
    texts = chunks.sources() if chunks.texts is not None else None
    if index is None:
        return Pool(chunks.documents, texts=texts)
    return Pool(chunks.documents, index.generation, texts, parts_of(index))


def of_index(index: Index) -> Pool:
    """The documents of an index whose chunks are not at hand."""
    return Pool(index.documents, index.generation, None, parts_of(index))


def of_ids(ids: set[str], generation: str) -> Pool:
    """Nothing but ids, as a run without a suite's chunks has them."""
    ordered = sorted(ids, key=lambda name: name.encode("utf-8", "surrogatepass"), reverse=True)
    return Pool(pa.table({"chunk_id": pa.array(ordered, pa.large_string())}), generation)


def chunks_file(folder: Path) -> Path | None:
    """The list of chunks in a suite's folder; None without one."""
    found = (folder / name for name in ("chunks.arrow", "chunks.parquet"))
    return next((path for path in found if path.is_file()), None)


def chunks_in(folder: Path) -> Chunks | None:
    """The chunks of a suite's folder; None without a list of them."""
    path = chunks_file(folder)
    return None if path is None else read_chunks(path)
