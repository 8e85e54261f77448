"""Citations by sentence, as ALCE and TREC RAG measure them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.measures.cited import WHOLE_ANSWER, Claims, cited, claims_of
from ragcore.measures.cites import (
    WEIGHTS,
    Sets,
    best_of,
    lookup,
    lowest_rung,
    of_claims,
    pair_verdicts,
    sets_of,
    singles,
    worst_state,
)
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_VERDICT, Column, Inputs, missing
from ragcore.verdicts import STATE_OF
from ragcore_kernels import support as kernels
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.citations import NO, YES
from ragcore_kernels.layout import F64, I64, frozen

_WHOLE = "citation-of-whole-answer"


@dataclass
class Sentences:
    """The sentences of every answer, in which its claims stand, and what they cite.

    Attributes
    ----------
    owner : (n_sentences,), ranking of each.
    of : (n_claims,), sentence of each claim; a claim that names none is a sentence.
    claims, starts : the claims sentence by sentence, and (n_sentences + 1,) where each begins.
    sets : (n_sentences,), units cited that were shown, as far as that is known.
    """

    owner: I64
    of: I64
    claims: I64
    starts: I64
    sets: Sets

    def ask(self, inputs: Inputs, sentence: I64, sets: Sets) -> tuple[Any, Any]:
        """Verdict and lowest rank of each query: what a set entails of all claims of a sentence.

        The least supported claim decides; one that is open leaves it open unless another fails.
        """
        claims, n = claims_of(inputs), sentence.size
        sizes = np.diff(self.starts)[sentence]
        query = np.repeat(np.arange(n), sizes)
        within = np.arange(query.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        claim = self.claims[self.starts[:-1][sentence[query]] + within]
        ranking = claims.owner[claim]
        verdict, rank = lookup(inputs).find(
            ranking, claim - claims.offsets[:-1][ranking], _taken(sets, query)
        )
        least = np.full(n, -1, np.int8)
        np.maximum.at(least, query[verdict >= 0], verdict[verdict >= 0])
        worst = worst_state(query, verdict, n)
        reasons = np.full(len(schema.STATES), kernel.MISSING, np.int8)
        for reason, state in STATE_OF.items():
            if reason != kernel.LOW_RUNG:
                reasons[state] = reason
        out = np.where((worst > 0) & (least < kernel.NO), reasons[worst], least)
        low = np.full(n, 127, np.int8)
        np.minimum.at(low, query[verdict >= 0], rank[verdict >= 0])
        return out, np.where(low == 127, np.int8(kernel.NO_VERDICT), low)


def _taken(sets: Sets, query: I64) -> Sets:
    """The sets of `query`, which may ask for one several times."""
    sizes = sets.sizes[query]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    first = np.repeat(sets.offsets[:-1][query] - offsets[:-1], sizes)
    return Sets(offsets, sets.units[first + np.arange(first.size)])


def sentences_of(inputs: Inputs) -> Sentences:
    """The sentences of every answer."""

    def make() -> Sentences:
        given, claims = cited(inputs), claims_of(inputs)
        of = _grouped(claims)
        n = int(of.max(initial=-1)) + 1
        owner = np.zeros(n, np.int64)
        owner[of] = claims.owner
        order = np.argsort(of, kind="stable").astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=n))]).astype(np.int64)
        taken = (given.formed == YES) & (given.shown != NO) & (given.claim != WHOLE_ANSWER)
        claim, pair = of_claims(given, claims, taken)
        return Sentences(owner, of, order, starts, sets_of(of[claim], given.unit[pair], n))

    return inputs.once("cited sentences", make)


def _grouped(claims: Claims) -> I64:
    """Sentence of each claim as a number of its own over all rankings, in their order."""
    n = claims.owner.size
    alone = claims.sentence < 0
    key = np.where(alone, np.arange(n), claims.sentence)
    order = np.lexsort((key, alone, claims.owner))
    new = np.ones(n, np.int64)
    same = (claims.owner[order][1:] == claims.owner[order][:-1]) & ~alone[order][1:]
    same &= ~alone[order][:-1] & (key[order][1:] == key[order][:-1])
    new[1:] = ~same
    out = np.empty(n, np.int64)
    out[order] = np.cumsum(new) - 1
    return out


def _base(inputs: Inputs) -> tuple[Any, dict[int, str]]:
    """States of what needs claims and citations of sentences, and why."""
    given, claims = cited(inputs), claims_of(inputs)
    states = inputs.states(given.present & claims.present)
    whole = (given.claim == WHOLE_ANSWER) & (given.formed == YES)
    why = {schema.MISSING: NO_VERDICT}
    if whole.any():
        states[given.owner[whole]] = np.maximum(states[given.owner[whole]], schema.MISSING)
        why = {schema.MISSING: _WHOLE}
    return states, why


def _sums(owner: I64, weights: Any, n: int) -> F64:
    return np.bincount(owner, weights, n).astype(np.float64)


def _joint(inputs: Inputs) -> tuple[Any, Any]:
    """Verdict and rank on each sentence by exactly what it cites; no without a citation."""

    def make() -> tuple[Any, Any]:
        found = sentences_of(inputs)
        verdict, rank = found.ask(inputs, np.arange(found.owner.size), found.sets)
        empty = found.sets.sizes == 0
        verdict[empty], rank[empty] = kernel.NO, kernel.NO_VERDICT
        return verdict, rank

    return inputs.once("joint verdicts", make)


def _alone(inputs: Inputs) -> tuple[Any, Any]:
    """Verdict and rank on each unit of each sentence's set by it alone."""

    def make() -> tuple[Any, Any]:
        found = sentences_of(inputs)
        return found.ask(inputs, found.sets.owners, singles(found.sets.units))

    return inputs.once("verdicts alone", make)


