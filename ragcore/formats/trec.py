"""TREC text, runs and qrels, to blocks of columns; what is not clean is mended, noted or refused.

The decision for every kind of defect is listed in ``docs/messy-inputs.md``.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragcore.errors import InputError
from ragcore.formats.bytes import BLOCK_BYTES, Source, open_bytes
from ragcore.formats.trec_errors import has_fields, line_of_row, old_mac_refusal, refusal
from ragcore.threads import default_threads
from ragcore_kernels import lines as kernels

_BOM = b"\xef\xbb\xbf"
_NOTES = {
    kernels.COMMENTS: "comment lines",
    kernels.BLANKS: "blank lines",
    kernels.EXTRA: "lines with extra fields",
    kernels.NO_RANK: "unreadable ranks",
    kernels.OTHER_TAG: "other run tags",
    kernels.HASHED: "query ids that begin with #",
}
_CONFLICTS, _NOT_UTF8 = "rank conflicts", "lines that are not UTF-8"
_ROLES = {
    "query": ("query-id", "query_id", "qid", "q_id", "query", "topic"),
    "doc": ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "docno"),
    "grade": ("score", "relevance", "rel", "label", "grade"),
    "iteration": ("iter", "iteration", "q0"),
}
_ROLE_OF = {name: role for role, names in _ROLES.items() for name in names}


@dataclass(frozen=True, eq=False)
class TextBlock:
    """Columns of some consecutive rows; ids are bytes in Arrow layout.

    Parameters
    ----------
    doc_offsets, doc_data : (rows + 1,) int32 and uint8: document ids.
    values : (rows,), float64 scores or int32 grades.
    segment_rows : (segments + 1,) int64: first row of each stretch of one query.
    query_offsets, query_data : (segments + 1,) int32 and uint8: query ids of the segments.
    """

    doc_offsets: NDArray[np.int32]
    doc_data: NDArray[np.uint8]
    values: NDArray[Any]
    segment_rows: NDArray[np.int64]
    query_offsets: NDArray[np.int32]
    query_data: NDArray[np.uint8]

    @property
    def n_rows(self) -> int:
        """Rows of this block."""
        return self.values.size

    def query(self, segment: int) -> bytes:
        """Query id of one segment."""
        first, stop = self.query_offsets[:-1][segment], self.query_offsets[1:][segment]
        return self.query_data[first:stop].tobytes()


@dataclass(frozen=True, eq=False)
class TextTable:
    """A run or qrels file: rows in file order, a query possibly in several segments.

    Parameters
    ----------
    blocks : the rows; none is empty, and a query may go on in the next block.
    n_rows : rows of all blocks.
    kind : ``run`` or ``qrels``.
    tag : tag of the first row of a run, else "".
    notes : counts of what was mended or met on the way; none is 0.
    source, starts : the file, and where in its text each block begins.
    """

    blocks: list[TextBlock]
    n_rows: int
    kind: str
    tag: str
    notes: dict[str, int]
    source: Source
    starts: list[int]

    def line(self, row: int) -> int:
        """Line of `row` in the file, from 1; blank lines and comments count. Reads it again."""
        if not 0 <= row < self.n_rows:
            raise IndexError(f"row {row} of {self.n_rows}")
        for block, start in zip(self.blocks, self.starts, strict=True):
            if row < block.n_rows:
                return line_of_row(self.source, start, row, self.kind == "run")
            row -= block.n_rows
        raise AssertionError("n_rows exceeds the rows of the blocks")


def read_run(
    path: str | os.PathLike[str], *, threads: int | None = None, block_bytes: int = BLOCK_BYTES
) -> TextTable:
    """Read ``query Q0 doc rank score tag`` lines; the rank column is compared, never used.

    Parameters
    ----------
    path : plain text, gzip, zstd or lz4, told by the first bytes.
    threads : workers; None takes the processors this process may use. Never changes a result.
    block_bytes : text parsed at once by a worker. Never changes a result either.
    """
    return _read(path, _Layout(), threads, block_bytes)


def read_qrels(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    float_grades: bool = False,
    block_bytes: int = BLOCK_BYTES,
) -> TextTable:
    """Read ``query iteration doc grade`` lines, or the columns that a header line names.

    Parameters
    ----------
    path, threads, block_bytes : as in `read_run`.
    float_grades : read ``1.0`` as 1; a grade with a fraction stays refused.
    """
    return _read(path, _Layout(fields=(0, 2, 3), floats=float_grades), threads, block_bytes)


def to_arrow(table: TextTable) -> pa.Table:
    """Columns ``query_id, doc_id, score`` or ``relevance``; binary ids if some are not UTF-8."""
    kind = pa.binary() if _NOT_UTF8 in table.notes else pa.string()
    queries, docs, values = [], [], []
    for block in table.blocks:
        lengths = np.diff(block.segment_rows)
        names = _strings(kind, block.query_offsets, block.query_data)
        queries.append(names.take(pa.array(np.repeat(np.arange(lengths.size), lengths))))
        docs.append(_strings(kind, block.doc_offsets, block.doc_data))
        values.append(pa.array(block.values))
    name, value = ("score", pa.float64()) if table.kind == "run" else ("relevance", pa.int32())
    return pa.table(
        {
            "query_id": pa.chunked_array(queries, kind),
            "doc_id": pa.chunked_array(docs, kind),
            name: pa.chunked_array(values, value),
        }
    )


def _strings(kind: pa.DataType, offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, offsets.size - 1, buffers)


@dataclass(frozen=True)
class _Layout:
    """What a line holds: fields query, doc, grade of `width` (qrels), or the tag of a run."""

    fields: tuple[int, int, int] | None = None
    width: int = 4
    floats: bool = False
    tag: bytes = b""

    @property
    def is_run(self) -> bool:
        return self.fields is None


_Task = tuple[int, NDArray[np.uint8], _Layout]
"""Where a block begins in the text, the block, and what its lines hold."""


class _Scratch:
    """The arrays a kernel fills, large enough for any block of `size` bytes; used many times."""

    def __init__(self, size: int, layout: _Layout) -> None:
        rows = size // (kernels.RUN_LINE if layout.is_run else kernels.QRELS_LINE) + 1
        self.size, self.counts = size, np.empty(kernels.N_COUNTS, np.int64)
        self.docs = np.empty(rows, np.int32), np.empty(size, np.uint8)
        self.values: NDArray[Any] = np.empty(rows, np.float64 if layout.is_run else np.int32)
        self.segments = np.empty(rows, np.int64)
        self.queries = np.empty(rows, np.int32), np.empty(size, np.uint8)
        if layout.is_run:
            self.ranks, self.slow_rows = np.empty(rows, np.int64), np.empty(rows, np.int64)
            self.slow = np.empty(rows, np.int32), np.empty(size, np.uint8)


@dataclass(frozen=True, eq=False)
class _Part:
    """What became of one block of text; `ranks` are those of its first and its last row."""

    start: int
    block: TextBlock
    counts: NDArray[np.int64]
    conflicts: int
    not_utf8: int
    ranks: tuple[int, int]


class _Parser:
    """Parses blocks of text in any thread; keeps one scratch for each block under way."""

    def __init__(self) -> None:
        self._idle: list[_Scratch] = []

    def __call__(self, task: _Task) -> _Part:
        start, text, layout = task
        scratch = self._idle.pop() if self._idle else None
        if scratch is None or scratch.size < text.size:
            scratch = _Scratch(text.size + text.size // 8, layout)
        part = _parse(start, text, layout, scratch)
        self._idle.append(scratch)
        return part


def _parse(start: int, text: NDArray[np.uint8], layout: _Layout, at: _Scratch) -> _Part:
    conflicts, ranks, counts = 0, (0, 0), at.counts
    columns = (*at.docs, at.values)
    segments = (at.segments, *at.queries)
    if layout.fields is None:
        tag = np.frombuffer(layout.tag or b"\n", np.uint8)
        where = (text.ctypes.data, text.size, tag.ctypes.data, len(layout.tag))
        kernels.parse_run(*where, *columns, at.ranks, *segments, at.slow_rows, *at.slow, counts)
        if n_slow := int(counts[kernels.SLOW]):
            at.values[at.slow_rows[:n_slow]] = _slow_scores(n_slow, *at.slow)
        n_segments = int(counts[kernels.SEGMENTS])
        conflicts = int(kernels.rank_conflicts(at.ranks, at.values, at.segments, n_segments))
        if n_rows := int(counts[kernels.ROWS]):
            ranks = int(at.ranks[0]), int(at.ranks[n_rows - 1])
    else:
        where = (text.ctypes.data, text.size, layout.width, *layout.fields, layout.floats)
        kernels.parse_qrels(*where, *columns, *segments, counts)
    block = _cut(at, int(counts[kernels.ROWS]), int(counts[kernels.SEGMENTS]))
    arrays = block.doc_offsets, block.doc_data, block.segment_rows
    arrays += block.query_offsets, block.query_data
    ascii_only = max(block.doc_data.max(initial=0), block.query_data.max(initial=0)) < 0x80
    not_utf8 = 0 if ascii_only else int(kernels.rows_not_utf8(*arrays))
    return _Part(start, block, counts.copy(), conflicts, not_utf8, ranks)


def _cut(at: _Scratch, rows: int, segments: int) -> TextBlock:
    """Copy what a kernel filled, at its true size."""
    (doc_offsets, doc_data), (query_offsets, query_data) = at.docs, at.queries
    return TextBlock(
        doc_offsets[: rows + 1].copy(),
        doc_data[: doc_offsets[rows]].copy(),
        at.values[:rows].copy(),
        at.segments[: segments + 1].copy(),
        query_offsets[: segments + 1].copy(),
        query_data[: query_offsets[segments]].copy(),
    )


def _slow_scores(count: int, offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> Any:
    """Correctly rounded values of well-formed numbers that the kernel left."""
    texts = _strings(pa.string(), offsets[: count + 1], data[: offsets[count]])
    try:
        return texts.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # some versions refuse a plus sign, an overflow or an underflow
        return np.array([float(text) for text in texts.to_pylist()])


def _read(
    path: str | os.PathLike[str], layout: _Layout, threads: int | None, block_bytes: int
) -> TextTable:
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be >= 1, got {threads}")
    source, notes = open_bytes(path), Counter[str]()
    tasks = _tasks(source, layout, block_bytes, notes)
    workers = 1 if source.size <= block_bytes else threads or default_threads()
    parts: list[_Part] = []
    for part, used in _spread(_Parser(), tasks, workers):
        layout = used
        if part.counts[kernels.ERROR]:
            place = part.start + int(part.counts[kernels.POSITION])
            raise refusal(source, place, layout.fields, layout.width)
        for place, name in _NOTES.items():
            notes[name] += int(part.counts[place])
        notes[_CONFLICTS] += part.conflicts
        notes[_NOT_UTF8] += part.not_utf8
        if part.block.n_rows:
            notes[_CONFLICTS] += bool(parts) and _border_conflict(parts[-1], part)
            parts.append(part)
    return TextTable(
        blocks=[part.block for part in parts],
        n_rows=sum(part.block.n_rows for part in parts),
        kind="run" if layout.is_run else "qrels",
        tag=layout.tag.decode("utf-8", "replace"),
        notes={name: count for name, count in notes.items() if count},
        source=source,
        starts=[part.start for part in parts],
    )


def _tasks(
    source: Source, layout: _Layout, block_bytes: int, notes: Counter[str]
) -> Iterator[_Task]:
    """Blocks of text with their layout, which the first line that is not a comment settles."""
    settled = False
    for start, text in source.blocks(block_bytes):
        if text.size >= 2**31:
            raise InputError(source.path, "a line of 2 GiB or more", "lines")
        if start == 0 and text[:3].tobytes() == _BOM:
            notes["byte order mark"] = 1
            start, text = 3, text[3:]
        if not settled and (found := _first_line(source, text, layout.is_run)):
            settled, fields = True, found.line.split()
            if layout.is_run:
                layout = replace(layout, tag=fields[5] if len(fields) > 5 else b"")
            elif columns := _header(fields):
                layout = replace(layout, fields=columns, width=len(fields))
                notes["header line"] = 1
                notes["comment lines"] += found.comments
                notes["blank lines"] += found.blanks
                start, text = start + found.stop, text[found.stop :]
        yield start, text, layout


class _First(NamedTuple):
    """The first line with fields in a block, where it stops, and the lines before it."""

    line: bytes
    stop: int
    comments: int
    blanks: int


def _first_line(source: Source, text: NDArray[np.uint8], is_run: bool) -> _First | None:
    raw, stop, comments, blanks = text.tobytes(), 0, 0, 0
    while stop < len(raw):
        begin, stop = stop, raw.index(b"\n", stop) + 1
        line = raw[begin:stop].strip()
        if b"\r" in line and not line.split(b"\r")[-1][:1].isspace():
            raise old_mac_refusal(source)
        if has_fields(line, is_run):
            return _First(line, stop, comments, blanks)
        comments, blanks = comments + bool(line), blanks + (not line)
    return None


def _header(fields: list[bytes]) -> tuple[int, int, int] | None:
    """Places of query, document and grade when the names of a header are what `fields` holds."""
    roles = [_ROLE_OF.get(field.decode("utf-8", "replace").lower(), "") for field in fields]
    wanted = ("query", "doc", "grade")
    if "" in roles or any(roles.count(role) != 1 for role in wanted):
        return None
    query, doc, grade = (roles.index(role) for role in wanted)
    return query, doc, grade


def _spread(
    work: Callable[[_Task], _Part], tasks: Iterable[_Task], workers: int
) -> Iterator[tuple[_Part, _Layout]]:
    """Results in the order of the tasks, each with its layout; a few are under way at once."""
    if workers == 1:
        for task in tasks:
            yield work(task), task[2]
        return
    with ThreadPoolExecutor(workers) as pool:
        under_way: deque[tuple[Future[_Part], _Layout]] = deque()
        for task in tasks:
            under_way.append((pool.submit(work, task), task[2]))
            if len(under_way) > 2 * workers:
                future, layout = under_way.popleft()
                yield future.result(), layout
        for future, layout in under_way:
            yield future.result(), layout


def _border_conflict(a: _Part, b: _Part) -> bool:
    """Whether the last row of `a` and the first of `b` disagree as `rank_conflicts` counts."""
    last, first = a.ranks[1], b.ranks[0]
    if kernels.UNRANKED in (last, first) or a.block.query(-1) != b.block.query(0):
        return False
    before, now = a.block.values[-1], b.block.values[0]
    return bool((first > last and now > before) or (first < last and now < before))
