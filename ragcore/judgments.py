"""Verdicts as they are kept: files of judgments read and checked, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError, UsageError
from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore.lists import Lists, coded, flags, integers, joined, lists_of

_NEEDED = ("case_id", "relation", "verdict", "judge", "rung")


@dataclass
class Judgments:
    """Verdicts of every judge, in the order of the files; nothing is resolved.

    Attributes
    ----------
    where : the file of each stretch of rows, with its first row.
    table : the columns of `schema.JUDGMENTS` that the files have.
    relation, verdict, rung : (n,) int8, places in `schema.RELATIONS`, `VERDICTS` and `RUNGS`.
    claim, repeat : (n,) int16, -1 where null.
    case, judge, run, lang : (n,) int32, codes in `names`, -1 where null (run, lang).
    adjudicated : (n,).
    evidence : the chunk ids that each verdict was given.
    names : what the codes of `case`, `judge`, `run` and `lang` stand for.
    """

    where: list[tuple[int, str]]
    table: pa.Table
    relation: Any
    verdict: Any
    rung: Any
    claim: Any
    repeat: Any
    case: Any
    judge: Any
    run: Any
    lang: Any
    adjudicated: Any
    evidence: Lists
    names: dict[str, pa.Array]

    def __len__(self) -> int:
        """How many verdicts."""
        return self.relation.size

    def place(self, row: int) -> tuple[str, int]:
        """File and row, from 1, of a verdict."""
        start, where = next(part for part in reversed(self.where) if part[0] <= row)
        return where, row - start + 1


def read_judgments(sources: Any) -> Judgments:
    """Verdicts from files, Arrow tables, or a list of these.

    Raises
    ------
    InputError
        If a column is absent, holds a null that it must not, or a word that the schema has not;
        the message names file and row.
    """
    single = isinstance(sources, (str, PathLike, pa.Table)) or hasattr(
        sources, "__arrow_c_stream__"
    )
    parts, where, start = [], [], 0
    for i, source in enumerate([sources] if single else list(sources)):
        name, table = _opened(source, i)
        parts.append(_checked(name, table))
        where.append((start, name))
        start += table.num_rows
    if not parts:
        raise UsageError("no file of judgments given")
    return _columns(where, pa.concat_tables(parts, promote_options="default"))


def _opened(source: Any, index: int) -> tuple[str, pa.Table]:
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        wanted = "judgments in an Arrow or Parquet file"
        return str(path), arrow.read_checked(path, wanted, f"columns {', '.join(_NEEDED)}, ...")
    if isinstance(source, pa.Table) or hasattr(source, "__arrow_c_stream__"):
        return f"judgments {index + 1}", arrow.from_stream(source)
    raise UsageError(f"cannot read judgments from {type(source).__name__}", "a path or a table")


def _checked(where: str, table: pa.Table) -> pa.Table:
    """The known columns of a file, in the schema's types."""
    absent = [name for name in _NEEDED if name not in table.column_names]
    if absent:
        raise InputError(
            where, f"no column {', '.join(absent)}", f"columns {', '.join(_NEEDED)}",
            "a verdict says of what, which, by whom and on which rung",
        )  # fmt: skip
    arrow.refuse_nulls(where, table, list(_NEEDED))
    columns, names = [], []
    for field in schema.JUDGMENTS:
        if field.name not in table.column_names:
            continue
        try:
            columns.append(_as(table[field.name], field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(where, f"column {field.name!r}: {reason}", f"{field.type}") from None
        names.append(field.name)
    found = pa.table(columns, names)
    for name, known in (
        ("relation", schema.RELATIONS), ("verdict", schema.VERDICTS), ("rung", schema.RUNGS),
    ):  # fmt: skip
        codes = coded(joined(found[name]), len(found), known)
        if (codes < 0).any():
            row = int(np.flatnonzero(codes < 0)[0])
            raise InputError(
                where, f"{name} {found[name][row].as_py()!r}", f"one of {', '.join(known)}",
                row=row + 1,
            )  # fmt: skip
    return found


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column in the schema's type; texts stay dictionaries only where they came as such."""
    if pa.types.is_dictionary(kind):
        kind = pa.string()
        if pa.types.is_dictionary(column.type):
            return column.cast(pa.dictionary(pa.int32(), pa.string()))
    if pa.types.is_integer(column.type) and pa.types.is_string(kind):
        return column.cast(kind)
    return column.cast(kind)


def _columns(where: list[tuple[int, str]], table: pa.Table) -> Judgments:
    n = table.num_rows
    names: dict[str, pa.Array] = {}

    def words(name: str) -> Any:
        if name not in table.column_names:
            names[name] = pa.array([], pa.string())
            return np.full(n, -1, np.int32)
        whole = (
            table[name].unify_dictionaries().combine_chunks() if n else table[name].combine_chunks()
        )
        if isinstance(whole, pa.ChunkedArray):
            whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, pa.string())
        if not pa.types.is_dictionary(whole.type):
            whole = pc.dictionary_encode(whole)
        names[name] = whole.dictionary
        return integers(whole.indices, n).astype(np.int32)

    def known(name: str, options: tuple[str, ...]) -> Any:
        found = words(name)
        place = np.array(
            [options.index(word) for word in names.pop(name).to_pylist()] or [0], np.int8
        )
        return place[found]

    def short(name: str) -> Any:
        return integers(whole(name), n).astype(np.int16)

    def whole(name: str) -> pa.Array | None:
        return joined(table[name]) if name in table.column_names else None

    evidence = (
        lists_of(table["evidence"])
        if "evidence" in table.column_names
        else Lists(np.zeros(n + 1, np.int64), np.zeros(n, np.bool_), pa.nulls(0, pa.string()))
    )
    relation = known("relation", schema.RELATIONS)
    verdict, rung = known("verdict", schema.VERDICTS), known("rung", schema.RUNGS)
    case, judge, run, lang = words("case_id"), words("judge"), words("run"), words("lang")
    return Judgments(
        where, table, relation, verdict, rung, short("claim"), short("repeat"), case, judge, run,
        lang, flags(whole("adjudicated"), n), evidence,
        {"case": names["case_id"], **{k: names[k] for k in ("judge", "run", "lang")}},
    )  # fmt: skip


def as_sources(given: Any) -> Sequence[Any]:
    """What was given as judgments, as a list; empty for None."""
    if given is None:
        return ()
    single = isinstance(given, (str, PathLike, pa.Table)) or hasattr(given, "__arrow_c_stream__")
    return [given] if single else list(given)
