"""Posting lists to documents and frequencies: packed blocks of 128, then a tail of varints.

A list of df documents is ``[skip list, df // 128 blocks], tail``. The skip list names the last
document of every block and the widths of its numbers. Everything that the file says twice is
compared: where a list ends, the last document of a block, the sum of its frequencies.
"""

from __future__ import annotations

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.packed import (
    BLOCK,
    I32,
    MOST_BITS,
    byte,
    drop_lowest,
    long,
    lowest,
    stops,
    unpack_docs,
    unpack_tfs,
    word,
)
from ragcore_kernels.terminfos import BASIC, POSITION, entry_size

PADDING = 64
"""Bytes that must be readable after a list for the fast way through its tail."""

_BEHIND = 8  # bytes ahead of the lists: a load that ends at a byte of a list starts no earlier
_MASK32 = 0xFFFFFFFF
_STRICT = 64  # bit of the width of documents
_MOST_TF = 2**31 - 1
_BAD = -1


@inline
def _value(last: int, size: int) -> int:
    """The varint of `size` bytes that ends at `last`; of more than 8 bytes, some number."""
    x = (long(last - 7) & 0x7FFFFFFFFFFFFFFF) >> ((64 - 8 * size) & 63)
    x = (x & 0x007F007F007F007F) | ((x & 0x7F007F007F007F00) >> 1)
    x = (x & 0x00003FFF00003FFF) | ((x & 0x3FFF00003FFF0000) >> 2)
    return (x & 0x0FFFFFFF) | ((x >> 32) << 28)


@inline
def _varint(at: int, stop: int) -> tuple[int, int]:
    """A varint at `at`, and where it ends; `_BAD` for one that is too long or not over."""
    value = np.int64(0)
    for k in range(min(5, stop - at)):
        c = byte(at + k)
        value |= (c & 127) << (7 * k)
        if c >= 128:
            return value, at + k + 1
    return np.int64(_BAD), at


@inline
def _slow_tail(
    at: int, stop: int, n: int, with_tfs: bool, doc: int, base: int, docs: I32, tfs: I32, out: int
) -> int:
    """As `_tail`, a byte at a time: for lists at the end of a file."""
    for k in range(n):
        value, at = _varint(at, stop)
        if value < 0 or (value == 0 and (k > 0 or doc > 0)) or doc + value > _MOST_TF - base:
            return _BAD
        doc += value
        docs[out + k] = doc + base
    for k in range(n):
        value = np.int64(1)
        if with_tfs:
            value, at = _varint(at, stop)
        if value < 1 or value > _MOST_TF:
            return _BAD
        tfs[out + k] = value
    return doc if at == stop else _BAD


@inline
def _tail(
    at: int, stop: int, n: int, with_tfs: bool, doc: int, base: int, docs: I32, tfs: I32, out: int
) -> int:
    """Documents and frequencies of the tail at [`at`, `stop`); the last document, or `_BAD`.

    The ends of 64 bytes' varints are one mask; each is then loaded backwards from its last byte,
    so that no step waits for the one before it, and none depends on how long a varint is.
    """
    chunk = at
    before = at - 1
    mask = stops(chunk)
    fault = np.int64(0)
    least = np.int64(doc > 0)  # only the very first delta may be 0
    for k in range(n):
        while mask == 0:
            chunk += 64
            if chunk >= stop:
                return _BAD
            mask = stops(chunk)
        last = chunk + lowest(mask)
        mask = drop_lowest(mask)
        size = last - before
        before = last
        value = _value(last, size)
        fault |= (5 - size) | (value - least)  # negative where there is one
        least = np.int64(1)
        doc += value
        docs[out + k] = (doc + base) & _MOST_TF
    if not with_tfs:
        for k in range(n):
            tfs[out + k] = 1
    else:
        for k in range(n):
            while mask == 0:
                chunk += 64
                if chunk >= stop:
                    return _BAD
                mask = stops(chunk)
            last = chunk + lowest(mask)
            mask = drop_lowest(mask)
            size = last - before
            before = last
            value = _value(last, size)
            fault |= (5 - size) | (value - 1) | (_MOST_TF - value)
            tfs[out + k] = value & _MOST_TF
    return doc if fault >= 0 and before == stop - 1 else _BAD


@inline
def _wide_docs(
    address: int, width: int, before: int, base: int, strict: int, docs: I32, out: int
) -> int:
    """As `unpack_docs`, for any width: number by number, with sums that cannot wrap."""
    doc = np.int64(before)
    mask = (1 << width) - 1
    for i in range(BLOCK):
        bit = i // 4 * width
        place = address + bit // 32 * 16 + i % 4 * 4
        value = word(place)
        if bit % 32 + width > 32:
            value |= word(place + 16) << 32
        doc += ((value >> (bit % 32)) & mask) + strict
        docs[out + i] = (doc + base) & _MOST_TF
    return doc


