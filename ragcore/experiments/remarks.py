"""What must be said beside a row of a sweep: idle settings, short lists, how it was timed."""

from __future__ import annotations

from typing import Any

from ragcore.experiments.recording import RERANKED_STAGE, Recording
from ragcore.experiments.replay import Replayed
from ragcore.experiments.rows import Row
from ragcore.experiments.setups import Setup
from ragcore.measures import registry
from ragcore.plan import Plan


def of_run(setup: Setup) -> list[str]:
    """Of one run: thresholds that do not apply, channels as short as the context."""
    out = [
        f"the threshold on {channel} does not apply: {setup.strategy} does not search it"
        for channel in setup.unused()
    ]
    if len(setup.channels) > 1 and setup.candidate_k <= setup.context_k:
        out.append("narrow fusion: channels give no more rows than the context takes")
    return out


def of_row(row: Row, plan: Plan) -> list[str]:
    """Of a row against its anchor: what cannot move, what moves by the cut alone."""
    idle, idle_before = row.setup.idle(), row.before.idle()
    out = [
        f"{key} changes nothing here: {idle[key]}"
        for key in row.keys
        if key in idle and key in idle_before
    ]
    if row.setup.candidate_k == row.before.candidate_k:
        return out
    least = min((one for one in (row.before, row.setup)), key=_longest)
    n = _longest(least)
    deep = [m.text for m in registry.parse(plan.registered) if m.k > n]
    if deep:
        out.append(
            f"{', '.join(deep)} {'looks' if len(deep) == 1 else 'look'} deeper than the {n} ranks "
            f"that candidate_k {least.candidate_k} gives"
        )
    return out


def _longest(setup: Setup) -> int:
    """The most ranks that a setup gives."""
    return setup.candidate_k * (1 if setup.reranked else len(setup.channels))


def times_of(part: Recording, setup: Setup, found: Replayed) -> str:
    """How the times of a run were taken; "" where they were not."""
    if not found.stages:
        return ""
    said = f"at depth {max(part.depth[channel] for channel in setup.channels)}"
    if not setup.reranked or not len(part.questions):
        return said
    scored = sum(_n(rows) for rows in part.lists[RERANKED_STAGE].rows)
    own = sum(_n(rows) for rows in found.final.rows)
    if scored <= own:
        return said
    n = len(part.questions)
    return f"{said}, reranker over {scored / n:.1f} candidates of which this row has {own / n:.1f}"


def of_times(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """That two rows were timed one after the other, so that the machine has its share in it."""
    if before["p50_us"] is None or after["p50_us"] is None:
        return []
    return [
        f"the two were timed in passes of their own: p50 {before['p50_us'] / 1e3:.4g} -> "
        f"{after['p50_us'] / 1e3:.4g} ms"
    ]


def _n(rows: Any) -> int:
    return 0 if rows is None else len(rows)
