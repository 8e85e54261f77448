"""How good a judge is against a higher rung: by item, by answer, and by the spans it marked.

Verdicts hold no spans: `evidence` names chunks, and a rationale is prose. Spans come as columns of
their own, with `spans_against`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.judges.items import Items, settled
from ragcore.judges.views import OPINIONS, Judges, share_yes, views_of
from ragcore.lists import lists_of
from ragcore_kernels import verdicts as words
from ragcore_kernels.clusters import ratio_interval
from ragcore_kernels.judge_quality import Confusion, SpanQuality, confusion, span_quality, spans_of
from ragcore_kernels.layout import I64

FAULTS = ("correct", "entailed", "covered", "chunk_entails", "chunk_entails_reference", "cites")
"""Relations whose positive is a fault, any verdict but yes; of the others the positive is yes."""

SHARES = ("precision", "recall", "specificity", "F1")


@dataclass(frozen=True)
class Share:
    """A share with the interval of its cases.

    Attributes
    ----------
    name, value, over, under : value = over / under, nan for 0/0.
    low, high, method : percentile bootstrap of cases; None for fewer than two, or 0/0.
    """

    name: str
    value: float
    over: int
    under: int
    low: float | None
    high: float | None
    method: str | None


@dataclass(frozen=True)
class Quality:
    """One judge on one relation against the verdicts of a higher rung.

    Attributes
    ----------
    relation, judge, against : names; `against` is the least rung of the reference.
    level : ``item``, or ``answer``: an answer is positive if any of its items is.
    positive : ``fault`` or ``yes``.
    counts : tp, fp, fn, tn; `n_missing` items have a reference, but no opinion of the judge.
    shares : `SHARES`, in their order.
    n_cases : cases behind them.
    """

    relation: str
    judge: str
    against: str
    level: str
    positive: str
    counts: Confusion
    shares: tuple[Share, ...]
    n_cases: int

    def share(self, name: str) -> Share:
        """One of the shares."""
        return self.shares[SHARES.index(name)]


def reference(items: Items, against: int) -> Any:
    """(n,) int8, verdicts of the rung `against` and above, or adjudicated; below 0 for none."""
    given = items.judgments
    keep = (given.adjudicated | (given.rung >= against))[items.row]
    row = items.row[keep]
    rank = words.rank_of(
        given.adjudicated[row], given.rung[row].astype(np.int64), np.zeros(row.size, np.bool_)
    )
    return settled(len(items), items.item[keep], given.verdict[row], rank)[0]


def qualities(
    items: Items, judges: Judges, against: str = "human", level: float = 0.95
) -> list[Quality]:
    """Every judge below the rung `against`, on every relation with a reference.

    Parameters
    ----------
    against : least rung of the reference; adjudicated verdicts are reference on any rung.
    level : of the intervals.
    """
    least = schema.RUNGS.index(against)
    truth = reference(items, least)
    known = truth >= 0
    out: list[Quality] = []
    if not known.any():
        return out
    views = views_of(items, judges, items.judgments.rung < least)
    for judge in np.unique(views.judge).tolist():
        item, said = views.of(judge)
        verdicts = np.full(len(items), -1, np.int8)
        opinion = (said >= 0) & (said < OPINIONS)
        verdicts[item[opinion]] = said[opinion]
        judged = np.zeros(len(items), np.bool_)
        judged[item] = True
        for code in np.unique(items.relation[known & judged]).tolist():
            own = np.flatnonzero(known & judged & (items.relation == code))
            name = schema.RELATIONS[code]
            fault = name in FAULTS
            said_own = _positive(verdicts[own], fault)
            true_own = _positive(truth[own], fault)
            cases, traces = items.case[own], items.traces[own]
            common = name, judges.names[judge], against
            shown = "fault" if fault else "yes"
            out.append(_quality(common, "item", shown, said_own, true_own, cases, level))
            whole = _answers(said_own, true_own, cases, traces)
            if whole is not None:
                out.append(_quality(common, "answer", shown, *whole, level))
    return out


def _positive(verdict: Any, fault: bool) -> I64:
    """1, 0, or -1 for no opinion."""
    found = ~share_yes(verdict) if fault else share_yes(verdict)
    return np.where(verdict < 0, -1, found).astype(np.int64)


def _answers(said: I64, true: I64, cases: I64, traces: I64) -> tuple[I64, I64, I64] | None:
    """Whether any item of an answer is positive, over items with both; None if all have one."""
    both = (said >= 0) & (true >= 0)
    said, true, cases, traces = said[both], true[both], cases[both], traces[both]
    _, first, place = np.unique(traces, return_index=True, return_inverse=True)
    n = first.size
    if n == said.size:
        return None
    out = np.zeros((2, n), np.int64)
    np.maximum.at(out[0], place, said)
    np.maximum.at(out[1], place, true)
    return out[0], out[1], cases[first]


def _quality(
    common: tuple[str, str, str], level: str, positive: str, said: I64, true: I64, cases: I64,
    sure: float,
) -> Quality:  # fmt: skip
    counts = confusion(said, true)
    both = (said >= 0) & (true >= 0)
    said, true = said[both], true[both]
    tp, fp, fn, tn = said & true, said & (1 - true), (1 - said) & true, (1 - said) & (1 - true)
    parts = (tp, tp + fp), (tp, tp + fn), (tn, tn + fp), (2 * tp, 2 * tp + fp + fn)
    shares = tuple(
        _share(name, over, under, cases[both], sure)
        for name, (over, under) in zip(SHARES, parts, strict=True)
    )
    return Quality(*common, level, positive, counts, shares, int(np.unique(cases[both]).size))


def _share(name: str, over: I64, under: I64, cases: I64, sure: float) -> Share:
    """A ratio of sums; cases are resampled whole, as items of one case are no independent ones."""
    _, place = np.unique(cases, return_inverse=True)
    n = int(place.max(initial=-1)) + 1
    parts = [np.bincount(place, part.astype(np.float64), minlength=n) for part in (over, under)]
    above, below = int(over.sum()), int(under.sum())
    if not below:
        return Share(name, float("nan"), above, below, None, None, None)
    kept = parts[1] > 0
    if kept.sum() < 2:
        return Share(name, above / below, above, below, None, None, None)
    found = ratio_interval(parts[0][kept], parts[1][kept], sure)
    return Share(name, above / below, above, below, found.low, found.high, found.method)


# --- spans


def spans_against(judge: pa.Table, human: pa.Table, key: tuple[str, ...] = ("case_id",)) -> Any:
    """Compare the spans that a judge marked with a human's, answer by answer.

    Parameters
    ----------
    judge, human : one row an answer: the columns `key`, and ``spans``, a list of structs with
        ``start`` and ``end`` in code points, the end exclusive. An empty list says that nothing
        is wrong; null, that the answer was not judged.
    key : columns that name an answer: ("run", "case_id", "lang", "repeat") for several of a case.

    Returns
    -------
    SpanQuality over the answers that both judged, by the order of `human`.

    Raises
    ------
    InputError
        If a column is absent, an answer stands twice, or a span ends before it starts.
    """
    sides = []
    for where, table in (("spans of the judge", judge), ("spans of the human", human)):
        absent = [name for name in (*key, "spans") if name not in table.column_names]
        if absent:
            raise InputError(where, f"no column {', '.join(absent)}", f"{', '.join(key)}, spans")
        names = list(zip(*(table[name].to_pylist() for name in key), strict=True))
        rows = {name: row for row, name in enumerate(names)}
        if len(rows) != len(names):
            twice = next(n for i, n in enumerate(names) if rows[n] != i)
            raise InputError(where, f"{twice} twice", "one row an answer")
        sides.append((where, table, rows, table["spans"].is_valid().to_pylist()))
    (_, _, of_judge, judged), (_, _, of_human, labelled) = sides
    shared = [
        name for name, row in of_human.items()
        if labelled[row] and name in of_judge and judged[of_judge[name]]
    ]  # fmt: skip
    made = []
    for where, table, rows, _ in sides:
        lists = lists_of(table["spans"], np.array([rows[n] for n in shared], np.int64))
        try:
            made.append(spans_of(lists.offsets, lists.integers("start"), lists.integers("end")))
        except ValueError as error:
            raise InputError(where, str(error), "start <= end, both from 0") from None
    found: SpanQuality = span_quality(made[0], made[1])
    return found
