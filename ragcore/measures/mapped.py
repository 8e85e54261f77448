"""Ranked measures over evidence whose items and chunks are not one to one.

The judged documents of a case are then the chunks that contain any of its items. A hit of one of
them becomes three: see `ragcore_kernels.items`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ragcore.columns import Rows
from ragcore.errors import UsageError
from ragcore.evidence import Evidence
from ragcore.measures.engine import Hits
from ragcore.measures.ranked import Specification
from ragcore.suites import Suite, rows_of
from ragcore.threads import run_split
from ragcore.units import Vocabulary
from ragcore_kernels import items as kernel
from ragcore_kernels import measures as kernel_measures
from ragcore_kernels.layout import F64, I64

NAMED = 5  # stale items named in a sentence


@dataclass
class ItemLabels:
    """Items of evidence by row of the cases, and the chunks that hold them.

    Attributes
    ----------
    offsets, grades : (n_cases + 1,) and int32, the items of each case.
    chunks : (n_cases + 1,), chunks of each case that hold an item: the judged documents.
    held, holds : (n_chunks + 1,) and flat, items of its case that each chunk holds, from 0.
    ideal, counts, top : judged grades falling, case by case; how many, and the highest, -1 for
        none.
    notes, sentences : counts by name, and sentences for people.
    """

    offsets: I64
    grades: Any
    chunks: I64
    held: I64
    holds: I64
    ideal: Any = None
    counts: Any = None
    top: Any = None
    notes: dict[str, int] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        n = self.offsets.size - 1
        owners = np.repeat(np.arange(n), np.diff(self.offsets))
        falling = np.lexsort((-self.grades.astype(np.int64), owners))
        self.ideal = np.ascontiguousarray(self.grades[falling])
        self.counts = np.bincount(owners[self.grades >= 0], minlength=n).astype(np.int64)
        self.top = np.full(n, -1, np.int64)
        np.maximum.at(self.top, owners, self.grades.astype(np.int64))

    def over(self, hits: Hits) -> MappedHits:
        """Hits of chunks as hits over the items that they hold."""
        return over_items(hits)

    def useful(self, rel: int) -> I64:
        """(n_cases,), chunks that hold an item of a grade from `rel` on."""
        n = self.offsets.size - 1
        owners = np.repeat(np.arange(n), np.diff(self.chunks))
        chunk = np.repeat(np.arange(owners.size), np.diff(self.held))
        relevant = self.grades[self.offsets[owners[chunk]] + self.holds] >= rel
        return np.bincount(owners[np.unique(chunk[relevant])], minlength=n).astype(np.int64)


def item_labels(
    suite: Suite, evidence: Evidence, vocabulary: Vocabulary, which: Any, grades: I64
) -> tuple[Rows, ItemLabels]:
    """Judgements by item: the chunks that hold those in `which`, and the items behind them.

    Parameters
    ----------
    which : (n_items,), items that count.
    grades : (n_items,), of every item.
    """
    n = evidence.offsets.size - 1
    at = np.flatnonzero(which)
    cases = evidence.cases[at]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(cases, minlength=n))]).astype(np.int64)
    sizes = np.diff(evidence.covers)[at]
    local = np.repeat(np.arange(at.size) - offsets[cases], sizes)
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    units = evidence.units[np.repeat(evidence.covers[at], sizes) + inside]
    owner = np.repeat(cases, sizes)
    width = int(units.max(initial=0)) + 1
    keys, chunk = np.unique(owner * width + units, return_inverse=True)
    order = np.lexsort((local, chunk))
    held = np.concatenate([[0], np.cumsum(np.bincount(chunk, minlength=keys.size))])
    of_case = np.bincount(keys // width, minlength=n)
    chunks = np.concatenate([[0], np.cumsum(of_case)]).astype(np.int64)
    segments = np.zeros((n, 3), np.int64)
    segments[:, 1], segments[:, 2] = chunks[:-1], of_case
    places = np.arange(keys.size) - chunks[keys // width]
    rows = rows_of(suite, vocabulary.names(keys % width), places.astype(np.int32), segments)
    return rows, ItemLabels(
        offsets, grades[at].astype(np.int32), chunks, held.astype(np.int64),
        np.ascontiguousarray(local[order], np.int64),
    )  # fmt: skip


def labelled(
    suite: Suite, evidence: Evidence, vocabulary: Vocabulary, required: bool
) -> tuple[Rows, ItemLabels, Any]:
    """Judgements by item, of all evidence or of what is required, with what there is to say.

    Also which cases have nothing but stale items to be judged by, (n_cases,) bool.
    """
    which = evidence.required & ~evidence.stale if required else evidence.scored
    lost = evidence.stale & evidence.needed if required else evidence.stale
    grades = np.ones_like(evidence.relevance) if required else evidence.relevance
    rows, items = item_labels(suite, evidence, vocabulary, which, grades)
    if not required:
        items.notes, items.sentences = noticed(suite, evidence)
    n = evidence.offsets.size - 1
    left = np.bincount(evidence.cases[which], minlength=n) > 0
    return rows, items, (np.bincount(evidence.cases[lost], minlength=n) > 0) & ~left


def noticed(suite: Suite, evidence: Evidence) -> tuple[dict[str, int], list[str]]:
    """Counts of evidence that is stale or in no chunk, and sentences that name the first few."""
    stale = evidence.stale_items(suite.cases)
    nowhere = evidence.scored & ~evidence.absent & (np.diff(evidence.covers) == 0)
    notes = {"evidence items stale": len(stale), "evidence items in no chunk": int(nowhere.sum())}
    said = []
    if stale:
        named = "; ".join(
            f"{s['case_id']!r} item {s['item']} of {s['doc_id']!r} ({s['why']})"
            for s in stale[:NAMED]
        )
        more = f"; and {len(stale) - NAMED} more" if len(stale) > NAMED else ""
        said.append(f"{len(stale)} evidence item(s) stale, not scored: {named}{more}")
    if nowhere.any():
        said.append(f"{int(nowhere.sum())} evidence item(s) that no chunk contains: never covered")
    return notes, said


@dataclass
class _Spread:
    """The three lists of hits of every ranking."""

    ranks: Any
    best: Any
    fresh: Any
    item_ranks: Any
    item_grades: Any
    stats: I64
    item_stats: I64


@dataclass
class MappedHits(Hits):
    """Hits of chunks, evaluated over the items that they hold."""

    room: Any = None
    spreads: dict[bool, _Spread] = field(default_factory=dict)

    @property
    def ideal_offsets(self) -> I64:
        """(n_groups + 1,), where the judged grades of each case begin in `ideal`."""
        return self.labels.items.offsets

    @property
    def judged_counts(self) -> I64:
        """(n,), judged items of each ranking's case."""
        label, counts = self.rankings.label_of, self.labels.items.counts
        return np.where(label >= 0, counts[label] if counts.size else 0, 0)

    def spread(self, condense: bool) -> _Spread:
        """The three lists, without chunks that hold no judged item if `condense`."""
        if condense in self.spreads:
            return self.spreads[condense]
        items, n = self.labels.items, int(self.room[-1])
        size = self.ranks.size
        found = _Spread(
            np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size, np.int32),
            np.zeros(n, np.int32), np.zeros(n, np.int32), np.empty_like(self.stats),
            np.empty_like(self.stats),
        )  # fmt: skip

        def work(begin: int, end: int) -> None:
            kernel.spread(
                begin, end, self.rankings.label_of, self.offsets, self.ranks, self.grades,
                self.stats, items.chunks, items.held, items.holds, items.offsets, items.grades,
                int(condense), self.options.max_depth, self.room, found.ranks, found.best,
                found.fresh, found.item_ranks, found.item_grades, found.stats, found.item_stats,
            )  # fmt: skip

        run_split(work, len(self.rankings), len(self.cuts) - 1, self.cuts)
        self.spreads[condense] = found
        return found

    def fill(self, spec: Specification, out: F64, quotients: F64) -> None:
        """Every row of a specification, each from the hits that it reads."""
        space = np.array(
            [kernel.space_of(int(kind)) for kind in spec.spec[:, kernel_measures.KIND]]
        )
        if (space == kernel.NEITHER).any():
            raise UsageError(
                "infAP has no meaning where chunks hold several items of evidence, or items lie "
                "in several chunks", "AP has",
            )  # fmt: skip
        condensed = spec.spec[:, kernel_measures.JUDGED_ONLY] == 1
        n = len(self.rankings)
        for condense in np.unique(condensed).tolist():
            for one in np.unique(space[condensed == condense]).tolist():
                at = np.flatnonzero((space == one) & (condensed == condense))
                rows = spec.spec[at].copy()
                rows[:, kernel_measures.JUDGED_ONLY] = 0
                values = np.empty((at.size, n))
                parts = np.empty((2, at.size, n if quotients.shape[2] else 0))
                self._fill(one, condense, (rows, spec.params[at], spec.gains), values, parts)
                out[at] = values
                if quotients.shape[2]:
                    quotients[:, at] = parts

    def _fill(
        self, space: int, condense: bool, spec: tuple[Any, Any, Any], out: F64, parts: F64
    ) -> None:
        hits, items = self.spread(condense), self.labels.items
        depth = self.options.max_depth
        label = self.rankings.label_of

        def work(begin: int, end: int) -> None:
            if space == kernel.BOTH:
                kernel.evaluate(
                    spec[0], spec[1], depth, begin, end, label, self.offsets, hits.ranks,
                    hits.best, hits.stats, self.room, hits.item_ranks, hits.item_grades,
                    hits.item_stats, items.offsets, items.ideal, out, parts,
                )  # fmt: skip
                return
            if space == kernel.ITEMS:
                given = self.room, hits.item_ranks, hits.item_grades
                stats = hits.item_stats
            else:
                given = (
                    self.offsets,
                    hits.ranks,
                    hits.best if space == kernel.CHUNKS else hits.fresh,
                )
                stats = hits.stats
            kernel_measures.evaluate(
                *spec, depth, begin, end, label, *given, items.offsets, items.ideal, stats, out,
                parts,
            )  # fmt: skip

        run_split(work, len(self.rankings), len(self.cuts) - 1, self.cuts)


def over_items(hits: Hits) -> MappedHits:
    """Hits of chunks as hits over the items that they hold."""
    items, label = hits.labels.items, hits.rankings.label_of
    known = label >= 0
    sizes = np.where(known, np.diff(items.offsets)[label] if items.counts.size else 0, 0)
    room = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    top = np.where(known, items.top[label] if items.counts.size else -1, -1)
    return MappedHits(
        hits.labels, hits.rankings, hits.offsets, hits.ranks, hits.grades, items.ideal,
        hits.stats, top, sizes == 0, hits.cuts, hits.options, room,
    )  # fmt: skip
