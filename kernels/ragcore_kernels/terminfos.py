"""Where the posting lists of a dictionary's terms lie, and how long they are."""

from __future__ import annotations

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.memory import byte, long, word

META, GROUP, HEAD = 39, 256, 16
"""Bytes of the description of a group of terms; terms in a group; bytes before the first."""

BASIC, FREQ, POSITION = 0, 1, 2
"""Kinds of posting lists, see `segments.RECORDS`."""


@inline
def entry_size(record: int) -> int:
    """Bytes that tell about a full block ahead of the blocks: the skip list's entry."""
    if record == BASIC:
        return 5
    return 8 if record == FREQ else 12


@inline
def _bits(address: int, bit: int, width: int) -> int:
    """A number of at most 56 bits, `bit` bits from `address` on."""
    return (long(address + (bit >> 3)) >> (bit & 7)) & ((1 << width) - 1)


@kernel
def find_lists(
    store: int,
    size: int,
    n_terms: int,
    lists: int,
    n_docs: int,
    record: int,
    begin: int,
    end: int,
    ordinals: I64,
    dfs: I64,
    starts: I64,
    stops: I64,
) -> int:
    """Documents, start and end of the posting lists of terms.

    Parameters
    ----------
    store, size : the part of the dictionary that tells where lists are; at least eight readable
        bytes follow it.
    n_terms : terms in the dictionary.
    lists : bytes of all lists.
    n_docs : documents of the segment.
    record : what the lists hold.
    begin, end : the terms to look up.
    ordinals : (n,), numbers in the dictionary; -1 for none.
    dfs, starts, stops : (n,), filled from `begin` to `end`: documents; offsets in the lists. 0
        for a term that is not there.

    Returns
    -------
    -1, or the place of a term about which the store says what cannot be.

    Notes
    -----
    One that passes has 1 to `n_docs` documents, lies within the lists and is no shorter than
    that many documents need. So memory for the postings of distinct terms is bounded by the file.
    """
    bits = HEAD + long(store)
    entry = entry_size(record)
    per_doc = 1 if record == BASIC else 2
    for i in range(begin, end):
        ordinal = ordinals[i]
        dfs[i], starts[i], stops[i] = 0, 0, 0
        if ordinal < 0:
            continue
        if ordinal >= n_terms:
            return i
        meta = store + HEAD + ordinal // GROUP * META
        offset = long(meta)
        df = word(meta + 8)
        start = long(meta + 12)
        df_width = byte(meta + 36)
        width = byte(meta + 37)
        skipped = byte(meta + 38)
        if offset < 0 or offset > size or start < 0 or start > lists:
            return i
        if df_width > 32 or width > 56 or skipped > 56:
            return i
        step = df_width + width + skipped
        place = ordinal % GROUP
        at = 8 * (bits + offset) + (place - 1) * step
        after = at + step
        if (after + width + 7) >> 3 > size:
            return i
        stop = start + _bits(store, after, width)
        if place > 0:
            start += _bits(store, at, width)
            df = _bits(store, at + width + skipped, df_width)
        blocks = df >> 7
        least = blocks * entry + (df & 127) * per_doc
        if blocks > 0:
            least += 1
        if df < 1 or df > n_docs or stop > lists or stop - start < least:
            return i
        dfs[i], starts[i], stops[i] = df, start, stop
    return -1
