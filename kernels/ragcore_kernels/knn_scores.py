"""Scores of pairs of vectors in float64, in one fixed order of summation, and norms.

Lane l of eight sums dimensions l, l + 8, ... in their order; then the lanes are added, the second
half to the first, until one is left. Products of float32 are exact in float64, so that it does not
matter whether an instruction multiplies and adds at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from ragcore_kernels._jit import JIT, inline, kernel
from ragcore_kernels.knn_emit import data_of, load

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

IP, COSINE, L2 = 0, 1, 2

_WIDE = 8


def _emit_sum(builder: Any, x: Any, at: Any, y: Any, start: Any, d: Any, gaps: bool) -> Any:
    from llvmlite import ir

    i64, f64 = ir.IntType(64), ir.DoubleType()
    lanes = ir.VectorType(f64, _WIDE)
    sums = cgutils.alloca_once(builder, lanes)
    builder.store(ir.Constant(lanes, [0.0] * _WIDE), sums)

    def term(index: Any, narrow: Any, wide: Any) -> Any:
        a, b = (
            builder.fpext(load(builder, base, builder.add(first, index), narrow, 4), wide)
            for base, first in ((x, at), (y, start))
        )
        if gaps:
            a = b = builder.fsub(a, b)
        return builder.fmul(a, b)

    eight = ir.Constant(i64, _WIDE)
    whole = builder.sdiv(d, eight)
    with cgutils.for_range(builder, whole, intp=i64) as loop:
        found = term(builder.mul(loop.index, eight), ir.VectorType(ir.FloatType(), _WIDE), lanes)
        builder.store(builder.fadd(builder.load(sums), found), sums)
    done = builder.mul(whole, eight)
    with cgutils.for_range(builder, builder.sub(d, done), intp=i64) as loop:
        found = term(builder.add(done, loop.index), ir.FloatType(), f64)
        total = builder.load(sums)
        one = builder.fadd(builder.extract_element(total, loop.index), found)
        builder.store(builder.insert_element(total, one, loop.index), sums)
    total = builder.load(sums)
    parts = [builder.extract_element(total, ir.Constant(i64, i)) for i in range(_WIDE)]
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [builder.fadd(parts[i], parts[i + half]) for i in range(half)]
    return parts[0]


def _plain(terms: F64) -> float:
    lanes = np.zeros(_WIDE)
    for at in range(0, terms.size, _WIDE):
        part = terms[at : at + _WIDE]
        lanes[: part.size] += part
    while lanes.size > 1:
        half = lanes.size // 2
        lanes = lanes[:half] + lanes[half:]
    return float(lanes[0])


def _plain_product(x: F32, at: int, y: F32, start: int, d: int) -> float:
    return _plain(x[at : at + d].astype(np.float64) * y[start : start + d].astype(np.float64))


def _plain_distance(x: F32, at: int, y: F32, start: int, d: int) -> float:
    gaps = x[at : at + d].astype(np.float64) - y[start : start + d].astype(np.float64)
    return _plain(gaps * gaps)


def _compiled(gaps: bool) -> Callable[..., Any]:
    def total(typingctx: Any, x: Any, at: Any, y: Any, start: Any, d: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            a, b = (data_of(context, builder, signature.args[i], args[i]) for i in (0, 2))
            return _emit_sum(builder, a, args[1], b, args[3], args[4], gaps)

        whole = types.int64
        return types.float64(x, whole, y, whole, whole), codegen

    return intrinsic(total)


product: Any = _compiled(False) if JIT else _plain_product
"""``product(x, at, y, start, d)``: inner product of `d` numbers of flat `x` and `y`."""

squared_distance: Any = _compiled(True) if JIT else _plain_distance
"""``squared_distance(x, at, y, start, d)``: that of `d` numbers of flat `x` and `y`."""


@inline
def score_of(
    vectors: F32, i: int, norm: float, queries: F32, q: int, q_norm: float, metric: int
) -> float:
    """Score of one pair, greater is nearer; a zero vector or query has cosine 0."""
    d = np.int64(vectors.shape[1])
    x, y = vectors.reshape(-1), queries.reshape(-1)
    if metric == L2:
        return 0.0 - squared_distance(x, i * d, y, q * d, d)
    dot = product(x, i * d, y, q * d, d)
    if metric == IP:
        return dot
    if norm == 0.0 or q_norm == 0.0:
        return 0.0
    return dot / (q_norm * norm)


@kernel
def survey(vectors: F32, out: F64) -> None:
    """Norms of vectors, in the one fixed order of summation; NaN where not finite.

    Parameters
    ----------
    vectors : (n, d) float32.
    out : (n,), filled.
    """
    d = np.int64(vectors.shape[1])
    flat = vectors.reshape(-1)
    for i in range(vectors.shape[0]):
        square = product(flat, i * d, flat, i * d, d)
        out[i] = math.sqrt(square) if square < np.inf else np.nan
