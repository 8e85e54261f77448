"""Other chunks of the same documents: neighbours of a suite's chunks merged, overlapping or not.

Labels point at quotes and blocks, so the same labels serve: nothing is labelled again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.index.chunks import VECTOR

_OWN = (
    "chunk_id", "page", "block_first", "block_last", "start", "end", "n_tokens", "sha256", "shard",
    "sentence_tokens", VECTOR,
)  # fmt: skip
"""Columns of single chunks; merged ones agree in all others."""


@dataclass(frozen=True)
class Cut:
    """How neighbours become one chunk.

    Attributes
    ----------
    merge : the most neighbours in one; 0 for no such limit.
    max_tokens : the most tokens in one, but never less than one chunk; 0 for no such limit.
    overlap : neighbours that a chunk shares with the one before it.
    """

    merge: int = 0
    max_tokens: int = 0
    overlap: int = 0

    def said(self) -> dict[str, int]:
        """For manifests."""
        given = {"merge": self.merge, "max_tokens": self.max_tokens, "overlap": self.overlap}
        return {key: value for key, value in given.items() if value}

    def __str__(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self.said().items())


def read_cut(where: str, name: str, given: Mapping[str, Any]) -> Cut:
    """A cut from its table.

    Raises
    ------
    InputError
        If a key is unknown, a value no whole number, or nothing would be merged.
    """
    for key, value in given.items():
        if key not in ("merge", "max_tokens", "overlap"):
            raise InputError(
                where, f"unknown key {key!r} in chunking {name!r}", "merge, max_tokens, overlap"
            )
        if type(value) is not int or value < (0 if key == "overlap" else 1):
            raise InputError(where, f"chunking {name!r}: {key} = {value!r}", "a whole number")
    made = Cut(**given)
    if not made.merge and not made.max_tokens:
        raise InputError(where, f"chunking {name!r} merges nothing", "merge = 2, or max_tokens")
    if made.merge == 1 and not made.max_tokens:
        raise InputError(where, f"chunking {name!r} is the suite's own", "merge from 2 on")
    if made.merge and made.overlap >= made.merge:
        raise InputError(
            where, f"chunking {name!r}: overlap {made.overlap} of {made.merge}",
            "an overlap below merge",
        )  # fmt: skip
    return made


def recut(table: pa.Table, where: str, cut: Cut) -> tuple[pa.Table, list[str]]:
    """The chunks of a suite, merged; and what was noticed.

    Neighbours follow each other in one document, by block, then place, then row. They agree in
    language, revision, title and every column that filters may look at: a chunk is never merged
    with one that others may see. Deleted chunks are left out. Texts are joined as they lie in the
    document: by as many line breaks as code points lie between them, one where that is not known,
    and without what they share. Vectors are dropped.

    Raises
    ------
    InputError
        If there are no documents, or no lengths where those are asked for.
    """
    names = table.column_names
    if "doc_id" not in names:
        raise InputError(
            where, f"columns {', '.join(names)}", "a column doc_id",
            "neighbours are those of one document",
        )  # fmt: skip
    if cut.max_tokens and ("n_tokens" not in names or table["n_tokens"].null_count):
        raise InputError(where, "chunks without n_tokens", "lengths of all, for max_tokens")
    rows = table.drop_columns([VECTOR] if VECTOR in names else []).to_pylist()
    texts = [name for name in names if name == "text" or name.startswith("text_")]
    shared = [name for name in names if name not in _OWN and name not in texts
              and not name.startswith(("n_tokens_", "start_"))]  # fmt: skip
    windows = [
        window for members in _documents(rows, shared)
        for window in _windows([rows[i] for i in members], cut)
    ]  # fmt: skip
    made = [_merged(window, texts) for window in windows]
    kept = [name for name in names if name != VECTOR]
    schema = pa.schema([table.schema.field(name) for name in kept], table.schema.metadata)
    alone = sum(len(window) == 1 for window in windows)
    notes = [f"{len(rows)} chunks became {len(made)} ({cut}); {alone} of these are as they were"]
    return pa.Table.from_pylist(made, schema=schema), notes


def _documents(rows: list[dict[str, Any]], shared: list[str]) -> list[list[int]]:
    """Rows that may be merged, in the order of their documents."""
    order: dict[Any, list[int]] = {}
    for i, row in enumerate(rows):
        if not row.get("deleted"):
            order.setdefault((row["doc_id"] or row["chunk_id"], row.get("lang")), []).append(i)
    out: list[list[int]] = []
    for members in order.values():
        members.sort(key=lambda i: (_place(rows[i], "block_first"), _place(rows[i], "start"), i))
        last = None
        for i in members:
            key = [_plain(rows[i][name]) for name in shared]
            if key != last or not _follows(rows[out[-1][-1]], rows[i]):
                out.append([])
            out[-1].append(i)
            last = key
    return out


def _follows(one: dict[str, Any], two: dict[str, Any]) -> bool:
    """Whether no block lies between two chunks, as far as they say."""
    end, start = one.get("block_last"), two.get("block_first")
    end = one.get("block_first") if end is None else end
    return end is None or start is None or start <= end + 1


def _place(row: dict[str, Any], name: str) -> int:
    value = row.get(name)
    return -1 if value is None else value


def _plain(value: Any) -> Any:
    return sorted(map(str, value)) if isinstance(value, list) else value


def _windows(rows: list[dict[str, Any]], cut: Cut) -> list[list[dict[str, Any]]]:
    """Runs of neighbours: as long as the limits allow, the last one ends with the document."""
    out, begin = [], 0
    while True:
        end, tokens = begin, 0
        while end < len(rows):
            tokens += rows[end].get("n_tokens") or 0
            full = (cut.merge and end - begin >= cut.merge) or (
                cut.max_tokens and tokens > cut.max_tokens
            )
            if full and end > begin:
                break
            end += 1
        out.append(rows[begin:end])
        if end >= len(rows):
            return out
        begin = max(end - cut.overlap, begin + 1)


def _merged(window: list[dict[str, Any]], texts: list[str]) -> dict[str, Any]:
    """One chunk of several neighbours; ids of merged chunks are new."""
    first, last = window[0], window[-1]
    if len(window) == 1:
        return first
    out = dict(first)
    out["chunk_id"] = f"{first['chunk_id']}+{last['chunk_id']}"
    gaps = [_gap(a, b) for a, b in pairwise(window)]
    for name in texts:
        own: list[int | None] = gaps if name == "text" else [None] * len(gaps)
        out[name] = _text([row[name] for row in window], own)
    for name in (n for n in ("block_last", "end") if n in out):
        out[name] = last[name]
    if "block_last" in out and out["block_last"] is None:
        out["block_last"] = last.get("block_first")
    if "page" in out and any(row["page"] != first["page"] for row in window):
        out["page"] = None
    for name in (n for n in out if n == "n_tokens" or n.startswith("n_tokens_")):
        given = [row[name] for row in window]
        known = None not in given and not any(gap is not None and gap < 0 for gap in gaps)
        out[name] = sum(given) if known else None
    for name in ("sha256", "sentence_tokens"):
        if name in out:
            out[name] = None
    return out


def _gap(one: dict[str, Any], two: dict[str, Any]) -> int | None:
    """Code points between two neighbours; negative where they overlap, None where not known."""
    end, start = one.get("end"), two.get("start")
    if end is None or start is None or start < (one.get("start") or 0):
        return None
    return start - end


def _text(parts: list[str | None], gaps: list[int | None]) -> str | None:
    if None in parts:
        return None
    out = parts[0] or ""
    for part, gap in zip(parts[1:], gaps, strict=True):
        part = part or ""
        out += part[-gap:] if gap is not None and gap < 0 else "\n" * (1 if gap is None else gap)
        out += "" if gap is not None and gap < 0 else part
    return out


def with_vectors(table: pa.Table, vectors: np.ndarray[Any, Any]) -> pa.Table:
    """Chunks with a column of vectors, (n, d), rows as they stand."""
    flat = arrow.numbers(np.ascontiguousarray(vectors, np.float32).ravel())
    return table.append_column(VECTOR, pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]))
