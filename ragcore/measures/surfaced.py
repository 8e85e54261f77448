"""Units that a trace shows, wherever: which of them the asker may not see, or are no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.evidence import FORBIDDEN, Evidence
from ragcore.formats.compute import pc
from ragcore.lists import Lists, plain
from ragcore.measures.inputs import Inputs
from ragcore.measures.reached import items_of
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


def shown_lists(inputs: Inputs) -> dict[str, tuple[Lists, I64]]:
    """Every recorded list of units, by name, with the codes of its items."""

    def make() -> dict[str, tuple[Lists, I64]]:
        found = {f"stage {name}": inputs.stage(name) for name in inputs.stages}
        for name in ("ranked", "context", "citations"):
            if inputs.has_trace(name):
                found[name] = inputs.trace_lists(name)
        return {name: (one, inputs.units(one)) for name, one in found.items()}

    return inputs.once("shown lists", make)


def recorded(inputs: Inputs) -> Any:
    """(n,) bool: rankings with any such list."""
    out = np.zeros(inputs.n, np.bool_)
    for lists, _ in shown_lists(inputs).values():
        out |= lists.present
    return out


def _of_units(
    inputs: Inputs, name: str, title: str, flag: Callable[[I64, I64], Any], checked: Any,
    said_of: Callable[[int], str] = lambda _: "",
) -> Check:  # fmt: skip
    """A condition that shown units break.

    Parameters
    ----------
    flag : given rankings and codes of as many units, says which of these must not be there.
    said_of : what to add about a unit, by its code.
    """
    owners, codes, names, where = [], [], [], {}
    for key, (lists, units) in shown_lists(inputs).items():
        owner = lists.owners
        hit = np.flatnonzero(flag(owner, units) & checked[owner])
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
    units, who = _bits(acl, asks)

    def flag(owner: I64, code: I64) -> Any:
        out = np.zeros(code.size, np.bool_)
        at = np.flatnonzero((code >= 0) & (code < len(chunks)))
        at = at[acl.present[code[at]]]
        out[at] = ~(units[code[at]] & who[owner[at]]).any(axis=1)
        return out

    return _of_units(inputs, name, title, flag, recorded(inputs) & asks.present)


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
    span = len(inputs.shared.vocabulary.known) + 1
    of_item = np.repeat(np.arange(inputs.n), np.diff(items.offsets))
    barred = evidence.role[items.at] == FORBIDDEN
    keys = unit_keys(evidence, items.at[barred], of_item[barred], span)
    some = np.zeros(inputs.n, np.bool_)
    some[of_item[barred]] = True

    def flag(owner: I64, code: I64) -> Any:
        out = some[owner] & (code >= 0) & (code < span)
        at = np.flatnonzero(out)
        out[at] = np.isin(owner[at] * span + code[at], keys)
        return out

    checked = recorded(inputs) & (inputs.label_of >= 0)
    return _of_units(inputs, name, title, flag, checked)


def unit_keys(evidence: Evidence, items: I64, owners: I64, span: int) -> I64:
    """Ranking and unit as one number, for every unit of some items of evidence.

    Parameters
    ----------
    items, owners : (n,), items, and the ranking of each.
    span : more than any code.
    """
    sizes = np.diff(evidence.covers)[items]
    first = evidence.covers[items] - np.cumsum(sizes) + sizes
    flat = np.repeat(first, sizes) + np.arange(int(sizes.sum()))
    return np.repeat(owners, sizes) * span + evidence.units[flat]


def deleted(inputs: Inputs) -> Check:
    """A unit that is deleted, or that the case's snapshot does not have though the suite does."""
    name, title = "deleted", "deleted unit"
    chunks = inputs.shared.chunks
    if chunks is None or not (chunks.has("deleted") or chunks.snapshots):
        return unchecked(
            inputs, name, title, "the suite's chunks name neither deletions nor snapshots"
        )
    gone = tombstones(chunks)
    names = tuple(chunks.snapshots)
    masks = np.array([chunks.snapshots[one] for one in names]) if names else None
    own = inputs.case_coded("snapshot", names)

    def flag(owner: I64, code: I64) -> Any:
        known = (code >= 0) & (code < len(chunks))
        row = np.where(known, code, 0)
        out = gone[row] if len(chunks) else known
        if masks is not None:
            out = out | ((own[owner] >= 0) & ~masks[np.maximum(own[owner], 0), row])
        return out & known

    def said_of(unit: int) -> str:
        return " (deleted)" if gone[unit] else " (not in the case's snapshot)"

    checked = recorded(inputs) & (inputs.label_of >= 0)
    return _of_units(inputs, name, title, flag, checked, said_of)


def tombstones(chunks: Chunks) -> Any:
    """(n_chunks,) bool: which chunks are deleted."""
    found = chunks.column("deleted")
    if found is None or pa.types.is_null(found.type):
        return np.zeros(len(chunks), np.bool_)
    return np.asarray(found.fill_null(False)).astype(np.bool_)
