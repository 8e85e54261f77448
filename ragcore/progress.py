"""How long work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with a stage, what is done of it, and of how many."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Say nothing."""
