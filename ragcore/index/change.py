"""Appends chunks to an index and deletes from it, through tantivy; the old stays till then."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.index import dense, lexical, store
from ragcore.index import manifest as manifests
from ragcore.index.build import (
    Built,
    analysed,
    corpus_part,
    dense_part,
    lexical_part,
    write_documents,
)
from ragcore.index.chunks import Chunks
from ragcore.index.options import Options, options_of, read_documents
from ragcore.progress import Progress, no_progress
from ragcore.provenance import engine_version
from ragcore_kernels.layout import I64


def change(
    path: str | PathLike[str],
    chunks: Chunks | None,
    delete: list[str],
    *,
    replace_existing: bool = False,
    progress: Progress = no_progress,
) -> Built:
    """Append chunks to an index and delete others, through tantivy; the old index stays until done.

    Parameters
    ----------
    chunks : to append; its tombstones are deleted.
    delete : ids to delete.
    replace_existing : a chunk whose id is there takes its place; else it is refused.

    Raises
    ------
    InputError
        If an id to append is there already, or one to delete is not; if the index has vectors and
        the chunks have none, or others.
    """
    index = Path(path)
    old = manifests.read_manifest(index)
    was = manifests.verify(index, old)
    options = options_of(old)
    documents = read_documents(was)
    plan = _plan(index, documents, chunks, delete, replace_existing)
    notes = list(chunks.notes) if chunks is not None else []
    with manifests.new_folder(index) as folder:
        parts: dict[str, Any] = {}
        titles = texts = None
        if "lexical" in old:
            _change_lexical(was, folder, chunks, plan, options, notes, progress)
            titles, texts = _stored_texts(folder, plan.merged)
        merged = Chunks(
            str(index),
            plan.merged,
            titles,
            texts,
            None,
            [],
            old["corpus"]["metadata"],
            [],
            old["corpus"]["text_column"],
            _title_column(old, chunks, titles),
        )
        if "lexical" in old:
            parts["lexical"] = lexical_part(folder, merged, options, notes)
        if "dense" in old:
            merged.vectors = _merge_vectors(index, was, old, chunks, plan)
            graph = None
            if "hnsw" in old:
                aged = dense.Graph.load(was, options.metric, merged.vectors.shape[1])
                graph = aged.renumbered(
                    plan.row_of, merged.vectors, plan.added, options.graph.threads, progress
                )
            parts |= dense_part(folder, merged.vectors, options, graph, False, notes)
        write_documents(folder, plan.merged)
        manifest = {"engine": engine_version(), "corpus": corpus_part(merged), **parts}
        manifest["corpus"]["changes"] = old["corpus"].get("changes", 0) + 1
        return Built(index, manifests.publish(index, folder, manifest), notes)


def _title_column(old: dict[str, Any], chunks: Chunks | None, titles: Any) -> str | None:
    """Column of titles after a change: what it was, else that of the new chunks."""
    if titles is None:
        return None
    return old["corpus"]["title_column"] or (chunks.title_column if chunks else None)


@dataclass(frozen=True)
class _Plan:
    """A change of the corpus: the documents after it, and where each comes from.

    Attributes
    ----------
    row_of : new row of each old row, -1 = deleted.
    added, source : new rows that come from the appended chunks, and their rows there.
    gone : ids that are deleted from tantivy.
    """

    merged: pa.Table
    row_of: I64
    added: I64
    source: I64
    gone: list[str]


def _plan(
    index: Path, documents: pa.Table, chunks: Chunks | None, delete: list[str], over: bool
) -> _Plan:
    old_ids = documents["chunk_id"].to_pylist()
    known = {name: row for row, name in enumerate(old_ids)}
    new_ids = chunks.ids.to_pylist() if chunks is not None else []
    doomed = [*delete, *(chunks.tombstones if chunks is not None else ())]
    absent = [name for name in doomed if name not in known]
    if absent:
        raise InputError(
            index, f"no chunk {absent[0]!r} to delete ({len(absent)} of {len(doomed)} are unknown)",
            "ids of the index", "leave them out: nothing was deleted",
        )  # fmt: skip
    both = [name for name in new_ids if name in known and name not in doomed]
    if both and not over:
        raise InputError(
            chunks.where if chunks else index,
            f"chunk {both[0]!r} is in the index already ({len(both)} of {len(new_ids)} are)",
            "new chunks", "--replace takes their place; nothing was appended",
        )  # fmt: skip
    gone = {*doomed, *both}
    kept = [row for row, name in enumerate(old_ids) if name not in gone]
    table = documents.take(arrow.numbers(np.array(kept, np.int64)))
    if chunks is not None:
        table = pa.concat_tables([table, chunks.documents], promote_options="permissive")
    encoded = [name.encode() for name in table["chunk_id"].to_pylist()]
    order = np.array(sorted(range(len(encoded)), key=encoded.__getitem__, reverse=True), np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    row_of = np.full(len(old_ids), -1, np.int64)
    row_of[kept] = place[: len(kept)]
    return _Plan(
        table.take(arrow.numbers(order)).combine_chunks(), row_of, place[len(kept) :],
        np.arange(len(new_ids), dtype=np.int64), sorted(gone),
    )  # fmt: skip


def _change_lexical(
    was: Path, folder: Path, chunks: Chunks | None, plan: _Plan, options: Options,
    notes: list[str], progress: Progress,
) -> None:  # fmt: skip
    """Write additions and deletions into a copy of the tantivy index."""
    lexical.link(was / lexical.FOLDER, folder / lexical.FOLDER)
    if chunks is None:
        lexical.write(folder / lexical.FOLDER, [], None, [], [], delete=plan.gone)
        return
    if chunks.texts is None:
        raise InputError(
            chunks.where, "no column text", "texts, as the index searches them", "add the column"
        )
    lexical.write(
        folder / lexical.FOLDER, chunks.ids.to_pylist(),
        None if chunks.titles is None else chunks.titles.to_pylist(), chunks.texts.to_pylist(),
        analysed(options.analyzer, chunks.sources(), notes), delete=plan.gone, progress=progress,
    )  # fmt: skip


def _stored_texts(folder: Path, merged: pa.Table) -> tuple[pa.Array | None, pa.Array]:
    """Titles and texts of all documents, in the order of the index, from tantivy."""
    held = lexical.stored(folder / lexical.FOLDER)
    pairs = [held[name] for name in merged["chunk_id"].to_pylist()]
    titles = [title for title, _ in pairs]
    texts = pa.array([text for _, text in pairs], pa.large_string())
    return (pa.array(titles, pa.large_string()) if any(titles) else None), texts


def _merge_vectors(
    index: Path, was: Path, old: dict[str, Any], chunks: Chunks | None, plan: _Plan
) -> np.ndarray[Any, Any]:
    """Vectors of the merged documents."""
    before = store.mapped(was / store.VECTORS)
    dim = old["dense"]["dim"]
    out = np.empty((plan.merged.num_rows, dim), before.dtype)
    kept = plan.row_of >= 0
    out[plan.row_of[kept]] = before[kept]
    if chunks is None or not plan.added.size:
        return out
    if chunks.vectors is None or chunks.vectors.shape[1] != dim:
        found = "no vectors" if chunks.vectors is None else f"{chunks.vectors.shape[1]} dimensions"
        raise InputError(
            chunks.where, found, f"vectors of {dim} dimensions, as {index} has",
            f"embed them as the index was: {old['dense']['embedding']}",
        )  # fmt: skip
    out[plan.added] = chunks.vectors[plan.source]
    return out
