"""Exact scores of given pairs: what an approximate search returns, put in the one order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.knn import METRICS, ExactIndex
from ragcore_kernels.knn_scores import F32, score_of, survey
from ragcore_kernels.layout import F64, I64, frozen


@kernel
def score_pairs(
    vectors: F32, norms: F64, queries: F32, q_norms: F64, query_of: I64, metric: int, out: F64
) -> None:
    """Score of each vector with the query that it was found for.

    Parameters
    ----------
    vectors, norms : (n, d) and (n,), one row a pair.
    queries, q_norms : (m, d) and (m,).
    query_of : (n,), query of each pair.
    metric : place in `knn.METRICS`.
    out : (n,), filled.
    """
    for i in range(out.size):
        q = query_of[i]
        out[i] = score_of(vectors, i, norms[i], queries, q, q_norms[q], metric)


def ordered(
    index: ExactIndex, queries: NDArray[Any], rows: NDArray[Any], counts: I64
) -> tuple[NDArray[np.int32], F64]:
    """Lists of rows with their exact scores, by score descending, then row ascending.

    Parameters
    ----------
    index : whose vectors and metric count.
    queries : (m, d), finite.
    rows : (m, k), vectors found for each query; what stands beyond `counts` is ignored.
    counts : (m,), how many each query has.

    Returns
    -------
    rows : (m, k) int32, -1 beyond the count.
    scores : (m, k), as `ExactIndex.search` computes them, to the last bit; -inf beyond the count.
    """
    m, k = rows.shape
    inside = np.arange(k) < counts[:, None]
    chosen = rows[inside].astype(np.int64)
    query_of = np.repeat(np.arange(m, dtype=np.int64), counts)
    asked = frozen(queries, np.float32)
    q_norms = np.empty(m)
    survey(asked, q_norms)
    found = np.empty(chosen.size)
    score_pairs(
        frozen(index.vectors[chosen], np.float32), index.norms[chosen], asked, q_norms, query_of,
        METRICS.index(index.metric), found,
    )  # fmt: skip
    order = np.lexsort((chosen, -found, query_of))
    out, scores = np.full((m, k), -1, np.int32), np.full((m, k), -np.inf)
    out[inside], scores[inside] = chosen[order], found[order]
    return out, scores
