"""A chunks file -> checked columns in the order of ties, which is the numbering of an index.

Chunks are numbered by id, descending byte-wise. Wherever scores tie, the lower number comes first,
which is then the rule of every ranking here: score descending, id descending.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore_kernels.layout import I64

ID_NAMES = ("chunk_id", "id", "doc_id", "docno", "_id", "docid", "corpus-id")
TEXT_NAMES = ("text", "contents", "body")
TITLE, VECTOR, DELETED = "title", "vector", "deleted"


@dataclass
class Chunks:
    """Chunks as an index numbers them.

    Attributes
    ----------
    where : the file, or a name for what came from memory.
    documents : one row a live chunk, ids descending byte-wise; `chunk_id` and every other column
        but title, text and vector.
    titles, texts : large_string, or None without such a column (for titles, without any value).
    vectors : (n, d) float32 or float16, or None without such a column.
    tombstones : ids of rows with `deleted`, which are not indexed.
    metadata : of the file's schema: snapshot, chunker, ...
    notes : what was noticed, for people.
    text_column, title_column : where they came from; None where there is none.
    """

    where: str
    documents: pa.Table
    titles: pa.Array | None
    texts: pa.Array | None
    vectors: np.ndarray[Any, Any] | None
    tombstones: list[str]
    metadata: dict[str, str]
    notes: list[str] = field(default_factory=list)
    text_column: str | None = None
    title_column: str | None = None

    @property
    def ids(self) -> pa.Array:
        """Chunk ids, large_string, descending byte-wise."""
        return self.documents["chunk_id"].combine_chunks()

    def sources(self) -> list[str]:
        """The text that is indexed and embedded: title, a space, text; else the text alone."""
        assert self.texts is not None
        return joined(self.titles, self.texts)

    def corpus_hash(self) -> str:
        """SHA-256 over ids, titles and texts, in the order of the index."""
        return corpus_hash(self.ids, self.titles, self.texts)


def joined(titles: pa.Array | None, texts: pa.Array) -> list[str]:
    """Titles and texts as they are indexed: one string each."""
    bodies = texts.to_pylist()
    if titles is None:
        return bodies
    return [
        f"{title} {body}" if title else body
        for title, body in zip(titles.to_pylist(), bodies, strict=True)
    ]


def corpus_hash(ids: pa.Array, titles: pa.Array | None, texts: pa.Array | None) -> str:
    """SHA-256 of a corpus: for each column its name, the lengths and the bytes of its values."""
    digest = hashlib.sha256()
    for name, column in (("chunk_id", ids), (TITLE, titles), ("text", texts)):
        if column is None:
            continue
        filled = pc.fill_null(column, "")
        lengths = pc.binary_length(filled)  # pyright: ignore[reportAttributeAccessIssue]
        digest.update(name.encode() + b"\0")
        digest.update(lengths.to_numpy(zero_copy_only=False).astype(np.int64).tobytes())
        digest.update(_bytes_of(filled))
    return digest.hexdigest()


def _bytes_of(column: pa.Array) -> memoryview:
    """The bytes of a large_string array, one value after the other."""
    _, offsets, data = column.buffers()
    if data is None or len(column) == 0:
        return memoryview(b"")
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return memoryview(data)[int(bounds[0]) : int(bounds[-1])]


def read_chunks(source: Any, text: str | None = None, title: str | None = None) -> Chunks:
    """The chunks in a file or table, checked.

    Parameters
    ----------
    source : path of Arrow IPC, Feather or Parquet; or anything with the Arrow C stream interface.
    text, title : columns of these; by default one of `TEXT_NAMES`, and `title` where there is one.

    Raises
    ------
    InputError
        For a chunk without id or text, an id that stands twice, vectors of differing dimension or
        with values that are not finite: by name, with its row.
    """
    where, table = _table_of(source)
    name = arrow.find(table, ID_NAMES)
    if name is None:
        raise InputError(
            where, f"columns {', '.join(table.column_names) or '(none)'}",
            f"one of {', '.join(ID_NAMES)}", "name the column of ids chunk_id",
        )  # fmt: skip
    ids = _text(where, name, arrow.as_ids(where, name, table[name]))
    live, tombstones = _live(table, ids)
    order = _order(where, ids, live)
    metadata = {
        k.decode("utf-8", "replace"): v.decode("utf-8", "replace")
        for k, v in (table.schema.metadata or {}).items()
        if not k.startswith((b"ARROW:", b"pandas", b"ragcore."))
    }
    for asked in (text, title):
        if asked is not None and asked not in table.column_names:
            raise InputError(where, f"columns {', '.join(table.column_names)}", f"a column {asked}")
    text_name, title_name = text or arrow.find(table, TEXT_NAMES), title or TITLE
    texts = titles = None
    if text_name is not None:
        texts = _taken(where, text_name, table[text_name], order, required=True)
        if title_name in table.column_names:
            titles = _taken(where, title_name, table[title_name], order, required=False)
            if not any(titles.to_pylist()):
                titles = None
    vectors = None
    if VECTOR in table.column_names:
        vectors = vectors_of(table[VECTOR], where, order)
    if texts is None and vectors is None:
        raise InputError(
            where, f"columns {', '.join(table.column_names)}", "a column text, or vector",
            "text is what BM25 searches, vectors are what dense search does",
        )  # fmt: skip
    used = (name, text_name, title_name, VECTOR, DELETED)
    kept = [c for c in table.column_names if c not in used]
    whole = pa.Table.from_arrays(
        [ids, *(table[c] for c in kept)],
        schema=pa.schema(
            [pa.field("chunk_id", pa.large_string()), *(table.schema.field(c) for c in kept)]
        ),
    )
    documents = whole.take(arrow.numbers(order)).combine_chunks()
    notes = [f"{len(tombstones)} deleted chunks are not indexed"] if tombstones else []
    return Chunks(
        where, documents, titles, texts, vectors, tombstones, metadata, notes, text_name,
        title_name if titles is not None else None,
    )  # fmt: skip


def _table_of(source: Any) -> tuple[str, pa.Table]:
    if not isinstance(source, (str, PathLike)):
        return "chunks", arrow.from_stream(source)
    wanted = "chunks as Arrow IPC, Feather or Parquet"
    hint = "the columns are chunk_id, text and whatever else is to be filtered or sliced by"
    return str(source), arrow.read_checked(Path(source), wanted, hint)


def _text(where: str, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of strings as large_string."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return column.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            where, f"column {name!r} of type {column.type}: {reason}", "strings in UTF-8",
            "cast it to string where it is written",
        ) from None  # fmt: skip


def _live(table: pa.Table, ids: pa.ChunkedArray) -> tuple[I64, list[str]]:
    """Rows that are not tombstones, and the ids of those that are."""
    rows = np.arange(table.num_rows, dtype=np.int64)
    if DELETED not in table.column_names:
        return rows, []
    gone = np.array([bool(flag) for flag in table[DELETED].to_pylist()], np.bool_)
    return rows[~gone], ids.take(arrow.numbers(rows[gone])).to_pylist()


def _order(where: str, ids: pa.ChunkedArray, live: I64) -> I64:
    """Rows by id, descending byte-wise; an id that stands twice is refused."""
    names = ids.take(arrow.numbers(live)).combine_chunks()
    by_id = pc.sort_indices(  # pyright: ignore[reportAttributeAccessIssue]
        names, sort_keys=[("", "descending")]
    ).to_numpy()
    order = live[by_id]
    ranked = names.take(arrow.numbers(by_id))
    if len(ranked) > 1:
        same = pc.equal(ranked[1:], ranked[:-1])  # pyright: ignore[reportAttributeAccessIssue]
        twice = np.flatnonzero(same.to_numpy(zero_copy_only=False))
        if twice.size:
            at = int(twice[0])
            first, second = sorted((int(order[at]) + 1, int(order[at + 1]) + 1))
            raise InputError(
                where, f"chunk id {ranked[at].as_py()!r} in rows {first} and {second}",
                "each id once", "chunks need ids of their own: <document>#<number> will do",
                row=second,
            )  # fmt: skip
        if ranked[len(ranked) - 1].as_py() == "":
            raise InputError(where, "an empty chunk id", "an id", row=int(order[-1]) + 1)
    elif len(ranked) and ranked[0].as_py() == "":
        raise InputError(where, "an empty chunk id", "an id", row=int(order[0]) + 1)
    return order


def _taken(where: str, name: str, column: pa.ChunkedArray, order: I64, required: bool) -> pa.Array:
    """A text column in the order of the index."""
    taken = _text(where, name, column).take(arrow.numbers(order)).combine_chunks()
    if required and taken.null_count:
        row = int(order[np.flatnonzero(np.asarray(taken.is_null()))].min()) + 1
        raise InputError(
            where, f"null {name}", "a text in every row, if only an empty one",
            "fill or drop these rows", row=row,
        )  # fmt: skip
    return taken


def vectors_of(column: pa.ChunkedArray, where: str, order: I64) -> np.ndarray[Any, Any]:
    """A column of equally long lists of numbers as a matrix, rows in `order`.

    float16 and float32 stay what they are, anything else becomes float32.

    Raises
    ------
    InputError
        For a null, another length than the first vector's, or a value that is not finite.
    """
    kind = column.type
    if not (
        pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    ) or not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise InputError(
            where, f"column {VECTOR} of type {kind}", "fixed_size_list<float32>[d]",
            "write vectors as lists of float32",
        )  # fmt: skip
    if column.null_count:
        raise InputError(
            where, f"null {VECTOR}", "a vector in every row", "embed these chunks, or drop them",
            row=arrow.first_null(column),
        )  # fmt: skip
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], kind)
    dim = _dimension(whole, where)
    flat = whole.flatten()
    if flat.null_count:
        row = int(np.flatnonzero(np.asarray(flat.is_null()))[0]) // max(dim, 1) + 1
        raise InputError(where, f"null inside a {VECTOR}", "numbers", row=row)
    values = flat.to_numpy(zero_copy_only=False)
    if values.dtype not in (np.float16, np.float32):
        values = values.astype(np.float32)
    matrix = values.reshape(len(whole), dim)
    good = np.isfinite(matrix).all(1)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        found = matrix[row][~np.isfinite(matrix[row])][0]
        raise InputError(
            where, f"{VECTOR} holds {found}", "finite numbers",
            f"{int((~good).sum())} of {len(good)} vectors are like that: embed them again",
            row=row + 1,
        )  # fmt: skip
    return np.ascontiguousarray(matrix[order])


def _dimension(whole: pa.Array, where: str) -> int:
    """The one length of all vectors."""
    if pa.types.is_fixed_size_list(whole.type):
        return whole.type.list_size
    lengths = pc.list_value_length(whole).to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
    if lengths.size == 0:
        return 0
    other = np.flatnonzero(lengths != lengths[0])
    if other.size:
        row = int(other[0])
        raise InputError(
            where, f"a {VECTOR} of {lengths[row]} numbers",
            f"{lengths[0]} as in row 1", "all vectors come from one model", row=row + 1,
        )  # fmt: skip
    return int(lengths[0])
