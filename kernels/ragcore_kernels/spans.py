"""Places in documents: which items lie inside what was packed, and sentences weighed by length."""

from __future__ import annotations

from typing import Any

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.verdicts import YES

LOST, INTACT, CUT = range(3)
"""What became of an item: in no packed unit; whole in one; in units that were cut, not known to
hold it."""


@kernel
def intact(
    begin: int, end: int, label_of: I64, items: I64, covers: I64, containing: I64, item_doc: I64,
    item_start: I64, item_end: I64, shown: I64, units: I64, unit_doc: I64, unit_start: I64,
    unit_end: I64, whole: Any, offsets: I64, out: Any,
) -> None:  # fmt: skip
    """Whether each item of a ranking's case is whole in one of the units that were packed.

    An item with a place is whole if a packed span of its document contains it. One without, and
    any item in a unit whose place is unknown, is whole if a unit that contains it is.

    Parameters
    ----------
    begin, end : rankings to do.
    label_of : (n,), row of each ranking's case, -1 for none.
    items : (n_cases + 1,), items of each case.
    covers, containing : (n_items + 1,) and flat, codes of the units that contain an item.
    item_doc, item_start, item_end : (n_items,), code of the document, place in it; -1 for unknown.
    shown, units : (n + 1,) and flat, codes of what was packed.
    unit_doc, unit_start, unit_end, whole : flat like `units`: document, packed span (-1 for
        unknown), whether nothing was cut off.
    offsets : (n + 1,), where the items of each ranking's case begin in `out`.
    out : int8, filled: `LOST`, `INTACT` or `CUT`.
    """
    for i in range(begin, end):
        label = label_of[i]
        if label < 0:
            continue
        for k in range(items[label + 1] - items[label]):
            item = items[label] + k
            best = LOST
            for place in range(shown[i], shown[i + 1]):
                contained = False
                for c in range(covers[item], covers[item + 1]):
                    contained |= containing[c] == units[place] and units[place] >= 0
                placed = item_start[item] >= 0 and unit_end[place] >= 0
                if placed:
                    same = item_doc[item] >= 0 and unit_doc[place] == item_doc[item]
                    inside = unit_start[place] <= item_start[item]
                    inside &= item_end[item] <= unit_end[place]
                    if (same or contained) and inside:
                        best = INTACT
                        break
                elif contained and whole[place]:
                    best = INTACT
                    break
                elif contained:
                    best = CUT
            out[offsets[i] + k] = best


@kernel
def sentences(
    begin: int, end: int, offsets: I64, relevant: Any, used: Any, lengths: I64, sums: I64,
    unjudged: Any,
) -> None:  # fmt: skip
    """Length of the sentences of each ranking's chunks: in all, relevant, used, both.

    Parameters
    ----------
    begin, end : rankings to do.
    offsets : (n + 1,) of the cells, sentences x chunks row by row.
    relevant, used : of the cells, int8 verdicts.
    lengths : of the cells, length of each sentence; 0 for those that a chunk does not have.
    sums : (n, 4), filled.
    unjudged : (n, 2) int8, filled: the least code (a reason below 0, else 0) among the verdicts on
        sentences that there are: of relevance, of use.
    """
    for i in range(begin, end):
        for f in range(4):
            sums[i, f] = 0
        unjudged[i, 0], unjudged[i, 1] = 0, 0
        for at in range(offsets[i], offsets[i + 1]):
            size = lengths[at]
            if size == 0:
                continue
            sums[i, 0] += size
            if relevant[at] == YES:
                sums[i, 1] += size
            if used[at] == YES:
                sums[i, 2] += size
            if relevant[at] == YES and used[at] == YES:
                sums[i, 3] += size
            unjudged[i, 0] = min(unjudged[i, 0], relevant[at])
            unjudged[i, 1] = min(unjudged[i, 1], used[at])
