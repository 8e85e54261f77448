"""docs/layers.md: its tables are the definitions, and its examples are what is printed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import printed
from ragcore.measures import registry

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "layers.md"


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield importlib.import_module("bench.layers")


def test_page__has_every_layered_measure_once():
    named = re.findall(r"^\| `([a-z0-9_.]+)", PAGE.read_text("utf-8"), re.MULTILINE)
    layered = [one.name for one in registry.definitions() if one.layer != "ranked"]
    assert [name for name in named if name in layered] == layered


def test_page__is_up_to_date(bench):
    found = re.findall(r"<!-- begin (\w+) -->\n(.*?)\n<!-- end \1 -->", PAGE.read_text(), re.DOTALL)
    assert [key for key, _ in found] == bench.layers()
    for key, text in found:
        assert text.splitlines() == bench.block(key), "python -m bench.layers --update the page"


def test_update__replaces_tables_alone(bench, tmp_path, capsys):
    whole = PAGE.read_text("utf-8")
    page = tmp_path / "layers.md"
    page.write_text(re.sub(r"(?m)^\| `.*\n", "", whole), "utf-8")
    bench.main(["--update", str(page)])
    assert len(capsys.readouterr().out.splitlines()) > len(registry.definitions()) / 2
    said = [line for line in whole.splitlines() if not line.startswith("| `")]
    now = [line for line in page.read_text("utf-8").splitlines() if not line.startswith("| `")]
    assert said == now


@pytest.mark.parametrize("example", printed.examples(PAGE), ids=lambda e: e.name)
def test_example__is_what_is_printed(example):
    assert example.now() == example.lines
