"""Tantivy's index directory as mapped memory: meta.json, footers, parts of fields, checks.

A segment is a few immutable files. Each ends with a footer that tells the format and the CRC of
what stands before it; `.term`, `.idx` and `.fieldnorm` hold one part per field. What is found
here is described by addresses and sizes, which kernels read in place. Whatever is not known to
the last byte is refused: a caller can then read the texts instead, but never a wrong number.
"""

from __future__ import annotations

import json
import mmap
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragcore_kernels._jit import address_of
from ragcore_kernels.memory import U8

FORMATS = (5, 6, 7)
"""Values of ``index_format_version`` that this reader knows."""

RECORDS = {"basic": 0, "freq": 1, "position": 2}
"""What the postings of a field hold: documents; frequencies too; positions too."""

_MAGIC = 1337
_MOST_DOCS = 2**31 - 1  # over all segments: document numbers are int32
_RETRIES = 20
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


class UnsupportedFormat(ValueError):
    """A file of the index is damaged, or of a kind that this reader does not know."""

    def __init__(self, file: Path | str | None, found: str, wanted: str) -> None:
        super().__init__(f"{file}: {found}; this reader knows {wanted}")


@dataclass(frozen=True)
class Part:
    """Bytes of one field in one file.

    Parameters
    ----------
    path : the file, for messages.
    data : (size,) uint8, read-only: the part.
    limit : address of the end of the mapped file; loads may reach beyond `data`, not beyond it.
    """

    path: Path
    data: U8
    limit: int

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return address_of(self.data)

    @property
    def size(self) -> int:
        """Bytes of the part."""
        return self.data.size

    def u32(self, at: int) -> int:
        """Number of four bytes at `at`."""
        return int.from_bytes(self.data[at : at + 4].tobytes(), "little")

    def u64(self, at: int) -> int:
        """Number of eight bytes at `at`."""
        return int.from_bytes(self.data[at : at + 8].tobytes(), "little")


@dataclass(frozen=True)
class Files:
    """What one segment holds of one field.

    Parameters
    ----------
    name : the id of the segment.
    n_docs : documents, deleted ones too.
    n_deleted : of them deleted.
    version : format of the posting lists.
    term, idx : dictionary and posting lists; both None if no document has a term.
    fieldnorm : a byte a document; None if the schema keeps none.
    alive : words of bits, see `fieldnorms.alive_bits`; None if nothing is deleted.
    """

    name: str
    n_docs: int
    n_deleted: int
    version: int
    term: Part | None
    idx: Part | None
    fieldnorm: Part | None
    alive: Part | None


@dataclass(frozen=True)
class Schema:
    """The field as ``meta.json`` tells it.

    Parameters
    ----------
    number : its place in the schema, which is its number in the files.
    record : a value of `RECORDS`.
    fieldnorms : whether quantised lengths are kept.
    """

    number: int
    record: int
    fieldnorms: bool


def open_files(path: Path, field: str, verify: bool) -> tuple[Schema, list[Files]]:
    """The schema of `field` and what every segment holds of it, in the order of ``meta.json``.

    A writer may merge segments and delete their files after ``meta.json`` was read. If a file is
    gone and ``meta.json`` has changed, all is read anew.

    Raises
    ------
    UnsupportedFormat
        Anything unknown or damaged.
    FileNotFoundError
        There is no ``meta.json``.
    """
    before, missing = b"", FileNotFoundError()
    for _ in range(_RETRIES):
        text = (path / "meta.json").read_bytes()
        try:
            return _read(path, field, verify, text)
        except FileNotFoundError as gone:
            missing = gone
        if text == before:
            break
        before = text
    raise UnsupportedFormat(
        path / "meta.json", f"names a file that is missing: {missing.filename}", "whole indexes"
    )


