"""CLAPNQ as a suite: its counts, its runs by another engine, the way back to its own files."""

from __future__ import annotations

import json

import polars as pl
import pytest

import importers
import ragcore
from ragcore.public import clapnq
from ragcore.public.columns import flat_run

pytrec_eval = pytest.importorskip("pytrec_eval")


@pytest.fixture(scope="module")
def world(collections):
    return collections("clapnq")


def test_suite__has_the_counts_of_the_collection(world):
    cases = world.made.cases.to_pylist()
    assert len(cases) == 600
    assert [one["answerable"] for one in cases].count(True) == 300
    assert sum(bool(one["evidence"]) for one in cases) == 300
    assert world.made.chunks.num_rows == 600
    told = world.shared["answers"].filter(pl.col("text") != "")
    assert sum(len(one["references"]) for one in cases) == len(told) == 485


def test_evidence__quotes_stand_where_it_says(world):
    texts = dict(zip(*(world.made.chunks[name].to_pylist() for name in ("chunk_id", "text")),
                     strict=True))  # fmt: skip
    items = [item for one in world.made.cases["evidence"].to_pylist() for item in one]
    placed = [item for item in items if item["start"] is not None]
    assert len(placed) == len(items) - 1
    for item in placed:
        assert texts[item["doc_id"]][item["start"] : item["end"]] == item["quote"]


@pytest.mark.parametrize("system", ["bm25", "tfidf", "lsa64", "rrf_bm25_lsa"])
def test_runs__recall_over_sentences_is_that_of_passages(world, system):
    """All sentences of a question are in one passage: found at once, or not at all."""
    rows = world.shared["runs"].filter(pl.col("system") == system)
    qrels = {q: {d: 1} for q, d in world.shared["qrels"].select("query_id", "doc_id").iter_rows()}
    run: dict[str, dict[str, float]] = {}
    for query, document, value in rows.select("query_id", "doc_id", "score").iter_rows():
        run.setdefault(query, {})[document] = value
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"recall", "recip_rank"}).evaluate(run)
    scores = ragcore.score(flat_run(rows), suite=world.suite, measures=["R@5", "R@10", "RR"])
    for ours, name in {"R@5": "recall_5", "R@10": "recall_10", "RR": "recip_rank"}.items():
        found = scores.per_case(ours)
        for query in qrels:
            expected = theirs[query][name] if query in theirs else 0.0
            assert found[query] == pytest.approx(expected, abs=1e-12), (query, ours)


def test_bm25__reproduces_the_stored_run(world):
    """k1 0.9 and b 0.4, words as they stand: what the stored run was made with."""
    run = world.found(analyzer="default", k1=0.9, b=0.4)
    stored = flat_run(world.shared["runs"].filter(pl.col("system") == "bm25"))
    for name in ("R@1", "R@5", "R@10"):
        ours, theirs = (world.mean(one, name) for one in (run, stored))
        assert ours == pytest.approx(theirs, abs=1e-12), name


def test_official__gives_the_same_suite(world, tmp_path):
    texts = {row["doc_id"]: row for row in world.shared["corpus"].iter_rows(named=True)}
    said = {}
    for row in world.shared["answers"].sort("annotator", maintain_order=True).iter_rows(named=True):
        own = texts[row["doc_id"]]["sentences"]
        said.setdefault(row["query_id"], []).append(
            {"answer": row["text"], "selected_sentences": [own[i] for i in row["sentence_index"]]}
        )
    lines = ["", ""]
    for row in world.shared["queries"].iter_rows(named=True):
        passage = {
            key: texts[f"p:{row['query_id']}"][key] for key in ("title", "text", "sentences")
        }
        one = {
            "id": row["query_id"],
            "input": row["text"],
            "passages": [passage],
            "output": said.get(row["query_id"], [{"answer": "", "selected_sentences": []}]),
        }
        lines[not row["answerable"]] += json.dumps(one) + "\n"  # fmt: skip
    for name, text in zip(clapnq.FILES, lines, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    importers.same(clapnq.build(clapnq.official(tmp_path)), world.made)
