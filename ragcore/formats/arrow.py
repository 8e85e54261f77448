"""Arrow IPC (file and stream), Feather, Parquet and in-memory tables, whatever their layouts.

Only what the kernels need is normalised, and only where it must be: a string column of any
layout is read in place; integers and decimals are cast once, at this border.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError

ARROW_FILE, ARROW_STREAM, PARQUET = b"ARROW1\0\0", b"\xff\xff\xff\xff", b"PAR1\x15"


def is_arrow(head: bytes) -> bool:
    """Whether a file that begins with `head` is for this module."""
    return head.startswith((ARROW_FILE, ARROW_STREAM, PARQUET))


def read_table(path: Path, head: bytes, columns: tuple[str, ...] | None = None) -> pa.Table:
    """The table in a file, without a copy where the format allows that.

    Raises
    ------
    InputError
        If the file is cut short or broken.
    """
    try:
        if head.startswith(PARQUET):
            import pyarrow.parquet as pq  # 50 ms that only Parquet pays

            file = pq.ParquetFile(path, memory_map=True)
            names = [n for n in file.schema_arrow.names if columns is None or n in columns]
            return file.read(columns=names)
        source = pa.memory_map(str(path))
        opened = pa.ipc.open_file if head.startswith(ARROW_FILE) else pa.ipc.open_stream
        table = opened(source).read_all()
        table.validate()  # lengths of buffers; what they hold is checked where it is read
        return table
    except (pa.ArrowInvalid, pa.ArrowException, OSError, EOFError) as error:
        kind = "Parquet" if head.startswith(PARQUET) else "Arrow IPC"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            path,
            f"not {'a' if kind == 'Parquet' else 'an'} {kind} file: {reason}",
            "a whole file",
            "it may be cut short; write it again",
        ) from None


def read_checked(path: Path, wanted: str, hint: str) -> pa.Table:
    """The table in a file that is read as Python objects: every buffer checked.

    Parameters
    ----------
    wanted, hint : what the file should be, and which columns it has, for messages.

    Raises
    ------
    InputError
        If it cannot be read, is of another format, or is damaged.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(path, reason, "a readable file", "check the path") from None
    if not is_arrow(head):
        raise InputError(path, f"begins with {head!r}", wanted, hint)
    table = read_table(path, head)
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError(path, f"damaged: {error}", "a whole file", "write it again") from None
    return table


