"""Units that a trace shows, wherever: which of them the asker may not see, or are no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore.evidence import FORBIDDEN
from ragcore.measures.inputs import Inputs
from ragcore.measures.permitted import may_see
from ragcore.measures.selected import Shown, known, marks, shown, stage


@dataclass
class Check:
    """One condition on every ranking of a run.

    Attributes
    ----------
    name, title : short, as gates name it; in words.
    checked : (n,) bool, rankings that have all that the condition needs.
    broken : (n,) bool, rankings that break it; only where checked.
    why : what is missing where nothing could be checked; "" otherwise.
    what : called with a ranking, says what breaks the condition there.
    where : of conditions on shown units: by list, (n,) bool, rankings that break it there.
    """

    name: str
    title: str
    checked: Any
    broken: Any
    why: str = ""
    what: Callable[[int], str] = lambda _: ""
    where: dict[str, Any] | None = None


def unchecked(inputs: Inputs, name: str, title: str, why: str) -> Check:
    """A condition that nothing in the run can be held to."""
    none = np.zeros(inputs.n, np.bool_)
    return Check(name, title, none, none, why)


def shown_lists(inputs: Inputs) -> dict[str, Shown]:
    """Every recorded list of units, by name: stages, audits too; ranking, context and citations."""
    found = {f"stage {name}": stage(inputs, name) for name in inputs.stages}
    for name in ("ranked", "context", "citations"):
        if inputs.has_trace(name):
            found[name] = shown(inputs, name, inputs.trace_lists(name))
    return found


def recorded(inputs: Inputs) -> Any:
    """(n,) bool: rankings with any such list."""
    out = np.zeros(inputs.n, np.bool_)
    for one in shown_lists(inputs).values():
        out |= one.present
    return out


def _of_units(
    inputs: Inputs, name: str, title: str, flag: Callable[[Shown], Any], checked: Any,
    said_of: Callable[[int], str] = lambda _: "",
) -> Check:  # fmt: skip
    """A condition that shown units break.

    Parameters
    ----------
    flag : says which units of a list must not be there, flat.
    said_of : what to add about a unit, by its code.
    """
    owners, codes, names, where = [], [], [], {}
    for key, one in shown_lists(inputs).items():
        owner, units = one.lists.owners, one.units
        hit = np.flatnonzero(flag(one) & checked[owner])
        where[key] = np.bincount(owner[hit], minlength=inputs.n) > 0
        owners.append(owner[hit])
        codes.append(units[hit])
        names += [key] * hit.size
    broken = np.zeros(inputs.n, np.bool_)
    for flags in where.values():
        broken |= flags
    owner = np.concatenate(owners) if owners else np.zeros(0, np.int64)
    order = np.argsort(owner, kind="stable")

    def what(ranking: int) -> str:
        first, last = np.searchsorted(owner[order], (ranking, ranking + 1))
        code, found = np.concatenate(codes), dict[int, dict[str, None]]()
        for at in order[first:last].tolist():
            found.setdefault(int(code[at]), {})[names[at]] = None
        return "; ".join(
            f"{inputs.shared.vocabulary.name(unit)!r} in {', '.join(lists)}{said_of(unit)}"
            for unit, lists in found.items()
        )

    return Check(name, title, checked, broken, "", what, where)


def unauthorised(inputs: Inputs) -> Check:
    """A unit that the asker may not see: its `acl` shares nobody with the case's principals.

    A unit whose acl is null is public; one whose acl is empty is for nobody.
    """
    name, title = "acl", "unauthorised unit"
    chunks = inputs.shared.chunks
    if chunks is None or not chunks.has("acl"):
        return unchecked(inputs, name, title, "the suite's chunks have no acl")
    if not inputs.has_case("principals"):
        return unchecked(inputs, name, title, "the cases do not say who asks (principals)")
    asks, acl = inputs.case_lists("principals"), chunks.lists("acl")

    def flag(one: Shown) -> Any:
        return known(one, inputs.shared.vocabulary) & ~may_see(
            acl, asks, one.offsets, one.units, inputs.lanes
        )

    return _of_units(inputs, name, title, flag, recorded(inputs) & asks.present)


def forbidden(inputs: Inputs) -> Check:
    """A unit that the case labels `forbidden`."""
    name, title = "forbidden", "forbidden unit"
    evidence = inputs.evidence
    if evidence is None:
        return unchecked(inputs, name, title, "the cases have no evidence")
    barred = evidence.role == FORBIDDEN

    def flag(one: Shown) -> Any:
        return marks(inputs, one, barred)

    checked = recorded(inputs) & (inputs.label_of >= 0)
    return _of_units(inputs, name, title, flag, checked)


def deleted(inputs: Inputs) -> Check:
    """A unit that is deleted, or that the case's snapshot does not have though the suite does."""
    name, title = "deleted", "deleted unit"
    chunks = inputs.shared.chunks
    if chunks is None or not (chunks.has("deleted") or chunks.snapshots):
        return unchecked(
            inputs, name, title, "the suite's chunks name neither deletions nor snapshots"
        )
    snapshot = chunks.snapshot_codes(inputs.case("snapshot"), inputs.n)

    def flag(one: Shown) -> Any:
        alive = chunks.living(one.units, snapshot[one.lists.owners])
        return known(one, inputs.shared.vocabulary) & ~alive

    def said_of(unit: int) -> str:
        return " (deleted)" if chunks.deleted[unit] else " (not in the case's snapshot)"

    checked = recorded(inputs) & (inputs.label_of >= 0)
    return _of_units(inputs, name, title, flag, checked, said_of)
