"""Searches of public collections against runs and figures that were made without this engine."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import importers
import indexes
import ragcore
from ragcore.index.build import build
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import open_index
from ragcore.index.options import Options
from ragcore.questions import read_questions, vectors_by_id
from ragcore.search import search
from ragcore.search_settings import Settings


def index_of(corpus, path, vectors=None, **options):
    chunks = read_chunks(corpus)
    if vectors is not None:
        chunks.vectors = vectors_by_id(vectors, chunks.ids.to_pylist())
        options["embedding"] = "file"
    build(chunks, path, Options(indexes.PLAIN, hnsw=False, **options))
    return open_index(path)


def lists_of(table):
    return {
        row["case_id"]: {item["id"]: item["score"] for item in row["ranked"]}
        for row in table.to_pylist()
    }


# --- BM25 runs that other code made: k1 0.9, b 0.4, exact lengths


@pytest.mark.parametrize(
    ("name", "columns", "ndcg"),
    [("cacm", ["doc_id", "title", "text"], 0.3946), ("cranfield", ["doc_id", "text"], 0.3104)],
)
def test_bm25__reproduces_stored_runs(name, columns, ndcg, shared_data, tmp_path):
    folder = shared_data / name
    index = index_of(pq.read_table(folder / "corpus.parquet", columns=columns), tmp_path / "i")
    questions = read_questions(pq.read_table(folder / "queries.parquet"))
    settings = Settings(candidate_k=100, k1=0.9, b=0.4, timing="batch")
    table = search(index, questions, settings).table
    ours = lists_of(table)
    stored = pq.read_table(folder / "runs.parquet").filter(pa.compute.field("system") == "bm25")
    theirs: dict[str, dict[str, float]] = {}
    for row in stored.to_pylist():
        theirs.setdefault(row["query_id"], {})[row["doc_id"]] = row["score"]
    assert set(theirs) == {case for case, items in ours.items() if items}
    for case, items in theirs.items():
        scores = sorted(items.values(), reverse=True)
        assert list(ours[case].values()) == pytest.approx(scores, rel=1e-6)
        last = scores[-1] * (1 + 1e-6)  # the cut may part documents that tie
        for doc, score in items.items():
            if score > last:
                assert ours[case][doc] == pytest.approx(score, rel=1e-6), (case, doc)
    grades = pq.read_table(folder / "qrels.parquet").select(["query_id", "doc_id", "relevance"])
    scores = ragcore.score(
        importers.flat(table), qrels=grades, measures=["nDCG@10"], bounds=["ties"]
    )
    low, high = (scores.mean(f"nDCG(ties={end})@10") for end in ("worst", "best"))
    assert low - 5e-5 <= ndcg <= high + 5e-5
