"""Units that a trace shows, wherever: which of them the asker may not see, or are no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.evidence import FORBIDDEN
from ragcore.formats.compute import pc
from ragcore.lists import Lists, plain
from ragcore.measures.inputs import Inputs
from ragcore.measures.reached import items_of, places
from ragcore.units import Chunks
from ragcore_kernels.layout import I64


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


@dataclass
class Surfaced:
    """Units that a trace shows anywhere: in a stage, the ranking, the context, a citation.

    Attributes
    ----------
    owner, code, place : flat: the ranking, the unit's code, and the list (index into `lists`).
    lists : names of the lists.
    recorded : (n,) bool, rankings with any of these lists recorded.
    """

    owner: I64
    code: I64
    place: I64
    lists: list[str]
    recorded: Any


def shown_lists(inputs: Inputs) -> dict[str, tuple[Lists, I64]]:
    """Every recorded list of units, by name, with the codes of its items."""

    def make() -> dict[str, tuple[Lists, I64]]:
        found = {f"stage {name}": inputs.stage(name) for name in inputs.stages}
        for name in ("ranked", "context", "citations"):
            if inputs.has_trace(name):
                found[name] = inputs.trace_lists(name)
        return {name: (one, inputs.units(one)) for name, one in found.items()}

    return inputs.once("shown lists", make)


def surfaced(inputs: Inputs) -> Surfaced:
    """All units that each trace shows."""

    def make() -> Surfaced:
        lists = shown_lists(inputs)
        recorded = np.zeros(inputs.n, np.bool_)
        owner, code, place = [], [], []
        for at, (one, units) in enumerate(lists.values()):
            recorded |= one.present
            owner.append(one.owners)
            code.append(units)
            place.append(np.full(units.size, at, np.int64))
        if not lists:
            none = np.zeros(0, np.int64)
            return Surfaced(none, none, none, [], recorded)
        flat = (np.concatenate(owner), np.concatenate(code), np.concatenate(place))
        return Surfaced(*flat, list(lists), recorded)

    return inputs.once("surfaced", make)


def _of_units(
    inputs: Inputs, name: str, title: str, flagged: Any, checked: Any, said_of: Callable[[int], str]
) -> Check:
    """A check that surfaced entries break where `flagged`, flat as `surfaced`."""
    shown = surfaced(inputs)
    broken = np.zeros(inputs.n, np.bool_)
    flagged = flagged & checked[shown.owner]
    broken[shown.owner[flagged]] = True

    def what(ranking: int) -> str:
        own = np.flatnonzero(flagged & (shown.owner == ranking))
        found: dict[int, list[str]] = {}
        for at in own.tolist():
            found.setdefault(int(shown.code[at]), []).append(shown.lists[int(shown.place[at])])
        return "; ".join(
            f"{inputs.shared.vocabulary.name(code)!r} in {', '.join(dict.fromkeys(where))}"
            f"{said_of(code)}"
            for code, where in found.items()
        )

    where = {}
    for at, key in enumerate(shown.lists):
        where[key] = np.zeros(inputs.n, np.bool_)
        where[key][shown.owner[flagged & (shown.place == at)]] = True
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
    shown, asks = surfaced(inputs), inputs.case_lists("principals")
    checked = shown.recorded & asks.present
    at = np.flatnonzero((shown.code >= 0) & (shown.code < len(chunks)))
    acl = chunks.lists("acl")
    at = at[acl.present[shown.code[at]]]
    flagged = np.zeros(shown.code.size, np.bool_)
    if at.size:
        units, who = _bits(acl, asks)
        flagged[at] = ~(units[shown.code[at]] & who[shown.owner[at]]).any(axis=1)
    return _of_units(inputs, name, title, flagged, checked, lambda _: "")


def _bits(*lists: Lists) -> list[Any]:
    """Lists of names as bit sets over one numbering, (n, words) uint64 each."""
    names = [plain(one.items).cast(pa.large_string()) for one in lists]
    known = pa.concat_arrays(names).unique()
    words = max(1, -(-len(known) // 64))
    out = []
    for one, own in zip(lists, names, strict=True):
        bits = np.zeros((one.counts.size, words), np.uint64)
        code = np.asarray(pc.index_in(own, value_set=known)).astype(np.int64)
        mask = np.uint64(1) << (code % 64).astype(np.uint64)
        np.bitwise_or.at(bits, (one.owners, code // 64), mask)
        out.append(bits)
    return out


def forbidden(inputs: Inputs) -> Check:
    """A unit that the case labels `forbidden`."""
    name, title = "forbidden", "forbidden unit"
    evidence = inputs.evidence
    if evidence is None:
        return unchecked(inputs, name, title, "the cases have no evidence")
    items = items_of(inputs, evidence)
    owner = np.repeat(np.arange(inputs.n), np.diff(items.offsets))
    role = evidence.role[items.at] == FORBIDDEN
    shown = surfaced(inputs)
    broken, hit, where = np.zeros(inputs.n, np.bool_), {}, {}
    for key, (lists, units) in shown_lists(inputs).items() if role.any() else ():
        hit[key] = role & (places(inputs, evidence, f"shown {key}", lists, units) >= 0)
        where[key] = np.bincount(owner[hit[key]], minlength=inputs.n) > 0
        broken |= where[key]

    def what(ranking: int) -> str:
        hits = {key: np.flatnonzero(flags & (owner == ranking)) for key, flags in hit.items()}
        units = evidence.units[evidence.covers[items.at[np.concatenate(list(hits.values()))]]]
        names = dict.fromkeys(inputs.shared.vocabulary.name(int(u)) for u in units)
        lists = ", ".join(key for key, at in hits.items() if at.size)
        return f"{', '.join(map(repr, names))} in {lists}"

    checked = shown.recorded & (inputs.label_of >= 0)
    return Check(name, title, checked, broken & checked, "", what, where)


def deleted(inputs: Inputs) -> Check:
    """A unit that is deleted, or that the case's snapshot does not have though the suite does."""
    name, title = "deleted", "deleted unit"
    chunks = inputs.shared.chunks
    if chunks is None or not (chunks.has("deleted") or chunks.snapshots):
        return unchecked(
            inputs, name, title, "the suite's chunks name neither deletions nor snapshots"
        )
    shown = surfaced(inputs)
    known = (shown.code >= 0) & (shown.code < len(chunks))
    code = np.where(known, shown.code, 0)
    gone = tombstones(chunks)
    flagged = known & gone[code]
    if chunks.snapshots and inputs.has_case("snapshot"):
        names = tuple(chunks.snapshots)
        masks = np.array([chunks.snapshots[one] for one in names])
        own = inputs.case_coded("snapshot", names)[shown.owner]
        flagged |= known & (own >= 0) & ~masks[np.maximum(own, 0), code]
    checked = shown.recorded & (inputs.label_of >= 0)

    def said_of(unit: int) -> str:
        return " (deleted)" if gone[unit] else " (not in the case's snapshot)"

    return _of_units(inputs, name, title, flagged, checked, said_of)


def tombstones(chunks: Chunks) -> Any:
    """(n_chunks,) bool: which chunks are deleted."""
    found = chunks.column("deleted")
    if found is None or pa.types.is_null(found.type):
        return np.zeros(len(chunks), np.bool_)
    return np.asarray(found.fill_null(False)).astype(np.bool_)
