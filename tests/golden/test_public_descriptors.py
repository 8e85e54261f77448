"""Descriptors of public suites: their files are those of the shared data, and enough to build."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ragcore.catalogue.entries import entry
from ragcore.measures import registry
from ragcore.public import (
    clapnq,
    cmrc2018,
    covidqa,
    miracl_zh,
    mtrag,
    mtrag_files,
    nomiracl_zh,
    qasper_files,
    scifact,
    trec_files,
    xquad,
)

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
    "cmrc2018": set(cmrc2018.FILES.values()),
    "covidqa": {covidqa.FILE},
    "xquad": {f"xquad.{lang}.json" for lang in xquad.LANGUAGES},
    "miracl-zh": {
        *(kind.format(s) for kind in (miracl_zh.TOPICS, miracl_zh.QRELS) for s in ("dev", "train")),
        *nomiracl_zh.FILES.values(),
    },
    "qasper": {archive for archive, *_ in qasper_files.ARCHIVES},
    "cranfield": {trec_files.CRANFIELD, trec_files.CRANFIELD_QUERIES, trec_files.CRANFIELD_QRELS},
}
"""Official files that each importer reads, by suite."""


@pytest.mark.parametrize("name", FILES)
def test_descriptor__says_what_a_reader_must_know(name):
    said = entry(name).settings
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
def test_files__are_the_shared_ones_and_enough(name, collections):
    """Their checksums are compared where they are found."""
    world = collections(name)
    suite, said = world.made, world.entry.settings
    assert (suite.chunks is not None) or not said["strategies"]
    assert bool(suite.runs) or said["strategies"]
    assert set(suite.cases["lang"].to_pylist()) == set(said["languages"])
    dense = {"dense-exact", "hybrid-exact"} & set(said["strategies"])
    assert not dense or "vector" in suite.cases.column_names
    for scope in world.entry.scopes:
        for column in scope.filters:
            assert column in suite.cases.column_names
            assert column in suite.chunks.column_names
    run = next(iter(suite.runs.values()), None)
    if run is None:
        run = suite.cases.select(["case_id", "lang"])[:1]
        run = run.append_column("ranked", pa.array([["?"]], pa.list_(pa.string())))
    scores = world.scored(run)
    row = next(row for row in scores.rows() if row["measure"] == scores.measures[0])
    assert row["n_cases"] == len(set(suite.cases["case_id"].to_pylist()))
    assert row["n_ok"] > 0
    assert suite.notes or name == "trec-robust03"
