"""Case batches: nested lists, one row a trace, each list a ranking in recorded order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.columns import Rows, aligned
from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.strings import Strings
from ragcore_kernels import layout
from ragcore_kernels.layout import I64
from ragcore_kernels.ranking import RECORDED
from ragcore_kernels.rows import SCORE_F64, SCORE_NONE

LIST_NAMES = ("ranked", "doc_ids", "ids", "retrieved_ids")
_TOLD = (
    "context", "proposed", "final", "claims", "citations", "timings", "cost", "energy", "stages",
    "effects", "context_state", "error",
)  # fmt: skip
"""Columns that make a table a case batch even without rankings."""


@dataclass
class _Lists:
    """One chunk of lists: which are null, where the others lie in the items, and the items."""

    gone: Any
    starts: I64
    counts: I64
    ids: pa.Array
    scores: pa.Array | None


def nested_rows(table: pa.Table, where: str, name: str = "") -> Rows:
    """A case batch: one row a trace, its ranking a list in recorded order.

    Raises
    ------
    InputError
        If a needed column is absent, or holds what it must not.
    """
    case_name = arrow.find(table, schema.CASE_NAMES)
    if case_name is None:
        raise InputError(
            where, f"columns {', '.join(table.column_names)}", "a column case_id", "add one"
        )
    list_name = arrow.find(table, LIST_NAMES) or LIST_NAMES[0]
    cases = arrow.as_ids(where, case_name, table[case_name])
    if list_name in table.column_names:
        column = table[list_name]
    else:  # a trace may tell of other layers alone
        column = pa.chunked_array([pa.nulls(len(cases), pa.list_(pa.string()))])
    cases, lists = aligned(cases, column)
    parts = [_lists_of(chunk, where, list_name) for chunk in lists.chunks]
    segments, owners, missing = [np.empty((0, 3), np.int64)], [np.empty(0, np.int64)], []
    sources, at = [], [np.empty((0, 2), np.int64)]
    base = 0
    for index, part in enumerate(parts):
        n = len(part.starts)
        present = np.flatnonzero(~part.gone)
        spans = np.stack([np.full(n, index), part.starts, part.counts], 1)
        segments.append(spans[present])
        owners.append(base + present)
        missing.extend((base + np.flatnonzero(part.gone)).tolist())
        at.append(np.stack([np.full(n, index), np.arange(n)], 1))
        doubles = part.scores
        sources.append(
            (SCORE_NONE, 0) if doubles is None
            else (SCORE_F64, doubles.buffers()[1].address + 8 * doubles.offset)
        )  # fmt: skip
        base += n
    joined = np.concatenate(segments).astype(np.int64)
    trace_of = np.concatenate(owners).astype(np.int64)
    ids = Strings.of([part.ids for part in parts], where)

    def position(item: int) -> dict[str, int]:
        """The row of `table` whose list holds an item."""
        piece = int(np.searchsorted(ids.table[:, layout.BASE], item, side="right")) - 1
        inside = item - ids.table[piece, layout.BASE] - joined[:, 1]
        owner = (joined[:, 0] == piece) & (inside >= 0) & (inside < joined[:, 2])
        return {"row": int(trace_of[np.flatnonzero(owner)[0]]) + 1}

    return Rows(
        name, where, ids, np.array(sources, np.int64).reshape(-1, 2), RECORDED, joined,
        Strings.of(cases.chunks, where), np.concatenate(at).astype(np.int64),
        int(joined[:, 2].sum()), {}, position=position, traces=table, trace_of=trace_of,
        missing=missing, keep=[table, cases, lists, parts],
    )  # fmt: skip


def _lists_of(chunk: pa.Array, where: str, name: str) -> _Lists:
    """One chunk of lists, its items checked and normalised."""
    starts, counts, items = _offsets(chunk)
    if (starts < 0).any() or (counts < 0).any() or (starts + counts > len(items)).any():
        raise InputError(where, f"a list of {name} outside its values", "a sound column")
    gone = np.asarray(chunk.is_null()) if chunk.null_count else np.zeros(len(chunk), np.bool_)
    score: pa.Array | None = None
    if pa.types.is_struct(items.type):
        names = [items.type.field(i).name for i in range(items.type.num_fields)]
        id_name = next((n for n in schema.ID_NAMES if n in names), None)
        if id_name is None:
            raise InputError(where, f"{name} items {names}", "a field `id`")
        score = items.field("score") if "score" in names else None
        items = items.field(id_name)
    used = np.ones(len(items), np.bool_)
    if items.null_count or len(items) != counts.sum():
        used = _used(starts, counts, len(items))
    if items.null_count and (np.asarray(items.is_null()) & used).any():
        raise InputError(where, f"null id inside {name}", "an id in every item")
    if items.null_count:  # of no list: any id will do
        items = items.fill_null(0 if pa.types.is_integer(items.type) else "")
    items = arrow.as_ids(where, f"{name}.id", pa.chunked_array([items])).chunk(0)
    if score is not None:
        score = _scores(where, name, score, used) if score.null_count < len(score) else None
    return _Lists(gone, starts, counts, items, score)


def _offsets(chunk: pa.Array) -> tuple[I64, I64, pa.Array]:
    """Starts, counts and values of a list array of any layout; null lists count 0."""
    kind = chunk.type
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        starts = (np.arange(len(chunk), dtype=np.int64) + chunk.offset) * size
        counts = np.full(len(chunk), size, np.int64)
        values = chunk.values
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = np.asarray(chunk.offsets).astype(np.int64)
        starts, counts, values = offsets[:-1], np.diff(offsets), chunk.values
    else:  # list_view, large_list_view
        starts = np.asarray(chunk.offsets).astype(np.int64)
        counts, values = np.asarray(chunk.sizes).astype(np.int64), chunk.values
    if chunk.null_count:
        counts = np.where(np.asarray(chunk.is_null()), 0, counts)
    return starts, counts, values


def _used(starts: I64, counts: I64, n: int) -> Any:
    """Which of the n list items some list owns."""
    change = np.zeros(n + 1, np.int64)
    np.add.at(change, starts[counts > 0], 1)
    np.add.at(change, (starts + counts)[counts > 0], -1)
    return np.cumsum(change)[:n] > 0


def _scores(where: str, name: str, score: pa.Array, used: Any) -> pa.Array:
    """Scores of list items as float64: null where no item has one, refused where some have."""
    kind = score.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise InputError(where, f"{name}.score of type {kind}", "scores as numbers")
    if score.null_count and (np.asarray(score.is_null()) & used).any():
        raise InputError(
            where, f"null score in some items of {name}", "a score in every item or in none",
            "the recorded order is the rank: leave the scores out, or complete them",
        )  # fmt: skip
    if score.null_count:
        score = score.fill_null(0.0)
    return score if pa.types.is_float64(score.type) else score.cast(pa.float64(), safe=False)


def is_nested(table: pa.Table) -> bool:
    """Whether a table is a case batch: it has a list column of retrieved ids, or tells of a trace.

    Only `case_id` is required of a case batch; a flat table has an id in every row.
    """
    name = arrow.find(table, LIST_NAMES)
    if name is None:
        told = any(name in table.column_names for name in _TOLD)
        return told and arrow.find(table, schema.ID_NAMES) is None
    kind = table.schema.field(name).type
    return pa.types.is_nested(kind) and not pa.types.is_struct(kind) and not pa.types.is_map(kind)
