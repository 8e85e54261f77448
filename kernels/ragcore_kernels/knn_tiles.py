"""Register tiles of exact search: 32 vectors against 12 queries, and which of the pairs may count.

LLVM will not turn a plain loop into such a tile without leave to reorder sums, so the tiles are
written as vector code, once for every width of register. Each has a twin in plain NumPy beside it,
which says what it computes and runs where nothing is compiled.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ragcore_kernels._jit import JIT
from ragcore_kernels.knn_emit import data_of, load, spread, store

LANES = 32
"""Vectors of a tile; they lie side by side, dimension by dimension: (d, LANES)."""

SQUARE = 16
"""Rows and columns that are transposed at a time."""

GROUP = 12
"""Queries of a tile; they lie side by side, dimension by dimension: (d, GROUP)."""


@cache
def cpu_features() -> frozenset[str]:
    """Features of the processor that Numba compiles for, named as LLVM names them.

    They come from Numba rather than from the machine: it may have been told to compile for less.
    """
    if not JIT:
        return frozenset()
    from numba.core.registry import cpu_target

    listed = cpu_target.target_context.codegen().magic_tuple()[2]  # pyright: ignore
    return frozenset(name[1:] for name in listed.split(",") if name.startswith("+"))


def has_vnni() -> bool:
    """Whether there are 512-bit sums of products of bytes (AVX512-VNNI)."""
    return {"avx512vnni", "avx512f", "avx512bw"} <= cpu_features()


def _shape() -> tuple[int, int]:
    """Lanes and queries whose sums fit the registers: 32 of 16 floats, or half of both."""
    return (LANES, GROUP) if "avx512f" in cpu_features() else (LANES // 2, GROUP // 2)


def _fused() -> bool:
    """Whether one instruction multiplies and adds; else LLVM would call a slow function."""
    return "fma" in cpu_features() or "neon" in cpu_features()


def _emit_float(builder: Any, docs: Any, at: Any, queries: Any, start: Any, d: Any, out: Any):
    from llvmlite import ir

    i64, f32 = ir.IntType(64), ir.FloatType()
    lanes, group = _shape()
    vector = ir.VectorType(f32, lanes)
    name = f"llvm.fma.v{lanes}f32"
    fma = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3), name
    )

    def number(value: int) -> Any:
        return ir.Constant(i64, value)

    for half in range(0, LANES, lanes):
        for part in range(0, GROUP, group):
            sums = [cgutils.alloca_once(builder, vector) for _ in range(group)]
            for place in sums:
                builder.store(ir.Constant(vector, [0.0] * lanes), place)
            with cgutils.for_range(builder, d, intp=i64) as loop:
                row = builder.add(at, builder.mul(loop.index, number(LANES)))
                x = load(builder, docs, builder.add(row, number(half)), vector, 4)
                column = builder.add(start, builder.mul(loop.index, number(GROUP)))
                for i in range(group):
                    q = load(builder, queries, builder.add(column, number(part + i)), f32, 4)
                    q, total = spread(builder, q, lanes), builder.load(sums[i])
                    if _fused():
                        total = builder.call(fma, [x, q, total])
                    else:
                        total = builder.fadd(builder.fmul(x, q), total)
                    builder.store(total, sums[i])
            for i in range(group):
                store(builder, builder.load(sums[i]), out, number((part + i) * LANES + half), 4)


def _emit_sieve(builder: Any, scores: Any, meta: Any, at: Any, limits: Any, start: Any, masks: Any):
    from llvmlite import ir

    i64, f32 = ir.IntType(64), ir.FloatType()
    vector = ir.VectorType(f32, LANES)

    def number(value: int) -> Any:
        return ir.Constant(i64, value)

    scale, u, v, h = (
        load(builder, meta, builder.add(at, number(i * LANES)), vector, 4) for i in range(4)
    )
    union = number(0)
    for q in range(GROUP):
        left, least, per_u, per_v = (
            spread(builder, load(builder, limits, builder.add(start, number(4 * q + i)), f32, 4),
                   LANES)
            for i in range(4)
        )  # fmt: skip
        value = load(builder, scores, number(q * LANES), vector, 4)
        value = builder.fmul(builder.fmul(value, scale), left)
        wanted = builder.fsub(least, builder.fmul(per_u, u))
        wanted = builder.fadd(builder.fsub(wanted, builder.fmul(per_v, v)), h)
        passed = builder.fcmp_unordered(">=", value, wanted)
        mask = builder.zext(builder.bitcast(passed, ir.IntType(LANES)), i64)
        store(builder, mask, masks, number(q), 8)
        union = builder.or_(union, mask)
    return union


def _emit_transpose(
    builder: Any, x: Any, starts: Any, column: Any, ahead: Any, out: Any, at: Any
) -> None:
    from llvmlite import ir

    i64, f32, i32 = ir.IntType(64), ir.FloatType(), ir.IntType(32)
    vector = ir.VectorType(f32, SQUARE)
    kinds = [ir.IntType(8).as_pointer(), i32, i32, i32]
    fetch = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), kinds), "llvm.prefetch.p0"
    )
    rows, soon = [], None
    for i in range(SQUARE):
        start = load(builder, starts, ir.Constant(i64, i), i64, 8)
        rows.append(load(builder, x, builder.add(start, column), vector, 4))
        if i == 0:  # memory is asked for in its order, which columns of rows are not
            soon = builder.add(start, builder.mul(column, ir.Constant(i64, SQUARE)))
            soon = builder.add(soon, ahead)
        place = builder.gep(x, [builder.add(soon, ir.Constant(i64, i * SQUARE))])
        place = builder.bitcast(place, ir.IntType(8).as_pointer())
        builder.call(fetch, [place, *(ir.Constant(i32, n) for n in (0, 2, 1))])
    step = SQUARE // 2
    while step:  # swap the off-diagonal blocks of `step` by `step`, then inside each block
        low = [c if not c & step else SQUARE + c - step for c in range(SQUARE)]
        high = [c + step if not c & step else SQUARE + c for c in range(SQUARE)]
        for i in range(SQUARE):
            if not i & step:
                a, b = rows[i], rows[i + step]
                for place, lanes in ((i, low), (i + step, high)):
                    mask = ir.Constant(ir.VectorType(i32, SQUARE), lanes)
                    rows[place] = builder.shuffle_vector(a, b, mask)
        step //= 2
    for i, row in enumerate(rows):
        store(builder, row, out, builder.add(at, ir.Constant(i64, i * LANES)), 4)


def plain_tile_float(docs: Any, at: int, queries: Any, start: int, d: int, out: Any) -> int:
    """Inner products of LANES vectors with GROUP queries, in float32.

    Parameters
    ----------
    docs, at : packed vectors, and where those of the tile begin: (d, LANES).
    queries, start : packed queries, and where those of the tile begin: (d, GROUP).
    d : dimensions.
    out : (GROUP * LANES,) float32, filled.
    """
    x = docs[at : at + d * LANES].reshape(d, LANES)
    q = queries[start : start + d * GROUP].reshape(d, GROUP)
    with np.errstate(all="ignore"):
        out[:] = (q.T @ x).ravel()
    return 0


def plain_sieve(scores: Any, meta: Any, at: int, limits: Any, start: int, masks: Any) -> int:
    """Which pairs of a tile may reach the limits of their queries; NaN always may.

    A pair passes where ``score * scale * left >= least - per_u * u - per_v * v + h``.

    Parameters
    ----------
    scores : (GROUP * LANES,) float32.
    meta, at : float32, and where the tile begins: (4, LANES), scale, u, v, h.
    limits, start : float32, and where the group begins: (GROUP, 4), left, least, per_u, per_v.
    masks : (GROUP,) int64, filled: bit l is set where lane l passed.

    Returns
    -------
    int
        The union of the masks.
    """
    scale, u, v, h = meta[at : at + 4 * LANES].reshape(4, LANES)
    left, least, per_u, per_v = limits[start : start + 4 * GROUP].reshape(GROUP, 4).T[:, :, None]
    with np.errstate(all="ignore"):
        value = scores.reshape(GROUP, LANES) * scale * left
        failed = value < least - per_u * u - per_v * v + h
    masks[:] = (~failed).astype(np.int64) @ (1 << np.arange(LANES, dtype=np.int64))
    return int(np.bitwise_or.reduce(masks))


def plain_transpose(x: Any, starts: Any, column: int, ahead: int, out: Any, at: int) -> int:
    """Write a square of SQUARE rows and columns as columns.

    Parameters
    ----------
    x, starts, column : numbers; where each of the rows begins; first column.
    ahead : how far after the first row the next square's are, so that memory is asked for them.
    out, at : where column c is written: SQUARE numbers from ``at + c * LANES`` on.
    """
    for c in range(SQUARE):
        out[at + c * LANES : at + c * LANES + SQUARE] = x[starts + (column + c)]
    return 0


def _tile_float(
    typingctx: Any, docs: Any, at: Any, queries: Any, start: Any, d: Any, out: Any
) -> Any:
    """As `plain_tile_float`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, q, o = (data_of(context, builder, signature.args[i], args[i]) for i in (0, 2, 5))
        _emit_float(builder, x, args[1], q, args[3], args[4], o)
        return context.get_constant(types.int64, 0)

    whole = types.int64
    return types.int64(docs, whole, queries, whole, whole, out), codegen


def _transpose(
    typingctx: Any, x: Any, starts: Any, column: Any, ahead: Any, out: Any, at: Any
) -> Any:
    """As `plain_transpose`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, s, o = (data_of(context, builder, signature.args[i], args[i]) for i in (0, 1, 4))
        _emit_transpose(builder, rows, s, args[2], args[3], o, args[5])
        return context.get_constant(types.int64, 0)

    return types.int64(x, starts, types.int64, types.int64, out, types.int64), codegen


def _sieve(
    typingctx: Any, scores: Any, meta: Any, at: Any, limits: Any, start: Any, masks: Any
) -> Any:
    """As `plain_sieve`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        s, m, lim, out = (
            data_of(context, builder, signature.args[i], args[i]) for i in (0, 1, 3, 5)
        )
        return _emit_sieve(builder, s, m, args[2], lim, args[4], out)

    whole = types.int64
    return types.int64(scores, meta, whole, limits, whole, masks), codegen


tile_float: Any = intrinsic(_tile_float) if JIT else plain_tile_float
sieve: Any = intrinsic(_sieve) if JIT else plain_sieve
transpose: Any = intrinsic(_transpose) if JIT else plain_transpose
