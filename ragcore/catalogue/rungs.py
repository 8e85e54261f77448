"""One rung of a suite's ladder: a strategy in a scope, searched, and what that costs and leaves."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.aggregates import form_of
from ragcore.casewise import by_case, reduce
from ragcore.catalogue.entries import Scope
from ragcore.filters import Eligibility, Filter
from ragcore.footprint import size_of
from ragcore.index.opened import Index
from ragcore.latency import durations, nearest_rank
from ragcore.lists import lists_of
from ragcore.questions import Questions
from ragcore.report.table import whole_file, write_arrow
from ragcore.saturation import Saturation, saturation
from ragcore.scores import Scores
from ragcore.search import search
from ragcore.search_settings import Settings
from ragcore_kernels.layout import F64


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
    pools : by case, how many chunks each of its questions may retrieve; empty if not known.
    valued : cases with a value of the primary measure; None before scoring.
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
    pools: dict[str, list[int]] = field(default_factory=dict)
    valued: frozenset[str] | None = None
    room: dict[str, Saturation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def pool(self) -> float:
        """Mean number of chunks that a question may retrieve; NaN if not known."""
        sizes = [size for own in self.pools.values() for size in own]
        return sum(sizes) / len(sizes) if sizes else math.nan

    def random(self, k: int, cases: Collection[str] | None = None) -> float:
        """Recall at `k` of a random ranking, a mean over cases; NaN if not known.

        Parameters
        ----------
        cases : whose mean it is; None for those with a value of the primary measure.
        """
        over = self.valued if cases is None else cases
        chosen = [own for name, own in self.pools.items() if over is None or name in over]
        shares = [sum(min(1.0, k / n) if n else 0.0 for n in own) / len(own) for own in chosen]
        return math.fsum(shares) / len(shares) if shares else math.nan


def search_rung(
    rung: Rung, index: Index, questions: Questions, candidate_k: int, context_k: int, out: Path
) -> None:
    """Run one rung, write its run to `out`, and note what it costs."""
    filters = tuple(Filter.parse(text) for text in rung.scope.filters)
    settings = Settings(rung.strategy, candidate_k, context_k, filters=filters)
    began = time.perf_counter()
    found = search(index, questions, settings, name=rung.name)
    rung.seconds, rung.notes = time.perf_counter() - began, found.notes
    with whole_file(out) as stream:
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


def _pools(index: Index, questions: Questions, filters: list[Filter]) -> dict[str, list[int]]:
    """How many chunks each question may retrieve, by case."""
    sizes = np.zeros(len(questions), np.int64)
    for rows, mask in Eligibility(index, questions, filters).groups(len(questions)):
        sizes[rows] = index.n_chunks if mask is None else int(mask.sum())
    out: dict[str, list[int]] = {}
    for name, size in zip(questions.case_ids, sizes.tolist(), strict=True):
        out.setdefault(name, []).append(size)
    return out


def measure_rooms(scores: Scores, rungs: list[Rung]) -> None:
    """What each run leaves, on every measure that has a best value.

    Where questions look among pools of different sizes, the pool of the rule is the one in which a
    random ranking finds as much as it does on average over the cases with a value.
    """
    for run, rung in zip(scores.runs, rungs, strict=True):
        most: F64 = run.ceilings()
        tops = reduce(most, np.zeros(most.shape, np.int8), run.case_of)
        own = by_case(run)
        for m, one in enumerate(run.measures):
            has = own.states[m] == schema.OK
            cases = frozenset(run.case_names[code] for code in own.keys[has].tolist())
            if m == 0:
                rung.valued = cases
            if one.definition.better != "more" or not form_of(one.aggregate).paired:
                continue
            chance = rung.random(one.k, cases) if one.k else 0.0
            pool = one.k / chance if chance > 0.0 else None
            rung.room[one.text] = saturation(own.values[m, has], tops.values[m, has], one.k, pool)
