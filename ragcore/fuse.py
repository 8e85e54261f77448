"""`ragcore.fuse`: wide lists of several runs, or of several stages of one, become one ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ragcore import channels as inputs
from ragcore.channels import Cases, Channel
from ragcore.errors import InputError, UsageError
from ragcore.fused import Agreement, Facts, Fused, Settings, assemble, notes_on
from ragcore.strings import outside
from ragcore.threads import default_threads, in_threads
from ragcore_kernels import fusion as kernel
from ragcore_kernels._jit import address_of
from ragcore_kernels.copying import copy_ids
from ragcore_kernels.layout import I64
from ragcore_kernels.lists import NAN_SCORE, OUTSIDE
from ragcore_kernels.normalised import NORMALISATIONS
from ragcore_kernels.overlap import AGREEMENTS
from ragcore_kernels.sums import exact_sum

BLOCK_ROWS = 262_144  # rows of all lists that are fused at once, and then are one chunk
SERIAL_ROWS = 200_000  # below this, one thread is quicker
PERSISTENCE = 0.9  # of rank-biased overlap
MOST_BYTES = 2**31 - 1


def fuse(
    runs: Any,
    *,
    method: str = "rrf",
    rrf_k: float = 60,
    weights: Sequence[float] | None = None,
    normalise: str = "min-max",
    depth: int | None = None,
    stage: str | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    name: str = "fused",
    stages: bool = True,
    overlap_depth: int | None = None,
    threads: int | None = None,
) -> Fused:
    """Fuse whole lists and cut once.

    Parameters
    ----------
    runs : paths, Arrow tables or streams, or mappings ``{case: {id: score}}``; or one of them. A
        case batch is ranked in its recorded order, flat rows by score, then id, descending.
    method : ``rrf``, the sum of w / (rrf_k + rank) over the lists that hold a document;
        ``combsum``, of w times the normalised score; ``combmnz``, that times the number of lists
        that hold it. A document that a list lacks gets nothing from it.
    rrf_k : 0 or more; ranks count from 1.
    weights : one a list, 0 or more; None = all 1.
    normalise : for ``combsum`` and ``combmnz``, within each list: ``min-max``,
        (s - min) / (max - min); ``z-score``, (s - min) / standard deviation of the population, so
        that what a list lacks counts as its last; ``rank``, 1 - (rank - 1) / n. A list whose
        scores are all equal has 1 throughout.
    depth : documents kept of every fused list (the manifest's `context_k`); None = all.
    stage : fuse these recorded stages instead of final rankings: one name for all runs, one for
        each run, or several of a single run.
    names : of the lists; None = the runs' or stages' own.
    name : of the fused run.
    stages : record every input list in the result, in rank order, each document once.
    overlap_depth : depth at which the agreement of each pair of lists is measured; None = `depth`,
        else the manifests' `context_k`, else 10; 0 = not at all.
    threads : None = all processors. The result is the same, to the last bit.

    Returns
    -------
    Fused

    Raises
    ------
    InputError
        If a run cannot be read or holds what it must not: a NaN score, an infinite or missing one
        where scores are normalised, a trace twice.
    UsageError
        If an argument cannot be honoured.

    Notes
    -----
    Order: fused score, then best single rank, then id descending byte-wise. A document twice in a
    list keeps its best place and ranks close up behind it, which is noted. Cases that only some
    lists have are kept, and noted.

    References
    ----------
    Cormack, Clarke, Buettcher, Reciprocal rank fusion, SIGIR 2009; Fox, Shaw, Combination of
    multiple searches, TREC-2, 1994; Webber, Moffat, Zobel, A similarity measure for indefinite
    rankings, 2010.

    Examples
    --------
    >>> ragcore.fuse(["bm25.arrow", "dense.arrow"], depth=5).write("hybrid.arrow")
    """
    workers = threads or default_threads()
    chosen = [stage] if isinstance(stage, str) else list(stage or ())
    settings = Settings(
        method, float(rrf_k), (), normalise, depth, name, stages, overlap_depth, workers
    )
    _check(settings)
    lists = inputs.open_channels(runs, chosen, names, workers)
    settings.weights = _weights(weights, len(lists))
    _check_scores(settings, lists)
    settings.find_overlap_depth(lists)
    cases = inputs.join(lists)
    job = _Job(settings, lists, cases)
    blocks = job.run()
    facts = [
        Facts(
            one.name, int((cases.presence[:, c] == inputs.HAS).sum()),
            int(((cases.presence[:, c] == inputs.HAS) & (job.lengths[:, c, 0] == 0)).sum()),
            int(job.lengths[:, c, 0].sum()), int(job.lengths[:, c, 0].max(initial=0)),
            int(job.lengths[:, c, 1].sum()), settings.weights[c],
        )
        for c, one in enumerate(lists)
    ]  # fmt: skip
    pairs = _agreements(settings, lists, cases, job.lengths[:, :, 0], job.agreements)
    table = assemble(settings, lists, cases, blocks, job.lengths[:, :, 0], job.counts)
    warnings, notes = notes_on(settings, lists, cases, facts, pairs)
    return Fused(table, settings, facts, pairs, warnings, notes, _files(lists))


def _files(lists: Sequence[Channel]) -> list[str]:
    return [str(one.path or one.rows.where) for one in lists]


def _check(settings: Settings) -> None:
    """Refuse settings that nothing can honour."""
    if settings.method not in kernel.METHODS:
        raise UsageError(f"method={settings.method!r}", f"one of {', '.join(kernel.METHODS)}")
    if settings.normalise not in NORMALISATIONS:
        raise UsageError(f"normalise={settings.normalise!r}", f"one of {', '.join(NORMALISATIONS)}")
    if not 0.0 <= settings.rrf_k <= 1e15:
        raise UsageError(f"rrf_k={settings.rrf_k:g}", "a number from 0 on; 60 is usual")
    if settings.depth is not None and settings.depth < 1:
        raise UsageError(f"depth={settings.depth}", "1 or more documents")
    if settings.overlap_depth is not None and settings.overlap_depth < 0:
        raise UsageError(f"overlap_depth={settings.overlap_depth}", "1 or more, or 0 for none")


def _weights(weights: Sequence[float] | None, n: int) -> tuple[float, ...]:
    if weights is None:
        return (1.0,) * n
    given = tuple(float(w) for w in weights)
    if len(given) != n:
        raise UsageError(f"{len(given)} weights for {n} lists", "one weight a list, in their order")
    for w in given:
        if not (w == 0.0 or 1e-100 <= w <= 1e100):
            raise UsageError(f"weight {w:g}", "0, or a number between 1e-100 and 1e100")
    if not any(given):
        raise UsageError("every weight is 0", "at least one above 0")
    return given


def _check_scores(settings: Settings, lists: Sequence[Channel]) -> None:
    """Refuse lists without scores where scores are needed."""
    if settings.method == "rrf" or settings.normalise == "rank":
        return
    for one in lists:
        if not one.scored:
            raise InputError(
                one.rows.where, f"no scores in list {one.name!r}",
                f"scores, which {settings.method} with {settings.normalise} adds up",
                "fuse by rank: method rrf, or normalise rank",
            )  # fmt: skip


@dataclass
class Block:
    """The fused lists of some consecutive cases, and the lists that they come from.

    Attributes
    ----------
    begin, end : the cases.
    ids, scores : (ends, bytes, n) of ids, and scores, of fused lists.
    list_ids, list_scores : the same of input lists; None where they are not kept.
    """

    begin: int
    end: int
    ids: tuple[Any, Any, int]
    scores: Any
    list_ids: tuple[Any, Any, int] | None
    list_scores: Any


@dataclass
class _Job:
    """One fusion: what the kernel needs, and what it fills."""

    settings: Settings
    lists: list[Channel]
    cases: Cases
    counts: I64 = field(init=False)
    lengths: I64 = field(init=False)
    agreements: Any = field(init=False)

    def run(self) -> list[Block]:
        """Fuse all cases; blocks in their order."""
        n, n_lists = len(self.cases.ids), len(self.lists)
        settings = self.settings
        self.table = np.concatenate([one.rows.ids.table for one in self.lists])
        self.sources = np.concatenate([one.rows.values for one in self.lists])
        self.recorded = np.array([one.rows.traces is not None for one in self.lists], np.int64)
        self.counts = np.zeros(n, np.int64)
        self.lengths = np.zeros((n, n_lists, 2), np.int64)
        pairs = n_lists * (n_lists - 1) // 2
        agree = settings.agree_depth if pairs else 0
        self.agreements = np.zeros((n, pairs, AGREEMENTS) if agree else (0, 0, AGREEMENTS))
        longest = 0
        self.high = self.low = np.zeros((1, 1))
        if settings.method == "rrf":
            longest = self._longest()
            self.high, self.low = kernel.reciprocals(settings.weights, settings.rrf_k, longest)
        self.numbers = np.array(
            [kernel.METHODS.index(settings.method), NORMALISATIONS.index(settings.normalise),
             settings.depth or 2**62, agree, settings.stages], np.int64,
        )  # fmt: skip
        totals = np.concatenate([[0], np.cumsum(self.cases.rows)])
        wanted = np.arange(BLOCK_ROWS, totals[-1], BLOCK_ROWS)
        cuts = np.unique([0, *np.searchsorted(totals, wanted).tolist(), n]).tolist()
        parts = list(pairwise(cuts)) or [(0, 0)]
        threads = settings.threads if totals[-1] >= SERIAL_ROWS else 1
        return [b for blocks in in_threads(self._blocks, parts, threads) for b in blocks]

    def _longest(self) -> int:
        totals = np.concatenate([[0], np.cumsum(self.cases.segments[:, 2])])
        return int(np.diff(totals[self.cases.offsets]).max(initial=0))

    def _blocks(self, part: tuple[int, int]) -> list[Block]:
        """One block, or several where the ids would not fit one."""
        begin, end = part
        rows = self.cases.rows[begin:end]
        n = int(np.minimum(rows, self.settings.depth or 2**62).sum())
        m = int(rows.sum()) if self.settings.stages else 0
        ends, list_ends = np.empty(n + 1, np.int32), np.empty(m + 1, np.int32)
        places, list_places = np.empty((n, 2), np.int64), np.empty((m, 2), np.int64)
        scores, list_scores = np.empty(n), np.empty(m)
        state = np.zeros(kernel.STATE_FIELDS, np.int64)
        kernel.fuse_cases(
            self.table, self.sources, self.cases.segments, self.cases.offsets, self.recorded,
            np.array(self.settings.weights), self.high, self.low, self.numbers, PERSISTENCE,
            begin, end, self.counts, ends, places, scores, self.lengths.reshape(-1, 2), list_ends,
            list_places, list_scores, self.agreements, state,
        )  # fmt: skip
        if state[kernel.PROBLEM]:
            self._raise(*state[:3].tolist())
        n_bytes, m_bytes = int(state[kernel.RANKED_BYTES]), int(state[kernel.LIST_BYTES])
        n, m = int(state[kernel.RANKED_ROWS]), int(state[kernel.LIST_ROWS])
        if max(n_bytes, m_bytes) > MOST_BYTES:
            if end - begin == 1:
                name = self.cases.name(begin)
                raise InputError(f"case {name!r}", "ids beyond 2 GiB", "shorter ids")
            middle = (begin + end) // 2
            return [*self._blocks((begin, middle)), *self._blocks((middle, end))]
        data, list_data = np.empty(n_bytes, np.uint8), np.empty(m_bytes, np.uint8)
        copy_ids(places, n, address_of(data))
        kept = None
        if self.settings.stages:
            copy_ids(list_places, m, address_of(list_data))
            kept = (list_ends, list_data, m)
        return [Block(begin, end, (ends, data, n), scores[:n], kept, list_scores[:m])]

    def _raise(self, problem: int, t: int, row: int) -> None:
        """Say what is wrong with list t, at a row of its column."""
        q, c = divmod(t, len(self.lists))
        rows = self.lists[c].rows
        if problem == OUTSIDE:
            raise outside(rows.where, row)
        case = self.cases.name(q)
        if problem == NAN_SCORE:
            raise InputError(
                rows.where, f"a score of case {case!r} is not a number", "numbers",
                "leave the document out, or give it a score", **rows.position(row),
            )  # fmt: skip
        raise InputError(
            rows.where, f"an infinite score in case {case!r}",
            f"finite scores, which {self.settings.normalise} normalises",
            "fuse by rank: method rrf, or normalise rank",
        )  # fmt: skip


def _agreements(
    settings: Settings, lists: Sequence[Channel], cases: Cases, lengths: Any, values: Any
) -> list[Agreement]:
    """Means over the cases that both lists of a pair have, and not both empty."""
    out: list[Agreement] = []
    if not len(values):
        return out
    pair = 0
    for a in range(len(lists)):
        for b in range(a + 1, len(lists)):
            both = (cases.presence[:, [a, b]] == inputs.HAS).all(1)
            both &= lengths[:, [a, b]].any(1)
            n = int(both.sum())
            means = [
                exact_sum(np.ascontiguousarray(values[both, pair, m])) / n if n else math.nan
                for m in range(AGREEMENTS)
            ]
            out.append(Agreement(lists[a].name, lists[b].name, settings.agree_depth, n, *means))
            pair += 1
    return out
