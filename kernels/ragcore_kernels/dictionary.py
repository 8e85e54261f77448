"""A dictionary of ids as a whole: whether each stands in it once, and where given ids stand."""

from __future__ import annotations

import numpy as np

from ragcore_kernels._jit import kernel
from ragcore_kernels.ids import hash_id, locate, same_id
from ragcore_kernels.layout import I64, U64

_S32 = np.uint64(32)
_ONE = np.uint64(1)
_PARTS, _TOP = 256, np.uint64(56)  # parts of `any_repeat`, by the top 8 bits


@kernel
def hash_all(table: I64, begin: int, end: int, out: U64) -> None:
    """Hash of the ids `begin` to `end` of a column of one piece.

    Parameters
    ----------
    table : (1, 9), see `layout`.
    out : (n_rows,), filled from `begin` to `end`. Equal ids have equal hashes.
    """
    for i in range(begin, end):
        a, size = locate(table, 0, i)
        out[i] = hash_id(a, size)


@kernel
def any_repeat(hashes: U64, spare: U64) -> bool:
    """Whether some hash stands twice.

    Parameters
    ----------
    hashes : (n,), see `hash_all`.
    spare : (n,), scratch: the hashes parted by their high bits, so that each part is looked at
        in a table that fits the second-level cache.
    """
    starts = np.zeros(_PARTS + 1, np.int64)
    for i in range(hashes.size):
        starts[np.int64(hashes[i] >> _TOP) + 1] += 1
    largest = np.int64(0)
    for part in range(_PARTS):
        largest = max(largest, starts[part + 1])
        starts[part + 1] += starts[part]
    at = starts.copy()
    for i in range(hashes.size):
        part = np.int64(hashes[i] >> _TOP)
        spare[at[part]] = hashes[i]
        at[part] += 1
    size = np.int64(2)
    while size < 2 * largest:
        size <<= 1
    slots = np.empty(size, np.uint64)
    mask = np.uint64(size - 1)
    for part in range(_PARTS):
        for k in range(size):
            slots[k] = 0  # an empty slot; a hash of 0 is looked for apart
        zeros = 0
        for i in range(starts[part], starts[part + 1]):
            h = spare[i]
            if h == 0:
                zeros += 1
                continue
            place = h & mask
            while slots[place] != 0:
                if slots[place] == h:
                    return True
                place = (place + _ONE) & mask
            slots[place] = h
        if zeros > 1:
            return True
    return False


@kernel
def find_keys(
    table: I64, hashes: U64, begin: int, end: int, slots: I64, keys: I64, found: I64
) -> None:
    """Where the interned ids stand among the ids `begin` to `end` of a column of one piece.

    Parameters
    ----------
    table, hashes : (1, 9) and (n_rows,), the column and its hashes.
    slots, keys : as `intern` left them.
    found : (n_keys,), the row of each key where there is one; other places are left alone.
    """
    mask = slots.size - 1
    for i in range(begin, end):
        at = np.int64(hashes[i] >> _S32) & mask
        while slots[at] >= 0:
            code = slots[at]
            a, size = locate(table, 0, i)
            if same_id(a, size, keys[code, 0], keys[code, 1]):
                found[code] = i
                break
            at = (at + 1) & mask
