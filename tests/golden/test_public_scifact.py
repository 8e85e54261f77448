"""SciFact as a suite against figures that other code made of the same data."""

from __future__ import annotations

import json
import zipfile

import polars as pl
import pytest

import importers
from ragcore.public import scifact
from ragcore.public.columns import flat_run


@pytest.fixture(scope="module")
def world(collections):
    return collections("scifact")


def test_suite__has_the_counts_of_the_collection(world):
    """300 claims and 339 judgements, as BEIR says; 188 claims with a verdict, as SciFact says."""
    cases = world.made.cases.to_pylist()
    assert len(cases) == 300
    assert sum(len(case["evidence"]) for case in cases) == 339
    assert {item["relevance"] for case in cases for item in case["evidence"]} == {1}
    assert sum(case["answerable"] for case in cases) == 188
    assert world.made.chunks.num_rows == 5183
    assert world.made.judgments["annotators"].num_rows == 209


def test_runs__score_as_they_are_known_to(world):
    """Figures that came with the runs; ties decide nothing here but in the fused one."""
    for system, known in {"bm25": 0.6588, "tfidf": 0.6280, "lsa256": 0.4865}.items():
        run = flat_run(world.shared["runs"].filter(pl.col("system") == system))
        assert world.mean(run, "nDCG@10") == pytest.approx(known, abs=5e-5)


def test_bm25__is_where_published_figures_are(world):
    """Published: 0.679 and 0.925, Lucene over title and text; its analyzer is not this one."""
    run = world.found()
    assert world.mean(run, "nDCG@10") == pytest.approx(0.679, abs=0.01)
    assert world.mean(run, "R@100") == pytest.approx(0.925, abs=0.01)


def test_official__gives_the_same_suite(world, tmp_path):
    labels = {}
    for row in world.shared["claims"].iter_rows(named=True):
        of = labels.setdefault(row["query_id"], {}).setdefault(row["doc_id"], [])
        of.append({"sentences": row["sentences"], "label": row["label"]})
    corpus = [{"_id": row["doc_id"], "title": row["title"], "text": row["text"], "metadata": {}}
              for row in world.shared["corpus"].iter_rows(named=True)]  # fmt: skip
    asked = [{"_id": row["query_id"], "text": row["text"],
              "metadata": labels.get(row["query_id"], {})}
             for row in world.shared["queries"].iter_rows(named=True)]  # fmt: skip
    with zipfile.ZipFile(tmp_path / "scifact.zip", "w") as made:
        for name, rows in (("corpus", corpus), ("queries", asked)):
            text = "\n".join(json.dumps(row) for row in rows)
            made.writestr(f"scifact/{name}.jsonl", text)
        for (split,), rows in world.shared["qrels"].group_by("split"):
            lines = "".join(f"{q}\t{d}\t{g}\r\n" for q, d, g, _ in rows.iter_rows())
            made.writestr(f"scifact/qrels/{split}.tsv", "query-id\tcorpus-id\tscore\r\n" + lines)
    importers.same(scifact.build(scifact.official(tmp_path)), world.made)
