"""Building, opening, changing and checking an index directory."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexes
from indexes import TEXTS, counted, postings_of
from ragcore.errors import InputError, UsageError
from ragcore.index.build import build
from ragcore.index.chunks import read_chunks
from ragcore.index.opened import open_index
from ragcore.index.options import Options

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


def test_build__terms_that_are_too_long_are_cut_and_counted(tmp_path):
    long = "x" * 70_000
    built = build(
        read_chunks(indexes.chunk_table({"a": f"{long} y", "b": long})), tmp_path / "i",
        Options(indexes.PLAIN),
    )  # fmt: skip
    assert built.notes == ["2 terms were longer than 65,530 bytes: cut there"]
    found = indexes.names(indexes.ranked(open_index(tmp_path / "i"), indexes.ask({"q": long})))
    assert found["q"] == ["b", "a"]
