"""Codes that coders gave to items, as tables of whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels._jit import kernel
from ragcore_kernels.checks import code_column

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

MAX_CATEGORIES = 1_024
"""More than these have no table."""

_MAX_CELLS = 1 << 26


@kernel
def count_sizes(codes: I64, sizes: I64) -> None:
    """How many items have 0, 1, ... codes.

    Parameters
    ----------
    codes : (n_items, n_coders), from 0; -1 for none.
    sizes : (n_coders + 1,), zeroed; filled.
    """
    for i in range(codes.shape[0]):
        m = np.int64(0)
        for r in range(codes.shape[1]):
            if codes[i, r] >= 0:
                m += 1
        sizes[m] += 1


@kernel
def coincide(codes: I64, slots: I64, counts: I64, seen: I64, singles: I64, pairs: I64) -> None:
    """Ordered pairs of codes that two coders gave one item, apart for each number of codes.

    Parameters
    ----------
    codes : as for `count_sizes`, each below n_categories.
    slots : (n_coders + 1,); the slot of an item with so many codes.
    counts : (n_categories,), zeroed; scratch.
    seen : (n_coders,), scratch.
    singles : (n_categories,), zeroed; filled with the codes that are the only one of an item.
    pairs : (n_slots, n_categories, n_categories), zeroed; filled, symmetric.
    """
    for i in range(codes.shape[0]):
        m, d = np.int64(0), np.int64(0)
        for r in range(codes.shape[1]):
            code = codes[i, r]
            if code >= 0:
                if counts[code] == 0:
                    seen[d] = code
                    d += 1
                counts[code] += 1
                m += 1
        if m == 1:
            singles[seen[0]] += 1
        elif m > 1:
            slot = slots[m]
            for x in range(d):
                a = seen[x]
                pairs[slot, a, a] += counts[a] * (counts[a] - 1)
                for y in range(x):
                    b = seen[y]
                    pairs[slot, a, b] += counts[a] * counts[b]
                    pairs[slot, b, a] += counts[a] * counts[b]
        for x in range(d):
            counts[seen[x]] = 0


@kernel
def cross_table(codes: I64, table: I64) -> None:
    """How often the first coder gave one code and the second another.

    Parameters
    ----------
    codes : (n_items, 2), below n_categories; an item with a -1 is left out.
    table : (n_categories, n_categories), zeroed; filled, rows of the first coder.
    """
    for i in range(codes.shape[0]):
        a, b = codes[i, 0], codes[i, 1]
        if a >= 0 and b >= 0:
            table[a, b] += 1


# --- tables


@dataclass(frozen=True)
class Tally:
    """Pairs of codes by the number of codes of their item, and codes that stand alone.

    Parameters
    ----------
    sizes : (n_coders + 1,), items with so many codes.
    ms : (n_slots,), codes of an item in each slot, 2 or more.
    pairs : (n_slots, K, K), ordered pairs of codes that two coders gave an item of the slot.
    singles : (K,), codes that are the only one of their item.
    """

    sizes: I64
    ms: I64
    pairs: I64
    singles: I64

    @property
    def n_paired(self) -> int:
        """Items with two codes or more."""
        return int(self.sizes[2:].sum())

    @property
    def coincidences(self) -> F64:
        """Krippendorff's matrix; sums to the number of pairable codes."""
        return (self.pairs / (self.ms - 1.0)[:, None, None]).sum(axis=0)

    @property
    def by_size(self) -> I64:
        """(n_slots, K), how often each code stands in items of a slot."""
        return self.pairs.sum(axis=2) // (self.ms - 1)[:, None]


def checked_codes(codes: ArrayLike, n_categories: int | None) -> tuple[I64, int]:
    """Codes and the number of categories, which the greatest code says if it is None.

    Raises
    ------
    ValueError
        If the shape, the type, a code or `n_categories` is not as `count_sizes` wants it.
    """
    if n_categories is not None and not 1 <= n_categories <= MAX_CATEGORIES:
        wanted = f"a whole number from 1 to {MAX_CATEGORIES}"
        raise ValueError(f"n_categories is {n_categories}; expected {wanted}")
    array = code_column("codes", codes, -1, n_categories or MAX_CATEGORIES, 2)
    return array, n_categories or int(array.max(initial=0)) + 1


def tally_of(codes: I64, n_categories: int) -> Tally:
    """Count checked codes.

    Raises
    ------
    ValueError
        If the table would have more than 2**26 cells.
    """
    n_coders = codes.shape[1]
    sizes = np.zeros(max(n_coders, 1) + 1, np.int64)
    count_sizes(codes, sizes)
    ms = np.flatnonzero(sizes[2:]) + 2
    if ms.size * n_categories**2 > _MAX_CELLS:
        raise ValueError(
            f"{n_categories} categories with {ms.size} numbers of codes an item need too large a "
            f"table; expected fewer categories"
        )
    slots = np.zeros(sizes.size, np.int64)
    slots[ms] = np.arange(ms.size)
    counts, singles = np.zeros(n_categories, np.int64), np.zeros(n_categories, np.int64)
    pairs = np.zeros((ms.size, n_categories, n_categories), np.int64)
    coincide(codes, slots, counts, np.zeros(n_coders, np.int64), singles, pairs)
    return Tally(sizes, ms, pairs, singles)
