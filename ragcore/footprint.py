"""How large the parts of an index are that a strategy needs."""

from __future__ import annotations

from pathlib import PurePosixPath

from ragcore.index import dense, lexical, store
from ragcore.index.opened import Index
from ragcore.search_settings import BM25, DENSE, DENSE_EXACT, STRATEGIES

_GRAPH = (dense.FILE, dense.SLOTS)


def size_of(index: Index, strategy: str) -> int:
    """Bytes on disk of what a strategy reads: documents, and postings, vectors or graph.

    tantivy's own files count with the postings: its dictionary finds the terms.
    """
    channels = STRATEGIES[strategy]
    words, graph = BM25 in channels, DENSE in channels
    vectors = graph or DENSE_EXACT in channels
    total = 0
    for name, record in index.manifest["files"].items():
        path = PurePosixPath(name)
        wanted = (
            vectors if path.name == store.VECTORS
            else graph if path.name in _GRAPH
            else words if path.parts[0] == lexical.FOLDER or path.suffix == ".npy"
            else True
        )  # fmt: skip
        total += record["bytes"] if wanted else 0
    return total
