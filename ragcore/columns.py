"""Tables -> what the kernels read: piece tables over Arrow buffers, segments, case codes.

Nothing is copied that can be read where it lies; what is built here is one row per Arrow chunk
and one per stretch of rows of a case.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.strings import Strings, as_text, outside
from ragcore_kernels import ids as kernel_ids
from ragcore_kernels import layout
from ragcore_kernels.layout import I64
from ragcore_kernels.ranking import BY_SCORE
from ragcore_kernels.rows import SCORE_F32, SCORE_F64


@dataclass
class Rows:
    """One run, or one set of judgements, as the kernels read it.

    Attributes
    ----------
    name, where : of the run; the file, or a name for what came from memory.
    ids : the documents.
    values : (n_pieces, 2), kind and address of the scores; for judgements the address of the
        grades stands in the second column.
    order : `RECORDED` for nested lists, `BY_SCORE` for flat rows.
    segments : (n, 3), stretches of rows of one case.
    case_ids, case_at : the case id of each segment: a column, and (n, 2) places in it.
    traces : for nested lists, the table that each segment is a row of.
    missing : for nested lists, rows (of `traces`) whose list is null; no segment of theirs.
    trace_of : for nested lists, (n,) the row of `traces` behind each segment.
    n_rows, notes : rows read; what the reader noticed, counted.
    position : row number (from 0) -> "line 7" or "row 7".
    """

    name: str
    where: str
    ids: Strings
    values: I64
    order: int
    segments: I64
    case_ids: Strings
    case_at: I64
    n_rows: int
    notes: dict[str, int] = field(default_factory=dict)
    traces: pa.Table | None = None
    trace_of: I64 | None = None
    missing: list[int] = field(default_factory=list)
    position: Callable[[int], dict[str, int]] = lambda row: {"row": row + 1}
    keep: list[Any] = field(default_factory=list)


def find_segments(table: I64, threads: int = 1, where: str = "") -> I64:
    """Segments of a case-id column, in order; see `ragcore_kernels.ids.find_segments`."""
    n_pieces = len(table)
    if threads > 1 and n_pieces > 1 and int(table[:, layout.ROWS].sum()) > 1_000_000:
        from ragcore.threads import run_split

        parts = run_split(lambda a, b: _segments_between(table, a, b, where), n_pieces, threads)
        return np.concatenate(parts)
    return _segments_between(table, 0, n_pieces, where)


def _segments_between(table: I64, begin: int, end: int, where: str) -> I64:
    rows = int(table[begin:end, layout.ROWS].sum())
    out = np.empty((max(64, min(rows, rows // 128 + end - begin)), 3), np.int64)
    state = np.array([begin, 0, 0, 0], np.int64)
    parts: list[I64] = []
    while True:
        kernel_ids.find_segments(table, state, end, out)
        if state[3]:
            raise outside(where, int(table[state[0], layout.BASE] + state[1]))
        if state[0] == end and not parts:
            return out[: state[2]]
        parts.append(out[: state[2]].copy())
        if state[0] == end:
            return np.concatenate(parts)
        state[2] = 0
        out = np.empty((2 * len(out), 3), np.int64)


MOST_RANKS = 2_000_000
"""Rows from which a rank column is not compared with the scores: it would cost as much again."""


class CaseCodes:
    """Codes of case ids, one code space for judgements and runs."""

    def __init__(self, expected: int = 1024) -> None:
        size = 1024
        while size < 4 * expected:
            size *= 2
        self._slots = np.full(size, -1, np.int64)
        self._keys = np.empty((size // 2 + 1, 2), np.int64)
        self._sources: list[Strings] = []  # keeps the bytes behind the keys alive
        self._names: list[str] = []
        self.count = 0
        self.langs: dict[str | None, int] = {}  # codes of languages, which all runs share, too

    def add(self, strings: Strings, at: I64) -> I64:
        """Codes of the ids at the places `at` (piece, row); unseen ids get new codes."""
        assert not self._names, "the columns behind earlier codes may be gone"
        codes = np.empty(len(at), np.int64)
        state = np.array([0, self.count], np.int64)
        while True:
            kernel_ids.intern(strings.table, at, state, self._slots, self._keys, codes)
            if state[0] == len(at):
                break
            self._slots = np.full(2 * self._slots.size, -1, np.int64)
            keys = np.empty((self._slots.size // 2 + 1, 2), np.int64)
            keys[: state[1]] = self._keys[: state[1]]
            self._keys = keys
            kernel_ids.rehash(self._keys, int(state[1]), self._slots)
        self._sources.append(strings)
        self.count = int(state[1])
        return codes

    @property
    def slots(self) -> I64:
        """The hash table over `keys`."""
        return self._slots

    @property
    def keys(self) -> I64:
        """(count, 2), address and length of every case id."""
        return self._keys[: self.count]

    def names(self) -> list[str]:
        """The case ids of all codes, as text; afterwards the columns they came from are free."""
        keys = self._keys[len(self._names) : self.count].tolist()
        self._names += [as_text(ctypes.string_at(*key)) for key in keys]
        self._sources = []
        return self._names


def _sources(column: pa.ChunkedArray) -> I64:
    kind = SCORE_F32 if pa.types.is_float32(column.type) else SCORE_F64
    width = 4 if column.type.bit_width == 32 else 8
    table = np.zeros((column.num_chunks, 2), np.int64)
    for i, chunk in enumerate(column.chunks):
        buffer = chunk.buffers()[1]
        table[i] = kind, (buffer.address + width * chunk.offset if buffer is not None else 0)
    return table


def aligned(*columns: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """The columns cut at the same rows, as casts and filters may leave them cut differently."""
    lengths = [[len(c) for c in column.chunks] for column in columns]
    if all(one == lengths[0] for one in lengths):
        return list(columns)
    cuts = sorted({int(n) for one in lengths for n in np.cumsum([0, *one])})
    out = []
    for column in columns:
        chunks = [
            chunk
            for a, b in pairwise(cuts)
            for chunk in column.slice(a, b - a).chunks
            if len(chunk)
        ]
        out.append(pa.chunked_array(chunks, column.type))
    return out


def flat_rows(
    table: pa.Table,
    where: str,
    name: str = "",
    *,
    grades: bool = False,
    float_grades: bool = False,
    threads: int = 1,
) -> Rows:
    """Flat rows, one retrieved or judged document each.

    Raises
    ------
    InputError
        If a needed column is absent, or holds what it must not.
    """
    value_names = schema.GRADE_NAMES if grades else schema.SCORE_NAMES
    wanted = {"case": schema.CASE_NAMES, "document": schema.ID_NAMES, "value": value_names}
    found = {what: arrow.find(table, names) for what, names in wanted.items()}
    for what, column in found.items():
        if column is None:
            raise InputError(
                where,
                f"columns {', '.join(table.column_names) or '(none)'}",
                f"one of {', '.join(wanted[what])}",
                "rename the column, or give a nested `ranked` list",
            )
    case_name, id_name, value_name = (found[w] or "" for w in ("case", "document", "value"))
    arrow.refuse_nulls(where, table, [case_name, id_name, value_name])
    cases = arrow.as_ids(where, case_name, table[case_name])
    documents = arrow.as_ids(where, id_name, table[id_name])
    if grades:
        values = arrow.as_grades(where, value_name, table[value_name], float_grades)
    else:
        values = arrow.as_scores(where, value_name, table[value_name])
    cases, documents, values = aligned(cases, documents, values)
    case_strings = Strings.of(cases.chunks, where, threads, later=True)
    segments = find_segments(case_strings.table, threads, where)
    notes: dict[str, int] = {}
    rank = arrow.find(table, schema.RANK_NAMES)
    if rank is not None and not grades and len(table) >= MOST_RANKS:
        notes["ranks not compared"] = len(table)
    elif rank is not None and not grades:
        conflicts = _rank_conflicts(table[rank], values, segments, case_strings)
        if conflicts:
            notes["rank conflicts"] = conflicts
    return Rows(
        name, where, Strings.of(documents.chunks, where, threads, later=not grades),
        _sources(values), BY_SCORE, segments, case_strings,
        np.ascontiguousarray(segments[:, :2]), len(table), notes,
        keep=[table, cases, documents, values],
    )  # fmt: skip


def _rank_conflicts(
    ranks: pa.ChunkedArray, values: pa.ChunkedArray, segments: I64, case_ids: Strings
) -> int:
    """Neighbouring rows of a case whose rank and score say opposite things."""
    if not pa.types.is_integer(ranks.type) or ranks.null_count:
        return 0
    place = ranks.to_numpy().astype(np.int64)
    score = values.to_numpy()
    conflict = (place[1:] > place[:-1]) & (score[1:] > score[:-1])
    conflict |= (place[1:] < place[:-1]) & (score[1:] < score[:-1])
    borders = np.cumsum(segments[:, 2])[:-1] - 1
    cut = np.flatnonzero(np.diff(segments[:, 0]))  # where a chunk ends, but perhaps no case
    goes_on = [
        k for k in cut.tolist()
        if case_ids.text(*segments[k, :2].tolist()) == case_ids.text(*segments[k + 1, :2].tolist())
    ]  # fmt: skip
    conflict[np.delete(borders, goes_on)] = False
    return int(conflict.sum())
