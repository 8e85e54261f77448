"""Values of the measures of judges: resolved verdicts against those that a run needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.measures.corrected import labels_and_judge
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_VERDICT, Column, Inputs, missing
from ragcore.verdicts import Verdicts
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.layout import I64

EXPECTED = (
    "correct", "entailed", "covered", "chunk_entails", "chunk_entails_reference", "cites",
    "relevance", "conflict_shown",
)  # fmt: skip
"""Relations whose needed verdicts follow from a trace and its case."""
_NOTHING = "no-verdict-needed"


@dataclass
class Needed:
    """The verdicts that are needed on some relations.

    Attributes
    ----------
    owner : flat, the ranking of each.
    verdict, rung : flat int8, what stands there: see `ragcore.verdicts.Cells`.
    recorded : (n,), whether it is known which verdicts a ranking needs.
    """

    owner: I64
    verdict: Any
    rung: Any
    recorded: Any


def needed(inputs: Inputs, relation: str) -> Needed:
    """The verdicts that one relation needs, as they count."""
    verdicts = inputs.verdicts
    return inputs.once(f"needed {relation}", lambda: needed_of(inputs, verdicts, relation))


def needed_of(inputs: Inputs, verdicts: Verdicts, relation: str) -> Needed:
    """The verdicts that one relation needs, from some of all verdicts on a run."""
    n = inputs.n
    if relation == "conflict_shown" or (relation == "correct" and _whole(inputs)):
        found = verdicts.whole(relation)
        there = np.flatnonzero(~inputs.absent)  # what was not run has no answer to judge
        return Needed(there, found.verdict[there], found.rung[there], ~inputs.absent)
    if relation == "relevance":
        shown = inputs.trace_lists("context")
        found = verdicts.units(relation, shown.offsets, inputs.units(shown))
        recorded = shown.present
    elif relation == "cites":
        return _cited(inputs, verdicts)
    else:
        of_case = relation in ("covered", "chunk_entails_reference")
        claims = inputs.case_lists("claims") if of_case else inputs.trace_lists("claims")
        recorded = claims.present
        if relation.startswith("chunk_"):
            shown = inputs.trace_lists("context")
            units = inputs.units(shown)
            found = verdicts.pairs(relation, claims.offsets, shown.offsets, units)
            recorded = recorded & shown.present
        else:
            found = verdicts.claims(relation, claims.offsets)
    owner = np.repeat(np.arange(n), np.diff(found.offsets))
    return Needed(owner, found.verdict, found.rung, recorded)


def _whole(inputs: Inputs) -> bool:
    """Whether answers were judged as a whole: no verdict on `correct` names a claim."""
    given = inputs.shared.judgments
    if given is None or not inputs.has_trace("claims"):
        return True
    on = given.relation == schema.RELATIONS.index("correct")
    packed = given.packed  # whose lists are one verdict a claim
    if packed is not None and (packed.relation == schema.RELATIONS.index("correct")).any():
        return False
    return bool(on.any()) and bool((given.claim[on] < 0).all())


def _cited(inputs: Inputs, verdicts: Verdicts) -> Needed:
    """Each claim with each chunk that it cites, once; citations of no claim or chunk need none."""
    claims, cited = inputs.trace_lists("claims"), inputs.trace_lists("citations")
    units, claim, owner = inputs.units(cited), cited.integers("claim"), cited.owners
    cells = verdicts.pairs("cites", claims.offsets, cited.offsets, units)
    good = (claim >= 0) & (claim < claims.counts[owner]) & (units >= 0)
    at, who = np.flatnonzero(good), owner[good]
    place = _first(owner, units)[at] - cited.offsets[who]
    cell = cells.offsets[who] + claim[at] * cited.counts[who] + place
    cell, first = np.unique(cell, return_index=True)
    recorded = claims.present & cited.present
    return Needed(who[first], cells.verdict[cell], cells.rung[cell], recorded)


def _first(owner: I64, units: I64) -> I64:
    """The first item of its list with the same unit, for each item."""
    _, first, place = np.unique(
        owner * (int(units.max(initial=0)) + 2) + units + 1, return_index=True, return_inverse=True
    )
    return first[place]


def _relations(inputs: Inputs, measure: Measure) -> list[str]:
    asked = measure.params["relation"]
    if asked == "all":
        return [name for name in EXPECTED if inputs.verdicts.has(name)]
    if asked not in EXPECTED:
        raise UsageError(
            f"measure {measure.text!r}: relation={asked!r}", f"all, {', '.join(EXPECTED)}"
        )
    return [asked]


def corrected(inputs: Inputs, measure: Measure) -> Column:
    """Share of yes by people where they labelled; what the judge says goes along as the order."""
    given = inputs.shared.judgments
    if given is None:
        return missing(inputs, NO_VERDICT)
    relation = measure.params["relation"]
    if relation not in EXPECTED:
        raise UsageError(
            f"measure {measure.text!r}: relation={relation!r}", f"one of {', '.join(EXPECTED)}"
        )
    sides = labels_and_judge(inputs, measure)
    if sides is None:
        return missing(inputs, NO_VERDICT)
    people, judge = (needed_of(inputs, one, relation) for one in sides)
    n = inputs.n
    both, alone = (people.verdict >= 0) & (judge.verdict >= 0), judge.verdict >= 0

    def count(where: Any) -> Any:
        return np.bincount(people.owner[where], minlength=n).astype(np.float64)

    labelled, any_label = count(both), count(people.verdict >= 0)
    ok = labelled > 0
    # A case that people labelled is never one of those that only the judge has seen.
    touched = np.isin(inputs.match.case_of, inputs.match.case_of[any_label > 0])
    order = np.full(n, np.nan)
    seen = count(alone)
    np.divide(count(alone & (judge.verdict == kernel.YES)), seen, out=order, where=seen > 0)
    order[touched] = np.nan
    np.divide(count(both & (judge.verdict == kernel.YES)), labelled, out=order, where=ok)
    rungs = np.full(n, np.int8(127))
    np.minimum.at(rungs, people.owner[both], people.rung[both])
    rungs[rungs == 127] = -1
    why = {schema.MISSING: "no-label"}
    over = count(both & (people.verdict == kernel.YES))
    return Column(over, labelled, inputs.states(ok), why, rungs, order=order)


def _share(counts: Callable[[Any], Any]) -> Callable[[Inputs, Measure], Column]:
    def value(inputs: Inputs, measure: Measure) -> Column:
        if inputs.shared.judgments is None:
            return missing(inputs, NO_VERDICT)
        relations = _relations(inputs, measure)
        if not relations:
            return missing(inputs, NO_VERDICT)
        n = inputs.n
        over, under = np.zeros(n), np.zeros(n)
        recorded = np.ones(n, np.bool_)
        rungs = np.full(n, np.int8(127))
        for relation in relations:
            found = needed(inputs, relation)
            under += np.bincount(found.owner, minlength=n)
            over += np.bincount(found.owner[counts(found.verdict)], minlength=n)
            recorded &= found.recorded | inputs.absent
            settled = found.verdict >= 0
            np.minimum.at(rungs, found.owner[settled], found.rung[settled])
        rungs[rungs == 127] = -1
        why = {schema.NA: _NOTHING, schema.MISSING: NO_COLUMN}
        return Column(over, under, inputs.states(recorded), why, rungs)

    return value


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "judge.coverage": _share(lambda verdict: verdict >= 0),
    "judge.disputed": _share(lambda verdict: verdict == kernel.DISPUTED),
    "judge.below_rung": _share(lambda verdict: verdict == kernel.LOW_RUNG),
    "judge.errors": _share(lambda verdict: verdict == kernel.FAILED),
    "judge.missing": _share(lambda verdict: verdict == kernel.MISSING),
    "judge.ppi": corrected,
}
"""How each measure of this layer is worked out."""
