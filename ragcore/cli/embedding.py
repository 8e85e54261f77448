"""Vectors for the commands: an embedder by its spec, its cache, and that two models never meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def embedded(
    spec: str, texts: list[str], kind: Any, cache: Path, progress: Any = None, model: str = ""
) -> tuple[Any, str]:
    """Vectors of texts, and the identity of the model that made them.

    Parameters
    ----------
    kind : passage or question.
    model : the identity that it must be; "" for any.

    Raises
    ------
    UsageError
        If it is another one.
    """
    from ragcore.errors import UsageError
    from ragcore.index.embed import embed_texts, load_embedder

    embedder = load_embedder(spec)
    if model and embedder.name != model:
        raise UsageError(
            f"{spec} is {embedder.name}, and the index was embedded with {model}",
            "vectors of two models cannot be compared: build the index again, or use that model",
        )
    tell = None if progress is None else lambda done, total: progress("embedding", done, total)
    return embed_texts(embedder, texts, kind, cache=cache, progress=tell), embedder.name


def cache_of(index: Path, given: Path | None) -> Path:
    """Where embeddings are kept: the folder that was given, else one beside the index."""
    return given or index.with_name(f"{index.name}.embeddings")
