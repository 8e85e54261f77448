"""What decides about the rows of a sweep: one plan, and what some experiments say otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragcore.errors import InputError
from ragcore.plan import Plan, plan_from

PRIMARY = ("R@5", "R@1", "nDCG@10", "RR")
"""The first of these that is live decides, where nothing was registered."""
GUARDS = {"nDCG@10": 0.0}
SHOWN = ("context.coverage",)
"""What decides first where only the context can change."""


def read_plans(
    where: str, given: Mapping[str, Any], experiments: tuple[str, ...]
) -> dict[str, Plan]:
    """The plan of every experiment.

    A table with the name of an experiment replaces keys for that one. Without any `primary`, that
    of `context_k` begins with the coverage of the context: a cut moves no ranking.

    Raises
    ------
    InputError
        As `ragcore.plan` does.
    """
    common = {key: value for key, value in given.items() if key not in experiments}
    out: dict[str, Plan] = {}
    for name in experiments:
        own = given.get(name, {})
        if not isinstance(own, Mapping):
            raise InputError(where, f"plan.{name} = {own!r}", "a table")
        primary = [*SHOWN, *PRIMARY] if name == "context_k" else list(PRIMARY)
        settings = {"primary": primary, "guards": GUARDS} | common | dict(own)
        out[name] = plan_from(settings, f"[plan] of {where}")
    return out
