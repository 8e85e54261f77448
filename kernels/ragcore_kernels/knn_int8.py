"""The filter of exact search in bytes: a quarter of the memory, four products where one was.

A vector x, divided by its norm for ``cosine``, is kept as ``c + s b``: a centre c that all have in
common, and whole numbers b in -127..127. What that loses is known when it is made. A query q is
kept as ``t a``, and ``|q.(x - c) - (t a).(s b)| <= |q| |x - c - s b| + |q - t a| |s b|`` bounds an
inner product but for q.c, which is the same for all vectors. For ``l2`` the query is moved by c as
well, which leaves distances as they are.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from ragcore_kernels._jit import JIT, inline, kernel
from ragcore_kernels.knn_emit import borrowed, data_of, load, lowest_bit, spread, store
from ragcore_kernels.knn_scores import COSINE, F32, F64, L2
from ragcore_kernels.knn_select import (
    ALWAYS,
    GREATEST_NORM,
    I32,
    I64,
    LEAST_NORM,
    NORM,
    PER_U,
    PER_V,
    SHIFT,
    SLACK,
    offer,
    settle,
)
from ragcore_kernels.knn_tiles import GROUP, LANES, has_vnni, sieve

I8 = NDArray[np.int8]
U8 = NDArray[np.uint8]

FOUR = 4
"""Dimensions that one instruction multiplies and adds up in a lane."""

LEAST_STEP = 1e-30
"""What is smaller is kept as nothing, and so lost: float32 would not hold it to all its digits."""

MOST_DIMENSIONS = 1 << 16
"""Sums of more products of bytes might not fit 32 bits."""

BLOCKS = 16
"""Tiles that all queries meet before the next: together they fit a second-level cache."""

_DOT = "llvm.x86.avx512.vpdpbusd.512"


@cache
def _operand() -> str:
    """How this LLVM wants the operands of the instruction; "" if it knows no such one."""
    from llvmlite import binding

    for kind in ("<64 x i8>", "<16 x i32>"):
        code = f"declare <16 x i32> @{_DOT}(<16 x i32>, {kind}, {kind})\n"
        try:
            binding.parse_assembly(code).verify()
        except RuntimeError:
            continue
        return kind
    return ""


@cache
def available() -> bool:
    """Whether bytes are the faster filter here; as plain Python they are at least the same."""
    return not JIT or (has_vnni() and bool(_operand()))


def _emit_bytes(builder: Any, docs: Any, at: Any, queries: Any, g: Any, d4: Any, out: Any) -> None:
    from llvmlite import ir

    i64, i32, wide = ir.IntType(64), ir.IntType(32), 16
    sums_type, bytes_type = ir.VectorType(i32, wide), ir.VectorType(ir.IntType(8), 4 * wide)
    operand = bytes_type if _operand() == "<64 x i8>" else sums_type
    signature = ir.FunctionType(sums_type, [sums_type, operand, operand])
    dot = cgutils.get_or_insert_function(builder.module, signature, _DOT)

    def number(value: int) -> Any:
        return ir.Constant(i64, value)

    # a group begins with what its sums begin with: products are of code + 128, for lack of signs
    start = builder.mul(g, builder.mul(builder.add(d4, number(1)), number(GROUP)))
    sums = [[cgutils.alloca_once(builder, sums_type) for _ in range(2)] for _ in range(GROUP)]
    for i in range(GROUP):
        first = load(builder, queries, builder.add(start, number(i)), i32, 4)
        for place in sums[i]:
            builder.store(spread(builder, first, wide), place)
    with cgutils.for_range(builder, d4, intp=i64) as loop:
        row = builder.add(at, builder.mul(loop.index, number(LANES * FOUR)))
        halves = [
            builder.bitcast(load(builder, docs, builder.add(row, number(64 * h)), bytes_type, 1),
                            operand)
            for h in range(2)
        ]  # fmt: skip
        column = builder.add(start, builder.mul(builder.add(loop.index, number(1)), number(GROUP)))
        for i in range(GROUP):
            q = spread(
                builder, load(builder, queries, builder.add(column, number(i)), i32, 4), wide
            )
            q = builder.bitcast(q, operand)
            for h in range(2):
                total = builder.call(dot, [builder.load(sums[i][h]), halves[h], q])
                builder.store(total, sums[i][h])
    for i in range(GROUP):
        for h in range(2):
            total = builder.sitofp(builder.load(sums[i][h]), ir.VectorType(ir.FloatType(), wide))
            store(builder, total, out, number(i * LANES + h * wide), 4)


def plain_tile_bytes(docs: Any, at: int, queries: Any, g: int, d4: int, out: Any) -> int:
    """Sums of products of the codes of LANES vectors and GROUP queries.

    Parameters
    ----------
    docs, at : codes + 128, and where those of the tile begin: (d4, LANES, FOUR) uint8.
    queries, g : (groups, 1 + d4, GROUP) int32, four codes in each, as `code_queries` makes it; the
        group.
    d4 : dimensions over FOUR, rounded up.
    out : (GROUP * LANES,) float32, filled.
    """
    x = docs[at : at + d4 * LANES * FOUR].reshape(d4, LANES, FOUR).astype(np.int32)
    size = (1 + d4) * GROUP
    group = queries[g * size : (g + 1) * size]
    q = group[GROUP:].view(np.int8).reshape(d4, GROUP, FOUR).astype(np.int32)
    out[:] = (np.einsum("jgc,jlc->gl", q, x) + group[:GROUP, None]).ravel()
    return 0


def _tile_bytes(typingctx: Any, docs: Any, at: Any, queries: Any, g: Any, d4: Any, out: Any) -> Any:
    """As `plain_tile_bytes`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, q, o = (data_of(context, builder, signature.args[i], args[i]) for i in (0, 2, 5))
        _emit_bytes(builder, x, args[1], q, args[3], args[4], o)
        return context.get_constant(types.int64, 0)

    whole = types.int64
    return types.int64(docs, whole, queries, whole, whole, out), codegen


