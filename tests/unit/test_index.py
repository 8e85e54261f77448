"""Building, opening, changing and checking an index directory."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexes
from ragcore.errors import InputError, UsageError
from ragcore.index import lexical
from ragcore.index import manifest as manifests
from ragcore.index.build import build
from ragcore.index.change import change
from ragcore.index.check import check_index
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import open_index
from ragcore.index.options import Options
from ragcore_kernels.postings import TantivyPostings, UnsupportedFormat

TEXTS = {"a": "red fox and red hen", "c": "blue fox", "b": "", "é": "green 狐狸 fox"}


def postings_of(index):
    """{term: {id: tf}} of an index."""
    held, ids = index.dictionary, index.ids.to_pylist()
    out = {}
    for code in range(held.offsets.size - 1):
        a, b = held.collection.offsets[code : code + 2]
        rows = held.collection.docs[a:b]
        assert (np.diff(rows) > 0).all()
        out[held.text(code)] = {
            ids[r]: int(n) for r, n in zip(rows, held.collection.tfs[a:b], strict=True)
        }
    return out


def counted(texts):
    """The same from our own tokens."""
    out = {}
    for name, text in texts.items():
        for token in indexes.PLAIN.tokens(text):
            out.setdefault(token, {}).setdefault(name, 0)
            out[token][name] += 1
    return out


# --- building


def test_build__numbers_chunks_by_id_descending_and_keeps_their_columns(tmp_path):
    index = indexes.make(
        tmp_path / "i", TEXTS, columns={"topic": ["x", None, "y", "z"], "n": [1, 2, 3, 4]}
    )
    assert index.ids.to_pylist() == ["é", "c", "b", "a"]
    assert index.documents["topic"].to_pylist() == ["z", None, "y", "x"]
    assert index.documents["n"].to_pylist() == [4, 2, 3, 1]
    assert postings_of(index) == counted(TEXTS)
    assert index.dictionary.collection.lengths.tolist() == [3, 2, 0, 5]
    said = index.manifest["lexical"]
    assert (said["n_terms"], said["n_tokens"], said["n_empty"]) == (7, 10, 1)
    assert said["postings_from"] == "segment files"


def test_build__of_the_same_chunks_in_another_order_is_the_same_corpus(tmp_path):
    table = indexes.chunk_table(TEXTS)
    one = read_chunks(table)
    other = read_chunks(table.take([2, 0, 3, 1]))
    assert one.corpus_hash() == other.corpus_hash()
    changed = read_chunks(indexes.chunk_table(TEXTS | {"b": "x"}))
    moved = read_chunks(indexes.chunk_table(TEXTS | {"c": "blue fo", "b": "x"}))
    assert len({one.corpus_hash(), changed.corpus_hash(), moved.corpus_hash()}) == 3


@settings(max_examples=15)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=4),
        st.lists(st.sampled_from(["a", "bb", "狐狸", "x-y", "É"]), max_size=30).map(" ".join),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_build__postings_equal_our_own_tokens(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("i") / "i"
    assert postings_of(indexes.make(path, texts)) == counted(texts)


def test_build__replaces_an_index_and_leaves_no_trace_of_the_old(tmp_path):
    indexes.make(tmp_path / "i", TEXTS)
    index = indexes.make(tmp_path / "i", {"z": "new"})
    assert index.ids.to_pylist() == ["z"]
    assert {p.name for p in (tmp_path / "i").iterdir()} == {
        "manifest.json", index.manifest["folder"],
    }  # fmt: skip


def test_build__of_nothing_is_an_index_of_nothing(tmp_path):
    index = indexes.make(tmp_path / "i", {})
    assert index.n_chunks == 0
    assert indexes.ranked(index, indexes.ask({"q": "x"})) == {"q": []}


def test_build__that_fails_leaves_the_old_index_whole(tmp_path):
    old = indexes.make(tmp_path / "i", TEXTS)

    def killed(stage, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(
            read_chunks(indexes.chunk_table({"z": "new"})), tmp_path / "i",
            Options(indexes.PLAIN), killed,
        )  # fmt: skip
    again = open_index(tmp_path / "i", verify=True)
    assert again.generation == old.generation
    assert [p.name for p in (tmp_path / "i").glob(".building*")] == []


def test_build__that_was_killed_is_cleared_away_by_the_next(tmp_path):
    path = tmp_path / "i"
    (path / ".building-999999999").mkdir(parents=True)
    with pytest.raises(InputError, match="a build that did not end"):
        open_index(path)
    indexes.make(path, TEXTS)
    assert not (path / ".building-999999999").exists()


def test_build__refuses_to_write_over_something_else(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("x")
    chunks = read_chunks(indexes.chunk_table(TEXTS))
    for name, said in (("file", "is a file"), ("folder", "thesis.tex")):
        with pytest.raises(UsageError, match=said):
            build(chunks, tmp_path / name, Options(indexes.PLAIN))
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "x"


def test_build__failed_from_nothing_leaves_nothing(tmp_path):
    def killed(stage, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(
            read_chunks(indexes.chunk_table(TEXTS)), tmp_path / "i", Options(indexes.PLAIN), killed
        )
    assert not (tmp_path / "i").exists()


# --- bad chunks


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"text": ["x"]}), "one of chunk_id"),
        (pa.table({"chunk_id": ["a"]}), "a column text, or vector"),
        (pa.table({"chunk_id": ["a", None], "text": ["x", "y"]}), "row 2: null chunk_id"),
        (pa.table({"chunk_id": ["a", "b"], "text": ["x", None]}), "row 2: null text"),
        (pa.table({"chunk_id": ["b", "", "a"], "text": ["x", "y", "z"]}), "row 2: an empty"),
        (pa.table({"chunk_id": ["b", "c", "b"], "text": ["x"] * 3}), "'b' in rows 1 and 3"),
        (pa.table({"chunk_id": ["a"], "text": [1]}), None),
        (pa.table({"chunk_id": [1.5], "text": ["x"]}), "ids as strings or integers"),
        (pa.table({"chunk_id": ["a", "b"], "vector": [[1.0, 2.0], [1.0]]}), "a vector of 1"),
        (pa.table({"chunk_id": ["a", "b"], "vector": [[1.0], [float("nan")]]}), "row 2: vector"),
        (pa.table({"chunk_id": ["a"], "vector": [[float("inf")]]}), "vector holds inf"),
        (pa.table({"chunk_id": ["a"], "vector": [None]}), "vector of type null"),
        (pa.table({"chunk_id": ["a", "b"], "vector": [[1.0], None]}), "row 2: null vector"),
        (pa.table({"chunk_id": ["a"], "vector": [[None, 1.0]]}), "null inside a vector"),
        (pa.table({"chunk_id": ["a"], "vector": ["x"]}), "fixed_size_list"),
    ],
)
def test_chunks__that_are_broken_are_refused_by_name(table, said):
    if said is None:
        assert read_chunks(table).texts.to_pylist() == ["1"]
        return
    with pytest.raises(InputError, match=said):
        read_chunks(table)


def test_chunks__files_that_are_none(tmp_path):
    with pytest.raises(InputError, match="a readable file"):
        read_chunks(tmp_path / "none.arrow")
    (tmp_path / "text").write_text("hello world")
    with pytest.raises(InputError, match="begins with"):
        read_chunks(tmp_path / "text")


def test_chunks__tombstones_are_not_indexed_and_counted(tmp_path):
    table = pa.table({"chunk_id": ["a", "b"], "text": ["x", "y"], "deleted": [True, None]})
    chunks = read_chunks(table)
    assert (chunks.ids.to_pylist(), chunks.tombstones) == (["b"], ["a"])
    assert chunks.notes == ["1 deleted chunks are not indexed"]


def test_chunks__integers_and_dictionaries_are_ids(tmp_path):
    table = pa.table({
        "id": pa.array([10, 9, 100]), "text": pa.array(["x", "y", "x"]).dictionary_encode()
    })  # fmt: skip
    assert read_chunks(table).ids.to_pylist() == ["9", "100", "10"]


# --- opening


def test_open__notices_every_kind_of_damage(tmp_path):
    whole = indexes.make(tmp_path / "whole", TEXTS)
    folder = whole.manifest["folder"]

    def damaged(change):
        path = tmp_path / "broken"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(tmp_path / "whole", path)
        change(path)
        return path

    def edit(path, **values):
        said = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(json.dumps(said | values))

    for change_, said, verify in (
        (lambda p: (p / "manifest.json").unlink(), "no manifest.json", False),
        (lambda p: (p / "manifest.json").write_text("{"), "not JSON", False),
        (lambda p: (p / "manifest.json").write_text("[]"), "index format None", False),
        (lambda p: edit(p, format=99), "index format 99; expected format 1", False),
        (lambda p: edit(p, engine="x"), "nobody edited", False),
        (lambda p: (p / folder / "posting-tfs.npy").unlink(), "gone", False),
        (lambda p: (p / folder / "documents.arrow").write_bytes(b"x"), "1 bytes", False),
        (lambda p: flip(p / folder / "posting-tfs.npy"), "other content", True),
    ):
        path = damaged(change_)
        with pytest.raises(InputError, match=said):
            open_index(path, verify=verify)
    with pytest.raises(InputError, match="no manifest"):
        open_index(tmp_path / "nowhere")


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(bytes(raw))


def test_open__refuses_another_corpus(tmp_path):
    import pyarrow.feather as feather

    indexes.make(tmp_path / "i", TEXTS)
    feather.write_feather(indexes.chunk_table(TEXTS), str(tmp_path / "same.arrow"))
    feather.write_feather(indexes.chunk_table(TEXTS | {"a": "x"}), str(tmp_path / "other.arrow"))
    assert open_index(tmp_path / "i", chunks=tmp_path / "same.arrow").n_chunks == 4
    with pytest.raises(InputError, match="the corpus has changed under its index"):
        open_index(tmp_path / "i", chunks=tmp_path / "other.arrow")


def test_open__parts_that_are_not_there_say_what_to_do(tmp_path):
    index = indexes.make(tmp_path / "i", TEXTS)
    for part, said in (("vectors", "--embed"), ("graph", "--hnsw")):
        with pytest.raises(UsageError, match=said):
            getattr(index, part)
    dense = indexes.make(tmp_path / "d", vectors={"a": [1, 0]}, hnsw=False)
    with pytest.raises(UsageError, match="no texts to search"):
        dense.dictionary  # noqa: B018


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


def test_build__terms_that_are_too_long_are_cut_and_counted(tmp_path):
    long = "x" * 70_000
    built = build(
        read_chunks(indexes.chunk_table({"a": f"{long} y", "b": long})), tmp_path / "i",
        Options(indexes.PLAIN),
    )  # fmt: skip
    assert built.notes == ["2 terms were longer than 65,530 bytes: cut there"]
    found = indexes.names(indexes.ranked(open_index(tmp_path / "i"), indexes.ask({"q": long})))
    assert found["q"] == ["b", "a"]
