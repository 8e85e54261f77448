"""Measures of what there was to find, and of the query that it was looked for with."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

DEFINITIONS = (
    Definition(
        name="corpus.coverage", layer="corpus",
        formula="needed evidence that the case's snapshot has, in the right revision, not deleted "
        "and open to who asks / needed evidence",
        na="nothing is needed", needs=("evidence.required", "chunks"),
        source="first in the order of blame: no ranking mends what the corpus lacks",
        question="Could the answer be found at all?",
        limit="evidence that the label says the snapshot lacks counts as needed, and is a miss",
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="corpus.qualifier_preserved", layer="corpus",
        formula="needed quotes that at least one chunk contains / needed quotes",
        na="no quote is needed", needs=("evidence.quote", "chunks.text"),
        source="after Unicode NFC, white space folded; documents and revisions that are there",
        question="Did ingestion keep the words that the answer turns on in one piece?",
        limit="a quote that is gone may be the label's fault: see the stale items",
        cutoff="none", zero=False, pooled=True,
    ),
    Definition(
        name="query.protected", layer="corpus",
        formula="numbers, dates, identifiers and negators of the question that the query keeps / "
        "those of the question",
        na="the question has none", needs=("question", "query"),
        source="read from both texts, English and Chinese, spelled in one form",
        question="Did the rewrite keep what must not change?",
        limit="about surface: whether the need was kept takes a judge", cutoff="none", zero=False,
        pooled=True,
    ),
)  # fmt: skip
