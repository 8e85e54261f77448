"""Approximate lists of neighbours against exact ones, query by query, from one exact pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore.errors import UsageError
from ragcore.threads import run_split
from ragcore_kernels.knn import METRICS, ExactIndex, Neighbours
from ragcore_kernels.layout import frozen
from ragcore_kernels.neighbours import COUNTS, DELETED, INELIGIBLE, compare_neighbours, find_selves

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

EPS = 1e-6
"""Ties are scores within this of the exact k-th score, relative to it."""

PADDING = -1
GATHERED = 256
"""Queries whose float16 vectors are turned to float32 at a time."""

Lists = NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]
"""Rows of approximate lists: (m, w) with padding, or offsets (m + 1,) and rows (CSR)."""


@dataclass(frozen=True)
class ListComparison:
    """What the lists of m queries are worth; every array is (m,).

    Attributes
    ----------
    k, eps : entries of a list that count; see `EPS`.
    wanted : exact neighbours that there are, at most k: the denominator of recall. 0 where no
        vector is eligible or the query is not finite; recall is then NaN.
    listed : entries that are no padding.
    missing : exact neighbours beyond the distinct rows listed; a list with any is short.
    duplicates, ineligible, deleted, unknown : entries that repeat a row, may not be found, were
        deleted, are no row of the matrix. None of them is a hit.
    hits_id, hits_distance : entries among the exact rows; entries whose score, taken anew in
        float64, is at least ``s_k - eps |s_k|``, s_k the exact k-th score.
    wanted_distinct, hits_distinct : distinct vectors of the exact list, and how many of them are
        listed. Vectors that tie with s_k stand for each other, as many as the exact list has; so
        that copies of one vector at the end of a list do not count for those at its head.
    tie_at_k : whether an eligible vector beyond the k-th ties with it, as far as the exact rows
        (one more than k shows it) or the list tell.
    gap : mean of exact less listed score, rank by rank, over the ranks that the list has; at least
        0, NaN where there is none or scores were not taken.
    scored : whether scores were taken; without them all that says ``distance``, ``distinct``,
        ``tie`` and ``gap`` is unknown, and its recall is NaN.
    """

    k: int
    eps: float
    scored: bool
    wanted: I64
    listed: I64
    missing: I64
    duplicates: I64
    ineligible: I64
    deleted: I64
    unknown: I64
    hits_id: I64
    hits_distance: I64
    hits_distinct: I64
    wanted_distinct: I64
    tie_at_k: I64
    gap: F64

    @property
    def n_queries(self) -> int:
        """Queries compared, those without an exact neighbour included."""
        return int(self.wanted.size)

    @property
    def id_recall(self) -> F64:
        """Exact rows that are listed, over `wanted`."""
        return _over(self.hits_id, self.wanted)

    @property
    def distance_recall(self) -> F64:
        """Rows listed that are as near as the exact k-th, over `wanted`."""
        return _over(self.hits_distance if self.scored else None, self.wanted)

    @property
    def distinct_recall(self) -> F64:
        """Distinct exact vectors that are listed, over `wanted_distinct`."""
        return _over(self.hits_distinct if self.scored else None, self.wanted_distinct)

    def parts(self, measure: str) -> tuple[I64, I64]:
        """Numerators and denominators of ``id``, ``distance`` or ``distinct`` recall.

        Raises
        ------
        UsageError
            If there is no such recall, or scores were not taken for it.
        """
        if measure not in ("id", "distance", "distinct"):
            raise UsageError(f"recall {measure!r}", "one of id, distance, distinct")
        if measure != "id" and not self.scored:
            raise UsageError(f"{measure} recall needs vectors", "give vectors and queries")
        wanted = self.wanted_distinct if measure == "distinct" else self.wanted
        return getattr(self, f"hits_{measure}"), wanted

    @property
    def totals(self) -> dict[str, int]:
        """Sums over queries of all that is counted, and how many lists are short."""
        found = {name: int(getattr(self, name).sum()) for name in COUNTS}
        return found | {"short_lists": int((self.missing > 0).sum())}


def _over(hits: I64 | None, wanted: I64) -> F64:
    out = np.full(wanted.size, np.nan)
    if hits is not None:
        np.divide(hits, wanted, out=out, where=wanted > 0)
    return out


def exact_pass(
    index: ExactIndex, queries: NDArray[Any], ks: Sequence[int], *,
    eligible: NDArray[Any] | None = None, threads: int = 1,
) -> Neighbours:  # fmt: skip
    """Exact neighbours for every k of `ks`: one pass with the greatest, and one row more.

    The row beyond the greatest k shows whether something ties with it. The first k columns are the
    exact neighbours for k, so that one pass serves every k, every ef and every slice of queries
    that shares `eligible`.
    """
    if not ks or min(ks) < 1:
        raise UsageError(f"k of {list(ks)}", "one or more numbers from 1 on")
    return index.search(queries, max(ks) + 1, eligible=eligible, threads=threads)


def as_csr(lists: Lists) -> tuple[I64, I64]:
    """Offsets and rows of lists, (m + 1,) and flat.

    Raises
    ------
    UsageError
        If they are neither a matrix of whole numbers nor offsets that rise, and rows.
    """
    if isinstance(lists, tuple):
        offsets, rows = (np.asarray(part) for part in lists)
        if offsets.ndim != 1 or offsets.size == 0 or rows.ndim != 1:
            raise UsageError("lists that are neither (m, w) nor offsets (m + 1,) and rows")
        steps = np.diff(offsets.astype(np.int64))
        if (steps < 0).any() or offsets[0] < 0 or offsets[-1] > rows.size:
            raise UsageError("offsets of lists that fall, or reach beyond the rows")
    else:
        rows = np.asarray(lists)
        if rows.ndim != 2:
            raise UsageError(f"lists of shape {rows.shape}", "(m, w), or offsets and rows")
        offsets = np.arange(len(rows) + 1) * rows.shape[1]
        rows = rows.reshape(-1)
    if rows.dtype.kind not in "iu":
        raise UsageError(f"rows of lists of type {rows.dtype}", "whole numbers")
    if rows.dtype == np.uint64:  # -1 comes as the greatest, as a label of hnswlib or faiss does
        rows = rows.view(np.int64) if rows.flags.c_contiguous else rows.astype(np.int64)
    return frozen(offsets, np.int64), frozen(rows, np.int64)


def compare_lists(
    exact: Neighbours | NDArray[Any], lists: Lists, k: int, *,
    vectors: NDArray[Any] | None = None, queries: NDArray[Any] | None = None,
    metric: str = "cosine", n: int | None = None, eps: float = EPS, padding: int = PADDING,
    eligible: NDArray[Any] | None = None, deleted: NDArray[Any] | None = None, threads: int = 1,
) -> ListComparison:  # fmt: skip
    """Compare approximate lists with the exact neighbours of the same queries.

    Parameters
    ----------
    exact : of `exact_pass`, with k columns or more; or only rows (m, K), -1 for none, where there
        are no vectors.
    lists : rows that an approximate index gave; see `Lists`. Their first k entries that are no
        padding count.
    k : >= 1.
    vectors, queries, metric : that `exact` was searched with; both arrays or neither. Without them
        ids are compared, and nothing else.
    n : rows of the matrix, if there are no vectors; else the greatest row met, and one.
    eps : see `EPS`.
    padding : entry that is none. A negative row is none that is known in any case.
    eligible, deleted : (n,) bool, rows that may be found; rows that were deleted, which may not.
        `exact` must have been searched without these.
    threads : queries are split over them; results do not depend on it.

    Raises
    ------
    UsageError
        If shapes or numbers do not fit each other.
    """
    found = exact if isinstance(exact, Neighbours) else _only_rows(np.asarray(exact))
    offsets, rows = as_csr(lists)
    m, depth = found.rows.shape
    if offsets.size != m + 1:
        raise UsageError(f"{offsets.size - 1} lists for {m} queries")
    if not k >= 1:
        raise UsageError(f"k = {k}", "at least 1")
    if depth < k and (found.counts >= depth).any():
        raise UsageError(f"exact neighbours for k = {depth}, lists for k = {k}", "search for more")
    if metric not in METRICS:
        raise UsageError(f"metric {metric!r}", f"one of {', '.join(METRICS)}")
    if (vectors is None) != (queries is None):
        raise UsageError("vectors without queries, or queries without vectors")
    if vectors is not None and not isinstance(exact, Neighbours):
        raise UsageError("rows alone have no scores", "give the Neighbours of exact_pass")
    known = [int(a.max(initial=-1)) + 1 for a in (found.rows, rows)]
    size = len(vectors) if vectors is not None else max(known) if n is None else n
    if known[0] > size:
        raise UsageError(f"an exact row {known[0] - 1} in a matrix of {size} rows")
    status = _status(size, eligible, deleted)
    counts, gaps = np.zeros((m, len(COUNTS)), np.int64), np.full(m, np.nan)
    scored, asked = vectors is not None, frozen(np.zeros((m, 0)), np.float32)
    if vectors is not None and queries is not None:
        asked = _asked(queries, m, vectors)
    exact_rows = frozen(found.rows, np.int32)
    exact_scores = frozen(found.scores, np.float64)
    for begin, end in _blocks(vectors, m):
        met = exact_rows[begin:end].reshape(-1), rows[offsets[begin] : offsets[end]]
        matrix, place = _gathered(vectors, met)

        def look(a: int, b: int, start: int = begin, matrix: F32 = matrix, place: I64 = place):
            compare_neighbours(
                matrix, place, asked, METRICS.index(metric), int(scored), float(eps), k, exact_rows,
                exact_scores, offsets, rows, padding, status, start + a, start + b,
                np.full(size, -1), np.full(size, -1), np.empty(k, np.int64), np.empty(k),
                np.empty(k, np.int64), counts, gaps,
            )  # fmt: skip

        run_split(look, end - begin, threads)
    columns = {name: counts[:, i].copy() for i, name in enumerate(COUNTS)}
    return ListComparison(k=k, eps=eps, scored=scored, gap=gaps, **columns)


def _blocks(vectors: NDArray[Any] | None, m: int) -> list[tuple[int, int]]:
    """Stretches of queries; float16 vectors are turned to float32 for a few of them at a time."""
    if vectors is None or vectors.dtype == np.float32:
        return [(0, m)]
    return [(at, min(at + GATHERED, m)) for at in range(0, m, GATHERED)]


def _gathered(vectors: NDArray[Any] | None, met: Sequence[NDArray[Any]]) -> tuple[F32, I64]:
    """Float32 vectors of all rows that are met, and where in them each row is."""
    if vectors is None:
        return frozen(np.zeros((0, 0)), np.float32), np.empty(0, np.int64)
    if vectors.dtype == np.float32:
        return frozen(vectors, np.float32), np.empty(0, np.int64)
    used = np.unique(np.concatenate(met))
    used = used[(used >= 0) & (used < len(vectors))]
    place = np.full(len(vectors), -1)
    place[used] = np.arange(used.size)
    return frozen(vectors[used], np.float32), place


def _asked(queries: NDArray[Any], m: int, vectors: NDArray[Any]) -> F32:
    """Queries as an exact search takes them."""
    if vectors.ndim != 2 or vectors.dtype not in (np.float32, np.float16):
        raise UsageError(f"vectors of type {vectors.dtype}", "a matrix of float32 or float16")
    if np.shape(queries) != (m, vectors.shape[1]):
        raise UsageError(f"queries of shape {np.shape(queries)}", f"({m}, {vectors.shape[1]})")
    with np.errstate(over="ignore"):
        return frozen(queries, np.float32)


def _only_rows(rows: NDArray[Any]) -> Neighbours:
    """Rows without scores; what stands behind a hole is moved up."""
    if rows.ndim != 2 or rows.dtype.kind not in "iu":
        raise UsageError(f"exact rows of shape {rows.shape} and type {rows.dtype}", "(m, K), whole")
    held = rows >= 0
    order = np.argsort(~held, axis=1, kind="stable")
    moved = np.take_along_axis(np.where(held, rows, -1), order, 1).astype(np.int32)
    return Neighbours(moved, np.full(rows.shape, np.nan), held.sum(1))


def _status(
    n: int, eligible: NDArray[Any] | None, deleted: NDArray[Any] | None
) -> NDArray[np.uint8]:
    status = np.zeros(n, np.uint8)
    for mask, name in ((eligible, "eligible"), (deleted, "deleted")):
        if mask is not None and np.shape(mask) != (n,):
            raise UsageError(f"{name} of shape {np.shape(mask)}", f"({n},), one a row")
    if eligible is not None:
        status[~np.asarray(eligible, np.bool_)] = INELIGIBLE
    if deleted is not None:
        status[np.asarray(deleted, np.bool_)] = DELETED
    return status


@dataclass(frozen=True)
class SelfRecall:
    """Whether nodes are found by a search for their own vectors.

    Attributes
    ----------
    n : nodes searched for.
    itself, equal : nodes that found themselves; that found an equal vector only.
    unreachable : (u,), rows of the nodes that found neither.
    scored : whether vectors were compared; without, an equal vector is not known.
    """

    n: int
    itself: int
    equal: int
    unreachable: I64
    scored: bool

    @property
    def share(self) -> float:
        """Nodes that found themselves or an equal vector, over `n`; NaN without any."""
        return (self.itself + self.equal) / self.n if self.n else float("nan")


def self_recall(
    lists: Lists, nodes: NDArray[Any], *, n: int, vectors: NDArray[Any] | None = None,
    padding: int = PADDING,
) -> SelfRecall:  # fmt: skip
    """Share of nodes that a search for their own vectors finds.

    Parameters
    ----------
    lists : of the searches; see `Lists`.
    nodes : (m,), the row that each search was for.
    n : rows of the matrix.
    vectors : (n, d) float32 or float16, to know equal ones; a copy may stand for a node.
    padding : entry that is none.

    Raises
    ------
    UsageError
        If shapes do not fit each other.
    """
    offsets, rows = as_csr(lists)
    nodes = frozen(nodes, np.int64)
    if nodes.shape != (offsets.size - 1,):
        raise UsageError(f"{offsets.size - 1} lists for nodes of shape {nodes.shape}")
    if nodes.size and not (nodes.min() >= 0 and nodes.max() < n):
        raise UsageError(f"nodes outside a matrix of {n} rows")
    if vectors is not None and len(vectors) != n:
        raise UsageError(f"{len(vectors)} vectors for {n} rows")
    out = np.zeros(nodes.size, np.uint8)
    for begin, end in _blocks(vectors, nodes.size):
        part = nodes[begin:end]
        matrix, place = _gathered(vectors, (part, rows[offsets[begin] : offsets[end]]))
        find_selves(
            matrix, place, part, offsets[begin : end + 1], rows, padding, n,
            int(vectors is not None), out[begin:end],
        )  # fmt: skip
    return SelfRecall(
        nodes.size, int((out == 2).sum()), int((out == 1).sum()), nodes[out == 0],
        vectors is not None,
    )  # fmt: skip


def join(parts: Mapping[str, ListComparison]) -> tuple[ListComparison, dict[str, BOOL]]:
    """Comparisons of several shards or filters as one, and the queries of each as a slice.

    Every part has an exact pass and lists of its own, over what was eligible there.

    Raises
    ------
    UsageError
        If there is none, or they differ in k, eps or in whether scores were taken.
    """
    if not parts:
        raise UsageError("no comparison to join")
    first, *others = parts.values()
    alike = ("k", "eps", "scored")
    for other in others:
        if any(getattr(first, name) != getattr(other, name) for name in alike):
            raise UsageError("comparisons of different k, eps or kind", "compare them alike")
    joined = {
        f.name: np.concatenate([getattr(part, f.name) for part in parts.values()])
        for f in fields(ListComparison) if f.name not in alike
    }  # fmt: skip
    owner = np.repeat(np.arange(len(parts)), [part.n_queries for part in parts.values()])
    slices = {name: owner == i for i, name in enumerate(parts)}
    return ListComparison(k=first.k, eps=first.eps, scored=first.scored, **joined), slices
