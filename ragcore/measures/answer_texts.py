"""Measures of the answer's text: how it looks beside references, and its numbers beside sources."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_NEEDS = ("final.text or proposed.text", "cases.references")
_NA = "the case has no reference"
_SURFACE = "surface, no grounding: a paraphrase fails and a wrong sentence may pass"
_SILENT = "an abstention without a text is an empty answer"


def _one(name: str, formula: str, question: str, limit: str) -> Definition:
    return Definition(
        name=f"answer.{name}", layer="generation", formula=formula, na=_NA, needs=_NEEDS,
        source=f"per case, then the mean over cases; {_SILENT}", question=question, limit=limit,
        cutoff="none", zero=False,
    )  # fmt: skip


DEFINITIONS = (
    _one("exact_match", "1 if the answer is a reference, code point by code point",
         "Is the answer a reference to the letter?",
         "for codes, dates and short entities alone; no grounding"),
    _one("exact_match_normalised",
         "1 if answer and a reference are equal after folding width, case, punctuation, white "
         "space, and articles in English",
         "Is the answer a reference but for its form?",
         "for codes, dates and short entities alone; no grounding"),
    _one("f1", "2 x common tokens / (tokens of the answer + of the reference); words, and single "
         "characters of scripts without spaces; the best over references",
         "How many words do answer and reference share?", _SURFACE),
    _one("contains", "1 if the tokens of a reference stand in the answer one after the other",
         "Does the answer hold a reference?", _SURFACE),
    Definition(
        name="answer.number_consistency", layer="generation",
        formula="distinct numbers, dates and times of the answer that occur in a packed span / "
        "all; with of=cited, in a cited span",
        na="the answer has no number, date or time, or did not answer",
        needs=("final.text or proposed.text", "context or citations", "chunks.text"),
        source="per case, then the mean over cases with such an answer",
        question="Do the numbers of the answer come from its sources?",
        limit="that a number stands there does not say that it is the right one; what was "
        "calculated, or repeated from the question, has no source",
        cutoff="none", params={"of": "packed"}, zero=False, pooled=True,
    ),
)  # fmt: skip
