"""The verbs of search from Python: paths, tables, settings as keywords."""

from __future__ import annotations

import numpy as np
import pyarrow.feather as feather
import pytest

import indexes
import ragcore
from ragcore.errors import InputError, UsageError

TEXTS = {"a": "red fox", "b": "blue hen", "c": "red hen"}
VECTORS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.6, 0.8]}


def test_verbs__from_chunks_to_a_score(tmp_path):
    table = indexes.chunk_table(TEXTS, VECTORS)
    feather.write_feather(table, str(tmp_path / "chunks.arrow"))
    index = ragcore.build_index(tmp_path / "chunks.arrow", tmp_path / "i", k1=0.9, b=0.4)
    assert index.manifest["lexical"]["k1"] == 0.9
    cases = indexes.ask({"q": "red fox"}, {"q": [1.0, 0.1]})
    for given in (index, tmp_path / "i", str(tmp_path / "i")):
        for asked in (cases, cases.table):
            found = ragcore.search(given, asked, strategy="hybrid", candidate_k=2)
            assert found.table["ranked"][0].as_py()[0]["id"] == "a"
    found = ragcore.search(index, cases)
    scores = ragcore.score(found.table, qrels={"q": {"a": 1}}, measures=["RR"])
    assert scores.mean("RR") == 1.0
    report = ragcore.audit(index, cases, ks=(2,), efs=(10,), target=0.5)
    row = report.audits[2].rows[0]
    assert (row.ef, row.hits, row.wanted) == (10, 2, 2)
    assert row.verdict == "inconclusive"  # one question shows little


def test_verbs__vectors_and_embedders_of_ones_own(tmp_path):
    table = indexes.chunk_table(TEXTS)
    matrix = np.array([VECTORS[name] for name in "cba"], np.float32)  # ids descending
    index = ragcore.build_index(table, tmp_path / "i", vectors=matrix, hnsw=False, analyzer="en")
    assert index.options.analyzer.spec().endswith("stem:english")
    found = ragcore.search(
        index, indexes.ask({"q": "x"}), strategy="dense-exact",
        embed=lambda texts: np.array([[0.0, 1.0]] * len(texts), np.float32),
    )  # fmt: skip
    assert [i["id"] for i in found.table["ranked"][0].as_py()] == ["b", "c", "a"]


def test_verbs__refuse_what_they_do_not_know(tmp_path):
    table = indexes.chunk_table(TEXTS)
    with pytest.raises(UsageError, match="unknown setting 'kl'"):
        ragcore.build_index(table, tmp_path / "i", kl=1)
    with pytest.raises(UsageError, match=r"\(3, d\)"):
        ragcore.build_index(table, tmp_path / "i", vectors=np.ones((2, 2), np.float32))
    assert not (tmp_path / "i").exists()
    ragcore.build_index(table, tmp_path / "i")
    cases = indexes.ask({"q": "red"})
    with pytest.raises(UsageError, match="unknown setting 'top_k'"):
        ragcore.search(tmp_path / "i", cases, top_k=3)
    with pytest.raises(UsageError, match="unknown setting 'ef'"):
        ragcore.audit(tmp_path / "i", cases, ef=3)


def test_verbs__refuse_an_index_of_another_corpus(tmp_path):
    suite = tmp_path / "suite"
    suite.mkdir()
    feather.write_feather(indexes.ask({"q": "red"}).table, str(suite / "cases.arrow"))
    feather.write_feather(indexes.chunk_table(TEXTS), str(suite / "chunks.arrow"))
    index = ragcore.build_index(suite / "chunks.arrow", tmp_path / "i")
    assert ragcore.search(index, suite).table.num_rows == 1
    feather.write_feather(indexes.chunk_table(TEXTS | {"a": "x"}), str(suite / "chunks.arrow"))
    with pytest.raises(InputError, match="changed under its index"):
        ragcore.search(index, suite)
