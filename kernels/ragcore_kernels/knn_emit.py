"""Small parts of generated code that exact search is made of."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ragcore_kernels._jit import JIT


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Pointer to the first element of an array, in generated code."""
    return context.make_array(kind)(context, builder, array).data


def load(builder: Any, base: Any, index: Any, kind: Any, align: int) -> Any:
    """Load a value of type `kind` from element `index` of `base`, in generated code."""
    return builder.load(builder.bitcast(builder.gep(base, [index]), kind.as_pointer()), align=align)


def store(builder: Any, value: Any, base: Any, index: Any, align: int) -> None:
    """Store a value to element `index` of `base`, in generated code."""
    place = builder.bitcast(builder.gep(base, [index]), value.type.as_pointer())
    builder.store(value, place, align=align)


def spread(builder: Any, value: Any, n: int) -> Any:
    """A vector of `n` copies of a scalar, in generated code."""
    from llvmlite import ir

    i32 = ir.IntType(32)
    one = ir.Constant(ir.VectorType(value.type, n), ir.Undefined)
    one = builder.insert_element(one, value, ir.Constant(i32, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(i32, n), [0] * n))


def plain_borrowed(array: Any) -> Any:
    """The same array, whose references are not counted: its owner outlives the kernel."""
    return array


def _borrowed(typingctx: Any, array: Any) -> Any:
    """As `plain_borrowed`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(array)(context, builder, args[0])
        for owner in ("meminfo", "parent"):
            setattr(view, owner, cgutils.get_null_value(getattr(view, owner).type))
        return view._getvalue()

    return array(array), codegen


def plain_lowest_bit(mask: int) -> int:
    """Place of the lowest bit that is set; `mask` is not 0."""
    return (int(mask) & -int(mask)).bit_length() - 1


def _lowest_bit(typingctx: Any, mask: Any) -> Any:
    """As `plain_lowest_bit`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


lowest_bit: Any = intrinsic(_lowest_bit) if JIT else plain_lowest_bit
borrowed: Any = intrinsic(_borrowed) if JIT else plain_borrowed