@inline
def _wide_tfs(address: int, width: int, strict: int, tfs: I32, out: int) -> int:
    """As `unpack_tfs`, for any width; -1 where a frequency is beyond int32."""
    total = np.int64(0)
    mask = (1 << width) - 1
    for i in range(BLOCK):
        bit = i // 4 * width
        place = address + bit // 32 * 16 + i % 4 * 4
        value = word(place)
        if bit % 32 + width > 32:
            value |= word(place + 16) << 32
        value = ((value >> (bit % 32)) & mask) + strict
        if value > _MOST_TF:
            return _BAD
        total += value
        tfs[out + i] = value
    return total & _MASK32


@inline
def _any_zero(tfs: I32, begin: int, end: int) -> bool:
    """Whether a frequency is 0; only where they are not stored minus one."""
    for i in range(begin, end):  # noqa: SIM110 - numba knows no generators in any()
        if tfs[i] == 0:
            return True
    return False


@inline
def _rises(docs: I32, begin: int, end: int) -> bool:
    """Whether documents ascend; only where deltas of 0 can be written."""
    for i in range(begin + 1, end):  # noqa: SIM110
        if docs[i] <= docs[i - 1]:
            return False
    return True


@inline
def _one(
    at: int,
    stop: int,
    limit: int,
    df: int,
    base: int,
    n_docs: int,
    record: int,
    strict: int,
    docs: I32,
    tfs: I32,
    out: int,
) -> bool:
    """One list; False if anything in it cannot be."""
    blocks = df // BLOCK
    before = np.int64(0)
    entry = entry_size(record)
    if blocks > 0:
        skip, at = _varint(at, stop)
        data = at + skip
        if skip != blocks * entry or data > stop:
            return False
        before = np.int64(-strict)
        for block in range(blocks):
            last = word(at)
            bits = byte(at + 4)
            width = bits & (_STRICT - 1)
            if bits != width + _STRICT * strict or width > 31 or last >= n_docs:
                return False
            tf_width = byte(at + 5) * (record != BASIC)
            after = data + 16 * width
            end = after + 16 * tf_width
            if tf_width > 32 or end > stop:
                return False
            if width <= MOST_BITS:
                found = unpack_docs(data, width, before, base, strict, docs, out)
            else:
                found = _wide_docs(data, width, before, base, strict, docs, out)
            if found != last:
                return False
            if record == BASIC:
                tfs[out : out + BLOCK] = 1
            else:
                if tf_width <= MOST_BITS:
                    total = unpack_tfs(after, tf_width, strict, tfs, out)
                else:
                    total = _wide_tfs(after, tf_width, strict, tfs, out)
                if total < 0 or (record == POSITION and total != word(at + 6)):
                    return False
            if not strict:
                first = out - 1 if block > 0 else out
                if _any_zero(tfs, out, out + BLOCK) or not _rises(docs, first, out + BLOCK):
                    return False
            at += entry
            data = end
            before = last
            out += BLOCK
        at = data
    n = df % BLOCK
    if n == 0:
        return at == stop
    if stop - at < n:
        return False
    if stop + PADDING <= limit:
        last = _tail(at, stop, n, record != BASIC, before, base, docs, tfs, out)
    else:
        last = _slow_tail(at, stop, n, record != BASIC, before, base, docs, tfs, out)
    return 0 <= last < n_docs


@kernel
def decode_lists(
    lists: int,
    limit: int,
    n_docs: int,
    base: int,
    record: int,
    strict: int,
    begin: int,
    end: int,
    dfs: I64,
    starts: I64,
    ends: I64,
    places: I64,
    docs: I32,
    tfs: I32,
) -> int:
    """Documents and frequencies of posting lists.

    Parameters
    ----------
    lists, limit : address of the lists, which eight readable bytes precede, and of the end of the
        file in memory.
    n_docs, base : documents of the segment, and what is added to their numbers; the sum fits int32.
    record : what the lists hold.
    strict : 1 if numbers are stored minus one (formats 6 and 7), else 0.
    begin, end : the lists to decode.
    dfs, starts, ends : (n,), as `terminfos.find_lists` fills them; a df of 0 is passed over.
    places : (n,), where the postings of each go.
    docs, tfs : (n_postings,), filled there: ascending documents, frequencies of 1 or more.

    Returns
    -------
    -1, or the place of the first list that is damaged or does not end where it should.
    """
    for i in range(begin, end):
        if dfs[i] > 0 and not _one(
            lists + starts[i],
            lists + ends[i],
            limit,
            dfs[i],
            base,
            n_docs,
            record,
            strict,
            docs,
            tfs,
            places[i],
        ):
            return i
    return -1
