"""Values of QASPER's scores.

A suite of this kind has a column ``annotations`` in its cases: for each annotator the answer as it
is scored and the evidence paragraphs, by id; what is a figure or table keeps its own words. A
paragraph that several claims cite is predicted once. What a system predicts is what its answer
cites or, of one that only retrieves, the paragraphs of its context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.answers import qasper
from ragcore.errors import UsageError
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_LABEL, Column, Inputs, missing

PREDICTED = ("citations", "context")
"""Lists of a trace that may be the predicted evidence."""


def _annotations(inputs: Inputs) -> list[list[dict[str, Any]] | None]:
    found = inputs.case("annotations")
    return [None] * inputs.n if found is None else found.to_pylist()


def _column(inputs: Inputs, values: list[float | None]) -> Column:
    """Values where there are annotations; a trace that says nothing is 0 by rule."""
    known = np.array([value is not None for value in values], np.bool_)
    states = np.where(known, np.int8(schema.OK), np.int8(schema.MISSING))
    states = np.where(inputs.status == schema.DISPUTED, inputs.status, states)
    over = np.array([0.0 if value is None else value for value in values])
    return Column(over, np.ones(inputs.n), states, {schema.MISSING: NO_LABEL})


def answer_f1(inputs: Inputs, measure: Measure) -> Column:
    """Token F1 against the best annotator."""
    texts = inputs.part("proposed", "text")
    if texts is None or not inputs.has_case("annotations"):
        return missing(inputs, NO_COLUMN)
    out: list[float | None] = []
    for text, labels in zip(texts.to_pylist(), _annotations(inputs), strict=True):
        if not labels:
            out.append(None)
            continue
        if text is None:
            _count(inputs, "qasper: questions without a predicted answer")
            out.append(0.0)
            continue
        out.append(max(qasper.answer_f1(text, each["answer"] or "").value for each in labels))
    return _column(inputs, out)


def evidence_f1(inputs: Inputs, measure: Measure) -> Column:
    """Paragraph F1 against the best annotator; the prediction is what is cited, or the context."""
    of = measure.params["of"]
    if of not in PREDICTED:
        raise UsageError(f"measure {measure.text!r}: of={of!r}", f"one of {', '.join(PREDICTED)}")
    if not inputs.has_trace(of) or not inputs.has_case("annotations"):
        return missing(inputs, NO_COLUMN)
    cited, text_only = inputs.trace_lists(of), bool(measure.params["text_only"])
    ids = cited.strings("id")
    out: list[float | None] = []
    for i, labels in enumerate(_annotations(inputs)):
        if not labels:
            out.append(None)
            continue
        if not cited.present[i]:
            _count(inputs, "qasper: questions without predicted evidence")
            out.append(0.0)
            continue
        own = ids[cited.offsets[i] : cited.offsets[i + 1]]
        found = list(dict.fromkeys(name for name in own if name is not None))
        gold = [tuple(each["evidence"] or ()) for each in labels]
        if text_only:
            kept = [qasper.text_only(each) for each in gold]
            if any(each and not left for each, left in zip(gold, kept, strict=True)):
                _count(inputs, "qasper: questions whose evidence became empty without figures")
            gold = kept
        if not found and not all(gold):
            _count(inputs, "qasper: questions with no evidence on either side, each 1")
        out.append(max(qasper.evidence_f1(found, each).value for each in gold))
    return _column(inputs, out)


def _count(inputs: Inputs, name: str) -> None:
    inputs.counts[name] = inputs.counts.get(name, 0) + 1


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "qasper.answer_f1": answer_f1, "qasper.evidence_f1": evidence_f1,
}  # fmt: skip
"""How each measure of this namespace is worked out."""
