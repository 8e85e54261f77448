"""What importers share: tables looked up and checked, columns brought to the engine's own types."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError

Tables = Mapping[str, pl.DataFrame]
"""Tables of a collection by name."""
Values = pl.Series | pa.Array | Sequence[Any]
"""A column, however an importer came to it."""

LISTED = 5  # ids named in a message


def taken(tables: Tables, name: str, *columns: str) -> pl.DataFrame:
    """Some columns of the table `name`.

    Raises
    ------
    InputError
        If there is no such table, or a column is missing.
    """
    if name not in tables:
        there = ", ".join(sorted(tables)) or "none"
        raise InputError(name, f"no such table; there are {there}", f"a table {name}")
    table = tables[name]
    lacking = [column for column in columns if column not in table.columns]
    if lacking:
        raise InputError(
            name, f"columns {', '.join(table.columns) or '(none)'}",
            f"a column {lacking[0]}", "the table is of another version of the collection",
        )  # fmt: skip
    return table.select(columns)


def refuse_unknown(where: str, ids: pl.Series, known: pl.Series, what: str) -> None:
    """Refuse ids of `where` that are not among `known`.

    Raises
    ------
    InputError
        Naming the first few.
    """
    there = set(known.to_list())
    lost = [one for one in dict.fromkeys(ids.to_list()) if one not in there]
    if lost:
        named = ", ".join(repr(one) for one in lost[:LISTED])
        more = f" and {len(lost) - LISTED} more" if len(lost) > LISTED else ""
        raise InputError(where, f"unknown {what} {named}{more}", f"each a {what} of the collection")


def refuse_twice(where: str, ids: pl.Series, what: str) -> None:
    """Refuse an id that stands twice.

    Raises
    ------
    InputError
        Naming the first.
    """
    twice = ids.filter(ids.is_duplicated())
    if len(twice):
        raise InputError(where, f"{what} {twice[0]!r} twice", f"each {what} once")


def arrow_of(values: Values, kind: pa.DataType | None = None) -> pa.Array:
    """A column as an Arrow array of the type `kind`; None = its own, strings as a dictionary."""
    made: Any = values
    if isinstance(values, pl.Series):
        made = values.to_arrow(compat_level=pl.CompatLevel.oldest())
    elif not isinstance(values, pa.Array):
        return pa.array(values, kind)
    if kind is None:
        kind = schema.DICT if pa.types.is_large_string(made.type) else made.type
    if made.type == kind:
        return made
    if kind == schema.DICT:
        return made.cast(pa.string()).dictionary_encode()
    return made.cast(kind)


def typed(columns: Mapping[str, Values], of: pa.Schema) -> pa.Table:
    """Columns as a table: those that the schema `of` has in its types, the others as they are."""
    arrays, fields = [], []
    for name, values in columns.items():
        known = of.get_field_index(name) >= 0
        made = arrow_of(values, of.field(name).type if known else None)
        arrays.append(made)
        fields.append(of.field(name) if known else pa.field(name, made.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def in_order(rows: pl.DataFrame, column: str, names: Sequence[str]) -> pl.DataFrame:
    """The rows whose `column` is among `names`, in the order of these; stable."""
    place = {name: at for at, name in enumerate(names)}
    at = [place.get(name, -1) for name in rows[column].to_list()]
    held = rows.with_columns(pl.Series("__at", at, pl.Int64)).filter(pl.col("__at") >= 0)
    return held.sort("__at", maintain_order=True).drop("__at")


def evidence_of(cases: Sequence[str], rows: pl.DataFrame, absent: Iterable[str] = ()) -> pa.Array:
    """Lists of evidence, one a case.

    Parameters
    ----------
    cases : ids of the cases in order.
    rows : `case_id` and fields of `schema.EVIDENCE`; those that are not there are null. Rows of a
        case stay in their order.
    absent : cases whose evidence is not known: null, if they have no rows. Any other case without
        rows has none: an empty list.
    """
    held = in_order(rows, "case_id", cases)
    counts = Counter(held["case_id"].to_list())
    unknown, offsets, end = set(absent) - counts.keys(), [], 0
    for case in cases:  # a null offset makes a null list
        offsets.append(None if case in unknown else end)
        end += counts[case]
    fields = [
        arrow_of(held[field.name], field.type) if field.name in held.columns
        else pa.nulls(len(held), field.type)
        for field in schema.EVIDENCE
    ]  # fmt: skip
    items = pa.StructArray.from_arrays(fields, fields=list(schema.EVIDENCE))
    return pa.ListArray.from_arrays(pa.array([*offsets, end], pa.int32()), items)


def flat_run(rows: pl.DataFrame, case: str = "query_id", document: str = "doc_id") -> pa.Table:
    """A ranking in its flat form: `case_id`, `id` and `score`, rows as they come."""
    return pa.table(
        {
            "case_id": arrow_of(rows[case], pa.string()),
            "id": arrow_of(rows[document], pa.string()),
            "score": arrow_of(rows["score"], pa.float64()),
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


def held_file(folder: Path, name: str) -> Path:
    """A file of the official distribution.

    Raises
    ------
    InputError
        If it is not there.
    """
    path = folder / name
    if not path.is_file():
        raise InputError(path, "no such file", f"{name} of the official distribution")
    return path


def json_lines(text: str, where: str | Path) -> list[Any]:
    """The values of a text with one JSON value a line; blank lines are none.

    Raises
    ------
    InputError
        Naming the first line that is no JSON.
    """
    out = []
    for number, line in enumerate(text.split("\n"), 1):  # a text may hold other line breaks
        if line.strip():
            try:
                out.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise InputError(
                    where, f"no JSON: {error}", "a value a line", line=number
                ) from None
    return out


def many(count: int, one: str, more: str = "") -> str:
    """A count with its noun: `1 claim`, `2 claims`, `1,024 claims`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
