"""The chunks that rankings are of, by row, as an index numbers them; with or without an index."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pyarrow as pa

from ragcore.index.chunks import Chunks, read_chunks
from ragcore.index.numbered import Numbered
from ragcore.index.opened import Index
from ragcore.index.options import DOCUMENTS
from ragcore.index.store import VECTORS
from ragcore.search_settings import BM25, DENSE, DENSE_EXACT

_GRAPH = "hnsw"
_POSTINGS = ("term-", "posting-", "lengths")


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
        if self.sizes is None:
            return None
        wanted = {"documents"}
        for channel in channels:
            wanted |= {BM25: {"postings"}, DENSE: {"vectors", "graph"}, DENSE_EXACT: {"vectors"}}[
                channel
            ]
        return sum(self.sizes.get(part, 0) for part in sorted(wanted))


def of_chunks(chunks: Chunks, index: Index | None = None) -> Pool:
    """The chunks of a suite, and what an index of them is."""
    texts = chunks.sources() if chunks.texts is not None else None
    if index is None:
        return Pool(chunks.documents, texts=texts)
    return Pool(chunks.documents, index.generation, texts, sizes_of(index))


def of_index(index: Index) -> Pool:
    """The documents of an index whose chunks are not at hand."""
    return Pool(index.documents, index.generation, None, sizes_of(index))


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


def sizes_of(index: Index) -> dict[str, int]:
    """Bytes of an index on the disk by part: documents, postings, vectors, graph.

    tantivy's own files are left out: they keep the texts, and no search reads them.
    """
    out: dict[str, int] = {"documents": 0, "postings": 0, "vectors": 0, "graph": 0}
    for path in index.folder.iterdir():
        if not path.is_file():
            continue
        part = None
        if path.name == DOCUMENTS:
            part = "documents"
        elif path.name == VECTORS:
            part = "vectors"
        elif path.name.startswith(_GRAPH):
            part = "graph"
        elif path.name.startswith(_POSTINGS):
            part = "postings"
        if part is not None:
            out[part] += path.stat().st_size
    return out
