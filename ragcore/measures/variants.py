"""The parameters `ties=` and `holes=`: what they may be, and which measures they say nothing of."""

from __future__ import annotations

from ragcore.errors import UsageError
from ragcore.measures.definitions import Measure

BOUNDS = {"ties": ("best", "expected", "worst"), "holes": ("best", "worst")}
"""Parameters, and what each may be; in the order of the variants."""

_CASE = "it counts the case itself"
_LABELS = "it knows the judgements only"
_LENGTH = "it counts the rows, whatever they are"
_COUNTS = "it counts what is judged as things stand"
NO_BOUND = {
    "ties": {"NumQ": _CASE, "NumRel": _LABELS, "NumRet": _LENGTH},
    "holes": {
        "NumQ": _CASE, "NumRel": _LABELS, "NumRet": _LENGTH, "num_nonrel_judged_ret": _COUNTS,
        "Judged": _COUNTS, "Unjudged": _COUNTS,
    },
}  # fmt: skip
"""Measures that a bound says nothing about, and why."""


def kind_of(measure: Measure) -> str | None:
    """The parameter that makes a measure a bound, or None if it is none."""
    return next((kind for kind in BOUNDS if measure.params.get(kind)), None)


def check(measure: Measure) -> None:
    """Refuse a bound that has no meaning.

    Raises
    ------
    UsageError
        If a value is unknown, both bounds are asked for, or the measure has no such bound.
    """
    asked = [kind for kind in BOUNDS if measure.params.get(kind)]
    for kind in asked:
        value = measure.params[kind]
        if value not in BOUNDS[kind]:
            raise UsageError(
                f"measure {measure.text!r}: {kind}={value!r}", f"one of {', '.join(BOUNDS[kind])}"
            )
        if why := NO_BOUND[kind].get(measure.definition.name):
            raise UsageError(f"measure {measure.text!r} has no bound over {kind}", why)
    if len(asked) > 1:
        raise UsageError(
            f"measure {measure.text!r} asks for ties and holes at once",
            "each bound stands alone: ask for two measures",
        )


def explained(name: str) -> str:
    """Which bounds a ranked measure has, in words."""
    parts = []
    for kind, values in BOUNDS.items():
        why = NO_BOUND[kind].get(name)
        parts.append(f"no {kind}=: {why}" if why else f"{kind}={'|'.join(values)}")
    if name in ("IPrec", "11pt_avg"):
        parts.append("ties=expected has no closed form: na where large groups take too long")
    return "; ".join(parts)
