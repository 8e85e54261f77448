"""Files of official distributions: read, or refused by name and line if not as published."""

from __future__ import annotations

import gzip
import json
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from ragcore.errors import InputError

_WRONG = (
    KeyError, IndexError, ValueError, TypeError, AttributeError, OverflowError, OSError, EOFError,
    tarfile.TarError, zipfile.BadZipFile, zlib.error, pl.exceptions.PolarsError,
)  # fmt: skip
"""What reading something of another form raises: values, archives, types of columns."""


@contextmanager
def as_published(where: str | Path, wanted: str, line: int | None = None) -> Iterator[None]:
    """Say of a part of a file that it is not as published, whatever taking it apart raises.

    Parameters
    ----------
    where, line : the file, and the line that is taken apart.
    wanted : what is published there.

    Raises
    ------
    InputError
        In place of what was raised.
    """
    try:
        yield
    except _WRONG as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(where, f"not as published: {reason}", wanted, line=line) from None


def held(folder: Path, name: str) -> Path:
    """A file of the official distribution.

    Raises
    ------
    InputError
        If it is not there.
    """
    path = folder / name
    if not path.is_file():
        raise InputError(path, "no such file", f"{name} of the official distribution")
    return path


def read_text(folder: Path, name: str, encoding: str = "utf-8-sig") -> str:
    """What a file of text holds, unpacked if its name ends in `.gz`.

    Raises
    ------
    InputError
        If there is no such file, or it is no text of this encoding.
    """
    path = held(folder, name)
    with as_published(path, f"a whole file of text in {encoding.removesuffix('-sig').upper()}"):
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode(encoding)


def read_json(folder: Path, name: str, member: str = "") -> Any:
    """What a JSON file holds, or a JSON member of a tar archive, by the end of its name.

    Raises
    ------
    InputError
        If there is no such file or member, or it is no JSON.
    """
    path = held(folder, name)
    with as_published(f"{path}:{member}" if member else path, "JSON"):
        return json.loads(_member(path, member) if member else path.read_bytes())


def _member(path: Path, member: str) -> bytes:
    with tarfile.open(path) as archive:
        for one in archive:
            if one.isfile() and Path(one.name).name == member:
                stream = archive.extractfile(one)
                assert stream is not None
                return stream.read()
    raise KeyError(member)


def json_lines(text: str, where: str | Path) -> Iterator[tuple[int, Any]]:
    """The values of a text with one JSON value a line, with their lines; blank lines are none.

    Raises
    ------
    InputError
        Naming the first line that is no JSON.
    """
    for number, line in _lines(text):
        with as_published(where, "a JSON value a line", number):
            value = json.loads(line)
        yield number, value


def fields(
    text: str, where: str | Path, width: int, by: str | None = "\t"
) -> Iterator[tuple[int, list[str]]]:
    """The fields of a text of `width` a line, with their lines; blank lines are none.

    Parameters
    ----------
    by : what parts them; None for any space.

    Raises
    ------
    InputError
        Naming the first line of another width.
    """
    for number, line in _lines(text):
        parts = line.removesuffix("\r").split(by)
        if len(parts) != width:
            wanted = f"{width} fields a line, parted by {'spaces' if by is None else 'tabs'}"
            raise InputError(where, f"{len(parts)} fields", wanted, line=number)
        yield number, parts


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, from 1; a text may hold other line breaks than these."""
    return ((n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip())


def frame(
    rows: Sequence[Any] | Mapping[str, Sequence[Any]], kinds: Mapping[str, Any], where: str | Path
) -> pl.DataFrame:
    """Rows (tuples or dicts) of a file as a table; or columns of texts, which are read as numbers.

    Raises
    ------
    InputError
        If a value is not of its column's type.
    """
    with as_published(where, f"values of the types of {', '.join(kinds)}"):
        if isinstance(rows, Mapping):
            return pl.DataFrame(rows).select(
                pl.col(name).cast(kind) for name, kind in kinds.items()
            )
        # One by one: a frame of rows would make the text "5" of a number 5.
        places = kinds if rows and isinstance(rows[0], Mapping) else range(len(kinds))
        return pl.DataFrame(
            pl.Series(name, [row[at] for row in rows], kind, strict=True)
            for (name, kind), at in zip(kinds.items(), places, strict=True)
        )
