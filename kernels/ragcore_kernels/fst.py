"""Tantivy's dictionary of terms, a finite state transducer read in place: look up, list.

A node is read backwards from its address, which is the place of its last byte; nodes lie behind
the ones that they lead to, so that every path ends. Address 0 is the final node without
transitions. The outputs along a path add up to the number of the term, its ordinal. Nothing is
trusted: an address, a size or an output that cannot be ends the reading.
"""

from __future__ import annotations

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.memory import U8, byte, long

HEAD, TAIL = 16, 16
"""Bytes before the first node and after the last."""

LONGEST = 65_535
"""No term has more bytes; tantivy drops longer tokens."""

ABSENT, DAMAGED = -1, -2

FULL = -3
"""What `list_terms` says where the bytes have no room."""

_COMMON = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"
_INPUTS = (0, *_COMMON)  # byte of each code; a constant of the format

_N, _Q, _T, _O, _LOW, _FINAL, _INPUT = range(7)
"""What `_node` tells: transitions (-1: damaged); address of the size byte, less a table if there
is one; bytes of a delta and of an output; the lowest byte; whether a term ends here; the only
input, or -1 where inputs are listed."""


@inline
def _packed(address: int, size: int) -> int:
    """An unsigned number of up to seven bytes."""
    return long(address) & ((1 << (8 * size)) - 1)


@inline
def _node(fst: int, size: int, at: int) -> tuple[int, int, int, int, int, int, int]:
    """The node at offset `at`, checked to lie among the nodes; see `_N` and the rest."""
    bad = (-1, 0, 0, 0, 0, 0, 0)
    if at == 0:
        return (0, 0, 0, 0, 0, 1, -1)
    if at < HEAD or at >= size - TAIL:
        return bad
    state = byte(fst + at)
    code = state & 63
    q = at
    if state >= 128:
        if code == 0:
            q -= 1
            value = byte(fst + q)
        else:
            value = np.int64(_INPUTS[code])
        if state >= 192:
            if q - 1 < HEAD:
                return bad
            return (1, q, 0, 0, q, 0, value)
        q -= 1
        sizes = byte(fst + q)
        wide, out = sizes >> 4, sizes & 15
        low = q - wide - out
        if low < HEAD or wide < 1 or wide > 7 or out > 7:
            return bad
        return (1, q, wide, out, low, 0, value)
    final = state >> 6
    n = code
    if n == 0:
        q -= 1
        n = byte(fst + q)
        if n == 1:
            n = np.int64(256)
    q -= 1
    sizes = byte(fst + q)
    wide, out = sizes >> 4, sizes & 15
    if n > 32:
        q -= 256
    low = q - n - n * wide - (n + final) * out
    if low < HEAD or wide > 7 or out > 7 or (n > 0 and wide < 1) or (n == 0 and final == 0):
        return bad
    return (n, q, wide, out, low, final, -1)


@inline
def _target(fst: int, node: tuple[int, int, int, int, int, int, int], i: int) -> int:
    """Offset of the node that transition `i` leads to, or `DAMAGED`."""
    wide = node[_T]
    if wide == 0:
        return node[_LOW] - 1
    inputs = np.int64(0)
    if node[_INPUT] < 0:
        inputs = node[_N]
    delta = _packed(fst + node[_Q] - inputs - (i + 1) * wide, wide)
    if delta == 0:
        return 0
    target = node[_LOW] - delta
    return target if target >= HEAD else DAMAGED


@inline
def _output(fst: int, node: tuple[int, int, int, int, int, int, int], i: int) -> int:
    """Output of transition `i`; the one after the last is the final output."""
    out = node[_O]
    if out == 0:
        return 0
    below = node[_N] * node[_T]
    if node[_INPUT] < 0:
        below += node[_N]
    return _packed(fst + node[_Q] - below - (i + 1) * out, out)


@inline
def _transition(fst: int, node: tuple[int, int, int, int, int, int, int], value: int) -> int:
    """Number of the transition with input `value`, `ABSENT` or `DAMAGED`."""
    n = node[_N]
    if node[_INPUT] >= 0:
        return 0 if node[_INPUT] == value else ABSENT
    inputs = fst + node[_Q] - 1
    if n > 32:
        i = byte(fst + node[_Q] + value)
        if i >= n:
            return ABSENT
        return i if byte(inputs - i) == value else DAMAGED
    for i in range(n):
        if byte(inputs - i) == value:
            return i
    return ABSENT


