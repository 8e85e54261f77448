"""Scores for retrieval-augmented generation: which layer failed, on which slice, how sure.

The verbs are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragcore.compare import compare
    from ragcore.comparison import Comparison
    from ragcore.score import score
    from ragcore.scores import Scores
    from ragcore.stats import paired

__version__ = "0.1.0"
__all__ = ["Comparison", "Scores", "__version__", "compare", "paired", "score"]

_HOMES = {
    "score": "ragcore.score", "Scores": "ragcore.scores", "compare": "ragcore.compare",
    "Comparison": "ragcore.comparison", "paired": "ragcore.stats",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value  # `ragcore.score` is the verb, not the module of that name
        return value
    raise AttributeError(f"module 'ragcore' has no attribute {name!r}")
