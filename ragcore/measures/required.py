"""Shares of what a case requires: the column that most measures of retrieval end in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ragcore import schema
from ragcore.evidence import CONFLICTING, SUPPORTING, Evidence
from ragcore.measures.inputs import LABEL, NOT_RECORDED, NOT_REQUIRED, Column, Inputs
from ragcore.measures.reached import items_of, places, shares
from ragcore.measures.selected import Shown


def says_required(evidence: Evidence | None) -> bool:
    """Whether any item of the suite says whether it is required."""
    if evidence is None:
        return False
    found = evidence.lists.field("required")
    return found is not None and found.null_count < len(found)


def over_items(
    inputs: Inputs, evidence: Evidence, counted: Any, hit: Any, recorded: Any, lost: Any = None
) -> Column:
    """Items of each ranking's case that are `counted` and `hit`, over those counted.

    Parameters
    ----------
    counted : (n_items,), items that count.
    hit : flat over `items_of`.
    recorded : (n,), rankings whose lists are recorded.
    lost : (n_items,), stale items that would count; a case of nothing else is disputed.
    """
    items = items_of(inputs, evidence)
    over, under = shares(items.offsets, counted[items.at], hit)
    states = inputs.states(recorded | inputs.absent)
    if lost is not None:
        _, gone = shares(items.offsets, lost[items.at], hit)
        only = (under == 0) & (gone > 0) & (states == schema.OK)
        states[only] = schema.DISPUTED
    why = {
        schema.NA: NOT_REQUIRED, schema.DISPUTED: LABEL, schema.MISSING: NOT_RECORDED,
    }  # fmt: skip
    return Column(over, under, states, why)


def over_required(inputs: Inputs, evidence: Evidence, hit: Any, recorded: Any) -> Column:
    """Required items that are `hit`, over required items."""
    counted = evidence.required & ~evidence.stale
    return over_items(inputs, evidence, counted, hit, recorded, evidence.needed & evidence.stale)


def reached(inputs: Inputs, evidence: Evidence, one: Shown) -> Any:
    """Flat over `items_of`: items that a list reaches."""
    return places(inputs, evidence, one.name, one.lists, one.units) >= 0


def supporting(evidence: Evidence) -> Any:
    """(n_items,), items that support an answer or one side of it, and are not stale."""
    roles = np.isin(evidence.role, (SUPPORTING, CONFLICTING))
    return roles & (evidence.relevance >= 1) & evidence.scored
