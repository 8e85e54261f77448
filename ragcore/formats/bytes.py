"""The bytes of a file: plain or compressed, told by how they begin and never by a name."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragcore.errors import InputError

BLOCK_BYTES = 2 << 20
"""Text handed to a kernel at once: fits the second-level cache together with its columns."""

_HEAD = 16
_MAGIC = (
    (0, b"\x1f\x8b\x08", "gzip"),
    (0, b"\x28\xb5\x2f\xfd", "zstd"),
    (0, b"\x04\x22\x4d\x18", "lz4"),
    (4, b"1AY&SY", "bzip2"),
    (0, b"\xfd7zXZ\0", "xz"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"ARROW1\0\0", "Arrow file"),
    (0, b"\xff\xff\xff\xff", "Arrow stream"),
    (0, b"PAR1\x15", "Parquet"),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5"),
    (0, b"\xff\xfe", "UTF-16"),
    (0, b"\xfe\xff", "UTF-16"),
)
_CODECS = ("gzip", "zstd", "lz4")


def kind_of(head: bytes) -> str:
    """Name what the first bytes of a file say it is, as in the table above, or ``plain``."""
    for place, magic, kind in _MAGIC:
        if head.startswith(magic, place):
            return kind
    return "plain"


@dataclass(frozen=True)
class Source:
    """A file that can be read more than once.

    Parameters
    ----------
    path : where it lies; also how errors name it.
    kind : as `kind_of` tells it.
    size : bytes of the file, before any decompression.
    held : the content, for what can be read once only (a pipe); else None.
    """

    path: str
    kind: str
    size: int
    held: bytes | None = None

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Whole lines, about `block_bytes` at a time, each block with its place in the text.

        Every block ends with a newline: one is added to a last line that has none. Blocks of a
        plain file are views of the mapped file; a line longer than a block makes a longer block.
        """
        if self.kind in _CODECS:
            yield from self._unpacked(block_bytes)
        elif self.kind == "plain":
            yield from self._mapped(block_bytes)
        else:
            raise InputError(self.path, f"a file of kind {self.kind}", "text", _mend(self.kind))

    def _mapped(self, block_bytes: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        text: bytes | mmap.mmap
        if self.held is not None:
            text = self.held
        elif self.size == 0:
            return
        else:
            with Path(self.path).open("rb") as file:
                text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        view, begin = np.frombuffer(text, np.uint8), 0
        while begin < view.size:
            end = text.find(b"\n", begin + block_bytes - 1) + 1
            if end == 0:
                end = view.size
            block = view[begin:end]
            yield begin, block if block[-1] == 10 else np.append(block, np.uint8(10))
            begin = end

    def _unpacked(self, block_bytes: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        packed = self.path if self.held is None else pa.py_buffer(self.held)
        begin, pieces = 0, []
        try:
            with pa.input_stream(packed, compression=self.kind) as stream:
                while chunk := stream.read(block_bytes):
                    cut = chunk.rfind(b"\n") + 1
                    pieces.append(chunk[:cut] if cut else chunk)
                    if cut:
                        text = b"".join(pieces)
                        yield begin, np.frombuffer(text, np.uint8)
                        begin += len(text)
                        pieces = [chunk[cut:]]
        except OSError as error:
            raise InputError(
                self.path,
                f"{self.kind} data that ends early or is damaged ({error})",
                f"a whole {self.kind} file",
                "fetch or pack the file again",
            ) from error
        if text := b"".join(pieces):
            yield begin, np.frombuffer(text + b"\n", np.uint8)


def open_bytes(path: str | os.PathLike[str]) -> Source:
    """Look at how a file begins; InputError if there is none or it cannot be read."""
    name = os.fspath(path)
    try:
        found = Path(name).stat()
        if S_ISDIR(found.st_mode):
            raise InputError(name, "a directory", "a file")
        with Path(name).open("rb") as file:
            if not S_ISREG(found.st_mode):
                held = file.read()
                return Source(name, kind_of(held[:_HEAD]), len(held), held)
            return Source(name, kind_of(file.read(_HEAD)), found.st_size)
    except FileNotFoundError as error:
        raise InputError(name, "no such file", "a file") from error
    except OSError as error:
        raise InputError(
            name, f"a file that cannot be read ({error.strerror})", "a file"
        ) from error


def _mend(kind: str) -> str:
    if kind == "UTF-16":
        return "save the file as UTF-8"
    if kind in ("bzip2", "xz", "zip"):
        return "unpack it first; gzip, zstd and lz4 are read as they are"
    return "read it with the reader for tables"
