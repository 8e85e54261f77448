"""How an index is built, as it is said and as its manifest keeps it; its documents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragcore.analysis import Analyzer
from ragcore.errors import InputError, UsageError

DOCUMENTS = "documents.arrow"
METRICS = ("cosine", "ip", "l2")


@dataclass(frozen=True)
class GraphSettings:
    """How an HNSW graph is built.

    Attributes
    ----------
    M, ef_construction, seed : hnswlib's own.
    threads : 1 builds the same graph every time; more do not.
    """

    M: int = 16
    ef_construction: int = 200
    seed: int = 42
    threads: int = 1

    def __post_init__(self) -> None:
        """Refuse what hnswlib would crash on."""
        for name, low, high in (("M", 2, 512), ("ef_construction", 1, 2**31 - 1),
                                ("seed", 0, 2**63 - 1), ("threads", 1, 2**31 - 1)):  # fmt: skip
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise UsageError(
                    f"HNSW: {name} is {value!r}", f"a whole number from {low} to {high}"
                )


@dataclass(frozen=True)
class Options:
    """How an index is built; appending keeps what the index was built with.

    Attributes
    ----------
    analyzer : of documents and questions.
    k1, b, variant, lengths : of BM25, for whoever does not say otherwise when searching.
    embedding, model : how vectors came about: "column", "file", or the spec of an embedder and the
        identity that it had; "" for none.
    metric : of dense search.
    hnsw : whether a graph is built; None = where there are vectors and hnswlib is installed.
    graph : how.
    """

    analyzer: Analyzer
    k1: float = 1.2
    b: float = 0.75
    variant: str = "tantivy"
    lengths: str = "exact"
    embedding: str = ""
    model: str = ""
    metric: str = "cosine"
    hnsw: bool | None = None
    graph: GraphSettings = field(default_factory=GraphSettings)


def options_of(manifest: dict[str, Any]) -> Options:
    """The options that an index was built with, from its manifest."""
    words, vectors, graph = (manifest.get(n) or {} for n in ("lexical", "dense", "hnsw"))
    settings = {k: graph[k] for k in ("M", "ef_construction", "seed", "threads") if k in graph}
    base = Options(
        Analyzer.parse(words["analyzer"]) if words else Analyzer(),
        embedding=vectors.get("embedding", ""), model=vectors.get("model", ""),
        metric=vectors.get("metric", "cosine"),
        hnsw=bool(graph), graph=GraphSettings(**settings),
    )  # fmt: skip
    named = {k: words[k] for k in ("k1", "b", "variant", "lengths") if k in words}
    return replace(base, **named)


def read_documents(folder: Path) -> pa.Table:
    """The documents of an index, mapped: one row each, in the order of ties."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(folder / DOCUMENTS))).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(folder / DOCUMENTS, reason, "a table", "build the index again") from None
