"""Measures of support: by rule, by verdicts, and as ALCE and TREC define it."""

from __future__ import annotations

from typing import Any

from ragcore.measures.definitions import Definition

_CITES = "verdicts cites"
_FACTUAL = "no factual claim"
_CASE = "per case, then the mean over cases with a value"


def _one(
    name: str, formula: str, na: str, needs: tuple[str, ...], question: str, *, limit: str = "",
    source: str = _CASE, aliases: tuple[str, ...] = (), pooled: bool = True,
    params: dict[str, Any] | None = None,
) -> Definition:  # fmt: skip
    return Definition(
        name=name, layer="citation", formula=formula, na=na, needs=("citations", *needs),
        source=source, question=question, limit=limit, aliases=aliases, cutoff="none", zero=False,
        pooled=pooled, params=params or {},
    )  # fmt: skip


_HOUSE = (
    _one("citation.support",
         "citations that exist, quote exactly, are in scope, hold a supporting span and the "
         "proposed value / citations",
         "no citation", ("proposed.value", "chunks.text", "cases.evidence"),
         "Do the citations carry the proposal?", source="per case, then the mean over citing cases",
         limit="the number of citing cases may differ between conditions: read the matched value "
         "of a comparison"),
    _one("answer.supported",
         "1 if there is a citation, all support, and each claim stands in what is cited",
         "nothing is answered", ("proposed", "claims", "chunks.text", "cases.evidence"),
         "Is the whole answer taken from what it cites?",
         limit="word for word, and not entailment: a paraphrase is not covered", pooled=False),
    _one("citation.presence", "factual claims with a citation / factual claims", _FACTUAL,
         ("claims",), "Do claims carry a citation?", aliases=("citation.recall_as_presence",),
         limit="says that a citation is there, not that it supports: see citation.recall"),
    _one("citation.precision", "citations that resolve and support their claim / citations",
         "no citation", (_CITES, "or cases.evidence"), "Do citations support their claims?",
         limit="the verdict counts; without one, a labelled supporting span inside does"),
    _one("citation.recall", "factual claims supported by all that they cite together / "
         "factual claims", _FACTUAL, ("claims", _CITES), "Are claims supported by their citations?",
         limit="without a verdict on exactly the cited set, one cited chunk must entail the claim"),
    _one("citation.entailment", "citations that entail their claim / judged citations",
         "no citation", (_CITES,), "Do cited texts say the claims?",
         aliases=("epic.citation_entailment",), limit="those that nobody judged are left out"),
    _one("citation.resolution", "citations that lead to an existing unit, version, place and quote "
         "/ citations", "no citation", ("chunks.doc_version", "chunks.text"),
         "Do citations lead where they say?", limit="says nothing of support"),
    _one("citation.independence", "distinct source families, summed over cited claims / "
         "cited claims", "no claim is cited", ("claims", "chunks.source_family"),
         "From how many independent sources is a claim supported?",
         limit="citations of units that were not shown do not count"),
    _one("citation.documents", "distinct documents, summed over cited claims / cited claims",
         "no claim is cited", ("claims", "chunks.doc_id"),
         "How many documents does a claim cite?",
         limit="two documents may have one upstream: see citation.independence"),
    _one("citation.influence", "cited units whose removal flips the support of the claim / "
         "cited units that were removed in a recorded ablation", "no citation",
         ("verdicts influence",), "Would the answer be the same without its sources?",
         limit="missing unless ablations were run"),
)  # fmt: skip

_ALCE = "ALCE (Gao and others, 2023), per answer, then the mean"
_TREC = "support of TREC RAG, per answer, then the mean"

_ELSEWHERE = (
    _one("alce.recall", "sentences whose cited chunks together entail them / sentences",
         "never: 0 without a sentence", ("claims", _CITES), "Are sentences supported?",
         source=_ALCE, pooled=False,
         params={"official": False},
         limit="needs verdicts on exactly the cited sets; an empty answer is 0. official=True: a "
         "citation that leads nowhere makes its sentence 0, as in the authors' script"),
    _one("alce.precision", "citations of an entailed sentence that is its only one, entails it "
         "alone, or is needed by the rest / citations", "never: 0 without a citation",
         ("claims", _CITES), "Is every citation needed?", source=_ALCE, pooled=False,
         params={"official": False},
         limit="a citation that leads nowhere counts against it. official=True leaves out those of "
         "its sentence, as in the authors' script"),
    _one("trecrag.support_precision", "1 a full, 1/2 a partial support, summed / "
         "judged citations", "no citation", (_CITES,), "How far do citations support?",
         source=_TREC),
    _one("trecrag.support_recall", "1 a full, 1/2 a partial support, summed / sentences",
         "no sentence", ("claims", _CITES), "How far are sentences supported?", source=_TREC,
         limit="a sentence counts once, by the verdict on its set or its best citation"),
    _one("trecrag.support_precision_strict", "fully supporting citations / judged citations",
         "no citation", (_CITES,), "Do citations support fully?", source=_TREC),
    _one("trecrag.support_recall_strict", "fully supported sentences / sentences", "no sentence",
         ("claims", _CITES), "Are sentences supported fully?", source=_TREC),
)  # fmt: skip

DEFINITIONS: tuple[Definition, ...] = (*_HOUSE, *_ELSEWHERE)
