"""Values of the measures of citations that rest on verdicts, and of how independent sources are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.formats.compute import pc
from ragcore.lists import integers, plain
from ragcore.measures import sentences
from ragcore.measures.chain import chain_of, row_of
from ragcore.measures.cited import WHOLE_ANSWER, Cited, Claims, cited, claims_of, documents_of
from ragcore.measures.cites import (
    Sets,
    claim_verdicts,
    lowest_rung,
    of_claims,
    pair_verdicts,
    sets_of,
    union_verdicts,
    worst_state,
)
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_VERDICT, Column, Inputs, missing
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.citations import NO, UNKNOWN, YES
from ragcore_kernels.layout import F64, I64

_NO_CITATION, _NO_CLAIM, _NO_CITED = "no-citation", "no-factual-claim", "no-cited-claim"


def _counted(owner: I64, n: int) -> F64:
    return np.bincount(owner, minlength=n).astype(np.float64)


def has_citation(given: Cited, claims: Claims) -> Any:
    """(n_claims,) bool, claims with a well-formed citation, or one of the whole answer."""
    claim, _ = of_claims(given, claims, given.formed == YES)
    has = np.zeros(claims.owner.size, np.bool_)
    has[claim] = True
    return has


def resolves(inputs: Inputs) -> Any:
    """(n_pairs,) bool, pairs that failed none of: form, supply, version, place and quote."""
    return chain_of(inputs).reached("accessible")


def supporting_sets(inputs: Inputs) -> Sets:
    """The units that each claim cites, where its citations resolve."""

    def make() -> Sets:
        given, claims = cited(inputs), claims_of(inputs)
        claim, pair = of_claims(given, claims, resolves(inputs))
        return sets_of(claim, given.unit[pair], claims.owner.size)

    return inputs.once("cited sets", make)


def claim_support(inputs: Inputs) -> tuple[Any, Any]:
    """Verdict and rank on each claim by what it cites."""

    def make() -> tuple[Any, Any]:
        claims = claims_of(inputs)
        number = np.arange(claims.owner.size) - claims.offsets[:-1][claims.owner]
        return union_verdicts(inputs, claims.owner, number, supporting_sets(inputs))

    return inputs.once("claim support", make)


def _needs(inputs: Inputs, *columns: str) -> bool:
    return all(inputs.has_trace(name) for name in ("citations", *columns))


def precision(inputs: Inputs, measure: Measure) -> Column:
    """Pairs that resolve and support: by the verdict, else by a labelled span."""
    if not _needs(inputs):
        return missing(inputs, NO_COLUMN)
    given, found = cited(inputs), chain_of(inputs)
    verdict, rank = pair_verdicts(inputs, given)
    alive = resolves(inputs)
    span = found.stages["span_inside"]
    by_rule = (verdict == kernel.MISSING) & (span != UNKNOWN)
    yes = alive & np.where(by_rule, span == YES, verdict == kernel.YES)
    open_ = alive & ~by_rule & (verdict < 0)
    states = np.maximum(
        inputs.states(given.present), worst_state(given.owner[open_], verdict[open_], inputs.n)
    )
    used = alive & (verdict >= 0)
    return Column(
        _counted(given.owner[yes], inputs.n), given.counts.astype(np.float64), states,
        {schema.NA: _NO_CITATION, schema.MISSING: NO_VERDICT},
        lowest_rung(given.owner[used], rank[used], inputs.n),
    )  # fmt: skip


def recall(inputs: Inputs, measure: Measure) -> Column:
    """Factual claims that what they cite entails."""
    if not _needs(inputs, "claims"):
        return missing(inputs, NO_COLUMN)
    given, claims = cited(inputs), claims_of(inputs)
    verdict, rank = claim_support(inputs)
    factual = claims.factual
    owner = claims.owner[factual]
    states = np.maximum(
        inputs.states(given.present & claims.present),
        worst_state(owner, verdict[factual], inputs.n),
    )
    return Column(
        _counted(claims.owner[factual & (verdict == kernel.YES)], inputs.n),
        _counted(owner, inputs.n), states, {schema.NA: _NO_CLAIM, schema.MISSING: NO_VERDICT},
        lowest_rung(owner, rank[factual], inputs.n),
    )  # fmt: skip


def _judged(inputs: Inputs, relation: str) -> Column:
    """Pairs with a yes among those with a verdict, whatever stage they reach."""
    given = cited(inputs)
    verdict, rank = pair_verdicts(inputs, given, relation)
    judged = verdict >= 0
    under = _counted(given.owner[judged], inputs.n)
    states = inputs.states(given.present)
    states[(under == 0) & (given.counts > 0) & (states == schema.OK)] = schema.MISSING
    broken = verdict < kernel.MISSING  # disputed or failed, not merely absent
    states = np.maximum(states, worst_state(given.owner[broken], verdict[broken], inputs.n))
    return Column(
        _counted(given.owner[verdict == kernel.YES], inputs.n), under, states,
        {schema.NA: _NO_CITATION, schema.MISSING: NO_VERDICT},
        lowest_rung(given.owner[judged], rank[judged], inputs.n),
    )  # fmt: skip


def entailment(inputs: Inputs, measure: Measure) -> Column:
    """Entailed among judged pairs."""
    return _judged(inputs, "cites") if _needs(inputs) else missing(inputs, NO_COLUMN)


def influence(inputs: Inputs, measure: Measure) -> Column:
    """Cited units whose removal flips their claim, among those that were removed."""
    if not _needs(inputs) or not inputs.verdicts.has("influence"):
        return missing(inputs, "no-ablation")
    return _judged(inputs, "influence")


def laundering(inputs: Inputs, measure: Measure) -> Column:
    """Correct claims whose citations do not entail them."""
    if not _needs(inputs, "claims"):
        return missing(inputs, NO_COLUMN)
    given, claims = cited(inputs), claims_of(inputs)
    verdict, rank = claim_support(inputs)
    right, right_rank = claim_verdicts(inputs, "correct")
    refuted = (verdict == kernel.NO) | (verdict == kernel.CONTRADICTS)
    wrong = (right >= 0) & (right != kernel.YES)
    looked = has_citation(given, claims)
    hit = looked & (right == kernel.YES) & refuted
    settled = hit | wrong | ((verdict >= 0) & ~refuted)
    open_ = looked & ~settled
    reason = np.where(right < 0, right, verdict)
    states = np.maximum(
        inputs.states(given.present & claims.present),
        worst_state(claims.owner[open_], reason[open_], inputs.n),
    )
    owner = np.concatenate([claims.owner[looked], claims.owner[looked]])
    ranks = np.concatenate([rank[looked], right_rank[looked]])
    return Column(
        _counted(claims.owner[hit], inputs.n), np.ones(inputs.n), states,
        {schema.MISSING: NO_VERDICT}, lowest_rung(owner, ranks, inputs.n),
    )  # fmt: skip


def _distinct(inputs: Inputs, codes: Any, why: str) -> Column:
    """Distinct codes of what each claim cites, over claims that cite anything.

    Parameters
    ----------
    codes : (n_pairs,), -1 where nobody knows, which leaves the answer open.
    """
    given, claims = cited(inputs), claims_of(inputs)
    taken = (given.formed == YES) & (given.shown != NO)
    claim, pair = of_claims(given, claims, taken)
    # Without claims a citation of the whole answer speaks of the answer as one claim.
    bare = (np.diff(claims.offsets) == 0)[given.owner] & taken & (given.claim == WHOLE_ANSWER)
    n_claims = claims.owner.size
    subject = np.concatenate([claim, n_claims + given.owner[bare]])
    pair = np.concatenate([pair, np.flatnonzero(bare)])
    sets = sets_of(subject, codes[pair], n_claims + inputs.n)
    ranking = np.concatenate([claims.owner, np.arange(inputs.n)])
    cites = sets.sizes > 0
    states = inputs.states(given.present)
    dark = np.bincount(ranking[sets.owners[sets.units < 0]], minlength=inputs.n) > 0
    states[dark & (states == schema.OK)] = schema.MISSING
    total = np.bincount(ranking, sets.sizes, inputs.n).astype(np.float64)
    return Column(
        total, _counted(ranking[cites], inputs.n), states,
        {schema.NA: _NO_CITED, schema.MISSING: why},
    )  # fmt: skip


def independence(inputs: Inputs, measure: Measure) -> Column:
    """Distinct upstreams of each cited claim."""
    chunks = inputs.shared.chunks
    if not _needs(inputs) or chunks is None or not chunks.has("source_family"):
        return missing(inputs, NO_COLUMN)
    family = pc.dictionary_encode(plain(chunks.column("source_family")).cast(pa.large_string()))
    codes = np.append(integers(family.indices, len(chunks)), -1)
    return _distinct(inputs, codes[row_of(inputs, cited(inputs))], "no-source-family")


def documents(inputs: Inputs, measure: Measure) -> Column:
    """Distinct documents of each cited claim; a unit that the suite lacks is a document."""
    if not _needs(inputs):
        return missing(inputs, NO_COLUMN)
    given, chunks = cited(inputs), inputs.shared.chunks
    codes = given.unit
    if chunks is not None:
        code, _ = documents_of(chunks)
        row = row_of(inputs, given)
        codes = np.where(row >= 0, np.append(code, -1)[row], len(code) + given.unit)
    return _distinct(inputs, codes, NO_COLUMN)


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "citation.precision": precision, "citation.recall": recall,
    "citation.entailment": entailment, "citation.influence": influence,
    "citation.laundering": laundering, "citation.independence": independence,
    "citation.documents": documents, **sentences.VALUES,
}  # fmt: skip
"""How each of these is worked out."""
