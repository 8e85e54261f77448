"""TREC text to columns: runs and qrels, one block of whole lines at a time.

A block is text in memory that is empty or ends with a newline; that newline is the sentinel
of every scan below, so that no byte is compared with an end. White space is what C calls so:
space, tab, vertical tab, form feed, carriage return. Every other byte, NUL and those from
0x80 on among them, belongs to a field. A line of white space is blank; a line whose first
other byte is ``#`` is a comment, unless the ``#`` begins a query id: more stands right after it,
and the line is whole. Kernels never raise: the first line that breaks the format
ends the block, and `counts` tells which and why.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragcore_kernels._jit import inline, kernel, load_u8
from ragcore_kernels.decimals import BAD, LATER, byte, decimal, integer

(
    ROWS, SEGMENTS, SLOW, COMMENTS, BLANKS, EXTRA, NO_RANK, OTHER_TAG, HASHED, ERROR, POSITION,
) = range(11)  # fmt: skip
"""Places in `counts`: rows, segments and slow scores written; lines of each kind; the error."""

N_COUNTS = 11

FIELDS, VALUE = 1, 2
"""Values of ``counts[ERROR]``: the number of fields; the score or the grade."""

UNRANKED = np.int64(-(2**63))
"""Stands in `ranks` where the column is no integer of at most 18 digits."""

RUN_LINE, QRELS_LINE = 12, 6
"""Least bytes of a line: six fields of a run, three of qrels, each with the byte after it."""

_SPACE, _NEWLINE, _HASH, _POINT, _ZERO = 32, 10, 35, 46, 48


@inline
def _skip_white(p: int) -> int:
    """First byte at or after `p` that is no white space, or the newline."""
    while True:
        c = byte(p)
        if c > _SPACE or c == _NEWLINE or (c != _SPACE and (c < 9 or c > 13)):
            return p
        p += 1


@inline
def _skip_field(p: int) -> int:
    """First white byte at or after `p`; a newline stays where it is."""
    while True:
        c = byte(p)
        if c <= _SPACE and (c == _SPACE or 9 <= c <= 13):
            return p
        p += 1


@inline
def _skip_line(p: int) -> int:
    """First byte after the newline at or after `p`."""
    while byte(p) != _NEWLINE:
        p += 1
    return p + 1


@inline
def _same(p: int, stop: int, q: int, size: int) -> bool:
    """Whether [p, stop) holds the `size` bytes at `q`."""
    if stop - p != size:
        return False
    for k in range(size):  # noqa: SIM110 - numba knows no generators in all()
        if byte(p + k) != byte(q + k):
            return False
    return True


@inline
def _copy(p: int, stop: int, data: NDArray[np.uint8], at: int) -> int:
    """Append the bytes of [p, stop) at `at`; the new end."""
    while p < stop:
        data[at] = load_u8(p)
        at += 1
        p += 1
    return at


@kernel
def parse_run(
    address: int,
    size: int,
    tag: int,
    tag_size: int,
    doc_offsets: NDArray[np.int32],
    doc_data: NDArray[np.uint8],
    scores: NDArray[np.float64],
    ranks: NDArray[np.int64],
    segment_rows: NDArray[np.int64],
    query_offsets: NDArray[np.int32],
    query_data: NDArray[np.uint8],
    slow_rows: NDArray[np.int64],
    slow_offsets: NDArray[np.int32],
    slow_data: NDArray[np.uint8],
    counts: NDArray[np.int64],
) -> None:
    """Columns of the run lines ``query Q0 doc rank score tag`` of one block.

    Parameters
    ----------
    address, size : the block, less than 2 GiB; empty, or ending with a newline.
    tag, tag_size : address and bytes of the tag that the others are compared with.
    doc_offsets, doc_data : (rows + 1,) and (bytes,), filled: document ids in Arrow layout.
    scores, ranks : (rows,), filled; ``nan`` where a score waits, `UNRANKED` where no integer.
    segment_rows : (segments + 1,), filled: first row of each stretch of one query.
    query_offsets, query_data : (segments + 1,) and (bytes,), filled: ids of the segments.
    slow_rows : rows whose score is a number that needs more than one rounding.
    slow_offsets, slow_data : the text of those, in Arrow layout.
    counts : (N_COUNTS,), filled; ``counts[POSITION]`` is where the refused line starts.

    Notes
    -----
    Every array must hold ``size // RUN_LINE`` items (one more for offsets and segments), or
    `size` bytes. Text after the sixth field is counted and has no meaning.
    """
    p, end = address, address + size
    rows, segments, slow, docs, queries, waiting = 0, 0, 0, 0, 0, 0
    query, query_size = p, -1
    counts[:] = 0
    doc_offsets[0] = 0
    query_offsets[0] = 0
    slow_offsets[0] = 0
    while p < end:
        line = p
        q0 = _skip_white(p)
        c = byte(q0)
        if c == _NEWLINE:
            counts[BLANKS] += 1
            p = q0 + 1
            continue
        q1 = _skip_field(q0)
        hashed = c == _HASH
        if hashed and q1 == q0 + 1:
            counts[COMMENTS] += 1
            p = _skip_line(q0)
            continue
        d0 = _skip_white(_skip_field(_skip_white(q1)))
        d1 = _skip_field(d0)
        r0 = _skip_white(d1)
        r1 = _skip_field(r0)
        s0 = _skip_white(r1)
        s1 = _skip_field(s0)
        t0 = _skip_white(s1)
        state, score = decimal(s0, s1)
        if hashed:
            if byte(t0) == _NEWLINE or state == BAD:
                counts[COMMENTS] += 1
                p = _skip_line(q0)
                continue
            counts[HASHED] += 1
        if byte(t0) == _NEWLINE:
            counts[ERROR], counts[POSITION] = FIELDS, line - address
            break
        t1 = _skip_field(t0)
        p = _skip_white(t1)
        if byte(p) != _NEWLINE:
            counts[EXTRA] += 1
        p = _skip_line(p)
        if state == BAD:
            counts[ERROR], counts[POSITION] = VALUE, line - address
            break
        if state == LATER:
            score = np.nan
            slow_rows[slow] = rows
            waiting = _copy(s0, s1, slow_data, waiting)
            slow += 1
            slow_offsets[slow] = waiting
        scores[rows] = score
        stop, digits, rank = integer(r0, r1)
        if stop < r1 or digits == 0 or digits > 18:
            counts[NO_RANK] += 1
            rank = UNRANKED
        ranks[rows] = rank
        if not _same(t0, t1, tag, tag_size):
            counts[OTHER_TAG] += 1
        if not _same(q0, q1, query, query_size):
            query, query_size = q0, q1 - q0
            segment_rows[segments] = rows
            queries = _copy(q0, q1, query_data, queries)
            segments += 1
            query_offsets[segments] = queries
        docs = _copy(d0, d1, doc_data, docs)
        rows += 1
        doc_offsets[rows] = docs
    segment_rows[segments] = rows
    counts[ROWS], counts[SEGMENTS], counts[SLOW] = rows, segments, slow


@kernel
def parse_qrels(
    address: int,
    size: int,
    n_fields: int,
    query_field: int,
    doc_field: int,
    grade_field: int,
    float_grades: bool,
    doc_offsets: NDArray[np.int32],
    doc_data: NDArray[np.uint8],
    grades: NDArray[np.int32],
    segment_rows: NDArray[np.int64],
    query_offsets: NDArray[np.int32],
    query_data: NDArray[np.uint8],
    counts: NDArray[np.int64],
) -> None:
    """Columns of the judgement lines of one block, ``query iteration doc grade`` or named.

    Parameters
    ----------
    address, size : the block, less than 2 GiB; empty, or ending with a newline.
    n_fields : fields of every line, 3 or more.
    query_field, doc_field, grade_field : which of them are read, from 0.
    float_grades : read ``1.0`` as 1: nothing but zeros may follow the point.
    doc_offsets, doc_data, segment_rows, query_offsets, query_data, counts : as in `parse_run`.
    grades : (rows,), filled.

    Notes
    -----
    Every array must hold ``size // QRELS_LINE`` items (one more for offsets and segments), or
    `size` bytes.
    """
    p, end = address, address + size
    rows, segments, docs, queries = 0, 0, 0, 0
    query, query_size = p, -1
    counts[:] = 0
    doc_offsets[0] = 0
    query_offsets[0] = 0
    while p < end:
        line = p
        p = _skip_white(p)
        c = byte(p)
        if c == _NEWLINE:
            counts[BLANKS] += 1
            p += 1
            continue
        begin, hashed = p, c == _HASH
        if hashed and (n_fields != 4 or _skip_field(p) == p + 1):
            counts[COMMENTS] += 1
            p = _skip_line(p)
            continue
        q0, q1, d0, d1, g0, g1, last = p, p, p, p, p, p, p
        for field in range(n_fields):
            last = _skip_white(p)
            p = _skip_field(last)
            if field == query_field:
                q0, q1 = last, p
            elif field == doc_field:
                d0, d1 = last, p
            elif field == grade_field:
                g0, g1 = last, p
        p = _skip_white(p)
        fields_fit = byte(last) != _NEWLINE and byte(p) == _NEWLINE
        stop, digits, grade = integer(g0, g1)
        if float_grades and digits > 0 and stop < g1 and byte(stop) == _POINT:
            stop += 1
            while stop < g1 and byte(stop) == _ZERO:
                stop += 1
        grade_fits = stop == g1 and digits > 0 and -(2**31) <= grade < 2**31
        if hashed:
            if not (fields_fit and grade_fits):
                counts[COMMENTS] += 1
                p = _skip_line(begin)
                continue
            counts[HASHED] += 1
        if not (fields_fit and grade_fits):
            counts[ERROR] = VALUE if fields_fit else FIELDS
            counts[POSITION] = line - address
            break
        p += 1
        grades[rows] = grade
        if not _same(q0, q1, query, query_size):
            query, query_size = q0, q1 - q0
            segment_rows[segments] = rows
            queries = _copy(q0, q1, query_data, queries)
            segments += 1
            query_offsets[segments] = queries
        docs = _copy(d0, d1, doc_data, docs)
        rows += 1
        doc_offsets[rows] = docs
    segment_rows[segments] = rows
    counts[ROWS], counts[SEGMENTS] = rows, segments


@kernel
def rank_conflicts(
    ranks: NDArray[np.int64],
    scores: NDArray[np.float64],
    segment_rows: NDArray[np.int64],
    n_segments: int,
) -> int:
    """Neighbours of one segment whose rank and score both rise, or both fall.

    Parameters
    ----------
    ranks, scores, segment_rows : as `parse_run` fills them, with no score left waiting.
    n_segments : segments to look at.
    """
    found = 0
    for s in range(n_segments):
        for i in range(segment_rows[s] + 1, segment_rows[s + 1]):
            before, now = ranks[i - 1], ranks[i]
            if before == UNRANKED or now == UNRANKED:
                continue
            if now > before:
                found += scores[i] > scores[i - 1]
            elif now < before:
                found += scores[i] < scores[i - 1]
    return found


@inline
def _is_utf8(data: NDArray[np.uint8], p: int, stop: int) -> bool:
    while p < stop:
        c = np.int64(data[p])
        p += 1
        if c < 0x80:
            continue
        if c < 0xC2 or c > 0xF4:
            return False
        low, high = 0x80, 0xBF
        if c == 0xE0:
            low = 0xA0
        elif c == 0xED:
            high = 0x9F
        elif c == 0xF0:
            low = 0x90
        elif c == 0xF4:
            high = 0x8F
        follow = 1 if c < 0xE0 else 2 if c < 0xF0 else 3
        if p + follow > stop or data[p] < low or data[p] > high:
            return False
        for k in range(1, follow):
            if data[p + k] < 0x80 or data[p + k] > 0xBF:
                return False
        p += follow
    return True


@kernel
def rows_not_utf8(
    doc_offsets: NDArray[np.int32],
    doc_data: NDArray[np.uint8],
    segment_rows: NDArray[np.int64],
    query_offsets: NDArray[np.int32],
    query_data: NDArray[np.uint8],
) -> int:
    """Rows whose document id or query id is no valid UTF-8 (RFC 3629: no surrogates).

    Parameters
    ----------
    doc_offsets, doc_data, segment_rows, query_offsets, query_data : as `parse_run` fills them,
        cut to size.
    """
    found = 0
    for s in range(segment_rows.size - 1):
        first, stop = segment_rows[s], segment_rows[s + 1]
        if not _is_utf8(query_data, query_offsets[s], query_offsets[s + 1]):
            found += stop - first
            continue
        for i in range(first, stop):
            found += not _is_utf8(doc_data, doc_offsets[i], doc_offsets[i + 1])
    return found
