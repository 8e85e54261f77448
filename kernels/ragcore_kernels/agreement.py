"""How far coders agree: observed agreement, Cohen's kappa, Krippendorff's alpha, Gwet's AC1.

Codes become tables of whole numbers in one pass; every coefficient is a small sum over a table.
All of them are to be printed side by side with the prevalence: where nearly every item has one
code, kappa and alpha fall to nothing although the coders hardly ever differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels.checks import number_column
from ragcore_kernels.coincidences import Tally, checked_codes, cross_table, tally_of

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

SCALES = ("nominal", "ordinal", "interval")
"""What a code says: only which category, its order too, or its distance."""

WEIGHTS = ("none", "linear", "quadratic")
"""How Cohen's kappa weighs a disagreement: any alike, by distance, by its square."""


# --- coefficients


def _observed(tally: Tally) -> float:
    """Share of agreeing pairs of coders, mean over items."""
    same = np.trace(tally.pairs, axis1=1, axis2=2) / (tally.ms * (tally.ms - 1))
    return float(same.sum()) / tally.n_paired if tally.n_paired else math.nan


def _prevalence(tally: Tally) -> F64:
    """(K,), mean over coded items of each category's share of the codes; nan without items."""
    shares = (tally.by_size / tally.ms[:, None]).sum(axis=0) + tally.singles
    n_coded = int(tally.sizes[1:].sum())
    return shares / n_coded if n_coded else np.full(shares.size, math.nan)


def _ac1(tally: Tally) -> float:
    prevalence = _prevalence(tally)
    if prevalence.size < 2 or not tally.n_paired:
        return math.nan
    chance = float((prevalence * (1.0 - prevalence)).sum()) / (prevalence.size - 1)
    return (_observed(tally) - chance) / (1.0 - chance)  # chance is 1 / K at most


def _kappa(table: I64, weights: str) -> float:
    n = int(table.sum())
    first, second = (table.sum(axis=axis).astype(object) for axis in (1, 0))
    if weights == "none":
        by_chance = n * n - sum(first * second)
        differing = n - int(np.trace(table))
    else:
        places = np.arange(table.shape[0])
        cost = np.abs(places[:, None] - places) ** (1 if weights == "linear" else 2)
        by_chance = int((first @ cost.astype(object)) @ second)
        differing = int((cost * table).sum())
    return (by_chance - n * differing) / by_chance if by_chance else math.nan


def _alpha(tally: Tally, scale: str, values: F64) -> float:
    totals = tally.by_size.sum(axis=0)
    used = np.flatnonzero(totals)
    if used.size < 2:
        return math.nan
    totals = totals[used].astype(np.float64)
    matrix = tally.coincidences[np.ix_(used, used)]
    if scale == "nominal":
        squares = 1.0 - np.eye(used.size)
    else:
        at = np.cumsum(totals) - 0.5 * totals if scale == "ordinal" else values[used]
        at = at / (np.abs(at).max() or 1.0)
        squares = (at[:, None] - at) ** 2
    expected = float(totals @ squares @ totals)
    if expected == 0.0:
        return math.nan
    return 1.0 - (float(totals.sum()) - 1.0) * float((matrix * squares).sum()) / expected


