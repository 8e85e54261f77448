"""The manifest of an index: what it is made of, where its files lie, and that they are whole.

An index directory holds `manifest.json` and one folder, named there, with everything else. A build
writes a new folder, and its last step renames a new manifest over the old one: a build that is
killed leaves the old index as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragcore.errors import InputError, UsageError

FORMAT = 1
"""Of the directory; one that this engine does not know is refused."""

NAME = "manifest.json"
_BUILDING, _FOLDER = ".building-", "data-"


def canonical(value: Any) -> bytes:
    """JSON in one spelling, to be hashed."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def generation_of(manifest: dict[str, Any]) -> str:
    """Content hash of an index: of its manifest without places and names."""
    parts = {k: v for k, v in manifest.items() if k not in ("generation", "folder")}
    return hashlib.sha256(canonical(parts)).hexdigest()[:16]


def file_record(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def file_records(folder: Path) -> dict[str, dict[str, Any]]:
    """Records of all files below `folder`, but the locks that writers leave."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")
    return {p.relative_to(folder).as_posix(): file_record(p) for p in files}


def read_manifest(index: Path) -> dict[str, Any]:
    """The manifest of the index directory `index`.

    Raises
    ------
    InputError
        If there is none, or one of another version or with a hash that is not its own.
    """
    path = index / NAME
    try:
        manifest = json.loads(path.read_bytes())
    except OSError:
        left = any(index.glob(f"{_BUILDING}*")) if index.is_dir() else False
        found = "a build that did not end" if left else f"no {NAME}"
        raise InputError(
            index, found, "an index directory", f"build it: ragcore index CHUNKS -o {index}"
        ) from None
    except ValueError as error:
        raise InputError(
            path, f"not JSON: {error}", "a manifest", "build the index again"
        ) from None
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if version != FORMAT:
        raise InputError(
            path, f"index format {version!r}", f"format {FORMAT}",
            "it was built by another version: build it again with this one",
        )  # fmt: skip
    if manifest.get("generation") != generation_of(manifest):
        raise InputError(
            path, "content that its generation does not match", "a manifest that nobody edited",
            "build the index again",
        )  # fmt: skip
    return manifest


def verify(index: Path, manifest: dict[str, Any], hashes: bool = False) -> Path:
    """The folder that a manifest names, its files checked: sizes, and on request SHA-256.

    Raises
    ------
    InputError
        Naming the first file that is gone, cut short or changed.
    """
    folder = index / manifest["folder"]
    for name, record in manifest["files"].items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        if size != record["bytes"]:
            found = "gone" if size is None else f"{size} bytes"
            raise InputError(
                path, found, f"{record['bytes']} bytes", "the index is damaged: build it again"
            )
        if hashes and file_record(path)["sha256"] != record["sha256"]:
            raise InputError(
                path, "other content than was written", f"sha256 {record['sha256'][:12]}…",
                "the index is damaged: build it again",
            )  # fmt: skip
    return folder


@contextmanager
def new_folder(index: Path) -> Iterator[Path]:
    """A folder to build in, beside the one that counts; gone if the build fails.

    Raises
    ------
    UsageError
        If `index` is a file, or a folder that holds something else than an index.
    InputError
        If it cannot be written: a full disk, no permission.
    """
    if index.exists() and not index.is_dir():
        raise UsageError(f"{index} is a file", "an index is a directory: give another name")
    if index.is_dir() and not (index / NAME).is_file():
        others = [p.name for p in index.iterdir() if not p.name.startswith((_BUILDING, _FOLDER))]
        if others:
            raise UsageError(
                f"{index} holds {others[0]!r} and is no index", "give the name of a new directory"
            )
    try:
        index.mkdir(parents=True, exist_ok=True)
        remove_leftovers(index)
        folder = index / f"{_BUILDING}{os.getpid()}"
        folder.mkdir()
    except OSError as error:
        raise InputError(index, error.strerror or str(error), "a directory to write to") from None
    try:
        yield folder
    except OSError as error:  # no room, mostly
        reason = f"cannot be written: {error.strerror or error}"
        raise InputError(index, reason, "a directory with room and permission") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not any(index.iterdir()):
            index.rmdir()


def remove_leftovers(index: Path) -> None:
    """Remove what builds left that were killed; those that still run are let be."""
    for path in index.glob(f"{_BUILDING}*"):
        pid = path.name.removeprefix(_BUILDING)
        if not pid.isdecimal() or int(pid) == os.getpid() or not _alive(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def publish(index: Path, folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Make a finished folder the one that counts; the manifest as it was written.

    The rename of the manifest is the moment of change. What the folder before held is removed
    after it.
    """
    manifest = manifest | {"format": FORMAT, "files": file_records(folder)}
    manifest["generation"] = generation_of(manifest)
    name = f"{_FOLDER}{manifest['generation']}"
    target = index / name
    while target.exists():  # the same content built again, perhaps being read
        name += "x"
        target = index / name
    manifest["folder"] = name
    _sync(folder)
    folder.rename(target)
    temporary = index / f".{NAME}.{os.getpid()}"
    with temporary.open("wb") as stream:
        stream.write(json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False).encode())
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(index / NAME)
    _sync_folder(index)
    for old in index.glob(f"{_FOLDER}*"):
        if old != target:
            shutil.rmtree(old, ignore_errors=True)
    return manifest


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    """So that a rename survives a power cut; not every system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
