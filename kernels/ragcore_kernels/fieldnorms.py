"""Lengths of documents in one byte, as tantivy quantises them, and bits of living documents.

The lengths from 0 to 39 are kept; from 40 on groups of eight values have steps of 2, 4, 8, and so
on. A length is rounded down to the largest value that does not exceed it.
"""

from __future__ import annotations

import numpy as np

from ragcore_kernels._jit import kernel
from ragcore_kernels.layout import I64
from ragcore_kernels.memory import I32, U8, byte

_EXACT = 40


def _lengths() -> I64:
    table = np.arange(256, dtype=np.int64)
    value, step = _EXACT, 2
    for k in range(_EXACT, 256):
        table[k] = value
        value += step
        if (k - _EXACT) % 8 == 7:
            step *= 2
    table.flags.writeable = False
    return table


FIELD_LENGTHS = _lengths()
"""(256,) int64: the length in tokens that each id stands for."""

LONGEST = np.append(FIELD_LENGTHS[1:] - 1, 2**31 - 1)
"""(256,) int64: the largest length of each id."""

CONSTANT = 1
"""The id that tantivy takes for every document where the schema keeps no field norms."""


def encode(lengths: I32 | I64) -> U8:
    """Ids of lengths in tokens: of the largest value of `FIELD_LENGTHS` that is not above.

    Raises
    ------
    ValueError
        A negative length.
    """
    if lengths.size and lengths.min() < 0:
        raise ValueError(f"length {lengths.min()}; expected 0 or more tokens")
    return (np.searchsorted(FIELD_LENGTHS, lengths, "right") - 1).astype(np.uint8)


def alive_bits(words: U8, n_docs: int) -> np.ndarray:
    """(n_docs,) bool from the bits of a ``.del`` file, the lowest bit of a byte first."""
    return np.unpackbits(words, bitorder="little")[:n_docs].astype(bool)


@kernel
def count_ids(address: int, size: int, counts: I64) -> None:
    """How often each id stands among field norms.

    Parameters
    ----------
    address, size : the norms, a byte each.
    counts : (256,), added to.
    """
    for i in range(size):
        counts[byte(address + i)] += 1


@kernel
def add_lengths(docs: I32, tfs: I32, lengths: I32) -> None:
    """Lengths of documents: the sum of their frequencies.

    Parameters
    ----------
    docs, tfs : (n_postings,), documents and frequencies.
    lengths : (n_docs,), added to. Wraps beyond 2**31 - 1.
    """
    for i in range(docs.size):
        lengths[docs[i]] += tfs[i]
