"""The tables of docs/layers.md: every layered measure, from its definition.

python -m bench.layers
python -m bench.layers --update docs/layers.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ragcore.measures import registry
from ragcore.measures.definitions import Definition
from ragcore.measures.forms import words_of

from .peers.report import publish, table

HEAD = ["measure", "formula", "`na`", "needs", "source and limit"]


def layers() -> list[str]:
    """Names of the layers, ranked measures left out, in the order of the registry."""
    found = dict.fromkeys(one.layer for one in registry.definitions())
    return [layer for layer in found if layer != "ranked"]


def cell(text: str) -> str:
    """A text as it may stand in a table."""
    return text.replace("|", "\\|").replace("*", "\\*")


def name_of(one: Definition) -> str:
    """A measure as it is asked for, with what may be asked of it."""
    cut = "[@k]" if one.cutoff == "optional" else ""
    params = ", ".join(f"{name}={value or '...'}" for name, value in one.params.items())
    return f"`{one.name}{f'({params})' if params else ''}{cut}`"


def notes_of(one: Definition) -> str:
    """Where a formula comes from, how it is summed up, and what it does not say."""
    form = words_of(one.aggregate) if one.aggregate != "mean" else ""
    better = "" if one.better == "more" else f"{one.better} is better"
    return "; ".join(filter(None, (one.source, form, better, one.limit)))


def block(layer: str) -> list[str]:
    """Lines of the table of one layer."""
    rows = [
        [name_of(one), *map(cell, (one.formula, one.na, ", ".join(one.needs), notes_of(one)))]
        for one in registry.definitions()
        if one.layer == layer
    ]
    return table(HEAD, rows, True)


def main(arguments: list[str] | None = None) -> None:
    """Print every table, and put it into the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", type=Path, help="page whose tables are replaced")
    options = parser.parse_args(arguments)
    for layer in layers():
        publish(layer, block(layer), options.update)


if __name__ == "__main__":
    main()
