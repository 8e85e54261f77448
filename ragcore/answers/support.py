"""Support of many answers by their citations: ALCE's scores and TREC RAG's, with house rules.

Both take verdicts that somebody else gave; nothing here judges. House rule and script differ in two
things, and `official` chooses: a citation that names no passage is unsupported, where the script
drops the whole sentence; and precision without any citation is `na`, where the script says 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore.answers.nuggets import codes_of, offsets_of, quotient_values
from ragcore.errors import UsageError
from ragcore_kernels import support as kernel

NO, YES, DANGLING = kernel.NO, kernel.YES, kernel.DANGLING
"""Verdicts, and what stands in place of one for a citation that names no passage."""
LEVELS = {"full": kernel.FULL, "partial": kernel.PARTIAL, "none": kernel.NONE}
"""Level of support in words -> code."""


@dataclass(frozen=True)
class Support:
    """Recall and precision of answers by the support of their citations.

    Attributes
    ----------
    recall, precision : (n_answers, 2) int64, numerator and denominator; 0/0 is `na`.
    recall_unknown, precision_unknown : (n_answers, 3) int64, verdicts that were needed but are
        missing, disputed or failed.
    dangling : (n_answers,) int64, citations that name no passage.
    precise : (n_citations,) int8: 1 precise, 0 not, -1 unknown or not counted. Empty for TREC.
    official : whether an answer without any citation has precision 0.
    """

    recall: NDArray[np.int64]
    precision: NDArray[np.int64]
    recall_unknown: NDArray[np.int64]
    precision_unknown: NDArray[np.int64]
    dangling: NDArray[np.int64]
    precise: NDArray[np.int8]
    official: bool = False

    def recalls(self) -> NDArray[np.float64]:
        """Recall of each answer; NaN where it is na or a verdict is unknown."""
        return quotient_values(self.recall, self.recall_unknown)

    def precisions(self) -> NDArray[np.float64]:
        """Precision of each answer; NaN where it is na or a verdict is unknown."""
        out = quotient_values(self.precision, self.precision_unknown)
        if self.official:
            out[self.precision[:, 1] == 0] = 0.0
        return out


def alce(
    sentences: ArrayLike,
    citations: ArrayLike,
    joint: ArrayLike,
    alone: ArrayLike,
    without: ArrayLike,
    *,
    official: bool = False,
) -> Support:
    """ALCE citation recall and precision of every answer.

    Parameters
    ----------
    sentences : (n_answers + 1,) integers; answer i owns sentences sentences[i]:sentences[i + 1].
    citations : (n_sentences + 1,) integers; the same for the citations of a sentence.
    joint : (n_sentences,), whether its citations that resolve entail it together: 1, 0, or -1
        missing, -2 disputed, -3 failed.
    alone : (n_citations,), the same for each citation by itself, or `DANGLING`.
    without : (n_citations,), the same for the other citations of the sentence together.
    official : the script to the letter. It also looks at no more than three citations a sentence
        unless told otherwise: cut them beforehand.

    Raises
    ------
    UsageError
        If lengths, offsets or verdicts do not fit.
    """
    singles = codes_of("alone", alone, DANGLING)
    others, together = codes_of("without", without, YES), codes_of("joint", joint, YES)
    if len(others) != len(singles):
        raise UsageError(f"alone has {len(singles)} verdicts, but without has {len(others)}")
    cites = offsets_of("citations", citations, len(singles))
    parts = offsets_of("sentences", sentences, len(cites) - 1)
    if len(together) != len(cites) - 1:
        raise UsageError(f"{len(cites) - 1} sentences, but joint has {len(together)} verdicts")
    n = len(parts) - 1
    counts = np.zeros((n, kernel.ALCE_COUNTS), np.int64)
    unknown = np.zeros((n, 2, kernel.UNKNOWNS), np.int64)
    precise = np.zeros(len(singles), np.int8)
    kernel.alce(
        0, n, parts, cites, together, singles, others, int(official), counts, unknown, precise
    )
    return Support(
        counts[:, [kernel.ENTAILED, kernel.SENTENCES]],
        counts[:, [kernel.PRECISE, kernel.CITATIONS]],
        unknown[:, 0], unknown[:, 1], counts[:, kernel.HANGING], precise, official,
    )  # fmt: skip


def trec(
    sentences: ArrayLike,
    citations: ArrayLike,
    levels: ArrayLike,
    *,
    first_only: bool = False,
) -> Support:
    """TREC RAG weighted support: full 1, partial 1/2, none 0.

    Precision is the sum of weights over the citations judged; recall the sum over sentences, each
    with the best of its citations, so that it is 1 at most; a sentence without a citation has 0.

    Parameters
    ----------
    sentences, citations : as in `alce`.
    levels : (n_citations,), 2 full, 1 partial, 0 none; -1 missing, -2 disputed, -3 failed.
    first_only : only the first citation of each sentence is looked at.

    Raises
    ------
    UsageError
        If lengths, offsets or levels do not fit.
    """
    marks = codes_of("levels", levels, kernel.FULL)
    cites = offsets_of("citations", citations, len(marks))
    parts = offsets_of("sentences", sentences, len(cites) - 1)
    n = len(parts) - 1
    counts = np.zeros((n, kernel.TREC_COUNTS), np.int64)
    unknown = np.zeros((n, kernel.UNKNOWNS), np.int64)
    kernel.trec(0, n, parts, cites, marks, int(first_only), counts, unknown)
    recall = counts[:, [kernel.BEST, kernel.STATEMENTS]]
    precision = counts[:, [kernel.WEIGHT, kernel.JUDGED]]
    recall[:, 1] *= 2
    precision[:, 1] *= 2
    return Support(recall, precision, unknown, unknown, np.zeros(n, np.int64), np.zeros(0, np.int8))
