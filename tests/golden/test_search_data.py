"""Searches of public collections against runs and figures that were made without this engine."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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


def flat(table):
    """Rows with scores: where scores tie, another order is possible, and bounds say what of."""
    rows = [
        {"case_id": row["case_id"], "id": item["id"], "score": item["score"]}
        for row in table.to_pylist() for item in row["ranked"]
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)


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
    scores = ragcore.score(flat(table), qrels=grades, measures=["nDCG@10"], bounds=["ties"])
    low, high = (scores.mean(f"nDCG(ties={end})@10") for end in ("worst", "best"))
    assert low - 5e-5 <= ndcg <= high + 5e-5


# --- Chinese: the passages of one set, the questions and judgements of another


@pytest.fixture(scope="module")
def miracl(shared_data, tmp_path_factory):
    passages = shared_data / "nomiracl_zh"
    corpus = pq.read_table(passages / "corpus.parquet", columns=["doc_id", "title", "text"])
    index = index_of(
        corpus, tmp_path_factory.mktemp("miracl") / "i", passages / "vectors_corpus.parquet",
        metric="ip",
    )  # fmt: skip
    folder = shared_data / "miracl_zh"
    asked = pq.read_table(folder / "vectors_queries.parquet")
    names = set(asked["query_id"].to_pylist())
    known = pq.read_table(folder / "queries.parquet").to_pylist()
    table = pa.Table.from_pylist([row for row in known if row["query_id"] in names])
    questions = read_questions(table)
    vectors = vectors_by_id(
        folder / "vectors_queries.parquet", questions.case_ids, ("query_id",), "case"
    )
    questions = dataclasses.replace(questions, vectors=vectors.astype(np.float32))
    judged = [
        row | {"doc_id": f"zh:{row['doc_id']}"}
        for row in pq.read_table(folder / "qrels.parquet").to_pylist()
    ]
    held = set(index.ids.to_pylist())
    grades = pa.Table.from_pylist(
        [r for r in judged if r["doc_id"] in held and r["query_id"] in names]
    ).select(["query_id", "doc_id", "relevance"])
    assert (len(questions), grades.num_rows) == (195, 632)
    assert sum(grades["relevance"].to_pylist()) == 288
    return index, questions, grades


def measured(miracl, strategy):
    index, questions, grades = miracl
    table = search(index, questions, Settings(strategy, 100, timing="batch")).table
    return ragcore.score(flat(table), qrels=grades, measures=["nDCG@10", "R@100"], bounds=["ties"])


def test_miracl__bigrams_find_what_they_are_known_to_find(miracl):
    """Known: 0.485 and 0.908; how its tokens and ties were made in detail is not."""
    scores = measured(miracl, "bm25")
    assert scores.mean("nDCG@10") == pytest.approx(0.485, abs=0.005)
    assert scores.mean("R@100") == pytest.approx(0.908, abs=0.006)


def test_miracl__vectors_are_within_the_orders_of_their_ties(miracl):
    """Known: 0.794 and 0.959; 80 passages equal another, and whose id comes first decides."""
    scores = measured(miracl, "dense-exact")
    low, high = (scores.mean(f"nDCG(ties={end})@10") for end in ("worst", "best"))
    assert low < 0.794 < high
    assert high - low < 0.02
    assert scores.mean("nDCG@10") == pytest.approx(0.794, abs=0.01)
    assert scores.mean("R@100") == pytest.approx(0.959, abs=5e-4)
