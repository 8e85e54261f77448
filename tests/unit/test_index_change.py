"""Changing an index, and what is read back from tantivy and from the graph."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import indexes
from indexes import TEXTS, counted, postings_of
from ragcore.errors import InputError
from ragcore.index import lexical
from ragcore.index import manifest as manifests
from ragcore.index.build import build
from ragcore.index.change import change
from ragcore.index.check import check_index
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import open_index
from ragcore.index.options import Options
from ragcore_kernels.postings import Csr, TantivyPostings, UnsupportedFormat

# --- changing


def test_change__equals_building_at_once(tmp_path):
    rng = np.random.default_rng(5)
    vectors = {f"n{i:02}": rng.normal(size=4) for i in range(12)}
    texts = {name: f"w{i % 3} w{i % 5} common" for i, name in enumerate(vectors)}
    first = dict(list(texts.items())[:8])
    index = indexes.make(tmp_path / "i", first, vectors, columns={"topic": list("abcdefgh")})
    rest = indexes.chunk_table(
        dict(list(texts.items())[8:]), vectors, topic=list("ijkl"), extra=[1, 2, 3, 4]
    )
    change(tmp_path / "i", read_chunks(rest), ["n03", "n05"])
    index = open_index(tmp_path / "i", verify=True)
    kept = {k: v for k, v in texts.items() if k not in ("n03", "n05")}
    once = indexes.make(tmp_path / "once", kept, {k: vectors[k] for k in kept})
    assert index.ids.equals(once.ids)
    assert postings_of(index) == postings_of(once) == counted(kept)
    assert index.manifest["corpus"]["sha256"] == once.manifest["corpus"]["sha256"]
    assert np.array_equal(index.vectors, once.vectors)
    topics = dict(zip(texts, "abcdefghijkl", strict=True))
    assert index.documents["topic"].to_pylist() == [topics[n] for n in index.ids.to_pylist()]
    assert index.documents["extra"].null_count == 6
    assert index.manifest["lexical"]["n_deleted_inside"] in (0, 2)
    graph = index.graph
    assert (graph.n_live, len(graph.slots)) == (10, 12)
    rows, counts = graph.search(index.vectors.astype(np.float32), 12, 200)
    assert counts.tolist() == [10] * 10  # deleted nodes are not returned, nor any id invented
    assert all(sorted(r[:10]) == list(range(10)) for r in rows.tolist())


def test_change__replaces_deletes_and_refuses(tmp_path):
    indexes.make(tmp_path / "i", TEXTS)
    more = read_chunks(indexes.chunk_table({"a": "white owl", "n": "new"}))
    before = open_index(tmp_path / "i").generation
    with pytest.raises(InputError, match="'a' is in the index already \\(1 of 2 are\\)"):
        change(tmp_path / "i", more, [])
    with pytest.raises(InputError, match="no chunk 'zz' to delete"):
        change(tmp_path / "i", None, ["a", "zz"])
    assert open_index(tmp_path / "i", verify=True).generation == before
    change(tmp_path / "i", more, [], replace_existing=True)
    index = open_index(tmp_path / "i", verify=True)
    assert postings_of(index) == counted(TEXTS | {"a": "white owl", "n": "new"})
    assert lexical.stored(index.folder / "tantivy", ["a"]) == {"a": (None, "white owl")}
    gone = pa.table({"chunk_id": ["a", "m"], "text": ["", "m"], "deleted": [True, False]})
    change(tmp_path / "i", read_chunks(gone), ["c"])
    index = open_index(tmp_path / "i", verify=True)
    assert index.ids.to_pylist() == ["é", "n", "m", "b"]
    assert list(check_index(tmp_path / "i"))


def test_change__needs_the_vectors_that_the_index_has(tmp_path):
    indexes.make(tmp_path / "i", {"a": "x"}, {"a": [1.0, 0.0]})
    for table, said in (
        (indexes.chunk_table({"b": "y"}), "no vectors"),
        (indexes.chunk_table({"b": "y"}, {"b": [1.0]}), "1 dimensions"),
    ):
        with pytest.raises(InputError, match=said):
            change(tmp_path / "i", read_chunks(table), [])
    assert open_index(tmp_path / "i", verify=True).n_chunks == 1


def test_change__that_fails_leaves_the_old_index_whole(tmp_path):
    old = indexes.make(tmp_path / "i", TEXTS)

    def killed(stage, done, total):
        if done == total:
            raise KeyboardInterrupt

    more = read_chunks(indexes.chunk_table({"n": "new"}))
    with pytest.raises(KeyboardInterrupt):
        change(tmp_path / "i", more, ["a"], progress=killed)
    again = open_index(tmp_path / "i", verify=True)
    assert again.generation == old.generation
    assert list(check_index(tmp_path / "i"))


# --- what is read back


def test_read__falls_back_to_the_stored_texts_with_a_message(tmp_path, monkeypatch):
    whole = indexes.make(tmp_path / "whole", TEXTS)

    def unknown(*args, **kwargs):
        raise UnsupportedFormat("x.idx", "format 8", "5, 6 or 7")

    monkeypatch.setattr(TantivyPostings, "open", unknown)
    built = build(read_chunks(indexes.chunk_table(TEXTS)), tmp_path / "i", Options(indexes.PLAIN))
    assert "format 8" in built.notes[0]
    index = open_index(tmp_path / "i")
    assert index.manifest["lexical"]["postings_from"] == "stored text"
    assert postings_of(index) == postings_of(whole)
    change(tmp_path / "i", None, ["a"])
    assert postings_of(open_index(tmp_path / "i")) == counted(
        {k: v for k, v in TEXTS.items() if k != "a"}
    )


def test_read__that_contradicts_tantivy_falls_back_too(tmp_path, monkeypatch):
    index = indexes.make(tmp_path / "i", TEXTS)
    read_all = TantivyPostings.read_all

    def wrong(self, threads=1):
        terms, held = read_all(self, threads)
        cut = held.offsets.copy()
        cut[1:-1] += 1
        return terms, Csr(cut, held.docs, held.tfs)

    folder = index.folder / lexical.FOLDER
    monkeypatch.setattr(TantivyPostings, "read_all", wrong)
    monkeypatch.setattr(lexical, "_names", lambda *_: ["é", "c", "b", "a"])
    found = lexical.read(folder, indexes.PLAIN.batch)
    assert "by tantivy" in found.from_text
    assert sum(np.diff(found.postings.offsets)) == index.dictionary.collection.docs.size


def test_check__finds_postings_that_are_not_tantivys(tmp_path):
    index = indexes.make(tmp_path / "i", TEXTS)
    assert len(list(check_index(tmp_path / "i"))) == 2
    tfs = np.load(index.folder / "posting-tfs.npy")
    np.save(index.folder / "posting-tfs.npy", tfs + 1)
    said = json.loads((tmp_path / "i" / "manifest.json").read_text())
    said["files"]["posting-tfs.npy"] = manifests.file_record(index.folder / "posting-tfs.npy")
    said["generation"] = manifests.generation_of(said)
    (tmp_path / "i" / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="other postings than tantivy holds"):
        list(check_index(tmp_path / "i"))


def test_graph__is_the_same_for_the_same_seed_and_one_thread(tmp_path):
    rng = np.random.default_rng(1)
    vectors = {f"{i:03}": rng.normal(size=8) for i in range(200)}
    one = indexes.make(tmp_path / "a", vectors=vectors)
    two = indexes.make(tmp_path / "b", vectors=vectors)
    assert one.manifest["files"]["hnsw.bin"] == two.manifest["files"]["hnsw.bin"]
    assert one.generation == two.generation
    assert one.manifest["hnsw"]["deterministic"]
    other = indexes.make(tmp_path / "c", vectors=vectors, seed=7)
    assert one.manifest["files"]["hnsw.bin"] != other.manifest["files"]["hnsw.bin"]
    many = indexes.make(tmp_path / "d", vectors=vectors, threads=2)
    assert not many.manifest["hnsw"]["deterministic"]
