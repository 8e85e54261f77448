"""Which layer a failure is put down to, by recorded replays: what is proved, and what is not.

1. A hard violation is told first, whatever else holds. 2. If another evaluator, given the same
output, says otherwise, the evaluation is at fault and the case `disputed`. 3. Else take the first
layer in state F or G. 4. A replay with the labelled context that recovers puts the fault in corpus
to context; if that fails and another generator or validator on the same context recovers, in
generation or citation. 5. The first layer inside that side is `attributed`; outside it, or without
a side, `uncertain`; without a replay it is a `hypothesis`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragcore.diagnosis.layers import LAYERS

ATTRIBUTED, UNCERTAIN, HYPOTHESIS, DISPUTED, VIOLATION, PASSED = (
    "attributed", "uncertain", "hypothesis", "disputed", "hard violation", "passed",
)  # fmt: skip
STATUSES = (VIOLATION, DISPUTED, ATTRIBUTED, UNCERTAIN, HYPOTHESIS, PASSED)
RECOVERS, FAILS, FLIPS, SAME, NOT_JUDGED = "recovers", "fails", "flips", "same", "not judged"
"""What came of a replay; the last where neither verdicts nor an outcome say."""
REPLAYS = ("oracle_context", "frozen_context", "frozen_output")
"""Conditions of replays, in the order in which they are told."""
EVIDENCE_SIDE, ANSWER_SIDE = frozenset(LAYERS[:5]), frozenset(LAYERS[5:7])


@dataclass(frozen=True)
class Interventions:
    """What came of the replays of one trace; "" for one that was not recorded.

    Attributes
    ----------
    oracle, frozen : `RECOVERS`, `FAILS` or `NOT_JUDGED`.
    output : `FLIPS`, `SAME` or `NOT_JUDGED`.
    """

    oracle: str = ""
    frozen: str = ""
    output: str = ""


@dataclass(frozen=True)
class Attribution:
    """Where a failure comes from, as far as the record says.

    Attributes
    ----------
    layer : one of `layers.LAYERS`; "" where none is named.
    status : one of `STATUSES`.
    """

    layer: str
    status: str

    def __str__(self) -> str:
        """``corpus attributed``."""
        return f"{self.layer} {self.status}".strip()


def attribute(
    states: str, interventions: Interventions, failed: bool, violated: bool = False
) -> Attribution:
    """Apply the rule to one trace.

    Parameters
    ----------
    states : its eight layers, as `layers.spelled` gives them.
    interventions : its replays.
    failed : whether the asker was not served.
    violated : whether it breaks a hard condition.
    """
    if violated:
        return Attribution("", VIOLATION)
    if interventions.output == FLIPS:
        return Attribution("evaluation", DISPUTED)
    pairs = zip(LAYERS, states.split(), strict=True)
    first = next((layer for layer, state in pairs if state in ("F", "G")), "")
    if not failed:
        return Attribution("", PASSED)
    if not (interventions.oracle or interventions.frozen):
        return Attribution(first, HYPOTHESIS)
    side: frozenset[str] = frozenset()
    if interventions.oracle == RECOVERS:
        side = EVIDENCE_SIDE
    elif interventions.oracle == FAILS and interventions.frozen == RECOVERS:
        side = ANSWER_SIDE
    return Attribution(first, ATTRIBUTED if first in side else UNCERTAIN)
