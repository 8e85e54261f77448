"""Nugget scores of many answers: checks, the kernel, values.

A quotient 0/0 is `na`: the answer's question has no vital nugget, or none at all. An answer with an
assignment that is missing, disputed or failed has no value; the kinds are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore.errors import UsageError
from ragcore_kernels import nuggets as kernel
from ragcore_kernels.layout import frozen

NAMES = ("vital", "vital_strict", "all", "all_strict", "weighted", "weighted_strict")
"""Of the measures, in the order of the quotients."""
LEVELS = {"support": kernel.FULL, "partial": kernel.PARTIAL, "none": kernel.NONE}
"""Assignment in words -> code."""


@dataclass(frozen=True)
class Nuggets:
    """Scores of answers.

    Attributes
    ----------
    quotients : (n_answers, 6, 2) int64, numerator and denominator of each of `NAMES`.
    unknown : (n_answers, 3) int64, assignments missing, disputed, failed.
    """

    quotients: NDArray[np.int64]
    unknown: NDArray[np.int64]

    def values(self, name: str) -> NDArray[np.float64]:
        """One measure of every answer, (n_answers,); NaN where it is na or something is unknown."""
        if name not in NAMES:
            raise UsageError(f"no nugget score is called {name!r}", f"take one of {list(NAMES)}")
        return quotient_values(self.quotients[:, NAMES.index(name)], self.unknown)


def score(offsets: ArrayLike, codes: ArrayLike, vital: ArrayLike) -> Nuggets:
    """Scores of every answer.

    Parameters
    ----------
    offsets : (n_answers + 1,) integers; answer i owns nuggets offsets[i]:offsets[i + 1].
    codes : (n_nuggets,), 2 support, 1 partial, 0 none; -1 missing, -2 disputed, -3 failed.
    vital : (n_nuggets,) bool; the others are okay.

    Raises
    ------
    UsageError
        If lengths, offsets or codes do not fit.
    """
    marks = codes_of("codes", codes, kernel.FULL)
    starts = offsets_of("offsets", offsets, len(marks))
    flags = frozen(np.asarray(vital, np.bool_), np.int8)
    if len(flags) != len(marks):
        raise UsageError(f"{len(marks)} codes, but {len(flags)} flags of vital nuggets")
    n = len(starts) - 1
    quotients = np.zeros((n, kernel.MEASURES, 2), np.int64)
    unknown = np.zeros((n, kernel.UNKNOWNS), np.int64)
    kernel.score(0, n, starts, marks, flags, quotients, unknown)
    return Nuggets(quotients, unknown)


# --- shared with other scores over such arrays


def quotient_values(
    quotients: NDArray[np.int64], unknown: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Values of (n, 2) quotients; NaN for 0/0 and where a row of `unknown` counts anything."""
    known = (quotients[:, 1] > 0) & ~unknown.any(axis=1)
    out = np.full(len(quotients), np.nan)
    np.divide(quotients[:, 0], quotients[:, 1], out=out, where=known)
    return out


def codes_of(name: str, codes: ArrayLike, most: int) -> NDArray[np.int8]:
    """`codes` as a kernel takes them: from -3 to `most`."""
    array: Any = np.asarray(codes)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise UsageError(f"{name} are {array.dtype}{list(array.shape)}; expected integers in a row")
    wrong = np.flatnonzero((array < kernel.FAILED) | (array > most)) if array.size else array
    if wrong.size:
        raise UsageError(
            f"{name}[{wrong[0]}] is {array[wrong[0]]}; expected 0 to {most}, or -1 missing, "
            "-2 disputed, -3 failed"
        )
    return frozen(array, np.int8)


def offsets_of(name: str, offsets: ArrayLike, n_values: int) -> NDArray[np.int64]:
    """`offsets` as a kernel takes them: from 0 to `n_values`, never falling."""
    array: Any = np.asarray(offsets)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise UsageError(
            f"{name} are {array.dtype}{list(array.shape)}; expected integers, one more than rows"
        )
    array = frozen(array, np.int64)
    if array[0] != 0 or array[-1] != n_values or (np.diff(array) < 0).any():
        raise UsageError(
            f"{name} run from {array[0]} to {array[-1]}; expected 0 to {n_values}, never falling"
        )
    return array
