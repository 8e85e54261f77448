"""NoMIRACL in Chinese as a suite: its counts, its answers, and the way back to its own files."""

from __future__ import annotations

import json
from collections import defaultdict

import polars as pl
import pytest

import public_suites
import ragcore
from ragcore.public import nomiracl_zh as importer


@pytest.fixture(scope="module")
def tables(shared_data):
    return public_suites.read(shared_data / "nomiracl_zh")


@pytest.fixture(scope="module")
def suite(tables):
    return importer.build(tables)


def test_suite__has_the_counts_of_the_collection(suite):
    cases = suite.cases.to_pylist()
    assert [one["answerable"] for one in cases].count(True) == 250
    assert len(cases) == 500
    assert suite.chunks.num_rows == 4855
    assert len(suite.runs) == 11
    for run in suite.runs.values():
        assert run.num_rows == 500
        assert {len(one) for one in run["context"].to_pylist()} == {10}


def test_runs__fail_as_often_as_a_match_of_strings_found(tables, suite, tmp_path):
    folder = public_suites.write(tmp_path / "suite", suite)
    names = ["nomiracl.invalid", "nomiracl.error", "nomiracl.hallucination"]
    scores = ragcore.score(
        list(suite.runs.values()), names=list(suite.runs), suite=folder, measures=names
    )
    found = {(row["run"], row["measure"]): row["numerator"] for row in scores.rows()}
    said = tables["responses"].join(tables["queries"], on="query_id")
    for (system,), own in said.group_by("system"):
        invalid = own.filter(pl.col("verdict").is_in(["both", "other"]))
        error = own.filter(pl.col("answerable") & (pl.col("verdict") == "i_dont_know"))
        false = own.filter(~pl.col("answerable") & (pl.col("verdict") == "answer_present"))
        for name, rows in zip(names, (invalid, error, false), strict=True):
            assert found[system, name] == len(rows), (system, name)


def test_official__gives_the_same_suite(tables, suite, tmp_path):
    """Each prompt put together again, around the passages of its question."""
    texts = {row["doc_id"]: row for row in tables["corpus"].iter_rows(named=True)}
    shown, said = defaultdict(list), defaultdict(dict)
    for row in tables["candidates"].sort("position").iter_rows(named=True):
        shown[row["query_id"]].append(texts[row["doc_id"]])
    for row in tables["responses"].iter_rows(named=True):
        said[row["query_id"]][row["system"]] = row["response"]
    lines = defaultdict(str)
    for row in tables["queries"].iter_rows(named=True):
        own = shown[row["query_id"]]
        body = "\n\n".join(f"[{i}] {p['title']}: {p['text']}" for i, p in enumerate(own, 1))
        prompt = f"…\n\nQUESTION:\n{row['text']}\n\nCONTEXTS:\n{body}\n\nOUTPUT:\n"
        half = row["query_id"].split(":")[1]
        lines[half] += json.dumps(
            {"query_id": row["source_query_id"], "docids": [p["source_doc_id"] for p in own],
             "prompt": prompt, "results": said[row["query_id"]]}
        ) + "\n"  # fmt: skip
    for half, name in importer.FILES.items():
        (tmp_path / name).write_text(lines[half], encoding="utf-8")
    again = importer.build(importer.official(tmp_path))
    assert again.cases.equals(suite.cases)
    assert again.chunks is not None
    assert again.chunks.equals(suite.chunks)
    assert again.runs == suite.runs
    assert again.notes == suite.notes
