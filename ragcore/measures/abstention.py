"""Measures of abstention: answering where nothing can be, silence where something could."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_NEEDS = ("final or proposed", "cases.answerable")
_ANSWERED = "answered: final state answer or partial"
_ABSTAINED = "abstained: final state abstain, escalate or fail_closed"
_PAIR = "per case, then the mean over cases; micro(...) adds up traces"


def _share(
    name: str, formula: str, na: str, question: str, limit: str,
    needs: tuple[str, ...] = _NEEDS, better: str = "more",
) -> Definition:  # fmt: skip
    return Definition(
        name=name, layer="abstention", formula=formula, na=na, needs=needs, source=_PAIR,
        question=question, limit=limit, cutoff="none", zero=False, pooled=True, better=better,
    )  # fmt: skip


_LABELS = ("final or proposed", "cases.expected_state")
_CONFIDENCE = ("proposed.confidence", *_LABELS)
_CURVE = (
    "cases by falling confidence, loss = 1 - end_to_end; inside a tie the expected risk under "
    "random order"
)

DEFINITIONS = (
    _share(
        "abstention.false_answer", f"answered / unanswerable cases; {_ANSWERED}",
        "the case is answerable", "Does the system answer where nothing can be answered?",
        "always read beside abstention.unnecessary: refusing more improves one and worsens the "
        "other", better="less",
    ),
    _share(
        "abstention.unnecessary", f"abstained / answerable cases; {_ABSTAINED}",
        "the case is unanswerable", "Does the system stay silent where it could answer?",
        "always read beside abstention.false_answer", better="less",
    ),
    _share(
        "abstention.precision", f"unanswerable / cases abstained from; {_ABSTAINED}",
        "the trace did not abstain", "Is silence right where the system is silent?",
        "its cases are those that the system chose: compare runs on abstention.recall too",
    ),
    _share(
        "abstention.recall", f"abstained / unanswerable cases; {_ABSTAINED}",
        "the case is answerable", "Is the system silent where it must be?",
        "always abstaining is perfect here: read it beside abstention.unnecessary",
    ),
    _share(
        "answer.coverage", f"answered / cases; {_ANSWERED}", "never",
        "How many cases does the system answer?",
        "no quality by itself: read it beside selective.risk; an escalation is no answer",
        needs=("final or proposed",), better="neither",
    ),
    _share(
        "selective.risk", f"1 - end_to_end, over the cases answered; {_ANSWERED}",
        "the trace did not answer", "How often is an answer wrong?",
        "its cases are those that the system chose to answer: read it beside answer.coverage",
        needs=_LABELS, better="less",
    ),
    _share(
        "nomiracl.hallucination",
        "answered / unanswerable cases, whatever the output: FP / (FP + TN + invalid)",
        "the case is answerable", "Does the system answer where nothing retrieved is relevant?",
        "as published: an output that is no state stays in the denominator and counts 0, see "
        "nomiracl.invalid", better="less",
    ),
    _share(
        "nomiracl.error",
        "abstained / answerable cases, whatever the output: FN / (FN + TP + invalid)",
        "the case is unanswerable", "Does the system decline where something relevant is there?",
        "as published: an output that is no state stays in the denominator and counts 0, see "
        "nomiracl.invalid", better="less",
    ),
    _share(
        "nomiracl.invalid",
        "outputs that are none of the five states, or end in an error / cases",
        "never", "How many outputs are neither an answer nor an abstention?",
        "of both halves; the other two count such an output 0", better="less",
    ),
    *(
        Definition(
            name=f"abstention.{name}", layer="abstention", formula=formula,
            na="an abstention without a confidence: it is one point, no part of a curve",
            needs=_CONFIDENCE, source=f"{_CURVE}; variants of a case are averaged first",
            question=question,
            limit="of the cases with a confidence only; a trace that answers without one is "
            "missing. It has no interval, and does not say where to operate",
            cutoff="none", zero=False, aggregate=name, better="less",
        )
        for name, formula, question in (
            ("aurc", "mean over m = 1..n of the loss per case among the m surest",
             "Does confidence tell the right answers from the wrong ones, at every coverage?"),
            ("eaurc", "aurc less the same area if confidence ordered the losses perfectly",
             "How much risk does the order of confidence cost, whatever the accuracy?"),
        )
    ),
)  # fmt: skip
