"""What the READMEs print and import is what the engine gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import printed
from conformance.shapes import python

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("example", printed.examples(ROOT / "README.md"), ids=lambda e: e.name)
def test_readme__example_is_what_is_printed(example: printed.Example) -> None:
    assert example.now() == example.lines


def test_readme__has_an_example_of_each_of_the_main_commands() -> None:
    found = {one.command.split()[0] for one in printed.examples(ROOT / "README.md")}
    assert {"score", "diagnose", "compare"} <= found


def test_readme__of_the_kernels_runs(tmp_path: Path) -> None:
    text = (ROOT / "kernels" / "README.md").read_text("utf-8")
    first, second = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    checks = """
assert scorer.search([0, 2], [0, 1], k=10).docs[0, :3].tolist() == [1, 0, 2]
assert ExactIndex(vectors, "cosine").search(vectors[:1], k=2).rows.tolist() == [[0, 1]]
"""
    done = python(first + second + checks, tmp_path)
    assert done.returncode == 0, done.stderr