@kernel
def find_terms(
    fst: int,
    size: int,
    n_terms: int,
    root: int,
    offsets: I64,
    data: U8,
    begin: int,
    end: int,
    out: I64,
) -> int:
    """Numbers of terms in one dictionary.

    Parameters
    ----------
    fst, size : the transducer.
    n_terms, root : its count of terms and the offset of its first node.
    offsets, data : (n + 1,) and (bytes,), the terms looked for.
    begin, end : which of them.
    out : (n,), filled from `begin` to `end`: the ordinal, or `ABSENT`.

    Returns
    -------
    -1, or the place of a term whose path is damaged.
    """
    for term in range(begin, end):
        at = np.int64(root)
        total = np.int64(0)
        out[term] = ABSENT
        for k in range(offsets[term], offsets[term + 1]):
            node = _node(fst, size, at)
            i = DAMAGED if node[_N] < 0 else _transition(fst, node, np.int64(data[k]))
            if i == ABSENT:
                at = ABSENT
                break
            if i == DAMAGED:
                return term
            total += _output(fst, node, i)
            at = _target(fst, node, i)
            if at < 0 or total >= n_terms:
                return term
        if at == ABSENT:
            continue
        node = _node(fst, size, at)
        if node[_N] < 0:
            return term
        if node[_FINAL]:
            total += _output(fst, node, node[_N])
            if total >= n_terms:
                return term
            out[term] = total
    return -1


@inline
def _emit(prefix: U8, length: int, offsets: I64, data: U8, term: int) -> bool:
    """Append a term; False if it has no room."""
    at = offsets[term]
    if at + length > data.size:
        return False
    for k in range(length):
        data[at + k] = prefix[k]
    offsets[term + 1] = at + length
    return True


@kernel
def list_terms(
    fst: int,
    size: int,
    n_terms: int,
    root: int,
    stack: I64,
    prefix: U8,
    offsets: I64,
    data: U8,
) -> int:
    """All terms of a dictionary, ascending by their bytes.

    Parameters
    ----------
    fst, size, n_terms, root : as in `find_terms`.
    stack : (`LONGEST` + 2, 5), scratch: nodes with transitions still to follow.
    prefix : (`LONGEST` + 1,), scratch: the bytes down to the node.
    offsets, data : (n_terms + 1,) and (room,), filled.

    Returns
    -------
    The bytes written; `FULL` if `data` has no room; `DAMAGED` if a node cannot be, inputs do not
    ascend, outputs do not add up to the place of a term, or the number of terms is another.
    """
    offsets[0] = 0
    term = np.int64(0)
    top = np.int64(0)
    depth = np.int64(0)
    total = np.int64(0)
    at = np.int64(root)
    while True:
        node = _node(fst, size, at)
        n = node[_N]
        if n < 0:
            return DAMAGED
        if node[_FINAL]:
            ordinal = total + _output(fst, node, n)
            if term >= n_terms or ordinal != term:
                return DAMAGED
            if not _emit(prefix, depth, offsets, data, term):
                return FULL
            term += 1
        i = np.int64(0)
        last = np.int64(-1)
        if n == 0:  # go back to the nearest node with a transition left
            if top == 0:
                break
            top -= 1
            at = stack[top, 0]
            i = stack[top, 1]
            depth = stack[top, 2]
            total = stack[top, 3]
            last = stack[top, 4]
            node = _node(fst, size, at)
            n = node[_N]
        value = node[_INPUT]
        if value < 0:
            value = byte(fst + node[_Q] - 1 - i)
        if value <= last or depth >= LONGEST:
            return DAMAGED
        if i + 1 < n:
            stack[top, 0] = at
            stack[top, 1] = i + 1
            stack[top, 2] = depth
            stack[top, 3] = total
            stack[top, 4] = value
            top += 1
        prefix[depth] = value
        depth += 1
        total += _output(fst, node, i)
        at = _target(fst, node, i)
        if at < 0 or total >= n_terms:
            return DAMAGED
    return offsets[n_terms] if term == n_terms else DAMAGED
