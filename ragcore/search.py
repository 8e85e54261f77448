"""Searches an index with the questions of a suite: channels, fusion, one cut; gives a case batch.

`candidate_k` rows come from each channel, a threshold a channel drops what scores below it, fusion
sees all that is left, and only the context is cut, to `context_k`: three numbers with three names.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import retrievers as ways
from ragcore.errors import UsageError
from ragcore.filters import Eligibility
from ragcore.index.opened import Index
from ragcore.latency import nearest_rank
from ragcore.questions import Questions
from ragcore.retrievers import Approximate, Exact, Lexical, Ranked
from ragcore.search_output import fused_lists, run_table
from ragcore.search_settings import BM25, DENSE, DENSE_EXACT, FUSED, STRATEGIES, Settings
from ragcore_kernels.layout import F64


@dataclass(frozen=True)
class Found:
    """What a search gives.

    Attributes
    ----------
    table : a case batch, one row a question; its schema carries the manifest.
    notes : what was noticed, for people: latencies, empty results, what filters did not restrict.
    lexical : the analysed questions, if BM25 searched.
    """

    table: pa.Table
    notes: list[str]
    lexical: Lexical | None


def search(
    index: Index,
    questions: Questions,
    settings: Settings,
    *,
    name: str = "",
    embed: Callable[[list[str]], np.ndarray[Any, Any]] | None = None,
    clock: ways.Clock = time.perf_counter_ns,
) -> Found:
    """Search `index` with every question.

    Parameters
    ----------
    name : of the run; default the strategy.
    embed : texts of questions to vectors, for questions that have none.
    clock : nanoseconds; results do not depend on it, timings do.

    Raises
    ------
    UsageError, InputError
        If the strategy needs what index or questions lack.
    """
    checked(settings, index)
    n = len(questions)
    eligibility = Eligibility(index, questions, list(settings.filters))
    stages: dict[str, F64] = {}
    lexical, made = None, []
    names = STRATEGIES[settings.strategy]
    if BM25 in names:
        lexical = lexical_of(index, questions, settings)
        made.append(lexical)
    if DENSE in names or DENSE_EXACT in names:
        vectors, spent = vectors_of_questions(index, questions, embed, clock)
        if spent:
            stages["embed"] = np.full(n, spent / 1000 / max(n, 1))
        made.append(
            Exact(index, vectors) if DENSE_EXACT in names
            else Approximate(index, vectors, settings.ef)
        )  # fmt: skip
    if lexical is not None and settings.timing == "each":
        stages["analyse"] = timed(lexical.analyse, n, clock)
    found: dict[str, Ranked] = {}
    for channel in made:
        if n:  # whatever loads or compiles is no part of a latency
            channel.search(0, 1, settings.candidate_k, eligibility.mask(0), 1)
            channel.n_completed = 0
        ranked = ways.run(
            channel, settings.candidate_k, eligibility, n, after=settings.filter_when == "after",
            together=settings.timing == "batch", threads=settings.threads, clock=clock,
        )  # fmt: skip
        _cut(ranked, settings.thresholds.get(channel.name))
        found[channel.name], stages[channel.name] = ranked, ranked.duration_us
    notes = list(eligibility.notes)
    final = found[names[0]]
    if len(names) > 1:
        if n:
            fused_lists(index, found, settings, 1)
        began = clock()
        final, said = fused_lists(index, found, settings, n)
        stages[FUSED] = np.full(n, (clock() - began) / 1000 / max(n, 1))
        found[FUSED] = final
        notes += said
    notes += _noticed(questions, settings, made, found, index.n_chunks, stages)
    manifest = manifest_of(index, questions, settings, lexical, name or settings.strategy)
    table = run_table(index, questions, found, final, settings.context_k, stages, manifest)
    return Found(table, notes, lexical)


def checked(settings: Settings, index: Index) -> None:
    """Refuse settings that make no sense, before any work.

    Raises
    ------
    UsageError
        Naming the first.
    """
    if settings.strategy not in STRATEGIES:
        raise UsageError(
            f"unknown strategy {settings.strategy!r}", f"one of {', '.join(STRATEGIES)}"
        )
    names = STRATEGIES[settings.strategy]
    for what, value in (("candidate-k", settings.candidate_k), ("context-k", settings.context_k),
                        ("ef", settings.ef), ("threads", settings.threads)):  # fmt: skip
        if value < 1:
            raise UsageError(f"{what} is {value}", "at least 1")
    for channel in settings.thresholds:
        if channel not in names:
            raise UsageError(
                f"threshold of channel {channel!r}, which {settings.strategy} does not have",
                f"its channels are {', '.join(names)}",
            )
    if settings.weights is not None and len(settings.weights) != len(names):
        raise UsageError(
            f"{len(settings.weights)} weights for {settings.strategy}",
            f"one for each of {', '.join(names)}, or none",
        )
    if settings.rrf_k < 0:
        raise UsageError(f"rrf-k is {settings.rrf_k:g}", "a number from 0 on; 60 is usual")
    if settings.filter_when not in ("before", "after"):
        raise UsageError(f"filter {settings.filter_when!r}", "before or after")
    if BM25 in names:
        _ = index.dictionary
    if DENSE in names:
        _ = index.graph
    if DENSE_EXACT in names:
        _ = index.vectors


def lexical_of(index: Index, questions: Questions, settings: Settings) -> Lexical:
    """The questions analysed, and BM25 ready for their terms."""
    if questions.texts is None:
        raise UsageError(
            f"{questions.where} has no column question", "BM25 searches with texts: add them"
        )
    try:
        return Lexical(
            index, questions.texts, settings.k1, settings.b, settings.variant, settings.lengths,
            settings.count_repeats,
        )  # fmt: skip
    except ValueError as error:
        raise UsageError(f"bm25: {error}") from None


def vectors_of_questions(
    index: Index,
    questions: Questions,
    embed: Callable[[list[str]], np.ndarray[Any, Any]] | None = None,
    clock: ways.Clock = time.perf_counter_ns,
) -> tuple[np.ndarray[Any, Any], int]:
    """Vectors of the questions, and the nanoseconds that embedding took."""
    spent = 0
    vectors = questions.vectors
    if vectors is None:
        if embed is None or questions.texts is None:
            raise UsageError(
                f"{questions.where} has no column vector",
                "add it, give --question-vectors FILE, or --embed as the index was",
            )
        began = clock()
        vectors = embed(questions.texts)
        spent = clock() - began
    dim = index.vectors.shape[1]
    if vectors.shape[1] != dim and len(vectors):
        raise UsageError(
            f"{questions.where}: vectors of {vectors.shape[1]} dimensions",
            f"{index.path} has {dim}: questions and chunks must come from one model",
        )
    return np.ascontiguousarray(vectors, np.float32), spent


def timed(work: Callable[[int], None], n: int, clock: ways.Clock = time.perf_counter_ns) -> F64:
    """Microseconds of each call, (n,): ``work(0)`` to ``work(n - 1)``."""
    out = np.zeros(n)
    for row in range(n):
        began = clock()
        work(row)
        out[row] = (clock() - began) / 1000
    return out


def _cut(ranked: Ranked, threshold: float | None) -> None:
    """Drop what scores below a threshold."""
    if threshold is None:
        return
    for i, scores in enumerate(ranked.scores):
        kept = scores >= threshold
        ranked.rows[i], ranked.scores[i] = ranked.rows[i][kept], scores[kept]


def _noticed(
    questions: Questions, settings: Settings, made: list[Any], found: dict[str, Ranked],
    n_chunks: int, stages: dict[str, F64],
) -> list[str]:  # fmt: skip
    """What a user would ask next, with denominators."""
    n, wanted = len(questions), min(settings.candidate_k, n_chunks)
    notes = []
    if n_chunks < settings.candidate_k:
        notes.append(
            f"the index has {n_chunks} chunks, fewer than candidate-k {settings.candidate_k}"
        )
    for channel, ranked in found.items():
        empty = sum(len(rows) == 0 for rows in ranked.rows)
        if empty:
            notes.append(f"{channel}: {empty} of {n} questions have no result")
        short = sum(0 < len(rows) < wanted for rows in ranked.rows)
        if short and channel != FUSED:
            notes.append(f"{channel}: {short} of {n} questions have fewer than {wanted} results")
    for channel in made:
        if isinstance(channel, Approximate) and channel.n_completed:
            notes.append(
                f"dense: {channel.n_completed} of {n} questions were answered by brute force, as "
                "their filter leaves HNSW too little"
            )
        vectors = getattr(channel, "vectors", None)
        bad = 0 if vectors is None else int((~np.isfinite(vectors).all(1)).sum())
        if bad:
            notes.append(f"{channel.name}: {bad} of {n} questions have a vector that is not finite")
    if settings.candidate_k <= settings.context_k and len(found) > 1:
        notes.append(
            f"narrow fusion: channels give candidate-k {settings.candidate_k} rows and the context "
            f"takes {settings.context_k}: fusion can only reorder what any channel would show"
        )
    for stage, spent in stages.items():
        if n:
            alone = settings.timing == "each" and stage not in ("embed", FUSED)
            how = "nearest rank" if alone else "share of a batch, not a latency"
            middle, high = (nearest_rank(spent, q) / 1000 for q in (0.5, 0.95))
            notes.append(f"{stage}: p50 {middle:.3f} ms, p95 {high:.3f} ms ({how}, n = {n})")
    return notes


def manifest_of(
    index: Index, questions: Questions, settings: Settings, lexical: Lexical | None, name: str
) -> dict[str, Any]:
    """The manifest of a run: everything that its rankings depend on."""
    names = STRATEGIES[settings.strategy]
    said = index.manifest
    out: dict[str, Any] = {
        "run": name, "strategy": settings.strategy, "candidate_k": settings.candidate_k,
        "context_k": settings.context_k, "threshold": settings.thresholds,
        "filters": [str(each) for each in settings.filters], "filter_when": settings.filter_when,
        "index": {
            "generation": index.generation, "corpus": said["corpus"]["sha256"],
            "n_chunks": index.n_chunks,
        },
        "timing": settings.timing, "concurrency": settings.threads,
    }  # fmt: skip
    if questions.suite is not None:
        out["suite"] = questions.suite.name
    if lexical is not None:
        out["bm25"] = {
            **lexical.settings, "analyzer": said["lexical"]["analyzer"],
            "count_repeats": settings.count_repeats, "statistics": said["lexical"]["statistics"],
        }  # fmt: skip
    if DENSE in names or DENSE_EXACT in names:
        out["dense"] = {
            "metric": said["dense"]["metric"], "embedding": said["dense"]["embedding"],
        }  # fmt: skip
    if DENSE in names:
        own = said["hnsw"]
        out["ann"] = {"ef_search": settings.ef, **{k: own[k] for k in ("M", "ef_construction")}}
    if len(names) > 1:
        out["fusion"] = {"method": settings.method, "weights": list(settings.weights or ())}
        if settings.method == "rrf":
            out["rrf_k"] = settings.rrf_k
        else:
            out["fusion"]["normalise"] = settings.normalise
    return out
