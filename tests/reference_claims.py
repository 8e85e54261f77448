"""The claim measures in plain Python over nested lists of booleans, as exact fractions.

Checked against RAGChecker's published examples in `golden/test_ragchecker.py` by way of the
engine, and against worked values in `kernels/test_claims.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Row = Sequence[bool]


def ratio(over: int, under: int) -> Fraction | None:
    return Fraction(over, under) if under else None


def harmonic(p: Fraction | None, r: Fraction | None) -> Fraction | None:
    if p is None or r is None:
        return None
    return 2 * p * r / (p + r) if p + r else Fraction(0)


def ragchecker(
    correct: Row, covered: Row, by_answer: Sequence[Row], by_reference: Sequence[Row], width: int
) -> dict[str, Fraction | None]:
    """Every measure of RAGChecker of one case; None for na."""
    a, y = len(correct), len(covered)
    useful = [any(row[c] for row in by_reference) for c in range(width)]
    recalled = [any(row) for row in by_reference]
    faithful = [any(row) for row in by_answer]
    relevant = [any(yes and of_use for yes, of_use in zip(row, useful, strict=True))
                for row in by_answer]  # fmt: skip
    irrelevant = [
        any(yes and not of_use for yes, of_use in zip(row, useful, strict=True)) and not rel
        for row, rel in zip(by_answer, relevant, strict=True)
    ]
    pairs = range(a)
    precision, recall = ratio(sum(correct), a), ratio(sum(covered), y)
    ranks = [k + 1 for k in range(width) if useful[k]]
    above = [Fraction(i + 1, rank) for i, rank in enumerate(ranks)]
    average = sum(above) / len(ranks) if ranks else Fraction(0)
    return {
        "claims.precision": precision, "claims.recall": recall,
        "claims.f1": harmonic(precision, recall),
        "claims.context_recall": ratio(sum(recalled), y),
        "context.precision": ratio(sum(useful), width) if y else None,
        "context.precision_ap": average if y and width else None,
        "context.utilization": ratio(
            sum(r and c for r, c in zip(recalled, covered, strict=True)), sum(recalled)),
        "noise.relevant": ratio(sum(relevant[j] and not correct[j] for j in pairs), a),
        "noise.irrelevant": ratio(sum(irrelevant[j] and not correct[j] for j in pairs), a),
        "hallucination": ratio(sum(not faithful[j] and not correct[j] for j in pairs), a),
        "self_knowledge": ratio(sum(not faithful[j] and correct[j] for j in pairs), a),
        "faithfulness": ratio(sum(faithful), a),
    }  # fmt: skip
