"""Columns of suites, made of a collection's tables: brought to the engine's own types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.public.checks import Tables, refuse_unknown, table

Values = pl.Series | pa.Array | Sequence[Any]
"""A column, however an importer came to it."""


def typed(columns: Mapping[str, Values], of: pa.Schema) -> pa.Table:
    """Columns as a table: those that the schema `of` has in its types, the others as they are.

    Raises
    ------
    InputError
        If a column has values that its type has no room for.
    """
    arrays, fields = [], []
    for name, values in columns.items():
        known = of.get_field_index(name) >= 0
        made = _array(name, values, of.field(name).type if known else None)
        arrays.append(made)
        fields.append(of.field(name) if known else pa.field(name, made.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def coded(values: pl.Series) -> pa.Array:
    """Texts of which there are few, each kept once."""
    return _array(values.name, values, schema.DICT)


def _array(name: str, values: Values, kind: pa.DataType | None) -> pa.Array:
    """A column as an Arrow array of the type `kind`; None = its own."""
    try:
        if not isinstance(values, (pl.Series, pa.Array)):
            return pa.array(values, kind)
        made: Any = values.to_arrow() if isinstance(values, pl.Series) else values
        if kind in (None, made.type):
            return made
        if kind == schema.DICT:
            return made.cast(pa.string()).dictionary_encode()
        return made.cast(kind)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise InputError(f"column {name}", str(error), f"values of type {kind}") from None


def in_order(rows: pl.DataFrame, column: str, names: pl.Series) -> pl.DataFrame:
    """The rows whose `column` is among `names`, in the order of these; stable."""
    places = pl.DataFrame({column: names, "__at": np.arange(len(names))})
    held = rows.join(places, on=column, how="inner", maintain_order="left")
    return held.sort("__at", maintain_order=True).drop("__at")


def evidence(
    keys: pl.Series, items: pl.DataFrame, name: str, absent: Iterable[str] = ()
) -> pa.Array:
    """Items of evidence as one list a case.

    Parameters
    ----------
    keys : of the cases, each once, in their order.
    items : a row an item: `key`, and fields of `ragcore.schema.EVIDENCE`; those that are not there
        are null. Items of a case stay in their order.
    name : of the table they came from, for messages.
    absent : keys of cases whose evidence is not known: null, if they have no items. Any other case
        without items has none: an empty list.

    Raises
    ------
    InputError
        If an item is of no case, or has values that their type has no room for.
    """
    refuse_unknown(items, name, "key", keys, "the cases")
    places = pl.DataFrame({"key": keys, "place": np.arange(len(keys))})
    ordered = items.join(places, on="key", how="left").sort("place", maintain_order=True)
    counts = np.bincount(ordered["place"].to_numpy(), minlength=len(keys))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    unknown = keys.is_in(list(absent)).to_numpy() & (counts == 0)
    fields = [
        _array(each.name, ordered[each.name], each.type) if each.name in ordered.columns
        else pa.nulls(ordered.height, each.type)
        for each in schema.EVIDENCE
    ]  # fmt: skip
    whole = pa.StructArray.from_arrays(fields, fields=list(schema.EVIDENCE))
    # A null offset makes a null list.
    starts = pa.array(offsets, pa.int32(), mask=np.append(unknown, False))
    return pa.ListArray.from_arrays(starts, whole)


def vectors(tables: Tables, name: str, column: str, ids: pl.Series) -> dict[str, pa.Array]:
    """The column `vector` for `ids`, float32; nothing where the collection came without vectors.

    Parameters
    ----------
    name, column : the table of vectors, and its column of ids.

    Raises
    ------
    InputError
        If an id has no vector or two, or vectors differ in length or are none of numbers.
    """
    if name not in tables:
        return {}
    known = table(tables, name, column, key=column)
    kind = tables[name].schema.get("vector")
    if not isinstance(kind, pl.Array) or not kind.inner.is_numeric():
        raise InputError(name, f"column vector of type {kind}", "arrays of numbers, of one length")
    given = known.with_columns(tables[name]["vector"])
    rows = pl.DataFrame({column: ids}).join(given, on=column, how="left", maintain_order="left")
    bare = rows.filter(pl.col("vector").is_null())
    if bare.height:
        raise InputError(
            name, f"no vector of {bare[column][0]!r} ({bare.height} of {rows.height} have none)",
            f"one for every {column}",
        )  # fmt: skip
    dim = kind.shape[0]
    made = rows["vector"].cast(pl.Array(pl.Float32, dim)).to_arrow()
    return {"vector": made.cast(schema.vector_field(dim).type)}


def flat_run(rows: pl.DataFrame, case: str = "query_id", document: str = "doc_id") -> pa.Table:
    """A ranking in its flat form: `case_id`, `id` and `score`, rows as they come."""
    return pa.table(
        {
            "case_id": _array(case, rows[case], pa.string()),
            "id": _array(document, rows[document], pa.string()),
            "score": _array("score", rows["score"], pa.float64()),
        }
    )


def documents(corpus: pl.DataFrame, lang: str, **more: Values) -> pa.Table:
    """Chunks that are whole documents: their ids, titles and texts.

    Parameters
    ----------
    corpus : `doc_id`, `title` and `text`.
    lang : BCP 47, of every one.
    more : further columns.
    """
    columns: dict[str, Values] = {
        "chunk_id": corpus["doc_id"], "doc_id": corpus["doc_id"], "title": corpus["title"],
        "text": corpus["text"], "lang": [lang] * len(corpus),
    }  # fmt: skip
    return typed(columns | more, schema.CHUNKS)


def states(answerable: pl.Series) -> list[str]:
    """What is asked for where an answer is all that a question can have: it, or to abstain."""
    return ["answer" if one else "abstain" for one in answerable]
