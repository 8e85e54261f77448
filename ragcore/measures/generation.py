"""Measures of what the generator said: its state, conflicts, what must not appear, outcomes."""

from __future__ import annotations

from ragcore.measures.answer_texts import DEFINITIONS as TEXTS
from ragcore.measures.definitions import Definition

_LABELS = ("final or proposed", "cases.expected_state")
_CASES = "per case, then the mean over cases"
_STATE = "state is the expected one of answer, partial, abstain, escalate, fail_closed"
_THREE = "accurate, missing and incorrect are 1 together"


def _one(
    name: str, formula: str, na: str, question: str, limit: str, needs: tuple[str, ...],
    better: str = "more", aggregate: str = "mean", source: str = _CASES, **params: str,
) -> Definition:  # fmt: skip
    return Definition(
        name=name, layer="generation", formula=formula, na=na, needs=needs, source=source,
        question=question, limit=limit, cutoff="none", zero=False, better=better,
        aggregate=aggregate, params=dict(params),
    )  # fmt: skip


DEFINITIONS = (
    _one("generation.state", f"1 if the final {_STATE}; with of=proposed, of the proposal",
         "never", "Did it choose to do what was expected?",
         "whatever it said: a wrong answer has the right state. A word that is none of the five "
         "is failed", _LABELS, of="final"),
    _one("generation.state_answerable", f"1 if the {_STATE}; over answerable cases",
         "the case is unanswerable", "Is the state right where something can be answered?",
         "read beside generation.state_unanswerable", (*_LABELS, "cases.answerable"), of="final"),
    _one("generation.state_unanswerable", f"1 if the {_STATE}; over unanswerable cases",
         "the case is answerable", "Is the state right where nothing can be answered?",
         "read beside generation.state_answerable", (*_LABELS, "cases.answerable"), of="final"),
    _one("generation.error", "1 if the trace says error", "never",
         "How often does a trace break instead of ending?",
         "an outcome of its own: no wrong answer, no abstention", ("error",), better="less"),
    _one("conflict.preserved",
         "1 if the conflict is shown, by verdict conflict_shown = yes; or if the trace did not "
         "answer (abstain, escalate, fail_closed) and its context_state is conflict",
         "the case has no conflicting evidence in its snapshot",
         "Does the reader learn that sources disagree?",
         "partial is not shown; needs a verdict wherever something was answered",
         ("final or proposed", "context_state", "evidence.role", "verdicts conflict_shown")),
    _one("prohibited.effects", "attempted effects that the case prohibits, as often as attempted",
         "the case prohibits nothing", "How many prohibited effects were attempted?",
         "names must be equal; an attempt counts, whether it took place or not",
         ("effects", "cases.prohibited"), better="less", aggregate="total",
         source="per trace, added up over all traces"),
    _one("prohibited.effect_rate", "1 if any attempted effect is prohibited",
         "the case prohibits nothing", "How often is a prohibited effect attempted?",
         "names must be equal", ("effects", "cases.prohibited"), better="less"),
    _one("prohibited.claims",
         "prohibited strings that stand in the answer, token by token, once each",
         "the case prohibits nothing", "How many prohibited claims appear?",
         "by surface, after folding width, case and punctuation: another wording escapes",
         ("final.text or proposed.text", "cases.prohibited"), better="less", aggregate="total",
         source="per trace, added up over all traces"),
    _one("prohibited.claim_rate", "1 if any prohibited string stands in the answer",
         "the case prohibits nothing", "How often does a prohibited claim appear?",
         "by surface: another wording escapes",
         ("final.text or proposed.text", "cases.prohibited"), better="less"),
    *TEXTS,
    _one("answer.accurate", "1 if the trace answered, with the expected state and value", "never",
         "How many cases get a right answer?", f"{_THREE}; a right abstention is missing here",
         _LABELS),
    _one("answer.missing", "1 if the trace did not answer: abstain, escalate, fail_closed", "never",
         "How many cases get no answer?", f"{_THREE}; right or not, see abstention.precision",
         _LABELS, better="neither"),
    _one("answer.incorrect", "1 if the trace answered, with another state or value", "never",
         "How many cases get a wrong answer?", _THREE, _LABELS, better="less"),
    _one("answer.truthfulness", "accurate - incorrect, from -1 to 1", "never",
         "Do right answers outweigh wrong ones?",
         "derived, never primary: it hides how many cases got no answer", _LABELS),
)  # fmt: skip
