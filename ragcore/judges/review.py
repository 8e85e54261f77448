"""Everything that verdicts say of their judges, put together: the verb behind `ragcore judges`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.judges.agreement import PairAgreement, agreements
from ragcore.judges.coverage import Coverage, JudgeCard, cards, coverages
from ragcore.judges.estimates import Estimate, estimates
from ragcore.judges.items import Items, items_of
from ragcore.judges.quality import Quality, qualities
from ragcore.judges.queue import open_items, queue_of
from ragcore.judges.sample import Audit, sample_of
from ragcore.judges.sensitivity import (
    Sensitivity,
    as_replayed,
    read_traces,
    replays,
    sensitivities,
)
from ragcore.judges.statement import statements
from ragcore.judges.views import Judges, judges_of, views_of
from ragcore.judgments import Judgments, as_sources, read_judgments
from ragcore.suites import find_suite, open_suite


@dataclass
class Review:
    """What a set of verdicts says of its judges.

    Attributes
    ----------
    items, judges : what was judged, and by whom.
    coverage, cards, agreement, quality, estimates, sensitivity : one entry each, see the modules
        that make them; sensitivity only if two judges were to be compared.
    audit : the cases to audit, if a seed was given.
    against, level : the least rung of the reference; of the intervals.
    compared : the two judges, or None.
    open : items of the queue.
    statements : a gate statement on each estimate.
    notes : what was noticed, in sentences.
    """

    items: Items
    judges: Judges
    coverage: list[Coverage]
    cards: list[JudgeCard]
    agreement: list[PairAgreement]
    quality: list[Quality]
    estimates: list[Estimate]
    sensitivity: list[Sensitivity]
    audit: Audit | None
    against: str
    level: float
    compared: tuple[str, str] | None
    open: Any
    statements: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def queue(self) -> pa.Table:
        """The items that people have to settle, as `ragcore.judges.queue.QUEUE`."""
        return queue_of(self.items, self.open)

    def flips(self, sensitivity: Any) -> Any:
        """Rows of the items that two judges, or two versions of one, see otherwise."""
        from ragcore.judges.rows import flips

        return flips(self, sensitivity)

    def table(self) -> pa.Table:
        """One row a statistic, as `ragcore.judges.rows.REVIEW`."""
        from ragcore.judges.rows import table_of

        return table_of(self)


def review(
    judgments: Any, *, suite: Any = None, against: str = "human",
    compare: tuple[str, str] | None = None, runs: Sequence[Any] = (), seed: int | None = None,
    declared: str = "", level: float = 0.95,
) -> Review:  # fmt: skip
    """Look at judges through their verdicts.

    Parameters
    ----------
    judgments : files, tables or `Judgments`; one or several.
    suite : folder or name: its cases are all there are, its required rungs are held.
    against : least rung that is reference for the judges below it.
    compare : names of two judges, ``judge`` or ``judge@version``.
    runs : run files; their frozen outputs count as the traces that they replay.
    seed : of the audit sample; None draws none.
    declared : the judge that counts among equals; "" for the suite's, if it names one.
    level : of all intervals.

    Raises
    ------
    InputError, UsageError
        If a file is broken, or a judge, a rung or the suite is unknown.

    Examples
    --------
    >>> review("judgments.arrow", suite="my_suite", against="domain").statements
    """
    if against not in schema.RUNGS:
        raise UsageError(f"rung {against!r}", f"one of {', '.join(schema.RUNGS)}")
    if isinstance(judgments, Judgments):
        given = judgments
    else:
        given = read_judgments(list(as_sources(judgments)))
    moved = replays([read_traces(run) for run in runs]) if len(runs) else {}
    given = as_replayed(given, moved)
    opened = None if suite is None else open_suite(find_suite(str(suite), Path()))
    cases = None if opened is None else opened.cases
    if opened is not None and not declared:
        declared = str(opened.settings.get("judge") or "")
    items, judges = items_of(given, cases, declared), judges_of(given)
    agreement, notes = agreements(items, judges, views_of(items, judges))
    quality = qualities(items, judges, against, level)
    means = estimates(items, judges, against, level)
    changed = [] if compare is None else sensitivities(items, judges, *compare, level)
    audit = None if seed is None else sample_of(items, judges, cases, seed)
    found = Review(
        items, judges, coverages(items), cards(items, judges), agreement, quality, means, changed,
        audit, against, level, compare, open_items(items),
        statements(means, quality, level), notes,
    )  # fmt: skip
    found.notes = [*_notes(found, moved, cases), *notes]
    return found


def _notes(found: Review, moved: dict[str, str], cases: pa.Table | None) -> list[str]:
    """What was noticed, in sentences."""
    items, out = found.items, []
    if not len(items.judgments):
        out.append("no verdict in the files given")
    out += [f"{count} {name}" for name, count in items.counts.items()]
    out += [f"run {a} is judged as the run that it replays, {b}" for a, b in moved.items()]
    twice = sum(one.contradictory for one in found.coverage if one.run != "")
    if twice:
        rows = found.queue().to_pylist()
        named = [_named(row) for row in rows if row["reason"] == "adjudications-differ"]
        shown = "; ".join(named[:5]) + ("; ..." if len(named) > 5 else "")
        out.append(f"adjudications contradict each other on {twice} items: {shown}")
    mixed = _mixed_evidence(items)
    if mixed:
        out.append(f"{mixed} items of the answer as a whole were judged on different chunks")
    if cases is not None and len(items):
        have = np.unique(items.case).size
        n = len(set(cases["case_id"].to_pylist()))
        if have < n:
            out.append(f"{n - have} of {n} cases of the suite have no verdict")
    if len(items) and not found.quality and not found.estimates:
        out.append(
            f"no item was judged both on the rung {found.against} or above (or adjudicated) and by "
            "a judge below it: how good the judges are is not known"
        )
    if found.compared is not None and not found.sensitivity:
        out.append(f"{found.compared[0]} and {found.compared[1]} judged no item in common")
    if found.audit is not None:
        out += found.audit.notes
    return out


def _named(row: dict[str, Any]) -> str:
    parts = [row["case_id"], row["lang"], row["run"], row["relation"]]
    claim = None if row["claim"] is None else f"claim {row['claim']}"
    who = ", ".join(f"{v['judge']}: {v['verdict']}" for v in row["verdicts"] if v["adjudicated"])
    return f"{' '.join(p for p in [*parts, claim] if p)} ({who})"


def _mixed_evidence(items: Items) -> int:
    """Items that chunks are no part of, whose verdicts were given different ones."""
    from ragcore.judges.items import BY_CHUNK

    lists = items.judgments.evidence
    sizes = np.diff(lists.offsets)[items.row]
    low, high = np.full(len(items), np.iinfo(np.int64).max), np.full(len(items), -1)
    np.minimum.at(low, items.item, sizes)
    np.maximum.at(high, items.item, sizes)
    free = ~np.isin(items.relation, [schema.RELATIONS.index(r) for r in BY_CHUNK])
    return int((free & (low < high) & (low > 0)).sum())
