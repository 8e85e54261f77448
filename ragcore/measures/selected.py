"""Lists of units that measures of retrieval look at: the final ranking, stages, depths, cuts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore.lists import Lists
from ragcore.measures.inputs import Inputs
from ragcore.threads import run_split
from ragcore.units import Vocabulary
from ragcore_kernels import shown as kernel
from ragcore_kernels.layout import I64

LATER = ("fused", "merged", "reranked", "selected", "packed")
"""Stages that come after the channels; every other stage is a channel of its own."""
AUDITS = {"dense_exact": "dense"}
"""Stages that only check another, where that is recorded too."""


@dataclass
class Shown:
    """A list of each ranking, with codes of its units.

    Attributes
    ----------
    lists : as recorded, perhaps cut.
    units : codes of the units, flat.
    name : what the list is, for caches.
    """

    lists: Lists
    units: I64
    name: str

    @property
    def present(self) -> Any:
        """(n,), whether a ranking has this list."""
        return self.lists.present

    @property
    def offsets(self) -> I64:
        """(n + 1,), units of each ranking."""
        return self.lists.offsets

    def cut(self, k: int) -> Shown:
        """The first `k` units of each list; 0 = all."""
        counts = self.lists.counts
        if k <= 0 or not counts.size or counts.max() <= k:
            return self
        kept = np.minimum(counts, k)
        offsets = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        inside = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], kept)
        at = np.repeat(self.offsets[:-1], kept) + inside
        items = self.lists.items.take(at) if len(self.lists.items) else self.lists.items
        return Shown(Lists(offsets, self.present, items), self.units[at], f"{self.name} {k}")


def shown(inputs: Inputs, name: str, lists: Lists) -> Shown:
    """A recorded list with its units, worked out once."""
    return inputs.once(f"shown {name}", lambda: Shown(lists, inputs.units(lists), name))


def stage(inputs: Inputs, name: str) -> Shown:
    """The list of one stage."""
    return shown(inputs, f"stage {name}", inputs.stage(name))


def final(inputs: Inputs) -> Shown | None:
    """The final ranking: `ranked`, else the last stage; None without either."""
    warn_of_narrow(inputs)
    if inputs.has_trace("ranked"):
        return shown(inputs, "ranked", inputs.trace_lists("ranked"))
    return stage(inputs, inputs.stages[-1]) if inputs.stages else None


def selected(inputs: Inputs) -> Shown | None:
    """The first `context_k` units of the final ranking."""
    found = final(inputs)
    return None if found is None else found.cut(context_k(inputs))


def channels(inputs: Inputs) -> list[str]:
    """Recorded stages that are channels, in order of first appearance."""
    names = inputs.stages
    return [n for n in names if n not in LATER and AUDITS.get(n) not in names]


def candidates(inputs: Inputs) -> list[Shown]:
    """What could have been chosen from: each channel to `candidate_k`, and the final ranking.

    What was chosen was a candidate, even where a channel is recorded before its filter. Without
    channels the final ranking is cut to `candidate_k`.
    """
    one = final(inputs)
    names = channels(inputs) or inputs.stages[:1]
    if not names:
        return [] if one is None else [one.cut(candidate_k(inputs))]
    out = [stage(inputs, name).cut(candidate_k(inputs)) for name in names]
    return out if one is None else [*out, one]


def everywhere(inputs: Inputs) -> list[Shown]:
    """Every list of units that a trace records, but for those of audits and citations."""
    names = [n for n in inputs.stages if AUDITS.get(n) not in inputs.stages]
    out = [stage(inputs, name) for name in names]
    out += [
        shown(inputs, name, inputs.trace_lists(name))
        for name in ("ranked", "context") if inputs.has_trace(name)
    ]  # fmt: skip
    return out


def whole_number(inputs: Inputs, name: str) -> int:
    """A depth that the manifest declares; 0 where it does not."""
    value = inputs.manifest.get(name)
    good = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return int(value) if good else 0  # type: ignore[arg-type]


def candidate_k(inputs: Inputs) -> int:
    """Units of each channel, as the manifest says; 0 = all."""
    return whole_number(inputs, "candidate_k")


def context_k(inputs: Inputs) -> int:
    """Units that the generator may be shown, as the manifest says; 0 = all."""
    return whole_number(inputs, "context_k")


def warn_of_narrow(inputs: Inputs) -> None:
    """Say which channels end within `context_k` though `candidate_k` is larger."""

    def make() -> bool:
        wide, narrow = candidate_k(inputs), context_k(inputs)
        if not 0 < narrow < wide:
            return False
        for name in channels(inputs):
            counts = inputs.stage(name).counts
            longest = int(counts.max(initial=0))
            if 0 < longest <= narrow:
                inputs.counts["narrow channels"] = inputs.counts.get("narrow channels", 0) + 1
                inputs.warnings.append(
                    f"narrow pool: no list of channel {name} has more than {longest} units, "
                    f"within context_k {narrow}, though candidate_k is {wide}: was it cut before "
                    "fusion?"
                )
        return True

    inputs.once("narrow", make)


def in_parts(inputs: Inputs, work: Callable[[int, int], None]) -> None:
    """`work` over all rankings, in threads where there are many."""
    run_split(work, inputs.n, inputs.lanes)


def marks(inputs: Inputs, one: Shown, which: Any) -> Any:
    """Flat over a list: units that contain an item of their case for which `which` is true."""
    evidence = inputs.evidence
    out = np.zeros(one.units.size, np.int64)
    if evidence is None:
        return out.astype(np.bool_)
    chosen = np.asarray(which, np.int64)

    def work(begin: int, end: int) -> None:
        kernel.holding(
            begin, end, inputs.label_of, evidence.offsets, chosen, evidence.covers,
            evidence.units, one.offsets, one.units, out,
        )  # fmt: skip

    in_parts(inputs, work)
    return out.astype(np.bool_)


def distinct(n: int, lists: list[tuple[I64, I64]]) -> I64:
    """(n,), distinct units of each ranking over several flat lists of (owners, units)."""
    owners = np.concatenate([owner for owner, _ in lists] or [np.zeros(0, np.int64)])
    units = np.concatenate([unit for _, unit in lists] or [np.zeros(0, np.int64)])
    width = int(units.max(initial=0)) + 1
    return np.bincount(np.unique(owners * width + units) // width, minlength=n)


def known(one: Shown, vocabulary: Vocabulary) -> Any:
    """Flat over a list: units that the suite's chunks have."""
    return (one.units >= 0) & (one.units < vocabulary.n_chunks)


def per_ranking(one: Shown, flags: Any) -> I64:
    """(n,), how many units of each list are flagged."""
    total = np.concatenate([[0], np.cumsum(np.asarray(flags, np.int64))])
    return total[one.offsets[1:]] - total[one.offsets[:-1]]
