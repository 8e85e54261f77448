"""Whether each item of evidence stands whole in what was packed, or only its unit does."""

from __future__ import annotations

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import I64

ABSENT, CUT, WHOLE = 0, 1, 2
"""No unit of the item is packed; one is, without the item's whole span; one is, with it."""


@kernel
def packed(
    begin: int, end: int, label_of: I64, items: I64, covers: I64, containing: I64, first: I64,
    last: I64, shown: I64, units: I64, start: I64, stop: I64, offsets: I64, out: I64,
) -> None:  # fmt: skip
    """How much of each item of a ranking's case its packed stretches hold.

    Parameters
    ----------
    begin, end : rankings to do.
    label_of : (n,), row of each ranking's case, -1 for none: it has no items.
    items : (n_cases + 1,), items of each case.
    covers, containing : (n_items + 1,) and flat, codes of the units that contain an item.
    first, last : (n_items,), span of an item in its document, end exclusive; -1 where not said.
    shown, units : (n + 1,) and flat, codes of the units packed for each ranking.
    start, stop : flat beside `units`, the stretch packed of each; -1 where it is open.
    offsets : (n + 1,), where the items of each ranking's case begin in `out`.
    out : filled with `ABSENT`, `CUT` or `WHOLE`.

    Notes
    -----
    An item without a span is whole where its unit is packed, however much of that.
    """
    for i in range(begin, end):
        label = label_of[i]
        if label < 0:
            continue
        for k in range(items[label + 1] - items[label]):
            item = items[label] + k
            best = ABSENT
            for place in range(shown[i], shown[i + 1]):
                code = units[place]
                if code < 0 or best == WHOLE:
                    continue
                for c in range(covers[item], covers[item + 1]):
                    if containing[c] == code:
                        best = CUT
                        open_start = start[place] < 0 or first[item] < 0
                        open_stop = stop[place] < 0 or last[item] < 0
                        if (open_start or start[place] <= first[item]) and (
                            open_stop or last[item] <= stop[place]
                        ):
                            best = WHOLE
                        break
            out[offsets[i] + k] = best
