"""QASPER's answer F1 and evidence F1 under its own rules, which are not the house's.

* An answer is compared by SQuAD's tokens, and no common token is 0, even if neither side has one.
* Evidence is compared as paragraphs: distinct common ones over the lengths of both lists, so that
  a repeated paragraph counts against the list that repeats it. Empty against empty is 1.0.
* A question counts the best annotator, for the answer and for the evidence apart.
* A question without a prediction is 0 for both, and counted.
* With text evidence only, items that name a figure or table are dropped from the labels. A question
  whose evidence becomes empty that way scores 1.0 for an empty prediction, so both are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ragcore.answers.matching import Share, overlap

Kind = Literal["extractive", "abstractive", "boolean", "none"]
"""Of an annotator's answer; none: the question cannot be answered."""

KINDS: tuple[Kind, ...] = ("extractive", "abstractive", "boolean", "none")
FLOAT = "FLOAT SELECTED"
"""What evidence that is a figure or table says of itself."""
UNANSWERABLE = "Unanswerable"
"""The answer that stands for none."""


class Reference(NamedTuple):
    """What one annotator says: the answer as text, its kind, and the evidence paragraphs."""

    answer: str
    kind: Kind
    evidence: tuple[str, ...]


class Prediction(NamedTuple):
    """The answer and the evidence paragraphs of a system; `UNANSWERABLE` if it abstains."""

    answer: str
    evidence: Sequence[str]


@dataclass
class Scores:
    """What the official script prints, and the counts behind it.

    Attributes
    ----------
    answer, evidence : by question, 0.0 without a prediction.
    kinds : by question with a prediction, the kind of the annotator whose answer counted; of
        several equal ones the first.
    missing : questions without a prediction, in order.
    empty_both : questions of which an annotator's evidence and the prediction's are both empty,
        each 1.0 by rule.
    empty_gold : questions of which an annotator's evidence is empty.
    emptied : questions of which an annotator's evidence became empty by leaving figures and tables
        out.
    """

    answer: dict[str, float] = field(default_factory=dict)
    evidence: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    empty_both: list[str] = field(default_factory=list)
    empty_gold: list[str] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)

    @property
    def answer_f1(self) -> float:
        """Mean over all questions, missing ones as 0; NaN for none."""
        return _mean(self.answer.values())

    @property
    def evidence_f1(self) -> float:
        """Mean over all questions, missing ones as 0; NaN for none."""
        return _mean(self.evidence.values())

    def by_kind(self) -> dict[Kind, float]:
        """Mean answer F1 of the questions with a prediction, a kind; NaN for a kind without any."""
        return {
            kind: _mean([self.answer[name] for name, each in self.kinds.items() if each == kind])
            for kind in KINDS
        }


def reference(
    *,
    spans: Sequence[str] = (),
    free_form: str = "",
    yes_no: bool | None = None,
    unanswerable: bool = False,
    evidence: Sequence[str] = (),
) -> Reference | None:
    """One annotator's label in the form that is scored; None if it says nothing.

    Spans are joined by ", "; spans come before free form, free form before yes and no. An
    unanswerable question has no evidence, whatever is recorded.
    """
    if unanswerable:
        return Reference(UNANSWERABLE, "none", ())
    if spans:
        return Reference(", ".join(spans), "extractive", tuple(evidence))
    if free_form:
        return Reference(free_form, "abstractive", tuple(evidence))
    if yes_no is not None:
        return Reference("Yes" if yes_no else "No", "boolean", tuple(evidence))
    return None


def text_only(evidence: Sequence[str]) -> tuple[str, ...]:
    """The evidence that is text: without the items that name a figure or table."""
    return tuple(item for item in evidence if FLOAT not in item)


def answer_f1(prediction: str, answer: str) -> Share:
    """Token F1 of two answers; 0/1 where nothing is common."""
    share = overlap(prediction, answer, form="squad").share()
    return share if share.numerator else Share(0, 1)


def evidence_f1(prediction: Sequence[str], evidence: Sequence[str]) -> Share:
    """F1 of two lists of paragraphs; 1/1 for two empty ones."""
    if not prediction and not evidence:
        return Share(1, 1)
    common = len(set(prediction) & set(evidence))
    return Share(2 * common, len(prediction) + len(evidence))


def score(
    references: Mapping[str, Sequence[Reference]],
    predictions: Mapping[str, Prediction],
    *,
    text_evidence_only: bool = False,
) -> Scores:
    """Every question of `references`; one that has no reference at all is left to the caller.

    Predictions for other questions are not looked at.

    Raises
    ------
    ValueError
        If a question has no reference.
    """
    out = Scores()
    for name, labels in references.items():
        if not labels:
            raise ValueError(f"question {name!r} has no reference")
        gold = [
            text_only(each.evidence) if text_evidence_only else each.evidence for each in labels
        ]
        if not all(gold):
            out.empty_gold.append(name)
        if any(each.evidence and not kept for each, kept in zip(labels, gold, strict=True)):
            out.emptied.append(name)
        found = predictions.get(name)
        if found is None:
            out.missing.append(name)
            out.answer[name] = out.evidence[name] = 0.0
            continue
        if not found.evidence and not all(gold):
            out.empty_both.append(name)
        values = [answer_f1(found.answer, each.answer).value for each in labels]
        out.answer[name] = max(values)
        out.kinds[name] = labels[values.index(max(values))].kind
        out.evidence[name] = max(evidence_f1(found.evidence, each).value for each in gold)
    return out


def ceiling(
    references: Mapping[str, Sequence[Reference]], *, text_evidence_only: bool = False
) -> float:
    """The best mean evidence F1 of predictions that name text alone.

    Without `text_evidence_only` it is below 1 where every annotator names a figure or table: the
    best prediction is then one annotator's text, t of its g items, and earns 2t / (t + g).
    """
    best = []
    for labels in references.values():
        kept = [text_only(each.evidence) for each in labels]
        gold = kept if text_evidence_only else [each.evidence for each in labels]
        pairs = zip(kept, gold, strict=True)
        # Each paragraph named once: a repeated one in the labels cannot be earned twice.
        best.append(
            max(
                evidence_f1(tuple(dict.fromkeys(text)), items).value for text, items in pairs
            )
        )  # fmt: skip
    return _mean(best)


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return math.fsum(known) / len(known) if known else math.nan
