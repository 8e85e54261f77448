"""Exact nearest neighbours of a float matrix: the order of a float64 scan, at the speed of float32.

A filter in float32, or in bytes where the processor has instructions for it, leaves out what
cannot be among the k nearest by a bound that is proved; the rest is scored in float64. So the
result is that of a float64 scan to the last bit, for any number of threads, queries or tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels.knn_float import BLOCKS, bounds_float, pack_queries, scan_exactly, scan_float
from ragcore_kernels.knn_int8 import (
    FOUR,
    MOST_DIMENSIONS,
    available,
    centre_of,
    code_queries,
    encode,
    scan_bytes,
)
from ragcore_kernels.knn_scores import F32, F64, survey
from ragcore_kernels.knn_select import HEAD, I32, I64, begin, finish, merge_best, width
from ragcore_kernels.knn_tiles import GROUP, LANES, SQUARE

METRICS = ("ip", "cosine", "l2")
"""Scores: inner product; it over both norms; minus the *squared* distance. Greater is nearer.

Others put them differently: a distance is ``sqrt(-score)`` of ``l2``; faiss and hnswlib call
``-score`` l2; hnswlib's ``ip`` and ``cosine`` distances are ``1 - score``, and can be negative.
"""

METHODS = ("auto", "float32", "int8")

QUERIES = 768
"""Queries of a batch: vectors are packed once for all of them."""

FEW = 1
"""So few queries are scored in float64 at once: to pack vectors for them would take longer."""

CHUNK = 16_384
"""Vectors that are turned from float16 to float32 at a time; whole tiles."""

SMALL = 4096
"""Below so many vectors codes are not worth making."""

SAMPLE = 4096
"""Vectors whose mean is the centre that codes are taken from."""

SPARSE = 4
"""Where fewer than one in so many may be found, these are packed; codes would be scanned whole."""

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


def _split(items: NDArray[Any], threads: int) -> list[NDArray[Any]]:
    """Contiguous parts, none of them empty."""
    cuts = [items.size * i // threads for i in range(threads + 1)]
    return [items[a:b] for a, b in pairwise(cuts) if b > a]


class _Room:
    """Where a thread packs vectors."""

    def __init__(self, d: int) -> None:
        self.packed = np.empty(BLOCKS * d * LANES, np.float32)
        self.meta = np.zeros(BLOCKS * 4 * LANES, np.float32)
        self.starts = np.empty(SQUARE, np.int64)


class _Work:
    """What a thread finds among its part of the vectors."""

    def __init__(self, norms: F64, k: int) -> None:
        self.scores = np.empty(GROUP * LANES, np.float32)
        self.masks = np.empty(GROUP, np.int64)
        self.limits = np.empty(-(-norms.size // GROUP) * GROUP * 4, np.float32)
        self.state = np.empty((norms.size, width(k)))
        begin(norms, self.limits, self.state)


_Part = Callable[[], _Work]
_Codes = tuple[NDArray[np.uint8], F32, F64]


class ExactIndex:
    """Exact search over the rows of a matrix.

    Parameters
    ----------
    vectors : (n, d) float32 or float16, C-contiguous; a read-only memory map will do, and is not
        copied. float16 is turned to float32 piece by piece.
    metric : one of `METRICS`.
    method : ``float32``; ``int8``, which keeps a byte per number besides and needs AVX512-VNNI, or
        else is float32; ``auto``, which takes the faster. Results are the same to the last bit.

    Attributes
    ----------
    method : that is used, ``float32`` or ``int8``.
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
        for at, piece in self._pieces(0, len(vectors)):
            survey(piece, self.norms[at : at + len(piece)])
        finite = self.norms[~np.isnan(self.norms)]
        self.n_not_finite = len(vectors) - finite.size
        self.n_zero = int((finite == 0).sum())
        proper = finite[finite > 0]
        self.norm_range = (float(proper.min()), float(proper.max())) if proper.size else (0.0, 0.0)
        small = method == "auto" and len(vectors) < SMALL
        bytes_fit = available() and 0 < vectors.shape[1] <= MOST_DIMENSIONS
        self.method = "int8" if bytes_fit and method != "float32" and not small else "float32"
        self._codes: _Codes | None = None
        if self.method == "int8":
            self._coded()

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
            batch = max(1, min(QUERIES, STATE_BYTES // (8 * width(found))))
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
        dense = SPARSE * alive.size >= len(self.vectors)
        look = self._bytes if self.method == "int8" and dense else self._floats
        parts = look(queries, norms, k, alive, threads)
        if len(parts) == 1:
            works = [parts[0]()]
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                works = list(pool.map(lambda part: part(), parts))
        best = works[0]
        for other in works[1:]:
            merge_best(best.state, other.state, k)
        scores, rows = np.empty((len(queries), k)), np.empty((len(queries), k), np.int32)
        finish(best.state, k, scores, rows)
        return rows, scores

    def _floats(self, queries: F32, norms: F64, k: int, alive: I32, threads: int) -> list[_Part]:
        """The search by inner products in float32, in parts of the vectors."""
        m, d = queries.shape
        few = m <= FEW
        packed = np.empty(-(-m // GROUP) * GROUP * d, np.float32)
        pack_queries(queries, packed)

        def look(mine: I32) -> _Work:
            work, room = _Work(norms, k), _Room(0 if few else d)
            bounds_float(d, self._metric, work.limits, work.state)
            for at, piece in self._pieces(int(mine[0]), int(mine[-1]) + 1):
                a, b = np.searchsorted(mine, [at, at + len(piece)])
                own, norm = mine[a:b] - np.int32(at), self.norms[at : at + len(piece)]
                if few:
                    scan_exactly(piece, at, norm, own, queries, self._metric, work.state, k)
                    continue
                scan_float(
                    piece, at, norm, own, queries, packed, self._metric, room.packed, room.meta,
                    work.scores, work.masks, room.starts, work.limits, work.state, k,
                )  # fmt: skip
            return work

        return [partial(look, part) for part in _split(alive, threads)]

    def _bytes(self, queries: F32, norms: F64, k: int, alive: I32, threads: int) -> list[_Part]:
        """The search by inner products of codes, in parts of the vectors."""
        m, d = queries.shape
        codes, meta, centre = self._coded()
        size = (1 + -(-d // FOUR)) * GROUP * FOUR
        words = np.empty(-(-m // GROUP) * size // FOUR, np.int32)
        asked = _Work(norms, 1)
        code_queries(
            queries, self._metric, centre, words.view(np.int8), words, asked.limits, asked.state
        )
        bits = np.zeros(meta.size // 4, np.bool_)
        bits[alive] = True
        masks = np.packbits(bits, bitorder="little").view("<u4").astype(np.int64)
        tiles = np.flatnonzero(masks)

        def look(mine: I64) -> _Work:
            work = _Work(norms, k)
            work.limits[:], work.state[:, :HEAD] = asked.limits, asked.state[:, :HEAD]
            end = min(LANES * int(mine[-1] + 1), len(self.vectors))
            for at, piece in self._pieces(LANES * int(mine[0]), end):
                a, b = np.searchsorted(mine, [at // LANES, -(-(at + len(piece)) // LANES)])
                scan_bytes(
                    piece, at, self.norms[at : at + len(piece)], mine[a:b], masks[mine[a:b]],
                    queries, codes, words, self._metric, meta, work.scores, work.masks,
                    work.limits, work.state, k,
                )  # fmt: skip
            return work

        return [partial(look, part) for part in _split(tiles, threads)]

    def _coded(self) -> _Codes:
        """Codes of all vectors, what they lose, and their centre; made when first asked for."""
        if self._codes is None:
            n, d = self.vectors.shape
            tiles = -(-n // LANES)
            codes = np.full(tiles * -(-d // FOUR) * LANES * FOUR, 128, np.uint8)
            meta = np.zeros(tiles * 4 * LANES, np.float32)
            some = np.arange(0, n, max(1, n // SAMPLE))
            centre = np.empty(d)
            sample = _frozen(np.ascontiguousarray(self.vectors[some], np.float32))
            centre_of(sample, self.norms[some], self._metric, centre)
            for at, piece in self._pieces(0, n):
                own = self.norms[at : at + len(piece)]
                encode(piece, at, own, self._metric, centre, codes, meta)
            self._codes = codes, meta, centre
        return self._codes
