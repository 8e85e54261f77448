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
from ragcore.lists import Lists, flags, integers, joined, lists_of
from ragcore.packed import COLUMN, checked, is_packed, verdict_codes
from ragcore_kernels.layout import frozen

_NEEDED = ("case_id", "relation", "verdict", "judge", "rung")
_PACKED = ("case_id", "relation", COLUMN, "judge", "rung")


_KINDS = {
    **dict.fromkeys(("relation", "verdict", "rung"), np.int8),
    **dict.fromkeys(("claim", "repeat"), np.int16),
    **dict.fromkeys(("case", "judge", "run", "lang"), np.int32),
}


@dataclass
class Judgments:
    """Verdicts of every judge, in the order of the files; nothing is resolved.

    Attributes
    ----------
    where : the file of each stretch of rows, with its first row; files of packed rows last, with a
        first row that no row has.
    table : the columns of `schema.JUDGMENTS` that the files have.
    relation, verdict, rung : (n,) int8, places in `schema.RELATIONS`, `VERDICTS` and `RUNGS`.
    claim, repeat : (n,) int16, -1 where null.
    case, judge, run, lang : (n,) int32, codes in `names`, -1 where null (run, lang).
    adjudicated : (n,).
    evidence : the chunk ids that each verdict was given.
    names : what the codes of `case`, `judge`, `run` and `lang` stand for.
    offsets, values : of packed rows (see `ragcore.packed`) the verdicts of each, (n + 1,) and flat
        int8, -1 for none; then `verdict` and `claim` say nothing.
    packed : the packed rows of the same files; None without any.
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
    offsets: Any = None
    values: Any = None
    packed: Judgments | None = None

    def __post_init__(self) -> None:
        # One kind of array for the kernels, wherever it comes from: Arrow's memory is read-only.
        for name, kind in _KINDS.items():
            setattr(self, name, frozen(getattr(self, name), kind))

    def __len__(self) -> int:
        """How many rows: verdicts, or lists of them where they are packed."""
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
    parts: dict[bool, list[Any]] = {False: [], True: []}
    where: dict[bool, list[tuple[int, str]]] = {False: [], True: []}
    start = {False: 0, True: 0}
    for i, source in enumerate([sources] if single else list(sources)):
        name, table = _opened(source, i)
        kind = is_packed(table)
        parts[kind].append(_checked(name, table, kind))
        where[kind].append((start[kind], name))
        start[kind] += table.num_rows
    if not parts[False] and not parts[True]:
        raise UsageError("no file of judgments given")
    plain = parts[False] or [_NOTHING]
    out = _columns(where[False], pa.concat_tables(plain, promote_options="default"))
    if parts[True]:
        keys = [table.drop_columns([COLUMN]) for table in parts[True]]
        out.packed = _columns(where[True], pa.concat_tables(keys, promote_options="default"))
        out.packed.offsets, out.packed.values = verdict_codes(
            [(name, t) for (_, name), t in zip(where[True], parts[True], strict=True)]
        )
        out.where = [*where[False], *((_BEYOND, name) for _, name in where[True])]
    return out


_BEYOND = 1 << 62
_NOTHING = pa.table({name: pa.array([], pa.string()) for name in _NEEDED})


def _opened(source: Any, index: int) -> tuple[str, pa.Table]:
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        wanted = "judgments in an Arrow or Parquet file"
        return str(path), arrow.read_checked(path, wanted, f"columns {', '.join(_NEEDED)}, ...")
    if isinstance(source, pa.Table) or hasattr(source, "__arrow_c_stream__"):
        return f"judgments {index + 1}", arrow.from_stream(source)
    raise UsageError(f"cannot read judgments from {type(source).__name__}", "a path or a table")


def _checked(where: str, table: pa.Table, packed: bool) -> pa.Table:
    """The known columns of a file, in the schema's types."""
    needed = _PACKED if packed else _NEEDED
    absent = [name for name in needed if name not in table.column_names]
    if absent:
        raise InputError(
            where, f"no column {', '.join(absent)}", f"columns {', '.join(needed)}",
            "a verdict says of what, which, by whom and on which rung",
        )  # fmt: skip
    arrow.refuse_nulls(where, table, list(needed))
    columns, names = [], []
    for field in schema.JUDGMENTS:
        if field.name not in table.column_names or (packed and field.name == "verdict"):
            continue
        try:
            columns.append(_as(table[field.name], field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(where, f"column {field.name!r}: {reason}", f"{field.type}") from None
        names.append(field.name)
    found = pa.table(columns, names)
    _from_zero(where, found)
    for name, known in (
        ("relation", schema.RELATIONS), ("verdict", schema.VERDICTS), ("rung", schema.RUNGS),
    ):  # fmt: skip
        if name not in found.column_names:
            continue
        column = _encoded(found[name])
        found = found.set_column(names.index(name), name, pa.chunked_array([column]))
        bad = [i for i, word in enumerate(column.dictionary.to_pylist()) if word not in known]
        wrong = np.flatnonzero(np.isin(integers(column.indices, len(column)), bad)) if bad else None
        if wrong is not None and wrong.size:
            row = int(wrong[0])
            raise InputError(
                where, f"{name} {column[row].as_py()!r}", f"one of {', '.join(known)}", row=row + 1
            )
    return checked(where, found, table) if packed else found


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A text column as one dictionary array."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(whole, pa.ChunkedArray):
        chunks = whole.chunks
        whole = pa.concat_arrays(chunks) if chunks else pa.nulls(0, pa.string())
    return whole if pa.types.is_dictionary(whole.type) else pc.dictionary_encode(whole)


def _from_zero(where: str, table: pa.Table) -> None:
    """Refuse numbers below 0: only null says that a verdict is of the whole answer."""
    for name in ("claim", "repeat"):
        if name not in table.column_names or not len(table):
            continue
        least = pc.min(table[name]).as_py()
        if least is not None and least < 0:
            numbers = integers(joined(table[name]), len(table), 0)
            row = int(np.flatnonzero(numbers < 0)[0])
            raise InputError(
                where, f"{name} {numbers[row]}", f"a {name} from 0, or null",
                "null speaks of the answer as a whole, or of all repeats", row=row + 1,
            )  # fmt: skip


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
        whole = _encoded(table[name])
        names[name] = whole.dictionary
        if whole.indices.null_count or whole.indices.type != pa.int32():
            return integers(whole.indices, n)
        return np.asarray(whole.indices)

    def known(name: str, options: tuple[str, ...]) -> Any:
        found = words(name)
        own = names.pop(name).to_pylist()
        place = np.array(
            [options.index(word) if word in options else -1 for word in own] or [0], np.int8
        )  # a dictionary may hold words that no row has
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
    rung = known("rung", schema.RUNGS)
    told = "verdict" in table.column_names
    verdict = known("verdict", schema.VERDICTS) if told else np.full(n, -1, np.int8)
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
