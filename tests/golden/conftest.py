"""What golden tests share: collections, each imported and indexed once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from importers import World


@pytest.fixture(scope="session")
def collections(
    shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], World]:
    """Public collections by name."""
    made: dict[str, World] = {}

    def collection(name: str) -> World:
        if name not in made:
            made[name] = World(name, shared_data, tmp_path_factory.mktemp(name))
        return made[name]

    return collection
