"""Rerankers by spec, on this disk or in Python, and their scores. Nothing is downloaded."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ragcore.errors import UsageError
from ragcore.plugins import digest_of, load_function
from ragcore.retrievers import Clock
from ragcore_kernels.layout import F64

SPECS = '"python:MODULE:CALLABLE" or "cross-encoder:FOLDER"'


class Reranker(Protocol):
    """What scores candidates against a question; greater is better.

    `name` holds all that the scores depend on (package, version, model, source).
    """

    @property
    def name(self) -> str:
        """The identity: equal names give equal scores."""
        ...

    def score(self, question: str, texts: list[str]) -> Any:
        """One number a text, (len(texts),)."""
        ...


def load_reranker(spec: str) -> Reranker:
    """The reranker of a spec.

    Parameters
    ----------
    spec : "python:MODULE:CALLABLE", a function of a question and its texts, or of one list of
        (question, text) pairs; "cross-encoder:FOLDER", a model of sentence-transformers on this
        disk.

    Raises
    ------
    UsageError
        If the spec is unknown, or what it needs is not installed or not there.
    """
    kind, _, rest = spec.partition(":")
    if kind == "cross-encoder" and rest:
        return _CrossEncoder(Path(rest))
    if kind == "python" and rest.count(":") == 1 and all(rest.split(":")):
        return _Callable(*rest.split(":"))
    raise UsageError(f"no reranker {spec!r}", SPECS)


def scored(
    reranker: Reranker, question: str, texts: list[str], clock: Clock = time.perf_counter_ns
) -> tuple[F64, float]:
    """Scores of the candidates of one question, and the microseconds that they took.

    Raises
    ------
    UsageError
        If they are other than one finite number a text.
    """
    if not texts:
        return np.empty(0), 0.0
    began = clock()
    given = reranker.score(question, texts)
    spent = (clock() - began) / 1000
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"reranker {reranker.name} gives no numbers: {error}") from None
    if found.shape != (len(texts),):
        raise UsageError(
            f"reranker {reranker.name} gives an array of shape {found.shape} for {len(texts)} "
            "candidates", "one number a candidate, in their order",
        )  # fmt: skip
    if not np.isfinite(found).all():
        raise UsageError(
            f"reranker {reranker.name} gives NaN or infinity for the question {question[:60]!r}"
        )
    return found, spent


class _Callable:
    """A Python function; its source file is part of the name."""

    def __init__(self, module: str, name: str) -> None:
        self._function, self.name = load_function("reranker", module, name)
        self._pairs = _takes_pairs(self._function)

    def score(self, question: str, texts: list[str]) -> Any:
        """What the function says."""
        if self._pairs:
            return self._function([(question, text) for text in texts])
        return self._function(question, texts)


def _takes_pairs(function: Callable[..., Any]) -> bool:
    """Whether a function wants one list of pairs: it has one parameter without a default."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in given if p.default is p.empty and p.kind in (
        p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    return len(needed) == 1


class _CrossEncoder:
    """A cross-encoder in a folder of this disk."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise UsageError(
                f"no folder {folder} with a cross-encoder",
                "models are never downloaded; give a folder",
            )
        try:
            package: Any = import_module("sentence_transformers")
        except ImportError:
            raise UsageError(
                "the reranker cross-encoder needs sentence-transformers, which is not installed",
                "pip install 'ragcore[rerank]'",
            ) from None
        self._model = package.CrossEncoder(str(folder), local_files_only=True)
        version = metadata.version("sentence-transformers")
        self.name = f"cross-encoder {version} {folder.name} {digest_of(folder)}"

    def score(self, question: str, texts: list[str]) -> Any:
        """What the model says of every pair."""
        pairs = [(question, text) for text in texts]
        return self._model.predict(pairs, show_progress_bar=False, convert_to_numpy=True)
