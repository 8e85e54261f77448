"""What every tool of a comparison is: the job, the measures and the files it takes."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any

MEASURES = (
    "nDCG@10", "nDCG", "AP", "RR@10", "R@5", "R@10", "R@100", "R@1000", "P@5", "P@10",
    "Success@1", "Success@5", "Success@10",
)  # fmt: skip

Files = dict[str, str]
"""Paths of the run and of the qrels, in the format that the tool reads."""


class Tool:
    """One tool: `load` imports it, `job` is what is timed, `means` looks at what `job` gave.

    Attributes
    ----------
    package : distribution whose version is shown; "" for a program.
    imports : modules that `load` imports.
    reads : formats it can read, the best one first.
    note : what a reader must know of how it is used here.
    exact : whether its definitions are those of trec_eval, to the last tie.
    tolerance : greatest difference of means, where `exact`.
    """

    package = ""
    imports: tuple[str, ...] = ()
    reads: tuple[str, ...] = ("arrow", "parquet")
    note = ""
    exact = True
    tolerance = 1e-9

    def __init__(self, argument: str = "") -> None:
        self.argument = argument

    def missing(self) -> str:
        """Why it cannot run; empty if it can."""
        found = all(importlib.util.find_spec(name) for name in self.imports)
        return "" if found else "not installed"

    def version(self) -> str:
        """Version of the package."""
        return importlib.metadata.version(self.package) if self.package else ""

    def load(self) -> None:
        """Import what the job needs."""
        self.modules = [importlib.import_module(name) for name in self.imports]

    def job(self, files: Files) -> Any:
        """Values of every query, and means, in whatever form the tool gives them."""
        raise NotImplementedError

    def means(self, result: Any) -> dict[str, float]:
        """Means by the names in `MEASURES`."""
        return dict(zip(MEASURES, result[0], strict=True))
