"""Verdicts on sets of cited chunks: looked up by ranking, claim and set, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.formats.compute import pc
from ragcore.lists import integers
from ragcore.measures.cited import WHOLE_ANSWER, Cited, Claims, claims_of
from ragcore.measures.inputs import Inputs
from ragcore.verdicts import STATE_OF
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.layout import I64

WEIGHTS = np.array([2, 1, 0, 0], np.int8)
"""Half weights of yes, partial, no and contradicts."""


@dataclass
class Sets:
    """Sets of units, one a query.

    Attributes
    ----------
    offsets, units : (n + 1,) and flat; in a set no unit stands twice, and they ascend.
    """

    offsets: I64
    units: I64

    @property
    def sizes(self) -> I64:
        """(n,), units of each set."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> I64:
        """(n_units,), the set that each unit is of."""
        return np.repeat(np.arange(self.offsets.size - 1), self.sizes)

    def without_each(self) -> Sets:
        """For every unit of every set, in order, what is left of its set without it."""
        owner = self.owners
        sizes = self.sizes[owner]
        query = np.repeat(np.arange(owner.size), sizes)
        starts = np.cumsum(sizes) - sizes
        at = np.arange(query.size) - starts[query] + self.offsets[:-1][owner[query]]
        kept = at != query
        return sets_of(query[kept], self.units[at[kept]], owner.size)


def sets_of(owner: I64, units: I64, n: int) -> Sets:
    """Sets from pairs of set and unit in any order, repeats left out."""
    order = np.lexsort((units, owner))
    owner, units = owner[order], units[order]
    fresh = np.ones(owner.size, np.bool_)
    fresh[1:] = (owner[1:] != owner[:-1]) | (units[1:] != units[:-1])
    counts = np.bincount(owner[fresh], minlength=n)
    return Sets(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), units[fresh])


def singles(units: I64) -> Sets:
    """A set for each unit, of it alone."""
    return Sets(np.arange(units.size + 1, dtype=np.int64), units)


def _keys(ranking: I64, claim: I64, sets: Sets) -> pa.Array:
    """Ranking, claim and units as the bytes of one value, so that equal bytes are equal keys."""
    n = ranking.size
    starts = sets.offsets + 2 * np.arange(n + 1)
    flat = np.empty(int(starts[-1]), np.int64)
    flat[starts[:-1]], flat[starts[:-1] + 1] = ranking, claim
    flat[np.arange(sets.units.size) + 2 * (sets.owners + 1)] = sets.units
    buffers = [None, pa.py_buffer(8 * starts), pa.py_buffer(flat)]
    return pa.Array.from_buffers(pa.large_binary(), n, buffers)


class Lookup:
    """The verdicts of one relation on the citations of a run.

    Parameters
    ----------
    inputs : the run.
    relation : ``cites``, ``influence``, ...
    whatever : take a verdict whatever chunks it was given, as one on the empty set.
    """

    def __init__(self, inputs: Inputs, relation: str, whatever: bool = False) -> None:
        verdicts, claims = inputs.verdicts, claims_of(inputs)
        recorded = inputs.trace_lists("claims").present
        row, ranking = verdicts.matches(relation, claims.offsets, recorded)
        self.names: pa.Array = pa.array([], pa.large_binary())
        self.verdict, self.rank = np.zeros(0, np.int8), np.zeros(0, np.int8)
        if verdicts.judgments is None or not row.size:
            return
        offsets, units = verdicts.units_of(row)
        owner = np.repeat(np.arange(row.size), np.diff(offsets))
        if whatever:
            owner, units = owner[:0], units[:0]
        sets = sets_of(owner, units, row.size)
        claim = verdicts.judgments.claim[row].astype(np.int64)
        keys = pc.dictionary_encode(_keys(ranking, claim, sets))
        self.names = keys.dictionary
        codes = integers(keys.indices, row.size)
        self.verdict, self.rank = verdicts.resolve(row, codes, ranking, len(self.names))

    def find(self, ranking: I64, claim: I64, sets: Sets) -> tuple[Any, Any]:
        """Verdict and rank of each query, as in `verdicts.Cells`; missing where nobody judged it.

        Parameters
        ----------
        ranking, claim : (n,), and the claim within it, `WHOLE_ANSWER` for the answer as a whole.
        sets : (n,), of exactly which units.
        """
        at = integers(pc.index_in(_keys(ranking, claim, sets), value_set=self.names), ranking.size)
        verdict = np.append(self.verdict, np.int8(kernel.MISSING))[at]
        return verdict, np.append(self.rank, np.int8(kernel.NO_VERDICT))[at]


def lookup(inputs: Inputs, relation: str = "cites") -> Lookup:
    """The verdicts of a relation on citations."""
    return inputs.once(f"lookup {relation}", lambda: Lookup(inputs, relation))


