"""The tails of posting lists: varints of 7 bits a byte, the last byte of each marked.

The marks of 64 bytes are one mask. Each varint is loaded backwards from its last byte, so that no
step waits for the one before it and none depends on how long a varint is. The fast way handles
varints of at most four bytes, and leaves what it cannot vouch for to the slow way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ragcore_kernels._jit import JIT, inline
from ragcore_kernels.memory import byte, store, word

PADDING = 64
"""Bytes that must be readable after a list for the fast way."""

MOST = 2**31 - 1
"""Largest frequency, and above the largest document."""

BAD = -1

_LANES = 16


# --- what Numba does not write by itself, and the same in plain Python


def _plain_stops(address: int) -> int:
    return sum(1 << k for k in range(64) if byte(int(address) + k) & 128)


def _stops(typingctx: Any, address: Any) -> Any:
    """Bit k tells whether byte k of the 64 bytes at `address` has its highest bit set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        kind = ir.VectorType(ir.IntType(8), 64)
        data = builder.load(builder.inttoptr(args[0], kind.as_pointer()), align=1)
        signs = builder.icmp_signed("<", data, ir.Constant(kind, None))
        return builder.bitcast(signs, ir.IntType(64))

    return types.int64(types.int64), codegen


def _plain_lowest(mask: int) -> int:
    return (int(mask) & -int(mask)).bit_length() - 1


def _lowest(typingctx: Any, mask: Any) -> Any:
    """Place of the lowest bit that is set; the mask is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


def _plain_drop(mask: int) -> int:
    return int(mask) & int(mask) - 1


def _drop_lowest(typingctx: Any, mask: Any) -> Any:
    """The mask without its lowest bit."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.and_(args[0], builder.sub(args[0], args[0].type(1)))

    return types.int64(types.int64), codegen


def _plain_short(last: int, size: int) -> int:
    value = int(word(int(last) - 3)) >> (32 - 8 * int(size) & 31)
    return sum((value >> 8 * k & 127) << 7 * k for k in range(4))


def _short(typingctx: Any, last: Any, size: Any) -> Any:
    """The varint of 1 to 4 bytes that ends at address `last`; of another size, some number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        kind, wide = ir.IntType(32), args[0].type
        start = builder.sub(args[0], wide(3))
        x = builder.load(builder.inttoptr(start, kind.as_pointer()), align=4)
        x.align = 1
        by = builder.trunc(builder.mul(args[1], wide(-8)), kind)
        x = builder.lshr(x, builder.and_(by, kind(31)))
        for low, high, shift in ((0x007F007F, 0x7F007F00, 1), (0x3FFF, 0x3FFF0000, 2)):
            upper = builder.lshr(builder.and_(x, kind(high)), kind(shift))
            x = builder.or_(builder.and_(x, kind(low)), upper)
        return builder.zext(x, wide)

    return types.int64(types.int64, types.int64), codegen


def _plain_spread(address: int, n: int, out: int) -> int:
    values = [int(byte(int(address) + k)) for k in range(min(int(n), _LANES))]
    for k, value in enumerate(values):
        store(int(out) + 4 * k, value & 127)
    return int(min(values) <= 128)


def _spread(typingctx: Any, address: Any, n: Any, out: Any) -> Any:
    """Write the varints of one byte each at `address`, 16 or the last `n`, to `out`.

    Not 0 if one of them is 0 or no varint of one byte. Reads 16 bytes.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        kind = ir.VectorType(ir.IntType(32), _LANES)
        small = ir.VectorType(ir.IntType(8), _LANES)
        bits = ir.VectorType(ir.IntType(1), _LANES)
        data = builder.load(builder.inttoptr(args[0], small.as_pointer()), align=1)
        left = builder.trunc(args[1], ir.IntType(32))
        one = builder.insert_element(ir.Constant(kind, None), left, ir.IntType(32)(0))
        n = builder.shuffle_vector(one, one, ir.Constant(kind, None))
        ours = builder.icmp_signed("<", ir.Constant(kind, list(range(_LANES))), n)
        wide = builder.zext(data, kind)
        value = builder.and_(wide, ir.Constant(kind, [127] * _LANES))
        name = f"llvm.masked.store.v{_LANES}i32.p0"
        place = builder.inttoptr(args[2], kind.as_pointer())
        shape = ir.FunctionType(ir.VoidType(), [kind, place.type, ir.IntType(32), bits])
        module = builder.module
        masked = module.globals.get(name) or ir.Function(module, shape, name)
        builder.call(masked, [value, place, ir.IntType(32)(4), ours])
        bad = builder.icmp_unsigned("<=", wide, ir.Constant(kind, [128] * _LANES))
        bad = builder.bitcast(builder.and_(bad, ours), ir.IntType(_LANES))
        return builder.zext(bad, args[0].type)

    i64 = types.int64
    return i64(i64, i64, i64), codegen


