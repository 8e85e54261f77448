"""Gate expressions: read, checked against what was scored or compared, never passed on nothing."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ragcore.errors import UsageError
from ragcore.measures import registry
from ragcore.plan import Plan

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
NOT_CHECKED = "not checked"
"""Of the bare gate ``hard``: a condition that nothing in run and suite can be held to."""

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip
COUNTS = ("n_cases", "n_ok", "n_na", "n_missing", "n_disputed", "n_failed")
TRACES = ("count", "min", "max")
VALUES = ("value", "mean", "ci_low", "ci_high", "numerator", "denominator", "coverage")
DELTAS = ("delta", "value", "ci_low", "ci_high", "p_value", "n_matched", "wins", "losses", "ties")
COVERAGE = "coverage"

_EXPRESSION = re.compile(r"(?P<left>.+?)\s*(?P<op>>=|<=|==|!=|>|<)\s*(?P<number>[-+.\w%]+)\s*")
_HARD = re.compile(
    r"hard(?:\.(?P<name>\w+))?(?:\[(?P<slice>[^\[\]]*=[^\[\]]*|\*)\])?"
    r"(?:\s*(?P<op>>=|<=|==|!=|>|<)\s*(?P<number>\d+))?"
)
WITNESS = "end_to_end"
"""Scored beside hard conditions, so that the columns of the traces are read."""
_SLICE = re.compile(r"(?P<left>.*?)\[(?P<slice>[^\[\]]*=[^\[\]]*|\*)\](?P<rest>\.\w+)?")


@dataclass(frozen=True)
class Gate:
    """One condition.

    Attributes
    ----------
    text : as it was written.
    measure : name as it prints; "" for the bare ``coverage`` over all measures.
    delta : whether it is about the difference to the baseline.
    slice : ``all``, ``column=value``, ``column=*`` for each of them, or ``*`` for every slice.
    field : what of the measure.
    op, threshold : the condition.
    hard : whether the plan lists it as one that nothing offsets.
    check : of hard conditions on single traces: its name, ``*`` for all; "" for other gates.
    """

    text: str
    measure: str
    delta: bool
    slice: str
    field: str
    op: str
    threshold: float
    hard: bool = False
    check: str = ""

    @property
    def column(self) -> str:
        """The column that it slices by, or ""."""
        return self.slice.partition("=")[0] if "=" in self.slice else ""

    def holds(self, value: float) -> bool:
        """Whether a number meets the condition; NaN never does."""
        return value == value and _OPERATORS[self.op](value, self.threshold)

    @property
    def rises(self) -> bool | None:
        """Whether more is better for it; None for ``==`` and ``!=``."""
        return None if self.op in ("==", "!=") else self.op[0] == ">"


@dataclass(frozen=True)
class Result:
    """What became of one gate, for one run and slice.

    Attributes
    ----------
    gate, run, slice : what was asked, of what.
    status : pass, fail, inconclusive where cases without a value could turn it, or not checked.
    value : the number that was compared; None where there is none.
    reason : in words, unless it passed on all cases.
    """

    gate: Gate
    run: str
    slice: str
    status: str
    value: float | None
    reason: str = ""

    @property
    def met(self) -> bool:
        """Whether it stands in no one's way."""
        return self.status in (PASS, NOT_CHECKED)


def parse_gates(texts: Iterable[str], hard: bool = False) -> list[Gate]:
    """Read gate expressions.

    Raises
    ------
    UsageError
        If one cannot be read, or names an unknown measure or field.
    """
    return [_one(text, hard) for text in texts]


