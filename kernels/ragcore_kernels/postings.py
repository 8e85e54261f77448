"""Postings of a text field, read straight from the files of a tantivy index.

Nothing is decoded before it is asked for: an open index is a few mapped files, a lookup touches a
path in a dictionary, and a posting list costs what it is long. Documents are numbered through
all segments, in the order of ``meta.json``: the number in the index is the sum of the documents of
earlier segments plus the number in the segment. Deleted documents keep number and postings until
tantivy merges them away, and it scores with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels import unions
from ragcore_kernels.fieldnorms import CONSTANT, FIELD_LENGTHS, add_lengths, alive_bits, encode
from ragcore_kernels.layout import I64, check_csr
from ragcore_kernels.memory import I32, U8
from ragcore_kernels.segment_lists import Csr, SegmentLists
from ragcore_kernels.segments import RECORDS, Files, Part, Schema, UnsupportedFormat, open_files

__all__ = ["FIELD_LENGTHS", "Csr", "TantivyPostings", "UnsupportedFormat", "encode"]


class TantivyPostings:
    """The postings of one text field of a tantivy index; see `open`.

    Attributes
    ----------
    n_docs : documents of all segments, deleted ones too.
    n_deleted : documents that are deleted but still there.
    total_tokens : tokens of the field as tantivy counts them for the average length; after a
        merge of segments with deletes it is tantivy's estimate.
    record : "basic", "freq" or "position": what the lists hold.
    has_fieldnorms : whether the schema keeps lengths.
    segment_ids : ids of the segments in the order of their documents.
    bases : (n_segments + 1,) int64, the number of each segment's first document.
    """

    def __init__(self, schema: Schema, files: list[Files]) -> None:
        self._files = files
        self._parts = [SegmentLists(f, schema.record) for f in files]
        self.record = next(name for name, n in RECORDS.items() if n == schema.record)
        self.has_fieldnorms = schema.fieldnorms
        self.segment_ids = tuple(f.name for f in files)
        self.bases = np.cumsum([0, *(f.n_docs for f in files)], dtype=np.int64)
        self.n_docs = int(self.bases[-1])
        self.n_deleted = sum(f.n_deleted for f in files)
        self.total_tokens = sum(part.tokens for part in self._parts)

    @classmethod
    def open(cls, path: str | Path, field: str, *, verify: bool = False) -> TantivyPostings:
        """Map the index in folder `path` and check all but the lists and nodes themselves.

        Those are checked when they are read, as far as they contradict themselves or the
        dictionary. `verify` compares the CRC of every file used first: only then no change of a
        byte goes unseen. Files may be deleted while they are mapped, but must not be cut short,
        which tantivy never does: the system ends a process that reads behind the end.

        Raises
        ------
        UnsupportedFormat
            Anything unknown or damaged.
        FileNotFoundError
            There is no ``meta.json``.
        """
        schema, found = open_files(Path(path), field, verify)
        for files in found:
            if files.alive is not None:
                _alive(files, files.alive)
        return cls(schema, found)

    @property
    def n_segments(self) -> int:
        """Number of segments."""
        return len(self._parts)

    def alive(self) -> NDArray[np.bool_]:
        """(n_docs,) whether each document is not deleted."""
        out = np.ones(self.n_docs, bool)
        for files, base in zip(self._files, self.bases, strict=False):
            if files.alive is not None:
                out[base : base + files.n_docs] = _alive(files, files.alive)
        return out

    def fieldnorms(self) -> U8:
        """(n_docs,) ids of quantised lengths, places in `FIELD_LENGTHS`.

        If the schema keeps none, all are 1, the constant that tantivy then scores with.
        """
        out = np.full(self.n_docs, CONSTANT, np.uint8)
        for files, base in zip(self._files, self.bases, strict=False):
            if files.fieldnorm is not None:
                out[base : base + files.n_docs] = files.fieldnorm.data
        return out

    def lookup(self, terms: Sequence[bytes]) -> I64:
        """(n_terms, n_segments) ordinals of terms in each segment's dictionary, -1 if absent."""
        offsets = np.zeros(len(terms) + 1, np.int64)
        np.cumsum([len(term) for term in terms], out=offsets[1:])
        return self.lookup_columns(offsets, np.frombuffer(b"".join(terms), np.uint8))

    def lookup_columns(self, offsets: I64, data: U8) -> I64:
        """As `lookup`, of terms in one array: term t is ``data[offsets[t]:offsets[t + 1]]``."""
        offsets = np.require(offsets, np.int64, ["C", "W"])
        data = np.require(data, np.uint8, ["C", "W"])
        check_csr(offsets, data.size)
        out = np.empty((len(self._parts), offsets.size - 1), np.int64)
        for part, row in zip(self._parts, out, strict=True):
            part.lookup(offsets, data, row)
        return np.ascontiguousarray(out.T)

    def postings(self, ordinals: I64, threads: int = 1) -> Csr:
        """Postings of terms over all segments; a term absent everywhere has none.

        Parameters
        ----------
        ordinals : (n_terms, n_segments), see `lookup`.
        threads : threads to decode with; the result does not depend on it.

        Raises
        ------
        ValueError
            Another shape, or an ordinal that a segment does not have.
        UnsupportedFormat
            A list contradicts the dictionary or itself.
        """
        ordinals = np.asarray(ordinals, np.int64)
        if ordinals.ndim != 2 or ordinals.shape[1] != len(self._parts):
            raise ValueError(f"ordinals {ordinals.shape}; expected (n, {len(self._parts)})")
        return self._read(np.require(ordinals.T, np.int64, requirements=["C", "W"]), threads)

    def _read(self, ordinals: I64, threads: int, whole: bool = False) -> Csr:
        n_segments, n_terms = ordinals.shape
        found = np.empty((n_segments, 3, n_terms), np.int64)
        for part, row, cells in zip(self._parts, ordinals, found, strict=True):
            part.find(row, 0, n_terms, *cells)
            if whole:
                part.check_all(cells)
        ends = np.zeros(n_terms * n_segments + 1, np.int64)
        np.cumsum(found[:, 0].T.ravel(), out=ends[1:])
        places = np.ascontiguousarray(ends[:-1].reshape(n_terms, n_segments).T)
        offsets = np.zeros(n_terms + 1, np.int64)
        if n_segments:
            offsets = np.ascontiguousarray(ends[::n_segments])
        csr = Csr(offsets, *np.empty((2, ends[-1]), np.int32))

        def work(begin: int, end: int) -> None:
            for s, part in enumerate(self._parts):
                part.decode(int(self.bases[s]), begin, end, found[s], places[s], csr)

        _split(work, offsets, threads)
        return csr

    def terms(self) -> tuple[I64, U8]:
        """All distinct terms, ascending by their bytes.

        Returns
        -------
        Offsets (n_terms + 1,) and bytes: term t is ``bytes[offsets[t]:offsets[t + 1]]``.
        """
        return self._union()[0]

    def read_all(self, threads: int = 1) -> tuple[tuple[I64, U8], Csr]:
        """The whole index: the terms as of `terms`, and the postings of each."""
        terms, ordinals = self._union()
        return terms, self._read(ordinals, threads, whole=True)

    def _union(self) -> tuple[tuple[I64, U8], I64]:
        each = [part.terms() for part in self._parts]
        if len(each) == 1:
            return each[0], np.arange(each[0][0].size - 1, dtype=np.int64)[None]
        firsts = np.cumsum([0, *(offsets.size - 1 for offsets, _ in each)], dtype=np.int64)
        ends = np.zeros(firsts[-1] + 1, np.int64)
        base = 0
        for (offsets, data), first in zip(each, firsts, strict=False):
            ends[first + 1 : first + offsets.size] = offsets[1:] + base
            base += data.size
        data = np.concatenate([np.empty(0, np.uint8), *(data for _, data in each)])
        order = np.empty(ends.size - 1, np.int64)
        ordinals = np.empty((len(each), order.size), np.int64)
        heads = np.empty(len(each), np.int64)
        n = unions.unite(firsts, ends, data, heads, order, ordinals)
        picked, out = np.zeros(n + 1, np.int64), np.empty(data.size, np.uint8)
        unions.pick_terms(order, n, ends, data, picked, out)
        return (picked, out[: picked[n]]), np.ascontiguousarray(ordinals[:, :n])

    def lengths(self, csr: Csr) -> I32:
        """(n_docs,) exact lengths of documents in tokens, from the whole index's postings.

        Each must lie where its field norm says, and all together be no fewer than the index
        counts: few damaged lists pass.

        Raises
        ------
        ValueError
            The field keeps no frequencies.
        UnsupportedFormat
            A length and a field norm contradict each other.
        """
        if self.record == "basic":
            raise ValueError("the field has record 'basic'; expected one with frequencies")
        out = np.zeros(self.n_docs, np.int32)
        add_lengths(csr.docs, csr.tfs, out)
        for part, a, b in zip(self._parts, self.bases, self.bases[1:], strict=False):
            total = int(out[a:b].sum(dtype=np.int64))
            if self.has_fieldnorms and part.tokens > total:  # a merge may have counted less
                found = f"{part.tokens} tokens where postings have {total}"
                raise UnsupportedFormat(part.files.name, found, "as many or fewer")
        if self.has_fieldnorms:
            wrong = np.flatnonzero(encode(np.maximum(out, 0)) != self.fieldnorms())
            if wrong.size:
                segment = self._files[np.searchsorted(self.bases, wrong[0], "right") - 1]
                found = f"document {wrong[0]} of {out[wrong[0]]} tokens by its postings"
                raise UnsupportedFormat(segment.name, found, "documents as long as their norms")
        return out


def _alive(files: Files, part: Part) -> NDArray[np.bool_]:
    """Bits of one segment, as many of them 0 as ``meta.json`` says."""
    bits = alive_bits(part.data, files.n_docs)
    dead = bits.size - np.count_nonzero(bits)
    if dead != files.n_deleted:
        wanted = f"{files.n_deleted}, as meta.json says"
        raise UnsupportedFormat(part.path, f"{dead} documents deleted", wanted)
    return bits


def _split(work: Callable[[int, int], None], offsets: I64, threads: int) -> None:
    """Call ``work(begin, end)`` for contiguous parts of the terms, of equally many postings."""
    n, total = offsets.size - 1, int(offsets[-1])
    cuts = [0]
    for k in range(1, threads):
        cuts.append(max(cuts[-1], int(np.searchsorted(offsets, total * k // threads))))
    cuts.append(n)
    parts = [(a, b) for a, b in pairwise(cuts) if b > a]
    if len(parts) <= 1:
        work(0, n)
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        for done in [pool.submit(work, a, b) for a, b in parts]:
            done.result()