tile_bytes: Any = intrinsic(_tile_bytes) if JIT else plain_tile_bytes


@inline
def _greatest(x: F32, i: int, over: float, centre: F64) -> float:
    most = 0.0
    for j in range(x.shape[1]):
        most = max(most, abs(np.float64(x[i, j]) / over - centre[j]))
    return most


@kernel
def centre_of(vectors: F32, norms: F64, metric: int, out: F64) -> None:
    """Mean of the vectors that have a bound; divided by their norms for ``cosine``.

    Parameters
    ----------
    vectors, norms : (n, d) float32, (n,); norms are NaN where a vector is not finite.
    metric : IP, COSINE or L2.
    out : (d,), filled; 0 without a vector.
    """
    out[:] = 0.0
    n = 0
    for i in range(vectors.shape[0]):
        if LEAST_NORM <= norms[i] <= GREATEST_NORM:
            n += 1
            over = norms[i] if metric == COSINE else 1.0
            for j in range(vectors.shape[1]):
                out[j] += np.float64(vectors[i, j]) / over
    for j in range(out.size):
        out[j] /= max(n, 1)


@kernel
def encode(
    vectors: F32, begin: int, norms: F64, metric: int, centre: F64, codes: U8, meta: F32
) -> None:
    """Codes of vectors, and what they lose.

    Parameters
    ----------
    vectors, norms : (n, d) float32, (n,); norms are NaN where a vector is not finite.
    begin : row of the whole matrix that `vectors` begins with.
    metric : IP, COSINE or L2.
    centre : (d,), the closer to the vectors the better; any does.
    codes : of the whole matrix, (tiles, d4, LANES, FOUR) flat, filled beforehand with 128.
    meta : of the whole matrix, (tiles, 4, LANES) flat, filled beforehand with 0.
    """
    d4 = (vectors.shape[1] + FOUR - 1) // FOUR
    middle = _length(centre)
    for i in range(vectors.shape[0]):
        norm = norms[i]
        tile, lane = (begin + i) // LANES, (begin + i) % LANES
        where = tile * 4 * LANES + lane
        if norm != norm:
            continue
        if norm != 0.0 and not (LEAST_NORM <= norm <= GREATEST_NORM):
            meta[where + 3 * LANES] = np.float32(-np.inf)
            continue
        if norm == 0.0 and metric == COSINE:  # its value is 0, and not that of the centre
            meta[where + 3 * LANES] = np.float32(-np.inf)
            continue
        over = norm if metric == COSINE else 1.0
        step = np.float64(np.float32(_greatest(vectors, i, over, centre) / 127.0))
        step = step if step > LEAST_STEP else 0.0
        per_step = 1.0 / step if step > 0.0 else 0.0
        lost, length, square = 0.0, 0.0, 0.0
        at = (tile * d4 * LANES + lane) * FOUR
        for j in range(vectors.shape[1]):
            value = np.float64(vectors[i, j]) / over - centre[j]
            code = min(max(np.rint(value * per_step), -127.0), 127.0)
            gap = value - step * code
            lost += gap * gap
            length += code * code
            square += value * value
            codes[at + j // FOUR * (LANES * FOUR) + j % FOUR] = np.uint8(np.int64(code) + 128)
        rounding = (norm / over + middle) * 2.0**-50  # of value itself
        meta[where] = np.float32(step)
        meta[where + LANES] = np.float32((math.sqrt(lost) + rounding) * (1.0 + SLACK))
        meta[where + 2 * LANES] = np.float32(step * math.sqrt(length) * (1.0 + SLACK))
        if metric == L2:
            meta[where + 3 * LANES] = np.float32(0.5 * square * (1.0 - SLACK))


@inline
def _length(x: F64) -> float:
    total = 0.0
    for value in x:
        total += value * value
    return math.sqrt(total)


@kernel
def code_queries(
    queries: F32, metric: int, centre: F64, codes: I8, first: I32, limits: F32, state: F64
) -> None:
    """Codes of queries, and bounds of what is lost.

    Parameters
    ----------
    queries : (m, d) float32, finite.
    metric : IP, COSINE or L2.
    centre : as `encode` took it.
    codes : (groups, 1 + d4, GROUP, FOUR) flat, filled.
    first : the same memory as int32, (groups, 1 + d4, GROUP) flat.
    limits, state : as `begin` leaves them; bounds are filled in where one holds.
    """
    m, d = queries.shape
    size = (1 + (d + FOUR - 1) // FOUR) * GROUP
    middle = _length(centre)
    noise = (d + 8.0) * 2.0**-50
    codes[:] = np.int8(0)
    moved = centre if metric == L2 else np.zeros(d)
    for q in range(m):
        whole = state[q, NORM]
        most = _greatest(queries, q, 1.0, moved)
        if not (LEAST_NORM <= whole <= GREATEST_NORM) or not most > LEAST_STEP:
            continue
        step = np.float64(np.float32(most / 127.0))
        lost, length, total, square, shift = 0.0, 0.0, 0.0, 0.0, 0.0
        start = q // GROUP * size + q % GROUP
        for j in range(d):
            value = np.float64(queries[q, j]) - moved[j]
            code = min(max(np.rint(value / step), -127.0), 127.0)
            gap = value - step * code
            lost += gap * gap
            length += code * code
            total += code
            square += value * value
            shift += value * centre[j]
            codes[(start + (1 + j // FOUR) * GROUP) * FOUR + j % FOUR] = np.int8(code)
        first[start] = np.int32(-128.0 * total)
        norm = math.sqrt(square)
        rounding = (whole + middle) * 2.0**-50  # of value itself, and of scores
        state[q, PER_U] = norm * (1.0 + SLACK + noise) + rounding
        state[q, PER_V] = (math.sqrt(lost) + rounding) * (1.0 + SLACK)
        state[q, PER_V] += SLACK * step * math.sqrt(length) + norm * noise
        if metric == L2:
            state[q, NORM] = norm  # scores are of both as they were moved
            state[q, ALWAYS] += 4.0 * noise * (whole + middle) * (whole + middle)
        else:
            state[q, SHIFT] = shift
            state[q, ALWAYS] += 4.0 * noise * whole * (middle + 1.0 * (metric == COSINE))
        limits[4 * q] = np.float32(step)
        limits[4 * q + 2] = np.float32(state[q, PER_U] * (1.0 + SLACK))
        limits[4 * q + 3] = np.float32(state[q, PER_V] * (1.0 + SLACK))


@kernel
def scan_bytes(
    vectors: F32, base: int, norms: F64, tiles: I64, alive: I64, queries: F32, codes: U8,
    query_codes: I32, metric: int, meta: F32, scores: F32, masks: I64, limits: F32, state: F64,
    k: int,
) -> None:  # fmt: skip
    """Offer vectors to all queries, by the inner products of their codes.

    Parameters
    ----------
    vectors, norms : (n, d) float32, (n,); row 0 is row `base` of the whole matrix.
    base : see `vectors`.
    tiles, alive : tiles to look at, ascending; for each its vectors that may be found, as bits.
    queries : (m, d) float32, finite.
    codes, meta : of the whole matrix, from `encode`.
    query_codes : from `code_queries`.
    metric : IP, COSINE or L2.
    scores, masks : room for a tile: (GROUP * LANES,), (GROUP,).
    limits, state, k : as `offer` says.
    """
    m = np.int64(queries.shape[0])
    d4 = np.int64((queries.shape[1] + FOUR - 1) // FOUR)
    groups = (m + GROUP - 1) // GROUP
    vectors, norms, queries = borrowed(vectors), borrowed(norms), borrowed(queries)
    meta, limits, state = borrowed(meta), borrowed(limits), borrowed(state)
    for start in range(0, tiles.size, BLOCKS):
        end = min(tiles.size, start + BLOCKS)
        for g in range(groups):
            for t in range(start, end):
                tile = tiles[t]
                where = tile * 4 * LANES
                tile_bytes(codes, tile * d4 * LANES * FOUR, query_codes, g, d4, scores)
                if sieve(scores, meta, where, limits, g * 4 * GROUP, masks) & alive[t] == 0:
                    continue
                for i in range(min(m - g * GROUP, GROUP)):
                    mask = masks[i] & alive[t]
                    while mask:
                        lane = lowest_bit(mask)
                        mask &= mask - 1
                        offer(
                            g * GROUP + i, tile * LANES + lane,
                            scores[i * LANES + lane], meta, where + lane, k, metric,
                            vectors, base, norms, queries, limits, state,
                        )  # fmt: skip
    for q in range(m):
        settle(q, k, metric, vectors, base, norms, queries, limits, state)
