"""Three contracts of a trace, apart: documents delivered, object well formed, citations in support.

The first two may hold where the third fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.diagnosis.facts import Facts
from ragcore.diagnosis.layers import LAYERS, UNKNOWN, F, N, P
from ragcore.lists import coded
from ragcore.measures.outcome_values import said
from ragcore.results import RunScores

CONTRACTS = ("delivery", "shape", "support")
NAMES = {P: "holds", F: "fails", N: "na", UNKNOWN: "not known"}


@dataclass(frozen=True)
class Tally:
    """One combination of contracts.

    Attributes
    ----------
    states : of delivery, shape and support: holds, fails, na or not known.
    traces, cases : how many traces; ids of the cases that they are of.
    """

    states: tuple[str, str, str]
    traces: int
    cases: tuple[str, ...]


def contracts(facts: Facts, layers: Any) -> Any:
    """(3, n) int8, places in `layers.STATES`, of every ranking.

    * delivery: whatever is required was retrieved and packed whole; na where nothing is required,
      or the corpus lacks it.
    * shape: the states are of the schema, every citation names a unit and a claim that is there.
    * support: the layer *citation*.

    Parameters
    ----------
    facts : of a run.
    layers : (8, n), as `layers.layer_states` gives them.
    """
    state = dict(zip(LAYERS, layers, strict=True))
    parts = np.array([state[name] for name in ("retrieval", "ranking", "context")])
    delivery = np.where((parts == F).any(axis=0), F, P)
    open_ = ~(parts == F).any(axis=0) & (parts == UNKNOWN).any(axis=0)
    delivery = np.where(open_, UNKNOWN, delivery)
    delivery = np.where(state["corpus"] == P, delivery, N)
    return np.array([delivery, _shape(facts), state["citation"]], np.int8)


def _shape(facts: Facts) -> Any:
    inputs = facts.inputs
    known, wrong = np.zeros(facts.n, np.bool_), np.zeros(facts.n, np.bool_)
    for column in ("proposed", "final"):
        code = coded(said(inputs, column), facts.n, schema.EXPECTED_STATES)
        known |= code != -1
        wrong |= code == -2
    cited, claims = inputs.trace_lists("citations"), inputs.trace_lists("claims")
    place = cited.integers("claim")
    owner = cited.owners
    stray = claims.present[owner] & ((place < 0) | (place >= claims.counts[owner]))
    ids = cited.field("id")
    if ids is not None:
        stray |= np.asarray(ids.is_null())
    wrong |= np.bincount(owner[stray], minlength=facts.n) > 0
    return np.where(wrong, F, np.where(known, P, UNKNOWN))


def tallies(run: RunScores, states: Any, own: Any) -> list[Tally]:
    """How many traces meet and break which contracts; the most frequent combination first.

    Parameters
    ----------
    run : whose traces they are.
    states : (3, n), as `contracts` gives them.
    own : (n,) bool, the traces to count.
    """
    found: dict[tuple[int, ...], list[int]] = {}
    at = np.flatnonzero(own)
    for i, column in zip(at.tolist(), states[:, at].T.tolist(), strict=True):
        found.setdefault(tuple(column), []).append(i)
    out = []
    for key, rows in sorted(found.items(), key=lambda one: (-len(one[1]), one[0])):
        cases = dict.fromkeys(run.case_names[c] for c in run.case_of[rows].tolist())
        delivery, shape, support = (NAMES[state] for state in key)
        out.append(Tally((delivery, shape, support), len(rows), tuple(cases)))
    return out