@dataclass
class Alce:
    """What `support.alce` counts of every answer, and what the verdicts behind it are.

    Attributes
    ----------
    counts, unknown : as the kernel fills them.
    stray : (n,), citations of no sentence that the answer has; they are not precise.
    rungs : (n,) int8 each, lowest rung behind recall and behind precision.
    """

    counts: I64
    unknown: I64
    stray: F64
    rungs: tuple[Any, Any]


def _alce(inputs: Inputs, official: bool) -> Alce:
    found, (joint, joint_rank), given = sentences_of(inputs), _joint(inputs), cited(inputs)
    claims, sentence, n = claims_of(inputs), found.sets.owners, inputs.n
    alone, alone_rank = _alone(inputs)
    rest, rest_rank = found.ask(inputs, sentence, found.sets.without_each())
    lost = (given.formed == NO) | (given.shown == NO)
    placed = lost & (given.claim >= 0)
    hanging, _ = of_claims(given, claims, placed)
    of = np.concatenate([sentence, found.of[hanging]])
    order = np.argsort(of, kind="stable")
    none = np.zeros(hanging.size, np.int8)
    own = np.concatenate([_codes(alone), none + np.int8(kernels.DANGLING)])[order]
    others = np.concatenate([_codes(rest), none])[order]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=found.owner.size))])
    answers = np.concatenate([[0], np.cumsum(np.bincount(found.owner, minlength=n))])
    counts = np.zeros((n, kernels.ALCE_COUNTS), np.int64)
    unknown = np.zeros((n, 2, kernels.UNKNOWNS), np.int64)
    kernels.alce(
        0, n, frozen(answers, np.int64), frozen(offsets, np.int64), frozen(_codes(joint), np.int8),
        frozen(own, np.int8), frozen(others, np.int8), int(official), counts, unknown,
        np.zeros(of.size, np.int8),
    )  # fmt: skip
    stray = np.bincount(given.owner[lost & ~placed], minlength=n).astype(np.float64)
    several = (joint[sentence] == kernel.YES) & (found.sets.sizes[sentence] > 1)
    asked = several & (alone != kernel.YES)
    owner = found.owner[sentence]
    used = np.concatenate([found.owner, owner[several], owner[asked]])
    ranks = np.concatenate([joint_rank, alone_rank[several], rest_rank[asked]])
    rungs = lowest_rung(found.owner, joint_rank, n), lowest_rung(used, ranks, n)
    return Alce(counts, unknown, stray, rungs)


