"""Drives the ranking kernels: one run against the judgements, over threads.

Here rankings get their judgements, and what is wrong with one becomes an error that names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore.columns import CaseCodes, Rows
from ragcore.dictionaries import as_words
from ragcore.errors import InputError, UsageError
from ragcore.measures.ranked import Specification
from ragcore.measures.rankings import Labels, Rankings
from ragcore.strings import outside
from ragcore.threads import run_split
from ragcore_kernels import measures as kernel_measures
from ragcore_kernels import ranking as kernel
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.ranking import CONFLICTING_GRADES, DUPLICATE_ROW, NAN_SCORE, UNTIDY

DUPLICATES = ("error", "first", "last", "max")
SERIAL_ROWS = 400_000  # below this, a second thread costs more than it brings


@dataclass
class Options:
    """How rankings are read; see `ragcore.score`."""

    duplicates: str = "error"
    drop_identical_ids: bool = False
    max_depth: int = 0
    threads: int = 1


@dataclass
class Hits:
    """What the kernels found: hits of every ranking, and the rest that measures need.

    `top` is the highest grade among the judgements of each ranking's case, -1 without any >= 0;
    `unlabelled` is True where the case has no judgement at all.
    """

    labels: Labels
    rankings: Rankings
    offsets: I64
    ranks: Any
    grades: Any
    ideal: Any
    stats: I64
    top: I64
    unlabelled: Any
    cuts: list[int]
    options: Options

    @property
    def ideal_offsets(self) -> I64:
        """(n_groups + 1,), where the judged grades of each case begin in `ideal`."""
        return self.labels.row_offsets

    @property
    def judged_counts(self) -> I64:
        """(n,), judged grades of each ranking's case."""
        return self.stats[:, kernel.N_JUDGED]

    def evaluate(self, spec: Specification, parts: bool = False) -> tuple[F64, F64]:
        """Values (n_measures, n_rankings), and numerators and denominators if wanted."""
        n_rows, n = spec.spec.shape[0], len(self.rankings)
        out = np.empty((n_rows, n))
        quotients = np.empty((2, n_rows, n if parts else 0))
        self.fill(spec, out, quotients)
        if spec.plain:
            return out, quotients
        values = spec.means(out)
        if parts:
            quotients = np.stack(
                [[q[r][0] if r.stop - r.start == 1 else np.full(n, np.nan) for r in spec.rows]
                 for q in quotients]
            )  # fmt: skip
        return values, quotients

    def fill(self, spec: Specification, out: F64, quotients: F64) -> None:
        """Every row of a specification; see `ragcore_kernels.measures.evaluate`."""

        def work(begin: int, end: int) -> None:
            kernel_measures.evaluate(
                spec.spec, spec.params, spec.gains, self.options.max_depth, begin, end,
                self.rankings.label_of, self.offsets, self.ranks, self.grades,
                self.labels.row_offsets, self.ideal, self.stats, out, quotients,
            )  # fmt: skip

        run_split(work, len(self.rankings), len(self.cuts) - 1, self.cuts)


def find_hits(rows: Rows, labels: Labels, rankings: Rankings, options: Options) -> Hits:
    """Ranks and grades of the judged documents in every ranking of a run.

    Raises
    ------
    InputError
        If a score is NaN, a document stands twice in a ranking (unless `options` mend that) or
        is judged twice with different grades.
    """
    n = len(rankings)
    sizes = np.diff(labels.row_offsets)
    room = np.where(rankings.label_of >= 0, sizes[rankings.label_of] if sizes.size else 0, 0)
    offsets = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
    ranks = np.empty(int(offsets[-1]), np.int32)
    grades = np.empty(int(offsets[-1]), np.int32)
    ideal = np.empty(int(labels.row_offsets[-1]), np.int32)
    stats = np.empty((n, kernel.STAT_FIELDS), np.int64)
    cuts = _cuts(rankings, rows.n_rows, options.threads)
    words = as_words(rows.ids, labels.rows.ids, options.threads)
    run_ids, judged_ids, _alive = words or (rows.ids.table, labels.rows.ids.table, [])
    shared = (
        rows.ids.table, rows.values, rankings.segments, rankings.offsets,
        labels.rows.ids.table, labels.grades, labels.segments, labels.offsets, rankings.label_of,
    )  # fmt: skip

    def work(begin: int, end: int) -> None:
        kernel.find_hits(
            run_ids, *shared[:4], judged_ids, *shared[5:], begin, end, rows.order, offsets,
            ranks, grades, labels.row_offsets, ideal, stats,
        )  # fmt: skip

    run_split(work, n, len(cuts) - 1, cuts)
    problem = stats[:, kernel.PROBLEM]
    mend = problem == UNTIDY
    if options.duplicates != "error":
        mend |= problem == DUPLICATE_ROW
    if options.drop_identical_ids:
        mend |= (problem != NAN_SCORE) & (problem != CONFLICTING_GRADES)
        if options.duplicates == "error":
            mend &= problem != DUPLICATE_ROW
    if mend.any():
        from ragcore_kernels import order

        own = np.empty((0, 2), np.int64)
        if options.drop_identical_ids:
            own = own_ids(rows, rankings)
        order.tidy(
            *shared, np.flatnonzero(mend), rows.order, DUPLICATES.index(options.duplicates), own,
            offsets, ranks, grades, stats,
        )  # fmt: skip
    if problem.any():
        _raise_problem(rows, labels, rankings, stats)
    has = (rankings.label_of >= 0) & (stats[:, kernel.N_JUDGED] > 0)
    top = np.full(n, -1, np.int64)
    top[has] = ideal[labels.row_offsets[rankings.label_of[has]]]
    hits = Hits(
        labels, rankings, offsets, ranks, grades, ideal, stats, top, room == 0, cuts, options
    )
    return hits if labels.items is None else labels.items.over(hits)


