"""How large the parts of an index are that a search reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ragcore.index import dense, store
from ragcore.index.opened import Index
from ragcore.index.options import DOCUMENTS
from ragcore.search_settings import BM25, DENSE, DENSE_EXACT, STRATEGIES

_READ: dict[str, tuple[str, ...]] = {
    BM25: ("postings",),
    DENSE: ("vectors", "graph"),
    DENSE_EXACT: ("vectors",),
}
_PART: dict[str, str] = {
    DOCUMENTS: "documents", store.VECTORS: "vectors", dense.FILE: "graph", dense.SLOTS: "graph",
    **dict.fromkeys(
        (store.TERMS, store.BYTES, store.OFFSETS, store.ROWS, store.TFS, store.LENGTHS), "postings"
    ),
}  # fmt: skip


def parts_of(index: Index) -> dict[str, int]:
    """Bytes of an index on the disk by part: documents, postings, vectors, graph.

    tantivy's own files are left out: they keep the texts, and no search reads them.
    """
    out: dict[str, int] = {"documents": 0, "postings": 0, "vectors": 0, "graph": 0}
    for name, record in index.manifest["files"].items():
        if name in _PART:
            out[_PART[name]] += record["bytes"]
    return out


def bytes_read(parts: Mapping[str, int], channels: Iterable[str]) -> int:
    """Bytes of the parts that some channels read, documents with them."""
    wanted = {"documents", *(part for channel in channels for part in _READ[channel])}
    return sum(parts.get(part, 0) for part in sorted(wanted))


def size_of(index: Index, strategy: str) -> int:
    """Bytes of an index that a strategy reads."""
    return bytes_read(parts_of(index), STRATEGIES[strategy])
