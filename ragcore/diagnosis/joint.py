"""Retrieval, assembly and generation taken together: the joint failure matrix and joint counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.diagnosis.facts import CUT, NOT_PACKED, Facts
from ragcore.diagnosis.judged import NO, UNJUDGED, YES, Judged
from ragcore.diagnosis.layers import shown_amiss
from ragcore.evidence import CONFLICTING
from ragcore.measures.outcome_values import said
from ragcore.results import RunScores
from ragcore.units import FOREVER

SUPPORTING, ABSENT, CONFLICT, FORBIDDEN, WRONG_SOURCE, OPEN = (
    "supporting found", "supporting absent", "conflicting found", "forbidden appears",
    "wrong source labelled relevant", "not known",
)  # fmt: skip
INTACT, TRUNCATED, NOTHING, PRESERVED, WITHOUT = (
    "intact", "qualifier truncated", "no evidence", "conflict preserved", "without support",
)  # fmt: skip
SUPPORTED, UNSUPPORTED, WRONG = "supported", "unsupported", "wrong"
UNCLASSIFIED, AUTHORIZATION = "unclassified", "authorization_failure"
MATRIX = {
    (SUPPORTING, INTACT, SUPPORTED): "candidate_pass",
    (SUPPORTING, INTACT, UNSUPPORTED): "generation_use_failure",
    (SUPPORTING, TRUNCATED, WRONG): "assembly_failure",
    (ABSENT, NOTHING, "abstain"): "retrieval_gap_correct_abstention",
    (CONFLICT, PRESERVED, "escalate"): "bounded_pass_adjudicate",
    (WRONG_SOURCE, INTACT, SUPPORTED): "label_or_authority_failure",
}
"""Interpretation of three states; a forbidden unit decides whatever the others are."""
CODES = (
    "candidate_pass", "generation_use_failure", "assembly_failure",
    "retrieval_gap_correct_abstention", "bounded_pass_adjudicate", AUTHORIZATION,
    "label_or_authority_failure", UNCLASSIFIED,
)  # fmt: skip


@dataclass
class Joint:
    """The three states of every trace, and what they mean together; lists of n words each."""

    retrieval: list[str]
    assembly: list[str]
    generation: list[str]

    @property
    def codes(self) -> list[str]:
        """One of `CODES` a trace."""
        return [
            AUTHORIZATION if retrieval == FORBIDDEN
            else MATRIX.get((retrieval, assembly, generation), UNCLASSIFIED)
            for retrieval, assembly, generation in zip(
                self.retrieval, self.assembly, self.generation, strict=True
            )
        ]  # fmt: skip


def joint(facts: Facts, judged: Judged) -> Joint:
    """The states of every trace.

    * Retrieval: *supporting found* if all required items are candidates, *conflicting found* if
      that includes one labelled conflicting, *wrong source labelled relevant* if a required unit
      is not in force on the case's day.
    * Assembly: *no evidence* if nothing is packed, *without support* if a required item's unit is
      not, *qualifier truncated* if one is cut, *conflict preserved* if both sides stand whole.
    * Generation: the state where it is no answer; else *supported* if all claims are entailed by
      the context (without verdicts: if state and value are the expected ones), *wrong* if a
      required item was lost, *unsupported* otherwise.
    """
    need = facts.any(facts.required)
    found = need & ~facts.any(facts.required & ~facts.candidate)
    conflict = facts.any(facts.required & (_roles(facts) == CONFLICTING))
    retrieval = _words(
        facts.n,
        (ABSENT, ~found),
        (SUPPORTING, found),
        (CONFLICT, found & conflict),
        (WRONG_SOURCE, found & facts.any(facts.required & _out_of_force(facts))),
        (OPEN, ~facts.searched & need),
        (FORBIDDEN, _forbidden(facts)),
    )
    missing = facts.any(facts.required & (facts.packed == NOT_PACKED))
    cut = facts.any(facts.required & (facts.packed == CUT))
    assembly = _words(
        facts.n,
        (INTACT, need),
        (PRESERVED, need & conflict),
        (TRUNCATED, cut),
        (WITHOUT, ~need | missing),
        (NOTHING, facts.context.counts == 0),
        (OPEN, ~facts.packing),
    )
    return Joint(retrieval, assembly, _generation(facts, judged, assembly))


def _words(n: int, *rules: tuple[str, Any]) -> list[str]:
    """The last rule that holds gives the word."""
    out = np.full(n, OPEN, object)
    for word, flags in rules:
        out[flags] = word
    return out.tolist()


def _roles(facts: Facts) -> Any:
    return facts.evidence.role[facts.at] if facts.evidence is not None else facts.at


def _forbidden(facts: Facts) -> Any:
    amiss = shown_amiss(facts)
    return amiss["candidate"] | amiss["context"]


def _out_of_force(facts: Facts) -> Any:
    """(n_items,) bool: no unit of the item is in force on the day that its case asks for."""
    chunks, inputs = facts.inputs.shared.chunks, facts.inputs
    day = inputs.case_days("as_of")
    none = np.zeros(facts.at.size, np.bool_)
    if (
        facts.evidence is None
        or chunks is None
        or not (chunks.has("valid_from") or chunks.has("valid_until"))
    ):
        return none
    first, last = chunks.days("valid_from", -FOREVER), chunks.days("valid_until", FOREVER)
    sizes = np.diff(facts.evidence.covers)[facts.at]
    item = np.repeat(np.arange(facts.at.size), sizes)
    begin = np.repeat(facts.evidence.covers[facts.at] - np.cumsum(sizes) + sizes, sizes)
    units = facts.evidence.units[begin + np.arange(item.size)]
    known = (units >= 0) & (units < len(chunks))
    at = day[facts.owner[item]]
    rows = np.where(known, units, 0)
    good = ~known | (at < 0) | ((first[rows] <= at) & (at < last[rows]))
    return (sizes > 0) & (np.bincount(item[good], minlength=facts.at.size) == 0)


def _generation(facts: Facts, judged: Judged, assembly: list[str]) -> list[str]:
    right, _ = facts.value_right
    claims, backed = judged.claims.counts, judged.backed
    out = []
    for i, state in enumerate(facts.words(facts.source)):
        # An escalation that makes claims is judged by them; one over a conflict is one.
        speaks = state == "escalate" and claims[i] > 0 and assembly[i] != PRESERVED
        if state is None:
            out.append(OPEN)
        elif state in ("answer", "partial") or speaks:
            out.append(_spoken(int(backed[i]), bool(right[i]), assembly[i]))
        else:
            out.append(state)
    return out


def _spoken(backed: int, right: bool, assembly: str) -> str:
    """What a proposal with claims is worth."""
    if backed == YES or (backed == UNJUDGED and right):
        return SUPPORTED
    if backed not in (NO, UNJUDGED):
        return OPEN
    return WRONG if assembly == TRUNCATED else UNSUPPORTED


@dataclass(frozen=True)
class Count:
    """Traces that do two things at once, among those where both are known.

    Attributes
    ----------
    name : what is counted, in words.
    count, of : how many traces, of how many.
    cases, n_cases : ids of the cases that any of them is of; of how many cases.
    """

    name: str
    count: int
    of: int
    cases: tuple[str, ...]
    n_cases: int


def joint_counts(run: RunScores, facts: Facts, own: Any) -> list[Count]:
    """Joint counts of one run: retrieval against generation, and state accuracy.

    Parameters
    ----------
    run, facts : of one run.
    own : (n,) bool, the traces to count.
    """
    places = {one.text: m for m, one in enumerate(run.measures)}

    def of(name: str) -> tuple[Any, Any]:
        return run.values[places[name]], run.states[places[name]] == schema.OK

    (cover, covered), (task, tasked), (_, ended) = (
        of(name) for name in ("retrieval.coverage", "generation.task", "end_to_end")
    )
    final, wanted = said(facts.inputs, "final"), facts.inputs.case("expected_state")
    silent, due, same = _silence(final, wanted, facts.n)
    answerable = facts.inputs.answerable
    rows = [
        ("retrieval success, generation failure", covered & tasked, (cover == 1) & (task < 1)),
        ("retrieval failure, abstained", covered & ended, (cover < 1) & silent),
        ("retrieval failure, abstained as expected", covered & ended, (cover < 1) & silent & due),
        ("state right, answerable", ended & (answerable == 1), same),
        ("state right, not answerable", ended & (answerable == 0), same),
        ("state right, answerability open", ended & (answerable < 0), same),
    ]
    return [_counted(run, name, known & own, hit) for name, known, hit in rows]


def _silence(final: pa.Array | None, wanted: pa.Array | None, n: int) -> tuple[Any, Any, Any]:
    """Whether a trace abstains, should abstain, and ends in the state that it should end in."""
    left = [None] * n if final is None else final.to_pylist()
    right = [None] * n if wanted is None else wanted.to_pylist()
    return (
        np.array([word == "abstain" for word in left], np.bool_),
        np.array([word == "abstain" for word in right], np.bool_),
        np.array([a is not None and a == b for a, b in zip(left, right, strict=True)], np.bool_),
    )


def _counted(run: RunScores, name: str, known: Any, hit: Any) -> Count:
    at = np.flatnonzero(known & hit)
    cases = dict.fromkeys(run.case_names[c] for c in run.case_of[at].tolist())
    n_cases = np.unique(run.case_of[known]).size
    return Count(name, int(at.size), int(known.sum()), tuple(cases), int(n_cases))
