"""What the READMEs print and import is what the engine gives."""

from __future__ import annotations

import re
from pathlib import Path

from conformance.shapes import cli, python

ROOT = Path(__file__).resolve().parents[2]


def test_readme__comparison_is_what_is_printed() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(r"```\n\$ ragcore (compare .*?)\n(.*?)\n```", text, re.DOTALL)
    done = cli(*block[0].split(), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n").splitlines() == block[1].splitlines()


def test_readme__of_the_kernels_runs(tmp_path: Path) -> None:
    text = (ROOT / "kernels" / "README.md").read_text("utf-8")
    first, second = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    checks = """
assert scorer.search([0, 2], [0, 1], k=10).docs[0, :3].tolist() == [1, 0, 2]
assert ExactIndex(vectors, "cosine").search(vectors[:1], k=2).rows.tolist() == [[0, 1]]
"""
    done = python(first + second + checks, tmp_path)
    assert done.returncode == 0, done.stderr
