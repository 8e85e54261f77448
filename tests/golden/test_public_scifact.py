"""SciFact as a suite against figures that other code made of the same data."""

from __future__ import annotations

import json
import zipfile

import polars as pl
import pytest

import public_suites
from ragcore.public import scifact
from ragcore.public.reading import flat_run


@pytest.fixture(scope="module")
def tables(shared_data):
    return public_suites.read(shared_data / "scifact")


@pytest.fixture(scope="module")
def suite(tables):
    return scifact.build(tables)


@pytest.fixture(scope="module")
def folder(suite, tmp_path_factory):
    return public_suites.write(tmp_path_factory.mktemp("scifact") / "suite", suite)


def test_suite__has_the_counts_of_the_collection(suite):
    """300 claims and 339 judgements, as BEIR says; 188 claims with a verdict, as SciFact says."""
    cases = suite.cases.to_pylist()
    assert len(cases) == 300
    assert sum(len(case["evidence"]) for case in cases) == 339
    assert {item["relevance"] for case in cases for item in case["evidence"]} == {1}
    assert sum(case["answerable"] for case in cases) == 188
    assert suite.chunks.num_rows == 5183
    assert suite.judgments["annotators"].num_rows == 209


def test_runs__score_as_they_are_known_to(tables, folder):
    """Figures that came with the runs; ties decide nothing here but in the fused one."""
    for system, known in {"bm25": 0.6588, "tfidf": 0.6280, "lsa256": 0.4865}.items():
        run = flat_run(tables["runs"].filter(pl.col("system") == system))
        assert public_suites.mean(run, folder, "nDCG@10") == pytest.approx(known, abs=5e-5)


def test_bm25__is_where_published_figures_are(folder, tmp_path):
    """Published: 0.679 and 0.925, Lucene over title and text; its analyzer is not this one."""
    run = public_suites.found(folder, tmp_path / "index", "en", k1=0.9, b=0.4)
    assert public_suites.mean(run, folder, "nDCG@10") == pytest.approx(0.679, abs=0.01)
    assert public_suites.mean(run, folder, "R@100") == pytest.approx(0.925, abs=0.01)


def test_official__gives_the_same_suite(tables, suite, tmp_path):
    labels = {}
    for row in tables["claims"].iter_rows(named=True):
        of = labels.setdefault(row["query_id"], {}).setdefault(row["doc_id"], [])
        of.append({"sentences": row["sentences"], "label": row["label"]})
    corpus = [{"_id": row["doc_id"], "title": row["title"], "text": row["text"], "metadata": {}}
              for row in tables["corpus"].iter_rows(named=True)]  # fmt: skip
    asked = [{"_id": row["query_id"], "text": row["text"],
              "metadata": labels.get(row["query_id"], {})}
             for row in tables["queries"].iter_rows(named=True)]  # fmt: skip
    with zipfile.ZipFile(tmp_path / "scifact.zip", "w") as made:
        for name, rows in (("corpus", corpus), ("queries", asked)):
            text = "\n".join(json.dumps(row) for row in rows)
            made.writestr(f"scifact/{name}.jsonl", text)
        for (split,), rows in tables["qrels"].group_by("split"):
            lines = "".join(f"{q}\t{d}\t{g}\r\n" for q, d, g, _ in rows.iter_rows())
            made.writestr(f"scifact/qrels/{split}.tsv", "query-id\tcorpus-id\tscore\r\n" + lines)
    again = scifact.build(scifact.official(tmp_path))
    assert again.cases.equals(suite.cases)
    assert again.chunks is not None
    assert again.chunks.equals(suite.chunks)
    assert again.judgments["annotators"].equals(suite.judgments["annotators"])
    assert again.notes == suite.notes
