"""Measures of what was selected against its scope: valid, authoritative, permitted, not deleted."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_UNKNOWN = "a unit that the suite does not have passes nothing, and is counted"

DEFINITIONS = (
    Definition(
        name="freshness.pass", layer="retrieval",
        formula="selected units with valid_from <= as_of < valid_until and the case's topic / "
        "selected units",
        na="nothing was selected", needs=("ranked", "as_of or topic", "chunks"),
        source="selected = the first context_k of the ranking; an open end is open",
        question="Is what is shown in force on the day asked for, and about the topic?",
        limit=f"missing where a case says neither day nor topic; {_UNKNOWN}", cutoff="none",
        zero=False, pooled=True,
    ),
    Definition(
        name="authority.pass", layer="retrieval",
        formula="selected units whose authority is allowed / selected units",
        na="nothing was selected, or nothing says what is allowed",
        needs=("ranked", "authorities", "chunks.authority"),
        source="allowed: the case's `authorities` (a list) or `authority`, else `authorities` of "
        "the manifest, else of the suite",
        question="Does what is shown come from who may say so?", limit=_UNKNOWN, cutoff="none",
        zero=False, pooled=True,
    ),
    Definition(
        name="permission.pass", layer="retrieval",
        formula="selected units that are public or whose acl has one of the case's principals / "
        "selected units",
        na="nothing was selected", needs=("ranked", "principals", "chunks.acl"),
        source="no acl = public; an empty one lets nobody in",
        question="May this reader see what is shown?", limit=_UNKNOWN, cutoff="none", zero=False,
        pooled=True,
    ),
    Definition(
        name="deleted.count", layer="retrieval",
        formula="distinct deleted units in stages, ranking, context and citations, added up over "
        "cases",
        na="never", needs=("ranked", "chunks.deleted"), source="each is a failure of its case",
        question="Does anything turn up that was deleted?", cutoff="none", aggregate="sum",
        zero=False,
    ),
)  # fmt: skip
