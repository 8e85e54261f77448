"""Values of the measures of citations: the chain by stages, faults by name, support by rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.measures import citation_verdicts, support
from ragcore.measures.chain import STAGES, chain_of
from ragcore.measures.cited import cited, claims_of
from ragcore.measures.cites import lowest_rung, pair_verdicts, worst_state
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_VERDICT, Column, Inputs, missing
from ragcore.measures.outcome_values import said
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.citations import NO, UNKNOWN, YES

NO_CITATION, NOT_ANSWERED, UNCHECKED = "no-citation", "not-answered", "not-checkable"
_WHY = {
    "supplied": "no-context", "version": "no-version", "quote": "no-text",
    "accessible": "no-access-list", "in_scope": "no-scope", "span_inside": "no-span-label",
    "entails": NO_VERDICT,
}  # fmt: skip
"""Why a stage could not be checked."""


def per_ranking(inputs: Inputs, hit: Any) -> Any:
    """(n,) float64, how many citations of each ranking are hit."""
    return np.bincount(cited(inputs).owner[hit], minlength=inputs.n).astype(np.float64)


def recorded(inputs: Inputs) -> Any:
    """(n,) int8, states of what needs only the citations."""
    return inputs.states(cited(inputs).present)


def _emitted(inputs: Inputs, measure: Measure) -> Column:
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    counts = cited(inputs).counts.astype(np.float64)
    return Column(counts, np.ones(inputs.n), recorded(inputs))


def _stage(inputs: Inputs, measure: Measure, name: str) -> Column:
    """Those that pass among those that came so far and can be checked."""
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    chain = chain_of(inputs)
    check, alive = chain.stages[name], chain.reached(name)
    return _share(inputs, name, alive, check)


def _share(inputs: Inputs, name: str, alive: Any, check: Any, rungs: Any = None) -> Column:
    dark = per_ranking(inputs, alive & (check == UNKNOWN))
    over = per_ranking(inputs, alive & (check == YES))
    under = over + per_ranking(inputs, alive & (check == NO))
    states = recorded(inputs)
    states[(under == 0) & (dark > 0) & (states == schema.OK)] = schema.MISSING
    if dark.any():
        inputs.counts[f"citations not checked: {name}"] = int(dark.sum())
    why = {schema.NA: NO_CITATION, schema.MISSING: _WHY.get(name, UNCHECKED)}
    return Column(over, under, states, why, rungs)


def _entails(inputs: Inputs, measure: Measure) -> Column:
    """The last stage: pairs that passed all before, by the verdict on them."""
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    verdict, rank = pair_verdicts(inputs, cited(inputs))
    alive = chain_of(inputs).reached("")
    return judged_share(inputs, alive, verdict, rank, "entails")


def judged_share(inputs: Inputs, alive: Any, verdict: Any, rank: Any, name: str) -> Column:
    """Pairs that are entailed among those that are alive and judged."""
    owner = cited(inputs).owner
    check = np.where(verdict >= 0, verdict == kernel.YES, UNKNOWN).astype(np.int8)
    used = alive & (verdict >= 0)
    found = _share(inputs, name, alive, check, lowest_rung(owner[used], rank[used], inputs.n))
    said_otherwise = alive & (verdict < kernel.MISSING)  # disputed or failed, not merely absent
    worst = worst_state(owner[said_otherwise], verdict[said_otherwise], inputs.n)
    found.states = np.maximum(found.states, worst)
    return found


def _fabricated(inputs: Inputs, measure: Measure) -> Column:
    """Well-formed and never shown."""
    given = cited(inputs)
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    over = per_ranking(inputs, (given.formed == YES) & (given.shown == NO))
    dark = per_ranking(inputs, (given.formed == YES) & (given.shown == UNKNOWN)) > 0
    return _total(inputs, over, dark, "no-context")


def _dangling(inputs: Inputs, measure: Measure) -> Column:
    """Ids that resolve to nothing."""
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    given = cited(inputs)
    over = per_ranking(inputs, given.dangling == YES)
    return _total(inputs, over, per_ranking(inputs, given.dangling == UNKNOWN) > 0, "no-chunks")


def _total(inputs: Inputs, over: Any, dark: Any, why: str) -> Column:
    states = recorded(inputs)
    states[dark & (states == schema.OK)] = schema.MISSING
    return Column(over, np.ones(inputs.n), states, {schema.MISSING: why})


def _support(inputs: Inputs, measure: Measure) -> Column:
    """Citations that meet all five conditions."""
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    found = support.supports(inputs)
    dark = per_ranking(inputs, found == UNKNOWN) > 0
    column = _total(inputs, per_ranking(inputs, found == YES), dark, UNCHECKED)
    column.under = cited(inputs).counts.astype(np.float64)
    return Column(column.over, column.under, column.states,
                  {schema.NA: NO_CITATION, schema.MISSING: UNCHECKED})  # fmt: skip


def _answer(inputs: Inputs, measure: Measure) -> Column:
    """R84: cited, all of it supports, and every claim is covered."""
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    state = said(inputs, "proposed")
    state = said(inputs, "final") if state is None else state
    found, yes = support.answer_supported(inputs), support.answered(inputs, state)
    states = recorded(inputs)
    states[yes & (found == UNKNOWN) & (states == schema.OK)] = schema.MISSING
    why = {schema.NA: NOT_ANSWERED, schema.MISSING: UNCHECKED}
    return Column((found == YES).astype(np.float64), yes.astype(np.float64), states, why)


def _presence(inputs: Inputs, measure: Measure) -> Column:
    """Factual claims with any well-formed citation."""
    given, claims = cited(inputs), claims_of(inputs)
    if not (inputs.has_trace("citations") and inputs.has_trace("claims")):
        return missing(inputs, NO_COLUMN)
    has = citation_verdicts.has_citation(given, claims)
    over = np.bincount(claims.owner[claims.factual & has], minlength=inputs.n)
    under = np.bincount(claims.owner[claims.factual], minlength=inputs.n)
    states = inputs.states(given.present & claims.present)
    return Column(over.astype(np.float64), under.astype(np.float64), states,
                  {schema.NA: "no-factual-claim"})  # fmt: skip


def _resolution(inputs: Inputs, measure: Measure) -> Column:
    """Pairs that lead to the unit, version, place and quote that they name."""
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    stages = chain_of(inputs).stages
    found = support.all_of(stages["well_formed"], stages["version"], stages["quote"])
    dark = per_ranking(inputs, found == UNKNOWN) > 0
    column = _total(inputs, per_ranking(inputs, found == YES), dark, UNCHECKED)
    return Column(column.over, cited(inputs).counts.astype(np.float64), column.states,
                  {schema.NA: NO_CITATION, schema.MISSING: UNCHECKED})  # fmt: skip


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "citation.emitted": _emitted,
    **{f"citation.{name}": partial(_stage, name=name) for name in STAGES},
    "citation.entails": _entails, "citation.fabricated": _fabricated,
    "citation.dangling": _dangling, "citation.support": _support, "answer.supported": _answer,
    "citation.presence": _presence, "citation.resolution": _resolution,
    **citation_verdicts.VALUES,
}  # fmt: skip
"""How each measure of this layer is worked out."""
