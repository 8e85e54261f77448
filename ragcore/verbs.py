"""The verbs of search as plain functions: paths or tables in, settings as keywords."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from os import PathLike
from typing import Any

import numpy as np

from ragcore.audit_report import AuditSettings, Report
from ragcore.auditing import audit_index
from ragcore.errors import UsageError
from ragcore.filters import Filter
from ragcore.index.opened import Index, open_index
from ragcore.questions import Questions, check_suite, read_questions
from ragcore.search import Found, vectors_of_questions
from ragcore.search import search as run_search
from ragcore.search_settings import Settings

Embed = Callable[[list[str]], np.ndarray[Any, Any]]


def build_index(
    chunks: Any, path: str | PathLike[str], *, analyzer: str = "default", vectors: Any = None,
    **options: Any,
) -> Index:  # fmt: skip
    """Write the index of `chunks` to a directory and open it.

    Parameters
    ----------
    chunks : path of Arrow or Parquet, or a table: chunk_id, text or vector, and other columns.
    path : the directory; an index that is there is replaced once the new one is whole.
    analyzer : a name that `ragcore.analysis.analyzer_for` knows, or the spec of one.
    vectors : (n, d) float32 or float16, rows as in `chunks` ordered by id, descending byte-wise;
        default the column `vector`.
    options : fields of `ragcore.index.options.Options`.

    Raises
    ------
    InputError, UsageError
        If chunks are broken, by name; nothing is written.
    """
    from ragcore.analysis import Analyzer, analyzer_for
    from ragcore.index.build import build
    from ragcore.index.chunks import read_chunks
    from ragcore.index.options import Options

    made = Analyzer.parse(analyzer) if "+" in analyzer else analyzer_for(analyzer)
    read = read_chunks(chunks)
    if vectors is not None:
        read.vectors = np.ascontiguousarray(vectors)
        if read.vectors.shape[:1] != (read.documents.num_rows,) or read.vectors.ndim != 2:
            raise UsageError(
                f"vectors of shape {read.vectors.shape}", f"({read.documents.num_rows}, d)"
            )
    known = {f.name for f in fields(Options)}
    _refuse(options, known)
    if read.vectors is not None:
        options.setdefault("embedding", "column")
    build(read, path, Options(made, **options))
    return open_index(path)


def search(
    index: Index | str | PathLike[str], cases: Any, *, embed: Embed | None = None, name: str = "",
    filters: Sequence[str | Filter] = (), **settings: Any,
) -> Found:  # fmt: skip
    """Search an index with the questions of cases; a case batch comes out.

    Parameters
    ----------
    index : opened, or where it lies.
    cases : suite folder, path of Arrow or Parquet, table, or `Questions`.
    embed : texts of questions to (n, d) float32, where cases have no column `vector`.
    name : of the run; default the strategy.
    filters : as `ragcore.filters.Filter.parse` takes them.
    settings : fields of `ragcore.search_settings.Settings`: strategy, candidate_k, context_k, ...

    Raises
    ------
    InputError, UsageError
        If a setting cannot be honoured, or the strategy needs what is not there.

    Examples
    --------
    >>> ragcore.search("my.index", "cases.arrow", strategy="hybrid", candidate_k=50).table
    """
    _refuse(settings, {f.name for f in fields(Settings)})
    chosen = tuple(f if isinstance(f, Filter) else Filter.parse(f) for f in filters)
    opened = index if isinstance(index, Index) else open_index(index)
    return run_search(
        opened,
        _questions(opened, cases),
        Settings(filters=chosen, **settings),
        name=name,
        embed=embed,
    )


def audit(
    index: Index | str | PathLike[str], cases: Any, *, embed: Embed | None = None,
    suite: Any = None, qrels: Any = None, filters: Sequence[str | Filter] = (), **settings: Any,
) -> Report:  # fmt: skip
    """Compare HNSW over an index with brute force, for the questions of cases.

    Parameters
    ----------
    index, cases, embed, filters : as `search` takes them.
    suite, qrels : labels for `measures`, whose loss is measured.
    settings : fields of `ragcore.auditing.AuditSettings`: ks, efs, by, target, recall, ...

    Raises
    ------
    InputError, UsageError
        If there is no graph, no question, or no vector of one.
    """
    _refuse(settings, {f.name for f in fields(AuditSettings)})
    chosen = tuple(f if isinstance(f, Filter) else Filter.parse(f) for f in filters)
    opened = index if isinstance(index, Index) else open_index(index)
    questions = _questions(opened, cases)
    vectors, _ = vectors_of_questions(opened, questions, embed)
    made = replace(AuditSettings(**settings), filters=chosen)
    return audit_index(opened, questions, vectors, made, suite=suite, qrels=qrels)


def _questions(index: Index, cases: Any) -> Questions:
    """Cases as questions; those of a suite must be about the corpus of the index."""
    questions = cases if isinstance(cases, Questions) else read_questions(cases)
    check_suite(index, questions)
    return questions


def _refuse(given: dict[str, Any], known: set[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"unknown setting {name!r}", f"one of {', '.join(sorted(known))}")