def _cuts(rankings: Rankings, n_rows: int, threads: int) -> list[int]:
    """Where to split the rankings so that each thread gets about as many rows."""
    n = len(rankings)
    if threads <= 1 or n_rows < SERIAL_ROWS or n < 2:
        return [0, n]
    rows = np.concatenate([[0], np.cumsum(rankings.segments[:, 2])])[rankings.offsets]
    wanted = rows[-1] * np.arange(1, threads) // threads
    inner = np.searchsorted(rows, wanted).tolist()
    return [0, *(int(i) for i in inner), n]


def own_ids(rows: Rows, rankings: Rankings) -> I64:
    """Address and length of the case id of each ranking, as the run writes it."""
    own = np.zeros((len(rankings), 2), np.int64)
    own[:, 1] = -1
    names = CaseCodes()
    first = names.add(rows.case_ids, rows.case_at)
    where = rankings.row_of if rows.traces is not None else None
    if where is not None:
        known = where >= 0
        own[known] = names.keys[first[where[known]]]
        return own
    starts = rankings.offsets[:-1]
    filled = rankings.offsets[1:] > starts
    key = {tuple(s): c for s, c in zip(rows.segments[:, :2].tolist(), first.tolist(), strict=True)}
    for t in np.flatnonzero(filled):
        own[t] = names.keys[key[tuple(rankings.segments[starts[t], :2].tolist())]]
    return own


def _raise_problem(rows: Rows, labels: Labels, rankings: Rankings, stats: I64) -> None:
    """Raise for the fault that comes first in its file."""
    faults = [
        (int(kind), int(stats[t, kernel.PROBLEM_A]), int(stats[t, kernel.PROBLEM_B]), int(t))
        for t in np.flatnonzero(stats[:, kernel.PROBLEM])
        if (kind := stats[t, kernel.PROBLEM]) != UNTIDY
    ]
    if not faults:
        return
    if any(kind == kernel.OUTSIDE for kind, *_ in faults):
        raise outside(rows.where, min(a for kind, a, *_ in faults if kind == kernel.OUTSIDE))
    first = {}
    for kind, a, b, _ in faults:
        place = (b if kind != NAN_SCORE else a, a)
        first[kind] = min(place, first.get(kind, place))
    if CONFLICTING_GRADES in first:
        b, a = first[CONFLICTING_GRADES]
        case, document = _names(labels.rows, b)
        raise InputError(
            labels.rows.where, f"document {document!r} of case {case!r} is judged twice with "
            f"different grades (also {_place(labels.rows, a)})", "one grade for each document",
            "keep the right one", **labels.rows.position(b),
        )  # fmt: skip
    if NAN_SCORE in first:
        row, _ = first[NAN_SCORE]
        case, document = _names(rows, row)
        raise InputError(
            rows.where, f"score of document {document!r} of case {case!r} is NaN", "a number",
            "a NaN has no place in an order: drop the row or give it a score",
            **rows.position(row),
        )  # fmt: skip
    b, a = first[DUPLICATE_ROW]
    case, document = _names(rows, b)
    raise InputError(
        rows.where, f"duplicate document {document!r} of case {case!r} (also {_place(rows, a)})",
        "each document once in a ranking", "keep one with --duplicates first, last or max",
        **rows.position(b),
    )  # fmt: skip


def _place(rows: Rows, row: int) -> str:
    (kind, number), *_ = rows.position(row).items()
    return f"{kind} {number}"


def _names(rows: Rows, row: int) -> tuple[str, str]:
    """Case id and document id of a row of the whole column."""
    base = rows.ids.table[:, 7]
    piece = int(np.searchsorted(base, row, side="right")) - 1
    inside = row - int(base[piece])
    mine = rows.segments[:, 0] == piece
    starts = rows.segments[:, 1]
    owner = np.flatnonzero(mine & (starts <= inside) & (inside < starts + rows.segments[:, 2]))
    segment = int(owner[0])
    at = rows.case_at[segment if rows.trace_of is None else int(rows.trace_of[segment])]
    return rows.case_ids.text(*at.tolist()), rows.ids.text(piece, inside)


def check_scale(measures: list[Any], hits: Hits) -> None:
    """Refuse ERR on grades above its scale.

    Raises
    ------
    UsageError
        If a judged grade is higher than `max`.
    """
    for one in measures:
        highest = int(hits.top.max(initial=-1))
        if one.definition.name == "ERR" and highest > one.params["max"]:
            raise UsageError(
                f"measure {one.text!r}: grade {highest} is above its scale 0..{one.params['max']}",
                f"say the scale: ERR(max={highest})@{one.k or 20}",
            )
