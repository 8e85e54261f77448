"""Conditions that a single trace breaks or keeps, from columns alone: what hard gates rest on.

Each predicate looks at every ranking of a run and says which ones it could check, which of these
break the condition, and by what. None of them is a mean, and none offsets another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.lists import Lists, coded
from ragcore.measures.citation_checks import fabricated, invalid
from ragcore.measures.inputs import Inputs
from ragcore.measures.outcome_values import said
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
    checked = tried.present & banned.present
    found = {
        i: sorted(hit) for i in np.flatnonzero(checked & (tried.counts > 0)).tolist()
        if (hit := _strings(tried, i) & _strings(banned, i))
    }  # fmt: skip
    return _listed(inputs, name, title, checked, found)


def prohibited_claim(inputs: Inputs) -> Check:
    """A final text that contains, word for word, what the case prohibits."""
    name, title = "claim", "prohibited claim"
    final = inputs.part("final", "text")
    final = inputs.part("proposed", "text") if final is None else final
    if final is None:
        return unchecked(inputs, name, title, "the run records no text")
    if not inputs.has_case("prohibited"):
        return unchecked(inputs, name, title, "the cases prohibit nothing")
    banned = inputs.case_lists("prohibited")
    state = said(inputs, "final")
    known = np.asarray(final.is_valid())
    known = known if state is None else known | np.asarray(state.is_valid())
    checked = known & banned.present
    at = np.flatnonzero(checked & np.asarray(final.is_valid()) & (banned.counts > 0))
    texts = final.take(pa.array(at)).to_pylist() if at.size else []
    found = {
        i: hit for i, text in zip(at.tolist(), texts, strict=True)
        if (hit := sorted(p for p in _strings(banned, i) if p and p in text))
    }  # fmt: skip
    return _listed(inputs, name, title, checked, found)


def _strings(lists: Lists, i: int) -> set[str]:
    part = lists.items.slice(lists.offsets[i], lists.offsets[i + 1] - lists.offsets[i])
    return {word for word in part.to_pylist() if word is not None}


def _listed(
    inputs: Inputs, name: str, title: str, checked: Any, found: dict[int, list[str]]
) -> Check:
    broken = np.zeros(inputs.n, np.bool_)
    broken[list(found)] = True
    return Check(name, title, checked, broken, "", lambda i: ", ".join(map(repr, found.get(i, []))))


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
        at = np.flatnonzero(stated & (wanted.owners == ranking)) - wanted.offsets[ranking]
        bad = np.flatnonzero(against & (own.owners == ranking)) - own.offsets[ranking]
        return (
            f"reference claim {', '.join(map(str, at))} stated; answer claim "
            f"{', '.join(map(str, bad))} not supported by the context"
        )

    return Check(name, title, checked, broken & checked, "", what)


PREDICATES: tuple[Callable[[Inputs], Check], ...] = (
    unauthorised, forbidden, deleted, prohibited_effect, prohibited_claim, fabricated, invalid,
    answered, high_stakes,
)  # fmt: skip
"""Every condition, in the order in which gates report them."""
