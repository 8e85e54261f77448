"""Arrow IPC (file and stream), Feather, Parquet and in-memory tables, whatever their layouts.

Only what the kernels need is normalised, and only where it must be: a string column of any
layout is read in place; integers and decimals are cast once, at this border.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError

ARROW_FILE, ARROW_STREAM, PARQUET = b"ARROW1", b"\xff\xff\xff\xff", b"PAR1"


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
        if head.startswith(ARROW_FILE):
            return pa.ipc.open_file(source).read_all()
        return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowInvalid, pa.ArrowException, OSError, EOFError) as error:
        kind = "Parquet" if head.startswith(PARQUET) else "Arrow IPC"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            path,
            f"not {'a' if kind == 'Parquet' else 'an'} {kind} file: {reason}",
            "a whole file",
            "it may be cut short; write it again",
        ) from None


def from_stream(data: Any) -> pa.Table:
    """A table from anything that speaks the Arrow C stream or C data interface."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    return pa.RecordBatchReader.from_stream(data).read_all()


def find(table: pa.Table, names: tuple[str, ...]) -> str | None:
    """The first of `names` that is a column of `table`."""
    present = set(table.column_names)
    return next((name for name in names if name in present), None)


def first_null(column: pa.ChunkedArray) -> int:
    """Row, from 1, of the first null."""
    row = 0
    for chunk in column.chunks:
        if chunk.null_count:
            flags = chunk.is_null().to_pylist()
            return row + flags.index(True) + 1
        row += len(chunk)
    raise ValueError("the column has no null")


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
                if not float_grades or value != value or value != int(value):
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

    column = table[name]
    names = pc.unique(column).to_pylist()
    if len(names) == 1:
        return [(str(names[0]), table)]
    return [(str(n), table.filter(pc.equal(column, pa.scalar(n, column.type)))) for n in names]
