"""Counts behind the claim measures: matrices of verdicts, read once a ranking.

Of each ranking there are answer claims, reference claims and the chunks that were shown. Cells
hold what `ragcore_kernels.verdicts` leaves: only `YES` is true; a reason in place of a verdict
counts as false here, and `verdicts.summarise` says which rankings have one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.verdicts import CONTRADICTS, YES

(
    CORRECT, CONTRADICTED, FAITHFUL, SELF_KNOWLEDGE, NOISE_RELEVANT, NOISE_IRRELEVANT,
    HALLUCINATED, COVERED, RECALLED, USED, USEFUL,
) = range(11)  # fmt: skip
"""Columns of what `tally` counts: answer claims first, then reference claims, then chunks."""
FIELDS = 11


@kernel
def tally(
    begin: int, end: int, answers: I64, references: I64, shown: I64, by_answer: I64,
    by_reference: I64, correct: Any, covered: Any, entails: Any, entails_reference: Any,
    useful: Any, counts: Any,
) -> None:  # fmt: skip
    """Count the claims of each ranking by what the reference and the chunks say of them.

    A chunk is useful if it entails a reference claim. A wrong claim that useful and other chunks
    entail is noise of the useful ones alone.

    Parameters
    ----------
    begin, end : rankings to do.
    answers, references, shown : (n + 1,) offsets of answer claims, reference claims, chunks.
    by_answer, by_reference : (n + 1,) offsets of the two matrices, claims x chunks row by row.
    correct : flat over answer claims, int8: entailed by the reference.
    covered : flat over reference claims, int8: entailed by the answer.
    entails, entails_reference : the matrices, int8: an answer claim, a reference claim by a chunk.
    useful : flat over chunks, int8, filled with 0 or 1.
    counts : (n, FIELDS) int32, filled.

    References
    ----------
    Ru et al., RAGChecker, NeurIPS 2024 Datasets and Benchmarks.
    """
    for i in range(begin, end):
        first, width = shown[i], shown[i + 1] - shown[i]
        out = counts[i]
        for f in range(FIELDS):
            out[f] = 0
        for c in range(first, first + width):
            useful[c] = 0
        at = by_reference[i]
        for k in range(references[i], references[i + 1]):
            recalled = np.int8(0)
            for c in range(width):
                yes = np.int8(entails_reference[at + c] == YES)
                useful[first + c] |= yes
                recalled |= yes
            at += width
            taken = np.int8(covered[k] == YES)
            out[COVERED] += taken
            out[RECALLED] += recalled
            out[USED] += taken & recalled
        for c in range(first, first + width):
            out[USEFUL] += useful[c]
        at = by_answer[i]
        for k in range(answers[i], answers[i + 1]):
            faithful, relevant = np.int8(0), np.int8(0)
            for c in range(width):
                yes = np.int8(entails[at + c] == YES)
                faithful |= yes
                relevant |= yes & useful[first + c]
            at += width
            right = np.int8(correct[k] == YES)
            wrong = np.int8(1) - right
            out[CORRECT] += right
            out[CONTRADICTED] += np.int8(correct[k] == CONTRADICTS)
            out[FAITHFUL] += faithful
            out[SELF_KNOWLEDGE] += right & (np.int8(1) - faithful)
            out[NOISE_RELEVANT] += wrong & relevant
            out[NOISE_IRRELEVANT] += wrong & faithful & (np.int8(1) - relevant)
            out[HALLUCINATED] += wrong & (np.int8(1) - faithful)


@kernel
def average_precision(begin: int, end: int, shown: I64, useful: Any, over: F64, under: F64) -> None:
    """Average precision of each ranking's list over the useful chunks that it has.

    Parameters
    ----------
    begin, end : rankings to do.
    shown : (n + 1,) offsets of the lists.
    useful : flat, 1 for a useful chunk, else 0.
    over, under : (n,), filled: sum of the precisions at useful ranks; how many there are. Without
        any they are 0 and 1; of an empty list 0 and 0. A perfect list gives exactly 1.
    """
    for i in range(begin, end):
        total, hits = 0.0, 0
        for c in range(shown[i], shown[i + 1]):
            if useful[c] == 1:
                hits += 1
                total += hits / (c - shown[i] + 1)
        over[i] = total
        under[i] = hits if hits > 0 else min(shown[i + 1] - shown[i], 1)


@kernel
def marked(
    begin: int, end: int, claims: I64, shown: I64, offsets: I64, covered: Any, entails: Any,
    mark: Any, counts: Any,
) -> None:  # fmt: skip
    """Reference claims with a mark: how many, covered by the answer, entailed by a chunk, both.

    Parameters
    ----------
    begin, end : rankings to do.
    claims, shown : (n + 1,) offsets of reference claims and chunks.
    offsets : (n + 1,) of the matrix, claims x chunks row by row.
    covered, entails : int8, flat over the claims, and the matrix.
    mark : flat over the claims, int8, 1 for those to count.
    counts : (n, 4) int32, filled.
    """
    for i in range(begin, end):
        width, at = shown[i + 1] - shown[i], offsets[i]
        out = counts[i]
        for f in range(4):
            out[f] = 0
        for k in range(claims[i], claims[i + 1]):
            recalled = np.int8(0)
            for c in range(width):
                recalled |= np.int8(entails[at + c] == YES)
            at += width
            taken = np.int8(covered[k] == YES)
            out[0] += mark[k]
            out[1] += mark[k] & taken
            out[2] += mark[k] & recalled
            out[3] += mark[k] & taken & recalled
