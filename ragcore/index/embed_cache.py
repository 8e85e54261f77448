"""A folder of vectors by key: files that only grow, in blocks with checksums.

Every opening that writes makes a file of its own, so that two runs beside each other cannot mix
their blocks, and nothing that a killed run left half written has to be mended: a block counts only
if it is whole. A file is a row of blocks:

    magic, version | n, dim | CRC-32 of the header | n keys of 32 bytes | n x dim float32 |
    CRC-32 of keys and vectors

all integers u32, little-endian. A damaged block is passed over by its length; after a damaged
header the rest of that file is.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ragcore.errors import InputError

_MAGIC = b"RCVEC\x00\x00\x01"
_HEAD = struct.Struct("<8sII")
_CRC = struct.Struct("<I")
_KEY = 32
_SUFFIX = ".vectors"


def key_of(identity: str, kind: str, text: str) -> bytes:
    """SHA-256 of what a vector depends on: the embedder, the kind of text, the text."""
    parts = (part.encode("utf-8", "surrogatepass") for part in (identity, kind, text))
    return hashlib.sha256(b"".join(struct.pack("<Q", len(p)) + p for p in parts)).digest()


class VectorCache:
    """Vectors of one length in a folder, by key.

    Parameters
    ----------
    folder : made if absent; vectors of other lengths in it are left alone.
    dim : length of a vector.

    Attributes
    ----------
    n_damaged : blocks, or rests of files, that were not whole and do not count.
    """

    def __init__(self, folder: Path, dim: int) -> None:
        self.folder, self.dim, self.n_damaged = folder, dim, 0
        self._places: dict[bytes, tuple[Path, int]] = {}
        self._stream: IO[bytes] | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(folder, str(error), "a folder for vectors") from None
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            self._scan(path)

    def __len__(self) -> int:
        return len(self._places)

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def read(self, keys: Sequence[bytes], out: NDArray[np.float32]) -> list[int]:
        """Fill the rows of `out`, (len(keys), dim), that are known; the places of the others."""
        by_file: dict[Path, list[tuple[int, int]]] = {}
        missing: list[int] = []
        for i, key in enumerate(keys):
            if key in self._places:
                path, begin = self._places[key]
                by_file.setdefault(path, []).append((begin, i))
            else:
                missing.append(i)
        for path, places in by_file.items():
            with path.open("rb") as stream:
                for begin, i in sorted(places):
                    stream.seek(begin)
                    out[i] = np.frombuffer(stream.read(4 * self.dim), "<f4")
        return missing

    def append(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Add one block, `vectors` being (len(keys), dim)."""
        if vectors.shape != (len(keys), self.dim):
            raise ValueError(f"{vectors.shape} vectors for {len(keys)} keys of {self.dim} numbers")
        try:
            self._append(keys, vectors)
        except OSError as error:
            raise self._unwritable(error) from None

    def _append(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        stream = self._stream or self._begin()
        head = _HEAD.pack(_MAGIC, len(keys), self.dim)
        body = b"".join(keys) + np.ascontiguousarray(vectors, "<f4").tobytes()
        at = stream.tell() + _HEAD.size + _CRC.size + _KEY * len(keys)
        stream.write(head + _CRC.pack(zlib.crc32(head)) + body + _CRC.pack(zlib.crc32(body)))
        stream.flush()
        for i, key in enumerate(keys):
            self._places[key] = (Path(stream.name), at + 4 * self.dim * i)

    def close(self) -> None:
        """Put what was added on the disk."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            with stream:
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> InputError:
        reason = f"cannot be written: {error.strerror or error}"
        return InputError(self.folder, reason, "a folder with room and permission")

    def _begin(self) -> IO[bytes]:
        """A new file under the next free number."""
        number = len(list(self.folder.glob(f"*{_SUFFIX}")))
        while self._stream is None:
            number += 1
            try:
                self._stream = (self.folder / f"{number:06}{_SUFFIX}").open("xb")
            except FileExistsError:
                continue
        return self._stream

    def _scan(self, path: Path) -> None:
        """Note the vectors of every whole block of a file."""
        with path.open("rb") as stream:
            while head := stream.read(_HEAD.size + _CRC.size):
                whole = len(head) == _HEAD.size + _CRC.size
                if (
                    not whole
                    or zlib.crc32(head[: _HEAD.size]) != _CRC.unpack_from(head, _HEAD.size)[0]
                ):
                    self.n_damaged += 1
                    return
                magic, n, dim = _HEAD.unpack_from(head)
                if magic != _MAGIC:
                    raise InputError(path, f"blocks begin with {magic!r}", repr(_MAGIC))
                at, size = stream.tell(), n * (_KEY + 4 * dim)
                body, crc = stream.read(size), stream.read(_CRC.size)
                if len(crc) < _CRC.size or zlib.crc32(body) != _CRC.unpack(crc)[0]:
                    self.n_damaged += 1
                elif dim == self.dim:
                    for i in range(n):
                        begin = at + _KEY * n + 4 * dim * i
                        self._places[body[_KEY * i : _KEY * (i + 1)]] = (path, begin)
