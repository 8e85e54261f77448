"""HNSW through hnswlib, the one place that imports it: build, append, delete, search.

hnswlib reports squared distances, and 1 - similarity; here every list is ids alone, and whoever
wants scores computes them exactly (`ragcore_kernels.knn`). What hnswlib answers with an exception,
too few results, is answered here with as many as there are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ragcore.errors import InputError, UsageError
from ragcore.index.options import GraphSettings
from ragcore.progress import Progress, no_progress
from ragcore_kernels.layout import I64

FILE, SLOTS = "hnsw.bin", "hnsw-slots.npy"
STEP = 2_000
"""Vectors added at a time, so that there is progress to show."""


def _hnswlib() -> Any:
    try:
        import hnswlib
    except ImportError:
        raise UsageError(
            "HNSW needs hnswlib, which is not installed",
            "pip install 'ragcore[ann]' (it is built at install, with a C++ compiler); exact "
            "search (--strategy dense-exact) does without",
        ) from None
    return hnswlib


def available() -> bool:
    """Whether hnswlib is installed."""
    from importlib.util import find_spec

    return find_spec("hnswlib") is not None


class Graph:
    """An HNSW graph over rows of a matrix; `slots` maps its labels to rows, -1 for deleted ones."""

    def __init__(self, handle: Any, slots: I64) -> None:
        self._handle, self.slots = handle, slots
        self.n_live = int((slots >= 0).sum())

    @staticmethod
    def build(
        vectors: np.ndarray[Any, Any], metric: str, settings: GraphSettings,
        progress: Progress = no_progress,
    ) -> Graph:  # fmt: skip
        """Build the graph of all rows, which are finite."""
        n, dim = vectors.shape
        handle = _hnswlib().Index(space=metric, dim=dim)
        handle.init_index(
            max_elements=max(n, 1), ef_construction=settings.ef_construction, M=settings.M,
            random_seed=settings.seed,
        )  # fmt: skip
        graph = Graph(handle, np.arange(n, dtype=np.int64))
        _add(handle, vectors, np.arange(n, dtype=np.int64), settings.threads, progress)
        return graph

    @staticmethod
    def load(folder: Path, metric: str, dim: int) -> Graph:
        """The graph that `save` has written into a folder.

        Raises
        ------
        InputError, UsageError
            If it is damaged; if hnswlib is not installed.
        """
        handle = _hnswlib().Index(space=metric, dim=dim)
        slots = np.load(folder / SLOTS)
        try:
            handle.load_index(str(folder / FILE), max_elements=max(len(slots), 1))
        except RuntimeError as error:
            raise InputError(
                folder / FILE, str(error), "a graph as hnswlib writes it", "build the index again"
            ) from None
        return Graph(handle, slots)

    def save(self, folder: Path) -> None:
        """Write the graph and its slots into a folder."""
        self._handle.save_index(str(folder / FILE))
        np.save(folder / SLOTS, self.slots)

    def renumbered(
        self, row_of: I64, vectors: np.ndarray[Any, Any], added: I64, threads: int,
        progress: Progress = no_progress,
    ) -> Graph:  # fmt: skip
        """The graph after a change of the corpus: as a production graph ages, not built anew.

        Parameters
        ----------
        row_of : new row of each old row, -1 = deleted.
        vectors, added : the new matrix, and its rows that are not in the graph yet.
        """
        slots = np.where(self.slots >= 0, row_of[self.slots], -1)
        for label in np.flatnonzero((self.slots >= 0) & (slots < 0)).tolist():
            self._handle.mark_deleted(label)
        first = len(slots)
        if added.size:
            self._handle.resize_index(first + added.size)
            labels = np.arange(first, first + added.size, dtype=np.int64)
            _add(self._handle, vectors[added], labels, threads, progress)
        return Graph(self._handle, np.concatenate([slots, added]).astype(np.int64))

    def search(
        self, queries: np.ndarray[Any, Any], k: int, ef: int, threads: int = 1
    ) -> tuple[np.ndarray[Any, Any], I64]:
        """Rows of approximate neighbours, and how many each query has.

        Parameters
        ----------
        queries : (m, d) float32, finite.
        k : wanted; fewer where the graph has, or reaches, fewer.
        ef : size of the list that the search keeps, at least k in effect.

        Returns
        -------
        rows : (m, k) int32, nearest first by hnswlib, -1 beyond the count.
        counts : (m,)
        """
        m = len(queries)
        rows, counts = np.full((m, k), -1, np.int32), np.zeros(m, np.int64)
        want = min(k, self.n_live)
        if want == 0 or m == 0:
            return rows, counts
        self._handle.set_ef(max(ef, want))
        found = self._query(queries, want, threads)
        if found is not None:
            rows[:, :want], counts[:] = self.slots[found], want
            return rows, counts
        for i in range(m):  # some query reaches fewer than `want`: ask for less, one by one
            ids = self._reachable(queries[i : i + 1], want, ef)
            rows[i, : ids.size], counts[i] = self.slots[ids], ids.size
        return rows, counts

    def _query(self, queries: np.ndarray[Any, Any], k: int, threads: int) -> I64 | None:
        try:
            return self._handle.knn_query(queries, k=k, num_threads=threads)[0].astype(np.int64)
        except RuntimeError:  # fewer than k were found
            return None

    def _reachable(self, query: np.ndarray[Any, Any], k: int, ef: int) -> I64:
        """As many neighbours of one query as a search finds: a wider list first, then a lower k."""
        for wider in (4 * max(ef, k), len(self.slots)):
            self._handle.set_ef(wider)
            found = self._query(query, k, 1)
            if found is not None:
                self._handle.set_ef(max(ef, k))
                return found[0]
        low, high, best = 0, k, np.empty(0, np.int64)
        while low < high - 1:
            middle = (low + high) // 2
            found = self._query(query, middle, 1)
            if found is None:
                high = middle
            else:
                low, best = middle, found[0]
        self._handle.set_ef(max(ef, k))
        return best


def _add(
    handle: Any, vectors: np.ndarray[Any, Any], labels: I64, threads: int, progress: Progress
) -> None:
    for begin in range(0, len(labels), STEP):
        part = slice(begin, begin + STEP)
        handle.add_items(vectors[part].astype(np.float32), labels[part], num_threads=threads)
        progress("building HNSW", min(begin + STEP, len(labels)), len(labels))
