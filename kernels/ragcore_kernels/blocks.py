"""Posting lists to documents and frequencies: packed blocks of 128, then a tail of varints.

A list of df documents is ``[skip list, df // 128 blocks], tail``. The skip list names the last
document of every block and the widths of its numbers. Everything that the file says twice is
compared: where a list ends, the last document of a block, the sum of its frequencies.
"""

from __future__ import annotations

import numpy as np

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.memory import byte, number, store, word
from ragcore_kernels.packed import BLOCK, MOST_BITS, unpack_docs, unpack_tfs
from ragcore_kernels.terminfos import BASIC, POSITION, entry_size
from ragcore_kernels.varints import BAD, MOST, PADDING, fast_tail, slow_tail, varint

_MASK32 = 0xFFFFFFFF
_STRICT = 64  # bit of the width of documents


@inline
def _wide_docs(address: int, width: int, before: int, base: int, strict: int, out: int) -> int:
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
        store(out + 4 * i, doc + base)
    return doc


@inline
def _wide_tfs(address: int, width: int, strict: int, out: int) -> int:
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
        if value > MOST:
            return BAD
        total += value
        store(out + 4 * i, value)
    return total & _MASK32


@inline
def _loose(docs: int, tfs: int, before: int) -> bool:
    """Whether a block not `strict` has a frequency of 0, or documents that do not ascend."""
    for i in range(BLOCK):
        doc = number(docs + 4 * i)
        if doc <= before or number(tfs + 4 * i) == 0:
            return True
        before = doc
    return False


@inline
def _full_blocks(
    at: int,
    stop: int,
    blocks: int,
    base: int,
    n_docs: int,
    record: int,
    strict: int,
    docs: int,
    tfs: int,
) -> tuple[int, int]:
    """Where the blocks of a list end, or `BAD` if anything cannot be, and their last document."""
    bad = (np.int64(BAD), np.int64(BAD))
    entry = entry_size(record)
    skip, at = varint(at, stop)
    data = at + skip
    if skip != blocks * entry or data > stop:
        return bad
    before = np.int64(-strict)
    for block in range(blocks):
        last = word(at)
        bits = byte(at + 4)
        width = bits & (_STRICT - 1)
        if bits != width + _STRICT * strict or width > 31 or last >= n_docs:
            return bad
        tf_width = byte(at + 5) * (record != BASIC)
        after = data + 16 * width
        end = after + 16 * tf_width
        if tf_width > 32 or end > stop:
            return bad
        if width <= MOST_BITS:
            found = unpack_docs(data, width, before, base, strict, docs)
        else:
            found = _wide_docs(data, width, before, base, strict, docs)
        if found != last:
            return bad
        if record == BASIC:
            for i in range(BLOCK):
                store(tfs + 4 * i, np.int64(1))
        else:
            if tf_width <= MOST_BITS:
                total = unpack_tfs(after, tf_width, strict, tfs)
            else:
                total = _wide_tfs(after, tf_width, strict, tfs)
            if total < 0 or (record == POSITION and total != word(at + 6)):
                return bad
        if not strict and _loose(docs, tfs, before + base if block > 0 else np.int64(-1)):
            return bad
        at += entry
        data = end
        before = last
        docs += 4 * BLOCK
        tfs += 4 * BLOCK
    return data, before


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
    docs: int,
    tfs: int,
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
    docs, tfs : addresses of (n_postings,) int32, filled there: ascending documents, frequencies of
        1 or more.

    Returns
    -------
    -1, or the place of the first list that is damaged or does not end where it should.
    """
    with_tfs = record != BASIC
    for i in range(begin, end):
        df = dfs[i]
        if df == 0:
            continue
        at = lists + starts[i]
        stop = lists + ends[i]
        n = df & (BLOCK - 1)
        doc = np.int64(0)
        out = 4 * places[i]
        if df >= BLOCK:
            at, doc = _full_blocks(
                *(at, stop, df // BLOCK, base, n_docs, record, strict, docs + out, tfs + out)
            )
            if at < 0 or (n == 0 and at != stop):
                return i
            if n == 0:
                continue
            out += 4 * (df - n)
        if stop - at < n:
            return i
        last = np.int64(BAD)
        if stop + PADDING <= limit:
            last = fast_tail(at, stop, n, with_tfs, doc, base, docs + out, tfs + out)
        if last < 0:
            last = slow_tail(at, stop, n, with_tfs, doc, base, docs + out, tfs + out)
        if last < 0 or last >= n_docs:
            return i
    return -1
