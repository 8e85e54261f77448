"""Best, expected and worst values on request: over orders of tied scores, and over holes.

`ties=` asks for the largest, mean or smallest value over all orders of rows with equal scores,
each as likely; `holes=` for the largest or smallest over what unjudged documents may be. They
are measures beside the measure: an interval of what the data leave open, not of chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ragcore.errors import UsageError
from ragcore.measures.definitions import Measure
from ragcore.measures.registry import is_trec_eval
from ragcore.measures.variants import BOUNDS, NO_BOUND, kind_of

if TYPE_CHECKING:
    from ragcore.columns import Rows
    from ragcore.measures.engine import Hits
    from ragcore_kernels.layout import F64

STEPS = 2_000_000_000
"""What the mean of one interpolated precision may take, in steps of about a nanosecond."""


def named(text: str, parameter: str) -> str:
    """The name of a measure with one more parameter."""
    name, at, cut = text, "", ""
    if not is_trec_eval(text):
        name, at, cut = text.partition("@")
    if name.endswith(")"):
        return f"{name[:-1]}{',' if name[-2] != '(' else ''}{parameter}){at}{cut}"
    if cut.endswith(")"):
        return f"{text[:-1]}{',' if text[-2] != '(' else ''}{parameter})"
    return f"{name}({parameter}){at}{cut}"


def expand(measures: Sequence[Measure], wanted: Sequence[str]) -> list[Measure]:
    """Measures, each followed by its bounds of the kinds `wanted`; repeats left out.

    Raises
    ------
    UsageError
        If a kind is unknown.
    """
    wanted = [wanted] if isinstance(wanted, str) else wanted
    for kind in wanted:
        if kind not in BOUNDS:
            raise UsageError(f"bounds={kind!r}", f"one of {', '.join(BOUNDS)}")
    out: dict[str, Measure] = {}
    for one in measures:
        out.setdefault(one.text, one)
        if one.definition.layer != "ranked" or kind_of(one):
            continue
        for kind in dict.fromkeys(wanted):
            if one.definition.name in NO_BOUND[kind]:
                continue
            for value in BOUNDS[kind]:
                text = named(one.text, f"{kind}={value}")
                out.setdefault(text, replace(one, text=text, params={**one.params, kind: value}))
    return list(out.values())


def apply(hits: Hits, rows: Rows, measures: Sequence[Measure], values: F64, zero: bool) -> set[str]:
    """Put bounds in the place of values, where measures ask for them.

    Parameters
    ----------
    hits, rows : of one run.
    measures, values : (n_measures, n_rankings), plain values of each.
    zero : whether a case without a relevant document counts as 0, so that holes may raise it.

    Returns
    -------
    set of str
        Measures whose mean would take too long to count out: inf throughout, as a mean over the
        other cases would be one of something else.
    """
    ties = [m for m, one in enumerate(measures) if one.params.get("ties")]
    holes = [m for m, one in enumerate(measures) if one.params.get("holes") == "best"]
    spent: set[str] = set()
    if hits.labels.items is not None and (ties or holes):
        raise UsageError(
            f"measure {measures[(ties or holes)[0]].text!r}: no bound where chunks hold several "
            "items of evidence, or items lie in several chunks"
        )
    if ties:
        got = over_ties(hits, rows, [measures[m] for m in ties])
        for m, own in zip(ties, got, strict=True):
            if np.isinf(own).any():
                own[:] = np.inf
                spent.add(measures[m].text)
            values[m] = own
    if holes:
        got = over_holes(hits, [measures[m] for m in holes])
        for m, own in zip(holes, got, strict=True):
            one = measures[m]
            graded = one.definition.name in ("nDCG", "nDCG_exp", "ERR")
            stays = np.isnan(values[m])
            if zero and one.definition.zero:
                stays &= hits.top >= (1 if graded else one.rel)
            values[m] = np.where(stays, np.nan, np.fmax(own, values[m]))
    return spent


def over_ties(hits: Hits, rows: Rows, measures: Sequence[Measure]) -> F64:
    """`ties=` of every measure and ranking; inf where the mean would take too long."""
    from ragcore.measures import engine
    from ragcore.measures.ranked import Specification
    from ragcore.threads import run_split
    from ragcore_kernels import bounds as kernel
    from ragcore_kernels import measures as kernel_measures

    spec = Specification(list(measures))
    rankings, options, n_rows, n = hits.rankings, hits.options, len(spec.spec), len(hits.rankings)
    which = np.zeros(n_rows, np.int64)
    for one, own in zip(measures, spec.rows, strict=True):
        which[own] = BOUNDS["ties"].index(one.params["ties"])
    ids = np.empty((0, 2), np.int64)
    if options.drop_identical_ids:
        ids = engine.own_ids(rows, rankings)
    firsts, sizes = np.empty_like(hits.ranks), np.empty_like(hits.ranks)
    plain, out = np.empty((n_rows, n)), np.empty((n_rows, n))
    quotients = np.empty((2, n_rows, 0))
    policy = engine.DUPLICATES.index(options.duplicates)

    def work(begin: int, end: int) -> None:
        kernel.tie_groups(
            rows.ids.table, rows.values, rankings.segments, rankings.offsets, begin, end,
            rows.order, policy, ids, hits.offsets, hits.ranks, hits.stats, firsts, sizes,
        )  # fmt: skip
        kernel_measures.evaluate(
            spec.spec, spec.params, spec.gains, options.max_depth, begin, end, rankings.label_of,
            hits.offsets, hits.ranks, hits.grades, hits.labels.row_offsets, hits.ideal,
            hits.stats, plain, quotients,
        )  # fmt: skip
        kernel.over_ties(
            spec.spec, spec.params, spec.gains, which, options.max_depth, STEPS, begin, end,
            rankings.label_of, hits.offsets, hits.grades, firsts, sizes, hits.labels.row_offsets,
            hits.ideal, hits.stats, plain, out,
        )  # fmt: skip

    run_split(work, n, len(hits.cuts) - 1, hits.cuts)
    return out if spec.plain else spec.means(out)


def over_holes(hits: Hits, measures: Sequence[Measure]) -> F64:
    """`holes=best` of every measure and ranking, NaN where nothing is judged."""
    from ragcore.measures.ranked import Specification
    from ragcore.threads import run_split
    from ragcore_kernels import holes as kernel

    spec = Specification(list(measures))
    rows = np.array([0, *(own.stop for own in spec.rows)], np.int64)
    highest = np.empty(len(spec.spec), np.int64)
    top = int(hits.top.max(initial=-1))
    for one, own in zip(measures, spec.rows, strict=True):
        grade = max(top, one.rel)
        highest[own] = min(grade, one.params["max"]) if one.definition.name == "ERR" else grade
    out = np.empty((len(measures), len(hits.rankings)))

    def work(begin: int, end: int) -> None:
        kernel.over_holes(
            spec.spec, spec.params, spec.gains, rows, highest, hits.options.max_depth, begin, end,
            hits.rankings.label_of, hits.offsets, hits.ranks, hits.grades,
            hits.labels.row_offsets, hits.ideal, hits.stats, out,
        )  # fmt: skip

    run_split(work, len(hits.rankings), len(hits.cuts) - 1, hits.cuts)
    return out
