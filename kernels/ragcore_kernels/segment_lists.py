"""Dictionary and posting lists of one segment: what its file says is checked, then kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragcore_kernels import blocks, fst, terminfos
from ragcore_kernels._jit import address_of
from ragcore_kernels.fieldnorms import FIELD_LENGTHS, LONGEST, count_ids
from ragcore_kernels.layout import I64
from ragcore_kernels.memory import I32, U8
from ragcore_kernels.segments import RECORDS, Files, UnsupportedFormat

_FIRST_STRICT = 6  # format from which on deltas and frequencies are stored minus one
_MOST_SHARED = 1_024  # bytes of terms a byte of a dictionary; more is a bomb


@dataclass(frozen=True)
class Csr:
    """Postings of terms in one array.

    Parameters
    ----------
    offsets : (n_terms + 1,) int64; the postings of term t are those from ``offsets[t]`` on.
    docs : (n_postings,) int32, documents of each term, ascending.
    tfs : (n_postings,) int32, how often the term stands there; all 1 if the field has no more.
    """

    offsets: I64
    docs: I32
    tfs: I32


class SegmentLists:
    """Dictionary and posting lists of one segment, found sound as far as their heads go.

    Parameters
    ----------
    files : what the segment holds of the field.
    record : a value of `segments.RECORDS`.

    Raises
    ------
    UnsupportedFormat
        Anything unknown or damaged, here and in the methods.
    """

    def __init__(self, files: Files, record: int) -> None:
        self.files, self.record = files, record
        self.n_terms = self.tokens = self.lists = 0
        self.path = files.term.path if files.term is not None else None
        if files.term is None or files.idx is None:
            return
        term, self.idx = files.term, files.idx
        if self.idx.size < 8:
            raise UnsupportedFormat(self.idx.path, "no number of tokens", "whole files")
        self.tokens, self.lists = self.idx.u64(0), self.idx.size - 8
        kind = term.u32(term.size - 4) if term.size >= 4 else 0
        if kind != 1:
            raise UnsupportedFormat(term.path, f"dictionary type {kind}", "type 1 (FST)")
        wrapper = term.u32(term.size - 8)
        if term.size < 16 or wrapper != 1:
            raise UnsupportedFormat(term.path, f"dictionary version {wrapper}", "version 1")
        self.store_size = term.u64(term.size - 16)
        self.size = term.size - 16 - self.store_size  # of the transducer
        if self.size < fst.HEAD + fst.TAIL or self.store_size < terminfos.HEAD:
            raise UnsupportedFormat(term.path, "a dictionary cut off", "whole files")
        version, form = term.u64(0), term.u64(8)
        if (version, form) != (2, 0):
            raise UnsupportedFormat(term.path, f"FST version {version}, type {form}", "2 and 0")
        self.n_terms, self.root = term.u64(self.size - 16), term.u64(self.size - 8)
        metas, counted = term.u64(self.size), term.u64(self.size + 8)
        groups = -(-self.n_terms // terminfos.GROUP)
        fits = terminfos.HEAD + metas <= self.store_size
        if counted != self.n_terms or metas != groups * terminfos.META or not fits:
            raise UnsupportedFormat(term.path, "counts of terms that differ", "whole files")
        if self.root >= self.size or self.tokens >= 2**63:
            raise UnsupportedFormat(term.path, "a root or a count out of range", "whole files")
        self.fst = term.address
        self._check_last()
        self._check_tokens()

    def _check_tokens(self) -> None:
        """The tokens are as many as the norms allow; only the norms see documents one by one.

        A merge that leaves deleted documents out counts some by their norms, rounded down.
        """
        if self.files.fieldnorm is None:
            return
        counts = np.zeros(256, np.int64)
        count_ids(self.files.fieldnorm.address, self.files.n_docs, counts)
        least, most = (int(counts @ each) for each in (FIELD_LENGTHS, LONGEST))
        if not least <= self.tokens <= most:
            wanted = f"{least} to {most}, as the field norms say"
            raise UnsupportedFormat(self.idx.path, f"{self.tokens} tokens", wanted)

    def _check_last(self) -> None:
        """The last list ends with the file."""
        ends = 0
        if self.n_terms:
            found = np.zeros((3, 1), np.int64)
            self.find(np.array([self.n_terms - 1]), 0, 1, *found)
            ends = int(found[2, 0])
        if ends != self.lists:
            raise UnsupportedFormat(self.idx.path, "bytes after the last list", "whole files")

    def find(self, ordinals: I64, begin: int, end: int, dfs: I64, starts: I64, ends: I64) -> None:
        """Documents and places of the lists of terms; see `terminfos.find_lists`."""
        if not self.n_terms:
            for each in (dfs, starts, ends):
                each[begin:end] = 0
            if (ordinals[begin:end] >= 0).any():
                raise ValueError(f"segment {self.files.name} has no terms; expected ordinals of -1")
            return
        bad = terminfos.find_lists(
            *(self.fst + self.size, self.store_size, self.n_terms, self.lists),
            *(self.files.n_docs, self.record, begin, end, ordinals, dfs, starts, ends),
        )
        if bad >= 0 and ordinals[bad] >= self.n_terms:
            raise ValueError(f"ordinal {ordinals[bad]}; expected less than {self.n_terms}")
        if bad >= 0:
            found = f"a list of term {ordinals[bad]} that cannot be"
            raise UnsupportedFormat(self.path, found, self._known)

    def check_all(self, found: I64) -> None:
        """The lists of all terms, (3, n) as of `find`, follow each other and fill the file."""
        dfs, starts, ends = found
        if not dfs.all():  # terms of other segments only
            starts, ends = starts[dfs > 0], ends[dfs > 0]
        edges = (int(starts[0]), int(ends[-1])) if starts.size else (0, 0)
        if edges != (0, self.lists) or not np.array_equal(starts[1:], ends[:-1]):
            raise UnsupportedFormat(self.path, "posting lists that overlap", self._known)

    def decode(
        self, base: int, begin: int, end: int, found: Sequence[I64], places: I64, csr: Csr
    ) -> None:
        """Documents and frequencies of lists; see `blocks.decode_lists`."""
        if not self.n_terms:
            return
        bad = blocks.decode_lists(
            *(self.idx.address + 8, self.idx.limit, self.files.n_docs, base, self.record),
            *(int(self.files.version >= _FIRST_STRICT), begin, end, *found, places),
            *(address_of(csr.docs), address_of(csr.tfs)),
        )
        if bad >= 0:
            found_ = f"posting list {bad} does not end where the dictionary says, or contradicts it"
            raise UnsupportedFormat(self.idx.path, found_, self._known)

    @property
    def _known(self) -> str:
        names = {number: name for name, number in RECORDS.items()}
        return f"lists of format {self.files.version} with record {names[self.record]!r}"

    def lookup(self, offsets: I64, data: U8, out: I64) -> None:
        """Ordinals of terms; see `fst.find_terms`."""
        out.fill(-1)
        if not self.n_terms:
            return
        n = offsets.size - 1
        where = (self.fst, self.size, self.n_terms, self.root)
        bad = fst.find_terms(*where, offsets, data, 0, n, out)
        if bad >= 0:
            raise self._damaged

    def terms(self) -> tuple[I64, U8]:
        """All terms; see `fst.list_terms`."""
        offsets = np.zeros(self.n_terms + 1, np.int64)
        if not self.n_terms:
            return offsets, np.empty(0, np.uint8)
        stack = np.empty((fst.LONGEST + 2, 5), np.int64)
        prefix = np.empty(fst.LONGEST + 1, np.uint8)
        room = 16 * self.n_terms + 1024
        while True:
            data = np.empty(room, np.uint8)
            where = (self.fst, self.size, self.n_terms, self.root)
            n = fst.list_terms(*where, stack, prefix, offsets, data)
            if n == fst.DAMAGED:
                raise self._damaged
            if n >= 0:
                return offsets, data[:n]
            room *= 2
            if room > _MOST_SHARED * self.size + 2**21:
                raise self._damaged

    @property
    def _damaged(self) -> UnsupportedFormat:
        return UnsupportedFormat(self.path, "a damaged dictionary of terms", "whole files")
