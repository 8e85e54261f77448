"""What two runs did differently, by their manifests, and whether that is what was declared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

IDENTITY = frozenset(
    ("run", "baseline", "single_change", "primary", "gates", "suite", "threshold_split", "replay")
)
"""Keys that name a run, its plan or where its values come from, rather than what it did."""


@dataclass(frozen=True)
class Change:
    """One key that differs; None stands for a key that a manifest lacks."""

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        """``key: before -> after``."""
        return f"{self.key}: {_shown(self.before)} -> {_shown(self.after)}"


@dataclass(frozen=True)
class Difference:
    """How two manifests differ.

    Attributes
    ----------
    changes : one a key, nested keys joined by dots.
    declared : the one key that the candidate says it changed; "" if it says nothing.
    known : whether both runs have a manifest.
    """

    changes: tuple[Change, ...]
    declared: str
    known: bool

    @property
    def single(self) -> bool:
        """Whether the declared key, and nothing else, differs."""
        return bool(self.declared and self.changes) and not self.undeclared

    @property
    def undeclared(self) -> list[str]:
        """Keys that differ beside the declared one."""
        return [c.key for c in self.changes if not _within(c.key, self.declared)]

    def sentence(self) -> str:
        """The finding, for people."""
        if not self.known:
            return "manifest: not in both runs, so what changed is not known"
        listed = "; ".join(str(c) for c in self.changes) or "nothing"
        if not self.declared:
            return f"manifest: no single change declared; differs: {listed}"
        if self.single:
            return f"manifest: single change, as declared: {listed}"
        if not self.changes:
            return f"manifest: {self.declared!r} is declared to differ, yet nothing does"
        if len(self.undeclared) == len(self.changes):
            return (
                f"manifest: {self.declared!r} is declared to differ and does not; differs: {listed}"
            )
        return (
            f"manifest: NOT a single change: besides {self.declared!r} also "
            f"{', '.join(self.undeclared)}; differs: {listed}"
        )


def difference(before: dict[str, Any], after: dict[str, Any]) -> Difference:
    """Compare the manifests of a baseline and a candidate."""
    left, right = _flat(before), _flat(after)
    keys = [key for key in dict.fromkeys([*left, *right]) if key.split(".")[0] not in IDENTITY]
    changes = tuple(
        Change(key, left.get(key), right.get(key)) for key in sorted(keys)
        if left.get(key) != right.get(key)
    )  # fmt: skip
    return Difference(changes, str(after.get("single_change") or ""), bool(before and after))


def tainted(manifest: dict[str, Any], splits: set[Any]) -> str:
    """Why a run is no evidence: its threshold was chosen on cases that it is tested on; else "".

    Parameters
    ----------
    splits : of the cases that are scored.
    """
    tuned = manifest.get("threshold_split")
    if not tuned or tuned not in splits:
        return ""
    return (
        f"tainted: thresholds of {manifest.get('run') or 'the run'} were chosen on the split "
        f"{tuned!r}, which it is tested on"
    )


def _flat(manifest: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in manifest.items():
        if isinstance(value, dict) and value:
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out


def _within(key: str, declared: str) -> bool:
    return bool(declared) and (key == declared or key.startswith(f"{declared}."))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
