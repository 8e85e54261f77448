"""A path, a table or a mapping -> `columns.Rows`: the one place that looks at what came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import columns, nested
from ragcore.columns import Rows
from ragcore.errors import InputError, UsageError
from ragcore.formats import arrow
from ragcore.scattered import together
from ragcore.strings import Strings
from ragcore.suites import manifest_of
from ragcore_kernels.ranking import BY_SCORE
from ragcore_kernels.rows import SCORE_F64

_ENDINGS = frozenset(
    ("arrow", "arrows", "feather", "ipc", "parquet", "parq", "pq", "gz", "gzip", "zst", "zstd",
     "lz4", "trec", "run", "txt", "res", "tsv")
)  # fmt: skip
"""What a run's file may end in without its being part of the run's name."""


@dataclass
class Loaded:
    """A run, read: its rows, its manifest and where it came from (None = memory)."""

    rows: Rows
    manifest: dict[str, Any]
    path: Path | None


def load_runs(source: Any, threads: int, name: str = "", index: int = 0) -> list[Loaded]:
    """The runs in one source: a file, a table, or ``{case: {id: score}}``.

    A flat table with a `system` column holds one run a system.

    Raises
    ------
    InputError, UsageError
        If it cannot be read as a run.
    """
    if isinstance(source, Mapping):
        table, empty = _from_mapping(source, "run")
        given = name or f"run{index + 1}"
        rows = columns.flat_rows(table, f"run {index + 1}", given, threads=threads)
        return [Loaded(_with_empty(together(rows), empty), {}, None)]
    path, table, text = _open(source, threads, "run", False)
    where = str(path) if path else f"run {index + 1}"
    given = name or (_stem(path) if path else "")
    if text is not None:
        return [Loaded(together(_text_rows(text, where, given or text.tag)), {}, path)]
    assert table is not None
    manifest = manifest_of(table)
    given = given or str(manifest.get("run") or "")
    if nested.is_nested(table):
        rows = nested.nested_rows(table, where, given or f"run{index + 1}")
        return [Loaded(rows, manifest, path)]
    parts = arrow.systems(table)
    out = []
    for system, part in parts:
        label = (given if len(parts) == 1 else "") or system or f"run{index + 1}"
        rows = columns.flat_rows(part, where, label, threads=threads)
        out.append(Loaded(together(rows), manifest, path))
    return out


def _stem(path: Path) -> str:
    """The name of a file without its known endings; bytes that are not UTF-8 escaped."""
    name = path.name.lstrip(".")
    while (cut := name.rfind(".")) > 0 and name[cut + 1 :].lower() in _ENDINGS:
        name = name[:cut]
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def load_judgements(source: Any, threads: int, float_grades: bool = False) -> Rows:
    """Judgements from a qrels file, a table, or ``{case: {id: grade}}``.

    Raises
    ------
    InputError, UsageError
        If they cannot be read.
    """
    if isinstance(source, Mapping):
        table, empty = _from_mapping(source, "qrels")
        rows = columns.flat_rows(
            table, "qrels", "qrels", grades=True, float_grades=float_grades, threads=threads
        )
        return _with_empty(rows, empty)
    path, table, text = _open(source, threads, "qrels", float_grades)
    where = str(path) if path else "qrels"
    if text is not None:
        return _text_rows(text, where, "qrels")
    assert table is not None
    return columns.flat_rows(
        table, where, "qrels", grades=True, float_grades=float_grades, threads=threads
    )


def _open(
    source: Any, threads: int, kind: str, float_grades: bool
) -> tuple[Path | None, pa.Table | None, Any]:
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        try:
            head = b""  # what can be read once only, a pipe, is text: its reader looks for itself
            if not path.is_fifo() and not path.is_char_device():
                with path.open("rb") as stream:
                    head = stream.read(8)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(path, reason, "a readable file", "check the path") from None
        if arrow.is_arrow(head):
            return path, arrow.read_table(path, head), None
        if not head and path.suffix in (".arrow", ".feather", ".parquet", ".ipc"):
            raise InputError(
                path, "not an Arrow IPC file: it is empty", "a whole file", "write it again"
            )
        from ragcore.formats import trec

        if kind == "run":
            return path, None, trec.read_run(path, threads=threads)
        return path, None, trec.read_qrels(path, threads=threads, float_grades=float_grades)
    if isinstance(source, (pa.Table, pa.RecordBatch)) or hasattr(source, "__arrow_c_stream__"):
        return None, arrow.from_stream(source), None
    raise UsageError(
        f"cannot read a {kind} from {type(source).__name__}",
        "give a path, an Arrow table or stream, or a mapping {case: {id: number}}",
    )


def _from_mapping(source: Mapping[Any, Any], kind: str) -> tuple[pa.Table, list[str]]:
    """``{case: {id: number}}`` or ``{case: [(id, number), ...]}`` as a flat table.

    Also the cases that hold nothing: a row-wise table cannot tell of them.
    """
    cases: list[str] = []
    ids: list[str] = []
    values: list[Any] = []
    empty: list[str] = []
    for case, inner in source.items():
        pairs = inner.items() if isinstance(inner, Mapping) else inner
        before = len(cases)
        try:
            for key, value in pairs:
                cases.append(_as_id(case))
                ids.append(_as_id(key))
                values.append(value.item() if hasattr(value, "item") else value)
        except (TypeError, ValueError):
            raise InputError(
                kind, f"case {case!r} holds {inner!r:.60}", "{id: number} or pairs (id, number)"
            ) from None
        if len(cases) == before:
            empty.append(_as_id(case))
    name = "score" if kind == "run" else "relevance"
    odd = [value for value in values if not isinstance(value, (int, float))]
    if odd:
        raise InputError(kind, f"{name} {odd[0]!r}", "one number for each document")
    whole = kind != "run" and all(isinstance(value, (int, np.bool_)) for value in values)
    try:
        numbers = np.array(values, np.int64 if whole else np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(kind, f"{name}: {error}", "one number for each document") from None
    columns_of = [arrow.texts(cases), arrow.texts(ids), arrow.numbers(numbers)]
    return pa.Table.from_arrays(columns_of, ["case_id", "id", name]), empty


def _as_id(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _with_empty(rows: Rows, empty: list[str]) -> Rows:
    """`rows` with cases that own no row."""
    if not empty:
        return rows
    piece = len(rows.case_ids.arrays)
    case_ids = Strings.of([*rows.case_ids.arrays, arrow.texts(empty)])
    at = np.stack([np.full(len(empty), piece), np.arange(len(empty))], 1)
    segments = np.zeros((len(empty), 3), np.int64)
    return replace(
        rows, case_ids=case_ids, case_at=np.concatenate([rows.case_at, at]),
        segments=np.concatenate([rows.segments, segments]),
    )  # fmt: skip


def _text_rows(text: Any, where: str, name: str) -> Rows:
    """Rows of a TREC text table, over its buffers."""
    documents, cases, values, segments, at = [], [], [], [], []
    for piece, block in enumerate(text.blocks):
        documents.append(_strings(block.doc_offsets, block.doc_data))
        cases.append(_strings(block.query_offsets, block.query_data))
        values.append((SCORE_F64, block.values.ctypes.data))
        starts = block.segment_rows[:-1]
        n = starts.size
        segments.append(np.stack([np.full(n, piece), starts, np.diff(block.segment_rows)], 1))
        at.append(np.stack([np.full(n, piece), np.arange(n)], 1))
    none = np.empty((0, 3), np.int64)
    return Rows(
        name, where, Strings.of(documents), np.array(values, np.int64).reshape(-1, 2), BY_SCORE,
        np.concatenate(segments).astype(np.int64) if segments else none, Strings.of(cases),
        np.concatenate(at).astype(np.int64) if at else none[:, :2], text.n_rows,
        dict(text.notes), position=lambda row: {"line": text.line(row)}, keep=[text],
    )  # fmt: skip


def _strings(offsets: Any, data: Any) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
