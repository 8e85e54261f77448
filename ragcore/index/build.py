"""Builds an index directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.analysis import MAX_TOKEN_BYTES, Analyzer
from ragcore.errors import InputError, UsageError
from ragcore.index import dense, lexical, store
from ragcore.index import manifest as manifests
from ragcore.index.chunks import Chunks
from ragcore.index.options import DOCUMENTS, METRICS, Options
from ragcore.progress import Progress, no_progress
from ragcore.provenance import engine_version
from ragcore_kernels import terms
from ragcore_kernels.bm25 import Collection
from ragcore_kernels.layout import I64

PIECE = 16_384
"""Vectors that are widened at a time."""
STEP = 500
"""Texts analysed at a time."""


@dataclass(frozen=True)
class Built:
    """An index that was written: its manifest, and what was noticed."""

    path: Path
    manifest: dict[str, Any]
    notes: list[str]


def build(
    chunks: Chunks, path: str | PathLike[str], options: Options, progress: Progress = no_progress
) -> Built:
    """Write the index of `chunks` to the directory `path`, in place of an index that is there.

    Raises
    ------
    InputError, UsageError
        If it cannot be built; what was there before is whole then.
    """
    index = Path(path)
    notes = list(chunks.notes)
    check_metric(options.metric)
    with manifests.new_folder(index) as folder:
        parts: dict[str, Any] = {}
        if chunks.texts is not None:
            sources = chunks.sources()
            lexical.write(
                folder / lexical.FOLDER, chunks.ids.to_pylist(),
                None if chunks.titles is None else chunks.titles.to_pylist(),
                chunks.texts.to_pylist(), analysed(options.analyzer, sources, notes),
                progress=progress,
            )  # fmt: skip
            parts["lexical"] = lexical_part(folder, chunks, options, notes)
        if chunks.vectors is not None:
            graph = None
            if _wants_graph(options, notes):
                graph = dense.Graph.build(chunks.vectors, options.metric, options.graph, progress)
            parts |= dense_part(folder, chunks.vectors, options, graph, True, notes)
        write_documents(folder, chunks.documents)
        manifest = {"engine": engine_version(), "corpus": corpus_part(chunks), **parts}
        return Built(index, manifests.publish(index, folder, manifest), notes)


def write_documents(folder: Path, documents: pa.Table) -> None:
    """Write the documents of an index, one row each, in the order of ties."""
    with (
        pa.OSFile(str(folder / DOCUMENTS), "wb") as sink,
        pa.ipc.new_file(sink, documents.schema) as writer,
    ):
        writer.write_table(documents)


def analysed(analyzer: Analyzer, sources: list[str], notes: list[str]) -> Iterator[str]:
    """Terms of each text, joined by spaces; a note says how many terms were too long and cut.

    A few texts at a time, so that whoever indexes them can say how far it is.
    """
    counts: Counter[str] = Counter()
    for begin in range(0, len(sources), STEP):
        yield from analyzer.batch(sources[begin : begin + STEP], counts)
    if counts["cut"]:
        notes.append(f"{counts['cut']} terms were longer than {MAX_TOKEN_BYTES:,} bytes: cut there")


def corpus_part(chunks: Chunks) -> dict[str, Any]:
    """What the manifest says of the corpus."""
    columns = [c for c in chunks.documents.column_names if c != "chunk_id"]
    return {
        "n_chunks": chunks.documents.num_rows, "sha256": chunks.corpus_hash(),
        "columns": columns, "metadata": chunks.metadata,
        "title_column": chunks.title_column, "text_column": chunks.text_column,
    }  # fmt: skip


def lexical_part(
    folder: Path, chunks: Chunks, options: Options, notes: list[str]
) -> dict[str, Any]:
    """Read tantivy's postings back, numbered by row; write them; what the manifest says of them."""
    found = lexical.read(folder / lexical.FOLDER, options.analyzer.batch)
    if found.from_text:
        notes.append(f"postings were made from the stored texts, not read: {found.from_text}")
    ids = chunks.ids.to_pylist()
    dictionary, gone = renumbered(folder, found, ids)
    store.save_postings(folder, dictionary)
    lengths = dictionary.collection.lengths
    name, number = lexical.version()
    empty = int((lengths == 0).sum())
    if empty:
        notes.append(f"{empty} of {len(ids)} chunks have no term: BM25 never finds them")
    return {
        "analyzer": options.analyzer.spec(),
        "environment": options.analyzer.environment(), "k1": options.k1, "b": options.b,
        "variant": options.variant, "lengths": options.lengths, "statistics": "live chunks",
        "fields": ["title", "text"] if chunks.titles is not None else ["text"],
        "n_terms": dictionary.offsets.size - 1, "n_postings": int(dictionary.collection.docs.size),
        "n_tokens": int(lengths.sum(dtype=np.int64)), "n_empty": empty,
        "n_deleted_inside": gone, "tantivy": name,
        "tantivy_format": number,
        "postings_from": "stored text" if found.from_text else "segment files",
    }  # fmt: skip


