"""Hard gates: conditions that one single trace breaks for its whole run, and no average offsets.

They are checked on every trace of a run in every repeat, degraded ones (with a `fallback` or
`missing_shards`) too. Replays are left out and counted: their context is given, not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore.lists import coded
from ragcore.measures.inputs import Inputs
from ragcore.measures.surfaced import Check
from ragcore.measures.violations import PREDICATES
from ragcore.results import RunScores

NAMES = (
    "acl", "forbidden", "deleted", "effect", "claim", "fabricated", "invalid", "answered",
    "high_stakes",
)  # fmt: skip
"""Gates by name, as ``hard.NAME`` in gate expressions."""
NOT_OBSERVED = ("gold_context", "oracle_context", "frozen_context", "frozen_output")
"""Conditions whose context or output was given: no gate is held against them."""


@dataclass(frozen=True)
class Violation:
    """One trace that breaks one condition.

    Attributes
    ----------
    run, case, lang, repeat : the trace.
    gate, title : the condition, by name and in words.
    what : by what.
    degraded : whether the trace ran with a fallback or without some shards.
    """

    run: str
    case: str
    lang: str | None
    repeat: int | None
    gate: str
    title: str
    what: str
    degraded: bool


@dataclass(frozen=True)
class HardGate:
    """One condition on one run.

    Attributes
    ----------
    run, name, title : of the run; of the condition, short and in words.
    checked, of : traces that could be checked, of how many; those of cases that the suite does not
        have cannot be.
    violations : each trace that breaks it.
    why : why nothing could be checked; "" otherwise.
    degraded, degraded_bad : degraded traces that were checked, and that break it.
    """

    run: str
    name: str
    title: str
    checked: int
    of: int
    violations: tuple[Violation, ...]
    why: str
    degraded: int
    degraded_bad: int

    def sentence(self) -> str:
        """What was checked, for people."""
        if self.why:
            return f"not checkable: {self.why}"
        said = f"checked {self.checked} of {self.of} traces"
        if self.degraded:
            said += f", {self.degraded} of them degraded"
        if self.violations:
            one = self.violations[0]
            place = " ".join(str(x) for x in (one.case, one.lang, one.repeat) if x is not None)
            said += f"; {len(self.violations)} break it, for example {place}: {one.what}"
        return said


def observed(inputs: Inputs) -> Any:
    """(n,) bool: traces that the run has, and that are no replays of given context or output."""
    given = coded(inputs.trace("condition"), inputs.n, NOT_OBSERVED) >= 0
    return ~inputs.absent & ~given


def degraded(inputs: Inputs) -> Any:
    """(n,) bool: traces with a fallback, or without some shards."""
    fallback = inputs.trace("fallback")
    out = np.zeros(inputs.n, np.bool_)
    if fallback is not None:
        out |= np.asarray(fallback.is_valid())
    return out | (inputs.trace_lists("missing_shards").counts > 0)


def checks(inputs: Inputs) -> list[Check]:
    """Every condition on one run; kept, as gates and diagnoses both ask."""
    return inputs.once("hard checks", lambda: [predicate(inputs) for predicate in PREDICATES])


def violated(inputs: Inputs) -> Any:
    """(n,) bool: observed traces that break any condition."""
    out = np.zeros(inputs.n, np.bool_)
    for check in checks(inputs):
        out |= check.broken
    return out & observed(inputs)


def hard_gates(run: RunScores, names: Sequence[str] = NAMES, rows: Any = None) -> list[HardGate]:
    """Check conditions on one run.

    Parameters
    ----------
    run : scored with at least one layered measure.
    names : of the conditions; default all.
    rows : rankings of a slice; None for all.
    """
    inputs = run.inputs
    if inputs is None:
        return [HardGate(run.name, name, name, 0, 0, (), _NO_TRACE, 0, 0) for name in names]
    seen, weak = observed(inputs), degraded(inputs)
    part = np.ones(inputs.n, np.bool_)
    if rows is not None:
        part[:] = False
        part[rows] = True
    out = []
    for check in checks(inputs):
        if check.name in names:
            checked, broken = check.checked & seen & part, check.broken & seen & part
            why = check.why
            if not why and not checked.any():
                why = _NO_TRACE
            out.append(
                HardGate(
                    run.name, check.name, check.title, int(checked.sum()),
                    int((seen & part).sum()) + (_beyond(inputs) if rows is None else 0),
                    tuple(_violations(run, check, np.flatnonzero(broken), weak)), why,
                    int((checked & weak).sum()), int((broken & weak).sum()),
                )
            )  # fmt: skip
    return out


def _beyond(inputs: Inputs) -> int:
    """Traces of cases that the suite does not have: nothing says what they may not do."""
    if inputs.traces is None:
        return 0
    return inputs.traces.num_rows - int((~inputs.absent).sum())


_NO_TRACE = "no trace records what it needs"


def _violations(run: RunScores, check: Check, at: Any, weak: Any) -> Iterator[Violation]:
    for i in at.tolist():
        yield Violation(
            run.name, run.case_names[int(run.case_of[i])],
            run.lang[i] if run.lang is not None else None,
            run.repeat[i] if run.repeat is not None else None,
            check.name, check.title, check.what(i), bool(weak[i]),
        )  # fmt: skip


def replays(run: RunScores) -> int:
    """Traces of a run that are left out, as their context or output was given."""
    if run.inputs is None:
        return 0
    return int((~run.inputs.absent & ~observed(run.inputs)).sum())
