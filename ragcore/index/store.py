"""Decoded postings and vectors as files that are mapped, not read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragcore.errors import InputError
from ragcore_kernels import terms
from ragcore_kernels.bm25 import Collection
from ragcore_kernels.layout import I64

VECTORS = "vectors.npy"
TERMS, BYTES = "term-offsets.npy", "term-bytes.npy"
OFFSETS, ROWS, TFS, LENGTHS = (
    "posting-offsets.npy", "posting-rows.npy", "posting-tfs.npy", "lengths.npy",
)  # fmt: skip


@dataclass(frozen=True)
class Dictionary:
    """Terms of an index and their postings, by row.

    Attributes
    ----------
    offsets, data : terms, ascending byte-wise.
    collection : postings of these terms and lengths of the documents.
    """

    offsets: I64
    data: Any
    collection: Collection

    def codes(self, wanted: list[str]) -> I64:
        """Number of each term, -1 for those that no document has."""
        return terms.lookup(self.offsets, self.data, [w.encode() for w in wanted])

    def text(self, code: int) -> str:
        """The term of a number."""
        first, last = int(self.offsets[code]), int(self.offsets[code + 1])
        return np.asarray(self.data[first:last]).tobytes().decode()


def save_postings(folder: Path, dictionary: Dictionary) -> None:
    """Write a dictionary and its postings into a folder."""
    held = dictionary.collection
    for name, array in (
        (TERMS, dictionary.offsets), (BYTES, dictionary.data), (OFFSETS, held.offsets),
        (ROWS, held.docs), (TFS, held.tfs), (LENGTHS, held.lengths),
    ):  # fmt: skip
        np.save(folder / name, np.ascontiguousarray(array))


def load_postings(folder: Path) -> Dictionary:
    """What `save_postings` has written, mapped.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    offsets, data = mapped(folder / TERMS), mapped(folder / BYTES)
    collection = Collection(
        mapped(folder / OFFSETS), mapped(folder / ROWS), mapped(folder / TFS),
        mapped(folder / LENGTHS),
    )  # fmt: skip
    return Dictionary(offsets, data, collection)


def mapped(path: Path) -> np.ndarray[Any, Any]:
    """An array in a file, read-only and not read ahead.

    Raises
    ------
    InputError
        If the file is gone or damaged.
    """
    try:
        if path.stat().st_size <= 128:  # a header alone: nothing can be mapped of nothing
            return np.load(path, allow_pickle=False)
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(path, reason, "an array", "build the index again") from None
