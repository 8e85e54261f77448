"""Numbers at addresses, read and written: integers that do not wrap, stores without bounds.

Who stores has checked that the place belongs to the output.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ragcore_kernels._jit import JIT, inline, load_i32, load_i64, load_u8, load_u32

U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]


@inline
def byte(address: int) -> int:
    """The byte at an address, as a number that does not wrap."""
    return np.int64(load_u8(address))


@inline
def word(address: int) -> int:
    """The unsigned number of four bytes at an address."""
    return np.int64(load_u32(address))


@inline
def number(address: int) -> int:
    """The signed number of four bytes at an address."""
    return np.int64(load_i32(address))


@inline
def long(address: int) -> int:
    """The signed number of eight bytes at an address."""
    return np.int64(load_i64(address))


def _plain_store(address: int, value: int) -> None:
    ctypes.c_int32.from_address(int(address)).value = int(value)


def _store(typingctx: Any, address: Any, value: Any) -> Any:
    """Write the low four bytes of a number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        kind = ir.IntType(32)
        place = builder.inttoptr(args[0], kind.as_pointer())
        builder.store(builder.trunc(args[1], kind), place, align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


store: Any = intrinsic(_store) if JIT else _plain_store
