"""Vector code that Numba does not write by itself: blocks of packed numbers.

Each name is an LLVM intrinsic of fixed-size vectors, which any processor runs, and with
``NUMBA_DISABLE_JIT=1`` plain Python that does the same.

A block holds 128 numbers in four interleaved lanes: number i is in lane i % 4 and row i // 4, and
the bits of a lane follow each other through every fourth 32-bit word. So the 16 numbers of four
rows, in order, are one vector: a shuffle of the words at constant places, shifts by constants and
a mask. One piece of code is made for every width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

from ragcore_kernels._jit import JIT
from ragcore_kernels.memory import store, word

BLOCK = 128
"""Numbers in a block."""

MOST_BITS = 24
"""Widest numbers that the vector code unpacks: sums of a block stay below 2**32."""

_LANES = 16  # numbers in a vector
_GROUPS = BLOCK // _LANES
_MASK32 = 0xFFFFFFFF
_MASK64 = (1 << 64) - 1


def unpacked(address: int, width: int) -> list[int]:
    """The 128 numbers of a block, one by one, without compilation."""
    numbers, width = [], int(width)
    for i in range(BLOCK):
        bit = i // 4 * width
        place = int(address) + bit // 32 * 16 + i % 4 * 4
        value = int(word(place)) if width else 0
        if bit % 32 + width > 32:
            value |= int(word(place + 16)) << 32
        numbers.append(value >> bit % 32 & (1 << width) - 1)
    return numbers


def _plain_docs(address: int, width: int, before: int, base: int, strict: int, out: int) -> int:
    doc = int(before)
    for i, delta in enumerate(unpacked(address, width)):
        doc = doc + delta + int(strict) & _MASK32
        store(int(out) + 4 * i, doc + int(base))
    return doc


def _plain_tfs(address: int, width: int, strict: int, out: int) -> int:
    values = [value + int(strict) for value in unpacked(address, width)]
    for i, value in enumerate(values):
        store(int(out) + 4 * i, value)
    return sum(values) & _MASK32


class _Writer:
    """LLVM code of one block: the parts that documents and frequencies share."""

    def __init__(self, builder: Any, address: Any, out: Any) -> None:
        from llvmlite import ir  # here, so that a reader of this module need not know it

        self.ir, self.builder = ir, builder
        self.word = ir.IntType(32)
        self.vector = ir.VectorType(self.word, _LANES)
        self.zero = ir.Constant(self.vector, None)
        self.source = builder.inttoptr(address, self.word.as_pointer())
        self.out = builder.inttoptr(out, self.word.as_pointer())
        self.steps = self.ramp = self.sixteen = self.zero  # what is added to each number

    def numbers(self, values: list[int]) -> Any:
        """A constant vector."""
        return self.ir.Constant(self.vector, [self.ir.Constant(self.word, v) for v in values])

    def pick(self, first: Any, second: Any, places: list[int]) -> Any:
        """Elements of two vectors at constant places."""
        index = self.ir.Constant(
            self.ir.VectorType(self.word, len(places)),
            [self.ir.Constant(self.word, p) for p in places],
        )
        return self.builder.shuffle_vector(first, second, index)

    def splat(self, value: Any) -> Any:
        """A scalar in all lanes."""
        one = self.builder.insert_element(self.zero, value, self.ir.Constant(self.word, 0))
        return self.pick(one, one, [0] * _LANES)

    def funnel(self) -> Any:
        """LLVM's shift of a pair of vectors to the right."""
        module, name = self.builder.module, f"llvm.fshr.v{_LANES}i32"
        if name not in module.globals:
            kind = self.ir.FunctionType(self.vector, [self.vector] * 3)
            return self.ir.Function(module, kind, name)
        return module.globals[name]

    def group(self, width: int, group: int) -> Any:
        """The 16 numbers from ``16 * group`` on."""
        if width == 0:
            return self.zero
        rows = min(width, 4)  # of four words each: 16 numbers of <= 24 bits touch no more
        first = min(group * width // 8, width - rows)
        low, high, shifts = [], [], []
        for lane in range(_LANES):
            bit = (4 * group + lane // 4) * width
            place = 4 * (bit // 32 - first) + lane % 4
            low.append(place)
            high.append(place + 4 if bit % 32 + width > 32 else place)
            shifts.append(bit % 32)
        kind = self.ir.VectorType(self.word, 4 * rows)
        start = self.builder.gep(self.source, [self.ir.Constant(self.word, 4 * first)])
        words = self.builder.load(self.builder.bitcast(start, kind.as_pointer()), align=4)
        words.align = 1
        value, by = self.pick(words, words, low), self.numbers(shifts)
        if low == high:
            value = self.builder.lshr(value, by)
        else:
            value = self.builder.call(self.funnel(), [self.pick(words, words, high), value, by])
        return self.builder.and_(value, self.numbers([(1 << width) - 1] * _LANES))

    def running(self, value: Any) -> Any:
        """Sums of the lanes up to each."""
        for step in (1, 2, 4, 8):
            places = [k - step if k >= step else _LANES for k in range(_LANES)]
            value = self.builder.add(value, self.pick(value, self.zero, places))
        return value

    def store(self, value: Any, group: int) -> None:
        """Put 16 numbers where they belong in the output."""
        start = self.builder.gep(self.out, [self.ir.Constant(self.word, _LANES * group)])
        place = self.builder.bitcast(start, self.vector.as_pointer())
        self.builder.store(value, place, align=4)

    def block(self, width: int, body: Callable[[_Writer, Any, int, Any], Any], first: Any) -> Any:
        """Code for one width: `body` for each group, with what the one before it gave."""
        state = first
        for group in range(_GROUPS):
            state = body(self, self.group(width, group), group, state)
        return state

    def switch(self, width: Any, body: Any, first: Any) -> Any:
        """Code for every width; the state after the last group."""
        builder = self.builder
        done, other = builder.append_basic_block("done"), builder.append_basic_block("other")
        choice = builder.switch(width, other)
        ends = []
        for bits in range(MOST_BITS + 1):
            block = builder.append_basic_block(f"width{bits}")
            choice.add_case(self.ir.Constant(width.type, bits), block)
            builder.position_at_end(block)
            ends.append((self.block(bits, body, first), builder.block))
            builder.branch(done)
        builder.position_at_end(other)
        builder.unreachable()
        builder.position_at_end(done)
        state = builder.phi(self.vector)
        for value, block in ends:
            state.add_incoming(value, block)
        return state


def _unpack_docs(
    typingctx: Any, address: Any, width: Any, before: Any, base: Any, strict: Any, out: Any
) -> Any:
    """Write 128 documents to address `out`, each plus `base`; returns the last, without `base`.

    `before` is the document before the block (-1 before the first, or 0 if not `strict`).
    At most `MOST_BITS` wide; reads ``16 * width`` bytes, and nothing else.
    """

    def body(write: _Writer, value: Any, group: int, state: Any) -> Any:
        add = write.builder.add
        sums = write.running(value)
        write.store(add(add(sums, write.ramp), state), group)
        last = add(write.pick(sums, sums, [_LANES - 1] * _LANES), write.sixteen)
        return add(state, last)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        write: Any = _Writer(builder, args[0], args[-1])
        trunc = [builder.trunc(args[k], write.word) for k in (2, 3, 4)]
        steps = write.splat(trunc[2])
        write.ramp = builder.mul(steps, write.numbers(list(range(1, _LANES + 1))))
        write.sixteen = builder.mul(steps, write.numbers([_LANES] * _LANES))
        first = write.splat(builder.add(trunc[0], trunc[1]))
        state = write.switch(args[1], body, first)
        last = builder.extract_element(state, write.ir.Constant(write.word, 0))
        last = builder.sub(last, trunc[1])
        return builder.zext(last, args[0].type)

    i64 = types.int64
    return i64(i64, i64, i64, i64, i64, i64), codegen


def _unpack_tfs(typingctx: Any, address: Any, width: Any, strict: Any, out: Any) -> Any:
    """Write 128 frequencies to address `out`; returns their sum modulo 2**32.

    At most `MOST_BITS` wide; reads ``16 * width`` bytes, and nothing else.
    """

    def body(write: _Writer, value: Any, group: int, state: Any) -> Any:
        value = write.builder.add(value, write.steps)
        write.store(value, group)
        return write.builder.add(state, value)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        write: Any = _Writer(builder, args[0], args[-1])
        write.steps = write.splat(builder.trunc(args[2], write.word))
        state = write.running(write.switch(args[1], body, write.zero))
        total = builder.extract_element(state, write.ir.Constant(write.word, _LANES - 1))
        return builder.zext(total, args[0].type)

    i64 = types.int64
    return i64(i64, i64, i64, i64), codegen


unpack_docs: Any = intrinsic(_unpack_docs) if JIT else _plain_docs
unpack_tfs: Any = intrinsic(_unpack_tfs) if JIT else _plain_tfs
