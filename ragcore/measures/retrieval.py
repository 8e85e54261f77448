"""Measures of the retrieval layer, over the evidence that a case requires."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

DEFINITIONS = (
    Definition(
        name="retrieval.coverage",
        layer="retrieval",
        formula="required evidence retrieved / required evidence",
        na="nothing is required",
        needs=("ranked", "evidence.required"),
        source="per case, then the mean over cases with something required",
        question="Was everything found that the answer needs?",
        limit="found is not shown: what reached the reader is context.coverage",
        cutoff="none",
        params={"judged_only": False},
        zero=False,
    ),
)
