"""Counts behind grounded correctness: claims that are correct, supported, both; required ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.verdicts import CONTRADICTS, YES

CORRECT, SUPPORTED, GROUNDED, CONTRADICTED, MARKED, MARKED_UNSUPPORTED = range(6)
"""Columns of what `ground` counts."""
FIELDS = 6


@kernel
def ground(
    begin: int, end: int, claims: I64, correct: Any, supported: Any, mark: Any, counts: Any
) -> None:
    """Answer claims of each ranking by correctness and by support of the context.

    Parameters
    ----------
    begin, end : rankings to do.
    claims : (n + 1,) offsets of the answer claims.
    correct, supported : flat, int8 verdicts: against the reference; by the context as a whole.
    mark : flat, int8, 1 for claims of high stakes, else 0.
    counts : (n, FIELDS) int32, filled: correct; supported; both; contradicted by the context;
        marked; marked and not supported.
    """
    for i in range(begin, end):
        out = counts[i]
        for f in range(FIELDS):
            out[f] = 0
        for k in range(claims[i], claims[i + 1]):
            right, held = np.int8(correct[k] == YES), np.int8(supported[k] == YES)
            out[CORRECT] += right
            out[SUPPORTED] += held
            out[GROUNDED] += right & held
            out[CONTRADICTED] += np.int8(supported[k] == CONTRADICTS)
            out[MARKED] += mark[k]
            out[MARKED_UNSUPPORTED] += mark[k] & (np.int8(1) - held)


@kernel
def harmonic(
    begin: int, end: int, first: I64, of_first: I64, second: I64, of_second: I64, over: I64,
    under: I64,
) -> None:  # fmt: skip
    """F1 of two shares as one quotient of whole numbers: 2 a c / (a d + c b) of a / b and c / d.

    Parameters
    ----------
    begin, end : rankings to do.
    first, of_first, second, of_second : (n,), the shares; a part of 0 is no share.
    over, under : (n,), filled: 0 and 1 if both shares are 0; 0 and 0 if one of them is none.
    """
    for i in range(begin, end):
        over[i], under[i] = 0, 0
        if of_first[i] > 0 and of_second[i] > 0:
            over[i] = 2 * first[i] * second[i]
            under[i] = max(1, first[i] * of_second[i] + second[i] * of_first[i])
