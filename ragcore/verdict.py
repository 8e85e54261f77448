"""Adopt, reject or neither: what a registered plan says about one comparison, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ragcore.plan import Plan
from ragcore.saturation import Saturation
from ragcore.stats import Paired

ADOPT, REJECT, NOISE, SATURATED, PRODUCT, BLOCKED, TAINTED = (
    "adopt", "reject", "inconclusive: noise", "inconclusive: saturated", "product decision",
    "blocked", "tainted",
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What a plan says, with its reasons.

    Attributes
    ----------
    verdict : one of the seven of this module; "" without a registered primary measure.
    primary : the measure that decided, "" if none could.
    reasons : sentences, the decisive one first.
    """

    verdict: str
    primary: str
    reasons: tuple[str, ...]


def decide(
    plan: Plan,
    found: Mapping[str, Paired],
    room: Mapping[str, Saturation],
    violated: tuple[str, ...] = (),
    latency: tuple[float, float] = (math.nan, math.nan),
    kind: str = "",
    less: frozenset[str] = frozenset(),
    tokens: tuple[float, float] = (math.nan, math.nan),
    unreviewed: int = 0,
) -> Verdict:
    """Apply a plan to one candidate.

    Parameters
    ----------
    plan : the first of its primary measures that is live decides; guards must hold.
    found, room : of each measure over all cases.
    violated : hard gates that failed.
    latency : p95 of baseline and candidate in microseconds, NaN of one that was not timed.
    kind : of the suite; what a development or public one cannot bear, the reasons say.
    less : measures that are better when they fall.
    tokens : mean tokens of the context of both over the same cases, NaN where not known.
    unreviewed : cases that nobody reviewed: they are among those that decide, and in no gate.

    Notes
    -----
    Where no measure is live, a floored one decides: a gain shows there, only a loss does not.
    A guard with a margin holds if the interval of its difference ends above -margin, regressed
    if it lies below, and is uncertain in between; without a margin it holds from 0 up.
    """
    primary, reasons = _deciding(plan, found, room)
    asides = [*reasons, *_remarks(latency, kind, unreviewed)]
    if plan.tokens_ratio is not None and any(math.isnan(value) for value in tokens):
        asides.append("context tokens not compared: no case has them on both sides")
    if violated:
        said = tuple(f"hard gate failed: {gate}" for gate in violated)
        return Verdict(BLOCKED, primary, (*said, *asides))
    if not plan.primary:
        return Verdict("", "", ("no primary measure is registered, so nothing decides", *asides))
    if not primary:
        none = all(name not in found or found[name].n == 0 for name in plan.primary)
        why = "has a case on both sides" if none else "can show a difference"
        return Verdict(SATURATED, "", (f"no primary measure {why}", *asides))
    one = found[primary]
    verdict, why = _moved(primary, one, plan.margins.get(primary, 0.0), primary in less)
    regressed, uncertain = _guards(plan, found, less)
    if regressed:
        return Verdict(REJECT, primary, (*regressed, why, *asides))
    if verdict != ADOPT:
        return Verdict(verdict, primary, (why, *uncertain, *asides))
    if uncertain:
        return Verdict(NOISE, primary, (*uncertain, why, *asides))
    if dearer := _dearer(plan, latency, tokens):
        return Verdict(PRODUCT, primary, (*dearer, why, *asides))
    return Verdict(ADOPT, primary, (why, *asides))


def _dearer(plan: Plan, latency: tuple[float, float], tokens: tuple[float, float]) -> list[str]:
    """What a gain costs beyond the bounds of the plan."""
    out = []
    if latency[0] > 0 and latency[1] / latency[0] > plan.p95_ratio:
        out.append(f"p95 grows {latency[1] / latency[0]:.2f} times, above {plan.p95_ratio:g}")
    if plan.tokens_ratio is not None and tokens[1] > plan.tokens_ratio * tokens[0]:
        said = f"{tokens[1] / tokens[0]:.2f} times" if tokens[0] else f"from 0 to {tokens[1]:.1f}"
        out.append(f"context tokens grow {said}, above {plan.tokens_ratio:g}")
    return out