def from_stream(data: Any) -> pa.Table:
    """A table from anything that speaks the Arrow C stream or C data interface."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    return pa.RecordBatchReader.from_stream(data).read_all()


def numbers(values: np.ndarray[Any, Any]) -> pa.Array:
    """A NumPy array as an Arrow array over the same memory.

    `pyarrow.array` imports pandas where that is installed, which takes longer than a score.
    """
    kept = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(kept.dtype)
    return pa.Array.from_buffers(kind, kept.size, [None, pa.py_buffer(kept)])


def texts(values: list[str]) -> pa.Array:
    """Strings as an Arrow array; binary where one is not Unicode (lone surrogates)."""
    try:
        parts, kind = [v.encode() for v in values], pa.string()
    except UnicodeEncodeError:
        parts, kind = [v.encode("utf-8", "surrogatepass") for v in values], pa.binary()
    offsets = np.zeros(len(parts) + 1, np.int32)
    np.cumsum([len(p) for p in parts], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(parts), buffers)


def find(table: pa.Table, names: tuple[str, ...]) -> str | None:
    """The first of `names` that is a column of `table`."""
    present = table.column_names
    found = next((name for name in names if name in present), None)
    if found is not None and present.count(found) > 1:
        raise InputError("table", f"column {found!r} twice", "each column once", "drop one of them")
    return found


def first_null(column: pa.ChunkedArray) -> int:
    """Row, from 1, of the first null."""
    row = 0
    for chunk in column.chunks:
        if chunk.null_count:
            flags = chunk.is_null().to_pylist()
            return row + flags.index(True) + 1
        row += len(chunk)
    raise ValueError("the column has no null")


def refuse_nulls(where: str, table: pa.Table, names: list[str]) -> None:
    """Refuse a table with nulls in columns that may hold none.

    Raises
    ------
    InputError
        Naming the first such row, and every such column with its first row.
    """
    holes = [(first_null(table[n]), n) for n in names if table[n].null_count]
    if holes:
        row, _ = min(holes)
        found = ", ".join(f"null {name} (row {at})" for at, name in sorted(holes))
        raise InputError(where, found, "a value in every row", "drop or fill these rows", row=row)


def as_ids(where: str, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """`column` as strings, binary or a dictionary of these; integers as plain decimals.

    Raises
    ------
    InputError
        If it holds a null, or a type that is no id.
    """
    kind = column.type
    if pa.types.is_dictionary(kind) and column.null_count == 0:
        empty = any(chunk.dictionary.null_count for chunk in column.chunks)
        if empty or not _is_text(kind.value_type):
            column = column.cast(kind.value_type)
            kind = kind.value_type
    if column.null_count:
        raise InputError(
            where, f"null {name}", "an id in every row", "drop or fill these rows",
            row=first_null(column),
        )  # fmt: skip
    if _is_text(kind) or pa.types.is_dictionary(kind):
        return column
    if pa.types.is_integer(kind):
        return column.cast(pa.string())
    if pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    raise InputError(
        where, f"column {name!r} of type {kind}", "ids as strings or integers",
        "cast it to string where it is written",
    )  # fmt: skip


def _is_text(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def as_scores(where: str, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """`column` as float32 or float64; whatever else is a number, widened to float64.

    Raises
    ------
    InputError
        If it holds a null or is no number.
    """
    kind = column.type
    if column.null_count:
        raise InputError(
            where, f"null {name}", "a score in every row", "drop or fill these rows",
            row=first_null(column),
        )  # fmt: skip
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return column
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64(), safe=False)
    raise InputError(
        where, f"column {name!r} of type {kind}", "scores as numbers",
        "cast it to float64 where it is written",
    )  # fmt: skip


def as_grades(
    where: str, name: str, column: pa.ChunkedArray, float_grades: bool = False
) -> pa.ChunkedArray:
    """`column` as int32 grades.

    Raises
    ------
    InputError
        If it holds a null, a fraction, a number beyond int32, or (unless `float_grades`) is
        not of an integer type.
    """
    kind = column.type
    if column.null_count:
        raise InputError(
            where, f"null {name}", "a grade in every row", "drop or fill these rows",
            row=first_null(column),
        )  # fmt: skip
    if pa.types.is_int32(kind):
        return column
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.int32())
    if pa.types.is_floating(kind):
        row = 1
        for chunk in column.chunks:
            for value in chunk.to_pylist():
                fits = -(2**31) <= value < 2**31  # and so it is neither NaN nor infinite
                if not float_grades or not fits or value != int(value):
                    hint = "--float-grades takes floats that are whole numbers"
                    raise InputError(
                        where, f"grade {value!r} is not an integer", "integer grades", hint,
                        row=row,
                    )  # fmt: skip
                row += 1
        return column.cast(pa.int32())
    if pa.types.is_integer(kind):
        try:
            return column.cast(pa.int32())
        except pa.ArrowInvalid as error:
            raise InputError(where, f"column {name!r}: {error}", "grades that fit int32") from None
    raise InputError(where, f"column {name!r} of type {kind}", "integer grades")


def systems(table: pa.Table) -> list[tuple[str, pa.Table]]:
    """The runs of a flat table that holds several, by its `system` column; else the table."""
    name = find(table, schema.SYSTEM_NAMES)
    if name is None or table.num_rows == 0:
        return [("", table)]
    import pyarrow.compute as pc  # 30 ms that only such tables pay

    refuse_nulls("table", table, [name])
    for i, field in enumerate(table.schema):  # Arrow can filter nothing by views
        if field.type in (pa.string_view(), pa.binary_view()):
            plain = pa.large_string() if field.type == pa.string_view() else pa.large_binary()
            table = table.set_column(i, field.name, table[i].cast(plain))
    column = table[name]
    if pa.types.is_dictionary(column.type):  # whose values may repeat
        column = column.cast(column.type.value_type)
    names = column.unique().to_pylist()
    if len(names) == 1:
        return [(str(names[0]), table)]
    return [(str(n), table.filter(pc.field(name) == pa.scalar(n, column.type))) for n in names]
