"""Ids of chunks as codes, and what a suite knows of its chunks.

Codes 0 to ``n - 1`` are the rows of the suite's chunks; ids that it does not have get the codes
after them, in order of first appearance, so that two ids are equal if their codes are.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore.lists import Lists, coded, integers, joined, lists_of, no_lists, plain, rows_of
from ragcore_kernels.layout import I64

FOREVER = 2**31 - 1
"""Day after the last, in days since 1970: the end of what has none."""


class Chunks:
    """The chunks of a suite: one row a retrievable unit of the snapshot.

    Parameters
    ----------
    table : `schema.CHUNKS`, perhaps with fewer or more columns.
    where : its file, for messages.

    Raises
    ------
    InputError
        If it has no chunk_id, or one of them twice.
    """

    def __init__(self, table: pa.Table, where: str) -> None:
        self.table, self.where = table, where
        if "chunk_id" not in table.column_names:
            raise InputError(where, f"columns {', '.join(table.column_names)}", "a column chunk_id")
        ids = arrow.as_ids(where, "chunk_id", table["chunk_id"])
        self.ids = joined(ids).cast(pa.large_string())
        if len(pc.unique(self.ids)) != len(self.ids):
            seen: dict[str, int] = {}
            for row, one in enumerate(self.ids.to_pylist()):
                if one in seen:
                    raise InputError(
                        where, f"chunk {one!r} twice (row {seen[one] + 1} too)",
                        "each chunk_id once in a snapshot", row=row + 1,
                    )  # fmt: skip
                seen[one] = row

    def __len__(self) -> int:
        """How many chunks."""
        return len(self.ids)

    def has(self, name: str) -> bool:
        """Whether there is such a column with any value."""
        return name in self.table.column_names and self.table[name].null_count < len(self)

    def column(self, name: str) -> pa.Array | None:
        """A column as one plain array; None without it."""
        return joined(self.table[name]) if name in self.table.column_names else None

    def integers(self, name: str, missing: int = -1) -> I64:
        """An integer column; `missing` where null or absent."""
        return integers(self.column(name), len(self), missing)

    def days(self, name: str, missing: int) -> I64:
        """A date column in days since 1970; `missing` where null or absent."""
        found = self.column(name)
        if found is not None and not pa.types.is_null(found.type):
            found = found.cast(pa.date32()).cast(pa.int32())
        return integers(found, len(self), missing)

    def lists(self, name: str) -> Lists:
        """A list column; nothing is present without it."""
        if name not in self.table.column_names:
            return no_lists(len(self))
        return lists_of(self.table[name])

    def texts(self, lang: str | None = None) -> pa.Array | None:
        """The text of every chunk, in `lang` where the chunks have a column of that language.

        A suite whose units are the same in several languages keeps them in ``text_zh`` and so on
        beside ``text``.
        """
        own = f"text_{lang}"
        return self.column(own if lang and own in self.table.column_names else "text")

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The schema metadata, JSON values read."""
        out: dict[str, Any] = {}
        for key, value in (self.table.schema.metadata or {}).items():
            try:
                out[key.decode()] = json.loads(value)
            except ValueError:
                out[key.decode()] = value.decode("utf-8", "replace")
        return out

    @cached_property
    def snapshots(self) -> dict[str, Any]:
        """For a union of snapshots: by name which rows are in it, (n,) bool each."""
        named = self.metadata.get("snapshots")
        if not isinstance(named, dict):
            return {}
        masks = {}
        for name, ids in named.items():
            rows = integers(
                pc.index_in(arrow.texts(list(ids)).cast(pa.large_string()), self.ids), len(ids)
            )
            masks[name] = np.zeros(len(self), np.bool_)
            masks[name][rows[rows >= 0]] = True
        return masks

    @cached_property
    def deleted(self) -> Any:
        """(n,) bool: which chunks are deleted."""
        found = self.column("deleted")
        if found is None or pa.types.is_null(found.type):
            return np.zeros(len(self), np.bool_)
        return np.asarray(found.cast(pa.bool_()).fill_null(False)).astype(np.bool_)

    def snapshot_codes(self, names: pa.Array | None, n: int) -> I64:
        """(n,), names of snapshots as places in `snapshots`; negative for none of them."""
        return coded(names, n, tuple(self.snapshots))

    def living(self, units: I64, snapshot: I64) -> Any:
        """Which units are chunks, not deleted, and in a snapshot.

        Parameters
        ----------
        units : (n,), codes.
        snapshot : (n,), the one asked about for each, as `snapshot_codes`; negative for any.
        """
        there = (units >= 0) & (units < len(self))
        rows = units[there]
        alive = ~self.deleted[rows]
        asked = snapshot[there]
        for code, mask in enumerate(self.snapshots.values()):
            alive &= (asked != code) | mask[rows]
        there[there] = alive
        return there


class Vocabulary:
    """Codes of chunk ids; see the module.

    Parameters
    ----------
    chunks : whose rows are the first codes; None for none.
    """

    def __init__(self, chunks: Chunks | None) -> None:
        self.known = chunks.ids if chunks is not None else pa.array([], pa.large_string())
        self.n_chunks = len(self.known)

    def codes(self, ids: pa.Array | None, n: int = 0) -> I64:
        """Codes of ids, -1 where null; `n` of them if there is no array."""
        if ids is None or pa.types.is_null(ids.type):
            return np.full(n if ids is None else len(ids), -1, np.int64)
        coded = ids if pa.types.is_dictionary(ids.type) else pc.dictionary_encode(plain(ids))
        words = plain(coded.dictionary).cast(pa.large_string())  # few of them, even of many ids
        places = pc.index_in(words, value_set=self.known)
        fresh = pc.and_(pc.is_null(places), pc.is_valid(words))
        if pc.any(fresh).as_py():
            self.known = pa.concat_arrays([self.known, words.filter(fresh).unique()])
            places = pc.index_in(words, value_set=self.known)
        found = np.append(integers(places, len(words)), -1)  # the last for nulls
        return found[integers(coded.indices, len(coded))]

    def name(self, code: int) -> str:
        """The id behind a code."""
        return self.known[code].as_py()

    def names(self, codes: I64) -> pa.Array:
        """The ids behind codes."""
        return self.known.take(rows_of(codes))


def chunks_of(path: Path) -> Chunks | None:
    """The chunks in a suite's folder; None if it has no list of them."""
    for file in (path / "chunks.arrow", path / "chunks.parquet"):
        if file.is_file():
            table = arrow.read_checked(file, "the chunks of a suite", "see schema.CHUNKS")
            return Chunks(table, str(file))
    return None
