"""The files of a public suite: where they lie, whether they are the pinned ones, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from ragcore.catalogue.download import digest_of, download
from ragcore.catalogue.entries import Entry
from ragcore.errors import InputError, UsageError
from ragcore.places import data_folders, user_cache
from ragcore.progress import Progress, no_progress
from ragcore.public.imported import Imported

SUBSET, OFFICIAL = "pinned subset", "official distribution"


@dataclass(frozen=True)
class Source:
    """Where the data of a public suite was found.

    Attributes
    ----------
    form : `SUBSET` or `OFFICIAL`: figures of the two do not compare.
    folder : where it lies.
    files : checked, by the name that the suite knows them by.
    """

    form: str
    folder: Path
    files: Mapping[str, Path]


def find(entry: Entry, data: Path | None = None) -> Source:
    """The data of a public suite, every checksum verified.

    The pinned subset is looked for in each place, then the official distribution.

    Raises
    ------
    InputError
        Naming the first file that is missing, of another size or content.
    UsageError
        If no place has any of it.
    """
    named: dict[str, Any] = entry.settings["files"]
    looked = data_folders(data)
    for place in looked:
        found = {name: path for name in named if (path := _at(place, name)) is not None}
        if found:
            return Source(SUBSET, place, _verified(place, named, found))
    official = entry.settings.get("official", [])
    for place in looked:
        folder = place / "official" / entry.name
        if official and all((folder / one["file"]).is_file() for one in official):
            records = {one["file"]: one for one in official}
            files = {name: folder / name for name in records}
            return Source(OFFICIAL, folder, _verified(folder, records, files))
    hint = "give their folder with --data DIR or RAGCORE_DATA"
    if official:
        hint += f"; or let --download bring the official distribution to {user_cache() / 'data'}"
    places = ", ".join(str(place) for place in looked)
    raise UsageError(f"the data of {entry.name} is not in {places}", hint)


def missing(entry: Entry, data: Path | None = None) -> list[str]:
    """Files of a public suite that no place has; nothing is read. Empty if it can be run."""
    named = list(entry.settings["files"])
    for place in data_folders(data):
        gone = [name for name in named if _at(place, name) is None]
        if len(gone) < len(named):
            return gone
        official = entry.settings.get("official", [])
        folder = place / "official" / entry.name
        if official and all((folder / one["file"]).is_file() for one in official):
            return []
    return named


def fetch(entry: Entry, data: Path | None = None, progress: Progress = no_progress) -> Path:
    """Download the official distribution; the folder that it lies in.

    Raises
    ------
    UsageError
        If the suite pins none.
    InputError, RagcoreError
        See `ragcore.catalogue.download.download`.
    """
    official = entry.settings.get("official", [])
    if not official:
        raise UsageError(
            f"no official distribution of {entry.name} is pinned",
            f"its source is {entry.settings['source']}; {entry.toml} says which files are needed",
        )
    folder = (data or user_cache() / "data") / "official" / entry.name
    for one in official:
        download(one["url"], folder / one["file"], one["sha256"], one["bytes"], progress=progress)
    return folder


def load(entry: Entry, source: Source) -> Imported:
    """Have the suite's importer read its files.

    Raises
    ------
    InputError
        If they are not what the importer knows.
    """
    importer = _importer(entry)
    if source.form == OFFICIAL:
        return importer.build(importer.official(source.folder))
    folders = {Path(name).parent for name in source.files}
    tables = {}
    for name, path in source.files.items():
        stem = Path(name).with_suffix("")
        key = stem.as_posix() if len(folders) > 1 else stem.name
        try:
            tables[key] = pl.read_parquet(path)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(path, f"damaged: {reason}", "a Parquet file") from None
    return importer.build(tables)


def _importer(entry: Entry) -> Any:
    name, module = entry.settings["importer"], None
    if name.isidentifier():
        with suppress(ModuleNotFoundError):
            module = import_module(f"ragcore.public.{name}")
    if not hasattr(module, "build") or not hasattr(module, "official"):
        raise InputError(entry.toml, f"importer {name!r}", "an importer of ragcore.public")
    return module


def _at(place: Path, name: str) -> Path | None:
    """A file in a data folder, or in the suite's own folder of one."""
    inside = place.parent if Path(name).parts[0] == place.name else place
    path = inside / name
    return path if path.is_file() else None


def _verified(
    place: Path, named: Mapping[str, Any], found: Mapping[str, Path]
) -> Mapping[str, Path]:
    """The files, if they are all there and what they should be."""
    gone = [name for name in named if name not in found]
    if gone:
        raise InputError(
            place / gone[0], "no such file", f"all {len(named)} files of the suite",
            f"{len(gone)} of them are missing: {', '.join(gone)}",
        )  # fmt: skip
    for name, path in found.items():
        record = named[name]
        size, wanted = path.stat().st_size, record.get("bytes")
        if wanted is not None and size != wanted:
            raise InputError(path, f"{size:,} bytes", f"{wanted:,} bytes", _CHANGED)
        digest = digest_of(path)
        if digest != record["sha256"]:
            raise InputError(
                path, f"sha256 {digest[:12]}…", f"sha256 {record['sha256'][:12]}…", _CHANGED
            )
    return found


_CHANGED = "it is not the pinned file: figures would not compare; get that one again"
