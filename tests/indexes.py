"""Small indexes and questions for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.analysis import Analyzer
from ragcore.index.build import build
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import Index, open_index
from ragcore.index.options import GraphSettings, Options
from ragcore.questions import Questions, read_questions
from ragcore.search import search
from ragcore.search_settings import Settings

PLAIN = Analyzer()
TEXTS = {"a": "red fox and red hen", "c": "blue fox", "b": "", "é": "green 狐狸 fox"}


def chunk_table(
    texts: dict[str, str] | None = None, vectors: dict[str, Any] | None = None, **columns: Any
) -> pa.Table:
    ids = list(texts if texts is not None else vectors or {})
    given: dict[str, Any] = {"chunk_id": pa.array(ids, pa.string())}
    if texts is not None:
        given["text"] = pa.array(list(texts.values()), pa.string())
    if vectors is not None:
        matrix = np.array([vectors[name] for name in ids], np.float32)
        given["vector"] = vector_column(matrix)
    return pa.table(given | columns)


def vector_column(matrix: np.ndarray[Any, Any]) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(matrix).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


def make(
    path: Path, texts: dict[str, str] | None = None, vectors: dict[str, Any] | None = None,
    *, columns: dict[str, Any] | None = None, **options: Any,
) -> Index:  # fmt: skip
    """Build an index and open it; `options` are those of `Options`, and of `GraphSettings`."""
    graph = {k: options.pop(k) for k in ("M", "ef_construction", "seed", "threads") if k in options}
    table = chunk_table(texts, vectors, **(columns or {}))
    embedding = "column" if vectors is not None else ""
    settings = {"analyzer": PLAIN, "embedding": embedding, "graph": GraphSettings(**graph)}
    build(read_chunks(table), path, Options(**(settings | options)))
    return open_index(path)


def ask(
    texts: dict[str, str] | None = None, vectors: dict[str, Any] | None = None, **columns: Any
) -> Questions:
    ids = list(texts if texts is not None else vectors or {})
    given: dict[str, Any] = {"case_id": pa.array(ids, pa.string())}
    if texts is not None:
        given["question"] = pa.array(list(texts.values()), pa.string())
    if vectors is not None:
        given["vector"] = vector_column(np.array([vectors[n] for n in ids], np.float32))
    return read_questions(pa.table(given | columns))


def ranked(index: Index, questions: Questions, **settings: Any) -> dict[str, list[Any]]:
    """(id, score) lists by case."""
    found = search(index, questions, Settings(**settings))
    return {
        row["case_id"]: [(item["id"], item["score"]) for item in row["ranked"]]
        for row in found.table.to_pylist()
    }


def names(lists: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Ids alone."""
    return {case: [name for name, _ in items] for case, items in lists.items()}


def postings_of(index):
    """{term: {id: tf}} of an index."""
    held, ids = index.dictionary, index.ids.to_pylist()
    out = {}
    for code in range(held.offsets.size - 1):
        a, b = held.collection.offsets[code : code + 2]
        rows = held.collection.docs[a:b]
        assert (np.diff(rows) > 0).all()
        out[held.text(code)] = {
            ids[r]: int(n) for r, n in zip(rows, held.collection.tfs[a:b], strict=True)
        }
    return out


def counted(texts):
    """The same from our own tokens."""
    out = {}
    for name, text in texts.items():
        for token in PLAIN.tokens(text):
            out.setdefault(token, {}).setdefault(name, 0)
            out[token][name] += 1
    return out
