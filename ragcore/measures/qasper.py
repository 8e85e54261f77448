"""QASPER's own two scores, under its own rules and name."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_SOURCE = "the collection's evaluator; Dasigi et al. 2021"

DEFINITIONS = (
    Definition(
        name="qasper.answer_f1",
        layer="qasper",
        formula="token F1 of the proposed text and an annotator's answer (SQuAD's tokens), the "
        "best annotator counting",
        na="never: a question without a prediction is 0",
        needs=("proposed.text", "cases.annotations"),
        source=_SOURCE,
        question="What would the collection's evaluator print for the answers?",
        limit="surface overlap with short references; no grounding argument",
        cutoff="none",
        zero=False,
    ),
    Definition(
        name="qasper.evidence_f1",
        layer="qasper",
        formula="F1 of the paragraphs cited (of=context: of those in the context) and an "
        "annotator's, the best annotator counting; two empty lists are 1",
        na="never: a question without a prediction is 0",
        needs=("citations, or context", "cases.annotations"),
        source=_SOURCE,
        question="What would the collection's evaluator print for the evidence?",
        limit="empty against empty is 1, which no other measure here does: the report counts such "
        "questions; of=context is for systems that retrieve and do not answer, and a context of k "
        "paragraphs against one of evidence is 2/(k+1) at most; ids must be those of the "
        "collection's paragraphs",
        cutoff="none",
        params={"text_only": False, "of": "citations"},
        zero=False,
    ),
)
