"""Adjust the p-values of a family of tests: Holm for any error, Benjamini-Hochberg for a share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]


def _tested(p_values: ArrayLike) -> tuple[F64, NDArray[np.intp]]:
    """Checked p-values, and the positions of those that are numbers in ascending order."""
    p = np.array(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise ValueError(f"p_values have shape {p.shape}; expected one dimension")
    wrong = np.flatnonzero((p < 0.0) | (p > 1.0))
    if wrong.size:
        at = int(wrong[0])
        raise ValueError(f"p_values[{at}] is {p[at]}; expected a number from 0 to 1, or nan")
    order = np.argsort(p, kind="stable")  # nan comes last
    return p, order[: int(np.count_nonzero(~np.isnan(p)))]


def holm(p_values: ArrayLike) -> F64:
    """Adjusted p-values that keep the chance of any false rejection below their level.

    Parameters
    ----------
    p_values : (m,), numbers from 0 to 1; nan stands for a test that was not made.

    Returns
    -------
    (m,); the i-th smallest of k numbers becomes the greatest of ``(k - j + 1) * p_j`` over
    j <= i, at most 1. nan stays nan and is not counted. Any dependence is allowed.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1], or `p_values` is not one-dimensional.

    References
    ----------
    Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    p, order = _tested(p_values)
    scaled = p[order] * np.arange(order.size, 0, -1)
    p[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return p


def benjamini_hochberg(p_values: ArrayLike) -> F64:
    """Adjusted p-values that keep the expected share of false rejections below their level.

    Parameters
    ----------
    p_values : as for `holm`.

    Returns
    -------
    (m,); the i-th smallest of k numbers becomes the least of ``k / j * p_j`` over j >= i.
    nan stays nan and is not counted. For independent or positively dependent tests.

    Raises
    ------
    ValueError
        As for `holm`.

    References
    ----------
    Benjamini & Hochberg, Controlling the false discovery rate, 1995.
    """
    p, order = _tested(p_values)
    k = order.size
    scaled = p[order] * k / np.arange(1, k + 1)
    p[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return p
