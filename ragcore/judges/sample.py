"""The cases that people are to audit, drawn from what the verdicts and the suite show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.formats.compute import pc
from ragcore.judges.codes import packed
from ragcore.judges.items import Items
from ragcore.judges.views import CONFLICT, Judges, views_of
from ragcore.lists import flags, integers, joined, lists_of
from ragcore_kernels import verdicts as words
from ragcore_kernels.audit_sample import STRATA, AuditPlan, AuditSample, audit_sample

HIGH = ("high", "critical", "severe", "catastrophic")
"""Values of `consequence`, in whatever case, that make a case one of high risk."""

SAMPLE = pa.schema(
    [
        ("place", pa.int32()), ("case_id", pa.string()), ("stratum", pa.string()),
        ("high_risk", pa.bool_()), ("systems_disagree", pa.bool_()),
        ("judges_disagree", pa.bool_()), ("seed", pa.uint64()),
    ]
)  # fmt: skip
"""One row = one case to audit, by stratum and inside by the seeded order. A flag is null where
nothing tells."""


@dataclass(frozen=True)
class Audit:
    """The sample, and the flags that it was drawn by.

    Attributes
    ----------
    table : `SAMPLE`.
    sample : counts by stratum, and which bound could not be kept.
    notes : what the strata cannot know.
    """

    table: pa.Table
    sample: AuditSample
    notes: list[str]

    @property
    def shares(self) -> list[tuple[str, int, int]]:
        """Stratum, cases chosen, cases available."""
        return list(zip(STRATA, self.sample.chosen, self.sample.available, strict=True))


def sample_of(
    items: Items, judges: Judges, cases: pa.Table | None, seed: int, plan: AuditPlan | None = None
) -> Audit:
    """Draw the cases to audit.

    Parameters
    ----------
    cases : of the suite, whose cases are the population; None for those that have verdicts.
    seed : from 0 to 2**64 - 1.
    plan : shares and totals; None for 10 to 20 % of each flagged stratum, 30 to 50 in all.

    Notes
    -----
    High risk: `consequence` is one of `HIGH`, or a reference claim is of high stakes. Systems
    disagree: in some language, repeat and relation one run has nothing but yes and another has
    not. Judges disagree: two opinions on one item differ, one judge contradicts itself or leaves
    it open; also where a higher rung settled it.
    """
    judged = items.judgments.names["case"].cast(pa.large_string())
    notes = []
    if cases is None:
        names, risky = _named(items), None
        notes.append("no suite: which cases are of high risk is not known")
    else:
        ids = joined(cases["case_id"]).cast(pa.large_string())
        names = pc.unique(ids)
        rows = integers(pc.index_in(ids, value_set=names), len(ids))
        risky = np.zeros(len(names), np.bool_)
        np.logical_or.at(risky, rows, _risky(cases))
        if not {"consequence", "claims"} & set(cases.column_names):
            risky = None
            notes.append("the suite tells no consequence: which cases are of high risk is unknown")
    place = np.append(integers(pc.index_in(judged, value_set=names), len(judged)), -1)
    systems, judges_apart = np.zeros((2, len(names)), np.bool_)
    one_run = np.unique(items.run).size < 2
    if one_run:
        notes.append("one run: systems cannot disagree")
    systems[place[_systems(items)]] = True
    judges_apart[place[_judges(items, judges)]] = True
    texts = names.to_pylist()
    high = np.zeros(len(names), np.bool_) if risky is None else risky
    strata = np.where(high, 0, np.where(systems, 1, np.where(judges_apart, 2, 3)))
    found = audit_sample(texts, strata.tolist(), seed, plan)
    where = {name: i for i, name in enumerate(texts)}
    at = [where[name] for name in found.case_ids]
    table = pa.table(
        [
            pa.array(range(1, len(at) + 1), pa.int32()), pa.array(found.case_ids, pa.string()),
            pa.array([STRATA[s] for s in found.strata], pa.string()),
            pa.array([None if risky is None else bool(high[i]) for i in at], pa.bool_()),
            pa.array([None if one_run else bool(systems[i]) for i in at], pa.bool_()),
            pa.array([bool(judges_apart[i]) for i in at], pa.bool_()),
            pa.array([seed] * len(at), pa.uint64()),
        ],
        schema=SAMPLE,
    )  # fmt: skip
    return Audit(table, found, [*notes, *found.notes])


def _named(items: Items) -> pa.Array:
    """The cases that have verdicts."""
    codes = np.unique(items.case)
    return items.judgments.names["case"].cast(pa.large_string()).take(pa.array(codes))


def _risky(cases: pa.Table) -> Any:
    """(n_rows,) bool, cases of high risk."""
    out = np.zeros(len(cases), np.bool_)
    if "consequence" in cases.column_names:
        words_ = pc.utf8_lower(joined(cases["consequence"]).cast(pa.string()))
        found = pc.is_in(words_, value_set=pa.array(HIGH))
        out |= np.asarray(found.fill_null(False)).astype(np.bool_)
    if "claims" in cases.column_names:
        lists = lists_of(cases["claims"])
        high = flags(lists.field("high_stakes"), len(lists.items))
        np.logical_or.at(out, lists.owners, high)
    return out


def _systems(items: Items) -> Any:
    """Codes of cases on which runs differ in having nothing but yes."""
    keep = (items.verdict >= 0) & (items.run >= 0)
    case, run = items.case[keep], items.run[keep]
    group = packed(case, items.lang[keep], items.repeat[keep], items.relation[keep])
    _, first, trace = np.unique(packed(group, run), return_index=True, return_inverse=True)
    whole = np.ones(first.size, np.bool_)
    np.logical_and.at(whole, trace, items.verdict[keep] == words.YES)
    _, at, of = np.unique(group[first], return_index=True, return_inverse=True)
    every, some = np.ones(at.size, np.bool_), np.zeros(at.size, np.bool_)
    np.logical_and.at(every, of, whole)
    np.logical_or.at(some, of, whole)
    return np.unique(case[first][at][some & ~every])


def _judges(items: Items, judges: Judges) -> Any:
    """Codes of cases with an item on which opinions differ, or are withheld."""
    views = views_of(items, judges)
    keep = views.said != words.ERROR
    item, said = views.item[keep], views.said[keep]
    low, high = np.full(len(items), 127, np.int8), np.full(len(items), -128, np.int8)
    np.minimum.at(low, item, said)
    np.maximum.at(high, item, said)
    apart = (low < high) & (high > -128)
    apart |= (high == words.UNCLEAR) | (low == CONFLICT)
    return np.unique(items.case[apart])
