"""Whether two runs differ in one thing only, by their manifests; what a replay leaves unbound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragcore.manifests import Difference, difference

IDENTITIES = (
    "case", "corpus", "query", "retriever", "assembler", "model", "message", "decoding", "schema",
    "validator", "evaluator",
)  # fmt: skip
"""What a replay binds, under the manifest's key `identities`."""
MAY_CHANGE = {
    "oracle_context": frozenset(("assembler",)),
    "frozen_context": frozenset(("model", "message", "decoding", "schema", "validator")),
    "frozen_output": frozenset(("evaluator",)),
}
"""The identities of which a replay changes one."""


@dataclass(frozen=True)
class Certificate:
    """What two manifests say of a change.

    Attributes
    ----------
    difference : every key that differs.
    condition : of the replay; "" for two runs of one kind.
    unbound : identities that one of the manifests does not name; only for replays.
    changed : identities that differ.
    """

    difference: Difference
    condition: str
    unbound: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def single(self) -> bool:
        """Whether exactly the declared key differs."""
        return self.difference.known and self.difference.single

    @property
    def isolates(self) -> bool:
        """Whether nothing speaks against a replay having changed one thing, of its own kind.

        Manifests without identities say nothing, and so speak against nothing.
        """
        allowed = MAY_CHANGE.get(self.condition, frozenset(IDENTITIES))
        return len(self.changed) <= 1 and set(self.changed) <= allowed

    def sentence(self) -> str:
        """The finding, for people."""
        said = [self.difference.sentence()]
        if self.condition and not self.isolates:
            said.append(
                f"as a {self.condition} replay it must not change {', '.join(self.changed)}"
            )
        if self.condition and self.unbound:
            said.append(f"not bound: {', '.join(self.unbound)}")
        return "; ".join(said)


def certify(before: dict[str, Any], after: dict[str, Any], condition: str = "") -> Certificate:
    """Compare two manifests; `after` declares its `single_change`."""
    left, right = (_identities(one) for one in (before, after))
    both = [name for name in IDENTITIES if name in left and name in right]
    return Certificate(
        difference(before, after), condition,
        tuple(name for name in IDENTITIES if name not in both) if condition else (),
        tuple(name for name in both if left[name] != right[name]),
    )  # fmt: skip


def _identities(manifest: dict[str, Any]) -> dict[str, Any]:
    found = manifest.get("identities")
    return found if isinstance(found, dict) else {}
