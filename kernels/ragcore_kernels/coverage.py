"""Where in a list of units each item of evidence is first contained."""

from __future__ import annotations

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import I64

NOWHERE = -1
"""Place of an item that no unit of a list contains."""


@kernel
def first_places(
    begin: int, end: int, label_of: I64, items: I64, covers: I64, containing: I64, shown: I64,
    units: I64, offsets: I64, out: I64,
) -> None:  # fmt: skip
    """First unit of each ranking's list that contains each item of its case.

    Parameters
    ----------
    begin, end : rankings to do.
    label_of : (n,), row of each ranking's case, -1 for none: it has no items.
    items : (n_cases + 1,), items of each case.
    covers, containing : (n_items + 1,) and flat, codes of the units that contain an item.
    shown, units : (n + 1,) and flat, codes of the units of each ranking, in its order.
    offsets : (n + 1,), where the items of each ranking's case begin in `out`.
    out : filled: place in the list, from 0, or `NOWHERE`.
    """
    for i in range(begin, end):
        label = label_of[i]
        if label < 0:
            continue
        for k in range(items[label + 1] - items[label]):
            item = items[label] + k
            best = NOWHERE
            for place in range(shown[i], shown[i + 1]):
                code = units[place]
                if code < 0:
                    continue
                for c in range(covers[item], covers[item + 1]):
                    if containing[c] == code:
                        best = place - shown[i]
                        break
                if best >= 0:
                    break
            out[offsets[i] + k] = best


@kernel
def share(
    begin: int, end: int, offsets: I64, counted: I64, hit: I64, over: I64, under: I64
) -> None:
    """How many entries of each stretch are counted, and how many of these are hit.

    Parameters
    ----------
    begin, end : stretches to do.
    offsets : (n + 1,), the stretches.
    counted, hit : flat, 0 or 1.
    over, under : (n,), filled: counted and hit; counted.
    """
    for i in range(begin, end):
        top = 0
        total = 0
        for k in range(offsets[i], offsets[i + 1]):
            total += counted[k]
            top += counted[k] * hit[k]
        over[i] = top
        under[i] = total
