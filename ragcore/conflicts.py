"""Slices that disagree on the sign of a difference."""

from __future__ import annotations

from collections.abc import Mapping

from ragcore.contrast import Cell
from ragcore.summary import WHOLE


def sign_conflicts(cells: Mapping[tuple[str, str], Cell]) -> dict[str, str]:
    """Measures whose slices by one column move in both directions, and a sentence on each.

    An aggregate near 0 may hide a slice that gained and one that lost. The slices that moved
    most are named, and how many of those that moved lie beyond noise, by their intervals.
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for (part, name), cell in cells.items():
        if part != WHOLE and cell.paired.delta:
            groups.setdefault((name, cell.column), []).append(cell)
    said: dict[str, list[str]] = {}
    for (name, column), found in groups.items():
        up = max(found, key=lambda c: c.paired.delta or 0.0)
        down = min(found, key=lambda c: c.paired.delta or 0.0)
        if not (up.paired.delta or 0) > 0 > (down.paired.delta or 0):
            continue
        sure = sum(_beyond(cell) for cell in found)
        said.setdefault(name, []).append(
            f"sign conflict by {column}: {up.slice} {up.paired.delta:+.4f}, {down.slice} "
            f"{down.paired.delta:+.4f} ({sure} of {len(found)} beyond noise)"
        )
    return {name: "; ".join(parts) for name, parts in said.items()}


def _beyond(cell: Cell) -> bool:
    low, high = cell.paired.low, cell.paired.high
    return low is not None and high is not None and (low > 0 or high < 0)