def claim_verdicts(inputs: Inputs, relation: str) -> tuple[Any, Any]:
    """Verdict and rank of every claim, whatever chunks it was judged by.

    Verdicts on an answer as a whole are left aside.
    """
    claims = claims_of(inputs)
    if inputs.verdicts.packs(relation):
        cells = inputs.verdicts.claims(relation, claims.offsets)
        return cells.verdict, cells.rank
    number = np.arange(claims.owner.size) - claims.offsets[:-1][claims.owner]
    none = Sets(np.zeros(claims.owner.size + 1, np.int64), np.zeros(0, np.int64))
    found = inputs.once(f"lookup {relation} whatever", lambda: Lookup(inputs, relation, True))
    return found.find(claims.owner, number, none)


def pair_verdicts(inputs: Inputs, given: Cited, relation: str = "cites") -> tuple[Any, Any]:
    """Verdict and rank of every pair: its claim and the one unit that it cites."""
    return inputs.once(
        f"pair verdicts {relation}",
        lambda: lookup(inputs, relation).find(given.owner, given.claim, singles(given.unit)),
    )


def of_claims(given: Cited, claims: Claims, taken: Any) -> tuple[I64, I64]:
    """(flat claim, pair): which citations each claim has; those of the whole answer are of all.

    Parameters
    ----------
    taken : (n_pairs,), pairs to look at.
    """
    own = np.flatnonzero(taken & (given.claim >= 0))
    known = given.claim[own] < np.diff(claims.offsets)[given.owner[own]]
    own = own[known]
    whole = np.flatnonzero(taken & (given.claim == WHOLE_ANSWER))
    sizes = np.diff(claims.offsets)[given.owner[whole]]
    spread = np.repeat(whole, sizes)
    within = np.arange(spread.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    claim = np.concatenate([
        claims.offsets[given.owner[own]] + given.claim[own],
        claims.offsets[given.owner[spread]] + within,
    ])  # fmt: skip
    return claim, np.concatenate([own, spread])


def union_verdicts(inputs: Inputs, ranking: I64, claim: I64, sets: Sets) -> tuple[Any, Any]:
    """Verdict and rank on each claim by all that it cites together.

    The verdict on exactly that set counts; without one, the best verdict on a chunk alone does. A
    claim that cites nothing is not supported: `kernel.NO`, with no rank.
    """
    found = lookup(inputs)
    joint, rank = found.find(ranking, claim, sets)
    owner = sets.owners
    alone, alone_rank = found.find(ranking[owner], claim[owner], singles(sets.units))
    best, lowest = best_of(sets.offsets, alone, alone_rank)
    open_ = joint == kernel.MISSING
    verdict = np.where(open_, best, joint)
    rank = np.where(open_, lowest, rank)
    empty = sets.sizes == 0
    verdict[empty], rank[empty] = kernel.NO, kernel.NO_VERDICT
    return verdict.astype(np.int8), rank.astype(np.int8)


def best_of(offsets: I64, verdict: Any, rank: Any) -> tuple[Any, Any]:
    """The best verdict of each stretch, and the lowest rank of those that it rests on.

    A yes settles it; else one that is open leaves it open, the worst of the reasons first.
    """
    n = offsets.size - 1
    owner = np.repeat(np.arange(n), np.diff(offsets))
    good = np.full(n, kernel.CONTRADICTS, np.int8)
    np.minimum.at(good, owner[verdict >= 0], verdict[verdict >= 0])
    worst = np.zeros(n, np.int8)
    for reason, state in STATE_OF.items():
        np.maximum.at(worst, owner[verdict == reason], np.int8(state))
    reasons = np.zeros(len(schema.STATES), np.int8)
    for reason, state in STATE_OF.items():
        if reason != kernel.LOW_RUNG:
            reasons[state] = reason
    out = np.where((worst > 0) & (good != kernel.YES), reasons[worst], good)
    used = (verdict >= 0) & ((good[owner] != kernel.YES) | (verdict == kernel.YES))
    low = np.full(n, 127, np.int8)
    np.minimum.at(low, owner[used], rank[used])
    return out, np.where(low == 127, np.int8(kernel.NO_VERDICT), low)


def worst_state(owner: I64, verdict: Any, n: int) -> Any:
    """(n,) int8, the worst state of the open verdicts of each owner; ok without any."""
    out = np.zeros(n, np.int8)
    for reason, state in STATE_OF.items():
        hit = verdict == reason
        np.maximum.at(out, owner[hit], np.int8(state))
    return out


def lowest_rung(owner: I64, rank: Any, n: int) -> Any:
    """(n,) int8, lowest rung of the verdicts of each owner; -1 without any."""
    rung = kernel.rung_of(rank)
    out = np.full(n, 127, np.int8)
    np.minimum.at(out, owner[rung >= 0], rung[rung >= 0])
    return np.where(out == 127, np.int8(-1), out).astype(np.int8)
