"""A thorough check of an index: every file's hash, and the postings once more from tantivy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ragcore.errors import InputError
from ragcore.index import lexical, store
from ragcore.index.build import renumbered
from ragcore.index.opened import open_index
from ragcore.progress import Progress, no_progress


def check_index(path: Path, progress: Progress = no_progress) -> Iterator[str]:
    """Check an index, part by part, and say what was found whole.

    Raises
    ------
    InputError
        Naming the first part that is not.
    """
    progress("hashing", 0, 1)
    index = open_index(path, verify=True)
    files = index.manifest["files"]
    size = sum(record["bytes"] for record in files.values())
    yield f"{len(files)} files, {size:,} bytes: sizes and SHA-256 as written"
    if index.has_text:
        progress("decoding", 0, 1)
        found = lexical.read(
            index.folder / lexical.FOLDER, index.options.analyzer.batch, verify=True
        )
        again, _ = renumbered(index.folder, found, index.ids.to_pylist())
        held = index.dictionary
        for name, one, other in (
            (store.TERMS, held.offsets, again.offsets),
            (store.BYTES, held.data, again.data),
            (store.OFFSETS, held.collection.offsets, again.collection.offsets),
            (store.ROWS, held.collection.docs, again.collection.docs),
            (store.TFS, held.collection.tfs, again.collection.tfs),
            (store.LENGTHS, held.collection.lengths, again.collection.lengths),
        ):
            if not np.array_equal(one, other):
                raise InputError(
                    index.folder / name, "other postings than tantivy holds", "the same",
                    "build the index again",
                )  # fmt: skip
        n = held.collection.docs.size
        how = "the stored texts" if found.from_text else "tantivy's segment files"
        yield f"{n:,} postings equal those of {how}, checksums included"
    if index.has_vectors:
        found_zero = int((~np.asarray(index.vectors).any(1)).sum())
        n, dim = index.vectors.shape
        yield f"{n:,} vectors of {dim}, {found_zero} of them zero"
    if index.has_graph:
        graph = index.graph
        yield f"HNSW: {graph.n_live:,} nodes live, {len(graph.slots) - graph.n_live:,} deleted"
