"""Packed judgments: all verdicts of a judge on one answer and relation in one row.

A row has the columns of `schema.JUDGMENTS` but ``verdict``, ``claim`` and ``score``; in their place
stands a list column ``verdicts``: words of `schema.VERDICTS` (dictionary-encoded is best) or their
places in it as integers, null for no verdict. Its length is fixed by the relation:

* ``correct``, ``entailed``: one for each claim of the answer;
* ``covered``: one for each reference claim;
* ``chunk_entails``, ``chunk_entails_reference``: claims x chunks, row by row. The chunks are those
  of the list column ``evidence`` where it names any, else the context as the trace records it;
* ``relevance``: one for each chunk that ``evidence`` names;
* ``conflict_shown``: one.

Other relations speak of pairs that no list implies, and are kept one verdict a row. Both kinds may
be given together, and mean the same: what is said here of how verdicts are resolved holds for each
verdict of a list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.formats.compute import pc
from ragcore.lists import as_lists, integers, joined
from ragcore_kernels.layout import I64

COLUMN = "verdicts"
"""Name of the list column, which makes a table a packed one."""
RELATIONS = (
    "correct", "entailed", "covered", "chunk_entails", "chunk_entails_reference", "relevance",
    "conflict_shown",
)  # fmt: skip
"""Relations that may be packed."""


def is_packed(table: pa.Table) -> bool:
    """Whether a table of judgments has a list of verdicts a row rather than one verdict."""
    return COLUMN in table.column_names and "verdict" not in table.column_names


def checked(where: str, found: pa.Table, table: pa.Table) -> pa.Table:
    """The columns `found` of a packed `table`, with its lists.

    Raises
    ------
    InputError
        If a relation cannot be packed, a claim is named, or the lists are no lists of verdicts.
    """
    if "claim" in table.column_names and table["claim"].null_count < len(table):
        row = int(np.flatnonzero(np.asarray(table["claim"].is_valid()))[0])
        raise InputError(
            where, "a claim beside a list of verdicts", "the verdicts of all claims in order",
            "leave the column `claim` out", row=row + 1,
        )  # fmt: skip
    words = found["relation"].combine_chunks()
    words = words.chunk(0) if isinstance(words, pa.ChunkedArray) else words
    known = words.dictionary.to_pylist()
    bad = [i for i, word in enumerate(known) if word not in RELATIONS]
    wrong = np.flatnonzero(np.isin(integers(words.indices, len(words)), bad))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            where, f"packed verdicts of relation {words[row].as_py()!r}",
            f"one of {', '.join(RELATIONS)}", "keep the others one verdict a row", row=row + 1,
        )  # fmt: skip
    if "relevance" in known:
        own = np.asarray(pc.equal(words.cast(pa.string()), "relevance"))
        sizes = np.zeros(len(words), np.int64)
        if "evidence" in found.column_names:
            sizes = integers(joined(pc.list_value_length(found["evidence"])), len(words), 0)
        if (own & (sizes <= 0)).any():
            raise InputError(
                where, "packed verdicts of relevance without chunks", "their ids in `evidence`",
                row=int(np.flatnonzero(own & (sizes <= 0))[0]) + 1,
            )  # fmt: skip
    kind = table.schema.field(COLUMN).type
    if not (pa.types.is_nested(kind) and hasattr(kind, "value_type")):
        raise InputError(where, f"column {COLUMN!r} of type {kind}", "lists of verdicts")
    return found.append_column(COLUMN, table[COLUMN])


def verdict_codes(tables: list[tuple[str, pa.Table]]) -> tuple[I64, Any]:
    """Offsets and flat int8 codes of the lists of several files, one after another.

    Raises
    ------
    InputError
        If an item is no verdict; the message names file and row.
    """
    offsets, values, first = [np.zeros(1, np.int64)], [], 0
    for where, table in tables:
        row = 0
        for chunk in table[COLUMN].chunks:  # whose dictionaries may differ
            chunk = as_lists(chunk)
            ends = np.cumsum(integers(pc.list_value_length(chunk), len(chunk), 0))
            values.append(_codes(where, row, chunk.flatten(), ends))
            offsets.append(ends + first)
            first, row = int(offsets[-1][-1]) if len(chunk) else first, row + len(chunk)
    flat = values[0] if len(values) == 1 else np.concatenate([np.zeros(0, np.int8), *values])
    flat.flags.writeable = False  # like a view of Arrow memory, so that kernels compile once
    return np.concatenate(offsets), flat


def _codes(where: str, above: int, items: pa.Array, ends: I64) -> Any:
    """Items as int8 places in `schema.VERDICTS`, -1 where null; rows count from `above`."""
    kind = items.type
    if pa.types.is_null(kind):
        return np.full(len(items), -1, np.int8)
    if pa.types.is_integer(kind):
        codes = np.asarray(items.fill_null(-1) if items.null_count else items)
        bad = (codes < 0) | (codes >= len(schema.VERDICTS))
        if items.null_count:
            bad &= np.asarray(items.is_valid())
    else:
        if not pa.types.is_dictionary(kind):
            items = pc.dictionary_encode(items)
        words = items.dictionary.to_pylist()
        place = [schema.VERDICTS.index(w) if w in schema.VERDICTS else -2 for w in words]
        codes = np.array([*place, -1], np.int8)[integers(items.indices, len(items))]
        bad = codes < -1
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        row = above + int(np.searchsorted(ends, at, side="right")) + 1
        raise InputError(
            where, f"verdict {items[at].as_py()!r} in a list",
            f"one of {', '.join(schema.VERDICTS)}, or its place from 0", row=row,
        )  # fmt: skip
    return codes.astype(np.int8, copy=False)