def cohen_kappa(codes: ArrayLike, weights: str = "none") -> float:
    """Cohen's kappa of two coders: agreement beyond that of their own marginals.

    Parameters
    ----------
    codes : (n_items, 2), whole numbers from 0, -1 where a coder gave none; such items are left
        out.
    weights : of a disagreement between codes i and j, one of `WEIGHTS`: none (any alike),
        linear ``|i - j|``, quadratic ``(i - j)**2``.

    Returns
    -------
    ``1 - D_o / D_e``, from integers and correctly rounded; nan if chance alone leaves no
    disagreement (p_e = 1: both gave one and the same code throughout), or nothing is coded twice.

    Raises
    ------
    ValueError
        If the shape, the type, a code or `weights` is another.

    References
    ----------
    Cohen, A coefficient of agreement for nominal scales, 1960; Weighted kappa, 1968.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights is {weights!r}; expected one of {', '.join(WEIGHTS)}")
    array, n_categories = checked_codes(codes, None)
    return _kappa(_table(array, n_categories), weights)


def _table(codes: I64, n_categories: int) -> I64:
    if codes.shape[1] != 2:
        raise ValueError(f"codes have {codes.shape[1]} columns; expected two, one for each coder")
    table = np.zeros((n_categories, n_categories), np.int64)
    cross_table(codes, table)
    return table


def krippendorff_alpha(
    codes: ArrayLike, scale: str = "nominal", values: ArrayLike | None = None
) -> float:
    """Krippendorff's alpha of any number of coders, codes missing anywhere.

    Parameters
    ----------
    codes : (n_items, n_coders), whole numbers from 0, -1 where a coder gave none. Items with
        fewer than two codes say nothing of agreement.
    scale : one of `SCALES`.
    values : (n_categories,), finite; the number that each code stands for on an interval scale.
        None: the codes themselves.

    Returns
    -------
    ``1 - D_o / D_e`` from the coincidence matrix; nan if D_e is 0 (one value throughout, or no
    item with two codes).

    Raises
    ------
    ValueError
        If the shape, the type, a code, `scale` or a value is another.

    Notes
    -----
    On an ordinal scale a code lies at its mean rank among all pairable codes, which is
    Krippendorff's metric. Both disagreements are sums of positive terms, so that ``1 - alpha``
    has fourteen digits.

    References
    ----------
    Krippendorff, Computing Krippendorff's alpha-reliability, 2011.
    """
    places = None if values is None else number_column("values", values)
    array, n_categories = checked_codes(codes, None if places is None else places.size)
    return _alpha(tally_of(array, n_categories), *_scaled(scale, places, n_categories))


def _scaled(scale: str, values: F64 | None, n_categories: int) -> tuple[str, F64]:
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}; expected one of {', '.join(SCALES)}")
    return scale, np.arange(float(n_categories)) if values is None else values


def gwet_ac1(codes: ArrayLike, n_categories: int) -> float:
    """Gwet's AC1 of any number of coders, codes missing anywhere.

    Parameters
    ----------
    codes : as for `krippendorff_alpha`.
    n_categories : of the scale, used or not; at least 2 for a number.

    Returns
    -------
    ``(p_o - p_c) / (1 - p_c)`` with ``p_c = sum of q (1 - q) / (n_categories - 1)`` over the
    prevalences q; nan for one category or if no item has two codes.

    Raises
    ------
    ValueError
        If the shape, the type, a code or `n_categories` is another.

    Notes
    -----
    As in Gwet's own program, an item with a single code counts for the prevalence, and p_o is the
    mean over items with two codes or more.

    References
    ----------
    Gwet, Computing inter-rater reliability and its variance in the presence of high agreement,
    2008.
    """
    array, n_categories = checked_codes(codes, n_categories)
    return _ac1(tally_of(array, n_categories))


# --- all of them


@dataclass(frozen=True)
class Agreement:
    """Coefficients of one set of codes; nan where one is not defined.

    Parameters
    ----------
    n_coders : columns of the codes.
    n_items : items with two codes or more, on which the coefficients rest.
    n_single, n_uncoded : items with one code, and with none.
    observed : share of agreeing pairs of coders, mean over items.
    kappa : Cohen's, for two coders; nan for more.
    weighted_kappa : the same with quadratic weights; nan on a nominal scale.
    alpha : Krippendorff's, on the `scale`.
    ac1 : Gwet's.
    prevalence : share of each category, mean over items with a code.
    scale : one of `SCALES`.
    """

    n_coders: int
    n_items: int
    n_single: int
    n_uncoded: int
    observed: float
    kappa: float
    weighted_kappa: float
    alpha: float
    ac1: float
    prevalence: tuple[float, ...]
    scale: str


def agreement(
    codes: ArrayLike, n_categories: int, scale: str = "nominal", values: ArrayLike | None = None
) -> Agreement:
    """Every coefficient of one set of codes, with the prevalence and the counts behind them.

    Parameters
    ----------
    codes : (n_items, n_coders), whole numbers from 0 to ``n_categories - 1``; -1 for none.
    n_categories : of the scale, used or not.
    scale, values : as for `krippendorff_alpha`.

    Raises
    ------
    ValueError
        If an argument is none of these.
    """
    array, n_categories = checked_codes(codes, n_categories)
    places = None if values is None else number_column("values", values)
    if places is not None and places.size != n_categories:
        raise ValueError(f"{places.size} values for {n_categories} categories; expected as many")
    scale, places = _scaled(scale, places, n_categories)
    tally = tally_of(array, n_categories)
    kappa = weighted = math.nan
    if array.shape[1] == 2:
        table = _table(array, n_categories)
        kappa = _kappa(table, "none")
        weighted = math.nan if scale == "nominal" else _kappa(table, "quadratic")
    return Agreement(
        n_coders=array.shape[1], n_items=tally.n_paired, n_single=int(tally.sizes[1]),
        n_uncoded=int(tally.sizes[0]), observed=_observed(tally), kappa=kappa,
        weighted_kappa=weighted, alpha=_alpha(tally, scale, places), ac1=_ac1(tally),
        prevalence=tuple(_prevalence(tally).tolist()), scale=scale,
    )  # fmt: skip
