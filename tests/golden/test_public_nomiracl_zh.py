"""NoMIRACL in Chinese as a suite: its counts, its answers, and the way back to its own files."""

from __future__ import annotations

import polars as pl
import pytest

import importers
import ragcore
from ragcore.public import nomiracl_zh as importer


@pytest.fixture(scope="module")
def world(collections):
    return collections("nomiracl-zh")


def test_suite__has_the_counts_of_the_collection(world):
    suite = world.made
    cases = suite.cases.to_pylist()
    assert [one["answerable"] for one in cases].count(True) == 250
    assert len(cases) == 500
    assert suite.chunks.num_rows == 4855
    assert len(suite.runs) == 11
    for run in suite.runs.values():
        assert run.num_rows == 500
        assert {len(one) for one in run["context"].to_pylist()} == {10}


def test_runs__fail_as_often_as_a_match_of_strings_found(world):
    suite, tables = world.made, world.shared
    names = ["nomiracl.invalid", "nomiracl.error", "nomiracl.hallucination"]
    scores = ragcore.score(
        list(suite.runs.values()), names=list(suite.runs), suite=world.suite, measures=names
    )
    found = {(row["run"], row["measure"]): row["numerator"] for row in scores.rows()}
    said = tables["responses"].join(tables["queries"], on="query_id")
    for (system,), own in said.group_by("system"):
        invalid = own.filter(pl.col("verdict").is_in(["both", "other"]))
        error = own.filter(pl.col("answerable") & (pl.col("verdict") == "i_dont_know"))
        false = own.filter(~pl.col("answerable") & (pl.col("verdict") == "answer_present"))
        for name, rows in zip(names, (invalid, error, false), strict=True):
            assert found[system, name] == len(rows), (system, name)


def test_official__gives_the_same_suite(world, tmp_path):
    importers.write_prompts(world.shared, tmp_path)
    importers.same(importer.build(importer.official(tmp_path)), world.made)
