"""What was registered before looking: primary measures, guards, gates, from TOML or a manifest."""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragcore.errors import InputError

P95_RATIO = 2.0
"""Above this ratio of p95 latencies, a gain in quality is a product decision."""

TOKENS = "context.tokens"
"""The measure that `Plan.tokens_ratio` bounds."""

_KEYS = ("primary", "guards", "measures", "gates", "hard", "by", "level", "p95_ratio",
         "tokens_ratio")  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What decides, and by how much, as registered before the runs were compared.

    Attributes
    ----------
    primary : measures in order; the first one that is live decides.
    margins : by how much a primary measure must gain, 0 where nothing is said.
    guards : measures that must not fall by more than a margin, which is >= 0.
    measures : further registered measures.
    gates, hard : gate expressions; hard ones block an adoption whatever else holds.
    by, level : slices and level of the intervals; None where the plan leaves them open.
    p95_ratio : latency that turns a gain into a product decision.
    tokens_ratio : the same of the mean tokens of the context; None where they do not matter.
    source, sha256 : where it was registered, and the digest of that file.
    """

    primary: tuple[str, ...] = ()
    margins: Mapping[str, float] = field(default_factory=dict)
    guards: Mapping[str, float] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    hard: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    level: float | None = None
    p95_ratio: float = P95_RATIO
    tokens_ratio: float | None = None
    source: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        """Refuse what no comparison could apply."""
        where = self.source or "the plan"
        for what, margins in (("guards", self.guards), ("primary", self.margins)):
            for name, margin in margins.items():
                if not _number(margin) or not 0 <= margin < math.inf:
                    found = f"{what}: {name!r} with margin {margin!r}"
                    raise InputError(where, found, "a finite margin, 0 or more")
        bounds: dict[str, Any] = {"p95_ratio": self.p95_ratio}
        if self.tokens_ratio is not None:
            bounds["tokens_ratio"] = self.tokens_ratio
        for name, ratio in bounds.items():
            if not _number(ratio) or not 0 < ratio < math.inf:
                raise InputError(where, f"{name} = {ratio!r}", "a finite ratio above 0")

    @property
    def registered(self) -> tuple[str, ...]:
        """All measures of the plan but those that only gates name."""
        bounded = [TOKENS] if self.tokens_ratio is not None else []
        return tuple(dict.fromkeys([*self.primary, *self.guards, *self.measures, *bounded]))


def read_plan(path: Path) -> Plan:
    """A plan from a TOML file.

    Raises
    ------
    InputError
        If it is no TOML, or a key is unknown or of the wrong kind.
    """
    try:
        raw = path.read_bytes()
        settings = tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        raise InputError(path, str(error.strerror or error), "a readable file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(path, f"broken TOML: {error}", "a plan in TOML") from None
    return _plan(settings, str(path), hashlib.sha256(raw).hexdigest())


def plan_of(manifest: Mapping[str, Any], where: str) -> Plan:
    """The plan that a run's manifest carries in `primary` and `gates`; empty without them.

    `primary` is a measure, a list of measures or of ``{"measure": ..., "margin": ...}``, or an
    object with the keys of the TOML file.

    Raises
    ------
    InputError
        If they are of the wrong kind.
    """
    primary = manifest.get("primary")
    settings: dict[str, Any] = {}
    if isinstance(primary, Mapping):
        settings = dict(primary)
        if "measures" in settings and "primary" not in settings:
            settings["primary"] = settings.pop("measures")
    elif primary is not None:
        settings["primary"] = primary
    if manifest.get("gates") is not None:
        settings["gates"] = manifest["gates"]
    source = f"the manifest of {where}" if settings else ""
    return _plan(settings, source, "")


def plan_from(settings: Mapping[str, Any], source: str, sha256: str = "") -> Plan:
    """A plan from the keys that its TOML file has, wherever they stand.

    Raises
    ------
    InputError
        As `read_plan`.
    """
    return _plan(settings, source, sha256)


def _plan(settings: Mapping[str, Any], source: str, digest: str) -> Plan:
    unknown = [key for key in settings if key not in _KEYS]
    if unknown:
        raise InputError(source, f"unknown key {unknown[0]!r}", f"one of {', '.join(_KEYS)}")
    names, margins = _primary(settings.get("primary", ()), source)
    guards = settings.get("guards", {})
    if not isinstance(guards, Mapping):
        guards = dict.fromkeys(_words(guards, "guards", source), 0.0)
    level, ratio = settings.get("level"), settings.get("p95_ratio", P95_RATIO)
    if level is not None and not (_number(level) and 0.5 <= level < 1):
        raise InputError(source, f"level = {level!r}", "a number from 0.5 to below 1")
    words = {
        key: _words(settings.get(key, ()), key, source)
        for key in ("measures", "gates", "hard", "by")
    }
    return Plan(
        names, margins, guards={str(k): v for k, v in guards.items()},
        level=None if level is None else float(level), p95_ratio=ratio,
        tokens_ratio=settings.get("tokens_ratio"), source=source,
        sha256=digest, **words,
    )  # fmt: skip


def _primary(value: Any, source: str) -> tuple[tuple[str, ...], dict[str, float]]:
    """Primary measures in order, and the margins that some come with."""
    listed = [value] if isinstance(value, (str, Mapping)) else value
    names, margins = [], {}
    for one in listed if isinstance(listed, Sequence) else [listed]:
        name, margin = one, 0.0
        if isinstance(one, Mapping):
            name, margin = one.get("measure"), one.get("margin", 0.0)
        if not isinstance(name, str):
            raise InputError(source, f"primary: {one!r}", "a measure, or a measure and a margin")
        names.append(name)
        margins |= {name: margin} if margin else {}
    return tuple(names), margins


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _words(value: Any, key: str, source: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise InputError(source, f"{key} = {value!r}", "a string or a list of strings")
