"""Which stretches of a document meet others far enough: chunks against labelled places."""

from __future__ import annotations

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import I64


@kernel
def meeting(
    begin: int, end: int, document: I64, only: I64, version: I64, low: I64, high: I64, need: I64,
    offsets: I64, rows: I64, versions: I64, lows: I64, highs: I64, ends: I64, out: I64,
) -> None:  # fmt: skip
    """Chunks that share enough of each item's stretch, in the order of their document.

    Called twice: with an empty `out` it counts, with room for all of them it fills.

    Parameters
    ----------
    begin, end : items to do.
    document : (n_items,), document of each item, -1 for an item to be left out.
    only : (n_items,), the one chunk that an item may meet, -1 for any of its document.
    version : (n_items,), revision, -1 for any; -2 for one that no chunk has.
    low, high : (n_items,), the stretch, end exclusive.
    need : (n_items,), least length that must be shared, 1 or more.
    offsets, rows : (n_documents + 1,) and flat, the chunks of each document.
    versions : (n_chunks,), revision of each chunk, -1 for any.
    lows, highs : (n_chunks,), stretch of each chunk; ``lows`` is -1 where it is not known.
    ends : (n_items + 1,), chunks of each item: ``ends[i + 1]`` is filled with a count if `out` is
        empty; else it says where the chunks of an item go, as offsets.
    out : flat, filled.
    """
    for i in range(begin, end):
        count = 0
        d = document[i]
        if d >= 0:
            for at in range(offsets[d], offsets[d + 1]):
                row = rows[at]
                if lows[row] < 0 or (only[i] >= 0 and only[i] != row):
                    continue
                if version[i] != -1 and versions[row] >= 0 and version[i] != versions[row]:
                    continue
                shared = min(high[i], highs[row]) - max(low[i], lows[row])
                if shared >= need[i]:
                    if out.size > 0:
                        out[ends[i] + count] = row
                    count += 1
        if out.size == 0:
            ends[i + 1] = count
