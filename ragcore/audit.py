"""Approximate search against exact search: recall by slice and ef, verdict of the worst slice.

An audit answers whether the lists of an approximate index hold a target recall everywhere, not on
the average: a broken shard or a narrow filter hides in a mean over all queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragcore.audit_lists import (
    EPS,
    ListComparison,
    SelfRecall,
    compare_lists,
    exact_pass,
    join,
    self_recall,
)
from ragcore.errors import UsageError
from ragcore.stats import Paired, mean, paired
from ragcore_kernels.binomial import clopper_pearson

__all__ = [
    "ALL", "EPS", "Audit", "ListComparison", "Point", "SelfRecall", "SliceAudit", "audit_table",
    "compare_lists", "exact_pass", "join", "loss", "self_recall", "slices_of",
]  # fmt: skip

ALL = "all"
"""Slice of all queries; every audit has it."""

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"

ASSUMPTION = (
    "low_hits takes hits as independent; low divides them by the design effect of queries, and "
    "cannot see one where no hit is missed"
)

SCHEMA = pa.schema([
    ("slice", pa.string()), ("ef", pa.int64()), ("k", pa.int64()), ("recall", pa.string()),
    ("n_queries", pa.int64()), ("n_na", pa.int64()), ("mean", pa.float64()),
    ("minimum", pa.float64()), ("hits", pa.int64()), ("wanted", pa.int64()),
    ("low_hits", pa.float64()), ("design_effect", pa.float64()), ("low", pa.float64()),
    ("n_below", pa.int64()), ("share_below", pa.float64()), ("low_share", pa.float64()),
    ("short_lists", pa.int64()), ("missing", pa.int64()), ("not_findable", pa.int64()),
    ("ties_at_k", pa.int64()), ("gap", pa.float64()), ("queries_per_s", pa.float64()),
    ("target", pa.float64()), ("level", pa.float64()), ("verdict", pa.string()),
    ("reason", pa.string()),
])  # fmt: skip
"""Columns of `Audit.table`; each is the attribute of `SliceAudit` of that name."""


@dataclass(frozen=True)
class SliceAudit:
    """What the lists of one slice and one ef are worth.

    Attributes
    ----------
    slice, ef, k : name of the slice; what the search was given; entries of a list that count.
    recall : ``id``, ``distance`` or ``distinct``; see `ListComparison`.
    n_queries, n_na : queries of the slice with an exact neighbour, which all else is about; and
        those without.
    mean, minimum : of the recall of queries; None without a query.
    hits, wanted : summed over queries: numerator and denominator of the pooled recall.
    low_hits : Clopper-Pearson lower bound of the pooled recall, one-sided at `level`, as if hits
        were independent.
    design_effect : by how much hits of one query go together: variance of the pooled recall over
        that of independent hits, 1 at least.
    low : as `low_hits` with hits and trials divided by the design effect; decides the verdict.
    n_below, share_below : queries whose recall is below `target`.
    low_share : Clopper-Pearson lower bound, one-sided at `level`, of the share of queries at or
        above `target`; assumes that queries are a random sample, and nothing else.
    short_lists, missing : lists with fewer rows than there are exact neighbours; rows they lack.
    not_findable : entries that are ineligible, deleted or unknown.
    ties_at_k : queries where a vector beyond the k-th ties with it; None if scores were not taken.
    gap : mean over queries of exact less listed score; None if unknown.
    queries_per_s : as timed by the caller, for all queries; None if not.
    target, level : asked for.
    verdict : ``fail`` if the mean is below the target, ``pass`` if `low` is not, else
        ``inconclusive``; `reason` says why.

    References
    ----------
    Korn & Graubard, Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data, Survey Methodology 24(2), 1998: the effective sample size.
    """

    slice: str
    ef: int
    k: int
    recall: str
    n_queries: int
    n_na: int
    mean: float | None
    minimum: float | None
    hits: int
    wanted: int
    low_hits: float | None
    design_effect: float | None
    low: float | None
    n_below: int
    share_below: float | None
    low_share: float | None
    short_lists: int
    missing: int
    not_findable: int
    ties_at_k: int | None
    gap: float | None
    queries_per_s: float | None
    target: float
    level: float
    verdict: str
    reason: str


@dataclass(frozen=True)
class Point:
    """Recall against speed at one ef, over all queries."""

    ef: int
    mean: float | None
    worst: float | None
    queries_per_s: float | None


@dataclass(frozen=True)
class Audit:
    """Every slice at every ef; ef ascending, the slice of all queries first."""

    rows: tuple[SliceAudit, ...]
    target: float
    level: float

    @property
    def efs(self) -> list[int]:
        """Each ef, ascending."""
        return sorted({row.ef for row in self.rows})

    def at(self, ef: int) -> list[SliceAudit]:
        """Rows of one ef."""
        return [row for row in self.rows if row.ef == ef]

    def worst(self, ef: int) -> SliceAudit:
        """The slice with the worst verdict, then the least mean, then the least bound."""
        rank = {FAIL: 0, INCONCLUSIVE: 1, PASS: 2}

        def key(row: SliceAudit) -> tuple[int, float, float]:
            if row.mean is None or row.low is None:
                return rank[row.verdict], 2.0, 2.0
            return rank[row.verdict], row.mean, row.low

        return min(self.at(ef), key=key)

    def verdict(self, ef: int) -> str:
        """That of the worst slice; as all must pass, no bound is corrected for their number."""
        return self.worst(ef).verdict

    @property
    def smallest_ef(self) -> int | None:
        """Least ef at which every slice passes; None if there is none."""
        return next((ef for ef in self.efs if self.verdict(ef) == PASS), None)

    @property
    def curve(self) -> list[Point]:
        """Recall of all queries and of the worst slice against queries a second."""
        points = []
        for ef in self.efs:
            every = self.at(ef)[0]
            least = [row.mean for row in self.at(ef) if row.mean is not None]
            points.append(Point(ef, every.mean, min(least, default=None), every.queries_per_s))
        return points

    def table(self) -> pa.Table:
        """Rows as `SCHEMA`; what is unknown is null."""
        columns = {name: [getattr(row, name) for row in self.rows] for name in SCHEMA.names}
        return pa.table(columns, schema=SCHEMA)


def audit_table(
    lists: Mapping[int, ListComparison], slices: Mapping[str, NDArray[np.bool_]] | None = None, *,
    target: float = 0.95, recall: str = "distance", level: float = 0.95,
    seconds: Mapping[int, float] | None = None,
) -> Audit:  # fmt: skip
    """Recall of every slice at every ef, with a verdict from the worst slice.

    Parameters
    ----------
    lists : comparison of the same m queries at each ef, with the same exact pass.
    slices : name to (m,) bool; see `slices_of` and `join`. The slice of all queries is added.
    target : mean recall that every slice must have, in (0, 1].
    recall : ``id``, ``distance`` or ``distinct``.
    level : of the one-sided lower bounds.
    seconds : time that all m queries took at each ef.

    Raises
    ------
    UsageError
        If there is no comparison, they are not of the same queries and k, a slice has another
        length, or a number is out of range.
    """
    if not lists:
        raise UsageError("no lists to audit")
    if not 0.0 < target <= 1.0 or not 0.5 < level < 1.0:
        raise UsageError(f"target {target}, level {level}", "in (0, 1] and in (0.5, 1)")
    m, k = next((one.n_queries, one.k) for one in lists.values())
    if any((one.n_queries, one.k) != (m, k) for one in lists.values()):
        raise UsageError("lists of different queries or k", "one audit for each k")
    masks = {ALL: np.ones(m, np.bool_)}
    for name, mask in (slices or {}).items():
        if np.shape(mask) != (m,) or np.asarray(mask).dtype != np.bool_:
            raise UsageError(f"slice {name!r} of shape {np.shape(mask)}", f"({m},) bool")
        if name == ALL:
            raise UsageError(f"a slice of the name {ALL!r}", "it is added; give another name")
        masks[name] = np.asarray(mask)
    rows = []
    for ef in sorted(lists):
        took = (seconds or {}).get(ef)
        speed = m / took if took else None
        for name, mask in masks.items():
            rows.append(_row(name, ef, lists[ef], mask, recall, target, level, speed))
    return Audit(tuple(rows), target, level)


def _row(
    name: str, ef: int, lists: ListComparison, mask: NDArray[np.bool_], recall: str, target: float,
    level: float, speed: float | None,
) -> SliceAudit:  # fmt: skip
    """One slice at one ef."""
    hits, wanted = lists.parts(recall)
    inside = mask & (wanted > 0)
    hits, wanted = hits[inside], wanted[inside]
    n = int(inside.sum())
    below = int((hits < target * wanted - 1e-9).sum())
    values = hits / wanted
    middle = mean(values) if n else None
    gaps = lists.gap[inside]
    gaps = gaps[~np.isnan(gaps)]
    effect = _design_effect(hits, wanted) if n else None
    low = _lower(int(hits.sum()), int(wanted.sum()), effect, level)
    verdict, reason = _verdict(middle, low, n, target)
    strangers = lists.ineligible + lists.deleted + lists.unknown
    return SliceAudit(
        slice=name, ef=ef, k=lists.k, recall=recall, n_queries=n, n_na=int(mask.sum()) - n,
        mean=middle, minimum=float(values.min()) if n else None, hits=int(hits.sum()),
        wanted=int(wanted.sum()), low_hits=_lower(int(hits.sum()), int(wanted.sum()), 1.0, level),
        design_effect=effect, low=low, n_below=below, share_below=below / n if n else None,
        low_share=_lower(n - below, n, 1.0, level),
        short_lists=int((lists.missing[inside] > 0).sum()),
        missing=int(lists.missing[inside].sum()), not_findable=int(strangers[mask].sum()),
        ties_at_k=int(lists.tie_at_k[inside].sum()) if lists.scored else None,
        gap=mean(gaps) if gaps.size else None, queries_per_s=speed, target=target, level=level,
        verdict=verdict, reason=reason,
    )  # fmt: skip


def _verdict(middle: float | None, low: float | None, n: int, target: float) -> tuple[str, str]:
    if middle is None or low is None:
        return INCONCLUSIVE, "no query has an exact neighbour"
    if middle < target - 1e-12:
        return FAIL, f"mean {middle:.4f} below {target:.10g}"
    if low < target:
        return INCONCLUSIVE, f"lower bound {low:.4f} below {target:.10g} with {n} queries"
    return PASS, ""


def _design_effect(hits: NDArray[np.int64], wanted: NDArray[np.int64]) -> float:
    """Variance of the pooled recall over queries, over that of independent hits; 1 at least."""
    total, n = int(wanted.sum()), hits.size
    share = int(hits.sum()) / total
    if share in (0.0, 1.0):
        return 1.0
    if n == 1:
        return float(total)  # nothing shows how hits go together: they may all
    off = hits - share * wanted
    variance = n / (n - 1) * float(off @ off) / total**2
    return max(1.0, variance * total / (share * (1.0 - share)))


def _lower(hits: int, wanted: int, effect: float | None, level: float) -> float | None:
    """One-sided Clopper-Pearson lower bound, hits and trials over the design effect."""
    if not wanted or effect is None:
        return None
    trials = math.ceil(wanted / effect - 1e-9)
    found = min(math.floor(hits / effect + 1e-9), trials)
    return clopper_pearson(found, trials, 2.0 * level - 1.0)[0]


def slices_of(
    columns: Mapping[str, Sequence[str] | NDArray[Any]], cross: bool = True
) -> dict[str, NDArray[np.bool_]]:
    """Slices of queries by their columns, such as shard, filter or type of question.

    Parameters
    ----------
    columns : name to one string a query.
    cross : whether also every combination of all columns that occurs is a slice.

    Returns
    -------
    ``{"shard=a": mask, ..., "shard=a & filter=x": mask, ...}``, each value and combination in the
    order in which it is first met.
    """
    texts = {name: [str(value) for value in column] for name, column in columns.items()}
    if len({len(column) for column in texts.values()}) > 1:
        raise UsageError("columns of different lengths", "one string a query")
    found: dict[str, NDArray[np.bool_]] = {}
    for name, column in texts.items():
        for value in dict.fromkeys(column):
            found[f"{name}={value}"] = np.array([one == value for one in column], np.bool_)
    if cross and len(texts) > 1:
        keys = list(zip(*texts.values(), strict=True))
        for key in dict.fromkeys(keys):
            parts = [f"{name}={value}" for name, value in zip(texts, key, strict=True)]
            found[" & ".join(parts)] = np.logical_and.reduce([found[part] for part in parts])
    return found


def loss(exact: Any, approximate: Any, level: float = 0.95) -> Paired:
    """What approximate search costs in a measure of the end: exact less approximate, by case.

    Parameters
    ----------
    exact, approximate : values of the measure from exact and from approximate lists, as
        `ragcore.stats.paired` takes them: joined by case id, or by position.
    level : of the interval.

    Returns
    -------
    Paired
        `delta` is the loss; above 0 where approximate search is worse.
    """
    return paired(approximate, exact, level)
