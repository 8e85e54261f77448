"""Support of sentences by what they cite: ALCE's recall and precision, TREC RAG's support."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import I64

NO, YES = range(2)
"""Verdicts; an unknown one is `nuggets.MISSING`, `DISPUTED` or `FAILED`."""
DANGLING = 2
"""In place of a citation's own verdict: its marker names no passage."""
NONE, PARTIAL, FULL = range(3)
"""Levels of support; a level is twice its weight."""
UNKNOWNS = 3
"""Counts of what cannot be used: missing, disputed, failed, in this order."""

ENTAILED, SENTENCES, PRECISE, CITATIONS, HANGING = range(5)
"""Columns of what `alce` fills."""
ALCE_COUNTS = 5
WEIGHT, JUDGED, BEST, STATEMENTS = range(4)
"""Columns of what `trec` fills."""
TREC_COUNTS = 4

I8 = NDArray[np.int8]


@kernel
def alce(
    begin: int,
    end: int,
    sentences: I64,
    citations: I64,
    joint: I8,
    alone: I8,
    without: I8,
    official: int,
    counts: I64,
    unknown: I64,
    precise: I8,
) -> None:
    """Entailed sentences and precise citations of the answers from `begin` to `end`.

    Parameters
    ----------
    begin, end : answers, end exclusive.
    sentences : (n_answers + 1,); answer i owns sentences sentences[i]:sentences[i + 1].
    citations : (n_sentences + 1,); sentence s owns citations citations[s]:citations[s + 1].
    joint : (n_sentences,), whether all its citations that resolve entail the sentence together.
    alone : (n_citations,), whether the citation entails it alone, or DANGLING. Looked at only where
        the sentence is entailed and has two citations that resolve, or more.
    without : (n_citations,), whether the others entail it without this one. Looked at only where
        `alone` is NO.
    official : 1 follows the script to the letter: a dangling citation makes its sentence 0 and
        leaves all of that sentence's citations out of the count. 0 resolves what can be resolved,
        and a dangling one is counted and not precise.
    counts : (n_answers, 5), filled: sentences entailed, sentences, citations precise, citations
        counted, citations dangling.
    unknown : (n_answers, 2, 3), filled: verdicts that were needed but are missing, disputed or
        failed; for recall, and for precision. Where there are any, the caller gives no value.
    precise : (n_citations,), filled: 1 or 0, -1 where a verdict is unknown or the citation is not
        counted.

    References
    ----------
    Gao, Yen, Yu, Chen, Enabling large language models to generate text with citations, 2023.
    """
    for i in range(begin, end):
        for k in range(ALCE_COUNTS):
            counts[i, k] = 0
        for k in range(UNKNOWNS):
            unknown[i, 0, k] = 0
            unknown[i, 1, k] = 0
        for s in range(sentences[i], sentences[i + 1]):
            first, last = citations[s], citations[s + 1]
            hanging = np.int64(0)
            for c in range(first, last):
                if alone[c] == DANGLING:
                    hanging += 1
            resolved = last - first - hanging
            void = resolved == 0 or (official != 0 and hanging > 0)
            verdict = np.int64(0) if void else np.int64(joint[s])
            counts[i, SENTENCES] += 1
            counts[i, HANGING] += hanging
            counted = official == 0 or hanging == 0
            if counted:
                counts[i, CITATIONS] += last - first
            if verdict == YES:
                counts[i, ENTAILED] += 1
            elif verdict < 0:
                unknown[i, 0, -verdict - 1] += 1
                unknown[i, 1, -verdict - 1] += 1
            for c in range(first, last):
                value = np.int64(0)
                if not counted:
                    value = np.int64(-1)
                elif alone[c] == DANGLING:
                    value = np.int64(0)
                elif verdict < 0:
                    value = np.int64(-1)
                elif verdict == YES:
                    value = np.int64(1)
                    if resolved > 1 and alone[c] < 0:
                        unknown[i, 1, -np.int64(alone[c]) - 1] += 1
                        value = np.int64(-1)
                    elif resolved > 1 and alone[c] == NO:
                        if without[c] < 0:
                            unknown[i, 1, -np.int64(without[c]) - 1] += 1
                            value = np.int64(-1)
                        elif without[c] == YES:
                            value = np.int64(0)
                precise[c] = value
                if value == 1:
                    counts[i, PRECISE] += 1


@kernel
def trec(
    begin: int,
    end: int,
    sentences: I64,
    citations: I64,
    levels: I8,
    first_only: int,
    counts: I64,
    unknown: I64,
) -> None:
    """Weighted support of the answers from `begin` to `end`.

    Parameters
    ----------
    begin, end : answers, end exclusive.
    sentences, citations : as in `alce`.
    levels : (n_citations,), NONE, PARTIAL, FULL, or an unknown one.
    first_only : 1 looks at the first citation of each sentence alone, 0 at all of them.
    counts : (n_answers, 4), filled: sum of levels over the citations judged; these citations; sum
        over sentences of the best level of its citations; sentences. Precision is the first over
        twice the second, recall the third over twice the fourth.
    unknown : (n_answers, 3), filled: citations missing, disputed, failed. They are not judged;
        where there are any, the caller gives no value.
    """
    for i in range(begin, end):
        for k in range(TREC_COUNTS):
            counts[i, k] = 0
        for k in range(UNKNOWNS):
            unknown[i, k] = 0
        for s in range(sentences[i], sentences[i + 1]):
            first, last = citations[s], citations[s + 1]
            if first_only != 0 and last > first:
                last = first + 1
            best = np.int64(0)
            for c in range(first, last):
                level = np.int64(levels[c])
                if level < 0:
                    unknown[i, -level - 1] += 1
                    continue
                counts[i, WEIGHT] += level
                counts[i, JUDGED] += 1
                best = max(best, level)
            counts[i, BEST] += best
            counts[i, STATEMENTS] += 1
