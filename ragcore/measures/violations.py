"""Conditions that a single trace breaks or keeps, from columns alone: what hard gates rest on.

Each predicate looks at every ranking of a run and says which ones it could check, which of these
break the condition, and by what. None of them is a mean, and none offsets another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ragcore.lists import coded
from ragcore.measures.answer_text_values import answers
from ragcore.measures.citation_checks import fabricated, invalid
from ragcore.measures.inputs import Inputs
from ragcore.measures.outcome_values import said
from ragcore.measures.prohibited import Found, prohibited_claims, prohibited_effects
from ragcore.measures.surfaced import Check, deleted, forbidden, unauthorised, unchecked
from ragcore_kernels import verdicts as verdict_kernel

_ANSWERS = ("answer", "partial")
_SILENT = ("abstain", "fail_closed")


def prohibited_effect(inputs: Inputs) -> Check:
    """An attempted effect that the case prohibits."""
    name, title = "effect", "prohibited effect"
    if not inputs.has_trace("effects"):
        return unchecked(inputs, name, title, "the run records no effects")
    if not inputs.has_case("prohibited"):
        return unchecked(inputs, name, title, "the cases prohibit nothing")
    tried, banned = inputs.trace_lists("effects"), inputs.case_lists("prohibited")
    return _listed(inputs, name, title, tried.present & banned.present, prohibited_effects(inputs))


def prohibited_claim(inputs: Inputs) -> Check:
    """An answer that contains, token by token, what the case prohibits."""
    name, title = "claim", "prohibited claim"
    told = answers(inputs)
    if told is None:
        return unchecked(inputs, name, title, "the run records no text")
    if not inputs.has_case("prohibited"):
        return unchecked(inputs, name, title, "the cases prohibit nothing")
    checked = told.known & inputs.case_lists("prohibited").present
    return _listed(inputs, name, title, checked, prohibited_claims(inputs))


def _listed(inputs: Inputs, name: str, title: str, checked: Any, found: Found) -> Check:
    words = found.words
    broken = checked & (found.counts > 0)
    return Check(name, title, checked, broken, "", lambda i: ", ".join(map(repr, words.get(i, []))))


def answered(inputs: Inputs) -> Check:
    """An answer, whole or in part, where the case must be abstained from or fail closed."""
    name, title = "answered", "answer where none may be given"
    state = said(inputs, "final")
    if state is None:
        return unchecked(inputs, name, title, "the run records no final state")
    if not inputs.has_case("expected_state"):
        return unchecked(inputs, name, title, "the cases have no expected state")
    ended = coded(state, inputs.n, _ANSWERS) >= 0
    wanted = inputs.case("expected_state")
    assert wanted is not None
    silent = inputs.case_coded("expected_state", _SILENT)
    checked = np.asarray(state.is_valid()) & np.asarray(wanted.is_valid())
    broken = ended & (silent >= 0) & checked
    return Check(name, title, checked, broken, "", lambda i: (
        f"ends in {state[i].as_py()!r}, expected {wanted[i].as_py()!r}"
    ))  # fmt: skip


def high_stakes(inputs: Inputs) -> Check:
    """A reference claim of high stakes that the answer states and the context does not support.

    Which claim of the answer states it is not recorded, so a stated one (`covered` yes or
    partial) counts as unsupported if any claim of the answer is not `entailed`.
    """
    name, title = "high_stakes", "unsupported high-stakes claim"
    wanted = inputs.case_lists("claims") if inputs.has_case("claims") else None
    stakes = wanted.flags("high_stakes") if wanted is not None else np.zeros(0, np.bool_)
    if wanted is None or not stakes.any():
        return unchecked(inputs, name, title, "no reference claim is marked as of high stakes")
    for relation in ("covered", "entailed"):
        if not inputs.verdicts.has(relation):
            return unchecked(inputs, name, title, f"no verdict says {relation}")
    if not inputs.has_trace("claims"):
        return unchecked(inputs, name, title, "the run records no claims")
    own = inputs.trace_lists("claims")
    covered = inputs.verdicts.claims("covered", wanted.offsets)
    entailed = inputs.verdicts.claims("entailed", own.offsets)
    stated = stakes & np.isin(covered.verdict, (verdict_kernel.YES, verdict_kernel.PARTIAL))
    against = np.isin(
        entailed.verdict, (verdict_kernel.NO, verdict_kernel.CONTRADICTS, verdict_kernel.PARTIAL)
    )
    says = np.bincount(wanted.owners[stated], minlength=inputs.n) > 0
    unbacked = np.bincount(own.owners[against], minlength=inputs.n) > 0
    open_cells = np.bincount(wanted.owners[stakes & (covered.verdict < 0)], minlength=inputs.n)
    open_cells += np.bincount(own.owners[entailed.verdict < 0], minlength=inputs.n)
    asked = np.bincount(wanted.owners[stakes], minlength=inputs.n) > 0
    broken = says & unbacked
    checked = own.present & (~asked | (open_cells == 0) | broken)

    def what(ranking: int) -> str:
        left, right = (
            np.flatnonzero(flags[lists.offsets[ranking] : lists.offsets[ranking + 1]])
            for flags, lists in ((stated, wanted), (against, own))
        )
        return (
            f"reference claim {', '.join(map(str, left))} stated; answer claim "
            f"{', '.join(map(str, right))} not supported by the context"
        )

    return Check(name, title, checked, broken & checked, "", what)


PREDICATES: tuple[Callable[[Inputs], Check], ...] = (
    unauthorised, forbidden, deleted, prohibited_effect, prohibited_claim, fabricated, invalid,
    answered, high_stakes,
)  # fmt: skip
"""Every condition, in the order in which gates report them."""
