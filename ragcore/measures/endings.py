"""How a trace ended: which of the five states, whether it answered, and what is no state at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.lists import coded
from ragcore.measures.inputs import Inputs
from ragcore.measures.outcome_values import said
from ragcore_kernels.layout import I64

ANSWER, PARTIAL, ABSTAIN, ESCALATE, FAIL_CLOSED = range(5)
"""States, as places in `schema.EXPECTED_STATES`."""
ANSWERED = (ANSWER, PARTIAL)
"""States in which something was answered: what coverage counts."""
ABSTAINED = (ABSTAIN, ESCALATE, FAIL_CLOSED)
"""States in which nothing was: an escalation is an abstention with a cost of its own."""

INVALID = "invalid-state"
"""Reason where a trace says a state that is none of the five."""


@dataclass
class Ending:
    """How every ranking's trace ended.

    Attributes
    ----------
    code : (n,), place in `schema.EXPECTED_STATES`; -1 where no state is recorded, or none of them.
    invalid : (n,), a word that is none of the five.
    """

    code: I64
    invalid: Any

    @property
    def answered(self) -> Any:
        """(n,), whether it answered, wholly or in part."""
        return (self.code == ANSWER) | (self.code == PARTIAL)

    @property
    def abstained(self) -> Any:
        """(n,), whether it abstained, escalated or closed."""
        return self.code >= ABSTAIN


def ending(inputs: Inputs, column: str = "final") -> Ending | None:
    """States of ``final`` (where absent, of ``proposed``); None if the run has neither.

    Words that are none of the five are counted.
    """

    def make() -> Ending | None:
        found = said(inputs, column)
        if found is None:
            return None
        codes = coded(found, inputs.n, schema.EXPECTED_STATES)
        invalid = codes == -2
        if invalid.any():
            inputs.counts[f"{column} states that are none of the five"] = int(invalid.sum())
            word = found[int(np.flatnonzero(invalid)[0])].as_py()
            inputs.warnings.append(
                f"{int(invalid.sum())} {column} states are none of the five, such as {word!r}"
            )
        return Ending(np.maximum(codes, -1), invalid)

    return inputs.once(f"ending {column}", make)


def states_of(inputs: Inputs, end: Ending) -> Any:
    """(n,) int8: ok where one of the five is recorded; failed for an invalid one or an error."""
    states = inputs.states(end.code >= 0)
    return np.where(end.invalid & (states == schema.MISSING), np.int8(schema.FAILED), states)


def recorded(inputs: Inputs, known: Any) -> Any:
    """(n,) int8: ok where `known`, whatever the labels; else failed after an error, or missing."""
    lost = np.where(inputs.failed, np.int8(schema.FAILED), np.int8(schema.MISSING))
    return np.where(known, np.int8(schema.OK), lost).astype(np.int8)
