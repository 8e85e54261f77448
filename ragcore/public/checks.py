"""Tables of a collection, checked: every importer refuses the same things in the same words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from ragcore.errors import InputError

Tables = Mapping[str, pl.DataFrame]
"""Tables of a collection by name."""
SPLITS = {
    "train": "development", "trial": "development", "dev": "validation",
    "validation": "validation", "test": "test",
}  # fmt: skip
"""The names that collections give their splits, as `ragcore.schema.SPLITS` calls them."""
LEAST, MOST = -128, 127
"""Grades that the engine has room for."""


@dataclass(frozen=True)
class Kind:
    """What a column holds.

    Attributes
    ----------
    said : in messages.
    own : the type that texts, and columns without any value, are brought to.
    holds : whether a type is of this kind.
    """

    said: str
    own: pl.DataType
    holds: Callable[[Any], bool]


def _is_text(kind: Any) -> bool:
    return isinstance(kind, (pl.String, pl.Categorical, pl.Enum, pl.Null))


def _is_whole(kind: Any) -> bool:
    return kind.is_integer() or isinstance(kind, pl.Null)


TEXT = Kind("text", pl.String(), _is_text)
WHOLE = Kind("whole numbers", pl.Int64(), _is_whole)
NUMBER = Kind("numbers", pl.Float64(), lambda kind: kind.is_numeric() or kind == pl.Null)
FLAG = Kind("true and false", pl.Boolean(), lambda kind: kind in (pl.Boolean, pl.Null))
TEXTS = Kind(
    "lists of text", pl.List(pl.String()),
    lambda kind: isinstance(kind, pl.List) and _is_text(kind.inner),
)  # fmt: skip
WHOLES = Kind(
    "lists of whole numbers", pl.List(pl.Int64()),
    lambda kind: isinstance(kind, pl.List) and _is_whole(kind.inner),
)  # fmt: skip


def table(
    tables: Tables,
    name: str,
    *texts: str,
    key: str = "",
    maybe: Collection[str] = (),
    **others: Kind,
) -> pl.DataFrame:
    """Columns of the table `name`, in the order in which they are asked for.

    Parameters
    ----------
    texts : columns of text.
    key : the column in which a value may stand once only; "" for none.
    maybe : columns that may be empty in a row; any other may not.
    others : columns of other kinds.

    Raises
    ------
    InputError
        If there is no such table or column, a column is of another kind, a value is missing, or
        one of `key` stands twice. It names the table, the column and the first row.
    """
    if name not in tables:
        there = ", ".join(sorted(tables)) or "none"
        raise InputError(name, f"no such table; there are {there}", f"a table {name}")
    rows, kinds = tables[name], dict.fromkeys(texts, TEXT) | others
    for column, kind in kinds.items():
        if column not in rows.columns:
            raise InputError(
                name, f"columns {', '.join(rows.columns) or '(none)'}", f"a column {column}",
                "the table is of another version of the collection",
            )  # fmt: skip
        if not kind.holds(rows.schema[column]):
            found = f"column {column} of type {rows.schema[column]}"
            raise InputError(name, found, f"{kind.said} in it")
    made = rows.select(_brought(rows, column, kind) for column, kind in kinds.items())
    for column in made.columns:
        if column not in maybe:
            _refuse_empty(made, name, column)
    if key:
        refuse_twice(made, name, key)
    return made


def _brought(rows: pl.DataFrame, column: str, kind: Kind) -> pl.Expr:
    """A column, in the kind's own type if it is text or holds nothing."""
    own = rows.schema[column]
    inner = own.inner if isinstance(own, pl.List) else own
    loose = isinstance(inner, (pl.Null, pl.Categorical, pl.Enum))
    return pl.col(column).cast(kind.own) if loose else pl.col(column)


def _refuse_empty(rows: pl.DataFrame, name: str, column: str) -> None:
    """Refuse a row without a value, or with a list that lacks one."""
    values = rows[column]
    empty = values.is_null()
    if isinstance(values.dtype, pl.List):
        empty |= values.list.len() > values.list.drop_nulls().list.len()
    if empty.any():
        wanted = f"a {column} in every row"
        raise InputError(name, f"no {column}{_more(empty)}", wanted, row=_first(empty))


def refuse_twice(rows: pl.DataFrame, name: str, column: str) -> None:
    """Refuse a value of `column` that stands twice.

    Raises
    ------
    InputError
        If there is one: the first, with its row.
    """
    again = ~rows[column].is_first_distinct()
    if again.any():
        at = _first(again)
        found = f"{column} {rows[column][at - 1]!r} again{_more(again)}"
        raise InputError(name, found, f"each {column} once", row=at)


def refuse_unknown(
    rows: pl.DataFrame, name: str, column: str, known: pl.Series, of: str = ""
) -> None:
    """Refuse values of `column`, of texts or lists of them, that are not in `known`.

    Parameters
    ----------
    known : what there is, by the name that its own table `of` has for it; without `of` a choice,
        which is named in the message.

    Raises
    ------
    InputError
        If there is one: the first, with its row. A missing value is none.
    """
    given = rows.select(column).with_row_index("row", 1)
    if isinstance(rows.schema[column], pl.List):
        given = given.explode(column)
    lost = given.filter(~pl.col(column).is_in(known.implode()))
    if lost.height:
        found = f"unknown {column} {lost[column][0]!r}{_more(lost[column].is_not_null())}"
        wanted = f"a {known.name} of {of}" if of else f"one of {', '.join(known)}"
        raise InputError(name, found, wanted, row=lost["row"][0])


def refuse_grades(rows: pl.DataFrame, name: str, column: str = "relevance") -> None:
    """Refuse a grade that the engine has no room for.

    Raises
    ------
    InputError
        If there is one: the first, with its row.
    """
    wrong = ~rows[column].is_between(LEAST, MOST)
    if wrong.any():
        at = _first(wrong)
        found = f"{column} {rows[column][at - 1]}{_more(wrong)}"
        raise InputError(name, found, f"a grade from {LEAST} to {MOST}", row=at)


def splits(rows: pl.DataFrame, name: str, column: str = "split") -> pl.Series:
    """The house's names of a collection's splits.

    Raises
    ------
    InputError
        If there is a split that `SPLITS` does not know.
    """
    refuse_unknown(rows, name, column, pl.Series(column, list(SPLITS)))
    return rows[column].replace_strict(SPLITS, return_dtype=pl.String)


def _first(wrong: pl.Series) -> int:
    """The first row that is wrong, counted from 1."""
    return int(wrong.arg_true()[0]) + 1


def _more(wrong: pl.Series) -> str:
    """How many more there are than the one that is named."""
    n = int(wrong.sum()) - 1
    return f", and {n:,} more like it" if n else ""
