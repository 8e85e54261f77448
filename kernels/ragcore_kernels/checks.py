"""Columns that a caller hands over, checked: numbers, whole numbers, their shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def _place(flags: NDArray[np.bool_]) -> str:
    """Index of the first flag that is set, as it would be written."""
    at = np.unravel_index(int(flags.argmax()), flags.shape)
    return ", ".join(str(int(part)) for part in at)


def _shaped(name: str, array: NDArray[Any], n_dims: int) -> None:
    if array.ndim != n_dims:
        wanted = "one dimension" if n_dims == 1 else f"{n_dims} dimensions"
        raise ValueError(f"{name} have shape {array.shape}; expected {wanted}")


def number_column(name: str, values: ArrayLike, nan: bool = False, infinite: bool = False) -> F64:
    """`values` as float64 of one dimension.

    Parameters
    ----------
    name : of the column, for messages.
    values : (n,), numbers or truth values.
    nan, infinite : whether these are taken.

    Raises
    ------
    ValueError
        If the shape is another, or a value is not taken; the message names the first.
    """
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} are no numbers; expected a column of numbers") from error
    _shaped(name, np.asarray(values), 1)
    bad = np.zeros(array.shape, np.bool_)
    if not nan:
        bad |= np.isnan(array)
    if not infinite:
        bad |= np.isinf(array)
    if bad.any():
        wanted = "numbers" if infinite else "finite numbers"
        at = _place(bad)
        raise ValueError(f"{name}[{at}] is {array[int(at)]}; expected {wanted}")
    return array


def code_column(name: str, codes: ArrayLike, least: int, limit: int, n_dims: int = 1) -> I64:
    """`codes` as C-contiguous int64.

    Parameters
    ----------
    name : of the column, for messages.
    codes : whole numbers or truth values, in an array of `n_dims` dimensions.
    least, limit : the least number taken, and the first above that is not.

    Raises
    ------
    ValueError
        If they are of another type or shape, or one is out of range; the message names the first.
    """
    array = np.asarray(codes)
    if array.dtype.kind not in "iub" and array.size:
        raise ValueError(f"{name} are {array.dtype}; expected whole numbers")
    if not array.size:
        array = array.astype(np.int64)
    _shaped(name, array, n_dims)
    bad = (array < least) | (array >= limit)
    if bad.any():
        wanted = f"a whole number from {least} to {limit - 1}"
        raise ValueError(f"{name}[{_place(bad)}] is {array[bad][0]}; expected {wanted}")
    return np.ascontiguousarray(array, dtype=np.int64)