stops: Any = intrinsic(_stops) if JIT else _plain_stops
lowest: Any = intrinsic(_lowest) if JIT else _plain_lowest
drop_lowest: Any = intrinsic(_drop_lowest) if JIT else _plain_drop
short: Any = intrinsic(_short) if JIT else _plain_short
spread: Any = intrinsic(_spread) if JIT else _plain_spread


# --- tails


@inline
def varint(at: int, stop: int) -> tuple[int, int]:
    """A varint at `at`, and where it ends; `BAD` for one that is too long or not over."""
    value = np.int64(0)
    for k in range(min(5, stop - at)):
        c = byte(at + k)
        value |= (c & 127) << (7 * k)
        if c >= 128:
            return value, at + k + 1
    return np.int64(BAD), at


@inline
def slow_tail(
    at: int, stop: int, n: int, with_tfs: bool, doc: int, base: int, docs: int, tfs: int
) -> int:
    """Documents and frequencies of the tail at [`at`, `stop`), a byte at a time.

    `doc` is the document before, or 0; `docs` and `tfs` are where the `n` of each go. Returns the
    last document, or `BAD` unless documents ascend, frequencies are 1 to `MOST`, and all ends at
    `stop`.
    """
    for k in range(n):
        value, at = varint(at, stop)
        if value < 0 or (value == 0 and (k > 0 or doc > 0)) or doc + value > MOST - base:
            return BAD
        doc += value
        store(docs + 4 * k, doc + base)
    for k in range(n):
        value = np.int64(1)
        if with_tfs:
            value, at = varint(at, stop)
        if value < 1 or value > MOST:
            return BAD
        store(tfs + 4 * k, value)
    return doc if at == stop else np.int64(BAD)


@inline
def fast_tail(
    at: int, stop: int, n: int, with_tfs: bool, doc: int, base: int, docs: int, tfs: int
) -> int:
    """As `slow_tail` if `PADDING` bytes follow `stop`; `BAD` also if a number is large.

    Documents are at most ``doc + n * 2**28``, so that nothing wraps.
    """
    chunk = at
    before = at - 1
    mask = stops(chunk)
    fault = np.int64(0)
    least = np.int64(doc > 0)  # only the very first delta may be 0
    doc += base
    for k in range(n):
        while mask == 0:
            chunk += 64
            if chunk >= stop:
                return BAD
            mask = stops(chunk)
        last = chunk + lowest(mask)
        mask = drop_lowest(mask)
        size = last - before
        before = last
        value = short(last, size)
        fault |= (4 - size) | (value - least)  # negative where there is one
        least = np.int64(1)
        doc += value
        store(docs + 4 * k, doc)
    if with_tfs:
        if stop - 1 - before == n:  # a byte each, nearly always
            zero = np.int64(0)
            for k in range(0, n, _LANES):
                zero |= spread(before + 1 + k, n - k, tfs + 4 * k)
            return doc - base if fault >= 0 and zero == 0 else np.int64(BAD)
        for k in range(n):
            while mask == 0:
                chunk += 64
                if chunk >= stop:
                    return BAD
                mask = stops(chunk)
            last = chunk + lowest(mask)
            mask = drop_lowest(mask)
            size = last - before
            before = last
            value = short(last, size)
            fault |= (4 - size) | (value - 1)
            store(tfs + 4 * k, value)
    else:
        for k in range(n):
            store(tfs + 4 * k, np.int64(1))
    return doc - base if fault >= 0 and before == stop - 1 else np.int64(BAD)
