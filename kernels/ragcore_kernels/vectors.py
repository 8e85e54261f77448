"""Vector code that Numba would not write: rows of bytes added into 16-bit lanes, bits, prefetch.

Each function is LLVM's portable vector code, which every processor gets in its own instructions,
and beside it the same in plain Python for ``NUMBA_DISABLE_JIT=1``. A *plan* says which rows are
added: two int64 a row, the row's distance in bytes from `base` and a multiplier below 2**16; a byte
u of the row adds ``(u * multiplier) >> 8``. In a row, the bytes of a chunk of 64 documents
alternate between its halves (`place_in_row`), so that two 16-bit operations take them apart.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ragcore_kernels._jit import JIT, inline

WINDOW = 8_192
"""Documents in a window: their 16-bit sums fill half of a small first-level cache."""
CHUNK = 64
"""Documents whose sums are compared at once, into the bits of one mask."""
MOST_ROWS = 6
"""Rows that one pass adds."""

_Plain = Callable[..., Any]


def _memory(address: int, n: int, dtype: Any) -> np.ndarray:
    """`n` values at `address`, to read and write."""
    size = n * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(int(address)), dtype)


def _plain_add(n_rows: int) -> _Plain:
    def add(sums: int, plan: int, base: int) -> int:
        acc = _memory(sums, WINDOW, np.uint16)
        for at, m in _memory(plan, 2 * n_rows, np.int64).reshape(n_rows, 2).tolist():
            row = _memory(base + at, WINDOW, np.uint8).reshape(-1, CHUNK // 2, 2)
            straight = row.transpose(0, 2, 1).reshape(-1).astype(np.uint32)
            acc[:] = (acc + ((straight * m) >> 8)).astype(np.uint16)
        return 0

    return add


def _plain_scan(n_rows: int) -> _Plain:
    add = _plain_add(n_rows)

    def scan(
        sums: int, plan: int, base: int, least: int, totals: int, masks: int, chunks: int
    ) -> int:
        add(sums, plan, base)
        acc = _memory(sums, WINDOW, np.uint16)
        found = (acc >= least).reshape(-1, CHUNK)
        which = np.flatnonzero(found.any(1))
        bits = np.packbits(found[which], axis=1, bitorder="little").view(np.uint64)[:, 0]
        _memory(masks, WINDOW // CHUNK, np.uint64)[: which.size] = bits
        _memory(chunks, WINDOW // CHUNK, np.int64)[: which.size] = which
        _memory(totals, WINDOW, np.uint16)[:] = acc
        acc[:] = 0
        return which.size

    return scan


def _emit(builder: Any, args: Any, n_rows: int, scanning: bool) -> Any:
    """The loop over the chunks of a window; gives how many chunks have a bit (or 0)."""
    from llvmlite import ir
    from numba.core import cgutils

    i16, i32, i64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
    lanes, half = ir.VectorType(i16, CHUNK), CHUNK // 2
    part = ir.VectorType(i16, half)
    product = ir.FunctionType(part, [part, part, i32])  # multiplied, then down by 16 bits
    name = f"llvm.umul.fix.v{half}i16"
    fixed = cgutils.get_or_insert_function(builder.module, product, name)

    def pointer(address: Any, kind: Any) -> Any:
        return builder.inttoptr(address, ir.PointerType(kind))

    def plus(address: Any, index: Any, size: int) -> Any:
        return builder.add(address, builder.mul(index, i64(size)))

    def splat(value: Any, kind: Any) -> Any:
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, i32(0))
        zeros = ir.Constant(ir.VectorType(i32, kind.count), [0] * kind.count)
        return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    eight, high = (ir.Constant(part, [value] * half) for value in (8, 0xFF00))
    order = ir.Constant(ir.VectorType(i32, CHUNK), list(range(CHUNK)))

    sums, plan, base = args[:3]
    rows = []
    for r in range(n_rows):
        at, m = (
            builder.load(pointer(builder.add(plan, i64(16 * r + 8 * which)), i64), align=8)
            for which in range(2)
        )
        rows.append((builder.add(base, at), splat(builder.trunc(m, i16), part)))
    least, totals, masks, chunks = args[3:] if scanning else [i64(0)] * 4
    wanted = splat(builder.trunc(least, i16), lanes)
    before = builder.block
    function = builder.function
    loop, after = function.append_basic_block("chunk"), function.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    i = builder.phi(i64)
    i.add_incoming(i64(0), before)
    count = builder.phi(i64)
    count.add_incoming(i64(0), before)
    place = pointer(plus(sums, i, 2 * CHUNK), lanes)
    total = builder.load(place, align=64)
    for row, m in rows:
        pairs = builder.load(pointer(plus(row, i, CHUNK), part), align=64)
        first = builder.call(fixed, [builder.shl(pairs, eight), m, i32(16)])
        second = builder.call(fixed, [builder.and_(pairs, high), m, i32(16)])
        total = builder.add(total, builder.shuffle_vector(first, second, order))
    stored = ir.Constant(lanes, [0] * CHUNK) if scanning else total
    builder.store(stored, place, align=64)
    end, found = loop, count
    if scanning:
        mask = builder.bitcast(builder.icmp_unsigned(">=", total, wanted), i64)
        keep, end = function.append_basic_block("keep"), function.append_basic_block("next")
        builder.cbranch(builder.icmp_unsigned("!=", mask, i64(0)), keep, end)
        builder.position_at_end(keep)
        builder.store(total, pointer(plus(totals, i, 2 * CHUNK), lanes), align=64)
        builder.store(mask, pointer(plus(masks, count, 8), i64), align=8)
        builder.store(i, pointer(plus(chunks, count, 8), i64), align=8)
        more = builder.add(count, i64(1))
        builder.branch(end)
        builder.position_at_end(end)
        found = builder.phi(i64)
        found.add_incoming(count, loop)
        found.add_incoming(more, keep)
    following = builder.add(i, i64(1))
    i.add_incoming(following, end)
    count.add_incoming(found, end)
    builder.cbranch(builder.icmp_unsigned("<", following, i64(WINDOW // CHUNK)), loop, after)
    builder.position_at_end(after)
    return found


def _adder(n_rows: int) -> _Plain:
    """``add(sums, plan, base)``: add `n_rows` rows to the sums of a window."""
    if not JIT:
        return _plain_add(n_rows)

    @intrinsic
    def add(typingctx: Any, sums: Any, plan: Any, base: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _emit(builder, args, n_rows, False)

        return types.int64(types.int64, types.int64, types.int64), codegen

    return add


def _scanner(n_rows: int) -> _Plain:
    """``scan(sums, plan, base, least, totals, masks, chunks)``: add rows, compare, clear."""
    if not JIT:
        return _plain_scan(n_rows)

    @intrinsic
    def scan(
        typingctx: Any, sums: Any, plan: Any, base: Any, least: Any, totals: Any, masks: Any,
        chunks: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _emit(builder, args, n_rows, True)

        return types.int64(*[types.int64] * 7), codegen

    return scan


@inline
def place_in_row(d: int) -> Any:
    """Where the byte of document `d` of a window stands in a row."""
    return (d & ~63) | ((d & 31) << 1) | ((d >> 5) & 1)


_add_all = _adder(MOST_ROWS)
_scan_0, _scan_1, _scan_2, _scan_3 = _scanner(0), _scanner(1), _scanner(2), _scanner(3)
_scan_4, _scan_5, _scan_6 = _scanner(4), _scanner(5), _scanner(6)


@inline
def scan_rows(
    sums: int, plan: int, n_rows: int, base: int, least: int, totals: int, masks: int, chunks: int
) -> Any:
    """Add rows to the sums of a window, find those that reach `least`, and clear the sums.

    Parameters
    ----------
    sums : address of WINDOW uint16, aligned to 64 bytes.
    plan, n_rows : address of the plan, and its rows.
    base : address that the plan counts from; rows are aligned to 64 bytes.
    least : what a sum has to reach, 1 to 65,535.
    totals : address of WINDOW uint16; chunks with a found sum are written.
    masks, chunks : addresses of uint64 and int64 [WINDOW / CHUNK]: bits of the found sums, and
        the number of each chunk that has one.

    Returns
    -------
    How many chunks have one.
    """
    while n_rows > MOST_ROWS:
        _add_all(sums, plan, base)
        plan += 16 * MOST_ROWS
        n_rows -= MOST_ROWS
    if n_rows == 0:
        return _scan_0(sums, plan, base, least, totals, masks, chunks)
    if n_rows == 1:
        return _scan_1(sums, plan, base, least, totals, masks, chunks)
    if n_rows == 2:
        return _scan_2(sums, plan, base, least, totals, masks, chunks)
    if n_rows == 3:
        return _scan_3(sums, plan, base, least, totals, masks, chunks)
    if n_rows == 4:
        return _scan_4(sums, plan, base, least, totals, masks, chunks)
    if n_rows == 5:
        return _scan_5(sums, plan, base, least, totals, masks, chunks)
    return _scan_6(sums, plan, base, least, totals, masks, chunks)


def _lowest_bit() -> _Plain:
    if not JIT:
        return lambda bits: (int(bits) & -int(bits)).bit_length() - 1

    @intrinsic
    def lowest(typingctx: Any, bits: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            from llvmlite import ir

            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.uint64), codegen

    return lowest


def _bit_count() -> _Plain:
    if not JIT:
        return lambda bits: int(bits).bit_count()

    @intrinsic
    def count(typingctx: Any, bits: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ctpop(args[0])

        return types.int64(types.uint64), codegen

    return count


def _prefetch() -> _Plain:
    if not JIT:
        return lambda address: None

    @intrinsic
    def ask(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            from llvmlite import ir

            i32 = ir.IntType(32)
            place = builder.inttoptr(args[0], ir.PointerType(ir.IntType(8)))
            kind = ir.FunctionType(ir.VoidType(), [place.type, i32, i32, i32])
            called = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
            builder.call(called, [place, i32(0), i32(3), i32(1)])
            return context.get_dummy_value()

        return types.void(types.int64), codegen

    return ask


lowest_bit = _lowest_bit()
"""``lowest_bit(bits)``: number of the lowest bit that is set in a uint64 that is not 0."""
bit_count = _bit_count()
"""``bit_count(bits)``: how many bits of a uint64 are set."""
prefetch = _prefetch()
"""``prefetch(address)``: ask for the cache line at an address, which need not be readable."""
