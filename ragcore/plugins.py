"""Functions and models of the user's own: loaded by name, and named by what they are made of.

What a plug-in gives is kept and compared under its name, so the name changes when it does.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ragcore.errors import UsageError


def load_function(kind: str, module: str, name: str) -> tuple[Callable[..., Any], str]:
    """A function, and its name: where it is, and its `version` or a digest of its source file.

    Parameters
    ----------
    kind : what it is used as, for messages.

    Raises
    ------
    UsageError
        If there is none.
    """
    spec = f"python:{module}:{name}"
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{kind} {spec} cannot be loaded: {error}") from None
    if not callable(function):
        raise UsageError(f"{kind} {spec} is not callable")
    version = getattr(function, "version", "") or _source_of(function)
    return function, f"{spec} {version}".strip()


def _source_of(function: Callable[..., Any]) -> str:
    """A digest of the file that holds a function; "" where there is none."""
    try:
        path = inspect.getsourcefile(inspect.unwrap(function))
        return hashlib.sha256(Path(path or "").read_bytes()).hexdigest()[:16]
    except (TypeError, OSError):
        return ""


def digest_of(folder: Path) -> str:
    """A digest of every file of a model."""
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as stream:
            whole.update(path.relative_to(folder).as_posix().encode() + b"\0")
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()[:16]
