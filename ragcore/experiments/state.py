"""The folder that keeps what a sweep has done: files that are whole or not there, named by content.

The name of a step holds a digest of everything that it depends on. A sweep that was killed finds
its finished steps again, and one whose file was changed makes only those that the change reaches.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragcore.errors import InputError
from ragcore.provenance import engine_version
from ragcore.report.table import whole_file
from ragcore.suites import Suite

FORMAT = 2
"""Of what is kept; raised when a step would give something else."""


def digest(*parts: Any) -> str:
    """16 hexadecimal digits of what a step depends on, and of the engine."""
    said = json.dumps(
        [FORMAT, engine_version(), *parts], sort_keys=True, ensure_ascii=False,
        separators=(",", ":"), default=str,
    )  # fmt: skip
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def suite_digest(suite: Suite) -> dict[str, str]:
    """SHA-256 of every file of a suite that a score may depend on: by name, runs left out."""
    return {p.relative_to(suite.path).as_posix(): file_digest(p) for p in _files(suite)}


def suite_times(suite: Suite) -> list[tuple[str, int, int]]:
    """Name, size and time of change of the same files: quick to ask for again."""
    asked = [(p.as_posix(), p.stat()) for p in _files(suite)]
    return [(name, s.st_size, s.st_mtime_ns) for name, s in asked]


def _files(suite: Suite) -> list[Path]:
    names = ("suite.toml", "cases.arrow", "cases.parquet", "chunks.arrow", "chunks.parquet")
    files = [suite.path / name for name in names]
    files += sorted((suite.path / "judgments").glob("*.arrow"))
    return [path for path in files if path.is_file()]


class State:
    """A folder of finished steps.

    Attributes
    ----------
    folder : made if absent.
    found : steps that were there already, by kind.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: dict[str, int] = {}
        self._met: set[Path] = set()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(folder, str(error.strerror or error), "a folder for state") from None

    def path(self, kind: str, name: str, key: str, suffix: str = "") -> Path:
        """Where a step is kept; its folder is made."""
        folder = self.folder / kind
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(folder, str(error.strerror or error), "a folder for state") from None
        return folder / f"{slug(name)}-{key}{suffix}"

    def kept(self, kind: str, path: Path) -> bool:
        """Whether a step is there already; counted once, if it was there before."""
        there = path.exists()
        self.found[kind] = self.found.get(kind, 0) + (there and path not in self._met)
        self._met.add(path)
        return there

    def json(self, kind: str, name: str, key: str, make: Callable[[], Any]) -> Any:
        """A step that is told in JSON: read if it is there, else made and kept."""
        path = self.path(kind, name, key, ".json")
        if not self.kept(kind, path):
            text = json.dumps(make(), ensure_ascii=False, indent=1, allow_nan=False)
            with whole_file(path) as stream:
                stream.write(text.encode("utf-8", "surrogatepass"))
        try:
            return json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
        except ValueError:
            raise InputError(path, "damaged", "what a sweep has kept", "delete it") from None

    def directory(self, kind: str, name: str, key: str, make: Callable[[Path], None]) -> Path:
        """A step that is a folder: made beside its place, then renamed."""
        path = self.path(kind, name, key)
        if self.kept(kind, path):
            return path
        part = None
        try:
            part = Path(tempfile.mkdtemp(".part", ".", path.parent))
            mask = os.umask(0)
            os.umask(mask)
            part.chmod(0o777 & ~mask)
            make(part)
            os.replace(part, path)  # noqa: PTH105
        except OSError as error:
            if not path.is_dir():  # else another sweep was quicker: both mean the same
                reason = error.strerror or str(error)
                raise InputError(
                    path, f"cannot be written: {reason}", "a folder with room and permission"
                ) from None
        finally:
            if part is not None:
                shutil.rmtree(part, ignore_errors=True)
        return path


def slug(name: str) -> str:
    """A name as part of a file's: short, of letters, digits, `.`, `=`, `_` and `-`."""
    return re.sub(r"[^\w.=+-]+", "_", name, flags=re.ASCII)[:60].strip("_.") or "step"
