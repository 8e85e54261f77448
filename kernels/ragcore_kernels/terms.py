"""A sorted dictionary of terms, and postings brought to another numbering of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel
from ragcore_kernels.layout import I64, check_csr, frozen

U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]


@inline
def _compare(a: Any, a_first: int, a_last: int, b: Any, b_first: int, b_last: int) -> int:
    """Below, at or above 0 as the first string lies before, at or after the second, byte-wise."""
    i, j = a_first, b_first
    while i < a_last and j < b_last:
        if a[i] != b[j]:
            return -1 if a[i] < b[j] else 1
        i += 1
        j += 1
    return (a_last - i) - (b_last - j)


@kernel
def find_terms(offsets: I64, data: U8, wanted_offsets: I64, wanted: U8, out: I64) -> None:
    """Look terms up in a sorted dictionary by bisection.

    Parameters
    ----------
    offsets, data : the dictionary, ascending byte-wise: (n_terms + 1,) and the bytes.
    wanted_offsets, wanted : the terms to find, laid out alike.
    out : (n_wanted,), filled: number of the term in the dictionary, -1 where it has none.
    """
    for i in range(out.size):
        low, high = 0, offsets.size - 1
        found = -1
        while low < high:
            middle = (low + high) // 2
            order = _compare(
                data, offsets[middle], offsets[middle + 1],
                wanted, wanted_offsets[i], wanted_offsets[i + 1],
            )  # fmt: skip
            if order == 0:
                found = middle
                break
            if order < 0:
                low = middle + 1
            else:
                high = middle
        out[i] = found


@kernel
def count_renumbered(offsets: I64, docs: I32, row_of: I64, per_term: I64, per_row: I64) -> None:
    """How many postings of every term, and of every row, are left after renumbering.

    Parameters
    ----------
    offsets, docs : postings by term: (n_terms + 1,) and document numbers.
    row_of : (n_docs,), new number of a document; -1 = it is gone.
    per_term, per_row : (n_terms,) and (n_rows,), both zero; counted up.
    """
    for t in range(offsets.size - 1):
        for p in range(offsets[t], offsets[t + 1]):
            row = row_of[docs[p]]
            if row >= 0:
                per_term[t] += 1
                per_row[row] += 1


@kernel
def place_renumbered(
    offsets: I64,
    docs: I32,
    tfs: I32,
    row_of: I64,
    by_row: I64,
    by_term: I64,
    spare_terms: I32,
    spare_tfs: I32,
    out_docs: I32,
    out_tfs: I32,
) -> None:
    """Postings by term with new numbers, ascending inside each term, without a sort.

    They are laid out by row first, then taken row after row into the lists of their terms.

    Parameters
    ----------
    offsets, docs, tfs, row_of : as `count_renumbered` takes them, and the frequencies.
    by_row, by_term : (n_rows + 1,) and (n_terms + 1,), sums of what was counted; both change.
    spare_terms, spare_tfs : (n_postings,), room to work in.
    out_docs, out_tfs : (n_postings,), filled.
    """
    for t in range(offsets.size - 1):
        for p in range(offsets[t], offsets[t + 1]):
            row = row_of[docs[p]]
            if row >= 0:
                at = by_row[row]
                by_row[row] = at + 1
                spare_terms[at] = t
                spare_tfs[at] = tfs[p]
    begin = 0
    for row in range(by_row.size - 1):
        stop = by_row[row]  # which the filling above has moved to the end of the row
        for p in range(begin, stop):
            t = spare_terms[p]
            at = by_term[t]
            by_term[t] = at + 1
            out_docs[at] = row
            out_tfs[at] = spare_tfs[p]
        begin = stop


def lookup(offsets: I64, data: U8, wanted: list[bytes]) -> I64:
    """Numbers of terms in a dictionary that is sorted byte-wise; -1 for those it lacks.

    Parameters
    ----------
    offsets, data : the dictionary: (n_terms + 1,) and the bytes of all terms.
    wanted : the terms to find.
    """
    ends = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum([len(w) for w in wanted], out=ends[1:])
    given = np.frombuffer(b"".join(wanted), np.uint8)
    out = np.empty(len(wanted), np.int64)
    find_terms(
        frozen(offsets, np.int64), frozen(data, np.uint8), ends, frozen(given, np.uint8), out
    )
    return out


def renumber(offsets: I64, docs: I32, tfs: I32, row_of: I64, n_rows: int) -> tuple[I64, I32, I32]:
    """Postings with documents renumbered, those that are gone left out, lists ascending.

    Parameters
    ----------
    offsets, docs, tfs : postings by term: (n_terms + 1,), document numbers, frequencies.
    row_of : (n_docs,), the new number of each document, each once; -1 = it is gone.
    n_rows : how many new numbers there are.

    Returns
    -------
    Offsets (n_terms + 1,), of all terms, also those without postings now; rows; frequencies.

    Raises
    ------
    ValueError
        If the offsets do not describe the postings.
    """
    check_csr(offsets, docs.size)
    offsets, row_of = frozen(offsets, np.int64), frozen(row_of, np.int64)
    docs, tfs = frozen(docs, np.int32), frozen(tfs, np.int32)
    n_terms = offsets.size - 1
    per_term, per_row = np.zeros(n_terms, np.int64), np.zeros(n_rows, np.int64)
    count_renumbered(offsets, docs, row_of, per_term, per_row)
    out_offsets = np.concatenate([[0], np.cumsum(per_term)]).astype(np.int64)
    by_row = np.concatenate([[0], np.cumsum(per_row)]).astype(np.int64)
    n = int(out_offsets[-1])
    out_docs, out_tfs = np.empty(n, np.int32), np.empty(n, np.int32)
    place_renumbered(
        offsets, docs, tfs, row_of, by_row, out_offsets.copy(), np.empty(n, np.int32),
        np.empty(n, np.int32), out_docs, out_tfs,
    )  # fmt: skip
    return out_offsets, out_docs, out_tfs
