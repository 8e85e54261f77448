"""Measures of grounded correctness: supported by the context, correct and supported at once.

Correctness alone is `claims.precision`.
"""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_ANSWER, _REFERENCE = "run.claims", "cases.claims"
_MEAN = "per case, then the mean over cases"
_NO_CLAIM = "the answer has no claims"

DEFINITIONS = (
    Definition(
        name="grounded.faithfulness", layer="claims", aliases=("F_context",),
        formula="answer claims that the context supports / answer claims",
        na=_NO_CLAIM, needs=(_ANSWER, "verdicts entailed"), source=_MEAN,
        question="How much of what the answer says does the context as a whole support?",
        limit="a poisoned context supports what is wrong: read it beside claims.precision",
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="grounded.precision", layer="claims", aliases=("P_grounded",),
        formula="answer claims that are correct and supported / answer claims",
        na=_NO_CLAIM, needs=(_ANSWER, "verdicts correct, entailed"), source=_MEAN,
        question="How much is right, and right because of the context?",
        limit="never without its parts, claims.precision and grounded.faithfulness",
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="grounded.recall", layer="claims", aliases=("R_required",),
        formula="required reference claims that the answer covers correctly / required ones",
        na="nothing is required; or the answer has no claims and none was expected",
        needs=(_REFERENCE, "verdicts covered"),
        source=f"0 for an answer without claims where one was required; {_MEAN}",
        question="Does the answer say what it must?",
        limit="reference claims are required unless marked otherwise", cutoff="none", zero=False,
        pooled=True,
    ),
    Definition(
        name="grounded.f1", layer="claims", aliases=("F1_grounded",),
        formula="2 P R / (P + R) of grounded.precision and grounded.recall; 0 if both are 0",
        na="either is na", needs=(_ANSWER, _REFERENCE, "verdicts correct, entailed, covered"),
        source=_MEAN, question="Is the answer right, supported and complete at once?",
        limit="hides which part is low", cutoff="none", zero=False,
    ),
    Definition(
        name="claims.unsupported", layer="claims",
        formula="answer claims that the context does not support / answer claims",
        na=_NO_CLAIM, needs=(_ANSWER, "verdicts entailed"), source=_MEAN,
        question="How much does the answer say that nothing shown to it supports?",
        limit="1 - grounded.faithfulness; claims.contradicted(by=context) tells denied ones apart",
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="claims.unsupported_high_stakes", layer="claims",
        formula="high-stakes reference claims that the answer states and no chunk entails, counted",
        na="never", needs=(_REFERENCE, "run.context", "verdicts covered, chunk_entails_reference"),
        source="of=answer counts answer claims with the field `high_stakes` that the context does "
        "not support (verdicts entailed) instead",
        question="How many statements of consequence stand on nothing?",
        limit="an answer claim outside the reference has no stakes unless the run says so",
        cutoff="none", zero=False, aggregate="sum", params={"of": "reference"},
    ),
)  # fmt: skip
