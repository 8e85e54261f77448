"""What an audit looks at, and what it gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.audit import Audit, ListComparison, SelfRecall
from ragcore.filters import Filter
from ragcore.stats import Paired

EFS = (16, 32, 64, 128, 256)


@dataclass(frozen=True)
class AuditSettings:
    """What is audited.

    Attributes
    ----------
    ks, efs : lengths of lists; sizes of the list that HNSW keeps, raised to k where lower.
    by : columns of the cases to slice by.
    filters : each is audited as a slice of its own.
    target, recall, level : see `ragcore.audit.audit_table`.
    measures : of the end, whose loss is measured where there are labels.
    self_nodes : nodes that are searched for their own vectors, evenly spread; 0 = none.
    threads, repeats : of the timed searches; the quickest of the repeats counts.
    """

    ks: tuple[int, ...] = (10,)
    efs: tuple[int, ...] = EFS
    by: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    target: float = 0.95
    recall: str = "distance"
    level: float = 0.95
    measures: tuple[str, ...] = ()
    self_nodes: int = 10_000
    threads: int = 1
    repeats: int = 3


@dataclass(frozen=True)
class Loss:
    """What approximate search costs in a measure of the end: `paired.delta` is HNSW less exact."""

    measure: str
    ef: int
    k: int
    paired: Paired


@dataclass(frozen=True)
class Recalls:
    """The three recalls of all queries at one ef, as means over queries, and the score gap."""

    ef: int
    k: int
    n: int
    id: float
    distance: float
    distinct: float
    gap: float
    duplicates: int


@dataclass
class Report:
    """What an audit found.

    Attributes
    ----------
    audits, recalls : one a k; one a k and ef.
    selves, n_copies : whether nodes find themselves; vectors that equal one before them.
    losses : by measure and ef.
    notes : what was noticed, for people.
    """

    audits: dict[int, Audit]
    selves: SelfRecall | None = None
    n_copies: int = 0
    losses: list[Loss] = field(default_factory=list)
    recalls: list[Recalls] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether at some ef every slice holds the target, for every k."""
        return all(audit.smallest_ef is not None for audit in self.audits.values())

    def table(self) -> pa.Table:
        """Rows of all audits, as `ragcore.audit.SCHEMA`."""
        return pa.concat_tables([audit.table() for audit in self.audits.values()])


def recalls_of(ef: int, one: ListComparison) -> Recalls:
    """The three recalls side by side; NaN of what is unknown."""
    known = one.wanted > 0
    n = int(known.sum())

    def average(values: Any) -> float:
        return float(values.mean()) if values.size else math.nan

    return Recalls(
        ef, one.k, n, average(one.id_recall[known]), average(one.distance_recall[known]),
        average(one.distinct_recall[known]), average(one.gap[~np.isnan(one.gap)]),
        int(one.duplicates.sum()),
    )  # fmt: skip
