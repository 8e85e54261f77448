"""How to search: strategies and every setting, with its default."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragcore.filters import Filter

BM25, DENSE, DENSE_EXACT = "bm25", "dense", "dense_exact"
"""Channels: BM25; approximate, and exact, search of vectors."""

STRATEGIES: dict[str, tuple[str, ...]] = {
    "bm25": (BM25,),
    "dense": (DENSE,),
    "dense-exact": (DENSE_EXACT,),
    "hybrid": (BM25, DENSE),
    "hybrid-exact": (BM25, DENSE_EXACT),
}
"""Channels of each strategy."""
FUSED = "fused"


@dataclass(frozen=True)
class Settings:
    """How to search.

    Attributes
    ----------
    strategy : one of `STRATEGIES`.
    candidate_k : rows from each channel; context_k : rows that the generator would be shown.
    thresholds : least score, by channel.
    filters, filter_when : which chunks are eligible, and whether candidates are chosen among those
        ("before") or dropped afterwards ("after").
    method, rrf_k, weights, normalise : of fusion, as `ragcore.fuse` takes them.
    ef : size of the list that HNSW keeps.
    k1, b, variant, lengths : of BM25; None = as the index says.
    count_repeats : a term that stands twice in a question counts twice.
    timing : "each" times question by question, "batch" answers them together.
    threads : 1 by default, so that a latency is that of one question.
    """

    strategy: str = "bm25"
    candidate_k: int = 20
    context_k: int = 5
    thresholds: dict[str, float] = field(default_factory=dict)
    filters: tuple[Filter, ...] = ()
    filter_when: str = "before"
    method: str = "rrf"
    rrf_k: float = 60.0
    weights: tuple[float, ...] | None = None
    normalise: str = "min-max"
    ef: int = 100
    k1: float | None = None
    b: float | None = None
    variant: str | None = None
    lengths: str | None = None
    count_repeats: bool = False
    timing: str = "each"
    threads: int = 1
