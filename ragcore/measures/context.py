"""Measures of the context: what of the evidence reached the generator, at which cost."""

from __future__ import annotations

from ragcore.measures.definitions import Definition, directed

_CASES = "per case, then the mean over cases with something required"
_REQUIRED = ("context", "evidence.required")
_USEFUL = (
    "a chunk is useful if it entails a reference claim (by=claims), or has the verdict yes of "
    "relation relevance (by=relevance)"
)
_SENTENCES = (
    "sentences of a chunk are numbered like claims; lengths from the list column `sentence_tokens` "
    "of the suite's chunks where every chunk shown has it, else each sentence counts 1"
)
_TRACE = "TRACe, from labels; pooled over the sentences of a case, then the mean over cases"

PACKED = (
    Definition(
        name="context.coverage", layer="context",
        formula="required evidence in the context / required evidence",
        na="nothing is required", needs=_REQUIRED, source=_CASES,
        question="Did what the answer needs reach the generator?",
        limit="a chunk counts even if its qualifying span was cut off: see context.span_intact",
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="context.span_intact", layer="context",
        formula="required items whose span lies inside a packed span / required items",
        na="nothing is required", needs=(*_REQUIRED, "context.start, context.end"), source=_CASES,
        question="Did what the answer needs reach the generator uncut?",
        limit="an item without a place is intact if its quote stands in the packed text, or, "
        "without texts, if its chunk was packed whole",
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="context.packing_loss", layer="context",
        formula="(required evidence ranked - required evidence in the context) / required evidence",
        na="nothing is required", needs=("ranked", *_REQUIRED),
        source=f"retrieval.coverage - context.coverage {_CASES}",
        question="How much was found and then left out of the context?",
        limit="below 0 where the context holds what the ranking does not", cutoff="none",
        zero=False, pooled=True,
    ),
    Definition(
        name="context.tokens", layer="context",
        formula="sum of the lengths of what was packed, in the declared unit",
        na="never", needs=("context.n_tokens, or chunks.n_tokens of chunks packed whole",),
        source="per case, then the mean over cases; 0 where the budget was refused",
        question="How much does the generator have to read?",
        limit="lengths are as recorded; nothing is counted again", cutoff="none", zero=False,
    ),
    Definition(
        name="context.budget", layer="context",
        formula="1 if input_size + reserve <= window and the budget was not refused, else 0",
        na="never", needs=("input_size, window, reserve, or context_state",),
        source="per case, then the mean over cases",
        question="Does the input leave the reserve for the answer?",
        limit="sizes are as recorded; a null one is missing, not 0", cutoff="none", zero=False,
    ),
)  # fmt: skip

USEFUL = (
    Definition(
        name="context.precision", layer="context",
        formula="useful chunks of the context / chunks of the context",
        na="nothing was shown, or the case has no reference claims",
        needs=("context", "cases.claims", "verdicts chunk_entails_reference, or relevance"),
        source=f"RAGChecker; {_USEFUL}; per case, then the mean over cases",
        question="How much of what was shown is of use?",
        limit="blind to order: context.precision_ap; zero_division=ragchecker gives 0 for na",
        cutoff="none", zero=False, pooled=True, params={"zero_division": "na", "by": "claims"},
    ),
    Definition(
        name="context.precision_ap", layer="context",
        formula="mean of useful chunks above and at each useful chunk / its rank; 0 if none is "
        "useful",
        na="nothing was shown, or the case has no reference claims",
        needs=("context", "cases.claims", "verdicts chunk_entails_reference, or relevance"),
        source=f"{_USEFUL}; divided by the useful chunks shown, not by all there are",
        question="Do useful chunks stand first?",
        limit="one useful chunk at rank 1 is perfect; zero_division=ragchecker gives 0 for na",
        cutoff="none", zero=False, params={"zero_division": "na", "by": "claims"},
    ),
)  # fmt: skip

TRACE = (
    Definition(
        name="trace.relevance", layer="context",
        formula="length of relevant sentences of the context / length of the context",
        na="nothing was shown", needs=("context", "verdicts sentence_relevant"), source=_TRACE,
        question="How much of what was shown bears on the question?", limit=_SENTENCES,
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="trace.utilization", layer="context",
        formula="length of sentences that the answer uses / length of the context",
        na="nothing was shown", needs=("context", "verdicts sentence_used"), source=_TRACE,
        question="How much of what was shown does the answer use?", limit=_SENTENCES,
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="trace.completeness", layer="context",
        formula="length of sentences relevant and used / length of relevant sentences",
        na="no sentence is relevant",
        needs=("context", "verdicts sentence_relevant, sentence_used"), source=_TRACE,
        question="Is what bears on the question used?", limit=_SENTENCES, cutoff="none",
        zero=False, pooled=True,
    ),
    Definition(
        name="trace.adherence", layer="context",
        formula="1 if the context supports every claim of the answer, else 0",
        na="the answer has no claims", needs=("run.claims", "verdicts entailed"),
        source="TRACe; per case, then the mean over cases",
        question="Is every sentence of the answer supported?",
        limit="one unsupported claim among many counts as much as all: claims.unsupported",
        cutoff="none", zero=False,
    ),
)  # fmt: skip

DEFINITIONS = directed(
    (*PACKED, *USEFUL, *TRACE), less=("context.packing_loss",), neither=("context.tokens",)
)
