"""Where things lie on this machine: the suites that come along, data, the user's cache."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DATA_ENV = "RAGCORE_DATA"
"""Folder of public data; see `data_folders`."""
CACHE_ENV = "RAGCORE_CACHE"
"""Folder for what can be made or downloaded again; unset means the user's usual one."""

_PACKAGE = Path(__file__).parent


def suite_folders() -> list[Path]:
    """Folders that hold suites, a folder each: here, beside the sources, installed; the first wins.

    A folder counts if some suite lies in it.
    """
    looked = (Path("data"), _PACKAGE.parent / "data", _PACKAGE / "catalogue" / "suites")
    return [path for path in looked if path.is_dir() and any(path.glob("*/suite.toml"))]


def user_cache() -> Path:
    """Where downloads and runs of public suites are kept; not made here."""
    if chosen := os.environ.get(CACHE_ENV):
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ragcore"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "ragcore" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragcore"


def data_folders(given: Path | None = None) -> list[Path]:
    """Where public data may lie, the first that has it counts.

    Parameters
    ----------
    given : if a folder is given, it alone; else that of `RAGCORE_DATA`, then the user's cache.
    """
    if given is not None:
        return [given]
    chosen = os.environ.get(DATA_ENV)
    return [*([Path(chosen)] if chosen else []), user_cache() / "data"]
