"""Risk against coverage: what answering only where confidence is high gains, and at what price.

Ties in confidence have no order, so nothing may depend on one: inside a tie the risk is the
expected one under random order, and the curve has a point at its end only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcore_kernels.checks import number_column
from ragcore_kernels.sums import exact_sum

F64 = NDArray[np.float64]

_MAX_DENOMINATOR = 10**7  # two such fractions are never as near as doubles round


@dataclass(frozen=True)
class RiskCoverage:
    """The curve of one system and the area under it.

    Parameters
    ----------
    coverage, risk : (n_points,), by falling confidence: share of the ranked cases answered, and
        their mean loss. One point for each distinct confidence.
    confidence : (n_points,), the least confidence that is answered at the point.
    aurc : area under the curve, mean of the risks after 1, 2, ... n cases; nan without cases.
    oracle_aurc : the same if confidence ordered the losses perfectly.
    n : cases ranked.
    n_unranked : cases whose confidence is nan; in nothing else.
    """

    coverage: F64
    risk: F64
    confidence: F64
    aurc: float
    oracle_aurc: float
    n: int
    n_unranked: int

    @property
    def e_aurc(self) -> float:
        """What the order of confidence costs: `aurc` less `oracle_aurc`."""
        return self.aurc - self.oracle_aurc


def _risks(losses: F64, bounds: NDArray[np.int64]) -> F64:
    """(n,), expected risk after 1, 2, ... n cases; `bounds` are the ends of the ties."""
    sizes = np.diff(bounds, prepend=0)
    sums = np.add.reduceat(losses, bounds - sizes)
    before = np.cumsum(sums) - sums
    tie = np.repeat(np.arange(sizes.size), sizes)
    m = np.arange(1, losses.size + 1)
    inside = m - (bounds - sizes)[tie]
    return (before[tie] + sums[tie] * (inside / sizes[tie])) / m


def risk_coverage(confidence: ArrayLike, loss: ArrayLike) -> RiskCoverage:
    """The risk-coverage curve of answers that each have a confidence.

    Parameters
    ----------
    confidence : (n,), in any unit, greater is surer; nan where none was recorded. Infinities are
        values like others.
    loss : (n,), finite; 1 for a wrong answer and 0 for a right one, or any real loss.

    Returns
    -------
    With ties of g cases whose losses sum to L after i cases whose losses sum to S, the risk after
    i + t cases is ``(S + L t / g) / (i + t)``.

    Raises
    ------
    ValueError
        If a loss is not finite, or the lengths differ.

    References
    ----------
    El-Yaniv & Wiener, On the foundations of noise-free selective classification, 2010.
    Geifman, Uziel & El-Yaniv, Bias-reduced uncertainty estimation, 2019.
    """
    sure = number_column("confidence", confidence, nan=True, infinite=True)
    cost = number_column("loss", loss)
    if sure.size != cost.size:
        raise ValueError(f"{sure.size} confidences and {cost.size} losses; expected as many")
    ranked = ~np.isnan(sure)
    unranked = int(sure.size - np.count_nonzero(ranked))
    sure, cost = sure[ranked] + 0.0, cost[ranked]
    n = sure.size
    if n == 0:
        nothing = np.empty(0)
        return RiskCoverage(nothing, nothing, nothing, math.nan, math.nan, 0, unranked)
    order = np.lexsort((cost, -sure))  # by loss inside a tie, so that sums have one order
    sure, cost = sure[order], cost[order]
    ends = np.append(np.flatnonzero(sure[1:] != sure[:-1]), n - 1)
    with np.errstate(all="ignore"):
        risks = _risks(cost, ends + 1)
        best = np.cumsum(np.sort(cost)) / np.arange(1, n + 1)
    if not (np.isfinite(risks).all() and np.isfinite(best).all()):
        raise ValueError("sums of losses are beyond the largest double; expected smaller losses")
    areas = exact_sum(risks) / n, exact_sum(best) / n
    return RiskCoverage((ends + 1) / n, risks[ends], sure[ends], *areas, n, unranked)


# --- prices


@dataclass(frozen=True)
class OperatingPoint:
    """A system that answers some cases and declines the others.

    Parameters
    ----------
    coverage : share of the cases answered, from 0 to 1.
    risk : share of wrong ones among the answers, from 0 to 1; without an answer it says nothing
        and may be nan.
    """

    coverage: float
    risk: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.coverage <= 1.0:
            raise ValueError(f"coverage is {self.coverage}; expected a number from 0 to 1")
        if not 0.0 <= self.risk <= 1.0 and not (self.coverage == 0.0 and math.isnan(self.risk)):
            raise ValueError(f"risk is {self.risk}; expected a number from 0 to 1")

    def shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """Shares of right answers, wrong answers and abstentions, as the fractions meant."""
        coverage = Fraction(self.coverage).limit_denominator(_MAX_DENOMINATOR)
        risk = Fraction(self.risk if coverage else 0.0).limit_denominator(_MAX_DENOMINATOR)
        return coverage * (1 - risk), coverage * risk, 1 - coverage


def expected_value(
    point: OperatingPoint, right: float, wrong: float, abstention: float = 0.0
) -> float:
    """Value of a case on average: ``coverage ((1 - risk) right - risk wrong) - (1 - coverage) a``.

    Parameters
    ----------
    point : coverage and risk of a system.
    right : value of a right answer.
    wrong, abstention : costs of a wrong answer and of an abstention; in the unit of `right`.

    Raises
    ------
    ValueError
        If a price is not finite.
    """
    prices = number_column("prices", [right, wrong, abstention])
    value, cost, silence = (Fraction(float(price)) for price in prices)
    shares = point.shares()
    return float(shares[0] * value - shares[1] * cost - shares[2] * silence)


@dataclass(frozen=True)
class BreakEven:
    """At which prices the cautious of two systems, the one that answers less, is worth more.

    With v the value of a right answer, c the cost of a wrong one and a that of an abstention, it
    wins iff ``c > v_factor v + a_factor a``, or ``c <`` that if it is wrong more often.

    Parameters
    ----------
    v_factor, a_factor : as above; nan if both are wrong equally often, so that c does not matter.
    cautious : 0 if it is the first system given, 1 if the second.
    right, wrong, abstained : shares of all cases of the cautious system less those of the other.
    text : the rule in words.
    """

    v_factor: float
    a_factor: float
    cautious: int
    right: float
    wrong: float
    abstained: float
    text: str


def _sum_of(*terms: tuple[Fraction, str]) -> str:
    """``4.319 v + 5.319 a``; a term whose factor is 0 is left out."""
    text = ""
    for factor, name in terms:
        if factor:
            sign = "-" if factor < 0 else "+"
            head = f" {sign} " if text else "-" * (factor < 0)
            text += f"{head}{float(abs(factor)):.3f} {name}"
    return text or "0"


def break_even(first: OperatingPoint, second: OperatingPoint) -> BreakEven:
    """The rule by which prices decide between two systems.

    Parameters
    ----------
    first, second : their operating points on the same cases. The one of less coverage is the
        cautious one; of equal coverage, the one of less risk.
    """
    points = (first, second)
    parts = [point.shares() for point in points]
    cautious = min((0, 1), key=lambda i: (points[i].coverage, parts[i][1]))
    mine, other = parts[cautious], parts[1 - cautious]
    right, wrong, abstained = (a - b for a, b in zip(mine, other, strict=True))
    gaps = float(right), float(wrong), float(abstained)
    if wrong == 0:
        if right == 0 and abstained == 0:
            text = "both systems are worth the same at any price"
        else:
            gain = _sum_of((right, "v"), (-abstained, "a"))
            text = f"the cautious system wins iff {gain} > 0; c does not matter"
        return BreakEven(math.nan, math.nan, cautious, *gaps, text)
    v_factor, a_factor = right / wrong, -abstained / wrong
    sign = ">" if wrong < 0 else "<"
    bound = _sum_of((v_factor, "v"), (a_factor, "a"))
    text = f"the cautious system wins iff c {sign} {bound}"
    return BreakEven(float(v_factor), float(a_factor), cautious, *gaps, text)
