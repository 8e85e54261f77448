"""Measures of the context: what of the evidence reached the generator."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

DEFINITIONS = (
    Definition(
        name="context.coverage",
        layer="context",
        formula="required evidence in the context / required evidence",
        na="nothing is required",
        needs=("context", "evidence.required"),
        source="per case, then the mean over cases with something required",
        question="Did what the answer needs reach the generator?",
        limit="a chunk counts even if its qualifying span was cut off: see context.span_intact",
        cutoff="none",
        zero=False,
        pooled=True,
    ),
)
