"""Measures of citations: the chain that each passes, support, and what is wrong by name."""

from __future__ import annotations

from ragcore.measures.citation_support import DEFINITIONS as SUPPORT
from ragcore.measures.definitions import Definition, directed

_PAIR = "per case, then the mean over cases with something to check"
_BEFORE = "citations that failed no stage before and could be checked"
_CHAIN = (
    "supplied", "version", "quote", "accessible", "in_scope", "span_inside",
)  # fmt: skip


def _stage(
    name: str, passed: str, question: str, needs: tuple[str, ...], limit: str = ""
) -> Definition:
    return Definition(
        name=f"citation.{name}", layer="citation", formula=f"{passed} / {_BEFORE}",
        na="no citation got this far", needs=("citations", *needs), source=_PAIR,
        question=question, limit=limit or "citations that could not be checked are counted apart",
        cutoff="none", zero=False, pooled=True,
    )  # fmt: skip


def _total(
    name: str, formula: str, question: str, needs: tuple[str, ...], limit: str = ""
) -> Definition:
    return Definition(
        name=f"citation.{name}", layer="citation", formula=formula, na="never", needs=needs,
        source="per case, then the total over cases; a case's languages and repeats are averaged",
        question=question, limit=limit, cutoff="none", zero=False, aggregate="sum",
    )  # fmt: skip


STAGES = (
    _total("emitted", "citations as the answer gives them", "How much is cited at all?",
           ("citations",), "one citation of one claim counts once; repeats count again"),
    _stage("well_formed", "claim in range or none, an id, start not after end",
           "Are citations whole?", ("claims",)),
    _stage("supplied", "of a unit that was in the context", "Was what is cited ever shown?",
           ("context",), "a unit counts as shown whatever part of it was"),
    _stage("version", "in the snapshot of the case, in the version that is cited",
           "Does this revision exist?", ("chunks.doc_version", "cases.snapshot"),
           "a citation that names no version is not checked here"),
    _stage("quote", "with a place in the text, and the quote word for word there",
           "Does the source say this?", ("chunks.text",),
           "a quote without a place need only stand somewhere in the unit"),
    _stage("accessible", "of a public unit, or one that the asker may see",
           "May the reader open what is cited?", ("chunks.acl", "cases.principals")),
    _stage("in_scope", "of the topic, and valid on the date, that the case declares",
           "Does the source apply here and now?",
           ("cases.topic", "cases.as_of", "chunks.topic", "chunks.valid_from")),
    _stage("span_inside", "around a labelled supporting span of the unit",
           "Does the citation point at the passage that matters?", ("cases.evidence",),
           "what nobody labelled may support as well"),
    _stage("entails", "that entail their claim", "Does the cited text say the claim?",
           ("verdicts cites",), "rests on verdicts; partial support is not entailment"),
)  # fmt: skip

FAULTS = (
    _total("fabricated", "well-formed citations of units that were not in the context",
           "Does the system cite what it was never given?", ("citations", "context"),
           "dangling ones are among them"),
    _total("dangling", "citations whose id is neither in the suite nor in the context",
           "Do citations lead nowhere?", ("citations", "chunks")),
    _total("laundering", "correct claims with citations that do not entail them",
           "Are true sentences adorned with sources that do not say so?",
           ("claims", "citations", "verdicts correct, cites"),
           "partial support is not counted; a claim without citations is not either"),
)  # fmt: skip

DEFINITIONS: tuple[Definition, ...] = directed(
    (*STAGES, *FAULTS, *SUPPORT),
    less=("citation.fabricated", "citation.dangling", "citation.laundering"),
    neither=("citation.emitted", "citation.documents"),
)
