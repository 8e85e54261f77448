"""One configuration of retrieval, as it is said, checked, changed by one key, and put on record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ragcore.errors import InputError, UsageError
from ragcore.filters import Filter
from ragcore.search_settings import BM25, DENSE, DENSE_EXACT, STRATEGIES, Settings
from ragcore_kernels.bm25 import LENGTHS, VARIANTS
from ragcore_kernels.fusion import METHODS
from ragcore_kernels.normalised import NORMALISATIONS

RERANKED = "+reranker"
"""What a strategy ends in whose candidates a reranker orders."""
CHANNELS = (BM25, DENSE, DENSE_EXACT)

PLACES = {
    "thresholds": "threshold", "k1": "bm25.k1", "b": "bm25.b", "variant": "bm25.variant",
    "lengths": "bm25.lengths", "count_repeats": "bm25.count_repeats", "ef": "ann.ef_search",
    "method": "fusion.method", "weights": "fusion.weights", "normalise": "fusion.normalise",
}  # fmt: skip
"""Where a manifest keeps a key, if not under its own name."""
SIBLINGS = {"dense": "hybrid", "dense-exact": "hybrid-exact"}
"""The hybrid strategy with the same dense channel."""


@dataclass(frozen=True)
class Setup:
    """How candidates are found and how many are shown.

    Attributes
    ----------
    strategy : one of `STRATEGIES`, perhaps with `RERANKED` behind it.
    thresholds : least raw score, by channel; one of a dense channel holds for the other, too.
    filters : as `ragcore.filters.Filter.parse` takes them.
    k1, b, variant, lengths : of BM25; None = as the index says.
    chunking : the variant of the chunks; "" for the suite's own.
    threshold_split : of the cases that thresholds were chosen on; "" where that is not known.

    The rest is as `ragcore.search_settings.Settings` has it.
    """

    strategy: str = "hybrid-exact"
    candidate_k: int = 20
    context_k: int = 5
    thresholds: Mapping[str, float] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    filter_when: str = "before"
    method: str = "rrf"
    rrf_k: float = 60.0
    weights: tuple[float, ...] | None = None
    normalise: str = "min-max"
    ef: int = 100
    k1: float | None = None
    b: float | None = None
    variant: str | None = None
    lengths: str | None = None
    count_repeats: bool = False
    chunking: str = ""
    threshold_split: str = ""

    @property
    def base(self) -> str:
        """The strategy without its reranker."""
        return self.strategy.removesuffix(RERANKED)

    @property
    def reranked(self) -> bool:
        """Whether a reranker orders the candidates."""
        return self.strategy.endswith(RERANKED)

    @property
    def channels(self) -> tuple[str, ...]:
        """What is searched."""
        return STRATEGIES[self.base]

    def threshold(self, channel: str) -> float | None:
        """The least score of a channel; None without one."""
        if channel in self.thresholds:
            return self.thresholds[channel]
        other = {DENSE: DENSE_EXACT, DENSE_EXACT: DENSE}.get(channel, "")
        return self.thresholds.get(other)

    def cut_at(self, channel: str, t: float | None, split: str = "") -> Setup:
        """The same with one other threshold of a channel; None for none, by either of its names.

        Parameters
        ----------
        split : of the cases that it was chosen on.
        """
        same = {DENSE, DENSE_EXACT} if channel in (DENSE, DENSE_EXACT) else {channel}
        kept = {name: own for name, own in self.thresholds.items() if name not in same}
        given = kept if t is None else kept | {channel: t}
        return replace(self, thresholds=given, threshold_split=split or self.threshold_split)

    def idle(self) -> dict[str, str]:
        """Keys that nothing of this strategy reads, and why."""
        out: dict[str, str] = {}
        if BM25 not in self.channels:
            why = f"{self.strategy} does not search {BM25}"
            out |= dict.fromkeys(("k1", "b", "variant", "lengths", "count_repeats"), why)
        if DENSE not in self.channels:
            out["ef"] = f"{self.strategy} does not search HNSW"
        if len(self.channels) < 2:
            why = f"{self.strategy} fuses nothing"
            out |= dict.fromkeys(("method", "rrf_k", "weights", "normalise"), why)
        elif self.method == "rrf":
            out["normalise"] = "rrf fuses ranks, not scores"
        else:
            out["rrf_k"] = f"{self.method} fuses scores, not ranks"
        if not self.filters:
            out["filter_when"] = "there is no filter"
        return out

    def unused(self) -> list[str]:
        """Channels with a threshold that this strategy does not search."""
        used = set(self.channels)
        if used & {DENSE, DENSE_EXACT}:
            used |= {DENSE, DENSE_EXACT}
        return [name for name in self.thresholds if name not in used]

    def settings(self) -> Settings:
        """The same for `ragcore.search`."""
        own = {f.name for f in fields(Settings)} - {"strategy", "thresholds", "filters"}
        found = {name: self.threshold(name) for name in self.channels}
        given: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)
                                 if f.name in own}  # fmt: skip
        given["weights"] = self.weights if len(self.channels) > 1 else None
        return Settings(
            **given, strategy=self.base,
            thresholds={name: t for name, t in found.items() if t is not None},
            filters=tuple(Filter.parse(text) for text in self.filters),
        )  # fmt: skip

    def manifest(self) -> dict[str, Any]:
        """Every setting, used or not, so that two configurations differ where they differ.

        Keys are those of the manifests of `ragcore.search`.
        """
        out: dict[str, Any] = {
            "strategy": self.strategy, "candidate_k": self.candidate_k,
            "context_k": self.context_k, "threshold": dict(self.thresholds),
            "filters": list(self.filters), "filter_when": self.filter_when,
            "rrf_k": self.rrf_k, "bm25": {
                "k1": self.k1, "b": self.b, "variant": self.variant, "lengths": self.lengths,
                "count_repeats": self.count_repeats,
            },
            "ann": {"ef_search": self.ef}, "chunking": {"name": self.chunking},
            "fusion": {
                "method": self.method, "weights": list(self.weights or ()),
                "normalise": self.normalise,
            },
        }  # fmt: skip
        if self.threshold_split:
            out["threshold_split"] = self.threshold_split
        return out


def changes(before: Setup, after: Setup) -> list[str]:
    """What differs, as ``key: old -> new``."""
    return [f"{name}: {old} -> {new}" for name, old, new in _differing(before, after)]


def changed(before: Setup, after: Setup) -> list[str]:
    """The keys that differ."""
    return [name for name, _, _ in _differing(before, after)]


def _differing(before: Setup, after: Setup) -> list[tuple[str, str, str]]:
    out = []
    for one in fields(Setup):
        old, new = getattr(before, one.name), getattr(after, one.name)
        if old == new or one.name == "threshold_split":
            continue
        if one.name == "thresholds":
            for channel in dict.fromkeys([*old, *new]):
                if old.get(channel) != new.get(channel):
                    words = (shown(t[channel]) if channel in t else "off" for t in (old, new))
                    out.append((f"threshold.{channel}", *words))
            continue
        words = [_UNSET.get(one.name, shown(v)) if v is None else shown(v) for v in (old, new)]
        out.append((one.name, *words))
    return out


_UNSET = {"weights": "equal"}
"""What it means that a key is not set, where it is not as the index says."""


def shown(value: Any) -> str:
    """A value of a setting, for people."""
    if value is None:
        return "as the index"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(shown(one) for one in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if value != "" else "the suite's own"


# --- reading


def read_settings(where: str, given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The settings of a table, as `Setup` has them.

    Parameters
    ----------
    what : name of the table, for messages.

    Raises
    ------
    InputError
        For an unknown key, or a value that cannot be.
    """
    settings: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _READERS:
            raise InputError(
                where, f"[{what}] has the unknown key {key!r}", f"one of {', '.join(_READERS)}"
            )
        settings[key] = _READERS[key](where, f"{key} of [{what}]", value)
    return settings


