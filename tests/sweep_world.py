"""A small suite to sweep: documents in blocks, vectors, questions of two kinds, two splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import indexes
from ragcore import schema
from ragcore.report.table import write_arrow

N_DOCUMENTS, N_BLOCKS, DIM = 16, 6, 8
WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "ru", "se", "ti", "vo", "ze") for b in (
    "bar", "den", "fol", "gis", "hum", "jek", "lan", "mop", "nud", "pis")]  # fmt: skip
TYPES = ("keyword", "paraphrase")


def suite(folder: Path, *, vectors: bool = True, seed: int = 3, n_cases: int = 40) -> Path:
    """Write a suite: half of the cases are validation, half test; one in five has no answer."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    texts, places, matrix = _documents(rng)
    cases = _cases(rng, texts, places, matrix, n_cases)
    chunks: dict[str, Any] = {
        "chunk_id": [f"d{d:02}#{b}" for d, b in places],
        "doc_id": [f"d{d:02}" for d, _ in places],
        "block_first": pa.array([b for _, b in places], pa.int32()),
        "block_last": pa.array([b for _, b in places], pa.int32()),
        "text": pa.array(texts, pa.large_string()),
        "n_tokens": pa.array([len(text.split()) for text in texts], pa.int32()),
        "lang": ["en"] * len(texts),
        "acl": pa.array([["staff"] if d == 3 else None for d, _ in places], pa.list_(pa.string())),
    }
    if vectors:
        chunks["vector"] = indexes.vector_column(matrix)
    else:
        cases = cases.drop_columns(["vector"])
    for name, table in (("chunks", pa.table(chunks)), ("cases", cases)):
        with (folder / f"{name}.arrow").open("wb") as stream:
            write_arrow(table, stream)
    (folder / "suite.toml").write_text(
        'name = "world"\nkind = "development (made for tests)"\n'
        'cannot_show = ["how people ask"]\n', "utf-8",
    )  # fmt: skip
    return folder


def _documents(rng: Any) -> tuple[list[str], list[tuple[int, int]], Any]:
    texts, places, rows = [], [], []
    for d in range(N_DOCUMENTS):
        about = rng.normal(size=DIM)
        for b in range(N_BLOCKS):
            words = rng.choice(WORDS, size=9).tolist()
            texts.append(" ".join(["shared", *words]))
            places.append((d, b))
            rows.append(about + 0.9 * rng.normal(size=DIM))
    matrix = np.array(rows)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return texts, places, matrix.astype(np.float32)


def _cases(rng: Any, texts: list[str], places: list[Any], matrix: Any, n: int) -> pa.Table:
    rows, asked = [], []
    for i in range(n):
        at = int(rng.integers(len(texts)))
        kind = TYPES[i // 2 % 2]
        answerable = i % 10 < 8
        words = texts[at].split()
        near = matrix[at] + (0.25 if kind == "paraphrase" else 1.2) * rng.normal(size=DIM) / 2
        question = "shared " + (
            " ".join(words[2:5]) if kind == "keyword" else " ".join(rng.choice(WORDS, 3))
        )
        quote = " ".join(words[3:6])
        rows.append(
            {
                "case_id": f"q{i:02}", "lang": "en", "split": ("validation", "test")[i % 2],
                "question": question, "answerable": answerable,
                "type": [kind] if answerable else [kind, "unanswerable"],
                "principals": ["staff"] if i % 3 else ["customer"],
                "evidence": [
                    {"doc_id": f"d{places[at][0]:02}", "block": places[at][1], "quote": quote,
                     "relevance": 3, "required": True, "role": "supporting"}
                ] if answerable else [],
            }
        )  # fmt: skip
        asked.append(near if answerable else rng.normal(size=DIM))
    names = ["case_id", "lang", "split", "question", "answerable", "type", "principals", "evidence"]
    kind = pa.schema([schema.CASES.field(name) for name in names])
    table = pa.Table.from_pylist(rows, schema=kind)
    return table.append_column("vector", indexes.vector_column(np.array(asked, np.float32)))


def overlap(question: str, texts: list[str]) -> list[float]:
    """A reranker: words in common, then how short the text is."""
    asked = set(question.split())
    return [len(asked & set(text.split())) - len(text) / 1000 for text in texts]


def pairs(given: list[tuple[str, str]]) -> list[float]:
    """The same of pairs."""
    return [overlap(question, [text])[0] for question, text in given]


def hashed(texts: list[str], kind: str) -> Any:
    """An embedder: words counted by place in a short vector."""
    out = np.zeros((len(texts), DIM), np.float32)
    for row, text in enumerate(texts):
        for word in text.split():
            out[row, sum(word.encode()) % DIM] += 1
    return out + 0.01


def sweep(folder: Path, **over: Any) -> dict[str, Any]:
    """A sweep of that suite with every experiment that needs no model."""
    return {
        "suite": str(folder),
        "name": "world",
        "measures": ["R@5", "R@1", "nDCG@10", "RR"],
        "production": {
            "strategy": "hybrid-exact",
            "candidate_k": 10,
            "context_k": 3,
            "filters": ["acl"],
        },
        "sweep": {
            "candidate_k": [5, 10, 20],
            "context_k": [3, 5],
            "ladder": ["dense-exact", "bm25", "hybrid-exact", "hybrid-exact+reranker"],
            "threshold": {"channel": "dense_exact", "values": ["off", 0.2, 0.5, 0.7]},
            "chunking": {"pairs": {"merge": 2}},
        },
        "deviation": {"rrf-10": {"rrf_k": 10}, "k1-low": {"k1": 0.4}},
    } | over
