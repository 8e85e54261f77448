"""Measures of the retrieval layer: what of the evidence that a case requires was found, and how."""

from __future__ import annotations

from ragcore.measures import eligibility, survival
from ragcore.measures.definitions import Definition, directed

_NEEDS = ("ranked", "evidence.required")


def _level(name: str, level: str, question: str, limit: str, over: str = "") -> Definition:
    return Definition(
        name=name, layer="retrieval",
        formula=over or f"required evidence of which {level} was retrieved / required evidence",
        na="nothing is required; missing where no label is that fine",
        needs=(*_NEEDS, "chunks"), source="side by side, over the required items that say as much",
        question=question, limit=limit, cutoff="none", zero=False, pooled=not over,
    )  # fmt: skip


_ALL = (
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
    _level(
        "retrieval.coverage_document", "any chunk of the document",
        "Was the right document found?", "credits a chunk that lacks what the label points at",
    ),
    _level(
        "retrieval.coverage_block", "a chunk that touches the labelled block or place",
        "Was the right passage found?", "a chunk may touch a block and lack its exception",
    ),
    _level(
        "retrieval.coverage_span", "a chunk that holds the whole quote or place",
        "Were the very words found?",
        "a span that the chunks were cut through is held by none of them",
    ),
    _level(
        "retrieval.overcredit", "", "How much credit do document labels give for nothing?",
        "of items whose quote or place can be checked against the chunks",
        "coverage by document - coverage by span, over the same items",
    ),
    Definition(
        name="retrieval.opportunity", layer="retrieval",
        formula="1 if some required item is in the first candidate_k units of a channel or in the "
        "final ranking, else 0",
        na="nothing is required; where a suite does not say what is, supporting items stand in",
        needs=("stages", "evidence"), source="candidate_k from the manifest, else whole lists",
        question="Could anything after retrieval still have found the answer?",
        limit="0, not na, where what is required is not in the snapshot", cutoff="none",
        zero=False, pooled=True,
    ),
    Definition(
        name="retrieval.ahead", layer="retrieval",
        formula="units of the final ranking ahead of the first that supports",
        na="the case has no supporting evidence", needs=("ranked", "evidence"),
        source="everything ahead is noise, or a repeat of noise",
        question="How much must be read before the first help?",
        limit="where nothing supports, the whole list is ahead: its length then matters",
        cutoff="none", zero=False,
    ),
    Definition(
        name="retrieval.displaced", layer="retrieval",
        formula="required items within context_k before reranking and beyond it after / required",
        na="nothing is required", needs=("stages: reranked and one before", "evidence.required"),
        source="before: the stage `fused`, else the one recorded before `reranked`",
        question="Does the reranker push out what was already there?",
        limit="without context_k in the manifest only what left the list counts", cutoff="none",
        zero=False, pooled=True,
    ),
    Definition(
        name="retrieval.no_result", layer="retrieval",
        formula="traces with an empty final ranking / traces", na="never", needs=("ranked",),
        source="also over unanswerable cases, where an empty list is right",
        question="How often is nothing found?", cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="retrieval.token_budget", layer="retrieval",
        formula="required items in the longest prefix of the ranking with at most B tokens / "
        "required items",
        na="nothing is required", needs=("ranked", "evidence.required", "chunks.n_tokens"),
        source="whole units only, in rank order, up to the first that does not fit",
        question="What would a reader with room for B tokens be given?",
        limit="B=..., else `token_budget` of the manifest or the suite; missing without any",
        cutoff="none", params={"B": None}, zero=False, pooled=True,
    ),
    Definition(
        name="retrieval.source_concentration", layer="retrieval",
        formula="units of the most frequent document among the selected / selected",
        na="nothing was selected", needs=("ranked", "chunks"),
        source="selected = the first context_k; by=document or by=source_family",
        question="Does one source fill the list?",
        limit="a unit whose source is not known is a source of its own", cutoff="none",
        params={"by": "document"}, zero=False,
    ),
    Definition(
        name="forbidden.rate", layer="retrieval",
        formula="traces with a unit that holds forbidden evidence / traces",
        na="never; missing where the suite labels nothing as forbidden",
        needs=("ranked or stages", "evidence.role"),
        source="all recorded lists: stages, ranking and context; stage=NAME for one of them",
        question="How often does something turn up that must not?",
        limit="each occurrence is a failure of its case, whatever the rate", cutoff="none",
        params={"stage": None}, zero=False, pooled=True,
    ),
    Definition(
        name="forbidden.count", layer="retrieval",
        formula="distinct units of a trace that hold forbidden evidence, added up over cases",
        na="never; missing where the suite labels nothing as forbidden",
        needs=("ranked or stages", "evidence.role"), source="as forbidden.rate",
        question="How many forbidden units turned up?", cutoff="none", params={"stage": None},
        aggregate="sum", zero=False,
    ),
    *eligibility.DEFINITIONS,
    *survival.DEFINITIONS,
)  # fmt: skip

DEFINITIONS = directed(
    _ALL,
    less=("retrieval.overcredit", "retrieval.ahead", "retrieval.displaced", "forbidden.rate",
          "forbidden.count", "deleted.count"),
    neither=("retrieval.no_result", "retrieval.source_concentration", "overlap.jaccard",
             "overlap.share", "overlap.rbo"),
)  # fmt: skip
