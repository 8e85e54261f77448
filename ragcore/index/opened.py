"""An index directory, opened: verified, and each part read when it is first needed."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ragcore.errors import InputError, UsageError
from ragcore.index import manifest as manifests
from ragcore.index import store
from ragcore.index.chunks import read_chunks
from ragcore.index.numbered import Numbered
from ragcore.index.options import Options, options_of, read_documents

if TYPE_CHECKING:
    from ragcore.index.dense import Graph
    from ragcore_kernels.knn import ExactIndex


class Index(Numbered):
    """What `open_index` gives: the parts of an index, by row.

    Attributes
    ----------
    path, manifest : where it lies, what it says of itself.
    options : what it was built with.
    """

    def __init__(self, path: Path, folder: Path, manifest: dict[str, Any]) -> None:
        self.path, self.folder, self.manifest = path, folder, manifest
        self.options: Options = options_of(manifest)

    @property
    def generation(self) -> str:
        """Content hash of the index, as traces record it."""
        return self.manifest["generation"]

    @property
    def n_chunks(self) -> int:
        """Live chunks."""
        return self.manifest["corpus"]["n_chunks"]

    @cached_property
    def documents(self) -> pa.Table:
        """`chunk_id` and the other columns of the chunks, one row each."""
        return read_documents(self.folder)

    @property
    def has_text(self) -> bool:
        """Whether BM25 can search it."""
        return "lexical" in self.manifest

    @property
    def has_vectors(self) -> bool:
        """Whether dense search can."""
        return "dense" in self.manifest

    @property
    def has_graph(self) -> bool:
        """Whether approximate search can."""
        return "hnsw" in self.manifest

    @cached_property
    def dictionary(self) -> store.Dictionary:
        """Terms and postings.

        Raises
        ------
        UsageError
            If the chunks had no text.
        """
        if not self.has_text:
            raise UsageError(
                f"{self.path} has no texts to search", "its chunks had only vectors: search dense"
            )
        return store.load_postings(self.folder)

    @cached_property
    def vectors(self) -> np.ndarray[Any, Any]:
        """(n, d) float32 or float16, mapped.

        Raises
        ------
        UsageError
            If the chunks had none.
        """
        if not self.has_vectors:
            raise UsageError(
                f"{self.path} has no vectors",
                "build it from chunks with a column vector, with --vectors FILE, or with --embed",
            )
        return store.mapped(self.folder / store.VECTORS)

    @cached_property
    def exact(self) -> ExactIndex:
        """Exact search over the vectors."""
        from ragcore_kernels.knn import ExactIndex

        # A mapped float16 matrix would be widened again for every question.
        return ExactIndex(np.ascontiguousarray(self.vectors, np.float32), self.options.metric)

    @cached_property
    def graph(self) -> Graph:
        """Approximate search over the vectors.

        Raises
        ------
        UsageError
            If none was built, or hnswlib is not installed.
        """
        if not self.has_graph:
            raise UsageError(
                f"{self.path} has no HNSW graph",
                "build it with --hnsw, or search exactly: --strategy dense-exact",
            )
        from ragcore.index.dense import Graph

        return Graph.load(self.folder, self.options.metric, self.vectors.shape[1])


def open_index(
    path: str | PathLike[str], *, verify: bool = False, chunks: str | PathLike[str] | None = None
) -> Index:
    """The index in the directory `path`, its manifest and the sizes of its files verified.

    Parameters
    ----------
    verify : also the SHA-256 of every file.
    chunks : the corpus that it should hold; another one is refused.

    Raises
    ------
    InputError
        If it is none, half written, of another version, damaged, or of another corpus.
    """
    index = Path(path)
    manifest = manifests.read_manifest(index)
    folder = manifests.verify(index, manifest, verify)
    if chunks is not None:
        check_corpus(index, manifest, chunks)
    return Index(index, folder, manifest)


def check_corpus(index: Path, manifest: dict[str, Any], chunks: str | PathLike[str]) -> None:
    """Refuse an index whose corpus is not that of a chunks file.

    Raises
    ------
    InputError
        Naming both hashes and numbers of chunks.
    """
    said = manifest["corpus"]
    given = read_chunks(chunks, said["text_column"], said["title_column"])
    found = given.corpus_hash()
    if said["text_column"] and found != said["sha256"]:
        raise InputError(
            index, f"an index of {said['n_chunks']} chunks, sha256 {said['sha256'][:12]}…",
            f"that of {chunks}: {given.documents.num_rows} chunks, sha256 {found[:12]}…",
            f"the corpus has changed under its index: ragcore index {chunks} -o {index}",
        )  # fmt: skip
