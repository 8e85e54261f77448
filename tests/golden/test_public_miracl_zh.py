"""MIRACL in Chinese as a suite: official judgements, and what is known of searching it."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

import importers
import ragcore
from ragcore.public import miracl_zh


@pytest.fixture(scope="module")
def world(collections):
    return collections("miracl-zh")


@pytest.fixture(scope="module")
def made(world):
    return world.made


def test_descriptor__is_whole_and_says_what_it_is(world):
    said = world.entry.settings
    assert "Not comparable" in said["subset"]
    assert "full corpus" in said["cannot_show"][0]


def test_evidence__is_the_official_judgements_of_what_is_here(world, made):
    cases = made.cases.to_pylist()
    ids = set(made.chunks["chunk_id"].to_pylist())
    assert (len(cases), len(ids)) == (195, 4855)
    qrels = world.shared["qrels"]
    official = {(q, d): g for q, d, g in qrels.select("query_id", "doc_id", "relevance").rows()}
    given = {(c["case_id"], i["doc_id"]): i["relevance"] for c in cases for i in c["evidence"]}
    assert given == {
        (q, d): g for (q, d), g in official.items()
        if d in ids and q in {c["case_id"] for c in cases}
    }  # fmt: skip
    assert (len(given), sum(given.values())) == (632, 288)
    # Every topic that a passage answers is here, and no other.
    assert {q for (q, d), g in official.items() if g and d in ids} == {c["case_id"] for c in cases}
    assert Counter(c["split"] for c in cases) == Counter(
        {"train": "development", "dev": "validation"}[c["source_split"]] for c in cases
    )
    assert made.notes[0].startswith("1,510 topics of 1,705")
    assert made.notes[1].startswith("16,409 judgements of 17,041")


def measured(world, strategy):
    run = world.found(strategy)
    names = ["nDCG@10", "R@100"]
    grades = [
        {"query_id": c["case_id"], "doc_id": i["doc_id"], "relevance": i["relevance"]}
        for c in world.made.cases.to_pylist()
        for i in c["evidence"]
    ]
    table = pl.DataFrame(grades).to_arrow()
    own = world.scored(run)
    tied = ragcore.score(importers.flat(run), qrels=table, measures=names, bounds=["ties"])
    for name in names:
        assert own.mean(name) == pytest.approx(tied.mean(name), abs=1e-12)
    return tied


def test_bm25__bigrams_find_what_they_are_known_to_find(world):
    """Known: 0.485 and 0.908; how its tokens and ties were made in detail is not."""
    scores = measured(world, "bm25")
    assert scores.mean("nDCG@10") == pytest.approx(0.485, abs=0.005)
    assert scores.mean("R@100") == pytest.approx(0.908, abs=0.006)


def test_vectors__are_within_the_orders_of_their_ties(world):
    """Known: 0.794 and 0.959; 80 passages equal another, and whose id comes first decides."""
    scores = measured(world, "dense-exact")
    low, high = (scores.mean(f"nDCG(ties={end})@10") for end in ("worst", "best"))
    assert low < 0.794 < high
    assert high - low < 0.02
    assert scores.mean("nDCG@10") == pytest.approx(0.794, abs=0.01)
    assert scores.mean("R@100") == pytest.approx(0.959, abs=5e-4)


def test_official__files_give_the_same_suite(world, collections, tmp_path):
    """Topics, judgements and prompts in the official form, out of the pinned tables."""
    for name, columns in (("queries", "query_id text"), ("qrels", "query_id doc_id relevance")):
        frame = world.shared[name]
        for split in ("dev", "train"):
            rows = frame.filter(pl.col("split") == split).select(columns.split()).rows()
            if name == "qrels":
                rows = [(q, "Q0", d, str(g)) for q, d, g in rows]
            kind = miracl_zh.QRELS if name == "qrels" else miracl_zh.TOPICS
            lines = "".join("\t".join(row) + "\n" for row in rows)
            (tmp_path / kind.format(split)).write_text(lines, "utf-8")
    importers.write_prompts(collections("nomiracl-zh").shared, tmp_path)
    again, made = miracl_zh.build(miracl_zh.official(tmp_path)), world.made
    assert again.cases.equals(made.cases.drop_columns(["vector"]))
    rows = {row["chunk_id"]: row for row in again.chunks.to_pylist()}
    assert rows == {
        row["chunk_id"]: row for row in made.chunks.drop_columns(["vector"]).to_pylist()
    }