def _one(text: str, hard: bool) -> Gate:
    found = _HARD.fullmatch(text.strip())
    if found is not None:
        return _condition(text, found)
    match = _EXPRESSION.fullmatch(text.strip())
    if match is None or match["left"].strip()[-1:] in tuple("=<>!"):
        raise UsageError(
            f"gate {text!r} cannot be read", "for example 'nDCG@10 >= 0.4' or "
            "'delta(R@5).ci_low > -0.01'",
        )  # fmt: skip
    left, number = match["left"].strip(), match["number"]
    try:
        threshold = float(number.removesuffix("%")) / (100.0 if number.endswith("%") else 1.0)
    except ValueError:
        raise UsageError(f"gate {text!r}: {number!r} is not a number") from None
    if threshold != threshold:
        raise UsageError(f"gate {text!r}: nothing compares with NaN")
    part, left = _sliced(left)
    delta, field = False, ""
    if found := re.fullmatch(r"delta\((?P<inside>.*)\)(?:\.(?P<field>\w+))?", left):
        delta, field = True, found["field"] or "delta"
        inner, left = _sliced(found["inside"])
        part = inner if part == "all" else part
    known = DELTAS if delta else (*VALUES, *COUNTS, *TRACES)
    if not delta and left == COVERAGE:
        return Gate(text, "", False, part, COVERAGE, match["op"], threshold, hard)
    if not delta:
        left, field = _field(left, known)
    if field not in known:
        raise UsageError(f"gate {text!r}: unknown field {field!r}", f"one of {', '.join(known)}")
    try:
        measures = registry.parse([left])
    except UsageError as error:
        raise UsageError(f"gate {text!r}: {error}") from None
    if len(measures) != 1:
        raise UsageError(f"gate {text!r}: {left!r} is {len(measures)} measures", "name one")
    return Gate(text, measures[0].text, delta, part, field, match["op"], threshold, hard)


def _condition(text: str, found: re.Match[str]) -> Gate:
    """A condition on every single trace: ``hard``, ``hard.NAME == 0``, perhaps with a slice."""
    from ragcore.hard_gates import NAMES  # what plain rankings need not load

    name, part = found["name"] or "*", found["slice"] or "all"
    if name != "*" and name not in NAMES:
        raise UsageError(f"gate {text!r}: no hard condition {name!r}", f"one of {', '.join(NAMES)}")
    if name != "*" and found["op"] is None:
        raise UsageError(f"gate {text!r} says no number", f"say '{text.strip()} == 0'")
    if name == "*" and found["op"] is not None:
        raise UsageError(f"gate {text!r}: 'hard' alone allows nothing", "name one: 'hard.acl == 0'")
    threshold = float(found["number"] or 0)
    return Gate(text, WITNESS, False, part, "count", found["op"] or "==", threshold, True, name)


def _sliced(left: str) -> tuple[str, str]:
    """(slice, what is left); the slice may stand before the field."""
    if match := _SLICE.fullmatch(left):
        return match["slice"].strip(), (match["left"] + (match["rest"] or "")).strip()
    return "all", left


def _field(left: str, known: Sequence[str]) -> tuple[str, str]:
    """(measure, field): the whole is tried as a measure first, as names may hold dots."""
    name, dot, field = left.rpartition(".")
    if not dot or field.isdigit() or _is_measure(left):
        return left, "value"
    return name, field if field in known or _is_measure(name) else "value"


def _is_measure(name: str) -> bool:
    try:
        registry.parse([name])
    except UsageError:
        return False
    return True


def gates_of(plan: Plan, texts: Iterable[str] = (), *, baseline: bool = True) -> list[Gate]:
    """The gates of a plan, hard ones first, and further ones.

    Raises
    ------
    UsageError
        As `parse_gates`; and if one is about a difference and there is no baseline.
    """
    out = [*parse_gates(plan.hard, hard=True), *parse_gates(plan.gates), *parse_gates(texts)]
    for gate in out:
        if gate.delta and not baseline:
            raise UsageError(f"gate {gate.text!r} needs a baseline", "say --baseline RUN")
    return out


def registered(plan: Plan) -> frozenset[str] | None:
    """Measures that a plan registers, in its gates too; None without a plan."""
    if not plan.source:
        return None
    own = (gate.measure for gate in parse_gates([*plan.hard, *plan.gates]))
    return frozenset([*plan.registered, *own])


def slices_for(gates: Iterable[Gate], by: Iterable[str]) -> tuple[str, ...]:
    """Columns to slice by: those asked for, and those that gates name."""
    return tuple(dict.fromkeys([*by, *(gate.column for gate in gates if gate.column)]))
