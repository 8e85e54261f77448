"""BM25 the plain way: one sum for every document, and a heap of the best.

This is the reference that the fast kernel has to equal, bit for bit, and the kernel for small
collections and for what the fast one does not take.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]


@inline
def impact(tf: float, norm: float, factor: float, extra: float, curve: F64) -> Any:
    """What a term gives a document: computed in float64, rounded to float32 once."""
    return np.float32(factor * ((tf + curve[0] * norm) / (tf + curve[1] * norm)) + extra)


@inline
def is_worse(score: float, doc: int, than_score: float, than_doc: int) -> Any:
    """Whether (score, doc) comes after the other: a lower score, or the same and a later doc."""
    return score < than_score or (score == than_score and doc > than_doc)


@inline
def sift(docs: I32, scores: F32, at: int, n: int) -> None:
    """Restore the heap of `n` pairs, worst first, below place `at`."""
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and is_worse(
            scores[child + 1], docs[child + 1], scores[child], docs[child]
        ):
            child += 1
        if not is_worse(scores[child], docs[child], scores[at], docs[at]):
            return
        scores[at], scores[child] = scores[child], scores[at]
        docs[at], docs[child] = docs[child], docs[at]
        at = child


@kernel
def find_fault(offsets: I64, docs: I32, tfs: I32, n_docs: int, terms: I64) -> int:
    """Position in `terms` of the first list that breaks the contract, or -1.

    Parameters
    ----------
    offsets : (n_terms + 1,), checked.
    docs, tfs : (n_postings,), documents and counts.
    n_docs : number of documents.
    terms : (n,), lists to look at.

    Returns
    -------
    The first list whose documents do not ascend inside 0..n_docs - 1, or with a count below 1.
    """
    for i in range(terms.size):
        last = -1
        for p in range(offsets[terms[i]], offsets[terms[i] + 1]):
            if docs[p] <= last or docs[p] >= n_docs or tfs[p] < 1:
                return i
            last = docs[p]
    return -1


@kernel
def search_plain(
    offsets: I64, docs: I32, tfs: I32, norms: F64, slots: I64, factors: F64, curve: F64,
    q_offsets: I64, q_terms: I64, q_weights: F64, begin: int, end: int, eligible: U8,
    sums: F64, seen: U8, out_docs: I32, out_scores: F32, counts: I64,
) -> None:  # fmt: skip
    """The best documents of queries `begin` to `end`.

    Parameters
    ----------
    offsets : (n_terms + 1,), where the list of each term begins.
    docs, tfs : (n_postings,), documents (ascending in a list) and counts.
    norms : (n_docs,), ``1 - b + b * length / avgdl``.
    slots : (n_terms,), row of each term in `factors`.
    factors : (n, 2), factor and extra of the terms.
    curve : (2,), A and B of the formula.
    q_offsets : (n_queries + 1,), where each query begins.
    q_terms, q_weights : terms of the queries (-1: unknown) and their weights.
    begin, end : queries to answer.
    eligible : (n_docs,), 0 for documents that may not be found; empty: all may.
    sums, seen : (n_docs,), zeroed; zero again at the end.
    out_docs, out_scores : (n_queries, k), filled; -1 and 0 where there is nothing.
    counts : (n_queries,), how many were found.
    """
    k = out_docs.shape[1]
    for q in range(begin, end):
        for j in range(q_offsets[q], q_offsets[q + 1]):
            term = q_terms[j]
            weight = q_weights[j]
            if term < 0 or weight <= 0.0:
                continue
            factor = factors[slots[term], 0]
            extra = factors[slots[term], 1]
            for p in range(offsets[term], offsets[term + 1]):
                d = docs[p]
                value = impact(np.float64(tfs[p]), norms[d], factor, extra, curve)
                sums[d] += np.float64(value) * weight
                seen[d] = 1
        best_docs = out_docs[q]
        best_scores = out_scores[q]
        n = 0
        for d in range(norms.size):
            if seen[d] == 0:
                continue
            score = np.float32(sums[d])
            seen[d] = 0
            sums[d] = 0.0
            if k == 0 or (eligible.size > 0 and eligible[d] == 0):
                continue
            if n < k:
                best_docs[n] = d
                best_scores[n] = score
                n += 1
                if n == k:
                    for at in range(k // 2 - 1, -1, -1):
                        sift(best_docs, best_scores, at, k)
            elif is_worse(best_scores[0], best_docs[0], score, d):
                best_docs[0] = d
                best_scores[0] = score
                sift(best_docs, best_scores, 0, k)
        counts[q] = n
        if n < k:
            for at in range(n // 2 - 1, -1, -1):
                sift(best_docs, best_scores, at, n)
        for last in range(n - 1, 0, -1):  # the worst of what is left goes to the end
            best_docs[0], best_docs[last] = best_docs[last], best_docs[0]
            best_scores[0], best_scores[last] = best_scores[last], best_scores[0]
            sift(best_docs, best_scores, 0, last)
        for at in range(n, k):
            best_docs[at] = -1
            best_scores[at] = 0.0
