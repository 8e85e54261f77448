"""Measures of the outcome: state and value of an answer against what the case expects."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_NEEDS = ("final or proposed", "cases.expected_state")
_VALUE = "state is the expected one, and so is value where the suite has expected values"

DEFINITIONS = (
    Definition(
        name="end_to_end", layer="outcome",
        formula=f"1 if {_VALUE}; after the support gate, and what is answered is supported by "
        "what it cites, where the run records citations and the suite can check them",
        na="never", needs=_NEEDS,
        source="per case, then the mean over all cases, expected abstentions included",
        question="Was the case handled rightly, from question to final answer?",
        limit="does not say which layer failed; support without a verdict is word for word, and "
        "missing where that does not show it, unless the suite says that answers are extracts",
        cutoff="none", zero=False,
    ),
    Definition(
        name="generation.task", layer="outcome",
        formula=f"1 if {_VALUE}; of the proposal, before the support gate",
        na="never", needs=("proposed", "cases.expected_state"),
        source="per case, then the mean over all cases",
        question="Did the generator propose what was expected?",
        limit="a wrong context may leave it no chance: read it beside context.coverage",
        cutoff="none", zero=False,
    ),
    Definition(
        name="abstention.correct", layer="outcome",
        formula="1 if the final state is abstain",
        na="the case is not one to abstain from", needs=_NEEDS,
        source="over the cases whose expected state is abstain",
        question="Does the system abstain where it must?",
        limit="always abstaining is perfect here: read it beside end_to_end",
        cutoff="none", zero=False,
    ),
)  # fmt: skip
