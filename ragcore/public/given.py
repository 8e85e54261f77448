"""Tables and files of a collection, checked; and the columns of a suite made from them."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.formats import arrow

SPLITS = {
    "train": "development", "trial": "development", "dev": "validation",
    "validation": "validation", "test": "test",
}  # fmt: skip
"""The names that collections give their splits, as `ragcore.schema.SPLITS` calls them."""


def table(tables: Mapping[str, pl.DataFrame], name: str, *columns: str) -> pl.DataFrame:
    """The table `name` of a collection, which must have `columns`.

    Raises
    ------
    InputError
        If there is no such table, or it lacks a column.
    """
    if name not in tables:
        raise InputError(name, f"tables {', '.join(sorted(tables)) or '(none)'}", f"{name} too")
    absent = [column for column in columns if column not in tables[name].columns]
    if absent:
        raise InputError(
            name, f"columns {', '.join(tables[name].columns)}", f"{', '.join(absent)} too"
        )
    return tables[name]


def refuse_twice(frame: pl.DataFrame, name: str, column: str) -> None:
    """Refuse a null or an id of `column` that stands twice.

    Raises
    ------
    InputError
        If there is one: the first, with its row.
    """
    wrong = np.flatnonzero(
        (~frame[column].is_first_distinct() | frame[column].is_null()).to_numpy()
    )
    if wrong.size:
        at = int(wrong[0])
        raise InputError(
            name, f"{column} {frame[column][at]!r}", "every id once, and none missing", row=at + 1
        )


def refuse_unknown(frame: pl.DataFrame, name: str, column: str, known: pl.Series) -> None:
    """Refuse values of `column` that are not in `known`; a null is no value.

    Raises
    ------
    InputError
        If there is one: the first, with its row.
    """
    wrong = np.flatnonzero((~frame[column].is_in(known.implode())).fill_null(False).to_numpy())
    if wrong.size:
        at = int(wrong[0])
        raise InputError(
            name, f"{column} {frame[column][at]!r}, and {wrong.size - 1} more like it",
            f"one that another table has as {known.name}", row=at + 1,
        )  # fmt: skip


def splits(given: pl.Series, name: str) -> pl.Series:
    """The house's names of a collection's splits.

    Raises
    ------
    InputError
        If there is a split that `SPLITS` does not know.
    """
    unknown = sorted({str(one) for one in given.unique()} - SPLITS.keys())
    if unknown:
        raise InputError(name, f"split {unknown[0]!r}", f"one of {', '.join(SPLITS)}")
    return given.replace_strict(SPLITS, return_dtype=pl.String)


def columns_of(columns: Mapping[str, Any], wanted: pa.Schema) -> pa.Table:
    """A table of polars columns, Arrow arrays and lists; those of `wanted` get its types."""
    made: dict[str, Any] = {}
    for name, values in columns.items():
        kind = wanted.field(name).type if name in wanted.names else None
        if isinstance(values, pl.Series):
            values = values.to_arrow()
            made[name] = values if kind is None else values.cast(kind)
        elif isinstance(values, pa.Array):
            made[name] = values
        else:
            made[name] = pa.array(values, kind)
    return pa.table(made)


def evidence(keys: pl.Series, items: pl.DataFrame, name: str) -> pa.Array:
    """Items of evidence as one list a case.

    Parameters
    ----------
    keys : of the cases, each once, in their order.
    items : a row an item: `key`, and fields of `ragcore.schema.EVIDENCE`.
    name : of the table they came from, for messages.

    Raises
    ------
    InputError
        If an item is of no case.
    """
    refuse_unknown(items, name, "key", keys)
    places = pl.DataFrame({"key": keys, "place": np.arange(len(keys))})
    ordered = items.join(places, on="key", how="left").sort("place", maintain_order=True)
    counts = np.bincount(ordered["place"].to_numpy(), minlength=len(keys))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    fields = [
        ordered[each.name].to_arrow().cast(each.type) if each.name in ordered.columns
        else pa.nulls(ordered.height, each.type)
        for each in schema.EVIDENCE
    ]  # fmt: skip
    whole = pa.StructArray.from_arrays(fields, fields=list(schema.EVIDENCE))
    return pa.ListArray.from_arrays(arrow.numbers(offsets), whole)


def vectors(
    tables: Mapping[str, pl.DataFrame], name: str, column: str, ids: pl.Series
) -> dict[str, pa.Array]:
    """The column `vector` for `ids`, float32; nothing where the collection came without vectors.

    Parameters
    ----------
    name, column : the table of vectors, and its column of ids.

    Raises
    ------
    InputError
        If an id has no vector or two, or vectors differ in length.
    """
    if name not in tables:
        return {}
    given = table(tables, name, column, "vector")
    refuse_twice(given, name, column)
    kind = given["vector"].dtype
    if not isinstance(kind, pl.Array):
        raise InputError(name, f"vectors of type {kind}", "arrays of one length")
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


def counted(n: int, one: str, many: str = "") -> str:
    """A count with its noun: "1 question", "2 questions"; `many` where an s is not enough."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def read_text(path: Path) -> str:
    """What a file of text holds, in UTF-8.

    Raises
    ------
    InputError
        If there is no such file, or it is no UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(path, "nothing", "a file of the official distribution") from None
    except UnicodeDecodeError as error:
        raise InputError(path, str(error), "text in UTF-8") from None


def read_json(path: Path, member: str = "") -> Any:
    """What a JSON file holds, or a JSON member of a tar archive, by the end of its name.

    Raises
    ------
    InputError
        If there is no such file or member, or it is no JSON.
    """
    where = f"{path}:{member}" if member else str(path)
    try:
        return json.loads(_member(path, member) if member else path.read_bytes())
    except FileNotFoundError:
        raise InputError(where, "nothing", "a file of the official distribution") from None
    except (ValueError, tarfile.TarError, EOFError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(where, reason, "JSON of the official distribution") from None


def _member(path: Path, member: str) -> bytes:
    with tarfile.open(path) as archive:
        for one in archive:
            if one.isfile() and Path(one.name).name == member:
                stream = archive.extractfile(one)
                assert stream is not None
                return stream.read()
    raise FileNotFoundError(member)
