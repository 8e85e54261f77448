"""Nugget scores of answers from the assignment of each nugget, as exact quotients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import I64

NONE, PARTIAL, FULL = range(3)
"""Assignments: not supported, half, whole. Their number is twice what they count."""
MISSING, DISPUTED, FAILED = -1, -2, -3
"""What stands in place of an assignment or verdict that cannot be used."""
UNKNOWNS = 3
"""Counts of what cannot be used: missing, disputed, failed, in this order."""

VITAL, VITAL_STRICT, ALL, ALL_STRICT, WEIGHTED, WEIGHTED_STRICT = range(6)
"""Rows of what `score` fills, a row a measure."""
MEASURES = 6

I8 = NDArray[np.int8]


@kernel
def score(
    begin: int, end: int, offsets: I64, codes: I8, vital: I8, quotients: I64, unknown: I64
) -> None:
    """Nugget scores of the answers from `begin` to `end`.

    Parameters
    ----------
    begin, end : answers, end exclusive.
    offsets : (n_answers + 1,); answer i owns nuggets offsets[i]:offsets[i + 1].
    codes : (n_nuggets,), NONE, PARTIAL or FULL; a negative one counts nothing in the numerator and
        is counted in `unknown`, and the caller gives no value.
    vital : (n_nuggets,), 1 for vital, 0 for okay.
    quotients : (n_answers, 6, 2), filled: numerator and denominator of each measure; 0/0 where the
        denominator is empty by definition.
    unknown : (n_answers, 3), filled: nuggets missing, disputed, failed.

    Notes
    -----
    With s = 1, 1/2, 0 and n_v vital of n nuggets: vital = sum of s over vital ones / n_v, all = sum
    of s / n, weighted = (sum over vital + half the sum over okay) / (n_v + half of the okay ones).
    The strict form of each has s = 0 for PARTIAL. Numerators and denominators are these times 2 or
    4, whole numbers.
    """
    for i in range(begin, end):
        okay_halves, okay_full, okay = np.int64(0), np.int64(0), np.int64(0)
        vital_halves, vital_full, vitals = np.int64(0), np.int64(0), np.int64(0)
        for k in range(UNKNOWNS):
            unknown[i, k] = 0
        for j in range(offsets[i], offsets[i + 1]):
            code = np.int64(codes[j])
            full = np.int64(1) if code == FULL else np.int64(0)
            if code < 0:
                unknown[i, -code - 1] += 1
                code = np.int64(0)
            if vital[j] != 0:
                vital_halves += code
                vital_full += full
                vitals += 1
            else:
                okay_halves += code
                okay_full += full
                okay += 1
        n, out = vitals + okay, quotients[i]
        out[VITAL, 0], out[VITAL, 1] = vital_halves, 2 * vitals
        out[VITAL_STRICT, 0], out[VITAL_STRICT, 1] = vital_full, vitals
        out[ALL, 0], out[ALL, 1] = vital_halves + okay_halves, 2 * n
        out[ALL_STRICT, 0], out[ALL_STRICT, 1] = vital_full + okay_full, n
        out[WEIGHTED, 0], out[WEIGHTED, 1] = 2 * vital_halves + okay_halves, 4 * vitals + 2 * okay
        out[WEIGHTED_STRICT, 0] = 2 * vital_full + okay_full
        out[WEIGHTED_STRICT, 1] = 2 * vitals + okay
