"""Rankings of a search -> a case batch: ranked, stages, context, timings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.formats.arrow import numbers, texts
from ragcore.index.numbered import Numbered
from ragcore.lists import rows_of
from ragcore.questions import Questions
from ragcore.retrievers import Ranked
from ragcore.search_settings import Settings
from ragcore_kernels.layout import F64


def fused_lists(
    index: Numbered, found: dict[str, Ranked], settings: Settings, n: int
) -> tuple[Ranked, list[str]]:
    """The channels of the first `n` questions fused, whole lists in; what fusion says of them."""
    from ragcore.fuse import fuse

    if n == 0:
        return Ranked.empty(0), []
    tables = []
    for name, ranked in found.items():
        manifest = {b"ragcore.manifest": json.dumps({"run": name}).encode()}
        lists = ranked_lists(index, ranked.head(n), schema.RANKED_ITEM)
        cases = texts([str(i) for i in range(n)])
        table = pa.Table.from_arrays([cases, lists], names=["case_id", "ranked"])
        tables.append(table.replace_schema_metadata(manifest))
    fused = fuse(
        tables, method=settings.method, rrf_k=settings.rrf_k,
        weights=None if settings.weights is None else list(settings.weights),
        normalise=settings.normalise, stages=False,
    )  # fmt: skip
    out = Ranked.empty(n)
    lists = fused.table["ranked"].combine_chunks()
    flat = lists.flatten()
    rows = np.array([index.row_of[name] for name in flat.field("id").to_pylist()], np.int32)
    scores = flat.field("score").to_numpy(zero_copy_only=False).astype(np.float64)
    ends = lists.offsets.to_numpy() - lists.offsets[0].as_py() if len(lists) else [0]
    for i, name in enumerate(fused.table["case_id"].to_pylist()):
        at = int(name)
        out.rows[at], out.scores[at] = rows[ends[i] : ends[i + 1]], scores[ends[i] : ends[i + 1]]
    return out, [pair.sentence() for pair in fused.agreements]


def ranked_lists(
    index: Numbered,
    ranked: Ranked,
    item: pa.DataType = schema.RANKED_ITEM,
    limit: int | None = None,
) -> pa.Array:
    """Ranked lists as a list column of `item`, cut at `limit`; null where a list is None."""
    gone = np.array([r is None for r in ranked.rows], np.bool_)
    rows = [np.empty(0, np.int64) if r is None else r[:limit] for r in ranked.rows]
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(r) for r in rows], out=offsets[1:])
    flat = np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int64)
    scores = [s[:limit] for r, s in zip(ranked.rows, ranked.scores, strict=True) if r is not None]
    items = _items(index, flat, np.concatenate([np.empty(0), *scores]), item)
    mask = None
    if gone.any():
        bits = pa.py_buffer(np.packbits(gone, bitorder="little"))
        mask = pa.Array.from_buffers(pa.bool_(), gone.size, [None, bits])
    return pa.ListArray.from_arrays(numbers(offsets), items, mask=mask)


def _items(index: Numbered, rows: Any, scores: Any, item: pa.DataType) -> pa.Array:
    """Structs of a kind that schema names, for chunks by row."""
    taken = numbers(rows)
    documents = index.documents
    parts: list[pa.Array] = []
    fields = [item.field(i) for i in range(item.num_fields)]
    for one in fields:
        if one.name == "id":
            column: Any = index.ids.take(taken).cast(pa.string())
        elif one.name == "score":
            column = numbers(scores)
        elif one.name in documents.column_names:
            column = documents[one.name].combine_chunks().take(taken)
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            column = column.cast(one.type)
        else:
            column = pa.nulls(len(rows), one.type)
        parts.append(column)
    return pa.StructArray.from_arrays(parts, fields=fields)


def _stage_map(index: Numbered, found: dict[str, Ranked], n: int) -> pa.Array:
    """Every stage of every question, as a map from its name to its list."""
    names = list(found)
    merged = Ranked(
        [found[name].rows[i] for i in range(n) for name in names],
        [found[name].scores[i] for i in range(n) for name in names], np.zeros(0),
    )  # fmt: skip
    lists = ranked_lists(index, merged, schema.STAGE_ITEM)
    offsets = np.arange(n + 1, dtype=np.int32) * len(names)
    return pa.MapArray.from_arrays(numbers(offsets), texts(names * n), lists)


def _timings(stages: dict[str, F64], n: int) -> pa.Array:
    """Durations of every stage, and of all of them; they ran one after the other."""
    whole = stages | {"end_to_end": sum(stages.values(), np.zeros(n))}
    spent = np.stack(list(whole.values()), 1).ravel().round().astype(np.int64)
    given = {"stage": texts(list(whole) * n), "duration_us": numbers(spent)}
    item = schema.RUNS.field("timings").type.value_type
    fields = [item.field(i) for i in range(item.num_fields)]
    parts = [given.get(one.name, pa.nulls(n * len(whole), one.type)) for one in fields]
    offsets = np.arange(n + 1, dtype=np.int32) * len(whole)
    return pa.ListArray.from_arrays(
        numbers(offsets), pa.StructArray.from_arrays(parts, fields=fields)
    )


def run_table(
    index: Numbered,
    questions: Questions,
    found: dict[str, Ranked],
    final: Ranked,
    context_k: int,
    stages: dict[str, F64],
    manifest: dict[str, Any],
) -> pa.Table:
    """The case batch of a search: columns of `schema.RUNS`, the manifest in its metadata."""
    n = len(questions)
    context = schema.RUNS.field("context").type.value_type
    states = texts(["ready" if r is None or len(r) else "no_evidence" for r in final.rows])
    if any(r is None for r in final.rows):  # not known, which is neither
        kept = [-1 if r is None else i for i, r in enumerate(final.rows)]
        states = states.take(rows_of(np.array(kept, np.int64)))
    columns: dict[str, Any] = {"case_id": texts(questions.case_ids)}
    if any(lang is not None for lang in questions.langs):
        columns["lang"] = questions.table["lang"].combine_chunks()
    if questions.asked is not None:
        columns["query"] = questions.table[questions.asked].combine_chunks()
    columns |= {
        "ranked": ranked_lists(index, final, schema.RANKED_ITEM),
        "stages": _stage_map(index, found, n),
        "context": ranked_lists(index, final, context, context_k),
        "context_state": states,
        "timings": _timings(stages, n),
        "index_generation": texts([index.generation] * n),
    }
    fields = [schema.RUNS.field(name) for name in columns]
    said = json.dumps(manifest, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    kind = pa.schema(fields, {schema.MANIFEST_KEY: said.encode()})
    return pa.Table.from_arrays(
        [_cast(column, kind.field(name).type) for name, column in columns.items()], schema=kind
    )


def _cast(column: Any, kind: pa.DataType) -> Any:
    """A column as `kind`; dictionaries by way of their values."""
    if pa.types.is_dictionary(column.type) and column.type != kind:
        column = column.cast(column.type.value_type)
    return column if column.type == kind else column.cast(kind)
