"""Examples in pages: a command after `$ ragcore`, what it is said to print, and what it prints."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from conformance.shapes import cli

ROOT = Path(__file__).resolve().parents[1]
MORE = "..."
"""Last line of an example that shows only how the output begins."""


@dataclass(frozen=True)
class Example:
    """One command of a page, and the lines after it."""

    command: str
    lines: list[str]

    @property
    def name(self) -> str:
        """The first words of the command."""
        return "-".join(self.command.split()[:2]).replace("/", "-")

    def now(self) -> list[str]:
        """What the command prints, as far as the page shows it."""
        words = []
        for word in shlex.split(self.command):
            found = sorted(ROOT.glob(word)) if "*" in word and "/" in word else []
            words += [str(path.relative_to(ROOT)) for path in found] or [word]
        done = cli(*words, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        printed = done.stdout.rstrip("\n").splitlines()
        if self.lines[-1] == MORE:
            return [*printed[: len(self.lines) - 1], MORE]
        return printed


def examples(page: Path) -> list[Example]:
    """Every example of a page."""
    found = re.findall(r"```\n\$ ragcore (.*?)\n(.*?)\n```", page.read_text("utf-8"), re.DOTALL)
    return [Example(command, text.splitlines()) for command, text in found]