def read_production(where: str, given: Mapping[str, Any]) -> Setup:
    """The baseline.

    Raises
    ------
    InputError
        As `read_settings`, and for a threshold of a channel that it does not search.
    """
    made = Setup(**read_settings(where, given, "production"))
    for channel in made.unused():
        raise InputError(
            where, f"a threshold of channel {channel!r} in [production]",
            f"one of {', '.join(made.channels)}", f"{made.strategy} does not search it",
        )  # fmt: skip
    return made


def read_strategy(where: str, what: str, value: Any) -> str:
    """A strategy, perhaps with a reranker.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    known = [*STRATEGIES, *(f"{name}{RERANKED}" for name in STRATEGIES)]
    if value not in known:
        raise InputError(
            where, f"unknown strategy {value!r} ({what})", f"one of {', '.join(known)}"
        )
    return value


def read_channel(where: str, what: str, value: Any) -> str:
    """A channel.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if value not in CHANNELS:
        raise InputError(
            where, f"unknown channel {value!r} ({what})", f"one of {', '.join(CHANNELS)}"
        )
    return value


def read_threshold(where: str, what: str, value: Any) -> float | None:
    """A threshold; None for "off".

    Raises
    ------
    InputError
        If it is neither "off" nor a finite number.
    """
    if value == "off":
        return None
    if not _is_number(value):
        raise InputError(where, f"{what} = {value!r}", '"off" or a finite number')
    return float(value)


