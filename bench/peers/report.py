"""What the comparisons share: numbers as text, tables, progress, and blocks of a Markdown file."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from pathlib import Path


def tell(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def machine() -> str:
    """Processors and their model, the load, no names."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [x.split(":", 1)[1] for x in info.read_text().splitlines() if "model name" in x]
        model = models[0].strip() if models else model
    about = f"{os.cpu_count()} x {model}, {platform.system()}, Python {platform.python_version()}"
    return f"{about}; load at the end {os.getloadavg()[0]:.1f}, this comparison included"


def number(value: float) -> str:
    """Three digits or more, no exponent."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def spread(values: list[float]) -> str:
    """Median, and least and greatest in brackets."""
    middle = number(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({number(min(values))}-{number(max(values))})"


def table(head: list[str], rows: list[list[str]], markdown: bool) -> list[str]:
    """Lines of a table; a short row is filled up."""
    full = [head, *([*row, *[""] * (len(head) - len(row))] for row in rows)]
    if markdown:
        full.insert(1, ["---"] * len(head))
        return [f"| {' | '.join(row)} |" for row in full]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    cells = ([c.ljust(w) for c, w in zip(row, widths, strict=True)] for row in full)
    return ["  ".join(row).rstrip() for row in cells]


def publish(key: str, lines: list[str], update: Path | None) -> None:
    """Print `lines`; with a file, also put them between its two comments that name `key`."""
    text = "\n".join(lines)
    print(text)
    if update is None:
        return
    begin, end = f"<!-- begin {key} -->\n", f"\n<!-- end {key} -->"
    before, found, rest = update.read_text().partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{update} has no block {begin.strip()} ... {end.strip()}")
    update.write_text(f"{before}{begin}{text}{rest[rest.index(end) :]}")
