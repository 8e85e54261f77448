"""Scores for retrieval-augmented generation: which layer failed, on which slice, how sure.

The verbs are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragcore.compare import compare
    from ragcore.comparison import Comparison
    from ragcore.diagnose import Diagnosis, diagnose
    from ragcore.experiments.result import SweepResult
    from ragcore.experiments.verb import sweep
    from ragcore.fuse import fuse
    from ragcore.fused import Fused
    from ragcore.index.opened import Index, open_index
    from ragcore.judges.review import Review, review
    from ragcore.score import score
    from ragcore.scores import Scores
    from ragcore.stats import paired
    from ragcore.verbs import audit, build_index, search

__version__ = "0.1.0"
__all__ = [
    "Comparison", "Diagnosis", "Fused", "Index", "Review", "Scores", "SweepResult", "__version__",
    "audit", "build_index", "compare", "diagnose", "fuse", "open_index", "paired", "review",
    "score", "search", "sweep",
]  # fmt: skip

_HOMES = {
    "score": "ragcore.score", "Scores": "ragcore.scores", "compare": "ragcore.compare",
    "Comparison": "ragcore.comparison", "paired": "ragcore.stats", "fuse": "ragcore.fuse",
    "Fused": "ragcore.fused", "Index": "ragcore.index.opened",
    "open_index": "ragcore.index.opened", "build_index": "ragcore.verbs",
    "search": "ragcore.verbs", "audit": "ragcore.verbs", "diagnose": "ragcore.diagnose",
    "Diagnosis": "ragcore.diagnose", "review": "ragcore.judges.review",
    "Review": "ragcore.judges.review", "sweep": "ragcore.experiments.verb",
    "SweepResult": "ragcore.experiments.result",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'ragcore' has no attribute {name!r}")


class _Package(ModuleType):
    """A package whose verbs keep their names, though modules of the same names hold them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):  # as the import system does
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
