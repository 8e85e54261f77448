"""Case batches to write: lists of documents as Arrow columns of `schema.RUNS`, and the table.

Lists come in pieces, each of some consecutive cases: the documents of one list after the other, and
how many each list has. A piece becomes a chunk of the column; nothing is copied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.formats import arrow
from ragcore.report.table import whole_file

LONGEST_CHUNK = 2**31 - 1
"""Bytes of ids, and documents, that a chunk may hold."""


def id_column(ends: Any, data: Any, n: int, text: bool = True) -> pa.Array:
    """A column of n ids over the given memory.

    Parameters
    ----------
    ends : (n + 1 or more,), int32 Arrow offsets.
    data : bytes of the ids, side by side.
    text : whether they are known to be UTF-8; else the column is binary.
    """
    kind = pa.string() if text else pa.binary()
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(ends), pa.py_buffer(data)])


def is_text(ids: pa.Array) -> bool:
    """Whether every id of a binary column is UTF-8."""
    try:
        ids.view(pa.string()).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _offsets(counts: Any) -> Any:
    out = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=out[1:])
    return arrow.numbers(out)


def _items(kind: pa.StructType, ids: pa.Array, scores: pa.Array | None) -> pa.Array:
    """Structs of list items; what is not given is null."""
    parts = [ids, scores if scores is not None else pa.nulls(len(ids), pa.float64())]
    fields = [kind.field(0).with_type(ids.type), kind.field(1)]
    if kind.num_fields > 2:
        parts.append(pa.nulls(len(ids), kind.field(2).type))
        fields.append(kind.field(2))
    return pa.StructArray.from_arrays(parts, fields=fields)


def ranked_lists(
    counts: Any, ids: pa.Array, scores: pa.Array | None, absent: Any = None
) -> pa.Array:
    """A chunk of the column `ranked`.

    Parameters
    ----------
    counts : (n_cases,), documents of each case.
    ids, scores : of all of them, best first; scores None = not recorded.
    absent : (n_cases,), True where no list was recorded, which is not an empty one; None = never.
    """
    items = _items(schema.RANKED_ITEM, ids, scores)
    mask = None
    if absent is not None and absent.any():
        bits = np.packbits(absent, bitorder="little")
        mask = pa.Array.from_buffers(pa.bool_(), len(absent), [None, pa.py_buffer(bits)])
    return pa.ListArray.from_arrays(_offsets(counts), items, pa.list_(_field_of(items)), mask=mask)


def _field_of(items: pa.Array) -> pa.Field:
    return pa.field("item", items.type)


def staged_lists(
    names: Sequence[str], present: Any, counts: Any, ids: pa.Array, scores: pa.Array | None
) -> pa.Array:
    """A chunk of the column `stages`: for every case the lists that there are, by name.

    Parameters
    ----------
    names : of the stages.
    present : (n_cases, n_stages), whether a case has the list.
    counts : (n_cases, n_stages), its documents; 0 where there is none.
    ids, scores : of all of them, case after case, stage after stage; a null score = not recorded.
    """
    items = _items(schema.STAGE_ITEM, ids, scores)
    which = np.broadcast_to(np.arange(len(names)), present.shape)[present]
    keys = arrow.texts(list(names)).take(arrow.numbers(which.astype(np.int32)))
    lists = pa.ListArray.from_arrays(_offsets(counts[present]), items, pa.list_(_field_of(items)))
    kind = pa.map_(keys.type, lists.type)
    return pa.MapArray.from_arrays(_offsets(present.sum(1)), keys, lists, kind)


def case_batch(
    columns: Mapping[str, Any], manifest: Mapping[str, Any], extra: Mapping[bytes, bytes] = {}
) -> pa.Table:
    """The table of a case batch.

    Parameters
    ----------
    columns : name in `schema.RUNS` -> an array, a list of chunks, or a list of Python values, all
        of one length; `case_id` must be there. They come in the order of the schema.
    manifest : what the run did, kept as canonical JSON in the schema's metadata.
    extra : more metadata.

    Raises
    ------
    KeyError
        If a name is not in the schema, or `case_id` is missing.
    """
    unknown = set(columns) - set(schema.RUNS.names)
    if unknown or "case_id" not in columns:
        raise KeyError(", ".join(sorted(unknown)) or "case_id")
    fields, arrays = [], []
    for field in schema.RUNS:
        if field.name not in columns:
            continue
        given = columns[field.name]
        if isinstance(given, list) and given and isinstance(given[0], pa.Array):
            given = pa.chunked_array(given)
        elif isinstance(given, list):
            given = _column(given, field.type)
        arrays.append(given)
        fields.append(pa.field(field.name, given.type, field.nullable))
    text = json.dumps(dict(manifest), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    metadata = {schema.MANIFEST_KEY: text.encode("utf-8", "backslashreplace"), **extra}
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata))


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Python values as a column of the schema's type; strings that are not Unicode as binary."""
    if pa.types.is_string(kind) and all(isinstance(v, str) for v in values):
        return arrow.texts(values)
    if kind == schema.DICT:
        distinct = [value for value in dict.fromkeys(values) if value is not None]
        codes = {value: code for code, value in enumerate(distinct)}
        indices = pa.array([codes.get(value) for value in values], pa.int32())
        return pa.DictionaryArray.from_arrays(indices, arrow.texts(list(codes)))
    return pa.array(values, kind)


def write_case_batch(table: pa.Table, path: Path) -> None:
    """An Arrow file of the table, a batch a chunk; it appears whole or not at all.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with whole_file(path) as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
