"""Decimal numbers in memory to int64 and float64: exactly rounded, or left for later.

These are parts of kernels. They look at the bytes of one field, [p, stop), which is not empty
and is followed by a readable byte that is neither a digit nor a sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import inline, load_u8

OK, LATER, BAD = range(3)
"""States of `decimal`: read; a number that needs more than one rounding; no number, or NaN."""

_PLUS, _MINUS, _POINT, _ZERO, _NINE, _E, _CASE = 43, 45, 46, 48, 57, 101, 32
_EXACT = np.int64(2**53)
_FULL = np.int64(900_000_000_000_000_000)  # below it, one more digit still fits int64
_POWERS = np.array([float(10**k) for k in range(23)])  # every one of them is exact
_INFINITY = np.frombuffer(b"infinity", np.uint8).astype(np.int64)


@inline
def byte(p: int) -> Any:
    """Read the byte at address `p`."""
    return np.int64(load_u8(p))


@inline
def _digits(p: int, stop: int, value: Any) -> tuple[int, int, int]:
    """Digits from `p` appended to `value`: where they end, the value, how many did not fit."""
    dropped = 0
    while p < stop:
        c = byte(p)
        if c < _ZERO or c > _NINE:
            break
        if value < _FULL:
            value = value * 10 + (c - _ZERO)
        else:
            dropped += 1
        p += 1
    return p, value, dropped


@inline
def integer(p: int, stop: int) -> tuple[int, int, int]:
    """Sign and digits from `p`: where they end, how many, and the value (18 digits fit)."""
    negative = byte(p) == _MINUS
    if negative or byte(p) == _PLUS:
        p += 1
    last, value, _ = _digits(p, stop, np.int64(0))
    return last, last - p, -value if negative else value


@inline
def _is_infinity(p: int, stop: int) -> bool:
    """Whether [p, stop) spells ``inf`` or ``infinity``, in any case."""
    size = stop - p
    if size != 3 and size != 8:
        return False
    for k in range(size):  # noqa: SIM110 - numba knows no generators in all()
        if byte(p + k) | _CASE != _INFINITY[k]:
            return False
    return True


@inline
def decimal(p: int, stop: int) -> tuple[int, float]:
    """State and value of the decimal number in [p, stop).

    One product or quotient of two exact doubles rounds once, hence correctly: digits that make
    up to 2**53, and a power of ten up to 22. Any other well-formed number is left for later.

    References
    ----------
    Clinger, "How to read floating point numbers accurately", PLDI 1990.
    """
    negative = byte(p) == _MINUS
    if negative or byte(p) == _PLUS:
        p += 1
    start = p
    p, mantissa, dropped = _digits(p, stop, np.int64(0))
    met, scale = p - start, 0
    if p < stop and byte(p) == _POINT:
        first = p + 1
        p, mantissa, more = _digits(first, stop, mantissa)
        met, scale, dropped = met + p - first, first - p, dropped + more
    if met == 0:
        if _is_infinity(start, stop):
            return OK, -np.inf if negative else np.inf
        return BAD, 0.0
    if p < stop and byte(p) | _CASE == _E:
        last, power_digits, power = integer(p + 1, stop)
        if power_digits > 0:
            p, scale = last, scale + power
    if p < stop:
        return BAD, 0.0
    if dropped > 0 or mantissa > _EXACT or (mantissa != 0 and (scale < -22 or scale > 22)):
        return LATER, 0.0
    value = float(mantissa)
    if mantissa != 0:
        value = value / _POWERS[-scale] if scale < 0 else value * _POWERS[scale]
    return OK, -value if negative else value
