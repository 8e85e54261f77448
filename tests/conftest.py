"""What every test may lean on: the hypothesis profile, `--slow`, the shared material."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from reference_data import folder_or_reason, required

pytest.register_assert_rewrite("conformance")

# Without compilation the same code runs, a hundred times slower: fewer examples, as it is the same.
EXAMPLES = 15 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 100
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=EXAMPLES)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes minutes; runs with --slow only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


def _folder(*parts: str) -> Path:
    path, reason = folder_or_reason(*parts)
    if reason and required():
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared material; its absence skips the test, in CI it fails."""
    return _folder()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Pinned public data sets, a folder each."""
    return _folder("data")


@pytest.fixture(scope="session")
def conformance() -> Path:
    """Cases with their expected results."""
    return _folder("conformance")


@pytest.fixture
def shore(tmp_path, monkeypatch):
    """The collection, known in a catalogue of its own; its data in a folder of theirs."""
    import collections_made as made

    made.install(monkeypatch)
    home = tmp_path / "catalogue"
    made.write(home, tmp_path / "data")
    monkeypatch.setattr("ragcore.places.suite_folders", lambda: [home])
    monkeypatch.setattr("ragcore.catalogue.entries.suite_folders", lambda: [home])
    monkeypatch.setattr("ragcore.suites.suite_folders", lambda: [home])
    monkeypatch.setenv("RAGCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RAGCORE_DATA", raising=False)
    return tmp_path
