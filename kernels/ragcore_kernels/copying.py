"""Ids from wherever they lie into one Arrow buffer, a few instructions each."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ragcore_kernels._jit import JIT, inline, kernel, load_u8, load_u32, load_u64
from ragcore_kernels.layout import I64


def _store(numba_type: Any, numpy_type: type[np.generic]) -> Callable[[int, Any], None]:
    """Build ``f(address, value)`` for one machine type, without any alignment assumed."""
    if not JIT:

        def plain(address: int, value: Any) -> None:
            raw = numpy_type(value).tobytes()
            ctypes.memmove(int(address), raw, len(raw))

        return plain

    @intrinsic
    def store(typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            from llvmlite import ir  # here, so that a reader of this module need not know it

            kind = context.get_value_type(numba_type)
            pointer = builder.inttoptr(args[0], ir.PointerType(kind))
            builder.store(args[1], pointer, align=1)
            return context.get_dummy_value()

        return types.none(types.int64, numba_type), codegen

    return store


store_u8 = _store(types.uint8, np.uint8)
store_u32 = _store(types.uint32, np.uint32)
store_u64 = _store(types.uint64, np.uint64)


@inline
def copy_bytes(source: int, size: int, target: int) -> None:
    """Copy `size` bytes between places that do not overlap; nothing beside them is touched."""
    if size >= 8:
        last = size - 8
        at = np.int64(0)
        while at < last:
            store_u64(target + at, load_u64(source + at))
            at += 8
        store_u64(target + last, load_u64(source + last))
    elif size >= 4:
        store_u32(target, load_u32(source))
        store_u32(target + size - 4, load_u32(source + size - 4))
    else:
        for at in range(size):
            store_u8(target + at, load_u8(source + at))


@kernel
def copy_ids(places: I64, n: int, target: int) -> None:
    """Copy n ids side by side.

    Parameters
    ----------
    places : (n or more, 2), address and length of each id.
    n : how many.
    target : address of as many bytes as all of them have.
    """
    for i in range(n):
        size = places[i, 1]
        copy_bytes(places[i, 0], size, target)
        target += size