def _read(path: Path, field: str, verify: bool, text: bytes) -> tuple[Schema, list[Files]]:
    where = path / "meta.json"
    try:
        meta = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnsupportedFormat(where, f"not JSON ({error})", "the meta.json of an index") from None
    fields = _get(where, meta, "schema", list)
    schema = _schema(where, fields, field)
    segments = _get(where, meta, "segments", list)
    files = [_segment(path, where, segment, schema, verify) for segment in segments]
    if len({f.name for f in files}) < len(files):
        raise UnsupportedFormat(where, "a segment named twice", "every segment once")
    if sum(f.n_docs for f in files) > _MOST_DOCS:
        raise UnsupportedFormat(where, "too many documents", f"at most {_MOST_DOCS}")
    return schema, files


def _get(where: Path, value: Any, key: str, kind: type) -> Any:
    """Entry `key` of a JSON object, of exactly this type."""
    if not isinstance(value, dict) or key not in value:
        raise UnsupportedFormat(where, f"no {key!r}", f"{key!r} there")
    found = value[key]
    if type(found) is not kind:
        raise UnsupportedFormat(where, f"{key!r} is {str(found)[:60]}", f"{kind.__name__} there")
    return found


def _schema(where: Path, fields: list[Any], field: str) -> Schema:
    names = [_get(where, entry, "name", str) for entry in fields]
    if names.count(field) != 1:
        raise UnsupportedFormat(where, f"fields {', '.join(names)[:200]}", f"one field {field!r}")
    number = names.index(field)
    kind = _get(where, fields[number], "type", str)
    if kind != "text":
        raise UnsupportedFormat(where, f"field {field!r} of type {kind!r}", "fields of type 'text'")
    options = _get(where, fields[number], "options", dict)
    if options.get("indexing") is None:
        raise UnsupportedFormat(where, f"field {field!r} is not indexed", "indexed fields")
    indexing = _get(where, options, "indexing", dict)
    record = _get(where, indexing, "record", str)
    if record not in RECORDS:
        raise UnsupportedFormat(where, f"record {record!r}", f"records {', '.join(RECORDS)}")
    norms = _get(where, indexing, "fieldnorms", bool) if "fieldnorms" in indexing else True
    return Schema(number, RECORDS[record], norms)


def _segment(path: Path, where: Path, segment: Any, schema: Schema, verify: bool) -> Files:
    name = _get(where, segment, "segment_id", str)
    if not _ID.fullmatch(name):
        raise UnsupportedFormat(where, f"segment {name[:60]!r}", "ids of 32 hexadecimal digits")
    n_docs = _get(where, segment, "max_doc", int)
    if not 0 < n_docs <= _MOST_DOCS:
        raise UnsupportedFormat(where, f"a segment of {str(n_docs)[:30]} documents", "1 or more")
    stem = name.replace("-", "")
    term, versions = _field(path / f"{stem}.term", schema.number, verify)
    idx, of_idx = _field(path / f"{stem}.idx", schema.number, verify)
    if versions != of_idx:
        raise UnsupportedFormat(idx[0], f"another version than {stem}.term", "one for a segment")
    if (term[1] is None) != (idx[1] is None):
        raise UnsupportedFormat(term[0], "terms or postings of the field only", "both or none")
    norm = None
    if schema.fieldnorms:
        file, _ = _field(path / f"{stem}.fieldnorm", schema.number, verify)
        norm = file[1]
        if norm is None or norm.size != n_docs:
            found = "none" if norm is None else str(norm.size)
            raise UnsupportedFormat(file[0], f"{found} field norms", f"{n_docs}, one a document")
    n_deleted, alive = 0, None
    if "deletes" not in segment:
        raise UnsupportedFormat(where, "no 'deletes'", "'deletes' there, null if there are none")
    if segment["deletes"] is not None:
        n_deleted, alive = _deletes(path, where, stem, segment, verify)
    return Files(name, n_docs, n_deleted, versions[-1], term[1], idx[1], norm, alive)


