"""Measures of what becomes of required evidence on its way, and of how far channels agree."""

from __future__ import annotations

from ragcore.measures.definitions import Definition


def _stage(name: str, where: str, needs: str, question: str, limit: str = "") -> Definition:
    return Definition(
        name=f"survival.{name}", layer="retrieval",
        formula=f"required items {where} / required items", na="nothing is required",
        needs=(needs, "evidence.required"), source="a funnel: read its steps side by side",
        question=question, limit=limit, cutoff="none", zero=False, pooled=True,
    )  # fmt: skip


def _overlap(name: str, formula: str, question: str, limit: str, **params: object) -> Definition:
    return Definition(
        name=f"overlap.{name}", layer="retrieval", formula=formula,
        na="both lists are empty", needs=("stages",),
        source="a= and b= name stages; without them the first two channels recorded",
        question=question, limit=limit, cutoff="optional", params={"a": None, "b": None, **params},
        zero=False,
    )  # fmt: skip


DEFINITIONS = (
    _stage(
        "candidate", "in the first candidate_k units of any channel, or ranked", "stages",
        "Did a channel find it?",
    ),
    _stage("fused", "in the fused list", "stages: fused", "Did fusion keep it?"),
    _stage("reranked", "in the reranked list", "stages: reranked", "Did reranking keep it?"),
    _stage(
        "selected", "in the first context_k units of the final ranking", "ranked",
        "Was it selected?",
    ),
    _stage(
        "packed", "whole in the context", "context", "Did it reach the generator uncut?",
        "an item without a place counts only in a unit that is shown whole",
    ),
    _stage("cited", "in a cited unit", "citations", "Was it cited?"),
    _overlap(
        "jaccard", "units of both lists / units of either, in the first k",
        "How much do two channels say the same?", "blind to order: see overlap.rbo",
    ),
    _overlap(
        "share", "units of both lists in the first k / k",
        "How much do two channels say the same?",
        "without a cut-off, k is the length of the longer list",
    ),
    _overlap(
        "rbo", "rank-biased overlap, extrapolated, of the first k",
        "Do two channels say the same at the top?", "0 where one list is empty", p=0.9,
    ),
)  # fmt: skip