def read_count(where: str, what: str, value: Any) -> int:
    """A whole number from 1 on.

    Raises
    ------
    InputError
        If it is none.
    """
    if type(value) is not int or value < 1:
        raise InputError(where, f"{what} = {value!r}", "a whole number from 1 on")
    return value


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _number(low: float, high: float = math.inf) -> Callable[[str, str, Any], float]:
    def read(where: str, what: str, value: Any) -> float:
        if not _is_number(value) or not low <= value <= high:
            said = f"a number from {low:g} {'on' if high == math.inf else f'to {high:g}'}"
            raise InputError(where, f"{what} = {value!r}", said)
        return float(value)

    return read


def _one_of(*known: str) -> Callable[[str, str, Any], str]:
    def read(where: str, what: str, value: Any) -> str:
        if value not in known:
            raise InputError(where, f"{what} = {value!r}", f"one of {', '.join(known)}")
        return value

    return read


def _flag(where: str, what: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(where, f"{what} = {value!r}", "true or false")
    return value


def _word(where: str, what: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(where, f"{what} = {value!r}", "a word")
    return value


def _thresholds(where: str, what: str, value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise InputError(where, f"{what} = {value!r}", "a table of channels and numbers")
    read = {
        read_channel(where, what, name): read_threshold(where, f"{what}.{name}", one)
        for name, one in value.items()
    }
    return {name: one for name, one in read.items() if one is not None}


def _filters(where: str, what: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError(where, f"{what} = {value!r}", "a list of filters")
    try:
        return tuple(str(Filter.parse(one)) for one in value)
    except UsageError as error:
        raise InputError(where, f"{what}: {str(error).splitlines()[0]}", error.hint) from None


def _weights(where: str, what: str, value: Any) -> tuple[float, ...]:
    good = isinstance(value, list) and all(_is_number(one) and one >= 0 for one in value)
    if not good or len(value) != 2 or not any(value):
        raise InputError(where, f"{what} = {value!r}", "two numbers from 0 on: bm25, then dense")
    return tuple(float(one) for one in value)


_READERS: dict[str, Callable[[str, str, Any], Any]] = {
    "strategy": read_strategy, "candidate_k": read_count, "context_k": read_count,
    "thresholds": _thresholds, "filters": _filters, "filter_when": _one_of("before", "after"),
    "method": _one_of(*METHODS), "rrf_k": _number(0.0, 1e15), "weights": _weights,
    "normalise": _one_of(*NORMALISATIONS), "ef": read_count, "k1": _number(0.0),
    "b": _number(0.0, 1.0), "variant": _one_of(*VARIANTS), "lengths": _one_of(*LENGTHS),
    "count_repeats": _flag, "threshold_split": _word,
}  # fmt: skip
