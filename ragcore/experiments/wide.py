"""Makes recordings: which wide runs the rows of a sweep need, each searched once and kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import retrievers as ways
from ragcore.experiments.recording import RERANKED_STAGE, Recording
from ragcore.experiments.replay import candidates
from ragcore.experiments.rerank import Reranker, scored
from ragcore.experiments.setups import CHANNELS, Setup
from ragcore.filters import Eligibility
from ragcore.index.opened import Index
from ragcore.latency import WHOLE
from ragcore.progress import Progress
from ragcore.questions import Questions
from ragcore.retrievers import Approximate, Exact, Ranked
from ragcore.search import lexical_of, timed, vectors_of_questions
from ragcore.search_output import fused_lists, run_table
from ragcore.search_settings import BM25, DENSE, FUSED
from ragcore_kernels.layout import F64

Embed = Callable[[list[str]], np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Signature:
    """What one search fixes, and no replay can change.

    Attributes
    ----------
    candidate_k : 0, but where candidates are filtered after they were cut.
    """

    chunking: str
    filters: tuple[str, ...]
    filter_when: str
    candidate_k: int
    bm25: tuple[Any, ...]
    ef: int


@dataclass
class Need:
    """A recording that rows ask for.

    Attributes
    ----------
    setups : of these rows.
    depth : of every channel.
    """

    setups: list[Setup] = field(default_factory=list)
    depth: int = 0

    @property
    def channels(self) -> tuple[str, ...]:
        """All that are searched."""
        asked = {name for one in self.setups for name in one.channels}
        return tuple(name for name in CHANNELS if name in asked)

    @property
    def fused(self) -> tuple[str, ...]:
        """Strategies that fuse."""
        return tuple(dict.fromkeys(s.base for s in self.setups if len(s.channels) > 1))

    @property
    def reranked(self) -> list[Setup]:
        """Setups whose candidates are reranked."""
        return [one for one in self.setups if one.reranked]

    def said(self) -> list[Any]:
        """What the recording depends on besides its signature."""
        return [self.depth, self.channels, sorted(self.fused)]


def signature(setup: Setup) -> Signature:
    """The search that a setup can be replayed from."""
    after = setup.filter_when == "after" and bool(setup.filters)
    return Signature(
        setup.chunking, setup.filters, setup.filter_when, setup.candidate_k if after else 0,
        (setup.k1, setup.b, setup.variant, setup.lengths, setup.count_repeats)
        if BM25 in setup.channels else (),
        setup.ef if DENSE in setup.channels else 0,
    )  # fmt: skip


def needs(setups: Iterable[Setup]) -> dict[Signature, Need]:
    """The recordings that some setups need.

    All are as deep as the widest setup, so that their timings compare. A setup of one channel
    shares the recording of a hybrid one that is searched alike.
    """
    listed = list(setups)
    depth = max((one.candidate_k for one in listed), default=1)
    out: dict[Signature, Need] = {}
    for one in sorted(listed, key=lambda s: -len(s.channels)):  # hybrid ones first
        own = signature(one)
        home = next((known for known in out if _within(own, known)), own)
        need = out.setdefault(home, Need(depth=own.candidate_k or depth))
        need.setups.append(one)
    return out


def home_of(setup: Setup, made: Iterable[Signature]) -> Signature | None:
    """The recording of a setup among those that were made; None if there is none."""
    own = signature(setup)
    return next((known for known in made if _within(own, known)), None)


def _within(one: Signature, other: Signature) -> bool:
    """Whether a search with `other` is one with `one`, where `one` leaves a channel out."""
    filled = replace(one, bm25=one.bm25 or other.bm25, ef=one.ef or other.ef)
    return filled == other


def record(
    index: Index,
    questions: Questions,
    need: Need,
    *,
    embed: Embed | None,
    name: str,
    progress: Progress,
    clock: ways.Clock = time.perf_counter_ns,
) -> pa.Table:
    """Search every channel to its depth; each question alone, each stage timed.

    Raises
    ------
    UsageError, InputError
        As `ragcore.search` does.
    """
    first = need.setups[0]
    settings = replace(first.settings(), candidate_k=need.depth, thresholds={})
    eligibility = Eligibility(index, questions, list(settings.filters))
    n = len(questions)
    found: dict[str, Ranked] = {}
    stages: dict[str, F64] = {}
    manifest: dict[str, Any] = {
        "run": name, "candidate_k": need.depth, "threshold": {},
        "filters": list(first.filters), "filter_when": first.filter_when, "timing": "each",
        "concurrency": 1, "index": {"generation": index.generation}, "notes": eligibility.notes,
    }  # fmt: skip
    vectors: Any = None
    if need.channels != (BM25,):
        vectors, spent = vectors_of_questions(index, questions, embed, clock)
        if spent:
            stages["embed"] = np.full(n, spent / 1000 / max(n, 1))
    for channel in need.channels:
        if channel == BM25:
            with_bm25 = next(s for s in need.setups if BM25 in s.channels)
            made: Any = lexical_of(index, questions, with_bm25.settings())
            manifest["bm25"] = {**made.settings, "count_repeats": with_bm25.count_repeats}
            stages["analyse"] = timed(made.analyse, n, clock)
        elif channel == DENSE:
            ef = next(s.ef for s in need.setups if DENSE in s.channels)
            made = Approximate(index, vectors, ef)
        else:
            made = Exact(index, vectors)
        if n:  # whatever loads or compiles is no part of a latency
            made.search(0, 1, need.depth, eligibility.mask(0), 1)
            made.n_completed = 0
        found[channel] = ways.run(
            made, need.depth, eligibility, n, after=settings.filter_when == "after",
            together=False, threads=1, clock=clock, progress=progress,
        )  # fmt: skip
        if channel == DENSE:
            manifest["ann"] = {"ef_search": made.ef, "n_exact": made.n_completed, "n": n}
        stages[channel] = found[channel].duration_us
    final = found[need.channels[0]]
    for base in need.fused:
        setup = next(s for s in need.setups if s.base == base)
        final, spent_us = _fused(index, found, setup, n, clock)
        stages[FUSED if len(need.fused) == 1 else f"{FUSED}:{base}"] = spent_us
    return run_table(index, questions, found, final, need.depth, stages, manifest)


def _fused(
    index: Index, found: dict[str, Ranked], setup: Setup, n: int, clock: ways.Clock
) -> tuple[Ranked, F64]:
    """Whole lists fused, and each question's share of the time."""
    lists = {name: found[name] for name in setup.channels}
    if n:
        fused_lists(index, lists, setup.settings(), 1)
    began = clock()
    final, _ = fused_lists(index, lists, setup.settings(), n)
    return final, np.full(n, (clock() - began) / 1000 / max(n, 1))