def renumbered(folder: Path, found: lexical.Read, ids: list[str]) -> tuple[store.Dictionary, int]:
    """Postings by row, terms of deleted documents left out; and how many documents are deleted.

    Raises
    ------
    InputError
        If tantivy and the documents disagree about which chunks there are.
    """
    rows = {name: row for row, name in enumerate(ids)}
    live = [name for name in found.names if name]
    if len(live) != len(ids) or any(name not in rows for name in live):
        raise InputError(
            folder / lexical.FOLDER, f"{len(live)} documents in tantivy",
            f"the {len(ids)} chunks of {DOCUMENTS}", "build the index again",
        )  # fmt: skip
    row_of = np.array([rows[name] if name else -1 for name in found.names], np.int64)
    held = found.postings
    offsets, docs, tfs = terms.renumber(held.offsets, held.docs, held.tfs, row_of, len(ids))
    used = np.diff(offsets) > 0
    term_offsets, term_bytes = _kept(found.term_offsets, found.term_bytes, used)
    offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[used])]).astype(np.int64)
    lengths = np.bincount(docs, tfs, len(ids)).astype(np.int32)
    made = store.Dictionary(term_offsets, term_bytes, Collection(offsets, docs, tfs, lengths))
    return made, len(found.names) - len(live)


def _kept(offsets: I64, data: Any, used: Any) -> tuple[I64, Any]:
    """The terms of a dictionary that are used."""
    if used.all():
        return offsets, data
    sizes = np.diff(offsets)
    new = np.concatenate([[0], np.cumsum(sizes[used])]).astype(np.int64)
    return new, np.asarray(data)[np.repeat(used, sizes)]


def _wants_graph(options: Options, notes: list[str]) -> bool:
    if options.hnsw is False:
        return False
    if options.hnsw is None and not dense.available():
        notes.append("no HNSW graph: hnswlib is not installed (pip install 'ragcore[ann]')")
        return False
    return True


def dense_part(
    folder: Path, vectors: np.ndarray[Any, Any], options: Options, graph: dense.Graph | None,
    fresh: bool, notes: list[str],
) -> dict[str, Any]:  # fmt: skip
    """Write vectors and graph; what the manifest says of them."""
    np.save(folder / store.VECTORS, vectors)
    pieces = [vectors[at : at + PIECE] for at in range(0, len(vectors), PIECE)]
    norms = np.concatenate([
        np.empty(0), *(np.linalg.norm(each.astype(np.float64), axis=1) for each in pieces)
    ])  # fmt: skip
    zero = int((norms == 0).sum())
    if zero:
        notes.append(f"{zero} of {len(norms)} vectors are zero: their cosine is taken as 0")
    spread = float(norms.max() - norms.min()) if len(norms) else 0.0
    if options.metric == "ip" and spread > 1e-3:
        notes.append(
            f"norms vary by more than 1e-3 (by {spread:.3g}): inner product is not cosine here"
        )
    out: dict[str, Any] = {
        "dense": {
            "dim": int(vectors.shape[1]), "dtype": vectors.dtype.name, "metric": options.metric,
            "embedding": options.embedding, "model": options.model, "n_zero": zero,
        }
    }  # fmt: skip
    if graph is not None:
        graph.save(folder)
        out["hnsw"] = {
            **asdict(options.graph), "n_slots": len(graph.slots), "n_live": graph.n_live,
            "deterministic": options.graph.threads == 1, "fresh": fresh,
        }  # fmt: skip
        if options.graph.threads > 1:
            notes.append("the graph was built with several threads: another build may differ")
    return out


def check_metric(metric: str) -> str:
    """The metric, if it is one.

    Raises
    ------
    UsageError
        If it is none.
    """
    if metric not in METRICS:
        raise UsageError(f"unknown metric {metric!r}", f"one of {', '.join(METRICS)}")
    return metric