def _deletes(path: Path, where: Path, stem: str, segment: Any, verify: bool) -> tuple[int, Part]:
    n_docs = segment["max_doc"]
    deletes = _get(where, segment, "deletes", dict)
    n_deleted = _get(where, deletes, "num_deleted_docs", int)
    stamp = _get(where, deletes, "opstamp", int)
    if not 0 <= n_deleted <= n_docs or not 0 <= stamp < 2**64:
        raise UnsupportedFormat(where, "a number of deletes out of range", "counts that can be")
    body, _ = _body(path / f"{stem}.{stamp}.del", verify)
    if body.size < 4 or body.u32(0) != n_docs or body.size != 4 + (n_docs + 63) // 64 * 8:
        raise UnsupportedFormat(body.path, "bits of another number", f"{n_docs}, one a document")
    return n_deleted, Part(body.path, body.data[4:], body.limit)


def _body(path: Path, verify: bool) -> tuple[Part, tuple[int, ...]]:
    """What stands before the footer of a file, and the versions that the footer tells."""
    with path.open("rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise UnsupportedFormat(path, "an empty file", "files with a footer") from None
    data = np.frombuffer(mapped, np.uint8)  # keeps the map alive
    whole = Part(path, data, address_of(data) + data.size)
    if data.size < 8 or whole.u32(data.size - 4) != _MAGIC:
        raise UnsupportedFormat(path, "no footer (cut off, or not of an index)", "whole files")
    size = whole.u32(data.size - 8)
    if size > data.size - 8:
        raise UnsupportedFormat(path, "a footer larger than the file", "whole files")
    end = data.size - 8 - size
    try:
        footer = json.loads(data[end : data.size - 8].tobytes())
    except (ValueError, RecursionError):
        raise UnsupportedFormat(path, "a footer that is not JSON", "JSON there") from None
    version = _get(path, footer, "version", dict)
    parts = ("major", "minor", "patch", "index_format_version")
    numbers = tuple(_get(path, version, part, int) for part in parts)
    if numbers[-1] not in FORMATS:
        writer = ".".join(str(n)[:20] for n in numbers[:3])
        known = ", ".join(map(str, FORMATS))
        raise UnsupportedFormat(path, f"format {str(numbers[-1])[:20]} of tantivy {writer}", known)
    crc = _get(path, footer, "crc", int)
    if verify and zlib.crc32(data[:end]) != crc:
        raise UnsupportedFormat(path, "a CRC that does not fit the bytes (damaged)", "whole files")
    return Part(path, data[:end], whole.limit), numbers


def _field(
    path: Path, number: int, verify: bool
) -> tuple[tuple[Path, Part | None], tuple[int, ...]]:
    """The part of field `number`, or None where the file has none, and the versions."""
    body, versions = _body(path, verify)
    damaged = UnsupportedFormat(path, "a damaged directory of fields", "offsets that ascend")
    if body.size < 5:
        raise damaged
    end = body.size - 4 - body.u32(body.size - 4)
    if not 0 <= end < body.size - 4:
        raise damaged
    directory = body.data[end : body.size - 4].tobytes()
    n, at = _varint(directory, 0)
    starts, fields, offset = [], [], 0
    for _ in range(min(n, len(directory))):
        delta, at = _varint(directory, at)
        fields.append(int.from_bytes(directory[at : at + 4], "little"))
        index, at = _varint(directory, at + 4)
        offset += delta
        starts.append(offset)
        if index != 0:
            raise UnsupportedFormat(path, f"sub-index {index} of a field", "0")
    starts.append(end)
    if n != len(fields) or at != len(directory) or offset > end or len(set(fields)) != n:
        raise damaged
    if number not in fields:
        return (path, None), versions
    place = fields.index(number)
    return (path, Part(path, body.data[starts[place] : starts[place + 1]], body.limit)), versions


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, the last byte marked, and where it ends."""
    value = 0
    for k, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << 7 * k
        if byte & 128:
            return value, at + k + 1
    return value, len(data) + 1  # no end: the caller sees that it lies beyond the directory
