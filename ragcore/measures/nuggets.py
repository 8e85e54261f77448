"""Nugget measures: reference claims, vital and okay, that an answer supports whole or in part."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_SOURCE = "TREC RAG 2024: support 1, partial support 1/2, else 0; per case, then the mean"
_ROWS = (
    ("vital", "sum over vital nuggets / vital nuggets", "the case has no vital nugget",
     "How much of what an answer must say does it say?"),
    ("vital_strict", "vital nuggets supported whole / vital nuggets",
     "the case has no vital nugget", "How much of what it must say does it say in full?"),
    ("all", "sum over all nuggets / nuggets", "the case has no nugget",
     "How much of the reference does it say?"),
    ("all_strict", "nuggets supported whole / nuggets", "the case has no nugget",
     "How much of the reference does it say in full?"),
    ("weighted", "(sum over vital + 1/2 sum over okay) / (vital + 1/2 okay)",
     "the case has no nugget", "How much does it say, vital nuggets counting twice?"),
    ("weighted_strict", "(whole vital + 1/2 whole okay) / (vital + 1/2 okay)",
     "the case has no nugget", "How much does it say in full, vital nuggets counting twice?"),
)  # fmt: skip

DEFINITIONS = tuple(
    Definition(
        name=f"nuggets.{name}", layer="claims", formula=formula, na=na,
        needs=("cases.claims", "verdicts covered"), source=_SOURCE, question=question,
        limit="" if name.startswith("all") else "missing where a nugget is not marked vital or not",
        cutoff="none", zero=False, pooled=True,
    )
    for name, formula, na, question in _ROWS
)  # fmt: skip
