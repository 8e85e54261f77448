"""Who may see which unit: its acl against those who ask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.formats.compute import pc
from ragcore.lists import Lists, integers, own, plain
from ragcore.threads import run_split
from ragcore_kernels import shown as kernel
from ragcore_kernels.layout import I64


def may_see(acl: Lists, held: Lists, offsets: I64, units: I64, threads: int = 1) -> Any:
    """Flat over lists of units, bool: those that are public or that one of those who ask may see.

    Parameters
    ----------
    acl : of each chunk, who may see it: absent for everybody, empty for nobody.
    held : of each row, who asks; absent and empty alike are nobody. A name that is null, on either
        side, stands for nobody.
    offsets, units : (n + 1,) and flat, codes of the units of each row; a code that is no chunk may
        not be seen.
    threads : to use.
    """
    words, asking = _words(acl), _words(held)
    names = words.unique().drop_null()
    codes = own(integers(pc.index_in(words, value_set=names), len(words)))
    ours = own(integers(pc.index_in(asking, value_set=names), len(asking), -2))
    public, out = (~acl.present).astype(np.int64), np.zeros(units.size, np.int64)
    offsets, units, lists, rows = (own(x) for x in (offsets, units, acl.offsets, held.offsets))

    def work(begin: int, end: int) -> None:
        kernel.permitted(begin, end, offsets, units, public, lists, codes, rows, ours, out)

    run_split(work, offsets.size - 1, threads)
    return out.astype(np.bool_)


def _words(lists: Lists) -> pa.Array:
    if pa.types.is_null(lists.items.type):
        return pa.nulls(len(lists.items), pa.large_string())
    return plain(lists.items).cast(pa.large_string())
