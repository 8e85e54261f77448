"""Exact nearest neighbours of a float matrix: the order of a float64 scan, at the speed of float32.

A filter in float32, or in bytes where the processor has instructions for it, leaves out what
cannot be among the k nearest by a bound that is proved; the rest is scored in float64. So the result
is that of a float64 scan to the last bit, for any number of threads, queries or tiles.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels.knn_float import BLOCKS, bounds_float, pack_queries, scan_float
from ragcore_kernels.knn_select import F32, F64, I32, I64, finish, merge_best, survey
from ragcore_kernels.knn_tiles import GROUP, LANES

METRICS = ("ip", "cosine", "l2")
"""Scores: inner product; it over both norms; minus the *squared* distance. Greater is nearer.

Others put them differently: a distance is ``sqrt(-score)`` of ``l2``; faiss and hnswlib call
``-score`` l2; hnswlib's ``ip`` and ``cosine`` distances are ``1 - score``, and can be negative.
"""

METHODS = ("auto", "float32", "int8")

QUERIES = 768
"""Queries of a batch: vectors are packed once for all of them."""

CHUNK = 16_384
"""Vectors that are turned from float16 to float32 at a time."""

STATE_BYTES = 1 << 28
"""Room for what waits, a thread; for a great k a batch has fewer queries."""


@dataclass(frozen=True)
class Neighbours:
    """The k nearest vectors of each query.

    Attributes
    ----------
    rows : (m, k) int32, by score descending, then row ascending; -1 beyond `counts`.
    scores : (m, k), in float64; -inf beyond `counts`.
    counts : (m,) int64, how many were found: the least of k and what could be found; 0 for a query
        that is not finite.
    n_queries_not_finite : queries with NaN or an infinite number.
    """

    rows: I32
    scores: F64
    counts: I64
    n_queries_not_finite: int = 0


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


class _Work:
    """What a thread writes to while it looks at some of the vectors."""

    def __init__(self, m: int, k: int, d: int) -> None:
        groups = -(-m // GROUP)
        room = 4 * k + 128
        self.packed = np.empty(BLOCKS * d * LANES, np.float32)
        self.meta = np.zeros(BLOCKS * 4 * LANES, np.float32)
        self.scores = np.empty(GROUP * LANES, np.float32)
        self.masks = np.empty(GROUP, np.int64)
        self.limits = np.empty(groups * GROUP * 4, np.float32)
        self.bounds = np.empty((m, 4))
        self.best_scores = np.empty((m, k))
        self.best_rows = np.empty((m, k), np.int32)
        self.sizes = np.zeros((m, 3), np.int64)
        self.state = (
            self.limits, np.full(m, -np.inf), self.bounds, np.empty((m, k)), np.empty((m, room)),
            np.empty((m, room), np.int32), self.best_scores, self.best_rows, self.sizes,
        )  # fmt: skip


class ExactIndex:
    """Exact search over the rows of a matrix.

    Parameters
    ----------
    vectors : (n, d) float32 or float16, C-contiguous; a read-only memory map will do, and is not
        copied. float16 is turned to float32 piece by piece.
    metric : one of `METRICS`.
    method : ``float32``; ``int8``, which keeps a byte per number and needs AVX512-VNNI to be the
        faster; ``auto`` takes the faster. Results are the same to the last bit.

    Attributes
    ----------
    norms : (n,), NaN for a vector that is not finite.
    n_zero : zero vectors. Their cosine is 0 with everything, and they can be found.
    n_not_finite : vectors with NaN or an infinite number. They are never found.
    norm_range : least and greatest norm of the vectors that are finite and not zero; (0, 0) if
        there are none.

    Raises
    ------
    ValueError
        If the matrix, the metric or the method is not of that kind.
    """

    def __init__(self, vectors: NDArray[Any], metric: str = "cosine", method: str = "auto") -> None:
        if metric not in METRICS:
            raise ValueError(f"metric {metric!r}: expected one of {', '.join(METRICS)}")
        if method not in METHODS:
            raise ValueError(f"method {method!r}: expected one of {', '.join(METHODS)}")
        vectors = np.asarray(vectors)
        if vectors.ndim != 2 or vectors.dtype not in (np.float32, np.float16):
            raise ValueError(
                f"vectors of {vectors.ndim} dimensions and type {vectors.dtype}: expected a matrix "
                "of float32 or float16; .astype(np.float32) makes one"
            )
        if not (vectors.flags.c_contiguous and vectors.flags.aligned):
            raise ValueError("vectors are not C-contiguous: np.ascontiguousarray makes them so")
        if len(vectors) >= 1 << 31:
            raise ValueError(f"{len(vectors)} vectors: expected fewer than 2**31")
        self.vectors, self.metric = _frozen(vectors), metric
        self._metric = METRICS.index(metric)
        self.norms = np.empty(len(vectors))
        for begin, piece in self._pieces(0, len(vectors)):
            survey(piece, self.norms[begin : begin + len(piece)])
        finite = self.norms[~np.isnan(self.norms)]
        self.n_not_finite = len(vectors) - finite.size
        self.n_zero = int((finite == 0).sum())
        proper = finite[finite > 0]
        self.norm_range = (float(proper.min()), float(proper.max())) if proper.size else (0.0, 0.0)
        self.method = "float32"

    def _pieces(self, begin: int, end: int) -> Any:
        """Stretches of rows as read-only float32, and where each begins."""
        if self.vectors.dtype == np.float32:
            yield begin, self.vectors[begin:end]
            return
        for at in range(begin, end, CHUNK):
            yield at, _frozen(self.vectors[at : min(at + CHUNK, end)].astype(np.float32))

    def warnings(self) -> list[str]:
        """What a reader of the results must know of the vectors, in words."""
        said = []
        if self.n_zero:
            many = "s" * (self.n_zero > 1)
            said.append(f"{self.n_zero} zero vector{many}: cosine undefined, similarity 0")
        if self.n_not_finite:
            many = "s" * (self.n_not_finite > 1)
            said.append(f"{self.n_not_finite} non-finite vector{many} excluded")
        low, high = self.norm_range
        if self.metric == "ip" and high - low > 1e-3 * high:
            said.append("norms vary by more than 1e-3: inner product is not cosine")
        return said

    def search(
        self, queries: NDArray[Any], k: int, *, eligible: NDArray[Any] | None = None,
        threads: int = 1,
    ) -> Neighbours:  # fmt: skip
        """The k nearest vectors of every query.

        Parameters
        ----------
        queries : (m, d), taken as float32.
        k : >= 1; more than there are vectors is no error.
        eligible : (n,) bool or uint8, vectors that may be found; all by default.
        threads : that look at parts of the vectors.

        Raises
        ------
        ValueError
            If a shape or number does not fit.
        """
        queries, alive = self._checked(queries, k, eligible)
        m = len(queries)
        rows = np.full((m, k), -1, np.int32)
        scores = np.full((m, k), -np.inf)
        counts = np.zeros(m, np.int64)
        norms = np.empty(m)
        survey(_frozen(queries), norms)
        asked = np.flatnonzero(~np.isnan(norms))
        found = min(k, alive.size)
        if found:
            batch = max(1, min(QUERIES, STATE_BYTES // (12 * (4 * found + 128) + 20 * found)))
            for at in range(0, asked.size, batch):
                part = asked[at : at + batch]
                best = self._batch(queries[part], norms[part], found, alive, max(threads, 1))
                rows[part, :found], scores[part, :found] = best
                counts[part] = found
        return Neighbours(rows, scores, counts, m - asked.size)

    def _checked(
        self, queries: NDArray[Any], k: int, eligible: NDArray[Any] | None
    ) -> tuple[F32, I32]:
        """Queries as float32, and the rows that may be found."""
        n, d = self.vectors.shape
        queries = np.asarray(queries)
        if queries.ndim != 2 or queries.shape[1] != d:
            raise ValueError(f"queries of shape {queries.shape}: expected (m, {d})")
        if k < 1:
            raise ValueError(f"k = {k}: expected at least 1")
        finite = ~np.isnan(self.norms)
        if eligible is not None:
            eligible = np.asarray(eligible)
            if eligible.shape != (n,) or eligible.dtype not in (np.bool_, np.uint8):
                raise ValueError(
                    f"eligible of shape {eligible.shape} and type {eligible.dtype}: "
                    f"expected ({n},) bool or uint8"
                )
            finite &= eligible.astype(np.bool_)
        with np.errstate(over="ignore"):  # too great for float32 is not finite, and counted
            queries = np.ascontiguousarray(queries, np.float32)
        return queries, np.flatnonzero(finite).astype(np.int32)

    def _batch(self, queries: F32, norms: F64, k: int, alive: I32, threads: int) -> tuple[I32, F64]:
        """Rows and scores of finite queries; `k` vectors can be found."""
        queries = _frozen(np.ascontiguousarray(queries))
        m, d = queries.shape
        packed = np.empty(-(-m // GROUP) * GROUP * d, np.float32)
        pack_queries(queries, packed)
        cuts = [alive.size * i // threads for i in range(threads + 1)]
        parts = [(a, b) for a, b in pairwise(cuts) if b > a]

        def look(part: tuple[int, int]) -> _Work:
            work, mine = _Work(m, k, d), alive[part[0] : part[1]]
            bounds_float(norms, d, self._metric, work.limits, work.bounds)
            for at, piece in self._pieces(int(mine[0]), int(mine[-1]) + 1):
                a, b = np.searchsorted(mine, [at, at + len(piece)])
                scan_float(
                    piece, at, self.norms[at : at + len(piece)], mine[a:b] - np.int32(at), queries,
                    packed, self._metric, work.packed, work.meta, work.scores, work.masks,
                    *work.state,
                )  # fmt: skip
            return work

        if len(parts) == 1:
            works = [look(parts[0])]
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                works = list(pool.map(look, parts))
        best = works[0]
        for other in works[1:]:
            merge_best(
                best.best_scores, best.best_rows, best.sizes, other.best_scores, other.best_rows,
                other.sizes,
            )  # fmt: skip
        finish(best.best_scores, best.best_rows, best.sizes)
        return best.best_rows, best.best_scores
