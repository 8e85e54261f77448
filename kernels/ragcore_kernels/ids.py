"""String ids where Arrow put them: hashing, equality, order, segments and codes.

No id becomes a Python string. Equality is always confirmed by the bytes; a hash only says
where to look.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore_kernels._jit import (
    inline,
    kernel,
    load_i32,
    load_i64,
    load_u8,
    load_u32,
    load_u64,
    mul64,
)
from ragcore_kernels.layout import CODES, I64, OFFSETS32, OFFSETS64, WORDS

_K1 = np.uint64(0x9E3779B97F4A7C15)
_K2 = np.uint64(0xD6E8FEB86659FD93)
_S32 = np.uint64(32)
_S8 = np.uint64(8)
_S16 = np.uint64(16)


@inline
def plain(kind: int, first: int, second: int, i: int) -> Any:
    """Address and length of value `i` of a layout that is not dictionary-coded."""
    if kind == OFFSETS32:
        begin = np.int64(load_i32(first + 4 * i))
        return second + begin, np.int64(load_i32(first + 4 * i + 4)) - begin
    if kind == OFFSETS64:
        begin = load_i64(first + 8 * i)
        return second + begin, load_i64(first + 8 * i + 8) - begin
    view = first + 16 * i
    size = np.int64(load_i32(view))
    if size <= 12:
        return view + 4, size
    buffer = load_i64(second + 16 * np.int64(load_i32(view + 8)))
    return buffer + np.int64(load_i32(view + 12)), size


@inline
def locate(table: I64, piece: int, i: int) -> Any:
    """Address and length in bytes of row `i` of a piece."""
    kind = table[piece, 1]
    if kind == CODES:
        code = np.int64(load_i32(table[piece, 2] + 4 * i))
        return plain(table[piece, 4], table[piece, 5], table[piece, 6], code)
    if kind == WORDS:
        return table[piece, 2] + 4 * i, np.int64(4)
    return plain(kind, table[piece, 2], table[piece, 3], i)


@inline
def word(address: int, size: int) -> Any:
    """The `size` < 8 bytes at `address` as one uint64, one to one for a given size.

    Two overlapping loads rather than one wide load: nothing outside the id is touched.
    """
    if size >= 4:
        low = np.uint64(load_u32(address))
        return low | (np.uint64(load_u32(address + size - 4)) << _S32)
    if size > 0:
        low = np.uint64(load_u8(address))
        middle = np.uint64(load_u8(address + (size >> 1)))
        return low | (middle << _S8) | (np.uint64(load_u8(address + size - 1)) << _S16)
    return np.uint64(0)


@inline
def hash_id(address: int, size: int) -> Any:
    """64-bit hash of the `size` bytes at `address`: every byte counts, and every bit is good."""
    if size < 8:
        h = word(address, size)
    else:
        last = address + size - 8
        h = load_u64(last)
        while address < last:
            h = mul64(h ^ (h >> _S32) ^ load_u64(address), _K1)
            address += 8
    h = mul64(h ^ np.uint64(size), _K2)
    h = mul64(h ^ (h >> _S32), _K1)
    return h ^ (h >> _S32)


@inline
def same_id(a: int, a_size: int, b: int, b_size: int) -> bool:
    """Whether two ids have the same bytes."""
    if a_size != b_size:
        return False
    if a_size < 8:
        return word(a, a_size) == word(b, a_size)
    last = a_size - 8
    at = np.int64(0)
    while at < last:
        if load_u64(a + at) != load_u64(b + at):
            return False
        at += 8
    return load_u64(a + last) == load_u64(b + last)


@inline
def greater_id(a: int, a_size: int, b: int, b_size: int) -> bool:
    """Whether id `a` sorts after `b` byte-wise (UTF-8 order, as strcmp)."""
    size = min(a_size, b_size)
    for at in range(size):
        x, y = load_u8(a + at), load_u8(b + at)
        if x != y:
            return x > y
    return a_size > b_size


@inline
def _bad_view(view: int, buffers: int, n_buffers: int) -> bool:
    """Whether a 16-byte view is longer than nothing or points outside its buffer."""
    size = np.int64(load_i32(view))
    if size <= 12:
        return size < 0
    buffer = np.int64(load_i32(view + 8))
    begin = np.int64(load_i32(view + 12))
    if buffer < 0 or buffer >= n_buffers or begin < 0:
        return True
    return begin + size > load_i64(buffers + 16 * buffer + 8)


@kernel
def first_fault(table: I64, begin: int, end: int) -> int:
    """Whether the pieces `begin` to `end` stay inside their buffers, which other kernels trust.

    Parameters
    ----------
    table : (n_pieces, 9), no WORDS; see `layout`. A dictionary's values are a piece of their own.

    Returns
    -------
    The first row (of the whole column) that reaches outside, or -1.
    """
    for piece in range(begin, end):
        rows, kind = table[piece, 0], table[piece, 1]
        first, limit = table[piece, 2], table[piece, 8]
        bad = np.int64(0)
        if rows == 0:
            continue
        if kind == OFFSETS32:
            last = np.int64(load_i32(first + 4 * rows))
            bad += (load_i32(first) < 0) | (last > limit)
            for i in range(rows):
                bad += load_i32(first + 4 * i + 4) < load_i32(first + 4 * i)
        elif kind == OFFSETS64:
            bad += (load_i64(first) < 0) | (load_i64(first + 8 * rows) > limit)
            for i in range(rows):
                bad += load_i64(first + 8 * i + 8) < load_i64(first + 8 * i)
        elif kind == CODES:
            for i in range(rows):
                bad += np.int64(load_u32(first + 4 * i)) >= limit
        else:
            for i in range(rows):
                bad += _bad_view(first + 16 * i, table[piece, 3], limit)
        if bad == 0:
            continue
        for i in range(rows):
            if kind in (OFFSETS32, OFFSETS64):
                start, size = plain(kind, first, np.int64(0), i)
                worse = size < 0 or start < 0 or start + size > limit
            elif kind == CODES:
                worse = np.int64(load_u32(first + 4 * i)) >= limit
            else:
                worse = _bad_view(first + 16 * i, table[piece, 3], limit)
            if worse:
                return table[piece, 7] + i
    return np.int64(-1)


@kernel
def find_segments(table: I64, state: I64, stop: int, out: I64) -> None:
    """Cut pieces into segments: stretches of consecutive rows with the same id.

    Parameters
    ----------
    table : (n_pieces, 9), the case-id column; see `layout`.
    state : (4,), where to go on and how much is done: piece, row, segments written, and 1 if
        there is an id outside its buffer, at that piece and row. Start with
        ``[first_piece, 0, 0, 0]``; finished when ``state[0] == stop``, else `out` was full.
    stop : the first piece that is not looked at.
    out : (capacity, 3), filled with piece, first row, rows. A segment never spans pieces.
    """
    piece, row, n = state[0], state[1], state[2]
    capacity = out.shape[0]
    while piece < stop and n < capacity:
        rows = table[piece, 0]
        if row >= rows:
            piece += 1
            row = np.int64(0)
            continue
        start = row
        row += 1
        kind = table[piece, 1]
        if kind == CODES:
            codes = table[piece, 2]
            code = load_i32(codes + 4 * start)
            while row < rows and load_i32(codes + 4 * row) == code:
                row += 1
        elif kind == OFFSETS32:
            # Rows that repeat an id of `size` bytes hold them `size` apart. Checked as they come.
            offsets, data, limit = table[piece, 2], table[piece, 3], table[piece, 8]
            begin = np.int64(load_i32(offsets + 4 * start))
            end = np.int64(load_i32(offsets + 4 * start + 4))
            size = end - begin
            if begin < 0 or size < 0 or end > limit:
                state[0] = piece
                state[1] = start
                state[3] = 1
                return
            if size < 8:
                value = word(data + begin, size)
                while row < rows:
                    after = np.int64(load_i32(offsets + 4 * row + 4))
                    if after - end != size or after > limit or word(data + end, size) != value:
                        break
                    end = after
                    row += 1
            else:
                while row < rows:
                    after = np.int64(load_i32(offsets + 4 * row + 4))
                    if after - end != size or after > limit:
                        break
                    if not same_id(data + end, size, data + begin, size):
                        break
                    end = after
                    row += 1
        else:
            a, a_size = locate(table, piece, start)
            while row < rows:
                b, b_size = locate(table, piece, row)
                if not same_id(a, a_size, b, b_size):
                    break
                row += 1
        out[n, 0] = piece
        out[n, 1] = start
        out[n, 2] = row - start
        n += 1
    state[0], state[1], state[2] = piece, row, n


@kernel
def intern(table: I64, where: I64, state: I64, slots: I64, keys: I64, codes: I64) -> None:
    """Give every id a code: equal bytes, equal code; new ids get the next one.

    Parameters
    ----------
    table : (n_pieces, 9), the id column.
    where : (n, 2 or more), piece and row of each id to look up.
    state : (2,), the next entry of `where`, and the number of codes given so far. Finished when
        ``state[0] == n``; else the tables are half full: enlarge them with `rehash`, go on.
    slots : (capacity,), a power of two; -1 where empty. Shared by all columns of one code space.
    keys : (capacity, 2), address and length of the id behind each code.
    codes : (n,), filled.
    """
    mask = slots.size - 1
    room = slots.size >> 1
    i, n_keys = state[0], state[1]
    while i < where.shape[0] and n_keys < room:
        address, size = locate(table, where[i, 0], where[i, 1])
        at = np.int64(hash_id(address, size) >> _S32) & mask
        while True:
            code = slots[at]
            if code < 0:
                code = n_keys
                slots[at] = code
                keys[code, 0] = address
                keys[code, 1] = size
                n_keys += 1
                break
            if same_id(address, size, keys[code, 0], keys[code, 1]):
                break
            at = (at + 1) & mask
        codes[i] = code
        i += 1
    state[0], state[1] = i, n_keys


@kernel
def rehash(keys: I64, n_keys: int, slots: I64) -> None:
    """Enter keys into a larger table.

    Parameters
    ----------
    keys, n_keys : as `intern` left them.
    slots : (capacity,), a power of two, all -1.
    """
    mask = slots.size - 1
    for code in range(n_keys):
        at = np.int64(hash_id(keys[code, 0], keys[code, 1]) >> _S32) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = code


@kernel
def group(codes: I64, offsets: I64, order: I64) -> None:
    """Stable counting sort: the entries of every code, side by side, in their given order.

    Parameters
    ----------
    codes : (n,), each in [0, n_groups); a negative code is left out.
    offsets : (n_groups + 1,), filled: group g owns ``order[offsets[g]:offsets[g + 1]]``.
    order : (n,), filled as far as ``offsets[-1]``.
    """
    offsets[:] = 0
    for i in range(codes.size):
        if codes[i] >= 0:
            offsets[codes[i] + 1] += 1
    for g in range(offsets.size - 1):
        offsets[g + 1] += offsets[g]
    for i in range(codes.size):
        if codes[i] >= 0:
            order[offsets[codes[i]]] = i
            offsets[codes[i]] += 1
    for g in range(offsets.size - 1, 0, -1):
        offsets[g] = offsets[g - 1]
    offsets[0] = 0