def taint(verdict: Verdict, found: tuple[str, ...]) -> Verdict:
    """A verdict withdrawn, as a run is no evidence; itself where there is no reason for that.

    Parameters
    ----------
    found : sentences on runs whose thresholds were chosen on the cases that they are tested on.
    """
    if not found:
        return verdict
    return Verdict(TAINTED, verdict.primary, (*found, *verdict.reasons))


def _deciding(
    plan: Plan, found: Mapping[str, Paired], room: Mapping[str, Saturation]
) -> tuple[str, list[str]]:
    """The primary measure that decides, "" for none, and what is wrong with those before it."""
    reasons: list[str] = []
    floored = ""
    for name in plan.primary:
        state = room.get(name)
        if name not in found or found[name].n == 0:
            reasons.append(f"{name} has no case on both sides")
        elif state is None or not state.state or state.live:
            return name, reasons
        else:
            reasons.append(f"{name} is {state}")
            floored = floored or (name if state.state == "floored" else "")
    return floored, reasons


def _gain(one: Paired, less: bool) -> tuple[float, float, float] | None:
    """Difference and interval with more as better; None without an interval."""
    if one.low is None or one.high is None or one.delta is None:
        return None
    return (-one.delta, -one.high, -one.low) if less else (one.delta, one.low, one.high)


def _moved(name: str, one: Paired, margin: float, less: bool = False) -> tuple[str, str]:
    """What the interval of the primary measure says."""
    gain = _gain(one, less)
    if gain is None:
        return NOISE, f"{name}: no interval ({one.reason})"
    text = f"{name} {one.delta:+.4f} [{one.low:.4f}, {one.high:.4f}] over {one.n} cases"
    better, worse = ("below", "above") if less else ("above", "below")
    bound = -margin if less and margin else margin
    if gain[1] > margin:
        return ADOPT, f"{text}: {better} {bound:g}"
    if gain[2] < 0:
        return REJECT, f"{text}: {worse} 0"
    if gain[1] > 0:
        return NOISE, f"{text}: {better} 0, but not {better} its margin of {bound:g}"
    return NOISE, f"{text}: the interval includes 0"


def _guards(
    plan: Plan, found: Mapping[str, Paired], less: frozenset[str]
) -> tuple[list[str], list[str]]:
    """Guards that regressed, and those of which it is not known."""
    regressed, uncertain = [], []
    for name, margin in plan.guards.items():
        one = found.get(name)
        gain = _gain(one, name in less) if one is not None else None
        if one is None or gain is None:
            uncertain.append(f"guard {name}: no interval")
            continue
        text = f"guard {name} {one.delta:+.4f} [{one.low:.4f}, {one.high:.4f}]"
        if gain[2] < -margin:
            regressed.append(f"{text} regressed beyond its margin of {margin:g}")
        elif gain[1] < -margin and not (margin == 0.0 and gain[0] >= 0.0):
            uncertain.append(f"{text} may have regressed beyond its margin of {margin:g}")
    return regressed, uncertain


def _remarks(latency: tuple[float, float], kind: str, unreviewed: int) -> list[str]:
    said = []
    timed = [not math.isnan(value) for value in latency]
    if all(timed):
        said.append(f"p95 {latency[0] / 1e3:.4g} ms -> {latency[1] / 1e3:.4g} ms")
    elif any(timed):
        only = "baseline" if timed[0] else "candidate"
        said.append(f"p95 not compared: only the {only} has timings")
    if kind.startswith("development"):
        said.append("a development suite: it bears no claim about quality in production")
    elif kind.startswith("public"):
        said.append("a public suite is out of distribution: it sets no default of a product")
    if unreviewed:
        said.append(f"{unreviewed} cases that nobody reviewed are in these numbers, and in no gate")
    return said
