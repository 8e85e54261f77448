"""Measures of claims: correctness, use of the context, noise, hallucination, grounding."""

from __future__ import annotations

from typing import Any

from ragcore.measures import grounded, nuggets
from ragcore.measures.definitions import Definition, directed

ANSWER, REFERENCE, SHOWN = "run.claims", "cases.claims", "run.context"
_PARITY = {"zero_division": "na"}
_RAGCHECKER = "RAGChecker; only the verdict `yes` is true. Per case, then the mean over cases"
_NO_CLAIM = "the answer has no claims"
_NO_REFERENCE = "the case has no reference claims"
_ZERO = "zero_division=ragchecker gives 0 where it is na, as RAGChecker does"


def _claim(name: str, formula: str, na: str, needs: tuple[str, ...], question: str,
           limit: str = "", **others: Any) -> Definition:  # fmt: skip
    given: dict[str, Any] = {
        "source": _RAGCHECKER, "cutoff": "none", "zero": False, "pooled": True, "params": _PARITY,
        "layer": "claims",
    } | others  # fmt: skip
    limit = f"{limit}; {_ZERO}" if limit else _ZERO
    return Definition(
        name=name, formula=formula, na=na, needs=needs, question=question, limit=limit, **given
    )


_N, _M, _A, _Y = "chunk_entails", "chunk_entails_reference", "correct", "covered"

OVERALL = (
    _claim(
        "claims.precision", "answer claims that the reference entails / answer claims",
        _NO_CLAIM, (ANSWER, f"verdicts {_A}"), "How much of what the answer says is right?",
        "says nothing of where it comes from", aliases=("correct.precision", "P_correct"),
    ),
    _claim(
        "claims.recall", "reference claims that the answer entails / reference claims",
        _NO_REFERENCE, (REFERENCE, f"verdicts {_Y}"), "How much of the reference does it say?",
        "an answer without claims covers none",
    ),
    _claim(
        "claims.f1", "2 P R / (P + R) of claims.precision and claims.recall; 0 if both are 0",
        "either is na", (ANSWER, REFERENCE, f"verdicts {_A}, {_Y}"),
        "Is it right and complete at once?", "hides which of the two is low", pooled=False,
    ),
    _claim(
        "claims.context_recall",
        "reference claims that some chunk of the context entails / reference claims",
        _NO_REFERENCE, (REFERENCE, SHOWN, f"verdicts {_M}"),
        "Does the context hold what the answer should say?",
        "0 for an empty or refused context", aliases=("context.recall", "claim_recall"),
    ),
    Definition(
        name="claims.contradicted", layer="claims",
        formula="answer claims with the verdict `contradicts` / answer claims",
        na=_NO_CLAIM, needs=(ANSWER, f"verdicts {_A}"),
        source="by=reference: relation correct; by=context: relation entailed",
        question="How much of the answer is denied, rather than merely not confirmed?",
        limit="such claims count as not entailed everywhere else", cutoff="none", zero=False,
        pooled=True, params={"by": "reference"},
    ),
)  # fmt: skip

USE = (
    _claim(
        "context.utilization",
        "reference claims that a chunk and the answer entail / those that a chunk entails",
        "the context entails no reference claim", (REFERENCE, SHOWN, f"verdicts {_M}, {_Y}"),
        "Is what the context offers used?", "other tools call another formula by this name",
    ),
    _claim(
        "noise.relevant",
        "wrong answer claims that a useful chunk entails / answer claims; a chunk is useful if it "
        "entails a reference claim",
        _NO_CLAIM, (ANSWER, REFERENCE, SHOWN, f"verdicts {_N}, {_M}, {_A}"),
        "How much error comes from chunks that are of use?",
        "rises with claims.context_recall: read them together",
        aliases=("noise_sensitivity_in_relevant",),
    ),
    _claim(
        "noise.irrelevant",
        "wrong answer claims that other chunks entail, and no useful one / answer claims",
        _NO_CLAIM, (ANSWER, REFERENCE, SHOWN, f"verdicts {_N}, {_M}, {_A}"),
        "How much error comes from chunks that are of no use?",
        "without reference claims no chunk is of use",
        aliases=("noise_sensitivity_in_irrelevant",),
    ),
    _claim(
        "hallucination", "wrong answer claims that no chunk entails / answer claims",
        _NO_CLAIM, (ANSWER, SHOWN, f"verdicts {_N}, {_A}"),
        "How much error does the generator add by itself?",
        "with noise.relevant and noise.irrelevant it makes up 1 - claims.precision",
    ),
    _claim(
        "self_knowledge", "right answer claims that no chunk entails / answer claims",
        _NO_CLAIM, (ANSWER, SHOWN, f"verdicts {_N}, {_A}"),
        "How much is right without support of the context?",
        "under a context-only policy this is a fault",
    ),
    _claim(
        "faithfulness", "answer claims that some chunk entails / answer claims",
        _NO_CLAIM, (ANSWER, SHOWN, f"verdicts {_N}"),
        "How much of the answer does the context say?",
        "each chunk by itself; grounded.faithfulness asks the context as a whole",
    ),
    _claim(
        "completeness",
        "required reference claims that a chunk and the answer entail / required ones that a chunk "
        "entails",
        "the context entails no required claim", (REFERENCE, SHOWN, f"verdicts {_M}, {_Y}"),
        "Does the answer say all that is required and supported?",
        "claims are required unless marked otherwise",
        source="per case, then the mean over cases",
    ),
)  # fmt: skip

DEFINITIONS = directed(
    (*OVERALL, *USE, *grounded.DEFINITIONS, *nuggets.DEFINITIONS),
    less=("hallucination", "noise.relevant", "noise.irrelevant", "claims.contradicted",
          "claims.unsupported", "claims.unsupported_high_stakes"),
    neither=("self_knowledge",),
)  # fmt: skip
