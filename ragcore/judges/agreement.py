"""How far judges agree, relation by relation: every pair of them, and all together.

Agreement describes the process that it measured, these judges on these items, and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.judges.items import Items
from ragcore.judges.views import Judges, Views
from ragcore_kernels import agreement as kernel
from ragcore_kernels import verdicts as words
from ragcore_kernels.layout import I64

ORDER = (words.CONTRADICTS, words.NO, words.PARTIAL, words.YES)
"""Verdicts from worst to best, as an ordinal scale has them."""
MOST_JUDGES = 40
"""Of a relation with more judges only those with most verdicts are paired, and a note says so."""
LOW = 0.667
"""Krippendorff's least alpha for tentative conclusions; below it the cause is to be recorded."""
ALIKE = 0.9
"""Prevalence from which kappa and alpha fall whatever the judges do."""


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of two judges, or of all, on one relation.

    Attributes
    ----------
    relation, judges : names; two, or all of them.
    n_items : items that two of them gave an opinion on.
    n_left_out : items that two of them judged, but fewer than two with an opinion: the rest is
        unclear, an error, or contradicts itself.
    categories : verdicts of the scale, worst first; more than two make it a graded one.
    observed, kappa, weighted_kappa, alpha, ordinal_alpha, ac1 : as
        `ragcore_kernels.agreement.Agreement`; `alpha` is nominal. nan where there is none.
    prevalence : share of each category.
    note : what the figures do not say by themselves.
    """

    relation: str
    judges: tuple[str, ...]
    n_items: int
    n_left_out: int
    categories: tuple[str, ...]
    observed: float
    kappa: float
    weighted_kappa: float
    alpha: float
    ordinal_alpha: float
    ac1: float
    prevalence: tuple[float, ...]
    note: str


def agreements(items: Items, judges: Judges, views: Views) -> tuple[list[PairAgreement], list[str]]:
    """Agreement on every relation that two judges judged, and sentences on what was left out."""
    out: list[PairAgreement] = []
    notes: list[str] = []
    relation = items.relation[views.item]
    for code in np.unique(relation).tolist():
        own = relation == code
        part = Views(views.judge[own], views.item[own], views.said[own])
        name = schema.RELATIONS[code]
        sizes = np.bincount(part.judge, minlength=len(judges.names))
        present = np.flatnonzero(sizes)
        if present.size < 2:
            continue
        scale = _scale(part.said[part.decided])
        if present.size > 2:
            every = tuple(judges.names[j] for j in present)
            out.append(_one(name, every, _together(part), _both(part), scale))
        if present.size > MOST_JUDGES:
            notes.append(
                f"{name}: {present.size} judges; pairs of the {MOST_JUDGES} with most verdicts"
            )
            present = np.sort(present[np.argsort(-sizes[present], kind="stable")[:MOST_JUDGES]])
        for place, a in enumerate(present.tolist()):
            for b in present[place + 1 :].tolist():
                codes, n_both = _pair(part, a, b)
                if n_both:
                    pair = judges.names[a], judges.names[b]
                    out.append(_one(name, pair, codes, n_both, scale))
    return out, notes


def _scale(said: Any) -> list[int]:
    """Verdicts of the scale: yes and no, and what else was said."""
    seen = {words.YES, words.NO, *np.unique(said).tolist()}
    return [verdict for verdict in ORDER if verdict in seen]


def _opinions(said: Any) -> I64:
    return np.where((said >= 0) & (said <= words.CONTRADICTS), said, -1).astype(np.int64)


def _pair(part: Views, a: int, b: int) -> tuple[I64, int]:
    """(n, 2) verdicts of the items that both judged, -1 for no opinion; and how many."""
    first, second = part.of(a), part.of(b)
    _, i, j = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    both = np.stack([_opinions(first[1][i]), _opinions(second[1][j])], axis=1)
    return both, i.size


def _together(part: Views) -> I64:
    """(n_items, most opinions on one), opinions on each item, filled up with -1; whose is lost."""
    keep = part.decided
    _, item = np.unique(part.item[keep], return_inverse=True)
    order = np.argsort(item, kind="stable")
    item, said = item[order], part.said[keep][order]
    counts = np.bincount(item)
    place = np.arange(item.size) - np.repeat(np.cumsum(counts) - counts, counts)
    out = np.full((counts.size, int(counts.max(initial=2))), -1, np.int64)
    out[item, place] = said
    return out


def _both(part: Views) -> int:
    """Items that two judges judged, with an opinion or without."""
    return int((np.unique(part.item, return_counts=True)[1] > 1).sum())


def _one(
    relation: str, judges: tuple[str, ...], verdicts: I64, n_both: int, scale: list[int]
) -> PairAgreement:
    place = np.full(words.CONTRADICTS + 2, -1, np.int64)  # the last for -1
    place[scale] = np.arange(len(scale))
    codes = np.ascontiguousarray(place[verdicts])
    if len(judges) == 2:
        codes = codes[(codes >= 0).all(axis=1)]
    nominal = kernel.agreement(codes, len(scale))
    graded = len(scale) > 2
    ordinal = kernel.agreement(codes, len(scale), "ordinal") if graded else None
    two = len(judges) == 2
    return PairAgreement(
        relation, judges, nominal.n_items, n_both - nominal.n_items,
        tuple(schema.VERDICTS[v] for v in scale), nominal.observed,
        nominal.kappa if two else math.nan,
        ordinal.weighted_kappa if ordinal is not None and two else math.nan,
        nominal.alpha, math.nan if ordinal is None else ordinal.alpha, nominal.ac1,
        nominal.prevalence, _note(nominal, math.nan if ordinal is None else ordinal.alpha),
    )  # fmt: skip


def _note(found: Any, ordinal: float) -> str:
    if not found.n_items:
        return "no item with two opinions"
    alpha = found.alpha if math.isnan(ordinal) else ordinal
    if max(found.prevalence) >= ALIKE and not alpha >= LOW and found.observed >= ALIKE:
        return "nearly every item has one verdict: kappa and alpha are low by construction, see AC1"
    if alpha < LOW:
        return f"alpha below {LOW}: record the cause before any threshold changes"
    return ""
