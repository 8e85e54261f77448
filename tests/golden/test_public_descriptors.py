"""Descriptors of public suites: their files are those of the shared data, and enough to build."""

from __future__ import annotations

import hashlib
import importlib
import tomllib
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import public_suites
import ragcore
from ragcore.measures import registry
from ragcore.public import clapnq, mtrag, mtrag_files, nomiracl_zh, scifact, trec_files

DATA = Path(__file__).resolve().parents[2] / "data"
KEYS = {
    "name", "title", "kind", "version", "licence", "citation", "source", "subset", "cannot_show",
    "languages", "importer", "measures", "strategies", "candidate_k", "context_k", "files",
}  # fmt: skip
FILES = {
    "scifact": {scifact.ARCHIVE},
    "nomiracl-zh": set(nomiracl_zh.FILES.values()),
    "clapnq": set(clapnq.FILES),
    "mtrag": {mtrag.TASKS, *(f"{domain}.tsv" for domain in mtrag_files.DOMAINS)},
    "mtrag-rated": {mtrag.RATED},
    "trec-robust03": {trec_files.ROBUST, *(f"input.{n}.gz" for n in trec_files.ROBUST_RUNS)},
    "trec-web": {trec_files.WEB, trec_files.WEB_QUERIES, *trec_files.WEB_RUNS.values()},
    "cacm": {trec_files.CACM, trec_files.CACM_RUN, trec_files.CACM_TOPICS, trec_files.CACM_QRELS},
    "cranfield": {trec_files.CRANFIELD, trec_files.CRANFIELD_QUERIES, trec_files.CRANFIELD_QRELS},
}
"""Official files that each importer reads, by suite."""


def descriptor(name):
    return tomllib.loads((DATA / name / "suite.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_descriptor__says_what_a_reader_must_know(name):
    said = descriptor(name)
    assert said.keys() >= KEYS
    assert said["name"] == name
    assert said["kind"] == "public (out of distribution)"
    assert said["cannot_show"]
    assert registry.parse(said["measures"], 1)
    assert {one["file"] for one in said["official"]} == FILES[name]
    for one in said["official"]:
        assert set(one) == {"url", "file", "sha256", "bytes"}
        assert one["url"].startswith("https://")
        assert len(one["sha256"]) == 64
        pinned = "raw.githubusercontent.com" in one["url"]
        assert not pinned or len(one["url"].split("/")[5]) == 40


@pytest.mark.parametrize("name", FILES)
def test_files__are_the_shared_ones_and_enough(name, shared_data, tmp_path):
    said = descriptor(name)
    tables = {}
    for path, pin in said["files"].items():
        raw = (shared_data / path).read_bytes()
        assert len(raw) == pin["bytes"], path
        assert hashlib.sha256(raw).hexdigest() == pin["sha256"], path
        tables[Path(path).stem] = pl.read_parquet(shared_data / path)
    importer = importlib.import_module(f"ragcore.public.{said['importer']}")
    suite = importer.build(tables)
    assert (suite.chunks is not None) or not said["strategies"]
    assert bool(suite.runs) or said["strategies"]
    made = public_suites.write(tmp_path / "suite", suite)
    run = next(iter(suite.runs.values()), None)
    if run is None:
        run = pa.table({"case_id": suite.cases["case_id"][:1],
                        "ranked": pa.array([["?"]], pa.list_(pa.string()))})  # fmt: skip
    scores = ragcore.score(run, suite=made, measures=said["measures"])
    row = next(row for row in scores.rows() if row["measure"] == scores.measures[0])
    assert row["n_cases"] == suite.cases.num_rows
    assert row["n_ok"] > 0
    assert suite.notes or name == "trec-robust03"
