"""Where a number comes from: versions and the machine."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any

PACKAGES = (
    "ragcore", "ragcore-kernels", "numpy", "numba", "pyarrow", "polars", "tantivy", "hnswlib",
    "click", "rich",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Version of every package that a number may depend on; "" where it is not installed."""
    out = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            out[name] = ""
    return out


def machine() -> dict[str, Any]:
    """Processor, processors usable, memory in bytes where the system tells."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    out: dict[str, Any] = {"system": platform.platform(), "processors": usable}
    try:
        out["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        out["memory_bytes"] = None
    return out