def rerank(
    recording: Recording, setups: list[Setup], reranker: Reranker, progress: Progress,
    clock: ways.Clock = time.perf_counter_ns,
) -> tuple[Ranked, F64, list[str]]:  # fmt: skip
    """Scores of all candidates that any of some setups would have reranked, best first.

    Also the microseconds of each question: of all of its candidates, which may be more than one
    setup has; and what was noticed.
    """
    texts, questions = recording.pool.texts, recording.questions
    assert texts is not None
    assert questions.texts is not None
    n = len(questions)
    wanted: list[set[int]] = [set() for _ in range(n)]
    for setup in setups:
        if recording.lacks(replace(setup, strategy=setup.base)):
            continue
        for i, rows in enumerate(candidates(recording, setup)):
            wanted[i] |= set() if rows is None else set(rows.tolist())
    out, spent = Ranked([], [], np.zeros(n)), np.zeros(n)
    probe = next((i for i in range(n) if len(wanted[i]) > 1), -1)
    alone, notes = np.empty(0), list[str]()
    if probe >= 0:  # whatever loads is no part of a latency
        alone, _ = scored(reranker, questions.texts[probe], [texts[min(wanted[probe])]], clock)
    for i in range(n):
        progress("reranking", i, n)
        rows = sorted(wanted[i])
        scores, spent[i] = scored(reranker, questions.texts[i], [texts[r] for r in rows], clock)
        if i == probe and not np.isclose(scores[0], alone[0], rtol=1e-2, atol=1e-4):
            notes.append(
                f"reranker {reranker.name} scores a candidate by the others beside it (alone "
                f"{alone[0]:.6g}, among {len(rows)} {scores[0]:.6g}): rows with fewer candidates "
                "are no runs of their own"
            )
        order = np.lexsort((np.array(rows, np.int64), -scores))
        out.rows.append(np.array(rows, np.int32)[order])
        out.scores.append(scores[order])
    return out, spent, notes


def extended(
    recording: Recording,
    reranked: Ranked,
    spent: F64,
    reranker: str,
    notes: list[str] | None = None,
) -> pa.Table:
    """The case batch of a recording with a stage `reranked`."""
    manifest = recording.manifest | {"reranker": reranker, "noticed": notes or []}
    lists = {**recording.lists, RERANKED_STAGE: reranked}
    timings = {**recording.timings, RERANKED_STAGE: spent}
    stages = {k: v for k, v in timings.items() if k not in WHOLE and not np.isnan(v).any()}
    first = next(name for name in CHANNELS if name in lists)
    return run_table(
        recording.pool, recording.questions, lists, lists[first],
        max(recording.depth.values()), stages, manifest,
    )  # fmt: skip
