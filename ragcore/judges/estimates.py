"""The share of yes that people would give, from their few labels and a judge's many verdicts.

An estimate of a mean over cases, never of one answer. A case counts once: the mean over its
traces of the share of their items, as claims of one answer are no independent sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.judges.codes import packed
from ragcore.judges.items import Items
from ragcore.judges.quality import reference
from ragcore.judges.views import OPINIONS, Judges, share_yes, views_of
from ragcore_kernels.layout import F64, I64
from ragcore_kernels.ppi import PpiMean, ppi_mean

METHODS = (("classical", 0.0), ("ppi", 1.0), ("ppi++", None))
"""Names of the estimates with the weight of the judge: none, one, that of least variance."""


@dataclass(frozen=True)
class Estimate:
    """The share of yes on one relation of one run, by three estimates.

    Attributes
    ----------
    relation, run, judge, against : names; `run` None for verdicts about cases themselves.
    judge_mean : share by the judge alone, over all cases that it judged; uncorrected.
    means : by name, in the order of `METHODS`.
    n_labelled, n_unlabelled : cases with both verdicts; with the judge's alone.
    n_unmatched : cases with a label whose items the judge left open: in no estimate.
    n_partly : labelled cases some of whose items lack a label or a verdict; these do not count.
    """

    relation: str
    run: str | None
    judge: str
    against: str
    judge_mean: float
    means: dict[str, PpiMean]
    n_labelled: int
    n_unlabelled: int
    n_unmatched: int
    n_partly: int

    @property
    def warning(self) -> str:
        """What weakens the estimates; "" if there is nothing to say."""
        found = [self.means["classical"].warning or self.means["classical"].reason]
        if self.n_partly:
            found.append(f"{self.n_partly} labelled cases are labelled in part")
        return "; ".join(part for part in found if part)


def case_shares(items: Items, own: I64, yes: Any) -> tuple[I64, F64]:
    """Share of yes of every case: of its items in each trace, then the mean over traces.

    Parameters
    ----------
    own : (k,), the items that count.
    yes : (k,) bool.

    Returns
    -------
    codes of the cases, ascending, and their shares; the order of the verdicts leaves no trace.
    """
    case = items.case[own]
    keys = packed(case, items.run[own], items.lang[own], items.repeat[own])
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    over = np.bincount(place, yes.astype(np.float64), minlength=first.size)
    shares = over / np.bincount(place, minlength=first.size)
    of = case[first]
    order = np.lexsort((shares, of))
    cases, starts, counts = np.unique(of[order], return_index=True, return_counts=True)
    if not cases.size:
        return cases, np.zeros(0)
    return cases, np.add.reduceat(shares[order], starts) / counts


def estimates(
    items: Items, judges: Judges, against: str = "human", level: float = 0.95
) -> list[Estimate]:
    """Every judge below the rung `against`, on every relation and run with a label.

    Parameters
    ----------
    against : least rung of a label; adjudicated verdicts are labels on any rung.
    level : of the intervals.
    """
    least = schema.RUNGS.index(against)
    truth = reference(items, least)
    if not (truth >= 0).any():
        return []
    out = []
    views = views_of(items, judges, items.judgments.rung < least)
    kind = items.relation * (int(items.run.max(initial=-1)) + 2) + items.run + 1
    for judge in np.unique(views.judge).tolist():
        item, said = views.of(judge)
        verdict = np.full(len(items), -1, np.int8)
        opinion = (said >= 0) & (said < OPINIONS)
        verdict[item[opinion]] = said[opinion]
        for code in np.unique(kind[(truth >= 0) & (verdict >= 0)]).tolist():
            own = np.flatnonzero(kind == code)
            made = _estimate(items, own, truth[own], verdict[own], level)
            name = schema.RELATIONS[int(items.relation[own[0]])]
            run = items.name("run", int(items.run[own[0]]))
            out.append(Estimate(name, run, judges.names[judge], against, *made))
    return out


def _estimate(items: Items, own: I64, truth: Any, verdict: Any, level: float) -> tuple[Any, ...]:
    labelled, judged = truth >= 0, verdict >= 0
    both = labelled & judged
    with_label = np.unique(items.case[own[labelled]])
    usable = np.unique(items.case[own[both]])
    rest = judged & ~np.isin(items.case[own], with_label)
    inside = np.isin(items.case[own], usable)
    partly = np.unique(items.case[own[inside & ~both]]).size
    labels = case_shares(items, own[both], share_yes(truth[both]))[1]
    scores = case_shares(items, own[both], share_yes(verdict[both]))[1]
    others = case_shares(items, own[rest], share_yes(verdict[rest]))[1]
    alone = case_shares(items, own[judged], share_yes(verdict[judged]))[1]
    means = {name: ppi_mean(labels, scores, others, lam, level) for name, lam in METHODS}
    return (
        math.fsum(alone.tolist()) / alone.size, means, labels.size, others.size,
        with_label.size - usable.size, partly,
    )  # fmt: skip