def _codes(verdict: Any) -> Any:
    """Verdicts as ALCE takes them: yes or no; a reason below 0, a low rung as a dispute."""
    open_ = np.where(verdict == kernel.LOW_RUNG, np.int8(kernel.DISPUTED), verdict)
    return np.where(verdict < 0, open_, verdict == kernel.YES).astype(np.int8)


def _alce_column(inputs: Inputs, measure: Measure, part: int) -> Column:
    if not (inputs.has_trace("citations") and inputs.has_trace("claims")):
        return missing(inputs, NO_COLUMN)
    official = bool(measure.params["official"])
    found = inputs.once(f"alce {official}", lambda: _alce(inputs, official))
    states, why = _base(inputs)
    for k, state in enumerate((schema.MISSING, schema.DISPUTED, schema.FAILED)):
        hit = found.unknown[:, part, k] > 0
        states = np.where(hit, np.maximum(states, np.int8(state)), states)
    columns = ((kernels.ENTAILED, kernels.SENTENCES), (kernels.PRECISE, kernels.CITATIONS))[part]
    over, under = (found.counts[:, c].astype(np.float64) for c in columns)
    if part == 1 and not official:
        under = under + found.stray
    return Column(over, np.maximum(under, 1.0), states.astype(np.int8), why, found.rungs[part])


def _weights(verdict: Any, strict: bool) -> F64:
    """1, 1/2 and 0; partial support is none if `strict`, open verdicts have no weight."""
    halves = np.where(verdict >= 0, WEIGHTS[np.maximum(verdict, 0)], 0)
    return (halves == 2).astype(np.float64) if strict else halves / 2.0


def trec_precision(inputs: Inputs, measure: Measure, strict: bool) -> Column:
    """Weights of judged citations; one of what was never shown is judged: no support."""
    if not inputs.has_trace("citations"):
        return missing(inputs, NO_COLUMN)
    given = cited(inputs)
    verdict, rank = pair_verdicts(inputs, given)
    lost = (given.formed == NO) | (given.shown == NO)
    verdict = np.where(lost, np.int8(kernel.NO), verdict)
    judged, broken = verdict >= 0, verdict < kernel.MISSING
    under = _sums(given.owner[judged], None, inputs.n)
    states = inputs.states(given.present)
    states[(under == 0) & (given.counts > 0) & (states == schema.OK)] = schema.MISSING
    states = np.maximum(states, worst_state(given.owner[broken], verdict[broken], inputs.n))
    used = judged & ~lost
    return Column(
        _sums(given.owner, _weights(verdict, strict), inputs.n), under, states,
        {schema.NA: "no-citation", schema.MISSING: NO_VERDICT},
        lowest_rung(given.owner[used], rank[used], inputs.n),
    )  # fmt: skip


def trec_recall(inputs: Inputs, measure: Measure, strict: bool) -> Column:
    """Weights of sentences: the verdict on what they cite, else the best on one citation."""
    if not (inputs.has_trace("citations") and inputs.has_trace("claims")):
        return missing(inputs, NO_COLUMN)
    found, (joint, joint_rank) = sentences_of(inputs), _joint(inputs)
    best, best_rank = best_of(found.sets.offsets, *_alone(inputs))
    open_ = joint == kernel.MISSING
    verdict, rank = np.where(open_, best, joint), np.where(open_, best_rank, joint_rank)
    states, why = _base(inputs)
    states = np.maximum(states, worst_state(found.owner, verdict, inputs.n))
    return Column(
        _sums(found.owner, _weights(verdict, strict), inputs.n),
        _sums(found.owner, None, inputs.n), states, {schema.NA: "no-sentence", **why},
        lowest_rung(found.owner, rank, inputs.n),
    )  # fmt: skip


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "alce.recall": partial(_alce_column, part=0),
    "alce.precision": partial(_alce_column, part=1),
    "trecrag.support_precision": partial(trec_precision, strict=False),
    "trecrag.support_recall": partial(trec_recall, strict=False),
    "trecrag.support_precision_strict": partial(trec_precision, strict=True),
    "trecrag.support_recall_strict": partial(trec_recall, strict=True),
}  # fmt: skip
"""How each of these is worked out."""
